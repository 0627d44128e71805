/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Annotations for programs that kprof profiles: ranges, marks, steps, events of backends, metadata.
 * Header only, C and C++, nothing to link:
 *
 *	#include <kprof/mark.h>
 *
 *	KPROF_RANGE_PUSH("decode");
 *	…
 *	KPROF_RANGE_POP();
 *
 * While the program is not recorded, a macro costs a load and a branch that is not taken, and its
 * arguments are not evaluated. While kprof records, it is a trap into the kernel, which takes about
 * a microsecond. Nothing is ever written into the program except one counter, by the kernel.
 *
 * How it works: each shared object that uses a macro has a counter (semaphore) and one-byte nops
 * as places for probes. They are listed in the section .note.stapsdt as SystemTap and others define
 * it: provider "kprof", probe "mark", one argument in rdi, the address of a struct
 * kprof_mark_record. The nop has one byte because the kernel replaces longer ones by a call, which
 * would overwrite what a function keeps below its stack pointer (the red zone); a trap does not.
 * The nop and the record are in a cold function of their own, so that the caller has only the test
 * and a call.
 *
 * Text is copied when the macro runs: at most KPROF_MARK_TEXT_MAX bytes. NULL is an empty text.
 */
#ifndef KPROF_MARK_H
#define KPROF_MARK_H

enum kprof_mark_kind {
	KPROF_MARK_RANGE_PUSH = 1, /* text: name */
	KPROF_MARK_RANGE_POP = 2,
	KPROF_MARK_MARK = 3, /* text: name */
	KPROF_MARK_STEP = 4, /* value: number */
	KPROF_MARK_STEP_END = 5,
	KPROF_MARK_THREAD_INFO = 6,      /* text: the thread's name */
	KPROF_MARK_BACKEND_EVENT = 7,    /* value: start, end, debug handle; text: name, backend */
	KPROF_MARK_BACKEND_MEMORY = 8,   /* value: see KPROF_BACKEND_MEMORY */
	KPROF_MARK_CORRELATION_PUSH = 9, /* value: id, user's (1) or operator's (0) */
	KPROF_MARK_CORRELATION_POP = 10, /* value: 0, user's or operator's */
	KPROF_MARK_METADATA = 11, /* text: key, value; value: of the activity (1) or trace (0) */
	KPROF_MARK_METADATA_JSON = 12, /* like KPROF_MARK_METADATA; the value is JSON */
	KPROF_MARK_INVARIANT = 13,     /* text: assertion, error, profile id, group id */
};

#define KPROF_MARK_VERSION 1
#define KPROF_MARK_TEXTS 4
#define KPROF_MARK_VALUES 6
#define KPROF_MARK_TEXT_MAX 2047

/*
 * What rdi points to. The layout is fixed, since a program and kprof may be of different versions.
 */
struct kprof_mark_record {
	unsigned int version;                      /* KPROF_MARK_VERSION */
	unsigned int kind;                         /* enum kprof_mark_kind */
	unsigned long long text[KPROF_MARK_TEXTS]; /* addresses of NUL-terminated texts; 0: none */
	unsigned long long value[KPROF_MARK_VALUES];
};

#ifndef __bpf__
#if defined(__x86_64__) && defined(__linux__) && defined(__ELF__) && !defined(__ILP32__)

#ifdef __cplusplus
extern "C" {
#endif
/*
 * One for each shared object or program. The kernel counts it up while a recording has a probe
 * here.
 */
__attribute__((weak, used, visibility("hidden"),
	       section(".probes"))) unsigned short kprof_mark_semaphore = 0;
#ifdef __cplusplus
}
#endif

/* In C++ a program has one copy of each function, even if inline functions use the macros. */
#ifdef __cplusplus
#define KPROF_MARK_FN inline __attribute__((noinline, cold, unused, visibility("hidden"))) void
#define KPROF_MARK_INLINE inline __attribute__((always_inline, visibility("hidden"))) void
#else
#define KPROF_MARK_FN static __attribute__((noinline, cold, unused)) void
#define KPROF_MARK_INLINE static inline __attribute__((always_inline, unused)) void
#endif

/* Whether the program is being recorded: for work that is only useful then. */
#define KPROF_WATCHED() \
	__builtin_expect(*(const volatile unsigned short *)&kprof_mark_semaphore != 0, 0)

/*
 * The nop for the probe, and the note that describes it (sourceware.org,
 * UserSpaceProbeImplementation).
 */
KPROF_MARK_INLINE kprof_mark_hit(const struct kprof_mark_record *r)
{
	__asm__ __volatile__(
		"990:	nop\n"
		"	.pushsection .note.stapsdt,\"?\",\"note\"\n"
		"	.balign 4\n"
		"	.4byte 992f-991f, 994f-993f, 3\n"
		"991:	.asciz \"stapsdt\"\n"
		"992:	.balign 4\n"
		"993:	.8byte 990b\n"
		"	.8byte _.stapsdt.base\n"
		"	.8byte kprof_mark_semaphore\n"
		"	.asciz \"kprof\"\n"
		"	.asciz \"mark\"\n"
		"	.asciz \"8@%%rdi\"\n"
		"994:	.balign 4\n"
		"	.popsection\n"
		"	.ifndef _.stapsdt.base\n"
		"	.pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"
		"	.weak _.stapsdt.base\n"
		"	.hidden _.stapsdt.base\n"
		"_.stapsdt.base: .space 1\n"
		"	.size _.stapsdt.base, 1\n"
		"	.popsection\n"
		"	.endif\n"
		:
		: "D"(r)
		: "memory");
}

/*
 * Reads the text, so that it is in memory: the kernel can not copy a constant whose page has not
 * been read from its file yet.
 */
KPROF_MARK_INLINE kprof_mark_present(const char *text)
{
	const volatile char *p = text;
	unsigned int i;

	for (i = 0; p && i < KPROF_MARK_TEXT_MAX && p[i]; i++)
		;
}

#define KPROF_MARK_ADDRESS(text) ((unsigned long long)(unsigned long)(const void *)(text))

KPROF_MARK_FN kprof_mark_text(unsigned int kind, const char *text)
{
	struct kprof_mark_record r = {
		KPROF_MARK_VERSION, kind, {KPROF_MARK_ADDRESS(text), 0, 0, 0}, {0, 0, 0, 0, 0, 0}};

	kprof_mark_present(text);
	kprof_mark_hit(&r);
}

KPROF_MARK_FN kprof_mark_value(unsigned int kind, unsigned long long a, unsigned long long b)
{
	struct kprof_mark_record r = {KPROF_MARK_VERSION, kind, {0, 0, 0, 0}, {a, b, 0, 0, 0, 0}};

	kprof_mark_hit(&r);
}

KPROF_MARK_FN kprof_mark_pair(unsigned int kind, const char *key, const char *value,
			      unsigned int of_activity)
{
	struct kprof_mark_record r = {KPROF_MARK_VERSION,
				      kind,
				      {KPROF_MARK_ADDRESS(key), KPROF_MARK_ADDRESS(value), 0, 0},
				      {of_activity, 0, 0, 0, 0, 0}};

	kprof_mark_present(key);
	kprof_mark_present(value);
	kprof_mark_hit(&r);
}

KPROF_MARK_FN kprof_mark_backend(unsigned long long start_us, unsigned long long end_us,
				 long long debug_handle, const char *name, const char *backend)
{
	struct kprof_mark_record r = {
		KPROF_MARK_VERSION,
		KPROF_MARK_BACKEND_EVENT,
		{KPROF_MARK_ADDRESS(name), KPROF_MARK_ADDRESS(backend), 0, 0},
		{start_us, end_us, (unsigned long long)debug_handle, 0, 0, 0}};

	kprof_mark_present(name);
	kprof_mark_present(backend);
	kprof_mark_hit(&r);
}

KPROF_MARK_FN kprof_mark_memory(const volatile void *pointer, long long bytes,
				unsigned long long allocated, unsigned long long reserved,
				int device_type, int device)
{
	struct kprof_mark_record r = {KPROF_MARK_VERSION,
				      KPROF_MARK_BACKEND_MEMORY,
				      {0, 0, 0, 0},
				      {(unsigned long long)(unsigned long)pointer,
				       (unsigned long long)bytes, allocated, reserved,
				       (unsigned long long)(long long)device_type,
				       (unsigned long long)(long long)device}};

	kprof_mark_hit(&r);
}

KPROF_MARK_FN kprof_mark_invariant(const char *assertion, const char *error, const char *profile_id,
				   const char *group_id)
{
	struct kprof_mark_record r = {KPROF_MARK_VERSION,
				      KPROF_MARK_INVARIANT,
				      {KPROF_MARK_ADDRESS(assertion), KPROF_MARK_ADDRESS(error),
				       KPROF_MARK_ADDRESS(profile_id),
				       KPROF_MARK_ADDRESS(group_id)},
				      {0, 0, 0, 0, 0, 0}};

	kprof_mark_present(assertion);
	kprof_mark_present(error);
	kprof_mark_present(profile_id);
	kprof_mark_present(group_id);
	kprof_mark_hit(&r);
}

#define KPROF_MARK_IF(call)          \
	do {                         \
		if (KPROF_WATCHED()) \
			call;        \
	} while (0)

#else /* the probe can not be defined here: nothing is recorded */
#define KPROF_WATCHED() 0
#define KPROF_MARK_IF(call) \
	do {                \
	} while (0)
#endif

/* Ranges of a thread nest: a pop ends the one that was pushed last. */
#define KPROF_RANGE_PUSH(name) KPROF_MARK_IF(kprof_mark_text(KPROF_MARK_RANGE_PUSH, name))
#define KPROF_RANGE_POP() KPROF_MARK_IF(kprof_mark_value(KPROF_MARK_RANGE_POP, 0, 0))
/* A mark: one moment on this thread. */
#define KPROF_MARK(name) KPROF_MARK_IF(kprof_mark_text(KPROF_MARK_MARK, name))
/* A training step begins, and the one before it on this thread ends: "ProfilerStep#N". */
#define KPROF_STEP(number) \
	KPROF_MARK_IF(kprof_mark_value(KPROF_MARK_STEP, (unsigned long long)(number), 0))
/* The last training step ends. */
#define KPROF_STEP_END() KPROF_MARK_IF(kprof_mark_value(KPROF_MARK_STEP_END, 0, 0))
/* Sets the thread's name in the trace. */
#define KPROF_THREAD_INFO(name) KPROF_MARK_IF(kprof_mark_text(KPROF_MARK_THREAD_INFO, name))
/*
 * Something that a backend (a delegate, an accelerator's runtime) did, reported after it is over.
 * Times are microseconds of CLOCK_MONOTONIC or of CLOCK_REALTIME; kprof distinguishes the clocks by
 * the size of the numbers.
 */
#define KPROF_BACKEND_EVENT(start_us, end_us, debug_handle, name, backend)                        \
	KPROF_MARK_IF(kprof_mark_backend((unsigned long long)(start_us),                          \
					 (unsigned long long)(end_us), (long long)(debug_handle), \
					 name, backend))
/*
 * A backend allocated memory, or freed it (bytes < 0). Totals are those afterwards. device_type is
 * a number of c10::DeviceType: 0 CPU, 1 CUDA, …
 */
#define KPROF_BACKEND_MEMORY(pointer, bytes, total_allocated, total_reserved, device_type, device) \
	KPROF_MARK_IF(kprof_mark_memory(                                                           \
		pointer, (long long)(bytes), (unsigned long long)(total_allocated),                \
		(unsigned long long)(total_reserved), (int)(device_type), (int)(device)))
/* What runs until the pop belongs to the operator, or to the user's own event, with this id. */
#define KPROF_CORRELATION_PUSH(id) \
	KPROF_MARK_IF(kprof_mark_value(KPROF_MARK_CORRELATION_PUSH, (unsigned long long)(id), 0))
#define KPROF_CORRELATION_POP() KPROF_MARK_IF(kprof_mark_value(KPROF_MARK_CORRELATION_POP, 0, 0))
#define KPROF_USER_CORRELATION_PUSH(id) \
	KPROF_MARK_IF(kprof_mark_value(KPROF_MARK_CORRELATION_PUSH, (unsigned long long)(id), 1))
#define KPROF_USER_CORRELATION_POP() \
	KPROF_MARK_IF(kprof_mark_value(KPROF_MARK_CORRELATION_POP, 0, 1))
/* Sets a value by its key: of the whole trace, or of the innermost span of the thread. */
#define KPROF_METADATA(key, value) \
	KPROF_MARK_IF(kprof_mark_pair(KPROF_MARK_METADATA, key, value, 0))
#define KPROF_ACTIVITY_METADATA(key, value) \
	KPROF_MARK_IF(kprof_mark_pair(KPROF_MARK_METADATA, key, value, 1))
/* The same with a value that is JSON. An invalid value is kept as a text, with a warning. */
#define KPROF_METADATA_JSON(key, json) \
	KPROF_MARK_IF(kprof_mark_pair(KPROF_MARK_METADATA_JSON, key, json, 0))
#define KPROF_ACTIVITY_METADATA_JSON(key, json) \
	KPROF_MARK_IF(kprof_mark_pair(KPROF_MARK_METADATA_JSON, key, json, 1))
/* An invariant does not hold. Any text may be NULL. */
#define KPROF_INVARIANT_VIOLATION(assertion, error, profile_id, group_id) \
	KPROF_MARK_IF(kprof_mark_invariant(assertion, error, profile_id, group_id))

#endif /* __bpf__ */
#endif
