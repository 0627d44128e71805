/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests in plain C: CHECK what should hold, TEST(name) a function, UNIT_MAIN to run them.
 * Prints TAP-like lines and ends with "N passed, N failed".
 */
#ifndef KPROF_TESTS_UNIT_H
#define KPROF_TESTS_UNIT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int unit_failures_here;

#define CHECK(cond)                                                         \
	do {                                                                \
		if (!(cond)) {                                              \
			printf("# %s:%d: %s\n", __FILE__, __LINE__, #cond); \
			unit_failures_here++;                               \
		}                                                           \
	} while (0)

#define CHECK_EQ(a, b)                                                                             \
	do {                                                                                       \
		long long a_ = (long long)(a), b_ = (long long)(b);                                \
		if (a_ != b_) {                                                                    \
			printf("# %s:%d: %s is %lld, not %s = %lld\n", __FILE__, __LINE__, #a, a_, \
			       #b, b_);                                                            \
			unit_failures_here++;                                                      \
		}                                                                                  \
	} while (0)

#define CHECK_STR(a, b)                                                                       \
	do {                                                                                  \
		const char *a_ = (a), *b_ = (b);                                              \
		if (!a_ || !b_ || strcmp(a_, b_)) {                                           \
			printf("# %s:%d: %s is \"%s\", not \"%s\"\n", __FILE__, __LINE__, #a, \
			       a_ ? a_ : "(null)", b_ ? b_ : "(null)");                       \
			unit_failures_here++;                                                 \
		}                                                                             \
	} while (0)

struct unit_test {
	const char *name;
	void (*run)(void);
};

#define TEST(fn)        \
	{               \
#fn, fn \
	}

#define UNIT_MAIN(...)                                                                        \
	int main(void)                                                                        \
	{                                                                                     \
		struct unit_test tests[] = {__VA_ARGS__};                                     \
		int passed = 0, failed = 0;                                                   \
		for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {               \
			unit_failures_here = 0;                                               \
			tests[i].run();                                                       \
			printf("%sok %s\n", unit_failures_here ? "not " : "", tests[i].name); \
			unit_failures_here ? failed++ : passed++;                             \
		}                                                                             \
		printf("%d passed, %d failed\n", passed, failed);                             \
		return failed ? 1 : 0;                                                        \
	}

#endif
