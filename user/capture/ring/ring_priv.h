/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of a ring: for ring.c, and for tests that build rings in plain memory. */
#ifndef KPROF_CAPTURE_RING_PRIV_H
#define KPROF_CAPTURE_RING_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kprof/wire.h"

/*
 * One ring, as the kernel maps it (kernel/bpf/ringbuf.c): a consumer page, a producer page, and the
 * data twice in a row.
 */
struct ring {
	uint64_t *consumer;
	const uint64_t *producer;
	const uint8_t *data;
	uint64_t bytes;         /* size of the data */
	uint64_t read_pos;      /* the reader's position; written to *consumer in steps */
	uint64_t end_pos;       /* producer's position as last read */
	uint64_t clean_ns;      /* all records older than this were finished at the last look */
	uint64_t busy_since_ns; /* since when the next record was seen unfinished; 0: it is not */
	const struct kprof_wire_hdr *head; /* next finished record; NULL: none */
	/* size of head in the ring, with ring header and padding */
	uint32_t head_bytes;
	uint64_t damaged;      /* records that were not whole */
	size_t counters_bytes; /* behind each record of a hit */
	int fd;
};

struct rings {
	int epoll_fd;
	uint32_t nr;
	size_t page;
	uint64_t reached_ns; /* see rings__reached() */
	struct ring ring[];
};

/* whole.c: does the record hold what its kind says? bytes: as many as the ring has of it. */
bool ring_record_whole(const struct kprof_wire_hdr *h, size_t bytes);
/* The same, with so many bytes of counters behind it if it is the record of a hit. */
bool ring_counted_whole(const struct kprof_wire_hdr *h, size_t bytes, size_t counters_bytes);

#endif
