// SPDX-License-Identifier: BSD-2-Clause
/* What options choose, and the words for it. */
#include "cmd/diff/diff.h"

const struct option_choice diff_bys[] = {
	{"operator", KPROF_DIFF_BY_OP},
	{"op", KPROF_DIFF_BY_OP},
	{"function", KPROF_DIFF_BY_FUNCTION},
	{"line", KPROF_DIFF_BY_LINE},
	{"module", KPROF_DIFF_BY_MODULE},
	{"thread", KPROF_DIFF_BY_THREAD},
	{"kernel", KPROF_DIFF_BY_KERNEL},
	{"wait", KPROF_DIFF_BY_WAIT},
	{NULL},
};

const struct option_choice diff_pers[] = {
	{"step", KPROF_DIFF_PER_STEP}, {"second", KPROF_DIFF_PER_SECOND},
	{"run", KPROF_DIFF_PER_RUN},   {"share", KPROF_DIFF_PER_SHARE},
	{"call", KPROF_DIFF_PER_CALL}, {NULL},
};

static const struct option_choice verdicts[] = {
	{"none", KPROF_DIFF_NONE},
	{"more", KPROF_DIFF_MORE},
	{"less", KPROF_DIFF_LESS},
	{"untested", KPROF_DIFF_UNTESTED},
	{NULL},
};

static const char *choice_name(const struct option_choice *choices, int value)
{
	while (choices->name && choices->value != value)
		choices++;
	return choices->name ? choices->name : "";
}

const char *diff_by_name(enum kprof_diff_by by)
{
	return choice_name(diff_bys, (int)by);
}

const char *diff_per_name(enum kprof_diff_per per)
{
	return choice_name(diff_pers, (int)per);
}

const char *diff_verdict_name(enum kprof_diff_verdict verdict)
{
	return choice_name(verdicts, (int)verdict);
}
