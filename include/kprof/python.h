/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CPython seen from outside: where the fields of one process's interpreter are.
 * user/symbol/python/python.c finds this out; bpf/python.h walks by it, in the kernel and in user
 * space.
 *
 * All offsets are bytes. A field that a release does not have is KPROF_PYTHON_NONE.
 */
#ifndef KPROF_PYTHON_H
#define KPROF_PYTHON_H

#include "kprof/wire.h"

#define KPROF_PYTHON_NONE 0xffffffffu
/* kept of a thread, a power of two; frames further out are cut */
#define KPROF_PYTHON_MAX_FRAMES 256
#define KPROF_PYTHON_MAX_INTERPRETERS 16 /* looked at when a thread state is searched for */
#define KPROF_PYTHON_MAX_THREADS 1024    /* thread states looked at, all interpreters together */
#define KPROF_PYTHON_FRAME_BYTES 128     /* bytes read of a frame, at most */

/*
 * Calls of python_step() after which every walk has ended: steps of the search, frames, the shims
 * between them, and what leads from one to the next.
 */
#define KPROF_PYTHON_MAX_STEPS \
	(KPROF_PYTHON_MAX_THREADS * 2 + KPROF_PYTHON_MAX_INTERPRETERS + KPROF_PYTHON_MAX_FRAMES * 3)

enum kprof_python_flags {
	/* 3.13t and 3.14t; even there a GIL may be enabled at run time */
	KPROF_PYTHON_FREE_THREADED = 1 << 0,
};

/* One process's interpreter. */
struct kprof_python {
	kprof_u64 runtime;   /* address of _PyRuntime */
	kprof_u64 code_type; /* address of PyCode_Type */
	kprof_u32 version;   /* PY_VERSION_HEX: 0x030b02f0 is 3.11.2 */
	kprof_u32 flags;     /* enum kprof_python_flags */

	/* _PyRuntimeState */
	kprof_u32 runtime_interpreters; /* pointer to the first interpreter */
	kprof_u32 runtime_gil;          /* struct _gil_runtime_state, inside; up to 3.11 */
	/* PyInterpreterState */
	kprof_u32 interp_next;
	kprof_u32 interp_threads; /* pointer to the first thread state */
	kprof_u32 interp_gil;     /* pointer to its struct _gil_runtime_state; from 3.12 */
	/* struct _gil_runtime_state */
	kprof_u32 gil_holder;  /* the thread state that holds the GIL, or was the last to hold it */
	kprof_u32 gil_locked;  /* int */
	kprof_u32 gil_enabled; /* int; free-threaded builds */
	kprof_u32 gil_bytes;
	/* PyThreadState */
	kprof_u32 tstate_prev;
	kprof_u32 tstate_next;
	kprof_u32 tstate_interp;
	kprof_u32 tstate_thread; /* pthread_self() */
	kprof_u32 tstate_native; /* gettid(), in the process's own PID namespace; from 3.11 */
	/* pointer to the innermost frame; in 3.11 and 3.12 to the _PyCFrame that points to it */
	kprof_u32 tstate_frame;
	/* _PyCFrame: pointer to the innermost frame, followed by one to the previous _PyCFrame */
	kprof_u32 cframe_frame;
	/* PyFrameObject up to 3.10, _PyInterpreterFrame from 3.11 */
	/*
	 * how much of a frame is read: up to the end of its last field, < KPROF_PYTHON_FRAME_BYTES
	 */
	kprof_u32 frame_bytes;
	kprof_u32 frame_code; /* pointer to the code object, whose low three bits may be tags */
	kprof_u32 frame_previous;
	kprof_u32 frame_instr;
	/* frame_instr is an int: shift that makes it bytes; NONE: frame_instr is an address */
	kprof_u32 frame_instr_shift;
	kprof_u32 frame_entry; /* bool: the frame has a C eval frame of its own; 3.11 */
	kprof_u32 frame_owner; /* char; from 3.12 */
	/* owners from this value on mark a shim: no function, but the end of a C eval frame */
	kprof_u32 frame_owner_shim;
	/* int: index of the copy of the code that the thread runs; free-threaded 3.14 */
	kprof_u32 frame_tlbc;
	/* PyCodeObject */
	kprof_u32 code_instrs; /* the instructions, inside; from 3.11 */
	kprof_u32 code_firstlineno;
	kprof_u32 code_tlbc; /* pointer to { long nr; char *copies[] }; free-threaded 3.14 */
	/* Fields that only user space reads. */
	kprof_u32 code_filename, code_name, code_qualname; /* str objects; qualname from 3.11 */
	kprof_u32 code_lines; /* bytes object: co_lnotab, co_linetable */
	/* int: index of the first instruction after the function's prologue; from 3.11 */
	kprof_u32 code_traceable;
	kprof_u32 bytes_length, bytes_value;
	kprof_u32 str_length, str_state;
	kprof_u32 str_ascii, str_compact; /* where characters begin */
	kprof_u32 str_kind;               /* the lowest bit of state.kind */
	/*
	 * Fields on the way to the names of threads, which begins at the interpreter's sys.modules:
	 * of PyInterpreterState, PyObject, PyTypeObject, PyDictObject and module objects.
	 */
	kprof_u32 interp_modules;
	kprof_u32 object_type;
	kprof_u32 type_flags, type_basicsize, type_dictoffset;
	kprof_u32 type_keys; /* keys of the attributes of instances (ht_cached_keys); from 3.11 */
	kprof_u32 dict_keys, dict_values;
	kprof_u32 module_dict;
	/* how far in front of an object its dict, or its values, are; from 3.11 */
	kprof_u32 managed_dict;
	/*
	 * Fields on the way to calls of methods (kprof/modules.h), of the frame and of
	 * PyTypeObject, PyFunctionObject, PyCodeObject and PyDictObject.
	 */
	kprof_u32 frame_locals;         /* the first local: the first argument */
	kprof_u32 type_name, type_dict; /* a C string; pointer to a dict */
	kprof_u32 function_code;
	kprof_u32 code_argcount, code_flags; /* ints */
	/* a number that each new dict gets, and no other dict has had; up to 3.12 */
	kprof_u32 dict_version;
	kprof_u32 pad;
};

enum kprof_python_frame_flags {
	KPROF_PYTHON_ENTRY = 1 << 0, /* the interpreter's C function was called for this frame */
	KPROF_PYTHON_LAST = 1 << 1,  /* the outermost frame of its thread state */
};

struct kprof_python_frame {
	kprof_u64 code; /* address of the code object */
	/* the instruction that executes, in bytes from the first one; negative: not begun yet */
	kprof_s32 instr;
	kprof_u32 flags; /* enum kprof_python_frame_flags */
	/*
	 * co_firstlineno. If the code object has another one later, its address was freed and
	 * reused
	 */
	kprof_u32 firstline;
	kprof_u32 pad;
};

enum kprof_python_walk_flags {
	KPROF_PYTHON_FOUND = 1 << 0,     /* the thread has a thread state */
	KPROF_PYTHON_CUT = 1 << 1,       /* there are more frames than were kept */
	KPROF_PYTHON_BAD = 1 << 2,       /* memory could not be read: frames are missing */
	KPROF_PYTHON_HOLDS_GIL = 1 << 3, /* the thread holds the GIL */
	KPROF_PYTHON_WAITS_GIL = 1 << 4, /* the thread sleeps until it gets the GIL */
	KPROF_PYTHON_NO_GIL = 1 << 5,    /* there is no GIL: a free-threaded build */
	KPROF_PYTHON_BARE_EVAL = 1 << 6, /* the innermost C eval frame has no Python frame (yet) */
	/* used by the walk only: no second thread state is looked for */
	KPROF_PYTHON_ONE_STATE = 1 << 7,
	/* not found, since there are more thread states than are looked at */
	KPROF_PYTHON_MANY = 1 << 8,
};

/* The state of the walk over one thread, and the frames that it found. */
struct kprof_python_walk {
	/* Set by the caller. */
	kprof_u64 thread; /* pthread_self(), which is the thread's fs base */
	/* where this thread's thread state was last; 0: not known. Checked before use */
	kprof_u64 hint;
	kprof_u64 futex; /* address of the futex that the thread waits for; 0: it waits for none */
	/* Results. */
	/* the thread's state; if it has one in several interpreters, the newest's; 0: none */
	kprof_u64 tstate;
	kprof_u64 holder; /* the thread state that holds this interpreter's GIL; 0: none */
	kprof_u32 flags;  /* enum kprof_python_walk_flags */
	kprof_u32 nr;     /* number of frames in frames[] */
	/* Used by the walk only. */
	kprof_u64 interp, state, next_state, frame;
	kprof_u64 cframe; /* the _PyCFrame that led to the next frame; 0: the frame's callee did */
	kprof_u32 phase;
	kprof_u32 interpreters, states; /* how many were looked at */
	/* index in frames[] of the first frame of this thread state */
	kprof_u32 first;
	kprof_u32 shims; /* shims that were passed over */
	kprof_u32 pad;
	kprof_u64 scratch[KPROF_PYTHON_FRAME_BYTES / 8];
	struct kprof_python_frame frames[KPROF_PYTHON_MAX_FRAMES]; /* innermost first */
};

_Static_assert(sizeof(struct kprof_python) == 256, "python: layout");
_Static_assert(sizeof(struct kprof_python_frame) == 24, "python: frame");

#endif
