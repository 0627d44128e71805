/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where PyTorch's objects have what an agent reads of operators' inputs, learnt from the code of the
 * build itself.
 */
#ifndef KPROF_CAPTURE_OBSERVER_LAYOUT_H
#define KPROF_CAPTURE_OBSERVER_LAYOUT_H

#include "capture/probe/layout.h"
#include "kprof/agent.h"

/*
 * What the framework's functions for this show: 0 for the offsets that they don't, as when they are
 * not in the files, or not understood. Without tensors, list_off is 0, too.
 */
void observer_layout(const struct catalog_framework *fw, const struct layout_env *env,
		     struct kprof_agent_layout *out);

struct code_bytes {
	const uint8_t *code; /* NULL: the function is not there */
	size_t bytes;
};
/* From the bytes of the catalog's functions: all of it but what is known of tensors. */
void observer_layout_learn(struct code_bytes constructor, struct code_bytes inputs,
			   struct code_bytes begins, struct code_bytes is_list,
			   struct kprof_agent_layout *out);

#endif
