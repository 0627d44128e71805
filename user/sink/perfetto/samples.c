// SPDX-License-Identifier: BSD-2-Clause
/*
 * Samples. Those on a CPU and those off a CPU are separate sessions, since Perfetto's flame graphs
 * count samples: one kind would drown in the other. Each sample's count of the timebase is the sum
 * of the weights of its session's samples so far.
 *
 * Frames have addresses within the module's file. A Python frame's module is the file of its
 * function. An inlined function is a frame of its own, at the same address.
 */
#include "sink/perfetto/impl.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "kprof/unwind.h"
#include "model/stacks/stacks.h"
#include "util/util.h"

#define MAX_BUILD_ID 64 /* bytes */

/* Numbers from Perfetto's protocol. */
enum { MODE_UNKNOWN = 0, MODE_KERNEL = 1, MODE_USER = 2 };
enum { COUNTER_UNKNOWN = 0, COUNTER_CPU_CLOCK = 1 };
enum { FRAME_NATIVE = 1, FRAME_KERNEL = 2, FRAME_INTERPRETED = 3 };
enum {
	UNWIND_ERROR_MEMORY = 2,
	UNWIND_ERROR_INFO = 3,
	UNWIND_ERROR_MAP = 5,
	UNWIND_ERROR_FRAMES = 6,
	UNWIND_ERROR_REPEATED = 7,
};

static const uint8_t unwind_errors[KPROF_UNWIND_NR_ENDS] = {
	[KPROF_UNWIND_NO_MAPPING] = UNWIND_ERROR_MAP,
	[KPROF_UNWIND_NOT_YET] = UNWIND_ERROR_INFO,
	[KPROF_UNWIND_NO_TABLE] = UNWIND_ERROR_INFO,
	[KPROF_UNWIND_NO_RULE] = UNWIND_ERROR_INFO,
	[KPROF_UNWIND_ODD_RULE] = UNWIND_ERROR_INFO,
	[KPROF_UNWIND_LOST_REGISTER] = UNWIND_ERROR_INFO,
	[KPROF_UNWIND_BAD_STACK] = UNWIND_ERROR_MEMORY,
	[KPROF_UNWIND_NO_PROGRESS] = UNWIND_ERROR_REPEATED,
	[KPROF_UNWIND_TOO_DEEP] = UNWIND_ERROR_FRAMES,
};

static const char unknown[] = "[unknown]", kernel[] = "[kernel]";

/* Strings of a session, and those that are new in the current packet. */
struct strings {
	struct pf_intern known;
	uint64_t nr_known;
	Pf__InternedBytes list[TRACE_MAX_CALLS + 1], *at[TRACE_MAX_CALLS + 1];
	size_t nr;
};

struct session {
	uint32_t sequence;
	uint64_t weight_ns;  /* sum of all samples' weights so far */
	struct map64 stacks; /* 1: written; by the stack's id (0 is a stack too) */
	struct pf_intern frames, mappings;
	uint64_t nr_frames_known, nr_mappings_known;
	struct strings functions, sources, paths, build_ids;

	/* What is new in the current packet. */

	Pf__Mapping mapping_list[TRACE_MAX_CALLS + 1], *mapping_at[TRACE_MAX_CALLS + 1];
	Pf__Frame frame_list[TRACE_MAX_CALLS + 1], *frame_at[TRACE_MAX_CALLS + 1];
	uint64_t path_of[TRACE_MAX_CALLS + 1];
	size_t nr_mappings, nr_frames;
	uint64_t callstack[TRACE_MAX_CALLS + 1];
};

struct samples {
	struct pftrace *p;
	struct session *sessions[2]; /* on a CPU, off a CPU; NULL: no sample yet */
	struct tl_call calls[TRACE_MAX_CALLS];
};

/* The number of a string, found by its address. bytes: its contents; NULL: the text's. */
static uint64_t string(struct pftrace *p, struct strings *s, const char *text,
		       const ProtobufCBinaryData *bytes)
{
	Pf__InternedBytes *b = &s->list[s->nr];
	bool fresh;
	uint64_t iid;

	s->known.nr = &s->nr_known;
	iid = pf_intern(p, &s->known, text, &fresh);
	if (!fresh)
		return iid;
	pf__interned_bytes__init(b);
	b->iid = iid;
	if (bytes) {
		b->bytes = *bytes;
	} else {
		b->bytes.data = (uint8_t *)pf_text(p, text);
		b->bytes.len = strlen((char *)b->bytes.data);
	}
	s->at[s->nr++] = b;
	return iid;
}

/* Converts hexadecimal digits to bytes, up to an odd digit or another character. */
static uint64_t build_id(struct pftrace *p, struct session *s, const char *hex)
{
	uint8_t *bytes;
	ProtobufCBinaryData data = {0};

	for (size_t i = 0; i < 2 * (size_t)MAX_BUILD_ID && isxdigit((unsigned char)hex[i]); i++)
		data.len = (i + 1) / 2;
	bytes = (uint8_t *)pf_own(p, calloc(1, data.len + 1));
	if (p->err)
		return 0;
	for (size_t i = 0; i < 2 * data.len; i++) {
		int digit = hex[i] <= '9' ? hex[i] - '0' : (hex[i] | 0x20) - 'a' + 10;

		bytes[i / 2] = (uint8_t)(bytes[i / 2] << 4 | digit);
	}
	data.data = bytes;
	return string(p, &s->build_ids, hex, &data);
}

/* The number of the mapping (module) that a frame is in. */
static uint64_t mapping(struct pftrace *p, struct session *s, const struct tl_call *call)
{
	const struct tl_module *module = call->frame->module;
	const char *path = call->frame->kind == TL_FRAME_KERNEL ? kernel : unknown;
	const void *key = path;
	Pf__Mapping *m = &s->mapping_list[s->nr_mappings];
	uint64_t iid;
	bool fresh;

	if (call->frame->kind == TL_FRAME_PYTHON)
		key = path = *call->line->file ? call->line->file : unknown;
	else if (module && *module->path)
		path = module->path;
	if (call->frame->kind != TL_FRAME_PYTHON && module)
		key = module;
	s->mappings.nr = &s->nr_mappings_known;
	iid = pf_intern(p, &s->mappings, key, &fresh);
	if (!fresh)
		return iid;
	pf__mapping__init(m);
	m->iid = iid;
	if (key == module && *module->build_id) {
		m->build_id = build_id(p, s, module->build_id);
		m->has_build_id = true;
	}
	s->path_of[s->nr_mappings] = string(p, &s->paths, path, NULL);
	m->path = &s->path_of[s->nr_mappings];
	m->n_path = 1;
	s->mapping_at[s->nr_mappings++] = m;
	return iid;
}

static void new_frame(struct pftrace *p, struct session *s, const struct tl_call *call,
		      uint64_t iid)
{
	Pf__Frame *f = &s->frame_list[s->nr_frames];

	pf__frame__init(f);
	f->iid = iid;
	f->function = string(p, &s->functions, call->line->function, NULL);
	f->mapping = mapping(p, s, call);
	f->rel_pc = call->frame->address;
	f->kind = call->frame->kind == TL_FRAME_PYTHON   ? FRAME_INTERPRETED
		  : call->frame->kind == TL_FRAME_KERNEL ? FRAME_KERNEL
							 : FRAME_NATIVE;
	if (*call->line->file) {
		f->has_source = true;
		f->source = string(p, &s->sources, call->line->file, NULL);
	}
	f->has_line = call->line->line != 0;
	f->line = call->line->line;
	s->frame_at[s->nr_frames++] = f;
}

/* The number of a frame. Each line of a timeline's frame (an inlined function) is one. */
static uint64_t frame(struct pftrace *p, struct session *s, const struct tl_call *call)
{
	uint64_t iid;
	bool fresh;

	s->frames.nr = &s->nr_frames_known;
	iid = pf_intern(p, &s->frames, call->line, &fresh);
	if (fresh)
		new_frame(p, s, call, iid);
	return iid;
}

/* Collects the frames of a stack, outermost first. */
static size_t callstack(struct samples *all, struct session *s, uint32_t stack)
{
	static const struct tl_line no_line = {.function = unknown, .full = unknown, .file = ""};
	static const struct tl_frame no_frame = {.kind = TL_FRAME_NATIVE, .op = ""};
	size_t nr = stack ? timeline__calls(all->p->t, stack, all->calls, TRACE_MAX_CALLS) : 0;

	if (!nr)
		all->calls[nr++] = (struct tl_call){&no_frame, &no_line};
	for (size_t i = 0; i < nr; i++)
		s->callstack[i] = frame(all->p, s, &all->calls[nr - 1 - i]);
	return nr;
}

/* Collects what this packet is the first to refer to. */
static void put_interned(struct session *s, Pf__InternedData *out)
{
	pf__interned_data__init(out);
	out->n_functions = s->functions.nr;
	out->functions = s->functions.at;
	out->n_sources = s->sources.nr;
	out->sources = s->sources.at;
	out->n_paths = s->paths.nr;
	out->paths = s->paths.at;
	out->n_build_ids = s->build_ids.nr;
	out->build_ids = s->build_ids.at;
	out->n_mappings = s->nr_mappings;
	out->mappings = s->mapping_at;
	out->n_frames = s->nr_frames;
	out->frames = s->frame_at;
	s->functions.nr = s->sources.nr = s->paths.nr = s->build_ids.nr = 0;
	s->nr_mappings = s->nr_frames = 0;
}

static void put_sample(struct samples *all, struct session *s, const struct store_record *r)
{
	const struct tl_thread *thread = timeline__thread(all->p->t, r->sample.thread);
	uint32_t state = r->sample.flags & KPROF_SAMPLE_STATE;
	uint32_t end = (r->sample.flags & KPROF_SAMPLE_END) >> KPROF_SAMPLE_END_SHIFT;
	uint64_t *written = map64__at(&s->stacks, r->sample.stack);
	Pf__Packet packet = PF__PACKET__INIT;
	Pf__PerfSample perf = PF__PERF_SAMPLE__INIT;
	Pf__Callstack stack = PF__CALLSTACK__INIT, *at = &stack;
	Pf__InternedData interned;

	if (!written) {
		pf_no_memory(all->p);
		return;
	}
	perf.pid = (uint32_t)thread->pid;
	perf.tid = (uint32_t)thread->tid;
	perf.callstack_iid = (uint64_t)r->sample.stack + 1;
	perf.mode = state == KPROF_SAMPLE_USER     ? MODE_USER
		    : state == KPROF_SAMPLE_KERNEL ? MODE_KERNEL
						   : MODE_UNKNOWN;
	perf.count = s->weight_ns += r->sample.weight_ns;
	perf.unwind_error = r->sample.flags & KPROF_SAMPLE_CUT ? UNWIND_ERROR_FRAMES
			    : end < KPROF_UNWIND_NR_ENDS       ? unwind_errors[end]
							       : 0;
	perf.has_unwind_error = perf.unwind_error != 0;
	if (!*written) {
		*written = 1;
		stack.iid = perf.callstack_iid;
		stack.n_frames = callstack(all, s, r->sample.stack);
		stack.frames = s->callstack;
		put_interned(s, &interned);
		interned.n_callstacks = 1;
		interned.callstacks = &at;
		packet.interned = &interned;
	}
	packet.perf_sample = &perf;
	packet.has_timestamp = true;
	packet.sequence = s->sequence;
	packet.timestamp = r->sample.time_ns;
	pf_packet(all->p, &packet);
	pf_packet_done(all->p);
}

/*
 * Starts a session with its first packet: its clock, and the unit in which its samples are counted.
 */
static struct session *session_start(struct samples *all, bool off_cpu)
{
	Pf__Packet packet = PF__PACKET__INIT;
	Pf__Defaults defaults = PF__DEFAULTS__INIT;
	Pf__PerfSampleDefaults perf = PF__PERF_SAMPLE_DEFAULTS__INIT;
	Pf__PerfSampleDefaults__Timebase timebase = PF__PERF_SAMPLE_DEFAULTS__TIMEBASE__INIT;
	struct session *s = calloc(1, sizeof(*s));

	if (!s) {
		pf_no_memory(all->p);
		return NULL;
	}
	s->sequence = off_cpu ? PF_SEQUENCE_OFF_CPU : PF_SEQUENCE_ON_CPU;
	timebase.counter = off_cpu ? COUNTER_UNKNOWN : COUNTER_CPU_CLOCK;
	timebase.name = (char *)(off_cpu ? "off-cpu" : "cpu-clock");
	perf.timebase = &timebase;
	defaults.perf_sample = &perf;
	defaults.timestamp_clock = PF_CLOCK_MONOTONIC;
	packet.defaults = &defaults;
	packet.sequence = s->sequence;
	packet.sequence_flags = PF_STATE_CLEARED;
	pf_packet(all->p, &packet);
	return s;
}

static void session_free(struct session *s)
{
	struct map64 *const maps[] = {&s->stacks,
				      &s->frames.map,
				      &s->mappings.map,
				      &s->functions.known.map,
				      &s->sources.known.map,
				      &s->paths.known.map,
				      &s->build_ids.known.map};

	for (size_t i = 0; i < ARRAY_SIZE(maps); i++)
		map64__free(maps[i]);
	free(s);
}

static int on_sample(void *ctx, const struct store_record *r)
{
	struct samples *all = ctx;
	bool off_cpu = stack_off_cpu(r->sample.flags);
	struct session **s = &all->sessions[off_cpu];

	if (!*s)
		*s = session_start(all, off_cpu);
	if (*s)
		put_sample(all, *s, r);
	return all->p->err;
}

int pf_samples(struct pftrace *p)
{
	struct samples *all = calloc(1, sizeof(*all));
	int err;

	if (!all)
		return pf_no_memory(p);
	all->p = p;
	err = timeline__samples(p->t, p->opts->pid, on_sample, all);
	for (size_t i = 0; i < ARRAY_SIZE(all->sessions); i++)
		if (all->sessions[i])
			session_free(all->sessions[i]);
	free(all);
	return err;
}
