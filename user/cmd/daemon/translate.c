// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/daemon/translate.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "kprof.h"

#define STEPS_ARE "user_annotation"

__attribute__((format(printf, 2, 3))) static void add(struct translation *t, const char *fmt, ...)
{
	va_list ap;

	if (t->nr == TRANSLATED_OPTIONS)
		return;
	va_start(ap, fmt);
	vsnprintf(t->texts[t->nr], sizeof(t->texts[0]), fmt, ap);
	va_end(ap);
	t->words[t->nr] = t->texts[t->nr];
	t->nr++;
}

__attribute__((format(printf, 2, 3))) static void note(struct translation *t, const char *fmt, ...)
{
	va_list ap;

	if (t->nr_notes == TRANSLATED_NOTES)
		return;
	va_start(ap, fmt);
	vsnprintf(t->notes[t->nr_notes++], sizeof(t->notes[0]), fmt, ap);
	va_end(ap);
}

/* A list with commas, which ends with "…" where it has no room. What others wrote, as text. */
struct list {
	char text[160];
};

static void append(struct list *l, const char *word, size_t len)
{
	size_t at = strlen(l->text), comma = at ? strlen(", ") : 0;
	static const char more[] = "…";

	if (at + comma + len + sizeof(more) > sizeof(l->text)) {
		if (at >= strlen(more) && !strcmp(l->text + at - strlen(more), more))
			return;
		word = more;
		len = strlen(more);
		comma = 0;
	}
	memcpy(l->text + at, ", ", comma);
	at += comma;
	memcpy(l->text + at, word, len);
	l->text[at + len] = '\0';
	for (size_t i = at; i < at + len && word != more; i++)
		if (l->text[i] <= ' ' || l->text[i] > '~')
			l->text[i] = '?';
}

/* ---- types of activity ---- */

/* The type of this name, if it is one that no agent is needed for; else 0. */
static uint64_t cpu_type(const char *name, bool *known)
{
	struct kprof_session_opts cpu = {.sz = sizeof(cpu)}, one = {.sz = sizeof(one)};

	*known = !kprof_session_opts_activities(&one, NULL, name);
	if (!*known || kprof_session_opts_activities(&cpu, "cpu", NULL))
		return 0;
	return one.types & cpu.types;
}

static void take_types(const struct kprof_dynolog_config *c, struct translation *t)
{
	struct list unknown = {""}, devices = {""};
	char types[256] = "";
	uint64_t taken = 0;

	for (const char *at = c->activity_types; *at; at += strspn(at, ", \t")) {
		size_t len = strcspn(at, ", \t");
		char name[64];
		bool known = false;
		uint64_t type = 0;

		snprintf(name, sizeof(name), "%.*s", (int)len, at);
		for (char *letter = name; *letter; letter++) /* as libkineto does */
			*letter += *letter >= 'A' && *letter <= 'Z' ? 'a' - 'A' : 0;
		if (len < sizeof(name))
			type = cpu_type(name, &known);
		if (!known && len)
			append(&unknown, at, len);
		else if (!type && len)
			append(&devices, at, len);
		else if (!(taken & type))
			snprintf(types + strlen(types), sizeof(types) - strlen(types), "%s%s",
				 taken ? "," : "", name);
		taken |= type;
		at += len;
	}
	if (unknown.text[0])
		note(t, "ACTIVITY_TYPES: nothing here records %s", unknown.text);
	if (devices.text[0])
		note(t, "ACTIVITY_TYPES: not recorded, since nothing is put into a process: %s",
		     devices.text);
	if (!taken) {
		note(t, "ACTIVITY_TYPES: the usual types are recorded instead");
		return;
	}
	if (c->iterations && !strstr(types, STEPS_ARE)) {
		note(t, "ACTIVITY_TYPES: " STEPS_ARE ", too, since iterations are known by them");
		snprintf(types + strlen(types), sizeof(types) - strlen(types), "," STEPS_ARE);
	}
	add(t, "--types=%s", types);
	add(t, "--no-agent");
}

/* ---- when ---- */

static void add_start(const struct kprof_dynolog_config *c, uint64_t now_ms, struct translation *t)
{
	uint64_t at_ms = c->start_time_ms;

	/* Kineto's warm-up is over by the start time, or begins with the request. */
	if (!at_ms && c->warmup_given && c->warmup_ms && !c->iterations)
		at_ms = now_ms + c->warmup_ms;
	if (at_ms)
		add(t, "--start-at=%" PRIu64 ".%03" PRIu64, at_ms / 1000, at_ms % 1000);
}

static void take_iterations(const struct kprof_dynolog_config *c, struct translation *t)
{
	add(t, "--steps=%" PRIu64, c->iterations);
	if (c->warmup_iterations)
		add(t, "--warm-up=%" PRIu64 "steps", c->warmup_iterations);
	if (c->roundup > 1) {
		add(t, "--step-multiple=%" PRIu64, c->roundup);
		note(t, "PROFILE_START_ITERATION_ROUNDUP: holds for steps with numbers, as "
			"ProfilerStep#8; without, it begins with the next one");
	}
	if (c->start_iteration)
		note(t,
		     "PROFILE_START_ITERATION: how many there were is not known: it begins with "
		     "the next one%s",
		     c->roundup > 1 ? " that is a multiple" : "");
	if (c->warmup_given)
		note(t, "ACTIVITIES_WARMUP_PERIOD_SECS: is not for iterations");
}

void translate_config(const struct kprof_dynolog_config *c, uint64_t now_ms, struct translation *t)
{
	const struct {
		bool asked;
		const char *option;
	} flags[] = {
		{c->shapes, "--shapes"}, {c->memory, "--memory"},   {c->stacks, "--with-stack"},
		{c->flops, "--flops"},   {c->modules, "--modules"},
	};
	struct list unknown = {""};

	if (c->iterations)
		take_iterations(c, t);
	else
		add(t, "--duration=%" PRIu64 "ms", c->duration_ms);
	if (!c->iterations && (c->start_iteration || c->roundup > 1 || c->warmup_iterations))
		note(t,
		     "PROFILE_START_ITERATION, …_ROUNDUP and ACTIVITIES_WARMUP_ITERATIONS: count for "
		     "nothing without ACTIVITIES_ITERATIONS");
	add_start(c, now_ms, t);
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (flags[i].asked)
			add(t, "%s", flags[i].option);
	if (c->activity_types)
		take_types(c, t);
	for (size_t i = 0; i < c->nr_other; i++)
		append(&unknown, c->other[i].name, strlen(c->other[i].name));
	if (unknown.text[0])
		note(t, "kprof does nothing for %s", unknown.text);
}

void translate_memory(const struct kprof_dynolog_config *c, uint64_t now_ms, struct translation *t)
{
	uint64_t ms = c->memory_duration_ms ? c->memory_duration_ms : c->duration_ms;

	add(t, "--duration=%" PRIu64 "ms", ms);
	add_start(c, now_ms, t);
}
