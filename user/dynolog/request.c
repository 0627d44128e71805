// SPDX-License-Identifier: BSD-2-Clause
/*
 * What dyno asks for, and the answers of the reference daemon: members in the order of their names,
 * and processesMatched always there, since dyno ends with a panic without it.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/process/process.h"
#include "dynolog/impl.h"
#include "util/error.h"
#include "util/json_valid.h"

#define MOST_PIDS 4096
#define DEFAULT_LIMIT 1000
#define DEFAULT_LOG_FILE "/tmp/libkineto_activities.json" /* Kineto's */
#define NO_DCGM 1
#define MOST_NOTES 16

struct kprof_dynolog_candidates { /* a request that is being answered */
	struct kprof_dynolog *d;
	struct kprof_dynolog_request r;
	struct kprof_dynolog_result result;
	struct kprof_dynolog_config *config;
	struct handed *handed;         /* made when it is first needed */
	struct vec matched, triggered; /* int32_t */
	struct vec candidates;         /* pid_t: those that were seen */
};

/* ---- numbers ---- */

static bool whole(const cJSON *item, double least, double most, double *out)
{
	if (!cJSON_IsNumber(item) || !(item->valuedouble >= least && item->valuedouble <= most) ||
	    item->valuedouble != floor(item->valuedouble))
		return false;
	*out = item->valuedouble;
	return true;
}

static int no_such(const char *name)
{
	return error_set_usage(-EINVAL, NULL, "%s is missing, or has no such value", name);
}

/* A number that may be missing. */
static int optional(const cJSON *root, const char *name, double most, double *out)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(root, name);

	return item && !whole(item, 0, most, out) ? no_such(name) : 0;
}

static int take_pids(const cJSON *root, int32_t **out, size_t *nr)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, "pids"), *item;
	struct vec pids = {0};
	double value;

	if (!cJSON_IsArray(list))
		return no_such("pids");
	cJSON_ArrayForEach(item, list)
	{
		int32_t *pid = NULL;

		if (whole(item, 0, INT32_MAX, &value) && pids.nr < MOST_PIDS)
			pid = vec_push(&pids, sizeof(*pid));
		if (!pid) {
			free(pids.data);
			return no_such("pids");
		}
		*pid = (int32_t)value;
	}
	match_sort(pids.data, pids.nr);
	*out = pids.data;
	*nr = pids.nr;
	return 0;
}

/* ---- what is asked for ---- */

static int take_config(struct kprof_dynolog_candidates *a, const cJSON *root)
{
	const struct kprof_dynolog_opts *o = &a->d->o;
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(root, "config"));
	int err;

	if (!text || strlen(text) >= KPROF_DYNOLOG_CONFIG_BYTES)
		return no_such("config");
	err = kprof_dynolog_config_parse(text, &a->config);
	if (err)
		return err;
	a->r.config = a->config;
	if (!a->config->log_file)
		a->config->log_file = DEFAULT_LOG_FILE;
	if (!kprof_dynolog_path_allowed(a->config->log_file, o->output_folders,
					o->nr_output_folders))
		return error_set_usage(-EACCES, NULL,
				       "ACTIVITIES_LOG_FILE does not lie below %s, or another "
				       "folder that this daemon allows",
				       o->nr_output_folders ? o->output_folders[0] : "/tmp");
	return 0;
}

static int take_request(struct kprof_dynolog_candidates *a, const cJSON *root)
{
	double job_id = 0, limit = DEFAULT_LIMIT;
	int32_t *pids = NULL;
	int err = take_config(a, root);

	if (!err)
		err = optional(root, "job_id", 0x1p53, &job_id);
	if (!err)
		err = optional(root, "process_limit", INT32_MAX, &limit);
	if (!err)
		err = take_pids(root, &pids, &a->r.nr_pids);
	a->r.pids = pids;
	a->r.job_id = (int64_t)job_id;
	a->r.process_limit = (uint32_t)limit;
	return err;
}

/* ---- who is meant ---- */

static int hand_over(struct kprof_dynolog_candidates *a, struct entry *e)
{
	if (!a->handed)
		a->handed = handed_new(a->config->text, a->r.id);
	return a->handed ? entry__hand(e, a->handed) : -ENOMEM;
}

static int begin_outside(struct kprof_dynolog_candidates *a, struct entry *e)
{
	const struct kprof_dynolog_opts *o = &a->d->o;
	char path[KPROF_DYNOLOG_PATH_BYTES];
	int err = kprof_dynolog_path(a->config->log_file, e->p.pid, path);

	return err ? err : o->begin(o->ctx, &a->r, entry__shown(e), path);
}

static void add_number(struct vec *to, int32_t n)
{
	int32_t *at = vec_push(to, sizeof(n));

	if (at)
		*at = n;
}

static enum kprof_dynolog_engine choose(struct kprof_dynolog_candidates *a, struct entry *e)
{
	const struct kprof_dynolog_opts *o = &a->d->o;
	enum kprof_dynolog_engine engine = KPROF_DYNOLOG_KINETO;

	if (o->engine)
		engine = o->engine(o->ctx, &a->r, entry__shown(e));
	if (engine == KPROF_DYNOLOG_KINETO && e->polled)
		return engine;
	return engine == KPROF_DYNOLOG_OUTSIDE && o->begin ? engine : KPROF_DYNOLOG_NOBODY;
}

/* Kineto names its file by the number that the process has for itself, kprof by the machine's. */
static void meet(struct kprof_dynolog_candidates *a, struct entry *e)
{
	enum kprof_dynolog_engine engine;
	int32_t number;
	int err;

	if (!match_entry(&a->r, e))
		return;
	engine = choose(a, e);
	if (engine == KPROF_DYNOLOG_NOBODY)
		return;
	number = engine == KPROF_DYNOLOG_KINETO ? e->p.own_pid : e->p.pid;
	a->result.matched++;
	add_number(&a->matched, number);
	if (a->result.triggered >= a->r.process_limit)
		return;
	err = engine == KPROF_DYNOLOG_KINETO ? hand_over(a, e) : begin_outside(a, e);
	if (!err) {
		a->result.triggered++;
		add_number(&a->triggered, number);
	} else if (err == -EBUSY) {
		a->result.busy++;
	} else {
		a->result.failed++;
	}
}

void kprof_dynolog_candidate(struct kprof_dynolog_candidates *a, pid_t pid, int64_t job_id)
{
	const pid_t *seen = a->candidates.data;
	struct entry e;
	pid_t *at;

	if (job_id != a->r.job_id || a->candidates.nr >= a->d->registry.most ||
	    registry__find(&a->d->registry, pid))
		return;
	for (size_t i = 0; i < a->candidates.nr; i++)
		if (seen[i] == pid)
			return;
	at = vec_push(&a->candidates, sizeof(*at));
	if (!at)
		return;
	*at = pid;
	if (identity_read(pid, &e))
		return;
	e.p.job_id = job_id;
	meet(a, &e);
}

static void meet_all(struct kprof_dynolog_candidates *a)
{
	struct registry *all = &a->d->registry;
	const struct kprof_dynolog_opts *o = &a->d->o;

	forget_silent(a->d);
	for (size_t i = 0; i < all->nr;) {
		struct entry *e = all->all[i];

		if (match_entry(&a->r, e) && !proc_alive(e->p.pid, e->p.start_ticks)) {
			forget(a->d, e);
			continue;
		}
		meet(a, e);
		i++;
	}
	if (o->candidates)
		o->candidates(o->ctx, &a->r, a);
}

/* ---- answers ---- */

/* The object's text, malloc'ed; it is freed. */
static char *print(cJSON *root)
{
	char *text = root ? cJSON_PrintUnformatted(root) : NULL;

	cJSON_Delete(root);
	return text;
}

static cJSON *numbers(const struct vec *list)
{
	return list->nr ? cJSON_CreateIntArray(list->data, (int)list->nr) : cJSON_CreateArray();
}

void kprof_dynolog_note(struct kprof_dynolog *d, const char *text)
{
	char **notes = d->notes.data, *copy;

	for (size_t i = 0; i < d->notes.nr; i++)
		if (!strcmp(notes[i], text))
			return;
	copy = d->notes.nr < MOST_NOTES ? strdup(text) : NULL;
	notes = copy ? vec_push(&d->notes, sizeof(*notes)) : NULL;
	if (notes)
		*notes = copy;
	else
		free(copy);
}

static void forget_notes(struct kprof_dynolog *d)
{
	char **notes = d->notes.data;

	for (size_t i = 0; i < d->notes.nr; i++)
		free(notes[i]);
	free(notes);
	d->notes = (struct vec){0};
}

static char *print_result(const struct kprof_dynolog_candidates *a, int err)
{
	cJSON *root = cJSON_CreateObject();
	char status[320];

	cJSON_AddNumberToObject(root, "activityProfilersBusy", a->result.busy);
	cJSON_AddItemToObject(root, "activityProfilersTriggered", numbers(&a->triggered));
	cJSON_AddNumberToObject(root, "eventProfilersBusy", 0);
	cJSON_AddItemToObject(root, "eventProfilersTriggered", cJSON_CreateArray());
	if (a->result.nr_notes)
		cJSON_AddItemToObject(
			root, "notes",
			cJSON_CreateStringArray(a->result.notes, (int)a->result.nr_notes));
	cJSON_AddItemToObject(root, "processesMatched", numbers(&a->matched));
	if (err) {
		snprintf(status, sizeof(status), "failed with exception = %s", a->result.error);
		cJSON_AddStringToObject(root, "status", status);
	}
	return print(root);
}

static char *answer_request(struct kprof_dynolog *d, const cJSON *root, const char *peer,
			    bool loopback)
{
	struct kprof_dynolog_candidates a = {
		.d = d,
		.r = {.id = ++d->requests, .peer = peer, .loopback = loopback},
	};
	char *text;
	int err = take_request(&a, root);

	if (err)
		a.result.error = kprof_error_cause();
	else
		meet_all(&a);
	a.result.notes = d->notes.data;
	a.result.nr_notes = d->notes.nr;
	text = print_result(&a, err);
	if (d->o.done && a.config)
		d->o.done(d->o.ctx, &a.r, &a.result);
	forget_notes(d);
	kprof_dynolog_config_free(a.config);
	handed_drop(a.handed);
	free((int32_t *)a.r.pids);
	free(a.matched.data);
	free(a.triggered.data);
	free(a.candidates.data);
	return text;
}

static char *answer_version(void)
{
	cJSON *root = cJSON_CreateObject();
	char version[64];

	snprintf(version, sizeof(version), "kprof %s", kprof_version());
	cJSON_AddStringToObject(root, "version", version);
	return print(root);
}

static char *answer_status(bool dcgm)
{
	cJSON *root = cJSON_CreateObject();

	if (dcgm)
		cJSON_AddBoolToObject(root, "status", false);
	else
		cJSON_AddNumberToObject(root, "status", NO_DCGM);
	return print(root);
}

int request_answer(struct kprof_dynolog *d, const char *json, size_t bytes, const char *peer,
		   bool loopback, char **answer)
{
	cJSON *root = NULL;
	const char *fn;

	*answer = NULL;
	/* which also bounds how deep it is */
	if (!memchr(json, '\0', bytes) && json_valid(json))
		root = cJSON_Parse(json);
	fn = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(root, "fn"));
	if (!fn)
		fn = "";
	d->counts.requests++;
	if (!strcmp(fn, "getStatus"))
		*answer = answer_status(false);
	else if (!strcmp(fn, "getVersion"))
		*answer = answer_version();
	else if (!strcmp(fn, "dcgmProfPause") || !strcmp(fn, "dcgmProfResume"))
		*answer = answer_status(true);
	else if (!strcmp(fn, "setKinetOnDemandRequest"))
		*answer = answer_request(d, root, peer, loopback);
	cJSON_Delete(root);
	return *answer ? 0 : -EBADMSG;
}
