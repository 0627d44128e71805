// SPDX-License-Identifier: BSD-2-Clause
/*
 * Any bytes as the text of a config. What is taken is within bounds; written again from its unknown
 * keys and some known ones, it is the same. The log file's names have room, or are refused.
 */
#include <errno.h>

#include "fuzz.h"
#include "kprof.h"
#include "kprof/dynolog.h"

#define MOST_MS (INT64_MAX / 1000000)

static void check_value(const char *text)
{
	REQUIRE(!strpbrk(text, "\n=#"));
	REQUIRE(!*text || (!strchr(" \t\r", *text) && !strchr(" \t\r", text[strlen(text) - 1])));
}

static void check_again(const struct kprof_dynolog_config *c, size_t bytes)
{
	size_t most = bytes + 1024, at = 0;
	char *text = malloc(most);
	struct kprof_dynolog_config *again;

	REQUIRE(text);
	at += (size_t)snprintf(
		text, most,
		"PROFILE_WITH_STACK=%d\nACTIVITIES_DURATION_MSECS=%llu\n"
		"ACTIVITIES_ITERATIONS=%llu\n%s%s\n",
		c->stacks, (unsigned long long)c->duration_ms, (unsigned long long)c->iterations,
		c->log_file ? "ACTIVITIES_LOG_FILE=" : "", c->log_file ? c->log_file : "");
	for (size_t i = 0; i < c->nr_other; i++)
		at += (size_t)snprintf(text + at, most - at, "%s=%s\n", c->other[i].name,
				       c->other[i].value);
	REQUIRE(at < most && !kprof_dynolog_config_parse(text, &again));
	REQUIRE(again->stacks == c->stacks && again->duration_ms == c->duration_ms);
	REQUIRE(again->iterations == c->iterations && again->nr_other == c->nr_other);
	REQUIRE(!again->log_file == !c->log_file);
	REQUIRE(!c->log_file || !strcmp(again->log_file, c->log_file));
	for (size_t i = 0; i < c->nr_other; i++) {
		REQUIRE(!strcmp(again->other[i].name, c->other[i].name));
		REQUIRE(!strcmp(again->other[i].value, c->other[i].value));
	}
	kprof_dynolog_config_free(again);
	free(text);
}

static void check_paths(const char *log_file)
{
	char path[KPROF_DYNOLOG_PATH_BYTES];
	static const char *const root[] = {"/"};

	if (!kprof_dynolog_path(log_file, 1234567, path))
		REQUIRE(strlen(path) >= strlen(log_file) && strlen(path) < sizeof(path));
	if (!kprof_dynolog_kineto_path(log_file, 1234567, path))
		REQUIRE(strlen(path) <= strlen(log_file) + strlen("_1234567"));
	if (kprof_dynolog_path_allowed(log_file, root, 1))
		REQUIRE(*log_file == '/' && !strstr(log_file, "/../"));
	if (kprof_dynolog_path_allowed(log_file, NULL, 0))
		REQUIRE(!strncmp(log_file, "/tmp/", 5));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct kprof_dynolog_config *c = NULL;
	char *text = fuzz_text(data, bytes);
	int err = kprof_dynolog_config_parse(text, &c);

	REQUIRE(!err || err == -EINVAL);
	if (err) {
		REQUIRE(!c && *kprof_error_cause());
		free(text);
		return 0;
	}
	REQUIRE(!strcmp(c->text, text));
	REQUIRE(c->duration_ms <= MOST_MS && c->warmup_ms <= MOST_MS &&
		c->start_time_ms <= MOST_MS);
	for (size_t i = 0; i < c->nr_other; i++) {
		check_value(c->other[i].name);
		check_value(c->other[i].value);
	}
	check_again(c, bytes);
	if (c->log_file) {
		check_value(c->log_file);
		check_paths(c->log_file);
	}
	kprof_dynolog_config_free(c);
	free(text);
	return 0;
}
