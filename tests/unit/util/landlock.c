// SPDX-License-Identifier: BSD-2-Clause
/* kprof_keep_to_folders(): what a process cannot do any more afterwards, and what it can. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kprof.h"
#include "store_fixture.h"
#include "util/sandbox.h"

static char base[] = "/tmp/kprof-landlock.XXXXXX";

static const char *in(const char *name)
{
	static char path[4][64];
	static size_t next;
	char *to = path[next++ % 4];

	snprintf(to, sizeof(path[0]), "%s/%s", base, name);
	return to;
}

static int put(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600), err = errno;

	if (fd >= 0)
		close(fd);
	return fd >= 0 ? 0 : -err;
}

/* Runs it in a process of its own, which has not failed if it returns true. */
static bool in_child(bool (*run)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(run() ? 0 : 1);
	return pid > 0 && waitpid(pid, &status, 0) == pid && !status;
}

#define EXPECT(what)                                            \
	do {                                                    \
		if (!(what)) {                                  \
			fprintf(stderr, "not so: %s\n", #what); \
			return false;                           \
		}                                               \
	} while (0)

static bool kept(void)
{
	char *const argv[] = {(char *)"true", NULL};

	EXPECT(!kprof_keep_to_folders(in("from"), in("into"), false));
	EXPECT(!sandbox_capabilities());
	EXPECT(open(in("from/a"), O_RDONLY | O_CLOEXEC) >= 0);
	EXPECT(!put(in("into/b")) && !rename(in("into/b"), in("into/c")) && !unlink(in("into/c")));
	EXPECT(put(in("from/a")) == -EACCES && put(in("from/new")) == -EACCES);
	EXPECT(unlink(in("from/a")) && errno == EACCES);
	EXPECT(put(in("else")) == -EACCES);
	EXPECT(open("/etc/passwd", O_RDONLY | O_CLOEXEC) < 0 && errno == EACCES);
	EXPECT(open("/proc/self/mem", O_RDWR | O_CLOEXEC) < 0);
	EXPECT(symlink("/etc/passwd", in("into/link")) && errno == EACCES);
	EXPECT(execv("/bin/true", argv) && (errno == EPERM || errno == EACCES));
	EXPECT(chown(in("into"), 1, 1) && errno == EPERM);
	return true;
}

static bool gives(void)
{
	EXPECT(!kprof_keep_to_folders(in("from"), in("into"), true));
	EXPECT(!put(in("into/given")) && !chown(in("into/given"), 12345, 12345));
	EXPECT(put(in("else")) == -EACCES);
	return true;
}

static bool not_there(void)
{
	EXPECT(kprof_keep_to_folders(in("nowhere"), in("into"), true) == -ENOENT);
	EXPECT(*kprof_error_cause());
	return true;
}

static void only_what_was_named_can_be_reached(void)
{
	CHECK(in_child(kept));
}

static void a_file_can_be_given_away_if_that_is_needed(void)
{
	CHECK(in_child(gives));
}

static void a_folder_that_is_not_there_is_an_error(void)
{
	CHECK(in_child(not_there));
}

static void make_folders(void)
{
	CHECK(mkdtemp(base) && !mkdir(in("from"), 0700) && !mkdir(in("into"), 0700));
	CHECK_EQ(put(in("from/a")), 0);
}

static void remove_folders(void)
{
	unlink(in("into/given"));
	unlink(in("from/a"));
	rmdir(in("from"));
	rmdir(in("into"));
	CHECK_EQ(rmdir(base), 0);
}

UNIT_MAIN({"(set-up)", make_folders}, TEST(only_what_was_named_can_be_reached),
	  TEST(a_file_can_be_given_away_if_that_is_needed),
	  TEST(a_folder_that_is_not_there_is_an_error), {"(clean-up)", remove_folders})
