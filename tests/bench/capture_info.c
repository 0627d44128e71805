// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the benchmarks ask of a capture, as one JSON line.
 *
 *   capture_info CAPTURE.kprof
 *
 * Times are CLOCK_MONOTONIC, which is also Python's time.monotonic_ns().
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kprof.h"

struct seen {
	uint64_t first_ns, last_ns; /* of all spans: earliest start, latest end */
};

static int on_event(void *ctx, const struct kprof_event *e)
{
	struct seen *seen = ctx;

	if (!seen->first_ns || e->start_mono_ns < seen->first_ns)
		seen->first_ns = e->start_mono_ns;
	if (e->end_mono_ns > seen->last_ns)
		seen->last_ns = e->end_mono_ns;
	return 0;
}

static uint64_t lost(const struct kprof_capture *c, size_t nr_sources)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < nr_sources; i++) {
		const struct kprof_source *s = kprof_capture_source(c, i);

		sum += s->dropped + s->missed;
	}
	return sum;
}

/* Records of the agent's. */
static uint64_t device_records(const struct kprof_capture *c, size_t nr_sources)
{
	for (size_t i = 0; i < nr_sources; i++)
		if (!strcmp(kprof_capture_source(c, i)->name, "device_activities"))
			return kprof_capture_source(c, i)->captured;
	return 0;
}

int main(int argc, char **argv)
{
	const struct kprof_capture_info *info;
	struct kprof_capture *c;
	struct seen seen = {0};
	int err;

	if (argc != 2) {
		fprintf(stderr, "usage: capture_info CAPTURE.kprof\n");
		return 2;
	}
	err = kprof_capture_open(argv[1], &c);
	if (err) {
		fprintf(stderr, "capture_info: %s\n", kprof_error_cause());
		return 1;
	}
	err = kprof_capture_events(c, on_event, &seen);
	info = kprof_capture_info(c);
	if (err)
		fprintf(stderr, "capture_info: %s\n", kprof_error_cause());
	else
		printf("{\"events\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"lost\": %" PRIu64
		       ", \"start_ns\": %" PRIu64 ", \"end_ns\": %" PRIu64
		       ", \"first_ns\": %" PRIu64 ", \"last_ns\": %" PRIu64
		       ", \"device_records\": %" PRIu64 ", \"stacks\": %s}\n",
		       info->events, info->size_bytes, lost(c, info->nr_sources),
		       info->start_mono_ns, info->end_mono_ns, seen.first_ns, seen.last_ns,
		       device_records(c, info->nr_sources),
		       kprof_capture_meta(c, "stacks") ? kprof_capture_meta(c, "stacks") : "null");
	kprof_capture_close(c);
	return err ? 1 : 0;
}
