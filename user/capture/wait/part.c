// SPDX-License-Identifier: BSD-2-Clause
/*
 * Waits and threads' times where the recording's file ends and it goes on in another one. The
 * kernel's programs go on as they were, and so each thread has a border of its own: the moment at
 * which it was looked at, just before that of the file. Its time up to then is in the old file, and
 * the rest in the next one. A wait that goes on at the border is split there; if it has not lasted
 * long enough for a record yet, all of it is in the file in which it ends. What records tell of
 * after a thread's border, but are read before the file's, is kept for the next file.
 */
#include <errno.h>

#include "capture/wait/impl.h"
#include "util/util.h"

/*
 * Of a thread that has been on a CPU for longer, it is looked whether it sleeps: its last switch
 * may not have been seen. One that is about to sleep looks like that, too, but not for long.
 */
#define RUNS_ON_NS (10 * NSEC_PER_MSEC)

/*
 * The kernel's programs take the time of an event first, and note it a little later. So threads'
 * borders are a little before they are looked at; what has changed since has its time.
 */
#define NOTED_NS (2 * NSEC_PER_MSEC)

/* It has this much by the border. */
static int tell(struct waits *w, const struct wait_look *l)
{
	const struct kprof_wait *k = &l->k;
	struct wait_told told = {
		.end_ns = k->since_ns,
		.runnable_ns = k->runnable_ns,
		.blocked_ns = k->blocked_ns,
		.switches = k->switches,
		.told = k->told,
		.split_ns = l->splits ? k->off_ns : 0,
	};

	return wait_border_tell(&w->latest, k->number, &told);
}

/* Puts what the thread has done up to the border: the part of a wait that goes on, and its time. */
static int end_part(struct waits *w, struct thread *th, const struct wait_look *l)
{
	struct kprof_wait k = l->k;
	int err = 0;

	if (l->splits) {
		k.told++;
		err = waits_record(w, th, &k, k.since_ns, STORE_WAIT_TO_END);
	}
	return err ? err : waits_record_time(w, th, &k);
}

static bool is_recorded(const struct waits *w, const struct target *t, const struct kprof_wait *k)
{
	return !t->left_out && w->opts.wants(w->opts.ctx, k->number);
}

/* What it had done by the border is put once a record tells of its process. */
static int note_unknown(struct waits *w, const struct wait_look *l)
{
	uint64_t *at = map64__at(&w->unknown_at, l->k.number);
	struct wait_look *own = at ? vec_push(&w->unknown, sizeof(*own)) : NULL;

	if (!own)
		return -ENOMEM;
	*own = *l;
	*at = w->unknown.nr;
	return 0;
}

static int catch_up(struct waits *w, struct thread *th)
{
	const struct wait_look *all = w->unknown.data;
	uint64_t *at;

	if (!w->unknown.nr || !map64__get(&w->unknown_at, th->pid_tgid))
		return 0;
	at = map64__at(&w->unknown_at, th->pid_tgid);
	all += *at - 1;
	*at = 0;
	return end_part(w, th, all);
}

int waits__event(struct waits *w, struct thread *th, const struct kprof_wire_wait *e)
{
	int err = waits_settle(w, &e->w);

	if (!err)
		err = catch_up(w, th);
	if (err)
		return err;
	if (e->w.flags & KPROF_WAIT_LAST)
		return waits_record_time(w, th, &e->w);
	return waits_has(w, &e->w) ? 0 : waits_record(w, th, &e->w, e->w.since_ns, 0);
}

/* All records of before have been read: of processes that these told of, the same. */
static int catch_up_all(struct waits *w)
{
	const struct wait_look *all = w->unknown.data;
	int err = 0;

	for (size_t i = 0; i < w->unknown.nr && !err; i++) {
		const struct kprof_wait *k = &all[i].k;
		struct target *t = targets__find(w->opts.targets, (uint32_t)(k->number >> 32));
		struct thread *th;

		if (!t || !is_recorded(w, t, k) || !map64__get(&w->unknown_at, k->number))
			continue;
		th = w->opts.thread(w->opts.ctx, t, k->number, k->start_ns);
		err = th ? catch_up(w, th) : -ENOMEM;
	}
	return err;
}

/* What it did at at_ns, by what was read a moment later. */
static void look_at(struct waits *w, const struct kprof_wait *k, uint64_t at_ns,
		    struct wait_look *out)
{
	const struct wait_told *latest = wait_border_find(&w->before, k->number);
	struct wait_told before;
	struct still s;

	if (latest && latest->end_ns != WAIT_ENDED && at_ns <= latest->end_ns)
		at_ns = latest->end_ns + 1; /* two borders at almost the same time */
	*out = (struct wait_look){.k = *k};
	if (k->state == KPROF_WAIT_RUNS && at_ns > k->since_ns + RUNS_ON_NS &&
	    waits_left_unseen(w, k, &s))
		waits_leave_unseen(&out->k, &s, at_ns);
	at_ns = wait_at(&out->k, at_ns);
	before = waits_told(w, &out->k, at_ns);
	if (out->k.state != KPROF_WAIT_RUNS)
		out->splits = at_ns - wait_from(&out->k, &before, w->opts.min_wait_ns) >=
			      w->opts.min_wait_ns;
}

/* The thread that the kernel's programs know under this number. */
static int end_part_of(void *ctx, struct kprof_wait *k, uint64_t looked_ns)
{
	struct waits *w = ctx;
	struct target *t = targets__find(w->opts.targets, (uint32_t)(k->number >> 32));
	struct wait_look now;
	struct thread *th;
	int err = 0;

	look_at(w, k, looked_ns - NOTED_NS, &now);
	if (!t) {
		err = note_unknown(w, &now);
	} else if (is_recorded(w, t, k)) {
		th = w->opts.thread(w->opts.ctx, t, k->number, k->start_ns);
		err = th ? end_part(w, th, &now) : -ENOMEM;
	}
	return err ? err : tell(w, &now);
}

/* It was not looked at: it has ended, or what is not told yet is for the next file. */
static int tell_unlooked(struct waits *w, uint64_t number, bool ended)
{
	const struct wait_told *before = wait_border_find(&w->before, number);
	struct wait_told told = {.end_ns = WAIT_ENDED};

	if (!ended)
		told = before ? *before : (struct wait_told){0};
	return wait_border_tell(&w->latest, number, &told);
}

static bool has_ended(const struct thread *th)
{
	char state = proc_thread_state((pid_t)th->target->pid, (pid_t)(uint32_t)th->pid_tgid);

	return state == 'X' || state == 'Z';
}

/*
 * A thread that the kernel's programs did not know, of which they may know by now. If not, it has
 * been doing the same all the time.
 */
static int end_part_of_other(struct waits *w, struct thread *th)
{
	uint64_t looked_ns = clock_mono_ns(), at_ns = looked_ns - NOTED_NS;
	struct wait_look l = {0};
	struct kprof_wait k;
	struct still s;
	int err = attacher__wait_of(w->opts.attacher, (uint32_t)th->pid_tgid, &k);

	if (!err && k.number == th->pid_tgid)
		return end_part_of(w, &k, looked_ns);
	if (err != -ENOENT || at_ns <= w->from_ns || !waits_look_still(w, th, &s))
		return tell_unlooked(w, th->pid_tgid, has_ended(th));
	err = waits_finish_still(w, &s, th, at_ns);
	/* for the kernel's programs it will have been so since waits are recorded */
	l.k.number = th->pid_tgid;
	l.k.since_ns = at_ns;
	if (s.state != 'R')
		l.k.blocked_ns = at_ns - w->from_ns;
	return err ? err : tell(w, &l);
}

int waits__border(struct waits *w)
{
	struct thread *th, *next;
	uint64_t before_ns;
	int err;

	if (!w || w->given_up || w->opts.part)
		return 0;
	wait_border_free(&w->before);
	w->before = w->latest;
	w->latest = (struct wait_border){0};
	before_ns = clock_mono_ns(); /* they are listed after that, and maybe not at once */
	err = attacher__wait_each(w->opts.attacher, end_part_of, w);
	THREADS_EACH (w->opts.threads, th, next) {
		if (!err && !wait_border_find(&w->latest, th->pid_tgid))
			err = end_part_of_other(w, th);
	}
	w->latest.at_ns = before_ns - NOTED_NS;
	w->bordering = true;
	return err;
}

/* Puts these records, and forgets them. */
static int put_all(struct waits *w, struct vec *records)
{
	const struct store_record *all = records->data;
	int err = 0;

	for (size_t i = 0; i < records->nr && !err; i++)
		err = recorder__put(w->opts.recorder, &all[i]);
	records->nr = 0;
	return err;
}

int waits__end_part(struct waits *w)
{
	int err = w ? catch_up_all(w) : 0;

	if (!err && w)
		err = put_all(w, &w->pieces);
	if (!err && w && w->given_up)
		err = waits_finish_all(w);
	return err || !w || w->absent || w->opts.part ? err : waits_summary(w);
}

int waits__same_part(struct waits *w)
{
	int err;

	if (!w)
		return 0;
	w->bordering = false;
	err = put_all(w, &w->pieces); /* if it goes on */
	if (!err)
		err = put_all(w, &w->kept);
	w->unknown.nr = 0;
	map64__free(&w->unknown_at);
	w->unknown_at = (struct map64){0};
	return err;
}

int waits__next_part(struct waits *w)
{
	if (w)
		w->absent = w->given_up;
	return waits__same_part(w);
}
