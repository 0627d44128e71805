// SPDX-License-Identifier: BSD-2-Clause
/*
 * What is said of the recordings: what counts is added up, and so is what they cost; of the rest,
 * the last one holds.
 */
#include <errno.h>
#include <string.h>

#include "join/impl.h"
#include "store/store.h"
#include "util/meta_counts.h"

/* Of one file, or made anew. */
static const char *const left_out[] = {"part", "range", "joined"};
/* Numbers of the ledger (capture/overhead/tell.c) that are sums. */
static const char *const ledger_sums[] = {"elapsed_ns",    "used_ns", "base_ns",   "cost_ns",
					  "over_bound_ns", "bursts",  "bursts_ns", "more_steps"};
static const char *const ledger_most[] = {"worst_second_share", "longest_over_bound_ns"};
#define MOST_STEPS 1024

static cJSON *member(const cJSON *of, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(of, name);
}

static double number(const cJSON *of, const char *name)
{
	const cJSON *item = member(of, name);

	return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

static void set_number(cJSON *of, const char *name, double value)
{
	cJSON *item = member(of, name);

	if (cJSON_IsNumber(item))
		cJSON_SetNumberValue(item, value);
	else if (!item && value != 0)
		cJSON_AddNumberToObject(of, name, value);
}

/* Objects of objects: parts and programs, by name. */
static int add_each(cJSON *to, const cJSON *before, const char *const *names, size_t nr)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, before)
	{
		cJSON *same = item->string ? member(to, item->string) : NULL;

		if (!same && item->string &&
		    !cJSON_AddItemToObject(to, item->string, cJSON_Duplicate(item, true)))
			return -ENOMEM;
		for (size_t i = 0; same && i < nr; i++)
			set_number(same, names[i], number(same, names[i]) + number(item, names[i]));
	}
	return 0;
}

/* Steps are told by the time since their capture's begin; the first ones come first. */
static int add_steps(struct join *j, cJSON *ledger, const cJSON *before)
{
	cJSON *steps = member(ledger, "steps"), *all, *step;
	double shift_ns = (double)(j->now->start_ns - j->info.start_mono_ns);

	all = cJSON_Duplicate(member(before, "steps"), true);
	if (!cJSON_IsArray(all) || !cJSON_IsArray(steps)) {
		cJSON_Delete(all);
		return 0;
	}
	while ((step = cJSON_DetachItemFromArray(steps, 0))) {
		/* at its very begin: what was given up before that, and is told by those before */
		if (number(step, "at_ns") <= 0 || cJSON_GetArraySize(all) >= MOST_STEPS) {
			cJSON_Delete(step);
			continue;
		}
		set_number(step, "at_ns", number(step, "at_ns") + shift_ns);
		cJSON_AddItemToArray(all, step);
	}
	return cJSON_ReplaceItemInObjectCaseSensitive(ledger, "steps", all) ? 0 : -ENOMEM;
}

static void set_shares(cJSON *ledger)
{
	double base_ns = number(ledger, "base_ns");
	cJSON *part;

	set_number(ledger, "share", base_ns > 0 ? number(ledger, "cost_ns") / base_ns : 0);
	cJSON_ArrayForEach(part, member(ledger, "parts"))
		set_number(part, "share", base_ns > 0 ? number(part, "ns") / base_ns : 0);
}

static int add_ledger(struct join *j, cJSON *ledger, const cJSON *before)
{
	static const char *const of_parts[] = {"ns"}, *const of_programs[] = {"runs", "ns"};
	int err;

	for (size_t i = 0; i < ARRAY_SIZE(ledger_sums); i++)
		set_number(ledger, ledger_sums[i],
			   number(ledger, ledger_sums[i]) + number(before, ledger_sums[i]));
	for (size_t i = 0; i < ARRAY_SIZE(ledger_most); i++)
		if (number(before, ledger_most[i]) > number(ledger, ledger_most[i]))
			set_number(ledger, ledger_most[i], number(before, ledger_most[i]));
	set_number(ledger, "before_ns", number(before, "before_ns"));
	err = add_each(member(ledger, "parts"), member(before, "parts"), of_parts, 1);
	if (!err)
		err = add_each(member(ledger, "programs"), member(before, "programs"), of_programs,
			       2);
	if (!err)
		err = add_steps(j, ledger, before);
	set_shares(ledger);
	return err;
}

static bool is_left_out(const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(left_out); i++)
		if (!strcmp(left_out[i], key))
			return true;
	return false;
}

int join_metadata(struct join *j)
{
	cJSON *item;
	int err = 0;

	while (!err && (item = j->now->metadata->child)) {
		const cJSON *before = member(j->metadata, item->string);
		cJSON *ledger = member(item, "ledger");

		cJSON_DetachItemViaPointer(j->now->metadata, item);
		if (before)
			err = meta_counts__add(item->string, item, before);
		if (!err && before && ledger && !strcmp(item->string, "overhead"))
			err = add_ledger(j, ledger, member(before, "ledger"));
		if (err || is_left_out(item->string)) {
			cJSON_Delete(item);
			continue;
		}
		if (before)
			cJSON_DeleteItemFromObjectCaseSensitive(j->metadata, item->string);
		if (!cJSON_AddItemToObject(j->metadata, item->string, item))
			err = -ENOMEM;
	}
	cJSON_Delete(j->now->metadata);
	j->now->metadata = NULL;
	return err ? join_no_memory() : 0;
}

int join_put_metadata(struct join *j)
{
	cJSON *joined = cJSON_AddObjectToObject(j->metadata, "joined"), *item;
	int err = joined ? 0 : join_no_memory();

	cJSON_AddNumberToObject(joined, "captures", (double)j->info.joined);
	cJSON_AddNumberToObject(joined, "missing", (double)j->info.missing);
	cJSON_AddNumberToObject(joined, "cut_short", (double)j->info.incomplete);
	if (j->info.gone)
		cJSON_AddNumberToObject(joined, "gone", (double)j->info.gone);
	cJSON_ArrayForEach(item, j->metadata)
	{
		char *json = err ? NULL : cJSON_PrintUnformatted(item);
		struct store_record r = {.type = STORE_META,
					 .meta = {.key = item->string, .json = json}};

		if (!err)
			err = json ? store_writer__put(j->out, &r) : join_no_memory();
		cJSON_free(json);
	}
	return err;
}
