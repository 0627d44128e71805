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

struct address_space { /* to be read by all, and changed by these functions only */
	struct modules *modules;
	pid_t pid;
	struct proc_maps *maps; /* the mappings; names of areas point into it */
	uint64_t fingerprint;   /* hash over the executable mappings */
	/*
	 * The executable mappings in order of address, and what they contain: an area and its
	 * mapping have the same index.
	 */
	struct kprof_unwind_mapping *mappings;
	struct code_area *areas;
	size_t nr;
	struct jit_code *jit; /* JIT code as last read; NULL: none was */
	uint8_t runtime;      /* what runs it; 0: not looked. Set by sample/runtimes.c */
};

/*
 * Reads the mappings of a process. -ESRCH: the process is gone. Its modules stay in `ms`, which
 * must live longer than the address space. Several processes may share one address space (after
 * vfork()): the caller knows which.
 */
int address_space__open(struct modules *ms, pid_t pid, struct address_space **out);
/*
 * The same of a process that may have ended, from what was told of its mappings of files' code, the
 * oldest first. Files are those that were met before: see modules__known(). -ENOMEM.
 */
int address_space__of_maps(struct modules *ms, const struct proc_map *maps, size_t nr,
			   struct address_space **out);
void address_space__close(struct address_space *s);
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
/* Is there any code that address_space__read_jit_code() would read? */
bool address_space__has_jit(const struct address_space *s);

/*
 * How the code of a mapping is walked, by the present state of its module: in the kernel, or here
 * (walk.h), where the pages of each table count from 0.
 */
void address_space__how(const struct address_space *s, size_t i, bool here,
			struct kprof_unwind_mapping *m);
/* The index of the mapping that holds the address; SIZE_MAX: none. */
size_t address_space__find(const struct address_space *s, uint64_t ip);
/* The address in the module's file (vaddr); the area must have a module with an ELF file. */
static inline uint64_t mapping_vaddr(const struct kprof_unwind_mapping *m, uint64_t ip)
{
	return ip - m->bias;
}

#endif
