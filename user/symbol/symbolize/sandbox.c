// SPDX-License-Identifier: BSD-2-Clause
/*
 * The system calls that the process that reads DWARF may use: to read files, to allocate memory, to
 * write to its open descriptors, to exit. All others fail with an error, by a seccomp(2) filter
 * that cannot be removed. Even if a crafted file takes over libdw, it cannot write other files, run
 * programs, signal or trace processes, or use the network.
 */
#include "symbol/symbolize/priv.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* System calls that are always allowed, by x86-64's numbers. */
static const uint32_t allowed[] = {
	SYS_read,         SYS_pread64,
	SYS_readv,        SYS_lseek,
	SYS_write,        SYS_close,
	SYS_fstat,        SYS_stat,
	SYS_lstat,        SYS_newfstatat,
	SYS_readlink,     SYS_readlinkat,
	SYS_getcwd,       SYS_munmap,
	SYS_mremap,       SYS_madvise,
	SYS_brk,          SYS_futex,
	SYS_getrandom,    SYS_clock_gettime,
	SYS_sched_yield,  SYS_sched_getaffinity,
	SYS_getpid,       SYS_gettid,
	SYS_rt_sigaction, SYS_rt_sigprocmask,
	SYS_rt_sigreturn, SYS_sigaltstack,
	SYS_exit,         SYS_exit_group,
};

/*
 * System calls that are allowed if their third argument has none of these bits: files can only be
 * opened for reading, and memory cannot be executable.
 */
static const struct {
	uint32_t number, without;
} partly[] = {
	{SYS_openat, O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND | __O_TMPFILE},
	{SYS_mmap, PROT_EXEC},
	{SYS_mprotect, PROT_EXEC},
};

#define REFUSE (SECCOMP_RET_ERRNO | EPERM)
#define MAX_STEPS (5 + 2 * ARRAY_SIZE(allowed) + 5 * ARRAY_SIZE(partly))

static struct sock_filter load(size_t offset)
{
	return (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset);
}

static struct sock_filter verdict(uint32_t what)
{
	return (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, what);
}

static struct sock_filter test(uint16_t how, uint32_t with, uint8_t yes, uint8_t no)
{
	return (struct sock_filter)BPF_JUMP((uint16_t)(BPF_JMP | how | BPF_K), with, yes, no);
}

int symbol_sandbox__enter(void)
{
	struct sock_filter steps[MAX_STEPS];
	struct sock_fprog filter = {.filter = steps};
	size_t nr = 0;

	/* 32-bit system calls have other numbers. */
	steps[nr++] = load(offsetof(struct seccomp_data, arch));
	steps[nr++] = test(BPF_JEQ, AUDIT_ARCH_X86_64, 1, 0);
	steps[nr++] = verdict(SECCOMP_RET_KILL_PROCESS);
	steps[nr++] = load(offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < ARRAY_SIZE(allowed); i++) {
		steps[nr++] = test(BPF_JEQ, allowed[i], 0, 1);
		steps[nr++] = verdict(SECCOMP_RET_ALLOW);
	}
	for (size_t i = 0; i < ARRAY_SIZE(partly); i++) {
		steps[nr++] = test(BPF_JEQ, partly[i].number, 0, 4);
		/* The third argument is an int or PROT_*: its lower half is enough. */
		steps[nr++] = load(offsetof(struct seccomp_data, args[2]));
		steps[nr++] = test(BPF_JSET, partly[i].without, 0, 1);
		steps[nr++] = verdict(REFUSE);
		steps[nr++] = verdict(SECCOMP_RET_ALLOW);
	}
	steps[nr++] = verdict(REFUSE);
	filter.len = (unsigned short)nr;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0))
		return -errno;
	return 0;
}
