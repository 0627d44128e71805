// SPDX-License-Identifier: BSD-2-Clause
#include "capture/event/imports.h"

#include <errno.h>

#include "symbol/python/python.h"
#include "util/error.h"
#include "util/util.h"

#define FIRST_WAIT_NS (20 * NSEC_PER_MSEC)
#define LAST_WAIT_NS (2 * NSEC_PER_SEC)

/* Is it time to look? Then the next time is later. */
static bool is_due(struct imports *i, const struct target *t, uint64_t now_ns)
{
	if (i->maps_ns != t->maps_ns) { /* it imports something: perhaps PyTorch */
		i->maps_ns = t->maps_ns;
		i->wait_ns = FIRST_WAIT_NS;
		if (i->next_ns > now_ns + FIRST_WAIT_NS)
			i->next_ns = now_ns + FIRST_WAIT_NS;
	}
	if (now_ns < i->next_ns)
		return false;
	i->next_ns = now_ns + i->wait_ns;
	if (i->wait_ns < LAST_WAIT_NS)
		i->wait_ns += i->wait_ns / 4;
	return true;
}

static int look(const struct imports_opts *o, struct imports *i, struct target *t)
{
	struct python_memory memory = {.read = target__read, .ctx = t};
	const struct kprof_python *python = o->layout(o->ctx, t);
	int err = 0;

	if (!python)
		return 0;
	if (o->calls)
		err = python_nn__call(python, &memory, &i->known.call_code);
	if (err == -ENOTSUP) {
		i->refused = true;
		log_warn(NULL, "process %u: %s: torch.nn.Module.__call__ is not as kprof knows it",
			 t->pid, o->without);
	}
	if (err)
		return err == -ENOMEM ? err : 0;
	i->known.python = *python;
	err = o->tell(o->attacher, t->pid, &i->known);
	i->told = !err;
	i->refused = err != 0;
	if (err)
		log_warn("a recording of fewer processes", "process %u: %s: the kernel has no room",
			 t->pid, o->without);
	return i->told;
}

int imports__tend(const struct imports_opts *o, struct imports *i, struct target *t,
		  uint64_t now_ns)
{
	return i->told || i->refused || !is_due(i, t, now_ns) ? 0 : look(o, i, t);
}

void imports__forget(const struct imports_opts *o, const struct imports *i, const struct target *t)
{
	if (i->told)
		o->tell(o->attacher, t->pid, NULL);
}
