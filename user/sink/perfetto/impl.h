/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of the Perfetto sink. pftrace.c puts the trace together; tracks.c: who is who;
 * spans.c: the host's spans; device.c: what devices did, instants and counters; samples.c: samples
 * and their stacks; args.c: annotations; packets.c: packets. pftrace.proto has the messages.
 *
 * Readers sort packets by time, and keep the order of the file among those of the same time: slices
 * nest where begins and ends of one row come in the order of their nesting. The host's spans do as
 * they stream. Activities come in no order, so that their ends stand in front of everything: at the
 * same time an end comes before a begin.
 */
#ifndef KPROF_PERFETTO_IMPL_H
#define KPROF_PERFETTO_IMPL_H

#include "sink/perfetto/pftrace.pb-c.h"
#include "sink/trace/trace.h"

enum pf_event { PF_BEGIN = 1, PF_END = 2, PF_INSTANT = 3, PF_COUNTER = 4 };

/* Numbers of tracks: an index, and of what in the two lowest bits. Small ones are short. */
enum pf_track { PF_OTHER = 0, PF_THREAD = 1, PF_PROCESS = 2, PF_ROW = 3 };

#define PF_SEQUENCE 1
#define PF_SEQUENCE_TRACKS 2 /* a thread is that of its sequence, else, for readers */
#define PF_SEQUENCE_ON_CPU 3
#define PF_SEQUENCE_OFF_CPU 4
#define PF_CLOCK_REALTIME 1
#define PF_CLOCK_MONOTONIC 3
#define PF_CLOCK_DELTA 64 /* ours: a packet's time is the distance from the one before */

/* What packets refer to by number: numbers by address, as the timeline's strings never move. */
struct pf_intern {
	struct map64 map;
	uint64_t *nr; /* of this and whatever shares its numbers */
};

/*
 * Annotations of one event: attributes (a DIM3 takes four), what is computed, and what events have
 * of their own.
 */
#define PF_MAX_ANNOTATIONS (TL_MAX_ATTRS + TRACE_MAX_ARGS + 16)
#define PF_MAX_VALUES (PF_MAX_ANNOTATIONS + 3 * TL_MAX_ATTRS)

struct pf_names { /* new names of one packet */
	Pf__InternedName list[PF_MAX_ANNOTATIONS], *at[PF_MAX_ANNOTATIONS];
	size_t nr;
};

struct pf_bytes {
	Pf__InternedBytes list[PF_MAX_ANNOTATIONS], *at[PF_MAX_ANNOTATIONS];
	size_t nr;
};

struct pf_counter { /* its track */
	pid_t pid;
	const struct trace_device *device; /* NULL: the process's */
	int64_t stream;                    /* -1: none */
	const char *name;                  /* by address */
	uint64_t track;
	size_t next; /* of the same hash; SIZE_MAX: none */
};

struct pftrace {
	struct trace tr;
	struct timeline *t;
	const struct kprof_export_opts *opts;
	struct correlate *corr; /* .tr's */
	struct jsonw w;         /* a buffer in front of the file */
	int err;                /* the first one; all that comes later does nothing */

	uint64_t clock_ns; /* where PF_CLOCK_DELTA stands */
	bool in_order;     /* events come by time: use it */
	bool named_ends;
	uint64_t first_ns, last_ns;
	uint64_t slices;

	/* The packet that is being put together. */
	Pf__TrackEvent event;
	uint64_t category;
	Pf__Annotation values[PF_MAX_VALUES], *annotations[PF_MAX_ANNOTATIONS];
	size_t nr_values;
	struct pf_names new_names, new_categories, new_keys;
	struct pf_bytes new_strings;
	uint64_t *flows;
	size_t nr_flows, cap_flows;
	char **texts; /* to be freed with the packet */
	size_t nr_texts, cap_texts;

	uint64_t nr_names, nr_categories, nr_keys, nr_strings;
	struct pf_intern names, api_names, demangled, categories, keys, strings;
	struct map64 processes;  /* with a track, by pid */
	struct map64 counter_of; /* index + 1, by hash */
	struct pf_counter *counters;
	size_t nr_counters, cap_counters;
	uint64_t nr_others;   /* PF_OTHER tracks */
	uint32_t *span_calls; /* calls that have spans, by those */
	size_t nr_span_calls, at_span_call;
};

/* ---- packets.c ---- */

int pf_no_memory(struct pftrace *p);
/* As it is where it is UTF-8, else with \xNN in it; valid until the packet is written. */
char *pf_text(struct pftrace *p, const char *text);
/* Takes over a malloc'ed text (NULL: no memory), to be freed with the packet. */
char *pf_own(struct pftrace *p, char *text);
/* The number of what lies at key; *fresh: it is a new one. */
uint64_t pf_intern(struct pftrace *p, struct pf_intern *in, const void *key, bool *fresh);
void pf_packet(struct pftrace *p, Pf__Packet *packet);
/* Forgets what was for one packet only. */
void pf_packet_done(struct pftrace *p);
void pf_free(struct pftrace *p);

void pf_event(struct pftrace *p, enum pf_event type, uint64_t track);
void pf_name(struct pftrace *p, const char *name);
/* The name of an activity, demangled; of a call, without its version. */
void pf_name_demangled(struct pftrace *p, const char *name);
void pf_name_api(struct pftrace *p, const char *name);
void pf_category(struct pftrace *p, const char *category);
void pf_flow(struct pftrace *p, uint64_t id);
/* Ends a flow here. */
void pf_flow_end(struct pftrace *p, uint64_t id);
/* Writes the event. */
void pf_put(struct pftrace *p, uint64_t mono_ns);
/* Counts a slice, and what the trace covers with it. */
void pf_cover(struct pftrace *p, uint64_t start_ns, uint64_t end_ns);
/* A slice of which everything is known: its begin, or the whole if it has no length. */
void pf_slice(struct pftrace *p, uint64_t track, uint64_t start_ns, uint64_t end_ns);
/* … and its end, unless it has no length. */
void pf_slice_end(struct pftrace *p, uint64_t track, uint64_t start_ns, uint64_t end_ns);

/* ---- args.c ---- */

void pf_arg_u64(struct pftrace *p, const char *key, uint64_t v); /* key: a string of the program */
void pf_arg_bool(struct pftrace *p, const char *key, bool v);
void pf_arg_string(struct pftrace *p, const char *key,
		   const char *text); /* of program or timeline */
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
/* A counter's, written when it is asked for first; .track and .next are not read. */
uint64_t pf_counter_track(struct pftrace *p, const struct pf_counter *of);
/* A new one that belongs to nothing. */
uint64_t pf_other_track(struct pftrace *p, const char *name);
void pf_tracks(struct pftrace *p);
/* Flows from the event that is being put together to the work that the call launched. */
void pf_flows_from(struct pftrace *p, const struct corr_call *call);
int pf_spans(struct pftrace *p);
/* Ends of what comes in no order; before everything else. */
void pf_early_ends(struct pftrace *p);
int pf_details(struct pftrace *p);
int pf_samples(struct pftrace *p);
/* Number of the flow to an activity. */
static inline uint64_t pf_flow_to(uint32_t act)
{
	return (uint64_t)act + 1;
}

#endif
