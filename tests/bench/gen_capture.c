// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes a capture of so many spans, as a training loop on several threads would leave it, for
 * measuring what reads captures. The same arguments give the same file.
 *
 *   gen_capture EVENTS NAMES THREADS OUT.kprof
 *
 * Each thread repeats a tree of five spans (a module, two operators, one of them with a child and
 * a grandchild); names go round. One end in a thousand is inexact.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kprof.h"
#include "store/store.h"
#include "util/util.h"

#define PID 4242
#define START_MONO_NS (1000 * NSEC_PER_SEC)
#define START_REAL_NS (1790000000ull * NSEC_PER_SEC)
#define SOURCE 0

static const unsigned int depth_of[] = {0, 1, 1, 2, 3};

struct gen {
	struct store_writer *w;
	uint64_t events, now_ns, begun, closed;
	uint32_t nr_names, nr_threads;
	uint64_t seed;
};

static uint32_t string(struct gen *g, const char *text)
{
	return store_writer__string(g->w, text, strlen(text));
}

static int put(struct gen *g, struct store_record r)
{
	return store_writer__put(g->w, &r);
}

static uint64_t step(struct gen *g, uint64_t up_to_ns)
{
	g->seed = g->seed * 6364136223846793005ull + 1442695040888963407ull;
	g->now_ns += 200 + (g->seed >> 33) % up_to_ns;
	return g->now_ns;
}

static int tables(struct gen *g)
{
	char text[64];
	int err = 0;

	err |= put(g, (struct store_record){.type = STORE_META, .meta = {"host", "\"bench\""}});
	err |= put(g, (struct store_record){.type = STORE_META, .meta = {"version", "\"0\""}});
	err |= put(g, (struct store_record){.type = STORE_CLOCK,
					    .clock = {START_MONO_NS, START_REAL_NS}});
	err |= put(g, (struct store_record){.type = STORE_PROCESS,
					    .process = {.pid = PID,
							.ppid = 1,
							.comm = string(g, "python3"),
							.cmdline = string(g, "python3 train.py"),
							.start_ns = START_MONO_NS}});
	for (uint32_t i = 0; i < g->nr_threads; i++) {
		snprintf(text, sizeof(text), "worker-%u", i);
		err |= put(g, (struct store_record){.type = STORE_THREAD,
						    .thread = {.index = i,
							       .pid = PID,
							       .tid = PID + i,
							       .name = string(g, text),
							       .start_ns = START_MONO_NS}});
	}
	err |= put(g, (struct store_record){
			      .type = STORE_SOURCE,
			      .source = {.index = SOURCE, .name = string(g, "operators")}});
	for (uint32_t i = 0; i < g->nr_names; i++) {
		snprintf(text, sizeof(text), "aten::operator_%u", i);
		err |= put(g, (struct store_record){
				      .type = STORE_DESCRIPTION,
				      .description = {.id = i + 1,
						      .name = string(g, text),
						      .overload = i % 3 ? string(g, "Tensor") : 0,
						      .category =
							      string(g, i % 16 ? "cpu_op"
									       : "user_annotation"),
						      .source = SOURCE}});
	}
	return err ? -EIO : 0;
}

static int end(struct gen *g, uint32_t thread)
{
	bool closed = g->seed >> 33 & 1023 ? false : true;

	g->closed += closed;
	return put(g, (struct store_record){.type = STORE_END,
					    .end = {.time_ns = step(g, 2000),
						    .thread = thread,
						    .flags = closed ? KPROF_EVENT_CLOSED : 0}});
}

/* One tree on one thread. */
static int tree(struct gen *g, uint32_t thread)
{
	unsigned int open = 0;
	int err;

	for (size_t i = 0; i < ARRAY_SIZE(depth_of) && g->begun < g->events; i++) {
		for (; open > depth_of[i]; open--)
			if ((err = end(g, thread)))
				return err;
		err = put(g, (struct store_record){
				     .type = STORE_BEGIN,
				     .begin = {.time_ns = step(g, 1000),
					       .thread = thread,
					       .description =
						       (uint32_t)(g->begun++ % g->nr_names) + 1}});
		if (err)
			return err;
		open++;
	}
	for (; open; open--)
		if ((err = end(g, thread)))
			return err;
	return 0;
}

static int generate(struct gen *g)
{
	struct store_record r = {.type = STORE_SOURCE};
	int err;

	err = tables(g);
	for (uint32_t thread = 0; !err && g->begun < g->events; thread++)
		err = tree(g, thread % g->nr_threads);
	if (err)
		return err;
	r.source.index = SOURCE;
	r.source.name = string(g, "operators");
	r.source.fired = r.source.captured = r.source.begins = g->begun;
	r.source.ends_closed = g->closed;
	r.source.ends_exact = g->begun - g->closed;
	return store_writer__put(g->w, &r);
}

int main(int argc, char **argv)
{
	struct gen g = {.now_ns = START_MONO_NS, .seed = 1};
	int err;

	if (argc != 5 || !(g.events = strtoull(argv[1], NULL, 0)) ||
	    !(g.nr_names = (uint32_t)strtoul(argv[2], NULL, 0)) ||
	    !(g.nr_threads = (uint32_t)strtoul(argv[3], NULL, 0))) {
		fprintf(stderr, "usage: gen_capture EVENTS NAMES THREADS OUT.kprof\n");
		return 2;
	}
	err = store_writer__open(argv[4], &(struct outfile_opts){0}, &g.w);
	if (!err) {
		err = generate(&g);
		if (err)
			store_writer__discard(g.w);
		else
			err = store_writer__finish(g.w, g.now_ns);
	}
	if (err)
		fprintf(stderr, "gen_capture: %s (%s)\n", kprof_error_cause(), strerror(-err));
	return err ? 1 : 0;
}
