/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KPROF_DEMANGLE_H
#define KPROF_DEMANGLE_H
#include <stddef.h>
/*
 * Names of C++ (Itanium ABI) and Rust (legacy and v0), through GNU's libiberty. Returns a malloc'ed string that the
 * caller frees: the demangled name, or a copy of what could not be demangled or would take too much room: some
 * hundred characters can be made to stand for gigabytes. NULL: no memory.
 */
char *demangle(const char *mangled);
/* The same for a bare type's name, as typeinfo has it: "N5torch8autograd4NodeE". */
char *demangle_type(const char *typeinfo_name);
/*
 * For show: where a function lies and what it is called, without return type, parameters, qualifiers, ABI tags
 * and clone suffixes, template arguments as "<...>":
 *   void at::native::(anonymous namespace)::add<float, 4>(float*)::{lambda(int)#1}::operator()(int) const
 *   at::native::(anonymous namespace)::add<...>::{lambda#1}::operator()
 * Of what the symbol table has and what demangle() made of it: a name that was not mangled stays as it is. Malloc'ed;
 * NULL: no memory.
 */
char *demangle_short(const char *mangled, const char *demangled);
#endif
