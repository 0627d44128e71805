/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where only what happens inside of Python functions, or of calls of modules, of one name is
 * recorded: whether a thread is inside is looked for at each hit, on its Python stack. So nothing
 * has to be seen of how a function is entered and left, be it by an exception, by another thread or
 * as a coroutine. Only frames that the interpreter runs count.
 *
 * A name is read where a code object, or a class, is met, and read again each time that it is the
 * one that is asked for: memory may have become something else's. What is not asked for is
 * remembered for a moment. To be included where python.h is.
 */
#ifndef KPROF_BPF_WITHIN_PYTHON_H
#define KPROF_BPF_WITHIN_PYTHON_H

#include "within.h"

/* How long something is taken for what it was: it may be freed, and another one be in its place. */
#define WITHIN_OTHER_NS 20000000ull
#define WITHIN_MAX_FRAMES 1024   /* Python frames that are looked at, at least */
#define WITHIN_FRAMES_A_STEP 8   /* that are passed over */
#define WITHIN_WINDOW_BYTES 1024 /* of frames next to each other, a power of two */

struct within_what {
	__u64 address; /* of a code object, or of a class */
	__u32 pid, pad;
};

/* What does not have the name that is asked for, and until when that is not looked at again. */
struct within_others_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct within_what);
	__type(value, __u64);
};

struct within_walk {
	__u32 busy; /* see take_scratch() */
	__u32 inside, unknown;
	__u32 pid;
	__u64 now_ns;
	struct kprof_python_walk walk;
	__u64 window[WITHIN_WINDOW_BYTES / 8];
};

#define NR_WITHIN_WALKS 4
struct within_walks_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, NR_WITHIN_WALKS);
	__type(key, __u32);
	__type(value, struct within_walk);
};

extern struct within_others_map within_others SEC(".maps");
extern struct within_walks_map within_walks SEC(".maps");

struct within_ref { /* bpf_loop() takes a pointer to the stack only */
	struct within_walk *s;
	const struct kprof_modules *m;
	struct within_thread *t; /* NULL: there is none */
};

#define WITHIN_ASCII (1 | 1 << 3 | 1 << 4) /* one byte a character, compact, ASCII */

/* Has the code object, or the class, the name? Negative: it could not be read. */
static __always_inline int within_is_asked(const struct kprof_python *p, __u64 address)
{
	__u32 name = p->code_qualname != KPROF_PYTHON_NONE ? p->code_qualname : p->code_name;
	__u32 state = 0;
	__u64 text = 0;

	if (within_of == KPROF_WITHIN_MODULES)
		return python_read(&text, 8, address + p->type_name) ? -1 : within_has_name(text);
	if (python_read(&text, 8, address + name) || !text ||
	    python_read(&state, 4, text + p->str_state))
		return -1;
	if ((state >> (p->str_kind & 31) & 31) != WITHIN_ASCII)
		return 0;
	return within_has_name(text + p->str_ascii);
}

/* Does the thread remember that this is not what is asked for? */
static __always_inline bool within_remembers(const struct within_ref *ref, __u64 address)
{
	const struct within_other *other;

	if (!ref->t)
		return false;
	other = &ref->t->others[WITHIN_OTHER_AT(address) & (WITHIN_OTHERS - 1)];
	return other->address == address && ref->s->now_ns < other->until_ns;
}

/* A sample may be taken in the midst of this: what is there then is as true. */
static __always_inline void within_remember(const struct within_ref *ref, __u64 address,
					    __u64 until_ns)
{
	struct within_other *other;

	if (!ref->t)
		return;
	other = &ref->t->others[WITHIN_OTHER_AT(address) & (WITHIN_OTHERS - 1)];
	other->until_ns = 0;
	other->address = address;
	other->until_ns = until_ns;
}

/* A function's frame, which has been read. Returns 1 if the thread is inside. */
static __always_inline long within_frame(const struct within_ref *ref, __u64 frame)
{
	const struct kprof_python *p = &ref->m->python;
	struct within_what what = {.pid = ref->s->pid};
	__u64 *other_until_ns, until_ns, self;
	int asked;

	what.address = python_scratch64(&ref->s->walk, p->frame_code) & ~PYTHON_TAGS;
	if (within_of == KPROF_WITHIN_MODULES) {
		if (what.address != ref->m->call_code)
			return 0;
		if (python_read(&self, 8, frame + p->frame_locals) ||
		    python_read(&what.address, 8, (self & ~PYTHON_TAGS) + p->object_type)) {
			ref->s->unknown = 1;
			return 0;
		}
	}
	other_until_ns = bpf_map_lookup_elem(&within_others, &what);
	if (other_until_ns && ref->s->now_ns < *other_until_ns) {
		within_remember(ref, what.address, *other_until_ns);
		return 0;
	}
	asked = within_is_asked(p, what.address);
	if (asked > 0)
		return 1;
	if (asked < 0) {
		ref->s->unknown = 1;
		return 0;
	}
	until_ns = ref->s->now_ns + WITHIN_OTHER_NS;
	within_remember(ref, what.address, until_ns);
	bpf_map_update_elem(&within_others, &what, &until_ns, BPF_ANY);
	return 0;
}

static __always_inline __u64 within_window64(const struct within_walk *s, __u32 at)
{
	return *(const __u64 *)((const char *)s->window + (at & (WITHIN_WINDOW_BYTES - 8)));
}

/*
 * Passes over some frames that are known not to be asked for. From 3.11 on they lie next to each
 * other, each above the one that called it, and a read of many costs as much as that of one.
 */
static __always_inline void within_pass(const struct within_ref *ref)
{
	const struct kprof_python *p = &ref->m->python;
	struct within_walk *s = ref->s;
	__u32 frame_bytes = (p->frame_bytes + 7) & (KPROF_PYTHON_FRAME_BYTES - 8);
	__u64 end = s->walk.frame + frame_bytes, start = end - WITHIN_WINDOW_BYTES, at, code;

	/* the page before this one may not be there, and to find that out takes long */
	if (start < (s->walk.frame & ~4095ull))
		start = s->walk.frame & ~4095ull;
	if (p->code_qualname == KPROF_PYTHON_NONE || end - start > WITHIN_WINDOW_BYTES ||
	    python_read(s->window, end - start, start))
		return;
	for (int i = 0; i < WITHIN_FRAMES_A_STEP; i++) {
		at = s->walk.frame - start;
		if (at > end - start - frame_bytes)
			return;
		code = within_window64(s, at + p->frame_code) & ~PYTHON_TAGS;
		if (within_of == KPROF_WITHIN_MODULES ? code == ref->m->call_code
						      : !within_remembers(ref, code))
			return;
		s->walk.frame = within_window64(s, at + p->frame_previous);
	}
}

/* 1: the walk is over. */
static long within_step(__u32 i, void *ctx)
{
	struct within_ref *ref = ctx;
	struct kprof_python_walk *w = &ref->s->walk;
	int function, over;
	__u64 frame;

	switch (w->phase) {
	case PYTHON_START:
		return python_start(&ref->m->python, w);
	case PYTHON_SEARCH:
		return python_search(&ref->m->python, w);
	case PYTHON_FRAMES:
		break;
	default:
		return 1;
	}
	if (!w->cframe)
		within_pass(ref);
	frame = w->frame;
	over = python_next(&ref->m->python, w, &function);
	if (function && within_frame(ref, frame)) {
		ref->s->inside = 1;
		return 1;
	}
	return over;
}

/* Walks the thread's Python stack until it is known whether it is inside. */
static __always_inline void within_look(struct within_ref *ref, struct task_struct *task,
					__u64 tstate)
{
	struct within_walk *s = ref->s;

	s->inside = 0;
	s->unknown = 0;
	s->pid = task->tgid;
	s->now_ns = bpf_ktime_get_ns();
	s->walk.thread = BPF_CORE_READ(task, thread.fsbase);
	s->walk.hint = tstate;
	s->walk.futex = 0;
	python_begin(&s->walk);
	bpf_loop(KPROF_PYTHON_MAX_THREADS + WITHIN_MAX_FRAMES, within_step, ref, 0);
	if (s->walk.phase == PYTHON_START || s->walk.phase == PYTHON_SEARCH ||
	    s->walk.phase == PYTHON_FRAMES ||
	    s->walk.flags & (KPROF_PYTHON_BAD | KPROF_PYTHON_MANY))
		s->unknown = 1;
}

/*
 * Is the thread inside? sp: the stack pointer at the entry of a function, which is recorded if it
 * is; 0: nothing was called.
 */
static __noinline int within_python(__u64 sp)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 pid = task->tgid;
	struct within_thread *t;
	struct within_ref ref;
	int inside;

	if (stopped || !is_wanted(task->pid))
		return 0;
	ref.m = bpf_map_lookup_elem(&within_pythons, &pid);
	ref.s = ref.m ? take_scratch(&within_walks, NR_WITHIN_WALKS) : NULL;
	if (!ref.s) { /* the interpreter is not known, or PyTorch in it */
		if (sp && is_target(pid))
			__sync_fetch_and_add(&within_unknown, 1);
		return 0;
	}
	t = bpf_task_storage_get(&within_threads, task, NULL,
				 sp ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
	ref.t = t;
	within_look(&ref, task, t ? t->tstate : 0);
	inside = ref.s->inside;
	if (!inside && ref.s->unknown && sp)
		__sync_fetch_and_add(&within_unknown, 1);
	if (t && sp) {
		if (inside && !(t->top && t->round == within_round(task)))
			__sync_fetch_and_add(&within_met, 1);
		if (!inside || t->round != within_round(task))
			t->top = 0;
		t->round = within_round(task);
		t->tstate = ref.s->walk.tstate;
		if (inside && t->top < sp)
			t->top = sp;
	}
	give_scratch(ref.s);
	return inside;
}

#endif
