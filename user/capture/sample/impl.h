/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Structures and functions that the files of this room share.
 *
 *   stacks.c   modules and their unwind tables, the unwinder in the kernel, clocks, processes
 *   sideband.c what the kernel tells of processes that come and go
 *   tables.c   unwind tables, from the threads that build them to the kernel
 *   event.c    records from the ring → samples
 *   frames.c   frames and stacks, each written to the capture once
 *   python.c   Python frames: the interpreter of a process, code objects
 *   jit.c      JIT code: its unwind tables, and whether a walk used the right ones
 *   runtimes.c what runs the code of samples: how walks ended, and what has no names, by runtime
 *   jvm.c      Java's virtual machines, which are asked for names of their code
 *   names.c    names of frames, looked up at the end, or so far
 */
#ifndef KPROF_CAPTURE_STACKS_IMPL_H
#define KPROF_CAPTURE_STACKS_IMPL_H

#include <cjson/cJSON.h>

#include "capture/sample/sampler.h"
#include "capture/sample/sideband.h"
#include "capture/sample/sample.h"
#include "capture/unwind/unwind.h"
#include "symbol/python/python.h"
#include "util/histogram.h"
#include "util/map64.h"

/* ---- frames ---- */

struct known_frame { /* by id of the frame - 1 */
	/*
	 * virtual address in the module's file; the sampled address where it is the kernel's or
	 * there is no module
	 */
	uint64_t address;
	uint32_t module; /* number of the module (modules.h), or one of FRAME_* */
	/* PID of the process; only of FRAME_JIT and FRAME_UNKNOWN. Of files' frames, here, … */
	uint32_t target_pid;
};
#define FRAME_NAMED 1 /* … whether they were named while recording */
#define FRAME_KERNEL 0xffffffffu
#define FRAME_JIT 0xfffffffeu /* JIT code: belongs to no file */
#define FRAME_UNKNOWN 0xfffffffdu
#define FRAME_PYTHON 0xfffffffcu /* written with its name: needs no look-up at the end */

struct frames {
	/* by hash of module, PID and address, or of a Python function, file and line → id */
	struct map64 ids;
	struct map64 stacks; /* parent stack << 32 | frame → id of the stack */
	struct known_frame *known;
	size_t nr, cap;
	/*
	 * How many have been named while recording: those of JIT code, of the kernel, of files (of
	 * which there may be further ones).
	 */
	size_t nr_named, nr_kernel, nr_files;
	uint32_t nr_stacks;
	uint32_t nr_modules;  /* how many modules were written */
	uint32_t kernel, jit; /* ids of the modules "[kernel]" and "[jit]"; 0: not written */
	/* ids of the frame and the stack that replace all beyond the limits; 0: not written */
	uint32_t other_frame, other_stack;
	uint32_t most, most_stacks; /* the limits */
};

/*
 * These return the id of a frame, which is written to the capture when it is new. 0: no memory, or
 * it could not be written. Beyond FRAMES_MAX frames and FRAMES_MAX_STACKS stacks, each new one is
 * replaced by a single "[too many frames]": walks through garbage would find new ones for hours.
 */
#define FRAMES_MAX (1u << 20)
#define FRAMES_MAX_STACKS (1u << 22)
/* … with stacks_opts.few: */
#define FRAMES_FEW (1u << 17)
#define FRAMES_FEW_STACKS (1u << 18)
uint32_t frames__native(struct stacks *s, struct module *m, uint64_t vaddr);
uint32_t frames__kernel(struct stacks *s, uint64_t address);
/* JIT code. */
uint32_t frames__jit(struct stacks *s, uint32_t pid, uint64_t address);
uint32_t frames__unknown(struct stacks *s, uint32_t pid, uint64_t address);
struct python_place {
	uint32_t function, file; /* string ids */
	uint32_t line;
	/*
	 * Whether frames of one line differ by what follows, as the stacks of operators need it to
	 * tell calls apart. It is written to the capture then.
	 */
	bool exact;
	uint32_t first_line, instr, flags, loop; /* see store.h: PYTHON_FRAME */
};
uint32_t frames__python(struct stacks *s, const struct python_place *at);
/* The id of the stack that has this frame on top of the parent stack (0: outermost frame). */
uint32_t frames__push(struct stacks *s, uint32_t parent, uint32_t frame);
bool frames__full(const struct frames *f);
void frames__free(struct frames *f);

/* ---- processes ---- */

struct stack_python; /* ---- python.c */

struct stack_target {
	struct address_space *space;
	uint32_t number;          /* number of the address space in the unwinder (unwinder.h) */
	bool stale;               /* a walk met code that is in none of the known mappings */
	uint64_t next_refresh_ns; /* when stale: mappings are not read again before this time */
	uint64_t refresh_wait_ns;
	/* JIT code was met since the names of JIT code were last read */
	bool jit_unnamed;
	bool jit_renamed; /* names were read, by which frames met before are to be named */
	bool jit_said;    /* warned that the names of JIT code cannot be read */
	/* the JVM in it was asked for names, once at least; it gave none */
	bool asked, ask_failed;
	struct jvm_ask ask; /* it is being asked */
	/* warned that stacks are not walked through some of its code */
	bool said_left_out;
	struct perfmap *jit_names;   /* names of JIT code, from the perf map; NULL: none */
	uint64_t jit_next_ns;        /* names of JIT code are not read again before this time */
	struct stack_python *python; /* NULL: the process runs no Python, as far as is known */
	/* JIT code was met that has not been read, or has changed since */
	bool code_stale;
	uint64_t code_next_ns; /* JIT code is not read again before this time */
	uint64_t code_wait_ns;
};

/* What runs a process's code. Of several in one process, the last one in this order. */
enum runtime {
	RUNTIME_UNKNOWN, /* the process ended before its mappings were read; not looked yet */
	RUNTIME_KERNEL,  /* there is nothing but the kernel's own code */
	RUNTIME_NATIVE,
	RUNTIME_JIT, /* native, but the stack led through generated code */
	RUNTIME_GO,
	RUNTIME_PYTHON,
	RUNTIME_JAVA,
	RUNTIME_NODE,
	RUNTIME_DOTNET,
	RUNTIME_RUBY,
	NR_RUNTIMES,
};

/* Kernel frames on top of a wait's stack that are only there because kprof looks: how many. */
struct wait_top {
	bool known;
	size_t nr;
};

struct stacks {
	struct stacks_opts opts;
	uint32_t slot; /* slot of a target: struct stack_target * */
	struct modules *modules;
	/* when all frames were named, how long after the time before; when some; what that took */
	uint64_t all_named_ns, names_every_ns, some_named_ns, some_took_ns;
	uint64_t names_ns; /* what looking them up may take in a second, where there is a bound */
	uint64_t next_cache_ns; /* when to look at the size of the cache of names */
	struct unwinder *unwinder;
	struct sampler *sampler;
	struct copied_walker *copies;  /* NULL: not needed yet */
	struct kprof_unwind_walk copy; /* the latest walk of a copy */
	/* what was told of the mappings of the process that was sampled last; NULL: nothing */
	struct address_space *told;
	struct sideband *sideband; /* NULL: not all processes are recorded, or nothing is told */
	uint32_t sample_source, stack_source, wait_source;
	uint32_t stack_key, weight_key; /* string ids of the attributes for spans' stacks */
	struct frames frames;
	uint64_t code_bytes;                 /* memory for code objects of all processes */
	uint64_t ends[KPROF_UNWIND_NR_ENDS]; /* how walks of samples in the window ended */
	uint64_t samples, weight_ns;
	uint64_t event_ns;                    /* time of the record that is being handled */
	uint32_t nr_evicted, nr_without_room; /* tables */
	struct wait_top wait_top, waker_top;
	bool no_gil;              /* an interpreter without a GIL was met (free-threaded) */
	uint64_t without_gil;     /* samples left out because of kprof_session_opts.gil_only */
	struct histogram cost_ns; /* distribution of a sample's time in BPF */
	uint64_t tables_ns;       /* how long the start waited for unwind tables */
	bool tables_late;         /* tables were not ready then, and still are not */
	bool said_left_out;       /* warned that stacks of some processes are not walked */
	bool said_no_room;        /* warned that not all tables fit in the kernel */
	uint64_t jit_bytes;       /* memory for names of JIT code of all processes */
	bool met_jit;             /* the record that is being handled led through JIT code */
	/* of Python code whose names are not known yet, they are read by .reading; it is used up */
	bool sparing, spent;
	uint32_t unknown_function; /* string id; 0: not needed yet */
	bool jit_unpublished;      /* the kernel was not handed all tables of JIT code yet */
	uint64_t next_turn_ns;
	uint64_t first_target; /* its .number: there was no time for it the last time */
	/* the same as `ends`, by runtime */
	uint64_t ends_of[NR_RUNTIMES][KPROF_UNWIND_NR_ENDS];
	/* processes whose compiled code was met and has no names */
	struct {
		uint32_t processes, pid; /* pid: of the first */
	} nameless[NR_RUNTIMES];
	/* kept for looking names up while recording */
	struct ksyms *ksyms; /* NULL: not read yet */
	bool no_ksyms;       /* it cannot be read, and that was said */
	/* by number of the module: schemas that give operators' names; NULL: not loaded */
	struct schemas **schemas;
	size_t nr_schemas;
	bool said_jit_full; /* warned that jit_bytes reached its limit */
	/* how many times JVMs are being, and were, asked for names, and have answered */
	uint32_t nr_asking, jvm_asked, jvm_named;
};

/* What this room knows of the process; NULL: its mappings were not handed to the kernel (yet). */
static inline struct stack_target *stacks__of(const struct stacks *s, const struct target *t)
{
	return t->slot[s->slot];
}

/* Is it a stack (KPROF_WIRE_STACK) of a thread that waits, or of one that ends a wait? */
static inline bool stacks__is_of_wait(const struct kprof_wire_stack *e)
{
	return e->h.kind == KPROF_WIRE_STACK &&
	       e->flags & (KPROF_WIRE_STACK_WAIT | KPROF_WIRE_STACK_WAKER);
}

/*
 * The address to look up for a frame. Of a return address, that is the byte before it, which
 * belongs to the call.
 */
static inline uint64_t looked_up(uint64_t ip)
{
	const uint64_t exact = 1ull << KPROF_UNWIND_EXACT_BIT;

	return ip & exact ? ip & ~exact : ip - 1;
}

/* ---- tables.c */
/* Hands the process's mappings to the kernel, as they are known. */
int stacks_tables__hand_over(struct stacks *s, struct target *t);
/* Hands the tables that are ready to the kernel. Returns 1 when there were some. */
int stacks_tables__place(struct stacks *s);
/* Hands over the mappings of which more, or less, can be walked now. */
int stacks_tables__settle(struct stacks *s);
/* Makes the kernel use all that was handed over. */
int stacks_tables__flush(struct stacks *s);

/* ---- python.c */
/*
 * Looks for a Python interpreter in the process. Called again while it cannot be found or read yet.
 */
void stacks_python__look(struct stacks *s, struct target *t, uint64_t now_ns);
void stacks_python__forget(struct stacks *s, struct stack_target *st);
/* The id of a frame; 0: no memory. of_entry: it belongs to the stack of an operator or a call. */
uint32_t stacks_python__frame(struct stacks *s, struct target *t,
			      const struct kprof_python_frame *f, bool of_entry);
enum python_native stacks_python__native(const struct stacks *s, const struct target *t,
					 uint64_t ip);

/* ---- jit.c */
bool stacks_jit__is_due(const struct stack_target *st, uint64_t now_ns);
/*
 * Reads the process's JIT code when that is due. 1: the code has changed; the caller must hand the
 * process's mappings to the kernel, and then call stacks_jit__settled().
 */
int stacks_jit__look(struct stacks *s, struct target *t, uint64_t now_ns);
/* The new mappings were handed to the kernel: drops the tables that only the old ones refer to. */
void stacks_jit__settled(struct stacks *s, struct stack_target *st);
void stacks_jit__forget(struct stacks *s, struct stack_target *st);
/* To be called when the kernel uses all mappings that were handed over. */
void stacks_jit__published(struct stacks *s);
/*
 * The index of the first frame of a walk (innermost first) from which the walk went on by tables
 * that were not those of the code at that time; nr, in most cases: there is none.
 */
size_t stacks_jit__doubtful(struct stacks *s, struct target *t, const uint64_t *ips, size_t nr,
			    uint64_t time_ns);

/* ---- runtimes.c */
/* By the files that it maps. Reading the mappings anew forgets the answer. */
enum runtime stacks_runtimes__of(struct address_space *space);
/*
 * Counts how a sample's walk ended. space: NULL if it is not known; user: there are frames that are
 * not the kernel's; jit: and some of JIT code.
 */
void stacks_runtimes__count(struct stacks *s, struct address_space *space, bool user, bool jit,
			    uint32_t end);
/* The counts by runtime, and by the names of the ends. */
cJSON *stacks_runtimes__summary(const struct stacks *s, const char *const *end_names);
/* Counts a process whose JIT code was met and has no names. */
void stacks_runtimes__nameless(struct stacks *s, const struct target *t);
/* Warns of those that were counted. */
void stacks_runtimes__say(const struct stacks *s);

/* ---- jvm.c */
/* Asks the JVM in the process when its first code was met, and takes its answer. */
void stacks_jvm__tend(struct stacks *s, struct target *t);
/* At the end: asks all from which code was met since, and waits for their answers, some seconds. */
void stacks_jvm__ask_all(struct stacks *s);
void stacks_jvm__wait(struct stacks *s);
void stacks_jvm__forget(struct stacks *s, struct stack_target *st);

/* ---- names.c */
int stacks__names(struct stacks *s);
/*
 * Between two stacks__names_so_far(), in the second half of that time: the names of one file, so
 * that little is left for the moment in which all have to be there.
 */
int stacks__name_some(struct stacks *s, uint64_t now_ns);
void stacks_names__free(struct stacks *s);
/* Reads the process's names of its JIT code (perf map), which is possible only while it lives. */
void stacks__read_jit_names(struct stacks *s, struct target *t, uint64_t now_ns);
/* Records the names of its JIT code, before the process is forgotten. */
int stacks__record_jit_names(struct stacks *s, struct target *t);

#endif
