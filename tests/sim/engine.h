/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SIMULATED CUDA, FOR TESTS: the device model inside the simulated libcuda.
 *
 * Time is real: CLOCK_MONOTONIC. When work is queued, its begin and end follow from what is queued
 * already (order of its stream, events waited for, a free place on the device), so the future is
 * known; work is finished when the clock has passed its end. Whoever waits sleeps until then. A
 * thread tells CUPTI and the truth file about finished work in the order of its ends. So host and
 * device overlap as they do on a real machine, and how long each thing took is exact and depends on
 * nothing but its own arguments.
 */
#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

#include <pthread.h>

#include "sim.h"

#define SIM_MAX_DEVICES 8
#define SIM_MAX_SLOTS 64
#define SIM_MAX_JOINED 16
#define SIM_QUEUE 1024 /* work of a stream that is not finished; who queues more waits */

enum { SIM_LANE_HTOD, SIM_LANE_DTOH, SIM_LANE_DTOD, SIM_LANES };

struct sim_device {
	int ordinal;
	char name[32];
	uint64_t memory_bytes, used_bytes;
	uint64_t lane_ns[SIM_LANES];     /* when each copy engine is free */
	uint64_t slot_ns[SIM_MAX_SLOTS]; /* the same of places for kernels */
	struct sim_context *primary;
	unsigned primary_refs;
};

struct sim_context {
	uint32_t id;
	struct sim_device *device;
	struct sim_stream *legacy;
	struct sim_stream *streams;
	struct sim_context *next;
	bool dead;
};

struct sim_capture;

struct sim_stream {
	uint32_t id;
	struct sim_context *context;
	unsigned flags;
	int priority;
	bool dead;
	uint64_t tail_ns;
	uint64_t ends[SIM_QUEUE];
	unsigned queued_first, queued;
	unsigned host_fns; /* not returned yet */
	struct sim_capture *capture;
	struct sim_node
		*joined[SIM_MAX_JOINED]; /* while capturing: what the next node comes after */
	unsigned nr_joined;
	struct sim_stream *next;
};

struct sim_event {
	uint32_t id;
	unsigned flags;
	struct sim_context *context;
	bool recorded;
	uint64_t end_ns;
	uint32_t stream, correlation;
	uint64_t sync_id;            /* of the last recording */
	struct sim_capture *capture; /* recorded while capturing */
	struct sim_node *captured;
	struct sim_event *next;
};

/* A kernel in a module. */
struct sim_function {
	const struct sim_kernel_desc *desc;
	struct sim_module *module;
};

/* One thing to do, in a stream or in a graph's node. */
struct sim_work {
	struct sim_activity a;
	uint64_t duration_ns;
	CUhostFn fn;
	void *arg;
	void *dst; /* copies, sets: of memory that is real */
	const void *src;
	size_t rows, width, dst_pitch, src_pitch; /* bytes */
	unsigned element_bytes;
	void (*body)(void **, struct sim_dim3, struct sim_dim3);
	void **params;
	unsigned nr_params;
};

extern pthread_mutex_t sim_lock; /* of everything here */
extern struct sim_device sim_devices[SIM_MAX_DEVICES];
extern int sim_nr_devices;
extern struct sim_context *sim_contexts;

/* From the environment (README.md), once. */
struct sim_settings {
	uint64_t launch_ns, gap_ns, grain_ns, api_ns, copy_ns, copy_rate;
	unsigned slots, queue;
	bool own_correlation; /* of driver calls in runtime calls */
};
extern struct sim_settings sim_settings;
void sim_read_settings(void);

uint64_t sim_now(void);
uint64_t sim_env(const char *name, uint64_t otherwise);
uint32_t sim_next_id(void); /* of streams and events: grow from 13 */

/* Begins the engine's thread; once a process. */
int sim_engine__start(void);
/* The process ends: nothing is told any more. */
void sim_engine__stop(void);
void sim_engine__in_child(void);
bool sim_engine__forked(void); /* this process is a child of one that had a device in use */
void sim_engine__set_hooks(const struct sim_hooks *hooks);
const struct sim_hooks *sim_engine__hooks(void);
void sim_engine__drain(void);

/*
 * Queues work and fills in its times and places. Copies memory, calls body. after_ns: not to begin
 * before.
 */
void sim_stream__submit(struct sim_stream *s, struct sim_work *w, uint64_t after_ns);
/* Waits until there is room for more. */
void sim_stream__throttle(struct sim_stream *s);
uint64_t sim_stream__tail(struct sim_stream *s); /* with what the legacy stream makes it wait for */
void sim_stream__wait(struct sim_stream *s);
void sim_wait_until(uint64_t ns);
/* A record of something that is over: syncs, events. */
void sim_tell(const struct sim_activity *a);
/* Tells it when its time has come. */
void sim_tell_later(struct sim_activity *a);
/* What it does to memory. */
void sim_work__do(const struct sim_work *w);
uint64_t sim_copy_ns(const struct sim_activity *a);

#endif
