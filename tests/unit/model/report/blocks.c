// SPDX-License-Identifier: BSD-2-Clause
/* user/model/report/blocks.c: what was allocated at a moment, and with which stacks. */
#include "fake_store.h"
#include "unit.h"

#include "kprof/memory.h"

#define DEEP 3000

static struct kprof_frame frames[KPROF_SAMPLE_MAX_FRAMES];

static void block(uint64_t addr, uint64_t bytes, uint32_t stack)
{
	static struct store_attr attrs[8][3];
	static size_t nr;
	struct store_record *r = fake_add(STORE_INSTANT);
	struct store_attr *a = attrs[nr++ % 8];

	a[0] = (struct store_attr){fake_string("Addr"), STORE_ATTR_U64, addr};
	a[1] = (struct store_attr){fake_string("Bytes"), STORE_ATTR_I64, bytes};
	a[2] = (struct store_attr){fake_string("stack"), STORE_ATTR_STACK, stack};
	r->instant.time_ns = 2000;
	r->instant.description = 1;
	r->attrs = a;
	r->nr_attrs = 3;
}

static void begin(const char *alive)
{
	fake_reset();
	fake_meta("memory_alive", alive);
	fake_clock(1000, 1000);
	fake_source(0, "memory");
	fake_thread(0, 7, 7, "main");
	fake_what_of("[memory]", "", "cpu_instant_event", 0);
}

/* All frames of a stack are there, and of a deeper one than any recording has the innermost. */
static void whole_stacks(void)
{
	struct store_line line;
	struct kprof_capture *c;
	struct kprof_alive *a;

	begin("{}");
	line = (struct store_line){.function = fake_string("f")};
	fake_frame(1, STORE_FRAME_NATIVE, &line);
	for (uint32_t i = 1; i <= 2 * DEEP; i++)
		fake_stack(i, i - 1, 1);
	block(16, 300, 100);
	block(32, 200, DEEP);
	block(48, 100, 2 * DEEP);
	fake_finish(9000);
	c = fake_capture();
	CHECK_EQ(kprof_alive_new(c, &a), 0);
	CHECK_EQ(kprof_alive_frames(a, 0, frames, KPROF_SAMPLE_MAX_FRAMES), 100);
	CHECK_EQ(kprof_alive_frames(a, 0, frames, 40), 40);
	CHECK_EQ(kprof_alive_frames(a, 1, frames, KPROF_SAMPLE_MAX_FRAMES), DEEP);
	CHECK_STR(frames[DEEP - 1].function, "f");
	CHECK_EQ(kprof_alive_frames(a, 2, frames, KPROF_SAMPLE_MAX_FRAMES),
		 KPROF_SAMPLE_MAX_FRAMES);
	CHECK_EQ(kprof_alive_frames(a, 3, frames, KPROF_SAMPLE_MAX_FRAMES), 0);
	kprof_alive_free(a);
	kprof_capture_close(c);
}

/* Nothing is allocated, or nothing is known of it. */
static void seen(void)
{
	static const struct {
		const char *alive;
		bool seen;
	} cases[] = {
		{"{\"allocator_seen\":false,\"devices\":[]}", false},
		{"{\"allocator_seen\":true,\"devices\":[]}", true},
		{"{\"devices\":[]}", true}, /* of an older kprof */
		{"[false]", true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct kprof_capture *c;
		struct kprof_alive *a;

		begin(cases[i].alive);
		fake_finish(9000);
		c = fake_capture();
		CHECK_EQ(kprof_alive_new(c, &a), 0);
		CHECK_EQ(kprof_alive_seen(a), cases[i].seen);
		kprof_alive_free(a);
		kprof_capture_close(c);
	}
}

UNIT_MAIN(TEST(whole_stacks), TEST(seen))
