/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The code in one process's address space: the executable mappings, the file of each, and how it is
 * unwound. Used by the unwinder in the kernel (as an array of struct kprof_unwind_mapping) and by
 * the one in user space (walk.h).
 */
#ifndef KPROF_CAPTURE_ADDRESS_SPACE_H
#define KPROF_CAPTURE_ADDRESS_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/unwind/jit_code.h"
#include "capture/unwind/modules.h"
#include "kprof/unwind.h"

enum code_area_kind {
	CODE_AREA_FILE,
	CODE_AREA_JIT,     /* JIT code: no file, or a file that is no ELF file */
	CODE_AREA_VDSO,    /* the kernel's code for user space, with tables of its own */
	CODE_AREA_SPECIAL, /* other mappings that the kernel makes: [vsyscall], [uprobes] */
};

struct code_area {
	enum code_area_kind kind;
	struct module *module; /* NULL for JIT code without a file, and for SPECIAL */
	uint64_t offset;       /* of the mapping in its file, bytes */
	/* name of a mapping without a module ("[heap]"; "" if anonymous); valid until a refresh */
	const char *name;
};

struct address_space;

/*
 * Reads the mappings of a process. -ESRCH: the process is gone. Its modules stay in `ms`, which
 * must live longer than the address space. Several processes may share one address space (after
 * vfork()): the caller knows which.
 */
int address_space__open(struct modules *ms, pid_t pid, struct address_space **out);
void address_space__close(struct address_space *s);
pid_t address_space__pid(const struct address_space *s);
struct modules *address_space__modules(const struct address_space *s);
/*
 * Reads the mappings again. 1: the executable ones have changed, and the arrays are new; 0: they
 * have not; a negative errno: the arrays are as they were (-ESRCH: the process is gone).
 */
int address_space__refresh(struct address_space *s);
/*
 * Updates the mappings to the present state of their modules: KPROF_UNWIND_TABLE for those that are
 * READY and whose table is placed in the kernel (module->first_page). 1: something has changed.
 * address_space__open() and __refresh() do this, too.
 */
int address_space__settle(struct address_space *s);
/*
 * Reads the process's JIT code again. 1: it has changed; the caller places the new tables in the
 * kernel (jit_area.first_page), and then calls address_space__settle(). 0: it has not changed, or
 * there is none. Else a negative errno.
 */
int address_space__read_jit_code(struct address_space *s);
/* The JIT code as last read; NULL: none was found. */
struct jit_code *address_space__jit_code(const struct address_space *s);
/* Is there any code that address_space__read_jit_code() would read? */
bool address_space__has_jit(const struct address_space *s);

/* Areas and mappings are in order of address; an area and its mapping have the same index. */
size_t address_space__nr(const struct address_space *s);
const struct kprof_unwind_mapping *address_space__mappings(const struct address_space *s);
const struct code_area *address_space__areas(const struct address_space *s);
/* The index of the mapping that holds the address; SIZE_MAX: none. */
size_t address_space__find(const struct address_space *s, uint64_t ip);
/* The address in the module's file (vaddr); the area must have a module with an ELF file. */
static inline uint64_t mapping_vaddr(const struct kprof_unwind_mapping *m, uint64_t ip)
{
	return ip - m->bias;
}

#endif
