/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the catalog's rows and one library's symbols to a plan of the probes to place in it: where,
 * at what cost, and how each event is named. Reads files only; touches no process.
 */
#ifndef KPROF_CAPTURE_PLAN_H
#define KPROF_CAPTURE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "catalog/catalog.h"
#include "symbol/elf/elf.h"
#include "symbol/names/names.h"
#include "symbol/x86/x86.h"

/* Which events a session records; patterns are globs on the event's name. */
struct plan_filter {
	const char *const *ops; /* NULL: all */
	size_t nr_ops;
	/* for the first 64 patterns, bit i is set when a name matched ops[i]; NULL: not needed */
	uint64_t *ops_matched;
	const char *const *exclude;
	size_t nr_exclude;
	bool inputs;      /* plan how inputs are read, too */
	bool flow;        /* … and sequence numbers */
	bool mark_common; /* find out which probes are on the framework's most used operators */
	bool memory;      /* allocations and frees, too */
	/* no probes on what the framework's observer tells (gpu/pytorch/) */
	bool observed;
	uint64_t types;     /* bits 1 << enum kprof_activity; 0: all */
	uint32_t scopes;    /* of what has a scope, bits 1 << enum kprof_scope; 0: all */
	bool within;        /* ranges are probed in any case: they say what is recorded */
	const char *symbol; /* a function that is probed wherever there is one; NULL: none */
	uint32_t only;      /* only these annotations, bits of enum kprof_only; 0: all events */
};

bool plan_filter_wants_type(const struct plan_filter *f, enum kprof_activity type);
/* Are the row's events wanted, by their type and their scope? */
bool plan_filter_wants_row(const struct plan_filter *f, const struct catalog_row *row);
/* … and the framework's own annotations? */
bool plan_filter_wants_annotations(const struct plan_filter *f);
/* --ops concerns operators (category cpu_op); --exclude any event. */
bool plan_filter_accepts(const struct plan_filter *f, const char *category, const char *name);

struct plan_probe {
	const struct catalog_row *row;
	uint64_t offset;        /* place of the probe in the file */
	uint32_t sp_bias_bytes; /* bytes that were pushed on the stack before the probe's place */
	enum insn_cost cost;
	bool common;                  /* among the framework's most used operators */
	char *name;                   /* name of the event; NULL: read at each hit */
	char *overload;               /* "" when there is none */
	struct kprof_wire_probe wire; /* recipes with the build's own offsets filled in */
	char *symbol;                 /* mangled; NULL: nobody asks for its parameters */
	uint64_t sequence;            /* KPROF_COOKIE_SEQUENCE() */
	uint64_t type_mask;           /* of a collective: see struct kprof_inputs_plan */
	bool handles_are_objects;     /* of a call of MPI: they are addresses */
	struct signature *signature;  /* how the inputs are read; NULL: they are not */
};

struct sequence_layout;

struct plan_row { /* what was planned for a row, for `kprof check -v` */
	const struct catalog_row *row;
	uint32_t probes, by_cost[3]; /* by enum insn_cost */
	bool library_matches;
	bool not_needed;     /* the symbols of its only_without exist: that better way is used */
	const char *problem; /* for example a layout that could not be learnt; NULL: none */
};

struct plan {
	struct plan_probe *probes;
	size_t nr, cap;
	struct plan_row *rows; /* one per row of the framework, in the same order */
	size_t nr_rows;
	uint32_t filtered; /* probes left out by the filter */
	uint32_t unread;   /* probes whose call's inputs cannot be read */
	bool no_tensors;   /* … for none, as the layout of tensors could not be learnt */
	struct sequence_layout *sequence; /* owned; NULL: calls have no sequence numbers … */
	bool no_sequence;                 /* … as their layout could not be learnt */
	uint32_t hidden; /* probes left out because the framework's own profiler never shows them */
};

struct plan_files {
	struct elffile *files[64];
	const char *names[64]; /* base names */
	size_t nr;
};

/*
 * Plans the probes for one library. base_name: the file name that rows' library globs are matched
 * with. others: files of the process in which layouts and vtables may be found (including the
 * library itself). Returns 0 (also when nothing matches) or a negative errno.
 */
int plan_library(const struct catalog_framework *fw, const struct elffile *library,
		 const char *base_name, const struct plan_files *others,
		 const struct plan_filter *filter, struct plan *out);
void plan_free(struct plan *p);

/*
 * The names of the libraries that kprof knows, for messages: "libtorch_cpu.so, libtorch_python.so".
 */
void plan_library_names(char *buf, size_t bytes);

/*
 * Does this build of the framework's .observer_library take callbacks of the form that the agent
 * hands it?
 */
bool plan_observable(const struct catalog_framework *fw, const struct elffile *library);
/* What more of them it could read: KPROF_AGENT_OPT_INPUTS, KPROF_AGENT_OPT_SEQUENCE. */
uint32_t plan_observable_more(const struct catalog_framework *fw, const struct plan_files *files);

/* May layouts be learnt from a file of this name: a framework's library, or CPython? */
bool plan_has_layouts(const char *base_name);

/* Sets of frameworks: bit i is catalog_frameworks[i]. */

/* The frameworks with a row for a library of this name. */
uint64_t plan_frameworks_of(const char *base_name);
/* The frameworks that may be linked into any file of a process that maps a library of this name. */
uint64_t plan_embedded_with(const char *base_name);
/* The frameworks among `candidates` whose library is linked into this file. */
uint64_t plan_embedded_in(const struct elffile *e, uint64_t candidates);
#define PLAN_ALL_FRAMEWORKS UINT64_MAX

#endif
