// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/options/range.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmd/print/message.h"
#include "cmd/print/text.h"

/* "0", "0.000", "0ms": none is a duration. */
static bool is_zero(const char *text)
{
	static const char *const units[] = {"", "s", "ms", "us", "m", "min", "h"};
	size_t whole = strspn(text, "0"), point = whole && text[whole] == '.';
	const char *unit = text + whole + point + strspn(text + whole + point, point ? "0" : "");

	for (size_t i = 0; whole && i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(unit, units[i]))
			return true;
	return false;
}

/* A duration that may be 0, or negative. */
static bool time_of(const char *text, int64_t *ns)
{
	bool back = *text == '-';
	const char *value = text + back;
	uint64_t duration;

	*ns = 0;
	if (!back && is_zero(value))
		return true;
	if (!value_duration(value, &duration) || !duration)
		return false;
	*ns = back ? -(int64_t)duration : (int64_t)duration;
	return true;
}

/* "10", "10..20" */
static bool steps_of(const char *text, uint64_t *first, uint64_t *last)
{
	const char *dots = strstr(text, "..");
	size_t len = dots ? (size_t)(dots - text) : strlen(text);
	char number[24];

	if (len >= sizeof(number))
		return false;
	memcpy(number, text, len);
	number[len] = '\0';
	if (!value_uint(number, 0, UINT64_MAX, first))
		return false;
	*last = *first;
	return !dots || (value_uint(dots + 2, 0, UINT64_MAX, last) && *first <= *last);
}

int range_check_time(const struct command *c, void *opts, const char *text)
{
	int64_t ns;

	return time_of(text, &ns) ? -1
				  : message_usage(c->name, "'%s' is no time: 2s, 500ms, -1s", text);
}

int range_check_steps(const struct command *c, void *opts, const char *text)
{
	uint64_t first, last;

	return steps_of(text, &first, &last)
		       ? -1
		       : message_usage(c->name, "'%s' are no steps: 7, or 10..20", text);
}

int range_select(const struct command *c, const struct range_opts *opts, struct kprof_capture *t)
{
	struct kprof_range range = {.sz = sizeof(range)};

	if (!opts->from && !opts->to && !opts->step)
		return -1;
	if (opts->step && (opts->from || opts->to))
		return message_usage(c->name, "either --step, or --from and --to");
	range.has_from = opts->from && time_of(opts->from, &range.from_ns);
	range.has_to = opts->to && time_of(opts->to, &range.to_ns);
	range.steps = opts->step && steps_of(opts->step, &range.first_step, &range.last_step);
	return kprof_capture_select(t, &range) ? message_error() : -1;
}

static void add_count(char out[RANGE_TEXT_BYTES], const char *what, uint64_t in, uint64_t outside)
{
	size_t at = strlen(out);

	if (in + outside)
		snprintf(out + at, RANGE_TEXT_BYTES - at,
			 ", %" PRIu64 " %s (%" PRIu64 " outside of it)", in, what, outside);
}

bool range_text(char out[RANGE_TEXT_BYTES], const struct kprof_capture *t)
{
	const struct kprof_selection *s = kprof_capture_selection(t);
	char time[TEXT_NUMBER_BYTES];

	if (!s)
		return false;
	snprintf(out, RANGE_TEXT_BYTES, "selected range: %s",
		 text_time(time, s->to_mono_ns - s->from_mono_ns));
	add_count(out, "events", s->events, s->events_outside);
	add_count(out, "samples", s->samples, s->samples_outside);
	add_count(out, "activities of devices", s->activities, s->activities_outside);
	return true;
}
