// SPDX-License-Identifier: BSD-2-Clause
#include "util/bulk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "util/util.h"

#define BLOCK_BYTES (1ul << BULK_BLOCK_SHIFT)
/* Blocks of an array that are mapped in. */
#define WINDOW_BLOCKS (BULK_MEMORY_BYTES >> BULK_BLOCK_SHIFT)
/* The file grows by this, or by a quarter. */
#define FILE_STEP_BYTES (16ul << 20)
/* Fewer elements than this are sorted by insertion. */
#define SORT_FEW 12

struct bulk_window {
	int fd;
	size_t bytes;                 /* of the file and its mapping */
	size_t blocks[WINDOW_BLOCKS]; /* those mapped in: a ring, the oldest at `next` */
	size_t nr, next;
};

/* ---- the file ---- */

static int temporary_file(void)
{
	const char *dir = getenv("TMPDIR");
	char path[PATH_MAX];
	int fd;

	if (!dir || !*dir)
		dir = "/var/tmp";
	fd = open(dir, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	/* Not every file system has files without a name. */
	if (snprintf(path, sizeof(path), "%s/kprof.XXXXXX", dir) >= (int)sizeof(path))
		return -1;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

/* Reserves space, since a full disk would otherwise be a signal at some access. */
static bool reserve(int fd, size_t from, size_t to)
{
	struct rlimit limit;

	/* Beyond this limit there would be a signal, too. */
	if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur < to)
		return false;
	return !posix_fallocate(fd, (off_t)from, (off_t)(to - from));
}

/* Begins to count blocks from the present address. */
static bool forget_blocks(struct bulk *b, const char *data, size_t bytes)
{
	uintptr_t origin = (uintptr_t)data & ~(BLOCK_BYTES - 1);
	size_t nr = ((uintptr_t)data + bytes - origin) / BLOCK_BYTES + 1;
	uint8_t *mapped = realloc(b->mapped, nr);

	if (!mapped)
		return false;
	memset(mapped, 0, nr);
	b->mapped = mapped;
	b->origin = origin;
	b->window->nr = b->window->next = 0;
	return true;
}

/* Moves the array from memory into a file. False: that is not possible. */
static bool move_to_file(struct bulk *b, size_t bytes)
{
	struct bulk_window *w = calloc(1, sizeof(*w));
	char *data = MAP_FAILED;

	if (!w)
		return false;
	w->fd = temporary_file();
	w->bytes = bytes;
	if (w->fd < 0 || !reserve(w->fd, 0, bytes) || !write_all(w->fd, b->data, b->nr * b->size))
		goto fail;
	data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, w->fd, 0);
	b->window = w;
	if (data == MAP_FAILED || !forget_blocks(b, data, bytes))
		goto fail;
	/*
	 * When the kernel reads ahead, it keeps the file's pages in folios of up to 2 MB, and later
	 * maps in a whole one at each fault ("mm/filemap: map entire large folio faultaround",
	 * Linux 6.18). So only bulk__map() reads ahead: one block.
	 */
	madvise(data, bytes, MADV_RANDOM);
	free(b->data);
	b->data = data;
	return true;
fail:
	b->window = NULL;
	if (data != MAP_FAILED)
		munmap(data, bytes);
	if (w->fd >= 0)
		close(w->fd);
	free(w);
	return false;
}

static bool grow_file(struct bulk *b, size_t bytes)
{
	struct bulk_window *w = b->window;
	char *data;

	if (!reserve(w->fd, w->bytes, bytes))
		return false;
	madvise(b->data, w->bytes, MADV_DONTNEED); /* the file keeps what is in it */
	data = mremap(b->data, w->bytes, bytes, MREMAP_MAYMOVE);
	if (data == MAP_FAILED)
		return false;
	b->data = data;
	w->bytes = bytes;
	return forget_blocks(b, data, bytes);
}

static uintptr_t mapped_end(const struct bulk *b, size_t block)
{
	uintptr_t end = (uintptr_t)b->data + b->window->bytes;
	uintptr_t at = b->origin + (block << BULK_BLOCK_SHIFT);

	return at < end ? at : end;
}

/* An element can reach into the next block, which then is mapped in too. */
static void unmap(const struct bulk *b, size_t block)
{
	uintptr_t from = b->origin + (block << BULK_BLOCK_SHIFT);
	uintptr_t to = mapped_end(b, block + 1);

	if (to < (uintptr_t)b->data + b->window->bytes && !b->mapped[block + 1])
		to = mapped_end(b, block + 2);
	if (from < (uintptr_t)b->data)
		from = (uintptr_t)b->data;
	madvise((void *)from, to - from, MADV_DONTNEED);
	b->mapped[block] = 0;
}

static void read_ahead(const struct bulk *b, size_t block)
{
	uintptr_t from = b->origin + (block << BULK_BLOCK_SHIFT), data = (uintptr_t)b->data;

	if (from < data)
		from = data;
	posix_fadvise(b->window->fd, (off_t)(from - data), (off_t)(mapped_end(b, block + 1) - from),
		      POSIX_FADV_WILLNEED);
}

void bulk__map(const struct bulk *b, size_t block)
{
	struct bulk_window *w = b->window;

	if (w->nr < WINDOW_BLOCKS) {
		w->blocks[w->nr++] = block;
	} else {
		unmap(b, w->blocks[w->next]);
		w->blocks[w->next] = block;
		w->next = (w->next + 1) % WINDOW_BLOCKS;
	}
	b->mapped[block] = 1;
	read_ahead(b, block);
}

/* ---- the array ---- */

static int grow_in_memory(struct bulk *b, size_t cap)
{
	void *data = reallocarray(b->data, cap, b->size);

	if (!data)
		return -ENOMEM;
	b->data = data;
	b->cap = cap;
	return 0;
}

/* When the disk is full, memory is what is left. */
static int move_to_memory(struct bulk *b, size_t cap)
{
	struct bulk in_memory = {.size = b->size, .no_file = true};

	if (grow_in_memory(&in_memory, cap))
		return -ENOMEM;
	memcpy(in_memory.data, b->data, b->nr * b->size);
	in_memory.nr = b->nr;
	bulk__free(b);
	*b = in_memory;
	return 0;
}

static int grow(struct bulk *b, size_t nr)
{
	size_t cap = b->cap * 2 > nr ? b->cap * 2 : nr, bytes;

	if (cap < 16)
		cap = 16;
	if (nr > SIZE_MAX / 4 / b->size)
		return -ENOMEM;
	if (b->no_file || cap * b->size <= BULK_MEMORY_BYTES)
		return grow_in_memory(b, cap);
	bytes = b->window ? b->window->bytes : 0;
	bytes += bytes / 4 > FILE_STEP_BYTES ? bytes / 4 : FILE_STEP_BYTES;
	if (bytes < nr * b->size)
		bytes = nr * b->size;
	if (b->window && !grow_file(b, bytes))
		return move_to_memory(b, cap);
	if (!b->window && !move_to_file(b, bytes)) {
		b->no_file = true;
		return grow_in_memory(b, cap);
	}
	b->cap = bytes / b->size;
	return 0;
}

int bulk__resize(struct bulk *b, size_t nr)
{
	int err = nr > b->cap ? grow(b, nr) : 0;

	if (!err)
		b->nr = nr;
	return err;
}

void bulk__free(struct bulk *b)
{
	if (b->window) {
		munmap(b->data, b->window->bytes);
		close(b->window->fd);
	} else {
		free(b->data);
	}
	free(b->window);
	free(b->mapped);
	*b = (struct bulk){.size = b->size};
}

/* ---- sorting ---- */

struct sort {
	struct bulk *b, held; /* held: the left half while it is merged with the right one */
	int (*compare)(const void *a, const void *b, void *ctx);
	void *ctx;
};

static void copy(const struct sort *s, void *to, const void *from)
{
	if (s->b->size == sizeof(uint32_t))
		memcpy(to, from, sizeof(uint32_t));
	else
		memcpy(to, from, s->b->size);
}

static bool in_order(const struct sort *s, const void *a, const void *b)
{
	return s->compare(a, b, s->ctx) <= 0;
}

static void insert_all(struct sort *s, size_t from, size_t to)
{
	void *held = bulk__at(&s->held, 0);

	for (size_t i = from + 1; i < to; i++) {
		size_t at = i;

		if (in_order(s, bulk__at(s->b, i - 1), bulk__at(s->b, i)))
			continue;
		copy(s, held, bulk__at(s->b, i));
		do
			copy(s, bulk__at(s->b, at), bulk__at(s->b, at - 1));
		while (--at > from && !in_order(s, bulk__at(s->b, at - 1), held));
		copy(s, bulk__at(s->b, at), held);
	}
}

static void merge(struct sort *s, size_t from, size_t mid, size_t to)
{
	size_t low = from, high = mid, nr, left = 0, right = mid;
	const void *first = bulk__at(s->b, mid);

	/* What is not larger than all of the right half stays where it is. */
	while (low < high) {
		size_t half = low + (high - low) / 2;

		if (in_order(s, bulk__at(s->b, half), first))
			low = half + 1;
		else
			high = half;
	}
	nr = mid - low;
	for (size_t i = 0; i < nr; i++)
		copy(s, bulk__at(&s->held, i), bulk__at(s->b, low + i));
	while (left < nr) {
		const void *a = bulk__at(&s->held, left);

		if (right == to || in_order(s, a, bulk__at(s->b, right))) {
			copy(s, bulk__at(s->b, low++), a);
			left++;
		} else {
			copy(s, bulk__at(s->b, low++), bulk__at(s->b, right++));
		}
	}
}

/* Depth first, so that what is compared lies close together. */
static void sort(struct sort *s, size_t from, size_t to)
{
	size_t mid = from + (to - from) / 2;

	if (to - from <= SORT_FEW) {
		insert_all(s, from, to);
		return;
	}
	sort(s, from, mid);
	sort(s, mid, to);
	if (!in_order(s, bulk__at(s->b, mid - 1), bulk__at(s->b, mid)))
		merge(s, from, mid, to);
}

int bulk__sort(struct bulk *b, size_t from, size_t to,
	       int (*compare)(const void *a, const void *b, void *ctx), void *ctx)
{
	struct sort s = {.b = b, .held = {.size = b->size}, .compare = compare, .ctx = ctx};

	if (to - from < 2)
		return 0;
	if (bulk__resize(&s.held, (to - from) / 2))
		return -ENOMEM;
	sort(&s, from, to);
	bulk__free(&s.held);
	return 0;
}
