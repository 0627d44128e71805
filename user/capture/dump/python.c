// SPDX-License-Identifier: BSD-2-Clause
/*
 * Finds the process's interpreter, and walks Python frames with the source that BPF uses, too
 * (bpf/python.h).
 */
#include "capture/dump/priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "../../../bpf/python.h"
#include "util/error.h"

static _Thread_local pid_t reading; /* the process whose memory python_read() reads */

static int python_read(void *to, kprof_u32 bytes, kprof_u64 address)
{
	return process_read(reading, address, to, bytes);
}

int dump_read_memory(void *ctx, void *to, size_t bytes, uint64_t address)
{
	const struct dump_process *p = ctx;

	return process_read(p->alive, address, to, bytes);
}

const struct code_area *dump_area(const struct dump_process *p, uint64_t address,
				  const struct kprof_unwind_mapping **mapping)
{
	size_t i = address_space__find(p->space, address);

	if (i == SIZE_MAX)
		return NULL;
	if (mapping)
		*mapping = &p->space->mappings[i];
	return &p->space->areas[i];
}

/* ---- the interpreter ---- */

static void note(struct dump_process *p, const char *what)
{
	snprintf(p->python_note, sizeof(p->python_note), "no Python frames: %s", what);
	error_clear();
}

/*
 * Is the interpreter in the file that is mapped here? 1: it is, or the file is an interpreter that
 * kprof cannot read.
 */
static int try_area(struct dump_process *p, size_t i)
{
	const struct code_area *area = &p->space->areas[i];
	const struct python_memory memory = {.read = dump_read_memory, .ctx = p};
	int err = python_elf__open(area->module->elf, &p->python_elf);

	if (err == -ENOENT || err == -ENOMEM)
		return err == -ENOMEM ? error_set(err, NULL, "out of memory") : 0;
	if (!err)
		err = python_locate(p->python_elf, p->space->mappings[i].bias, &memory, &p->python);
	if (err) {
		note(p, kprof_error_cause());
		memset(&p->python, 0, sizeof(p->python));
		python_elf__free(p->python_elf);
		p->python_elf = NULL;
		return 1;
	}
	p->python_module = area->module;
	return 1;
}

int dump_find_python(struct dump_process *p)
{
	const struct module *last = NULL;
	int found = 0;

	for (size_t i = 0; i < p->space->nr && !found; i++) {
		const struct code_area *area = &p->space->areas[i];

		if (area->kind != CODE_AREA_FILE || !area->module->elf || area->module == last)
			continue;
		last = area->module;
		found = try_area(p, i);
	}
	return found < 0 ? found : 0;
}

void dump_name_threads(struct dump_process *p)
{
	const struct python_memory memory = {.read = dump_read_memory, .ctx = p};

	if (!p->python.runtime)
		return;
	p->thread_names = calloc(KPROF_PYTHON_MAX_THREADS, sizeof(*p->thread_names));
	if (p->thread_names)
		p->nr_thread_names = python_thread_names(&p->python, &memory, p->thread_names,
							 KPROF_PYTHON_MAX_THREADS);
}

/* ---- frames ---- */

/*
 * Moves frames from the walk to the thread, all but the last `keep`: the walk may still change the
 * flags of its last frame.
 */
static int drain(struct dump_thread *t, struct kprof_python_walk *w, size_t keep)
{
	size_t nr = w->nr > keep ? w->nr - keep : 0;
	struct kprof_python_frame *more;

	if (!nr)
		return 0;
	more = reallocarray(t->python, t->nr_python + nr, sizeof(*more));
	if (!more)
		return error_set(-ENOMEM, NULL, "out of memory");
	t->python = more;
	memcpy(t->python + t->nr_python, w->frames, nr * sizeof(*more));
	t->nr_python += nr;
	memmove(w->frames, w->frames + nr, keep * sizeof(*more));
	w->nr -= (uint32_t)nr;
	w->first = w->first > nr ? w->first - (uint32_t)nr : 0;
	return 0;
}

int dump_keep_python(struct dump_thread *t, const struct kprof_python_walk *from)
{
	struct kprof_python_walk w = *from;

	if (w.nr > KPROF_PYTHON_MAX_FRAMES)
		w.nr = KPROF_PYTHON_MAX_FRAMES;
	t->python_flags = w.flags;
	return drain(t, &w, 0);
}

int dump_walk_python(struct dump_process *p, struct dump_thread *t)
{
	struct kprof_python_walk w = {.thread = t->task.fs_base};
	int over = 0, err = 0;

	if (t->task.call == SYS_futex)
		w.futex = t->task.regs[5];
	reading = p->alive;
	python_begin(&w);
	for (int i = 0; i < KPROF_PYTHON_MAX_STEPS + DUMP_MAX_FRAMES && !over && !err; i++) {
		over = python_step(&p->python, &w);
		if (w.nr == KPROF_PYTHON_MAX_FRAMES && t->nr_python < DUMP_MAX_FRAMES)
			err = drain(t, &w, 1);
	}
	t->python_flags = w.flags;
	return err ? err : drain(t, &w, 0);
}
