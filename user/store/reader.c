// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads captures, be they whole, cut short or hostile. Every byte is checked before it is used:
 * heads and payloads against their checksums, sizes against the format's limits, references against
 * what was defined. Memory: one chunk as stored and one decompressed (at most 2 MiB each) and
 * zstd's context, whatever the file's size. It uses read(2) rather than mmap(2), because a file
 * that shrinks while it is read must not cause a SIGBUS.
 */
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "store/format.h"
#include "store/rows.h"
#include "util/error.h"
#include "util/pace.h"

enum state { BETWEEN, IN_ROWS, IN_EVENTS, ENDED };

struct store_reader {
	char *path;
	int fd;
	struct store_file_head head;
	enum store_read_mode mode;
	enum state state;
	uint64_t size;  /* at opening; what is appended later is ignored */
	uint64_t whole; /* file offset after the last valid chunk */
	uint64_t next;  /* file offset of the next chunk */
	uint32_t seq;
	bool complete;
	uint64_t begins, samples;
	struct store_chunk_head chunk;
	struct store_ids ids;
	struct store_events events;
	struct rows_in rows;
	uint8_t *stored, *raw;
	size_t stored_cap, raw_cap;
	ZSTD_DCtx *zstd;
	/* See store_reader__watch(). */
	int (*watch)(void *ctx, uint64_t done, uint64_t total);
	void *watch_ctx;
};

/* Reads `bytes` at `offset`. 1: all of them; 0: the file ends before; <0: error. */
static int read_at(struct store_reader *r, void *to, size_t bytes, uint64_t offset)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t n = pread(r->fd, (char *)to + done, bytes - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_set(-errno, "check the disk that it lies on",
					 "cannot read %s: %s", r->path, strerror(errno));
		if (!n)
			return 0;
		done += (size_t)n;
	}
	return 1;
}

static int reserve(struct store_reader *r, uint8_t **buffer, size_t *cap, size_t bytes)
{
	/* + 1: so that the result is not NULL for an empty chunk */
	if (!store_reserve(buffer, cap, bytes + 1))
		return 0;
	return error_set(-ENOMEM, NULL, "no memory to read %s", r->path);
}

static int end_here(struct store_reader *r)
{
	r->state = ENDED;
	return 0;
}

/* Called when all records of the chunk were delivered or skipped. */
static void chunk_done(struct store_reader *r)
{
	r->whole = r->next;
	r->state = BETWEEN;
}

/* Sets *raw to the decompressed payload. 1: done; 0: damaged; <0: error. */
static int payload(struct store_reader *r, const uint8_t **raw)
{
	const struct store_chunk_head *h = &r->chunk;
	size_t got;
	int err;

	if (h->codec == STORE_CODEC_NONE) {
		*raw = r->stored;
		return 1;
	}
	if (h->codec != STORE_CODEC_ZSTD)
		return error_set(-EPROTONOSUPPORT, "read it with the kprof release that wrote it",
				 "%s is compressed in a way that this kprof does not know (%u)",
				 r->path, h->codec);
	err = reserve(r, &r->raw, &r->raw_cap, h->raw_bytes);
	if (err)
		return err;
	/* At most raw_bytes are written; the check of the head has bounded that number. */
	got = ZSTD_decompressDCtx(r->zstd, r->raw, h->raw_bytes, r->stored, h->stored_bytes);
	if (ZSTD_isError(got) || got != h->raw_bytes)
		return 0;
	*raw = r->raw;
	return 1;
}

/* Reads the next chunk's head and payload as stored. 1: good; 0: cut or damaged; <0: error. */
static int load(struct store_reader *r)
{
	uint8_t head[STORE_CHUNK_HEAD_BYTES];
	struct store_chunk_head *h = &r->chunk;
	uint64_t left = r->size - r->next;
	int err;

	if (left < sizeof(head))
		return 0;
	err = read_at(r, head, sizeof(head), r->next);
	if (err <= 0)
		return err;
	if (!store_chunk_head__unpack(h, head) || h->seq != r->seq ||
	    h->stored_bytes > left - sizeof(head))
		return 0;
	err = reserve(r, &r->stored, &r->stored_cap, h->stored_bytes);
	if (err)
		return err;
	err = read_at(r, r->stored, h->stored_bytes, r->next + sizeof(head));
	if (err <= 0)
		return err;
	if (!store_chunk_head__payload_ok(h, r->stored))
		return 0;
	r->next += sizeof(head) + h->stored_bytes;
	r->seq++;
	return 1;
}

/* False: a type of chunk that a newer minor version has added, or one that this mode skips. */
static bool wanted(const struct store_reader *r)
{
	return r->chunk.type == STORE_CHUNK_TABLES ||
	       (r->chunk.type == STORE_CHUNK_EVENTS && r->mode == STORE_READ_ALL) ||
	       (r->chunk.type == STORE_CHUNK_DETAILS && r->mode != STORE_READ_TABLES);
}

/* Prepares to read the chunk's records. 1: done; 0: the payload is malformed. */
static int start_chunk(struct store_reader *r, const uint8_t *raw)
{
	if (r->chunk.type == STORE_CHUNK_EVENTS) {
		r->state = IN_EVENTS;
		return store_events__start(&r->events, &r->chunk, raw);
	}
	/* A detail may be about a span that only the next chunk of events begins. */
	r->ids.known[STORE_REF_SPAN].nr = r->begins + STORE_CHUNK_MAX_BYTES;
	rows_in__start(&r->rows, (enum store_chunk_type)r->chunk.type, raw, r->chunk.raw_bytes);
	r->state = IN_ROWS;
	return 1;
}

/* 1: the next chunk can be read, or was skipped; 0: the end; <0: error. */
static int next_chunk(struct store_reader *r)
{
	const uint8_t *raw = NULL;
	int err = load(r);

	if (err <= 0)
		return err;
	if (!wanted(r)) {
		r->begins += r->chunk.type == STORE_CHUNK_EVENTS ? r->chunk.begins : 0;
		r->samples += r->chunk.type == STORE_CHUNK_DETAILS ? r->chunk.begins : 0;
		chunk_done(r);
		return 1;
	}
	if (r->watch && r->chunk.type != STORE_CHUNK_TABLES &&
	    r->watch(r->watch_ctx, r->next, r->size))
		return error_set(-ECANCELED, NULL, "the export was cancelled");
	err = payload(r, &raw);
	if (err <= 0)
		return err;
	return start_chunk(r, raw);
}

/* Whether the chunk's head has counted right. Only heads of details count samples. */
static bool counts_ok(const struct store_reader *r)
{
	return r->rows.records == r->chunk.records &&
	       (r->chunk.type == STORE_CHUNK_TABLES || r->rows.samples == r->chunk.begins);
}

static int next_of_rows(struct store_reader *r, struct store_record *out)
{
	int err = rows_in__next(&r->rows, &r->ids, out);

	if (!err)
		return counts_ok(r) ? 0 : -EBADMSG;
	if (err < 0)
		return err;
	r->samples += out->type == STORE_SAMPLE;
	if (out->type == STORE_FINISH) {
		r->complete = true;
		chunk_done(r);
		r->state = ENDED;
	}
	return 1;
}

static int next_of_events(struct store_reader *r, struct store_record *out)
{
	int err = store_events__next(&r->events, &r->ids, out);

	if (err)
		return err;
	return r->events.records == r->chunk.records && r->events.begins == r->chunk.begins
		       ? 0
		       : -EBADMSG;
}

int store_reader__next(struct store_reader *r, struct store_record *out)
{
	pace_rest();
	for (;;) {
		int err = 0;

		switch (r->state) {
		case IN_EVENTS:
			err = next_of_events(r, out);
			r->begins += err == 1 && out->type == STORE_BEGIN;
			break;
		case IN_ROWS:
			err = next_of_rows(r, out);
			break;
		case BETWEEN:
			err = next_chunk(r);
			if (err < 0)
				return err;
			if (!err)
				return end_here(r);
			continue;
		case ENDED:
			return 0;
		}
		if (err == 1)
			return 1;
		if (err < 0) /* its checksum is right, but its content is malformed */
			return end_here(r);
		chunk_done(r);
	}
}

void store_reader__rewind(struct store_reader *r, enum store_read_mode mode)
{
	r->mode = mode;
	r->state = BETWEEN;
	r->whole = r->next = STORE_FILE_HEAD_BYTES;
	r->seq = 0;
	r->begins = r->samples = 0;
	r->complete = false;
	store_ids__init(&r->ids);
}

void store_reader__watch(struct store_reader *r,
			 int (*fn)(void *ctx, uint64_t done, uint64_t total), void *ctx)
{
	r->watch = fn;
	r->watch_ctx = ctx;
}

static int open_file(struct store_reader *r)
{
	struct stat st;

	/* O_NONBLOCK: a FIFO by that name is to be refused without waiting for its writer. */
	r->fd = open(r->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (r->fd < 0)
		return error_set(-errno,
				 errno == ENOENT   ? "check the name"
				 : errno == EACCES ? "captures are readable by their owner only"
						   : NULL,
				 "cannot open %s: %s", r->path, strerror(errno));
	if (fstat(r->fd, &st) < 0)
		return error_set(-errno, NULL, "cannot examine %s: %s", r->path, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return error_set(-EISDIR, "give the name of a .kprof file in it",
				 "%s is a directory", r->path);
	if (!S_ISREG(st.st_mode))
		return error_set(-EINVAL,
				 "give a .kprof file; copy it to a disk first if it comes "
				 "through a pipe",
				 "%s is not a regular file", r->path);
	r->size = (uint64_t)st.st_size;
	posix_fadvise(r->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	return 0;
}

static int read_head(struct store_reader *r)
{
	uint8_t head[STORE_FILE_HEAD_BYTES] = {0};
	size_t bytes = r->size < sizeof(head) ? (size_t)r->size : sizeof(head);
	int err = read_at(r, head, bytes, 0);

	if (err < 0)
		return err;
	return store_file_head__unpack(&r->head, head, err ? bytes : 0, r->path);
}

static int again(struct store_reader *r, const struct store_reader *of)
{
	r->size = of->size;
	r->fd = fcntl(of->fd, F_DUPFD_CLOEXEC, 0);
	return r->fd < 0 ? error_set(-errno, NULL, "cannot open %s: %s", r->path, strerror(errno))
			 : 0;
}

/* of: a reader of the same file; NULL: there is none. */
static int open_reader(const char *path, const struct store_reader *of, struct store_reader **out)
{
	struct store_reader *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return error_set(-ENOMEM, NULL, "no memory to open %s", path);
	r->fd = -1;
	r->path = strdup(path);
	r->zstd = ZSTD_createDCtx();
	if (!r->path || !r->zstd)
		err = error_set(-ENOMEM, NULL, "no memory to open %s", path);
	else
		err = of ? again(r, of) : open_file(r);
	if (!err)
		err = read_head(r);
	if (err) {
		store_reader__close(r);
		return err;
	}
	store_reader__rewind(r, STORE_READ_ALL);
	*out = r;
	return 0;
}

int store_reader__open(const char *path, struct store_reader **out)
{
	return open_reader(path, NULL, out);
}

int store_reader__again(const struct store_reader *r, struct store_reader **out)
{
	return open_reader(r->path, r, out);
}

void store_reader__info(const struct store_reader *r, struct store_reader_info *out)
{
	*out = (struct store_reader_info){
		.major = r->head.major,
		.minor = r->head.minor,
		.complete = r->complete,
		.lost_bytes = r->state == ENDED ? r->size - r->whole : 0,
		.size_bytes = r->size,
		.read_bytes = r->next,
		.begins = r->begins,
		.samples = r->samples,
	};
}

void store_reader__close(struct store_reader *r)
{
	if (!r)
		return;
	if (r->fd >= 0)
		close(r->fd);
	ZSTD_freeDCtx(r->zstd);
	free(r->stored);
	free(r->raw);
	free(r->path);
	free(r);
}
