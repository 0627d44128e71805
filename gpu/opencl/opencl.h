/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The OpenCL layer, inside: what its files know of each other.
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

/* Below us: the driver, or the next layer. */
extern ocl_function ocl_next[OCL_ENTRIES];
/* The loader has taken the layer. */
extern bool ocl_loaded;
/* Types being recorded; 0: nothing is. All that a call looks at while no session records. */
extern uint64_t ocl_types;
/*
 * The session whose records are kept, also those of commands that complete when it has been
 * stopped; 0: none.
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
	OCL_CLOCK_TIMER,   /* the driver reads it: clGetDeviceAndHostTimer */
	OCL_CLOCK_HOST,    /* it is the host's clock number .host */
	OCL_CLOCK_BRACKET, /* a command is queued between the beginning and the end of its call */
};

struct ocl_clock {
	uint32_t source; /* enum ocl_clock_source; set once */
	uint32_t host;
	uint32_t strange; /* calls that no clock of the host fitted */
	uint32_t adding;  /* map is being added to */
	struct gpu_clock map;
	struct gpu_clock_pair best; /* BRACKET: the tightest since the last pair */
	uint64_t last_pair_ns;
};

/* When a command was queued, by its call and by its device. */
struct ocl_moment {
	uint64_t begin_ns, end_ns;           /* of the call */
	struct ocl_host_times before, after; /* the same; read while the clock is not known */
	uint64_t queued;                     /* the device's time */
};

void ocl_host_times__read(struct ocl_host_times *t);
/* A device was seen for the first time. */
void ocl_clock__init(struct ocl_clock *c, ocl_device device);
bool ocl_clock__known(const struct ocl_clock *c);
/* It is not CLOCK_MONOTONIC itself. */
bool ocl_clock__converts(const struct ocl_clock *c);
/* Each completed command: finds out which clock it is, and sets it where nothing better does. */
void ocl_clock__learn(struct ocl_clock *c, const struct ocl_moment *m);
uint64_t ocl_clock__to_mono(const struct ocl_clock *c, uint64_t device_ns);
/* Reads pairs of the host's clocks; those in use become CLOCK records while a session records. */
void ocl_clock__read_hosts(void);
/* The same for a device. */
void ocl_clock__read_device(struct ocl_clock *c, ocl_device device);

/* ---- objects.c ---- */

/*
 * First in each: found by its handle, never removed; the driver's handle may be given to a new
 * object later.
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

struct ocl_context_object {
	struct ocl_object o; /* number from 1 */
};

struct ocl_queue_object {
	struct ocl_object o; /* number from 1: its stream */
	struct ocl_context_object *context;
	struct ocl_device_object *device;
	uint64_t asked;        /* the properties that the program asked for */
	uint64_t *asked_array; /* … as a list, as it gave it, its 0 included; NULL */
	uint32_t nr_asked;     /* members of that list */
	bool profiled;         /* events have times */
};

/*
 * Each NULL where memory is short. A queue that the layer did not see made is looked up in the
 * driver.
 */
struct ocl_queue_object *ocl_queue_object(ocl_queue queue);
struct ocl_queue_object *ocl_queue_object__made(ocl_queue queue);
void ocl_context_object__made(ocl_context context);
/* DEVICE and CONTEXT records of what the queue is on, once a session. */
void ocl_queue_object__tell(struct ocl_queue_object *q);
void ocl_devices__each(void (*fn)(struct ocl_device_object *d));

/* ---- jobs.c ---- */

/* A command between its call and its completion. */
struct ocl_job {
	union {                                /* what is appended when it has completed */
		struct kprof_agent_activity a; /* first in each */
		struct kprof_agent_kernel kernel;
		struct kprof_agent_copy copy;
	};
	uint32_t next; /* in the pool: index + 1; 0: none */
	uint32_t session;
	struct ocl_device_object *device;
	bool profiled;
	struct ocl_moment moment;
};

/* A call while it lasts. */
struct ocl_call {
	const char *function;
	uint64_t begin_ns;
	uint64_t correlation;
	struct ocl_queue_object *queue; /* NULL: not known, or not of interest */
	struct ocl_job *job;            /* NULL: it makes no device activity that is asked for */
	ocl_event event;                /* of its command, where a job waits for it */
};

/* A call that makes no work: only times. */
void ocl_call__begin(struct ocl_call *c, const char *function);
/* A call that queues a command; what it does is said next, by one of these. */
void ocl_call__enqueue(struct ocl_call *c, const char *function, ocl_queue queue);
void ocl_call__kernel(struct ocl_call *c, ocl_kernel kernel, uint32_t dimensions,
		      const size_t *global, const size_t *local);
void ocl_call__native(struct ocl_call *c);
void ocl_call__copy(struct ocl_call *c, enum kprof_agent_copy_kind kind, uint64_t bytes);
void ocl_call__set(struct ocl_call *c, uint64_t bytes);
/* Where the driver shall put the event: the program's own place, unless a job needs it. */
ocl_event *ocl_call__event(struct ocl_call *c, ocl_event *wanted);
void ocl_call__end(struct ocl_call *c, int32_t result, ocl_event *wanted);
/* Commands that have not completed. */
uint32_t ocl_jobs__pending(void);

/* ---- tables of wrapped calls: calls.c, queues.c ---- */

struct ocl_wrapper {
	enum ocl_entry entry;
	ocl_function function;
};
extern const struct ocl_wrapper ocl_call_wrappers[], ocl_queue_wrappers[]; /* function NULL ends */

/* The function below us, of the type of its wrapper. */
#define OCL_NEXT(name) ((__typeof__(&wrap_##name))ocl_next[OCL_##name])

static inline int32_t ocl_info(enum ocl_entry entry, const void *object, uint32_t what,
			       size_t bytes, void *value)
{
	return ((ocl_get_info_fn *)ocl_next[entry])(object, what, bytes, value, NULL);
}

#endif
