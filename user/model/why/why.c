// SPDX-License-Identifier: BSD-2-Clause
/* Implements include/kprof/why.h: chooses the thread, and sums up what its steps went to. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/diff/stats.h"
#include "model/report/busy.h"
#include "model/why/impl.h"
#include "util/error.h"
#include "util/order.h"

#define LEVEL 0.05
/* Two of each kind that has a time, and one other process. */
#define MOST_EVIDENCE (2 * KPROF_WHY_PEER + 1)
#define MOST_MISSING 8
/* Less than this of the time is no evidence worth a line. */
#define LEAST_EVIDENCE 0.1
/* Waits that are too short for a record are worth a word from this share of the time on. */
#define LEAST_SHORT 0.02

struct missing {
	const char *what, *how;
};

struct kprof_why {
	struct events events;
	struct evidence evidence;
	struct sweep sweep;
	struct kprof_why_info info;
	struct kprof_why_row rows[KPROF_WHY_CAUSES];
	struct kprof_why_evidence shown[KPROF_WHY_CAUSES][MOST_EVIDENCE];
	struct missing missing[MOST_MISSING];
	size_t nr_missing;
	struct vec texts; /* char * */
	double least;
	/* Of the time on a CPU, as far as is known: the share that was not, and its interval. */
	double off[KPROF_WHY_CAUSES], off_low[KPROF_WHY_CAUSES], off_high[KPROF_WHY_CAUSES];
	double short_share; /* of all time: waits too short for a record */
	bool short_unknown; /* there are some, and not known how many in the selected range */
	double evident_ns[KPROF_WHY_CAUSES]; /* the time that evidence is of */
};

static int no_memory(void)
{
	return error_set(-ENOMEM, NULL, "out of memory for the causes");
}

/* Takes over a text. NULL with the error set. */
static const char *keep(struct kprof_why *w, char *text)
{
	char **slot = text ? vec_push(&w->texts, sizeof(*slot)) : NULL;

	if (!slot) {
		free(text);
		no_memory();
		return NULL;
	}
	return *slot = text;
}

/* ---- which thread ---- */

/* Of several processes with steps, that which waits longest for a collective; else has most. */
static int choose(struct kprof_why *w, size_t *chosen)
{
	const struct events *e = &w->events;
	double most = 0;
	int err = 0;

	*chosen = 0;
	for (size_t i = 1; i < e->nr_subjects; i++)
		if (e->subjects[i].step_ns > e->subjects[*chosen].step_ns)
			*chosen = i;
	for (size_t i = 0; i < e->nr_subjects && e->nr_subjects > 1 && !err; i++) {
		struct sweep s;
		double share = 0;

		err = sweep__run(&s, e, &e->subjects[i], NULL);
		if (!err)
			share = sweep__share(&s, KPROF_WHY_COLLECTIVE);
		sweep__free(&s);
		if (share > most && share >= w->least) {
			most = share;
			*chosen = i;
			w->info.chosen = "waits longest for the others";
		}
	}
	return err;
}

/* "ProfilerStep#7" is one of ProfilerStep#N. */
static const char *step_name(struct kprof_why *w, const struct tl_description *d)
{
	size_t len = d ? strlen(d->name) : 0, base = len;

	while (base && isdigit((unsigned char)d->name[base - 1]))
		base--;
	if (!d || base == len)
		return d ? d->name : "";
	return keep(w, xasprintf("%.*sN", (int)base, d->name));
}

static int describe(struct kprof_why *w, const struct subject *subject)
{
	struct kprof_capture *t = w->events.t;
	const struct tl_thread *th = timeline__thread(t, subject->thread);
	const struct tl_process *p = timeline__process_of(t, th->pid);
	const struct tl_description *d =
		subject->description ? timeline__description(t, (size_t)subject->description - 1)
				     : NULL;

	w->info.by_step = subject->to > subject->from;
	w->info.step = step_name(w, d);
	if (!w->info.step)
		return -ENOMEM;
	w->info.pid = th->pid;
	w->info.tid = th->tid;
	w->info.thread = th->title;
	w->info.process = !p ? "" : *p->cmdline ? p->cmdline : p->comm;
	w->info.peers = w->info.by_step ? w->events.nr_peers - 1 : 0;
	w->info.ops = w->events.has_ops;
	w->info.waits = w->events.has_waits;
	w->info.samples = w->events.has_samples;
	if (!w->info.chosen)
		w->info.chosen = w->info.by_step     ? "has the steps"
				 : w->events.has_ops ? "is longest in operators"
						     : "is of the process that does most";
	return 0;
}

/* ---- what is on no CPU after all ---- */

static bool is_doubtful(int cause)
{
	return cause == KPROF_WHY_COMPUTE || cause == KPROF_WHY_CODE || cause == KPROF_WHY_LAUNCH;
}

/* Wilson's interval for a share of n observations. */
static void wilson(double share, double n, double *low, double *high)
{
	const double z = 1.96;
	double middle = (share + z * z / (2 * n)) / (1 + z * z / n);
	double half = z * sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n);

	*low = fmax(0, middle - half);
	*high = fmin(1, middle + half);
}

/* Waits were not recorded: samples tell how much of the time the thread was on a CPU. */
static void doubt_by_samples(struct kprof_why *w)
{
	for (int i = 0; i < KPROF_WHY_CAUSES; i++) {
		double running = w->sweep.running_ns[i];
		double sampled = (double)w->evidence.sampled_ns[i], period;

		if (!is_doubtful(i) || running <= 0)
			continue;
		if (!w->info.samples) {
			w->off[i] = w->off_low[i] = w->off_high[i] = i == KPROF_WHY_CODE;
			continue;
		}
		w->off[i] = fmax(0, 1 - sampled / running);
		period = sampled / (double)(w->evidence.samples[i] ? w->evidence.samples[i] : 1);
		if (period <= 0) {
			w->off_low[i] = w->off_high[i] = w->off[i];
			continue;
		}
		wilson(w->off[i], fmax(1, running / period), &w->off_low[i], &w->off_high[i]);
	}
}

/* Waits too short for a record: how long they are together is known, but not when they were. */
static void doubt_by_times(struct kprof_why *w)
{
	uint32_t thread = w->sweep.subject->thread;
	const struct tl_thread_time *time = timeline__thread_time(w->events.t, thread);
	double life, off, recorded = 0, share;

	/* How long they are is known of the whole recording. */
	w->short_unknown =
		time && time->switches > time->told && kprof_capture_selection(w->events.t);
	if (!time || kprof_capture_selection(w->events.t))
		return;
	life = (double)time->on_ns + (double)time->runnable_ns + (double)time->blocked_ns;
	off = (double)time->runnable_ns + (double)time->blocked_ns;
	for (size_t i = timeline__find_wait(&w->events.waits, thread, 0); i < w->events.waits.nr;
	     i++) {
		const struct tl_wait *wait = bulk__at(&w->events.waits, i);

		if (wait->thread != thread)
			break;
		recorded += (double)(wait->end_ns - wait->start_ns);
	}
	share = life > recorded ? fmin(1, fmax(0, off - recorded) / (life - recorded)) : 0;
	for (int i = 0; i < KPROF_WHY_CAUSES; i++)
		w->off[i] = w->off_low[i] = w->off_high[i] = share;
}

/* Moves what was on no CPU to what is not known: of each line and operator an equal part. */
static void move_doubtful(struct kprof_why *w)
{
	struct sweep *s = &w->sweep;

	for (int i = 0; i < KPROF_WHY_CAUSES; i++)
		w->evident_ns[i] = sweep__total(s, (enum kprof_why_cause)i);
	for (int i = 0; i < KPROF_WHY_CAUSES; i++) {
		double total = w->evident_ns[i];
		/* Both are sums of the same, and rounded. */
		double off = total > 0 ? fmin(1, w->off[i] * s->running_ns[i] / total) : 0;

		for (size_t k = 0; k < s->nr_units && i != KPROF_WHY_UNKNOWN; k++) {
			s->by[KPROF_WHY_UNKNOWN][k] += s->by[i][k] * off;
			s->by[i][k] *= 1 - off;
		}
		if (w->info.waits && total > 0)
			w->short_share += off * total;
	}
}

/* ---- devices ---- */

struct busy_time {
	const struct kprof_why *w;
	struct bulk stretches; /* uint64_t [2] */
};

static int add_stretch(void *ctx, pid_t pid, uint64_t start_ns, uint64_t end_ns)
{
	struct busy_time *b = ctx;
	uint64_t *stretch = pid == b->w->sweep.subject->pid ? bulk__push(&b->stretches) : NULL;

	if (pid != b->w->sweep.subject->pid)
		return 0;
	if (!stretch)
		return no_memory();
	stretch[0] = start_ns;
	stretch[1] = end_ns;
	return 0;
}

static int by_start(const void *a, const void *b, void *ctx)
{
	return order_u64(*(const uint64_t *)a, *(const uint64_t *)b);
}

/* How much of the pieces, which are in order, lies in the stretches. */
static double overlap(const struct sweep *s, const struct bulk *stretches)
{
	uint64_t until_ns = 0;
	double sum = 0;
	size_t i = 0;

	for (size_t k = 0; k < stretches->nr; k++) {
		const uint64_t *stretch = bulk__at(stretches, k);
		uint64_t from_ns = stretch[0] > until_ns ? stretch[0] : until_ns;

		for (; i < s->pieces.nr; i++) {
			const struct piece *p = bulk__at(&s->pieces, i);
			uint64_t a = p->start_ns > from_ns ? p->start_ns : from_ns;
			uint64_t b = p->end_ns < stretch[1] ? p->end_ns : stretch[1];

			sum += a < b ? (double)(b - a) : 0;
			if (p->end_ns > stretch[1])
				break;
		}
		until_ns = stretch[1] > until_ns ? stretch[1] : until_ns;
	}
	return sum;
}

static int read_device(struct kprof_why *w, double all_ns)
{
	struct busy_time b = {.w = w, .stretches = {.size = 2 * sizeof(uint64_t)}};
	int err = busy__each(w->events.t, add_stretch, &b);

	if (!err && bulk__sort(&b.stretches, 0, b.stretches.nr, by_start, NULL))
		err = no_memory();
	w->info.device = b.stretches.nr != 0;
	if (!err && all_ns > 0)
		w->info.device_share = fmin(1, overlap(&w->sweep, &b.stretches) / all_ns);
	bulk__free(&b.stretches);
	return err;
}

/* ---- rows ---- */

/* The interval of a share from the spread over steps; the longer blocks count if they say less. */
static bool interval_of(const struct sweep *s, enum kprof_why_cause cause, double *half)
{
	double most = -1;

	for (unsigned int level = 0; level <= 2; level += 2) {
		struct stats_mean m = stats_of_blocks(s->by[cause], s->unit_ns, s->nr_units, level);
		double here = m.df > 0 ? stats_t_of_p(LEVEL, m.df) * sqrt(m.var) : -1;

		most = here > most ? here : most;
	}
	*half = fmax(0, most);
	return most >= 0;
}

static void fill_row(struct kprof_why *w, enum kprof_why_cause cause, double all_ns, double units)
{
	const struct sweep *s = &w->sweep;
	struct kprof_why_row *row = &w->rows[cause];
	double total = sweep__total(s, cause), half = 0;
	double on = 1 - w->off[cause];

	*row = (struct kprof_why_row){.cause = cause,
				      .ns = total / units,
				      .share = total / all_ns,
				      .interval = interval_of(s, cause, &half),
				      .advice = "",
				      .evidence = w->shown[cause]};
	row->low = fmax(0, row->share - half);
	row->high = fmin(1, row->share + half);
	if (!w->info.waits && is_doubtful((int)cause) && on > 0) {
		row->low *= (1 - w->off_high[cause]) / on;
		row->high = fmin(1, row->high * (1 - w->off_low[cause]) / on);
	}
	if (cause == KPROF_WHY_COMPUTE || cause == KPROF_WHY_UNKNOWN)
		return;
	row->win = w->info.device ? fmin(row->share, 1 - w->info.device_share) : row->share;
	row->found = row->win >= w->least && (!row->interval || row->low >= w->least / 2);
}

static int row_order(const void *pa, const void *pb)
{
	const struct kprof_why_row *a = pa, *b = pb;

	if (a->found != b->found)
		return a->found ? -1 : 1;
	if (a->found && a->win != b->win)
		return a->win > b->win ? -1 : 1;
	if (a->share != b->share)
		return a->share > b->share ? -1 : 1;
	return a->cause < b->cause ? -1 : 1;
}

/* ---- evidence ---- */

static int add_evidence(struct kprof_why *w, struct kprof_why_row *row, enum kprof_why_kind kind,
			char *text, double share)
{
	const char *kept = keep(w, text);

	if (!kept)
		return -ENOMEM;
	if (row->nr_evidence == MOST_EVIDENCE)
		return 0;
	w->shown[row->cause][row->nr_evidence++] =
		(struct kprof_why_evidence){.kind = kind, .text = kept, .share = share};
	return 0;
}

/* The two keys of a kind with most time. */
static int show_kind(struct kprof_why *w, struct kprof_why_row *row, enum kprof_why_kind kind)
{
	const struct top *top = &w->evidence.tops[row->cause][kind];
	double all_ns = (double)top->all_ns;
	uint64_t shown = 0;
	int err = 0;

	/* Each moment is in an operator and somebody's, or not; lines are known of some moments. */
	if (kind == KPROF_WHY_OPERATOR || kind == KPROF_WHY_WHO)
		all_ns = fmax(w->evident_ns[row->cause], sweep__total(&w->sweep, row->cause));

	for (int n = 0; n < 2 && !err; n++) {
		size_t most = TOP;

		for (size_t i = 0; i < TOP; i++)
			if (top->of[i].key && top->of[i].key != shown &&
			    (most == TOP || top->of[i].ns > top->of[most].ns))
				most = i;
		if (most == TOP || (double)top->of[most].ns < LEAST_EVIDENCE * all_ns)
			break;
		shown = top->of[most].key;
		err = add_evidence(w, row, kind, evidence__text(&w->evidence, kind, shown),
				   fmin(1, (double)top->of[most].ns / all_ns));
	}
	return err;
}

static int show_evidence(struct kprof_why *w, struct kprof_why_row *row)
{
	int err = 0;

	for (int kind = 0; kind < KPROF_WHY_PEER && !err; kind++)
		err = show_kind(w, row, (enum kprof_why_kind)kind);
	row->advice = why_advice(row->cause, w->evidence.tops[row->cause][KPROF_WHY_WHO].all_ns);
	return err;
}

/* What a process went to most, beside the collective. */
static enum kprof_why_cause most_of(const struct sweep *s)
{
	enum kprof_why_cause most = KPROF_WHY_COMPUTE;

	for (int i = 0; i < KPROF_WHY_CAUSES; i++)
		if (i != KPROF_WHY_COLLECTIVE &&
		    sweep__total(s, (enum kprof_why_cause)i) > sweep__total(s, most))
			most = (enum kprof_why_cause)i;
	return most;
}

/* Of the other processes with steps, the one that waits least: the others wait for it. */
static int show_peer(struct kprof_why *w, struct kprof_why_row *row)
{
	const struct events *e = &w->events;
	enum kprof_why_cause most = KPROF_WHY_COMPUTE;
	double least = row->share, most_share = 0;
	const struct subject *peer = NULL;
	int err = 0;

	for (size_t i = 0; i < e->nr_subjects && !err; i++) {
		struct sweep s;

		if (&e->subjects[i] == w->sweep.subject)
			continue;
		err = sweep__run(&s, e, &e->subjects[i], NULL);
		if (!err && sweep__share(&s, KPROF_WHY_COLLECTIVE) < least) {
			least = sweep__share(&s, KPROF_WHY_COLLECTIVE);
			peer = &e->subjects[i];
			most = most_of(&s);
			most_share = sweep__share(&s, most);
		}
		sweep__free(&s);
	}
	if (err || !peer)
		return err;
	return add_evidence(w, row, KPROF_WHY_PEER,
			    xasprintf("process %d waits only %.1f %% itself; most of its steps: %s "
				      "(%.1f %%)",
				      peer->pid, 100 * least, kprof_why_cause_name(most),
				      100 * most_share),
			    1);
}

/* ---- what is missing ---- */

static void miss(struct kprof_why *w, const char *what, const char *how)
{
	if (w->nr_missing < MOST_MISSING)
		w->missing[w->nr_missing++] = (struct missing){what, how};
}

static void find_missing(struct kprof_why *w)
{
	const struct events *e = &w->events;

	if (!e->has_waits)
		miss(w, "what threads waited for", "attach --sched, sample --off-cpu");
	if (!e->has_samples)
		miss(w, "which lines ran on the CPU", "attach --stacks");
	if (!e->has_ops)
		miss(w, "operators, and time in launching them", "attach, instead of sample");
	if (!w->info.by_step)
		miss(w, "steps: no annotation looks like one",
		     "record_function or kprof/mark.h in the program");
	if (e->has_calls && !w->info.device)
		miss(w, "what the device did, and so whether it was busy",
		     "attach without --no-agent");
	if (e->dropped)
		miss(w, "events that were dropped: some of the times above are too short",
		     "a larger --ring, fewer --ops");
	if (e->waits_until_ns)
		miss(w, "waits after they were given up", "a higher --max-overhead, or --min-wait");
	if (w->short_unknown)
		miss(w, "how long waits shorter than the limit were in a part of the recording",
		     "the whole of it");
	if (w->short_share >= LEAST_SHORT)
		miss(w, "what waits shorter than the limit were for", "--min-wait 10us");
}

/* ---- the whole ---- */

static int sum_up(struct kprof_why *w)
{
	struct sweep *s = &w->sweep;
	double all_ns = 0;
	int err;

	for (size_t i = 0; i < s->nr_units; i++)
		all_ns += s->unit_ns[i];
	if (all_ns <= 0)
		return error_set(-ENODATA, NULL, "the recording in %s has no length",
				 timeline__path(w->events.t));
	w->info.units = w->info.by_step ? s->subject->to - s->subject->from : 0;
	w->info.unit_ns = w->info.by_step ? all_ns / (double)w->info.units : 1e9;
	if (w->info.waits)
		doubt_by_times(w);
	else
		doubt_by_samples(w);
	move_doubtful(w);
	w->short_share /= all_ns;
	err = read_device(w, all_ns);
	for (int i = 0; i < KPROF_WHY_CAUSES && !err; i++) {
		fill_row(w, (enum kprof_why_cause)i, all_ns,
			 w->info.by_step ? (double)w->info.units : all_ns / 1e9);
		err = show_evidence(w, &w->rows[i]);
	}
	if (!err && w->info.peers)
		err = show_peer(w, &w->rows[KPROF_WHY_COLLECTIVE]);
	if (err)
		return err;
	qsort(w->rows, KPROF_WHY_CAUSES, sizeof(w->rows[0]), row_order);
	find_missing(w);
	return 0;
}

static int fill(struct kprof_why *w, struct kprof_capture *t, pid_t tid)
{
	size_t chosen;
	int err = events__read(&w->events, t, tid);

	if (err)
		return err;
	if (!w->events.has_ops && !w->events.has_waits && !w->events.has_samples)
		return error_set(-ENODATA,
				 "record operators (kprof attach --sched --stacks) or samples and "
				 "waits (kprof sample --off-cpu)",
				 "%s says nothing of where time went", timeline__path(t));
	if (tid)
		w->info.chosen = "was asked for";
	err = choose(w, &chosen);
	if (err)
		return err;
	err = describe(w, &w->events.subjects[chosen]);
	w->evidence.e = &w->events;
	w->evidence.pid = w->events.subjects[chosen].pid;
	if (!err)
		err = sweep__run(&w->sweep, &w->events, &w->events.subjects[chosen], &w->evidence);
	if (!err)
		err = evidence__samples(&w->evidence, &w->sweep);
	return err ? err : sum_up(w);
}

int kprof_why_new(struct kprof_capture *c, const struct kprof_why_opts *user,
		  struct kprof_why **out)
{
	struct kprof_why_opts opts = {0};
	struct kprof_why *w;
	int err;

	error_clear();
	memcpy(&opts, user, user->sz < sizeof(opts) ? user->sz : sizeof(opts));
	w = calloc(1, sizeof(*w));
	if (!w)
		return no_memory();
	w->least = opts.least > 0 ? opts.least : KPROF_WHY_LEAST;
	timeline__cut(c, true);
	err = fill(w, c, opts.tid);
	timeline__cut(c, false);
	if (err) {
		kprof_why_free(w);
		return err;
	}
	*out = w;
	return 0;
}

const struct kprof_why_info *kprof_why_info(const struct kprof_why *w)
{
	return &w->info;
}

size_t kprof_why_nr_rows(const struct kprof_why *w)
{
	return KPROF_WHY_CAUSES;
}

const struct kprof_why_row *kprof_why_row(const struct kprof_why *w, size_t i)
{
	return i < KPROF_WHY_CAUSES ? &w->rows[i] : NULL;
}

bool kprof_why_missing(const struct kprof_why *w, size_t i, const char **what, const char **how)
{
	if (i >= w->nr_missing)
		return false;
	*what = w->missing[i].what;
	*how = w->missing[i].how;
	return true;
}

void kprof_why_free(struct kprof_why *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->texts.nr; i++)
		free(((char **)w->texts.data)[i]);
	free(w->texts.data);
	sweep__free(&w->sweep);
	evidence__free(&w->evidence);
	events__free(&w->events);
	free(w);
}
