// SPDX-License-Identifier: BSD-2-Clause
/*
 * Output files. Everything is done relative to a descriptor of the directory, so that a path that
 * is changed meanwhile cannot redirect what is written to a directory that was not checked.
 */
#include "util/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/error.h"
#include "util/util.h"

#define TEMP_RANDOM 6 /* characters */
#define TEMP_TRIES 100

struct outfile {
	int fd, dir_fd;
	char *path, *dir; /* the path as given; its directory */
	const char *name; /* last part of path */
	char *temp_name;  /* NULL: there is no temporary file */
	char *temp_path;
	struct outfile_opts opts;
};

static int no_memory(const char *path)
{
	error_set(-ENOMEM, NULL, "no memory to open %s", path);
	return -ENOMEM;
}

static const char *write_hint(int err)
{
	switch (err) {
	case ENOSPC:
		return "make room on that filesystem, or write to another one with -o";
	case EDQUOT:
		return "your disk quota is used up: make room, or write elsewhere with -o";
	case EFBIG:
		return "raise the limit on file sizes (ulimit -f), or record for a shorter time";
	case EPIPE:
		return "whatever reads this output has gone away";
	case EIO:
		return "check that disk (dmesg), or write to another one with -o";
	default:
		return NULL;
	}
}

/* ---- checks of the path ---- */

static int split(struct outfile *f)
{
	const char *slash = strrchr(f->path, '/');

	f->name = slash ? slash + 1 : f->path;
	f->dir = !slash             ? strdup(".")
		 : slash == f->path ? strdup("/")
				    : strndup(f->path, (size_t)(slash - f->path));
	if (!f->dir)
		return no_memory(f->path);
	if (!*f->name || !strcmp(f->name, ".") || !strcmp(f->name, ".."))
		return error_set(-EISDIR, "give the name of a file in it",
				 "\"%s\" is not the name of a file", f->path);
	return 0;
}

static int open_dir(struct outfile *f)
{
	f->dir_fd = open(f->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (f->dir_fd >= 0)
		return 0;
	switch (errno) {
	case ENOENT:
		return error_set(-ENOENT, "create it first (mkdir -p), or choose another with -o",
				 "cannot write %s: there is no directory %s", f->path, f->dir);
	case ENOTDIR:
		return error_set(-ENOTDIR, "choose another place with -o",
				 "cannot write %s: %s is not a directory", f->path, f->dir);
	default:
		return error_set(-errno, "choose another place with -o",
				 "cannot write %s: cannot enter directory %s: %s", f->path, f->dir,
				 strerror(errno));
	}
}

/*
 * Whether we trust a user not to attack us: ourselves, root (who can do anything already), or the
 * user that we work for under sudo.
 */
static bool trusted(const struct outfile *f, uid_t uid)
{
	return uid == 0 || uid == geteuid() || (f->opts.set_owner && uid == f->opts.uid);
}

static int refuse_symlink(const struct outfile *f, const char *why)
{
	return error_set(-ELOOP, "remove the link, or choose another name with -o",
			 "will not write %s: it is a symbolic link, and %s", f->path, why);
}

/*
 * Refuses a symbolic link that another user may have put there. One in a safe directory is
 * replaced, and not followed.
 */
static int check_symlink(const struct outfile *f, const struct stat *dir)
{
	if (dir->st_mode & S_IWOTH)
		return refuse_symlink(f, "everybody may write to its directory");
	if (!trusted(f, dir->st_uid))
		return refuse_symlink(f, "its directory belongs to somebody else");
	return 0;
}

/* Opens a device or FIFO for writing: a file must not be renamed over /dev/null. */
static int open_directly(struct outfile *f, const struct stat *seen, int follow)
{
	struct stat st;

	if (S_ISFIFO(seen->st_mode) && !trusted(f, seen->st_uid))
		return error_set(-EPERM, "choose another name with -o",
				 "will not write %s: that FIFO belongs to somebody else", f->path);
	f->fd = openat(f->dir_fd, f->name, O_WRONLY | O_NOCTTY | O_CLOEXEC | follow);
	if (f->fd < 0)
		return error_set(-errno, "choose another name with -o", "cannot write to %s: %s",
				 f->path, strerror(errno));
	if (fstat(f->fd, &st) < 0 || st.st_dev != seen->st_dev || st.st_ino != seen->st_ino)
		return error_set(-EAGAIN, "try again, or choose another place with -o",
				 "%s changed while it was being opened", f->path);
	return 0;
}

static bool is_stream(const struct stat *st)
{
	return S_ISCHR(st->st_mode) || S_ISFIFO(st->st_mode);
}

/*
 * In a sticky directory only the owner of a file may replace it. This finds out at the beginning,
 * not after the recording.
 */
static int check_replace(const struct outfile *f, const struct stat *st, const struct stat *dir)
{
	if (!(dir->st_mode & S_ISVTX) || geteuid() == 0 || st->st_uid == geteuid() ||
	    dir->st_uid == geteuid())
		return 0;
	return error_set(-EPERM, "choose another name with -o",
			 "cannot replace %s: it belongs to somebody else", f->path);
}

/* Checks what exists at the path. A device or FIFO is opened here (f->fd >= 0). */
static int check_existing(struct outfile *f)
{
	struct stat st, dir, target;
	int err;

	if (fstat(f->dir_fd, &dir) < 0)
		return error_set(-errno, NULL, "cannot examine %s: %s", f->dir, strerror(errno));
	if (fstatat(f->dir_fd, f->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0
				       : error_set(-errno, "choose another name with -o",
						   "cannot write %s: %s", f->path, strerror(errno));
	if (S_ISLNK(st.st_mode)) {
		err = check_symlink(f, &dir);
		if (err || fstatat(f->dir_fd, f->name, &target, 0) < 0 || !is_stream(&target))
			return err;
		return open_directly(f, &target, 0); /* /dev/stdout and similar links */
	}
	if (S_ISDIR(st.st_mode))
		return error_set(-EISDIR, "give the name of a file in it", "%s is a directory",
				 f->path);
	if (is_stream(&st))
		return open_directly(f, &st, O_NOFOLLOW);
	if (!S_ISREG(st.st_mode))
		return error_set(-EINVAL, "choose another name with -o",
				 "will not write %s: it is a %s", f->path,
				 S_ISBLK(st.st_mode) ? "block device" : "socket");
	return check_replace(f, &st, &dir);
}

/* ---- the temporary file ---- */

static int random_suffix(char to[TEMP_RANDOM])
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz012345";
	unsigned char bytes[TEMP_RANDOM];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return -errno;
	for (int i = 0; i < TEMP_RANDOM; i++)
		to[i] = letters[bytes[i] & 31];
	return 0;
}

static int temp_failed(const struct outfile *f, int err)
{
	const char *elsewhere = "choose another directory with -o";

	switch (err) {
	case EACCES:
	case EPERM:
		return error_set(-err, "choose a directory that you may write to with -o",
				 "cannot write %s: no permission to create files in %s", f->path,
				 f->dir);
	case EROFS:
		return error_set(-err, "choose a directory on another one with -o",
				 "cannot write %s: %s is on a read-only filesystem", f->path,
				 f->dir);
	default:
		return error_set(-err, write_hint(err) ? write_hint(err) : elsewhere,
				 "cannot write %s: cannot create a file in %s: %s", f->path, f->dir,
				 strerror(err));
	}
}

static int open_temp(struct outfile *f)
{
	char suffix[TEMP_RANDOM];
	/* The name is shortened if it would exceed NAME_MAX with what is added. */
	int keep = NAME_MAX - (int)sizeof("..tmp") - TEMP_RANDOM;

	for (int i = 0; i < TEMP_TRIES && f->fd < 0; i++) {
		if (random_suffix(suffix))
			return temp_failed(f, errno);
		free(f->temp_name);
		f->temp_name = xasprintf(".%.*s.%.*s.tmp", keep, f->name, TEMP_RANDOM, suffix);
		if (!f->temp_name)
			return no_memory(f->path);
		f->fd = openat(f->dir_fd, f->temp_name,
			       O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (f->fd < 0 && errno != EEXIST)
			break;
	}
	if (f->fd < 0) {
		int err = errno;

		/* the file of this name is not ours: outfile__discard() must not remove it */
		free(f->temp_name);
		f->temp_name = NULL;
		return temp_failed(f, err);
	}
	/*
	 * As long as the file is being written. One that nobody has locked is left over from a
	 * writer that was killed. Where the filesystem knows no locks, nothing is lost.
	 */
	flock(f->fd, LOCK_EX | LOCK_NB);
	f->temp_path = xasprintf("%s/%s", strcmp(f->dir, "/") ? f->dir : "", f->temp_name);
	return f->temp_path ? 0 : no_memory(f->path);
}

static void set_owner(struct outfile *f)
{
	fchmod(f->fd, 0600); /* independent of the umask */
	if (!f->opts.set_owner || fchown(f->fd, f->opts.uid, f->opts.gid) == 0)
		return;
	/*
	 * Some filesystems have no owners (vfat, some on the network). That is no reason to lose a
	 * recording.
	 */
	log_warn("chown it afterwards, if that filesystem can", "cannot give %s to user %u: %s",
		 f->path, f->opts.uid, strerror(errno));
}

/* ---- the interface ---- */

static void outfile__free(struct outfile *f)
{
	if (f->fd >= 0)
		close(f->fd);
	if (f->dir_fd >= 0)
		close(f->dir_fd);
	free(f->temp_name);
	free(f->temp_path);
	free(f->dir);
	free(f->path);
	free(f);
}

static int open_stdout(struct outfile *f)
{
	f->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
	if (f->fd < 0)
		return error_set(-errno, "give a file name with -o",
				 "cannot write to standard output: %s", strerror(errno));
	return 0;
}

static int open_path(struct outfile *f)
{
	int err = split(f);

	if (!err)
		err = open_dir(f);
	if (!err)
		err = check_existing(f);
	if (err || f->fd >= 0)
		return err;
	err = open_temp(f);
	if (!err)
		set_owner(f);
	return err;
}

int outfile__open(const char *path, const struct outfile_opts *opts, struct outfile **out)
{
	struct outfile *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return no_memory(path);
	f->fd = f->dir_fd = -1;
	if (opts)
		f->opts = *opts;
	f->path = strdup(path);
	if (!f->path)
		err = no_memory(path);
	else if (!strcmp(path, "-"))
		err = open_stdout(f);
	else
		err = open_path(f);
	if (err)
		outfile__discard(f);
	else
		*out = f;
	return err;
}

int outfile__fd(const struct outfile *f)
{
	return f->fd;
}

const char *outfile__temp_path(const struct outfile *f)
{
	return f->temp_path ? f->temp_path : f->path;
}

int outfile__write(struct outfile *f, const void *data, size_t bytes)
{
	const char *at = data;

	while (bytes) {
		ssize_t n = write(f->fd, at, bytes);

		if (n >= 0) {
			at += n;
			bytes -= (size_t)n;
			continue;
		}
		if (errno == EAGAIN) { /* a pipe that another process has made non-blocking */
			poll(&(struct pollfd){.fd = f->fd, .events = POLLOUT}, 1, -1);
			continue;
		}
		if (errno != EINTR)
			return error_set(-errno, write_hint(errno), "cannot write to %s: %s",
					 f->path, strerror(errno));
	}
	return 0;
}

int outfile__sync(struct outfile *f)
{
	/* EINVAL and the others mean that the output cannot be synchronized, such as a pipe. */
	if (fsync(f->fd) == 0 || errno == EINVAL || errno == EROFS || errno == ENOTSUP)
		return 0;
	return error_set(-errno, write_hint(errno), "cannot write %s to the disk: %s", f->path,
			 strerror(errno));
}

/* Some filesystems (NFS) report failed writes only at close(). */
static int close_fd(struct outfile *f)
{
	int fd = f->fd;

	f->fd = -1;
	if (close(fd) == 0 || errno == EINTR)
		return 0;
	return error_set(-errno, write_hint(errno), "cannot write to %s: %s", f->path,
			 strerror(errno));
}

static int rename_temp(struct outfile *f, bool sync)
{
	int fd;

	if (!f->temp_name)
		return 0;
	if (renameat(f->dir_fd, f->temp_name, f->dir_fd, f->name) < 0)
		return error_set(-errno, NULL, "cannot rename %s to %s: %s", f->temp_path, f->path,
				 strerror(errno));
	free(f->temp_name); /* the temporary file has its final name now */
	f->temp_name = NULL;
	if (!sync)
		return 0;
	/*
	 * Puts the directory entry on the disk, too. If that fails, the file is there nevertheless.
	 */
	fd = openat(f->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		fsync(fd);
		close(fd);
	}
	return 0;
}

/*
 * Both, in this order. Another descriptor has the file open meanwhile: one of this name that nobody
 * has open is taken for left over, by the daemon, and removed.
 */
static int close_and_rename(struct outfile *f, bool anyway, bool sync)
{
	int open_fd = f->temp_name ? fcntl(f->fd, F_DUPFD_CLOEXEC, 0) : -1;
	int err = close_fd(f), rename_err = 0;

	if (!err || anyway)
		rename_err = rename_temp(f, sync);
	if (open_fd >= 0)
		close(open_fd);
	return err ? err : rename_err;
}

int outfile__commit(struct outfile *f)
{
	int err = outfile__sync(f);

	if (!err)
		err = close_and_rename(f, false, true);
	outfile__discard(f);
	return err;
}

int outfile__keep(struct outfile *f)
{
	int err = close_and_rename(f, true, true);

	outfile__free(f);
	return err;
}

int outfile__keep_soon(struct outfile *f)
{
	int err;

	sync_file_range(f->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
	err = close_and_rename(f, true, false);
	outfile__free(f);
	return err;
}

void outfile__discard(struct outfile *f)
{
	if (!f)
		return;
	if (f->temp_name)
		unlinkat(f->dir_fd, f->temp_name, 0);
	outfile__free(f);
}
