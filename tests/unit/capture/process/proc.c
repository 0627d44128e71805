// SPDX-License-Identifier: BSD-2-Clause
#include "capture/process/priv.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kprof.h"
#include "unit.h"
#include "util/util.h"

static const char sample[] =
	"55d0c0000000-55d0c0001000 r--p 00000000 fe:01 1234                       /usr/bin/a b\n"
	"55d0c0001000-55d0c0003000 r-xp 00001000 fe:01 1234                       /usr/bin/a b\n"
	"55d0c1000000-55d0c1021000 rw-p 00000000 00:00 0                          [heap]\n"
	"7f0000000000-7f0000001000 r-xp 00000000 fe:01 99                         /tmp/x\\012y (deleted)\n"
	"7f0000001000-7f0000002000 rw-s 00000000 00:01 77                         /memfd:j (deleted)\n"
	"7f0000004000-7f0000005000 rw-p 00000000 00:00 0 \n"
	"7f0000005000-7f0000006000 r--p 00002000 fe:01 1234                       /usr/bin/a b\n"
	"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n";

static void parses_every_kind_of_line(void)
{
	struct proc_maps *maps = NULL;
	const struct proc_map *map;

	CHECK_EQ(proc_maps__parse(sample, &maps), 0);
	if (!maps)
		return;
	CHECK_EQ(proc_maps__nr(maps), 8);
	map = proc_maps__at(maps, 1);
	CHECK_EQ(map->start, 0x55d0c0001000);
	CHECK_EQ(map->end, 0x55d0c0003000);
	CHECK_EQ(map->offset, 0x1000);
	CHECK_EQ(map->inode, 1234);
	CHECK_EQ(map->flags, PROC_MAP_READ | PROC_MAP_EXEC | PROC_MAP_FILE);
	CHECK_STR(map->path, "/usr/bin/a b");
	CHECK_EQ(proc_maps__at(maps, 2)->flags, PROC_MAP_READ | PROC_MAP_WRITE);
	CHECK_STR(proc_maps__at(maps, 2)->path, "[heap]");
	CHECK_STR(proc_maps__at(maps, 3)->path, "/tmp/x\ny");
	CHECK(proc_maps__at(maps, 3)->flags & PROC_MAP_DELETED);
	CHECK_STR(proc_maps__at(maps, 4)->path, "/memfd:j");
	CHECK(proc_maps__at(maps, 4)->flags & PROC_MAP_SHARED);
	CHECK_STR(proc_maps__at(maps, 5)->path, "");
	CHECK_STR(proc_maps__at(maps, 7)->path, "[vsyscall]");
	CHECK(!proc_maps__at(maps, 8));
	proc_maps__free(maps);
}

static void finds_by_address(void)
{
	struct proc_maps *maps = NULL;

	CHECK_EQ(proc_maps__parse(sample, &maps), 0);
	if (!maps)
		return;
	CHECK(proc_maps__find(maps, 0x55d0c0000000) == proc_maps__at(maps, 0));
	CHECK(proc_maps__find(maps, 0x55d0c0000fff) == proc_maps__at(maps, 0));
	CHECK(proc_maps__find(maps, 0x55d0c0001000) == proc_maps__at(maps, 1));
	CHECK(!proc_maps__find(maps, 0x55d0c0003000));
	CHECK(!proc_maps__find(maps, 0));
	CHECK(!proc_maps__find(maps, UINT64_MAX));
	CHECK(proc_maps__find(maps, 0xffffffffff600123) == proc_maps__at(maps, 7));
	proc_maps__free(maps);
}

static void chains_the_mappings_of_a_file(void)
{
	struct proc_maps *maps = NULL;
	const struct proc_map *map;

	CHECK_EQ(proc_maps__parse(sample, &maps), 0);
	if (!maps)
		return;
	map = proc_maps__at(maps, 0);
	CHECK(proc_maps__next_of_file(maps, map) == proc_maps__at(maps, 1));
	map = proc_maps__next_of_file(maps, proc_maps__at(maps, 1));
	CHECK(map == proc_maps__at(maps, 6));
	CHECK(!proc_maps__next_of_file(maps, map));
	CHECK(proc_maps__first_of_file(maps, map) == proc_maps__at(maps, 0));
	CHECK(proc_maps__first_of_file(maps, proc_maps__at(maps, 2)) == proc_maps__at(maps, 2));
	CHECK(!proc_maps__next_of_file(maps, proc_maps__at(maps, 2)));
	proc_maps__free(maps);
}

/*
 * The kernel reads the maps in pieces: what was mapped meanwhile may overlap what it said before.
 */
static void a_later_line_wins(void)
{
	struct proc_maps *maps = NULL;

	CHECK_EQ(proc_maps__parse("1000-5000 r--p 00000000 00:00 0 \n"
				  "3000-6000 rw-p 00000000 00:00 0 \n"
				  "2000-7000 r-xp 00000000 00:00 0 \n",
				  &maps),
		 0);
	if (!maps)
		return;
	CHECK_EQ(proc_maps__nr(maps), 2);
	CHECK_EQ(proc_maps__at(maps, 0)->end, 0x2000);
	CHECK_EQ(proc_maps__at(maps, 1)->end, 0x7000);
	proc_maps__free(maps);
}

static void junk_is_refused_and_a_cut_line_left_out(void)
{
	static const char *const junk[] = {"x\n",
					   "1000\n",
					   "1000-2000\n",
					   "1000-2000 r-xp\n",
					   "2000-1000 r-xp 0 0:0 0\n",
					   "1000-2000 r-xp 0 00 0\n"};
	struct proc_maps *maps = NULL;

	for (size_t i = 0; i < sizeof(junk) / sizeof(junk[0]); i++) {
		CHECK_EQ(proc_maps__parse(junk[i], &maps), -EPROTO);
		CHECK(kprof_error_cause()[0]);
	}
	CHECK_EQ(proc_maps__parse("1000-2000 r--p 0 0:0 0\n3000-40", &maps), 0);
	CHECK_EQ(proc_maps__nr(maps), 1);
	proc_maps__free(maps);
}

static void own_maps_hold_own_code(void)
{
	const struct proc_map *map;
	struct proc_maps *maps = NULL;
	struct stat theirs, ours;
	char path[512];

	CHECK_EQ(proc_maps__read(getpid(), &maps), 0);
	if (!maps)
		return;
	map = proc_maps__find(maps, (uint64_t)(uintptr_t)own_maps_hold_own_code);
	CHECK(map && (map->flags & PROC_MAP_EXEC) && (map->flags & PROC_MAP_FILE));
	CHECK_STR(proc_basename(map->path), program_invocation_short_name);
	CHECK_EQ(proc_map_open_path(getpid(), map, path, sizeof(path)), 0);
	CHECK(!stat(path, &theirs) && !stat("/proc/self/exe", &ours) &&
	      theirs.st_ino == ours.st_ino);
	proc_maps__free(maps);
}

/* A file without a name opens only through map_files, which root may follow. */
static void a_memfd_opens(void)
{
	int fd = memfd_create("kprof test", 0);
	const struct proc_map *map;
	struct proc_maps *maps = NULL;
	char path[512], byte = 0;
	void *at;

	CHECK(fd >= 0 && write(fd, "x", 1) == 1);
	at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	CHECK(at != MAP_FAILED);
	CHECK_EQ(proc_maps__read(getpid(), &maps), 0);
	map = proc_maps__find(maps, (uint64_t)(uintptr_t)at);
	CHECK_STR(map->path, "/memfd:kprof test");
	CHECK(map->flags & PROC_MAP_DELETED);
	if (!geteuid()) {
		int other;

		CHECK_EQ(proc_map_open_path(getpid(), map, path, sizeof(path)), 0);
		other = open(path, O_RDONLY);
		CHECK(other >= 0 && read(other, &byte, 1) == 1 && byte == 'x');
		close(other);
	} else {
		CHECK_EQ(proc_map_open_path(getpid(), map, path, sizeof(path)), -ENOENT);
	}
	proc_maps__free(maps);
	munmap(at, 4096);
	close(fd);
}

static void knows_itself(void)
{
	struct proc_info info;
	char *text = NULL;

	prctl(PR_SET_NAME, "a) b (c"); /* the worst a name can do to /proc/PID/stat */
	CHECK_EQ(proc_info_read(getpid(), &info), 0);
	prctl(PR_SET_NAME, program_invocation_short_name);
	CHECK_STR(info.comm, "a) b (c");
	CHECK_EQ(info.pid, getpid());
	CHECK_EQ(info.ns_pid, getpid());
	CHECK_EQ(info.ppid, getppid());
	CHECK_EQ(info.uid, geteuid());
	CHECK_EQ(info.nr_threads, 1);
	CHECK(info.start_ticks > 0 && !info.zombie && !info.kernel_thread);
	CHECK(proc_alive(getpid(), info.start_ticks));
	CHECK(!proc_alive(getpid(), info.start_ticks + 1));
	CHECK_EQ(proc_is_32bit(getpid()), 0);
	CHECK_EQ(proc_exe(getpid(), &text), 0);
	CHECK_STR(proc_basename(text), program_invocation_short_name);
	free(text);
}

static void says_who_is_not_there(void)
{
	struct proc_maps *maps = NULL;
	struct proc_info info;

	CHECK_EQ(proc_info_read(0, &info), -ESRCH);
	CHECK_STR(kprof_error_cause(), "no process 0");
	CHECK_EQ(proc_info_read(-1, &info), -ESRCH);
	CHECK_EQ(proc_info_read(0x7ffffffe, &info), -ESRCH);
	CHECK_EQ(proc_maps__read(0x7ffffffe, &maps), -ESRCH);
	CHECK_STR(kprof_error_cause(), "no process 2147483646");
	CHECK(kprof_error_hint());
}

/* A child that waits to be told; returns its pid. */
static pid_t spawn_waiting(int *release_fd)
{
	int fds[2];
	pid_t pid;

	if (pipe(fds))
		return -1;
	pid = fork();
	if (!pid) {
		char byte;

		close(fds[1]);
		_exit(read(fds[0], &byte, 1) < 0);
	}
	close(fds[0]);
	*release_fd = fds[1];
	return pid;
}

static void a_zombie_is_one(void)
{
	struct proc_maps *maps = NULL;
	struct proc_info before, info;
	int release_fd = -1;
	pid_t pid = spawn_waiting(&release_fd);
	siginfo_t si;

	CHECK_EQ(proc_info_read(pid, &before), 0);
	CHECK(proc_alive(pid, before.start_ticks));
	close(release_fd);
	CHECK_EQ(waitid(P_PID, (id_t)pid, &si, WEXITED | WNOWAIT), 0);
	CHECK_EQ(proc_info_read(pid, &info), 0);
	CHECK(info.zombie);
	CHECK(!proc_alive(pid, before.start_ticks));
	CHECK_EQ(proc_maps__read(pid, &maps), -ESRCH);
	CHECK(strstr(kprof_error_cause(), "has exited"));
	waitpid(pid, NULL, 0);
	CHECK_EQ(proc_info_read(pid, &info), -ESRCH);
}

#define MANY 8192 /* mappings: they take some milliseconds to read */

/* A child with many mappings, the last of them at *highest, that ends after so long. */
static pid_t spawn_ending(unsigned int after_us, uint64_t *highest)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *at = mmap(NULL, MANY * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct itimerval ends = {.it_value.tv_usec = after_us};
	int fds[2];
	pid_t pid;
	char byte;

	if (at == MAP_FAILED || pipe(fds))
		return -1;
	for (size_t i = 1; i < MANY; i += 2) /* each is one of its own */
		mprotect(at + i * page, page, PROT_READ);
	*highest = (uint64_t)(uintptr_t)at + MANY * page - 1;
	pid = fork();
	if (!pid) {
		/* SIGALRM, which kills it; not before it is known to be there */
		_exit(write(fds[1], "", 1) != 1 || setitimer(ITIMER_REAL, &ends, NULL) || pause());
	}
	munmap(at, MANY * page);
	close(fds[1]);
	pid = read(fds[0], &byte, 1) == 1 ? pid : -1;
	close(fds[0]);
	return pid;
}

/* Mappings that could not all be read are none: a library would seem not to be there. */
static void all_mappings_or_none(void)
{
	int nr_whole = 0;

	for (unsigned int after_us = 100; after_us < 10000; after_us += 100) {
		struct proc_maps *maps = NULL;
		uint64_t highest = 0;
		pid_t pid = spawn_ending(after_us, &highest);
		int err = proc_maps__read(pid, &maps);

		CHECK(pid > 0);
		CHECK(!err || err == -ESRCH);
		CHECK(err || proc_maps__find(maps, highest));
		nr_whole += !err;
		proc_maps__free(maps);
		waitpid(pid, NULL, 0);
	}
	printf("%d of 99 were read before they ended\n", nr_whole);
}

/* Where it is among them; nr: nowhere. (PIDs start anew: a later child may come first.) */
static size_t place_of(pid_t pid, const pid_t *pids, size_t nr)
{
	size_t at = 0;

	while (at < nr && pids[at] != pid)
		at++;
	return at;
}

static void descendants_come_parents_first(void)
{
	pid_t roots[1] = {getpid()}, children[2], *found = NULL;
	int fds[2] = {-1, -1};
	size_t nr = 0, before = 0;

	CHECK_EQ(proc_descendants(roots, 1, &found, &before), 0); /* the reader, if there is one */
	free(found);
	found = NULL;
	children[0] = spawn_waiting(&fds[0]);
	children[1] = spawn_waiting(&fds[1]);
	CHECK_EQ(proc_descendants(roots, 1, &found, &nr), 0);
	CHECK_EQ(nr, before + 2);
	CHECK(place_of(children[0], found, nr) < nr && place_of(children[1], found, nr) < nr);
	free(found);
	found = NULL;
	roots[0] = getppid(); /* a grandchild comes behind its parent */
	CHECK_EQ(proc_descendants(roots, 1, &found, &nr), 0);
	CHECK(place_of(getpid(), found, nr) < place_of(children[1], found, nr));
	CHECK(place_of(children[1], found, nr) < nr);
	free(found);
	for (int i = 0; i < 2; i++) /* both first: the second child holds the first one's pipe */
		close(fds[i]);
	for (int i = 0; i < 2; i++)
		waitpid(children[i], NULL, 0);
	roots[0] = getpid();
	found = NULL;
	CHECK_EQ(proc_descendants(roots, 1, &found, &nr), 0);
	CHECK(nr == before && !found == !before);
	free(found);
}

static pid_t thread_tid;
static pthread_barrier_t barrier;

static void *named_thread(void *unused)
{
	prctl(PR_SET_NAME, "worker");
	thread_tid = (pid_t)syscall(SYS_gettid);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return NULL;
}

static void threads_have_names(void)
{
	char comm[PROC_COMM_BYTES];
	struct proc_info info;
	pid_t *tids = NULL;
	pthread_t thread;
	size_t nr = 0;
	bool seen = false;

	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, named_thread, NULL);
	pthread_barrier_wait(&barrier);
	CHECK_EQ(proc_threads(getpid(), &tids, &nr), 0);
	CHECK(nr >= 2); /* sanitizers bring threads of their own */
	for (size_t i = 0; i < nr; i++) {
		seen |= tids[i] == thread_tid;
		CHECK(!i || tids[i] > tids[i - 1]);
	}
	CHECK(seen);
	CHECK_EQ(proc_thread_comm(getpid(), thread_tid, comm), 0);
	CHECK_STR(comm, "worker");
	CHECK_EQ(proc_info_read(thread_tid, &info), -ESRCH);
	CHECK(strstr(kprof_error_cause(), "is a thread of process"));
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&barrier);
	free(tids);
}

/* Runs a program under odd arguments and reads them back. */
static void command_lines_are_printable(void)
{
	char *text = NULL;
	pid_t pid;

	pid = fork();
	if (!pid) {
		execl("/bin/sh", "s\033h", "-c", "kill -STOP $$", "a\nb\xff",
		      "\xc3\xa9\xe2\x82\xac", "\xc2\x9b", NULL);
		_exit(1);
	}
	CHECK_EQ(waitpid(pid, NULL, WUNTRACED), pid);
	CHECK_EQ(proc_cmdline(pid, &text), 0);
	CHECK_STR(text, "s\\x1bh -c kill -STOP $$ a\\x0ab\\xff \xc3\xa9\xe2\x82\xac \\xc2\\x9b");
	free(text);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	CHECK_EQ(proc_cmdline(pid, &text), -ESRCH);
}

/*
 * Where the mapping itself cannot be opened (not root, or gone): by its path, as long as that leads
 * to the same file.
 */
static void by_its_path(void)
{
	char dir[] = "/tmp/kprof-proc-XXXXXX", file[64], link[64], path[512];
	struct proc_map map = {.start = 1, .end = 2, .flags = PROC_MAP_FILE};
	struct stat st;
	FILE *f;

	CHECK(mkdtemp(dir) != NULL);
	snprintf(file, sizeof(file), "%s/file", dir);
	snprintf(link, sizeof(link), "%s/link", dir);
	f = fopen(file, "w");
	CHECK(f && !fclose(f) && !stat(file, &st) && !symlink(file, link));
	map.inode = st.st_ino;
	map.path = file;
	CHECK_EQ(proc_map_open_path(getpid(), &map, path, sizeof(path)), 0);
	/* The kernel names no links: somebody has put this one there. */
	map.path = link;
	CHECK_EQ(proc_map_open_path(getpid(), &map, path, sizeof(path)), -ENOENT);
	map.path = file;
	map.inode++;
	CHECK_EQ(proc_map_open_path(getpid(), &map, path, sizeof(path)), -ENOENT);
	map.inode--;
	map.flags |= PROC_MAP_DELETED;
	CHECK_EQ(proc_map_open_path(getpid(), &map, path, sizeof(path)), -ENOENT);
	CHECK(!unlink(file) && !unlink(link) && !rmdir(dir));
}

static void cgroups(void)
{
	char one[] = "0::/user.slice/a:b\n",
	     many[] = "12:cpu,cpuacct:/\n1:name=systemd:/docker/x\n0::/\n", odd[] = "\n:\nno\n::\n",
	     none[] = "";

	CHECK_STR(proc_parse_cgroup(one), "/user.slice/a:b");
	CHECK_STR(proc_parse_cgroup(many), "/docker/x");
	CHECK_STR(proc_parse_cgroup(odd), "");
	CHECK_STR(proc_parse_cgroup(none), "");
}

#define AHEAD_S 1000

/* In a process that may die: makes a time namespace for its children. False: it may not. */
static bool new_time(void)
{
	static const char ahead[] = "monotonic 1000 5";
	int fd;
	bool done;

	if (unshare(CLONE_NEWTIME))
		return false;
	fd = open("/proc/self/timens_offsets", O_WRONLY);
	done = write(fd, ahead, strlen(ahead)) > 0;
	close(fd);
	return done;
}

/* Its own clock stays the machine's until it executes a program; its child's does not. */
static void time_namespaces(void)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		int release_fd;
		pid_t child;

		if (!new_time())
			_exit(77);
		child = spawn_waiting(&release_fd);
		_exit(proc_clock_shift(getpid()) != 0 ||
		      proc_clock_shift(child) != AHEAD_S * (int64_t)NSEC_PER_SEC + 5);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		printf("# skipped: no time namespaces\n");
	else
		CHECK_EQ(status, 0);
	CHECK_EQ(proc_clock_shift(getpid()), 0);
}

UNIT_MAIN(TEST(time_namespaces), TEST(cgroups), TEST(parses_every_kind_of_line),
	  TEST(finds_by_address), TEST(chains_the_mappings_of_a_file), TEST(a_later_line_wins),
	  TEST(junk_is_refused_and_a_cut_line_left_out), TEST(own_maps_hold_own_code),
	  TEST(a_memfd_opens), TEST(knows_itself), TEST(says_who_is_not_there),
	  TEST(a_zombie_is_one), TEST(all_mappings_or_none), TEST(descendants_come_parents_first),
	  TEST(threads_have_names), TEST(command_lines_are_printable), TEST(by_its_path))
