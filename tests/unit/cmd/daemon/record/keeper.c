// SPDX-License-Identifier: BSD-2-Clause
/* What a keeper keeps of its folder. Its recorder ends as soon as it is begun. */
#include "unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/daemon/daemon.h"

#define SECOND 1000000000ull
#define PIECE (256 << 10)
#define ROOM (4ull * PIECE) /* for four captures, which take a little less each */

static struct loop *loop;
static char folder[] = "/tmp/kprof-unit-keeper-XXXXXX";
static uint64_t now;
static int made;

/* More captures, each newer than those before. */
static void make(int nr)
{
	char path[128];
	int fd;

	while (nr--) {
		snprintf(path, sizeof(path), "%s/%013d-1-1.kprof", folder, ++made);
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		CHECK(fd >= 0 && !posix_fallocate(fd, 0, PIECE - (16 << 10)));
		close(fd);
	}
}

/* Whether it has these and those after it, once the keeper has looked at the folder. */
static bool has_from(struct keeper *k, int first)
{
	char **names;
	size_t nr;
	bool same;

	now += 60 * SECOND;
	keeper__tend(k, now);
	CHECK(!folder_list(folder, &names, &nr));
	same = (int)nr == made - first + 1 && strtol(names[0], NULL, 10) == first;
	folder_list_free(names, nr);
	return same;
}

static struct keeper *begin(const struct keeper_opts *limits)
{
	struct keeper_opts opts = *limits;
	struct keeper *k;

	opts.loop = loop;
	opts.name = "nothing";
	snprintf(opts.folder, sizeof(opts.folder), "%s", folder);
	CHECK(!keeper__new(&opts, &k));
	while (children__nr()) {
		siginfo_t info;

		CHECK(!waitid(P_ALL, 0, &info, WEXITED | WNOWAIT));
		children__reap();
	}
	keeper__stop(k);
	return k;
}

/* While a dump is made, what it needs is left alone; but not without any bound. */
static void held_for_a_dump(void)
{
	const struct keeper_opts limits = {.keep_bytes = ROOM};
	struct keeper *k = begin(&limits);

	make(6);
	keeper__hold(k, true);
	CHECK(has_from(k, 1));
	make(6);
	CHECK(has_from(k, 5));
	keeper__hold(k, false);
	CHECK(has_from(k, 9));
	keeper__free(k);
}

static void end_at_once(void)
{
	_exit(0);
}

static void set_up(void)
{
	loop = loop__new();
	CHECK(loop && mkdtemp(folder));
	now = now_ns(CLOCK_MONOTONIC);
	CHECK(!pthread_atfork(NULL, NULL, end_at_once));
}

static void clean_up(void)
{
	struct folder_sums sums;

	folder_trim(folder, 0, 0, 0, NULL, &sums);
	CHECK(!rmdir(folder));
}

UNIT_MAIN(TEST(set_up), TEST(held_for_a_dump), TEST(clean_up))
