// SPDX-License-Identifier: BSD-2-Clause
/*
 * Do the thread's seccomp filters allow the system calls of an injection? A filter may end the
 * process at a call that it forbids, so no call is tried: the filters are read
 * (PTRACE_SECCOMP_GET_FILTER) and run here, on the calls that are needed. Containers usually have
 * filters, which allow all these calls.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "capture/inject/priv.h"
#include "util/error.h"
#include "util/util.h"

#define FILTERS_MAX 64
#define PTHREAD_CLONE_FLAGS 0x3d0f00 /* as in glibc's pthread_create() */
#define STACK_FLAGS (MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK)
#define MFD_EXEC_ 0x10u /* linux 6.3, as the next */
#define MFD_NOEXEC_SEAL_ 0x8u

struct needed {
	long nr;
	const char *name;
	uint64_t args[6];
};

/*
 * System calls without which the stub, the dynamic linker, kprof_agent_start() and the agent's
 * thread cannot work.
 */
static const struct needed needed[] = {
	{SYS_memfd_create, "memfd_create", {0, MFD_CLOEXEC}},
	{SYS_memfd_create, "memfd_create", {0, MFD_CLOEXEC | MFD_ALLOW_SEALING}},
	{SYS_mmap, "mmap (code)", {0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, 3}},
	{SYS_mmap, "mmap", {0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1ull}},
	{SYS_mmap, "mmap (stack)", {0, 4096, PROT_NONE, STACK_FLAGS, -1ull}},
	{SYS_mmap, "mmap (shared)", {0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, 3}},
	{SYS_mprotect, "mprotect", {0x10000, 4096, PROT_READ | PROT_WRITE}},
	{SYS_munmap, "munmap", {0x10000, 4096}},
	{SYS_openat, "openat", {(uint32_t)AT_FDCWD, 0x10000, O_RDONLY | O_CLOEXEC}},
	{SYS_read, "read", {3, 0x10000, 832}},
	{SYS_pread64, "pread64", {3, 0x10000, 832}},
	{SYS_newfstatat, "newfstatat", {3, 0x10000, 0x10000, AT_EMPTY_PATH}},
	{SYS_close, "close", {3}},
	{SYS_ftruncate, "ftruncate", {3, 4096}},
	{SYS_brk, "brk", {0}},
	{SYS_futex, "futex", {0x10000, 129, 1}},
	{SYS_getpid, "getpid", {0}},
	{SYS_rt_sigaction, "rt_sigaction", {33, 0x10000, 0, 8}},
	{SYS_rt_sigprocmask, "rt_sigprocmask", {2, 0x10000, 0, 8}},
	{SYS_rt_sigreturn, "rt_sigreturn", {0}},
	{SYS_sched_yield, "sched_yield", {0}},
	{SYS_clone, "clone", {PTHREAD_CLONE_FLAGS}}, /* glibc falls back to it from clone3 */
	{SYS_clock_gettime, "clock_gettime", {1, 0x10000}},
	{SYS_exit, "exit", {0}}, /* the end of the agent's thread */
};

/*
 * System calls that may fail, but must not end the process, nor wait for the decision of a
 * supervisor.
 */
static const struct needed harmless[] = {
	{SYS_memfd_create, "memfd_create (exec)", {0, MFD_CLOEXEC | MFD_EXEC_}},
	{SYS_memfd_create,
	 "memfd_create (noexec)",
	 {0, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL_}},
	{SYS_fcntl, "fcntl (seals)", {3, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL}},
	{SYS_getrandom, "getrandom", {0x10000, 8, 1}}, /* the first malloc() of a process */
	{SYS_set_robust_list, "set_robust_list", {0x10000, 24}},
	{SYS_rseq, "rseq", {0x10000, 32, 0, 0x53053053}},
	{SYS_prctl, "prctl (name)", {PR_SET_NAME, 0x10000}},
	{SYS_madvise, "madvise", {0x10000, 4096, MADV_DONTNEED}}, /* a thread's end */
	{SYS_gettid, "gettid", {0}},
	{SYS_ppoll, "ppoll", {0, 0, 0x10000, 0, 8}},
	{SYS_access, "access", {0x10000, 0}},
};

/* ---- classic BPF as seccomp allows it (kernel/seccomp.c, seccomp_check_filter) ---- */

static bool jump_taken(uint16_t code, uint32_t a, uint32_t b)
{
	switch (BPF_OP(code)) {
	case BPF_JEQ:
		return a == b;
	case BPF_JGT:
		return a > b;
	case BPF_JGE:
		return a >= b;
	default: /* BPF_JSET */
		return a & b;
	}
}

static uint32_t compute(uint16_t code, uint32_t a, uint32_t b)
{
	switch (BPF_OP(code)) {
	case BPF_ADD:
		return a + b;
	case BPF_SUB:
		return a - b;
	case BPF_MUL:
		return a * b;
	case BPF_DIV:
		return a / b; /* not by zero: see divides_by_zero() */
	case BPF_OR:
		return a | b;
	case BPF_AND:
		return a & b;
	case BPF_XOR:
		return a ^ b;
	case BPF_LSH: /* of the distance, the kernel takes the lowest five bits */
		return a << (b & 31);
	case BPF_RSH:
		return a >> (b & 31);
	default: /* BPF_NEG */
		return -a;
	}
}

struct machine {
	const struct seccomp_data *data;
	uint32_t a, x, memory[BPF_MEMWORDS];
};

static bool load(struct machine *m, const struct sock_filter *f)
{
	uint32_t value;

	switch (BPF_MODE(f->code)) {
	case BPF_ABS:
		if (BPF_CLASS(f->code) != BPF_LD || f->k > sizeof(*m->data) - 4)
			return false;
		memcpy(&value, (const uint8_t *)m->data + f->k, sizeof(value));
		break;
	case BPF_LEN:
		value = sizeof(*m->data);
		break;
	case BPF_IMM:
		value = f->k;
		break;
	case BPF_MEM:
		if (f->k >= BPF_MEMWORDS)
			return false;
		value = m->memory[f->k];
		break;
	default:
		return false;
	}
	if (BPF_CLASS(f->code) == BPF_LD)
		m->a = value;
	else
		m->x = value;
	return true;
}

/* Executes one instruction, other than a jump or a return. */
static bool step(struct machine *m, const struct sock_filter *f)
{
	uint16_t class = BPF_CLASS(f->code);

	switch (class) {
	case BPF_LD:
	case BPF_LDX:
		return load(m, f);
	case BPF_ST:
	case BPF_STX:
		if (f->k >= BPF_MEMWORDS)
			return false;
		m->memory[f->k] = class == BPF_ST ? m->a : m->x;
		return true;
	case BPF_ALU:
		m->a = compute(f->code, m->a, BPF_SRC(f->code) == BPF_X ? m->x : f->k);
		return true;
	default: /* BPF_MISC */
		if (BPF_MISCOP(f->code) == BPF_TAX)
			m->x = m->a;
		else
			m->a = m->x;
		return true;
	}
}

static bool divides_by_zero(const struct machine *m, const struct sock_filter *f)
{
	return BPF_CLASS(f->code) == BPF_ALU && BPF_OP(f->code) == BPF_DIV &&
	       !(BPF_SRC(f->code) == BPF_X ? m->x : f->k);
}

uint32_t inject_seccomp_run(const struct sock_filter *code, size_t nr,
			    const struct seccomp_data *data)
{
	struct machine m = {.data = data};

	for (size_t pc = 0; pc < nr; pc++) {
		const struct sock_filter *f = &code[pc];

		/* The kernel ends the filter there with the answer 0 (bpf_convert_filter). */
		if (divides_by_zero(&m, f))
			return SECCOMP_RET_KILL_THREAD;
		if (BPF_CLASS(f->code) == BPF_RET)
			return BPF_RVAL(f->code) == BPF_A ? m.a : f->k;
		if (BPF_CLASS(f->code) != BPF_JMP) {
			if (!step(&m, f))
				break;
		} else if (BPF_OP(f->code) == BPF_JA) {
			pc += f->k;
		} else {
			uint32_t b = BPF_SRC(f->code) == BPF_X ? m.x : f->k;

			pc += jump_taken(f->code, m.a, b) ? f->jt : f->jf;
		}
	}
	return SECCOMP_RET_KILL_PROCESS;
}

/* ---- the thread's filters ---- */

static bool allows(uint32_t verdict)
{
	uint32_t action = verdict & SECCOMP_RET_ACTION_FULL;

	return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG;
}

static bool fails(uint32_t verdict)
{
	return (verdict & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO;
}

/*
 * Can a thread be created? pthread_create() of glibc 2.34 and later tries clone3 first, and clone
 * only if that fails with ENOSYS.
 */
static bool threads_can_be_made(uint32_t clone3)
{
	return allows(clone3) || (fails(clone3) && (clone3 & SECCOMP_RET_DATA) == ENOSYS);
}

static uint32_t verdict_on(const struct remote *r, const struct sock_filter *code, size_t nr,
			   const struct needed *call)
{
	struct seccomp_data data = {
		.nr = (int)call->nr,
		.arch = AUDIT_ARCH_X86_64,
		.instruction_pointer = r->regs.rip,
	};

	for (int a = 0; a < 6; a++)
		data.args[a] = call->args[a];
	return inject_seccomp_run(code, nr, &data);
}

static int check_filter(const struct inject_target *t, const struct remote *r,
			const struct sock_filter *code, size_t nr)
{
	static const struct needed clone3 = {SYS_clone3, "clone3", {0x10000, 88}};
	bool has_clone3 = t->dlopen >= t->libc.start && t->dlopen < t->libc.end; /* since 2.34 */
	const char *forbidden = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(needed) && !forbidden; i++)
		if (!allows(verdict_on(r, code, nr, &needed[i])))
			forbidden = needed[i].name;
	for (size_t i = 0; i < ARRAY_SIZE(harmless) && !forbidden; i++) {
		uint32_t verdict = verdict_on(r, code, nr, &harmless[i]);

		if (!allows(verdict) && !fails(verdict))
			forbidden = harmless[i].name;
	}
	if (!forbidden && has_clone3 && !threads_can_be_made(verdict_on(r, code, nr, &clone3)))
		forbidden = clone3.name;
	if (!forbidden)
		return 0;
	return error_set(-ENOTSUP, NO_AGENT_HINT, "a seccomp filter of process %d forbids %s",
			 (int)r->pid, forbidden);
}

static int filters_unreadable(const struct remote *r, int err)
{
	return error_set(-ENOTSUP,
			 NO_AGENT_HINT "; as root "
				       "outside of containers the filter can be read",
			 "process %d has a seccomp filter, of which it cannot be known whether "
			 "it allows what is needed (%s)",
			 (int)r->pid, strerror(err));
}

int inject_seccomp(const struct inject_target *t, const struct remote *r)
{
	for (unsigned long i = 0; i < FILTERS_MAX; i++) {
		long nr = ptrace(PTRACE_SECCOMP_GET_FILTER, r->tid, i, NULL);
		struct sock_filter *code;
		int err;

		if (nr < 0 && (errno == ENOENT || (errno == EINVAL && !i))) /* no more, or none */
			return 0;
		if (nr < 0)
			return filters_unreadable(r, errno);
		code = calloc((size_t)nr + 1, sizeof(*code));
		if (!code)
			return error_set(-ENOMEM, NULL, "out of memory");
		nr = ptrace(PTRACE_SECCOMP_GET_FILTER, r->tid, i, code);
		err = nr < 0 ? filters_unreadable(r, errno) : check_filter(t, r, code, (size_t)nr);
		free(code);
		if (err)
			return err;
	}
	return filters_unreadable(r, E2BIG);
}
