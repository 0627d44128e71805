// SPDX-License-Identifier: BSD-2-Clause
/* The memory file that kprof finds and maps. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gpu/base/host.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U /* Linux 6.3 */
#endif

/* By system call: glibc has memfd_create() only since 2.27. */
static int make_file(void)
{
	unsigned int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	long fd = syscall(SYS_memfd_create, KPROF_AGENT_SHM_NAME, flags | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = syscall(SYS_memfd_create, KPROF_AGENT_SHM_NAME, flags);
	return fd < 0 ? -errno : (int)fd;
}

int shm__make(struct kprof_agent_shm **out)
{
	struct kprof_agent_shm *shm;
	int err = 0, fd;

	fd = make_file();
	if (fd < 0)
		return fd;
	if (ftruncate(fd, KPROF_AGENT_SHM_BYTES)) {
		err = -errno;
		goto out;
	}
	/* No process can change the size of the file after this. */
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	shm = mmap(NULL, KPROF_AGENT_SHM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shm == MAP_FAILED) {
		err = -errno;
		goto out;
	}
	shm->version = KPROF_AGENT_VERSION;
	shm->pid = (kprof_u32)getpid();
	shm->nr_slots = KPROF_AGENT_SLOTS;
	/* Written last: a reader that finds the magic number finds all other fields set. */
	__atomic_store_n(&shm->magic, KPROF_AGENT_MAGIC, __ATOMIC_RELEASE);
	*out = shm;
out:
	close(fd);
	return err;
}

void shm__unmap(struct kprof_agent_shm *shm)
{
	munmap(shm, KPROF_AGENT_SHM_BYTES);
}
