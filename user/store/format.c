// SPDX-License-Identifier: BSD-2-Clause
/* The fixed-size parts of a capture. */
#include "store/format.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "util/error.h"

static uint32_t crc(const void *bytes, size_t nr)
{
	return (uint32_t)crc32_z(0, bytes, nr);
}

/* ---- the file's head ---- */

static const uint8_t file_magic[] = STORE_FILE_MAGIC;

void store_file_head__pack(uint16_t major, uint16_t minor, uint8_t to[STORE_FILE_HEAD_BYTES])
{
	struct store_file_head h = {STORE_FILE_MAGIC, major, minor, .order = STORE_BYTE_ORDER_MARK};

	h.crc = crc(&h, offsetof(struct store_file_head, crc));
	memcpy(to, &h, sizeof(h));
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
	memcpy(h, from, sizeof(*h));
	if (h->order == __builtin_bswap32(STORE_BYTE_ORDER_MARK))
		return error_set(-EINVAL, "export it on the machine that recorded it",
				 "%s was written in the other byte order", path);
	if (h->crc != crc(from, offsetof(struct store_file_head, crc)))
		return error_set(-EINVAL, "record again, or find an undamaged copy of it",
				 "the head of %s is damaged (its checksum is wrong)", path);
	if (h->major != STORE_FORMAT_MAJOR)
		return error_set(-EPROTONOSUPPORT, "read it with the kprof release that wrote it",
				 "%s is in capture format %u.%u; this kprof reads format %u", path,
				 h->major, h->minor, STORE_FORMAT_MAJOR);
	return 0;
}

/* ---- the heads of chunks ---- */

static uint32_t head_crc(const struct store_chunk_head *h)
{
	return crc(h, offsetof(struct store_chunk_head, head_crc));
}

void store_chunk_head__seal(struct store_chunk_head *h, const uint8_t *payload,
			    uint8_t to[STORE_CHUNK_HEAD_BYTES])
{
	h->magic = STORE_CHUNK_MAGIC;
	h->payload_crc = crc(payload, h->stored_bytes);
	h->head_crc = head_crc(h);
	memcpy(to, h, sizeof(*h));
}

bool store_chunk_head__unpack(struct store_chunk_head *h,
			      const uint8_t from[STORE_CHUNK_HEAD_BYTES])
{
	memcpy(h, from, sizeof(*h));
	if (h->magic != STORE_CHUNK_MAGIC || h->head_crc != head_crc(h))
		return false;
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

bool store_events__start(struct store_events *e, const struct store_chunk_head *h,
			 const uint8_t *raw)
{
	struct store_events_head head;
	uint32_t left;

	if (h->raw_bytes < sizeof(head))
		return false;
	memcpy(&head, raw, sizeof(head));
	left = h->raw_bytes - STORE_EVENTS_HEAD_BYTES;
	if (head.control_bytes > left || head.low_bytes > left - head.control_bytes)
		return false;
	*e = (struct store_events){
		.time_ns = head.base_ns, .first_ns = h->first_ns, .last_ns = h->last_ns};
	e->control = raw + STORE_EVENTS_HEAD_BYTES;
	e->control_end = e->low = e->control + head.control_bytes;
	e->low_end = e->high = e->low + head.low_bytes;
	e->high_end = raw + h->raw_bytes;
	return true;
}

/* ---- buffers ---- */

int store_reserve(uint8_t **buffer, size_t *cap, size_t bytes)
{
	uint8_t *more;

	if (bytes <= *cap)
		return 0;
	more = realloc(*buffer, bytes);
	if (!more)
		return -ENOMEM;
	*buffer = more;
	*cap = bytes;
	return 0;
}
