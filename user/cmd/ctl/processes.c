// SPDX-License-Identifier: BSD-2-Clause
/* kprof ctl processes: the list that comes by a file, for people or as JSON. */
#include <cjson/cJSON.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/ctl/ctl.h"
#include "cmd/options/value.h"
#include "cmd/print/json_get.h"
#include "cmd/print/message.h"
#include "cmd/print/text.h"

#define LONGEST_NS (30 * 1000000000ull)
#define MOST_BYTES (64u << 20)

static const char *or_none(const char *text)
{
	return *text ? text : "-";
}

static int number_of(const cJSON *o, const char *key)
{
	double v = json_number(o, key);

	return v < 4294967296 ? (int)(uint32_t)v : 0;
}

/* Without a choice, those of which kprof can tell more than of any program. */
static bool is_meant(const cJSON *p, const struct value_pids *pids)
{
	for (size_t i = 0; i < pids->nr; i++)
		if (pids->items[i] == number_of(p, "pid"))
			return true;
	return !pids->nr &&
	       (*ctl_text(p, "python") || *ctl_text(p, "frameworks") || *ctl_text(p, "runtimes") ||
		*ctl_text(p, "recording") || json_is_true(p, "agent") ||
		json_is_true(p, "watched") || json_is_true(p, "kineto"));
}

/* What is, or can be, done with it. */
static void state_text(const cJSON *p, char *buf, size_t bytes)
{
	const struct {
		bool holds;
		const char *text;
	} parts[] = {
		{*ctl_text(p, "recording"), "recorded "}, {json_is_true(p, "watched"), "watched"},
		{json_is_true(p, "kineto"), "Kineto"},    {json_is_true(p, "agent"), "agent"},
		{!json_is_true(p, "may"), "not for you"},
	};
	size_t at = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && at < bytes; i++)
		if (parts[i].holds)
			at += (size_t)snprintf(buf + at, bytes - at, "%s%s%s", at ? ", " : "",
					       parts[i].text, i ? "" : ctl_text(p, "recording"));
}

static void add_row(struct table *t, const cJSON *p)
{
	const struct passwd *pw = getpwuid((uid_t)number_of(p, "uid"));
	char pid[16], uid[16], state[160];
	const char *pod = ctl_text(p, "pod");
	const char *cells[] = {pid,
			       pw ? pw->pw_name : uid,
			       ctl_text(p, "name"),
			       or_none(ctl_text(p, "python")),
			       or_none(ctl_text(p, "frameworks")),
			       or_none(ctl_text(p, "runtimes")),
			       or_none(*pod ? pod : ctl_text(p, "container")),
			       state};

	snprintf(pid, sizeof(pid), "%d", number_of(p, "pid"));
	snprintf(uid, sizeof(uid), "%u", (unsigned int)number_of(p, "uid"));
	state_text(p, state, sizeof(state));
	if (!*state)
		strcpy(state, "-");
	table__add(t, cells);
}

static int print_table(const cJSON *list)
{
	static const struct table_column columns[] = {
		{"PID", true, 0},         {"USER", false, 16},     {"NAME", false, 0},
		{"PYTHON", false, 0},     {"FRAMEWORK", false, 0}, {"RUNTIME", false, 0},
		{"CONTAINER", false, 40}, {"STATE", false, 0},
	};
	struct table *t = table__new(columns, sizeof(columns) / sizeof(columns[0]));
	const cJSON *p;

	if (!t)
		return message_no_memory();
	cJSON_ArrayForEach(p, list) add_row(t, p);
	table__print(t, stdout, false);
	table__free(t);
	return EXIT_DONE;
}

static int print_json(cJSON *list)
{
	cJSON *answer = cJSON_CreateObject();
	char *text;

	cJSON_AddItemReferenceToObject(answer, "processes", list);
	text = cJSON_Print(answer);
	if (text)
		puts(text);
	cJSON_free(text);
	cJSON_Delete(answer);
	return text ? EXIT_DONE : message_no_memory();
}

/* Waits until there is something to read, or its end. False: not in this time. */
static bool wait_for_more(int file, uint64_t until)
{
	struct pollfd p = {.fd = file, .events = POLLIN};
	uint64_t now = now_ns(CLOCK_MONOTONIC);

	return now < until && poll(&p, 1, (int)((until - now) / 1000000)) > 0;
}

/* To its end, or as far as it comes. NULL: out of memory. */
static char *read_text(int file, size_t *bytes)
{
	uint64_t until = now_ns(CLOCK_MONOTONIC) + LONGEST_NS;
	char *text = NULL, *more;
	size_t room = 0, nr = 0;
	ssize_t n = 1;

	while (n > 0 && nr < MOST_BYTES) {
		if (nr == room) {
			room = room ? 2 * room : 65536;
			more = realloc(text, room);
			if (!more) {
				free(text);
				return NULL;
			}
			text = more;
		}
		n = wait_for_more(file, until) ? read(file, text + nr, room - nr) : 0;
		nr += n > 0 ? (size_t)n : 0;
	}
	*bytes = nr;
	return text;
}

/* NULL: there is none, which a message says. */
static cJSON *read_list(int file)
{
	size_t bytes;
	char *text = read_text(file, &bytes);
	cJSON *list;

	if (!text) {
		message_no_memory();
		return NULL;
	}
	list = cJSON_ParseWithLength(text, bytes);
	if (!cJSON_IsArray(list)) {
		cJSON_Delete(list);
		list = NULL;
		if (bytes < 2 || memcmp(text + bytes - 2, "]\n", 2))
			message_warn("try it again", "the daemon's list has no end");
		else
			message_warn("is it another version?",
				     "the daemon's list is not understood");
	}
	free(text);
	ctl_defuse(list);
	return list;
}

int ctl_processes(int file, const struct value_pids *pids, bool as_json)
{
	cJSON *list = read_list(file), *next;
	int code;

	if (!list)
		return EXIT_FAILED;
	for (cJSON *p = list->child; p; p = next) {
		next = p->next;
		if (!is_meant(p, pids))
			cJSON_Delete(cJSON_DetachItemViaPointer(list, p));
	}
	code = as_json ? print_json(list) : print_table(list);
	cJSON_Delete(list);
	return code;
}
