// SPDX-License-Identifier: BSD-2-Clause
/* Counters that the BPF programs read at each hit. */
#include <bpf/libbpf.h>
#include <stdlib.h>

#include "capture/probe/attach_impl.h"

int attach_counters_prepare(struct attacher *a, const struct attacher_opts *opts)
{
	uint32_t events = opts->nr_counters * opts->counter_cpus;
	int err = bpf_program__set_autoload(a->skel->progs.kprof_count_switch, events > 0);

	a->skel->rodata->nr_counters = opts->nr_counters;
	a->skel->rodata->counter_cpus = opts->counter_cpus;
	for (uint32_t i = 0; i < opts->nr_counters; i++)
		a->skel->rodata->counter_sources[i] = opts->counters[i];
	if (!err)
		err = bpf_map__set_autocreate(a->skel->maps.counted_threads, events > 0);
	if (!err)
		err = bpf_map__set_autocreate(a->skel->maps.counter_events, events > 0);
	if (!err && events)
		err = bpf_map__set_max_entries(a->skel->maps.counter_events, events);
	return err;
}

int attacher__counter_events(const struct attacher *a)
{
	return bpf_map__fd(a->skel->maps.counter_events);
}
