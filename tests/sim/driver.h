/* SPDX-License-Identifier: BSD-2-Clause */
/* SIMULATED CUDA, FOR TESTS: what the files of the simulated libcuda share. */
#ifndef SIM_DRIVER_H
#define SIM_DRIVER_H

#include "cbids.h"
#include "cuda_driver.h"
#include "engine.h"

/* The function that was called. */
struct sim_api {
	uint32_t cbid;
	const char *name;
	bool per_thread; /* stream 0 is the calling thread's */
};

/*
 * Defines an exported function, or one and its per-thread twin, with the same body: a call of a
 * static function that gets `&api` first.
 */
#define SIM_API(fn, params, body)                                              \
	SIM_EXPORT int fn params                                               \
	{                                                                      \
		static const struct sim_api api = {SIM_CBID_##fn, #fn, false}; \
		return body;                                                   \
	}
#define SIM_API2(fn, twin, params, body)                                                  \
	SIM_API(fn, params, body)                                                         \
	SIM_EXPORT int fn##twin params                                                    \
	{                                                                                 \
		static const struct sim_api api = {SIM_CBID_##fn##twin, #fn #twin, true}; \
		return body;                                                              \
	}

/* Begins a call. 0, or why nothing can be done: then leave with it. */
int sim_begin(struct sim_call *call, const struct sim_api *api);
/* The same, for what can be asked before cuInit and without a context. */
void sim_enter(struct sim_call *call, enum sim_domain domain, uint32_t cbid, const char *name,
	       const void *params);
int sim_leave(struct sim_call *call, int result, const char *args, ...)
	__attribute__((format(printf, 3, 4)));
struct sim_call *sim_current(void);
/* Of what the thread's calls start: that of the outermost. */
uint32_t sim_correlation(void);

extern struct sim_table sim_table;

bool sim_ready(void);

/* driver_context.c */
struct sim_context *sim_context__current(void);
struct sim_context *sim_context__valid(struct sim_context *c);
void sim_context__set_current(struct sim_context *c);
int sim_context__attribute(int *value, int attribute, int ordinal);

/* driver_stream.c. The stream that a handle means, in the current context; NULL: none. */
struct sim_stream *sim_stream__find(CUstream handle, bool per_thread);
struct sim_stream *sim_stream__new(struct sim_context *c, unsigned flags, int priority);
struct sim_event *sim_event__valid(CUevent event);
/*
 * Runs work, or adds it to the graph that the stream captures. Waits first if the stream is full.
 */
int sim_stream__run(struct sim_stream *s, struct sim_work *w);

/* driver_memory.c */
enum sim_memory { SIM_UNKNOWN, SIM_PAGEABLE, SIM_PINNED, SIM_DEVICE, SIM_ARRAY, SIM_MANAGED };
struct sim_region {
	uint64_t base, bytes;
	enum sim_memory kind;
	bool registered;
	struct sim_context *context;
	struct sim_region *next;
};
/* A copy of what is there; .kind is PAGEABLE for what nobody has told us of. */
struct sim_region sim_region__of(uint64_t p);
int sim_copy__prepare(struct sim_work *w, uint64_t dst, uint64_t src, size_t bytes, int kind);
int sim_set__prepare(struct sim_work *w, uint64_t dst, unsigned value, unsigned element_bytes,
		     size_t count);

/* driver_launch.c */
int sim_kernel__prepare(struct sim_work *w, CUfunction f, const unsigned grid[3],
			const unsigned block[3], unsigned shared, void **params);

/* driver_graph.c. Whoever captures: the graph gets the work instead of the device. */
int sim_capture__add(struct sim_stream *s, const struct sim_work *w);
void sim_capture__record(struct sim_stream *s, struct sim_event *e);
int sim_capture__wait(struct sim_stream *s, struct sim_event *e);
/* The call cannot be captured: SIM_CAPTURE_UNSUPPORTED, and the capture is spoilt. */
int sim_capture__forbid(struct sim_stream *s);
bool sim_capture__any(struct sim_context *c);

#endif
