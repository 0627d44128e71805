// SPDX-License-Identifier: BSD-2-Clause
/*
 * user/model/report/memory.c, alive.c: allocations by operator, what is in use at most, what
 * outlives its step.
 */
#include "fake_store.h"
#include "unit.h"

#include "kprof/memory.h"

static struct kprof_capture *c;
static struct kprof_result *r;
static uint32_t instant, add, sum, step, keys[6];

/* The window is 1000 … 9000 ns; two processes, of which the first has two threads. */
static void begin(void)
{
	fake_reset();
	fake_meta("profile_memory", "true");
	fake_clock(1000, 1000);
	fake_source(0, "operators");
	fake_source(1, "memory");
	fake_thread(0, 1, 1, "main");
	fake_thread(1, 1, 2, "other");
	fake_thread(2, 5, 5, "main");
	instant = fake_what_of("[memory]", "", "cpu_instant_event", 1);
	add = fake_what("aten::add");
	sum = fake_what("aten::sum");
	step = fake_what_of("ProfilerStep#1", "", "user_annotation", 0);
	keys[0] = fake_string("Addr");
	keys[1] = fake_string("Bytes");
	keys[2] = fake_string("Total Allocated");
	keys[3] = fake_string("Total Reserved");
	keys[4] = fake_string("Device Type");
	keys[5] = fake_string("Device Id");
}

static struct store_attr attrs[1024][6];
static size_t nr_attrs;

static struct store_record *memory(uint64_t ns, uint32_t thread, uint64_t addr, int64_t bytes,
				   int64_t allocated)
{
	struct store_record *m = fake_add(STORE_INSTANT);
	struct store_attr *a = attrs[nr_attrs++];

	a[0] = (struct store_attr){keys[0], STORE_ATTR_U64, addr};
	a[1] = (struct store_attr){keys[1], STORE_ATTR_I64, (uint64_t)bytes};
	a[2] = (struct store_attr){keys[2], STORE_ATTR_U64, (uint64_t)allocated};
	m->instant.time_ns = ns;
	m->instant.thread = thread;
	m->instant.description = instant;
	m->attrs = a;
	m->nr_attrs = 3;
	return m;
}

static void on_device(uint64_t ns, uint64_t addr, int64_t bytes, int64_t allocated,
		      int64_t reserved, int64_t type, int64_t id)
{
	struct store_record *m = memory(ns, 0, addr, bytes, allocated);
	struct store_attr *a = attrs[nr_attrs - 1];

	a[3] = (struct store_attr){keys[3], STORE_ATTR_U64, (uint64_t)reserved};
	a[4] = (struct store_attr){keys[4], STORE_ATTR_I64, (uint64_t)type};
	a[5] = (struct store_attr){keys[5], STORE_ATTR_I64, (uint64_t)id};
	m->nr_attrs = 6;
}

static void end(enum kprof_by by)
{
	fake_finish(9000);
	c = fake_capture();
	CHECK_EQ(kprof_result_new(c, by, KPROF_SORT_SELF, &r), 0);
	if (!r)
		abort();
}

static void close_it(void)
{
	kprof_result_free(r);
	kprof_capture_close(c);
	nr_attrs = 0;
}

static const struct kprof_row *row_of(const char *name, pid_t pid)
{
	static const struct kprof_row none = {.name = ""};

	for (size_t i = 0; i < kprof_result_nr_rows(r); i++)
		if (!strcmp(kprof_result_row(r, i)->name, name) &&
		    kprof_result_row(r, i)->pid == pid)
			return kprof_result_row(r, i);
	return &none;
}

/* The instants stand in chunks of their own: here all of them before the spans. */
static void by_operator(void)
{
	begin();
	memory(1500, 0, 0x10, 100, 100);   /* in no operator */
	memory(2100, 0, 0x20, 30, 130);    /* in sum */
	memory(2300, 0, 0x30, 8, 138);     /* in add, inside of sum */
	memory(2300, 1, 0x40, 1000, 1138); /* another thread, in add */
	memory(2400, 0, 0x20, -30, 1108);  /* in add */
	memory(2600, 0, 0x10, -100, 1008); /* in sum */
	memory(2700, 0, 0x50, 1, 1009);    /* at the very end of sum: after it */
	memory(8000, 0, 0x30, -8, 1001);   /* in no operator */
	fake_begin(2000, 0, sum);
	fake_begin(2200, 0, add);
	fake_begin(2250, 1, add);
	fake_end(2500, 0);
	fake_end_flags(2700, 0, KPROF_EVENT_CLOSED);
	fake_end(2800, 1);
	end(KPROF_BY_OP);
	CHECK_EQ(row_of("aten::sum", 0)->self_memory_bytes, -70);
	CHECK_EQ(row_of("aten::sum", 0)->memory_bytes, -92);
	CHECK_EQ(row_of("aten::add", 0)->self_memory_bytes, 978);
	CHECK_EQ(row_of("aten::add", 0)->memory_bytes, 978);
	CHECK_EQ(row_of("[memory]", 0)->memory_bytes, 93);
	CHECK_EQ(row_of("[memory]", 0)->calls, 3);
	CHECK_EQ(row_of("[memory]", 0)->total_ns, 0);
	close_it();
}

/* An operator inside of one of the same name: what it allocates counts once in their row. */
static void inside_of_itself(void)
{
	begin();
	fake_begin(2000, 0, add);
	fake_begin(2100, 0, add);
	fake_end(2300, 0);
	fake_end(2400, 0);
	memory(2200, 0, 0x10, 5, 5);
	end(KPROF_BY_OP);
	CHECK_EQ(row_of("aten::add", 0)->self_memory_bytes, 5);
	CHECK_EQ(row_of("aten::add", 0)->memory_bytes, 5);
	close_it();
}

/* Numbers of a file: sums stay at what there is, and marks of that name are none of this. */
static void senseless(void)
{
	begin();
	memory(2100, 0, 0x10, INT64_MAX, INT64_MAX);
	memory(2101, 0, 0x20, INT64_MAX, INT64_MAX);
	memory(2102, 0, 0x30, INT64_MIN, 0);
	memory(2103, 0, 0x30, 0, 0);
	memory(2104, 0, UINT64_MAX, 5, 5);
	fake_begin(2000, 0, add);
	fake_end(2500, 0);
	instant = fake_what_of("[memory]", "", "cpu_instant_event", 0);
	memory(2105, 0, 0x50, -77, 0);
	end(KPROF_BY_OP);
	CHECK_EQ(row_of("aten::add", 0)->memory_bytes, INT64_MAX);
	CHECK_EQ(row_of("[memory]", 0)->calls, 0);
	close_it();
}

static void not_recorded(void)
{
	struct kprof_memory_peak p;

	fake_reset();
	fake_clock(1000, 1000);
	fake_thread(0, 1, 1, "main");
	add = fake_what("aten::add");
	fake_begin(2000, 0, add);
	fake_end(2500, 0);
	end(KPROF_BY_OP);
	CHECK(!kprof_capture_has_memory(c));
	CHECK_EQ(row_of("aten::add", 0)->memory_bytes, 0);
	kprof_result_free(r);
	CHECK_EQ(kprof_result_new(c, KPROF_BY_MEMORY, KPROF_SORT_SELF, &r), 0);
	CHECK_EQ(kprof_result_nr_rows(r), 0);
	CHECK_EQ(kprof_result_memory(r, 0, &p), -ENOENT);
	close_it();
}

static void at_the_peak(void)
{
	struct kprof_memory_peak p;

	begin();
	fake_begin(2000, 0, add);
	fake_end(2500, 0);
	fake_begin(2000, 1, sum);
	fake_end(2500, 1);
	memory(2100, 0, 0x10, 100, 100);
	memory(2200, 1, 0x20, 50, 150);
	memory(2300, 1, 0x10, -100, 50);
	memory(2400, 0, 0x10, 120, 170); /* the peak: 0x20 of sum and this one */
	memory(2600, 0, 0x20, -50, 120);
	memory(2700, 0, 0x10, 10, 10); /* its free was not seen */
	memory(2800, 0, 0x99, -3, 10); /* of before */
	memory(2100, 2, 0x10, 4, 4);   /* another process, in no operator */
	end(KPROF_BY_MEMORY);
	CHECK_EQ(kprof_result_memory(r, 0, &p), 0);
	CHECK_EQ(p.pid, 1);
	CHECK_EQ(p.bytes, 170);
	CHECK_EQ(p.at_ns, 1400);
	CHECK_EQ(p.end_bytes, 10);
	CHECK_EQ(kprof_result_memory(r, 1, &p), 0);
	CHECK_EQ(p.pid, 5);
	CHECK_EQ(p.bytes, 4);
	CHECK_EQ(kprof_result_memory(r, 2, &p), -ENOENT);
	CHECK_STR(kprof_result_row(r, 0)->name, "aten::add");
	CHECK_EQ(row_of("aten::add", 1)->peak_bytes, 120);
	CHECK_EQ(row_of("aten::add", 1)->peak_blocks, 1);
	CHECK_EQ(row_of("aten::add", 1)->memory_bytes, 220);
	CHECK_EQ(row_of("aten::add", 1)->calls, 2);
	CHECK_EQ(row_of("aten::sum", 1)->peak_bytes, 50);
	CHECK_EQ(row_of("(in no operator)", 1)->peak_bytes, 0);
	CHECK_EQ(row_of("(in no operator)", 1)->memory_bytes, 10);
	CHECK_EQ(row_of("(in no operator)", 5)->peak_bytes, 4);
	close_it();
}

static const struct kprof_row *row_on(const char *name, const char *device)
{
	static const struct kprof_row none = {.name = ""};

	for (size_t i = 0; i < kprof_result_nr_rows(r); i++)
		if (!strcmp(kprof_result_row(r, i)->name, name) &&
		    !strcmp(kprof_result_row(r, i)->memory_device, device))
			return kprof_result_row(r, i);
	return &none;
}

/* Each device's memory is for itself; its allocator also knows of what was there before. */
static void of_devices(enum kprof_by by)
{
	begin();
	fake_begin(2000, 0, sum);
	fake_begin(2050, 0, add);
	fake_end(2500, 0);
	fake_end(2900, 0);
	memory(2100, 0, 0x10, 7, 7);
	on_device(2110, 0x10, 100, 1100, 4096, 1, 0);
	on_device(2120, 0x10, 50, 50, 99, 1, 1);
	on_device(2600, 0x20, 30, 1130, 8192, 1, 0);  /* the peak */
	on_device(2610, 0x90, -200, 930, 8192, 1, 0); /* of before */
	on_device(2700, 0x10, -100, 830, 8192, 1, 0);
	on_device(2710, 0x10, 1, 1, 1, 30, 2);
	on_device(2720, 0x50, 2, 9, -1, -4, 1000); /* no device: as if of the CPU */
	on_device(2730, 0x60, 4, 13, -1, 1000, 0);
	end(by);
}

static void devices_by_operator(void)
{
	of_devices(KPROF_BY_OP);
	CHECK_EQ(row_of("aten::add", 0)->self_memory_bytes, 7);
	CHECK_EQ(row_of("aten::add", 0)->self_device_memory_bytes, 150);
	CHECK_EQ(row_of("aten::add", 0)->device_memory_bytes, 150);
	CHECK_EQ(row_of("aten::sum", 0)->self_memory_bytes, 6);
	CHECK_EQ(row_of("aten::sum", 0)->memory_bytes, 13);
	CHECK_EQ(row_of("aten::sum", 0)->self_device_memory_bytes, 30 - 200 - 100 + 1);
	CHECK_EQ(row_of("aten::sum", 0)->device_memory_bytes, 150 + 30 - 200 - 100 + 1);
	close_it();
}

static void devices_at_the_peak(void)
{
	struct kprof_memory_peak p;

	of_devices(KPROF_BY_MEMORY);
	CHECK_EQ(kprof_result_memory(r, 0, &p), 0);
	CHECK_STR(p.device, "cpu");
	CHECK_EQ(p.bytes, 13);
	CHECK_EQ(p.reserved_bytes, 0);
	CHECK_EQ(kprof_result_memory(r, 1, &p), 0);
	CHECK_STR(p.device, "cuda:0");
	CHECK_EQ(p.bytes, 1130);
	CHECK_EQ(p.at_ns, 1600);
	CHECK_EQ(p.earlier_bytes, 1000);
	CHECK_EQ(p.end_bytes, 830);
	CHECK_EQ(p.reserved_bytes, 8192);
	CHECK_EQ(kprof_result_memory(r, 2, &p), 0);
	CHECK_STR(p.device, "cuda:1");
	CHECK_EQ(p.earlier_bytes, 0);
	CHECK_EQ(kprof_result_memory(r, 3, &p), 0);
	CHECK_STR(p.device, "device 30:2");
	CHECK_EQ(kprof_result_memory(r, 4, &p), -ENOENT);
	CHECK_EQ(row_on("aten::add", "cuda:0")->peak_bytes, 100);
	CHECK_EQ(row_on("aten::sum", "cuda:0")->peak_bytes, 30);
	CHECK_EQ(row_on("aten::add", "cuda:1")->peak_bytes, 50);
	CHECK_EQ(row_on("aten::add", "cpu")->memory_bytes, 7);
	CHECK_EQ(row_on("aten::sum", "device 30:2")->calls, 1);
	close_it();
}

/* A process runs another program: nothing of the old one is in use any more. */
static void another_program(void)
{
	struct kprof_memory_peak p;

	begin();
	memory(2000, 0, 0x10, 100, 100);
	memory(2100, 0, 0x20, 100, 200);
	memory(3000, 0, 0x30, 50, 50);
	memory(3100, 0, 0x40, 60, 110);
	end(KPROF_BY_MEMORY);
	CHECK_EQ(kprof_result_memory(r, 0, &p), 0);
	CHECK_EQ(p.bytes, 200);
	CHECK_EQ(p.end_bytes, 110);
	CHECK_EQ(row_of("(in no operator)", 1)->peak_bytes, 200);
	close_it();
}

/* Five steps of 1000 ns, from 2000 on. */
static void kept(void)
{
	static const char *const names[] = {"ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#2",
					    "ProfilerStep#3", "ProfilerStep#4"};

	begin();
	for (uint64_t i = 0; i < 5; i++) {
		uint64_t ns = 2000 + i * 1000;

		step = fake_what_of(names[i], "", "user_annotation", 0);
		fake_begin(ns, 0, step);
		fake_begin(ns + 100, 0, add);
		fake_end(ns + 500, 0);
		fake_end(ns + 900, 0);
		/* kept for ever, until the next step, and until the second next is over */
		memory(ns + 200, 0, 0x1000 + i, 10, 0);
		memory(ns + 210, 0, 0x2000 + i, 20, 0);
		if (i)
			memory(ns + 220, 0, 0x2000 + i - 1, -20, 0);
		memory(ns + 230, 1, 0x3000 + i, 40, 0); /* by another thread, in no operator */
		if (i > 2)
			memory(ns + 240, 0, 0x3000 + i - 3, -40, 0);
	}
	memory(1500, 0, 0x4000, 80, 80); /* before the steps */
	end(KPROF_BY_MEMORY);
	/* of the steps 0, 1 and 2 it is known how it was two steps later */
	CHECK_EQ(row_of("aten::add", 1)->kept_bytes, 30);
	CHECK_EQ(row_of("aten::add", 1)->kept_blocks, 3);
	CHECK_EQ(row_of("aten::add", 1)->kept_steps, 3);
	CHECK_EQ(row_of("(in no operator)", 1)->kept_bytes, 120);
	CHECK_EQ(row_of("(in no operator)", 1)->kept_steps, 3);
	close_it();
}

/* Of a part of the time: as if the recording were no longer. */
static void a_part(void)
{
	const struct kprof_range range = {.sz = sizeof(range),
					  .has_from = true,
					  .from_ns = 1200,
					  .has_to = true,
					  .to_ns = 2000};
	struct kprof_memory_peak p;

	begin();
	fake_begin(2000, 0, sum);
	fake_begin(2100, 0, add);
	fake_end(2400, 0);
	fake_end(2600, 0);
	memory(2150, 0, 0x10, 1000, 1000);
	memory(2300, 0, 0x20, 5, 1005);
	memory(2500, 0, 0x10, -1000, 5);
	memory(3500, 0, 0x30, 400, 405);
	fake_finish(9000);
	c = fake_capture();
	CHECK_EQ(kprof_capture_select(c, &range), 0);
	CHECK_EQ(kprof_result_new(c, KPROF_BY_OP, KPROF_SORT_SELF, &r), 0);
	CHECK_EQ(row_of("aten::add", 0)->self_memory_bytes, 5);
	CHECK_EQ(row_of("aten::sum", 0)->self_memory_bytes, -1000);
	CHECK_EQ(row_of("aten::sum", 0)->memory_bytes, -995);
	kprof_result_free(r);
	CHECK_EQ(kprof_result_new(c, KPROF_BY_MEMORY, KPROF_SORT_SELF, &r), 0);
	CHECK_EQ(kprof_result_memory(r, 0, &p), 0);
	CHECK_EQ(p.bytes, 5);
	CHECK_EQ(p.at_ns, 1300);
	close_it();
}

UNIT_MAIN(TEST(by_operator), TEST(inside_of_itself), TEST(senseless), TEST(not_recorded),
	  TEST(at_the_peak), TEST(another_program), TEST(kept), TEST(a_part),
	  TEST(devices_by_operator), TEST(devices_at_the_peak))
