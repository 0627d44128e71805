// SPDX-License-Identifier: BSD-2-Clause
/* The fixed-size parts of a capture, byte by byte. */
#include "store/format.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "util/error.h"

static void put16(uint8_t *to, uint16_t v)
{
	v = htole16(v);
	memcpy(to, &v, sizeof(v));
}

static void put32(uint8_t *to, uint32_t v)
{
	v = htole32(v);
	memcpy(to, &v, sizeof(v));
}

static void put64(uint8_t *to, uint64_t v)
{
	v = htole64(v);
	memcpy(to, &v, sizeof(v));
}

static uint16_t get16(const uint8_t *from)
{
	uint16_t v;

	memcpy(&v, from, sizeof(v));
	return le16toh(v);
}

static uint32_t get32(const uint8_t *from)
{
	uint32_t v;

	memcpy(&v, from, sizeof(v));
	return le32toh(v);
}

static uint64_t get64(const uint8_t *from)
{
	uint64_t v;

	memcpy(&v, from, sizeof(v));
	return le64toh(v);
}

static uint32_t crc(const uint8_t *bytes, size_t nr)
{
	return (uint32_t)crc32_z(0, bytes, nr);
}

/* ---- the file's head ---- */

static const uint8_t file_magic[] = STORE_FILE_MAGIC;

enum { FILE_MAJOR = 8, FILE_MINOR = 10, FILE_ORDER = 12, FILE_CRC = 28 };

void store_file_head__pack(const struct store_file_head *h, uint8_t to[STORE_FILE_HEAD_BYTES])
{
	memset(to, 0, STORE_FILE_HEAD_BYTES);
	memcpy(to, file_magic, sizeof(file_magic));
	put16(to + FILE_MAJOR, h->major);
	put16(to + FILE_MINOR, h->minor);
	put32(to + FILE_ORDER, STORE_BYTE_ORDER_MARK);
	put32(to + FILE_CRC, crc(to, FILE_CRC));
}

int store_file_head__unpack(struct store_file_head *h, const uint8_t *from, size_t bytes,
			    const char *path)
{
	const char *hint =
		"captures are what `kprof attach`, `run` and `sample` write with -o NAME.kprof";

	if (!bytes)
		return error_set(-EINVAL, hint, "%s is empty", path);
	if (memcmp(from, file_magic, bytes < sizeof(file_magic) ? bytes : sizeof(file_magic)) != 0)
		return error_set(-EINVAL, hint, "%s is not a kprof capture", path);
	if (bytes < STORE_FILE_HEAD_BYTES)
		return error_set(-EINVAL, "record again, or find a whole copy of it",
				 "%s is a kprof capture cut after %zu bytes: nothing is left of it",
				 path, bytes);
	if (get32(from + FILE_ORDER) == __builtin_bswap32(STORE_BYTE_ORDER_MARK))
		return error_set(-EINVAL, "export it on the machine that recorded it",
				 "%s was written in the other byte order", path);
	if (get32(from + FILE_CRC) != crc(from, FILE_CRC))
		return error_set(-EINVAL, "record again, or find an undamaged copy of it",
				 "the head of %s is damaged (its checksum is wrong)", path);
	h->major = get16(from + FILE_MAJOR);
	h->minor = get16(from + FILE_MINOR);
	if (h->major != STORE_FORMAT_MAJOR)
		return error_set(-EPROTONOSUPPORT, "read it with the kprof release that wrote it",
				 "%s is in capture format %u.%u; this kprof reads format %u", path,
				 h->major, h->minor, STORE_FORMAT_MAJOR);
	return 0;
}

/* ---- the heads of chunks ---- */

enum {
	CHUNK_MAGIC = 0,
	CHUNK_TYPE = 4,
	CHUNK_CODEC = 6,
	CHUNK_RAW = 8,
	CHUNK_STORED = 12,
	CHUNK_FIRST = 16,
	CHUNK_LAST = 24,
	CHUNK_RECORDS = 32,
	CHUNK_BEGINS = 36,
	CHUNK_SEQ = 40,
	CHUNK_PAYLOAD_CRC = 44,
	CHUNK_HEAD_CRC = 52,
};

void store_chunk_head__seal(struct store_chunk_head *h, const uint8_t *payload,
			    uint8_t to[STORE_CHUNK_HEAD_BYTES])
{
	h->payload_crc = crc(payload, h->stored_bytes);
	memset(to, 0, STORE_CHUNK_HEAD_BYTES);
	put32(to + CHUNK_MAGIC, STORE_CHUNK_MAGIC);
	put16(to + CHUNK_TYPE, h->type);
	put16(to + CHUNK_CODEC, h->codec);
	put32(to + CHUNK_RAW, h->raw_bytes);
	put32(to + CHUNK_STORED, h->stored_bytes);
	put64(to + CHUNK_FIRST, h->first_ns);
	put64(to + CHUNK_LAST, h->last_ns);
	put32(to + CHUNK_RECORDS, h->records);
	put32(to + CHUNK_BEGINS, h->begins);
	put32(to + CHUNK_SEQ, h->seq);
	put32(to + CHUNK_PAYLOAD_CRC, h->payload_crc);
	put32(to + CHUNK_HEAD_CRC, crc(to, CHUNK_HEAD_CRC));
}

void store_chunk_head__get(struct store_chunk_head *h, const uint8_t from[STORE_CHUNK_HEAD_BYTES])
{
	h->type = get16(from + CHUNK_TYPE);
	h->codec = get16(from + CHUNK_CODEC);
	h->raw_bytes = get32(from + CHUNK_RAW);
	h->stored_bytes = get32(from + CHUNK_STORED);
	h->first_ns = get64(from + CHUNK_FIRST);
	h->last_ns = get64(from + CHUNK_LAST);
	h->records = get32(from + CHUNK_RECORDS);
	h->begins = get32(from + CHUNK_BEGINS);
	h->seq = get32(from + CHUNK_SEQ);
	h->payload_crc = get32(from + CHUNK_PAYLOAD_CRC);
}

bool store_chunk_head__unpack(struct store_chunk_head *h,
			      const uint8_t from[STORE_CHUNK_HEAD_BYTES])
{
	if (get32(from + CHUNK_MAGIC) != STORE_CHUNK_MAGIC ||
	    get32(from + CHUNK_HEAD_CRC) != crc(from, CHUNK_HEAD_CRC))
		return false;
	store_chunk_head__get(h, from);
	/* A record takes a byte at least, so that the counts of a passed-over chunk are bounded. */
	return h->raw_bytes <= STORE_CHUNK_MAX_BYTES && h->stored_bytes <= h->raw_bytes &&
	       (uint64_t)h->stored_bytes * STORE_MAX_RATIO >= h->raw_bytes &&
	       (h->codec != STORE_CODEC_NONE || h->stored_bytes == h->raw_bytes) &&
	       h->records <= h->raw_bytes && h->begins <= h->records && h->first_ns <= h->last_ns;
}

bool store_chunk_head__payload_ok(const struct store_chunk_head *h, const uint8_t *payload)
{
	return h->payload_crc == crc(payload, h->stored_bytes);
}

/* ---- the columns of a chunk of events ---- */

void store_events_head__pack(uint64_t base_ns, uint32_t control_bytes, uint32_t low_bytes,
			     uint8_t to[STORE_EVENTS_HEAD_BYTES])
{
	put64(to, base_ns);
	put32(to + 8, control_bytes);
	put32(to + 12, low_bytes);
}

bool store_events__start(struct store_events *e, const struct store_chunk_head *h,
			 const uint8_t *raw)
{
	uint32_t control_bytes, low_bytes, left;

	if (h->raw_bytes < STORE_EVENTS_HEAD_BYTES)
		return false;
	control_bytes = get32(raw + 8);
	low_bytes = get32(raw + 12);
	left = h->raw_bytes - STORE_EVENTS_HEAD_BYTES;
	if (control_bytes > left || low_bytes > left - control_bytes)
		return false;
	*e = (struct store_events){
		.time_ns = get64(raw), .first_ns = h->first_ns, .last_ns = h->last_ns};
	e->control = raw + STORE_EVENTS_HEAD_BYTES;
	e->control_end = e->low = e->control + control_bytes;
	e->low_end = e->high = e->low + low_bytes;
	e->high_end = raw + h->raw_bytes;
	return true;
}
