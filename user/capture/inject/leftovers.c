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
#include "util/error.h"
#include "util/foreign.h"
#include "util/util.h"

/* minimum age, as a thread may be about to enter the stub */
#define LEFTOVER_AGE_NS (200 * NSEC_PER_MSEC)
#define MEMFD_LINK "/memfd:" KPROF_AGENT_LIBRARY " (deleted)"

/*
 * The offset of the region in the memfd that is mapped here; 0: this is no mapping of a region. The
 * library's code is mapped from the same file, of which the region is the end.
 */
static uint64_t region_of(const struct inject_target *t, const struct proc_map *map)
{
	struct foreign_file file;
	char path[512];

	if (!map->offset || strcmp(proc_basename(map->path), "memfd:" KPROF_AGENT_LIBRARY) ||
	    proc_map_open_path(t->pid, map, path, sizeof(path)) || foreign_look(path, &file) ||
	    !file.in_memory || file.bytes < map->offset + INJECT_PAGE ||
	    file.bytes - map->offset > INJECT_REGION_BYTES)
		return 0;
	return file.bytes - INJECT_REGION_BYTES;
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

/* Reads a struct of the region, if this is the mapping that it lies in. */
static bool read_part(const struct inject_target *t, const struct proc_map *map, uint64_t offset,
		      void *to, size_t bytes)
{
	return offset >= map->offset && offset - map->offset < map->end - map->start &&
	       !process_read(t->pid, map->start + (offset - map->offset), to, bytes);
}

/*
 * Is the region in use? -EAGAIN: a thread of this process runs the stub or waits in it, or the task
 * is under way. -EDEADLK: a thread was lost in it.
 */
static int look_at(const struct inject_target *t, const struct proc_map *map, uint64_t region)
{
	struct inject_stub_data stub;
	struct inject_task_data task;
	char path[64];

	if (read_part(t, map, region + INJECT_STUB_DATA, &stub, sizeof(stub)) &&
	    stub.pid == t->pid && stub.state != INJECT_PREPARED) {
		if (stub.state == INJECT_LOST)
			return error_set(
				-EDEADLK, NO_AGENT_HINT,
				"a thread of process %d was lost in an earlier attempt to put the agent into it",
				(int)t->pid);
		snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)stub.pid, (int)stub.tid);
		if (!access(path, F_OK))
			return -EAGAIN;
	}
	if (read_part(t, map, region + INJECT_TASK_DATA, &task, sizeof(task)) &&
	    task.pid == t->pid && task.state != INJECT_PREPARED)
		return -EAGAIN;
	return 0;
}

int inject_leftovers__find(struct inject_leftovers *l, const struct inject_target *t)
{
	int err = 0;

	l->nr_areas = 0;
	for (size_t i = 0; i < proc_maps__nr(t->maps) && l->nr_areas < INJECT_LEFTOVERS_MAX; i++) {
		const struct proc_map *map = proc_maps__at(t->maps, i);
		uint64_t region = region_of(t, map);
		int used;

		if (!region)
			continue;
		used = look_at(t, map, region);
		err = used && err != -EDEADLK ? used : err;
		l->areas[l->nr_areas].start = map->start;
		l->areas[l->nr_areas++].end = map->end;
	}
	find_fds(l, t->pid);
	if (err || (!l->nr_areas && !l->nr_fds))
		return err;
	if (!l->since_ns)
		l->since_ns = clock_mono_ns();
	return clock_mono_ns() - l->since_ns < LEFTOVER_AGE_NS ? -EAGAIN : 0;
}

int inject_leftovers__undo(const struct inject_leftovers *l, const struct inject_target *t,
			   struct remote *r)
{
	int64_t result;
	int err = 0;

	for (size_t i = 0; i < l->nr_areas && !err; i++) {
		uint64_t args[6] = {l->areas[i].start, l->areas[i].end - l->areas[i].start};

		err = remote__syscall(r, t, SYS_munmap, args, &result);
	}
	for (size_t i = 0; i < l->nr_fds && !err; i++) {
		uint64_t args[6] = {(uint64_t)l->fds[i]};

		if (inject_is_memfd(t->pid, l->fds[i])) /* it still is one */
			err = remote__syscall(r, t, SYS_close, args, &result);
	}
	return err;
}
