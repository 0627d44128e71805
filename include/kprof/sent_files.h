/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For services: files that others send along on a socket (SCM_RIGHTS), and that are not taken. Who
 * has such a file last, closes it, and that may take as long as the sender wants: a TCP socket
 * whose peer does not read lingers (SO_LINGER). The kernel also does that on the way of a message
 * without room for files, and of a socket that is closed with such messages on it. To take them is
 * no way out: what a process has among its descriptors is flushed when it ends, and a file system
 * of the sender's (FUSE) may never be done with that.
 *
 * For Unix sockets from which nobody else reads.
 */
#ifndef KPROF_SENT_FILES_H
#define KPROF_SENT_FILES_H

#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * From Linux 6.16 on: no file gets there, and who sends one fails with EPERM. The same holds for
 * connections to a socket that listens, from now on. Older kernels let them in, which is no error.
 */
void kprof_sent_files_refuse(int fd);
/*
 * How many bytes wait, at most so many, without taking any. With recv() of that many no files come,
 * with more there may by then. -EBADMSG: files come with them, or right behind; -EAGAIN: nothing
 * waits, and other -errno.
 */
ssize_t kprof_sent_files_peek(int fd, void *buf, size_t bytes);
/* Takes a datagram with which files come, and does not wait for them. */
void kprof_sent_files_drop(int fd);
/* Closes a socket to which anybody may have sent any, and does not wait for them. */
void kprof_sent_files_close(int fd);
/* The same for one that goes on where others have it, too. */
void kprof_sent_files_leave(int fd);

#ifdef __cplusplus
}
#endif

#endif
