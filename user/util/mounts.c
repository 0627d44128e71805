// SPDX-License-Identifier: BSD-2-Clause
/*
 * A file's mount is found by its number in the mountinfo of a process (proc_pid_mountinfo(5)),
 * which the kernel prints without asking any file system. Neither stat() nor statfs() can be used:
 * FUSE passes both on to its server.
 *
 * Any user may mount FUSE. In a user namespace, any user may also mount an overlay over FUSE;
 * outside of these, only root can make overlays (those of container engines).
 */
#include "util/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/util.h"

#define USERNS_INIT_INO 0xEFFFFFFDu /* PROC_USER_INIT_INO, include/linux/proc_ns.h */
#define MOUNTINFO_MAX_BYTES (16u << 20)

/*
 * Whatever is not in this list is read as if it might block, which costs a copy. Network file
 * systems are in it although a server may be silent: root has mounted them, and whole clusters have
 * their programs there.
 */
static const char *const kernels[] = {
	"ext2",     "ext3",   "ext4",   "xfs",      "btrfs", "f2fs",  "bcachefs", "zfs",
	"jfs",      "nilfs2", "erofs",  "exfat",    "vfat",  "ntfs3", "udf",      "iso9660",
	"squashfs", "tmpfs",  "ramfs",  "nfs",      "nfs4",  "cifs",  "smb3",     "ceph",
	"lustre",   "gpfs",   "beegfs", "virtiofs", "9p",    "afs",   "orangefs", "hugetlbfs",
	"rootfs",   "ubifs",  "wekafs", "panfs",
};

static bool trust_all;

void mounts_trust_all(void)
{
	trust_all = true;
}

int mounts_look(int fd, struct statx *out)
{
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
		  STATX_TYPE | STATX_INO | STATX_SIZE | STATX_MNT_ID, out))
		return -errno;
	return 0;
}

#define DEVICE_OF(file) ((uint64_t)(file)->stx_dev_major << 32 | (file)->stx_dev_minor)

/* The device that all files of memfd_create() are on; 0: not known. */
static uint64_t memory_device(void)
{
	static atomic_uint_fast64_t known;
	struct statx file;
	int fd;

	if (atomic_load(&known))
		return atomic_load(&known);
	fd = memfd_create("kprof-device", MFD_CLOEXEC);
	if (fd < 0)
		return 0;
	if (!mounts_look(fd, &file))
		atomic_store(&known, DEVICE_OF(&file));
	close(fd);
	return atomic_load(&known);
}

bool mounts_in_memory(const struct statx *file)
{
	return memory_device() && DEVICE_OF(file) == memory_device();
}

/* Whether only this machine's root can mount in the process's mount namespace. */
static bool is_roots(const char *process)
{
	char path[40];
	struct stat st = {0};
	int ns, owner = -1;

	snprintf(path, sizeof(path), "/proc/%s/ns/mnt", process);
	ns = open(path, O_RDONLY | O_CLOEXEC);
	if (ns >= 0)
		owner = ioctl(ns, NS_GET_USERNS);
	if (owner < 0 || fstat(owner, &st))
		st.st_ino = 0;
	if (owner >= 0)
		close(owner);
	if (ns >= 0)
		close(ns);
	return st.st_ino == USERNS_INIT_INO;
}

/* The line of mountinfo with this number. */
static const char *line_of(const char *text, uint64_t number)
{
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (*line && strtoull(line, NULL, 10) == number)
			return line;
	}
	return NULL;
}

/*
 * The end of a line: " - TYPE SOURCE OPTIONS". Blanks in names are written as \040, so these are
 * words.
 */
static bool type_trusted(const char *line, bool roots)
{
	char type[32] = "", options[256] = "";
	const char *end = strchr(line, '\n'), *at = strstr(line, " - ");

	if (!at || (end && at > end) || sscanf(at, " - %31s %*s %255[^\n]", type, options) < 1)
		return false;
	if (!strcmp(type, "overlay"))
		return roots;
	if (!strncmp(type, "fuse", 4)) /* fusermount, which any user may run, names its caller */
		return roots && strstr(options, "user_id=0,");
	for (size_t i = 0; i < ARRAY_SIZE(kernels); i++)
		if (!strcmp(type, kernels[i]))
			return true;
	return false;
}

static bool trusted_in(const char *process, const struct statx *file, bool *listed)
{
	char path[40], *text = NULL;
	const char *line;
	bool trusted = false;

	snprintf(path, sizeof(path), "/proc/%s/mountinfo", process);
	if (read_file(path, MOUNTINFO_MAX_BYTES, &text, NULL))
		return false;
	line = line_of(text, file->stx_mnt_id);
	*listed = line;
	if (line)
		trusted = type_trusted(line, is_roots(process));
	free(text);
	return trusted;
}

bool mounts_trusted(pid_t pid, const struct statx *file)
{
	char process[16];
	bool listed = false, trusted = false;

	/* On a block device: only root can mount such a file system (not FS_USERNS_MOUNT). */
	if (trust_all || file->stx_dev_major)
		return true;
	if (!(file->stx_mask & STATX_MNT_ID))
		return false;
	if (mounts_in_memory(file))
		return true;
	snprintf(process, sizeof(process), "%d", (int)pid);
	if (pid)
		trusted = trusted_in(process, file, &listed);
	if (!listed)
		trusted = trusted_in("self", file, &listed);
	/* In a chroot, what is mounted outside of it is not listed. */
	return listed ? trusted : trusted_in("1", file, &listed);
}
