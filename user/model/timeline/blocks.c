// SPDX-License-Identifier: BSD-2-Clause
/* Streams what was allocated at a moment. */
#include "model/timeline/impl.h"

#include <cjson/cJSON.h>

struct blocks {
	struct kprof_capture *t;
	int (*fn)(void *ctx, const struct tl_block *b);
	void *ctx;
};

uint64_t timeline__blocks_since_ns(const struct kprof_capture *t)
{
	cJSON *sums = timeline__meta_json(t, "memory_alive");
	double ns =
		cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(sums, "freed_since_mono_ns"));

	cJSON_Delete(sums);
	return ns > 0 && ns < (double)INT64_MAX ? (uint64_t)ns : 0;
}

static int on_instant(void *ctx, const struct store_record *r)
{
	const struct blocks *blocks = ctx;
	struct tl_block b;

	return tl_block__read(blocks->t, r, &b) ? blocks->fn(blocks->ctx, &b) : 0;
}

int timeline__blocks(struct kprof_capture *t, pid_t pid,
		     int (*fn)(void *ctx, const struct tl_block *b), void *ctx)
{
	struct blocks blocks = {t, fn, ctx};

	return timeline__has_blocks(t) ? timeline__details(t, pid, on_instant, &blocks) : 0;
}
