// SPDX-License-Identifier: BSD-2-Clause
/*
 * Inside the process of a recording: writes a trace where whoever asked said. The capture is read
 * by a process that is the asker's user, in a folder of that user's; the file then gets its place
 * by a way that leads through no link and replaces nothing.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/daemon/daemon.h"
#include "kprof/dynolog.h"

#define SEND_BYTES (1 << 24)
#define MOST_DEEP 100 /* of folders in folders */

/* Of the file that is made first: by it the format is known. */
static const char *suffix_of(const struct demand_job *job)
{
	size_t len = strlen(job->trace_path);

	if (job->alive)
		return ".pickle";
	return len > 3 && !strcmp(job->trace_path + len - 3, ".gz") ? ".json.gz" : ".json";
}

/* In a process of its own, which becomes the user for good. */
static int export_as_user(const struct demand_job *job, const char *capture, const char *out)
{
	struct kprof_export_opts opts = {.sz = sizeof(opts), .path = out};
	struct kprof_capture *c;

	if (kprof_give_up_root(capture, out, job->uid, job->gid, false) ||
	    kprof_capture_open(capture, &c))
		return EXIT_FAILED;
	return kprof_capture_export(c, &opts) ? EXIT_FAILED : EXIT_DONE;
}

static int make_trace(const struct demand_job *job, const char *capture, const char *out)
{
	pid_t child = fork();
	int status = -1;

	if (!child)
		_exit(export_as_user(job, capture, out));
	if (child < 0)
		return -errno;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return status ? -EIO : 0;
}

static int copy(int from, int to)
{
	ssize_t n;

	do
		n = sendfile(to, from, NULL, SEND_BYTES);
	while (n > 0);
	return n < 0 ? -errno : 0;
}

static int place(const struct demand_job *job, const char *made)
{
	int from = open(made, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), to, err;
	struct stat st;

	if (from < 0)
		return -errno;
	if (fstat(from, &st) || !S_ISREG(st.st_mode)) {
		close(from);
		return -EINVAL;
	}
	to = kprof_dynolog_create(job->trace_path, job->trace_folders, job->nr_trace_folders,
				  job->uid, job->gid);
	err = to < 0 ? to : copy(from, to);
	if (!err)
		err = kprof_dynolog_publish(to, job->trace_path, job->trace_folders,
					    job->nr_trace_folders, job->uid, job->gid);
	if (to >= 0)
		close(to);
	close(from);
	return err;
}

/*
 * Removes a folder that was the user's, whatever is in it: root's from here on, and then, whoever
 * the user has let write to it, it gets nothing more.
 */
static void clear(int at, const char *name, int depth)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	bool ours = fd >= 0 && !fchown(fd, 0, 0) && !fchmod(fd, 0700);
	DIR *d = ours && depth ? fdopendir(fd) : NULL;
	const struct dirent *e;

	while (d && (e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
		    unlinkat(fd, e->d_name, 0))
			clear(fd, e->d_name, depth - 1);
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
	unlinkat(at, name, AT_REMOVEDIR);
}

int trace_write(const struct demand_job *job, const char *capture)
{
	char folder[DAEMON_PATH_BYTES + 64], made[sizeof(folder) + 32];
	int err = 0;

	snprintf(folder, sizeof(folder), "%.*s.making", (int)sizeof(folder) - 16, capture);
	snprintf(made, sizeof(made), "%s/trace%s", folder, suffix_of(job));
	if (mkdir(folder, 0700) || chown(folder, job->uid, job->gid))
		err = -errno;
	if (!err)
		err = make_trace(job, capture, made);
	if (!err)
		err = place(job, made);
	clear(AT_FDCWD, folder, MOST_DEEP);
	return err;
}
