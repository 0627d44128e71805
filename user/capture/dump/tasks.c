// SPDX-License-Identifier: BSD-2-Clause
#include "capture/dump/tasks.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/features/features.h"
#include "dump.skel.h"
#include "util/error.h"
#include "util/util.h"

/* not a multiple or fraction of the milliseconds by which programs' own timers tick */
#define TICK_NS 997000u
/* Records that the ring has room for, at most. No more threads run at once than there are CPUs. */
#define MOST_RECORDS 32

struct dump_tasks {
	struct dump_bpf *skel;
	struct bpf_link *iterator; /* goes over the threads of the selected process */
	struct ring_buffer *ring;
	char *bytes; /* latest output of the iterator: struct kprof_task[] */
	size_t nr, cap;
	struct bpf_link **timers; /* one a CPU; NULL: not started */
	int nr_timers;
	/* Arguments for the callback of the ring. */
	void (*fn)(void *ctx, const struct kprof_task_running *r);
	void *ctx;
};

static int refused(int err, const char *what)
{
	static const char hint[] =
		"Linux 5.17 and newer have what `kprof dump` needs, if they were built with "
		"BTF, as distributions do";

	if (err == -EPERM || err == -EACCES)
		return error_set_machine(err, geteuid() ? "run it with sudo" : NULL,
					 "%s: permission denied", what);
	return error_set_machine(err, hint, "%s: %s", what, strerror(-err));
}

static int on_caught(void *ctx, void *data, size_t bytes)
{
	const struct kprof_task_running *r = data;
	struct dump_tasks *d = ctx;

	if (bytes >= sizeof(*r))
		d->fn(d->ctx, r);
	return 0;
}

static int set_ring(struct dump_tasks *d)
{
	size_t records = (size_t)libbpf_num_possible_cpus(), bytes = 1;

	if (records > MOST_RECORDS)
		records = MOST_RECORDS;
	while (bytes < (records + 1) * (sizeof(struct kprof_task_running) + 64))
		bytes *= 2;
	return bpf_map__set_max_entries(d->skel->maps.caught, (uint32_t)bytes);
}

static int load(struct dump_tasks *d)
{
	int err;

	features_log_libbpf();
	d->skel = dump_bpf__open();
	if (!d->skel)
		return error_set(-errno, NULL, "cannot open the BPF programs: %s", strerror(errno));
	err = set_ring(d);
	if (!err)
		err = dump_bpf__load(d->skel);
	if (err)
		return refused(err,
			       "the kernel refused the BPF programs that read threads' registers");
	d->ring = ring_buffer__new(bpf_map__fd(d->skel->maps.caught), on_caught, d, NULL);
	if (!d->ring)
		return error_set(-errno, NULL, "no ring buffer: %s", strerror(errno));
	return 0;
}

int dump_tasks__new(struct dump_tasks **out)
{
	struct dump_tasks *d;
	int err = features_require(false);

	if (err)
		return err;
	d = calloc(1, sizeof(*d));
	if (!d)
		return error_set(-ENOMEM, NULL, "out of memory");
	err = load(d);
	if (err) {
		dump_tasks__free(d);
		return err;
	}
	*out = d;
	return 0;
}

void dump_tasks__free(struct dump_tasks *d)
{
	if (!d)
		return;
	dump_tasks__give_up(d);
	bpf_link__destroy(d->iterator);
	ring_buffer__free(d->ring);
	dump_bpf__destroy(d->skel);
	free(d->bytes);
	free(d);
}

/* ---- threads off the CPU ---- */

int dump_tasks__select(struct dump_tasks *d, pid_t pid, const struct kprof_python *python)
{
	union bpf_iter_link_info info = {.task.pid = (uint32_t)pid};
	/*
	 * Kernels before 6.1 do not know this option: they go through all tasks, and the BPF
	 * program selects.
	 */
	LIBBPF_OPTS(bpf_iter_attach_opts, opts, .link_info = &info, .link_info_len = sizeof(info));

	d->skel->bss->wanted_tgid = (uint32_t)pid;
	d->skel->bss->interpreter = *python;
	d->iterator = bpf_program__attach_iter(d->skel->progs.kprof_dump_tasks, &opts);
	if (!d->iterator && (errno == EINVAL || errno == E2BIG))
		d->iterator = bpf_program__attach_iter(d->skel->progs.kprof_dump_tasks, NULL);
	if (d->iterator)
		return 0;
	if (errno == ESRCH)
		return error_set(-ESRCH, NULL, "process %d has exited", (int)pid);
	return refused(-errno, "this kernel does not let a BPF program go through threads");
}

/* Reads up to the end of the iterator. */
static int read_all(struct dump_tasks *d, int fd)
{
	ssize_t n;

	d->nr = 0;
	do {
		if (d->cap - d->nr < 65536) {
			size_t cap = d->cap ? d->cap * 2 : 1 << 18;
			char *more = realloc(d->bytes, cap);

			if (!more)
				return error_set(-ENOMEM, NULL, "out of memory");
			d->bytes = more;
			d->cap = cap;
		}
		do
			n = read(fd, d->bytes + d->nr, d->cap - d->nr);
		while (n < 0 && (errno == EAGAIN || errno == EINTR));
		if (n < 0)
			return error_set(-errno, NULL, "the threads cannot be read: %s",
					 strerror(errno));
		d->nr += (size_t)n;
	} while (n);
	return 0;
}

int dump_tasks__read(struct dump_tasks *d, const struct kprof_task **tasks, size_t *nr)
{
	int fd = bpf_iter_create(bpf_link__fd(d->iterator)), err;

	if (fd < 0)
		return refused(fd, "the threads cannot be read");
	err = read_all(d, fd);
	close(fd);
	if (err)
		return err;
	*tasks = (const struct kprof_task *)d->bytes;
	*nr = d->nr / sizeof(**tasks);
	return 0;
}

/* ---- running threads ---- */

static int start_timer(struct dump_tasks *d, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = TICK_NS,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return -errno;
	d->timers[d->nr_timers] =
		bpf_program__attach_perf_event(d->skel->progs.kprof_dump_running, fd);
	if (!d->timers[d->nr_timers]) {
		int err = -errno;

		close(fd);
		return err;
	}
	d->nr_timers++;
	return 0;
}

/* Some of the machine's CPUs may be offline: ENODEV. */
static void start_timers(struct dump_tasks *d)
{
	int nr_cpus = libbpf_num_possible_cpus(), err;

	d->timers = calloc((size_t)nr_cpus, sizeof(*d->timers));
	err = d->timers ? 0 : -ENOMEM;
	for (int cpu = 0; cpu < nr_cpus && (!err || err == -ENODEV); cpu++)
		err = start_timer(d, cpu);
	if (!d->nr_timers)
		log_debug("no timer to catch running threads with: %s", strerror(-err));
}

void dump_tasks__chase(struct dump_tasks *d, pid_t tid)
{
	uint32_t key = (uint32_t)tid;

	if (!d->timers)
		start_timers(d);
	bpf_map_update_elem(bpf_map__fd(d->skel->maps.runners), &key, &key, BPF_ANY);
}

void dump_tasks__give_up(struct dump_tasks *d)
{
	while (d->nr_timers)
		bpf_link__destroy(d->timers[--d->nr_timers]);
	free(d->timers);
	d->timers = NULL;
}

void dump_tasks__caught(struct dump_tasks *d, int timeout_ms,
			void (*fn)(void *ctx, const struct kprof_task_running *r), void *ctx)
{
	d->fn = fn;
	d->ctx = ctx;
	ring_buffer__poll(d->ring, timeout_ms);
}
