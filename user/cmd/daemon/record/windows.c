// SPDX-License-Identifier: BSD-2-Clause
/*
 * Device windows: a recording of seconds, now and then, of what devices do. Each is a process of
 * its own, and one capture. They begin at random times: so those of many machines do not begin
 * together, and none falls into step with a program. One that costs more than its share of what was
 * asked for is paid for by a longer pause.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>

#include "cmd/daemon/daemon.h"
#include "cmd/daemon/record/windows.h"
#include "cmd/print/json_get.h"
#include "cmd/print/text.h"
#include "kprof/overhead.h"

#define SECOND_NS 1000000000ull
#define TOO_LONG_NS (90 * SECOND_NS)     /* a window may take so long to begin and end */
#define MOST_PAUSE_NS (3600 * SECOND_NS) /* whatever one has cost */
#define MOST_SAID 16                     /* messages that are not said window after window */

struct windows {
	struct windows_opts opts;
	struct child child;
	struct chunks_job job;
	cJSON *stats;
	bool recording, stored, failed, stopped, ending;
	bool sees;                           /* the last one that came to its end is stored */
	uint64_t begun_ns, next_ns;          /* the last window's begin; the next one's */
	uint64_t pause_ns, cost_ns;          /* after the last one; that one's cost */
	double base;                         /* CPUs that the share was of meanwhile */
	uint64_t all_cost_ns, all_begins_ns; /* of all; what their statistics do not say */
	uint64_t nr, nothing, nr_failed, chunk_bytes, events, dropped;
	uint64_t first_ns, next_trim_ns;
	struct shelf shelf;
	uint64_t said[MOST_SAID];
	size_t nr_said;
};

/* ---- when ---- */

uint64_t windows_pause(const struct windows_opts *opts, uint64_t cost_ns, double base)
{
	double paid_ns = (double)cost_ns / (opts->share * (base > 1 ? base : 1));

	if (paid_ns > (double)MOST_PAUSE_NS)
		paid_ns = (double)MOST_PAUSE_NS;
	return paid_ns > (double)opts->every_ns ? (uint64_t)paid_ns : opts->every_ns;
}

uint64_t windows_jitter(uint64_t pause_ns, uint32_t random)
{
	return pause_ns / 4 * 3 + (uint64_t)((double)pause_ns / 2 * random / UINT32_MAX);
}

static uint32_t any_number(void)
{
	uint32_t n = 0;

	if (getrandom(&n, sizeof(n), GRND_NONBLOCK) != sizeof(n))
		n = (uint32_t)now_ns(CLOCK_MONOTONIC);
	return n;
}

/* ---- what the window says ---- */

/* False: it was said before, in one of the last windows. */
static bool is_news(struct windows *w, const char *text)
{
	uint64_t hash = text_hash(text);

	for (size_t i = 0; i < MOST_SAID; i++)
		if (w->said[i] == hash)
			return false;
	w->said[w->nr_said++ % MOST_SAID] = hash;
	return true;
}

static void say(struct windows *w, const char *level, const char *text, const char *hint)
{
	cJSON *fields;

	if (!is_news(w, text))
		return;
	fields = cJSON_CreateObject();
	cJSON_AddStringToObject(fields, "recorder", w->child.name);
	if (hint)
		cJSON_AddStringToObject(fields, "hint", hint);
	log_line(level, "recorder", fields, "%s", text);
}

static void on_message(void *ctx, const cJSON *m)
{
	struct windows *w = ctx;
	const cJSON *stats = cJSON_GetObjectItemCaseSensitive(m, "stats");
	const char *chunk = json_text(m, "chunk"), *error = json_text(m, "error");
	const char *state = json_text(m, "state");

	if (stats) {
		cJSON_Delete(w->stats);
		w->stats = cJSON_Duplicate(stats, true);
	}
	if (chunk) {
		w->stored = true;
		w->chunk_bytes += (uint64_t)json_number(m, "bytes");
		shelf__note(&w->shelf, chunk);
		w->opts.stored(w->opts.ctx, chunk);
	}
	if (json_text(m, "log"))
		say(w, "warning", json_text(m, "log"), json_text(m, "hint"));
	if (state && !strcmp(state, "recording"))
		w->recording = true;
	if (error) {
		w->failed = true;
		say(w, "error", error, json_text(m, "hint"));
	}
}

/* ---- what it costs ---- */

/* CPU time of this process is known by itself; that in others by what the window says. */
static void count_cost(struct windows *w)
{
	const cJSON *parts = cJSON_GetObjectItemCaseSensitive(w->stats, "cost_part_ns");
	uint64_t told_ns = 0, others_ns = 0;

	for (int i = 0; i < KPROF_OVERHEAD_PARTS; i++) {
		double ns = cJSON_GetNumberValue(cJSON_GetArrayItem(parts, i));
		bool own = i == KPROF_OVERHEAD_OWN || i == KPROF_OVERHEAD_HELPERS;

		*(own ? &told_ns : &others_ns) += ns > 0 && ns < 1e18 ? (uint64_t)ns : 0;
	}
	w->cost_ns = w->child.cpu_ns + others_ns;
	w->all_cost_ns += w->cost_ns;
	w->all_begins_ns += w->child.cpu_ns > told_ns ? w->child.cpu_ns - told_ns : 0;
}

static void on_end(void *ctx, int status)
{
	struct windows *w = ctx;
	double elapsed_ns = json_number(w->stats, "elapsed_ns");

	w->base = elapsed_ns > 0 ? json_number(w->stats, "cost_base_ns") / elapsed_ns : 1;
	count_cost(w);
	w->failed |= status != 0; /* what it said of that may have been lost */
	w->nr += w->stored;
	w->nothing += !w->stored && !w->failed && !w->stopped;
	if (w->stored || !w->stopped)
		w->sees = w->stored;
	w->nr_failed += w->failed;
	w->events += (uint64_t)json_number(w->stats, "events");
	w->dropped += (uint64_t)json_number(w->stats, "dropped");
	if (WIFSIGNALED(status))
		say(w, "error", "a device window was ended by a signal", NULL);
	w->pause_ns = windows_pause(&w->opts, w->cost_ns, w->base);
	w->next_ns = w->begun_ns + windows_jitter(w->pause_ns, any_number());
	/* the rest is for who looks at it once a second: its maps are gone */
	cJSON_DeleteItemFromObjectCaseSensitive(w->stats, "kernel_bytes");
	cJSON_DeleteItemFromObjectCaseSensitive(w->stats, "unwind_bytes");
}

/* ---- one after the other ---- */

static void begin(struct windows *w, uint64_t now)
{
	w->begun_ns = w->next_ns > now ? w->next_ns : now;
	w->recording = w->stored = w->failed = w->stopped = false;
	cJSON_Delete(w->stats);
	w->stats = NULL;
	w->job = (struct chunks_job){
		.folder = w->opts.folder,
		.chunk_ns = w->opts.window_ns,
		.session = w->opts.session,
		.once_ns = w->begun_ns,
	};
	w->child = (struct child){
		.name = "kprof-device",
		.message = on_message,
		.ended = on_end,
		.ctx = w,
	};
	if (child__start(w->opts.loop, &w->child, chunks_run, &w->job))
		w->next_ns = now + w->opts.every_ns;
}

static void stop_window(struct windows *w)
{
	cJSON *m;

	if (!w->child.pid || w->stopped)
		return;
	w->stopped = true;
	m = cJSON_CreateObject();
	cJSON_AddStringToObject(m, "do", "stop");
	child__send(&w->child, m);
}

void windows__tend(struct windows *w, uint64_t now)
{
	if (w->child.pid && now > w->begun_ns + w->opts.window_ns + TOO_LONG_NS)
		kill(w->child.pid, SIGKILL);
	if (!w->child.pid && !w->ending && now + SECOND_NS >= w->next_ns)
		begin(w, now);
	if (now < w->next_trim_ns)
		return;
	w->next_trim_ns = now + 10 * SECOND_NS;
	if (shelf__trim(&w->shelf, w->opts.folder, w->opts.keep_ns, w->opts.keep_bytes,
			w->opts.min_free))
		w->next_trim_ns = now;
}

/*
 * Of many daemons that begin together, the first windows are spread over the time between two. The
 * last one, if there was one, is paid for all the same.
 */
static void begin_anew(struct windows *w)
{
	uint64_t paid_ns;

	w->ending = false;
	w->pause_ns = windows_pause(&w->opts, w->cost_ns, w->base);
	w->next_ns = now_ns(CLOCK_MONOTONIC) +
		     (uint64_t)((double)w->opts.every_ns * any_number() / UINT32_MAX);
	paid_ns = w->begun_ns ? w->begun_ns + w->pause_ns : 0;
	if (w->next_ns < paid_ns)
		w->next_ns = paid_ns;
}

int windows__new(const struct windows_opts *opts, struct windows **out)
{
	int err = folder_make(opts->folder, 0700);
	struct windows *w = err ? NULL : calloc(1, sizeof(*w));

	if (!w)
		return err ? err : -ENOMEM;
	w->opts = *opts;
	w->first_ns = now_ns(CLOCK_MONOTONIC);
	begin_anew(w);
	*out = w;
	return 0;
}

void windows__free(struct windows *w)
{
	if (!w)
		return;
	cJSON_Delete(w->stats);
	shelf__free(&w->shelf);
	free(w);
}

void windows__change(struct windows *w, const struct windows_opts *opts)
{
	stop_window(w);
	w->opts = *opts;
	begin_anew(w);
}

void windows__stop(struct windows *w)
{
	if (!w)
		return;
	w->ending = true;
	stop_window(w);
}

bool windows__go_on(const struct windows *w)
{
	return w && (!w->ending || w->child.pid);
}

bool windows__now(const struct windows *w)
{
	return w && w->child.pid;
}

bool windows__see(const struct windows *w)
{
	return windows__go_on(w) && w->sees;
}

const cJSON *windows__stats(const struct windows *w)
{
	return w ? w->stats : NULL;
}

uint64_t windows__begin_ns(const struct windows *w)
{
	return w->all_begins_ns;
}

/* ---- for people and metrics ---- */

cJSON *windows__state(const struct windows *w)
{
	const cJSON *now_stats = w->child.pid ? w->stats : NULL;
	cJSON *o = cJSON_CreateObject();
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	const struct {
		const char *name;
		uint64_t value;
	} numbers[] = {
		{"pid", (uint64_t)w->child.pid},
		{"window_ns", w->opts.window_ns},
		{"every_ns", w->opts.every_ns},
		{"pause_ns", w->pause_ns},
		{"next_in_ns", !w->child.pid && w->next_ns > now ? w->next_ns - now : 0},
		{"chunks", w->nr},
		{"without_devices", w->nothing},
		{"cost_ns", w->cost_ns},
		{"all_cost_ns", w->all_cost_ns},
		{"chunk_bytes", w->chunk_bytes},
		{"chunks_removed", w->shelf.removed},
		{"bytes_removed", w->shelf.removed_bytes},
		{"chunks_not_stored", w->nr_failed},
		{"stored_files", w->shelf.sums.files},
		{"stored_bytes", w->shelf.sums.bytes},
		{"events", w->events + (uint64_t)json_number(now_stats, "events")},
		{"dropped", w->dropped + (uint64_t)json_number(now_stats, "dropped")},
	};

	cJSON_AddStringToObject(o, "state",
				w->child.pid && w->recording ? "recording"
				: w->child.pid               ? "beginning"
							     : "waiting");
	cJSON_AddStringToObject(o, "folder", w->opts.folder);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		cJSON_AddNumberToObject(o, numbers[i].name, (double)numbers[i].value);
	cJSON_AddNumberToObject(o, "max_share", w->opts.share);
	cJSON_AddNumberToObject(o, "cost_share",
				(double)w->all_cost_ns / (double)(now - w->first_ns + 1));
	if (now_stats)
		cJSON_AddItemToObject(o, "now", cJSON_Duplicate(now_stats, true));
	return o;
}
