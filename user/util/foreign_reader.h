/* SPDX-License-Identifier: BSD-2-Clause */
/* What foreign.c asks of the reader, and the reader's side of it. Only foreign.c uses this. */
#ifndef KPROF_UTIL_FOREIGN_READER_H
#define KPROF_UTIL_FOREIGN_READER_H

#include <limits.h>
#include <stdint.h>

#define FOREIGN_BUFFER_BYTES (256u << 10)

/* Memory of both. */
struct foreign_shared {
	_Atomic uint32_t progress; /* changes while something is copied */
	char buffer[FOREIGN_BUFFER_BYTES];
};

/*
 * A file that is copied has at most so many bytes, and so have all of a reader's: libraries of a
 * framework with their devices' code are up to 3 GB.
 */
#define FOREIGN_COPY_BYTES (4ull << 30)

enum foreign_what { FOREIGN_MEMORY, FOREIGN_TEXT, FOREIGN_OPEN };

struct foreign_request {
	uint32_t what;
	int32_t pid;
	int32_t flags;
	uint64_t address, bytes; /* FOREIGN_TEXT: at most so many bytes */
	char root[64];
	char path[PATH_MAX]; /* last, because it is sent only as far as it is used */
};

/*
 * Serves one request. Returns a number of bytes, which lie in s->buffer; a descriptor, to be
 * passed on and closed; or -errno.
 */
int64_t foreign_serve(const struct foreign_request *r, struct foreign_shared *s);
/* Opens what a link of procfs refers to, as O_PATH: without asking the file's file system. */
int foreign_name_link(const char *link);
/* Opens for reading the regular file that an O_PATH descriptor refers to, which stays open. */
int foreign_reopen(int named);
/* The process in a path that begins with /proc/PID; 0: it is this process, or there is none. */
int32_t foreign_pid(const char *path);

#endif
