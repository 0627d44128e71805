/* SPDX-License-Identifier: BSD-2-Clause */
/* Why nothing was recorded. */
#ifndef KPROF_CMD_RECORD_EMPTY_H
#define KPROF_CMD_RECORD_EMPTY_H

#include <stdbool.h>

#include "cmd/record/options.h"

/* Whether the capture has no events, samples, marks or work of devices. */
bool empty_is(const struct kprof_capture *c);

#define EMPTY_PROCESSES 3 /* that are looked at */
#define EMPTY_WHERE_BYTES 320

/* What processes and their threads do instead. */
struct empty_look {
	size_t nr;
	struct empty_process {
		pid_t pid;
		bool found, known; /* known: it maps a framework or a device's runtime */
		unsigned int threads, asleep, stopped;
		bool importing;
		/* what is said of its first thread, or of the one that imports */
		char where[EMPTY_WHERE_BYTES];
	} processes[EMPTY_PROCESSES];
};

/* Looks at the processes, as root. threads: at their threads too, which takes a moment. */
void empty_look(const struct record_opts *opts, bool threads, struct empty_look *out);
/* Says on stderr what they do, and what to do about it. */
void empty_say(const struct record_opts *opts, const struct kprof_capture *c,
	       const struct empty_look *looks);

#endif
