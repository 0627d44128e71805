/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the writer and the reader of captures share: the heads of files and chunks, and the columns
 * of events. docs/capture-format.md describes the same in prose; change both together.
 */
#ifndef KPROF_STORE_FORMAT_H
#define KPROF_STORE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/ids.h"
#include "store/store.h"

/* Fixed-size parts are structs, whose bytes are those of the file: x86-64 is little-endian too. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "store: the format is little-endian");

/* The first byte is no ASCII, the last two don't survive a transfer in text mode. */
#define STORE_FILE_MAGIC                                  \
	{                                                 \
		0x89, 'K', 'P', 'R', 'O', 'F', '\r', '\n' \
	}
#define STORE_FILE_HEAD_BYTES 32
#define STORE_BYTE_ORDER_MARK 0x1a2b3c4du

#define STORE_CHUNK_MAGIC 0x4b48434bu /* "KCHK" in the file */
#define STORE_CHUNK_HEAD_BYTES 56

/* Limits of the format: a reader refuses captures that exceed them. */
#define STORE_CHUNK_MAX_BYTES (2u << 20)  /* of a chunk's payload, stored or raw */
#define STORE_RECORD_MAX_BYTES (1u << 20) /* of a table record's payload */
#define STORE_MAX_RATIO 256u              /* most raw bytes per stored byte */

/* The writer begins a new chunk at this size. */
#define STORE_CHUNK_TARGET_BYTES (256u << 10)

enum store_codec { STORE_CODEC_NONE = 0, STORE_CODEC_ZSTD = 1 };

struct store_file_head {
	uint8_t magic[8];
	uint16_t major, minor;
	uint32_t order; /* STORE_BYTE_ORDER_MARK */
	uint8_t zeros[12];
	uint32_t crc; /* of what precedes it */
};
_Static_assert(sizeof(struct store_file_head) == STORE_FILE_HEAD_BYTES, "store: a file's head");

void store_file_head__pack(uint16_t major, uint16_t minor, uint8_t to[STORE_FILE_HEAD_BYTES]);
/*
 * Sets the error. -EINVAL: not a capture, or a damaged head; -EPROTONOSUPPORT: another major
 * version.
 */
int store_file_head__unpack(struct store_file_head *h, const uint8_t *from, size_t bytes,
			    const char *path);

struct store_chunk_head {
	uint32_t magic;
	uint16_t type, codec;
	uint32_t raw_bytes, stored_bytes;
	/* monotonic ns of the earliest and the latest event; 0 in tables */
	uint64_t first_ns, last_ns;
	uint32_t records;
	uint32_t begins; /* BEGIN records in a chunk of events, SAMPLE records in one of details */
	uint32_t seq;    /* number of the chunk in the file, from 0 */
	uint32_t payload_crc;
	uint32_t zero;
	uint32_t head_crc; /* of what precedes it */
};
_Static_assert(sizeof(struct store_chunk_head) == STORE_CHUNK_HEAD_BYTES, "store: a chunk's head");

/* Fills in magic and checksums (the payload has h->stored_bytes), and writes the head to `to`. */
void store_chunk_head__seal(struct store_chunk_head *h, const uint8_t *payload,
			    uint8_t to[STORE_CHUNK_HEAD_BYTES]);
/* False: not a valid head of this major version (its magic, checksum or limits are wrong). */
bool store_chunk_head__unpack(struct store_chunk_head *h,
			      const uint8_t from[STORE_CHUNK_HEAD_BYTES]);
bool store_chunk_head__payload_ok(const struct store_chunk_head *h, const uint8_t *payload);

/*
 * The payload of a chunk of events: a fixed head, then three columns. They are separate because
 * times are noise while the order of operators repeats: zstd compresses each better alone.
 *   control  one operation after another, varints: value << 2 | enum store_op
 *   low      the first byte of each event's time (a varint: ns since the event before)
 *   high     the further bytes of those times
 */
struct store_events_head {
	uint64_t base_ns;
	uint32_t control_bytes, low_bytes;
};
#define STORE_EVENTS_HEAD_BYTES 16
_Static_assert(sizeof(struct store_events_head) == STORE_EVENTS_HEAD_BYTES, "store: events' head");

enum store_op {
	STORE_OP_END = 0,    /* value: flags of the END */
	STORE_OP_BEGIN = 1,  /* value: id of the DESCRIPTION */
	STORE_OP_THREAD = 2, /* value: index of the thread of the events that follow */
	/* value: enum store_op_other; then a varint length, then that many bytes */
	STORE_OP_OTHER = 3,
};
enum store_op_other {
	STORE_OTHER_BACK = 1, /* a varint: the next event's time counts from this many ns earlier */
};

/*
 * A chunk of events being read: cursors into its columns. Time differences start anew in each
 * chunk.
 */
struct store_events {
	const uint8_t *control, *control_end;
	const uint8_t *low, *low_end;
	const uint8_t *high, *high_end;
	uint64_t time_ns, first_ns, last_ns;
	uint32_t thread;
	bool have_thread;
	uint32_t records, begins; /* delivered so far */
};

/* False: the columns do not fit into the payload. */
bool store_events__start(struct store_events *e, const struct store_chunk_head *h,
			 const uint8_t *raw);
/* 1: a record; 0: none left, and all columns were used up; -EBADMSG: malformed. */
int store_events__next(struct store_events *e, const struct store_ids *ids,
		       struct store_record *out);

/* Makes a malloc'ed buffer of *cap bytes at least this large. -ENOMEM. */
int store_reserve(uint8_t **buffer, size_t *cap, size_t bytes);

#endif
