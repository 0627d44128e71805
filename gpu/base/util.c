// SPDX-License-Identifier: BSD-2-Clause
/* Locks, memory, text and threads of the agent, with little of the process's libraries. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "gpu/base/module.h"
#include "gpu/base/util.h"

#define STACK_BYTES (1u << 20) /* at least: programs may have set a smaller default */

void gpu_futex_wait(const uint32_t *word, uint32_t value, int timeout_ms, bool shared)
{
	struct timespec t = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
	int saved = errno;

	syscall(SYS_futex, word, FUTEX_WAIT | (shared ? 0 : FUTEX_PRIVATE_FLAG), value,
		timeout_ms < 0 ? NULL : &t, NULL, 0);
	errno = saved;
}

void gpu_futex_wake(const uint32_t *word, bool shared)
{
	int saved = errno;

	syscall(SYS_futex, word, FUTEX_WAKE | (shared ? 0 : FUTEX_PRIVATE_FLAG), INT32_MAX, NULL,
		NULL, 0);
	errno = saved;
}

void gpu_lock__slow(struct gpu_lock *l)
{
	while (__atomic_exchange_n(&l->state, 2, __ATOMIC_ACQUIRE))
		gpu_futex_wait(&l->state, 2, -1, false);
}

bool gpu_trylock__slow(struct gpu_lock *l, unsigned int wait_ms)
{
	uint64_t until = gpu_now_ns() + wait_ms * UINT64_C(1000000);

	while (__atomic_exchange_n(&l->state, 2, __ATOMIC_ACQUIRE)) {
		if (gpu_now_ns() >= until)
			return false;
		gpu_futex_wait(&l->state, 2, 10, false);
	}
	return true;
}

void *gpu_pages(size_t bytes)
{
	int saved = errno;
	void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	errno = saved;
	return pages == MAP_FAILED ? NULL : pages;
}

void gpu_pages_free(void *pages, size_t bytes)
{
	int saved = errno;

	if (pages)
		munmap(pages, bytes);
	errno = saved;
}

const char *gpu_number(char *text, uint64_t value)
{
	char *p = text + 23;

	*p = '\0';
	do
		*--p = (char)('0' + value % 10);
	while (value /= 10);
	return memmove(text, p, (size_t)(text + 24 - p));
}

size_t gpu_append(char *text, size_t room, size_t at, const char *more)
{
	size_t bytes = strlen(more);

	if (at + bytes >= room)
		bytes = room - 1 - at;
	memcpy(text + at, more, bytes);
	text[at + bytes] = '\0';
	return at + bytes;
}

int gpu_report(struct gpu_report *r, int err, enum kprof_agent_reason reason, ...)
{
	const char *piece;
	size_t at = 0;
	va_list ap;

	r->reason = reason;
	va_start(ap, reason);
	while ((piece = va_arg(ap, const char *)))
		at = gpu_append(r->detail, sizeof(r->detail), at, piece);
	va_end(ap);
	return err;
}

/*
 * Which namespace that is. By calls that loading a library needs, too: filters may kill for others.
 */
static uint64_t namespace_at(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st = {0};

	if (fd < 0)
		return 0;
	syscall(SYS_newfstatat, fd, "", &st, AT_EMPTY_PATH);
	close(fd);
	return st.st_ino;
}

/*
 * Has the process made a time namespace for its children, which it enters at its next exec? The
 * offsets are those of the new one.
 */
static bool has_one_for_children(void)
{
	return namespace_at("/proc/self/ns/time") !=
	       namespace_at("/proc/self/ns/time_for_children");
}

/*
 * By how much the process's clocks are ahead of the machine's, which kprof's are: it may be in a
 * time namespace. A kernel without them has no such file. "monotonic  SECONDS NS\nboottime …".
 */
static int64_t clock_shift_ns(void)
{
	int64_t parts[2] = {0}, sign[2] = {1, 1};
	char text[128];
	int fd = open("/proc/self/timens_offsets", O_RDONLY | O_CLOEXEC), part = -1;
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text));
	bool in_number = false;

	if (fd >= 0)
		close(fd);
	for (ssize_t i = 0; i < n && text[i] != '\n'; i++) {
		bool digit = text[i] >= '0' && text[i] <= '9';

		part += (digit || text[i] == '-') && !in_number;
		in_number = digit || text[i] == '-';
		if (part > 1 || !in_number)
			continue;
		if (digit)
			parts[part] = parts[part] * 10 + text[i] - '0';
		else
			sign[part] = -1;
	}
	return sign[0] * parts[0] * 1000000000 + sign[1] * parts[1];
}

static int64_t shift_ns;

void gpu_find_clock(void)
{
	__atomic_store_n(&shift_ns, has_one_for_children() ? 0 : clock_shift_ns(),
			 __ATOMIC_RELAXED);
}

uint64_t gpu_now_ns(void)
{
	return gpu_clock_ns(CLOCK_MONOTONIC) -
	       (uint64_t)__atomic_load_n(&shift_ns, __ATOMIC_RELAXED);
}

uint32_t gpu_tid(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

int gpu_thread(void *(*run)(void *arg), void *arg)
{
	sigset_t all, before;
	pthread_attr_t attr;
	size_t stack = 0;
	pthread_t t;
	int err;

	err = pthread_attr_init(&attr);
	if (err)
		return -err;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (!pthread_attr_getstacksize(&attr, &stack) && stack < STACK_BYTES)
		pthread_attr_setstacksize(&attr, STACK_BYTES);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&t, &attr, run, arg);
	sigprocmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -err;
}
