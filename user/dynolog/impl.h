/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pieces of the server, from the bottom up: datagrams and frames as bytes, processes, the
 * registry of them, which of them a request means, and the sockets.
 */
#ifndef KPROF_DYNOLOG_IMPL_H
#define KPROF_DYNOLOG_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include "kprof/dynolog.h"
#include "util/util.h"

/* ---- datagrams (datagram.c) ---- */

#define DATAGRAM_TYPE_BYTES 32
#define DATAGRAM_PIDS 64 /* Kineto sends 11 at most */

struct datagram_head {
	uint64_t bytes; /* of what follows the head */
	char type[DATAGRAM_TYPE_BYTES];
};

/*
 * The bit of a poll that says that it would take a config now. (Another, 1, is for configs of
 * hardware events, which dyno cannot ask for.)
 */
#define TAKES_ACTIVITIES 2

struct datagram {
	bool is_poll; /* "req"; else "ctxt", who uses which GPU */
	uint32_t takes;
	int64_t job_id;
	int32_t gpu;
	int32_t pids[DATAGRAM_PIDS]; /* the sender, and its ancestors, as it sees them itself */
	size_t nr_pids;
};

#define DATAGRAM_MOST_BYTES (sizeof(struct datagram_head) + 16 + DATAGRAM_PIDS * sizeof(int32_t))

/* -EBADMSG: it is none of these. */
int datagram_decode(const void *data, size_t bytes, struct datagram *out);
/* The head of an answer. */
struct datagram_head datagram_head(bool is_poll, size_t bytes);

/* ---- frames: an int32, then so many bytes (frame.c) ---- */

#define FRAME_MOST_BYTES (256 * 1024)

struct frame {      /* all zero: nothing has come */
	char *data; /* the bytes after the length, with a NUL behind them */
	size_t have, cap;
	uint32_t length; /* once four bytes have come */
	unsigned char head[sizeof(int32_t)];
	size_t have_head;
};

/*
 * What has come next. Grows with what came, not with what was announced. 1: it is complete, and
 * what follows is not looked at; 0: not yet; -EBADMSG: such a length cannot be; -ENOMEM.
 */
int frame__feed(struct frame *f, const void *data, size_t bytes);
void frame__free(struct frame *f);

/* ---- a process (identity.c) ---- */

#define ENTRY_PIDS 11 /* itself and ten ancestors: as many as Kineto sends */

/* A config that was handed over to one or more processes. */
struct handed {
	uint32_t uses;
	size_t bytes;
	char text[];
};

struct entry {
	struct kprof_dynolog_process p;
	size_t nr_pids;
	pid_t pids[ENTRY_PIDS];  /* itself and its ancestors, as the server knows them, */
	int32_t own[ENTRY_PIDS]; /* and as it does; 0: it cannot see that one */
	uint64_t gpus;           /* those that it said it uses, as bits */
	bool polled;
	uint32_t takes;       /* by its latest poll */
	struct handed *waits; /* for its next poll that takes activities */
};

/* Reads who the process is and whose child, from /proc. -ESRCH: it cannot be seen. Never waits. */
int identity_read(pid_t pid, struct entry *out);

/* ---- all that are registered (registry.c) ---- */

struct registry {
	struct entry **all; /* in the order of their registration */
	size_t nr, cap;
	uint32_t most, most_of_user;
};

/* The process with this number and start; one of another start is gone by then. */
struct entry *registry__find(const struct registry *r, pid_t pid);
/* Adds a copy. -ENOSPC: beyond the bounds; -ENOMEM. */
int registry__add(struct registry *r, const struct entry *e, struct entry **out);
void registry__remove(struct registry *r, struct entry *e);
void registry__free(struct registry *r);

/* A config for the entry. -EBUSY: it has one, or could begin nothing now. */
int entry__hand(struct entry *e, struct handed *h);
/* It has what waited for it. */
void entry__taken(struct entry *e);
/* What the owner may know of it now. */
const struct kprof_dynolog_process *entry__shown(struct entry *e);
struct handed *handed_new(const char *text, uint64_t id); /* with one use; NULL: no memory */
void handed_drop(struct handed *h);                       /* one use less */

/* ---- which processes a request means (match.c) ---- */

/* Sorts the numbers of a request, so that a look-up does not depend on their count. */
void match_sort(int32_t *pids, size_t nr);
bool match_entry(const struct kprof_dynolog_request *r, const struct entry *e);

/* ---- the server (request.c, ipc.c, tcp.c, server.c) ---- */

enum source_kind { SOURCE_IPC, SOURCE_LISTENER, SOURCE_CONNECTION, SOURCE_TIMER };

struct source { /* first member of what epoll tells of */
	enum source_kind kind;
	int fd;
};

struct ipc {
	struct source s;
	int folder;                                                /* -1: the abstract socket */
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)]; /* "": the abstract socket */
	ino_t inode;
	dev_t dev;
};

#define CONNECTIONS 32

struct connection {
	struct source s; /* fd -1: free */
	uint64_t until_ns, since_ns;
	struct frame in;
	char *answer; /* NULL: not yet */
	size_t answer_bytes, sent;
	bool loopback;
	char peer[64];
};

struct strings {
	char **all;
	size_t nr;
};

struct kprof_dynolog {
	struct kprof_dynolog_opts o; /* its texts are not the caller's, but those of: */
	struct strings folders, addresses, output_folders;
	char *name;
	int epoll;
	struct source timer;
	uint64_t timer_at_ns; /* 0: off */
	struct ipc **ipc;
	size_t nr_ipc;
	uint32_t ipc_left, connections_left; /* so many more are taken before */
	uint64_t refill_ns;                  /* then */
	bool ipc_rests;                      /* until then nothing is listened to, */
	bool listeners_rest;                 /* or no connection is taken */
	uint64_t sweep_ns;                   /* when to look for those that do not poll any more */
	struct source *listeners;
	size_t nr_listeners;
	struct connection connections[CONNECTIONS];
	struct registry registry;
	uint64_t requests;
	struct vec notes; /* char *: of the request that is being answered */
	struct kprof_dynolog_counts counts;
};

/*
 * Answers a frame of dyno's port: what is to be sent, malloc'ed. -EBADMSG: it is to be closed
 * without an answer.
 */
int request_answer(struct kprof_dynolog *d, const char *json, size_t bytes, const char *peer,
		   bool loopback, char **answer);

/* Forgets an entry, and tells the owner. */
void forget(struct kprof_dynolog *d, struct entry *e);
/* Forgets those that have not polled for a minute. */
void forget_silent(struct kprof_dynolog *d);

int ipc_open(struct kprof_dynolog *d, const char *folder); /* NULL: the abstract socket */
/* Answers one datagram. False: there is none. */
bool ipc_serve(struct kprof_dynolog *d, struct ipc *s);
void ipc_close(struct ipc *s);

struct ipc_answer {
	struct entry *e; /* takes what waits for it; NULL: nothing does */
	int32_t number;  /* of a "ctxt" */
	const void *payload;
	size_t bytes;
};
/* What to answer a datagram with these credentials. -errno: nothing. */
int ipc_decide(struct kprof_dynolog *d, const struct datagram *in, const struct ucred *who,
	       struct ipc_answer *out);

int tcp_open(struct kprof_dynolog *d, const char *const *addresses, size_t nr, bool all);
/* False: there are no descriptors or memory for that now. */
bool tcp_accept(struct kprof_dynolog *d, struct source *listener);
void tcp_serve(struct kprof_dynolog *d, struct connection *c);
void tcp_expire(struct kprof_dynolog *d, uint64_t now_ns);
void tcp_close(struct kprof_dynolog *d);
/* When the next connection has had its time; 0: there is none. */
uint64_t tcp_next_ns(const struct kprof_dynolog *d);

#endif
