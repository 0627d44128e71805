/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which part of the time is recorded, where that is some steps of a training: says when the first
 * of them begins, and when the last has ended. What a step is, is decided as it is of captures
 * (util/step_name.h), but in time: where a better kind of annotation may still come, one whole step
 * goes by before.
 *
 * Processes have their steps each by itself. The window opens with the first one whose turn it is,
 * and closes when each that has steps has had its number of them in it.
 */
#ifndef KPROF_CAPTURE_STEPS_H
#define KPROF_CAPTURE_STEPS_H

#include <stdbool.h>
#include <stdint.h>

struct steps;

struct steps_opts {
	uint64_t nr;            /* how many are recorded */
	uint64_t warm_up;       /* how many go by before, at least */
	uint64_t warm_up_ns;    /* how much time goes by before, at least, from steps__start() on */
	const char *annotation; /* what a step is; NULL: whatever looks like one */
	uint64_t multiple_of;   /* … and until one whose number is such a multiple; 0: any */
};

enum steps_act { STEPS_NOTHING, STEPS_OPEN, STEPS_CLOSE };

int steps__new(const struct steps_opts *opts, struct steps **out);
void steps__free(struct steps *s); /* NULL is fine */
/* An event description. 0 or -ENOMEM. */
int steps__described(struct steps *s, uint32_t description, const char *category, const char *name);
/* Probes are in place: the warm-up begins. Before, nothing is opened. */
void steps__start(struct steps *s, uint64_t now_ns);

/*
 * A range of this description begins or ends on a thread, in order of time. If STEPS_OPEN, the
 * window opens at that time, and *act is of this process; if STEPS_CLOSE, it closes.  -ENOMEM.
 */
struct steps_range {
	uint32_t pid, thread; /* index */
	uint64_t time_ns;
	uint32_t description;
};
int steps__begin(struct steps *s, const struct steps_range *r, enum steps_act *act);
int steps__end(struct steps *s, const struct steps_range *r, enum steps_act *act);
/* The process has ended. */
enum steps_act steps__gone(struct steps *s, uint32_t pid);

struct steps_state {
	bool open, closed;
	uint32_t pid;        /* the process with whose step the window opened */
	bool unnumbered;     /* that step had no number, and one was to be chosen by it */
	uint32_t processes;  /* that have steps */
	uint64_t seen;       /* steps that began, of whatever process */
	uint64_t least_done; /* recorded of the process that has had fewest */
};
void steps__state(const struct steps *s, struct steps_state *out);

#endif
