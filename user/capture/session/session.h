/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The session's parts and what they share. One thread does everything: it drains the rings, feeds the span
 * engine, learns return sites, follows processes.
 *
 *   session.c   the public calls: configure, start, poll, stop
 *   events.c    records from the rings → threads, spans
 *   targets.c   processes: their libraries, probes placed and removed, fork, exec, exit
 *   targets_files.c  files of a process: its probes placed in them
 *   files.c     ELF files that targets map: probes planned once, sites known once
 *   sites.c     return addresses → return sites
 *   names.c     what a dynamically named span is called
 *   thread_names.c  what Python calls its threads
 *   calls.c     arguments and results of device calls
 *   marks.c     annotations that applications compiled in
 *   account.c   sources, gaps and metadata → capture
 *   spawn.c     a child held before its first instruction
 *   stacks.h    stacks: more files
 *   agent.h     the helper in processes that use a device: more files
 */
#ifndef KPROF_CAPTURE_SESSION_H
#define KPROF_CAPTURE_SESSION_H

/* Without memory an element stays outside the table, its hh.tbl NULL, instead of exit(). */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "capture/probe/attach.h"
#include "capture/probe/plan.h"
#include "capture/process/proc.h"
#include "capture/event/ring.h"
#include "capture/event/spans.h"
#include "kprof.h"
#include "store/store.h"
#include "util/map64.h"

/* ---- files ------------------------------------------------------------------------------------ */

enum ra_kind { RA_SITE = 1, RA_FOLLOW, RA_NONE };

/* What the code at one return address (as an offset in the file) turned out to be. */
struct file_return {
	enum ra_kind kind;
	uint32_t site; /* SITE: its index */
	uint64_t site_offset;
	int32_t delta_bytes; /* SITE: see insn.h */
	uint32_t follow_bytes;
	bool keeps_result; /* the result register still holds what was returned */
};

/* Programs whose points belong to a file. */
#define NR_BEGIN_PROGRAMS (ATTACH_BEGIN_ARGS + 1) /* at entries, planned from the catalog */
#define NR_FILE_PROGRAMS (ATTACH_SITE_RESULT + 1) /* and at return sites, in order of learning */

struct point_list {
	struct attach_point *points;
	size_t nr, cap;
};

struct file {
	UT_hash_handle hh;
	struct file_key {
		uint64_t inode, dev;
	} key;
	char *name;          /* base name */
	struct elffile *elf; /* NULL: could not be opened */
	/* Sets of frameworks (plan.h): */
	uint64_t by_name;                           /* whose rows are for it by its name … */
	uint64_t embedded;                          /* … or by what is linked into it … */
	uint64_t embedded_asked;                    /* … of those that were looked for; */
	uint64_t planned;                           /* of both, those whose probes are in … */
	struct point_list points[NR_FILE_PROGRAMS]; /* … these, by program */
	struct map64 returns; /* offset of a return address → index + 1 into learnt[] */
	struct file_return *learnt;
	size_t nr_learnt, cap_learnt;
	struct map64 site_at; /* offset of a site → its index << 1, | 1: it tells the result */
	/* Where probes stand in every process: they are attached once, here. */
	struct attach_links links;
	uint64_t attached;                    /* frameworks */
	size_t nr_attached[NR_FILE_PROGRAMS]; /* of points[], the first so many */
	/* Places of annotations (marks.h). */
	struct attach_point *marks;
	size_t nr_marks;
	bool marks_known, marked;  /* marked: attached, see .attached */
	struct python_elf *python; /* the interpreter in it; NULL: none, or not looked for yet */
	bool python_looked;
};

/* ---- processes and threads -------------------------------------------------------------------- */

struct target_file {
	struct file *file;
	bool attached;         /* one that has a probe of its own: the agent's */
	uint64_t attached_for; /* of which frameworks: the file may turn out to have more */
	uint64_t lost_ns;      /* since when it runs without probes; 0: it does not */
	size_t nr_attached[NR_FILE_PROGRAMS]; /* of file->points[], the first so many */
	bool marked;                          /* its annotations are watched */
};

struct target {
	UT_hash_handle hh;
	uint32_t pid, ppid, ns_pid;
	bool linker;        /* the dynamic linker's hook is probed */
	bool child;         /* followed, not asked for */
	bool shares_memory; /* vfork: its parent's memory until it executes a program */
	bool forked;        /* its memory began as a copy of its parent's */
	bool ended;         /* does not live any more, though its exit has not been heard of yet */
	bool maps_dirty;    /* libraries have come or gone */
	uint64_t dirty_ns;  /* since when */
	uint64_t looked_ns; /* what was mapped then has its probes; 0: not looked yet */
	uint64_t start_ns, exit_ns;
	uint64_t start_ticks;   /* who it is, with the pid; 0: not known */
	uint32_t comm, cmdline; /* string ids */
	struct proc_maps *maps;
	char *exe;        /* the program among them; NULL: not known */
	uint64_t maps_ns; /* when they were read */
	struct target_file *files;
	size_t nr_files, cap_files;
	struct attach_links links;
	struct map64 returns;        /* return address → struct span_return *, ours */
	struct map64 vtables;        /* vtable pointer → the class's demangled name, ours */
	struct map64 functions;      /* address → string id of the function there + 1; 1: none */
	struct agent_link *agent;    /* see agent.h; NULL: there is nothing to say about one */
	struct stack_target *stacks; /* see stacks.h; NULL: they are not recorded, or not yet */
	struct thread_names *names;  /* see thread_names.c; NULL: no thread was met */
};

struct thread {
	UT_hash_handle hh;
	uint64_t pid_tgid;
	uint32_t index;
	uint32_t name;      /* string id */
	uint32_t told_name; /* what it calls itself in the trace; 0: nothing else */
	uint32_t own_name;  /* what Python calls it; 0: not known */
	int32_t ns_tid;     /* its number in its own PID namespace; 0: not looked yet */
	uint64_t start_ns;
	struct target *target;
	struct span_thread *spans;
	struct thread_stack { /* see stacks_event.c */
		uint64_t sp;
		uint32_t probe;
		uint32_t stack, weight; /* of an entry that has not been told yet; 0: none */
		uint64_t span;          /* number of the one that this entry began; 0: none */
	} entry;
};

/* ---- probes ----------------------------------------------------------------------------------- */

struct probe { /* index = the attach cookie's */
	const struct catalog_row *row;
	uint32_t row_id; /* which row, over all frameworks */
	uint32_t source;
	uint64_t framework;    /* bit of the table that its row is in (plan.h) */
	uint64_t group;        /* bit 1 << enum kprof_activity */
	uint64_t folded_into;  /* a call directly inside these groups is none of its own */
	uint32_t what;         /* once named; 0: not yet, or named at each hit */
	char *name, *overload; /* NULL: read at each hit */
	uint32_t keys[KPROF_WIRE_MAX_ARGS]; /* of the arguments: string ids */
};

enum name_verdict {
	NAME_SPAN,
	NAME_RANGE_END,
	NAME_IGNORE,   /* it is no event */
	NAME_FILTERED, /* not wanted */
};

/* A return address on its way to becoming a site. */
struct pending {
	struct target *target;
	struct span_return *ret;
};

#define SESSION_MAX_SITES 65536
#define NR_THREAD_CACHE 256

struct session_source {
	const char *name;
	uint32_t string;
	uint64_t captured;
	uint64_t range_ends; /* hits that end a range: no span of their own */
	uint64_t ignored;    /* hits that are no event */
	uint64_t folded;     /* … of these, calls that another call made as a part of itself */
	uint64_t failed;     /* calls whose result says so */
	uint64_t answered;   /* calls whose result was seen */
	bool counted_here;   /* not probe runs: fired is captured + dropped … */
	uint64_t dropped;    /* … and this is not the kernel's number */
};

struct agents {           /* see agent.h */
	char *library;    /* NULL: not found */
	uint64_t types;   /* bits 1 << enum kprof_activity; 0: no agents */
	uint32_t options; /* KPROF_AGENT_OPT_* */
	uint32_t batch_source, record_source;
	struct agent_pulse *pulse; /* NULL: no agent yet */
	bool opened;               /* the window */
	bool versions_told;
	uint64_t next_look_ns;
	struct ended_thread { /* of late: calls that they made may still be told of */
		uint64_t pid_tgid, start_ns, end_ns;
		uint32_t index;
	} ended[256];
	uint32_t nr_ended;
	/* Of targets without a working agent: see agent_calls.c */
	struct approximate *approximate; /* NULL: none so far */
	struct map64 roles;              /* by probe */
	struct map64 waits;              /* by span */
	uint64_t nr_waits;
};

struct session_marks { /* see marks.h */
	uint32_t source;
	struct map64 whats; /* string id of the name and category → what + 1; 1: filtered out */
	struct map64 steps; /* by thread: 1 while a step is open */
	uint64_t unreadable, cut, bad_json, senseless;
};

struct kprof_session {
	struct kprof_session_opts opts;
	struct plan_filter filter;
	uint64_t ops_matched;
	struct agents agents;
	bool single; /* without uprobe_multi */
	bool started, stopped;
	bool rank_known; /* "distributed" has been recorded */
	struct attacher *attacher;
	struct rings *rings;
	struct spans *spans;
	struct store_writer *store;
	struct target *targets;
	struct attach_links stale; /* of images that are gone */
	struct file *files;
	struct thread *threads;
	struct thread *thread_cache[NR_THREAD_CACHE];
	struct probe *probes;
	size_t nr_probes, cap_probes;
	struct map64 names; /* see names.c */
	struct session_marks marks;
	struct session_stacks *stacks; /* see stacks.h; NULL: no stacks are recorded */
	struct session_source sources[KPROF_WIRE_MAX_SOURCES];
	uint32_t nr_sources;
	uint32_t nr_whats, nr_threads, nr_processes;
	size_t nr_sites;
	struct pending *pending;
	size_t nr_pending, cap_pending;
	uint64_t nr_returns;  /* return addresses met, over all processes */
	uint32_t single_left; /* without uprobe_multi: probes still allowed */
	uint64_t single_cut;  /* … and not placed for that */
	uint64_t start_ns;
	uint64_t end_ns; /* 0: still recording */
	uint64_t attach_ns, detach_ns;
	uint64_t events, dropped, missed;
	uint64_t record_ns; /* of the last record read */
	uint64_t
		tasks_dropped; /* records of forks and exits that were lost, as far as made up for */
	uint64_t strangers;    /* records of processes that are not (or no longer) targets */
	uint64_t last_ns;      /* of the last event told */
	uint64_t next_scan_ns, next_flush_ns;
	uint64_t site_stepped, returns_followed, returns_none;
	uint64_t ring_bytes; /* of each ring */
	int idle_ms;         /* how long to sleep between looks */
	pid_t spawned;       /* 0: none */
	int spawn_pipe;      /* a byte into it: the child goes on; -1: none */
	int spawn_error;     /* tells the errno of a failed exec; -1: none */
	const char *spawn_name;
	int gaps;
};

/* events.c */
#define EVENTS_DRAIN_RECORDS 4096
/* At most so many records; returns how many. */
int events_drain(struct kprof_session *s, bool final);
struct thread *session__thread(struct kprof_session *s, struct target *t, uint64_t pid_tgid,
			       uint64_t time_ns);
/* The process has ended: so have its threads. */
int session__threads_end(struct kprof_session *s, const struct target *t, uint64_t time_ns);
/* Ends threads that are not there any more, whose exit nobody told of. */
int session__sweep_threads(struct kprof_session *s, uint64_t time_ns);
int session__thread_record(struct kprof_session *s, const struct thread *th, uint64_t exit_ns);
int session__spans_new(struct kprof_session *s);

/* targets.c */
struct target *session__target(struct kprof_session *s, uint32_t pid);
int target__new(struct kprof_session *s, uint32_t pid, uint32_t ppid, bool child, uint64_t time_ns,
		struct target **out);
void target__free(struct kprof_session *s, struct target *t);
/* Reads its mappings anew and places the probes that are missing. */
int target__refresh(struct kprof_session *s, struct target *t);
int target__record(struct kprof_session *s, const struct target *t);
/* Records where probes could not be placed. */
int target__lost(struct kprof_session *s, const struct target *t, uint64_t until_ns);
/* The same of one that lives when the recording is over; and libraries that it mapped too late for any to be placed. */
int target__survived(struct kprof_session *s, struct target *t);
int targets__on_fork(struct kprof_session *s, struct target *parent,
		     const struct kprof_wire_task *e);
int targets__on_exec(struct kprof_session *s, struct target *t, const struct kprof_wire_task *e);
/* Frees the target. */
int targets__on_exit(struct kprof_session *s, struct target *t, uint64_t time_ns);
/* Makes targets of descendants that are none yet. */
int targets__adopt(struct kprof_session *s, uint64_t since_ns);
/* What is due: libraries that came, processes that went unnoticed. */
int targets__tend(struct kprof_session *s, uint64_t now_ns);
/* The mapping that holds an address, as far as is known; NULL. */
const struct proc_map *target__known_map(struct kprof_session *s, const struct target *t,
					 uint64_t addr);
/* The mapping that holds an address, reading the mappings anew when it is not known. */
const struct proc_map *target__map(struct kprof_session *s, struct target *t, uint64_t addr);

/* It is gone, or a zombie: nothing of it can be read any more. */
bool target__has_ended(const struct target *t);

/* targets_files.c */
/* The target's file behind a mapping, added when it is new. */
int target__file(struct kprof_session *s, struct target *t, const struct proc_map *map,
		 struct target_file **out);
/* Places the probes that are missing in the files that it maps by now. */
int target__tend_files(struct kprof_session *s, struct target *t);

/* files.c */
/* What is known of a mapped file; it need not be open. */
int session__file_entry(struct kprof_session *s, const struct proc_map *map, struct file **out);
/* The same, open if it can be. */
int session__file(struct kprof_session *s, const struct target *t, const struct proc_map *map,
		  struct file **out);
int file__plan(struct kprof_session *s, struct target *t, struct file *f);
/* Looks for the libraries of these frameworks (set) in a file that may contain them. */
void file__look_inside(struct file *f, uint64_t candidates);
/* Probes at entries of functions, all programs. */
size_t file__nr_begins(const struct file *f);
void file__free(struct file *f);
/* The index of the source of this name, made known to the capture when it is new. */
int session__source(struct kprof_session *s, const char *name, uint32_t *out);

/* sites.c */
/*
 * What is known of a return address; queued to be learnt when it is new, or a result is wanted there for the first
 * time. NULL: no memory.
 */
struct span_return *sites__return(struct kprof_session *s, struct target *t, uint64_t addr,
				  bool wants_result);
/* Forgets the process's return addresses: no frame may point at one any more. */
void sites__forget(struct kprof_session *s, struct target *t);
/* Learns what is queued and places the new sites. */
int sites__learn(struct kprof_session *s);
/* Places the file's sites that the target lacks. */
void sites__attach(struct kprof_session *s, struct target *t, struct target_file *tf,
		   const char *path);

/* names.c */
struct name_result {
	enum name_verdict verdict;
	uint32_t what;
};
struct name_hit {
	const char *text;   /* as read at the probe; NULL */
	uint64_t text_addr; /* where it lies; 0: none */
	uint64_t value;     /* see the row */
};
/* A string in the target, cut to what fits; -EFAULT. */
int target__read_string(const struct target *t, uint64_t addr, char *buf, size_t bytes);
/* Forgets the process's classes. */
void names__forget(struct target *t);
int names__resolve(struct kprof_session *s, struct target *t, uint32_t probe,
		   const struct name_hit *hit, struct name_result *out);

/* thread_names.c */
/* A thread was met whose name is not known. */
void thread_names__want(struct target *t, uint64_t now_ns);
int thread_names__tend(struct kprof_session *s, uint64_t now_ns);
/* The thread goes on in another program (exec), where Python, if it is there, calls it something else. */
int thread_names__drop(struct kprof_session *s, struct thread *th);
/* Once more, of all that live. */
int thread_names__last(struct kprof_session *s);
void thread_names__forget(struct target *t);

/* calls.c */
/* What a call was given, to the span of this number. */
int calls__args(struct kprof_session *s, struct target *t, const struct probe *p,
		const struct kprof_wire_begin_args *e, uint64_t span);
/* What it returned, when that says something. */
int calls__result(struct kprof_session *s, const struct span_end *end);
int calls__account(struct kprof_session *s);
void calls__forget(struct target *t);

/* spawn.c */
/* Lets the child execute its program; fails when it cannot. */
int spawn__release(struct kprof_session *s);
void spawn__abandon(struct kprof_session *s);

/* account.c */
int account__begin(struct kprof_session *s);
int account__sources(struct kprof_session *s);
int account__end(struct kprof_session *s);
int account__gap(struct kprof_session *s, uint32_t pid, const char *what, const char *reason,
		 uint64_t start_ns, uint64_t end_ns);
int session__meta(struct kprof_session *s, const char *key, const char *json);

#endif
