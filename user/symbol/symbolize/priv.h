/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of the symbolizer share. */
#ifndef KPROF_SYMBOL_SYMBOLIZE_PRIV_H
#define KPROF_SYMBOL_SYMBOLIZE_PRIV_H

#include <pthread.h>

#include "symbol/elf/elf.h"
#include "symbol/symbolize/symbolize.h"
#include "util/util.h"

/* ---- strings.c: interned strings and lines, freed all at once ---- */

struct symbol_strings { /* all zero: empty */
	struct symbol_chunk *chunks;
	struct symbol_string *all; /* a hash table */
};

/* Memory, aligned for pointers, that lives until symbol_strings__free(). NULL: no memory. */
void *symbol_strings__room(struct symbol_strings *s, size_t bytes);
/* The interned copy of these characters. NULL: no memory. */
const char *symbol_strings__add(struct symbol_strings *s, const char *text, size_t bytes);
void symbol_strings__free(struct symbol_strings *s);

/* ---- answers.c: the known names of a file's addresses ---- */

struct symbol_known {
	uint64_t vaddr; /* the address that was looked up */
	const struct symbol_line *lines;
	uint32_t nr_lines; /* ≥ 1 */
};

struct symbol_knowns {
	struct symbol_known *all; /* sorted by vaddr */
	size_t nr;
};

const struct symbol_known *symbol_knowns__find(const struct symbol_knowns *k, uint64_t vaddr);
/*
 * Moves the answers of `more` to k. If both have an answer for an address, that of `more` is kept.
 * 0 or -ENOMEM.
 */
int symbol_knowns__merge(struct symbol_knowns *k, struct symbol_knowns *more);

/* ---- table.c, plt.c: names from symbol tables ---- */

/* A symbol that may be the name of an address. */
struct symbol_candidate {
	const char *name; /* NULL: none */
	uint64_t start, size;
	uint32_t section;
	uint8_t type, bind;
	bool versioned; /* the name may contain "@@VERSION" */
};

struct symbol_query {
	uint64_t vaddr;
	struct symbol_candidate cover, below;
	const char *stub; /* the function that a PLT stub jumps to; NULL: not a stub */
	size_t name_bytes;
	bool below_ends; /* .below ends before this address */
};

/*
 * Looks for the queries' symbols in a table: the best one that covers the address, and the nearest
 * one at or below it. Queries are sorted by vaddr, without duplicates.
 */
void symbol_table__scan(const struct elffile *e, bool dynamic, struct symbol_query *queries,
			size_t nr);
/* Finds which of the addresses are in PLT stubs, and what those jump to. */
void symbol_plt__scan(const struct elffile *e, struct symbol_query *queries, size_t nr);
/*
 * To be called after all scans: the best name, .name_bytes long, without a terminator. NULL:
 * unknown.
 */
const char *symbol_query__name(struct symbol_query *query);

/* ---- blob.c: answers in serialized form ---- */

#define SYMBOL_BLOB_MAX (64u << 20)

/*
 * Serializes answers into malloc'ed bytes. The stamp identifies the sources of the answers. NULL:
 * no memory, or more than SYMBOL_BLOB_MAX.
 */
char *symbol_blob__pack(const struct symbol_knowns *k, uint64_t stamp, size_t *bytes);
/*
 * Reads serialized answers. Their strings and lines go to `strings`. 0, -EBADMSG: damaged, -ESTALE:
 * another stamp, -ENOMEM.
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

	/* The current request. */
	struct symbol_query *queries;
	size_t nr_queries, nr_asked; /* left now; at the beginning */
	int err;
	uint64_t nr_cached;
	bool gave_up, debug_file, cache_written;
	bool unconfined; /* its DWARF was not read, since the reader's limits could not be set */
	/*
	 * absent: a server has reported that it has no debug file (or that it is too busy).
	 * unanswered: no server has reported whether it has one.
	 */
	bool absent, unanswered;
};

/* Options with the defaults filled in. */
struct symbol_config {
	struct symbolizer_opts opts;
	int cache_dir;        /* -1: none */
	uint64_t deadline_ns; /* deadline of symbolizer__resolve(); UINT64_MAX: none */
};

/* The time that is left for this file's DWARF, or for a server; 0: none. */
static inline uint64_t symbol_time_left(const struct symbol_config *config)
{
	uint64_t now_ns = clock_mono_ns(), most_ns = config->opts.module_time_ns;

	if (now_ns >= config->deadline_ns)
		return 0;
	return config->deadline_ns - now_ns < most_ns ? config->deadline_ns - now_ns : most_ns;
}

/* Answers all queries into .known. 0 or -ENOMEM. */
int symbol_file__answer(struct symbol_file *f, const struct symbol_config *config);

/* ---- debug.c: finding debug information ---- */

/*
 * The name in a section .gnu_debuglink, and the CRC, which follows at a multiple of four. NULL: it
 * is damaged, or the name leads out of its directory.
 */
const char *symbol_debuglink__read(const uint8_t *section, size_t bytes, uint32_t *crc);

/* A separate debug file on this machine. */
struct symbol_debug_file {
	int fd;         /* -1: none */
	char *path;     /* for messages */
	uint64_t stamp; /* identifies the file; 0: none */
};

/* Looks for a separate debug file. Whether it belongs to this file is not checked yet. */
void symbol_debug__look(const struct symbol_file *f, const struct symbol_config *config,
			struct symbol_debug_file *out);
/*
 * Opens the separate file and checks that it belongs to this one. If a server is to be used, the
 * file may come from there, and `found` is then updated to it. NULL: none.
 */
struct elffile *symbol_debug__open(struct symbol_file *f, const struct symbol_config *config,
				   struct symbol_debug_file *found);
void symbol_debug__close(struct symbol_debug_file *found);
/* Opens the ELF file that is compressed in .gnu_debugdata. NULL: none. */
struct elffile *symbol_debug__mini(const struct elffile *e);

/* ---- child.c: a process for work that may crash or never end ---- */

struct symbol_child {
	pid_t pid;
	int fd; /* pipe with the child's output */
	uint64_t deadline_ns;
};

struct symbol_child_opts {
	/* the child's user if this process is root; 0 (root) needs a reason */
	uid_t user;
	bool only_reads; /* it may use only files and memory: all other system calls fail */
	int fd;          /* a descriptor that the child keeps as SYMBOL_CHILD_KEPT; -1: none */
	uint64_t time_ns;
};

#define SYMBOL_CHILD_KEPT 4
#define SYMBOL_CHILD_UNCONFINED 3 /* exit status: the limits could not be set, nothing was done */
#define SYMBOL_CHILD_NOBODY 65534

/*
 * Runs work() in a child process. work() gets the descriptor to write to, and returns the exit
 * status. 0 or -errno.
 */
int symbol_child__start(struct symbol_child *c, int (*work)(void *ctx, int fd), void *ctx,
			const struct symbol_child_opts *opts);
/* Reads some bytes of the child's output, at most `bytes`. 0: the output has ended; -ETIME. */
ssize_t symbol_child__some(struct symbol_child *c, void *to, size_t bytes);
/*
 * Reads exactly `bytes` bytes. 0; 1: the output has ended; -ETIME; -EBADMSG: it ended in the
 * middle.
 */
int symbol_child__read(struct symbol_child *c, void *to, size_t bytes);
/*
 * Waits for the child's end until its deadline, then kills it; if `enough` is set, kills it at
 * once. Returns its exit status; -1: it was killed, or still exists after that.
 */
int symbol_child__end(struct symbol_child *c, bool enough);

/* ---- debuginfod.c ---- */

/* Whether any server is configured and allowed by the options. */
bool symbol_debuginfod__configured(const struct symbolizer_opts *opts);
/*
 * Fetches the debug file with this build id within the given time; *path is malloc'ed. 0; -ENOENT:
 * the servers do not have the file; other errors: the servers did not answer.
 */
int symbol_debuginfod__fetch(const char *build_id, uint64_t time_ns, char **path);
/* True once after a fetch has found that libdebuginfod is not installed. */
bool symbol_debuginfod__missing(void);

/* ---- lines.c, dwarf.c: source lines and inlined functions ---- */

/*
 * Reads the queries' source lines and inlined functions from the DWARF of this file's image, or of
 * the debug file that debug_fd has open (-1: none). *out: the answers, sorted, with strings of the
 * file's. 0; -ETIME, -EBADMSG: the answers are incomplete; -ENOMEM.
 */
int symbol_lines__read(struct symbol_file *f, const struct elffile *debug, int debug_fd,
		       uint64_t time_ns, struct symbol_knowns *out);
/* Runs in the child: writes blobs, each after its length, to fd. */
int symbol_dwarf__write(const struct symbol_file *f, const struct elffile *debug, int debug_fd,
			int fd);

/* ---- cache.c ---- */

/* `dir` comes from disk_cache__open(). */
/* Reads the cached answers for a file, if they were made with the same stamp. */
int symbol_cache__read(int dir, const char *build_id, uint64_t stamp,
		       struct symbol_strings *strings, struct symbol_knowns *out);
/* False: not written, which need not be treated as an error. */
bool symbol_cache__write(int dir, const char *build_id, uint64_t stamp,
			 const struct symbol_knowns *known);

#endif
