// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/record/summary.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "cmd/print/message.h"
#include "cmd/print/text.h"

#define MOST_GAPS 10 /* gaps that are listed individually */

/*
 * Two sources count the same losses: "agent" counts batches that found the ring full;
 * "device_activities" counts the records in them, and those that CUPTI or the agent itself lost.
 */
#define BATCHES "agent"
#define ACTIVITIES "device_activities"
#define WAITS "waits"

static bool is_of(const struct kprof_source *s, const char *name)
{
	return !strcmp(s->name, name);
}

static const struct kprof_source *find(const struct kprof_capture *c, const char *name)
{
	for (size_t i = 0; i < kprof_capture_info(c)->nr_sources; i++)
		if (is_of(kprof_capture_source(c, i), name))
			return kprof_capture_source(c, i);
	return NULL;
}

static uint64_t count_lost(const struct kprof_capture *c)
{
	uint64_t lost = 0;

	for (size_t i = 0; i < kprof_capture_info(c)->nr_sources; i++) {
		const struct kprof_source *s = kprof_capture_source(c, i);

		lost += s->missed + (is_of(s, BATCHES) ? 0 : s->dropped);
	}
	return lost;
}

static void print_samples(const struct kprof_session_stats *stats,
			  const struct kprof_capture_info *info)
{
	char time[TEXT_NUMBER_BYTES], cpu[TEXT_NUMBER_BYTES];

	message_note("%" PRIu64 " samples of %zu process%s in %s, for %s of CPU time",
		     stats->samples, info->nr_processes, info->nr_processes == 1 ? "" : "es",
		     text_time(time, info->end_mono_ns - info->start_mono_ns),
		     text_time(cpu, stats->sampled_ns));
	message_note("%.1f %% of their stacks are whole",
		     100.0 * (double)stats->samples_whole / (double)stats->samples);
}

static void print_waits(const struct kprof_capture *c)
{
	struct kprof_thread_time t;
	char off[TEXT_NUMBER_BYTES];
	uint64_t off_ns = 0;
	size_t nr = 0;
	int known;

	for (size_t i = 0; (known = kprof_capture_thread_time(c, i, &t)) >= 0; i++) {
		nr += known;
		off_ns += known ? t.runnable_ns + t.blocked_ns : 0;
	}
	if (!nr) {
		message_note("%" PRIu64 " waits", find(c, WAITS)->captured);
		return;
	}
	message_note("%" PRIu64 " waits; threads were off the CPU for %s in all",
		     find(c, WAITS)->captured, text_time(off, off_ns));
}

static void print_figures(const struct kprof_capture *c, const struct kprof_session_stats *stats)
{
	const struct kprof_capture_info *info = kprof_capture_info(c);
	char time[TEXT_NUMBER_BYTES], attach[TEXT_NUMBER_BYTES], detach[TEXT_NUMBER_BYTES];
	const struct kprof_source *device = find(c, ACTIVITIES);
	uint64_t begins = 0, exact = 0;

	for (size_t i = 0; i < info->nr_sources; i++) {
		begins += kprof_capture_source(c, i)->begins;
		exact += kprof_capture_source(c, i)->ends_exact;
	}
	if (stats->samples)
		print_samples(stats, info);
	if (info->events || !stats->samples)
		message_note("%" PRIu64 " events of %zu process%s and %zu thread%s in %s",
			     info->events, info->nr_processes, info->nr_processes == 1 ? "" : "es",
			     info->nr_threads, info->nr_threads == 1 ? "" : "s",
			     text_time(time, info->end_mono_ns - info->start_mono_ns));
	if (find(c, WAITS))
		print_waits(c);
	if (device && device->captured)
		message_note("%" PRIu64 " records of what GPUs did", device->captured);
	if (begins)
		message_note("%.2f %% of %" PRIu64 " spans have an exact end",
			     100.0 * (double)exact / (double)begins, begins);
	if (stats->detach_ns)
		message_note("attached in %s, detached in %s", text_time(attach, stats->attach_ns),
			     text_time(detach, stats->detach_ns));
	else
		message_note("attached in %s", text_time(attach, stats->attach_ns));
}

static void print_losses(const struct kprof_capture *c)
{
	for (size_t i = 0; i < kprof_capture_info(c)->nr_sources; i++) {
		const struct kprof_source *s = kprof_capture_source(c, i);

		if (s->dropped && is_of(s, ACTIVITIES))
			message_warn("a bigger --ring holds more; kprof.meta in the trace says who "
				     "lost how many",
				     "%" PRIu64 " of %" PRIu64
				     " records of what GPUs did were lost",
				     s->dropped, s->fired);
		else if (s->dropped && !is_of(s, BATCHES))
			message_warn("a bigger --ring holds more; --ops and --exclude record fewer",
				     "%s: %" PRIu64 " of %" PRIu64
				     " events were dropped: the ring buffer was full",
				     s->name, s->dropped, s->fired);
		if (s->missed)
			message_warn(
				"fewer operators (--ops, --exclude) or fewer tracers at once help",
				"%s: %" PRIu64 " probe hits were skipped by the kernel", s->name,
				s->missed);
	}
}

static void print_gaps(const struct kprof_capture *c)
{
	size_t nr = kprof_capture_info(c)->nr_gaps;
	char time[TEXT_NUMBER_BYTES];

	for (size_t i = 0; i < nr && i < MOST_GAPS; i++) {
		const struct kprof_gap *g = kprof_capture_gap(c, i);

		text_time(time, g->end_mono_ns - g->start_mono_ns);
		if (g->pid)
			message_note("not recorded: %s of process %d for %s: %s", g->what,
				     (int)g->pid, time, g->reason);
		else
			message_note("not recorded: %s for %s: %s", g->what, time, g->reason);
	}
	if (nr > MOST_GAPS)
		message_note("… and %zu gaps more: kprof report --json lists them", nr - MOST_GAPS);
}

uint64_t summary_print(const struct kprof_capture *c, const struct kprof_session_stats *stats,
		       bool samples_only, bool quiet)
{
	if (!quiet) {
		print_figures(c, stats);
		print_gaps(c);
	}
	print_losses(c);
	if (samples_only && !kprof_capture_info(c)->nr_samples && !find(c, WAITS))
		message_warn(
			"kprof dump -p PID shows where threads wait; a higher -F looks more often",
			"no samples: no thread was on a CPU when one was to be taken");
	return count_lost(c);
}
