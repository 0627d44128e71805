// SPDX-License-Identifier: BSD-2-Clause
/*
 * What is allocated, as torch.cuda.memory._snapshot() gives it to torch.cuda._memory_viz and its
 * viewer in the browser: segments with their blocks, and the events of a time before.
 *
 * What PyTorch's allocator has reserved from the driver it tells nobody piece by piece. So each run
 * of adjacent blocks is a segment, and nothing in it is free.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "sink/pickle/pickle.h"
#include "sink/sink.h"
#include "util/error.h"
#include "util/map64.h"
#include "util/util.h"

#define TYPE_CUDA 1
#define TYPE_OF(device) ((device) >> 8)
#define ID_OF(device) ((device)&0xff)
#define SMALL_BYTES (1u << 20) /* PyTorch has larger ones in segments of another kind */
#define MOST_FRAMES 1024
#define MOST_WORDS 64 /* keys, and values that are always the same */

struct event {
	uint64_t time_ns;
	const struct tl_block *block;
	bool free;
};

struct snapshot {
	struct kprof_capture *t;
	struct jsonw w;
	struct tl_block *blocks;
	size_t nr, cap;
	uint32_t type;     /* of the devices that are shown */
	uint64_t since_ns; /* from then on all events are known */
	/* Written already, each with its number: words by their place in the program, … */
	const char *words[MOST_WORDS];
	uint32_t nr_words;
	struct map64 stacks; /* 1: … and the frames of a stack: MOST_WORDS + its id */
	struct map64 ops; /* 1: … and an operator: MOST_WORDS + the number of stacks + its id */
	struct tl_call calls[MOST_FRAMES];
};

static int no_memory(void)
{
	return error_set(-ENOMEM, NULL, "no memory for a snapshot");
}

static int add(void *ctx, const struct tl_block *b)
{
	struct snapshot *s = ctx;
	uint32_t type = TYPE_OF(b->device);

	/* CUDA's if there are any, else those of another device, else the CPU's */
	if (type == TYPE_CUDA || s->type == 0 || (type && type < s->type && s->type != TYPE_CUDA))
		s->type = type == 0 ? s->type : type;
	if (vec_grow((void **)&s->blocks, &s->cap, s->nr, sizeof(*s->blocks)))
		return no_memory();
	s->blocks[s->nr++] = *b;
	return 0;
}

static void keep_type(struct snapshot *s)
{
	size_t nr = 0;

	for (size_t i = 0; i < s->nr; i++)
		if (TYPE_OF(s->blocks[i].device) == s->type)
			s->blocks[nr++] = s->blocks[i];
	s->nr = nr;
	if (s->type != TYPE_CUDA && nr)
		log_warn(NULL,
			 "nothing is allocated by CUDA's allocator: the pickle has %s as "
			 "PyTorch's viewer shows a GPU",
			 s->type ? "another device" : "the CPU's memory");
}

static int by_place(const void *a, const void *b)
{
	const struct tl_block *x = a, *y = b;

	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static int by_time(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return y->free - x->free; /* an address is freed before it is given out again */
}

/* A text of the program's own: written once, and referred to from then on. */
static void put_word(struct snapshot *s, const char *word)
{
	for (uint32_t i = 0; i < s->nr_words; i++)
		if (s->words[i] == word) {
			pickle_again(&s->w, i);
			return;
		}
	pickle_text(&s->w, word);
	if (s->nr_words == MOST_WORDS)
		return;
	pickle_remember(&s->w, s->nr_words);
	s->words[s->nr_words++] = word;
}

static void put_text(struct snapshot *s, const char *key, const char *value)
{
	put_word(s, key);
	pickle_text(&s->w, value);
}

static void put_int(struct snapshot *s, const char *key, uint64_t value)
{
	put_word(s, key);
	pickle_int(&s->w, value);
}

/* Is it there already? Then a reference to it is written; else the caller writes and remembers. */
static bool put_again(struct snapshot *s, struct map64 *known, uint32_t id, uint32_t number)
{
	uint64_t *slot = map64__at(known, id);

	if (slot && *slot) {
		pickle_again(&s->w, number);
		return true;
	}
	if (slot)
		*slot = 1;
	return false;
}

static void put_op(struct snapshot *s, const struct tl_block *b)
{
	uint32_t number = MOST_WORDS + (uint32_t)timeline__nr_stacks(s->t) + 1 + b->op_id;

	put_word(s, "operator");
	if (put_again(s, &s->ops, b->op_id, number))
		return;
	pickle_text(&s->w, b->op);
	pickle_remember(&s->w, number);
}

static void put_frame(struct snapshot *s, const struct tl_call *call)
{
	const struct tl_module *module = call->frame->module;

	pickle_open_dict(&s->w);
	put_text(s, "name", call->line->function);
	put_text(s, "filename", *call->line->file ? call->line->file : module ? module->path : "");
	put_int(s, "line", call->line->line);
	pickle_close_dict(&s->w);
}

/* The frames of a stack, innermost first; each stack's are written once. */
static void put_frames(struct snapshot *s, uint32_t stack)
{
	size_t nr;

	put_word(s, "frames");
	if (put_again(s, &s->stacks, stack, MOST_WORDS + stack))
		return;
	nr = timeline__calls(s->t, stack, s->calls, MOST_FRAMES);
	pickle_open_list(&s->w);
	for (size_t i = 0; i < nr; i++)
		put_frame(s, &s->calls[i]);
	pickle_close_list(&s->w);
	pickle_remember(&s->w, MOST_WORDS + stack);
}

/* ---- segments ---- */

static void put_block(struct snapshot *s, const struct tl_block *b)
{
	pickle_open_dict(&s->w);
	put_int(s, "address", b->addr);
	put_int(s, "size", b->bytes);
	put_int(s, "requested_size", b->bytes);
	put_word(s, "state");
	put_word(s, "active_allocated");
	put_frames(s, b->stack);
	put_op(s, b);
	pickle_close_dict(&s->w);
}

/* How many blocks from the first on are side by side, and their bytes together. */
static size_t run_of(const struct tl_block *first, size_t left, uint64_t *bytes)
{
	size_t nr = 1;

	for (*bytes = first->bytes; nr < left && first[nr].device == first->device &&
				    first[nr].addr == first->addr + *bytes;
	     nr++)
		*bytes += first[nr].bytes;
	return nr;
}

static void put_segment(struct snapshot *s, const struct tl_block *first, size_t nr, uint64_t bytes)
{
	pickle_open_dict(&s->w);
	put_int(s, "device", s->type ? ID_OF(first->device) : 0);
	put_int(s, "address", first->addr);
	put_int(s, "total_size", bytes);
	put_int(s, "allocated_size", bytes);
	put_int(s, "active_size", bytes);
	put_int(s, "requested_size", bytes);
	put_int(s, "stream", 0);
	put_word(s, "segment_type");
	put_word(s, first->bytes > SMALL_BYTES ? "large" : "small");
	put_frames(s, 0);
	put_word(s, "blocks");
	pickle_open_list(&s->w);
	for (size_t i = 0; i < nr; i++)
		put_block(s, &first[i]);
	pickle_close_list(&s->w);
	pickle_close_dict(&s->w);
}

static int put_segments(struct snapshot *s)
{
	struct tl_block *alive = calloc(s->nr + 1, sizeof(*alive));
	uint64_t bytes;
	size_t nr = 0, run;

	if (!alive)
		return no_memory();
	for (size_t i = 0; i < s->nr; i++)
		if (!s->blocks[i].freed_ns)
			alive[nr++] = s->blocks[i];
	qsort(alive, nr, sizeof(*alive), by_place);
	put_word(s, "segments");
	pickle_open_list(&s->w);
	for (size_t i = 0; i < nr; i += run) {
		run = run_of(&alive[i], nr - i, &bytes);
		put_segment(s, &alive[i], run, bytes);
	}
	pickle_close_list(&s->w);
	free(alive);
	return s->w.err;
}

/* ---- events ---- */

static void put_event(struct snapshot *s, const struct event *e, const char *action)
{
	pickle_open_dict(&s->w);
	put_word(s, "action");
	put_word(s, action);
	put_int(s, "addr", e->block->addr);
	put_int(s, "size", e->block->bytes);
	put_int(s, "stream", 0);
	put_int(s, "time_us", timeline__real_ns(s->t, e->time_ns) / 1000);
	put_frames(s, e->block->stack);
	pickle_close_dict(&s->w);
}

static void put_events(struct snapshot *s, const struct event *events, size_t nr, uint32_t id)
{
	pickle_open_list(&s->w);
	for (size_t i = 0; i < nr; i++) {
		if ((s->type ? ID_OF(events[i].block->device) : 0) != id)
			continue;
		if (!events[i].free) {
			put_event(s, &events[i], "alloc");
			continue;
		}
		put_event(s, &events[i], "free_requested");
		put_event(s, &events[i], "free_completed");
	}
	pickle_close_list(&s->w);
}

/* A list for each device, up to the one with the largest number. */
static int put_traces(struct snapshot *s)
{
	struct event *events = calloc(2 * s->nr + 1, sizeof(*events));
	uint32_t most = 0;
	size_t nr = 0;

	if (!events)
		return no_memory();
	for (size_t i = 0; i < s->nr; i++) {
		const struct tl_block *b = &s->blocks[i];

		if (s->type && ID_OF(b->device) > most)
			most = ID_OF(b->device);
		if (b->time_ns >= s->since_ns)
			events[nr++] = (struct event){b->time_ns, b, false};
		if (b->freed_ns && b->freed_ns >= s->since_ns)
			events[nr++] = (struct event){b->freed_ns, b, true};
	}
	qsort(events, nr, sizeof(*events), by_time);
	put_word(s, "device_traces");
	pickle_open_list(&s->w);
	for (uint32_t id = 0; id <= most; id++)
		put_events(s, events, nr, id);
	pickle_close_list(&s->w);
	free(events);
	return s->w.err;
}

static int put_all(struct snapshot *s)
{
	int err;

	pickle_begin(&s->w);
	pickle_open_dict(&s->w);
	err = put_segments(s);
	if (!err)
		err = put_traces(s);
	pickle_close_dict(&s->w);
	pickle_end(&s->w);
	return err;
}

static int pickle_write(struct kprof_capture *t, const char *path,
			const struct kprof_export_opts *opts)
{
	struct snapshot *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return no_memory();
	s->t = t;
	s->since_ns = timeline__blocks_since_ns(t);
	err = timeline__has_blocks(t)
		      ? timeline__blocks(t, opts->pid, add, s)
		      : error_set_usage(-EINVAL,
					"`kprof memory start` records what is allocated, and "
					"`kprof memory export` writes it",
					"%s does not say what is allocated", timeline__path(t));
	keep_type(s);
	if (!err)
		err = stream__start(path, opts, false, &s->w);
	if (!err)
		err = stream__end(&s->w, put_all(s));
	map64__free(&s->stacks);
	map64__free(&s->ops);
	free(s->blocks);
	free(s);
	return err;
}

const struct sink_ops sink_pickle = {
	.name = "pickle",
	.suffixes = {".pickle"},
	.blocks = true,
	.write = pickle_write,
};
