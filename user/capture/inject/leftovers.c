// SPDX-License-Identifier: BSD-2-Clause
/*
 * When kprof is killed in the middle of an injection, the thread finishes on its own and cleans up,
 * if it was executing the stub. If it was not there yet, or had left it, a memfd and a mapping
 * remain. They do no harm, and are removed by the next injection. A child that was forked meanwhile
 * has copies of them, too.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/inject/priv.h"
#include "kprof/agent.h"
#include "util/foreign.h"
#include "util/util.h"

/* minimum age, as a thread may be about to enter the stub */
#define LEFTOVER_AGE_NS (200 * NSEC_PER_MSEC)
#define MEMFD_LINK "/memfd:" KPROF_AGENT_LIBRARY " (deleted)"

/*
 * Is this mapping the stub's region? The library's code is mapped from the same file, but the
 * region is the end of the file.
 */
static bool is_region(const struct inject_target *t, const struct proc_map *map)
{
	struct foreign_file file;
	char path[512];

	return (map->flags & PROC_MAP_EXEC) && map->offset &&
	       !strcmp(proc_basename(map->path), "memfd:" KPROF_AGENT_LIBRARY) &&
	       !proc_map_open_path(t->pid, map, path, sizeof(path)) && !foreign_look(path, &file) &&
	       file.in_memory && file.bytes == map->offset + INJECT_REGION_BYTES;
}

bool inject_is_memfd(pid_t pid, int fd)
{
	char path[64], link[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	n = readlink(path, link, sizeof(link) - 1);
	if (n <= 0)
		return false;
	link[n] = '\0';
	return !strcmp(link, MEMFD_LINK);
}

static void find_fds(struct inject_leftovers *l, pid_t pid)
{
	struct dirent *entry;
	char path[64];
	DIR *dir;

	l->nr_fds = 0;
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)) && l->nr_fds < INJECT_LEFTOVERS_MAX)
		if (inject_is_memfd(pid, (int)strtol(entry->d_name, NULL, 10)))
			l->fds[l->nr_fds++] = (int)strtol(entry->d_name, NULL, 10);
	if (dir)
		closedir(dir);
}

/* Is a thread of this process executing the stub, or waiting in it for its tracer? */
static bool is_entered(const struct inject_target *t, uint64_t region)
{
	struct inject_stub_data data = {0};
	char path[64];

	if (process_read(t->pid, region + INJECT_DATA_OFFSET, &data, sizeof(data)) ||
	    data.state == INJECT_STUB_PREPARED || data.pid != t->pid)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)data.pid, (int)data.tid);
	return !access(path, F_OK);
}

int inject_leftovers__find(struct inject_leftovers *l, const struct inject_target *t)
{
	bool entered = false;

	l->nr_regions = 0;
	for (size_t i = 0; i < proc_maps__nr(t->maps) && l->nr_regions < INJECT_LEFTOVERS_MAX;
	     i++) {
		const struct proc_map *map = proc_maps__at(t->maps, i);

		if (!is_region(t, map))
			continue;
		entered |= is_entered(t, map->start);
		l->regions[l->nr_regions++] = map->start;
	}
	find_fds(l, t->pid);
	if (!l->nr_regions && !l->nr_fds)
		return 0;
	if (!l->since_ns)
		l->since_ns = clock_mono_ns();
	return entered || clock_mono_ns() - l->since_ns < LEFTOVER_AGE_NS ? -EAGAIN : 0;
}

int inject_leftovers__undo(const struct inject_leftovers *l, const struct inject_target *t,
			   struct remote *r)
{
	int64_t result;
	int err = 0;

	for (size_t i = 0; i < l->nr_regions && !err; i++) {
		uint64_t args[6] = {l->regions[i], INJECT_REGION_BYTES};

		err = remote__syscall(r, t, SYS_munmap, args, &result);
	}
	for (size_t i = 0; i < l->nr_fds && !err; i++) {
		uint64_t args[6] = {(uint64_t)l->fds[i]};

		if (inject_is_memfd(t->pid, l->fds[i])) /* it still is one */
			err = remote__syscall(r, t, SYS_close, args, &result);
	}
	return err;
}
