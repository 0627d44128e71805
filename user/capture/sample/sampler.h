/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The clocks that trigger samples: one per CPU, all at the same rate, but never in step with each
 * other or with something that the program does regularly. A sample stands for one period of its
 * clock.
 */
#ifndef KPROF_CAPTURE_SAMPLER_H
#define KPROF_CAPTURE_SAMPLER_H

#include <stdint.h>

struct sampler;
/*
 * Opens a clock on every CPU, not started yet, that runs this BPF program. Sets error and hint:
 * -EACCES, -EPERM (perf_event_paranoid), -ENOENT, -EOPNOTSUPP (no such clock on this machine).
 */
int sampler__new(int program_fd, uint32_t hz, struct sampler **out);
void sampler__free(struct sampler *s);
int sampler__start(struct sampler *s);
void sampler__stop(struct sampler *s);
uint64_t sampler__period(const struct sampler *s);
/* Changes the mean period. A sample that is due now comes up to half a period late. */
void sampler__set_period(struct sampler *s, uint64_t period_ns);
/*
 * To be called periodically: changes each clock's period by up to a twentieth, so that the mean
 * stays the same and no regular program hides between two samples. Also follows CPUs that go
 * offline and come online.
 */
void sampler__vary(struct sampler *s, uint64_t now_ns);

#endif
