// SPDX-License-Identifier: BSD-2-Clause
/* What the capture's metadata says of the recording's own cost. Any of it may be missing or odd. */
#include "kprof/overhead.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/timeline/timeline.h"

/* More than a recording writes of each, and few enough to be looked for one by one. */
#define MOST_STEPS 384
#define MOST_OPERATORS 128
/* Longer times, which no recording has, would not fit. */
#define MOST_NS 1e18

struct kprof_overhead {
	cJSON *root;
	const cJSON *ledger;
	struct kprof_overhead_sums sums;
};

static const char *const part_names[KPROF_OVERHEAD_PARTS] = {
	[KPROF_OVERHEAD_TRAPS] = "traps",     [KPROF_OVERHEAD_BPF] = "bpf",
	[KPROF_OVERHEAD_SAMPLES] = "samples", [KPROF_OVERHEAD_OWN] = "own",
	[KPROF_OVERHEAD_HELPERS] = "helpers", [KPROF_OVERHEAD_AGENTS] = "agents",
};

const char *kprof_overhead_part_name(enum kprof_overhead_part part)
{
	return part_names[part];
}

static double number(const cJSON *object, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

	return cJSON_IsNumber(item) && isfinite(item->valuedouble) && item->valuedouble > 0
		       ? item->valuedouble
		       : 0;
}

static uint64_t whole(const cJSON *object, const char *name)
{
	double value = number(object, name);

	return value < MOST_NS ? (uint64_t)value : 0;
}

static const cJSON *member(const cJSON *object, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(object, name);
}

static const cJSON *item_at(const cJSON *list, size_t i, size_t most)
{
	return i < most ? cJSON_GetArrayItem(list, (int)i) : NULL;
}

static const cJSON *step_at(const struct kprof_overhead *o, size_t i)
{
	return item_at(member(o->ledger, "steps"), i, MOST_STEPS);
}

static void take_text(const cJSON *object, const char *name, char *to, size_t size)
{
	const cJSON *item = member(object, name);

	snprintf(to, size, "%s", cJSON_IsString(item) ? item->valuestring : "");
}

static void read_sums(const cJSON *from, struct kprof_overhead_sums *out)
{
	const cJSON *memory = member(from, "memory");
	char of[16];

	take_text(from, "of", of, sizeof(of));
	out->machine = !strcmp(of, "machine");
	out->base_ns = whole(from, "base_ns");
	out->cost_ns = whole(from, "cost_ns");
	out->share = number(from, "share");
	out->worst = number(from, "worst_second_share");
	out->bound = number(from, "bound");
	out->over_ns = whole(from, "over_bound_ns");
	out->longest_over_ns = whole(from, "longest_over_bound_ns");
	for (int i = 0; i < KPROF_OVERHEAD_PARTS; i++)
		out->part_ns[i] = whole(member(member(from, "parts"), part_names[i]), "ns");
	out->resident_bytes = whole(memory, "resident_bytes");
	out->most_resident_bytes = whole(memory, "most_resident_bytes");
	out->kernel_bytes = whole(memory, "kernel_maps_bytes");
	out->nr_steps = (size_t)cJSON_GetArraySize(member(from, "steps"));
	if (out->nr_steps > MOST_STEPS)
		out->nr_steps = MOST_STEPS;
}

int kprof_overhead_new(const struct kprof_capture *c, struct kprof_overhead **out)
{
	struct kprof_overhead *o = *out = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	o->root = timeline__meta_json(c, "overhead");
	o->ledger = member(o->root, "ledger");
	if (!cJSON_IsObject(o->ledger))
		return 0;
	read_sums(o->ledger, &o->sums);
	return 1;
}

void kprof_overhead_free(struct kprof_overhead *o)
{
	if (!o)
		return;
	cJSON_Delete(o->root);
	free(o);
}

const struct kprof_overhead_sums *kprof_overhead_sums(const struct kprof_overhead *o)
{
	return &o->sums;
}

int kprof_overhead_step(const struct kprof_overhead *o, size_t i, struct kprof_overhead_step *out)
{
	const cJSON *step = step_at(o, i);

	memset(out, 0, sizeof(*out));
	if (!step)
		return -ENOENT;
	take_text(step, "step", out->step, sizeof(out->step));
	out->at_ns = whole(step, "at_ns");
	out->share = number(step, "share");
	out->back_ns = whole(step, "back_ns");
	out->from_hz = number(step, "from_hz");
	out->to_hz = number(step, "to_hz");
	out->nr_operators = (uint32_t)cJSON_GetArraySize(member(step, "operators"));
	return 0;
}

int kprof_overhead_operator(const struct kprof_overhead *o, size_t i, size_t k,
			    struct kprof_overhead_operator *out)
{
	const cJSON *one = item_at(member(step_at(o, i), "operators"), k, MOST_OPERATORS);

	memset(out, 0, sizeof(*out));
	if (!one)
		return -ENOENT;
	take_text(one, "name", out->name, sizeof(out->name));
	out->calls_a_second = number(one, "calls_a_second");
	out->mean_ns = number(one, "mean_ns");
	out->for_ns = whole(one, "for_ns");
	out->bursts = (uint32_t)fmin(number(one, "bursts"), UINT32_MAX);
	out->calls = number(one, "calls");
	out->calls_error = number(one, "calls_error");
	out->ns = fmin(number(one, "ns"), MOST_NS);
	out->ns_error = fmin(number(one, "ns_error"), MOST_NS);
	return 0;
}
