// SPDX-License-Identifier: BSD-2-Clause
/* kprof daemon: begins, waits, and ends. */
#include "cmd/daemon/daemon.h"
#include "cmd/daemon/record/windows.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "cmd/daemon/kineto.h"
#include "cmd/daemon/pusher.h"
#include "cmd/daemon/show/serve.h"
#include "cmd/daemon/watch/triggers.h"

#define SECOND_NS 1000000000ull
#define TICK_MS 1000
#define END_NS (60 * SECOND_NS) /* what records may take so long to end */
#define DEFAULT_GROUP "kprof"
#define KINETO_AGAIN_NS (10 * SECOND_NS)
#define MEMORY_PAUSE_NS (60 * SECOND_NS)

/* What the command line's and the library's functions say, once there is a log. */
static void to_log(void *ctx, const char *cause, const char *hint)
{
	cJSON *fields = cJSON_CreateObject();

	if (hint)
		cJSON_AddStringToObject(fields, "hint", hint);
	log_line("warning", "message", fields, "%s", cause);
}

/* ---- who may do what ---- */

static bool is_privileged(void *ctx, uid_t uid, const gid_t *groups, size_t nr)
{
	const struct daemon *d = ctx;

	for (size_t i = 0; i < nr && d->group; i++)
		if (groups[i] == d->group)
			return true;
	return false;
}

/* Not whenever somebody connects: names may be asked for over the network. */
static void find_group(struct daemon *d)
{
	const char *name = d->opts->group ? d->opts->group : DEFAULT_GROUP;
	const struct group *group = *name ? getgrnam(name) : NULL;

	d->group = group ? group->gr_gid : 0;
	if (!group && d->opts->group && *name)
		log_line("warning", "group", NULL,
			 "there is no group %s: only root may have any process recorded", name);
}

/* ---- limits ---- */

/*
 * What has grown is begun anew: its memory goes back to the machine. Where that does not help, it
 * is not done all the time: each one that begins costs CPU time, and memory for two.
 */
static void keep_memory(struct daemon *d, uint64_t now)
{
	/* these are what others have asked for; a window's memory is gone with it */
	if (recordings__running(d->recordings) || windows__now(d->windows))
		return;
	if (now < d->next_memory_ns || daemon_memory(d) <= d->opts->max_memory)
		return;
	if (d->next_memory_ns && now < d->next_memory_ns + MEMORY_PAUSE_NS)
		log_line("warning", "memory", NULL,
			 "%.0f MB are more than max-memory, also after what records has begun "
			 "anew: it needs a larger max-memory, or less to record",
			 (double)daemon_memory(d) / 1e6);
	d->next_memory_ns = now + MEMORY_PAUSE_NS;
	if (d->sampler)
		keeper__renew(d->sampler, "the daemon has more memory than it may");
	if (d->flight)
		keeper__renew(d->flight, "the daemon has more memory than it may");
}

/* Somebody else may have the names: then it is tried again, and recordings go on. */
static void serve_kineto(struct daemon *d, uint64_t now)
{
	int err;

	if (!d->opts->dynolog || d->kineto || now < d->next_kineto_ns)
		return;
	err = kineto__new(d, &d->kineto);
	if (err && !d->next_kineto_ns)
		log_line("error", "kineto", NULL, "Kineto and dyno are not served: %s",
			 kprof_error_cause());
	d->next_kineto_ns = err ? now + KINETO_AGAIN_NS : 0;
}

/* For `systemctl status`, when it is something else. */
static void tell_systemd(struct daemon *d)
{
	char text[sizeof(d->told)], watched[48] = "";

	if (d->opts->watch.nr)
		snprintf(watched, sizeof(watched), ", watches by %zu names", d->opts->watch.nr);
	snprintf(text, sizeof(text), "STATUS=%s%s; %zu recordings go on",
		 d->ending              ? "ends"
		 : d->opts->no_sampling ? "samples nothing"
					: "samples all processes",
		 watched, recordings__running(d->recordings));
	if (!strcmp(text, d->told))
		return;
	strcpy(d->told, text);
	sd_notify(0, text);
}

static void tick(struct daemon *d)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);

	clients__tend(d->clients, now);
	recordings__tend(d->recordings, now);
	listing__tend(d, now);
	if (d->sampler)
		keeper__tend(d->sampler, now);
	if (d->flight) {
		keeper__hold(d->flight, recordings__dumping(d->recordings));
		keeper__tend(d->flight, now);
	}
	serve__tend(d->serve, now); /* before the next window: the last one has said something */
	if (d->windows)
		windows__tend(d->windows, now);
	always_tend(d, now);
	if (d->pusher)
		pusher__tend(d->pusher, now);
	serve_kineto(d, now);
	triggers__tend(d->triggers, now);
	keep_memory(d, now);
	tell_systemd(d);
	sd_notify(0, "WATCHDOG=1");
}

static void on_tick(void *ctx, uint32_t events)
{
	struct daemon *d = ctx;
	uint64_t times;

	if (read(d->timer.fd, &times, sizeof(times)) == sizeof(times))
		tick(d);
}

/* ---- signals ---- */

static void end(struct daemon *d, const char *why)
{
	if (d->ending)
		return;
	d->ending = true;
	d->end_by_ns = now_ns(CLOCK_MONOTONIC) + END_NS;
	sd_notify(0, "STOPPING=1");
	clients__leave(d->clients);
	log_line("info", "stopping", NULL, "the daemon ends: %s", why);
	recordings__stop_all(d->recordings);
	keeper__stop(d->sampler);
	keeper__stop(d->flight);
	windows__stop(d->windows);
	pusher__stop(d->pusher);
	triggers__free(d->triggers); /* no dump is begun any more: no look is waited for */
	d->triggers = NULL;
	serve__ending(d->serve);
}

/* Reads the options anew. With wrong ones, nothing changes. */
static void reload(struct daemon *d)
{
	struct daemon_opts *opts = calloc(1, sizeof(*opts)), *before = d->opts;
	char text[64];
	int failed = 0;

	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%llu",
		 (unsigned long long)now_ns(CLOCK_MONOTONIC) / 1000);
	sd_notify(0, text);
	if (!opts || daemon_opts_parse(d->command, d->argc, d->argv, opts) >= 0) {
		log_line("error", "reload", NULL,
			 "the options are not valid: those of before stay");
		if (opts)
			daemon_opts_free(d->command, opts);
		free(opts);
		sd_notify(0, "READY=1");
		return;
	}
	if (strcmp(opts->state, before->state) || strcmp(opts->socket, before->socket))
		log_line("warning", "reload", NULL,
			 "state and socket stay as they were until the daemon is begun anew");
	opts->state = before->state;
	opts->socket = before->socket;
	d->opts = opts;
	find_group(d);
	recordings__set_limits(d->recordings, opts->keep_recordings_ns, opts->recordings_bytes,
			       opts->min_free, opts->longest_ns);
	kineto__free(d->kineto);
	d->kineto = NULL;
	d->next_kineto_ns = 0;
	serve_kineto(d, now_ns(CLOCK_MONOTONIC));
	serve__change(d->serve);
	/* all: none may keep what the options before had */
	failed += always_sample(d) != 0;
	failed += always_watch(d) != 0;
	failed += always_device(d) != 0;
	if (failed)
		log_line("error", "reload", NULL, "what is recorded always could not be begun");
	/* the first ones stay for the paths */
	if (before != &d->first_opts) {
		daemon_opts_free(d->command, before);
		free(before);
	}
	log_line("info", "reload", NULL, "the options were read anew");
	sd_notify(0, "READY=1");
}

static void on_signal(void *ctx, uint32_t events)
{
	struct daemon *d = ctx;
	struct signalfd_siginfo info;

	if (read(d->signals.fd, &info, sizeof(info)) != sizeof(info))
		return;
	switch (info.ssi_signo) {
	case SIGCHLD:
		children__reap();
		break;
	case SIGHUP:
		if (!d->ending)
			reload(d);
		break;
	default:
		end(d, strsignal((int)info.ssi_signo));
	}
}

static int watch_signals(struct daemon *d)
{
	struct itimerspec each = {.it_interval.tv_sec = 1, .it_value.tv_sec = 1};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	d->signals = (struct loop_watch){
		.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK),
		.ready = on_signal,
		.ctx = d,
	};
	d->timer = (struct loop_watch){
		.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK),
		.ready = on_tick,
		.ctx = d,
	};
	if (d->signals.fd < 0 || d->timer.fd < 0 || timerfd_settime(d->timer.fd, 0, &each, NULL))
		return -errno;
	if (loop__add(d->loop, &d->timer, EPOLLIN))
		return -errno;
	return loop__add(d->loop, &d->signals, EPOLLIN);
}

/* ---- begin and end ---- */

/* One that listens elsewhere would store in the same folders, and remove what is this one's. */
static int lock_state(struct daemon *d)
{
	d->state_lock = folder_lock(d->opts->state, "state.lock");
	if (d->state_lock == -EBUSY) {
		message_warn("--state names another folder; `kprof ctl --socket …` asks the other "
			     "daemon, where it listens",
			     "another daemon, with another socket, stores in %s", d->opts->state);
		return -EBUSY;
	}
	if (d->state_lock < 0) /* a disk that is full, or knows no locks, keeps nobody from work */
		log_line("warning", "lock", NULL, "the folder %s cannot be locked: %s",
			 d->opts->state, strerror(-d->state_lock));
	return 0;
}

static int begin(struct daemon *d)
{
	struct clients_opts clients = {
		.loop = d->loop,
		.path = d->opts->socket,
		.asked = requests__asked,
		.gone = requests__gone,
		.answered = requests__answered,
		.is_privileged = is_privileged,
		.ctx = d,
	};
	struct recordings_opts recordings = {
		.loop = d->loop,
		.keep_ns = d->opts->keep_recordings_ns,
		.keep_bytes = d->opts->recordings_bytes,
		.min_free = d->opts->min_free,
		.longest_ns = d->opts->longest_ns,
		.changed = requests__changed,
		.ctx = d,
	};
	int err = folder_make(d->opts->state, 0711);

	find_group(d);
	if (!err)
		err = clients__new(&clients, &d->clients);
	if (err == -EBUSY)
		message_warn("`kprof ctl status` asks it", "a daemon listens at %s already",
			     d->opts->socket);
	if (!err)
		err = lock_state(d);
	if (err)
		return err;
	/* early: the process that serves has a copy of what is known so far */
	err = serve__new(d, &d->serve);
	if (err)
		return err;
	snprintf(recordings.folder, sizeof(recordings.folder), "%s/recordings", d->opts->state);
	err = recordings__new(&recordings, &d->recordings);
	if (!err) {
		serve_kineto(d, now_ns(CLOCK_MONOTONIC));
		err = always_sample(d);
	}
	if (!err)
		err = always_watch(d);
	return err ? err : always_device(d);
}

/* Until all that records has ended, or has had its time. */
static void finish(struct daemon *d)
{
	while (children__nr() && now_ns(CLOCK_MONOTONIC) < d->end_by_ns)
		loop__run_once(d->loop, TICK_MS / 10);
	children__signal(SIGKILL);
}

static void free_parts(struct daemon *d)
{
	clients__free(d->clients);
	serve__free(d->serve);
	kineto__free(d->kineto);
	requests__forget(d);
	keeper__free(d->sampler);
	pusher__free(d->pusher);
	keeper__free(d->flight);
	windows__free(d->windows);
	triggers__free(d->triggers);
	recordings__free(d->recordings);
	loop__free(d->loop);
	if (d->state_lock >= 0)
		close(d->state_lock);
	if (d->opts != &d->first_opts) {
		daemon_opts_free(d->command, d->opts);
		free(d->opts);
	}
	daemon_opts_free(d->command, &d->first_opts);
}

static int run(const struct command *self, int argc, char **argv)
{
	struct daemon d = {.command = self, .argc = argc, .argv = argv, .state_lock = -1};
	int code = daemon_opts_parse(self, argc, argv, &d.first_opts), err;

	d.opts = &d.first_opts;
	if (code >= 0) {
		daemon_opts_free(self, &d.first_opts);
		return code;
	}
	if (geteuid()) {
		message_warn("run it as root", "the daemon records all processes: it is root's");
		daemon_opts_free(self, &d.first_opts);
		return EXIT_MACHINE;
	}
	log_begin();
	if (kprof_keep_to_recording())
		log_line("warning", "rights", NULL, "%s", kprof_error_cause());
	d.begun_ns = now_ns(CLOCK_MONOTONIC);
	d.begun_real_ns = now_ns(CLOCK_REALTIME);
	d.loop = loop__new();
	err = d.loop ? watch_signals(&d) : -ENOMEM;
	if (!err)
		err = begin(&d);
	if (!err) {
		message_redirect(to_log, NULL);
		log_line("info", "begun", NULL, "kprof %s listens at %s", kprof_version(),
			 d.opts->socket);
		tell_systemd(&d);
		sd_notify(0, "READY=1");
		while (!d.ending)
			loop__run_once(d.loop, TICK_MS);
		finish(&d);
	}
	free_parts(&d);
	return err ? EXIT_FAILED : EXIT_DONE;
}

const struct command cmd_daemon = {
	.name = "daemon",
	.arguments = "[OPTION…]",
	.summary = "record always, within a bound, and when asked",
	.options = daemon_options,
	.epilogue = "It stays in the foreground; its log goes to standard error. SIGHUP: reads its "
		    "options anew.\nSIGTERM ends it. docs/daemon.md\n",
	.run = run,
};
