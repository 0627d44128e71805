// SPDX-License-Identifier: BSD-2-Clause
/* What captures are, and what makes it doubtful to compare them. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/diff/impl.h"
#include "util/error.h"

#define LOST_SHARE 0.01 /* more samples lost than this are worth a note */

static bool has_ops(const struct kprof_capture *t)
{
	const struct tl_description *description;

	for (size_t i = 0;
	     kprof_capture_info(t)->events && (description = timeline__description(t, i)); i++)
		if (!strcmp(description->category, "cpu_op"))
			return true;
	return false;
}

/* The command line of the first process, else its short name; malloc'ed. */
static char *program_of(const struct kprof_capture *t)
{
	const struct tl_process *p = timeline__process(t, 0);

	if (!p)
		return NULL;
	return strdup(*p->cmdline ? p->cmdline : p->comm);
}

int diff_facts__read(struct kprof_capture *t, const char *path, bool steps, const char *step,
		     struct diff_facts *out)
{
	struct stack_rate rate = stack_rate_of(t);

	*out = (struct diff_facts){
		.path = path,
		.ops = has_ops(t),
		.samples = kprof_capture_info(t)->nr_samples,
		.waits = kprof_capture_meta(t, "waits") != NULL,
		.min_wait_ns = timeline__waits_number(t, "min_wait_ns"),
		.hz = rate.hz,
		.program = program_of(t),
		.host = timeline__meta_text(t, "host"),
	};
	if (rate.lost)
		out->lost_share = (double)rate.lost / ((double)rate.lost + (double)out->samples);
	return steps ? diff_count_steps(t, step, &out->steps) : 0;
}

void diff_facts__free(struct diff_facts *f)
{
	free(f->program);
	free(f->host);
}

/* ---- notes ---- */

int diff_notes__add(struct diff_notes *n, const char *fmt, ...)
{
	char **slot = vec_push(&n->texts, sizeof(*slot));
	va_list args;

	if (!slot)
		return error_set(-ENOMEM, NULL, "out of memory for notes");
	va_start(args, fmt);
	if (vasprintf(slot, fmt, args) < 0)
		*slot = NULL;
	va_end(args);
	if (*slot)
		return 0;
	n->texts.nr--;
	return error_set(-ENOMEM, NULL, "out of memory for notes");
}

void diff_notes__free(struct diff_notes *n)
{
	char **texts = n->texts.data;

	for (size_t i = 0; i < n->texts.nr; i++)
		free(texts[i]);
	free(n->texts.data);
}

/* Whether both are known and differ. */
static bool differ(const char *a, const char *b)
{
	return a && b && strcmp(a, b) != 0;
}

static int compare_pair(const struct diff_facts *a, const struct diff_facts *b,
			struct diff_notes *notes)
{
	int err = 0;

	if (differ(a->program, b->program))
		err = diff_notes__add(notes,
				      "different commands: %s is of \"%.200s\", %s of \"%.200s\"",
				      a->path, a->program, b->path, b->program);
	if (!err && differ(a->host, b->host))
		err = diff_notes__add(notes, "different machines: %s is of %.100s, %s of %.100s",
				      a->path, a->host, b->path, b->host);
	if (!err && a->samples && b->samples && a->hz > 0 && b->hz > 0 && a->hz != b->hz)
		err = diff_notes__add(notes, "different rates of sampling: %s has %g Hz, %s %g",
				      a->path, a->hz, b->path, b->hz);
	if (!err && a->waits && b->waits && a->min_wait_ns != b->min_wait_ns)
		err = diff_notes__add(notes,
				      "different waits: %s has those from %g us on, %s from %g us",
				      a->path, (double)a->min_wait_ns / 1e3, b->path,
				      (double)b->min_wait_ns / 1e3);
	if (!err && (a->ops != b->ops || !a->samples != !b->samples))
		err = diff_notes__add(notes,
				      "different kinds of recordings: %s has %s operators and %s "
				      "samples, %s %s and %s",
				      a->path, a->ops ? "some" : "no", a->samples ? "some" : "no",
				      b->path, b->ops ? "some" : "no", b->samples ? "some" : "no");
	return err;
}

/* Captures of one side differ from the first one of it, the sides in their first ones. */
int diff_facts__compare(const struct diff_facts *facts, size_t nr_before, size_t nr,
			struct diff_notes *notes)
{
	int err = 0;

	for (size_t i = 0; i < nr && !err; i++) {
		size_t other = i > nr_before ? nr_before : 0;

		if (i != other)
			err = compare_pair(&facts[other], &facts[i], notes);
		if (!err && facts[i].lost_share > LOST_SHARE)
			err = diff_notes__add(notes, "%s lost %.1f %% of its samples",
					      facts[i].path, 100 * facts[i].lost_share);
	}
	return err;
}
