// SPDX-License-Identifier: BSD-2-Clause
/* The files whose code a process maps, without a snapshot of its mappings. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/process/process.h"
#include "util/util.h"

#define MAPS_MAX_BYTES (64u << 20)

/* The n-th field of a line, from 0; fields are separated by blanks. */
static char *field(char *line, int n)
{
	for (; n; n--) {
		line += strcspn(line, " ");
		line += strspn(line, " ");
	}
	return line;
}

/* "start-end perms offset major:minor inode   path"; proc(5). */
static void look_at_line(char *line, proc_code_fn fn, void *ctx)
{
	static const char deleted[] = " (deleted)";
	size_t len, tail = sizeof(deleted) - 1;
	char *perms = field(line, 1), *path;
	uint64_t inode;

	if (strlen(perms) < 5 || perms[2] != 'x')
		return;
	inode = strtoull(field(perms, 3), NULL, 10);
	path = field(perms, 4);
	if (!inode || path[0] != '/')
		return;
	len = strlen(path);
	if (len > tail && !strcmp(path + len - tail, deleted))
		path[len - tail] = '\0';
	fn(ctx, inode, proc_basename(path));
}

int proc_code_files(pid_t pid, proc_code_fn fn, void *ctx)
{
	char path[40], *text;
	size_t bytes;
	int err;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	err = read_file(path, MAPS_MAX_BYTES, &text, &bytes);
	if (err)
		return err;
	for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		look_at_line(line, fn, ctx);
	}
	free(text);
	return 0;
}
