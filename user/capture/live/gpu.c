// SPDX-License-Identifier: BSD-2-Clause
/*
 * How busy GPUs were for each process, as NVIDIA's management library (NVML) counts it. The library
 * is opened only where it is installed. What is relied on, of NVIDIA's public nvml.h: the five
 * functions below, which the _v2 ones of 2012 and later have not changed, their results, and the
 * struct of a process's utilization.
 */
#include <dlfcn.h>
#include <stdlib.h>

#include "capture/live/impl.h"
#include "util/util.h"

#define LIBRARY "libnvidia-ml.so.1"
#define MOST_DEVICES 64
#define MOST_SAMPLES 65536

enum { NVML_SUCCESS = 0, NVML_ERROR_INSUFFICIENT_SIZE = 7 };

typedef struct nvml_device *nvml_device;

struct nvml_process_sample { /* nvmlProcessUtilizationSample_t */
	unsigned int pid;
	unsigned long long time_us;
	unsigned int sm, memory, encoder, decoder; /* percent */
};
_Static_assert(sizeof(struct nvml_process_sample) == 32, "as in nvml.h");

struct nvml {
	int (*init)(void);
	int (*shutdown)(void);
	int (*count)(unsigned int *out);
	int (*handle)(unsigned int index, nvml_device *out);
	int (*processes)(nvml_device device, struct nvml_process_sample *out, unsigned int *nr,
			 unsigned long long since_us);
};

/* Of one process and device since the look before. */
struct gpu_use {
	pid_t pid;
	unsigned int device;
	uint64_t percent;
	unsigned int samples;
};

struct top_gpu {
	void *library;
	struct nvml nvml;
	unsigned int nr_devices;
	struct {
		nvml_device handle;
		unsigned long long seen_us;
	} devices[MOST_DEVICES];
	struct nvml_process_sample *samples;
	unsigned int cap;
	struct vec uses; /* struct gpu_use */
};

static bool find(void *library, const char *name, void **to)
{
	*to = dlsym(library, name);
	return *to;
}

static bool load(struct top_gpu *g)
{
	struct nvml *n = &g->nvml;

	g->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	return g->library && find(g->library, "nvmlInit_v2", (void **)&n->init) &&
	       find(g->library, "nvmlShutdown", (void **)&n->shutdown) &&
	       find(g->library, "nvmlDeviceGetCount_v2", (void **)&n->count) &&
	       find(g->library, "nvmlDeviceGetHandleByIndex_v2", (void **)&n->handle) &&
	       find(g->library, "nvmlDeviceGetProcessUtilization", (void **)&n->processes);
}

struct top_gpu *top_gpu__new(void)
{
	struct top_gpu *g = calloc(1, sizeof(*g));
	unsigned int nr;

	if (!g)
		return NULL;
	if (!load(g) || g->nvml.init()) {
		if (g->library)
			dlclose(g->library);
		free(g);
		return NULL;
	}
	if (g->nvml.count(&nr))
		nr = 0;
	for (unsigned int i = 0; i < nr && g->nr_devices < MOST_DEVICES; i++)
		if (!g->nvml.handle(i, &g->devices[g->nr_devices].handle))
			g->nr_devices++;
	if (g->nr_devices)
		return g;
	top_gpu__free(g);
	return NULL;
}

static void add(struct top_gpu *g, unsigned int device, const struct nvml_process_sample *s)
{
	struct gpu_use *use, *all = g->uses.data;
	size_t i = 0;

	while (i < g->uses.nr && (all[i].pid != (pid_t)s->pid || all[i].device != device))
		i++;
	use = i < g->uses.nr ? &all[i] : vec_push(&g->uses, sizeof(*use));
	if (!use)
		return;
	use->pid = (pid_t)s->pid;
	use->device = device;
	use->percent += s->sm <= 100 ? s->sm : 100;
	use->samples++;
}

/* Asks again with more room where the library says that it needs some. */
static unsigned int ask(struct top_gpu *g, unsigned int device)
{
	for (int tries = 0; tries < 3; tries++) {
		unsigned int nr = g->cap;
		int result = g->nvml.processes(g->devices[device].handle, g->samples, &nr,
					       g->devices[device].seen_us);
		struct nvml_process_sample *more;

		if (result == NVML_SUCCESS && g->samples)
			return nr < g->cap ? nr : g->cap;
		if ((result != NVML_SUCCESS && result != NVML_ERROR_INSUFFICIENT_SIZE) || !nr ||
		    nr > MOST_SAMPLES)
			return 0;
		more = reallocarray(g->samples, nr, sizeof(*more));
		if (!more)
			return 0;
		g->samples = more;
		g->cap = nr;
	}
	return 0;
}

void top_gpu__look(struct top_gpu *g)
{
	g->uses.nr = 0;
	for (unsigned int device = 0; device < g->nr_devices; device++) {
		unsigned long long seen_us = g->devices[device].seen_us;
		unsigned int nr = ask(g, device);

		for (unsigned int i = 0; i < nr; i++) {
			const struct nvml_process_sample *s = &g->samples[i];

			if (s->time_us <= seen_us || !s->pid)
				continue;
			add(g, device, s);
			if (s->time_us > g->devices[device].seen_us)
				g->devices[device].seen_us = s->time_us;
		}
	}
}

double top_gpu__share(const struct top_gpu *g, pid_t pid)
{
	const struct gpu_use *all = g->uses.data;
	double share = 0;

	for (size_t i = 0; i < g->uses.nr; i++)
		if (all[i].pid == pid)
			share += (double)all[i].percent / all[i].samples / 100;
	return share;
}

void top_gpu__free(struct top_gpu *g)
{
	if (!g)
		return;
	g->nvml.shutdown();
	dlclose(g->library);
	free(g->samples);
	free(g->uses.data);
	free(g);
}
