// SPDX-License-Identifier: BSD-2-Clause
/*
 * Filters of system calls, seccomp(2), which cannot be removed. A call that is not allowed fails
 * with EPERM.
 *
 * A process that reads foreign bytes may only read files, allocate memory, write to its open
 * descriptors and exit: even if a crafted file takes over libdw, it cannot write other files, run
 * programs, signal or trace processes, or use the network. A recording does so many things, on so
 * many kernels, that its filter says instead what no profiler ever does.
 */
#include "util/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/util.h"

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

/*
 * What a recording never does: execute programs, change mounts, modules, clocks, keys or the
 * machine itself, use what has often been a way around a filter (io_uring, userfaultfd).
 */
static const uint32_t denied[] = {
	SYS_execve,
	SYS_execveat,
	SYS_mount,
	SYS_umount2,
	SYS_pivot_root,
	SYS_chroot,
	SYS_open_tree,
	SYS_move_mount,
	SYS_fsopen,
	SYS_fsconfig,
	SYS_fsmount,
	SYS_fspick,
	SYS_mount_setattr,
	SYS_setns,
	SYS_unshare,
	SYS_init_module,
	SYS_finit_module,
	SYS_delete_module,
	SYS_kexec_load,
	SYS_kexec_file_load,
	SYS_reboot,
	SYS_swapon,
	SYS_swapoff,
	SYS_acct,
	SYS_quotactl,
	SYS_quotactl_fd,
	SYS_settimeofday,
	SYS_clock_settime,
	SYS_adjtimex,
	SYS_clock_adjtime,
	SYS_sethostname,
	SYS_setdomainname,
	SYS_iopl,
	SYS_ioperm,
	SYS_add_key,
	SYS_request_key,
	SYS_keyctl,
	SYS_mknod,
	SYS_mknodat,
	SYS_open_by_handle_at,
	SYS_userfaultfd,
	SYS_personality,
	SYS_io_uring_setup,
	SYS_io_uring_enter,
	SYS_io_uring_register,
	SYS_vhangup,
	SYS_lookup_dcookie,
};

/*
 * All that a server does once it listens: it accepts connections, and reads from and writes to the
 * descriptors that it has or is handed. It opens no file, and connects to nothing.
 */
static const uint32_t serving[] = {
	SYS_read,     SYS_readv,      SYS_pread64,        SYS_lseek,        SYS_write,
	SYS_writev,   SYS_close,      SYS_fstat,          SYS_accept4,      SYS_accept,
	SYS_recvfrom, SYS_sendto,     SYS_recvmsg,        SYS_sendmsg,      SYS_sendfile,
	SYS_shutdown, SYS_setsockopt, SYS_getsockopt,     SYS_getsockname,  SYS_getpeername,
	SYS_poll,     SYS_ppoll,      SYS_epoll_wait,     SYS_epoll_pwait,  SYS_epoll_ctl,
	SYS_fcntl,    SYS_munmap,     SYS_mremap,         SYS_madvise,      SYS_brk,
	SYS_futex,    SYS_getrandom,  SYS_clock_gettime,  SYS_gettimeofday, SYS_getpid,
	SYS_getppid,  SYS_gettid,     SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sigaltstack,
	SYS_exit,     SYS_exit_group,
};

#define X32_BIT 0x40000000u /* of the numbers of the ABI x32 */
#define REFUSE (SECCOMP_RET_ERRNO | EPERM)
#define MAX_STEPS                                                                         \
	(8 + 2 * ARRAY_SIZE(denied) + 2 * ARRAY_SIZE(allowed) + 2 * ARRAY_SIZE(serving) + \
	 5 * ARRAY_SIZE(partly))

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

/* Begins a filter: 32-bit system calls have other numbers. */
static size_t begin(struct sock_filter *steps)
{
	size_t nr = 0;

	steps[nr++] = load(offsetof(struct seccomp_data, arch));
	steps[nr++] = test(BPF_JEQ, AUDIT_ARCH_X86_64, 1, 0);
	steps[nr++] = verdict(SECCOMP_RET_KILL_PROCESS);
	steps[nr++] = load(offsetof(struct seccomp_data, nr));
	return nr;
}

/* Without SPEC_ALLOW, some kernels make every branch of a filtered process slower. */
static int enter(struct sock_filter *steps, size_t nr)
{
	struct sock_fprog filter = {.len = (unsigned short)nr, .filter = steps};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &filter))
		return -errno;
	return 0;
}

int sandbox_deny(void)
{
	struct sock_filter steps[MAX_STEPS];
	size_t nr = begin(steps);

	steps[nr++] = test(BPF_JGE, X32_BIT, 0, 1);
	steps[nr++] = verdict(REFUSE);
	for (size_t i = 0; i < ARRAY_SIZE(denied); i++) {
		steps[nr++] = test(BPF_JEQ, denied[i], 0, 1);
		steps[nr++] = verdict(REFUSE);
	}
	steps[nr++] = verdict(SECCOMP_RET_ALLOW);
	return enter(steps, nr);
}

static size_t allow(struct sock_filter *steps, size_t nr, const uint32_t *calls, size_t nr_calls)
{
	for (size_t i = 0; i < nr_calls; i++) {
		steps[nr++] = test(BPF_JEQ, calls[i], 0, 1);
		steps[nr++] = verdict(SECCOMP_RET_ALLOW);
	}
	return nr;
}

/* The third argument is an int or PROT_*: its lower half is enough. */
static size_t allow_without(struct sock_filter *steps, size_t nr, uint32_t call, uint32_t without)
{
	steps[nr++] = test(BPF_JEQ, call, 0, 4);
	steps[nr++] = load(offsetof(struct seccomp_data, args[2]));
	steps[nr++] = test(BPF_JSET, without, 0, 1);
	steps[nr++] = verdict(REFUSE);
	steps[nr++] = verdict(SECCOMP_RET_ALLOW);
	return nr;
}

int sandbox_only_reads(void)
{
	struct sock_filter steps[MAX_STEPS];
	size_t nr = begin(steps);

	nr = allow(steps, nr, allowed, ARRAY_SIZE(allowed));
	for (size_t i = 0; i < ARRAY_SIZE(partly); i++)
		nr = allow_without(steps, nr, partly[i].number, partly[i].without);
	steps[nr++] = verdict(REFUSE);
	return enter(steps, nr);
}

int sandbox_only_serves(void)
{
	struct sock_filter steps[MAX_STEPS];
	size_t nr = begin(steps);

	nr = allow(steps, nr, serving, ARRAY_SIZE(serving));
	nr = allow_without(steps, nr, SYS_mmap, PROT_EXEC);
	nr = allow_without(steps, nr, SYS_mprotect, PROT_EXEC);
	steps[nr++] = verdict(REFUSE);
	return enter(steps, nr);
}
