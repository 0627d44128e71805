// SPDX-License-Identifier: BSD-2-Clause
#include "capture/event/inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/event/imports.h"
#include "capture/probe/probe.h"
#include "util/error.h"
#include "util/util.h"

struct inside {
	struct inside_opts opts;
	struct imports_opts imports;
	uint32_t slot;   /* of a target: struct imports * */
	bool names_said; /* that older interpreters have bare names only */
};

int inside__new(const struct inside_opts *opts, struct inside **out)
{
	struct inside *in = calloc(1, sizeof(*in));

	if (!in)
		return error_set(-ENOMEM, NULL, "no memory for --within");
	in->opts = *opts;
	in->imports = (struct imports_opts){
		.layout = opts->layout,
		.ctx = opts->ctx,
		.calls = opts->of == KPROF_WITHIN_MODULES,
		.tell = attacher__within_python,
		.attacher = opts->attacher,
		.without = "nothing is recorded",
	};
	in->slot = targets__slot(opts->targets);
	*out = in;
	return 0;
}

void inside__forget(struct inside *in, struct target *t)
{
	struct imports *imports = in ? t->slot[in->slot] : NULL;

	if (!imports)
		return;
	imports__forget(&in->imports, imports, t);
	free(imports);
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

static int tend(struct inside *in, struct target *t, uint64_t now_ns)
{
	struct imports *imports = t->slot[in->slot];
	int found;

	if (t->shares_memory || t->ended || t->kernel_thread || t->left_out)
		return 0;
	if (!imports)
		imports = t->slot[in->slot] = calloc(1, sizeof(*imports));
	if (!imports)
		return -ENOMEM;
	found = imports__tend(&in->imports, imports, t, now_ns);
	if (found > 0)
		warn_of_names(in, t, &imports->known.python);
	return found < 0 ? found : 0;
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
