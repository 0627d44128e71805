// SPDX-License-Identifier: BSD-2-Clause
/*
 * What clients of the daemon's HTTP say, and what its child could say if one of them had taken it
 * over: a question is either none, or one of those that there are, with a name that leads nowhere
 * else. And any bytes as labels of metrics: their text stays one, with a line a sample. The first
 * byte chooses.
 */
#include "cmd/daemon/web/message.h"
#include "cmd/daemon/web/metrics.h"
#include "cmd/daemon/web/policy.h"
#include "fuzz.h"

static void check_question(const struct web_question *q)
{
	bool named = q->get == WEB_DUMP || q->get == WEB_TRACE;

	REQUIRE(q->get < WEB_NR_GET);
	REQUIRE(named ? message_is_name(q->name) : !*q->name);
	REQUIRE(!strchr(q->name, '/') && *q->name != '.');
}

static void packets(const char *text)
{
	struct web_question q;

	if (web_question_read(text, &q)) {
		check_question(&q);
		REQUIRE(q.id);
	}
}

static void headers(const char *text)
{
	static const char *const names[] = {"kprof"};
	struct web_question q;
	const char *bearer;

	if (policy_path(text, &q) == POLICY_ASK)
		check_question(&q);
	if (policy_host(text, names, 1))
		REQUIRE(strlen(text) < 64 && !strpbrk(text, "/@ \t\r\n"));
	policy_openmetrics(text);
	bearer = policy_bearer(text);
	REQUIRE(!bearer || (bearer > text && bearer <= text + strlen(text)));
	REQUIRE(policy_equal(text, "0123456789abcdef") == !strcmp(text, "0123456789abcdef"));
}

/* Each line is a comment, or one sample whose quotes are closed. */
static void check_text(const char *text)
{
	for (const char *end; *text; text = end + 1) {
		bool quoted = false;

		end = strchr(text, '\n');
		REQUIRE(end);
		for (const char *at = text; *text != '#' && at < end; at++) {
			REQUIRE((unsigned char)*at >= 0x20 && *at != 0x7f);
			if (*at == '\\')
				at++;
			else if (*at == '"')
				quoted = !quoted;
		}
		REQUIRE(!quoted && !strncmp(*text == '#' ? text + 2 : text,
					    *text == '#' ? "" : "kprof_", *text == '#' ? 0 : 6));
	}
}

static void labels(char *text)
{
	struct metrics *m = metrics__new();
	size_t bytes;
	char *all;

	for (char *name = strtok(text, "\t"); name; name = strtok(NULL, "\t")) {
		metrics__add(m, METRICS_SAMPLES, METRICS_OF(name), 1);
		metrics__set(m, METRICS_BUILD, METRICS_OF(name, name), 1);
		metrics__observe(m, METRICS_STEP_TIME, METRICS_OF(name), (double)strlen(name));
	}
	all = metrics__text(m, METRICS_OPENMETRICS, &bytes);
	REQUIRE(all && strlen(all) == bytes);
	check_text(all);
	free(all);
	metrics__free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char *text;

	if (!bytes || bytes > MESSAGE_BYTES)
		return 0;
	text = strndup((const char *)data + 1, bytes - 1);
	if (data[0] % 3 == 0)
		packets(text);
	else if (data[0] % 3 == 1)
		headers(text);
	else
		labels(text);
	free(text);
	return 0;
}
