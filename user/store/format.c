// SPDX-License-Identifier: BSD-2-Clause
/* The fixed-size parts of a capture, byte by byte, and the rules on what records refer to. */
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

/* ---- the file's head ---------------------------------------------------------------------- */

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

/* ---- the heads of chunks ------------------------------------------------------------------- */

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

/* ---- the columns of a chunk of events ------------------------------------------------------- */

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

/* ---- what records refer to ------------------------------------------------------------------ */

/* Defines `id` if it is the next one; a definition out of order is refused. */
static bool define(uint32_t *nr, uint32_t id, uint32_t first, bool may_replace)
{
	if (id < first || id - first > *nr || id == UINT32_MAX)
		return false;
	if (id - first < *nr)
		return may_replace;
	(*nr)++;
	return true;
}

static bool attrs_ok(const struct store_ids *ids, const struct store_record *r)
{
	if (r->nr_attrs > STORE_MAX_ATTRS)
		return false;
	for (uint32_t i = 0; i < r->nr_attrs; i++) {
		const struct store_attr *a = &r->attrs[i];

		if (a->key - 1 >= ids->strings || !a->type || a->type > STORE_ATTR_STACK)
			return false;
		if ((a->type == STORE_ATTR_STRING || a->type == STORE_ATTR_JSON) &&
		    a->value > ids->strings)
			return false;
		if (a->type == STORE_ATTR_STACK && a->value > ids->stacks)
			return false;
	}
	return true;
}

/* Times over 2^63 - 1 have no code for how long before the start something was queued. */
static bool activity_ok(const struct store_ids *ids, const struct store_record *r)
{
	return r->activity.name <= ids->strings && r->activity.start_ns <= INT64_MAX &&
	       r->activity.queued_ns <= INT64_MAX;
}

/* Defines nothing yet: what is refused leaves no trace. */
static bool lines_ok(const struct store_ids *ids, const struct store_record *r)
{
	if (r->frame.nr_lines > STORE_MAX_LINES)
		return false;
	for (uint32_t i = 0; i < r->frame.nr_lines; i++)
		if (r->frame.lines[i].function > ids->strings ||
		    r->frame.lines[i].file > ids->strings)
			return false;
	return true;
}

static bool accept_stacks(struct store_ids *ids, const struct store_record *r)
{
	switch (r->type) {
	case STORE_MODULE:
		return r->module.path <= ids->strings && r->module.build_id <= ids->strings &&
		       define(&ids->modules, r->module.id, 1, false);
	case STORE_FRAME:
		return r->frame.module <= ids->modules && r->frame.op <= ids->strings &&
		       lines_ok(ids, r) && define(&ids->frames, r->frame.id, 1, true);
	case STORE_STACK: /* the parent is an earlier one: no circles */
		return r->stack.parent <= ids->stacks && r->stack.frame - 1 < ids->frames &&
		       define(&ids->stacks, r->stack.id, 1, false);
	default:
		return r->sample.thread < ids->threads && r->sample.stack <= ids->stacks &&
		       attrs_ok(ids, r);
	}
}

bool store_ids__accept(struct store_ids *ids, const struct store_record *r)
{
	switch (r->type) {
	case STORE_STRING:
		return define(&ids->strings, r->string.id, 1, false);
	case STORE_PROCESS:
		return r->process.comm <= ids->strings && r->process.cmdline <= ids->strings;
	case STORE_THREAD:
		return r->thread.name <= ids->strings &&
		       define(&ids->threads, r->thread.index, 0, true);
	case STORE_THREAD_NAME:
		return r->thread_name.thread < ids->threads && r->thread_name.name <= ids->strings;
	case STORE_WHAT:
		return r->what.name <= ids->strings && r->what.overload <= ids->strings &&
		       r->what.category <= ids->strings && r->what.source < ids->sources &&
		       define(&ids->whats, r->what.id, 1, false);
	case STORE_BEGIN:
		return r->begin.thread < ids->threads && r->begin.what - 1 < ids->whats;
	case STORE_END:
		return r->end.thread < ids->threads;
	case STORE_GAP:
		return r->gap.what <= ids->strings && r->gap.reason <= ids->strings;
	case STORE_SOURCE:
		return r->source.name <= ids->strings &&
		       define(&ids->sources, r->source.index, 0, true);
	case STORE_ARGS:
		return r->args.span - 1 < ids->spans && attrs_ok(ids, r);
	case STORE_ACTIVITY:
		return activity_ok(ids, r) && attrs_ok(ids, r);
	case STORE_API:
		return r->api.thread < ids->threads && r->api.name <= ids->strings &&
		       attrs_ok(ids, r);
	case STORE_INSTANT:
		return r->instant.thread < ids->threads && r->instant.what - 1 < ids->whats &&
		       attrs_ok(ids, r);
	case STORE_COUNTER:
		return r->counter.name <= ids->strings && attrs_ok(ids, r);
	case STORE_MODULE:
	case STORE_FRAME:
	case STORE_STACK:
	case STORE_SAMPLE:
		return accept_stacks(ids, r);
	case STORE_META:
	case STORE_CLOCK:
	case STORE_FINISH:
		return true;
	}
	return false;
}
