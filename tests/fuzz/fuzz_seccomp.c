// SPDX-License-Identifier: BSD-2-Clause
/*
 * Any bytes as a seccomp filter, beside a second interpreter that is written as the kernel states
 * the rules: one case for each instruction that seccomp_check_filter() (kernel/seccomp.c) lets
 * through, without sharing of decoding. The first byte's lowest bit turns the codes into such ones.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>

#include "capture/inject/priv.h"
#include "fuzz.h"

#define MOST 64 /* instructions */

static const uint16_t allowed[] = {
	BPF_LD | BPF_W | BPF_ABS,
	BPF_LD | BPF_W | BPF_LEN,
	BPF_LDX | BPF_W | BPF_LEN,
	BPF_LD | BPF_IMM,
	BPF_LDX | BPF_IMM,
	BPF_LD | BPF_MEM,
	BPF_LDX | BPF_MEM,
	BPF_ST,
	BPF_STX,
	BPF_MISC | BPF_TAX,
	BPF_MISC | BPF_TXA,
	BPF_RET | BPF_K,
	BPF_RET | BPF_A,
	BPF_ALU | BPF_ADD | BPF_K,
	BPF_ALU | BPF_ADD | BPF_X,
	BPF_ALU | BPF_SUB | BPF_K,
	BPF_ALU | BPF_SUB | BPF_X,
	BPF_ALU | BPF_MUL | BPF_K,
	BPF_ALU | BPF_MUL | BPF_X,
	BPF_ALU | BPF_DIV | BPF_K,
	BPF_ALU | BPF_DIV | BPF_X,
	BPF_ALU | BPF_AND | BPF_K,
	BPF_ALU | BPF_AND | BPF_X,
	BPF_ALU | BPF_OR | BPF_K,
	BPF_ALU | BPF_OR | BPF_X,
	BPF_ALU | BPF_XOR | BPF_K,
	BPF_ALU | BPF_XOR | BPF_X,
	BPF_ALU | BPF_LSH | BPF_K,
	BPF_ALU | BPF_LSH | BPF_X,
	BPF_ALU | BPF_RSH | BPF_K,
	BPF_ALU | BPF_RSH | BPF_X,
	BPF_ALU | BPF_NEG,
	BPF_JMP | BPF_JA,
	BPF_JMP | BPF_JEQ | BPF_K,
	BPF_JMP | BPF_JEQ | BPF_X,
	BPF_JMP | BPF_JGE | BPF_K,
	BPF_JMP | BPF_JGE | BPF_X,
	BPF_JMP | BPF_JGT | BPF_K,
	BPF_JMP | BPF_JGT | BPF_X,
	BPF_JMP | BPF_JSET | BPF_K,
	BPF_JMP | BPF_JSET | BPF_X,
};

/* Would the kernel install it? As bpf_check_classic() and seccomp_check_filter() say. */
static bool installable(const struct sock_filter *code, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		const struct sock_filter *f = &code[i];
		bool known = false;

		for (size_t k = 0; k < sizeof(allowed) / sizeof(allowed[0]); k++)
			known |= allowed[k] == f->code;
		if (!known)
			return false;
		switch (f->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			if (f->k >= sizeof(struct seccomp_data) || f->k & 3)
				return false;
			break;
		case BPF_LD | BPF_MEM:
		case BPF_LDX | BPF_MEM:
		case BPF_ST:
		case BPF_STX:
			if (f->k >= BPF_MEMWORDS)
				return false;
			break;
		case BPF_ALU | BPF_DIV | BPF_K:
			if (!f->k)
				return false;
			break;
		case BPF_ALU | BPF_LSH | BPF_K:
		case BPF_ALU | BPF_RSH | BPF_K:
			if (f->k >= 32)
				return false;
			break;
		case BPF_JMP | BPF_JA:
			if (f->k >= nr - i - 1)
				return false;
			break;
		default:
			if (BPF_CLASS(f->code) == BPF_JMP &&
			    (f->jt >= nr - i - 1 || f->jf >= nr - i - 1))
				return false;
		}
	}
	return nr && BPF_CLASS(code[nr - 1].code) == BPF_RET;
}

/* What an installed filter answers. */
static uint32_t reference(const struct sock_filter *code, const struct seccomp_data *data)
{
	uint32_t A = 0, X = 0, M[BPF_MEMWORDS] = {0};

	for (const struct sock_filter *f = code;; f++) {
		const uint32_t k = f->k;

		switch (f->code) {
#define ALU(op, how, check)            \
	case BPF_ALU | (op) | BPF_K: { \
		const uint32_t b = k;  \
		check;                 \
		A = how;               \
		break;                 \
	}                              \
	case BPF_ALU | (op) | BPF_X: { \
		const uint32_t b = X;  \
		check;                 \
		A = how;               \
		break;                 \
	}
#define JUMP(op, how)                     \
	case BPF_JMP | (op) | BPF_K: {    \
		const uint32_t b = k;     \
		f += how ? f->jt : f->jf; \
		break;                    \
	}                                 \
	case BPF_JMP | (op) | BPF_X: {    \
		const uint32_t b = X;     \
		f += how ? f->jt : f->jf; \
		break;                    \
	}
			ALU(BPF_ADD, A + b, )
			ALU(BPF_SUB, A - b, )
			ALU(BPF_MUL, A * b, )
			ALU(BPF_DIV, A / b, if (!b) return 0)
			ALU(BPF_AND, A & b, )
			ALU(BPF_OR, A | b, )
			ALU(BPF_XOR, A ^ b, )
			ALU(BPF_LSH, A << (b % 32), )
			ALU(BPF_RSH, A >> (b % 32), )
			JUMP(BPF_JEQ, A == b)
			JUMP(BPF_JGE, A >= b)
			JUMP(BPF_JGT, A > b)
			JUMP(BPF_JSET, (A & b) != 0)
		case BPF_ALU | BPF_NEG:
			A = 0u - A;
			break;
		case BPF_JMP | BPF_JA:
			f += k;
			break;
		case BPF_LD | BPF_W | BPF_ABS:
			memcpy(&A, (const char *)data + k, 4);
			break;
		case BPF_LD | BPF_W | BPF_LEN:
			A = 64;
			break;
		case BPF_LDX | BPF_W | BPF_LEN:
			X = 64;
			break;
		case BPF_LD | BPF_IMM:
			A = k;
			break;
		case BPF_LDX | BPF_IMM:
			X = k;
			break;
		case BPF_LD | BPF_MEM:
			A = M[k];
			break;
		case BPF_LDX | BPF_MEM:
			X = M[k];
			break;
		case BPF_ST:
			M[k] = A;
			break;
		case BPF_STX:
			M[k] = X;
			break;
		case BPF_MISC | BPF_TAX:
			X = A;
			break;
		case BPF_MISC | BPF_TXA:
			A = X;
			break;
		case BPF_RET | BPF_K:
			return k;
		case BPF_RET | BPF_A:
			return A;
		default:
			abort(); /* not installable */
		}
	}
}

/* Codes, jumps and operands that are rarely refused. */
static void tame(struct sock_filter *code, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		struct sock_filter *f = &code[i];
		size_t left = nr - i - 1;

		f->code = allowed[f->code % (sizeof(allowed) / sizeof(allowed[0]))];
		if (!left)
			f->code = BPF_RET | (f->jt & 1 ? BPF_A : BPF_K);
		f->jt = left ? f->jt % left : 0;
		f->jf = left ? f->jf % left : 0;
		if (f->code == (BPF_LD | BPF_W | BPF_ABS))
			f->k = f->k % 16 * 4;
		else if (f->code == (BPF_JMP | BPF_JA))
			f->k = (uint32_t)(f->k % left);
		else if (BPF_CLASS(f->code) != BPF_RET && BPF_CLASS(f->code) != BPF_ALU &&
			 BPF_CLASS(f->code) != BPF_JMP && BPF_MODE(f->code) != BPF_IMM)
			f->k %= BPF_MEMWORDS;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct fuzz_input in = {bytes, size};
	bool tamed = fuzz_number(&in, 1) & 1;
	struct seccomp_data data = {.nr = (int)fuzz_number(&in, 2),
				    .arch = (uint32_t)fuzz_number(&in, 4)};
	struct sock_filter *code;
	uint32_t verdict;
	size_t nr;

	for (int i = 0; i < 6; i++)
		data.args[i] = fuzz_number(&in, 1 + (size_t)i);
	nr = in.left / sizeof(*code);
	if (nr > MOST)
		nr = MOST;
	code = (struct sock_filter *)(void *)fuzz_text(in.at, nr * sizeof(*code));
	if (tamed)
		tame(code, nr);
	verdict = inject_seccomp_run(code, nr, &data);
	if (installable(code, nr))
		REQUIRE(verdict == reference(code, &data));
	free(code);
	return 0;
}
