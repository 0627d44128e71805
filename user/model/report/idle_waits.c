// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a thread waited for in a gap, as a text: the wait that took most of the gap, who ended it,
 * and what that thread had waited for until then, and so on.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/report/impl.h"
#include "util/bulk.h"
#include "util/error.h"
#include "util/map64.h"
#include "util/util.h"

#define MOST_DEPTH 4    /* how far it is followed who waited for whom */
#define MOST_TEXTS 1024 /* further ones are told as "waiting" */
#define TEXT_BYTES 256

struct idle_waits {
	struct kprof_capture *t;
	struct bulk waits;   /* struct tl_wait */
	struct vec texts;    /* char * */
	struct map64 number; /* index + 1, by hash of the text */
};

int idle_waits__new(struct kprof_capture *t, struct idle_waits **out)
{
	struct idle_waits *w;
	int err;

	*out = NULL;
	if (!kprof_capture_meta(t, "waits"))
		return 0;
	w = calloc(1, sizeof(*w));
	if (!w)
		return error_set(-ENOMEM, NULL, "out of memory for waits");
	w->t = t;
	err = timeline__list_waits(t, NULL, NULL, &w->waits);
	if (err)
		idle_waits__free(w);
	else
		*out = w;
	return err;
}

void idle_waits__free(struct idle_waits *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->texts.nr; i++)
		free(((char **)w->texts.data)[i]);
	free(w->texts.data);
	map64__free(&w->number);
	bulk__free(&w->waits);
	free(w);
}

static uint64_t overlap(uint64_t start_ns, uint64_t end_ns, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t start = start_ns > from_ns ? start_ns : from_ns;
	uint64_t end = end_ns < to_ns ? end_ns : to_ns;

	return end > start ? end - start : 0;
}

/* The longest wait of the thread in this time, if its waits are more than half of it. */
static const struct tl_wait *longest(const struct idle_waits *w, uint32_t thread, uint64_t from_ns,
				     uint64_t to_ns)
{
	const struct tl_wait *most = NULL;
	uint64_t most_ns = 0, all_ns = 0;

	for (size_t i = timeline__find_wait(&w->waits, thread, from_ns); i < w->waits.nr; i++) {
		const struct tl_wait *wait = bulk__at(&w->waits, i);
		uint64_t ns = overlap(wait->start_ns, wait->end_ns, from_ns, to_ns);

		if (wait->thread != thread || wait->start_ns >= to_ns)
			break;
		all_ns += ns;
		if (ns > most_ns) {
			most_ns = ns;
			most = wait;
		}
	}
	return all_ns > (to_ns - from_ns) / 2 ? most : NULL;
}

/* Whether the thread mostly missed a CPU in that part of its wait. */
static bool is_for_cpu(const struct tl_wait *wait, uint64_t from_ns, uint64_t to_ns)
{
	return overlap(wait->wake_ns, wait->end_ns, from_ns, to_ns) >
	       overlap(wait->start_ns, wait->wake_ns, from_ns, to_ns);
}

static const char *waker_name(const struct idle_waits *w, const struct tl_wait *wait)
{
	if (wait->waker)
		return timeline__thread(w->t, wait->waker - 1)->title;
	return timeline__string(w->t, wait->waker_comm);
}

/* "waiting: pipe read, for loader, waiting: disk" */
static void tell(const struct idle_waits *w, const struct tl_wait *wait, uint64_t from_ns,
		 uint64_t to_ns, char text[TEXT_BYTES])
{
	size_t used = 0;

	for (int depth = 0; wait && depth < MOST_DEPTH; depth++) {
		const char *name = waker_name(w, wait);
		bool for_cpu = is_for_cpu(wait, from_ns, to_ns);
		int n = snprintf(text + used, TEXT_BYTES - used, "%swaiting: %s", depth ? ", " : "",
				 for_cpu ? "run queue" : wait->reason);

		used += n > 0 ? (size_t)n : 0;
		if (for_cpu || !*name || used >= TEXT_BYTES)
			return;
		n = snprintf(text + used, TEXT_BYTES - used, ", for %s", name);
		used += n > 0 ? (size_t)n : 0;
		if (!wait->waker || used >= TEXT_BYTES)
			return;
		/* what the waker did, for as long as it was waited for */
		from_ns = from_ns > wait->start_ns ? from_ns : wait->start_ns;
		to_ns = to_ns < wait->wake_ns ? to_ns : wait->wake_ns;
		wait = to_ns > from_ns ? longest(w, wait->waker - 1, from_ns, to_ns) : NULL;
	}
}

uint32_t idle_waits__of(struct idle_waits *w, uint32_t thread, uint64_t from_ns, uint64_t to_ns)
{
	const struct tl_wait *wait = w ? longest(w, thread, from_ns, to_ns) : NULL;
	char text[TEXT_BYTES], **slot;
	uint64_t *number;

	if (!wait)
		return 0;
	tell(w, wait, from_ns, to_ns, text);
	if (w->texts.nr >= MOST_TEXTS && !map64__get(&w->number, hash64_text(0, text) >> 1))
		snprintf(text, sizeof(text), "waiting");
	number = map64__at(&w->number, hash64_text(0, text) >> 1);
	if (!number)
		return 0;
	if (!*number) {
		slot = vec_push(&w->texts, sizeof(*slot));
		if (!slot)
			return 0;
		*slot = strdup(text);
		*number = w->texts.nr;
	}
	return (uint32_t)*number;
}

const char *idle_waits__text(const struct idle_waits *w, uint32_t number)
{
	const char *text = ((char **)w->texts.data)[number - 1];

	return text ? text : "waiting";
}
