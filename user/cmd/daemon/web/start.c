// SPDX-License-Identifier: BSD-2-Clause
/* web_start(): what may be served where, and how the child loses its rights. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/daemon/web/server.h"
#include "kprof.h"
#include "kprof/sent_files.h"

#define PERFETTO "https://ui.perfetto.dev"
#define MOST_FILES 1024
#define MOST_MEMORY_BYTES (64ul << 20) /* more than the child had at its begin */
#define STATM_PAGES 6                  /* of /proc/self/statm: data, the one that is limited */

/* "https://HOST[:PORT]" */
static bool is_origin(const char *text)
{
	const char *host = !strncmp(text, "https://", 8)  ? text + 8
			   : !strncmp(text, "http://", 7) ? text + 7
							  : "";
	size_t bytes = strspn(host, "0123456789abcdefghijklmnopqrstuvwxyz.-:[]");

	return bytes && !host[bytes] && bytes < 256;
}

/* Whether what is asked for may be served on these addresses. */
static int check(const struct web_opts *opts, const struct listener *listeners, size_t nr,
		 struct web_error *why)
{
	bool outside = false;

	for (size_t i = 0; i < nr; i++)
		outside |= !listeners[i].loopback;
	if (opts->token_file)
		return 0;
	if (outside && !opts->metrics_anyone)
		return listen_error(
			why, -EPERM,
			"name a file with a token, or say that anyone may read /metrics",
			"other machines could read what this one serves");
	if (opts->page && !(opts->page_anyone && !outside))
		return listen_error(why, -EPERM,
				    outside ? "name a file with a token"
					    : "name a file with a token, or say that all users of "
					      "this machine may see the page",
				    "the page shows what captures reveal, and needs a token");
	return 0;
}

/* Keeps these descriptors, which are in no order, and 0 to 2, which lead nowhere then. */
static bool close_others(const int *keep, size_t nr)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), from = 3;

	if (null < 0)
		return false;
	for (int fd = 0; fd <= 2; fd++)
		dup2(null, fd);
	for (;;) {
		int next = -1;

		for (size_t i = 0; i < nr; i++)
			if (keep[i] >= from && (next < 0 || keep[i] < next))
				next = keep[i];
		if (next < 0)
			return !close_range((unsigned int)from, ~0u, 0);
		if (next > from && close_range((unsigned int)from, (unsigned int)next - 1, 0))
			return false;
		from = next + 1;
	}
}

/* Not of the address space: what the parent has mapped is part of that. */
static void limit_memory(void)
{
	unsigned long pages = 0, bytes;
	char text[256] = "", *at = text;
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		if (read(fd, text, sizeof(text) - 1) < 0)
			*text = '\0';
		close(fd);
	}
	for (int i = 0; i < STATM_PAGES; i++)
		pages = strtoul(at, &at, 10);
	bytes = pages * (unsigned long)getpagesize() + MOST_MEMORY_BYTES;
	setrlimit(RLIMIT_DATA, &(struct rlimit){bytes, bytes});
}

static void plain_signals(void)
{
	sigset_t none;

	for (int i = 1; i < SIGRTMIN; i++)
		if (i != SIGKILL && i != SIGSTOP)
			signal(i, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	/* The daemon's to decide on: it ends, and the child with it. */
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static _Noreturn void be_child(struct server_opts *opts, pid_t parent)
{
	const struct rlimit files = {MOST_FILES, MOST_FILES};
	int keep[WEB_LISTEN + 1] = {opts->fd};
	struct server *server;

	plain_signals();
	prctl(PR_SET_NAME, "kprof-web");
	for (size_t i = 0; i < opts->nr; i++)
		keep[i + 1] = opts->listeners[i].fd;
	if (!close_others(keep, opts->nr + 1))
		_exit(1);
	setrlimit(RLIMIT_NOFILE, &files);
	limit_memory();
	server = server__new(opts);
	if (!server || kprof_only_serve() || getppid() != parent)
		_exit(1);
	/* The first byte says that all is well. */
	if (send(opts->fd, "", 1, MSG_NOSIGNAL) != 1)
		_exit(1);
	server__run(server);
	_exit(0);
}

static bool is_ready(int fd)
{
	char byte;
	ssize_t n;

	do
		n = recv(fd, &byte, 1, 0);
	while (n < 0 && errno == EINTR);
	return n == 1;
}

/* One of the standard streams' numbers would be lost in the child. */
static int pair(int fds[2])
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return -errno;
	kprof_sent_files_refuse(fds[0]);
	fds[0] = listen_above(fds[0]);
	fds[1] = listen_above(fds[1]);
	return 0;
}

static int start(struct server_opts *opts, struct web *out, struct web_error *why)
{
	pid_t parent = getpid();
	int fds[2], err = pair(fds);

	if (err)
		return listen_error(why, err, NULL, "no socket pair: %s", strerror(-err));
	opts->fd = fds[1];
	out->pid = fork();
	if (!out->pid)
		be_child(opts, parent);
	close(fds[1]);
	out->fd = fds[0];
	if (out->pid > 0 && is_ready(out->fd))
		return 0;
	web_stop(out);
	return listen_error(why, -EIO, NULL,
			    "the process that serves HTTP cannot give up its rights");
}

int web_start(const struct web_opts *opts, struct web *out, struct web_error *why)
{
	struct listener listeners[WEB_LISTEN];
	char token[LISTEN_TOKEN_BYTES + 1] = "";
	struct server_opts server = {.web = opts,
				     .listeners = listeners,
				     .token = token,
				     .perfetto = opts->perfetto ? opts->perfetto : PERFETTO};
	int err;

	*out = (struct web){.fd = -1};
	memset(why, 0, sizeof(*why));
	if (!is_origin(server.perfetto))
		return listen_error(why, -EINVAL, "for example " PERFETTO, "%s is no origin",
				    server.perfetto);
	if (opts->nr_listen > WEB_LISTEN || opts->nr_hosts > WEB_HOSTS)
		return listen_error(why, -E2BIG, NULL, "more than %d addresses or %d names",
				    WEB_LISTEN, WEB_HOSTS);
	err = listen_all(opts, listeners, &server.nr, why);
	if (err)
		return err;
	err = check(opts, listeners, server.nr, why);
	if (!err && opts->token_file)
		err = listen_token(opts->token_file, token, why);
	if (!err)
		err = start(&server, out, why);
	for (size_t i = 0; i < server.nr; i++) {
		out->ports[i] = listeners[i].port;
		close(listeners[i].fd);
	}
	out->nr_ports = server.nr;
	explicit_bzero(token, sizeof(token));
	return err;
}

void web_stop(struct web *web)
{
	if (web->fd >= 0)
		kprof_sent_files_close(web->fd);
	web->fd = -1;
	if (web->pid <= 0)
		return;
	kill(web->pid, SIGKILL);
	while (waitpid(web->pid, NULL, 0) < 0 && errno == EINTR)
		;
	web->pid = 0;
}
