// SPDX-License-Identifier: BSD-2-Clause
/* Processes, threads and children from /proc; proc(5). The maps are in proc_maps.c. */
#include "capture/process/priv.h"

#include <ctype.h>
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/error.h"
#include "util/foreign.h"
#include "util/utf8.h"
#include "util/util.h"

/* PF_KTHREAD and PF_EXITING, include/linux/sched.h; field 9 of stat */
#define PROC_PF_KTHREAD 0x00200000u
#define PROC_PF_EXITING 0x00000004u
#define PROC_STAT_MAX_BYTES 65536
#define PROC_CGROUP_MAX_BYTES 65536
#define PROC_ENVIRON_MAX_BYTES (1u << 20)
#define PROC_CMDLINE_MAX_BYTES (8u << 20) /* the kernel allows 6 MiB of arguments */

/* Sets the error for what could not be read of a process. Returns a negative errno. */
static int proc_error(pid_t pid, int err, const char *what)
{
	if (err == -ENOENT || err == -ESRCH || err == -ENOTDIR)
		return error_set(-ESRCH, "kprof list shows the processes that can be profiled",
				 "no process %d", (int)pid);
	if (err == -EACCES || err == -EPERM)
		return error_set_machine(-EACCES, "run it with sudo",
					 "%s of process %d cannot be read: permission denied", what,
					 (int)pid);
	return error_set(err, NULL, "%s of process %d cannot be read: %s", what, (int)pid,
			 strerror(-err));
}

static int read_proc(pid_t pid, const char *file, size_t max_bytes, char **out, size_t *bytes)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	return read_file(path, max_bytes, out, bytes);
}

/* ---- identity ---- */

/* "PID (comm) S ppid …": the name may hold blanks and parentheses, so its end is the last ")". */
int proc_parse_stat(char *text, struct proc_info *out)
{
	unsigned long long start, utime, stime, rss = 0;
	unsigned int flags;
	char *open = strchr(text, '('), *close = strrchr(text, ')');
	int ppid;
	long nr_threads;

	if (!open || !close || close < open)
		return -EPROTO;
	*close = '\0';
	snprintf(out->comm, sizeof(out->comm), "%s", open + 1);
	if (sscanf(close + 1,
		   " %c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %ld %*d %llu %*u %llu",
		   &out->state, &ppid, &flags, &utime, &stime, &nr_threads, &start, &rss) < 7)
		return -EPROTO;
	out->ppid = ppid;
	out->nr_threads = nr_threads > 0 ? (uint32_t)nr_threads : 0;
	out->start_ticks = start;
	out->cpu_ticks = utime + stime;
	out->rss_pages = rss;
	out->zombie = out->state == 'Z' || out->state == 'X' || out->state == 'x';
	out->kernel_thread = flags & PROC_PF_KTHREAD;
	out->exiting = flags & PROC_PF_EXITING;
	return 0;
}

static int read_stat(pid_t pid, struct proc_info *out)
{
	char *text;
	int err = read_proc(pid, "stat", PROC_STAT_MAX_BYTES, &text, NULL);

	if (err)
		return err;
	err = proc_parse_stat(text, out);
	free(text);
	return err;
}

int proc_stat_read(pid_t pid, struct proc_info *out)
{
	*out = (struct proc_info){.pid = pid};
	return read_stat(pid, out);
}

const char *proc_status_value(const char *text, const char *key)
{
	size_t len = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, key, len) && line[len] == ':')
			return line + len + 1;
	}
	return "";
}

/* The last number of a list of PIDs in namespaces, outermost first; `outer` when it is empty. */
static pid_t innermost(const char *ns, pid_t outer)
{
	for (;;) {
		char *end;
		long n = strtol(ns, &end, 10);

		if (end == ns) /* the next line, which begins with its key */
			return outer;
		outer = (pid_t)n;
		ns = end;
	}
}

int proc_parse_status(const char *text, struct proc_info *out, pid_t *tgid)
{
	*tgid = (pid_t)strtol(proc_status_value(text, "Tgid"), NULL, 10);
	out->ns_pid = innermost(proc_status_value(text, "NSpid"), out->pid);
	return sscanf(proc_status_value(text, "Uid"), "%*u %u", &out->uid) == 1 ? 0 : -EPROTO;
}

int proc_info_read(pid_t pid, struct proc_info *out)
{
	char *status;
	pid_t tgid = 0;
	int err;

	*out = (struct proc_info){.pid = pid};
	err = pid > 0 ? read_stat(pid, out) : -ESRCH;
	if (!err)
		err = read_proc(pid, "status", PROC_STAT_MAX_BYTES, &status, NULL);
	if (!err) {
		err = proc_parse_status(status, out, &tgid);
		free(status);
	}
	if (err)
		return proc_error(pid, err, "the state");
	if (tgid != pid) /* pid is a thread: /proc/TID exists too, though it is not listed */
		return error_set(-ESRCH, "give the process's number",
				 "%d is a thread of process %d, not a process", (int)pid,
				 (int)tgid);
	return 0;
}

bool proc_alive(pid_t pid, uint64_t start_ticks)
{
	struct proc_info info;

	return !read_stat(pid, &info) && !info.zombie && info.start_ticks == start_ticks;
}

/*
 * A process that has made a time namespace for its children, which it enters at its next exec: the
 * offsets in /proc are those of the new one.
 */
static bool has_one_for_children(pid_t pid)
{
	char path[64], own[64], theirs[64];
	ssize_t bytes;

	snprintf(path, sizeof(path), "/proc/%d/ns/time", (int)pid);
	bytes = readlink(path, own, sizeof(own));
	snprintf(path, sizeof(path), "/proc/%d/ns/time_for_children", (int)pid);
	return bytes > 0 && readlink(path, theirs, sizeof(theirs)) > 0 &&
	       memcmp(own, theirs, (size_t)bytes) != 0;
}

int64_t proc_clock_shift(pid_t pid)
{
	long long s = 0, ns = 0;
	char *text;

	if (has_one_for_children(pid))
		return 0;
	if (read_proc(pid, "timens_offsets", 4096, &text, NULL))
		return 0; /* a kernel without, or a process that has ended */
	if (sscanf(text, "monotonic %lld %lld", &s, &ns) != 2)
		s = ns = 0;
	free(text);
	return (int64_t)(s * (long long)NSEC_PER_SEC + ns);
}

int proc_exe(pid_t pid, char **out)
{
	static const char deleted[] = " (deleted)";
	char path[64], target[PATH_MAX];
	ssize_t n;
	size_t len;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return proc_error(pid, -errno, "the executable");
	len = (size_t)n;
	if (len > sizeof(deleted) - 1 &&
	    !memcmp(target + len - (sizeof(deleted) - 1), deleted, sizeof(deleted) - 1))
		len -= sizeof(deleted) - 1;
	*out = strndup(target, len);
	return *out ? 0 : -ENOMEM;
}

char *proc_escape_args(const char *args, size_t bytes)
{
	char *out = malloc(bytes * 4 + 1), *to = out;

	if (!out)
		return NULL;
	for (size_t i = 0; i < bytes;) {
		size_t n = utf8_printable_len(args + i, bytes - i);

		if (n) {
			memcpy(to, args + i, n);
			to += n;
		} else if (!args[i]) {
			*to++ = ' ';
		} else {
			to += sprintf(to, "\\x%02x", (unsigned char)args[i]);
		}
		i += n ? n : 1;
	}
	*to = '\0';
	return out;
}

char *proc_cmdline_of(const char *args, size_t bytes)
{
	while (bytes && !args[bytes - 1])
		bytes--;
	return proc_escape_args(args, bytes);
}

int proc_cmdline(pid_t pid, char **out)
{
	char comm[PROC_COMM_BYTES], name[PROC_COMM_BYTES + 2], *args;
	size_t bytes = 0;
	int err;

	err = read_proc(pid, "cmdline", PROC_CMDLINE_MAX_BYTES, &args, &bytes);
	if (err)
		return proc_error(pid, err, "the command line");
	while (bytes && !args[bytes - 1])
		bytes--;
	if (bytes) {
		*out = proc_escape_args(args, bytes);
	} else {
		err = proc_thread_comm(pid, pid, comm);
		snprintf(name, sizeof(name), "[%s]", err ? "" : comm);
		*out = err ? NULL : proc_escape_args(name, strlen(name));
	}
	free(args);
	if (err)
		return err;
	return *out ? 0 : error_set(-ENOMEM, NULL, "out of memory");
}

const char *proc_find_variable(const char *block, size_t bytes, const char *name)
{
	size_t len = strlen(name);

	for (const char *p = block; p < block + bytes; p += strlen(p) + 1)
		if (!strncmp(p, name, len) && p[len] == '=')
			return p + len + 1;
	return NULL;
}

char *proc_environment(pid_t pid, const char *name)
{
	char *block, *value;
	const char *found;
	size_t bytes;

	if (read_proc(pid, "environ", PROC_ENVIRON_MAX_BYTES, &block, &bytes))
		return NULL;
	found = proc_find_variable(block, bytes, name);
	value = found ? strdup(found) : NULL;
	free(block);
	return value;
}

int proc_is_32bit(pid_t pid)
{
	unsigned char ident[EI_NIDENT];
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	fd = open_in_root("", path, 0);
	if (fd < 0)
		return proc_error(pid, fd, "the executable");
	n = read(fd, ident, sizeof(ident));
	close(fd);
	if (n != (ssize_t)sizeof(ident) || memcmp(ident, ELFMAG, SELFMAG))
		return error_set(-ENOEXEC, NULL, "the executable of process %d is no ELF file",
				 (int)pid);
	return ident[EI_CLASS] == ELFCLASS32;
}

/* The path of a line "number:controllers:path"; NULL: it is not of that form. */
static char *cgroup_path(char *line)
{
	char *at = strchr(line, ':');

	at = at ? strchr(at + 1, ':') : NULL;
	return at ? at + 1 : NULL;
}

const char *proc_parse_cgroup(char *text)
{
	char *next;
	const char *longest = "";

	for (char *line = strtok_r(text, "\n", &next); line; line = strtok_r(NULL, "\n", &next)) {
		char *path = cgroup_path(line);

		if (path && strlen(path) > strlen(longest))
			longest = path;
	}
	return longest;
}

int proc_cgroup(pid_t pid, char **out)
{
	char *text;
	int err = read_proc(pid, "cgroup", PROC_CGROUP_MAX_BYTES, &text, NULL);

	if (err)
		return proc_error(pid, err, "the cgroup");
	*out = strdup(proc_parse_cgroup(text));
	free(text);
	return *out ? 0 : -ENOMEM;
}

/* ---- threads and children ---- */

static int compare_pids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

/* Lists the names in a directory that are numbers, sorted. Sets no error text. */
static int list_numbers(const char *path, pid_t **out, size_t *nr_out)
{
	pid_t *pids = NULL;
	size_t nr = 0, cap = 0;
	struct dirent *entry;
	int err = 0;
	DIR *dir = opendir(path);

	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		err = vec_grow((void **)&pids, &cap, nr, sizeof(*pids));
		if (err)
			break;
		pids[nr++] = (pid_t)strtol(entry->d_name, NULL, 10);
	}
	closedir(dir);
	if (err) {
		free(pids);
		return err;
	}
	if (nr)
		qsort(pids, nr, sizeof(pid_t), compare_pids);
	*out = pids;
	*nr_out = nr;
	return 0;
}

int proc_thread_read(pid_t pid, pid_t tid, const char *file, char **out)
{
	char path[40];

	snprintf(path, sizeof(path), "task/%d/%s", (int)tid, file);
	return read_proc(pid, path, PROC_STAT_MAX_BYTES, out, NULL);
}

int proc_thread_comm(pid_t pid, pid_t tid, char comm[PROC_COMM_BYTES])
{
	char *text;
	int err = proc_thread_read(pid, tid, "comm", &text);

	if (err)
		return proc_error(pid, err, "a thread's name");
	text[strcspn(text, "\n")] = '\0';
	snprintf(comm, PROC_COMM_BYTES, "%s", text);
	free(text);
	return 0;
}

char proc_thread_state(pid_t pid, pid_t tid)
{
	struct proc_info info = {.state = 'X'};
	char *text;

	if (!proc_thread_read(pid, tid, "stat", &text)) {
		proc_parse_stat(text, &info);
		free(text);
	}
	return info.exiting ? 'X' : info.state;
}

pid_t proc_thread_ns_tid(pid_t pid, pid_t tid)
{
	char *text;
	pid_t inner;
	int err = proc_thread_read(pid, tid, "status", &text);

	if (err)
		return proc_error(pid, err, "a thread's status");
	inner = innermost(proc_status_value(text, "NSpid"), tid);
	free(text);
	return inner;
}

int proc_threads(pid_t pid, pid_t **out, size_t *nr)
{
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	err = list_numbers(path, out, nr);
	if (!err && !*nr)
		err = -ESRCH;
	return err ? proc_error(pid, err, "the threads") : 0;
}

int proc_pids(pid_t **out, size_t *nr)
{
	int err = list_numbers("/proc", out, nr);

	if (err)
		return error_set(err, "is /proc mounted?", "/proc cannot be read: %s",
				 strerror(-err));
	return 0;
}

static pid_t read_ppid(pid_t pid)
{
	struct proc_info info;

	return read_stat(pid, &info) ? -1 : info.ppid;
}

static bool is_among(const pid_t *pids, size_t nr, pid_t pid)
{
	for (size_t i = 0; i < nr; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

int proc_descendants(const pid_t *roots, size_t nr_roots, pid_t **out, size_t *nr)
{
	pid_t *pids = NULL, *parents = NULL, *found = NULL;
	size_t nr_pids = 0, nr_found = 0;
	int err;

	err = proc_pids(&pids, &nr_pids);
	if (err)
		return err;
	parents = calloc(nr_pids + 1, sizeof(*parents));
	found = calloc(nr_pids + 1, sizeof(*found));
	if (!parents || !found) {
		err = error_set(-ENOMEM, NULL, "out of memory");
		goto out;
	}
	for (size_t i = 0; i < nr_pids; i++)
		parents[i] = read_ppid(pids[i]);
	/* Breadth first: first children of the given processes, then of those found, each once. */
	for (size_t at = 0; at < nr_roots + nr_found; at++) {
		pid_t parent = at < nr_roots ? roots[at] : found[at - nr_roots];

		for (size_t i = 0; i < nr_pids; i++)
			if (parents[i] == parent && !is_among(roots, nr_roots, pids[i]) &&
			    !is_among(found, nr_found, pids[i]))
				found[nr_found++] = pids[i];
	}
	*nr = nr_found;
	*out = nr_found ? found : NULL;
	if (nr_found)
		found = NULL;
out:
	free(pids);
	free(parents);
	free(found);
	return err;
}
