/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names other than ELF files' symbols (symbolize/): mangled names made readable (demangle.c,
 * demangle_short.c), functions of the kernel (kallsyms.c) and of JIT compilers (perfmap.c), and
 * PyTorch's operators (schema.c) and how their arguments are passed (signature.h).
 */
#ifndef KPROF_SYMBOL_NAMES_H
#define KPROF_SYMBOL_NAMES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbol/elf/elf.h"
#include "symbol/names/signature.h"

/* ---- mangled names ---- */

/*
 * Demangles names of C++ (Itanium ABI) and Rust (legacy and v0) with GNU's libiberty. Returns a
 * malloc'ed string: the demangled name, or a copy of the input if it cannot be demangled or the
 * result would be too long (a hundred characters can stand for gigabytes). NULL: no memory.
 */
char *demangle(const char *mangled);
/* The same for a bare type's name, as typeinfo has it: "N5torch8autograd4NodeE". */
char *demangle_type(const char *typeinfo_name);
/*
 * From now on, as long as this process is root, a child process without rights demangles names.
 */
void demangle_apart(void);
/*
 * Shortens a name for display: scope and function, without return type, parameters, qualifiers, ABI
 * tags and clone suffixes, with template arguments as "<...>":
 *   void at::native::(anonymous namespace)::add<float, 4>(float*)::{lambda(int)#1}::operator()(int)
 *   const
 *   at::native::(anonymous namespace)::add<...>::{lambda#1}::operator()
 * mangled: as in the symbol table; demangled: what demangle() returned for it. A name that was not
 * mangled stays as it is. Malloc'ed; NULL: no memory.
 */
char *demangle_short(const char *mangled, const char *demangled);

/* ---- the kernel ---- */

/*
 * Names of kernel addresses, from /proc/kallsyms. The file is read before privileges are dropped,
 * because the kernel shows addresses only to privileged processes (kptr_restrict, CAP_SYSLOG).
 */
struct kallsyms;

struct kallsyms_symbol {
	const char *name;   /* valid until kallsyms__free() */
	const char *module; /* without brackets; "": the kernel itself */
	uint64_t address;   /* where the function begins */
};

/*
 * Reads the file at path; NULL: /proc/kallsyms. -EACCES: the kernel hides the addresses (cause and
 * hint are set); -ENOENT: there is no such file; -ENOMEM; -EFBIG.
 */
int kallsyms__load(const char *path, struct kallsyms **out);
void kallsyms__free(struct kallsyms *k);
/*
 * Finds the function that contains an address; it extends to the next symbol of any kind. 0,
 * -ENOENT.
 */
int kallsyms__find(const struct kallsyms *k, uint64_t address, struct kallsyms_symbol *out);

/* ---- JIT code ---- */

/*
 * Names of JIT code, as a process writes them to /tmp/perf-PID.map
 * (tools/perf/Documentation/jit-interface.txt): a line "START SIZE name" for each function, numbers
 * in hexadecimal. Compilers reuse addresses: of lines that overlap, the later one is valid.
 */
struct perfmap;

/*
 * Reads a process's map, from the process's own /tmp and under the PID that it has in its own PID
 * namespace (ns_pid). The file must have been written by that process's user or root. -ENOENT:
 * there is none; -EPERM: it is another user's; -ESTALE: it was last written before the process
 * began (start_ticks: clock ticks since boot); -EFBIG; -ENOMEM. No error is set, because most
 * processes have no such file.
 */
int perfmap__load(pid_t pid, pid_t ns_pid, uid_t user, uint64_t start_ticks, struct perfmap **out);
/* Reads a map from the text of such a file. */
int perfmap__parse(const char *text, size_t bytes, struct perfmap **out);
void perfmap__free(struct perfmap *m);
/* How many bytes of memory the map takes. */
size_t perfmap__bytes(const struct perfmap *m);
/*
 * The name of the function that contains an address; *start: where the function begins. NULL:
 * unknown. The name is valid until perfmap__free().
 */
const char *perfmap__find(const struct perfmap *m, uint64_t address, uint64_t *start);

/* ---- PyTorch's operators ---- */

/*
 * PyTorch's operator schemas, read from strings in the library's .rodata ("add.Tensor(Tensor self,
 * …) -> Tensor"). They give the name that users know at::_ops::add_Tensor by (aten::add, overload
 * Tensor). A table in kprof could become wrong with a new release.
 */
struct schemas;
int schemas__load(const struct elffile *e, struct schemas **out);
/*
 * Finds a schema by struct_name ("add_Tensor"). On success *name is "aten::add", *overload is
 * "Tensor" or "", and *schema is the whole text, or "" where the library only has the name; they
 * are valid as long as s. -ENOENT: unknown (callers then use "aten::" + struct_name).
 */
int schemas__find(const struct schemas *s, const char *struct_name, const char **name,
		  const char **overload, const char **schema);
void schemas__free(struct schemas *s);

/*
 * Extracts the struct's name from the mangled name of a member of at::_ops: "add_Tensor" from
 * "_ZN2at4_ops10add_Tensor4callE…". -ENOENT: another kind of symbol; -ENAMETOOLONG: longer than
 * buf.
 */
int schema_struct_name(const char *mangled, char *buf, size_t bytes);

#endif
