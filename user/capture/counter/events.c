// SPDX-License-Identifier: BSD-2-Clause
/* The perf events behind counters of CPUs. */
#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/counter/table.h"
#include "kprof/wire.h"

/*
 * Pinned: the event counts all the time, or not at all. Where the processor has fewer counters than
 * are asked for, others would be counted by turns, and a short call's number be a guess.
 */
int counter_open(const struct counter *c, int cpu)
{
	struct perf_event_attr attr = {
		.type = c->type,
		.size = sizeof(attr),
		.config = c->config,
		.pinned = 1,
		.exclude_user = c->exclude_user,
		.exclude_kernel = c->exclude_kernel,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	uint64_t value;

	if (fd < 0)
		return -errno;
	/* perf_event_open(2): the end of the file, if a pinned event got no counter */
	if (read(fd, &value, sizeof(value)))
		return fd;
	close(fd);
	return -ENOSPC;
}

int counter_try(const struct counter *c)
{
	int cpu = sched_getcpu(), fd;

	if (c->source != KPROF_COUNTER_EVENT)
		return 0;
	fd = counter_open(c, cpu < 0 ? 0 : cpu);
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}
