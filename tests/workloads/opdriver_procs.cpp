/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes that come and go while operators run: fork, exec, exit. */
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
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

static void read_reports(int fd, unsigned nr, struct result &r)
{
	r.more += ", \"children\": [";
	for (unsigned i = 0; i < nr; i++) {
		struct report rep;

		if (read(fd, &rep, sizeof(rep)) != sizeof(rep)) {
			r.ok = false;
			break;
		}
		r.more += std::string(i ? ", " : "") + "{\"pid\": " + std::to_string(rep.pid) +
			  ", \"ppid\": " + std::to_string(rep.ppid) +
			  ", \"counts\": " + counts_json(rep.counts) + "}";
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
