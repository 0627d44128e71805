/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What can be found out about processes from outside, without touching them: identity, threads,
 * children, mapped files (all from /proc), memory, which frameworks they use, and where they see
 * "/".
 *
 * Processes come and go while they are read: every function that returns an int may fail with
 * -ESRCH (gone, or about to be: a zombie has no maps) or -EACCES, and sets cause and hint
 * (util/error.h) when it does. PIDs are those of the reader's PID namespace.
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
	pid_t ns_pid; /* its own number in its innermost PID namespace; pid when that is ours */
	uid_t uid;    /* effective */
	gid_t gid;    /* effective */
	uint32_t nr_threads;
	uint64_t start_ticks; /* since boot, in clock ticks: with the PID, who it is */
	char state;           /* 'R', 'S', 'D', 'T', 't', 'Z', … as in proc(5) */
	bool zombie;          /* has exited, not yet waited for */
	bool kernel_thread;
	char comm[PROC_COMM_BYTES];
};

int proc_info_read(pid_t pid, struct proc_info *out);
/* The process that had this start time still lives (a zombie does not). */
bool proc_alive(pid_t pid, uint64_t start_ticks);

/* The executable's path as the process sees it, " (deleted)" removed; malloc'ed. */
int proc_exe(pid_t pid, char **out);
/*
 * Arguments joined by blanks, control characters and invalid UTF-8 escaped as \xNN; malloc'ed.
 * "[comm]" where there are none (kernel threads, zombies).
 */
int proc_cmdline(pid_t pid, char **out);
/* 1: runs a 32-bit executable; 0: a 64-bit one; negative errno. */
int proc_is_32bit(pid_t pid);

/* ---- threads and children ---- */

struct proc_thread {
	pid_t tid;
	char comm[PROC_COMM_BYTES];
};

/* Threads of a process in order of tid; *out is malloc'ed. */
int proc_threads(pid_t pid, struct proc_thread **out, size_t *nr);
/* Name of one thread. */
int proc_thread_comm(pid_t pid, pid_t tid, char comm[PROC_COMM_BYTES]);
/* The thread's number in its innermost PID namespace; -errno. */
pid_t proc_thread_ns_tid(pid_t pid, pid_t tid);
/* Every process, in order of PID; *out is malloc'ed. */
int proc_pids(pid_t **out, size_t *nr);
/*
 * Descendants of the given processes, these not included, parents before their children, from one
 * pass over /proc. *out is malloc'ed, NULL when there are none.
 */
int proc_descendants(const pid_t *ancestors, size_t nr_ancestors, pid_t **out, size_t *nr);

/* ---- memory ---- */

/* All of it or nothing: 0 or -EFAULT. */
int process_read(pid_t pid, uint64_t address, void *to, size_t bytes);
/* How many bytes from the first one on could be read; -errno. */
ssize_t process_read_some(pid_t pid, uint64_t address, void *to, size_t bytes);
/*
 * A string with its end, cut to what fits; 0 or -EFAULT. Reads page by page: the next one may not
 * be mapped.
 */
int process_read_string(pid_t pid, uint64_t address, char *to, size_t bytes);

/* ---- mapped files ---- */

enum proc_map_flags {
	PROC_MAP_READ = 1,
	PROC_MAP_WRITE = 2,
	PROC_MAP_EXEC = 4,
	PROC_MAP_SHARED = 8,
	PROC_MAP_FILE = 16,    /* it maps a file (a memfd too): path is one, inode is not 0 */
	PROC_MAP_DELETED = 32, /* … that has no name any more */
};

struct proc_map {
	uint64_t start, end; /* addresses; end is the first one after it */
	uint64_t offset;     /* bytes into the file where start lies */
	uint64_t inode;
	dev_t dev;      /* as the kernel prints it: not always st_dev (btrfs, overlayfs) */
	uint32_t flags; /* enum proc_map_flags */
	/*
	 * As the process sees it, in its own mount namespace, without " (deleted)" and with the
	 * kernel's \012 put back; "[heap]", "/memfd:NAME"; "" anonymous. Belongs to the snapshot.
	 */
	const char *path;
};

/* A snapshot of /proc/PID/maps, in order of address. */
struct proc_maps;

int proc_maps__read(pid_t pid, struct proc_maps **out);
/* The same from a text that looks like /proc/PID/maps; the text may be freed afterwards. */
int proc_maps__parse(const char *text, struct proc_maps **out);
size_t proc_maps__nr(const struct proc_maps *maps);
const struct proc_map *proc_maps__at(const struct proc_maps *maps, size_t i);
/* The mapping that holds the address; NULL: none. */
const struct proc_map *proc_maps__find(const struct proc_maps *maps, uint64_t addr);
/* The next mapping of the same file (by device and inode) after this one, or NULL. */
const struct proc_map *proc_maps__next_of_file(const struct proc_maps *maps,
					       const struct proc_map *map);
/* The first mapping of this map's file: iterating files means taking maps that are their own. */
const struct proc_map *proc_maps__first_of_file(const struct proc_maps *maps,
						const struct proc_map *map);
void proc_maps__free(struct proc_maps *maps);

/* Last component of a path; the whole where it has no slash. */
const char *proc_basename(const char *path);

/*
 * A path that opens this very file from our mount namespace: /proc/PID/map_files/START-END (works
 * for deleted files and memfds; needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE), else
 * /proc/PID/root/PATH if that is the same inode. -ENOENT when neither opens it.
 */
int proc_map_open_path(pid_t pid, const struct proc_map *map, char *buf, size_t bytes);

/* ---- what runs in it: by the names of the files it has mapped ---- */

struct catalog_framework;

#define DISCOVER_VERSION_BYTES 64

/* The first mapping of a library of the framework; NULL: the process does not use it. */
const struct proc_map *discover_library(const struct proc_maps *maps,
					const struct catalog_framework *fw);
/*
 * The framework's release ("2.15.0+cu132"), from its version file as the process sees it, else from
 * the library's file name (libtorch_cpu.so.1.13 → "1.13"); "" where neither shows it.
 */
void discover_version(pid_t pid, const struct proc_maps *maps, const struct catalog_framework *fw,
		      char version[DISCOVER_VERSION_BYTES]);
/* "3.11" from libpython3.11.so.1.0 or an executable python3.11; "" not a Python process. */
void discover_python(pid_t pid, const struct proc_maps *maps, char version[DISCOVER_VERSION_BYTES]);
/* Runtimes found, "cuda 13.0.96, opencl 1.0.0"; "" none. */
void discover_runtimes(const struct proc_maps *maps, char *out, size_t bytes);

/* ---- root directories ---- */

/*
 * The directories that processes see as "/" where that is not ours (containers, chroots): held
 * open, so that debug files can be looked for in them when the process has ended. The mount
 * namespace is not held: what is mounted below them in it, a container's volumes, must not stay
 * busy for our sake, and cannot be reached then.
 */
#define PROCESS_ROOTS_MAX 64 /* each keeps a mount busy */

struct process_roots {
	size_t nr;
	struct process_root {
		struct stat mounts, dir;
		int fd; /* of dir */
		char path[32];
	} all[PROCESS_ROOTS_MAX];
};

/*
 * "": it is ours, cannot be opened, or there are too many. Else a path that is good until
 * process_roots__close().
 */
const char *process_roots__of(struct process_roots *all, pid_t pid);
void process_roots__close(struct process_roots *all);

/* ---- a program that is recorded from its first instruction ---- */

/* Its process waits between fork and exec. */
struct spawn {     /* see spawn__init() */
	pid_t pid; /* 0: nothing was started */
	int go;    /* a byte into it: the child goes on; -1: none */
	int error; /* reports the errno of a failed exec; -1: none */
	const char *name;
};

struct spawn_opts {
	char *const *argv; /* alive until spawn__release() */
	uid_t uid;         /* (uid_t)-1, (gid_t)-1: as the caller */
	gid_t gid;
	/* called in the child before it executes its program; NULL */
	void (*prepare)(const void *arg);
	const void *arg;
};

void spawn__init(struct spawn *s);
/* Starts the child, which waits. Error and hint set. */
int spawn__start(struct spawn *s, const struct spawn_opts *opts);
/* Lets the child execute its program; fails when it can't. Nothing, if none waits. */
int spawn__release(struct spawn *s);
/* A child that still waits ends. */
void spawn__abandon(struct spawn *s);

#endif
