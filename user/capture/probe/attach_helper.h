/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A system call that a SIGKILL to kprof must not interrupt.
 *
 * The kernel places the breakpoints of a link one by one, and removes them again when it cannot go
 * on. A fatal signal stops both: the breakpoints placed so far stay in the target for the rest of
 * its life ("failed to unregister, leaking uprobe" in the kernel's log). So the call is made by a
 * child process that shares memory and descriptors with this one and outlives it. If kprof is
 * killed meanwhile, the descriptors close when the child exits, which it does with no signal
 * pending.
 */
#ifndef KPROF_CAPTURE_ATTACH_HELPER_H
#define KPROF_CAPTURE_ATTACH_HELPER_H

/*
 * Makes a system call in such a child process; the caller waits, with all signals blocked. Returns
 * the result of the call, or -errno. Where no child can be created, this process makes the call
 * itself.
 *
 * The child makes one system call and runs no function of kprof: kprof may be killed while one of
 * its threads holds a lock (malloc's, the dynamic linker's), which would then never be released. A
 * child that waited for the lock would keep all of kprof's probes in place.
 */
long attach_helper_call(long number, long a, long b, long c);

#endif
