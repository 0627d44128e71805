// SPDX-License-Identifier: BSD-2-Clause
/* What a recording says of itself when it begins. */
#include "capture/session/session.h"
#include "util/error.h"

static void warn_without_probes(const struct kprof_session *s, const struct target *t)
{
	char names[256];

	plan_library_names(names, sizeof(names));
	if (s->alive)
		log_warn(
			"`kprof list` shows the processes that have one; if it is loaded later, that is seen",
			"process %u has no allocator of PyTorch: nothing that it allocates is seen",
			t->pid);
	else if (s->opts.only)
		log_warn(
			"a library that is loaded later is seen; without --only all there is is recorded",
			"process %u has none of the annotations that were asked for: only its threads are recorded",
			t->pid);
	else if (probe_set__reads_frameworks(t))
		log_warn(kprof_error_hint(), "%s: only the threads of the process are recorded",
			 kprof_error_cause());
	else if (probe_set__has_framework(s->probes, t))
		log_warn(
			"--ops, --exclude, --types and --activities choose; without them all there is is recorded",
			"process %u has nothing of what was asked for: only its threads are recorded",
			t->pid);
	else
		log_warn(
			"`kprof list` shows the processes that have one; a library that is loaded later is seen",
			"process %u maps no known framework (looked for %s): only its threads are recorded",
			t->pid, names);
}

/* Is there anything in the process that is seen? */
static bool sees(struct kprof_session *s, const struct target *t)
{
	return s->alive ? session_alive__sees(s) : probe_set__has_probes(s->probes, t);
}

void hints__without_probes(struct kprof_session *s)
{
	const struct probe_set_stats *stats = probe_set__stats(s->probes);
	struct target *t;

	for (t = targets__first(s->targets); t; t = t->hh.next)
		if (!s->opts.samples_only && !t->followed && t->maps && !sees(s, t) &&
		    (pid_t)t->pid != s->spawned.pid)
			warn_without_probes(s, t);
	if (s->single && stats->single_cut)
		log_warn(
			"choose which with --ops, or allow more with --max-probes: each takes time to remove",
			"%s: %zu of %zu probes are placed",
			s->opts.no_multi ? "single uprobes"
					 : "this kernel has no uprobe_multi (6.6 and later have)",
			probe_set__nr(s->probes), probe_set__nr(s->probes) + stats->single_cut);
}
