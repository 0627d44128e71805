// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/record/empty.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmd/print/message.h"
#include "cmd/print/text.h"

#define DUMP_WAIT_NS 200000000u /* for threads that keep running */
#define SHORT_NS 1000000000u    /* a recording in which an operator may just not have fallen */

/* Threads that come and go are no events, and neither are the returns of what was not recorded. */
static bool is_aside(const struct kprof_source *s)
{
	return !strcmp(s->name, "tasks") || !strcmp(s->name, "return_sites");
}

/* Whether the options leave out what may have happened. */
static bool chosen(const struct record_opts *opts)
{
	return opts->session.nr_ops || opts->session.nr_exclude || opts->activities ||
	       opts->types || opts->session.only || opts->session.within;
}

bool empty_is(const struct kprof_capture *c)
{
	const struct kprof_capture_info *info = kprof_capture_info(c);

	/* Marks have no length and are not among the events, so their source's count is used. */
	for (size_t i = 0; i < info->nr_sources; i++) {
		const struct kprof_source *s = kprof_capture_source(c, i);

		if (s->captured && !is_aside(s) && strcmp(s->name, "operators"))
			return false;
	}
	return !info->events && !info->nr_samples;
}

/* ---- looking at a process ---- */

static int on_process(void *ctx, const struct kprof_process_info *info)
{
	struct empty_process *look = ctx;

	if (info->pid != look->pid)
		return 0;
	look->found = true;
	look->known = *info->frameworks || *info->runtimes;
	return 1;
}

static bool imports(const struct kprof_dump_thread *t)
{
	static const char importlib[] = "<frozen importlib";

	for (size_t i = 0; i < t->nr_frames; i++)
		if (t->frames[i].kind == KPROF_FRAME_PYTHON &&
		    !strncmp(t->frames[i].file, importlib, strlen(importlib)))
			return true;
	return false;
}

/* The innermost line of the program's own, else the function. */
static void describe(const struct kprof_dump_thread *t, char where[EMPTY_WHERE_BYTES])
{
	const struct kprof_frame *f = t->nr_frames ? &t->frames[0] : NULL;

	for (size_t i = 0; i < t->nr_frames; i++) {
		if (t->frames[i].kind != KPROF_FRAME_PYTHON || t->frames[i].file[0] == '<')
			continue;
		f = &t->frames[i];
		break;
	}
	if (!f)
		snprintf(where, EMPTY_WHERE_BYTES, "%s",
			 *t->doing ? t->doing : "at an unknown place");
	else if (f->kind == KPROF_FRAME_PYTHON)
		snprintf(where, EMPTY_WHERE_BYTES, "at %s:%u, in %s", text_base(f->file), f->line,
			 f->function);
	else
		snprintf(where, EMPTY_WHERE_BYTES, "in %s", f->function);
}

static int on_thread(void *ctx, const struct kprof_dump_process *p,
		     const struct kprof_dump_thread *t)
{
	struct empty_process *look = ctx;

	look->threads++;
	look->stopped += t->state == KPROF_THREAD_STOPPED;
	look->asleep += t->state == KPROF_THREAD_SLEEPING || t->state == KPROF_THREAD_BLOCKED ||
			t->state == KPROF_THREAD_EXITED;
	if (!look->importing && imports(t)) {
		look->importing = true;
		describe(t, look->where);
	} else if (!look->importing && t->tid == look->pid) {
		describe(t, look->where);
	}
	return 0;
}

/* ---- saying it ---- */

static void say_chosen(void)
{
	message_warn("without these options the recording shows what there is",
		     "nothing was recorded: nothing of what --ops, --exclude, --activities, "
		     "--types, --only and --within choose was called");
}

static void say_process(const struct empty_process *l, const struct record_opts *opts,
			uint64_t window_ns)
{
	char time[TEXT_NUMBER_BYTES], hint[256], lead[64] = "";

	text_time(time, window_ns);
	if (window_ns < SHORT_NS)
		snprintf(lead, sizeof(lead), "%s is short, -d 10s sees more; ", time);
	if (!l->found) {
		message_warn("kprof run records a program from its start",
			     "nothing was recorded: process %d has ended", (int)l->pid);
	} else if (l->importing) {
		message_warn("attach when it has started, or record it from its start (kprof run)",
			     "nothing was recorded: process %d is still importing modules, %s",
			     (int)l->pid, l->where);
	} else if (!l->known && !opts->session.only) {
		snprintf(
			hint, sizeof(hint),
			"kprof list shows those that do; kprof sample -p %d works with any program",
			(int)l->pid);
		message_warn(hint,
			     "nothing was recorded: process %d has loaded no framework and no "
			     "device's runtime that kprof knows",
			     (int)l->pid);
	} else if (l->threads && l->stopped == l->threads) {
		message_warn("kill -CONT lets it go on, unless a debugger holds it",
			     "nothing was recorded: process %d is stopped", (int)l->pid);
	} else if (opts->session.within) { /* it may have called what is outside */
		say_chosen();
	} else if (l->threads && l->asleep == l->threads) {
		snprintf(hint, sizeof(hint),
			 "%skprof dump -p %d shows what each of its threads waits for", lead,
			 (int)l->pid);
		message_warn(hint,
			     "nothing was recorded: process %d waits and has called no operator; "
			     "its first thread is %s",
			     (int)l->pid, l->where);
	} else if (chosen(opts)) {
		say_chosen();
	} else {
		snprintf(hint, sizeof(hint),
			 "%skprof sample -p %d shows where it spends its time, kprof check -v -p "
			 "%d what could be seen",
			 lead, (int)l->pid, (int)l->pid);
		message_warn(
			hint, "nothing was recorded: process %d has called no operator in %s%s%s",
			(int)l->pid, time, *l->where ? "; its first thread is " : "", l->where);
	}
}

void empty_look(const struct record_opts *opts, bool threads, struct empty_look *out)
{
	const struct kprof_dump_opts dump = {
		.sz = sizeof(dump), .no_lines = true, .wait_ns = DUMP_WAIT_NS};

	*out = (struct empty_look){0};
	while (out->nr < opts->pids.nr && out->nr < EMPTY_PROCESSES) {
		struct empty_process *p = &out->processes[out->nr];

		p->pid = opts->pids.items[out->nr++];
		kprof_list_processes(true, on_process, p);
		if (p->found && threads)
			kprof_dump(p->pid, &dump, on_thread, p);
	}
}

void empty_say(const struct record_opts *opts, const struct kprof_capture *c,
	       const struct empty_look *looks)
{
	const struct kprof_capture_info *info = kprof_capture_info(c);

	if (opts->argv && chosen(opts))
		say_chosen();
	else if (opts->argv)
		message_warn(
			"kprof sample -- COMMAND works with any program, kprof check says what "
			"this machine allows",
			"nothing was recorded: %s called no operator of a framework and no "
			"device's runtime that kprof knows",
			opts->argv[0]);
	for (size_t i = 0; i < looks->nr; i++)
		say_process(&looks->processes[i], opts, info->end_mono_ns - info->start_mono_ns);
}
