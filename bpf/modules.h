/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which calls of PyTorch's modules the thread is in: looked for at each event, on the thread's
 * Python stack, and told when it is other than at the event before. Nothing of this is loaded
 * unless modules are recorded.
 */
#ifndef KPROF_BPF_MODULES_H
#define KPROF_BPF_MODULES_H

#include "common.h"
#include "kprof/modules.h"

extern const volatile bool with_modules;
extern __u32 modules_source;
/* Counted up by user space: all calls are to be told again. */
extern __u32 modules_asked;

struct kprof_modules_processes {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32); /* process id */
	__type(value, struct kprof_modules);
};

/* A call that was met, and a hash of it and of all around it. */
struct modules_met {
	struct kprof_module_call call;
	__u64 hash;
	__u64 round; /* it counts only in this one of the thread's rounds */
};
#define MODULES_MET 64 /* a power of two */
#define MODULES_MET_AT(frame) ((__u32)((frame) >> 4 ^ (frame) >> 10) & (MODULES_MET - 1))

struct modules_thread {
	__u64 told;   /* a hash of the calls that were told last; 0: it is in none */
	__u64 tstate; /* its thread state, so that it need not be searched for again */
	__u64 round;  /* begins anew when user space does not know what was told */
	__u32 asked;  /* modules_asked when it last began */
	__u32 pad;
	struct modules_met met[MODULES_MET]; /* by the address of the frame */
};

struct kprof_modules_threads {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct modules_thread);
};

struct modules_scratch {
	__u32 busy; /* see take_scratch() */
	__u32 failed;
	__u64 hash;
	struct kprof_module_call on; /* a call that was told; .frame 0: there is none */
	struct kprof_python_walk walk;
	struct kprof_wire_modules out;
	struct kprof_module_call calls[KPROF_MODULES_MAX_CALLS]; /* right behind it */
};

#define NR_MODULES_SCRATCHES 4
struct kprof_modules_scratches {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, NR_MODULES_SCRATCHES);
	__type(key, __u32);
	__type(value, struct modules_scratch);
};

extern struct kprof_modules_processes modules_processes SEC(".maps");
extern struct kprof_modules_threads modules_threads SEC(".maps");
extern struct kprof_modules_scratches modules_scratches SEC(".maps");

static __always_inline int python_read(void *to, kprof_u32 bytes, kprof_u64 address)
{
	return bpf_probe_read_user(to, bytes, (void *)address);
}

#include "python.h"

struct modules_ref { /* bpf_loop() takes a pointer to the stack only */
	struct modules_scratch *s;
	const struct kprof_modules *m;
	struct modules_thread *t;
};

static __always_inline void modules_mix(struct modules_scratch *s, __u64 v)
{
	__u64 h = (s->hash ^ v) * 0x9e3779b97f4a7c15ull;

	s->hash = h ^ h >> 29;
}

static __always_inline long modules_fail(struct modules_scratch *s)
{
	s->failed = 1;
	return 1;
}

/*
 * The call was met before: what is around it is known. Only where a call has a number of its own,
 * for at the same address there may be another one.
 */
static __always_inline bool modules_was_met(struct modules_ref *ref,
					    const struct kprof_module_call *c)
{
	struct modules_met *met = &ref->t->met[MODULES_MET_AT(c->frame)];

	if (ref->m->python.dict_version == KPROF_PYTHON_NONE || met->round != ref->t->round ||
	    met->call.frame != c->frame || met->call.tag != c->tag || met->call.self != c->self)
		return false;
	ref->s->on = met->call;
	ref->s->hash = met->hash;
	return true;
}

/* The frame is that of a module's call. */
static __always_inline long modules_put(struct modules_ref *ref, __u64 frame)
{
	const struct kprof_python *p = &ref->m->python;
	struct modules_scratch *s = ref->s;
	struct kprof_module_call *c = &s->calls[s->out.nr & (KPROF_MODULES_MAX_CALLS - 1)];
	struct {
		__u64 self, args, kwargs;
	} locals;

	/* one is left for what the calls are on */
	if (s->out.nr >= KPROF_MODULES_MAX_CALLS - 1 ||
	    python_read(&locals, sizeof(locals), frame + p->frame_locals))
		return modules_fail(s);
	locals.self &= ~PYTHON_TAGS;
	locals.kwargs &= ~PYTHON_TAGS;
	c->frame = frame;
	c->self = locals.self;
	c->tag = locals.args * 31 ^ locals.kwargs;
	if (p->dict_version != KPROF_PYTHON_NONE &&
	    python_read(&c->tag, 8, locals.kwargs + p->dict_version))
		return modules_fail(s);
	if (modules_was_met(ref, c)) {
		s->walk.phase = PYTHON_DONE;
		return 1;
	}
	if (python_read(&c->type, 8, locals.self + p->object_type))
		return modules_fail(s);
	s->out.nr++;
	return 0;
}

/* 1: the walk is over; s->failed says whether before its end. */
static long modules_step(__u32 i, void *ctx)
{
	struct modules_scratch *s = ((struct modules_ref *)ctx)->s;
	const struct kprof_modules *m = ((struct modules_ref *)ctx)->m;
	struct kprof_python_walk *w = &s->walk;
	__u64 frame;

	switch (w->phase) {
	case PYTHON_START:
		return python_start(&m->python, w);
	case PYTHON_SEARCH:
		return python_search(&m->python, w);
	case PYTHON_FRAMES:
		break;
	default:
		return 1;
	}
	frame = w->frame;
	if (!frame) {
		w->phase = PYTHON_DONE;
		return 1;
	}
	if (python_read(w->scratch, m->python.frame_bytes & (KPROF_PYTHON_FRAME_BYTES - 1), frame))
		return modules_fail(s);
	w->frame = python_scratch64(w, m->python.frame_previous);
	if ((python_scratch64(w, m->python.frame_code) & ~PYTHON_TAGS) != m->call_code)
		return 0;
	return modules_put(ctx, frame);
}

/* Takes in the calls that are new, outermost first. */
static long modules_meet(__u32 i, void *ctx)
{
	struct modules_ref *ref = ctx;
	struct modules_scratch *s = ref->s;
	const struct kprof_module_call *c =
		&s->calls[(s->out.nr - 1 - i) & (KPROF_MODULES_MAX_CALLS - 1)];
	struct modules_met *met = &ref->t->met[MODULES_MET_AT(c->frame)];

	modules_mix(s, c->frame);
	modules_mix(s, c->self);
	modules_mix(s, c->type);
	modules_mix(s, c->tag);
	met->call = *c;
	met->hash = s->hash;
	met->round = ref->t->round;
	return 0;
}

/* Looks for the calls. A thread that has no state in Python is in none. */
static __always_inline void modules_walk(struct modules_ref *ref, struct task_struct *task)
{
	struct modules_scratch *s = ref->s;

	s->failed = 0;
	s->hash = 0;
	s->on.frame = 0;
	s->out.nr = 0;
	s->out.flags = 0;
	s->walk.thread = BPF_CORE_READ(task, thread.fsbase);
	s->walk.hint = ref->t->tstate;
	s->walk.futex = 0;
	python_begin(&s->walk);
	bpf_loop(KPROF_PYTHON_MAX_THREADS + KPROF_MODULES_MAX_FRAMES, modules_step, ref, 0);
	if (s->walk.phase != PYTHON_DONE || s->walk.flags & (KPROF_PYTHON_BAD | KPROF_PYTHON_MANY))
		s->failed = 1;
	if (!s->failed) {
		bpf_loop(s->out.nr, modules_meet, ref, 0);
		return;
	}
	ref->t->round++;
	s->on.frame = 0;
	s->out.nr = 0;
	s->out.flags = KPROF_MODULES_UNKNOWN;
	s->hash = 0;
	modules_mix(s, ~0ull);
}

static __always_inline bool modules_tell(struct modules_scratch *s, __u64 pid_tgid, __u64 sp)
{
	struct kprof_wire_count *count = count_fired(modules_source);
	void *ring = this_ring();
	__u64 bytes;

	if (s->on.frame) {
		s->calls[s->out.nr & (KPROF_MODULES_MAX_CALLS - 1)] = s->on;
		s->out.nr++;
		s->out.flags |= KPROF_MODULES_ON;
	}
	bytes = sizeof(s->out) + (__u64)s->out.nr * sizeof(s->calls[0]);
	if (bytes > sizeof(s->out) + sizeof(s->calls))
		bytes = sizeof(s->out) + sizeof(s->calls);
	fill_header(&s->out.h, pid_tgid, sp, 0, KPROF_WIRE_MODULES, bytes);
	if (ring && !bpf_ringbuf_output(ring, &s->out, bytes, BPF_RB_NO_WAKEUP))
		return true;
	if (count)
		__sync_fetch_and_add(&count->dropped, 1);
	return false;
}

/* To be called at each event that may begin or end something, before its record is reserved. */
static __noinline int report_modules(__u64 pid_tgid, __u64 sp)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct modules_thread *t;
	struct modules_ref ref;
	__u32 pid = pid_tgid >> 32;

	ref.m = bpf_map_lookup_elem(&modules_processes, &pid);
	if (!ref.m)
		return 0;
	t = bpf_task_storage_get(&modules_threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!t)
		return 0;
	ref.t = t;
	ref.s = take_scratch(&modules_scratches, NR_MODULES_SCRATCHES);
	if (!ref.s)
		return 0;
	if (t->asked != modules_asked) {
		t->asked = modules_asked;
		t->round++;
		t->told = ~0ull;
	}
	modules_walk(&ref, task);
	t->tstate = ref.s->walk.tstate;
	if (ref.s->hash != t->told) {
		if (modules_tell(ref.s, pid_tgid, sp)) {
			t->told = ref.s->hash;
		} else { /* what was met now is not known to user space */
			t->round++;
			t->told = ~0ull;
		}
	}
	give_scratch(ref.s);
	return 0;
}

#endif
