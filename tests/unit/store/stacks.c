// SPDX-License-Identifier: BSD-2-Clause
/*
 * Modules, frames, stacks and samples that no writer writes, and what an older reader makes of
 * them.
 */
#include "store_image.h"

/* A frame without a name, so that stacks have something to refer to. */
#define FRAME_1 "\x12\x06\x01\x01\x00\x00\x00\x00"

static void malformed_tables_end_the_reading(void)
{
	static const struct {
		const char *description, *bytes;
		size_t nr;
		uint32_t records; /* all but the last one are good */
	} cases[] = {
		{"module out of order", BYTES("\x11\x04\x02\x00\x01\x00"), 1},
		{"module 0", BYTES("\x11\x04\x00\x00\x01\x00"), 1},
		{"module, undefined path", BYTES("\x11\x04\x01\x00\x02\x00"), 1},
		{"module, undefined build id", BYTES("\x11\x04\x01\x00\x01\x02"), 1},
		{"module, field missing", BYTES("\x11\x03\x01\x00\x01"), 1},
		{"module defined twice", BYTES("\x11\x04\x01\x00\x01\x00\x11\x04\x01\x00\x01\x00"),
		 2},
		{"frame 0", BYTES("\x12\x06\x00\x01\x00\x00\x00\x00"), 1},
		{"frame out of order", BYTES("\x12\x06\x02\x01\x00\x00\x00\x00"), 1},
		{"frame, undefined module", BYTES("\x12\x06\x01\x01\x01\x00\x00\x00"), 1},
		{"frame, undefined operator", BYTES("\x12\x06\x01\x01\x00\x00\x02\x00"), 1},
		{"frame, number of lines missing", BYTES("\x12\x05\x01\x01\x00\x00\x00"), 1},
		{"frame, line missing", BYTES("\x12\x06\x01\x01\x00\x00\x00\x01"), 1},
		{"frame, line cut", BYTES("\x12\x09\x01\x01\x00\x00\x00\x01\x01\x00\x00"), 1},
		{"frame, undefined function",
		 BYTES("\x12\x0a\x01\x01\x00\x00\x00\x01\x02\x00\x00\x00"), 1},
		{"frame, undefined file", BYTES("\x12\x0a\x01\x01\x00\x00\x00\x01\x00\x02\x00\x00"),
		 1},
		{"frame, line over 32 bits",
		 BYTES("\x12\x0e\x01\x01\x00\x00\x00\x01\x01\x01\x80\x80\x80\x80\x10\x00"), 1},
		{"frame, huge number of lines",
		 BYTES("\x12\x0a\x01\x01\x00\x00\x00\xff\xff\xff\xff\x0f"), 1},
		{"replaced by a wrong one", BYTES(FRAME_1 "\x12\x06\x01\x01\x01\x00\x00\x00"), 2},
		{"stack of nothing", BYTES("\x13\x03\x01\x00\x00"), 1},
		{"stack of an undefined frame", BYTES("\x13\x03\x01\x00\x01"), 1},
		{"stack out of order", BYTES(FRAME_1 "\x13\x03\x02\x00\x01"), 2},
		{"stack 0", BYTES(FRAME_1 "\x13\x03\x00\x00\x01"), 2},
		{"stack that is its own parent", BYTES(FRAME_1 "\x13\x03\x01\x01\x01"), 2},
		{"stack of a later one", BYTES(FRAME_1 "\x13\x03\x01\x02\x01"), 2},
		{"stack, parent over 32 bits",
		 BYTES(FRAME_1 "\x13\x07\x01\x80\x80\x80\x80\x10\x01"), 2},
		{"stack, field missing", BYTES(FRAME_1 "\x13\x02\x01\x00"), 2},
		{"stack defined twice", BYTES(FRAME_1 "\x13\x03\x01\x00\x01\x13\x03\x01\x00\x01"),
		 3},
	};
	struct image m;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		image__basics(&m);
		image__tables(&m, cases[i].records, cases[i].bytes, cases[i].nr);
		check_refused(&m, cases[i].description, cases[i].records - 1);
	}
}

/* A frame of so many lines, all of them there. */
static size_t frame_of(uint8_t *to, uint32_t nr_lines)
{
	const uint8_t fields[] = {1, STORE_FRAME_NATIVE, 0, 0, 0, (uint8_t)nr_lines};
	size_t bytes = sizeof(fields) + nr_lines * 4;

	to[0] = STORE_FRAME;
	to[1] = (uint8_t)(bytes | 0x80); /* a varint of two bytes */
	to[2] = (uint8_t)(bytes >> 7);
	memcpy(to + 3, fields, sizeof(fields));
	memset(to + 3 + sizeof(fields), 1, nr_lines * 4);
	return 3 + bytes;
}

static void a_frame_has_at_most_64_lines(void)
{
	uint8_t bytes[512];
	struct store_reader_info info;
	struct seen seen;
	struct image m;

	image__basics(&m);
	image__tables(&m, 1, bytes, frame_of(bytes, STORE_MAX_LINES));
	image__tables(&m, 1, finish, sizeof(finish));
	CHECK_EQ(read_image(&m, &seen, &info), 0);
	CHECK(info.complete);
	CHECK_EQ(seen.frames, 1);
	image__basics(&m);
	image__tables(&m, 1, bytes, frame_of(bytes, STORE_MAX_LINES + 1));
	check_refused(&m, "65 lines", 0);
}

/* What 1.3 may add to them: fields behind the last line, behind the last field. */
static void what_a_newer_minor_version_adds_is_passed_over(void)
{
	static const uint8_t added[] = {
		STORE_MODULE,
		6,
		1,
		9,
		1,
		0,
		0xff,
		0xff,
		STORE_FRAME,
		12,
		1,
		9,
		1,
		7,
		1,
		1,
		1,
		1,
		3,
		0,
		0xff,
		0xff,
		STORE_STACK,
		4,
		1,
		0,
		1,
		0xff,
	};
	struct store_reader_info info;
	struct store_record got;
	struct store_reader *r;
	struct seen seen;
	struct image m;

	image__start(&m, STORE_FORMAT_MAJOR, STORE_FORMAT_MINOR + 1);
	image__tables(&m, BASICS, basics, sizeof(basics));
	image__tables(&m, 3, added, sizeof(added));
	image__tables(&m, 1, finish, sizeof(finish));
	r = open_image(&m);
	CHECK_EQ(read_all(r, STORE_READ_ALL, &seen, &info), 0);
	CHECK(info.complete);
	CHECK_EQ(seen.records, BASICS + 3 + 1);
	store_reader__rewind(r, STORE_READ_TABLES);
	while (store_reader__next(r, &got) == 1 && got.type != STORE_FRAME)
		;
	CHECK_EQ(got.type, STORE_FRAME);
	CHECK_EQ(got.frame.kind, 9);
	CHECK_EQ(got.frame.address, 7);
	CHECK_EQ(got.frame.nr_lines, 1);
	CHECK_EQ(got.frame.lines[0].line, 3);
	store_reader__close(r);
}

/* Samples far apart and near to each other, up and down, over several chunks. */
static void many_samples_come_back(void)
{
	enum { MANY = 40000 };
	const char *path = in_scratch("samples.kprof");
	struct store_writer *w = new_writer(path);
	struct store_record r = {STORE_SAMPLE, .sample = {0}}, got;
	struct store_reader_info info;
	struct store_reader *reader = NULL;
	uint64_t nr = 0;

	put_all(w, sample_tables, ARRAY_SIZE(sample_tables));
#define MAKE(i)                                                           \
	(r.sample.time_ns = (i) % 1000 ? (i)*10101010 : UINT64_MAX - (i), \
	 r.sample.thread = (i) % 2, r.sample.stack = (i) % 4,             \
	 r.sample.weight_ns = (i) % 77 ? 10101010 : 1ull << (i) % 64,     \
	 r.sample.flags = (uint32_t)((i) % 3 | (i) % 11 << 8))
	for (uint64_t i = 0; i < MANY; i++) {
		MAKE(i);
		CHECK_EQ(store_writer__put(w, &r), 0);
	}
	CHECK_EQ(store_writer__finish(w, 1), 0);
	CHECK_EQ(store_reader__open(path, &reader), 0);
	while (store_reader__next(reader, &got) == 1) {
		if (got.type != STORE_SAMPLE)
			continue;
		MAKE(nr);
		CHECK(records_equal(&got, &r));
		nr++;
	}
#undef MAKE
	store_reader__info(reader, &info);
	CHECK_EQ(nr, MANY);
	CHECK_EQ(info.samples, MANY);
	store_reader__close(reader);
}

UNIT_MAIN({"(set-up)", scratch__make}, TEST(malformed_tables_end_the_reading),
	  TEST(a_frame_has_at_most_64_lines), TEST(what_a_newer_minor_version_adds_is_passed_over),
	  TEST(many_samples_come_back), {"(clean-up)", scratch__remove})
