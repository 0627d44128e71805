/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The daemon's HTTP: /metrics and the page to look at, served by a child process without any
 * rights. The child has nothing to tell by itself: it asks the daemon over a socket pair, and hands
 * on what it is answered. A question and its answer are a packet each, a JSON object; what is to be
 * served is always a descriptor beside the answer (of a memfd, or of a file), so that the child
 * parses nothing and keeps nothing in memory. docs/web.md is the user's view.
 *
 * The child is not trusted by the daemon, as a client may have taken it over: it can ask for what
 * is listed here, and web_take() believes nothing else.
 */
#ifndef KPROF_CMD_DAEMON_WEB_WEB_H
#define KPROF_CMD_DAEMON_WEB_WEB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define WEB_PORT 11778
#define WEB_LISTEN 8       /* addresses, at most */
#define WEB_HOSTS 16       /* names, at most */
#define WEB_NAME_BYTES 128 /* of a dump's name, at most */
#define WEB_ERROR_BYTES 256

struct web_opts {
	/*
	 * Where to listen: "127.0.0.1:11778", "[::1]:11778"; numbers, no names. Port 0: any. Nothing
	 * here: these two, without the second where there is no IPv6.
	 */
	const char *listen[WEB_LISTEN];
	size_t nr_listen;
	/* Names by which clients may call this server, besides localhost and any address. */
	const char *hosts[WEB_HOSTS];
	size_t nr_hosts;
	bool page; /* the page and what belongs to it, besides /metrics */
	/*
	 * A file with the token that clients must send: made, if it is not there. Without one, the
	 * page is not served but with page_anyone, and /metrics only on loopback addresses but with
	 * metrics_anyone. (On a loopback address, all users of the machine are clients.)
	 */
	const char *token_file;
	bool page_anyone;    /* on loopback addresses, the page needs no token */
	bool metrics_anyone; /* /metrics needs no token anywhere */
	const char
		*perfetto; /* the origin of Perfetto's interface; NULL: https://ui.perfetto.dev */
	unsigned int answer_ms; /* how long the child waits for an answer; 0: 2000 */
};

struct web_error {
	char cause[WEB_ERROR_BYTES];
	char hint[WEB_ERROR_BYTES]; /* "": there is none */
};

struct web {
	pid_t pid;
	int fd;                     /* for poll(): readable when a question is there */
	uint16_t ports[WEB_LISTEN]; /* that the addresses have got, in their order */
	size_t nr_ports;
};

/*
 * Listens, and starts the child, which has a copy of the caller's memory: so call it early, before
 * secrets are read. It ends when the caller does, or closes the descriptor. 0; -errno, and why.
 */
int web_start(const struct web_opts *opts, struct web *out, struct web_error *why);
/* Ends the child, and waits for it. */
void web_stop(struct web *web);

enum web_get {
	WEB_METRICS,      /* the text of metrics__write(), in the format that is asked for */
	WEB_METRICS_TEXT, /* … in the older format */
	WEB_STATUS,       /* JSON objects: docs/web.md has their members */
	WEB_PROCESSES,
	WEB_DUMPS,
	WEB_FLAME, /* the last flame graph, as kprof exports .svg */
	WEB_DUMP,  /* by name: the capture */
	WEB_TRACE, /* by name: the same for Perfetto */
	WEB_NR_GET,
};

struct web_question {
	uint32_t id;
	enum web_get get;
	char name[WEB_NAME_BYTES + 1]; /* [0-9A-Za-z._-]+, not beginning with a point; or "" */
};

/*
 * Takes the next question. Never waits. 1; 0: there is none; -EPIPE: the child has ended;
 * -EBADMSG: it asks what no child of ours asks: end it.
 */
int web_take(int fd, struct web_question *out);
/* For tests: what web_take() makes of a packet. False: it is no question. */
bool web_question_read(const char *packet, struct web_question *out);

/*
 * Answers with what is in a file, from its begin to its present end; content stays the caller's
 * (where it is read next may change).
 * suffix: of the file's name at the client (".pftrace.gz"); NULL: the usual one. None of these
 * waits: -EAGAIN if the child does not read its answers, and then it does without.
 */
int web_answer(int fd, const struct web_question *q, int content, const char *suffix);
/* Answers with a text. */
int web_answer_text(int fd, const struct web_question *q, const char *text, size_t bytes);
/* Answers that there is none; code: 404, 503 (not now). error: in a few words, for people. */
int web_refuse(int fd, const struct web_question *q, unsigned int code, const char *error);

#endif
