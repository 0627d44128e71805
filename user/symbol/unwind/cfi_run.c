// SPDX-License-Identifier: BSD-2-Clause
/*
 * The machine that executes call frame instructions (DWARF 5, section 6.4.2), and the conversion of
 * its states to rules.
 */
#include <dwarf.h>
#include <limits.h>

#include "symbol/unwind/cfi_priv.h"

/* DWARF's numbers of x86-64's registers (System V ABI, figure 3.36). */
enum { REG_BX = 3, REG_BP = 6, REG_SP = 7, REG_RA = 16, NR_REGS = 17 };

#define MAX_REMEMBERED 32

struct machine {
	const struct cfi_cie *cie;
	struct cfi_state state;
	/* MAX_REMEMBERED elements; not cleared for every description */
	struct cfi_state *remembered;
	unsigned int nr_remembered;
	uint64_t at; /* vaddr */
	/* For reporting rows; NULL while a CIE is executed. */
	const struct cfi_range *range;
	const struct cfi_ops *ops;
	struct cfi_stats *stats;
};

/* ---- states as rules ---- */

static bool fits(int64_t v)
{
	return v >= INT32_MIN && v <= INT32_MAX;
}

static uint8_t saved_rule(const struct cfi_saved *s, int32_t *offset)
{
	*offset = 0;
	if (s->how == CFI_SAME)
		return KPROF_UNWIND_SAME;
	if (s->how == CFI_GONE || !fits(s->offset))
		return KPROF_UNWIND_LOST;
	*offset = (int32_t)s->offset;
	return s->how == CFI_OFFSET ? KPROF_UNWIND_SAVED : KPROF_UNWIND_AT_BP;
}

static void cfa_rule(const struct cfi_state *s, struct kprof_unwind_rule *r)
{
	int64_t offset = s->by_expression ? s->expression_offset : s->offset;

	r->how = KPROF_UNWIND_UNKNOWN;
	if (!fits(offset))
		return;
	r->cfa = (int32_t)offset;
	if (s->by_expression) {
		r->how = s->expression_how;
		r->add = (int16_t)s->expression_add;
	} else if (s->reg == REG_SP) {
		r->how = KPROF_UNWIND_SP;
	} else if (s->reg == REG_BP) {
		r->how = KPROF_UNWIND_BP;
	} else if (s->reg == REG_BX) {
		r->how = KPROF_UNWIND_BX;
	} else if (s->reg < NR_REGS - 1) {
		r->how = (uint8_t)(KPROF_UNWIND_REGISTER + s->reg);
	}
}

static void make_rule(const struct machine *m, struct kprof_unwind_rule *r)
{
	const struct cfi_state *s = &m->state;

	memset(r, 0, sizeof(*r));
	if (m->cie->signal) {
		r->how = KPROF_UNWIND_SIGNAL;
		return;
	}
	if (s->ra.how == CFI_GONE) {
		r->how = KPROF_UNWIND_BOTTOM;
		return;
	}
	cfa_rule(s, r);
	/* By the ABI, the return address is right below the CFA. */
	if (s->ra.how != CFI_OFFSET || s->ra.offset != -8 || m->cie->return_register != REG_RA)
		r->how = KPROF_UNWIND_UNKNOWN;
	if (r->how == KPROF_UNWIND_UNKNOWN || r->how == KPROF_UNWIND_PLT) {
		r->cfa = 0;
		r->add = 0;
		return;
	}
	r->regs = KPROF_UNWIND_REGS(saved_rule(&s->bp, &r->bp), saved_rule(&s->bx, &r->bx));
}

/* Reports a row: the state from m->at on is complete. */
static int emit(struct machine *m)
{
	struct kprof_unwind_rule rule;

	if (!m->ops || m->at < m->range->start || m->at >= m->range->end)
		return 0;
	make_rule(m, &rule);
	if (rule.how == KPROF_UNWIND_UNKNOWN)
		m->stats->inexpressible++;
	return m->ops->row(m->ops->ctx, m->at, &rule);
}

/* ---- expressions ---- */

/*
 * Of the expressions that DWARF allows, two forms occur. That of PLT entries: the CFA is rsp + 8,
 * and 8 more after the push in the second instruction of the entry. And a value in memory:
 * *(register + offset), with or without a constant added.
 */
static void cfa_expression(struct cfi_state *s, struct cfi_bytes e)
{
	static const uint8_t plt[] = {0x77, 8, 0x80, 0, 0x3f, 0x1a};
	bool is_plt = (size_t)(e.end - e.at) > sizeof(plt) && !memcmp(e.at, plt, sizeof(plt));
	uint64_t op = cfi_fixed(&e, 1);

	s->by_expression = true;
	s->expression_how = KPROF_UNWIND_UNKNOWN;
	s->expression_offset = s->expression_add = 0;
	if (is_plt) {
		s->expression_how = KPROF_UNWIND_PLT;
		return;
	}
	if (op != DW_OP_breg0 + REG_BP && op != DW_OP_breg0 + REG_SP)
		return;
	s->expression_offset = cfi_sleb(&e);
	/* the expression ends here: register + offset, not a value in memory */
	if (e.at == e.end && !e.bad) {
		s->by_expression = false;
		s->reg = op - DW_OP_breg0;
		s->offset = s->expression_offset;
		return;
	}
	if (cfi_fixed(&e, 1) != DW_OP_deref || e.bad)
		return;
	if (e.at < e.end) {
		if (cfi_fixed(&e, 1) != DW_OP_plus_uconst)
			return;
		s->expression_add = (int64_t)cfi_uleb(&e);
	}
	if (e.bad || e.at != e.end || s->expression_add < 0 || s->expression_add > INT16_MAX)
		return;
	s->expression_how = op == DW_OP_breg0 + REG_BP ? KPROF_UNWIND_BP_AT : KPROF_UNWIND_SP_AT;
}

/* The place where a register is saved: rbp + offset, in functions that realign their stack. */
static struct cfi_saved saved_expression(struct cfi_bytes e)
{
	struct cfi_saved s = {.how = CFI_GONE};

	if (cfi_fixed(&e, 1) != DW_OP_breg0 + REG_BP)
		return s;
	s.offset = cfi_sleb(&e);
	if (!e.bad && e.at == e.end)
		s.how = CFI_EXPRESSION_BP;
	return s;
}

/* ---- instructions ---- */

/* The state of a register; NULL: rules do not contain this register. */
static struct cfi_saved *saved(struct cfi_state *s, uint64_t reg)
{
	if (reg == REG_BP)
		return &s->bp;
	if (reg == REG_BX)
		return &s->bx;
	return reg == REG_RA ? &s->ra : NULL;
}

static void set(struct machine *m, uint64_t reg, enum cfi_saved_how how, int64_t offset)
{
	struct cfi_saved *s = saved(&m->state, reg);

	if (s)
		*s = (struct cfi_saved){.how = how, .offset = offset};
}

static void restore(struct machine *m, uint64_t reg)
{
	struct cfi_saved *to = saved(&m->state, reg);
	struct cfi_state initial = m->cie->initial;

	if (to)
		*to = *saved(&initial, reg);
}

/* Multiplies untrusted numbers without undefined overflow. */
static int64_t times(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a * (uint64_t)b);
}

static int advance(struct machine *m, uint64_t units)
{
	int err = emit(m);

	m->at += units * m->cie->code_align;
	return err;
}

/* Defines the CFA by a register, instead of by an earlier expression. */
static void define_cfa(struct machine *m, uint64_t reg, int64_t offset)
{
	m->state.by_expression = false;
	m->state.reg = reg;
	m->state.offset = offset;
}

static int register_op(struct machine *m, struct cfi_bytes *b, uint64_t op)
{
	int64_t align = m->cie->data_align;
	uint64_t reg = cfi_uleb(b);
	struct cfi_saved s;

	switch (op) {
	case DW_CFA_offset_extended:
		set(m, reg, CFI_OFFSET, times((int64_t)cfi_uleb(b), align));
		return 0;
	case DW_CFA_offset_extended_sf:
		set(m, reg, CFI_OFFSET, times(cfi_sleb(b), align));
		return 0;
	case DW_CFA_GNU_negative_offset_extended:
		set(m, reg, CFI_OFFSET, times(-1, times((int64_t)cfi_uleb(b), align)));
		return 0;
	case DW_CFA_restore_extended:
		restore(m, reg);
		return 0;
	case DW_CFA_undefined:
		set(m, reg, CFI_GONE, 0);
		return 0;
	case DW_CFA_same_value:
		set(m, reg, CFI_SAME, 0);
		return 0;
	case DW_CFA_register:
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
		/* skips the operand; signed and unsigned LEB128 have the same length */
		cfi_uleb(b);
		set(m, reg, CFI_GONE, 0);
		return 0;
	case DW_CFA_expression:
		s = saved_expression(cfi_take(b, cfi_uleb(b)));
		set(m, reg, s.how, s.offset);
		return 0;
	case DW_CFA_val_expression:
		cfi_take(b, cfi_uleb(b));
		set(m, reg, CFI_GONE, 0);
		return 0;
	}
	return CFI_DAMAGED;
}

static int cfa_op(struct machine *m, struct cfi_bytes *b, uint64_t op)
{
	int64_t align = m->cie->data_align;
	uint64_t reg;

	switch (op) {
	case DW_CFA_def_cfa:
		reg = cfi_uleb(b);
		define_cfa(m, reg, (int64_t)cfi_uleb(b));
		return 0;
	case DW_CFA_def_cfa_sf:
		reg = cfi_uleb(b);
		define_cfa(m, reg, times(cfi_sleb(b), align));
		return 0;
	case DW_CFA_def_cfa_register:
		define_cfa(m, cfi_uleb(b), m->state.offset);
		return 0;
	case DW_CFA_def_cfa_offset:
		m->state.offset = (int64_t)cfi_uleb(b);
		return 0;
	case DW_CFA_def_cfa_offset_sf:
		m->state.offset = times(cfi_sleb(b), align);
		return 0;
	case DW_CFA_def_cfa_expression:
		cfa_expression(&m->state, cfi_take(b, cfi_uleb(b)));
		return 0;
	}
	return register_op(m, b, op);
}

static int state_op(struct machine *m, uint64_t op)
{
	if (op == DW_CFA_remember_state) {
		if (m->nr_remembered == MAX_REMEMBERED)
			return CFI_DAMAGED;
		m->remembered[m->nr_remembered++] = m->state;
		return 0;
	}
	if (!m->nr_remembered)
		return CFI_DAMAGED;
	m->state = m->remembered[--m->nr_remembered];
	return 0;
}

static int extended_op(struct machine *m, struct cfi_bytes *b, uint64_t op)
{
	int err;

	switch (op) {
	case DW_CFA_nop:
		return 0;
	case DW_CFA_set_loc:
		err = emit(m);
		m->at = cfi_fixed(b, 8);
		return err;
	case DW_CFA_advance_loc1:
		return advance(m, cfi_fixed(b, 1));
	case DW_CFA_advance_loc2:
		return advance(m, cfi_fixed(b, 2));
	case DW_CFA_advance_loc4:
		return advance(m, cfi_fixed(b, 4));
	case DW_CFA_remember_state:
	case DW_CFA_restore_state:
		return state_op(m, op);
	case DW_CFA_GNU_args_size:
		cfi_uleb(b);
		return 0;
	}
	return cfa_op(m, b, op);
}

static int execute(struct machine *m, struct cfi_bytes b, uint64_t *work)
{
	uint64_t bytes = (uint64_t)(b.end - b.at);
	int err = 0;

	if (bytes > *work)
		return CFI_DAMAGED;
	*work -= bytes;
	while (b.at < b.end && !err) {
		/* the upper two bits are the operation, or 0; the lower six its operand */
		uint64_t op = cfi_fixed(&b, 1), low = op & 0x3f;

		switch (op & 0xc0) {
		case DW_CFA_advance_loc:
			err = advance(m, low);
			break;
		case DW_CFA_offset:
			set(m, low, CFI_OFFSET, times((int64_t)cfi_uleb(&b), m->cie->data_align));
			break;
		case DW_CFA_restore:
			restore(m, low);
			break;
		default:
			err = extended_op(m, &b, op);
		}
		if (b.bad)
			return CFI_DAMAGED;
	}
	return err;
}

int cfi_run_initial(struct cfi_cie *cie, uint64_t *work)
{
	struct cfi_state remembered[MAX_REMEMBERED];
	struct machine m = {.cie = cie, .remembered = remembered};
	int err = execute(&m, cie->instructions, work);

	cie->initial = m.state;
	return err;
}

int cfi_run(const struct cfi_cie *cie, struct cfi_bytes instructions, const struct cfi_range *range,
	    const struct cfi_ops *ops, struct cfi_stats *stats, uint64_t *work)
{
	struct cfi_state remembered[MAX_REMEMBERED];
	struct machine m = {
		.cie = cie,
		.remembered = remembered,
		.state = cie->initial,
		.at = range->start,
		.range = range,
		.ops = ops,
		.stats = stats,
	};
	int err = execute(&m, instructions, work);

	return err ? err : emit(&m);
}
