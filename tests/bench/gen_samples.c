// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes a capture of samples of a training that never was, for tests of what is made of such
 * captures and for measuring it. The same arguments give the same file.
 *
 *   gen_samples SAMPLES OUT.kprof
 *
 * Of each hundred samples 40 are in a matrix product under aten::addmm under aten::linear, 10 in
 * aten::relu, 10 in read(2), 4 in a recursion, all on the main thread under step() of train.py; 25
 * in aten::mm on the thread of the backward pass; 10 wait on a thread of OpenMP's; one is in code
 * that cannot be unwound. Innermost addresses vary over 64 instructions. Native frames get their
 * names at the end, as in a recording.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kprof.h"
#include "store/store.h"
#include "util/util.h"

#define PID 4242
#define START_MONO_NS (1000 * NSEC_PER_SEC)
#define START_REAL_NS (1790000000ull * NSEC_PER_SEC)
#define PERIOD_NS 10101010ull /* 99 Hz */
#define ADDRESSES 64
#define MAX_STACKS 4096

enum module { PYTHON = 1, LIBC, TORCH, MKL, GOMP, KERNEL, WEIRD };
static const struct {
	uint32_t kind;
	const char *path, *build_id;
} modules[] = {
	[PYTHON] = {STORE_MODULE_FILE, "/usr/bin/python3.11", "5f0a1c"},
	[LIBC] = {STORE_MODULE_FILE, "/usr/lib/x86_64-linux-gnu/libc.so.6", "93ac02"},
	[TORCH] = {STORE_MODULE_FILE, "/opt/torch/lib/libtorch_cpu.so", "77dd10"},
	[MKL] = {STORE_MODULE_FILE, "/opt/mkl/lib/libmkl_avx2.so.2", ""},
	[GOMP] = {STORE_MODULE_FILE, "/usr/lib/x86_64-linux-gnu/libgomp.so.1", "c0ffee"},
	[KERNEL] = {STORE_MODULE_KERNEL, "[kernel]", ""},
	[WEIRD] = {STORE_MODULE_FILE, "/tmp/libweird.so", ""},
};

struct place {
	uint32_t kind, module; /* 0: Python */
	const char *function, *file;
	uint32_t line;
	const char *op, *inlined; /* NULL: none */
};

enum {
	START,
	MAIN,
	MODULE,
	STEP_17,
	STEP_18,
	STEP_19,
	STEP_20,
	CALL,
	FORWARD,
	LINEAR,
	NATIVE_LINEAR,
	ADDMM,
	ADDMM_OUT,
	SGEMM,
	RELU,
	LOOP,
	READ,
	SYSCALL,
	VFS_READ,
	COPY,
	FIB,
	CLONE,
	THREAD,
	EVALUATE,
	MM,
	GOMP_START,
	BARRIER,
	ODD,
	NR_PLACES,
};
#define TORCH_HEADER "/src/aten/src/ATen/cpu/vec/functional.h"
static const struct place places[NR_PLACES] = {
	[START] = {STORE_FRAME_NATIVE, PYTHON, "_start", NULL, 0, NULL, NULL},
	[MAIN] = {STORE_FRAME_NATIVE, PYTHON, "Py_BytesMain", NULL, 0, NULL, NULL},
	[MODULE] = {STORE_FRAME_PYTHON, 0, "<module>", "/home/user/train.py", 41, NULL, NULL},
	[STEP_17] = {STORE_FRAME_PYTHON, 0, "step", "/home/user/train.py", 17, NULL, NULL},
	[STEP_18] = {STORE_FRAME_PYTHON, 0, "step", "/home/user/train.py", 18, NULL, NULL},
	[STEP_19] = {STORE_FRAME_PYTHON, 0, "step", "/home/user/train.py", 19, NULL, NULL},
	[STEP_20] = {STORE_FRAME_PYTHON, 0, "step", "/home/user/train.py", 20, NULL, NULL},
	[CALL] = {STORE_FRAME_NATIVE, PYTHON, "_PyObject_MakeTpCall", NULL, 0, NULL, NULL},
	[FORWARD] = {STORE_FRAME_PYTHON, 0, "Linear.forward", "/opt/torch/nn/modules/linear.py",
		     125, NULL, NULL},
	[LINEAR] = {STORE_FRAME_NATIVE, TORCH, "_ZN2at4_ops6linear4callERKNS_6TensorES4_", NULL, 0,
		    "aten::linear", NULL},
	[NATIVE_LINEAR] = {STORE_FRAME_NATIVE, TORCH, "_ZN2at6native6linearERKNS_6TensorES3_",
			   "/src/aten/src/ATen/native/Linear.cpp", 91, NULL, NULL},
	[ADDMM] = {STORE_FRAME_NATIVE, TORCH, "_ZN2at4_ops5addmm4callERKNS_6TensorES4_", NULL, 0,
		   "aten::addmm", NULL},
	[ADDMM_OUT] = {STORE_FRAME_NATIVE, TORCH, "_ZN2at6native13addmm_impl_cpERNS_6TensorE",
		       "/src/aten/src/ATen/native/LinearAlgebra.cpp", 1510, NULL,
		       "_ZN2at6native7cpublas4gemmEv"},
	[SGEMM] = {STORE_FRAME_NATIVE, MKL, "mkl_blas_avx2_sgemm_kernel", NULL, 0, NULL, NULL},
	[RELU] = {STORE_FRAME_NATIVE, TORCH, "_ZN2at4_ops4relu4callERKNS_6TensorE", NULL, 0,
		  "aten::relu", NULL},
	[LOOP] = {STORE_FRAME_NATIVE, TORCH, "_ZN2at3vec3mapIfZNS_4reluEvEUlfE_EEvT0_PT_",
		  TORCH_HEADER, 230, NULL, "_ZN2at3vec10VectorizedIfE5loaduEPKv"},
	[READ] = {STORE_FRAME_NATIVE, LIBC, "__read", NULL, 0, NULL, NULL},
	[SYSCALL] = {STORE_FRAME_KERNEL, KERNEL, "do_syscall_64", NULL, 0, NULL, NULL},
	[VFS_READ] = {STORE_FRAME_KERNEL, KERNEL, "vfs_read", NULL, 0, NULL, NULL},
	[COPY] = {STORE_FRAME_KERNEL, KERNEL, "copy_page_to_iter", NULL, 0, NULL, NULL},
	[FIB] = {STORE_FRAME_PYTHON, 0, "fib", "/home/user/train.py", 7, NULL, NULL},
	[CLONE] = {STORE_FRAME_NATIVE, LIBC, "__clone3", NULL, 0, NULL, NULL},
	[THREAD] = {STORE_FRAME_NATIVE, TORCH,
		    "_ZN5torch8autograd6Engine11thread_mainERKSt10shared_ptrINS0_9GraphTaskEE",
		    NULL, 0, NULL, NULL},
	[EVALUATE] = {STORE_FRAME_NATIVE, TORCH, "_ZN5torch8autograd6Engine17evaluate_functionEv",
		      NULL, 0, "AddmmBackward0", NULL},
	[MM] = {STORE_FRAME_NATIVE, TORCH, "_ZN2at4_ops2mm4callERKNS_6TensorES4_", NULL, 0,
		"aten::mm", NULL},
	[GOMP_START] = {STORE_FRAME_NATIVE, GOMP, "gomp_thread_start", NULL, 0, NULL, NULL},
	[BARRIER] = {STORE_FRAME_NATIVE, GOMP, "gomp_team_barrier_wait_end", NULL, 0, NULL, NULL},
	[ODD] = {STORE_FRAME_NATIVE, WEIRD, NULL, NULL, 0, NULL, NULL},
};

enum thread { THREAD_MAIN, THREAD_AUTOGRAD, THREAD_OMP, NR_THREADS };
static const char *const thread_names[] = {"python3", "pt_autograd_0", "omp"};

/* What a sample can be: of a hundred, so many. */
#define DEPTH 16
static const struct kind {
	uint32_t percent, thread, flags;
	bool varies;         /* the innermost address */
	uint8_t path[DEPTH]; /* outermost first, places + 1 */
} kinds[] = {
#define P(place) place + 1
#define IN_STEP P(START), P(MAIN), P(MODULE)
	{40,
	 THREAD_MAIN,
	 KPROF_SAMPLE_USER | KPROF_SAMPLE_GIL,
	 true,
	 {IN_STEP, P(STEP_17), P(CALL), P(FORWARD), P(LINEAR), P(NATIVE_LINEAR), P(ADDMM),
	  P(ADDMM_OUT), P(SGEMM)}},
	{10,
	 THREAD_MAIN,
	 KPROF_SAMPLE_USER | KPROF_SAMPLE_GIL,
	 true,
	 {IN_STEP, P(STEP_18), P(RELU), P(LOOP)}},
	{10,
	 THREAD_MAIN,
	 KPROF_SAMPLE_KERNEL,
	 true,
	 {IN_STEP, P(STEP_19), P(READ), P(SYSCALL), P(VFS_READ), P(COPY)}},
	{4,
	 THREAD_MAIN,
	 KPROF_SAMPLE_USER | KPROF_SAMPLE_GIL,
	 false,
	 {IN_STEP, P(STEP_20), P(FIB), P(FIB), P(FIB), P(FIB), P(FIB), P(FIB)}},
	{25,
	 THREAD_AUTOGRAD,
	 KPROF_SAMPLE_USER,
	 true,
	 {P(CLONE), P(THREAD), P(EVALUATE), P(MM), P(SGEMM)}},
	{10, THREAD_OMP, KPROF_SAMPLE_OFF_CPU, false, {P(CLONE), P(GOMP_START), P(BARRIER)}},
	{1, THREAD_MAIN, KPROF_SAMPLE_USER, true, {P(ODD)}},
};

struct gen {
	struct store_writer *w;
	uint64_t random;
	uint32_t nr_frames, nr_stacks;
	uint32_t frames[NR_PLACES][ADDRESSES]; /* 0: not told yet */
	struct {
		uint32_t parent, frame;
	} stacks[MAX_STACKS];
};

static void put(struct gen *g, struct store_record r)
{
	if (store_writer__put(g->w, &r)) {
		fprintf(stderr, "gen_samples: %s\n", kprof_error_cause());
		exit(1);
	}
}

static uint32_t string(struct gen *g, const char *text)
{
	return text ? store_writer__string(g->w, text, strlen(text)) : 0;
}

static uint64_t next_random(struct gen *g)
{
	g->random ^= g->random << 13;
	g->random ^= g->random >> 7;
	g->random ^= g->random << 17;
	return g->random;
}

static void put_tables(struct gen *g, uint64_t samples)
{
	put(g, (struct store_record){STORE_CLOCK, .clock = {START_MONO_NS, START_REAL_NS}});
	put(g, (struct store_record){STORE_META, .meta = {"command", "\"python3 train.py\""}});
	put(g, (struct store_record){STORE_SOURCE, .source = {.name = string(g, "samples"),
							      .fired = samples + 2,
							      .captured = samples,
							      .dropped = 2}});
	put(g, (struct store_record){STORE_PROCESS,
				     .process = {.pid = PID,
						 .ppid = 1,
						 .comm = string(g, "python3"),
						 .cmdline = string(g, "python3 train.py"),
						 .start_ns = START_MONO_NS}});
	for (uint32_t i = 0; i < NR_THREADS; i++)
		put(g, (struct store_record){STORE_THREAD,
					     .thread = {.index = i,
							.pid = PID,
							.tid = PID + i,
							.name = string(g, thread_names[i]),
							.start_ns = START_MONO_NS}});
	for (uint32_t i = PYTHON; i <= WEIRD; i++)
		put(g,
		    (struct store_record){STORE_MODULE,
					  .module = {i, modules[i].kind, string(g, modules[i].path),
						     string(g, modules[i].build_id)}});
}

/* Native ones without their names, which put_names() tells; Python's are known at once. */
static void put_frame(struct gen *g, uint32_t id, const struct place *p, uint32_t address,
		      bool named)
{
	struct store_line lines[2];
	uint32_t nr = 0;

	if (named && p->inlined)
		lines[nr++] =
			(struct store_line){string(g, p->inlined), string(g, TORCH_HEADER), 77, 0};
	if (named && p->function)
		lines[nr++] =
			(struct store_line){string(g, p->function), string(g, p->file), p->line, 0};
	put(g, (struct store_record){
		       STORE_FRAME,
		       .frame = {.id = id,
				 .kind = p->kind,
				 .module = p->module,
				 .address = p->kind == STORE_FRAME_PYTHON
						    ? 0
						    : 0x1000u + (uint32_t)(p - places) * 0x1000u +
							      address * 4,
				 .op = string(g, p->op),
				 .nr_lines = nr,
				 .lines = lines}});
}

static uint32_t frame(struct gen *g, uint32_t place, uint32_t address)
{
	uint32_t *id = &g->frames[place][address];

	if (!*id) {
		*id = ++g->nr_frames;
		put_frame(g, *id, &places[place], address,
			  places[place].kind == STORE_FRAME_PYTHON);
	}
	return *id;
}

static uint32_t stack(struct gen *g, uint32_t parent, uint32_t frame)
{
	for (uint32_t i = 0; i < g->nr_stacks; i++)
		if (g->stacks[i].parent == parent && g->stacks[i].frame == frame)
			return i + 1;
	if (g->nr_stacks == MAX_STACKS)
		abort();
	g->stacks[g->nr_stacks].parent = parent;
	g->stacks[g->nr_stacks++].frame = frame;
	put(g, (struct store_record){STORE_STACK, .stack = {g->nr_stacks, parent, frame}});
	return g->nr_stacks;
}

static const struct kind *kind_of(uint64_t sample)
{
	/*
	 * 61 has no factor in common with 100: each hundred has every kind so often as it should,
	 * well mixed.
	 */
	uint32_t at = (uint32_t)(sample * 61 % 100);
	const struct kind *k = kinds;

	for (; at >= k->percent; k++)
		at -= k->percent;
	return k;
}

static void put_sample(struct gen *g, uint64_t i)
{
	const struct kind *k = kind_of(i);
	bool odd = k->path[0] == P(ODD);
	uint32_t id = 0;

	for (uint32_t at = 0; at < DEPTH && k->path[at]; at++) {
		bool innermost = at + 1 == DEPTH || !k->path[at + 1];
		uint32_t address =
			innermost && k->varies ? (uint32_t)(next_random(g) % ADDRESSES) : 0;

		id = stack(g, id, frame(g, k->path[at] - 1u, address));
	}
	put(g, (struct store_record){STORE_SAMPLE,
				     .sample = {
					     .time_ns = START_MONO_NS + i * PERIOD_NS / NR_THREADS +
							next_random(g) % 100000,
					     .thread = k->thread,
					     .stack = id,
					     .weight_ns = PERIOD_NS,
					     .flags = k->flags | (odd ? 4u : KPROF_SAMPLE_END_WHOLE)
									 << KPROF_SAMPLE_END_SHIFT,
				     }});
}

static void put_names(struct gen *g)
{
	for (uint32_t p = 0; p < NR_PLACES; p++)
		for (uint32_t a = 0; a < ADDRESSES; a++)
			if (g->frames[p][a] && places[p].kind != STORE_FRAME_PYTHON)
				put_frame(g, g->frames[p][a], &places[p], a, true);
}

int main(int argc, char **argv)
{
	static struct gen g = {.random = 88172645463325252ull};
	uint64_t samples = argc == 3 ? strtoull(argv[1], NULL, 10) : 0;

	if (!samples) {
		fprintf(stderr, "usage: gen_samples SAMPLES OUT.kprof\n");
		return 2;
	}
	if (store_writer__open(argv[2], NULL, &g.w)) {
		fprintf(stderr, "gen_samples: %s\n", kprof_error_cause());
		return 1;
	}
	put_tables(&g, samples);
	for (uint64_t i = 0; i < samples; i++)
		put_sample(&g, i);
	put_names(&g);
	if (store_writer__finish(g.w,
				 START_MONO_NS + samples * PERIOD_NS / NR_THREADS + NSEC_PER_SEC)) {
		fprintf(stderr, "gen_samples: %s\n", kprof_error_cause());
		return 1;
	}
	return 0;
}
