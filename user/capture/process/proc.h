/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What /proc says about processes: identity, threads, children, mapped files.
 *
 * Processes come and go while they are read: every function may fail with -ESRCH (gone, or about
 * to be: a zombie has no maps) or -EACCES, and sets cause and hint (util/error.h) when it does.
 * Pids are those of the reader's PID namespace.
 */
#ifndef KPROF_CAPTURE_PROC_H
#define KPROF_CAPTURE_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- identity ------------------------------------------------------------------------------ */

#define PROC_COMM_BYTES 64 /* TASK_COMM_LEN is 16; kernel threads show more ("kworker/…") */

struct proc_info {
	pid_t pid, ppid;
	pid_t ns_pid; /* its own number in its innermost PID namespace; pid when that is ours */
	uid_t uid;    /* effective */
	gid_t gid;    /* effective */
	uint32_t nr_threads;
	uint64_t start_ticks; /* since boot, in clock ticks: with the pid, who it is */
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

/* ---- threads and children ------------------------------------------------------------------- */

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
/* Every process, in order of pid; *out is malloc'ed. */
int proc_pids(pid_t **out, size_t *nr);
/*
 * Descendants of the given processes, these not included, parents before their children, from one
 * pass over /proc. *out is malloc'ed, NULL when there are none.
 */
int proc_descendants(const pid_t *roots, size_t nr_roots, pid_t **out, size_t *nr);

/* ---- mapped files --------------------------------------------------------------------------- */

enum proc_map_flags {
	PROC_MAP_READ = 1,
	PROC_MAP_WRITE = 2,
	PROC_MAP_EXEC = 4,
	PROC_MAP_SHARED = 8,
	PROC_MAP_FILE = 16,    /* a file is behind it (memfd too): path is one, inode is not 0 */
	PROC_MAP_DELETED = 32, /* … that has no name any more */
};

struct proc_map {
	uint64_t start, end; /* addresses; end is the first one behind */
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

#endif
