// SPDX-License-Identifier: BSD-2-Clause
/*
 * The metadata of what is merged. What is said of a process has the process's new number. Of the
 * rest, each key is the first capture's that has it, or a sum; under "merged" is what each said of
 * itself.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/impl.h"
#include "store/store.h"
#include "util/map64.h"

/* A value of metadata may have 1 MiB: so much of it is what the captures said. */
#define SAID_BYTES (768u << 10)
/* An object with more members is none of kprof's. */
#define MOST_MEMBERS 256

/* So many processes may be named that were recorded within annotations only. */
#define MOST_LIMITED 65536

/* Keys that have a PID after them: "device.1234.0". */
static const char *const of_processes[] = {"agent.",  "clock.device.", "context.",
					   "device.", "distributed.",  "metrics."};
/* Those whose numbers are added up, and those of their numbers that are the same or left out. */
static const char *const counts[] = {"inputs", "stacks"};
static const char *const no_counts[] = {"bpf_p50_ns", "bpf_p99_ns", "frequency_hz"};
/* What is true of one recording only. */
static const char *const of_one[] = {"boot", "overhead", "range", "only_pid"};

static bool is_one_of(const char *key, const char *const *list, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (!strcmp(key, list[i]))
			return true;
	return false;
}

/* Where in the key the PID begins; NULL: nowhere. */
static const char *pid_in(const char *key, uint32_t *pid, const char **rest)
{
	for (size_t i = 0; i < ARRAY_SIZE(of_processes); i++) {
		size_t len = strlen(of_processes[i]);
		char *end;
		unsigned long value;

		if (strncmp(key, of_processes[i], len) || key[len] < '0' || key[len] > '9')
			continue;
		value = strtoul(key + len, &end, 10);
		if (value >= MERGE_PID_STEP || (*end && *end != '.'))
			return NULL;
		*pid = (uint32_t)value;
		*rest = end;
		return key + len;
	}
	return NULL;
}

static int put(struct merge *m, const char *key, const cJSON *value)
{
	char *json = value ? cJSON_PrintUnformatted(value) : NULL;
	struct store_record r = {.type = STORE_META, .meta = {.key = key, .json = json}};
	int err = json ? store_writer__put(m->out, &r) : merge_no_memory();

	cJSON_free(json);
	return err;
}

/* Puts what a capture says of processes, and takes it out of what it says of itself. */
static int put_of_processes(struct merge *m, struct merge_capture *c)
{
	uint32_t first = m->machines[c->machine].told.first_pid, pid;
	cJSON *item, *next;
	int err = 0;

	for (item = c->metadata->child; item && !err; item = next) {
		const char *rest, *at = pid_in(item->string, &pid, &rest);
		char *key;

		next = item->next;
		if (!at)
			continue;
		key = xasprintf("%.*s%u%s", (int)(at - item->string), item->string, first + pid,
				rest);
		err = key ? put(m, key, item) : merge_no_memory();
		free(key);
		cJSON_Delete(cJSON_DetachItemViaPointer(c->metadata, item));
	}
	return err;
}

static cJSON *parsed(const cJSON *raw)
{
	return raw && raw->valuestring ? cJSON_Parse(raw->valuestring) : NULL;
}

/* Adds the numbers of an object to those of another one. */
static void add_up(cJSON *to, const cJSON *from)
{
	const cJSON *item;
	int members = 0;

	cJSON_ArrayForEach(item, from)
	{
		cJSON *same =
			item->string ? cJSON_GetObjectItemCaseSensitive(to, item->string) : NULL;

		if (!item->string || ++members > MOST_MEMBERS)
			return;
		if (!same)
			cJSON_AddItemToObject(to, item->string, cJSON_Duplicate(item, true));
		else if (is_one_of(item->string, no_counts, ARRAY_SIZE(no_counts))) {
			if (!cJSON_Compare(same, item, true))
				cJSON_DeleteItemFromObjectCaseSensitive(to, item->string);
		} else if (cJSON_IsNumber(same) && cJSON_IsNumber(item))
			cJSON_SetNumberValue(same, same->valuedouble + item->valuedouble);
		else if (cJSON_IsObject(same) && cJSON_IsObject(item))
			add_up(same, item);
	}
}

/* Adds names that a list does not have yet. */
static void add_names(cJSON *to, const cJSON *from)
{
	const cJSON *item, *same;

	cJSON_ArrayForEach(item, from)
	{
		bool there = !cJSON_IsString(item) || cJSON_GetArraySize(to) > MOST_MEMBERS;

		cJSON_ArrayForEach(same, to) there |= cJSON_Compare(same, item, true);
		if (!there)
			cJSON_AddItemToArray(to, cJSON_Duplicate(item, true));
	}
}

static int put_all_of(struct merge *m, const char *key, void (*add)(cJSON *to, const cJSON *from))
{
	cJSON *sum = NULL;
	int err;

	for (size_t i = 0; i < m->nr; i++) {
		const cJSON *raw = cJSON_GetObjectItemCaseSensitive(m->captures[i].metadata, key);
		cJSON *one = parsed(raw);

		if (sum)
			add(sum, one);
		else
			sum = cJSON_Duplicate(one, true);
		cJSON_Delete(one);
	}
	err = sum ? put(m, key, sum) : 0;
	cJSON_Delete(sum);
	return err;
}

/* Whose step began the window: a process of the first capture that says so. */
static int put_steps(struct merge *m, const struct merge_capture *c, const cJSON *raw)
{
	cJSON *steps = parsed(raw), *pid = cJSON_GetObjectItemCaseSensitive(steps, "pid");
	int err;

	if (cJSON_IsNumber(pid) && pid->valuedouble > 0 && pid->valuedouble < MERGE_PID_STEP)
		cJSON_SetNumberValue(pid,
				     pid->valuedouble + m->machines[c->machine].told.first_pid);
	err = steps ? put(m, "steps", steps) : 0;
	cJSON_Delete(steps);
	return err;
}

/* ---- "within" ---- */

static const cJSON *raw_of(const struct merge_capture *c, const char *key)
{
	return cJSON_GetObjectItemCaseSensitive(c->metadata, key);
}

/* Do all captures say the same? */
static bool is_of_all(const struct merge *m, const char *key)
{
	const cJSON *first = raw_of(&m->captures[0], key);

	for (size_t i = 1; i < m->nr; i++) {
		const cJSON *one = raw_of(&m->captures[i], key);

		if (!first || !one || !cJSON_Compare(first, one, true))
			return false;
	}
	return true;
}

/* Was the capture's process recorded within annotations only, whoever recorded it? */
static bool is_limited(const struct merge *m, const struct merge_capture *c, uint32_t pid)
{
	for (const struct merge_capture *o = m->captures; o < m->captures + m->nr; o++)
		if (o->machine == c->machine && merge_has_pid(o, pid) && !raw_of(o, "within"))
			return false;
	return true;
}

/* The capture's limit, with its processes. left: how many more may be named. */
static cJSON *limit_json(const struct merge *m, const struct merge_capture *c, size_t *left)
{
	uint32_t first = m->machines[c->machine].told.first_pid;
	cJSON *o = cJSON_CreateObject(), *pids = cJSON_CreateArray();
	const uint32_t *pid = c->pids.data;

	cJSON_AddItemToObject(o, "name", parsed(raw_of(c, "within")));
	for (size_t i = 0; i < c->pids.nr && *left; i++) {
		if ((i && pid[i] == pid[i - 1]) || !is_limited(m, c, pid[i]))
			continue;
		cJSON_AddItemToArray(pids, cJSON_CreateNumber(first + pid[i]));
		--*left;
	}
	cJSON_AddItemToObject(o, "pids", pids);
	return o;
}

/* They differ, or only some were recorded within annotations: which, and their processes. */
static int put_within(struct merge *m)
{
	cJSON *all = cJSON_CreateArray();
	size_t left = MOST_LIMITED;
	int err;

	for (size_t i = 0; i < m->nr; i++)
		if (raw_of(&m->captures[i], "within"))
			cJSON_AddItemToArray(all, limit_json(m, &m->captures[i], &left));
	err = all ? put(m, "within", all) : merge_no_memory();
	cJSON_Delete(all);
	return err;
}

static int put_of_all(struct merge *m, const struct merge_capture *c, struct map64 *have)
{
	const cJSON *item;
	int err = 0;

	cJSON_ArrayForEach(item, c->metadata)
	{
		uint64_t *had = map64__at(have, hash64_text(0, item->string) >> 1);

		if (!had)
			return merge_no_memory();
		if ((*had)++ || is_one_of(item->string, of_one, ARRAY_SIZE(of_one)))
			continue;
		if (is_one_of(item->string, counts, ARRAY_SIZE(counts)))
			err = put_all_of(m, item->string, add_up);
		else if (!strcmp(item->string, "counters"))
			err = put_all_of(m, item->string, add_names);
		else if (!strcmp(item->string, "steps"))
			err = put_steps(m, c, item);
		else if (!strcmp(item->string, "within") && !is_of_all(m, item->string))
			err = put_within(m);
		else
			err = put(m, item->string, item);
		if (err)
			return err;
	}
	return 0;
}

/* ---- "merged" ---- */

const char *kprof_merge_clock_name(enum kprof_merge_clock clock)
{
	return clock == KPROF_MERGE_CLOCK_ITS_OWN       ? "its own"
	       : clock == KPROF_MERGE_CLOCK_COLLECTIVES ? "collectives"
							: "unix";
}

static cJSON *machine_json(const struct kprof_merge_machine *told)
{
	cJSON *o = cJSON_CreateObject();

	cJSON_AddStringToObject(o, "host", told->host);
	cJSON_AddNumberToObject(o, "first_pid", told->first_pid);
	cJSON_AddStringToObject(o, "clock", kprof_merge_clock_name(told->clock));
	cJSON_AddNumberToObject(o, "offset_ns", (double)told->offset_ns);
	cJSON_AddNumberToObject(o, "drift_ppm", told->drift_ppm);
	if (told->clock != KPROF_MERGE_CLOCK_UNIX)
		cJSON_AddNumberToObject(o, "error_ns", (double)told->error_ns);
	cJSON_AddNumberToObject(o, "slack_ns", (double)told->slack_ns);
	cJSON_AddNumberToObject(o, "collectives", (double)told->collectives);
	return o;
}

static cJSON *capture_json(const struct merge *m, const struct merge_capture *c)
{
	const struct clock_line *line = &m->machines[c->machine].line;
	cJSON *o = cJSON_CreateObject();
	char *said = cJSON_PrintUnformatted(c->metadata);

	cJSON_AddStringToObject(o, "file", path_base(c->path));
	cJSON_AddNumberToObject(o, "machine", (double)c->machine);
	cJSON_AddNumberToObject(o, "start_mono_ns", (double)clock_line__apply(line, c->start_ns));
	cJSON_AddNumberToObject(o, "end_mono_ns", (double)clock_line__apply(line, c->end_ns));
	cJSON_AddBoolToObject(o, "complete", c->complete);
	if (said && strlen(said) <= SAID_BYTES / m->nr)
		cJSON_AddRawToObject(o, "metadata", said);
	cJSON_free(said);
	return o;
}

/* Takes ownership of the item. */
static bool add_to(cJSON *array, cJSON *item)
{
	if (item && cJSON_AddItemToArray(array, item))
		return true;
	cJSON_Delete(item);
	return false;
}

static int put_merged(struct merge *m)
{
	cJSON *o = cJSON_CreateObject(), *machines = cJSON_AddArrayToObject(o, "machines"),
	      *captures = cJSON_AddArrayToObject(o, "captures");
	bool added = machines && captures;
	int err;

	for (size_t i = 0; i < m->nr_machines && added; i++)
		added = add_to(machines, machine_json(&m->machines[i].told));
	for (size_t i = 0; i < m->nr && added; i++)
		added = add_to(captures, capture_json(m, &m->captures[i]));
	err = added ? put(m, "merged", o) : merge_no_memory();
	cJSON_Delete(o);
	return err;
}

int merge_put_metadata(struct merge *m)
{
	struct map64 have = {0}; /* by the hash of a key: whether it was put */
	int err = 0;

	for (size_t i = 0; i < m->nr && !err; i++)
		err = put_of_processes(m, &m->captures[i]);
	for (size_t i = 0; i < m->nr && !err; i++)
		err = put_of_all(m, &m->captures[i], &have);
	map64__free(&have);
	return err ? err : put_merged(m);
}
