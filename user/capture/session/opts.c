// SPDX-License-Identifier: BSD-2-Clause
/*
 * What options may be; and what whoever records says of the recording: its id, its name, values for
 * the trace's head.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <string.h>

#include "capture/session/session.h"
#include "kprof/activity.h"
#include "kprof/counters.h"
#include "util/error.h"
#include "util/json_valid.h"
#include "util/trace_meta.h"
#include "util/utf8.h"
#include "util/util.h"

#define MAX_TEXT_BYTES 256

static int check_text(const char *what, const char *text)
{
	size_t len = text ? strnlen(text, MAX_TEXT_BYTES + 1) : 0;

	if (text && (!len || len > MAX_TEXT_BYTES))
		return error_set_usage(-EINVAL, "1 to 256 bytes", "a trace's %s can't be %s", what,
				       len ? "so long" : "empty");
	for (size_t at = 0, n; at < len; at += n) {
		n = utf8_printable_len(text + at, len - at);
		if (!n)
			return error_set_usage(
				-EINVAL, "printable characters, in UTF-8",
				"a trace's %s can't have byte 0x%02x at its place %zu", what,
				(unsigned char)text[at], at + 1);
	}
	return 0;
}

int kprof_metadata_check(const char *key, const char *json)
{
	const char *problem = trace_meta_key_problem(key);

	error_clear();
	if (problem)
		return error_set_usage(-EINVAL, "choose another key",
				       "'%.140s' can't be a key of metadata: %s", key, problem);
	if (strlen(json) > TRACE_META_JSON_MAX)
		return error_set_usage(-E2BIG, "at most 65536 bytes",
				       "the value of '%s' is too long", key);
	if (!json_valid(json))
		return error_set_usage(-EINVAL,
				       "a text needs quotes of its own: --meta 'note=\"a text\"'",
				       "the value of '%s' is not JSON: %.200s", key, json);
	return 0;
}

int kprof_session_add_metadata_json(struct kprof_session *s, const char *key, const char *json)
{
	char name[sizeof(TRACE_META_PREFIX) + TRACE_META_KEY_MAX];
	int err = kprof_metadata_check(key, json);

	if (err)
		return err;
	if (recorder__window(s->recorder)->closed)
		return error_set_usage(-EINVAL, "before kprof_session_stop()",
				       "the recording is over: '%s' came too late", key);
	stpcpy(stpcpy(name, TRACE_META_PREFIX), key);
	return recorder__meta(s->recorder, name, json);
}

static const struct {
	const char *name;
	enum kprof_only bit;
} annotations[] = {{"nvtx", KPROF_ONLY_NVTX}, {"itt", KPROF_ONLY_ITT}, {"mark", KPROF_ONLY_MARK}};

int kprof_session_opts_only(struct kprof_session_opts *opts, const char *names)
{
	size_t len, i;

	error_clear();
	opts->only = 0;
	for (;; names += len + 1) {
		len = strcspn(names, ",");
		for (i = 0; i < ARRAY_SIZE(annotations); i++)
			if (strlen(annotations[i].name) == len &&
			    !strncmp(annotations[i].name, names, len))
				break;
		if (i == ARRAY_SIZE(annotations))
			return error_set_usage(-EINVAL, "there are nvtx, itt and mark",
					       "'%.*s' is no kind of annotation",
					       (int)(len < 100 ? len : 100), names);
		opts->only |= annotations[i].bit;
		if (!names[len])
			return 0;
	}
}

/* What records something else than annotations. */
static int check_only(const struct kprof_session_opts *opts)
{
	const uint64_t ours = 1ull << KPROF_ACTIVITY_USER_ANNOTATION |
			      1ull << KPROF_ACTIVITY_CPU_INSTANT_EVENT |
			      1ull << KPROF_ACTIVITY_CPU_OP;
	const struct {
		bool given;
		const char *option;
	} others[] = {
		{opts->nr_ops, "--ops"},
		{opts->samples_only, "sample"},
		{opts->sample_hz, "--stacks"},
		{opts->with_stack, "--with-stack"},
		{opts->waits, "--sched"},
		{opts->shapes || opts->flops, "--shapes"},
		{opts->memory, "--memory"},
		{opts->cuda_sync, "--cuda-sync"},
		{opts->cuda_memory, "--cuda-memory"},
		{opts->types && !(opts->types & ours), "--types"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(others) && opts->only; i++)
		if (others[i].given)
			return error_set_usage(-EINVAL,
					       "leave out one of the two, also in /etc/kprof.conf",
					       "only annotations (--only) and something else (%s) "
					       "contradict each other",
					       others[i].option);
	return 0;
}

int kprof_session_opts_check(const struct kprof_session_opts *opts)
{
	int err;

	error_clear();
	err = check_only(opts);
	if (!err && opts->counters && opts->samples_only)
		return error_set_usage(-EINVAL, "leave out one of the two",
				       "samples have no counters: calls have");
	if (!err && opts->counters)
		err = kprof_counters_check(opts->counters);
	if (!err)
		err = check_text("id", opts->trace_id);
	return err ? err : check_text("name", opts->trace_name);
}

static int put_text(struct kprof_session *s, const char *key, const char *text)
{
	return text ? recorder__meta_value(s->recorder, key, cJSON_CreateString(text)) : 0;
}

int opts__put(struct kprof_session *s)
{
	int err = put_text(s, "trace_id", s->opts.trace_id);

	return err ? err : put_text(s, "trace_name", s->opts.trace_name);
}
