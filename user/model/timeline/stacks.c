// SPDX-License-Identifier: BSD-2-Clause
/*
 * Modules, frames and stacks of a capture, and its samples. The tables come in pieces (a frame's
 * names later than the frame), so they are joined once all of them are read: nothing moves after it
 * has been handed out.
 *
 * The reader guarantees that a stack's parent is an earlier stack, so following a stack outwards
 * always ends.
 */
#include "model/timeline/impl.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>

#include "symbol/names/names.h"
#include "util/util.h"

/* A frame as it is in the file, with ids instead of pointers. */
struct raw_frame {
	uint64_t address;
	uint32_t kind, module, op;
	uint32_t nr_lines;
	size_t first_line;
	uint32_t function_line, instr, place, loop; /* of tl_frame: first_line and the rest */
};

struct raw_stack {
	uint32_t parent, frame;
};

/* A native function's name, demangled when first needed. */
struct name {
	char *full, *shorter;
};

struct tl_stacks {
	struct vec raw_frames, raw_lines, raw_stacks; /* only until tl_stacks__settle() */
	struct vec modules;                           /* struct tl_module, by id - 1 */
	struct tl_frame *frames;                      /* by id - 1 */
	struct tl_line *lines;
	struct tl_stack *stacks; /* by id - 1 */
	uint32_t *parents; /* by id - 1, as recorded; those in stacks skip frames that are hidden */
	size_t nr_frames, nr_stacks;
	bool has_places;
	struct name *names; /* by string id; only those that were needed so far */
	size_t nr_names;
	struct vec places; /* char *: replacements for unknown names */
	/*
	 * Of Python functions, only until tl_stacks__settle(): the address of the one string that
	 * stands for all of a text, by a string's address and by the text's hash.
	 */
	struct map64 same, texts;
};

static struct tl_stacks *stacks_of(struct kprof_capture *t)
{
	if (!t->stacks)
		t->stacks = calloc(1, sizeof(*t->stacks));
	return t->stacks;
}

/* ---- reading records ---- */

static int add_module(struct kprof_capture *t, struct tl_stacks *s, const struct store_record *r)
{
	struct tl_module module;

	if (r->module.id != s->modules.nr + 1 || r->module.path >= t->strings.nr ||
	    r->module.build_id >= t->strings.nr)
		return -EBADMSG;
	module = (struct tl_module){
		.path = tl_string(t, r->module.path),
		.build_id = tl_string(t, r->module.build_id),
		.kind = r->module.kind,
	};
	module.interpreter = module.kind == STORE_MODULE_FILE &&
			     (!fnmatch("python[0-9]*", path_base(module.path), 0) ||
			      !fnmatch("libpython[0-9]*.so*", path_base(module.path), 0));
	return tl_add(&s->modules, &module, sizeof(module));
}

static int add_lines(struct kprof_capture *t, struct tl_stacks *s, const struct store_record *r)
{
	for (uint32_t i = 0; i < r->frame.nr_lines; i++) {
		const struct store_line *l = &r->frame.lines[i];

		if (l->function >= t->strings.nr || l->file >= t->strings.nr)
			return -EBADMSG;
		if (tl_add(&s->raw_lines, l, sizeof(*l)))
			return -ENOMEM;
	}
	return 0;
}

static int add_frame(struct kprof_capture *t, struct tl_stacks *s, const struct store_record *r)
{
	struct raw_frame frame = {
		.address = r->frame.address,
		.kind = r->frame.kind,
		.module = r->frame.module,
		.op = r->frame.op,
		.nr_lines = r->frame.nr_lines,
		.first_line = s->raw_lines.nr,
	};
	struct raw_frame *slot;
	int err;

	if (!r->frame.id || r->frame.id > s->raw_frames.nr + 1 || r->frame.module > s->modules.nr ||
	    r->frame.op >= t->strings.nr)
		return -EBADMSG;
	err = add_lines(t, s, r);
	if (err)
		return err;
	slot = tl_element(&s->raw_frames, r->frame.id - 1, sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	*slot = frame;
	return 0;
}

static int add_place(struct tl_stacks *s, const struct store_record *r)
{
	struct raw_frame *f = (struct raw_frame *)s->raw_frames.data + r->python_frame.frame - 1;

	if (r->python_frame.frame - 1 >= s->raw_frames.nr)
		return -EBADMSG;
	f->function_line = r->python_frame.first_line;
	f->instr = r->python_frame.instr;
	f->loop = r->python_frame.loop;
	f->place = TL_PLACE_KNOWN |
		   (r->python_frame.flags & STORE_PYTHON_RESUMED ? TL_PLACE_RESUMED : 0);
	s->has_places = true;
	return 0;
}

static int add_stack(struct tl_stacks *s, const struct store_record *r)
{
	const struct raw_stack stack = {r->stack.parent, r->stack.frame};

	if (r->stack.id != s->raw_stacks.nr + 1 || r->stack.parent > s->raw_stacks.nr ||
	    r->stack.frame - 1 >= s->raw_frames.nr)
		return -EBADMSG;
	return tl_add(&s->raw_stacks, &stack, sizeof(stack));
}

int tl_stacks__add(struct kprof_capture *t, const struct store_record *r)
{
	struct tl_stacks *s = stacks_of(t);

	if (!s)
		return -ENOMEM;
	switch (r->type) {
	case STORE_MODULE:
		return add_module(t, s, r);
	case STORE_FRAME:
		return add_frame(t, s, r);
	case STORE_PYTHON_FRAME:
		return add_place(s, r);
	default:
		return add_stack(s, r);
	}
}

/* ---- joining ---- */

/*
 * The replacement for the name of a function without one: its place, not a guess. NULL: out of
 * memory.
 */
static const char *place(struct tl_stacks *s, const struct tl_frame *f)
{
	char **slot;

	if (!f->module || !*f->module->path)
		return "[unknown]";
	slot = vec_push(&s->places, sizeof(*slot));
	if (slot)
		*slot = xasprintf("%s+0x%" PRIx64, path_base(f->module->path), f->address);
	return slot ? *slot : NULL;
}

static int demangle_name(struct name *n, const char *raw)
{
	if (n->full)
		return 0;
	n->full = demangle(raw);
	if (n->full)
		n->shorter = demangle_short(raw, n->full);
	return n->shorter ? 0 : -ENOMEM;
}

/*
 * The one string that stands for all of this text, so that two need not be compared again and
 * again: a capture may have a text twice. Each string is looked at once.
 */
static const char *unique(struct tl_stacks *s, const char *text)
{
	uint64_t *known = map64__at(&s->same, (uintptr_t)text), *first;

	if (known && *known)
		return (const char *)(uintptr_t)*known;
	first = map64__at(&s->texts, hash64_text(0, text) >> 1);
	if (first && !*first)
		*first = (uintptr_t)text;
	if (first && !strcmp((const char *)(uintptr_t)*first, text))
		text = (const char *)(uintptr_t)*first;
	if (known)
		*known = (uintptr_t)text;
	return text;
}

static int settle_line(struct kprof_capture *t, const struct tl_frame *f,
		       const struct store_line *raw, struct tl_line *to)
{
	struct tl_stacks *s = t->stacks;
	struct name *n = &s->names[raw->function];
	const char *text = tl_string(t, raw->function);

	*to = (struct tl_line){
		.function = text,
		.full = text,
		.file = tl_string(t, raw->file),
		.line = raw->line,
		.named = raw->function,
	};
	if (!raw->function) {
		to->function = to->full = place(s, f);
		return to->function ? 0 : -ENOMEM;
	}
	if (f->kind == TL_FRAME_PYTHON) {
		to->function = to->full = unique(s, text);
		to->file = unique(s, to->file);
	}
	if (f->kind != TL_FRAME_NATIVE)
		return 0;
	if (demangle_name(n, text))
		return -ENOMEM;
	to->function = n->shorter;
	to->full = n->full;
	return 0;
}

static int settle_frame(struct kprof_capture *t, uint32_t id, struct tl_line *lines)
{
	static const struct store_line unknown;
	struct tl_stacks *s = t->stacks;
	const struct raw_frame *raw = (const struct raw_frame *)s->raw_frames.data + id - 1;
	const struct store_line *raw_lines = s->raw_lines.data;
	const struct tl_module *modules = s->modules.data;
	struct tl_frame *f = &s->frames[id - 1];
	int err = 0;

	*f = (struct tl_frame){
		.id = id,
		.kind = raw->kind == STORE_FRAME_PYTHON   ? TL_FRAME_PYTHON
			: raw->kind == STORE_FRAME_KERNEL ? TL_FRAME_KERNEL
							  : TL_FRAME_NATIVE,
		.module = raw->module ? &modules[raw->module - 1] : NULL,
		.address = raw->address,
		.op = tl_string(t, raw->op),
		.lines = lines,
		.nr_lines = raw->nr_lines ? raw->nr_lines : 1,
		.first_line = raw->function_line,
		.instr = raw->instr,
		.place = raw->kind == STORE_FRAME_PYTHON ? raw->place : 0,
		.loop = raw->kind == STORE_FRAME_PYTHON ? raw->loop : 0,
	};
	for (uint32_t i = 0; i < f->nr_lines && !err; i++)
		err = settle_line(t, f, raw->nr_lines ? &raw_lines[raw->first_line + i] : &unknown,
				  &lines[i]);
	return err;
}

static int settle_frames(struct kprof_capture *t)
{
	struct tl_stacks *s = t->stacks;
	const struct raw_frame *raw = s->raw_frames.data;
	size_t nr_lines = 0;
	int err = 0;

	s->nr_frames = s->raw_frames.nr;
	for (size_t i = 0; i < s->nr_frames; i++)
		nr_lines += raw[i].nr_lines ? raw[i].nr_lines : 1;
	s->nr_names = t->strings.nr;
	s->frames = calloc(s->nr_frames + 1, sizeof(*s->frames));
	s->lines = calloc(nr_lines + 1, sizeof(*s->lines));
	s->names = calloc(s->nr_names, sizeof(*s->names));
	if (!s->frames || !s->lines || !s->names)
		return -ENOMEM;
	nr_lines = 0;
	for (size_t i = 0; i < s->nr_frames && !err; i++) {
		err = settle_frame(t, (uint32_t)i + 1, s->lines + nr_lines);
		nr_lines += s->frames[i].nr_lines;
	}
	return err;
}

int tl_stacks__settle(struct kprof_capture *t)
{
	struct tl_stacks *s = t->stacks;
	const struct raw_stack *raw;
	int err;

	if (!s)
		return 0;
	err = settle_frames(t);
	map64__free(&s->same);
	map64__free(&s->texts);
	if (err)
		return err;
	s->stacks = calloc(s->raw_stacks.nr + 1, sizeof(*s->stacks));
	s->parents = calloc(s->raw_stacks.nr + 1, sizeof(*s->parents));
	if (!s->stacks || !s->parents)
		return -ENOMEM;
	raw = s->raw_stacks.data;
	s->nr_stacks = s->raw_stacks.nr;
	for (size_t i = 0; i < s->nr_stacks; i++) {
		s->stacks[i] = (struct tl_stack){raw[i].parent, &s->frames[raw[i].frame - 1]};
		s->parents[i] = raw[i].parent;
	}
	free(s->raw_frames.data);
	free(s->raw_lines.data);
	free(s->raw_stacks.data);
	s->raw_frames = s->raw_lines = s->raw_stacks = (struct vec){0};
	return 0;
}

void tl_stacks__free(struct kprof_capture *t)
{
	struct tl_stacks *s = t->stacks;
	char **places;

	if (!s)
		return;
	places = s->places.data;
	for (size_t i = 0; i < s->places.nr; i++)
		free(places[i]);
	for (size_t i = 0; i < s->nr_names && s->names; i++) {
		free(s->names[i].full);
		free(s->names[i].shorter);
	}
	free(s->places.data);
	free(s->names);
	free(s->raw_frames.data);
	free(s->raw_lines.data);
	free(s->raw_stacks.data);
	free(s->modules.data);
	free(s->frames);
	free(s->lines);
	free(s->stacks);
	free(s->parents);
	free(s);
}

/* ---- the interpreter's own frames ---- */

static bool is_interpreter(const struct tl_stack *s)
{
	const struct tl_module *m = s->frame->module;

	return s->frame->kind == TL_FRAME_NATIVE && m && m->interpreter;
}

/* The parent to show for the stack with index i. Outer stacks must have theirs already. */
static uint32_t shown_parent(const struct tl_stacks *s, size_t i)
{
	const struct tl_stack *inner = &s->stacks[i], *outer;

	if (is_interpreter(inner))
		return s->parents[i];
	for (uint32_t at = s->parents[i]; at; at = outer->parent) {
		outer = &s->stacks[at - 1];
		if (is_interpreter(outer))
			continue;
		return inner->frame->kind == TL_FRAME_PYTHON ||
				       outer->frame->kind == TL_FRAME_PYTHON
			       ? at
			       : s->parents[i];
	}
	/* The thread's first frames stay: they show that the stack is whole. */
	return s->parents[i];
}

/*
 * Sets whether stacks show those frames of the interpreter's own file that only lead into or out of
 * Python: its evaluation loop and its calls, in C. They are hidden at first, except the innermost
 * frames of a stack and those with no Python frame beside them. Stacks that a caller got before
 * must be fetched again.
 */
void kprof_capture_show_interpreter(struct kprof_capture *t, bool show)
{
	struct tl_stacks *s = t->stacks;

	for (size_t i = 0; s && i < s->nr_stacks; i++)
		s->stacks[i].parent = show ? s->parents[i] : shown_parent(s, i);
}

/* ---- queries ---- */

uint32_t tl_stacks__caller(const struct kprof_capture *t, uint32_t stack)
{
	return stack && stack <= timeline__nr_stacks(t) ? t->stacks->parents[stack - 1] : 0;
}

size_t timeline__nr_stacks(const struct kprof_capture *t)
{
	return t->stacks ? t->stacks->nr_stacks : 0;
}

bool timeline__has_functions(const struct kprof_capture *t)
{
	return t->stacks && t->stacks->has_places;
}

const struct tl_stack *timeline__stack(const struct kprof_capture *t, uint32_t id)
{
	return id && id <= timeline__nr_stacks(t) ? &t->stacks->stacks[id - 1] : NULL;
}

size_t timeline__nr_frames(const struct kprof_capture *t)
{
	return t->stacks ? t->stacks->nr_frames : 0;
}

const struct tl_frame *timeline__frame(const struct kprof_capture *t, uint32_t id)
{
	return id && id <= timeline__nr_frames(t) ? &t->stacks->frames[id - 1] : NULL;
}

size_t timeline__calls(const struct kprof_capture *t, uint32_t stack, struct tl_call *to,
		       size_t room)
{
	const struct tl_stack *s;
	size_t nr = 0;

	for (; (s = timeline__stack(t, stack)) && nr < room; stack = s->parent)
		for (uint32_t i = 0; i < s->frame->nr_lines && nr < room; i++)
			to[nr++] = (struct tl_call){s->frame, &s->frame->lines[i]};
	return nr;
}
