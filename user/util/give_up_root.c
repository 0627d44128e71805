// SPDX-License-Identifier: BSD-2-Clause
/* kprof_give_up_root(), kprof_keep_to_folders() */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kprof.h"
#include "kprof/diff.h"
#include "util/error.h"
#include "util/foreign.h"
#include "util/sandbox.h"

#define NOBODY 65534
/* What is left to root: to read and write files of others, and to end what it has started. */
#define BIT(cap) (1ull << (cap))
#define FILES                                                                                \
	(BIT(CAP_DAC_OVERRIDE) | BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_CHOWN) | BIT(CAP_KILL) | \
	 BIT(CAP_SETUID) | BIT(CAP_SETGID))

struct user {
	uint32_t uid, gid;
};

/* What is to be read and written. */
struct files {
	const struct kprof_diff_set *sets[2]; /* captures; NULL: none */
	const char *output;                   /* NULL: none */
};

static char *directory_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? strndup(path, (size_t)(slash + 1 - path)) : strdup(".");
}

static bool may_access(const char *path, int how)
{
	return !faccessat(AT_FDCWD, path, how, AT_EACCESS);
}

/*
 * Whether the process, as it is now, may make a file of this name. In a directory like /tmp, nobody
 * but its owner replaces a file.
 */
static bool may_write(const char *path)
{
	struct stat dir, st;
	char *name = directory_of(path);
	bool may = name && may_access(name, W_OK | X_OK) && !stat(name, &dir);

	if (may && !lstat(path, &st)) {
		if (!S_ISREG(st.st_mode))
			may = may_access(path, W_OK);
		else if (dir.st_mode & S_ISVTX)
			may = st.st_uid == geteuid() || dir.st_uid == geteuid();
	}
	free(name);
	return may;
}

static bool may_all(const struct files *files)
{
	bool may = !files->output || may_write(files->output);

	for (size_t s = 0; s < 2; s++)
		for (size_t i = 0; may && files->sets[s] && i < files->sets[s]->nr; i++)
			may = may_access(files->sets[s]->paths[i], R_OK);
	return may;
}

/* Tries on a user, and becomes root again. */
static bool suits(const struct user *user, const struct files *files)
{
	bool may;

	may = !setegid(user->gid) && !seteuid(user->uid) && may_all(files);
	if (seteuid(0) || setegid(0))
		abort(); /* neither user nor root: nothing can be relied on */
	return may;
}

static bool become_other(const struct files *files, const struct user *users, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		if (!users[i].uid || users[i].uid == UINT32_MAX)
			continue;
		if (suits(&users[i], files))
			return sandbox_become(users[i].uid, users[i].gid) && geteuid() != 0;
	}
	return false;
}

int kprof_give_up_root_of(const struct kprof_diff_set *before, const struct kprof_diff_set *after,
			  const char *output, uint32_t uid, uint32_t gid, bool nobody)
{
	struct files files = {{before, after}, output};
	struct user users[3] = {{0, 0}, {uid, gid}, {nobody ? NOBODY : 0, NOBODY}};
	struct stat st;
	int err;

	error_clear();
	foreign_finish();
	if (geteuid() != 0)
		return 0;
	if (before->nr && !stat(before->paths[0], &st))
		users[0] = (struct user){st.st_uid, st.st_gid};
	if (output && !strcmp(output, "-"))
		files.output = NULL;
	if (setgroups(0, NULL) && errno != EPERM)
		return error_set(-errno, NULL, "cannot give up root's groups: %s", strerror(errno));
	err = sandbox_keep(become_other(&files, users, 3) ? 0 : FILES);
	if (err)
		return error_set(err, NULL, "cannot give up root's rights: %s", strerror(-err));
	sandbox_deny(); /* not every kernel has it, and nothing depends on it */
	return 0;
}

int kprof_keep_to_folders(const char *from, const char *into, bool gives)
{
	int err;

	error_clear();
	foreign_finish();
	if (geteuid() != 0)
		return 0;
	err = sandbox_only_folders(from, into);
	if (err && err != -ENOSYS && err != -EOPNOTSUPP)
		return error_set(err, NULL, "cannot keep to %s and %s: %s", from, into,
				 strerror(-err));
	if (setgroups(0, NULL) && errno != EPERM)
		return error_set(-errno, NULL, "cannot give up root's groups: %s", strerror(errno));
	err = sandbox_keep(gives ? BIT(CAP_CHOWN) : 0);
	if (err)
		return error_set(err, NULL, "cannot give up root's rights: %s", strerror(-err));
	sandbox_deny(); /* not every kernel has it, and nothing depends on it */
	return 0;
}

int kprof_give_up_root(const char *capture, const char *output, uint32_t uid, uint32_t gid,
		       bool nobody)
{
	const struct kprof_diff_set one = {&capture, 1};

	return kprof_give_up_root_of(&one, NULL, output, uid, gid, nobody);
}
