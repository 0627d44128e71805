// SPDX-License-Identifier: BSD-2-Clause
/*
 * Processes of the daemon's. Each has one socket to the daemon, on which a packet is a JSON object.
 * When the daemon has ended, however it did, the socket says so, and they end in order.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/daemon/daemon.h"
#include "kprof/sent_files.h"

#define PACKET_BYTES 65536
#define CHILD_FD 3
#define MOST_AT_ONCE 64 /* messages of one child, before others get their turn */
#define MOST_LAST_WORDS 10000

static struct child *first;
static struct {
	const char *name;
	pid_t pid;
} also;

/* ---- both sides ---- */

/* file: goes along; -1: none. False: it was not sent. */
static bool send_packet(int fd, cJSON *m, int file)
{
	char *text = cJSON_PrintUnformatted(m);
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec from = {.iov_base = text, .iov_len = text ? strlen(text) : 0};
	struct msghdr h = {.msg_iov = &from, .msg_iovlen = 1};
	struct cmsghdr *c;
	bool sent;

	if (file >= 0) {
		h.msg_control = &control;
		h.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&h);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &file, sizeof(int));
	}
	sent = text && from.iov_len < PACKET_BYTES &&
	       sendmsg(fd, &h, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
	cJSON_free(text);
	cJSON_Delete(m);
	return sent;
}

/* 1: a message; 0: none is there; -EPIPE: there will be no more. file: that came along, or -1. */
static int take_packet(int fd, cJSON **out, int *file)
{
	static char text[PACKET_BYTES];
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec to = {.iov_base = text, .iov_len = sizeof(text) - 1};
	struct msghdr m = {.msg_iov = &to,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	const struct cmsghdr *c;
	ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	*file = -1;
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -EPIPE;
	if (!n)
		return -EPIPE;
	c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(file, CMSG_DATA(c), sizeof(*file));
	text[n] = '\0';
	*out = cJSON_Parse(text);
	return 1;
}

/* ---- the daemon's side ---- */

/* False: there will be no more. */
static bool take_messages(struct child *c, int most)
{
	char byte;
	ssize_t n;

	for (int i = 0; i < most; i++) {
		cJSON *m = NULL;
		int file;

		n = kprof_sent_files_peek(c->watch.fd, &byte, 1);
		if (n == -EAGAIN)
			return true;
		if (n < 0 || /* with files, it is another's by now */
		    take_packet(c->watch.fd, &m, &file) <= 0)
			return false;
		if (m)
			c->message(c->ctx, m);
		cJSON_Delete(m);
	}
	return true;
}

static void ready(void *ctx, uint32_t events)
{
	struct child *c = ctx;

	/*
	 * A process that ends has closed its socket long before SIGCHLD comes: the kernel removes
	 * its probes in between. Until then, the socket would be ready all the time.
	 */
	if (!(events & EPOLLIN) || !take_messages(c, MOST_AT_ONCE))
		loop__remove(c->loop, &c->watch);
}

/* Becomes a process that has nothing of the daemon's. */
static void leave_daemon(struct child *c, int fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;

	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(fd, CHILD_FD);
	close_range(CHILD_FD + 1, ~0u, 0);
	fcntl(CHILD_FD, F_SETFD, FD_CLOEXEC);
	for (int s = 1; s < NSIG; s++)
		if (s != SIGPIPE)
			signal(s, SIG_DFL);
	/* a Ctrl-C in the daemon's terminal is the daemon's: it ends them in order */
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_NAME, c->name);
	first = NULL;
}

int child__start(struct loop *l, struct child *c, int (*run)(int fd, void *arg), void *arg)
{
	int ends[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	kprof_sent_files_refuse(ends[0]);
	c->loop = l;
	c->watch = (struct loop_watch){.fd = ends[0], .ready = ready, .ctx = c};
	/* before it runs: what cannot be listened to is not begun */
	err = loop__add(l, &c->watch, EPOLLIN);
	c->pid = err ? -1 : fork();
	if (!c->pid) {
		leave_daemon(c, ends[1]);
		_exit(run(CHILD_FD, arg));
	}
	if (!err && c->pid < 0)
		err = -errno;
	close(ends[1]);
	if (err) {
		loop__remove(l, &c->watch);
		close(ends[0]);
		c->pid = 0;
		return err;
	}
	c->next = first;
	first = c;
	return 0;
}

void child__send(struct child *c, cJSON *m)
{
	child__send_file(c, m, -1);
}

bool child__send_file(struct child *c, cJSON *m, int file)
{
	if (c->pid)
		return send_packet(c->watch.fd, m, file);
	cJSON_Delete(m);
	return false;
}

static void has_ended(struct child *c, int status)
{
	struct child **at = &first;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	take_messages(c, MOST_LAST_WORDS);
	loop__remove(c->loop, &c->watch);
	kprof_sent_files_close(c->watch.fd);
	c->pid = 0;
	c->ended(c->ctx, status);
}

static uint64_t ns_of(struct timeval t)
{
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_usec * 1000u;
}

void children__reap(void)
{
	struct child *c = first;

	while (c) {
		struct rusage used;
		int status;

		if (wait4(c->pid, &status, WNOHANG, &used) == c->pid) {
			c->cpu_ns = ns_of(used.ru_utime) + ns_of(used.ru_stime);
			has_ended(c, status);
			c = first; /* .ended may have begun or freed others */
		} else {
			c = c->next;
		}
	}
}

size_t children__nr(void)
{
	size_t nr = 0;

	for (const struct child *c = first; c; c = c->next)
		nr++;
	return nr;
}

void children__signal(int signal)
{
	for (const struct child *c = first; c; c = c->next)
		kill(c->pid, signal);
}

/*
 * CPU time in ns, with that of its own children which have ended; and memory. Pages of files are
 * left out: the kernel gives them up when it needs them, and rings and tables that are mapped count
 * as such, too, which are counted with the kernel's.
 */
static void usage_of(pid_t pid, uint64_t *cpu_ns, uint64_t *own_bytes)
{
	unsigned long long ticks[4] = {0}, pages = 0, of_files = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (f && fscanf(f,
			"%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu "
			"%llu",
			&ticks[0], &ticks[1], &ticks[2], &ticks[3]) == 4)
		*cpu_ns += (ticks[0] + ticks[1] + ticks[2] + ticks[3]) * 1000000000u /
			   (uint64_t)sysconf(_SC_CLK_TCK);
	if (f)
		fclose(f);
	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	f = fopen(path, "re");
	if (f && fscanf(f, "%*u %llu %llu", &pages, &of_files) == 2 && pages > of_files)
		*own_bytes += (pages - of_files) * (uint64_t)sysconf(_SC_PAGESIZE);
	if (f)
		fclose(f);
}

void children__also(const char *name, pid_t pid)
{
	also.name = name;
	also.pid = pid;
}

void children__each(void (*each)(void *ctx, const char *name, uint64_t cpu_ns, uint64_t bytes),
		    void *ctx)
{
	uint64_t cpu_ns = 0, bytes = 0;

	usage_of(getpid(), &cpu_ns, &bytes); /* has what ended children took */
	each(ctx, "kprof-daemon", cpu_ns, bytes);
	for (const struct child *c = first; c; c = c->next) {
		cpu_ns = bytes = 0;
		usage_of(c->pid, &cpu_ns, &bytes);
		each(ctx, c->name, cpu_ns, bytes);
	}
	if (!also.pid)
		return;
	cpu_ns = bytes = 0;
	usage_of(also.pid, &cpu_ns, &bytes);
	each(ctx, also.name, cpu_ns, bytes);
}

static void sum_up(void *ctx, const char *name, uint64_t cpu_ns, uint64_t bytes)
{
	uint64_t *sums = ctx;

	(void)name;
	sums[0] += cpu_ns;
	sums[1] += bytes;
}

void children__usage(uint64_t *cpu_ns, uint64_t *own_bytes)
{
	uint64_t sums[2] = {0};

	children__each(sum_up, sums);
	*cpu_ns = sums[0];
	*own_bytes = sums[1];
}

/* ---- the child's side ---- */

void link_send(int fd, cJSON *m)
{
	send_packet(fd, m, -1);
}

cJSON *link_take_file(int fd, int timeout_ms, bool *closed, int *file)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	cJSON *m = NULL;

	*file = -1;
	if (poll(&p, 1, timeout_ms) > 0 && take_packet(fd, &m, file) < 0)
		*closed = true;
	return m;
}

cJSON *link_take(int fd, int timeout_ms, bool *closed)
{
	int file;
	cJSON *m = link_take_file(fd, timeout_ms, closed, &file);

	if (file >= 0)
		close(file);
	return m;
}

static void send_log(void *ctx, const char *cause, const char *hint)
{
	const int *fd = ctx;
	cJSON *m = cJSON_CreateObject();

	cJSON_AddStringToObject(m, "log", cause);
	if (hint)
		cJSON_AddStringToObject(m, "hint", hint);
	link_send(*fd, m);
}

static void on_library_log(void *ctx, enum kprof_log_level level, const char *text,
			   const char *hint)
{
	if (level == KPROF_LOG_WARN)
		send_log(ctx, text, hint);
}

void link_log(int fd)
{
	static int to;

	to = fd;
	kprof_set_log(on_library_log, &to);
	message_redirect(send_log, &to);
}

void link_fail(int fd)
{
	const char *cause = kprof_error_cause();

	link_fail_for(fd, *cause ? cause : "it failed without saying why", kprof_error_hint());
}

void link_fail_for(int fd, const char *cause, const char *hint)
{
	cJSON *m = cJSON_CreateObject();

	cJSON_AddStringToObject(m, "state", "failed");
	cJSON_AddStringToObject(m, "error", cause);
	if (hint)
		cJSON_AddStringToObject(m, "hint", hint);
	link_send(fd, m);
}
