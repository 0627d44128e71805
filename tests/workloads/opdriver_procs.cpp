/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes that come and go while operators run: fork, exec, exit. */
#include <linux/sched.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "opdriver.hpp"

/* What a child tells its parent through a pipe. */
struct report {
	int pid;
	int ppid;
	uint64_t counts[FAKEOPS_NR];
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void run(const struct options &o, struct result &r)
{
	uint64_t plain = r.sum;

	for (uint64_t i = 0; i < o.n; i++) {
		rest(o, i);
		r.sum = mix(r.sum, op_linear(i));
		plain = mix(plain, plain_linear(i));
	}
	r.ok &= r.sum == plain;
}

/* This process's own calls since `before`. */
static void send_report(int fd, const uint64_t before[FAKEOPS_NR])
{
	struct report rep = {};

	rep.pid = getpid();
	rep.ppid = getppid();
	op_counts(rep.counts);
	for (int i = 0; i < FAKEOPS_NR; i++)
		rep.counts[i] -= before[i];
	if (write(fd, &rep, sizeof(rep)) != sizeof(rep)) /* shorter than PIPE_BUF: whole */
		_exit(3);
}

/* pid: the child's number for its parent, where it does not know that itself; else 0. */
static bool read_report(int fd, pid_t pid, struct result &r)
{
	struct report rep;

	r.ok &= read(fd, &rep, sizeof(rep)) == sizeof(rep);
	if (!r.ok)
		return false;
	r.more += "{\"pid\": " + std::to_string(pid ? pid : rep.pid) +
		  ", \"ppid\": " + std::to_string(rep.ppid) +
		  ", \"counts\": " + counts_json(rep.counts) + "}";
	return true;
}

static void read_reports(int fd, unsigned nr, struct result &r)
{
	r.more += ", \"children\": [";
	for (unsigned i = 0; i < nr; i++) {
		r.more += i ? ", " : "";
		if (!read_report(fd, 0, r))
			break;
	}
	r.more += "]";
}

static void reap(pid_t pid, struct result &r)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			die("opdriver: waitpid");
	r.ok &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- fork in the middle of an operator: it returns in both processes ---- */

static uint64_t fork_inside(void *arg)
{
	op_add(1);
	fflush(stdout);
	*(pid_t *)arg = fork();
	if (*(pid_t *)arg < 0)
		die("opdriver: fork");
	return op_add(2);
}

void mode_fork(const struct options &o, struct result &r)
{
	int fds[2];

	if (pipe(fds))
		die("opdriver: pipe");
	for (unsigned i = 0; i < o.children; i++) {
		uint64_t before[FAKEOPS_NR];
		pid_t pid;

		op_counts(before);
		r.sum = mix(r.sum, op_apply(fork_inside, &pid));
		if (!pid) {
			/*
			 * Beside its own calls the child has the apply and the add before the fork.
			 */
			before[FAKEOPS_APPLY]++;
			before[FAKEOPS_ADD]++;
			run(o, r);
			send_report(fds[1], before);
			_exit(r.ok ? 0 : 1);
		}
		run(o, r);
		reap(pid, r);
	}
	read_reports(fds[0], o.children, r);
}

/* ---- children that start while recording; with --exec they become a new program ---- */

static void exec_self(const struct options &o, int report_fd)
{
	std::string n = std::to_string(o.n), pace = std::to_string(o.pace_ms);
	std::string fd = std::to_string(report_fd);

	setenv("OPDRIVER_REPORT_FD", fd.c_str(), 1);
	execl("/proc/self/exe", o.self, "children", "--n", n.c_str(), "--children", "0", "--pace",
	      pace.c_str(), "--now", (char *)nullptr);
	_exit(127);
}

void mode_children(const struct options &o, struct result &r)
{
	const char *fd = getenv("OPDRIVER_REPORT_FD");
	uint64_t before[FAKEOPS_NR] = {};
	std::vector<pid_t> pids;
	int fds[2];

	if (fd) { /* we are such a child */
		run(o, r);
		send_report(atoi(fd), before);
		exit(r.ok ? 0 : 1);
	}
	if (pipe(fds))
		die("opdriver: pipe");
	fflush(stdout);
	op_counts(before);
	for (unsigned i = 0; i < o.children; i++) {
		pid_t pid = fork();

		if (pid < 0)
			die("opdriver: fork");
		if (!pid && o.exec_children)
			exec_self(o, fds[1]);
		if (!pid) {
			run(o, r);
			send_report(fds[1], before);
			_exit(r.ok ? 0 : 1);
		}
		pids.push_back(pid);
	}
	for (pid_t pid : pids)
		reap(pid, r);
	run(o, r);
	read_reports(fds[0], o.children, r);
}

/* ---- many children that live for a moment, one after the other ---- */

/* A new process in a PID namespace of its own: the parent alone knows its number. */
static pid_t clone_into_namespace(void)
{
	struct clone_args args = {};

	args.flags = CLONE_NEWPID;
	args.exit_signal = SIGCHLD;
	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

/* --how double: the child's child, which outlives its parent, does the work. */
static pid_t fork_twice(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	pid = fork();
	if (pid)
		_exit(pid < 0);
	return 0;
}

/* Not inlined: the child returns from it first, and the frame is then gone. */
static void vfork_child(const struct options &o, struct result &r, int fd)
{
	uint64_t before[FAKEOPS_NR];
	pid_t pid;

	op_counts(before);
	pid = vfork();
	if (pid < 0)
		die("opdriver: vfork");
	if (!pid && o.exec_children)
		exec_self(o, fd);
	if (!pid) {
		run(o, r);
		send_report(fd, before);
		_exit(0);
	}
	reap(pid, r);
	/* What the child counted, it counted in our memory. */
	if (!o.exec_children) {
		uint64_t now[FAKEOPS_NR];

		op_counts(now);
		for (int i = 0; i < FAKEOPS_NR; i++)
			r.counts[i] -= now[i] - before[i];
	}
}

static pid_t start_child(const struct options &o)
{
	const char *how = o.how ? o.how : "fork";
	pid_t pid = !strcmp(how, "clone3")   ? clone_into_namespace()
		    : !strcmp(how, "double") ? fork_twice()
					     : fork();

	if (pid < 0)
		die("opdriver: fork");
	return pid;
}

void mode_brood(const struct options &o, struct result &r)
{
	bool shares_memory = o.how && !strcmp(o.how, "vfork");
	int fds[2];

	if (pipe(fds))
		die("opdriver: pipe");
	run(o, r);
	r.more += ", \"children\": [";
	for (unsigned i = 0; i < o.children; i++) {
		uint64_t before[FAKEOPS_NR];
		pid_t pid = 0;

		op_counts(before);
		if (shares_memory) {
			vfork_child(o, r, fds[1]);
		} else {
			pid = start_child(o);
			if (!pid && o.exec_children)
				exec_self(o, fds[1]);
			if (!pid) {
				run(o, r);
				send_report(fds[1], before);
				_exit(r.ok ? 0 : 1);
			}
			reap(pid, r);
		}
		r.more += i ? ", " : "";
		read_report(fds[0], o.how && !strcmp(o.how, "clone3") ? pid : 0, r);
	}
	r.more += "]";
}

/* ---- children, each with a child of its own, that are there before the profiler ---- */

static std::vector<pid_t> family;
static int family_go[2], family_reports[2];

static void family_member(const struct options &o, pid_t child)
{
	uint64_t before[FAKEOPS_NR] = {};
	struct result r;
	char c;

	close(family_go[1]);
	while (read(family_go[0], &c, 1) > 0) /* ends when the eldest closes it */
		;
	run(o, r);
	send_report(family_reports[1], before);
	if (child)
		reap(child, r);
	_exit(r.ok ? 0 : 1);
}

void family_prepare(const struct options &o)
{
	if (pipe(family_go) || pipe(family_reports))
		die("opdriver: pipe");
	for (unsigned i = 0; i < o.children; i++) {
		pid_t pid = fork();

		if (pid < 0)
			die("opdriver: fork");
		if (!pid) {
			pid = fork();
			if (pid < 0)
				die("opdriver: fork");
			family_member(o, pid);
		}
		family.push_back(pid);
	}
}

void mode_family_run(const struct options &o, struct result &r)
{
	close(family_go[1]);
	run(o, r);
	read_reports(family_reports[0], 2 * o.children, r);
	for (pid_t pid : family)
		reap(pid, r);
}

/* ---- exec and exit from within an operator ---- */

static uint64_t exec_inside(void *arg)
{
	const struct options *o = (const struct options *)arg;
	uint64_t counts[FAKEOPS_NR];
	std::string n = std::to_string(o->n), pace = std::to_string(o->pace_ms);

	op_counts(counts);
	setenv("OPDRIVER_BEFORE", counts_json(counts).c_str(), 1);
	fflush(stdout);
	execl("/proc/self/exe", o->self, "exec", "--n", n.c_str(), "--pace", pace.c_str(), "--now",
	      o->linger ? "--linger" : (char *)nullptr, (char *)nullptr);
	die("opdriver: exec");
	return 0;
}

void mode_exec(const struct options &o, struct result &r)
{
	const char *before = getenv("OPDRIVER_BEFORE");

	run(o, r);
	if (!before)
		op_apply(exec_inside, (void *)&o);
	r.more = std::string(", \"before_exec\": ") + (before ? before : "null");
}

static uint64_t exit_inside(void *arg)
{
	const struct result *r = (const struct result *)arg;
	uint64_t counts[FAKEOPS_NR];

	op_counts(counts);
	printf("{\"mode\": \"exit\", \"pid\": %d, \"checksum\": \"%016llx\", \"ok\": %s, "
	       "\"counts\": %s}\n",
	       getpid(), (unsigned long long)r->sum, r->ok ? "true" : "false",
	       counts_json(counts).c_str());
	fflush(stdout);
	_exit(r->ok ? 0 : 1);
}

void mode_exit(const struct options &o, struct result &r)
{
	run(o, r);
	op_apply(exit_inside, &r);
}
