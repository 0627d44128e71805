// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/record/unfinished.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cmd/print/message.h"
#include "cmd/print/text.h"

/* A directory is not worth more than this: of its entries, of files examined, of files named. */
#define MOST_ENTRIES 100000
#define MOST_EXAMINED 100
#define MOST_NAMED 3

/* As user/util/outfile.c names what it writes: .NAME.kprof.XXXXXX.tmp */
static bool is_temporary(const char *name)
{
	static const char infix[] = ".kprof.", suffix[] = ".tmp";
	size_t len = strlen(name), tail = strlen(".kprof.XXXXXX.tmp");

	return *name == '.' && len > tail && !strncmp(name + len - tail, infix, strlen(infix)) &&
	       !strcmp(name + len - strlen(suffix), suffix);
}

static bool is_own(int dir, const char *name, const struct caller *owner, struct stat *st)
{
	return !fstatat(dir, name, st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st->st_mode) &&
	       st->st_size &&
	       (st->st_uid == geteuid() || (owner->by_sudo && st->st_uid == owner->uid));
}

/* Whether no process is writing it: that would have locked it. */
static bool is_over(int dir, const char *name, const struct stat *seen)
{
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	bool over;

	if (fd < 0)
		return false;
	over = !fstat(fd, &st) && st.st_ino == seen->st_ino && st.st_dev == seen->st_dev &&
	       !flock(fd, LOCK_SH | LOCK_NB);
	close(fd);
	return over;
}

/* The path as a shell takes it; NULL: out of memory. */
static char *quoted(const char *dir, const char *name)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_./%+,:=@-";
	size_t len = strlen(dir) + strlen(name);
	char *out = malloc(4 * len + 3), *to = out;

	if (!out)
		return NULL;
	if (strspn(dir, plain) + strspn(name, plain) == len) {
		strcpy(stpcpy(out, dir), name);
		return out;
	}
	*to++ = '\'';
	for (int i = 0; i < 2; i++) {
		for (const char *at = i ? name : dir; *at; at++) {
			if (*at == '\'')
				to = stpcpy(to, "'\\''");
			else
				*to++ = *at;
		}
	}
	strcpy(to, "'");
	return out;
}

static void say(const char *dir, const char *name, const struct stat *st)
{
	char *path = quoted(dir, name), *hint = NULL;
	char size[TEXT_NUMBER_BYTES], when[32] = "?";
	struct tm tm;

	if (localtime_r(&st->st_mtime, &tm))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M", &tm);
	if (path && asprintf(&hint,
			     "kprof report %s shows what it has, kprof export %s -o FILE.json.gz "
			     "makes a trace of it; it stays until you delete it",
			     path, path) < 0)
		hint = NULL;
	message_warn(hint, "a recording that was killed has left %s%s (%s, written until %s)", dir,
		     name, text_bytes(size, (uint64_t)st->st_size), when);
	free(path);
	free(hint);
}

void unfinished_say(const char *path, const struct caller *owner)
{
	char *dir = strndup(path, (size_t)(text_base(path) - path));
	DIR *d = dir ? opendir(*dir ? dir : ".") : NULL;
	unsigned int examined = 0, named = 0, entries = 0;
	const struct dirent *e;
	struct stat st;

	while (d && entries++ < MOST_ENTRIES && examined < MOST_EXAMINED && (e = readdir(d))) {
		if (!is_temporary(e->d_name))
			continue;
		examined++;
		if (!is_own(dirfd(d), e->d_name, owner, &st) || !is_over(dirfd(d), e->d_name, &st))
			continue;
		if (named++ < MOST_NAMED)
			say(dir, e->d_name, &st);
	}
	if (named > MOST_NAMED)
		message_note("… and %u more such files", named - MOST_NAMED);
	if (d)
		closedir(d);
	free(dir);
}
