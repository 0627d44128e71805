/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SIMULATED CUDA, FOR TESTS: libcuda's graphs: nodes made by hand or captured from streams, and
 * their launch.
 */
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "truth.h"

#define MAX_AFTER 16
#define MAX_PARAMS 32

struct sim_node {
	struct sim_graph *graph;
	unsigned index; /* of a node is greater than those of the nodes before it */
	struct sim_work work;
	unsigned nr_after;
	struct sim_node *after[MAX_AFTER];
	uint64_t end_ns; /* while a launch is worked out */
	struct sim_node *next;
};

struct sim_graph {
	uint32_t id;
	struct sim_node *first, **last;
	unsigned nr;
};

struct sim_exec {
	uint32_t id;
	unsigned nr;
	struct sim_node *nodes; /* an array; after[] within it */
};

struct sim_capture {
	struct sim_graph *graph;
	struct sim_stream *origin;
	unsigned streams;
	bool spoilt;
};

static uint32_t next_graph = 1;

static struct sim_graph *new_graph(void)
{
	struct sim_graph *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->id = __atomic_fetch_add(&next_graph, 1, __ATOMIC_RELAXED);
	g->last = &g->first;
	return g;
}

/*
 * A kernel's parameters are copied, for later launches of the graph: eight bytes each, which every
 * kernel of the simulator has (cuda_abi.h).
 */
static int copy_params(struct sim_work *w, unsigned nr)
{
	uint64_t *values;

	if (w->a.type != SIM_KERNEL || !w->params)
		return 0;
	if (nr > MAX_PARAMS)
		return SIM_INVALID_VALUE;
	values = calloc(nr + 1, sizeof(*values));
	if (!values)
		return SIM_OUT_OF_MEMORY;
	for (unsigned i = 0; i < nr; i++)
		memcpy(&values[i], w->params[i], sizeof(values[i]));
	w->params = calloc(nr + 1, sizeof(void *));
	if (!w->params) {
		free(values);
		return SIM_OUT_OF_MEMORY;
	}
	for (unsigned i = 0; i < nr; i++)
		w->params[i] = &values[i];
	w->params[nr] = values; /* freed by it */
	return 0;
}

static void free_params(struct sim_work *w, unsigned nr)
{
	if (w->a.type == SIM_KERNEL && w->params) {
		free(w->params[nr]);
		free(w->params);
	}
}

static int add_node(struct sim_graph *g, const struct sim_work *w, struct sim_node *const *after,
		    size_t nr, struct sim_node **out)
{
	struct sim_node *n;
	int err;

	if (nr > MAX_AFTER)
		return SIM_INVALID_VALUE;
	n = calloc(1, sizeof(*n));
	if (!n)
		return SIM_OUT_OF_MEMORY;
	n->graph = g;
	n->work = *w;
	err = copy_params(&n->work, w->nr_params);
	if (err) {
		free(n);
		return err;
	}
	n->index = g->nr++;
	n->nr_after = (unsigned)nr;
	for (size_t i = 0; i < nr; i++)
		n->after[i] = after[i];
	*g->last = n;
	g->last = &n->next;
	*out = n;
	return 0;
}

/* ---- nodes by hand ---- */

static int create(const struct sim_api *api, CUgraph *graph, unsigned flags)
{
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err) {
		*graph = flags ? NULL : new_graph();
		err = *graph ? 0 : flags ? SIM_INVALID_VALUE : SIM_OUT_OF_MEMORY;
	}
	return sim_leave(&call, err, NULL);
}
SIM_API(cuGraphCreate, (CUgraph * graph, unsigned int flags), create(&api, graph, flags))

static int add(const struct sim_api *api, CUgraphNode *node, CUgraph graph,
	       const CUgraphNode *after, size_t nr, const struct sim_work *w, int err)
{
	struct sim_call call;
	int begun = sim_begin(&call, api);

	err = begun ? begun : err;
	if (!err)
		err = graph && node ? add_node(graph, w, after, nr, node) : SIM_INVALID_VALUE;
	return sim_leave(&call, err, "\"graph\":%u,\"index\":%u", graph ? graph->id : 0,
			 err ? 0 : (*node)->index);
}

SIM_EXPORT int cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
				       size_t nr, const struct sim_driver_kernel_node_params *p)
{
	static const struct sim_api api = {SIM_CBID_cuGraphAddKernelNode_v2,
					   "cuGraphAddKernelNode_v2", false};
	struct sim_work w;
	int err = sim_kernel__prepare(&w, p->func, p->grid, p->block, p->dynamic_shared, p->params);

	return add(&api, node, graph, after, nr, &w, err);
}

SIM_EXPORT int cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
				    size_t nr, const struct sim_driver_copy3d *p, CUcontext context)
{
	static const struct sim_api api = {SIM_CBID_cuGraphAddMemcpyNode, "cuGraphAddMemcpyNode",
					   false};
	uint64_t dst = p->dst_type == 1 ? (uint64_t)p->dst_host : p->dst_device;
	uint64_t src = p->src_type == 1 ? (uint64_t)p->src_host : p->src_device;
	struct sim_work w;
	int err = sim_copy__prepare(&w, dst + p->dst_x, src + p->src_x,
				    p->width * p->height * p->depth, 4);

	w.a.async = true;
	return add(&api, node, graph, after, nr, &w, err);
}

SIM_EXPORT int cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
				    size_t nr, const struct sim_memset_params *p, CUcontext context)
{
	static const struct sim_api api = {SIM_CBID_cuGraphAddMemsetNode, "cuGraphAddMemsetNode",
					   false};
	struct sim_work w;
	int err = sim_set__prepare(&w, (uint64_t)p->dst, p->value, p->element_bytes,
				   p->width * p->height);

	w.a.async = true;
	return add(&api, node, graph, after, nr, &w, err);
}

SIM_EXPORT int cuGraphAddHostNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
				  size_t nr, const struct sim_host_node_params *p)
{
	static const struct sim_api api = {SIM_CBID_cuGraphAddHostNode, "cuGraphAddHostNode",
					   false};
	struct sim_work w = {
		.a.type = SIM_HOST_FN, .duration_ns = 5000, .fn = p->fn, .arg = p->arg};

	return add(&api, node, graph, after, nr, &w, p->fn ? 0 : SIM_INVALID_VALUE);
}

static const struct sim_work nothing = {.a.type = SIM_NOTHING};
SIM_API(cuGraphAddEmptyNode,
	(CUgraphNode * node, CUgraph graph, const CUgraphNode *after, size_t nr),
	add(&api, node, graph, after, nr, &nothing, 0))

static int get_nodes(const struct sim_api *api, CUgraph graph, CUgraphNode *nodes, size_t *nr)
{
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err)
		err = graph && nr ? 0 : SIM_INVALID_VALUE;
	if (!err) {
		struct sim_node *n = graph->first;

		for (size_t i = 0; nodes && i < *nr; i++) {
			nodes[i] = n;
			n = n ? n->next : NULL;
		}
		*nr = graph->nr;
	}
	return sim_leave(&call, err, NULL);
}
SIM_API(cuGraphGetNodes, (CUgraph graph, CUgraphNode *nodes, size_t *nr),
	get_nodes(&api, graph, nodes, nr))

static int destroy(const struct sim_api *api, CUgraph graph)
{
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err)
		err = graph ? 0 : SIM_INVALID_VALUE;
	while (!err && graph->first) {
		struct sim_node *n = graph->first;

		graph->first = n->next;
		free_params(&n->work, n->work.nr_params);
		free(n);
	}
	if (!err)
		free(graph);
	return sim_leave(&call, err, NULL);
}
SIM_API(cuGraphDestroy, (CUgraph graph), destroy(&api, graph))

/* ---- what can be launched ---- */

/* Own copies of the nodes, with a number of its own, by which records call it. */
static struct sim_exec *instantiate_nodes(const struct sim_graph *g)
{
	struct sim_exec *e = calloc(1, sizeof(*e));
	const struct sim_node *n;
	unsigned i = 0;

	if (!e)
		return NULL;
	e->nodes = calloc(g->nr + 1, sizeof(*e->nodes));
	if (!e->nodes) {
		free(e);
		return NULL;
	}
	e->id = __atomic_fetch_add(&next_graph, 1, __ATOMIC_RELAXED);
	e->nr = g->nr;
	for (n = g->first; n; n = n->next, i++) {
		e->nodes[i] = *n;
		for (unsigned k = 0; k < n->nr_after; k++)
			e->nodes[i].after[k] = &e->nodes[n->after[k]->index];
		copy_params(&e->nodes[i].work, n->work.nr_params);
	}
	return e;
}

static int instantiate(const struct sim_api *api, CUgraphExec *exec, CUgraph graph)
{
	struct sim_exec *e = NULL;
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err)
		err = exec && graph ? 0 : SIM_INVALID_VALUE;
	if (!err) {
		e = instantiate_nodes(graph);
		*exec = e;
		err = e ? 0 : SIM_OUT_OF_MEMORY;
	}
	return sim_leave(&call, err, "\"graph\":%u,\"exec\":%u", graph ? graph->id : 0,
			 e ? e->id : 0);
}
SIM_API(cuGraphInstantiateWithFlags, (CUgraphExec * exec, CUgraph graph, unsigned long long flags),
	instantiate(&api, exec, graph))

static int destroy_exec(const struct sim_api *api, CUgraphExec exec)
{
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err)
		err = exec ? 0 : SIM_INVALID_VALUE;
	if (!err) {
		for (unsigned i = 0; i < exec->nr; i++)
			free_params(&exec->nodes[i].work, exec->nodes[i].work.nr_params);
		free(exec->nodes);
		free(exec);
	}
	return sim_leave(&call, err, NULL);
}
SIM_API(cuGraphExecDestroy, (CUgraphExec exec), destroy_exec(&api, exec))

/* Each node as soon as those before it are done, and none before the stream's earlier work is. */
static void run_nodes(struct sim_exec *e, struct sim_stream *s)
{
	uint64_t base = sim_stream__tail(s) + sim_settings.gap_ns;
	struct sim_activity whole = {.type = SIM_GRAPH, .start_ns = UINT64_MAX};

	for (unsigned i = 0; i < e->nr; i++) {
		struct sim_node *n = &e->nodes[i];
		struct sim_work w = n->work;
		uint64_t after = base;

		for (unsigned k = 0; k < n->nr_after; k++)
			if (n->after[k]->end_ns + sim_settings.gap_ns > after)
				after = n->after[k]->end_ns + sim_settings.gap_ns;
		w.a.graph = e->id;
		w.a.node = (uint64_t)e->id << 32 | i;
		w.a.correlation = sim_correlation();
		sim_stream__submit(s, &w, after);
		n->end_ns = w.a.end_ns;
		if (w.a.start_ns < whole.start_ns)
			whole.start_ns = w.a.start_ns;
		if (w.a.end_ns > whole.end_ns)
			whole.end_ns = w.a.end_ns;
	}
	if (!e->nr)
		return;
	whole.queued_ns = sim_now();
	whole.graph = e->id;
	whole.correlation = sim_correlation();
	whole.device = (uint32_t)s->context->device->ordinal;
	whole.context = s->context->id;
	whole.stream = s->id;
	sim_tell_later(&whole);
}

static int launch(const struct sim_api *api, CUgraphExec exec, CUstream handle, bool run)
{
	struct sim_stream *s = NULL;
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err) {
		s = sim_stream__find(handle, api->per_thread);
		err = !s ? SIM_INVALID_HANDLE : !exec ? SIM_INVALID_VALUE : 0;
	}
	if (!err && s->capture)
		err = sim_capture__forbid(s);
	if (!err && run) {
		sim_stream__throttle(s);
		run_nodes(exec, s);
	}
	return sim_leave(&call, err, "\"exec\":%u,\"stream\":%u", err ? 0 : exec->id,
			 s ? s->id : 0);
}
SIM_API2(cuGraphLaunch, _ptsz, (CUgraphExec exec, CUstream stream),
	 launch(&api, exec, stream, true))
SIM_API2(cuGraphUpload, _ptsz, (CUgraphExec exec, CUstream stream),
	 launch(&api, exec, stream, false))

/* ---- capture ---- */

int sim_capture__add(struct sim_stream *s, const struct sim_work *w)
{
	int err;

	if (s->capture->spoilt)
		return SIM_CAPTURE_INVALIDATED;
	err = add_node(s->capture->graph, w, s->joined, s->nr_joined, &s->joined[0]);
	if (!err)
		s->nr_joined = 1; /* the new node: what comes next is after it */
	return err;
}

void sim_capture__record(struct sim_stream *s, struct sim_event *e)
{
	e->capture = s->capture;
	e->captured = s->nr_joined ? s->joined[s->nr_joined - 1] : NULL;
}

/*
 * The stream's next work comes after what the event was recorded after; a stream that does not
 * capture yet does now.
 */
int sim_capture__wait(struct sim_stream *s, struct sim_event *e)
{
	if (!s->capture) {
		s->capture = e->capture;
		s->nr_joined = 0;
		e->capture->streams++;
	}
	if (s->capture != e->capture)
		return SIM_CAPTURE_INVALIDATED;
	if (!e->captured)
		return 0;
	if (s->nr_joined == SIM_MAX_JOINED)
		return SIM_OUT_OF_MEMORY;
	s->joined[s->nr_joined++] = e->captured;
	return 0;
}

int sim_capture__forbid(struct sim_stream *s)
{
	s->capture->spoilt = true;
	return SIM_CAPTURE_UNSUPPORTED;
}

bool sim_capture__any(struct sim_context *c)
{
	bool any = false;

	pthread_mutex_lock(&sim_lock);
	for (struct sim_stream *s = c->streams; s && !any; s = s->next)
		any = s->capture && !(s->flags & SIM_STREAM_NON_BLOCKING);
	pthread_mutex_unlock(&sim_lock);
	return any;
}

static int begin_capture(const struct sim_api *api, CUstream handle)
{
	struct sim_stream *s = NULL;
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err) {
		s = sim_stream__find(handle, api->per_thread);
		err = !s                        ? SIM_INVALID_HANDLE
		      : s == s->context->legacy ? SIM_CAPTURE_UNSUPPORTED
		      : s->capture              ? SIM_INVALID_VALUE
						: 0;
	}
	if (!err) {
		struct sim_capture *c = calloc(1, sizeof(*c));

		if (c)
			c->graph = new_graph();
		err = c && c->graph ? 0 : SIM_OUT_OF_MEMORY;
		if (!err) {
			c->origin = s;
			s->nr_joined = 0;
			s->capture = c;
		}
	}
	return sim_leave(&call, err, "\"stream\":%u", s ? s->id : 0);
}
SIM_API2(cuStreamBeginCapture_v2, _ptsz, (CUstream stream, int mode), begin_capture(&api, stream))

static void leave_capture(struct sim_capture *c, struct sim_context *context)
{
	pthread_mutex_lock(&sim_lock);
	for (struct sim_stream *s = context->streams; s; s = s->next)
		if (s->capture == c)
			s->capture = NULL;
	pthread_mutex_unlock(&sim_lock);
}

static int end_capture(const struct sim_api *api, CUstream handle, CUgraph *graph)
{
	struct sim_stream *s = NULL;
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err) {
		s = sim_stream__find(handle, api->per_thread);
		err = !s                                       ? SIM_INVALID_HANDLE
		      : !s->capture || s->capture->origin != s ? SIM_CAPTURE_UNMATCHED
							       : 0;
	}
	if (!err) {
		struct sim_capture *c = s->capture;

		leave_capture(c, s->context);
		*graph = c->spoilt ? NULL : c->graph;
		err = c->spoilt ? SIM_CAPTURE_INVALIDATED : 0;
	}
	return sim_leave(&call, err, "\"stream\":%u,\"graph\":%u", s ? s->id : 0,
			 err ? 0 : (*graph)->id);
}
SIM_API2(cuStreamEndCapture, _ptsz, (CUstream stream, CUgraph *graph),
	 end_capture(&api, stream, graph))

/* CU_STREAM_CAPTURE_STATUS_NONE 0, ACTIVE 1, INVALIDATED 2 */
static int is_capturing(const struct sim_api *api, CUstream handle, int *status)
{
	struct sim_stream *s = NULL;
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err) {
		s = sim_stream__find(handle, api->per_thread);
		err = s ? 0 : SIM_INVALID_HANDLE;
	}
	if (!err)
		*status = !s->capture ? 0 : s->capture->spoilt ? 2 : 1;
	return sim_leave(&call, err, "\"stream\":%u", s ? s->id : 0);
}
SIM_API2(cuStreamIsCapturing, _ptsz, (CUstream stream, int *status),
	 is_capturing(&api, stream, status))
