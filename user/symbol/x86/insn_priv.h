/* SPDX-License-Identifier: BSD-2-Clause */
/* What insn.c (cost), insn_site.c (probe sites) and insn_field.c share: the decoder. */
#ifndef KPROF_INSN_PRIV_H
#define KPROF_INSN_PRIV_H

#include <capstone/capstone.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads one instruction after the other, in a straight line, from a buffer. */
struct insn_decoder {
	csh handle;
	cs_insn *insn; /* the latest, with details */
	const uint8_t *code;
	size_t bytes;
	size_t at;   /* of the latest */
	size_t next; /* behind it */
};

/* code may end anywhere. -ENOMEM; close it in any case. */
int insn_decoder_open(struct insn_decoder *d, const uint8_t *code, size_t bytes);
void insn_decoder_close(struct insn_decoder *d);
/* Decodes at d->next. False: the bytes end, or are no instruction that capstone knows. */
bool insn_decoder_next(struct insn_decoder *d);

bool insn_is_endbr64(const uint8_t *code, size_t bytes);
/* One that the kernel emulates, from its bytes alone: no decoder needed. */
bool insn_is_emulated(const uint8_t *code, size_t bytes);
/* A complete instruction, as long as it says, that a uprobe may be placed on. */
bool insn_is_allowed(const uint8_t *code, size_t length);

/* 0 rax … 15 r15 for a general register of any width; -1: another. */
int insn_gpr(unsigned int reg);
#define INSN_RAX 0
#define INSN_RSP 4
/* Whether the latest instruction writes the general register, named or implied. */
bool insn_writes_gpr(const struct insn_decoder *d, int gpr);
/* The bits, 1 << number, of all that it writes; UINT16_MAX: not known. */
uint16_t insn_written_gprs(const struct insn_decoder *d);
/* movs, cmps, stos, lods, scas by their opcode byte. */
bool insn_is_string_op(uint8_t op);
bool insn_in_group(const struct insn_decoder *d, unsigned int group);

#endif
