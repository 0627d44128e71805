// SPDX-License-Identifier: BSD-2-Clause
#include "util/disk_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/util.h"

#define TEMP_SUFFIX ".tmp"
#define TEMP_OLD_S 3600

static char *default_dir(void)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

	/*
	 * Under sudo, HOME may still be the user's: root's files go to a directory of root's
	 * instead.
	 */
	if (geteuid() == 0)
		return strdup("/var/cache/kprof/symbols");
	if (xdg && xdg[0] == '/')
		return xasprintf("%s/kprof/symbols", xdg);
	return home && home[0] == '/' ? xasprintf("%s/.cache/kprof/symbols", home) : NULL;
}

/* Creates the directories of the path, as far as possible. Only the last one is private (0700). */
static void make_dirs(char *path)
{
	for (char *slash = path; (slash = strchr(slash + 1, '/'));) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
	mkdir(path, 0700);
}

static bool ours_alone(int fd, mode_t type)
{
	struct stat st;

	return !fstat(fd, &st) && (st.st_mode & S_IFMT) == type && st.st_uid == geteuid() &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH));
}

int disk_cache__open(const char *dir)
{
	char *path = dir ? strdup(dir) : default_dir();
	int fd = -1;

	if (path && *path) {
		make_dirs(path);
		fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	}
	free(path);
	if (fd >= 0 && !ours_alone(fd, S_IFDIR)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

bool disk_cache__name(char name[DISK_CACHE_NAME_BYTES], const char *build_id, const char *suffix)
{
	/*
	 * A build id is hexadecimal text, as elffile writes it. One of less than four bytes is not
	 * unique.
	 */
	return strlen(build_id) >= 8 && snprintf(name, DISK_CACHE_NAME_BYTES, "%s%s", build_id,
						 suffix) < DISK_CACHE_NAME_BYTES;
}

int disk_cache__read(int dir, const char *name, size_t most_bytes, char **out, size_t *bytes)
{
	struct timespec now[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}};
	int fd, err;

	if (dir < 0)
		return -ENOENT;
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = ours_alone(fd, S_IFREG) ? read_fd(fd, most_bytes, out, bytes) : -EPERM;
	/*
	 * The access time says how long ago a file was used (disk_cache__trim()). It is set here
	 * because file systems need not keep it themselves.
	 */
	if (!err)
		futimens(fd, now);
	close(fd);
	return err;
}

bool disk_cache__write(int dir, const char *name, const void *data, size_t bytes)
{
	char temp[DISK_CACHE_NAME_BYTES + 40];
	bool done;
	int fd;

	if (dir < 0)
		return false;
	/*
	 * There is no fsync(): whoever reads a file that a crash has cut short finds that its
	 * checksum is wrong.
	 */
	snprintf(temp, sizeof(temp), "%s.%d.%d" TEMP_SUFFIX, name, getpid(), gettid());
	unlinkat(dir, temp, 0);
	fd = openat(dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	done = write_all(fd, data, bytes) && !renameat(dir, temp, dir, name);
	close(fd);
	if (!done)
		unlinkat(dir, temp, 0);
	return done;
}

/* ---- the bound on the cache's size ---- */

struct cached {
	char *name;
	struct timespec used;
	uint64_t bytes;
};

struct listing {
	struct cached *all;
	size_t nr, cap;
	uint64_t bytes;
};

static int compare_used(const void *a, const void *b)
{
	const struct timespec *x = &((const struct cached *)a)->used;
	const struct timespec *y = &((const struct cached *)b)->used;

	if (x->tv_sec != y->tv_sec)
		return x->tv_sec < y->tv_sec ? -1 : 1;
	return x->tv_nsec < y->tv_nsec ? -1 : x->tv_nsec > y->tv_nsec;
}

static bool ends_with(const char *name, const char *suffix)
{
	size_t nr = strlen(name), end = strlen(suffix);

	return nr > end && !strcmp(name + nr - end, suffix);
}

static void list_file(struct listing *l, int dir, const char *name)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
		return;
	/* A temporary file, left by a process that was killed. */
	if (ends_with(name, TEMP_SUFFIX) &&
	    st.st_mtim.tv_sec + TEMP_OLD_S < (time_t)(clock_real_ns() / NSEC_PER_SEC))
		unlinkat(dir, name, 0);
	if (!(ends_with(name, ".sym") || ends_with(name, ".unw") || ends_with(name, ".ret")) ||
	    vec_grow((void **)&l->all, &l->cap, l->nr, sizeof(*l->all)))
		return;
	l->all[l->nr] = (struct cached){strdup(name), st.st_atim, (uint64_t)st.st_size};
	if (l->all[l->nr].name) {
		l->bytes += (uint64_t)st.st_size;
		l->nr++;
	}
}

void disk_cache__trim(int dir, uint64_t bound_bytes)
{
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
	struct listing l = {0};
	const struct dirent *e;

	if (!d) {
		if (copy >= 0)
			close(copy);
		return;
	}
	while ((e = readdir(d)))
		list_file(&l, dir, e->d_name);
	closedir(d);
	if (l.nr)
		qsort(l.all, l.nr, sizeof(*l.all), compare_used);
	for (size_t i = 0; i < l.nr; i++) {
		if (l.bytes > bound_bytes && !unlinkat(dir, l.all[i].name, 0))
			l.bytes -= l.all[i].bytes;
		free(l.all[i].name);
	}
	free(l.all);
}
