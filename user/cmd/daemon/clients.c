// SPDX-License-Identifier: BSD-2-Clause
/*
 * The socket for clients: any user may connect, and the kernel says who it is. A line of JSON
 * there, a line back. Nobody can make the daemon wait: what a client does not read is kept up to a
 * limit, and who is slow is hung up on. Nor can users keep others out, even with many user ids
 * (subuid(5)): who has most connections loses one to a newcomer, and some are left to root.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cmd/daemon/daemon.h"
#include "cmd/print/text.h"
#include "kprof/sent_files.h"

#define MOST_CLIENTS 256
#define MOST_OF_OTHERS 192 /* clients of all users but root */
#define MOST_OF_USER 64    /* of one of them */
#define MOST_GROUPS 1024
#define SLOW_NS (10 * 1000000000ull)  /* a client may take so long for a line, and to read one */
#define IDLE_NS (600 * 1000000000ull) /* … and between an answer and the next question */
/* Questions of one user, but root, that are answered in a second: more wait for the next one. */
#define MOST_A_SECOND 200
#define COSTS_ONE 4096 /* an answer counts as one more question for so many bytes */
#define NR_COUNTS 1024 /* of questions: users whose ids are the same modulo this share one */
/* Lines of the log about clients, but root, in a minute: of one user, and of all. */
#define MOST_LINES_OF_USER 30
#define MOST_LINES 300
#define LINES_NS (60 * 1000000000ull)

struct connection {
	struct client client; /* first: what others have is a pointer to it */
	struct clients *all;
	struct loop_watch watch;
	char *in;
	size_t in_bytes;
	char *out;
	size_t out_bytes, out_sent;
	int file;          /* goes with the answer; -1: none */
	int alive;         /* who came from another PID namespace; -1: nobody */
	bool asked;        /* it waits for an answer */
	bool held;         /* its user has asked too much in this second */
	uint64_t until_ns; /* when it is hung up on; 0: never, since it waits for an answer */
	struct connection *next;
};

struct clients {
	struct clients_opts opts;
	struct loop_watch watch;
	int lock;
	struct connection *first;
	size_t nr;
	bool full;                     /* nobody is let in for now */
	bool stored;                   /* systemd has the socket, too, if it does as told */
	bool leaving;                  /* who comes now is the next daemon's client */
	uint16_t questions[NR_COUNTS]; /* in this second, of users by their ids */
	uint8_t lines[NR_COUNTS];      /* of the log, in this minute, likewise */
	uint32_t nr_lines, unlogged;   /* of all; that were not written */
	uint64_t lines_until_ns;
};

static void take_line(struct connection *c, char *end);

/* Again, after there was no room. */
static void let_in(struct clients *all)
{
	if (!all->full || all->leaving)
		return;
	all->full = false;
	loop__change(all->opts.loop, &all->watch, EPOLLIN);
}

static void hang_up(struct connection *c)
{
	struct connection **at = &c->all->first;
	struct clients *all = c->all;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	all->nr--;
	let_in(all);
	all->opts.gone(all->opts.ctx, &c->client);
	loop__remove(all->opts.loop, &c->watch);
	kprof_sent_files_close(c->watch.fd);
	if (c->file >= 0)
		close(c->file);
	if (c->alive >= 0)
		close(c->alive);
	free(c->in);
	free(c->out);
	free(c);
}

/* ---- answers ---- */

/* Sends what it can. False: the client was hung up on. */
static bool send_out(struct connection *c)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec from = {.iov_base = c->out + c->out_sent,
			     .iov_len = c->out_bytes - c->out_sent};
	struct msghdr m = {.msg_iov = &from, .msg_iovlen = 1};
	struct cmsghdr *head;
	ssize_t n;
	char *end;

	if (c->file >= 0) {
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
		head = CMSG_FIRSTHDR(&m);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(head), &c->file, sizeof(int));
	}
	n = sendmsg(c->watch.fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n <= 0) {
		hang_up(c);
		return false;
	}
	if (c->file >= 0)
		close(c->file);
	c->file = -1;
	c->out_sent += (size_t)n;
	if (c->out_sent < c->out_bytes)
		return true;
	free(c->out);
	c->out = NULL;
	c->out_bytes = c->out_sent = 0;
	c->client.begun[0] = '\0';
	c->until_ns = now_ns(CLOCK_MONOTONIC) + IDLE_NS;
	loop__change(c->all->opts.loop, &c->watch, EPOLLIN);
	end = memchr(c->in, '\n', c->in_bytes);
	if (end) /* the next question came along with the last one */
		take_line(c, end);
	return true;
}

/* Whose limits hold for it. */
static uid_t user_of(const struct connection *c)
{
	return space_user(c->client.uid, c->client.space);
}

/* Counts so many questions more for its user. */
static void charge(struct connection *c, size_t nr)
{
	uint16_t *questions = &c->all->questions[user_of(c) % NR_COUNTS];

	if (user_of(c))
		*questions =
			(uint16_t)(*questions + nr < UINT16_MAX ? *questions + nr : UINT16_MAX);
}

void clients__answer(struct client *client, cJSON *answer, int file)
{
	struct connection *c = (struct connection *)client;
	char *text = cJSON_PrintUnformatted(answer);
	size_t bytes = text ? strlen(text) : 0;

	if (text) /* others chose some of it: what is no text would be no JSON */
		text_defuse(text);
	if (c->all->opts.answered)
		c->all->opts.answered(c->all->opts.ctx, client,
				      cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(answer, "ok")));
	cJSON_Delete(answer);
	charge(c, bytes / COSTS_ONE);
	c->asked = false;
	c->until_ns = now_ns(CLOCK_MONOTONIC) + SLOW_NS;
	c->out = bytes && bytes < KPROF_CLIENT_ANSWER_BYTES ? malloc(bytes + 2) : NULL;
	if (c->out) {
		memcpy(c->out, text, bytes);
		c->out[bytes] = '\n';
		c->out_bytes = bytes + 1;
		c->file = file >= 0 ? fcntl(file, F_DUPFD_CLOEXEC, 0) : -1;
		/* sent when the socket is writable, so that no caller loses the client here */
		loop__change(c->all->opts.loop, &c->watch, EPOLLOUT);
	} else {
		shutdown(c->watch.fd, SHUT_RDWR);
	}
	cJSON_free(text);
}

/* ---- the log ---- */

/* Another minute: says what the last one has left out. */
static void count_lines_anew(struct clients *all, uint64_t now)
{
	cJSON *fields;

	if (now < all->lines_until_ns)
		return;
	all->lines_until_ns = now + LINES_NS;
	memset(all->lines, 0, sizeof(all->lines));
	all->nr_lines = 0;
	if (!all->unlogged)
		return;
	fields = cJSON_CreateObject();
	cJSON_AddNumberToObject(fields, "lines", all->unlogged);
	log_line("warning", "unlogged", fields,
		 "clients have done and asked more than is logged: %u lines were left out",
		 all->unlogged);
	all->unlogged = 0;
}

/* Whether there is room for a line about it: no client may fill the log. */
static bool may_log(struct connection *c)
{
	struct clients *all = c->all;
	uint8_t *lines = &all->lines[user_of(c) % NR_COUNTS];

	count_lines_anew(all, now_ns(CLOCK_MONOTONIC));
	if (!user_of(c))
		return true;
	if (*lines >= MOST_LINES_OF_USER || all->nr_lines >= MOST_LINES) {
		all->unlogged++;
		return false;
	}
	++*lines;
	all->nr_lines++;
	return true;
}

void clients__log(struct client *client, const char *level, const char *event, const char *id,
		  const char *text)
{
	struct connection *c = (struct connection *)client;
	cJSON *fields;

	if (!may_log(c))
		return;
	fields = cJSON_CreateObject();
	cJSON_AddNumberToObject(fields, "uid", client->uid);
	cJSON_AddNumberToObject(fields, "asker", client->pid);
	if (client->space)
		cJSON_AddBoolToObject(fields, "elsewhere", true);
	cJSON_AddStringToObject(fields, "verb", client->verb ? client->verb : "unknown");
	if (id)
		cJSON_AddStringToObject(fields, "id", id);
	log_line(level, event, fields, "%s", text);
}

void clients__refuse(struct client *client, const char *hint, const char *fmt, ...)
{
	cJSON *o = cJSON_CreateObject();
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	clients__log(client, "warning", "refusal", NULL, text);
	cJSON_AddBoolToObject(o, "ok", false);
	cJSON_AddStringToObject(o, "error", text);
	if (hint)
		cJSON_AddStringToObject(o, "hint", hint);
	clients__answer(client, o, -1);
}

/* ---- questions ---- */

/* False: its user must wait; clients__tend() goes on with it. */
static bool may_ask(struct connection *c)
{
	const uint16_t *questions = &c->all->questions[user_of(c) % NR_COUNTS];

	c->held = user_of(c) && *questions >= MOST_A_SECOND;
	if (!c->held)
		charge(c, 1);
	return !c->held;
}

static void take_line(struct connection *c, char *end)
{
	struct clients *all = c->all;
	cJSON *question;

	/* until it is answered, only its end is looked for */
	loop__change(all->opts.loop, &c->watch, 0);
	c->until_ns = 0;
	if (!may_ask(c))
		return;
	*end = '\0';
	question = cJSON_Parse(c->in);
	c->in_bytes -= (size_t)(end + 1 - c->in);
	memmove(c->in, end + 1, c->in_bytes);
	c->asked = true;
	c->client.verb = NULL;
	/* somebody else has the connection; that namespace's number may be another's by now */
	if (c->alive >= 0 && peer_ended(c->alive))
		c->client.space = SPACE_UNKNOWN;
	if (cJSON_IsObject(question))
		all->opts.asked(all->opts.ctx, &c->client, question);
	else
		clients__refuse(&c->client, NULL, "a question is an object of JSON on one line");
	cJSON_Delete(question);
}

static void read_in(struct connection *c)
{
	size_t room = KPROF_CLIENT_QUESTION_BYTES - c->in_bytes;
	char *to = c->in + c->in_bytes, *end;
	ssize_t n = room ? kprof_sent_files_peek(c->watch.fd, to, room) : 0;

	if (n == -EAGAIN)
		return;
	/* not more than was looked at: files may come behind it */
	if (n <= 0 || recv(c->watch.fd, to, (size_t)n, MSG_DONTWAIT) != n) {
		hang_up(c);
		return;
	}
	if (!c->in_bytes)
		c->until_ns = now_ns(CLOCK_MONOTONIC) + SLOW_NS;
	c->in_bytes += (size_t)n;
	end = memchr(c->in, '\n', c->in_bytes);
	if (end)
		take_line(c, end);
}

static void ready(void *ctx, uint32_t events)
{
	struct connection *c = ctx;

	if (c->asked || c->held) { /* the only thing that it waits for now is the client's end */
		if (events & (EPOLLHUP | EPOLLERR))
			hang_up(c);
		return;
	}
	if (c->out) {
		if (events & (EPOLLHUP | EPOLLERR))
			hang_up(c);
		else
			send_out(c);
		return;
	}
	if (events & EPOLLIN)
		read_in(c);
	else
		hang_up(c);
}

/* ---- connections ---- */

static bool groups_of(int fd, const struct ucred *who, gid_t *groups, size_t *nr)
{
	socklen_t bytes = MOST_GROUPS * sizeof(*groups);

	groups[0] = who->gid;
	*nr = 1;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups + 1, &bytes))
		return false;
	*nr += bytes / sizeof(*groups);
	return true;
}

static size_t nr_of_user(const struct clients *all, uid_t uid)
{
	size_t nr = 0;

	for (const struct connection *c = all->first; c; c = c->next)
		nr += user_of(c) == uid;
	return nr;
}

static size_t nr_of_others(const struct clients *all)
{
	return all->nr - nr_of_user(all, 0);
}

/* Of those of this user that wait for no answer, the one that is nearest to being hung up on. */
static struct connection *idlest(const struct clients *all, uid_t uid)
{
	struct connection *found = NULL;

	for (struct connection *c = all->first; c; c = c->next)
		if (user_of(c) == uid && c->until_ns && (!found || c->until_ns < found->until_ns))
			found = c;
	return found;
}

/* Whether there is room for another one of this user; who has most must make some. */
static bool make_room(const struct clients *all, uid_t uid)
{
	struct connection *goes = NULL;
	size_t most = nr_of_user(all, uid);

	if (!uid || (most < MOST_OF_USER && nr_of_others(all) < MOST_OF_OTHERS))
		return true;
	if (most >= MOST_OF_USER)
		return false;
	for (const struct connection *c = all->first; c; c = c->next) {
		size_t nr = user_of(c) ? nr_of_user(all, user_of(c)) : 0;

		if (nr > most && idlest(all, user_of(c))) {
			most = nr;
			goes = idlest(all, user_of(c));
		}
	}
	if (goes)
		hang_up(goes);
	return goes;
}

static void add_connection(struct clients *all, int fd)
{
	static gid_t groups[MOST_GROUPS + 1];
	struct connection *c;
	struct ucred who;
	socklen_t bytes = sizeof(who);
	uint64_t space;
	size_t nr;
	int alive;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes)) {
		kprof_sent_files_close(fd);
		return;
	}
	space = peer_space(fd, who.pid, &alive);
	c = make_room(all, space_user(who.uid, space)) ? calloc(1, sizeof(*c)) : NULL;
	if (c)
		c->in = malloc(KPROF_CLIENT_QUESTION_BYTES);
	if (!c || !c->in) {
		free(c);
		if (alive >= 0)
			close(alive);
		kprof_sent_files_close(fd);
		return;
	}
	groups_of(fd, &who, groups, &nr);
	c->client = (struct client){.uid = who.uid, .gid = who.gid, .pid = who.pid, .space = space};
	/* root of a container that has the socket's folder is not the machine's */
	c->client.privileged =
		!space && (!who.uid || all->opts.is_privileged(all->opts.ctx, who.uid, groups, nr));
	c->all = all;
	c->file = -1;
	c->alive = alive;
	c->until_ns = now_ns(CLOCK_MONOTONIC) + SLOW_NS;
	c->watch = (struct loop_watch){.fd = fd, .ready = ready, .ctx = c};
	c->next = all->first;
	all->first = c;
	all->nr++;
	if (loop__add(all->opts.loop, &c->watch, EPOLLIN))
		hang_up(c);
}

static void on_listener(void *ctx, uint32_t events)
{
	struct clients *all = ctx;
	int fd = accept4(all->watch.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0)
		add_connection(all, fd);
	else if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
		return;
	/* the others wait in the kernel's queue; without descriptors or memory, for a second */
	all->full = fd < 0 || all->nr >= MOST_CLIENTS;
	if (all->full)
		loop__change(all->opts.loop, &all->watch, 0);
}

/* One whose user may ask again. */
static void go_on(struct connection *c)
{
	char *end = memchr(c->in, '\n', c->in_bytes);

	c->held = false;
	if (end)
		take_line(c, end);
}

void clients__tend(struct clients *all, uint64_t now_ns)
{
	struct connection *c = all->first, *next;

	memset(all->questions, 0, sizeof(all->questions));
	count_lines_anew(all, now_ns);
	for (; c; c = next) {
		next = c->next;
		if (c->until_ns && now_ns > c->until_ns)
			hang_up(c);
		else if (c->held)
			go_on(c);
	}
	if (all->nr < MOST_CLIENTS)
		let_in(all);
}

void clients__leave(struct clients *all)
{
	if (!all->stored)
		return;
	all->leaving = all->full = true;
	loop__change(all->opts.loop, &all->watch, 0);
}

/* ---- begin and end ---- */

int clients__new(const struct clients_opts *opts, struct clients **out)
{
	struct clients *all = calloc(1, sizeof(*all));
	int err;

	if (!all)
		return -ENOMEM;
	all->opts = *opts;
	all->watch = (struct loop_watch){
		.fd = socket_listen(opts->path, &all->lock, &all->stored),
		.ready = on_listener,
		.ctx = all,
	};
	err = all->watch.fd < 0 ? all->watch.fd : loop__add(opts->loop, &all->watch, EPOLLIN);
	if (!err) {
		*out = all;
		return 0;
	}
	if (err != -EBUSY)
		log_line("error", "socket", NULL, "cannot listen at %s: %s", opts->path,
			 strerror(-err));
	if (all->watch.fd >= 0)
		close(all->watch.fd);
	if (all->lock >= 0)
		close(all->lock);
	free(all);
	return err;
}

void clients__free(struct clients *all)
{
	if (!all)
		return;
	for (struct connection *c = all->first, *next; c; c = next) {
		next = c->next;
		hang_up(c);
	}
	count_lines_anew(all, UINT64_MAX);
	loop__remove(all->opts.loop, &all->watch);
	if (all->stored) { /* who comes now waits for the next daemon */
		kprof_sent_files_leave(all->watch.fd);
	} else {
		unlink(all->opts.path);
		kprof_sent_files_close(all->watch.fd); /* with those that nobody has let in */
	}
	close(all->lock);
	free(all);
}
