/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the daemon tells by HTTP (web/web.h has the process that serves it):
 *
 *   serve.c    the process that serves: begun, asked by, begun anew
 *   figures.c  the numbers of /metrics that the daemon knows itself
 *   looks.c    the numbers by process, of chunks that were looked at
 *   count.c    inside of a process without rights: looks at a chunk
 *   makes.c    flame graphs and traces, made when somebody asks; make.c: inside of a process
 *   pages.c    the JSON that the page is made of
 */
#ifndef KPROF_CMD_DAEMON_SERVE_H
#define KPROF_CMD_DAEMON_SERVE_H

#include <stdio.h>

#include "cmd/daemon/daemon.h"
#include "cmd/daemon/web/metrics.h"
#include "cmd/daemon/web/web.h"

/* ---- make.c: for processes that read captures ---- */

/*
 * For a process of root's: copies the capture to a file of nobody's that has no name, and becomes
 * nobody. path: where it is opened from then on. output: what will be written, or NULL. If it
 * fails, the daemon, if it is there, has been told why, by fd.
 */
int reader_begin(int fd, const char *capture, const char *folder, const char *output, char *path,
		 size_t bytes);

struct make_job {
	char capture[DAEMON_PATH_BYTES + RECORDING_ID_BYTES + 32];
	const char *folder;                  /* for files in between */
	char making[DAEMON_PATH_BYTES];      /* a folder that is nobody's, for what is made */
	char output[DAEMON_PATH_BYTES + 32]; /* in it; its suffix says what it is */
};
int make_run(int fd, void *job);

/* ---- count.c ---- */

enum chunk_kind { CHUNK_SAMPLES, CHUNK_FLIGHT, CHUNK_DEVICE, CHUNK_KINDS };
extern const char *const chunk_kind_names[CHUNK_KINDS];

#define COUNT_MOST_PROCESSES 200 /* that are told of one by one: those with the most CPU time */
#define COUNT_NAME_BYTES 48
enum { COUNT_STEP_FROM_BEFORE = 1, COUNT_STEP_GOES_ON = 2 }; /* of the edges of a chunk */

struct count_job {
	enum chunk_kind kind;
	char path[DAEMON_PATH_BYTES];
	const char *folder;   /* for files in between */
	uint64_t ns_a_second; /* CPU time that it may take */
};
/* Sends {"processes": …}, {"gpus": …}, {"steps": …}, {"cost_ns", "window_ns"}: see count.c. */
int count_run(int fd, void *job);

/* ---- looks.c ---- */

#define LOOKS_PROCESS "kprof-count"
struct looks;
/* folder: for files in between. NULL: no memory. */
struct looks *looks__new(struct loop *l, struct metrics *m, const char *folder);
void looks__free(struct looks *l); /* NULL is fine */
/* A chunk is whole. It is looked at soon, later, or, if looks cost too much, never. */
void looks__chunk(struct looks *l, enum chunk_kind kind, const char *path);
/* bound: the daemon's, as a share of one CPU */
void looks__tend(struct looks *l, uint64_t now_ns, double bound);
/* None is looked at any more, and a look that goes on is ended. */
void looks__stop(struct looks *l);
/* No process uses a device any more: what was said of the time before is over. */
void looks__no_gpus(struct looks *l);
/*
 * What records these has ended: what the last ones say is forgotten, and of those that have not
 * been looked at only what is counted is taken. Until another one comes.
 */
void looks__ended(struct looks *l, enum chunk_kind kind);
/* CPU time of all looks until now. */
uint64_t looks__cpu_ns(const struct looks *l);
/* The last chunk of samples that was looked at. NULL: there was none. */
struct looked {
	char path[DAEMON_PATH_BYTES];
	uint64_t samples, from_ms, to_ms; /* Unix time */
};
const struct looked *looks__samples(const struct looks *l);
/* Of processes, as /api/processes has it. The caller deletes it. */
struct cJSON *looks__processes(const struct looks *l);
/* The largest share of the time in which a GPU was busy; < 0: none was seen. */
double looks__gpu_busy(const struct looks *l);

/* ---- figures.c ---- */

#define FIGURES_HISTORY 120 /* seconds */

struct figures;
struct figures *figures__new(void); /* NULL: no memory */
void figures__free(struct figures *f);
struct metrics *figures__metrics(struct figures *f);
/* Once a second. looks_ns: CPU time that looks took until now. */
void figures__tend(struct figures *f, struct daemon *d, uint64_t looks_ns);
/* What records these has ended: what is said of it at this moment is forgotten. */
void figures__ended(struct figures *f, enum chunk_kind kind);
/* Sets what is known at any moment, for a text that is to be made. */
void figures__fill(struct figures *f, struct daemon *d);
/* What kprof cost in each of the last seconds, the latest last. */
size_t figures__history(const struct figures *f, double to[FIGURES_HISTORY]);
uint64_t figures__memory(const struct figures *f);
/* Share of the machine's CPU time that was used in the last second; < 0: not known. */
double figures__cpu(const struct figures *f);
/* The mean number of CPUs that were busy in the last second; 0: not known. */
double figures__busy_cpus(const struct figures *f);

/* ---- makes.c ---- */

struct makes;
struct makes_opts {
	struct loop *loop;
	char folder[DAEMON_PATH_BYTES]; /* what is made is kept there */
	/* It is made, or, file < 0, could not be: error. The file is closed afterwards. */
	void (*made)(void *ctx, const char *name, int file, const char *error);
	void *ctx;
};
int makes__new(const struct makes_opts *opts, struct makes **out);
void makes__free(struct makes *m); /* NULL is fine */
/* Opens what is there of this name (with its suffix). A descriptor or -errno. */
int makes__open(struct makes *m, const char *name);
/* Has it made of a capture, after which .made is called. 0 or -errno; -EBUSY: too many wait. */
int makes__want(struct makes *m, const char *name, const char *capture);
void makes__tend(struct makes *m, uint64_t now_ns);

/* ---- pages.c: the caller deletes them ---- */

struct pages_numbers {
	double history[FIGURES_HISTORY];
	size_t nr;
	uint64_t memory;
	double cpu, gpu;
	const struct looked *flame; /* what the flame graph is of; NULL: there is none */
};
struct cJSON *pages_status(struct daemon *d, const struct pages_numbers *n);
struct cJSON *pages_dumps(struct daemon *d);

/* ---- serve.c ---- */

struct serve;
/* 0 or -ENOMEM: where it cannot listen, it says so in the log, and tries again. */
int serve__new(struct daemon *d, struct serve **out);
void serve__free(struct serve *s); /* NULL is fine */
/* The daemon ends: no chunk is looked at any more. s may be NULL. */
void serve__ending(struct serve *s);
/* The options may be others. */
void serve__change(struct serve *s);
/* Once a second. */
void serve__tend(struct serve *s, uint64_t now_ns);
/* What was done; NULL is fine in all of them. */
void serve__chunk(struct serve *s, enum chunk_kind kind, const char *path);
void serve__answered(struct serve *s, const char *request, bool ok);
void serve__recorded(struct serve *s, enum recording_state result);
/* rule: NULL: somebody asked. */
void serve__dumped(struct serve *s, const char *rule);
/* The caller deletes it. */
struct cJSON *serve__state(const struct serve *s);

#endif
