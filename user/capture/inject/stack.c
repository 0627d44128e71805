// SPDX-License-Identifier: BSD-2-Clause
/*
 * Who called whom on a stopped thread, by the unwind tables of the files that are mapped (libdwfl). The files are
 * opened as the target maps them, in whatever mount namespace; debug information is not looked for.
 */
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/inject/priv.h"

#define DWARF_REGISTERS 17 /* System V psABI, AMD64: 16 and the return address */
#define DWARF_RSP 7
#define SNAPSHOT_BYTES (64 * 1024)

struct inject_unwinder {
	const struct inject_target *t;
	Dwfl *dwfl;
	/* The thread at hand. */
	const struct remote *r;
	uint64_t snapshot_at;
	size_t snapshot_bytes;
	uint8_t snapshot[SNAPSHOT_BYTES]; /* of its stack: one read instead of hundreds */
};

/* ---- modules --------------------------------------------------------------------------------- */

static int find_elf(Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr base,
		    char **file_name, Elf **elf)
{
	const struct inject_unwinder *u = *userdata;
	const struct proc_map *map;
	char path[512];

	*elf = NULL;
	map = proc_maps__find(u->t->maps, base);
	if (!map || proc_map_open_path(u->t->pid, map, path, sizeof(path)))
		return -1;
	*file_name = strdup(path);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static int find_no_debuginfo(Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr base,
			     const char *file, const char *link, GElf_Word crc, char **out)
{
	return -1;
}

/* The loader maps a file's segments one behind the other: a module is what lies between the first and the last. */
static int report_modules(struct inject_unwinder *u)
{
	const struct proc_maps *maps = u->t->maps;

	dwfl_report_begin(u->dwfl);
	for (size_t i = 0; i < proc_maps__nr(maps); i++) {
		const struct proc_map *map = proc_maps__at(maps, i), *last = map;
		bool code = map->flags & PROC_MAP_EXEC;
		void **userdata;
		Dwfl_Module *mod;

		if (!(map->flags & PROC_MAP_FILE) || map->offset)
			continue;
		for (; i + 1 < proc_maps__nr(maps); i++) {
			const struct proc_map *next = proc_maps__at(maps, i + 1);

			if (next->inode != map->inode || next->dev != map->dev || !next->offset)
				break;
			code |= !!(next->flags & PROC_MAP_EXEC);
			last = next;
		}
		if (!code)
			continue;
		mod = dwfl_report_module(u->dwfl, map->path, map->start, last->end);
		if (!mod)
			return -ENOMEM;
		dwfl_module_info(mod, &userdata, NULL, NULL, NULL, NULL, NULL, NULL);
		*userdata = u;
	}
	return dwfl_report_end(u->dwfl, NULL, NULL) ? -EINVAL : 0;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread_arg)
{
	struct inject_unwinder *u = arg;

	if (*thread_arg)
		return 0;
	*thread_arg = u;
	return u->r->tid;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread_arg)
{
	*thread_arg = arg;
	return true;
}

static bool read_word(Dwfl *dwfl, Dwarf_Addr at, Dwarf_Word *out, void *arg)
{
	const struct inject_unwinder *u = arg;

	if (at >= u->snapshot_at && at - u->snapshot_at + sizeof(*out) <= u->snapshot_bytes) {
		memcpy(out, u->snapshot + (at - u->snapshot_at), sizeof(*out));
		return true;
	}
	return !remote_read(u->t->pid, at, out, sizeof(*out));
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	const struct inject_unwinder *u = arg;
	const struct user_regs_struct *r = &u->r->regs;
	const Dwarf_Word words[DWARF_REGISTERS] = {
		r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp, r->r8,
		r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->rip,
	};

	return dwfl_thread_state_registers(thread, 0, DWARF_REGISTERS, words);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = read_word,
	.set_initial_registers = set_registers,
};

static int take_frame(Dwfl_Frame *frame, void *arg)
{
	struct inject_stack *s = arg;
	Dwarf_Addr pc;
	Dwarf_Word sp;
	bool exact;

	if (s->nr == sizeof(s->frames) / sizeof(s->frames[0]) || !dwfl_frame_pc(frame, &pc, &exact))
		return DWARF_CB_ABORT;
	s->frames[s->nr].pc = exact ? pc : pc - 1;
	s->frames[s->nr].signal = exact && s->nr;
	s->nr++;
	if (!dwfl_frame_reg(frame, DWARF_RSP, &sp))
		s->reached = sp;
	return DWARF_CB_OK;
}

static void take_snapshot(struct inject_unwinder *u)
{
	const struct proc_map *map = proc_maps__find(u->t->maps, u->r->regs.rsp);

	u->snapshot_bytes = 0;
	u->snapshot_at = u->r->regs.rsp;
	if (!map)
		return;
	u->snapshot_bytes = map->end - u->snapshot_at;
	if (u->snapshot_bytes > sizeof(u->snapshot))
		u->snapshot_bytes = sizeof(u->snapshot);
	if (remote_read(u->t->pid, u->snapshot_at, u->snapshot, u->snapshot_bytes))
		u->snapshot_bytes = 0;
}

void inject_unwinder__walk(struct inject_unwinder *u, const struct remote *r,
			   struct inject_stack *out)
{
	out->nr = 0;
	out->reached = r->regs.rsp;
	u->r = r;
	take_snapshot(u);
	out->whole = !dwfl_getthread_frames(u->dwfl, r->tid, take_frame, out);
	if (!out->nr) {
		out->frames[out->nr++] = (struct inject_frame_pc){.pc = r->regs.rip};
		out->whole = false;
	}
}

int inject_unwinder__open(const struct inject_target *t, struct inject_unwinder **out)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = find_elf,
		.find_debuginfo = find_no_debuginfo,
	};
	struct inject_unwinder *u = calloc(1, sizeof(*u));
	int err = -ENOMEM;

	if (!u)
		return err;
	u->t = t;
	u->dwfl = dwfl_begin(&callbacks);
	if (!u->dwfl)
		goto out;
	err = report_modules(u);
	if (!err && !dwfl_attach_state(u->dwfl, NULL, t->pid, &thread_callbacks, u))
		err = -EINVAL;
out:
	if (err)
		inject_unwinder__close(u);
	else
		*out = u;
	return err;
}

void inject_unwinder__close(struct inject_unwinder *u)
{
	if (!u)
		return;
	if (u->dwfl)
		dwfl_end(u->dwfl);
	free(u);
}
