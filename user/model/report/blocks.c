// SPDX-License-Identifier: BSD-2-Clause
/* Sums of what was allocated at a moment, by device, operator and stack. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kprof/memory.h"
#include "model/timeline/timeline.h"
#include "util/error.h"
#include "util/map64.h"
#include "util/util.h"

#define WAYS (KPROF_ALIVE_BY_STACK + 1)
#define MOST_DEVICES 256

struct row {
	struct kprof_alive_row row;
	uint64_t largest, first_ns; /* block */
	uint32_t stack, device;
};

struct device {
	struct kprof_alive_device sums;
	char name[TL_MEMORY_DEVICE_BYTES];
	uint32_t number;
};

struct kprof_alive {
	struct kprof_capture *t;
	struct device devices[MOST_DEVICES];
	size_t nr_devices;
	struct row *rows[WAYS];
	size_t nr[WAYS], cap[WAYS];
	struct map64 known[WAYS]; /* index of the row + 1 */
	bool unseen;              /* there was no allocator that tells */
	struct tl_call *calls;    /* KPROF_SAMPLE_MAX_FRAMES: of the stack that is asked for */
};

bool kprof_capture_has_alive(const struct kprof_capture *c)
{
	return timeline__has_blocks(c);
}

static int no_memory(void)
{
	return error_set(-ENOMEM, NULL, "no memory for a table of what is allocated");
}

static struct device *device_of(struct kprof_alive *a, uint32_t number)
{
	struct device *d;

	for (size_t i = 0; i < a->nr_devices; i++)
		if (a->devices[i].number == number)
			return &a->devices[i];
	if (a->nr_devices == MOST_DEVICES)
		return NULL;
	d = &a->devices[a->nr_devices++];
	*d = (struct device){.number = number};
	d->sums.name = timeline__memory_device(d->name, number);
	return d;
}

/* key: tells the rows of one device apart; below 2^32. NULL: no memory. */
static struct row *row_of(struct kprof_alive *a, enum kprof_alive_by by, const struct tl_block *b,
			  uint64_t key)
{
	uint64_t *slot = map64__at(&a->known[by], (uint64_t)b->device << 32 | key);

	if (!slot || vec_grow((void **)&a->rows[by], &a->cap[by], a->nr[by], sizeof(*a->rows[by])))
		return NULL;
	if (!*slot) {
		a->rows[by][a->nr[by]] = (struct row){
			.first_ns = UINT64_MAX, .stack = b->stack, .device = b->device};
		*slot = ++a->nr[by];
	}
	return &a->rows[by][*slot - 1];
}

static void add_to(struct row *r, const struct tl_block *b)
{
	r->row.blocks++;
	add_capped(&r->row.bytes, b->bytes);
	if (b->bytes > r->largest) {
		r->largest = b->bytes;
		r->row.op = b->op;
	}
	if (b->time_ns < r->first_ns)
		r->first_ns = b->time_ns;
}

static int add_block(void *ctx, const struct tl_block *b)
{
	struct kprof_alive *a = ctx;
	struct device *d = b->freed_ns ? NULL : device_of(a, b->device);
	struct row *by_op, *by_stack;

	if (!d) /* freed, or of a device too many, which no recording has */
		return 0;
	d->sums.blocks++;
	add_capped(&d->sums.bytes, b->bytes);
	by_op = row_of(a, KPROF_ALIVE_BY_OP, b, b->op_id);
	if (by_op)
		add_to(by_op, b);
	by_stack = by_op ? row_of(a, KPROF_ALIVE_BY_STACK, b, b->stack) : NULL;
	if (!by_stack)
		return no_memory();
	add_to(by_stack, b);
	return 0;
}

static int by_bytes(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->row.bytes != y->row.bytes)
		return x->row.bytes > y->row.bytes ? -1 : 1;
	if (x->first_ns != y->first_ns)
		return x->first_ns < y->first_ns ? -1 : 1;
	return strcmp(x->row.op, y->row.op);
}

static void settle(struct kprof_alive *a)
{
	uint64_t end_ns = kprof_capture_info(a->t)->end_mono_ns;

	for (int by = 0; by < WAYS; by++) {
		for (size_t i = 0; i < a->nr[by]; i++) {
			struct row *r = &a->rows[by][i];

			r->row.device = device_of(a, r->device)->sums.name;
			r->row.oldest_ns = end_ns > r->first_ns ? end_ns - r->first_ns : 0;
			r->row.has_stack = by == KPROF_ALIVE_BY_STACK && r->stack;
		}
		if (a->nr[by])
			qsort(a->rows[by], a->nr[by], sizeof(*a->rows[by]), by_bytes);
	}
}

static uint64_t number(const cJSON *o, const char *key)
{
	double v = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(o, key));

	return v > 0 && v < (double)INT64_MAX ? (uint64_t)v : 0;
}

/* What the recording has counted besides. */
static void add_counts(struct kprof_alive *a)
{
	uint64_t start_ns = kprof_capture_info(a->t)->start_mono_ns;
	cJSON *meta = timeline__meta_json(a->t, "memory_alive");
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(meta, "devices"), *o;

	a->unseen = cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(meta, "allocator_seen"));
	cJSON_ArrayForEach(o, list)
	{
		uint64_t type = number(o, "device_type"), id = number(o, "device_id"), peak_ns;
		struct device *d = device_of(a, type && type <= INT8_MAX && id <= INT8_MAX
							? (uint32_t)type << 8 | (uint32_t)id
							: TL_MEMORY_CPU);

		if (!d)
			continue;
		d->sums.allocated_bytes = number(o, "allocated_bytes");
		d->sums.reserved_bytes = number(o, "reserved_bytes");
		d->sums.peak_bytes = number(o, "peak_bytes");
		d->sums.peak_reserved_bytes = number(o, "peak_reserved_bytes");
		d->sums.allocations = number(o, "allocations");
		d->sums.frees = number(o, "frees");
		d->sums.earlier = number(o, "frees_of_earlier");
		d->sums.unseen = number(o, "frees_not_seen");
		d->sums.not_kept = number(o, "not_kept");
		peak_ns = number(o, "peak_mono_ns");
		d->sums.peak_at_ns = peak_ns > start_ns ? peak_ns - start_ns : 0;
	}
	cJSON_Delete(meta);
}

int kprof_alive_new(struct kprof_capture *c, struct kprof_alive **out)
{
	struct kprof_alive *a = calloc(1, sizeof(*a));
	int err;

	error_clear();
	if (!a)
		return no_memory();
	a->t = c;
	a->calls = calloc(KPROF_SAMPLE_MAX_FRAMES, sizeof(*a->calls));
	add_counts(a);
	err = a->calls ? timeline__blocks(c, 0, add_block, a) : no_memory();
	if (err) {
		kprof_alive_free(a);
		return err;
	}
	settle(a);
	*out = a;
	return 0;
}

void kprof_alive_free(struct kprof_alive *a)
{
	if (!a)
		return;
	for (int by = 0; by < WAYS; by++) {
		free(a->rows[by]);
		map64__free(&a->known[by]);
	}
	free(a->calls);
	free(a);
}

pid_t kprof_alive_process(const struct kprof_alive *a, const char **name)
{
	const struct tl_process *p = timeline__process(a->t, 0);

	*name = p ? p->comm : "";
	return p ? p->pid : 0;
}

bool kprof_alive_seen(const struct kprof_alive *a)
{
	return !a->unseen;
}

int kprof_alive_device(const struct kprof_alive *a, size_t i, struct kprof_alive_device *out)
{
	if (i >= a->nr_devices)
		return -ENOENT;
	*out = a->devices[i].sums;
	return 0;
}

const struct kprof_alive_row *kprof_alive_row(const struct kprof_alive *a, enum kprof_alive_by by,
					      size_t i)
{
	return i < a->nr[by] ? &a->rows[by][i].row : NULL;
}

size_t kprof_alive_frames(const struct kprof_alive *a, size_t i, struct kprof_frame *to,
			  size_t room)
{
	const struct tl_call *calls = a->calls;
	size_t nr = i < a->nr[KPROF_ALIVE_BY_STACK] ? room : 0;

	if (nr > KPROF_SAMPLE_MAX_FRAMES)
		nr = KPROF_SAMPLE_MAX_FRAMES;
	if (nr)
		nr = timeline__calls(a->t, a->rows[KPROF_ALIVE_BY_STACK][i].stack, a->calls, nr);
	for (size_t k = 0; k < nr; k++)
		to[k] = (struct kprof_frame){
			.kind = (enum kprof_frame_kind)calls[k].frame->kind,
			.function = calls[k].line->function,
			.name = calls[k].line->full,
			.file = calls[k].line->file,
			.line = calls[k].line->line,
			.module = calls[k].frame->module ? calls[k].frame->module->path : "",
			.op = calls[k].frame->op,
		};
	return nr;
}
