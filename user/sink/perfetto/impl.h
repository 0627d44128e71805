/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of the Perfetto sink. pftrace.c writes the whole; tracks.c: tracks of processes,
 * threads and devices; spans.c: the host's spans; device.c: what devices did, instants and
 * counters; samples.c: samples and their stacks; waits.c: waits; sched.c: what
 * CPUs ran; args.c: annotations; packets.c: packets. pftrace.proto has the messages.
 *
 * Readers sort packets by time, and keep the order of the file among those of equal time. So slices
 * nest if begins and ends of one row are written in the order of their nesting. The host's spans
 * are streamed in that order. Activities come in no order, so all of their ends are written before
 * everything else: at equal times, an end then precedes a begin.
 */
#ifndef KPROF_PERFETTO_IMPL_H
#define KPROF_PERFETTO_IMPL_H

#include "sink/perfetto/pftrace.pb-c.h"
#include "sink/trace/trace.h"

enum pf_event { PF_BEGIN = 1, PF_END = 2, PF_INSTANT = 3, PF_COUNTER = 4 };

/*
 * A track's number is an index, and in its two lowest bits the kind of track. Small numbers take
 * fewer bytes.
 */
enum pf_track { PF_OTHER = 0, PF_THREAD = 1, PF_PROCESS = 2, PF_ROW = 3 };

#define PF_SEQUENCE 1
#define PF_SEQUENCE_TRACKS 2 /* readers otherwise take a thread to be its sequence's */
#define PF_SEQUENCE_ON_CPU 3
#define PF_SEQUENCE_OFF_CPU 4
#define PF_STATE_CLEARED 1 /* flag of a sequence's first packet */
#define PF_CLOCK_REALTIME 1
#define PF_CLOCK_MONOTONIC 3
#define PF_CLOCK_BOOTTIME 6
/* Kprof's own clock: a packet's time is the distance from the packet before. */
#define PF_CLOCK_DELTA 64

/* Numbers of the strings that packets refer to, by address: the timeline's strings never move. */
struct pf_intern {
	struct map64 map;
	uint64_t *nr; /* next number, shared by all that number together */
};

/*
 * Annotations of one event at most: attributes (a DIM3 takes four), computed ones, and those that
 * an event always has.
 */
#define PF_MAX_ANNOTATIONS (TL_MAX_ATTRS + TRACE_MAX_ARGS + 16)
#define PF_MAX_VALUES (PF_MAX_ANNOTATIONS + 3 * TL_MAX_ATTRS)

struct pf_names { /* names that one packet is the first to use */
	Pf__InternedName list[PF_MAX_ANNOTATIONS], *at[PF_MAX_ANNOTATIONS];
	size_t nr;
};

struct pf_bytes {
	Pf__InternedBytes list[PF_MAX_ANNOTATIONS], *at[PF_MAX_ANNOTATIONS];
	size_t nr;
};

struct pf_counter { /* a counter, and its track */
	pid_t pid;
	const struct trace_device *device; /* NULL: a counter of the process */
	int64_t stream;                    /* -1: none */
	const char *name;                  /* compared by address */
	uint64_t track;
	size_t next; /* next counter of the same hash; SIZE_MAX: none */
};

struct pftrace {
	struct trace tr;
	struct kprof_capture *t;
	const struct kprof_export_opts *opts;
	struct correlate *corr; /* the same as tr.corr */
	struct jsonw w;         /* the output, buffered */
	int err;                /* the first error, after which nothing is written */

	uint64_t clock_ns; /* current time of PF_CLOCK_DELTA */
	bool in_order;     /* events come in order of time, so PF_CLOCK_DELTA is used */
	bool named_ends;
	uint64_t first_ns, last_ns;
	uint64_t slices;
	uint64_t nr_wakes; /* arrows to waits so far */

	/* The current packet. */
	Pf__TrackEvent event;
	uint64_t category;
	Pf__Annotation values[PF_MAX_VALUES], *annotations[PF_MAX_ANNOTATIONS];
	size_t nr_values;
	struct pf_names new_names, new_categories, new_keys;
	struct pf_bytes new_strings;
	uint64_t *flows;
	size_t nr_flows, cap_flows;
	char **texts; /* texts to free with the packet */
	size_t nr_texts, cap_texts;

	uint64_t nr_names, nr_categories, nr_keys, nr_strings;
	struct pf_intern names, api_names, demangled, wait_names, categories, keys, strings;
	struct map64 processes;  /* processes with a track, by PID */
	struct map64 counter_of; /* index + 1, by hash */
	struct pf_counter *counters;
	size_t nr_counters, cap_counters;
	uint64_t nr_others;     /* number of PF_OTHER tracks */
	struct bulk span_calls; /* uint32_t: calls that have spans, in the order of the spans */
	size_t at_span_call;
};

/* ---- packets.c ---- */

int pf_no_memory(struct pftrace *p);
/* The text as valid UTF-8: other bytes are written as \xNN. Valid until the packet is written. */
char *pf_text(struct pftrace *p, const char *text);
/* Takes ownership of a malloc'ed text (NULL: out of memory), which is freed with the packet. */
char *pf_own(struct pftrace *p, char *text);
/* The number of the string at address key. *fresh: the number is new. */
uint64_t pf_intern(struct pftrace *p, struct pf_intern *in, const void *key, bool *fresh);
void pf_packet(struct pftrace *p, Pf__Packet *packet);
/* Frees and resets the state of the current packet. */
void pf_packet_done(struct pftrace *p);
void pf_free(struct pftrace *p);

void pf_event(struct pftrace *p, enum pf_event type, uint64_t track);
void pf_name(struct pftrace *p, const char *name);
/* Sets the event's name: an activity's demangled, a call's without its version. */
void pf_name_demangled(struct pftrace *p, const char *name);
void pf_name_api(struct pftrace *p, const char *name);
/* The same of a wait, by what it was for. */
void pf_name_wait(struct pftrace *p, const char *reason);
void pf_category(struct pftrace *p, const char *category);
void pf_flow(struct pftrace *p, uint64_t id);
/* Ends a flow arrow at this event. */
void pf_flow_end(struct pftrace *p, uint64_t id);
/* Writes the current event at this time. */
void pf_put(struct pftrace *p, uint64_t mono_ns);
/* Counts a slice, and widens the covered time to it. */
void pf_cover(struct pftrace *p, uint64_t start_ns, uint64_t end_ns);
/* Writes the begin of a slice whose end is known, or all of it if it has no length. */
void pf_slice(struct pftrace *p, uint64_t track, uint64_t start_ns, uint64_t end_ns);
/* Writes the end of such a slice, unless it has no length. */
void pf_slice_end(struct pftrace *p, uint64_t track, uint64_t start_ns, uint64_t end_ns);

/* ---- args.c ---- */

void pf_arg_u64(struct pftrace *p, const char *key, uint64_t v); /* key: a string constant */
void pf_arg_bool(struct pftrace *p, const char *key, bool v);
void pf_arg_string(struct pftrace *p, const char *key,
		   const char *text); /* text: a string constant, or the timeline's */
void pf_arg_text(struct pftrace *p, const char *key, const char *text); /* any text, copied */
void pf_arg_stack(struct pftrace *p, const char *key, uint32_t stack);
void pf_arg_json(struct pftrace *p, const char *key, const char *json);
void pf_arg_computed(struct pftrace *p, const struct trace_arg *list, uint32_t nr);
void pf_arg_attrs(struct pftrace *p, const struct store_attr *attrs, uint32_t nr,
		  enum trace_place place);

/* ---- tracks.c, spans.c, device.c, samples.c ---- */

static inline uint64_t pf_thread_track(uint32_t index)
{
	return (uint64_t)index << 2 | PF_THREAD;
}

uint64_t pf_row_track(const struct pftrace *p, uint32_t row, uint32_t lane);
uint64_t pf_process_track(struct pftrace *p, pid_t pid);
/* The track of a counter, written at the first call. .track and .next are not read. */
uint64_t pf_counter_track(struct pftrace *p, const struct pf_counter *of);
/* A new track that belongs to no process or device. */
uint64_t pf_other_track(struct pftrace *p, const char *name);
void pf_tracks(struct pftrace *p);
/* Starts flow arrows from the current event to the work that the call launched. */
void pf_flows_from(struct pftrace *p, const struct corr_call *call);
int pf_spans(struct pftrace *p);
/* Writes the ends of unordered slices; to be called before anything else is written. */
void pf_early_ends(struct pftrace *p);
int pf_details(struct pftrace *p);
int pf_samples(struct pftrace *p);

/* ---- waits.c ---- */

/* Writes the ends of waits; to be called before anything else is written. */
int pf_waits_ends(struct pftrace *p);
int pf_waits(struct pftrace *p);

/* ---- sched.c ---- */

int pf_sched(struct pftrace *p);

/* Set in the numbers of flow arrows to waits. */
#define PF_FLOW_WAKES (1ull << 62)
#define PF_FLOW_NODES (1ull << 61) /* … to autograd's nodes */

/* Number of the flow arrow to an activity. */
static inline uint64_t pf_flow_to(uint32_t act)
{
	return (uint64_t)act + 1;
}

#endif
