/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files mapped read-only, which other processes may truncate at any time. Touching a page that is
 * no longer in the file would end the process by SIGBUS; with this, such pages read as zeros and
 * mapped__cut() reports it. A page of zeros also follows the file's last page.
 *
 * The first mapped__new() installs a handler for SIGBUS, which passes signals that are not about
 * these mappings to the previous handler. A thread that reads the mappings must not block SIGBUS.
 */
#ifndef KPROF_UTIL_MAPPED_H
#define KPROF_UTIL_MAPPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mapped;
/* Maps the first `bytes` (> 0) of a file; the descriptor is not needed afterwards. -errno. */
int mapped__new(int fd, size_t bytes, struct mapped **out);
void mapped__free(struct mapped *m);
/* The mapped bytes, valid until mapped__free(). */
const uint8_t *mapped__bytes(const struct mapped *m);
/* True if pages were read that could not be: the file is shorter now, or its disk has failed. */
bool mapped__cut(const struct mapped *m);
/* Releases the memory of the pages read so far. They can be read again. */
void mapped__forget(const struct mapped *m);

#endif
