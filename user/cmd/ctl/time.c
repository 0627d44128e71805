// SPDX-License-Identifier: BSD-2-Clause
/* Times at which recordings begin. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd/ctl/ctl.h"
#include "cmd/options/value.h"
#include "cmd/print/message.h"

#define SECOND_NS 1000000000ull
#define LATEST_S 4102444800ull /* the year 2100: beyond, it is no time in seconds */

/* "12:30:00", "12:30": of today, or of tomorrow. */
static int time_of_day(const char *text, uint64_t *real_ns)
{
	unsigned int h, m, s = 0;
	int at = 0;
	time_t now = time(NULL), then;
	struct tm tm;

	if (sscanf(text, "%2u:%2u%n", &h, &m, &at) != 2 || !at)
		return -EINVAL;
	if (text[at] == ':') {
		int more = 0;

		if (sscanf(text + at, ":%2u%n", &s, &more) != 1 || !more)
			return -EINVAL;
		at += more;
	}
	if (text[at] || h > 23 || m > 59 || s > 59)
		return -EINVAL;
	localtime_r(&now, &tm);
	tm.tm_hour = (int)h;
	tm.tm_min = (int)m;
	tm.tm_sec = (int)s;
	tm.tm_isdst = -1;
	then = mktime(&tm);
	if (then <= now) {
		tm.tm_mday++;
		tm.tm_isdst = -1;
		then = mktime(&tm);
	}
	*real_ns = (uint64_t)then * SECOND_NS;
	return 0;
}

int ctl_time(const char *text, uint64_t *real_ns)
{
	uint64_t seconds = 0, part = 0, unit = SECOND_NS;
	const char *at = text;

	if (*text == '+') {
		if (!value_duration(text + 1, real_ns))
			return -EINVAL;
		*real_ns += now_ns(CLOCK_REALTIME);
		return 0;
	}
	if (strchr(text, ':'))
		return time_of_day(text, real_ns);
	if (!*at)
		return -EINVAL;
	for (; *at >= '0' && *at <= '9' && seconds < LATEST_S; at++)
		seconds = seconds * 10 + (uint64_t)(*at - '0');
	if (*at == '.' && at > text)
		for (at++; *at >= '0' && *at <= '9' && unit > 1; at++)
			part += (uint64_t)(*at - '0') * (unit /= 10);
	if (*at || seconds >= LATEST_S)
		return -EINVAL;
	*real_ns = seconds * SECOND_NS + part;
	return 0;
}
