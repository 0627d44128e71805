// SPDX-License-Identifier: BSD-2-Clause
/*
 * Walks the stack of a stopped thread, by kprof's own unwind tables (capture/unwind/).
 *
 * A table takes up to a second to build when none is cached, and no thread of the target is held
 * for that long. So the tables that a walk may need are built before the thread is stopped, as far
 * as they are known then. A walk that needs another table reports that, and is repeated once the
 * table is built.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/inject/priv.h"
#include "capture/unwind/unwind.h"
#include "util/util.h"

/* .eh_frame of the files whose tables are built at once: some 10 ms. The C library has 130 kB. */
#define SMALL_TABLES_BYTES (1u << 20)

#define SNAPSHOT_BYTES (64 * 1024)

struct inject_walker {
	pid_t pid;
	struct modules *modules;
	struct address_space *space; /* NULL: the mappings were not read yet */
	/*
	 * The last walk ended at code of this file, whose table is not built yet; NULL: it did not.
	 */
	struct module *missing;
	uint64_t missing_ip, missing_sp; /* where that walk began */
	/* A copy of part of the stack: one read instead of hundreds. */
	uint64_t snapshot_at;
	size_t snapshot_words;
	uint64_t snapshot[SNAPSHOT_BYTES / sizeof(uint64_t)];
};

int inject_walker__new(pid_t pid, struct inject_walker **out)
{
	const struct modules_opts opts = {0};
	struct inject_walker *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return -ENOMEM;
	w->pid = pid;
	err = modules__new(&opts, &w->modules);
	if (err) {
		free(w);
		return err;
	}
	*out = w;
	return 0;
}

void inject_walker__free(struct inject_walker *w)
{
	if (!w)
		return;
	address_space__close(w->space);
	modules__free(w->modules);
	free(w);
}

int inject_walker__refresh(struct inject_walker *w)
{
	int err;

	w->missing = NULL;
	if (!w->space)
		return address_space__open(w->modules, w->pid, &w->space);
	err = address_space__refresh(w->space);
	return err < 0 ? err : 0;
}

/* Copies the stack from the stack pointer up to the end of its mapping, or as much as fits. */
static void take_snapshot(struct inject_walker *w, uint64_t sp)
{
	ssize_t n = process_read_some(w->pid, sp, w->snapshot, sizeof(w->snapshot));

	w->snapshot_at = sp;
	w->snapshot_words = n > 0 ? (size_t)n / sizeof(w->snapshot[0]) : 0;
}

/* ---- tables ---- */

static bool build_at(struct inject_walker *w, uint64_t address)
{
	size_t i = address_space__find(w->space, address);
	struct module *m = i == SIZE_MAX ? NULL : w->space->areas[i].module;

	if (!m || module__state(m) != MODULE_PENDING)
		return false;
	modules__build(w->modules, m);
	return true;
}

/*
 * The files of the callers are found by return addresses: every word on the stack that is an
 * address of code is taken for one.
 */
bool inject_walker__prepare(struct inject_walker *w, uint64_t ip, uint64_t sp)
{
	bool built = build_at(w, ip);

	take_snapshot(w, sp);
	for (size_t i = 0; i < w->snapshot_words; i++)
		built |= build_at(w, w->snapshot[i]);
	return built;
}

void inject_walker__prepare_small(struct inject_walker *w)
{
	uint64_t left_bytes = SMALL_TABLES_BYTES;

	for (size_t i = 0; i < w->space->nr; i++) {
		struct module *m = w->space->areas[i].module;

		if (!m || m->bytes > left_bytes || module__state(m) != MODULE_PENDING)
			continue;
		left_bytes -= m->bytes;
		modules__build(w->modules, m);
	}
}

bool inject_walker__prepare_missing(struct inject_walker *w)
{
	struct module *missing = w->missing;

	if (!missing)
		return false;
	w->missing = NULL;
	modules__build(w->modules, missing);
	inject_walker__prepare(w, w->missing_ip, w->missing_sp);
	return true;
}

/* ---- walking ---- */

/* By DWARF's numbers: System V ABI, AMD64, figure 3.36. */
static struct walk_start start_of(const struct inject_walker *w, const struct user_regs_struct *r)
{
	return (struct walk_start){
		.ip = r->rip,
		.regs = {r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp, r->r8,
			 r->r9, r->r10, r->r11, r->r12, r->r13, r->r14, r->r15},
		.stack = w->snapshot,
		.stack_address = w->snapshot_at,
		.stack_bytes = w->snapshot_words * sizeof(w->snapshot[0]),
	};
}

void inject_walker__walk(struct inject_walker *w, const struct user_regs_struct *regs,
			 struct inject_stack *out)
{
	struct walk_frame frames[INJECT_MAX_FRAMES];
	struct walk_start start;
	struct walk_end end;

	take_snapshot(w, regs->rsp);
	start = start_of(w, regs);
	out->nr = walk_stack(w->space, &start, frames, INJECT_MAX_FRAMES, &end);
	for (size_t i = 0; i < out->nr; i++) {
		out->frames[i].pc = frames[i].exact ? frames[i].ip : frames[i].ip - 1;
		out->frames[i].signal = frames[i].exact && i;
	}
	out->reached = out->nr ? frames[out->nr - 1].sp : regs->rsp;
	out->whole = end.how == KPROF_UNWIND_WHOLE;
	out->table_missing = end.how == KPROF_UNWIND_NOT_YET;
	if (!out->nr) {
		out->frames[out->nr++] = (struct inject_frame_pc){.pc = regs->rip};
		out->whole = false;
	}
	w->missing = end.missing;
	w->missing_ip = regs->rip;
	w->missing_sp = regs->rsp;
}
