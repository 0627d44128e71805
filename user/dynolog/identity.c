// SPDX-License-Identifier: BSD-2-Clause
/*
 * Who a process is, as the kernel says it: what a datagram claims is only compared with this. A
 * number in its own PID namespace is the last one of its line NSpid; an ancestor that it can see
 * has one of as many numbers there.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "capture/process/process.h"
#include "dynolog/impl.h"

/* The number at this depth of a list of numbers, which the next line's key ends; 0: none. */
static pid_t number_at(const char *list, size_t depth)
{
	char *end;
	long n = 0;

	for (size_t i = 0; i <= depth; i++) {
		n = strtol(list, &end, 10);
		if (end == list)
			return 0;
		list = end;
	}
	return (pid_t)n;
}

static size_t depth_of(const char *list)
{
	size_t depth = 0;

	while (number_at(list, depth + 1))
		depth++;
	return depth;
}

static int read_status(pid_t pid, char **out)
{
	return proc_thread_read(pid, pid, "status", out) ? -ESRCH : 0;
}

/* Its parents, up to but without the first process of all. */
static void read_ancestors(struct entry *e, pid_t parent, size_t depth)
{
	while (parent > 1 && e->nr_pids < ENTRY_PIDS) {
		int32_t own;
		char *status;

		if (read_status(parent, &status))
			return;
		own = number_at(proc_status_value(status, "NSpid"), depth);
		e->pids[e->nr_pids] = parent;
		e->own[e->nr_pids++] = own > 1 ? own : 0;
		parent = (pid_t)strtol(proc_status_value(status, "PPid"), NULL, 10);
		free(status);
	}
}

int identity_read(pid_t pid, struct entry *out)
{
	struct proc_info info;
	const char *own;
	char *status;
	size_t depth;
	bool known;

	*out = (struct entry){.p.pid = pid};
	if (pid < 1 || proc_stat_read(pid, &info) || info.state == 'Z' || info.state == 'X' ||
	    read_status(pid, &status))
		return -ESRCH;
	own = proc_status_value(status, "NSpid");
	depth = depth_of(own);
	out->p.start_ticks = info.start_ticks;
	out->p.own_pid = *own ? number_at(own, depth) : pid; /* a kernel without PID namespaces */
	known = sscanf(proc_status_value(status, "Uid"), "%u", &out->p.uid) == 1 &&
		sscanf(proc_status_value(status, "Gid"), "%u", &out->p.gid) == 1 && out->p.own_pid;
	free(status);
	if (!known)
		return -ESRCH;
	out->pids[0] = pid;
	out->own[0] = out->p.own_pid;
	out->nr_pids = 1;
	read_ancestors(out, info.ppid, depth);
	return 0;
}

int64_t kprof_dynolog_job_id(pid_t pid)
{
	char *text = proc_environment(pid, "SLURM_JOB_ID"), *end;
	int64_t id = 0;

	if (text && *text >= '0' && *text <= '9') {
		errno = 0;
		id = strtoll(text, &end, 10);
		if (errno || *end)
			id = 0;
	}
	free(text);
	return id;
}
