// SPDX-License-Identifier: BSD-2-Clause
/*
 * Operators that agents observe (gpu/pytorch/): in which processes that can be done, and what is
 * not handed over yet.
 */
#include <errno.h>

#include "capture/agent/impl.h"
#include "util/error.h"
#include "util/util.h"

bool agent__can_observe(struct agents *a, struct agent_link *link, const struct proc_map *library)
{
	struct elffile *e = probe_set__elf(a->opts.probes, link->target, library);
	const char *name = proc_basename(library->path);

	for (size_t i = 0; e && catalog_frameworks[i]; i++)
		if (catalog_match(catalog_frameworks[i]->observer_library, name) &&
		    plan_observable(catalog_frameworks[i], e))
			return true;
	agent__not_observed(link, e ? "the way in which its PyTorch takes observers is not known"
				    : "its PyTorch's library can't be read");
	return false;
}

uint32_t agent__ask_layout(struct agents *a, struct agent_link *link)
{
	const uint32_t read = KPROF_AGENT_OPT_INPUTS | KPROF_AGENT_OPT_SEQUENCE;
	uint32_t options = a->record_options, known;
	struct kprof_agent_layout layout;

	if (options & KPROF_AGENT_OPT_WITHIN && link->modules & AGENT_PYTORCH &&
	    agent_memory__within(link->memory, a->opts.session->within))
		return 0; /* nor can the agent be asked */
	if (!(options & read) || !(link->modules & AGENT_PYTORCH))
		return options & ~read;
	known = probe_set__observer_layout(a->opts.probes, link->target, &layout);
	if (agent_memory__layout(link->memory, &layout))
		known = 0;
	if (options & read & ~known && !link->layout_said)
		log_warn(
			NULL,
			"process %u: no %s, as the layout of PyTorch's objects could not be learnt "
			"from its code",
			link->target->pid,
			options & KPROF_AGENT_OPT_INPUTS & ~known ? "shapes" : "sequence numbers");
	link->layout_said = true;
	return options & (~read | known);
}

bool agents__observes(const struct agents *a, const struct target *t)
{
	const struct agent_link *link = a->observe ? agents__link(a, t) : NULL;

	return link && link->modules & AGENT_PYTORCH &&
	       (link->step == LINK_ASKED || link->step == LINK_RECORDING);
}

int agents__salvage_thread(struct agents *a, const struct thread *th)
{
	struct agent_link *link = agents__link(a, th->target);
	struct kprof_agent_slot slot;
	int err = 0;

	if (!link || !(link->modules & AGENT_PYTORCH) || !link->memory || !link->records)
		return 0;
	for (uint32_t i = 0; i < KPROF_AGENT_SLOTS && !err; i++)
		if (!agent_memory__slot_head(link->memory, i, &slot) && slot.used &&
		    agent__host_tid(link, slot.owner) == (uint32_t)th->pid_tgid)
			err = agent__salvage_slot(link, i);
	return err;
}

void agents__unread(struct agents *a, const struct target *t,
		    void (*early)(void *ctx, uint32_t tid, uint64_t since_ns), void *ctx)
{
	struct agent_link *link = agents__link(a, t);
	uint64_t since_ns = UINT64_MAX;
	struct kprof_agent_slot slot;
	uint32_t owned = 0, tid;
	bool unknown = false;

	for (uint32_t i = 0; link && link->memory && i < KPROF_AGENT_SLOTS; i++) {
		if (agent_memory__slot_head(link->memory, i, &slot))
			continue;
		owned += slot.owner != 0;
		if (!slot.used)
			continue;
		tid = slot.owner ? agent__host_tid(link, slot.owner) : 0;
		if (slot.opened_ns < since_ns)
			since_ns = slot.opened_ns;
		if (tid)
			early(ctx, tid, slot.opened_ns);
		else
			unknown = true;
	}
	/* where there are more threads than slots, some share */
	if (since_ns != UINT64_MAX && (unknown || owned == KPROF_AGENT_SLOTS))
		early(ctx, 0, since_ns);
}
