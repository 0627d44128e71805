// SPDX-License-Identifier: BSD-2-Clause
#include "capture/event/thread_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/process/process.h"
#include "symbol/python/python.h"
#include "util/error.h"
#include "util/map64.h"
#include "util/ration.h"
#include "util/util.h"

/* programs create threads in groups: wait for the rest of them */
#define FIRST_WAIT_NS (20 * NSEC_PER_MSEC)
#define NEXT_WAIT_NS (2 * NSEC_PER_SEC)
#define MOST_WAIT_NS (16 * NEXT_WAIT_NS) /* while none changes */
/*
 * Where all processes are recorded within a bound, so old is one whose names are read: most
 * programs that begin one after the other are over by then.
 */
#define YOUNG_NS NSEC_PER_SEC
#define SHARE 20 /* reading names takes at most one part in so many of the time */

struct thread_names {
	struct thread_names_opts opts;
	uint32_t slot; /* slot of a target: struct target_names * */
	uint64_t next_turn_ns;
	uint64_t nr_recorded; /* names, so far */
	struct map64 pythons; /* ELF file → its struct python_elf *; 1: no interpreter in it */
};

struct target_names {
	/* of the file that contains the interpreter; NULL: not found */
	const struct python_elf *elf;
	uint64_t bias;
	/* maps_ns of the mappings that were last searched for the interpreter */
	uint64_t searched_ns;
	bool located;
	struct kprof_python layout;
	bool wanted; /* a thread was met since the names were read */
	bool some;   /* the interpreter had at least one name */
	uint64_t next_ns, wait_ns;
	uint64_t rest_ns;    /* where none is wanted, so much later than next_ns */
	uint64_t soonest_ns; /* no new thread makes the next reading earlier than this */
	uint32_t threading;  /* struct python_memory */
};

int thread_names__new(const struct thread_names_opts *opts, struct thread_names **out)
{
	struct thread_names *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->opts = *opts;
	n->slot = targets__slot(opts->targets);
	*out = n;
	return 0;
}

void thread_names__forget(struct thread_names *n, struct target *t)
{
	free(t->slot[n->slot]);
	t->slot[n->slot] = NULL;
}

void thread_names__free(struct thread_names *n)
{
	struct target *t, *next;

	if (!n)
		return;
	TARGETS_EACH (n->opts.targets, t, next)
		thread_names__forget(n, t);
	for (size_t i = 0; i < n->pythons.cap; i++)
		if (n->pythons.slots[i].value > 1)
			python_elf__free((struct python_elf *)(uintptr_t)n->pythons.slots[i].value);
	map64__free(&n->pythons);
	free(n);
}

/* ---- the interpreter ---- */

/*
 * A file with "python" in its name, or the program itself, which may have the interpreter built in.
 */
static bool may_be_python(const struct target *t, const struct proc_map *map)
{
	return map->flags & PROC_MAP_FILE && map->flags & PROC_MAP_EXEC &&
	       (strstr(proc_basename(map->path), "python") ||
		(t->exe && !strcmp(t->exe, map->path)));
}

/*
 * The interpreter in a mapped file, searched once per file. NULL: none, or of an unknown release;
 * then threads get no names.
 */
static const struct python_elf *interpreter_in(struct thread_names *n, const struct target *t,
					       const struct proc_map *map, uint64_t *bias)
{
	struct elffile *elf = probe_set__elf(n->opts.probes, t, map);
	uint64_t *known = elf ? map64__at(&n->pythons, (uint64_t)(uintptr_t)elf) : NULL;
	struct python_elf *found = NULL;

	if (!known)
		return NULL;
	if (!*known) {
		python_elf__open(elf, &found);
		*known = found ? (uint64_t)(uintptr_t)found : 1;
	}
	*bias = map->start - elffile__vaddr(elf, map->offset);
	return *known > 1 ? (const struct python_elf *)(uintptr_t)*known : NULL;
}

static void find_interpreter(struct thread_names *n, const struct target *t)
{
	struct target_names *tn = t->slot[n->slot];

	if (!t->maps || tn->searched_ns == t->maps_ns)
		return;
	tn->searched_ns = t->maps_ns;
	for (size_t i = 0; i < proc_maps__nr(t->maps) && !tn->elf; i++) {
		const struct proc_map *map = proc_maps__at(t->maps, i);

		if (may_be_python(t, map))
			tn->elf = interpreter_in(n, t, map, &tn->bias);
	}
}

/* ---- names ---- */

static int record(struct thread_names *n, struct thread *th, const char *name)
{
	uint32_t id = recorder__string(n->opts.recorder, name);
	struct store_record r = {
		.type = STORE_THREAD_NAME,
		.thread_name = {.thread = th->index, .name = id},
	};

	if (!id || id == th->python_name)
		return 0;
	th->python_name = id;
	n->nr_recorded++;
	return recorder__put(n->opts.recorder, &r);
}

/* The thread's TID in its own PID namespace, by which the interpreter knows it; 0: not known. */
static int32_t number_of(const struct target *t, struct thread *th)
{
	if (!th->ns_tid && t->ns_pid == t->pid)
		th->ns_tid = (int32_t)(uint32_t)th->pid_tgid;
	else if (!th->ns_tid)
		th->ns_tid = proc_thread_ns_tid((pid_t)t->pid, (pid_t)(uint32_t)th->pid_tgid);
	return th->ns_tid > 0 ? th->ns_tid : 0;
}

/* Records the names of a process's threads. *all becomes false when one of them has no name yet. */
static int record_all(struct thread_names *n, const struct target *t,
		      const struct python_thread *threads, size_t nr_threads,
		      const struct python_thread_name *names, size_t nr_names, bool *all)
{
	struct thread *th;
	int err = 0;

	for (th = threads__first(n->opts.threads); th && !err; th = th->hh.next) {
		int32_t tid = th->target == t ? number_of(t, th) : 0;
		const char *name = NULL;

		for (size_t i = 0; i < nr_threads && tid && !name; i++)
			if (threads[i].tid == tid)
				name = python_thread_name(names, nr_names, threads[i].thread);
		if (name)
			err = record(n, th, name);
		*all &= th->target != t || th->python_name;
	}
	return err;
}

static const struct kprof_python *locate(struct thread_names *n, struct target *t)
{
	struct python_memory memory = {.read = target__read, .ctx = t};
	struct target_names *tn = t->slot[n->slot];
	bool known = false;
	const struct kprof_python *layout = n->opts.layout(n->opts.ctx, t, &known);

	if (known)
		return layout;
	find_interpreter(n, t);
	if (tn->elf && !tn->located)
		tn->located = !python_locate(tn->elf, tn->bias, &memory, &tn->layout);
	error_clear();
	return tn->located ? &tn->layout : NULL;
}

const struct kprof_python *thread_names__layout(struct thread_names *n, struct target *t)
{
	if (!t->slot[n->slot])
		t->slot[n->slot] = calloc(1, sizeof(struct target_names));
	return t->slot[n->slot] ? locate(n, t) : NULL;
}

/*
 * *some: the interpreter has names of threads; before `threading` is imported it has none. *all:
 * each thread of the process that is recorded has one.
 */
static int read_names(struct thread_names *n, struct target *t, const struct kprof_python *python,
		      bool *some, bool *all)
{
	struct target_names *tn = t->slot[n->slot];
	struct python_memory memory = {.read = target__read, .ctx = t, .threading = &tn->threading};
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
		err = record_all(n, t, threads, nr_threads, names, nr_names, all);
	}
	python_thread_names__free(names, nr_names);
	free(threads);
	return err;
}

void thread_names__want(struct thread_names *n, struct target *t, uint64_t now_ns)
{
	struct target_names *tn = t->slot[n->slot];

	if (!tn) {
		tn = t->slot[n->slot] = calloc(1, sizeof(*tn));
		if (!tn)
			return;
		tn->next_ns = now_ns;
	}
	tn->wanted = true;
	/*
	 * A new thread is read early: it does not wait as long as the threads that turned out to
	 * have no name.
	 */
	if (tn->some && tn->soonest_ns < tn->next_ns) {
		tn->next_ns = tn->soonest_ns;
		tn->wait_ns = 0;
	}
}

/* Not where no interpreter was found in what is mapped: most programs have none. */
static bool may_have_names(const struct thread_names *n, struct target *t)
{
	const struct target_names *tn = t->slot[n->slot];
	bool known = false;
	const struct kprof_python *layout = n->opts.layout(n->opts.ctx, t, &known);

	return known ? layout != NULL : tn->elf || (t->maps && tn->searched_ns != t->maps_ns);
}

static bool is_due(const struct thread_names *n, const struct target *t, uint64_t now_ns)
{
	const struct target_names *tn = t->slot[n->slot];

	if (n->opts.reading->ns_a_second && now_ns < t->start_ns + YOUNG_NS)
		return false;
	return !t->shares_memory && !t->ended && now_ns >= tn->next_ns &&
	       (tn->wanted || now_ns >= tn->next_ns + tn->rest_ns);
}

static int tend(struct thread_names *n, struct target *t, uint64_t now_ns)
{
	struct target_names *tn = t->slot[n->slot];
	const struct kprof_python *python;
	/* not one of the quick readings after a thread was met: what it finds is what there is */
	bool rested = !tn->wanted || (tn->rest_ns && tn->wait_ns >= tn->rest_ns), some, all;
	uint64_t begin_ns, most_ns, before = n->nr_recorded;
	int err;

	tn->next_ns = now_ns + FIRST_WAIT_NS;
	python = locate(n, t);
	if (!python)
		return 0;
	/* time in which it waits for a CPU on a busy machine costs others nothing */
	begin_ns = clock_thread_ns();
	err = read_names(n, t, python, &some, &all);
	tn->some |= some;
	if (n->nr_recorded > before || !tn->rest_ns)
		tn->rest_ns = NEXT_WAIT_NS;
	else if (rested && tn->rest_ns < MOST_WAIT_NS)
		tn->rest_ns *= 2;
	if (all) {
		tn->wanted = false;
		tn->wait_ns = 0;
		/*
		 * A thread without a name may have just begun: Python enters the name when it has
		 * the GIL. Or it never gets one: wait longer each time.
		 */
	} else {
		most_ns = tn->some ? tn->rest_ns : NEXT_WAIT_NS;
		tn->wait_ns = tn->wait_ns < most_ns / 2 ? 2 * tn->wait_ns + FIRST_WAIT_NS : most_ns;
		tn->next_ns += tn->wait_ns;
	}
	tn->soonest_ns = now_ns + FIRST_WAIT_NS + SHARE * (clock_thread_ns() - begin_ns);
	tn->next_ns += SHARE * (clock_thread_ns() - begin_ns);
	return err;
}

int thread_names__tend(struct thread_names *n, uint64_t now_ns)
{
	struct target *t;
	int err = 0;

	if (!targets__turn(n->opts.targets, &n->next_turn_ns, now_ns))
		return 0;
	for (t = targets__first(n->opts.targets); t && !err; t = t->hh.next)
		if (t->slot[n->slot] && is_due(n, t, now_ns) && may_have_names(n, t) &&
		    ration__lasts(n->opts.reading, RATION_THREADS)) {
			ration__open(n->opts.reading);
			err = tend(n, t, now_ns);
			ration__close(n->opts.reading);
		}
	return err;
}

int thread_names__last(struct thread_names *n)
{
	const struct kprof_python *python;
	struct target *t;
	bool some, all;
	int err = 0;

	for (t = targets__first(n->opts.targets); t && !err; t = t->hh.next) {
		python = t->slot[n->slot] && !t->shares_memory ? locate(n, t) : NULL;
		if (python)
			err = read_names(n, t, python, &some, &all);
	}
	return err;
}

int thread_names__drop(struct thread_names *n, struct thread *th)
{
	struct store_record r = {
		.type = STORE_THREAD_NAME,
		.thread_name = {.thread = th->index},
	};

	if (!th->python_name)
		return 0;
	th->python_name = 0;
	return recorder__put(n->opts.recorder, &r);
}
