/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What things are called, apart from ELF files' symbols (symbolize/): mangled names made readable
 * (demangle.c, demangle_short.c), functions of the kernel (kallsyms.c) and of JIT compilers
 * (perfmap.c), PyTorch's operators (schema.c).
 */
#ifndef KPROF_SYMBOL_NAMES_H
#define KPROF_SYMBOL_NAMES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbol/elf/elf.h"

/* ---- mangled names ---- */

/*
 * Names of C++ (Itanium ABI) and Rust (legacy and v0), through GNU's libiberty. Returns a malloc'ed
 * string that the caller frees: the demangled name, or a copy of what could not be demangled or
 * would take too much room: some hundred characters can be made to stand for gigabytes. NULL: no
 * memory.
 */
char *demangle(const char *mangled);
/* The same for a bare type's name, as typeinfo has it: "N5torch8autograd4NodeE". */
char *demangle_type(const char *typeinfo_name);
/*
 * For show: where a function lies and what it is called, without return type, parameters,
 * qualifiers, ABI tags and clone suffixes, template arguments as "<...>":
 *   void at::native::(anonymous namespace)::add<float, 4>(float*)::{lambda(int)#1}::operator()(int)
 *   const
 *   at::native::(anonymous namespace)::add<...>::{lambda#1}::operator()
 * mangled: as the symbol table has it; demangled: what demangle() returned for it. A name that was
 * not mangled stays as it is. Malloc'ed; NULL: no memory.
 */
char *demangle_short(const char *mangled, const char *demangled);

/* ---- the kernel ---- */

/*
 * Names of kernel addresses, from /proc/kallsyms. It is read before privileges are given up, since
 * the kernel shows addresses to none but the privileged (kptr_restrict, CAP_SYSLOG).
 */
struct kallsyms;

struct kallsyms_symbol {
	const char *name;   /* until kallsyms__free() */
	const char *module; /* without brackets; "": the kernel itself */
	uint64_t address;   /* where it begins */
};

/*
 * path NULL: /proc/kallsyms. -EACCES: the kernel hides the addresses (cause and hint set); -ENOENT:
 * it has no such file; -ENOMEM; -EFBIG.
 */
int kallsyms__load(const char *path, struct kallsyms **out);
void kallsyms__free(struct kallsyms *k);
/* The function that holds an address, up to the next symbol of any kind. 0, -ENOENT. */
int kallsyms__find(const struct kallsyms *k, uint64_t address, struct kallsyms_symbol *out);

/* ---- JIT code ---- */

/*
 * Names of JIT code, as a process writes them to /tmp/perf-PID.map
 * (tools/perf/Documentation/jit-interface.txt): a line "START SIZE name", in hexadecimal, for each
 * function. Compilers use addresses again: the later line holds.
 */
struct perfmap;

/*
 * A process's file, in its own /tmp and with the PID that it has there. Only that process's user,
 * or root, may have written it. -ENOENT: there is none; -EPERM: another user's; -ESTALE: last
 * written before the process began; -EFBIG; -ENOMEM. No error is set: most processes have none.
 */
int perfmap__load(pid_t pid, struct perfmap **out);
/* From the text of such a file. */
int perfmap__parse(const char *text, size_t bytes, struct perfmap **out);
void perfmap__free(struct perfmap *m);
/* Memory that it takes. */
size_t perfmap__bytes(const struct perfmap *m);
/* What holds an address; *start says where it begins. NULL: unknown. Until perfmap__free(). */
const char *perfmap__find(const struct perfmap *m, uint64_t address, uint64_t *start);

/* ---- PyTorch's operators ---- */

/*
 * PyTorch's operator schemas, read from the library's own strings ("add.Tensor(Tensor self, …) ->
 * Tensor" in .rodata): they say how at::_ops::add_Tensor is called by users (aten::add, overload
 * Tensor) with no table of ours that a release could make untrue.
 */
struct schemas;
int schemas__load(const struct elffile *e, struct schemas **out);
/*
 * struct_name: "add_Tensor". On success *name is "aten::add", *overload "Tensor" or "", *schema the
 * whole text, "" where the library has only the name; they live as long as s. -ENOENT: unknown
 * (then a caller uses "aten::" + struct_name).
 */
int schemas__find(const struct schemas *s, const char *struct_name, const char **name,
		  const char **overload, const char **schema);
void schemas__free(struct schemas *s);

/*
 * The struct's name in a mangled member of at::_ops: "_ZN2at4_ops10add_Tensor4callE…" gives
 * "add_Tensor". -ENOENT: another symbol; -ENAMETOOLONG: longer than buf.
 */
int schema_struct_name(const char *mangled, char *buf, size_t bytes);

#endif
