// SPDX-License-Identifier: BSD-2-Clause
/*
 * In the daemon's place: starts its HTTP child and answers it with numbers that are made up, and
 * with files. Says READY with the child's number and its ports, then obeys lines:
 *
 *   silent    takes questions and does not answer them
 *   answer    answers again, late what was asked meanwhile, too
 *   samples N that many samples more of python3
 *   names N   samples of that many processes, each with a name of its own
 *   asked     says how many questions were taken
 *
 * Each is answered by a line. It ends with its input.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd/daemon/web/metrics.h"
#include "cmd/daemon/web/web.h"

#define MOST_LATE 64

struct file {
	const char *name, *path;
};

static struct web_opts opts;
static struct file files[8], traces[8];
static size_t nr_files, nr_traces;
static const char *flame, *status, *processes;
static struct web web;
static struct metrics *metrics;
static bool silent;
static struct web_question late[MOST_LATE];
static size_t nr_late, asked;

static void fill_metrics(void)
{
	static const double steps[] = {0.004, 0.03, 0.03, 0.2, 0.25, 90};

	metrics__set(metrics, METRICS_BUILD, METRICS_OF("0.1.0", "6.1.0-made-up"), 1);
	metrics__set(metrics, METRICS_UPTIME, METRICS_PLAIN, 3600.5);
	metrics__set(metrics, METRICS_COST_CPU, METRICS_OF("daemon", "daemon"), 1.25);
	metrics__set(metrics, METRICS_COST_CPU, METRICS_OF("sampler", "bpf"), 2.5);
	metrics__set(metrics, METRICS_OVERHEAD, METRICS_OF("daemon", "daemon"), 0.0015);
	metrics__set(metrics, METRICS_OVERHEAD, METRICS_OF("sampler", "bpf"), 0.0025);
	metrics__set(metrics, METRICS_OVERHEAD_MAX, METRICS_PLAIN, 0.01);
	metrics__set(metrics, METRICS_SHED_LEVEL, METRICS_OF("sampler"), 1);
	metrics__set(metrics, METRICS_MEMORY, METRICS_OF("daemon"), 8388608);
	metrics__set(metrics, METRICS_MEMORY, METRICS_OF("kernel"), 20971520);
	metrics__set(metrics, METRICS_MEMORY_MAX, METRICS_PLAIN, 262144000);
	metrics__add(metrics, METRICS_DROPPED, METRICS_OF("ring"), 7);
	metrics__set(metrics, METRICS_PROCESSES, METRICS_OF("sampled"), 212);
	metrics__add(metrics, METRICS_SAMPLES, METRICS_OF("python3"), 1000);
	metrics__add(metrics, METRICS_SAMPLES, METRICS_OF("a\"b\\c\nd\xff"), 5);
	metrics__add(metrics, METRICS_OPERATORS, METRICS_OF("python3"), 123456789);
	metrics__add(metrics, METRICS_GPU_ACTIVITIES, METRICS_OF("python3"), 4242);
	metrics__set(metrics, METRICS_GPU_RATE, METRICS_OF("python3"), 4242);
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
		metrics__observe(metrics, METRICS_STEP_TIME, METRICS_OF("python3"), steps[i]);
	metrics__set(metrics, METRICS_GPU_BUSY, METRICS_OF("0", "python3"), 0.75);
	metrics__set(metrics, METRICS_RUNQUEUE, METRICS_OF("python3"), 0.02);
	metrics__set(metrics, METRICS_WAIT, METRICS_OF("python3"), 0.4);
	metrics__set(metrics, METRICS_RECORDINGS_ACTIVE, METRICS_OF("recording"), 1);
	metrics__add(metrics, METRICS_RECORDINGS, METRICS_OF("done"), 4);
	metrics__add(metrics, METRICS_REQUESTS, METRICS_OF("start", "ok"), 9);
	metrics__add(metrics, METRICS_DUMPS, METRICS_OF("step"), 2);
	metrics__add(metrics, METRICS_CHUNKS, METRICS_OF("samples"), 60);
	metrics__add(metrics, METRICS_CHUNK_BYTES, METRICS_OF("samples"), 6e6);
	metrics__add(metrics, METRICS_CHUNKS_DROPPED, METRICS_OF("samples", "not_stored"), 1);
	metrics__add(metrics, METRICS_LOOKS, METRICS_OF("samples", "done"), 60);
	metrics__set(metrics, METRICS_STORED, METRICS_OF("samples"), 5e6);
	metrics__add(metrics, METRICS_PUSHES, METRICS_OF("sent"), 58);
	metrics__add(metrics, METRICS_PUSHED_BYTES, METRICS_PLAIN, 3000000);
	metrics__set(metrics, METRICS_PUSH_QUEUE, METRICS_PLAIN, 0);
}

static void answer_metrics(const struct web_question *q)
{
	enum metrics_format format = q->get == WEB_METRICS ? METRICS_OPENMETRICS : METRICS_TEXT;
	size_t bytes;
	char *text = metrics__text(metrics, format, &bytes);

	web_answer_text(web.fd, q, text, bytes);
	free(text);
}

static void answer_file(const struct web_question *q, const char *path)
{
	const char *dot = path ? strrchr(path, '/') : NULL;
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	if (fd < 0) {
		web_refuse(web.fd, q, 404, "there is none of this name");
		return;
	}
	dot = *q->name && dot ? strchr(dot, '.') : NULL;
	web_answer(web.fd, q, fd, dot);
	close(fd);
}

static const char *path_of(const struct file *list, size_t nr, const char *name)
{
	for (size_t i = 0; i < nr; i++)
		if (!strcmp(list[i].name, name))
			return list[i].path;
	return NULL;
}

static void answer_dumps(const struct web_question *q)
{
	char text[4096] = "{\"dumps\":[";

	for (size_t i = 0; i < nr_files; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "%s{\"name\":\"%s\",\"time_unix\":1764300000,\"bytes\":58226,"
			 "\"trigger\":\"step\",\"process\":\"python3\",\"trace\":%s}",
			 i ? "," : "", files[i].name,
			 path_of(traces, nr_traces, files[i].name) ? "true" : "false");
	strcat(text, "]}");
	web_answer_text(web.fd, q, text, strlen(text));
}

static void answer(const struct web_question *q)
{
	switch (q->get) {
	case WEB_METRICS:
	case WEB_METRICS_TEXT:
		answer_metrics(q);
		break;
	case WEB_STATUS:
		answer_file(q, status);
		break;
	case WEB_PROCESSES:
		answer_file(q, processes);
		break;
	case WEB_DUMPS:
		answer_dumps(q);
		break;
	case WEB_FLAME:
		answer_file(q, flame);
		break;
	case WEB_DUMP:
		answer_file(q, path_of(files, nr_files, q->name));
		break;
	default:
		answer_file(q, path_of(traces, nr_traces, q->name));
	}
}

static void take(void)
{
	struct web_question q;
	int n;

	while ((n = web_take(web.fd, &q)) == 1) {
		asked++;
		if (!silent)
			answer(&q);
		else if (nr_late < MOST_LATE)
			late[nr_late++] = q;
	}
	if (n < 0) {
		fprintf(stderr, "the child: %s\n", strerror(-n));
		exit(1);
	}
}

static void obey(const char *line)
{
	if (!strcmp(line, "silent"))
		silent = true;
	if (!strcmp(line, "answer")) {
		silent = false;
		for (size_t i = 0; i < nr_late; i++)
			answer(&late[i]);
		nr_late = 0;
	}
	if (!strncmp(line, "samples ", 8))
		metrics__add(metrics, METRICS_SAMPLES, METRICS_OF("python3"), atof(line + 8));
	if (!strncmp(line, "names ", 6)) {
		for (int i = 0; i < atoi(line + 6); i++) {
			char name[32];

			snprintf(name, sizeof(name), "process-%d", i);
			metrics__add(metrics, METRICS_SAMPLES, METRICS_OF(name), 1);
		}
	}
	if (!strcmp(line, "asked"))
		printf("%zu\n", asked);
	else
		puts("done");
}

static bool read_lines(void)
{
	static char text[1024];
	static size_t bytes;
	ssize_t n = read(0, text + bytes, sizeof(text) - 1 - bytes);

	if (n <= 0)
		return false;
	bytes += (size_t)n;
	text[bytes] = '\0';
	for (char *end; (end = strchr(text, '\n'));) {
		*end = '\0';
		obey(text);
		bytes -= (size_t)(end + 1 - text);
		memmove(text, end + 1, bytes + 1);
	}
	return true;
}

static void add_file(struct file *list, size_t *nr, char *text)
{
	char *equals = strchr(text, '=');

	*equals = '\0';
	list[(*nr)++] = (struct file){text, equals + 1};
}

static void parse(int argc, char **argv)
{
	for (int i = 1; i + 1 < argc; i += 2) {
		char *value = argv[i + 1];

		if (!strcmp(argv[i], "--listen"))
			opts.listen[opts.nr_listen++] = value;
		else if (!strcmp(argv[i], "--host"))
			opts.hosts[opts.nr_hosts++] = value;
		else if (!strcmp(argv[i], "--page"))
			opts.page = !strcmp(value, "yes");
		else if (!strcmp(argv[i], "--page-anyone"))
			opts.page_anyone = !strcmp(value, "yes");
		else if (!strcmp(argv[i], "--metrics-anyone"))
			opts.metrics_anyone = !strcmp(value, "yes");
		else if (!strcmp(argv[i], "--token"))
			opts.token_file = value;
		else if (!strcmp(argv[i], "--perfetto"))
			opts.perfetto = value;
		else if (!strcmp(argv[i], "--answer-ms"))
			opts.answer_ms = (unsigned int)atoi(value);
		else if (!strcmp(argv[i], "--flame"))
			flame = value;
		else if (!strcmp(argv[i], "--status"))
			status = value;
		else if (!strcmp(argv[i], "--processes"))
			processes = value;
		else if (!strcmp(argv[i], "--dump"))
			add_file(files, &nr_files, value);
		else if (!strcmp(argv[i], "--trace"))
			add_file(traces, &nr_traces, value);
	}
}

int main(int argc, char **argv)
{
	struct web_error why;

	setvbuf(stdout, NULL, _IOLBF, 0);
	parse(argc, argv);
	metrics = metrics__new();
	fill_metrics();
	if (web_start(&opts, &web, &why)) {
		fprintf(stderr, "%s\nhint: %s\n", why.cause, why.hint);
		return 1;
	}
	printf("READY {\"child\": %d, \"ports\": [", web.pid);
	for (size_t i = 0; i < web.nr_ports; i++)
		printf("%s%u", i ? ", " : "", web.ports[i]);
	puts("]}");
	for (;;) {
		struct pollfd fds[] = {{.fd = web.fd, .events = POLLIN},
				       {.fd = 0, .events = POLLIN}};

		if (poll(fds, 2, -1) < 0)
			continue;
		if (fds[0].revents)
			take();
		if (fds[1].revents && !read_lines())
			break;
	}
	web_stop(&web);
	metrics__free(metrics);
	return 0;
}
