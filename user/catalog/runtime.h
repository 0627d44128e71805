/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device runtime is one descriptor: what its calls are named and do, and how its devices are
 * observed. Its probes are the rows of its struct catalog_framework (catalog.h), which points here.
 * Code outside the catalog asks these tables and names no vendor.
 */
#ifndef KPROF_CATALOG_RUNTIME_H
#define KPROF_CATALOG_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "catalog/activity.h"
#include "kprof/agent.h"

/*
 * What a call means for the device, as far as can be told from outside: enough to bracket work that
 * no tool interface reports, and to know what the host waits for.
 */
enum device_role {
	DEVICE_ROLE_NONE,
	DEVICE_ROLE_LAUNCH,   /* queues kernels, … */
	DEVICE_ROLE_COPY,     /* … a copy, … */
	DEVICE_ROLE_SET,      /* … a set of memory to a value */
	DEVICE_ROLE_ALLOCATE, /* obtains memory of a device, or of the host for a device's use */
	DEVICE_ROLE_COPY_AND_WAIT,
	DEVICE_ROLE_RECORD,      /* marks a place in a stream by an event */
	DEVICE_ROLE_WAIT_STREAM, /* returns once the stream has done its work, … */
	DEVICE_ROLE_WAIT_EVENT,  /* … has come to the event, … */
	DEVICE_ROLE_WAIT_DEVICE, /* … all streams have done theirs */
};

struct catalog_role {
	const char *calls; /* globs on names without suffixes, separated by blanks */
	enum device_role role;
};

/* How a process that kprof starts is made to load the agent by itself. */
struct catalog_environment {
	const char *name; /* variable that the runtime reads; NULL: there is none */
	/* libraries separated by colons: ours is appended; else it is set only where it is not */
	bool is_list;
	bool waits; /* the runtime's first use waits until kprof listens to the agent */
};

struct catalog_runtime {
	const char *name;  /* "cuda": in `kprof list`, and in the capture's metadata */
	const char *title; /* "CUDA": in messages */
	/* NULL-terminated globs on libraries; what the last "*" matches is shown as the version. */
	const char *const *libraries;
	const char *calls; /* globs on the names of its calls, which are no other runtime's */
	/* Ends that variants of a call have, separated by blanks; "#" is a number. NULL: none. */
	const char *suffixes;
	const struct catalog_role *roles; /* the first match counts; .calls NULL ends; NULL: none */
	unsigned int sets; /* enum activity_set: of whose devices it is the runtime */

	/* ---- with a module of the agent (gpu/), all 0 without one ---- */
	uint64_t activities; /* ACTIVITY_BIT()s of the device's types that the module reports */
	enum kprof_agent_runtime module;
	/* the module reports each kernel's registers and shared memory, also when 0 */
	bool launch_details;
	struct catalog_environment environment;
	/* globs on libraries: mapped means that the process has begun to use it */
	const char *used;
	/* the agent can also be put into a process that uses the runtime already */
	bool injectable;
	bool not_after_fork; /* a child process cannot use what its parent had begun to use */
	/* what to do about an enum kprof_agent_reason; NULL: nothing is known to help */
	const char *hints[KPROF_AGENT_REASONS];
};

/* The i-th runtime; NULL past the end. */
const struct catalog_runtime *catalog_runtime_at(size_t i);
/* Whose module of the agent this is; NULL: unknown to this kprof. */
const struct catalog_runtime *catalog_runtime_of_module(uint32_t module);
/* Whose call has this name; NULL: none known. */
const struct catalog_runtime *catalog_runtime_of_call(const char *call);
/* Of a call's name, with or without suffixes. */
enum device_role device_role_of(const char *call);
/* The call returns only when the device has done something. */
bool device_role_waits(enum device_role role);
/*
 * The length of a name without its suffixes (as struct catalog_runtime's), of which there may be
 * several.
 */
size_t catalog_stem(const char *suffixes, const char *name);
/* The same for a call of whatever runtime. */
size_t catalog_call_stem(const char *call);

#endif
