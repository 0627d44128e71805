/* SPDX-License-Identifier: BSD-2-Clause */
/* Where PyTorch's tensors have their sizes, learnt from the code of the build itself. */
#ifndef KPROF_CAPTURE_TENSORS_H
#define KPROF_CAPTURE_TENSORS_H

#include "capture/probe/plan.h"

struct tensor_layout {
	uint16_t sizes_off; /* of TensorImpl::sizes_and_strides_, in bytes */
	/*
	 * Flags in the word KPROF_TENSOR_TYPE: with one of these set, the sizes are not in the
	 * object, or those in the object are not what the program sees
	 */
	uint64_t foreign;
};

/* -ENOENT: the framework's function for this is not in the files, or its code is not understood. */
int tensors_layout(const struct catalog_framework *fw, const struct plan_files *files,
		   struct tensor_layout *out);
/* The same, from the bytes of that function. */
int tensors_learn(const uint8_t *code, size_t bytes, struct tensor_layout *out);

#endif
