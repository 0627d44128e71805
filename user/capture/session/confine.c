// SPDX-License-Identifier: BSD-2-Clause
/* What a process that records gives up once its BPF programs are loaded (docs/security.md). */
#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/session/session.h"
#include "util/error.h"
#include "util/foreign.h"
#include "util/sandbox.h"

#define BIT(cap) (1ull << (cap))

/* What recording goes on needing, and what for. */
#define NEEDED                                                                               \
	(BIT(CAP_BPF) | BIT(CAP_PERFMON) | /* probes of processes and libraries that come */ \
	 BIT(CAP_SYS_PTRACE) |             /* /proc/PID, memory, the agent */                \
	 BIT(CAP_CHECKPOINT_RESTORE) |     /* /proc/PID/map_files */                         \
	 BIT(CAP_DAC_READ_SEARCH) |        /* files that only targets may read */            \
	 BIT(CAP_DAC_OVERRIDE) | BIT(CAP_CHOWN) | /* outputs in others' directories */       \
	 BIT(CAP_KILL) |                          /* the command of kprof run, helpers */    \
	 BIT(CAP_SETUID) | BIT(CAP_SETGID) |      /* helpers, which are nobody */            \
	 BIT(CAP_SYS_NICE) |                      /* placing and removing probes, hastily */ \
	 BIT(CAP_SYSLOG))                         /* kernel functions */

/*
 * Containers may give the old capability instead of the new ones, which are parts of it. And single
 * uprobes need the old one on every kernel (perf_uprobe_event_init(), kernel/events/core.c).
 */
static uint64_t needed(bool single)
{
	const uint64_t parts = BIT(CAP_BPF) | BIT(CAP_PERFMON) | BIT(CAP_CHECKPOINT_RESTORE);

	if (!single && (sandbox_capabilities() & parts) == parts)
		return NEEDED;
	return NEEDED | BIT(CAP_SYS_ADMIN);
}

/* What processes need besides until they are confined themselves, and to confine themselves. */
#define BEGINS                                                                \
	(NEEDED | BIT(CAP_SYS_ADMIN) | BIT(CAP_SETPCAP) |                     \
	 BIT(CAP_SYS_RESOURCE) |     /* memory for maps, before Linux 5.11 */ \
	 BIT(CAP_NET_BIND_SERVICE) | /* a port below 1024 */                  \
	 BIT(CAP_LEASE))             /* whether anybody still writes to an owner's file */

int kprof_keep_to_recording(void)
{
	int err, denied;

	error_clear();
	foreign_finish();
	err = sandbox_keep(BEGINS);
	denied = sandbox_deny();
	if (err)
		return error_set(err, NULL, "cannot give up capabilities: %s", strerror(-err));
	if (denied)
		return error_set(denied, NULL,
				 "this kernel filters no system calls (seccomp): kprof keeps them "
				 "all");
	return 0;
}

int session__confine(bool single)
{
	pid_t *tids = NULL;
	size_t nr = 0;
	int err = proc_threads(getpid(), &tids, &nr);

	free(tids);
	if (err)
		return err;
	if (nr != 1)
		return error_set_usage(-EBUSY, "do without .confine, or start threads later",
				       "a process with %zu threads cannot be confined", nr);
	foreign_finish(); /* the reader, too, is to have no more than this process */
	err = sandbox_keep(needed(single));
	if (err)
		return error_set(err, NULL, "cannot give up capabilities: %s", strerror(-err));
	if (sandbox_deny())
		log_warn(NULL,
			 "this kernel filters no system calls (seccomp): kprof keeps them all");
	foreign_prepare();
	return 0;
}
