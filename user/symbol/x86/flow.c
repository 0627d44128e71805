// SPDX-License-Identifier: BSD-2-Clause
/*
 * A function's instructions are decoded once. Only those that matter are kept, a few per cent in
 * arithmetic kernels. Passes over these in order of address propagate states, also to the labels
 * that branches lead to, until the states at all labels stay the same. Mostly one pass is enough.
 */
#include <errno.h>
#include <stdlib.h>

#include "symbol/x86/state.h"
#include "util/util.h"

#define MAX_PASSES 12
/* Functions with more labels get no rows. A label takes half a kilobyte. */
#define MAX_LABELS 65536

#define OUTSIDE (-1)

struct op {
	uint32_t at;           /* offset in the function */
	struct code_insn insn; /* in branches, .value is the target's offset, or OUTSIDE */
};

struct row {
	uint32_t at;
	struct kprof_unwind_rule rule;
};

/* What is known of 64 offsets in the function, a bit for each. */
struct offsets {
	uint64_t marks;  /* labels */
	uint64_t starts; /* instructions begin here */
	uint32_t before; /* how many labels precede these offsets */
};

struct label {
	uint32_t at;
	struct code_state state;
};

struct code_flow {
	struct op *ops;
	size_t nr_ops, cap_ops;
	struct offsets *offsets;
	size_t cap_offsets;
	bool holds_data; /* the function refers to data among its code */
	struct label *labels;
	size_t nr_labels, cap_labels;
	struct row *rows;
	size_t nr_rows, cap_rows;
	uint32_t bytes;
	bool after_end; /* while decoding: only padding came since the end of a path */
	/* while decoding: no label came since the end of a path, so this may not be code */
	bool astray;
	void (*watch)(void *ctx, uint32_t offset, const struct code_state *s);
	void *watch_ctx;

	/* State of a pass. */
	struct code_state now;
	bool after_call;
	bool ended; /* the path has ended, and only padding came since */
	/* the state of a label before this place has changed: another pass is needed */
	bool changed;
	/*
	 * The state at the targets of indirect jumps within the function; .trust is CODE_NOWHERE if
	 * there are none.
	 */
	struct code_state indirect;
	bool wrong, weak_wrong; /* a return with another stack pointer than at entry */
	bool guessed, returns;
	int err;
};

static int grow(void **array, size_t *cap, size_t nr, size_t bytes)
{
	size_t more = *cap ? *cap : 256;
	void *bigger;

	if (nr <= *cap)
		return 0;
	while (more < nr)
		more *= 2;
	bigger = reallocarray(*array, more, bytes);
	if (!bigger)
		return -ENOMEM;
	*array = bigger;
	*cap = more;
	return 0;
}

/* ---- decoding ---- */

/* Sets a branch's target to an offset in the function, or to OUTSIDE. */
static void resolve(struct code_flow *f, struct op *op)
{
	int64_t target = (int64_t)op->at + op->insn.length + op->insn.value;

	op->insn.value = OUTSIDE;
	if (target < 0 || target >= f->bytes)
		return;
	/* A call to the next instruction is used to push that instruction's address. */
	if (op->insn.kind == CODE_CALL && target == op->at + op->insn.length) {
		op->insn.kind = CODE_PUSH_OTHER;
		return;
	}
	op->insn.value = (int32_t)target;
	f->offsets[target >> 6].marks |= 1ull << (target & 63);
}

static bool ends_path(const struct code_insn *insn)
{
	return insn->kind == CODE_JMP || insn->kind == CODE_JMP_INDIRECT ||
	       insn->kind == CODE_RET || insn->kind == CODE_STOP;
}

/* Notes tables or constants among the code: what follows the end of a path may then be data. */
static void note_data(struct code_flow *f, const struct op *op, uint64_t vaddr)
{
	uint64_t place = (uint64_t)(int64_t)op->insn.disp;

	if (!op->insn.memory)
		return;
	if (op->insn.place == CODE_PLACE_RELATIVE)
		place += op->at + op->insn.length;
	else if (op->insn.place == CODE_PLACE_ABSOLUTE)
		place -= vaddr;
	else
		return;
	if (place < f->bytes)
		f->holds_data = true;
}

/* Whether an earlier branch leads into the middle of this instruction, to which nothing leads. */
static bool cut_short(struct code_flow *f, struct op *op)
{
	for (uint32_t at = op->at + 1; at < op->at + op->insn.length; at++) {
		if (f->offsets[at >> 6].marks >> (at & 63) & 1) {
			op->insn = (struct code_insn){.length = (uint8_t)(at - op->at),
						      .kind = CODE_STOP};
			return true;
		}
	}
	return false;
}

/*
 * Whether the jump's target is a sum, of an address and a distance from an array. Compilers jump to
 * other functions without such additions, so this jump stays within the function.
 */
static bool by_distance(const struct code_flow *f, const struct op *op)
{
	const struct op *before = f->nr_ops ? &f->ops[f->nr_ops - 1] : NULL;

	return before && before->insn.kind == CODE_ADD &&
	       before->at + before->insn.length == op->at && before->insn.writes >> op->insn.b & 1;
}

static int decode_one(struct code_flow *f, struct op *op, const struct code_function *function)
{
	size_t left = f->bytes - op->at;

	if (!code_insn_decode(function->code + op->at, left, &op->insn))
		op->insn = (struct code_insn){.length = 1, .kind = CODE_STOP};
	if (f->astray)
		f->astray =
			!(f->offsets[op->at >> 6].marks >> (op->at & 63) & 1) && !cut_short(f, op);
	note_data(f, op, function->vaddr);
	f->offsets[op->at >> 6].starts |= 1ull << (op->at & 63);
	if (op->insn.kind == CODE_CALL || op->insn.kind == CODE_JMP || op->insn.kind == CODE_JCC)
		resolve(f, op);
	if (op->insn.kind == CODE_JMP_INDIRECT && by_distance(f, op))
		op->insn.a = true;
	/* After the end of a path, the first instruction is kept, whatever it does. */
	if (op->insn.kind == CODE_PADDING ||
	    (op->insn.kind == CODE_OTHER && !op->insn.writes && !f->after_end))
		return 0;
	f->after_end = ends_path(&op->insn);
	f->astray |= f->after_end;
	if (vec_grow((void **)&f->ops, &f->cap_ops, f->nr_ops, sizeof(*op)))
		return -ENOMEM;
	f->ops[f->nr_ops++] = *op;
	return 0;
}

static int decode(struct code_flow *f, const struct code_function *function)
{
	struct op op = {0};
	int err = 0;

	f->nr_ops = 0;
	f->astray = f->after_end = f->holds_data = false;
	for (; op.at < f->bytes && !err; op.at += op.insn.length)
		err = decode_one(f, &op, function);
	return err;
}

/*
 * Whether all labels are at the beginning of an instruction, or, unless the function is a guess,
 * after an instruction's prefix (a lock that is jumped over). Otherwise the decoding was out of
 * step with the execution.
 */
static bool in_step(const struct code_flow *f, const struct code_function *function)
{
	for (size_t w = 0; w < (f->bytes + 63) / 64; w++) {
		for (uint64_t odd = f->offsets[w].marks & ~f->offsets[w].starts; odd;
		     odd &= odd - 1) {
			size_t at = w * 64 + (unsigned int)__builtin_ctzll(odd), end;
			struct code_insn insn;

			if (f->guessed ||
			    !code_insn_decode(function->code + at, f->bytes - at, &insn))
				return false;
			end = at + insn.length;
			if (end < f->bytes && !(f->offsets[end >> 6].starts >> (end & 63) & 1))
				return false;
		}
	}
	return true;
}

static int number_labels(struct code_flow *f)
{
	size_t words = (f->bytes + 63) / 64, nr = 0;
	int err;

	for (size_t w = 0; w < words; w++) {
		f->offsets[w].before = (uint32_t)nr;
		nr += (size_t)__builtin_popcountll(f->offsets[w].marks);
	}
	if (nr > MAX_LABELS)
		return CODE_FLOW_TOO_BIG;
	f->nr_labels = nr;
	err = grow((void **)&f->labels, &f->cap_labels, nr, sizeof(*f->labels));
	if (err)
		return err;
	nr = 0;
	for (size_t w = 0; w < words; w++)
		for (uint64_t bits = f->offsets[w].marks; bits; bits &= bits - 1)
			f->labels[nr++].at =
				(uint32_t)(w * 64 + (unsigned int)__builtin_ctzll(bits));
	for (size_t i = 0; i < nr; i++)
		f->labels[i].state.trust = CODE_NOWHERE;
	return 0;
}

static size_t label_number(const struct code_flow *f, uint32_t at)
{
	uint64_t below = f->offsets[at >> 6].marks & ((1ull << (at & 63)) - 1);

	return f->offsets[at >> 6].before + (size_t)__builtin_popcountll(below);
}

/* ---- a pass ---- */

static bool same_depth(const struct code_state *a, const struct code_state *b)
{
	return code_value_equal(&a->reg[CODE_SP], &b->reg[CODE_SP]);
}

/*
 * A path reaches a label: its state is merged with the label's. A path that may not exist (after a
 * call that may not return, after a jump table) does not override one that does. True: the label's
 * state has changed.
 */
static bool join(struct code_state *label, const struct code_state *from, uint8_t trust)
{
	if (!trust)
		return false;
	if (!label->trust || (label->trust < trust && !same_depth(label, from))) {
		*label = *from;
		label->trust = trust;
		return true;
	}
	if (trust < label->trust && !same_depth(label, from))
		return false;
	if (label->trust < trust) {
		label->trust = trust;
		code_state_merge(label, from);
		return true;
	}
	return code_state_merge(label, from);
}

static void branch(struct code_flow *f, const struct op *op, const struct code_state *from)
{
	bool changed;

	if (op->insn.value == OUTSIDE)
		return;
	changed = join(&f->labels[label_number(f, (uint32_t)op->insn.value)].state, from,
		       from->trust);
	if (changed && (uint32_t)op->insn.value <= op->at)
		f->changed = true;
}

static void emit(struct code_flow *f, uint32_t at)
{
	struct row row = {.at = at};

	if (at >= f->bytes || f->err)
		return;
	if (f->watch)
		f->watch(f->watch_ctx, at, &f->now);
	code_state_rule(&f->now, &row.rule);
	if (f->now.trust == CODE_WEAK && f->weak_wrong)
		row.rule = (struct kprof_unwind_rule){.how = KPROF_UNWIND_UNKNOWN};
	/*
	 * Of two rows at one place the later one is valid. A label may be within the preceding
	 * instruction.
	 */
	while (f->nr_rows && f->rows[f->nr_rows - 1].at >= at)
		f->nr_rows--;
	if (f->nr_rows && !memcmp(&f->rows[f->nr_rows - 1].rule, &row.rule, sizeof(row.rule)))
		return;
	f->err = vec_grow((void **)&f->rows, &f->cap_rows, f->nr_rows, sizeof(row));
	if (!f->err)
		f->rows[f->nr_rows++] = row;
}

static void arrive(struct code_flow *f, size_t label)
{
	uint8_t trust = f->now.trust;

	if (trust && f->after_call)
		trust = CODE_WEAK;
	join(&f->labels[label].state, &f->now, trust);
	if (f->labels[label].state.trust)
		f->now = f->labels[label].state;
	f->after_call = f->ended = false;
	emit(f, f->labels[label].at);
}

static void end_path(struct code_flow *f, const struct op *op)
{
	f->now.trust = CODE_NOWHERE;
	f->ended = true;
	emit(f, op->at + op->insn.length);
}

/*
 * After the end of a path, at an instruction that no branch leads to: an indirect jump may lead
 * here.
 */
static void go_on(struct code_flow *f, const struct op *op)
{
	f->ended = false;
	if (!f->indirect.trust || f->holds_data)
		return;
	f->now = f->indirect;
	f->now.trust = CODE_WEAK;
	emit(f, op->at);
}

/*
 * Whether the stack is as at the function's entry. A jump through a register may then be a tail
 * call to another function, so that its target is not in this one.
 */
static bool as_entered(const struct code_state *s)
{
	const struct code_value *sp = &s->reg[CODE_SP];

	return sp->kind == CODE_FRAME && sp->offset == -8;
}

static bool callers(const struct code_state *s, int reg)
{
	return s->reg[reg].kind == CODE_CALLERS && s->reg[reg].offset == reg;
}

static void note_wrong(struct code_flow *f)
{
	if (f->now.trust == CODE_STRONG || f->guessed)
		f->wrong = true;
	else if (!f->weak_wrong)
		f->weak_wrong = f->changed = true;
}

/* Checks a path that leaves the function, by a return or a tail call. */
static void check_leave(struct code_flow *f)
{
	if (!as_entered(&f->now) || !callers(&f->now, CODE_BP) || !callers(&f->now, CODE_BX))
		note_wrong(f);
}

static void check_return(struct code_flow *f)
{
	if (f->guessed)
		check_leave(f);
	else if (f->now.reg[CODE_SP].kind == CODE_FRAME && !as_entered(&f->now))
		note_wrong(f);
	f->returns |= f->now.trust == CODE_STRONG;
}

/* Checks that only apply to guessed functions. after_call: the instruction may never be reached. */
static void check_guess(struct code_flow *f, const struct op *op, bool after_call)
{
	switch (op->insn.kind) {
	case CODE_JMP:
	case CODE_JCC:
		if (op->insn.value == OUTSIDE)
			note_wrong(f);
		break;
	case CODE_JMP_INDIRECT:
		if (!op->insn.a && as_entered(&f->now))
			check_leave(f);
		break;
	case CODE_STOP:
		if (!after_call)
			note_wrong(f);
		break;
	default:
		break;
	}
}

static void step(struct code_flow *f, const struct op *op)
{
	bool after_call = f->after_call;
	struct code_state entered;

	f->after_call = false;
	if (f->ended)
		go_on(f, op);
	if (f->now.trust && code_state_apply(&f->now, &op->insn, op->at))
		emit(f, op->at + op->insn.length);
	if (f->guessed && f->now.trust)
		check_guess(f, op, after_call);
	switch (op->insn.kind) {
	case CODE_CALL:
		if (f->now.trust && op->insn.value != OUTSIDE) {
			code_state_enter(&entered);
			entered.trust = f->now.trust;
			branch(f, op, &entered);
		}
		/* fall through */
	case CODE_CALL_INDIRECT:
		f->after_call = true;
		break;
	case CODE_JCC:
		branch(f, op, &f->now);
		break;
	case CODE_JMP:
		branch(f, op, &f->now);
		end_path(f, op);
		break;
	case CODE_JMP_INDIRECT:
		if ((op->insn.a || !as_entered(&f->now)) &&
		    join(&f->indirect, &f->now, f->now.trust))
			f->changed = true;
		end_path(f, op);
		break;
	case CODE_RET:
		if (f->now.trust)
			check_return(f);
		end_path(f, op);
		break;
	case CODE_STOP:
		end_path(f, op);
		break;
	default:
		break;
	}
}

static void pass(struct code_flow *f)
{
	size_t label = 0;

	f->changed = f->after_call = f->ended = false;
	f->nr_rows = 0;
	code_state_enter(&f->now);
	emit(f, 0);
	for (size_t i = 0; i < f->nr_ops && !f->wrong && !f->err; i++) {
		while (label < f->nr_labels && f->labels[label].at <= f->ops[i].at)
			arrive(f, label++);
		step(f, &f->ops[i]);
	}
	while (label < f->nr_labels)
		arrive(f, label++);
	/* The path runs beyond the end, into what was taken for something else. */
	if (f->guessed && f->now.trust)
		note_wrong(f);
}

/* ---- the whole function ---- */

int code_flow__new(struct code_flow **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

void code_flow__free(struct code_flow *f)
{
	if (!f)
		return;
	free(f->ops);
	free(f->offsets);
	free(f->labels);
	free(f->rows);
	free(f);
}

void code_flow__watch(struct code_flow *f,
		      void (*fn)(void *ctx, uint32_t offset, const struct code_state *s), void *ctx)
{
	f->watch = fn;
	f->watch_ctx = ctx;
}

static int prepare(struct code_flow *f, const struct code_function *function)
{
	size_t words = (function->bytes + 63) / 64;
	int err = grow((void **)&f->offsets, &f->cap_offsets, words, sizeof(*f->offsets));

	if (err)
		return err;
	f->bytes = (uint32_t)function->bytes;
	memset(f->offsets, 0, words * sizeof(*f->offsets));
	f->indirect.trust = CODE_NOWHERE;
	f->wrong = f->weak_wrong = f->returns = false;
	f->guessed = function->guessed;
	f->err = 0;
	return 0;
}

int code_flow__run(struct code_flow *f, const struct code_function *function,
		   int (*fn)(void *ctx, uint64_t vaddr, const struct kprof_unwind_rule *rule),
		   void *ctx)
{
	static const struct kprof_unwind_rule unknown = {.how = KPROF_UNWIND_UNKNOWN};
	int err, passes = 0;
	bool believed;

	if (!function->bytes || function->bytes > CODE_FLOW_MAX_BYTES)
		return CODE_FLOW_TOO_BIG;
	err = prepare(f, function);
	if (!err)
		err = decode(f, function);
	if (!err)
		err = number_labels(f);
	if (err)
		return err;
	believed = in_step(f, function);
	if (believed) {
		do {
			pass(f);
		} while (f->changed && !f->wrong && !f->err && ++passes < MAX_PASSES);
		if (f->err)
			return f->err;
		believed = !f->changed && !f->wrong;
	}
	if (f->guessed && !(believed && f->returns))
		return CODE_FLOW_DOUBTFUL;
	if (!believed)
		return fn(ctx, function->vaddr, &unknown);
	for (size_t i = 0; i < f->nr_rows && !err; i++)
		err = fn(ctx, function->vaddr + f->rows[i].at, &f->rows[i].rule);
	return err;
}
