// SPDX-License-Identifier: BSD-2-Clause
/* What clients ask, and what they are answered. docs/daemon.md has the questions. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/daemon/show/serve.h"
#include "cmd/print/json_get.h"

#define MOST_OPTIONS 512

typedef void (*answer_fn)(struct daemon *d, struct client *c, const cJSON *question);

static cJSON *yes(cJSON *o)
{
	cJSON *answer = o ? o : cJSON_CreateObject();

	cJSON_AddBoolToObject(answer, "ok", true);
	return answer;
}

/* ---- clients that wait ---- */

/* A client that waits for the flight recorder to write what it has. */
struct cut {
	struct daemon *d;
	struct client *client; /* NULL: it is gone */
	uint64_t last_ns;
	struct cut *next;
};

static void wait_until(struct daemon *d, struct client *c, struct recording *r,
		       enum recording_state wanted)
{
	struct pending *p = malloc(sizeof(*p));

	if (!p) {
		clients__refuse(c, NULL, "the daemon has no memory");
		return;
	}
	*p = (struct pending){.client = c, .recording = r, .wanted = wanted, .next = d->pending};
	d->pending = p;
}

static void refuse_failed(struct client *c, const struct recording *r)
{
	cJSON *o = recording__describe(r);
	const char *error = json_text(o, "error"), *hint = json_text(o, "hint");

	if (recording__state(r) == RECORDING_CANCELLED)
		clients__refuse(c, NULL, "recording %s was given up", recording__id(r));
	else
		clients__refuse(c, hint, "%s", error ? error : "it failed without saying why");
	cJSON_Delete(o);
}

/* Answers if the state is what the client has waited for. */
static bool answer_if_reached(const struct pending *p)
{
	enum recording_state state = recording__state(p->recording);

	if (state < p->wanted)
		return false;
	if (state == RECORDING_FAILED ||
	    (state == RECORDING_CANCELLED && p->wanted < RECORDING_DONE))
		refuse_failed(p->client, p->recording);
	else
		clients__answer(p->client, yes(recording__describe(p->recording)), -1);
	return true;
}

void requests__changed(void *ctx, struct recording *r)
{
	struct daemon *d = ctx;
	struct pending **at = &d->pending;

	if (recording__state(r) >= RECORDING_DONE)
		serve__recorded(d->serve, recording__state(r));
	while (*at) {
		struct pending *p = *at;

		if (p->recording != r || !answer_if_reached(p)) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		free(p);
	}
}

/* What a program has begun of itself, and does not know of, nobody would end. */
static void give_up_begun(struct daemon *d, const struct client *c)
{
	struct recording *r = *c->begun ? recordings__find(d->recordings, c->begun) : NULL;

	if (r && recording__state(r) < RECORDING_DONE)
		recording__cancel(r);
}

void requests__answered(void *ctx, const struct client *c, bool ok)
{
	const struct daemon *d = ctx;

	serve__answered(d->serve, c->verb ? c->verb : "unknown", ok);
}

void requests__gone(void *ctx, struct client *c)
{
	struct daemon *d = ctx;
	struct pending **at = &d->pending;

	for (struct cut *cut = d->cuts; cut; cut = cut->next)
		if (cut->client == c)
			cut->client = NULL;
	give_up_begun(d, c);
	while (*at) {
		struct pending *p = *at;

		if (p->client != c) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		free(p);
	}
}

void requests__forget(struct daemon *d)
{
	listing__forget(d);
	while (d->pending) {
		struct pending *p = d->pending;

		d->pending = p->next;
		free(p);
	}
	while (d->cuts) {
		struct cut *cut = d->cuts;

		d->cuts = cut->next;
		free(cut);
	}
}

/* ---- a recording that is meant ---- */

/* NULL: the client was answered. */
static struct recording *meant(struct daemon *d, struct client *c, const cJSON *question)
{
	bool has_id = cJSON_HasObjectItem(question, "id");
	const char *id =
		has_id && !json_text(question, "id") ? "of this kind" : json_text(question, "id");
	const cJSON *pid = cJSON_GetObjectItemCaseSensitive(question, "pid");
	struct recording *r = NULL;

	if (id)
		r = recordings__find(d->recordings, id);
	else if (json_is_true(question, "self"))
		r = recordings__of(d->recordings, c->pid, c, false);
	else if (cJSON_IsNumber(pid))
		r = recordings__of(d->recordings, (pid_t)pid->valueint, c, false);
	/* of what others record, not even that it exists */
	if (r && recording__may_see(r, c))
		return r;
	if (id)
		clients__refuse(c, "`kprof ctl list` shows those that there are",
				"there is no recording %s", id);
	else
		clients__refuse(c, "`kprof ctl list` shows those that there are",
				"no recording of this process goes on");
	return NULL;
}

/* What becomes of a recording at somebody's request. */
static void log_asked(struct client *c, const struct recording *r)
{
	char text[RECORDING_ID_BYTES + 64];

	snprintf(text, sizeof(text), "recording %s: %s, asked by process %d of user %u",
		 recording__id(r), c->verb, (int)c->pid, (unsigned int)c->uid);
	clients__log(c, "info", "asked", recording__id(r), text);
}

/* ---- prepare, start, stop, cancel ---- */

static bool may_record(const struct daemon *d, struct client *c)
{
	if (c->privileged || d->opts->allow_owner)
		return true;
	clients__refuse(
		c,
		c->space ? "from another PID namespace than the daemon's, as in a container, "
			   "only owners of processes may, with allow-owner in its "
			   "configuration"
			 : "root may, and members of the group that the daemon was told "
			   "(group); with allow-owner in its configuration, also owners of "
			   "processes",
		"you may not have processes recorded");
	return false;
}

static void begin(struct daemon *d, struct client *c, const cJSON *question, bool start)
{
	static const char *options[MOST_OPTIONS];
	struct demand_job job = {
		.options = options,
		.uid = c->uid,
		.gid = c->gid,
		.any_process = c->privileged,
		.asker = c->pid,
		.space = c->space,
		.start = start,
	};
	const cJSON *given = cJSON_GetObjectItemCaseSensitive(question, "options"), *o;
	const cJSON *thread = cJSON_GetObjectItemCaseSensitive(question, "thread");
	struct recording *r;
	int err;

	if (!may_record(d, c))
		return;
	cJSON_ArrayForEach(o, given)
	{
		if (job.nr_options == MOST_OPTIONS || !cJSON_IsString(o)) {
			clients__refuse(c, NULL, "\"options\" is a list of at most %d texts",
					MOST_OPTIONS);
			return;
		}
		options[job.nr_options++] = o->valuestring;
	}
	if (json_is_true(question, "self")) {
		job.pid = c->pid;
		job.thread = cJSON_IsNumber(thread) ? (pid_t)thread->valueint : 0;
	}
	if (d->ending) {
		clients__refuse(c, NULL, "the daemon is ending");
		return;
	}
	err = recordings__begin(d->recordings, &job, &r);
	if (err == -EAGAIN)
		clients__refuse(c, "stop some, or wait a minute",
				"you have begun too many recordings");
	else if (err)
		clients__refuse(c, NULL, "a recording cannot be begun: %s", strerror(-err));
	if (err)
		return;
	if (job.pid)
		snprintf(c->begun, sizeof(c->begun), "%s", recording__id(r));
	wait_until(d, c, r,
		   !start                            ? RECORDING_PREPARED
		   : json_is_true(question, "later") ? RECORDING_STARTING
						     : RECORDING_ON);
}

static void prepare(struct daemon *d, struct client *c, const cJSON *question)
{
	begin(d, c, question, false);
}

static void start_prepared(struct daemon *d, struct client *c, struct recording *r,
			   const cJSON *question)
{
	double at_ns = json_number(question, "start_at_ns");
	double duration_ns = json_number(question, "duration_ns");

	if (at_ns > (double)(now_ns(CLOCK_REALTIME) + FURTHEST_START_NS)) {
		clients__refuse(c, "ask for it on that day", "it is to start in more than a day");
		return;
	}
	log_asked(c, r);
	recording__start(r, (uint64_t)at_ns, (uint64_t)duration_ns);
	if (json_is_true(question, "later"))
		clients__answer(c, yes(recording__describe(r)), -1);
	else
		wait_until(d, c, r, RECORDING_ON);
}

static void start(struct daemon *d, struct client *c, const cJSON *question)
{
	struct recording *r;
	const char *id;

	if (!cJSON_HasObjectItem(question, "id")) {
		begin(d, c, question, true);
		return;
	}
	r = meant(d, c, question);
	if (!r)
		return;
	id = recording__id(r);
	switch (recording__state(r)) {
	case RECORDING_PREPARED:
		start_prepared(d, c, r, question);
		break;
	case RECORDING_PREPARING:
		clients__refuse(c, "wait for `kprof ctl prepare`, which ends when it is",
				"recording %s is still being prepared", id);
		break;
	case RECORDING_STARTING:
	case RECORDING_ON:
		clients__refuse(c, NULL, "recording %s has been started already", id);
		break;
	default:
		clients__refuse(c, "prepare another one", "recording %s has ended: it is %s", id,
				recording_state_name(recording__state(r)));
	}
}

static void stop(struct daemon *d, struct client *c, const cJSON *question)
{
	struct recording *r;
	cJSON *o;

	if (!cJSON_HasObjectItem(question, "id")) {
		const cJSON *pid = cJSON_GetObjectItemCaseSensitive(question, "pid");

		r = recordings__of(d->recordings,
				   cJSON_IsNumber(pid) ? (pid_t)pid->valueint : c->pid, c, false);
		if (!r) {
			o = yes(NULL);
			cJSON_AddStringToObject(o, "note", "nothing is recorded");
			clients__answer(c, o, -1);
			return;
		}
	} else {
		r = meant(d, c, question);
	}
	if (!r)
		return;
	switch (recording__state(r)) {
	case RECORDING_PREPARING:
	case RECORDING_PREPARED:
		clients__refuse(c, "`kprof ctl start` begins it, `kprof ctl cancel` gives it up",
				"recording %s has not been started", recording__id(r));
		break;
	case RECORDING_STARTING:
	case RECORDING_ON:
	case RECORDING_STOPPING:
		log_asked(c, r);
		recording__stop(r);
		wait_until(d, c, r, RECORDING_DONE);
		break;
	default:
		o = yes(recording__describe(r));
		cJSON_AddStringToObject(o, "note", "nothing is recorded");
		clients__answer(c, o, -1);
	}
}

static void cancel(struct daemon *d, struct client *c, const cJSON *question)
{
	struct recording *r = meant(d, c, question);

	if (!r)
		return;
	if (recording__state(r) >= RECORDING_DONE) {
		clients__refuse(c, NULL, "recording %s has ended: it is %s", recording__id(r),
				recording_state_name(recording__state(r)));
		return;
	}
	log_asked(c, r);
	recording__cancel(r);
	wait_until(d, c, r, RECORDING_DONE);
}

/* ---- dump ---- */

static void begin_dump(void *ctx)
{
	struct cut *cut = ctx, **at = &cut->d->cuts;
	struct daemon *d = cut->d;
	struct client *c = cut->client;
	struct recording *r;

	while (*at != cut)
		at = &(*at)->next;
	*at = cut->next;
	if (c) {
		struct demand_job job = {
			.uid = c->uid, .gid = c->gid, .asker = c->pid, .last_ns = cut->last_ns};
		int err = daemon_dump(d, &job, &r);

		if (err)
			clients__refuse(c, NULL, "a dump cannot be begun: %s", strerror(-err));
		else
			wait_until(d, c, r, RECORDING_DONE), serve__dumped(d->serve, NULL);
	}
	free(cut);
}

static void dump(struct daemon *d, struct client *c, const cJSON *question)
{
	double last_ns =
		cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(question, "last_ns"));
	struct cut *cut;

	if (!c->privileged) {
		clients__refuse(c, "`kprof ctl start` records a process of yours",
				"the flight recorder has what many users do: it is root's");
		return;
	}
	if (!d->flight || !keeper__runs(d->flight)) {
		clients__refuse(c, "watch = NAMES in the daemon's configuration begins it",
				"there is no flight recorder");
		return;
	}
	cut = calloc(1, sizeof(*cut));
	if (!cut) {
		clients__refuse(c, NULL, "the daemon has no memory");
		return;
	}
	*cut = (struct cut){.d = d, .client = c, .next = d->cuts};
	cut->last_ns = last_ns > 0 && last_ns < 1e18 ? (uint64_t)last_ns : 0;
	d->cuts = cut;
	keeper__cut(d->flight, begin_dump, cut);
}

/* ---- what there is ---- */

static void status(struct daemon *d, struct client *c, const cJSON *question)
{
	struct recording *r;

	if (!cJSON_HasObjectItem(question, "id") && !cJSON_HasObjectItem(question, "pid")) {
		clients__answer(c, yes(daemon_state(d)), -1);
		return;
	}
	r = meant(d, c, question);
	if (r)
		clients__answer(c, yes(recording__describe(r)), -1);
}

#define MOST_LISTED 1000

static void list(struct daemon *d, struct client *c, const cJSON *question)
{
	cJSON *o = yes(NULL), *all = cJSON_AddArrayToObject(o, "recordings");
	struct recording *r = NULL;
	int nr = 0;

	while ((r = recordings__next(d->recordings, r)) && nr < MOST_LISTED)
		if (recording__may_see(r, c) && ++nr)
			cJSON_AddItemToArray(all, recording__describe(r));
	clients__answer(c, o, -1);
}

static void get(struct daemon *d, struct client *c, const cJSON *question)
{
	double round = json_number(question, "round"); /* 0: the last one */
	struct recording *r = meant(d, c, question);
	int file;

	if (!r)
		return;
	if (recording__state(r) < RECORDING_DONE) {
		clients__refuse(c, "`kprof ctl stop` ends it", "recording %s still goes on",
				recording__id(r));
		return;
	}
	if (recording__state(r) != RECORDING_DONE) {
		refuse_failed(c, r);
		return;
	}
	if (round > recording__rounds(r)) {
		clients__refuse(c, "`kprof ctl status --json` says how many there are",
				"recording %s has no round %.0f: it has %u", recording__id(r),
				round, recording__rounds(r));
		return;
	}
	file = recording__open(r, (uint32_t)round);
	if (file < 0) {
		clients__refuse(c, "what is old is removed (keep-recordings, recordings-bytes)",
				"the capture of recording %s is not there: %s", recording__id(r),
				strerror(-file));
		return;
	}
	log_asked(c, r);
	clients__answer(c, yes(recording__describe(r)), file);
	close(file);
}

/* Whether a process is being recorded on demand, and whether the asker could have it recorded. */
static void capturing(struct daemon *d, struct client *c, const cJSON *question)
{
	const cJSON *given = cJSON_GetObjectItemCaseSensitive(question, "pid");
	pid_t pid = cJSON_IsNumber(given) ? (pid_t)given->valueint : c->pid;
	const struct recording *r = recordings__of(d->recordings, pid, c, true);
	int err = process_check_owner(pid, c->uid, c->space, c->pid);
	bool there = err != -ENOENT && !(c->space && err); /* of elsewhere, nothing is told */
	bool may = there && (c->privileged || (d->opts->allow_owner && !err));
	cJSON *o = yes(NULL);

	cJSON_AddBoolToObject(o, "exists", there);
	cJSON_AddBoolToObject(o, "may", may);
	cJSON_AddBoolToObject(o, "capturing", r != NULL);
	if (r)
		cJSON_AddStringToObject(o, "id", recording__id(r));
	clients__answer(c, o, -1);
}

static void processes(struct daemon *d, struct client *c, const cJSON *question)
{
	(void)question;
	listing__asked(d, c);
}

static const struct {
	const char *name;
	answer_fn answer;
} verbs[] = {
	{"prepare", prepare}, {"start", start},         {"stop", stop}, {"cancel", cancel},
	{"status", status},   {"list", list},           {"get", get},   {"processes", processes},
	{"dump", dump},       {"capturing", capturing},
};

void requests__asked(void *ctx, struct client *c, const cJSON *question)
{
	struct daemon *d = ctx;
	const char *what = json_text(question, "do");

	for (size_t i = 0; what && i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (!strcmp(verbs[i].name, what)) {
			c->verb = verbs[i].name;
			verbs[i].answer(d, c, question);
			return;
		}
	clients__refuse(c,
			"it is prepare, start, stop, cancel, status, list, get, processes, dump or "
			"capturing",
			"\"do\" says nothing that the daemon knows");
}
