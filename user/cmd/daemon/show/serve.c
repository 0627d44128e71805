// SPDX-License-Identifier: BSD-2-Clause
/*
 * The daemon's side of what is served by HTTP: keeps the process that serves going, and answers
 * what it asks. Nothing here waits: what has to be made first is answered when it is.
 */
#include "cmd/daemon/show/serve.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "cmd/daemon/record/windows.h"

#define SECOND_NS 1000000000ull
#define LEAST_PAUSE_NS SECOND_NS
#define MOST_PAUSE_NS (60 * SECOND_NS)
#define GOOD_NS (60 * SECOND_NS) /* after so long a life, the pause is the least again */
#define MOST_PENDING 64
#define NAME_BYTES (WEB_NAME_BYTES + 16)
#define FLAME "flame.svg"
#define TRACE_SUFFIX ".pftrace.gz"

/* A question that waits for something that is being made. */
struct unanswered {
	struct web_question question;
	char name[NAME_BYTES];
};

struct serve {
	struct daemon *d;
	struct figures *figures;
	struct looks *looks;
	struct makes *makes;
	struct web web;
	struct loop_watch watch;
	bool runs, complained;
	char *options; /* what it was begun with, as a text */
	uint64_t begun_ns, again_ns, pause_ns;
	uint64_t restarts;
	char folder[DAEMON_PATH_BYTES];
	struct looked flame, next_flame; /* what is there; what is being made */
	bool has_flame;
	bool goes_on[CHUNK_KINDS]; /* what records these */
	struct unanswered pending[MOST_PENDING];
	size_t nr_pending;
};

/* ---- answers ---- */

static void answer_json(struct serve *s, const struct web_question *q, cJSON *o)
{
	char *text = cJSON_PrintUnformatted(o);

	cJSON_Delete(o);
	if (text)
		web_answer_text(s->web.fd, q, text, strlen(text));
	else
		web_refuse(s->web.fd, q, 503, "the daemon has no memory");
	cJSON_free(text);
}

static void answer_metrics(struct serve *s, const struct web_question *q)
{
	enum metrics_format format = q->get == WEB_METRICS ? METRICS_OPENMETRICS : METRICS_TEXT;
	size_t bytes;
	char *text;

	figures__fill(s->figures, s->d);
	text = metrics__text(figures__metrics(s->figures), format, &bytes);
	if (text)
		web_answer_text(s->web.fd, q, text, bytes);
	else
		web_refuse(s->web.fd, q, 503, "the daemon has no memory");
	free(text);
}

/* Answers once it is made. */
static void wait_for(struct serve *s, const struct web_question *q, const char *name,
		     const char *capture)
{
	struct unanswered *u = &s->pending[s->nr_pending];

	if (s->nr_pending == MOST_PENDING) {
		web_refuse(s->web.fd, q, 503, "too many wait for traces");
		return;
	}
	u->question = *q;
	snprintf(u->name, sizeof(u->name), "%s", name);
	s->nr_pending++;
	if (!makes__want(s->makes, name, capture))
		return;
	s->nr_pending--;
	web_refuse(s->web.fd, q, 503, "too much is being made");
}

static void on_made(void *ctx, const char *name, int file, const char *error)
{
	struct serve *s = ctx;
	size_t kept = 0;

	if (!strcmp(name, FLAME) && file >= 0) {
		s->flame = s->next_flame;
		s->has_flame = *s->flame.path != '\0';
	}
	for (size_t i = 0; i < s->nr_pending; i++) {
		struct unanswered *u = &s->pending[i];

		if (strcmp(u->name, name) != 0)
			s->pending[kept++] = *u;
		else if (file >= 0)
			web_answer(s->web.fd, &u->question, file,
				   strcmp(name, FLAME) ? TRACE_SUFFIX : NULL);
		else
			web_refuse(s->web.fd, &u->question, 503,
				   *error ? error : "it could not be made");
	}
	s->nr_pending = kept;
}

/* The graph of the last samples, made once for each chunk of them, when somebody looks. */
static bool want_flame(struct serve *s)
{
	const struct looked *last = looks__samples(s->looks);

	if (!last || !strcmp(last->path, s->next_flame.path))
		return false;
	if (makes__want(s->makes, FLAME, last->path))
		return false;
	s->next_flame = *last;
	return true;
}

static void answer_flame(struct serve *s, const struct web_question *q)
{
	int file = s->has_flame ? makes__open(s->makes, FLAME) : -ENOENT;

	if (file >= 0) {
		web_answer(s->web.fd, q, file, NULL);
		close(file);
	} else if (want_flame(s)) {
		wait_for(s, q, FLAME, s->next_flame.path);
	} else {
		web_refuse(s->web.fd, q, 404, "no samples have been stored yet");
	}
}

static void answer_status(struct serve *s, const struct web_question *q)
{
	struct pages_numbers n = {
		.memory = figures__memory(s->figures),
		.cpu = figures__cpu(s->figures),
		.gpu = looks__gpu_busy(s->looks),
	};

	want_flame(s);
	figures__fill(s->figures, s->d);
	n.memory = figures__memory(s->figures);
	n.nr = figures__history(s->figures, n.history);
	n.flame = s->has_flame ? &s->flame : NULL;
	answer_json(s, q, pages_status(s->d, &n));
}

/* A recording that is done, with its capture open; file < 0: it was answered that there is none. */
static struct recording *find_dump(struct serve *s, const struct web_question *q, int *file)
{
	struct recording *r = recordings__find(s->d->recordings, q->name);

	*file = r && recording__state(r) == RECORDING_DONE ? recording__open(r, 0) : -ENOENT;
	if (*file < 0)
		web_refuse(s->web.fd, q, 404, "there is no dump of this name");
	return r;
}

static void answer_dump(struct serve *s, const struct web_question *q)
{
	int file;

	find_dump(s, q, &file);
	if (file < 0)
		return;
	web_answer(s->web.fd, q, file, NULL);
	close(file);
}

/* Where a capture is: of several rounds, each has a file of its own. */
static bool path_of(int file, char *path, size_t bytes)
{
	char link[32];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
	n = readlink(link, path, bytes);
	if (n <= 0 || (size_t)n >= bytes)
		return false;
	path[n] = '\0';
	return true;
}

static void answer_trace(struct serve *s, const struct web_question *q)
{
	char name[NAME_BYTES], path[DAEMON_PATH_BYTES + RECORDING_ID_BYTES + 32];
	int file, trace;

	find_dump(s, q, &file);
	if (file < 0)
		return;
	snprintf(name, sizeof(name), "%s" TRACE_SUFFIX, q->name);
	trace = makes__open(s->makes, name);
	if (trace >= 0) {
		web_answer(s->web.fd, q, trace, TRACE_SUFFIX);
		close(trace);
	} else if (path_of(file, path, sizeof(path))) {
		wait_for(s, q, name, path);
	} else {
		web_refuse(s->web.fd, q, 404, "there is no dump of this name");
	}
	close(file);
}

static void answer(struct serve *s, const struct web_question *q)
{
	switch (q->get) {
	case WEB_METRICS:
	case WEB_METRICS_TEXT:
		answer_metrics(s, q);
		break;
	case WEB_STATUS:
		answer_status(s, q);
		break;
	case WEB_PROCESSES:
		answer_json(s, q, looks__processes(s->looks));
		break;
	case WEB_DUMPS:
		answer_json(s, q, pages_dumps(s->d));
		break;
	case WEB_FLAME:
		answer_flame(s, q);
		break;
	case WEB_DUMP:
		answer_dump(s, q);
		break;
	default:
		answer_trace(s, q);
	}
}

/* ---- the process that serves ---- */

static void end_web(struct serve *s)
{
	if (!s->runs)
		return;
	s->runs = false;
	loop__remove(s->d->loop, &s->watch);
	children__also(NULL, 0);
	web_stop(&s->web);
	s->nr_pending = 0; /* whoever waits asks another one */
}

static void again(struct serve *s)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);

	if (s->begun_ns && now - s->begun_ns >= GOOD_NS)
		s->pause_ns = LEAST_PAUSE_NS;
	s->again_ns = now + s->pause_ns;
	s->pause_ns = s->pause_ns * 2 < MOST_PAUSE_NS ? s->pause_ns * 2 : MOST_PAUSE_NS;
}

static void ready(void *ctx, uint32_t events)
{
	struct serve *s = ctx;
	struct web_question q;
	int n;

	(void)events;
	while (s->runs && (n = web_take(s->web.fd, &q)) != 0) {
		if (n == 1) {
			answer(s, &q);
			continue;
		}
		log_line("error", "web", NULL, "the process that serves HTTP has %s",
			 n == -EPIPE ? "ended: it begins anew"
				     : "asked what it must not ask: it is ended, and begins anew");
		end_web(s);
		s->restarts++;
		again(s);
	}
}

/* Not beside the socket: containers have that folder, and root of one could read it there. */
static void token_file(const struct daemon_opts *opts, char path[DAEMON_PATH_BYTES])
{
	if (opts->web_token_file)
		snprintf(path, DAEMON_PATH_BYTES, "%s", opts->web_token_file);
	else
		snprintf(path, DAEMON_PATH_BYTES, "%s/web-token", opts->state);
}

static void begin_web(struct serve *s)
{
	const struct daemon_opts *opts = s->d->opts;
	char token[DAEMON_PATH_BYTES];
	struct web_opts web = {
		.page = opts->web,
		.page_anyone = opts->page_anyone,
		.metrics_anyone = opts->metrics_anyone,
		.perfetto = opts->web_perfetto,
	};
	struct web_error why;
	cJSON *fields;

	s->again_ns = 0;
	if (opts->no_listen)
		return;
	for (size_t i = 0; i < opts->listen.nr && i < WEB_LISTEN; i++)
		web.listen[web.nr_listen++] = opts->listen.items[i];
	for (size_t i = 0; i < opts->web_hosts.nr && i < WEB_HOSTS; i++)
		web.hosts[web.nr_hosts++] = opts->web_hosts.items[i];
	token_file(opts, token);
	/* where all that is served is /metrics, to this machine, there is nothing to keep */
	if (opts->web_token_file || (opts->web && !opts->page_anyone) ||
	    (opts->listen.nr && !opts->metrics_anyone && !opts->web))
		web.token_file = token;
	s->begun_ns = now_ns(CLOCK_MONOTONIC);
	if (web_start(&web, &s->web, &why)) {
		again(s);
		if (s->complained)
			return;
		s->complained = true;
		fields = cJSON_CreateObject();
		if (*why.hint)
			cJSON_AddStringToObject(fields, "hint", why.hint);
		log_line("error", "web", fields,
			 "HTTP is not served, which is tried again; recording goes on: %s",
			 why.cause);
		return;
	}
	s->runs = true;
	s->complained = false;
	children__also("kprof-web", s->web.pid);
	s->watch = (struct loop_watch){.fd = s->web.fd, .ready = ready, .ctx = s};
	loop__add(s->d->loop, &s->watch, EPOLLIN);
	fields = cJSON_CreateObject();
	cJSON_AddNumberToObject(fields, "port", s->web.ports[0]);
	cJSON_AddNumberToObject(fields, "pid", s->web.pid);
	log_line("info", "web", fields, "HTTP is served at port %u", s->web.ports[0]);
}

/* The options that the process has been begun with, to be compared. NULL: no memory. */
static char *options_text(const struct daemon_opts *opts)
{
	cJSON *o = cJSON_CreateObject();
	char *text;

	cJSON_AddBoolToObject(o, "none", opts->no_listen);
	cJSON_AddItemToObject(o, "listen",
			      cJSON_CreateStringArray((const char *const *)opts->listen.items,
						      (int)opts->listen.nr));
	cJSON_AddItemToObject(o, "hosts",
			      cJSON_CreateStringArray((const char *const *)opts->web_hosts.items,
						      (int)opts->web_hosts.nr));
	cJSON_AddBoolToObject(o, "page", opts->web);
	cJSON_AddBoolToObject(o, "page_anyone", opts->page_anyone);
	cJSON_AddBoolToObject(o, "metrics_anyone", opts->metrics_anyone);
	cJSON_AddStringToObject(o, "token", opts->web_token_file ? opts->web_token_file : "");
	cJSON_AddStringToObject(o, "perfetto", opts->web_perfetto ? opts->web_perfetto : "");
	text = cJSON_PrintUnformatted(o);
	cJSON_Delete(o);
	return text;
}

void serve__change(struct serve *s)
{
	char *text = options_text(s->d->opts);

	if (!text || (s->options && !strcmp(text, s->options))) {
		free(text);
		return;
	}
	free(s->options);
	s->options = text;
	end_web(s);
	s->complained = false;
	s->pause_ns = LEAST_PAUSE_NS;
	begin_web(s);
}

static bool goes_on(const struct daemon *d, enum chunk_kind kind)
{
	if (kind == CHUNK_DEVICE)
		return windows__go_on(d->windows);
	return keeper__goes_on(kind == CHUNK_SAMPLES ? d->sampler : d->flight);
}

/* By other options than before, something may be recorded no longer: it is not shown, either. */
static void forget_ended(struct serve *s)
{
	for (int kind = 0; kind < CHUNK_KINDS; kind++) {
		bool ended = s->goes_on[kind] && !goes_on(s->d, kind);

		s->goes_on[kind] = goes_on(s->d, kind);
		if (!ended)
			continue;
		figures__ended(s->figures, kind);
		looks__ended(s->looks, kind);
		if (kind == CHUNK_SAMPLES) {
			s->has_flame = false;
			s->next_flame = (struct looked){0};
		}
	}
}

void serve__tend(struct serve *s, uint64_t now)
{
	double cpus = figures__busy_cpus(s->figures);

	looks__tend(s->looks, now, s->d->opts->overhead * (cpus > 1 ? cpus : 1));
	if (!windows__see(s->d->windows))
		looks__no_gpus(s->looks);
	makes__tend(s->makes, now);
	if (!s->d->opts->no_listen) {
		if (!s->runs && s->again_ns && now >= s->again_ns && !s->d->ending)
			begin_web(s);
		figures__tend(s->figures, s->d, looks__cpu_ns(s->looks));
	}
	forget_ended(s);
}

/* ---- what was done ---- */

void serve__chunk(struct serve *s, enum chunk_kind kind, const char *path)
{
	if (s && !s->d->opts->no_listen && !s->d->ending)
		looks__chunk(s->looks, kind, path);
}

void serve__answered(struct serve *s, const char *request, bool ok)
{
	if (s)
		metrics__add(figures__metrics(s->figures), METRICS_REQUESTS,
			     METRICS_OF(request, ok ? "ok" : "refused"), 1);
}

void serve__recorded(struct serve *s, enum recording_state result)
{
	if (s)
		metrics__add(figures__metrics(s->figures), METRICS_RECORDINGS,
			     METRICS_OF(recording_state_name(result)), 1);
}

void serve__dumped(struct serve *s, const char *rule)
{
	if (s)
		metrics__add(figures__metrics(s->figures), METRICS_DUMPS,
			     METRICS_OF(rule ? rule : "request"), 1);
}

cJSON *serve__state(const struct serve *s)
{
	cJSON *o = cJSON_CreateObject(), *ports = cJSON_AddArrayToObject(o, "ports");

	for (size_t i = 0; s->runs && i < s->web.nr_ports; i++)
		cJSON_AddItemToArray(ports, cJSON_CreateNumber(s->web.ports[i]));
	cJSON_AddNumberToObject(o, "pid", s->runs ? s->web.pid : 0);
	cJSON_AddNumberToObject(o, "restarts", (double)s->restarts);
	cJSON_AddBoolToObject(o, "page", s->d->opts->web);
	return o;
}

/* ---- all ---- */

int serve__new(struct daemon *d, struct serve **out)
{
	struct serve *s = calloc(1, sizeof(*s));
	struct makes_opts makes = {.loop = d->loop, .made = on_made, .ctx = s};
	int err = s ? 0 : -ENOMEM;

	if (!err) {
		s->d = d;
		s->pause_ns = LEAST_PAUSE_NS;
		snprintf(s->folder, sizeof(s->folder), "%s/web", d->opts->state);
		memcpy(makes.folder, s->folder, sizeof(makes.folder));
		s->figures = figures__new();
		err = s->figures ? makes__new(&makes, &s->makes) : -ENOMEM;
	}
	if (!err) {
		s->looks = looks__new(d->loop, figures__metrics(s->figures), s->folder);
		err = s->looks ? 0 : -ENOMEM;
	}
	if (err) {
		serve__free(s);
		return err;
	}
	serve__change(s);
	*out = s;
	return 0;
}

void serve__ending(struct serve *s)
{
	if (s)
		looks__stop(s->looks);
}

void serve__free(struct serve *s)
{
	if (!s)
		return;
	end_web(s);
	looks__free(s->looks);
	makes__free(s->makes);
	figures__free(s->figures);
	free(s->options);
	free(s);
}
