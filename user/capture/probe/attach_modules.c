// SPDX-License-Identifier: BSD-2-Clause
/* What the kernel's programs are told to look for calls of PyTorch's modules (bpf/modules.h). */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>

#include "capture/probe/attach_impl.h"
#include "kprof/modules.h"

void attacher__modules_source(struct attacher *a, uint32_t source)
{
	__atomic_store_n(&a->skel->bss->modules_source, source, __ATOMIC_SEQ_CST);
}

void attacher__ask_modules(struct attacher *a)
{
	__atomic_fetch_add(&a->skel->bss->modules_asked, 1, __ATOMIC_SEQ_CST);
}

int attacher__set_modules(struct attacher *a, uint32_t pid, const struct kprof_modules *m)
{
	int fd = bpf_map__fd(a->skel->maps.modules_processes);

	if (m)
		return bpf_map_update_elem(fd, &pid, m, 0) ? -errno : 0;
	return bpf_map_delete_elem(fd, &pid) ? -errno : 0;
}
