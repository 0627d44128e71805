/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files mapped read-only that may be cut short meanwhile. What is not in the file any more reads as
 * zeros and mapped__cut() says so: without this, touching it ends the process by SIGBUS. Zeros
 * follow the last byte, too.
 *
 * The first mapped__new() installs a handler for SIGBUS, which hands what is not about these
 * mappings to the handler that was there before. A thread that reads them must not block that
 * signal.
 */
#ifndef KPROF_UTIL_MAPPED_H
#define KPROF_UTIL_MAPPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mapped;
/* The first bytes (> 0) of a file; the descriptor is not needed afterwards. -errno. */
int mapped__new(int fd, size_t bytes, struct mapped **out);
void mapped__free(struct mapped *m);
/* Until mapped__free(). */
const uint8_t *mapped__bytes(const struct mapped *m);
/* Something was read that could not be: the file is shorter now, or its disk has failed. */
bool mapped__cut(const struct mapped *m);
/* Gives back the memory that reading has filled. */
void mapped__forget(const struct mapped *m);

#endif
