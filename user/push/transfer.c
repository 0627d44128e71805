// SPDX-License-Identifier: BSD-2-Clause
/* One request on its way, by libcurl's interface that never waits. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "push/impl.h"
#include "util/error.h"
#include "util/util.h"

#define CONNECT_MOST_MS 10000
#define USER_AGENT "kprof"
#define MAX_WAITED 16

struct push_transfer {
	const struct push_curl *curl;
	CURLM *multi;
	CURL *easy; /* kept, and so is its connection */
	bool busy;
	struct curl_slist *headers;
	int body;
	char *answer;
	size_t answer_bytes, header_bytes;
	bool too_long; /* more came than is read */
	char error[CURL_ERROR_SIZE];
};

int push_transfer__new(struct push_transfer **out)
{
	struct push_transfer *t = calloc(1, sizeof(*t));

	if (!t)
		return error_set(-ENOMEM, NULL, "no memory to push");
	t->body = -1;
	t->curl = push_curl_load();
	if (!t->curl) {
		free(t);
		return -ENOENT;
	}
	t->answer = malloc(PUSH_ANSWER_BYTES);
	t->multi = t->curl->multi_init();
	t->easy = t->curl->easy_init();
	if (t->answer && t->multi && t->easy) {
		*out = t;
		return 0;
	}
	push_transfer__free(t);
	return error_set(-ENOMEM, NULL, "no memory to push");
}

static void finish(struct push_transfer *t)
{
	if (t->busy)
		t->curl->multi_remove_handle(t->multi, t->easy);
	t->busy = false;
	for (struct curl_slist *l = t->headers; l; l = l->next)
		explicit_bzero(l->data, strlen(l->data)); /* a token may be among them */
	t->curl->slist_free_all(t->headers);
	t->headers = NULL;
	if (t->body >= 0)
		close(t->body);
	t->body = -1;
}

void push_transfer__free(struct push_transfer *t)
{
	if (!t)
		return;
	finish(t);
	if (t->easy)
		t->curl->easy_cleanup(t->easy);
	if (t->multi)
		t->curl->multi_cleanup(t->multi);
	free(t->answer);
	free(t);
}

bool push_transfer__busy(const struct push_transfer *t)
{
	return t->busy;
}

/* ---- what libcurl calls ---- */

static size_t on_read(char *to, size_t size, size_t nr, void *ctx)
{
	struct push_transfer *t = ctx;
	ssize_t n;

	do
		n = read(t->body, to, size * nr);
	while (n < 0 && errno == EINTR);
	return n < 0 ? CURL_READFUNC_ABORT : (size_t)n;
}

/* A connection that was kept may turn out to be closed: then the body is sent once more. */
static int on_seek(void *ctx, curl_off_t offset, int whence)
{
	struct push_transfer *t = ctx;

	return lseek(t->body, offset, whence) < 0 ? CURL_SEEKFUNC_FAIL : CURL_SEEKFUNC_OK;
}

static size_t on_body(char *data, size_t size, size_t nr, void *ctx)
{
	struct push_transfer *t = ctx;
	size_t bytes = size * nr;

	if (bytes > PUSH_ANSWER_BYTES - t->answer_bytes) {
		t->too_long = true;
		return 0; /* ends the transfer */
	}
	memcpy(t->answer + t->answer_bytes, data, bytes);
	t->answer_bytes += bytes;
	return bytes;
}

static size_t on_header(char *data, size_t size, size_t nr, void *ctx)
{
	struct push_transfer *t = ctx;
	size_t bytes = size * nr;

	if (bytes > PUSH_ANSWER_BYTES - t->header_bytes) {
		t->too_long = true;
		return 0;
	}
	t->header_bytes += bytes;
	return bytes;
}

/* ---- starting ---- */

static bool add_header(struct push_transfer *t, const char *text)
{
	struct curl_slist *more = t->curl->slist_append(t->headers, text);

	if (more)
		t->headers = more;
	return more;
}

static bool add_headers(struct push_transfer *t, struct push_where *where,
			const struct push_head *head)
{
	char *type = xasprintf("Content-Type: %s", head->type), *token = NULL;
	bool fine = type && add_header(t, type) && add_header(t, "Expect:") &&
		    (!head->gzip || add_header(t, "Content-Encoding: gzip"));

	push_secret__renew(&where->token);
	push_secret__renew(&where->basic);
	if (fine && where->token.text) {
		token = xasprintf("Authorization: Bearer %s", where->token.text);
		fine = token && add_header(t, token);
	}
	for (size_t i = 0; i < where->opts->nr_headers && fine; i++)
		fine = add_header(t, where->opts->headers[i]);
	if (token)
		explicit_bzero(token, strlen(token));
	free(token);
	free(type);
	return fine;
}

static void set_tls(struct push_transfer *t, const struct kprof_push_opts *opts)
{
	CURLcode (*set)(CURL *, CURLoption, ...) = t->curl->easy_setopt;

	set(t->easy, CURLOPT_SSL_VERIFYPEER, 1L);
	set(t->easy, CURLOPT_SSL_VERIFYHOST, 2L);
	set(t->easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (opts->ca) { /* these authorities, and no others */
		set(t->easy, CURLOPT_CAINFO, opts->ca);
		set(t->easy, CURLOPT_CAPATH, NULL);
	}
	if (opts->certificate) {
		set(t->easy, CURLOPT_SSLCERT, opts->certificate);
		set(t->easy, CURLOPT_SSLKEY, opts->key ? opts->key : opts->certificate);
	}
}

static void set_options(struct push_transfer *t, const struct push_where *where, const char *url,
			uint64_t bytes)
{
	CURLcode (*set)(CURL *, CURLoption, ...) = t->curl->easy_setopt;
	long most_ms = (long)(where->opts->timeout_ns / NSEC_PER_MSEC);

	set(t->easy, CURLOPT_URL, url);
	set(t->easy, CURLOPT_PROTOCOLS_STR, "http,https");
	set(t->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	set(t->easy, CURLOPT_FOLLOWLOCATION, 0L);
	set(t->easy, CURLOPT_NOSIGNAL, 1L);
	set(t->easy, CURLOPT_QUICK_EXIT, 1L);
	set(t->easy, CURLOPT_USERAGENT, USER_AGENT);
	set(t->easy, CURLOPT_TIMEOUT_MS, most_ms);
	set(t->easy, CURLOPT_CONNECTTIMEOUT_MS,
	    most_ms < CONNECT_MOST_MS ? most_ms : CONNECT_MOST_MS);
	set(t->easy, CURLOPT_ERRORBUFFER, t->error);
	set(t->easy, CURLOPT_POST, 1L);
	set(t->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)bytes);
	set(t->easy, CURLOPT_READFUNCTION, on_read);
	set(t->easy, CURLOPT_READDATA, t);
	set(t->easy, CURLOPT_SEEKFUNCTION, on_seek);
	set(t->easy, CURLOPT_SEEKDATA, t);
	set(t->easy, CURLOPT_WRITEFUNCTION, on_body);
	set(t->easy, CURLOPT_WRITEDATA, t);
	set(t->easy, CURLOPT_HEADERFUNCTION, on_header);
	set(t->easy, CURLOPT_HEADERDATA, t);
	set(t->easy, CURLOPT_HTTPHEADER, t->headers);
	if (where->url->loopback)
		set(t->easy, CURLOPT_NOPROXY, "*");
	if (where->basic.text) {
		set(t->easy, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
		set(t->easy, CURLOPT_USERPWD, where->basic.text);
	}
	set_tls(t, where->opts);
}

int push_transfer__start(struct push_transfer *t, struct push_where *where,
			 const struct push_head *head, int body, uint64_t bytes)
{
	char *url = xasprintf("%s%s", where->url->base, head->target);
	int err = 0;

	t->body = body;
	t->answer_bytes = t->header_bytes = 0;
	t->too_long = false;
	t->error[0] = '\0';
	t->curl->easy_reset(t->easy);
	if (!url || !add_headers(t, where, head))
		err = error_set(-ENOMEM, NULL, "no memory to push");
	if (!err) {
		set_options(t, where, url, bytes);
		if (t->curl->multi_add_handle(t->multi, t->easy))
			err = error_set(-EIO, NULL, "libcurl does not take a request");
		t->busy = !err;
	}
	if (err)
		finish(t);
	free(url);
	return err;
}

/* ---- its end ---- */

static const char *host_of(const struct push_where *where)
{
	return where->url->base;
}

static void explain_status(const struct push_transfer *t, const struct push_where *where,
			   struct push_result *r)
{
	char said[PUSH_TEXT_BYTES], moved[PUSH_TEXT_BYTES] = "";
	char *to = NULL;

	push_printable(t->answer, t->answer_bytes < 160 ? t->answer_bytes : 160, said);
	snprintf(r->error, sizeof(r->error), "%.160s answers %d%s%s", host_of(where), r->status,
		 *said ? ": " : "", said);
	t->curl->easy_getinfo(t->easy, CURLINFO_REDIRECT_URL, &to);
	if (to)
		push_printable(to, strnlen(to, 120), moved);
	if (r->status >= 300 && r->status < 400)
		snprintf(r->hint, sizeof(r->hint),
			 "it points to %.128s: name that place if it is right",
			 *moved ? moved : "another place");
	else if (r->status == 401 || r->status == 403)
		snprintf(r->hint, sizeof(r->hint),
			 "a secret is needed, or another one: --token-file, --basic-file");
	else if (r->status == 404)
		snprintf(r->hint, sizeof(r->hint), "%s",
			 where->url->kind == KPROF_PUSH_OTLP
				 ? "a collector takes profiles with the gate "
				   "service.profilesSupport and a pipeline of them"
				 : "is it another kind of receiver?");
	else if (r->status == 413)
		snprintf(r->hint, sizeof(r->hint),
			 "the receiver has a limit on the size of requests");
}

static void explain_failure(const struct push_transfer *t, const struct push_where *where,
			    CURLcode code, struct push_result *r)
{
	char said[PUSH_TEXT_BYTES];
	const char *words = *t->error ? t->error : t->curl->easy_strerror(code);

	push_printable(words, strlen(words), said);
	snprintf(r->error, sizeof(r->error), "%.160s: %s", host_of(where),
		 t->too_long ? "the answer is too long" : said);
	switch (code) {
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_ISSUER_ERROR:
		r->untrusted = true;
		snprintf(r->hint, sizeof(r->hint),
			 "--ca FILE names the authority that its certificate is from");
		break;
	case CURLE_SSL_CERTPROBLEM:
		r->untrusted = true;
		snprintf(r->hint, sizeof(r->hint),
			 "the client's certificate and its key: --cert, --key");
		break;
	case CURLE_COULDNT_CONNECT:
	case CURLE_COULDNT_RESOLVE_HOST:
		snprintf(r->hint, sizeof(r->hint), "does a receiver listen there?");
		break;
	default:
		break;
	}
}

static void judge(struct push_transfer *t, const struct push_where *where, CURLcode code,
		  struct push_result *r)
{
	char reason[PUSH_TEXT_BYTES];
	long status = 0;
	curl_off_t asked = 0;

	*r = (struct push_result){.verdict = PUSH_AGAIN};
	t->curl->easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	t->curl->easy_getinfo(t->easy, CURLINFO_RETRY_AFTER, &asked);
	r->asked_ns = asked > 0 && asked < 100000 ? (uint64_t)asked * NSEC_PER_SEC : 0;
	/* What it said first counts, even if it then had no end. */
	if (code == CURLE_OK || (t->too_long && status >= 200 && t->answer_bytes)) {
		r->status = (int)status;
		r->verdict = push_verdict_of(r->status);
	} else {
		explain_failure(t, where, code, r);
		return;
	}
	if (r->verdict != PUSH_TAKEN) {
		explain_status(t, where, r);
	} else if (where->url->kind == KPROF_PUSH_OTLP && code == CURLE_OK &&
		   push_partial(t->answer, t->answer_bytes, &r->rejected, reason) && r->rejected) {
		snprintf(r->error, sizeof(r->error), "%.160s left out %llu profiles: %s",
			 host_of(where), (unsigned long long)r->rejected, reason);
	}
}

bool push_transfer__go_on(struct push_transfer *t, const struct push_where *where,
			  struct push_result *result)
{
	int running, left;
	CURLMsg *msg;

	if (t->curl->multi_perform(t->multi, &running)) {
		*result = (struct push_result){.verdict = PUSH_AGAIN, .error = "libcurl failed"};
		finish(t);
		return true;
	}
	while ((msg = t->curl->multi_info_read(t->multi, &left))) {
		if (msg->msg != CURLMSG_DONE)
			continue;
		judge(t, where, msg->data.result, result);
		finish(t);
		return true;
	}
	return false;
}

void push_transfer__wait(struct push_transfer *t, struct pollfd *fds, size_t nr, int timeout_ms)
{
	struct curl_waitfd waited[MAX_WAITED] = {0};
	int ready;

	nr = nr < MAX_WAITED ? nr : MAX_WAITED;
	for (size_t i = 0; i < nr; i++) {
		waited[i].fd = fds[i].fd;
		waited[i].events = (short)((fds[i].events & POLLIN ? CURL_WAIT_POLLIN : 0) |
					   (fds[i].events & POLLOUT ? CURL_WAIT_POLLOUT : 0));
	}
	t->curl->multi_poll(t->multi, waited, (unsigned int)nr, timeout_ms, &ready);
	for (size_t i = 0; i < nr; i++)
		fds[i].revents = 0;
	/* libcurl does not tell of a closed end: poll() does. */
	if (nr)
		poll(fds, nr, 0);
}
