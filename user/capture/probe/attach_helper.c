// SPDX-License-Identifier: BSD-2-Clause
#include "capture/probe/attach_helper.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "util/haste.h"

#define STACK_BYTES (128 << 10)
#define GUARD_BYTES (64 << 10)

struct call {
	long number, args[3], result;
};

/* The child runs nothing but these two functions, and no code of a sanitizer either. */
#define BARE __attribute__((no_sanitize("address", "undefined")))

/*
 * Not through the C library: the dynamic linker would look up its syscall() here, holding a lock.
 */
BARE static long make(const struct call *c)
{
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(c->number), "D"(c->args[0]), "S"(c->args[1]), "d"(c->args[2])
			 : "rcx", "r11", "memory");
	return result;
}

BARE static int child_main(void *arg)
{
	struct call *c = arg;

	c->result = make(c);
	return 0; /* glibc's clone() passes this to the system call _exit() */
}

long attach_helper_call(long number, long a, long b, long c)
{
	struct call call = {.number = number, .args = {a, b, c}};
	sigset_t all, before;
	char *stack;
	pid_t pid;
	int nice;

	stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (stack == MAP_FAILED)
		return make(&call);
	/* A stack overflow must not write into the memory below the stack. */
	mprotect(stack, GUARD_BYTES, PROT_NONE);
	/*
	 * The child has the same signal handlers and the same memory, and Ctrl-C signals it, too.
	 */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	/* The call holds locks that the target, and every fork() of the machine, waits for. */
	nice = haste__begin();
	/*
	 * CLONE_VFORK: the child uses this thread's local storage, so this thread waits for its
	 * end.
	 */
	pid = clone(child_main, stack + STACK_BYTES, CLONE_VM | CLONE_FILES | CLONE_VFORK, &call);
	if (pid < 0)
		call.result = make(&call);
	else
		while (waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR)
			;
	haste__end(nice);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	munmap(stack, STACK_BYTES);
	return call.result;
}
