/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The probe set: all probes of a recording, with the files and processes in which they are placed.
 * It plans the probes of a file once (plan.h), places them in each process that maps the file,
 * learns return sites while the recording runs, and removes all probes at its end.
 *
 *   set.c           the set, the probes in it, what they cost
 *   files.c         ELF files that targets map: opened once, planned once
 *   place.c         the files of one process, and the probes placed in them
 *   return_sites.c  return addresses → return sites
 *   return_cache.c  return addresses that are kept on disk
 *   shed.c          probes that are given up, as they cost too much
 *   burst.c         the same, placed for a short time
 *   extras.c        probes of files besides those of frameworks: of the next two
 *   functions.c     functions of programs' own that were asked for by their name
 *   marks.c         places of annotations that applications compiled in
 *   collectives.h   where a build keeps what its collectives communicate
 *   sequences.c     where processes keep sequence numbers (sequence.h: where a build does)
 */
#ifndef KPROF_CAPTURE_PROBE_H
#define KPROF_CAPTURE_PROBE_H

#include "capture/span/spans.h"
#include "capture/probe/attach.h"
#include "capture/probe/plan.h"
#include "capture/target/target.h"
#include "capture/record/record.h"

/* A planned probe. Its index is in the cookie of its attach_point. */
struct probe {
	const struct catalog_row *row;
	uint32_t row_id; /* tells the row from those of all frameworks */
	uint32_t source;
	uint64_t framework;    /* bit of its framework (plan.h) */
	uint64_t group;        /* bit 1 << enum kprof_activity */
	uint64_t folded_into;  /* a call directly inside a call of these groups is not recorded */
	char *name, *overload; /* of the event; name NULL: read at each hit */
	struct signature *signature; /* how its inputs are read; NULL: they are not */
	/* the event description where .name is known; 0: not written yet. Set by event/names.c */
	uint32_t description;
	uint32_t keys[KPROF_WIRE_MAX_ARGS]; /* string ids of the arguments' names */
	/* Of a collective: bit i: args[i] is read; what else is said of a tensor's type. */
	uint32_t args_read;
	uint64_t type_mask;       /* see struct kprof_inputs_plan */
	bool handles_are_objects; /* of a call of MPI: they are addresses */
};

struct probe_set_opts {
	struct attacher *attacher;
	struct recorder *recorder;
	struct targets *targets;
	const struct plan_filter *filter;
	bool single;                  /* single uprobes: each probe costs a descriptor */
	uint32_t max_single_probes;   /* 0: the default */
	enum kprof_children children; /* decides in which processes probes are placed */
	bool entry_stacks;            /* a second program at entries takes stacks */
	bool memory_stacks;           /* … only where memory is allocated */
	bool agent;                   /* the agent records what devices do */
};

struct kprof_agent_layout;
struct probe_set;

int probe_set__new(const struct probe_set_opts *opts, struct probe_set **out);
/* Removes the remaining probes. ps may be NULL. */
void probe_set__free(struct probe_set *ps);

/* ---- processes ---- */

/* Places the missing probes in the files that the process maps. */
int probe_set__place(struct probe_set *ps, struct target *t);
/*
 * Places a probe of the caller's own on a function of a mapped file, once per process and file.
 * -ENOEXEC: the file has no such function.
 */
int probe_set__place_own(struct probe_set *ps, struct target *t, const struct proc_map *map,
			 enum attach_program program, const char *symbol, uint64_t cookie);
/*
 * Forgets the process's return addresses, as it has ended or runs another program; those that were
 * not learnt yet are learnt before, while its former mappings are known. No frame may point at
 * their struct span_return any more.
 */
void probe_set__forget_returns(struct probe_set *ps, struct target *t);
/*
 * For a process whose probes do not reach its new program: puts the probes aside. Removing a link
 * takes the kernel some 50 ms, so they are removed with the others at the end, or when there are
 * many.
 */
void probe_set__retire(struct probe_set *ps, struct target *t);
/* Retires the process's probes and forgets the process. */
void probe_set__forget(struct probe_set *ps, struct target *t);
/*
 * A child was forked, or runs in its parent's memory: what is known of the parent's files and
 * return addresses holds for it, too. Returns 1 when all probes of the parent fire in the child, 0
 * when some have to be placed in it first, or a negative errno. *bystander: because of which other
 * process; 0: of none.
 */
int probe_set__inherit(struct probe_set *ps, struct target *child, struct target *parent,
		       uint32_t *bystander);
/* Periodic work: bounds what probes cost processes that are not recorded. */
int probe_set__tend(struct probe_set *ps, uint64_t now_ns);
/*
 * Does what the BPF programs were told of files, when they recorded an event at that time, still
 * hold? Else probes were removed since.
 */
bool probe_set__told_since(const struct probe_set *ps, uint64_t time_ns);
/* Records the files in which probes could not be placed. */
int probe_set__record_lost(struct probe_set *ps, const struct target *t, uint64_t until_ns);
bool probe_set__has_probes(const struct probe_set *ps, const struct target *t);
bool probe_set__has_framework(const struct probe_set *ps, const struct target *t);
/* 0 if all frameworks' libraries can be read that the process maps; else -errno, and the error. */
int probe_set__reads_frameworks(const struct target *t);
/* Are allocations of the process seen? */
bool probe_set__has_allocator(const struct probe_set *ps, const struct target *t);
/*
 * Gives up probes on functions and return sites, to cost less: those for which dropped() says so,
 * by the index of the probe or the site. What stays in the same files is placed anew, which is a
 * gap. Returns how many were given up.
 */
int probe_set__shed(struct probe_set *ps, bool (*dropped)(void *ctx, bool site, uint32_t index),
		    void *ctx);
/* Gives up all of them, also in files that are mapped later. Annotations and agents stay. */
void probe_set__shed_all(struct probe_set *ps);
/*
 * Places the given up probes for a short time, beside the others, until probe_set__burst_end(). The
 * programs heed them while KPROF_WIRE_SHED_BURSTS is not set. False: there are none, or not
 * all could be placed.
 */
bool probe_set__burst(struct probe_set *ps);
void probe_set__burst_end(struct probe_set *ps);
/* These links are to be removed with the others, at the end. */
void probe_set__keep_links(struct probe_set *ps, struct attach_links *links);
/* Removes all probes, of all processes at once. They can't be placed again. */
void probe_set__detach(struct probe_set *ps);

/* ---- files ---- */

/* The ELF file of a mapping, open as long as the set exists. NULL: not ELF, or can't be opened. */
struct elffile *probe_set__elf(struct probe_set *ps, const struct target *t,
			       const struct proc_map *map);
/*
 * Where an agent in the process finds what operators that it observes are called with, and their
 * sequence numbers. Returns which of the two it can read: KPROF_AGENT_OPT_*.
 */
uint32_t probe_set__observer_layout(struct probe_set *ps, const struct target *t,
				    struct kprof_agent_layout *out);
/* Do the probes of this file fire in every process that maps it? */
bool probe_set__fires_in_all(const struct probe_set *ps, const struct proc_map *map);
enum probe_caller {
	PROBE_CALLER_OTHER,
	PROBE_CALLER_FRAMEWORK, /* code in a library of the framework */
	/* code in a file into which the library is linked: may be the program's */
	PROBE_CALLER_EMBEDDED,
};
/* Whose code is at this address of the process? framework: as in struct probe. */
enum probe_caller probe_set__caller(struct probe_set *ps, const struct target *t, uint64_t addr,
				    uint64_t framework);

/* ---- probes ---- */

struct probe *probe_set__probe(const struct probe_set *ps, uint32_t index);
size_t probe_set__nr(const struct probe_set *ps);
/* The source of annotations. Valid once a probe was placed on one. */
uint32_t probe_set__mark_source(const struct probe_set *ps);

/* ---- return sites ---- */

/*
 * The entry of a return address, which is queued to be learnt when it is new, or when a result is
 * wanted there for the first time. NULL: no memory.
 */
struct span_return *probe_set__return(struct probe_set *ps, struct target *t, uint64_t addr,
				      bool wants_result);
/* The same, but NULL where nothing is known of the address yet, and nothing is to be learnt. */
struct span_return *probe_set__known_return(struct probe_set *ps, struct target *t, uint64_t addr);
/* The end of calls that return there is of no interest. */
void probe_set__ignore_return(struct probe_set *ps, const struct target *t, uint64_t addr);
/* Are there return addresses to learn, or return sites to place? */
bool probe_set__pending(const struct probe_set *ps);
/* Learns them and places the new return sites. */
int probe_set__learn(struct probe_set *ps);
/* Keeps what was learnt on disk, for the next recording. */
void probe_set__remember(struct probe_set *ps);

struct probe_set_stats {
	size_t nr_sites;
	uint64_t nr_returns;       /* return addresses met, over all processes */
	uint64_t sites_stepped;    /* sites on instructions that the kernel single-steps */
	uint64_t returns_followed; /* return addresses whose code only returns in its turn */
	uint64_t returns_none;     /* return addresses that can't have a return site */
	/* probes that were not placed because single uprobes are limited */
	uint64_t single_cut;
	uint64_t functions; /* that were asked for by their name, and were found */
	uint64_t unread;    /* probes on operators whose inputs can't be read, though asked for */
};
const struct probe_set_stats *probe_set__stats(const struct probe_set *ps);

#endif
