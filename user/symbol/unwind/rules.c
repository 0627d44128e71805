// SPDX-License-Identifier: BSD-2-Clause
/* The set of rules: each rule is stored once, with a number. */
#define HASH_NONFATAL_OOM 1
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "symbol/unwind/priv.h"
#include "util/error.h"

struct entry {
	UT_hash_handle hh;
	struct kprof_unwind_rule rule;
};

struct unwind_rules {
	pthread_mutex_t lock;
	struct entry *by_rule;
	struct entry all[KPROF_UNWIND_MAX_RULES];
	uint32_t nr;
};

static uint32_t intern_locked(struct unwind_rules *r, const struct kprof_unwind_rule *rule)
{
	struct entry *e;

	HASH_FIND(hh, r->by_rule, rule, sizeof(*rule), e);
	if (!e) {
		if (r->nr == KPROF_UNWIND_MAX_RULES)
			return UNWIND_RULES_FULL;
		e = &r->all[r->nr];
		e->rule = *rule;
		HASH_ADD(hh, r->by_rule, rule, sizeof(e->rule), e);
		if (!e->hh.tbl)
			return UNWIND_RULES_FULL;
		r->nr++;
	}
	return (uint32_t)(e - r->all);
}

uint32_t unwind_rules__intern(struct unwind_rules *r, const struct kprof_unwind_rule *rule)
{
	uint32_t number;

	pthread_mutex_lock(&r->lock);
	number = intern_locked(r, rule);
	pthread_mutex_unlock(&r->lock);
	return number;
}

int unwind_rules__new(struct unwind_rules **out)
{
	static const struct kprof_unwind_rule none = {.how = KPROF_UNWIND_NONE},
					      unknown = {.how = KPROF_UNWIND_UNKNOWN};
	struct unwind_rules *r = calloc(1, sizeof(*r));

	if (!r)
		return error_set(-ENOMEM, NULL, "no memory for unwind tables");
	pthread_mutex_init(&r->lock, NULL);
	if (unwind_rules__intern(r, &none) != 0 || unwind_rules__intern(r, &unknown) != 1) {
		unwind_rules__free(r);
		return error_set(-ENOMEM, NULL, "no memory for unwind tables");
	}
	*out = r;
	return 0;
}

void unwind_rules__free(struct unwind_rules *r)
{
	if (!r)
		return;
	HASH_CLEAR(hh, r->by_rule);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

size_t unwind_rules__copy(struct unwind_rules *r, size_t first, struct kprof_unwind_rule *to,
			  size_t room)
{
	size_t n = 0;

	pthread_mutex_lock(&r->lock);
	for (; first + n < r->nr && n < room; n++)
		to[n] = r->all[first + n].rule;
	pthread_mutex_unlock(&r->lock);
	return n;
}

struct kprof_unwind_rule unwind_rules__at(struct unwind_rules *r, uint32_t number)
{
	struct kprof_unwind_rule rule = {.how = KPROF_UNWIND_NONE};

	unwind_rules__copy(r, number, &rule, 1);
	return rule;
}
