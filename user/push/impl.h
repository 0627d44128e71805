/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of a pusher, from the bottom up: URLs (url.c), secrets and headers (headers.c), what an
 * answer means (answer.c), libcurl (curl.c), the queue (queue.c), what a capture becomes (make.c),
 * one request on its way (transfer.c), all together (push.c).
 */
#ifndef KPROF_PUSH_IMPL_H
#define KPROF_PUSH_IMPL_H

#include <curl/curl.h>

#include "kprof/push.h"
#include "model/resource/resource.h"

#define PUSH_ANSWER_BYTES (64u << 10) /* most that is read of an answer, headers or body */
#define PUSH_TEXT_BYTES 256

/* ---- headers.c ---- */

struct push_secret {
	char *path; /* NULL: there is none */
	char *text; /* what the file had when it could last be read, without the line's end */
};
int push_secret__load(struct push_secret *s, const char *path);
/* Reads the file again; what was known stays if that is not possible. */
void push_secret__renew(struct push_secret *s);
void push_secret__free(struct push_secret *s);
int push_header_check(const char *header);

/* ---- answer.c ---- */

enum push_verdict { PUSH_TAKEN, PUSH_AGAIN, PUSH_DROP };
enum push_verdict push_verdict_of(int status);
/*
 * What an OTLP receiver left out of what it took; reason becomes printable. False: the body is no
 * such answer.
 */
bool push_partial(const void *body, size_t bytes, uint64_t *rejected, char reason[PUSH_TEXT_BYTES]);
/* A receiver's text in one line of printable ASCII, cut where it is too long. */
void push_printable(const void *text, size_t bytes, char out[PUSH_TEXT_BYTES]);
/*
 * The pause before the next try, after so many failures in a row: doubled each time, at most a
 * minute, random by half; but as long as the receiver asks for, up to five minutes.
 */
uint64_t push_pause_ns(uint64_t first_ns, unsigned int failures, uint64_t asked_ns,
		       uint32_t random);

/* ---- curl.c ---- */

/* The functions of libcurl that are used: it is loaded only by who pushes. */
struct push_curl {
	CURLcode (*global_init)(long flags);
	CURL *(*easy_init)(void);
	CURLcode (*easy_setopt)(CURL *easy, CURLoption option, ...);
	CURLcode (*easy_getinfo)(CURL *easy, CURLINFO info, ...);
	void (*easy_cleanup)(CURL *easy);
	void (*easy_reset)(CURL *easy);
	const char *(*easy_strerror)(CURLcode code);
	struct curl_slist *(*slist_append)(struct curl_slist *list, const char *text);
	void (*slist_free_all)(struct curl_slist *list);
	CURLM *(*multi_init)(void);
	CURLMcode (*multi_add_handle)(CURLM *multi, CURL *easy);
	CURLMcode (*multi_remove_handle)(CURLM *multi, CURL *easy);
	CURLMcode (*multi_perform)(CURLM *multi, int *running);
	CURLMcode (*multi_poll)(CURLM *multi, struct curl_waitfd fds[], unsigned int nr,
				int timeout_ms, int *ready);
	CURLMsg *(*multi_info_read)(CURLM *multi, int *left);
	CURLMcode (*multi_cleanup)(CURLM *multi);
};
/* NULL with the error set: it is not installed. Stays loaded. */
const struct push_curl *push_curl_load(void);

/* ---- queue.c ---- */

/* A request that waits: an entry's file with its head, and another one with its body. */
struct push_item {
	char entry[48];   /* folder in the queue */
	char name[24];    /* of the request in it */
	uint64_t real_ns; /* when it was put there */
	uint64_t bytes;   /* on the disk */
	bool tried;       /* it has failed; others go first */
};

struct push_queue {
	char *path;
	int fd, lock; /* -1: not open yet */
	bool temporary;
	uint64_t most_bytes, most_age_ns;
	struct push_item *items; /* oldest first */
	size_t nr, cap;
	uint64_t bytes;
	uint64_t dropped[KPROF_PUSH_DROPS];
};

int push_queue__open(struct push_queue *q); /* reads what is there; once */
void push_queue__close(struct push_queue *q);
bool push_queue__has(const struct push_queue *q, const char *hash);
/*
 * A new folder, in which an entry's requests are written; push_queue__commit() makes it part of the
 * queue, all at once, and push_queue__discard() removes it. *path: malloc'ed.
 */
int push_queue__begin(struct push_queue *q, char **path);
int push_queue__commit(struct push_queue *q, const char *path, const char *hash);
void push_queue__discard(struct push_queue *q, const char *path);
/* Drops what is too old, and the oldest while there is too much; not the item named `keep`. */
void push_queue__trim(struct push_queue *q, uint64_t now_real_ns, const struct push_item *keep);
void push_queue__remove(struct push_queue *q, const struct push_item *item);
/* The item to send now: those that have failed come last. NULL: the queue is empty. */
struct push_item *push_queue__next(struct push_queue *q);
void push_queue__failed(struct push_queue *q, const struct push_item *item);
/* Reads a request. -EBADMSG: it is no longer whole. *head: malloc'ed; *body: open. */
int push_queue__read(const struct push_queue *q, const struct push_item *item, char **head,
		     int *body, uint64_t *body_bytes);

/* ---- make.c ---- */

struct push_make {
	const struct kprof_push_url *url;
	struct resource_opts resource;
};
#define PUSH_HEAD_SUFFIX ".head"
#define PUSH_BODY_SUFFIX ".body"
#define PUSH_HEAD_BYTES 16384
/* Which capture it is, by what it says of itself: 16 hexadecimal digits. */
#define PUSH_HASH_BYTES 17
void push_hash(const struct kprof_capture *c, char hash[PUSH_HASH_BYTES]);
/* Writes the requests for a capture into a folder. */
int push_make_requests(const struct push_make *m, struct kprof_capture *c, const char *folder);

/* What a head says: JSON. */
struct push_head {
	char kind[16];
	char target[PUSH_HEAD_BYTES]; /* path and query, behind the URL's base */
	char type[64];                /* content type */
	bool gzip;                    /* content encoding */
};
bool push_head_parse(const char *json, struct push_head *to);

/* ---- transfer.c ---- */

struct push_transfer;
struct push_result {
	enum push_verdict verdict;
	int status;        /* 0: no answer */
	uint64_t asked_ns; /* Retry-After */
	uint64_t rejected;
	bool untrusted;
	char error[PUSH_TEXT_BYTES * 2], hint[PUSH_TEXT_BYTES]; /* "" */
};
struct push_where {
	const struct kprof_push_opts *opts;
	const struct kprof_push_url *url;
	struct push_secret token, basic;
};
int push_transfer__new(struct push_transfer **out);
void push_transfer__free(struct push_transfer *t);
bool push_transfer__busy(const struct push_transfer *t);
/* Takes over the descriptor. */
int push_transfer__start(struct push_transfer *t, struct push_where *where,
			 const struct push_head *head, int body, uint64_t bytes);
/* True: it has ended, as *result says. */
bool push_transfer__go_on(struct push_transfer *t, const struct push_where *where,
			  struct push_result *result);
/* Waits for the network, for the descriptors, or for the time. */
void push_transfer__wait(struct push_transfer *t, struct pollfd *fds, size_t nr, int timeout_ms);

#endif
