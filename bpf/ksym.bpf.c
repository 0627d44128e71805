// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the kernel calls one of its addresses. Its own search takes microseconds; to make it print
 * all its symbols, 120,000 and more, takes longer than a recording costs otherwise. Programs that
 * are run by system call (BPF_PROG_TYPE_SYSCALL): kernel 5.14. An object of its own: it is loaded
 * when there is something to name.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

__u64 address;  /* asked */
char name[256]; /* "function", "function [module]"; "0x…": it has none */

SEC("syscall")
int kprof_ksym(void *ctx)
{
	static const char format[] = "%ps";
	__u64 arguments[] = {address};

	return bpf_snprintf(name, sizeof(name), format, arguments, sizeof(arguments)) < 0;
}

char LICENSE[] SEC("license") = "GPL";
