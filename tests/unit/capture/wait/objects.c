// SPDX-License-Identifier: BSD-2-Clause
/* user/capture/wait/objects.c: what a descriptor is, by the text in /proc, and of this process. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "capture/wait/priv.h"
#include "util/util.h"

static void texts(void)
{
	static const struct {
		const char *link, *kind;
	} known[] = {
		{"pipe:[123]", "pipe"},
		{"socket:[9]", "socket"},
		{"anon_inode:[eventfd]", "eventfd"},
		{"anon_inode:inotify", "inotify"},
		{"anon_inode:", ""},
		{"anon_inode:[", ""},
		{"/dev/pts/3", "tty"},
		{"/dev/nvidia0", "/dev/nvidia0"},
		{"/dev/shm/x", "file"},
		{"/data/a file (deleted)", "file"},
		{"", ""},
		{"net:[4026531840]", ""},
	};
	char kind[WAIT_OBJECT_BYTES], link[256];

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		wait_object_kind(known[i].link, kind);
		CHECK_STR(kind, known[i].kind);
	}
	/* longer than there is room */
	snprintf(link, sizeof(link), "/dev/%0200d", 1);
	wait_object_kind(link, kind);
	CHECK_EQ(strlen(kind), WAIT_OBJECT_BYTES - 1);
	snprintf(link, sizeof(link), "anon_inode:[%0200d]", 1);
	wait_object_kind(link, kind);
	CHECK_EQ(strlen(kind), WAIT_OBJECT_BYTES - 1);
}

static void descriptors(void)
{
	static struct wait_object objects[WAIT_OBJECTS];
	uint64_t now_ns = clock_mono_ns();
	uint32_t self = (uint32_t)getpid();
	int fds[2], event = eventfd(0, 0), epoll = epoll_create1(0);
	int sock = socket(AF_UNIX, SOCK_STREAM, 0), file = open("/proc/self/exe", O_RDONLY);

	CHECK_EQ(pipe(fds), 0);
	CHECK_STR(wait_object(objects, self, (uint32_t)fds[0], now_ns), "pipe");
	CHECK_STR(wait_object(objects, self, (uint32_t)event, now_ns), "eventfd");
	CHECK_STR(wait_object(objects, self, (uint32_t)epoll, now_ns), "eventpoll");
	CHECK_STR(wait_object(objects, self, (uint32_t)sock, now_ns), "socket");
	CHECK_STR(wait_object(objects, self, (uint32_t)file, now_ns), "file");
	CHECK_STR(wait_object(objects, self, 0x7fffffff, now_ns), "");
	CHECK_STR(wait_object(objects, 0x7fffffff, 0, now_ns), "");
	/* another file in its place is noticed after a while */
	CHECK(dup2(event, fds[0]) == fds[0]);
	CHECK_STR(wait_object(objects, self, (uint32_t)fds[0], now_ns + NSEC_PER_SEC), "eventfd");
	close(fds[0]);
	close(fds[1]);
	close(event);
	close(epoll);
	close(sock);
	close(file);
}

/* The longer it stays the same, the less often it is looked at, up to 0.4 s. */
static void looks_less_often(void)
{
	static struct wait_object objects[WAIT_OBJECTS];
	uint64_t now_ns = clock_mono_ns(), last_ns;
	uint32_t self = (uint32_t)getpid();
	int fds[2], event = eventfd(0, 0);

	CHECK_EQ(pipe(fds), 0);
	for (int i = 0; i < 40; i++, now_ns += 50 * NSEC_PER_MSEC)
		CHECK_STR(wait_object(objects, self, (uint32_t)fds[0], now_ns), "pipe");
	CHECK(dup2(event, fds[0]) == fds[0]);
	last_ns = now_ns;
	while (!strcmp(wait_object(objects, self, (uint32_t)fds[0], now_ns), "pipe"))
		now_ns += 50 * NSEC_PER_MSEC;
	CHECK(now_ns - last_ns > 100 * NSEC_PER_MSEC && now_ns - last_ns <= 400 * NSEC_PER_MSEC);
	/* it has changed, and may do so again soon */
	CHECK(dup2(fds[1], fds[0]) == fds[0]);
	CHECK_STR(wait_object(objects, self, (uint32_t)fds[0], now_ns + 99 * NSEC_PER_MSEC),
		  "eventfd");
	CHECK_STR(wait_object(objects, self, (uint32_t)fds[0], now_ns + 100 * NSEC_PER_MSEC),
		  "pipe");
	close(fds[0]);
	close(fds[1]);
	close(event);
}

UNIT_MAIN(TEST(texts), TEST(descriptors), TEST(looks_less_often))
