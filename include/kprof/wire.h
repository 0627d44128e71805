/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The records that cross from the kernel (bpf/) to user space (user/capture) through the ring
 * buffers, and the tables that user space gives to the kernel's programs.
 *
 * Fixed numbers, explicit padding, no pointers: both sides are compiled from this header, and the
 * static assertions below pin every size. A kind or a field is never renumbered, only added.
 */
#ifndef KPROF_WIRE_H
#define KPROF_WIRE_H

#ifdef __bpf__
#include <linux/types.h>
typedef __u8 kprof_u8;
typedef __u16 kprof_u16;
typedef __s16 kprof_s16;
typedef __u32 kprof_u32;
typedef __s32 kprof_s32;
typedef __u64 kprof_u64;
#else
#include <stdint.h>
typedef uint8_t kprof_u8;
typedef uint16_t kprof_u16;
typedef int16_t kprof_s16;
typedef uint32_t kprof_u32;
typedef int32_t kprof_s32;
typedef uint64_t kprof_u64;
#endif

#include "kprof/inputs.h"

/*
 * Bytes kept of a text (such as a name) that is read in the target, with its final NUL. A longer
 * text is cut.
 */
#define KPROF_WIRE_TEXT_SHORT 64
#define KPROF_WIRE_TEXT_LONG 512
#define KPROF_WIRE_TEXT_ARGS 4 /* arguments that a record with a text can have beside it */
#define KPROF_WIRE_COMM 16     /* TASK_COMM_LEN */

enum kprof_wire_kind {
	KPROF_WIRE_BEGIN = 1, /* a probed function was entered: struct kprof_wire_begin */
	/* a probed function was entered, with a text: struct kprof_wire_begin_text */
	KPROF_WIRE_BEGIN_TEXT = 2,
	KPROF_WIRE_SITE = 3, /* a return site was reached: struct kprof_wire_hdr */
	KPROF_WIRE_FORK = 4, /* a process or thread was created: struct kprof_wire_task */
	KPROF_WIRE_EXEC = 5, /* struct kprof_wire_exec */
	KPROF_WIRE_EXIT = 6, /* a thread ended: struct kprof_wire_task */
	/* the dynamic linker maps or unmaps libraries, or has done so: struct kprof_wire_hdr */
	KPROF_WIRE_MAPS = 7,
	/* a probed function was entered, with arguments: struct kprof_wire_begin_args */
	KPROF_WIRE_BEGIN_ARGS = 8,
	/* a return site was reached, with the call's result: struct kprof_wire_site_result */
	KPROF_WIRE_SITE_RESULT = 9,
	KPROF_WIRE_BATCH = 10, /* an agent handed records over: struct kprof_wire_batch */
	KPROF_WIRE_MARK = 11,  /* an application's annotation: struct kprof_wire_mark */
	/* the stack that a CPU was executing: struct kprof_wire_stack */
	KPROF_WIRE_SAMPLE = 12,
	KPROF_WIRE_STACK = 13, /* the stack at a function's entry: struct kprof_wire_stack */
	KPROF_WIRE_GONE = 14,  /* a call without return site has returned: struct kprof_wire_gone */
	KPROF_WIRE_COPY = 15,  /* the stack inside such calls: struct kprof_wire_copy */
	KPROF_WIRE_WAIT = 16,  /* a thread has waited: struct kprof_wire_wait (kprof/wait.h) */
	/* of all processes, one that user space may not know: struct kprof_wire_seen */
	KPROF_WIRE_SEEN = 17,
	/* an operator was entered, with its inputs: struct kprof_wire_begin_inputs */
	KPROF_WIRE_BEGIN_INPUTS = 18,
	/* a thread is in other calls of modules: struct kprof_wire_modules (kprof/modules.h) */
	KPROF_WIRE_MODULES = 19,
};

/* First in every record. */
struct kprof_wire_hdr {
	kprof_u64 time_ns;  /* CLOCK_MONOTONIC */
	kprof_u64 pid_tgid; /* process id << 32 | thread id, as the host numbers them */
	kprof_u64 sp;       /* the thread's stack pointer at the probe */
	kprof_u32 id;       /* probe index (begin), site index (site); exit: 1 when the whole
			       * process ended; exec: the thread's id before it; maps:
			       * KPROF_WIRE_MAPS_PLACED, or 0 */
	kprof_u16 kind;     /* enum kprof_wire_kind */
	kprof_u16 size;     /* of the whole record, bytes */
};

/* Every file whose code the process maps has its probes in every process, or needs none. */
#define KPROF_WIRE_MAPS_PLACED 1

/*
 * A file that has its probes in every process, or needs none, as the kernel knows it. The name is
 * there because a new file may have the number of one that was deleted.
 */
#define KPROF_WIRE_FILE_NAME 48

struct kprof_wire_file {
	kprof_u64 inode;
	kprof_u32 dev; /* major << 20 | minor */
	kprof_u32 pad;
	char name[KPROF_WIRE_FILE_NAME]; /* the last component, cut if it is longer; rest: 0 */
};

/* Frameworks that are linked into a file are searched for only where something calls for it. */
struct kprof_wire_placed {
	kprof_u64 searched; /* set of the frameworks that were searched for in the file */
	/* set of those that may be linked into any file of a process that maps this one */
	kprof_u64 calls_for;
};

/* A span begins. h.sp points at the return address, since the probe is on the function's entry. */
struct kprof_wire_begin {
	struct kprof_wire_hdr h;
	kprof_u64 ret_addr; /* where the call that ends this span returns to */
	/*
	 * ret_addr was read at h.sp + this; > 0 where the direct caller does nothing but return, so
	 * that the address is that of a caller further out
	 */
	kprof_u32 ret_offset_bytes;
	kprof_u32 flags; /* KPROF_WIRE_F_* */
	/*
	 * With KPROF_WIRE_F_SEQUENCE or _MAYBE: the number that an autograd node gets which the
	 * call makes (struct kprof_wire_sequence).
	 */
	kprof_u64 sequence;
	/*
	 * The number that the framework has given the thread; with KPROF_WIRE_F_NODE: the one that
	 * made the node. 0: none yet.
	 */
	kprof_u32 thread;
	kprof_u32 pad;
};

#define KPROF_WIRE_F_TEXT_FAULT 1u /* the text could not be read (page not resident) */
#define KPROF_WIRE_F_TEXT_CUT 2u   /* the text was longer than fits */
#define KPROF_WIRE_F_NO_RET 4u     /* the return address could not be read */
#define KPROF_WIRE_F_NO_SITE 16u   /* no return site was placed where it returns */
#define KPROF_WIRE_F_NO_RESULT 8u  /* a caller that was skipped returns a result of its own */
#define KPROF_WIRE_F_SEQUENCE 32u  /* the call has this sequence number */
#define KPROF_WIRE_F_MAYBE 64u     /* it has this sequence number or none */
#define KPROF_WIRE_F_NODE 128u     /* it runs the node that has this sequence number … */
#define KPROF_WIRE_F_AROUND 256u   /* … if the thread's next event does so */

struct kprof_wire_begin_text {
	struct kprof_wire_begin b;
	/* what the value recipe of the catalog's row yields; 0: none or unreadable */
	kprof_u64 value;
	kprof_u64 text_addr;  /* address of the text in the target; 0: none */
	kprof_u32 text_bytes; /* used in text[], with its final NUL; 0: none */
	/* 0 or KPROF_WIRE_TEXT_ARGS: so many arguments end the record, 8 bytes each */
	kprof_u32 nr_args;
	char text[];
};

/* A span begins, with the call's arguments in the order of the probe's recipes. */
#define KPROF_WIRE_MAX_ARGS 10
struct kprof_wire_begin_args {
	struct kprof_wire_begin b;
	kprof_u32 nr;
	kprof_u32 faults; /* bit i: args[i] could not be read and is 0 */
	kprof_u64 args[KPROF_WIRE_MAX_ARGS];
};

/* A span begins, with what its arguments are (kprof/inputs.h). */
#define KPROF_WIRE_INPUTS_WORDS 1024 /* at most, a power of two; most calls have some dozens */
struct kprof_wire_begin_inputs {
	struct kprof_wire_begin b;
	kprof_u64 value;     /* as in struct kprof_wire_begin_text */
	kprof_u64 text_addr; /* the same; the text itself is not read */
	kprof_u32 nr;        /* of words[] */
	kprof_u32 pad;
	kprof_u64 words[];
};

/* A return site was reached, and the call's result is recorded: its low 32 bits are an int. */
struct kprof_wire_site_result {
	struct kprof_wire_hdr h;
	kprof_u64 result;
};

/*
 * A call without return site has returned, and so have the calls inside it. This was found at the
 * event that follows, whose stack pointer h.sp is. h.id is 0.
 */
struct kprof_wire_gone {
	struct kprof_wire_hdr h;
	kprof_u64 slot; /* where the return address was: h.sp + ret_offset_bytes of the begin */
};

/*
 * The stack from h.sp on, as it is at the begin that follows, so that a walk of it can tell which
 * of the calls without return site go on. The first word is the begin's return address. h.id is 0.
 */
#define KPROF_WIRE_COPY_BYTES 8192
struct kprof_wire_copy {
	struct kprof_wire_hdr h;
	kprof_u64 bp, bx; /* the registers that a walk needs besides */
	kprof_u32 bytes;  /* of the stack, in data[] */
	kprof_u32 pad;
	kprof_u8 data[];
};

/*
 * Records of an agent (kprof/agent.h), copied from its buffer at once. h.id is the number of the
 * session.
 */
#define KPROF_WIRE_BATCH_BYTES 4032
struct kprof_wire_batch {
	struct kprof_wire_hdr h;
	kprof_u32 bytes; /* bytes used in data[]; a multiple of 8 */
	kprof_u32 pad;
	kprof_u8 data[KPROF_WIRE_BATCH_BYTES];
};

/*
 * A macro of kprof/mark.h ran: its record, with copies of its texts, each of which takes `room`
 * bytes of text[]. h.id is 0.
 */
#define KPROF_WIRE_MARK_TEXTS 4
#define KPROF_WIRE_MARK_VALUES 6
struct kprof_wire_mark {
	struct kprof_wire_hdr h;
	kprof_u32 version;
	/* enum kprof_mark_kind, from the macro's record; 0: the record could not be read */
	kprof_u32 mark;
	kprof_u64 value[KPROF_WIRE_MARK_VALUES];
	kprof_u64 text_addr[KPROF_WIRE_MARK_TEXTS];
	kprof_u32 text_bytes[KPROF_WIRE_MARK_TEXTS]; /* with the final NUL; 0: unreadable or none */
	kprof_u32 room;
	kprof_u32 pad;
	char text[];
};

/*
 * A stack. h.sp and ip are the thread's registers in user space. h.id is the CPU of a SAMPLE and
 * the probe of a STACK. Words of 64 bits follow in three groups, each innermost frame first:
 * nr_kernel addresses, nr_user addresses (encoded as in struct kprof_unwind_walk), nr_python frames
 * (struct kprof_python_frame).
 */
struct kprof_wire_stack {
	struct kprof_wire_hdr h;
	/*
	 * SAMPLE: the CPU time that the sample stands for, in ns; STACK: the number of entries; of
	 * a wait: whose stack it is, as process id << 32 | thread id
	 */
	kprof_u64 weight_ns;
	/*
	 * SAMPLE: how long the BPF program took for the previous sample on this CPU; 0: not known
	 */
	kprof_u32 cost_ns;
	kprof_u16 flags; /* KPROF_WIRE_STACK_* */
	kprof_u16 end;   /* enum kprof_unwind_end */
	kprof_u16 nr_kernel, nr_user, nr_python;
	kprof_u16 python_flags; /* enum kprof_python_walk_flags */
};

#define KPROF_WIRE_STACK_IN_KERNEL 1u /* the sample interrupted kernel code */
/*
 * The kernel did not know the code yet: in the place of the nr_user addresses are the instruction
 * pointer, the 16 registers by DWARF's numbers, and a copy of the stack from the stack pointer on.
 */
#define KPROF_WIRE_STACK_COPIED 2u
#define KPROF_WIRE_STACK_REGISTERS 17 /* words before the copy */
/* STACK: not of an entry, but with which the thread begins to wait, or of who wakes it */
#define KPROF_WIRE_STACK_WAIT 4u
#define KPROF_WIRE_STACK_WAKER 8u

#define KPROF_WIRE_MAX_KERNEL_FRAMES 64
#define KPROF_WIRE_STACK_WORDS 2048 /* words at most, a power of two; most stacks use few */

struct kprof_wire_task {
	/* pid_tgid: the thread that forked, executed a program, or ended */
	struct kprof_wire_hdr h;
	union {
		kprof_u32 child_pid;   /* fork */
		kprof_u32 exit_status; /* exit of a process: how it ended, as from wait(2) */
	};
	kprof_u32 child_tid;    /* fork only */
	kprof_u32 child_ns_pid; /* fork only: child_pid in the child's own PID namespace */
	/* the number of the address space that the process, of a fork the child, has from now on */
	kprof_u32 space;
	/* name of the thread; exec: its new one, exit: its last one; fork: the parent's name */
	char comm[KPROF_WIRE_COMM];
};

/* An exec, with the beginning of the program's arguments, each with its final NUL. */
#define KPROF_WIRE_EXEC_ARGS 248
struct kprof_wire_exec {
	struct kprof_wire_task t;
	kprof_u32 args_bytes; /* used in args[]; 0: they could not be read */
	kprof_u32 pad;
	char args[KPROF_WIRE_EXEC_ARGS];
};

/*
 * Where all processes are recorded: who a process is that is no target (yet). Comes before its
 * sample, or the hit of a probe, in the same ring. h.id: these flags.
 */
#define KPROF_WIRE_SEEN_KERNEL 1 /* one of the kernel's own threads */
/* The files that it maps have their probes in every process: see KPROF_WIRE_MAPS_PLACED. */
#define KPROF_WIRE_SEEN_PLACED 2
struct kprof_wire_seen {
	struct kprof_wire_hdr h;
	kprof_u64 start_ns;      /* when it began: CLOCK_MONOTONIC */
	kprof_u64 start_boot_ns; /* the same: CLOCK_BOOTTIME */
	kprof_u32 ppid, ns_pid;
	kprof_u32 uid;              /* effective user id */
	kprof_u32 args_bytes;       /* as in struct kprof_wire_exec */
	char comm[KPROF_WIRE_COMM]; /* the process's: that of its first thread */
	char args[KPROF_WIRE_EXEC_ARGS];
};

#define KPROF_WIRE_MAX_RENAMED 4096 /* processes that took another name since user space looked */
/* Processes that began and ended during a recording of all, by name. */
#define KPROF_WIRE_MAX_ENDED 4096 /* names; further ones are counted under the empty name */
struct kprof_wire_name {
	char comm[KPROF_WIRE_COMM];
};
struct kprof_wire_ended {
	kprof_u64 processes;
	kprof_u64 summed; /* of how many of them the CPU time is known */
	kprof_u64 cpu_ns; /* the CPU time of these */
};

/*
 * Address spaces have numbers, by which the kernel's programs know what was learnt of one. A
 * process has its own process id for a number at first, an executed program a number from here on,
 * and a forked child its parent's: its memory began as a copy.
 */
#define KPROF_WIRE_LEFT_OUT 0             /* in place of one: the process is not to be recorded */
#define KPROF_WIRE_FIRST_SPACE (1u << 22) /* more than any process id: PID_MAX_LIMIT */

/*
 * How to find a value or a text from the registers at the entry of the probed function:
 *   v = register; for each i < nr_off: v = *(u64 *)(v + off[i]); then v += add.
 * As a text: v is the address of a NUL-terminated string.
 */
#define KPROF_RECIPE_MAX 5
enum kprof_reg {
	KPROF_REG_NONE = 0, /* no recipe */
	KPROF_REG_ARG1 = 1, /* integer argument registers of the ABI, in order: rdi … */
	KPROF_REG_ARG2 = 2,
	KPROF_REG_ARG3 = 3,
	KPROF_REG_ARG4 = 4,
	KPROF_REG_ARG5 = 5,
	KPROF_REG_ARG6 = 6,
	KPROF_REG_SP = 7, /* the stack pointer; *(sp + 8) is the first stack argument */
};

struct kprof_recipe {
	kprof_u8 reg;    /* enum kprof_reg */
	kprof_u8 nr_off; /* 0 … KPROF_RECIPE_MAX */
	kprof_u16 pad;
	kprof_s32 add;
	kprof_s32 off[KPROF_RECIPE_MAX];
	kprof_u32 pad2;
};

/* One argument: the value of (register + off), or the 8 bytes at that address. */
struct kprof_arg {
	kprof_u8 reg; /* enum kprof_reg; NONE: it is not read */
	/*
	 * 1: *(u64 *)(register + off); a stack argument: SP, 1, 8 × its number. 2, 3: so many
	 * pointers are followed, the last one to what lies last_off behind it.
	 */
	kprof_u8 deref;
	kprof_u16 last_off;
	kprof_s32 off;
};
#define KPROF_ARG_MAX_DEREF 3

/* What the BPF programs know of one probe. The index is in the attach cookie. */
struct kprof_wire_probe {
	struct kprof_recipe value;
	struct kprof_recipe text;
	struct kprof_arg args[KPROF_WIRE_MAX_ARGS];
	kprof_u32 source; /* index into the counters (KPROF_WIRE_SOURCE_*) */
	/* compared with (value & 0xfff) where text_conditional is 1 */
	kprof_u16 text_if_value_low12;
	/* 1: the text is read only where text_if_value_low12 is equal */
	kprof_u16 text_conditional;
	kprof_u64 value_is, value_mask; /* other hits are no ranges (kprof/within.h) */
};

/*
 * The attach cookie: what the program needs without a look-up. Bits 0 to 23 are the probe's index,
 * bits 24 to 31 sp_bias_bytes / 8, bits 32 to 39 the source, bit 45 whether a hit begins a span,
 * bit 46 whether the probe was given up, and is there for a burst only, bit 47 whether calls of
 * modules are looked for, bits 52 to 56 what it says of ranges (kprof/within.h). Of a site where
 * the call's result is read, bits 40 to 44 and 48 to 63 say where it is: in a register, by the
 * processor's number, or in the 4 bytes at its content + a displacement.
 */
#define KPROF_COOKIE(source, bias_bytes, index) \
	((kprof_u64)(source) << 32 | (kprof_u64)((bias_bytes) / 8) << 24 | (kprof_u64)(index))
#define KPROF_COOKIE_RESULT(reg, in_memory, disp_bytes)                 \
	((kprof_u64)(reg) << 40 | (kprof_u64)((in_memory) != 0) << 44 | \
	 (kprof_u64)(kprof_u16)(disp_bytes) << 48)
#define KPROF_COOKIE_INDEX(c) ((kprof_u32)((c)&0xffffff))
#define KPROF_COOKIE_BIAS(c) ((kprof_u32)((c) >> 24 & 0xff) * 8)
#define KPROF_COOKIE_SOURCE(c) ((kprof_u32)((c) >> 32 & 0xff))
#define KPROF_COOKIE_RESULT_REG(c) ((kprof_u32)((c) >> 40 & 0xf))
#define KPROF_COOKIE_RESULT_IN_MEMORY(c) ((c) >> 44 & 1)
#define KPROF_COOKIE_SPAN (1ull << 45)
#define KPROF_COOKIE_BURST (1ull << 46)
#define KPROF_COOKIE_MODULES (1ull << 47)
#define KPROF_COOKIE_RESULT_DISP(c) ((kprof_s16)((c) >> 48))

/*
 * Of a probe on a function, bits 40 to 42 and 48 to 50 say how its calls' sequence number is found:
 * enum kprof_sequence_rule, and the argument (enum kprof_reg) that the rule is about.
 */
#define KPROF_COOKIE_SEQUENCE(rule, arg) ((kprof_u64)(rule) << 48 | (kprof_u64)(arg) << 40)
#define KPROF_COOKIE_SEQUENCE_RULE(c) ((kprof_u32)((c) >> 48 & 7))
#define KPROF_COOKIE_SEQUENCE_ARG(c) ((kprof_u8)((c) >> 40 & 7))

enum kprof_sequence_rule {
	KPROF_SEQUENCE_NONE = 0,
	/* that of the next node, if gradients are recorded and the argument, a Tensor, has some */
	KPROF_SEQUENCE_TENSOR = 1,
	/* the same of the first Tensor of a row; the next argument has how many there are */
	KPROF_SEQUENCE_TENSORS = 2,
	KPROF_SEQUENCE_LIST_REF = 3, /* the same of a c10::IListRef<Tensor> */
	KPROF_SEQUENCE_NEXT = 4,     /* that of the next node, in any case */
	KPROF_SEQUENCE_MAYBE =
		5,               /* that of the next node, or none: it is not known which tensors */
	KPROF_SEQUENCE_NODE = 6, /* the argument is a node, which has one */
	/* the same of a function around that which runs the node, if it does */
	KPROF_SEQUENCE_AROUND = 7,
};

/*
 * Autograd numbers its nodes, each thread for itself, as operators are called: the node of an
 * operator gets the number that is next when the operator is called. Where a process keeps that,
 * and what decides whether an operator reaches autograd (KPROF_SEQUENCE_TENSOR: a set of dispatch
 * keys, which are bits, of the tensor and of the thread), by the number of its address space.
 *
 * Variables of threads are in blocks, one for each module, whose addresses are in the thread's
 * vector (the psABI's dynamic thread vector, in glibc's form).
 */
struct kprof_wire_sequence {
	kprof_u64 numbers_module, state_module; /* which blocks */
	kprof_u64 next_off, thread_off; /* in the first block: the next number, the thread's own */
	/* in the second: a byte whose bit says whether gradients are recorded; keys that are */
	kprof_u64 grad_off, included_off, excluded_off; /* added, and removed */
	kprof_u64 included_flipped, excluded_flipped;   /* bits that are stored inverted */
	kprof_u64 autograd;                             /* keys of autograd … */
	kprof_u64 above; /* … and those that come before it, and may handle the call instead */
	kprof_u32 tensor_keys_off;                /* of the tensor's keys in a TensorImpl */
	kprof_u32 node_next_off, node_thread_off; /* of a node's number, of its thread's */
	kprof_u32 grad_bit;
};
#define KPROF_WIRE_MAX_SEQUENCES 4096 /* address spaces; further ones have no numbers */

/* Key of the map of return addresses at which the caller does nothing but return. */
struct kprof_wire_follow_key {
	kprof_u64 ret_addr;
	kprof_u32 space; /* number of the address space */
	kprof_u32 pad;
};

/* Hits of probes in processes that are not recorded, per CPU. */
struct kprof_wire_foreign {
	kprof_u64 hits;
	kprof_u32 pid; /* of the latest such process */
	kprof_u32 pad;
};

/* Counters, per source and CPU. fired = captured + dropped; user space counts what is captured. */
struct kprof_wire_count {
	kprof_u64 fired;
	kprof_u64 dropped; /* the ring had no room */
};

/* Signals by which somebody asks: how many; the last one's sender, number and process. */
struct kprof_wire_asked {
	kprof_u64 times, last; /* one word: no other CPU changes a part of it */
};
#define KPROF_WIRE_ASKED_PID_BITS 22 /* PID_MAX_LIMIT, include/linux/threads.h */
#define KPROF_WIRE_ASKED_SIGNAL_BITS 6
#define KPROF_WIRE_ASKED_UID_SHIFT 32

/* The kernel's programs, as their costs are told apart. */
enum kprof_wire_program {
	KPROF_PROGRAM_BEGIN,
	KPROF_PROGRAM_BEGIN_TEXT,
	KPROF_PROGRAM_BEGIN_ARGS,
	KPROF_PROGRAM_SITE,
	KPROF_PROGRAM_SITE_RESULT,
	KPROF_PROGRAM_MAPS,
	KPROF_PROGRAM_BATCH,
	KPROF_PROGRAM_MARK,
	KPROF_PROGRAM_ENTRY_STACK, /* at the same trap as one of BEGIN … BEGIN_ARGS */
	KPROF_PROGRAM_SAMPLE,
	KPROF_PROGRAM_TASK,   /* all of those at forks, execs, exits and signals */
	KPROF_PROGRAM_SWITCH, /* at switches between threads */
	KPROF_PROGRAM_WAKE,
	KPROF_PROGRAM_NOTHING, /* does nothing: for calibration */
	KPROF_PROGRAM_BEGIN_INPUTS,
	KPROF_WIRE_NR_PROGRAMS,
};

/* Per program and CPU. */
struct kprof_wire_cost {
	kprof_u64 runs;
	kprof_u64 measured; /* of how many of them the time was measured … */
	kprof_u64 measured_ns;
};

/*
 * Counters. Where a recording has some, words of 64 bits follow each record of a BEGIN kind, of a
 * SITE kind and of a MARK: struct kprof_wire_counters, which the record's size does not count.
 */
#define KPROF_WIRE_MAX_COUNTERS 8

enum kprof_wire_counter { /* where a counter is read */
			  KPROF_COUNTER_NONE = 0,
			  /* numbers that the kernel keeps of each thread */
			  KPROF_COUNTER_MINOR_FAULTS = 1,
			  KPROF_COUNTER_MAJOR_FAULTS = 2,
			  KPROF_COUNTER_FAULTS = 3, /* both */
			  KPROF_COUNTER_SWITCHES = 4,
			  KPROF_COUNTER_MIGRATIONS = 5,
			  /*
	 * What a CPU counts, of which the thread's part is made at switches between threads: a
	 * clock, a perf event.
	 */
			  KPROF_COUNTER_CLOCK = 6,
			  KPROF_COUNTER_EVENT = 7,
};
#define KPROF_COUNTER_OF_CPU(source) ((source) >= KPROF_COUNTER_CLOCK)

struct kprof_wire_counters {
	/*
	 * Of counters of CPUs, the difference of two values is known if both have this number in
	 * common, and it is not 0: in between, each switch of the thread was seen.
	 */
	kprof_u64 epoch;
	kprof_u64 values[]; /* as many as there are counters, in their order; they only grow */
};

/* What the kernel's programs leave out, to cost less. */
#define KPROF_WIRE_SHED_ENTRY_STACKS 1u
#define KPROF_WIRE_SHED_WAIT_STACKS 2u
/* hits of probes on functions and return sites, for a moment, while some of them are removed */
#define KPROF_WIRE_SHED_HITS 8u
#define KPROF_WIRE_SHED_BURSTS 16u  /* … of those that are there for a burst only */
#define KPROF_WIRE_SHED_CHILDREN 4u /* processes that are forked from now on */

#define KPROF_WIRE_STILL_RUNS 0xffffffff /* exit_status: it is only recorded no more */
#define KPROF_WIRE_EXIT_PROCESS 1        /* h.id: the whole process ended */
#define KPROF_WIRE_FORK_SHARES_MEMORY 1  /* h.id: made by vfork(), or a thread */

#define KPROF_WIRE_MAX_SOURCES 32
#define KPROF_WIRE_MAX_TIDS 64 /* threads that can be chosen */
#define KPROF_WIRE_MAX_PROBES 16384
#define KPROF_WIRE_MAX_RINGS 64
#define KPROF_WIRE_MAX_FOLLOW 4096 /* return addresses at which the caller only returns */
#define KPROF_WIRE_FOLLOW_DEPTH 4  /* how many such callers are followed in a row */
/*
 * A bit in the value of that map, beside the offset: such a caller writes the result register
 * before it returns.
 */
#define KPROF_WIRE_FOLLOW_NO_RESULT 0x80000000u
/* Bits of a bitmap over the hashes of those addresses, which spares most events the look-up. */
#define KPROF_WIRE_FOLLOW_BITS 4096
#define KPROF_WIRE_FOLLOW_BIT(ra) ((kprof_u32)((ra) ^ (ra) >> 12) & (KPROF_WIRE_FOLLOW_BITS - 1))

/*
 * A filter of (address space, return address) where kprof need not look whether a call has
 * returned: its return site is placed, or it is no span. Two bits of one word stand for each.
 */
#define KPROF_WIRE_SITED_WORDS 16384
#define KPROF_WIRE_SITED_HASH(space, ra) (((ra) ^ (kprof_u64)(space) << 32) * 0x9e3779b97f4a7c15ull)
#define KPROF_WIRE_SITED_WORD(hash) ((kprof_u32)((hash) >> 50))
#define KPROF_WIRE_SITED_MASK(hash) (1ull << ((hash) >> 44 & 63) | 1ull << ((hash) >> 38 & 63))

#define KPROF_WIRE_SOURCE_SITES 0 /* return sites */
#define KPROF_WIRE_SOURCE_TASKS 1 /* records of kind FORK, EXEC, EXIT, MAPS and SEEN */
#define KPROF_WIRE_SOURCE_FIRST 2 /* the catalog's sources have the numbers from here on */

_Static_assert(sizeof(struct kprof_wire_hdr) == 32, "wire: hdr");
_Static_assert(sizeof(struct kprof_wire_begin) == 64, "wire: begin");
_Static_assert(sizeof(struct kprof_wire_begin_text) == 88, "wire: begin_text");
_Static_assert(sizeof(struct kprof_wire_task) == 64, "wire: task");
_Static_assert(sizeof(struct kprof_wire_exec) == 320, "wire: exec");
_Static_assert(sizeof(struct kprof_wire_seen) == 328, "wire: seen");
_Static_assert(sizeof(struct kprof_recipe) == 32, "wire: recipe");
_Static_assert(sizeof(struct kprof_arg) == 8, "wire: arg");
_Static_assert(sizeof(struct kprof_wire_probe) == 168, "wire: probe");
_Static_assert(sizeof(struct kprof_wire_begin_args) == 152, "wire: begin_args");
_Static_assert(sizeof(struct kprof_wire_begin_inputs) == 88, "wire: begin_inputs");
_Static_assert(sizeof(struct kprof_wire_sequence) == 104, "wire: sequence");
_Static_assert(sizeof(struct kprof_wire_site_result) == 40, "wire: site_result");
_Static_assert(sizeof(struct kprof_wire_gone) == 40, "wire: gone");
_Static_assert(sizeof(struct kprof_wire_copy) == 56, "wire: copy");
_Static_assert(sizeof(struct kprof_wire_batch) == 4072, "wire: batch");
_Static_assert(sizeof(struct kprof_wire_mark) == 144, "wire: mark");
_Static_assert(sizeof(struct kprof_wire_stack) == 56, "wire: stack");
_Static_assert(sizeof(struct kprof_wire_follow_key) == 16, "wire: follow key");
_Static_assert(sizeof(struct kprof_wire_count) == 16, "wire: count");
_Static_assert(sizeof(struct kprof_wire_foreign) == 16, "wire: foreign");
_Static_assert(sizeof(struct kprof_wire_cost) == 24, "wire: cost");
_Static_assert(sizeof(struct kprof_wire_counters) == 8, "wire: counters");

#endif /* KPROF_WIRE_H */
