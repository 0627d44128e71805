// SPDX-License-Identifier: BSD-2-Clause
/*
 * Steps of a training, by annotations (util/step_name.h). Of each process the best kind counts that
 * it has, on the thread that has most of them. Those that say no number are numbered from 0 in the
 * order of their begin.
 */
#include "model/timeline/impl.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "util/bulk.h"
#include "util/error.h"
#include "util/order.h"
#include "util/step_name.h"

struct search {
	struct kprof_capture *t;
	struct step_name *names; /* by id of the description - 1 */
	struct bulk *found;      /* struct tl_step: all candidates */
	char *chosen;            /* the annotation that the recording took as steps; NULL: none */
	double from_pid;         /* the recording began with the begin of a step of this process */
};

static int read_names(struct search *s)
{
	const struct tl_description *d;

	s->names = calloc(s->t->descriptions.nr + 1, sizeof(*s->names));
	if (!s->names)
		return error_set(-ENOMEM, NULL, "out of memory for the steps");
	for (size_t i = 0; (d = timeline__description(s->t, i)); i++)
		s->names[i] = step_name(d->category, d->name, s->chosen);
	return 0;
}

/* What is known of steps where the recording was of some. */
static void read_schedule(struct search *s)
{
	cJSON *meta = timeline__meta_json(s->t, "steps");
	const cJSON *at = cJSON_GetObjectItemCaseSensitive(meta, "at");
	const cJSON *pid = cJSON_GetObjectItemCaseSensitive(meta, "pid");

	if (cJSON_IsString(at) && *at->valuestring)
		s->chosen = strdup(at->valuestring);
	if (cJSON_IsNumber(pid))
		s->from_pid = pid->valuedouble;
	cJSON_Delete(meta);
}

static int add_span(void *ctx, const struct tl_span *span, void *data)
{
	struct search *s = ctx;
	const struct step_name *name = &s->names[span->description->id - 1];
	struct tl_step *step;

	if (name->kind == STEP_NONE)
		return 0;
	step = bulk__push(s->found);
	if (!step)
		return error_set(-ENOMEM, NULL, "out of memory for the steps");
	*step = (struct tl_step){
		.start_ns = span->whole_start_ns,
		.end_ns = span->whole_end_ns,
		.number = name->number,
		.pid = tl_pid(s->t, span->thread),
		.thread = span->thread,
		.description = span->description->id,
		.flags = span->flags,
	};
	return 0;
}

static int by_thread(const void *pa, const void *pb, void *ctx)
{
	const struct tl_step *a = pa, *b = pb;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->thread != b->thread)
		return order_u64(a->thread, b->thread);
	if (a->start_ns != b->start_ns)
		return order_u64(a->start_ns, b->start_ns);
	return order_u64(b->end_ns, a->end_ns); /* the outer one first */
}

static struct tl_step *step_at(const struct bulk *steps, size_t i)
{
	return bulk__at(steps, i);
}

static enum step_kind kind_at(const struct search *s, size_t i)
{
	return s->names[step_at(s->found, i)->description - 1].kind;
}

/* The candidates that count of one process, in [from, to). */
struct choice {
	enum step_kind kind;
	uint32_t thread;
	size_t nr;
};

/* Which kind of step, and which thread's: the best kind, and of it the thread with most. */
static struct choice choose(const struct search *s, size_t from, size_t to)
{
	struct choice best = {0};

	for (int kind = STEP_OPTIMIZER; kind <= STEP_CHOSEN; kind++) {
		struct choice here = {.kind = (enum step_kind)kind};

		for (size_t i = from; i < to; i++) {
			uint32_t thread = step_at(s->found, i)->thread;

			if (here.thread != thread)
				here.nr = 0;
			here.thread = thread;
			here.nr += kind_at(s, i) == here.kind;
			if (here.nr && (best.kind < here.kind || here.nr > best.nr))
				best = here;
		}
	}
	return best;
}

/*
 * Keeps the chosen steps of one process, from `*kept` on. An optimizer's step ends one that began
 * where the one before it ended; what came before the first of them is not known, unless the
 * recording began there.
 */
static void keep(struct search *s, size_t from, size_t to, size_t *kept)
{
	struct choice choice = choose(s, from, to);
	uint64_t until_ns = 0, next = 0;
	bool first = true;

	if (choice.kind == STEP_OPTIMIZER && s->from_pid == step_at(s->found, from)->pid) {
		until_ns = timeline__thread(s->t, choice.thread)->recorded_from_ns;
		until_ns = until_ns ? until_ns : s->t->start_ns;
		first = false;
	}
	for (size_t i = from; i < to; i++) {
		struct tl_step step = *step_at(s->found, i);
		const struct step_name *name = &s->names[step.description - 1];

		if (name->kind != choice.kind || step.thread != choice.thread ||
		    (!first && step.start_ns < until_ns)) /* inside the one before */
			continue;
		if (choice.kind == STEP_OPTIMIZER) {
			step.start_ns = until_ns;
			step.number = next;
		} else if (!name->numbered) {
			step.number = next;
		}
		until_ns = step.end_ns;
		if (choice.kind != STEP_OPTIMIZER || !first)
			*step_at(s->found, (*kept)++) = step;
		next += choice.kind != STEP_OPTIMIZER || !first;
		first = false;
	}
}

static void keep_all(struct search *s)
{
	size_t from = 0, to, kept = 0;

	for (; from < s->found->nr; from = to) {
		pid_t pid = step_at(s->found, from)->pid;

		for (to = from; to < s->found->nr && step_at(s->found, to)->pid == pid; to++)
			;
		keep(s, from, to, &kept);
	}
	s->found->nr = kept;
}

int timeline__steps(struct kprof_capture *t, struct bulk *steps)
{
	static const struct tl_walker walker = {.end = add_span};
	struct search s = {.t = t, .found = steps};
	bool set = t->range.set;
	int err;

	*steps = (struct bulk){.size = sizeof(struct tl_step)};
	read_schedule(&s);
	err = read_names(&s);
	t->range.set = false; /* of all of the recording */
	if (!err)
		err = timeline__walk(t, &walker, &s);
	t->range.set = set;
	if (!err && bulk__sort(steps, 0, steps->nr, by_thread, NULL))
		err = error_set(-ENOMEM, NULL, "out of memory for the steps");
	if (!err)
		keep_all(&s);
	free(s.names);
	free(s.chosen);
	return err;
}
