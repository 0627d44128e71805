// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a process can make kprof do by naming addresses that are nowhere. The judge counts what
 * leaves this program: files that it opens, and requests to the reader.
 */
#include "capture/target/target.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"
#include "util/util.h"

#define INVENTED 1000000

static unsigned long nr_sent;

/* In place of the C library's: counts. */
ssize_t send(int fd, const void *data, size_t bytes, int flags)
{
	nr_sent++;
	return syscall(SYS_sendto, fd, data, bytes, flags, NULL, 0);
}

static struct targets *targets;
static struct target *target;

static void begin(void)
{
	CHECK_EQ(targets__new(&targets), 0);
	target = targets__add(targets, (uint32_t)getpid());
	nr_sent = 0;
}

static void finish(void)
{
	targets__free(targets);
}

/* A loop over all that begins in the middle, also where the one to begin with is no more. */
static void goes_round(void)
{
	uint32_t order[8] = {0};
	struct target *first, *t;
	size_t nr = 0;

	CHECK_EQ(targets__new(&targets), 0);
	CHECK(!targets__from(targets, 0));
	for (uint32_t pid = 1; pid <= 4; pid++)
		CHECK(targets__add(targets, pid));
	first = targets__from(targets, 2);
	for (t = first; t && nr < ARRAY_SIZE(order); t = targets__round(targets, t, first))
		order[nr++] = t->pid;
	CHECK_EQ(nr, 4);
	CHECK(order[0] == 3 && order[1] == 4 && order[2] == 1 && order[3] == 2);
	targets__remove(targets, targets__find(targets, 3));
	CHECK_EQ(targets__from(targets, 2)->pid, 4);
	CHECK_EQ(targets__from(targets, 4)->pid, 1);
	finish();
}

static void invented_addresses_are_not_read(void)
{
	uint64_t word = 0;
	const uint64_t known = 0x1234567;

	begin();
	for (uint64_t i = 0; i < INVENTED; i++)
		CHECK(target__read(target, &word, sizeof(word), 16 * i % 4096) == -EFAULT);
	CHECK(nr_sent && nr_sent <= 2 * BUDGET_FREE);
	finish();
	begin(); /* of another process, or of one that mostly says what is true, all is read */
	for (uint64_t i = 0; i < 100; i++)
		CHECK(!target__read(target, &word, sizeof(word), (uintptr_t)&known));
	CHECK_EQ(word, known);
	CHECK_EQ(nr_sent, 100);
	finish();
}

static void true_addresses_pay_for_others(void)
{
	uint64_t word = 0;
	const uint64_t known = 0x1234567;
	unsigned int nr_read = 0;

	begin();
	for (uint64_t i = 0; i < 100 * BUDGET_SUCCESSES; i++)
		target__read(target, &word, sizeof(word), (uintptr_t)&known);
	for (uint64_t i = 0; i < 2 * BUDGET_FREE; i++)
		target__read(target, &word, sizeof(word), 16);
	nr_read = (unsigned int)nr_sent;
	CHECK_EQ(nr_read, 100 * BUDGET_SUCCESSES + BUDGET_FREE + 100);
	finish();
}

static void strings_too(void)
{
	char text[16] = "";

	begin();
	CHECK_EQ(target__read_string(target, (uintptr_t) "kprof", text, sizeof(text)), 0);
	CHECK_STR(text, "kprof");
	for (int i = 0; i < INVENTED; i++)
		CHECK_EQ(target__read_string(target, 16, text, sizeof(text)), -EFAULT);
	CHECK(nr_sent <= 2 * BUDGET_FREE);
	finish();
}

static void mappings_are_not_read_for_invented_addresses(void)
{
	int here;

	begin();
	for (uint64_t i = 0; i < INVENTED; i++) {
		targets__at(targets, UINT64_MAX); /* a record newer than the mappings */
		CHECK(!targets__map(targets, target, 16 * i % 4096));
	}
	CHECK(nr_sent && nr_sent <= BUDGET_FREE);
	CHECK(targets__map(targets, target, (uintptr_t)&here));
	finish();
}

static void *end_with_the_pipe(void *fd)
{
	char byte;

	_exit(read(*(int *)fd, &byte, 1) != 0);
}

/* Of a process whose first thread has ended nothing can be read, whether others live or not. */
static void first_thread_ends(void)
{
	int fds[2];
	pid_t child;

	CHECK_EQ(pipe(fds), 0);
	child = fork();
	if (!child) {
		pthread_t thread;

		close(fds[1]);
		pthread_create(&thread, NULL, end_with_the_pipe, fds);
		pthread_exit(NULL);
	}
	CHECK_EQ(targets__new(&targets), 0);
	target = targets__add(targets, (uint32_t)getpid());
	CHECK(!target__leader_ended(target));
	target = targets__add(targets, (uint32_t)child);
	while (!target__leader_ended(target))
		usleep(1000);
	CHECK(target__read_maps(target)); /* it is there, but kprof sees nothing of it */
	CHECK(!target__has_ended(target) && !target__loses_memory(target));
	close(fds[1]);
	CHECK_EQ(waitpid(child, NULL, 0), child);
	CHECK(target__leader_ended(target) && target__has_ended(target));
	close(fds[0]);
	finish();
}

/* With more of them, a loop over all has its turn less often; with few, nearly each time. */
static void takes_turns(void)
{
	enum { MANY = 2000 };
	struct targets *ts;
	uint64_t next_ns = 0;

	CHECK_EQ(targets__new(&ts), 0);
	CHECK(targets__turn(ts, &next_ns, 5));
	CHECK(targets__turn(ts, &next_ns, 5));
	CHECK(targets__add(ts, 1));
	CHECK(targets__turn(ts, &next_ns, NSEC_PER_SEC));
	CHECK(targets__turn(ts, &next_ns, NSEC_PER_SEC + NSEC_PER_MSEC));
	for (uint32_t pid = 2; pid <= MANY; pid++)
		CHECK(targets__add(ts, pid));
	CHECK(targets__turn(ts, &next_ns, 2 * NSEC_PER_SEC));
	CHECK(!targets__turn(ts, &next_ns, 2 * NSEC_PER_SEC + 199 * NSEC_PER_MSEC));
	CHECK(targets__turn(ts, &next_ns, 2 * NSEC_PER_SEC + 200 * NSEC_PER_MSEC));
	targets__free(ts);
}

UNIT_MAIN(TEST(goes_round), TEST(takes_turns), TEST(invented_addresses_are_not_read),
	  TEST(first_thread_ends), TEST(true_addresses_pay_for_others), TEST(strings_too),
	  TEST(mappings_are_not_read_for_invented_addresses))
