// SPDX-License-Identifier: BSD-2-Clause
/* Nothing here recurses, since the file decides how deep a stack is. */
#include "model/stacks/stacks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store.h"
#include "util/error.h"
#include "util/map64.h"
#include "util/util.h"

/* Samples of a training program make about ten thousand nodes; this many take about 300 MB. */
#define MAX_NODES (1u << 22)
#define NOTE_BYTES 96

struct span_of { /* a range of the list of symbols */
	uint32_t first, nr;
};

struct own_symbol {
	struct stack_symbol pub;
	char *text; /* the symbol's name */
};

struct stack_tree {
	struct kprof_capture *t;
	struct stack_node *nodes;
	size_t nr_nodes, cap_nodes;
	struct map64 children; /* number of the node, by parent << 32 | symbol */
	struct map64 leaves;   /* number of the node + 1, by root << 32 | stack */

	struct own_symbol **symbols;
	size_t nr_symbols, cap_symbols;
	/* Symbol + 1, by hash; symbols with equal hashes take the following keys. */
	struct map64 by_hash;

	/* By frame id: range of its symbols, outermost first; nr 0: not looked up yet. */
	struct span_of *frames;
	uint32_t *lists;
	size_t nr_lists, cap_lists;

	uint32_t *climbed; /* scratch list: stacks on the way to a known one, or nodes on a path */
	size_t cap_climbed;
	struct stack_counts counts;
	bool python_lines;
};

static int no_memory(void)
{
	return error_set(-ENOMEM, NULL, "out of memory for a tree of stacks");
}

/* ---- symbols ---- */

/* The file or module that a function belongs to: functions of different homes may have one name. */
static const char *home_of(const struct stack_symbol *symbol)
{
	return symbol->kind == STACK_PYTHON ? symbol->file : symbol->module;
}

static bool same_symbol(const struct stack_symbol *a, const struct stack_symbol *b)
{
	return a->kind == b->kind && a->number == b->number && a->nameless == b->nameless &&
	       (a->nameless || !strcmp(a->function, b->function)) &&
	       !strcmp(home_of(a), home_of(b));
}

static int set_name(struct own_symbol *own)
{
	struct stack_symbol *symbol = &own->pub;
	bool of_file = symbol->kind == STACK_PYTHON && *symbol->file;

	if (of_file)
		own->text = xasprintf("%s (%s)", symbol->function, path_base(symbol->file));
	else if (symbol->kind == STACK_PROCESS && !symbol->number)
		own->text = xasprintf("%s (short-lived)", symbol->function);
	else if (symbol->kind == STACK_THREAD || symbol->kind == STACK_PROCESS)
		own->text = xasprintf("%s (%llu)", symbol->function,
				      (unsigned long long)symbol->number);
	else if (symbol->nameless)
		own->text = xasprintf("[%s]", symbol->function);
	else
		own->text = strdup(symbol->function);
	symbol->name = own->text;
	if (symbol->nameless || symbol->kind == STACK_NOTE) /* what was given need not stay */
		symbol->function = symbol->full = own->text;
	return own->text ? 0 : no_memory();
}

static int add_symbol(struct stack_tree *s, const struct stack_symbol *like, uint32_t *out)
{
	struct own_symbol *own;

	if (vec_grow((void **)&s->symbols, &s->cap_symbols, s->nr_symbols, sizeof(*s->symbols)))
		return no_memory();
	own = malloc(sizeof(*own));
	if (!own)
		return no_memory();
	own->pub = *like;
	own->pub.id = (uint32_t)s->nr_symbols;
	if (set_name(own)) {
		free(own);
		return -ENOMEM;
	}
	s->symbols[s->nr_symbols++] = own;
	*out = own->pub.id;
	return 0;
}

static int intern(struct stack_tree *s, const struct stack_symbol *like, uint32_t *out)
{
	uint64_t hash = hash64_text(hash64_text(like->kind ^ like->number << 8,
						like->nameless ? "" : like->function),
				    home_of(like)) >>
			1;
	struct stack_symbol *known;
	uint64_t *slot;
	int err;

	for (;; hash++) {
		slot = map64__at(&s->by_hash, hash);
		if (!slot)
			return no_memory();
		if (!*slot)
			break;
		known = &s->symbols[*slot - 1]->pub;
		if (!same_symbol(known, like))
			continue;
		if (!known->nameless && strcmp(known->full, like->full) != 0)
			known->full = known->function;
		*out = known->id;
		return 0;
	}
	err = add_symbol(s, like, out);
	if (!err)
		*slot = (uint64_t)*out + 1;
	return err;
}

static int append(struct stack_tree *s, const struct stack_symbol *like)
{
	uint32_t id;
	int err = intern(s, like, &id);

	if (err)
		return err;
	if (vec_grow((void **)&s->lists, &s->cap_lists, s->nr_lists, sizeof(*s->lists)))
		return no_memory();
	s->lists[s->nr_lists++] = id;
	return 0;
}

static enum stack_kind kind_of(const struct tl_frame *frame)
{
	switch (frame->kind) {
	case TL_FRAME_PYTHON:
		return STACK_PYTHON;
	case TL_FRAME_KERNEL:
		return STACK_KERNEL;
	default:
		return STACK_NATIVE;
	}
}

/*
 * Whether the frame's function has no name. "libx.so+0x1234" is a place within a function, and the
 * next address may be in the same function. One node for each place would make many slivers in a
 * flame graph, so all such places of a module form one node, "[libx.so]".
 */
static bool is_nameless(const struct tl_frame *frame)
{
	const char *module = frame->module ? path_base(frame->module->path) : "";
	size_t len = strlen(module);

	return len && frame->nr_lines == 1 && !strncmp(frame->lines->function, module, len) &&
	       !strncmp(frame->lines->function + len, "+0x", 3);
}

/* Appends the symbol of a nameless function; set_name() adds the brackets. */
static int append_nameless(struct stack_tree *s, const struct tl_frame *frame)
{
	const char *name = path_base(frame->module->path);

	return append(s, &(struct stack_symbol){.kind = kind_of(frame),
						.nameless = true,
						.function = name,
						.full = name,
						.file = "",
						.module = frame->module->path});
}

static uint64_t line_in(const struct stack_tree *s, const struct tl_frame *frame, uint32_t i)
{
	return s->python_lines && frame->kind == TL_FRAME_PYTHON ? frame->lines[i].line : 0;
}

static int append_frame(struct stack_tree *s, const struct tl_frame *frame)
{
	int err = 0;

	if (*frame->op)
		err = append(s, &(struct stack_symbol){.kind = STACK_OP,
						       .function = frame->op,
						       .full = frame->op,
						       .file = "",
						       .module = ""});
	if (!err && is_nameless(frame))
		return append_nameless(s, frame);
	for (uint32_t i = frame->nr_lines; i-- > 0 && !err;)
		err = append(s, &(struct stack_symbol){.kind = kind_of(frame),
						       .function = frame->lines[i].function,
						       .full = frame->lines[i].full,
						       .file = frame->lines[i].file,
						       .module = frame->module ? frame->module->path
									       : "",
						       .number = line_in(s, frame, i)});
	return err;
}

static int frame_at(struct stack_tree *s, const struct tl_frame *frame, struct span_of *out)
{
	uint32_t first = (uint32_t)s->nr_lists;
	int err = 0;

	*out = s->frames[frame->id];
	if (out->nr)
		return 0;
	err = append_frame(s, frame);
	*out = (struct span_of){first, (uint32_t)s->nr_lists - first};
	if (!err)
		s->frames[frame->id] = *out;
	return err;
}

/* ---- nodes ---- */

static int child(struct stack_tree *s, uint32_t parent, uint32_t symbol, uint32_t *out)
{
	uint64_t *slot = map64__at(&s->children, (uint64_t)parent << 32 | symbol);

	if (!slot)
		return no_memory();
	if (!*slot) {
		if (s->nr_nodes == MAX_NODES)
			return error_set(-E2BIG, "export a part of it: one process (-p PID)",
					 "the stacks make a tree of more than %u nodes", MAX_NODES);
		if (vec_grow((void **)&s->nodes, &s->cap_nodes, s->nr_nodes, sizeof(*s->nodes)))
			return no_memory();
		s->nodes[s->nr_nodes] =
			(struct stack_node){.symbol = &s->symbols[symbol]->pub,
					    .parent = parent,
					    .depth = s->nr_nodes ? s->nodes[parent].depth + 1 : 0};
		*slot = s->nr_nodes++;
	}
	*out = (uint32_t)*slot;
	return 0;
}

static int descend(struct stack_tree *s, const struct tl_frame *frame, uint32_t *node)
{
	struct span_of list;
	int err = frame_at(s, frame, &list);

	for (uint32_t i = 0; i < list.nr && !err; i++)
		err = child(s, *node, s->lists[list.first + i], node);
	return err;
}

int stack_tree__leaf(struct stack_tree *s, uint32_t root, uint32_t stack, uint32_t *out)
{
	const struct tl_stack *at;
	uint32_t node = root;
	size_t nr = 0;
	uint64_t *slot;
	int err;

	for (uint32_t id = stack; (at = timeline__stack(s->t, id)); id = at->parent) {
		slot = map64__at(&s->leaves, (uint64_t)root << 32 | id);
		if (!slot || vec_grow((void **)&s->climbed, &s->cap_climbed, nr, sizeof(id)))
			return no_memory();
		if (*slot) {
			node = (uint32_t)*slot - 1;
			break;
		}
		s->climbed[nr++] = id;
	}
	while (nr) {
		uint32_t id = s->climbed[--nr];

		err = descend(s, timeline__stack(s->t, id)->frame, &node);
		if (err)
			return err;
		slot = map64__at(&s->leaves, (uint64_t)root << 32 | id);
		if (!slot)
			return no_memory();
		*slot = (uint64_t)node + 1;
	}
	*out = node;
	return 0;
}

static int child_named(struct stack_tree *s, uint32_t parent, enum stack_kind kind,
		       const char *name, uint64_t number, uint32_t *out)
{
	uint32_t symbol;
	int err = intern(s,
			 &(struct stack_symbol){.kind = kind,
						.function = name,
						.full = name,
						.file = "",
						.module = "",
						.number = number},
			 &symbol);

	return err ? err : child(s, parent, symbol, out);
}

/* ---- samples ---- */

struct reading {
	struct stack_tree *s;
	bool processes; /* whether processes get nodes */
	/*
	 * Node + 1, by thread index: a search for each sample would take too long with many
	 * processes.
	 */
	struct map64 threads;
	/* Gets each sample and its node; NULL: it is added to the tree. */
	int (*fn)(void *ctx, const struct store_record *r, uint32_t node);
	void *ctx;
};

static int root_of(struct reading *r, const struct tl_thread *thread, uint32_t *out)
{
	uint64_t *known = map64__at(&r->threads, thread->index);
	const struct tl_process *p;
	uint32_t node = 0;
	int err = 0;

	if (!known)
		return no_memory();
	if (*known) {
		*out = (uint32_t)*known - 1;
		return 0;
	}
	if (r->processes) {
		p = timeline__process_at(r->s->t, thread->pid, thread->start_ns);
		if (p && timeline__is_passing(r->s->t, p)) {
			err = child_named(r->s, 0, STACK_PROCESS, p->comm, 0, out);
			*known = err ? 0 : (uint64_t)*out + 1;
			return err;
		}
		err = child_named(r->s, 0, STACK_PROCESS, p ? p->comm : "process",
				  (uint64_t)thread->pid, &node);
	}
	if (!err)
		err = child_named(r->s, node, STACK_THREAD, thread->title, (uint64_t)thread->tid,
				  out);
	if (!err)
		*known = (uint64_t)*out + 1;
	return err;
}

int stack_tree__reason(struct stack_tree *s, const struct store_record *r, uint32_t *node)
{
	char note[NOTE_BYTES];

	if (!stack_off_cpu(r->sample.flags) || (!r->sample.stack && !r->sample.reason))
		return 0;
	snprintf(note, sizeof(note), "[%s]", r->sample.reason ? r->sample.reason : "off CPU");
	return child_named(s, *node, STACK_NOTE, note, 0, node);
}

/*
 * The node of a sample's stack. Stacks that lack their outer part go below a node of their own, not
 * beside whole ones.
 */
static int leaf_of(struct stack_tree *s, uint32_t root, const struct store_record *r,
		   uint32_t *node)
{
	int err = 0;

	*node = root;
	if (!r->sample.stack)
		err = child_named(s, root, STACK_NOTE, "[no stack]", 0, node);
	else if (stack_reach_of(r->sample.flags) == STACK_INCOMPLETE)
		err = child_named(s, root, STACK_NOTE, "[incomplete]", 0, node);
	if (!err)
		err = stack_tree__leaf(s, *node, r->sample.stack, node);
	return err ? err : stack_tree__reason(s, r, node);
}

static void add_sample(struct stack_tree *s, const struct store_record *r, uint32_t node)
{
	enum stack_reach reach = stack_reach_of(r->sample.flags);
	/* The sum saturates: numbers from a file may be arbitrarily large. */
	uint64_t room_ns = UINT64_MAX - s->counts.weight_ns;
	uint64_t weight_ns = r->sample.weight_ns < room_ns ? r->sample.weight_ns : room_ns;

	s->nodes[node].self_samples++;
	s->nodes[node].self_ns += weight_ns;
	s->counts.samples++;
	s->counts.weight_ns += weight_ns;
	s->counts.whole += reach == STACK_WHOLE;
	s->counts.walked += reach != STACK_NOT_WALKED;
	if (stack_off_cpu(r->sample.flags))
		s->counts.off_cpu_ns += weight_ns;
}

static int on_sample(void *ctx, const struct store_record *r)
{
	struct reading *reading = ctx;
	struct stack_tree *s = reading->s;
	uint32_t node;
	int err = root_of(reading, timeline__thread(s->t, r->sample.thread), &node);

	if (!err)
		err = leaf_of(s, node, r, &node);
	if (err)
		return err;
	if (reading->fn)
		return reading->fn(reading->ctx, r, node);
	add_sample(s, r, node);
	return 0;
}

int stack_tree__samples(struct stack_tree *s, pid_t pid,
			int (*fn)(void *ctx, const struct store_record *r, uint32_t node),
			void *ctx)
{
	struct reading r = {.s = s,
			    .processes = !pid && kprof_capture_info(s->t)->nr_processes > 1,
			    .fn = fn,
			    .ctx = ctx};
	int err = timeline__samples(s->t, pid, on_sample, &r);

	map64__free(&r.threads);
	return err;
}

int stack_tree__read(struct stack_tree *s, pid_t pid)
{
	int err = stack_tree__samples(s, pid, NULL, NULL);

	if (!err && !s->counts.samples)
		err = stack_no_samples(s->t, pid);
	return err;
}

/* ---- sums ---- */

static int by_parent_name(const void *a, const void *b, void *ctx)
{
	const struct stack_tree *s = ctx;
	const struct stack_node *x = &s->nodes[*(const uint32_t *)a];
	const struct stack_node *y = &s->nodes[*(const uint32_t *)b];
	int order;

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	if (x->symbol->number != y->symbol->number)
		return x->symbol->number < y->symbol->number ? -1 : 1;
	order = strcmp(x->symbol->name, y->symbol->name);
	return order ? order : (x->symbol->id > y->symbol->id) - (x->symbol->id < y->symbol->id);
}

int stack_tree__sum(struct stack_tree *s)
{
	uint32_t *sorted = calloc(s->nr_nodes, sizeof(*sorted)), last = 0;

	if (!sorted)
		return no_memory();
	for (size_t i = 0; i < s->nr_nodes; i++) {
		sorted[i] = (uint32_t)i;
		s->nodes[i].samples = s->nodes[i].self_samples;
		s->nodes[i].total_ns = s->nodes[i].self_ns;
	}
	for (size_t i = s->nr_nodes; i-- > 1;) {
		struct stack_node *n = &s->nodes[i], *parent = &s->nodes[n->parent];

		parent->samples += n->samples;
		parent->total_ns += n->total_ns;
	}
	qsort_r(sorted + 1, s->nr_nodes - 1, sizeof(*sorted), by_parent_name, s);
	for (size_t i = 1; i < s->nr_nodes; i++) {
		struct stack_node *n = &s->nodes[sorted[i]];

		if (last && s->nodes[last].parent == n->parent)
			s->nodes[last].next_sibling = sorted[i];
		else
			s->nodes[n->parent].first_child = sorted[i];
		last = sorted[i];
	}
	free(sorted);
	return 0;
}

/* ---- the tree itself ---- */

int stack_tree__new(struct kprof_capture *t, bool python_lines, struct stack_tree **out)
{
	struct stack_tree *s = calloc(1, sizeof(*s));
	uint32_t root;
	int err;

	*out = NULL;
	if (!s)
		return no_memory();
	s->t = t;
	s->python_lines = python_lines;
	s->frames = calloc(timeline__nr_frames(t) + 1, sizeof(*s->frames));
	/*
	 * The root is its own parent. Its slot in `children` stays 0, but is never looked up again.
	 */
	err = s->frames ? child_named(s, 0, STACK_ROOT, "all", 0, &root) : no_memory();
	if (err) {
		stack_tree__free(s);
		return err;
	}
	*out = s;
	return 0;
}

void stack_tree__free(struct stack_tree *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->nr_symbols; i++) {
		free(s->symbols[i]->text);
		free(s->symbols[i]);
	}
	free(s->symbols);
	free(s->nodes);
	free(s->frames);
	free(s->lists);
	free(s->climbed);
	map64__free(&s->children);
	map64__free(&s->leaves);
	map64__free(&s->by_hash);
	free(s);
}

uint32_t stack_tree__nr_nodes(const struct stack_tree *s)
{
	return (uint32_t)s->nr_nodes;
}

const struct stack_node *stack_tree__node(const struct stack_tree *s, uint32_t i)
{
	return &s->nodes[i];
}

uint32_t stack_tree__next(const struct stack_tree *s, uint32_t i)
{
	if (s->nodes[i].first_child)
		return s->nodes[i].first_child;
	while (i && !s->nodes[i].next_sibling)
		i = s->nodes[i].parent;
	return s->nodes[i].next_sibling;
}

int stack_tree__path(struct stack_tree *s, uint32_t node, const uint32_t **path, uint32_t *nr)
{
	uint32_t at = s->nodes[node].depth;

	if (at > s->cap_climbed) {
		uint32_t *more = reallocarray(s->climbed, at, sizeof(*more));

		if (!more)
			return no_memory();
		s->climbed = more;
		s->cap_climbed = at;
	}
	*nr = at;
	*path = s->climbed;
	for (; at; node = s->nodes[node].parent)
		s->climbed[--at] = node;
	return 0;
}

uint32_t stack_tree__nr_symbols(const struct stack_tree *s)
{
	return (uint32_t)s->nr_symbols;
}

const struct stack_symbol *stack_tree__symbol(const struct stack_tree *s, uint32_t i)
{
	return &s->symbols[i]->pub;
}

const struct stack_counts *stack_tree__counts(const struct stack_tree *s)
{
	return &s->counts;
}
