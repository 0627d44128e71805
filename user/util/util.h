/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KPROF_UTIL_UTIL_H
#define KPROF_UTIL_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define NSEC_PER_SEC 1000000000ull
#define NSEC_PER_MSEC 1000000ull

uint64_t clock_mono_ns(void);
uint64_t clock_real_ns(void);
/* CPU time of this thread; of a process, with threads of it that have ended (0: it is gone). */
uint64_t clock_thread_ns(void);
uint64_t clock_process_ns(pid_t pid);
/* Reads both clocks at the same moment: the closest of several pairs of readings. */
void clock_pair(uint64_t *mono_ns, uint64_t *real_ns);

/* From now on, the process may have as many files open as it may allow itself to. */
void raise_descriptor_limit(void);

/* Prints into a new string, which the caller frees. NULL: no memory. */
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/*
 * Reads a whole small file (of procfs, too), NUL-terminated and malloc'ed. -EFBIG: it has more than
 * max_bytes; -errno. bytes may be NULL.
 */
int read_file(const char *path, size_t max_bytes, char **out, size_t *bytes);
/* The same for an open file, from its position on. */
int read_fd(int fd, size_t max_bytes, char **out, size_t *bytes);
/* Writes all bytes. False: that is not possible; errno says why. */
bool write_all(int fd, const void *data, size_t bytes);

/* Makes room for one more element of `size` bytes in a vector. -ENOMEM. */
int vec_grow(void **data, size_t *cap, size_t nr, size_t size);

/* A growing array of elements of one size. The elements move when it grows. */
struct vec {
	void *data;
	size_t nr, cap;
};

/* Adds an element, all zero, and returns it. NULL: no memory. */
void *vec_push(struct vec *v, size_t size);

/* The part after the last slash; the whole path if nothing follows that. */
static inline const char *path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/*
 * Adds with a limit: sums of numbers from untrusted files stop at UINT64_MAX instead of wrapping.
 */
static inline void add_capped(uint64_t *to, uint64_t more)
{
	if (__builtin_add_overflow(*to, more, to))
		*to = UINT64_MAX;
}

static inline uint64_t hash64(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ull;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ull;
	return x ^ (x >> 32);
}

/* Continues a hash: h is 0, or the hash of the text before. */
static inline uint64_t hash64_text(uint64_t h, const char *text)
{
	for (; *text; text++)
		h = (h ^ (uint8_t)*text) * 0x100000001b3ull;
	return hash64(h);
}

#endif
