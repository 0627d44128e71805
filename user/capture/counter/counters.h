/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters of a recording: which there are, where the kernel's programs read them, and what a span
 * has of each.
 */
#ifndef KPROF_CAPTURE_COUNTERS_H
#define KPROF_CAPTURE_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/counter/table.h"
#include "kprof/wire.h"

struct counters;
struct recorder;
struct span_end;

/*
 * Opens what is needed for these counters ("cycles,page-faults", as counters_check() takes them),
 * and says in the capture which they are. A counter that the machine does not have is an error that
 * names it.
 */
int counters__new(const char *names, struct recorder *recorder, struct counters **out);
void counters__free(struct counters *c); /* NULL is fine */

uint32_t counters__nr(const struct counters *c);
/* Where each is read: enum kprof_wire_counter. */
const uint8_t *counters__sources(const struct counters *c);
/* How many CPUs there may be; 0: no counter is one of CPUs. */
uint32_t counters__cpus(const struct counters *c);
/* Bytes of struct kprof_wire_counters with the values. */
size_t counters__wire_bytes(const struct counters *c);
/* Puts the perf events into the kernel's table: that of counter i and CPU c at i × CPUs + c. */
int counters__install(const struct counters *c, int map_fd);

/* Records what a span has of each counter, if that is known. Comes before the span's END. */
int counters__put(const struct counters *c, struct recorder *recorder, const struct span_end *end);

#endif
