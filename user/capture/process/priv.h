/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is made of texts that others write (the kernel with names of the process's choice, the
 * process, its files), apart from reading them: for this room, and for fuzzers.
 */
#ifndef KPROF_CAPTURE_PROCESS_PRIV_H
#define KPROF_CAPTURE_PROCESS_PRIV_H

#include "capture/process/process.h"

/* ---- proc.c ---- */

/* Fills in what /proc/PID/stat says, and changes the text. -EPROTO. */
int proc_parse_stat(char *text, struct proc_info *out);
/* The same for /proc/PID/status: ns_pid (out->pid must be set), uid, and the process's PID. */
int proc_parse_status(const char *text, struct proc_info *out, pid_t *tgid);
/*
 * The longest path in the text of /proc/PID/cgroup, which is changed: machines with hierarchies of
 * version 1 name the container in some of them only. "": there is none.
 */
const char *proc_parse_cgroup(char *text);
/* The arguments, which NULs separate, as proc_cmdline() shows them; malloc'ed. NULL: no memory. */
char *proc_escape_args(const char *args, size_t bytes);
/* The value of a variable in a block of NUL-terminated "NAME=VALUE"; NULL: it has none. */
const char *proc_find_variable(const char *block, size_t bytes, const char *name);

/* ---- discover.c ---- */

/* The version in a file of Python; left as it is if the file has none. */
void discover_parse_version(const char *text, const char *key,
			    char version[DISCOVER_VERSION_BYTES]);

#endif
