/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part of dynolog's daemon that Kineto and dyno talk to. PyTorch processes that were started
 * with KINETO_USE_DAEMON ask a datagram socket each few seconds whether they are to record
 * themselves; `dyno gputrace` asks a TCP port for recordings. A server object is both; what a
 * process is recorded by (Kineto inside of it, or kprof from outside) its owner decides.
 *
 * Nothing here waits: the owner has kprof_dynolog_fd() in its poll loop, and calls
 * kprof_dynolog_serve() when that is readable. Callbacks are called by that alone, and must not
 * free the server. What they are given is valid during the call. docs/dynolog.md has the protocols'
 * sources and what is different here. The conventions are those of kprof.h.
 */
#ifndef KPROF_DYNOLOG_H
#define KPROF_DYNOLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KPROF_DYNOLOG_NAME "dynolog"    /* of the datagram socket */
#define KPROF_DYNOLOG_PORT 1778         /* dyno's */
#define KPROF_DYNOLOG_CONFIG_BYTES 8192 /* a request's config at most, with its final NUL */
#define KPROF_DYNOLOG_PATH_BYTES 4096

/* ---- what a request asks for ---- */

struct kprof_dynolog_key {
	const char *name, *value;
};

/* A config's text as libkineto parses it. */
struct kprof_dynolog_config {
	const char *text;         /* as it came */
	const char *log_file;     /* ACTIVITIES_LOG_FILE; NULL: not given */
	uint64_t start_time_ms;   /* begin at this time since the epoch; 0: at once */
	uint64_t duration_ms;     /* 500 unless something else is given */
	uint64_t iterations;      /* record so many steps instead; 0: the duration holds */
	uint64_t start_iteration; /* not before this one; */
	uint64_t roundup;         /* begin at a multiple of this; 0: not given */
	uint64_t warmup_ms;       /* 5000 unless something else is given */
	uint64_t warmup_iterations;
	uint64_t memory_duration_ms;
	bool shapes, memory, stacks, flops, modules;
	const char *activity_types;            /* a list with commas; NULL: not given */
	const struct kprof_dynolog_key *other; /* all other keys, in their order */
	size_t nr_other;
	bool warmup_given;    /* warmup_ms is what the text says */
	bool memory_snapshot; /* PROFILE_MEMORY: what is allocated, as a file of its own */
};

/*
 * -EINVAL: libkineto would ignore the whole text, with the reason as the error's cause. The result
 * is freed as a whole.
 */
int kprof_dynolog_config_parse(const char *text, struct kprof_dynolog_config **out);
void kprof_dynolog_config_free(struct kprof_dynolog_config *c); /* NULL is fine */

/* ---- processes and requests ---- */

struct kprof_dynolog_process {
	pid_t pid;            /* as the server's PID namespace knows it */
	uint64_t start_ticks; /* since boot: with pid, this process and no later one */
	uid_t uid;
	gid_t gid;
	int32_t own_pid;  /* as the process sees itself, in its PID namespace */
	int64_t job_id;   /* SLURM_JOB_ID, as it says itself; 0: none */
	bool registered;  /* Kineto is inside and polls */
	bool idle;        /* and can begin a recording */
	bool waiting;     /* a config was handed over that it has not taken yet */
	uint64_t seen_ns; /* its latest poll, CLOCK_MONOTONIC */
};

struct kprof_dynolog_request {
	uint64_t id; /* no other has it; Kineto is given it as REQUEST_TRACE_ID */
	const struct kprof_dynolog_config *config;
	int64_t job_id;
	const int32_t *pids; /* sorted; none, or only 0: all processes of the job */
	size_t nr_pids;
	uint32_t process_limit;
	bool loopback;    /* who asks is on this machine; nothing else is known of it */
	const char *peer; /* its address and port, as a text */
};

enum kprof_dynolog_engine {
	KPROF_DYNOLOG_NOBODY,  /* as if the process were not there */
	KPROF_DYNOLOG_KINETO,  /* Kineto inside, at its next poll; only of a registered process */
	KPROF_DYNOLOG_OUTSIDE, /* the owner: begin() */
};

struct kprof_dynolog_result {
	uint32_t matched, triggered, busy;
	uint32_t failed;          /* begin() failed otherwise */
	const char *error;        /* the request was refused; NULL: it was not */
	const char *const *notes; /* of kprof_dynolog_note() */
	size_t nr_notes;
};

/* Datagrams and connections that were not answered, since the server was made. */
struct kprof_dynolog_counts {
	uint64_t answered;     /* datagrams, */
	uint64_t malformed;    /* of a wrong size, type or content */
	uint64_t unnamed;      /* by a socket that no answer could be sent to */
	uint64_t unknown;      /* by a process that cannot be seen, or has ended */
	uint64_t forged;       /* with a number that is not the sender's */
	uint64_t too_many;     /* by processes beyond the bounds */
	uint64_t undelivered;  /* the answer had no room with the receiver */
	uint64_t requests;     /* of dyno's port, */
	uint64_t bad_requests; /* connections that asked for nothing known: closed */
	uint64_t slow;         /* connections that took too long, or were in the way of others */
};

struct kprof_dynolog_candidates;

struct kprof_dynolog_opts {
	size_t sz; /* sizeof(struct kprof_dynolog_opts), for compatibility */
	/* The name of the abstract socket; NULL: KPROF_DYNOLOG_NAME; "": none. */
	const char *name;
	/* A socket in each of these folders (KINETO_IPC_SOCKET_DIR, spelled the same). */
	const char *const *folders;
	size_t nr_folders;
	/* TCP: 0: KPROF_DYNOLOG_PORT; -1: one that is free, see kprof_dynolog_port(). */
	int port;
	bool no_tcp;
	/* IP addresses to listen at; none: ::1 and 127.0.0.1. */
	const char *const *addresses;
	size_t nr_addresses;
	/*
	 * A request's log file has to lie below one of these folders, by its text; none: /tmp,
	 * which is Kineto's own rule.
	 */
	const char *const *output_folders;
	size_t nr_output_folders;
	uint32_t max_processes;         /* registered at once; 0: 2048 */
	uint32_t max_processes_of_user; /* except root's; 0: 512 */

	void *ctx; /* for the callbacks, each of which may be NULL */
	/*
	 * More processes that the request may mean, by kprof_dynolog_candidate(). Those that it
	 * does not match, and those that are registered, may be among them; but each costs some
	 * look-ups in /proc, so not all of a machine.
	 */
	void (*candidates)(void *ctx, const struct kprof_dynolog_request *request,
			   struct kprof_dynolog_candidates *to);
	/* Who records a process that was matched. NULL: Kineto, where it is registered. */
	enum kprof_dynolog_engine (*engine)(void *ctx, const struct kprof_dynolog_request *request,
					    const struct kprof_dynolog_process *process);
	/*
	 * Begin to record this process from outside; the result belongs into the file `path`,
	 * which dyno prints (kprof_dynolog_create()). 0; -EBUSY: it is being recorded; others.
	 */
	int (*begin)(void *ctx, const struct kprof_dynolog_request *request,
		     const struct kprof_dynolog_process *process, const char *path);
	/* A request was answered. */
	void (*done)(void *ctx, const struct kprof_dynolog_request *request,
		     const struct kprof_dynolog_result *result);
	/* A process has registered; or it has not polled for a minute, or has ended. */
	void (*seen)(void *ctx, const struct kprof_dynolog_process *process, bool gone);
};

/*
 * The process may be meant (pid: as the server's PID namespace knows it; job_id: its SLURM_JOB_ID,
 * kprof_dynolog_job_id()).
 */
void kprof_dynolog_candidate(struct kprof_dynolog_candidates *to, pid_t pid, int64_t job_id);
/*
 * SLURM_JOB_ID of a process's environment; 0: none. A hostile process can make this last for
 * seconds, a few times.
 */
int64_t kprof_dynolog_job_id(pid_t pid);

/*
 * Says something in the answer to the request that is being answered, as one of its "notes", which
 * dyno shows with it: what is not done as it was asked for. The same twice is said once. For
 * callbacks; text is copied.
 */
struct kprof_dynolog;
void kprof_dynolog_note(struct kprof_dynolog *d, const char *text);

/* ---- the server ---- */

/* Takes sockets and port. What opts points to is copied, but for ctx. */
int kprof_dynolog_new(const struct kprof_dynolog_opts *opts, struct kprof_dynolog **out);
void kprof_dynolog_free(struct kprof_dynolog *d); /* NULL is fine */
/* Readable (epoll, poll) when there is something to serve. */
int kprof_dynolog_fd(const struct kprof_dynolog *d);
/* Serves what is there, a bounded part of it at a time. */
void kprof_dynolog_serve(struct kprof_dynolog *d);
int kprof_dynolog_port(const struct kprof_dynolog *d); /* 0: no TCP */

/* Every registered process; fn returns non-zero to stop, and that value is returned. */
int kprof_dynolog_processes(struct kprof_dynolog *d,
			    int (*fn)(void *ctx, const struct kprof_dynolog_process *process),
			    void *ctx);
/*
 * Hands a config over to the Kineto inside of a process, as a request does. -ESRCH: it is not
 * registered; -EBUSY; both without an error set.
 */
int kprof_dynolog_hand(struct kprof_dynolog *d, pid_t pid, const char *config);
void kprof_dynolog_counts(const struct kprof_dynolog *d, struct kprof_dynolog_counts *out);

/* ---- files ---- */

/*
 * The file that dyno prints for a process, and begin() writes: _<pid> before each ".json".
 * -ENAMETOOLONG.
 */
int kprof_dynolog_path(const char *log_file, int32_t pid, char path[KPROF_DYNOLOG_PATH_BYTES]);
/* The file that Kineto writes: before the first ".pt.trace.json", or else the first ".json". */
int kprof_dynolog_kineto_path(const char *log_file, int32_t pid,
			      char path[KPROF_DYNOLOG_PATH_BYTES]);
/* Whether the path lies below one of the folders, by its text: absolute, without "..". */
bool kprof_dynolog_path_allowed(const char *path, const char *const *folders, size_t nr_folders);
/*
 * Makes a new file for a user, with the rights of that user alone, in a folder that exists below
 * one of these: through no link and onto no other mount (which could be a file system that does
 * not answer), and in the place of no other file. Mode 0600. It has no name until it is complete
 * (publish), so that nobody sees a part of it, and nothing is left of one that is given up; but for
 * file systems that have no such files. Returns a descriptor; -EACCES; -EEXIST; others. For
 * processes with one thread: for the moment the caller has no supplementary groups.
 */
int kprof_dynolog_create(const char *path, const char *const *folders, size_t nr_folders, uid_t uid,
			 gid_t gid);
/* Gives the file its name. -EEXIST: somebody else has made one of that name meanwhile; others. */
int kprof_dynolog_publish(int fd, const char *path, const char *const *folders, size_t nr_folders,
			  uid_t uid, gid_t gid);

#ifdef __cplusplus
}
#endif

#endif
