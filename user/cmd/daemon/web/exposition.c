// SPDX-License-Identifier: BSD-2-Clause
/*
 * The texts of /metrics: OpenMetrics 1.0, and the older text format of Prometheus (0.0.4), in which
 * a counter's family has its samples' name, there are no units, and no end.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/daemon/web/registry.h"

struct text {
	FILE *to;
	bool open; /* OpenMetrics */
	const struct metrics_family *is;
};

const char *metrics_content_type(enum metrics_format format)
{
	return format == METRICS_OPENMETRICS
		       ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
		       : "text/plain; version=0.0.4; charset=utf-8";
}

/* In help texts, quotes are not escaped in the older format, and there are none. */
static void escaped(FILE *to, const char *text)
{
	for (; *text; text++) {
		if (*text == '\\' || *text == '"')
			fprintf(to, "\\%c", *text);
		else if (*text == '\n')
			fputs("\\n", to);
		else
			putc(*text, to);
	}
}

/* The shortest decimal number that is read as the same one; whole ones without an exponent. */
static void number(FILE *to, double value)
{
	char text[32];

	if (value == floor(value) && fabs(value) < 1e15) {
		fprintf(to, "%.0f", value);
		return;
	}
	for (int digits = 6; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	fputs(text, to);
}

static const char *type_of(const struct text *t)
{
	switch (t->is->type) {
	case METRICS_COUNTER:
		return "counter";
	case METRICS_HISTOGRAM:
		return "histogram";
	case METRICS_INFO:
		return t->open ? "info" : "gauge";
	default:
		return "gauge";
	}
}

/* What a sample's name has after the family's. */
static const char *suffix_of(enum metrics_type type)
{
	return type == METRICS_COUNTER ? "_total" : type == METRICS_INFO ? "_info" : "";
}

static void head(const struct text *t)
{
	const char *suffix = t->open ? "" : suffix_of(t->is->type);

	fprintf(t->to, "# TYPE %s%s %s\n", t->is->name, suffix, type_of(t));
	if (t->open && t->is->unit)
		fprintf(t->to, "# UNIT %s %s\n", t->is->name, t->is->unit);
	fprintf(t->to, "# HELP %s%s ", t->is->name, suffix);
	escaped(t->to, t->is->help);
	putc('\n', t->to);
}

/* A sample's name and labels; le: one more label, or NULL. */
static void name(const struct text *t, const struct series *s, const char *suffix, const char *le)
{
	const char *between = "{";

	fprintf(t->to, "%s%s", t->is->name, suffix);
	for (size_t i = 0; i < METRICS_LABELS && t->is->labels[i]; i++) {
		fprintf(t->to, "%s%s=\"", between, t->is->labels[i]);
		escaped(t->to, s->labels[i]);
		putc('"', t->to);
		between = ",";
	}
	if (le) {
		fprintf(t->to, "%sle=\"%s\"", between, le);
		between = ",";
	}
	fputs(*between == ',' ? "} " : " ", t->to);
}

/* As both formats' readers write it: with a point. */
static void bound_of(char le[32], double bound)
{
	snprintf(le, 32, bound == floor(bound) ? "%.1f" : "%g", bound);
}

static void histogram(const struct text *t, const struct series *s)
{
	uint64_t below = 0;
	char le[32];

	for (size_t i = 0; i < metrics__nr_bounds(t->is); i++) {
		below += s->buckets[i];
		bound_of(le, t->is->bounds[i]);
		name(t, s, "_bucket", le);
		fprintf(t->to, "%" PRIu64 "\n", below);
	}
	name(t, s, "_bucket", "+Inf");
	fprintf(t->to, "%" PRIu64 "\n", s->count);
	name(t, s, "_sum", NULL);
	number(t->to, s->sum);
	putc('\n', t->to);
	name(t, s, "_count", NULL);
	fprintf(t->to, "%" PRIu64 "\n", s->count);
}

void metrics__write(const struct metrics *m, enum metrics_format format, FILE *to)
{
	for (size_t id = 0; id < METRICS_NR; id++) {
		const struct family *f = &m->families[id];
		const struct text t = {to, format == METRICS_OPENMETRICS, &metrics_families[id]};

		if (f->nr)
			head(&t);
		for (size_t i = 0; i < f->nr; i++) {
			if (t.is->type == METRICS_HISTOGRAM) {
				histogram(&t, f->series[i]);
				continue;
			}
			name(&t, f->series[i], suffix_of(t.is->type), NULL);
			number(to, t.is->type == METRICS_INFO ? 1 : f->series[i]->value);
			putc('\n', to);
		}
	}
	if (format == METRICS_OPENMETRICS)
		fputs("# EOF\n", to);
}

char *metrics__text(const struct metrics *m, enum metrics_format format, size_t *bytes)
{
	char *text = NULL;
	FILE *to = open_memstream(&text, bytes);

	if (!to)
		return NULL;
	metrics__write(m, format, to);
	if (ferror(to) | fclose(to)) {
		free(text);
		return NULL;
	}
	return text;
}
