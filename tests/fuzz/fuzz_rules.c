// SPDX-License-Identifier: BSD-2-Clause
/*
 * Any text as a rule of the daemon's, as a time of the clock, and as a duration: it is refused, or
 * what it says is within what its readers can bear.
 */
#include "cmd/ctl/ctl.h"
#include "cmd/daemon/watch/triggers.h"
#include "fuzz.h"

#define YEAR_NS (366ull * 24 * 3600 * 1000000000)

static void check_rule(const char *text)
{
	struct trigger_rule rule;

	if (!trigger_parse(text, &rule))
		return;
	REQUIRE(rule.text == text);
	switch (rule.kind) {
	case TRIGGER_STEP:
		REQUIRE(rule.ns <= 10 * YEAR_NS);
		REQUIRE(rule.ns || (rule.percentile >= 0 && rule.percentile <= 1));
		REQUIRE(rule.ns || (rule.factor > 0 && rule.factor < 1e308 * 10));
		break;
	case TRIGGER_GPU_IDLE:
	case TRIGGER_RUNNABLE:
		REQUIRE(rule.share >= 0 && rule.share <= 1);
		break;
	case TRIGGER_MARK:
	case TRIGGER_CALL:
	case TRIGGER_KERNEL:
		REQUIRE(rule.glob > text && *rule.glob);
		break;
	case TRIGGER_SIGNAL:
		REQUIRE(rule.signals && !(strchr(text, ':') && rule.signals & 1));
		break;
	case TRIGGER_ASKED: /* only these three */
		REQUIRE(rule.signals && !(rule.signals & ~(1ull << 18 | 1ull << 23 | 1ull << 28)));
		break;
	case TRIGGER_OOM:
		REQUIRE(!strcmp(text, "oom"));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char text[512];
	uint64_t ns;

	if (bytes >= sizeof(text))
		return 0;
	memcpy(text, data, bytes);
	text[bytes] = '\0';
	check_rule(text);
	if (!ctl_time(text, &ns)) /* the year 2100, and what a duration may be */
		REQUIRE(ns < 150 * YEAR_NS);
	if (value_duration(text, &ns))
		REQUIRE(ns <= 10 * YEAR_NS);
	return 0;
}
