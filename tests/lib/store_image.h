/* SPDX-License-Identifier: BSD-2-Clause */
/* Captures built by hand, well sealed whatever is in them: what no writer writes. */
#ifndef KPROF_TESTS_STORE_IMAGE_H
#define KPROF_TESTS_STORE_IMAGE_H

#include <zstd.h>

#include "store/format.h"
#include "store_fixture.h"

struct image {
	uint8_t bytes[8192];
	size_t nr;
	uint32_t seq;
};

static inline void image__start(struct image *m, uint16_t major, uint16_t minor)
{
	m->nr = STORE_FILE_HEAD_BYTES;
	m->seq = 0;
	store_file_head__pack(major, minor, m->bytes);
}

/* A well-sealed chunk; what the head says is taken from h, but for the number and the sizes. */
static inline void image__chunk(struct image *m, struct store_chunk_head h, const void *payload,
				size_t nr)
{
	uint8_t *to = m->bytes + m->nr;

	h.stored_bytes = (uint32_t)nr;
	if (!h.raw_bytes)
		h.raw_bytes = (uint32_t)nr;
	if (!h.seq)
		h.seq = m->seq;
	m->seq++;
	memcpy(to + STORE_CHUNK_HEAD_BYTES, payload, nr);
	store_chunk_head__seal(&h, payload, to);
	m->nr += STORE_CHUNK_HEAD_BYTES + nr;
}

static inline void image__tables(struct image *m, uint32_t records, const void *payload, size_t nr)
{
	image__chunk(m, (struct store_chunk_head){.type = STORE_CHUNK_TABLES, .records = records},
		     payload, nr);
}

static inline void image__details(struct image *m, uint32_t records, const void *payload, size_t nr)
{
	image__chunk(m, (struct store_chunk_head){.type = STORE_CHUNK_DETAILS, .records = records},
		     payload, nr);
}

/* One string, thread, source and what, so that events have something to refer to. */
static const uint8_t basics[] = {
	STORE_STRING,      2,  1, 'a',                         /* 1: "a" */
	STORE_THREAD,      6,  0, 1,   1, 1, 0, 0,             /* index 0 */
	STORE_SOURCE,      10, 0, 1,   0, 0, 0, 0, 0, 0, 0, 0, /* index 0 */
	STORE_DESCRIPTION, 6,  1, 1,   0, 1, 0, 0,             /* 1 */
};
enum { BASICS = 4 };
static const uint8_t finish[] = {STORE_FINISH, 1, 9};

static inline void image__basics(struct image *m)
{
	image__start(m, STORE_FORMAT_MAJOR, STORE_FORMAT_MINOR);
	image__tables(m, BASICS, basics, sizeof(basics));
}

/* The payload of a chunk of events; base time 100. */
static inline size_t columns(uint8_t *to, const char *control, size_t nr_control, const char *low,
			     size_t nr_low, const char *high, size_t nr_high)
{
	struct store_events_head head = {100, (uint32_t)nr_control, (uint32_t)nr_low};

	memcpy(to, &head, sizeof(head));
	to += STORE_EVENTS_HEAD_BYTES;
	memcpy(to, control, nr_control);
	memcpy(to + nr_control, low, nr_low);
	memcpy(to + nr_control + nr_low, high, nr_high);
	return STORE_EVENTS_HEAD_BYTES + nr_control + nr_low + nr_high;
}

static inline struct store_reader *open_image(const struct image *m)
{
	const char *path = in_scratch("image.kprof");
	struct store_reader *r = NULL;

	spit(path, m->bytes, m->nr);
	if (store_reader__open(path, &r)) {
		printf("# %s\n", kprof_error_cause());
		abort();
	}
	return r;
}

static inline int read_image(const struct image *m, struct seen *seen,
			     struct store_reader_info *info)
{
	struct store_reader *r = open_image(m);
	int err = read_all(r, STORE_READ_ALL, seen, info);

	store_reader__close(r);
	return err;
}

/* The basics are read, nothing after them, and the file counts as incomplete. */
static inline void check_refused(struct image *m, const char *description, size_t may_deliver)
{
	struct store_reader_info info;
	struct seen seen;
	size_t whole = STORE_FILE_HEAD_BYTES + STORE_CHUNK_HEAD_BYTES + sizeof(basics);
	int failures = unit_failures_here;

	image__tables(m, 1, finish, sizeof(finish));
	CHECK_EQ(read_image(m, &seen, &info), 0);
	CHECK(!info.complete);
	CHECK_EQ(info.lost_bytes, m->nr - whole);
	CHECK(seen.records >= BASICS && seen.records <= BASICS + may_deliver);
	if (unit_failures_here > failures)
		printf("# %s\n", description);
}

/* The same capture uncompressed: what a fuzzer changes in it is what the decoders see. */
static inline size_t uncompress(const uint8_t *from, size_t nr, uint8_t *to, size_t room)
{
	size_t at = STORE_FILE_HEAD_BYTES, used = at;

	memcpy(to, from, at);
	while (at < nr) {
		struct store_chunk_head h;
		const uint8_t *payload = from + at + STORE_CHUNK_HEAD_BYTES;
		uint8_t *head = to + used, *raw = head + STORE_CHUNK_HEAD_BYTES;

		if (!store_chunk_head__unpack(&h, from + at) ||
		    used + STORE_CHUNK_HEAD_BYTES + h.raw_bytes > room)
			abort();
		at += STORE_CHUNK_HEAD_BYTES + h.stored_bytes;
		if (h.codec == STORE_CODEC_NONE)
			memcpy(raw, payload, h.raw_bytes);
		else if (ZSTD_decompress(raw, h.raw_bytes, payload, h.stored_bytes) != h.raw_bytes)
			abort();
		h.codec = STORE_CODEC_NONE;
		h.stored_bytes = h.raw_bytes;
		store_chunk_head__seal(&h, raw, head);
		used += STORE_CHUNK_HEAD_BYTES + h.raw_bytes;
	}
	return used;
}

#define BYTES(text) text, sizeof(text) - 1

#endif
