// SPDX-License-Identifier: BSD-2-Clause
/*
 * What /metrics says of device windows, in one, between two, and when there are no more; and of a
 * look at a chunk while it goes on.
 */
#define figures__new unit_figures_new
#define figures__free unit_figures_free
#define figures__metrics unit_figures_metrics
#define figures__tend unit_figures_tend
#define figures__ended unit_figures_ended
#define figures__fill unit_figures_fill
#define figures__history unit_figures_history
#define figures__memory unit_figures_memory
#define figures__cpu unit_figures_cpu
#define figures__busy_cpus unit_figures_busy_cpus
#define recordings__next unit_recordings_next
#define windows__stats unit_windows_stats
#define windows__begin_ns unit_windows_begin_ns
#define windows__state unit_windows_state
#define windows__go_on unit_windows_go_on
#define windows__now unit_windows_now
#include "cmd/daemon/show/figures.c"

#include <signal.h>
#include <time.h>

#include "unit.h"

/* ---- what the windows say ---- */

static cJSON *stats;
static bool in_window, go_on;

struct recording *recordings__next(struct recordings *rs, struct recording *r)
{
	(void)rs;
	(void)r;
	return NULL;
}

const cJSON *windows__stats(const struct windows *w)
{
	(void)w;
	return stats;
}

uint64_t windows__begin_ns(const struct windows *w)
{
	(void)w;
	return 0;
}

cJSON *windows__state(const struct windows *w)
{
	cJSON *o = cJSON_CreateObject();

	(void)w;
	cJSON_AddNumberToObject(o, "chunks", 7);
	cJSON_AddNumberToObject(o, "stored_bytes", 700);
	if (in_window && stats)
		cJSON_AddItemToObject(o, "now", cJSON_Duplicate(stats, true));
	return o;
}

bool windows__go_on(const struct windows *w)
{
	(void)w;
	return go_on;
}

bool windows__now(const struct windows *w)
{
	(void)w;
	return in_window;
}

static void say(int pid, double elapsed_ns, double own_ns)
{
	double parts[PARTS] = {[KPROF_OVERHEAD_OWN] = own_ns};

	cJSON_Delete(stats);
	stats = cJSON_CreateObject();
	cJSON_AddNumberToObject(stats, "pid", pid);
	cJSON_AddNumberToObject(stats, "elapsed_ns", elapsed_ns);
	cJSON_AddNumberToObject(stats, "cost_base_ns", elapsed_ns);
	cJSON_AddItemToObject(stats, "cost_part_ns", cJSON_CreateDoubleArray(parts, PARTS));
	cJSON_AddNumberToObject(stats, "processes", 3);
	cJSON_AddNumberToObject(stats, "dropped", 5);
}

/* ---- what is told ---- */

static struct daemon_opts opts;
static struct daemon d = {.opts = &opts};
static struct figures *f;

static bool has(const char *line)
{
	size_t bytes;
	char *text, *at;

	figures__fill(f, &d);
	text = metrics__text(figures__metrics(f), METRICS_TEXT, &bytes);
	at = text ? strstr(text, line) : NULL;
	free(text);
	return at;
}

static void begin(void)
{
	f = figures__new();
	CHECK(f);
	d.windows = (struct windows *)&d; /* there are some */
	go_on = true;
}

/* Of windows so short that each is told of once, as the last one was. */
static void each_window_counts(void)
{
	for (int pid = 1; pid <= 3; pid++) {
		in_window = true;
		say(pid, 5e8, 125e6);
		figures__tend(f, &d, 0);
		CHECK(has("kprof_overhead_ratio{session=\"device\",part=\"own\"} 0.25\n"));
		CHECK(has("kprof_processes{state=\"in_window\"} 3\n"));
		in_window = false;
		figures__tend(f, &d, 0); /* it has told nothing since */
	}
	CHECK(has("kprof_cpu_seconds_total{session=\"device\",part=\"own\"} 0.375\n"));
	CHECK(has("kprof_dropped_total{reason=\"ring_full\"} 15\n"));
	/* the last one goes on */
	in_window = true;
	say(3, 6e8, 25e7);
	figures__tend(f, &d, 0);
	CHECK(has("kprof_cpu_seconds_total{session=\"device\",part=\"own\"} 0.5\n"));
	CHECK(has("kprof_dropped_total{reason=\"ring_full\"} 15\n"));
}

static void nothing_between_two(void)
{
	in_window = false;
	figures__tend(f, &d, 0);
	CHECK(has("kprof_overhead_ratio{session=\"device\",part=\"own\"} 0\n"));
	CHECK(has("kprof_processes{state=\"in_window\"} 0\n"));
	CHECK(has("kprof_chunks_total{kind=\"device\"} 7\n"));
}

/* The captures are there yet. */
static void gone_when_there_are_no_more(void)
{
	go_on = false;
	figures__tend(f, &d, 0);
	CHECK(!has("in_window"));
	CHECK(!has("kprof_shed_level{session=\"device\"}"));
	CHECK(has("kprof_chunks_total{kind=\"device\"} 7\n"));
	CHECK(has("kprof_stored_bytes{kind=\"device\"} 700\n"));
	figures__free(f);
	cJSON_Delete(stats);
	stats = NULL;
}

/* In a process of its own: a look that takes long, and goes on until it may end. */
static int look(int fd, void *arg)
{
	clock_t until = clock() + CLOCKS_PER_SEC / 10;

	(void)arg;
	while (clock() < until)
		;
	link_send(fd, cJSON_CreateObject());
	pause();
	return 0;
}

static bool took;

static void on_message(void *ctx, const cJSON *m)
{
	(void)ctx;
	(void)m;
	took = true;
}

static void on_end(void *ctx, int status)
{
	(void)ctx;
	(void)status;
}

static double looks_took(void)
{
	static const char line[] = "\nkprof_cpu_seconds_total{session=\"daemon\",part=\"looks\"} ";
	size_t bytes;
	char *text = metrics__text(figures__metrics(f), METRICS_TEXT, &bytes);
	const char *at = text ? strstr(text, line) : NULL;
	double seconds = at ? strtod(at + strlen(line), NULL) : -1;

	free(text);
	return seconds;
}

/* What a look takes counts while it goes on, and once. */
static void a_look_that_goes_on(void)
{
	struct child child = {.name = LOOKS_PROCESS, .message = on_message, .ended = on_end};
	struct loop *loop = loop__new();

	f = figures__new();
	CHECK(f && loop && !child__start(loop, &child, look, NULL));
	while (!took)
		loop__run_once(loop, 100);
	figures__tend(f, &d, 0);
	CHECK(looks_took() > 0.05);
	kill(child.pid, SIGKILL);
	while (children__nr()) {
		loop__run_once(loop, 10);
		children__reap();
	}
	figures__tend(f, &d, 60000000); /* it has said a little less of itself */
	CHECK(looks_took() < 0.3);
	figures__tend(f, &d, 500000000); /* and others took more since */
	CHECK(looks_took() > 0.49 && looks_took() < 0.51);
	loop__free(loop);
	figures__free(f);
}

UNIT_MAIN(TEST(begin), TEST(each_window_counts), TEST(nothing_between_two),
	  TEST(gone_when_there_are_no_more), TEST(a_look_that_goes_on))
