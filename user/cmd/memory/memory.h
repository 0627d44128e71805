/* SPDX-License-Identifier: BSD-2-Clause */
/* kprof memory: what is allocated and not freed, recorded in the background for hours. */
#ifndef KPROF_CMD_MEMORY_MEMORY_H
#define KPROF_CMD_MEMORY_MEMORY_H

#include "cmd/options/option.h"
#include "cmd/print/message.h"
#include "kprof.h"
#include "kprof/control.h"

struct cJSON;

extern const struct command cmd_memory;

struct memory_opts {
	struct kprof_session_opts session;
	struct value_list ops, exclude;
	const char *max_overhead; /* as given; NULL: not */
	pid_t pid;                /* 0: none was given */
	struct kprof_export_opts export;
	uint64_t limit;
	bool as_json;
	struct message_opts message;
};

/* ---- state.c ---- */

#define MEMORY_STATE "last.kprof" /* what was allocated when it was last written */
#define MEMORY_PATH_BYTES (KPROF_CONTROL_PATH_BYTES + 32)

/* The folder of a process. See kprof_control_folder(). */
int memory_folder(pid_t pid, bool make, char path[KPROF_CONTROL_PATH_BYTES]);
/* The path of its state. */
void memory_state(const char *folder, char path[MEMORY_PATH_BYTES]);
/* Removes what a recorder left that was killed. */
void memory_clean(const char *folder);
/*
 * While it is held nobody else makes, takes or removes folders: a descriptor, which the caller
 * closes. Negative: -exit code; the error is printed.
 */
int memory_lock(void);
/*
 * Removes the states of recordings that are over, but for the latest ones, and what recordings
 * have left that have none.
 */
void memory_forget_old(void);
/* Calls fn for each process that has a folder. Returns 0 or what fn returned. */
int memory_each(int (*fn)(void *ctx, pid_t pid, const char *folder), void *ctx);
/*
 * Asks the recorder of a folder. Returns 0, and an answer that says "ok": the caller deletes it.
 * -ESRCH: none records. -EIO: it says no, or nothing that is understood; the error is printed.
 */
int memory_ask(const char *folder, const char *what, int timeout_ms, struct cJSON **answer);

/* ---- the actions: each returns an exit code ---- */

int memory_start(const struct memory_opts *opts, const char *command);
int memory_stop(const struct memory_opts *opts);
int memory_status(const struct memory_opts *opts);
/* file: a capture; NULL: of a process. */
int memory_export(const struct memory_opts *opts, const char *file);

/* recorder.c. The background process: ready is a descriptor that is written to once it records. */
int memory_record(const struct memory_opts *opts, const char *command, int ready);
/* table.c */
int memory_print(const char *capture, const struct memory_opts *opts);

#endif
