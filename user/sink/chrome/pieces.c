// SPDX-License-Identifier: BSD-2-Clause
/*
 * Helpers of the other files: cached pieces of text, the time that the trace covers, and starts of
 * flow arrows.
 */
#include "sink/chrome/impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"
#include "util/util.h"

int fragment_at(struct fragments *f, size_t number, struct fragment **at)
{
	size_t i = number % FRAGMENTS_KEPT;

	if (i >= f->nr || !f->list) {
		size_t want = i + 1 > f->nr * 2 ? i + 64 : f->nr * 2;
		struct fragment *bigger = reallocarray(f->list, want, sizeof(*bigger));

		if (!bigger)
			return error_set(-ENOMEM, NULL, "no memory for the trace's names");
		memset(bigger + f->nr, 0, (want - f->nr) * sizeof(*bigger));
		f->list = bigger;
		f->nr = want;
	}
	*at = f->list + i;
	if ((*at)->number != number) {
		free((*at)->text);
		**at = (struct fragment){.number = number};
	}
	return 0;
}

void fragments_free(struct fragments *f)
{
	for (size_t i = 0; i < f->nr; i++)
		free(f->list[i].text);
	free(f->list);
}

int chrome_thread(struct chrome *c, uint32_t index, struct fragment **out)
{
	const struct tl_thread *thread = timeline__thread(c->t, index);
	int err = fragment_at(&c->threads, index, out);

	if (err || (*out)->text)
		return err;
	(*out)->text = xasprintf(",\"pid\":%d,\"tid\":%d,\"ts\":", thread->pid, thread->tid);
	if (!(*out)->text)
		return error_set(-ENOMEM, NULL, "no memory for the trace's threads");
	(*out)->head = strlen((*out)->text);
	return 0;
}

void chrome_reach(struct chrome *c, int64_t ns)
{
	if (ns < c->first_ns)
		c->first_ns = ns;
	if (ns > c->last_ns)
		c->last_ns = ns;
}

void chrome_cover(struct chrome *c, int64_t start_ns, int64_t end_ns)
{
	chrome_reach(c, start_ns);
	chrome_reach(c, end_ns);
	c->spans++;
}

void chrome_flow_start(struct chrome *c, const struct corr_call *call, const struct fragment *row,
		       int64_t ns)
{
	struct jsonw *w = &c->w;
	const struct corr_act *act = NULL;

	for (uint32_t i = call->first; (act = correlate__act(c->corr, i)); i = act->next)
		if (trace__flows_to(&c->tr, act))
			break;
	if (!act)
		return;
	jsonw__text_u64(w, ",\n{\"ph\":\"s\",\"id\":", trace__call_id(&c->tr, call));
	jsonw__text(w, ",\"cat\":\"ac2g\",\"name\":\"ac2g\"");
	jsonw__raw(w, row->text, row->head);
	jsonw__us(w, ns);
	jsonw__text(w, "}");
}
