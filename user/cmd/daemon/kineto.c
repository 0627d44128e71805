// SPDX-License-Identifier: BSD-2-Clause
/*
 * Kineto's world: processes with Kineto inside ask for configs, dyno asks for recordings. Each
 * process that dyno means is recorded by its own Kineto, or by kprof from outside.
 */
#include <arpa/inet.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

#include "cmd/daemon/kineto.h"
#include "cmd/daemon/translate.h"
#include "kprof/dynolog.h"

#define MOST_LISTED 100 /* processes, for who asks for the daemon's state */

struct kineto {
	struct daemon *d;
	struct kprof_dynolog *server;
	struct loop_watch watch;
};

/* ---- recordings from outside ---- */

static bool is_recorded(struct daemon *d, pid_t pid)
{
	struct recording *r = NULL;

	while ((r = recordings__next(d->recordings, r)))
		if (recording__is_of(r, pid))
			return true;
	return false;
}

static int begin_job(struct kineto *k, const struct kprof_dynolog_process *process,
		     const struct translation *t, const char *path, bool alive)
{
	const struct daemon_opts *opts = k->d->opts;
	struct demand_job job = {
		.options = t->words,
		.nr_options = t->nr,
		.uid = process->uid,
		.gid = process->gid,
		.pid = process->pid,
		.any_process = true, /* who may ask, the port's address decides */
		.for_dyno = true,
		.start = true,
		.alive = alive,
		.trace_path = path,
		.trace_folders = (const char *const *)opts->trace_folders.items,
		.nr_trace_folders = opts->trace_folders.nr,
		.why = "dyno",
	};
	struct recording *r;
	int err = recordings__begin(k->d->recordings, &job, &r);

	for (size_t i = 0; i < t->nr_notes; i++)
		kprof_dynolog_note(k->server, t->notes[i]);
	if (err == -EAGAIN)
		kprof_dynolog_note(k->server, "too many recordings go on for dyno, or were begun "
					      "in this minute: not all processes are recorded");
	return err;
}

/* At the place that dyno prints, wherever the log file is. */
static void begin_snapshot(struct kineto *k, const struct kprof_dynolog_config *config,
			   const struct kprof_dynolog_process *process, uint64_t now_ms)
{
	const struct value_list *folders = &k->d->opts->trace_folders;
	struct translation t = {.nr = 0};
	char path[64], text[160];
	int err = -EACCES;

	snprintf(path, sizeof(path), "/tmp/memory_snapshot_%d.pickle", (int)process->pid);
	if (kprof_dynolog_path_allowed(path, (const char *const *)folders->items, folders->nr)) {
		translate_memory(config, now_ms, &t);
		err = begin_job(k, process, &t, path, true);
	}
	if (!err)
		return;
	snprintf(text, sizeof(text), "PROFILE_MEMORY: %s is not written: %s", path, strerror(-err));
	kprof_dynolog_note(k->server, text);
}

static int begin(void *ctx, const struct kprof_dynolog_request *request,
		 const struct kprof_dynolog_process *process, const char *path)
{
	uint64_t now_ms = in_ms(now_ns(CLOCK_REALTIME));
	struct translation t = {.nr = 0};
	struct kineto *k = ctx;
	int err;

	if (k->d->ending || is_recorded(k->d, process->pid))
		return -EBUSY;
	translate_config(request->config, now_ms, &t);
	err = begin_job(k, process, &t, path, false);
	if (!err && request->config->memory_snapshot)
		begin_snapshot(k, request->config, process, now_ms);
	return err;
}

static enum kprof_dynolog_engine engine(void *ctx, const struct kprof_dynolog_request *request,
					const struct kprof_dynolog_process *process)
{
	const struct kineto *k = ctx;

	(void)request;
	if (k->d->opts->engine == KINETO_ENGINE_KPROF)
		return KPROF_DYNOLOG_OUTSIDE;
	if (process->registered)
		return KPROF_DYNOLOG_KINETO;
	return k->d->opts->engine == KINETO_ENGINE_AUTO ? KPROF_DYNOLOG_OUTSIDE
							: KPROF_DYNOLOG_NOBODY;
}

/* Processes without Kineto are meant where the request names them. */
static void candidates(void *ctx, const struct kprof_dynolog_request *request,
		       struct kprof_dynolog_candidates *to)
{
	const struct kineto *k = ctx;

	if (k->d->opts->engine == KINETO_ENGINE_KINETO)
		return;
	for (size_t i = 0; i < request->nr_pids; i++)
		if (request->pids[i] > 0)
			kprof_dynolog_candidate(
				to, request->pids[i],
				request->job_id ? kprof_dynolog_job_id(request->pids[i]) : 0);
}

/* ---- the log ---- */

/* What is not done as it was asked for, as one text; false: all is. */
static bool add_notes(cJSON *fields, const struct kprof_dynolog_result *result)
{
	char text[2048] = "";

	for (size_t i = 0; i < result->nr_notes; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? "; " : "",
			 result->notes[i]);
	if (result->nr_notes)
		cJSON_AddStringToObject(fields, "notes", text);
	return result->nr_notes;
}

static void done(void *ctx, const struct kprof_dynolog_request *request,
		 const struct kprof_dynolog_result *result)
{
	cJSON *fields = cJSON_CreateObject();

	(void)ctx;
	cJSON_AddStringToObject(fields, "peer", request->peer);
	cJSON_AddNumberToObject(fields, "job", (double)request->job_id);
	cJSON_AddNumberToObject(fields, "matched", result->matched);
	cJSON_AddNumberToObject(fields, "triggered", result->triggered);
	cJSON_AddNumberToObject(fields, "busy", result->busy);
	cJSON_AddNumberToObject(fields, "failed", result->failed);
	if (result->error)
		log_line("warning", "dyno", fields, "a request of dyno's was refused: %s",
			 result->error);
	else
		log_line(add_notes(fields, result) ? "warning" : "info", "dyno", fields,
			 "dyno asked for recordings of %u processes", result->matched);
}

static void seen(void *ctx, const struct kprof_dynolog_process *process, bool gone)
{
	cJSON *fields = cJSON_CreateObject();

	(void)ctx;
	cJSON_AddNumberToObject(fields, "pid", process->pid);
	cJSON_AddNumberToObject(fields, "uid", process->uid);
	cJSON_AddNumberToObject(fields, "job", (double)process->job_id);
	log_line("info", gone ? "kineto_gone" : "kineto", fields,
		 gone ? "the Kineto of process %d asks no more"
		      : "the Kineto of process %d asks for configs",
		 (int)process->pid);
}

/* Others than of loopback; unspecified ones (0.0.0.0, ::) are all that the machine has. */
static bool is_open(const char *address)
{
	uint8_t v4[4], v6[16];

	if (inet_pton(AF_INET, address, v4) == 1)
		return v4[0] != 127;
	return inet_pton(AF_INET6, address, v6) == 1 && memcmp(v6, &in6addr_loopback, sizeof(v6));
}

/* Neither protocol knows who asks: whoever runs the daemon is to know that a firewall has to. */
static void warn_of_open(const struct daemon_opts *opts)
{
	for (size_t i = 0; i < opts->dyno_addresses.nr && opts->dyno_port; i++) {
		const char *address = opts->dyno_addresses.items[i];
		cJSON *fields;

		if (!is_open(address))
			continue;
		fields = cJSON_CreateObject();
		cJSON_AddStringToObject(fields, "address", address);
		cJSON_AddNumberToObject(fields, "port", (double)opts->dyno_port);
		log_line("warning", "open", fields,
			 "whoever reaches %s, port %d, may have any process recorded, and files "
			 "written below the trace folders: only a firewall can say who may",
			 address, (int)opts->dyno_port);
	}
}

/* ---- the server ---- */

static void ready(void *ctx, uint32_t events)
{
	struct kineto *k = ctx;

	(void)events;
	kprof_dynolog_serve(k->server);
}

int kineto__new(struct daemon *d, struct kineto **out)
{
	const struct daemon_opts *o = d->opts;
	struct kprof_dynolog_opts opts = {
		.sz = sizeof(opts),
		.folders = (const char *const *)o->dynolog_folders.items,
		.nr_folders = o->dynolog_folders.nr,
		.port = (int)o->dyno_port,
		.no_tcp = !o->dyno_port,
		.addresses = (const char *const *)o->dyno_addresses.items,
		.nr_addresses = o->dyno_addresses.nr,
		.output_folders = (const char *const *)o->trace_folders.items,
		.nr_output_folders = o->trace_folders.nr,
		.candidates = candidates,
		.engine = engine,
		.begin = begin,
		.done = done,
		.seen = seen,
	};
	struct kineto *k = calloc(1, sizeof(*k));
	int err;

	if (!k)
		return -ENOMEM;
	k->d = d;
	opts.ctx = k;
	err = kprof_dynolog_new(&opts, &k->server);
	if (err) {
		free(k);
		return err;
	}
	k->watch = (struct loop_watch){
		.fd = kprof_dynolog_fd(k->server),
		.ready = ready,
		.ctx = k,
	};
	err = loop__add(d->loop, &k->watch, EPOLLIN);
	warn_of_open(o);
	*out = k;
	return err;
}

void kineto__free(struct kineto *k)
{
	if (!k)
		return;
	loop__remove(k->d->loop, &k->watch);
	kprof_dynolog_free(k->server);
	free(k);
}

static int is_process(void *ctx, const struct kprof_dynolog_process *process)
{
	return process->registered && process->pid == *(const pid_t *)ctx;
}

bool kineto__has(struct kineto *k, pid_t pid)
{
	return kprof_dynolog_processes(k->server, is_process, &pid);
}

struct processes {
	cJSON *list; /* the first ones */
	size_t nr;   /* all */
};

static int add_process(void *ctx, const struct kprof_dynolog_process *process)
{
	struct processes *all = ctx;
	cJSON *o;

	if (all->nr++ >= MOST_LISTED)
		return 0;
	o = cJSON_CreateObject();
	cJSON_AddNumberToObject(o, "pid", process->pid);
	cJSON_AddNumberToObject(o, "uid", process->uid);
	cJSON_AddNumberToObject(o, "job", (double)process->job_id);
	cJSON_AddBoolToObject(o, "idle", process->idle);
	cJSON_AddItemToArray(all->list, o);
	return 0;
}

cJSON *kineto__state(struct kineto *k)
{
	struct kprof_dynolog_counts c;
	cJSON *o = cJSON_CreateObject();
	struct processes all = {.list = cJSON_AddArrayToObject(o, "processes")};

	kprof_dynolog_counts(k->server, &c);
	cJSON_AddNumberToObject(o, "polls", (double)c.answered);
	cJSON_AddNumberToObject(o, "requests", (double)c.requests);
	cJSON_AddNumberToObject(o, "refused",
				(double)(c.malformed + c.unnamed + c.unknown + c.forged +
					 c.too_many + c.bad_requests + c.slow));
	kprof_dynolog_processes(k->server, add_process, &all);
	cJSON_AddNumberToObject(o, "registered", (double)all.nr);
	return o;
}
