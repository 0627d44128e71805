// SPDX-License-Identifier: BSD-2-Clause
/* The socket at which clients come: one daemon has it, and systemd keeps it over a restart. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "cmd/daemon/daemon.h"
#include "kprof/sent_files.h"

#define BACKLOG 64
#define STORE_NAME "clients" /* of the socket, with systemd */

/* The folder of the socket; the lock in it is held by one daemon. A descriptor or -errno. */
static int lock_folder(const char *path)
{
	char folder[DAEMON_PATH_BYTES], *slash;
	int err;

	snprintf(folder, sizeof(folder), "%s", path);
	slash = strrchr(folder, '/');
	if (!slash || slash == folder)
		return -EINVAL;
	*slash = '\0';
	err = folder_make(folder, 0755);
	return err ? err : folder_lock(folder, "lock");
}

/* A socket that the daemon before has left with systemd: clients wait instead of failing. */
static int kept_socket(const char *path)
{
	char **names = NULL;
	int nr = sd_listen_fds_with_names(1, &names), fd = -1;

	for (int i = 0; i < nr; i++) {
		int kept = SD_LISTEN_FDS_START + i;

		if (fd < 0 && !strcmp(names[i], STORE_NAME) &&
		    sd_is_socket_unix(kept, SOCK_STREAM, 1, path, 0) > 0)
			fd = kept;
		else
			close(kept);
	}
	for (int i = 0; i < nr; i++)
		free(names[i]);
	free(names);
	return fd;
}

/* Whether who comes by the path gets to a socket that listens: no other daemon has the lock. */
static bool is_reached(const struct sockaddr_un *at)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool reached = fd >= 0 && (!connect(fd, (const struct sockaddr *)at, sizeof(*at)) ||
				   errno == EAGAIN); /* clients wait already */

	if (fd >= 0)
		close(fd);
	return reached;
}

static int new_socket(const struct sockaddr_un *at)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err;

	if (fd < 0)
		return -errno;
	kprof_sent_files_refuse(fd);
	unlink(at->sun_path); /* of one that was killed: the folder is locked */
	if (!bind(fd, (const struct sockaddr *)at, sizeof(*at)) && !chmod(at->sun_path, 0666) &&
	    !listen(fd, BACKLOG))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

static int listen_at(const char *path, bool *stored)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd;

	if (strlen(path) >= sizeof(at.sun_path))
		return -ENAMETOOLONG;
	strcpy(at.sun_path, path);
	fd = kept_socket(at.sun_path);
	*stored = fd >= 0;
	if (fd >= 0 && !is_reached(&at)) {
		close(fd);
		sd_notify(0, "FDSTOREREMOVE=1\nFDNAME=" STORE_NAME);
		fd = -1;
	}
	if (fd < 0) {
		fd = new_socket(&at);
		if (fd < 0)
			return fd;
		*stored = sd_pid_notify_with_fds(0, 0, "FDSTORE=1\nFDNAME=" STORE_NAME, &fd, 1) > 0;
	}
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return fd;
}

int socket_listen(const char *path, int *lock, bool *stored)
{
	int fd = lock_folder(path);

	*lock = fd;
	if (fd >= 0)
		fd = listen_at(path, stored);
	return fd;
}
