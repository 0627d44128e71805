// SPDX-License-Identifier: BSD-2-Clause
/*
 * Names of frames. Looked up when the recording is over, all at once; and those met so far, without
 * lines, whenever the recording is to be readable. Modules are kept open, so that their names can
 * still be read when a process has ended or a file was removed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "capture/unwind/unwind.h"
#include "capture/sample/impl.h"
#include "symbol/names/names.h"
#include "symbol/symbolize/symbolize.h"
#include "util/error.h"
#include "util/util.h"

/*
 * The limit for looking up names. Without it, hundreds of libraries with a debuginfod server that
 * does not answer would take an hour. What is found is cached for the next recording.
 */
#define NAMES_MOST_NS (120 * NSEC_PER_SEC)

/* While recording, names of files take at most a two-hundredth of the time, one file at once. */
#define NAMES_UNBOUND 200              /* where there is no bound */
#define CACHE_NS (1800 * NSEC_PER_SEC) /* how often the size of the cache is looked at meanwhile */
#define NAMES_PAUSE_NS (100 * NSEC_PER_MSEC)
/* One file's take such a part of what all may in a second, at least, and wait so long for it. */
#define NAMES_LEAST 4
#define NAMES_LATER_NS (3 * NSEC_PER_SEC)
/*
 * Names of a file's functions that came since the last look: after such a part of the time between
 * captures' ends, and that long at least; or that long where the time between them is not known.
 */
#define NAMES_TIMES 4
#define NAMES_AGAIN_NS (4 * NSEC_PER_SEC)
#define NAMES_UNKNOWN_NS (15 * NSEC_PER_SEC)

/*
 * Names of JIT code are lost when the process ends, so they are read every second, a large file
 * less often: reading takes at most a twentieth of the time.
 */
#define JIT_NAMES_NS NSEC_PER_SEC
#define JIT_NAMES_SHARE 20
#define JIT_NAMES_BYTES (256ull << 20) /* limit of the names kept, for all processes */

#define NO_FILE UINT32_MAX

struct naming {
	struct stacks *s;
	struct symbolizer *symbolizer;
	struct symbol_request *requests;
	struct symbol_result *results;
	uint32_t *frames; /* ids of the frames, by request */
	size_t nr;
	size_t from, to; /* the known frames that are named */
	/* only those that have no name yet, and that can be named; of this file, or NO_FILE: all */
	bool so_far;
	uint32_t only;
	uint32_t *modules; /* by number of the module: its id in the symbolizer + 1; 0: none */
};

static int add_request(struct naming *n, uint32_t frame, const struct known_frame *known)
{
	const struct module *m = modules__at(n->s->modules, known->module);
	struct symbol_module module = {.elf = m->elf, .path = m->path, .root = m->root};
	uint32_t id;
	int err;

	if (!m->elf)
		return 0;
	if (!n->modules[known->module]) {
		err = symbolizer__add_module(n->symbolizer, &module, &id);
		if (err)
			return err;
		n->modules[known->module] = id + 1;
	}
	n->requests[n->nr] = (struct symbol_request){.module = n->modules[known->module] - 1,
						     .vaddr = known->address};
	n->frames[n->nr++] = frame;
	return 0;
}

/* Of the module; NULL: it has none. Each is read once, which takes two passes over .rodata. */
static struct schemas *schemas_of(struct stacks *s, uint32_t module)
{
	size_t nr = modules__nr(s->modules);
	struct schemas **more;

	if (module >= s->nr_schemas) {
		more = reallocarray(s->schemas, nr, sizeof(*more));
		if (!more)
			return NULL;
		memset(more + s->nr_schemas, 0, (nr - s->nr_schemas) * sizeof(*more));
		s->schemas = more;
		s->nr_schemas = nr;
	}
	if (!s->schemas[module] &&
	    schemas__load(modules__at(s->modules, module)->elf, &s->schemas[module]))
		s->schemas[module] = NULL;
	return s->schemas[module];
}

/* The string id of the operator whose entry this function is; 0: none. */
static uint32_t operator_of(struct naming *n, uint32_t module, const char *function)
{
	const char *name, *overload, *schema;
	char class[256], guess[272];
	struct schemas *schemas;

	if (schema_struct_name(function, class, sizeof(class)) || !strstr(function, "4callE"))
		return 0;
	schemas = schemas_of(n->s, module);
	if (!schemas || schemas__find(schemas, class, &name, &overload, &schema)) {
		snprintf(guess, sizeof(guess), "aten::%s", class);
		name = guess;
	}
	return recorder__string(n->s->opts.recorder, name);
}

static int record(struct naming *n, size_t i)
{
	struct frames *f = &n->s->frames;
	const struct known_frame *known = &f->known[n->frames[i] - 1];
	const struct symbol_result *result = &n->results[i];
	struct store_line lines[STORE_MAX_LINES];
	struct store_record r = {
		.type = STORE_FRAME,
		.frame =
			{
				.id = n->frames[i],
				.kind = STORE_FRAME_NATIVE,
				.module = modules__at(n->s->modules, known->module)->capture_id,
				.address = known->address,
				.lines = lines,
			},
	};

	for (uint32_t k = 0; k < result->nr_lines && k < STORE_MAX_LINES; k++) {
		const struct symbol_line *from = &result->lines[k];

		lines[k] = (struct store_line){
			.function = recorder__string(n->s->opts.recorder, from->function),
			.file = recorder__string(n->s->opts.recorder, from->file),
			.line = from->line,
		};
		r.frame.nr_lines = k + 1;
		if (!r.frame.op)
			r.frame.op = operator_of(n, known->module, from->function);
	}
	return recorder__put(n->s->opts.recorder, &r);
}

/* Whether the frame is of a file, has no name yet, and nobody else reads its file now. */
static bool can_be_named(const struct stacks *s, const struct known_frame *known, uint32_t only)
{
	return known->module < modules__nr(s->modules) && known->target_pid != FRAME_NAMED &&
	       modules__at(s->modules, known->module)->elf &&
	       (only == NO_FILE || known->module == only) &&
	       modules__may_read(s->modules, modules__at(s->modules, known->module));
}

static int resolve(struct naming *n)
{
	struct frames *f = &n->s->frames;
	int err = 0;

	for (size_t i = n->from; i < n->to && !err; i++)
		if (n->so_far ? can_be_named(n->s, &f->known[i], n->only)
			      : f->known[i].module < modules__nr(n->s->modules))
			err = add_request(n, (uint32_t)i + 1, &f->known[i]);
	if (!err)
		err = symbolizer__resolve(n->symbolizer, n->requests, n->nr, n->results);
	for (size_t i = 0; i < n->nr && !err; i++)
		err = record(n, i);
	for (size_t i = 0; i < n->nr && !err; i++)
		f->known[n->frames[i] - 1].target_pid = FRAME_NAMED;
	return err;
}

/* ---- code that is in no file ---- */

static int record_name(struct stacks *s, uint32_t id, enum store_frame_kind kind, uint32_t module,
		       const char *name)
{
	struct store_line line = {.function = recorder__string(s->opts.recorder, name)};
	struct store_record r = {
		.type = STORE_FRAME,
		.frame =
			{
				.id = id,
				.kind = kind,
				.module = module,
				.address = s->frames.known[id - 1].address,
				.nr_lines = 1,
				.lines = &line,
			},
	};

	return recorder__put(s->opts.recorder, &r);
}

static int kernel_names(struct stacks *s, size_t from, size_t to)
{
	struct frames *f = &s->frames;
	char name[512];
	int err = 0;

	while (from < to && f->known[from].module != FRAME_KERNEL)
		from++;
	if (from == to || s->no_ksyms)
		return 0;
	if (!s->ksyms && ksyms__new(false, &s->ksyms)) {
		s->no_ksyms = true;
		log_warn(kprof_error_hint(), "kernel frames have no names: %s",
			 kprof_error_cause());
		return 0;
	}
	for (size_t i = from; i < to && !err; i++) {
		if (f->known[i].module != FRAME_KERNEL ||
		    !ksyms__name(s->ksyms, f->known[i].address, name, sizeof(name)))
			continue;
		err = record_name(s, (uint32_t)i + 1, STORE_FRAME_KERNEL, f->kernel, name);
	}
	return err;
}

static int kernel_names_so_far(struct stacks *s)
{
	size_t from = s->frames.nr_kernel;

	s->frames.nr_kernel = s->frames.nr;
	return kernel_names(s, from, s->frames.nr);
}

/* Replaces the process's names of JIT code by m. False: over the limit, so the old ones stay. */
static bool keep_jit_names(struct stacks *s, struct stack_target *st, struct perfmap *m)
{
	uint64_t others = s->jit_bytes - (st->jit_names ? perfmap__bytes(st->jit_names) : 0);

	if (m && others + perfmap__bytes(m) > JIT_NAMES_BYTES) {
		perfmap__free(m);
		return false;
	}
	s->jit_bytes = others + (m ? perfmap__bytes(m) : 0);
	perfmap__free(st->jit_names);
	st->jit_names = m;
	return true;
}

void stacks__read_jit_names(struct stacks *s, struct target *t, uint64_t now_ns)
{
	struct stack_target *st = stacks__of(s, t);
	uint64_t took_ns;
	struct proc_info info;
	struct perfmap *m;
	int err;

	if (!st->jit_unnamed)
		return;
	err = proc_info_read((pid_t)t->pid, &info);
	if (!err)
		err = perfmap__load(info.pid, info.ns_pid, info.uid, info.start_ticks, &m);
	else
		error_clear();
	took_ns = clock_mono_ns() - now_ns;
	st->jit_next_ns = now_ns + JIT_NAMES_NS + JIT_NAMES_SHARE * took_ns;
	/* -ENOENT: the process writes no perf map, or has ended. */
	if (err && err != -ENOENT && err != -ESRCH && !st->jit_said) {
		log_warn(NULL, "no names for the JIT code of process %u: its perf map: %s", t->pid,
			 err == -ESTALE ? "it was written before the process began"
					: strerror(-err));
		st->jit_said = true;
	}
	if (err)
		return;
	st->jit_renamed = keep_jit_names(s, st, m);
	st->jit_unnamed = !st->jit_renamed;
	if (!st->jit_unnamed || s->said_jit_full)
		return;
	log_warn("record fewer processes at once",
		 "the names of JIT code take more than %llu MB: those of process %u are not kept",
		 JIT_NAMES_BYTES >> 20, t->pid);
	s->said_jit_full = true;
}

/* Of the process, as far as they are known now. */
static int jit_names(struct stacks *s, const struct target *t, size_t from, size_t to)
{
	struct frames *f = &s->frames;
	int err = 0;

	for (size_t i = from; i < to && !err && stacks__of(s, t)->jit_names; i++) {
		const struct known_frame *known = &f->known[i];
		const char *name;
		uint64_t start;

		if (known->module != FRAME_JIT || known->target_pid != t->pid)
			continue;
		name = perfmap__find(stacks__of(s, t)->jit_names, known->address, &start);
		if (name)
			err = record_name(s, (uint32_t)i + 1, STORE_FRAME_NATIVE, f->jit, name);
	}
	return err;
}

int stacks__record_jit_names(struct stacks *s, struct target *t)
{
	int err;

	stacks__read_jit_names(s, t, clock_mono_ns());
	if (stacks__of(s, t)->jit_unnamed && !stacks__of(s, t)->jit_names)
		stacks_runtimes__nameless(s, t);
	err = jit_names(s, t, 0, s->frames.nr);
	keep_jit_names(s, stacks__of(s, t), NULL);
	return err;
}

/* ---- the whole ---- */

/* lines: source lines and inlined functions, too, which takes much longer */
static int file_names(struct naming *n, bool lines)
{
	struct symbolizer_opts opts = {.debuginfod = lines,
				       .lines = lines,
				       .threads = lines ? 0 : 1, /* there are few, and often */
				       .total_time_ns = NAMES_MOST_NS,
				       .keep_cache =
					       !lines && clock_mono_ns() < n->s->next_cache_ns};
	size_t nr_modules = modules__nr(n->s->modules), nr = n->to - n->from;
	int err;

	n->requests = calloc(nr + 1, sizeof(*n->requests));
	n->results = calloc(nr + 1, sizeof(*n->results));
	n->frames = calloc(nr + 1, sizeof(*n->frames));
	n->modules = calloc(nr_modules + 1, sizeof(*n->modules));
	if (!opts.keep_cache)
		n->s->next_cache_ns = clock_mono_ns() + CACHE_NS;
	err = n->requests && n->results && n->frames && n->modules ? 0 : -ENOMEM;
	if (!err)
		err = symbolizer__new(&opts, &n->symbolizer);
	if (!err)
		err = resolve(n);
	symbolizer__free(n->symbolizer);
	free(n->requests);
	free(n->results);
	free(n->frames);
	free(n->modules);
	return err;
}

/*
 * Warns of files that were cut short while they were read: by the target, or by a linker that
 * writes to the file in place.
 */
static void warn_of_cut_files(struct stacks *s)
{
	struct modules *ms = s->modules;

	for (size_t i = 0; i < modules__nr(ms); i++) {
		const struct module *m = modules__at(ms, i);

		if (m->elf && elffile__cut(m->elf))
			log_warn(
				"record again, while nobody writes to it",
				"%s was cut short while it was read: its functions may lack names, and stacks may end there",
				m->path);
	}
}

int stacks__names(struct stacks *s)
{
	struct target *t;
	struct naming files = {.s = s, .to = s->frames.nr};
	int err;

	/*
	 * Stops the threads that build tables: what is not ready now comes too late, and no two
	 * threads may read a file at once.
	 */
	modules__stop(s->modules);
	stacks_jvm__ask_all(s);
	err = file_names(&files, true);
	stacks_jvm__wait(s);
	warn_of_cut_files(s);
	if (!err)
		err = kernel_names(s, 0, s->frames.nr);
	for (t = targets__first(s->opts.targets); t && !err; t = t->hh.next)
		if (stacks__of(s, t))
			err = stacks__record_jit_names(s, t);
	stacks_runtimes__say(s);
	return err;
}

/* Frames at the begin that have their names, or are of no file, are not looked at again. */
static void skip_named(struct stacks *s)
{
	struct frames *f = &s->frames;

	while (f->nr_files < f->nr && (f->known[f->nr_files].module >= modules__nr(s->modules) ||
				       f->known[f->nr_files].target_pid == FRAME_NAMED ||
				       !modules__at(s->modules, f->known[f->nr_files].module)->elf))
		f->nr_files++;
}

static uint64_t process_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

int stacks__names_so_far(struct stacks *s)
{
	struct naming files;
	size_t from, to;
	struct target *t;
	int err;

	if (!s)
		return 0;
	from = s->frames.nr_named;
	to = s->frames.nr;
	files = (struct naming){
		.s = s, .from = s->frames.nr_files, .to = to, .so_far = true, .only = NO_FILE};
	modules__hold(s->modules);
	err = files.from < to ? file_names(&files, false) : 0;
	modules__release(s->modules);
	if (!err)
		err = kernel_names_so_far(s);
	for (t = targets__first(s->opts.targets); t && !err; t = t->hh.next) {
		struct stack_target *st = stacks__of(s, t);

		if (!st)
			continue;
		if (clock_mono_ns() >= st->jit_next_ns)
			stacks__read_jit_names(s, t, clock_mono_ns());
		err = jit_names(s, t, st->jit_renamed ? 0 : from, to);
		st->jit_renamed = false;
	}
	s->frames.nr_named = to;
	skip_named(s);
	s->names_every_ns = s->all_named_ns ? clock_mono_ns() - s->all_named_ns : 0;
	s->all_named_ns = clock_mono_ns();
	if (stacks__border_is_near(s, s->all_named_ns)) /* not only when the next pace is set */
		modules__set_pace(s->modules, 0);
	return err;
}

/* The file whose frames have waited longest for their names; NO_FILE: there is none. */
static uint32_t next_file(const struct stacks *s, uint64_t since_ns, size_t *from)
{
	const struct frames *f = &s->frames;

	for (*from = f->nr_files; *from < f->nr; ++*from)
		if (can_be_named(s, &f->known[*from], NO_FILE) &&
		    modules__at(s->modules, f->known[*from].module)->named_ns < since_ns)
			return f->known[*from].module;
	return NO_FILE;
}

/* How long to pause after what was done last, by the pace that there is now. */
static uint64_t pause_of(const struct stacks *s)
{
	uint64_t times = s->opts.pace_ns ? NSEC_PER_SEC / (s->names_ns + 1) : NAMES_UNBOUND;

	return NAMES_PAUSE_NS + times * s->some_took_ns;
}

/*
 * Is there time for one file's names, which take about as long as the last ones did? Where there is
 * hardly ever so much, whenever there is some.
 */
static bool has_time(const struct stacks *s, uint64_t now_ns, uint64_t due_ns)
{
	uint64_t least_ns = s->names_ns / NAMES_LEAST;
	uint64_t ns = s->some_took_ns > least_ns ? s->some_took_ns : least_ns;

	return !ration__rests_within(s->opts.reading, now_ns < due_ns + NAMES_LATER_NS ? ns : 0);
}

/* Of a file whose names were looked up, those of frames that came since are after so long. */
static uint64_t again_after(const struct stacks *s)
{
	uint64_t part_ns = s->names_every_ns ? s->names_every_ns / NAMES_TIMES : NAMES_UNKNOWN_NS;

	return part_ns > NAMES_AGAIN_NS ? part_ns : NAMES_AGAIN_NS;
}

int stacks__name_some(struct stacks *s, uint64_t now_ns)
{
	/* the next stacks__names_so_far() is expected as late after the last one as that came */
	uint64_t since_ns = s->all_named_ns + s->names_every_ns / 2, before_ns;
	uint64_t due_ns = s->some_named_ns + pause_of(s);
	struct naming files = {.s = s, .to = s->frames.nr, .so_far = true};
	int err;

	if (due_ns < since_ns)
		due_ns = since_ns;
	if (now_ns < due_ns || stacks__border_is_near(s, now_ns) || !has_time(s, now_ns, due_ns))
		return 0;
	err = kernel_names_so_far(s);
	if (err)
		return err;
	before_ns = process_ns();
	modules__hold(s->modules);
	skip_named(s);
	if (since_ns + again_after(s) < now_ns)
		since_ns = now_ns - again_after(s);
	files.only = next_file(s, since_ns + 1, &files.from);
	if (files.only != NO_FILE) {
		err = file_names(&files, false);
		modules__at(s->modules, files.only)->named_ns = now_ns;
	}
	modules__release(s->modules);
	s->some_named_ns = now_ns;
	s->some_took_ns = process_ns() - before_ns;
	return err;
}

void stacks_names__free(struct stacks *s)
{
	ksyms__free(s->ksyms);
	for (size_t i = 0; i < s->nr_schemas; i++)
		schemas__free(s->schemas[i]);
	free(s->schemas);
}
