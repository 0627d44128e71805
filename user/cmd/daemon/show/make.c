// SPDX-License-Identifier: BSD-2-Clause
/*
 * Inside a process of its own: makes a flame graph or a trace of a capture. Captures have what
 * targets chose, so they are read by nobody, who has been given a copy that nobody else can reach.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/daemon/show/serve.h"

#define NOBODY 65534
#define NICE 19
#define MOST_BYTES (1ll << 30)   /* of a capture that is read for the page */
#define LEAST_FREE (64ull << 20) /* of the disk, with the copy on it */
#define MOST_OUTPUT_BYTES (1ll << 30)
#define MOST_CPU_S 120

static int copy_all(int from, int to, off_t bytes)
{
	ssize_t n = 1;

	while (bytes > 0 && n > 0) {
		n = sendfile(to, from, NULL, (size_t)bytes);
		bytes -= n > 0 ? n : 0;
	}
	return n < 0 ? -errno : 0;
}

/* A file without a name, open for reading only. A descriptor or -errno. */
static int copy_of(const char *capture, const char *folder)
{
	char name[DAEMON_PATH_BYTES + 32];
	int from = open(capture, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), to, out = -1;
	struct stat st;
	int err;

	if (from < 0)
		return -errno;
	snprintf(name, sizeof(name), "%s/.copy.%d.tmp", folder, (int)getpid());
	unlink(name);
	to = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);
	err = to < 0 ? -errno : 0;
	if (!err && (fstat(from, &st) || !S_ISREG(st.st_mode)))
		err = -EINVAL;
	if (!err && st.st_size > MOST_BYTES)
		err = -EFBIG;
	if (!err && folder_free(folder) < (uint64_t)st.st_size + LEAST_FREE)
		err = -ENOSPC;
	if (!err)
		err = copy_all(from, to, st.st_size);
	if (!err && fchown(to, NOBODY, NOBODY))
		err = -errno;
	if (!err) {
		out = open(name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		err = out < 0 ? -errno : 0;
	}
	unlink(name);
	if (to >= 0)
		close(to);
	close(from);
	return err ? err : out;
}

int reader_begin(int fd, const char *capture, const char *folder, const char *output, char *path,
		 size_t bytes)
{
	const struct rlimit cpu = {MOST_CPU_S, MOST_CPU_S};
	const struct rlimit size = {MOST_OUTPUT_BYTES, MOST_OUTPUT_BYTES};
	pid_t daemon = getppid();
	int copy, err;

	setpriority(PRIO_PROCESS, 0, NICE);
	/* it is not to outlive the daemon, nor to go on for ever */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	copy = copy_of(capture, folder);
	if (copy < 0) {
		link_fail_for(fd, strerror(-copy), NULL);
		return copy;
	}
	setrlimit(RLIMIT_CPU, &cpu);
	setrlimit(RLIMIT_FSIZE, &size);
	snprintf(path, bytes, "/proc/self/fd/%d", copy);
	err = kprof_give_up_root(path, output, (uint32_t)-1, (uint32_t)-1, true);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* whoever becomes another user is asked anew */
	if (err)
		link_fail(fd);
	return err || getppid() == daemon ? err : -ESRCH;
}

int make_run(int fd, void *arg)
{
	const struct make_job *job = arg;
	struct kprof_export_opts opts = {.sz = sizeof(opts), .path = job->output};
	struct kprof_capture *c;
	char path[32];
	int err;

	link_log(fd);
	if (reader_begin(fd, job->capture, job->folder, job->output, path, sizeof(path)))
		return EXIT_FAILED;
	err = kprof_capture_open(path, &c);
	if (!err)
		err = kprof_capture_export(c, &opts);
	if (err)
		link_fail(fd);
	return err ? EXIT_FAILED : EXIT_DONE;
}
