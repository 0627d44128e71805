// SPDX-License-Identifier: BSD-2-Clause
/* Rows of a table: adding one, and counting into it. */
#include "model/report/impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"
#include "util/util.h"

struct kprof_row *result__row(struct kprof_result *r, char *name)
{
	struct entry *e = NULL;

	if (name && !vec_grow((void **)&r->names, &r->cap_names, r->nr_names, sizeof(*r->names)) &&
	    !vec_grow((void **)&r->entries, &r->cap, r->nr, sizeof(*r->entries))) {
		r->names[r->nr_names++] = name;
		e = &r->entries[r->nr++];
		*e = (struct entry){.row = {.name = name, .category = ""}};
		return &e->row;
	}
	free(name);
	error_set(-ENOMEM, NULL, "out of memory for %zu rows", r->nr);
	return NULL;
}

const char *result__keep(struct kprof_result *r, const char *text)
{
	char *own = strdup(text);

	if (!own || vec_grow((void **)&r->names, &r->cap_names, r->nr_names, sizeof(*r->names))) {
		free(own);
		error_set(-ENOMEM, NULL, "out of memory for %zu rows", r->nr);
		return NULL;
	}
	r->names[r->nr_names++] = own;
	return own;
}

/* The shortest and the longest are of calls whose whole duration is known. */
static void count_whole(struct kprof_row *row, uint64_t duration_ns)
{
	struct entry *e = (struct entry *)row;

	if (!e->whole++ || duration_ns < row->min_ns)
		row->min_ns = duration_ns;
	if (duration_ns > row->max_ns)
		row->max_ns = duration_ns;
}

void result__count(struct kprof_row *row, uint64_t duration_ns)
{
	row->calls++;
	row->timed++;
	row->total_ns += duration_ns;
	row->self_ns += duration_ns;
	count_whole(row, duration_ns);
}

bool result__count_part(struct kprof_row *row, const struct kprof_capture *t, uint64_t start_ns,
			uint64_t end_ns)
{
	uint32_t beyond;

	if (!timeline__part(t, &start_ns, &end_ns, &beyond))
		return false;
	row->calls += !(beyond & TL_BEFORE);
	row->timed++;
	row->total_ns += end_ns - start_ns;
	row->self_ns += end_ns - start_ns;
	if (!beyond)
		count_whole(row, end_ns - start_ns);
	return !(beyond & TL_BEFORE);
}

void result__count_span(struct kprof_row *row, const struct tl_span *s, uint64_t total_ns)
{
	bool begins = !(s->beyond & TL_BEFORE);

	row->calls += begins;
	row->total_ns += total_ns;
	if (begins && s->flags & (KPROF_EVENT_CLOSED | KPROF_EVENT_OPEN_AT_END))
		row->inexact++;
	/* A closed span ended somewhere before the thread's next event: its duration is unknown. */
	if (s->flags & KPROF_EVENT_CLOSED)
		return;
	row->timed++;
	row->self_ns += s->self_ns;
	if (!s->beyond)
		count_whole(row, s->end_ns - s->start_ns);
}

int result__thread_rows(struct kprof_result *r, struct kprof_capture *t)
{
	const struct tl_thread *th;

	for (size_t i = 0; (th = timeline__thread(t, i)); i++) {
		struct kprof_row *row =
			result__row(r, xasprintf("%d/%d %s", th->pid, th->tid, th->title));

		if (!row)
			return -ENOMEM;
		row->pid = th->pid;
		row->tid = th->tid;
	}
	return 0;
}
