// SPDX-License-Identifier: BSD-2-Clause
/* What the BPF programs have cost, and how they are told to cost less. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/probe/attach_impl.h"
#include "util/util.h"

#define FDINFO_BYTES (64 << 10)
#define MAP_BYTES_NS (10 * NSEC_PER_SEC) /* a reading of all maps serves for so long */

/*
 * Of each program, what it has cost on each CPU. All at once where the kernel can (commit
 * f008d732ab18, 5.13).
 */
static int read_costs(int fd, struct kprof_wire_cost *all, size_t nr_cpus)
{
	uint32_t keys[KPROF_WIRE_NR_PROGRAMS], nr = KPROF_WIRE_NR_PROGRAMS, next = 0;

	if (!bpf_map_lookup_batch(fd, NULL, &next, keys, all, &nr, NULL) &&
	    nr == KPROF_WIRE_NR_PROGRAMS)
		return 0;
	for (uint32_t i = 0; i < KPROF_WIRE_NR_PROGRAMS; i++)
		if (bpf_map_lookup_elem(fd, &i, &all[i * nr_cpus]))
			return -errno;
	return 0;
}

int attacher__costs(const struct attacher *a, struct kprof_wire_cost out[KPROF_WIRE_NR_PROGRAMS])
{
	size_t nr_cpus = (size_t)libbpf_num_possible_cpus(), nr = KPROF_WIRE_NR_PROGRAMS * nr_cpus;
	struct kprof_wire_cost *all = calloc(nr, sizeof(*all));
	int err = all ? read_costs(bpf_map__fd(a->skel->maps.costs), all, nr_cpus) : -ENOMEM;

	memset(out, 0, KPROF_WIRE_NR_PROGRAMS * sizeof(*out));
	for (size_t i = 0; i < nr && !err; i++) {
		out[i / nr_cpus].runs += all[i].runs;
		out[i / nr_cpus].measured += all[i].measured;
		out[i / nr_cpus].measured_ns += all[i].measured_ns;
	}
	free(all);
	return err;
}

static uint64_t bytes_of(int map_fd)
{
	char path[64], *text, *at;
	uint64_t bytes;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", map_fd);
	if (map_fd < 0 || read_file(path, FDINFO_BYTES, &text, NULL))
		return 0;
	at = strstr(text, "memlock:");
	bytes = at ? strtoull(at + strlen("memlock:"), NULL, 10) : 0;
	free(text);
	return bytes;
}

uint64_t attacher__map_bytes(struct attacher *a)
{
	uint64_t now_ns = clock_mono_ns(), sum = 0;
	struct bpf_map *map;

	if (a->map_bytes && now_ns < a->map_bytes_at_ns + MAP_BYTES_NS)
		return a->map_bytes;
	bpf_object__for_each_map(map, a->skel->obj)
	{
		if (bpf_map__autocreate(map))
			sum += bytes_of(bpf_map__fd(map));
	}
	a->map_bytes = sum;
	a->map_bytes_at_ns = now_ns;
	return sum;
}

/* A range may end, or have ended, while no hit is recorded: no thread is inside of one. */
static void leave_ranges(struct attacher *a, uint32_t shed)
{
	if (shed & KPROF_WIRE_SHED_HITS)
		attach_within_leave(a, 0);
}

void attacher__shed(struct attacher *a, uint32_t what)
{
	__atomic_fetch_or(&a->skel->bss->shed, what, __ATOMIC_SEQ_CST);
	leave_ranges(a, what);
}

void attacher__unshed(struct attacher *a, uint32_t what)
{
	__atomic_fetch_and(&a->skel->bss->shed, ~what, __ATOMIC_SEQ_CST);
	leave_ranges(a, what);
}

void attacher__sample_period(struct attacher *a, uint64_t period_ns)
{
	__atomic_store_n(&a->skel->bss->sample_period_ns, period_ns, __ATOMIC_SEQ_CST);
}
