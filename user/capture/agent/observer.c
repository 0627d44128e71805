// SPDX-License-Identifier: BSD-2-Clause
/*
 * Operators that agents observe (gpu/pytorch/): in which processes that can be done, and what is
 * not handed over yet.
 */
#include <errno.h>

#include "capture/agent/impl.h"
#include "symbol/x86/x86.h"
#include "util/error.h"
#include "util/util.h"

/* at::RecordFunctionCallback: two pointers, a double, ten scopes and three flags. */
#define CALLBACK_BYTES 40

void agent__not_observed(struct agent_link *link, const char *why)
{
	if (!link->operators_said)
		log_warn("without --observer, they are seen by probes",
			 "no operators of process %u: %s", link->target->pid, why);
	link->operators_said = true;
}

/* Does the function take a callback of the size that the agent hands it? */
static bool takes_callback(const struct elffile *library, const char *symbol)
{
	struct elffile_symbol s;
	const uint8_t *code = NULL;
	size_t bytes;

	if (!elffile__symbol(library, symbol, &s) && s.function)
		code = elffile__bytes(library, elffile__offset(library, s.vaddr), s.size, &bytes);
	return code && insn_memory_args(code, bytes) == CALLBACK_BYTES;
}

bool agent__can_observe(struct agents *a, struct agent_link *link, const struct proc_map *library)
{
	struct elffile *e = probe_set__elf(a->opts.probes, link->target, library);
	const char *name = proc_basename(library->path);

	for (size_t i = 0; e && catalog_frameworks[i]; i++) {
		const struct catalog_framework *fw = catalog_frameworks[i];

		if (catalog_match(fw->observer_library, name) &&
		    takes_callback(e, fw->observer_symbol))
			return true;
	}
	agent__not_observed(link, e ? "the way in which its PyTorch takes observers is not known"
				    : "its PyTorch's library can't be read");
	return false;
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

	if (!link || !link->memory || !link->records)
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
	struct kprof_agent_slot slot;

	for (uint32_t i = 0; link && link->memory && i < KPROF_AGENT_SLOTS; i++)
		if (!agent_memory__slot_head(link->memory, i, &slot) && slot.used)
			early(ctx, agent__host_tid(link, slot.owner), slot.opened_ns);
}
