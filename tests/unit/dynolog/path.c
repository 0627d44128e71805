// SPDX-License-Identifier: BSD-2-Clause
/* user/dynolog/path.c: names of files, which of them are allowed, and how they are made. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kprof.h"
#include "kprof/dynolog.h"

static char folder[] = "/tmp/kprof-unit-dynolog-XXXXXX";
static const char *const folders[] = {folder};
static char path[KPROF_DYNOLOG_PATH_BYTES];

static void names(void)
{
	char of_kineto[KPROF_DYNOLOG_PATH_BYTES], longest[KPROF_DYNOLOG_PATH_BYTES];
	static const struct {
		const char *log_file, *dyno, *kineto;
	} rows[] = {
		{"/tmp/a.json", "/tmp/a_42.json", "/tmp/a_42.json"},
		{"/tmp/a.pt.trace.json", "/tmp/a.pt.trace_42.json", "/tmp/a_42.pt.trace.json"},
		{"/tmp/a.json.json", "/tmp/a_42.json_42.json", "/tmp/a_42.json.json"},
		{"/tmp/a.json.gz", "/tmp/a_42.json.gz", "/tmp/a_42.json.gz"},
		{"/tmp/trace", "/tmp/trace", "/tmp/trace"},
		{"/tmp/b.json/a", "/tmp/b_42.json/a", "/tmp/b_42.json/a"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CHECK_EQ(kprof_dynolog_path(rows[i].log_file, 42, path), 0);
		CHECK_STR(path, rows[i].dyno);
		CHECK_EQ(kprof_dynolog_kineto_path(rows[i].log_file, 42, of_kineto), 0);
		CHECK_STR(of_kineto, rows[i].kineto);
	}
	for (size_t len = sizeof(longest) - 12; len < sizeof(longest); len++) {
		memset(longest, 'a', len);
		snprintf(longest + len - 5, 6, ".json");
		CHECK_EQ(kprof_dynolog_path(longest, 42, path),
			 len + 3 < sizeof(longest) ? 0 : -ENAMETOOLONG);
	}
	for (size_t at = 0; at + 5 < sizeof(longest); at += 5)
		snprintf(longest + at, 6, ".json");
	CHECK_EQ(kprof_dynolog_path(longest, 1234567, path), -ENAMETOOLONG);
}

static void allowed(void)
{
	static const char *const two[] = {"/data/traces/", "/srv"};
	static const char *const good[] = {"/data/traces/a", "/data/traces//x/a.json", "/srv/..a",
					   "/srv/a..", "/srv/.../a"};
	static const char *const bad[] = {"",        "a",       "srv/a",          "/srv",
					  "/srv/",   "/srvx/a", "/tmp/a",         "/srv/../a",
					  "/srv/..", "/srv/a/", "/srv/x/../../a", "/srv/a/."};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		CHECK(kprof_dynolog_path_allowed(good[i], two, 2));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(!kprof_dynolog_path_allowed(bad[i], two, 2));
	CHECK(kprof_dynolog_path_allowed("/tmp/a.json", NULL, 0));
	CHECK(!kprof_dynolog_path_allowed("/var/tmp/a.json", NULL, 0));
	CHECK(!kprof_dynolog_path_allowed("/tmpx/a.json", NULL, 0));
}

static const char *in(const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static int create(const char *name, uid_t uid, gid_t gid)
{
	int fd = kprof_dynolog_create(in(name), folders, 1, uid, gid), err;

	if (fd < 0)
		return fd;
	err = kprof_dynolog_publish(fd, in(name), folders, 1, uid, gid);
	close(fd);
	return err;
}

/* Nobody sees a part of it, and it replaces nothing that was made meanwhile. */
static void complete_or_not_at_all(void)
{
	uid_t uid = getuid();
	gid_t gid = getgid();
	char text[8] = "";
	int fd = kprof_dynolog_create(in("late.json"), folders, 1, uid, gid), other;

	CHECK(fd >= 0);
	CHECK(access(in("late.json"), F_OK));
	CHECK_EQ(write(fd, "late", 4), 4);
	other = open(in("late.json"), O_WRONLY | O_CREAT | O_EXCL, 0600);
	CHECK(other >= 0);
	CHECK_EQ(kprof_dynolog_publish(fd, in("late.json"), folders, 1, uid, gid), -EEXIST);
	CHECK_EQ(lseek(other, 0, SEEK_END), 0);
	close(other);
	unlink(in("late.json"));
	CHECK_EQ(symlink("elsewhere", in("late.json")), 0);
	CHECK_EQ(kprof_dynolog_publish(fd, in("late.json"), folders, 1, uid, gid), -EEXIST);
	unlink(in("late.json"));
	CHECK_EQ(kprof_dynolog_publish(fd, "/etc/late.json", folders, 1, uid, gid), -EACCES);
	CHECK_EQ(kprof_dynolog_publish(fd, in("late.json"), folders, 1, uid, gid), 0);
	CHECK_EQ(kprof_dynolog_publish(fd, in("late.json"), folders, 1, uid, gid), 0);
	close(fd);
	fd = open(in("late.json"), O_RDONLY);
	CHECK_EQ(read(fd, text, sizeof(text) - 1), 4);
	CHECK_STR(text, "late");
	close(fd);
	/* one that is given up leaves nothing */
	close(kprof_dynolog_create(in("given-up.json"), folders, 1, uid, gid));
	CHECK(access(in("given-up.json"), F_OK));
}

static void new_files(void)
{
	struct stat st;

	CHECK_EQ(create("a.json", getuid(), getgid()), 0);
	CHECK(!stat(in("a.json"), &st) && S_ISREG(st.st_mode) && (st.st_mode & 07777) == 0600);
	CHECK_EQ(create("a.json", getuid(), getgid()), -EEXIST);
	CHECK(strstr(kprof_error_cause(), "a.json"));
	CHECK_EQ(create("none/a.json", getuid(), getgid()), -ENOENT);
	CHECK_EQ(create("../a.json", getuid(), getgid()), -EACCES);
	CHECK_EQ(kprof_dynolog_create("/etc/kprof-unit", folders, 1, 0, 0), -EACCES);
}

static void no_links(void)
{
	CHECK_EQ(symlink("/etc", in("etc")), 0);
	CHECK_EQ(create("etc/kprof-unit", getuid(), getgid()), -ELOOP);
	CHECK_EQ(symlink("a-new-file", in("link.json")), 0);
	CHECK_EQ(create("link.json", getuid(), getgid()), -EEXIST);
	CHECK(access(in("a-new-file"), F_OK));
	CHECK_EQ(mkfifo(in("fifo"), 0666), 0);
	CHECK_EQ(create("fifo", getuid(), getgid()), -EEXIST);
}

/* Mounts of one's own; EINVAL: the root is no mount, as in a chroot. */
static int own_mounts(int flags)
{
	if (unshare(CLONE_NEWNS | flags))
		return -1;
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) && errno != EINVAL ? -1 : 0;
}

/* A file system that another user has mounted may never answer: it is not even asked. */
static void no_other_mount(void)
{
	int status = -1;
	pid_t pid;

	if (geteuid())
		return;
	CHECK_EQ(mkdir(in("mount"), 0777) || mkdir(in("named"), 0777), 0);
	pid = fork();
	if (!pid) {
		if (own_mounts(0) || mount("none", in("mount"), "tmpfs", 0, NULL) ||
		    mount("none", in("named"), "tmpfs", 0, NULL))
			_exit(2);
		_exit(create("mount/a.json", 0, 0) != -EXDEV || create("named", 0, 0) != -EXDEV);
	}
	waitpid(pid, &status, 0);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static int in_message_queues(void)
{
	const char *const only[] = {in("queues")};
	char own[128];
	struct stat st;
	int fd;

	if (own_mounts(CLONE_NEWIPC))
		return 2;
	snprintf(own, sizeof(own), "%s/queues", folder);
	if (mount("none", own, "mqueue", 0, NULL))
		return 2;
	strcat(own, "/a.json");
	fd = kprof_dynolog_create(own, only, 1, 65534, 65534);
	if (fd < 0 || stat(own, &st) || st.st_uid != 65534 || (st.st_mode & 07777) != 0600)
		return 3;
	if (kprof_dynolog_publish(fd, own, only, 1, 65534, 65534))
		return 4;
	return kprof_dynolog_create(own, only, 1, 65534, 65534) == -EEXIST ? 0 : 5;
}

/* There a file has its name from the beginning. */
static void where_no_file_is_without_a_name(void)
{
	int status = -1;
	pid_t pid;

	if (geteuid())
		return;
	CHECK_EQ(mkdir(in("queues"), 0777), 0);
	pid = fork();
	if (!pid)
		_exit(in_message_queues());
	waitpid(pid, &status, 0);
	CHECK_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
}

/* Where the user may not write, nothing is made for that user; and the caller is root as before. */
static void rights_of_the_user(void)
{
	const gid_t group = 54321;
	gid_t groups[8];
	struct stat st;

	if (geteuid() || setgroups(1, &group))
		return;
	CHECK_EQ(mkdir(in("roots"), 0700), 0);
	CHECK_EQ(mkdir(in("of-group"), 0), 0);
	CHECK_EQ(chown(in("of-group"), 0, group) || chmod(in("of-group"), 0070), 0);
	CHECK_EQ(mkdir(in("everybodys"), 0), 0);
	CHECK_EQ(chmod(in("everybodys"), 01777), 0);
	CHECK_EQ(chmod(folder, 0755), 0);
	CHECK_EQ(create("roots/a.json", 65534, 65534), -EACCES);
	CHECK_EQ(create("of-group/a.json", 65534, 65534), -EACCES);
	CHECK_EQ(create("everybodys/a.json", 65534, 65533), 0);
	CHECK(!stat(in("everybodys/a.json"), &st) && st.st_uid == 65534 && st.st_gid == 65533);
	CHECK_EQ(create("roots/b.json", 0, 0), 0);
	CHECK_EQ(getgroups(8, groups), 1);
	CHECK_EQ(groups[0], group);
}

static void begin(void)
{
	CHECK(mkdtemp(folder));
}

static void end(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	CHECK_EQ(system(command), 0);
}

UNIT_MAIN(TEST(begin), TEST(names), TEST(allowed), TEST(new_files), TEST(complete_or_not_at_all),
	  TEST(no_links), TEST(no_other_mount), TEST(rights_of_the_user),
	  TEST(where_no_file_is_without_a_name), TEST(end))
