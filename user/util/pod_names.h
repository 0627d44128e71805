/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of a Kubernetes container without its API server: kubelet has a link for each container of
 * the node, /var/log/containers/POD_NAMESPACE_CONTAINER-ID.log. The names of the links are enough;
 * nothing is opened.
 */
#ifndef KPROF_UTIL_POD_NAMES_H
#define KPROF_UTIL_POD_NAMES_H

#include <stdbool.h>

#include "util/util.h"

#define POD_NAMES_FOLDER "/var/log/containers"
#define POD_NAMES_MOST 4096 /* entries that are looked at: kubelet's usual limit is 110 pods */

struct pod_names {
	char pod[254], space[64], container[64];
};

/* The containers of a node, once they were asked for. Zeroed: not yet. */
struct pod_names_list {
	struct vec items; /* pod_names.c */
	bool read;
};

/*
 * The names of a container, by its id of 64 digits; valid as long as the list is. NULL: its link is
 * not there, or not named as can be. The folder is read once, for the first container.
 */
const struct pod_names *pod_names_list__find(struct pod_names_list *list, const char *folder,
					     const char *id);
void pod_names_list__free(struct pod_names_list *list);

#endif
