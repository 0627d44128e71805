/* SPDX-License-Identifier: BSD-2-Clause */
/* A part of kprof.h, which includes it: rights, and time, that a process gives up for good. */
#ifndef KPROF_RIGHTS_H
#define KPROF_RIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * For programs that only read a capture, which may be made to attack them. If the calling process
 * is root, it becomes another user for good: the capture's owner, else `uid` ((uint32_t)-1: none),
 * else `nobody` if that is allowed; the first who may read the capture and write to the output's
 * directory (NULL: there is no output). If none may, it stays root, without rights other than those
 * to files. In both cases, it cannot execute programs any more. 0 or -errno.
 */
int kprof_give_up_root(const char *capture, const char *output, uint32_t uid, uint32_t gid,
		       bool nobody);
/*
 * The same for a service that has its captures in folders of root's: the process stays root,
 * without its rights but one to give files away (`gives`), executes no program, and, where the
 * kernel can hold it to that (Landlock: Linux 5.13), opens no file but those below `from`, to read,
 * and below `into`. 0 or -errno.
 */
int kprof_keep_to_folders(const char *from, const char *into, bool gives);
/*
 * For a service that has others record for it, in processes that it forks, before it hears of
 * anybody: gives up, for itself and for all of them, what none needs: capabilities, and system
 * calls that no recording makes (among them: to execute a program). A process with one thread. 0 or
 * -errno: something could not be given up; the rest has been.
 */
int kprof_keep_to_recording(void);
/*
 * For a child process that serves a network, before it reads the first byte of that: becomes
 * `nobody` if it is root, gives up all capabilities, and can from now on only accept connections,
 * and read from and write to the descriptors that it has or is handed. It cannot open files,
 * connect to anything, start programs or processes, or signal others; and it ends with its parent
 * (who may have ended already: see getppid()). 0 or -errno.
 */
int kprof_only_serve(void);

/*
 * For a service that holds a bound: from now on, reading captures makes the calling thread sleep so
 * that it takes at most so many ns of CPU time a second, with all that it does in between. It
 * begins with a rest. 0: it takes as much as there is.
 */
void kprof_read_at_pace(uint64_t ns_a_second);

#ifdef __cplusplus
}
#endif

#endif
