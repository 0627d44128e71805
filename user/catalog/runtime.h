/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device runtime has one descriptor: what its calls are named and do, and how its devices are
 * observed. Its probes are the rows of its struct catalog_framework (catalog.h), which points to
 * the descriptor. Code outside of the catalog uses these tables and names no vendor.
 */
#ifndef KPROF_CATALOG_RUNTIME_H
#define KPROF_CATALOG_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "catalog/activity.h"
#include "kprof/agent.h"

/*
 * What a call means for the device, as far as its name says: enough to estimate when the device
 * worked where no tool interface reports it, and to know what the host waits for.
 */
enum device_role {
	DEVICE_ROLE_NONE,
	DEVICE_ROLE_LAUNCH,   /* queues kernels */
	DEVICE_ROLE_COPY,     /* queues a copy */
	DEVICE_ROLE_SET,      /* queues setting memory to a value */
	DEVICE_ROLE_ALLOCATE, /* allocates memory of a device, or of the host for use by a device */
	DEVICE_ROLE_COPY_AND_WAIT,
	DEVICE_ROLE_RECORD,      /* records an event, which marks a place in a stream */
	DEVICE_ROLE_WAIT_STREAM, /* returns when the stream has done its work */
	DEVICE_ROLE_WAIT_EVENT,  /* returns when the stream has reached the event */
	DEVICE_ROLE_WAIT_DEVICE, /* returns when all streams have done their work */
};

struct catalog_role {
	const char *calls; /* globs on names without suffixes, separated by blanks */
	enum device_role role;
};

/* The environment variable that makes a process load the agent when it is started by kprof. */
struct catalog_environment {
	const char *name; /* the variable, which the runtime reads; NULL: there is none */
	/*
	 * true: a list separated by colons, to which the agent is appended; false: the variable is
	 * set only if it is not set yet
	 */
	bool is_list;
	bool waits; /* the runtime's first use waits until kprof is ready to read from the agent */
};

struct catalog_runtime {
	const char *name;  /* "cuda": in `kprof list`, and in the capture's metadata */
	const char *title; /* "CUDA": in messages */
	/*
	 * NULL-terminated globs on the base names of libraries; what the last "*" matches is shown
	 * as the version.
	 */
	const char *const *libraries;
	/* globs on the names of its calls; no other runtime's calls match them */
	const char *calls;
	/*
	 * Ends of the names of a call's variants, separated by blanks; "#" is a number, each further
	 * "#" a digit that it has at least. NULL: none.
	 */
	const char *suffixes;
	/* The same: ends of names in the agent's reports that are not shown. */
	const char *unshown_suffixes;
	/* the first match counts; a NULL .calls ends the table; NULL: no roles */
	const struct catalog_role *roles;
	/* enum activity_set: the sets of the devices that this is the runtime of */
	unsigned int sets;

	/* ---- for a runtime with a module in the agent (gpu/); all 0 without one ---- */
	/* ACTIVITY_BIT()s of the types of device work that the module reports */
	uint64_t activities;
	enum kprof_agent_runtime module;
	/* the module reports each kernel's registers and shared memory, even if 0 */
	bool launch_details;
	struct catalog_environment environment;
	/* globs on libraries; when one is mapped, the process has begun to use the runtime */
	const char *used;
	/* the agent can also be injected into a process that already uses the runtime */
	bool injectable;
	/* a forked child cannot use the runtime if its parent has begun to use it */
	bool not_after_fork;
	/* by enum kprof_agent_reason: what the user can do about it; NULL: no way is known */
	const char *hints[KPROF_AGENT_REASONS];
};

/* The i-th runtime, for iterating; NULL past the end. */
const struct catalog_runtime *catalog_runtime_at(size_t i);
/* The runtime that this module of the agent observes; NULL: unknown to this version of kprof. */
const struct catalog_runtime *catalog_runtime_of_module(uint32_t module);
/* The runtime that has a call of this name; NULL: none known. */
const struct catalog_runtime *catalog_runtime_of_call(const char *call);
/* The role of a call by its name, with or without suffixes. */
enum device_role device_role_of(const char *call);
/* Whether a call with this role returns only when the device has done something. */
bool device_role_waits(enum device_role role);
/*
 * The length of a name without its suffixes, of which there may be several. suffixes: as in struct
 * catalog_runtime.
 */
size_t catalog_stem(const char *suffixes, const char *name);
/* The same with the suffixes of the runtime that has this call. */
size_t catalog_call_stem(const char *call);
/* The same with those that are not shown, for a call's name as the agent reports it. */
size_t catalog_shown_bytes(const char *call);

#endif
