/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a process's samples are labelled with where a backend keeps the profiles of many machines:
 * the same in each format that goes to one. Keys are those of OpenTelemetry's semantic conventions,
 * in which the OpenTelemetry eBPF profiler describes processes, too.
 *
 * Neither command lines nor environments are among them: secrets are in these.
 */
#ifndef KPROF_RESOURCE_H
#define KPROF_RESOURCE_H

#include "model/timeline/timeline.h"
#include "util/container.h"
#include "util/pod_names.h"

#define RESOURCE_MAX_LABELS 64 /* as many as the user may add */

struct resource_label {
	char *key, *text; /* malloc'ed; text NULL: the value is number */
	int64_t number;
};

struct resource {
	/* Each key once. "service.name" is always among them. */
	struct resource_label labels[RESOURCE_MAX_LABELS + 16];
	size_t nr;
};

/* What the caller says of all processes. */
struct resource_opts {
	const char *service;       /* instead of the process's name; NULL */
	const char *const *labels; /* "KEY=VALUE", instead of a label of that key, or besides */
	size_t nr_labels;
	struct pod_names_list *pods; /* the caller's, who frees it; NULL: pods have no names */
};

/* 0; or -EINVAL with the error set, if a label is not KEY=VALUE, or there are too many. */
int resource_check(const struct resource_opts *opts);

/*
 * Fills in the labels of a process (NULL: only its PID is known). with_pid: also those that tell it
 * from others of its kind. -ENOMEM.
 */
int resource__fill(struct resource *r, const struct kprof_capture *t, const struct tl_process *p,
		   pid_t pid, bool with_pid, const struct resource_opts *opts);
void resource__free(struct resource *r);
/* The text of a label; NULL: it has none of that key, or it is a number. */
const char *resource__text(const struct resource *r, const char *key);

#endif
