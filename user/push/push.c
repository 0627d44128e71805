// SPDX-License-Identifier: BSD-2-Clause
#include "kprof/push.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "push/impl.h"
#include "util/error.h"
#include "util/util.h"

#define DEFAULT_BYTES (256ull << 20)
#define DEFAULT_AGE_NS (24 * 3600 * NSEC_PER_SEC)
#define DEFAULT_TIMEOUT_NS (30 * NSEC_PER_SEC)
#define DEFAULT_RETRY_NS NSEC_PER_SEC

struct kprof_push {
	struct kprof_push_opts opts; /* its texts are copies */
	struct vec texts;            /* char *: those */
	struct kprof_push_url url;
	struct push_where where;
	struct push_queue queue;
	struct push_transfer *transfer;
	struct push_item item; /* what is on its way */
	uint64_t body_bytes;   /* … without what the queue keeps beside it */
	unsigned int failures; /* in a row */
	uint64_t next_ns;      /* CLOCK_MONOTONIC: not before; 0: at once */
	struct kprof_push_stats stats;
	char error[PUSH_TEXT_BYTES * 2], hint[PUSH_TEXT_BYTES];
};

const char *kprof_push_drop_name(enum kprof_push_drop why)
{
	static const char *const names[] = {
		[KPROF_PUSH_REFUSED] = "refused",
		[KPROF_PUSH_TOO_OLD] = "too_old",
		[KPROF_PUSH_NO_ROOM] = "no_room",
		[KPROF_PUSH_DAMAGED] = "damaged",
	};

	return why < KPROF_PUSH_DROPS ? names[why] : "";
}

/* ---- options ---- */

static int no_memory(void)
{
	return error_set(-ENOMEM, NULL, "no memory to push");
}

/* Replaces a text by a copy that lives as long as the pusher. */
static int keep(struct kprof_push *p, const char **text)
{
	char *copy = *text ? strdup(*text) : NULL, **to;

	if (!*text)
		return 0;
	to = copy ? vec_push(&p->texts, sizeof(*to)) : NULL;
	if (!to) {
		free(copy);
		return no_memory();
	}
	*text = *to = copy;
	return 0;
}

static int keep_list(struct kprof_push *p, const char *const **list, size_t nr)
{
	const char **copy = calloc(nr + 1, sizeof(*copy));
	char **to = copy ? vec_push(&p->texts, sizeof(*to)) : NULL;
	int err = 0;

	if (!to) {
		free(copy);
		return no_memory();
	}
	*to = (char *)copy;
	for (size_t i = 0; i < nr && !err; i++) {
		copy[i] = (*list)[i];
		err = keep(p, &copy[i]);
	}
	*list = copy;
	return err;
}

static int keep_all(struct kprof_push *p)
{
	struct kprof_push_opts *o = &p->opts;
	const char **texts[] = {&o->url, &o->queue,       &o->token_file, &o->basic_file,
				&o->ca,  &o->certificate, &o->key,        &o->service};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(texts) && !err; i++)
		err = keep(p, texts[i]);
	if (!err)
		err = keep_list(p, &o->headers, o->nr_headers);
	return err ? err : keep_list(p, &o->labels, o->nr_labels);
}

static int check_file(const char *path)
{
	if (!path || !access(path, R_OK))
		return 0;
	return error_set_usage(-errno, "a PEM file that this user can read", "%s: %s", path,
			       strerror(errno));
}

static int check(struct kprof_push *p)
{
	const struct kprof_push_opts *o = &p->opts;
	const struct resource_opts labels = {.labels = o->labels, .nr_labels = o->nr_labels};
	int err = kprof_push_parse_url(o->url ? o->url : "", &p->url);

	if (!err)
		err = resource_check(&labels);
	for (size_t i = 0; i < o->nr_headers && !err; i++)
		err = push_header_check(o->headers[i]);
	if (err)
		return err;
	if (o->token_file && o->basic_file)
		return error_set_usage(-EINVAL, NULL,
				       "a token and a password: a request can have only one");
	if ((o->token_file || o->basic_file || o->certificate) && !p->url.tls && !p->url.loopback)
		return error_set_usage(-EINVAL, "use https, or a receiver on this machine",
				       "without TLS everybody on the way would read the secret");
	err = check_file(o->ca);
	if (!err)
		err = check_file(o->certificate);
	return err ? err : check_file(o->key);
}

static void set_defaults(struct kprof_push_opts *o)
{
	o->queue_bytes = o->queue_bytes ? o->queue_bytes : DEFAULT_BYTES;
	o->queue_age_ns = o->queue_age_ns ? o->queue_age_ns : DEFAULT_AGE_NS;
	o->timeout_ns = o->timeout_ns ? o->timeout_ns : DEFAULT_TIMEOUT_NS;
	o->retry_ns = o->retry_ns ? o->retry_ns : DEFAULT_RETRY_NS;
}

int kprof_push_new(const struct kprof_push_opts *opts, struct kprof_push **out)
{
	struct kprof_push *p = calloc(1, sizeof(*p));
	int err;

	error_clear();
	if (!p)
		return no_memory();
	/* A program built against an older header passes a shorter struct. */
	memcpy(&p->opts, opts, opts->sz < sizeof(p->opts) ? opts->sz : sizeof(p->opts));
	p->queue.fd = p->queue.lock = -1;
	p->where.opts = &p->opts;
	p->where.url = &p->url;
	set_defaults(&p->opts);
	err = keep_all(p);
	if (!err)
		err = check(p);
	if (!err)
		err = push_secret__load(&p->where.token, p->opts.token_file);
	if (!err)
		err = push_secret__load(&p->where.basic, p->opts.basic_file);
	if (!err)
		err = push_transfer__new(&p->transfer);
	if (!err && p->opts.queue) {
		p->queue.path = strdup(p->opts.queue);
		err = p->queue.path ? 0 : no_memory();
	}
	p->queue.most_bytes = p->opts.queue_bytes;
	p->queue.most_age_ns = p->opts.queue_age_ns;
	if (err)
		kprof_push_free(p);
	else
		*out = p;
	return err;
}

void kprof_push_free(struct kprof_push *p)
{
	char **texts;

	if (!p)
		return;
	push_transfer__free(p->transfer);
	push_queue__close(&p->queue);
	push_secret__free(&p->where.token);
	push_secret__free(&p->where.basic);
	texts = p->texts.data;
	for (size_t i = 0; i < p->texts.nr; i++)
		free(texts[i]);
	free(texts);
	free(p);
}

/* ---- the queue ---- */

static const struct push_item *on_its_way(const struct kprof_push *p)
{
	return push_transfer__busy(p->transfer) ? &p->item : NULL;
}

static int add(struct kprof_push *p, struct kprof_capture *c)
{
	const struct push_make make = {
		.url = &p->url,
		.resource = {.service = p->opts.service,
			     .labels = p->opts.labels,
			     .nr_labels = p->opts.nr_labels},
	};
	char hash[PUSH_HASH_BYTES], *path;
	int err;

	push_hash(c, hash);
	if (push_queue__has(&p->queue, hash))
		return 0;
	err = push_queue__begin(&p->queue, &path);
	if (err)
		return err;
	err = push_make_requests(&make, c, path);
	if (!err)
		err = push_queue__commit(&p->queue, path, hash);
	if (err)
		push_queue__discard(&p->queue, path);
	else
		p->stats.captures++;
	free(path);
	return err;
}

int kprof_push_add(struct kprof_push *p, const char *capture)
{
	struct kprof_capture *c;
	int err;

	error_clear();
	err = push_queue__open(&p->queue);
	if (err)
		return err;
	err = kprof_capture_open(capture, &c);
	if (err)
		return err;
	err = add(p, c);
	kprof_capture_close(c);
	if (!err)
		push_queue__trim(&p->queue, clock_real_ns(), on_its_way(p));
	return err;
}

/* ---- sending ---- */

static void tell(struct kprof_push *p, const char *error, const char *hint)
{
	snprintf(p->error, sizeof(p->error), "%s", error);
	snprintf(p->hint, sizeof(p->hint), "%s", hint);
}

static void damaged(struct kprof_push *p, const char *why)
{
	p->queue.dropped[KPROF_PUSH_DAMAGED]++;
	push_queue__remove(&p->queue, &p->item);
	tell(p, why, "");
}

/* Starts to send an item. One that is no request is dropped. */
static int start(struct kprof_push *p, const struct push_item *item)
{
	static struct push_head head; /* large, and of one call */
	char *json;
	uint64_t bytes;
	int body, err;

	p->item = *item;
	err = push_queue__read(&p->queue, &p->item, &json, &body, &bytes);
	p->body_bytes = err ? 0 : bytes;
	if (err) {
		damaged(p, "a request in the queue is not whole");
		return 0;
	}
	if (!push_head_parse(json, &head) || strcmp(head.kind, kprof_push_kind_name(p->url.kind))) {
		close(body);
		damaged(p, "a request in the queue is for another kind of receiver, or damaged");
		err = 0;
	} else {
		err = push_transfer__start(p->transfer, &p->where, &head, body, bytes);
	}
	free(json);
	return err;
}

static void ended(struct kprof_push *p, const struct push_result *r)
{
	uint32_t random = 0;

	p->stats.status = r->status;
	p->stats.untrusted = r->untrusted;
	p->stats.rejected += r->rejected;
	if (*r->error)
		tell(p, r->error, r->hint);
	switch (r->verdict) {
	case PUSH_TAKEN:
		p->stats.pushed++;
		p->stats.pushed_bytes += p->body_bytes;
		push_queue__remove(&p->queue, &p->item);
		p->failures = 0;
		p->next_ns = 0;
		break;
	case PUSH_DROP:
		p->queue.dropped[KPROF_PUSH_REFUSED]++;
		push_queue__remove(&p->queue, &p->item);
		break;
	case PUSH_AGAIN:
		p->stats.retried++;
		p->failures++;
		push_queue__failed(&p->queue, &p->item);
		if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
			random = 0;
		p->next_ns = clock_mono_ns() +
			     push_pause_ns(p->opts.retry_ns, p->failures, r->asked_ns, random);
		break;
	}
}

/* Does what can be done without waiting. *happened: a request has ended. */
static int step(struct kprof_push *p, bool *happened)
{
	const struct push_item *item;
	struct push_result result;
	int err = 0;

	push_queue__trim(&p->queue, clock_real_ns(), on_its_way(p));
	if (!push_transfer__busy(p->transfer) && clock_mono_ns() >= p->next_ns) {
		item = push_queue__next(&p->queue);
		if (item)
			err = start(p, item);
	}
	if (push_transfer__busy(p->transfer) &&
	    push_transfer__go_on(p->transfer, &p->where, &result)) {
		ended(p, &result);
		*happened = true;
	}
	return err;
}

static bool any_ready(const struct pollfd *fds, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (fds[i].revents)
			return true;
	return false;
}

/* How long to wait at most, until a deadline or the next try; both 0: no such time. */
static int pause_ms(uint64_t until_ns, uint64_t next_ns)
{
	uint64_t now_ns = clock_mono_ns(), end_ns = until_ns;

	if (next_ns && next_ns < end_ns)
		end_ns = next_ns;
	if (end_ns <= now_ns)
		return 0;
	end_ns = (end_ns - now_ns + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC;
	return end_ns < 60000 ? (int)end_ns : 60000;
}

int kprof_push_poll(struct kprof_push *p, struct pollfd *fds, size_t nr, int timeout_ms)
{
	uint64_t until_ns = timeout_ms < 0 ? UINT64_MAX
					   : clock_mono_ns() + (uint64_t)timeout_ms * NSEC_PER_MSEC;
	bool happened = false, busy;
	int err;

	error_clear();
	err = push_queue__open(&p->queue);
	while (!err) {
		err = step(p, &happened);
		busy = push_transfer__busy(p->transfer);
		if (err || (!fds && !busy && !p->queue.nr) || (timeout_ms < 0 && happened))
			break;
		if (!busy && p->queue.nr && clock_mono_ns() >= p->next_ns)
			continue; /* the next one */
		push_transfer__wait(p->transfer, fds, fds ? nr : 0,
				    pause_ms(until_ns, !busy && p->queue.nr ? p->next_ns : 0));
		if ((fds && any_ready(fds, nr)) || clock_mono_ns() >= until_ns)
			break;
	}
	return err ? err : !p->queue.nr;
}

int kprof_push_run(struct kprof_push *p, int timeout_ms)
{
	return kprof_push_poll(p, NULL, 0, timeout_ms);
}

void kprof_push_stats(const struct kprof_push *p, struct kprof_push_stats *out)
{
	uint64_t now_ns = clock_mono_ns();

	*out = p->stats;
	memcpy(out->dropped, p->queue.dropped, sizeof(out->dropped));
	out->queued = p->queue.nr;
	out->queued_bytes = p->queue.bytes;
	out->next_ns = p->next_ns > now_ns ? p->next_ns - now_ns : 0;
	out->error = p->error;
	out->hint = p->hint;
}
