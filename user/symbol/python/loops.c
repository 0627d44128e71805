// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which instructions of a code object lie in a loop: the only ones that one call executes several
 * times.
 *
 * Up to 3.10, every jump backwards is one. From 3.11 on the interpreter changes instructions while
 * it runs them and keeps data between them, so that the code can not be read from its beginning. A
 * `for` loop is recognized wherever it is: by the jump at its end, which leads to an instruction
 * that leads to behind the jump. Loops with `while` are not recognized there.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/python/priv.h"
#include "util/util.h"

#define MAX_CODE_BYTES (1u << 18)
#define MAX_LOOPS 256
#define MAX_PREFIXES 3
#define CODE_AFTER_FIRSTLINE 8 /* up to 3.10: from co_firstlineno to co_code */
#define OB_SIZE 16             /* PyVarObject */
#define OB_SIZE_FREE_THREADED 32

/* Opcodes: Include/opcode.h up to 3.12, Include/opcode_ids.h from 3.13 on. */
static const struct loop_opcodes {
	uint32_t minor;
	uint8_t prefix[2]; /* EXTENDED_ARG and its other form; 0: no more */
	uint8_t jump[3];   /* JUMP_BACKWARD and its forms; 0: no more */
	uint8_t head[6];   /* FOR_ITER and its forms; 0: no more; none: not all are known */
	uint8_t jump_data, head_data; /* code units with data behind both */
} releases[] = {
	{11, {144, 34}, {140, 38}, {93}, 0, 0},
	{12, {144}, {140, 246}, {93, 62, 63, 64, 65, 248}, 0, 1},
	{13, {71}, {77, 249}, {72, 187, 188, 189, 190, 243}, 1, 1},
	{14, {69}, {75, 175, 176}, {0}, 1, 1},
};

/* Up to 3.10. */
enum {
	JUMP_IF_FALSE_OR_POP = 111,
	POP_JUMP_IF_TRUE = 115, /* and those between, of which JUMP_ABSOLUTE is one */
	EXTENDED_ARG = 144,
};

static int add_loop(struct python_code *c, uint32_t start, uint32_t end)
{
	struct python_loop *more;

	if (c->nr_loops == MAX_LOOPS)
		return 0;
	more = reallocarray(c->loops, c->nr_loops + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	c->loops = more;
	more[c->nr_loops++] = (struct python_loop){start, end};
	return 0;
}

static int find_jumps(struct python_code *c, const uint8_t *code, uint32_t bytes)
{
	uint32_t arg = 0;
	int err = 0;

	for (uint32_t at = 0; at + 2 <= bytes && !err; at += 2) {
		arg |= code[at + 1];
		if (code[at] == EXTENDED_ARG) {
			arg <<= 8;
			continue;
		}
		if (c->minor >= 10)
			arg *= 2;
		if (code[at] >= JUMP_IF_FALSE_OR_POP && code[at] <= POP_JUMP_IF_TRUE && arg <= at)
			err = add_loop(c, arg, at + 2);
		arg = 0;
	}
	return err;
}

/* Whether an opcode is one of a list, of which 0 is none. */
static bool is_one_of(uint8_t code, const uint8_t *list, size_t nr)
{
	return code && memchr(list, code, nr);
}

/*
 * The argument of the instruction in unit *at. forward: *at may be the first prefix, and becomes
 * the instruction itself; otherwise prefixes precede it.
 */
static uint32_t argument(const struct loop_opcodes *o, const uint8_t *code, uint32_t nr,
			 uint32_t *at, bool forward)
{
	uint32_t first = *at, arg = 0;

	if (forward)
		while (*at + 1 < nr && *at - first < MAX_PREFIXES &&
		       is_one_of(code[*at * 2], o->prefix, sizeof(o->prefix)))
			++*at;
	else
		while (first && *at - first < MAX_PREFIXES &&
		       is_one_of(code[(first - 1) * 2], o->prefix, sizeof(o->prefix)))
			first--;
	for (uint32_t i = first; i <= *at; i++)
		arg = arg << 8 | code[i * 2 + 1];
	return arg;
}

/* Whether the jump in a unit closes a `for` loop, and where that begins. */
static bool closes_for(const struct loop_opcodes *o, const uint8_t *code, uint32_t nr,
		       uint32_t jump, uint32_t *start)
{
	uint64_t after = (uint64_t)jump + 1 + o->jump_data, end;
	uint32_t back = argument(o, code, nr, &jump, false), head;

	if (back < 2 || back > after || after > nr)
		return false;
	head = *start = (uint32_t)(after - back);
	end = argument(o, code, nr, &head, true);
	end += (uint64_t)head + 1 + o->head_data;
	if (head >= jump)
		return false;
	if (!o->head[0])
		return end == after;
	return is_one_of(code[head * 2], o->head, sizeof(o->head)) && end >= after && end <= nr;
}

static int find_for(struct python_code *c, const uint8_t *code, uint32_t nr)
{
	const struct loop_opcodes *o = NULL;
	uint32_t start;
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(releases); i++)
		if (releases[i].minor == c->minor)
			o = &releases[i];
	for (uint32_t at = 0; o && at < nr && !err; at++) {
		if (is_one_of(code[at * 2], o->jump, sizeof(o->jump)) &&
		    closes_for(o, code, nr, at, &start))
			err = add_loop(c, start * 2, at * 2 + 2);
	}
	return err;
}

int python_code__find_loops(struct python_code *c, const uint8_t *code, uint32_t bytes)
{
	return c->minor <= 10 ? find_jumps(c, code, bytes) : find_for(c, code, bytes / 2);
}

/* Where the instructions are. */
static int find_code(const struct kprof_python *p, const struct python_memory *m, uint64_t address,
		     uint64_t *code, uint64_t *bytes)
{
	uint64_t object = 0;

	if (p->code_instrs != KPROF_PYTHON_NONE) {
		*code = address + p->code_instrs;
		if (m->read(m->ctx, bytes, 8,
			    address + (p->flags & KPROF_PYTHON_FREE_THREADED ? OB_SIZE_FREE_THREADED
									     : OB_SIZE)))
			return -EFAULT;
		*bytes = *bytes > MAX_CODE_BYTES ? *bytes : *bytes * 2;
		return 0;
	}
	if (m->read(m->ctx, &object, 8, address + p->code_firstlineno + CODE_AFTER_FIRSTLINE) ||
	    m->read(m->ctx, bytes, 8, object + p->bytes_length))
		return -EFAULT;
	*code = object + p->bytes_value;
	return 0;
}

int python_code__read_loops(const struct kprof_python *p, const struct python_memory *m,
			    uint64_t address, struct python_code *c)
{
	uint64_t code = 0, bytes = 0;
	uint8_t *copy;
	int err = find_code(p, m, address, &code, &bytes);

	if (!err && m->read(m->ctx, &c->flags, 4, address + p->code_flags))
		err = -EFAULT;
	if (err || bytes > MAX_CODE_BYTES)
		return err;
	copy = malloc((size_t)bytes + 1);
	if (!copy)
		return -ENOMEM;
	err = m->read(m->ctx, copy, (size_t)bytes, code) ? -EFAULT : 0;
	if (!err)
		err = python_code__find_loops(c, copy, (uint32_t)bytes);
	free(copy);
	return err;
}

int32_t python_code__loop(const struct python_code *c, int32_t instr)
{
	int32_t begin = -1;

	for (size_t i = 0; i < c->nr_loops; i++)
		if (instr >= 0 && (uint32_t)instr >= c->loops[i].start &&
		    (uint32_t)instr < c->loops[i].end &&
		    (begin < 0 || c->loops[i].start < (uint32_t)begin))
			begin = (int32_t)c->loops[i].start;
	return begin;
}
