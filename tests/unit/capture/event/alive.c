// SPDX-License-Identifier: BSD-2-Clause
/* user/capture/event/alive.c: what is alive, within bounds, whatever a program says. */
#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/event/alive.h"
#include "kprof/memory.h"
#include "model/timeline/timeline.h"

#define START_NS 1000
#define CPU 0, -1
#define CUDA0 1, 0

static struct {
	char path[64], copy[64];
	struct recorder *recorder;
	struct alive *alive;
	uint32_t description, op, stack;
	uint64_t now_ns;
	bool has_allocator;
} s;

static uint32_t a_stack(void)
{
	struct store_record module = {.type = STORE_MODULE, .module = {.id = 1}};
	struct store_line line = {.function = recorder__string(s.recorder, "asks")};
	struct store_record frame = {.type = STORE_FRAME,
				     .frame = {.id = 1,
					       .kind = STORE_FRAME_NATIVE,
					       .module = 1,
					       .nr_lines = 1,
					       .lines = &line}};
	struct store_record stack = {.type = STORE_STACK, .stack = {.id = 1, .frame = 1}};

	CHECK_EQ(recorder__put(s.recorder, &module), 0);
	CHECK_EQ(recorder__put(s.recorder, &frame), 0);
	CHECK_EQ(recorder__put(s.recorder, &stack), 0);
	return 1;
}

static void begin(void)
{
	struct store_record d = {.type = STORE_DESCRIPTION};
	uint32_t index;

	memset(&s, 0, sizeof(s));
	snprintf(s.path, sizeof(s.path), "/tmp/kprof-unit-alive-%d.kprof", (int)getpid());
	snprintf(s.copy, sizeof(s.copy), "/tmp/kprof-unit-alive-%d-copy.kprof", (int)getpid());
	CHECK_EQ(recorder__new(s.path, NULL, &s.recorder), 0);
	recorder__only_tables(s.recorder, ALIVE_TABLE_BYTES);
	CHECK_EQ(recorder__source(s.recorder, "memory", &index), 0);
	d.description.name = recorder__string(s.recorder, "[memory]");
	CHECK_EQ(recorder__describe(s.recorder, &d, &s.description), 0);
	CHECK_EQ(recorder__name_of(s.recorder, s.description), d.description.name);
	CHECK_EQ(recorder__name_of(s.recorder, 0), 0);
	CHECK_EQ(recorder__name_of(s.recorder, s.description + 1), 0);
	s.op = recorder__string(s.recorder, "aten::empty");
	s.stack = a_stack();
	CHECK_EQ(recorder__clock(s.recorder, START_NS, START_NS), 0);
	CHECK_EQ(alive__new(s.recorder, &s.alive), 0);
	CHECK_EQ(alive__prepare(s.alive), 0);
	s.now_ns = START_NS;
}

static void take(int8_t type, int8_t id, uint64_t addr, int64_t bytes)
{
	const struct alive_said said = {
		.time_ns = ++s.now_ns,
		.addr = addr,
		.bytes = bytes,
		.op = s.op,
		.description = s.description,
		.device_type = type,
		.device_id = id,
	};

	CHECK_EQ(alive__take(s.alive, &said), 0);
}

static struct kprof_capture *capture;
static char seen[4096];

static int see(void *ctx, const struct tl_block *b)
{
	size_t at = strlen(seen);

	snprintf(seen + at, sizeof(seen) - at, "%s%x:%llx:%llu:%s%s%s", at ? " " : "", b->device,
		 (unsigned long long)b->addr, (unsigned long long)b->bytes, b->op,
		 b->stack ? ":stack" : "", b->freed_ns ? ":freed" : "");
	return 0;
}

/* What a capture that is made now has. */
static void snapshot(void)
{
	struct store_record th = {.type = STORE_THREAD, .thread = {.pid = 7, .tid = 7}};

	CHECK_EQ(recorder__begin_copy(s.recorder, s.copy), 0);
	CHECK_EQ(recorder__put_anyway(s.recorder, &th), 0);
	CHECK_EQ(alive__put(s.alive, s.has_allocator), 0);
	CHECK_EQ(recorder__end_copy(s.recorder, s.now_ns, 0), 0);
	kprof_capture_close(capture);
	CHECK_EQ(kprof_capture_open(s.copy, &capture), 0);
	CHECK(kprof_capture_info(capture)->complete);
	seen[0] = '\0';
	CHECK_EQ(timeline__blocks(capture, 0, see, NULL), 0);
	unlink(s.copy);
}

static void end(void)
{
	kprof_capture_close(capture);
	capture = NULL;
	alive__free(s.alive);
	recorder__free(s.recorder);
}

static struct alive_sums sums(void)
{
	struct alive_sums sums;

	alive__sums(s.alive, &sums);
	return sums;
}

static void allocated_and_freed(void)
{
	uint64_t number;

	begin();
	take(CPU, 0x10, 100);
	number = alive__latest(s.alive);
	CHECK(number != 0);
	CHECK_EQ(alive__latest(s.alive), 0);
	alive__stack(s.alive, number, s.stack);
	take(CPU, 0x20, 7);
	take(CUDA0, 0x10, 512); /* another device, the same address */
	take(CPU, 0x20, -7);
	CHECK_EQ(alive__latest(s.alive), 0);
	take(CPU, 0x30, -1); /* of before */
	snapshot();
	CHECK_STR(seen, "0:20:7:aten::empty:freed 0:10:100:aten::empty:stack "
			"100:10:512:aten::empty");
	CHECK_EQ(sums().blocks, 2);
	CHECK_EQ(sums().bytes, 612);
	snapshot(); /* as often as one likes */
	CHECK_STR(seen, "0:20:7:aten::empty:freed 0:10:100:aten::empty:stack "
			"100:10:512:aten::empty");
	alive__forget(s.alive);
	snapshot();
	CHECK_STR(seen, "");
	end();
}

/* The stack of a block comes a moment later: if it is gone by then, nobody else gets it. */
static void late_stacks(void)
{
	uint64_t number;

	begin();
	take(CPU, 0x10, 1);
	number = alive__latest(s.alive);
	take(CPU, 0x10, -1);
	alive__stack(s.alive, number, s.stack);
	take(CPU, 0x40, 2); /* in the same place */
	alive__stack(s.alive, number, s.stack);
	alive__stack(s.alive, 0, s.stack);
	alive__stack(s.alive, UINT64_MAX, s.stack);
	snapshot();
	CHECK_STR(seen, "0:10:1:aten::empty:freed 0:40:2:aten::empty");
	end();
}

static void frees_not_seen(void)
{
	struct kprof_alive_device d;
	struct kprof_alive *a;

	begin();
	take(CPU, 0x10, 1);
	take(CPU, 0x10, 2);
	snapshot();
	CHECK_STR(seen, "0:10:2:aten::empty");
	CHECK_EQ(sums().bytes, 2);
	CHECK_EQ(kprof_alive_new(capture, &a), 0);
	CHECK_EQ(kprof_alive_device(a, 0, &d), 0);
	CHECK_STR(d.name, "cpu");
	CHECK_EQ(d.unseen, 1);
	CHECK_EQ(d.allocations, 2);
	CHECK_EQ(d.blocks, 1);
	CHECK_EQ(kprof_alive_device(a, 1, &d), -ENOENT);
	kprof_alive_free(a);
	end();
}

/* The places are used again, and of those that were freed only the latest are kept. */
static void bounds(void)
{
	const uint64_t more = ALIVE_MOST_BLOCKS + 10;

	begin();
	for (uint64_t i = 1; i <= ALIVE_FREED_BLOCKS + 5; i++) {
		take(CPU, i << 4, 1);
		take(CPU, i << 4, -1);
	}
	snapshot();
	CHECK(timeline__blocks_since_ns(capture) > START_NS + 10);
	CHECK_EQ(sums().blocks, 0);
	for (uint64_t i = 1; i <= more; i++)
		take(CPU, i << 4, 1);
	CHECK_EQ(sums().blocks, ALIVE_MOST_BLOCKS);
	CHECK_EQ(sums().not_kept, 10);
	take(CPU, 1 << 4, -1);
	take(CPU, (more + 1) << 4, 1);
	CHECK_EQ(sums().blocks, ALIVE_MOST_BLOCKS);
	CHECK_EQ(sums().not_kept, 10);
	for (int i = 0; i < 200; i++) /* devices that are invented */
		take(2, (int8_t)(i & 0x7f), 0x10, 1);
	CHECK(sums().not_kept > 10);
	end();
}

/* Nothing that happens is in the file, and what is there has a limit. */
static void only_tables(void)
{
	struct store_record b = {.type = STORE_BEGIN, .begin = {START_NS, 5, 6}};
	char name[256];
	uint64_t i;
	int err = 0;

	begin();
	CHECK_EQ(recorder__put(s.recorder, &b), 0); /* though it refers to nothing */
	CHECK_EQ(recorder__flush(s.recorder), 0);
	recorder__only_tables(s.recorder, 4096);
	for (i = 0; i < 1000000 && !err; i++) {
		struct store_record m = {.type = STORE_META, .meta = {.key = name, .json = "1"}};

		snprintf(name, sizeof(name), "%llx%llx",
			 (unsigned long long)i * 0x9e3779b97f4a7c15ull,
			 (unsigned long long)i * i * 0xc2b2ae3d27d4eb4full);
		err = recorder__put(s.recorder, &m);
	}
	CHECK_EQ(err, -EFBIG);
	CHECK(strstr(kprof_error_cause(), "take more than"));
	end();
}

/* Names of threads are texts without a record that stays: these have the same limit. */
static void only_texts(void)
{
	struct store_record th = {.type = STORE_THREAD};
	char name[64];
	uint64_t i;
	int err = 0;

	begin();
	recorder__only_tables(s.recorder, 1 << 20);
	for (i = 0; i < 4000000 && !err; i++) {
		snprintf(name, sizeof(name), "%llx", (unsigned long long)i * 0x9e3779b97f4a7c15ull);
		th.thread.name = recorder__string(s.recorder, name);
		CHECK_EQ(recorder__put(s.recorder, &th), 0);
		if (i % 10000 == 0)
			err = recorder__flush(s.recorder);
	}
	CHECK_EQ(err, -EFBIG);
	CHECK(strstr(kprof_error_cause(), "take more than 1 MiB"));
	CHECK(recorder__bytes(s.recorder) < 2 << 20);
	end();
}

static int copy_all(void)
{
	struct store_record th = {.type = STORE_THREAD, .thread = {.pid = 7, .tid = 7}};

	CHECK_EQ(recorder__begin_copy(s.recorder, s.copy), 0);
	CHECK_EQ(recorder__put_anyway(s.recorder, &th), 0);
	CHECK_EQ(alive__put(s.alive, true), 0);
	return recorder__end_copy(s.recorder, s.now_ns, 0);
}

/* A copy for which there is no room replaces nothing, also if that turns out only at its end. */
static void no_room(void)
{
	struct rlimit before, small;
	struct stat st, later;

	begin();
	CHECK_EQ(recorder__flush(s.recorder), 0);
	take(CPU, 0x10, 100);
	CHECK_EQ(copy_all(), 0);
	CHECK_EQ(stat(s.copy, &st), 0);
	for (uint64_t i = 1; i <= 1000; i++)
		take(CPU, i << 20 ^ i * 977, 1);
	signal(SIGXFSZ, SIG_IGN);
	CHECK_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = before;
	small.rlim_cur = (rlim_t)st.st_size;
	CHECK_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
	CHECK_EQ(copy_all(), -EFBIG);
	CHECK_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
	CHECK_EQ(stat(s.copy, &later), 0);
	CHECK_EQ(later.st_ino, st.st_ino);
	CHECK_EQ(copy_all(), 0); /* the recording has gone on */
	CHECK_EQ(stat(s.copy, &later), 0);
	CHECK(later.st_size > st.st_size);
	unlink(s.copy);
	end();
}

static bool is_seen(void)
{
	return strstr(kprof_capture_meta(capture, "memory_alive"), "\"allocator_seen\":true");
}

/* Was there an allocator that tells? One that has told was there, whatever is known of probes. */
static void allocator_seen(void)
{
	begin();
	snapshot();
	CHECK(!is_seen());
	s.has_allocator = true;
	snapshot();
	CHECK(is_seen());
	s.has_allocator = false;
	take(CPU, 0x10, 100);
	take(CPU, 0x10, -100);
	snapshot();
	CHECK(is_seen());
	end();
}

UNIT_MAIN(TEST(allocator_seen), TEST(allocated_and_freed), TEST(late_stacks), TEST(frees_not_seen),
	  TEST(bounds), TEST(only_tables), TEST(only_texts), TEST(no_room))
