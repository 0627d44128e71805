/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the path of a cgroup says of the container in it, by the names that container runtimes give
 * to their cgroups: Docker, containerd, CRI-O and Podman use the container's id of 64 hexadecimal
 * digits, LXC and systemd-nspawn its name, Kubernetes "pod" and the pod's UUID.
 */
#ifndef KPROF_UTIL_CONTAINER_H
#define KPROF_UTIL_CONTAINER_H

#include <stdbool.h>

#define CONTAINER_ID_BYTES 256

/* The id of the innermost container, or its name. False: the cgroup is no container's. */
bool container_id(const char *cgroup, char id[CONTAINER_ID_BYTES]);
/* The UUID of the Kubernetes pod. False: the cgroup is no pod's. */
bool container_pod(const char *cgroup, char id[CONTAINER_ID_BYTES]);

#endif
