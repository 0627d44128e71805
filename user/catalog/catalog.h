/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables of what kprof can probe: which libraries a framework or a device runtime consists of,
 * which symbols to probe in them, what the events are called and where their names are found. To
 * add a framework, add a table; no code outside of the catalog knows a symbol's name.
 */
#ifndef KPROF_CATALOG_H
#define KPROF_CATALOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "catalog/collective.h"
#include "catalog/message.h"
#include "catalog/sequence.h"
#include "kprof/activity.h"
#include "kprof/wire.h"

enum catalog_shape {
	CATALOG_SPAN,        /* from the function's entry to its return, seen at the return site */
	CATALOG_RANGE_BEGIN, /* opens a range that a later call on the same thread closes */
	CATALOG_RANGE_END,   /* closes the thread's innermost range; is no span itself */
	CATALOG_INSTANT,     /* one moment, without a duration */
};

enum catalog_naming {
	CATALOG_NAME_FIXED, /* the row's .name */
	/* the class in the symbol's name, looked up in the library's operator schemas */
	CATALOG_NAME_SCHEMA,
	CATALOG_NAME_TEXT, /* the text read at the probe */
	/* value is an object's vtable pointer; the name is that of its dynamic type */
	CATALOG_NAME_VTABLE,
	CATALOG_NAME_SYMBOL, /* the symbol's name without the row's suffixes */
};

/*
 * Offsets that differ between releases, and are learnt from the library's own code
 * (capture/probe/layout.c).
 */
enum catalog_layout {
	CATALOG_LAYOUT_NONE,
	CATALOG_LAYOUT_FIELD,     /* of the first field that the function layout_symbol reads */
	CATALOG_LAYOUT_PYUNICODE, /* sizeof(PyASCIIObject) of the process's CPython */
};

/* The kind of an argument that is read at the probe, which decides how it is recorded. */
enum catalog_arg_kind {
	CATALOG_ARG_NONE,
	CATALOG_ARG_UNSIGNED,
	CATALOG_ARG_UNSIGNED32, /* 32 bits; the upper half of the register is undefined */
	CATALOG_ARG_SIGNED32,
	CATALOG_ARG_POINTER,
	CATALOG_ARG_BYTES,
	CATALOG_ARG_ENUM,    /* a number that .names has a name for */
	CATALOG_ARG_DIM3_XY, /* x | y << 32; the next argument is z */
	CATALOG_ARG_DIM3_Z,
	CATALOG_ARG_FUNCTION, /* an address in the process; the symbol there is recorded */
	CATALOG_ARG_STREAM,   /* a stream's handle */
	CATALOG_ARG_DIM3_X,   /* three arguments, in this order: x, y, z */
	CATALOG_ARG_DIM3_Y,
	/* Of NVTX's attributes, for rows with a text; what is not set is not recorded. */
	CATALOG_ARG_NVTX_CATEGORY, /* 32 bits */
	CATALOG_ARG_NVTX_COLOUR,   /* 32 bits of its type, 32 of ARGB */
	CATALOG_ARG_NVTX_TYPE,     /* 32 bits: the next argument's type */
	CATALOG_ARG_NVTX_PAYLOAD,
};

/* What a call says of the program's memory. Its arguments are read, its end is not looked for. */
enum catalog_memory {
	CATALOG_MEMORY_NONE,
	CATALOG_MEMORY_ALLOCATED, /* arguments: address, size in bytes */
	CATALOG_MEMORY_FREED,     /* argument: address */
	CATALOG_MEMORY_FAILED,    /* argument: size in bytes: there was not so much */
	/*
	 * Arguments: address, size in bytes (of a free: negative), bytes that the allocator has
	 * given out, bytes that it has reserved, device. An allocator of any device's memory says
	 * this of itself; those of the CPU's, which also say the above, are left out.
	 */
	CATALOG_MEMORY_REPORTED,
	/* arguments: size in bytes, given out, reserved, device */
	CATALOG_MEMORY_REPORTED_FAILED,
};

/* A c10::Device as an argument, whose upper bytes are undefined: its type, and its number. */
#define CATALOG_DEVICE_TYPE(arg) ((int8_t)(arg))
#define CATALOG_DEVICE_ID(arg) ((int8_t)((arg) >> 8))

struct catalog_arg {
	const char *name; /* key in the trace's args: "grid", "stream", "bytes" */
	enum catalog_arg_kind kind;
	struct kprof_arg from;
	const char *const *names; /* ENUM: names by value, NULL-terminated */
	const char *strip; /* FUNCTION: a prefix that compilers add to the name; NULL: none */
};

/* How the inputs of a call are found, which are recorded where that is asked for. */
enum catalog_inputs {
	CATALOG_INPUTS_NONE,
	CATALOG_INPUTS_SIGNATURE, /* the function's parameters, by its symbol and its schema */
	/* the tensors of the std::vector<Tensor> that the function's third argument points to */
	CATALOG_INPUTS_VECTOR_ARG3,
	/*
	 * the values on the stack whose address is the argument behind the one that the text is
	 * found by: an operator's are the uppermost, a function has all of them
	 */
	CATALOG_INPUTS_BOXED,
	CATALOG_INPUTS_STACK,
};

/* How a call's result, an int, is recorded: as "error" where it is not 0. */
struct catalog_result {
	/* the names that are recorded; an unknown result is recorded as a number */
	const struct catalog_result_name *names;
	/* a result that is an answer and not an error: recorded as "result"; 0: there is none */
	int64_t answer;
};

struct catalog_row {
	const char *source;  /* what its events are counted under: "operators", "autograd", … */
	const char *library; /* glob on the base name of the library's file */
	const char *symbols; /* globs on the mangled name, separated by blanks */
	const char *unless;  /* globs that the symbol must not match; NULL: none */
	/* ends of the names of a symbol's variants, ignored in names; NULL: none */
	const char *suffixes;
	const char *category; /* category in traces: "cpu_op", "user_annotation" */
	/*
	 * The scope of the framework's own that its events have: 1 << enum kprof_scope
	 * (kprof/options.h); 0: none
	 */
	uint32_t scope;
	enum catalog_shape shape;
	enum catalog_naming naming;
	/* FIXED: the name. Else a printf format with one %s for it; NULL: the name alone */
	const char *name;
	/* TEXT: use only what follows the last '.' (the method of a qualified name) */
	bool last_component;
	const char *keep_scope; /* VTABLE: globs of class names that are shown with their scope */
	const char *strip; /* leading C++ scope to remove from a type's name: "torch::autograd::" */
	struct kprof_recipe value, text;
	/*
	 * A learnt layout replaces one offset of the text recipe: off[layout_at], or .add when
	 * layout_at is -1.
	 */
	enum catalog_layout layout;
	/* glob on the library that has layout_symbol and text_for_vtable */
	const char *layout_library;
	const char *layout_symbol; /* globs separated by blanks */
	int layout_at;
	/* Read the text only for objects of this class (its vtable symbol); NULL: always. */
	const char *text_for_vtable;
	/* When the text matches one of these globs, the hit is something else: */
	const char *range_end_text; /* a RANGE_END; NULL: none */
	const char *ignore_text;    /* ignored; globs separated by blanks; NULL: none */
	/*
	 * The row is a more expensive or less exact substitute: it is used only where no symbol of
	 * the library matches these globs.
	 */
	const char *only_without;
	/* the library (glob) whose symbols only_without is about; NULL: the row's own */
	const char *only_without_in;
	/* the 2 to 8 characters that value must begin with; other hits are ignored */
	const char *value_is;
	bool heap_object; /* RANGE_END: ignored when value points to the thread's own stack */
	/*
	 * Arguments, up to the first without a name. A row that has any gets probes of the kind
	 * ATTACH_BEGIN_ARGS.
	 */
	struct catalog_arg args[KPROF_WIRE_MAX_ARGS];
	/* not NULL: args are those of a collective (collective.h), and have no names */
	const struct catalog_collective *collective;
	const struct catalog_message *message; /* the same of a call of MPI (message.h) */
	const struct catalog_result *result;   /* NULL: the result is not read */
	enum catalog_inputs inputs;
	/*
	 * How the calls' sequence numbers are found. TENSOR: by the first tensor among the
	 * function's parameters; NODE: the argument is the node
	 */
	enum kprof_sequence_rule sequence;
	enum kprof_reg sequence_arg;
	enum kprof_activity activity; /* the events' type; NONE: the type of their category */
	/*
	 * A call directly inside of a span of one of these categories is a part of it, and is not
	 * recorded.
	 */
	const char *folded_into; /* separated by blanks; NULL: none */
	/* not NONE: an INSTANT whose probe is placed only where memory is recorded */
	enum catalog_memory memory;
	bool optional;    /* some builds lack the symbol without anything being lost */
	const char *lost; /* what is not seen where no symbol matches; `kprof check -v` prints it */
};

struct catalog_framework {
	const char *name; /* "pytorch" */
	/* NULL-terminated globs; a process with a match mapped uses the framework */
	const char *const *libraries;
	/*
	 * Where the release's number is found: a text file beside the library or in the package;
	 * NULL: in none.
	 */
	const char *version_file; /* relative to the library's directory: "../version.py" */
	const char *version_key;  /* "__version__" */
	/*
	 * Python package ("torch"), for distributions that keep the library elsewhere: the version
	 * file is then looked for beside a mapped module of the package
	 */
	const char *package;
	/* globs of the most used operators, probed first where probes are scarce */
	const char *common;
	const char *const *hidden; /* names that the framework's own profiler never shows */
	/*
	 * The function from whose code the layout of tensors is learnt (capture/probe/tensors.h);
	 * NULL: there are none
	 */
	const char *tensor_library, *tensor_symbol;
	/*
	 * The library whose operators the agent can observe by callbacks, and the function with
	 * which it registers them; NULL: it cannot
	 */
	const char *observer_library, *observer_symbol;
	/*
	 * Functions of that library from which it is learnt how inputs are read
	 * (capture/probe/observer_layout.c): a constructor of at::RecordFunction, one that reads
	 * its inputs, one that reads the rest of it for the framework's own profiler, and
	 * c10::IValue::isTensorList(). NULL: they can't be
	 */
	const char *observer_constructor, *observer_inputs, *observer_begins, *observer_is_list;
	const struct catalog_sequence *sequence; /* NULL: its operators have no sequence numbers */
	const struct catalog_collectives *collectives; /* NULL: it has none that say more */
	const struct catalog_row *rows;
	size_t nr_rows;
	/* a runtime of a device or of annotations: `list` does not show it as a framework */
	bool is_runtime;
	/* whose annotations they are, a bit of enum kprof_only; 0: it has other events */
	uint32_t annotations;
	/* a device runtime's descriptor (runtime.h); else NULL */
	const struct catalog_runtime *runtime;
	/*
	 * For a library that may also be linked statically: a file that defines embedded_symbol
	 * contains it, and is probed by the rows for a library of the name embedded_as. The program
	 * itself is searched for the symbol, and all mapped files if a library that matches
	 * embedded_with is mapped.
	 */
	const char *embedded_symbol, *embedded_as, *embedded_with;
};

struct catalog_runtime; /* runtime.h */

/*
 * Every framework and runtime that has rows, each of which is in a file of its own as catalog_NAME.
 * Commands list device runtimes in this order.
 */
/* clang-format off */
#define CATALOG_FRAMEWORKS(one) \
	one(pytorch) \
	one(mpi) \
	one(itt) \
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
 * The row of functions of any program, which are probed as somebody has asked for them by their
 * name; no framework has it.
 */
extern const struct catalog_row catalog_function;

/* Names of results ("cudaErrorInvalidValue"); a NULL .name ends the table. */
struct catalog_result_name {
	int64_t number;
	const char *name;
};
extern const struct catalog_result_name catalog_cuda_errors[], catalog_cuda_driver_errors[];
/* NULL: an unknown number. */
const char *catalog_result_name(const struct catalog_result_name *names, int64_t number);
/* How the results of a type's calls are recorded; NULL: they are not. */
const struct catalog_result *catalog_result_of(uint32_t activity);
/* Name and number of a result that is not 0. Returns whether it is an error. */
#define CATALOG_RESULT_BYTES 128
bool catalog_result_text(const struct catalog_result *result, int64_t value,
			 char text[CATALOG_RESULT_BYTES]);

/* Whether the bytes of value begin with the row's value_is. */
static inline bool catalog_value_matches(const struct catalog_row *row, uint64_t value)
{
	return !row->value_is || !memcmp(&value, row->value_is, strnlen(row->value_is, 8));
}

/* The name of the type of a tensor's elements, by PyTorch's number; NULL: an unknown number. */
const char *catalog_element_type(uint32_t number);
/*
 * The name that PyTorch itself has for it ("Float"); NULL: an unknown number, or elements that have
 * no whole bytes.
 */
const char *catalog_scalar_type(uint32_t number);
/* The size of an element of the type with that name; 0: there is none. */
uint32_t catalog_scalar_bytes(const char *name);
/* The same by the name that catalog_element_type() gives; 0: not known, or no whole bytes. */
uint32_t catalog_element_bytes(const char *name);

/* The scopes that rows of any framework have: bits 1 << enum kprof_scope. */
uint32_t catalog_scopes(void);

/* The row's enum kprof_activity; that of its category if the row names none. */
uint32_t catalog_row_type(const struct catalog_row *row);

/* Whether any of the blank-separated globs matches the text. NULL globs: false. */
bool catalog_match(const char *globs, const char *text);

#endif
