// SPDX-License-Identifier: BSD-2-Clause
/*
 * What each CPU ran, and each thread's states, in the events of the kernel's own tracer, of which
 * Perfetto makes its view of the scheduler. Only of recordings of all waits, however short: a
 * thread that is back on its CPU unseen would be drawn where it is not.
 *
 * Each wait is a thread that leaves a CPU, one that is woken, and one that gets a CPU. These
 * moments are sorted by CPU and time, and those of two threads at the same one are one switch.
 * Between them, the CPU has no thread (0, the idle one): what ran there was not recorded.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sink/perfetto/impl.h"
#include "util/bulk.h"
#include "util/error.h"
#include "util/order.h"

/* As the kernel's tracer shows states: include/trace/events/sched.h */
#define STATE_RUNNABLE 0
#define STATE_PREEMPTED 0x100
#define STATE_SLEEPING 0x1
#define STATE_BLOCKED 0x2
#define STATE_STOPPED 0x4
#define STATE_ZOMBIE 0x20

/* TRACE_FLAG_HARDIRQ: an interrupt runs on the thread's CPU */
#define FLAG_INTERRUPT 0x08

#define NO_THREAD UINT32_MAX
#define CLOSE_NS 1000 /* until_ns is a number of JSON, which is rounded */
#define BUNDLE 1024   /* moments in a packet */

/* At one time, a CPU is left before it is got. */
enum moment_kind { LEAVES, IS_WOKEN, GETS };

struct moment {
	uint64_t ns;
	uint32_t cpu;    /* from 0 */
	uint32_t thread; /* index */
	uint32_t waker;  /* TID of who wakes it; 0: not seen, or an interrupt */
	uint16_t kind, state;
	bool interrupt;
};

/* A packet: one CPU's switches, each by the thread that comes, and wakings. */
struct bundle {
	uint32_t cpu;
	size_t nr, nr_wakings, nr_names;
	uint64_t last_ns;
	uint64_t ns[BUNDLE]; /* since the switch before; the first one's time */
	int64_t prev_states[BUNDLE];
	int32_t next_pids[BUNDLE], next_prios[BUNDLE];
	uint32_t next_names[BUNDLE]; /* index in names */
	char *names[BUNDLE + 1];
	Pf__FtraceEvents__Event wakings[BUNDLE], *waking_at[BUNDLE];
	Pf__FtraceEvents__Waking woken[BUNDLE];
};

struct sched {
	struct pftrace *p;
	uint64_t suspended_ns;     /* CLOCK_BOOTTIME - CLOCK_MONOTONIC, the clock of these events */
	uint64_t start_ns, end_ns; /* of what the trace covers */
	uint64_t until_ns;         /* waits were given up then; 0: they were not */
	uint32_t *cpus;            /* by thread: CPU + 1 that it has got last; 0: none yet */
	struct bulk moments;
	bool lost;       /* some waits were not recorded: said in the first packet */
	uint32_t *named; /* by thread: index of its name in the bundle, if that one is its name */
	uint32_t runs;   /* thread on the current CPU, or NO_THREAD */
	struct bundle b;
};

/* ---- moments ---- */

static int add(struct sched *s, enum moment_kind kind, uint32_t cpu, uint64_t ns, uint32_t thread,
	       uint16_t state)
{
	struct moment *m = bulk__push(&s->moments);

	if (!m)
		return error_set(-ENOMEM, NULL, "no memory for the trace");
	*m = (struct moment){
		.ns = ns, .cpu = cpu ? cpu - 1 : 0, .thread = thread, .kind = kind, .state = state};
	return 0;
}

static int add_waking(struct sched *s, const struct store_record *r)
{
	int err = add(s, IS_WOKEN, r->wait.waker_cpu, r->wait.wake_ns, r->wait.thread, 0);
	struct moment *m = err ? NULL : bulk__at(&s->moments, s->moments.nr - 1);

	if (!m)
		return err;
	m->interrupt = timeline__woken_by_interrupt(s->p->t, r);
	m->waker = m->interrupt ? 0 : r->wait.waker_tid;
	return 0;
}

/*
 * A thread that was woken on its way to a wait is runnable when it leaves its CPU: readers pass
 * over a waking of a thread that still runs.
 */
static uint16_t state_of(const struct store_record *r)
{
	uint32_t state = r->wait.flags & STORE_WAIT_STATE;

	if (state == STORE_WAIT_PREEMPTED)
		return STATE_PREEMPTED;
	if (r->wait.wake_ns <= r->wait.start_ns)
		return STATE_RUNNABLE;
	if (state == STORE_WAIT_SLEEPING)
		return STATE_SLEEPING;
	return state == STORE_WAIT_BLOCKED ? STATE_BLOCKED : STATE_STOPPED;
}

static int on_wait(void *ctx, const struct store_record *r)
{
	struct sched *s = ctx;
	const struct tl_thread *th = timeline__thread(s->p->t, r->wait.thread);
	uint32_t *last = &s->cpus[r->wait.thread];
	uint32_t cpu = r->wait.left_cpu ? r->wait.left_cpu : *last;
	uint64_t since_ns = th->start_ns > s->start_ns ? th->start_ns : s->start_ns;
	/* it waits for its first CPU */
	bool is_new = !cpu && !(r->wait.flags & STORE_WAIT_FROM_START);
	int err = 0;

	/* until its first wait, it has been on the CPU that it left then */
	if (!*last && r->wait.left_cpu && r->wait.start_ns > since_ns)
		err = add(s, GETS, cpu, since_ns, r->wait.thread, 0);
	if (!err && cpu && !(r->wait.flags & STORE_WAIT_FROM_START))
		err = add(s, LEAVES, cpu, r->wait.start_ns, r->wait.thread, state_of(r));
	if (!err && r->wait.wake_ns < r->wait.end_ns &&
	    (r->wait.start_ns < r->wait.wake_ns || is_new))
		err = add_waking(s, r);
	if (!err && r->wait.got_cpu) {
		*last = r->wait.got_cpu;
		err = add(s, GETS, r->wait.got_cpu, r->wait.end_ns, r->wait.thread, 0);
	}
	return err;
}

/*
 * Threads that have ended have left their CPUs for the last time. When waits were given up, all
 * have, as far as is known.
 */
static int add_exits(struct sched *s)
{
	int err = 0;

	for (uint32_t i = 0; i < kprof_capture_info(s->p->t)->nr_threads && !err; i++) {
		const struct tl_thread_time *time = timeline__thread_time(s->p->t, i);

		if (s->cpus[i] && time && time->end_ns < s->end_ns)
			err = add(s, LEAVES, s->cpus[i], time->end_ns, i,
				  time->end_ns + CLOSE_NS < s->until_ns || !s->until_ns
					  ? STATE_ZOMBIE
					  : STATE_STOPPED);
	}
	return err;
}

static int by_cpu_and_time(const void *pa, const void *pb, void *ctx)
{
	const struct moment *a = pa, *b = pb;

	if (a->cpu != b->cpu)
		return order_u64(a->cpu, b->cpu);
	if (a->ns != b->ns)
		return order_u64(a->ns, b->ns);
	return order_u64(a->kind, b->kind);
}

/* ---- packets ---- */

static void flush(struct sched *s)
{
	Pf__FtraceEvents__Compact compact = PF__FTRACE_EVENTS__COMPACT__INIT;
	Pf__FtraceEvents events = PF__FTRACE_EVENTS__INIT;
	Pf__Packet packet = PF__PACKET__INIT;
	struct bundle *b = &s->b;

	if (b->nr + b->nr_wakings) {
		compact.n_ns = compact.n_prev_states = compact.n_next_pids = compact.n_next_prios =
			compact.n_next_names = b->nr;
		compact.ns = b->ns;
		compact.prev_states = b->prev_states;
		compact.next_pids = b->next_pids;
		compact.next_prios = b->next_prios;
		compact.next_names = b->next_names;
		compact.n_names = b->nr_names;
		compact.names = b->names;
		events.cpu = b->cpu;
		events.compact = b->nr ? &compact : NULL;
		events.event = b->waking_at;
		events.n_event = b->nr_wakings;
		events.has_lost_events = events.lost_events = s->lost;
		s->lost = false;
		packet.ftrace_events = &events;
		pf_packet(s->p, &packet);
		pf_packet_done(s->p);
	}
	b->nr = b->nr_wakings = b->nr_names = 0;
}

static uint32_t name_of(struct sched *s, uint32_t thread)
{
	static char idle[] = "swapper";
	struct bundle *b = &s->b;
	uint32_t *at =
		&s->named[thread == NO_THREAD ? kprof_capture_info(s->p->t)->nr_threads : thread];
	char *name = thread == NO_THREAD ? idle
					 : pf_text(s->p, timeline__thread(s->p->t, thread)->title);

	/* what is there may be of a bundle before */
	if (*at < b->nr_names && b->names[*at] == name)
		return *at;
	*at = (uint32_t)b->nr_names;
	b->names[b->nr_names++] = name;
	return *at;
}

/* The CPU goes over to this thread; the one before is in this state. */
static void put_switch(struct sched *s, uint64_t ns, int64_t prev_state, uint32_t next)
{
	struct bundle *b = &s->b;
	size_t i = b->nr;

	b->next_names[i] = name_of(s, next);
	ns += s->suspended_ns;
	b->ns[i] = i ? ns - b->last_ns : ns;
	b->last_ns = ns;
	b->prev_states[i] = prev_state;
	b->next_pids[i] = next == NO_THREAD ? 0 : timeline__thread(s->p->t, next)->tid;
	b->next_prios[i] = 120; /* that of a nice value of 0: others are not recorded */
	b->nr++;
	s->runs = next;
}

static void put_waking(struct sched *s, const struct moment *m)
{
	struct bundle *b = &s->b;
	Pf__FtraceEvents__Event *event = &b->wakings[b->nr_wakings];
	Pf__FtraceEvents__Waking *waking = &b->woken[b->nr_wakings];

	pf__ftrace_events__event__init(event);
	pf__ftrace_events__waking__init(waking);
	event->timestamp = m->ns + s->suspended_ns;
	event->pid = m->waker;
	event->has_common_flags = m->interrupt;
	event->common_flags = FLAG_INTERRUPT;
	event->sched_waking = waking;
	waking->pid = timeline__thread(s->p->t, m->thread)->tid;
	b->waking_at[b->nr_wakings++] = event;
}

/* Moment i; returns how many it took. */
static size_t put_moment(struct sched *s, size_t i)
{
	const struct moment *m = bulk__at(&s->moments, i);
	const struct moment *next = i + 1 < s->moments.nr ? bulk__at(&s->moments, i + 1) : NULL;

	switch (m->kind) {
	case IS_WOKEN:
		put_waking(s, m);
		return 1;
	case GETS:
		put_switch(s, m->ns, 0, m->thread);
		return 1;
	default:
		if (s->runs != m->thread) /* how it came there was not seen */
			put_switch(s, m->ns, 0, m->thread);
		if (next && next->kind == GETS && next->cpu == m->cpu && next->ns == m->ns) {
			put_switch(s, m->ns, m->state, next->thread);
			return 2;
		}
		put_switch(s, m->ns, m->state, NO_THREAD);
		return 1;
	}
}

/* Readers know what a CPU ran only from its second switch on. */
static void begin_cpu(struct sched *s, const struct moment *m)
{
	s->b.cpu = m->cpu;
	put_switch(s, m->ns < s->start_ns ? m->ns : s->start_ns, 0, NO_THREAD);
}

static void put_all(struct sched *s)
{
	struct bundle *b = &s->b;

	b->cpu = UINT32_MAX;
	for (size_t i = 0; i < s->moments.nr && !s->p->err;) {
		const struct moment *m = bulk__at(&s->moments, i);

		if (m->cpu != b->cpu || b->nr + 2 > BUNDLE || b->nr_wakings == BUNDLE)
			flush(s);
		if (m->cpu != b->cpu)
			begin_cpu(s, m);
		i += put_moment(s, i);
	}
	flush(s);
}

/* ---- the whole ---- */

static bool has_lost(const struct kprof_capture *t)
{
	const struct kprof_source *source;

	for (size_t i = 0; (source = kprof_capture_source(t, i)); i++)
		if (!strcmp(source->name, "waits"))
			return source->dropped != 0;
	return false;
}

static int make(struct sched *s)
{
	size_t nr = kprof_capture_info(s->p->t)->nr_threads;
	int err;

	s->cpus = calloc(nr + 1, sizeof(*s->cpus));
	s->named = calloc(nr + 1, sizeof(*s->named));
	if (!s->cpus || !s->named)
		return pf_no_memory(s->p);
	err = timeline__waits(s->p->t, s->p->opts->pid, on_wait, s);
	if (!err)
		err = add_exits(s);
	if (!err && bulk__sort(&s->moments, 0, s->moments.nr, by_cpu_and_time, NULL))
		err = pf_no_memory(s->p);
	if (!err)
		put_all(s);
	return err;
}

int pf_sched(struct pftrace *p)
{
	struct kprof_capture *t = p->t;
	struct sched *s;
	int err;

	/* CPUs of different machines have the same numbers. */
	if (!kprof_capture_meta(t, "waits") || timeline__waits_number(t, "min_wait_ns") ||
	    timeline__machines(t) > 1)
		return 0;
	s = calloc(1, sizeof(*s));
	if (!s)
		return pf_no_memory(p);
	s->p = p;
	s->suspended_ns = timeline__waits_number(t, "suspended_ns");
	s->until_ns = timeline__waits_number(t, "until_ns");
	s->lost = has_lost(t);
	s->moments.size = sizeof(struct moment);
	s->runs = NO_THREAD;
	timeline__extent(t, &s->start_ns, &s->end_ns);
	err = make(s);
	free(s->cpus);
	free(s->named);
	bulk__free(&s->moments);
	free(s);
	return err ? err : p->err;
}
