// SPDX-License-Identifier: BSD-2-Clause
/* Files that come along on sockets are told of before they are taken, and nobody waits for them. */
#include "kprof/sent_files.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lingering.h"
#include "unit.h"

static int here, there;

static void open_pair(int type)
{
	int ends[2];

	CHECK(!socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends));
	here = ends[0];
	there = ends[1];
}

static ssize_t send_with(struct lingering *l, const char *text, int flags)
{
	return lingering_send(l, there, text, strlen(text), flags, NULL, 0);
}

static int next_descriptor(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

/* Bytes that were seen without files are taken without those that have come behind them. */
static void streams(void)
{
	struct lingering l = lingering_new();
	char text[16];

	open_pair(SOCK_STREAM);
	CHECK_EQ(kprof_sent_files_peek(here, text, sizeof(text)), -EAGAIN);
	CHECK_EQ(send(there, "abc", 3, 0), 3);
	CHECK_EQ(kprof_sent_files_peek(here, text, 2), 2);
	CHECK_EQ(kprof_sent_files_peek(here, text, sizeof(text)), 3);
	CHECK_EQ(send_with(&l, "d", 0), 1);
	lingering_leave(&l);
	CHECK_EQ(recv(here, text, 3, 0), 3);
	CHECK_EQ(kprof_sent_files_peek(here, text, 1), -EBADMSG);
	close(there);
	kprof_sent_files_close(here);
	lingering_gone(&l);
	open_pair(SOCK_STREAM);
	close(there);
	CHECK_EQ(kprof_sent_files_peek(here, text, 1), 0);
	kprof_sent_files_close(here);
	CHECK_EQ(kprof_sent_files_peek(here, text, 1), -EBADF);
}

/* recv() of what is behind such a byte would drop it. */
static void out_of_band(void)
{
	struct lingering l = lingering_new();
	char text[16];

	open_pair(SOCK_STREAM);
	if (send_with(&l, "x", MSG_OOB) < 0) {
		printf("# this kernel has none\n");
		CHECK_EQ(send_with(&l, "x", 0), 1);
	}
	CHECK_EQ(send(there, "line\n", 5, 0), 5);
	lingering_leave(&l);
	CHECK_EQ(kprof_sent_files_peek(here, text, sizeof(text)), -EBADMSG);
	kprof_sent_files_close(here);
	lingering_gone(&l);
	close(there);
}

static void packets(void)
{
	struct lingering l = lingering_new();
	int before;
	char byte;

	open_pair(SOCK_SEQPACKET);
	before = next_descriptor();
	CHECK_EQ(kprof_sent_files_peek(here, &byte, 1), -EAGAIN);
	CHECK_EQ(send(there, "abc", 3, 0), 3);
	CHECK_EQ(send_with(&l, "", 0), 0);
	lingering_leave(&l);
	CHECK_EQ(kprof_sent_files_peek(here, &byte, 1), 1);
	CHECK_EQ(recv(here, &byte, 1, 0), 1);
	CHECK_EQ(kprof_sent_files_peek(here, &byte, 1), -EBADMSG);
	CHECK_EQ(next_descriptor(), l.fd); /* none was taken */
	CHECK(l.fd < before);
	kprof_sent_files_close(here);
	lingering_gone(&l);
	close(there);
}

/* Who ends without having read all says nevertheless what it has said before. */
static void last_words(void)
{
	char byte;

	open_pair(SOCK_SEQPACKET);
	CHECK_EQ(send(here, "x", 1, 0), 1);
	CHECK_EQ(send(there, "last", 4, 0), 4);
	close(there);
	CHECK_EQ(kprof_sent_files_peek(here, &byte, 1), 1);
	CHECK_EQ(recv(here, &byte, 1, 0), 1);
	CHECK_EQ(byte, 'l');
	CHECK_EQ(kprof_sent_files_peek(here, &byte, 1), 0);
	close(here);
}

/* Behind an empty message, whose length is all that the kernel tells. */
static void closing(void)
{
	static const int types[] = {SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM};

	for (int i = 0; i < 3; i++) {
		struct lingering l = lingering_new();

		open_pair(types[i]);
		CHECK_EQ(send(there, "", 0, 0), 0);
		CHECK_EQ(send_with(&l, types[i] == SOCK_STREAM ? "x" : "", 0),
			 types[i] == SOCK_STREAM);
		lingering_leave(&l);
		kprof_sent_files_close(here);
		CHECK_EQ(next_descriptor(), l.fd);
		CHECK(send(there, "x", 1, MSG_NOSIGNAL) < 0);
		lingering_gone(&l);
		close(there);
	}
}

/* One datagram, not more. */
static void dropping(void)
{
	struct lingering l = lingering_new();
	char text[16];

	open_pair(SOCK_DGRAM);
	kprof_sent_files_drop(here); /* there is none: nothing waits for one */
	CHECK_EQ(send_with(&l, "", 0), 0);
	CHECK_EQ(send_with(&l, "with", 0), 4);
	CHECK_EQ(send(there, "without", 7, 0), 7);
	lingering_leave(&l);
	kprof_sent_files_drop(here);
	CHECK_EQ(kprof_sent_files_peek(here, text, sizeof(text)), -EBADMSG);
	kprof_sent_files_drop(here);
	CHECK_EQ(kprof_sent_files_peek(here, text, sizeof(text)), 7);
	CHECK(!memcmp(text, "without", 7));
	lingering_gone(&l);
	kprof_sent_files_close(here);
	close(there);
}

/* A socket that listens, with one on it that nobody has let in. */
static void leaving(void)
{
	struct lingering l = lingering_new();
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), kept, fd;

	snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "kprof-unit-%d", getpid());
	CHECK(!bind(listener, (struct sockaddr *)&at, sizeof(at)) && !listen(listener, 4));
	there = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(!connect(there, (struct sockaddr *)&at, sizeof(at)));
	CHECK_EQ(send_with(&l, "x", 0), 1);
	lingering_leave(&l);
	kept = dup(listener);
	kprof_sent_files_leave(listener);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(!connect(fd, (struct sockaddr *)&at, sizeof(at)));
	kprof_sent_files_leave(kept); /* nobody else has it any more */
	CHECK(send(there, "x", 1, MSG_NOSIGNAL) < 0);
	lingering_gone(&l);
	close(there);
	close(fd);
}

/* On any socket, and on connections to one that listens. */
static void refusing(void)
{
	static const int types[] = {SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM};
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	kprof_sent_files_refuse(-1); /* which is no error */
	if (!lingering_refused())
		return;
	for (int i = 0; i < 3; i++) {
		open_pair(types[i]);
		kprof_sent_files_refuse(here);
		lingering_check_refused(there, NULL, 0);
		close(here);
		close(there);
	}
	snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "kprof-unit-%d", getpid());
	kprof_sent_files_refuse(listener);
	CHECK(!bind(listener, (struct sockaddr *)&at, sizeof(at)) && !listen(listener, 4));
	there = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(!connect(there, (struct sockaddr *)&at, sizeof(at)));
	lingering_check_refused(there, NULL, 0); /* nobody has let it in yet */
	here = accept(listener, NULL, NULL);
	lingering_check_refused(there, NULL, 0);
	close(here);
	close(there);
	close(listener);
}

/*
 * Whoever leaves a socket is killed while it does: nothing stays of it. A process without a parent
 * becomes a child of this one.
 */
static void killed_meanwhile(void)
{
	CHECK(!prctl(PR_SET_CHILD_SUBREAPER, 1));
	for (unsigned int i = 0; i < 600; i++) {
		const struct timespec moment = {.tv_nsec = i * 1000};
		pid_t pid, left;

		open_pair(SOCK_STREAM);
		pid = fork();
		if (!pid) {
			kprof_sent_files_leave(here);
			_exit(0);
		}
		nanosleep(&moment, NULL);
		kill(pid, SIGKILL);
		CHECK_EQ(waitpid(pid, NULL, 0), pid);
		for (int tries = 0; (left = waitpid(-1, NULL, WNOHANG)) == 0 && tries < 1000;
		     tries++)
			usleep(10000);
		close(here);
		close(there);
		CHECK(left != 0);
		if (!left)
			break;
	}
	CHECK(!prctl(PR_SET_CHILD_SUBREAPER, 0));
}

UNIT_MAIN(TEST(streams), TEST(out_of_band), TEST(packets), TEST(last_words), TEST(closing),
	  TEST(dropping), TEST(leaving), TEST(refusing), TEST(killed_meanwhile))
