/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Walking the Python frames of a thread. The same source is compiled for the kernel (BPF) and for
 * user space (`kprof dump`, tests). The file that includes it defines, before or after,
 *
 *   static int python_read(void *to, kprof_u32 bytes, kprof_u64 address)
 *
 * which reads the target's memory and returns 0 on success, and calls
 *
 *   python_begin(w);                                  w->thread, hint and futex are set
 *   for (i = 0; i < KPROF_PYTHON_MAX_STEPS; i++)      or bpf_loop()
 *           if (python_step(p, w))
 *                   break;
 *
 * Nothing in the target's memory is trusted: the target runs on while it is read (in BPF on other
 * threads, while this one is interrupted), and may be hostile. Every list is followed for a bounded
 * number of steps.
 *
 * How CPython keeps its frames, by release (Python/ceval.c, Include/internal/pycore_frame.h): In
 * 3.8 to 3.10 each Python frame has a PyFrameObject and a C eval frame, which is a call of the
 * interpreter's C function. From 3.11 on a C eval frame runs several Python frames. The one for
 * which it was called is marked in 3.11 (is_entry); from 3.12 on it is followed by a frame without
 * a function (the shim).
 */
#ifndef KPROF_BPF_PYTHON_H
#define KPROF_BPF_PYTHON_H

#include "kprof/python.h"

static int python_read(void *to, kprof_u32 bytes, kprof_u64 address);

enum python_phase {
	PYTHON_START,
	PYTHON_SEARCH, /* looks for the thread's state among all thread states */
	PYTHON_FRAMES,
	PYTHON_GIL,
	PYTHON_DONE,
};

/*
 * Low bits of a pointer to an object: free because objects are aligned, and used by 3.13 and later.
 */
#define PYTHON_TAGS 7ull

#define PYTHON_MAX_TLBC 4096 /* copies of a function's code: one a thread */

static inline kprof_u64 python_scratch64(const struct kprof_python_walk *w, kprof_u32 at)
{
	return *(const kprof_u64 *)((const char *)w->scratch +
				    (at & (KPROF_PYTHON_FRAME_BYTES - 8)));
}

static inline kprof_s32 python_scratch32(const struct kprof_python_walk *w, kprof_u32 at)
{
	return *(const kprof_s32 *)((const char *)w->scratch +
				    (at & (KPROF_PYTHON_FRAME_BYTES - 4)));
}

static inline kprof_u8 python_scratch8(const struct kprof_python_walk *w, kprof_u32 at)
{
	return *((const kprof_u8 *)w->scratch + (at & (KPROF_PYTHON_FRAME_BYTES - 1)));
}

/* Memory could not be read, or made no sense: the walk ends with the frames it has. */
static inline int python_bad(struct kprof_python_walk *w)
{
	w->flags |= KPROF_PYTHON_BAD;
	w->phase = w->tstate ? PYTHON_GIL : PYTHON_DONE;
	return w->phase == PYTHON_DONE;
}

static inline void python_begin(struct kprof_python_walk *w)
{
	w->tstate = w->holder = w->interp = w->state = w->next_state = w->frame = w->cframe = 0;
	w->flags = w->nr = 0;
	w->interpreters = w->states = w->first = w->shims = 0;
	w->phase = PYTHON_START;
}

/*
 * Is the hint still this thread's state? A freed thread state may keep its values, so it must also
 * be in the interpreter's list. Only with a single interpreter can the search be left out, since
 * the thread may have a state in each.
 */
static inline int python_hint_holds(const struct kprof_python *p, struct kprof_python_walk *w)
{
	kprof_u64 thread = 0, prev = 0, interp = 0, in_list = 0, other = 0;

	if (!w->hint || python_read(&thread, 8, w->hint + p->tstate_thread) ||
	    thread != w->thread || python_read(&interp, 8, w->hint + p->tstate_interp) ||
	    interp != w->interp || python_read(&other, 8, interp + p->interp_next) || other ||
	    python_read(&prev, 8, w->hint + p->tstate_prev) ||
	    python_read(&in_list, 8, prev ? prev + p->tstate_next : interp + p->interp_threads))
		return 0;
	return in_list == w->hint;
}

/* w->state is a thread state of this thread: its frames come next. */
static inline int python_found(const struct kprof_python *p, struct kprof_python_walk *w)
{
	kprof_u64 frame = 0;

	w->flags |= KPROF_PYTHON_FOUND;
	w->phase = PYTHON_FRAMES;
	w->first = w->nr;
	w->cframe = 0;
	if (!w->tstate)
		w->tstate = w->state;
	if (python_read(&frame, 8, w->state + p->tstate_frame))
		return python_bad(w);
	if (p->cframe_frame != KPROF_PYTHON_NONE && frame) {
		w->cframe = frame;
		if (python_read(&frame, 8, frame + p->cframe_frame))
			return python_bad(w);
	}
	w->frame = frame;
	return 0;
}

static inline int python_start(const struct kprof_python *p, struct kprof_python_walk *w)
{
	if (python_read(&w->interp, 8, p->runtime + p->runtime_interpreters) || !w->interp)
		return python_bad(w);
	if (python_hint_holds(p, w)) {
		w->flags |= KPROF_PYTHON_ONE_STATE;
		w->state = w->hint;
		return python_found(p, w);
	}
	w->phase = PYTHON_SEARCH;
	w->interpreters = 1;
	if (python_read(&w->next_state, 8, w->interp + p->interp_threads))
		return python_bad(w);
	return 0;
}

/* The search for thread states is over. */
static inline int python_searched(struct kprof_python_walk *w, kprof_u32 flags)
{
	if (!w->tstate)
		w->flags |= flags;
	w->phase = w->tstate ? PYTHON_GIL : PYTHON_DONE;
	return w->phase == PYTHON_DONE;
}

/*
 * Looks at one thread state, or goes on to the next interpreter. Interpreters are listed newest
 * first, which is the order of their frames on the stack.
 */
static inline int python_search(const struct kprof_python *p, struct kprof_python_walk *w)
{
	kprof_u64 thread = 0;

	if (!w->next_state) {
		if (w->interpreters >= KPROF_PYTHON_MAX_INTERPRETERS)
			return python_searched(w, KPROF_PYTHON_MANY);
		if (python_read(&w->interp, 8, w->interp + p->interp_next))
			return python_bad(w);
		if (!w->interp)
			return python_searched(w, 0);
		w->interpreters++;
		if (python_read(&w->next_state, 8, w->interp + p->interp_threads))
			return python_bad(w);
		return 0;
	}
	if (w->states >= KPROF_PYTHON_MAX_THREADS)
		return python_searched(w, KPROF_PYTHON_MANY);
	w->states++;
	w->state = w->next_state;
	if (python_read(&w->next_state, 8, w->state + p->tstate_next) ||
	    python_read(&thread, 8, w->state + p->tstate_thread))
		return python_bad(w);
	return thread == w->thread ? python_found(p, w) : 0;
}

/*
 * Address of the instructions that this frame executes: free-threaded builds have a copy of them
 * for each thread. 0: not known.
 */
static inline kprof_u64 python_instrs(const struct kprof_python *p, struct kprof_python_walk *w,
				      kprof_u64 code)
{
	kprof_u64 copies = 0, nr = 0, start = code + p->code_instrs;
	kprof_u32 which;

	if (p->code_tlbc == KPROF_PYTHON_NONE)
		return start;
	which = (kprof_u32)python_scratch32(w, p->frame_tlbc);
	if (!which)
		return start;
	if (python_read(&copies, 8, code + p->code_tlbc) || !copies ||
	    python_read(&nr, 8, copies) || which >= nr || which >= PYTHON_MAX_TLBC ||
	    python_read(&start, 8, copies + 8 + (kprof_u64)which * 8))
		return 0;
	return start;
}

/*
 * Keeps the frame in w->scratch, which is that of a function. Returns 1 if there is no room for it.
 */
static inline int python_keep(const struct kprof_python *p, struct kprof_python_walk *w)
{
	kprof_u64 code = python_scratch64(w, p->frame_code) & ~PYTHON_TAGS, start;
	struct kprof_python_frame *f;
	kprof_u32 nr = w->nr;

	if (nr >= KPROF_PYTHON_MAX_FRAMES)
		return 1;
	f = &w->frames[nr & (KPROF_PYTHON_MAX_FRAMES - 1)];
	f->code = code;
	f->flags = 0;
	f->firstline = 0;
	f->pad = 0;
	f->instr = -1;
	if (p->frame_instr_shift != KPROF_PYTHON_NONE) {
		f->instr = (kprof_s32)((kprof_u32)python_scratch32(w, p->frame_instr)
				       << (p->frame_instr_shift & 1));
	} else {
		start = python_instrs(p, w, code);
		if (start)
			f->instr = (kprof_s32)(python_scratch64(w, p->frame_instr) - start);
	}
	/* Up to 3.10 each frame has a C eval frame of its own. */
	if (p->frame_entry == KPROF_PYTHON_NONE ? p->frame_owner == KPROF_PYTHON_NONE
						: python_scratch8(w, p->frame_entry) != 0)
		f->flags = KPROF_PYTHON_ENTRY;
	/* Where this cannot be read the frame is kept all the same: the address tells its code. */
	if (python_read(&f->firstline, 4, code + p->code_firstlineno))
		f->firstline = 0;
	w->nr = nr + 1;
	return 0;
}

/*
 * Marks the outermost frame that was kept of this thread state. If there is none, its C eval frame
 * has no Python frame.
 */
static inline void python_mark(struct kprof_python_walk *w, kprof_u32 flags)
{
	if (w->nr > w->first)
		w->frames[(w->nr - 1) & (KPROF_PYTHON_MAX_FRAMES - 1)].flags |= flags;
	else if (!w->nr && flags & KPROF_PYTHON_ENTRY)
		w->flags |= KPROF_PYTHON_BARE_EVAL;
}

/* The last frame of the thread state was reached. Another interpreter may have called this one. */
static inline int python_frames_end(struct kprof_python_walk *w)
{
	python_mark(w, KPROF_PYTHON_LAST);
	w->phase = w->flags & KPROF_PYTHON_ONE_STATE ? PYTHON_GIL : PYTHON_SEARCH;
	return 0;
}

#define PYTHON_OB_TYPE 8 /* offset in PyObject, bytes, in builds with a GIL */

static inline int python_is_code(const struct kprof_python *p, const struct kprof_python_walk *w)
{
	kprof_u64 code = python_scratch64(w, p->frame_code) & ~PYTHON_TAGS, type = 0;

	return !python_read(&type, 8, code + PYTHON_OB_TYPE) && type == p->code_type;
}

/*
 * 3.11 and 3.12 make a _PyCFrame on the C stack the thread's current one some instructions before
 * they fill it in. Until then it holds whatever was on the stack. If that leads to no frame with a
 * code object, the previous _PyCFrame says where the thread is.
 */
static inline int python_outer_cframe(const struct kprof_python *p, struct kprof_python_walk *w,
				      kprof_u64 cframe)
{
	kprof_u64 before = 0;

	if (python_read(&before, 8, cframe + p->cframe_frame + 8))
		return python_bad(w);
	if (!before) /* the thread's first _PyCFrame: it runs no Python */
		return python_frames_end(w);
	w->flags |= KPROF_PYTHON_BARE_EVAL;
	return python_read(&w->frame, 8, before + p->cframe_frame) ? python_bad(w) : 0;
}

/*
 * Reads one frame, and goes on to the next. Returns 1 if the walk is over. *function: the frame in
 * w->scratch is that of a function.
 */
static inline int python_next(const struct kprof_python *p, struct kprof_python_walk *w,
			      int *function)
{
	kprof_u64 cframe = w->cframe;
	int unreadable;
	kprof_u8 owner;

	*function = 0;
	w->cframe = 0;
	if (!w->frame)
		return cframe ? python_outer_cframe(p, w, cframe) : python_frames_end(w);
	unreadable =
		python_read(w->scratch, p->frame_bytes & (KPROF_PYTHON_FRAME_BYTES - 1), w->frame);
	if (cframe && (unreadable || !python_is_code(p, w)))
		return python_outer_cframe(p, w, cframe);
	if (unreadable)
		return python_bad(w);
	w->frame = python_scratch64(w, p->frame_previous);
	if (p->frame_owner != KPROF_PYTHON_NONE) {
		owner = python_scratch8(w, p->frame_owner);
		if (owner >= p->frame_owner_shim) {
			python_mark(w, KPROF_PYTHON_ENTRY);
			/* Each shim has a frame before it, except in memory that makes no sense. */
			return w->shims++ > KPROF_PYTHON_MAX_FRAMES ? python_bad(w) : 0;
		}
	}
	*function = 1;
	return 0;
}

/* Takes one frame. */
static inline int python_frame(const struct kprof_python *p, struct kprof_python_walk *w)
{
	int function, over = python_next(p, w, &function);

	if (function && python_keep(p, w)) {
		w->flags |= KPROF_PYTHON_CUT;
		w->phase = PYTHON_GIL;
	}
	return over;
}

/*
 * Finds out which thread state holds the GIL, and whether this thread waits for it, which it does
 * at the condition variable or the mutex of the GIL.
 */
static inline int python_gil(const struct kprof_python *p, struct kprof_python_walk *w)
{
	kprof_u64 gil = p->runtime + p->runtime_gil, interp = 0, holder = 0, thread = 0;
	kprof_u32 locked = 0, enabled = 1;

	w->phase = PYTHON_DONE;
	if (p->runtime_gil == KPROF_PYTHON_NONE &&
	    (python_read(&interp, 8, w->tstate + p->tstate_interp) ||
	     python_read(&gil, 8, interp + p->interp_gil) || !gil))
		return 1;
	if (p->gil_enabled != KPROF_PYTHON_NONE &&
	    (python_read(&enabled, 4, gil + p->gil_enabled) || !enabled)) {
		w->flags |= KPROF_PYTHON_NO_GIL;
		return 1;
	}
	if (python_read(&locked, 4, gil + p->gil_locked) ||
	    python_read(&holder, 8, gil + p->gil_holder))
		return 1;
	if (locked == 1)
		w->holder = holder;
	/*
	 * Compare threads, not states: a thread may have a state in each of several interpreters.
	 */
	if (w->holder && !python_read(&thread, 8, w->holder + p->tstate_thread) &&
	    thread == w->thread)
		w->flags |= KPROF_PYTHON_HOLDS_GIL;
	else if (w->futex >= gil && w->futex - gil < p->gil_bytes)
		w->flags |= KPROF_PYTHON_WAITS_GIL;
	return 1;
}

/* 0: go on; 1: the walk has ended. */
static inline int python_step(const struct kprof_python *p, struct kprof_python_walk *w)
{
	switch (w->phase) {
	case PYTHON_START:
		return python_start(p, w);
	case PYTHON_SEARCH:
		return python_search(p, w);
	case PYTHON_FRAMES:
		return python_frame(p, w);
	case PYTHON_GIL:
		return python_gil(p, w);
	default:
		return 1;
	}
}

#endif
