// SPDX-License-Identifier: BSD-2-Clause
/* kprof_only_serve(): what is left to a process that serves a network, and what is not. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kprof.h"
#include "unit.h"

/* Runs fn in a child that has no rights any more; what it returns. */
static int in_child(int (*fn)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(kprof_only_serve() ? 100 : fn());
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* The number of the first of these calls that is not refused; 0: all are. */
static int is_refused(void)
{
	char *const arguments[] = {"true", NULL};
	const long results[] = {
		syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY),
		syscall(SYS_open, "/dev/null", O_RDONLY),
		syscall(SYS_socket, AF_INET, SOCK_STREAM, 0),
		syscall(SYS_socket, AF_UNIX, SOCK_STREAM, 0),
		syscall(SYS_connect, 0, NULL, 0),
		syscall(SYS_bind, 0, NULL, 0),
		syscall(SYS_fork),
		syscall(SYS_execve, "/bin/true", arguments, arguments + 1),
		syscall(SYS_kill, getppid(), 0),
		syscall(SYS_ptrace, 0, 0, 0, 0),
		syscall(SYS_memfd_create, "x", 0),
		syscall(SYS_unlink, "/nowhere"),
		syscall(SYS_mmap, NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0),
		syscall(SYS_prctl, PR_SET_PDEATHSIG, 0),
		syscall(SYS_setuid, 0),
	};

	for (size_t i = 0; i < sizeof(results) / sizeof(*results); i++)
		if (results[i] != -1)
			return (int)i + 1;
	return errno == EPERM ? 0 : 99;
}

static void refused(void)
{
	CHECK_EQ(in_child(is_refused), 0);
}

static int server;

static int serves(void)
{
	struct pollfd p = {.fd = server, .events = POLLIN};
	char text[8] = "";
	int fd;

	if (getuid() == 0 || poll(&p, 1, 10000) != 1)
		return 1;
	fd = accept4(server, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0 || recv(fd, text, 5, 0) != 5 || strcmp(text, "hello") != 0)
		return 2;
	if (send(fd, text, 5, MSG_NOSIGNAL) != 5 || !malloc(1 << 20))
		return 3;
	return close(fd) ? 4 : 0;
}

/* A connection comes, is read and answered. */
static void allowed(void)
{
	struct sockaddr_un {
		sa_family_t family;
		char path[14];
	} name = {AF_UNIX, ""};
	socklen_t bytes = sizeof(name.family);
	int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char text[8] = "";

	server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(!bind(server, (struct sockaddr *)&name, bytes)); /* the kernel makes a name */
	bytes = sizeof(name);
	CHECK(!getsockname(server, (struct sockaddr *)&name, &bytes));
	CHECK(!listen(server, 1));
	CHECK(!connect(client, (struct sockaddr *)&name, bytes));
	CHECK(send(client, "hello", 5, 0) == 5);
	CHECK_EQ(in_child(serves), 0);
	CHECK(recv(client, text, 5, 0) == 5);
	CHECK_STR(text, "hello");
	close(client);
	close(server);
}

/* A process whose parent is killed ends, too: it cannot then be heard any more. */
static void ends_with_parent(void)
{
	int ends[2];
	char byte;
	pid_t pid;

	CHECK(!pipe2(ends, O_CLOEXEC));
	pid = fork();
	if (!pid) {
		pid_t parent = getpid();

		if (!fork()) {
			if (kprof_only_serve() || getppid() != parent ||
			    write(ends[1], "r", 1) != 1)
				_exit(1);
			poll(NULL, 0, -1);
		}
		close(ends[1]);
		poll(NULL, 0, -1);
	}
	close(ends[1]);
	CHECK(read(ends[0], &byte, 1) == 1 && byte == 'r');
	kill(pid, SIGKILL);
	CHECK(read(ends[0], &byte, 1) == 0);
	waitpid(pid, NULL, 0);
	close(ends[0]);
}

UNIT_MAIN(TEST(refused), TEST(allowed), TEST(ends_with_parent))
