// SPDX-License-Identifier: BSD-2-Clause
#include "model/report/launched.h"

#include <errno.h>
#include <stdlib.h>

#include "util/error.h"
#include "util/util.h"

static int add(struct launched *l, uint64_t op, uint64_t ns, uint32_t device)
{
	uint64_t *at = map64__at(&l->by_span, op);

	if (!at || vec_grow((void **)&l->list, &l->cap, l->nr, sizeof(*l->list)))
		return error_set(-ENOMEM, NULL, "out of memory for the work of devices");
	if (!*at) {
		l->list[l->nr++] = (struct launched_work){.device = device};
		*at = l->nr;
	}
	add_capped(&l->list[*at - 1].ns, ns);
	return 0;
}

int launched__read(struct kprof_capture *t, struct launched *out)
{
	const struct corr_act *act;
	const struct corr_call *call;
	const struct corr_row *row;
	int err = correlate__new(t, 0, &out->corr);

	for (uint32_t i = 0; !err && (act = correlate__act(out->corr, i)); i++) {
		call = correlate__call(out->corr, act->call);
		row = act->row == CORRELATE_NONE ? NULL : correlate__row(out->corr, act->row);
		if (call && call->op && row && corr_row_is_work(row))
			err = add(out, call->op, act->end_ns - act->start_ns, row->device);
	}
	return err;
}

const struct launched_work *launched__of(const struct launched *l, uint64_t span)
{
	uint64_t at = map64__get(&l->by_span, span);

	return at ? &l->list[at - 1] : NULL;
}

void launched__free(struct launched *l)
{
	correlate__free(l->corr);
	map64__free(&l->by_span);
	free(l->list);
	*l = (struct launched){0};
}
