// SPDX-License-Identifier: GPL-2.0-only
/*
 * The name of a kernel address, as the kernel knows it. A search inside the kernel takes
 * microseconds; reading /proc/kallsyms, with 120,000 symbols and more, takes longer than a
 * recording costs otherwise. The program is run by a system call (BPF_PROG_TYPE_SYSCALL, kernel
 * 5.14). This is a BPF object of its own, which is loaded when there is an address to name.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

__u64 address;  /* set by user space: the address to name */
char name[256]; /* result: "function", "function [module]", or "0x…" where it has no name */

SEC("syscall")
int kprof_ksym(void *ctx)
{
	static const char format[] = "%ps";
	__u64 arguments[] = {address};

	return bpf_snprintf(name, sizeof(name), format, arguments, sizeof(arguments)) < 0;
}

char LICENSE[] SEC("license") = "GPL";
