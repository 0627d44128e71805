// SPDX-License-Identifier: BSD-2-Clause
/* Reads the kernel's perf events of all processes: one ring for each CPU. */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "capture/process/process.h"
#include "util/util.h"

#define RING_BYTES (256u << 10) /* of each CPU, a power of two */

struct cpu_ring {
	int fd; /* -1: the CPU is offline */
	struct perf_event_mmap_page *page;
	const uint8_t *data;
};

struct proc_news_reader {
	uint64_t lost;
	uint8_t record[65536]; /* the record that is being read, as it may wrap around */
	size_t page_bytes;
	long nr_cpus;
	struct cpu_ring rings[];
};

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

static bool take_task(const struct perf_event_header *h, struct proc_news *out)
{
	const struct task_record *r = (const struct task_record *)h;

	if (r->pid == r->ppid && h->type == PERF_RECORD_FORK) /* it is a thread */
		return false;
	if (r->pid != r->tid && h->type == PERF_RECORD_EXIT)
		return false;
	out->kind = h->type == PERF_RECORD_FORK ? PROC_NEWS_FORK : PROC_NEWS_EXIT;
	out->pid = (pid_t)r->pid;
	out->parent = (pid_t)r->ppid;
	out->time_ns = r->time_ns;
	return true;
}

static bool take_map(struct mmap_record *r, size_t path_bytes, struct proc_news *out)
{
	if (!r->inode || !r->bytes || r->start + r->bytes < r->start)
		return false;
	r->path[path_bytes - 1] = '\0'; /* it is, as the kernel pads it */
	out->kind = PROC_NEWS_MAP;
	out->pid = (pid_t)r->pid;
	out->map = (struct proc_map){
		.start = r->start,
		.end = r->start + r->bytes,
		.offset = r->offset_bytes,
		.inode = r->inode,
		.dev = makedev(r->major, r->minor),
		.flags = PROC_MAP_FILE | PROC_MAP_EXEC,
		.path = r->path,
	};
	return true;
}

/* Returns false if the record is none of those that are reported. */
static bool take_record(struct proc_news_reader *n, struct perf_event_header *h,
			struct proc_news *out)
{
	size_t bytes = h->size, head = offsetof(struct mmap_record, path);
	struct record_id id;
	uint64_t lost[2]; /* id, number */

	if (bytes < sizeof(*h) + sizeof(id))
		return false;
	memcpy(&id, (const uint8_t *)h + bytes - sizeof(id), sizeof(id));
	bytes -= sizeof(id);
	*out = (struct proc_news){.time_ns = id.time_ns};
	switch (h->type) {
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return bytes >= sizeof(struct task_record) && take_task(h, out);
	case PERF_RECORD_COMM:
		if (!(h->misc & PERF_RECORD_MISC_COMM_EXEC) ||
		    bytes < offsetof(struct comm_record, comm))
			return false;
		out->kind = PROC_NEWS_EXEC;
		out->pid = (pid_t)((const struct comm_record *)h)->pid;
		return true;
	case PERF_RECORD_MMAP2:
		return bytes > head && !(h->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) &&
		       take_map((struct mmap_record *)h, bytes - head, out);
	case PERF_RECORD_LOST:
		if (bytes < sizeof(*h) + sizeof(lost))
			return false;
		memcpy(lost, h + 1, sizeof(lost));
		add_capped(&n->lost, lost[1]);
		return false;
	default:
		return false;
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

static int open_ring(struct proc_news_reader *n, int cpu)
{
	struct cpu_ring *r = &n->rings[cpu];
	int fd = open_cpu(cpu);
	void *at;

	if (fd < 0)
		return fd;
	at = mmap(NULL, n->page_bytes + RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED) {
		int err = -errno;

		close(fd);
		return err;
	}
	r->fd = fd;
	r->page = at;
	r->data = (const uint8_t *)at + n->page_bytes;
	return 0;
}

int proc_news__new(struct proc_news_reader **out)
{
	long nr_cpus = sysconf(_SC_NPROCESSORS_CONF);
	int err = -ENODEV, opened = 0;
	struct proc_news_reader *n;

	n = calloc(1, sizeof(*n) + (size_t)(nr_cpus > 0 ? nr_cpus : 0) * sizeof(*n->rings));
	if (!n)
		return -ENOMEM;
	n->nr_cpus = nr_cpus;
	n->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	for (int cpu = 0; cpu < nr_cpus; cpu++)
		n->rings[cpu].fd = -1;
	for (int cpu = 0; cpu < nr_cpus; cpu++) { /* some CPUs may be offline */
		int cpu_err = open_ring(n, cpu);

		opened += !cpu_err;
		err = cpu_err ? cpu_err : err;
	}
	if (!opened) {
		proc_news__free(n);
		return err;
	}
	*out = n;
	return 0;
}

void proc_news__free(struct proc_news_reader *n)
{
	if (!n)
		return;
	for (int cpu = 0; cpu < n->nr_cpus; cpu++) {
		if (n->rings[cpu].fd < 0)
			continue;
		munmap(n->rings[cpu].page, n->page_bytes + RING_BYTES);
		close(n->rings[cpu].fd);
	}
	free(n);
}

static void copy_out(const struct cpu_ring *r, uint64_t at, void *to, size_t bytes)
{
	size_t from = at & (RING_BYTES - 1), first = RING_BYTES - from;

	if (first > bytes)
		first = bytes;
	memcpy(to, r->data + from, first);
	memcpy((uint8_t *)to + first, r->data, bytes - first);
}

static void read_ring(struct proc_news_reader *n, struct cpu_ring *r, proc_news_fn fn, void *ctx)
{
	uint64_t head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = r->page->data_tail;
	struct perf_event_header h;
	struct proc_news news;

	while (head - tail >= sizeof(h)) {
		copy_out(r, tail, &h, sizeof(h));
		if (h.size < sizeof(h) || h.size > head - tail)
			break;
		copy_out(r, tail, n->record, h.size);
		if (take_record(n, (struct perf_event_header *)n->record, &news))
			fn(ctx, &news);
		tail += h.size;
	}
	__atomic_store_n(&r->page->data_tail, head, __ATOMIC_RELEASE);
}

void proc_news__read(struct proc_news_reader *n, proc_news_fn fn, void *ctx)
{
	for (int cpu = 0; cpu < n->nr_cpus; cpu++)
		if (n->rings[cpu].fd >= 0)
			read_ring(n, &n->rings[cpu], fn, ctx);
}

uint64_t proc_news__lost(const struct proc_news_reader *n)
{
	return n->lost;
}
