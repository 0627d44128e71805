// SPDX-License-Identifier: BSD-2-Clause
/* Folders of captures: what is in them, and how old and large it may become. */
#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "cmd/daemon/daemon.h"
#include "cmd/print/text.h"

#define SUFFIX ".kprof"
#define MOST_REMOVED 64      /* in one turn of the loop */
#define TURN_NS 100000000ull /* … and the time after which none follows: the disk may be slow */
#define SAY_NS 60000000000ull
#define UNFINISHED_NS \
	(3600ull * 1000000000) /* a hidden file that nobody has written to for so long */

static bool is_trusted(const struct stat *st)
{
	return !st->st_uid || st->st_uid == geteuid();
}

/* Whoever may rename a folder above could put another one there, also later. */
static int check_above(const char *path)
{
	char above[DAEMON_PATH_BYTES];
	struct stat st;

	for (const char *at = path; (at = strchr(at, '/')); at++) {
		snprintf(above, sizeof(above), "%.*s/", (int)(at - path), path);
		if (stat(above, &st))
			return -errno;
		if (!is_trusted(&st) || (st.st_mode & 022 && !(st.st_mode & S_ISVTX)))
			return -EPERM;
	}
	return 0;
}

int folder_make(const char *path, mode_t mode)
{
	int err = check_above(path);
	struct stat st;
	bool made = false;

	if (!err) {
		made = !mkdir(path, mode);
		err = made || errno == EEXIST ? 0 : -errno;
	}
	if (err)
		;
	else if (lstat(path, &st))
		err = -errno;
	else if (!S_ISDIR(st.st_mode))
		err = -ENOTDIR;
	else if (st.st_uid != geteuid() || st.st_mode & 022)
		err = -EPERM; /* others could put there what the daemon would then trust */
	else if (made && chmod(path, mode)) /* for the umask; one that was there is left as it is */
		err = -errno;
	if (err)
		log_line("error", "folder", NULL, "the folder %s cannot be used: %s", path,
			 err == -EPERM ? "it, or one above it, is another user's, or others may "
					 "write to it"
				       : strerror(-err));
	return err;
}

int folder_lock(const char *folder, const char *name)
{
	char path[DAEMON_PATH_BYTES + 32];
	int fd, err;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (!flock(fd, LOCK_EX | LOCK_NB))
		return fd;
	err = errno == EWOULDBLOCK ? -EBUSY : -errno;
	close(fd);
	return err;
}

static bool is_capture(const char *name)
{
	size_t len = strlen(name);

	return name[0] != '.' && len > strlen(SUFFIX) &&
	       !strcmp(name + len - strlen(SUFFIX), SUFFIX);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void folder_list_free(char **names, size_t nr)
{
	while (nr)
		free(names[--nr]);
	free(names);
}

int folder_list(const char *path, char ***names, size_t *nr)
{
	char **list = NULL, **longer;
	const struct dirent *e;
	size_t used = 0;
	DIR *d = opendir(path);

	if (!d)
		return -errno;
	while ((e = readdir(d))) {
		if (!is_capture(e->d_name))
			continue;
		longer = realloc(list, (used + 1) * sizeof(*list));
		if (longer) {
			list = longer;
			list[used] = strdup(e->d_name);
		}
		if (!longer || !list[used]) {
			closedir(d);
			folder_list_free(list, used);
			return -ENOMEM;
		}
		used++;
	}
	closedir(d);
	if (used)
		qsort(list, used, sizeof(*list), by_name); /* names begin with times */
	*names = list;
	*nr = used;
	return 0;
}

uint64_t folder_free(const char *path)
{
	struct statvfs v;

	return statvfs(path, &v) ? UINT64_MAX : (uint64_t)v.f_bavail * v.f_frsize;
}

/*
 * Whether nobody has the file open. Its age says little: a clock may step, and a recording that was
 * prepared waits for hours. Where the file system cannot tell, it does.
 */
static bool is_left(int dir, const char *name, uint64_t now_ns)
{
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	bool left = false;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
		left = false;
	else if (!fcntl(fd, F_SETLEASE, F_WRLCK)) /* which only who has it alone may have */
		left = true;
	else if (errno != EAGAIN)
		left = (uint64_t)st.st_mtim.tv_sec * 1000000000u + UNFINISHED_NS < now_ns;
	if (fd >= 0)
		close(fd);
	return left;
}

/* What a look joins is closed, and then opened to be read: it is left when its process is gone. */
static bool is_of_a_look(const char *name)
{
	int pid;

	return sscanf(name, ".look.%d.tmp", &pid) == 1 && pid > 0 &&
	       (!kill(pid, 0) || errno == EPERM);
}

/* What a recorder left that was killed: nobody writes to it any more. */
static void remove_unfinished(const char *path, uint64_t now_ns)
{
	const struct dirent *e;
	DIR *d = opendir(path);

	while (d && (e = readdir(d)))
		if (e->d_name[0] == '.' && strstr(e->d_name, ".tmp") && !is_of_a_look(e->d_name) &&
		    is_left(dirfd(d), e->d_name, now_ns))
			unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
}

/* Removes a capture, and what is known of it beside it. */
static bool remove_capture(int dir, const char *name)
{
	char beside[300];
	int len = (int)(strlen(name) - strlen(SUFFIX));

	if (snprintf(beside, sizeof(beside), "%.*s.json", len, name) < (int)sizeof(beside))
		unlinkat(dir, beside, 0);
	return !unlinkat(dir, name, 0);
}

/* Not what its size is said to be: the owner of a recording may have made a hole in it. */
uint64_t folder_bytes(const struct stat *st)
{
	return (uint64_t)st->st_blocks * 512;
}

/* The owner of a recording can give its file another time of change, but none in the future. */
static uint64_t written_ns(const struct stat *st)
{
	const struct timespec *at = st->st_uid ? &st->st_ctim : &st->st_mtim;

	return (uint64_t)at->tv_sec * 1000000000u;
}

bool folder_enough(uint64_t begun_ns, uint64_t removed)
{
	return removed >= MOST_REMOVED || (removed && now_ns(CLOCK_MONOTONIC) > begun_ns + TURN_NS);
}

/* ---- a shelf: how old captures are ---- */

struct shelved {
	char name[SHELF_NAME_BYTES];
	uint64_t at_ns; /* CLOCK_BOOTTIME: the other clock may be set meanwhile */
};

/* It is there, or belongs there. */
static const struct shelved *find_shelved(const struct shelf *s, const char *name, size_t *at)
{
	size_t low = 0, high = s ? s->nr : 0;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (strcmp(s->shelved[mid].name, name) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	*at = low;
	return s && low < s->nr && !strcmp(s->shelved[low].name, name) ? &s->shelved[low] : NULL;
}

void shelf__note(struct shelf *s, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	struct shelved new = {.at_ns = now_ns(CLOCK_BOOTTIME)};
	size_t at;

	if (strlen(name) >= sizeof(new.name) || find_shelved(s, name, &at))
		return;
	if (s->nr == s->cap) {
		size_t cap = s->cap ? 2 * s->cap : 64;
		struct shelved *more = realloc(s->shelved, cap * sizeof(*more));

		if (!more)
			return; /* the file's time says it */
		s->shelved = more;
		s->cap = cap;
	}
	memcpy(new.name, name, strlen(name));
	memmove(s->shelved + at + 1, s->shelved + at, (s->nr - at) * sizeof(new));
	s->shelved[at] = new;
	s->nr++;
}

void shelf__keep(struct shelf *s, char **names, size_t nr)
{
	size_t kept = 0;

	for (size_t i = 0; nr && i < s->nr; i++) {
		const char *name = s->shelved[i].name;

		if (bsearch(&name, names, nr, sizeof(*names), by_name))
			s->shelved[kept++] = s->shelved[i];
	}
	s->nr = kept;
}

bool shelf__has(const struct shelf *s, const char *name)
{
	size_t at;

	return find_shelved(s, name, &at);
}

const char *shelf__name(const struct shelf *s, size_t i)
{
	return s->shelved[i].name;
}

bool shelf__trim(struct shelf *s, const char *path, uint64_t keep_ns, uint64_t most_bytes,
		 uint64_t min_free)
{
	folder_trim(path, keep_ns, most_bytes, min_free, s, &s->sums);
	s->removed += s->sums.removed;
	s->removed_bytes += s->sums.removed_bytes;
	folder_say_want(&s->want, path, min_free, &s->sums);
	return s->sums.more;
}

void shelf__free(struct shelf *s)
{
	free(s->shelved);
	*s = (struct shelf){0};
}

/* ---- what goes ---- */

struct stored {
	const char *name;
	uint64_t bytes, age_ns;
	bool known; /* its age is, however the clock was set since */
};

/* Those of daemons before, then as old as they are. */
static int by_age(const void *a, const void *b)
{
	const struct stored *x = a, *y = b;

	if (x->known != y->known)
		return x->known ? 1 : -1;
	if (x->known && x->age_ns != y->age_ns)
		return x->age_ns < y->age_ns ? 1 : -1;
	return strcmp(x->name, y->name);
}

static bool look_at(int dir, const char *name, const struct shelf *shelf, struct stored *out)
{
	uint64_t now = now_ns(CLOCK_REALTIME), at_ns;
	const struct shelved *known;
	struct stat st;
	size_t at;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return false;
	at_ns = written_ns(&st);
	known = find_shelved(shelf, name, &at);
	*out = (struct stored){
		.name = name,
		.bytes = folder_bytes(&st),
		.age_ns = known         ? now_ns(CLOCK_BOOTTIME) - known->at_ns
			  : at_ns < now ? now - at_ns
					: 0,
		.known = known,
	};
	return true;
}

void folder_trim(const char *path, uint64_t keep_ns, uint64_t most_bytes, uint64_t min_free,
		 struct shelf *shelf, struct folder_sums *sums)
{
	uint64_t free_bytes = folder_free(path), begun = now_ns(CLOCK_MONOTONIC);
	struct stored *all = NULL;
	char **names = NULL;
	size_t nr = 0, found = 0;
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	*sums = (struct folder_sums){0};
	if (dir < 0 || folder_list(path, &names, &nr))
		goto out;
	if (shelf)
		shelf__keep(shelf, names, nr);
	all = calloc(nr ? nr : 1, sizeof(*all));
	if (!all)
		goto out;
	for (size_t i = 0; i < nr; i++)
		if (look_at(dir, names[i], shelf, &all[found]))
			sums->bytes += all[found++].bytes;
	sums->files = found;
	qsort(all, found, sizeof(*all), by_age);
	for (size_t i = 0; i < found; i++) {
		bool old = keep_ns && all[i].age_ns > keep_ns;
		bool wanted = !old && sums->bytes <= most_bytes;

		if (wanted && free_bytes >= min_free)
			continue;
		if (folder_enough(begun, sums->removed)) {
			sums->more = true;
			break;
		}
		if (!remove_capture(dir, all[i].name))
			continue;
		sums->files--;
		sums->bytes -= all[i].bytes;
		sums->removed++;
		sums->removed_bytes += all[i].bytes;
		sums->wanted += wanted;
		sums->wanted_bytes += wanted ? all[i].bytes : 0;
		free_bytes += free_bytes == UINT64_MAX ? 0 : all[i].bytes;
	}
	remove_unfinished(path, now_ns(CLOCK_REALTIME));
out:
	free(all);
	folder_list_free(names, nr);
	if (dir >= 0)
		close(dir);
}

void folder_say_want(struct folder_want *w, const char *path, uint64_t min_free,
		     const struct folder_sums *sums)
{
	char least[TEXT_NUMBER_BYTES], bytes[TEXT_NUMBER_BYTES];
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	cJSON *fields;

	w->files += sums->wanted;
	w->bytes += sums->wanted_bytes;
	if (!w->files || now < w->next_ns)
		return;
	fields = cJSON_CreateObject();
	cJSON_AddStringToObject(fields, "folder", path);
	cJSON_AddNumberToObject(fields, "files", (double)w->files);
	cJSON_AddNumberToObject(fields, "bytes", (double)w->bytes);
	cJSON_AddStringToObject(fields, "hint", "free some of the disk, or lower min-free");
	log_line("warning", "disk", fields,
		 "the disk had less than %s left (min-free): the oldest %" PRIu64
		 " captures of %s were removed, %s",
		 text_bytes(least, min_free), w->files, path, text_bytes(bytes, w->bytes));
	*w = (struct folder_want){.next_ns = now + SAY_NS};
}
