/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends the samples of captures to a place that keeps profiles: an OpenTelemetry collector (OTLP),
 * Grafana Pyroscope, Parca. docs/push.md says what each gets.
 *
 * What is to be sent waits in a queue on the disk, where it survives the process, also if that is
 * killed. Each request is delivered at least once: a second time only if the process ends between
 * the receiver's answer and its removal from the queue.
 *
 * One pusher, one destination, one thread. No call waits for the network longer than it is told to.
 * Needs no privileges: the caller is to give up those it has. What a receiver answers is read up to
 * 64 KiB, and no redirect is followed.
 */
#ifndef KPROF_PUSH_H
#define KPROF_PUSH_H

#include <poll.h>

#include "kprof.h"

#ifdef __cplusplus
extern "C" {
#endif

enum kprof_push_kind { KPROF_PUSH_OTLP, KPROF_PUSH_PYROSCOPE, KPROF_PUSH_PARCA, KPROF_PUSH_KINDS };

#define KPROF_PUSH_URL_BYTES 512
struct kprof_push_url {
	enum kprof_push_kind kind;
	bool tls;
	bool loopback; /* "localhost", 127.0.0.0/8 or [::1] */
	char base
		[KPROF_PUSH_URL_BYTES]; /* "https://host:4318/prefix", without a slash at its end */
};
/*
 * Takes KIND+http://HOST[:PORT][/PREFIX] apart, or KIND+https://…; KIND is otlp, pyroscope or
 * parca. Without a port it is the kind's usual one (4318, 4040, 7070), of https 443. -EINVAL: it is
 * no such URL, or names a user, whose password others would see.
 */
int kprof_push_parse_url(const char *text, struct kprof_push_url *out);
const char *kprof_push_kind_name(enum kprof_push_kind kind); /* "otlp" */

struct kprof_push_opts {
	size_t sz;       /* sizeof(struct kprof_push_opts), for compatibility */
	const char *url; /* see kprof_push_parse_url() */
	/*
	 * Folder of the queue, of one pusher alone. It is made with mode 0700 when it is first
	 * needed. NULL: a temporary one, which is removed at the end with all that is in it.
	 */
	const char *queue;
	uint64_t queue_bytes;  /* beyond, the oldest is dropped; 0: 256 MiB */
	uint64_t queue_age_ns; /* what is older is dropped; 0: 24 hours */
	uint64_t timeout_ns;   /* of one request; 0: 30 s */
	uint64_t retry_ns;     /* pause after the first failure, then twice as long …; 0: 1 s */
	/*
	 * Files with a bearer token, or USER:PASSWORD; NULL: none. They are read when the pusher is
	 * made, and again for each request, as they may be renewed. Both only with TLS, or to this
	 * machine.
	 */
	const char *token_file, *basic_file;
	const char *ca;                /* file with the authorities to trust; NULL: the system's */
	const char *certificate, *key; /* of the client, PEM; key NULL: in the same file */
	const char *const *headers;    /* "NAME: VALUE" */
	size_t nr_headers;
	const char *service;       /* of all processes; NULL: each one's name */
	const char *const *labels; /* "KEY=VALUE", to be sent of all processes */
	size_t nr_labels;
};

struct kprof_push;
/*
 * Checks the options and reads the secrets. Nothing is sent yet, and the queue is looked at when it
 * is first needed: the caller can give up rights in between. -ENOENT, with a hint: libcurl is not
 * there.
 */
int kprof_push_new(const struct kprof_push_opts *opts, struct kprof_push **out);
/*
 * Puts the samples and waits of a capture in the queue; then the capture is not needed any more.
 * All of it is there, or nothing. A capture that is in the queue already is not put there again.
 * Takes as long as an export. -ENODATA: the capture has neither samples nor waits.
 */
int kprof_push_add(struct kprof_push *p, const char *capture);
/*
 * Sends what is due, for at most timeout_ms (-1: until something happens). Returns 1 when the queue
 * is empty, 0 if it is not; an error is one of the queue: of the network's, the statistics tell.
 * With nothing to send it returns at once if fds is NULL.
 */
int kprof_push_run(struct kprof_push *p, int timeout_ms);
/*
 * The same as part of a loop: returns also when one of the descriptors is ready, as poll() does, of
 * which only POLLIN and POLLOUT can be waited for; and waits for them also while nothing is to be
 * sent.
 */
int kprof_push_poll(struct kprof_push *p, struct pollfd *fds, size_t nr, int timeout_ms);

enum kprof_push_drop {
	KPROF_PUSH_REFUSED, /* the receiver does not want it: 3xx and 4xx but 429 */
	KPROF_PUSH_TOO_OLD, /* .queue_age_ns */
	KPROF_PUSH_NO_ROOM, /* .queue_bytes */
	KPROF_PUSH_DAMAGED, /* what is in the queue cannot be read */
	KPROF_PUSH_DROPS
};
/* "refused", "too_old", "no_room", "damaged" */
const char *kprof_push_drop_name(enum kprof_push_drop why);

struct kprof_push_stats {
	uint64_t pushed, pushed_bytes; /* requests that the receiver took */
	uint64_t retried;              /* failures after which a request is sent again */
	uint64_t dropped[KPROF_PUSH_DROPS];
	uint64_t rejected;             /* profiles that a receiver left out of what it took */
	uint64_t queued, queued_bytes; /* requests that wait */
	uint64_t captures;             /* that were put in the queue */
	uint64_t next_ns; /* until the next try, after a failure; 0: nothing is put off */
	/* The latest try ended with a certificate that is not trusted, or does not work. */
	bool untrusted;
	int status;        /* HTTP's, of the latest answer; 0: there was none */
	const char *error; /* the latest failure, in a sentence; "": none. Until the next call */
	const char *hint;  /* what to do about it; "" */
};
void kprof_push_stats(const struct kprof_push *p, struct kprof_push_stats *out);
/* Ends what is on its way; what is in the queue stays there. NULL is fine. */
void kprof_push_free(struct kprof_push *p);

#ifdef __cplusplus
}
#endif

#endif /* KPROF_PUSH_H */
