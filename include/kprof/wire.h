/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The records that cross from the kernel (bpf/) to user space (user/capture) through the ring
 * buffers, and the tables that go the other way.
 *
 * Fixed numbers, explicit padding, no pointers: both sides are compiled from this one header and
 * the static assertions below pin every size. A kind or a field is never renumbered, only added.
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

/* Bytes of a text read in the target (a name), its final NUL included; longer ones are cut. */
#define KPROF_WIRE_TEXT_SHORT 64
#define KPROF_WIRE_TEXT_LONG 512
#define KPROF_WIRE_COMM 16 /* TASK_COMM_LEN */

enum kprof_wire_kind {
	KPROF_WIRE_BEGIN = 1,       /* a probed function was entered: struct kprof_wire_begin */
	KPROF_WIRE_BEGIN_TEXT = 2,  /* the same, with a text: struct kprof_wire_begin_text */
	KPROF_WIRE_SITE = 3,        /* a return site was reached: struct kprof_wire_hdr */
	KPROF_WIRE_FORK = 4,        /* new process or thread: struct kprof_wire_task */
	KPROF_WIRE_EXEC = 5,        /* struct kprof_wire_task */
	KPROF_WIRE_EXIT = 6,        /* a thread ended: struct kprof_wire_task */
	KPROF_WIRE_MAPS = 7,        /* the dynamic linker mapped or unmapped libraries: hdr */
	KPROF_WIRE_BEGIN_ARGS = 8,  /* a function was entered: struct kprof_wire_begin_args */
	KPROF_WIRE_SITE_RESULT = 9, /* a return site was reached: struct kprof_wire_site_result */
	KPROF_WIRE_BATCH = 10,      /* records of the agent: struct kprof_wire_batch */
	KPROF_WIRE_MARK = 11,       /* an application's annotation: struct kprof_wire_mark */
	KPROF_WIRE_SAMPLE = 12,     /* what a CPU does: struct kprof_wire_stack */
	KPROF_WIRE_STACK = 13,      /* the stack at a function's entry: struct kprof_wire_stack */
};

/* First in every record. */
struct kprof_wire_hdr {
	kprof_u64 time_ns;  /* CLOCK_MONOTONIC */
	kprof_u64 pid_tgid; /* process id << 32 | thread id, as the host numbers them */
	kprof_u64 sp;       /* the thread's stack pointer at the probe */
	kprof_u32 id;       /* probe index (begin), site index (site); exit: 1 when the whole
			       * process ended; exec: the thread's id before it */
	kprof_u16 kind;     /* enum kprof_wire_kind */
	kprof_u16 size;     /* of the whole record, bytes */
};

/* A span begins. The stack pointer points at the return address (entry probe). */
struct kprof_wire_begin {
	struct kprof_wire_hdr h;
	kprof_u64 ret_addr;         /* where the call that ends this span returns to */
	kprof_u32 ret_offset_bytes; /* that address lies at h.sp + this: >0 when the direct
				       * caller does nothing but return and was followed */
	kprof_u32 flags;            /* KPROF_WIRE_F_* */
};

#define KPROF_WIRE_F_TEXT_FAULT 1u /* the text could not be read (page not resident) */
#define KPROF_WIRE_F_TEXT_CUT 2u   /* the text was longer than fits */
#define KPROF_WIRE_F_NO_RET 4u     /* the return address could not be read */
#define KPROF_WIRE_F_NO_RESULT 8u  /* a caller that was passed by returns a result of its own */

struct kprof_wire_begin_text {
	struct kprof_wire_begin b;
	kprof_u64 value;      /* what the row's value recipe yields; 0: none or unreadable */
	kprof_u64 text_addr;  /* where the text lies in the target; 0: none */
	kprof_u32 text_bytes; /* of text[], its final NUL included; 0: none */
	kprof_u32 pad;
	char text[];
};

/* The same with the call's arguments, in the order of the probe's recipes. */
#define KPROF_WIRE_MAX_ARGS 8
struct kprof_wire_begin_args {
	struct kprof_wire_begin b;
	kprof_u32 nr;
	kprof_u32 faults; /* bit i: args[i] could not be read and is 0 */
	kprof_u64 args[KPROF_WIRE_MAX_ARGS];
};

/* A return site of a call whose result is wanted, with the integer result register. */
struct kprof_wire_site_result {
	struct kprof_wire_hdr h;
	kprof_u64 result;
};

/*
 * Records of the agent (kprof/agent.h), copied from its buffer in one go. h.id: number of the
 * session.
 */
#define KPROF_WIRE_BATCH_BYTES 4032
struct kprof_wire_batch {
	struct kprof_wire_hdr h;
	kprof_u32 bytes; /* used of data[]; a multiple of 8 */
	kprof_u32 pad;
	kprof_u8 data[KPROF_WIRE_BATCH_BYTES];
};

/*
 * A macro of kprof/mark.h ran: its record, with copies of its texts, each in `room` bytes of
 * text[]. h.id: 0.
 */
#define KPROF_WIRE_MARK_TEXTS 4
#define KPROF_WIRE_MARK_VALUES 6
struct kprof_wire_mark {
	struct kprof_wire_hdr h;
	kprof_u32 version;
	kprof_u32 mark; /* as in the record: enum kprof_mark_kind; 0: it could not be read */
	kprof_u64 value[KPROF_WIRE_MARK_VALUES];
	kprof_u64 text_addr[KPROF_WIRE_MARK_TEXTS];
	kprof_u32 text_bytes[KPROF_WIRE_MARK_TEXTS]; /* final NUL included; 0: unreadable or none */
	kprof_u32 room;
	kprof_u32 pad;
	char text[];
};

/*
 * A stack. h.sp and ip: the thread's in user space. h.id of a SAMPLE: the CPU; of a STACK: the
 * probe. Words of 64 bits follow, each group innermost first: nr_kernel addresses, nr_user
 * addresses (as struct kprof_unwind_walk has them), nr_python frames (struct kprof_python_frame).
 */
struct kprof_wire_stack {
	struct kprof_wire_hdr h;
	kprof_u64 weight_ns; /* the CPU time, or the events, that it stands for */
	/* SAMPLE: what the one before it on this CPU took in BPF; 0: not known */
	kprof_u32 cost_ns;
	kprof_u16 flags; /* KPROF_WIRE_STACK_* */
	kprof_u16 end;   /* enum kprof_unwind_end */
	kprof_u16 nr_kernel, nr_user, nr_python;
	kprof_u16 python_flags; /* enum kprof_python_walk_flags */
};

#define KPROF_WIRE_STACK_IN_KERNEL 1u /* the sample struck kernel code */

#define KPROF_WIRE_MAX_KERNEL_FRAMES 64
#define KPROF_WIRE_STACK_WORDS 2048 /* a power of two; most of them are never used */

struct kprof_wire_task {
	struct kprof_wire_hdr h; /* pid_tgid: who forked, execed, exited */
	kprof_u32 child_pid;     /* fork only */
	kprof_u32 child_tid;     /* fork only */
	char comm
		[KPROF_WIRE_COMM]; /* the thread's name: new (exec), last (exit), parent's (fork) */
};

/*
 * How to find a value or a text, from the registers at the probed function's entry.
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

/* One argument: the register's value + off, or what lies there. */
struct kprof_arg {
	kprof_u8 reg;   /* enum kprof_reg; NONE: no further arguments */
	kprof_u8 deref; /* 1: *(u64 *)(register + off); a stack argument: SP, 1, 8 × its number */
	kprof_u16 pad;
	kprof_s32 off;
};

/* One probe as the BPF side sees it, indexed by the attach cookie. */
struct kprof_wire_probe {
	struct kprof_recipe value;
	struct kprof_recipe text;
	struct kprof_arg args[KPROF_WIRE_MAX_ARGS];
	kprof_u32 source;              /* index into the counters */
	kprof_u16 text_if_value_low12; /* read the text only if (value & 0xfff) equals this … */
	kprof_u16 text_conditional;    /* … and this is 1 */
};

/*
 * The attach cookie: what the program has to know without a look-up.
 * Source in bits 32 …, sp_bias_bytes / 8 in bits 24 …, index in bits 0 … 23.
 */
#define KPROF_COOKIE(source, bias_bytes, index) \
	((kprof_u64)(source) << 32 | (kprof_u64)((bias_bytes) / 8) << 24 | (kprof_u64)(index))
#define KPROF_COOKIE_INDEX(c) ((kprof_u32)((c)&0xffffff))
#define KPROF_COOKIE_BIAS(c) ((kprof_u32)((c) >> 24 & 0xff) * 8)
#define KPROF_COOKIE_SOURCE(c) ((kprof_u32)((c) >> 32))

/* Key of the map of return addresses whose caller does nothing but return. */
struct kprof_wire_follow_key {
	kprof_u64 ret_addr;
	kprof_u32 pid;
	kprof_u32 pad;
};

/* Per source and CPU. fired = captured + dropped; user space counts captured by itself. */
struct kprof_wire_count {
	kprof_u64 fired;
	kprof_u64 dropped; /* the ring had no room */
};

#define KPROF_WIRE_EXIT_PROCESS 1       /* h.id: the whole process ended */
#define KPROF_WIRE_FORK_SHARES_MEMORY 1 /* h.id: a vfork, or a thread */

#define KPROF_WIRE_MAX_SOURCES 32
#define KPROF_WIRE_MAX_PROBES 16384
#define KPROF_WIRE_MAX_RINGS 64
#define KPROF_WIRE_MAX_FOLLOW 4096 /* return addresses whose caller only returns */
#define KPROF_WIRE_FOLLOW_DEPTH 4  /* how many such callers in a row */
/* In the value of such an address, beside the bytes: the result register is written on the way. */
#define KPROF_WIRE_FOLLOW_NO_RESULT 0x80000000u
/* A bitmap over hashes of those addresses spares most events the look-up. */
#define KPROF_WIRE_FOLLOW_BITS 4096
#define KPROF_WIRE_FOLLOW_BIT(ra) ((kprof_u32)((ra) ^ (ra) >> 12) & (KPROF_WIRE_FOLLOW_BITS - 1))

#define KPROF_WIRE_SOURCE_SITES 0 /* return sites */
#define KPROF_WIRE_SOURCE_TASKS 1 /* fork, exec, exit, maps */
#define KPROF_WIRE_SOURCE_FIRST 2 /* catalog's sources from here on */

_Static_assert(sizeof(struct kprof_wire_hdr) == 32, "wire: hdr");
_Static_assert(sizeof(struct kprof_wire_begin) == 48, "wire: begin");
_Static_assert(sizeof(struct kprof_wire_begin_text) == 72, "wire: begin_text");
_Static_assert(sizeof(struct kprof_wire_task) == 56, "wire: task");
_Static_assert(sizeof(struct kprof_recipe) == 32, "wire: recipe");
_Static_assert(sizeof(struct kprof_arg) == 8, "wire: arg");
_Static_assert(sizeof(struct kprof_wire_probe) == 136, "wire: probe");
_Static_assert(sizeof(struct kprof_wire_begin_args) == 120, "wire: begin_args");
_Static_assert(sizeof(struct kprof_wire_site_result) == 40, "wire: site_result");
_Static_assert(sizeof(struct kprof_wire_batch) == 4072, "wire: batch");
_Static_assert(sizeof(struct kprof_wire_mark) == 144, "wire: mark");
_Static_assert(sizeof(struct kprof_wire_stack) == 56, "wire: stack");
_Static_assert(sizeof(struct kprof_wire_follow_key) == 16, "wire: follow key");
_Static_assert(sizeof(struct kprof_wire_count) == 16, "wire: count");

#endif /* KPROF_WIRE_H */
