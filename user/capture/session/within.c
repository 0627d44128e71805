// SPDX-License-Identifier: BSD-2-Clause
/*
 * Recordings of what is inside of something, by probes (kprof/within.h): threads that count as
 * outside from one moment on, since ends may have been missed. What they have open ends then: of
 * what goes on, nothing more is recorded.
 */
#include <string.h>

#include "capture/session/session.h"
#include "kprof/mark.h"
#include "kprof/within.h"

static bool concerns(const struct attach_left *left, const struct thread *th)
{
	return left->pid <= 0 ||
	       KPROF_WITHIN_ROUND(left->pid) == KPROF_WITHIN_ROUND(th->target->pid);
}

int within__leave(struct kprof_session *s, uint64_t until_ns)
{
	struct attach_left left;
	struct thread *th, *next;
	int err = 0;

	while (!err && attacher__within_left(s->attacher, until_ns, &left)) {
		THREADS_EACH (s->threads, th, next) {
			if (err || !th->spans || !concerns(&left, th))
				continue;
			th->left = s->within_of == KPROF_WITHIN_ANNOTATIONS;
			err = spans__leave(s->spans, th->spans, left.since_ns);
		}
	}
	return err;
}

/* Is it the name that is asked for? As bpf/within.h has it; a name that is not known may be. */
static bool is_name(const struct kprof_session *s, const char *text, size_t bytes)
{
	const char *pattern = s->opts.within;
	enum kprof_within_verdict verdict = KPROF_WITHIN_MORE;
	struct kprof_within_match m = {0};

	if (!bytes)
		return true;
	for (int i = 0; i < KPROF_WITHIN_STEPS && verdict == KPROF_WITHIN_MORE; i++)
		verdict = kprof_within_step(&m, m.text < bytes ? text[m.text] : '\0',
					    pattern[m.pattern]);
	return verdict == KPROF_WITHIN_SAME;
}

/* Does an annotation of the name begin with this hit? row: of its probe; NULL: it has none. */
static bool enters(const struct kprof_session *s, const struct kprof_wire_hdr *h,
		   const struct catalog_row *row)
{
	if (h->kind == KPROF_WIRE_MARK) {
		const struct kprof_wire_mark *m = (const struct kprof_wire_mark *)h;

		return m->mark == KPROF_MARK_RANGE_PUSH && m->text_addr[0] &&
		       is_name(s, m->text, m->text_bytes[0]);
	}
	if (h->kind == KPROF_WIRE_BEGIN_TEXT && row && row->shape == CATALOG_RANGE_BEGIN) {
		const struct kprof_wire_begin_text *e = (const struct kprof_wire_begin_text *)h;

		return catalog_value_matches(row, e->value) && e->text_addr &&
		       is_name(s, e->text, e->text_bytes);
	}
	return false;
}

/*
 * The hit was under way when its thread was left: the first that counts is the begin of an
 * annotation.
 */
static bool is_late(const struct kprof_session *s, struct thread *th,
		    const struct kprof_wire_hdr *h, const struct catalog_row *row)
{
	switch (h->kind) {
	case KPROF_WIRE_BEGIN:
	case KPROF_WIRE_BEGIN_TEXT:
	case KPROF_WIRE_BEGIN_ARGS:
	case KPROF_WIRE_BEGIN_INPUTS:
	case KPROF_WIRE_MARK:
		th->left = !enters(s, h, row);
		return th->left;
	case KPROF_WIRE_SITE:
	case KPROF_WIRE_SITE_RESULT:
		return true;
	default:
		return false;
	}
}

bool within__is_late(const struct kprof_session *s, struct thread *th,
		     const struct kprof_wire_hdr *h, const struct catalog_row *row)
{
	return th->left && is_late(s, th, h, row);
}
