/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A recording (session): it is composed of parts, and calls them. The parts know nothing of the
 * session, and of each other only what their headers say. One thread does everything: it drains the
 * rings, passes each record to the parts that it concerns, learns return sites, follows processes.
 * Threads that build unwind tables or inject agents hand it finished results.
 *
 *   session.c    the public calls: configure, start, poll, stop
 *   loop.c       the main loop: drains the rings, does periodic work, sleeps
 *   dispatch.c   records from the rings, in order of time, to the parts
 *   returned.c   calls that have returned unseen, as copies of their stacks show
 *   event_parts.c  the parts that name events
 *   processes.c  processes that begin, execute another program, and end
 *   users.c      whose each process is
 *   choice.c     which of all processes are recorded
 *   machine.c    the same where samples of all processes of the machine are recorded
 *   joins.c      the same where probes are in all processes that map a framework
 *   observed.c   operators that agents observe, and hits that wait for them
 *   threads.c    threads that begin and end
 *   alive.c      recordings of what is allocated and not freed
 *   within.c     threads that count as outside of annotations from one moment on
 *   schedule.c   the window of a recording of some steps
 *   hints.c      what is said when there is little to record
 *   rotate.c     the recording's file ends, and another one goes on
 *   account.c    what is known of the recording; events recorded, dropped and missed
 *   opts.c       what options may be, what the caller says of the recording
 */
#ifndef KPROF_CAPTURE_SESSION_H
#define KPROF_CAPTURE_SESSION_H

#include "capture/agent/agent.h"
#include "capture/counter/counters.h"
#include "capture/event/event.h"
#include "capture/overhead/overhead.h"
#include "capture/probe/probe.h"
#include "capture/process/process.h"
#include "capture/target/target.h"
#include "capture/record/record.h"
#include "capture/ring/ring.h"
#include "capture/sample/sample.h"
#include "capture/span/spans.h"
#include "capture/unwind/unwind.h"
#include "capture/wait/waits.h"
#include "kprof.h"
#include "util/map64.h"
#include "util/ration.h"
#include "util/util.h"

struct kprof_session {
	struct kprof_session_opts opts;
	struct plan_filter filter;
	enum kprof_within_of within_of; /* what .within is the name of … */
	const char *within_asked; /* … and that with its kind in front, as it was asked for */
	const char *step_symbol;  /* the function whose calls are steps; NULL: it is none */
	uint64_t within_unknown;  /* see attacher__within_unknown(): before the window */
	uint64_t ops_matched;     /* see ops_matched of struct plan_filter */
	bool machine;             /* samples of all processes are recorded */
	bool joining;             /* probes are in all processes that map a framework */
	/* single uprobes instead of uprobe_multi */
	bool single;
	/* The parts, in the order in which they are created. */
	struct recorder *recorder;
	struct targets *targets;
	struct threads *threads;
	struct spans *spans;
	struct counters *counters; /* NULL: none are read */
	struct attacher *attacher;
	struct rings *rings;
	struct probe_set *probes;
	struct namer *namer;
	struct inputs *inputs; /* NULL: nobody asks for them, or for what goes by them */
	struct calls *calls;
	struct marks *marks;
	struct memory *memory;
	struct alive *alive; /* NULL: events are recorded, not only what is alive */
	struct collectives *collectives;
	struct modules_seen *modules; /* NULL: they are not recorded */
	struct inside *inside;        /* NULL: not only what functions or modules do is recorded */
	struct sequences sequences;
	struct thread_names *thread_names;
	struct agents *agents;
	struct observed *observed; /* observed.c; NULL: agents observe no operators */
	struct stacks *stacks;     /* NULL: no stacks are recorded */
	struct waits *waits;       /* NULL: no waits are recorded */
	struct steps *steps;       /* schedule.c; NULL: the recording is not by steps */
	struct joins *joins;       /* joins.c; NULL: not .joining */
	struct overhead *overhead;
	struct spawn spawned;
	struct copied_walker *walker;   /* returned.c; NULL: not needed yet */
	struct kprof_schedule schedule; /* .steps 0: none */
	/* Everything that happens from start_ns on is recorded. */
	int (*open_window)(struct kprof_session *s, uint64_t start_ns);
	uint64_t steps_seen_ns; /* when the last step was seen, or start() was done; 0: not yet */
	uint64_t steps_known;
	bool steps_said;
	/* loop.c */
	uint64_t ring_bytes; /* size of each ring */
	int idle_ms;         /* how long loop__pause() sleeps while events flow */
	uint64_t next_flush_ns;
	/* at the last pause: rings__read_bytes(), and those of .reading */
	uint64_t bytes_before, asked_before, served_before;
	uint64_t looked_ns; /* when kprof_session_poll() last ended with a look */
	/* processes.c */
	uint64_t next_scan_ns, next_renames_ns;
	/*
	 * how many records of forks and exits had been dropped when /proc was last searched instead
	 */
	uint64_t tasks_dropped;
	uint32_t nr_processes;
	struct map64 users; /* users.c: string of the name + 1, by UID */
	/* whose rank the capture has as its own, the metadata "distributed"; 0: none */
	uint32_t rank_pid;
	bool bystander_said;
	/* alive.c: the process, and its name; whether its allocations could be seen */
	uint32_t alive_pid, alive_comm;
	bool alive_seen;
	/* machine.c */
	struct ration reading; /* of processes, where that goes on for long and has a bound */
	bool unlooked;         /* there are processes whose mappings were not handed over yet */
	uint64_t next_look_ns, next_sweep_ns;
	uint64_t first_changed; /* .number of the target that look_at_changed() begins with */
	uint64_t left_out;      /* samples of processes that are not to be recorded */
	uint64_t nr_forgotten;  /* processes that had to make room for others */
	uint32_t nr_texts;      /* programs.c: texts that were recorded */
	/* dispatch.c */
	uint64_t read_ns; /* time of the latest record */
	/* records of processes that are not (or no longer) targets */
	uint64_t unknown_pids;
	struct vec early_waits;   /* struct kprof_wire_wait (early.c) */
	bool threads_gone;        /* threads__sweep() has found some that it did not end yet */
	uint64_t unknown_records; /* of probes or parts that do not exist */
	/* account.c */
	uint64_t attach_ns, detach_ns;
	uint64_t dropped, missed;
	/* what the files before have of each source, and of its spans */
	struct account_told {
		uint64_t fired, captured, dropped, missed;
		struct spans_count spans;
	} told[KPROF_WIRE_MAX_SOURCES];
	bool prepared; /* kprof_session_prepare() was called: only the window is to be opened */
};

/* ---- parts.c ---- */

int parts__new(struct kprof_session *s);
void parts__free(struct kprof_session *s);

/* Is the thread with this number (PID << 32 | TID) one of those that are recorded? */
static inline bool session_wants(const struct kprof_session *s, uint64_t pid_tgid)
{
	for (size_t i = 0; i < s->opts.choice.nr_tids; i++)
		if (s->opts.choice.tids[i] == (pid_t)(uint32_t)pid_tgid)
			return true;
	return !s->opts.choice.nr_tids;
}

/* ---- schedule.c: of a recording of some steps; otherwise nothing is done ---- */

int schedule__new(struct kprof_session *s);
/* Probes are in place. */
void schedule__start(struct kprof_session *s);
/* See struct spans_ops. */
int schedule__range_begins(void *ctx, uint32_t pid, uint32_t thread, uint64_t time_ns,
			   uint32_t description);
int schedule__range_ended(void *ctx, uint32_t pid, uint32_t thread, uint64_t time_ns,
			  uint32_t description);
int schedule__gone(struct kprof_session *s, const struct target *t);
/* Says when there are no steps for long. */
void schedule__tend(struct kprof_session *s, uint64_t now_ns);
/* Has everything been recorded that was to be? */
bool schedule__is_over(const struct kprof_session *s);
/* The recording is stopped: says what is missing. Opens the window if no step has. */
int schedule__stop(struct kprof_session *s);

/* ---- alive.c: only of a recording of what is .alive ---- */

/* Fills in what such a recording needs. */
void session_alive__set_opts(struct kprof_session_opts *opts);
/* Notes whose it is. An error: no books can be kept any more, and the recording is over. */
int session_alive__look(struct kprof_session *s);
/* Can allocations of the process be seen, or could they be before? */
bool session_alive__sees(struct kprof_session *s);
/* Writes what is alive into the capture. */
int session_alive__put(struct kprof_session *s);

/* ---- within.c: only of a recording of what is inside of annotations, by probes ---- */

/* Closes what threads had open that were left until then. All records of before have been read. */
int within__leave(struct kprof_session *s, uint64_t until_ns);
/* A hit to be passed over. row: of its probe; NULL: it has none. */
bool within__is_late(const struct kprof_session *s, struct thread *th,
		     const struct kprof_wire_hdr *h, const struct catalog_row *row);

/* ---- loop.c ---- */

/*
 * For a part of the recording that waits for something: drains some records, then waits for new
 * ones, at most 1 ms. ctx: the session.
 */
int loop__drain_and_wait(void *ctx);
/* Learns return sites from the calls that running programs make, before the window opens. */
int loop__warm_up(struct kprof_session *s);
/*
 * Drains the rings and does the periodic work that is due. Returns the number of records, or a
 * negative errno.
 */
int loop__look(struct kprof_session *s);
/* Sleeps until there is something to do, at most left_ms. */
void loop__pause(struct kprof_session *s, int64_t left_ms);
/*
 * The last drain: also waits for records that BPF programs were still writing when they were
 * stopped.
 */
int loop__drain_rest(struct kprof_session *s);

/* ---- rotate.c ---- */

/* Reads what has come so far. Everything up to *border_ns has been read then, and nothing else. */
int rotate__drain(struct kprof_session *s, uint64_t *border_ns);

/* ---- tasks.c ---- */

/* Handles a record of this process's tasks: fork, exec, mappings, exit. 0 or a negative errno. */
int tasks__event(struct kprof_session *s, struct target *t, const struct kprof_wire_hdr *h);

/* ---- dispatch.c ---- */

#define DISPATCH_RECORDS 4096
/*
 * Reads at most DISPATCH_RECORDS records. Returns how many, or a negative errno. final: see
 * rings__drain().
 */
int dispatch__drain(struct kprof_session *s, bool final);
/* Handles the record of something that a thread did. Returns 0 or a negative errno. */
int dispatch__thread(struct kprof_session *s, struct thread *th, const struct kprof_wire_hdr *h);
int dispatch__spans_new(struct kprof_session *s);
/* All records of before that time have been read. */
uint64_t dispatch__read_until(const struct kprof_session *s);
/* See overhead_opts.given_up. */
int dispatch__given_up(void *ctx, uint64_t time_ns,
		       bool (*is_given_up)(void *given_up, uint32_t probe), void *given_up);

/* ---- event_parts.c ---- */

int event_parts__new(struct kprof_session *s);
void event_parts__free(struct kprof_session *s);
/* Is the hit of this probe no span: an allocation, or work that is queued? */
bool event_parts__is_aside(const struct probe *p);
int event_parts__aside(struct kprof_session *s, struct thread *th, struct probe *p,
		       const struct kprof_wire_begin_args *e);

/* ---- returned.c ---- */

int returned__gone(struct kprof_session *s, struct thread *th, const struct kprof_wire_gone *e);
int returned__walk(struct kprof_session *s, struct thread *th, const struct kprof_wire_copy *e);

/* ---- processes.c ---- */

/* Adds a process that is there already. */
int process__add(struct kprof_session *s, uint32_t pid, bool child, uint64_t time_ns);
/* Reads the process's mappings anew and places the probes that are missing. */
int process__refresh(struct kprof_session *s, struct target *t);
/*
 * The process still lives at the end of the recording: records as gaps the files in which probes
 * could not be placed.
 */
int process__survived(struct kprof_session *s, struct target *t);
int process__on_fork(struct kprof_session *s, struct target *parent,
		     const struct kprof_wire_task *e);
/* The dynamic linker maps or unmaps libraries, or has done so. */
void process__on_maps(struct kprof_session *s, struct target *t, const struct kprof_wire_hdr *h);
int process__on_exec(struct kprof_session *s, struct target *t, const struct kprof_wire_exec *e);
/* Frees the target. */
int process__on_exit(struct kprof_session *s, struct target *t, uint64_t time_ns);
/*
 * Adds a process because of what it maps, unless it is to be left out, and places its probes. e:
 * what the kernel's programs have told of it; NULL: nothing. time_ns: since when it may have used
 * them.
 */
int process__join(struct kprof_session *s, uint32_t pid, uint64_t time_ns,
		  const struct kprof_wire_seen *e);
/* Makes targets of all descendants of targets. since_ns: when the new ones count as started. */
int processes__adopt(struct kprof_session *s, uint64_t since_ns);
/* Periodic work: places probes in new libraries, and ends processes whose exit was not reported. */
int processes__tend(struct kprof_session *s, uint64_t now_ns);

int process__record(struct kprof_session *s, struct target *t);

/* Of all processes: at most so many samples a second and CPU are few, and small rings hold them. */
#define MACHINE_SLOW_HZ 200
#define MACHINE_RING_BYTES (1ull << 20) /* for each CPU */

/* ---- users.c ---- */

/* Records whose the process is, unless the capture has just that already. */
int users__record(struct kprof_session *s, struct target *t);

/* ---- programs.c: texts of which so many are recorded, where all processes are ---- */

/* Reads the path of what the process executes. */
void programs__read(struct kprof_session *s, struct target *t);
/* Records it, unless the capture has just that already. */
int programs__record(struct kprof_session *s, struct target *t);
/* Reads its arguments as they are now, if it lives. */
void programs__read_cmdline(struct kprof_session *s, struct target *t);
/*
 * The string id of a process's arguments, as a record of the kernel's programs has them: their
 * beginning, each with its final NUL. 0: there are none, or so many were recorded already.
 */
uint32_t programs__cmdline(struct kprof_session *s, const char *args, size_t bytes);

/* ---- choice.c ---- */

/* Reads the process's cgroup. */
void choice__read_cgroup(struct kprof_session *s, struct target *t);
/*
 * Decides whether the process is left out, by its name and by its user (t->uid), and sets both. To
 * be called again when it has another name.
 */
void choice__make(struct kprof_session *s, struct target *t, const char *comm);

/* When a process began, in the ticks of /proc/PID/stat. */
uint64_t wire_start_ticks(const struct kprof_wire_seen *e);

/* ---- machine.c: only of a recording of the .machine ---- */

/* Before the recording begins: prepares for samples of processes that have used a CPU so far. */
int machine__prepare(struct kprof_session *s);
/* A process was met on a CPU. t: the target with its number; NULL: there is none. */
int machine__seen(struct kprof_session *s, struct target *t, const struct kprof_wire_seen *e);
/* A sample of the process was taken. 1: it is not to be recorded. */
int machine__sampled(struct kprof_session *s, struct target *t, uint64_t time_ns);
void machine__on_exit(struct target *t, uint64_t time_ns);
int machine__tend(struct kprof_session *s, uint64_t now_ns);
/* The last record has been read: records the exits of all that have ended. */
int machine__close(struct kprof_session *s);
/* Records what else is known of the machine's processes. */
int machine__finish(struct kprof_session *s);

/* ---- joins.c: only of a recording that is .joining ---- */

int joins__new(struct kprof_session *s);
void joins__free(struct kprof_session *s);
/* Before the recording begins: adds the processes that map a framework. */
int joins__prepare(struct kprof_session *s);
/* The kernel's program has made it a target. t: the target with its number; NULL: there is none. */
int joins__seen(struct kprof_session *s, struct target *t, const struct kprof_wire_seen *e);
/* Adds those that have mapped a framework since. */
int joins__tend(struct kprof_session *s);
/* Reports of what processes mapped that the kernel had no room for. */
uint64_t joins__lost(const struct kprof_session *s);

/* ---- renames.c: does nothing unless the recording is of the .machine, or .joining ---- */

/*
 * Chooses anew among processes that have taken another name, and records that; not more often than
 * once a second, but for now_ns UINT64_MAX: at the end.
 */
int renames__tend(struct kprof_session *s, uint64_t now_ns);

/* ---- observed.c: only of a recording in which agents observe operators ---- */

/* take(): handles a hit whose time has come, as dispatch__thread(). */
int observed__new(struct kprof_session *s, int (*take)(struct kprof_session *s, struct thread *th,
						       const struct kprof_wire_hdr *h));
void observed__free(struct kprof_session *s);
/* agents_opts.observed. ctx: the session. */
int observed__spans(void *ctx, struct thread *th, uint32_t depth, const struct agent_span *spans,
		    size_t nr);
/* Keeps a hit of the thread until all that was observed before it is known. */
int observed__hold(struct kprof_session *s, struct thread *th, const struct kprof_wire_hdr *h);
/* Are hits of the thread held? What comes later has to wait, too. */
bool observed__holds(const struct kprof_session *s, const struct thread *th);
/* read_ns: all records of the rings of before that time have been read. */
int observed__tend(struct kprof_session *s, uint64_t now_ns, uint64_t read_ns);
/* The thread ends, or executes a program: takes what is left of it. */
int observed__thread_ends(struct kprof_session *s, struct thread *th);
/* The last record has been read. */
int observed__finish(struct kprof_session *s);

/* ---- hints.c ---- */

/* Warns of processes in which no probe was placed, and of probes that were left out. */
void hints__without_probes(struct kprof_session *s);

/* ---- threads.c ---- */

/* The thread with this number (PID << 32 | TID), recorded when it is new. NULL: no memory. */
struct thread *thread__of(struct kprof_session *s, struct target *t, uint64_t pid_tgid,
			  uint64_t time_ns);
/* exit_ns: 0 while the thread lives. */
int thread__record(struct kprof_session *s, const struct thread *th, uint64_t exit_ns);
/* Records the thread's exit and frees the thread. */
int thread__end(struct kprof_session *s, struct thread *th, uint64_t time_ns);
/* Ends all threads of a process that has ended. */
int threads__end(struct kprof_session *s, const struct target *t, uint64_t time_ns);
/*
 * Ends the threads that no longer exist, though no record reported their exit: once two looks in
 * a row have not found them, as their last records may not have been read before.
 */
int threads__sweep(struct kprof_session *s, uint64_t time_ns);

/* ---- early.c ---- */

/* The record is one of a process that is not known: keeps it if that may be told of yet. */
int early__hold(struct kprof_session *s, const struct kprof_wire_hdr *h);
/* The earliest that was kept of this process, which is no longer kept. False: there is none. */
bool early__take(struct kprof_session *s, uint32_t pid, struct kprof_wire_wait *out);
/* The next file has begun: forgets those of before. */
void early__next_part(struct kprof_session *s);

/* ---- account.c ---- */

/* What measures and bounds what the recording costs. */
int account__new(struct kprof_session *s);
int account__begin(struct kprof_session *s);
int account__end(struct kprof_session *s);
/* The counts of each source of events until now. */
int account__so_far(struct kprof_session *s);
/* The file ends, and not the recording: what belongs to the window that ends. */
int account__end_part(struct kprof_session *s);
/* Before the window opens: what has been counted so far is none of it. */
int account__forget(struct kprof_session *s);
/* The next file begins: its window's start on both clocks. */
int account__next_part(struct kprof_session *s);

/* opts.c. Records the id and the name that the caller gave the recording. */
int opts__put(struct kprof_session *s);
/* The name in .within, without its kind, which becomes *of; NULL: all is recorded. */
const char *opts__within(const struct kprof_session_opts *opts, enum kprof_within_of *of);
/* The function of native code whose calls are the steps; NULL: annotations are. */
const char *opts__step_symbol(const struct kprof_schedule *schedule);

/* confine.c. single: single uprobes are to be placed. 0 or -errno; the error is set. */
int session__confine(bool single);

#endif
