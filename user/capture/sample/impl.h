/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of this room share.
 *
 *   stacks.c   what a recording has: modules, the kernel's unwinder, the clocks, processes
 *   event.c    records from the ring → samples
 *   frames.c   frames and stacks, each written to the capture once
 *   python.c   Python frames: the interpreter of a process, code objects
 *   jit.c      JIT code: its tables, and whether a walk by them was right
 *   names.c    what frames are called, looked up at the end
 */
#ifndef KPROF_CAPTURE_STACKS_IMPL_H
#define KPROF_CAPTURE_STACKS_IMPL_H

#include "capture/sample/sampler.h"
#include "capture/sample/sample.h"
#include "capture/unwind/unwind.h"
#include "symbol/python/python.h"
#include "util/histogram.h"
#include "util/map64.h"

/* ---- frames ---- */

struct known_frame { /* by id - 1 */
	/* in the module's file; of the kernel, and where there is no module: as it is */
	uint64_t address;
	uint32_t module;     /* modules.h's number; FRAME_* */
	uint32_t target_pid; /* of JIT code: whose */
};
#define FRAME_KERNEL 0xffffffffu
#define FRAME_JIT 0xfffffffeu /* made at run time */
#define FRAME_UNKNOWN 0xfffffffdu
#define FRAME_PYTHON 0xfffffffcu /* it has its name */

struct frames {
	struct map64 ids;    /* by hash of what it is → id */
	struct map64 stacks; /* parent << 32 | frame → id */
	struct known_frame *known;
	size_t nr, cap;
	uint32_t nr_stacks;
	uint32_t *modules; /* by modules.h's number: id in the capture; 0: not written yet */
	size_t nr_modules;
	uint32_t nr_written;               /* modules written */
	uint32_t kernel, jit;              /* their ids; 0: not written */
	uint32_t other_frame, other_stack; /* of those beyond the bounds; 0: not written */
};

/*
 * The ids of frames, written to the capture when new. 0: no memory, or it could not be written.
 * Beyond FRAMES_MAX, and FRAMES_MAX_STACKS, new ones are all the same one: walks through garbage
 * would have others each time, for hours.
 */
#define FRAMES_MAX (1u << 20)
#define FRAMES_MAX_STACKS (1u << 22)
uint32_t frames__native(struct stacks *s, const struct module *m, uint64_t vaddr);
uint32_t frames__kernel(struct stacks *s, uint64_t address);
/* Code that belongs to no file. */
uint32_t frames__jit(struct stacks *s, uint32_t pid, uint64_t address);
uint32_t frames__unknown(struct stacks *s, uint32_t pid, uint64_t address);
/* string ids */
uint32_t frames__python(struct stacks *s, uint32_t function, uint32_t file, uint32_t line);
/* This frame, called by that stack (0: by nothing). */
uint32_t frames__push(struct stacks *s, uint32_t parent, uint32_t frame);
bool frames__full(const struct frames *f);
void frames__free(struct frames *f);

/* ---- processes ---- */

struct stack_python; /* ---- python.c */

struct stack_target {
	struct address_space *space;
	uint32_t number;          /* unwinder.h's */
	bool stale;               /* a walk came upon code that is not known */
	uint64_t next_refresh_ns; /* for what is stale: not before */
	uint64_t refresh_wait_ns;
	bool jit_unnamed;            /* JIT code was met since its names were read */
	bool jit_said;               /* … that they cannot be read */
	bool said_left_out;          /* what of its code stacks are not walked through */
	struct perfmap *jit_names;   /* NULL: there are none */
	uint64_t jit_next_ns;        /* they are not read again before */
	struct stack_python *python; /* NULL: it runs none, as far as is known */
	bool code_stale;             /* JIT code was met that is not known, or is other code now */
	uint64_t code_next_ns;       /* it is not read again before */
	uint64_t code_wait_ns;
};

struct stacks {
	struct stacks_opts opts;
	uint32_t slot; /* of a target: struct stack_target * */
	struct modules *modules;
	struct unwinder *unwinder;
	struct sampler *sampler;
	uint32_t sample_source, stack_source;
	uint32_t stack_key, weight_key; /* string ids: what spans' stacks are called */
	struct frames frames;
	struct python_module { /* by modules.h's number */
		bool looked;
		struct python_elf *elf; /* NULL: no interpreter */
	} * pythons;
	size_t nr_pythons;
	uint64_t code_bytes;                 /* of all processes' code objects */
	uint64_t ends[KPROF_UNWIND_NR_ENDS]; /* of walks in the window */
	uint64_t samples, weight_ns;
	bool no_gil;              /* an interpreter without that lock was met */
	uint64_t without_gil;     /* samples that were left out: kprof_session_opts.gil_only */
	struct histogram cost_ns; /* of samples, in BPF */
	uint64_t tables_ns;       /* until the tables of the first processes were ready */
	bool tables_late;         /* … they were not when the window opened, and are not now */
	bool said_left_out;       /* that stacks of some processes are not walked */
	uint64_t jit_bytes;       /* of all processes' names of JIT code */
	bool said_jit_full;       /* … that there are too many */
};

/* The process's; NULL: its mappings were not handed over, or not yet. */
static inline struct stack_target *stacks__of(const struct stacks *s, const struct target *t)
{
	return t->slot[s->slot];
}

/* ---- python.c */
/* Does the process run Python? What cannot be known yet is tried again. */
void stacks_python__look(struct stacks *s, struct target *t, uint64_t now_ns);
void stacks_python__forget(struct stacks *s, struct stack_target *st);
/* The id of a frame; 0: no memory. */
uint32_t stacks_python__frame(struct stacks *s, struct target *t,
			      const struct kprof_python_frame *f);
enum python_native stacks_python__native(const struct stacks *s, const struct target *t,
					 uint64_t ip);
void stacks_python__free(struct stacks *s);

/* ---- jit.c */
/*
 * Reads such code, where it is time to. 1: the process's mappings are to be handed over, then
 * stacks_jit__settled().
 */
int stacks_jit__look(struct stacks *s, struct target *t, uint64_t now_ns);
/* The mappings that had the tables before are on their way out. */
void stacks_jit__settled(struct stacks *s, struct target *t);
void stacks_jit__forget(struct stacks *s, struct stack_target *st);
/* All that was settled was handed over. */
void stacks_jit__published(struct stacks *s);
/*
 * The first frame of a walk (innermost first, as the kernel reports them) after which it went on by
 * what was not true; nr, mostly: all is as it should be.
 */
size_t stacks_jit__doubtful(struct stacks *s, struct target *t, const uint64_t *ips, size_t nr,
			    uint64_t time_ns);

/* ---- names.c */
int stacks__names(struct stacks *s);
/* What the process calls code that it made: only while it lives. */
void stacks__read_jit_names(struct stacks *s, struct target *t, uint64_t now_ns);
/* It is about to be forgotten. */
int stacks__record_jit_names(struct stacks *s, struct target *t);

#endif
