// SPDX-License-Identifier: BSD-2-Clause
/* What the daemon says of itself, and gives of what it has. */
#include <cjson/cJSON.h>
#include <time.h>
#include <unistd.h>

#include "cmd/daemon/kineto.h"
#include "cmd/daemon/pusher.h"
#include "cmd/daemon/record/windows.h"
#include "cmd/daemon/show/serve.h"
#include "cmd/daemon/watch/triggers.h"

/* Maps that the programs have from the begin, and those of unwind tables. */
static uint64_t kernel_bytes(const cJSON *stats)
{
	static const char *const keys[] = {"kernel_bytes", "unwind_bytes"};
	uint64_t sum = 0;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		double v = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(stats, keys[i]));

		sum += v > 0 ? (uint64_t)v : 0;
	}
	return sum;
}

uint64_t daemon_memory(const struct daemon *d)
{
	uint64_t cpu_ns, bytes;

	children__usage(&cpu_ns, &bytes);
	return bytes + kernel_bytes(d->sampler ? keeper__stats(d->sampler) : NULL) +
	       kernel_bytes(d->flight ? keeper__stats(d->flight) : NULL) +
	       kernel_bytes(windows__stats(d->windows));
}

cJSON *daemon_state(struct daemon *d)
{
	cJSON *o = cJSON_CreateObject();
	uint64_t cpu_ns, resident;
	double elapsed = (double)(now_ns(CLOCK_MONOTONIC) - d->begun_ns);

	children__usage(&cpu_ns, &resident);
	cJSON_AddStringToObject(o, "version", kprof_version());
	cJSON_AddNumberToObject(o, "pid", getpid());
	cJSON_AddNumberToObject(o, "begun_ms", (double)in_ms(d->begun_real_ns));
	cJSON_AddNumberToObject(o, "uptime_ns", elapsed);
	cJSON_AddNumberToObject(o, "cpu_ns", (double)cpu_ns);
	cJSON_AddNumberToObject(o, "resident_bytes", (double)resident);
	cJSON_AddNumberToObject(o, "memory_bytes", (double)daemon_memory(d));
	cJSON_AddNumberToObject(o, "max_memory_bytes", (double)d->opts->max_memory);
	cJSON_AddNumberToObject(o, "max_overhead", d->opts->overhead);
	cJSON_AddNumberToObject(o, "processes", (double)children__nr() + 1);
	cJSON_AddNumberToObject(o, "recordings", (double)recordings__running(d->recordings));
	if (keeper__goes_on(d->sampler))
		cJSON_AddItemToObject(o, "sampler", keeper__state(d->sampler));
	if (keeper__goes_on(d->flight))
		cJSON_AddItemToObject(o, "flight", keeper__state(d->flight));
	if (windows__go_on(d->windows))
		cJSON_AddItemToObject(o, "device", windows__state(d->windows));
	if (d->triggers)
		cJSON_AddItemToObject(o, "triggers", triggers__state(d->triggers));
	if (d->pusher)
		cJSON_AddItemToObject(o, "push", pusher__state(d->pusher));
	if (d->kineto)
		cJSON_AddItemToObject(o, "kineto", kineto__state(d->kineto));
	if (d->serve)
		cJSON_AddItemToObject(o, "web", serve__state(d->serve));
	return o;
}

int daemon_dump(struct daemon *d, struct demand_job *job, struct recording **out)
{
	job->start = true;
	job->dump_folder = keeper__folder(d->flight);
	return recordings__begin(d->recordings, job, out);
}
