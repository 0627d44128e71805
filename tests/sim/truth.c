/* SPDX-License-Identifier: BSD-2-Clause */
/* SIMULATED CUDA, FOR TESTS: the truth file. */
#include "truth.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHUNK (4ul << 20)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int fd = -1;
static char *map;         /* of the chunk written to */
static off_t chunk, used; /* its offset in the file; bytes of it that are lines */

bool truth__on(void)
{
	return __atomic_load_n(&fd, __ATOMIC_RELAXED) >= 0;
}

/* A mapping at `at`, or none: the file then ends here. */
static void move_to(off_t at)
{
	if (map)
		munmap(map, CHUNK);
	map = NULL;
	chunk = at;
	used = 0;
	if (ftruncate(fd, at + (off_t)CHUNK))
		return;
	map = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE, MAP_SHARED, fd, at);
	if (map == MAP_FAILED)
		map = NULL;
}

void truth__open(void)
{
	const char *prefix = getenv("KPROF_SIM_TRUTH");
	char path[4096];

	pthread_mutex_init(&lock, NULL);
	if (fd >= 0) { /* a parent's */
		close(fd);
		if (map)
			munmap(map, CHUNK);
		map = NULL;
		fd = -1;
	}
	if (!prefix || !*prefix)
		return;
	snprintf(path, sizeof(path), "%s.%d.jsonl", prefix, getpid());
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0 && errno == EEXIST) { /* the same process before exec */
		snprintf(path, sizeof(path), "%s.%d.exec.jsonl", prefix, getpid());
		fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	}
	if (fd < 0) {
		perror(path);
		return;
	}
	move_to(0);
}

void truth__close(void)
{
	pthread_mutex_lock(&lock);
	if (fd >= 0) {
		if (ftruncate(fd, chunk + used))
			perror("KPROF_SIM_TRUTH");
		if (map)
			munmap(map, CHUNK);
		map = NULL;
		close(fd);
		fd = -1;
	}
	pthread_mutex_unlock(&lock);
}

/*
 * Lines do not end with chunks, and chunks of a file of whole lines need not be full: blanks are no
 * harm in JSON.
 */
static void put(const char *line, size_t len)
{
	if (!map)
		return;
	if (used + (off_t)len > (off_t)CHUNK) {
		memset(map + used, ' ', CHUNK - used);
		move_to(chunk + (off_t)CHUNK);
		if (!map)
			return;
	}
	/* The newline last: a line without one was cut by a kill. */
	memcpy(map + used, line, len - 1);
	__atomic_store_n(&map[used + len - 1], '\n', __ATOMIC_RELEASE);
	used += (off_t)len;
}

void truth__vsay(const char *fmt, va_list args)
{
	char line[4096];
	int len;

	if (!truth__on())
		return;
	len = vsnprintf(line, sizeof(line) - 1, fmt, args);
	if (len < 0 || len >= (int)sizeof(line) - 1)
		return;
	line[len++] = '\n';
	pthread_mutex_lock(&lock);
	put(line, (size_t)len);
	pthread_mutex_unlock(&lock);
}

void truth__say(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	truth__vsay(fmt, args);
	va_end(args);
}

const char *truth__escape(char *out, unsigned long size, const char *in)
{
	unsigned long n = 0;

	for (; in && *in && n + 8 < size; in++) {
		if (*in == '"' || *in == '\\')
			out[n++] = '\\';
		if ((unsigned char)*in < 0x20)
			n += (unsigned long)sprintf(out + n, "\\u%04x", *in);
		else
			out[n++] = *in;
	}
	out[n] = 0;
	return out;
}
