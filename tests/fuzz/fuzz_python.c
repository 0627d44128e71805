// SPDX-License-Identifier: BSD-2-Clause
/*
 * CPython seen from outside, in memory that may hold anything. The first byte says what is done:
 * 'w' a thread's stack is walked and its code objects read, 'n' threads are named (both in memory
 * as in python_image.h), 't' any bytes are a line table, 'l' lines are encoded as each release does
 * and must come back, 'm' stacks are merged.
 */
#include "bpf/python.h"
#include "fuzz.h"
#include "python_image.h"
#include "symbol/python/priv.h"
#include "util/utf8.h"

/* ---- memory ---- */

#define MOST_PIECES 512
#define MOST_READS 110000 /* those that python_thread_names() counts, and what its names take */

static struct {
	struct {
		uint64_t address, bytes;
		const uint8_t *at;
	} pieces[MOST_PIECES];
	size_t nr, last;
	uint64_t reads;
} memory;

static void load(struct fuzz_input in)
{
	memory.nr = memory.last = memory.reads = 0;
	while (in.left && memory.nr < MOST_PIECES) {
		uint64_t address = fuzz_number(&in, 8), bytes = fuzz_number(&in, 2);

		if (bytes > in.left)
			bytes = in.left;
		memory.pieces[memory.nr].address = address;
		memory.pieces[memory.nr].bytes = bytes;
		memory.pieces[memory.nr++].at = in.at;
		in.at += bytes;
		in.left -= bytes;
	}
}

static bool copy_from(size_t i, void *to, uint64_t bytes, uint64_t address)
{
	uint64_t at = address - memory.pieces[i].address;

	if (at >= memory.pieces[i].bytes || bytes > memory.pieces[i].bytes - at)
		return false;
	memcpy(to, memory.pieces[i].at + at, bytes);
	memory.last = i;
	return true;
}

static int read_memory(void *ctx, void *to, size_t bytes, uint64_t address)
{
	REQUIRE(memory.reads++ < MOST_READS);
	if (memory.nr && copy_from(memory.last, to, bytes, address))
		return 0;
	for (size_t i = 0; i < memory.nr; i++)
		if (copy_from(i, to, bytes, address))
			return 0;
	return -1;
}

static int python_read(void *to, kprof_u32 bytes, kprof_u64 address)
{
	return read_memory(NULL, to, bytes, address);
}

static const struct python_memory reader = {.read = read_memory};

static void check_text(const char *text)
{
	size_t len = strlen(text);

	for (size_t i = 0, n; i < len; i += n) {
		n = utf8_len(text + i, len - i);
		REQUIRE(n);
	}
}

/* ---- walks and names ---- */

static void check_line(const struct python_code *c, int32_t instr)
{
	REQUIRE(python_code__line(c, instr) <= INT32_MAX);
}

static void use_code(const struct kprof_python *p, const struct kprof_python_frame *f)
{
	struct python_code *c;

	if (python_code__read(p, &reader, f->code, &c))
		return;
	check_text(c->function);
	check_text(c->file);
	check_line(c, f->instr);
	check_line(c, 0);
	if (!python_code__read_loops(p, &reader, f->code, c))
		python_code__loop(c, f->instr);
	python_code__free(c);
}

static void walk(const struct kprof_python *p, uint64_t thread, uint64_t hint)
{
	struct kprof_python_walk w = {.thread = thread, .hint = hint, .futex = p->runtime};
	int over = 0, steps = 0;

	memory.reads = 0;
	python_begin(&w);
	for (; !over && steps < KPROF_PYTHON_MAX_STEPS; steps++)
		over = python_step(p, &w);
	REQUIRE(over && w.nr <= KPROF_PYTHON_MAX_FRAMES);
	REQUIRE(w.first <= w.nr && (!w.nr || w.flags & KPROF_PYTHON_FOUND));
	for (uint32_t i = 0; i < w.nr; i++)
		use_code(p, &w.frames[i]);
	if (w.tstate && !hint)
		walk(p, thread, w.tstate);
}

static void list_threads(const struct kprof_python *p)
{
	static struct python_thread threads[64];
	size_t nr = python_threads(p, &reader, threads, 64);

	REQUIRE(nr <= 64);
	for (size_t i = 0; i < nr; i++)
		REQUIRE(threads[i].tstate);
}

static int on_module(void *ctx, uint64_t module, const char *path)
{
	REQUIRE(module && *path && strlen(path) <= PYTHON_NN_PATH_MOST);
	check_text(path);
	return 0;
}

static void use_modules(const struct kprof_python *p, uint64_t address)
{
	uint64_t code = 0;
	char *class;

	memory.reads = 0;
	python_nn__call(p, &reader, &code);
	class = python_nn__class(p, &reader, address);
	if (class)
		check_text(class);
	free(class);
	memory.reads = 0;
	REQUIRE(python_nn__tree(p, &reader, address, on_module, NULL) == 0);
}

static void name_threads(const struct kprof_python *p, uint64_t thread)
{
	struct python_thread_name *names = calloc(64, sizeof(*names));
	size_t nr;

	REQUIRE(names);
	nr = python_thread_names(p, &reader, names, 64);
	REQUIRE(nr <= 64);
	for (size_t i = 0; i < nr; i++) {
		REQUIRE(names[i].thread && names[i].name);
		check_text(names[i].name);
	}
	python_thread_name(names, nr, thread);
	python_thread_names__free(names, nr);
	use_modules(p, thread);
}

static void use_memory(const uint8_t *data, size_t bytes)
{
	struct python_elf *elf = calloc(1, sizeof(*elf));
	struct kprof_python python;
	struct python_image head = {0};

	REQUIRE(elf);
	memcpy(&head, data, bytes < sizeof(head) ? bytes : sizeof(head));
	if (bytes > sizeof(head))
		load((struct fuzz_input){data + sizeof(head), bytes - sizeof(head)});
	else
		memory.nr = 0;
	elf->version = head.version;
	elf->runtime = head.runtime;
	elf->code_type = head.code_type;
	if (!python_locate(elf, 0, &reader, &python)) {
		REQUIRE(python.frame_bytes && python.frame_bytes < KPROF_PYTHON_FRAME_BYTES);
		list_threads(&python);
		memory.reads = 0;
		if (head.what == 'n')
			name_threads(&python, head.thread);
		else
			walk(&python, head.thread, 0);
	}
	free(elf);
}

/* ---- line tables ---- */

static void use_table(struct fuzz_input in)
{
	struct python_code c = {
		.minor = 8 + (uint32_t)fuzz_number(&in, 1) % 7,
		.firstline = (uint32_t)fuzz_number(&in, 4),
		.nr_lines = in.left,
		.lines = (uint8_t *)fuzz_rest(&in),
	};

	for (int32_t instr = 0; instr < 64; instr++)
		check_line(&c, instr * 3);
	check_line(&c, INT32_MAX);
	check_line(&c, -1);
	free(c.lines);
}

#define MOST_RANGES 64
#define MOST_TABLE_BYTES (MOST_RANGES * 24)

struct range {
	uint32_t bytes, line; /* line 0: the instructions have none */
	int32_t delta;
	uint8_t form; /* of 3.11 and later: which of the possible ones */
};

static uint8_t *put_varint(uint8_t *to, uint32_t value)
{
	for (; value >= 64; value >>= 6)
		*to++ = (uint8_t)(0x40 | (value & 0x3f));
	*to++ = (uint8_t)value;
	return to;
}

static uint8_t *put_svarint(uint8_t *to, int32_t value)
{
	return put_varint(to, value < 0 ? (uint32_t)-value << 1 | 1 : (uint32_t)value << 1);
}

/* 3.11 and later (Python/assemble.c, write_location_info_entry). */
static uint8_t *put_location(uint8_t *to, const struct range *r)
{
	uint8_t *head = to++, form;

	if (!r->line) {
		form = 15;
	} else if (!r->delta && r->form & 1) {
		form = r->form >> 1 & 7;
		*to++ = r->form & 0x7f;
	} else if (r->delta >= 0 && r->delta < 3 && r->form & 2) {
		form = (uint8_t)(10 + r->delta);
		*to++ = r->form & 0x7f;
		*to++ = 5;
	} else {
		form = r->form & 4 ? 13 : 14;
		to = put_svarint(to, r->delta);
		if (form == 14) {
			to = put_varint(to, r->form);
			to = put_varint(to, 70);
			to = put_varint(to, 0);
		}
	}
	*head = (uint8_t)(0x80 | form << 3 | (r->bytes / 2 - 1));
	return to;
}

/* One range, as the release writes it. *pending: bytes of code since the last entry, up to 3.9. */
static uint8_t *put_range(uint8_t *to, uint32_t minor, const struct range *r, uint32_t *pending)
{
	if (minor >= 11)
		return put_location(to, r);
	if (minor == 10) {
		*to++ = (uint8_t)r->bytes;
		*to++ = r->line ? (uint8_t)r->delta : 0x80;
		return to;
	}
	if (r->line) {
		for (; *pending > 255; *pending -= 255) {
			*to++ = 255;
			*to++ = 0;
		}
		*to++ = (uint8_t)*pending;
		*to++ = (uint8_t)r->delta;
		*pending = 0;
	}
	*pending += r->bytes;
	return to;
}

static void lines_come_back(struct fuzz_input in)
{
	uint32_t minor = 8 + (uint32_t)fuzz_number(&in, 1) % 7, line, pending = 0, instr = 0, last;
	struct python_code c = {.minor = minor, .firstline = 1 + (uint32_t)fuzz_number(&in, 2)};
	struct range ranges[MOST_RANGES];
	uint8_t table[MOST_TABLE_BYTES], *to = table;
	size_t nr = 0;

	for (line = c.firstline; in.left && nr < MOST_RANGES; nr++) {
		struct range *r = &ranges[nr];

		r->bytes = ((uint32_t)fuzz_number(&in, 1) % 8 + 1) * 2;
		r->delta = (int8_t)fuzz_number(&in, 1);
		r->form = (uint8_t)fuzz_number(&in, 1);
		if (minor >= 11)
			r->delta *= r->form + 1;
		else if (r->delta == -128)
			r->delta = 0;
		if ((int64_t)line + r->delta < 1)
			r->delta = -r->delta;
		r->line = r->form == 0xff ? 0 : line + (uint32_t)r->delta;
		line = r->line ? r->line : line;
		to = put_range(to, minor, r, &pending);
	}
	c.lines = table;
	c.nr_lines = (size_t)(to - table);
	last = c.firstline;
	for (size_t i = 0; i < nr; i++) {
		/* Up to 3.9 each instruction has a line. */
		last = ranges[i].line || minor >= 10 ? ranges[i].line : last;
		for (uint32_t end = instr + ranges[i].bytes; instr < end; instr += 2)
			REQUIRE(python_code__line(&c, (int32_t)instr) == last);
	}
	REQUIRE(minor < 10 || !python_code__line(&c, (int32_t)instr));
}

/* ---- merging ---- */

#define MOST_FRAMES 64

struct stacks {
	uint8_t kinds[MOST_FRAMES];
	struct kprof_python_frame frames[MOST_FRAMES];
};

static enum python_native kind_of(void *ctx, size_t i)
{
	return ((struct stacks *)ctx)->kinds[i];
}

/* All Python frames are there, and all native ones that are not the interpreter's, in order. */
static void check_merged(const struct python_stacks *s, const struct python_merged *m, size_t nr)
{
	size_t python = 0, native = 0, evals = 0;

	for (size_t i = 0; i < nr; i++) {
		if (m[i].python) {
			REQUIRE(m[i].index == python++);
			continue;
		}
		for (; native < m[i].index; native++) {
			REQUIRE(s->native(s->ctx, native) != PYTHON_NATIVE_OTHER);
			evals += s->native(s->ctx, native) == PYTHON_NATIVE_EVAL;
		}
		REQUIRE(m[i].index == native++ && m[i].index < s->nr_native);
		REQUIRE(s->native(s->ctx, m[i].index) != PYTHON_NATIVE_HIDE);
	}
	for (; native < s->nr_native; native++) {
		REQUIRE(s->native(s->ctx, native) != PYTHON_NATIVE_OTHER);
		evals += s->native(s->ctx, native) == PYTHON_NATIVE_EVAL;
	}
	REQUIRE(python == s->nr_frames);
	REQUIRE(evals <=
		s->nr_frames); /* each frame that is left out stands for some of Python's */
}

static void merge(struct fuzz_input in)
{
	struct python_merged merged[2 * MOST_FRAMES];
	struct stacks stacks = {0};
	struct python_stacks s = {.native = kind_of, .ctx = &stacks, .frames = stacks.frames};
	size_t nr;

	s.flags = (uint32_t)fuzz_number(&in, 1);
	s.native_whole = fuzz_number(&in, 1) & 1;
	s.nr_native = fuzz_number(&in, 1) % (MOST_FRAMES + 1);
	s.nr_frames = fuzz_number(&in, 1) % (MOST_FRAMES + 1);
	for (size_t i = 0; i < s.nr_native; i++)
		stacks.kinds[i] = fuzz_number(&in, 1) & 3;
	for (size_t i = 0; i < s.nr_frames; i++)
		stacks.frames[i].flags = (uint32_t)fuzz_number(&in, 1);
	nr = python_interleave(&s, merged);
	REQUIRE(nr <= s.nr_native + s.nr_frames);
	check_merged(&s, merged, nr);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct fuzz_input in = {data, bytes};

	switch (fuzz_number(&in, 1)) {
	case 't':
		use_table(in);
		break;
	case 'l':
		lines_come_back(in);
		break;
	case 'm':
		merge(in);
		break;
	default:
		use_memory(data, bytes);
	}
	return 0;
}
