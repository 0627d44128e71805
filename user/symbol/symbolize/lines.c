// SPDX-License-Identifier: BSD-2-Clause
/* Receives the answers of the process that reads DWARF (dwarf.c), as far as it gets. */
#include "symbol/symbolize/priv.h"

#include <errno.h>
#include <stdlib.h>

#define MAX_OUTPUT (512ull << 20) /* limit for a child's output, in bytes */

struct job {
	const struct symbol_file *file;
	const struct elffile *debug;
	int debug_fd;
};

static int read_dwarf(void *ctx, int fd)
{
	const struct job *j = ctx;

	return symbol_dwarf__write(j->file, j->debug, j->debug_fd, fd) ? 1 : 0;
}

/* Reads one blob, which follows its length. 1: there are no more. */
static int take_blob(struct symbol_child *c, uint64_t *received, struct symbol_strings *strings,
		     struct symbol_knowns *out)
{
	struct symbol_knowns some = {0};
	char *blob;
	uint32_t bytes;
	int err = symbol_child__read(c, &bytes, sizeof(bytes));

	if (err)
		return err;
	*received += bytes;
	if (!bytes || bytes > SYMBOL_BLOB_MAX || *received > MAX_OUTPUT)
		return -EBADMSG;
	blob = malloc(bytes);
	if (!blob)
		return -ENOMEM;
	err = symbol_child__read(c, blob, bytes) ? -EBADMSG : 0;
	if (!err)
		err = symbol_blob__unpack(blob, bytes, 0, strings, &some);
	if (!err)
		err = symbol_knowns__merge(out, &some);
	free(some.all);
	free(blob);
	return err;
}

/*
 * The user whose rights the reading process gets. A file may have been written to attack this
 * process, so it is read with the rights of its owner: users can then harm only themselves, and
 * debug information that only its owner may read can be used. A file of root may belong to a
 * container's root, and is read as the user `nobody`.
 */
static uid_t reader_of(const struct symbol_file *f, const struct elffile *debug)
{
	uid_t owner = elffile__identity(debug)->owner;

	if (!owner)
		owner = elffile__identity(f->elf)->owner;

	return owner ? owner : SYMBOL_CHILD_NOBODY;
}

int symbol_lines__read(struct symbol_file *f, const struct elffile *debug, int debug_fd,
		       uint64_t time_ns, struct symbol_knowns *out)
{
	struct job job = {f, debug, debug_fd >= 0 ? SYMBOL_CHILD_KEPT : -1};
	struct symbol_child_opts opts = {.user = reader_of(f, debug),
					 .only_reads = true,
					 .fd = debug_fd,
					 .time_ns = time_ns};
	struct symbol_child c;
	uint64_t received = 0;
	int err = 0, status;

	*out = (struct symbol_knowns){0};
	if (symbol_child__start(&c, read_dwarf, &job, &opts))
		return -EBADMSG;
	while (!err)
		err = take_blob(&c, &received, &f->strings, out);
	status = symbol_child__end(&c, err != 1);
	f->unconfined = status == SYMBOL_CHILD_UNCONFINED;
	if (err == 1)
		err = status ? -EBADMSG : 0;
	return err;
}
