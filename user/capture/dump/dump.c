// SPDX-License-Identifier: BSD-2-Clause
/* kprof_dump(): from the number of a process to the stacks of its threads. */
#include "capture/dump/priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/names/names.h"
#include "util/error.h"
#include "util/foreign.h"
#include "util/util.h"

/*
 * Where the first thread of a process has ended before the others, its entry in /proc no longer
 * shows the memory. Returns a thread that still lives, to use instead; 0: there is none.
 */
static pid_t find_alive(pid_t pid)
{
	struct proc_maps *maps;
	pid_t *tids, alive = 0;
	size_t nr;

	if (proc_threads(pid, &tids, &nr))
		return 0;
	for (size_t i = 0; i < nr && !alive; i++) {
		if (proc_maps__read(tids[i], &maps))
			continue;
		proc_maps__free(maps);
		alive = tids[i];
	}
	free(tids);
	error_clear();
	return alive;
}

/* Refuses processes that cannot be dumped, before anything is loaded. */
static int check_process(pid_t pid, pid_t *alive)
{
	struct proc_info info;
	int err = pid > 0 ? proc_info_read(pid, &info)
			  : error_set_usage(-EINVAL, NULL, "%d is no process number", (int)pid);

	if (err)
		return err;
	*alive = info.zombie ? find_alive(pid) : pid;
	if (info.kernel_thread || !*alive)
		return proc_maps__none(&info);
	err = proc_is_32bit(*alive);
	if (err > 0)
		return error_set(-ENOTSUP, "kprof knows 64-bit programs only",
				 "process %d (%s) is a 32-bit program", (int)pid, info.comm);
	/* If it may not be read, reading its mappings fails later, with a better message. */
	return err == -EACCES ? 0 : err;
}

static int open_process(struct dump_process *p)
{
	const struct modules_opts opts = {0};
	int err;

	err = dump_tasks__new(&p->tasks);
	if (!err)
		err = modules__new(&opts, &p->modules);
	if (!err)
		err = address_space__open(p->modules, p->alive, &p->space);
	/* JIT code that could not be read is walked by frame pointers. */
	if (!err && !p->opts->no_native)
		address_space__read_jit_code(p->space);
	if (!err)
		err = proc_maps__read(p->alive, &p->maps);
	if (!err && !p->opts->no_python)
		err = dump_find_python(p);
	if (!err)
		err = dump_tasks__select(p->tasks, p->pid, &p->python);
	return err;
}

static void close_process(struct dump_process *p)
{
	dump_free_threads(p);
	python_thread_names__free(p->thread_names, p->nr_thread_names);
	dump_tasks__free(p->tasks);
	python_elf__free(p->python_elf);
	proc_maps__free(p->maps);
	address_space__close(p->space);
	modules__free(p->modules);
}

static int tell_thread(struct dump_process *p, const struct dump_names *names, size_t i,
		       const struct kprof_dump_process *info,
		       int (*fn)(void *ctx, const struct kprof_dump_process *p,
				 const struct kprof_dump_thread *t),
		       void *ctx)
{
	const struct dump_thread *t = &p->threads[i];
	const char *own_name =
		python_thread_name(p->thread_names, p->nr_thread_names, t->task.fs_base);
	struct kprof_dump_thread thread = {
		.tid = t->tid,
		.name = t->name,
		.python_name = own_name ? own_name : "",
		.state = dump_state(t),
		.call = dump_call(t) ?: "",
		.python = t->python_flags & KPROF_PYTHON_FOUND,
		.holds_gil = t->python_flags & KPROF_PYTHON_HOLDS_GIL,
		.waits_gil = t->python_flags & KPROF_PYTHON_WAITS_GIL,
		.cut = t->why,
	};
	char doing[DUMP_TEXT_BYTES];

	dump_doing(t, doing);
	thread.doing = doing;
	thread.frames = dump_names__frames(names, i, &thread.nr_frames);
	return fn(ctx, info, &thread);
}

static void describe(const struct dump_process *p, struct kprof_dump_process *info,
		     char version[32])
{
	uint32_t hex = p->python.version;

	snprintf(version, 32, "%u.%u.%u%s", hex >> 24, hex >> 16 & 0xff, hex >> 8 & 0xff,
		 p->python.flags & KPROF_PYTHON_FREE_THREADED ? "t" : "");
	info->pid = p->pid;
	info->python = p->python.runtime ? version : "";
	info->note = p->python_note;
	info->nr_threads = p->nr_threads;
}

int kprof_dump(pid_t pid, const struct kprof_dump_opts *opts,
	       int (*fn)(void *ctx, const struct kprof_dump_process *p,
			 const struct kprof_dump_thread *t),
	       void *ctx)
{
	struct kprof_dump_process info = {0};
	struct dump_process p = {.pid = pid, .opts = opts};
	struct dump_names *names = NULL;
	char version[32], *command = NULL;
	int err;

	if (opts->sz != sizeof(*opts))
		return error_set_usage(-EINVAL, NULL, "kprof_dump_opts of another size");
	foreign_prepare();
	demangle_apart();
	err = check_process(pid, &p.alive);
	if (!err)
		err = proc_cmdline(pid, &command);
	if (!err)
		err = open_process(&p);
	info.time_real_ns = clock_real_ns();
	if (!err)
		err = dump_take(&p);
	if (!err)
		err = dump_names__new(&p, &names);
	if (!err)
		dump_name_threads(&p);
	foreign_tell();
	info.command = command;
	describe(&p, &info, version);
	for (size_t i = 0; i < p.nr_threads && !err; i++)
		err = tell_thread(&p, names, i, &info, fn, ctx);
	dump_names__free(names);
	close_process(&p);
	free(command);
	return err;
}
