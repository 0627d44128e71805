// SPDX-License-Identifier: BSD-2-Clause
/* Allocations and frees, which are instants with attributes. */
#include "model/timeline/impl.h"

#include <string.h>

bool timeline__has_memory(const struct kprof_capture *t)
{
	return kprof_capture_meta(t, "profile_memory") != NULL;
}

bool kprof_capture_has_memory(const struct kprof_capture *c)
{
	return timeline__has_memory(c);
}

static bool number(const struct kprof_capture *t, const struct store_record *r, const char *key,
		   int64_t *out)
{
	const struct store_attr *a = timeline__attr(t, r->attrs, r->nr_attrs, key);

	if (!a || (a->type != STORE_ATTR_I64 && a->type != STORE_ATTR_U64))
		return false;
	*out = (int64_t)a->value;
	return true;
}

bool timeline__memory(const struct kprof_capture *t, const struct store_record *r,
		      struct tl_memory *out)
{
	const struct tl_description *d = timeline__description(t, r->instant.description - 1);
	const struct kprof_source *source = d ? kprof_capture_source(t, d->source) : NULL;
	int64_t addr;

	/* Marks have instants of that name, too: they are what a program says of its own memory. */
	if (!source || strcmp(source->name, "memory") != 0)
		return false;
	if (!number(t, r, "Addr", &addr) || !number(t, r, "Bytes", &out->bytes) ||
	    !number(t, r, "Total Allocated", &out->allocated))
		return false;
	out->addr = (uint64_t)addr;
	if (out->allocated < 0)
		out->allocated = INT64_MAX;
	return out->bytes && out->bytes != INT64_MIN && out->addr != UINT64_MAX;
}
