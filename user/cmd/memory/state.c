// SPDX-License-Identifier: BSD-2-Clause
/* The folders of recordings of memory, one for each process, and what is asked there. */
#include "cmd/memory/memory.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEPT_STATES 16 /* of recordings that are over */

int memory_folder(pid_t pid, bool make, char path[KPROF_CONTROL_PATH_BYTES])
{
	char below[32] = "memory";

	if (pid)
		snprintf(below, sizeof(below), "memory/%d", (int)pid);
	return kprof_control_folder(below, make, path);
}

void memory_state(const char *folder, char path[MEMORY_PATH_BYTES])
{
	snprintf(path, MEMORY_PATH_BYTES, "%s/%s", folder, MEMORY_STATE);
}

int memory_lock(void)
{
	char path[KPROF_CONTROL_PATH_BYTES], lock[MEMORY_PATH_BYTES];
	int err = memory_folder(0, true, path), fd;

	if (err)
		return message_error();
	snprintf(lock, sizeof(lock), "%s/lock", path);
	fd = open(lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0 && !flock(fd, LOCK_EX))
		return fd;
	message_warn(NULL, "cannot lock %s: %s", lock, strerror(errno));
	if (fd >= 0)
		close(fd);
	return -EXIT_FAILED;
}

/* Removes files of the folder: all, or the unfinished ones. */
static void remove_files(const char *folder, bool all)
{
	DIR *d = opendir(folder);
	const struct dirent *e;

	while (d && (e = readdir(d)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") &&
		    (all || e->d_name[0] == '.'))
			unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
}

void memory_clean(const char *folder)
{
	remove_files(folder, false);
}

int memory_each(int (*fn)(void *ctx, pid_t pid, const char *folder), void *ctx)
{
	char path[KPROF_CONTROL_PATH_BYTES];
	const struct dirent *e;
	int err = memory_folder(0, false, path);
	DIR *d;

	if (err)
		return err == -ENOENT ? 0 : err;
	d = opendir(path);
	while (d && !err && (e = readdir(d))) {
		char folder[KPROF_CONTROL_PATH_BYTES];
		pid_t pid;

		if (value_pid(e->d_name, &pid) && !memory_folder(pid, false, folder))
			err = fn(ctx, pid, folder);
	}
	if (d)
		closedir(d);
	return err;
}

struct states {
	struct timespec newest[KEPT_STATES]; /* the oldest of these first */
	size_t nr;
	bool remove;
};

static bool is_before(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

static void note(struct states *s, struct timespec at)
{
	size_t i;

	if (s->nr == KEPT_STATES && is_before(&at, &s->newest[0]))
		return;
	if (s->nr == KEPT_STATES)
		memmove(s->newest, s->newest + 1, --s->nr * sizeof(at));
	for (i = s->nr++; i && is_before(&at, &s->newest[i - 1]); i--)
		s->newest[i] = s->newest[i - 1];
	s->newest[i] = at;
}

static int on_state(void *ctx, pid_t pid, const char *folder)
{
	struct states *s = ctx;
	char path[MEMORY_PATH_BYTES];
	struct stat st;

	(void)pid;
	memory_state(folder, path);
	if (kprof_control_wait(folder, 0))
		return 0;      /* it is being recorded */
	if (stat(path, &st)) { /* it never was, or its recorder was killed */
		if (s->remove) {
			remove_files(folder, true);
			rmdir(folder);
		}
	} else if (!s->remove) {
		note(s, st.st_mtim);
	} else if (s->nr == KEPT_STATES && is_before(&st.st_mtim, &s->newest[0])) {
		remove_files(folder, true);
		rmdir(folder);
	}
	return 0;
}

void memory_forget_old(void)
{
	struct states s = {0};
	int held = memory_lock();

	if (held < 0)
		return;
	if (!memory_each(on_state, &s)) {
		s.remove = true;
		memory_each(on_state, &s);
	}
	close(held);
}

int memory_ask(const char *folder, const char *what, int timeout_ms, cJSON **answer)
{
	const char *error, *hint;
	char question[64], *text;
	int err;

	snprintf(question, sizeof(question), "{\"do\":\"%s\"}", what);
	err = kprof_control_ask(folder, question, timeout_ms, &text);
	if (err == -ESRCH)
		return err;
	if (err) {
		message_error();
		return -EIO;
	}
	*answer = cJSON_Parse(text);
	free(text);
	if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(*answer, "ok")))
		return 0;
	error = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(*answer, "error"));
	hint = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(*answer, "hint"));
	message_warn(hint, "%s", error ? error : "the recording's answer is not understood");
	cJSON_Delete(*answer);
	return -EIO;
}
