// SPDX-License-Identifier: BSD-2-Clause
/*
 * The effects of VEX, EVEX and XOP instructions on general registers and on their memory operand.
 */
#include "symbol/x86/decode.h"

bool code_stores_vector(uint8_t map, uint8_t op)
{
	switch (map << 8 | op) {
	case 0x111: /* movup, movlp, movhp, movap, movntp */
	case 0x113:
	case 0x117:
	case 0x129:
	case 0x12b:
	case 0x17f: /* movdqu, kmov, stmxcsr, movq, movntdq */
	case 0x191:
	case 0x1ae:
	case 0x1d6:
	case 0x1e7:
	case 0x22e: /* vmaskmov, vpmaskmov; compress, scatter */
	case 0x22f:
	case 0x28e:
	case 0x263:
	case 0x28a:
	case 0x28b:
	case 0x2a0 ... 0x2a3:
	case 0x319: /* vextract, vcvtps2ph */
	case 0x31b:
	case 0x31d:
	case 0x339:
	case 0x33b:
	case 0x511: /* vmovsh */
		return true;
	default:
		return false;
	}
}

/* A few of the VEX and EVEX instructions write general registers. */
static void vector_to_general(struct code_decoder *d, uint8_t map, uint8_t pp, uint8_t vvvv)
{
	switch (map << 8 | d->op) {
	case 0x12c: /* vcvt…2si, and 2usi */
	case 0x12d:
	case 0x178:
	case 0x179:
	case 0x52c:
	case 0x52d:
	case 0x578:
	case 0x579:
		if (pp < 2)
			return;
		/* fall through */
	case 0x150: /* vmovmsk, kmov, vpextrw, vpmovmskb */
	case 0x193:
	case 0x1c5:
	case 0x1d7:
	case 0x2f2: /* andn, bzhi and pdep, bextr and shifts, rorx */
	case 0x2f5:
	case 0x2f7:
	case 0x3f0:
		return writes_reg(d, false);
	case 0x17e: /* vmovd, vmovq, vpextr */
	case 0x57e:
	case 0x314 ... 0x317:
		if (pp == 1)
			writes_rm(d, false);
		return;
	case 0x2f3: /* blsr and its like */
		d->out->writes |= BIT(vvvv);
		return;
	case 0x2f6: /* mulx */
		d->out->writes |= BIT(vvvv);
		return writes_reg(d, false);
	case 0x361:
	case 0x363:
		d->out->writes |= BIT(CODE_CX);
		return;
	}
	if (map == 2 && (d->op & 0xf0) == 0xe0) /* cmpccxadd */
		writes_reg(d, false);
}

void code_effect_vector(struct code_decoder *d, uint8_t map, uint8_t pp, uint8_t vvvv)
{
	vector_to_general(d, map, pp, vvvv);
	if (d->out->memory != CODE_MEMORY_READ)
		return;
	/*
	 * With prefix f3, vmovq loads, while vpmov to narrower elements and tilestored store.
	 * cmpccxadd stores, too.
	 */
	if (code_stores_vector(map, d->op) || (map == 1 && d->op == 0x7e && pp != 2) ||
	    (map == 2 && pp == 2 && d->op >= 0x10 && d->op < 0x50 && (d->op & 15) != 8) ||
	    (map == 2 && (d->op & 0xf0) == 0xe0))
		code_store(d, d->vector_bytes);
}

void code_effect_xop(struct code_decoder *d, uint8_t map, uint8_t vvvv)
{
	if (map == 10)
		writes_reg(d, false); /* bextr, lwpins */
	else if (map == 9 && (d->op == 0x01 || d->op == 0x02))
		d->out->writes |= BIT(vvvv);
}
