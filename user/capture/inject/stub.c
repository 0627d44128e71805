// SPDX-License-Identifier: BSD-2-Clause
/*
 * The code that is mapped read-only into the target, position-independent. It has two parts, which
 * lie in pages of their own, because each unmaps itself when it is done.
 *
 * The stub is what the borrowed thread runs. It begins with rbx = the address of struct
 * inject_stub_data and rsp = the end of a stack of its own. It makes a thread, and never returns:
 * it unmaps itself by a `syscall; ret` in the C library, whose `ret` enters the signal frame, which
 * restores the thread. That works without kprof.
 *
 * All signals of the borrowed thread are blocked when it comes here. While it makes the thread it
 * answers glibc's SIGSETXID (remote.c says why), and the new thread, whose blocked signals are its
 * creator's, will answer it as well.
 *
 * When the thread is made the stub waits a moment for kprof, which can restore the borrowed thread
 * more exactly than a signal frame: an interrupted sleep goes on with the time that was left.
 * Without kprof the stub goes on alone. It waits in ppoll(2), which, unlike nanosleep, poll and
 * futex, does not overwrite what the kernel has kept of the interrupted call (restart_block).
 * (Making a thread calls malloc. A malloc of the program's own that sleeps by nanosleep does
 * overwrite it: then an interrupted sleep ends with EINTR.)
 *
 * The task is the function that the new thread runs: it loads the library and starts the agent,
 * closes the memfd, unmaps itself, and ends.
 */
#include <string.h>

#include "capture/inject/priv.h"

_Static_assert(sizeof(struct inject_stub_data) <= INJECT_PAGE, "one page");
_Static_assert(sizeof(struct inject_task_data) <= INJECT_PAGE, "one page");

/* A field of the structs: as the assembler writes it, and as an operand that is its offset. */
#define AT(field) "%c[" #field "](%%rbx)"
#define TASK(field) "%c[" #field "](%%rcx)"
#define OFFSET(field) [field] "i"(offsetof(struct inject_stub_data, field))
#define TASK_OFFSET(name, field) [name] "i"(offsetof(struct inject_task_data, field))

extern const char kprof_inject_stub[], kprof_inject_stub_wait[], kprof_inject_stub_go[],
	kprof_inject_stub_end[], kprof_inject_task[], kprof_inject_task_end[];

/* These are never called: an asm statement that has operands must be in a function. */
/* clang-format off */
/* rt_sigprocmask(SIG_SETMASK, &field, NULL, 8) */
#define SET_BLOCKED(field) \
	"	movl $2, %%edi\n" \
	"	leaq " AT(field) ", %%rsi\n" \
	"	xorl %%edx, %%edx\n" \
	"	movl $8, %%r10d\n" \
	"	movl $14, %%eax\n" \
	"	syscall\n"

__attribute__((used, noinline)) static void stub_code(void)
{
	__asm__ volatile(
		".pushsection .rodata\n"
		".balign 16\n"
		"kprof_inject_stub:\n"
		"	movl $1, " AT(state) "\n"
		"	cld\n"
		"	fninit\n"
		"	ldmxcsr " AT(mxcsr) "\n"
		/* errno belongs to the interrupted code */
		"	call *" AT(errno_location) "\n"
		"	movq %%rax, %%r12\n"
		"	movl (%%rax), %%r13d\n"
		SET_BLOCKED(blocked_in_create)
		/* from here on nobody else may unmap the task */
		"	movq " AT(task_data) ", %%rcx\n"
		"	movl $1, " TASK(task_state) "\n"
		"	movq " AT(task) ", %%rdx\n"
		"	leaq " AT(thread) ", %%rdi\n"
		"	xorl %%esi, %%esi\n"
		"	call *" AT(thread_create) "\n"
		"	movl %%eax, " AT(result) "\n"
		"	testl %%eax, %%eax\n"
		"	jz .Ldone\n"
		"	movq " AT(task_data) ", %%rcx\n"
		"	movl $0, " TASK(task_state) "\n"
		".Ldone:\n"
		SET_BLOCKED(blocked)
		"	movl %%r13d, (%%r12)\n"
		"	movl $2, " AT(state) "\n"
		"kprof_inject_stub_wait:\n"
		"	xorl %%edi, %%edi\n"
		"	xorl %%esi, %%esi\n"
		"	leaq " AT(patience) ", %%rdx\n"
		"	xorl %%r10d, %%r10d\n"
		"	movl $8, %%r8d\n"
		"	movl $271, %%eax\n" /* ppoll */
		"	syscall\n"
		"	nop\n" /* kprof sees the thread at this address while it waits */
		"kprof_inject_stub_go:\n"
		"	movq " AT(region) ", %%rdi\n"
		"	movq " AT(region_bytes) ", %%rsi\n"
		"	movq " AT(syscall_ret) ", %%rdx\n"
		"	movq " AT(chain) ", %%rsp\n"
		"	movl $11, %%eax\n" /* munmap */
		"	jmp *%%rdx\n"
		"kprof_inject_stub_end:\n"
		".popsection\n"
		: : OFFSET(state), OFFSET(mxcsr), OFFSET(result), OFFSET(errno_location),
		    OFFSET(thread_create), OFFSET(thread), OFFSET(task), OFFSET(task_data),
		    OFFSET(region), OFFSET(region_bytes), OFFSET(syscall_ret), OFFSET(chain),
		    OFFSET(patience), OFFSET(blocked), OFFSET(blocked_in_create),
		    TASK_OFFSET(task_state, state));
}
/* clang-format on */

#undef OFFSET
#define OFFSET(field) [field] "i"(offsetof(struct inject_task_data, field))

/* clang-format off */
__attribute__((used, noinline)) static void task_code(void)
{
	__asm__ volatile(
		".pushsection .rodata\n"
		".balign 16\n"
		"kprof_inject_task:\n"
		"	pushq %%rbx\n"
		"	movq %%rdi, %%rbx\n"
		"	movl $15, %%edi\n" /* PR_SET_NAME */
		"	leaq " AT(name) ", %%rsi\n"
		"	movl $157, %%eax\n" /* prctl */
		"	syscall\n"
		"	movq " AT(start) ", %%rax\n"
		"	testq %%rax, %%rax\n"
		"	jnz .Lstart\n"
		"	leaq " AT(path) ", %%rdi\n"
		"	movl " AT(flags) ", %%esi\n"
		"	call *" AT(dlopen) "\n"
		"	movq %%rax, " AT(handle) "\n"
		"	testq %%rax, %%rax\n"
		"	jz .Lerror\n"
		"	movl $1, " AT(step) "\n"
		"	movq %%rax, %%rdi\n"
		"	leaq " AT(symbol) ", %%rsi\n"
		"	call *" AT(dlsym) "\n"
		"	testq %%rax, %%rax\n"
		"	jz .Lerror\n"
		".Lstart:\n"
		"	movl $2, " AT(step) "\n"
		"	call *%%rax\n"
		"	movl %%eax, " AT(result) "\n"
		"	testl %%eax, %%eax\n"
		"	js .Lundo\n"
		"	movl $3, " AT(step) "\n"
		"	jmp .Lclose\n"
		/* copy the loader's error text, before anything else can change it */
		".Lerror:\n"
		"	movq " AT(dlerror) ", %%rax\n"
		"	testq %%rax, %%rax\n"
		"	jz .Lundo\n"
		"	call *%%rax\n"
		"	testq %%rax, %%rax\n"
		"	jz .Lundo\n"
		"	movq %%rax, %%rsi\n"
		"	leaq " AT(error) ", %%rdi\n"
		"	movl $255, %%ecx\n"
		"1:	lodsb\n"
		"	testb %%al, %%al\n"
		"	jz .Lundo\n"
		"	stosb\n"
		"	decl %%ecx\n"
		"	jnz 1b\n"
		".Lundo:\n"
		"	movq " AT(handle) ", %%rdi\n"
		"	testq %%rdi, %%rdi\n"
		"	jz .Lclose\n"
		"	call *" AT(dlclose) "\n"
		".Lclose:\n"
		"	movl " AT(fd) ", %%edi\n"
		"	movl $3, %%eax\n" /* close */
		"	syscall\n"
		"	movq %%fs:16, %%rdi\n" /* pthread_self() */
		"	call *" AT(thread_detach) "\n"
		"	movl $2, " AT(state) "\n"
		"	movq " AT(region) ", %%rdi\n"
		"	movq " AT(region_bytes) ", %%rsi\n"
		"	movq " AT(syscall_ret) ", %%rdx\n"
		"	popq %%rbx\n"
		"	movl $11, %%eax\n" /* munmap, which returns to this function's caller */
		"	jmp *%%rdx\n"
		"kprof_inject_task_end:\n"
		".popsection\n"
		: : OFFSET(state), OFFSET(step), OFFSET(result), OFFSET(fd), OFFSET(dlopen),
		    OFFSET(dlsym), OFFSET(dlclose), OFFSET(dlerror), OFFSET(start), OFFSET(flags),
		    OFFSET(thread_detach), OFFSET(region), OFFSET(region_bytes),
		    OFFSET(syscall_ret), OFFSET(handle), OFFSET(path), OFFSET(symbol), OFFSET(name),
		    OFFSET(error));
}
/* clang-format on */

bool inject_stub_waits_at(uint64_t offset)
{
	return offset >= (uint64_t)(kprof_inject_stub_wait - kprof_inject_stub) &&
	       offset < (uint64_t)(kprof_inject_stub_go - kprof_inject_stub);
}

const void *inject_stub_code(size_t *bytes)
{
	*bytes = (size_t)(kprof_inject_stub_end - kprof_inject_stub);
	return kprof_inject_stub;
}

const void *inject_task_code(size_t *bytes)
{
	*bytes = (size_t)(kprof_inject_task_end - kprof_inject_task);
	return kprof_inject_task;
}
