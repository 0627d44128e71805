/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KPROF_MODEL_CAPTURE_H
#define KPROF_MODEL_CAPTURE_H

#include "kprof.h"
#include "model/timeline.h"

/* What is behind a capture, for the parts of the library that read it as a whole. */
struct timeline *capture__timeline(struct kprof_capture *c);

#endif
