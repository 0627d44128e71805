/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the files of the OpenCL layer:
 *
 *   layer.c           the layer's entry points
 *   opencl.c          the agent's module
 *   state.c           what all of them share
 *   calls.c    every wrapped call: what it does, in a line
 *   queues.c   queues, which get event profiling without the program seeing it
 *   jobs.c     one job per command: from its call to its completion
 *   objects.c  numbers of queues, contexts and devices
 *   device_clock.c    each device's clock
 */
#ifndef KPROF_GPU_OPENCL_H
#define KPROF_GPU_OPENCL_H

#include <stdbool.h>
#include <time.h>

#include "gpu/base/clock.h"
#include "kprof/activity.h"
#include "gpu/base/module.h"
#include "kprof/agent.h"
#include "gpu/opencl/abi.h"

/* The functions below this layer: those of the driver, or of the next layer. */
extern ocl_function ocl_next[OCL_ENTRIES];
/* The OpenCL loader has accepted the layer. */
extern bool ocl_loaded;
/*
 * Types that are recorded: bits 1 << enum kprof_activity; 0: none. While no session records, a
 * wrapped call reads nothing else.
 */
extern uint64_t ocl_types;
/*
 * The session whose records are kept. It stays set for a while after the session stops, for
 * commands that complete then; 0: none.
 */
extern uint32_t ocl_session;

extern const struct gpu_module gpu_opencl;

static inline uint64_t ocl_recording(void)
{
	return __atomic_load_n(&ocl_types, __ATOMIC_RELAXED);
}

/* ---- device_clock.c ---- */

/* Clocks of the host that drivers are known to use as their device's. */
#define OCL_HOST_CLOCKS 4
struct ocl_host_times {
	uint64_t ns[OCL_HOST_CLOCKS];
};

enum ocl_clock_source {
	OCL_CLOCK_UNKNOWN = 0,
	OCL_CLOCK_TIMER, /* the driver reads it: clGetDeviceAndHostTimer */
	OCL_CLOCK_HOST,  /* the device uses the host's clock with number .host */
	/* by commands, each of which is queued between the begin and the end of its call */
	OCL_CLOCK_BRACKET,
};

struct ocl_clock {
	uint32_t source; /* enum ocl_clock_source; set once */
	uint32_t host;
	uint32_t strange; /* calls that no clock of the host fitted */
	uint32_t adding;  /* a thread is adding a pair to the map */
	struct gpu_clock map;
	/* BRACKET: the pair with the smallest width since the last one that was added */
	struct gpu_clock_pair best;
	uint64_t last_pair_ns;
};

/* When a command was queued: by the host's clocks at its call, and by its device's clock. */
struct ocl_moment {
	uint64_t begin_ns, end_ns; /* of the call, CLOCK_MONOTONIC */
	/* the same on all clocks of the host; read only while the device's clock is not known */
	struct ocl_host_times before, after;
	uint64_t queued; /* by the device's clock */
};

void ocl_host_times__read(struct ocl_host_times *t);
/* To be called when a device is seen for the first time. */
void ocl_clock__init(struct ocl_clock *c, ocl_device device);
bool ocl_clock__known(const struct ocl_clock *c);
/* Is the device's clock another one than CLOCK_MONOTONIC? */
bool ocl_clock__converts(const struct ocl_clock *c);
/*
 * To be called for each completed command: finds out which clock the device uses, and adds pairs
 * where there is no better source.
 */
void ocl_clock__learn(struct ocl_clock *c, const struct ocl_moment *m);
uint64_t ocl_clock__to_mono(const struct ocl_clock *c, uint64_t device_ns);
/*
 * Reads pairs of the host's clocks with CLOCK_MONOTONIC. While a session records, pairs of clocks
 * that devices use become CLOCK records.
 */
void ocl_clock__read_hosts(void);
/* The same for the clock of a device. */
void ocl_clock__read_device(struct ocl_clock *c, ocl_device device);

/* ---- objects.c ---- */

/*
 * First in the entry of each object. Entries are found by handle and never removed; the driver may
 * give the handle to a new object later.
 */
struct ocl_object {
	struct ocl_object *next;
	const void *handle;
	uint32_t number;
	uint32_t recorded; /* session in which its record was written */
};

struct ocl_device_object {
	struct ocl_object o; /* number: ordinal from 0 */
	struct ocl_clock clock;
};

struct ocl_queue_object {
	struct ocl_object o;        /* number from 1: its stream */
	struct ocl_object *context; /* number from 1 */
	struct ocl_device_object *device;
	uint64_t asked; /* properties that the program asked for */
	/*
	 * these properties as the list that the program gave, with its final 0; NULL: it gave none
	 */
	uint64_t *asked_array;
	uint32_t nr_asked; /* members of that list */
	bool profiled;     /* the events of the queue have times */
};

/*
 * Each returns NULL if there is no memory. The properties of a queue whose creation the layer did
 * not see are asked of the driver.
 */
struct ocl_queue_object *ocl_queue_object(ocl_queue queue);
struct ocl_queue_object *ocl_queue_object__made(ocl_queue queue);
void ocl_context_object__made(ocl_context context);
/* Appends DEVICE and CONTEXT records of the queue's device and context, once a session. */
void ocl_queue_object__tell(struct ocl_queue_object *q);
void ocl_devices__each(void (*fn)(struct ocl_device_object *d));

/* ---- jobs.c ---- */

/* A command between its call and its completion. */
struct ocl_job {
	/* the record that is appended when the command has completed */
	union {
		struct kprof_agent_activity a; /* the first field of each */
		struct kprof_agent_kernel kernel;
		struct kprof_agent_copy copy;
	};
	uint32_t next; /* next free job in the pool: index + 1; 0: none */
	uint32_t session;
	struct ocl_device_object *device;
	bool profiled;
	struct ocl_moment moment;
};

/* A call that has not returned yet. */
struct ocl_call {
	const char *function;
	uint64_t begin_ns;
	uint64_t correlation;
	struct ocl_queue_object *queue; /* NULL: not known, or not needed */
	struct ocl_job *job;            /* NULL: no device activity is recorded for this call */
	ocl_event event;                /* event of the command, if there is a job */
};

/* Begins a call of which only the times are recorded. */
void ocl_call__begin(struct ocl_call *c, const char *function);
/*
 * Begins a call that queues a command. One of the following functions must then tell what the
 * command does.
 */
void ocl_call__enqueue(struct ocl_call *c, const char *function, ocl_queue queue);
void ocl_call__kernel(struct ocl_call *c, ocl_kernel kernel, uint32_t dimensions,
		      const size_t *global, const size_t *local);
void ocl_call__native(struct ocl_call *c);
void ocl_call__copy(struct ocl_call *c, enum kprof_agent_copy_kind kind, uint64_t bytes);
void ocl_call__set(struct ocl_call *c, uint64_t bytes);
/* Where the driver is to store the event: where the program wants it, unless a job needs it. */
ocl_event *ocl_call__event(struct ocl_call *c, ocl_event *wanted);
void ocl_call__end(struct ocl_call *c, int32_t result, ocl_event *wanted);
/* The number of commands that have not completed. */
uint32_t ocl_jobs__pending(void);

/* ---- tables of wrapped calls: calls.c, queues.c ---- */

struct ocl_wrapper {
	enum ocl_entry entry;
	ocl_function function;
};
extern const struct ocl_wrapper ocl_call_wrappers[], ocl_queue_wrappers[]; /* function NULL ends */

/* The function below this layer, with the type of its wrapper. */
#define OCL_NEXT(name) ((__typeof__(&wrap_##name))ocl_next[OCL_##name])

static inline int32_t ocl_info(enum ocl_entry entry, const void *object, uint32_t what,
			       size_t bytes, void *value)
{
	return ((ocl_get_info_fn *)ocl_next[entry])(object, what, bytes, value, NULL);
}

#endif
