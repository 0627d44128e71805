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

#include "capture/agent/agent.h"
#include "util/error.h"
#include "util/util.h"

/*
 * CUDA's driver loads the library named here at its first use (CUPTI's documentation, "CUPTI
 * initialization").
 */
#define CUDA_DOOR "CUDA_INJECTION64_PATH"
/*
 * The OpenCL loader puts the libraries listed here, separated by colons, in front of every call
 * (cl_loader_layers).
 */
#define OPENCL_DOOR "OPENCL_LAYERS"

/* See gpu/agent.c: for how long a process waits to be recorded, and for whom. */
#define WAIT "KPROF_AGENT_WAIT_MS"
#define WAIT_FOR "KPROF_AGENT_WAIT_PID"

/* dir/sub/libkprof_agent.so with links resolved, when it is there. */
static char *candidate(const char *dir, const char *sub)
{
	char *path = xasprintf("%s/%s" KPROF_AGENT_LIBRARY, dir, sub);
	char *real = path && !access(path, R_OK) ? realpath(path, NULL) : NULL;

	free(path);
	return real;
}

/*
 * Beside the file, as it is built; or where `make install` puts it, seen from bin/ and from lib/.
 */
static char *near(const char *file)
{
	static const char *const subs[] = {"", "kprof/", "../lib/kprof/"};
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
	/* libkprof.so in another program. */
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

void agent_library__warn_environment(const char *library)
{
	const char *there = getenv(CUDA_DOOR);

	if (there && *there && strcmp(there, library))
		log_warn("unset it, and the agent comes in by that door",
			 CUDA_DOOR " is %s and stays so: the agent is injected when CUDA is used",
			 there);
}

bool agent_library__in_environment(uint32_t pid)
{
	char path[64];
	bool found = false;
	char *block;
	size_t bytes;

	snprintf(path, sizeof(path), "/proc/%u/environ", pid);
	if (read_file(path, 1 << 20, &block, &bytes))
		return false;
	for (const char *p = block; p < block + bytes && !found; p += strlen(p) + 1)
		found = !strncmp(p, CUDA_DOOR "=", strlen(CUDA_DOOR "=")) &&
			!strcmp(proc_basename(p), KPROF_AGENT_LIBRARY);
	free(block);
	return found;
}

void agent_library__set_environment(const char *library)
{
	const char *there = getenv(CUDA_DOOR), *layers = getenv(OPENCL_DOOR);
	char *both, number[16];

	if (!there || !*there) {
		setenv(CUDA_DOOR, library, 1);
		snprintf(number, sizeof(number), "%d", AGENT_DOOR_WAIT_MS);
		setenv(WAIT, number, 0);
		snprintf(number, sizeof(number), "%d", (int)getppid());
		setenv(WAIT_FOR, number, 1);
	}
	if (has(layers, library))
		return;
	both = layers && *layers ? xasprintf("%s:%s", layers, library) : strdup(library);
	if (both)
		setenv(OPENCL_DOOR, both, 1);
	free(both);
}
