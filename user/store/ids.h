/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What records may refer to: what was defined so far. Numbers are dense, so that counts are all
 * there is to check.
 */
#ifndef KPROF_STORE_IDS_H
#define KPROF_STORE_IDS_H

#include <stdbool.h>
#include <stdint.h>

#include "store/records.h"

struct store_ids {
	/*
	 * By what they number: how many are good, from which on. Strings, modules and stacks count
	 * from 0, which is predefined, threads and sources from 0, others from 1. Of spans a writer
	 * knows which have begun. A reader has details in front of the events that they are about,
	 * and bounds the number by what one chunk can hold.
	 */
	struct {
		uint64_t first, nr;
	} known[RECORD_LIMITS];
};

void store_ids__init(struct store_ids *ids);

/* For rows.c and events.c, which check numbers where they encode and decode them. */
static inline bool store_ids__known(const struct store_ids *ids, unsigned int of, uint64_t number)
{
	return number - ids->known[of].first < ids->known[of].nr;
}

/*
 * False: a record's text, lines or attributes refer to something undefined or cannot be coded, or
 * it defines something out of order. Counts what it defines.
 */
bool store_ids__accept(struct store_ids *ids, const struct store_record *r,
		       const struct record_kind *kind);

#endif
