/* SPDX-License-Identifier: BSD-2-Clause */
/* A part of kprof.h: the processes that there are, and what the machine allows. */
#ifndef KPROF_MACHINE_H
#define KPROF_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kprof_process_info {
	pid_t pid;
	pid_t ppid;
	uid_t uid;
	uint32_t nr_threads;
	const char *comm;       /* kernel's short name */
	const char *cmdline;    /* arguments joined by blanks */
	const char *frameworks; /* "pytorch 2.15.0" …, comma-separated; "" none found */
	const char *runtimes;   /* "cuda 13", "opencl" …; "" none found */
	const char *python;     /* "3.11"; "" not a Python process */
	const char *container;  /* its id or name, by the cgroup; "" none */
	/* "NAMESPACE/POD/CONTAINER", where the node knows it, else the pod's UID; "" none */
	const char *pod;
	bool has_agent; /* kprof's agent is mapped */
};

/*
 * Calls fn for every process whose libraries can be read: those with a known framework or
 * runtime, or all of them. fn returns non-zero to stop; that value is returned.
 */
int kprof_list_processes(bool all, int (*fn)(void *ctx, const struct kprof_process_info *info),
			 void *ctx);

enum kprof_check_state { KPROF_CHECK_OK, KPROF_CHECK_MISSING, KPROF_CHECK_FATAL, KPROF_CHECK_NOTE };
struct kprof_check_line {
	enum kprof_check_state state; /* MISSING: kprof does without; FATAL: attach cannot work */
	const char *name;             /* "uprobe_multi" */
	const char *detail;           /* "attached to a test function" */
	const char *hint;             /* NULL or what to do */
};
typedef int (*kprof_check_fn)(void *ctx, const struct kprof_check_line *line);

/*
 * Checks what this machine allows, by trying each feature. 0: attach can work; -EPERM/-ENOTSUP: it
 * can not.
 */
int kprof_check_machine(kprof_check_fn fn, void *ctx);
/*
 * Reports what a session would do in this process: frameworks found, number of probes of each
 * catalog row by cost class, rows whose functions this build hides. Changes nothing in the
 * process. verbose: also reports the rows.
 */
int kprof_check_process(pid_t pid, bool verbose, kprof_check_fn fn, void *ctx);

/*
 * Which of all processes a session records: those that match an element of each list that is given
 * (nr > 0), and no element of those with exclude in their names. Globs as in fnmatch(3). The lists
 * stay the caller's, and must outlive the session.
 */
struct kprof_choice {
	const uint32_t *uids; /* effective user ids */
	size_t nr_uids;
	const char *const *cgroups; /* globs of the path, or of the container's or pod's id */
	size_t nr_cgroups;
	const char *const *comms; /* globs of the kernel's short name of the process */
	size_t nr_comms;
	const uint32_t *exclude_uids;
	size_t nr_exclude_uids;
	const char *const *exclude_cgroups;
	size_t nr_exclude_cgroups;
	const char *const *exclude_comms;
	size_t nr_exclude_comms;
	/*
	 * Of processes that were added, only these threads (at most 64), and none of their
	 * children; no agent is put into them. nr 0: all.
	 */
	const pid_t *tids;
	size_t nr_tids;
};

#ifdef __cplusplus
}
#endif

#endif
