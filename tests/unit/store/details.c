// SPDX-License-Identifier: BSD-2-Clause
/* Chunks of details that no writer of this version writes: newer ones, and malformed ones. */
#include "store_image.h"

static void what_it_adds_to_details_is_passed_over(void)
{
	static const uint8_t added[] = {
		99,
		2,
		0xff,
		0xff, /* an unknown type */
		STORE_ARGS,
		12,
		2,
		1,
		3,
		1,
		STORE_ATTR_U64,
		1,
		42,
		1,
		STORE_ATTR_I64,
		5,
		6,
		7, /* an unknown type of attribute, the second of three */
		STORE_ARGS,
		5,
		0,
		2,
		1,
		2,
		3, /* the same list */
		STORE_ARGS,
		4,
		0,
		0,
		8,
		9, /* fields behind the last */
	};
	struct store_record got;
	struct store_reader *r;
	struct image m;

	image__basics(&m);
	image__details(&m, 4, added, sizeof(added));
	image__tables(&m, 1, finish, sizeof(finish));
	r = open_image(&m);
	for (int i = 0; i < BASICS; i++)
		CHECK_EQ(store_reader__next(r, &got), 1);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(store_reader__next(r, &got), 1);
		CHECK_EQ(got.type, STORE_ARGS);
		CHECK_EQ(got.args.span, 1);
		CHECK_EQ(got.nr_attrs, 2);
		CHECK_EQ(got.attrs[0].value, i ? 1 : 5);
		CHECK_EQ(got.attrs[1].type, STORE_ATTR_I64);
		CHECK_EQ((int64_t)got.attrs[1].value, i ? -2 : -4);
	}
	CHECK_EQ(store_reader__next(r, &got), 1);
	CHECK_EQ(got.nr_attrs, 0);
	CHECK_EQ(store_reader__next(r, &got), 1);
	CHECK_EQ(got.type, STORE_FINISH);
	store_reader__close(r);
}

static void malformed_details_end_the_reading(void)
{
	static const struct {
		const char *description, *bytes;
		size_t nr;
		uint32_t records;
	} cases[] = {
		{"span 0", BYTES("\x0c\x02\x00\x00"), 1},
		{"span below 0", BYTES("\x0c\x02\x01\x00"), 1},
		{"span that cannot have begun", BYTES("\x0c\x05\x82\x80\x80\x02\x00"), 1},
		{"no span", BYTES("\x0c\x00"), 1},
		{"no attributes", BYTES("\x0c\x01\x02"), 1},
		{"length past the chunk", BYTES("\x0c\x03\x02\x00"), 1},
		{"list of none", BYTES("\x0c\x03\x02\x01\x00"), 1},
		{"list of too many", BYTES("\x0c\x03\x02\x01\x21"), 1},
		{"list cut", BYTES("\x0c\x04\x02\x01\x01\x01"), 1},
		{"unknown list", BYTES("\x0c\x02\x02\x02"), 1},
		{"huge list", BYTES("\x0c\x06\x02\xff\xff\xff\xff\x0f"), 1},
		{"key 0", BYTES("\x0c\x06\x02\x01\x01\x00\x01\x05"), 1},
		{"undefined key", BYTES("\x0c\x06\x02\x01\x01\x02\x01\x05"), 1},
		{"value missing", BYTES("\x0c\x05\x02\x01\x01\x01\x01"), 1},
		{"undefined string", BYTES("\x0c\x06\x02\x01\x01\x01\x04\x02"), 1},
		{"undefined JSON", BYTES("\x0c\x06\x02\x01\x01\x01\x07\x02"), 1},
		{"y too large", BYTES("\x0c\x0a\x02\x01\x01\x01\x06\x01\x80\x80\x04\x01"), 1},
		{"z missing", BYTES("\x0c\x07\x02\x01\x01\x01\x06\x01\x01"), 1},
		{"activity, undefined name",
		 BYTES("\x0d\x0b\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00"), 1},
		{"activity, pid over 32 bits",
		 BYTES("\x0d\x0f\x00\x00\x00\x00\x01\x00\x00\x00\x00\x80\x80\x80\x80\x10\x00"), 1},
		{"activity, field missing", BYTES("\x0d\x09\x00\x00\x00\x00\x01\x00\x00\x00\x00"),
		 1},
		{"activity before 0", BYTES("\x0d\x0b\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00"),
		 1},
		{"activity queued before 0",
		 BYTES("\x0d\x0b\x00\x03\x00\x00\x01\x00\x00\x00\x00\x00\x00"), 1},
		{"call, undefined thread", BYTES("\x0e\x07\x00\x00\x00\x01\x00\x01\x00"), 1},
		{"call, undefined name", BYTES("\x0e\x07\x00\x00\x00\x02\x00\x00\x00"), 1},
		{"instant, undefined thread", BYTES("\x0f\x04\x00\x01\x01\x00"), 1},
		{"instant of nothing", BYTES("\x0f\x04\x00\x00\x00\x00"), 1},
		{"instant, undefined what", BYTES("\x0f\x04\x00\x00\x02\x00"), 1},
		{"counter, undefined name", BYTES("\x10\x06\x00\x00\x02\x00\x00\x00"), 1},
		{"sample, undefined thread", BYTES("\x14\x06\x00\x01\x00\x00\x00\x00"), 1},
		{"sample, undefined stack", BYTES("\x14\x06\x00\x00\x02\x00\x00\x00"), 1},
		{"sample, stack below 0", BYTES("\x14\x06\x00\x00\x01\x00\x00\x00"), 1},
		{"sample, flags over 32 bits",
		 BYTES("\x14\x0a\x00\x00\x00\x00\x80\x80\x80\x80\x10\x00"), 1},
		{"sample, field missing", BYTES("\x14\x04\x00\x00\x00\x00"), 1},
		{"undefined stack as an attribute", BYTES("\x0c\x06\x02\x01\x01\x01\x08\x01"), 1},
		{"fewer than promised", BYTES("\x63\x00"), 2},
		{"more than promised", BYTES("\x63\x00\x63\x00"), 1},
	};
	struct image m;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		image__basics(&m);
		image__details(&m, cases[i].records, cases[i].bytes, cases[i].nr);
		check_refused(&m, cases[i].description, 0);
	}
}

/* The number of samples stands in the chunk's head too, for those who pass over it. */
static void samples_are_counted_in_the_head(void)
{
	static const uint8_t two[] = {STORE_SAMPLE, 6, 2, 0, 0, 5, 0, 0,
				      STORE_SAMPLE, 6, 2, 0, 0, 5, 0, 0};
	struct store_chunk_head h = {.type = STORE_CHUNK_DETAILS, .records = 2};
	struct store_reader_info info;
	struct store_reader *r;
	struct seen seen;
	struct image m;

	for (uint32_t told = 0; told <= 2; told++) {
		h.begins = told;
		image__basics(&m);
		image__chunk(&m, h, two, sizeof(two));
		if (told < 2) {
			check_refused(&m, "another number of samples", 2);
			continue;
		}
		image__tables(&m, 1, finish, sizeof(finish));
		r = open_image(&m);
		for (int mode = STORE_READ_ALL; mode <= STORE_READ_DETAILS; mode++) {
			CHECK_EQ(read_all(r, (enum store_read_mode)mode, &seen, &info), 0);
			CHECK(info.complete);
			CHECK_EQ(info.samples, 2);
			CHECK_EQ(seen.samples, mode == STORE_READ_TABLES ? 0 : 2);
		}
		store_reader__close(r);
	}
}

UNIT_MAIN({"(set-up)", scratch__make}, TEST(what_it_adds_to_details_is_passed_over),
	  TEST(malformed_details_end_the_reading), TEST(samples_are_counted_in_the_head),
	  {"(clean-up)", scratch__remove})
