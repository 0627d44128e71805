/* SPDX-License-Identifier: BSD-2-Clause */
/* What a device can do at most, by its properties in the capture. */
#ifndef KPROF_REPORT_PEAK_H
#define KPROF_REPORT_PEAK_H

#include "kprof.h"

struct peak {                  /* 0: not known */
	uint32_t major, minor; /* compute capability */
	double clocks_per_s;   /* of all multiprocessors together, at the highest clock */
	double bytes_per_s;    /* of the device's memory */
};

void peak_read(const struct kprof_capture *c, pid_t pid, uint32_t device, struct peak *out);
/*
 * Operations in a second on elements of this type ("c10::BFloat16"), two for each multiplication
 * with addition, matrices dense. tf32: of floats whose products are shortened to 19 bits. 0: not
 * known.
 */
double peak_flops_per_s(const struct peak *p, const char *type, bool tf32);

#endif
