/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where PyTorch's objects have what an agent reads of operators' inputs, learnt from the code of
 * the build itself.
 */
#ifndef KPROF_CAPTURE_OBSERVER_LAYOUT_H
#define KPROF_CAPTURE_OBSERVER_LAYOUT_H

#include "capture/probe/layout.h"
#include "kprof/agent.h"

/*
 * From the framework's functions for this, as far as they are in the files and are understood.
 * Returns what an agent can read by it: KPROF_AGENT_OPT_INPUTS, KPROF_AGENT_OPT_SEQUENCE.
 */
uint32_t observer_layout(const struct catalog_framework *fw, const struct layout_env *env,
			 struct kprof_agent_layout *out);

/*
 * The same of lists only: .list_off, .list_tag, .tensor_kind. -ENOENT: the function for this is not
 * there, or is not understood.
 */
int observer_layout_lists(const struct catalog_framework *fw, const struct layout_env *env,
			  struct kprof_agent_layout *out);

struct code_bytes {
	const uint8_t *code; /* NULL: the function is not there */
	size_t bytes;
};
/*
 * From the bytes of the catalog's functions: all of it but what is known of tensors. Offsets that
 * they don't show are 0.
 */
void observer_layout_learn(struct code_bytes constructor, struct code_bytes inputs,
			   struct code_bytes begins, struct code_bytes is_list,
			   struct kprof_agent_layout *out);

#endif
