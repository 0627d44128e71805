// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sends what is sampled to a place that keeps profiles. The process that does so speaks with the
 * network and reads captures, so it is nobody, and is handed each capture as an open file: one at a
 * time, so that it is known which it has had.
 */
#include "cmd/daemon/pusher.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECOND_NS 1000000000ull
#define STATS_NS SECOND_NS
#define AGAIN_NS (10 * SECOND_NS) /* between two begins of the process */
#define WAIT_MS 1000
#define MOST_CAPTURE_BYTES (256 << 20)
#define NOBODY 65534
#define USER "kprof-push" /* the process's user, if there is one */
#define HANDED "pushed"   /* a file in the state: which captures it has had */

/* What the process is begun with. */
struct job {
	struct push_opts *opts;
	const char *queue;
};

struct pusher {
	struct loop *loop;
	struct push_opts opts; /* .library.url NULL: nothing is pushed any more */
	char state[DAEMON_PATH_BYTES], queue[DAEMON_PATH_BYTES];
	struct job job;
	struct child child;
	bool ready;        /* it takes captures */
	bool stopping;     /* it was asked to end */
	bool more;         /* captures are to be looked for in a second */
	uint64_t again_ns; /* 0: it runs, or is not to be begun */
	uint64_t restarts, not_handed;
	struct handed handed;
	char now[HANDED_NAME_BYTES];   /* the capture that it was handed; "": none */
	char tried[HANDED_NAME_BYTES]; /* with which it has ended before */
	bool ending;
	cJSON *stats;
};

/* ---- inside the process ---- */

struct inside {
	int fd;
	const char *queue;
	struct kprof_push *push;
	bool closed, stop;
	uint64_t next_stats_ns;
};

/* Makes the capture a file of this process's own, for as long as it is read. */
static int take_capture(const struct inside *in, int file, char *path, size_t bytes)
{
	struct stat st;
	ssize_t n = 0;
	int to;

	snprintf(path, bytes, "%s/.capture.kprof", in->queue);
	unlink(path);
	if (fstat(file, &st) || st.st_size > MOST_CAPTURE_BYTES)
		return -EFBIG;
	to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		return -errno;
	while (st.st_size > 0 && (n = sendfile(to, file, NULL, (size_t)st.st_size)) > 0)
		st.st_size -= n;
	close(to);
	return n < 0 ? -errno : 0;
}

/* And says that it is in the queue, or has nothing to be pushed, or what kept it out. */
static void add_capture(const struct inside *in, int file)
{
	char path[DAEMON_PATH_BYTES + 32];
	cJSON *m = cJSON_CreateObject();
	int err = take_capture(in, file, path, sizeof(path));
	bool had;

	if (!err)
		err = kprof_push_add(in->push, path);
	unlink(path);
	had = !err || err == -ENODATA;
	cJSON_AddBoolToObject(m, "had", had);
	if (!had)
		cJSON_AddStringToObject(
			m, "log", *kprof_error_cause() ? kprof_error_cause() : strerror(-err));
	link_send(in->fd, m);
}

static void take_message(struct inside *in)
{
	int file = -1;
	cJSON *m = link_take_file(in->fd, 0, &in->closed, &file);
	const char *what = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(m, "do"));

	in->stop |= what && !strcmp(what, "stop");
	if (file >= 0) {
		if (what && !strcmp(what, "push"))
			add_capture(in, file);
		close(file);
	}
	cJSON_Delete(m);
}

static void send_stats(const struct inside *in)
{
	struct kprof_push_stats s;
	cJSON *m = cJSON_CreateObject(), *o;

	kprof_push_stats(in->push, &s);
	o = cJSON_AddObjectToObject(m, "stats");
	cJSON_AddNumberToObject(o, "captures", (double)s.captures);
	cJSON_AddNumberToObject(o, "pushed", (double)s.pushed);
	cJSON_AddNumberToObject(o, "pushed_bytes", (double)s.pushed_bytes);
	cJSON_AddNumberToObject(o, "retried", (double)s.retried);
	cJSON_AddNumberToObject(o, "rejected", (double)s.rejected);
	cJSON_AddNumberToObject(o, "queued", (double)s.queued);
	cJSON_AddNumberToObject(o, "queued_bytes", (double)s.queued_bytes);
	for (int i = 0; i < KPROF_PUSH_DROPS; i++)
		cJSON_AddNumberToObject(o, kprof_push_drop_name(i), (double)s.dropped[i]);
	cJSON_AddStringToObject(o, "error", s.error);
	cJSON_AddStringToObject(o, "hint", s.hint);
	link_send(in->fd, m);
}

static int go_on(struct inside *in)
{
	while (!in->stop && !in->closed) {
		struct pollfd p = {.fd = in->fd, .events = POLLIN};
		uint64_t now;
		/* first of all the daemon is told that captures can come: the queue is there */
		int n = kprof_push_poll(in->push, &p, 1, in->next_stats_ns ? WAIT_MS : 0);

		if (n < 0)
			return n;
		if (p.revents)
			take_message(in);
		now = now_ns(CLOCK_MONOTONIC);
		if (now >= in->next_stats_ns) {
			send_stats(in);
			in->next_stats_ns = now + STATS_NS;
		}
	}
	return 0;
}

static int run(int fd, void *arg)
{
	const struct job *job = arg;
	struct inside in = {.fd = fd, .queue = job->queue};
	char lock[DAEMON_PATH_BYTES + 16];
	int err;

	link_log(fd);
	snprintf(lock, sizeof(lock), "%s/lock", job->queue);
	push_fill(job->opts);
	job->opts->library.queue = job->queue;
	/* secrets are read with root's rights; then it becomes the queue's owner for good */
	err = kprof_push_new(&job->opts->library, &in.push);
	if (!err)
		err = kprof_give_up_root(job->queue, lock, (uid_t)-1, (gid_t)-1, false);
	if (!err)
		err = go_on(&in);
	if (err)
		link_fail(fd);
	else
		send_stats(&in);
	kprof_push_free(in.push);
	return err ? EXIT_FAILED : EXIT_DONE;
}

/* ---- the daemon's side ---- */

static cJSON *order(const char *what)
{
	cJSON *m = cJSON_CreateObject();

	cJSON_AddStringToObject(m, "do", what);
	return m;
}

/* It is done with the capture that it was handed. */
static void is_handed(struct pusher *p, bool had)
{
	p->not_handed += !had;
	handed__add(&p->handed, p->now);
	p->now[0] = '\0';
}

/* Hands over the oldest capture that was not, if it can be now. */
static void hand_over(struct pusher *p)
{
	char path[DAEMON_PATH_BYTES + HANDED_NAME_BYTES];

	while (p->ready && !p->stopping && !*p->now && handed__next(&p->handed, p->now)) {
		int file;

		snprintf(path, sizeof(path), "%s/%s", p->handed.folder, p->now);
		file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		if (file < 0) {
			is_handed(p, false);
			p->more = true;
			return;
		}
		/* if it has just ended, the next one gets it */
		if (!child__send_file(&p->child, order("push"), file))
			p->ready = false;
		close(file);
		if (!p->ready)
			p->now[0] = '\0';
	}
}

static void on_message(void *ctx, const cJSON *m)
{
	struct pusher *p = ctx;
	const cJSON *stats = cJSON_GetObjectItemCaseSensitive(m, "stats");
	const cJSON *had = cJSON_GetObjectItemCaseSensitive(m, "had");
	const char *log = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(m, "log"));
	const char *error = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(m, "error"));

	if (log || error)
		log_line("warning", "push", NULL, "%s", log ? log : error);
	if (had && *p->now)
		is_handed(p, cJSON_IsTrue(had));
	if (stats) {
		cJSON_Delete(p->stats);
		p->stats = cJSON_Duplicate(stats, true);
	}
	if (had || (stats && !p->ready)) {
		p->ready = true;
		hand_over(p);
	}
}

static int begin(struct pusher *p);

static void on_end(void *ctx, int status)
{
	struct pusher *p = ctx;
	bool asked = p->stopping;

	(void)status;
	p->ready = p->stopping = false;
	/* once more, but no more than that: the capture may be why it ended */
	if (!asked && *p->now && !strcmp(p->now, p->tried))
		is_handed(p, false);
	if (!asked)
		snprintf(p->tried, sizeof(p->tried), "%s", p->now);
	p->now[0] = '\0';
	if (p->ending || (asked && !begin(p)))
		return;
	p->restarts += !asked;
	p->again_ns = now_ns(CLOCK_MONOTONIC) + AGAIN_NS;
}

static int begin(struct pusher *p)
{
	p->again_ns = 0;
	p->job = (struct job){.opts = &p->opts, .queue = p->queue};
	p->child = (struct child){
		.name = "kprof-push",
		.message = on_message,
		.ended = on_end,
		.ctx = p,
	};
	return child__start(p->loop, &p->child, run, &p->job);
}

/* The folder is the process's user's, and so is all in it. */
static int make_queue(const char *queue)
{
	const struct passwd *user = getpwnam(USER);
	uid_t uid = user ? user->pw_uid : NOBODY;
	gid_t gid = user ? user->pw_gid : NOBODY;
	struct stat st;

	if (mkdir(queue, 0700) && errno != EEXIST)
		return -errno;
	if (lstat(queue, &st))
		return -errno;
	if (!S_ISDIR(st.st_mode) || (st.st_uid && st.st_uid != uid))
		return -EPERM;
	/* its mode first: another user's takes a capability that a service does not have */
	if (!st.st_uid && chmod(queue, 0700)) /* for the umask */
		return -errno;
	return lchown(queue, uid, gid) ? -errno : 0;
}

static void open_handed(struct pusher *p)
{
	char folder[DAEMON_PATH_BYTES + 16], path[DAEMON_PATH_BYTES + 16];

	if (p->handed.open)
		return;
	snprintf(folder, sizeof(folder), "%s/samples", p->state);
	snprintf(path, sizeof(path), "%s/" HANDED, p->state);
	handed__open(&p->handed, folder, path);
}

int pusher__new(struct loop *loop, const struct push_opts *opts, const char *state,
		struct pusher **out)
{
	struct pusher *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return -ENOMEM;
	p->loop = loop;
	p->opts = *opts;
	snprintf(p->state, sizeof(p->state), "%s", state);
	snprintf(p->queue, sizeof(p->queue), "%.*s/push", DAEMON_PATH_BYTES - 16, state);
	err = make_queue(p->queue);
	if (!err) {
		open_handed(p);
		err = begin(p);
	}
	if (err) {
		log_line("error", "push", NULL, "nothing is pushed: %s: %s", p->queue,
			 strerror(-err));
		pusher__free(p);
		return err;
	}
	*out = p;
	return 0;
}

void pusher__free(struct pusher *p)
{
	if (!p)
		return;
	handed__close(&p->handed);
	cJSON_Delete(p->stats);
	free(p);
}

void pusher__chunk(struct pusher *p)
{
	hand_over(p);
}

void pusher__tend(struct pusher *p, uint64_t now)
{
	if (p->again_ns && now >= p->again_ns && !p->child.pid && !p->ending && begin(p))
		p->again_ns = now + AGAIN_NS;
	if (p->more) {
		p->more = false;
		hand_over(p);
	}
}

static void ask_to_stop(struct pusher *p)
{
	if (p->child.pid && !p->stopping)
		child__send(&p->child, order("stop"));
	p->stopping = p->child.pid;
}

void pusher__stop(struct pusher *p)
{
	if (!p)
		return;
	p->ending = true;
	p->again_ns = 0;
	ask_to_stop(p);
}

void pusher__off(struct pusher *p, const char *state)
{
	char path[DAEMON_PATH_BYTES + 16];

	if (p) {
		pusher__stop(p);
		handed__close(&p->handed);
		p->opts = (struct push_opts){0}; /* those of before go */
	}
	snprintf(path, sizeof(path), "%s/" HANDED, state);
	unlink(path);
}

void pusher__change(struct pusher *p, const struct push_opts *opts)
{
	p->opts = *opts;
	p->ending = false;
	open_handed(p);
	ask_to_stop(p);
	if (!p->child.pid)
		p->again_ns = now_ns(CLOCK_MONOTONIC);
}

const cJSON *pusher__stats(const struct pusher *p)
{
	return p->stats;
}

cJSON *pusher__state(const struct pusher *p)
{
	cJSON *o = p->stats ? cJSON_Duplicate(p->stats, true) : cJSON_CreateObject();

	cJSON_AddStringToObject(o, "to", p->opts.library.url ? p->opts.library.url : "");
	cJSON_AddNumberToObject(o, "restarts", (double)p->restarts);
	cJSON_AddNumberToObject(o, "captures_not_handed_over", (double)p->not_handed);
	return o;
}
