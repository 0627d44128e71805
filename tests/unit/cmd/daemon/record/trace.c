// SPDX-License-Identifier: BSD-2-Clause
/* What a user leaves in a folder that was its own while its trace was made. */
#include <dirent.h>

static DIR *open_folder(int fd);
#define trace_write unit_trace_write
#define fdopendir open_folder
#include "cmd/daemon/record/trace.c"
#undef trace_write
#undef fdopendir

#include "unit.h"

#define USER 20001

static char folder[] = "/tmp/kprof-unit-trace-XXXXXX";

/* From the first look on, nobody else can put anything there. */
static DIR *open_folder(int fd)
{
	struct stat st = {0};

	CHECK(!fstat(fd, &st) && !st.st_uid && !st.st_gid);
	CHECK_EQ(st.st_mode & 0777, 0700);
	return fdopendir(fd);
}

static void make(const char *name, bool is_folder)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	CHECK(is_folder ? !mkdir(path, 0700) : !mknod(path, S_IFREG | 0600, 0));
	CHECK(geteuid() || !chown(path, USER, USER));
	CHECK(!is_folder || !chmod(path, 0777));
}

static void nothing_stays(void)
{
	static const char *const folders[] = {"theirs", "theirs/a", "theirs/a/b", "outside"};
	static const char *const files[] = {"theirs/x", "theirs/a/b/y", "outside/z"};
	char path[128], to[128];

	CHECK(mkdtemp(folder));
	for (size_t i = 0; i < 4; i++)
		make(folders[i], true);
	for (size_t i = 0; i < 3; i++)
		make(files[i], false);
	snprintf(to, sizeof(to), "%s/outside", folder);
	snprintf(path, sizeof(path), "%s/theirs/a/link", folder);
	CHECK(!symlink(to, path));
	snprintf(path, sizeof(path), "%s/theirs/a/pipe", folder);
	CHECK(!mkfifo(path, 0600));
	snprintf(path, sizeof(path), "%s/theirs", folder);
	clear(AT_FDCWD, path, MOST_DEEP);
	CHECK(access(path, F_OK) && errno == ENOENT);
	snprintf(path, sizeof(path), "%s/outside/z", folder);
	CHECK(!access(path, F_OK)); /* no link is followed */
	clear(AT_FDCWD, folder, MOST_DEEP);
	CHECK(access(folder, F_OK));
}

UNIT_MAIN(TEST(nothing_stays))
