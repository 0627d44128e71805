// SPDX-License-Identifier: BSD-2-Clause
/*
 * The functions are small, and compiled in one way only in all builds so far. Whatever looks
 * otherwise is refused.
 */
#include "capture/probe/sequence.h"

#include <errno.h>
#include <string.h>

#include "symbol/names/names.h"
#include "symbol/x86/x86.h"
#include "util/util.h"

#define MAX_BYTES 768 /* of a function that are looked at */
#define RDI 7

/* ---- one instruction ---- */

/* A walk through the instructions of a function, in the order of their addresses. */
struct walk {
	const uint8_t *code;
	size_t bytes, at;
	struct code_insn insn;
	const uint8_t *opcode; /* behind prefixes */
	bool wide;             /* 64 bits */
	uint8_t reg, rm;       /* registers of the ModRM byte, if there is one */
};

static bool is_prefix(uint8_t byte)
{
	return byte == 0x66 || byte == 0xf2 || byte == 0xf3;
}

/* False: there is no further instruction that is understood. */
static bool next(struct walk *w)
{
	uint8_t rex = 0, modrm;

	w->at += w->insn.length;
	if (w->at >= w->bytes || !code_insn_decode(w->code + w->at, w->bytes - w->at, &w->insn))
		return false;
	w->opcode = w->code + w->at;
	while (is_prefix(*w->opcode))
		w->opcode++;
	if ((*w->opcode & 0xf0) == 0x40)
		rex = *w->opcode++;
	w->wide = rex & 8;
	modrm = w->opcode[*w->opcode == 0x0f ? 2 : 1];
	w->reg = (uint8_t)((modrm >> 3 & 7) | (rex & 4) << 1);
	w->rm = (uint8_t)((modrm & 7) | (rex & 1) << 3);
	return true;
}

static struct walk walk_from(const uint8_t *code, size_t bytes)
{
	return (struct walk){.code = code, .bytes = bytes < MAX_BYTES ? bytes : MAX_BYTES};
}

/* lea NEAR(%rip), %rdi; the function that is called next gets that address. */
static bool sets_argument(const struct walk *w, uint64_t vaddr, uint64_t *address)
{
	if (*w->opcode != 0x8d || w->reg != RDI || w->insn.place != CODE_PLACE_RELATIVE)
		return false;
	*address = vaddr + w->at + w->insn.length + (uint64_t)(int64_t)w->insn.disp;
	return true;
}

/* mov $NUMBER of 64 bits, %register */
static bool is_number(const struct walk *w, uint64_t *number)
{
	if ((*w->opcode & 0xf8) != 0xb8 || !w->wide || w->insn.length != 10)
		return false;
	memcpy(number, w->opcode + 1, sizeof(*number));
	return true;
}

/* Reads memory at a register's content + a distance? */
static bool reads(const struct walk *w)
{
	return w->insn.memory == CODE_MEMORY_READ && w->insn.place < CODE_NR;
}

/* ---- variables of threads ---- */

/*
 * Walks to the call that gets a variable's address, and past it: the address is in rax then. A
 * variable that is initialized at its first use is asked for more than once.
 */
static bool to_variable(struct walk *w, uint64_t vaddr, uint64_t *index)
{
	bool set = false;

	while (next(w)) {
		if (sets_argument(w, vaddr, index))
			set = true;
		else if (w->insn.kind == CODE_CALL)
			return set;
		else if (w->insn.kind == CODE_RET || code_insn_written(&w->insn) >> RDI & 1)
			return false;
	}
	return false;
}

int sequence_variable(const uint8_t *code, size_t bytes, uint64_t vaddr,
		      struct sequence_variable *out)
{
	struct walk w = walk_from(code, bytes);

	if (!to_variable(&w, vaddr, &out->index) || !next(&w) || w.insn.kind != CODE_LOAD ||
	    w.insn.b != CODE_AX)
		return -ENOENT;
	out->disp = w.insn.value;
	return 0;
}

int sequence_variable_address(const uint8_t *code, size_t bytes, uint64_t vaddr,
			      struct sequence_variable *out)
{
	struct walk w = walk_from(code, bytes);
	bool known = false, set = false;
	uint64_t index = 0;
	int32_t number;

	/* what is in rax at the first return */
	while (next(&w) && w.insn.kind != CODE_RET) {
		if (sets_argument(&w, vaddr, &index)) {
			set = true;
		} else if (w.insn.kind == CODE_CALL) {
			known = set;
			set = false;
			*out = (struct sequence_variable){.index = index};
		} else if (w.insn.kind == CODE_LEA && w.insn.a == CODE_AX && w.insn.b == CODE_AX) {
			out->disp += w.insn.value;
		} else if (*w.opcode == 0x05 && w.wide) { /* add $NUMBER, %rax */
			memcpy(&number, w.opcode + 1, sizeof(number));
			out->disp += number;
		} else if (code_insn_written(&w.insn) & 1u << CODE_AX) {
			known = false;
		}
	}
	return known && w.insn.kind == CODE_RET ? 0 : -ENOENT;
}

/* Sets have some keys, of 64: is it the set, or its complement? */
static uint64_t the_set(uint64_t number)
{
	return __builtin_popcountll(number) > 32 ? ~number : number;
}

int sequence_flipped(const uint8_t *code, size_t bytes, uint64_t vaddr,
		     struct sequence_variable *out, uint64_t *flipped)
{
	struct walk w = walk_from(code, bytes);
	bool any = false;
	uint64_t number;

	if (!to_variable(&w, vaddr, &out->index))
		return -ENOENT;
	while (next(&w) && w.insn.kind != CODE_RET) {
		if (is_number(&w, &number)) {
			*flipped = the_set(number);
			any = true;
		} else if (*w.opcode == 0x33 && w.wide && reads(&w) && any) { /* xor */
			out->disp = w.insn.disp;
			return 0;
		}
	}
	return -ENOENT;
}

/* ---- fields ---- */

int sequence_bool(const uint8_t *code, size_t bytes, int32_t *off, uint8_t *bit)
{
	struct walk w = walk_from(code, bytes);
	bool called = false, loaded = false;

	while (next(&w) && w.insn.kind != CODE_RET) {
		if (w.insn.kind == CODE_CALL) {
			called = true;
		} else if (called && !loaded && w.opcode[0] == 0x0f && w.opcode[1] == 0xb6 &&
			   reads(&w) && w.insn.place == CODE_AX && w.reg == CODE_AX) {
			*off = w.insn.disp; /* movzbl */
			loaded = true;
		} else if (loaded && w.opcode[0] == 0x83 && w.reg == 4 && w.rm == CODE_AX) {
			*bit = w.opcode[2]; /* and */
			return __builtin_popcount(*bit) == 1 ? 0 : -ENOENT;
		} else if (loaded && code_insn_written(&w.insn) & 1u << CODE_AX) {
			return -ENOENT;
		}
	}
	return -ENOENT;
}

int sequence_tested(const uint8_t *code, size_t bytes, uint64_t *keys, int32_t *off)
{
	struct walk w = walk_from(code, bytes);
	int object = -1;
	bool any = false;

	while (next(&w) && w.insn.kind != CODE_RET) {
		if (is_number(&w, keys)) {
			any = true;
		} else if (w.insn.kind == CODE_LOAD && w.insn.b == RDI && !w.insn.value) {
			object = w.insn.a;
		} else if ((*w.opcode == 0x23 || *w.opcode == 0x85) && w.wide && reads(&w) &&
			   w.insn.place == object && any) { /* and, test */
			*off = w.insn.disp;
			return *off > 0 ? 0 : -ENOENT;
		}
	}
	return -ENOENT;
}

/* ---- the node ---- */

/* What a constructor has written to the object so far. */
struct written {
	uint64_t largest;       /* bit n: 8 bytes of ones at 8 × n */
	uint16_t objects;       /* registers that point to the object */
	uint64_t vector[16][2]; /* contents of vector registers … */
	uint16_t known;         /* … of which these are known */
};

static void write_word(struct written *o, int64_t off, uint64_t word)
{
	if (off >= 0 && off < 64 * 8 && !(off & 7) && word == UINT64_MAX)
		o->largest |= 1ull << off / 8;
}

/* Loads, clears and stores of vector registers; others are not understood. */
static void vector(struct written *o, const struct walk *w, const struct elffile *e, uint64_t vaddr)
{
	uint64_t from = vaddr + w->at + w->insn.length + (uint64_t)(int64_t)w->insn.disp;
	bool stores = w->opcode[1] == 0x11 || w->opcode[1] == 0x29 || w->opcode[1] == 0x7f;
	const uint8_t *bytes;
	size_t avail;

	if (!stores)
		o->known &= (uint16_t) ~(1u << w->reg);
	if (w->opcode[1] == 0x6f && w->insn.place == CODE_PLACE_RELATIVE &&
	    w->insn.memory == CODE_MEMORY_READ) { /* movdqa, movdqu */
		bytes = elffile__bytes(e, elffile__offset(e, from), 16, &avail);
		if (!bytes || avail < 16)
			return;
		memcpy(o->vector[w->reg], bytes, 16);
		o->known |= (uint16_t)(1u << w->reg);
	} else if (stores && w->insn.place < CODE_NR && o->objects >> w->insn.place & 1 &&
		   o->known >> w->reg & 1) { /* movups, movaps, movdqu */
		write_word(o, w->insn.disp, o->vector[w->reg][0]);
		write_word(o, (int64_t)w->insn.disp + 8, o->vector[w->reg][1]);
	}
}

static void look_at(struct written *o, const struct walk *w, const struct elffile *e,
		    uint64_t vaddr)
{
	bool of_object = w->insn.place < CODE_NR && o->objects >> w->insn.place & 1;
	int32_t number;

	if (w->opcode[0] == 0x0f)
		vector(o, w, e, vaddr);
	if (w->opcode[0] == 0xc7 && w->wide && of_object) { /* movq $NUMBER */
		memcpy(&number, w->code + w->at + w->insn.length - 4, sizeof(number));
		write_word(o, w->insn.disp, (uint64_t)(int64_t)number);
	}
	if (w->insn.kind == CODE_LEA && !w->insn.value && o->objects >> w->insn.b & 1)
		o->objects |= (uint16_t)(1u << w->insn.a);
	else
		o->objects &= (uint16_t)~code_insn_written(&w->insn);
}

/* Between the two are a number of levels, and a bool. */
#define NODE_NUMBER_TO_THREAD 24

int sequence_node(const struct elffile *e, const uint8_t *code, size_t bytes, uint64_t vaddr,
		  int32_t *number_off, int32_t *thread_off)
{
	struct walk w = walk_from(code, bytes);
	struct written o = {.objects = 1u << RDI};
	bool called = false;

	while (next(&w) && w.insn.kind != CODE_RET) {
		/* the result of a call goes to the object */
		if (called && w.insn.kind == CODE_STORE && w.insn.b == CODE_AX &&
		    o.objects >> w.insn.a & 1)
			break;
		if (w.insn.kind == CODE_CALL || w.insn.kind == CODE_CALL_INDIRECT) {
			called = w.insn.kind == CODE_CALL;
			/* it keeps these */
			o.objects &= 1u << CODE_BX | 1u << CODE_BP | 0xf000;
			continue;
		}
		called = called && !(code_insn_written(&w.insn) & 1u << CODE_AX);
		look_at(&o, &w, e, vaddr);
	}
	*thread_off = w.insn.value;
	*number_off = *thread_off - NODE_NUMBER_TO_THREAD;
	if (!called || *number_off <= 0 || *number_off >= 64 * 8 || *number_off & 7 ||
	    !(o.largest >> *number_off / 8 & 1))
		return -ENOENT;
	return 0;
}

/* ---- all of it ---- */

struct function {
	const struct elffile *file;
	const uint8_t *code;
	size_t bytes;
	uint64_t vaddr;
};

static bool find(const struct layout_env *env, const char *library, const char *symbol,
		 struct function *out)
{
	struct elffile_symbol s;

	for (size_t i = 0; i < env->nr; i++) {
		if (!catalog_match(library, env->names[i]) ||
		    elffile__symbol(env->files[i], symbol, &s) || !s.function)
			continue;
		out->file = env->files[i];
		out->vaddr = s.vaddr;
		out->code = elffile__bytes(env->files[i], elffile__offset(env->files[i], s.vaddr),
					   s.size, &out->bytes);
		return out->code;
	}
	return false;
}

/*
 * The keys of autograd: three that follow each other, behind one that tensors have which can be
 * changed in place. Where the build itself has the set of the three, they must be the same.
 */
static int learn_keys(const struct catalog_sequence *s, const struct layout_env *env,
		      struct sequence_layout *out)
{
	uint64_t tested, all, low;
	struct function f;
	struct walk w;
	int32_t off;

	if (!find(env, s->numbers_library, s->without_keys, &f) ||
	    sequence_tested(f.code, f.bytes, &tested, &off))
		return -ENOENT;
	low = tested & -tested;
	if (tested / low != 0xf)
		return -ENOENT;
	out->wire.tensor_keys_off = (uint32_t)off;
	out->wire.autograd = tested & ~low;
	if (find(env, s->numbers_library, s->with_keys, &f)) {
		w = walk_from(f.code, f.bytes);
		return next(&w) && is_number(&w, &all) && all == out->wire.autograd ? 0 : -ENOENT;
	}
	out->wire.above = ~(tested | (low - 1));
	return find(env, s->numbers_library, s->with_key, &f) ? 0 : -ENOENT;
}

static int learn_numbers(const struct catalog_sequence *s, const struct layout_env *env,
			 struct sequence_layout *out)
{
	int32_t number_off, thread_off;
	struct function f;

	if (!find(env, s->numbers_library, s->next, &f) ||
	    sequence_variable(f.code, f.bytes, f.vaddr, &out->next) ||
	    !find(env, s->numbers_library, s->thread, &f) ||
	    sequence_variable(f.code, f.bytes, f.vaddr, &out->thread) ||
	    !find(env, s->numbers_library, s->largest_node, &f) ||
	    sequence_node(f.file, f.code, f.bytes, f.vaddr, &number_off, &thread_off))
		return -ENOENT;
	out->wire.node_next_off = (uint32_t)number_off;
	out->wire.node_thread_off = (uint32_t)thread_off;
	return 0;
}

static int learn_state(const struct catalog_sequence *s, const struct layout_env *env,
		       struct sequence_layout *out)
{
	struct kprof_wire_sequence *to = &out->wire;
	struct function f;
	int32_t off;
	uint8_t bit;

	if (!find(env, s->state_library, s->state, &f) ||
	    sequence_variable_address(f.code, f.bytes, f.vaddr, &out->grad) ||
	    !find(env, s->state_library, s->grad, &f) ||
	    sequence_bool(f.code, f.bytes, &off, &bit) ||
	    !find(env, s->state_library, s->included, &f) ||
	    sequence_flipped(f.code, f.bytes, f.vaddr, &out->included, &to->included_flipped) ||
	    !find(env, s->state_library, s->excluded, &f) ||
	    sequence_flipped(f.code, f.bytes, f.vaddr, &out->excluded, &to->excluded_flipped))
		return -ENOENT;
	out->grad.disp += off;
	to->grad_bit = bit;
	return 0;
}

int sequence_learn(const struct catalog_sequence *s, const struct layout_env *env,
		   struct sequence_layout *out)
{
	int err;

	*out = (struct sequence_layout){0};
	err = learn_keys(s, env, out);
	if (!err)
		err = learn_numbers(s, env, out);
	return err ? err : learn_state(s, env, out);
}

/* ---- one probe ---- */

/* Arguments in registers count from 1 on. */
static bool in_registers(const struct kprof_input *in, unsigned int nr)
{
	return in->at + nr <= KPROF_INPUTS_REGISTERS;
}

uint64_t sequence_by_tensors(const struct signature *s, bool whole)
{
	const uint64_t maybe = KPROF_COOKIE_SEQUENCE(KPROF_SEQUENCE_MAYBE, 0);
	uint64_t found = 0;
	bool any = !whole;

	if (s->guessed)
		return maybe;
	/* the first tensor that is always there, or else the first list */
	for (unsigned int i = 0; i < s->plan.nr; i++) {
		const struct kprof_input *in = &s->plan.in[i];
		uint64_t arg = in->at + 1;

		switch (in->read) {
		case KPROF_INPUT_TENSOR:
			if (in_registers(in, 1))
				return KPROF_COOKIE_SEQUENCE(KPROF_SEQUENCE_TENSOR, arg);
			break;
		case KPROF_INPUT_TENSORS:
			if (!found && in_registers(in, 2))
				found = KPROF_COOKIE_SEQUENCE(KPROF_SEQUENCE_TENSORS, arg);
			break;
		case KPROF_INPUT_TENSOR_LIST_REF:
			if (!found && in_registers(in, 1))
				found = KPROF_COOKIE_SEQUENCE(KPROF_SEQUENCE_LIST_REF, arg);
			break;
		case KPROF_INPUT_TENSOR_AFTER_FLAG:
		case KPROF_INPUT_TENSOR_BEFORE_FLAG:
		case KPROF_INPUT_TENSOR_VECTOR:
			break;
		default:
			continue;
		}
		any = true;
	}
	return found ? found : any ? maybe : 0;
}

/* ---- one process ---- */

/* The two words that the dynamic linker has set: the module, and the variable's offset in it. */
static int resolve(struct target *t, uint64_t bias, const struct sequence_variable *v,
		   uint64_t *module, uint64_t *off)
{
	uint64_t words[2];
	int err = target__read(t, words, sizeof(words), bias + v->index);

	if (err)
		return err;
	/* the first variable says the module, the others must be in the same */
	if (!words[0] || words[0] >> 16 || words[1] >> 32 || (*module && *module != words[0]))
		return -ENOENT;
	*module = words[0];
	*off = words[1] + (uint64_t)v->disp;
	return 0;
}

/* What is to be added to the addresses of a library. map: its first mapping */
static uint64_t bias_of(const struct elffile *e, const struct proc_map *map)
{
	return map->start - elffile__vaddr(e, map->offset);
}

int sequence_of(struct target *t, const struct sequence_layout *layout,
		const struct elffile *numbers, const struct proc_map *numbers_map,
		const struct elffile *state, const struct proc_map *state_map,
		struct kprof_wire_sequence *out)
{
	uint64_t bias = bias_of(numbers, numbers_map);
	int err;

	*out = layout->wire;
	err = resolve(t, bias, &layout->next, &out->numbers_module, &out->next_off);
	if (!err)
		err = resolve(t, bias, &layout->thread, &out->numbers_module, &out->thread_off);
	bias = bias_of(state, state_map);
	if (!err)
		err = resolve(t, bias, &layout->grad, &out->state_module, &out->grad_off);
	if (!err)
		err = resolve(t, bias, &layout->included, &out->state_module, &out->included_off);
	if (!err)
		err = resolve(t, bias, &layout->excluded, &out->state_module, &out->excluded_off);
	return err;
}
