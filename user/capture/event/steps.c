// SPDX-License-Identifier: BSD-2-Clause
#include "capture/event/steps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/map64.h"
#include "util/step_name.h"
#include "util/util.h"

#define NOT_BEGUN UINT64_MAX
/* Names of steps, which often have their numbers in them. */
#define MOST_NAMES (1u << 20)
#define KIND_BITS 3 /* of what is known of a description; the others: its number + 1 */

struct stepping {
	uint32_t pid;
	/* The best kind so far, on the thread where it was first seen. */
	enum step_kind kind;
	uint32_t thread;
	uint32_t depth;      /* open ranges of that kind */
	uint64_t boundaries; /* begins of steps */
	uint64_t left;       /* steps to be recorded; NOT_BEGUN: the first has not begun yet */
	bool gone;
};

struct steps {
	struct steps_opts opts;
	char *annotation;
	struct map64 kinds;   /* enum step_kind, and its number, by event description */
	struct map64 by_pid;  /* index + 1 */
	struct vec processes; /* struct stepping */
	uint64_t start_ns;    /* 0: not yet */
	uint64_t seen;
	uint32_t pid;
	bool open, closed, unnumbered;
};

int steps__new(const struct steps_opts *opts, struct steps **out)
{
	struct steps *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->opts = *opts;
	if (opts->annotation) {
		s->annotation = strdup(opts->annotation);
		if (!s->annotation) {
			free(s);
			return -ENOMEM;
		}
	}
	*out = s;
	return 0;
}

void steps__free(struct steps *s)
{
	if (!s)
		return;
	free(s->annotation);
	map64__free(&s->kinds);
	map64__free(&s->by_pid);
	free(s->processes.data);
	free(s);
}

/* The ends of those that are open will not be known as such. */
static void forget_names(struct steps *s)
{
	struct stepping *p = s->processes.data;

	map64__free(&s->kinds);
	for (size_t i = 0; i < s->processes.nr; i++)
		p[i].depth = 0;
}

int steps__described(struct steps *s, uint32_t description, const char *category, const char *name)
{
	struct step_name what = step_name(category, name, s->annotation);
	uint64_t *kind = what.kind ? map64__at(&s->kinds, description) : NULL;

	if (!what.kind)
		return 0;
	if (!kind)
		return -ENOMEM;
	*kind = what.kind | (what.numbered ? what.number + 1 : 0) << KIND_BITS;
	if (s->kinds.used > MOST_NAMES)
		forget_names(s);
	return 0;
}

void steps__start(struct steps *s, uint64_t now_ns)
{
	s->start_ns = now_ns;
}

static struct stepping *process_of(struct steps *s, uint32_t pid)
{
	uint64_t *at = map64__at(&s->by_pid, pid);
	struct stepping *p;

	if (!at)
		return NULL;
	if (!*at) {
		p = vec_push(&s->processes, sizeof(*p));
		if (!p)
			return NULL;
		*p = (struct stepping){.pid = pid, .left = NOT_BEGUN};
		*at = s->processes.nr;
	}
	return (struct stepping *)s->processes.data + *at - 1;
}

/* Is it known what a step is? Of the better kinds, nothing better can come. */
static bool is_settled(const struct stepping *p)
{
	return p->kind >= STEP_PROFILER ? p->boundaries > 0 : p->boundaries > 1;
}

/* The process if the range is a step of it, or may be one; NULL: it is none, or no memory. */
static struct stepping *step_of(struct steps *s, const struct steps_range *r, int *err)
{
	uint64_t known = map64__get(&s->kinds, r->description);
	enum step_kind kind = (enum step_kind)(known & ((1u << KIND_BITS) - 1));
	struct stepping *p = kind ? process_of(s, r->pid) : NULL;

	*err = kind && !p ? -ENOMEM : 0;
	if (!p)
		return NULL;
	if (p->gone)
		*p = (struct stepping){.pid = r->pid, .left = NOT_BEGUN};
	if (kind > p->kind && p->left == NOT_BEGUN) {
		p->kind = kind;
		p->thread = r->thread;
		p->depth = 0;
		p->boundaries = 0;
	}
	return p->kind == kind && p->thread == r->thread ? p : NULL;
}

/* By its number; one that has none is as good as any. */
static bool has_its_turn(struct steps *s, uint32_t description)
{
	uint64_t number = map64__get(&s->kinds, description) >> KIND_BITS; /* + 1 */

	s->unnumbered = s->opts.multiple_of > 1 && !number;
	return s->opts.multiple_of <= 1 || !number || (number - 1) % s->opts.multiple_of == 0;
}

/* A step of the process begins. */
static enum steps_act boundary(struct steps *s, struct stepping *p, const struct steps_range *r)
{
	uint64_t before = p->boundaries++;
	uint64_t warm_ns = s->start_ns + s->opts.warm_up_ns;

	s->seen++;
	if (p->left != NOT_BEGUN || !is_settled(p) || s->closed)
		return STEPS_NOTHING;
	if (s->open) {
		p->left = s->opts.nr;
		return STEPS_NOTHING;
	}
	if (!s->start_ns || before < s->opts.warm_up || r->time_ns < warm_ns ||
	    !has_its_turn(s, r->description))
		return STEPS_NOTHING;
	s->open = true;
	s->pid = p->pid;
	p->left = s->opts.nr;
	return STEPS_OPEN;
}

/* Have all that have steps had theirs? */
static enum steps_act check(struct steps *s)
{
	const struct stepping *p = s->processes.data;
	bool any = false;

	if (!s->open || s->closed)
		return STEPS_NOTHING;
	for (size_t i = 0; i < s->processes.nr; i++) {
		if (p[i].gone || !is_settled(&p[i]))
			continue;
		if (p[i].left)
			return STEPS_NOTHING;
		any = true;
	}
	s->closed = any;
	return any ? STEPS_CLOSE : STEPS_NOTHING;
}

int steps__begin(struct steps *s, const struct steps_range *r, enum steps_act *act)
{
	int err;
	struct stepping *p = step_of(s, r, &err);

	*act = STEPS_NOTHING;
	/* An optimizer's step ends one; and one inside of another is none. */
	if (p && !p->depth++ && p->kind != STEP_OPTIMIZER)
		*act = boundary(s, p, r);
	return err;
}

int steps__end(struct steps *s, const struct steps_range *r, enum steps_act *act)
{
	int err;
	struct stepping *p = step_of(s, r, &err);

	*act = STEPS_NOTHING;
	if (!p || !p->depth || --p->depth)
		return err;
	if (p->left && p->left != NOT_BEGUN && !--p->left)
		*act = check(s);
	if (p->kind == STEP_OPTIMIZER && *act == STEPS_NOTHING)
		*act = boundary(s, p, r);
	return 0;
}

enum steps_act steps__gone(struct steps *s, uint32_t pid)
{
	uint64_t at = map64__get(&s->by_pid, pid);

	if (!at)
		return STEPS_NOTHING;
	((struct stepping *)s->processes.data)[at - 1].gone = true;
	return check(s);
}

void steps__state(const struct steps *s, struct steps_state *out)
{
	const struct stepping *p = s->processes.data;

	*out = (struct steps_state){
		.open = s->open,
		.closed = s->closed,
		.pid = s->pid,
		.unnumbered = s->unnumbered,
		.seen = s->seen,
	};
	for (size_t i = 0; i < s->processes.nr; i++) {
		uint64_t done = p[i].left == NOT_BEGUN ? 0 : s->opts.nr - p[i].left;

		if (!is_settled(&p[i]) || (p[i].gone && p[i].pid != s->pid))
			continue;
		if (!out->processes++ || done < out->least_done)
			out->least_done = done;
	}
}
