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

static void remember(struct wait_told *told, const struct kprof_wait *k)
{
	told->end_ns = k->since_ns;
	told->runnable_ns = k->runnable_ns;
	told->blocked_ns = k->blocked_ns;
	told->switches = k->switches;
	told->told = k->told;
}

static int note_unknown(struct waits *w, uint64_t number)
{
	uint64_t *known = map64__at(&w->unknown, number);

	if (known)
		*known = 1;
	return known ? 0 : -ENOMEM;
}

/* The thread that the kernel's programs know under this number. */
static int end_part_of(void *ctx, struct kprof_wait *k, uint64_t at_ns)
{
	struct waits *w = ctx;
	struct target *t = targets__find(w->opts.targets, (uint32_t)(k->number >> 32));
	struct thread *th;
	uint64_t from_ns, told = k->told;
	int err = 0;

	if (!w->border_ns) /* all are listed by now */
		w->border_ns = at_ns;
	if (!t) /* none so far: all that comes of it is for the next file */
		return note_unknown(w, k->number);
	if (t->left_out || !w->opts.wants(w->opts.ctx, k->number))
		return 0;
	at_ns = wait_at(k, at_ns);
	th = w->opts.thread(w->opts.ctx, t, k->number, k->start_ns);
	if (!th)
		return -ENOMEM;
	from_ns = k->off_ns > th->wait_told.split_ns ? k->off_ns : th->wait_told.split_ns;
	if (k->state != KPROF_WAIT_RUNS && at_ns - from_ns >= w->opts.min_wait_ns) {
		k->told++;
		err = waits_record(w, th, k, at_ns, STORE_WAIT_TO_END);
		th->wait_told.split_ns = at_ns;
	}
	if (!err)
		err = waits_record_time(w, th, k);
	k->told = told;
	remember(&th->wait_told, k);
	return err;
}

/*
 * A thread that the kernel's programs did not know, of which they may know by now. If not, it has
 * been doing the same all the time.
 */
static int end_part_of_other(struct waits *w, struct thread *th)
{
	uint64_t now_ns = clock_mono_ns();
	struct kprof_wait k;
	struct still s;

	if (!attacher__wait_of(w->opts.attacher, (uint32_t)th->pid_tgid, &k))
		return k.number == th->pid_tgid ? end_part_of(w, &k, now_ns) : 0;
	return waits_look_still(w, th, &s) ? waits_finish_still(w, &s, th, now_ns) : 0;
}

int waits__border(struct waits *w)
{
	struct thread *th, *next;
	int err;

	if (!w || w->given_up || w->opts.part)
		return 0;
	w->begin_ns = clock_mono_ns();
	w->border_ns = 0;
	err = attacher__wait_each(w->opts.attacher, end_part_of, w);
	if (!w->border_ns)
		w->border_ns = clock_mono_ns();
	THREADS_EACH (w->opts.threads, th, next) {
		if (!err && th->wait_told.end_ns < w->begin_ns)
			err = end_part_of_other(w, th);
	}
	w->bordering = true;
	return err;
}

int waits__end_part(struct waits *w)
{
	int err = w && w->given_up ? waits_finish_all(w) : 0;

	return err || !w || w->absent || w->opts.part ? err : waits_summary(w);
}

int waits__same_part(struct waits *w)
{
	const struct store_record *kept = w ? w->kept.data : NULL;
	int err = 0;

	if (!w)
		return 0;
	w->bordering = false;
	for (size_t i = 0; i < w->kept.nr && !err; i++)
		err = recorder__put(w->opts.recorder, &kept[i]);
	w->kept.nr = 0;
	map64__free(&w->unknown);
	w->unknown = (struct map64){0};
	return err;
}

int waits__next_part(struct waits *w)
{
	if (w)
		w->absent = w->given_up;
	return waits__same_part(w);
}
