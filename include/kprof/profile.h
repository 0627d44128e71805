/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs that have themselves recorded, from one place to another, without any privilege: they
 * ask kprof's daemon, which records them from outside. Header only, C and C++, nothing to link:
 *
 *	#include <kprof/profile.h>
 *
 *	{
 *		KPROF_PROFILE_SCOPE("--shapes", "--with-stack");    C, until the block is left
 *		kprof::profile p{"--shapes", "--with-stack"};       C++, also by an exception
 *		…
 *	}
 *
 * The daemon must allow it: its option allow-owner, or a group whose members may. Without a daemon
 * a start takes five system calls, and says no. The recording is in the file that stop() tells,
 * which belongs to this user; `kprof ctl get ID -o FILE` writes it in other formats.
 *
 * Any thread may start and stop at any time. Starts nest: the first one of the process begins the
 * recording, with its options, and the last stop ends it. (A plug-in that is loaded while the
 * program runs may have a count of its own: then there are two recordings, each with all that
 * happens.) With .this_thread, it is the calling thread's own recording, of nothing but this
 * thread, and so is its count.
 *
 * A process that was forked is not what its parent has begun to record, and may begin a recording
 * of its own. exec ends what the program has begun, unless root, or a member of the daemon's group,
 * has: that goes on, and the new program does not know. errno stays as it is; no signal is raised;
 * nothing is allocated, and no descriptor is open between the calls.
 */
#ifndef KPROF_PROFILE_H
#define KPROF_PROFILE_H

#include <stdbool.h>
#include <stddef.h>

#define KPROF_PROFILE_SOCKET "/run/kprofd/socket" /* unless $KPROF_DAEMON_SOCKET is another */
#define KPROF_PROFILE_START_MS 10000 /* in which all probes are placed, or the recording given up */
#define KPROF_PROFILE_STOP_MS 60000  /* in which the capture is finished */

struct kprof_profile_opts {
	/* As those of `kprof ctl start`: "--with-stack", "--duration=5s". Not --start-at. */
	const char *const *options;
	size_t nr_options;
	const char *socket;    /* NULL: $KPROF_DAEMON_SOCKET, else KPROF_PROFILE_SOCKET */
	int start_ms, stop_ms; /* wait at most so long; 0: as above. Others' calls are part of it */
	bool this_thread;      /* record only what the calling thread does */
};

struct kprof_profile_result {
	/*
	 * 0; ENOENT, ECONNREFUSED: there is no daemon; ETIMEDOUT: it does not answer; EPERM: it
	 * says no; EPIPE: it ended meanwhile; EPROTO: it says what is not understood; E2BIG: the
	 * options are too long; EALREADY: a stop without a start; ECANCELED: somebody has given up
	 * the recording; ENOSYS: not on this platform; or what else went wrong. `error` says it
	 * for people, and `hint`, unless it is "", a way out.
	 */
	int code;
	char id[48];    /* of the recording; "": there is none */
	char path[512]; /* of its capture, as the daemon sees it; "" until the last stop */
	char error[256], hint[256];
};

#ifdef __cplusplus
#define KPROF_PROFILE_FN inline __attribute__((unused))
#else
#define KPROF_PROFILE_FN static inline __attribute__((unused))
#endif

#if defined(__x86_64__) && defined(__linux__) && defined(__ELF__) && !defined(__ILP32__)

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#if !defined(__cplusplus) && !defined(__USE_MISC) /* strict C: <unistd.h> does not declare it */
long syscall(long number, ...);
#endif

#define KPROF_PROFILE_LINE_BYTES 4096 /* a question; an answer */

/* What was begun and not ended yet. */
struct kprof_profile_state {
	int lock;        /* number of the process that is in a call; 0: none */
	int process;     /* the rest is of this one, and not of one that was forked from it */
	unsigned int nr; /* starts without their stop */
	char id[sizeof(((struct kprof_profile_result *)0)->id)];
	char socket[sizeof(((struct sockaddr_un *)0)->sun_path)];
};

#ifdef __cplusplus
extern "C" {
#endif
/* One of the process, one of each thread. The layout is what the number in the name stands for. */
#define KPROF_PROFILE_ONE __attribute__((weak, visibility("default")))
KPROF_PROFILE_ONE struct kprof_profile_state kprof_profile_process_1;
KPROF_PROFILE_ONE __thread struct kprof_profile_state kprof_profile_thread_1;
#ifdef __cplusplus
}
#endif

KPROF_PROFILE_FN unsigned long long kprof_profile_now_ms(void)
{
	struct timespec t;

	t.tv_sec = t.tv_nsec = 0;
	syscall(SYS_clock_gettime, 1 /* CLOCK_MONOTONIC, which strict C does not have */, &t);
	return (unsigned long long)t.tv_sec * 1000 + (unsigned long long)t.tv_nsec / 1000000;
}

/* How much is left until then. */
KPROF_PROFILE_FN int kprof_profile_left_ms(unsigned long long until_ms)
{
	unsigned long long now = kprof_profile_now_ms();

	return now < until_ms ? (int)(until_ms - now) : 0;
}

/* ---- JSON ---- */

/* A line that is being written: too long, it has no room any more. */
struct kprof_profile_line {
	char *at;
	size_t room;
};

KPROF_PROFILE_FN void kprof_profile_put(struct kprof_profile_line *l, const char *text)
{
	size_t bytes = strlen(text);

	if (bytes < l->room) {
		memcpy(l->at, text, bytes + 1);
		l->at += bytes;
		l->room -= bytes;
	} else {
		l->room = 0;
	}
}

KPROF_PROFILE_FN void kprof_profile_put_text(struct kprof_profile_line *l, const char *text)
{
	char one[8];

	kprof_profile_put(l, "\"");
	for (; *text && l->room; text++) {
		if (*text == '"' || *text == '\\')
			kprof_profile_put(l, "\\");
		snprintf(one, sizeof(one), (unsigned char)*text < 0x20 ? "\\u%04x" : "%c", *text);
		kprof_profile_put(l, one);
	}
	kprof_profile_put(l, "\"");
}

/* The closing quote of the text whose opening quote is at p; NULL: it has none. */
KPROF_PROFILE_FN const char *kprof_profile_end(const char *p)
{
	for (p++; *p && *p != '"'; p++)
		if (*p == '\\' && !*++p)
			return NULL;
	return *p ? p : NULL;
}

/* The value of this member of an object; NULL: it has none of this name. */
KPROF_PROFILE_FN const char *kprof_profile_member(const char *json, const char *key)
{
	size_t bytes = strlen(key);
	int depth = 0;

	for (const char *p = json; *p; p++) {
		const char *begin = p + 1;

		depth += (*p == '{' || *p == '[') - (*p == '}' || *p == ']');
		if (*p != '"')
			continue;
		p = kprof_profile_end(p);
		if (!p)
			return NULL;
		if (depth == 1 && (size_t)(p - begin) == bytes && !memcmp(begin, key, bytes) &&
		    p[1] == ':')
			return p + 2 + strspn(p + 2, " ");
	}
	return NULL;
}

/* Copies a member that is a text, as far as there is room; a control character is a blank. */
KPROF_PROFILE_FN void kprof_profile_take(const char *json, const char *key, char *to, size_t room)
{
	const char *p = kprof_profile_member(json, key);
	const char *end = p && *p == '"' ? kprof_profile_end(p) : NULL;

	for (p = end ? p + 1 : NULL; p && p < end && room > 1; p++, room--) {
		if (*p != '\\') {
			*to++ = *p;
			continue;
		}
		p++;
		*to++ = *p == '"' || *p == '\\' || *p == '/' ? *p : ' ';
		if (*p == 'u')
			p += end - p > 4 ? 4 : end - p - 1;
	}
	*to = '\0';
}

/* ---- the daemon ---- */

/* A descriptor or a negative errno. */
KPROF_PROFILE_FN int kprof_profile_connect(const char *path, unsigned long long until_ms)
{
	struct sockaddr_un to;
	int fd, err, left = 1;

	memset(&to, 0, sizeof(to));
	to.sun_family = AF_UNIX;
	if (strlen(path) >= sizeof(to.sun_path))
		return -ENAMETOOLONG;
	strcpy(to.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	while (connect(fd, (struct sockaddr *)&to, sizeof(to))) {
		err = errno;
		/* EAGAIN: others wait for the daemon to accept them */
		if (err == EAGAIN || err == EINTR)
			left = kprof_profile_left_ms(until_ms);
		if ((err != EAGAIN && err != EINTR) || !left) {
			close(fd);
			return left ? -err : -ETIMEDOUT;
		}
		poll(NULL, 0, left < 10 ? left : 10);
	}
	return fd;
}

/* Reads on until the line is whole: 0, or an error. */
KPROF_PROFILE_FN int kprof_profile_read(int fd, char *line, unsigned long long until_ms)
{
	struct pollfd p = {fd, POLLIN, 0};
	size_t bytes = 0;
	bool late = false;

	for (;;) {
		ssize_t n =
			recv(fd, line + bytes, KPROF_PROFILE_LINE_BYTES - 1 - bytes, MSG_DONTWAIT);
		int left;

		if (n > 0) {
			bytes += (size_t)n;
			line[bytes] = '\0';
			if (memchr(line, '\n', bytes))
				return 0;
			if (bytes == KPROF_PROFILE_LINE_BYTES - 1)
				return EPROTO;
		} else if (!n || (errno != EAGAIN && errno != EINTR)) {
			return late ? ETIMEDOUT : EPIPE;
		}
		if (late)
			return ETIMEDOUT;
		left = kprof_profile_left_ms(until_ms);
		if (left) {
			poll(&p, 1, left);
			continue;
		}
		/* from here on, the daemon cannot answer, and knows that it has not */
		late = true;
		shutdown(fd, SHUT_RD);
	}
}

/* Asks, a line there, a line back, in the same place: 0, or an error. */
KPROF_PROFILE_FN int kprof_profile_ask(const char *path, char *line, unsigned long long until_ms)
{
	struct pollfd p = {kprof_profile_connect(path, until_ms), POLLOUT, 0};
	const char *at = line;
	int err = p.fd < 0 ? -p.fd : 0;

	while (*at && !err) {
		ssize_t n = send(p.fd, at, strlen(at), MSG_NOSIGNAL | MSG_DONTWAIT);
		int left = 1;

		if (n > 0)
			at += n;
		else if (errno != EAGAIN && errno != EINTR)
			err = EPIPE;
		else if (!(left = kprof_profile_left_ms(until_ms)))
			err = ETIMEDOUT;
		else
			poll(&p, 1, left);
	}
	if (!err)
		err = kprof_profile_read(p.fd, line, until_ms);
	if (p.fd >= 0)
		close(p.fd);
	return err;
}

/* ---- what is said of it ---- */

KPROF_PROFILE_FN bool kprof_profile_fail(struct kprof_profile_result *r, int code, const char *path)
{
	bool none = code == ENOENT || code == ECONNREFUSED || code == ENOTDIR;
	const char *why = none                ? "no daemon listens at "
			  : code == ETIMEDOUT ? "the daemon has not answered in time"
			  : code == EPIPE     ? "the daemon ended without an answer"
			  : code == EPROTO    ? "the daemon's answer is not understood"
			  : code == E2BIG     ? "the options are too long for a request"
			  : code == ECANCELED ? "the recording was given up by somebody else"
			  : code == EALREADY  ? "nothing was started that could be stopped"
					      : "the daemon cannot be asked";

	r->code = code;
	snprintf(r->error, sizeof(r->error), "%s%.200s", why, none ? path : "");
	snprintf(r->hint, sizeof(r->hint), "%s",
		 none ? "`systemctl start kprof`, or `sudo kprof daemon` in a terminal" : "");
	return false;
}

/* Asks with this line, and leaves the answer in its place. Whether it is yes. */
KPROF_PROFILE_FN bool kprof_profile_request(const char *path, char *line, bool whole,
					    unsigned long long until_ms,
					    struct kprof_profile_result *r)
{
	int err = whole ? kprof_profile_ask(path, line, until_ms) : E2BIG;
	const char *ok = err ? NULL : kprof_profile_member(line, "ok");

	if (!ok)
		return kprof_profile_fail(r, err ? err : EPROTO, path);
	if (*ok == 't' && !kprof_profile_member(line, "error"))
		return true;
	r->code = EPERM;
	kprof_profile_take(line, "error", r->error, sizeof(r->error));
	kprof_profile_take(line, "hint", r->hint, sizeof(r->hint));
	return false;
}

/* ---- starts and stops ---- */

/* False: others have been in their calls for too long. */
KPROF_PROFILE_FN bool kprof_profile_lock(struct kprof_profile_state *s, unsigned long long until_ms)
{
	int me = getpid(), holder = 0;

	/* one that another process has is what fork() has left here */
	while (!__atomic_compare_exchange_n(&s->lock, &holder, me, false, __ATOMIC_ACQUIRE,
					    __ATOMIC_RELAXED)) {
		if (holder != me)
			continue;
		if (!kprof_profile_left_ms(until_ms))
			return false;
		poll(NULL, 0, 1);
		holder = 0;
	}
	if (s->process != me) {
		__atomic_store_n(&s->nr, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&s->process, me, __ATOMIC_RELEASE);
	}
	return true;
}

KPROF_PROFILE_FN bool kprof_profile_begin(struct kprof_profile_state *s,
					  const struct kprof_profile_opts *o,
					  unsigned long long until_ms,
					  struct kprof_profile_result *r)
{
	char line[KPROF_PROFILE_LINE_BYTES], thread[48];
	struct kprof_profile_line l = {line, sizeof(line)};
	const char *path = o ? o->socket : NULL;

	/* a program with more rights than who started it listens to nobody's environment */
	if (!path && !getauxval(AT_SECURE))
		path = getenv("KPROF_DAEMON_SOCKET");
	path = path && *path ? path : KPROF_PROFILE_SOCKET;
	kprof_profile_put(&l, "{\"do\":\"start\",\"self\":true");
	if (o && o->this_thread) {
		snprintf(thread, sizeof(thread), ",\"thread\":%ld", syscall(SYS_gettid));
		kprof_profile_put(&l, thread);
	}
	kprof_profile_put(&l, ",\"options\":[");
	for (size_t i = 0; o && i < o->nr_options; i++) {
		kprof_profile_put(&l, i ? "," : "");
		kprof_profile_put_text(&l, o->options[i]);
	}
	kprof_profile_put(&l, "]}\n");
	if (!kprof_profile_request(path, line, l.room, until_ms, r))
		return false;
	kprof_profile_take(line, "id", s->id, sizeof(s->id));
	snprintf(s->socket, sizeof(s->socket), "%s", path);
	return true;
}

KPROF_PROFILE_FN bool kprof_profile_finish(const struct kprof_profile_state *s,
					   unsigned long long until_ms,
					   struct kprof_profile_result *r)
{
	char line[KPROF_PROFILE_LINE_BYTES];
	struct kprof_profile_line l = {line, sizeof(line)};

	/* by its id: others may record this process, too */
	kprof_profile_put(&l, "{\"do\":\"stop\",\"self\":true,\"id\":");
	kprof_profile_put_text(&l, s->id);
	kprof_profile_put(&l, "}\n");
	if (!kprof_profile_request(s->socket, line, l.room, until_ms, r))
		return false;
	kprof_profile_take(line, "path", r->path, sizeof(r->path));
	return r->path[0] || kprof_profile_fail(r, ECANCELED, "");
}

/* One start (begin), or one stop, of those that are counted. */
KPROF_PROFILE_FN bool kprof_profile_count(const struct kprof_profile_opts *o, bool begin, int ms,
					  struct kprof_profile_result *r)
{
	struct kprof_profile_state *s =
		o && o->this_thread ? &kprof_profile_thread_1 : &kprof_profile_process_1;
	unsigned long long until_ms = kprof_profile_now_ms() + (unsigned int)ms;
	struct kprof_profile_result own;
	int saved = errno;
	bool done = true;

	r = r ? r : &own;
	r->code = 0;
	r->id[0] = r->path[0] = r->error[0] = r->hint[0] = '\0';
	if (!kprof_profile_lock(s, until_ms)) {
		errno = saved;
		return kprof_profile_fail(r, ETIMEDOUT, "");
	}
	if (begin && !s->nr)
		done = kprof_profile_begin(s, o, until_ms, r);
	else if (!s->nr)
		done = kprof_profile_fail(r, EALREADY, "");
	else if (!begin && s->nr == 1)
		done = kprof_profile_finish(s, until_ms, r);
	if (s->nr || done)
		memcpy(r->id, s->id, sizeof(r->id));
	if (begin ? done : s->nr)
		__atomic_store_n(&s->nr, begin ? s->nr + 1 : s->nr - 1, __ATOMIC_RELAXED);
	__atomic_store_n(&s->lock, 0, __ATOMIC_RELEASE);
	errno = saved;
	return done;
}

/* Whether a start of this process, or of this thread, has not been stopped yet. Never waits. */
KPROF_PROFILE_FN bool kprof_profile_on(void)
{
	struct kprof_profile_state *all[2] = {&kprof_profile_process_1, &kprof_profile_thread_1};
	int me = getpid();

	for (int i = 0; i < 2; i++)
		if (__atomic_load_n(&all[i]->process, __ATOMIC_ACQUIRE) == me &&
		    __atomic_load_n(&all[i]->nr, __ATOMIC_RELAXED))
			return true;
	return false;
}

#else /* nothing is recorded here */

KPROF_PROFILE_FN bool kprof_profile_count(const struct kprof_profile_opts *o, bool begin, int ms,
					  struct kprof_profile_result *r)
{
	static const char why[] = "kprof does not record on this platform";

	(void)o, (void)begin, (void)ms; /* nothing of the system's is used here */
	for (size_t i = 0; r && i < sizeof(why); i++)
		r->error[i] = why[i];
	if (r) {
		r->code = 38; /* ENOSYS */
		r->id[0] = r->path[0] = r->hint[0] = '\0';
	}
	return false;
}

KPROF_PROFILE_FN bool kprof_profile_on(void)
{
	return false;
}

#endif

/*
 * Begins to record this process, or this thread; true: it is recorded when this returns. Each start
 * that was true wants its stop, with the same options. opts, result: may be NULL.
 */
KPROF_PROFILE_FN bool kprof_profile_start(const struct kprof_profile_opts *opts,
					  struct kprof_profile_result *result)
{
	int ms = opts && opts->start_ms > 0 ? opts->start_ms : KPROF_PROFILE_START_MS;

	return kprof_profile_count(opts, true, ms, result);
}

/*
 * Ends what the first start has begun, if this is the last stop, and waits until its capture is
 * finished. False: it is not there (yet: after ETIMEDOUT, the daemon may still be writing it); it
 * is not recorded any more in any case.
 */
KPROF_PROFILE_FN bool kprof_profile_stop(const struct kprof_profile_opts *opts,
					 struct kprof_profile_result *result)
{
	int ms = opts && opts->stop_ms > 0 ? opts->stop_ms : KPROF_PROFILE_STOP_MS;

	return kprof_profile_count(opts, false, ms, result);
}

/* ---- scopes ---- */

#define KPROF_PROFILE_JOIN(a, b) a##b
#define KPROF_PROFILE_NAME(line) KPROF_PROFILE_JOIN(kprof_profile_scope_, line)

#ifdef __cplusplus

#include <initializer_list>

namespace kprof
{

/* Records from here to the end of its life, or to stop(). To be destroyed by the same thread. */
struct profile {
	/* Options as behind `kprof ctl start`: {"--shapes", "--with-stack"}. */
	profile(std::initializer_list<const char *> options = {}) : opts(), last()
	{
		opts.options = options.begin();
		opts.nr_options = options.size();
		begin();
	}
	explicit profile(const struct kprof_profile_opts &given) : opts(given), last()
	{
		begin();
	}
	profile(const profile &) = delete;
	profile &operator=(const profile &) = delete;
	~profile()
	{
		stop();
	}
	/* Whether it is being recorded; after stop(), whether the capture is there. */
	explicit operator bool() const
	{
		return done;
	}
	/* Ends it now, once. Whether the capture is there. */
	bool stop()
	{
		if (on)
			done = kprof_profile_stop(&opts, &last);
		on = false;
		return done;
	}
	/* Of the start, or of the stop. */
	const struct kprof_profile_result &result() const
	{
		return last;
	}

      private:
	void begin()
	{
		on = done = kprof_profile_start(&opts, &last);
		opts.options = nullptr; /* the caller's, who may be gone when it stops */
		opts.nr_options = 0;
	}

	struct kprof_profile_opts opts;
	struct kprof_profile_result last;
	bool on, done;
};

} /* namespace kprof */

#define KPROF_PROFILE_SCOPE(...) kprof::profile KPROF_PROFILE_NAME(__LINE__)({__VA_ARGS__})

#else

KPROF_PROFILE_FN bool kprof_profile_enter(const char *const *options, size_t nr_options)
{
	struct kprof_profile_opts opts = {options, nr_options, NULL, 0, 0, false};

	return kprof_profile_start(&opts, NULL);
}

KPROF_PROFILE_FN void kprof_profile_leave(const bool *on)
{
	if (*on)
		kprof_profile_stop(NULL, NULL);
}

/* Records from here to the end of the block, however it is left, but by longjmp(). */
#define KPROF_PROFILE_SCOPE(...)                                                                  \
	__attribute__((cleanup(kprof_profile_leave), unused)) bool KPROF_PROFILE_NAME(__LINE__) = \
		kprof_profile_enter((const char *const[]){NULL, __VA_ARGS__} + 1,                 \
				    sizeof((const char *const[]){NULL, __VA_ARGS__}) /            \
						    sizeof(const char *) -                        \
					    1)

#endif
#endif
