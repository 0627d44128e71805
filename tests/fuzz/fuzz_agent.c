// SPDX-License-Identifier: BSD-2-Clause
/*
 * Batches of an agent that says anything at all. The input is a sequence of batches, each with its
 * length in front; what is written must be a capture that reads back whole.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/agent/records.h"
#include "kprof/agent.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int thread(void *ctx, uint32_t tid, uint64_t time_ns, uint32_t *index)
{
	*index = tid & 1;
	return tid & 2 ? -ESRCH : 0;
}

/* What is told of a thread is all there. */
static int spans(void *ctx, uint32_t tid, uint32_t depth, const struct agent_span *s, size_t nr)
{
	size_t bytes = 0;

	for (size_t i = 0; i < nr; i++)
		if (s[i].kind == AGENT_SPAN_BEGIN)
			bytes += strlen(s[i].text);
	return bytes > nr * KPROF_WIRE_BATCH_BYTES ? -EINVAL : 0;
}

static struct store_writer *writer(const char *path)
{
	struct store_record th = {.type = STORE_THREAD};
	struct store_writer *w;

	if (store_writer__open(path, NULL, &w))
		abort();
	for (; th.thread.index < 2; th.thread.index++)
		if (store_writer__put(w, &th))
			abort();
	return w;
}

static void read_back(const char *path)
{
	struct store_reader_info info;
	struct store_reader *reader;
	struct store_record r;
	int n;

	if (store_reader__open(path, &reader))
		abort();
	do
		n = store_reader__next(reader, &r);
	while (n == 1);
	store_reader__info(reader, &info);
	if (n || !info.complete || info.lost_bytes)
		abort();
	store_reader__close(reader);
}

/* One batch as the kernel would have cut it: at most so many bytes. */
static size_t next_batch(const uint8_t *data, size_t size, size_t *used)
{
	size_t bytes;

	if (size < 2)
		return *used = size, 0;
	bytes = (size_t)data[0] | (size_t)(data[1] & 0xf) << 8;
	if (bytes > size - 2)
		bytes = size - 2;
	*used = 2 + bytes;
	return bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char path[64];
	struct agent_ticks ticks = {.before = {1, 1}, .last = {1000000, 3000000}};
	const struct agent_records_ops ops = {.thread = thread, .spans = spans, .ticks = &ticks};
	struct agent_records *records;
	struct store_writer *w;

	if (!path[0])
		snprintf(path, sizeof(path), "/dev/shm/kprof-fuzz-agent.%d", (int)getpid());
	w = writer(path);
	if (agent_records__new(w, 1, &ops, &records))
		abort();
	agent_records__window(records, 0, size & 1 ? UINT64_MAX / 2 : 0);
	while (size) {
		size_t used, bytes = next_batch(data, size, &used);
		uint8_t *copy =
			malloc(bytes ? bytes : 1); /* its end is where the sanitizer looks */

		memcpy(copy, data + used - bytes, bytes);
		if (agent_records__names(records, copy, bytes) ||
		    agent_records__batch(records, copy, bytes))
			abort();
		free(copy);
		data += used;
		size -= used;
	}
	if (agent_records__finish(records) || store_writer__finish(w, 1))
		abort();
	agent_records__free(records);
	read_back(path);
	unlink(path);
	return 0;
}
