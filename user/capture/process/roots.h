/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The directories that processes see as "/" where that is not ours (containers, chroots): held open, so that debug files can
 * be looked for in them when the process has ended. The mount namespace is not held: what is mounted below them in it, a
 * container's volumes, must not stay busy for our sake, and is out of reach then.
 */
#ifndef KPROF_CAPTURE_ROOTS_H
#define KPROF_CAPTURE_ROOTS_H

#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#define ROOTS_MAX 64 /* each keeps a mount busy */

struct root {
	struct stat mounts, dir;
	int fd; /* dir's */
	char path[32];
};

struct roots {
	size_t nr;
	struct root all[ROOTS_MAX];
};

/* "": it is ours, or cannot be opened, or there are too many. Else a path that is good until roots__close(). */
const char *roots__of(struct roots *all, pid_t pid);
void roots__close(struct roots *all);

#endif
