// SPDX-License-Identifier: BSD-2-Clause
/* Implements the functions of include/kprof.h for samples. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kprof/unwind.h"
#include "model/timeline/timeline.h"
#include "store/store.h"
#include "util/error.h"
#include "util/util.h"

struct samples {
	struct kprof_capture *t;
	int (*fn)(void *ctx, const struct kprof_sample *s);
	void *ctx;
	/*
	 * Frames of the latest stack, which are reused: consecutive samples often have the same
	 * one.
	 */
	uint32_t stack;
	bool cut;
	size_t nr;
	struct tl_call calls[KPROF_SAMPLE_MAX_FRAMES + 1];
	struct kprof_frame frames[KPROF_SAMPLE_MAX_FRAMES];
};

static struct kprof_frame frame_of(const struct tl_call *call)
{
	const struct tl_frame *f = call->frame;

	return (struct kprof_frame){
		.kind = (enum kprof_frame_kind)f->kind,
		.inlined = call->line != &f->lines[f->nr_lines - 1],
		.function = call->line->function,
		.name = call->line->full,
		.file = call->line->file,
		.line = call->line->line,
		.module = f->module ? f->module->path : "",
		.build_id = f->module ? f->module->build_id : "",
		.address = f->address,
		.op = f->op,
	};
}

static void fill_frames(struct samples *s, uint32_t stack)
{
	s->stack = stack;
	s->nr = timeline__calls(s->t, stack, s->calls, ARRAY_SIZE(s->calls));
	s->cut = s->nr > KPROF_SAMPLE_MAX_FRAMES;
	s->nr -= s->cut;
	for (size_t i = 0; i < s->nr; i++)
		s->frames[i] = frame_of(&s->calls[i]);
}

static int on_sample(void *ctx, const struct store_record *r)
{
	struct samples *s = ctx;
	const struct tl_thread *th = timeline__thread(s->t, r->sample.thread);
	struct kprof_sample sample = {
		.time_mono_ns = r->sample.time_ns,
		.weight_ns = r->sample.weight_ns,
		.pid = th->pid,
		.tid = th->tid,
		.flags = r->sample.flags,
		.frames = s->frames,
	};

	if (r->sample.stack != s->stack)
		fill_frames(s, r->sample.stack);
	sample.nr_frames = s->nr;
	if (s->cut)
		sample.flags |= KPROF_SAMPLE_CUT;
	return s->fn(s->ctx, &sample);
}

int kprof_capture_samples(struct kprof_capture *c,
			  int (*fn)(void *ctx, const struct kprof_sample *s), void *ctx)
{
	struct samples *s = calloc(1, sizeof(*s));
	int err;

	error_clear();
	if (!s)
		return error_set(-ENOMEM, NULL, "out of memory for samples");
	s->t = c;
	s->fn = fn;
	s->ctx = ctx;
	err = timeline__samples(s->t, 0, on_sample, s);
	free(s);
	return err;
}

const char *kprof_sample_end(uint32_t end)
{
	static const char *const names[KPROF_UNWIND_NR_ENDS] = {
		[KPROF_UNWIND_GOING] = "not walked",
		[KPROF_UNWIND_WHOLE] = "whole",
		[KPROF_UNWIND_NO_MAPPING] = "no code at the address",
		[KPROF_UNWIND_NOT_YET] = "table not ready",
		[KPROF_UNWIND_NO_TABLE] = "no table",
		[KPROF_UNWIND_NO_RULE] = "code without a rule",
		[KPROF_UNWIND_ODD_RULE] = "odd rule",
		[KPROF_UNWIND_LOST_REGISTER] = "register not known",
		[KPROF_UNWIND_BAD_STACK] = "stack not readable",
		[KPROF_UNWIND_NO_PROGRESS] = "no progress",
		[KPROF_UNWIND_TOO_DEEP] = "too deep",
	};

	return end < KPROF_UNWIND_NR_ENDS ? names[end] : "unknown";
}

_Static_assert(KPROF_SAMPLE_END_NONE == (int)KPROF_UNWIND_GOING &&
		       KPROF_SAMPLE_END_WHOLE == (int)KPROF_UNWIND_WHOLE,
	       "samples: the library's numbers are the walk's");

static int add_sample(void *ctx, const struct store_record *r)
{
	struct kprof_sample_stats *stats = ctx;
	uint32_t end = (r->sample.flags & KPROF_SAMPLE_END) >> KPROF_SAMPLE_END_SHIFT;
	bool cut = r->sample.flags & KPROF_SAMPLE_CUT;

	stats->samples++;
	add_capped(&stats->weight_ns, r->sample.weight_ns);
	stats->ends[end]++;
	stats->cut += cut;
	stats->walked += end != KPROF_SAMPLE_END_NONE;
	stats->whole += end == KPROF_SAMPLE_END_WHOLE && !cut;
	return 0;
}

uint64_t timeline__lost_samples(const struct kprof_capture *t)
{
	const struct kprof_source *s;
	uint64_t lost = 0;

	for (size_t i = 0; (s = kprof_capture_source(t, i)); i++)
		if (!strcmp(s->name, "samples"))
			lost += s->dropped + s->missed;
	return lost;
}

int kprof_capture_sample_stats(struct kprof_capture *c, struct kprof_sample_stats *out)
{
	error_clear();
	*out = (struct kprof_sample_stats){.lost = timeline__lost_samples(c)};
	return timeline__samples(c, 0, add_sample, out);
}

/* The number of walks that an entry of the metadata states; 0: none, or it is no such number. */
static uint64_t walks_of(const cJSON *entry)
{
	double nr = cJSON_IsNumber(entry) ? entry->valuedouble : 0;

	return nr >= 1 && nr < (double)UINT64_MAX ? (uint64_t)nr : 0;
}

int kprof_capture_walks(const struct kprof_capture *c,
			int (*fn)(void *ctx, const char *runtime, const char *end, uint64_t nr),
			void *ctx)
{
	cJSON *stacks = timeline__meta_json(c, "stacks");
	const cJSON *runtimes = cJSON_GetObjectItemCaseSensitive(stacks, "runtimes");
	int err = 0;

	for (const cJSON *r = cJSON_IsObject(runtimes) ? runtimes->child : NULL; r && !err;
	     r = r->next)
		for (const cJSON *e = cJSON_IsObject(r) ? r->child : NULL; e && !err; e = e->next)
			if (walks_of(e))
				err = fn(ctx, r->string, e->string, walks_of(e));
	cJSON_Delete(stacks);
	return err;
}
