// SPDX-License-Identifier: BSD-2-Clause
/*
 * What Python calls its threads: read in the process's memory when a thread is first met, now and then (somebody may have
 * renamed one), and at the end. Nothing runs in the target.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "capture/session/session.h"
#include "capture/unwind/space.h"
#include "capture/sample/stacks.h"
#include "symbol/python/python.h"
#include "util/error.h"
#include "util/util.h"

#define FIRST_WAIT_NS (20 * NSEC_PER_MSEC) /* threads are made in groups */
#define NEXT_WAIT_NS (2 * NSEC_PER_SEC)
#define SHARE 20 /* of the time, not more than one in so many is spent on it */

struct thread_names {
	const struct python_elf *elf; /* its file's */
	uint64_t bias;
	uint64_t searched_ns; /* the interpreter was searched in the mappings as they were then */
	bool located;
	struct kprof_python layout;
	bool wanted; /* a thread was met since the names were read */
	bool some;   /* there were names */
	uint64_t next_ns, wait_ns;
	uint64_t soonest_ns; /* not before, whoever is met */
};

static int read_target(void *ctx, void *to, size_t bytes, uint64_t address)
{
	const struct target *t = ctx;

	return space_read((pid_t)t->pid, address, to, bytes) == (ssize_t)bytes ? 0 : -EFAULT;
}

/* ---- the interpreter -------------------------------------------------------------------------------- */

/* A file that is called so, or the program itself, which may have the interpreter built in. */
static bool may_be_python(const struct target *t, const struct proc_map *map)
{
	return map->flags & PROC_MAP_FILE && map->flags & PROC_MAP_EXEC &&
	       (strstr(proc_basename(map->path), "python") ||
		(t->exe && !strcmp(t->exe, map->path)));
}

static const struct python_elf *interpreter_in(struct kprof_session *s, struct target *t,
					       const struct proc_map *map, uint64_t *bias)
{
	struct file *f;

	if (session__file(s, t, map, &f) || !f->elf)
		return NULL;
	if (!f->python_looked)
		python_elf__open(f->elf, &f->python); /* of a release not known: without names */
	f->python_looked = true;
	*bias = map->start - elffile__vaddr(f->elf, map->offset);
	return f->python;
}

static void find_interpreter(struct kprof_session *s, struct target *t)
{
	struct thread_names *n = t->names;

	if (!t->maps || n->searched_ns == t->maps_ns)
		return;
	n->searched_ns = t->maps_ns;
	for (size_t i = 0; i < proc_maps__nr(t->maps) && !n->elf; i++) {
		const struct proc_map *map = proc_maps__at(t->maps, i);

		if (may_be_python(t, map))
			n->elf = interpreter_in(s, t, map, &n->bias);
	}
}

/* ---- names ------------------------------------------------------------------------------------------ */

static int tell(struct kprof_session *s, struct thread *th, const char *name)
{
	uint32_t id = store_writer__string(s->store, name, strlen(name));
	struct store_record r = {
		.type = STORE_THREAD_NAME,
		.thread_name = {.thread = th->index, .name = id},
	};

	if (!id || id == th->own_name)
		return 0;
	th->own_name = id;
	return store_writer__put(s->store, &r);
}

/* The thread's number as the interpreter knows it; 0: not known. */
static int32_t number_of(const struct target *t, struct thread *th)
{
	if (!th->ns_tid && t->ns_pid == t->pid)
		th->ns_tid = (int32_t)(uint32_t)th->pid_tgid;
	else if (!th->ns_tid)
		th->ns_tid = proc_thread_ns_tid((pid_t)t->pid, (pid_t)(uint32_t)th->pid_tgid);
	return th->ns_tid > 0 ? th->ns_tid : 0;
}

/* *all: each of its threads has a name now. */
static int tell_all(struct kprof_session *s, const struct target *t,
		    const struct python_thread *threads, size_t nr_threads,
		    const struct python_thread_name *names, size_t nr_names, bool *all)
{
	struct thread *th;
	int err = 0;

	for (th = s->threads; th && !err; th = th->hh.next) {
		int32_t tid = th->target == t ? number_of(t, th) : 0;
		const char *name = NULL;

		for (size_t i = 0; i < nr_threads && tid && !name; i++)
			if (threads[i].tid == tid)
				name = python_thread_name(names, nr_names, threads[i].thread);
		if (name)
			err = tell(s, th, name);
		*all &= th->target != t || th->own_name;
	}
	return err;
}

/* Who takes stacks has found it already, and looks at the mappings whenever they change. */
static const struct kprof_python *locate(struct kprof_session *s, struct target *t)
{
	struct python_memory memory = {.read = read_target, .ctx = t};
	struct thread_names *n = t->names;

	if (t->stacks)
		return stacks_python__layout(t);
	find_interpreter(s, t);
	if (n->elf && !n->located)
		n->located = !python_locate(n->elf, n->bias, &memory, &n->layout);
	error_clear();
	return n->located ? &n->layout : NULL;
}

/* *some: Python has names for some; it has none before `threading` is imported. *all: and for each that was met. */
static int read_names(struct kprof_session *s, struct target *t, const struct kprof_python *python,
		      bool *some, bool *all)
{
	struct python_memory memory = {.read = read_target, .ctx = t};
	struct python_thread *threads;
	struct python_thread_name *names;
	size_t nr_threads, nr_names;
	int err = 0;

	names = calloc(KPROF_PYTHON_MAX_THREADS, sizeof(*names));
	threads = calloc(KPROF_PYTHON_MAX_THREADS, sizeof(*threads));
	nr_names =
		names ? python_thread_names(python, &memory, names, KPROF_PYTHON_MAX_THREADS) : 0;
	*some = *all = threads && nr_names;
	if (*some) {
		nr_threads = python_threads(python, &memory, threads, KPROF_PYTHON_MAX_THREADS);
		err = tell_all(s, t, threads, nr_threads, names, nr_names, all);
	}
	python_thread_names__free(names, nr_names);
	free(threads);
	return err;
}

void thread_names__want(struct target *t, uint64_t now_ns)
{
	if (!t->names) {
		t->names = calloc(1, sizeof(*t->names));
		if (!t->names)
			return;
		t->names->next_ns = now_ns;
	}
	t->names->wanted = true;
	/* It does not wait for those that have no name. */
	if (t->names->some && t->names->soonest_ns < t->names->next_ns) {
		t->names->next_ns = t->names->soonest_ns;
		t->names->wait_ns = 0;
	}
}

/* Of this thread: on a machine that is busy waiting for a CPU costs nobody anything. */
static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

static int tend(struct kprof_session *s, struct target *t, uint64_t now_ns)
{
	struct thread_names *n = t->names;
	const struct kprof_python *python;
	uint64_t begin_ns;
	bool some, all;
	int err;

	if (t->shares_memory || t->ended || now_ns < n->next_ns ||
	    (!n->wanted && now_ns < n->next_ns + NEXT_WAIT_NS))
		return 0;
	n->next_ns = now_ns + FIRST_WAIT_NS;
	python = locate(s, t);
	if (!python)
		return 0;
	begin_ns = cpu_ns();
	err = read_names(s, t, python, &some, &all);
	n->some |= some;
	if (all) {
		n->wanted = false;
		n->wait_ns = 0;
	} else { /* one may have just begun: Python enters it when it has the lock. Or never have any */
		n->wait_ns = n->wait_ns < NEXT_WAIT_NS / 2 ? 2 * n->wait_ns + FIRST_WAIT_NS
							   : NEXT_WAIT_NS;
		n->next_ns += n->wait_ns;
	}
	n->soonest_ns = now_ns + FIRST_WAIT_NS + SHARE * (cpu_ns() - begin_ns);
	n->next_ns += SHARE * (cpu_ns() - begin_ns);
	return err;
}

int thread_names__tend(struct kprof_session *s, uint64_t now_ns)
{
	struct target *t;
	int err = 0;

	for (t = s->targets; t && !err; t = t->hh.next)
		if (t->names)
			err = tend(s, t, now_ns);
	return err;
}

int thread_names__last(struct kprof_session *s)
{
	const struct kprof_python *python;
	struct target *t;
	bool some, all;
	int err = 0;

	for (t = s->targets; t && !err; t = t->hh.next) {
		python = t->names && !t->shares_memory ? locate(s, t) : NULL;
		if (python)
			err = read_names(s, t, python, &some, &all);
	}
	return err;
}

int thread_names__drop(struct kprof_session *s, struct thread *th)
{
	struct store_record r = {
		.type = STORE_THREAD_NAME,
		.thread_name = {.thread = th->index},
	};

	if (!th->own_name)
		return 0;
	th->own_name = 0;
	return store_writer__put(s->store, &r);
}

void thread_names__forget(struct target *t)
{
	free(t->names);
	t->names = NULL;
}
