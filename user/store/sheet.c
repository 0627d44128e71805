// SPDX-License-Identifier: BSD-2-Clause
/*
 * A file that is being written, chunk by chunk. A chunk is in the file completely or not at all:
 * what a failed write leaves is cut off.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "store/writer.h"
#include "util/error.h"

/*
 * ZSTD_LEVEL is zstd's own default. Times are noise, which no level compresses, and in details they
 * are most of what remains: there a higher level takes half as long again and saves 3 %. See
 * docs/capture-format.md for sizes.
 */
#define ZSTD_LEVEL 3
#define ZSTD_LEVEL_DETAILS 1

int store_no_memory(const struct store_writer *w)
{
	return error_set(-ENOMEM, NULL, "no memory to write %s", w->now.path);
}

/*
 * A reader accepts only so many bytes for each that is stored. What shrinks by more (counters that
 * hardly ever count, in a loop) is followed by a frame that zstd passes over. Returns the bytes
 * used with it.
 */
static size_t stretch(uint8_t *to, size_t room, size_t used, size_t raw_bytes)
{
	const size_t head_bytes = 2 * sizeof(uint32_t);
	size_t least = (raw_bytes + STORE_MAX_RATIO - 1) / STORE_MAX_RATIO;
	uint32_t head[2] = {htole32(ZSTD_MAGIC_SKIPPABLE_START)};

	if (used >= least || least + head_bytes > room)
		return used;
	if (least < used + head_bytes)
		least = used + head_bytes;
	head[1] = htole32((uint32_t)(least - used - head_bytes));
	memset(to + used, 0, least - used);
	memcpy(to + used, head, sizeof(head));
	return least;
}

/*
 * Compresses each part as a zstd frame of its own, which gets its own statistics. Returns the bytes
 * used; 0: compression failed or is not worth it.
 */
static size_t compress(struct store_writer *w, int level, const struct chunk_part *parts,
		       int nr_parts, size_t raw_bytes)
{
	uint8_t *to = w->out + STORE_CHUNK_HEAD_BYTES;
	size_t room = w->out_cap - STORE_CHUNK_HEAD_BYTES, used = 0;

	for (int i = 0; i < nr_parts; i++) {
		size_t n;

		if (!parts[i].nr)
			continue;
		n = ZSTD_compressCCtx(w->zstd, to + used, room - used, parts[i].bytes, parts[i].nr,
				      level);
		if (ZSTD_isError(n))
			return 0;
		used += n;
	}
	used = stretch(to, room, used, raw_bytes);
	return used < raw_bytes && used * STORE_MAX_RATIO >= raw_bytes ? used : 0;
}

static void copy(struct store_writer *w, const struct chunk_part *parts, int nr_parts)
{
	uint8_t *to = w->out + STORE_CHUNK_HEAD_BYTES;

	for (int i = 0; i < nr_parts; i++) {
		if (parts[i].nr)
			memcpy(to, parts[i].bytes, parts[i].nr);
		to += parts[i].nr;
	}
}

/*
 * Cuts off the part of a chunk that a failed write has left. On a pipe this is not possible; its
 * reader sees a cut chunk at the end.
 */
static void cut(const struct sheet *to)
{
	int fd = outfile__fd(to->file);

	if (ftruncate(fd, (off_t)to->whole) == 0)
		lseek(fd, (off_t)to->whole, SEEK_SET);
}

/*
 * Puts the chunk's head and payload into w->out; the payload is compressed if that makes it
 * smaller.
 */
static int build_chunk(struct store_writer *w, struct store_chunk_head *h,
		       const struct chunk_part *parts, int nr_parts)
{
	int level = h->type == STORE_CHUNK_DETAILS ? ZSTD_LEVEL_DETAILS : ZSTD_LEVEL;
	size_t raw_bytes = 0, stored_bytes;

	for (int i = 0; i < nr_parts; i++)
		raw_bytes += parts[i].nr;
	/*
	 * The bound is at least raw_bytes, and so there is room for an uncompressed payload, too.
	 */
	if (store_reserve(&w->out, &w->out_cap,
			  STORE_CHUNK_HEAD_BYTES + ZSTD_compressBound(raw_bytes)))
		return store_no_memory(w);
	stored_bytes = compress(w, level, parts, nr_parts, raw_bytes);
	h->codec = stored_bytes ? STORE_CODEC_ZSTD : STORE_CODEC_NONE;
	h->raw_bytes = (uint32_t)raw_bytes;
	h->stored_bytes = (uint32_t)(stored_bytes ? stored_bytes : raw_bytes);
	if (!stored_bytes)
		copy(w, parts, nr_parts);
	return 0;
}

int store_writer_append(struct store_writer *w, struct sheet *to, struct store_chunk_head *h,
			bool lasting)
{
	struct kept_chunk *kept = NULL;
	int err = 0;

	if (lasting) {
		kept = vec_push(&to->kept, sizeof(*kept));
		if (!kept)
			return store_no_memory(w);
		*kept = (struct kept_chunk){to->whole, h->stored_bytes, h->raw_bytes, h->records,
					    h->codec};
	}
	h->seq = to->seq;
	store_chunk_head__seal(h, w->out + STORE_CHUNK_HEAD_BYTES, w->out);
	err = outfile__write(to->file, w->out, STORE_CHUNK_HEAD_BYTES + h->stored_bytes);
	if (err) {
		to->err = err;
		to->kept.nr -= lasting;
		cut(to);
		return err;
	}
	to->whole += STORE_CHUNK_HEAD_BYTES + h->stored_bytes;
	if (lasting)
		to->kept_bytes += STORE_CHUNK_HEAD_BYTES + h->stored_bytes;
	to->seq++;
	return 0;
}

int sheet__write(struct store_writer *w, struct sheet *to, struct store_chunk_head *h,
		 const struct chunk_part *parts, int nr_parts, bool lasting)
{
	int err = build_chunk(w, h, parts, nr_parts);

	return err ? err : store_writer_append(w, to, h, lasting);
}

/* Writes so many of the rows' first bytes, which are so many records. */
int store_writer_rows(struct store_writer *w, struct sheet *to, const struct rows_out *rows,
		      enum store_chunk_type type, bool lasting)
{
	struct store_chunk_head h = {
		.type = type, .records = rows->records, .begins = rows->samples};
	struct chunk_part part = {rows->bytes, rows->nr_bytes};

	return sheet__write(w, to, &h, &part, 1, lasting);
}

void sheet__free(struct sheet *to)
{
	free(to->path);
	free(to->kept.data);
	*to = (struct sheet){0};
}

int sheet__open(struct sheet *to, const char *path, const struct outfile_opts *owner)
{
	uint8_t bytes[STORE_FILE_HEAD_BYTES];
	int err;

	to->path = strdup(path);
	if (!to->path)
		return error_set(-ENOMEM, NULL, "no memory to write %s", path);
	err = outfile__open(path, owner, &to->file);
	if (err)
		return err;
	store_file_head__pack(STORE_FORMAT_MAJOR, STORE_FORMAT_MINOR, bytes);
	err = outfile__write(to->file, bytes, sizeof(bytes));
	if (!err)
		to->whole = sizeof(bytes);
	return err;
}
