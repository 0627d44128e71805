// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the daemon knows of processes: for `kprof ctl processes`. Whose libraries a process has is
 * read in a process of its own, which is who asks, unless that may have any process recorded: so
 * the kernel decides what is seen. It has what the daemon knew when it was begun. The list can be
 * long, and what is kept for clients is the service's memory: so each gets, at once, the end of a
 * socket from which it reads while the process writes, a few KB ahead at most. (Of a pipe, who
 * reads could make more of that.) The daemon itself writes the end of the list, of a process that
 * is over.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cmd/daemon/kineto.h"
#include "cmd/print/text.h"

#define LONGEST_NS (20 * 1000000000ull)
#define HANDED_OVER_MS 10000
/* At once, one a user, of all but root: of those who may have any recorded, and of others. */
#define MOST 4

struct listing {
	struct daemon *d;
	struct client who; /* as it was */
	uint64_t until_ns;
	struct loop_watch reader; /* .fd: where to write */
	struct child child;
	struct listing *next;
};

/* ---- inside of the process ---- */

static bool matches(const struct value_list *globs, const char *comm)
{
	for (size_t i = 0; i < globs->nr; i++)
		if (!fnmatch(globs->items[i], comm, 0))
			return true;
	return false;
}

/* By its name; whose it is, and its cgroup, the recorder knows. */
static bool is_watched(const struct daemon *d, const char *comm)
{
	return d->flight && matches(&d->opts->watch, comm) &&
	       !matches(&d->opts->chosen.exclude_comms, comm);
}

static void add_text(cJSON *o, const char *key, const char *text)
{
	if (*text)
		cJSON_AddStringToObject(o, key, text);
}

static cJSON *describe(const struct listing *l, const struct kprof_process_info *info)
{
	const struct recording *r = recordings__of(l->d->recordings, info->pid, &l->who, true);
	bool may = l->who.privileged ||
		   (l->d->opts->allow_owner &&
		    !process_check_owner(info->pid, l->who.uid, l->who.space, l->who.pid));
	cJSON *o = cJSON_CreateObject();

	cJSON_AddNumberToObject(o, "pid", info->pid);
	cJSON_AddNumberToObject(o, "ppid", info->ppid);
	cJSON_AddNumberToObject(o, "uid", info->uid);
	cJSON_AddStringToObject(o, "name", info->comm);
	cJSON_AddNumberToObject(o, "threads", info->nr_threads);
	add_text(o, "python", info->python);
	add_text(o, "frameworks", info->frameworks);
	add_text(o, "runtimes", info->runtimes);
	add_text(o, "container", info->container);
	add_text(o, "pod", info->pod);
	cJSON_AddBoolToObject(o, "may", may);
	cJSON_AddBoolToObject(o, "agent", info->has_agent);
	cJSON_AddBoolToObject(o, "watched", is_watched(l->d, info->comm));
	cJSON_AddBoolToObject(o, "kineto", l->d->kineto && kineto__has(l->d->kineto, info->pid));
	if (r)
		cJSON_AddStringToObject(o, "recording", recording__id(r));
	return o;
}

struct written {
	const struct listing *l;
	FILE *to;
	size_t nr;
};

/* An object a line. */
static int write_one(void *ctx, const struct kprof_process_info *info)
{
	struct written *w = ctx;
	char *text;
	bool fine;
	cJSON *o;

	/* root of a container: what only the kernel's checks kept from others, it must not see */
	if (w->l->who.space &&
	    (w->l->who.space == SPACE_UNKNOWN || process_space(info->pid) != w->l->who.space))
		return 0;
	o = describe(w->l, info);
	text = cJSON_PrintUnformatted(o);
	if (text)
		text_defuse(text);
	fine = text && fprintf(w->to, "%s%s", w->nr ? ",\n" : "[", text) > 0;

	w->nr += fine;
	cJSON_free(text);
	cJSON_Delete(o);
	return fine ? 0 : -ENOMEM;
}

static void say_nothing(void *ctx, enum kprof_log_level level, const char *text, const char *hint)
{
	(void)ctx;
	(void)level;
	(void)text;
	(void)hint;
}

/*
 * Nobody but root can look into it, although it is the user's: it has the daemon's memory. A change
 * of the effective id sets that anew, to what fs.suid_dumpable says. Until it is set back, the
 * saved id is still root's, which keeps the user out as well.
 */
static int become(uid_t uid, gid_t gid)
{
	if (setgroups(0, NULL) || setresgid(gid, gid, gid) || setresuid(uid, uid, 0) ||
	    prctl(PR_SET_DUMPABLE, 0) || setresuid(uid, uid, uid))
		return -errno;
	return 0;
}

/* Until there is room for the end. */
static int write_out(struct written *w)
{
	struct pollfd room = {.fd = fileno(w->to), .events = POLLOUT};

	if ((!w->nr && fputs("[", w->to) < 0) || fflush(w->to) || poll(&room, 1, -1) < 0)
		return -errno;
	return 0;
}

static int run(int fd, void *arg)
{
	const struct listing *l = arg;
	struct written w = {.l = l};
	bool closed = false;
	int file, err = 0;

	cJSON_Delete(link_take_file(fd, HANDED_OVER_MS, &closed, &file));
	w.to = file < 0 ? NULL : fdopen(file, "w");
	if (!w.to)
		return EXIT_FAILED;
	setpriority(PRIO_PROCESS, 0, 19);
	kprof_set_log(say_nothing, NULL);
	if (!l->who.privileged)
		err = become(l->who.uid, l->who.gid);
	if (!err)
		err = kprof_list_processes(true, write_one, &w);
	if (!err)
		err = write_out(&w);
	return err ? EXIT_FAILED : EXIT_DONE;
}

/* ---- the daemon's side ---- */

static void reader_is_gone(void *ctx, uint32_t events)
{
	struct listing *l = ctx;

	(void)events;
	loop__remove(l->d->loop, &l->reader);
	kill(l->child.pid, SIGKILL);
}

static void on_message(void *ctx, const cJSON *m)
{
	(void)ctx; /* it says nothing */
	(void)m;
}

static void free_listing(struct listing *l)
{
	loop__remove(l->d->loop, &l->reader);
	close(l->reader.fd);
	free(l);
}

static void on_end(void *ctx, int status)
{
	struct listing *l = ctx, **at = &l->d->listings;

	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	if (status == EXIT_DONE) /* else, a list without an end says that it is not whole */
		send(l->reader.fd, "]\n", 2, MSG_DONTWAIT | MSG_NOSIGNAL);
	free_listing(l);
}

static bool may_begin(const struct daemon *d, const struct client *c)
{
	uid_t user = space_user(c->uid, c->space);
	size_t nr = 0;

	for (const struct listing *l = d->listings; l && user; l = l->next) {
		uid_t other = space_user(l->who.uid, l->who.space);

		if (!other || l->who.privileged != c->privileged)
			continue;
		if (other == user)
			return false;
		nr++;
	}
	return nr < MOST;
}

/* Ends that are connected: what is written to the first can be read from the second. */
static int make_ends(int ends[2])
{
	int least = 1; /* the kernel makes it what it has as the least: a few KB */

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return -errno;
	if (!setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &least, sizeof(least)) &&
	    !shutdown(ends[0], SHUT_RD)) /* who reads can send nothing, no file either */
		return 0;
	close(ends[0]);
	close(ends[1]);
	return -EIO;
}

/* Takes the end to write to. */
static int begin(struct daemon *d, const struct client *c, int to)
{
	struct listing *l = calloc(1, sizeof(*l));
	int err;

	if (!l) {
		close(to);
		return -ENOMEM;
	}
	*l = (struct listing){
		.d = d,
		.who = *c,
		.until_ns = now_ns(CLOCK_MONOTONIC) + LONGEST_NS,
		.reader = {.fd = to, .ready = reader_is_gone, .ctx = l},
		.child = {.name = "kprof-list", .message = on_message, .ended = on_end, .ctx = l},
		.next = d->listings,
	};
	err = loop__add(d->loop, &l->reader, 0); /* its end is always told */
	if (!err)
		err = child__start(d->loop, &l->child, run, l);
	if (err) {
		free_listing(l);
		return err;
	}
	d->listings = l;
	if (child__send_file(&l->child, cJSON_CreateObject(), to))
		return 0;
	kill(l->child.pid, SIGKILL);
	return -EIO;
}

void listing__asked(struct daemon *d, struct client *c)
{
	int ends[2], err;
	cJSON *o;

	if (!may_begin(d, c)) {
		clients__refuse(c, "try it again", "as much is being asked as is answered at once");
		return;
	}
	err = make_ends(ends);
	if (!err) {
		err = begin(d, c, ends[0]);
		if (!err) {
			o = cJSON_CreateObject();
			cJSON_AddBoolToObject(o, "ok", true);
			clients__answer(c, o, ends[1]);
		}
		close(ends[1]);
	}
	if (err)
		clients__refuse(c, NULL, "the processes cannot be listed: %s", strerror(-err));
}

/* Whoever a process is can also stop it: only SIGKILL ends it then. */
void listing__tend(struct daemon *d, uint64_t now)
{
	for (struct listing *l = d->listings; l; l = l->next)
		if (d->ending || now >= l->until_ns)
			kill(l->child.pid, SIGKILL);
}

void listing__forget(struct daemon *d)
{
	while (d->listings) {
		struct listing *l = d->listings;

		d->listings = l->next;
		free_listing(l);
	}
}
