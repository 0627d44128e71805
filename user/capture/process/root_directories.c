// SPDX-License-Identifier: BSD-2-Clause
#include "capture/process/process.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Opens a process's root directory. A root is identified by its directory and by the mount
 * namespace, since the same directory may have other mounts below it.
 */
static bool root_open(const char *process, struct process_root *r)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%s/ns/mnt", process);
	if (stat(path, &r->mounts))
		return false;
	snprintf(path, sizeof(path), "/proc/%s/root", process);
	r->fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (r->fd >= 0 && !fstat(r->fd, &r->dir))
		return true;
	if (r->fd >= 0)
		close(r->fd);
	return false;
}

static bool is_same(const struct process_root *a, const struct process_root *b)
{
	return a->mounts.st_ino == b->mounts.st_ino && a->dir.st_dev == b->dir.st_dev &&
	       a->dir.st_ino == b->dir.st_ino;
}

static bool is_ours(const struct process_root *r)
{
	struct process_root own;
	bool same;

	if (!root_open("self", &own))
		return false;
	same = is_same(r, &own);
	close(own.fd);
	return same;
}

static const char *find(const struct process_roots *all, const struct process_root *r)
{
	for (size_t i = 0; i < all->nr; i++)
		if (is_same(&all->all[i], r))
			return all->all[i].path;
	return NULL;
}

const char *process_roots__of(struct process_roots *all, pid_t pid)
{
	const char *known;
	char process[16];
	struct process_root r;

	snprintf(process, sizeof(process), "%d", (int)pid);
	if (!root_open(process, &r))
		return "";
	known = find(all, &r);
	if (known || all->nr == PROCESS_ROOTS_MAX || is_ours(&r)) {
		close(r.fd);
		return known ? known : "";
	}
	snprintf(r.path, sizeof(r.path), "/proc/self/fd/%d", r.fd);
	all->all[all->nr] = r;
	return all->all[all->nr++].path;
}

void process_roots__close(struct process_roots *all)
{
	while (all->nr)
		close(all->all[--all->nr].fd);
}
