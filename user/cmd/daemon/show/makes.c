// SPDX-License-Identifier: BSD-2-Clause
/*
 * Flame graphs and traces, made one at a time by processes of their own when somebody asks for
 * them, and kept as root's files in a small folder.
 */
#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/daemon/show/serve.h"

#define NOBODY 65534
#define MOST_WAITING 16
#define MOST_FILES 16
#define MOST_BYTES (512ll << 20) /* of all that is kept */
#define TOO_LONG_NS (180 * 1000000000ull)
#define NAME_BYTES (RECORDING_ID_BYTES + 32)
#define PATH_BYTES (DAEMON_PATH_BYTES + NAME_BYTES)

struct wanted {
	char name[NAME_BYTES];
	char capture[DAEMON_PATH_BYTES + RECORDING_ID_BYTES + 32];
};

struct makes {
	struct makes_opts opts;
	struct child child;
	struct make_job job;
	struct wanted now, waiting[MOST_WAITING];
	size_t nr_waiting;
	uint64_t begun_ns;
	char error[256];
};

static void path_of(const struct makes *m, const char *name, char path[PATH_BYTES])
{
	snprintf(path, PATH_BYTES, "%s/%s", m->opts.folder, name);
}

/* ---- the folder ---- */

/* Removes what was made longest ago; all: also the rest, and what is unfinished. */
static void trim(const struct makes *m, bool all)
{
	for (;;) {
		char oldest[NAME_BYTES] = "";
		struct timespec oldest_at = {0};
		const struct dirent *e;
		long long bytes = 0;
		struct stat st;
		int nr = 0;
		DIR *d = opendir(m->opts.folder);

		while (d && (e = readdir(d))) {
			if ((e->d_name[0] == '.' && !all) ||
			    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
			    !S_ISREG(st.st_mode))
				continue;
			nr++;
			bytes += st.st_size;
			if (strlen(e->d_name) < sizeof(oldest) &&
			    (!*oldest || st.st_mtim.tv_sec < oldest_at.tv_sec ||
			     (st.st_mtim.tv_sec == oldest_at.tv_sec &&
			      st.st_mtim.tv_nsec < oldest_at.tv_nsec))) {
				strcpy(oldest, e->d_name);
				oldest_at = st.st_mtim;
			}
		}
		if (*oldest && (all || nr > MOST_FILES || bytes > MOST_BYTES))
			unlinkat(dirfd(d), oldest, 0);
		else
			*oldest = '\0';
		if (d)
			closedir(d);
		if (!*oldest)
			return;
	}
}

int makes__open(struct makes *m, const char *name)
{
	char path[PATH_BYTES];
	int fd;

	path_of(m, name, path);
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/*
 * The folder that was nobody's is root's again, which then needs no right to change what is
 * others'. Who made it, in root's own folder, was this daemon, or one before.
 */
static void take_making(const struct makes *m)
{
	if (!lchown(m->job.making, 0, 0))
		chmod(m->job.making, 0700);
}

/* Makes what nobody has written root's, under its name. */
static int publish(struct makes *m)
{
	char path[PATH_BYTES];
	int fd = open(m->job.output, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), err = 0;
	struct stat st;

	if (fd < 0)
		return -errno;
	path_of(m, m->now.name, path);
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_nlink != 1)
		err = -EINVAL;
	else if (fchown(fd, 0, 0) || fchmod(fd, 0600) || rename(m->job.output, path))
		err = -errno;
	if (!err)
		return fd;
	close(fd);
	return err;
}

/* Whatever is in the folder of what is made, and that itself. */
static void clear_making(const struct makes *m)
{
	DIR *d = opendir(m->job.making);
	const struct dirent *e;

	while (d && (e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
	rmdir(m->job.making);
}

/* ---- one after the other ---- */

static void on_message(void *ctx, const cJSON *message)
{
	struct makes *m = ctx;
	const char *error =
		cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(message, "error"));

	if (error)
		snprintf(m->error, sizeof(m->error), "%s", error);
}

static void begin(struct makes *m);

static void on_end(void *ctx, int status)
{
	struct makes *m = ctx;
	int fd;

	take_making(m);
	fd = status ? -EIO : publish(m);
	clear_making(m);
	if (fd < 0)
		log_line("warning", "make", NULL, "%s could not be made: %s", m->now.name,
			 *m->error ? m->error : strerror(-fd));
	trim(m, false);
	m->opts.made(m->opts.ctx, m->now.name, fd, m->error);
	if (fd >= 0)
		close(fd);
	begin(m);
}

static void begin(struct makes *m)
{
	const char *dot;
	int err = 0;

	if (m->child.pid || !m->nr_waiting)
		return;
	m->now = m->waiting[0];
	memmove(m->waiting, m->waiting + 1, --m->nr_waiting * sizeof(m->now));
	m->error[0] = '\0';
	m->begun_ns = now_ns(CLOCK_MONOTONIC);
	dot = strchr(m->now.name, '.');
	m->job.folder = m->opts.folder;
	snprintf(m->job.capture, sizeof(m->job.capture), "%s", m->now.capture);
	snprintf(m->job.making, sizeof(m->job.making), "%.*s/making", DAEMON_PATH_BYTES - 16,
		 m->opts.folder);
	snprintf(m->job.output, sizeof(m->job.output), "%s/made%s", m->job.making, dot ? dot : "");
	take_making(m);
	clear_making(m);
	if (mkdir(m->job.making, 0700) || chown(m->job.making, NOBODY, NOBODY))
		err = -errno;
	m->child = (struct child){
		.name = "kprof-make",
		.message = on_message,
		.ended = on_end,
		.ctx = m,
	};
	if (!err)
		err = child__start(m->opts.loop, &m->child, make_run, &m->job);
	if (err)
		m->opts.made(m->opts.ctx, m->now.name, err, strerror(-err));
}

int makes__want(struct makes *m, const char *name, const char *capture)
{
	struct wanted *w = &m->waiting[m->nr_waiting];

	if (m->child.pid && !strcmp(m->now.name, name))
		return 0;
	for (size_t i = 0; i < m->nr_waiting; i++)
		if (!strcmp(m->waiting[i].name, name))
			return 0;
	if (m->nr_waiting == MOST_WAITING)
		return -EBUSY;
	snprintf(w->name, sizeof(w->name), "%s", name);
	snprintf(w->capture, sizeof(w->capture), "%s", capture);
	m->nr_waiting++;
	begin(m);
	return 0;
}

void makes__tend(struct makes *m, uint64_t now)
{
	if (m->child.pid && now > m->begun_ns + TOO_LONG_NS)
		kill(m->child.pid, SIGKILL);
	begin(m); /* if one could not be begun */
}

int makes__new(const struct makes_opts *opts, struct makes **out)
{
	struct makes *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return -ENOMEM;
	m->opts = *opts;
	err = folder_make(opts->folder, 0711);
	if (err) {
		free(m);
		return err;
	}
	trim(m, true);
	*out = m;
	return 0;
}

void makes__free(struct makes *m)
{
	free(m);
}
