// SPDX-License-Identifier: BSD-2-Clause
/*
 * What each CPU ran, and each thread's states, in the events of the kernel's own tracer, of which
 * Perfetto makes its view of the scheduler. Only of recordings of all waits, however short: a
 * thread that is back on its CPU unseen would be drawn where it is not.
 *
 * A wait is two switches. Between them, its CPU has no thread (0, the idle one), unless another
 * wait says so: what ran there was not recorded.
 */
#include <stdlib.h>
#include <string.h>

#include "sink/perfetto/impl.h"

/* As the kernel's tracer shows states: include/trace/events/sched.h */
#define STATE_PREEMPTED 0x100
#define STATE_SLEEPING 0x1
#define STATE_BLOCKED 0x2
#define STATE_STOPPED 0x4
#define STATE_ZOMBIE 0x20

/* TRACE_FLAG_HARDIRQ: an interrupt runs on the thread's CPU */
#define FLAG_INTERRUPT 0x08

struct sched {
	struct pftrace *p;
	uint64_t suspended_ns;     /* CLOCK_BOOTTIME - CLOCK_MONOTONIC, the clock of these events */
	uint64_t start_ns, end_ns; /* of what the trace covers */
	uint32_t *cpus;            /* by thread: CPU + 1 that it has got last; 0: none yet */
	bool lost;                 /* some waits were not recorded: said in the first packet */
};

static void put_event(struct sched *s, uint32_t cpu, uint64_t mono_ns,
		      Pf__FtraceEvents__Event *event)
{
	Pf__FtraceEvents events = PF__FTRACE_EVENTS__INIT;
	Pf__Packet packet = PF__PACKET__INIT;

	event->timestamp = mono_ns + s->suspended_ns;
	events.cpu = cpu ? cpu - 1 : 0;
	events.event = &event;
	events.n_event = 1;
	events.has_lost_events = events.lost_events = s->lost;
	s->lost = false;
	packet.ftrace_events = &events;
	pf_packet(s->p, &packet);
	pf_packet_done(s->p);
}

/* The thread leaves the CPU, in this state, or gets it (on). */
static void put_switch(struct sched *s, uint32_t cpu, uint64_t mono_ns, uint32_t thread, bool on,
		       int64_t state)
{
	Pf__FtraceEvents__Switch change = PF__FTRACE_EVENTS__SWITCH__INIT;
	Pf__FtraceEvents__Event event = PF__FTRACE_EVENTS__EVENT__INIT;
	const struct tl_thread *th = timeline__thread(s->p->t, thread);
	char *name = pf_text(s->p, th->title);

	if (on) {
		change.next_pid = th->tid;
		change.next_comm = name;
	} else {
		change.prev_pid = th->tid;
		change.prev_comm = name;
		change.prev_state = state;
		event.pid = (uint32_t)th->tid;
	}
	event.sched_switch = &change;
	put_event(s, cpu, mono_ns, &event);
}

static void put_waking(struct sched *s, const struct store_record *r)
{
	Pf__FtraceEvents__Waking waking = PF__FTRACE_EVENTS__WAKING__INIT;
	Pf__FtraceEvents__Event event = PF__FTRACE_EVENTS__EVENT__INIT;
	const struct tl_thread *th = timeline__thread(s->p->t, r->wait.thread);

	waking.pid = th->tid;
	waking.comm = pf_text(s->p, th->title);
	waking.has_target_cpu = r->wait.got_cpu != 0;
	waking.target_cpu = (int32_t)r->wait.got_cpu - 1;
	event.pid = r->wait.waker_tid;
	if (timeline__woken_by_interrupt(s->p->t, r)) {
		event.pid = 0;
		event.has_common_flags = true;
		event.common_flags = FLAG_INTERRUPT;
	}
	event.sched_waking = &waking;
	put_event(s, r->wait.waker_cpu, r->wait.wake_ns, &event);
}

static int64_t state_of(const struct store_record *r)
{
	switch (r->wait.flags & STORE_WAIT_STATE) {
	case STORE_WAIT_SLEEPING:
		return STATE_SLEEPING;
	case STORE_WAIT_BLOCKED:
		return STATE_BLOCKED;
	case STORE_WAIT_STOPPED:
		return STATE_STOPPED;
	default:
		return STATE_PREEMPTED;
	}
}

/* The begin of a wait; the end gets its turn later. */
static int on_begin(void *ctx, const struct store_record *r)
{
	struct sched *s = ctx;
	const struct tl_thread *th = timeline__thread(s->p->t, r->wait.thread);
	uint32_t *last = &s->cpus[r->wait.thread];
	uint32_t cpu = r->wait.left_cpu ? r->wait.left_cpu : *last;
	uint64_t since_ns = th->start_ns > s->start_ns ? th->start_ns : s->start_ns;
	/* it waits for its first CPU */
	bool is_new = !cpu && !(r->wait.flags & STORE_WAIT_FROM_START);

	if (!*last && r->wait.left_cpu && r->wait.start_ns > since_ns)
		put_switch(s, cpu, since_ns, r->wait.thread, true, 0);
	if (cpu && !(r->wait.flags & STORE_WAIT_FROM_START))
		put_switch(s, cpu, r->wait.start_ns, r->wait.thread, false, state_of(r));
	if (r->wait.wake_ns < r->wait.end_ns && (r->wait.start_ns < r->wait.wake_ns || is_new))
		put_waking(s, r);
	if (r->wait.got_cpu)
		*last = r->wait.got_cpu;
	return s->p->err;
}

static int on_end(void *ctx, const struct store_record *r)
{
	struct sched *s = ctx;

	if (r->wait.got_cpu)
		put_switch(s, r->wait.got_cpu, r->wait.end_ns, r->wait.thread, true, 0);
	return s->p->err;
}

/* Threads that have ended have left their CPUs for the last time. */
static void put_exits(struct sched *s)
{
	for (uint32_t i = 0; i < kprof_capture_info(s->p->t)->nr_threads; i++) {
		const struct tl_thread_time *time = timeline__thread_time(s->p->t, i);

		if (s->cpus[i] && time && time->end_ns < s->end_ns)
			put_switch(s, s->cpus[i], time->end_ns, i, false, STATE_ZOMBIE);
	}
}

static bool has_lost(const struct kprof_capture *t)
{
	const struct kprof_source *source;

	for (size_t i = 0; (source = kprof_capture_source(t, i)); i++)
		if (!strcmp(source->name, "waits"))
			return source->dropped != 0;
	return false;
}

int pf_sched(struct pftrace *p)
{
	struct kprof_capture *t = p->t;
	struct sched s = {.p = p,
			  .suspended_ns = timeline__waits_number(t, "suspended_ns"),
			  .lost = has_lost(t)};
	int err;

	if (!kprof_capture_meta(t, "waits") || timeline__waits_number(t, "min_wait_ns"))
		return 0;
	timeline__extent(t, &s.start_ns, &s.end_ns);
	s.cpus = calloc(kprof_capture_info(t)->nr_threads + 1, sizeof(*s.cpus));
	if (!s.cpus)
		return pf_no_memory(p);
	/* at equal times, a thread has to leave its CPU before another gets it */
	err = timeline__waits(t, p->opts->pid, on_begin, &s);
	if (!err) {
		put_exits(&s);
		err = timeline__waits(t, p->opts->pid, on_end, &s);
	}
	free(s.cpus);
	return err ? err : p->err;
}
