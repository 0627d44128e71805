/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The options of a recording: which events it has, and what whoever records says of it. A part of
 * kprof.h, which includes it.
 */
#ifndef KPROF_OPTIONS_H
#define KPROF_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "kprof/machine.h"

#ifdef __cplusplus
extern "C" {
#endif

enum kprof_children {
	/* EXACT for the libraries that no other process maps, FOLLOW for the others. */
	KPROF_CHILDREN_AUTO = 0,
	KPROF_CHILDREN_NONE, /* only the given processes */
	/*
	 * From the child's first instruction, by probes in every process that maps the libraries:
	 * each pays for its hits.
	 */
	KPROF_CHILDREN_EXACT,
	/* A forked child's probes are placed when its fork is seen; before that is a gap. */
	KPROF_CHILDREN_FOLLOW,
};

enum kprof_agent_mode {
	/*
	 * In processes that use a device: loaded at launch if the runtime allows that by an
	 * environment variable, else injected.
	 */
	KPROF_AGENT_AUTO = 0,
	KPROF_AGENT_NONE, /* nothing is loaded into any process: calls only, no device activities */
	/*
	 * Only agents that wait in their processes: loaded by the runtime, or left there by a
	 * .window. No process is stopped, and nothing is loaded into any.
	 */
	KPROF_AGENT_THERE,
};

struct kprof_session_opts {
	size_t sz;                /* sizeof(struct kprof_session_opts), for compatibility */
	const char *capture_path; /* .kprof file to write; appears when complete (see stop) */
	/* Size of all ring buffers together; 0: chosen by the machine's size. */
	uint64_t ring_bytes;
	enum kprof_children children;
	const char *const *ops; /* glob patterns of operator names to record; NULL: all */
	size_t nr_ops;
	const char *const *exclude; /* glob patterns of operator names to leave out */
	size_t nr_exclude;
	const char *command; /* the command line, for the trace's metadata; may be NULL */
	bool no_multi;       /* use single uprobes even if uprobe_multi works (for tests) */
	/* Limit on the number of probes without uprobe_multi; 0: default. */
	uint32_t max_single_probes;
	uint32_t capture_uid; /* owner of the file when running as root; with capture_gid */
	uint32_t capture_gid;
	bool set_owner; /* use capture_uid/gid */
	enum kprof_agent_mode agent;
	const char *agent_library; /* NULL: beside the program, or where it was installed */
	uint64_t types; /* types to record, as bits 1 << enum kprof_activity; 0: the default ones */
	bool cuda_sync; /* record what each synchronization waited for */
	/* Samples of running threads' stacks, per second and CPU; 0: none. */
	uint32_t sample_hz;
	bool with_stack; /* record the stack at begins of operators and device calls */
	/* with_stack: at most this many stacks per second and thread, spread evenly; 0: all. */
	uint32_t stack_rate;
	/* Record only samples: place no probes and load nothing into any process. */
	bool samples_only;
	bool gil_only;        /* keep only samples of threads that hold the interpreter's lock */
	char privateuse1[32]; /* "": not used, since nothing knows a renamed PrivateUse1 backend */
	/*
	 * Signals that a program started by kprof_session_spawn() ignores: bit n - 1 is signal n.
	 * Others that the caller ignores it may ignore too, but not SIGPIPE.
	 */
	uint64_t spawn_ignores;
	/*
	 * kprof_session_start() gives up for good what the calling process does not need any more:
	 * capabilities, execution of programs, system calls that no profiler makes. The process
	 * must have no other threads then. A program that was spawned is not concerned.
	 */
	bool confine;
	/* Rely on every file system, also on FUSE: for all sessions of this process from now on. */
	bool trust_files;
	bool cuda_memory; /* count the memory of each CUDA device that is allocated and released */
	/*
	 * Instead of adding processes: all of the machine that `choice` does not leave out. With
	 * .samples_only, from when each is first met on a CPU; else those that map a known
	 * framework, from then on.
	 */
	bool all_processes;
	struct kprof_choice choice;
	/*
	 * For walking stacks: the kernel's memory for unwind tables and mappings, and this
	 * process's own, each at most about so many bytes; what was not used for longest is given
	 * up. 0: no limit but that of the kernel's maps (some 130 MiB); none.
	 */
	uint64_t kernel_bytes, own_bytes;
	bool waits;           /* record when threads are off a CPU, what for, and who wakes them */
	uint64_t min_wait_ns; /* waits: shorter ones are only counted */
	bool ask_jvm; /* of stacks: ask Java's virtual machines for names of their compiled code */
	double max_overhead; /* what recording may cost (kprof/overhead.h); 0: no bound */
	bool shapes;         /* record the inputs of operators: sizes, types, strides, values */
	/* The trace's id, and the name of the span that stands for all of it; NULL: made up. */
	const char *trace_id, *trace_name; /* 1 to 256 bytes of printable UTF-8 */
	uint32_t only;                     /* record only annotations: bits of enum kprof_only */
	bool flops;  /* .shapes, and traces say that operations are counted (with_flops) */
	bool memory; /* record what the framework allocates of the CPU's memory, and frees */
	/*
	 * .memory, and of all that is recorded keep only what is allocated and not freed, with its
	 * operator and, as .stack_rate allows, its stack; for a recording of hours, of one process.
	 * kprof_session_snapshot() writes it while the recording goes on.
	 */
	bool alive;
	uint32_t observe;     /* let the agent observe operators: bits 1 << enum kprof_scope */
	bool modules;         /* record which calls of PyTorch's modules operators ran in */
	bool flow;            /* record which operator made which autograd node: sequence numbers */
	const char *counters; /* names of what to count in each call (kprof/counters.h); NULL */
	/*
	 * Hardware metrics of each GPU that a process uses, by CUPTI's names with commas in
	 * between; NULL: none. The device is measured in one range of this length after the other.
	 */
	const char *metrics;
	uint64_t metrics_range_ns;             /* 0: 100 ms; to the agent's 100 ms */
	const struct kprof_schedule *schedule; /* record only some steps; NULL: all the time */
	/*
	 * Without .observe: of the calls that have a scope, probe only those of these, bits 1 <<
	 * enum kprof_scope; 0: all.
	 */
	uint32_t scopes;
	/*
	 * Record what a thread does only while it is inside of an annotation of this name, of a
	 * Python function (function:NAME), of a call of a module of a class (module:NAME), or of a
	 * function of native code (symbol:NAME, as it is). * and ? stand for any characters and for
	 * one; NULL: all. docs/within.md
	 */
	const char *within;
	/*
	 * kprof_session_rotate() will be called: an error of writing then does not end the
	 * recording, but only what is stored. Not with .schedule or .alive.
	 */
	bool rotates;
	/*
	 * Of processes that were added: the recording of one ends when it executes another program,
	 * as if it had ended. Whoever may record a process need not be allowed what that program
	 * does: it may be another user's (setuid).
	 */
	bool until_exec;
	/*
	 * Signals by which the owner of a recorded process, or root, asks for something, with
	 * kill(2) of that process: bits 1 << number. See kprof_session_asked().
	 */
	uint64_t asked_by;
	/*
	 * One of many recordings, of seconds each: at its end agents stay in their processes, and
	 * sleep until the next one. Another recording that begins meanwhile waits for its end.
	 */
	bool window;
	bool no_cmdlines; /* record no command lines: of processes, names only */
};

struct kprof_session;

/*
 * Which calls a framework tells its observers of: at::RecordScope of PyTorch, whose numbers these
 * are. In .observe as bits 1 << scope.
 */
enum kprof_scope {
	KPROF_SCOPE_FUNCTION = 0, /* operators, and nodes of the backward pass */
	KPROF_SCOPE_BACKWARD_FUNCTION = 1,
	KPROF_SCOPE_TORCHSCRIPT_FUNCTION = 2,
	KPROF_SCOPE_KERNEL_FUNCTION_DTYPE = 3,
	KPROF_SCOPE_CUSTOM_CLASS = 4,
	KPROF_SCOPE_BUILD_FEATURE = 5,
	KPROF_SCOPE_LITE_INTERPRETER = 6,
	KPROF_SCOPE_USER_SCOPE = 7, /* annotations, also those of C++ */
	KPROF_SCOPE_STATIC_RUNTIME_OP = 8,
	KPROF_SCOPE_STATIC_RUNTIME_MODEL = 9,
	KPROF_SCOPES = 10,
};

/*
 * With .only, nothing else is recorded: no other functions are probed, nothing is loaded into any
 * process, and no option may ask for more. 0: all there is.
 */
enum kprof_only {
	KPROF_ONLY_NVTX = 1, /* NVIDIA's */
	KPROF_ONLY_ITT = 2,  /* Intel's: those of PyTorch (torch.profiler.itt) */
	KPROF_ONLY_MARK = 4, /* of kprof/mark.h */
};

/*
 * Only some steps of a training are recorded (.schedule): the window opens with the begin of one,
 * and kprof_session_poll() returns 1 when so many have ended. A step is what kprof_result_new()
 * with KPROF_BY_STEP takes for one. What a step is shows while one goes by, but for ProfilerStep#7
 * and .annotation: one more is not recorded before. Processes have their steps each by itself: the
 * recording begins with the first step whose turn it is, of whichever process, and ends when each
 * process that has steps has had so many in it, or has ended.
 */
struct kprof_schedule {
	uint64_t steps; /* how many; 0: the recording is not by steps */
	/*
	 * So many steps and so much time go by before, at least, in which probes are in place, but
	 * nothing is recorded.
	 */
	uint64_t warm_up_steps, warm_up_ns;
	/*
	 * The annotation that is a step, with or without a number behind, or "symbol:" and the name
	 * of a function of native code, each call of which is one, as `nm -DC` shows it without
	 * parameters and template arguments; NULL: what looks like a step
	 */
	const char *annotation;
	/*
	 * It begins with a step whose number (ProfilerStep#8) is a multiple of this: with the same
	 * step in all ranks of a training. 0: with any. Steps without numbers are taken as they
	 * come, which is said.
	 */
	uint64_t multiple_of;
};

/*
 * Fills in .types from torch.profiler's sets ("cpu,cuda") and single types ("kernel,gpu_memcpy")
 * together; both NULL: the default. -EINVAL: there is no such name, or nothing here records it.
 */
int kprof_session_opts_activities(struct kprof_session_opts *opts, const char *sets,
				  const char *types);
/* The i-th type of activity by name; NULL past the end. */
const char *kprof_activity_name(size_t i);

/*
 * Fills in .observe from names, in any case: "FUNCTION,USER_SCOPE". NULL: all scopes. -EINVAL: there
 * is no such name.
 */
int kprof_session_opts_scopes(struct kprof_session_opts *opts, const char *names);
/* The same for .scopes. -EINVAL: also where probes see nothing of one, only the observer does. */
int kprof_session_opts_probed_scopes(struct kprof_session_opts *opts, const char *names);
/* The i-th scope's name; NULL past the end. */
const char *kprof_scope_name(size_t i);
/* Fills in .only from names ("nvtx,itt,mark"). -EINVAL: there is no such name. */
int kprof_session_opts_only(struct kprof_session_opts *opts, const char *names);
/*
 * Whether kprof_session_new() would take these options, as far as they alone decide it: 0, or
 * -EINVAL with the cause.
 */
int kprof_session_opts_check(const struct kprof_session_opts *opts);

/*
 * Adds a key to the head of the traces that are made of the recording. json: one value, at most 64
 * KiB. The last value of a key counts. -EINVAL: it is not valid JSON, or traces have a key of that
 * name already. To be called before stop(). What the recorded programs say of themselves
 * (KPROF_METADATA of kprof/mark.h) is elsewhere in the trace, and replaces none of it.
 */
int kprof_session_add_metadata_json(struct kprof_session *s, const char *key, const char *json);
/* The same checks without a session. */
int kprof_metadata_check(const char *key, const char *json);

#ifdef __cplusplus
}
#endif

#endif
