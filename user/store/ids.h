/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The numbers that records may refer to: those that earlier records defined. Numbers are dense, so
 * a reference is checked against a count.
 */
#ifndef KPROF_STORE_IDS_H
#define KPROF_STORE_IDS_H

#include <stdbool.h>
#include <stdint.h>

#include "store/records.h"

struct store_ids {
	/*
	 * For each kind of reference: the first valid number, and how many are valid. Strings,
	 * modules and stacks count from 0, which is predefined; threads and sources from 0; others
	 * from 1. A writer knows which spans have begun. A reader gets details before the events
	 * that they are about, and so bounds the number of a span by what one chunk can hold.
	 */
	struct {
		uint64_t first, nr;
	} known[RECORD_LIMITS];
};

void store_ids__init(struct store_ids *ids);

/* For rows.c and events.c, which check references where they encode and decode them. */
static inline bool store_ids__known(const struct store_ids *ids, unsigned int of, uint64_t number)
{
	return number - ids->known[of].first < ids->known[of].nr;
}

/*
 * False: the record's text, lines or attributes refer to something undefined or cannot be encoded,
 * or the record defines a number out of order. On success, counts what the record defines.
 */
bool store_ids__accept(struct store_ids *ids, const struct store_record *r,
		       const struct record_kind *kind);

#endif
