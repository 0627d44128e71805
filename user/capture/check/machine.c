// SPDX-License-Identifier: BSD-2-Clause
/* kprof_check_machine(): reports the machine's features as lines that people read. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "capture/check/check.h"
#include "capture/features/features.h"
#include "capture/sample/sample.h"
#include "kprof.h"
#include "util/error.h"

struct report {
	kprof_check_fn fn;
	void *ctx;
	int stopped; /* what fn returned */
};

static void say(struct report *r, enum kprof_check_state state, const char *name,
		const char *detail, const char *hint)
{
	struct kprof_check_line line = {state, name, detail, hint};

	if (!r->stopped)
		r->stopped = r->fn(r->ctx, &line);
}

static void say_cap(struct report *r, bool there, const char *name, const char *what_for)
{
	say(r, there ? KPROF_CHECK_OK : KPROF_CHECK_FATAL, name, what_for,
	    there       ? NULL
	    : geteuid() ? "run it with sudo"
			: "give the container this capability (--cap-add)");
}

static void check_rights(struct report *r, const struct features *f)
{
	say_cap(r, f->cap_bpf, "CAP_BPF", "to load BPF programs");
	say_cap(r, f->cap_perfmon, "CAP_PERFMON", "to place probes");
	say_cap(r, f->cap_sys_ptrace, "CAP_SYS_PTRACE",
		"to see the libraries of other users' processes");
	say(r, f->map_files ? KPROF_CHECK_OK : KPROF_CHECK_MISSING, "map_files",
	    f->map_files
		    ? "mapped files open though they have no name any more"
		    : "libraries that were deleted or replaced since they were loaded cannot be read",
	    f->map_files ? NULL
			 : "needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE: run it with sudo");
}

/* Reports a feature that was tried: ok, or why it cannot be used. */
static void say_tried(struct report *r, const char *name, int err, enum kprof_check_state otherwise,
		      const char *detail, const char *hint)
{
	char text[256];

	if (!err) {
		say(r, KPROF_CHECK_OK, name, detail, NULL);
		return;
	}
	err = err < 0 ? -err : err;
	snprintf(text, sizeof(text), "%s", strerror(err));
	if (err == EPERM || err == EACCES)
		hint = geteuid() ? "run it with sudo"
				 : "lockdown, a security module or a container forbids it";
	say(r, otherwise, name, text, hint);
}

static void check_probes(struct report *r, const struct features *f)
{
	int multi = f->uprobe_multi ? features_try_uprobe_multi()
				    : -(f->err_multi ? f->err_multi : f->err_prog);
	int single = f->prog_load ? features_try_single_uprobe() : -f->err_prog;

	say_tried(
		r, "uprobe_multi", multi, single ? KPROF_CHECK_FATAL : KPROF_CHECK_MISSING,
		"a function of kprof was probed",
		single ? "needs Linux 6.6 or newer, or single uprobes"
		       : "kprof places single uprobes instead: slower to attach, so fewer by default; "
			 "Linux 6.6 and newer have it");
	say_tried(r, "single uprobes", single, multi ? KPROF_CHECK_FATAL : KPROF_CHECK_NOTE,
		  "a function of kprof was probed",
		  multi ? "needs a kernel with CONFIG_UPROBE_EVENTS and CONFIG_PERF_EVENTS"
			: "not needed where uprobe_multi works");
}

static void check_kernel(struct report *r, const struct features *f)
{
	char text[64];

	say(r, f->btf ? KPROF_CHECK_OK : KPROF_CHECK_FATAL, "BTF",
	    f->btf ? "/sys/kernel/btf/vmlinux" : "no readable /sys/kernel/btf/vmlinux",
	    f->btf ? NULL : "needs a kernel with CONFIG_DEBUG_INFO_BTF, as distributions build it");
	say_tried(r, "BPF programs", f->err_prog, KPROF_CHECK_FATAL, "one was loaded",
		  "needs a kernel with CONFIG_BPF_SYSCALL and CONFIG_BPF_EVENTS");
	say_tried(r, "ring buffer", f->err_ring, KPROF_CHECK_FATAL, "one was made",
		  "needs Linux 5.8 or newer");
	check_probes(r, f);
	say_tried(r, "task tracing", f->prog_load ? f->err_tasks : f->err_prog, KPROF_CHECK_FATAL,
		  "a program was attached to sched_process_fork",
		  "needs raw tracepoints (CONFIG_BPF_EVENTS)");
	say_tried(r, "sampling", sampler_try(), KPROF_CHECK_MISSING, "a clock was opened",
		  "sample and --stacks need perf events (CONFIG_PERF_EVENTS)");
	say(r, f->initial_pidns ? KPROF_CHECK_OK : KPROF_CHECK_FATAL, "PID namespace",
	    f->initial_pidns ? "the machine's own"
			     : "one of a container: the kernel's numbers are others",
	    f->initial_pidns ? NULL : "run kprof on the host, or in a container with --pid=host");
	if (f->perf_event_paranoid == -2)
		return;
	snprintf(text, sizeof(text), "%d", f->perf_event_paranoid);
	say(r, KPROF_CHECK_NOTE, "kernel.perf_event_paranoid", text, NULL);
}

int kprof_check_machine(kprof_check_fn fn, void *ctx)
{
	struct report r = {.fn = fn, .ctx = ctx};
	struct utsname name;
	char kernel[256];
	const struct features *f;

	error_clear();
	f = features_get();
	if (!uname(&name)) {
		snprintf(kernel, sizeof(kernel), "%s %s %s", name.sysname, name.release,
			 name.machine);
		say(&r, KPROF_CHECK_NOTE, "kernel", kernel, NULL);
	}
	check_rights(&r, f);
	check_kernel(&r, f);
	if (!r.stopped)
		r.stopped = check_agent_machine(fn, ctx);
	error_clear();
	return r.stopped ? r.stopped : features_require_attach();
}
