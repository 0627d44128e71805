// SPDX-License-Identifier: BSD-2-Clause
/* Takes rules apart. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/daemon/watch/triggers.h"

static const char *after(const char *text, const char *start)
{
	size_t len = strlen(start);

	return strncmp(text, start, len) ? NULL : text + len;
}

/* "p99", "p50*2" */
static bool take_percentile(const char *text, struct trigger_rule *out)
{
	char *end;

	out->percentile = strtod(text, &end) / 100;
	if (end == text || !(out->percentile >= 0 && out->percentile <= 1))
		return false;
	out->factor = 1;
	if (!*end)
		return true;
	text = end + 1;
	out->factor = strtod(text, &end);
	return text[-1] == '*' && end > text && !*end && isfinite(out->factor) && out->factor > 0;
}

static bool take_step(const char *text, struct trigger_rule *out)
{
	out->kind = TRIGGER_STEP;
	if (*text == 'p')
		return take_percentile(text + 1, out);
	return value_duration(text, &out->ns) && out->ns;
}

static bool take_share(enum trigger_kind kind, const char *text, struct trigger_rule *out)
{
	out->kind = kind;
	return value_percent(text, &out->share) && out->share <= 1;
}

/* "SEGV", "SIGSEGV", "11", several with + between them (a comma is between rules). */
static bool take_names(const char *text, uint64_t *signals)
{
	char name[16];

	*signals = 0;
	for (;; text++) {
		size_t len = strcspn(text, "+");
		int signal = 0;

		if (!len || len >= sizeof(name))
			return false;
		snprintf(name, sizeof(name), "%.*s", (int)len, text);
		for (int s = 1; s < 32 && !signal; s++) {
			const char *known = sigabbrev_np(s);

			if (known && (!strcmp(name, known) ||
				      (!strncmp(name, "SIG", 3) && !strcmp(name + 3, known))))
				signal = s;
		}
		if (!signal && strspn(name, "0123456789") == len)
			signal = atoi(name);
		if (signal < 1 || signal > 63)
			return false;
		*signals |= 1ull << signal;
		text += len;
		if (!*text)
			return true;
	}
}

/* Without any: all but those by which people and managers of jobs ask for an end. */
static bool take_signals(const char *text, struct trigger_rule *out)
{
	out->kind = TRIGGER_SIGNAL;
	out->signals = ~(1ull << SIGTERM | 1ull << SIGINT | 1ull << SIGHUP | 1ull << SIGPIPE);
	return !*text || (*text == ':' && take_names(text + 1, &out->signals));
}

/* Only signals that do nothing to a process that does not handle them: no other one is to die. */
static bool take_asked(const char *text, struct trigger_rule *out)
{
	out->kind = TRIGGER_ASKED;
	return take_names(text, &out->signals) &&
	       !(out->signals & ~(1ull << SIGURG | 1ull << SIGWINCH | 1ull << SIGCONT));
}

bool trigger_parse(const char *text, struct trigger_rule *out)
{
	static const struct {
		const char *start;
		enum trigger_kind kind;
	} globs[] = {{"mark:", TRIGGER_MARK}, {"call:", TRIGGER_CALL}, {"kmsg:", TRIGGER_KERNEL}};
	const char *value;

	*out = (struct trigger_rule){.text = text};
	value = after(text, "step>");
	if (value)
		return take_step(value, out);
	value = after(text, "gpu-idle>");
	if (value)
		return take_share(TRIGGER_GPU_IDLE, value, out);
	value = after(text, "runnable>");
	if (value)
		return take_share(TRIGGER_RUNNABLE, value, out);
	value = after(text, "asked:");
	if (value)
		return take_asked(value, out);
	value = after(text, "signal");
	if (value)
		return take_signals(value, out);
	for (size_t i = 0; i < sizeof(globs) / sizeof(globs[0]); i++) {
		value = after(text, globs[i].start);
		if (!value)
			continue;
		out->kind = globs[i].kind;
		out->glob = value;
		return *value;
	}
	out->kind = TRIGGER_OOM;
	return !strcmp(text, "oom");
}
