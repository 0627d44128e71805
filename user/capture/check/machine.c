// SPDX-License-Identifier: BSD-2-Clause
/* kprof_check_machine(): reports the machine's features as lines that people read. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "capture/check/check.h"
#include "capture/counter/table.h"
#include "capture/features/features.h"
#include "capture/sample/sample.h"
#include "kprof.h"
#include "util/error.h"

static void say_cap(struct check *c, bool there, const char *name, const char *what_for)
{
	check_say(c, there ? KPROF_CHECK_OK : KPROF_CHECK_FATAL, name,
		  there       ? NULL
		  : geteuid() ? "run it with sudo"
			      : "give the container this capability (--cap-add)",
		  "%s", what_for);
}

static void check_rights(struct check *c, const struct features *f)
{
	say_cap(c, f->cap_bpf, "CAP_BPF", "to load BPF programs");
	say_cap(c, f->cap_perfmon, "CAP_PERFMON", "to place probes");
	say_cap(c, f->cap_sys_ptrace, "CAP_SYS_PTRACE",
		"to see the libraries of other users' processes");
	if (f->map_files)
		check_say(c, KPROF_CHECK_OK, "map_files", NULL,
			  "mapped files open though they have no name any more");
	else
		check_say(
			c, KPROF_CHECK_MISSING, "map_files",
			"needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE: run it with sudo",
			"libraries that were deleted or replaced since they were loaded cannot be read");
}

/* Reports a feature that was tried: ok, or why it cannot be used. */
static void say_tried(struct check *c, const char *name, int err, enum kprof_check_state otherwise,
		      const char *detail, const char *hint)
{
	err = abs(err);
	if (err == EPERM || err == EACCES)
		hint = geteuid() ? "run it with sudo"
				 : "lockdown, a security module or a container forbids it";
	if (err)
		check_say(c, otherwise, name, hint, "%s", strerror(err));
	else
		check_say(c, KPROF_CHECK_OK, name, NULL, "%s", detail);
}

static void check_probes(struct check *c, const struct features *f)
{
	int multi = f->uprobe_multi ? features_try_uprobe_multi()
				    : -(f->err_multi ? f->err_multi : f->err_prog);
	int single = f->err_prog ? -f->err_prog : features_try_single_uprobe();

	say_tried(
		c, "uprobe_multi", multi, single ? KPROF_CHECK_FATAL : KPROF_CHECK_MISSING,
		"a function of kprof was probed",
		single ? "needs Linux 6.6 or newer, or single uprobes"
		       : "kprof places single uprobes instead: slower to attach, so fewer by default; "
			 "Linux 6.6 and newer have it");
	say_tried(c, "single uprobes", single, multi ? KPROF_CHECK_FATAL : KPROF_CHECK_NOTE,
		  "a function of kprof was probed",
		  multi ? "needs a kernel with CONFIG_UPROBE_EVENTS and CONFIG_PERF_EVENTS"
			: "not needed where uprobe_multi works");
}

static void check_kernel(struct check *c, const struct features *f)
{
	if (f->btf)
		check_say(c, KPROF_CHECK_OK, "BTF", NULL, "/sys/kernel/btf/vmlinux");
	else
		check_say(c, KPROF_CHECK_FATAL, "BTF",
			  "needs a kernel with CONFIG_DEBUG_INFO_BTF, as distributions build it",
			  "no readable /sys/kernel/btf/vmlinux");
	say_tried(c, "BPF programs", f->err_prog, KPROF_CHECK_FATAL, "one was loaded",
		  "needs a kernel with CONFIG_BPF_SYSCALL and CONFIG_BPF_EVENTS");
	say_tried(c, "ring buffer", f->err_ring, KPROF_CHECK_FATAL, "one was made",
		  "needs Linux 5.8 or newer");
	check_probes(c, f);
	say_tried(c, "task tracing", f->err_prog ? f->err_prog : f->err_tasks, KPROF_CHECK_FATAL,
		  "a program was attached to sched_process_fork",
		  "needs raw tracepoints (CONFIG_BPF_EVENTS)");
	say_tried(c, "sampling", sampler_try(), KPROF_CHECK_MISSING, "a clock was opened",
		  "sample and --stacks need perf events (CONFIG_PERF_EVENTS)");
	if (f->initial_pidns)
		check_say(c, KPROF_CHECK_OK, "PID namespace", NULL, "the machine's own");
	else
		check_say(c, KPROF_CHECK_FATAL, "PID namespace",
			  "run kprof on the host, or in a container with --pid=host",
			  "one of a container: the kernel's numbers are others");
	if (f->perf_event_paranoid != -2)
		check_say(c, KPROF_CHECK_NOTE, "kernel.perf_event_paranoid", NULL, "%d",
			  f->perf_event_paranoid);
}

/* Which counters there are: of the kernel's, and of the processor's. */
static void check_counters(struct check *c)
{
	char there[1024] = "", lacking[1024] = "";
	struct counter counter;
	const char *what;

	for (size_t i = 0; counter_at(i, &counter, &what); i++) {
		char *to = counter_try(&counter) ? lacking : there;
		size_t used = strlen(to);

		snprintf(to + used, sizeof(there) - used, "%s%s", used ? ", " : "", counter.name);
	}
	check_say(c, KPROF_CHECK_OK, "counters", NULL, "%s", there);
	if (*lacking)
		check_say(c, KPROF_CHECK_NOTE, "no counters", NULL, "%s", lacking);
}

int kprof_check_machine(kprof_check_fn fn, void *ctx)
{
	struct check c = {.fn = fn, .ctx = ctx};
	const struct features *f = features_get();
	struct utsname name;

	error_clear();
	uname(&name);
	check_say(&c, KPROF_CHECK_NOTE, "kernel", NULL, "%s %s %s", name.sysname, name.release,
		  name.machine);
	check_rights(&c, f);
	check_kernel(&c, f);
	check_counters(&c);
	check_agent_machine(&c);
	error_clear();
	return c.stopped ? c.stopped : features_require(true);
}
