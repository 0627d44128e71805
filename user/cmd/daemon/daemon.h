/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kprof daemon: records always, and when asked. One process that waits, and one for each recording:
 *
 *   daemon.c      the command: its options, begin, loop, end
 *   options.c     the table of options
 *   loop.c        what is waited for
 *   log.c         lines of JSON, or fields of the journal
 *   child.c       processes of the daemon's, and messages to and from them
 *   socket.c      the socket, which one daemon has
 *   clients.c     who comes to it, lines there and back
 *   requests.c    what is asked, and what is answered
 *   owner.c       whose a process is
 *   peer.c        where a client is
 *   state.c       what it says of itself
 *   listing.c     what is known of processes
 *   always.c      what is recorded without being asked for
 *   pusher.c      pushes samples to a place that keeps profiles; handed.c: which it has had
 *   kineto.c      dynolog's protocols: Kineto inside of processes, and dyno; translate.c: what
 *                 dyno asks Kineto for, as options of kprof's
 *
 *   record/       recordings, and what is stored of them
 *     chunks.c    inside a process: a recording that goes on, as a row of captures
 *     demand.c    inside a process: a recording that somebody has asked for
 *     dump.c      inside a process: what the flight recorder has becomes one capture
 *     trace.c     … and writes a trace of it where it was asked to
 *     keeper.c    keeps a recording of chunks going, and its folder within its limits
 *     windows.c   a recording of seconds, now and then: what devices do (windows.h)
 *     recordings.c  what is being recorded on demand; kept.c: and what has been; quota.c: how
 *                 much of it there may be
 *     folder.c    the folders of what is stored
 *   watch/        what is looked for in captures: rules by which dumps are made (triggers.h), and
 *                 numbers by process (count.c)
 *   show/         what it tells by HTTP (serve.h); web/: the process that speaks HTTP
 */
#ifndef KPROF_CMD_DAEMON_DAEMON_H
#define KPROF_CMD_DAEMON_DAEMON_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "cmd/daemon/loop.h"
#include "cmd/options/chosen.h"
#include "cmd/print/message.h"
#include "cmd/push/push.h"
#include "kprof.h"
#include "kprof/client.h"

struct cJSON;

extern const struct command cmd_daemon;

#define DAEMON_PATH_BYTES 512
#define RECORDING_ID_BYTES 40
#define FURTHEST_START_NS (24 * 3600 * 1000000000ull) /* probes are in place until then */

/* Who records a process that dyno means. */
enum kineto_engine {
	KINETO_ENGINE_AUTO, /* its own Kineto, if that asks for configs, else kprof */
	KINETO_ENGINE_KINETO,
	KINETO_ENGINE_KPROF,
};

/* The options, as they are in /etc/kprof.conf, [daemon], and on the command line. */
struct daemon_opts {
	const char *state;  /* folder of what is stored */
	const char *socket; /* for clients */
	const char *group;  /* whose members may record any process; "": nobody but root */
	bool allow_owner;   /* the owner of a process may record that process */
	/* what is sampled always */
	bool no_sampling;
	uint32_t hz;
	uint64_t min_wait_ns; /* waits of at least so long are recorded, too; 0: none */
	struct chosen chosen;
	bool record_cmdline; /* command lines, too, in what is recorded unasked */
	uint64_t chunk_ns;   /* length of one capture */
	uint64_t keep_ns, keep_bytes;
	/* the flight recorder */
	struct value_list watch; /* names of processes; none: there is no flight recorder */
	uint64_t flight_ns, flight_bytes, flight_chunk_ns;
	struct value_list triggers;
	uint64_t trigger_pause_ns;
	/* device windows */
	uint64_t device_window_ns, device_every_ns; /* window 0: there are none */
	struct value_list device_comms;             /* instead of comms */
	bool device_inject; /* the agent may be put into processes that have none */
	/* Kineto's world */
	bool dynolog;
	struct value_list dynolog_folders, dyno_addresses, trace_folders;
	uint64_t dyno_port;    /* 0: none */
	int engine;            /* enum kineto_engine */
	struct push_opts push; /* .library.url NULL: nothing is pushed */
	/* HTTP */
	bool no_listen, web, page_anyone, metrics_anyone;
	struct value_list listen, web_hosts;
	const char *web_token_file, *web_perfetto;
	/* limits */
	const char *max_overhead; /* as given */
	double overhead;
	uint64_t max_memory, min_free;
	uint64_t keep_recordings_ns, recordings_bytes, longest_ns;
	struct value_list config;
	struct message_opts message;
};

/* options.c. Both return -1, or an exit code after a message. */
int daemon_opts_parse(const struct command *c, int argc, char **argv, struct daemon_opts *opts);
void daemon_opts_free(const struct command *c, struct daemon_opts *opts);
extern const struct option_row daemon_options[];

static inline uint64_t in_ms(uint64_t ns)
{
	return ns / 1000000;
}

/* ---- log.c ---- */

/* To be called once, before the others. */
void log_begin(void);
/*
 * A line: what happened, in a word and in a sentence, with more as fields, which are freed. level:
 * "info", "warning", "error".
 */
void log_line(const char *level, const char *event, struct cJSON *fields, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* ---- folder.c ---- */

/*
 * Makes a folder, unless it is there; mode: of one that is made. Nobody but root may be able to put
 * anything into it or in its place. 0, or -errno after a line in the log.
 */
int folder_make(const char *path, mode_t mode);
/* For one daemon at a time: until the descriptor is closed. -EBUSY: another one has it; -errno. */
int folder_lock(const char *folder, const char *name);
struct folder_sums {
	uint64_t files, bytes;
	uint64_t removed, removed_bytes; /* by this call */
	uint64_t wanted, wanted_bytes;   /* of these, only for the disk to have min_free bytes */
	bool more;                       /* is to be removed, soon: enough was done for one turn */
};
/*
 * Whether a turn of the loop that began then, and has removed so many files, is to remove no more.
 */
bool folder_enough(uint64_t begun_ns, uint64_t removed);
/*
 * Removes the oldest captures of a folder: those older than keep_ns, those beyond most_bytes, and
 * as many as it takes for the disk to have min_free bytes. Also what was left unfinished. shelf:
 * NULL: the times of the files say how old they are.
 */
struct shelf;
void folder_trim(const char *path, uint64_t keep_ns, uint64_t most_bytes, uint64_t min_free,
		 struct shelf *shelf, struct folder_sums *sums);
/* What was removed of a folder for want of space, and is not in the log yet. All zero at first. */
struct folder_want {
	uint64_t files, bytes, next_ns;
};
/* After folder_trim(): says it in the log, once a minute at most. */
void folder_say_want(struct folder_want *w, const char *path, uint64_t min_free,
		     const struct folder_sums *sums);
/*
 * A folder, and how old the captures are that this daemon has stored there: by a clock that nobody
 * sets. Of others the times of their files say it. All zero at first.
 */
struct shelf {
	struct shelved *shelved; /* by name */
	size_t nr, cap;
	struct folder_sums sums;         /* when it was last looked at */
	uint64_t removed, removed_bytes; /* in all */
	struct folder_want want;
};
#define SHELF_NAME_BYTES 64
/* A capture was stored there just now: its path, or its name. One that is known stays as it is. */
void shelf__note(struct shelf *s, const char *path);
bool shelf__has(const struct shelf *s, const char *name);
const char *shelf__name(const struct shelf *s, size_t i); /* of s->nr, by name */
/* Forgets all but these, which are in order. */
void shelf__keep(struct shelf *s, char **names, size_t nr);
/* folder_trim(). True: more is to go, in another turn of the loop. */
bool shelf__trim(struct shelf *s, const char *path, uint64_t keep_ns, uint64_t most_bytes,
		 uint64_t min_free);
void shelf__free(struct shelf *s);
/* What a file takes of the disk. */
uint64_t folder_bytes(const struct stat *st);
/* Bytes that are free for the daemon on the disk of this path; UINT64_MAX: not known. */
uint64_t folder_free(const char *path);
/* The captures of a folder, oldest first: nr names, each malloc'ed, as is the list. 0 or -errno. */
int folder_list(const char *path, char ***names, size_t *nr);
void folder_list_free(char **names, size_t nr);

/* ---- child.c ---- */

/* A process of the daemon's. The caller's; it stays where it is until .ended was called. */
struct child {
	const char *name;                                  /* of the process, at most 15 bytes */
	void (*message)(void *ctx, const struct cJSON *m); /* one came from it */
	void (*ended)(void *ctx, int status);              /* as from waitpid() */
	void *ctx;
	pid_t pid;       /* 0: it does not run */
	uint64_t cpu_ns; /* once it has ended: that it used, with its own children */
	struct loop_watch watch;
	struct loop *loop;
	struct child *next;
};

/*
 * Begins it: run(fd, arg) in a process that has none of the daemon's descriptors but fd, by which
 * both send messages. 0 or -errno.
 */
int child__start(struct loop *l, struct child *c, int (*run)(int fd, void *arg), void *arg);
/* m is freed. A child that does not read loses messages, and is not waited for. */
void child__send(struct child *c, struct cJSON *m);
/* The same with a file, which stays open here. False: it was not sent. */
bool child__send_file(struct child *c, struct cJSON *m, int file);
/* Looks for children that have ended, after SIGCHLD. */
void children__reap(void);
size_t children__nr(void);
/* Signals all that run. */
void children__signal(int signal);
/* CPU time and memory of all that run, and of this process, without pages of files. */
void children__usage(uint64_t *cpu_ns, uint64_t *own_bytes);
/* The same of each; the daemon's own CPU time includes that of those that have ended. */
void children__each(void (*each)(void *ctx, const char *name, uint64_t cpu_ns, uint64_t bytes),
		    void *ctx);
/* Counts in, besides, a process that is none of these. pid 0: none. */
void children__also(const char *name, pid_t pid);

/* ---- for what runs in a child ---- */

/* Sends m, and frees it. */
void link_send(int fd, struct cJSON *m);
/* Waits at most so long for a message, which the caller deletes; NULL: none came. */
struct cJSON *link_take(int fd, int timeout_ms, bool *closed);
/* The same with a file that came along, which the caller closes; -1: none did. */
struct cJSON *link_take_file(int fd, int timeout_ms, bool *closed, int *file);
/* Sends the library's messages, and those of the command line, as messages of the log. */
void link_log(int fd);
/* {"state": "failed"} with what the library says of its last error. */
void link_fail(int fd);
/* The same with a cause of which the library does not know; hint may be NULL. */
void link_fail_for(int fd, const char *cause, const char *hint);

/* ---- peer.c ---- */

/* PID namespaces, by the number of their inode. */
#define SPACE_UNKNOWN UINT64_MAX
/* Of a process. */
uint64_t process_space(pid_t pid);
/*
 * Of who has connected, the process pid; 0: the daemon's own. alive: if it is another one, a
 * descriptor for peer_ended(), which the caller closes; else -1.
 */
uint64_t peer_space(int fd, pid_t pid, int *alive);
/* Then numbers of the process and of its namespace may be others'. */
bool peer_ended(int alive);
/* The number means this namespace, in which the process is, until it is dropped as often. */
int space_hold(uint64_t space, pid_t pid); /* 0 or -errno */
void space_drop(uint64_t space);           /* one that is not held is fine */
/* Whose limits hold: root of another namespace has not those of root; all these are one user. */
static inline uid_t space_user(uid_t uid, uint64_t space)
{
	return !uid && space ? (uid_t)-1 : uid;
}

/* ---- owner.c ---- */

/*
 * 0: this user could look into the process itself. -EPERM: it is another's, or has or had rights
 * that the user has not. -ENOENT: there is none. space: where the user is, and only processes there
 * are the user's; 0: in the daemon's own PID namespace. asker: the process that asks: root
 * elsewhere may have that recorded, whatever capabilities it has.
 */
int process_check_owner(pid_t pid, uid_t uid, uint64_t space, pid_t asker);

/* ---- chunks.c ---- */

struct chunks_job {
	const char *folder;
	uint64_t chunk_ns;
	struct kprof_session_opts session;
	/* Only one chunk: begun at that time of CLOCK_MONOTONIC, if a process uses a device. */
	uint64_t once_ns;
};
int chunks_run(int fd, void *job);

/* ---- demand.c ---- */

struct demand_job {
	const char *const *options; /* as on kprof's command line, behind `kprof ctl` */
	size_t nr_options;
	const char *path; /* of the capture */
	uid_t uid;
	gid_t gid;
	bool any_process;              /* the asker may record what is not its own */
	pid_t pid;                     /* this process, beside those in the options; 0: none */
	pid_t thread;                  /* only this thread of it, by the number inside; 0: all */
	pid_t asker;                   /* which process has asked */
	uint64_t space;                /* its PID namespace; 0: the daemon's */
	uint64_t longest_ns;           /* all rounds together */
	uint64_t most_bytes, min_free; /* it ends when it has written more, or so little is free */
	bool start;                    /* once it is prepared */
	bool alive;                    /* what is allocated at its end, and nothing else */
	/* A dump of these captures instead: of the last so much; 0: all. */
	const char *dump_folder;
	uint64_t last_ns;
	uid_t asked_by;  /* has had root's dump made by a signal, and has a share; 0: nobody */
	bool for_dyno;   /* asked for by dyno, which has a share, too, in place of the user */
	const char *why; /* what it is for, for the list; NULL: nothing is said */
	/*
	 * Where a trace is to be, too, or with .alive PyTorch's snapshot of memory, below one of
	 * these folders; NULL: nowhere. See kprof_dynolog_create().
	 */
	const char *trace_path;
	const char *const *trace_folders;
	size_t nr_trace_folders;
};
int demand_run(int fd, void *job);

/* ---- trace.c ---- */

/* Writes the trace that the job asks for, of this capture. 0 or -errno. */
int trace_write(const struct demand_job *job, const char *capture);

/* ---- dump.c ---- */

int dump_run(int fd, void *job);

/* ---- keeper.c ---- */

struct keeper;
struct keeper_opts {
	struct loop *loop;
	const char *name; /* "sampler" */
	char folder[DAEMON_PATH_BYTES];
	struct kprof_session_opts session;
	uint64_t chunk_ns, keep_ns, keep_bytes, min_free;
	uint64_t max_tables;                         /* with larger tables, it is begun anew */
	void (*stored)(void *ctx, const char *path); /* a capture is whole; may be NULL */
	/*
	 * Signals of session.asked_by were sent: how many, and of the last one which, to which
	 * process, by whom; may be NULL.
	 */
	void (*asked)(void *ctx, uint64_t times, int signal, pid_t pid, uid_t uid);
	void *ctx;
};
int keeper__new(const struct keeper_opts *opts, struct keeper **out);
void keeper__free(struct keeper *k); /* NULL is fine */
/* Once a second. */
void keeper__tend(struct keeper *k, uint64_t now_ns);
/*
 * Whether somebody reads what is stored. While that is so, or somebody waits for a cut, twice as
 * much is kept: what is removed otherwise may still be needed. min_free holds all the same.
 */
void keeper__hold(struct keeper *k, bool held);
/* Begins anew, with a process that takes over from the one before. */
void keeper__renew(struct keeper *k, const char *why);
/* Goes on with other options, as keeper__renew(); also one that was asked to end. */
void keeper__change(struct keeper *k, const struct keeper_opts *opts);
/* Asks it to end. */
void keeper__stop(struct keeper *k);
bool keeper__runs(const struct keeper *k);
/* It is to run, or still does. */
bool keeper__goes_on(const struct keeper *k);
const char *keeper__folder(const struct keeper *k);
/* What it last said of itself; NULL: nothing yet. */
const struct cJSON *keeper__stats(const struct keeper *k);
/* Numbers of this keeper, for people and metrics. The caller deletes it. */
struct cJSON *keeper__state(const struct keeper *k);
/*
 * Has what was recorded until now written as a whole chunk, and then calls done, once; also when
 * that fails.
 */
void keeper__cut(struct keeper *k, void (*done)(void *ctx), void *ctx);

/* ---- socket.c ---- */

/*
 * Listens at this path. A descriptor, and lock: another, that is to stay open as long; -1: there is
 * none. stored: systemd keeps it for the next daemon. -EBUSY: another daemon listens there; -errno.
 */
int socket_listen(const char *path, int *lock, bool *stored);

/* ---- clients.c ---- */

struct client {
	uid_t uid;
	gid_t gid;
	pid_t pid;
	uint64_t space;   /* its PID namespace; 0: the daemon's own */
	bool privileged;  /* root, or a member of the group, and in the daemon's namespace */
	const char *verb; /* what it asks; NULL: nothing that is known */
	char begun
		[RECORDING_ID_BYTES]; /* a recording of its own that it has not been told of yet */
};
struct clients;
struct clients_opts {
	struct loop *loop;
	const char *path;
	/*
	 * A line came. The answer is given then or later, once, with clients__answer(); until then
	 * no other line of this client is read.
	 */
	void (*asked)(void *ctx, struct client *c, const struct cJSON *question);
	/* It is gone, and must not be answered. */
	void (*gone)(void *ctx, struct client *c);
	/* It was answered, or refused something; may be NULL. */
	void (*answered)(void *ctx, const struct client *c, bool ok);
	/* Whether the kernel's groups of this process make it privileged. */
	bool (*is_privileged)(void *ctx, uid_t uid, const gid_t *groups, size_t nr);
	void *ctx;
};
/* -EBUSY: another daemon listens there. Other errors are printed. */
int clients__new(const struct clients_opts *opts, struct clients **out);
void clients__free(struct clients *c);
void clients__tend(struct clients *c, uint64_t now_ns);
/* Where systemd keeps the socket for the next daemon, new clients wait for that from now on. */
void clients__leave(struct clients *c);
/* answer is freed. file: sent along, and not closed; -1: none. */
void clients__answer(struct client *c, struct cJSON *answer, int file);
/*
 * A line of the log with who it is and what it asks; id: of the recording that is meant, or NULL.
 * So many a minute of a user, but root: the next minute says how many were left out.
 */
void clients__log(struct client *c, const char *level, const char *event, const char *id,
		  const char *text);
/* Is logged, too. */
void clients__refuse(struct client *c, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- recordings.c ---- */

enum recording_state {
	RECORDING_PREPARING,
	RECORDING_PREPARED,
	RECORDING_STARTING,
	RECORDING_ON,
	RECORDING_STOPPING,
	RECORDING_DONE,
	RECORDING_FAILED,
	RECORDING_CANCELLED,
};
const char *recording_state_name(enum recording_state state);

struct recordings;
struct recording;
struct recordings_opts {
	struct loop *loop;
	char folder[DAEMON_PATH_BYTES];
	uint64_t keep_ns, keep_bytes, min_free, longest_ns;
	/* A recording is in another state. */
	void (*changed)(void *ctx, struct recording *r);
	void *ctx;
};
int recordings__new(const struct recordings_opts *opts, struct recordings **out);
void recordings__free(struct recordings *rs);
void recordings__set_limits(struct recordings *rs, uint64_t keep_ns, uint64_t keep_bytes,
			    uint64_t min_free, uint64_t longest_ns);
void recordings__tend(struct recordings *rs, uint64_t now_ns);
/*
 * Begins one, as its first state. options: texts; kept as long as it is needed. -EAGAIN: this user
 * (or dyno) has too many; others: it cannot be begun, with the library's error.
 */
int recordings__begin(struct recordings *rs, const struct demand_job *job, struct recording **out);
struct recording *recordings__find(struct recordings *rs, const char *id);
/* The latest one (r NULL), or the one before r; NULL: there is none. */
struct recording *recordings__next(struct recordings *rs, struct recording *r);
/*
 * The latest one of this process that goes on, or records at this moment (on), of those that the
 * client may see. NULL: there is none.
 */
struct recording *recordings__of(struct recordings *rs, pid_t pid, const struct client *c, bool on);
/* Ends those that go on: their captures are finished. */
void recordings__stop_all(struct recordings *rs);
size_t recordings__running(const struct recordings *rs);
/* Whether a dump is being made. */
bool recordings__dumping(const struct recordings *rs);

const char *recording__id(const struct recording *r);
enum recording_state recording__state(const struct recording *r);
/*
 * Of the same user's, or the client is privileged. Who is elsewhere sees what was begun there; in
 * the daemon's namespace, a user sees what the same user's processes elsewhere have begun.
 */
bool recording__may_see(const struct recording *r, const struct client *c);
uid_t recording__uid(const struct recording *r);
uint32_t recording__rounds(const struct recording *r); /* that are whole */
/* Whether it goes on, and is of this process. */
bool recording__is_of(const struct recording *r, pid_t pid);
/* What is known of it, for clients. The caller deletes it. */
struct cJSON *recording__describe(const struct recording *r);
/* at_ns, of CLOCK_REALTIME, and duration_ns: 0: as it was prepared. */
void recording__start(struct recording *r, uint64_t at_ns, uint64_t duration_ns);
void recording__stop(struct recording *r);
void recording__cancel(struct recording *r);
/* Opens what was recorded; round 0: the only one, or the last. A descriptor or -errno. */
int recording__open(const struct recording *r, uint32_t round);

/* ---- requests.c ---- */

struct daemon;
void requests__asked(void *ctx, struct client *c, const struct cJSON *question);
void requests__gone(void *ctx, struct client *c);
void requests__answered(void *ctx, const struct client *c, bool ok);
void requests__changed(void *ctx, struct recording *r);
/* Frees what is kept of clients that wait. */
void requests__forget(struct daemon *d);

/* A client that waits for a recording to be in a state. */
struct pending {
	struct client *client;
	struct recording *recording;
	enum recording_state wanted;
	struct pending *next;
};

struct daemon {
	const struct command *command;
	int argc;
	char **argv;
	struct daemon_opts first_opts, *opts; /* those of the begin; those that hold now */
	struct loop *loop;
	struct loop_watch signals, timer;
	struct clients *clients;
	struct recordings *recordings;
	struct keeper *sampler, *flight;
	struct windows *windows; /* NULL: there never were any */
	struct shelf left[3];    /* always.c: what these have left, where there are none now */
	uint64_t next_left_ns;
	struct triggers *triggers; /* NULL: there are none */
	struct pusher *pusher;     /* NULL: nothing is pushed */
	struct kineto *kineto;     /* NULL: it is not served */
	struct serve *serve;       /* NULL: not yet */
	uint64_t next_kineto_ns;   /* when that is tried again; 0: now */
	uint64_t next_memory_ns;   /* when what has grown may be begun anew again; 0: now */
	struct pending *pending;
	struct cut *cuts;         /* requests.c */
	struct listing *listings; /* listing.c */
	gid_t group;              /* whose members are privileged; 0: there is none */
	uint64_t begun_ns, begun_real_ns;
	int state_lock; /* below 0: there is none */
	bool ending;
	char told[128]; /* to systemd: what it does */
	uint64_t end_by_ns;
};

/* ---- listing.c ---- */

/* Answers with a file to read from: what is known of the processes that the client may see. */
void listing__asked(struct daemon *d, struct client *c);
/* Once a second. */
void listing__tend(struct daemon *d, uint64_t now_ns);
void listing__forget(struct daemon *d);

/* ---- always.c: by the options, which may be others than before ---- */

int always_sample(struct daemon *d);
int always_watch(struct daemon *d);
int always_device(struct daemon *d);
/* Once a second: folders of what is not recorded any more since a restart are kept to limits. */
void always_tend(struct daemon *d, uint64_t now_ns);

/* ---- state.c ---- */

/* Begins a dump of what the flight recorder has stored: the job has whose, of what and why. */
int daemon_dump(struct daemon *d, struct demand_job *job, struct recording **out);

/*
 * What is held against max_memory: of all its processes, without pages of files, and of the maps
 * that the sampler and the flight recorder have in the kernel.
 */
uint64_t daemon_memory(const struct daemon *d);

/* What the daemon says of itself: for `kprof ctl status`. The caller deletes it. */
struct cJSON *daemon_state(struct daemon *d);

#endif
