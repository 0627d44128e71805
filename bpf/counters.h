/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counters, read at each hit. Some are numbers that the kernel keeps of each thread. Others are
 * counted by CPUs, whoever runs there: of these, a thread's own part is kept in its storage, and
 * completed at each switch between threads (counters.bpf.c). A switch that was not seen, or an
 * event that was not counted all the time, begins a new epoch of the thread: no difference is made
 * across it.
 */
#ifndef KPROF_BPF_COUNTERS_H
#define KPROF_BPF_COUNTERS_H

#include "common.h"

struct counted { /* of one thread */
	/* The thread's number of switches when it was last seen to get or to leave its CPU. */
	__u64 switches;
	__u64 epoch;
	__u64 gap;     /* ns in which this CPU's events were not counted, when the thread got it */
	__u32 running; /* in[] are of the CPU that it is on */
	__u32 pad;
	__u64 sum[KPROF_WIRE_MAX_COUNTERS]; /* up to when it last left a CPU */
	__u64 in[KPROF_WIRE_MAX_COUNTERS];  /* the CPU's numbers when the thread got it */
};

struct counted_map {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct counted);
};

/* Filled by user space: event i of CPU c is at i × counter_cpus + c. */
struct counter_events_map {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
};

extern struct counted_map counted_threads SEC(".maps");
extern struct counter_events_map counter_events SEC(".maps");

/* Set by user space before the programs are loaded: the verifier knows their values. */
extern const volatile __u32 nr_counters;
extern const volatile __u32 counter_cpus; /* 0: none is counted by CPUs */
extern const volatile __u8 counter_sources[KPROF_WIRE_MAX_COUNTERS];

#define EACH_COUNTER(i) (__u32 i = 0; i < KPROF_WIRE_MAX_COUNTERS && i < nr_counters; i++)

/* What this CPU has counted so far. */
struct cpu_counts {
	__u64 gap; /* ns in which events were not counted */
	__u64 values[KPROF_WIRE_MAX_COUNTERS];
};

/* Returns false if an event cannot be read: its CPU has been offline. */
static __always_inline bool read_cpu(struct cpu_counts *now)
{
	bool fine = true;

	now->gap = 0;
	for
		EACH_COUNTER(i)
		{
			struct bpf_perf_event_value v = {};
			__u64 at = (__u64)i * counter_cpus + bpf_get_smp_processor_id();

			now->values[i] = 0;
			if (counter_sources[i] == KPROF_COUNTER_CLOCK) {
				now->values[i] = bpf_ktime_get_ns();
			} else if (counter_sources[i] == KPROF_COUNTER_EVENT) {
				if (bpf_perf_event_read_value(&counter_events, at, &v, sizeof(v)))
					fine = false;
				now->values[i] = v.counter;
				now->gap += v.enabled - v.running;
			}
		}
	return fine;
}

static __always_inline __u64 switches_of(const struct task_struct *task)
{
	return task->nvcsw + task->nivcsw;
}

/*
 * The thread has its CPU from now on, as far as counters go. It may be preempted meanwhile: then it
 * has another number of switches than the one that is noted here, so that this is done again.
 */
static __always_inline void count_from(struct counted *c, const struct cpu_counts *now,
				       __u64 switches)
{
	c->running = 0;
	barrier();
	for
		EACH_COUNTER(i)
	c->in[i] = now->values[i];
	c->gap = now->gap;
	c->switches = switches;
	barrier();
	c->running = 1;
}

/* Writes the counters of CPUs, of the thread that runs here. */
static __always_inline void put_cpu_counters(struct kprof_wire_counters *to, struct counted *c,
					     __u64 switches)
{
	struct cpu_counts now;

	to->epoch = 0;
	if (!read_cpu(&now)) {
		c->running = 0;
		return;
	}
	if (!c->running || c->switches != switches || c->gap != now.gap) {
		c->epoch++;
		count_from(c, &now, switches);
	}
	to->epoch = c->epoch;
	for
		EACH_COUNTER(i)
	if (KPROF_COUNTER_OF_CPU(counter_sources[i]))
		to->values[i] = c->sum[i] + now.values[i] - c->in[i];
}

static __always_inline void put_thread_counters(struct kprof_wire_counters *to,
						const struct task_struct *task)
{
	for
		EACH_COUNTER(i)
		{
			__u64 v = 0;

			switch (counter_sources[i]) {
			case KPROF_COUNTER_MINOR_FAULTS:
				v = task->min_flt;
				break;
			case KPROF_COUNTER_MAJOR_FAULTS:
				v = task->maj_flt;
				break;
			case KPROF_COUNTER_FAULTS:
				v = task->min_flt + task->maj_flt;
				break;
			case KPROF_COUNTER_SWITCHES:
				v = switches_of(task);
				break;
			case KPROF_COUNTER_MIGRATIONS:
				v = task->se.nr_migrations;
				break;
			}
			to->values[i] = v; /* the ring's memory is not cleared */
		}
}

#define COUNTER_TRIES 4

/* The counters at one moment: if the thread is preempted meanwhile, they are read again. */
static __noinline int put_counters(struct kprof_wire_counters *to)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct counted *c = NULL;

	if (counter_cpus)
		c = bpf_task_storage_get(&counted_threads, task, NULL,
					 BPF_LOCAL_STORAGE_GET_F_CREATE);
	for (int i = 0; i < COUNTER_TRIES; i++) {
		__u64 switches = switches_of(task);

		barrier();
		put_thread_counters(to, task);
		if (c)
			put_cpu_counters(to, c, switches);
		barrier();
		if (c && switches_of(task) == switches)
			return 0;
		if (!c)
			break;
	}
	to->epoch = 0;
	return 0;
}

static __always_inline __u64 counters_bytes(void)
{
	return nr_counters ? sizeof(struct kprof_wire_counters) + nr_counters * 8 : 0;
}

/* reserve() with room for the counters behind the record. */
static __always_inline void *reserve_counted(const struct kprof_hit *hit, const __u64 bytes)
{
	return reserve(hit, bytes + counters_bytes());
}

/* fill_hit_header() of a record of `size` bytes, a constant, with the counters behind it. */
static __always_inline void fill_counted(struct kprof_wire_hdr *h, const struct kprof_hit *hit,
					 __u16 kind, const __u16 size)
{
	fill_hit_header(h, hit, kind, size);
	if (nr_counters)
		put_counters((void *)h + size);
}

#endif
