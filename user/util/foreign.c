// SPDX-License-Identifier: BSD-2-Clause
/* Starts the reader, talks to it, and gives it up. */
#include "util/foreign.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "util/error.h"
#include "util/foreign_reader.h"
#include "util/haste.h"
#include "util/mounts.h"
#include "util/util.h"

/*
 * How long the reader may make no progress, and how long it may take in all to copy a file. Both
 * are far above what a disk takes; kprof waits so long at most once per reader.
 */
static uint64_t quiet_most_ns = 2 * NSEC_PER_SEC, all_most_ns = 10 * NSEC_PER_SEC;
#define POLL_MS 50

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t nr_asked; /* begins and ends of requests: odd while one goes on */

/* Of the process `owner`; a child of that has none. */
static struct {
	/* pid 0: there is no reader. Read by foreign_used_ns() without the lock. */
	_Atomic pid_t owner, pid;
	int fd;
	struct foreign_shared *shared;
	_Atomic size_t nr_given_up;
	size_t nr_told;
	struct {
		pid_t pid;
		uint32_t what;
	} slow[FOREIGN_MAX_GIVEN_UP]; /* what of which process has taken too long */
} reader;

/* What the reader answers; a descriptor comes beside it. */
struct answer {
	int64_t result;
	bool has_fd;
};

/* Room for one descriptor beside a message; unix(7), cmsg(3). */
union beside {
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(int))];
};

/* ---- the reader ---- */

static void answer(int to, int64_t result, bool has_fd)
{
	struct answer a = {.result = has_fd ? 0 : result, .has_fd = has_fd};
	struct iovec part = {&a, sizeof(a)};
	union beside beside = {0};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
	int fd = (int)result;

	if (has_fd) {
		m.msg_control = &beside;
		m.msg_controllen = sizeof(beside.room);
		beside.head = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)),
					       .cmsg_level = SOL_SOCKET,
					       .cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(&beside.head), &fd, sizeof(fd));
	}
	if (sendmsg(to, &m, MSG_NOSIGNAL) < 0)
		_exit(1);
	if (has_fd)
		close(fd);
}

static _Noreturn void serve(int fd, struct foreign_shared *shared)
{
	static struct foreign_request r;

	for (;;) {
		ssize_t n = recv(fd, &r, sizeof(r) - 1, 0);
		int64_t result;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < (ssize_t)offsetof(struct foreign_request, path))
			_exit(0);
		((char *)&r)[n] = '\0';
		result = foreign_serve(&r, shared);
		answer(fd, result, result >= 0 && r.what != FOREIGN_MEMORY);
	}
}

/*
 * The reader has nothing of this process but the socket: a descriptor that is open in a process
 * which never ends would keep probes in place.
 */
static _Noreturn void be_reader(int fd, struct foreign_shared *shared, pid_t parent)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "kprof-reader");
	haste__drop();
	if (getppid() != parent || dup2(fd, 0) != 0)
		_exit(1);
	close_range(1, ~0u, 0);
	/* 1 and 2 stay taken, in case something prints */
	(void)!dup2(0, 1);
	(void)!dup2(0, 2);
	serve(0, shared);
}

/* ---- this process ---- */

/* fds[0] is this process's: who waits at it for an answer looks every POLL_MS. */
static int socket_pair(int fds[2])
{
	const struct timeval look = {.tv_usec = POLL_MS * 1000};

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return -1;
	if (!setsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &look, sizeof(look)))
		return 0;
	close(fds[0]);
	close(fds[1]);
	return -1;
}

static int start(void)
{
	pid_t parent = getpid(), pid;
	int fds[2];

	if (reader.nr_given_up == FOREIGN_MAX_GIVEN_UP)
		return -ETIMEDOUT;
	reader.shared = mmap(NULL, sizeof(*reader.shared), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (reader.shared == MAP_FAILED)
		return -ENOMEM;
	if (socket_pair(fds)) {
		munmap(reader.shared, sizeof(*reader.shared));
		return -errno;
	}
	pid = fork();
	if (!pid)
		be_reader(fds[1], reader.shared, parent);
	close(fds[1]);
	if (pid > 0) {
		reader.owner = parent;
		reader.fd = fds[0];
		reader.pid = pid;
		return 0;
	}
	close(fds[0]);
	munmap(reader.shared, sizeof(*reader.shared));
	return -EAGAIN;
}

/* Ends the reader. One that hangs in the kernel goes when that lets it. */
static void end(void)
{
	pid_t pid = reader.pid;

	reader.pid = 0; /* before another process can have its number */
	close(reader.fd);
	munmap(reader.shared, sizeof(*reader.shared));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, WNOHANG);
}

/* When this process ends, nothing is left of its reader, unless that hangs. */
__attribute__((destructor)) static void finish(void)
{
	if (!reader.pid || reader.owner != getpid())
		return;
	close(reader.fd); /* at the socket's end, the reader ends */
	for (int i = 0; i < 100 && !waitpid(reader.pid, NULL, WNOHANG); i++)
		poll(NULL, 0, 1);
	munmap(reader.shared, sizeof(*reader.shared));
	reader.pid = 0;
	reader.owner = 0;
}

void foreign_finish(void)
{
	pthread_mutex_lock(&lock);
	finish();
	pthread_mutex_unlock(&lock);
}

static void give_up(const struct foreign_request *r)
{
	end();
	reader.slow[reader.nr_given_up].pid = r->pid;
	reader.slow[reader.nr_given_up++].what = r->what;
}

void foreign_tell(void)
{
	while (reader.nr_told < reader.nr_given_up) {
		static const char *const whats[] = {
			[FOREIGN_MEMORY] = "memory",
			[FOREIGN_TEXT] = "mappings",
			[FOREIGN_OPEN] = "files",
		};
		pid_t pid = reader.slow[reader.nr_told].pid;
		const char *what = whats[reader.slow[reader.nr_told++].what];
		bool last = reader.nr_told == FOREIGN_MAX_GIVEN_UP;

		log_warn(
			"a file system in user space (FUSE), or a handler of page faults, does not answer",
			"%s of process %d cannot be read in time: no more of them are read%s", what,
			(int)pid, last ? ", nor of any other process" : "");
	}
}

static bool is_slow(const struct foreign_request *r)
{
	for (size_t i = 0; i < reader.nr_given_up; i++)
		if (reader.slow[i].pid == r->pid && reader.slow[i].what == r->what)
			return true;
	return false;
}

/*
 * Receives the answer. *fd: the descriptor beside it, or -1. 0; -ETIMEDOUT; -EPIPE: it has ended.
 */
static int receive(uint64_t deadline_ns, struct answer *a, int *fd)
{
	struct iovec part = {a, sizeof(*a)};
	union beside beside = {0};
	struct msghdr m = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = &beside,
			   .msg_controllen = sizeof(beside.room)};
	uint32_t progress = reader.shared->progress;
	uint64_t quiet_ns = clock_mono_ns(), now_ns;
	ssize_t n;

	*fd = -1;
	/* the socket's timeout is POLL_MS; a call of poll() beside each would cost as much again */
	while ((n = recvmsg(reader.fd, &m, MSG_CMSG_CLOEXEC)) < 0 &&
	       (errno == EINTR || errno == EAGAIN)) {
		now_ns = clock_mono_ns();
		if (progress != reader.shared->progress) {
			progress = reader.shared->progress;
			quiet_ns = now_ns;
		}
		if (now_ns >= quiet_ns + quiet_most_ns || now_ns >= deadline_ns)
			return -ETIMEDOUT;
	}
	if (n != sizeof(*a))
		return -EPIPE;
	if (a->has_fd && m.msg_controllen)
		memcpy(fd, CMSG_DATA(&beside.head), sizeof(*fd));
	return a->has_fd && *fd < 0 ? -EMFILE : 0;
}

/* The lock is held. `bytes`: how many of the request are sent. */
static int64_t ask_once(const struct foreign_request *r, size_t bytes, void *to)
{
	struct answer a;
	int err = reader.pid ? 0 : start(), fd;

	if (err)
		return err;
	if (send(reader.fd, r, bytes, MSG_NOSIGNAL) != (ssize_t)bytes)
		err = -EPIPE;
	if (!err)
		err = receive(clock_mono_ns() + all_most_ns, &a, &fd);
	if (err == -EPIPE)
		end();
	else if (err == -ETIMEDOUT)
		give_up(r);
	if (err)
		return err;
	if (fd >= 0)
		return fd;
	if (a.result > 0 && to)
		memcpy(to, reader.shared->buffer, (size_t)a.result);
	return a.result;
}

/*
 * In a child of the process that has the reader, this is done without one: such children are there
 * to be given up.
 */
static int64_t ask(struct foreign_request *r, void *to)
{
	size_t bytes = offsetof(struct foreign_request, path) + strlen(r->path);
	int64_t n;

	if (reader.owner && reader.owner != getpid()) {
		struct foreign_shared *s = malloc(sizeof(*s));

		n = s ? foreign_serve(r, s) : -ENOMEM;
		if (n > 0 && to)
			memcpy(to, s->buffer, (size_t)n);
		free(s);
		return n;
	}
	pthread_mutex_lock(&lock);
	nr_asked++;
	n = is_slow(r) ? -ETIMEDOUT : ask_once(r, bytes, to);
	/* The reader ends with the thread that has started it. */
	if (n == -EPIPE)
		n = ask_once(r, bytes, to);
	nr_asked++;
	pthread_mutex_unlock(&lock);
	return n;
}

void foreign_set_patience(uint64_t quiet_ns, uint64_t all_ns)
{
	quiet_most_ns = quiet_ns;
	all_most_ns = all_ns;
}

/* Its clock stands still between requests, of which there are much fewer than calls of this. */
uint64_t foreign_used_ns(void)
{
	static _Thread_local uint64_t asked, used_ns;
	uint64_t now = nr_asked;
	pid_t pid;

	if (reader.owner != getpid())
		return 0;
	if (now == asked && now % 2 == 0)
		return used_ns;
	pid = reader.pid;
	used_ns = pid ? clock_process_ns(pid) : 0;
	asked = now;
	return used_ns;
}

void foreign_prepare(void)
{
	pthread_mutex_lock(&lock);
	if (!reader.owner)
		start(); /* an error will show when something is to be read */
	pthread_mutex_unlock(&lock);
}

ssize_t foreign_memory(pid_t pid, uint64_t address, void *to, size_t bytes)
{
	size_t done = 0;

	while (done < bytes) {
		size_t part =
			bytes - done < FOREIGN_BUFFER_BYTES ? bytes - done : FOREIGN_BUFFER_BYTES;
		struct foreign_request r = {.what = FOREIGN_MEMORY,
					    .pid = pid,
					    .address = address + done,
					    .bytes = part};
		int64_t n = ask(&r, (char *)to + done);

		if (n < 0 && !done)
			return n;
		done += n > 0 ? (size_t)n : 0;
		if (n < (int64_t)part)
			break;
	}
	return (ssize_t)done;
}

int foreign_text(const char *path, size_t max_bytes, char **out, size_t *bytes)
{
	struct foreign_request r = {
		.what = FOREIGN_TEXT, .pid = foreign_pid(path), .bytes = max_bytes};
	int fd, err;

	snprintf(r.path, sizeof(r.path), "%s", path);
	fd = (int)ask(&r, NULL);
	if (fd < 0)
		return fd;
	err = read_fd(fd, max_bytes, out, bytes);
	close(fd);
	return err;
}

/* ---- files ---- */

/* Links of procfs to files, which are resolved without asking a file system. */
static bool is_link(const char *path)
{
	const char *rest = strncmp(path, "/proc/", 6) ? NULL : strchr(path + 6, '/');

	if (!rest)
		return false;
	if (!strncmp(rest, "/map_files/", 11))
		return !strchr(rest + 11, '/');
	return !strcmp(rest, "/exe") || (!strncmp(rest, "/fd/", 4) && !strchr(rest + 4, '/'));
}

/* Opens such a file here if that cannot block. -ETXTBSY: it can. */
static int open_link(const char *path)
{
	int named = foreign_name_link(path), fd;
	struct statx file;

	if (named < 0)
		return named;
	fd = mounts_look(named, &file);
	if (!fd)
		fd = mounts_trusted(foreign_pid(path), &file) ? foreign_reopen(named) : -ETXTBSY;
	close(named);
	return fd;
}

int open_in_root(const char *root, const char *path, int flags)
{
	struct foreign_request r = {
		.what = FOREIGN_OPEN, .pid = foreign_pid(*root ? root : path), .flags = flags};
	int fd;

	if (!*root && !(flags & O_NOFOLLOW) && is_link(path)) {
		fd = open_link(path);
		if (fd != -ETXTBSY || flags & OPEN_NO_COPY)
			return fd;
	}
	if ((size_t)snprintf(r.root, sizeof(r.root), "%s", root) >= sizeof(r.root) ||
	    (size_t)snprintf(r.path, sizeof(r.path), "%s", path) >= sizeof(r.path))
		return -ENAMETOOLONG;
	return (int)ask(&r, NULL);
}

int foreign_look(const char *link, struct foreign_file *out)
{
	int named = is_link(link) ? foreign_name_link(link) : -EINVAL, err;
	struct statx file;

	if (named < 0)
		return named;
	err = mounts_look(named, &file);
	close(named);
	if (err)
		return err;
	*out = (struct foreign_file){.regular = S_ISREG(file.stx_mode),
				     .may_block = !mounts_trusted(foreign_pid(link), &file),
				     .in_memory = mounts_in_memory(&file),
				     .bytes = file.stx_size};
	return 0;
}

int foreign_open_memory(const char *link)
{
	int named = is_link(link) ? foreign_name_link(link) : -EINVAL, fd;
	struct statx file;
	char path[32];

	if (named < 0)
		return named;
	fd = mounts_look(named, &file);
	if (!fd && (!S_ISREG(file.stx_mode) || !mounts_in_memory(&file)))
		fd = -EINVAL;
	if (!fd) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", named);
		fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		fd = fd < 0 ? -errno : fd;
	}
	close(named);
	return fd;
}
