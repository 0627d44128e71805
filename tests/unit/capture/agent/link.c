// SPDX-License-Identifier: BSD-2-Clause
/*
 * An agent that invents threads. The judge counts the files that this program opens, and the memory
 * that it has (mallinfo2).
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/agent/impl.h"
#include "unit.h"

#define INVENTED 1000000
#define LEAST 5000000 /* above any thread id (PID_MAX_LIMIT) */

static unsigned long nr_opened;

/* In place of the C library's: counts. */
int open(const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	nr_opened++;
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static struct agents agents;
static struct agent_link link_of_it;

static struct thread *add(void *ctx, struct target *t, uint64_t pid_tgid, uint64_t time_ns)
{
	return threads__add(agents.opts.threads, t, pid_tgid);
}

static void begin(uint32_t ns_pid)
{
	struct target *t;

	agents = (struct agents){.opts = {.thread = add}};
	CHECK_EQ(targets__new(&agents.opts.targets), 0);
	CHECK_EQ(threads__new(&agents.opts.threads), 0);
	t = targets__add(agents.opts.targets, (uint32_t)getpid());
	t->ns_pid = ns_pid;
	link_of_it = (struct agent_link){.agents = &agents, .target = t};
}

static void finish(void)
{
	map64__free(&link_of_it.tids);
	threads__free(agents.opts.threads);
	targets__free(agents.opts.targets);
}

static void invent(void)
{
	uint32_t index = 0;
	size_t before;

	nr_opened = 0;
	before = mallinfo2().uordblks;
	for (uint32_t i = 0; i < INVENTED; i++)
		CHECK_EQ(agent__find_thread(&link_of_it, LEAST + i, 1, &index), -ESRCH);
	CHECK(nr_opened <= 2 * BUDGET_FREE);
	CHECK(mallinfo2().uordblks < before + (1 << 20));
	CHECK_EQ(threads__nr_ever(agents.opts.threads), 0);
}

static void threads_that_are_not(void)
{
	uint32_t index = 7;

	begin((uint32_t)getpid());
	invent();
	finish();
	begin((uint32_t)getpid());
	CHECK_EQ(agent__find_thread(&link_of_it, (uint32_t)getpid(), 1, &index), 0);
	CHECK_EQ(index, 0);
	finish();
}

static void threads_that_are_not_in_a_namespace(void)
{
	begin(1);
	invent();
	finish();
}

UNIT_MAIN(TEST(threads_that_are_not), TEST(threads_that_are_not_in_a_namespace))
