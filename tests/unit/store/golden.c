// SPDX-License-Identifier: BSD-2-Clause
/*
 * golden/every-1.3.kprof was written before records.c was: it holds every kind of record of format
 * 1.3, with the extremes of its fields. It reads as what was put into it, and is written again byte
 * for byte.
 */
#include "store_image.h"

#define GOLDEN "tests/unit/golden/every-1.3.kprof"

enum { TABLES = 29, EVENTS = 9, DETAILS = 15, TYPES = 21 };

static void check_equal(struct store_reader *r, const struct store_record *expected, size_t nr,
			uint32_t *types)
{
	struct store_record got;

	for (size_t i = 0; i < nr; i++) {
		CHECK_EQ(store_reader__next(r, &got), 1);
		CHECK(records_equal(&got, &expected[i]));
		*types |= 1u << got.type;
	}
}

/* The sample's own records: those of newer kinds are after them. */
static void a_capture_recorded_before_opens(void)
{
	const struct store_record finished = {STORE_FINISH, .finish = {77}};
	struct store_reader_info info;
	struct store_reader *r = NULL;
	struct store_record got;
	uint32_t types = 0;

	CHECK_EQ(store_reader__open(GOLDEN, &r), 0);
	check_equal(r, sample_tables, TABLES, &types);
	check_equal(r, sample_details, DETAILS, &types);
	check_equal(r, sample_events, EVENTS, &types);
	check_equal(r, &finished, 1, &types);
	CHECK_EQ(store_reader__next(r, &got), 0);
	store_reader__info(r, &info);
	CHECK(info.complete && !info.lost_bytes);
	CHECK_EQ(info.minor, 3);
	CHECK_EQ(types, (2u << TYPES) - 2); /* 1 … 21 */
	store_reader__close(r);
}

/* What of the golden file goes to chunks of this type, in its order. */
static void put_again(struct store_writer *w, struct store_reader *r, enum store_chunk_type chunk)
{
	struct store_record got;

	store_reader__rewind(r, STORE_READ_ALL);
	while (store_reader__next(r, &got) == 1)
		if (record_kinds[got.type].chunk == chunk && got.type != STORE_FINISH)
			CHECK_EQ(store_writer__put(w, &got), 0);
}

/* As payloads: another release of zstd compresses differently. */
static void it_is_written_again_byte_for_byte(void)
{
	const char *path = in_scratch("again.kprof");
	static uint8_t before[65536], after[65536];
	struct store_writer *w = new_writer(path);
	struct store_reader *r = NULL;
	size_t nr_before, nr_after;
	uint8_t *bytes;

	CHECK_EQ(store_reader__open(GOLDEN, &r), 0);
	put_again(w, r, STORE_CHUNK_TABLES);
	put_again(w, r, STORE_CHUNK_EVENTS); /* the writer wants spans to have begun */
	put_again(w, r, STORE_CHUNK_DETAILS);
	store_reader__close(r);
	CHECK_EQ(store_writer__finish(w, 77), 0);
	bytes = slurp(GOLDEN, &nr_before);
	nr_before = uncompress(bytes, nr_before, before, sizeof(before));
	free(bytes);
	bytes = slurp(path, &nr_after);
	nr_after = uncompress(bytes, nr_after, after, sizeof(after));
	free(bytes);
	CHECK_EQ(nr_before, nr_after);
	/* But for the file's head, which may be of a newer minor version. */
	CHECK(!memcmp(before + STORE_FILE_HEAD_BYTES, after + STORE_FILE_HEAD_BYTES,
		      nr_before - STORE_FILE_HEAD_BYTES));
}

UNIT_MAIN({"(set-up)", scratch__make}, TEST(a_capture_recorded_before_opens),
	  TEST(it_is_written_again_byte_for_byte), {"(clean-up)", scratch__remove})
