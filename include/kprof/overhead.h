/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a recording cost, as it measured itself, and what it gave up to keep a bound on that.
 *
 * A cost is a share of the CPU time that the recorded processes used, or of one CPU where they used
 * less than one; where all processes were recorded, of the time that all CPUs of the machine were
 * busy, or of one. Over the bound (kprof_session_opts.max_overhead), the recording gives up in this
 * order: samples, so that there are fewer; operators that cost most and tell least, but for short
 * bursts of them; stacks of operators and waits; waits; operators altogether; and children, where
 * forks are what costs.
 */
#ifndef KPROF_OVERHEAD_H
#define KPROF_OVERHEAD_H

#include "kprof.h"

#ifdef __cplusplus
extern "C" {
#endif

enum kprof_overhead_part {
	KPROF_OVERHEAD_TRAPS,   /* entering the kernel at probes, and leaving it */
	KPROF_OVERHEAD_BPF,     /* the kernel's programs at probes, switches, forks */
	KPROF_OVERHEAD_SAMPLES, /* interrupts of the sampling clocks, with their program */
	KPROF_OVERHEAD_OWN,     /* kprof's thread that records */
	KPROF_OVERHEAD_HELPERS, /* its other threads and processes: tables, reading */
	KPROF_OVERHEAD_AGENTS,  /* agents in processes that use devices, as these say */
	KPROF_OVERHEAD_PARTS,
};

struct kprof_overhead_sums {
	bool machine;     /* shares are of what the machine used, not the recorded processes */
	uint64_t base_ns; /* what shares are of, over the whole recording */
	uint64_t cost_ns, part_ns[KPROF_OVERHEAD_PARTS];
	double share; /* cost_ns of base_ns */
	double worst; /* … of the second that cost most */
	double bound; /* 0: there was none */
	/* how long the second before was over the bound: in all, and without a break */
	uint64_t over_ns, longest_over_ns;
	/* Of kprof, at its end and at most; of the kernel, for its programs. */
	uint64_t resident_bytes, most_resident_bytes, kernel_bytes;
	size_t nr_steps;
};

struct kprof_overhead;

/* Reads what the capture says of it. 1; 0: it says nothing; -ENOMEM. Free it in any case. */
int kprof_overhead_new(const struct kprof_capture *c, struct kprof_overhead **out);
void kprof_overhead_free(struct kprof_overhead *o);
const struct kprof_overhead_sums *kprof_overhead_sums(const struct kprof_overhead *o);
/* The name of a part: "traps". */
const char *kprof_overhead_part_name(enum kprof_overhead_part part);

/*
 * Something was given up, or (samples) taken up again. Gaps (kprof_capture_gap()) have what was not
 * recorded from then on.
 */
struct kprof_overhead_step {
	/*
	 * "rate", "rate_back", "operators", "stacks", "wait_stacks", "all_operators", "children"
	 */
	char step[16];
	uint64_t at_ns;        /* since the begin of the recording */
	double share;          /* what the second before had cost */
	double from_hz, to_hz; /* samples a second and CPU; 0: it was about something else */
	uint32_t nr_operators;
	uint64_t back_ns; /* since the begin: it is recorded again from then on; 0: it is not */
};
/* The i-th step. 0; -ENOENT: past the end. */
int kprof_overhead_step(const struct kprof_overhead *o, size_t i, struct kprof_overhead_step *out);

struct kprof_overhead_operator {
	char name[256];
	double calls_a_second; /* before */
	double mean_ns;        /* how long a call took before; 0: not known */
	uint64_t for_ns;       /* how long it was given up */
	/*
	 * From time to time all that was given up was recorded for some milliseconds. Estimates
	 * for the whole of for_ns by so many of these bursts: how many calls there were, and the
	 * time in them. The errors are standard errors; 0: not known.
	 */
	uint32_t bursts;
	double calls, calls_error, ns, ns_error;
};
/* The k-th operator that the i-th step gave up. 0; -ENOENT: past the end. */
int kprof_overhead_operator(const struct kprof_overhead *o, size_t i, size_t k,
			    struct kprof_overhead_operator *out);

#ifdef __cplusplus
}
#endif

#endif
