// SPDX-License-Identifier: BSD-2-Clause
/*
 * A recording that is read while it goes on. Its file, in a directory that nobody else can enter,
 * loses its name before anything is recorded: nothing of that is left whatever happens to this
 * process. If it is killed while the session is made, an empty recording is.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/live/impl.h"
#include "util/error.h"
#include "util/util.h"

/* The file is read as a whole each time, so it begins anew beyond these. */
#define MOST_AGE_NS (60 * NSEC_PER_SEC)
#define MOST_BYTES (16u << 20)

struct watched {
	pid_t pid;
	uint64_t start_ticks;
};

struct kprof_watch {
	struct kprof_watch_opts opts;
	struct watched *processes;
	size_t nr, cap;
	struct kprof_session *session;
	uint64_t begun_ns;
	int fd; /* of the session's file, for reading */
	char path[32];
};

/* ---- the file ---- */

/* Opens the only file of the directory, and removes its name and the directory. */
static int open_and_remove(const char *dir)
{
	DIR *d = opendir(dir);
	const struct dirent *e;
	int fd = -1;

	while (d && fd < 0 && (e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		fd = openat(dirfd(d), e->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		unlinkat(dirfd(d), e->d_name, 0);
	}
	if (d)
		closedir(d);
	rmdir(dir);
	return fd < 0 ? -ENOENT : fd;
}

/* A session whose file is in a directory of its own, both without a name. */
static int new_session(struct kprof_watch *w)
{
	static const char *const no_operator[] = {"kprof::none"};
	struct kprof_session_opts opts = {
		.sz = sizeof(opts),
		.children = KPROF_CHILDREN_NONE,
		.sample_hz = w->opts.what == KPROF_WATCH_STEPS ? 0 : w->opts.sample_hz,
		.samples_only = w->opts.what == KPROF_WATCH_SAMPLES,
		.agent = KPROF_AGENT_NONE,
	};
	const char *tmp = getenv("TMPDIR");
	char *dir = xasprintf("%s/kprof-top.XXXXXX", tmp && *tmp ? tmp : "/tmp"), *file = NULL;
	int err = 0;

	if (w->opts.what == KPROF_WATCH_STEPS) {
		opts.ops = no_operator;
		opts.nr_ops = ARRAY_SIZE(no_operator);
	}
	if (!dir)
		return error_set(-ENOMEM, NULL, "no memory for a recording");
	if (!mkdtemp(dir)) {
		err = error_set(-errno, "set TMPDIR to a directory with some room",
				"cannot make a directory for the recording: %s: %s", dir,
				strerror(errno));
		free(dir);
		return err;
	}
	file = xasprintf("%s/live", dir);
	opts.capture_path = file;
	err = file ? kprof_session_new(&opts, &w->session)
		   : error_set(-ENOMEM, NULL, "no memory for a recording");
	w->fd = open_and_remove(dir);
	if (!err && w->fd < 0)
		err = error_set(w->fd, NULL, "cannot read the recording in %s: %s", dir,
				strerror(-w->fd));
	snprintf(w->path, sizeof(w->path), "/proc/self/fd/%d", w->fd);
	free(file);
	free(dir);
	return err;
}

/* ---- the recording ---- */

static void end(struct kprof_watch *w)
{
	kprof_session_free(w->session);
	w->session = NULL;
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
}

static int remember(struct kprof_watch *w, pid_t pid, uint64_t start_ticks)
{
	if (vec_grow((void **)&w->processes, &w->cap, w->nr, sizeof(*w->processes)))
		return error_set(-ENOMEM, NULL, "no memory for a recording");
	w->processes[w->nr++] = (struct watched){pid, start_ticks};
	return 0;
}

/* Adds those that still are the processes that were meant. -ESRCH: there are none. */
static int add_processes(struct kprof_watch *w)
{
	size_t alive = 0, added = 0;
	int err = 0;

	for (size_t i = 0; i < w->nr; i++) {
		if (!proc_alive(w->processes[i].pid, w->processes[i].start_ticks))
			continue;
		w->processes[alive++] = w->processes[i];
		err = kprof_session_add_pid(w->session, w->processes[i].pid);
		added += !err;
	}
	w->nr = alive;
	if (added)
		return 0;
	return err ? err : error_set(-ESRCH, NULL, "the process has ended");
}

static int begin(struct kprof_watch *w)
{
	int err = new_session(w);

	if (!err)
		err = add_processes(w);
	if (!err)
		err = kprof_session_start(w->session);
	if (err)
		end(w);
	w->begun_ns = clock_mono_ns();
	return err;
}

int kprof_watch_new(const struct kprof_watch_opts *opts, struct kprof_watch **out)
{
	struct kprof_watch *w;
	int err = 0;

	error_clear();
	if (opts->sz != sizeof(*opts) || !opts->nr)
		return error_set_usage(-EINVAL, "set .sz, .pids and .nr",
				       "the options are not filled in");
	w = calloc(1, sizeof(*w));
	if (!w)
		return error_set(-ENOMEM, NULL, "no memory for a recording");
	w->opts = *opts;
	w->fd = -1;
	for (size_t i = 0; i < opts->nr && !err; i++)
		err = remember(w, opts->pids[i], opts->start_ticks[i]);
	if (!err)
		err = begin(w);
	if (err)
		kprof_watch_free(w);
	else
		*out = w;
	return err;
}

int kprof_watch_add(struct kprof_watch *w, pid_t pid, uint64_t start_ticks)
{
	int err;

	error_clear();
	err = remember(w, pid, start_ticks);
	if (err || !w->session || !proc_alive(pid, start_ticks))
		return err;
	/* what fails for the recording, not only for this process, the next poll says */
	err = kprof_session_add_pid(w->session, pid);
	return err == -ENOMEM ? err : 0;
}

/* Begins anew once the file is old or large. */
static int renew(struct kprof_watch *w)
{
	struct kprof_session_stats stats;

	kprof_session_stats(w->session, &stats);
	if (clock_mono_ns() - w->begun_ns < MOST_AGE_NS && stats.written_bytes < MOST_BYTES)
		return 0;
	end(w);
	return begin(w);
}

int kprof_watch_poll(struct kprof_watch *w, int timeout_ms)
{
	int err;

	error_clear();
	if (!w->session)
		return 1;
	err = renew(w);
	if (err)
		return err == -ESRCH ? 1 : err;
	return kprof_session_poll(w->session, timeout_ms);
}

int kprof_watch_read(struct kprof_watch *w, const char **path)
{
	int err;

	error_clear();
	if (!w->session)
		return error_set(-ESRCH, NULL, "the process has ended");
	err = kprof_session_checkpoint(w->session);
	*path = w->path;
	return err;
}

void kprof_watch_free(struct kprof_watch *w)
{
	if (!w)
		return;
	end(w);
	free(w->processes);
	free(w);
}
