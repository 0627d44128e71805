/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What can be found out about processes from outside, without touching them: identity, threads,
 * children, mapped files (all from /proc), memory, the frameworks that they use, and their root
 * directories.
 *
 * Processes come and go while they are read: every function that returns an int may fail with
 * -ESRCH (the process is gone, or is a zombie and has no maps) or -EACCES, and then sets cause and
 * hint (util/error.h). PIDs are those of the reader's PID namespace.
 */
#ifndef KPROF_CAPTURE_PROCESS_H
#define KPROF_CAPTURE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* ---- identity ---- */

#define PROC_COMM_BYTES 64 /* TASK_COMM_LEN is 16; kernel threads show more ("kworker/…") */

struct proc_info {
	pid_t pid, ppid;
	/* its PID in its innermost PID namespace; equal to pid when that is the reader's */
	pid_t ns_pid;
	uid_t uid; /* effective */
	uint32_t nr_threads;
	/* start time since boot, in clock ticks; identifies the process together with the PID */
	uint64_t start_ticks;
	uint64_t cpu_ticks; /* CPU time so far, of all threads, in clock ticks */
	uint64_t rss_pages; /* memory that it has in RAM, in pages */
	char state;         /* 'R', 'S', 'D', 'T', 't', 'Z', … as in proc(5) */
	bool zombie;        /* has exited, but its parent has not waited for it yet */
	bool exiting;       /* in the kernel's exit(), which may wait for what it leaves */
	bool kernel_thread;
	char comm[PROC_COMM_BYTES];
};

int proc_info_read(pid_t pid, struct proc_info *out);
/* Only what /proc/PID/stat says, which is cheap: not ns_pid and uid. -errno; sets no error. */
int proc_stat_read(pid_t pid, struct proc_info *out);
/* Does the process with this start time still live? (A zombie does not.) */
bool proc_alive(pid_t pid, uint64_t start_ticks);
/* By how much its CLOCK_MONOTONIC is ahead of the machine's (time namespaces), in ns. */
int64_t proc_clock_shift(pid_t pid);

/* The executable's path as the process sees it, " (deleted)" removed; malloc'ed. */
int proc_exe(pid_t pid, char **out);
/*
 * Arguments joined by blanks, control characters and invalid UTF-8 escaped as \xNN; malloc'ed.
 * "[comm]" where there are none (kernel threads, zombies).
 */
int proc_cmdline(pid_t pid, char **out);
/* The same from the arguments themselves, each with its final NUL. NULL: no memory. */
char *proc_cmdline_of(const char *args, size_t bytes);
/*
 * The value that a variable had when the process's program was started, malloc'ed. NULL: it was not
 * set, or cannot be read.
 */
char *proc_environment(pid_t pid, const char *name);
/*
 * The path of its cgroup, as seen from kprof's cgroup namespace, malloc'ed. Of several hierarchies
 * (version 1), the longest path: that which says most.
 */
int proc_cgroup(pid_t pid, char **out);
/* 1: runs a 32-bit executable; 0: a 64-bit one; negative errno. */
int proc_is_32bit(pid_t pid);

/* ---- threads and children ---- */

/* The TIDs of a process's threads, in their order; *out is malloc'ed. */
int proc_threads(pid_t pid, pid_t **out, size_t *nr);
/* Reads a file of /proc/PID/task/TID as a text, malloc'ed. Sets no error. */
int proc_thread_read(pid_t pid, pid_t tid, const char *file, char **out);
/* The value of "Key:" in the text of a file called status; "": there is no such line. */
const char *proc_status_value(const char *text, const char *key);
/* As in struct proc_info; 'X': the thread has ended, or is ending. */
char proc_thread_state(pid_t pid, pid_t tid);
/* The name (comm) of one thread. */
int proc_thread_comm(pid_t pid, pid_t tid, char comm[PROC_COMM_BYTES]);
/* The thread's TID in its innermost PID namespace; or -errno. */
pid_t proc_thread_ns_tid(pid_t pid, pid_t tid);
/* Every process, in order of PID; *out is malloc'ed. */
int proc_pids(pid_t **out, size_t *nr);
/*
 * Descendants of the given processes (without these), parents before their children, from one pass
 * over /proc. *out is malloc'ed; NULL when there are none.
 */
int proc_descendants(const pid_t *ancestors, size_t nr_ancestors, pid_t **out, size_t *nr);

/* ---- memory ---- */

/* Reads all bytes of a range of memory, or fails: 0 or -errno. */
int process_read(pid_t pid, uint64_t address, void *to, size_t bytes);
/* Reads from a range as far as it is readable. Returns the number of bytes, or -errno. */
ssize_t process_read_some(pid_t pid, uint64_t address, void *to, size_t bytes);
/*
 * Reads a string with its terminating NUL, cut to what fits. Returns 0 or -EFAULT. Reads page by
 * page, because the next page may not be mapped.
 */
int process_read_string(pid_t pid, uint64_t address, char *to, size_t bytes);

/* ---- mapped files ---- */

enum proc_map_flags {
	PROC_MAP_READ = 1,
	PROC_MAP_WRITE = 2,
	PROC_MAP_EXEC = 4,
	PROC_MAP_SHARED = 8,
	PROC_MAP_FILE = 16,    /* maps a file (or memfd): path is a file's, inode is not 0 */
	PROC_MAP_DELETED = 32, /* the file has no name any more (PROC_MAP_FILE is set, too) */
};

struct proc_map {
	uint64_t start, end; /* addresses; end is the first one after the mapping */
	uint64_t offset;     /* offset in the file of start, in bytes */
	uint64_t inode;
	dev_t dev;      /* as the kernel prints it: not always st_dev (btrfs, overlayfs) */
	uint32_t flags; /* enum proc_map_flags */
	/*
	 * The path as the process sees it in its own mount namespace, without " (deleted)", and
	 * with newlines that the kernel escaped as \012 restored. Also "[heap]", "/memfd:NAME"; "":
	 * anonymous. Owned by the snapshot.
	 */
	const char *path;
};

/*
 * A snapshot of /proc/PID/maps, in order of address. NULL is one without any mapping: of a process
 * that has ended before it could be read.
 */
struct proc_maps;

int proc_maps__read(pid_t pid, struct proc_maps **out);
/* Sets the error for a process without any mapping: one of the kernel's, or one that has exited. */
int proc_maps__none(const struct proc_info *info);
/* The same from a text in the format of /proc/PID/maps, which may be freed afterwards. */
int proc_maps__parse(const char *text, struct proc_maps **out);
size_t proc_maps__nr(const struct proc_maps *maps);
const struct proc_map *proc_maps__at(const struct proc_maps *maps, size_t i);
/* The mapping that holds the address; NULL: none. */
const struct proc_map *proc_maps__find(const struct proc_maps *maps, uint64_t addr);
/* The next mapping of the same file (by device and inode) after this one, or NULL. */
const struct proc_map *proc_maps__next_of_file(const struct proc_maps *maps,
					       const struct proc_map *map);
/*
 * The first mapping of the same file. To visit each file once, take the mappings that are the first
 * of theirs.
 */
const struct proc_map *proc_maps__first_of_file(const struct proc_maps *maps,
						const struct proc_map *map);
/* Does the process map code of this file? map: the file's first mapping. */
bool proc_maps__has_code(const struct proc_maps *maps, const struct proc_map *map);
/* The same snapshot, for a second owner. */
struct proc_maps *proc_maps__share(struct proc_maps *maps);
void proc_maps__free(struct proc_maps *maps);

/*
 * Calls fn for each mapping of a file's code in the process, in order of address. name: the last
 * component of the file's path. Cheaper than a snapshot, for looking at every process there is.
 * Sets no error text.
 */
typedef void (*proc_code_fn)(void *ctx, uint64_t inode, const char *name);
int proc_code_files(pid_t pid, proc_code_fn fn, void *ctx);

/* ---- what the kernel tells of all processes, by perf events ---- */

enum proc_news_kind {
	PROC_NEWS_FORK, /* the process begins */
	PROC_NEWS_EXEC, /* it executes another program */
	PROC_NEWS_MAP,  /* it has mapped code of a file */
	PROC_NEWS_EXIT, /* its first thread has ended */
};

struct proc_news {
	enum proc_news_kind kind;
	pid_t pid, parent;   /* parent: of a fork */
	uint64_t time_ns;    /* CLOCK_MONOTONIC */
	struct proc_map map; /* of PROC_NEWS_MAP; its path is as the process sees it */
};

struct proc_news_reader;

/* fn: what *news refers to is valid during the call. */
typedef void (*proc_news_fn)(void *ctx, const struct proc_news *news);
/* Begins to listen. -errno where perf events of all processes are not allowed. */
int proc_news__new(struct proc_news_reader **out);
void proc_news__free(struct proc_news_reader *n); /* NULL is fine */
/*
 * Reports all that the kernel has told since the last call, CPU by CPU: not in the order of time.
 */
void proc_news__read(struct proc_news_reader *n, proc_news_fn fn, void *ctx);
/* Records that the kernel had no room for. */
uint64_t proc_news__lost(const struct proc_news_reader *n);

/* The last component of a path; the whole path when it has no slash. */
const char *proc_basename(const char *path);

/*
 * A path that opens the mapped file from kprof's mount namespace: /proc/PID/map_files/START-END
 * (works for deleted files and memfds; needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE), else
 * /proc/PID/root/PATH if that has the same inode. -ENOENT when neither opens it.
 */
int proc_map_open_path(pid_t pid, const struct proc_map *map, char *buf, size_t bytes);

/* ---- frameworks and runtimes, found by the names of mapped files ---- */

#define DISCOVER_VERSION_BYTES 64

/* "3.11" from libpython3.11.so.1.0 or an executable python3.11; "": not a Python process. */
void discover_python(pid_t pid, const struct proc_maps *maps, char version[DISCOVER_VERSION_BYTES]);
/* The frameworks found, "pytorch 2.9.1, jax"; "": none. */
void discover_frameworks(pid_t pid, const struct proc_maps *maps, char *out, size_t bytes);
/* The device runtimes found, "cuda 13.0.96, opencl 1.0.0"; "": none. */
void discover_runtimes(const struct proc_maps *maps, char *out, size_t bytes);

/* ---- root directories ---- */

/*
 * The root directories of processes whose root is not kprof's (containers, chroots). They are held
 * open, so that debug files can be searched in them after a process has ended. Its mount namespace
 * is not held open, so that mounts below the root directory (a container's volumes) do not stay
 * busy; their files cannot be reached after the process has ended.
 */
#define PROCESS_ROOTS_MAX 64 /* a limit, because each keeps a mount busy */

struct process_root {
	uint64_t mounts, dev, inode; /* number of the mount namespace; the directory */
	int fd;                      /* descriptor of the root directory (O_PATH) */
	char path[32];
};

struct process_roots {
	size_t nr;
	struct process_root all[PROCESS_ROOTS_MAX];
	struct process_root own; /* kprof's, which stays the same; .mounts 0: not known, no .fd */
};

/*
 * The path of a process's root directory, valid until process_roots__close(). "": the same as
 * kprof's, cannot be opened, or there are too many.
 */
const char *process_roots__of(struct process_roots *all, pid_t pid);
void process_roots__close(struct process_roots *all);

/* ---- Java's virtual machine ---- */

/* A child process that asks a JVM to write the names of its compiled code to its perf map. */
struct jvm_ask { /* all zero: nobody is asked */
	pid_t child;
	int fd;
	uint64_t deadline_ns;
};

int jvm_ask__begin(pid_t pid, uint64_t start_ticks, struct jvm_ask *out);
/*
 * The answer, which is waited for at most wait_ms, and the end of it unless it is JVM_ASKING. 0:
 * the file is written. -ESRCH: the process has ended; -EINVAL: it is no JVM, or handles no SIGQUIT;
 * -EACCES: its attach mechanism is disabled; -EOPNOTSUPP: its JDK is older than 17; -EPERM: another
 * process answered; -ETIMEDOUT: it did not answer; others.
 */
int jvm_ask__answer(struct jvm_ask *a, int wait_ms);
#define JVM_ASKING 1
/* Gives it up. */
void jvm_ask__end(struct jvm_ask *a);

/* ---- a program that is recorded from its first instruction ---- */

/* A child process that waits between fork and exec. */
struct spawn {      /* all zero: nothing was started */
	pid_t pid;  /* 0: nothing was started */
	bool waits; /* between fork and exec; the next three are set */
	int go;     /* a byte written here lets the child go on */
	int error;  /* pipe that reports the errno of a failed exec */
	const char *name;
};

struct spawn_opts {
	char *const *argv; /* must stay valid until spawn__release() */
	uid_t uid;         /* (uid_t)-1, (gid_t)-1: as the caller */
	gid_t gid;
	uint64_t ignores; /* signals that it ignores: bit n - 1 is signal n */
	/* called in the child before exec; may be NULL */
	void (*prepare)(const void *arg);
	const void *arg;
};

/* Starts the child, which then waits. Sets error and hint. */
int spawn__start(struct spawn *s, const struct spawn_opts *opts);
/*
 * Lets the child execute its program. Returns 0 (also when no child waits), or a negative errno
 * when exec failed.
 */
int spawn__release(struct spawn *s);
/* Ends a child that still waits. */
void spawn__abandon(struct spawn *s);
/*
 * Changes this process's environment from one user's to another's, as sudo -u does: HOME, SHELL,
 * USER, LOGNAME, MAIL, XDG_RUNTIME_DIR. What is neither unset nor the first user's has been chosen
 * by somebody, and stays.
 */
void spawn_env_change(uid_t from, uid_t to);

#endif
