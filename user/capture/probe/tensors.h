/* SPDX-License-Identifier: BSD-2-Clause */
/* Where PyTorch's tensors have their sizes, learnt from the code of the build itself. */
#ifndef KPROF_CAPTURE_TENSORS_H
#define KPROF_CAPTURE_TENSORS_H

#include "capture/probe/layout.h"
#include "kprof/wire.h"

struct tensor_layout {
	uint16_t sizes_off; /* of TensorImpl::sizes_and_strides_, in bytes */
	uint64_t type_mask; /* as in struct kprof_inputs_plan */
};

/* -ENOENT: the framework's function for this is not in the files, or its code is not understood. */
int tensors_layout(const struct catalog_framework *fw, const struct layout_env *env,
		   struct tensor_layout *out);
/* The same, from the bytes of that function. */
int tensors_learn(const uint8_t *code, size_t bytes, struct tensor_layout *out);

#endif
