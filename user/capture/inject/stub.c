// SPDX-License-Identifier: BSD-2-Clause
/*
 * The code that the stopped thread runs: position-independent, mapped read-only into the target. It
 * begins with rbx = the address of struct inject_stub_data and rsp = the end of a stack of its own,
 * and never returns: it unmaps itself by a `syscall; ret` in the C library, whose `ret` enters the
 * signal frame, which restores the thread. That works without kprof.
 *
 * When all is done it waits a moment for kprof, which can restore the thread more exactly than a
 * signal frame: an interrupted sleep goes on with the time that was left. Without kprof the stub
 * goes on alone. It waits in ppoll(2), which, unlike nanosleep, poll and futex, does not overwrite
 * what the kernel has kept of the interrupted call (restart_block).
 */
#include <string.h>

#include "capture/inject/priv.h"

/* Offsets in struct inject_stub_data, for the assembler. */
#define O_STATE 4
#define O_MXCSR 8
#define O_STEP 12
#define O_RESULT 16
#define O_FD 20
#define O_ERRNO 24
#define O_DLOPEN 32
#define O_DLSYM 40
#define O_DLCLOSE 48
#define O_DLERROR 56
#define O_START 64
#define O_FLAGS 72
#define O_REGION 80
#define O_REGION_BYTES 88
#define O_SYSCALL_RET 96
#define O_CHAIN 104
#define O_HANDLE 112
#define O_PATH 120
#define O_SYMBOL 184
#define O_ERROR 248
#define O_PATIENCE 504

#define CHECK_OFFSET(o, field) \
	_Static_assert((o) == offsetof(struct inject_stub_data, field), #field)
CHECK_OFFSET(O_STATE, state);
CHECK_OFFSET(O_MXCSR, mxcsr);
CHECK_OFFSET(O_STEP, step);
CHECK_OFFSET(O_RESULT, result);
CHECK_OFFSET(O_FD, fd);
CHECK_OFFSET(O_ERRNO, errno_location);
CHECK_OFFSET(O_DLOPEN, dlopen);
CHECK_OFFSET(O_DLSYM, dlsym);
CHECK_OFFSET(O_DLCLOSE, dlclose);
CHECK_OFFSET(O_DLERROR, dlerror);
CHECK_OFFSET(O_START, start);
CHECK_OFFSET(O_FLAGS, flags);
CHECK_OFFSET(O_REGION, region);
CHECK_OFFSET(O_REGION_BYTES, region_bytes);
CHECK_OFFSET(O_SYSCALL_RET, syscall_ret);
CHECK_OFFSET(O_CHAIN, chain);
CHECK_OFFSET(O_HANDLE, handle);
CHECK_OFFSET(O_PATH, path);
CHECK_OFFSET(O_SYMBOL, symbol);
CHECK_OFFSET(O_ERROR, error);
CHECK_OFFSET(O_PATIENCE, patience);
_Static_assert(sizeof(struct inject_stub_data) <= INJECT_STUB_PAGE, "one page");

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define AT(o) TEXT(o) "(%rbx)"

extern const char kprof_inject_stub[], kprof_inject_stub_wait[], kprof_inject_stub_go[],
	kprof_inject_stub_end[];

/* clang-format off */
__asm__(
	".pushsection .rodata\n"
	".balign 16\n"
	"kprof_inject_stub:\n"
	"	movl $1, " AT(O_STATE) "\n"
	"	cld\n"
	"	fninit\n"
	"	ldmxcsr " AT(O_MXCSR) "\n"
	/* errno belongs to the interrupted code */
	"	call *" AT(O_ERRNO) "\n"
	"	movq %rax, %r12\n"
	"	movl (%rax), %r13d\n"
	"	movq " AT(O_START) ", %rax\n"
	"	testq %rax, %rax\n"
	"	jnz .Lstart\n"
	"	leaq " AT(O_PATH) ", %rdi\n"
	"	movl " AT(O_FLAGS) ", %esi\n"
	"	call *" AT(O_DLOPEN) "\n"
	"	movq %rax, " AT(O_HANDLE) "\n"
	"	testq %rax, %rax\n"
	"	jz .Lerror\n"
	"	movl $1, " AT(O_STEP) "\n"
	"	movq %rax, %rdi\n"
	"	leaq " AT(O_SYMBOL) ", %rsi\n"
	"	call *" AT(O_DLSYM) "\n"
	"	testq %rax, %rax\n"
	"	jz .Lerror\n"
	".Lstart:\n"
	"	movl $2, " AT(O_STEP) "\n"
	"	call *%rax\n"
	"	movl %eax, " AT(O_RESULT) "\n"
	"	testl %eax, %eax\n"
	"	js .Lundo\n"
	"	movl $3, " AT(O_STEP) "\n"
	"	jmp .Ldone\n"
	/* copy the loader's error text, before anything else can change it */
	".Lerror:\n"
	"	movq " AT(O_DLERROR) ", %rax\n"
	"	testq %rax, %rax\n"
	"	jz .Lundo\n"
	"	call *%rax\n"
	"	testq %rax, %rax\n"
	"	jz .Lundo\n"
	"	movq %rax, %rsi\n"
	"	leaq " AT(O_ERROR) ", %rdi\n"
	"	movl $255, %ecx\n"
	"1:	lodsb\n"
	"	testb %al, %al\n"
	"	jz .Lundo\n"
	"	stosb\n"
	"	decl %ecx\n"
	"	jnz 1b\n"
	".Lundo:\n"
	"	movq " AT(O_HANDLE) ", %rdi\n"
	"	testq %rdi, %rdi\n"
	"	jz .Ldone\n"
	"	call *" AT(O_DLCLOSE) "\n"
	".Ldone:\n"
	"	movl " AT(O_FD) ", %edi\n"
	"	testl %edi, %edi\n"
	"	js 1f\n"
	"	movl $3, %eax\n" /* close */
	"	syscall\n"
	"1:	movl %r13d, (%r12)\n"
	"	movl $2, " AT(O_STATE) "\n"
	"kprof_inject_stub_wait:\n"
	"	xorl %edi, %edi\n"
	"	xorl %esi, %esi\n"
	"	leaq " AT(O_PATIENCE) ", %rdx\n"
	"	xorl %r10d, %r10d\n"
	"	movl $8, %r8d\n"
	"	movl $271, %eax\n" /* ppoll */
	"	syscall\n"
	"	nop\n" /* kprof sees the thread at this address while it waits */
	"kprof_inject_stub_go:\n"
	"	movq " AT(O_REGION) ", %rdi\n"
	"	movq " AT(O_REGION_BYTES) ", %rsi\n"
	"	movq " AT(O_SYSCALL_RET) ", %rdx\n"
	"	movq " AT(O_CHAIN) ", %rsp\n"
	"	movl $11, %eax\n" /* munmap */
	"	jmp *%rdx\n"
	"kprof_inject_stub_end:\n"
	".popsection\n");
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
