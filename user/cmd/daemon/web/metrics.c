// SPDX-License-Identifier: BSD-2-Clause
/* The registry of /metrics, in memory. Its texts are made in exposition.c. */
#include "cmd/daemon/web/registry.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/print/text.h"

/* Characters that break nothing, in bounded room; what is no UTF-8 becomes U+FFFD. */
static void clean(char to[METRICS_LABEL_BYTES + 1], const char *from)
{
	size_t at = 0;

	for (size_t bytes; *from; from += bytes ? bytes : 1) {
		const char *take = from;
		size_t n;

		bytes = n = text_utf8(from);
		if (!n) {
			take = "\xef\xbf\xbd";
			n = 3;
		} else if ((unsigned char)*from < 0x20 || *from == 0x7f) {
			take = " ";
		}
		if (at + n > METRICS_LABEL_BYTES)
			break;
		memcpy(to + at, take, n);
		at += n;
	}
	to[at] = '\0';
}

static size_t nr_labels(const struct metrics_family *f)
{
	size_t nr = 0;

	while (nr < METRICS_LABELS && f->labels[nr])
		nr++;
	return nr;
}

size_t metrics__nr_bounds(const struct metrics_family *f)
{
	size_t nr = 0;

	while (f->bounds && f->bounds[nr] > 0)
		nr++;
	return nr;
}

static struct series *make(struct family *f, const struct metrics_family *is)
{
	struct series *s = calloc(1, sizeof(*s) + metrics__nr_bounds(is) * sizeof(*s->buckets));

	if (s)
		f->series[f->nr++] = s;
	return s;
}

/* A series that is over gives its place to another. */
static struct series *take_idle(struct metrics *m, struct family *f,
				const struct metrics_family *is)
{
	for (size_t i = 0; i < f->nr; i++) {
		struct series *s = f->series[i];

		if (s->other || m->now_s - s->heard_s < METRICS_IDLE_S)
			continue;
		s->value = s->sum = 0;
		s->count = 0;
		memset(s->buckets, 0, metrics__nr_bounds(is) * sizeof(*s->buckets));
		return s;
	}
	return NULL;
}

/* A process may have that name, too. */
static struct series *other_of(struct family *f, const struct metrics_family *is)
{
	char labels[METRICS_LABELS][METRICS_LABEL_BYTES + 1] = {{0}};
	struct series *s = NULL;

	for (size_t i = 0; i < nr_labels(is); i++)
		strcpy(labels[i], "other");
	for (size_t i = 0; i < f->nr && !s; i++)
		if (!memcmp(f->series[i]->labels, labels, sizeof(labels)))
			s = f->series[i];
	if (!s)
		s = make(f, is);
	if (!s)
		return NULL;
	s->other = true;
	memcpy(s->labels, labels, sizeof(labels));
	return s;
}

/* The series with these labels. NULL: no memory. */
static struct series *find(struct metrics *m, enum metrics_id id, const char *const *labels)
{
	const struct metrics_family *is = &metrics_families[id];
	char values[METRICS_LABELS][METRICS_LABEL_BYTES + 1] = {{0}};
	struct family *f = &m->families[id];
	struct series *s = NULL;

	for (size_t i = 0; i < nr_labels(is); i++)
		clean(values[i], labels[i] ? labels[i] : "");
	for (size_t i = 0; i < f->nr && !s; i++)
		if (!memcmp(f->series[i]->labels, values, sizeof(values)))
			s = f->series[i];
	if (!s) {
		/* The last place is for "other". */
		s = f->nr < is->series ? make(f, is) : take_idle(m, f, is);
		if (s)
			memcpy(s->labels, values, sizeof(values));
		else
			s = other_of(f, is);
	}
	if (s)
		s->heard_s = m->now_s;
	return s;
}

void metrics__set(struct metrics *m, enum metrics_id id, const char *const labels[METRICS_LABELS],
		  double value)
{
	struct series *s = isfinite(value) ? find(m, id, labels) : NULL;

	if (s && s->other && metrics_families[id].type == METRICS_COUNTER)
		return; /* of several, whose sum nobody has */
	if (s)
		s->value = value;
}

void metrics__add(struct metrics *m, enum metrics_id id, const char *const labels[METRICS_LABELS],
		  double more)
{
	struct series *s = isfinite(more) && more >= 0 ? find(m, id, labels) : NULL;

	if (s)
		s->value += more;
}

void metrics__observe(struct metrics *m, enum metrics_id id,
		      const char *const labels[METRICS_LABELS], double value)
{
	const double *bounds = metrics_families[id].bounds;
	struct series *s = isfinite(value) && value >= 0 ? find(m, id, labels) : NULL;

	if (!s || !bounds)
		return;
	s->count++;
	s->sum += value;
	for (size_t i = 0; bounds[i] > 0; i++) {
		if (value <= bounds[i]) {
			s->buckets[i]++;
			break;
		}
	}
}

void metrics__clear(struct metrics *m, enum metrics_id id)
{
	struct family *f = &m->families[id];

	for (size_t i = 0; i < f->nr; i++)
		free(f->series[i]);
	f->nr = 0;
}

void metrics__clear_of(struct metrics *m, enum metrics_id id, const char *label)
{
	struct family *f = &m->families[id];
	size_t kept = 0;

	for (size_t i = 0; i < f->nr; i++)
		if (strcmp(f->series[i]->labels[0], label) != 0)
			f->series[kept++] = f->series[i];
		else
			free(f->series[i]);
	f->nr = kept;
}

struct metrics *metrics__new(void)
{
	struct metrics *m = calloc(1, sizeof(*m));

	for (size_t id = 0; m && id < METRICS_NR; id++) {
		/* One more, for "other". */
		m->families[id].series =
			calloc(metrics_families[id].series + 1, sizeof(struct series *));
		if (!m->families[id].series) {
			metrics__free(m);
			m = NULL;
		}
	}
	return m;
}

void metrics__free(struct metrics *m)
{
	for (size_t id = 0; m && id < METRICS_NR; id++) {
		metrics__clear(m, id);
		free(m->families[id].series);
	}
	free(m);
}

void metrics__at(struct metrics *m, uint64_t now_s)
{
	m->now_s = now_s;
}
