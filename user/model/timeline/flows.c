// SPDX-License-Identifier: BSD-2-Clause
/*
 * Flows from operators to the autograd nodes that they have made, as Kineto has them: a node bears
 * the number of the thread that made it, and the sequence number that was the next one of that
 * thread. Of the operators that began while it was, the last one made the node.
 */
#include "model/timeline/impl.h"

#include <stdlib.h>
#include <string.h>

#include "catalog/sequence.h"
#include "util/error.h"
#include "util/order.h"
#include "util/util.h"

/*
 * Operators of a thread that are remembered until their nodes have run, by the lowest bits of their
 * numbers: so many at most. A node that runs after more than these have been made has no flow.
 */
#define FIRST_FORWARDS 1024u
#define MOST_FORWARDS (1u << 16)
#define MOST_OF_ALL (1u << 21) /* of all threads together: 64 MiB */

/*
 * What agents observed is in the order of time for each thread only: other threads' may come that
 * much later. So a node waits for so long until its operator is looked for.
 */
#define LATE_NS (1000 * NSEC_PER_MSEC)

struct forward {
	uint64_t number; /* + 1; 0: none */
	uint64_t span, start_ns;
	bool maybe; /* not known whether it is the operator's number */
};

struct forwards { /* of one thread */
	struct forward *list;
	uint32_t nr; /* a power of two, or 0 */
};

struct node {
	uint64_t number, maker; /* PID << 32 | number of the thread that made it */
	uint64_t span, start_ns;
};

struct search {
	struct kprof_capture *t;
	struct forwards *threads; /* by index */
	uint64_t nr_places;       /* of all threads */
	struct map64 numbers;     /* PID << 32 | a thread's number → its index + 1 */
	struct bulk *found;       /* struct tl_flow */
	struct node *nodes;       /* that wait: from `at` to `nr`, in the order of the capture */
	size_t at, nr, cap;
	const char *keys[4];
};

static int no_memory(void)
{
	return error_set(-ENOMEM, NULL, "no memory for flows");
}

static struct forward *place_of(const struct forwards *f, uint64_t number)
{
	return &f->list[number & (f->nr - 1)];
}

/* Is the place of this number taken by another one? */
static bool is_taken(const struct forwards *f, uint64_t number)
{
	return place_of(f, number)->number && place_of(f, number)->number != number + 1;
}

/* Makes room for more where it is needed, as long as there may be more. */
static int grow(struct search *s, struct forwards *f, uint64_t number)
{
	while (!f->nr || (f->nr < MOST_FORWARDS && is_taken(f, number))) {
		struct forwards more = {.nr = f->nr ? 2 * f->nr : FIRST_FORWARDS};

		if (s->nr_places + more.nr - f->nr > MOST_OF_ALL)
			return 0;
		more.list = calloc(more.nr, sizeof(*more.list));
		if (!more.list)
			return no_memory();
		for (uint32_t i = 0; i < f->nr; i++)
			if (f->list[i].number)
				*place_of(&more, f->list[i].number - 1) = f->list[i];
		free(f->list);
		s->nr_places += more.nr - f->nr;
		*f = more;
	}
	return 0;
}

static uint64_t thread_key(const struct search *s, const struct tl_span *span, uint64_t number)
{
	return (uint64_t)tl_pid(s->t, span->thread) << 32 | (uint32_t)number;
}

/* A node has waited: finds the operator that made it. */
static int look_up(struct search *s, const struct node *node)
{
	uint64_t thread = map64__get(&s->numbers, node->maker);
	struct forwards *f = thread ? &s->threads[thread - 1] : NULL;
	struct forward *from = f && f->nr ? place_of(f, node->number) : NULL;
	struct tl_flow *added;

	if (!from || from->number != node->number + 1)
		return 0;
	from->number = 0; /* only the first run of a node has one */
	if (from->maybe)
		return 0;
	added = bulk__push(s->found);
	if (!added)
		return no_memory();
	*added = (struct tl_flow){from->span, node->span};
	return 0;
}

static int look_up_before(struct search *s, uint64_t time_ns)
{
	int err = 0;

	while (s->at < s->nr && s->nodes[s->at].start_ns < time_ns && !err)
		err = look_up(s, &s->nodes[s->at++]);
	return err;
}

static int on_forward(struct search *s, const struct tl_span *span, uint64_t number, bool maybe)
{
	struct forwards *f = &s->threads[span->thread];
	struct forward *to;
	int err = grow(s, f, number);

	if (err || !f->nr)
		return err;
	if (is_taken(f, number)) /* there is no more room: nodes can't wait */
		err = look_up_before(s, UINT64_MAX);
	if (err)
		return err;
	to = place_of(f, number);
	if (to->number != number + 1 || to->start_ns <= span->start_ns)
		*to = (struct forward){number + 1, span->id, span->start_ns, maybe};
	return 0;
}

static int on_node(struct search *s, const struct tl_span *span, uint64_t number, uint64_t by)
{
	if (s->nr == s->cap && s->at > s->cap / 2) {
		s->nr -= s->at;
		memmove(s->nodes, s->nodes + s->at, s->nr * sizeof(*s->nodes));
		s->at = 0;
	}
	if (vec_grow((void **)&s->nodes, &s->cap, s->nr, sizeof(*s->nodes)))
		return no_memory();
	s->nodes[s->nr++] =
		(struct node){number, thread_key(s, span, by), span->id, span->start_ns};
	return 0;
}

static int on_span(void *ctx, const struct tl_span *span, void *data)
{
	struct search *s = ctx;
	const struct store_attr *found[4] = {0};
	uint64_t *thread;
	int err = span->end_ns > LATE_NS ? look_up_before(s, span->end_ns - LATE_NS) : 0;

	if (err)
		return err;
	for (uint32_t i = 0; i < span->nr_attrs; i++)
		for (int k = 0; k < 4; k++)
			if (span->attrs[i].type == STORE_ATTR_U64 &&
			    timeline__string(s->t, span->attrs[i].key) == s->keys[k])
				found[k] = &span->attrs[i];
	if (found[3])
		return on_forward(s, span, found[3]->value, true);
	if (!found[0])
		return 0;
	if (found[1])
		return on_node(s, span, found[0]->value, found[1]->value);
	if (found[2] && found[2]->value) {
		thread = map64__at(&s->numbers, thread_key(s, span, found[2]->value));
		if (!thread)
			return no_memory();
		*thread = span->thread + 1ull;
	}
	return on_forward(s, span, found[0]->value, false);
}

/* The address of the capture's own string of this text; NULL: it has none. */
static const char *own_string(const struct kprof_capture *t, const char *text)
{
	for (uint32_t i = 1; i < t->strings.nr; i++)
		if (!strcmp(tl_string(t, i), text))
			return tl_string(t, i);
	return NULL;
}

static int by_from(const void *a, const void *b, void *ctx)
{
	return order_u64(((const struct tl_flow *)a)->from, ((const struct tl_flow *)b)->from);
}

int timeline__flows(struct kprof_capture *t, pid_t pid, struct bulk *flows)
{
	static const char *const keys[] = {SEQUENCE_KEY, SEQUENCE_FORWARD_KEY, SEQUENCE_THREAD_KEY,
					   SEQUENCE_MAYBE_KEY};
	const struct tl_walker walker = {.pid = pid, .end = on_span};
	struct search s = {.t = t, .found = flows};
	int err;

	*flows = (struct bulk){.size = sizeof(struct tl_flow)};
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		s.keys[i] = own_string(t, keys[i]);
	if (!s.keys[0] || !s.keys[1])
		return 0;
	s.threads = calloc(t->threads.nr + 1, sizeof(*s.threads));
	err = s.threads ? timeline__walk(t, &walker, &s) : no_memory();
	if (!err)
		err = look_up_before(&s, UINT64_MAX);
	free(s.nodes);
	for (size_t i = 0; s.threads && i < t->threads.nr; i++)
		free(s.threads[i].list);
	free(s.threads);
	map64__free(&s.numbers);
	if (!err && bulk__sort(flows, 0, flows->nr, by_from, NULL))
		err = no_memory();
	return err;
}
