/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is attached, in sets that are closed together: a probe stands for as long as its link is
 * open.
 */
#ifndef KPROF_CAPTURE_LINKS_H
#define KPROF_CAPTURE_LINKS_H

#include <stddef.h>

struct bpf_link;

struct attach_link {
	struct bpf_link *libbpf; /* of a single uprobe; NULL: the descriptor is all there is */
	int fd;
};
void attach_link_close(struct attach_link link);

/* A growing set of links, closed together. Zero-initialized is empty. */
struct attach_links {
	struct attach_link *links;
	size_t nr, cap;
};

/* Takes the link over; where there is no memory, closes it. */
int attach_links_add(struct attach_links *links, struct attach_link link);
/* Puts the links of one set into another. */
void attach_links_move(struct attach_links *to, struct attach_links *from);
/* Takes back the latest links of a set: the first nr stay. */
void attach_links_cut(struct attach_links *links, size_t nr);
/*
 * Closes links of several sets at once: each waits for the kernel, so they are closed in parallel.
 */
void attach_links_close(struct attach_links *const *sets, size_t nr);

#endif
