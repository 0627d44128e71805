// SPDX-License-Identifier: BSD-2-Clause
/*
 * Perfetto's own format (protocol buffers). It shows everything that the Chrome trace shows in a
 * quarter of the bytes, and what JSON has no form for: typed values, tracks of devices, clocks,
 * samples with their stacks.
 *
 * Times are CLOCK_MONOTONIC, the trace's primary clock. Clock snapshots tie it to Unix time, which
 * the interface shows.
 */
#include "sink/perfetto/impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sink/sink.h"
#include "sink/write/write.h"
#include "util/error.h"
#include "util/util.h"

static Pf__ClockSnapshot__Clock *clock_at(Pf__ClockSnapshot__Clock *clock, uint32_t id, uint64_t ns)
{
	pf__clock_snapshot__clock__init(clock);
	clock->id = id;
	clock->timestamp = ns;
	return clock;
}

/*
 * Writes a reading of the clocks. The first packet also says which clock is the one of the packets'
 * times.
 */
static void put_clocks(struct pftrace *p, uint64_t mono_ns, bool first)
{
	Pf__Packet packet = PF__PACKET__INIT;
	Pf__Defaults defaults = PF__DEFAULTS__INIT;
	Pf__ClockSnapshot snapshot = PF__CLOCK_SNAPSHOT__INIT;
	Pf__ClockSnapshot__Clock clocks[4], *at[4];
	size_t nr = 0;

	at[nr] = clock_at(&clocks[nr], PF_CLOCK_MONOTONIC, mono_ns);
	nr++;
	at[nr] = clock_at(&clocks[nr], PF_CLOCK_REALTIME, timeline__real_ns(p->t, mono_ns));
	nr++;
	if (first) {
		at[nr] = clock_at(&clocks[nr], PF_CLOCK_DELTA, mono_ns);
		clocks[nr].has_is_incremental = clocks[nr].is_incremental = true;
		clocks[nr].has_unit_ns = true;
		clocks[nr].unit_ns = 1;
		nr++;
	}
	if (kprof_capture_meta(p->t, "waits")) { /* the clock of what CPUs ran */
		at[nr] = clock_at(&clocks[nr], PF_CLOCK_BOOTTIME,
				  mono_ns + timeline__waits_number(p->t, "suspended_ns"));
		nr++;
	}
	snapshot.clocks = at;
	snapshot.n_clocks = nr;
	snapshot.primary = PF_CLOCK_MONOTONIC;
	packet.clock_snapshot = &snapshot;
	if (first) {
		packet.sequence_flags = PF_STATE_CLEARED;
		defaults.timestamp_clock = PF_CLOCK_DELTA;
		packet.defaults = &defaults;
		p->clock_ns = mono_ns;
	}
	pf_packet(p, &packet);
}

/* A text from the metadata, freed with the packet; NULL: the capture does not have it. */
static char *meta_text(struct pftrace *p, const char *key)
{
	char *text = timeline__meta_text(p->t, key);

	return text ? pf_text(p, pf_own(p, text)) : NULL;
}

/* The release in a text such as "Linux 6.1.0-13-amd64 x86_64". */
static char *kernel_release(struct pftrace *p)
{
	char *text = meta_text(p, "kernel");
	const char *release = text ? strchr(text, ' ') : NULL;

	if (!release)
		return text;
	release++;
	return pf_own(p, strndup(release, strcspn(release, " ")));
}

static void put_system(struct pftrace *p)
{
	Pf__Packet packet = PF__PACKET__INIT;
	Pf__SystemInfo system = PF__SYSTEM_INFO__INIT;
	Pf__SystemInfo__Names names = PF__SYSTEM_INFO__NAMES__INIT;

	names.sysname = (char *)"Linux";
	names.release = kernel_release(p);
	system.names = &names;
	system.machine = meta_text(p, "host");
	packet.system_info = &system;
	pf_packet(p, &packet);
}

/* ---- metadata of the recording ---- */

static int text_write(void *ctx, const void *data, size_t bytes)
{
	if (fwrite(data, 1, bytes, ctx) == bytes)
		return 0;
	return error_set(-ENOMEM, NULL, "no memory for the trace's metadata");
}

static int account(struct trace *tr, struct jsonw *w)
{
	trace__account(tr, w);
	return 0;
}

/* What whoever recorded gave the trace. */
static int given_metadata(struct trace *tr, struct jsonw *w)
{
	const char *key, *json;
	size_t at = 0;

	for (bool first = true; (key = trace__metadata(tr, &at, &json)); first = false) {
		jsonw__text_string(w, first ? "{" : ", ", key);
		jsonw__text(w, ": ");
		jsonw__text(w, json);
	}
	jsonw__text(w, "}");
	return 0;
}

/* Adds an annotation with the JSON that fn writes. */
static void arg_written(struct pftrace *p, const char *key,
			int (*fn)(struct trace *tr, struct jsonw *w))
{
	char *text = NULL;
	size_t bytes;
	FILE *to = open_memstream(&text, &bytes);
	struct jsonw w;

	if (!to || jsonw__init(&w, text_write, to)) {
		pf_no_memory(p);
	} else {
		p->err = p->err ? p->err : fn(&p->tr, &w);
		p->err = p->err ? p->err : jsonw__flush(&w);
		jsonw__fini(&w);
	}
	if (to && fclose(to))
		pf_no_memory(p);
	if (text)
		pf_arg_json(p, key, pf_own(p, text));
}

/*
 * Writes the window, which spans every slice that was written. Its annotations are what a Chrome
 * trace has in its head.
 */
static void put_recording(struct pftrace *p)
{
	static const char *const metas[] = {"host", "trace_id", "cupti_version",
					    "cuda_runtime_version", "cuda_driver_version"};
	uint64_t track = pf_other_track(p, "kprof");
	const char *name, *json;

	pf_event(p, PF_BEGIN, track);
	pf_category(p, "Trace");
	name = meta_text(p, "trace_name");
	pf_name(p, name && *name ? name : "Recording");
	pf_arg_u64(p, "Op count", p->slices);
	pf_arg_bool(p, "complete", kprof_capture_info(p->t)->complete);
	if (trace__metadata(&p->tr, &(size_t){0}, &json))
		arg_written(p, "metadata", given_metadata);
	arg_written(p, "kprof", account);
	arg_written(p, "distributedInfo", trace__distributed);
	arg_written(p, "deviceProperties", trace__device_properties);
	for (size_t i = 0; i < ARRAY_SIZE(metas); i++) {
		const char *json = kprof_capture_meta(p->t, metas[i]);

		if (json)
			pf_arg_json(p, metas[i], json);
	}
	pf_put(p, p->first_ns);
	pf_event(p, PF_END, track);
	pf_put(p, p->last_ns);
}

/* ---- the whole ---- */

static int write_trace(struct pftrace *p)
{
	uint64_t start_ns, end_ns;
	int err = trace__open(&p->tr);

	if (err)
		return err;
	p->corr = p->tr.corr;
	timeline__extent(p->t, &start_ns, &end_ns);
	p->tr.base_real_ns = timeline__real_ns(p->t, start_ns) - start_ns;
	p->first_ns = start_ns;
	p->last_ns = end_ns;
	/*
	 * Calls without spans are drawn among a thread's spans, and may end together with one: ends
	 * then need names, to say which of the two they end.
	 */
	p->named_ends =
		correlate__counts(p->corr)->calls_drawn != 0 || kprof_capture_meta(p->t, "waits");
	put_clocks(p, start_ns, true);
	put_system(p);
	pf_tracks(p);
	pf_early_ends(p);
	err = p->err ? p->err : pf_waits_ends(p);
	if (!err)
		err = pf_spans(p);
	if (!err)
		err = pf_details(p);
	if (!err)
		err = pf_waits(p);
	if (!err)
		err = pf_sched(p);
	if (!err)
		err = pf_samples(p);
	if (err)
		return err;
	put_recording(p);
	put_clocks(p, end_ns, false);
	return p->err;
}

static int pftrace_write(struct kprof_capture *t, const char *path,
			 const struct kprof_export_opts *opts)
{
	struct pftrace *p = calloc(1, sizeof(*p));
	size_t len = strlen(path);
	bool gzip = len > 3 && !strcmp(path + len - 3, ".gz");
	int err;

	if (!p)
		return error_set(-ENOMEM, NULL, "no memory to write %s", path);
	p->t = t;
	p->opts = opts;
	p->tr.t = t;
	p->tr.opts = opts;
	p->names.nr = p->api_names.nr = p->demangled.nr = p->wait_names.nr = &p->nr_names;
	p->categories.nr = &p->nr_categories;
	p->keys.nr = &p->nr_keys;
	p->strings.nr = &p->nr_strings;
	err = stream__start(path, opts, gzip, &p->w);
	if (!err)
		err = stream__end(&p->w, write_trace(p));
	pf_free(p);
	trace__close(&p->tr);
	free(p);
	return err;
}

const struct sink_ops sink_pftrace = {
	.name = "perfetto",
	.suffixes = {".pftrace", ".pftrace.gz"},
	.write = pftrace_write,
};
