// SPDX-License-Identifier: BSD-2-Clause
/*
 * The text of a config, as libkineto's AbstractConfig and Config read it: a line "KEY = value", of
 * which '#' begins a comment. A line that it does not understand makes it ignore all of them; so it
 * does for a number or a truth value that is none.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kprof/dynolog.h"
#include "util/error.h"
#include "util/util.h"

#define DURATION_MS 500 /* what libkineto takes where nothing is said */
#define WARMUP_MS 5000

struct parsed {
	struct kprof_dynolog_config c; /* first: it is what the caller has */
	struct vec other;
	char *lines; /* what the names and values are parts of */
};

enum kind { TEXT, NUMBER, SECONDS, TRUTH };

#define FIELD(name, kind, field)                                         \
	{                                                                \
		name, kind, offsetof(struct kprof_dynolog_config, field) \
	}

static const struct known {
	const char *name;
	enum kind kind;
	size_t at;
} known[] = {
	FIELD("ACTIVITIES_LOG_FILE", TEXT, log_file),
	FIELD("ACTIVITY_TYPES", TEXT, activity_types),
	FIELD("PROFILE_START_TIME", NUMBER, start_time_ms),
	FIELD("ACTIVITIES_DURATION_MSECS", NUMBER, duration_ms),
	FIELD("ACTIVITIES_DURATION_SECS", SECONDS, duration_ms),
	FIELD("ACTIVITIES_ITERATIONS", NUMBER, iterations),
	FIELD("PROFILE_START_ITERATION", NUMBER, start_iteration),
	FIELD("PROFILE_START_ITERATION_ROUNDUP", NUMBER, roundup),
	FIELD("ACTIVITIES_WARMUP_PERIOD_SECS", SECONDS, warmup_ms),
	FIELD("ACTIVITIES_WARMUP_ITERATIONS", NUMBER, warmup_iterations),
	FIELD("PROFILE_MEMORY_DURATION_MSECS", NUMBER, memory_duration_ms),
	FIELD("PROFILE_REPORT_INPUT_SHAPES", TRUTH, shapes),
	FIELD("PROFILE_PROFILE_MEMORY", TRUTH, memory),
	FIELD("PROFILE_MEMORY", TRUTH, memory_snapshot),
	FIELD("PROFILE_WITH_STACK", TRUTH, stacks),
	FIELD("PROFILE_WITH_FLOPS", TRUTH, flops),
	FIELD("PROFILE_WITH_MODULES", TRUTH, modules),
};

/* Without the blanks around it, which end up outside of the text. */
static char *trim(char *text)
{
	size_t len;

	text += strspn(text, " \t\r\v\f");
	len = strlen(text);
	while (len && strchr(" \t\r\v\f", text[len - 1]))
		len--;
	text[len] = '\0';
	return text;
}

static bool truth_of(const char *value, bool *out)
{
	static const char *const words[] = {"0",   "1", "n", "y",     "no",
					    "yes", "f", "t", "false", "true"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcasecmp(value, words[i])) {
			*out = i & 1;
			return true;
		}
	return false;
}

/* Digits alone; so small that a duration in nanoseconds has room in 64 bits. */
static bool number_of(const char *value, uint64_t factor, uint64_t *out)
{
	uint64_t n = 0;

	if (!*value)
		return false;
	for (; *value; value++) {
		if (*value < '0' || *value > '9')
			return false;
		n = n * 10 + (uint64_t)(*value - '0');
		if (n * factor > INT64_MAX / NSEC_PER_MSEC)
			return false;
	}
	*out = n * factor;
	return true;
}

static bool set(const struct known *row, const char *value, struct kprof_dynolog_config *c)
{
	void *field = (char *)c + row->at;

	switch (row->kind) {
	case TEXT:
		*(const char **)field = value;
		return true;
	case NUMBER:
		return number_of(value, 1, field);
	case SECONDS:
		return number_of(value, 1000, field);
	case TRUTH:
		return truth_of(value, field);
	}
	return false;
}

static int take(struct parsed *p, const char *name, const char *value)
{
	struct kprof_dynolog_key *key;

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (strcmp(name, known[i].name) != 0)
			continue;
		p->c.warmup_given |=
			known[i].at == offsetof(struct kprof_dynolog_config, warmup_ms);
		return set(&known[i], value, &p->c)
			       ? 0
			       : error_set_usage(-EINVAL, NULL,
						 "%s in the config has no such value", name);
	}
	key = vec_push(&p->other, sizeof(*key));
	if (!key)
		return error_set(-ENOMEM, NULL, "no memory for a config");
	*key = (struct kprof_dynolog_key){name, value};
	return 0;
}

static int take_line(struct parsed *p, char *line)
{
	char *equals;

	line[strcspn(line, "#")] = '\0';
	line = trim(line);
	if (!*line)
		return 0;
	equals = strchr(line, '=');
	if (!equals || strchr(equals + 1, '='))
		return error_set_usage(-EINVAL, "each line is KEY=value, with one =",
				       "libkineto would ignore the config, for one of its lines");
	*equals = '\0';
	return take(p, trim(line), trim(equals + 1));
}

int kprof_dynolog_config_parse(const char *text, struct kprof_dynolog_config **out)
{
	struct parsed *p = calloc(1, sizeof(*p));
	char *line, *rest;
	int err = 0;

	error_clear();
	if (p) {
		p->lines = strdup(text);
		p->c.text = strdup(text);
	}
	if (!p || !p->lines || !p->c.text) {
		err = error_set(-ENOMEM, NULL, "no memory for a config");
	} else {
		p->c.duration_ms = DURATION_MS;
		p->c.warmup_ms = WARMUP_MS;
		rest = p->lines;
		while (!err && (line = strsep(&rest, "\n")))
			err = take_line(p, line);
		p->c.other = p->other.data;
		p->c.nr_other = p->other.nr;
	}
	if (err)
		kprof_dynolog_config_free(p ? &p->c : NULL);
	else
		*out = &p->c;
	return err;
}

void kprof_dynolog_config_free(struct kprof_dynolog_config *c)
{
	struct parsed *p = (struct parsed *)c;

	if (!p)
		return;
	free(p->other.data);
	free(p->lines);
	free((char *)p->c.text);
	free(p);
}
