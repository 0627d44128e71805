// SPDX-License-Identifier: BSD-2-Clause
/*
 * The queue: a folder, in it a folder for each capture (TIME-HASH: when it was put there, Unix time
 * in ms, and which one it is), in that two files for each request, NUMBER.head and NUMBER.body. An
 * entry is written under a name that begins with a dot, and then renamed: it is there whole, or not
 * at all. Whatever else lies in the folder is left alone.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "push/impl.h"
#include "util/error.h"
#include "util/util.h"

#define NEW_PREFIX ".new-"
#define LOCK "lock"
#define TIME_DIGITS 13
#define HASH_DIGITS 16
#define MAX_ITEMS 1000000
#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static int no_memory(void)
{
	return error_set(-ENOMEM, NULL, "no memory for a queue");
}

/* ---- names ---- */

static bool is_entry(const char *name)
{
	return strspn(name, "0123456789") == TIME_DIGITS && name[TIME_DIGITS] == '-' &&
	       strspn(name + TIME_DIGITS + 1, "0123456789abcdef") == HASH_DIGITS &&
	       !name[TIME_DIGITS + 1 + HASH_DIGITS];
}

/* "12.head": the length of the number; 0: it is no head's name. */
static size_t head_number(const char *name)
{
	size_t digits = strspn(name, "0123456789");

	return digits && digits < 12 && !strcmp(name + digits, PUSH_HEAD_SUFFIX) ? digits : 0;
}

static void file_name(const struct push_item *item, const char *suffix, char out[128])
{
	snprintf(out, 128, "%s/%s%s", item->entry, item->name, suffix);
}

static int by_age(const void *a, const void *b)
{
	const struct push_item *x = a, *y = b;
	int order = strcmp(x->entry, y->entry);

	return order ? order : strverscmp(x->name, y->name);
}

/* ---- folders ---- */

/* Calls fn for each name in a folder but "." and "..". */
static int each_name(int at, const char *folder, int (*fn)(void *ctx, const char *name), void *ctx)
{
	int fd = openat(at, folder, FOLDER_FLAGS), err = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *d;

	if (!dir) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	while (!err && (d = readdir(dir)))
		if (strcmp(d->d_name, ".") && strcmp(d->d_name, ".."))
			err = fn(ctx, d->d_name);
	closedir(dir);
	return err;
}

struct removal {
	int at;
	const char *folder;
};

static int remove_file(void *ctx, const char *name)
{
	const struct removal *r = ctx;
	int fd = openat(r->at, r->folder, FOLDER_FLAGS);

	if (fd >= 0) {
		unlinkat(fd, name, 0);
		close(fd);
	}
	return 0;
}

/* With its files; folders in it would stay, of which kprof makes none. */
static void remove_folder(int at, const char *folder)
{
	struct removal r = {at, folder};

	each_name(at, folder, remove_file, &r);
	unlinkat(at, folder, AT_REMOVEDIR);
}

/* ---- what is there ---- */

struct reading {
	struct push_queue *q;
	const char *entry;
};

static int add_item(struct push_queue *q, const char *entry, const char *name, size_t len)
{
	struct push_item *item;
	struct stat head, body;
	char path[128];

	if (q->nr == MAX_ITEMS)
		return 0;
	if (vec_grow((void **)&q->items, &q->cap, q->nr, sizeof(*q->items)))
		return no_memory();
	item = &q->items[q->nr];
	*item = (struct push_item){.real_ns = strtoull(entry, NULL, 10) * NSEC_PER_MSEC};
	snprintf(item->entry, sizeof(item->entry), "%s", entry);
	snprintf(item->name, sizeof(item->name), "%.*s", (int)len, name);
	file_name(item, PUSH_HEAD_SUFFIX, path);
	if (fstatat(q->fd, path, &head, AT_SYMLINK_NOFOLLOW))
		return 0;
	file_name(item, PUSH_BODY_SUFFIX, path);
	if (fstatat(q->fd, path, &body, AT_SYMLINK_NOFOLLOW))
		body.st_size = 0; /* reading it will fail, and be counted */
	item->bytes = (uint64_t)(head.st_size + body.st_size);
	q->bytes += item->bytes;
	q->nr++;
	return 0;
}

static int on_file(void *ctx, const char *name)
{
	const struct reading *r = ctx;
	size_t len = head_number(name);

	return len ? add_item(r->q, r->entry, name, len) : 0;
}

static int on_entry(void *ctx, const char *name)
{
	struct push_queue *q = ctx;
	struct reading r = {q, name};
	size_t before = q->nr;
	int err;

	if (!strncmp(name, NEW_PREFIX, strlen(NEW_PREFIX)))
		remove_folder(q->fd, name); /* who was writing it was killed */
	if (!is_entry(name))
		return 0;
	err = each_name(q->fd, name, on_file, &r);
	if (err == -ENOMEM)
		return err;
	if (q->nr == before)
		remove_folder(q->fd, name); /* all of it was sent */
	return 0;
}

/* ---- opening ---- */

static int make_folder(struct push_queue *q)
{
	const char *tmp = getenv("TMPDIR");

	if (q->path)
		return mkdir(q->path, 0700) && errno != EEXIST
			       ? error_set(-errno, NULL, "cannot make %s: %s", q->path,
					   strerror(errno))
			       : 0;
	q->path = xasprintf("%s/kprof-push-XXXXXX", tmp && *tmp == '/' ? tmp : "/tmp");
	if (!q->path)
		return no_memory();
	if (!mkdtemp(q->path))
		return error_set(-errno, NULL, "cannot make a folder in /tmp: %s", strerror(errno));
	q->temporary = true;
	return 0;
}

/* Others could put requests into a folder that they can write to, or wait for names to replace. */
static int check_folder(const struct push_queue *q)
{
	struct stat st;

	if (fstat(q->fd, &st))
		return error_set(-errno, NULL, "%s: %s", q->path, strerror(errno));
	if (st.st_uid != geteuid() || st.st_mode & 022)
		return error_set_machine(-EPERM, "a folder of mode 0700, of the user who pushes",
					 "others can write to %s", q->path);
	return 0;
}

static int lock(const struct push_queue *q)
{
	int fd = openat(q->fd, LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return error_set(-errno, NULL, "cannot write to %s: %s", q->path, strerror(errno));
	/* The descriptor stays open, and the lock is held, as long as the process lives. */
	if (!flock(fd, LOCK_EX | LOCK_NB))
		return fd;
	close(fd);
	return error_set(-EBUSY, "each needs a queue of its own", "another pusher uses %s",
			 q->path);
}

int push_queue__open(struct push_queue *q)
{
	int err;

	if (q->fd >= 0)
		return 0;
	err = make_folder(q);
	if (err)
		return err;
	q->fd = open(q->path, FOLDER_FLAGS);
	if (q->fd < 0)
		return error_set(-errno, NULL, "cannot enter %s: %s", q->path, strerror(errno));
	err = check_folder(q);
	if (!err) {
		q->lock = lock(q);
		err = q->lock < 0 ? q->lock : 0;
	}
	if (!err)
		err = each_name(q->fd, ".", on_entry, q);
	if (err) {
		if (q->lock >= 0)
			close(q->lock);
		close(q->fd);
		q->fd = q->lock = -1;
		return err;
	}
	if (q->nr)
		qsort(q->items, q->nr, sizeof(*q->items), by_age);
	return 0;
}

void push_queue__close(struct push_queue *q)
{
	if (q->fd >= 0 && q->temporary) {
		while (q->nr)
			push_queue__remove(q, &q->items[q->nr - 1]);
		unlinkat(q->fd, LOCK, 0);
	}
	if (q->fd >= 0) {
		close(q->lock);
		close(q->fd);
	}
	if (q->temporary)
		rmdir(q->path);
	free(q->path);
	free(q->items);
}

/* ---- entries ---- */

bool push_queue__has(const struct push_queue *q, const char *hash)
{
	for (size_t i = 0; i < q->nr; i++)
		if (!strcmp(q->items[i].entry + TIME_DIGITS + 1, hash))
			return true;
	return false;
}

int push_queue__begin(struct push_queue *q, char **path)
{
	char *made = xasprintf("%s/" NEW_PREFIX "XXXXXX", q->path);

	if (!made)
		return no_memory();
	if (!mkdtemp(made)) {
		free(made);
		return error_set(-errno, NULL, "cannot write to %s: %s", q->path, strerror(errno));
	}
	*path = made;
	return 0;
}

int push_queue__commit(struct push_queue *q, const char *path, const char *hash)
{
	char entry[TIME_DIGITS + 1 + HASH_DIGITS + 1];
	struct reading r = {q, entry};
	int err;

	snprintf(entry, sizeof(entry), "%0*llu-%s", TIME_DIGITS, clock_real_ns() / NSEC_PER_MSEC,
		 hash);
	if (renameat(q->fd, path_base(path), q->fd, entry))
		return error_set(-errno, NULL, "cannot write to %s: %s", q->path, strerror(errno));
	fsync(q->fd);
	err = each_name(q->fd, entry, on_file, &r);
	if (q->nr)
		qsort(q->items, q->nr, sizeof(*q->items), by_age);
	return err;
}

void push_queue__discard(struct push_queue *q, const char *path)
{
	remove_folder(q->fd, path_base(path));
}

/* ---- items ---- */

static struct push_item *find(struct push_queue *q, const struct push_item *like)
{
	for (size_t i = 0; like && i < q->nr; i++)
		if (!by_age(&q->items[i], like))
			return &q->items[i];
	return NULL;
}

void push_queue__remove(struct push_queue *q, const struct push_item *like)
{
	struct push_item *item = find(q, like);
	char path[128], entry[sizeof(item->entry)];

	if (!item)
		return;
	/* First the head: what has none is no request. */
	file_name(item, PUSH_HEAD_SUFFIX, path);
	unlinkat(q->fd, path, 0);
	file_name(item, PUSH_BODY_SUFFIX, path);
	unlinkat(q->fd, path, 0);
	snprintf(entry, sizeof(entry), "%s", item->entry);
	q->bytes -= item->bytes;
	q->nr--;
	memmove(item, item + 1, (size_t)(q->items + q->nr - item) * sizeof(*item));
	unlinkat(q->fd, entry, AT_REMOVEDIR); /* fails as long as there are others in it */
}

static void drop(struct push_queue *q, size_t i, enum kprof_push_drop why)
{
	q->dropped[why]++;
	push_queue__remove(q, &q->items[i]);
}

void push_queue__trim(struct push_queue *q, uint64_t now_real_ns, const struct push_item *keep)
{
	for (size_t i = 0; i < q->nr;) {
		const struct push_item *item = &q->items[i];
		bool old =
			now_real_ns > item->real_ns && now_real_ns - item->real_ns > q->most_age_ns;

		if ((!old && q->bytes <= q->most_bytes) || (keep && !by_age(item, keep)))
			i++;
		else
			drop(q, i, old ? KPROF_PUSH_TOO_OLD : KPROF_PUSH_NO_ROOM);
	}
}

struct push_item *push_queue__next(struct push_queue *q)
{
	for (size_t i = 0; i < q->nr; i++)
		if (!q->items[i].tried)
			return &q->items[i];
	for (size_t i = 0; i < q->nr; i++)
		q->items[i].tried = false;
	return q->nr ? &q->items[0] : NULL;
}

void push_queue__failed(struct push_queue *q, const struct push_item *item)
{
	struct push_item *of = find(q, item);

	if (of)
		of->tried = true;
}

static int open_file(const struct push_queue *q, const struct push_item *item, const char *suffix,
		     uint64_t *bytes)
{
	char path[128];
	struct stat st;
	int fd;

	file_name(item, suffix, path);
	fd = openat(q->fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode)) {
		*bytes = (uint64_t)st.st_size;
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return -EBADMSG;
}

int push_queue__read(const struct push_queue *q, const struct push_item *item, char **head,
		     int *body, uint64_t *body_bytes)
{
	uint64_t bytes;
	int fd = open_file(q, item, PUSH_HEAD_SUFFIX, &bytes), err;

	if (fd < 0)
		return fd;
	err = read_fd(fd, PUSH_HEAD_BYTES * 2, head, NULL);
	close(fd);
	if (err)
		return -EBADMSG;
	*body = open_file(q, item, PUSH_BODY_SUFFIX, body_bytes);
	if (*body >= 0 && *body_bytes)
		return 0;
	if (*body >= 0)
		close(*body);
	free(*head);
	return -EBADMSG;
}
