// SPDX-License-Identifier: BSD-2-Clause
/* Packets between the daemon and its child, each side against what the other may send. */
#include "cmd/daemon/web/message.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "unit.h"

static int here, there;

static void open_pair(void)
{
	int fds[2];

	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds));
	here = fds[0];
	there = fds[1];
}

static void close_pair(void)
{
	close(here);
	close(there);
}

static size_t open_files(void)
{
	size_t nr = 0;

	for (int fd = 0; fd < 64; fd++)
		nr += lseek(fd, 0, SEEK_CUR) >= 0 || errno != EBADF;
	return nr;
}

static void questions(void)
{
	struct web_question q = {7, WEB_DUMP, "slow-step.1"}, got;

	open_pair();
	CHECK_EQ(web_take(here, &got), 0);
	CHECK_EQ(message_ask(there, &q), 0);
	CHECK_EQ(web_take(here, &got), 1);
	CHECK(got.id == 7 && got.get == WEB_DUMP);
	CHECK_STR(got.name, "slow-step.1");
	for (int get = 0; get < WEB_NR_GET; get++) {
		q = (struct web_question){1, (enum web_get)get, "x"};
		CHECK_EQ(message_ask(there, &q), 0);
		CHECK_EQ(web_take(here, &got), 1);
		CHECK_EQ(got.get, get);
	}
	close(there);
	CHECK_EQ(web_take(here, &got), -EPIPE);
	close(here);
}

/* A child that was taken over says anything. */
static void no_questions(void)
{
	static const char *const wrong[] = {
		"",
		"x",
		"[]",
		"null",
		"{}",
		"{\"id\":1}",
		"{\"get\":\"status\"}",
		"{\"id\":0,\"get\":\"status\"}",
		"{\"id\":-1,\"get\":\"status\"}",
		"{\"id\":1.5,\"get\":\"status\"}",
		"{\"id\":4294967296,\"get\":\"status\"}",
		"{\"id\":1e999,\"get\":\"status\"}",
		"{\"id\":\"1\",\"get\":\"status\"}",
		"{\"id\":1,\"get\":\"shadow\"}",
		"{\"id\":1,\"get\":\"dump\"}",
		"{\"id\":1,\"get\":\"dump\",\"name\":\"\"}",
		"{\"id\":1,\"get\":\"dump\",\"name\":\"..\"}",
		"{\"id\":1,\"get\":\"dump\",\"name\":\"a/b\"}",
		"{\"id\":1,\"get\":\"trace\",\"name\":5}",
		"{\"id\":1,\"get\":\"trace\",\"name\":\"a\\u002fb\"}",
		"{\"id\":1,\"get\":\"trace\",\"name\":\"a\\u00e4\"}",
	};
	char packet[2 * MESSAGE_BYTES];
	struct web_question q;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		CHECK(!web_question_read(wrong[i], &q));
	open_pair();
	memset(packet, ' ', sizeof(packet));
	memcpy(packet, "{\"id\":1,\"get\":\"status\"}", 23);
	CHECK(send(there, packet, sizeof(packet), 0) == sizeof(packet));
	CHECK_EQ(web_take(here, &q), -EBADMSG);
	packet[24] = '\0';
	CHECK(send(there, packet, 100, 0) == 100);
	CHECK_EQ(web_take(here, &q), -EBADMSG);
	close_pair();
}

static void answers(void)
{
	struct web_question q = {9, WEB_TRACE, "a"};
	struct web_reply r;
	char text[8] = "";
	size_t before;
	int file;

	open_pair();
	before = open_files();
	CHECK_EQ(message_take_reply(there, &r), 0);
	CHECK_EQ(web_answer_text(here, &q, "hello", 5), 0);
	CHECK_EQ(message_take_reply(there, &r), 1);
	CHECK(r.id == 9 && r.code == 200 && !*r.suffix);
	CHECK(pread(r.fd, text, sizeof(text), 0) == 5);
	CHECK_STR(text, "hello");
	close(r.fd);
	file = memfd_create("x", 0);
	CHECK_EQ(web_answer(here, &q, file, ".pftrace.gz"), 0);
	CHECK_EQ(message_take_reply(there, &r), 1);
	CHECK_STR(r.suffix, ".pftrace.gz");
	close(r.fd);
	CHECK_EQ(web_answer(here, &q, file, ".x\"; evil"), 0); /* is left out */
	CHECK_EQ(message_take_reply(there, &r), 1);
	CHECK_STR(r.suffix, "");
	close(r.fd);
	close(file);
	CHECK_EQ(web_refuse(here, &q, 404, "none of that name"), 0);
	CHECK_EQ(message_take_reply(there, &r), 1);
	CHECK(r.code == 404 && r.fd == -1);
	CHECK_STR(r.error, "none of that name");
	CHECK_EQ(web_refuse(here, &q, 200, "not now"), 0); /* a refusal is never well */
	CHECK_EQ(message_take_reply(there, &r), 1);
	CHECK_EQ(r.code, 503);
	CHECK_EQ(open_files(), before);
	close(here);
	CHECK_EQ(message_take_reply(there, &r), -EPIPE);
	close(there);
}

/* Descriptors that nobody asked for do not stay open. */
static void descriptors(void)
{
	union {
		char bytes[CMSG_SPACE(3 * sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	char text[] = "{\"id\":1,\"get\":\"status\",\"ok\":true}";
	struct iovec part = {text, sizeof(text) - 1};
	struct msghdr m = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	struct web_question q;
	struct web_reply r;
	int fds[3] = {0, 1, 2};
	size_t before;

	open_pair();
	before = open_files();
	CMSG_FIRSTHDR(&m)->cmsg_level = SOL_SOCKET;
	CMSG_FIRSTHDR(&m)->cmsg_type = SCM_RIGHTS;
	CMSG_FIRSTHDR(&m)->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), fds, sizeof(fds));
	CHECK(sendmsg(there, &m, 0) > 0);
	CHECK_EQ(web_take(here, &q), -EBADMSG); /* the child has none to give */
	CHECK_EQ(open_files(), before);
	CHECK_EQ(web_take(here, &q), -EBADMSG); /* nor are they taken */
	CHECK_EQ(recv(here, text, sizeof(text), 0), (ssize_t)part.iov_len);
	CHECK(sendmsg(there, &m, 0) > 0);
	CHECK_EQ(message_take_reply(here, &r), 1);
	CHECK_EQ(open_files(), before + 1);
	close(r.fd);
	part.iov_len = 3; /* no answer */
	CHECK(sendmsg(there, &m, 0) > 0);
	CHECK_EQ(message_take_reply(here, &r), -EBADMSG);
	CHECK_EQ(open_files(), before);
	close_pair();
}

/* A child that does not read costs the daemon nothing, and never makes it wait. */
static void nobody_reads(void)
{
	struct web_question q = {1, WEB_STATUS, ""};
	int err = 0, nr = 0;

	open_pair();
	while (!err && nr++ < 100000)
		err = web_answer_text(here, &q, "x", 1);
	CHECK(err == -EAGAIN || err == -ETOOMANYREFS);
	close_pair();
}

UNIT_MAIN(TEST(questions), TEST(no_questions), TEST(answers), TEST(descriptors), TEST(nobody_reads))
