// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/top/look.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/export/export.h"
#include "cmd/print/text.h"
#include "cmd/top/top.h"

#define SAMPLE_HZ 99
#define MOST_ROWS 500
#define MOST_NODES 5000
#define MOST_DEPTH 200

/* ---- begin and end ---- */

static void free_table(struct look_table *t)
{
	for (size_t i = 0; i < t->nr; i++) {
		free(t->rows[i].name);
		free(t->rows[i].where);
	}
	free(t->rows);
	*t = (struct look_table){0};
}

static void free_nodes(struct look_node *parent)
{
	struct look_node *node = parent->child, *next;

	for (; node; node = next) {
		next = node->next;
		free_nodes(node); /* at most MOST_DEPTH deep */
		free(node->name);
		free(node);
	}
	parent->child = NULL;
}

static void free_threads(struct look *l)
{
	for (size_t i = 0; i < l->nr_threads; i++)
		free(l->threads[i].now);
	free(l->threads);
	l->threads = NULL;
	l->nr_threads = 0;
}

static void forget(struct look *l)
{
	for (int i = 0; i < LOOK_NR_TABLES; i++)
		free_table(&l->tables[i]);
	free_nodes(&l->root);
	l->root = (struct look_node){0};
	l->nr_nodes = 0;
	l->nodes_full = false;
	l->samples = l->sampled_ns = 0;
}

int look_new(const struct kprof_top_process *p, bool operators, struct look **out)
{
	struct kprof_watch_opts opts = {
		.sz = sizeof(opts),
		.what = operators ? KPROF_WATCH_OPERATORS : KPROF_WATCH_SAMPLES,
		.sample_hz = SAMPLE_HZ,
		.pids = &p->pid,
		.start_ticks = &p->start_ticks,
		.nr = 1,
	};
	struct look *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	l->pid = p->pid;
	l->start_ticks = p->start_ticks;
	l->operators = operators;
	l->command = strdup(p->cmdline);
	err = l->command ? kprof_watch_new(&opts, &l->watch) : -ENOMEM;
	if (err)
		look_free(l);
	else
		*out = l;
	return err;
}

int look_poll(struct look *l, int timeout_ms)
{
	int n = l->ended ? 0 : kprof_watch_poll(l->watch, timeout_ms);

	l->ended = l->ended || n == 1;
	return n < 0 ? n : 0;
}

void look_free(struct look *l)
{
	if (!l)
		return;
	forget(l);
	free_threads(l);
	kprof_watch_free(l->watch);
	free(l->command);
	free(l);
}

/* ---- tables ---- */

static int take_table(struct look *l, struct kprof_capture *c, enum look_kind kind)
{
	static const enum kprof_by bys[] = {KPROF_BY_FUNCTION, KPROF_BY_LINE, KPROF_BY_OP,
					    KPROF_BY_API};
	struct look_table *t = &l->tables[kind];
	struct kprof_result *result;
	size_t nr;

	if (kprof_result_new(c, bys[kind], KPROF_SORT_SELF, &result))
		return 0; /* nothing of that kind was recorded */
	nr = kprof_result_nr_rows(result);
	nr = nr < MOST_ROWS ? nr : MOST_ROWS;
	if (kind == LOOK_OPERATORS && kprof_result_of_samples(result))
		nr = 0; /* none were called */
	t->rows = calloc(nr + 1, sizeof(*t->rows));
	for (size_t i = 0; t->rows && i < nr; i++) {
		const struct kprof_row *row = kprof_result_row(result, i);
		struct look_row *to = &t->rows[t->nr];

		*to = (struct look_row){
			.name = strdup(row->name),
			.where = strdup(row->where ? row->where : ""),
			.self = row->self_share,
			.total = row->total_share,
			.calls = row->calls,
			.total_ns = row->total_ns,
			.average_ns = row->timed ? row->total_ns / row->timed : 0,
		};
		t->nr++;
		if (!to->name || !to->where)
			break;
	}
	kprof_result_free(result);
	return t->rows && t->nr == nr ? 0 : -ENOMEM;
}

/* ---- samples ---- */

/* "function (file.py:12)" of the innermost Python frame, else of the innermost native one. */
static char *line_of(const struct kprof_sample *s)
{
	const struct kprof_frame *found = NULL;
	char *text;
	int n;

	for (size_t i = 0; i < s->nr_frames; i++) {
		const struct kprof_frame *f = &s->frames[i];

		if (f->kind == KPROF_FRAME_PYTHON) {
			found = f;
			break;
		}
		if (!found && f->kind == KPROF_FRAME_NATIVE)
			found = f;
	}
	if (!found)
		return strdup(s->nr_frames ? s->frames[0].function : "[no stack]");
	if (found->kind == KPROF_FRAME_PYTHON)
		n = asprintf(&text, "%s (%s:%u)", found->function, text_base(found->file),
			     found->line);
	else
		n = asprintf(&text, "%s (%s)", found->function, text_base(found->module));
	return n < 0 ? NULL : text;
}

static int by_tid(const void *key, const void *element)
{
	const pid_t *tid = key;
	const struct look_thread *th = element;

	return *tid < th->tid ? -1 : *tid > th->tid;
}

static struct look_node *child_of(struct look *l, struct look_node *parent,
				  const struct kprof_frame *f)
{
	struct look_node *node = parent->child;

	while (node && (node->kind != f->kind || strcmp(node->name, f->function) != 0))
		node = node->next;
	if (node)
		return node;
	if (l->nr_nodes == MOST_NODES) {
		l->nodes_full = true;
		return NULL;
	}
	node = calloc(1, sizeof(*node));
	if (!node)
		return NULL;
	node->name = strdup(f->function);
	if (!node->name) {
		free(node);
		return NULL;
	}
	node->kind = f->kind;
	node->next = parent->child;
	parent->child = node;
	l->nr_nodes++;
	return node;
}

static int add_sample(void *ctx, const struct kprof_sample *s)
{
	struct look *l = ctx;
	struct look_node *node = &l->root;
	struct look_thread *th = l->nr_threads ? bsearch(&s->tid, l->threads, l->nr_threads,
							 sizeof(*l->threads), by_tid)
					       : NULL;

	if (th) {
		free(th->now);
		th->now = line_of(s);
	}
	l->samples++;
	l->sampled_ns += s->weight_ns;
	node->weight_ns += s->weight_ns;
	for (size_t i = 0; i < s->nr_frames && i < MOST_DEPTH; i++) {
		node = child_of(l, node, &s->frames[s->nr_frames - 1 - i]);
		if (!node)
			return 0;
		node->weight_ns += s->weight_ns;
	}
	return 0;
}

/* ---- threads ---- */

static int add_thread(void *ctx, const struct kprof_top_thread *thread)
{
	struct look *l = ctx;
	struct look_thread *th = &l->threads[l->nr_threads++];

	*th = (struct look_thread){
		.tid = thread->tid,
		.state = thread->state,
		.cpu = thread->cpu,
		.runnable = thread->runnable,
		.blocked = thread->blocked,
	};
	snprintf(th->name, sizeof(th->name), "%s", thread->name);
	return 0;
}

static int by_cpu(const void *pa, const void *pb)
{
	const struct look_thread *a = pa, *b = pb;

	if (a->cpu != b->cpu)
		return a->cpu > b->cpu ? -1 : 1;
	return a->tid < b->tid ? -1 : a->tid > b->tid;
}

/* Of a process that has ended, those that were seen last stay. */
static int take_threads(struct look *l, struct kprof_top *top)
{
	struct look_thread *before = l->threads;
	size_t nr_before = l->nr_threads;
	int err;

	l->nr_threads = 0;
	l->threads = calloc(KPROF_TOP_MAX_THREADS, sizeof(*l->threads));
	err = l->threads ? kprof_top_threads(top, l->pid, l->start_ticks, add_thread, l) : -ENOMEM;
	if (!err) {
		for (size_t i = 0; i < nr_before; i++)
			free(before[i].now);
		free(before);
		return 0;
	}
	free_threads(l);
	l->threads = before;
	l->nr_threads = nr_before;
	l->ended = err == -ESRCH;
	return l->ended ? 0 : err;
}

int look_update(struct look *l, struct kprof_top *top)
{
	const struct kprof_top_process *p;
	struct kprof_capture *c;
	int err;

	if (l->ended)
		return 0;
	err = take_threads(l, top);
	if (err || l->ended)
		return err;
	forget(l);
	err = top_open_last(l->watch, &c, &l->window_ns);
	if (err > 0) {
		err = kprof_capture_samples(c, add_sample, l);
		for (int kind = 0; kind < LOOK_NR_TABLES && !err; kind++)
			if (kind < LOOK_OPERATORS || l->operators)
				err = take_table(l, c, (enum look_kind)kind);
		kprof_capture_close(c);
	}
	if (l->nr_threads)
		qsort(l->threads, l->nr_threads, sizeof(*l->threads), by_cpu);
	if (l->operators && !l->tables[LOOK_CALLS].nr) {
		p = kprof_top_closely(top, l->pid, l->start_ticks);
		l->no_runtime = p && !p->runtimes[0];
	}
	return err;
}

int look_draw(struct look *l, const char *path)
{
	struct caller caller = caller_get();
	struct kprof_export_opts opts = {
		.sz = sizeof(opts),
		.path = path,
		.uid = caller.uid,
		.gid = caller.gid,
		.set_owner = caller.by_sudo,
	};
	struct kprof_capture *c;
	uint64_t window_ns;
	int err = top_open_last(l->watch, &c, &window_ns);

	if (err <= 0)
		return err ? err : -ENODATA;
	err = kprof_capture_export(c, &opts);
	kprof_capture_close(c);
	return err;
}
