// SPDX-License-Identifier: BSD-2-Clause
/*
 * Offsets of the fields of CPython's structures. Up to 3.12 they are in a table: offsetof() with
 * each release's own headers (tests/python/layout.c prints them, tests/python.bats compares them
 * with the headers that are installed). They hold for all builds of a minor release for x86-64,
 * except those with --with-trace-refs. From 3.13 on the interpreter contains them:
 * _Py_DebugOffsets, at the beginning of _PyRuntime (Include/internal/pycore_debug_offsets.h).
 */
#include <string.h>

#include "symbol/python/priv.h"
#include "util/util.h"

#define NONE KPROF_PYTHON_NONE

/* Fields with the same offsets in all of these releases. */
#define COMMON                                                                                     \
	.gil_holder = 8, .gil_locked = 16, .gil_enabled = NONE, .gil_bytes = 208,                  \
	.tstate_prev = 0, .tstate_next = 8, .tstate_interp = 16, .frame_tlbc = NONE,               \
	.code_tlbc = NONE, .bytes_length = 16, .bytes_value = 32, .str_length = 16,                \
	.str_state = 32, .str_kind = 2, .object_type = 8, .type_flags = 168, .type_basicsize = 32, \
	.type_dictoffset = 288, .dict_keys = 32, .dict_values = 40, .module_dict = 16,             \
	.type_name = 24, .type_dict = 264, .dict_version = 24

/* 3.8 to 3.10: frames are objects. */
#define OBJECTS                                                                                   \
	COMMON, .runtime_interpreters = 32, .interp_next = 0, .interp_threads = 8,                \
		.interp_gil = NONE, .tstate_thread = 176, .tstate_native = NONE,                  \
		.tstate_frame = 24, .cframe_frame = NONE, .frame_bytes = 108, .frame_code = 32,   \
		.frame_previous = 24, .frame_entry = NONE, .frame_owner = NONE,                   \
		.frame_owner_shim = NONE, .code_instrs = NONE, .code_firstlineno = 40,            \
		.code_filename = 104, .code_name = 112, .code_qualname = NONE, .code_lines = 120, \
		.code_traceable = NONE, .str_ascii = 48, .str_compact = 72, .type_keys = NONE,    \
		.managed_dict = NONE, .code_argcount = 16, .code_flags = 36

/* 3.11 and 3.12: frames are structs, and _PyCFrame points to them. */
#define STRUCTS                                                                                \
	COMMON, .runtime_interpreters = 40, .interp_next = 0, .tstate_frame = 56,              \
		.frame_instr = 56, .frame_instr_shift = NONE, .code_filename = 112,            \
		.code_name = 120, .code_qualname = 128, .code_lines = 136, .managed_dict = 24, \
		.frame_locals = 72, .function_code = 48, .code_flags = 48

static const struct layout {
	uint32_t minor;
	struct kprof_python fields;
} tables[] = {
	{8,
	 {OBJECTS, .runtime_gil = 1152, .frame_instr = 104, .frame_instr_shift = 0,
	  .interp_modules = 56, .frame_locals = 360, .function_code = 16}},
	{9,
	 {OBJECTS, .runtime_gil = 352, .frame_instr = 104, .frame_instr_shift = 0,
	  .interp_modules = 856, .frame_locals = 360, .function_code = 16}},
	/* From 3.10 on f_lasti counts instructions, not bytes. */
	{10,
	 {OBJECTS, .runtime_gil = 352, .frame_instr = 96, .frame_instr_shift = 1,
	  .interp_modules = 856, .frame_locals = 352, .function_code = 48}},
	{11,
	 {STRUCTS,
	  .runtime_gil = 360,
	  .interp_threads = 16,
	  .interp_gil = NONE,
	  .tstate_thread = 152,
	  .tstate_native = 160,
	  .cframe_frame = 8,
	  .frame_bytes = 70,
	  .frame_code = 32,
	  .frame_previous = 48,
	  .frame_entry = 68,
	  .frame_owner = NONE,
	  .frame_owner_shim = NONE,
	  .code_instrs = 184,
	  .code_firstlineno = 72,
	  .code_traceable = 168,
	  .str_ascii = 48,
	  .str_compact = 72,
	  .interp_modules = 888,
	  .type_keys = 872,
	  .code_argcount = 56}},
	{12,
	 {STRUCTS,
	  .runtime_gil = NONE,
	  .interp_threads = 72,
	  .interp_gil = 384,
	  .tstate_thread = 136,
	  .tstate_native = 144,
	  .cframe_frame = 0,
	  .frame_bytes = 71,
	  .frame_code = 0,
	  .frame_previous = 8,
	  .frame_entry = NONE,
	  .frame_owner = 70,
	  .frame_owner_shim = 3,
	  .code_instrs = 192,
	  .code_firstlineno = 68,
	  .code_traceable = 176,
	  .str_ascii = 40,
	  .str_compact = 56,
	  .interp_modules = 944,
	  .type_keys = 880,
	  .code_argcount = 52}},
};

bool python_layout_table(uint32_t minor, struct kprof_python *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		if (tables[i].minor == minor) {
			*out = tables[i].fields;
			return true;
		}
	return false;
}

/*
 * _Py_DebugOffsets is an array of 64-bit words, to which each minor release adds some. Which words
 * are the offsets of these fields, in 3.13 and in 3.14; 0: there is no such word.
 */
#define WORD(name, in_13, in_14, ...)                                                     \
	{                                                                                 \
		.field = offsetof(struct kprof_python, name), .word = {(in_13), (in_14)}, \
		__VA_ARGS__                                                               \
	}
#define FIRST_DESCRIBED 13

static const struct {
	size_t field;
	uint8_t word[2];
	bool free_threaded; /* only builds without a GIL have the field */
} described[] = {
	WORD(runtime_interpreters, 5, 5),
	WORD(interp_next, 8, 8),
	WORD(interp_threads, 9, 9),
	WORD(interp_modules, 11, 12),
	WORD(interp_gil, 14, 15),
	WORD(tstate_prev, 20, 23),
	WORD(tstate_next, 21, 24),
	WORD(tstate_interp, 22, 25),
	WORD(tstate_frame, 23, 26),
	WORD(tstate_thread, 24, 27),
	WORD(tstate_native, 25, 28),
	WORD(frame_previous, 29, 32),
	WORD(frame_code, 30, 33),
	WORD(frame_instr, 31, 34),
	WORD(frame_owner, 33, 36),
	WORD(frame_locals, 32, 35),
	WORD(frame_tlbc, 0, 38, .free_threaded = true),
	WORD(code_filename, 35, 40),
	WORD(code_name, 36, 41),
	WORD(code_qualname, 37, 42),
	WORD(code_lines, 38, 43),
	WORD(code_firstlineno, 39, 44),
	WORD(code_instrs, 43, 48),
	WORD(code_tlbc, 0, 49, .free_threaded = true),
	WORD(bytes_length, 65, 75),
	WORD(bytes_value, 66, 76),
	WORD(str_state, 68, 78),
	WORD(str_length, 69, 79),
	WORD(str_ascii, 70, 80),
	WORD(module_dict, 44, 50), /* the size of an object's head, which the dict follows */
	WORD(object_type, 45, 51),
	WORD(type_keys, 46, 52), /* the size of a PyTypeObject: see below */
	WORD(type_flags, 49, 55),
	WORD(dict_keys, 57, 67),
	WORD(dict_values, 58, 68),
};

/* Of the GIL: the words of the lock itself, .enabled, .locked and .last_holder. */
static const uint8_t gil_words[] = {15, 16};

#define WORD_FREE_THREADED 2
#define MAX_OFFSET (1u << 20) /* a PyInterpreterState is some 300 kB */
#define TYPE_TO_KEYS 464      /* PyHeapTypeObject: from its PyTypeObject's end to ht_cached_keys */
#define COMPACT_MORE 16       /* PyCompactUnicodeObject adds utf8_length and utf8 */

/* How much of a frame is read. False: its fields are too far apart. */
static bool described_frame(struct kprof_python *o)
{
	const uint32_t fields[] = {o->frame_previous, o->frame_code, o->frame_instr, o->frame_owner,
				   o->frame_tlbc};
	uint32_t last = 0;

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (fields[i] != NONE && fields[i] > last)
			last = fields[i];
	o->frame_bytes = last + 8;
	return o->frame_bytes < KPROF_PYTHON_FRAME_BYTES;
}

/* Fields that are not described are where they have been in all releases, relative to others. */
static void not_described(uint32_t minor, bool free_threaded, struct kprof_python *o)
{
	o->runtime_gil = o->cframe_frame = o->frame_instr_shift = o->frame_entry = NONE;
	o->gil_bytes = free_threaded ? 216 : 208;
	o->frame_owner_shim = 3; /* 3.13: FRAME_OWNED_BY_CSTACK; 3.14: FRAME_OWNED_BY_INTERPRETER */
	/*
	 * Before the instructions: int _co_firsttraceable; void *co_extra; and, in builds with
	 * co_tlbc, that pointer.
	 */
	o->code_traceable = o->code_instrs - (o->code_tlbc == NONE ? 16 : 24);
	o->str_compact = o->str_ascii + COMPACT_MORE;
	/* In these builds state.interned is a separate char, because it is accessed atomically. */
	o->str_kind = free_threaded && minor >= 14 ? 8 : 2;
	o->type_basicsize = o->module_dict + 16;
	o->type_dictoffset = o->module_dict + 272;
	o->type_keys += TYPE_TO_KEYS;
	o->type_name = o->module_dict + 8;
	o->type_dict = o->module_dict + 248;
	o->function_code = o->module_dict + 32;
	o->code_argcount = o->code_firstlineno - 16;
	o->code_flags = o->code_argcount - 4;
	o->dict_version = NONE;
	o->managed_dict = free_threaded ? 8 : 24;
}

bool python_layout_described(uint32_t minor, const uint64_t words[PYTHON_DEBUG_WORDS],
			     struct kprof_python *o)
{
	bool free_threaded = words[WORD_FREE_THREADED] != 0, ok = true;
	uint32_t release = minor - FIRST_DESCRIBED;
	const uint64_t *gil;

	if (release >= ARRAY_SIZE(gil_words))
		return false;
	memset(o, 0, sizeof(*o));
	o->flags = free_threaded ? KPROF_PYTHON_FREE_THREADED : 0;
	for (size_t i = 0; i < ARRAY_SIZE(described); i++) {
		uint8_t word = described[i].word[release];
		bool there = word && (free_threaded || !described[i].free_threaded);
		uint32_t offset = there ? (uint32_t)words[word] : NONE;

		ok = ok && (!there || words[word] < MAX_OFFSET);
		memcpy((char *)o + described[i].field, &offset, sizeof(offset));
	}
	/* The lock's fields are described relative to the interpreter that contains it. */
	gil = words + gil_words[release];
	o->gil_enabled = free_threaded ? (uint32_t)gil[1] : NONE;
	o->gil_locked = (uint32_t)(gil[2] - gil[0]);
	o->gil_holder = (uint32_t)(gil[3] - gil[0]);
	ok = ok && (!free_threaded || gil[1] < MAX_OFFSET) && o->gil_locked < MAX_OFFSET &&
	     o->gil_holder < MAX_OFFSET;
	not_described(minor, free_threaded, o);
	return described_frame(o) && ok;
}
