/* SPDX-License-Identifier: BSD-2-Clause */
/* What the time of steps went to, and what of that was more in the slow ones. */
#ifndef KPROF_REPORT_STEP_PARTS_H
#define KPROF_REPORT_STEP_PARTS_H

#include "kprof/steps.h"
#include "model/report/impl.h"
#include "util/bulk.h"
#include "util/map64.h"
#include "util/util.h"

struct step_what {
	enum kprof_step_what what;
	char *name;
};

struct step_parts {           /* all zero: empty */
	struct map64 ns;      /* time + 1, by step << 32 | number of what it went to */
	struct map64 by_text; /* number + 1, by a hash of what and name */
	struct vec whats;     /* struct step_what, by number */
};

/* The number of what time goes to. 0, or -errno with the error set. */
int step_parts__what(struct step_parts *p, enum kprof_step_what what, const char *name,
		     uint32_t *number);
/* What has that number. */
const struct step_what *step_parts__at(const struct step_parts *p, uint32_t number);
/* Counts time. 0, or -errno with the error set. */
int step_parts__add(struct step_parts *p, uint32_t step, uint32_t number, uint64_t ns);
/*
 * Finds the outliers among the steps (struct tl_step), by process and time, of which infos has one
 * each: fills in all but the waits. What was kept of the names lives as long as the result.
 */
int step_parts__compare(struct step_parts *p, struct kprof_result *r, const struct bulk *steps,
			struct kprof_step_info *infos);
void step_parts__free(struct step_parts *p);

#endif
