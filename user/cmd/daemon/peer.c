// SPDX-License-Identifier: BSD-2-Clause
/*
 * Where a client is: in which PID namespace. Whoever is not in the daemon's own is in a container,
 * where root is not the machine's, and a user id is not the same user's as elsewhere. Namespaces
 * are told apart by their inodes' numbers, of which one is given again once a namespace is gone: so
 * those that recordings are of are kept open.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cmd/daemon/daemon.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

#define MOST_HELD 256

static struct {
	uint64_t space;
	int fd;
	size_t nr; /* recordings; 0: the place is free */
} held[MOST_HELD];

uint64_t process_space(pid_t pid)
{
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
	return stat(path, &st) ? SPACE_UNKNOWN : st.st_ino;
}

static int pidfd_of(int fd, pid_t pid)
{
	socklen_t bytes = sizeof(int);
	int pidfd;

	if (!getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &bytes))
		return pidfd;
	/* an older kernel: of the process that has the number now */
	return errno == ENOPROTOOPT && pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
}

bool peer_ended(int alive)
{
	struct pollfd p = {.fd = alive, .events = POLLIN};

	return poll(&p, 1, 0) != 0;
}

uint64_t peer_space(int fd, pid_t pid, int *alive)
{
	int pidfd = pidfd_of(fd, pid);
	uint64_t space;

	*alive = -1;
	if (pidfd < 0)
		return SPACE_UNKNOWN;
	space = pid > 0 ? process_space(pid) : SPACE_UNKNOWN;
	if (peer_ended(pidfd)) /* the number may have been another's */
		space = SPACE_UNKNOWN;
	else if (space == process_space(getpid()))
		space = 0;
	if (space && space != SPACE_UNKNOWN)
		*alive = pidfd;
	else
		close(pidfd);
	return space;
}

int space_hold(uint64_t space, pid_t pid)
{
	size_t free_one = MOST_HELD;
	struct stat st;
	char path[64];
	int fd;

	for (size_t i = 0; i < MOST_HELD; i++) {
		if (held[i].nr && held[i].space == space) {
			held[i].nr++;
			return 0;
		}
		if (!held[i].nr)
			free_one = i;
	}
	if (free_one == MOST_HELD)
		return -EMFILE;
	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) || st.st_ino != space) {
		if (fd >= 0)
			close(fd);
		return -ESRCH;
	}
	held[free_one].space = space;
	held[free_one].fd = fd;
	held[free_one].nr = 1;
	return 0;
}

void space_drop(uint64_t space)
{
	for (size_t i = 0; i < MOST_HELD; i++)
		if (held[i].nr && held[i].space == space && !--held[i].nr)
			close(held[i].fd);
}
