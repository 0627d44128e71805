// SPDX-License-Identifier: BSD-2-Clause
/*
 * From addresses to names: puts Python frames at their places among the native ones, and gives each
 * frame its function, file and line.
 */
#include "capture/dump/priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/names/names.h"
#include "symbol/symbolize/symbolize.h"
#include "util/error.h"
#include "util/map64.h"
#include "util/util.h"

#define NO_REQUEST UINT32_MAX
#define UNREADABLE 1

struct stack {
	struct python_merged *merged; /* innermost first */
	/* index into requests[] of each merged frame; NO_REQUEST: nothing to look up */
	uint32_t *request;
	size_t nr_merged;
	struct vec frames; /* struct kprof_frame */
};

struct dump_names {
	struct dump_process *p;
	struct symbolizer *symbolizer;
	struct kallsyms *kernel; /* NULL: not wanted, or the kernel hides them */
	struct perfmap *perfmap; /* names of JIT code; NULL: the process writes none */
	/* by module number: the symbolizer's id + 1; 0: the symbolizer does not know the module */
	uint32_t *module_ids;
	struct vec requests; /* struct symbol_request */
	struct symbol_result *results;
	struct stack *stacks; /* in the order of p->threads */
	/* address of a code object → struct python_code *, or UNREADABLE */
	struct map64 codes;
	/* full name, as the symbolizer's string → index in texts + 1 of the short name */
	struct map64 name_index;
	struct vec texts; /* char * */
};

/* Takes ownership of a text until dump_names is freed. Returns NULL if there is no memory. */
static const char *keep(struct dump_names *n, char *text)
{
	char **kept = text ? vec_push(&n->texts, sizeof(*kept)) : NULL;

	if (!kept) {
		free(text);
		return NULL;
	}
	*kept = text;
	return text;
}

/* ---- merging Python and native frames ---- */

static uint64_t call_ip(const struct walk_frame *f)
{
	return f->exact ? f->ip : f->ip - 1;
}

struct native_of {
	const struct dump_process *p;
	const struct dump_thread *t;
};

static enum python_native native_kind(void *ctx, size_t i)
{
	const struct native_of *of = ctx;
	const struct walk_frame *f = &of->t->native[i];
	const struct kprof_unwind_mapping *mapping;
	const struct code_area *area = dump_area(of->p, call_ip(f), &mapping);

	if (!area || area->module != of->p->python_module)
		return PYTHON_NATIVE_OTHER;
	return python_elf__native(of->p->python_elf, mapping_vaddr(mapping, call_ip(f)));
}

/* Is this a native frame of the interpreter, by its file? */
static bool is_interpreters(const struct dump_names *n, const struct dump_thread *t,
			    const struct python_merged *m)
{
	const struct code_area *area =
		m->python ? NULL : dump_area(n->p, call_ip(&t->native[m->index]), NULL);

	return area && area->module == n->p->python_module;
}

/*
 * Hides native frames of the interpreter, as for samples (model/timeline_stacks.c): those next to a
 * Python frame only lead from one frame to the other.
 */
static void hide_interpreter(const struct dump_names *n, const struct dump_thread *t,
			     struct stack *s)
{
	size_t nr = 0;

	for (size_t i = 0; i < s->nr_merged;) {
		size_t end = i;

		while (end < s->nr_merged && is_interpreters(n, t, &s->merged[end]))
			end++;
		if (i && end < s->nr_merged && (s->merged[i - 1].python || s->merged[end].python))
			i = end;
		for (; i <= end && i < s->nr_merged; i++)
			s->merged[nr++] = s->merged[i];
	}
	s->nr_merged = nr;
}

static int merge(struct dump_names *n, const struct dump_thread *t, struct stack *s)
{
	size_t room = t->nr_native + t->nr_python + 1;
	struct native_of of = {n->p, t};
	struct python_stacks both = {
		.nr_native = t->nr_native,
		.native = native_kind,
		.ctx = &of,
		.native_whole = t->end.how == KPROF_UNWIND_WHOLE,
		.frames = t->python,
		.nr_frames = t->nr_python,
		.flags = t->python_flags,
	};

	s->merged = calloc(room, sizeof(*s->merged));
	s->request = calloc(room, sizeof(*s->request));
	if (!s->merged || !s->request)
		return error_set(-ENOMEM, NULL, "out of memory");
	if (n->p->python_elf && t->nr_python) {
		s->nr_merged = python_interleave(&both, s->merged);
		if (!n->p->opts->interpreter)
			hide_interpreter(n, t, s);
		return 0;
	}
	for (size_t i = 0; i < t->nr_native; i++)
		s->merged[s->nr_merged++].index = (uint32_t)i;
	return 0;
}

/* ---- requests to the symbolizer ---- */

static int module_id(struct dump_names *n, const struct module *m, uint32_t *id)
{
	const struct symbol_module module = {.elf = m->elf, .path = m->path, .root = m->root};
	int err;

	if (!n->module_ids[m->number]) {
		err = symbolizer__add_module(n->symbolizer, &module, id);
		if (err)
			return err;
		n->module_ids[m->number] = *id + 1;
	}
	*id = n->module_ids[m->number] - 1;
	return 0;
}

static int ask(struct dump_names *n, const struct walk_frame *f, uint32_t *request)
{
	const struct kprof_unwind_mapping *mapping;
	const struct code_area *area = dump_area(n->p, call_ip(f), &mapping);
	struct symbol_request *r;
	uint32_t id;

	*request = NO_REQUEST;
	if (!area || !area->module || !area->module->elf || area->kind == CODE_AREA_JIT)
		return 0;
	r = vec_push(&n->requests, sizeof(*r));
	if (!r || module_id(n, area->module, &id))
		return error_set(-ENOMEM, NULL, "out of memory");
	*request = (uint32_t)n->requests.nr - 1;
	*r = (struct symbol_request){
		.module = id,
		.vaddr = mapping_vaddr(mapping, f->ip),
		.return_address = !f->exact,
	};
	return 0;
}

static int ask_all(struct dump_names *n)
{
	int err = 0;

	for (size_t i = 0; i < n->p->nr_threads && !err; i++) {
		const struct dump_thread *t = &n->p->threads[i];
		struct stack *s = &n->stacks[i];

		err = merge(n, t, s);
		for (size_t k = 0; k < s->nr_merged && !err; k++)
			if (!s->merged[k].python)
				err = ask(n, &t->native[s->merged[k].index], &s->request[k]);
	}
	return err;
}

static int resolve(struct dump_names *n)
{
	n->results = calloc(n->requests.nr + 1, sizeof(*n->results));
	if (!n->results)
		return error_set(-ENOMEM, NULL, "out of memory");
	if (!n->requests.nr)
		return 0;
	return symbolizer__resolve(n->symbolizer, n->requests.data, n->requests.nr, n->results);
}

/* ---- frames ---- */

static struct kprof_frame *add_frame(struct stack *s, enum kprof_frame_kind kind)
{
	struct kprof_frame *f = vec_push(&s->frames, sizeof(*f));

	if (!f)
		return NULL;
	*f = (struct kprof_frame){.kind = kind,
				  .function = "[unknown]",
				  .name = "[unknown]",
				  .file = "",
				  .module = "",
				  .build_id = "",
				  .op = ""};
	return f;
}

/*
 * Sets the full name and the short name. The short one is derived once for each string of the
 * symbolizer.
 */
static int set_names(struct dump_names *n, struct kprof_frame *f, const char *raw)
{
	uint64_t *at = map64__at(&n->name_index, (uint64_t)(uintptr_t)raw);
	char *whole;

	if (!at)
		return -ENOMEM;
	if (!*at) {
		whole = demangle(raw);
		if (!whole || !keep(n, whole) || !keep(n, demangle_short(raw, whole)))
			return -ENOMEM;
		*at = n->texts.nr;
	}
	f->function = ((char **)n->texts.data)[*at - 1];
	f->name = ((char **)n->texts.data)[*at - 2];
	return 0;
}

/* Names JIT code by the process's perf map. 0: it has no name there. */
static int set_jit_name(struct dump_names *n, struct kprof_frame *f, const struct walk_frame *w)
{
	uint64_t start;
	const char *name = n->perfmap ? perfmap__find(n->perfmap, call_ip(w), &start) : NULL;

	if (!name)
		return 0;
	f->function = f->name = name;
	return 1;
}

/* A frame without a name is shown as module and offset, never with a guessed name. */
static int set_place(struct dump_names *n, struct kprof_frame *f)
{
	if (f->module[0])
		f->function = f->name =
			keep(n, xasprintf("%s+%#" PRIx64, proc_basename(f->module), f->address));
	else
		f->function = f->name = keep(n, xasprintf("[%#" PRIx64 "]", f->address));
	return f->function ? 0 : -ENOMEM;
}

static void set_module(const struct dump_process *p, struct kprof_frame *f,
		       const struct walk_frame *w)
{
	const struct kprof_unwind_mapping *mapping;
	const struct code_area *area = dump_area(p, call_ip(w), &mapping);

	f->address = w->ip;
	if (!area || !area->module || area->kind == CODE_AREA_JIT)
		return;
	f->module = area->module->path;
	f->build_id = area->module->build_id;
	f->address = mapping_vaddr(mapping, w->ip);
}

static int add_native(struct dump_names *n, struct stack *s, const struct walk_frame *w,
		      uint32_t request)
{
	const struct symbol_result *r = request == NO_REQUEST ? NULL : &n->results[request];
	size_t nr = r && r->nr_lines ? r->nr_lines : 1;
	int err = 0;

	for (size_t i = 0; i < nr && !err; i++) {
		const struct symbol_line *line = r && r->nr_lines ? &r->lines[i] : NULL;
		struct kprof_frame *f = add_frame(s, KPROF_FRAME_NATIVE);

		if (!f)
			return -ENOMEM;
		set_module(n->p, f, w);
		f->inlined = i + 1 < nr;
		if (line) {
			f->file = line->file;
			f->line = line->line;
		}
		if (line && line->function[0])
			err = set_names(n, f, line->function);
		else if (f->module[0] || !set_jit_name(n, f, w))
			err = set_place(n, f);
	}
	return err;
}

/* The code object read at this address; NULL: it could not be read any more. */
static const struct python_code *code_at(struct dump_names *n, uint64_t address)
{
	const struct python_memory memory = {.read = dump_read_memory, .ctx = n->p};
	uint64_t *at = map64__at(&n->codes, address);
	struct python_code *code = NULL;

	if (!at)
		return NULL;
	if (!*at) {
		python_code__read(&n->p->python, &memory, address, &code);
		*at = code ? (uint64_t)(uintptr_t)code : UNREADABLE;
	}
	return *at == UNREADABLE ? NULL : (const struct python_code *)(uintptr_t)*at;
}

static int add_python(struct dump_names *n, struct stack *s, const struct kprof_python_frame *p)
{
	const struct python_code *code = code_at(n, p->code);
	struct kprof_frame *f;

	if (code && code->internal)
		return 0;
	f = add_frame(s, KPROF_FRAME_PYTHON);
	if (!f)
		return -ENOMEM;
	if (!code || code->firstline != p->firstline)
		return 0; /* the address was freed and reused since: unknown */
	f->function = f->name = code->function;
	f->file = code->file;
	f->line = python_code__line(code, p->instr);
	return 0;
}

static int add_kernel(const struct dump_names *n, struct stack *s, uint64_t address)
{
	struct kprof_frame *f = add_frame(s, KPROF_FRAME_KERNEL);
	struct kallsyms_symbol symbol;

	if (!f)
		return -ENOMEM;
	f->address = address;
	if (!n->kernel || kallsyms__find(n->kernel, address, &symbol))
		return 0;
	f->function = f->name = symbol.name;
	f->module = symbol.module;
	return 0;
}

/* Loads the names of the kernel and of JIT code. It is no error if there are none. */
static void load_names(struct dump_names *n)
{
	struct proc_info info;

	if (n->p->opts->kernel && kallsyms__load(NULL, &n->kernel))
		log_warn(kprof_error_hint(), "%s", kprof_error_cause());
	if (!proc_info_read(n->p->pid, &info))
		perfmap__load(info.pid, info.ns_pid, info.uid, info.start_ticks, &n->perfmap);
	error_clear();
}

static int add_frames(struct dump_names *n, const struct dump_thread *t, struct stack *s)
{
	int err = 0;

	for (uint32_t i = 0; i < t->task.nr_kernel && n->p->opts->kernel && !err; i++)
		err = add_kernel(n, s, t->task.kernel[i]);
	for (size_t i = 0; i < s->nr_merged && !err; i++) {
		const struct python_merged *m = &s->merged[i];

		err = m->python ? add_python(n, s, &t->python[m->index])
				: add_native(n, s, &t->native[m->index], s->request[i]);
	}
	return err ? error_set(err, NULL, "out of memory") : 0;
}

/* ---- all threads ---- */

/* Reads the code objects while the process lives: each once, for the first thread that needs it. */
static void read_codes(struct dump_names *n)
{
	for (size_t i = 0; i < n->p->nr_threads; i++)
		for (size_t k = 0; k < n->p->threads[i].nr_python; k++)
			code_at(n, n->p->threads[i].python[k].code);
}

int dump_names__new(struct dump_process *p, struct dump_names **out)
{
	const struct symbolizer_opts opts = {.debuginfod = true, .lines = !p->opts->no_lines};
	struct dump_names *n = calloc(1, sizeof(*n));
	int err;

	if (!n)
		return error_set(-ENOMEM, NULL, "out of memory");
	n->p = p;
	n->stacks = calloc(p->nr_threads + 1, sizeof(*n->stacks));
	n->module_ids = calloc(modules__nr(p->modules) + 1, sizeof(*n->module_ids));
	err = n->stacks && n->module_ids ? symbolizer__new(&opts, &n->symbolizer)
					 : error_set(-ENOMEM, NULL, "out of memory");
	if (!err) {
		load_names(n);
		read_codes(n);
		err = ask_all(n);
	}
	if (!err)
		err = resolve(n);
	for (size_t i = 0; i < p->nr_threads && !err; i++)
		err = add_frames(n, &p->threads[i], &n->stacks[i]);
	if (err) {
		dump_names__free(n);
		return err;
	}
	*out = n;
	return 0;
}

void dump_names__free(struct dump_names *n)
{
	if (!n)
		return;
	for (size_t i = 0; n->stacks && i < n->p->nr_threads; i++) {
		free(n->stacks[i].merged);
		free(n->stacks[i].request);
		free(n->stacks[i].frames.data);
	}
	for (size_t i = 0; i < n->codes.cap; i++)
		if (n->codes.slots[i].value != UNREADABLE)
			python_code__free((struct python_code *)(uintptr_t)n->codes.slots[i].value);
	for (size_t i = 0; i < n->texts.nr; i++)
		free(((char **)n->texts.data)[i]);
	symbolizer__free(n->symbolizer);
	kallsyms__free(n->kernel);
	perfmap__free(n->perfmap);
	map64__free(&n->codes);
	map64__free(&n->name_index);
	free(n->texts.data);
	free(n->stacks);
	free(n->module_ids);
	free(n->requests.data);
	free(n->results);
	free(n);
}

const struct kprof_frame *dump_names__frames(const struct dump_names *n, size_t thread, size_t *nr)
{
	*nr = n->stacks[thread].frames.nr;
	return n->stacks[thread].frames.data;
}
