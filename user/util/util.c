// SPDX-License-Identifier: BSD-2-Clause
#include "util/util.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

uint64_t clock_mono_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t clock_real_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

void clock_pair(uint64_t *mono_ns, uint64_t *real_ns)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 16; i++) {
		uint64_t before = clock_mono_ns();
		uint64_t real = clock_real_ns();
		uint64_t width = clock_mono_ns() - before;

		if (width < best) {
			best = width;
			*mono_ns = before + width / 2;
			*real_ns = real;
		}
	}
}

char *xasprintf(const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	return text;
}

/* Opens for reading the regular file that an O_PATH descriptor refers to, which stays open. */
static int reopen_regular(int path_fd)
{
	struct stat st;
	char path[32];
	int fd;

	if (fstat(path_fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISLNK(st.st_mode) ? -ELOOP : -EINVAL;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	/*
	 * Without O_NONBLOCK, open() would wait for a lease that another process holds on the file.
	 */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

/* Uses openat2(), which is in Linux since 5.6 (fddb5d430ad9). */
static int name_in_root(const char *root, const char *path, int flags)
{
	struct open_how how = {.flags = (uint64_t)(O_PATH | O_CLOEXEC | flags),
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	int dir, fd;

	dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
	fd = fd < 0 ? -errno : fd;
	close(dir);
	return fd;
}

int open_in_root(const char *root, const char *path, int flags)
{
	int named, fd;

	if (*root) {
		named = name_in_root(root, path, flags);
	} else {
		named = open(path, O_PATH | O_CLOEXEC | flags);
		named = named < 0 ? -errno : named;
	}
	if (named < 0)
		return named;
	fd = reopen_regular(named);
	close(named);
	return fd;
}

int read_fd(int fd, size_t max_bytes, char **out, size_t *bytes)
{
	size_t cap = 4096, used = 0;
	char *text = NULL;
	int err = 0;

	for (;;) {
		char *more = realloc(text, cap + 1);
		ssize_t n;

		if (!more) {
			err = -ENOMEM;
			break;
		}
		text = more;
		n = read(fd, text + used, cap - used);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			err = -errno;
		if (n <= 0)
			break;
		used += (size_t)n;
		if (used > max_bytes) {
			err = -EFBIG;
			break;
		}
		if (used == cap)
			cap *= 2;
	}
	if (err) {
		free(text);
		return err;
	}
	text[used] = '\0';
	*out = text;
	if (bytes)
		*bytes = used;
	return 0;
}

int read_file(const char *path, size_t max_bytes, char **out, size_t *bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	err = read_fd(fd, max_bytes, out, bytes);
	close(fd);
	return err;
}

bool write_all(int fd, const void *data, size_t bytes)
{
	const char *at = data;

	while (bytes) {
		ssize_t n = write(fd, at, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += n;
		bytes -= (size_t)n;
	}
	return true;
}

int vec_grow(void **data, size_t *cap, size_t nr, size_t size)
{
	size_t want = *cap ? *cap * 2 : 16;
	void *more;

	if (nr < *cap)
		return 0;
	more = reallocarray(*data, want, size);
	if (!more)
		return -ENOMEM;
	*data = more;
	*cap = want;
	return 0;
}

void *vec_push(struct vec *v, size_t size)
{
	void *at;

	if (vec_grow(&v->data, &v->cap, v->nr, size))
		return NULL;
	at = (char *)v->data + v->nr++ * size;
	memset(at, 0, size);
	return at;
}
