// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes a capture of samples that are described by a text on standard input, for tests of what is
 * made of such captures. The same text gives the same file. A line has fields between tabs:
 *
 *   meta     KEY JSON
 *   process  PID COMM COMMAND-LINE
 *   thread   PID TID NAME              the number of the thread: so-many-th, from 0
 *   owner    PID CGROUP               whose container it is in
 *   source   NAME FIRED DROPPED
 *   sample   THREAD COUNT WEIGHT_NS FLAGS FRAME…     outermost first; COUNT of them, mixed with the
 *            others'
 *   wait     THREAD COUNT NS CALL FRAME…             in this system call, by its number
 *   span     THREAD NAME FRAME…        an operator whose entry had this stack
 *
 * FRAME: KIND|MODULE|BUILD-ID|ADDRESS|OPERATOR|FUNCTION|FILE|LINE, the last three again for what
 * they were inlined into; KIND: P Python, N native, K kernel. Bytes that a field can't have are
 * written \xNN.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store.h"
#include "util/util.h"

#define START_MONO_NS (1000 * NSEC_PER_SEC)
#define START_REAL_NS (1790000000ull * NSEC_PER_SEC)
#define PERIOD_NS 10101010
#define MAX_FIELDS 600
#define MAX_PARTS 200

struct line { /* of samples, or of waits */
	uint32_t thread, stack, flags;
	uint64_t weight_ns;
	uint32_t call; /* of waits: number + 1 */
};

struct known { /* a frame or a stack that was written */
	char *text;
	uint32_t parent, id;
};

struct gen {
	struct store_writer *w;
	uint32_t threads, modules, frames, stacks, descriptions, sources;
	struct known *known;
	size_t nr_known, cap_known;
	char *module[64];
	struct line *samples;
	size_t nr_samples, cap_samples;
	uint64_t now_ns;
	int err; /* the first */
};

static uint32_t string(struct gen *g, const char *text)
{
	return store_writer__string(g->w, text, strlen(text));
}

static void put(struct gen *g, struct store_record r)
{
	int err = store_writer__put(g->w, &r);

	if (err && !g->err)
		g->err = err;
}

/* In place: \xNN becomes a byte. */
static void unescape(char *text)
{
	char *to = text;
	unsigned int byte;

	for (; *text; text++) {
		if (sscanf(text, "\\x%2x", &byte) == 1) {
			*to++ = (char)byte;
			text += 3;
		} else {
			*to++ = *text;
		}
	}
	*to = '\0';
}

static size_t split(char *text, const char *at, char **out, size_t room)
{
	size_t nr = 0;

	while (text && nr < room)
		out[nr++] = strsep(&text, at);
	for (size_t i = nr; i < room; i++)
		out[i] = "";
	return nr;
}

/* The id of what this text and parent stand for; 0: new, and *slot is where it is remembered. */
static uint32_t find(struct gen *g, const char *text, uint32_t parent, struct known **slot)
{
	for (size_t i = 0; i < g->nr_known; i++)
		if (g->known[i].parent == parent && !strcmp(g->known[i].text, text))
			return g->known[i].id;
	if (vec_grow((void **)&g->known, &g->cap_known, g->nr_known, sizeof(*g->known)))
		abort();
	*slot = &g->known[g->nr_known++];
	**slot = (struct known){.text = strdup(text), .parent = parent};
	return 0;
}

static uint32_t module(struct gen *g, const char *path, const char *build_id, bool kernel)
{
	if (!*path)
		return 0;
	for (uint32_t i = 0; i < g->modules; i++)
		if (!strcmp(g->module[i], path))
			return i + 1;
	if (g->modules == ARRAY_SIZE(g->module))
		abort();
	g->module[g->modules++] = strdup(path);
	put(g, (struct store_record){STORE_MODULE, .module = {.id = g->modules,
							      .kind = kernel ? STORE_MODULE_KERNEL
									     : STORE_MODULE_FILE,
							      .path = string(g, path),
							      .build_id = string(g, build_id)}});
	return g->modules;
}

static uint32_t frame(struct gen *g, const char *text)
{
	struct store_line lines[STORE_MAX_LINES];
	char *copy = strdup(text), *part[MAX_PARTS];
	size_t nr = split(copy, "|", part, MAX_PARTS);
	uint32_t nr_lines = 0;

	for (size_t i = 0; i < nr; i++)
		unescape(part[i]);
	for (size_t i = 5; i < nr && nr_lines < STORE_MAX_LINES; i += 3)
		lines[nr_lines++] =
			(struct store_line){.function = string(g, part[i]),
					    .file = string(g, part[i + 1]),
					    .line = (uint32_t)strtoul(part[i + 2], NULL, 10)};
	put(g,
	    (struct store_record){STORE_FRAME,
				  .frame = {.id = ++g->frames,
					    .kind = *part[0] == 'P'   ? STORE_FRAME_PYTHON
						    : *part[0] == 'K' ? STORE_FRAME_KERNEL
								      : STORE_FRAME_NATIVE,
					    .module = module(g, part[1], part[2], *part[0] == 'K'),
					    .address = strtoull(part[3], NULL, 0),
					    .op = string(g, part[4]),
					    .nr_lines = nr_lines,
					    .lines = lines}});
	free(copy);
	return g->frames;
}

/* Frames and stacks are told apart by their parents: a frame's is none of any stack. */
static uint32_t stack(struct gen *g, char **frames, size_t nr)
{
	uint32_t at = 0, id, of;
	struct known *slot;

	for (size_t i = 0; i < nr; i++) {
		of = find(g, frames[i], UINT32_MAX, &slot);
		if (!of)
			of = slot->id = frame(g, frames[i]);
		id = find(g, frames[i], at, &slot);
		if (!id) {
			put(g, (struct store_record){STORE_STACK, .stack = {++g->stacks, at, of}});
			id = slot->id = g->stacks;
		}
		at = id;
	}
	return at;
}

static void samples(struct gen *g, char **field, size_t nr)
{
	struct line line = {.thread = (uint32_t)strtoul(field[1], NULL, 10),
			    .weight_ns = strtoull(field[3], NULL, 10),
			    .flags = (uint32_t)strtoul(field[4], NULL, 0)};

	line.stack = stack(g, field + 5, nr > 5 ? nr - 5 : 0);
	if (!strcmp(field[0], "wait")) {
		line.call = line.flags + 1;
		line.flags = STORE_WAIT_SLEEPING;
	}
	for (unsigned long count = strtoul(field[2], NULL, 10); count; count--) {
		if (vec_grow((void **)&g->samples, &g->cap_samples, g->nr_samples,
			     sizeof(*g->samples)))
			abort();
		g->samples[g->nr_samples++] = line;
	}
}

static void span(struct gen *g, char **field, size_t nr)
{
	struct store_attr attr = {string(g, "Call stack"), STORE_ATTR_STACK,
				  stack(g, field + 3, nr - 3)};
	uint32_t thread = (uint32_t)strtoul(field[1], NULL, 10);

	put(g, (struct store_record){STORE_DESCRIPTION,
				     .description = {.id = ++g->descriptions,
						     .name = string(g, field[2]),
						     .category = string(g, "cpu_op")}});
	put(g, (struct store_record){STORE_BEGIN,
				     .begin = {g->now_ns += 1000, thread, g->descriptions}});
	put(g, (struct store_record){STORE_ARGS, .args = {store_writer__begins(g->w)},
				     .attrs = &attr, .nr_attrs = 1});
	put(g, (struct store_record){STORE_END, .end = {g->now_ns += 5000, thread, 0}});
}

static void tables(struct gen *g, char **field)
{
	if (!strcmp(field[0], "meta"))
		put(g, (struct store_record){STORE_META, .meta = {field[1], field[2]}});
	else if (!strcmp(field[0], "process"))
		put(g,
		    (struct store_record){STORE_PROCESS,
					  .process = {.pid = (uint32_t)strtoul(field[1], NULL, 10),
						      .ppid = 1,
						      .comm = string(g, field[2]),
						      .cmdline = string(g, field[3]),
						      .start_ns = START_MONO_NS}});
	else if (!strcmp(field[0], "thread"))
		put(g,
		    (struct store_record){STORE_THREAD,
					  .thread = {.index = g->threads++,
						     .pid = (uint32_t)strtoul(field[1], NULL, 10),
						     .tid = (uint32_t)strtoul(field[2], NULL, 10),
						     .name = string(g, field[3]),
						     .start_ns = START_MONO_NS}});
	else if (!strcmp(field[0], "owner"))
		put(g, (struct store_record){STORE_OWNER,
					     .owner = {.pid = (uint32_t)strtoul(field[1], NULL, 10),
						       .cgroup = string(g, field[2]),
						       .start_ns = START_MONO_NS}});
	else if (!strcmp(field[0], "source"))
		put(g, (struct store_record){STORE_SOURCE,
					     .source = {.index = g->sources++,
							.name = string(g, field[1]),
							.fired = strtoull(field[2], NULL, 10),
							.captured = strtoull(field[2], NULL, 10) -
								    strtoull(field[3], NULL, 10),
							.dropped = strtoull(field[3], NULL, 10)}});
}

static void one_line(struct gen *g, char *text)
{
	char *field[MAX_FIELDS];
	size_t nr = split(text, "\t", field, MAX_FIELDS);

	if (!strcmp(field[0], "sample") || !strcmp(field[0], "wait")) {
		samples(g, field, nr);
		return;
	}
	if (!strcmp(field[0], "span")) {
		span(g, field, nr);
		return;
	}
	for (size_t i = 0; i < nr; i++)
		unescape(field[i]);
	tables(g, field);
}

/* The thread was woken when it had waited for all of the time, and had a CPU at once. */
static void put_wait(struct gen *g, const struct line *line)
{
	uint64_t end_ns = g->now_ns + line->weight_ns;

	put(g, (struct store_record){STORE_WAIT, .wait = {.start_ns = g->now_ns,
							  .wake_ns = end_ns,
							  .end_ns = end_ns,
							  .thread = line->thread,
							  .stack = line->stack,
							  .call = line->call,
							  .flags = line->flags}});
	g->now_ns = end_ns;
}

static void mixed(struct gen *g)
{
	uint64_t random = 1;

	for (size_t i = 0; i < g->nr_samples; i++) {
		struct line *at = &g->samples[i], line;

		random = hash64(random + i);
		line = at[random % (g->nr_samples - i)];
		at[random % (g->nr_samples - i)] = *at;
		if (line.call) {
			put_wait(g, &line);
			continue;
		}
		put(g, (struct store_record){STORE_SAMPLE,
					     .sample = {g->now_ns += PERIOD_NS, line.thread,
							line.stack, line.weight_ns, line.flags}});
	}
}

int main(int argc, char **argv)
{
	struct gen g = {.now_ns = START_MONO_NS};
	char *text = NULL;
	size_t room = 0;
	ssize_t len;

	if (argc != 2) {
		fprintf(stderr, "usage: gen_stacks OUT.kprof <TEXT\n");
		return 2;
	}
	if (store_writer__open(argv[1], &(struct outfile_opts){0}, &g.w)) {
		fprintf(stderr, "%s\n", kprof_error_cause());
		return 1;
	}
	put(&g, (struct store_record){STORE_CLOCK, .clock = {START_MONO_NS, START_REAL_NS}});
	while ((len = getline(&text, &room, stdin)) > 0) {
		text[strcspn(text, "\n")] = '\0';
		one_line(&g, text);
	}
	mixed(&g);
	if (g.err || store_writer__finish(g.w, g.now_ns)) {
		fprintf(stderr, "gen_stacks: %s\n", strerror(-g.err));
		return 1;
	}
	return 0;
}
