// SPDX-License-Identifier: BSD-2-Clause
#include "capture/probe/attach_waits.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/probe/attach_impl.h"
#include "kprof/wait.h"
#include "util/util.h"

/* Stacks of waits take so much of each CPU at most, which is 4,000 a second (bpf/wait_stacks.h). */
#define MOST_STACKS_SHARE 0.08
#define LEAST_STACKS_SHARE 0.00001

/* Where all waits are recorded, however short, the longer ones are still those that matter. */
#define LONG_NS (NSEC_PER_MSEC / 10)

/* Does the kernel tell the address of one of these variables? */
static bool tells_interrupts(void)
{
	static const char *const names[] = {" __preempt_count\n", " pcpu_hot\n"};
	FILE *f = fopen("/proc/kallsyms", "re");
	char *line = NULL;
	bool found = false;
	size_t room = 0;

	while (f && !found && getline(&line, &room, f) > 0)
		for (size_t i = 0; i < ARRAY_SIZE(names); i++)
			found |= strstr(line, names[i]) != NULL;
	free(line);
	if (f)
		fclose(f);
	return found;
}

static uint32_t price_of(double share)
{
	return (uint32_t)(1 / fmin(fmax(share, LEAST_STACKS_SHARE), MOST_STACKS_SHARE));
}

int attach_waits_prepare(struct kprof_bpf *skel, const struct attacher_opts *opts)
{
	bool interrupts = opts->waits && tells_interrupts();
	struct {
		struct bpf_program *program;
		bool load;
	} programs[] = {
		{skel->progs.kprof_wait_switch, opts->waits},
		{skel->progs.kprof_wait_waking, opts->waits && interrupts},
		{skel->progs.kprof_wait_waking_plain, opts->waits && !interrupts},
		{skel->progs.kprof_wait_exit, opts->waits},
		{skel->progs.kprof_wait_exec, opts->waits},
	};
	struct bpf_map *maps[] = {skel->maps.wait_threads, skel->maps.wait_buckets,
				  skel->maps.wait_credits, skel->maps.wait_scratch};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(programs) && !err; i++) {
		bpf_program__set_autoattach(programs[i].program, false);
		err = bpf_program__set_autoload(programs[i].program, programs[i].load);
	}
	for (size_t i = 0; i < ARRAY_SIZE(maps) && !err; i++)
		err = bpf_map__set_autocreate(maps[i], opts->waits);
	skel->rodata->wait_min_ns = opts->min_wait_ns;
	skel->rodata->wait_long_ns = opts->min_wait_ns ? opts->min_wait_ns : LONG_NS;
	skel->bss->wait_price =
		price_of(opts->wait_stacks > 0 ? opts->wait_stacks : MOST_STACKS_SHARE);
	return err;
}

#define BUCKETS_BYTES (KPROF_WAIT_BUCKETS * sizeof(struct kprof_wait_bucket))

int attach_waits_map(struct attacher *a)
{
	const struct bpf_map *map = a->skel->maps.wait_buckets;
	void *at;

	if (!bpf_map__autocreate(map))
		return 0;
	at = mmap(NULL, BUCKETS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
	if (at == MAP_FAILED)
		return -errno;
	a->wait_buckets = at;
	return 0;
}

void attach_waits_unmap(struct attacher *a)
{
	if (a->wait_buckets)
		munmap(a->wait_buckets, BUCKETS_BYTES);
	a->wait_buckets = NULL;
}

/* A wait's place that is being changed is read again: at once, then with rests. */
#define WHOLE_TRIES_AT_ONCE 8
#define WHOLE_TRIES 40
#define WHOLE_REST_US 100

/* The skeleton owns the links, and so ends what they begin. */
static int start(struct bpf_program *program, struct bpf_link **link)
{
	if (*link || !bpf_program__autoload(program))
		return 0;
	*link = bpf_program__attach(program);
	return *link ? 0 : -errno;
}

/*
 * Of a tracepoint's programs, those run first that were attached first. At an exit, the program
 * that tells of the process's end takes it from the targets: so these come before all others.
 */
int attach_waits_start(struct kprof_bpf *skel)
{
	int err = start(skel->progs.kprof_wait_exit, &skel->links.kprof_wait_exit);

	if (!err)
		err = start(skel->progs.kprof_wait_exec, &skel->links.kprof_wait_exec);
	if (!err)
		err = start(skel->progs.kprof_wait_waking, &skel->links.kprof_wait_waking);
	if (!err)
		err = start(skel->progs.kprof_wait_waking_plain,
			    &skel->links.kprof_wait_waking_plain);
	if (!err)
		err = start(skel->progs.kprof_wait_switch, &skel->links.kprof_wait_switch);
	return err;
}

static void stop(struct bpf_link **link)
{
	bpf_link__destroy(*link);
	*link = NULL;
}

void attach_waits_stop(struct kprof_bpf *skel)
{
	stop(&skel->links.kprof_wait_switch);
	stop(&skel->links.kprof_wait_waking);
	stop(&skel->links.kprof_wait_waking_plain);
}

/* ---- while it records ---- */

void attacher__wait_source(struct attacher *a, uint32_t source)
{
	__atomic_store_n(&a->skel->bss->wait_source, source, __ATOMIC_SEQ_CST);
}

void attacher__wait_stack_source(struct attacher *a, uint32_t source)
{
	__atomic_store_n(&a->skel->bss->wait_stack_source, source, __ATOMIC_SEQ_CST);
}

void attacher__wait_window(struct attacher *a, uint64_t from_ns, uint64_t until_ns)
{
	__atomic_store_n(&a->skel->bss->waits_from_ns, from_ns, __ATOMIC_SEQ_CST);
	__atomic_store_n(&a->skel->bss->waits_until_ns, until_ns, __ATOMIC_SEQ_CST);
}

void attacher__wait_stacks(struct attacher *a, double share)
{
	__atomic_store_n(&a->skel->bss->wait_price, price_of(share), __ATOMIC_RELAXED);
}

/* While anything of it changes, the three sums are not all of its time (bpf/waits.h). */
static bool is_whole(const struct kprof_wait *w)
{
	return w->on_ns + w->runnable_ns + w->blocked_ns == w->since_ns - w->start_ns;
}

/* Its end may have been read later than its begin. A wait that goes on is the last change. */
static bool is_of_one_time(const struct kprof_wait *w)
{
	return (w->state == KPROF_WAIT_RUNS) == (w->since_ns > w->off_ns) ||
	       w->since_ns == w->start_ns;
}

/*
 * Reads one while the kernel's programs may be changing it. -EAGAIN: it is being changed all the
 * time, as where a virtual CPU has been stopped meanwhile.
 */
static int read_whole(int fd, uint32_t at, struct kprof_wait *out)
{
	for (int i = 0; i < WHOLE_TRIES; i++) {
		if (bpf_map_lookup_elem(fd, &at, out))
			return -errno;
		if (is_whole(out) && is_of_one_time(out))
			return 0;
		if (i >= WHOLE_TRIES_AT_ONCE)
			usleep(WHOLE_REST_US);
	}
	return is_whole(out) ? 0 : -EAGAIN;
}

/* Which threads it has now: the kernel's programs change it at any time. */
static struct kprof_wait_bucket copy_of(const struct kprof_wait_bucket *from)
{
	struct kprof_wait_bucket b;

	for (uint32_t way = 0; way < KPROF_WAIT_WAYS; way++)
		b.tids[way] = __atomic_load_n(&from->tids[way], __ATOMIC_RELAXED);
	return b;
}

/* A thread may have a second place for a moment: the first one counts. */
static bool is_in_way(const struct kprof_wait_bucket *b, uint32_t way)
{
	if (!b->tids[way] || b->tids[way] & KPROF_WAIT_TAKEN)
		return false;
	for (uint32_t i = 0; i < way; i++)
		if (b->tids[i] == b->tids[way])
			return false;
	return true;
}

int attacher__wait_of(const struct attacher *a, uint32_t tid, struct kprof_wait *out)
{
	uint32_t bucket = KPROF_WAIT_BUCKET(tid);
	struct kprof_wait_bucket b = copy_of(&a->wait_buckets[bucket]);

	for (uint32_t way = 0; way < KPROF_WAIT_WAYS; way++)
		if (b.tids[way] == tid)
			return read_whole(bpf_map__fd(a->skel->maps.wait_threads),
					  bucket * KPROF_WAIT_WAYS + way, out);
	return -ENOENT;
}

int attacher__wait_each(const struct attacher *a,
			int (*fn)(void *ctx, struct kprof_wait *w, uint64_t before_ns), void *ctx)
{
	int fd = bpf_map__fd(a->skel->maps.wait_threads), err = 0;

	for (uint32_t bucket = 0; bucket < KPROF_WAIT_BUCKETS && !err; bucket++) {
		struct kprof_wait_bucket b = copy_of(&a->wait_buckets[bucket]);

		for (uint32_t way = 0; way < KPROF_WAIT_WAYS && !err; way++) {
			struct kprof_wait w;
			uint64_t before_ns;

			if (!is_in_way(&b, way))
				continue;
			before_ns = clock_mono_ns();
			if (!read_whole(fd, bucket * KPROF_WAIT_WAYS + way, &w))
				err = fn(ctx, &w, before_ns);
		}
	}
	return err;
}

uint64_t attacher__waits_unseen(const struct attacher *a)
{
	return __atomic_load_n(&a->skel->bss->waits_unseen, __ATOMIC_RELAXED);
}

void attacher__stop_waits(struct attacher *a)
{
	attach_waits_stop(a->skel);
}

int attacher__start_waits(struct attacher *a)
{
	int err;

	/* ends of threads were not counted meanwhile: the table has those that are no more */
	memset(a->wait_buckets, 0, BUCKETS_BYTES);
	err = attach_waits_start(a->skel);
	if (err) /* some may have been attached */
		attach_waits_stop(a->skel);
	return err;
}

uint64_t attacher__waits_refused(const struct attacher *a)
{
	return __atomic_load_n(&a->skel->bss->waits_refused, __ATOMIC_RELAXED);
}
