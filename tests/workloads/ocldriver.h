/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside ocldriver: a side is a context with a queue, its kernels and buffers. */
#ifndef OCLDRIVER_H
#define OCLDRIVER_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_THREADS 32
#define MAX_DONES 400000
#define ITEMS 4096
#define GROUP 64
#define BYTES (ITEMS * sizeof(cl_uint))

#define CHECK_CL(call)                                                                         \
	do {                                                                                   \
		cl_int check_ = (call);                                                        \
		if (check_ != CL_SUCCESS) {                                                    \
			fprintf(stderr, "ocldriver: %s:%d: %d\n", __FILE__, __LINE__, check_); \
			exit(1);                                                               \
		}                                                                              \
	} while (0)

struct options {
	uint64_t n;
	uint32_t threads;
	bool no_profiling, now, linger;
};
extern struct options options;
/* Kernels that were launched without asking for an event. */
extern uint64_t silent;

/* One command. */
struct done {
	const char *call, *kind, *name; /* "clEnqueueTask", "kernel", "scale" */
	uint32_t queue, context, tid;
	uint32_t grid[3], block[3];
	uint64_t bytes;
	uint64_t before, after; /* CLOCK_MONOTONIC around its call */
	cl_event event;         /* NULL: none was wanted */
	cl_ulong times[4];      /* the device's: queued, submitted, start, end */
	cl_int error;           /* of asking for them */
};
struct done *did(const struct done *d);

uint64_t clock_ns(clockid_t id);
void answer(const char *what, int64_t value);

struct side {
	uint32_t queue_number, context_number;
	cl_context context;
	cl_command_queue queue;
	cl_program program;
	cl_kernel add, scale;
	cl_mem a, b, image;
	cl_uint host[ITEMS];
	cl_event last; /* of the last command; not ours */
	uint64_t sum;
};

/* The first device there is. */
void ocl_open(void);
/* Contexts that are still there, after a while: something holds an object of theirs. */
int64_t contexts_left(void);
void side__open(struct side *s, cl_command_queue_properties properties);
void side__close(struct side *s);
/* Waits for everything; a checksum of what came out. */
uint64_t side__sum(struct side *s);
/* The same of host[], without waiting. */
uint64_t side__peek(const struct side *s);
void side__step(struct side *s, uint64_t i);
void side__graph(struct side *s);
void side__every(struct side *s);
void side__errors(struct side *s, bool first);

#endif
