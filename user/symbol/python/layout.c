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
	.type_dictoffset = 288, .dict_keys = 32, .dict_values = 40, .module_dict = 16

/* 3.8 to 3.10: frames are objects. */
#define OBJECTS                                                                                   \
	COMMON, .runtime_interpreters = 32, .interp_next = 0, .interp_threads = 8,                \
		.interp_gil = NONE, .tstate_thread = 176, .tstate_native = NONE,                  \
		.tstate_frame = 24, .cframe_frame = NONE, .frame_bytes = 108, .frame_code = 32,   \
		.frame_previous = 24, .frame_entry = NONE, .frame_owner = NONE,                   \
		.frame_owner_shim = NONE, .code_instrs = NONE, .code_firstlineno = 40,            \
		.code_filename = 104, .code_name = 112, .code_qualname = NONE, .code_lines = 120, \
		.code_traceable = NONE, .str_ascii = 48, .str_compact = 72, .type_keys = NONE,    \
		.managed_dict = NONE

static const struct layout {
	uint32_t minor;
	struct kprof_python fields;
} tables[] = {
	{8,
	 {OBJECTS, .runtime_gil = 1152, .frame_instr = 104, .frame_instr_shift = 0,
	  .interp_modules = 56}},
	{9,
	 {OBJECTS, .runtime_gil = 352, .frame_instr = 104, .frame_instr_shift = 0,
	  .interp_modules = 856}},
	/* From 3.10 on f_lasti counts instructions, not bytes. */
	{10,
	 {OBJECTS, .runtime_gil = 352, .frame_instr = 96, .frame_instr_shift = 1,
	  .interp_modules = 856}},
	{11,
	 {COMMON,
	  .runtime_interpreters = 40,
	  .runtime_gil = 360,
	  .interp_next = 0,
	  .interp_threads = 16,
	  .interp_gil = NONE,
	  .tstate_thread = 152,
	  .tstate_native = 160,
	  .tstate_frame = 56,
	  .cframe_frame = 8,
	  .frame_bytes = 70,
	  .frame_code = 32,
	  .frame_previous = 48,
	  .frame_instr = 56,
	  .frame_instr_shift = NONE,
	  .frame_entry = 68,
	  .frame_owner = NONE,
	  .frame_owner_shim = NONE,
	  .code_instrs = 184,
	  .code_firstlineno = 72,
	  .code_filename = 112,
	  .code_name = 120,
	  .code_qualname = 128,
	  .code_lines = 136,
	  .code_traceable = 168,
	  .str_ascii = 48,
	  .str_compact = 72,
	  .interp_modules = 888,
	  .type_keys = 872,
	  .managed_dict = 24}},
	{12,
	 {COMMON,
	  .runtime_interpreters = 40,
	  .runtime_gil = NONE,
	  .interp_next = 0,
	  .interp_threads = 72,
	  .interp_gil = 384,
	  .tstate_thread = 136,
	  .tstate_native = 144,
	  .tstate_frame = 56,
	  .cframe_frame = 0,
	  .frame_bytes = 71,
	  .frame_code = 0,
	  .frame_previous = 8,
	  .frame_instr = 56,
	  .frame_instr_shift = NONE,
	  .frame_entry = NONE,
	  .frame_owner = 70,
	  .frame_owner_shim = 3,
	  .code_instrs = 192,
	  .code_firstlineno = 68,
	  .code_filename = 112,
	  .code_name = 120,
	  .code_qualname = 128,
	  .code_lines = 136,
	  .code_traceable = 176,
	  .str_ascii = 40,
	  .str_compact = 56,
	  .interp_modules = 944,
	  .type_keys = 880,
	  .managed_dict = 24}},
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
 * _Py_DebugOffsets is an array of 64-bit words, to which each minor release adds some. These are
 * the indices of the words that kprof reads; 0: the release has no such word.
 */
struct described {
	uint32_t minor;
	uint8_t interpreters, interp_next, threads, interp_gil, gil, gil_enabled, gil_locked,
		gil_holder;
	uint8_t prev, next, interp, frame, thread, native;
	uint8_t f_previous, f_code, f_instr, f_owner, f_tlbc;
	uint8_t c_file, c_name, c_qualname, c_lines, c_firstline, c_instrs, c_tlbc;
	uint8_t b_length, b_value, s_state, s_length, s_ascii;
	uint8_t modules, o_size, o_type, t_size, t_flags, d_keys, d_values;
};

static const struct described descriptions[] = {
	{.minor = 13,
	 .interpreters = 5,
	 .interp_next = 8,
	 .threads = 9,
	 .interp_gil = 14,
	 .gil = 15,
	 .gil_enabled = 16,
	 .gil_locked = 17,
	 .gil_holder = 18,
	 .prev = 20,
	 .next = 21,
	 .interp = 22,
	 .frame = 23,
	 .thread = 24,
	 .native = 25,
	 .f_previous = 29,
	 .f_code = 30,
	 .f_instr = 31,
	 .f_owner = 33,
	 .c_file = 35,
	 .c_name = 36,
	 .c_qualname = 37,
	 .c_lines = 38,
	 .c_firstline = 39,
	 .c_instrs = 43,
	 .b_length = 65,
	 .b_value = 66,
	 .s_state = 68,
	 .s_length = 69,
	 .s_ascii = 70,
	 .modules = 11,
	 .o_size = 44,
	 .o_type = 45,
	 .t_size = 46,
	 .t_flags = 49,
	 .d_keys = 57,
	 .d_values = 58},
	{.minor = 14,
	 .interpreters = 5,
	 .interp_next = 8,
	 .threads = 9,
	 .interp_gil = 15,
	 .gil = 16,
	 .gil_enabled = 17,
	 .gil_locked = 18,
	 .gil_holder = 19,
	 .prev = 23,
	 .next = 24,
	 .interp = 25,
	 .frame = 26,
	 .thread = 27,
	 .native = 28,
	 .f_previous = 32,
	 .f_code = 33,
	 .f_instr = 34,
	 .f_owner = 36,
	 .f_tlbc = 38,
	 .c_file = 40,
	 .c_name = 41,
	 .c_qualname = 42,
	 .c_lines = 43,
	 .c_firstline = 44,
	 .c_instrs = 48,
	 .c_tlbc = 49,
	 .b_length = 75,
	 .b_value = 76,
	 .s_state = 78,
	 .s_length = 79,
	 .s_ascii = 80,
	 .modules = 12,
	 .o_size = 50,
	 .o_type = 51,
	 .t_size = 52,
	 .t_flags = 55,
	 .d_keys = 67,
	 .d_values = 68},
};

#define WORD_FREE_THREADED 2
#define MAX_OFFSET (1u << 20) /* a PyInterpreterState is some 300 kB */
#define TYPE_TO_KEYS 464      /* PyHeapTypeObject: from its PyTypeObject's end to ht_cached_keys */
#define COMPACT_MORE 16       /* PyCompactUnicodeObject adds utf8_length and utf8 */

/* Reads one word as an offset; sets *ok to false if it is too large. */
static uint32_t word(const uint64_t *words, uint8_t index, uint64_t bound, bool *ok)
{
	if (words[index] >= bound)
		*ok = false;
	return (uint32_t)words[index];
}

static void described_frame(const struct described *d, const uint64_t *w, bool free_threaded,
			    struct kprof_python *o, bool *ok)
{
	const uint32_t bound = KPROF_PYTHON_FRAME_BYTES - 8;
	uint32_t last;

	o->frame_previous = word(w, d->f_previous, bound, ok);
	o->frame_code = word(w, d->f_code, bound, ok);
	o->frame_instr = word(w, d->f_instr, bound, ok);
	o->frame_owner = word(w, d->f_owner, bound, ok);
	o->frame_instr_shift = o->frame_entry = o->frame_tlbc = NONE;
	o->frame_owner_shim = 3; /* 3.13: FRAME_OWNED_BY_CSTACK; 3.14: FRAME_OWNED_BY_INTERPRETER */
	if (free_threaded && d->f_tlbc)
		o->frame_tlbc = word(w, d->f_tlbc, bound, ok);
	last = o->frame_previous > o->frame_code ? o->frame_previous : o->frame_code;
	if (o->frame_instr > last)
		last = o->frame_instr;
	if (o->frame_owner > last)
		last = o->frame_owner;
	if (o->frame_tlbc != NONE && o->frame_tlbc > last)
		last = o->frame_tlbc;
	o->frame_bytes =
		last + 8 < KPROF_PYTHON_FRAME_BYTES ? last + 8 : KPROF_PYTHON_FRAME_BYTES - 1;
}

static void described_code(const struct described *d, const uint64_t *w, bool free_threaded,
			   struct kprof_python *o, bool *ok)
{
	o->code_filename = word(w, d->c_file, MAX_OFFSET, ok);
	o->code_name = word(w, d->c_name, MAX_OFFSET, ok);
	o->code_qualname = word(w, d->c_qualname, MAX_OFFSET, ok);
	o->code_lines = word(w, d->c_lines, MAX_OFFSET, ok);
	o->code_firstlineno = word(w, d->c_firstline, MAX_OFFSET, ok);
	o->code_instrs = word(w, d->c_instrs, MAX_OFFSET, ok);
	o->code_tlbc = NONE;
	/*
	 * These fields are not described. They lie before the instructions: int _co_firsttraceable;
	 * void *co_extra; and, in builds with co_tlbc, that pointer.
	 */
	o->code_traceable = o->code_instrs - 16;
	if (free_threaded && d->c_tlbc) {
		o->code_tlbc = word(w, d->c_tlbc, MAX_OFFSET, ok);
		o->code_traceable -= 8;
	}
	o->bytes_length = word(w, d->b_length, MAX_OFFSET, ok);
	o->bytes_value = word(w, d->b_value, MAX_OFFSET, ok);
	o->str_length = word(w, d->s_length, MAX_OFFSET, ok);
	o->str_state = word(w, d->s_state, MAX_OFFSET, ok);
	o->str_ascii = word(w, d->s_ascii, MAX_OFFSET, ok);
	o->str_compact = o->str_ascii + COMPACT_MORE;
	/* In these builds state.interned is a separate char, because it is accessed atomically. */
	o->str_kind = free_threaded && d->minor >= 14 ? 8 : 2;
}

/*
 * Types and dicts. Not all fields of types are described. The others are where they have been since
 * 3.8, after a head or a PyTypeObject that has another size.
 */
static void described_objects(const struct described *d, const uint64_t *w, bool free_threaded,
			      struct kprof_python *o, bool *ok)
{
	uint32_t head = word(w, d->o_size, MAX_OFFSET, ok);

	o->interp_modules = word(w, d->modules, MAX_OFFSET, ok);
	o->object_type = word(w, d->o_type, MAX_OFFSET, ok);
	o->type_flags = word(w, d->t_flags, MAX_OFFSET, ok);
	o->type_keys = word(w, d->t_size, MAX_OFFSET, ok) + TYPE_TO_KEYS;
	o->type_basicsize = head + 16;
	o->type_dictoffset = head + 272;
	o->dict_keys = word(w, d->d_keys, MAX_OFFSET, ok);
	o->dict_values = word(w, d->d_values, MAX_OFFSET, ok);
	o->module_dict = head;
	o->managed_dict = free_threaded ? 8 : 24;
}

bool python_layout_described(uint32_t minor, const uint64_t words[PYTHON_DEBUG_WORDS],
			     struct kprof_python *o)
{
	bool free_threaded = words[WORD_FREE_THREADED] != 0, ok = true;
	const struct described *d = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(descriptions); i++)
		if (descriptions[i].minor == minor)
			d = &descriptions[i];
	if (!d)
		return false;
	memset(o, 0, sizeof(*o));
	o->flags = free_threaded ? KPROF_PYTHON_FREE_THREADED : 0;
	o->runtime_interpreters = word(words, d->interpreters, MAX_OFFSET, &ok);
	o->runtime_gil = o->cframe_frame = NONE;
	o->interp_next = word(words, d->interp_next, MAX_OFFSET, &ok);
	o->interp_threads = word(words, d->threads, MAX_OFFSET, &ok);
	o->interp_gil = word(words, d->interp_gil, MAX_OFFSET, &ok);
	/* The lock's fields are described relative to the interpreter that contains it. */
	o->gil_locked = (uint32_t)(words[d->gil_locked] - words[d->gil]);
	o->gil_holder = (uint32_t)(words[d->gil_holder] - words[d->gil]);
	ok = ok && o->gil_locked < MAX_OFFSET && o->gil_holder < MAX_OFFSET;
	o->gil_enabled = free_threaded ? word(words, d->gil_enabled, MAX_OFFSET, &ok) : NONE;
	o->gil_bytes = free_threaded ? 216 : 208;
	o->tstate_prev = word(words, d->prev, MAX_OFFSET, &ok);
	o->tstate_next = word(words, d->next, MAX_OFFSET, &ok);
	o->tstate_interp = word(words, d->interp, MAX_OFFSET, &ok);
	o->tstate_frame = word(words, d->frame, MAX_OFFSET, &ok);
	o->tstate_thread = word(words, d->thread, MAX_OFFSET, &ok);
	o->tstate_native = word(words, d->native, MAX_OFFSET, &ok);
	described_frame(d, words, free_threaded, o, &ok);
	described_code(d, words, free_threaded, o, &ok);
	described_objects(d, words, free_threaded, o, &ok);
	return ok;
}
