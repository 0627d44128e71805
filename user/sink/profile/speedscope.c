// SPDX-License-Identifier: BSD-2-Clause
/*
 * speedscope's own file format (its file-format-schema.json): a profile of type "sampled" for each
 * thread, with weights in nanoseconds. Frames are functions without a line, since speedscope takes
 * a function seen at two lines for two functions.
 *
 * The format has a thread's stacks in one list and their weights in another, so samples are kept in
 * memory until all are read: one entry for as long as the thread's stack stays the same.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/stacks/stacks.h"
#include "sink/write/write.h"
#include "sink/sink.h"
#include "store/store.h"
#include "util/error.h"
#include "util/util.h"

/* Speedscope reads at most about 500 MB of text; this many runs make more than that. */
#define RUNS_MAX (1u << 22)

struct run { /* a run of consecutive samples with the same stack */
	uint64_t time_ns;
	uint64_t weight_ns;
	uint32_t thread, node;
};

struct speedscope {
	struct kprof_capture *t;
	struct stack_tree *tree;
	struct run *runs;
	size_t nr_runs, cap_runs;
	uint32_t *last; /* by thread: number of its latest run + 1 */
	struct jsonw w;
};

static int add_sample(void *ctx, const struct store_record *r)
{
	struct speedscope *s = ctx;
	uint64_t weight_ns = r->sample.weight_ns;
	uint32_t *number = &s->last[r->sample.thread], node;
	struct run *last = *number ? &s->runs[*number - 1] : NULL;
	int err = stack_tree__leaf(s->tree, 0, r->sample.stack, &node);

	if (!err && r->sample.reason)
		err = stack_tree__reason(s->tree, r, &node);
	if (err)
		return err;
	if (last && last->node == node && last->weight_ns <= UINT64_MAX - weight_ns) {
		last->weight_ns += weight_ns;
		return 0;
	}
	if (s->nr_runs == RUNS_MAX)
		return error_set(
			-E2BIG, "ask for .pb.gz or .svg, which merge them, or for one process (-p)",
			"there are more than %u samples: too many for speedscope", RUNS_MAX);
	if (vec_grow((void **)&s->runs, &s->cap_runs, s->nr_runs, sizeof(*s->runs)))
		return error_set(-ENOMEM, NULL, "no memory for the samples");
	s->runs[s->nr_runs++] = (struct run){.time_ns = r->sample.time_ns,
					     .weight_ns = weight_ns,
					     .thread = r->sample.thread,
					     .node = node};
	*number = (uint32_t)s->nr_runs;
	return 0;
}

static int by_thread_time(const void *a, const void *b)
{
	const struct run *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

/* Limits a number to those that JavaScript represents exactly. */
static uint64_t exact(uint64_t ns)
{
	return ns < 1ull << 53 ? ns : (1ull << 53) - 1;
}

static int put_stack(struct speedscope *s, uint32_t node)
{
	const uint32_t *path;
	uint32_t nr;
	int err = stack_tree__path(s->tree, node, &path, &nr);

	jsonw__text(&s->w, "[");
	for (uint32_t i = 0; i < nr && !err; i++) {
		jsonw__text_u64(&s->w, i ? "," : "",
				stack_tree__node(s->tree, path[i])->symbol->id - 1);
	}
	jsonw__text(&s->w, "]");
	return err;
}

static int put_profile(struct speedscope *s, const struct run *runs, size_t nr)
{
	const struct tl_thread *thread = timeline__thread(s->t, runs->thread);
	struct jsonw *w = &s->w;
	uint64_t sum = 0;
	char *name = xasprintf("%s (%d)%s", thread->title, thread->tid,
			       timeline__shows_waits(s->t) ? ", off the CPU" : "");
	int err = 0;

	if (!name)
		return error_set(-ENOMEM, NULL, "no memory for a thread's name");
	jsonw__text_string(w, "{\"type\":\"sampled\",\"name\":", name);
	free(name);
	jsonw__text(w, ",\"unit\":\"nanoseconds\",\"startValue\":0,\"samples\":[");
	for (size_t i = 0; i < nr && !err; i++) {
		jsonw__text(w, i ? ",\n" : "\n");
		err = put_stack(s, runs[i].node);
	}
	jsonw__text(w, "],\"weights\":[");
	for (size_t i = 0; i < nr; i++) {
		jsonw__text_u64(w, i ? "," : "", exact(runs[i].weight_ns));
		sum = exact(sum + exact(runs[i].weight_ns));
	}
	jsonw__text_u64(w, "],\"endValue\":", sum);
	jsonw__text(w, "}");
	return err ? err : w->err;
}

static int put_profiles(struct speedscope *s)
{
	int err = 0;

	jsonw__text(&s->w, "\"profiles\":[\n");
	for (size_t first = 0, i = 1; i <= s->nr_runs && !err; i++) {
		if (i < s->nr_runs && s->runs[i].thread == s->runs[first].thread)
			continue;
		if (first)
			jsonw__text(&s->w, ",\n");
		err = put_profile(s, s->runs + first, i - first);
		first = i;
	}
	jsonw__text(&s->w, "]");
	return err;
}

/* Writes the frames, one for each symbol except symbol 0, the root's. */
static void put_frames(struct speedscope *s)
{
	struct jsonw *w = &s->w;

	jsonw__text(w, "\"shared\":{\"frames\":[");
	for (uint32_t i = 1; i < stack_tree__nr_symbols(s->tree); i++) {
		const struct stack_symbol *symbol = stack_tree__symbol(s->tree, i);
		const char *file = *symbol->file ? symbol->file : symbol->module;

		jsonw__text_string(w, i > 1 ? ",\n{\"name\":" : "\n{\"name\":", symbol->function);
		if (*file)
			jsonw__text_string(w, ",\"file\":", file);
		jsonw__text(w, "}");
	}
	jsonw__text(w, "]}");
}

static int put_file(struct speedscope *s, const char *path)
{
	struct jsonw *w = &s->w;
	int err;

	jsonw__text_string(
		w, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"name\":",
		path_base(path));
	jsonw__text(w, ",\"exporter\":\"kprof@");
	jsonw__text(w, kprof_version()); /* digits and dots: needs no escaping */
	jsonw__text(w, "\",\"activeProfileIndex\":0,\n");
	put_frames(s);
	jsonw__text(w, ",\n");
	err = put_profiles(s);
	jsonw__text(w, "}\n");
	return err;
}

static int speedscope_write(struct kprof_capture *t, const char *path,
			    const struct kprof_export_opts *opts)
{
	struct speedscope s = {.t = t};
	int err = stack_tree__new(t, false, &s.tree);

	s.last = calloc(kprof_capture_info(t)->nr_threads + 1, sizeof(*s.last));
	if (!err && !s.last)
		err = error_set(-ENOMEM, NULL, "no memory for the list of threads");
	if (!err)
		err = timeline__samples(t, opts->pid, add_sample, &s);
	if (!err && !s.nr_runs)
		err = stack_no_samples(t, opts->pid);
	if (!err)
		err = stream__start(path, opts, false, &s.w);
	if (!err) {
		qsort(s.runs, s.nr_runs, sizeof(*s.runs), by_thread_time);
		err = stream__end(&s.w, put_file(&s, path));
	}
	stack_tree__free(s.tree);
	free(s.runs);
	free(s.last);
	return err;
}

const struct sink_ops sink_speedscope = {
	.name = "speedscope",
	.suffixes = {".speedscope.json"},
	.samples = true,
	.write = speedscope_write,
};
