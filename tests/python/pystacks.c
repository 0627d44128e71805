// SPDX-License-Identifier: BSD-2-Clause
/*
 * pystacks PID [native|bpf [THREAD…]|layout]: the Python frames of every thread of a process, as
 * JSON, by what kprof is made of. Nothing stops the process; with "native" libdwfl does, to unwind
 * the native frames beside them. With "bpf" the kernel has walked, at the threads' last switches;
 * each THREAD, by threading's number, has been switched once. With "layout": where kprof believes
 * that the interpreter's fields lie.
 */
#include "symbol/python/python.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cjson/cJSON.h>
#include <dirent.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "kprof.h"
#include "pystacks.skel.h"
#include "util/util.h"

#define MAX_THREADS 256
#define MAX_NATIVE 4096
#define SWITCHED_MS 60000 /* so long it may take until all have been */

static pid_t pid;

static int read_target(void *ctx, void *to, size_t bytes, uint64_t address)
{
	struct iovec here = {to, bytes}, there = {(void *)(uintptr_t)address, bytes};

	return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)bytes ? 0 : -EFAULT;
}

static int python_read(void *to, kprof_u32 bytes, kprof_u64 address)
{
	return read_target(NULL, to, bytes, address);
}

#include "../../bpf/python.h"

static const struct python_memory memory = {.read = read_target};

static void die(const char *what)
{
	fprintf(stderr, "pystacks: %s: %s\n", what, kprof_error_cause());
	exit(1);
}

/* ---- which file is the interpreter ---- */

static struct python_elf *interpreter;
static uint64_t interpreter_bias;
static struct kprof_python python;

/* By its mapping: the file may be deleted, or lie in a chroot. 1: found. */
static int try_mapping(uint64_t start, uint64_t end, uint64_t offset)
{
	char path[96];
	struct elffile *e;
	int found;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, start, end);
	if (elffile__open(path, &e))
		return 0;
	found = !python_elf__open(e, &interpreter);
	if (found)
		interpreter_bias = start - elffile__vaddr(e, offset);
	elffile__close(e);
	return found;
}

static void find_interpreter(void)
{
	char path[64], line[4400], prot[8];
	uint64_t start, end, offset;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "r");
	while (f && !interpreter && fgets(line, sizeof(line), f))
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64, &start, &end, prot,
			   &offset) == 4 &&
		    prot[2] == 'x' && strchr(line, '/'))
			try_mapping(start, end, offset);
	if (f)
		fclose(f);
	if (!interpreter)
		die("no interpreter");
	if (python_locate(interpreter, interpreter_bias, &memory, &python))
		die("the interpreter");
}

/* ---- native frames, by an independent unwinder ---- */

struct native {
	enum python_native kinds[MAX_NATIVE]; /* innermost first */
	size_t nr;
};

static int on_native(Dwfl_Frame *frame, void *arg)
{
	struct native *n = arg;
	bool exact;
	Dwarf_Addr pc;

	if (n->nr == MAX_NATIVE || !dwfl_frame_pc(frame, &pc, &exact))
		return DWARF_CB_ABORT;
	n->kinds[n->nr++] = python_elf__native(interpreter, pc - !exact - interpreter_bias);
	return DWARF_CB_OK;
}

static enum python_native native_kind(void *ctx, size_t i)
{
	return ((struct native *)ctx)->kinds[i];
}

static Dwfl *dwfl_attach(void)
{
	static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_linux_proc_find_elf,
						 .find_debuginfo = dwfl_standard_find_debuginfo};
	Dwfl *dwfl = dwfl_begin(&callbacks);

	if (!dwfl || dwfl_linux_proc_report(dwfl, pid) || dwfl_report_end(dwfl, NULL, NULL) ||
	    dwfl_linux_proc_attach(dwfl, pid, false)) {
		fprintf(stderr, "pystacks: libdwfl: %s\n", dwfl_errmsg(-1));
		exit(1);
	}
	return dwfl;
}

/* How the two kinds of frames go together: "p" a Python frame, "n" native ones, in order. */
static void add_merge(cJSON *o, const struct kprof_python_walk *w, struct native *n)
{
	struct python_merged *merged = calloc(n->nr + w->nr + 1, sizeof(*merged));
	struct python_stacks s = {.nr_native = n->nr,
				  .native = native_kind,
				  .ctx = n,
				  .native_whole = true,
				  .frames = w->frames,
				  .nr_frames = w->nr,
				  .flags = w->flags};
	size_t nr = python_interleave(&s, merged), evals = 0, groups = 0, length = 0;
	char *text = calloc(nr + 1, 1);

	for (size_t i = 0; i < n->nr; i++)
		evals += n->kinds[i] == PYTHON_NATIVE_EVAL;
	for (size_t i = 0; i < w->nr; i++)
		groups += (w->frames[i].flags & KPROF_PYTHON_ENTRY) != 0;
	for (size_t i = 0; i < nr; i++)
		if (merged[i].python || !length || text[length - 1] != 'n')
			text[length++] = merged[i].python ? 'p' : 'n';
	cJSON_AddNumberToObject(o, "evals", (double)evals);
	cJSON_AddNumberToObject(o, "groups", (double)groups);
	cJSON_AddStringToObject(o, "merged", text);
	free(text);
	free(merged);
}

/* ---- what is printed ---- */

static cJSON *frame_json(const struct kprof_python_frame *f)
{
	cJSON *a = cJSON_CreateArray();
	struct python_code *c;

	if (python_code__read(&python, &memory, f->code, &c)) {
		cJSON_AddItemToArray(a, cJSON_CreateString("?"));
		return a;
	}
	cJSON_AddItemToArray(a, cJSON_CreateString(c->function));
	cJSON_AddItemToArray(a, cJSON_CreateString(c->file));
	cJSON_AddItemToArray(a, cJSON_CreateNumber(python_code__line(c, f->instr)));
	if (c->firstline != f->firstline)
		cJSON_AddItemToArray(a, cJSON_CreateString("another code object"));
	if (c->internal) {
		cJSON_Delete(a);
		a = NULL;
	}
	python_code__free(c);
	return a;
}

static cJSON *walk_json(const struct kprof_python_walk *w, int tid)
{
	cJSON *o = cJSON_CreateObject(), *frames = cJSON_AddArrayToObject(o, "frames");
	char thread[32];

	/* As text: a double would not hold it. */
	snprintf(thread, sizeof(thread), "%" PRIu64, w->thread);
	cJSON_AddStringToObject(o, "thread", thread);
	cJSON_AddNumberToObject(o, "tid", tid);
	cJSON_AddBoolToObject(o, "cut", w->flags & KPROF_PYTHON_CUT);
	cJSON_AddBoolToObject(o, "bad", w->flags & KPROF_PYTHON_BAD);
	cJSON_AddBoolToObject(o, "holds", w->flags & KPROF_PYTHON_HOLDS_GIL);
	cJSON_AddBoolToObject(o, "waits", w->flags & KPROF_PYTHON_WAITS_GIL);
	cJSON_AddBoolToObject(o, "no_gil", w->flags & KPROF_PYTHON_NO_GIL);
	for (uint32_t i = 0; i < w->nr; i++) {
		cJSON *f = frame_json(&w->frames[i]);

		if (f)
			cJSON_AddItemToArray(frames, f);
	}
	return o;
}

/* Where it sleeps, from its system call. */
static uint64_t futex_of(int tid)
{
	char path[64], *text;
	uint64_t address = 0;
	int nr = -1;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", pid, tid);
	if (read_file(path, 4096, &text, NULL))
		return 0;
	if (sscanf(text, "%d %" SCNx64, &nr, &address) != 2 || nr != SYS_futex)
		address = 0;
	free(text);
	return address;
}

/* What tests/python/layout.c says of the headers, in the same words. */
static void print_layout(void)
{
#define SAY(field)                             \
	if (python.field != KPROF_PYTHON_NONE) \
	printf("%s %u\n", #field, python.field)
	SAY(runtime_interpreters);
	SAY(runtime_gil);
	SAY(interp_next);
	SAY(interp_threads);
	SAY(interp_gil);
	SAY(gil_holder);
	SAY(gil_locked);
	SAY(gil_enabled);
	SAY(gil_bytes);
	SAY(tstate_prev);
	SAY(tstate_next);
	SAY(tstate_interp);
	SAY(tstate_thread);
	SAY(tstate_native);
	SAY(tstate_frame);
	SAY(cframe_frame);
	SAY(frame_code);
	SAY(frame_previous);
	SAY(frame_instr);
	SAY(frame_entry);
	SAY(frame_owner);
	SAY(frame_owner_shim);
	SAY(frame_tlbc);
	SAY(code_instrs);
	SAY(code_firstlineno);
	SAY(code_tlbc);
	SAY(code_filename);
	SAY(code_name);
	SAY(code_qualname);
	SAY(code_lines);
	SAY(code_traceable);
	SAY(bytes_length);
	SAY(bytes_value);
	SAY(str_length);
	SAY(str_state);
	SAY(str_ascii);
	SAY(str_compact);
	SAY(interp_modules);
	SAY(object_type);
	SAY(type_flags);
	SAY(type_basicsize);
	SAY(type_dictoffset);
	SAY(type_keys);
	SAY(dict_keys);
	SAY(dict_values);
	SAY(module_dict);
	SAY(managed_dict);
	SAY(type_name);
	SAY(type_dict);
	SAY(function_code);
	SAY(code_argcount);
	SAY(code_flags);
	SAY(frame_locals);
	SAY(dict_version);
#undef SAY
}

static struct python_thread threads[MAX_THREADS];
static size_t nr_threads;

static void add_names(cJSON *o)
{
	struct python_thread_name *names = calloc(MAX_THREADS, sizeof(*names));
	size_t nr = python_thread_names(&python, &memory, names, MAX_THREADS);
	cJSON *by_thread = cJSON_AddObjectToObject(o, "names");
	char thread[32];

	for (size_t i = 0; i < nr; i++) {
		snprintf(thread, sizeof(thread), "%" PRIu64, names[i].thread);
		cJSON_DeleteItemFromObject(by_thread, thread);
		cJSON_AddStringToObject(by_thread, thread,
					python_thread_name(names, nr, names[i].thread));
	}
	python_thread_names__free(names, nr);
}

static void walk_all(cJSON *list, bool native)
{
	struct kprof_python_walk *w = calloc(1, sizeof(*w));
	Dwfl *dwfl = native ? dwfl_attach() : NULL;
	struct native *n = calloc(1, sizeof(*n));

	for (size_t i = 0; i < nr_threads; i++) {
		bool twice = false;
		cJSON *o;

		for (size_t k = 0; k < i; k++)
			twice |= threads[k].thread == threads[i].thread;
		if (twice) /* in a second interpreter, too */
			continue;
		n->nr = 0;
		/* Walked by hint and by search in turn: both must find the same. */
		w->thread = threads[i].thread;
		w->hint = i & 1 ? threads[i].tstate : 0;
		w->futex = futex_of(threads[i].tid);
		python_begin(w);
		for (uint32_t k = 0; k < KPROF_PYTHON_MAX_STEPS && !python_step(&python, w); k++)
			;
		o = walk_json(w, threads[i].tid);
		if (dwfl) {
			dwfl_getthread_frames(dwfl, threads[i].tid, on_native, n);
			add_merge(o, w, n);
		}
		cJSON_AddItemToArray(list, o);
	}
	if (dwfl)
		dwfl_end(dwfl);
	free(n);
	free(w);
}

/* ---- by the kernel ---- */

static bool has_switched(const struct pystacks *skel, uint64_t thread, struct kprof_python_walk *w)
{
	for (size_t i = 0; i < nr_threads; i++)
		if (threads[i].thread == thread)
			return !bpf_map__lookup_elem(skel->maps.walks, &threads[i].tid, 4, w,
						     sizeof(*w), 0);
	return true; /* whoever compares will miss it */
}

static void wait_for_switches(const struct pystacks *skel, char **wanted, int nr,
			      struct kprof_python_walk *w)
{
	int done = 0;

	for (int ms = 0; ms < SWITCHED_MS && done < nr; ms += 10) {
		usleep(10000);
		while (done < nr && has_switched(skel, strtoull(wanted[done], NULL, 10), w))
			done++;
	}
}

static void walk_bpf(cJSON *list, char **wanted, int nr_wanted)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_CONTEXT_SWITCHES,
				       .sample_period = 1};
	struct kprof_python_walk *w = calloc(1, sizeof(*w));
	struct pystacks *skel = pystacks__open();
	struct bpf_link *links[MAX_THREADS] = {NULL};

	if (!skel)
		die("the BPF object");
	skel->bss->python = python;
	if (pystacks__load(skel))
		die("the verifier");
	for (size_t i = 0; i < nr_threads; i++) {
		int fd = (int)syscall(SYS_perf_event_open, &attr, threads[i].tid, -1, -1, 0);

		if (fd >= 0)
			links[i] = bpf_program__attach_perf_event(skel->progs.on_switch, fd);
		if (!links[i])
			die("perf_event_open");
	}
	usleep(100000); /* often enough to meet them where they go on, too */
	wait_for_switches(skel, wanted, nr_wanted, w);
	for (size_t i = 0; i < nr_threads; i++)
		if (!bpf_map__lookup_elem(skel->maps.walks, &threads[i].tid, 4, w, sizeof(*w), 0))
			cJSON_AddItemToArray(list, walk_json(w, threads[i].tid));
	for (size_t i = 0; i < nr_threads; i++)
		bpf_link__destroy(links[i]);
	pystacks__destroy(skel);
	free(w);
}

int main(int argc, char **argv)
{
	cJSON *o = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(o, "threads");
	const char *how = argc > 2 ? argv[2] : "";
	char *text;

	pid = argc > 1 ? atoi(argv[1]) : 0;
	find_interpreter();
	if (!strcmp(how, "layout")) {
		print_layout();
		return 0;
	}
	nr_threads = python_threads(&python, &memory, threads, MAX_THREADS);
	cJSON_AddNumberToObject(o, "version", python.version);
	if (!strcmp(how, "bpf"))
		walk_bpf(list, argv + 3, argc - 3);
	else
		walk_all(list, !strcmp(how, "native"));
	add_names(o);
	text = cJSON_PrintUnformatted(o);
	puts(text);
	free(text);
	cJSON_Delete(o);
	python_elf__free(interpreter);
	return 0;
}
