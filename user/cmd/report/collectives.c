// SPDX-License-Identifier: BSD-2-Clause
/* Tables by collective: columns, sums by rank, the longest waits. */
#include <inttypes.h>
#include <stdio.h>

#include "cmd/print/message.h"
#include "cmd/print/text.h"
#include "cmd/report/report.h"

#define MOST_WAITS 5 /* that are told below the table; --json has more */

const char *report_collectives_cell(char buf[REPORT_CELL_BYTES], enum report_collective what,
				    const struct kprof_row *row)
{
	const struct kprof_collective_info *info = row->collective;

	switch (what) {
	case REPORT_RANKS:
		snprintf(buf, REPORT_CELL_BYTES, "%u", info->ranks);
		return buf;
	case REPORT_WAITED:
		return text_time(buf, info->waited_ns);
	case REPORT_LONGEST:
		return text_time(buf, info->longest_ns);
	case REPORT_LAST:
		snprintf(buf, REPORT_CELL_BYTES, "%3.0f%% rank %u",
			 (double)info->last_times / (double)row->calls * 100, info->last_rank);
		return buf;
	case REPORT_BYTES:
		return info->sized ? text_bytes(buf, row->bytes) : "";
	case REPORT_SPEED:
		if (!info->gb_per_s)
			return "";
		snprintf(buf, REPORT_CELL_BYTES, "%.3f", info->gb_per_s);
		return buf;
	}
	return "";
}

/* ---- JSON ---- */

void report_collectives_json_row(struct json *j, const struct kprof_row *row)
{
	const struct kprof_collective_info *info = row->collective;

	json_uint(j, "ranks", info->ranks);
	json_uint(j, "waited_ns", info->waited_ns);
	json_uint(j, "longest_ns", info->longest_ns);
	json_uint(j, "last_rank", info->last_rank);
	json_uint(j, "last_times", info->last_times);
	json_uint(j, "sized", info->sized);
	json_uint(j, "bytes", row->bytes);
	json_double(j, "gb_per_s", info->gb_per_s);
}

static void json_ranks(struct json *j, const struct kprof_result *r)
{
	struct kprof_collective_rank rank;

	json_open(j, "ranks", '[');
	for (size_t i = 0; !kprof_result_collective_rank(r, i, &rank); i++) {
		json_open(j, NULL, '{');
		json_string(j, "group", rank.group);
		json_uint(j, "rank", rank.rank);
		json_uint(j, "pid", (uint64_t)rank.pid);
		json_uint(j, "calls", rank.calls);
		json_uint(j, "last", rank.last);
		json_uint(j, "waited_ns", rank.waited_ns);
		json_uint(j, "awaited_ns", rank.awaited_ns);
		json_close(j, '}');
	}
	json_close(j, ']');
}

void report_collectives_json(struct json *j, const struct kprof_result *r)
{
	struct kprof_collective c;

	json_ranks(j, r);
	json_uint(j, "unmatched", kprof_result_unmatched(r));
	if (kprof_result_clock_error_ns(r) == UINT64_MAX)
		json_null(j, "clock_error_ns");
	else
		json_uint(j, "clock_error_ns", kprof_result_clock_error_ns(r));
	json_open(j, "longest", '[');
	for (size_t i = 0; !kprof_result_collective(r, i, &c); i++) {
		json_open(j, NULL, '{');
		json_string(j, "name", c.name);
		json_string(j, "group", c.group);
		json_uint(j, "number", c.number);
		json_uint(j, "at_ns", c.at_ns);
		if (c.took_ns)
			json_uint(j, "took_ns", c.took_ns);
		else
			json_null(j, "took_ns");
		if (c.bytes != UINT64_MAX)
			json_uint(j, "bytes", c.bytes);
		else
			json_null(j, "bytes");
		json_uint(j, "waited_ns", c.waited_ns);
		json_uint(j, "longest_ns", c.longest_ns);
		json_uint(j, "ranks", c.ranks);
		json_uint(j, "last_rank", c.last_rank);
		json_uint(j, "last_pid", (uint64_t)c.last_pid);
		json_close(j, '}');
	}
	json_close(j, ']');
}

/* ---- text ---- */

static void print_rank(const struct kprof_collective_rank *rank)
{
	char waited[TEXT_NUMBER_BYTES], awaited[TEXT_NUMBER_BYTES];

	printf("group ");
	text_print(stdout, rank->group);
	printf(", rank %u (process %d): last in %" PRIu64 " of %" PRIu64
	       ", others waited %s for it; waited %s itself\n",
	       rank->rank, rank->pid, rank->last, rank->calls, text_time(awaited, rank->awaited_ns),
	       text_time(waited, rank->waited_ns));
}

static void print_wait(const struct kprof_collective *c)
{
	char longest[TEXT_NUMBER_BYTES], at[TEXT_NUMBER_BYTES];

	printf("  %s in ", text_time(longest, c->longest_ns));
	text_print(stdout, c->name);
	printf(" %" PRIu64 " of group ", c->number);
	text_print(stdout, c->group);
	printf(", for rank %u (process %d), until %s\n", c->last_rank, c->last_pid,
	       text_time(at, c->at_ns));
}

static void print_clocks(const struct kprof_result *r)
{
	uint64_t error_ns = kprof_result_clock_error_ns(r);
	char error[TEXT_NUMBER_BYTES];

	if (error_ns == UINT64_MAX)
		printf("Of different machines, Unix time says what was earlier: waits may be wrong by "
		       "as much as that is\n");
	else if (error_ns)
		printf("Times of different machines are exact to %s\n", text_time(error, error_ns));
}

void report_collectives_lines(const struct kprof_result *r)
{
	struct kprof_collective_rank rank;
	struct kprof_collective c;

	print_clocks(r);
	if (kprof_result_unmatched(r))
		printf("Not in the table: %" PRIu64
		       " times that a rank took part, as not all ranks were "
		       "recorded, or group and number are not known\n",
		       kprof_result_unmatched(r));
	for (size_t i = 0; !kprof_result_collective_rank(r, i, &rank); i++)
		print_rank(&rank);
	for (size_t i = 0; i < MOST_WAITS && !kprof_result_collective(r, i, &c); i++) {
		if (!i)
			printf("Longest waits for a rank:\n");
		print_wait(&c);
	}
}

void report_collectives_empty(const char *path, const struct kprof_result *r)
{
	if (kprof_result_unmatched(r))
		message_warn(
			"record all ranks of a group at once: kprof attach -p PID,PID,…, or "
			"kprof merge what was recorded of them; PyTorch 1.13 does not say which collective it is",
			"%s has no collective with the work of all of its ranks", path);
	else
		message_warn("they come from processes that use torch.distributed with gloo",
			     "%s has no collectives", path);
}
