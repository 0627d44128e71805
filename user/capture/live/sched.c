// SPDX-License-Identifier: BSD-2-Clause
/* How long a thread ran, and waited, by the kernel's own account. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "capture/live/impl.h"

#define SCHEDSTAT_BYTES 128

struct sched_times top_sched(pid_t pid, pid_t tid)
{
	struct sched_times out = {0};
	char path[64], text[SCHEDSTAT_BYTES];
	ssize_t n;
	int fd;

	if (tid)
		snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
	else
		snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return out;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return out;
	text[n] = '\0';
	out.known = sscanf(text, "%" SCNu64 " %" SCNu64, &out.run_ns, &out.wait_ns) == 2;
	return out;
}

static double share_of(uint64_t before, uint64_t now, uint64_t elapsed_ns)
{
	double share = now > before && elapsed_ns ? (double)(now - before) / (double)elapsed_ns : 0;

	return share > 1 ? 1 : share;
}

void top_shares(const struct sched_times *before, const struct sched_times *now,
		uint64_t elapsed_ns, double *runnable, double *blocked)
{
	double run;

	*runnable = *blocked = -1;
	if (!before->known || !now->known || !elapsed_ns)
		return;
	run = share_of(before->run_ns, now->run_ns, elapsed_ns);
	*runnable = share_of(before->wait_ns, now->wait_ns, elapsed_ns);
	*blocked = run + *runnable < 1 ? 1 - run - *runnable : 0;
}
