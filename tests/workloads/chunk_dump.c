/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints records of captures as lines of JSON, as they are in the file: what a chunk of a rotated
 * recording has, without what kprof's model makes of it.
 *
 *   chunk_dump FILE…
 */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kprof.h"
#include "store/store.h"

#define MOST (1u << 20)

struct text {
	uint32_t len;
	char *bytes;
} * strings;
static struct {
	uint32_t pid, tid, name;
} * threads;
static struct store_record sources[64];

static void print(uint32_t id)
{
	for (uint32_t i = 0; id < MOST && i < strings[id].len; i++) {
		unsigned char c = (unsigned char)strings[id].bytes[i];

		if (c < ' ' || c == '"' || c == '\\' || c > '~')
			printf("\\u%04x", c);
		else
			putchar(c);
	}
}

static void of_thread(const char *path, const char *type, uint32_t thread)
{
	printf("{\"file\":\"%s\",\"type\":\"%s\",\"pid\":%u,\"tid\":%u,\"thread\":%u", path, type,
	       threads[thread].pid, threads[thread].tid, thread);
}

static void on_record(const char *path, const struct store_record *r)
{
	switch (r->type) {
	case STORE_STRING:
		strings[r->string.id % MOST].len = r->string.len;
		strings[r->string.id % MOST].bytes = strndup(r->string.bytes, r->string.len);
		break;
	case STORE_THREAD:
		threads[r->thread.index % MOST].pid = r->thread.pid;
		threads[r->thread.index % MOST].tid = r->thread.tid;
		break;
	case STORE_PROCESS:
		printf("{\"file\":\"%s\",\"type\":\"process\",\"pid\":%u,\"start_ns\":%" PRIu64
		       ",\"exit_ns\":%" PRIu64 ",\"name\":\"",
		       path, r->process.pid, r->process.start_ns, r->process.exit_ns);
		print(r->process.comm);
		printf("\"}\n");
		break;
	case STORE_SOURCE:
		sources[r->source.index % 64] = *r;
		break;
	case STORE_CLOCK:
		printf("{\"file\":\"%s\",\"type\":\"clock\",\"mono_ns\":%" PRIu64
		       ",\"real_ns\":%" PRIu64 "}\n",
		       path, r->clock.mono_ns, r->clock.real_ns);
		break;
	case STORE_FINISH:
		printf("{\"file\":\"%s\",\"type\":\"finish\",\"mono_ns\":%" PRIu64 "}\n", path,
		       r->finish.time_ns);
		break;
	case STORE_THREAD_TIME:
		of_thread(path, "time", r->thread_time.thread);
		printf(",\"start_ns\":%" PRIu64 ",\"end_ns\":%" PRIu64 ",\"on_ns\":%" PRIu64
		       ",\"runnable_ns\":%" PRIu64 ",\"blocked_ns\":%" PRIu64
		       ",\"switches\":%" PRIu64 ",\"told\":%" PRIu64 "}\n",
		       r->thread_time.start_ns, r->thread_time.end_ns, r->thread_time.on_ns,
		       r->thread_time.runnable_ns, r->thread_time.blocked_ns,
		       r->thread_time.switches, r->thread_time.told);
		break;
	case STORE_WAIT:
		of_thread(path, "wait", r->wait.thread);
		printf(",\"start_ns\":%" PRIu64 ",\"wake_ns\":%" PRIu64 ",\"end_ns\":%" PRIu64
		       ",\"flags\":%u}\n",
		       r->wait.start_ns, r->wait.wake_ns, r->wait.end_ns, r->wait.flags);
		break;
	case STORE_SAMPLE:
		of_thread(path, "sample", r->sample.thread);
		printf(",\"time_ns\":%" PRIu64 ",\"weight_ns\":%" PRIu64 "}\n", r->sample.time_ns,
		       r->sample.weight_ns);
		break;
	case STORE_GAP:
		printf("{\"file\":\"%s\",\"type\":\"gap\",\"pid\":%u,\"start_ns\":%" PRIu64
		       ",\"end_ns\":%" PRIu64 ",\"what\":\"",
		       path, r->gap.pid, r->gap.start_ns, r->gap.end_ns);
		print(r->gap.what);
		printf("\",\"reason\":\"");
		print(r->gap.reason);
		printf("\"}\n");
		break;
	case STORE_META:
		printf("{\"file\":\"%s\",\"type\":\"meta\",\"key\":\"%s\",\"value\":%s}\n", path,
		       r->meta.key, r->meta.json);
		break;
	default:
		break;
	}
}

static void dump(const char *path)
{
	struct store_reader *in;
	struct store_record r;
	struct store_reader_info info;
	int n;

	memset(sources, 0, sizeof(sources));
	if (store_reader__open(path, &in))
		errx(1, "%s: %s", path, kprof_error_cause());
	while ((n = store_reader__next(in, &r)) > 0)
		on_record(path, &r);
	for (int i = 0; i < 64; i++) {
		if (!sources[i].source.name)
			continue;
		printf("{\"file\":\"%s\",\"type\":\"source\",\"name\":\"", path);
		print(sources[i].source.name);
		printf("\",\"fired\":%" PRIu64 ",\"captured\":%" PRIu64 ",\"dropped\":%" PRIu64
		       ",\"missed\":%" PRIu64 ",\"begins\":%" PRIu64 "}\n",
		       sources[i].source.fired, sources[i].source.captured,
		       sources[i].source.dropped, sources[i].source.missed,
		       sources[i].source.begins);
	}
	store_reader__info(in, &info);
	printf("{\"file\":\"%s\",\"type\":\"end\",\"complete\":%s,\"lost_bytes\":%" PRIu64
	       ",\"error\":%d}\n",
	       path, info.complete ? "true" : "false", info.lost_bytes, n);
	store_reader__close(in);
}

int main(int argc, char **argv)
{
	strings = calloc(MOST, sizeof(*strings));
	threads = calloc(MOST, sizeof(*threads));
	if (!strings || !threads)
		err(1, "calloc");
	for (int i = 1; i < argc; i++)
		dump(argv[i]);
	return 0;
}
