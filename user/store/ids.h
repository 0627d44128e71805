/* SPDX-License-Identifier: BSD-2-Clause */
/* What records may refer to: what was defined so far. Numbers are dense, so that counts are all there is to check. */
#ifndef KPROF_STORE_IDS_H
#define KPROF_STORE_IDS_H

#include <stdbool.h>
#include <stdint.h>

#include "store/records.h"

struct store_ids {
	/*
	 * A number is good if it is this far at most from the first one: strings, modules and stacks count from 0, which
	 * is predefined, threads and sources from 0, others from 1 (store_ids__first()).
	 * Of spans a writer knows which have begun. A reader has details in front of the events that they are about, and
	 * bounds the number by what one chunk can hold.
	 */
	uint64_t known[RECORD_LIMITS];
	uint16_t checked[RECORD_KINDS_MAX]; /* by kind: a bit a field that is to be checked */
};

void store_ids__init(struct store_ids *ids);

/*
 * False: a record refers to something undefined, defines something out of order, or holds what cannot be coded.
 * Counts what it defines. One function for both directions: what a writer lets through a reader accepts.
 */
bool store_ids__accept(struct store_ids *ids, const struct store_record *r);

static inline uint64_t store_ids__first(unsigned int of)
{
	return of == STORE_REF_WHAT || of == STORE_REF_FRAME || of == STORE_REF_SPAN;
}

static inline bool store_ids__known(const struct store_ids *ids, unsigned int of, uint64_t number)
{
	return number - store_ids__first(of) < ids->known[of];
}

#endif
