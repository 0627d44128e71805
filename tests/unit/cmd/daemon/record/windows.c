// SPDX-License-Identifier: BSD-2-Clause
/* When device windows begin, and what is made of what they say. */
#define windows_pause unit_windows_pause
#define windows_jitter unit_windows_jitter
#define windows__new unit_windows_new
#define windows__free unit_windows_free
#define windows__tend unit_windows_tend
#define windows__change unit_windows_change
#define windows__stop unit_windows_stop
#define windows__go_on unit_windows_go_on
#define windows__now unit_windows_now
#define windows__see unit_windows_see
#define windows__stats unit_windows_stats
#define windows__begin_ns unit_windows_begin_ns
#define windows__state unit_windows_state
#include "cmd/daemon/record/windows.c"

#include "unit.h"

#define SECOND SECOND_NS

static const struct windows_opts opts = {.every_ns = 60 * SECOND, .share = 0.004};

static void as_asked_where_that_is_cheap(void)
{
	CHECK_EQ(windows_pause(&opts, 0, 0), 60 * SECOND);
	CHECK_EQ(windows_pause(&opts, SECOND / 5, 1), 60 * SECOND);
	/* 0.3 s of what eight CPUs do in a minute */
	CHECK_EQ(windows_pause(&opts, SECOND / 10 * 3, 8), 60 * SECOND);
}

static void less_often_where_it_is_dear(void)
{
	uint64_t pause_ns = windows_pause(&opts, SECOND, 1);

	CHECK(pause_ns > 249 * SECOND && pause_ns < 251 * SECOND);
	pause_ns = windows_pause(&opts, SECOND, 2);
	CHECK(pause_ns > 124 * SECOND && pause_ns < 126 * SECOND);
	/* an idle machine counts as one CPU */
	CHECK_EQ(windows_pause(&opts, SECOND, 0.1), windows_pause(&opts, SECOND, 1));
	/* whatever it was */
	CHECK_EQ(windows_pause(&opts, 1000000 * SECOND, 1), 3600 * SECOND);
}

static void at_random_and_as_often_on_average(void)
{
	const uint32_t numbers[] = {0, UINT32_MAX / 4, UINT32_MAX / 2, UINT32_MAX / 4 * 3,
				    UINT32_MAX};
	uint64_t last = 0, sum = 0;

	for (int i = 0; i < 5; i++) {
		uint64_t pause_ns = windows_jitter(60 * SECOND, numbers[i]);

		CHECK(pause_ns > last);
		last = pause_ns;
		sum += pause_ns;
	}
	CHECK_EQ(windows_jitter(60 * SECOND, 0), 45 * SECOND);
	CHECK_EQ(last, 75 * SECOND);
	CHECK(sum / 5 > 59 * SECOND && sum / 5 < 61 * SECOND);
}

/* ---- what they say ---- */

static void stored(void *ctx, const char *path)
{
	(void)ctx;
	(void)path;
}

/* Without a folder and a process. */
static struct windows *with(double share)
{
	struct windows *w = calloc(1, sizeof(*w));

	w->opts = opts;
	w->opts.share = share;
	w->opts.stored = stored;
	w->first_ns = now_ns(CLOCK_MONOTONIC);
	begin_anew(w);
	return w;
}

static void say_to(struct windows *w, const char *text)
{
	cJSON *m = cJSON_Parse(text);

	on_message(w, m);
	cJSON_Delete(m);
}

/* A window that has used so much CPU time; says: a message of it, or NULL. */
static void one(struct windows *w, const char *says, uint64_t cpu_ns, int status)
{
	w->begun_ns = now_ns(CLOCK_MONOTONIC);
	w->recording = w->stored = w->failed = w->stopped = false;
	if (says)
		say_to(w, says);
	w->child.cpu_ns = cpu_ns;
	on_end(w, status);
}

/* SIGHUP does not let the next one begin before the last one is paid for. */
static void paid_whatever_is_read_anew(void)
{
	struct windows_opts cheaper;
	struct windows *w = with(0.004);
	uint64_t now = now_ns(CLOCK_MONOTONIC);

	/* one by itself is spread over the time between two */
	CHECK(w->pause_ns == 60 * SECOND && w->next_ns < now + 60 * SECOND);
	one(w, "{\"chunk\": \"/x/1.kprof\"}", 2 * SECOND, 0);
	CHECK(w->pause_ns > 499 * SECOND && w->next_ns > now + 370 * SECOND);
	windows__change(w, &w->opts);
	CHECK(w->pause_ns > 499 * SECOND && w->next_ns > now + 499 * SECOND);
	/* … as the options have it that hold from then on */
	cheaper = w->opts;
	cheaper.share = 1;
	windows__change(w, &cheaper);
	CHECK(w->pause_ns == 60 * SECOND && w->next_ns < now + 300 * SECOND);
	windows__free(w);
}

static bool counts(const struct windows *w, double chunks, double without, double failed)
{
	cJSON *o = windows__state(w);
	bool same = json_number(o, "chunks") == chunks &&
		    json_number(o, "without_devices") == without &&
		    json_number(o, "chunks_not_stored") == failed;

	cJSON_Delete(o);
	return same;
}

static void what_becomes_of_each(void)
{
	struct windows *w = with(0.004);

	CHECK(counts(w, 0, 0, 0) && !windows__see(w));
	one(w, NULL, 0, 0);
	CHECK(counts(w, 0, 1, 0) && !windows__see(w));
	one(w, "{\"chunk\": \"/x/1.kprof\"}", 0, 0);
	CHECK(counts(w, 1, 1, 0) && windows__see(w));
	/* one that was stopped before its begin has seen nothing, nor that there is nothing */
	w->stored = false;
	w->stopped = true;
	on_end(w, 0);
	CHECK(counts(w, 1, 1, 0) && windows__see(w));
	/* one that fails does not record */
	one(w, "{\"state\": \"failed\", \"error\": \"no\"}", 0, 1 << 8);
	CHECK(!w->recording && counts(w, 1, 1, 1) && !windows__see(w));
	one(w, NULL, 0, 1 << 8); /* what it said was lost */
	CHECK(counts(w, 1, 1, 2));
	say_to(w, "{\"state\": \"recording\"}");
	CHECK(w->recording);
	one(w, "{\"chunk\": \"/x/2.kprof\"}", 0, 0);
	windows__stop(w);
	CHECK(!windows__see(w) && !windows__go_on(w));
	windows__free(w);
}

UNIT_MAIN(TEST(as_asked_where_that_is_cheap), TEST(less_often_where_it_is_dear),
	  TEST(at_random_and_as_often_on_average), TEST(paid_whatever_is_read_anew),
	  TEST(what_becomes_of_each))
