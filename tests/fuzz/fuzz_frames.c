// SPDX-License-Identifier: BSD-2-Clause
/*
 * What `kprof dump` makes of stacks of any addresses, in a process whose memory answers with bytes
 * of the input: each frame has its texts, no frame gets lost but the interpreter's own.
 */
#include <errno.h>

#include "capture/dump/priv.h"
#include "fuzz.h"
#include "symbol/python/priv.h"
#include "target_memory.h"

#define NR_AREAS 4
#define AREA_BYTES 0x1000
#define MOST_FRAMES 48
#define NOBODY 0x7fffffff /* no process has this number */

static void make_space(struct fuzz_input *in, struct address_space *space, struct module *modules)
{
	for (size_t i = 0; i < NR_AREAS; i++) {
		struct code_area *area = &space->areas[i];

		space->mappings[i] = (struct kprof_unwind_mapping){
			.start = (i + 1) * 2 * AREA_BYTES,
			.end = (i + 1) * 2 * AREA_BYTES + AREA_BYTES,
			.bias = fuzz_number(in, 1) << 8,
		};
		modules[i] =
			(struct module){.number = (uint32_t)i, .path = "/lib/a.so", .build_id = ""};
		area->kind = fuzz_number(in, 1) & 1 ? CODE_AREA_FILE : CODE_AREA_JIT;
		area->module =
			area->kind == CODE_AREA_FILE || fuzz_number(in, 1) & 1 ? &modules[i] : NULL;
	}
	space->nr = NR_AREAS;
}

static void make_interpreter(struct fuzz_input *in, struct python_elf *elf, struct kprof_python *p)
{
	uint32_t minor = 8 + (uint32_t)fuzz_number(in, 1) % 5;

	elf->version = 0x03000000 | minor << 16;
	elf->nr_ranges = fuzz_number(in, 1) % 8;
	for (size_t i = 0; i < elf->nr_ranges; i++)
		elf->ranges[i] = (struct python_range){
			.start = 0x2000 + i * 0x200,
			.end = 0x2000 + i * 0x200 + fuzz_number(in, 2) % 0x200,
			.kind = (enum python_native)(fuzz_number(in, 1) & 3),
		};
	REQUIRE(python_layout_table(minor, p));
	p->version = elf->version;
	p->code_type = fuzz_number(in, 1);
}

static void make_thread(struct fuzz_input *in, struct dump_thread *t)
{
	t->nr_native = fuzz_number(in, 1) % MOST_FRAMES;
	t->nr_python = fuzz_number(in, 1) % MOST_FRAMES;
	t->python_flags = (uint32_t)fuzz_number(in, 1);
	t->end.how = fuzz_number(in, 1) & 1 ? KPROF_UNWIND_WHOLE : KPROF_UNWIND_NO_RULE;
	t->task.nr_kernel = (uint32_t)fuzz_number(in, 1) % 3;
	t->native = calloc(MOST_FRAMES, sizeof(*t->native));
	t->python = calloc(MOST_FRAMES, sizeof(*t->python));
	REQUIRE(t->native && t->python);
	for (size_t i = 0; i < t->nr_native; i++) {
		uint64_t what = fuzz_number(in, 3);

		t->native[i] = (struct walk_frame){.ip = what % 0xb000, .exact = what >> 23};
	}
	for (size_t i = 0; i < t->nr_python; i++)
		t->python[i] = (struct kprof_python_frame){
			.code = fuzz_number(in, 1) * 8,
			.instr = (int16_t)fuzz_number(in, 2),
			.flags = (uint32_t)fuzz_number(in, 1) & 3,
			.firstline = (uint32_t)fuzz_number(in, 1),
		};
}

static void check(const struct dump_process *p, const struct dump_thread *t,
		  const struct kprof_frame *frames, size_t nr)
{
	size_t python = 0, native = 0;

	for (size_t i = 0; i < nr; i++) {
		const struct kprof_frame *f = &frames[i];

		python += f->kind == KPROF_FRAME_PYTHON;
		native += f->kind == KPROF_FRAME_NATIVE;
		REQUIRE(f->line <= INT32_MAX);
		REQUIRE(strlen(f->function) + strlen(f->name) + strlen(f->file) +
				strlen(f->module) + strlen(f->build_id) + strlen(f->op) <
			1 << 20);
	}
	REQUIRE(python <= t->nr_python && native <= t->nr_native);
	REQUIRE(nr - python - native == (p->opts->kernel ? t->task.nr_kernel : 0));
	/* Only the interpreter's frames are left out, all of which are in the first file. */
	for (size_t i = 0; i < t->nr_native; i++) {
		const struct walk_frame *f = &t->native[i];
		const struct code_area *area = dump_area(p, f->exact ? f->ip : f->ip - 1, NULL);

		native += area && area->module == p->python_module;
	}
	REQUIRE(native >= t->nr_native);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct modules *modules;
	const struct modules_opts no_cache = {.cache_dir = ""};
	struct fuzz_input in = {data, bytes};
	uint64_t flags = fuzz_number(&in, 1);
	const struct kprof_dump_opts opts = {
		.sz = sizeof(opts), .no_lines = true, .interpreter = flags & 1};
	struct kprof_unwind_mapping mappings[NR_AREAS] = {0};
	struct code_area areas[NR_AREAS] = {0};
	struct module files[NR_AREAS];
	struct address_space space = {.pid = NOBODY, .mappings = mappings, .areas = areas};
	struct python_elf *elf = calloc(1, sizeof(*elf));
	struct dump_thread thread = {0};
	struct dump_process p = {.pid = NOBODY,
				 .alive = NOBODY,
				 .opts = &opts,
				 .space = &space,
				 .threads = &thread,
				 .nr_threads = 1};
	const struct kprof_frame *frames;
	struct dump_names *names;
	size_t nr;

	REQUIRE(elf && (modules || !modules__new(&no_cache, &modules)));
	p.modules = modules;
	make_space(&in, &space, files);
	make_interpreter(&in, elf, &p.python);
	p.python_elf = flags & 2 ? NULL : elf;
	p.python_module = &files[0];
	make_thread(&in, &thread);
	memory = in;
	REQUIRE(!dump_names__new(&p, &names));
	frames = dump_names__frames(names, 0, &nr);
	check(&p, &thread, frames, nr);
	dump_names__free(names);
	free(thread.native);
	free(thread.python);
	free(elf);
	return 0;
}
