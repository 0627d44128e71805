/* SPDX-License-Identifier: BSD-2-Clause */
/* What a ring looks like inside: for ring.c, and for tests that make rings of plain memory. */
#ifndef KPROF_CAPTURE_RING_PRIV_H
#define KPROF_CAPTURE_RING_PRIV_H

#include <stddef.h>
#include <stdint.h>

#include "kprof/wire.h"

/*
 * One ring as the kernel maps it (kernel/bpf/ringbuf.c): consumer page, producer page, data twice.
 */
struct ring {
	uint64_t *consumer;
	const uint64_t *producer;
	const uint8_t *data;
	uint64_t bytes;         /* of the data */
	uint64_t read_pos;      /* our position; published to *consumer in steps */
	uint64_t end_pos;       /* producer's position as last read */
	uint64_t clean_ns;      /* all records older than this were finished when we looked */
	uint64_t busy_since_ns; /* 0: not held up */
	const struct kprof_wire_hdr *head; /* next finished record; NULL: none */
	uint32_t head_bytes;               /* in the ring, its header and padding included */
	int fd;
};

struct rings {
	int epoll_fd;
	uint32_t nr;
	size_t page;
	struct ring ring[];
};

#endif
