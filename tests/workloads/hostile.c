// SPDX-License-Identifier: BSD-2-Clause
/*
 * Targets that want to harm who profiles them.
 *
 *   hostile silent LIBRARY   maps code from a file system of its own, under the name of PyTorch's
 *                            library, which does not answer any more
 *   hostile answers LIBRARY  the same, which does answer
 *
 * Says READY and its pid, works until its input ends, and ends with 0.
 */
#include <poll.h>
#include <sched.h>

#include "../lib/fuse_fixture.h"

static volatile unsigned long work;

static void *whole(const char *path, size_t *bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *at;

	if (fd < 0 || fstat(fd, &st)) {
		perror(path);
		exit(1);
	}
	*bytes = (size_t)st.st_size;
	at = mmap(NULL, *bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	return at;
}

static void map_code(const struct fuse_fixture *f, size_t bytes)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/libtorch_cpu.so", f->dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || mmap(NULL, bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED) {
		perror(path);
		exit(1);
	}
	close(fd);
}

int main(int argc, char **argv)
{
	struct pollfd input = {.fd = 0, .events = POLLIN};
	struct fuse_fixture f;
	size_t bytes;
	void *content;
	char byte;

	if (argc != 3)
		return 2;
	/*
	 * The mount goes with this process, however that ends. -EINVAL: in a chroot, whose root is
	 * no mount.
	 */
	if (unshare(CLONE_NEWNS) ||
	    (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) && errno != EINVAL))
		return 77;
	content = whole(argv[2], &bytes);
	if (!fuse_begin(&f, content, bytes, FUSE_OWNER))
		return 77;
	map_code(&f, bytes);
	f.state->silent = !strcmp(argv[1], "silent");
	printf("READY %d\n", (int)getpid());
	fflush(stdout);
	for (;;) {
		for (int i = 0; i < 1000000; i++)
			work++;
		if (poll(&input, 1, 0) > 0 && read(0, &byte, 1) <= 0)
			break;
	}
	fuse_end(&f);
	return 0;
}
