// SPDX-License-Identifier: BSD-2-Clause
/*
 * Says of each moment of a thread's steps what it went to. Where the thread waits for another one,
 * that one's own waits in this time are looked at, and so on: who waits for a loader that waits for
 * a disk waits for the disk.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/why/impl.h"
#include "util/error.h"

static int no_memory(void)
{
	return error_set(-ENOMEM, NULL, "out of memory for what steps went to");
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* ---- pieces ---- */

static void emit(struct sweep *s, uint64_t from_ns, uint64_t to_ns, enum kprof_why_cause cause,
		 uint32_t who, bool running)
{
	struct piece *piece;

	if (to_ns <= from_ns || s->err)
		return;
	s->by[cause][s->unit] += (double)(to_ns - from_ns);
	if (running)
		s->running_ns[cause] += (double)(to_ns - from_ns);
	if (who)
		evidence__add(s->evidence, cause, KPROF_WHY_WHO, who, to_ns - from_ns);
	piece = bulk__push(&s->pieces);
	if (!piece)
		s->err = no_memory();
	else
		*piece = (struct piece){.start_ns = from_ns,
					.end_ns = to_ns,
					.who = who,
					.cause = (uint8_t)cause,
					.running = running};
}

/* Where the subject, or the thread that it waits for, was in this stretch. */
static void show(struct sweep *s, enum kprof_why_cause cause, enum kprof_why_kind kind,
		 uint32_t stack, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t line = s->evidence && stack ? evidence__line(s->evidence, stack) : 0;

	if (line && from_ns < to_ns)
		evidence__add(s->evidence, cause, kind, line, to_ns - from_ns);
}

/* ---- on the CPU ---- */

static enum kprof_why_cause cause_of(const struct sweep *s, const struct segment *in)
{
	if (in->flags & IN_COLLECTIVE)
		return KPROF_WHY_COLLECTIVE;
	if (in->flags & IN_MESSAGE)
		return KPROF_WHY_MESSAGE;
	if (in->flags & IN_SYNC)
		return KPROF_WHY_DEVICE;
	if (in->flags & IN_DATA)
		return KPROF_WHY_DATA;
	if (in->flags & (IN_CALL | IN_TINY))
		return KPROF_WHY_LAUNCH;
	if (in->flags & IN_OP || !s->e->has_ops)
		return KPROF_WHY_COMPUTE;
	if (in->end_ns - in->start_ns < GAP_NS)
		return KPROF_WHY_LAUNCH;
	return s->e->dropped ? KPROF_WHY_UNKNOWN : KPROF_WHY_CODE;
}

static void runs(struct sweep *s, uint64_t from_ns, uint64_t to_ns)
{
	uint32_t thread = s->subject->thread;
	size_t i = from_ns < to_ns ? events__segment(s->e, thread, from_ns) : s->e->segments.nr;

	for (; i < s->e->segments.nr && from_ns < to_ns; i++) {
		const struct segment *in = bulk__at(&s->e->segments, i);
		uint64_t end_ns = earlier(in->end_ns, to_ns);
		enum kprof_why_cause cause = cause_of(s, in);

		if (in->thread != thread || in->start_ns >= to_ns)
			break;
		emit(s, from_ns, in->start_ns, KPROF_WHY_UNKNOWN, 0, false);
		from_ns = later(from_ns, in->start_ns);
		if (in->op)
			evidence__add(s->evidence, cause, KPROF_WHY_OPERATOR, in->op,
				      end_ns > from_ns ? end_ns - from_ns : 0);
		emit(s, from_ns, end_ns, cause, 0, true);
		from_ns = later(from_ns, end_ns);
	}
	emit(s, from_ns, to_ns, KPROF_WHY_UNKNOWN, 0, false);
}

/* ---- waits ---- */

/* What a wait is, taking into account in which spans it was. */
static enum kprof_why_cause cause_of_wait(const struct tl_wait *w, uint32_t in)
{
	bool data = wait_flags(w) & STACK_DATA || in & IN_DATA;

	if (wait_kind(w) >= WAIT_HANDOFF && wait_kind(w) != WAIT_SLEEP &&
	    wait_kind(w) != WAIT_DISK) {
		if (wait_flags(w) & STACK_COLLECTIVE || in & IN_COLLECTIVE)
			return KPROF_WHY_COLLECTIVE;
		if (wait_flags(w) & STACK_MESSAGE || in & IN_MESSAGE)
			return KPROF_WHY_MESSAGE;
		if (wait_kind(w) == WAIT_DEVICE || in & IN_SYNC)
			return KPROF_WHY_DEVICE;
	}
	switch (wait_kind(w)) {
	case WAIT_CPU:
		return KPROF_WHY_CPU;
	case WAIT_GIL:
		return KPROF_WHY_GIL;
	case WAIT_LOCK:
		return KPROF_WHY_LOCK;
	case WAIT_SLEEP:
		return KPROF_WHY_SLEEP;
	case WAIT_DISK:
		return KPROF_WHY_DISK;
	case WAIT_STREAM:
		return KPROF_WHY_DATA;
	case WAIT_HANDOFF:
		return data ? KPROF_WHY_DATA : KPROF_WHY_THREAD;
	case WAIT_EVENTS:
		return data ? KPROF_WHY_DATA : w->waker ? KPROF_WHY_THREAD : KPROF_WHY_OTHER;
	case WAIT_DEVICE:
		return KPROF_WHY_DEVICE;
	case WAIT_OTHER:
		break;
	}
	return data ? KPROF_WHY_DATA : KPROF_WHY_OTHER;
}

/* The causes for which another thread is looked at. */
static bool is_followed(enum kprof_why_cause cause)
{
	return cause == KPROF_WHY_DATA || cause == KPROF_WHY_THREAD;
}

/* Who ended the wait: a thread's index + 1, or a name; 0: not known. */
static uint64_t who_of(const struct tl_wait *w)
{
	return w->waker ? w->waker : w->waker_comm ? WHO_COMM | w->waker_comm : 0;
}

static void blocked(struct sweep *s, const struct tl_wait *w, uint64_t from_ns, uint64_t to_ns,
		    enum kprof_why_cause base, uint32_t via, int depth);

/*
 * What a thread did while another waited for it. base: what the other's wait is, unless this one
 * waits, too.
 */
static void follow(struct sweep *s, uint32_t thread, uint64_t from_ns, uint64_t to_ns,
		   enum kprof_why_cause base, int depth)
{
	size_t i = timeline__find_wait(&s->e->waits, thread, from_ns);

	for (; i < s->e->waits.nr && from_ns < to_ns; i++) {
		const struct tl_wait *w = bulk__at(&s->e->waits, i);
		enum kprof_why_cause cause;
		uint64_t start_ns, wake_ns, end_ns;

		if (w->thread != thread || w->start_ns >= to_ns)
			break;
		start_ns = later(w->start_ns, from_ns);
		wake_ns = later(earlier(w->wake_ns, to_ns), start_ns);
		end_ns = later(earlier(w->end_ns, to_ns), wake_ns);
		emit(s, from_ns, start_ns, base, thread + 1, false);
		cause = cause_of_wait(w, 0);
		/* Its own reason, unless it only says that it waits for someone. */
		if (is_followed(cause) || cause == KPROF_WHY_OTHER || cause == KPROF_WHY_CPU)
			cause = base;
		show(s, cause, KPROF_WHY_DOING, w->stack, start_ns, wake_ns);
		blocked(s, w, start_ns, wake_ns, cause, thread + 1, depth + 1);
		/* Without a CPU it is slower, but it is it that is waited for. */
		emit(s, wake_ns, end_ns, base, thread + 1, false);
		evidence__add(s->evidence, base, KPROF_WHY_DOING, DOING_NO_CPU, end_ns - wake_ns);
		from_ns = end_ns;
	}
	emit(s, from_ns, to_ns, base, thread + 1, false);
}

/* via: the thread that waits, index + 1, if it is not the subject. */
static void blocked(struct sweep *s, const struct tl_wait *w, uint64_t from_ns, uint64_t to_ns,
		    enum kprof_why_cause base, uint32_t via, int depth)
{
	if (from_ns >= to_ns || s->err)
		return;
	if (is_followed(base) && w->waker && w->waker - 1 != s->subject->thread &&
	    w->waker != via && is_followed(cause_of_wait(w, 0)) && depth < MOST_DEPTH) {
		follow(s, w->waker - 1, from_ns, to_ns, base, depth);
		return;
	}
	emit(s, from_ns, to_ns, base, via, false);
	if (!via && who_of(w))
		evidence__add(s->evidence, base, KPROF_WHY_WHO, who_of(w), to_ns - from_ns);
	/* Where the other one was when it ended the wait, as far as no samples tell. */
	if (!via && !s->e->has_samples)
		show(s, base, KPROF_WHY_DOING, w->waker_stack, from_ns, to_ns);
}

static void waits(struct sweep *s, const struct tl_wait *w, uint64_t from_ns, uint64_t to_ns)
{
	size_t i = events__segment(s->e, s->subject->thread, from_ns);
	const struct segment *in = i < s->e->segments.nr ? bulk__at(&s->e->segments, i) : NULL;
	uint64_t wake_ns = later(earlier(w->wake_ns, to_ns), from_ns);
	size_t first = s->pieces.nr;
	enum kprof_why_cause cause;
	uint32_t flags;

	if (!in || in->thread != s->subject->thread || in->start_ns > from_ns)
		in = NULL;
	flags = in ? in->flags : 0;
	cause = cause_of_wait(w, flags);
	/* An operator that has its work done by other threads computes meanwhile. */
	if (cause == KPROF_WHY_THREAD && flags & IN_OP && w->waker)
		cause = KPROF_WHY_COMPUTE;
	if (cause == KPROF_WHY_COMPUTE)
		follow(s, w->waker - 1, from_ns, wake_ns, cause, 0);
	else
		blocked(s, w, from_ns, wake_ns, cause, 0, 0);
	emit(s, wake_ns, to_ns, KPROF_WHY_CPU, 0, false);
	/* Where the subject stood is evidence of whatever it was that it waited for. */
	for (; first < s->pieces.nr && s->evidence; first++) {
		const struct piece *p = bulk__at(&s->pieces, first);

		show(s, (enum kprof_why_cause)p->cause, KPROF_WHY_LINE, w->stack, p->start_ns,
		     p->end_ns);
		if (in && in->op)
			evidence__add(s->evidence, (enum kprof_why_cause)p->cause,
				      KPROF_WHY_OPERATOR, in->op, p->end_ns - p->start_ns);
	}
}

/* ---- units ---- */

static void sweep_unit(struct sweep *s, uint64_t from_ns, uint64_t to_ns)
{
	uint32_t thread = s->subject->thread;
	size_t i = timeline__find_wait(&s->e->waits, thread, from_ns);
	uint64_t known_ns = to_ns; /* until when there are waits */

	if (s->e->waits_until_ns)
		known_ns = later(from_ns, earlier(to_ns, s->e->waits_until_ns));
	s->unit_ns[s->unit] += (double)(to_ns - from_ns);
	for (; i < s->e->waits.nr && from_ns < known_ns; i++) {
		const struct tl_wait *w = bulk__at(&s->e->waits, i);
		uint64_t end_ns = earlier(w->end_ns, known_ns);

		if (w->thread != thread || w->start_ns >= known_ns)
			break;
		runs(s, from_ns, earlier(w->start_ns, known_ns));
		from_ns = later(from_ns, w->start_ns);
		if (end_ns > from_ns)
			waits(s, w, from_ns, end_ns);
		from_ns = later(from_ns, end_ns);
	}
	runs(s, from_ns, known_ns);
	emit(s, known_ns, to_ns, KPROF_WHY_UNKNOWN, 0, false);
}

/* Without steps, the recording is cut into parts. */
#define PARTS 64
#define LEAST_PART_NS 50000000u

static size_t count_parts(const struct events *e)
{
	const struct kprof_capture_info *info = kprof_capture_info(e->t);
	uint64_t window_ns = info->end_mono_ns - info->start_mono_ns,
		 nr = window_ns / LEAST_PART_NS;

	return nr < 1 ? 1 : nr > PARTS ? PARTS : (size_t)nr;
}

static void sweep_parts(struct sweep *s)
{
	const struct kprof_capture_info *info = kprof_capture_info(s->e->t);
	uint64_t start_ns = info->start_mono_ns;
	uint64_t part_ns = (info->end_mono_ns - start_ns) / s->nr_units;

	for (s->unit = 0; s->unit < s->nr_units && !s->err; s->unit++)
		sweep_unit(s, start_ns + s->unit * part_ns,
			   s->unit + 1 < s->nr_units ? start_ns + (s->unit + 1) * part_ns
						     : info->end_mono_ns);
}

static void sweep_steps(struct sweep *s)
{
	size_t nr = s->subject->to - s->subject->from;

	for (size_t i = 0; i < nr && !s->err; i++) {
		const struct tl_step *step = bulk__at(&s->e->steps, s->subject->from + i);

		s->unit = (size_t)((double)i * (double)s->nr_units / (double)nr);
		sweep_unit(s, step->start_ns, step->end_ns);
	}
}

int sweep__run(struct sweep *s, const struct events *e, const struct subject *subject,
	       struct evidence *evidence)
{
	size_t steps = subject->to - subject->from;

	*s = (struct sweep){.e = e,
			    .subject = subject,
			    .pieces = {.size = sizeof(struct piece)},
			    .evidence = evidence,
			    .nr_units = steps ? steps : count_parts(e)};
	if (s->nr_units > MOST_UNITS)
		s->nr_units = MOST_UNITS;
	s->unit_ns = calloc(s->nr_units, sizeof(*s->unit_ns));
	for (int i = 0; i < KPROF_WHY_CAUSES; i++) {
		s->by[i] = calloc(s->nr_units, sizeof(**s->by));
		if (!s->by[i] || !s->unit_ns)
			return no_memory();
	}
	if (steps)
		sweep_steps(s);
	else
		sweep_parts(s);
	return s->err;
}

void sweep__free(struct sweep *s)
{
	bulk__free(&s->pieces);
	free(s->unit_ns);
	for (int i = 0; i < KPROF_WHY_CAUSES; i++)
		free(s->by[i]);
	*s = (struct sweep){0};
}

double sweep__total(const struct sweep *s, enum kprof_why_cause cause)
{
	double sum = 0;

	for (size_t i = 0; i < s->nr_units; i++)
		sum += s->by[cause][i];
	return sum;
}

double sweep__share(const struct sweep *s, enum kprof_why_cause cause)
{
	double all = 0;

	for (size_t i = 0; i < s->nr_units; i++)
		all += s->unit_ns[i];
	return all > 0 ? sweep__total(s, cause) / all : 0;
}
