// SPDX-License-Identifier: BSD-2-Clause
/*
 * Outliers among steps, and what took longer in them than in the median step. Each name is compared
 * with its own median over all steps of the process, in which it may be missing: that counts as 0.
 */
#include "model/report/step_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/names/names.h"
#include "util/error.h"
#include "util/order.h"

/* Different names in all steps together: at most 128 MB. */
#define MAX_PARTS (1u << 22)
#define MAD_TO_SIGMA 1.4826
#define LEAST_SHARE 0.05 /* of what an outlier takes longer */

struct part {
	uint32_t step, what;
	uint64_t ns;
};

/* The steps of one process, which are [from, to). */
struct process {
	size_t from, to;
	uint64_t *sorted; /* durations of those that were seen whole */
	size_t nr;
	uint64_t limit_ns; /* longer ones are outliers */
};

struct comparison {
	struct step_parts *parts;
	struct kprof_result *result;
	const struct bulk *steps;
	struct kprof_step_info *infos;
	struct bulk all;                           /* struct part */
	struct kprof_step_difference *differences; /* of all outliers */
};

static int no_memory(void)
{
	return error_set(-ENOMEM, NULL, "out of memory for a table of steps");
}

const char *kprof_step_what_name(enum kprof_step_what what)
{
	static const char *const names[] = {
		[KPROF_STEP_OPERATOR] = "operator",     [KPROF_STEP_CALL] = "device call",
		[KPROF_STEP_ANNOTATION] = "annotation", [KPROF_STEP_WAIT] = "wait",
		[KPROF_STEP_DEVICE] = "on the device",  [KPROF_STEP_REST] = "outside of these",
	};

	return what < ARRAY_SIZE(names) ? names[what] : "";
}

/* ---- what time goes to ---- */

int step_parts__what(struct step_parts *p, enum kprof_step_what what, const char *name,
		     uint32_t *number)
{
	uint64_t *slot = map64__at(&p->by_text, hash64_text((uint64_t)what + 1, name) >> 1);
	struct step_what *new;

	if (!slot)
		return no_memory();
	if (!*slot) {
		new = vec_push(&p->whats, sizeof(*new));
		if (!new)
			return no_memory();
		new->what = what;
		new->name = strdup(name);
		if (!new->name)
			return no_memory();
		*slot = p->whats.nr;
	}
	*number = (uint32_t)(*slot - 1);
	return 0;
}

const struct step_what *step_parts__at(const struct step_parts *p, uint32_t number)
{
	return (const struct step_what *)p->whats.data + number;
}

int step_parts__add(struct step_parts *p, uint32_t step, uint32_t number, uint64_t ns)
{
	uint64_t *at;

	if (p->ns.used == MAX_PARTS)
		return error_set(-E2BIG, "choose a part: --from TIME, --to TIME or --step A..B",
				 "more than %u different names in steps", MAX_PARTS);
	at = map64__at(&p->ns, (uint64_t)step << 32 | number);
	if (!at)
		return no_memory();
	add_capped(at, !*at); /* the first one adds 1: a value of 0 is no entry */
	add_capped(at, ns);
	return 0;
}

void step_parts__free(struct step_parts *p)
{
	for (size_t i = 0; i < p->whats.nr; i++)
		free(((struct step_what *)p->whats.data)[i].name);
	free(p->whats.data);
	map64__free(&p->ns);
	map64__free(&p->by_text);
	*p = (struct step_parts){0};
}

/* ---- outliers ---- */

static const struct tl_step *step_at(const struct comparison *c, size_t i)
{
	return bulk__at(c->steps, i);
}

static uint64_t duration_of(const struct comparison *c, size_t i)
{
	return step_at(c, i)->end_ns - step_at(c, i)->start_ns;
}

static bool is_exact(const struct comparison *c, size_t i)
{
	return !(step_at(c, i)->flags &
		 (KPROF_EVENT_CLOSED | KPROF_EVENT_OPEN_AT_END | KPROF_EVENT_OPEN_AT_START));
}

static int by_size(const void *a, const void *b)
{
	return order_u64(*(const uint64_t *)a, *(const uint64_t *)b);
}

/* The median of sorted numbers, of an even number of them the mean of both in the middle. */
static uint64_t median(const uint64_t *sorted, size_t nr)
{
	uint64_t low = sorted[(nr - 1) / 2], high = sorted[nr / 2];

	return low + (high - low) / 2;
}

/* The distances replace the durations. */
static uint64_t median_distance(struct process *p, uint64_t median_ns)
{
	for (size_t i = 0; i < p->nr; i++)
		p->sorted[i] = p->sorted[i] > median_ns ? p->sorted[i] - median_ns
							: median_ns - p->sorted[i];
	qsort(p->sorted, p->nr, sizeof(*p->sorted), by_size);
	return median(p->sorted, p->nr);
}

/* Fills in the infos of a process's steps. Returns how many are outliers. */
static size_t measure(const struct comparison *c, struct process *p)
{
	uint64_t median_ns, mad_ns;
	double more_ns, mads_ns;
	size_t outliers = 0;

	p->nr = 0;
	for (size_t i = p->from; i < p->to; i++)
		if (is_exact(c, i))
			p->sorted[p->nr++] = duration_of(c, i);
	if (!p->nr)
		return 0;
	qsort(p->sorted, p->nr, sizeof(*p->sorted), by_size);
	median_ns = median(p->sorted, p->nr);
	mad_ns = median_distance(p, median_ns);
	more_ns = KPROF_STEP_OUTLIER_LEAST * (double)median_ns;
	mads_ns = KPROF_STEP_OUTLIER_MADS * MAD_TO_SIGMA * (double)mad_ns;
	if (mads_ns > more_ns)
		more_ns = mads_ns;
	for (size_t i = p->from; i < p->to; i++) {
		struct kprof_step_info *info = &c->infos[i];

		info->median_ns = median_ns;
		info->mad_ns = mad_ns;
		if (median_ns)
			info->of_median = (double)duration_of(c, i) / (double)median_ns;
		info->outlier = p->nr >= KPROF_STEP_OUTLIER_STEPS && is_exact(c, i) &&
				(double)duration_of(c, i) - (double)median_ns > more_ns;
		outliers += info->outlier;
	}
	return outliers;
}

static size_t process_end(const struct comparison *c, size_t from)
{
	size_t to = from;

	while (to < c->steps->nr && step_at(c, to)->pid == step_at(c, from)->pid)
		to++;
	return to;
}

/* Returns how many outliers there are in all, or -ENOMEM. */
static ssize_t find_outliers(const struct comparison *c)
{
	struct process p = {.sorted = calloc(c->steps->nr + 1, sizeof(*p.sorted))};
	ssize_t outliers = 0;

	if (!p.sorted)
		return no_memory();
	for (; p.from < c->steps->nr; p.from = p.to) {
		p.to = process_end(c, p.from);
		outliers += (ssize_t)measure(c, &p);
	}
	free(p.sorted);
	return outliers;
}

/* ---- what was more ---- */

static int by_process_and_name(const void *pa, const void *pb, void *ctx)
{
	const struct comparison *c = ctx;
	const struct part *a = pa, *b = pb;
	pid_t pid = step_at(c, a->step)->pid, other = step_at(c, b->step)->pid;

	if (pid != other)
		return pid < other ? -1 : 1;
	return a->what != b->what ? order_u64(a->what, b->what) : order_u64(a->ns, b->ns);
}

/* All that was counted, by process and name, the least first. */
static int sort_parts(struct comparison *c)
{
	const struct map64 *ns = &c->parts->ns;

	for (size_t i = 0; i < ns->cap; i++) {
		const struct map64_slot *slot = &ns->slots[i];
		struct part *part = slot->tag && slot->value ? bulk__push(&c->all) : NULL;

		if (!slot->tag || !slot->value)
			continue;
		if (!part)
			return no_memory();
		*part = (struct part){.step = (uint32_t)((slot->tag - 1) >> 32),
				      .what = (uint32_t)(slot->tag - 1),
				      .ns = slot->value - 1};
	}
	return bulk__sort(&c->all, 0, c->all.nr, by_process_and_name, c) ? no_memory() : 0;
}

static struct kprof_step_difference *differences_of(const struct comparison *c, size_t step)
{
	return c->differences + (c->infos[step].differences - c->differences);
}

/* Keeps a difference if it is one of the largest of its step. The names are filled in last. */
static void keep(struct comparison *c, const struct part *part, uint64_t median_ns)
{
	struct kprof_step_info *info = &c->infos[part->step];
	struct kprof_step_difference *to = differences_of(c, part->step);
	uint64_t more_ns = part->ns - median_ns;
	size_t at = info->nr_differences;

	if ((double)more_ns < LEAST_SHARE * (double)(duration_of(c, part->step) - info->median_ns))
		return;
	while (at && to[at - 1].ns - to[at - 1].median_ns < more_ns)
		at--;
	if (at == KPROF_STEP_DIFFERENCES)
		return;
	if (info->nr_differences < KPROF_STEP_DIFFERENCES)
		info->nr_differences++;
	memmove(&to[at + 1], &to[at], (info->nr_differences - at - 1) * sizeof(*to));
	to[at] = (struct kprof_step_difference){
		.what = step_parts__at(c->parts, part->what)->what,
		.name = step_parts__at(c->parts, part->what)->name,
		.ns = part->ns,
		.median_ns = median_ns,
	};
}

/* The parts [from, to) are those of one name in the steps of a process, of which there are nr. */
static void compare_name(struct comparison *c, size_t from, size_t to, size_t nr)
{
	size_t missing = nr - (to - from), middle = nr / 2;
	const struct part *part;
	uint64_t median_ns = 0;

	if (middle >= missing) {
		part = bulk__at(&c->all, from + middle - missing);
		median_ns = part->ns;
	}
	for (size_t i = from; i < to; i++) {
		part = bulk__at(&c->all, i);
		if (c->infos[part->step].outlier && part->ns > median_ns)
			keep(c, part, median_ns);
	}
}

static void compare_names(struct comparison *c)
{
	size_t from = 0, to, first = 0, end = 0;

	for (; from < c->all.nr; from = to) {
		struct part part = *(const struct part *)bulk__at(&c->all, from);
		const struct part *next;

		while (end <= part.step) { /* the steps of its process are [first, end) */
			first = end;
			end = process_end(c, first);
		}
		for (to = from + 1; to < c->all.nr; to++) {
			next = bulk__at(&c->all, to);
			if (next->what != part.what || next->step < first || next->step >= end)
				break;
		}
		compare_name(c, from, to, end - first);
	}
}

/* The names of what is kept outlive the capture, and are those for people. */
static int name_differences(struct comparison *c)
{
	for (size_t i = 0; i < c->steps->nr; i++) {
		for (size_t k = 0; k < c->infos[i].nr_differences; k++) {
			struct kprof_step_difference *d = differences_of(c, i) + k;
			bool mangled = d->what == KPROF_STEP_DEVICE && !strncmp(d->name, "_Z", 2);
			char *plain = mangled ? demangle(d->name) : NULL;

			d->name = result__keep(c->result, plain ? plain : d->name);
			free(plain);
			if (!d->name)
				return -ENOMEM;
		}
	}
	return 0;
}

static int explain(struct comparison *c, size_t outliers)
{
	struct kprof_step_difference *next =
		calloc(outliers * KPROF_STEP_DIFFERENCES, sizeof(*next));
	int err;

	if (!next)
		return no_memory();
	c->result->step_differences = c->differences = next;
	for (size_t i = 0; i < c->steps->nr; i++) {
		if (!c->infos[i].outlier)
			continue;
		c->infos[i].differences = next;
		next += KPROF_STEP_DIFFERENCES;
	}
	err = sort_parts(c);
	if (err)
		return err;
	compare_names(c);
	return name_differences(c);
}

int step_parts__compare(struct step_parts *p, struct kprof_result *r, const struct bulk *steps,
			struct kprof_step_info *infos)
{
	struct comparison c = {
		.parts = p,
		.result = r,
		.steps = steps,
		.infos = infos,
		.all = {.size = sizeof(struct part)},
	};
	ssize_t outliers = find_outliers(&c);
	int err = outliers > 0 ? explain(&c, (size_t)outliers) : (int)outliers;

	bulk__free(&c.all);
	return err;
}
