/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of waits: waits.c records them; objects.c finds what the file is that a thread waits
 * for.
 */
#ifndef KPROF_CAPTURE_WAITS_PRIV_H
#define KPROF_CAPTURE_WAITS_PRIV_H

#include <stdint.h>

#define WAIT_OBJECT_BYTES 64

#define WAIT_OBJECTS 1024 /* descriptors that are remembered, a power of two */

/* What was behind a descriptor when it was last looked at. */
struct wait_object {
	uint64_t looked_ns, again_ns; /* when, and how long it is taken to stay like that */
	uint32_t pid, fd;
	char kind[WAIT_OBJECT_BYTES];
};

/*
 * What a descriptor of the process is: "pipe", "socket", "file", "tty", "eventfd" …, or the path of
 * a device. "": not known. Looks again when the last look is a while ago.
 */
const char *wait_object(struct wait_object objects[WAIT_OBJECTS], uint32_t pid, uint32_t fd,
			uint64_t now_ns);
/* The same from the text that /proc has for the descriptor. */
void wait_object_kind(const char *link, char kind[WAIT_OBJECT_BYTES]);

#endif
