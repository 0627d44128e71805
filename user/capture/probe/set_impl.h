/* SPDX-License-Identifier: BSD-2-Clause */
/* Structures and functions that the files of the probe set share. */
#ifndef KPROF_CAPTURE_PROBE_SET_IMPL_H
#define KPROF_CAPTURE_PROBE_SET_IMPL_H

#include "capture/probe/probe.h"
#include "capture/probe/sequence.h"
#include "symbol/x86/x86.h"
#include "util/map64.h"

/* ---- files ---- */

/* What was found by decoding the code at one return address (known by its offset in the file). */
struct file_return {
	struct insn_return code;
	uint32_t site; /* INSN_RETURN_SITE: index of the site; 0: there was no room for it */
	uint64_t site_offset;
	bool met; /* by this recording: it is not only known from an earlier one */
};

/* Programs whose points are kept per file: */
#define NR_BEGIN_PROGRAMS (ATTACH_BEGIN_BOXED + 1) /* those at entries, planned from the catalog */
/* NR_BEGIN_PROGRAMS and those at return sites, in the order in which they are learnt */
#define NR_FILE_PROGRAMS (ATTACH_SITE_RESULT + 1)

struct point_list {
	struct attach_point *points;
	size_t nr, cap;
};
int point_list__add(struct point_list *list, struct attach_point point);

/* What has probes in a file besides its frameworks' functions. */
enum extra_kind {
	EXTRA_MARKS,     /* annotations that were compiled in (marks.c) */
	EXTRA_FUNCTIONS, /* functions that were asked for by their name (functions.c) */
	NR_EXTRAS
};

struct extra {
	struct point_list points;
	bool known;    /* the file was looked through */
	bool attached; /* and is SHARED */
};

struct file {
	UT_hash_handle hh;
	struct file_key {
		uint64_t inode, dev;
	} key;
	char *name;          /* base name */
	struct elffile *elf; /* NULL: could not be opened */
	/* Sets of frameworks (plan.h): */
	uint64_t by_name;  /* with rows for a file of this name */
	uint64_t embedded; /* found to be linked into the file */
	/* searched for in the file, to set `embedded` */
	uint64_t embedded_asked;
	/* of by_name and embedded, those whose probes are in points[] */
	uint64_t planned;
	struct point_list points[NR_FILE_PROGRAMS]; /* by enum attach_program */
	bool no_stacks; /* its probes are on no spans: no stacks are taken there */
	/* the same of those that were given up, and are placed for bursts only (burst.c) */
	struct point_list given_up[NR_FILE_PROGRAMS];
	uint64_t burst_ns;    /* when they were placed last, in all processes */
	struct map64 returns; /* offset of a return address → index + 1 into learnt[] */
	struct file_return *learnt;
	size_t nr_learnt, cap_learnt;
	size_t checked_bytes; /* see return_sites__after_call() */
	bool recalled;        /* what earlier recordings learnt is in there (return_cache.c) … */
	size_t nr_recalled;   /* … and it is so many */
	struct map64 site_at; /* offset of a site → its index << 1; bit 0: it records the result */
	enum file_sharing {
		FILE_UNDECIDED,
		FILE_FILTERED, /* each target has probes of its own, which fire in it alone */
		FILE_SHARED,   /* the file's probes fire in every process that maps it */
	} sharing;
	/* FILTERED by KPROF_CHILDREN_AUTO: a process, no target, that maps the file, too */
	uint32_t bystander;
	uint64_t unshared_ns; /* when SHARED became FILTERED; 0: it has not */
	uint64_t shed_ns;     /* when some of its probes were given up (shed.c); 0: none were */
	uint64_t placed_ns;   /* when its probes were placed last */
	/* of a SHARED file: */
	struct attach_links links;
	struct attach_links hook; /* of the dynamic linker: shared even if the file is not */
	uint64_t attached;        /* set of frameworks whose probes are attached */
	size_t nr_attached[NR_FILE_PROGRAMS]; /* how many of points[], from the first */
	struct extra extras[NR_EXTRAS];
	/* how sequence numbers are found that are in it; NULL: there are none */
	struct sequence_layout *sequence;
	const struct catalog_sequence *sequence_of; /* as its framework has it */
};

/*
 * The entry of a mapped file, added when it is new; the file need not be open. Returns 0 or
 * -ENOMEM.
 */
int probe_files__entry(struct probe_set *ps, const struct proc_map *map, struct file **out);
/* The same, and opens the file if it can be opened. */
int probe_files__open(struct probe_set *ps, const struct target *t, const struct proc_map *map,
		      struct file **out);
/* The entry of a mapped file; NULL: none yet. */
struct file *probe_files__known(const struct probe_set *ps, const struct proc_map *map);
int probe_files__plan(struct probe_set *ps, struct target *t, struct file *f);
/* Looks for libraries of these frameworks (a set) that are linked into the file. */
void file__look_inside(struct file *f, uint64_t candidates);
/* The number of probes at entries of functions, of all programs. */
size_t file__nr_begins(const struct file *f);
void file__free(struct file *f);

/* ---- processes ---- */

struct target_file {
	struct file *file;
	/* has the probe of probe_set__place_own(): the agent's, or that on the linker's hook */
	bool own_probe;
	uint64_t attached_for; /* set of frameworks; the file may later turn out to have more */
	/* since when probes are missing from it, as they could not be placed; 0: none are */
	uint64_t lost_ns;
	/* since when it is waited for what the dynamic linker maps after it; 0: it is not */
	uint64_t loading_ns;
	size_t nr_attached[NR_FILE_PROGRAMS]; /* how many of file->points[] */
	uint32_t extras;                      /* bits of the file's extras that have probes */
	bool told;                            /* see return_cache__tell() */
	bool sequenced;                       /* see sequences__tell() */
};

struct target_probes { /* kept in the probe set's slot of a target */
	struct target_file *files;
	size_t nr, cap;
	struct attach_links links;
	struct map64 returns;      /* return address → struct span_return *, owned by this */
	struct followed *followed; /* NULL: none yet */
};

/* The return addresses of an address space and its copies that the BPF programs skip. */
struct followed {
	uint32_t space, nr_processes;
	uint64_t *addrs;
	size_t nr, cap;
};

/* A return address whose code is to be decoded. */
struct pending_return {
	struct target *target;
	struct span_return *ret;
};

struct probe_set {
	struct probe_set_opts opts;
	uint32_t slot;
	struct file *files;
	struct probe *probes;
	size_t nr, cap;
	uint32_t single_left; /* without uprobe_multi: how many more probes may be placed */
	uint32_t mark_source;
	struct map64 placed;       /* files that placed__tell() has told: hash → what it told */
	uint64_t forgotten_ns;     /* when placed__forget() was called last */
	struct attach_links stale; /* probes of programs that no longer run, to be removed */
	struct attach_links burst; /* see probe_set__burst() */
	struct pending_return *pending;
	size_t nr_pending, cap_pending;
	/* sites were learnt of processes that had ended, and are not placed yet */
	bool unattached;
	bool shed_all; /* no more probes on functions and return sites are placed (shed.c) */
	struct probe_set_stats stats;
	/* who maps what: of all processes, at this time */
	uint64_t mappers_ns;
	struct map64 mapper_at; /* hash of a file's inode and name → index + 1 into mappers[] */
	struct mapper *mappers;
	size_t nr_mappers, cap_mappers;
	/* hits in other processes, when they were last looked at */
	struct kprof_wire_foreign foreign;
	uint64_t foreign_ns;
	int cache_dir; /* see disk_cache__open(); once cache_known */
	bool cache_known;
};

/* The probe set's slot of a target, allocated when empty. NULL: no memory. */
struct target_probes *probe_set__of(struct probe_set *ps, struct target *t);
/* The probe set's slot of a target; NULL: empty. */
static inline const struct target_probes *probe_set__known(const struct probe_set *ps,
							   const struct target *t)
{
	return t->slot[ps->slot];
}

/* The target's entry for a file, added when it is new. */
int target_probes__file(struct target_probes *tp, struct file *f, struct target_file **out);
/* Opens a path to a file of the target. -ENOENT: the target does not map it, as far as is known. */
int target_file__path(const struct target *t, const struct file *f, char *path, size_t size);
/* How many of the file's points are attached already. */
static inline size_t *target_file__attached(struct target_file *tf)
{
	return tf->file->sharing == FILE_SHARED ? tf->file->nr_attached : tf->nr_attached;
}

/*
 * sharing.c: the set that links of a file's probes belong to; whether they are shared is decided by
 * then.
 */
struct attach_links *sharing__links(struct probe_set *ps, struct target *t, struct file *f);
/* The process that the file's probes are for; -1: all that map it. */
static inline pid_t sharing__pid(const struct file *f, const struct target *t)
{
	return f->sharing == FILE_SHARED ? -1 : (pid_t)t->pid;
}
/* Looks at what every process maps. */
int sharing__look(struct probe_set *ps);
/* Do few enough other processes map the file, when they were last looked at? Sets its bystander. */
bool sharing__allowed(struct probe_set *ps, struct file *f);
void sharing__free(struct probe_set *ps);

/*
 * extras.c: places the probes of this kind in the file, where it has some that are not in place
 * yet. what: is told where that can't be done. 0 or a negative errno.
 */
int extras__attach(struct probe_set *ps, struct target *t, struct target_file *tf, const char *path,
		   enum extra_kind kind, enum attach_program program, const char *what);

/*
 * placed.c: tells the BPF programs which of the target's files have their probes in every process,
 * or need none.
 */
void placed__tell(struct probe_set *ps, const struct target *t);
/* Takes back what it told, before probes are removed. */
void placed__forget(struct probe_set *ps);

/* followed.c: the BPF programs are to skip this return address of the target. */
int followed__add(struct probe_set *ps, struct target *t, uint64_t ret_addr,
		  const struct insn_return *code);
/* The child's memory is, or began as, that of its parent. */
int followed__share(struct probe_set *ps, struct target *child, struct target *parent);
/* The process has ended, or runs another program. */
void followed__leave(struct probe_set *ps, struct target_probes *tp);

/* return_sites.c: places the sites that the target lacks, in all its files. */
void return_sites__attach_missing(struct probe_set *ps, struct target *t);
/* The same in one file. */
void return_sites__attach(struct probe_set *ps, struct target *t, struct target_file *tf,
			  const char *path);

/*
 * The bytes of code from this offset to the end of its function; 0: no call ends there. A stack,
 * and what is kept on disk, can name any address, and a breakpoint in the middle of an instruction
 * changes what everybody computes who maps the file. So the function is decoded up to there, if the
 * file describes it, and if not too much of the file was decoded so far: *checked_bytes.
 */
size_t return_sites__after_call(const struct elffile *e, uint64_t offset, size_t *checked_bytes);
/*
 * Finds out what the code at a return address in this file does; decodes it once. *out is valid
 * until the next call.
 */
int return_sites__learn_code(struct probe_set *ps, struct file *f, uint64_t offset,
			     bool wants_result, struct file_return **out);

/* return_cache.c: learns what earlier recordings have learnt of the file, once. */
void return_cache__recall(struct probe_set *ps, struct file *f);
struct kept_return;
/*
 * What is to be kept of the file, RETURN_BLOB_MOST at most: first what this recording has met, then
 * the rest in the order in which it was kept before, so that what was not met for longest goes.
 */
size_t return_cache__collect(const struct file *f, struct kept_return *all);
/*
 * Tells the BPF programs what is known of the file's return addresses in this process, once their
 * sites are placed. map: the file's first mapping.
 */
void return_cache__tell(struct probe_set *ps, struct target *t, const struct proc_map *map,
			const struct file *f);

/*
 * sequences.c: tells the BPF programs where the process keeps its sequence numbers, which are in
 * this file. map: its first mapping
 */
void sequences__tell(struct probe_set *ps, struct target *t, struct target_file *tf,
		     const struct proc_map *map);

/* marks.c: does the file of this mapping have places for annotations, and are they wanted? */
/* Is it known whether there are annotations in the file, or are none wanted? f may be NULL. */
bool marks__known(const struct probe_set *ps, const struct file *f);
bool marks__in(struct probe_set *ps, struct target *t, const struct proc_map *map);
/* Watches a file's annotations, if it has some and they are not watched yet. */
int marks__attach(struct probe_set *ps, struct target *t, struct target_file *tf, const char *path);

/* functions.c: the same of functions that were asked for by their name */
bool functions__known(const struct probe_set *ps, const struct file *f);
bool functions__in(struct probe_set *ps, struct target *t, const struct proc_map *map);
int functions__attach(struct probe_set *ps, struct target *t, struct target_file *tf,
		      const char *path);

#endif
