// SPDX-License-Identifier: BSD-2-Clause
/*
 * A capture of any bytes, through the reader in every mode; every reference it hands out is held
 * against an account of its own (struct seen). Each input is read twice: as it is, and resealed,
 * that is with the checksums, numbers and sizes of its chunks put right, so that the mutations
 * get past them and into the decoders.
 */
#include <sys/mman.h>

#include "store_fixture.h"
#include "store/format.h"

#define INPUT_MAX_BYTES (1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_reader(const uint8_t *data, size_t size)
{
	struct store_reader_info all, details, tables;
	struct store_reader *r;
	struct seen seen;
	char path[32];
	int fd = memfd_create("capture", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (store_reader__open(path, &r) == 0) {
		int err = read_all(r, STORE_READ_ALL, &seen, &all);

		CHECK(!err || err == -EPROTONOSUPPORT);
		CHECK(all.lost_bytes <= size && all.read_bytes <= size);
		err = read_all(r, STORE_READ_TABLES, &seen, &tables);
		CHECK(!err || err == -EPROTONOSUPPORT);
		CHECK_EQ(seen.begins, 0);
		CHECK_EQ(seen.details, 0);
		CHECK(!all.complete || (tables.complete && tables.begins == all.begins));
		CHECK(!all.complete || tables.samples == all.samples);
		err = read_all(r, STORE_READ_DETAILS, &seen, &details);
		CHECK(!err || err == -EPROTONOSUPPORT);
		CHECK_EQ(seen.begins, 0);
		CHECK(!all.complete || (details.complete && details.begins == all.begins));
		store_reader__close(r);
	}
	close(fd);
	if (unit_failures_here)
		abort();
}

/* Where the next chunk starts, or the end. */
static size_t next_chunk(const uint8_t *data, size_t from, size_t size)
{
	const uint8_t *at = from < size ? memmem(data + from, size - from, "KCHK", 4) : NULL;

	return at ? (size_t)(at - data) : size;
}

static void reseal(uint8_t *data, size_t size)
{
	size_t at = STORE_FILE_HEAD_BYTES, end;

	store_file_head__pack(STORE_FORMAT_MAJOR, data[10], data);
	for (uint32_t seq = 0; at + STORE_CHUNK_HEAD_BYTES <= size; at = end, seq++) {
		struct store_chunk_head h;
		uint8_t *payload = data + at + STORE_CHUNK_HEAD_BYTES;

		memcpy(&h, data + at, sizeof(h));
		end = next_chunk(data, at + STORE_CHUNK_HEAD_BYTES, size);
		h.seq = seq;
		h.stored_bytes = (uint32_t)(data + end - payload);
		if (h.codec == STORE_CODEC_NONE)
			h.raw_bytes = h.stored_bytes;
		store_chunk_head__seal(&h, payload, data + at);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy;

	if (size > INPUT_MAX_BYTES)
		return 0;
	check_reader(data, size);
	if (size < STORE_FILE_HEAD_BYTES)
		return 0;
	copy = malloc(size);
	memcpy(copy, data, size);
	reseal(copy, size);
	check_reader(copy, size);
	free(copy);
	return 0;
}
