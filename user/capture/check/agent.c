// SPDX-License-Identifier: BSD-2-Clause
/*
 * `kprof check`: can the agent, which records what a GPU did, be used on this machine and in a
 * process?
 */
#include <stdio.h>
#include <stdlib.h>

#include "capture/agent/agent.h"
#include "capture/check/check.h"
#include "capture/features/features.h"
#include "capture/inject/inject.h"
#include "catalog/catalog.h"
#include "catalog/runtime.h"
#include "util/error.h"

#define YAMA "/proc/sys/kernel/yama/ptrace_scope"
/* not even root may trace, until the next boot (Documentation/admin-guide/LSM/Yama.rst) */
#define YAMA_NEVER 3

void check_agent_machine(struct check *c)
{
	char *library = agent_library__find(NULL);

	check_say(c, library ? KPROF_CHECK_OK : KPROF_CHECK_MISSING, "agent",
		  library ? NULL
			  : "without it a GPU's calls are seen, its kernels and copies are not: "
			    "make install puts both where they find each other",
		  "%s", library ? library : KPROF_AGENT_LIBRARY " is not beside kprof");
	free(library);
	if (features_read_int(YAMA, -1) == YAMA_NEVER)
		check_say(
			c, KPROF_CHECK_MISSING, "injection", "`kprof run` needs no injection",
			"kernel.yama.ptrace_scope is 3: no process may be traced until the next boot");
}

static bool maps_any(const struct proc_maps *maps, const char *globs)
{
	for (size_t i = 0; i < proc_maps__nr(maps); i++)
		if (catalog_match(globs, proc_basename(proc_maps__at(maps, i)->path)))
			return true;
	return false;
}

/*
 * A runtime of the process for which kprof injects an agent: preferably one that is in use (*used),
 * else one that is only mapped; NULL: none.
 */
static const struct catalog_runtime *injectable_runtime(const struct proc_maps *maps, bool *used)
{
	const struct catalog_runtime *rt, *mapped = NULL;

	*used = true;
	for (size_t i = 0; (rt = catalog_runtime_at(i)); i++) {
		if (!rt->injectable)
			continue;
		if (maps_any(maps, rt->used))
			return rt;
		for (const char *const *glob = rt->libraries; *glob && !mapped; glob++)
			if (maps_any(maps, *glob))
				mapped = rt;
	}
	*used = false;
	return mapped;
}

void check_agent_process(struct check *c, pid_t pid, const struct proc_maps *maps)
{
	const struct catalog_runtime *rt;
	char hint[512];
	bool is_loaded, used;

	rt = injectable_runtime(maps, &used);
	if (!rt || c->stopped)
		return;
	if (!used) {
		check_say(c, KPROF_CHECK_NOTE, "agent", NULL,
			  "not needed unless the process begins to use %s", rt->title);
	} else if (inject_check(pid, &is_loaded)) {
		/* A copy: the caller's function may use the library, which keeps one error. */
		snprintf(hint, sizeof(hint), "%s", kprof_error_hint() ? kprof_error_hint() : "");
		check_say(c, KPROF_CHECK_MISSING, "agent", *hint ? hint : NULL,
			  "cannot be put into the process: %s", kprof_error_cause());
	} else {
		check_say(c, KPROF_CHECK_OK, "agent", NULL, "%s",
			  is_loaded ? "has been loaded; it would be started again"
				    : "would be put into the process, for the GPU's activities");
	}
	if (!c->stopped)
		error_clear();
}
