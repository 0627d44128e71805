// SPDX-License-Identifier: BSD-2-Clause
#include "util/util.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
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

void raise_descriptor_limit(void)
{
	struct rlimit r;

	if (!getrlimit(RLIMIT_NOFILE, &r)) {
		r.rlim_cur = r.rlim_max;
		setrlimit(RLIMIT_NOFILE, &r);
	}
}

uint64_t clock_mono_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t clock_real_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

uint64_t clock_thread_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t clock_process_ns(pid_t pid)
{
	struct timespec t;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t))
		return 0;
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
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
