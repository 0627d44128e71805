// SPDX-License-Identifier: BSD-2-Clause
/*
 * The metadata of what is merged. What is said of a process has the process's new number. Of the
 * rest, each key is the first capture's that has it, or a sum; under "merged" is all of each.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/impl.h"
#include "store/store.h"

/* Keys that have a PID after them: "device.1234.0". */
static const char *const of_processes[] = {"agent.",  "clock.device.", "context.",
					   "device.", "distributed.",  "metrics."};
/* Those whose numbers are added up. */
static const char *const counts[] = {"inputs", "stacks"};
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

/* Adds the numbers of an object to those of another one. */
static void add_up(cJSON *to, const cJSON *from)
{
	for (const cJSON *item = from ? from->child : NULL; item; item = item->next) {
		cJSON *same =
			item->string ? cJSON_GetObjectItemCaseSensitive(to, item->string) : NULL;

		if (!same && item->string)
			cJSON_AddItemToObject(to, item->string, cJSON_Duplicate(item, true));
		else if (cJSON_IsNumber(same) && cJSON_IsNumber(item))
			cJSON_SetNumberValue(same, same->valuedouble + item->valuedouble);
		else if (cJSON_IsObject(same) && cJSON_IsObject(item))
			add_up(same, item);
	}
}

static bool has_before(const struct merge *m, const struct merge_capture *c, const char *key)
{
	for (const struct merge_capture *before = m->captures; before < c; before++)
		if (cJSON_HasObjectItem(before->metadata, key))
			return true;
	return false;
}

static int put_sum(struct merge *m, const struct merge_capture *first, const cJSON *item)
{
	cJSON *sum = cJSON_Duplicate(item, true);
	int err;

	for (const struct merge_capture *c = first + 1; sum && c < m->captures + m->nr; c++)
		add_up(sum, cJSON_GetObjectItemCaseSensitive(c->metadata, item->string));
	err = put(m, item->string, sum);
	cJSON_Delete(sum);
	return err;
}

static int put_of_all(struct merge *m, const struct merge_capture *c)
{
	int err = 0;

	for (const cJSON *item = c->metadata->child; item && !err; item = item->next) {
		if (is_one_of(item->string, of_one, ARRAY_SIZE(of_one)) ||
		    has_before(m, c, item->string))
			continue;
		if (is_one_of(item->string, counts, ARRAY_SIZE(counts)))
			err = put_sum(m, c, item);
		else
			err = put(m, item->string, item);
	}
	return err;
}

/* ---- "merged" ---- */

static cJSON *machine_json(const struct kprof_merge_machine *told)
{
	static const char *const clocks[] = {
		[KPROF_MERGE_CLOCK_ITS_OWN] = "its own",
		[KPROF_MERGE_CLOCK_COLLECTIVES] = "collectives",
		[KPROF_MERGE_CLOCK_UNIX] = "unix",
	};
	cJSON *o = cJSON_CreateObject();

	cJSON_AddStringToObject(o, "host", told->host);
	cJSON_AddNumberToObject(o, "first_pid", told->first_pid);
	cJSON_AddStringToObject(o, "clock", clocks[told->clock]);
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
	cJSON *o = cJSON_CreateObject(), *metadata = cJSON_Duplicate(c->metadata, true);

	cJSON_AddStringToObject(o, "file", path_base(c->path));
	cJSON_AddNumberToObject(o, "machine", (double)c->machine);
	cJSON_AddNumberToObject(o, "start_mono_ns", (double)clock_line__apply(line, c->start_ns));
	cJSON_AddNumberToObject(o, "end_mono_ns", (double)clock_line__apply(line, c->end_ns));
	cJSON_AddBoolToObject(o, "complete", c->complete);
	if (!metadata || !cJSON_AddItemToObject(o, "metadata", metadata)) {
		cJSON_Delete(metadata);
		cJSON_Delete(o);
		return NULL;
	}
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
	int err = 0;

	for (size_t i = 0; i < m->nr && !err; i++)
		err = put_of_processes(m, &m->captures[i]);
	for (size_t i = 0; i < m->nr && !err; i++)
		err = put_of_all(m, &m->captures[i]);
	return err ? err : put_merged(m);
}
