// SPDX-License-Identifier: BSD-2-Clause
#include "capture/agent/memory.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "util/error.h"
#include "util/foreign.h"
#include "util/util.h"

struct agent_memory {
	int fd;
	void *page; /* the head, mapped for futexes only: kprof never accesses it */
};

static int read_at(const struct agent_memory *m, off_t at, void *to, size_t bytes)
{
	ssize_t n = pread(m->fd, to, bytes, at);

	if (n < 0)
		return -errno;
	return (size_t)n == bytes ? 0 : -EIO;
}

static int write_at(const struct agent_memory *m, off_t at, const void *from, size_t bytes)
{
	ssize_t n = pwrite(m->fd, from, bytes, at);

	if (n < 0)
		return -errno;
	return (size_t)n == bytes ? 0 : -EIO;
}

int agent_memory__head(const struct agent_memory *m, struct kprof_agent_shm *out)
{
	int err = read_at(m, 0, out, sizeof(*out));

	out->detail[sizeof(out->detail) - 1] = '\0';
	out->metrics_detail[sizeof(out->metrics_detail) - 1] = '\0';
	return err;
}

uint32_t agent_memory__state(const struct agent_memory *m)
{
	uint32_t state;
	int err = read_at(m, offsetof(struct kprof_agent_shm, state), &state, sizeof(state));

	return err ? KPROF_AGENT_LEFT : state;
}

int agent_memory__slot(const struct agent_memory *m, uint32_t i, struct kprof_agent_slot *out)
{
	off_t at = KPROF_AGENT_HEAD_BYTES + (off_t)i * KPROF_AGENT_SLOT_BYTES;

	return i < KPROF_AGENT_SLOTS ? read_at(m, at, out, sizeof(*out)) : -EINVAL;
}

int agent_memory__slot_head(const struct agent_memory *m, uint32_t i, struct kprof_agent_slot *out)
{
	off_t at = KPROF_AGENT_HEAD_BYTES + (off_t)i * KPROF_AGENT_SLOT_BYTES;

	return i < KPROF_AGENT_SLOTS ? read_at(m, at, out, offsetof(struct kprof_agent_slot, data))
				     : -EINVAL;
}

/* ---- opening ---- */

static int check_head(const struct agent_memory *m, pid_t ns_pid)
{
	struct kprof_agent_shm head;
	int err = agent_memory__head(m, &head);

	if (!err && !head.magic)
		return -ENOENT; /* the agent has just mapped it, and writes this number last */
	if (err || head.magic != KPROF_AGENT_MAGIC)
		return error_set(-EPROTO, NULL,
				 "the memory of its agent is damaged, or not an agent's");
	if (head.version != KPROF_AGENT_VERSION || head.nr_slots != KPROF_AGENT_SLOTS)
		return error_set(-EPROTO, "restart it, or use the kprof that the agent came with",
				 "its agent is of another release of kprof (%u, this one has %u)",
				 head.version, KPROF_AGENT_VERSION);
	/* else it was made by the parent, before a fork */
	return head.pid == (uint32_t)ns_pid ? 0 : -ENOENT;
}

/* Takes ownership of fd, also on failure. */
static int open_fd(int fd, pid_t ns_pid, struct agent_memory **out)
{
	struct agent_memory *m = calloc(1, sizeof(*m));
	struct stat st;
	int err = 0;

	if (!m) {
		close(fd);
		return -ENOMEM;
	}
	m->fd = fd;
	m->page = MAP_FAILED;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size != KPROF_AGENT_SHM_BYTES) {
		err = error_set(-EPROTO, NULL, "the memory of its agent has not the size of one");
		goto out;
	}
	err = check_head(m, ns_pid);
	if (err)
		goto out;
	m->page = mmap(NULL, KPROF_AGENT_HEAD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (m->page == MAP_FAILED)
		err = error_set(-errno, NULL, "cannot map the memory of its agent: %s",
				strerror(errno));
out:
	if (err) {
		agent_memory__close(m);
		return err;
	}
	*out = m;
	return 0;
}

void agent_memory__close(struct agent_memory *m)
{
	if (!m)
		return;
	if (m->page != MAP_FAILED)
		munmap(m->page, KPROF_AGENT_HEAD_BYTES);
	close(m->fd);
	free(m);
}

/* Opens the file of this mapping, and no other that the process may have mapped there meanwhile. */
static int open_map(pid_t pid, const struct proc_map *map)
{
	struct stat st;
	char path[512];
	int err, fd;

	err = proc_map_open_path(pid, map, path, sizeof(path));
	if (err)
		return err;
	fd = foreign_open_memory(path);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) || st.st_ino != map->inode || st.st_dev != map->dev) {
		close(fd);
		return -ESTALE;
	}
	return fd;
}

int agent_memory__open(pid_t pid, pid_t ns_pid, const struct proc_maps *maps,
		       struct agent_memory **out)
{
	/*
	 * The mapping must be shared and writable: then the process itself could write to the file.
	 * So whatever file the process presents here, it gains no rights by what kprof writes.
	 */
	const uint32_t needed = PROC_MAP_FILE | PROC_MAP_READ | PROC_MAP_WRITE | PROC_MAP_SHARED;
	int err = -ENOENT;

	for (size_t i = 0; i < proc_maps__nr(maps) && err; i++) {
		const struct proc_map *map = proc_maps__at(maps, i);
		int fd;

		if ((map->flags & needed) != needed || map->offset ||
		    strcmp(map->path, "/memfd:" KPROF_AGENT_SHM_NAME))
			continue;
		fd = open_map(pid, map);
		if (fd < 0)
			err = error_set(fd, NULL, "cannot open the memory of its agent: %s",
					strerror(-fd));
		else
			err = open_fd(fd, ns_pid, out);
	}
	return err;
}

/* ---- whose it is ---- */

bool agent_memory__claim(const struct agent_memory *m)
{
	return !flock(m->fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK;
}

void agent_memory__release(const struct agent_memory *m)
{
	flock(m->fd, LOCK_UN);
}

/* ---- commands ---- */

static uint32_t *futex_of(const struct agent_memory *m, size_t offset)
{
	return (uint32_t *)((char *)m->page + offset);
}

void agent_memory__beat(const struct agent_memory *m, uint64_t now_ns)
{
	write_at(m, offsetof(struct kprof_agent_shm, heartbeat_ns), &now_ns, sizeof(now_ns));
}

int agent_memory__command(struct agent_memory *m, enum kprof_agent_command command)
{
	uint32_t value = command;
	int err = write_at(m, offsetof(struct kprof_agent_shm, command), &value, sizeof(value));

	if (!err)
		syscall(SYS_futex, futex_of(m, offsetof(struct kprof_agent_shm, command)),
			FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	return err;
}

int agent_memory__record(struct agent_memory *m, uint32_t session, uint32_t modules, uint64_t types,
			 uint32_t options)
{
	const struct kprof_agent_shm head = {.heartbeat_ns = clock_mono_ns(),
					     .types = types,
					     .options = options,
					     .wanted = modules};
	const size_t from = offsetof(struct kprof_agent_shm, heartbeat_ns),
		     to = offsetof(struct kprof_agent_shm, state);
	int err = write_at(m, (off_t)from, (const char *)&head + from, to - from);

	if (!err) /* last: the agent goes by this number */
		err = write_at(m, offsetof(struct kprof_agent_shm, session), &session,
			       sizeof(session));
	return err ? err : agent_memory__command(m, KPROF_AGENT_RECORD);
}

int agent_memory__metrics(struct agent_memory *m, const char *names, uint64_t range_ns)
{
	const size_t from = offsetof(struct kprof_agent_shm, metrics);
	struct kprof_agent_shm head = {.metrics_range_ns = range_ns};

	strncpy(head.metrics, names, sizeof(head.metrics) - 1);
	return write_at(m, (off_t)from, (const char *)&head + from,
			offsetof(struct kprof_agent_shm, layout) - from);
}

int agent_memory__layout(struct agent_memory *m, const struct kprof_agent_layout *layout)
{
	return write_at(m, offsetof(struct kprof_agent_shm, layout), layout, sizeof(*layout));
}

int agent_memory__within(struct agent_memory *m, const char *name)
{
	return write_at(m, offsetof(struct kprof_agent_shm, within), name, strlen(name) + 1);
}

void agent_memory__wait(const struct agent_memory *m, uint32_t state, uint32_t timeout_ms)
{
	struct timespec ts = {.tv_sec = timeout_ms / 1000,
			      .tv_nsec = (long)(timeout_ms % 1000) * 1000000};

	syscall(SYS_futex, futex_of(m, offsetof(struct kprof_agent_shm, state)), FUTEX_WAIT, state,
		&ts, NULL, 0);
}
