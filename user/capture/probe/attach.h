/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loading the BPF programs and placing probes with them: through uprobe_multi links where the
 * kernel has them, as single perf uprobes where not. What is attached is gone when its file
 * descriptors are, however this process ends.
 */
#ifndef KPROF_CAPTURE_ATTACH_H
#define KPROF_CAPTURE_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/probe/links.h"
#include "kprof/wire.h"

struct attacher;
struct unwinder_maps;

struct attacher_opts {
	bool single;       /* no uprobe_multi */
	bool check_target; /* probes stand in every process that maps the file */
	bool follow_children;
	uint32_t nr_rings;
	uint32_t max_probes; /* rows of the recipe table */
	bool stacks;         /* load what walks stacks, too … */
	bool no_probes;      /* leave out what is for probes: nothing will be attached */
	bool entry_stacks;   /* … also at functions' entries, … */
	uint32_t stack_rate; /* … so many a second and thread at most; 0: all */
};

enum attach_program {
	ATTACH_BEGIN,
	ATTACH_BEGIN_TEXT,
	ATTACH_BEGIN_ARGS,
	ATTACH_SITE,
	ATTACH_SITE_RESULT, /* records the result register, too */
	ATTACH_MAPS,
	ATTACH_BATCH,
	ATTACH_MARK,
	ATTACH_STACK, /* beside one that begins: the stack there */
	ATTACH_NR
};

struct attach_point {
	uint64_t offset;    /* in the file */
	uint64_t cookie;    /* KPROF_COOKIE() */
	uint64_t semaphore; /* MARK: offset of the counter of who watches; 0: none */
};

/* Opens and loads; the rings are put in before attaching anything. */
int attacher__new(const struct attacher_opts *opts, struct attacher **out);
void attacher__free(struct attacher *a);
/* Starts the tracepoints on fork, exec and exit. */
int attacher__start_tasks(struct attacher *a);
void attacher__stop_tasks(struct attacher *a);
/*
 * From here on nothing is recorded, nor counted as fired, however long removing the probes takes.
 */
void attacher__stop(struct attacher *a);
/* The same for what agents hand over, which goes on a little longer. */
void attacher__stop_batches(struct attacher *a);

int attacher__rings_fd(const struct attacher *a);
/* Of what walks stacks: its maps, and the program for clocks, which counts for this source. */
void attacher__stack_maps(const struct attacher *a, struct unwinder_maps *out);
int attacher__sample_program(struct attacher *a, uint32_t source);
/* What stacks at entries count for. */
void attacher__stack_source(struct attacher *a, uint32_t source);
int attacher__set_probe(struct attacher *a, uint32_t index, const struct kprof_wire_probe *p);
int attacher__add_target(struct attacher *a, uint32_t pid);
int attacher__remove_target(struct attacher *a, uint32_t pid);
/*
 * The code at ret_addr only returns; `bytes` is how far up the next return address lies.
 * keeps_result: it returns what was returned to it.
 */
int attacher__follow(struct attacher *a, uint32_t pid, uint64_t ret_addr, uint32_t bytes,
		     bool keeps_result);
/* Takes that back, if it was said: the table is small. */
void attacher__unfollow(struct attacher *a, uint32_t pid, uint64_t ret_addr);

/* Asks that the next event wakes the reader of the rings. */
void attacher__wake_me(struct attacher *a);

/*
 * Places the points in the file, for process pid (-1: for every process that maps it), and adds the
 * links to the set. On error nothing of this call stays attached. A place that the kernel refuses
 * by itself is left out and counted.
 */
int attacher__attach(struct attacher *a, enum attach_program program, pid_t pid, const char *path,
		     const struct attach_point *points, size_t nr, struct attach_links *links);
uint32_t attacher__refused(const struct attacher *a);
/* Counters summed over CPUs. */
int attacher__counts(const struct attacher *a, uint32_t source, struct kprof_wire_count *out);
/* Runs of the programs that the kernel skipped, all programs together. */
uint64_t attacher__missed(const struct attacher *a);

#endif
