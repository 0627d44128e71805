/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where kprof places its probe: an exported function that does nothing. Its first instruction is a
 * nop of five bytes, which recent kernels turn into a call when a probe is placed; it is also a
 * USDT site, kprof:agent_batch(data, bytes). Its visibility is protected, so that a second copy of
 * the library calls its own function.
 */
#ifndef KPROF_GPU_PROBE_H
#define KPROF_GPU_PROBE_H

#include <stdint.h>

__attribute__((visibility("protected"))) void kprof_agent_batch(const void *data, uint32_t bytes);

#endif
