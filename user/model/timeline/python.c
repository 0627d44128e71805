// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls of Python functions, from the stacks of operators.
 *
 * A stack says which functions were being called at a moment. Those around an operator go on until
 * it ends. Whether a function goes on from one operator to the next is seen by the instructions
 * that both stacks have, from the outermost function inwards:
 *
 * - Where all callers are at the same instructions as before, and the function is further on in its
 *   code, it goes on.
 * - Where it is not further on, something was repeated. Within one call only the instructions of a
 *   loop are: so the innermost function that stood in one goes on, and calls inside are new ones.
 * - But a C function may call several operators, as a backward pass does: both stacks then lead
 *   through it, and part from each other inside of it.
 * - A generator or coroutine may have been left and entered again: it does not go on.
 *
 * Between operators of which one has no stack, nothing is known. What is known of a function thus
 * begins with an event and ends with one, and is a part of the call; a call may have several parts.
 */
#include "model/timeline/python.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/timeline/impl.h"
#include "util/error.h"

/* More than a recording keeps of one stack. A capture that says more was made to take long. */
#define MOST_DEEP 512 /* Python functions */
#define MOST_FRAMES 4096
#define MOST_CALLS (1u << 20) /* that go on at once, of all threads */
#define KEPT_CALLS 64         /* a thread has room for, at least */

struct call {
	const struct tl_frame *frame; /* where it is, as far as is known */
	uint64_t id, parent_id;
	uint64_t start_ns, known_ns; /* known_ns: until when it is known to go on */
	uint32_t at;                 /* open spans around it: it is around the next one */
	uint32_t flags;              /* of the span that ended at known_ns */
};

struct calls { /* of a thread, outermost first */
	struct call *list;
	uint32_t nr, nr_out; /* nr_out: how many of them have been handed out */
	/*
	 * Number of the outermost open span, from 1 on, the functions around which are not known:
	 * none are told of inside, as they might be around it. 0: there is none.
	 */
	uint32_t unknown;
	size_t cap;
	/* Of the open spans, the stacks by which the functions around them are known; 0: not. */
	uint32_t *stacks;
	size_t cap_stacks;
	uint32_t last_stack; /* that of the span that ended last */
	bool idle;           /* it has no open span */
};

struct functions {
	struct kprof_capture *t;
	const struct tl_walker *walker;
	void *ctx;
	struct calls *threads; /* by index */
	uint64_t nr;           /* calls so far */
	uint64_t nr_open;      /* that go on, … */
	uint64_t nr_idle;      /* … of idle threads */
	/* The functions of the latest stack, outermost first. */
	const struct tl_frame *chain[MOST_DEEP];
	uint32_t nr_chain;
};

int functions__new(struct kprof_capture *t, const struct tl_walker *walker, void *ctx,
		   struct functions **out)
{
	struct functions *f = calloc(1, sizeof(*f));

	if (f)
		f->threads = calloc(t->threads.nr + 1, sizeof(*f->threads));
	if (!f || !f->threads) {
		free(f);
		return error_set(-ENOMEM, NULL, "out of memory for Python functions");
	}
	f->t = t;
	f->walker = walker;
	f->ctx = ctx;
	*out = f;
	return 0;
}

void functions__free(struct functions *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->t->threads.nr; i++)
		free(f->threads[i].list), free(f->threads[i].stacks);
	free(f->threads);
	free(f);
}

/* ---- stacks ---- */

/* Reads the Python functions of a stack. False: one of them is not known well enough. */
static bool read_chain(struct functions *f, uint32_t stack)
{
	const struct tl_stack *s;
	uint32_t nr = 0, nr_frames = 0;

	f->nr_chain = 0;
	for (; (s = timeline__stack(f->t, stack)); stack = s->parent) {
		if (nr_frames++ == MOST_FRAMES)
			return false;
		if (s->frame->kind != TL_FRAME_PYTHON)
			continue;
		if (nr == MOST_DEEP || !(s->frame->place & TL_PLACE_KNOWN))
			return false;
		f->chain[nr++] = s->frame;
	}
	f->nr_chain = nr;
	for (uint32_t i = 0; i < nr / 2; i++) {
		const struct tl_frame *other = f->chain[i];

		f->chain[i] = f->chain[nr - 1 - i];
		f->chain[nr - 1 - i] = other;
	}
	return true;
}

static bool same_function(const struct tl_frame *a, const struct tl_frame *b)
{
	/* of Python functions, a text is one string */
	return a->lines->function == b->lines->function && a->lines->file == b->lines->file &&
	       a->first_line == b->first_line;
}

static bool same_place(const struct tl_frame *a, const struct tl_frame *b)
{
	return a == b || (a->instr == b->instr && same_function(a, b));
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && !strcmp(text + len - end_len, end);
}

/*
 * Whether a function of the chain is torch.nn.Module.__call__, whose calls are those of modules: in
 * releases of PyTorch, another name of _wrapped_call_impl() or, before, of _call_impl().
 */
static bool is_module_call(const struct functions *f, uint32_t i)
{
	const struct tl_line *l = f->chain[i]->lines;

	if (!ends_with(l->file, "torch/nn/modules/module.py"))
		return false;
	if (ends_with(l->function, "_wrapped_call_impl"))
		return true;
	return ends_with(l->function, "_call_impl") &&
	       !(i && same_function(f->chain[i], f->chain[i - 1])) &&
	       !(i && ends_with(f->chain[i - 1]->lines->function, "_wrapped_call_impl"));
}

/* ---- which go on ---- */

/* How many calls are around an open span that is not new: these go on as long as it does. */
static uint32_t nr_held(const struct calls *c, uint32_t base)
{
	uint32_t nr = c->nr;

	while (nr && c->list[nr - 1].at >= base)
		nr--;
	return nr;
}

static bool is_native(const struct tl_frame *frame)
{
	return frame->kind == TL_FRAME_NATIVE && !(frame->module && frame->module->interpreter);
}

static bool is_python(const struct tl_frame *frame)
{
	return frame->kind == TL_FRAME_PYTHON;
}

/* The function of PyTorch that calls one autograd node after the other. */
static bool calls_again(const struct tl_frame *frame)
{
	static const char engine[] = "torch::autograd::Engine::";

	return is_native(frame) &&
	       !strncmp(frame->lines[frame->nr_lines - 1].function, engine, strlen(engine));
}

/*
 * Whether a C function may be the same call in both stacks, which have the same Python functions:
 * the innermost of one of them called it. It then is where they part, or known to repeat.
 */
static bool in_same_c_call(const struct functions *f, uint32_t a, uint32_t b, uint32_t nr_python)
{
	const struct tl_stack *s;
	uint32_t at, inside = a, nr = 0;

	/* Stacks are numbered from their callers on. */
	for (at = b; at != inside;)
		if (at > inside)
			at = timeline__stack(f->t, at)->parent;
		else
			inside = timeline__stack(f->t, inside)->parent;
	s = timeline__stack(f->t, at);
	if (a == b)
		while (s && !is_python(s->frame) && !calls_again(s->frame))
			s = timeline__stack(f->t, s->parent);
	if (!s || !is_native(s->frame))
		return false;
	for (; s; s = timeline__stack(f->t, s->parent))
		nr += is_python(s->frame);
	return nr == nr_python;
}

/* How many calls go on, of which the first `held` do. The stack's chain has these. */
static uint32_t nr_going_on(const struct functions *f, const struct calls *c, uint32_t held,
			    uint32_t stack)
{
	uint32_t same = held, nr;
	const struct tl_frame *was, *is;

	while (same < c->nr && same < f->nr_chain &&
	       same_place(c->list[same].frame, f->chain[same]))
		same++;
	nr = same;
	was = same < c->nr ? c->list[same].frame : NULL;
	is = same < f->nr_chain ? f->chain[same] : NULL;
	if (was && is && same_function(was, is) &&
	    (is->instr > was->instr || (is->loop && is->loop == was->loop)))
		nr++;
	else if ((was && is) || !c->last_stack || !in_same_c_call(f, c->last_stack, stack, same))
		while (nr > held && !c->list[nr - 1].frame->loop)
			nr--;
	for (uint32_t i = held; i < nr; i++)
		if (c->list[i].frame->place & TL_PLACE_RESUMED)
			return i;
	return nr;
}

/* Whether the stack continues that of the open spans around it, inside of which it was taken. */
static bool continues(const struct functions *f, const struct calls *c, uint32_t held)
{
	if (f->nr_chain < held)
		return false;
	for (uint32_t i = 0; i < held; i++)
		if (!same_place(c->list[i].frame, f->chain[i]))
			return false;
	return true;
}

static uint32_t nr_modules(const struct functions_new *n)
{
	uint32_t nr = 0;

	while (nr < n->nr && n->spans[nr].module)
		nr++;
	return nr;
}

/*
 * The index in the chain of the first call of a module that begins here: the innermost of the chain
 * are those. False: the chain does not have them.
 */
static bool first_module(const struct functions *f, uint32_t held, uint32_t modules, uint32_t *out)
{
	uint32_t i = f->nr_chain;

	while (modules && i > held)
		modules -= is_module_call(f, --i);
	*out = i;
	return !modules;
}

/* ---- entering and leaving ---- */

static int leave(struct functions *f, uint32_t thread, uint64_t limit_ns)
{
	struct calls *c = &f->threads[thread];
	struct call *k = &c->list[--c->nr];
	struct tl_function out;

	f->nr_open--;
	f->nr_idle -= c->idle;
	if (c->nr >= c->nr_out)
		return 0;
	c->nr_out--;
	out = (struct tl_function){
		.frame = k->frame,
		.thread = thread,
		.start_ns = k->start_ns,
		.end_ns = k->known_ns < limit_ns ? k->known_ns : limit_ns,
		.id = k->id,
		.parent_id = k->parent_id,
		.flags = k->flags,
	};
	return f->walker->leave(f->ctx, &out);
}

static void give_back_room(struct calls *c)
{
	size_t cap = c->nr * 2 > KEPT_CALLS ? c->nr * 2 : KEPT_CALLS;
	struct call *list = c->cap / 4 > cap ? reallocarray(c->list, cap, sizeof(*list)) : NULL;

	if (!list)
		return;
	c->list = list;
	c->cap = cap;
}

static int leave_down_to(struct functions *f, uint32_t thread, uint32_t nr, uint64_t limit_ns)
{
	struct calls *c = &f->threads[thread];
	int err = 0;

	while (c->nr > nr && !err)
		err = leave(f, thread, limit_ns);
	give_back_room(c);
	return err;
}

static void set_idle(struct functions *f, struct calls *c, bool idle)
{
	if (c->idle != idle)
		f->nr_idle += idle ? c->nr : -(uint64_t)c->nr;
	c->idle = idle;
}

/*
 * There are too many calls: those of threads that are idle end where they were last known, as they
 * do at the end. Many threads may have come and gone.
 */
static int make_room(struct functions *f)
{
	int err = 0;

	if (f->nr_open + MOST_DEEP <= MOST_CALLS || f->nr_idle < MOST_CALLS / 4)
		return 0;
	for (uint32_t i = 0; i < f->t->threads.nr && !err; i++)
		if (f->threads[i].idle)
			err = leave_down_to(f, i, 0, f->t->end_ns);
	return err;
}

int functions__enter(struct functions *f, uint32_t thread, uint32_t index)
{
	struct calls *c = &f->threads[thread];
	int err = 0;

	while (!err && c->nr_out < c->nr && c->list[c->nr_out].at <= index) {
		const struct call *k = &c->list[c->nr_out++];
		const struct tl_function out = {.frame = k->frame,
						.thread = thread,
						.start_ns = k->start_ns,
						.id = k->id,
						.parent_id = k->parent_id};

		err = f->walker->enter(f->ctx, &out);
	}
	return err;
}

static int add_call(struct functions *f, const struct functions_new *n,
		    const struct tl_frame *frame, uint32_t at)
{
	struct calls *c = &f->threads[n->thread];
	const struct call *outer = c->nr ? &c->list[c->nr - 1] : NULL;
	uint32_t module = at > n->base ? at : n->module;
	struct call k = {
		.frame = frame,
		.id = f->t->info.events + ++f->nr,
		.start_ns = n->spans[at - n->base].start_ns,
		.known_ns = n->spans[at - n->base].start_ns,
		.at = at,
		.parent_id = outer ? outer->id : 0,
	};

	if (module && (!outer || module > outer->at))
		k.parent_id = at > n->base ? n->spans[at - n->base - 1].id : n->module_id;
	if (vec_grow((void **)&c->list, &c->cap, c->nr, sizeof(*c->list)))
		return error_set(-ENOMEM, NULL, "out of memory for Python functions");
	c->list[c->nr++] = k;
	f->nr_open++;
	return 0;
}

/* Adds the chain's functions from an index on, each around the modules that it calls. */
static int add_calls(struct functions *f, const struct functions_new *n, uint32_t from,
		     uint32_t first_new_module)
{
	uint32_t at = n->base;
	int err = 0;

	for (uint32_t i = from; i < f->nr_chain && !err; i++) {
		if (nr_modules(n) && i >= first_new_module && is_module_call(f, i))
			at++;
		err = add_call(f, n, f->chain[i], at);
	}
	return err;
}

/* Whether the stack says which functions are around the new spans. */
static bool is_known(struct functions *f, const struct functions_new *n, uint32_t held,
		     uint32_t *first_new_module)
{
	const struct calls *c = &f->threads[n->thread];

	return !c->unknown && n->stack && n->nr <= FUNCTIONS_MOST_NEW && read_chain(f, n->stack) &&
	       f->nr_open + f->nr_chain <= MOST_CALLS && continues(f, c, held) &&
	       first_module(f, held, nr_modules(n), first_new_module);
}

int functions__begun(struct functions *f, const struct functions_new *n)
{
	struct calls *c = &f->threads[n->thread];
	uint32_t held = nr_held(c, n->base), nr = held, module = 0;
	uint64_t now_ns = n->spans[0].start_ns;
	bool known;
	int err;

	set_idle(f, c, false);
	err = make_room(f);
	if (err)
		return err;
	known = is_known(f, n, held, &module);
	if (known)
		nr = nr_going_on(f, c, held, n->stack);
	if (nr_modules(n) && nr > module)
		nr = module;
	for (uint32_t i = held; i < nr; i++) {
		c->list[i].frame = f->chain[i];
		c->list[i].known_ns = now_ns;
		c->list[i].flags = 0;
	}
	/* Around a range, no function is known to go on; those inside are told of in it. */
	if (n->range)
		nr = held;
	if (!c->unknown && !(n->range ? n->nr == 1 : known))
		c->unknown = n->base + 1;
	err = leave_down_to(f, n->thread, nr, now_ns);
	for (uint32_t i = n->base; i < n->base + n->nr && !err; i++) {
		if (vec_grow((void **)&c->stacks, &c->cap_stacks, i, sizeof(*c->stacks)))
			return error_set(-ENOMEM, NULL, "out of memory for Python functions");
		c->stacks[i] = known ? n->stack : 0;
	}
	return err || !known || n->range ? err : add_calls(f, n, nr, module);
}

int functions__ended(struct functions *f, uint32_t thread, uint32_t index, uint64_t end_ns,
		     uint32_t flags)
{
	struct calls *c = &f->threads[thread];
	uint32_t nr = nr_held(c, index + 1);
	int err = leave_down_to(f, thread, nr, end_ns);

	c->last_stack = index < c->cap_stacks ? c->stacks[index] : 0;
	if (c->unknown == index + 1)
		c->unknown = 0;
	set_idle(f, c, !index);
	/* One nanosecond later, as readers tell what is around what by the times. */
	for (uint32_t i = nr; i-- > 0 && c->list[i].at == index;) {
		c->list[i].known_ns = end_ns + 1;
		c->list[i].flags = flags & (KPROF_EVENT_CLOSED | KPROF_EVENT_OPEN_AT_END);
	}
	return err;
}

int functions__finish(struct functions *f)
{
	int err = 0;

	for (uint32_t i = 0; i < f->t->threads.nr && !err; i++)
		err = leave_down_to(f, i, 0, f->t->end_ns);
	return err;
}
