// SPDX-License-Identifier: BSD-2-Clause
#include "util/mapped.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#define PAGE ((uintptr_t)4096)

/*
 * The SIGBUS handler may run at any time, in any thread. It therefore walks a list from which
 * nothing is ever removed; freed elements are used again.
 */
struct mapped {
	struct mapped *next; /* constant once this is in the list */
	atomic_bool used;
	atomic_uintptr_t start; /* 0: nothing is mapped */
	atomic_uintptr_t end;   /* end of the file's pages */
	atomic_bool cut;
	size_t all_bytes; /* including the page of zeros after the file */
};

static _Atomic(struct mapped *) all;
static atomic_size_t nr_unused;
static struct sigaction before;

/* ---- the signal handler ---- */

static struct mapped *find(uintptr_t address)
{
	for (struct mapped *m = atomic_load(&all); m; m = m->next) {
		uintptr_t start = atomic_load(&m->start), end = atomic_load(&m->end);

		/* `start` is read twice, to be sure that it and `end` are of the same mapping. */
		if (start && address >= start && address < end && atomic_load(&m->start) == start)
			return m;
	}
	return NULL;
}

/* The file ends before this page: maps zeros from here to the end of the file's pages. */
static bool patch(uintptr_t address)
{
	struct mapped *m = find(address);
	uintptr_t page = address & ~(PAGE - 1);

	if (!m)
		return false;
	atomic_store(&m->cut, true);
	return mmap((void *)page, atomic_load(&m->end) - page, PROT_READ,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED;
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
	int error = errno;
	/*
	 * A positive code is from the kernel: a fault at an address, not a signal that a process
	 * sent.
	 */
	bool fault = info->si_code > 0;

	if (!fault || !patch((uintptr_t)info->si_addr)) {
		if (before.sa_flags & SA_SIGINFO)
			before.sa_sigaction(number, info, context);
		else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
			before.sa_handler(number);
		else if (fault || before.sa_handler == SIG_DFL) {
			signal(number, SIG_DFL);
			raise(number); /* is delivered when this handler returns */
		}
	}
	errno = error;
}

static void install(void)
{
	struct sigaction action = {.sa_sigaction = on_bus_error,
				   .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};

	sigemptyset(&action.sa_mask);
	sigaction(SIGBUS, NULL, &before); /* first, for the new handler needs `before` at once */
	sigaction(SIGBUS, &action, NULL);
}

/* ---- mappings ---- */

static struct mapped *claim_unused(void)
{
	for (struct mapped *m = atomic_load(&nr_unused) ? atomic_load(&all) : NULL; m;
	     m = m->next) {
		bool used = false;

		if (atomic_compare_exchange_strong(&m->used, &used, true)) {
			atomic_fetch_sub(&nr_unused, 1);
			return m;
		}
	}
	return NULL;
}

static struct mapped *claim(void)
{
	struct mapped *m = claim_unused();

	if (m)
		return m;
	m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	m->used = true;
	m->next = atomic_load(&all);
	while (!atomic_compare_exchange_weak(&all, &m->next, m))
		;
	return m;
}

static void give_back(struct mapped *m)
{
	atomic_store(&m->used, false);
	atomic_fetch_add(&nr_unused, 1);
}

/*
 * Shared, since the kernel places the breakpoints of probes in private mappings of a file, even in
 * those that nobody executes: the file's code would not be read as it is. Some files can only be
 * mapped privately (sealed memfds before Linux 6.7, some of FUSE).
 */
static int map_file(void *at, size_t bytes, int fd)
{
	if (mmap(at, bytes, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED &&
	    mmap(at, bytes, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED)
		return -errno;
	return 0;
}

int mapped__new(int fd, size_t bytes, struct mapped **out)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	size_t pages = (bytes + PAGE - 1) & ~(PAGE - 1);
	struct mapped *m;
	void *at;
	int err;

	*out = NULL;
	if (!bytes || pages < bytes || pages + PAGE < pages)
		return -EINVAL;
	m = claim();
	if (!m)
		return -ENOMEM;
	pthread_once(&once, install);
	m->all_bytes = pages + PAGE;
	at = mmap(NULL, m->all_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		  0);
	if (at == MAP_FAILED) {
		err = -errno;
		give_back(m);
		return err;
	}
	if (map_file(at, pages, fd)) {
		err = -errno;
		munmap(at, m->all_bytes);
		give_back(m);
		return err;
	}
	atomic_store(&m->cut, false);
	atomic_store(&m->end, (uintptr_t)at + pages);
	atomic_store(&m->start, (uintptr_t)at);
	*out = m;
	return 0;
}

void mapped__free(struct mapped *m)
{
	uintptr_t start;

	if (!m)
		return;
	start = atomic_exchange(&m->start, 0);
	munmap((void *)start, m->all_bytes);
	give_back(m);
}

const uint8_t *mapped__bytes(const struct mapped *m)
{
	return (const uint8_t *)atomic_load(&m->start);
}

bool mapped__cut(const struct mapped *m)
{
	return atomic_load(&m->cut);
}

void mapped__forget(const struct mapped *m)
{
	uintptr_t start = atomic_load(&m->start);

	/*
	 * A private mapping of a file that was never written to: the pages can be read from it
	 * again.
	 */
	madvise((void *)start, atomic_load(&m->end) - start, MADV_DONTNEED);
}
