/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compares captures: what takes longer in those made after a change than in those made before it,
 * and whether that is more than chance. The conventions are those of kprof.h. Captures are opened
 * one at a time.
 */
#ifndef KPROF_DIFF_H
#define KPROF_DIFF_H

#include "kprof.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Captures of the same program, in the same circumstances. */
struct kprof_diff_set {
	const char *const *paths;
	size_t nr;
};

enum kprof_diff_by {
	KPROF_DIFF_BY_AUTO = 0, /* operators if all captures have some, else functions */
	KPROF_DIFF_BY_OP,
	KPROF_DIFF_BY_FUNCTION,
	KPROF_DIFF_BY_LINE,
	KPROF_DIFF_BY_MODULE,
	KPROF_DIFF_BY_THREAD, /* samples by the thread's name */
	KPROF_DIFF_BY_KERNEL, /* what devices did */
	KPROF_DIFF_BY_WAIT,   /* what threads waited for, by the thread's name */
};

/* What times are divided by, since recordings differ in length. */
enum kprof_diff_per {
	/* Steps if all captures have some; else seconds, but shares of samples. */
	KPROF_DIFF_PER_AUTO = 0,
	KPROF_DIFF_PER_STEP,   /* of the training; only time within steps counts */
	KPROF_DIFF_PER_SECOND, /* of the recording */
	KPROF_DIFF_PER_RUN,    /* for captures of programs that did the same work */
	/* Of time that was counted: what it went to, however much of it the program got. */
	KPROF_DIFF_PER_SHARE,
	KPROF_DIFF_PER_CALL, /* of the operator or kernel */
};

struct kprof_diff_opts {
	size_t sz; /* sizeof(struct kprof_diff_opts), for compatibility */
	enum kprof_diff_by by;
	enum kprof_diff_per per;
	bool total; /* compare total times, not self times */
	enum kprof_frames frames;
	bool interpreter; /* as kprof_capture_show_interpreter() */
	/*
	 * Glob of the annotation with which each step begins; NULL: ProfilerStep#N, else what
	 * PyTorch sets around each optimizer's step.
	 */
	const char *step;
	/* Rows with less than this share of all time, 0 … 1, are not tested; negative: all are. */
	double min_share; /* 0: KPROF_DIFF_MIN_SHARE */
	/*
	 * For one capture of each side, which do not tell it: how much one run of the program
	 * differs from the next anyway, as the standard deviation's share of a time. 0: as much as
	 * most rows differ, and at least KPROF_DIFF_RUN_SPREAD; negative: not at all.
	 */
	double run_spread;
};
#define KPROF_DIFF_MIN_SHARE 0.005
#define KPROF_DIFF_RUN_SPREAD 0.005
#define KPROF_DIFF_LEVEL 0.05 /* false alarms: of all comparisons without a difference */

enum kprof_diff_verdict {
	KPROF_DIFF_NONE,     /* no difference that the data can show */
	KPROF_DIFF_MORE,     /* more time after than before */
	KPROF_DIFF_LESS,     /* less time after than before */
	KPROF_DIFF_UNTESTED, /* too small a row, or too short a recording */
};

/* Times in nanoseconds per step, second, run or call, of all threads or streams together. */
struct kprof_diff_change {
	double before, after;
	/* after - before, and the interval that agrees with the verdict. */
	double change, low, high;
	double p; /* by Welch's test, adjusted for all that is tested together (Holm) */
	/* The smallest change that would be found in four of five comparisons; 0: unknown. */
	double least;
	enum kprof_diff_verdict verdict;
};

struct kprof_diff_row {
	const char *name, *category;
	const char *where; /* path of the module or source file; "" unknown */
	struct kprof_diff_change time;
	/* Per unit; both, whichever is compared. Calls are samples in tables of those. */
	double self_before, self_after, total_before, total_after;
	double calls_before, calls_after;
};

struct kprof_diff_info {
	enum kprof_diff_by by; /* never AUTO */
	enum kprof_diff_per per;
	bool of_samples, total;
	bool between_runs; /* a side has several captures, and their spread counts */
	size_t nr_before, nr_after;
	double units_before, units_after;       /* steps, seconds or runs that were compared */
	double recorded_before, recorded_after; /* seconds of the recordings that these are of */
	double run_spread;    /* with one capture of each side: what was taken for it */
	size_t tested, small; /* rows that were tested, and too small ones */
	double small_share;   /* the larger share of all time of the small ones */
	/* Of all rows together; UNTESTED per call and as shares. */
	struct kprof_diff_change whole;
	struct kprof_diff_change step; /* how long a step took; UNTESTED unless by step */
};

struct kprof_diff;

int kprof_diff_new(const struct kprof_diff_set *before, const struct kprof_diff_set *after,
		   const struct kprof_diff_opts *opts, struct kprof_diff **out);
const struct kprof_diff_info *kprof_diff_info(const struct kprof_diff *d);
/* Sorted: those with a difference by its size, then the others by their time. */
size_t kprof_diff_nr_rows(const struct kprof_diff *d);
const struct kprof_diff_row *kprof_diff_row(const struct kprof_diff *d, size_t i);
/* Reasons for doubt, such as programs that differ; NULL past the end. */
const char *kprof_diff_note(const struct kprof_diff *d, size_t i);
/*
 * Whether the whole, a step or any row has more time after than before, beyond chance, by more than
 * this share of what it had before. A row that had none before counts.
 */
bool kprof_diff_above(const struct kprof_diff *d, double share);
void kprof_diff_free(struct kprof_diff *d);

struct kprof_diff_flame_opts {
	size_t sz;
	const char *path;        /* of the picture */
	enum kprof_diff_per per; /* AUTO: per second; not per call */
	const char *step;
	bool interpreter;
	bool relative;     /* colours say by what share of its time a frame has changed */
	bool width_before; /* widths are times before, not after */
	uint32_t uid, gid; /* owner of the file if running as root */
	bool set_owner;
};
/* Draws the samples of both sides as one flame graph: red is more time, blue is less. */
int kprof_diff_flame(const struct kprof_diff_set *before, const struct kprof_diff_set *after,
		     const struct kprof_diff_flame_opts *opts);

/* kprof_give_up_root() for the captures of two sets; after may be NULL. */
int kprof_give_up_root_of(const struct kprof_diff_set *before, const struct kprof_diff_set *after,
			  const char *output, uint32_t uid, uint32_t gid, bool nobody);

#ifdef __cplusplus
}
#endif
#endif /* KPROF_DIFF_H */
