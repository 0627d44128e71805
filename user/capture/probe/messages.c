// SPDX-License-Identifier: BSD-2-Clause
#include "capture/probe/messages.h"

#include <errno.h>
#include <string.h>

#include "symbol/x86/x86.h"

#define MAX_BYTES 512
enum { RSI = 6, RDI = 7 };

#define KEPT_BY_CALL (1u << CODE_BX | 1u << CODE_BP | 0xf000u)

/* ---- code ---- */

/* Up to two loads in a row, and a store of what the last one has loaded. */
struct chain {
	uint16_t object, to; /* registers that have the arguments */
	int32_t off[2];
	unsigned int loads, reg;
};

/* movl register, (one of `to`)? */
static bool stores(const uint8_t *code, const struct code_insn *insn, const struct chain *c)
{
	size_t at = (code[0] & 0xf0) == 0x40; /* REX: of no use where a low register is stored */

	return !at && code[0] == 0x89 && (code[1] >> 3 & 7u) == c->reg && insn->place < CODE_NR &&
	       c->to >> insn->place & 1 && !insn->disp && insn->memory == CODE_MEMORY_WRITTEN;
}

static uint16_t still(const struct code_insn *insn, uint16_t held)
{
	bool copied = insn->kind == CODE_LEA && !insn->value && held >> insn->b & 1;

	held &= (uint16_t)~code_insn_written(insn);
	return copied ? held | (uint16_t)(1u << insn->a) : held;
}

/* Returns whether the chain is complete. */
static bool step(const uint8_t *code, const struct code_insn *insn, struct chain *c,
		 unsigned int loads)
{
	bool load = insn->copies && insn->from == CODE_NR && insn->memory == CODE_MEMORY_READ &&
		    insn->to < 8 && insn->place < CODE_NR && insn->disp > 0;

	if (c->loads == loads && stores(code, insn, c))
		return true;
	if (load && c->object >> insn->place & 1) {
		c->off[0] = insn->disp;
		c->reg = insn->to;
		c->loads = 1;
	} else if (load && c->loads == 1 && insn->place == c->reg) {
		c->off[1] = insn->disp;
		c->reg = insn->to;
		c->loads = 2;
	} else {
		c->loads = 0;
	}
	c->object = still(insn, c->object);
	c->to = still(insn, c->to);
	return false;
}

/* What is known where a conditional jump leads to. */
#define MAX_TARGETS 16
struct targets_of_jumps {
	size_t nr;
	struct {
		size_t at;
		uint16_t object, to;
	} list[MAX_TARGETS];
};

static void note_jump(struct targets_of_jumps *t, size_t to, const struct chain *c)
{
	if (t->nr < MAX_TARGETS) {
		t->list[t->nr].at = to;
		t->list[t->nr].object = c->object;
		t->list[t->nr++].to = c->to;
	}
}

/* reached: whether the instruction before leads here. Returns whether anything does. */
static bool arrive(const struct targets_of_jumps *t, size_t at, bool reached, struct chain *c)
{
	for (size_t i = 0; i < t->nr; i++) {
		if (t->list[i].at != at)
			continue;
		c->object = t->list[i].object & (reached ? c->object : UINT16_MAX);
		c->to = t->list[i].to & (reached ? c->to : UINT16_MAX);
		c->loads = 0;
		reached = true;
	}
	return reached;
}

static int find_chain(const uint8_t *code, size_t bytes, unsigned int loads, struct chain *c)
{
	struct targets_of_jumps targets = {0};
	struct code_insn insn;
	bool reached = true;

	*c = (struct chain){.object = 1u << RDI, .to = 1u << RSI};
	for (size_t at = 0;
	     at < bytes && at < MAX_BYTES && code_insn_decode(code + at, bytes - at, &insn);
	     at += insn.length) {
		reached = arrive(&targets, at, reached, c);
		if (!reached)
			continue;
		if (insn.kind == CODE_CALL || insn.kind == CODE_CALL_INDIRECT) {
			c->object &= KEPT_BY_CALL;
			c->to &= KEPT_BY_CALL;
		}
		if (step(code + at, &insn, c, loads))
			return 0;
		if (insn.kind == CODE_JCC)
			note_jump(&targets, at + insn.length + (size_t)insn.value, c);
		reached = insn.kind != CODE_JMP && insn.kind != CODE_JMP_INDIRECT &&
			  insn.kind != CODE_RET && insn.kind != CODE_STOP;
	}
	return -ENOENT;
}

int messages_number(const uint8_t *code, size_t bytes, int32_t *off)
{
	struct chain c;
	int err = find_chain(code, bytes, 1, &c);

	if (!err)
		*off = c.off[0];
	return err;
}

int messages_number_of(const uint8_t *code, size_t bytes, int32_t *pointer_off, int32_t *off)
{
	struct chain c;
	int err = find_chain(code, bytes, 2, &c);

	if (err)
		return err;
	*pointer_off = c.off[0];
	*off = c.off[1];
	return 0;
}

/* ---- files ---- */

static const uint8_t *bytes_of(const struct elffile *file, const char *name, size_t *bytes)
{
	struct elffile_symbol found;

	if (elffile__symbol(file, name, &found))
		return NULL;
	return elffile__bytes(file, elffile__offset(file, found.vaddr), found.size, bytes);
}

/* Where a type that is defined in the file has its name. 0: there is none. */
static int32_t name_in(const struct elffile *file)
{
	size_t bytes = 0;
	const uint8_t *type = bytes_of(file, CATALOG_MESSAGE_A_TYPE, &bytes), *name;

	name = type ? memmem(type, bytes, CATALOG_MESSAGE_A_TYPE_NAME,
			     sizeof(CATALOG_MESSAGE_A_TYPE_NAME))
		    : NULL;
	return name ? (int32_t)(name - type) : 0;
}

static void learn(const struct layout_env *env, const char *library, struct messages_layout *out)
{
	for (size_t i = 0; i < env->nr && !out->objects; i++) {
		struct elffile *file = env->files[i];
		const uint8_t *code;
		size_t bytes;

		if (!catalog_match(library, env->names[i]))
			continue;
		out->name_off = name_in(file);
		out->objects = out->name_off > 0 && out->name_off <= UINT16_MAX - 8;
		if (!out->objects)
			continue;
		code = bytes_of(file, CATALOG_MESSAGE_RANK, &bytes);
		if (!code || messages_number(code, bytes, &out->rank_off) ||
		    out->rank_off > UINT16_MAX)
			out->rank_off = 0;
		code = bytes_of(file, CATALOG_MESSAGE_SIZE, &bytes);
		if (!code || messages_number_of(code, bytes, &out->group_off, &out->size_off) ||
		    out->size_off > UINT16_MAX)
			out->group_off = 0;
	}
}

/* ---- recipes ---- */

/* A field of the object that the argument is the address of. */
static struct kprof_arg inside(struct kprof_arg arg, int32_t off)
{
	if (!arg.reg)
		return arg;
	if (arg.deref)
		arg.last_off = (uint16_t)off;
	else
		arg.off = off;
	arg.deref++;
	return arg;
}

void messages_fill(const struct layout_env *env, const struct catalog_row *row,
		   struct messages_layout *layout, struct kprof_wire_probe *out)
{
	struct kprof_arg *args = out->args, comm = args[MESSAGE_ARG_COMM];

	if (!layout->looked)
		learn(env, row->library, layout);
	layout->looked = true;
	if (!layout->objects)
		return;
	args[MESSAGE_ARG_TYPE_REST] = inside(args[MESSAGE_ARG_TYPE], layout->name_off + 8);
	args[MESSAGE_ARG_TYPE] = inside(args[MESSAGE_ARG_TYPE], layout->name_off);
	args[MESSAGE_ARG_REDUCTION] =
		inside(args[MESSAGE_ARG_REDUCTION], CATALOG_MESSAGE_REDUCTION_NAME);
	if (layout->rank_off)
		args[MESSAGE_ARG_RANK] = inside(comm, layout->rank_off);
	if (!layout->group_off || !comm.reg || comm.deref)
		return;
	args[MESSAGE_ARG_SIZE] = (struct kprof_arg){.reg = comm.reg,
						    .deref = 2,
						    .off = layout->group_off,
						    .last_off = (uint16_t)layout->size_off};
}
