// SPDX-License-Identifier: BSD-2-Clause
/* The registry of /metrics and its texts: each family, labels, histograms, bounds. */
#include "cmd/daemon/web/metrics.h"

#include <math.h>
#include <regex.h>

#include <stdbool.h>

#include "unit.h"

static char *text_of(const struct metrics *m, enum metrics_format format)
{
	size_t bytes;
	char *text = metrics__text(m, format, &bytes);

	CHECK(text && strlen(text) == bytes);
	return text;
}

static bool has(const struct metrics *m, enum metrics_format format, const char *part)
{
	char *text = text_of(m, format);
	bool found = strstr(text, part);

	free(text);
	return found;
}

static bool says(const struct metrics *m, enum metrics_format format, const char *part)
{
	bool found = has(m, format, part);

	if (!found)
		printf("# not said: %s\n", part);
	return found;
}

static void nothing(void)
{
	struct metrics *m = metrics__new();
	char *open = text_of(m, METRICS_OPENMETRICS), *text = text_of(m, METRICS_TEXT);

	CHECK_STR(open, "# EOF\n");
	CHECK_STR(text, "");
	free(open);
	free(text);
	metrics__free(m);
}

/* Conventions that readers rely on, of the table itself. */
static void table(void)
{
	regex_t name, label;

	regcomp(&name, "^kprof_[a-z]+(_[a-z]+)*$", REG_EXTENDED);
	regcomp(&label, "^[a-z]+$", REG_EXTENDED);
	for (size_t i = 0; i < METRICS_NR; i++) {
		const struct metrics_family *f = &metrics_families[i];
		size_t bytes = strlen(f->name), unit = f->unit ? strlen(f->unit) : 0;

		CHECK(!regexec(&name, f->name, 0, NULL, 0));
		CHECK(f->help && *f->help && f->help[strlen(f->help) - 1] == '.');
		CHECK(!unit || (bytes > unit + 1 && !strcmp(f->name + bytes - unit, f->unit) &&
				f->name[bytes - unit - 1] == '_'));
		CHECK(bytes < 6 || strcmp(f->name + bytes - 6, "_total") != 0);
		CHECK(f->series >= 1 && f->series <= 100);
		CHECK(!f->bounds == (f->type != METRICS_HISTOGRAM));
		for (size_t k = 0; k < METRICS_LABELS && f->labels[k]; k++)
			CHECK(!regexec(&label, f->labels[k], 0, NULL, 0));
		for (size_t k = 0; k < i; k++)
			CHECK(strcmp(f->name, metrics_families[k].name) != 0);
	}
	regfree(&name);
	regfree(&label);
}

/* Every family can be set, and is in both texts with its type, help and a sample. */
static void every_family(void)
{
	static const char *const types[] = {"counter", "gauge", "histogram", "info"};
	static const char *const suffixes[] = {"_total", "", "_count", "_info"};

	for (size_t i = 0; i < METRICS_NR; i++) {
		const struct metrics_family *f = &metrics_families[i];
		struct metrics *m = metrics__new();
		char line[300];

		if (f->type == METRICS_HISTOGRAM)
			metrics__observe(m, (enum metrics_id)i, METRICS_OF("x", "y", "z"), 1);
		else
			metrics__set(m, (enum metrics_id)i, METRICS_OF("x", "y", "z"), 1);
		snprintf(line, sizeof(line), "# TYPE %s %s\n", f->name, types[f->type]);
		CHECK(says(m, METRICS_OPENMETRICS, line));
		snprintf(line, sizeof(line), "# HELP %s %s\n", f->name, f->help);
		CHECK(says(m, METRICS_OPENMETRICS, line));
		if (f->unit) {
			snprintf(line, sizeof(line), "# UNIT %s %s\n", f->name, f->unit);
			CHECK(says(m, METRICS_OPENMETRICS, line));
			CHECK(!has(m, METRICS_TEXT, "# UNIT"));
		}
		snprintf(line, sizeof(line), "\n%s%s%s%s%s", f->name, suffixes[f->type],
			 f->labels[0] ? "{" : " 1\n", f->labels[0] ? f->labels[0] : "",
			 f->labels[0] ? "=\"x\"" : "");
		CHECK(says(m, METRICS_OPENMETRICS, line));
		CHECK(says(m, METRICS_TEXT, line));
		snprintf(line, sizeof(line), "# TYPE %s%s %s\n", f->name,
			 f->type == METRICS_COUNTER ? "_total"
			 : f->type == METRICS_INFO  ? "_info"
						    : "",
			 f->type == METRICS_INFO ? "gauge" : types[f->type]);
		CHECK(says(m, METRICS_TEXT, line));
		metrics__free(m);
	}
}

static void labels(void)
{
	struct metrics *m = metrics__new();
	char longest[200];

	metrics__add(m, METRICS_SAMPLES, METRICS_OF("a\"b\\c\nd\re\x7f"), 1);
	metrics__add(m, METRICS_SAMPLES, METRICS_OF("\xff\xfe!"), 2);
	metrics__add(m, METRICS_SAMPLES, METRICS_OF(NULL), 3);
	memset(longest, 'x', sizeof(longest));
	memcpy(longest + METRICS_LABEL_BYTES - 1, "\xc3\xa4", 2);
	longest[150] = '\0';
	metrics__add(m, METRICS_SAMPLES, METRICS_OF(longest), 4);
	CHECK(says(m, METRICS_TEXT, "{process=\"a\\\"b\\\\c d e \"} 1\n"));
	CHECK(says(m, METRICS_TEXT, "{process=\"\xef\xbf\xbd\xef\xbf\xbd!\"} 2\n"));
	CHECK(says(m, METRICS_TEXT, "{process=\"\"} 3\n"));
	longest[METRICS_LABEL_BYTES - 1] = '"'; /* no half of a character */
	strcpy(longest + METRICS_LABEL_BYTES, "} 4\n");
	CHECK(says(m, METRICS_TEXT, longest));
	/* The same, cleaned, is the same series. */
	metrics__add(m, METRICS_SAMPLES, METRICS_OF("a\"b\\c d\re\n"), 10);
	CHECK(says(m, METRICS_TEXT, "{process=\"a\\\"b\\\\c d e \"} 11\n"));
	metrics__free(m);
}

static void numbers(void)
{
	static const struct {
		double value;
		const char *text;
	} are[] = {
		{0, " 0\n"},
		{0.1, " 0.1\n"},
		{1.0 / 3, " 0.3333333333333333\n"},
		{9007199254740991, " 9007199254740991\n"},
		{123456789, " 123456789\n"},
		{1e20, " 1e+20\n"},
		{5e-324, " 4.94066e-324\n"},
		{-2.5, " -2.5\n"},
	};
	struct metrics *m = metrics__new();

	for (size_t i = 0; i < sizeof(are) / sizeof(*are); i++) {
		metrics__set(m, METRICS_UPTIME, METRICS_PLAIN, are[i].value);
		CHECK(says(m, METRICS_TEXT, are[i].text));
	}
	metrics__set(m, METRICS_UPTIME, METRICS_PLAIN, NAN);
	metrics__set(m, METRICS_UPTIME, METRICS_PLAIN, INFINITY);
	metrics__add(m, METRICS_SAMPLES, METRICS_OF("x"), -1);
	CHECK(says(m, METRICS_TEXT, " -2.5\n"));
	CHECK(!has(m, METRICS_TEXT, "samples"));
	metrics__free(m);
}

static void histogram(void)
{
	struct metrics *m = metrics__new();

	metrics__observe(m, METRICS_STEP_TIME, METRICS_OF("a"), 0);
	metrics__observe(m, METRICS_STEP_TIME, METRICS_OF("a"), 0.25); /* on a bound: below it */
	metrics__observe(m, METRICS_STEP_TIME, METRICS_OF("a"), 0.26);
	metrics__observe(m, METRICS_STEP_TIME, METRICS_OF("a"), 100);
	metrics__observe(m, METRICS_STEP_TIME, METRICS_OF("a"), NAN);
	metrics__observe(m, METRICS_STEP_TIME, METRICS_OF("a"), -1);
	CHECK(says(m, METRICS_OPENMETRICS,
		   "kprof_step_seconds_bucket{process=\"a\",le=\"0.005\"} 1\n"
		   "kprof_step_seconds_bucket{process=\"a\",le=\"0.01\"} 1\n"));
	CHECK(says(m, METRICS_OPENMETRICS,
		   "le=\"0.1\"} 1\nkprof_step_seconds_bucket{process=\"a\",le=\"0.25\"} 2\n"
		   "kprof_step_seconds_bucket{process=\"a\",le=\"0.5\"} 3\n"
		   "kprof_step_seconds_bucket{process=\"a\",le=\"1.0\"} 3\n"));
	CHECK(says(m, METRICS_OPENMETRICS,
		   "le=\"60.0\"} 3\nkprof_step_seconds_bucket{process=\"a\",le=\"+Inf\"} 4\n"
		   "kprof_step_seconds_sum{process=\"a\"} 100.51\n"
		   "kprof_step_seconds_count{process=\"a\"} 4\n"));
	metrics__free(m);
}

static size_t series_of(const struct metrics *m, const char *begin)
{
	char *text = text_of(m, METRICS_TEXT);
	size_t nr = 0;

	for (char *at = text; (at = strstr(at, begin)); at++)
		nr++;
	free(text);
	return nr;
}

static void add_many(struct metrics *m, int from, int nr)
{
	for (int i = from; i < from + nr; i++) {
		char name[32];

		snprintf(name, sizeof(name), "p%d", i);
		metrics__add(m, METRICS_SAMPLES, METRICS_OF(name), 1);
	}
}

/* What has no place counts as "other"; who is silent for long loses his. */
static void bounded(void)
{
	size_t most = metrics_families[METRICS_SAMPLES].series;
	struct metrics *m = metrics__new();

	metrics__at(m, 1000);
	add_many(m, 0, 5000);
	CHECK_EQ(series_of(m, "kprof_samples_total{"), most + 1);
	CHECK(says(m, METRICS_TEXT, "{process=\"other\"} 4900\n"));
	metrics__at(m, 1000 + METRICS_IDLE_S - 1);
	add_many(m, 0, 50); /* these are heard of again */
	add_many(m, 6000, 1);
	CHECK(says(m, METRICS_TEXT, "{process=\"other\"} 4901\n"));
	metrics__at(m, 1000 + METRICS_IDLE_S);
	add_many(m, 7000, 60);
	CHECK_EQ(series_of(m, "kprof_samples_total{"), most + 1);
	CHECK(says(m, METRICS_TEXT, "{process=\"p0\"} 2\n"));
	CHECK(says(m, METRICS_TEXT, "{process=\"p7049\"} 1\n"));
	CHECK(says(m, METRICS_TEXT, "{process=\"other\"} 4911\n"));
	CHECK(!has(m, METRICS_TEXT, "{process=\"p99\"}"));
	metrics__free(m);
}

/* A process that is itself called so has no second series of that name. */
static void named_other(void)
{
	struct metrics *m = metrics__new();

	metrics__add(m, METRICS_SAMPLES, METRICS_OF("other"), 3);
	add_many(m, 0, 200);
	CHECK_EQ(series_of(m, "{process=\"other\"}"), 1);
	CHECK(says(m, METRICS_TEXT, "{process=\"other\"} 104\n"));
	metrics__free(m);
}

/* Of those that were set, the sum is not known: "other" is left out rather than wrong. */
static void set_beyond(void)
{
	struct metrics *m = metrics__new();

	for (int i = 0; i < 200; i++) {
		char name[32];

		snprintf(name, sizeof(name), "p%d", i);
		metrics__set(m, METRICS_CHUNKS, METRICS_OF(name), i);
	}
	CHECK(!has(m, METRICS_TEXT, "other\"} 199"));
	metrics__clear(m, METRICS_CHUNKS);
	CHECK_EQ(series_of(m, "kprof_chunks"), 0);
	metrics__free(m);
}

/* What is forgotten leaves the others, and comes back as new. */
static void cleared(void)
{
	struct metrics *m = metrics__new();

	metrics__set(m, METRICS_OVERHEAD, METRICS_OF("sampler", "bpf"), 1);
	metrics__set(m, METRICS_OVERHEAD, METRICS_OF("flight", "bpf"), 2);
	metrics__set(m, METRICS_OVERHEAD, METRICS_OF("sampler", "own"), 3);
	metrics__set(m, METRICS_SHED_LEVEL, METRICS_OF("sampler"), 4);
	metrics__clear_of(m, METRICS_OVERHEAD, "sampler");
	CHECK(!has(m, METRICS_TEXT, "kprof_overhead_ratio{session=\"sampler\""));
	CHECK(says(m, METRICS_TEXT, "kprof_overhead_ratio{session=\"flight\",part=\"bpf\"} 2\n"));
	CHECK(says(m, METRICS_TEXT, "kprof_shed_level{session=\"sampler\"} 4\n"));
	metrics__set(m, METRICS_OVERHEAD, METRICS_OF("sampler", "own"), 5);
	CHECK(says(m, METRICS_TEXT, "kprof_overhead_ratio{session=\"sampler\",part=\"own\"} 5\n"));
	metrics__clear(m, METRICS_OVERHEAD);
	CHECK(!has(m, METRICS_TEXT, "kprof_overhead_ratio"));
	metrics__free(m);
}

UNIT_MAIN(TEST(nothing), TEST(table), TEST(every_family), TEST(labels), TEST(numbers),
	  TEST(histogram), TEST(bounded), TEST(named_other), TEST(set_beyond), TEST(cleared))
