// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes the corpus of fuzz_agent: a batch of each kind of record, as an agent would hand it over.
 */
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kprof/activity.h"
#include "kprof/agent.h"

static uint8_t out[KPROF_WIRE_BATCH_BYTES + 2];
static size_t used;

static void add(const void *record, size_t bytes)
{
	memcpy(out + 2 + used, record, bytes);
	used += bytes;
}

static int save(const char *dir, const char *name)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	out[0] = (uint8_t)used;
	out[1] = (uint8_t)(used >> 8);
	if (fd < 0 || write(fd, out, used + 2) != (ssize_t)(used + 2) || close(fd)) {
		perror(path);
		return 1;
	}
	used = 0;
	return 0;
}

#define HEAD(struct_, kind_) ((struct kprof_agent_head){(kind_), sizeof(struct_), 1})
#define RECORD(struct_, kind_) ((struct_){.h = HEAD(struct_, kind_)})

static struct kprof_agent_activity work(struct kprof_agent_head h, uint16_t type)
{
	return (struct kprof_agent_activity){
		.h = h, .start_ns = 10, .end_ns = 20, .correlation = 5, .type = type};
}

int main(int argc, char **argv)
{
	struct kprof_agent_kernel kernel = {
		.a = work(HEAD(struct kprof_agent_kernel, KPROF_AGENT_KERNEL),
			  KPROF_ACTIVITY_KERNEL)};
	struct kprof_agent_copy copy = {.a = work(HEAD(struct kprof_agent_copy, KPROF_AGENT_COPY),
						  KPROF_ACTIVITY_GPU_MEMCPY)};
	struct kprof_agent_sync sync = {.a = work(HEAD(struct kprof_agent_sync, KPROF_AGENT_SYNC),
						  KPROF_ACTIVITY_CUDA_SYNC)};
	struct kprof_agent_api api = RECORD(struct kprof_agent_api, KPROF_AGENT_API);
	struct kprof_agent_device device = RECORD(struct kprof_agent_device, KPROF_AGENT_DEVICE);
	struct kprof_agent_context context =
		RECORD(struct kprof_agent_context, KPROF_AGENT_CONTEXT);
	struct kprof_agent_clock_pair pair =
		RECORD(struct kprof_agent_clock_pair, KPROF_AGENT_CLOCK);
	struct kprof_agent_event event = RECORD(struct kprof_agent_event, KPROF_AGENT_EVENT);
	struct {
		struct kprof_agent_name n;
		char text[12];
	} name = {.n = {.h = {KPROF_AGENT_NAME, 24, 1}, .bytes = 9}};

	if (argc != 2)
		return 2;
	memcpy((char *)&name + offsetof(struct kprof_agent_name, text), "_Z3addPfi", 9);
	add(&name, 24);
	add(&kernel, sizeof(kernel));
	add(&copy, sizeof(copy));
	if (save(argv[1], "work"))
		return 1;
	api.start_ns = 5, api.end_ns = 15, api.type = KPROF_ACTIVITY_CUDA_RUNTIME;
	add(&name, 24);
	add(&event, sizeof(event));
	add(&sync, sizeof(sync));
	add(&api, sizeof(api));
	if (save(argv[1], "calls"))
		return 1;
	add(&name, 24);
	add(&device, sizeof(device));
	add(&context, sizeof(context));
	add(&pair, sizeof(pair));
	pair.mono_ns = 1000, pair.device_ns = 1001;
	add(&pair, sizeof(pair));
	return save(argv[1], "tables");
}
