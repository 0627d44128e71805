// SPDX-License-Identifier: BSD-2-Clause
/* kprof dump: prints what every thread of a process is doing now. */
#include <stdio.h>
#include <string.h>

#include "cmd/commands.h"
#include "cmd/dump/text.h"
#include "cmd/print/json.h"
#include "cmd/print/message.h"

struct dump {
	struct value_pids pids;
	struct kprof_dump_opts opts;
	struct message_opts message;
	bool as_json, all;
	struct dump_text *text; /* what is printed for people */
	struct json json;       /* used if as_json is set */
	pid_t begun;            /* PID of the process whose head has been written; 0: none */
};

/* ---- for programs ---- */

static void json_process(struct json *j, const struct kprof_dump_process *p)
{
	json_open(j, NULL, '{');
	json_uint(j, "pid", (uint64_t)p->pid);
	json_string(j, "command", p->command);
	json_string(j, "python", p->python);
	json_string(j, "note", p->note);
	json_uint(j, "time_ns", p->time_real_ns);
	json_open(j, "threads", '[');
}

static void json_frame(struct json *j, const struct kprof_frame *f)
{
	static const char *const kinds[] = {
		[KPROF_FRAME_NATIVE] = "native",
		[KPROF_FRAME_PYTHON] = "python",
		[KPROF_FRAME_KERNEL] = "kernel",
	};

	json_open(j, NULL, '{');
	json_string(j, "kind", kinds[f->kind]);
	json_string(j, "function", f->function);
	json_string(j, "name", f->name);
	json_string(j, "file", f->file);
	json_uint(j, "line", f->line);
	json_string(j, "module", f->module);
	json_string(j, "build_id", f->build_id);
	json_uint(j, "address", f->address);
	json_bool(j, "inlined", f->inlined);
	json_close(j, '}');
}

static void json_thread(struct json *j, const struct kprof_dump_thread *t)
{
	json_open(j, NULL, '{');
	json_uint(j, "tid", (uint64_t)t->tid);
	json_string(j, "name", t->name);
	json_string(j, "python_name", t->python_name);
	json_string(j, "state", dump_text_state(t->state));
	json_string(j, "doing", t->doing);
	json_string(j, "call", t->call);
	json_bool(j, "python", t->python);
	json_bool(j, "holds_gil", t->holds_gil);
	json_bool(j, "waits_gil", t->waits_gil);
	json_string(j, "cut", t->cut);
	json_open(j, "frames", '[');
	for (size_t i = 0; i < t->nr_frames; i++)
		json_frame(j, &t->frames[i]);
	json_close(j, ']');
	json_close(j, '}');
}

/* ---- the whole ---- */

static int on_thread(void *ctx, const struct kprof_dump_process *p,
		     const struct kprof_dump_thread *t)
{
	struct dump *d = ctx;

	if (d->begun != p->pid && d->as_json)
		json_process(&d->json, p);
	d->begun = p->pid;
	if (!d->as_json)
		return dump_text__add(d->text, p, t);
	json_thread(&d->json, t);
	return 0;
}

/* Ends what was written of a process. */
static void end_process(struct dump *d)
{
	if (!d->as_json) {
		dump_text__end(d->text);
	} else if (d->begun) {
		json_close(&d->json, ']');
		json_close(&d->json, '}');
	}
}

static int dump(struct dump *d)
{
	int code = EXIT_DONE, err;

	for (size_t i = 0; i < d->pids.nr; i++) {
		d->begun = 0;
		if (i && !d->as_json)
			putchar('\n');
		err = kprof_dump(d->pids.items[i], &d->opts, on_thread, d);
		end_process(d);
		if (err) {
			fflush(stdout);
			code = err == DUMP_TEXT_NO_MEMORY ? message_no_memory() : message_error();
		}
	}
	return code;
}

/* ---- command ---- */

#define OPT(FIELD) OPTION_FIELD(struct dump, FIELD)

/* clang-format off */
static const struct option_row options[] = {
	{.name = "pid", .letter = 'p', .kind = OPTION_PIDS, OPT(pids), .argument = "PID[,PID…]",
	 .help = "of these processes"},
	{.name = "json", .kind = OPTION_FLAG, OPT(as_json),
	 .help = "for programs"},
	{.name = "all", .kind = OPTION_FLAG, OPT(all),
	 .help = "each thread by itself; otherwise threads with equal stacks are shown once"},
	{.name = "interpreter", .kind = OPTION_FLAG, OPT(opts.interpreter),
	 .help = "CPython's own C frames around Python's, too"},
	{.name = "native-only", .kind = OPTION_FLAG, OPT(opts.no_python),
	 .help = "the interpreter's own functions instead of Python's"},
	{.name = "python-only", .kind = OPTION_FLAG, OPT(opts.no_native),
	 .help = "only Python functions, of threads that run Python"},
	{.name = "kernel", .kind = OPTION_FLAG, OPT(opts.kernel),
	 .help = "the kernel's functions on top"},
	{.name = "no-lines", .kind = OPTION_FLAG, OPT(opts.no_lines),
	 .help = "no source lines and inlined functions of native code: faster"},
	{.name = "wait", .kind = OPTION_DURATION, OPT(opts.wait_ns), .least = 1, .argument = "TIME",
	 .wrong = "time",
	 .help = "for threads that do not lie still; default: 500ms"},
	{.name = "verbose", .letter = 'v', .kind = OPTION_FLAG, OPT(message.verbose),
	 .help = "say what is being done"},
	{0},
};
/* clang-format on */

static int dump_as_json(struct dump *d)
{
	struct json *j = &d->json;
	int code;

	*j = (struct json){.to = stdout, .first = true};
	json_open(j, NULL, '{');
	json_open(j, "processes", '[');
	code = dump(d);
	json_close(j, ']');
	json_close(j, '}');
	return code;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct dump d = {.opts = {.sz = sizeof(d.opts)}};
	int first, code = options_parse(self, argc, argv, &d, &first);

	if (code >= 0)
		goto out;
	if (first < argc)
		code = message_usage(self->name, "'%s' is no option", argv[first]);
	else if (!d.pids.nr)
		code = message_usage(self->name, "which process? -p PID");
	else if (d.opts.no_native && d.opts.no_python)
		code = message_usage(self->name, "--native-only and --python-only leave nothing");
	if (code >= 0)
		goto out;
	message_listen(&d.message);
	d.text = dump_text__new(d.all);
	if (!d.text)
		code = message_no_memory();
	else
		code = d.as_json ? dump_as_json(&d) : dump(&d);
out:
	dump_text__free(d.text);
	options_free(self, &d);
	return code;
}

const struct command cmd_dump = {
	.name = "dump",
	.arguments = "-p PID[,PID…] [OPTION…]",
	.summary = "what every thread does now: native and Python stacks; nothing is stopped",
	.options = options,
	.run = run,
};
