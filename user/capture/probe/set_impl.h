/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the probe set share. */
#ifndef KPROF_CAPTURE_PROBE_SET_IMPL_H
#define KPROF_CAPTURE_PROBE_SET_IMPL_H

#include "capture/probe/probe.h"
#include "util/map64.h"

/* ---- files ---- */

enum return_kind { RETURN_SITE = 1, RETURN_FOLLOW, RETURN_NONE };

/* What the code at one return address (as an offset in the file) turned out to be. */
struct file_return {
	enum return_kind kind;
	uint32_t site; /* SITE: its index */
	uint64_t site_offset;
	int32_t delta_bytes; /* SITE: see insn.h */
	uint32_t follow_bytes;
	bool keeps_result; /* the result register still holds what was returned */
};

/* Programs whose points belong to a file. */
#define NR_BEGIN_PROGRAMS (ATTACH_BEGIN_ARGS + 1) /* at entries, planned from the catalog */
#define NR_FILE_PROGRAMS (ATTACH_SITE_RESULT + 1) /* and at return sites, in order of learning */

struct point_list {
	struct attach_point *points;
	size_t nr, cap;
};

struct file {
	UT_hash_handle hh;
	struct file_key {
		uint64_t inode, dev;
	} key;
	char *name;          /* base name */
	struct elffile *elf; /* NULL: could not be opened */
	/* Sets of frameworks (plan.h): */
	uint64_t by_name;                           /* whose rows are for it by its name … */
	uint64_t embedded;                          /* … or by what is linked into it … */
	uint64_t embedded_asked;                    /* … of those that were looked for; */
	uint64_t planned;                           /* of both, those whose probes are in … */
	struct point_list points[NR_FILE_PROGRAMS]; /* … these, by program */
	struct map64 returns; /* offset of a return address → index + 1 into learnt[] */
	struct file_return *learnt;
	size_t nr_learnt, cap_learnt;
	struct map64 site_at; /* offset of a site → its index << 1, | 1: it records the result */
	/* Where probes stand in every process: they are attached once, here. */
	struct attach_links links;
	uint64_t attached;                    /* frameworks */
	size_t nr_attached[NR_FILE_PROGRAMS]; /* of points[], the first so many */
	struct attach_point *marks;           /* places of annotations */
	size_t nr_marks;
	bool marks_known, marked; /* marked: attached, see .attached */
};

/* What is known of a mapped file; it need not be open. -ENOMEM. */
int probe_files__entry(struct probe_set *ps, const struct proc_map *map, struct file **out);
/* The same, open if it can be. */
int probe_files__open(struct probe_set *ps, const struct target *t, const struct proc_map *map,
		      struct file **out);
/* What is known already; NULL. */
struct file *probe_files__known(const struct probe_set *ps, const struct proc_map *map);
int probe_files__plan(struct probe_set *ps, struct target *t, struct file *f);
/* Looks for the libraries of these frameworks (set) in a file that may contain them. */
void file__look_inside(struct file *f, uint64_t candidates);
/* Probes at entries of functions, all programs. */
size_t file__nr_begins(const struct file *f);
void file__free(struct file *f);

/* ---- processes ---- */

struct target_file {
	struct file *file;
	bool own_probe;        /* one that has a probe of its own: the agent's */
	uint64_t attached_for; /* of which frameworks: the file may turn out to have more */
	uint64_t lost_ns;      /* since when it runs without probes; 0: it does not */
	size_t nr_attached[NR_FILE_PROGRAMS]; /* of file->points[], the first so many */
	bool marked;                          /* its annotations are watched */
};

struct target_probes { /* in the set's slot of a target */
	struct target_file *files;
	size_t nr, cap;
	struct attach_links links;
	struct map64 returns; /* return address → struct span_return *, ours */
	bool linker;          /* the dynamic linker's hook is probed */
};

/* A return address on its way to becoming a site. */
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
	uint32_t single_left; /* without uprobe_multi: probes still allowed */
	uint32_t mark_source;
	struct attach_links stale; /* of programs that are gone */
	struct pending_return *pending;
	size_t nr_pending, cap_pending;
	struct probe_set_stats stats;
};

/* NULL: no memory. */
struct target_probes *probe_set__of(struct probe_set *ps, struct target *t);
/* What is known already; NULL: nothing. */
static inline const struct target_probes *probe_set__known(const struct probe_set *ps,
							   const struct target *t)
{
	return t->slot[ps->slot];
}

/* The process's entry for a file, added when it is new. */
int target_probes__file(struct target_probes *tp, struct file *f, struct target_file **out);
/* Where links go, and how many of the file's points stand already. */
static inline struct attach_links *probe_set__links(struct probe_set *ps, struct target_probes *tp,
						    struct file *f)
{
	return ps->opts.every_process ? &f->links : &tp->links;
}
static inline size_t *probe_set__attached(const struct probe_set *ps, struct target_file *tf)
{
	return ps->opts.every_process ? tf->file->nr_attached : tf->nr_attached;
}
static inline pid_t probe_set__pid(const struct probe_set *ps, const struct target *t)
{
	return ps->opts.every_process ? -1 : (pid_t)t->pid;
}

/* return_sites.c: places the file's sites that the target lacks. */
void return_sites__attach(struct probe_set *ps, struct target *t, struct target_file *tf,
			  const char *path);
void return_sites__forget(struct probe_set *ps, struct target *t);

/* marks.c: does the file of this mapping have places for annotations, and are they wanted? */
bool marks__in(struct probe_set *ps, struct target *t, const struct proc_map *map);
/* Watches those of a file, if it has some and they are not watched yet. */
int marks__attach(struct probe_set *ps, struct target *t, struct target_file *tf, const char *path);

#endif
