// SPDX-License-Identifier: BSD-2-Clause
#include "capture/counter/counters.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/record/record.h"
#include "capture/span/spans.h"
#include "util/error.h"

struct counters {
	uint32_t nr, nr_cpus;
	bool of_cpus;
	struct counter at[KPROF_WIRE_MAX_COUNTERS];
	uint8_t sources[KPROF_WIRE_MAX_COUNTERS];
	uint32_t keys[KPROF_WIRE_MAX_COUNTERS]; /* string ids of the names */
	int events[]; /* descriptors, of counter i and CPU c at i × nr_cpus + c; -1: none */
};

static int cannot(const struct counter *c, int err)
{
	if (err == -EACCES || err == -EPERM)
		return error_set_machine(
			err,
			"run it as root, or with CAP_PERFMON; a container's seccomp profile may "
			"forbid perf_event_open",
			"the kernel does not allow counting '%s': %s", c->name, strerror(-err));
	if (err == -ENOSPC)
		return error_set_machine(
			err,
			"ask for fewer, or stop what else counts (the kernel's NMI watchdog, perf)",
			"the processor has no counter left for '%s': it cannot count so much at once",
			c->name);
	if (err == -EMFILE || err == -ENFILE)
		return error_set_machine(err, "ask for fewer counters",
					 "too many open files for '%s' on each CPU", c->name);
	return error_set_machine(
		err,
		"virtual machines mostly have none of the processor's counters; page-faults, "
		"context-switches, task-clock and others are on every machine: `kprof check` lists them",
		"this machine cannot count '%s': %s", c->name, strerror(-err));
}

/* Opens the event on each CPU. A CPU that is offline has none: no thread runs there. */
static int open_event(struct counters *c, uint32_t i)
{
	uint32_t opened = 0, refused = 0;
	int fd = -ENODEV, err = -ENODEV;

	for (uint32_t cpu = 0; cpu < c->nr_cpus; cpu++) {
		fd = counter_open(&c->at[i], (int)cpu);
		c->events[i * c->nr_cpus + cpu] = fd < 0 ? -1 : fd;
		opened += fd >= 0;
		refused += fd < 0 && fd != -ENODEV;
		if (fd < 0 && fd != -ENODEV)
			err = fd;
		if (fd == -EMFILE || fd == -ENFILE || fd == -ENOSPC)
			return cannot(&c->at[i], fd);
	}
	if (!opened)
		return cannot(&c->at[i], err);
	if (refused)
		log_warn("calls on these CPUs have no values", "%u of %u CPUs cannot count '%s'",
			 refused, opened + refused, c->at[i].name);
	return 0;
}

/* Says in the capture which counters there are. */
static int describe(struct counters *c, struct recorder *recorder)
{
	cJSON *names = cJSON_CreateArray();

	for (uint32_t i = 0; i < c->nr; i++) {
		c->keys[i] = recorder__string(recorder, c->at[i].name);
		cJSON_AddItemToArray(names, cJSON_CreateString(c->at[i].name));
	}
	return recorder__meta_value(recorder, "counters", names);
}

int counters__new(const char *names, struct recorder *recorder, struct counters **out)
{
	int cpus = libbpf_num_possible_cpus(), nr, err = 0;
	struct counter at[KPROF_WIRE_MAX_COUNTERS];
	struct counters *c;
	size_t events;

	nr = counters_parse(names, at);
	if (nr < 0 || cpus < 0)
		return nr < 0 ? nr : cpus;
	events = (size_t)nr * (size_t)cpus;
	c = calloc(1, sizeof(*c) + events * sizeof(c->events[0]));
	if (!c)
		return error_set(-ENOMEM, NULL, "out of memory for counters");
	c->nr = (uint32_t)nr;
	c->nr_cpus = (uint32_t)cpus;
	memcpy(c->at, at, sizeof(at[0]) * c->nr);
	for (size_t i = 0; i < events; i++)
		c->events[i] = -1;
	for (uint32_t i = 0; i < c->nr && !err; i++) {
		c->sources[i] = c->at[i].source;
		c->of_cpus |= KPROF_COUNTER_OF_CPU(c->sources[i]);
		if (c->sources[i] == KPROF_COUNTER_EVENT)
			err = open_event(c, i);
	}
	if (!err)
		err = describe(c, recorder);
	if (err) {
		counters__free(c);
		return err;
	}
	*out = c;
	return 0;
}

void counters__free(struct counters *c)
{
	if (!c)
		return;
	for (uint32_t i = 0; i < c->nr * c->nr_cpus; i++)
		if (c->events[i] >= 0)
			close(c->events[i]);
	free(c);
}

uint32_t counters__nr(const struct counters *c)
{
	return c ? c->nr : 0;
}

const uint8_t *counters__sources(const struct counters *c)
{
	return c ? c->sources : NULL;
}

uint32_t counters__cpus(const struct counters *c)
{
	return c && c->of_cpus ? c->nr_cpus : 0;
}

size_t counters__wire_bytes(const struct counters *c)
{
	return c ? sizeof(struct kprof_wire_counters) + c->nr * sizeof(uint64_t) : 0;
}

int counters__install(const struct counters *c, int map_fd)
{
	for (uint32_t i = 0; i < c->nr * c->nr_cpus; i++)
		if (c->events[i] >= 0 && bpf_map_update_elem(map_fd, &i, &c->events[i], 0))
			return cannot(&c->at[i / c->nr_cpus], -errno);
	return 0;
}

/* Does it count the ns in which the thread is on a CPU? */
static bool is_clock(const struct counter *c)
{
	return c->source == KPROF_COUNTER_CLOCK ||
	       (c->source == KPROF_COUNTER_EVENT && c->type == PERF_TYPE_SOFTWARE &&
		(c->config == PERF_COUNT_SW_CPU_CLOCK || c->config == PERF_COUNT_SW_TASK_CLOCK));
}

/*
 * An interrupt may come between the moment that counts as a span's end and the reading of its
 * counters. No span has more time on a CPU than it took.
 */
static uint64_t value_of(const struct counter *c, const struct span_end *end, uint64_t value)
{
	uint64_t took_ns = end->time_ns - end->begin_ns;

	return is_clock(c) && value > took_ns ? took_ns : value;
}

int counters__put(const struct counters *c, struct recorder *recorder, const struct span_end *end)
{
	struct store_attr attrs[KPROF_WIRE_MAX_COUNTERS];
	const uint64_t *from = end->at_begin, *to = end->at_end; /* the epoch, and the values */
	bool same_epoch;
	uint32_t nr = 0;

	if (!from || !to)
		return 0;
	same_epoch = from[0] && from[0] == to[0];
	for (uint32_t i = 0; i < c->nr; i++) {
		if (KPROF_COUNTER_OF_CPU(c->sources[i]) && !same_epoch)
			continue;
		if (to[1 + i] >= from[1 + i])
			attrs[nr++] = (struct store_attr){
				c->keys[i], STORE_ATTR_COUNT,
				value_of(&c->at[i], end, to[1 + i] - from[1 + i])};
	}
	return recorder__attrs(recorder, end->number, attrs, nr);
}
