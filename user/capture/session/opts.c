// SPDX-License-Identifier: BSD-2-Clause
/*
 * What options may be; and what whoever records says of the recording: its id, its name, values for
 * the trace's head.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "capture/session/session.h"
#include "catalog/catalog.h"
#include "kprof/activity.h"
#include "kprof/agent.h"
#include "kprof/counters.h"
#include "kprof/within.h"
#include "util/error.h"
#include "util/json_valid.h"
#include "util/trace_meta.h"
#include "util/utf8.h"
#include "util/util.h"

#define MAX_TEXT_BYTES 256
#define LEAST_RANGE_NS (100 * NSEC_PER_MSEC)
#define MOST_RANGE_NS (3600 * NSEC_PER_SEC)

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
		{opts->flow, "--flow"},
		{opts->memory, "--memory"},
		{opts->modules, "--modules"},
		{opts->cuda_sync, "--cuda-sync"},
		{opts->cuda_memory, "--cuda-memory"},
		{opts->metrics, "--metrics"},
		{opts->scopes, "--scopes"},
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

static int scopes_of(const char *names, uint32_t *bits)
{
	size_t len, i;

	error_clear();
	*bits = 0;
	for (; names; names = names[len] ? names + len + 1 : NULL) {
		len = strcspn(names, ",");
		for (i = 0; i < KPROF_SCOPES; i++)
			if (strlen(kprof_scope_name(i)) == len &&
			    !strncasecmp(kprof_scope_name(i), names, len))
				break;
		if (i == KPROF_SCOPES)
			return error_set_usage(-EINVAL, "see --help", "'%.*s' is no scope",
					       (int)(len < 100 ? len : 100), names);
		*bits |= 1u << i;
	}
	return 0;
}

int kprof_session_opts_scopes(struct kprof_session_opts *opts, const char *names)
{
	int err = scopes_of(names, &opts->observe);

	if (!names)
		opts->observe = (1u << KPROF_SCOPES) - 1;
	return err;
}

static int check_scopes(const struct kprof_session_opts *opts)
{
	uint32_t probed = catalog_scopes();

	for (size_t i = 0; i < KPROF_SCOPES; i++)
		if (opts->scopes & ~probed & 1u << i)
			return error_set_usage(-EINVAL,
					       "--observer, or one of FUNCTION, BACKWARD_FUNCTION, "
					       "TORCHSCRIPT_FUNCTION and USER_SCOPE",
					       "probes see nothing of the scope %s",
					       kprof_scope_name(i));
	if (opts->scopes && opts->observe)
		return error_set_usage(-EINVAL, "leave out .scopes",
				       "the observer's scopes are those of .observe");
	return 0;
}

int kprof_session_opts_probed_scopes(struct kprof_session_opts *opts, const char *names)
{
	int err = scopes_of(names, &opts->scopes);

	return err ? err : check_scopes(opts);
}

/* What the observer does not tell, or what would have to be bounded inside of the process. */
static int check_observe(const struct kprof_session_opts *opts)
{
	const struct {
		bool given;
		const char *option;
	} others[] = {
		{opts->only, "--only"},
		{opts->agent == KPROF_AGENT_NONE, "--no-agent"},
		{opts->samples_only, "sample"},
		{opts->all_processes, "-a"},
		{opts->with_stack, "--with-stack"},
		{opts->modules, "--modules"},
		{opts->counters, "--counters"},
		{opts->max_overhead > 0, "--max-overhead"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(others) && opts->observe; i++)
		if (others[i].given)
			return error_set_usage(
				-EINVAL, "leave out one of the two, also in /etc/kprof.conf",
				"--observer and %s can't be had together", others[i].option);
	return 0;
}

const char *opts__step_symbol(const struct kprof_schedule *schedule)
{
	static const char prefix[] = "symbol:";

	if (!schedule->annotation || strncmp(schedule->annotation, prefix, strlen(prefix)) != 0)
		return NULL;
	return schedule->annotation + strlen(prefix);
}

/* Calls have the name in the recording that is looked for there. */
static int check_step_symbol(const char *name)
{
	if (!name || (*name && !strpbrk(name, "(<") && strncmp(name, "_Z", 2) != 0))
		return 0;
	return error_set_usage(-EINVAL,
			       "symbol:trainer::step, as `nm -DC` shows it, without parameters and "
			       "template arguments",
			       "--step-at: '%.100s' is no name of a function", name);
}

/* Steps are annotations. */
static int check_schedule(const struct kprof_session_opts *opts)
{
	const uint64_t annotations = 1ull << KPROF_ACTIVITY_USER_ANNOTATION;

	if (!opts->schedule)
		return 0;
	if (!opts->schedule->steps)
		return error_set_usage(-EINVAL, "1 at least", "a recording of no steps");
	if (check_step_symbol(opts__step_symbol(opts->schedule)))
		return -EINVAL;
	if (opts->observe)
		return error_set_usage(-EINVAL, "leave out one of the two",
				       "--steps and --observer can't be had together: steps are "
				       "told when they are over");
	if (opts->samples_only || (opts->types && !(opts->types & annotations)))
		return error_set_usage(-EINVAL, "leave out one of the two, also in /etc/kprof.conf",
				       "steps are annotations, and these are not recorded (%s)",
				       opts->samples_only ? "sample" : "--types, --activities");
	if (opts->scopes && !(opts->scopes >> KPROF_SCOPE_USER_SCOPE & 1))
		return error_set_usage(-EINVAL, "add USER_SCOPE to --scopes",
				       "steps are annotations, and these are not recorded "
				       "(--scopes)");
	return 0;
}

const char *opts__within(const struct kprof_session_opts *opts, enum kprof_within_of *of)
{
	static const struct {
		const char *prefix;
		enum kprof_within_of of;
	} kinds[] = {{"annotation:", KPROF_WITHIN_ANNOTATIONS},
		     {"function:", KPROF_WITHIN_FUNCTIONS},
		     {"module:", KPROF_WITHIN_MODULES},
		     {"symbol:", KPROF_WITHIN_SYMBOL}};

	*of = KPROF_WITHIN_ANNOTATIONS;
	for (size_t i = 0; i < ARRAY_SIZE(kinds) && opts->within; i++) {
		if (!strncmp(opts->within, kinds[i].prefix, strlen(kinds[i].prefix))) {
			*of = kinds[i].of;
			return opts->within + strlen(kinds[i].prefix);
		}
	}
	return opts->within;
}

/* What the name of that kind can be. */
static int check_within_name(const char *name, enum kprof_within_of of)
{
	if (!*name || strlen(name) >= KPROF_WITHIN_BYTES)
		return error_set_usage(-EINVAL, "1 to 255 bytes", "--within: a name can't be %s",
				       *name ? "so long" : "empty");
	if (of == KPROF_WITHIN_SYMBOL)
		return 0;
	if (strpbrk(name, "[]\\"))
		return error_set_usage(-EINVAL, "* stands for any characters, ? for one",
				       "--within: '%.100s' has one of [ ] \\", name);
	if (of == KPROF_WITHIN_MODULES && strpbrk(name, ".:/"))
		return error_set_usage(-EINVAL,
				       "module:Decoder; `kprof report --by module` shows names of "
				       "classes",
				       "--within: '%.100s' is no name of a class", name);
	return 0;
}

/* What a part of is recorded only, or what would have to be known of other times, too. */
static int check_within(const struct kprof_session_opts *opts)
{
	enum kprof_within_of of;
	const char *name = opts__within(opts, &of);
	const struct {
		bool given;
		const char *option;
	} others[] = {{opts->samples_only, "sample"},
		      {opts->waits, "--sched"},
		      {opts->schedule, "--steps"},
		      {opts->observe && opts->sample_hz, "--observer with --stacks"}};
	int err;

	if (!name)
		return 0;
	err = check_within_name(name, of);
	if (err)
		return err;
	if (of != KPROF_WITHIN_ANNOTATIONS && opts->observe)
		return error_set_usage(-EINVAL,
				       "leave out --observer; or put an annotation around it: "
				       "record_function('NAME')",
				       "--observer knows what is inside of annotations, not of "
				       "functions and modules (--within)");
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (others[i].given)
			return error_set_usage(
				-EINVAL, "leave out one of the two, also in /etc/kprof.conf",
				"--within and %s can't be had together", others[i].option);
	return 0;
}

static int check_tids(const struct kprof_session_opts *opts)
{
	if (!opts->choice.nr_tids)
		return 0;
	if (opts->all_processes || opts->samples_only)
		return error_set_usage(-EINVAL, "-p PID", "threads are chosen of given processes");
	if (opts->observe)
		return error_set_usage(-EINVAL, "leave out one of the two",
				       "--tid and --observer can't be had together: the agent "
				       "observes all threads");
	if (opts->choice.nr_tids > KPROF_WIRE_MAX_TIDS)
		return error_set_usage(-E2BIG, "without --tid, all threads are recorded",
				       "%zu threads are more than %d", opts->choice.nr_tids,
				       KPROF_WIRE_MAX_TIDS);
	return 0;
}

/* sm__inst_executed.sum: a counter's name and at least one word about what is made of it. */
static bool is_metric(const char *name, size_t len)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_";
	size_t words = 0, n;

	for (size_t at = 0; at < len; at += n + 1, words++) {
		n = strspn(name + at, letters);
		if (!n || at + n > len || (at + n < len && name[at + n] != '.'))
			return false;
		if (at + n + 1 == len)
			return false;
	}
	return words >= 2;
}

static int check_names(const char *names)
{
	size_t nr = 0, len;

	if (strnlen(names, KPROF_AGENT_METRICS_BYTES) == KPROF_AGENT_METRICS_BYTES)
		return error_set_usage(-E2BIG, "ask for fewer",
				       "--metrics: the names take %d bytes",
				       KPROF_AGENT_METRICS_BYTES);
	for (;; names += len + 1, nr++) {
		len = strcspn(names, ",");
		if (nr == KPROF_AGENT_METRICS)
			return error_set_usage(-E2BIG, "ask for fewer",
					       "--metrics: more than %d metrics",
					       KPROF_AGENT_METRICS);
		if (!is_metric(names, len))
			return error_set_usage(
				-EINVAL,
				"names are CUPTI's, with what is made of each unit's value: "
				"sm__inst_executed.sum,dram__bytes.sum.per_second",
				"'%.*s' is no name of a metric", (int)(len < 100 ? len : 100),
				names);
		if (!names[len])
			return 0;
	}
}

static int check_metrics(const struct kprof_session_opts *opts)
{
	if (!opts->metrics)
		return opts->metrics_range_ns ? error_set_usage(-EINVAL, "--metrics NAMES",
								"--metrics-range without --metrics")
					      : 0;
	if (opts->agent == KPROF_AGENT_NONE)
		return error_set_usage(
			-EINVAL,
			"leave out one of the two, also in /etc/kprof.conf; with -a: --agent",
			"--metrics and --no-agent contradict each other: the agent measures them");
	if (opts->metrics_range_ns &&
	    (opts->metrics_range_ns < LEAST_RANGE_NS || opts->metrics_range_ns > MOST_RANGE_NS))
		return error_set_usage(-EINVAL, "100ms to 1h", "--metrics-range: %.3g s",
				       (double)opts->metrics_range_ns / 1e9);
	return check_names(opts->metrics);
}

int kprof_session_opts_check(const struct kprof_session_opts *opts)
{
	int err;

	error_clear();
	err = check_only(opts);
	if (!err && opts->counters && opts->samples_only)
		return error_set_usage(-EINVAL, "leave out one of the two",
				       "samples have no counters: calls have");
	if (!err && opts->rotates && (opts->alive || (opts->schedule && opts->schedule->steps)))
		return error_set_usage(-EINVAL, "leave out .rotates",
				       "a recording of some steps, or of what is allocated, is one "
				       "capture");
	if (!err && opts->counters)
		err = kprof_counters_check(opts->counters);
	if (!err)
		err = check_scopes(opts);
	if (!err)
		err = check_observe(opts);
	if (!err)
		err = check_metrics(opts);
	if (!err)
		err = check_schedule(opts);
	if (!err)
		err = check_tids(opts);
	if (!err)
		err = check_within(opts);
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

	if (!err)
		err = put_text(s, "trace_name", s->opts.trace_name);
	if (!err && s->within_of != KPROF_WITHIN_ANNOTATIONS) /* it is told from annotations */
		return put_text(s, "within", s->within_asked);
	return err ? err : put_text(s, "within", s->opts.within);
}
