/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A system call that a SIGKILL to kprof must not cut in two.
 *
 * The kernel places a link's breakpoints one by one, and takes them back when it cannot go on. A
 * fatal signal stops both: what had been placed stays in the target for the rest of its life
 * ("failed to unregister, leaking uprobe" in the kernel's log). So the call is made by a process of
 * its own, which shares memory and descriptors with this one and outlives it: when it exits, with
 * nothing pending, so do the descriptors.
 */
#ifndef KPROF_CAPTURE_ATTACH_HELPER_H
#define KPROF_CAPTURE_ATTACH_HELPER_H

/*
 * Makes the call in such a process; the caller waits, with all signals blocked. What it returns,
 * -errno included. Where no process can be made, it is made here all the same.
 *
 * It is one call and no function of ours: kprof may be killed meanwhile while a thread of it holds
 * a lock (malloc's, the linker's), which would never be released. A process that waited for it
 * would keep every probe of kprof's in place.
 */
long attach_helper_call(long number, long a, long b, long c);

#endif
