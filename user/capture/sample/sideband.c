// SPDX-License-Identifier: BSD-2-Clause
#include "capture/sample/sideband.h"

/* uthash: without memory an element is not added, and its hh.tbl stays NULL */
#define HASH_NONFATAL_OOM 1
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>
#include <uthash.h>

#include "util/util.h"

#define RING_BYTES (256u << 10) /* of each CPU, a power of two */
#define MAX_PROCESSES 4096
#define KEPT_NS (2 * NSEC_PER_SEC) /* after its exit a process's last samples are still read */

struct map_news {
	struct proc_map map;
	uint64_t time_ns;
	char *path;
};

struct process_news {
	UT_hash_handle hh; /* in order of the latest exec or fork: the first is the oldest */
	pid_t pid, parent; /* parent: 0 if its fork was not seen */
	uint64_t fork_ns;
	uint64_t exec_ns; /* of the latest program; 0: none was seen */
	uint32_t nr_execs;
	uint64_t exit_ns; /* 0: it lives */
	struct map_news maps[SIDEBAND_MAPS];
	size_t nr;
};

struct cpu_ring {
	int fd; /* -1: the CPU is offline */
	struct perf_event_mmap_page *page;
	const uint8_t *data;
};

struct sideband {
	struct process_news *processes;
	uint64_t lost;
	uint64_t next_trim_ns;
	uint8_t record[65536]; /* the record that is being read, as it may wrap around */
	size_t page_bytes;
	int nr_cpus;
	struct cpu_ring rings[];
};

/* ---- processes ---- */

static void forget_maps(struct process_news *p)
{
	for (size_t i = 0; i < p->nr; i++)
		free(p->maps[i].path);
	p->nr = 0;
}

static void forget(struct sideband *sb, struct process_news *p)
{
	HASH_DEL(sb->processes, p);
	forget_maps(p);
	free(p);
}

static struct process_news *find(const struct sideband *sb, pid_t pid)
{
	struct process_news *p;

	HASH_FIND(hh, sb->processes, &pid, sizeof(pid), p);
	return p;
}

/* A process that begins, or is met for the first time. NULL: no memory. */
static struct process_news *add(struct sideband *sb, pid_t pid)
{
	struct process_news *p = find(sb, pid);

	if (p)
		forget(sb, p);
	if (HASH_COUNT(sb->processes) >= MAX_PROCESSES)
		forget(sb, sb->processes);
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->pid = pid;
	HASH_ADD(hh, sb->processes, pid, sizeof(p->pid), p);
	if (p->hh.tbl)
		return p;
	free(p);
	return NULL;
}

/* ---- records ---- */

/* After each record: struct sample_id with the fields that sample_type asks for. */
struct record_id {
	uint32_t pid, tid;
	uint64_t time_ns;
};

struct task_record { /* PERF_RECORD_FORK and _EXIT */
	struct perf_event_header header;
	uint32_t pid, ppid, tid, ptid;
	uint64_t time_ns;
};

struct comm_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	char comm[];
};

struct mmap_record { /* PERF_RECORD_MMAP2 without a build id */
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t start, bytes, offset_bytes;
	uint32_t major, minor;
	uint64_t inode, generation;
	uint32_t protection, flags;
	char path[];
};

/* Is this the process that had the number before the time? */
static bool is_older(const struct process_news *p, uint64_t time_ns)
{
	return p->exit_ns ? p->exit_ns <= time_ns
			  : p->exec_ns < time_ns && (!p->nr || p->maps[0].time_ns < time_ns);
}

/* The rings of CPUs are read one after the other: what a child does may be read before its fork. */
static void on_fork(struct sideband *sb, const struct task_record *r)
{
	struct process_news *p = find(sb, (pid_t)r->pid);

	if (r->pid == r->ppid) /* it is a thread */
		return;
	if (!p || is_older(p, r->time_ns))
		p = add(sb, (pid_t)r->pid);
	if (!p)
		return;
	p->parent = (pid_t)r->ppid;
	p->fork_ns = r->time_ns;
}

static void on_exit_record(struct sideband *sb, const struct task_record *r)
{
	struct process_news *p = r->pid == r->tid ? find(sb, (pid_t)r->pid) : NULL;

	if (p && r->time_ns >= p->fork_ns)
		p->exit_ns = r->time_ns;
}

/* A program is executed. What it maps may have been read before this, from another CPU's ring. */
static void on_exec(struct sideband *sb, const struct comm_record *r, uint64_t time_ns)
{
	struct process_news *p = find(sb, (pid_t)r->pid);
	size_t kept = 0;

	if (!p)
		p = add(sb, (pid_t)r->pid);
	if (!p)
		return;
	p->exec_ns = time_ns;
	p->nr_execs++;
	for (size_t i = 0; i < p->nr; i++) {
		if (p->maps[i].time_ns >= time_ns)
			p->maps[kept++] = p->maps[i];
		else
			free(p->maps[i].path);
	}
	p->nr = kept;
}

static void on_mmap(struct sideband *sb, const struct mmap_record *r, size_t path_bytes,
		    uint64_t time_ns)
{
	struct process_news *p = find(sb, (pid_t)r->pid);
	struct map_news *m;

	if (!r->inode || !r->bytes || r->start + r->bytes < r->start)
		return;
	if (!p)
		p = add(sb, (pid_t)r->pid);
	if (!p || p->nr == SIDEBAND_MAPS)
		return;
	m = &p->maps[p->nr];
	m->path = strndup(r->path, path_bytes);
	if (!m->path)
		return;
	m->time_ns = time_ns;
	m->map = (struct proc_map){
		.start = r->start,
		.end = r->start + r->bytes,
		.offset = r->offset_bytes,
		.inode = r->inode,
		.dev = makedev(r->major, r->minor),
		.flags = PROC_MAP_FILE | PROC_MAP_EXEC,
		.path = m->path,
	};
	p->nr++;
}

static void on_record(struct sideband *sb, const struct perf_event_header *h)
{
	struct record_id id;
	uint64_t lost[2]; /* id, number */
	size_t bytes = h->size, head = offsetof(struct mmap_record, path);

	if (bytes < sizeof(*h) + sizeof(id))
		return;
	memcpy(&id, (const uint8_t *)h + bytes - sizeof(id), sizeof(id));
	bytes -= sizeof(id);
	switch (h->type) {
	case PERF_RECORD_FORK:
		if (bytes >= sizeof(struct task_record))
			on_fork(sb, (const struct task_record *)h);
		break;
	case PERF_RECORD_EXIT:
		if (bytes >= sizeof(struct task_record))
			on_exit_record(sb, (const struct task_record *)h);
		break;
	case PERF_RECORD_COMM:
		if (h->misc & PERF_RECORD_MISC_COMM_EXEC &&
		    bytes >= offsetof(struct comm_record, comm))
			on_exec(sb, (const struct comm_record *)h, id.time_ns);
		break;
	case PERF_RECORD_MMAP2:
		if (bytes > head && !(h->misc & PERF_RECORD_MISC_MMAP_BUILD_ID))
			on_mmap(sb, (const struct mmap_record *)h, bytes - head, id.time_ns);
		break;
	case PERF_RECORD_LOST:
		if (bytes < sizeof(*h) + sizeof(lost))
			break;
		memcpy(lost, h + 1, sizeof(lost));
		add_capped(&sb->lost, lost[1]);
		break;
	default:
		break;
	}
}

/* ---- rings ---- */

static int open_cpu(int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_period = 1, /* of a dummy there are none */
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.sample_id_all = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1, /* nobody waits for them */
		.wakeup_watermark = RING_BYTES,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int open_ring(struct sideband *sb, int cpu)
{
	struct cpu_ring *r = &sb->rings[cpu];
	int fd = open_cpu(cpu);
	void *at;

	if (fd < 0)
		return fd;
	at = mmap(NULL, sb->page_bytes + RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED) {
		int err = -errno;

		close(fd);
		return err;
	}
	r->fd = fd;
	r->page = at;
	r->data = (const uint8_t *)at + sb->page_bytes;
	return 0;
}

int sideband__new(struct sideband **out)
{
	int nr_cpus = libbpf_num_possible_cpus(), err = -ENODEV, opened = 0;
	struct sideband *sb;

	sb = calloc(1, sizeof(*sb) + (size_t)(nr_cpus > 0 ? nr_cpus : 0) * sizeof(*sb->rings));
	if (!sb)
		return -ENOMEM;
	sb->nr_cpus = nr_cpus;
	sb->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	for (int cpu = 0; cpu < nr_cpus; cpu++)
		sb->rings[cpu].fd = -1;
	for (int cpu = 0; cpu < nr_cpus; cpu++) { /* some CPUs may be offline */
		int cpu_err = open_ring(sb, cpu);

		opened += !cpu_err;
		err = cpu_err ? cpu_err : err;
	}
	if (!opened) {
		sideband__free(sb);
		return err;
	}
	*out = sb;
	return 0;
}

void sideband__free(struct sideband *sb)
{
	struct process_news *p, *next;

	if (!sb)
		return;
	HASH_ITER (hh, sb->processes, p, next)
		forget(sb, p);
	for (int cpu = 0; cpu < sb->nr_cpus; cpu++) {
		if (sb->rings[cpu].fd < 0)
			continue;
		munmap(sb->rings[cpu].page, sb->page_bytes + RING_BYTES);
		close(sb->rings[cpu].fd);
	}
	free(sb);
}

static void copy_out(const struct cpu_ring *r, uint64_t at, void *to, size_t bytes)
{
	size_t from = at & (RING_BYTES - 1), first = RING_BYTES - from;

	if (first > bytes)
		first = bytes;
	memcpy(to, r->data + from, first);
	memcpy((uint8_t *)to + first, r->data, bytes - first);
}

static void read_ring(struct sideband *sb, struct cpu_ring *r)
{
	uint64_t head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = r->page->data_tail;
	struct perf_event_header h;

	while (head - tail >= sizeof(h)) {
		copy_out(r, tail, &h, sizeof(h));
		if (h.size < sizeof(h) || h.size > head - tail)
			break;
		copy_out(r, tail, sb->record, h.size);
		on_record(sb, (const struct perf_event_header *)sb->record);
		tail += h.size;
	}
	__atomic_store_n(&r->page->data_tail, head, __ATOMIC_RELEASE);
}

void sideband__read(struct sideband *sb, uint64_t now_ns)
{
	struct process_news *p, *next;

	for (int cpu = 0; cpu < sb->nr_cpus; cpu++)
		if (sb->rings[cpu].fd >= 0)
			read_ring(sb, &sb->rings[cpu]);
	if (now_ns < sb->next_trim_ns)
		return;
	sb->next_trim_ns = now_ns + NSEC_PER_SEC;
	HASH_ITER (hh, sb->processes, p, next) {
		if (p->exit_ns && now_ns > p->exit_ns + KEPT_NS)
			forget(sb, p);
	}
}

uint64_t sideband__lost(const struct sideband *sb)
{
	return sb->lost;
}

size_t sideband__maps(const struct sideband *sb, pid_t pid, uint64_t time_ns,
		      struct proc_map maps[SIDEBAND_MAPS], pid_t *parent, uint64_t *fork_ns)
{
	const struct process_news *p = find(sb, pid);
	size_t nr = 0;

	*parent = 0;
	*fork_ns = 0;
	if (!p || p->fork_ns > time_ns)
		return 0;
	if (!p->exec_ns || (p->exec_ns > time_ns && p->nr_execs == 1)) {
		*parent = p->parent;
		*fork_ns = p->fork_ns;
	}
	/* of the programs before the latest, the mappings are not remembered */
	for (size_t i = 0; i < p->nr && p->exec_ns <= time_ns; i++)
		if (p->maps[i].time_ns <= time_ns)
			maps[nr++] = p->maps[i].map;
	return nr;
}
