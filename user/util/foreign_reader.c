// SPDX-License-Identifier: BSD-2-Clause
#include "util/foreign_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "util/foreign.h"
#include "util/mounts.h"

int32_t foreign_pid(const char *path)
{
	return strncmp(path, "/proc/", 6) ? 0 : (int32_t)strtol(path + 6, NULL, 10);
}

/* ---- opening ---- */

int foreign_name_link(const char *link)
{
	int fd = open(link, O_PATH | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int foreign_reopen(int named)
{
	struct statx file;
	char path[32];
	int fd, err = mounts_look(named, &file);

	if (err)
		return err;
	if (!S_ISREG(file.stx_mode))
		return S_ISLNK(file.stx_mode) ? -ELOOP : -EINVAL;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", named);
	/*
	 * Without O_NONBLOCK, open() would wait for a lease that another process holds on the file.
	 */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

/* Uses openat2(), which is in Linux since 5.6 (fddb5d430ad9). */
static int name_in_root(const char *root, const char *path, int flags)
{
	struct open_how how = {.flags = (uint64_t)(O_PATH | O_CLOEXEC | flags),
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	int dir, fd;

	if (!*root) {
		fd = open(path, O_PATH | O_CLOEXEC | flags);
		return fd < 0 ? -errno : fd;
	}
	dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
	fd = fd < 0 ? -errno : fd;
	close(dir);
	return fd;
}

/* ---- copying ---- */

/* Copies what can be read, up to a limit, to a file in memory. */
static int64_t copy_content(int from, int to, uint64_t most, struct foreign_shared *s)
{
	static uint64_t all; /* of this reader */
	uint64_t done = 0;

	for (;;) {
		ssize_t n = read(from, s->buffer, sizeof(s->buffer));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : (int64_t)done;
		s->progress++;
		done += (uint64_t)n;
		all += (uint64_t)n;
		if (done > most || all > FOREIGN_COPY_BYTES)
			return -EFBIG;
		if (write(to, s->buffer, (size_t)n) != n)
			return -ENOMEM;
	}
}

/*
 * The copy has the file's owner and times: others judge by these whose file it is. Without the
 * right to change the owner, another user's file is not copied.
 */
static int copy_identity(int from, int to)
{
	struct stat st;
	struct timespec times[2];

	if (fstat(from, &st))
		return -errno;
	times[0] = st.st_atim;
	times[1] = st.st_mtim;
	if (futimens(to, times) || fchmod(to, 0400) || fchown(to, st.st_uid, st.st_gid))
		return -errno;
	return 0;
}

/* Returns the descriptor of a copy in memory, or -errno. */
static int copy(int from, uint64_t most, bool with_identity, struct foreign_shared *s)
{
	int to = memfd_create("kprof-copy", MFD_CLOEXEC);
	int64_t n;

	if (to < 0)
		return -errno;
	n = copy_content(from, to, most, s);
	if (n >= 0)
		n = with_identity ? copy_identity(from, to) : 0;
	if (n >= 0 && lseek(to, 0, SEEK_SET) < 0)
		n = -errno;
	if (n >= 0)
		return to;
	close(to);
	return (int)n;
}

/* ---- requests ---- */

static int64_t serve_memory(const struct foreign_request *r, struct foreign_shared *s)
{
	struct iovec local = {s->buffer, r->bytes};
	struct iovec remote = {(void *)(uintptr_t)r->address, r->bytes};
	ssize_t n = process_vm_readv(r->pid, &local, 1, &remote, 1, 0);

	return n < 0 ? -errno : n;
}

/*
 * A process's mappings end early, and then read as none, when it gives up its memory while they are
 * read: it exits, or executes another program.
 */
static bool is_still_there(int fd, int copied)
{
	struct stat st;
	char byte;

	return pread(fd, &byte, 1, 0) == 1 || (!fstat(copied, &st) && !st.st_size);
}

static int64_t serve_text(const struct foreign_request *r, struct foreign_shared *s)
{
	int fd = open(r->path, O_RDONLY | O_CLOEXEC), to;

	if (fd < 0)
		return -errno;
	to = copy(fd, r->bytes, false, s);
	if (to >= 0 && !is_still_there(fd, to)) {
		close(to);
		to = -ESRCH;
	}
	close(fd);
	return to;
}

static int64_t serve_open(const struct foreign_request *r, struct foreign_shared *s)
{
	int named = name_in_root(r->root, r->path, r->flags & ~OPEN_NO_COPY), fd, to;
	struct statx file;

	if (named < 0)
		return named;
	fd = foreign_reopen(named);
	if (fd >= 0 && (mounts_look(named, &file) || !mounts_trusted(r->pid, &file))) {
		to = r->flags & OPEN_NO_COPY ? -ETXTBSY : copy(fd, FOREIGN_COPY_BYTES, true, s);
		close(fd);
		fd = to;
	}
	close(named);
	return fd;
}

int64_t foreign_serve(const struct foreign_request *r, struct foreign_shared *s)
{
	switch (r->what) {
	case FOREIGN_MEMORY:
		return r->bytes <= FOREIGN_BUFFER_BYTES ? serve_memory(r, s) : -EINVAL;
	case FOREIGN_TEXT:
		return serve_text(r, s);
	default:
		return serve_open(r, s);
	}
}
