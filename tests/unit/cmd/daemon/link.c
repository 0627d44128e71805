// SPDX-License-Identifier: BSD-2-Clause
/* What a process that the daemon has begun says of its failure. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cjson/cJSON.h>
#include "cmd/daemon/daemon.h"
#include "cmd/daemon/show/serve.h"
#include "kprof.h"

/* The error in the next message; the caller frees it. */
static char *error_in(int fd)
{
	bool closed = false;
	cJSON *m = link_take(fd, 10000, &closed);
	const char *error = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(m, "error"));
	char *copy = error ? strdup(error) : NULL;

	CHECK_STR(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(m, "state")), "failed");
	cJSON_Delete(m);
	return copy;
}

static void the_librarys_cause(void)
{
	struct kprof_capture *c = NULL;
	int ends[2], err;
	char *error;

	CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	err = kprof_capture_open("/nonexistent/a.kprof", &c);
	CHECK(err < 0);
	link_fail(ends[0]);
	error = error_in(ends[1]);
	CHECK(error && strstr(error, "/nonexistent/a.kprof"));
	free(error);
	close(ends[0]);
	close(ends[1]);
}

/* A dump for which other things would have to go is not begun. */
static void a_dump_without_room(void)
{
	char folder[] = "/tmp/kprof-unit-link-XXXXXX", chunk[64], made[64];
	struct demand_job job = {.dump_folder = folder, .path = made, .min_free = UINT64_MAX / 2};
	bool closed = false;
	int ends[2], fd, status;
	cJSON *m;
	char *error;
	pid_t pid;

	CHECK(mkdtemp(folder));
	snprintf(chunk, sizeof(chunk), "%s/0000000000001-1-1.kprof", folder);
	snprintf(made, sizeof(made), "%s/made.kprof", folder);
	fd = open(chunk, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && !close(fd));
	CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	pid = fork();
	if (!pid)
		_exit(dump_run(ends[0], &job) != EXIT_FAILED);
	m = link_take(ends[1], 10000, &closed);
	CHECK_STR(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(m, "state")), "preparing");
	cJSON_Delete(m);
	error = error_in(ends[1]);
	CHECK(error && strstr(error, "no room for a dump") && strstr(error, "min-free"));
	free(error);
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	close(ends[0]);
	close(ends[1]);
	CHECK(access(made, F_OK) && !unlink(chunk) && !rmdir(folder));
}

/* A capture that was removed before it was looked at: the library was never asked. */
static void what_the_library_was_not_asked(void)
{
	struct count_job job = {.path = "/nonexistent/a.kprof", .folder = "/nonexistent"};
	int ends[2], status;
	char *error;
	pid_t pid;

	CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	pid = fork(); /* it lowers its priority, and dies with its parent */
	if (!pid)
		_exit(count_run(ends[0], &job) != EXIT_FAILED);
	error = error_in(ends[1]);
	CHECK_STR(error, "No such file or directory");
	free(error);
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	close(ends[0]);
	close(ends[1]);
}

UNIT_MAIN(TEST(the_librarys_cause), TEST(a_dump_without_room), TEST(what_the_library_was_not_asked))
