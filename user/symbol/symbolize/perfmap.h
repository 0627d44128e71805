/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of code made at run time, as a process writes them to /tmp/perf-PID.map (tools/perf/Documentation/jit-interface.txt):
 * "START SIZE name" a line, in hex. Just-in-time compilers use addresses again: what was written later holds.
 */
#ifndef KPROF_SYMBOL_PERFMAP_H
#define KPROF_SYMBOL_PERFMAP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct perfmap;

/*
 * Of a process, as it sees its own /tmp and number; nobody but that process's user, or root, may have written it. -ENOENT:
 * there is none; -EPERM: somebody else's; -ESTALE: last written before the process began; -EFBIG; -ENOMEM. No error text: to have none is the rule.
 */
int perfmap__load(pid_t pid, struct perfmap **out);
/* From the text of such a file. */
int perfmap__parse(const char *text, size_t bytes, struct perfmap **out);
void perfmap__free(struct perfmap *m);
/* Memory that it takes. */
size_t perfmap__bytes(const struct perfmap *m);
/* What holds an address; *start says where it begins. NULL: unknown. Until perfmap__free(). */
const char *perfmap__find(const struct perfmap *m, uint64_t address, uint64_t *start);

#endif
