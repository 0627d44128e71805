/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What kprof knows, as tables: which libraries a framework or a device runtime consists of, which
 * symbols to probe in them, what the event is called and where its name lies. Adding a framework
 * is adding a table; no code elsewhere knows a symbol's name.
 */
#ifndef KPROF_CATALOG_H
#define KPROF_CATALOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kprof/activity.h"
#include "kprof/wire.h"

enum catalog_shape {
	CATALOG_SPAN,        /* from the function's entry to its return (return site) */
	CATALOG_RANGE_BEGIN, /* opens a range that a later call on the same thread closes */
	CATALOG_RANGE_END,   /* closes the thread's innermost range; no span of its own */
	CATALOG_INSTANT,     /* a moment */
};

enum catalog_naming {
	CATALOG_NAME_FIXED,  /* .name */
	CATALOG_NAME_SCHEMA, /* the symbol's class name, looked up in the library's schemas */
	CATALOG_NAME_TEXT,   /* the text read at the probe */
	CATALOG_NAME_VTABLE, /* value is an object's vtable pointer: its dynamic type's name */
	CATALOG_NAME_SYMBOL, /* the symbol itself, without the row's suffixes */
};

/*
 * Offsets that differ by release and are learnt from the library's own code
 * (capture/probe/layout.c).
 */
enum catalog_layout {
	CATALOG_LAYOUT_NONE,
	CATALOG_LAYOUT_FIELD,     /* first field read by the function layout_symbol */
	CATALOG_LAYOUT_PYUNICODE, /* sizeof(PyASCIIObject) of the process's CPython */
};

/* What an argument read at the probe is, and so how it is recorded. */
enum catalog_arg_kind {
	CATALOG_ARG_NONE,
	CATALOG_ARG_UNSIGNED,
	CATALOG_ARG_UNSIGNED32, /* of 32 bits: what the register has above them means nothing */
	CATALOG_ARG_SIGNED32,
	CATALOG_ARG_POINTER,
	CATALOG_ARG_BYTES,
	CATALOG_ARG_ENUM,    /* named by .names */
	CATALOG_ARG_DIM3_XY, /* x | y << 32; the next argument is z */
	CATALOG_ARG_DIM3_Z,
	CATALOG_ARG_FUNCTION, /* an address in the process: recorded as the symbol there */
	CATALOG_ARG_STREAM,   /* a handle */
	CATALOG_ARG_DIM3_X,   /* each for itself, in this order: x, y, z */
	CATALOG_ARG_DIM3_Y,
};

struct catalog_arg {
	const char *name; /* key in the trace's args: "grid", "stream", "bytes" */
	enum catalog_arg_kind kind;
	struct kprof_arg from;
	const char *const *names; /* ENUM: by value, NULL-terminated */
	const char *strip;        /* FUNCTION: what a compiler puts in front of the name; NULL */
};

/* What a call's result says of it. */
struct catalog_result {
	const char *key; /* key in the trace's args: "error" */
	int64_t ok;      /* recorded only when the result differs … */
	const char *(*name)(
		int64_t result); /* … by this name; NULL of an unknown one: the number */
	bool is_signed;
	int64_t answer; /* no failure but an answer, recorded as "result"; 0: there is none */
};

struct catalog_row {
	const char *source;   /* accounting: "operators", "autograd", … */
	const char *library;  /* glob on the file's base name */
	const char *symbols;  /* globs on the mangled name, separated by blanks */
	const char *unless;   /* globs that a symbol must not match; NULL */
	const char *suffixes; /* ends that variants of a symbol have, passed over; NULL */
	const char *category; /* trace category: "cpu_op", "user_annotation" */
	enum catalog_shape shape;
	enum catalog_naming naming;
	const char *name;    /* FIXED: the name; else a printf format with one %s, NULL: as is */
	bool last_component; /* TEXT: only what follows the last '.' (a qualified name's method) */
	const char *keep_scope; /* VTABLE: class names (globs) that are shown with their scope */
	const char
		*strip; /* leading C++ scope to drop from a type's name, e.g. "torch::autograd::" */
	struct kprof_recipe value, text;
	/*
	 * A layout replaces one offset of the text recipe: index layout_at of off[], or .add when
	 * layout_at is -1.
	 */
	enum catalog_layout layout;
	const char *layout_library; /* glob: where layout_symbol and text_for_vtable are */
	const char *layout_symbol;  /* globs separated by blanks */
	int layout_at;
	/* Read the text only for objects of this class (its vtable symbol); NULL: always. */
	const char *text_for_vtable;
	/* When the text matches a glob, the hit is something else: */
	const char *range_end_text; /* a RANGE_END; NULL */
	const char *ignore_text;    /* nothing: globs separated by blanks; NULL */
	/*
	 * Only where no symbol of the library matches these globs: a dearer or rougher substitute.
	 */
	const char *only_without;
	const char *only_without_in; /* … of this library (glob) instead; NULL: of its own */
	const char *value_is; /* 2 to 8 characters that value begins with; other hits are nothing */
	bool heap_object; /* RANGE_END: only when value does not lie on the thread's own stack */
	/* Arguments, as many as are named; with them the row's probes are ATTACH_BEGIN_ARGS. */
	struct catalog_arg args[KPROF_WIRE_MAX_ARGS];
	const struct catalog_result *result; /* NULL: not looked at */
	enum kprof_activity activity;        /* type; NONE: by the category */
	/* A call directly inside one of these categories is a part of that one: not recorded. */
	const char *folded_into; /* separated by blanks; NULL */
	bool optional;           /* absent in some builds without anything being lost */
	const char *lost;        /* what is not seen where no symbol matches (for `check -v`) */
};

struct catalog_framework {
	const char *name;             /* "pytorch" */
	const char *const *libraries; /* NULL-terminated globs: mapped ⇒ present */
	/* Finds the release: a file beside the library or in the package; NULL or a format. */
	const char
		*version_file; /* relative to the directory of the library found: "../version.py" */
	const char *version_key; /* "__version__" */
	const char *
		package; /* Python package ("torch"): where distributions put the library elsewhere,
			      * the file is looked for beside a mapped module of it */
	const char *common; /* globs of the most used operators: first where probes are scarce */
	const char *const *hidden; /* names that the framework's own profiler never shows */
	const struct catalog_row *rows;
	size_t nr_rows;
	/* of a device, or for annotations: `list` does not name it as a framework */
	bool is_runtime;
	const struct catalog_runtime
		*runtime; /* of a device: its descriptor (runtime.h); else NULL */
	/*
	 * A library that is linked statically too: a file that defines this symbol contains it, and
	 * the rows for a library of the name embedded_as are for it. Looked for in the program, and
	 * where a library that matches embedded_with is mapped, in everything.
	 */
	const char *embedded_symbol, *embedded_as, *embedded_with;
};

struct catalog_runtime; /* runtime.h */

/*
 * Every framework and runtime that has rows, each in a file of its own as catalog_NAME. Device
 * runtimes are listed in this order.
 */
/* clang-format off */
#define CATALOG_FRAMEWORKS(one) \
	one(pytorch) \
	one(cuda) \
	one(hip) \
	one(opencl) \
	one(level_zero) \
	one(nvtx)
/* clang-format on */

#define CATALOG_DECLARE(name) extern const struct catalog_framework catalog_##name;
CATALOG_FRAMEWORKS(CATALOG_DECLARE)
extern const struct catalog_framework *const catalog_frameworks[]; /* NULL-terminated */

/*
 * Names of results ("cudaErrorInvalidValue"), in order of number where there are more than a few.
 * NULL: unknown number.
 */
struct catalog_result_name {
	int64_t number;
	const char *name;
};
const char *catalog_result_name(const struct catalog_result_name *names, size_t nr, int64_t number);
const char *catalog_cuda_error(int64_t number);
const char *catalog_cuda_driver_error(int64_t number);

/* Do the bytes of value begin with the row's value_is? */
static inline bool catalog_value_matches(const struct catalog_row *row, uint64_t value)
{
	return !row->value_is || !memcmp(&value, row->value_is, strnlen(row->value_is, 8));
}

/* The row's enum kprof_activity, by its category where it names none. */
uint32_t catalog_row_type(const struct catalog_row *row);

/* Any of the blank-separated globs matches. NULL globs: false. */
bool catalog_match(const char *globs, const char *text);

#endif
