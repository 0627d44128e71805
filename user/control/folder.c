// SPDX-License-Identifier: BSD-2-Clause
/* Folders of which root alone has the key: no other user can have put anything there. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "kprof/control.h"
#include "util/error.h"
#include "util/util.h"

#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static int is_roots(int fd, const char *path)
{
	struct stat st;

	if (fstat(fd, &st))
		return error_set(-errno, NULL, "%s: %s", path, strerror(errno));
	if (st.st_uid || st.st_mode & 077)
		return error_set_machine(-EPERM, "remove it: kprof makes it anew",
					 "%s is not a folder that only root can enter", path);
	return 0;
}

/* Opens a folder in another one. */
static int enter(int in, const char *name, const char *path, bool make)
{
	int fd, err;

	if (make && mkdirat(in, name, 0700) && errno != EEXIST)
		return error_set_machine(-errno, errno == EACCES ? "run it as root" : NULL,
					 "cannot make %s: %s", path, strerror(errno));
	fd = openat(in, name, FOLDER_FLAGS);
	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0)
		return error_set_machine(-errno, errno == EACCES ? "run it as root" : NULL,
					 "cannot enter %s: %s", path, strerror(errno));
	err = is_roots(fd, path);
	if (!err)
		return fd;
	close(fd);
	return err;
}

int kprof_control_folder(const char *below, bool make, char path[KPROF_CONTROL_PATH_BYTES])
{
	size_t len = strlen(KPROF_CONTROL_FOLDER);
	int fd, next, err = 0;

	error_clear();
	snprintf(path, KPROF_CONTROL_PATH_BYTES, "%s", KPROF_CONTROL_FOLDER);
	fd = enter(AT_FDCWD, path, path, make);
	if (fd < 0)
		return fd;
	while (*below && !err) {
		size_t n = strcspn(below, "/");
		char name[32];

		if (!n || n >= sizeof(name) || len + n + 2 > KPROF_CONTROL_PATH_BYTES) {
			err = error_set_usage(-EINVAL, NULL, "no folder of kprof's has this name");
			break;
		}
		snprintf(name, sizeof(name), "%.*s", (int)n, below);
		len += (size_t)snprintf(path + len, KPROF_CONTROL_PATH_BYTES - len, "/%s", name);
		below += n + (below[n] == '/');
		next = enter(fd, name, path, make);
		close(fd);
		fd = next;
		err = fd < 0 ? fd : 0;
	}
	if (fd >= 0)
		close(fd);
	return err;
}

int kprof_control_wait(const char *folder, int timeout_ms)
{
	uint64_t until_ns = clock_mono_ns() + (uint64_t)timeout_ms * NSEC_PER_MSEC;
	const struct timespec moment = {.tv_nsec = 10000000};
	char path[KPROF_CONTROL_PATH_BYTES + 8];
	struct flock whole;
	int fd, err = 0;

	snprintf(path, sizeof(path), "%s/lock", folder);
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	for (;;) {
		whole = (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET};
		if (fd < 0 || fcntl(fd, F_GETLK, &whole) || whole.l_type == F_UNLCK)
			break;
		if (clock_mono_ns() >= until_ns) {
			err = -ETIMEDOUT;
			break;
		}
		nanosleep(&moment, NULL);
	}
	if (fd >= 0)
		close(fd);
	return err;
}
