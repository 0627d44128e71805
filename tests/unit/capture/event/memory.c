// SPDX-License-Identifier: BSD-2-Clause
/* user/capture/event/memory.c: what is recorded of allocations, whatever a program says. */
#include "unit.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "capture/event/alive.h"
#include "capture/event/memory.h"
#include "model/timeline/timeline.h"
#include "util/util.h"

#define START_NS 1000

static const struct catalog_row news = {.memory = CATALOG_MEMORY_ALLOCATED},
				deletes = {.memory = CATALOG_MEMORY_FREED},
				fails = {.memory = CATALOG_MEMORY_FAILED},
				reports = {.memory = CATALOG_MEMORY_REPORTED},
				reports_failure = {.memory = CATALOG_MEMORY_REPORTED_FAILED};
static const struct probe probe_new = {.row = &news}, probe_delete = {.row = &deletes},
			  probe_failed = {.row = &fails}, probe_report = {.row = &reports},
			  probe_report_failed = {.row = &reports_failure};

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
	CHECK_EQ(memory__new(s.recorder, s.targets, NULL, &s.memory), 0);
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

	CHECK_EQ(memory__event(s.memory, &s.threads[thread], p, s.description, 0, &e), 0);
}

static void allocate(uint32_t thread, uint64_t addr, uint64_t bytes)
{
	hit(&probe_new, thread, addr, bytes);
}

static void give_back(uint32_t thread, uint64_t addr)
{
	hit(&probe_delete, thread, addr, 99); /* the second register has anything */
}

/* As a register has a device: with anything in its upper bytes. */
static uint64_t device(int8_t type, int8_t id)
{
	return 0xabcdull << 16 | (uint64_t)(uint8_t)id << 8 | (uint8_t)type;
}

static void report(uint64_t addr, int64_t bytes, uint64_t allocated, uint64_t reserved,
		   uint64_t of_device)
{
	struct kprof_wire_begin_args e = {
		.b.h.time_ns = s.now_ns++,
		.nr = 5,
		.args = {addr, (uint64_t)bytes, allocated, reserved, of_device}};

	CHECK_EQ(memory__event(s.memory, &s.threads[0], &probe_report, s.description, 0, &e), 0);
}

static void report_failed(uint64_t bytes, uint64_t allocated, uint64_t reserved, uint64_t of_device)
{
	struct kprof_wire_begin_args e = {.b.h.time_ns = s.now_ns++,
					  .nr = 4,
					  .args = {bytes, allocated, reserved, of_device}};

	CHECK_EQ(memory__event(s.memory, &s.threads[0], &probe_report_failed, s.description, 0, &e),
		 0);
}

/* What was recorded, as "pid:addr:bytes:allocated …"; of devices " [device reserved]" follows. */
static char seen[16384];
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
	at = strlen(seen);
	if (m.device != TL_MEMORY_CPU) {
		char text[TL_MEMORY_DEVICE_BYTES];

		snprintf(seen + at, sizeof(seen) - at, "[%s %lld]",
			 timeline__memory_device(text, m.device), (long long)m.reserved);
	}
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

static double of_device(int i, const char *key)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(account, "devices");

	return cJSON_GetNumberValue(
		cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(list, i), key));
}

/* Books of what is alive: what is not kept, and frees of what they do not have, are counted. */
static void in_books(void)
{
	struct alive_sums sums;
	struct alive *alive;

	begin();
	memory__free(s.memory);
	CHECK_EQ(alive__new(s.recorder, &alive), 0);
	CHECK_EQ(memory__new(s.recorder, s.targets, alive, &s.memory), 0);
	CHECK_EQ(alive__prepare(alive), 0);
	opened();
	give_back(0, 0x8); /* of before */
	for (uint64_t i = 1; i <= MEMORY_MOST_KEPT + 3; i++)
		allocate(0, i << 4, 1);
	alive__sums(alive, &sums);
	CHECK_EQ(sums.blocks, MEMORY_MOST_KEPT);
	CHECK_EQ(sums.not_kept, 3);
	give_back(0, (MEMORY_MOST_KEPT + 1ull) << 4); /* was not kept */
	give_back(0, 1 << 4);
	allocate(0, 8ull << 40, 1); /* there is room again */
	allocate(0, 9ull << 40, 1);
	alive__sums(alive, &sums);
	CHECK_EQ(sums.blocks, MEMORY_MOST_KEPT);
	CHECK_EQ(sums.not_kept, 4);
	CHECK_EQ(alive__put(alive, true), 0);
	alive__free(alive);
	end();
	cJSON_Delete(account);
	account = timeline__meta_json(capture, "memory_alive");
	CHECK_EQ(of_device(0, "frees"), 1);
	CHECK_EQ(of_device(0, "frees_of_earlier"), 2);
	CHECK_EQ(of_device(0, "not_kept"), 4);
	CHECK_EQ(of_device(0, "blocks"), MEMORY_MOST_KEPT);
	close_it();
}

/* What the allocators of devices say is theirs: also of what was allocated before. */
static void devices(void)
{
	begin();
	report(0x10, 100, 1100, 2000, device(1, 0)); /* before the window */
	opened();
	s.now_ns = START_NS + 10;
	report(0x20, 50, 1150, 2000, device(1, 0));
	report(0x20, 7, 7, 8, device(12, 3));         /* another device: another address */
	report(0x30, 9, 9, 9, device(0, -1));         /* the CPU's: said otherwise */
	report(0x10, -100, 1050, 4000, device(1, 0)); /* of before */
	report_failed(1 << 20, 1050, 4000, device(1, 0));
	allocate(0, 0x20, 5);
	hit(&probe_failed, 0, 1 << 30, 0);
	end();
	CHECK_STR(seen, "7:20:50:1150[cuda:0 2000] 7:20:7:7[xpu:3 8] "
			"7:10:-100:1050[cuda:0 4000] 7:20:5:5");
	CHECK_EQ(counted("allocations"), 1);
	CHECK_EQ(counted("out_of_memory"), 1);
	CHECK_EQ(of_device(0, "device_type"), 1);
	CHECK_EQ(of_device(0, "allocations"), 1);
	CHECK_EQ(of_device(0, "frees"), 1);
	CHECK_EQ(of_device(0, "peak_bytes"), 1150);
	CHECK_EQ(of_device(0, "peak_reserved_bytes"), 4000);
	CHECK_EQ(of_device(0, "out_of_memory"), 1);
	CHECK_EQ(of_device(1, "device_type"), 12);
	CHECK_EQ(of_device(1, "device_id"), 3);
	CHECK_EQ(of_device(1, "allocated_bytes"), 7);
	CHECK_EQ(counted("not_understood"), 0);
	close_it();
}

static void hostile_devices(void)
{
	begin();
	opened();
	report(0, 5, 5, 5, device(1, 0));            /* no address */
	report(0x10, INT64_MIN, 5, 5, device(1, 0)); /* no size */
	report(0x10, 5, 1ull << 63, 5, device(1, 0));
	report(0x10, 5, 5, UINT64_MAX, device(1, 0));
	report(0x10, 5, 5, 5, device(-1, 0)); /* no device */
	report(0x10, 5, 5, 5, device(1, -1));
	hit(&probe_failed, 0, UINT64_MAX, 0);
	report(0x10, 0, 5, 5, device(1, 0)); /* nothing */
	for (int id = 0; id < 100; id++)     /* more than are kept */
		report(0x10, INT64_MAX, INT64_MAX, INT64_MAX, device(30, (int8_t)id));
	report(0x10, 1, 1, 1, device(1, 0));
	end();
	CHECK_EQ(counted("not_understood"), 7 + 100 - 63);
	CHECK_EQ(of_device(0, "allocations"), 1);
	CHECK_EQ(of_device(63, "device_id"), 62);
	CHECK(strstr(seen, "7:10:9223372036854775807:9223372036854775807[device 30:62 "));
	CHECK(!strstr(seen, "device 30:63"));
	CHECK(strstr(seen, "7:10:1:1[cuda:0 1]"));
	close_it();
}

UNIT_MAIN(TEST(sums), TEST(before_the_window), TEST(hostile), TEST(forgotten), TEST(bounded),
	  TEST(in_books), TEST(devices), TEST(hostile_devices))
