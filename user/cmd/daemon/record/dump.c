// SPDX-License-Identifier: BSD-2-Clause
/*
 * Inside a process of its own: what the flight recorder has of the last seconds becomes one
 * capture. Recording goes on meanwhile.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cmd/daemon/daemon.h"
#include "cmd/print/text.h"
#include "kprof/chunks.h"

struct dump {
	const struct demand_job *job;
	int fd;
	char **paths;
	size_t nr;
	uint64_t bytes; /* of those that were stored in the time that is asked for */
	bool cancel;
};

static int fail(const struct dump *d, const char *hint, const char *error)
{
	cJSON *m = cJSON_CreateObject();

	cJSON_AddStringToObject(m, "state", "failed");
	cJSON_AddStringToObject(m, "error", error);
	if (hint)
		cJSON_AddStringToObject(m, "hint", hint);
	link_send(d->fd, m);
	return -ENOENT;
}

static void send_state(const struct dump *d, const char *state, const struct kprof_join_info *info)
{
	cJSON *m = cJSON_CreateObject();

	cJSON_AddStringToObject(m, "state", state);
	cJSON_AddStringToObject(m, "path", d->job->path);
	if (info) {
		cJSON_AddNumberToObject(m, "events", 0);
		cJSON_AddNumberToObject(m, "elapsed_ns",
					(double)(info->end_mono_ns - info->start_mono_ns));
		cJSON_AddNumberToObject(m, "chunks", (double)info->joined);
		cJSON_AddNumberToObject(m, "missing", (double)info->missing);
		if (info->gone)
			cJSON_AddNumberToObject(m, "gone", (double)info->gone);
	}
	link_send(d->fd, m);
}

/* Of the capture that is made. */
static const char *folder_of(const struct dump *d)
{
	static char folder[DAEMON_PATH_BYTES];
	const char *slash = strrchr(d->job->path, '/');

	snprintf(folder, sizeof(folder), "%.*s", (int)(slash - d->job->path), d->job->path);
	return folder;
}

static void count(struct dump *d, const char *path)
{
	uint64_t last_ns = d->job->last_ns, now = now_ns(CLOCK_REALTIME);
	struct stat st;

	if (!stat(path, &st) &&
	    (!last_ns || (uint64_t)st.st_mtim.tv_sec * 1000000000 + last_ns >= now))
		d->bytes += folder_bytes(&st);
}

/* The captures of the folder, of before the request. */
static int find(struct dump *d)
{
	char **names;
	size_t nr;
	int err = folder_list(d->job->dump_folder, &names, &nr);

	if (err)
		return fail(d, NULL, strerror(-err));
	d->paths = calloc(nr ? nr : 1, sizeof(*d->paths));
	for (size_t i = 0; i < nr && d->paths; i++)
		if (asprintf(&d->paths[d->nr], "%s/%s", d->job->dump_folder, names[i]) >= 0)
			count(d, d->paths[d->nr++]);
	folder_list_free(names, nr);
	if (d->nr)
		return 0;
	return fail(d, "it has some once it has recorded for some seconds",
		    "the flight recorder has no capture yet");
}

/* It takes no more than these do together. Nothing else is to give way to it. */
static int check_room(const struct dump *d)
{
	char bytes[TEXT_NUMBER_BYTES], there[TEXT_NUMBER_BYTES], least[TEXT_NUMBER_BYTES];
	uint64_t free_bytes = folder_free(folder_of(d)), min_free = d->job->min_free;
	char error[256];

	if (free_bytes >= min_free && free_bytes - min_free >= d->bytes)
		return 0;
	snprintf(error, sizeof(error),
		 "there is no room for a dump of up to %s: the disk has %s left, and %s are to "
		 "stay free (min-free)",
		 text_bytes(bytes, d->bytes), text_bytes(there, free_bytes),
		 text_bytes(least, min_free));
	return fail(d, "free some of the disk, or ask for less of it (--last)", error);
}

static int go_on(void *ctx, size_t done, size_t total)
{
	struct dump *d = ctx;
	bool closed = false;
	cJSON *m = link_take(d->fd, 0, &closed);
	const char *what = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(m, "do"));

	(void)done;
	(void)total;
	d->cancel |= closed || (what && strcmp(what, "start") != 0);
	cJSON_Delete(m);
	return d->cancel;
}

static void free_paths(struct dump *d)
{
	while (d->nr)
		free(d->paths[--d->nr]);
	free(d->paths);
}

int dump_run(int fd, void *job)
{
	struct dump d = {.job = job, .fd = fd};
	struct kprof_join_info info = {0};
	struct kprof_join_opts opts = {
		.sz = sizeof(opts),
		.output = d.job->path,
		.uid = d.job->uid,
		.gid = d.job->gid,
		.set_owner = true,
		.skip_gone = true, /* when the disk is full, what is oldest goes at any time */
		.progress = go_on,
		.ctx = &d,
	};
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	int err;

	link_log(fd);
	setpriority(PRIO_PROCESS, 0, 10); /* what is recorded goes on */
	if (d.job->last_ns && d.job->last_ns < now)
		opts.from_mono_ns = now - d.job->last_ns;
	send_state(&d, "preparing", NULL);
	err = find(&d);
	if (!err)
		err = check_room(&d);
	if (err) {
		free_paths(&d);
		return EXIT_FAILED;
	}
	send_state(&d, "recording", NULL);
	/* captures have what targets chose: they are not read with root's rights */
	err = kprof_keep_to_folders(d.job->dump_folder, folder_of(&d), d.job->uid != 0);
	if (!err)
		err = kprof_join((const char *const *)d.paths, d.nr, &opts, &info);
	if (!err)
		send_state(&d, "done", &info);
	else if (d.cancel)
		send_state(&d, "cancelled", NULL);
	else
		link_fail(fd);
	free_paths(&d);
	return err ? EXIT_FAILED : EXIT_DONE;
}
