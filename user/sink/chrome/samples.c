// SPDX-License-Identifier: BSD-2-Clause
/*
 * Stacks in a Chrome trace. Samples are written as V8's CPU profiles, which Perfetto and Chrome
 * read: a Profile for each thread, and ProfileChunks with the sampled nodes and the nodes of the
 * thread's call tree that are new. An operator's own stack is a text, as Kineto writes it.
 *
 * A chunk's times are differences, in whole microseconds. A thread's samples are held until there
 * are enough for a chunk, and are then sorted by time, since each CPU's samples come in a batch of
 * their own.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/stacks/stacks.h"
#include "sink/chrome/impl.h"
#include "util/error.h"
#include "util/util.h"

#define CHUNK_SAMPLES 256
/* Limit of the texts that are kept, in bytes; other stacks' texts are made anew each time. */
#define CALL_STACKS_MAX_BYTES (64u << 20)
#define NO_LINE (-1)

struct waiting {
	int64_t us;
	uint32_t node;
	uint32_t line; /* line of the innermost frame; 0: unknown */
	uint32_t flags;
};

struct thread_samples {
	struct waiting list[CHUNK_SAMPLES];
	uint32_t nr;
	bool started;
	int64_t last_us; /* time of the last sample that was written */
};

struct chrome_samples {
	struct chrome *c;
	struct stack_tree *tree;
	struct thread_samples **threads; /* by index; NULL: none yet */
	struct map64 written; /* 1 if the thread's profile has the node, by thread << 32 | node */
	uint32_t *path;       /* scratch list: new nodes, innermost first */
	size_t cap_path;
};

static int no_memory(void)
{
	return error_set(-ENOMEM, NULL, "no memory for the trace's samples");
}

/* ---- samples ---- */

/* Begins an event of a thread's profile; each thread has one of its own. */
static int put_event(struct chrome_samples *s, const char *name, uint32_t thread, int64_t us)
{
	struct jsonw *w = &s->c->w;
	struct fragment *row;
	char id[32];
	int err = chrome_thread(s->c, thread, &row);

	if (err)
		return err;
	jsonw__text(w,
		    ",\n{\"ph\":\"P\",\"cat\":\"disabled-by-default-v8.cpu_profiler\",\"name\":\"");
	jsonw__text(w, name);
	snprintf(id, sizeof(id), "\",\"id\":\"0x%x\"", thread + 1);
	jsonw__text(w, id);
	jsonw__raw(w, row->text, row->head);
	jsonw__us(w, us * 1000);
	jsonw__text(w, ",\"args\":{\"data\":{");
	return 0;
}

static void put_node(struct chrome_samples *s, uint32_t i)
{
	const struct stack_node *n = stack_tree__node(s->tree, i);
	const struct stack_symbol *symbol = n->symbol;
	struct jsonw *w = &s->c->w;

	jsonw__text_u64(w, "{\"id\":", (uint64_t)i + 1);
	if (n->parent) {
		jsonw__text_u64(w, ",\"parent\":", (uint64_t)n->parent + 1);
	}
	jsonw__text_string(
		w, ",\"callFrame\":{\"functionName\":", i ? symbol->function : "[no stack]");
	jsonw__text_string(w, ",\"url\":", *symbol->file ? symbol->file : symbol->module);
	jsonw__text(w, ",\"scriptId\":0,\"lineNumber\":");
	/* V8 counts lines from 0. */
	jsonw__i64(w, symbol->kind == STACK_PYTHON && symbol->number ? (int64_t)symbol->number - 1
								     : NO_LINE);
	jsonw__text_i64(w, ",\"columnNumber\":", NO_LINE);
	jsonw__text(w, "}}");
}

/* Writes those of the node and its callers that the thread's profile lacks, parents first. */
static int put_nodes(struct chrome_samples *s, uint32_t thread, uint32_t node, const char **between)
{
	uint64_t *slot;
	size_t nr = 0;

	for (uint32_t i = node;; i = stack_tree__node(s->tree, i)->parent) {
		slot = map64__at(&s->written, (uint64_t)thread << 32 | i);
		if (!slot || vec_grow((void **)&s->path, &s->cap_path, nr, sizeof(i)))
			return no_memory();
		if (*slot || (!i && nr)) /* the root is written only if the stack is unknown */
			break;
		*slot = 1;
		s->path[nr++] = i;
		if (!i)
			break;
	}
	while (nr) {
		jsonw__text(&s->c->w, *between);
		*between = ",";
		put_node(s, s->path[--nr]);
	}
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct waiting *x = a, *y = b;

	return (x->us > y->us) - (x->us < y->us);
}

static int start_profile(struct chrome_samples *s, uint32_t thread, struct thread_samples *of)
{
	int err = put_event(s, "Profile", thread, of->list[0].us);

	if (err)
		return err;
	jsonw__text_i64(&s->c->w, "\"startTime\":", of->list[0].us);
	jsonw__text(&s->c->w, "}}}");
	of->started = true;
	of->last_us = of->list[0].us;
	return 0;
}

/*
 * An addition to V8's format: for each sample 1 if its thread holds Python's GIL, 2 if it waits for
 * it.
 */
static void put_gil(struct chrome_samples *s, const struct thread_samples *of)
{
	uint32_t any = 0;

	for (uint32_t i = 0; i < of->nr; i++)
		any |= of->list[i].flags & (KPROF_SAMPLE_GIL | KPROF_SAMPLE_GIL_WAIT);
	if (!any)
		return;
	jsonw__text(&s->c->w, "],\"gil\":[");
	for (uint32_t i = 0; i < of->nr; i++) {
		uint32_t flags = of->list[i].flags;

		jsonw__text_u64(&s->c->w, i ? "," : "",
				flags & KPROF_SAMPLE_GIL        ? 1
				: flags & KPROF_SAMPLE_GIL_WAIT ? 2
								: 0);
	}
}

static int put_chunk(struct chrome_samples *s, uint32_t thread)
{
	struct thread_samples *of = s->threads[thread];
	struct jsonw *w = &s->c->w;
	const char *between = "";
	int err = 0;

	if (!of || !of->nr)
		return 0;
	qsort(of->list, of->nr, sizeof(of->list[0]), by_time);
	if (!of->started)
		err = start_profile(s, thread, of);
	if (!err)
		err = put_event(s, "ProfileChunk", thread, of->list[0].us);
	if (err)
		return err;
	jsonw__text(w, "\"cpuProfile\":{\"nodes\":[");
	for (uint32_t i = 0; i < of->nr && !err; i++)
		err = put_nodes(s, thread, of->list[i].node, &between);
	jsonw__text(w, "],\"samples\":[");
	for (uint32_t i = 0; i < of->nr; i++) {
		jsonw__text_u64(w, i ? "," : "", (uint64_t)of->list[i].node + 1);
	}
	jsonw__text(w, "]},\"lines\":[");
	for (uint32_t i = 0; i < of->nr; i++) {
		jsonw__text_u64(w, i ? "," : "", of->list[i].line);
	}
	put_gil(s, of);
	jsonw__text(w, "],\"timeDeltas\":[");
	for (uint32_t i = 0; i < of->nr; i++) {
		jsonw__text_i64(w, i ? "," : "",
				(int64_t)((uint64_t)of->list[i].us - (uint64_t)of->last_us));
		of->last_us = of->list[i].us;
	}
	jsonw__text(w, "]}}}");
	of->nr = 0;
	return err ? err : w->err;
}

static uint32_t line_of(const struct chrome_samples *s, uint32_t stack)
{
	const struct tl_stack *at = timeline__stack(s->c->t, stack);

	return at ? at->frame->lines->line : 0;
}

static int add_sample(void *ctx, const struct store_record *r)
{
	struct chrome_samples *s = ctx;
	struct thread_samples **of = &s->threads[r->sample.thread];
	int64_t ns = chrome_time(s->c, r->sample.time_ns);
	uint32_t node;
	int err = stack_tree__leaf(s->tree, 0, r->sample.stack, &node);

	if (err)
		return err;
	if (!*of)
		*of = calloc(1, sizeof(**of));
	if (!*of)
		return no_memory();
	chrome_reach(s->c, ns);
	(*of)->list[(*of)->nr++] =
		(struct waiting){ns / 1000, node, line_of(s, r->sample.stack), r->sample.flags};
	return (*of)->nr == CHUNK_SAMPLES ? put_chunk(s, r->sample.thread) : 0;
}

int chrome_samples(struct chrome *c)
{
	size_t nr = kprof_capture_info(c->t)->nr_threads;
	struct chrome_samples s = {.c = c};
	int err;

	if (!kprof_capture_info(c->t)->nr_samples)
		return 0;
	err = stack_tree__new(c->t, true, &s.tree);
	s.threads = calloc(nr + 1, sizeof(*s.threads));
	if (!err && !s.threads)
		err = no_memory();
	if (!err)
		err = timeline__samples(c->t, c->opts->pid, add_sample, &s);
	for (size_t i = 0; i < nr && s.threads; i++) {
		if (!err)
			err = put_chunk(&s, (uint32_t)i);
		free(s.threads[i]);
	}
	free(s.threads);
	free(s.path);
	map64__free(&s.written);
	stack_tree__free(s.tree);
	return err;
}

/* ---- an operator's stack ---- */

int chrome_call_stack(struct chrome *c, uint32_t stack)
{
	struct fragment *f;
	char *plain, *text;
	size_t len;
	int err;

	if (c->stack_bytes > CALL_STACKS_MAX_BYTES) { /* begin anew */
		fragments_free(&c->stacks);
		c->stacks = (struct fragments){0};
		c->stack_bytes = 0;
	}
	err = fragment_at(&c->stacks, stack, &f);
	if (err)
		return err;
	if (f->text) {
		jsonw__raw(&c->w, f->text, f->head);
		return 0;
	}
	plain = trace__stack_text(c->t, stack);
	text = plain ? jsonw_quote(plain, strlen(plain), &len) : NULL;
	free(plain);
	if (!text)
		return error_set(-ENOMEM, NULL, "no memory for the operators' stacks");
	jsonw__raw(&c->w, text, len);
	f->text = text;
	f->head = len;
	c->stack_bytes += len;
	return 0;
}

bool chrome_with_stack(const struct chrome *c)
{
	if (!timeline__nr_stacks(c->t))
		return false;
	for (size_t i = 1; i < timeline__nr_strings(c->t); i++)
		if (!strcmp(timeline__string(c->t, (uint32_t)i), CHROME_CALL_STACK))
			return true;
	return false;
}
