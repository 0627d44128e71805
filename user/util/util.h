/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KPROF_UTIL_UTIL_H
#define KPROF_UTIL_UTIL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define NSEC_PER_SEC 1000000000ull
#define NSEC_PER_MSEC 1000000ull

uint64_t clock_mono_ns(void);
uint64_t clock_real_ns(void);
/* The real-time clock at a monotonic reading: the tightest of several pairs. */
void clock_pair(uint64_t *mono_ns, uint64_t *real_ns);

/* printf into a new string; NULL: no memory. */
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A whole small file (procfs too), NUL-terminated, malloc'ed; *bytes may be NULL. -errno. */
int read_file(const char *path, size_t max_bytes, char **out, size_t *bytes);

/*
 * Opens for reading what an O_PATH descriptor stands for, which stays open. -EINVAL: it is no
 * regular file. A name that other users may change is opened this way: opening a device is an act
 * of its driver's (a watchdog is armed by it), and looking at the name before does not say what is
 * opened after.
 */
int reopen_regular(int path_fd);
/*
 * Opens for reading a regular file as a process sees it whose root directory this is
 * ("/proc/PID/root"; "": our own). An absolute link, or one that climbs, stays within that root: in
 * a container it would lead to a file of the machine's. flags: 0, or O_NOFOLLOW (-ELOOP: a link
 * stands there). -EINVAL: no regular file, which is not opened; -errno.
 */
int open_in_root(const char *root, const char *path, int flags);

/* Grows a vector: room for one more of `size` bytes at *data; -ENOMEM. */
int vec_grow(void **data, size_t *cap, size_t nr, size_t size);

/* A growing array of elements of one size; they move while it grows. */
struct vec {
	void *data;
	size_t nr, cap;
};

/* A new element, all zero; NULL: no memory. */
void *vec_push(struct vec *v, size_t size);

/* After the last slash; all of it where nothing is after that. */
static inline const char *path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* Sums of numbers out of a file stop at the largest number rather than beginning anew. */
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

/* h: 0, or the hash of what comes before. */
static inline uint64_t hash64_text(uint64_t h, const char *text)
{
	for (; *text; text++)
		h = (h ^ (uint8_t)*text) * 0x100000001b3ull;
	return hash64(h);
}

#endif
