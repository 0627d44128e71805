/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether a process's interpreter is there, and PyTorch in it, which programs import when they
 * like: what the kernel's programs have to know to find functions and modules on Python stacks. It
 * is looked for soon after the process has mapped a library, then less and less often.
 */
#ifndef KPROF_CAPTURE_IMPORTS_H
#define KPROF_CAPTURE_IMPORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/target/target.h"
#include "kprof/modules.h"

struct attacher;

struct imports_opts {
	/* The layout of the process's interpreter in memory; NULL: not found (yet), or none. */
	const struct kprof_python *(*layout)(void *ctx, struct target *t);
	void *ctx;
	bool calls; /* it is not enough: torch.nn.Module.__call__ is wanted, too */
	/* Tells the kernel's programs; NULL: the process has none any longer. 0 or -errno. */
	int (*tell)(struct attacher *a, uint32_t pid, const struct kprof_modules *m);
	struct attacher *attacher;
	const char *without; /* what that means for a process of which it can't be told */
};

struct imports { /* of one process; zeroed at first */
	bool told, refused;
	struct kprof_modules known; /* once it was told; only Module's call if that was wanted */
	uint64_t next_ns, wait_ns;
	uint64_t maps_ns; /* of the mappings when it was last looked at */
};

/* Looks if it is time to. Returns 1 if it was found and told now, 0, or -ENOMEM. */
int imports__tend(const struct imports_opts *o, struct imports *i, struct target *t,
		  uint64_t now_ns);
/* The process runs another program, or has ended. i is not to be used any longer. */
void imports__forget(const struct imports_opts *o, const struct imports *i, const struct target *t);

#endif
