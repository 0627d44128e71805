// SPDX-License-Identifier: BSD-2-Clause
/*
 * `kprof check`: can the agent, which records what a GPU did, be used on this machine and in a
 * process?
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/agent/agent.h"
#include "capture/check/check.h"
#include "capture/inject/inject.h"
#include "catalog/catalog.h"
#include "catalog/runtime.h"
#include "util/error.h"
#include "util/util.h"

#define YAMA "/proc/sys/kernel/yama/ptrace_scope"
/* not even root may trace, until the next boot (Documentation/admin-guide/LSM/Yama.rst) */
#define YAMA_NEVER 3

/* The number in the file; -1: it cannot be read. */
static int read_number(const char *path)
{
	FILE *file = fopen(path, "re");
	int value;

	if (!file)
		return -1;
	if (fscanf(file, "%d", &value) != 1)
		value = -1;
	fclose(file);
	return value;
}

int check_agent_machine(kprof_check_fn fn, void *ctx)
{
	char *library = agent_library__find(NULL);
	struct kprof_check_line lib = {
		.state = library ? KPROF_CHECK_OK : KPROF_CHECK_MISSING,
		.name = "agent",
		.detail = library ? library : KPROF_AGENT_LIBRARY " is not beside kprof",
		.hint = library ? NULL
				: "without it a GPU's calls are seen, its kernels and copies are not: "
				  "make install puts both where they find each other",
	};
	struct kprof_check_line yama = {
		.state = KPROF_CHECK_MISSING,
		.name = "injection",
		.detail =
			"kernel.yama.ptrace_scope is 3: no process may be traced until the next boot",
		.hint = "`kprof run` needs no injection",
	};
	int stop = fn(ctx, &lib);

	free(library);
	if (!stop && read_number(YAMA) == YAMA_NEVER)
		stop = fn(ctx, &yama);
	return stop;
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

int check_agent_process(pid_t pid, const struct proc_maps *maps, kprof_check_fn fn, void *ctx)
{
	struct kprof_check_line line = {.name = "agent"};
	const struct catalog_runtime *rt;
	char detail[512], hint[512];
	bool is_loaded, used;
	int err;

	rt = injectable_runtime(maps, &used);
	if (!rt)
		return 0;
	if (!used) {
		snprintf(detail, sizeof(detail), "not needed unless the process begins to use %s",
			 rt->title);
		line.state = KPROF_CHECK_NOTE;
		line.detail = detail;
		return fn(ctx, &line);
	}
	err = inject_check(pid, &is_loaded);
	if (!err) {
		line.state = KPROF_CHECK_OK;
		line.detail = is_loaded ? "has been loaded; it would be started again"
					: "would be put into the process, for the GPU's activities";
		return fn(ctx, &line);
	}
	snprintf(detail, sizeof(detail), "cannot be put into the process: %s", kprof_error_cause());
	snprintf(hint, sizeof(hint), "%s", kprof_error_hint() ? kprof_error_hint() : "");
	error_clear();
	line.state = KPROF_CHECK_MISSING;
	line.detail = detail;
	line.hint = *hint ? hint : NULL;
	return fn(ctx, &line);
}
