/* SPDX-License-Identifier: BSD-2-Clause */
/* What annotations have beside their text, as attributes: colour, payload, category of NVTX. */
#ifndef KPROF_CAPTURE_TEXT_ARGS_H
#define KPROF_CAPTURE_TEXT_ARGS_H

#include "capture/event/names.h"
#include "capture/record/record.h"

/* Fills in the attributes of a hit of the probe. Returns how many there are. */
uint32_t text_args(struct recorder *recorder, const struct probe *p, const struct name_hit *hit,
		   struct store_attr attrs[KPROF_WIRE_TEXT_ARGS]);

#endif
