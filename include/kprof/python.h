/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CPython seen from outside: where things lie in one process's interpreter, shared by what finds
 * out (user/symbol/python/python.c) and what walks by it (bpf/python.h, in the kernel and in user
 * space).
 *
 * All offsets are bytes. A field that a release does not have is KPROF_PYTHON_NONE.
 */
#ifndef KPROF_PYTHON_H
#define KPROF_PYTHON_H

#include "kprof/wire.h"

#define KPROF_PYTHON_NONE 0xffffffffu
#define KPROF_PYTHON_MAX_FRAMES 256      /* a power of two; what is deeper is cut */
#define KPROF_PYTHON_MAX_INTERPRETERS 16 /* looked at in a search */
#define KPROF_PYTHON_MAX_THREADS 1024    /* thread states looked at, all interpreters together */
#define KPROF_PYTHON_FRAME_BYTES 128     /* the fields of a frame that are read, at most */

/*
 * Calls of python_step() that end every walk: a search, shims between frames, and what brings each
 * about.
 */
#define KPROF_PYTHON_MAX_STEPS \
	(KPROF_PYTHON_MAX_THREADS * 2 + KPROF_PYTHON_MAX_INTERPRETERS + KPROF_PYTHON_MAX_FRAMES * 3)

enum kprof_python_flags {
	KPROF_PYTHON_FREE_THREADED = 1 << 0, /* 3.13t, 3.14t; a GIL may be enabled all the same */
};

/* One process's interpreter. */
struct kprof_python {
	kprof_u64 runtime;   /* address of _PyRuntime */
	kprof_u64 code_type; /* … of PyCode_Type */
	kprof_u32 version;   /* PY_VERSION_HEX: 0x030b02f0 is 3.11.2 */
	kprof_u32 flags;     /* enum kprof_python_flags */

	/* _PyRuntimeState */
	kprof_u32 runtime_interpreters; /* the first interpreter */
	kprof_u32 runtime_gil;          /* struct _gil_runtime_state; up to 3.11 */
	/* PyInterpreterState */
	kprof_u32 interp_next;
	kprof_u32 interp_threads; /* the first thread state */
	kprof_u32 interp_gil;     /* pointer to its struct _gil_runtime_state; from 3.12 */
	/* struct _gil_runtime_state */
	kprof_u32 gil_holder;  /* the thread state that holds it, or was the last to */
	kprof_u32 gil_locked;  /* int */
	kprof_u32 gil_enabled; /* int; free-threaded builds */
	kprof_u32 gil_bytes;
	/* PyThreadState */
	kprof_u32 tstate_prev;
	kprof_u32 tstate_next;
	kprof_u32 tstate_interp;
	kprof_u32 tstate_thread; /* pthread_self() */
	kprof_u32 tstate_native; /* gettid(), in the process's own PID namespace; from 3.11 */
	kprof_u32 tstate_frame;  /* the innermost frame; 3.11, 3.12: the _PyCFrame that has it */
	/* _PyCFrame: the innermost frame, then a pointer to the one before */
	kprof_u32 cframe_frame;
	/* PyFrameObject up to 3.10, _PyInterpreterFrame from 3.11 */
	kprof_u32 frame_bytes; /* that are read: the last field's end, < KPROF_PYTHON_FRAME_BYTES */
	kprof_u32 frame_code;  /* its low three bits may be tags */
	kprof_u32 frame_previous;
	kprof_u32 frame_instr;
	kprof_u32 frame_instr_shift; /* of an int, to have bytes; NONE: frame_instr is an address */
	kprof_u32 frame_entry;       /* bool: a C eval frame of its own; 3.11 */
	kprof_u32 frame_owner;       /* char; from 3.12 */
	kprof_u32 frame_owner_shim; /* from this owner on: no function, but a C eval frame's mark */
	kprof_u32 frame_tlbc; /* int: which copy of the code the thread runs; free-threaded 3.14 */
	/* PyCodeObject */
	kprof_u32 code_instrs; /* where the instructions lie in it; from 3.11 */
	kprof_u32 code_firstlineno;
	kprof_u32 code_tlbc; /* pointer to { long nr; char *copies[] }; free-threaded 3.14 */
	/* What only user space looks at. */
	kprof_u32 code_filename, code_name, code_qualname; /* str objects; qualname from 3.11 */
	kprof_u32 code_lines;     /* bytes object: co_lnotab, co_linetable */
	kprof_u32 code_traceable; /* int: the first instruction of the function's own; from 3.11 */
	kprof_u32 bytes_length, bytes_value;
	kprof_u32 str_length, str_state;
	kprof_u32 str_ascii, str_compact; /* where characters begin */
	kprof_u32 str_kind;               /* the lowest bit of state.kind */
	/*
	 * Where the names of threads are: sys.modules, the interpreter's; PyObject, PyTypeObject,
	 * PyDictObject, modules.
	 */
	kprof_u32 interp_modules;
	kprof_u32 object_type;
	kprof_u32 type_flags, type_basicsize, type_dictoffset;
	kprof_u32 type_keys; /* of instances' attributes (ht_cached_keys); from 3.11 */
	kprof_u32 dict_keys, dict_values;
	kprof_u32 module_dict;
	/* bytes in front of an object: its dict, or its values; from 3.11 */
	kprof_u32 managed_dict;
};

enum kprof_python_frame_flags {
	KPROF_PYTHON_ENTRY = 1 << 0, /* the interpreter's C function was called for this frame */
	KPROF_PYTHON_LAST = 1 << 1,  /* outermost of its thread state */
};

struct kprof_python_frame {
	kprof_u64 code;  /* address of the code object */
	kprof_s32 instr; /* bytes into its instructions: what executes; negative: has not begun */
	kprof_u32 flags; /* enum kprof_python_frame_flags */
	/* co_firstlineno: another one, and the address was freed and used again */
	kprof_u32 firstline;
	kprof_u32 pad;
};

enum kprof_python_walk_flags {
	KPROF_PYTHON_FOUND = 1 << 0,     /* the thread has a thread state */
	KPROF_PYTHON_CUT = 1 << 1,       /* there are more frames than were kept */
	KPROF_PYTHON_BAD = 1 << 2,       /* memory could not be read: frames are missing */
	KPROF_PYTHON_HOLDS_GIL = 1 << 3, /* the thread */
	KPROF_PYTHON_WAITS_GIL = 1 << 4, /* the thread sleeps until it gets it */
	KPROF_PYTHON_NO_GIL = 1 << 5,    /* there is none: a free-threaded build */
	KPROF_PYTHON_BARE_EVAL = 1 << 6, /* the innermost C eval frame has no Python frame (yet) */
	KPROF_PYTHON_ONE_STATE = 1 << 7, /* internal: no second thread state is looked for */
	KPROF_PYTHON_MANY = 1 << 8,      /* more thread states than are looked at: not found */
};

/* A walk, and what it found: one thread. */
struct kprof_python_walk {
	/* In. */
	kprof_u64 thread; /* pthread_self(), which is the thread's fs base */
	kprof_u64 hint;   /* this thread's tstate as far as known; 0: none. Checked before use */
	kprof_u64 futex;  /* the address that the thread sleeps at; 0: it doesn't */
	/* Out. */
	kprof_u64 tstate; /* the thread's (of several interpreters', the newest's); 0: none */
	kprof_u64 holder; /* the thread state that holds this interpreter's GIL; 0: none */
	kprof_u32 flags;  /* enum kprof_python_walk_flags */
	kprof_u32 nr;     /* of frames[] */
	/* The walk's own. */
	kprof_u64 interp, state, next_state, frame;
	kprof_u64 cframe; /* from which the next frame came; 0: from its callee */
	kprof_u32 phase;
	kprof_u32 interpreters, states; /* looked at */
	kprof_u32 first;                /* frames[] at which this thread state's begin */
	kprof_u32 shims;                /* passed over */
	kprof_u32 pad;
	kprof_u64 scratch[KPROF_PYTHON_FRAME_BYTES / 8];
	struct kprof_python_frame frames[KPROF_PYTHON_MAX_FRAMES]; /* innermost first */
};

_Static_assert(sizeof(struct kprof_python) == 224, "python: layout");
_Static_assert(sizeof(struct kprof_python_frame) == 24, "python: frame");

#endif
