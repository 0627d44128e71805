// SPDX-License-Identifier: BSD-2-Clause
/*
 * Whose a process is. As with ptrace(2), it takes more than the owner of /proc/PID, which is the
 * user in whose name the process acts at the moment: it may still have the rights of another one,
 * or secrets from when it had them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "cmd/daemon/daemon.h"

struct ids {
	unsigned int uids[3], gids[3]; /* real, effective, saved */
	uint64_t capabilities;         /* that it has, or may take */
	char state;
	unsigned int threads;
};

static bool read_ids(pid_t pid, struct ids *out)
{
	char path[64], line[256];
	int found = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f && found < 7 && fgets(line, sizeof(line), f)) {
		int uids =
			sscanf(line, "Uid: %u %u %u", &out->uids[0], &out->uids[1], &out->uids[2]);
		int gids =
			sscanf(line, "Gid: %u %u %u", &out->gids[0], &out->gids[1], &out->gids[2]);
		int capabilities = sscanf(line, "CapPrm: %" SCNx64, &out->capabilities);

		sscanf(line, "State: %c", &out->state);
		sscanf(line, "Threads: %u", &out->threads);
		found += (uids > 0 ? uids : 0) + (gids > 0 ? gids : 0) +
			 (capabilities > 0 ? capabilities : 0);
	}
	if (f)
		fclose(f);
	return found == 7;
}

/* It has exited, and is not waited for yet; not a first thread that has, before the others. */
static bool is_over(const struct ids *ids)
{
	return (ids->state == 'Z' || ids->state == 'X') && ids->threads <= 1;
}

static bool has_one_id(const unsigned int ids[3])
{
	return ids[0] == ids[1] && ids[1] == ids[2];
}

/* Root of a container that its owner has made has them there only. */
static bool in_own_namespace(pid_t pid)
{
	struct stat own, its;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	return stat("/proc/self/ns/user", &own) || stat(path, &its) || own.st_ino == its.st_ino;
}

int process_check_owner(pid_t pid, uid_t uid, uint64_t space, pid_t asker)
{
	struct ids ids = {0};
	struct stat st;
	char path[64];

	/* a file that the kernel says is root's where the process may not be looked into */
	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	if (stat(path, &st) || !read_ids(pid, &ids)) {
		snprintf(path, sizeof(path), "/proc/%d", (int)pid);
		return stat(path, &st) ? -ENOENT : -EPERM;
	}
	if (is_over(&ids))
		return -ENOENT;
	if (st.st_uid != uid || ids.uids[0] != uid || !has_one_id(ids.uids) ||
	    !has_one_id(ids.gids))
		return -EPERM;
	if (space && (space == SPACE_UNKNOWN || process_space(pid) != space))
		return -EPERM;
	if (space && !uid && pid == asker)
		return 0;
	return ids.capabilities && in_own_namespace(pid) ? -EPERM : 0;
}
