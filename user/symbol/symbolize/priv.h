/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of the symbolizer share. */
#ifndef KPROF_SYMBOL_SYMBOLIZE_PRIV_H
#define KPROF_SYMBOL_SYMBOLIZE_PRIV_H

#include <pthread.h>

#include "symbol/elf/elf.h"
#include "symbol/symbolize/symbolize.h"
#include "util/util.h"

/* ---- strings.c: strings and lines, each kept once, until all are freed ---- */

struct symbol_strings { /* all zero: empty */
	struct symbol_chunk *chunks;
	const char **slots; /* open addressing */
	size_t cap, nr;
};

/* Room that is not freed by itself, aligned for pointers. NULL: no memory. */
void *symbol_strings__room(struct symbol_strings *s, size_t bytes);
/* The one copy of these characters. NULL: no memory. */
const char *symbol_strings__add(struct symbol_strings *s, const char *text, size_t bytes);
void symbol_strings__free(struct symbol_strings *s);

/* ---- answers.c: what is known of a file's addresses ---- */

struct symbol_known {
	uint64_t vaddr; /* as looked up */
	const struct symbol_line *lines;
	uint32_t nr_lines; /* ≥ 1 */
};

struct symbol_knowns {
	struct symbol_known *all; /* by vaddr */
	size_t nr;
};

const struct symbol_known *symbol_knowns__find(const struct symbol_knowns *k, uint64_t vaddr);
/* Takes over what is in more; of two answers for an address, more's. 0 or -ENOMEM. */
int symbol_knowns__merge(struct symbol_knowns *k, struct symbol_knowns *more);

/* ---- table.c, plt.c: names from symbol tables ---- */

/* The best symbol so far for an address, and the nearest at or below it. */
struct symbol_candidate {
	const char *name; /* NULL: none */
	uint64_t start, size;
	uint32_t section;
	uint8_t type, bind;
	bool versioned; /* may say "name@@VERSION" */
};

struct symbol_query {
	uint64_t vaddr;
	struct symbol_candidate cover, below;
	const char *stub; /* what a PLT stub jumps to; NULL: it is none */
	size_t name_bytes;
	bool below_ends; /* .below does not reach to this address */
};

/* Queries are sorted by vaddr, without duplicates. */
void symbol_table__scan(const struct elffile *e, bool dynamic, struct symbol_query *queries,
			size_t nr);
/* What the stubs among the addresses jump to. */
void symbol_plt__scan(const struct elffile *e, struct symbol_query *queries, size_t nr);
/* After all scans: the name, .name_bytes long, without a terminator. NULL: unknown. */
const char *symbol_query__name(struct symbol_query *query);

/* ---- blob.c: answers as bytes ---- */

#define SYMBOL_BLOB_MAX (64u << 20)

/*
 * Malloc'ed; NULL: no memory, or more than SYMBOL_BLOB_MAX. The stamp identifies what the answers
 * come from.
 */
char *symbol_blob__pack(const struct symbol_knowns *k, uint64_t stamp, size_t *bytes);
/*
 * Their strings and lines go to `strings`. 0, -EBADMSG: damaged, -ESTALE: another stamp, -ENOMEM.
 */
int symbol_blob__unpack(const char *blob, size_t bytes, uint64_t stamp,
			struct symbol_strings *strings, struct symbol_knowns *out);

/* ---- file.c: one file ---- */

struct symbol_file {
	struct elffile *elf;
	char *path, *root;
	struct symbol_strings strings;
	struct symbol_knowns known;

	bool asked_cache;

	/* The job at hand. */
	struct symbol_query *queries;
	size_t nr_queries, nr_asked; /* left; at first */
	int err;
	uint64_t nr_cached;
	bool gave_up, debug_file, cache_written;
	/*
	 * A server has no debug file, as far as it says (also when it is too busy); did not say
	 * whether it has.
	 */
	bool absent, unanswered;
};

/* Options with the defaults filled in. */
struct symbol_config {
	struct symbolizer_opts opts;
	int cache_dir;        /* -1: none */
	uint64_t deadline_ns; /* of what is being resolved; UINT64_MAX: none */
};

/* For this file's DWARF, or a server; 0: there is none left. */
static inline uint64_t symbol_time_left(const struct symbol_config *config)
{
	uint64_t now_ns = clock_mono_ns(), most_ns = config->opts.module_time_ns;

	if (now_ns >= config->deadline_ns)
		return 0;
	return config->deadline_ns - now_ns < most_ns ? config->deadline_ns - now_ns : most_ns;
}

/* Answers all queries into .known. 0 or -ENOMEM. */
int symbol_file__answer(struct symbol_file *f, const struct symbol_config *config);

/* ---- debug.c: where debug information lies ---- */

/* A separate debug file, if there is one of this machine. */
struct symbol_debug_file {
	int fd;         /* -1: none */
	char *path;     /* for messages */
	uint64_t stamp; /* says which it is; 0: none */
};

/* Looks for it; whether it is the right one is not known yet. */
void symbol_debug__look(const struct symbol_file *f, const struct symbol_config *config,
			struct symbol_debug_file *out);
/*
 * The separate file, checked to belong to this one; from a server where that is asked for: then
 * `found` is that file now. NULL: none.
 */
struct elffile *symbol_debug__open(struct symbol_file *f, const struct symbol_config *config,
				   struct symbol_debug_file *found);
void symbol_debug__close(struct symbol_debug_file *found);
/* What .gnu_debugdata holds. NULL: nothing. */
struct elffile *symbol_debug__mini(const struct elffile *e);

/* ---- child.c: a process for what may crash or never end ---- */

struct symbol_child {
	pid_t pid;
	int fd; /* what it says */
	uint64_t deadline_ns;
};

struct symbol_child_opts {
	/* who the child is, where this process is root; 0: root, which needs a reason */
	uid_t user;
	bool only_reads; /* files and memory: every other system call of it fails */
	int fd;          /* it keeps this descriptor, as SYMBOL_CHILD_KEPT; -1: none */
	uint64_t time_ns;
};

#define SYMBOL_CHILD_KEPT 4
#define SYMBOL_CHILD_NOBODY 65534

/*
 * Runs work() in a child, with the descriptor to write to; what it returns is the exit status. 0 or
 * -errno.
 */
int symbol_child__start(struct symbol_child *c, int (*work)(void *ctx, int fd), void *ctx,
			const struct symbol_child_opts *opts);
/* So many bytes at most, when there are some; 0: nothing more comes; -ETIME. */
ssize_t symbol_child__some(struct symbol_child *c, void *to, size_t bytes);
/* Exactly so many bytes. 0; 1: nothing more comes; -ETIME; -EBADMSG: it ended within. */
int symbol_child__read(struct symbol_child *c, void *to, size_t bytes);
/*
 * Waits for its end until its time is up, then kills it; enough: at once. Its exit status; -1: it
 * was killed, or has not ended even so.
 */
int symbol_child__end(struct symbol_child *c, bool enough);

/* ---- sandbox.c ---- */

/*
 * From here on this process reads files, and writes to what it has open: nothing else. 0; -errno:
 * the kernel can't.
 */
int symbol_sandbox__enter(void);

/* ---- debuginfod.c ---- */

/* Whether a server can be asked at all. */
bool symbol_debuginfod__configured(const struct symbolizer_opts *opts);
/*
 * The path (malloc'ed) of the debug file with this build id, fetched within the time. 0; -ENOENT:
 * the servers have none; others: that is not known, they did not answer.
 */
int symbol_debuginfod__fetch(const char *build_id, uint64_t time_ns, char **path);
/* True once, after a fetch has found that the library is not there. */
bool symbol_debuginfod__missing(void);

/* ---- lines.c, dwarf.c: source lines and inlined functions ---- */

/*
 * What DWARF says of the queries, from this file's image, or from the file that is open there if
 * debug_fd is not -1. *out: the answers, sorted; strings of the file's. 0; -ETIME, -EBADMSG:
 * incomplete; -ENOMEM.
 */
int symbol_lines__read(struct symbol_file *f, const struct elffile *debug, int debug_fd,
		       uint64_t time_ns, struct symbol_knowns *out);
/* In the child: writes blobs with their lengths to fd. */
int symbol_dwarf__write(const struct symbol_file *f, const struct elffile *debug, int debug_fd,
			int fd);

/* ---- cache.c ---- */

/* dir: disk_cache__open()'s. */
/* What is known of the file, if it comes from what the stamp identifies. */
int symbol_cache__read(int dir, const char *build_id, uint64_t stamp,
		       struct symbol_strings *strings, struct symbol_knowns *out);
/* False: not written, which is no error. */
bool symbol_cache__write(int dir, const char *build_id, uint64_t stamp,
			 const struct symbol_knowns *known);

#endif
