// SPDX-License-Identifier: BSD-2-Clause
/*
 * Where libkprof_agent.so is, and the environment that makes device runtimes load it by themselves.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/agent/impl.h"
#include "catalog/runtime.h"
#include "util/error.h"
#include "util/util.h"

/* See gpu/agent.c: how long a process waits to be recorded, and by which kprof. */
#define WAIT "KPROF_AGENT_WAIT_MS"
#define WAIT_FOR "KPROF_AGENT_WAIT_PID"

/*
 * The path dir/sub/libkprof_agent.so with links resolved, malloc'ed; NULL: there is no such file.
 */
static char *candidate(const char *dir, const char *sub)
{
	char *path = xasprintf("%s/%s" KPROF_AGENT_LIBRARY, dir, sub);
	char *real = path && !access(path, R_OK) ? realpath(path, NULL) : NULL;

	free(path);
	return real;
}

/*
 * Looks for the library beside this file, where it is built, and where `make install` puts it
 * relative to bin/, to lib/, and to a folder of one architecture in that (lib/x86_64-linux-gnu/).
 */
static char *near(const char *file)
{
	static const char *const subs[] = {"", "kprof/", "../lib/kprof/", "../kprof/"};
	char dir[PATH_MAX];
	char *slash, *found = NULL;

	if (snprintf(dir, sizeof(dir), "%s", file) >= (int)sizeof(dir))
		return NULL;
	slash = strrchr(dir, '/');
	if (!slash)
		return NULL;
	*slash = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(subs) && !found; i++)
		found = candidate(dir, subs[i]);
	return found;
}

char *agent_library__find(const char *asked)
{
	char exe[PATH_MAX], *found = NULL;
	Dl_info info;
	ssize_t n;

	if (asked)
		return realpath(asked, NULL);
	n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	if (n > 0) {
		exe[n] = '\0';
		found = near(exe);
	}
	/* The caller may be libkprof.so in another program. */
	if (!found && dladdr((void *)(uintptr_t)agent_library__find, &info) && info.dli_fname)
		found = near(info.dli_fname);
	return found;
}

static bool has(const char *list, const char *library)
{
	const char *at = list ? strstr(list, library) : NULL;

	return at && (at == list || at[-1] == ':') &&
	       (!at[strlen(library)] || at[strlen(library)] == ':');
}

/*
 * The next runtime, from number *i on, whose devices are to be recorded and that loads an agent by
 * an environment variable; NULL: none.
 */
static const struct catalog_runtime *next_wanted(const struct agents *a, size_t *i)
{
	const struct catalog_runtime *rt;

	while (a->library && (rt = catalog_runtime_at((*i)++)))
		if (rt->environment.name && a->modules & 1u << rt->module)
			return rt;
	return NULL;
}

void agents__warn_environment(const struct agents *a)
{
	const struct catalog_runtime *rt;

	for (size_t i = 0; (rt = next_wanted(a, &i));) {
		const char *there = getenv(rt->environment.name);

		if (!rt->environment.is_list && there && *there && strcmp(there, a->library))
			log_warn("unset it, and the runtime loads the agent itself",
				 "%s is %s and stays so: the agent is injected when %s is used",
				 rt->environment.name, there, rt->title);
	}
}

bool agent_library__in_environment(uint32_t pid, const struct catalog_runtime *rt)
{
	const struct catalog_environment *env = &rt->environment;
	char *value = env->waits ? proc_environment((pid_t)pid, env->name) : NULL;
	bool found = value && !strcmp(proc_basename(value), KPROF_AGENT_LIBRARY);

	free(value);
	return found;
}

static void set_waits(void)
{
	char number[16];

	snprintf(number, sizeof(number), "%d", AGENT_DOOR_WAIT_MS);
	setenv(WAIT, number, 0);
	snprintf(number, sizeof(number), "%d", (int)getppid());
	setenv(WAIT_FOR, number, 1);
}

static void append(const char *name, const char *library)
{
	const char *there = getenv(name);
	char *both;

	if (has(there, library))
		return;
	both = there && *there ? xasprintf("%s:%s", there, library) : strdup(library);
	if (both)
		setenv(name, both, 1);
	free(both);
}

void agents__set_environment(const void *agents)
{
	const struct catalog_runtime *rt;
	const struct agents *a = agents;

	for (size_t i = 0; (rt = next_wanted(a, &i));) {
		const struct catalog_environment *env = &rt->environment;
		const char *there = getenv(env->name);

		if (env->is_list) {
			append(env->name, a->library);
			continue;
		}
		if (there && *there)
			continue;
		setenv(env->name, a->library, 1);
		if (env->waits)
			set_waits();
	}
}
