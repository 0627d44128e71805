// SPDX-License-Identifier: BSD-2-Clause
/*
 * Python frames in memory that is made up: what real interpreters seldom or never show, and memory
 * that is hostile. Real ones are tests/python.bats' part.
 */
#include "symbol/python/python.h"

#include <errno.h>

#include "symbol/python/priv.h"
#include "unit.h"
#include "util/util.h"

/* ---- memory ---- */

#define BASE 0x10000ull

static uint8_t image[1 << 16]; /* at BASE */
static uint64_t noise;         /* not 0: every address can be read, and holds anything */

static int fake_read(void *ctx, void *to, size_t bytes, uint64_t address)
{
	if (noise) {
		uint8_t *out = to;

		if (hash64(address ^ noise) % 64 == 0)
			return -EFAULT;
		for (size_t i = 0; i < bytes; i++) {
			/* Words that are small, or addresses nearby: they lead on. */
			uint64_t word = hash64(((address + i) & ~7ull) ^ noise);

			word = word & 1 ? word >> 8 & 0xff : (word & 0xfff8) + BASE;
			out[i] = (uint8_t)(word >> ((address + i) & 7) * 8);
		}
		return 0;
	}
	if (address < BASE || address - BASE > sizeof(image) - bytes || bytes > sizeof(image))
		return -EFAULT;
	memcpy(to, image + (address - BASE), bytes);
	return 0;
}

static int python_read(void *to, kprof_u32 bytes, kprof_u64 address)
{
	return fake_read(NULL, to, bytes, address);
}

#include "bpf/python.h"

static const struct python_memory memory = {.read = fake_read};

static void put(uint64_t address, uint64_t value, size_t bytes)
{
	memcpy(image + (address - BASE), &value, bytes);
}

static uint32_t run(const struct kprof_python *p, struct kprof_python_walk *w)
{
	uint32_t steps = 0;

	python_begin(w);
	while (steps++ < KPROF_PYTHON_MAX_STEPS)
		if (python_step(p, w))
			return steps;
	return 0;
}

/* ---- a process ---- */

#define RUNTIME BASE
#define INTERP(i) (BASE + 0x1000 + (i)*0x400)
#define STATE(i) (BASE + 0x3000 + (i)*0x200)
#define CODE(i) (BASE + 0x6000 + (i)*0x100)
#define FRAME(i) (BASE + 0x8000 + (i)*0x80)
#define GIL (BASE + 0xf000)

/* One of each minor release; 14 with what a free-threaded build adds. */
static struct kprof_python layout(uint32_t minor)
{
	struct kprof_python p;

	if (!python_layout_table(minor, &p)) {
		CHECK(python_layout_table(12, &p));
		p.cframe_frame = KPROF_PYTHON_NONE;
		p.frame_tlbc = 72;
		p.frame_bytes = 80;
		p.code_tlbc = 184;
		p.gil_enabled = 0;
		p.flags = KPROF_PYTHON_FREE_THREADED;
	}
	p.runtime = RUNTIME;
	p.code_type = BASE + 0x42;
	p.version = 0x03000000 | minor << 16;
	return p;
}

/* Interpreters with a thread state each, all of thread 77. */
static void make_states(const struct kprof_python *p, int interpreters)
{
	memset(image, 0, sizeof(image));
	put(RUNTIME + p->runtime_interpreters, INTERP(0), 8);
	for (int i = 0; i < interpreters; i++) {
		if (i + 1 < interpreters)
			put(INTERP(i) + p->interp_next, INTERP(i + 1), 8);
		put(INTERP(i) + p->interp_threads, STATE(i), 8);
		put(STATE(i) + p->tstate_interp, INTERP(i), 8);
		put(STATE(i) + p->tstate_thread, 77, 8);
		if (p->interp_gil != KPROF_PYTHON_NONE)
			put(INTERP(i) + p->interp_gil, GIL, 8);
	}
}

static void set_frame(const struct kprof_python *p, int state, uint64_t frame)
{
	uint64_t at = STATE(state) + p->tstate_frame;

	if (p->cframe_frame != KPROF_PYTHON_NONE) {
		put(at, STATE(state) + 0x180, 8);
		at = STATE(state) + 0x180 + p->cframe_frame;
	}
	put(at, frame, 8);
}

/* A frame that executes the instruction at `unit`; shim: none, but the mark of an eval frame. */
static void make_frame(const struct kprof_python *p, int i, uint64_t previous, uint32_t unit,
		       bool entry, bool shim)
{
	put(FRAME(i) + p->frame_code, CODE(i) | (p->frame_owner != KPROF_PYTHON_NONE), 8);
	put(FRAME(i) + p->frame_previous, previous, 8);
	put(CODE(i) + 8, p->code_type, 8);
	put(CODE(i) + p->code_firstlineno, 100 + (uint32_t)i, 4);
	if (p->frame_instr_shift != KPROF_PYTHON_NONE)
		put(FRAME(i) + p->frame_instr, unit * 2 >> p->frame_instr_shift, 4);
	else
		put(FRAME(i) + p->frame_instr, CODE(i) + p->code_instrs + (uint64_t)unit * 2, 8);
	if (p->frame_entry != KPROF_PYTHON_NONE)
		put(FRAME(i) + p->frame_entry, entry, 1);
	if (p->frame_owner != KPROF_PYTHON_NONE)
		put(FRAME(i) + p->frame_owner, shim ? p->frame_owner_shim : 0, 1);
}

static void test_walk(void)
{
	static struct kprof_python_walk w;

	for (uint32_t minor = 8; minor <= 14; minor++) {
		struct kprof_python p = layout(minor == 13 ? 12 : minor);
		bool shims = p.frame_owner != KPROF_PYTHON_NONE;

		make_states(&p, 1);
		/* 0 called by 1, for which the loop was entered; that by 2. */
		make_frame(&p, 0, FRAME(1), 3, false, false);
		make_frame(&p, 1, shims ? FRAME(9) : FRAME(2), 5, true, false);
		make_frame(&p, 9, FRAME(2), 0, false, true);
		make_frame(&p, 2, shims ? FRAME(10) : 0, 7, true, false);
		make_frame(&p, 10, 0, 0, false, true);
		set_frame(&p, 0, FRAME(0));
		for (int hint = 0; hint < 2; hint++) {
			w = (struct kprof_python_walk){.thread = 77, .hint = hint ? STATE(0) : 0};
			CHECK(run(&p, &w));
			CHECK_EQ(w.nr, 3);
			CHECK(w.tstate == STATE(0));
			CHECK(w.flags & KPROF_PYTHON_FOUND);
			CHECK(!(w.flags & (KPROF_PYTHON_CUT | KPROF_PYTHON_BAD)));
			for (uint32_t i = 0; i < 3; i++) {
				CHECK(w.frames[i].code == CODE(i));
				CHECK_EQ(w.frames[i].instr, 6 + 4 * i);
				CHECK_EQ(w.frames[i].firstline, 100 + i);
			}
			CHECK_EQ(w.frames[0].flags, minor <= 10 ? KPROF_PYTHON_ENTRY : 0);
			CHECK_EQ(w.frames[1].flags, KPROF_PYTHON_ENTRY);
			CHECK_EQ(w.frames[2].flags, KPROF_PYTHON_ENTRY | KPROF_PYTHON_LAST);
		}
		/* Another thread. */
		w = (struct kprof_python_walk){.thread = 78, .hint = STATE(0)};
		CHECK(run(&p, &w));
		CHECK(!w.flags && !w.nr && !w.tstate);
	}
}

/* The loop was just entered: its _PyCFrame says nothing, nonsense, or leads out of memory. */
static void test_unfilled_cframe(void)
{
	static const uint64_t nonsense[] = {0, 8, STATE(7)};
	static struct kprof_python_walk w;

	for (uint32_t minor = 11; minor <= 12; minor++)
		for (size_t i = 0; i < ARRAY_SIZE(nonsense); i++) {
			struct kprof_python p = layout(minor);

			make_states(&p, 1);
			make_frame(&p, 0, 0, 1, true, false);
			put(STATE(9) + p.cframe_frame, FRAME(0), 8);
			set_frame(&p, 0, nonsense[i]);
			put(STATE(0) + 0x180 + p.cframe_frame + 8, STATE(9), 8);
			w = (struct kprof_python_walk){.thread = 77};
			CHECK(run(&p, &w));
			CHECK_EQ(w.nr, 1);
			CHECK(w.frames[0].code == CODE(0));
			CHECK_EQ(w.flags, KPROF_PYTHON_FOUND | KPROF_PYTHON_BARE_EVAL);
		}
}

/* A hint whose thread state was freed, with all its values: it is in no list any more. */
static void test_stale_hint(void)
{
	struct kprof_python p = layout(12);
	static struct kprof_python_walk w;

	make_states(&p, 1);
	put(STATE(3) + p.tstate_interp, INTERP(0), 8);
	put(STATE(3) + p.tstate_thread, 77, 8);
	w = (struct kprof_python_walk){.thread = 77, .hint = STATE(3)};
	CHECK(run(&p, &w));
	CHECK(w.tstate == STATE(0));
	/* Memory that is gone. */
	w = (struct kprof_python_walk){.thread = 77, .hint = 8};
	CHECK(run(&p, &w));
	CHECK(w.tstate == STATE(0));
}

/* The newer interpreter runs on the thread; its caller's frames are the older one's. */
static void test_two_interpreters(void)
{
	struct kprof_python p = layout(11);
	static struct kprof_python_walk w;

	make_states(&p, 2);
	make_frame(&p, 0, 0, 1, true, false);
	make_frame(&p, 1, 0, 1, true, false);
	set_frame(&p, 0, FRAME(0));
	set_frame(&p, 1, FRAME(1));
	w = (struct kprof_python_walk){.thread = 77, .hint = STATE(1)};
	CHECK(run(&p, &w));
	CHECK_EQ(w.nr, 2);
	CHECK(w.frames[0].code == CODE(0) && w.frames[1].code == CODE(1));
	CHECK(w.frames[0].flags & KPROF_PYTHON_LAST && w.frames[1].flags & KPROF_PYTHON_LAST);
}

static void test_gil(void)
{
	static const uint32_t minors[] = {8, 11, 12};
	static struct kprof_python_walk w;

	for (size_t i = 0; i < ARRAY_SIZE(minors); i++) {
		struct kprof_python p = layout(minors[i]);
		uint64_t gil = p.runtime_gil == KPROF_PYTHON_NONE ? GIL : RUNTIME + p.runtime_gil;

		make_states(&p, 1);
		w = (struct kprof_python_walk){.thread = 77, .futex = gil + 100};
		put(gil + p.gil_holder, STATE(0), 8);
		CHECK(run(&p, &w));
		/* The last holder, which holds it no more. */
		CHECK_EQ(w.flags & (KPROF_PYTHON_HOLDS_GIL | KPROF_PYTHON_WAITS_GIL),
			 KPROF_PYTHON_WAITS_GIL);
		CHECK(!w.holder);
		put(gil + p.gil_locked, 1, 4);
		CHECK(run(&p, &w));
		CHECK_EQ(w.flags & (KPROF_PYTHON_HOLDS_GIL | KPROF_PYTHON_WAITS_GIL),
			 KPROF_PYTHON_HOLDS_GIL);
		put(gil + p.gil_holder, STATE(5), 8);
		CHECK(run(&p, &w));
		CHECK_EQ(w.flags & (KPROF_PYTHON_HOLDS_GIL | KPROF_PYTHON_WAITS_GIL),
			 KPROF_PYTHON_WAITS_GIL);
		CHECK(w.holder == STATE(5));
		w.futex = gil + 300;
		CHECK(run(&p, &w));
		CHECK(!(w.flags & KPROF_PYTHON_WAITS_GIL));
	}
}

/* A thread's own copy of the code (free-threaded 3.14), which no build at hand has. */
static void test_copied_code(void)
{
	struct kprof_python p = layout(14);
	static struct kprof_python_walk w;

	make_states(&p, 1);
	make_frame(&p, 0, 0, 0, false, false);
	set_frame(&p, 0, FRAME(0));
	put(CODE(0) + p.code_tlbc, BASE + 0xe000, 8);
	put(BASE + 0xe000, 3, 8);
	put(BASE + 0xe000 + 8 + 2 * 8, BASE + 0xe100, 8);
	put(FRAME(0) + p.frame_instr, BASE + 0xe100 + 24, 8);
	put(FRAME(0) + p.frame_tlbc, 2, 4);
	w = (struct kprof_python_walk){.thread = 77};
	CHECK(run(&p, &w));
	CHECK_EQ(w.nr, 1);
	CHECK_EQ(w.frames[0].instr, 24);
	CHECK(w.flags & KPROF_PYTHON_NO_GIL);
	/* A copy that there is not: the function is known, its line is not. */
	put(FRAME(0) + p.frame_tlbc, 3, 4);
	CHECK(run(&p, &w));
	CHECK_EQ(w.frames[0].instr, -1);
}

/* Frames and thread states in a circle; a frame that is not there. */
static void test_circles(void)
{
	static struct kprof_python_walk w;

	for (uint32_t minor = 8; minor <= 12; minor++) {
		struct kprof_python p = layout(minor);

		make_states(&p, 1);
		make_frame(&p, 0, FRAME(1), 1, false, false);
		make_frame(&p, 1, FRAME(0), 1, false, false);
		set_frame(&p, 0, FRAME(0));
		w = (struct kprof_python_walk){.thread = 77};
		CHECK(run(&p, &w));
		CHECK_EQ(w.nr, KPROF_PYTHON_MAX_FRAMES);
		CHECK(w.flags & KPROF_PYTHON_CUT);
		if (p.frame_owner != KPROF_PYTHON_NONE) {
			make_frame(&p, 0, FRAME(0), 1, false, true);
			CHECK(run(&p, &w));
			CHECK(!w.nr && w.flags & KPROF_PYTHON_BAD);
			CHECK(w.flags & KPROF_PYTHON_BARE_EVAL);
		}
		make_frame(&p, 0, 8, 1, false, false);
		CHECK(run(&p, &w));
		CHECK_EQ(w.nr, 1);
		CHECK(w.flags & KPROF_PYTHON_BAD);
		put(STATE(0) + p.tstate_next, STATE(0), 8);
		w.thread = 78;
		CHECK(run(&p, &w));
		CHECK(!w.nr);
		CHECK_EQ(w.flags, KPROF_PYTHON_MANY);
		put(STATE(0) + p.tstate_next, 0, 8);
		put(INTERP(0) + p.interp_next, INTERP(0), 8);
		CHECK(run(&p, &w));
	}
}

/* ---- code objects ---- */

static uint64_t make_str(uint64_t at, const struct kprof_python *p, uint32_t kind, bool ascii,
			 const void *chars, size_t nr)
{
	put(at + p->str_length, nr, 8);
	put(at + p->str_state,
	    kind << p->str_kind | 1u << (p->str_kind + 3) | (uint32_t)ascii << (p->str_kind + 4),
	    4);
	memcpy(image + (at - BASE) + (ascii ? p->str_ascii : p->str_compact), chars, nr * kind);
	return at;
}

static struct python_code *read_named(const struct kprof_python *p, uint32_t kind, bool ascii,
				      const void *chars, size_t nr)
{
	struct python_code *c = NULL;

	memset(image, 0, sizeof(image));
	put(CODE(0) + 8, BASE + 0x42, 8);
	put(CODE(0) + p->code_name, make_str(BASE + 0x1000, p, kind, ascii, chars, nr), 8);
	put(CODE(0) + p->code_filename, make_str(BASE + 0x800, p, 1, true, "a.py", 4), 8);
	put(CODE(0) + p->code_firstlineno, 10, 4);
	CHECK_EQ(python_code__read(p, &memory, CODE(0), &c), 0);
	return c;
}

static void test_strings(void)
{
	static char big[3000];
	struct kprof_python p = layout(10);
	struct python_code *c;

	c = read_named(&p, 1, true, "plain", 5);
	CHECK_STR(c->function, "plain");
	CHECK_STR(c->file, "a.py");
	CHECK_EQ(c->firstline, 10);
	python_code__free(c);
	c = read_named(&p, 1, false,
		       "d\xe9"
		       "but",
		       5);
	CHECK_STR(c->function, "d\xc3\xa9"
			       "but");
	python_code__free(c);
	c = read_named(&p, 2, false, u"\u65e5\xdc80x\0y", 5);
	CHECK_STR(c->function, "\xe6\x97\xa5\xef\xbf\xbdx\xef\xbf\xbdy");
	python_code__free(c);
	c = read_named(&p, 4, false, (const uint32_t[]){0x1f600, 0x110000, 'z'}, 3);
	CHECK_STR(c->function, "\xf0\x9f\x98\x80\xef\xbf\xbdz");
	python_code__free(c);
	memset(big, 'b', sizeof(big));
	c = read_named(&p, 1, true, big, sizeof(big));
	CHECK_EQ(strlen(c->function), 1024);
	python_code__free(c);
	c = read_named(&p, 1, true, "", 0);
	CHECK_STR(c->function, "");
	python_code__free(c);
	/* No code object; a string that says it is endless; one that is none. */
	put(CODE(0) + 8, 1, 8);
	CHECK_EQ(python_code__read(&p, &memory, CODE(0), &c), -ESTALE);
	put(CODE(0) + 8, BASE + 0x42, 8);
	put(BASE + 0x1000 + p.str_length, UINT64_MAX, 8);
	CHECK_EQ(python_code__read(&p, &memory, CODE(0), &c), -ESTALE);
	put(BASE + 0x1000 + p.str_length, 3, 8);
	put(BASE + 0x1000 + p.str_state, 0, 4);
	CHECK_EQ(python_code__read(&p, &memory, CODE(0), &c), -ESTALE);
	CHECK_EQ(python_code__read(&p, &memory, 1, &c), -EFAULT);
}

static uint32_t line(uint32_t minor, const void *table, size_t nr, int32_t instr)
{
	struct python_code c = {
		.minor = minor, .firstline = 10, .lines = (uint8_t *)table, .nr_lines = nr};

	return python_code__line(&c, instr);
}

static void test_lines(void)
{
	/* Python 3.9: six bytes on the first line, 300 lines on, and back by one. */
	static const uint8_t lnotab[] = {6, 127, 0, 127, 0, 46, 4, 0xff};
	/* 3.10: ten bytes on line 12, two without, the rest on line 11. */
	static const uint8_t ranges[] = {10, 2, 2, 0x80, 20, 0xff};
	/* 3.11: short form, one line on, none, long form three back, without columns 100 on. */
	static const uint8_t locations[] = {0x80, 0x11, 0xd9, 1, 2,    0xf8, 0xf1,
					    7,    0,    1,    1, 0xe8, 0x48, 3};

	CHECK_EQ(line(9, lnotab, sizeof(lnotab), 0), 10);
	CHECK_EQ(line(9, lnotab, sizeof(lnotab), 5), 10);
	CHECK_EQ(line(9, lnotab, sizeof(lnotab), 6), 310);
	CHECK_EQ(line(9, lnotab, sizeof(lnotab), 10), 309);
	CHECK_EQ(line(9, lnotab, sizeof(lnotab), -1), 10);
	CHECK_EQ(line(10, ranges, sizeof(ranges), 8), 12);
	CHECK_EQ(line(10, ranges, sizeof(ranges), 10), 0);
	CHECK_EQ(line(10, ranges, sizeof(ranges), 12), 11);
	CHECK_EQ(line(10, ranges, sizeof(ranges), 400), 0);
	CHECK_EQ(line(11, locations, sizeof(locations), 0), 10);
	CHECK_EQ(line(11, locations, sizeof(locations), 2), 11);
	CHECK_EQ(line(11, locations, sizeof(locations), 4), 11);
	CHECK_EQ(line(11, locations, sizeof(locations), 6), 0);
	CHECK_EQ(line(11, locations, sizeof(locations), 8), 8);
	CHECK_EQ(line(11, locations, sizeof(locations), 12), 108);
	CHECK_EQ(line(14, locations, sizeof(locations), 14), 0);
}

/* ---- hostile memory ---- */

static void test_hostile_walks(void)
{
	static struct kprof_python_walk w;
	uint32_t found = 0, deep = 0;

	for (uint64_t seed = 1; seed <= 4000; seed++) {
		struct kprof_python p = layout(8 + (uint32_t)(seed % 5));
		uint64_t state = 0;

		noise = hash64(seed);
		p.runtime = BASE + seed * 8;
		w = (struct kprof_python_walk){.futex = BASE};
		/* A thread that the memory has, so that walks get far. */
		fake_read(NULL, &state, 8, p.runtime + p.runtime_interpreters);
		fake_read(NULL, &state, 8, state + p.interp_threads);
		fake_read(NULL, &w.thread, 8, state + p.tstate_thread);
		w.hint = seed & 1 ? state : 0;
		CHECK(run(&p, &w));
		CHECK(w.nr <= KPROF_PYTHON_MAX_FRAMES);
		found += w.flags & KPROF_PYTHON_FOUND;
		deep += w.nr > 8;
	}
	noise = 0;
	CHECK(found > 100);
	CHECK(deep > 10);
}

static void test_hostile_codes(void)
{
	static struct python_thread threads[64];
	uint32_t read = 0;

	for (uint64_t seed = 1; seed <= 20000; seed++) {
		struct kprof_python p = layout(8 + (uint32_t)(seed % 5));
		uint64_t at = BASE + seed * 16;
		struct python_code *c;

		noise = hash64(seed);
		p.runtime = at;
		fake_read(NULL, &p.code_type, 8, at + 8);
		CHECK(python_threads(&p, &memory, threads, ARRAY_SIZE(threads)) <=
		      ARRAY_SIZE(threads));
		if (python_code__read(&p, &memory, at, &c))
			continue;
		read++;
		for (int32_t instr = -2; instr < 2000; instr += 37)
			CHECK(python_code__line(c, instr) <= INT32_MAX);
		python_code__free(c);
	}
	noise = 0;
	CHECK(read > 20);
}

static void test_hostile_tables(void)
{
	for (uint64_t seed = 1; seed <= 20000; seed++) {
		uint8_t table[64];
		size_t nr = seed % sizeof(table);

		for (size_t i = 0; i < nr; i++)
			table[i] = (uint8_t)hash64(seed * 64 + i);
		for (uint32_t minor = 9; minor <= 11; minor++)
			CHECK(line(minor, table, nr, (int32_t)(seed & 0xff)) <= INT32_MAX);
	}
}

static void test_hostile_descriptions(void)
{
	uint64_t words[PYTHON_DEBUG_WORDS];
	struct kprof_python p;
	uint32_t taken = 0;

	for (uint64_t seed = 1; seed <= 20000; seed++) {
		for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
			words[i] = hash64(seed * 128 + i);
			words[i] = words[i] % (16 * ARRAY_SIZE(words)) ? words[i] >> 32 & 0x7f
								       : words[i];
		}
		if (!python_layout_described(13 + (seed & 1), words, &p))
			continue;
		taken++;
		CHECK(p.frame_bytes < KPROF_PYTHON_FRAME_BYTES);
		CHECK(p.frame_previous + 8 <= KPROF_PYTHON_FRAME_BYTES);
		CHECK(p.interp_threads < 1 << 20);
	}
	CHECK(taken);
	CHECK(!python_layout_described(15, words, &p));
}

UNIT_MAIN(TEST(test_walk), TEST(test_unfilled_cframe), TEST(test_stale_hint),
	  TEST(test_two_interpreters), TEST(test_gil), TEST(test_copied_code), TEST(test_circles),
	  TEST(test_strings), TEST(test_lines), TEST(test_hostile_walks), TEST(test_hostile_codes),
	  TEST(test_hostile_tables), TEST(test_hostile_descriptions))
