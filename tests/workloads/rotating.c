/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records as kprof does, and rotates the capture: DIR/1.kprof, DIR/2.kprof, … A line of JSON for
 * each rotation says how long it took, in ns, and how large the tables are; the last one is of the
 * whole session. It records until a line comes on standard input, or that ends, or all targets
 * have ended.
 *
 *   rotating -j OUT FILE…    joins captures instead
 *   rotating -d DIR [-p PID]… [-a] [-w] [-H HZ] [-e MS] [-P MS] [-m] [-A PATH] [-t DIR2]
 *            [-k] [-B SHARE] [-g]
 *
 *   -a  all processes, samples alone   -w  waits        -H  samples a second
 *   -e  rotate so often                -P  prepare, and start after so many ms; < 0: do not
 *   -m  the modules and inputs of operators, too
 *   -A  path of the agent
 *   -t  where rotations go while DIR2/elsewhere exists
 *   -k  kills the processes when they have been chosen, before anything is read of their memory
 *   -B  share of a CPU that all may cost
 *   -g  prepare, and start when a line comes on standard input
 */
#include <err.h>
#include <inttypes.h>
#include <kprof.h>
#include <kprof/chunks.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define POLL_MS 100

static void must(int result)
{
	if (result < 0)
		errx(1, "%s\nhint: %s", kprof_error_cause(), kprof_error_hint() ?: "none");
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void on_log(void *ctx, enum kprof_log_level level, const char *text, const char *hint)
{
	(void)ctx;
	if (level == KPROF_LOG_WARN || strstr(text, "rotated"))
		fprintf(stderr, "warning: %s%s%s\n", text, hint ? "\nhint: " : "", hint ?: "");
}

static bool asked_to_end(void)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};

	return poll(&in, 1, 0) > 0;
}

/* One line, by bytes: the next one is to be seen by asked_to_end(). */
static void take_line(void)
{
	char c;

	while (read(STDIN_FILENO, &c, 1) == 1 && c != '\n')
		;
}

static char *path_of(const char *dir, const char *other, unsigned int number)
{
	char *path = NULL, *flag = NULL;

	if (other && asprintf(&flag, "%s/elsewhere", other) > 0 && !access(flag, F_OK))
		dir = other;
	free(flag);
	if (asprintf(&path, "%s/%u.kprof", dir, number) < 0)
		err(1, "asprintf");
	return path;
}

static void say_stats(const struct kprof_session *s)
{
	struct kprof_session_stats stats;

	kprof_session_stats(s, &stats);
	printf("{\"rotations\":%" PRIu64 ",\"events\":%" PRIu64 ",\"samples\":%" PRIu64
	       ",\"dropped\":%" PRIu64 ",\"missed\":%" PRIu64 ",\"unstored\":%" PRIu64
	       ",\"table_bytes\":%" PRIu64 ",\"sample_hz\":%.0f,\"kernel_bytes\":%" PRIu64
	       ",\"given_up\":%" PRIu64 ",\"cost_share\":%.5f}\n",
	       stats.rotations, stats.events, stats.samples, stats.dropped, stats.missed,
	       stats.unstored, stats.table_bytes, stats.sample_hz, stats.kernel_bytes,
	       stats.given_up, stats.cost_share);
}

/* Until a time: as long as that is away, so that each call may sleep until then. */
static int poll_until(struct kprof_session *s, uint64_t until_ns, unsigned int *polls)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	uint64_t left_ms = now < until_ns ? (until_ns - now) / 1000000u + 1 : 0;
	int over = kprof_session_poll(s, left_ms < POLL_MS ? (int)left_ms : POLL_MS);

	must(over);
	++*polls;
	return over;
}

static void rotate(struct kprof_session *s, char *path, unsigned int polls)
{
	uint64_t begin_ns = now_ns(CLOCK_MONOTONIC), cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
	struct kprof_session_stats before, after;
	int result;

	kprof_session_stats(s, &before);
	begin_ns = now_ns(CLOCK_MONOTONIC);
	result = kprof_session_rotate(s, path);
	cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
	begin_ns = now_ns(CLOCK_MONOTONIC) - begin_ns;
	kprof_session_stats(s, &after);
	printf("{\"next\":\"%s\",\"result\":%d,\"took_ns\":%" PRIu64 ",\"cpu_ns\":%" PRIu64
	       ",\"old_bytes\":%" PRIu64 ",\"table_bytes\":%" PRIu64
	       ",\"given_up\":%u,\"polls\":%u}\n",
	       path, result, begin_ns, cpu_ns, before.written_bytes, after.table_bytes,
	       after.given_up_now, polls);
	if (result)
		fprintf(stderr, "rotate: %s\n", kprof_error_cause());
	free(path);
}

static int join(const char *output, char **paths, int nr)
{
	struct kprof_join_opts opts = {.sz = sizeof(opts), .output = output};
	struct kprof_join_info info;

	must(kprof_join((const char *const *)paths, (size_t)nr, &opts, &info));
	printf("{\"joined\":%zu,\"missing\":%zu,\"incomplete\":%zu,\"start_ns\":%" PRIu64
	       ",\"end_ns\":%" PRIu64 "}\n",
	       info.joined, info.missing, info.incomplete, info.start_mono_ns, info.end_mono_ns);
	return 0;
}

int main(int argc, char **argv)
{
	struct kprof_session_opts opts = {.sz = sizeof(opts), .rotates = true};
	const char *dir = NULL, *other = NULL;
	unsigned int every_ms = 500, number = 1;
	long prepare_ms = 0;
	pid_t pids[64];
	size_t nr_pids = 0;
	struct kprof_session *s;
	uint64_t next_ns, started_ns = 0;
	bool kills = false, waits_for_line = false;
	int c, over = 0;

	while ((c = getopt(argc, argv, "d:p:awH:e:P:mt:j:A:kB:g")) != -1) {
		switch (c) {
		case 'd':
			dir = optarg;
			break;
		case 'p':
			pids[nr_pids++ % 64] = atoi(optarg);
			break;
		case 'a':
			opts.all_processes = opts.samples_only = true;
			break;
		case 'w':
			opts.waits = true;
			opts.min_wait_ns = 100000;
			break;
		case 'H':
			opts.sample_hz = (uint32_t)atoi(optarg);
			break;
		case 'e':
			every_ms = (unsigned int)atoi(optarg);
			break;
		case 'P':
			prepare_ms = atol(optarg);
			break;
		case 'm':
			opts.modules = opts.shapes = true;
			break;
		case 'A':
			opts.agent_library = optarg;
			break;
		case 'j':
			return join(optarg, argv + optind, argc - optind);
		case 'k':
			kills = true;
			break;
		case 'B':
			opts.max_overhead = atof(optarg);
			break;
		case 'g':
			waits_for_line = true;
			break;
		case 't':
			other = optarg;
			break;
		default:
			errx(2, "see the file's opening comment");
		}
	}
	if (!dir)
		errx(2, "-d is missing");
	setvbuf(stdout, NULL, _IOLBF, 0);
	kprof_set_log(on_log, NULL);
	opts.capture_path = path_of(dir, NULL, number);
	must(kprof_session_new(&opts, &s));
	for (size_t i = 0; i < nr_pids; i++)
		must(kprof_session_add_pid(s, pids[i]));
	for (size_t i = 0; kills && i < nr_pids; i++)
		kill(pids[i], SIGKILL);
	if (prepare_ms || waits_for_line) {
		must(kprof_session_prepare(s));
		printf("{\"prepared\":true}\n");
		if (prepare_ms < 0) {
			kprof_session_free(s);
			return 0;
		}
		for (next_ns = now_ns(CLOCK_MONOTONIC) + (uint64_t)prepare_ms * 1000000u;
		     (waits_for_line ? !asked_to_end() : now_ns(CLOCK_MONOTONIC) < next_ns) &&
		     !over;)
			must(over = kprof_session_poll(s, 20));
		if (waits_for_line)
			take_line();
		started_ns = now_ns(CLOCK_MONOTONIC);
	}
	must(kprof_session_start(s));
	if (started_ns)
		printf("{\"start_took_ns\":%" PRIu64 ",\"start_ns\":%" PRIu64 "}\n",
		       now_ns(CLOCK_MONOTONIC) - started_ns, started_ns);
	printf("READY %d\n", (int)getpid());
	next_ns = now_ns(CLOCK_MONOTONIC);
	while (!over && !asked_to_end()) {
		unsigned int polls = 0;

		next_ns += every_ms * 1000000ull;
		while (!over && !asked_to_end() && now_ns(CLOCK_MONOTONIC) < next_ns)
			over = poll_until(s, next_ns, &polls);
		if (!over && !asked_to_end())
			rotate(s, path_of(dir, other, ++number), polls);
	}
	c = kprof_session_stop(s);
	if (c)
		fprintf(stderr, "stop: %s\n", kprof_error_cause());
	say_stats(s);
	kprof_session_free(s);
	free((char *)opts.capture_path);
	return 0;
}
