// SPDX-License-Identifier: BSD-2-Clause
/*
 * The recording's main loop: drains the rings, does periodic work, and decides how long to sleep.
 */
#include <errno.h>

#include "capture/session/session.h"
#include "util/foreign.h"
#include "util/util.h"

#define FLUSH_NS NSEC_PER_SEC
#define DRAIN_NS (100 * NSEC_PER_MSEC) /* the longest drain before periodic work gets its turn */
#define WARM_UP_NS (100 * NSEC_PER_MSEC)
#define WARM_UP_QUIET_NS (20 * NSEC_PER_MSEC)
#define MIN_SLEEP_MS 1
#define MAX_SLEEP_MS 20
#define SAMPLES_SLEEP_MS 20
#define SLOW_SAMPLES_SLEEP_MS 100
/*
 * Of all processes, where what that costs has a bound for long; more while there is no time to read
 * what is new, and most while nothing is.
 */
#define BOUND_SLEEP_MS 40
#define BOUND_ASKED_SLEEP_MS 80
#define BOUND_MOST_SLEEP_MS 160

/*
 * Drains the rings and learns return sites meanwhile: after every batch of records, since a return
 * address that is met often should not wait for the end of a long drain. Returns the number of
 * records, or a negative errno.
 */
static int drain(struct kprof_session *s)
{
	uint64_t until_ns = clock_mono_ns() + DRAIN_NS;
	int n, all = 0;

	do {
		n = dispatch__drain(s, false);
		if (n < 0)
			return n;
		all += n;
		if (probe_set__pending(s->probes)) {
			int err = probe_set__learn(s->probes);

			if (err)
				return err;
			s->idle_ms = MIN_SLEEP_MS;
		}
	} while (n == DISPATCH_RECORDS && clock_mono_ns() < until_ns);
	return all;
}

int loop__drain_and_wait(void *ctx)
{
	struct kprof_session *s = ctx;
	int n = dispatch__drain(s, false);

	if (n >= 0 && probe_set__pending(s->probes) && !recorder__window(s->recorder)->closed)
		n = probe_set__learn(s->probes);
	if (n >= 0)
		rings__wait(s->rings, 1);
	return n < 0 ? n : 0;
}

/*
 * Return sites are learnt from calls. A program that runs in a loop meets most of its return
 * addresses within moments; learning them now means that ends are exact when the window opens. Goes
 * on until WARM_UP_QUIET_NS passed without a new return address, but at most for WARM_UP_NS.
 */
int loop__warm_up(struct kprof_session *s)
{
	uint64_t now_ns = clock_mono_ns();
	uint64_t until_ns = now_ns + WARM_UP_NS, quiet_ns = now_ns + WARM_UP_QUIET_NS;
	int n = 0;

	while (n >= 0 && now_ns < until_ns && now_ns < quiet_ns) {
		size_t known = probe_set__stats(s->probes)->nr_returns;

		rings__wait(s->rings, MIN_SLEEP_MS);
		n = drain(s);
		now_ns = clock_mono_ns();
		if (probe_set__stats(s->probes)->nr_returns > known)
			quiet_ns = now_ns + WARM_UP_QUIET_NS;
	}
	return n < 0 ? n : 0;
}

/* Drains the rings, also of what concerns no record: threads that were left before it. */
static int read_rings(struct kprof_session *s)
{
	uint64_t before_ns = clock_mono_ns(), read_ns;
	int n = drain(s), err;

	if (n < 0 || !s->filter.within)
		return n;
	read_ns = dispatch__read_until(s);
	err = within__leave(s, read_ns < before_ns ? read_ns : before_ns);
	return err ? err : n;
}

int loop__look(struct kprof_session *s)
{
	int n = read_rings(s);
	uint64_t now_ns = clock_mono_ns();
	int err;

	if (n >= 0 && schedule__is_over(s)) /* what happens now is not recorded any more */
		return n;
	schedule__tend(s, now_ns);
	err = n < 0 ? n : probe_set__tend(s->probes, now_ns);

	/* before the processes, which get what stays of the probes anew */
	if (!err)
		err = overhead__tend(s->overhead, now_ns);
	if (!err && s->waits)
		err = waits__tend(s->waits, dispatch__read_until(s), now_ns,
				  ration__rests(&s->reading));
	if (!err)
		err = s->machine ? machine__tend(s, now_ns) : processes__tend(s, now_ns);
	if (!err && s->joining)
		err = joins__tend(s);
	if (!err)
		err = renames__tend(s, now_ns);
	if (!err)
		err = session_alive__look(s);
	if (!err)
		err = agents__tend(s->agents, now_ns);
	if (!err && s->observed)
		err = observed__tend(s, now_ns, dispatch__read_until(s));
	if (!err)
		err = stacks__tend(s->stacks, now_ns);
	if (!err)
		err = thread_names__tend(s->thread_names, now_ns);
	if (!err)
		err = modules_seen__tend(s->modules, now_ns);
	if (!err)
		err = inside__tend(s->inside, now_ns);
	foreign_tell();
	if (!err && ration__is_due(&s->reading, now_ns, s->next_flush_ns)) {
		err = recorder__flush(s->recorder);
		s->next_flush_ns = now_ns + FLUSH_NS;
	}
	return err ? err : n;
}

/*
 * Of all processes, with a bound: nothing wakes this thread. What cannot be read before there is
 * time for it again comes no earlier by many looks.
 */
static int bound_sleep_ms(struct kprof_session *s, uint64_t bytes)
{
	bool served = s->reading.nr_served != s->served_before;
	bool asked = s->reading.nr_asked != s->asked_before;
	int most_ms = asked ? BOUND_ASKED_SLEEP_MS : BOUND_MOST_SLEEP_MS;

	s->served_before = s->reading.nr_served;
	s->asked_before = s->reading.nr_asked;
	s->idle_ms *= 2;
	if (served || bytes > s->ring_bytes / 8 || s->idle_ms < BOUND_SLEEP_MS)
		s->idle_ms = BOUND_SLEEP_MS;
	else if (s->idle_ms > most_ms)
		s->idle_ms = most_ms;
	return s->idle_ms;
}

/*
 * How long to sleep where there are only samples. What they point to in the process is read when
 * they are: not much later than the next one. Of all processes, each new one wakes this thread.
 */
static int samples_sleep_ms(struct kprof_session *s, uint64_t bytes)
{
	uint64_t ms = stacks__period(s->stacks) / NSEC_PER_MSEC;

	if (s->reading.ns_a_second)
		return bound_sleep_ms(s, bytes);
	if (s->machine && s->opts.sample_hz <= MACHINE_SLOW_HZ)
		return SLOW_SAMPLES_SLEEP_MS;
	if (s->opts.waits || ms < SAMPLES_SLEEP_MS)
		return SAMPLES_SLEEP_MS;
	return ms < SLOW_SAMPLES_SLEEP_MS ? (int)ms : SLOW_SAMPLES_SLEEP_MS;
}

/*
 * Sleeps for as long as the rings have room: briefly while there are return sites to learn, longer
 * while events flow and the rings stay nearly empty, and until the next event when there are none.
 */
void loop__pause(struct kprof_session *s, int64_t left_ms)
{
	uint64_t read_bytes = rings__read_bytes(s->rings), bytes = read_bytes - s->bytes_before;

	s->bytes_before = read_bytes;
	/*
	 * If every sample woke this thread, it would be a hundred times a second on each CPU,
	 * without need. Records of processes that come and go do wake it.
	 */
	if (s->opts.samples_only) {
		int most_ms = samples_sleep_ms(s, bytes);

		attacher__wake_me(s->attacher);
		rings__wait(s->rings, left_ms < most_ms ? (int)left_ms : most_ms);
		return;
	}
	if (!bytes) {
		s->idle_ms = MIN_SLEEP_MS;
		if (agents__pending(s->agents) && left_ms > MIN_SLEEP_MS)
			left_ms = MIN_SLEEP_MS;
		attacher__wake_me(s->attacher);
		/*
		 * Records behind one that is still being written cannot be read: sleep briefly, so
		 * that its writer gets the CPU.
		 */
		rings__wait(s->rings, rings__empty(s->rings) ? (int)left_ms : 1);
		return;
	}
	/* in bytes, because a batch of an agent is as long as a hundred events */
	if (bytes > s->ring_bytes / 8)
		s->idle_ms /= 2;
	else if (s->idle_ms < MAX_SLEEP_MS)
		s->idle_ms *= 2;
	if (s->idle_ms < MIN_SLEEP_MS)
		s->idle_ms = MIN_SLEEP_MS;
	rings__wait(s->rings, left_ms < s->idle_ms ? (int)left_ms : s->idle_ms);
}

/*
 * How often to wait 1 ms for BPF programs that were interrupted in the middle of writing a record.
 */
#define MAX_LAST_LOOKS 200

int loop__drain_rest(struct kprof_session *s)
{
	int n, looks = 0;

	do {
		n = dispatch__drain(s, true);
		if (n == 0 && !rings__empty(s->rings))
			rings__wait(s->rings, 1);
	} while (n > 0 || (n == 0 && !rings__empty(s->rings) && looks++ < MAX_LAST_LOOKS));
	if (n >= 0 && s->filter.within)
		n = within__leave(s, recorder__window(s->recorder)->end_ns);
	return n < 0 ? n : overhead__end_spans(s->overhead);
}
