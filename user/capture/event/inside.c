// SPDX-License-Identifier: BSD-2-Clause
#include "capture/event/inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/event/imports.h"
#include "capture/probe/probe.h"
#include "kprof/modules.h"
#include "symbol/python/python.h"
#include "util/error.h"
#include "util/util.h"

struct inside {
	struct inside_opts opts;
	uint32_t slot;   /* of a target: struct target_inside * */
	bool names_said; /* that older interpreters have bare names only */
};

struct target_inside {
	bool told, refused;
	struct imports imports;
};

int inside__new(const struct inside_opts *opts, struct inside **out)
{
	struct inside *in = calloc(1, sizeof(*in));

	if (!in)
		return error_set(-ENOMEM, NULL, "no memory for --within");
	in->opts = *opts;
	in->slot = targets__slot(opts->targets);
	*out = in;
	return 0;
}

void inside__forget(struct inside *in, struct target *t)
{
	struct target_inside *ti = in ? t->slot[in->slot] : NULL;

	if (!ti)
		return;
	if (ti->told)
		attacher__within_python(in->opts.attacher, t->pid, NULL);
	free(ti);
	t->slot[in->slot] = NULL;
}

void inside__free(struct inside *in)
{
	struct target *t, *next;

	if (!in)
		return;
	TARGETS_EACH (in->opts.targets, t, next)
		inside__forget(in, t);
	free(in);
}

/* The names of functions are bare before Python 3.11. */
static void warn_of_names(struct inside *in, const struct target *t,
			  const struct kprof_python *python)
{
	const char *dot = strrchr(in->opts.name, '.');

	if (in->opts.of != KPROF_WITHIN_FUNCTIONS || !dot || in->names_said ||
	    python->code_qualname != KPROF_PYTHON_NONE)
		return;
	in->names_said = true;
	log_warn("a bare name, as function:forward; or module:CLASS",
		 "--within function:%s: in process %u, which runs Python 3.%u, functions have no "
		 "names with a dot: that is known from 3.11 on",
		 in->opts.name, t->pid, python->version >> 16 & 0xff);
}

static int look(struct inside *in, struct target *t, struct target_inside *ti)
{
	struct python_memory memory = {.read = target__read, .ctx = t};
	const struct kprof_python *python = in->opts.layout(in->opts.ctx, t);
	struct kprof_modules known = {0};
	int err = 0;

	if (!python)
		return 0;
	known.python = *python;
	if (in->opts.of == KPROF_WITHIN_MODULES)
		err = python_nn__call(python, &memory, &known.call_code);
	if (err == -ENOTSUP) {
		ti->refused = true;
		log_warn(NULL,
			 "process %u: nothing is recorded, as torch.nn.Module.__call__ is not as "
			 "kprof knows it",
			 t->pid);
	}
	if (err)
		return err == -ENOMEM ? err : 0;
	err = attacher__within_python(in->opts.attacher, t->pid, &known);
	ti->told = !err;
	ti->refused = err != 0;
	if (err)
		log_warn("a recording of fewer processes",
			 "process %u: nothing is recorded, as the kernel has no room", t->pid);
	else
		warn_of_names(in, t, python);
	return 0;
}

static int tend(struct inside *in, struct target *t, uint64_t now_ns)
{
	struct target_inside *ti = t->slot[in->slot];

	if (t->shares_memory || t->ended || t->kernel_thread || t->left_out)
		return 0;
	if (!ti)
		ti = t->slot[in->slot] = calloc(1, sizeof(*ti));
	if (!ti)
		return -ENOMEM;
	if (ti->told || ti->refused || !imports__due(&ti->imports, t, now_ns))
		return 0;
	return look(in, t, ti);
}

int inside__tend(struct inside *in, uint64_t now_ns)
{
	struct target *t;
	int err = 0;

	if (!in)
		return 0;
	for (t = targets__first(in->opts.targets); t && !err; t = t->hh.next)
		err = tend(in, t, now_ns);
	return err;
}
