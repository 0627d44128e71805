/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Links of attached probes, in sets that are closed together: a probe stays in place for as long as
 * its link is open.
 */
#ifndef KPROF_CAPTURE_LINKS_H
#define KPROF_CAPTURE_LINKS_H

#include <stddef.h>

struct bpf_link;

struct attach_link {
	struct bpf_link *libbpf; /* a single uprobe's link; NULL: fd alone is the link */
	int fd;
	size_t nr_probes;
	const void *file; /* whose functions and return sites it is for; NULL: another */
};

/* A growing set of links, closed together. Zero-initialized is empty. */
struct attach_links {
	struct attach_link *links;
	size_t nr, cap;
};

/* Adds a link, which the set now owns. Closes the link when there is no memory. */
int attach_links_add(struct attach_links *links, struct attach_link link);
/* The links from index `from` on are those of this file's functions and return sites. */
void attach_links_mark(struct attach_links *links, size_t from, const void *file);
/* Moves the links of this file to another set. */
void attach_links_take(struct attach_links *to, struct attach_links *from, const void *file);
/* Moves all links of one set to another. */
void attach_links_move(struct attach_links *to, struct attach_links *from);
/*
 * Closes the latest links of a set, in parallel, because closing each waits for the kernel. The
 * first nr stay.
 */
void attach_links_cut(struct attach_links *links, size_t nr);
/* Closes all links of a set, which is then empty. */
void attach_links_close(struct attach_links *links);

#endif
