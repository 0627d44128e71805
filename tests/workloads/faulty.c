// SPDX-License-Identifier: BSD-2-Clause
/*
 * Preloaded into the daemon: calls fail now and then, as on a machine that is in trouble, and the
 * wall clock steps. A file says what, so that it can change while the daemon runs:
 *
 *   KPROF_FAULTS=FILE   numbers of 8 bytes: of how many writes to files one fails (0: none), the
 *                       same for renames, for allocations, what is added to CLOCK_REALTIME, in
 *                       ns, and for how long the machine was suspended, in ns
 *
 * Writes fail with EIO and ENOSPC in turn, and some are cut short; renames with EIO; allocations
 * with ENOMEM. Sockets and pipes are left alone.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct faults {
	uint64_t writes, renames, allocations;
	int64_t clock_ns;
	int64_t suspended_ns; /* the file may end before */
};

static const volatile struct faults *faults;
static _Thread_local uint64_t random_state;

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("KPROF_FAULTS");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *at = fd >= 0 ? mmap(NULL, sizeof(*faults), PROT_READ, MAP_SHARED, fd, 0) : NULL;

	if (fd >= 0)
		close(fd);
	faults = at == MAP_FAILED ? NULL : at;
}

/* One of so many, in each process and thread another one. */
static int hit(uint64_t of)
{
	if (!of)
		return 0;
	if (!random_state) {
		struct timespec t;

		clock_gettime(CLOCK_MONOTONIC, &t);
		random_state = (uint64_t)t.tv_nsec << 20 ^ (uint64_t)getpid() ^
			       (uint64_t)(uintptr_t)&random_state;
	}
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % of == 0;
}

/* -1: it fails; 1: it is cut short; 0: it is done. */
static int write_fault(int fd)
{
	struct stat st;

	if (!faults || !hit(faults->writes) || fstat(fd, &st) || !S_ISREG(st.st_mode))
		return 0;
	switch (random_state >> 32 & 3) {
	case 0:
		return 1;
	case 1:
		errno = EIO;
		return -1;
	default:
		errno = ENOSPC;
		return -1;
	}
}

#define NEXT(NAME) ((__typeof__(&NAME))dlsym(RTLD_NEXT, #NAME))

ssize_t write(int fd, const void *data, size_t bytes)
{
	static ssize_t (*next)(int, const void *, size_t);
	int fault = write_fault(fd);

	if (!next)
		next = NEXT(write);
	return fault < 0 ? -1 : next(fd, data, fault && bytes > 1 ? bytes / 2 : bytes);
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t at)
{
	static ssize_t (*next)(int, const void *, size_t, off_t);
	int fault = write_fault(fd);

	if (!next)
		next = NEXT(pwrite);
	return fault < 0 ? -1 : next(fd, data, fault && bytes > 1 ? bytes / 2 : bytes, at);
}

ssize_t pwrite64(int fd, const void *data, size_t bytes, off_t at)
{
	return pwrite(fd, data, bytes, at);
}

ssize_t writev(int fd, const struct iovec *parts, int nr)
{
	static ssize_t (*next)(int, const struct iovec *, int);
	int fault = write_fault(fd);

	if (!next)
		next = NEXT(writev);
	return fault < 0 ? -1 : next(fd, parts, fault ? 1 : nr);
}

int rename(const char *from, const char *to)
{
	if (faults && hit(faults->renames)) {
		errno = EIO;
		return -1;
	}
	return NEXT(rename)(from, to);
}

int renameat(int a, const char *from, int b, const char *to)
{
	if (faults && hit(faults->renames)) {
		errno = EIO;
		return -1;
	}
	return NEXT(renameat)(a, from, b, to);
}

int renameat2(int a, const char *from, int b, const char *to, unsigned int flags)
{
	if (faults && hit(faults->renames)) {
		errno = EIO;
		return -1;
	}
	return NEXT(renameat2)(a, from, b, to, flags);
}

int linkat(int a, const char *from, int b, const char *to, int flags)
{
	if (faults && hit(faults->renames)) {
		errno = EIO;
		return -1;
	}
	return NEXT(linkat)(a, from, b, to, flags);
}

/* glibc's own, which dlsym() does not need to find */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t nr, size_t bytes);
void *__libc_realloc(void *at, size_t bytes);

static int no_memory(void)
{
	if (!faults || !hit(faults->allocations))
		return 0;
	errno = ENOMEM;
	return 1;
}

void *malloc(size_t bytes)
{
	return no_memory() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t nr, size_t bytes)
{
	return no_memory() ? NULL : __libc_calloc(nr, bytes);
}

void *realloc(void *at, size_t bytes)
{
	return no_memory() ? NULL : __libc_realloc(at, bytes);
}

/* By how much the clock is ahead of the kernel's. */
static int64_t ahead_ns(clockid_t clock)
{
	if (!faults || (clock != CLOCK_REALTIME && clock != CLOCK_BOOTTIME))
		return 0;
	return (clock == CLOCK_REALTIME ? faults->clock_ns : 0) + faults->suspended_ns;
}

static void add_ns(struct timespec *t, int64_t add)
{
	int64_t ns = t->tv_sec * 1000000000ll + t->tv_nsec + add;

	t->tv_sec = ns / 1000000000;
	t->tv_nsec = ns % 1000000000;
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
	static int (*next)(clockid_t, struct timespec *);
	int result;

	if (!next)
		next = NEXT(clock_gettime);
	result = next(clock, out);
	if (!result && ahead_ns(clock))
		add_ns(out, ahead_ns(clock));
	return result;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left)
{
	struct timespec at = *time;

	if (flags & TIMER_ABSTIME && ahead_ns(clock))
		add_ns(&at, -ahead_ns(clock));
	return NEXT(clock_nanosleep)(clock, flags, &at, left);
}
