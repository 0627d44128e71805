/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file system in user space, as any user can have one (linux/fuse.h, without libfuse): one file,
 * under whatever name, whose server can be told not to answer any more. It is a process of its own.
 * Root has the right to mount it here, so the mount says by user_id whose it would be.
 */
#ifndef KPROF_TESTS_FUSE_FIXTURE_H
#define KPROF_TESTS_FUSE_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FUSE_FILE "file"
#define FUSE_OWNER 12345

struct fuse_fixture {
	char dir[64], path[80];
	pid_t server;
	struct {                      /* shared with the server */
		atomic_bool silent;   /* answers no FUSE_READ */
		atomic_uint nr_reads; /* FUSE_READs that it has got */
	} * state;
};

static void fuse_reply(int fd, const struct fuse_in_header *in, int err, const void *body,
		       size_t bytes)
{
	static char out[sizeof(struct fuse_out_header) + (1 << 20)];
	struct fuse_out_header h = {
		.len = (uint32_t)(sizeof(h) + bytes), .error = -err, .unique = in->unique};

	memcpy(out, &h, sizeof(h));
	if (bytes)
		memcpy(out + sizeof(h), body, bytes);
	if (write(fd, out, sizeof(h) + bytes) < 0 && errno != ENOENT)
		_exit(1);
}

static struct fuse_attr fuse_attr_of(uint64_t node, size_t bytes)
{
	return (struct fuse_attr){.ino = node,
				  .size = node == 1 ? 0 : bytes,
				  .mode = node == 1 ? S_IFDIR | 0755 : S_IFREG | 0755,
				  .nlink = 1,
				  .uid = FUSE_OWNER,
				  .gid = FUSE_OWNER,
				  .blksize = 4096};
}

static void fuse_serve(int fd, const struct fuse_fixture *f, const uint8_t *content, size_t bytes)
{
	static char in_bytes[1 << 20];

	for (;;) {
		const struct fuse_in_header *in = (const void *)in_bytes;
		const struct fuse_read_in *r = (const void *)(in + 1);
		struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION,
					     .minor = FUSE_KERNEL_MINOR_VERSION,
					     .max_write = 65536,
					     .max_readahead = 65536};
		struct fuse_attr_out attr = {0};
		struct fuse_entry_out entry = {0};
		struct fuse_open_out opened = {0};
		struct fuse_statfs_out fs = {0};
		size_t left;

		if (read(fd, in_bytes, sizeof(in_bytes)) < 0) {
			if (errno == EINTR || errno == ENOENT)
				continue;
			_exit(0);
		}
		switch (in->opcode) {
		case FUSE_INIT:
			fuse_reply(fd, in, 0, &init, sizeof(init));
			break;
		case FUSE_GETATTR:
			attr.attr = fuse_attr_of(in->nodeid, bytes);
			fuse_reply(fd, in, 0, &attr, sizeof(attr));
			break;
		case FUSE_LOOKUP:
			entry.nodeid = 2;
			entry.attr = fuse_attr_of(2, bytes);
			fuse_reply(fd, in, 0, &entry, sizeof(entry));
			break;
		case FUSE_OPEN:
		case FUSE_OPENDIR:
			fuse_reply(fd, in, 0, &opened, sizeof(opened));
			break;
		case FUSE_READ:
			f->state->nr_reads++;
			if (f->state->silent)
				break;
			left = r->offset < bytes ? bytes - (size_t)r->offset : 0;
			fuse_reply(fd, in, 0, content + (left ? r->offset : 0),
				   left < r->size ? left : r->size);
			break;
		case FUSE_STATFS:
			fuse_reply(fd, in, 0, &fs, sizeof(fs));
			break;
		case FUSE_FORGET:
		case FUSE_BATCH_FORGET:
		case FUSE_INTERRUPT:
			break;
		case FUSE_RELEASE:
		case FUSE_RELEASEDIR:
		case FUSE_FLUSH:
		case FUSE_ACCESS:
			fuse_reply(fd, in, 0, NULL, 0);
			break;
		default:
			fuse_reply(fd, in, ENOSYS, NULL, 0);
		}
	}
}

/* False: this machine lets no such file system be mounted, and says so. */
static inline bool fuse_begin(struct fuse_fixture *f, const void *content, size_t bytes,
			      unsigned int user)
{
	char options[128];
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	strcpy(f->dir, "/tmp/kprof-fuse-XXXXXX");
	if (fd < 0 || !mkdtemp(f->dir)) {
		printf("# skipped: no /dev/fuse\n");
		return false;
	}
	snprintf(f->path, sizeof(f->path), "%s/" FUSE_FILE, f->dir);
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=%u,group_id=%u,allow_other", fd, user, user);
	f->state = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (mount("kprof-test", f->dir, "fuse.kprof", MS_NOSUID | MS_NODEV, options)) {
		printf("# skipped: FUSE cannot be mounted: %s\n", strerror(errno));
		rmdir(f->dir);
		close(fd);
		return false;
	}
	f->server = fork();
	if (!f->server)
		fuse_serve(fd, f, content, bytes);
	close(fd);
	return true;
}

/* The server's end aborts the connection, which lets go whoever waits for an answer. */
static inline void fuse_end(struct fuse_fixture *f)
{
	umount2(f->dir, MNT_DETACH);
	kill(f->server, SIGKILL);
	waitpid(f->server, NULL, 0);
	rmdir(f->dir);
	munmap(f->state, 4096);
}

#endif
