// SPDX-License-Identifier: BSD-2-Clause
/* The loop behind the screen: looks, records, draws, and takes keys, one after the other. */
#include "cmd/top/live.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/print/message.h"
#include "cmd/print/text.h"

#define FIRST_LOOK_NS 500000000u /* the first numbers are since each process's start */
#define LOOK_NS 1000000000u      /* between two looks at one process */
#define POLL_MS 50               /* while something is recorded: a key is seen after so long */
#define IDLE_MS 500
/* A look that takes long is taken more rarely: at most this share of a CPU goes into looks. */
#define LOOK_SHARE 150
#define LOOK_ONE_SHARE 20 /* the same for the one process */

static const char help[] =
	"All processes, by the time between two looks\n"
	"  CPU%      of one CPU: 200 are two CPUs\n"
	"  RUNQ%     of the time that its first thread waited for a CPU\n"
	"  WAIT%     of the time that its first thread waited for anything else\n"
	"  GPU%      of the time that a GPU was busy for it (NVIDIA's library)\n"
	"  STEPS/s   of a training, by its annotations\n"
	"\n"
	"  up down j k, page up, page down, home, end\n"
	"  Enter     threads, functions, lines, operators, device calls and stacks of the chosen one\n"
	"  /         only processes with a text in command or framework, a user, a PID\n"
	"  P M W G S T N    sorts by CPU, memory, wait, GPU, steps, threads, number; < > go through\n"
	"  s         counts steps, or no more: places a few probes in processes with a framework\n"
	"  d         what each thread does now (kprof dump); nothing is stopped\n"
	"  r         records a trace of five seconds to the current directory (kprof attach)\n"
	"  space     pauses, and goes on\n"
	"  q         ends\n"
	"\n"
	"One process, of its last ten seconds, by 99 samples a second\n"
	"  t u l     its threads, with the line that each executed last; functions; lines\n"
	"  o c       its operators; its calls of CUDA, HIP, OpenCL and others: this places probes in\n"
	"            it, until you leave it\n"
	"  f F       its stacks as a flame graph, here or in a file\n"
	"  Esc       back to all processes, and nothing of it is recorded any more\n";

/*
 * A signal ends the loop, which restores the terminal. Unlike a recording's, no number of them ends
 * the program at once.
 */
static volatile sig_atomic_t stopped;

static void on_signal(int signal)
{
	stopped = 1;
}

static void catch_signals(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct sigaction action = {.sa_handler = on_signal}, old;

	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (!sigaction(signals[i], NULL, &old) && old.sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
}

static void say(struct live *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(struct live *l, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(l->status, sizeof(l->status), fmt, ap);
	va_end(ap);
}

static void say_error(struct live *l)
{
	const char *cause = kprof_error_cause(), *hint = kprof_error_hint();

	say(l, "%s%s%s", cause[0] ? cause : "it failed", hint ? "; " : "", hint ? hint : "");
}

/* The library's messages would spoil the screen: warnings go to its last line. */
static void on_log(void *ctx, enum kprof_log_level level, const char *text, const char *hint)
{
	if (level == KPROF_LOG_WARN)
		say(ctx, "%s%s%s", text, hint ? "; " : "", hint ? hint : "");
}

/* ---- drawing ---- */

static void draw(struct live *l)
{
	screen_clear();
	if (screen_rows() < SCREEN_LEAST_ROWS || screen_columns() < SCREEN_LEAST_COLUMNS)
		screen_put(0, 0, screen_columns(), SCREEN_PLAIN, "too small: make it larger");
	else if (l->view == VIEW_LIST)
		list_draw(l);
	else if (l->view == VIEW_PROCESS)
		process_draw(l);
	else
		text_draw(l);
	screen_show();
}

/* ---- what keys ask for ---- */

static void leave(struct live *l)
{
	look_free(l->look);
	l->look = NULL;
	l->view = VIEW_LIST;
}

/* Begins to look at a process, also anew with its operators. */
static void look_at(struct live *l, const struct kprof_top_process *p, bool operators)
{
	struct look *look;

	if (!p)
		return;
	say(l, operators ? "placing probes…" : "the first samples are on their way…");
	draw(l);
	l->status[0] = '\0';
	if (look_new(p, operators, &look)) {
		say_error(l);
		return;
	}
	look_free(l->look);
	l->look = look;
	l->view = VIEW_PROCESS;
	if (!operators)
		l->page = PAGE_THREADS;
	l->line = 0;
	l->paused = false;
	if (look_update(look, l->top))
		say_error(l);
}

/* The process that keys act on; in *copy, if it is the one that is looked at. */
static const struct kprof_top_process *subject(const struct live *l, struct kprof_top_process *copy)
{
	if (l->view == VIEW_LIST || !l->look)
		return list_chosen(l);
	*copy = (struct kprof_top_process){.pid = l->look->pid,
					   .start_ticks = l->look->start_ticks,
					   .cmdline = l->look->command};
	return copy;
}

/* Another kprof gets no more than a PID, which may be another process's by now. */
static bool is_there(struct live *l, const struct kprof_top_process *p)
{
	if (!p)
		return false;
	if (kprof_top_alive(p->pid, p->start_ticks))
		return true;
	say(l, "process %d has ended", (int)p->pid);
	return false;
}

static void cover(struct live *l, const char *title, const char *text)
{
	l->behind = l->view;
	l->view = VIEW_TEXT;
	l->text_title = title;
	l->text = text;
	l->text_line = 0;
}

static void begin_dump(struct live *l)
{
	struct kprof_top_process copy;
	const struct kprof_top_process *p = subject(l, &copy);
	const char *argv[] = {"dump", "-p", NULL, NULL};
	char pid[16];
	int err;

	if (!is_there(l, p))
		return;
	snprintf(pid, sizeof(pid), "%d", (int)p->pid);
	argv[2] = pid;
	err = child_start(&l->dump, argv);
	if (err)
		say(l, "cannot run kprof dump: %s", strerror(-err));
	else
		cover(l, "what each thread does now", NULL);
}

static void begin_record(struct live *l)
{
	struct kprof_top_process copy;
	const struct kprof_top_process *p = subject(l, &copy);
	const char *argv[] = {"attach", "-q", "--stacks", "-d", "5s", "-p", NULL, "-o", NULL, NULL};
	char pid[16];
	int err;

	if (l->record.pid || !is_there(l, p))
		return;
	snprintf(pid, sizeof(pid), "%d", (int)p->pid);
	snprintf(l->trace, sizeof(l->trace), "kprof-top_%d.%" PRIu64 ".pt.trace.json.gz",
		 (int)p->pid, now_ns(CLOCK_REALTIME));
	argv[6] = pid;
	argv[8] = l->trace;
	err = child_start(&l->record, argv);
	if (err) {
		l->trace[0] = '\0';
		say(l, "cannot run kprof attach: %s", strerror(-err));
	}
}

static void draw_file(struct live *l)
{
	char path[96];
	int err;

	snprintf(path, sizeof(path), "kprof-top_%d.%" PRIu64 ".svg", (int)l->look->pid,
		 now_ns(CLOCK_REALTIME));
	err = look_draw(l->look, path);
	if (err == -ENODATA)
		say(l, "nothing was sampled in the last ten seconds");
	else if (err)
		say_error(l);
	else
		say(l, "the flame graph is in %s", path);
}

static void toggle_steps(struct live *l)
{
	if (l->steps) {
		top_steps_free(l->steps);
		l->steps = NULL;
		if (l->sort == TOP_SORT_STEPS)
			l->sort = TOP_SORT_CPU;
		return;
	}
	say(l, "placing probes…");
	draw(l);
	l->status[0] = '\0';
	if (top_steps_new(l->top, &l->steps))
		say_error(l);
	else if (!top_steps_nr(l->steps))
		say(l,
		    "no process has a known framework yet: steps of those that will are counted");
}

/* False: the end. */
static bool fulfil(struct live *l, enum wish wish)
{
	struct kprof_top_process copy;

	switch (wish) {
	case WISH_QUIT:
		return false;
	case WISH_LOOK:
		look_at(l, list_chosen(l), false);
		break;
	case WISH_OPERATORS:
		look_at(l, subject(l, &copy), true);
		break;
	case WISH_LEAVE:
		leave(l);
		break;
	case WISH_STEPS:
		toggle_steps(l);
		break;
	case WISH_DUMP:
		begin_dump(l);
		break;
	case WISH_RECORD:
		begin_record(l);
		break;
	case WISH_DRAW:
		draw_file(l);
		break;
	case WISH_HELP:
		cover(l, "kprof top", help);
		break;
	case WISH_NOTHING:
		break;
	}
	return true;
}

/* False: the end. */
static bool take_key(struct live *l, int key)
{
	enum wish wish;

	l->status[0] = '\0';
	if (key == ' ' && !l->typing) {
		l->paused = !l->paused;
		return true;
	}
	if (l->view == VIEW_LIST)
		wish = list_key(l, key);
	else if (l->view == VIEW_PROCESS)
		wish = process_key(l, key);
	else
		wish = text_key(l, key);
	return fulfil(l, wish);
}

/* ---- what goes on ---- */

/* The first line of what a program has printed, without its name. */
static void first_line(const char *text, char *to, size_t bytes)
{
	if (!strncmp(text, "kprof: ", 7))
		text += 7;
	snprintf(to, bytes, "%.*s", (int)strcspn(text, "\n"), text);
}

/* Whether something has ended. */
static bool poll_children(struct live *l)
{
	char line[160] = "";
	bool ended = false;

	if (child_poll(&l->dump) == 1) {
		if (!l->text) { /* the view waits for it, or did; else it shows another text */
			l->text = l->dump.text ? l->dump.text : "";
			l->text_title = l->dump.cut ? "what threads do now; the end is left out"
						    : l->text_title;
		}
		ended = true;
	}
	if (child_poll(&l->record) == 1) {
		first_line(l->record.text ? l->record.text : "", line, sizeof(line));
		if (l->record.code)
			say(l, "the recording failed: %s", line);
		else
			say(l, "the trace is in %s", l->trace);
		l->trace[0] = '\0';
		ended = true;
	}
	return ended;
}

/* Whether something is recorded. */
static bool poll_steps(struct live *l, int timeout_ms)
{
	int n = top_steps_poll(l->steps, timeout_ms);

	if (n < 0) {
		say_error(l);
		top_steps_free(l->steps);
		l->steps = NULL;
	}
	return !n;
}

/* Lets the recordings go on. Returns how long the next key may be waited for. */
static int poll_recordings(struct live *l)
{
	bool active = false;

	if (l->look) {
		active = !l->look->ended;
		if (look_poll(l->look, active ? POLL_MS : 0)) {
			say_error(l);
			leave(l);
		}
	}
	if (l->steps && poll_steps(l, active ? 0 : POLL_MS))
		active = true;
	if (active)
		return 0;
	return l->dump.pid || l->record.pid ? POLL_MS : IDLE_MS;
}

static bool make_rows(struct live *l)
{
	return top_rows_make(&l->rows, l->top, l->steps, l->sort, l->filter);
}

/* Looks at all processes; sets *next to when that is due again. */
static int look_around(struct live *l, uint64_t *next)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC), wait = l->opts->interval_ns, least;
	bool fine;

	if (kprof_top_look(l->top))
		return -EIO;
	if (l->steps && top_steps_look(l->steps, l->top))
		say_error(l);
	fine = make_rows(l);
	least = (now_ns(CLOCK_MONOTONIC) - now) * LOOK_SHARE;
	if (!kprof_top_info(l->top)->interval_ns)
		wait = FIRST_LOOK_NS < wait ? FIRST_LOOK_NS : wait;
	else if (wait < least)
		wait = least;
	*next = now + wait;
	return fine ? 0 : -ENOMEM;
}

/* At the process that is shown; else at all. */
static bool looks_at_one(const struct live *l)
{
	return l->look && l->view == VIEW_PROCESS;
}

/* Looks where that is due. 1: there is something new to draw; 0; -errno. */
static int look(struct live *l, uint64_t *next_all, uint64_t *next_one)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC), took;
	int err;

	if (l->paused)
		return 0;
	if (looks_at_one(l)) {
		if (now < *next_one)
			return 0;
		if (look_update(l->look, l->top))
			say_error(l);
		took = now_ns(CLOCK_MONOTONIC) - now;
		*next_one =
			now + (took * LOOK_ONE_SHARE > LOOK_NS ? took * LOOK_ONE_SHARE : LOOK_NS);
		return 1;
	}
	if (now < *next_all)
		return 0;
	err = look_around(l, next_all);
	return err ? err : 1;
}

static int until_ms(uint64_t next, int most)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC), left = next > now ? (next - now) / 1000000 + 1 : 0;

	return left < (uint64_t)most ? (int)left : most;
}

/* Takes all keys that are there. False: the end. */
static bool take_keys(struct live *l, int wait_ms, bool *drawn)
{
	int key = screen_key(wait_ms);

	for (; key != SCREEN_NONE; key = screen_key(0)) {
		*drawn = false;
		if (key == SCREEN_GONE || (key != SCREEN_RESIZED && !take_key(l, key)))
			return false;
		if (stopped)
			return false;
	}
	return true;
}

static int run(struct live *l)
{
	uint64_t next_all = 0, next_one = 0;
	bool drawn = false, on = true;
	int err = look_around(l, &next_all);

	if (err)
		return err;
	if (l->opts->steps)
		toggle_steps(l);
	while (on && !stopped) {
		int news = look(l, &next_all, &next_one), wait_ms;

		if (news < 0)
			return news;
		if (poll_children(l) || news || !drawn) {
			if (!make_rows(l)) /* after a key: another order, another filter */
				return -ENOMEM;
			draw(l);
			drawn = true;
		}
		wait_ms = poll_recordings(l);
		if (!l->paused)
			wait_ms = until_ms(looks_at_one(l) ? next_one : next_all, wait_ms);
		on = take_keys(l, wait_ms, &drawn);
	}
	return 0;
}

int top_live(const struct top_opts *opts, struct kprof_top *top)
{
	const struct message_opts message = {0};
	struct live l = {.opts = opts, .top = top, .sort = opts->sort};
	int err;

	if (!screen_begin())
		return -1;
	catch_signals();
	kprof_set_log(on_log, &l);
	snprintf(l.filter, sizeof(l.filter), "%s", opts->filter ? opts->filter : "");
	err = run(&l);
	screen_end();
	message_listen(&message);
	child_free(&l.dump);
	if (l.record.pid)
		message_warn("Ctrl-C twice ends that at once", "the trace is being written to %s",
			     l.trace);
	child_free(&l.record);
	look_free(l.look);
	top_steps_free(l.steps);
	top_rows_free(&l.rows);
	return !err ? EXIT_DONE : err == -ENOMEM ? message_no_memory() : message_error();
}
