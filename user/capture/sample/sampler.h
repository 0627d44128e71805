/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The clocks that sample: one a CPU, each at the same rate and never in step with each other or
 * with what the program does regularly. A sample stands for the period of its clock.
 */
#ifndef KPROF_CAPTURE_SAMPLER_H
#define KPROF_CAPTURE_SAMPLER_H

#include <stdint.h>

struct sampler;
/*
 * Opens a clock on every CPU, each at rest, with this BPF program. Error and hint set: -EACCES,
 * -EPERM (perf_event_paranoid), -ENOENT, -EOPNOTSUPP (no such clock here).
 */
int sampler__new(int program_fd, uint32_t hz, struct sampler **out);
void sampler__free(struct sampler *s);
int sampler__start(struct sampler *s);
void sampler__stop(struct sampler *s);
/*
 * To be called now and then: changes each clock's period by up to a twentieth, on average by
 * nothing, so that no regular program hides between two samples; follows CPUs that come and go.
 */
void sampler__vary(struct sampler *s, uint64_t now_ns);

#endif
