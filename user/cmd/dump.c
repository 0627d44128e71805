// SPDX-License-Identifier: BSD-2-Clause
/* kprof dump: what every thread of a process does now. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/json.h"
#include "cmd/message.h"
#include "cmd/options.h"
#include "cmd/text.h"

#define MOST_PIDS 256

static const struct option longs[] = {
	{"pid", required_argument, NULL, 'p'},
	{"json", no_argument, NULL, 'j'},
	{"interpreter", no_argument, NULL, 'I'},
	{"native-only", no_argument, NULL, 'N'},
	{"python-only", no_argument, NULL, 'P'},
	{"kernel", no_argument, NULL, 'k'},
	{"no-lines", no_argument, NULL, 'l'},
	{"wait", required_argument, NULL, 'w'},
	{"verbose", no_argument, NULL, 'v'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

struct dump {
	pid_t pids[MOST_PIDS];
	size_t nr_pids;
	struct kprof_dump_opts opts;
	struct message_opts message;
	struct json *json; /* NULL: for people */
	pid_t begun;       /* the process whose head is written; 0: none */
};

static const char *const states[] = {
	[KPROF_THREAD_RUNNING] = "running",   [KPROF_THREAD_RUNNABLE] = "waiting for a CPU",
	[KPROF_THREAD_SLEEPING] = "sleeping", [KPROF_THREAD_BLOCKED] = "blocked",
	[KPROF_THREAD_STOPPED] = "stopped",   [KPROF_THREAD_EXITED] = "exited",
};

/* ---- for people -------------------------------------------------------------------------------- */

/* Behind the folder that installed packages lie in: what is before says nothing. */
static const char *short_path(const char *path)
{
	static const char *const folders[] = {"/site-packages/", "/dist-packages/"};

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		const char *at = strstr(path, folders[i]);

		if (at)
			return at + strlen(folders[i]);
	}
	return path;
}

static const char *base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void print_frame(const struct kprof_frame *f)
{
	printf("    ");
	text_print(stdout, f->function);
	if (f->file[0]) {
		printf(" (");
		text_print(stdout,
			   f->kind == KPROF_FRAME_PYTHON ? short_path(f->file) : base(f->file));
		if (f->line)
			printf(":%u", f->line);
		putchar(')');
	} else if (f->kind == KPROF_FRAME_KERNEL) {
		printf(" [kernel]");
	} else if (f->module[0] && !strchr(f->function, '+')) {
		printf(" (");
		text_print(stdout, base(f->module));
		putchar(')');
	}
	puts(f->inlined ? " [inlined]" : "");
}

static void print_process(const struct kprof_dump_process *p)
{
	printf("Process %d: ", (int)p->pid);
	text_print(stdout, p->command);
	putchar('\n');
	if (p->python[0])
		printf("Python %s, ", p->python);
	printf("%zu thread%s; the most recent call comes first\n", p->nr_threads,
	       p->nr_threads == 1 ? "" : "s");
	if (p->note[0]) {
		text_print(stdout, p->note);
		putchar('\n');
	}
}

static void print_thread(const struct kprof_dump_thread *t)
{
	bool named = t->python_name[0] && strcmp(t->python_name, t->name);

	printf("\nThread %d \"", (int)t->tid);
	text_print(stdout, named ? t->python_name : t->name);
	putchar('"');
	if (named) {
		printf(" (");
		text_print(stdout, t->name);
		putchar(')');
	}
	printf(": %s", states[t->state]);
	if (t->doing[0])
		printf(" %s", t->doing);
	if (t->holds_gil)
		printf(", holds the GIL");
	if (t->waits_gil)
		printf(", waits for the GIL");
	putchar('\n');
	for (size_t i = 0; i < t->nr_frames; i++)
		print_frame(&t->frames[i]);
	if (t->cut[0]) {
		printf("    (");
		text_print(stdout, t->cut);
		puts(")");
	}
}

/* ---- for programs ------------------------------------------------------------------------------ */

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
	json_string(j, "state", states[t->state]);
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

/* ---- the whole --------------------------------------------------------------------------------- */

static int on_thread(void *ctx, const struct kprof_dump_process *p,
		     const struct kprof_dump_thread *t)
{
	struct dump *d = ctx;

	if (d->begun != p->pid) {
		if (d->json)
			json_process(d->json, p);
		else
			print_process(p);
		d->begun = p->pid;
	}
	if (d->json)
		json_thread(d->json, t);
	else
		print_thread(t);
	return 0;
}

static int dump(struct dump *d)
{
	int code = EXIT_DONE;

	for (size_t i = 0; i < d->nr_pids; i++) {
		d->begun = 0;
		if (i && !d->json)
			putchar('\n');
		if (kprof_dump(d->pids[i], &d->opts, on_thread, d)) {
			fflush(stdout);
			code = message_error();
		}
		if (d->begun && d->json) {
			json_close(d->json, ']');
			json_close(d->json, '}');
		}
	}
	return code;
}

static bool add_pids(struct dump *d, const char *text)
{
	char *copy = strdup(text), *save = NULL;
	bool fine = copy != NULL;

	for (char *word = fine ? strtok_r(copy, ",", &save) : NULL; word && fine;
	     word = strtok_r(NULL, ",", &save))
		fine = d->nr_pids < MOST_PIDS && option_pid(word, &d->pids[d->nr_pids++]);
	free(copy);
	return fine && d->nr_pids;
}

/* -1: go on; else the exit code. */
static int take_option(const struct command *self, struct dump *d, int option, bool *json)
{
	switch (option) {
	case 'h':
		return command_help(self);
	case 'p':
		return add_pids(d, optarg)
			       ? -1
			       : message_usage(self, "'%s' is no process number", optarg);
	case 'w':
		return option_duration(optarg, &d->opts.wait_ns)
			       ? -1
			       : message_usage(self, "'%s' is no time", optarg);
	case 'j':
		*json = true;
		return -1;
	case 'N':
		d->opts.no_python = true;
		return -1;
	case 'P':
		d->opts.no_native = true;
		return -1;
	case 'I':
		d->opts.interpreter = true;
		return -1;
	case 'k':
		d->opts.kernel = true;
		return -1;
	case 'l':
		d->opts.no_lines = true;
		return -1;
	case 'v':
		d->message.verbose = true;
		return -1;
	default:
		return EXIT_USAGE;
	}
}

static int run(const struct command *self, int argc, char **argv)
{
	struct dump d = {.opts = {.sz = sizeof(d.opts)}};
	struct json json = {.to = stdout, .first = true};
	bool as_json = false;
	int option, code;

	while ((option = option_next(self, argc, argv, ":p:vh", longs)) != -1) {
		code = take_option(self, &d, option, &as_json);
		if (code >= 0)
			return code;
	}
	if (optind < argc)
		return message_usage(self, "'%s' is no option", argv[optind]);
	if (!d.nr_pids)
		return message_usage(self, "which process? -p PID");
	if (d.opts.no_native && d.opts.no_python)
		return message_usage(self, "--native-only and --python-only leave nothing");
	message_listen(&d.message);
	if (!as_json)
		return dump(&d);
	d.json = &json;
	json_open(&json, NULL, '{');
	json_open(&json, "processes", '[');
	code = dump(&d);
	json_close(&json, ']');
	json_close(&json, '}');
	return code;
}

const struct command cmd_dump = {
	.name = "dump",
	.arguments = "-p PID[,PID…] [OPTION…]",
	.summary = "what every thread does now: native and Python stacks; nothing is stopped",
	.help = "  -p, --pid PIDS        of these processes\n"
		"      --json            for programs\n"
		"      --interpreter     CPython's own C frames around Python's, too\n"
		"      --native-only     the interpreter's own functions instead of Python's\n"
		"      --python-only     only Python functions, of threads that run Python\n"
		"      --kernel          the kernel's functions on top\n"
		"      --no-lines        no source lines and inlined functions of native code: faster\n"
		"      --wait TIME       for threads that do not lie still; default: 500ms\n"
		"  -v, --verbose         say what is being done\n"
		"  -h, --help            this text\n",
	.run = run,
};
