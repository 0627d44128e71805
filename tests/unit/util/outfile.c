// SPDX-License-Identifier: BSD-2-Clause
/* A file appears whole or not at all, is its owner's alone, and goes nowhere it was not sent. */
#include "util/outfile.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "store_fixture.h"

#define NOBODY 65534

static int open_path(const char *path, struct outfile **f)
{
	*f = NULL;
	return outfile__open(path, NULL, f);
}

/* Opens, expects this error, a cause that contains `words` and a hint. */
static void check_refused(const char *path, int want, const char *words)
{
	struct outfile *f;

	CHECK_EQ(open_path(path, &f), want);
	CHECK(strstr(kprof_error_cause(), words));
	CHECK(kprof_error_hint());
	if (!strstr(kprof_error_cause(), words))
		printf("# %s: %s\n", path, kprof_error_cause());
	outfile__discard(f);
}

static void check_content(const char *path, const char *want)
{
	size_t nr;
	uint8_t *bytes = slurp(path, &nr);

	CHECK_STR((char *)bytes, want);
	free(bytes);
}

/* Files in the scratch directory, dot files included. */
static int count_files(void)
{
	DIR *dir = opendir(scratch);
	int nr = 0;

	while (readdir(dir))
		nr++;
	closedir(dir);
	return nr - 2;
}

static int renamed_open, renamed;

/* In the place of libc's: who may have the file alone takes it for left over. */
int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	int fd = openat(from_dir, from, O_RDONLY | O_CLOEXEC);

	renamed++;
	renamed_open += fd >= 0 && fcntl(fd, F_SETLEASE, F_WRLCK) && errno == EAGAIN;
	close(fd);
	return (int)syscall(SYS_renameat, from_dir, from, to_dir, to);
}

static void somebody_has_it_open_until_it_has_its_name(void)
{
	struct outfile *f;

	renamed = renamed_open = 0;
	CHECK(!open_path(in_scratch("one"), &f) && !outfile__commit(f));
	CHECK(!open_path(in_scratch("two"), &f) && !outfile__keep(f));
	CHECK(!open_path(in_scratch("three"), &f) && !outfile__keep_soon(f));
	CHECK_EQ(renamed, 3);
	CHECK_EQ(renamed_open, 3);
	CHECK(!unlink(in_scratch("one")) && !unlink(in_scratch("two")) &&
	      !unlink(in_scratch("three")));
	CHECK_EQ(count_files(), 0);
}

static void appears_whole_at_commit(void)
{
	const char *path = in_scratch("out.json");
	struct outfile *f;
	struct stat st;
	mode_t mask = umask(0377); /* must not matter */

	CHECK_EQ(open_path(path, &f), 0);
	umask(mask);
	CHECK(stat(path, &st) < 0);
	CHECK(strstr(outfile__temp_path(f), "/.out.json."));
	CHECK_EQ(stat(outfile__temp_path(f), &st), 0);
	CHECK_EQ(st.st_mode & 07777, 0600);
	CHECK(fcntl(outfile__fd(f), F_GETFD) & FD_CLOEXEC);
	CHECK_EQ(outfile__write(f, "whole", 5), 0);
	CHECK(stat(path, &st) < 0);
	CHECK_EQ(outfile__commit(f), 0);
	check_content(path, "whole");
	CHECK_EQ(count_files(), 1);
	/* a second one replaces it, and only when it is whole */
	CHECK_EQ(open_path(path, &f), 0);
	CHECK_EQ(outfile__write(f, "again", 5), 0);
	check_content(path, "whole");
	CHECK_EQ(outfile__commit(f), 0);
	check_content(path, "again");
	unlink(path);
}

static void discard_leaves_nothing(void)
{
	struct outfile *f;

	CHECK_EQ(open_path(in_scratch("gone"), &f), 0);
	CHECK_EQ(outfile__write(f, "x", 1), 0);
	CHECK_EQ(count_files(), 1);
	outfile__discard(f);
	CHECK_EQ(count_files(), 0);
	outfile__discard(NULL);
}

static void failing_commit_removes_and_keep_keeps(void)
{
	const char *path = in_scratch("turned");
	struct outfile *f;
	int before = count_files();

	for (int keep = 0; keep < 2; keep++) {
		CHECK_EQ(open_path(path, &f), 0);
		CHECK_EQ(outfile__write(f, "x", 1), 0);
		CHECK_EQ(mkdir(path, 0700), 0); /* renaming over it fails */
		CHECK_EQ(keep ? outfile__keep(f) : outfile__commit(f), -EISDIR);
		CHECK(strstr(kprof_error_cause(), "cannot rename"));
		CHECK_EQ(count_files(), before + 1 + keep);
		rmdir(path);
	}
}

static void names_of_every_length(void)
{
	char name[257];
	struct outfile *f;

	memset(name, 'n', sizeof(name));
	name[255] = '\0';
	CHECK_EQ(open_path(in_scratch(name), &f), 0);
	CHECK_EQ(outfile__commit(f), 0);
	CHECK_EQ(unlink(in_scratch(name)), 0);
	name[255] = 'n';
	name[256] = '\0';
	check_refused(in_scratch(name), -ENAMETOOLONG, "too long");
	CHECK_EQ(chdir(scratch), 0); /* without any directory */
	CHECK_EQ(open_path("bare", &f), 0);
	CHECK_EQ(outfile__commit(f), 0);
	CHECK_EQ(unlink(in_scratch("bare")), 0);
	CHECK_EQ(chdir("/"), 0);
}

static void impossible_places_are_named(void)
{
	const char *file = in_scratch("file");

	spit(file, "x", 1);
	check_refused("", -EISDIR, "not the name of a file");
	check_refused(scratch, -EISDIR, "is a directory");
	check_refused(in_scratch(""), -EISDIR, "not the name of a file");
	check_refused("/", -EISDIR, "not the name of a file");
	check_refused(in_scratch("missing/out"), -ENOENT, "there is no directory");
	check_refused(in_scratch("file/out"), -ENOTDIR, "not a directory");
	check_refused("/proc/self/out", -ENOENT, "cannot create a file");
	unlink(file);
}

/* ---- links ---- */

static void links_that_anyone_may_place_are_refused(void)
{
	const char *dir = in_scratch("open"), *link = in_scratch("open/link");
	const mode_t modes[] = {01777, 0777};

	CHECK_EQ(mkdir(dir, 0700), 0);
	spit(in_scratch("victim"), "precious", 8);
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		CHECK_EQ(chmod(dir, modes[i]), 0);
		CHECK_EQ(symlink(in_scratch("victim"), link), 0);
		check_refused(link, -ELOOP, "symbolic link");
		unlink(link);
		CHECK_EQ(symlink("/nowhere/at/all", link), 0); /* dangling */
		check_refused(link, -ELOOP, "symbolic link");
		unlink(link);
		CHECK_EQ(symlink("/dev/null", link), 0); /* not even to a device */
		check_refused(link, -ELOOP, "symbolic link");
		unlink(link);
	}
	if (geteuid() == 0) { /* somebody else's directory */
		CHECK_EQ(chmod(dir, 0755), 0);
		CHECK_EQ(chown(dir, NOBODY, NOBODY), 0);
		CHECK_EQ(symlink(in_scratch("victim"), link), 0);
		check_refused(link, -ELOOP, "belongs to somebody else");
		unlink(link);
	}
	check_content(in_scratch("victim"), "precious");
	unlink(in_scratch("victim"));
	rmdir(in_scratch("open"));
}

static void own_links_are_replaced_not_followed(void)
{
	const char *victim = in_scratch("victim"), *link = in_scratch("link");
	struct outfile *f;
	struct stat st;

	spit(victim, "precious", 8);
	CHECK_EQ(symlink(victim, link), 0);
	CHECK_EQ(open_path(link, &f), 0);
	CHECK_EQ(outfile__write(f, "trace", 5), 0);
	CHECK_EQ(outfile__commit(f), 0);
	CHECK_EQ(lstat(link, &st), 0);
	CHECK(S_ISREG(st.st_mode));
	check_content(victim, "precious");
	check_content(link, "trace");
	/* one that appears while we write is replaced too */
	unlink(link);
	CHECK_EQ(open_path(link, &f), 0);
	CHECK_EQ(symlink(victim, link), 0);
	CHECK_EQ(outfile__commit(f), 0);
	check_content(victim, "precious");
	check_content(link, "");
	unlink(victim);
	unlink(link);
}

/* ---- what is no file ---- */

static void devices_are_written_as_they_are(void)
{
	struct outfile *f;
	struct stat st;

	CHECK_EQ(open_path("/dev/null", &f), 0);
	CHECK_STR(outfile__temp_path(f), "/dev/null");
	CHECK_EQ(outfile__write(f, "x", 1), 0);
	CHECK_EQ(outfile__commit(f), 0); /* fsync says EINVAL */
	CHECK_EQ(stat("/dev/null", &st), 0);
	CHECK(S_ISCHR(st.st_mode));
	CHECK_EQ(open_path("/dev/full", &f), 0);
	CHECK_EQ(outfile__write(f, "x", 1), -ENOSPC);
	CHECK(strstr(kprof_error_cause(), "/dev/full: No space left"));
	CHECK(strstr(kprof_error_hint(), "room"));
	outfile__discard(f);
	CHECK_EQ(stat("/dev/full", &st), 0);
}

static void pipes_are_written_as_they_are(void)
{
	const char *path = in_scratch("fifo");
	struct outfile *f;
	char got[8] = "";
	int fd;

	CHECK_EQ(mkfifo(path, 0600), 0);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	CHECK_EQ(open_path(path, &f), 0);
	CHECK_EQ(outfile__write(f, "piped", 5), 0);
	CHECK_EQ(outfile__commit(f), 0);
	CHECK_EQ(read(fd, got, sizeof(got)), 5);
	CHECK_STR(got, "piped");
	close(fd);
	if (geteuid() == 0) { /* who reads from there? */
		CHECK_EQ(chown(path, NOBODY, NOBODY), 0);
		check_refused(path, -EPERM, "belongs to somebody else");
	}
	unlink(path);
}

static void standard_output(void)
{
	int ends[2], saved = dup(STDOUT_FILENO);
	struct outfile *f;
	char got[16] = "";

	fflush(stdout);
	CHECK_EQ(pipe(ends), 0);
	dup2(ends[1], STDOUT_FILENO);
	CHECK_EQ(open_path("-", &f), 0);
	CHECK_EQ(outfile__write(f, "one ", 4), 0);
	CHECK_EQ(outfile__commit(f), 0);
	CHECK_EQ(open_path("/dev/stdout", &f), 0); /* a link, in root's directory */
	CHECK_EQ(outfile__write(f, "two", 3), 0);
	CHECK_EQ(outfile__commit(f), 0);
	CHECK_EQ(write(STDOUT_FILENO, "!", 1), 1); /* still open */
	dup2(saved, STDOUT_FILENO);
	close(saved);
	close(ends[1]);
	CHECK_EQ(read(ends[0], got, sizeof(got)), 8);
	CHECK_STR(got, "one two!");
	close(ends[0]);
}

/* ---- whose it is ---- */

static void given_to_the_calling_user(void)
{
	const struct outfile_opts opts = {true, NOBODY, NOBODY};
	const char *path = in_scratch("owned");
	struct outfile *f;
	struct stat st;

	if (geteuid() != 0) {
		printf("# skipped: not root\n");
		return;
	}
	CHECK_EQ(outfile__open(path, &opts, &f), 0);
	CHECK_EQ(outfile__commit(f), 0);
	CHECK_EQ(stat(path, &st), 0);
	CHECK_EQ(st.st_uid, NOBODY);
	CHECK_EQ(st.st_gid, NOBODY);
	CHECK_EQ(st.st_mode & 07777, 0600);
	unlink(path);
}

/* Runs the checks as nobody, in a child. */
static void as_nobody(void (*checks)(void))
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		unit_failures_here = 0;
		if (geteuid() == 0 && (setgid(NOBODY) || setuid(NOBODY)))
			CHECK(!"could not become nobody");
		checks();
		fflush(stdout);
		_exit(unit_failures_here ? 1 : 0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

static void checks_without_permission(void)
{
	check_refused(in_scratch("closed/out"), -EACCES, "no permission to create");
	check_refused(in_scratch("secret/deep/out"), -EACCES, "cannot enter directory");
	check_refused(in_scratch("sticky/roots"), -EPERM, "cannot replace");
}

static void directories_without_permission(void)
{
	if (geteuid() != 0) {
		printf("# skipped: not root\n");
		return;
	}
	CHECK_EQ(chmod(scratch, 0755), 0);
	mkdir(in_scratch("closed"), 0555);
	mkdir(in_scratch("secret"), 0700);
	mkdir(in_scratch("secret/deep"), 0700);
	mkdir(in_scratch("sticky"), 0700);
	CHECK_EQ(chmod(in_scratch("sticky"), 01777), 0);
	spit(in_scratch("sticky/roots"), "x", 1);
	as_nobody(checks_without_permission);
}

static void read_only_and_full_filesystems(void)
{
	const char *disk = in_scratch("disk");
	static const char block[4096];
	struct outfile *f;
	int err = 0;

	if (!scratch__mount(disk, "size=64k"))
		return;
	CHECK_EQ(open_path(in_scratch("disk/out"), &f), 0);
	for (int i = 0; i < 100 && !err; i++)
		err = outfile__write(f, block, sizeof(block));
	CHECK_EQ(err, -ENOSPC);
	CHECK(strstr(kprof_error_hint(), "-o"));
	outfile__discard(f);
	CHECK_EQ(mount("none", disk, "tmpfs", MS_REMOUNT | MS_RDONLY, ""), 0);
	check_refused(in_scratch("disk/out"), -EROFS, "read-only");
	CHECK_EQ(umount(disk), 0);
}

UNIT_MAIN({"(set-up)", scratch__make}, TEST(somebody_has_it_open_until_it_has_its_name),
	  TEST(appears_whole_at_commit), TEST(discard_leaves_nothing),
	  TEST(links_that_anyone_may_place_are_refused), TEST(own_links_are_replaced_not_followed),
	  TEST(names_of_every_length), TEST(impossible_places_are_named),
	  TEST(devices_are_written_as_they_are), TEST(pipes_are_written_as_they_are),
	  TEST(standard_output), TEST(given_to_the_calling_user),
	  TEST(directories_without_permission), TEST(read_only_and_full_filesystems),
	  TEST(failing_commit_removes_and_keep_keeps), {"(clean-up)", scratch__remove})
