// SPDX-License-Identifier: BSD-2-Clause
/* user/capture/event/memory.c: what is recorded of allocations, whatever a program says. */
#include "unit.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "capture/event/memory.h"
#include "model/timeline/timeline.h"
#include "util/util.h"

#define START_NS 1000

static const struct catalog_row news = {.memory = CATALOG_MEMORY_ALLOCATED},
				deletes = {.memory = CATALOG_MEMORY_FREED};
static const struct probe probe_new = {.row = &news}, probe_delete = {.row = &deletes};

static struct {
	char path[64];
	struct recorder *recorder;
	struct targets *targets;
	struct memory *memory;
	struct thread threads[2]; /* of two processes */
	uint32_t description;
	uint64_t now_ns;
} s;

static void begin(void)
{
	struct store_record source = {.type = STORE_SOURCE}, d = {.type = STORE_DESCRIPTION};
	uint32_t index;

	memset(&s, 0, sizeof(s));
	snprintf(s.path, sizeof(s.path), "/tmp/kprof-unit-memory-%d.kprof", (int)getpid());
	CHECK_EQ(recorder__new(s.path, &(struct outfile_opts){0}, &s.recorder), 0);
	CHECK_EQ(targets__new(&s.targets), 0);
	CHECK_EQ(memory__new(s.recorder, s.targets, &s.memory), 0);
	CHECK_EQ(recorder__source(s.recorder, "memory", &index), 0);
	source.source.name = recorder__string(s.recorder, "memory");
	CHECK_EQ(recorder__put(s.recorder, &source), 0);
	d.description.name = recorder__string(s.recorder, "[memory]");
	d.description.category = recorder__string(s.recorder, "cpu_instant_event");
	CHECK_EQ(recorder__describe(s.recorder, &d, &s.description), 0);
	CHECK_EQ(recorder__meta(s.recorder, "profile_memory", "true"), 0);
	for (uint32_t i = 0; i < 2; i++) {
		struct store_record th = {.type = STORE_THREAD,
					  .thread = {.index = i, .pid = 7 + i, .tid = 7 + i}};

		s.threads[i].index = i;
		s.threads[i].target = targets__add(s.targets, 7 + i);
		CHECK_EQ(recorder__put(s.recorder, &th), 0);
	}
	CHECK_EQ(recorder__clock(s.recorder, START_NS, START_NS), 0);
	recorder__prepare(s.recorder, 1);
	s.now_ns = START_NS;
}

static void opened(void)
{
	recorder__open_window(s.recorder, START_NS);
}

static void hit(const struct probe *p, uint32_t thread, uint64_t addr, uint64_t bytes)
{
	struct kprof_wire_begin_args e = {
		.b.h.time_ns = s.now_ns++, .nr = 2, .args = {addr, bytes}};

	CHECK_EQ(memory__event(s.memory, &s.threads[thread], p, s.description, &e), 0);
}

static void allocate(uint32_t thread, uint64_t addr, uint64_t bytes)
{
	hit(&probe_new, thread, addr, bytes);
}

static void give_back(uint32_t thread, uint64_t addr)
{
	hit(&probe_delete, thread, addr, 99); /* the second register has anything */
}

/* What was recorded, as "pid:addr:bytes:allocated …". */
static char seen[4096];
static struct kprof_capture *capture;

static int see(void *ctx, const struct store_record *r)
{
	struct tl_memory m;
	size_t at = strlen(seen);

	if (!timeline__memory(capture, r, &m))
		return 0;
	snprintf(seen + at, sizeof(seen) - at, "%s%d:%llx:%lld:%lld", at ? " " : "",
		 timeline__thread(capture, r->instant.thread)->pid, (unsigned long long)m.addr,
		 (long long)m.bytes, (long long)m.allocated);
	return 0;
}

static cJSON *account;

static double counted(const char *key)
{
	return cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(account, key));
}

static void end(void)
{
	struct target *t, *next;

	CHECK_EQ(memory__account(s.memory), 0);
	memory__free(s.memory);
	TARGETS_EACH (s.targets, t, next)
		targets__remove(s.targets, t);
	targets__free(s.targets);
	recorder__close_window(s.recorder, s.now_ns + 1);
	CHECK_EQ(recorder__finish(s.recorder, s.now_ns + 1), 0);
	recorder__free(s.recorder);
	seen[0] = '\0';
	CHECK_EQ(kprof_capture_open(s.path, &capture), 0);
	if (!capture)
		abort();
	CHECK_EQ(timeline__details(capture, 0, see, NULL), 0);
	account = timeline__meta_json(capture, "memory");
	CHECK(account != NULL);
	unlink(s.path);
}

static void close_it(void)
{
	cJSON_Delete(account);
	kprof_capture_close(capture);
}

static void sums(void)
{
	begin();
	opened();
	allocate(0, 0x10, 100);
	allocate(0, 0x20, 50);
	allocate(1, 0x10, 7); /* another process: the address is another one */
	give_back(0, 0x10);
	give_back(1, 0x20); /* of before */
	allocate(0, 0x10, 1);
	give_back(1, 0x10);
	end();
	CHECK_STR(seen, "7:10:100:100 7:20:50:150 8:10:7:7 7:10:-100:50 7:10:1:51 8:10:-7:0");
	CHECK_EQ(counted("allocations"), 4);
	CHECK_EQ(counted("frees"), 2);
	CHECK_EQ(counted("allocated_bytes"), 158);
	CHECK_EQ(counted("frees_of_earlier"), 1);
	CHECK_EQ(counted("live_bytes"), 51);
	CHECK_EQ(counted("peak_bytes"), 150);
	CHECK_EQ(counted("frees_not_seen"), 0);
	close_it();
}

/* What is allocated before the window opens is as if it had been before kprof came. */
static void before_the_window(void)
{
	begin();
	allocate(0, 0x10, 100);
	opened();
	s.now_ns = START_NS + 10;
	give_back(0, 0x10);
	end();
	CHECK_STR(seen, "");
	CHECK_EQ(counted("frees_of_earlier"), 1);
	CHECK_EQ(counted("allocations"), 0);
	close_it();
}

static void hostile(void)
{
	begin();
	opened();
	allocate(0, 0x10, 0);          /* allocates nothing */
	allocate(0, 0, 5);             /* no address */
	allocate(0, UINT64_MAX, 5);    /* none either */
	allocate(0, 0x10, 1ull << 63); /* no size */
	allocate(0, 0x10, UINT64_MAX); /* no size */
	allocate(0, 0x20, INT64_MAX);  /* the largest that there is */
	allocate(0, 0x30, INT64_MAX);  /* two of them: the sum stays at what can be said */
	allocate(0, 0x40, INT64_MAX);
	give_back(0, 0x30);
	give_back(0, 0x20);
	allocate(0, 0x40, 4); /* was freed, unseen */
	give_back(0, 0);
	give_back(0, UINT64_MAX);
	end();
	CHECK_STR(seen, "7:20:9223372036854775807:9223372036854775807 "
			"7:30:9223372036854775807:9223372036854775807 "
			"7:40:9223372036854775807:9223372036854775807 "
			"7:30:-9223372036854775807:9223372036854775807 "
			"7:20:-9223372036854775807:9223372036854775807 "
			"7:40:4:4");
	CHECK_EQ(counted("not_understood"), 6);
	CHECK_EQ(counted("frees_not_seen"), 1);
	CHECK_EQ(counted("live_bytes"), 4);
	CHECK_EQ(counted("allocations"), 4);
	close_it();
}

/* Another program, or none any more: what the old one had allocated is none of the new one's. */
static void forgotten(void)
{
	begin();
	opened();
	allocate(0, 0x10, 100);
	memory__forget(s.memory, s.threads[0].target);
	memory__forget(s.memory, s.threads[0].target);
	give_back(0, 0x10);
	allocate(0, 0x10, 5);
	end();
	CHECK_STR(seen, "7:10:100:100 7:10:5:5");
	CHECK_EQ(counted("frees_of_earlier"), 1);
	CHECK_EQ(counted("frees_not_seen"), 0);
	CHECK_EQ(counted("live_bytes"), 105);
	close_it();
}

/* Addresses that are never freed: so many are kept, further ones are counted. */
static void bounded(void)
{
	begin();
	opened();
	for (uint64_t i = 1; i <= MEMORY_MOST_KEPT + 3; i++)
		allocate(i & 1, i << 4, 1);
	give_back(1, 1 << 4);
	allocate(0, 1 << 4, 1); /* there is room again */
	allocate(0, 1 << 4, 2); /* and one address needs no other room */
	allocate(0, UINT64_MAX - 1, 2);
	end();
	CHECK_EQ(counted("allocations"), MEMORY_MOST_KEPT + 2);
	CHECK_EQ(counted("allocations_not_kept"), 4);
	CHECK_EQ(counted("live_bytes"), MEMORY_MOST_KEPT + 1);
	close_it();
}

UNIT_MAIN(TEST(sums), TEST(before_the_window), TEST(hostile), TEST(forgotten), TEST(bounded))
