// SPDX-License-Identifier: BSD-2-Clause
/* By what a cause is shown: lines, operators, and the threads that were waited for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kprof.h"
#include "model/why/impl.h"
#include "store/store.h"
#include "util/error.h"

#define MOST_FRAMES 128

void evidence__add(struct evidence *v, enum kprof_why_cause cause, enum kprof_why_kind kind,
		   uint64_t key, uint64_t ns)
{
	struct top *top = v ? &v->tops[cause][kind] : NULL;
	size_t to = 0;

	if (!top || !key || !ns)
		return;
	add_capped(&top->all_ns, ns);
	for (size_t i = 0; i < TOP; i++) {
		if (!top->of[i].key || top->of[i].key == key) {
			to = i;
			break;
		}
		if (top->of[i].ns < top->of[to].ns)
			to = i;
	}
	top->of[to].key = key;
	add_capped(&top->of[to].ns, ns);
}

/* ---- lines ---- */

static bool is_library(const char *file)
{
	return !*file || *file == '<' || strstr(file, "/lib/python") ||
	       strstr(file, "/site-packages/") || strstr(file, "/dist-packages/");
}

static bool is_program(const struct tl_frame *f)
{
	return f->lines[0].named && !timeline__is_libc(f);
}

/*
 * The innermost Python line of the program itself; else of a library; else the innermost native
 * function that is not libc's. It is told by its frame, so that stacks with the same line are one.
 */
static uint64_t find_line(const struct kprof_capture *t, uint32_t stack)
{
	uint64_t library = 0, native = 0;
	const struct tl_stack *s;

	for (int i = 0; i < MOST_FRAMES && stack && (s = timeline__stack(t, stack)); i++) {
		const struct tl_frame *f = s->frame;

		stack = s->parent;
		if (f->kind == TL_FRAME_PYTHON && !is_library(f->lines[0].file))
			return f->id;
		if (f->kind == TL_FRAME_PYTHON && !library)
			library = f->id;
		if (f->kind == TL_FRAME_NATIVE && !native && is_program(f))
			native = f->id;
	}
	return library ? library : native;
}

uint64_t evidence__line(struct evidence *v, uint32_t stack)
{
	uint64_t *slot = stack ? map64__at(&v->line_of_stack, stack) : NULL;

	if (!slot)
		return 0;
	if (!*slot)
		*slot = find_line(v->e->t, stack) + 1;
	return *slot - 1;
}

/* ---- samples ---- */

static const struct piece *piece_at(const struct sweep *s, uint64_t ns)
{
	size_t low = 0, high = s->pieces.nr;
	const struct piece *p;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		p = bulk__at(&s->pieces, mid);
		if (p->end_ns <= ns)
			low = mid + 1;
		else
			high = mid;
	}
	p = low < s->pieces.nr ? bulk__at(&s->pieces, low) : NULL;
	return p && p->start_ns <= ns ? p : NULL;
}

struct reading {
	struct evidence *v;
	const struct sweep *s;
};

static int add_sample(void *ctx, const struct store_record *r)
{
	const struct reading *reading = ctx;
	const struct sweep *s = reading->s;
	struct evidence *v = reading->v;
	const struct piece *p = piece_at(s, r->sample.time_ns);
	const struct tl_thread *th = timeline__thread(v->e->t, r->sample.thread);
	enum kprof_why_cause cause = p ? (enum kprof_why_cause)p->cause : KPROF_WHY_UNKNOWN;
	uint64_t line = p ? evidence__line(v, r->sample.stack) : 0;

	if (!p || (r->sample.flags & KPROF_SAMPLE_STATE) == KPROF_SAMPLE_OFF_CPU)
		return 0;
	if (r->sample.thread == s->subject->thread) {
		if (!p->running)
			return 0;
		v->samples[cause]++;
		add_capped(&v->sampled_ns[cause], r->sample.weight_ns);
		evidence__add(v, cause, KPROF_WHY_LINE, line, r->sample.weight_ns);
	} else if (p->who == r->sample.thread + 1 ||
		   (cause == KPROF_WHY_GIL && r->sample.flags & KPROF_SAMPLE_GIL &&
		    th->pid == s->subject->pid)) {
		evidence__add(v, cause, KPROF_WHY_DOING, line, r->sample.weight_ns);
	}
	return 0;
}

int evidence__samples(struct evidence *v, const struct sweep *s)
{
	struct reading reading = {v, s};

	return timeline__samples(v->e->t, 0, add_sample, &reading);
}

/* ---- texts ---- */

static char *line_text(const struct kprof_capture *t, uint64_t key)
{
	const struct tl_frame *f = timeline__frame(t, (uint32_t)key);
	const struct tl_line *line = f ? &f->lines[0] : NULL;

	if (key == DOING_NO_CPU)
		return strdup("[waiting for a CPU]");
	if (!line)
		return strdup("");
	if (*line->file && line->line)
		return xasprintf("%s (%s:%u)", line->function, path_base(line->file), line->line);
	if (f->module && line->named)
		return xasprintf("%s (%s)", line->function, path_base(f->module->path));
	return strdup(line->function);
}

static char *who_text(const struct evidence *v, uint64_t key)
{
	const struct tl_thread *th;

	if (key & WHO_COMM)
		return strdup(timeline__string(v->e->t, (uint32_t)key));
	th = timeline__thread(v->e->t, (size_t)key - 1);
	if (th->pid == v->pid)
		return xasprintf("%s (%d)", th->title, th->tid);
	return xasprintf("%s (%d, of process %d)", th->title, th->tid, th->pid);
}

char *evidence__text(const struct evidence *v, enum kprof_why_kind kind, uint64_t key)
{
	const struct tl_description *d;

	if (kind == KPROF_WHY_WHO)
		return who_text(v, key);
	if (kind != KPROF_WHY_OPERATOR)
		return line_text(v->e->t, key);
	d = timeline__description(v->e->t, (size_t)key - 1);
	return strdup(d ? d->name : "");
}

void evidence__free(struct evidence *v)
{
	map64__free(&v->line_of_stack);
}
