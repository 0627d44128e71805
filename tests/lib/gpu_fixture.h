/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What kprof sees of the agent: the tests' own kprof_agent_batch() reads every batch as it is
 * handed over, checks what holds for each (whole records, names told before they are used), and
 * counts.
 */
#ifndef KPROF_TESTS_GPU_FIXTURE_H
#define KPROF_TESTS_GPU_FIXTURE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "gpu/base/probe.h"
#include "kprof/agent.h"
#include "unit.h"

#define SEEN_NAMES 200000
#define SEEN_KEPT 64

static struct {
	pthread_mutex_t lock;
	uint32_t session; /* of the last batch */
	uint64_t batches, bytes, records[16], broken, nameless, names;
	uint64_t sum; /* of activities' correlations */
	uint32_t last_bytes;
	struct kprof_agent_name *name[SEEN_NAMES]; /* by id */
	uint8_t kept[SEEN_KEPT][256];              /* the last records that are no names */
	unsigned int nr_kept;
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER};

/*
 * Called once in the middle of this thread's next hand-over: what a signal's handler may do there.
 */
static _Thread_local void (*interrupt)(void);

static inline void seen_clear(void)
{
	for (size_t i = 0; i < SEEN_NAMES; i++)
		free(seen.name[i]);
	memset((char *)&seen + sizeof(seen.lock), 0, sizeof(seen) - sizeof(seen.lock));
}

static inline const char *seen_name(uint32_t id)
{
	static char text[KPROF_WIRE_BATCH_BYTES + 1];
	const struct kprof_agent_name *n = id < SEEN_NAMES ? seen.name[id] : NULL;

	if (!n)
		return "";
	memcpy(text, n->text, n->bytes);
	text[n->bytes] = '\0';
	return text;
}

static inline void seen_record(const struct kprof_agent_head *h)
{
	if (h->kind < 16)
		seen.records[h->kind]++;
	if (h->kind == KPROF_AGENT_NAME) {
		if (h->name >= SEEN_NAMES || h->name != ++seen.names || seen.name[h->name]) {
			seen.broken++;
			return;
		}
		seen.name[h->name] = malloc(h->size);
		memcpy(seen.name[h->name], h, h->size);
		return;
	}
	if (h->kind == KPROF_AGENT_INPUTS)
		return; /* its id is none of a name */
	if (h->name && (h->name >= SEEN_NAMES || !seen.name[h->name]))
		seen.nameless++;
	if (h->kind == KPROF_AGENT_ACTIVITY || h->kind == KPROF_AGENT_KERNEL)
		seen.sum += ((const struct kprof_agent_activity *)h)->correlation;
	if (seen.nr_kept < SEEN_KEPT && h->size <= sizeof(seen.kept[0]))
		memcpy(seen.kept[seen.nr_kept++], h, h->size);
}

void kprof_agent_batch(const void *data, uint32_t bytes)
{
	const struct kprof_agent_slot *slot =
		(const void *)((const char *)data - offsetof(struct kprof_agent_slot, data));
	const struct kprof_agent_head *h;

	void (*handler)(void) = interrupt;

	interrupt = NULL;
	if (handler)
		handler();
	pthread_mutex_lock(&seen.lock);
	seen.batches++;
	seen.bytes += bytes;
	seen.last_bytes = bytes;
	seen.session = slot->session;
	if (!bytes || bytes > KPROF_WIRE_BATCH_BYTES || bytes % 8)
		seen.broken++;
	for (uint32_t at = 0; at < bytes; at += h->size) {
		h = (const void *)((const char *)data + at);
		if (h->size < sizeof(*h) || h->size % 8 || at + h->size > bytes) {
			seen.broken++;
			break;
		}
		seen_record(h);
	}
	pthread_mutex_unlock(&seen.lock);
}

#endif
