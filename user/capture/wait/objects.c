// SPDX-License-Identifier: BSD-2-Clause
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "capture/wait/priv.h"
#include "util/util.h"

/*
 * Most programs keep their descriptors for longer. One that is still the same is looked at again
 * after twice as long. For at most that long, one that was closed and is used for something else is
 * taken for what it was.
 */
#define AGAIN_NS (100 * NSEC_PER_MSEC)
#define MOST_AGAIN_NS (4 * AGAIN_NS)

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

void wait_object_kind(const char *link, char kind[WAIT_OBJECT_BYTES])
{
	const char *inside = link + strlen("anon_inode:");
	int len;

	kind[0] = '\0';
	if (begins(link, "pipe:")) {
		strcpy(kind, "pipe");
	} else if (begins(link, "socket:")) {
		strcpy(kind, "socket");
	} else if (begins(link, "anon_inode:")) {
		/* "anon_inode:[eventfd]", and without brackets in older kernels */
		inside += *inside == '[';
		len = (int)strcspn(inside, "]");
		snprintf(kind, WAIT_OBJECT_BYTES, "%.*s", len, inside);
	} else if (begins(link, "/dev/pts/") || begins(link, "/dev/tty") ||
		   !strcmp(link, "/dev/console")) {
		strcpy(kind, "tty");
	} else if (begins(link, "/dev/") && !begins(link, "/dev/shm/")) {
		snprintf(kind, WAIT_OBJECT_BYTES, "%s", link);
	} else if (link[0] == '/') {
		strcpy(kind, "file");
	}
}

/* Only the name is read: nothing is asked of the file, or of its file system. */
static void look(uint32_t pid, uint32_t fd, char kind[WAIT_OBJECT_BYTES])
{
	char path[64], link[256];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%u/fd/%u", pid, fd);
	n = readlink(path, link, sizeof(link) - 1);
	link[n > 0 ? n : 0] = '\0';
	wait_object_kind(link, kind);
}

const char *wait_object(struct wait_object objects[WAIT_OBJECTS], uint32_t pid, uint32_t fd,
			uint64_t now_ns)
{
	struct wait_object *o = &objects[hash64((uint64_t)pid << 32 | fd) & (WAIT_OBJECTS - 1)];

	bool known = o->pid == pid && o->fd == fd;
	char kind[WAIT_OBJECT_BYTES];

	if (known && now_ns - o->looked_ns < o->again_ns)
		return o->kind;
	look(pid, fd, kind);
	if (!known || strcmp(kind, o->kind))
		o->again_ns = AGAIN_NS;
	else if (o->again_ns < MOST_AGAIN_NS)
		o->again_ns *= 2;
	o->pid = pid;
	o->fd = fd;
	o->looked_ns = now_ns;
	memcpy(o->kind, kind, sizeof(kind));
	return o->kind;
}
