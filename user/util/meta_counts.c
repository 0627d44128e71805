// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which numbers in a capture's metadata count, and which say how things are (a frequency, a size).
 */
#include "util/meta_counts.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "util/util.h"

#define MOST_MEMBERS 12
/* Of a longer list, which is none of kprof's, what comes later has no counterpart. */
#define MOST_NAMED 1024

static const struct counting {
	const char *key; /* with a dot at its end: of all keys that begin so */
	/* members that count, with all that is in them; none: all do … */
	const char *members[MOST_MEMBERS];
	/* … but for these */
	const char *not_members[MOST_MEMBERS];
} table[] = {
	{"overhead",
	 {"idle_site_hits", "late_records", "records_of_other_processes", "records_damaged",
	  "hits_in_other_processes", "children_not_recorded", "news_of_processes_lost"},
	 {0}},
	{"stacks",
	 {"samples", "sampled_ns", "without_gil", "walks", "runtimes", "news_lost",
	  "tables_evicted", "tables_without_room", "jvm_asked", "jvm_named"},
	 {0}},
	{"waits", {"recorded", "without_stack", "threads_not_watched", "switches_not_seen"}, {0}},
	{"all_processes", {0}, {0}},
	{"inputs", {0}, {"operators_without"}},
	{"flow", {0}, {0}},
	{"calls", {0}, {0}},
	{"memory",
	 {"allocations", "frees", "allocated_bytes", "frees_of_earlier", "frees_not_seen",
	  "allocations_not_kept", "not_understood", "out_of_memory"},
	 {0}},
	{"modules", {"stacks_unknown", "calls_lost", "trees", "trees_left_out"}, {0}},
	{"agent.",
	 {0},
	 {"cupti_version", "cuda_driver_version", "cuda_runtime_version", "max_buffers"}},
};

static bool is_in(const char *const *names, const char *name)
{
	for (size_t i = 0; i < MOST_MEMBERS && names[i]; i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

static const struct counting *counting_of(const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		size_t len = strlen(table[i].key);

		if (!strcmp(table[i].key, key) ||
		    (table[i].key[len - 1] == '.' && !strncmp(table[i].key, key, len)))
			return &table[i];
	}
	return NULL;
}

/* What corresponds to the item: of an object by its key, of a list by the member "name". */
static const cJSON *counterpart(const cJSON *before, const cJSON *item)
{
	const cJSON *name = cJSON_GetObjectItemCaseSensitive(item, "name"), *other;
	int nr = 0;

	if (item->string)
		return cJSON_GetObjectItemCaseSensitive(before, item->string);
	if (!cJSON_IsString(name))
		return NULL;
	cJSON_ArrayForEach(other, before)
	{
		if (++nr > MOST_NAMED)
			break;
		const cJSON *of = cJSON_GetObjectItemCaseSensitive(other, "name");

		if (cJSON_IsString(of) && !strcmp(of->valuestring, name->valuestring))
			return other;
	}
	return NULL;
}

/* True: nothing is left of the item, one of a list. */
static bool subtract(cJSON *item, const cJSON *before)
{
	cJSON *child, *next;
	double left = 0;

	if (cJSON_IsNumber(item) && cJSON_IsNumber(before)) {
		left = item->valuedouble - before->valuedouble;
		cJSON_SetNumberValue(item, left > 0 ? left : 0);
		return false;
	}
	for (child = item->child; child; child = next) {
		next = child->next;
		if (subtract(child, counterpart(before, child)) && cJSON_IsArray(item))
			cJSON_Delete(cJSON_DetachItemViaPointer(item, child));
		else if (cJSON_IsNumber(child))
			left += child->valuedouble;
	}
	return cJSON_IsObject(item) && !item->string && left == 0;
}

static bool counts(const struct counting *c, const char *member)
{
	return member &&
	       (c->members[0] ? is_in(c->members, member) : !is_in(c->not_members, member));
}

bool meta_counts(const char *key)
{
	return counting_of(key);
}

void meta_counts__subtract(const char *key, cJSON *value, const cJSON *before)
{
	const struct counting *c = counting_of(key);
	cJSON *child;

	if (!c)
		return;
	cJSON_ArrayForEach(child, value) if (counts(c, child->string))
		subtract(child, counterpart(before, child));
}

/* What is only in `more` is taken over. 0 or -ENOMEM. */
static int add(cJSON *to, const cJSON *more)
{
	const cJSON *child;
	int err = 0;

	if (cJSON_IsNumber(to) && cJSON_IsNumber(more)) {
		cJSON_SetNumberValue(to, to->valuedouble + more->valuedouble);
		return 0;
	}
	cJSON_ArrayForEach(child, more)
	{
		cJSON *same = (cJSON *)counterpart(to, child), *copy;

		if (same) {
			err = add(same, child);
		} else {
			copy = cJSON_Duplicate(child, true);
			if (copy && child->string && !cJSON_IsArray(to))
				err = cJSON_AddItemToObject(to, child->string, copy) ? 0 : -ENOMEM;
			else
				err = copy && cJSON_AddItemToArray(to, copy) ? 0 : -ENOMEM;
		}
		if (err)
			return err;
	}
	return 0;
}

int meta_counts__add(const char *key, cJSON *value, const cJSON *before)
{
	const struct counting *c = counting_of(key);
	const cJSON *child;
	int err = 0;

	if (!c)
		return 0;
	cJSON_ArrayForEach(child, before)
	{
		cJSON *same = cJSON_GetObjectItemCaseSensitive(value, child->string);

		if (!counts(c, child->string))
			continue;
		if (same)
			err = add(same, child);
		else if (!cJSON_AddItemToObject(value, child->string, cJSON_Duplicate(child, true)))
			err = -ENOMEM;
		if (err)
			return err;
	}
	return 0;
}
