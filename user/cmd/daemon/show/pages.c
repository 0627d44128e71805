// SPDX-License-Identifier: BSD-2-Clause
/* The JSON that the page is made of; docs/web.md has its members. */
#include <cjson/cJSON.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/daemon/show/serve.h"
#include "cmd/print/json_get.h"

#define MOST_DUMPS 100

static void add_machine(cJSON *o)
{
	unsigned long long total = 0, available = 0;
	char name[HOST_NAME_MAX + 1] = "", line[128];
	FILE *f = fopen("/proc/meminfo", "re");

	gethostname(name, sizeof(name) - 1);
	cJSON_AddStringToObject(o, "host", name);
	cJSON_AddNumberToObject(o, "cpus", (double)sysconf(_SC_NPROCESSORS_ONLN));
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "MemTotal: %llu", &total) != 1)
			sscanf(line, "MemAvailable: %llu", &available);
	}
	if (f)
		fclose(f);
	if (!total || available > total)
		return;
	cJSON_AddNumberToObject(o, "memory_bytes", (double)total * 1024);
	cJSON_AddNumberToObject(o, "memory_used_bytes", (double)(total - available) * 1024);
}

/* "123, 456 …" */
static void add_pids(cJSON *o, const char *key, const cJSON *pids)
{
	char text[128] = "";
	size_t at = 0;
	const cJSON *pid;

	cJSON_ArrayForEach(pid, pids)
	{
		if (at + 24 > sizeof(text)) {
			snprintf(text + at, sizeof(text) - at, " …");
			break;
		}
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%d", at ? ", " : "",
				       pid->valueint);
	}
	cJSON_AddStringToObject(o, key, text);
}

static cJSON *recordings(struct daemon *d)
{
	cJSON *list = cJSON_CreateArray();
	struct recording *r = NULL;
	char by[32];

	while ((r = recordings__next(d->recordings, r))) {
		cJSON *from, *o;

		if (recording__state(r) >= RECORDING_DONE)
			continue;
		from = recording__describe(r);
		o = cJSON_CreateObject();
		cJSON_AddStringToObject(o, "id", recording__id(r));
		cJSON_AddStringToObject(o, "state", recording_state_name(recording__state(r)));
		add_pids(o, "processes", cJSON_GetObjectItemCaseSensitive(from, "pids"));
		/* not by name: whoever knows the names of users may take long to say them */
		snprintf(by, sizeof(by), recording__uid(r) ? "user %u" : "root", recording__uid(r));
		cJSON_AddStringToObject(o, "by", by);
		cJSON_AddNumberToObject(o, "since_unix", json_number(from, "begun_ms") / 1000);
		cJSON_AddItemToArray(list, o);
		cJSON_Delete(from);
	}
	return list;
}

/* What is given up, for people. */
static void add_shed(cJSON *o, const struct daemon *d)
{
	const struct keeper *keepers[] = {d->sampler, d->flight};
	static const char *const names[] = {"samples", "flight recorder"};
	char text[128] = "";
	size_t at = 0;

	for (int i = 0; i < 2; i++) {
		const cJSON *stats = keepers[i] ? keeper__stats(keepers[i]) : NULL;

		if (!(json_number(stats, "given_up") > 0))
			continue;
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s: %.0f steps",
				       at ? ", " : "", names[i], json_number(stats, "given_up"));
		if (!i)
			at += (size_t)snprintf(text + at, sizeof(text) - at, ", %.1f a second",
					       json_number(stats, "sample_hz"));
	}
	if (at)
		cJSON_AddStringToObject(o, "shed", text);
}

cJSON *pages_status(struct daemon *d, const struct pages_numbers *n)
{
	cJSON *o = cJSON_CreateObject(), *flame;
	const char *slash;

	add_machine(o);
	cJSON_AddStringToObject(o, "version", kprof_version());
	cJSON_AddNumberToObject(o, "uptime_s",
				(double)(now_ns(CLOCK_MONOTONIC) - d->begun_ns) / 1e9);
	if (n->cpu >= 0)
		cJSON_AddNumberToObject(o, "cpu_ratio", n->cpu);
	if (n->gpu >= 0)
		cJSON_AddNumberToObject(o, "gpu_busy_ratio", n->gpu);
	if (n->nr)
		cJSON_AddNumberToObject(o, "overhead_ratio", n->history[n->nr - 1]);
	cJSON_AddNumberToObject(o, "overhead_max_ratio", d->opts->overhead);
	cJSON_AddItemToObject(o, "history", cJSON_CreateDoubleArray(n->history, (int)n->nr));
	cJSON_AddNumberToObject(o, "history_step_s", 1);
	add_shed(o, d);
	cJSON_AddNumberToObject(o, "own_memory_bytes", (double)n->memory);
	cJSON_AddNumberToObject(o, "own_memory_max_bytes", (double)d->opts->max_memory);
	cJSON_AddItemToObject(o, "recordings", recordings(d));
	if (!n->flame)
		return o;
	slash = strrchr(n->flame->path, '/');
	flame = cJSON_AddObjectToObject(o, "flame");
	cJSON_AddStringToObject(flame, "id", slash ? slash + 1 : n->flame->path);
	cJSON_AddNumberToObject(flame, "from_unix", (double)n->flame->from_ms / 1000);
	cJSON_AddNumberToObject(flame, "to_unix", (double)n->flame->to_ms / 1000);
	cJSON_AddNumberToObject(flame, "samples", (double)n->flame->samples);
	return o;
}

cJSON *pages_dumps(struct daemon *d)
{
	cJSON *o = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(o, "dumps");
	struct recording *r = NULL;

	while ((r = recordings__next(d->recordings, r)) && cJSON_GetArraySize(list) < MOST_DUMPS) {
		cJSON *from, *to;
		const char *why;
		struct stat st;
		int fd;

		if (recording__state(r) != RECORDING_DONE)
			continue;
		fd = recording__open(r, 0);
		if (fd < 0)
			continue;
		fstat(fd, &st);
		close(fd);
		from = recording__describe(r);
		why = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(from, "why"));
		to = cJSON_CreateObject();
		cJSON_AddStringToObject(to, "name", recording__id(r));
		cJSON_AddNumberToObject(to, "time_unix", json_number(from, "ended_ms") / 1000);
		cJSON_AddNumberToObject(to, "bytes", (double)st.st_size);
		cJSON_AddStringToObject(to, "trigger", why ? why : "asked for");
		add_pids(to, "process", cJSON_GetObjectItemCaseSensitive(from, "pids"));
		cJSON_AddItemToArray(list, to);
		cJSON_Delete(from);
	}
	return o;
}
