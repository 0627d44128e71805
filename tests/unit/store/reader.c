// SPDX-License-Identifier: BSD-2-Clause
/*
 * Captures that are cut, damaged, of another version or malicious: the reader delivers what is
 * whole, says what is not, and never hands out a reference to nothing.
 */
#include <zstd.h>

#include "store_image.h"

#define MAX_CHUNKS 16

/* ---- cut and damaged ---- */

/* Where the chunks of a file end, the file's head first; how many there are. */
static int boundaries(const uint8_t *bytes, size_t nr, size_t *ends)
{
	struct store_chunk_head h;
	int n = 0;

	ends[n++] = STORE_FILE_HEAD_BYTES;
	while (ends[n - 1] < nr && n < MAX_CHUNKS) {
		CHECK(store_chunk_head__unpack(&h, bytes + ends[n - 1]));
		ends[n] = ends[n - 1] + STORE_CHUNK_HEAD_BYTES + h.stored_bytes;
		n++;
	}
	return n;
}

static void cut_at_every_byte(void)
{
	const char *path = in_scratch("sample.kprof"), *cut = in_scratch("cut.kprof");
	size_t nr, ends[MAX_CHUNKS], records[MAX_CHUNKS] = {0};
	struct store_reader *r;
	struct store_reader_info info;
	struct seen seen;
	uint8_t *bytes;
	int nr_ends, whole = -1;

	write_sample(path);
	bytes = slurp(path, &nr);
	nr_ends = boundaries(bytes, nr, ends);
	CHECK_EQ(nr_ends, 1 + 8);
	for (size_t n = 0; n <= nr; n++) {
		spit(cut, bytes, n);
		if (n < STORE_FILE_HEAD_BYTES) {
			CHECK_EQ(store_reader__open(cut, &r), -EINVAL);
			CHECK(strstr(kprof_error_cause(), n ? "cut after" : "is empty"));
			continue;
		}
		whole += whole + 1 < nr_ends && n == ends[whole + 1];
		CHECK_EQ(store_reader__open(cut, &r), 0);
		for (int mode = STORE_READ_ALL; mode <= STORE_READ_DETAILS; mode++) {
			CHECK_EQ(read_all(r, (enum store_read_mode)mode, &seen, &info), 0);
			CHECK_EQ(info.complete, n == nr);
			CHECK_EQ(info.lost_bytes, n - ends[whole]);
			CHECK_EQ(info.size_bytes, n);
			if (mode != STORE_READ_ALL)
				continue;
			if (n == ends[whole])
				records[whole] = seen.records;
			CHECK_EQ(seen.records, records[whole]);
			CHECK(!whole || records[whole] > records[whole - 1]);
		}
		store_reader__close(r);
	}
	CHECK_EQ(whole, nr_ends - 1);
	free(bytes);
}

static void a_flipped_bit_anywhere_is_noticed(void)
{
	const char *path = in_scratch("sample.kprof"), *flipped = in_scratch("flipped.kprof");
	size_t nr, ends[MAX_CHUNKS];
	struct store_reader *r;
	struct store_reader_info info;
	struct seen seen;
	uint8_t *bytes;
	int at = 0;

	write_sample(path);
	bytes = slurp(path, &nr);
	boundaries(bytes, nr, ends);
	for (size_t i = 0; i < nr; i++) {
		at += i == ends[at];
		for (int bit = 0; bit < 8; bit++) {
			bytes[i] ^= (uint8_t)(1 << bit);
			spit(flipped, bytes, nr);
			bytes[i] ^= (uint8_t)(1 << bit);
			if (i < STORE_FILE_HEAD_BYTES) {
				CHECK_EQ(store_reader__open(flipped, &r), -EINVAL);
				continue;
			}
			CHECK_EQ(store_reader__open(flipped, &r), 0);
			for (int mode = STORE_READ_ALL; mode <= STORE_READ_DETAILS; mode++) {
				CHECK_EQ(read_all(r, (enum store_read_mode)mode, &seen, &info), 0);
				CHECK(!info.complete);
				/* all in front of the damaged chunk, nothing of it */
				CHECK_EQ(info.lost_bytes, nr - ends[at - 1]);
			}
			store_reader__close(r);
		}
	}
	free(bytes);
}

static void bytes_after_the_end_are_lost_not_read(void)
{
	struct image m;
	struct store_reader_info info;
	struct seen seen;

	image__basics(&m);
	image__tables(&m, 1, finish, sizeof(finish));
	image__tables(&m, BASICS, basics, sizeof(basics));
	CHECK_EQ(read_image(&m, &seen, &info), 0);
	CHECK(info.complete);
	CHECK_EQ(seen.records, BASICS + 1);
	CHECK_EQ(info.lost_bytes, STORE_CHUNK_HEAD_BYTES + sizeof(basics));
}

/* ---- versions ---- */

static void what_a_newer_minor_version_adds_is_passed_over(void)
{
	static const uint8_t added_tables[] = {
		42,           3,    0xff, 0xff, 0xff,          /* an unknown type */
		0x80,         0x80, 0x80, 0x80, 0x20, 1,    0, /* 2^33, which is not 0 */
		STORE_CLOCK,  4,    1,    2,    0xff, 0xff,    /* with a field more */
		STORE_BEGIN,  1,    0,                         /* no table record */
		STORE_STRING, 2,    2,    'b',
	};
	uint8_t payload[64];
	struct store_chunk_head unknown = {.type = 77, .codec = 9, .raw_bytes = 100};
	struct store_chunk_head events = {.type = STORE_CHUNK_EVENTS, .records = 2, .begins = 1};
	struct image m;
	struct store_reader_info info;
	struct seen seen;
	size_t nr;

	events.first_ns = 100;
	events.last_ns = 110;
	image__start(&m, STORE_FORMAT_MAJOR, STORE_FORMAT_MINOR + 1);
	image__tables(&m, BASICS, basics, sizeof(basics));
	image__chunk(&m, unknown, "??????????", 10);
	image__tables(&m, 5, added_tables, sizeof(added_tables));
	/* thread 0, begin, unknown operation 5 with 3 bytes, end */
	nr = columns(payload, "\x02\x05\x17\x03\xff\xff\xff\x00", 8, "\x00\x0a", 2, "", 0);
	image__chunk(&m, events, payload, nr);
	image__tables(&m, 1, finish, sizeof(finish));
	CHECK_EQ(read_image(&m, &seen, &info), 0);
	CHECK(info.complete);
	CHECK_EQ(info.minor, STORE_FORMAT_MINOR + 1);
	CHECK_EQ(info.lost_bytes, 0);
	CHECK_EQ(seen.records, BASICS + 2 + 2 + 1);
}

static void another_major_version_is_refused(void)
{
	const char *path = in_scratch("major.kprof");
	struct store_reader *r;
	struct image m;

	for (int step = -1; step <= 1; step += 2) {
		image__start(&m, (uint16_t)(STORE_FORMAT_MAJOR + step), 3);
		spit(path, m.bytes, m.nr);
		CHECK_EQ(store_reader__open(path, &r), -EPROTONOSUPPORT);
		CHECK(strstr(kprof_error_cause(), step > 0 ? "format 2.3" : "format 0.3"));
		CHECK(kprof_error_hint());
	}
}

static void an_unknown_compression_is_an_error(void)
{
	struct store_chunk_head h = {.type = STORE_CHUNK_TABLES, .codec = 7, .records = BASICS};
	struct image m;
	struct store_reader_info info;
	struct seen seen;

	image__start(&m, STORE_FORMAT_MAJOR, STORE_FORMAT_MINOR);
	image__chunk(&m, h, basics, sizeof(basics));
	CHECK_EQ(read_image(&m, &seen, &info), -EPROTONOSUPPORT);
	CHECK_EQ(seen.records, 0);
}

static void what_is_no_capture_is_refused(void)
{
	const char *path = in_scratch("other");
	struct store_reader *r;
	struct image m;

	CHECK_EQ(store_reader__open(in_scratch("missing"), &r), -ENOENT);
	CHECK_EQ(store_reader__open(scratch, &r), -EISDIR);
	CHECK(strstr(kprof_error_cause(), "is a directory") && kprof_error_hint());
	CHECK_EQ(store_reader__open("/dev/null", &r), -EINVAL);
	CHECK_EQ(mkfifo(path, 0600), 0);
	CHECK_EQ(store_reader__open(path, &r), -EINVAL); /* at once */
	unlink(path);
	spit(path, "{\"traceEvents\": []}", 19);
	CHECK_EQ(store_reader__open(path, &r), -EINVAL);
	CHECK(strstr(kprof_error_cause(), "not a kprof capture"));
	/* the other byte order: the mark is swapped */
	image__start(&m, STORE_FORMAT_MAJOR, 0);
	memcpy(m.bytes + 12, "\x1a\x2b\x3c\x4d", 4);
	spit(path, m.bytes, m.nr);
	CHECK_EQ(store_reader__open(path, &r), -EINVAL);
	CHECK(strstr(kprof_error_cause(), "byte order"));
}

/* ---- well sealed, but wrong inside ---- */

static void malformed_tables_end_the_reading(void)
{
	static const struct {
		const char *description, *bytes;
		size_t nr;
		uint32_t records;
	} cases[] = {
		{"string out of order", BYTES("\x02\x02\x03x"), 1},
		{"string defined twice", BYTES("\x02\x02\x01x"), 1},
		{"string 0", BYTES("\x02\x02\x00x"), 1},
		{"string id over 32 bits", BYTES("\x02\x06\x82\x80\x80\x80\x10x"), 1},
		{"NUL in a string", BYTES("\x02\x04\x02x\x00y"), 1},
		{"string without id", BYTES("\x02\x00"), 1},
		{"length past the chunk", BYTES("\x02\x7f\x02x"), 1},
		{"huge length", BYTES("\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x02x"), 1},
		{"varint without end", BYTES("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), 1},
		{"varint over 64 bits", BYTES("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02\x00"), 1},
		{"type only", BYTES("\x02"), 1},
		{"metadata without key", BYTES("\x01\x02\x00\x00"), 1},
		{"metadata, key not ended", BYTES("\x01\x02kk"), 1},
		{"metadata, value not ended", BYTES("\x01\x03k\x00v"), 1},
		{"process, undefined name", BYTES("\x03\x07\x01\x01\x01\x02\x00\x00\x00"), 1},
		{"process, field missing", BYTES("\x03\x06\x01\x01\x01\x01\x00\x00"), 1},
		{"pid over 32 bits", BYTES("\x03\x0b\x80\x80\x80\x80\x10\x01\x01\x01\x00\x00\x00"),
		 1},
		{"thread out of order", BYTES("\x04\x06\x02\x01\x01\x01\x00\x00"), 1},
		{"thread, undefined name", BYTES("\x04\x06\x01\x01\x01\x02\x00\x00"), 1},
		{"what out of order", BYTES("\x05\x06\x03\x01\x00\x01\x00\x00"), 1},
		{"what, undefined name", BYTES("\x05\x06\x02\x02\x00\x01\x00\x00"), 1},
		{"what, undefined source", BYTES("\x05\x06\x02\x01\x00\x01\x01\x00"), 1},
		{"gap, undefined reason", BYTES("\x08\x05\x01\x01\x02\x00\x00"), 1},
		{"source out of order", BYTES("\x09\x0a\x02\x01\x00\x00\x00\x00\x00\x00\x00\x00"),
		 1},
		{"fewer records than promised", BYTES("\x2a\x00"), 2},
		{"more records than promised", BYTES("\x2a\x00\x2a\x00"), 1},
	};
	struct image m;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		image__basics(&m);
		image__tables(&m, cases[i].records, cases[i].bytes, cases[i].nr);
		check_refused(&m, cases[i].description, 0);
	}
}

static void malformed_events_end_the_reading(void)
{
	const struct store_chunk_head events = {
		.type = STORE_CHUNK_EVENTS, .first_ns = 100, .last_ns = 500, .records = 63};
	/* control: 02 thread 0, 05 begin 1, 00 end; times from 100 to 110 */
	static const struct {
		const char *description, *control;
		size_t nr_control;
		const char *low;
		size_t nr_low;
		const char *high;
		size_t nr_high;
		uint32_t records, begins;
	} cases[] = {
		{"no thread", BYTES("\x05"), BYTES("\x00"), BYTES(""), 1, 1},
		{"undefined thread", BYTES("\x06\x05"), BYTES("\x00"), BYTES(""), 1, 1},
		{"what 0", BYTES("\x02\x01"), BYTES("\x00"), BYTES(""), 1, 1},
		{"undefined what", BYTES("\x02\x09"), BYTES("\x00"), BYTES(""), 1, 1},
		{"huge what", BYTES("\x02\x85\x80\x80\x80\x80\x80\x01"), BYTES("\x00"), BYTES(""),
		 1, 1},
		{"huge flags", BYTES("\x02\x80\x80\x80\x80\x80\x01"), BYTES("\x00"), BYTES(""), 1,
		 0},
		{"time missing", BYTES("\x02\x05"), BYTES(""), BYTES(""), 1, 1},
		{"high part missing", BYTES("\x02\x05"), BYTES("\x80"), BYTES(""), 1, 1},
		{"high part not ended", BYTES("\x02\x05"), BYTES("\x80"), BYTES("\x80"), 1, 1},
		{"high part too large", BYTES("\x02\x05"), BYTES("\x80"),
		 BYTES("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), 1, 1},
		{"time too late", BYTES("\x02\x05"), BYTES("\x0b"), BYTES(""), 1, 1},
		{"time too early", BYTES("\x02\x07\x01\x01\x05"), BYTES("\x00"), BYTES(""), 1, 1},
		{"time below 0", BYTES("\x02\x07\x01\x65\x05"), BYTES("\x00"), BYTES(""), 1, 1},
		{"back without a number", BYTES("\x02\x07\x00\x05"), BYTES("\x00"), BYTES(""), 1,
		 1},
		{"operation past the column", BYTES("\x02\x07\x09\x01"), BYTES(""), BYTES(""), 0,
		 0},
		{"times left over", BYTES("\x02\x05"), BYTES("\x00\x00"), BYTES(""), 1, 1},
		{"high parts left over", BYTES("\x02\x05"), BYTES("\x00"), BYTES("\x00"), 1, 1},
		{"wrong count", BYTES("\x02\x05\x00"), BYTES("\x00\x00"), BYTES(""), 3, 1},
		{"wrong begins", BYTES("\x02\x05\x00"), BYTES("\x00\x00"), BYTES(""), 2, 2},
	};
	uint8_t payload[128];
	struct image m;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct store_chunk_head h = {.type = STORE_CHUNK_EVENTS,
					     .records = cases[i].records,
					     .begins = cases[i].begins,
					     .first_ns = 100,
					     .last_ns = 110};
		size_t nr = columns(payload, cases[i].control, cases[i].nr_control, cases[i].low,
				    cases[i].nr_low, cases[i].high, cases[i].nr_high);

		image__basics(&m);
		image__chunk(&m, h, payload, nr);
		/* these are found wrong only after good records were delivered */
		check_refused(&m, cases[i].description, 2);
	}
	image__basics(&m);
	image__chunk(&m, (struct store_chunk_head){.type = STORE_CHUNK_EVENTS}, "123456789", 9);
	check_refused(&m, "shorter than its head", 0);
	/* more events than there are times for, and columns that reach beyond the payload */
	for (int field = 8; field <= 12; field += 4) {
		char control[64];

		memset(control, 0x05, sizeof(control));
		control[0] = 0x02;
		columns(payload, control, sizeof(control), "", 0, "", 0);
		memset(payload + field, 0xff, 4);
		image__basics(&m);
		image__chunk(&m, events, payload, STORE_EVENTS_HEAD_BYTES + sizeof(control));
		check_refused(&m, "columns past the chunk", 0);
	}
}

static void heads_beyond_the_limits_end_the_reading(void)
{
	static const struct {
		const char *description;
		struct store_chunk_head h;
	} cases[] = {
		{"raw over the limit", {.type = 1, .codec = 1, .raw_bytes = (2u << 20) + 1}},
		{"raw at most", {.type = 1, .codec = 1, .raw_bytes = UINT32_MAX}},
		{"ratio", {.type = 1, .codec = 1, .raw_bytes = 256 * sizeof(basics) + 1}},
		{"larger stored than raw", {.type = 1, .codec = 1, .raw_bytes = 5}},
		{"sizes differ, not compressed", {.type = 1, .codec = 0, .raw_bytes = 100}},
		{"more records than bytes", {.type = 1, .records = 200}},
		{"more begins than records", {.type = 2, .records = 3, .begins = 4}},
		{"first after last", {.type = 2, .first_ns = 2, .last_ns = 1}},
		{"out of sequence", {.type = 1, .seq = 2}},
	};
	struct image m;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		image__basics(&m);
		image__chunk(&m, cases[i].h, basics, sizeof(basics));
		check_refused(&m, cases[i].description, 0);
	}
}

static void frames_that_lie_end_the_reading(void)
{
	struct store_chunk_head h = {.type = STORE_CHUNK_TABLES, .codec = STORE_CODEC_ZSTD};
	uint8_t frame[1024], *zeros = calloc(1, 1 << 20);
	struct image m;
	size_t nr;

	/* says 2,000, unpacks to a megabyte: not one byte more than said is written */
	nr = ZSTD_compress(frame, sizeof(frame), zeros, 1 << 20, 3);
	h.raw_bytes = 2000;
	image__basics(&m);
	image__chunk(&m, h, frame, nr);
	check_refused(&m, "larger than said", 0);
	nr = ZSTD_compress(frame, sizeof(frame), zeros, 1999, 3);
	image__basics(&m);
	image__chunk(&m, h, frame, nr);
	check_refused(&m, "smaller than said", 0);
	image__basics(&m);
	image__chunk(&m, h, "no frame at all", 15);
	check_refused(&m, "no frame", 0);
	free(zeros);
}

/* By another reader, too: what was opened once is there to the end. */
static void a_name_that_goes_while_it_is_read(void)
{
	const char *path = in_scratch("gone.kprof");
	struct seen first, again;
	struct store_reader_info info;
	struct store_reader *r, *more;

	write_sample(path);
	CHECK_EQ(store_reader__open(path, &r), 0);
	CHECK_EQ(unlink(path), 0);
	CHECK_EQ(store_reader__again(r, &more), 0);
	CHECK_EQ(read_all(r, STORE_READ_ALL, &first, &info), 0);
	store_reader__close(r);
	CHECK_EQ(read_all(more, STORE_READ_ALL, &again, &info), 0);
	CHECK(info.complete && first.records && again.records == first.records);
	store_reader__close(more);
}

UNIT_MAIN({"(set-up)", scratch__make}, TEST(cut_at_every_byte),
	  TEST(a_name_that_goes_while_it_is_read), TEST(a_flipped_bit_anywhere_is_noticed),
	  TEST(bytes_after_the_end_are_lost_not_read),
	  TEST(what_a_newer_minor_version_adds_is_passed_over),
	  TEST(another_major_version_is_refused), TEST(an_unknown_compression_is_an_error),
	  TEST(what_is_no_capture_is_refused), TEST(malformed_tables_end_the_reading),
	  TEST(malformed_events_end_the_reading), TEST(heads_beyond_the_limits_end_the_reading),
	  TEST(frames_that_lie_end_the_reading), {"(clean-up)", scratch__remove})
