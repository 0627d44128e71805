/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files and memory of processes that may be hostile. Whoever owns them can make reading them last
 * for ever: with a file system that is a program (FUSE), which need not answer, or with memory
 * whose page faults a program handles (userfaultfd). A process that waits for such an answer cannot
 * even be killed. So what may block is read by a child process, the reader, and given up with it
 * after a while: then a new reader is started, and no more memory, or no more files, are read of
 * that process. After FOREIGN_MAX_GIVEN_UP readers, nothing is read in this way any more.
 *
 * These functions may be called by any thread; one request is served at a time.
 */
#ifndef KPROF_UTIL_FOREIGN_H
#define KPROF_UTIL_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FOREIGN_MAX_GIVEN_UP 8

/*
 * Starts the reader, which is otherwise done when something is to be read. It keeps a copy of the
 * memory that this process has now, so the earlier the better.
 */
void foreign_prepare(void);

/* CPU time that the reader has used; 0: there is none. Never waits for what it is asked. */
uint64_t foreign_used_ns(void);

/* Ends the reader; the next one has the privileges that this process has then. */
void foreign_finish(void);

/* How long the reader may make no progress, and how long it may take in all. For tests. */
void foreign_set_patience(uint64_t quiet_ns, uint64_t all_ns);
/*
 * Warns of the processes that were given up since the last call. To be called in the thread that
 * messages are expected from.
 */
void foreign_tell(void);

/*
 * Reads a process's memory as far as it is readable. Returns the number of bytes; -ETIMEDOUT: it
 * took too long; -errno.
 */
ssize_t foreign_memory(pid_t pid, uint64_t address, void *to, size_t bytes);
/*
 * As read_file(), for files of procfs for which the kernel takes a lock of the process's memory:
 * the process may hold it while it waits for its own file system (/proc/PID/maps). From cmdline and
 * environ the kernel leaves out what could block (FOLL_ANON, commit 7f7ccc2ccc2e).
 * -ESRCH: the process gave up that memory meanwhile, so that the text may have ended early.
 */
int foreign_text(const char *path, size_t max_bytes, char **out, size_t *bytes);

/* Flag of open_in_root(): a file that would have to be copied is refused, with -ETXTBSY. */
#define OPEN_NO_COPY 0x40000000

/*
 * Opens a regular file for reading, as seen by a process with this root directory
 * ("/proc/PID/root"; "": our own). Absolute links and ".." stay within that root: in a container
 * they must not lead to files of the host. flags: O_NOFOLLOW (-ELOOP: the file is a link),
 * OPEN_NO_COPY. -EINVAL: not a regular file, and not opened; -ETIMEDOUT; -errno. Use this for names
 * that other users may change: opening a device can have effects (it arms a watchdog), and checking
 * the name before opening it is a race.
 *
 * If the file's file system may block its readers (util/mounts.h), the descriptor is that of a copy
 * in memory, with the same owner and times.
 */
int open_in_root(const char *root, const char *path, int flags);

/* What is known of a file without asking its file system. */
struct foreign_file {
	bool regular;
	/*
	 * its file system may block readers, or is not known; kprof and the kernel must not read it
	 */
	bool may_block;
	bool in_memory; /* a memfd or the like */
	uint64_t bytes;
};

/*
 * Looks at the file that a link of procfs refers to ("/proc/PID/map_files/…", "/proc/PID/exe"):
 * these are resolved without asking any file system. 0 or -errno.
 */
int foreign_look(const char *link, struct foreign_file *out);
/* Opens such a file for reading and writing if it is a memfd or the like, else -EINVAL. */
int foreign_open_memory(const char *link);

#endif
