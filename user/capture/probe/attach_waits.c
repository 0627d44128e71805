// SPDX-License-Identifier: BSD-2-Clause
#include "capture/probe/attach_waits.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/probe/attach_impl.h"
#include "kprof/wait.h"
#include "util/util.h"

/* Up to 4,000 stacks a second on each CPU, each of which takes some microseconds. */
#define STACK_NS (NSEC_PER_SEC / 4000)

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
	skel->rodata->wait_cost_ns = STACK_NS;
	return err;
}

/* The skeleton owns the links, and so ends what they begin. */
static int start(struct bpf_program *program, struct bpf_link **link)
{
	if (!bpf_program__autoload(program))
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

/* Reads the place with this number. -ENOENT: it is free, or has a thread that has another, too. */
static int wait_at(const struct attacher *a, uint32_t at, struct kprof_wait *out)
{
	uint32_t bucket = at / KPROF_WAIT_WAYS, way = at % KPROF_WAIT_WAYS;
	struct kprof_wait_bucket b;

	if (bpf_map_lookup_elem(bpf_map__fd(a->skel->maps.wait_buckets), &bucket, &b))
		return -errno;
	if (!b.tids[way] || b.tids[way] & KPROF_WAIT_TAKEN)
		return -ENOENT;
	for (uint32_t i = 0; i < way; i++)
		if (b.tids[i] == b.tids[way])
			return -ENOENT;
	return bpf_map_lookup_elem(bpf_map__fd(a->skel->maps.wait_threads), &at, out) ? -errno : 0;
}

int attacher__wait_of(const struct attacher *a, uint32_t tid, struct kprof_wait *out)
{
	uint32_t first = KPROF_WAIT_BUCKET(tid) * KPROF_WAIT_WAYS;

	for (uint32_t at = first; at < first + KPROF_WAIT_WAYS; at++)
		if (!wait_at(a, at, out) && (uint32_t)out->number == tid)
			return 0;
	return -ENOENT;
}

int attacher__wait_next(const struct attacher *a, uint32_t *at, struct kprof_wait *out)
{
	for (; *at < KPROF_WAIT_BUCKETS * KPROF_WAIT_WAYS; ++*at)
		if (!wait_at(a, *at, out)) {
			++*at;
			return 0;
		}
	return -ENOENT;
}

uint64_t attacher__waits_unseen(const struct attacher *a)
{
	return __atomic_load_n(&a->skel->bss->waits_unseen, __ATOMIC_RELAXED);
}

void attacher__stop_waits(struct attacher *a)
{
	attach_waits_stop(a->skel);
}

uint64_t attacher__waits_refused(const struct attacher *a)
{
	return __atomic_load_n(&a->skel->bss->waits_refused, __ATOMIC_RELAXED);
}
