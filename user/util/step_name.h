/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which annotations are steps of a training. PyTorch does not say what a step is; annotations do,
 * of which three kinds are known, from the most to the least explicit:
 *
 *   ProfilerStep#7                what torch.profiler's step() sets, and kprof/mark.h
 *   train_step, "step 7", iter 7  whatever else is called a step, or an iteration
 *   Optimizer.step#SGD.step       set by every optimizer: a step ends with it
 *
 * The user may name another one, which then is the only kind.
 */
#ifndef KPROF_UTIL_STEP_NAME_H
#define KPROF_UTIL_STEP_NAME_H

#include <stdbool.h>
#include <stdint.h>

/* The greater, the more explicit. */
enum step_kind { STEP_NONE, STEP_OPTIMIZER, STEP_NAMED, STEP_PROFILER, STEP_CHOSEN };

struct step_name {
	enum step_kind kind;
	bool numbered;
	uint64_t number;
};

/*
 * What the name of an event of this category says. chosen: the name, with or without a number
 * behind it, that the user gave; NULL: none.
 */
struct step_name step_name(const char *category, const char *name, const char *chosen);

#endif
