/* SPDX-License-Identifier: BSD-2-Clause */
/* SIMULATED CUDA, FOR TESTS: what the files of the simulated libcupti share. */
#ifndef SIM_CUPTI_H
#define SIM_CUPTI_H

#include "cbids.h"
#include "cupti_abi.h"
#include "sim.h"

#ifndef SIM_MAJOR
#define SIM_MAJOR 13
#endif

extern const struct sim_table *sim; /* the driver's; NULL: there is none */

/* From the environment (README.md), once. */
struct cupti_settings {
	uint64_t late_ns, drop, shuffle, buffer_records;
	uint64_t taken_over, clock_lost, bad_record;
	int64_t drift_ppb, offset_ns, skew_ns;
	bool denied, busy, taken, other_kinds, late_start;
	uint32_t version;
};
extern struct cupti_settings cupti_settings;

/* cupti.c */
bool cupti_ready(void);        /* the driver is there; else CUPTI_ERROR_NOT_INITIALIZED */
void cupti_update_hooks(void); /* they are in place while anything is enabled */
bool cupti_callbacks_enabled(void);
void cupti_call_back(struct sim_call *call, uint32_t site);
uint32_t cupti_version(void);
uint64_t cupti_attribute(int attribute);
/* Another tool begins to use CUPTI without subscribing, as Kineto does since 2026. */
extern bool cupti_other_tool;
/* What the other tool notices of us. */
void cupti_taken(const char *what);
void cupti_misuse(
	const char *what); /* which would end badly with the real one: told in the truth file */

/* cupti_clock.c */
uint64_t cupti_time(uint64_t mono_ns); /* of the host, as records tell it */
uint64_t cupti_device_time(uint64_t mono_ns);
void cupti_take_clock(void); /* by another tool */
void cupti_lose_clock(void); /* CUPTI returns to its own */

/* cupti_kinds.c */
#define CUPTI_BIT(kind) (1ull << (kind))
#define CUPTI_ON(kind) (__atomic_load_n(&cupti_enabled, __ATOMIC_RELAXED) & CUPTI_BIT(kind))
extern uint64_t cupti_enabled; /* bits 1 << kind */
extern bool cupti_event_times; /* records of events tell when the device came to them */
/* Whether no records are made of this function's calls, though they are of others. */
bool cupti_leaves_out(uint32_t kind, uint32_t cbid);

/* cupti_records.c */
size_t cupti_record_bytes(uint32_t kind);
void cupti_record_call(struct sim_call *call);
void cupti_record_queued(struct sim_activity *a);
enum sim_fate cupti_record_finished(const struct sim_activity *a);
void cupti_record_device(int ordinal);
void cupti_record_context(uint32_t context, uint32_t device, uint32_t null_stream);
void cupti_record_stream(uint32_t context, uint32_t stream, uint32_t priority, uint32_t flag);
void cupti_record_memory(bool release, uint64_t address, uint64_t bytes, uint32_t memory,
			 uint32_t context, uint32_t device);
void cupti_record_overhead(uint32_t overhead_kind, uint64_t start_ns, uint64_t end_ns);

/* cupti_profiler.c: what the device did, for metrics. */
void cupti_profile(const struct sim_activity *a);

/* cupti_buffers.c */
enum cupti_class { CUPTI_CALLS, CUPTI_WORK, CUPTI_CLASSES }; /* have buffers of their own */
/* False: it is lost, and counted. */
bool cupti_put(enum cupti_class c, const void *record);
/*
 * Places a record that is not complete: its buffer is not handed over before it is, except by
 * force. NULL: lost, and counted. cupti_fill writes the rest of it, on which `late_ns` more must
 * pass; false: its buffer is gone.
 */
struct cupti_slot *cupti_reserve(const void *record);
bool cupti_fill(struct cupti_slot *slot, const void *record, uint64_t late_ns);
int cupti_flush(bool forced);
void cupti_start_worker(void);
void cupti_stop_worker(void);
size_t cupti_take_dropped(void);
void cupti_count_dropped(void);

#endif
