// SPDX-License-Identifier: BSD-2-Clause
/* user/util/trace_meta.h: which keys may be put at the top of a trace. */
#include "unit.h"

#include <string.h>

#include "util/trace_meta.h"
#include "util/util.h"

static void keys_of_the_trace_itself(void)
{
	static const char *const taken[] = {"traceEvents", "kprof",    "distributedInfo",
					    "with_stack",  "trace_id", "samples"};

	for (size_t i = 0; i < ARRAY_SIZE(taken); i++)
		CHECK(trace_meta_key_problem(taken[i]) != NULL);
	CHECK(trace_meta_key_problem("traceevents") == NULL);
	CHECK(trace_meta_key_problem("lr") == NULL);
	CHECK(trace_meta_key_problem("learning rate, \xc3\xa9t\xc3\xa9") == NULL);
}

static void keys_that_are_no_text(void)
{
	char key[TRACE_META_KEY_MAX + 2];

	memset(key, 'k', sizeof(key) - 1);
	key[sizeof(key) - 1] = '\0';
	CHECK(trace_meta_key_problem(key) != NULL);
	key[TRACE_META_KEY_MAX] = '\0';
	CHECK(trace_meta_key_problem(key) == NULL);
	CHECK(trace_meta_key_problem("") != NULL);
	CHECK(trace_meta_key_problem("a\nb") != NULL);
	CHECK(trace_meta_key_problem("a\xff") != NULL);
	CHECK(trace_meta_key_problem("a\xc2") != NULL);
}

UNIT_MAIN(TEST(keys_of_the_trace_itself), TEST(keys_that_are_no_text))
