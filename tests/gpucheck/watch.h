/* SPDX-License-Identifier: BSD-2-Clause */
/* What a program can ask of gpucheck_watch.so, which it finds by its name among its libraries. */
#ifndef GPUCHECK_WATCH_H
#define GPUCHECK_WATCH_H

#include <stdio.h>

/* Keeps which clock CUPTI tells now. `when` must stay valid. */
void watch_clock(const char *when);
/* All that was seen so far, as an object of JSON. */
void watch_print(FILE *out);

#endif
