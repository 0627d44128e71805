/* SPDX-License-Identifier: BSD-2-Clause */
/* Why nothing was recorded. */
#ifndef KPROF_CMD_RECORD_EMPTY_H
#define KPROF_CMD_RECORD_EMPTY_H

#include <stdbool.h>

#include "cmd/record/options.h"

/* Whether the capture has no events, samples, marks or work of devices. */
bool empty_is(const struct kprof_capture *c);
/*
 * Says on stderr what the processes do instead, and what to do about it. look: look at their
 * threads for that, which takes a moment.
 */
void empty_say(const struct record_opts *opts, const struct kprof_capture *c, bool look);

#endif
