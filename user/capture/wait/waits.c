// SPDX-License-Identifier: BSD-2-Clause
#include "capture/wait/waits.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "capture/wait/impl.h"
#include "catalog/syscalls.h"
#include "util/error.h"
#include "util/util.h"

/* More than it takes until every CPU sees a number that was changed. */
#define SOON_NS NSEC_PER_MSEC

/*
 * For so long at most, programs at switches stay that have nothing to do any more: removing them
 * takes as much CPU time as thousands of their runs.
 */
#define DETACH_NS NSEC_PER_SEC

/* task_struct.__state, include/linux/sched.h */
#define TASK_INTERRUPTIBLE 0x1u
#define TASK_STOPPED_BITS 0xcu /* __TASK_STOPPED, __TASK_TRACED */

int waits__new(const struct waits_opts *opts, struct waits **out)
{
	struct waits *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return error_set(-ENOMEM, NULL, "no memory for waits");
	w->opts = *opts;
	err = recorder__source(opts->recorder, "waits", &w->source);
	if (err) {
		free(w);
		return err;
	}
	attacher__wait_source(opts->attacher, w->source);
	*out = w;
	return 0;
}

void waits__free(struct waits *w)
{
	if (!w)
		return;
	free(w->stills);
	free(w->kept.data);
	free(w->pieces.data);
	free(w->unknown.data);
	map64__free(&w->unknown_at);
	wait_border_free(&w->latest);
	wait_border_free(&w->before);
	free(w);
}

uint32_t waits__source(const struct waits *w)
{
	return w->source;
}

/* ---- the window ---- */

static void sleep_until(uint64_t ns)
{
	struct timespec at = {.tv_sec = (time_t)(ns / NSEC_PER_SEC),
			      .tv_nsec = (long)(ns % NSEC_PER_SEC)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

/* The kernel's programs are told of a time to come, so that all begin and end together. */
uint64_t waits__open(struct waits *w)
{
	w->from_ns = clock_mono_ns() + SOON_NS;
	attacher__wait_window(w->opts.attacher, w->from_ns, UINT64_MAX);
	sleep_until(w->from_ns);
	return w->from_ns;
}

/* The number of the system call in /proc/PID/task/TID/syscall, + 1, and its first argument. */
static void read_call(struct still *s)
{
	char *text, *end;
	int64_t call;

	if (proc_thread_read((pid_t)(s->number >> 32), (pid_t)(uint32_t)s->number, "syscall",
			     &text))
		return;
	call = strtoll(text, &end, 10); /* "running" has no number, and -1 is none */
	if (end != text && call >= 0 && call < UINT32_MAX) {
		s->call = (uint32_t)call + 1;
		s->fd = strtoull(end, NULL, 16);
	}
	free(text);
}

static int add_still(struct waits *w, const struct still *s)
{
	if (vec_grow((void **)&w->stills, &w->cap_stills, w->nr_stills, sizeof(*s)))
		return error_set(-ENOMEM, NULL, "no memory for the threads' states");
	w->stills[w->nr_stills++] = *s;
	return 0;
}

/* Whether the thread sleeps, though the kernel's programs take it to be on a CPU. */
static bool contradicts(const struct waits *w, const struct still *s, const struct kprof_wait *k)
{
	struct kprof_wait again;

	return k->state == KPROF_WAIT_RUNS && (s->state == 'S' || s->state == 'D') &&
	       !attacher__wait_of(w->opts.attacher, (uint32_t)s->number, &again) &&
	       again.state == KPROF_WAIT_RUNS && again.since_ns == k->since_ns;
}

bool waits_left_unseen(const struct waits *w, const struct kprof_wait *k, struct still *out)
{
	uint32_t tid = (uint32_t)k->number;

	*out = (struct still){.number = k->number, .left_unseen = true};
	out->state = proc_thread_state((pid_t)(k->number >> 32), (pid_t)tid);
	if (!contradicts(w, out, k))
		return false;
	read_call(out);
	return true;
}

/*
 * If the thread has had no event yet, its state is noted. If there still is no event at the end,
 * that is its state since the beginning.
 */
int waits_look_still(struct waits *w, const struct thread *th, struct still *out)
{
	struct still s = {.number = th->pid_tgid, .start_ns = th->start_ns};
	uint32_t tid = (uint32_t)th->pid_tgid;
	struct kprof_wait known;
	bool has_events;
	int err;

	if (th->target->ended)
		return 0;
	err = attacher__wait_of(w->opts.attacher, tid, &known);
	has_events = err != -ENOENT;
	if (has_events && (err || known.state != KPROF_WAIT_RUNS))
		return 0;
	s.state = proc_thread_state((pid_t)th->target->pid, (pid_t)tid);
	if (s.state == 'X' || s.state == 'Z')
		return 0;
	s.left_unseen = has_events && contradicts(w, &s, &known);
	if (has_events && !s.left_unseen)
		return 0;
	read_call(&s);
	*out = s;
	return 1;
}

static int note_still(struct waits *w, const struct thread *th)
{
	struct still s;

	if (!waits_look_still(w, th, &s))
		return 0;
	w->unseen += s.left_unseen;
	return add_still(w, &s);
}

uint64_t waits__close(struct waits *w)
{
	struct thread *th, *next;

	if (w->given_up)
		return clock_mono_ns();
	THREADS_EACH (w->opts.threads, th, next) {
		if (note_still(w, th))
			break;
	}
	w->until_ns = clock_mono_ns() + SOON_NS;
	attacher__wait_window(w->opts.attacher, w->from_ns, w->until_ns);
	sleep_until(w->until_ns);
	return w->until_ns;
}

void waits__give_up(struct waits *w)
{
	waits__close(w);
	w->given_up = w->attached = true;
}

int waits__tend(struct waits *w, uint64_t read_ns, uint64_t now_ns, bool rests)
{
	if (!w->given_up)
		return 0;
	if (w->attached && (!rests || now_ns >= w->until_ns + DETACH_NS)) {
		attacher__stop_waits(w->opts.attacher);
		w->attached = false;
	}
	return read_ns >= w->until_ns ? waits_finish_all(w) : 0;
}

int waits__resume(struct waits *w, uint64_t *from_ns)
{
	int err;

	if (!w->finished)
		return -EAGAIN;
	err = attacher__start_waits(w->opts.attacher);
	if (err)
		return error_set(err, NULL, "waits cannot be recorded again: %s", strerror(-err));
	wait_border_free(&w->latest);
	wait_border_free(&w->before);
	w->nr_stills = 0;
	w->given_up = w->attached = w->finished = w->absent = false;
	*from_ns = waits__open(w);
	return 0;
}

/* ---- records ---- */

static uint32_t state_of(uint32_t task_state)
{
	if (!task_state)
		return STORE_WAIT_PREEMPTED;
	if (task_state & TASK_STOPPED_BITS)
		return STORE_WAIT_STOPPED;
	return task_state & TASK_INTERRUPTIBLE ? STORE_WAIT_SLEEPING : STORE_WAIT_BLOCKED;
}

static uint32_t flags_of(const struct kprof_wait *k, const struct thread_stack *stack)
{
	uint32_t flags = state_of(k->task_state);

	if (k->flags & KPROF_WAIT_IO)
		flags |= STORE_WAIT_IO;
	if (k->flags & KPROF_WAIT_IN_START)
		flags |= STORE_WAIT_FROM_START;
	if (k->flags & KPROF_WAIT_INTERRUPT)
		flags |= STORE_WAIT_INTERRUPT;
	if (!stack)
		return flags;
	if (stack->flags & KPROF_SAMPLE_GIL_WAIT)
		flags |= STORE_WAIT_GIL;
	return flags | (stack->flags & (KPROF_SAMPLE_END | KPROF_SAMPLE_CUT));
}

/* The string id of what the call's file is; 0: it has none, or it is not known. */
static uint32_t object_of(struct waits *w, uint32_t pid, uint32_t call, uint64_t fd)
{
	const char *kind;

	if (!call || !syscall_first_is_file(call - 1))
		return 0;
	kind = wait_object(w->objects, pid, (uint32_t)fd, clock_mono_ns());
	return *kind ? recorder__string(w->opts.recorder, kind) : 0;
}

/* Cuts a wait to the recording's window. False: it has no part in it. */
static bool cut(const struct waits *w, struct store_record *r)
{
	const struct record_window *window = recorder__window(w->opts.recorder);
	uint64_t from_ns = window->start_ns, to_ns = window->end_ns ? window->end_ns : UINT64_MAX;

	if (!w->opts.part)
		return true;
	if (!window->open || r->wait.end_ns <= from_ns || r->wait.start_ns >= to_ns)
		return false;
	if (r->wait.start_ns < from_ns) {
		r->wait.start_ns = from_ns;
		r->wait.flags |= STORE_WAIT_FROM_START;
	}
	if (r->wait.end_ns > to_ns) {
		r->wait.end_ns = to_ns;
		r->wait.flags |= STORE_WAIT_TO_END;
		r->wait.got_cpu = 0;
	}
	if (r->wait.wake_ns < r->wait.start_ns)
		r->wait.wake_ns = r->wait.start_ns;
	if (r->wait.wake_ns > r->wait.end_ns)
		r->wait.wake_ns = r->wait.end_ns;
	return true;
}

static int put_wait(struct waits *w, const struct kprof_wait *k, struct store_record *r)
{
	if (!cut(w, r))
		return 0;
	w->recorded++;
	w->without_stack += !r->wait.stack;
	if (waits_keep(w, k, r->wait.end_ns, r))
		return 0;
	if (r->wait.flags & STORE_WAIT_TO_END && !w->finished && !w->opts.part)
		return waits_hold_piece(w, r);
	return recorder__put(w->opts.recorder, r);
}

int waits_record(struct waits *w, struct thread *th, const struct kprof_wait *k, uint64_t end_ns,
		 uint32_t flags)
{
	bool has_stack = k->stack_ns && th->wait_stack.time_ns == k->stack_ns;
	bool has_waker_stack = k->waker_stack_ns && th->waker_stack.time_ns == k->waker_stack_ns;
	struct wait_told before = waits_told(w, k, end_ns);
	struct store_record r = {
		.type = STORE_WAIT,
		.wait = {.wake_ns = k->wake_ns,
			 .end_ns = end_ns,
			 .thread = th->index,
			 .flags = flags | flags_of(k, has_stack ? &th->wait_stack : NULL),
			 .left_cpu = k->left_cpu,
			 .got_cpu = flags & STORE_WAIT_TO_END ? 0 : k->got_cpu,
			 .waker_cpu = k->waker_cpu,
			 .waker_pid = (uint32_t)(k->waker >> 32),
			 .waker_tid = (uint32_t)k->waker},
	};

	r.wait.start_ns = wait_from(k, &before, w->opts.min_wait_ns);
	if (r.wait.start_ns > k->off_ns) { /* it was split: the file before has the rest */
		r.wait.flags |= STORE_WAIT_FROM_START;
		if (r.wait.wake_ns < r.wait.start_ns)
			r.wait.wake_ns = r.wait.start_ns;
	}
	if (k->call < UINT32_MAX)
		r.wait.call = (uint32_t)k->call + 1;
	r.wait.object = object_of(w, th->target->pid, r.wait.call, k->args[0]);
	if (has_stack)
		r.wait.stack = th->wait_stack.stack;
	if (has_waker_stack)
		r.wait.waker_stack = th->waker_stack.stack;
	if (k->waker)
		r.wait.waker_comm =
			store_writer__string(recorder__store(w->opts.recorder), k->waker_comm,
					     strnlen(k->waker_comm, sizeof(k->waker_comm)));
	return put_wait(w, k, &r);
}

int waits_record_time(struct waits *w, const struct thread *th, const struct kprof_wait *all)
{
	struct wait_told before = waits_told(w, all, all->since_ns);
	struct kprof_wait part = *all, *k = &part;
	struct store_record r = {.type = STORE_THREAD_TIME};

	wait_part(k, &before);
	r.thread_time.thread = th->index;
	r.thread_time.start_ns = k->start_ns;
	r.thread_time.end_ns = k->since_ns;
	r.thread_time.on_ns = k->on_ns;
	r.thread_time.runnable_ns = k->runnable_ns;
	r.thread_time.blocked_ns = k->blocked_ns;
	r.thread_time.switches = k->switches;
	r.thread_time.told = k->told;

	if (w->opts.part || waits_keep(w, all, k->since_ns, &r))
		return 0;
	return recorder__put(w->opts.recorder, &r);
}

/* ---- the end ---- */

/* The thread's state, if its last switch was not seen; NULL: it was. */
static const struct still *left_unseen(const struct waits *w, uint64_t number)
{
	for (size_t i = 0; i < w->nr_stills; i++)
		if (w->stills[i].left_unseen && w->stills[i].number == number)
			return &w->stills[i];
	return NULL;
}

void waits_leave_unseen(struct kprof_wait *k, const struct still *s, uint64_t until_ns)
{
	uint64_t ran_ns, most_ns = until_ns - k->since_ns;
	char *text;

	if (until_ns <= k->since_ns ||
	    proc_thread_read((pid_t)(k->number >> 32), (pid_t)(uint32_t)k->number, "schedstat",
			     &text))
		return;
	ran_ns = strtoull(text, NULL, 10) - k->ran_ns;
	free(text);
	if (ran_ns > most_ns)
		return;
	k->on_ns += ran_ns;
	k->since_ns = k->off_ns = k->since_ns + ran_ns;
	k->state = KPROF_WAIT_BLOCKED;
	k->task_state = TASK_INTERRUPTIBLE;
	k->call = s->call ? s->call - 1 : KPROF_WAIT_NO_CALL;
	k->args[0] = s->fd;
	k->flags = 0;
	k->stack_ns = k->wake_ns = k->waker = 0;
	k->left_cpu = k->waker_cpu = 0;
	k->switches++;
}

/* The thread that the kernel's programs know under this number, at the end of the recording. */
static int finish_thread(void *ctx, struct kprof_wait *k, uint64_t at_ns)
{
	struct waits *w = ctx;
	struct target *t = targets__find(w->opts.targets, (uint32_t)(k->number >> 32));
	uint64_t until_ns = w->until_ns;
	const struct still *s;
	struct thread *th;
	int err = 0;

	(void)at_ns;
	if (!t || t->left_out ||
	    !w->opts.wants(
		    w->opts.ctx,
		    k->number)) /* it has ended, and its record was lost; or it is not recorded */
		return 0;
	th = w->opts.thread(w->opts.ctx, t, k->number, k->start_ns);
	if (!th)
		return -ENOMEM;
	s = k->state == KPROF_WAIT_RUNS ? left_unseen(w, k->number) : NULL;
	if (s)
		waits_leave_unseen(k, s, until_ns);
	if (k->state == KPROF_WAIT_RUNS) {
		k->on_ns += until_ns - k->since_ns;
	} else {
		if (k->state == KPROF_WAIT_RUNNABLE)
			k->wake_ns = k->off_ns;
		else if (!k->wake_ns)
			k->wake_ns = until_ns;
		else if (k->wake_ns < k->off_ns)
			k->wake_ns = k->off_ns;
		k->blocked_ns += k->wake_ns - k->off_ns;
		k->runnable_ns += until_ns - k->wake_ns;
	}
	if (k->state != KPROF_WAIT_RUNS && until_ns - k->off_ns >= w->opts.min_wait_ns) {
		k->told++;
		err = waits_record(w, th, k, until_ns, STORE_WAIT_TO_END);
	}
	k->since_ns = until_ns;
	return err ? err : waits_record_time(w, th, k);
}

int waits_finish_still(struct waits *w, const struct still *s, struct thread *th, uint64_t until_ns)
{
	uint64_t first_ns = s->start_ns > w->from_ns ? s->start_ns : w->from_ns;
	struct kprof_wait k = {.number = s->number, .start_ns = first_ns, .since_ns = until_ns};
	struct wait_told before;
	struct store_record r = {
		.type = STORE_WAIT,
		.wait = {.wake_ns = until_ns,
			 .end_ns = until_ns,
			 .thread = th->index,
			 .call = s->call,
			 .flags = STORE_WAIT_FROM_START | STORE_WAIT_TO_END},
	};
	int err = 0;

	if (until_ns <= first_ns)
		return 0;
	if (s->state == 'R')
		k.on_ns = until_ns - first_ns;
	else
		k.blocked_ns = until_ns - first_ns;
	before = waits_told(w, &k, until_ns);
	k.told = before.told;
	if (s->state != 'R') {
		k.told++;
		r.wait.start_ns = before.end_ns ? before.end_ns : first_ns;
		r.wait.object = object_of(w, th->target->pid, s->call, s->fd);
		r.wait.flags |= s->state == 'S'   ? STORE_WAIT_SLEEPING
				: s->state == 'D' ? STORE_WAIT_BLOCKED
						  : STORE_WAIT_STOPPED;
		err = put_wait(w, &k, &r);
	}
	return err ? err : waits_record_time(w, th, &k);
}

/* Records a thread that has been doing the same all the time. */
static int finish_still(struct waits *w, const struct still *s)
{
	struct thread *th = threads__find(w->opts.threads, s->number);
	struct kprof_wait k;

	if (!th || s->left_unseen ||
	    attacher__wait_of(w->opts.attacher, (uint32_t)s->number, &k) != -ENOENT)
		return 0;
	return waits_finish_still(w, s, th, w->until_ns);
}

/* For how long the machine has been suspended, which CLOCK_MONOTONIC leaves out. */
static double suspended_ns(void)
{
	struct timespec boot;

	clock_gettime(CLOCK_BOOTTIME, &boot);
	return (double)boot.tv_sec * NSEC_PER_SEC + (double)boot.tv_nsec - (double)clock_mono_ns();
}

int waits_summary(const struct waits *w)
{
	cJSON *o = cJSON_CreateObject();

	cJSON_AddNumberToObject(o, "min_wait_ns", (double)w->opts.min_wait_ns);
	cJSON_AddNumberToObject(o, "suspended_ns", suspended_ns());
	if (w->given_up)
		cJSON_AddNumberToObject(o, "until_ns", (double)w->until_ns);
	cJSON_AddNumberToObject(o, "recorded", (double)w->recorded);
	cJSON_AddNumberToObject(o, "without_stack", (double)w->without_stack);
	cJSON_AddNumberToObject(o, "threads_not_watched",
				(double)attacher__waits_refused(w->opts.attacher));
	cJSON_AddNumberToObject(o, "switches_not_seen",
				(double)(attacher__waits_unseen(w->opts.attacher) + w->unseen));
	return recorder__meta_value(w->opts.recorder, "waits", o);
}

static void say_uncertain(const struct waits *w)
{
	uint64_t unseen = attacher__waits_unseen(w->opts.attacher) + w->unseen;
	uint64_t refused = attacher__waits_refused(w->opts.attacher);

	if (refused)
		log_warn("record fewer processes at once",
			 "more threads at a time than kprof watches waits of: %" PRIu64
			 " times a thread was left out",
			 refused);
	if (unseen)
		log_warn(NULL,
			 "the kernel did not report %" PRIu64
			 " switches of threads: the times that these ran and waited are estimates",
			 unseen);
}

int waits_finish_all(struct waits *w)
{
	int err;

	if (w->finished)
		return 0;
	w->finished = true;
	err = attacher__wait_each(w->opts.attacher, finish_thread, w);
	for (size_t i = 0; i < w->nr_stills && !err; i++)
		err = finish_still(w, &w->stills[i]);
	return err;
}

int waits__finish(struct waits *w)
{
	int err;

	if (!w)
		return 0;
	err = waits_finish_all(w);
	if (err)
		return err;
	say_uncertain(w);
	return w->absent ? 0 : waits_summary(w);
}
