// SPDX-License-Identifier: BSD-2-Clause
#include "util/container.h"

#include <string.h>

#include "unit.h"

#define A16 "0123456789abcdef"
#define ID A16 A16 A16 A16
#define OTHER "fedcba9876543210" A16 A16 A16
#define POD "12345678-9abc-def0-1234-56789abcdef0"

static void check(const char *cgroup, const char *container, const char *pod)
{
	char id[CONTAINER_ID_BYTES] = "?";

	CHECK_EQ(container_id(cgroup, id), container != NULL);
	if (container)
		CHECK_STR(id, container);
	CHECK_EQ(container_pod(cgroup, id), pod != NULL);
	if (pod)
		CHECK_STR(id, pod);
}

/* Paths as the runtimes' documentation and machines have them. */
static void runtimes(void)
{
	check("/docker/" ID, ID, NULL);
	check("/system.slice/docker-" ID ".scope", ID, NULL);
	check("/machine.slice/libpod-" ID ".scope/container", ID, NULL);
	check("/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod"
	      "12345678_9abc_def0_1234_56789abcdef0.slice/cri-containerd-" ID ".scope",
	      ID, POD);
	check("/kubepods/burstable/pod" POD "/" ID, ID, POD);
	check("/kubepods/burstable/pod" POD "/crio-" ID, ID, POD);
	check("/lxc.payload.web-1/init.scope", "web-1", NULL);
	check("/lxc/web-2", "web-2", NULL);
	check("/machine.slice/machine-db.scope/payload", "db", NULL);
	/* the innermost of two */
	check("/docker/" ID "/docker/" OTHER, OTHER, NULL);
}

static void no_container(void)
{
	check("", NULL, NULL);
	check("/", NULL, NULL);
	check("///", NULL, NULL);
	check("/user.slice/user-1000.slice/session-2.scope", NULL, NULL);
	check("/system.slice/lxc-net.service", NULL, NULL);
	check("/" ID "0", NULL, NULL); /* a digit too many */
	check("/x/" A16 A16 A16, NULL, NULL);
	check("/machine-.scope", NULL, NULL);
	check("/podium/pod12345678-9abc", NULL, NULL);
	check("/pod" POD "0", NULL, NULL);
	check("pod", NULL, NULL);
}

/* Paths are as long as a user likes. */
static void long_names(void)
{
	char path[1024] = "/lxc.payload.";

	memset(path + strlen(path), 'x', CONTAINER_ID_BYTES);
	check(path, NULL, NULL);
	path[strlen("/lxc.payload.") + CONTAINER_ID_BYTES - 1] = '\0';
	check(path, path + strlen("/lxc.payload."), NULL);
}

UNIT_MAIN(TEST(runtimes), TEST(no_container), TEST(long_names))
