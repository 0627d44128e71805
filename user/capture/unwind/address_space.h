/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The code in one process's address space: what is executable, which file it is of, how it is
 * unwound. Made for the kernel's unwinder (an array of struct kprof_unwind_mapping) and for the one
 * here (walk.h).
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
	CODE_AREA_SPECIAL, /* other code of the kernel's: [vsyscall], [uprobes] */
};

struct code_area {
	enum code_area_kind kind;
	struct module *module; /* NULL: JIT without a file, SPECIAL */
	uint64_t offset;       /* into the file */
	/* of one without a module ("[heap]", "" anonymous); valid until a refresh */
	const char *name;
};

struct address_space;

/*
 * Reads the process's mappings. -ESRCH: it is gone. Its modules stay in `ms`, which must live
 * longer. Several processes may share one address space (threads do, and what vfork() has made):
 * the caller knows which.
 */
int address_space__open(struct modules *ms, pid_t pid, struct address_space **out);
void address_space__close(struct address_space *s);
pid_t address_space__pid(const struct address_space *s);
struct modules *address_space__modules(const struct address_space *s);
/*
 * Reads the mappings again. 1: what is executable has changed, and the arrays are new; 0: nothing
 * has; -errno: as they were (-ESRCH: the process is gone).
 */
int address_space__refresh(struct address_space *s);
/*
 * Brings the mappings up to what the modules are by now: KPROF_UNWIND_TABLE for those that are
 * READY and placed (module->first_page). 1: something has changed. open and refresh do this, too.
 */
int address_space__settle(struct address_space *s);
/*
 * Reads the process's JIT code again. 1: it has changed: tables are to be placed
 * (jit_area.first_page), then address_space__settle() takes them; 0: it has not, or there is none;
 * -errno.
 */
int address_space__read_jit_code(struct address_space *s);
/* NULL: there is no such code, as far as was read. */
struct jit_code *address_space__jit_code(const struct address_space *s);
/* Is there code at all that address_space__read_jit_code() would read? */
bool address_space__has_jit(const struct address_space *s);

/* In order of address; areas and mappings belong together by index. */
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
