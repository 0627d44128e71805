// SPDX-License-Identifier: BSD-2-Clause
/* What is known of a recording on demand: for clients, and for daemons that begin later. */
#include <cjson/cJSON.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/daemon/record/recording.h"
#include "cmd/print/json_get.h"

#define MOST_ROUNDS 1000 /* as the option's row says */

static const char *const state_names[] = {
	[RECORDING_PREPARING] = "preparing", [RECORDING_PREPARED] = "prepared",
	[RECORDING_STARTING] = "starting",   [RECORDING_ON] = "recording",
	[RECORDING_STOPPING] = "stopping",   [RECORDING_DONE] = "done",
	[RECORDING_FAILED] = "failed",       [RECORDING_CANCELLED] = "cancelled",
};

const char *recording_state_name(enum recording_state state)
{
	return state_names[state];
}

void recording__path(const struct recording *r, uint32_t round, char out[RECORDING_PATH_BYTES])
{
	int len = (int)(strlen(r->path) - strlen(".kprof"));

	if (round)
		snprintf(out, RECORDING_PATH_BYTES, "%.*s.%u.kprof", len, r->path, round);
	else
		snprintf(out, RECORDING_PATH_BYTES, "%s", r->path);
}

cJSON *recording__describe(const struct recording *r)
{
	static const char *const keys[] = {"elapsed_ns", "events",     "samples", "lost",
					   "processes",  "cost_share", "gone"};
	cJSON *o = cJSON_CreateObject(), *pids;
	char path[RECORDING_PATH_BYTES];

	cJSON_AddStringToObject(o, "id", r->id);
	cJSON_AddStringToObject(o, "state", state_names[r->state]);
	cJSON_AddNumberToObject(o, "uid", r->uid);
	if (r->space)
		cJSON_AddBoolToObject(o, "elsewhere", true);
	if (r->asked_by)
		cJSON_AddNumberToObject(o, "asked_by", r->asked_by);
	if (r->for_dyno)
		cJSON_AddTrueToObject(o, "for_dyno");
	pids = cJSON_AddArrayToObject(o, "pids");
	for (size_t i = 0; i < r->nr_pids; i++)
		cJSON_AddItemToArray(pids, cJSON_CreateNumber(r->pids[i]));
	cJSON_AddNumberToObject(o, "rounds", r->rounds);
	cJSON_AddNumberToObject(o, "begun_ms", (double)r->begun_ms);
	if (r->started_ms)
		cJSON_AddNumberToObject(o, "started_ms", (double)r->started_ms);
	if (r->ended_ms)
		cJSON_AddNumberToObject(o, "ended_ms", (double)r->ended_ms);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const cJSON *n = cJSON_GetObjectItemCaseSensitive(r->numbers, keys[i]);

		if (cJSON_IsNumber(n))
			cJSON_AddNumberToObject(o, keys[i], n->valuedouble);
	}
	if (r->why[0])
		cJSON_AddStringToObject(o, "why", r->why);
	if (r->early[0])
		cJSON_AddStringToObject(o, "early", r->early);
	if (r->error && r->state != RECORDING_DONE)
		cJSON_AddStringToObject(o, "error", r->error);
	if (r->hint && r->state != RECORDING_DONE)
		cJSON_AddStringToObject(o, "hint", r->hint);
	if (r->state == RECORDING_DONE) {
		recording__path(r, r->rounds > 1 ? r->rounds : 0, path);
		if (r->rounds == 1 && access(path, F_OK)) /* the first of several */
			recording__path(r, 1, path);
		cJSON_AddStringToObject(o, "path", path);
	}
	return o;
}

void recording__take_pids(struct recording *r, const cJSON *m)
{
	const cJSON *pid;

	cJSON_ArrayForEach(pid, cJSON_GetObjectItemCaseSensitive(m, "pids"))
	{
		if (r->nr_pids < sizeof(r->pids) / sizeof(r->pids[0]) && cJSON_IsNumber(pid))
			r->pids[r->nr_pids++] = (pid_t)pid->valueint;
	}
}

void recording__free(struct recording *r)
{
	space_drop(r->space);
	cJSON_Delete(r->numbers);
	free(r->error);
	free(r->hint);
	free(r);
}

void recording__remove(const struct recording *r)
{
	char path[RECORDING_PATH_BYTES];

	for (uint32_t round = 0; round <= r->rounds; round++) {
		recording__path(r, round, path);
		unlink(path);
	}
	snprintf(path, sizeof(path), "%.*s.json", (int)(strlen(r->path) - strlen(".kprof")),
		 r->path);
	unlink(path);
}

void recording__keep(const struct recording *r)
{
	char path[DAEMON_PATH_BYTES + 80], temp[DAEMON_PATH_BYTES + 80];
	cJSON *o = recording__describe(r);
	char *text = cJSON_PrintUnformatted(o);
	int fd;

	cJSON_Delete(o);
	snprintf(path, sizeof(path), "%s/%s.json", r->all->opts.folder, r->id);
	snprintf(temp, sizeof(temp), "%s/.%s.json.tmp", r->all->opts.folder, r->id);
	fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0) {
		bool whole = text && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

		close(fd);
		if (!whole || rename(temp, path))
			unlink(temp);
	}
	cJSON_free(text);
}

/* Whose it is must be known: it would be root's otherwise. */
static bool is_description(const cJSON *o)
{
	const cJSON *uid = cJSON_GetObjectItemCaseSensitive(o, "uid");

	return cJSON_IsNumber(uid) && uid->valuedouble >= 0 && uid->valuedouble < UINT32_MAX &&
	       json_number(o, "asked_by") < UINT32_MAX && json_number(o, "rounds") <= MOST_ROUNDS;
}

/* One that an earlier daemon has written. */
static void read_description(struct recordings *rs, int dir, const char *name)
{
	static char text[KPROF_CLIENT_QUESTION_BYTES];
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), len = (int)strlen(name) - 5;
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	struct recording *r;
	cJSON *o;

	if (fd >= 0)
		close(fd);
	if (n <= 0 || len >= RECORDING_ID_BYTES)
		return;
	text[n] = '\0';
	o = cJSON_Parse(text);
	r = is_description(o) ? calloc(1, sizeof(*r)) : NULL;
	if (r) {
		r->all = rs;
		r->state = RECORDING_DONE;
		snprintf(r->id, sizeof(r->id), "%.*s", len, name);
		snprintf(r->path, sizeof(r->path), "%s/%s.kprof", rs->opts.folder, r->id);
		r->uid = (uid_t)json_number(o, "uid");
		/* what that namespace was, nobody knows any more */
		r->space = json_is_true(o, "elsewhere") ? SPACE_UNKNOWN : 0;
		r->asked_by = (uid_t)json_number(o, "asked_by");
		r->for_dyno = json_is_true(o, "for_dyno");
		r->rounds = (uint32_t)json_number(o, "rounds");
		r->begun_ms = json_number(o, "begun_ms");
		r->started_ms = json_number(o, "started_ms");
		r->ended_ms = json_number(o, "ended_ms");
		recording__take_pids(r, o);
		if (json_text(o, "why"))
			snprintf(r->why, sizeof(r->why), "%s", json_text(o, "why"));
		if (json_text(o, "early"))
			snprintf(r->early, sizeof(r->early), "%s", json_text(o, "early"));
		r->numbers = o;
		r->next = rs->first;
		rs->first = r;
		rs->nr++;
	} else {
		cJSON_Delete(o);
	}
}

void recordings__read_kept(struct recordings *rs)
{
	int dir = open(rs->opts.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char **names, json[64];
	size_t nr;

	if (dir < 0)
		return;
	if (!folder_list(rs->opts.folder, &names, &nr)) {
		for (size_t i = 0; i < nr && rs->nr < MOST_KNOWN; i++) {
			size_t len = strcspn(names[i], ".");

			/* of several rounds, the first one stands for all */
			if (len + 6 < sizeof(json) && (!strcmp(names[i] + len, ".kprof") ||
						       !strcmp(names[i] + len, ".1.kprof"))) {
				snprintf(json, sizeof(json), "%.*s.json", (int)len, names[i]);
				read_description(rs, dir, json);
			}
		}
		folder_list_free(names, nr);
	}
	close(dir);
}
