// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/process/process.h"
#include "symbol/names/names.h"
#include "unit.h"
#include "util/util.h"

static void check(const struct perfmap *m, uint64_t address, const char *want, uint64_t want_start)
{
	uint64_t start = 0;
	const char *got = perfmap__find(m, address, &start);

	CHECK_STR(got ? got : "", want);
	CHECK_EQ(start, want_start);
}

static void lines(void)
{
	static const char text[] = "7f0000001000 100 py::main:/a b.py\n"
				   "7f0000001100 80 second\n"
				   "7f0000000f00 10   spaced name \n"
				   "nonsense\n"
				   "0x10 20 a prefix is allowed\n"
				   "-10 20 negative\n"
				   "30 0 empty\n"
				   "40 10 \n"
				   "ffffffffffffff00 200 past the end\n"
				   "fffffffffffffff00 1 too many digits\n"
				   "ffffffffffffff00 ff high\n";
	struct perfmap *m;

	CHECK_EQ(perfmap__parse(text, sizeof(text) - 1, &m), 0);
	check(m, 0x7f0000001000, "py::main:/a b.py", 0x7f0000001000);
	check(m, 0x7f00000010ff, "py::main:/a b.py", 0x7f0000001000);
	check(m, 0x7f0000001100, "second", 0x7f0000001100);
	check(m, 0x7f0000001180, "", 0);
	check(m, 0x7f0000000fff, "", 0);
	check(m, 0x7f0000000f0f, "spaced name ", 0x7f0000000f00);
	check(m, 0x18, "a prefix is allowed", 0x10);
	check(m, 0x30, "", 0);
	check(m, 0x40, "", 0);
	check(m, 0xfffffffffffffffe, "high", 0xffffffffffffff00);
	check(m, UINT64_MAX, "", 0);
	perfmap__free(m);
	CHECK_EQ(perfmap__parse("", 0, &m), 0);
	check(m, 0, "", 0);
	perfmap__free(m);
	CHECK_EQ(perfmap__parse("10 10 a\0b\n20 10 c", 18, &m), 0);
	check(m, 0x10, "a", 0x10);
	check(m, 0x20, "c", 0x20);
	perfmap__free(m);
}

/* What was written later holds; judged by writing names into an array, one after the other. */
static void later_ones_hold(void)
{
	enum { SPACE = 400, LINES = 60 };

	srand(5);
	for (int round = 0; round < 500; round++) {
		char *text = NULL;
		size_t bytes;
		int owner[SPACE] = {0};
		FILE *f = open_memstream(&text, &bytes);
		struct perfmap *m;

		for (int line = 1; line <= LINES; line++) {
			int start = rand() % SPACE, size = 1 + rand() % (rand() % 8 ? 20 : SPACE);

			fprintf(f, "%x %x %d\n", start, size, line);
			for (int i = start; i < start + size && i < SPACE; i++)
				owner[i] = line;
		}
		fclose(f);
		CHECK_EQ(perfmap__parse(text, bytes, &m), 0);
		for (int i = 0; i < SPACE; i++) {
			uint64_t start;
			const char *got = perfmap__find(m, (uint64_t)i, &start);

			CHECK_EQ(got ? atoi(got) : 0, owner[i]);
		}
		perfmap__free(m);
		free(text);
	}
}

/* Lines of six bytes would become a hundred times as much. */
static void too_many_lines(void)
{
	static const char line[] = "1 1 a\n";
	size_t nr = 1u << 20, each = sizeof(line) - 1;
	char *text = malloc((nr + 1) * each);
	struct perfmap *m = NULL;

	for (size_t i = 0; i <= nr; i++)
		memcpy(text + i * each, line, each);
	CHECK_EQ(perfmap__parse(text, (nr + 1) * each, &m), -EFBIG);
	CHECK_EQ(perfmap__parse(text, nr * each, &m), 0);
	/* They are one place with one name: what is kept is the text. */
	CHECK(m && perfmap__bytes(m) >= nr * each && perfmap__bytes(m) < nr * each + 4096);
	perfmap__free(m);
	free(text);
}

static void write_map(const char *path, const char *text, mode_t mode)
{
	FILE *f = fopen(path, "w");

	CHECK(f && fputs(text, f) >= 0);
	if (f)
		fclose(f);
	CHECK_EQ(chmod(path, mode), 0);
}

static int load(pid_t pid, struct perfmap **m)
{
	struct proc_info info = {.ns_pid = pid};

	proc_info_read(pid, &info);
	return perfmap__load(pid, info.ns_pid, info.uid, info.start_ticks, m);
}

static void own_process(void)
{
	char *path = xasprintf("/tmp/perf-%d.map", getpid());
	struct perfmap *m = NULL;

	unlink(path);
	CHECK_EQ(load(getpid(), &m), -ENOENT);
	write_map(path, "1000 10 whole\n2000 10 being writt", 0644);
	CHECK_EQ(load(getpid(), &m), 0);
	if (m) {
		check(m, 0x1001, "whole", 0x1000);
		check(m, 0x2001, "", 0);
	}
	perfmap__free(m);
	/* What a process of this number left behind that ended before this one began. */
	CHECK_EQ(utimensat(AT_FDCWD, path, (struct timespec[]){{.tv_sec = 1000}, {.tv_sec = 1000}},
			   0),
		 0);
	CHECK_EQ(load(getpid(), &m), -ESTALE);
	CHECK_EQ(utimensat(AT_FDCWD, path, NULL, 0), 0);
	CHECK_EQ(load(getpid(), &m), 0);
	perfmap__free(m);
	if (geteuid() == 0) {
		CHECK_EQ(chown(path, 12345, 12345), 0);
		CHECK_EQ(load(getpid(), &m), -EPERM);
	}
	unlink(path);
	CHECK_EQ(symlink("/proc/self/maps", path), 0);
	CHECK_EQ(load(getpid(), &m), -ELOOP);
	unlink(path);
	CHECK_EQ(mkfifo(path, 0600), 0);
	CHECK_EQ(load(getpid(), &m), -EPERM);
	unlink(path);
	CHECK_EQ(load(0x7ffffff0, &m), -ENOENT);
	free(path);
}

static char other_root[] = "/tmp/kprof-root.XXXXXX";

/*
 * What lies in another /tmp, that of process 1 of another namespace. No mounts: a chroot may allow
 * none.
 */
static bool contained(void)
{
	if (chroot(other_root) || chdir("/"))
		return false;
	write_map("/tmp/perf-1.map", "1000 10 inside\n", 0644);
	return unit_failures_here == 0;
}

/* Says the process's number as we see it, once its file lies there; 0: that did not work. */
static void contain(int fd)
{
	int ready[2], done = -1;
	pid_t pid = -1;

	if (!pipe(ready) && !unshare(CLONE_NEWPID))
		pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG,
		      SIGKILL); /* whatever fails: nobody waits for ever on what it holds open */
		done = contained();
		if (write(ready[1], &done, sizeof(done)) == sizeof(done))
			pause();
		_exit(0);
	}
	if (pid < 0 || read(ready[0], &done, sizeof(done)) != sizeof(done) || !done)
		pid = 0;
	if (write(fd, &pid, sizeof(pid)) == sizeof(pid))
		pause();
	_exit(0);
}

static void container(void)
{
	struct perfmap *m = NULL;
	char *tmp, *file;
	pid_t outer, pid = 0;
	int fds[2];

	if (geteuid() != 0) {
		printf("# skipped: not root, no namespaces\n");
		return;
	}
	CHECK(mkdtemp(other_root) != NULL);
	tmp = xasprintf("%s/tmp", other_root);
	file = xasprintf("%s/perf-1.map", tmp);
	CHECK_EQ(mkdir(tmp, 0755), 0);
	CHECK_EQ(pipe(fds), 0);
	fflush(stdout);
	outer = fork();
	if (!outer)
		contain(fds[1]);
	CHECK(read(fds[0], &pid, sizeof(pid)) == sizeof(pid) && pid > 0);
	CHECK_EQ(load(pid, &m), 0);
	if (m)
		check(m, 0x1001, "inside", 0x1000);
	perfmap__free(m);
	if (pid > 0)
		kill(pid, SIGKILL);
	kill(outer, SIGKILL);
	CHECK_EQ(waitpid(outer, NULL, 0), outer);
	close(fds[0]);
	close(fds[1]);
	CHECK(!unlink(file) && !rmdir(tmp) && !rmdir(other_root));
	free(file);
	free(tmp);
}

UNIT_MAIN(TEST(lines), TEST(later_ones_hold), TEST(too_many_lines), TEST(own_process),
	  TEST(container))
