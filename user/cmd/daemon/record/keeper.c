// SPDX-License-Identifier: BSD-2-Clause
/*
 * Keeps a recording of chunks going: begins its process, replaces it by another that takes over
 * where it has grown, begins it anew where it has died, and removes what is old.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "cmd/daemon/daemon.h"
#include "cmd/print/json_get.h"

#define SECOND_NS 1000000000ull
#define LEAST_PAUSE_NS SECOND_NS /* before it is begun anew; doubled each time */
#define MOST_PAUSE_NS (60 * SECOND_NS)
#define GOOD_NS (60 * SECOND_NS) /* after so long a life, the pause is the least again */
#define HAND_OVER_NS (30 * SECOND_NS)
#define TRIM_NS (10 * SECOND_NS)
#define MOST_WAITERS 16
#define CUT_NS (30 * SECOND_NS) /* then those who wait get what is stored without it */

/* A process that records. Two at most live: one that takes over, and the one before. */
struct life {
	struct keeper *keeper;
	struct child child;
	struct chunks_job job;
	bool recording, stopped;
	bool asked; /* to write what it has: somebody waits for that */
	uint64_t begun_ns;
	cJSON *stats;
};

struct keeper {
	struct keeper_opts opts;
	struct shelf shelf;
	struct life *life, *before;
	uint64_t pause_ns, again_ns; /* 0: it is not to be begun */
	uint64_t next_trim_ns;
	uint64_t restarts, chunks, chunk_bytes, not_stored;
	uint64_t samples, events, dropped; /* of processes before */
	bool ending;
	bool held;
	bool changed; /* it is to begin anew, with other options */
	struct {
		void (*done)(void *ctx);
		void *ctx;
	} waiting[MOST_WAITERS];
	size_t nr_waiting;
	uint64_t wait_until_ns;
};

/* ---- the recorders ---- */

static void tell_waiting(struct keeper *k)
{
	size_t nr = k->nr_waiting;

	k->nr_waiting = 0;
	for (size_t i = 0; i < nr; i++)
		k->waiting[i].done(k->waiting[i].ctx);
}

static void stop_life(struct life *l)
{
	cJSON *m;

	if (!l || l->stopped)
		return;
	l->stopped = true;
	m = cJSON_CreateObject();
	cJSON_AddStringToObject(m, "do", "stop");
	child__send(&l->child, m);
}

static void on_state(struct life *l, const char *state, const cJSON *m)
{
	struct keeper *k = l->keeper;
	const char *error = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(m, "error"));
	const char *hint = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(m, "hint"));
	cJSON *fields = cJSON_CreateObject();

	cJSON_AddStringToObject(fields, "recorder", k->opts.name);
	cJSON_AddNumberToObject(fields, "pid", l->child.pid);
	if (hint)
		cJSON_AddStringToObject(fields, "hint", hint);
	if (!strcmp(state, "recording")) {
		l->recording = true;
		log_line("info", "recording", fields, "the %s records", k->opts.name);
		stop_life(k->before);
	} else if (!strcmp(state, "failed")) {
		log_line("error", "failed", fields, "the %s has failed: %s", k->opts.name,
			 error ? error : "it did not say why");
	} else {
		k->not_stored += !strcmp(state, "not_stored");
		cJSON_Delete(fields);
	}
	if (!strcmp(state, "not_stored"))
		tell_waiting(k);
}

static void on_asked(const struct keeper *k, const cJSON *m)
{
	if (json_number(m, "asked") > 0 && k->opts.asked)
		k->opts.asked(k->opts.ctx, (uint64_t)json_number(m, "asked"),
			      (int)json_number(m, "signal"), (pid_t)json_number(m, "pid"),
			      (uid_t)json_number(m, "uid"));
}

static void on_message(void *ctx, const cJSON *m)
{
	struct life *l = ctx;
	struct keeper *k = l->keeper;
	const char *state = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(m, "state"));
	const char *log = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(m, "log"));
	cJSON *stats = cJSON_GetObjectItemCaseSensitive(m, "stats");

	if (stats) {
		cJSON_Delete(l->stats);
		l->stats = cJSON_Duplicate(stats, true);
	}
	if (cJSON_GetObjectItemCaseSensitive(m, "chunk")) {
		const char *path =
			cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(m, "chunk"));

		k->chunks++;
		if (path)
			shelf__note(&k->shelf, path);
		if (path && k->opts.stored)
			k->opts.stored(k->opts.ctx, path);
		k->chunk_bytes += (uint64_t)json_number(m, "bytes");
		if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(m, "asked")))
			tell_waiting(k);
	}
	on_asked(k, m);
	if (log) {
		cJSON *fields = cJSON_CreateObject();

		cJSON_AddStringToObject(fields, "recorder", k->opts.name);
		log_line("warning", "recorder", fields, "%s", log);
	}
	if (state)
		on_state(l, state, m);
}

static void free_life(struct life *l)
{
	if (!l)
		return;
	cJSON_Delete(l->stats);
	free(l);
}

static void on_end(void *ctx, int status)
{
	struct life *l = ctx;
	struct keeper *k = l->keeper;
	bool current = k->life == l;
	uint64_t now = now_ns(CLOCK_MONOTONIC);

	k->samples += (uint64_t)json_number(l->stats, "samples");
	k->events += (uint64_t)json_number(l->stats, "events");
	k->dropped += (uint64_t)json_number(l->stats, "dropped");
	if (!l->stopped && !k->ending) {
		cJSON *fields = cJSON_CreateObject();

		cJSON_AddStringToObject(fields, "recorder", k->opts.name);
		if (WIFSIGNALED(status))
			cJSON_AddNumberToObject(fields, "signal", WTERMSIG(status));
		log_line("error", "recorder_ended", fields, "the %s has ended by itself",
			 k->opts.name);
	}
	if (current)
		k->life = NULL;
	else if (k->before == l)
		k->before = NULL;
	if (current && !k->ending) {
		if (now - l->begun_ns >= GOOD_NS)
			k->pause_ns = LEAST_PAUSE_NS;
		k->again_ns = now + k->pause_ns;
		k->pause_ns = k->pause_ns * 2 < MOST_PAUSE_NS ? k->pause_ns * 2 : MOST_PAUSE_NS;
		k->restarts++;
	}
	if (l->asked || (!k->life && !k->before))
		tell_waiting(k);
	free_life(l);
}

static int begin(struct keeper *k)
{
	struct life *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	l->keeper = k;
	l->begun_ns = now_ns(CLOCK_MONOTONIC);
	l->job = (struct chunks_job){
		.folder = k->opts.folder,
		.chunk_ns = k->opts.chunk_ns,
		.session = k->opts.session,
	};
	l->child = (struct child){
		.name = k->opts.name,
		.message = on_message,
		.ended = on_end,
		.ctx = l,
	};
	err = child__start(k->opts.loop, &l->child, chunks_run, &l->job);
	if (err) {
		free(l);
		log_line("error", "failed", NULL, "the %s cannot begin: %s", k->opts.name,
			 strerror(-err));
		k->again_ns = now_ns(CLOCK_MONOTONIC) + k->pause_ns;
		return err;
	}
	k->again_ns = 0;
	if (k->life) /* else the one before may still go on: its successor has died first */
		k->before = k->life;
	k->life = l;
	return 0;
}

int keeper__new(const struct keeper_opts *opts, struct keeper **out)
{
	struct keeper *k = calloc(1, sizeof(*k));
	int err;

	if (!k)
		return -ENOMEM;
	k->opts = *opts;
	k->pause_ns = LEAST_PAUSE_NS;
	err = folder_make(k->opts.folder, 0700);
	if (!err)
		err = begin(k);
	if (err) {
		free(k);
		return err;
	}
	*out = k;
	return 0;
}

void keeper__free(struct keeper *k)
{
	if (!k)
		return;
	/* the processes go on to their ends without anybody who listens */
	free_life(k->life);
	free_life(k->before);
	shelf__free(&k->shelf);
	free(k);
}

void keeper__renew(struct keeper *k, const char *why)
{
	if (k->ending || k->before || (k->life && !k->life->recording))
		return;
	log_line("info", "renew", NULL, "the %s begins anew: %s", k->opts.name, why);
	begin(k);
}

void keeper__change(struct keeper *k, const struct keeper_opts *opts)
{
	k->opts = *opts;
	k->ending = false;
	if (k->before) { /* the hand-over that goes on is of the options before */
		k->changed = true;
		return;
	}
	k->changed = begin(k) != 0;
}

/* One that takes over too late is given up, and so is one before that does not end. */
static void watch_hand_over(struct keeper *k, uint64_t now)
{
	if (!k->before || !k->life || now < k->life->begun_ns + HAND_OVER_NS)
		return;
	stop_life(k->before);
	if (now > k->life->begun_ns + 2 * HAND_OVER_NS)
		kill(k->before->child.pid, SIGKILL);
}

void keeper__hold(struct keeper *k, bool held)
{
	k->held = held;
}

static uint64_t twice(uint64_t limit)
{
	return limit > UINT64_MAX / 2 ? UINT64_MAX : 2 * limit;
}

/* What a dump was asked for stays while it is made, and what is recorded meanwhile is added. */
static void trim(struct keeper *k, uint64_t now)
{
	bool held = k->held || k->nr_waiting;
	uint64_t keep_ns = held ? twice(k->opts.keep_ns) : k->opts.keep_ns;
	uint64_t keep_bytes = held ? twice(k->opts.keep_bytes) : k->opts.keep_bytes;

	k->next_trim_ns = now + TRIM_NS;
	if (k->opts.chunk_ns < TRIM_NS)
		k->next_trim_ns = now + k->opts.chunk_ns;
	if (shelf__trim(&k->shelf, k->opts.folder, keep_ns, keep_bytes, k->opts.min_free))
		k->next_trim_ns = now;
}

void keeper__tend(struct keeper *k, uint64_t now)
{
	if (k->again_ns && now >= k->again_ns && !k->life && !k->ending)
		begin(k);
	watch_hand_over(k, now);
	if (k->nr_waiting && now > k->wait_until_ns) /* it is stuck, or its message was lost */
		tell_waiting(k);
	if (k->changed && !k->before && !k->ending) {
		k->changed = begin(k) != 0;
	}
	if (k->life && json_number(k->life->stats, "table_bytes") > (double)k->opts.max_tables)
		keeper__renew(k, "its tables have grown");
	if (now >= k->next_trim_ns)
		trim(k, now);
}

void keeper__stop(struct keeper *k)
{
	if (!k)
		return;
	k->ending = true;
	k->again_ns = 0;
	stop_life(k->life);
	stop_life(k->before);
}

bool keeper__runs(const struct keeper *k)
{
	return k && (k->life || k->before);
}

bool keeper__goes_on(const struct keeper *k)
{
	return k && (!k->ending || keeper__runs(k));
}

const char *keeper__folder(const struct keeper *k)
{
	return k->opts.folder;
}

const cJSON *keeper__stats(const struct keeper *k)
{
	return k->life ? k->life->stats : NULL;
}

cJSON *keeper__state(const struct keeper *k)
{
	cJSON *o = cJSON_CreateObject();
	const cJSON *stats = keeper__stats(k);
	const struct {
		const char *name;
		uint64_t value;
	} numbers[] = {
		{"restarts", k->restarts},
		{"chunks", k->chunks},
		{"chunk_bytes", k->chunk_bytes},
		{"chunks_removed", k->shelf.removed},
		{"bytes_removed", k->shelf.removed_bytes},
		{"chunks_not_stored", k->not_stored},
		{"stored_files", k->shelf.sums.files},
		{"stored_bytes", k->shelf.sums.bytes},
		{"samples", k->samples + (uint64_t)json_number(stats, "samples")},
		{"events", k->events + (uint64_t)json_number(stats, "events")},
		{"dropped", k->dropped + (uint64_t)json_number(stats, "dropped")},
	};

	cJSON_AddStringToObject(o, "state",
				!k->life              ? "waiting to begin"
				: !k->life->recording ? "beginning"
				: k->ending           ? "ending"
						      : "recording");
	cJSON_AddStringToObject(o, "folder", k->opts.folder);
	cJSON_AddNumberToObject(o, "pid", k->life ? k->life->child.pid : 0);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		cJSON_AddNumberToObject(o, numbers[i].name, (double)numbers[i].value);
	if (stats)
		cJSON_AddItemToObject(o, "now", cJSON_Duplicate(stats, true));
	return o;
}

void keeper__cut(struct keeper *k, void (*done)(void *ctx), void *ctx)
{
	cJSON *m;

	if (!k->life || !k->life->recording || k->nr_waiting == MOST_WAITERS) {
		done(ctx);
		return;
	}
	k->waiting[k->nr_waiting].done = done;
	k->waiting[k->nr_waiting++].ctx = ctx;
	if (k->nr_waiting == 1)
		k->wait_until_ns = now_ns(CLOCK_MONOTONIC) + CUT_NS;
	k->life->asked = true;
	m = cJSON_CreateObject();
	cJSON_AddStringToObject(m, "do", "cut");
	child__send(&k->life->child, m);
}
