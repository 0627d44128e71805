/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Walking the stacks of other processes. The headers of this room, in the order in which they are
 * used:
 *
 *   modules.h        the ELF files that processes execute from, and their unwind tables
 *   jit_code.h       the code that a process has written at run time, and its tables
 *   address_space.h  one process's code in order of address: which file or JIT code is where
 *   unwinder.h       the kernel's copy of all that, which BPF programs walk with
 *   walk.h           the same walk from here, on another process's memory
 *   copied.h         the same on a copy of a part of a stack, without tables
 *   ksyms.h          the names of kernel addresses
 */
#ifndef KPROF_CAPTURE_UNWIND_H
#define KPROF_CAPTURE_UNWIND_H

#include "capture/unwind/address_space.h"
#include "capture/unwind/copied.h"
#include "capture/unwind/jit_code.h"
#include "capture/unwind/ksyms.h"
#include "capture/unwind/modules.h"
#include "capture/unwind/unwinder.h"
#include "capture/unwind/walk.h"

#endif
