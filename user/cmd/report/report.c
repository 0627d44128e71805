// SPDX-License-Identifier: BSD-2-Clause
/*
 * kprof report: prints what is in a capture, as tables (table.c; samples.c for samples, views.c for
 * processes, steps and ranges) or JSON.
 */

#include "cmd/export/export.h"
#include "cmd/print/json.h"
#include "cmd/print/message.h"
#include "cmd/report/report.h"
#include "cmd/print/text.h"

#define DEFAULT_ROWS 50 /* rows of a table; --json prints all */

struct report_opts {
	const char *path;
	int by; /* enum kprof_by; -1: not given */
	enum kprof_sort sort;
	uint64_t limit; /* number of rows; 0: all */
	bool json, native, python, interpreter, off_cpu;
	const struct command *self;
	struct range_opts range;
};

static const struct option_choice sorts[] = {
	{"self", KPROF_SORT_SELF}, {"total", KPROF_SORT_TOTAL}, {"count", KPROF_SORT_COUNT},
	{"avg", KPROF_SORT_AVG},   {"name", KPROF_SORT_NAME},   {NULL},
};

static const struct option_choice bys[] = {
	{"op", KPROF_BY_OP},
	{"thread", KPROF_BY_THREAD},
	{"function", KPROF_BY_FUNCTION},
	{"line", KPROF_BY_LINE},
	{"kernel", KPROF_BY_KERNEL},
	{"api", KPROF_BY_API},
	{"stream", KPROF_BY_STREAM},
	{"memcpy", KPROF_BY_MEMCPY},
	{"idle", KPROF_BY_IDLE},
	{"process", KPROF_BY_PROCESS},
	{"user", KPROF_BY_USER},
	{"container", KPROF_BY_CONTAINER},
	{"step", KPROF_BY_STEP},
	{"wait", KPROF_BY_WAIT},
	{"memory", KPROF_BY_MEMORY},
	{"module", KPROF_BY_MODULE},
	{"collective", KPROF_BY_COLLECTIVE},
	{"flops", KPROF_BY_FLOPS},
	{NULL},
};

static const char *choice_name(const struct option_choice *choices, int value)
{
	while (choices->name && choices->value != value)
		choices++;
	return choices->name;
}

/* ---- JSON ---- */

/* Writes the fields that only tables of devices have. */
static void json_device(struct json *j, enum kprof_by by, const struct kprof_row *row)
{
	if (by == KPROF_BY_API) {
		if (row->unknown_results < row->calls)
			json_uint(j, "errors", row->errors);
		else
			json_null(j, "errors");
		json_uint(j, "unknown_results", row->unknown_results);
	}
	if (by == KPROF_BY_MEMCPY) {
		json_uint(j, "bytes", row->bytes);
		json_double(j, "gb_per_s", report_gb_per_s(row));
	}
	if (by == KPROF_BY_STREAM) {
		json_uint(j, "busy_ns", row->total_ns);
		json_uint(j, "idle_ns", row->idle_ns);
		if (row->stream != UINT32_MAX)
			json_uint(j, "stream", row->stream);
	}
	if (by == KPROF_BY_STREAM || by == KPROF_BY_IDLE)
		json_uint(j, "device", row->device);
}

static void json_row(struct json *j, enum kprof_by by, const struct kprof_capture *c,
		     const struct kprof_result *r, size_t number)
{
	const struct kprof_row *row = kprof_result_row(r, number);
	bool of_samples = kprof_result_of_samples(r), memory = kprof_capture_has_memory(c);

	json_open(j, NULL, '{');
	json_string(j, "name", row->name);
	json_string(j, "category", row->category);
	json_uint(j, "pid", (uint64_t)row->pid);
	json_uint(j, "tid", (uint64_t)row->tid);
	json_uint(j, "calls", row->calls);
	json_uint(j, "total_ns", row->total_ns);
	json_uint(j, "self_ns", row->self_ns);
	json_uint(j, "min_ns", row->min_ns);
	json_uint(j, "max_ns", row->max_ns);
	json_uint(j, "timed", row->timed);
	json_uint(j, "avg_ns", row->timed ? row->total_ns / row->timed : 0);
	json_uint(j, "inexact", row->inexact);
	json_double(j, "self_share", row->self_share);
	if (of_samples || by == KPROF_BY_OP || by == KPROF_BY_THREAD)
		json_double(j, "total_share", row->total_share);
	if (of_samples)
		report_samples_json_row(j, row);
	if (by == KPROF_BY_WAIT)
		report_waits_json_row(j, row);
	if (memory)
		report_memory_json_row(j, by, row);
	if (row->flops)
		json_uint(j, "flops", row->flops);
	if (by == KPROF_BY_MODULE) {
		json_string(j, "outermost", row->where);
		json_uint(j, "op_ns", row->op_ns);
		json_uint(j, "device_ns", row->device_ns);
		json_int(j, "memory_bytes", row->memory_bytes);
		json_int(j, "device_memory_bytes", row->device_memory_bytes);
	}
	if (by == KPROF_BY_COLLECTIVE)
		report_collectives_json_row(j, row);
	if (by == KPROF_BY_FLOPS)
		report_roofline_json_row(j, row);
	report_counters_json_row(j, c, r, number);
	json_device(j, by, row);
	report_views_json_row(j, by, c, row);
	json_close(j, '}');
}

static void json_sources(struct json *j, const struct kprof_capture *c)
{
	json_open(j, "sources", '[');
	for (size_t i = 0; i < kprof_capture_info(c)->nr_sources; i++) {
		const struct kprof_source *s = kprof_capture_source(c, i);

		json_open(j, NULL, '{');
		json_string(j, "name", s->name);
		json_uint(j, "fired", s->fired);
		json_uint(j, "captured", s->captured);
		json_uint(j, "dropped", s->dropped);
		json_uint(j, "missed", s->missed);
		json_uint(j, "begins", s->begins);
		json_uint(j, "ends_exact", s->ends_exact);
		json_uint(j, "ends_closed", s->ends_closed);
		json_uint(j, "ends_window", s->ends_window);
		json_uint(j, "orphan_ends", s->orphan_ends);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void json_gaps(struct json *j, const struct kprof_capture *c)
{
	json_open(j, "gaps", '[');
	for (size_t i = 0; i < kprof_capture_info(c)->nr_gaps; i++) {
		const struct kprof_gap *g = kprof_capture_gap(c, i);

		json_open(j, NULL, '{');
		json_uint(j, "pid", (uint64_t)g->pid);
		json_uint(j, "start_mono_ns", g->start_mono_ns);
		json_uint(j, "end_mono_ns", g->end_mono_ns);
		json_string(j, "what", g->what);
		json_string(j, "reason", g->reason);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void print_json(const struct report_opts *opts, const struct kprof_capture *c,
		       const struct kprof_sample_stats *samples, const struct kprof_result *r,
		       size_t nr_rows)
{
	const struct kprof_capture_info *info = kprof_capture_info(c);
	struct json j = {.to = stdout};

	json_open(&j, NULL, '{');
	json_string(&j, "by", choice_name(bys, opts->by));
	json_string(&j, "sort", choice_name(sorts, (int)opts->sort));
	json_bool(&j, "complete", info->complete);
	json_uint(&j, "window_ns", info->end_mono_ns - info->start_mono_ns);
	json_uint(&j, "self_total_ns", kprof_result_self_total_ns(r));
	json_uint(&j, "events", info->events);
	json_open(&j, "rows", '[');
	for (size_t i = 0; i < nr_rows; i++)
		json_row(&j, (enum kprof_by)opts->by, c, r, i);
	json_close(&j, ']');
	if (opts->by == KPROF_BY_MEMORY)
		report_memory_json(&j, r);
	if (opts->by == KPROF_BY_COLLECTIVE)
		report_collectives_json(&j, r);
	if (opts->by == KPROF_BY_FLOPS)
		report_roofline_json(&j, r);
	json_bool(&j, "of_samples", kprof_result_of_samples(r));
	report_views_json(&j, (enum kprof_by)opts->by, c, r);
	report_samples_json(&j, c, samples);
	report_waits_json(&j, c);
	report_overhead_json(&j, c);
	json_sources(&j, c);
	json_gaps(&j, c);
	json_close(&j, '}');
}

/* ---- command ---- */

/* Explains why a table has no rows. */
static void warn_empty(const struct report_opts *opts, const struct kprof_capture *c,
		       const struct kprof_result *r)
{
	const char *where = kprof_capture_selection(c) ? " in the selected range" : "";
	const char *hint = "they come from processes that use CUDA or OpenCL, without --no-agent";

	switch ((enum kprof_by)opts->by) {
	case KPROF_BY_FUNCTION:
	case KPROF_BY_LINE:
		if (opts->off_cpu)
			message_warn("kprof sample --off-cpu records them, and attach --sched",
				     "%s has no waits%s", opts->path, where);
		else
			message_warn("kprof sample records them, and attach --stacks",
				     "%s has no samples%s", opts->path, where);
		break;
	case KPROF_BY_KERNEL:
	case KPROF_BY_STREAM:
	case KPROF_BY_IDLE:
		message_warn(hint, "%s has no activities of devices%s", opts->path, where);
		break;
	case KPROF_BY_MEMCPY:
		message_warn(hint, "%s has no copies or sets by devices%s", opts->path, where);
		break;
	case KPROF_BY_API:
		message_warn("they come from processes that use CUDA or OpenCL",
			     "%s has no calls of a device's runtime%s", opts->path, where);
		break;
	case KPROF_BY_STEP:
		message_warn("a step is an annotation such as ProfilerStep#7, train_step or "
			     "Optimizer.step#SGD.step",
			     "%s has no steps%s", opts->path, where);
		break;
	case KPROF_BY_WAIT:
		message_warn("kprof sample --off-cpu records them, and attach --sched",
			     "%s has no waits", opts->path);
		break;
	case KPROF_BY_MEMORY:
		message_warn("kprof attach --memory records them", "%s has no allocations%s",
			     opts->path, where);
		break;
	case KPROF_BY_MODULE:
		message_warn("kprof attach --modules records them", "%s has no calls of modules%s",
			     opts->path, where);
		break;
	case KPROF_BY_COLLECTIVE:
		report_collectives_empty(opts->path, r);
		break;
	case KPROF_BY_FLOPS:
		message_warn("kprof attach --flops records what they follow from",
			     "%s has no operators whose floating-point operations are known%s",
			     opts->path, where);
		break;
	case KPROF_BY_OP:
	case KPROF_BY_THREAD:
	case KPROF_BY_PROCESS:
	case KPROF_BY_USER:
	case KPROF_BY_CONTAINER:
		break;
	}
}

static int print(const struct report_opts *opts, struct kprof_capture *c,
		 const struct kprof_result *r)
{
	struct kprof_sample_stats samples;
	size_t nr_rows = kprof_result_nr_rows(r);
	int code;

	if (kprof_capture_sample_stats(c, &samples))
		return message_error();
	if (kprof_result_of_samples(r) && !opts->off_cpu ? !samples.samples : !nr_rows)
		warn_empty(opts, c, r);
	if (opts->limit && opts->limit < nr_rows)
		nr_rows = (size_t)opts->limit;
	if (opts->json) {
		print_json(opts, c, &samples, r, nr_rows);
		return EXIT_DONE;
	}
	if (kprof_result_of_samples(r) && !opts->off_cpu) {
		report_samples_head(&samples);
		report_samples_runtimes(c);
	}
	code = report_table((enum kprof_by)opts->by, c, r, nr_rows, opts->off_cpu);
	if (code == EXIT_DONE)
		report_overhead_line(c);
	return code;
}

static int report(const struct report_opts *opts)
{
	const struct kprof_result_opts table = {.sz = sizeof(table),
						.by = (enum kprof_by)opts->by,
						.sort = opts->sort,
						.off_cpu = opts->off_cpu,
						.frames = opts->native   ? KPROF_FRAMES_NATIVE
							  : opts->python ? KPROF_FRAMES_PYTHON
									 : KPROF_FRAMES_ALL};
	struct caller caller = caller_get();
	struct kprof_capture *c = NULL;
	struct kprof_result *r = NULL;
	int code;

	if (kprof_give_up_root(opts->path, NULL, caller.uid, caller.gid, true) ||
	    kprof_capture_open(opts->path, &c)) {
		code = message_error();
		goto out;
	}
	/* Without Python frames, those of the interpreter are all there is. */
	kprof_capture_show_interpreter(c, opts->interpreter || opts->native);
	code = range_select(opts->self, &opts->range, c);
	if (code >= 0)
		goto out;
	if (kprof_result_new_opts(c, &table, &r)) {
		code = message_error();
		goto out;
	}
	message_cut(opts->path, kprof_capture_info(c));
	code = print(opts, c, r);
out:
	kprof_result_free(r);
	kprof_capture_close(c);
	return code;
}

#define OPT(FIELD) OPTION_FIELD(struct report_opts, FIELD)

/* clang-format off */
static const struct option_row options[] = {
	{.name = "by", .kind = OPTION_CHOICE, OPT(by), .choices = bys, .argument = "WHAT",
	 .help = "op (default), thread, process, user, container, step; of samples: function, line; "
		 "of devices: kernel, api (calls), stream, memcpy, idle (what the host did while the "
		 "device waited); wait (what threads waited for, and who woke them); memory (what was "
		 "in use when most was, and what is never freed); module (PyTorch's, with --modules); "
		 "collective (who came last, how long the others waited); flops (operations and "
		 "bytes, and their shares of the device's peak)"},
	RANGE_OPTIONS(struct report_opts, range),
	{.name = "off-cpu", .kind = OPTION_FLAG, OPT(off_cpu),
	 .help = "tables of samples: of waits instead, by the time that was waited"},
	{.name = "native", .kind = OPTION_FLAG, OPT(native),
	 .help = "of samples: native functions only, as if no Python were there"},
	{.name = "python", .kind = OPTION_FLAG, OPT(python),
	 .help = "of samples: Python functions only, with what they called"},
	{.name = "interpreter", .kind = OPTION_FLAG, OPT(interpreter),
	 .help = "of samples: CPython's own C frames around Python's, too"},
	{.name = "sort", .kind = OPTION_CHOICE, OPT(sort), .choices = sorts, .argument = "HOW",
	 .help = "self (default), total, count, avg or name"},
	{.name = "limit", .kind = OPTION_NUMBER, OPT(limit), .most = UINT32_MAX, .argument = "N",
	 .wrong = "number of rows",
	 .help = "rows; 0: all. Default: 50, with --json all"},
	{.name = "json", .kind = OPTION_FLAG, OPT(json),
	 .help = "as JSON, with the accounting of sources and the gaps"},
	{0},
};
/* clang-format on */

static int run(const struct command *self, int argc, char **argv)
{
	struct report_opts opts = {.by = -1, .limit = UINT64_MAX};
	int first, code = options_parse(self, argc, argv, &opts, &first);

	if (code < 0 && opts.native && opts.python)
		code = message_usage(self->name, "either --native or --python, not both");
	if (code < 0)
		code = options_capture(self, argc, argv, first);
	if (code >= 0)
		return code;
	opts.path = argv[first];
	opts.self = self;
	if (opts.by < 0)
		opts.by = opts.native || opts.python || opts.off_cpu ? KPROF_BY_FUNCTION
								     : KPROF_BY_OP;
	if (opts.limit == UINT64_MAX)
		opts.limit = opts.json ? 0 : DEFAULT_ROWS;
	return report(&opts);
}

const struct command cmd_report = {
	.name = "report",
	.arguments = "FILE.kprof [OPTION…]",
	.summary = "tables: operators, functions, processes, steps, kernels, why a GPU was idle",
	.options = options,
	.run = run,
};
