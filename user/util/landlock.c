// SPDX-License-Identifier: BSD-2-Clause
/*
 * Folders beyond which a process cannot reach: landlock(7), Linux 5.13 and later. It holds for
 * files that are opened from then on, also by a process that is root.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/sandbox.h"

#define READS (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define WRITES                                                         \
	(LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG | \
	 LANDLOCK_ACCESS_FS_REMOVE_FILE)
/* All that its first version knows: what is not named in a rule is refused. */
#define ALL ((LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1)

static int add_folder(int rules, const char *path, uint64_t may)
{
	struct landlock_path_beneath_attr below = {.allowed_access = may};
	int err;

	below.parent_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (below.parent_fd < 0)
		return -errno;
	err = syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &below, 0) ? -errno
											   : 0;
	close(below.parent_fd);
	return err;
}

int sandbox_only_folders(const char *from, const char *into)
{
	struct landlock_ruleset_attr all = {.handled_access_fs = ALL};
	int err, rules = (int)syscall(SYS_landlock_create_ruleset, &all, sizeof(all), 0);

	if (rules < 0)
		return -errno;
	err = add_folder(rules, from, READS);
	if (!err)
		err = add_folder(rules, into, READS | WRITES);
	if (!err && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		     syscall(SYS_landlock_restrict_self, rules, 0)))
		err = -errno;
	close(rules);
	return err;
}
