// SPDX-License-Identifier: BSD-2-Clause
/*
 * Files that are sent to the daemon between its look at what waits and its read, or that nobody has
 * read when it ends: they are not taken, and nobody waits until they are closed.
 */
#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "cmd/daemon/daemon.h"
#include "cmd/daemon/web/web.h"
#include "lingering.h"

static struct loop *loop;
static struct lingering l;
static char folder[] = "/tmp/kprof-unit-files-XXXXXX", path[64];
static int sender, sends_after; /* so many looks */
static int nr_gone, nr_messages, nr_ended, theirs;

static void send_file(void)
{
	CHECK_EQ(lingering_send(&l, sender, "x", 1, 0, NULL, 0), 1);
	lingering_leave(&l);
}

/* ---- in the place of the C library's ---- */

ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
	ssize_t n = syscall(SYS_recvmsg, fd, m, flags);

	if (flags & MSG_PEEK && sends_after && !--sends_after)
		send_file();
	return n;
}

/* The other end is here, too. */
int socketpair(int domain, int type, int protocol, int ends[2])
{
	int err = (int)syscall(SYS_socketpair, domain, type, protocol, ends);

	theirs = dup(ends[1]);
	return err;
}

/* ---- tests ---- */

static int next_descriptor(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

static void asked(void *ctx, struct client *c, const struct cJSON *question)
{
	CHECK(false);
}

static void gone(void *ctx, struct client *c)
{
	nr_gone++;
}

static bool is_privileged(void *ctx, uid_t uid, const gid_t *groups, size_t nr)
{
	return false;
}

static struct clients *clients_begin(void)
{
	struct clients_opts opts = {.loop = loop,
				    .path = path,
				    .asked = asked,
				    .gone = gone,
				    .is_privileged = is_privileged};
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	struct clients *c = NULL;

	CHECK_EQ(clients__new(&opts, &c), 0);
	strcpy(to.sun_path, path);
	sender = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(!connect(sender, (struct sockaddr *)&to, sizeof(to)));
	return c;
}

static void of_clients(void)
{
	struct clients *c = clients_begin();
	char byte;

	l = lingering_new();
	loop__run_once(loop, 0); /* lets it in */
	CHECK_EQ(send(sender, "{\"do\"", 5, 0), 5);
	sends_after = 1;
	loop__run_once(loop, 0);
	CHECK_EQ(sends_after, 0);
	CHECK_EQ(nr_gone, 0); /* by what had come before */
	loop__run_once(loop, 0);
	CHECK_EQ(nr_gone, 1);
	CHECK(recv(sender, &byte, 1, 0) <= 0);
	lingering_gone(&l);
	close(sender);
	clients__free(c);
}

/* systemd was told to keep the socket, and has not. */
static void of_clients_of_the_next_daemon(void)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct clients *c;
	char text[256];

	snprintf(at.sun_path, sizeof(at.sun_path), "%s/notify", folder);
	CHECK(!bind(manager, (struct sockaddr *)&at, sizeof(at)));
	setenv("NOTIFY_SOCKET", at.sun_path, 1);
	c = clients_begin();
	unsetenv("NOTIFY_SOCKET");
	CHECK(recv(manager, text, sizeof(text), MSG_DONTWAIT) > 0); /* without room for it */
	close(manager);
	l = lingering_new();
	send_file();
	clients__free(c);
	CHECK(!access(path, F_OK)); /* the next one's */
	CHECK(send(sender, "x", 1, MSG_NOSIGNAL) < 0);
	lingering_gone(&l);
	close(sender);
}

static void message(void *ctx, const struct cJSON *m)
{
	nr_messages++;
}

static void ended(void *ctx, int status)
{
	nr_ended++;
}

static _Noreturn int run(int fd, void *arg)
{
	for (;;)
		pause();
}

static void of_children(void)
{
	struct child c = {.name = "kprof-unit", .message = message, .ended = ended};
	siginfo_t info;
	int before;

	CHECK_EQ(child__start(loop, &c, run, NULL), 0);
	sender = theirs;
	l = lingering_new();
	before = next_descriptor();
	CHECK_EQ(send(sender, "{}", 2, 0), 2);
	sends_after = 2; /* when nothing more is there */
	loop__run_once(loop, 0);
	CHECK_EQ(sends_after, 0);
	CHECK_EQ(nr_messages, 1);
	loop__run_once(loop, 0);
	CHECK_EQ(next_descriptor(), l.fd); /* which this one has no more */
	CHECK(l.fd < before);
	children__signal(SIGKILL);
	CHECK(!waitid(P_PID, (id_t)c.pid, &info, WEXITED | WNOWAIT));
	children__reap();
	CHECK_EQ(nr_ended, 1);
	CHECK_EQ(nr_messages, 1);
	lingering_gone(&l);
	close(sender);
}

static void of_the_http_child(void)
{
	struct web_question q;
	int ends[2];

	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
	close(theirs);
	sender = ends[1];
	l = lingering_new();
	sends_after = 1;
	CHECK_EQ(web_take(ends[0], &q), 0);
	CHECK_EQ(sends_after, 0);
	CHECK_EQ(web_take(ends[0], &q), -EBADMSG);
	CHECK_EQ(next_descriptor(), l.fd);
	web_stop(&(struct web){.fd = ends[0]});
	lingering_gone(&l);
	close(sender);
}

static void refused(void)
{
	struct child child = {.name = "kprof-unit", .message = message, .ended = ended};
	struct clients *c;

	if (!lingering_refused())
		return;
	c = clients_begin();
	lingering_check_refused(sender, NULL, 0);
	close(sender);
	clients__free(c);
	nr_ended = 0;
	CHECK_EQ(child__start(loop, &child, run, NULL), 0);
	lingering_check_refused(theirs, NULL, 0);
	close(theirs);
	children__signal(SIGKILL);
	while (!nr_ended)
		children__reap();
}

static void begin(void)
{
	loop = loop__new();
	CHECK(loop && mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/socket", folder);
}

static void end(void)
{
	static const char *const names[] = {"notify", "socket", "lock"};

	loop__free(loop);
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		CHECK(!unlink(path) || i == 1);
	}
	CHECK(!rmdir(folder));
}

UNIT_MAIN(TEST(begin), TEST(of_clients), TEST(of_clients_of_the_next_daemon), TEST(of_children),
	  TEST(of_the_http_child), TEST(refused), TEST(end))
