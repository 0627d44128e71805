/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which calls of PyTorch's modules (torch.nn.Module) a thread is in, as the kernel's programs
 * (bpf/modules.h) tell user space (user/capture/event/modules.c).
 */
#ifndef KPROF_MODULES_H
#define KPROF_MODULES_H

#include "kprof/python.h"
#include "kprof/wire.h"

/* What the kernel's programs know of one process. */
struct kprof_modules {
	struct kprof_python python;
	/* address of the code object of Module.__call__(self, *args, **kwargs) */
	kprof_u64 call_code;
};

#define KPROF_MODULES_MAX_CALLS 64    /* of one thread; a power of two */
#define KPROF_MODULES_MAX_FRAMES 2048 /* Python frames that are looked at */

/* One call: it is the same one as long as all of this is equal. */
struct kprof_module_call {
	kprof_u64 frame;      /* address of the frame */
	kprof_u64 self, type; /* the module, and its class */
	/* the version of the call's dict of keyword arguments, or a mixture of what it was given */
	kprof_u64 tag;
};

/*
 * From this moment on, the thread is in these calls, innermost first. h.id is 0. Comes before the
 * record of the event at which that was found, and only if it is other than the last time. With
 * KPROF_MODULES_ON the last one of the list has been told before, and what was told around it goes
 * on: it need not be looked for again, since nothing around a call changes while it lasts.
 */
struct kprof_wire_modules {
	struct kprof_wire_hdr h;
	kprof_u32 nr;
	kprof_u32 flags; /* KPROF_MODULES_* */
			 /* nr struct kprof_module_call follow */
};

/* The stack could not be followed to its end: what calls it is in is not known, and nr is 0. */
#define KPROF_MODULES_UNKNOWN 1u
#define KPROF_MODULES_ON 2u

_Static_assert(sizeof(struct kprof_modules) == 264, "modules: layout");
_Static_assert(sizeof(struct kprof_module_call) == 32, "modules: call");
_Static_assert(sizeof(struct kprof_wire_modules) == 40, "wire: modules");

#endif
