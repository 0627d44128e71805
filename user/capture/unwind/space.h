/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The code in one process's address space: what is executable, which file it is of, how it is unwound. Made for the
 * kernel's unwinder (an array of struct kprof_unwind_mapping) and for the one here (walk.h).
 */
#ifndef KPROF_CAPTURE_SPACE_H
#define KPROF_CAPTURE_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/unwind/made.h"
#include "capture/unwind/modules.h"
#include "kprof/unwind.h"

enum space_kind {
	SPACE_FILE,
	SPACE_JIT,     /* made at run time: no file, or a file that is no ELF file */
	SPACE_VDSO,    /* the kernel's code for user space, with tables of its own */
	SPACE_SPECIAL, /* other code of the kernel's: [vsyscall], [uprobes] */
};

struct space_area {
	enum space_kind kind;
	struct module *module; /* NULL: JIT without a file, SPECIAL */
	uint64_t offset;       /* into the file */
	const char
		*name; /* of one without a module ("[heap]", "" anonymous); valid until a refresh */
};

struct space;

/*
 * Reads the process's mappings. -ESRCH: it is gone. Its modules stay in `ms`, which must live longer. Several
 * processes may share one address space (threads do, and what vfork() has made): the caller knows which.
 */
int space__open(struct modules *ms, pid_t pid, struct space **out);
void space__close(struct space *s);
pid_t space__pid(const struct space *s);
struct modules *space__modules(const struct space *s);
/*
 * Reads the mappings again. 1: what is executable has changed, and the arrays are new; 0: nothing has; -errno: as
 * they were (-ESRCH: the process is gone).
 */
int space__refresh(struct space *s);
/*
 * Brings the mappings up to what the modules are by now: KPROF_UNWIND_TABLE for those that are READY and placed
 * (module->first_page). 1: something has changed. open and refresh do this, too.
 */
int space__settle(struct space *s);
/*
 * Reads the code that was made at run time again. 1: it has changed: tables are to be placed (made_area.first_page), then
 * space__settle() takes them; 0: it has not, or there is none; -errno.
 */
int space__read_made(struct space *s);
/* NULL: there is no such code, as far as was read. */
struct made *space__made(const struct space *s);
/* Is there code at all that space__read_made() would read? */
bool space__has_jit(const struct space *s);

/* In order of address; areas and mappings belong together by index. */
size_t space__nr(const struct space *s);
const struct kprof_unwind_mapping *space__mappings(const struct space *s);
const struct space_area *space__areas(const struct space *s);
/* The index of the mapping that holds the address; SIZE_MAX: none. */
size_t space__find(const struct space *s, uint64_t ip);
/* The address in the module's file (vaddr); the area must have a module with an ELF file. */
static inline uint64_t space_vaddr(const struct kprof_unwind_mapping *m, uint64_t ip)
{
	return ip - m->bias;
}

/* Reads another process's memory: how many bytes from the first one on could be read; -errno. */
ssize_t space_read(pid_t pid, uint64_t address, void *to, size_t bytes);

#endif
