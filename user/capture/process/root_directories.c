// SPDX-License-Identifier: BSD-2-Clause
#include "capture/process/process.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/mounts.h"

/*
 * Opens a process's root directory. A root is identified by its directory and by the mount
 * namespace, since the same directory may have other mounts below it.
 */
static bool root_open(const char *process, struct process_root *r)
{
	struct statx dir;
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%s/ns/mnt", process);
	if (stat(path, &st))
		return false;
	r->mounts = st.st_ino;
	snprintf(path, sizeof(path), "/proc/%s/root", process);
	r->fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (r->fd >= 0 && !mounts_look(r->fd, &dir)) {
		r->dev = (uint64_t)dir.stx_dev_major << 32 | dir.stx_dev_minor;
		r->inode = dir.stx_ino;
		return true;
	}
	if (r->fd >= 0)
		close(r->fd);
	return false;
}

static bool is_same(const struct process_root *a, const struct process_root *b)
{
	return a->mounts == b->mounts && a->dev == b->dev && a->inode == b->inode;
}

static bool is_ours(struct process_roots *all, const struct process_root *r)
{
	struct process_root own;

	if (!all->own.mounts) {
		if (!root_open("self", &own))
			return false;
		close(own.fd);
		own.fd = -1;
		all->own = own;
	}
	return is_same(r, &all->own);
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
	if (known || all->nr == PROCESS_ROOTS_MAX || is_ours(all, &r)) {
		close(r.fd);
		return known ? known : "";
	}
	/* not "self": the process that reads files for us is another one */
	snprintf(r.path, sizeof(r.path), "/proc/%d/fd/%d", (int)getpid(), r.fd);
	all->all[all->nr] = r;
	return all->all[all->nr++].path;
}

void process_roots__close(struct process_roots *all)
{
	while (all->nr)
		close(all->all[--all->nr].fd);
}
