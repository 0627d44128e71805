// SPDX-License-Identifier: BSD-2-Clause
/*
 * Takes the stacks of threads without stopping them.
 *
 * A thread that is off the CPU changes nothing. So its registers are read, its stack is walked in
 * the process's memory, and then its registers are read again. If the thread is still off the CPU
 * and its number of context switches is the same, it has not run meanwhile, and what was read
 * belongs together. A thread that runs is caught by a timer's tick. Both ways are tried until one
 * of them works.
 */
#include "capture/dump/priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"
#include "util/haste.h"
#include "util/util.h"

#define DUMP_WAIT_NS (500 * NSEC_PER_MSEC)
/* of a stack that are copied at once; the rest is read word by word */
#define DUMP_STACK_BYTES (4u << 20)
/*
 * Threads whose stacks are read between two readings of registers, at most. The longer that takes,
 * the more of them have run meanwhile; the number is halved when many have.
 */
#define DUMP_MOST_BATCH 64
#define POLL_MS 3
#define MOST_REFRESHES 8 /* of the mappings */
/* task_struct.__state, include/linux/sched.h */
#define TASK_DEAD 0x80u

/* ---- the list of threads ---- */

static struct dump_thread *find_thread(struct dump_process *p, pid_t tid)
{
	for (size_t i = 0; i < p->nr_threads; i++)
		if (p->threads[i].tid == tid)
			return &p->threads[i];
	return NULL;
}

static int add_thread(struct dump_process *p, pid_t tid, struct dump_thread **out)
{
	int err =
		vec_grow((void **)&p->threads, &p->cap_threads, p->nr_threads, sizeof(*p->threads));

	if (err)
		return error_set(err, NULL, "out of memory");
	*out = &p->threads[p->nr_threads++];
	memset(*out, 0, sizeof(**out));
	(*out)->tid = tid;
	if (proc_thread_comm(p->pid, tid, (*out)->name))
		(*out)->name[0] = '\0';
	error_clear();
	return 0;
}

static void say(struct dump_thread *t, enum dump_status status, const char *why)
{
	t->status = status;
	snprintf(t->why, sizeof(t->why), "%s", why);
}

/* Is it known from its state that this thread has no stack to walk? Then its status is set. */
static bool has_no_stack(struct dump_thread *t)
{
	if (t->task.flags & KPROF_TASK_KERNEL)
		say(t, DUMP_WITHOUT,
		    "the kernel's own thread for the process: no code of its runs in it");
	else if (t->task.state & TASK_DEAD)
		say(t, DUMP_WITHOUT, "it has ended");
	else if (t->task.flags & KPROF_TASK_COMPAT)
		say(t, DUMP_WITHOUT, "it runs 32-bit code");
	return t->status != DUMP_WAITS;
}

/* Reads registers, and keeps them for all threads whose stack is not known yet. */
static int look(struct dump_process *p)
{
	const struct kprof_task *tasks;
	size_t nr;
	int err = dump_tasks__read(p->tasks, &tasks, &nr);

	for (size_t i = 0; i < p->nr_threads; i++)
		p->threads[i].seen = false;
	for (size_t i = 0; i < nr && !err; i++) {
		struct dump_thread *t = find_thread(p, (pid_t)tasks[i].tid);

		if (!t)
			err = add_thread(p, (pid_t)tasks[i].tid, &t);
		if (err)
			break;
		t->seen = true;
		if (t->status == DUMP_WAITS) {
			t->task = tasks[i];
			has_no_stack(t);
		}
	}
	for (size_t i = 0; i < p->nr_threads && !err; i++)
		if (!p->threads[i].seen && p->threads[i].status == DUMP_WAITS)
			p->threads[i].status = DUMP_GONE;
	return err;
}

/* ---- one stack ---- */

static void drop_stack(struct dump_thread *t)
{
	free(t->native);
	free(t->python);
	t->native = NULL;
	t->python = NULL;
	t->nr_native = t->nr_python = 0;
	t->python_flags = 0;
	t->copied = false;
}

static int walk(struct dump_process *p, struct dump_thread *t, const struct walk_start *start)
{
	size_t nr = walk_stack(p->space, start, p->frames, DUMP_MAX_FRAMES, &t->end);

	free(t->native);
	t->native = calloc(nr + 1, sizeof(*t->native));
	if (!t->native)
		return error_set(-ENOMEM, NULL, "out of memory");
	memcpy(t->native, p->frames, nr * sizeof(*t->native));
	t->nr_native = nr;
	return 0;
}

static void set_registers(struct walk_start *start, const struct kprof_task *task)
{
	memset(start, 0, sizeof(*start));
	start->ip = task->ip;
	memcpy(start->regs, task->regs, sizeof(start->regs));
	start->stack_address = task->regs[7];
}

/* Reads the stack of a thread that was off the CPU when its registers were read. */
static int take(struct dump_process *p, struct dump_thread *t)
{
	const struct proc_map *map = proc_maps__find(p->maps, t->task.regs[7]);
	struct walk_start start;
	/* where no mapping is known: the stack has grown since the mappings were read */
	size_t bytes = 64 << 10;
	ssize_t n;
	int err;

	set_registers(&start, &t->task);
	if (map)
		bytes = (size_t)(map->end - start.stack_address);
	n = process_read_some(p->alive, start.stack_address, p->stack,
			      bytes < DUMP_STACK_BYTES ? bytes : DUMP_STACK_BYTES);
	start.stack = p->stack;
	start.stack_bytes = n > 0 ? (size_t)n : 0;
	err = p->opts->no_native ? 0 : walk(p, t, &start);
	if (!err && p->python.runtime)
		err = dump_walk_python(p, t);
	t->copied = true;
	return err;
}

/*
 * Provides what the walk of this thread lacked: an unwind table, or a library that was mapped
 * meanwhile. True: the stack is to be walked again.
 */
static bool build_missing(struct dump_process *p, struct dump_thread *t)
{
	uint64_t start = clock_mono_ns();

	if (p->opts->no_native)
		return false;
	if (t->end.how == KPROF_UNWIND_NO_MAPPING && p->refreshes < MOST_REFRESHES) {
		p->refreshes++;
		if (address_space__refresh(p->space) != 1)
			return false;
		address_space__read_jit_code(p->space);
		return true;
	}
	if (t->end.how != KPROF_UNWIND_NOT_YET || !t->end.missing)
		return false;
	modules__build(p->modules, t->end.missing);
	p->built_ns += clock_mono_ns() - start;
	return true;
}

/* ---- threads off the CPU ---- */

static const struct kprof_task *find_task(const struct kprof_task *tasks, size_t nr, pid_t tid)
{
	for (size_t i = 0; i < nr; i++)
		if ((pid_t)tasks[i].tid == tid)
			return &tasks[i];
	return NULL;
}

/*
 * Has the thread not run since its registers were read? Then what was read after them belongs to
 * them.
 */
static bool lay_still(const struct dump_thread *t, const struct kprof_task *now)
{
	return now && !(now->flags & KPROF_TASK_ON_CPU) && now->switches == t->task.switches &&
	       now->ip == t->task.ip && now->regs[7] == t->task.regs[7];
}

/*
 * Keeps the stacks of threads that have not run meanwhile. 1: there are new tables, which some
 * stacks need.
 */
static int confirm(struct dump_process *p)
{
	const struct kprof_task *tasks;
	size_t nr;
	int err = dump_tasks__read(p->tasks, &tasks, &nr);
	bool built = false;
	size_t moved = 0;

	for (size_t i = 0; i < p->nr_threads && !err; i++) {
		struct dump_thread *t = &p->threads[i];
		bool still;

		if (!t->copied)
			continue;
		t->copied = false;
		still = lay_still(t, find_task(tasks, nr, t->tid));
		moved += !still;
		if (still && build_missing(p, t))
			built = true;
		else if (still)
			t->status = DUMP_TAKEN;
		if (t->status != DUMP_TAKEN)
			drop_stack(t);
	}
	p->batch = moved > p->batch / 2 ? p->batch / 2 : p->batch * 2;
	p->batch = p->batch < 1 ? 1 : p->batch > DUMP_MOST_BATCH ? DUMP_MOST_BATCH : p->batch;
	return err ? err : built;
}

/* Takes the stacks of all waiting threads that are off the CPU, a batch at a time. */
static int take_still(struct dump_process *p)
{
	size_t at = 0;
	int err;

	p->batch = p->batch ?: DUMP_MOST_BATCH;
	do {
		size_t taken = 0, from = at;

		err = look(p);
		for (; at < p->nr_threads && taken < p->batch && !err; at++) {
			struct dump_thread *t = &p->threads[at];

			if (t->status != DUMP_WAITS || t->caught ||
			    t->task.flags & KPROF_TASK_ON_CPU)
				continue;
			err = take(p, t);
			taken++;
		}
		if (!err && taken)
			err = confirm(p);
		if (err == 1) {
			at = from;
			err = 0;
		}
	} while (at < p->nr_threads && !err);
	return err;
}

/* ---- running threads ---- */

static void on_caught(void *ctx, const struct kprof_task_running *r)
{
	struct dump_process *p = ctx;
	struct dump_thread *t = find_thread(p, (pid_t)r->task.tid);

	if (!t || t->status != DUMP_WAITS || t->caught)
		return;
	t->caught = malloc(sizeof(*r));
	if (t->caught) /* without memory: it is caught again later */
		memcpy(t->caught, r, sizeof(*r));
}

/*
 * Walks the copy of a running thread's stack. Building tables may take its time, since a copy does
 * not change.
 */
static int walk_caught(struct dump_process *p, struct dump_thread *t)
{
	const struct kprof_task_running *r = t->caught;
	struct walk_start start;
	int err = 0;

	t->task = r->task;
	if (!has_no_stack(t)) {
		set_registers(&start, &t->task);
		start.stack = r->stack;
		start.stack_bytes =
			r->stack_bytes < sizeof(r->stack) ? r->stack_bytes : sizeof(r->stack);
		start.only_copy = true;
		do
			err = p->opts->no_native ? 0 : walk(p, t, &start);
		while (!err && build_missing(p, t));
		if (!err && p->python.runtime && r->has_python)
			err = dump_keep_python(t, &r->python);
		t->status = DUMP_CAUGHT;
	}
	free(t->caught);
	t->caught = NULL;
	return err;
}

/*
 * Catches running threads. After the first round the timer is also set for threads that were off
 * the CPU: they were never off it for long enough to be read.
 */
static int take_running(struct dump_process *p, bool first)
{
	int err = 0;

	for (size_t i = 0; i < p->nr_threads; i++) {
		struct dump_thread *t = &p->threads[i];

		if (t->status == DUMP_WAITS && !t->caught &&
		    (!first || t->task.flags & KPROF_TASK_ON_CPU))
			dump_tasks__chase(p->tasks, t->tid);
	}
	dump_tasks__caught(p->tasks, POLL_MS, on_caught, p);
	for (size_t i = 0; i < p->nr_threads && !err; i++)
		if (p->threads[i].caught)
			err = walk_caught(p, &p->threads[i]);
	return err;
}

static bool anyone_waits(const struct dump_process *p)
{
	for (size_t i = 0; i < p->nr_threads; i++)
		if (p->threads[i].status == DUMP_WAITS)
			return true;
	return false;
}

/* ---- all threads ---- */

static int by_tid(const void *a, const void *b)
{
	const struct dump_thread *x = a, *y = b;

	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

/* Says for each thread that is left why it has no stack. */
static void finish(struct dump_process *p)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->nr_threads; i++) {
		struct dump_thread *t = &p->threads[i];

		if (t->status == DUMP_WAITS)
			say(t, DUMP_WITHOUT,
			    t->task.flags & KPROF_TASK_ON_CPU
				    ? "it was running, and no tick of the timer met it"
				    : "it never lay still long enough to be looked at");
		else if (t->nr_native && !t->why[0])
			dump_end_text(p, &t->end, t->native[t->nr_native - 1].ip, t->why);
		if (t->status == DUMP_GONE)
			drop_stack(t);
		else
			p->threads[kept++] = *t;
	}
	p->nr_threads = kept;
	if (kept)
		qsort(p->threads, kept, sizeof(*p->threads), by_tid);
}

int dump_take(struct dump_process *p)
{
	uint64_t start = clock_mono_ns(), wait = p->opts->wait_ns ?: DUMP_WAIT_NS;
	int nice, err;
	bool first = true;

	p->stack = malloc(DUMP_STACK_BYTES);
	p->frames = calloc(DUMP_MAX_FRAMES, sizeof(*p->frames));
	if (!p->stack || !p->frames)
		return error_set(-ENOMEM, NULL, "out of memory");
	/* For some milliseconds: the process would run while kprof waits for a CPU. */
	nice = haste__begin();
	do {
		err = take_still(p);
		if (!err && anyone_waits(p))
			err = take_running(p, first);
		first = false;
	} while (!err && anyone_waits(p) && clock_mono_ns() - start < wait + p->built_ns);
	haste__end(nice);
	dump_tasks__give_up(p->tasks);
	if (!err)
		finish(p);
	if (!err && !p->nr_threads)
		err = error_set(-ESRCH, NULL, "process %d has exited", (int)p->pid);
	return err;
}

void dump_free_threads(struct dump_process *p)
{
	for (size_t i = 0; i < p->nr_threads; i++) {
		drop_stack(&p->threads[i]);
		free(p->threads[i].caught);
	}
	free(p->threads);
	free(p->stack);
	free(p->frames);
}
