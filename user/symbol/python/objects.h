/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects in the target's memory: dicts, and the attributes of objects. The target keeps running,
 * so nothing that is read is trusted: pointers are followed for a bounded number of steps.
 */
#ifndef KPROF_SYMBOL_PYTHON_OBJECTS_H
#define KPROF_SYMBOL_PYTHON_OBJECTS_H

#include "symbol/python/priv.h"

#define PYTHON_MAX_READS 100000 /* for one question: a tenth of a second */
#define PYTHON_BATCH_ENTRIES 64
/*
 * Each read costs as much as that of a page, and what is looked at lies near each other: memory is
 * read in pages, and the last ones are kept during a call.
 */
#define PYTHON_NR_PAGES 64
#define PYTHON_PAGE_BYTES 4096

struct python_page {
	uint64_t address; /* 0: free */
	uint8_t bytes[PYTHON_PAGE_BYTES];
};

struct python_reader {
	const struct kprof_python *p;
	const struct python_memory *m;
	uint32_t *left;            /* reads that are left of PYTHON_MAX_READS */
	struct python_page *pages; /* NULL: none are kept */
};

int python_get(const struct python_reader *r, void *to, size_t bytes, uint64_t address);
int python_get64(const struct python_reader *r, uint64_t address, uint64_t *out);

struct python_entry {
	uint64_t hash; /* 0: this dict stores no hashes */
	uint64_t key, value;
};

struct python_dict {
	uint64_t entries, nr;
	uint32_t entry_bytes; /* 24: hash, key, value; 16: key, value */
	/*
	 * address of a separate array of values, in the order of the entries; 0: the entries have
	 * them
	 */
	uint64_t values;
	/* Entries are read in batches. */
	uint64_t words[PYTHON_BATCH_ENTRIES * 3], apart[PYTHON_BATCH_ENTRIES];
	uint64_t first, filled;
};

int python_dict__open(const struct python_reader *r, uint64_t address, struct python_dict *d);
/* Reads entry i. 0: there are no more; 1: an entry, whose value is NULL if it was deleted. */
int python_dict__at(const struct python_reader *r, struct python_dict *d, uint64_t i,
		    struct python_entry *out);
/*
 * The value of a key; 0: the dict does not have it. *place: the entry that is looked at first, and
 * then that of the key; NULL: the first one.
 */
uint64_t python_dict__find(const struct python_reader *r, struct python_dict *d, const char *key,
			   uint32_t *place);
/* Opens the dict of an object's own attributes. */
int python_attributes__open(const struct python_reader *r, uint64_t object, struct python_dict *d);

#endif
