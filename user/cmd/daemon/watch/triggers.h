/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What makes the flight recorder's last seconds be kept: rules, and a look at each of its captures
 * by a process without rights (look.c).
 */
#ifndef KPROF_CMD_DAEMON_TRIGGERS_H
#define KPROF_CMD_DAEMON_TRIGGERS_H

#include "cmd/daemon/daemon.h"

enum trigger_kind {
	TRIGGER_STEP,     /* step>500ms, step>p99, step>p50*2 */
	TRIGGER_GPU_IDLE, /* gpu-idle>50%: of a capture's time, of a GPU that did something in it */
	TRIGGER_RUNNABLE, /* runnable>20%: of a thread's time in it, waiting for a CPU */
	TRIGGER_MARK,     /* mark:NAME, an annotation or mark */
	TRIGGER_CALL,     /* call:NAME, an operator or a call */
	TRIGGER_SIGNAL,   /* signal, signal:SEGV+KILL: one has ended a process */
	TRIGGER_ASKED,    /* asked:URG: the owner of a process, or root, has sent it this one */
	TRIGGER_OOM,      /* oom: the kernel has ended a process for want of memory */
	TRIGGER_KERNEL,   /* kmsg:GLOB, a message of the kernel */
};

struct trigger_rule {
	enum trigger_kind kind;
	uint64_t ns;       /* step: longer than that; 0: than … */
	double percentile; /* … this one of the steps before, 0 … 1, … */
	double factor;     /* … times this */
	double share;      /* gpu-idle, runnable */
	uint64_t signals;  /* signal, asked: 1 << number of each */
	const char *glob;  /* mark, call, kmsg */
	const char *text;  /* the rule as it was given */
};

/* Takes a rule apart; parts of the text are referred to. False: it is none. */
bool trigger_parse(const char *text, struct trigger_rule *out);

/* ---- look.c ---- */

#define LOOK_MOST_CAPTURES 24

/* What captures of the flight recorder are looked at for, in a process of its own. */
struct look_job {
	const char *paths[LOOK_MOST_CAPTURES]; /* the last one is new; those before it for steps */
	size_t nr_paths;
	const char *folder; /* for a file in between */
	const struct trigger_rule *rules;
	size_t nr;
	bool steps;     /* whether any rule is about them */
	bool only_gpus; /* what else there is, the flight recorder has */
};
/*
 * Sends {"met": number of a rule, "what": a sentence, "pid"} for each that was, and {"steps":
 * [[pid, end, duration, goes on], …]}, in ns of CLOCK_MONOTONIC, at most some hundreds. Of one that
 * goes on (1): to the end of the captures, and as much of it as these have.
 */
int look_run(int fd, void *job);

/* ---- triggers.c ---- */

struct triggers;
struct triggers_opts {
	struct loop *loop;
	const struct value_list *rules; /* kept */
	uint64_t pause_ns;              /* between two dumps by the same rule */
	uint64_t open_ns;               /* a step that goes on counts when it has for so long */
	/* A rule was met: what it was, in a sentence. asked_by: the user of TRIGGER_ASKED, or 0. */
	void (*met)(void *ctx, const struct trigger_rule *rule, uid_t asked_by, const char *what);
	void *ctx;
};
/* NULL: no memory. */
struct triggers *triggers__new(const struct triggers_opts *opts);
void triggers__free(struct triggers *t); /* NULL is fine */
/* Once a second. NULL is fine. */
void triggers__tend(struct triggers *t, uint64_t now_ns);
/* A capture of the flight recorder is whole. */
void triggers__chunk(struct triggers *t, const char *path);
/* Processes were sent signals of TRIGGER_ASKED: how many, and the last one. */
void triggers__asked(struct triggers *t, uint64_t times, int signal, pid_t pid, uid_t uid);
/* A device window is: where there are any, rules about GPUs are about these. */
void triggers__window(struct triggers *t, const char *path);
struct cJSON *triggers__state(const struct triggers *t);

#endif
