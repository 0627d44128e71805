// SPDX-License-Identifier: BSD-2-Clause
/*
 * One thread, one loop: it waits for the daemon's answers and for libmicrohttpd's descriptors. A
 * request that needs an answer of the daemon's is suspended until that is there.
 */
#include "cmd/daemon/web/server.h"

#include <microhttpd.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd/daemon/web/asks.h"
#include "cmd/daemon/web/conns.h"
#include "cmd/daemon/web/policy.h"
#include "cmd/daemon/web/reply.h"

#define HEADER_BYTES 16384 /* memory of a connection: its request, and its response's headers */
#define SILENCE_S 30       /* without a byte in either direction, a connection is closed */
#define PER_ADDRESS 16     /* connections of one client elsewhere */
#define TICK_MS 250
#define QUIET_TICK_MS 1000
#define SECOND_NS 1000000000ull
#define PATIENCE_MS 2000

struct listening {
	struct server *server;
	struct MHD_Daemon *daemon;
	bool loopback;
};

struct server {
	struct server_opts opts;
	struct listening listening[WEB_LISTEN];
	struct asks asks;
	struct conns conns;
};

/* A request; its first member, so that what waits is the request. */
struct request {
	struct waiter waiter;
	struct MHD_Connection *connection;
	struct conn *conn;
	bool suspended;
};

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

static struct conn *conn_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static void notify_connection(void *ctx, struct MHD_Connection *connection, void **socket_context,
			      enum MHD_ConnectionNotificationCode code)
{
	struct server *s = ((struct listening *)ctx)->server;
	const union MHD_ConnectionInfo *info;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		conns__remove(&s->conns, *socket_context);
		*socket_context = NULL;
		return;
	}
	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	*socket_context = conns__add(&s->conns, info->connect_fd, now());
}

static void notify_completed(void *ctx, struct MHD_Connection *connection, void **request_context,
			     enum MHD_RequestTerminationCode code)
{
	struct request *r = *request_context;

	if (!r)
		return;
	conns__busy(r->conn, false, now());
	answer__put(r->waiter.answer);
	free(r);
	*request_context = NULL;
}

/* ---- answers ---- */

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned int code,
			      const char *text)
{
	struct MHD_Response *r = reply_text(text);
	enum MHD_Result queued;

	if (!r)
		return MHD_NO;
	if (code == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(r, "Allow", "GET, HEAD");
	if (code == MHD_HTTP_UNAUTHORIZED) {
		MHD_add_response_header(r, "WWW-Authenticate", "Bearer realm=\"kprof\"");
		MHD_add_response_header(r, "WWW-Authenticate",
					"Basic realm=\"kprof: any name, the token\"");
	}
	if (code == MHD_HTTP_SERVICE_UNAVAILABLE)
		MHD_add_response_header(r, "Retry-After", "1");
	queued = MHD_queue_response(connection, code, r);
	MHD_destroy_response(r);
	return queued;
}

static enum MHD_Result pass_on(struct MHD_Connection *connection, const struct answer *a)
{
	if (!a)
		return refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory");
	return MHD_queue_response(connection, a->code, a->response);
}

static struct answer *respond(void *ctx, const struct web_question *q, struct web_reply *reply)
{
	struct answer *a = calloc(1, sizeof(*a));

	if (a)
		*a = (struct answer){.refs = 1, .code = reply->code};
	if (a && reply->code == MHD_HTTP_OK && reply->fd >= 0)
		a->response = reply_content(q, reply);
	if (reply->fd >= 0) {
		close(reply->fd);
		reply->fd = -1;
	}
	if (a && !a->response) {
		if (a->code == MHD_HTTP_OK)
			a->code = MHD_HTTP_SERVICE_UNAVAILABLE;
		a->response = reply_text(*reply->error ? reply->error : "there is none");
	}
	if (a && !a->response) {
		free(a);
		return NULL;
	}
	return a;
}

static void wake(void *ctx, struct waiter *w)
{
	struct request *r = (struct request *)w;

	if (r->suspended)
		MHD_resume_connection(r->connection);
	r->suspended = false;
}

/* ---- requests ---- */

static const char *header(struct MHD_Connection *connection, const char *name)
{
	return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static bool has_token(struct MHD_Connection *connection, const char *token)
{
	const char *authorization = header(connection, "Authorization");
	const char *bearer = authorization ? policy_bearer(authorization) : NULL;
	char *name, *password = NULL;
	bool right;

	if (!*token)
		return false;
	if (bearer)
		return policy_equal(bearer, token);
	name = MHD_basic_auth_get_username_password(connection, &password);
	right = password && policy_equal(password, token);
	MHD_free(name);
	MHD_free(password);
	return right;
}

static bool may_see(const struct listening *l, struct MHD_Connection *connection, bool metrics)
{
	const struct web_opts *web = l->server->opts.web;

	if (metrics ? l->loopback || web->metrics_anyone : l->loopback && web->page_anyone)
		return true;
	return has_token(connection, l->server->opts.token);
}

static enum MHD_Result count_hosts(void *ctx, enum MHD_ValueKind kind, const char *key,
				   const char *value)
{
	if (!strcasecmp(key, "Host"))
		++*(int *)ctx;
	return MHD_YES;
}

static bool is_for_us(const struct server *s, struct MHD_Connection *connection)
{
	const struct web_opts *web = s->opts.web;
	int hosts = 0;

	MHD_get_connection_values(connection, MHD_HEADER_KIND, count_hosts, &hosts);
	return hosts == 1 && policy_host(header(connection, "Host"), web->hosts, web->nr_hosts);
}

static bool has_body(struct MHD_Connection *connection)
{
	const char *length = header(connection, "Content-Length");

	return header(connection, "Transfer-Encoding") || (length && strcmp(length, "0") != 0);
}

/* What can be said of a request at once: 0 nothing; or the code of a refusal, and why. */
static unsigned int first_look(struct MHD_Connection *connection, const struct server *s,
			       const char *method, const char **why)
{
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
		*why = "only GET and HEAD";
		return MHD_HTTP_METHOD_NOT_ALLOWED;
	}
	if (has_body(connection)) {
		*why = "no bodies here";
		return MHD_HTTP_BAD_REQUEST;
	}
	if (!is_for_us(s, connection)) {
		*why = "this server has another name (its configuration can name more)";
		return MHD_HTTP_MISDIRECTED_REQUEST;
	}
	return 0;
}

static enum MHD_Result serve_page(const struct server *s, struct MHD_Connection *connection)
{
	struct MHD_Response *page = reply_page(s->opts.perfetto);
	enum MHD_Result queued;

	if (!page)
		return refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory");
	queued = MHD_queue_response(connection, MHD_HTTP_OK, page);
	MHD_destroy_response(page);
	return queued;
}

static enum MHD_Result serve(const struct listening *l, struct request *r, const char *path)
{
	struct server *s = l->server;
	struct web_question q;
	enum policy_path is = policy_path(path, &q);
	bool metrics = is == POLICY_ASK && q.get == WEB_METRICS;
	int n;

	if (is == POLICY_NOTHING || (!metrics && !s->opts.web->page))
		return refuse(r->connection, MHD_HTTP_NOT_FOUND, "there is no such page");
	if (!may_see(l, r->connection, metrics))
		return refuse(r->connection, MHD_HTTP_UNAUTHORIZED, "this needs the token");
	if (is == POLICY_PAGE)
		return serve_page(s, r->connection);
	if (metrics && !policy_openmetrics(header(r->connection, "Accept")))
		q.get = WEB_METRICS_TEXT;
	n = asks__want(&s->asks, &q, &r->waiter, now());
	if (n < 0)
		return refuse(r->connection, MHD_HTTP_SERVICE_UNAVAILABLE, "too much is asked");
	if (n == 1)
		return pass_on(r->connection, r->waiter.answer);
	r->suspended = true;
	MHD_suspend_connection(r->connection);
	return MHD_YES;
}

/* Called when the headers are there; then again; and again when a suspended request goes on. */
static enum MHD_Result handle(void *ctx, struct MHD_Connection *connection, const char *path,
			      const char *method, const char *version, const char *data,
			      size_t *data_bytes, void **request_context)
{
	struct listening *l = ctx;
	struct request *r = *request_context;
	unsigned int code;
	const char *why;

	if (!r) {
		r = *request_context = calloc(1, sizeof(*r));
		if (!r)
			return MHD_NO;
		r->connection = connection;
		r->conn = conn_of(connection);
		conns__busy(r->conn, true, now());
		code = first_look(connection, l->server, method, &why);
		return code ? refuse(connection, code, why) : MHD_YES;
	}
	if (*data_bytes)
		return MHD_NO;
	if (r->waiter.answer)
		return pass_on(connection, r->waiter.answer);
	return serve(l, r, path);
}

/* Nothing here needs %XX: what has it is no path of ours. */
static size_t leave_as_is(void *ctx, struct MHD_Connection *connection, char *text)
{
	return strlen(text);
}

static bool begin(struct listening *l, const struct listener *from)
{
	l->loopback = from->loopback;
	l->daemon = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, handle, l,
		MHD_OPTION_LISTEN_SOCKET, from->fd, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned int)CONNS_MOST, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_BYTES,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)SILENCE_S,
		/* On a loopback address, all clients have the same one. */
		MHD_OPTION_PER_IP_CONNECTION_LIMIT, from->loopback ? 0u : (unsigned int)PER_ADDRESS,
		MHD_OPTION_NOTIFY_CONNECTION, notify_connection, l, MHD_OPTION_NOTIFY_COMPLETED,
		notify_completed, l, MHD_OPTION_UNESCAPE_CALLBACK, leave_as_is, NULL,
		MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
	return l->daemon;
}

struct server *server__new(const struct server_opts *opts)
{
	struct server *s = calloc(1, sizeof(*s));
	unsigned int ms = opts->web->answer_ms;

	if (!s)
		return NULL;
	s->opts = *opts;
	s->asks = (struct asks){.fd = opts->fd,
				.patience_ms = ms ? ms : PATIENCE_MS,
				.respond = respond,
				.wake = wake,
				.ctx = s};
	for (size_t i = 0; i < opts->nr; i++) {
		s->listening[i].server = s;
		if (!begin(&s->listening[i], &opts->listeners[i]))
			return NULL; /* and the process ends */
	}
	return s;
}

/*
 * How long there is nothing to do. Not for ever, with nobody connected either: after there were too
 * many, libmicrohttpd listens again only when it is run.
 */
static int pause_ms(const struct server *s)
{
	MHD_UNSIGNED_LONG_LONG least = s->conns.nr ? TICK_MS : QUIET_TICK_MS;

	for (size_t i = 0; i < s->opts.nr; i++) {
		MHD_UNSIGNED_LONG_LONG ms;

		if (MHD_get_timeout(s->listening[i].daemon, &ms) == MHD_YES && ms < least)
			least = ms;
	}
	return (int)least;
}

void server__run(struct server *s)
{
	struct pollfd fds[WEB_LISTEN + 1] = {{.fd = s->opts.fd, .events = POLLIN}};
	uint64_t swept_ns = now();

	for (size_t i = 0; i < s->opts.nr; i++) {
		const union MHD_DaemonInfo *info =
			MHD_get_daemon_info(s->listening[i].daemon, MHD_DAEMON_INFO_EPOLL_FD);

		fds[i + 1] = (struct pollfd){.fd = info->epoll_fd, .events = POLLIN};
	}
	for (;;) {
		uint64_t time_ns;

		poll(fds, s->opts.nr + 1, pause_ms(s));
		time_ns = now();
		if (!asks__take(&s->asks, time_ns))
			return;
		asks__expire(&s->asks, time_ns);
		if (time_ns - swept_ns >= TICK_MS * 1000000ull) {
			conns__sweep(&s->conns, time_ns);
			swept_ns = time_ns;
		}
		for (size_t i = 0; i < s->opts.nr; i++)
			MHD_run(s->listening[i].daemon);
	}
}
