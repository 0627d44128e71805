// SPDX-License-Identifier: BSD-2-Clause
/* What the kernel tells of this process's own children. Skipped where perf events are refused. */
#include "capture/sample/sideband.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kprof.h"
#include "unit.h"
#include "util/util.h"

static struct sideband *sb;

static bool start(void)
{
	int err = sideband__new(&sb);

	if (!err)
		return true;
	printf("# skipped: no perf events of all processes: %s\n", strerror(-err));
	return false;
}

static bool maps_file(const struct proc_map *maps, size_t nr, const char *file)
{
	struct stat st;

	CHECK_EQ(stat(file, &st), 0);
	for (size_t i = 0; i < nr; i++)
		if (maps[i].inode == st.st_ino && maps[i].end > maps[i].start)
			return true;
	return false;
}

/* A program that is over, and waited for: what it mapped is known. */
static void a_program_that_has_ended(void)
{
	static struct proc_map maps[SIDEBAND_MAPS];
	uint64_t fork_ns, after_ns, before_ns;
	pid_t pid, parent;
	size_t nr;

	if (!start())
		return;
	before_ns = clock_mono_ns();
	pid = fork();
	if (!pid) {
		execl("/bin/true", "true", NULL);
		_exit(1);
	}
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	after_ns = clock_mono_ns();
	sideband__read(sb, after_ns);
	nr = sideband__maps(sb, pid, after_ns, maps, &parent, &fork_ns);
	CHECK(nr >= 2 && maps_file(maps, nr, "/bin/true"));
	CHECK_EQ(parent, 0); /* it has executed a program */
	for (size_t i = 0; i < nr; i++)
		CHECK_EQ(maps[i].flags, PROC_MAP_FILE | PROC_MAP_EXEC);
	/* before its fork it was not there */
	CHECK_EQ(sideband__maps(sb, pid, before_ns, maps, &parent, &fork_ns), 0);
	CHECK_EQ(parent, 0);
	/* and some seconds later it is forgotten */
	sideband__read(sb, after_ns + 10 * NSEC_PER_SEC);
	CHECK_EQ(sideband__maps(sb, pid, after_ns, maps, &parent, &fork_ns), 0);
	sideband__free(sb);
}

/* A child that executes nothing has its parent's mappings, and those that it makes itself. */
static void a_child_that_executes_nothing(void)
{
	static struct proc_map maps[SIDEBAND_MAPS];
	uint64_t fork_ns, now_ns;
	pid_t pid, parent;
	FILE *exe = fopen("/proc/self/exe", "r");

	CHECK(exe);
	if (!start())
		return;
	pid = fork();
	if (!pid)
		_exit(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(exe), 0) ==
		      MAP_FAILED);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	now_ns = clock_mono_ns();
	sideband__read(sb, now_ns);
	CHECK_EQ(sideband__maps(sb, pid, now_ns, maps, &parent, &fork_ns), 1);
	CHECK(maps_file(maps, 1, "/proc/self/exe"));
	CHECK_EQ(parent, getpid());
	CHECK(fork_ns && fork_ns < now_ns);
	sideband__free(sb);
	fclose(exe);
}

/* More processes than are remembered: the latest are there, and memory has its limit. */
static void many(void)
{
	static struct proc_map maps[SIDEBAND_MAPS];
	uint64_t fork_ns, now_ns;
	pid_t pid = 0, parent;

	if (!start())
		return;
	for (int i = 0; i < 5000; i++) {
		pid = fork();
		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
		if (i % 50 == 0)               /* others fill the rings, too */
			sideband__read(sb, 1); /* nothing is forgotten for its age */
	}
	now_ns = clock_mono_ns();
	sideband__read(sb, 1);
	sideband__maps(sb, pid, now_ns, maps, &parent, &fork_ns);
	CHECK_EQ(parent, getpid());
	CHECK_EQ(sideband__lost(sb), 0);
	sideband__free(sb);
}

UNIT_MAIN(TEST(a_program_that_has_ended), TEST(a_child_that_executes_nothing), TEST(many))
