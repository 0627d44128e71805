/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks in a recording: clocks that sample, tables handed to the kernel, records from there made into frames.
 *
 *   stacks.c          what there is a session: modules, the kernel's unwinder, the clocks, processes
 *   stacks_event.c    records from the ring → samples
 *   stacks_frames.c   frames and stacks, each told to the capture once
 *   stacks_python.c   Python frames: the interpreter of a process, code objects
 *   stacks_made.c     code made at run time: its tables, and whether a walk by them was right
 *   stacks_names.c    what frames are called, looked up at the end
 *
 * Everything runs in the session's thread, but the building of tables (modules.h) and the looking up of names
 * (symbol/symbolize/symbolize.h).
 */
#ifndef KPROF_CAPTURE_STACKS_H
#define KPROF_CAPTURE_STACKS_H

#include "capture/unwind/modules.h"
#include "capture/sample/sampler.h"
#include "capture/session/session.h"
#include "capture/unwind/space.h"
#include "capture/unwind/unwinder.h"
#include "symbol/python/python.h"
#include "util/histogram.h"

/* ---- frames ------------------------------------------------------------------------------------------ */

struct known_frame { /* by id - 1 */
	uint64_t
		address; /* in the module's file; of the kernel, and where there is no module: as it is */
	uint32_t module;     /* modules.h's number; FRAME_* */
	uint32_t target_pid; /* of code made at run time: whose */
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
	uint32_t *modules; /* by modules.h's number: id in the capture; 0: not told yet */
	size_t nr_modules;
	uint32_t nr_told;                  /* modules told */
	uint32_t kernel, jit;              /* their ids; 0: not told */
	uint32_t other_frame, other_stack; /* of those beyond the bounds; 0: not told */
};

/*
 * The ids of frames, told to the capture when new. 0: no memory, or it could not be written. Beyond FRAMES_MAX, and
 * FRAMES_MAX_STACKS, new ones are all the same one: walks through garbage would have others each time, for hours.
 */
#define FRAMES_MAX (1u << 20)
#define FRAMES_MAX_STACKS (1u << 22)
uint32_t frames__native(struct kprof_session *s, const struct module *m, uint64_t vaddr);
uint32_t frames__kernel(struct kprof_session *s, uint64_t address);
/* Code that belongs to no file. */
uint32_t frames__jit(struct kprof_session *s, uint32_t pid, uint64_t address);
uint32_t frames__unknown(struct kprof_session *s, uint32_t pid, uint64_t address);
/* string ids */
uint32_t frames__python(struct kprof_session *s, uint32_t function, uint32_t file, uint32_t line);
/* This frame, called by that stack (0: by nothing). */
uint32_t frames__push(struct kprof_session *s, uint32_t parent, uint32_t frame);
bool frames__full(const struct frames *f);
void frames__free(struct frames *f);

/* ---- processes --------------------------------------------------------------------------------------- */

struct stack_python; /* stacks_python.c */

struct stack_target {
	struct space *space;
	uint32_t number;          /* unwinder.h's */
	bool stale;               /* a walk came upon code that is not known */
	uint64_t next_refresh_ns; /* for what is stale: not before */
	uint64_t refresh_wait_ns;
	bool jit_unnamed;            /* code made at run time was met since its names were read */
	bool jit_told;               /* … that they cannot be read */
	bool said_left_out;          /* what of its code stacks are not walked through */
	struct perfmap *jit_names;   /* NULL: there are none */
	uint64_t jit_next_ns;        /* they are not read again before */
	struct stack_python *python; /* NULL: it runs none, as far as is known */
	bool made_stale; /* code made at run time was met that is not known, or is other code now */
	uint64_t made_next_ns; /* it is not read again before */
	uint64_t made_wait_ns;
};

struct session_stacks {
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
	uint64_t jit_bytes;       /* of all processes' names of code made at run time */
	bool said_jit_full;       /* … that there are too many */
};

/* Nothing, where the options ask for no stacks. The programs are loaded already. */
int stacks__new(struct kprof_session *s);
void stacks__free(struct kprof_session *s);
/* The process's mappings, as they are now, to the kernel. What cannot be done now is tried again. */
int stacks__look(struct kprof_session *s, struct target *t);
/* It runs another program now, or is gone. */
void stacks__forget(struct kprof_session *s, struct target *t);
/* Waits for tables, for a second at most, and starts the clocks. */
int stacks__start(struct kprof_session *s);
/* What is due: tables that are ready, processes whose code has changed. */
int stacks__tend(struct kprof_session *s, uint64_t now_ns);
void stacks__stop(struct kprof_session *s);
/* A record of the kernel's. */
int stacks__event(struct kprof_session *s, struct thread *th, const struct kprof_wire_stack *e);
/* A span has begun there: its stack may have come before, or comes next. */
int stacks__begun(struct kprof_session *s, struct thread *th, const struct kprof_wire_hdr *h,
		  uint64_t span);
/* Names for every frame, and what is said about it all. */
int stacks__finish(struct kprof_session *s);
void stacks__stats(const struct kprof_session *s, struct kprof_session_stats *out);

/* stacks_python.c */
/* Does the process run Python? What cannot be known yet is tried again. */
void stacks_python__look(struct kprof_session *s, struct target *t, uint64_t now_ns);
/* Where the interpreter keeps what; NULL: it is not found (yet), or there is none. Until the process's image is another. */
const struct kprof_python *stacks_python__layout(const struct target *t);
void stacks_python__forget(struct kprof_session *s, struct stack_target *st);
/* The id of a frame; 0: no memory. */
uint32_t stacks_python__frame(struct kprof_session *s, struct target *t,
			      const struct kprof_python_frame *f);
enum python_native stacks_python__native(const struct kprof_session *s, const struct target *t,
					 uint64_t ip);
void stacks_python__free(struct session_stacks *st);

/* stacks_made.c */
/* Reads such code, where it is time to. 1: the process's mappings are to be handed over, then stacks_made__settled(). */
int stacks_made__look(struct kprof_session *s, struct target *t, uint64_t now_ns);
/* The mappings that had the tables before are on their way out. */
void stacks_made__settled(struct kprof_session *s, struct target *t);
void stacks_made__forget(struct kprof_session *s, struct stack_target *st);
/* All that was settled was handed over. */
void stacks_made__published(struct kprof_session *s);
/*
 * The first frame of a walk (innermost first, as the kernel tells them) behind which it went on by what was not true; nr,
 * mostly: all is as it should be.
 */
size_t stacks_made__doubtful(struct target *t, const uint64_t *ips, size_t nr, uint64_t time_ns);

/* stacks_names.c */
int stacks__names(struct kprof_session *s);
/* What the process calls code that it made: only while it lives. */
void stacks__read_jit_names(struct kprof_session *s, struct target *t, uint64_t now_ns);
/* It is about to be forgotten. */
int stacks__tell_jit_names(struct kprof_session *s, struct target *t);

#endif
