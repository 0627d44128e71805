// SPDX-License-Identifier: BSD-2-Clause
/*
 * The names of files that are made for a request, and how they are made: who asks for them at
 * dyno's port has no identity, and whoever makes them is root.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kprof/dynolog.h"
#include "util/error.h"
#include "util/util.h"

static const char *const default_folders[] = {"/tmp"};

/* Puts _<pid> before the suffix, in the first place that has it, or in all. */
static int insert(const char *log_file, const char *suffix, int32_t pid, bool all,
		  char path[KPROF_DYNOLOG_PATH_BYTES])
{
	const char *at = strstr(log_file, suffix);
	size_t used = 0;

	for (;; at = strstr(log_file, suffix)) {
		size_t before = at ? (size_t)(at - log_file) : strlen(log_file);
		int n = snprintf(path + used, KPROF_DYNOLOG_PATH_BYTES - used, "%.*s", (int)before,
				 log_file);

		used += (size_t)n;
		if (used < KPROF_DYNOLOG_PATH_BYTES && at)
			used += (size_t)snprintf(path + used, KPROF_DYNOLOG_PATH_BYTES - used,
						 "_%d%s", pid, suffix);
		if (used >= KPROF_DYNOLOG_PATH_BYTES)
			return -ENAMETOOLONG;
		if (!at)
			return 0;
		log_file = at + strlen(suffix);
		if (!all)
			suffix = "\n"; /* in no path: what follows is only copied */
	}
}

int kprof_dynolog_path(const char *log_file, int32_t pid, char path[KPROF_DYNOLOG_PATH_BYTES])
{
	if (strlen(log_file) >= KPROF_DYNOLOG_PATH_BYTES)
		return -ENAMETOOLONG;
	return insert(log_file, ".json", pid, true, path);
}

int kprof_dynolog_kineto_path(const char *log_file, int32_t pid,
			      char path[KPROF_DYNOLOG_PATH_BYTES])
{
	bool torch = strstr(log_file, ".pt.trace.json");

	if (strlen(log_file) >= KPROF_DYNOLOG_PATH_BYTES)
		return -ENAMETOOLONG;
	return insert(log_file, torch ? ".pt.trace.json" : ".json", pid, false, path);
}

/* The part of the path below the folder, by their texts; NULL: it does not lie there. */
static const char *below(const char *path, const char *folder)
{
	size_t len = strlen(folder);

	while (len && folder[len - 1] == '/')
		len--;
	if (folder[0] != '/' || strncmp(path, folder, len) || path[len] != '/')
		return NULL;
	path += len;
	path += strspn(path, "/");
	return *path ? path : NULL;
}

/* No part of it is "..", and it does not end as a folder's does. */
static bool is_plain(const char *path)
{
	while (*path) {
		size_t n = strcspn(path, "/");

		if (n == 2 && !strncmp(path, "..", 2))
			return false;
		if (!path[n])
			return n && !(n == 1 && *path == '.');
		path += n + 1;
	}
	return false;
}

static const char *find_folder(const char *path, const char *const *folders, size_t nr,
			       const char **rest)
{
	if (!nr) {
		folders = default_folders;
		nr = ARRAY_SIZE(default_folders);
	}
	if (path[0] != '/' || !is_plain(path) || strlen(path) >= KPROF_DYNOLOG_PATH_BYTES)
		return NULL;
	for (size_t i = 0; i < nr; i++) {
		*rest = below(path, folders[i]);
		if (*rest)
			return folders[i];
	}
	return NULL;
}

bool kprof_dynolog_path_allowed(const char *path, const char *const *folders, size_t nr_folders)
{
	const char *rest;

	return find_folder(path, folders, nr_folders, &rest);
}

/* ---- files with another user's rights ---- */

struct rights {
	gid_t groups[256];
	int nr_groups;
	uid_t uid;
	gid_t gid;
	bool changed;
};

/* The kernel asks for rights of these ids alone; root's rights to files go with them. */
static int become(uid_t uid, gid_t gid, struct rights *was)
{
	was->changed = false;
	was->nr_groups = getgroups(ARRAY_SIZE(was->groups), was->groups);
	if (geteuid() == uid && getegid() == gid)
		return 0;
	if (geteuid())
		return -EPERM;
	if (was->nr_groups < 0 || syscall(SYS_setgroups, 0, NULL))
		return -errno;
	was->changed = true;
	was->gid = (gid_t)setfsgid(gid);
	was->uid = (uid_t)setfsuid(uid);
	return (uid_t)setfsuid((uid_t)-1) == uid && (gid_t)setfsgid((gid_t)-1) == gid ? 0 : -EPERM;
}

static void become_again(const struct rights *was)
{
	if (!was->changed)
		return;
	setfsuid(was->uid);
	setfsgid(was->gid);
	/* It was possible a moment ago. Without its groups the process would go on with less. */
	if (syscall(SYS_setgroups, was->nr_groups, was->groups))
		log_debug("the supplementary groups are gone: %s", strerror(errno));
}

/* ---- the folder of a file ---- */

#define RESOLVE (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV)

struct place {
	int fd;           /* the folder that the file lies in */
	const char *name; /* in it */
	struct rights was;
};

static int open_below(int in, const char *path, uint64_t flags)
{
	struct open_how how = {.flags = flags | O_CLOEXEC, .resolve = RESOLVE};
	int fd = (int)syscall(SYS_openat2, in, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

/* From here to leave_place(), the kernel asks for the user's rights. */
static int enter_place(const char *path, const char *const *folders, size_t nr, uid_t uid,
		       gid_t gid, struct place *p)
{
	const char *rest, *folder = find_folder(path, folders, nr, &rest);
	char parent[KPROF_DYNOLOG_PATH_BYTES];
	int in, err;

	*p = (struct place){.fd = -1};
	if (!folder)
		return -EACCES;
	p->name = strrchr(rest, '/');
	p->name = p->name ? p->name + 1 : rest;
	snprintf(parent, sizeof(parent), "%.*s", (int)(p->name - rest), rest);
	in = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (in < 0)
		return -errno;
	err = become(uid, gid, &p->was);
	if (!err) {
		p->fd = open_below(in, *parent ? parent : ".", O_PATH | O_DIRECTORY);
		err = p->fd < 0 ? p->fd : 0;
	}
	close(in);
	return err;
}

static void leave_place(struct place *p)
{
	become_again(&p->was);
	if (p->fd >= 0)
		close(p->fd);
}

/* ---- files ---- */

/* 0: there is nothing of this name. It is not asked for more: what is mounted may not answer. */
static int is_free(const struct place *p)
{
	int fd = open_below(p->fd, p->name, O_PATH | O_NOFOLLOW);

	if (fd >= 0)
		close(fd);
	if (fd >= 0 || fd == -ELOOP)
		return -EEXIST;
	return fd == -ENOENT ? 0 : fd;
}

static int new_file(const struct place *p)
{
	struct open_how how = {
		.flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		.mode = 0600,
		.resolve = RESOLVE,
	};
	int fd = openat(p->fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);

	if (fd < 0 && errno == EOPNOTSUPP) /* by some file systems; then with its name at once */
		fd = (int)syscall(SYS_openat2, p->fd, p->name, &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

static int fail(int err, const char *path)
{
	if (err == -EACCES)
		return error_set(err, NULL,
				 "cannot make %s: it is not below an allowed folder, or the "
				 "user may not write there",
				 path);
	return error_set(err, NULL, "cannot make %s: %s", path, strerror(-err));
}

int kprof_dynolog_create(const char *path, const char *const *folders, size_t nr_folders, uid_t uid,
			 gid_t gid)
{
	struct place p;
	int fd = -1, err = enter_place(path, folders, nr_folders, uid, gid, &p);

	error_clear();
	if (!err)
		err = is_free(&p);
	if (!err) {
		fd = new_file(&p);
		err = fd < 0 ? fd : 0;
	}
	leave_place(&p);
	return err ? fail(err, path) : fd;
}

int kprof_dynolog_publish(int fd, const char *path, const char *const *folders, size_t nr_folders,
			  uid_t uid, gid_t gid)
{
	char from[32];
	struct stat st;
	struct place p;
	int err;

	error_clear();
	if (fstat(fd, &st))
		return fail(-errno, path);
	if (st.st_nlink)
		return 0; /* it has had its name all the time */
	err = enter_place(path, folders, nr_folders, uid, gid, &p);
	snprintf(from, sizeof(from), "/proc/self/fd/%d", fd);
	if (!err && linkat(AT_FDCWD, from, p.fd, p.name, AT_SYMLINK_FOLLOW))
		err = -errno;
	leave_place(&p);
	return err ? fail(err, path) : 0;
}
