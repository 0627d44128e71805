/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads what an operator is called with, from what PyTorch shows to observers that ask for inputs.
 * Nothing of PyTorch is called: kprof has learnt from its code where its objects have what is read.
 */
#ifndef KPROF_GPU_PYTORCH_INPUTS_H
#define KPROF_GPU_PYTORCH_INPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kprof/agent.h"

/*
 * Writes the inputs of this at::RecordFunction as words (enum kprof_input_kind); there is room for
 * KPROF_AGENT_INPUTS_WORDS. Returns how many were written; 0: it has no inputs, or, if *any, more
 * than KPROF_INPUTS_MAX.
 */
size_t inputs__read(const struct kprof_agent_layout *l, const void *record, uint64_t *words,
		    bool *any);

#endif
