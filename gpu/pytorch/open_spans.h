/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a thread's callbacks need to know: the ids of names that it has used, and which spans are
 * open. Allocated at a thread's first callback, and nothing after that. Knows nothing of PyTorch.
 */
#ifndef KPROF_GPU_PYTORCH_OPEN_SPANS_H
#define KPROF_GPU_PYTORCH_OPEN_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/base/batch.h"

#define OPEN_SPANS_NAMES 256 /* a power of two */
#define OPEN_SPANS_INPUTS 512
#define OPEN_SPANS_DEPTH 448 /* spans deeper than that are not recorded */

/* What a thread knows if inputs are recorded. */
struct open_spans_inputs {
	uint64_t words[KPROF_AGENT_INPUTS_WORDS]; /* those that are being read */
	struct {
		uint64_t hash;
		uint32_t id; /* 0: empty */
	} known[OPEN_SPANS_INPUTS];
};

struct open_spans {
	uint32_t session; /* what follows is of this session; 0: of none */
	struct batch_stream stream;
	uint32_t depth; /* open spans, also those that are not in object[] */
	struct {
		uint64_t hash;
		uint32_t id; /* 0: empty */
	} names[OPEN_SPANS_NAMES];
	struct open_span {
		const void *object;       /* what it is known by */
		bool annotation;          /* may end before spans that were opened inside of it */
		bool over;                /* has ended on another thread */
		bool wanted;              /* what is inside of it is recorded */
	} spans[OPEN_SPANS_DEPTH];        /* outermost first */
	struct open_spans_inputs *inputs; /* NULL: none were read yet */
	uint32_t thread;                  /* its number in PyTorch; 0: not asked for yet */
	uint32_t wanted;                  /* how many of spans[] are */
	/*
	 * Of callbacks that are registered for this thread only: they are, and by which handles.
	 * Kept from session to session.
	 */
	bool here;
	uint64_t handle[KPROF_AGENT_SCOPES];
};

/* A new session: forgets everything. Zeroed before the first. ticks: see struct batch_stream. */
void open_spans__reset(struct open_spans *o, uint32_t session, uint32_t tid, bool ticks);
/* The id of a name (batch__name()); 0: there is no memory for it. */
uint32_t open_spans__name(struct open_spans *o, const char *text, size_t bytes);
/*
 * Where a thread's inputs are to be read to: KPROF_AGENT_INPUTS_WORDS. NULL: there is no memory.
 * And the id of those that are there now (batch__inputs()).
 */
uint64_t *open_spans__words(struct open_spans *o);
uint32_t open_spans__inputs(struct open_spans *o, size_t nr);
void open_spans__free(struct open_spans *o);
/*
 * To be called before a span begins: forgets the innermost annotations that have ended on other
 * threads, and returns how many these are. Nothing else may ever show that they are over.
 */
uint32_t open_spans__settle(struct open_spans *o);
/* A span begins. false: it is too deep to be recorded. */
bool open_spans__push(struct open_spans *o, const void *object, bool annotation, bool wanted);
/*
 * Has the innermost span been begun with this object, and goes it on? If it has ended on another
 * thread, this is another object at its address.
 */
bool open_spans__is_top(const struct open_spans *o, const void *object);

struct open_spans_end {
	uint32_t closed; /* how many of the innermost spans are over, and were not seen to end */
	bool found;      /* false: no such span is open */
	uint32_t inside; /* how many go on inside of it */
};
/*
 * The span that is known by this object ends. Annotations may end on another thread than they began
 * on, so what is not found is remembered for all threads.
 */
struct open_spans_end open_spans__pop(struct open_spans *o, const void *object);
/* The same on a thread that knows of no span at all. */
void open_spans__elsewhere(const void *object);

#endif
