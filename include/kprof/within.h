/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Recording only what threads do inside of annotations, of Python functions or of modules of one
 * name, or of a function of native code: what the kernel's programs, the agent and kprof have in
 * common. The name is a pattern (* stands for any characters, ? for one), except of native code.
 */
#ifndef KPROF_WITHIN_H
#define KPROF_WITHIN_H

#include "kprof/wire.h"

/* What the name is one of. */
enum kprof_within_of {
	KPROF_WITHIN_ANNOTATIONS = 0,
	KPROF_WITHIN_FUNCTIONS = 1, /* of Python */
	KPROF_WITHIN_MODULES = 2,   /* classes of modules of PyTorch */
	KPROF_WITHIN_SYMBOL = 3,    /* a function of native code, which has a probe */
};

#define KPROF_WITHIN_BYTES 256 /* of a pattern with its NUL, a power of two */
/* A name that needs more steps is taken for another one. */
#define KPROF_WITHIN_STEPS 4096

/* How far a text has been compared with a pattern. Zeroed at first. */
struct kprof_within_match {
	kprof_u32 text, pattern; /* places of the next characters */
	/* behind the latest *, and where the text goes on if that stands for no more; 0: none */
	kprof_u32 star, star_text;
};

enum kprof_within_verdict { KPROF_WITHIN_MORE, KPROF_WITHIN_SAME, KPROF_WITHIN_OTHER };

/* A step: c and p are the characters at .text and .pattern; 0: the end. */
static inline enum kprof_within_verdict kprof_within_step(struct kprof_within_match *m, char c,
							  char p)
{
	if (p == '*') {
		m->star = ++m->pattern;
		m->star_text = m->text;
		return KPROF_WITHIN_MORE;
	}
	if (c && (p == '?' || p == c)) {
		m->text++;
		m->pattern++;
		return KPROF_WITHIN_MORE;
	}
	if (!c)
		return p ? KPROF_WITHIN_OTHER : KPROF_WITHIN_SAME;
	if (!m->star)
		return KPROF_WITHIN_OTHER;
	m->pattern = m->star;
	m->text = ++m->star_text;
	return KPROF_WITHIN_MORE;
}

/*
 * What a probe's hits say of ranges, in its cookie. Each kind of annotations has ranges of its own,
 * which nest.
 */
enum kprof_within_role {
	KPROF_WITHIN_NONE = 0,
	KPROF_WITHIN_BEGIN = 1,
	KPROF_WITHIN_END = 2,
	KPROF_WITHIN_END_TEXT = 3, /* if its text is that by which ranges end */
	KPROF_WITHIN_END_HEAP = 4, /* if its value is no address on the thread's stack */
	KPROF_WITHIN_FUNCTION = 5, /* it is the function that was asked for (WITHIN_SYMBOL) */
};
#define KPROF_WITHIN_KINDS 4
#define KPROF_WITHIN_KIND_MARK 3 /* of kprof/mark.h */

/* Places where it is counted how often ranges of a process may have ended unseen; by its pid. */
#define KPROF_WITHIN_ROUNDS 1024
#define KPROF_WITHIN_ROUND(pid) ((kprof_u32)(pid) & (KPROF_WITHIN_ROUNDS - 1))

#define KPROF_COOKIE_WITHIN(role, kind) ((kprof_u64)(role) << 52 | (kprof_u64)(kind) << 55)
#define KPROF_COOKIE_WITHIN_ROLE(c) ((kprof_u32)((c) >> 52 & 7))
#define KPROF_COOKIE_WITHIN_KIND(c) ((kprof_u32)((c) >> 55 & 3))

#endif
