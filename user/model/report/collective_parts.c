// SPDX-License-Identifier: BSD-2-Clause
#include "model/report/collective_parts.h"

#include <errno.h>
#include <string.h>

#include "catalog/catalog.h"
#include "store/store.h"
#include "util/error.h"

/* A group that says it has more is not believed. */
#define MAX_RANKS (1u << 24)

static bool number(const struct kprof_capture *t, const struct tl_span *s, const char *key,
		   uint64_t *out)
{
	const struct store_attr *a = timeline__attr(t, s->attrs, s->nr_attrs, key);

	if (!a || a->type != STORE_ATTR_U64)
		return false;
	*out = a->value;
	return true;
}

static bool text(const struct kprof_capture *t, const struct tl_span *s, const char *key,
		 uint32_t *out)
{
	const struct store_attr *a = timeline__attr(t, s->attrs, s->nr_attrs, key);

	if (!a || a->type != STORE_ATTR_STRING || a->value > UINT32_MAX)
		return false;
	*out = (uint32_t)a->value;
	return true;
}

static uint64_t bytes_of(const struct kprof_capture *t, const struct tl_span *s)
{
	uint64_t in = 0, out = 0;
	uint32_t type, bytes = 0;
	bool known = number(t, s, "In msg nelems", &in);

	known |= number(t, s, "Out msg nelems", &out);
	if (!known || !text(t, s, "dtype", &type))
		return COLLECTIVE_BYTES_UNKNOWN;
	bytes = catalog_scalar_bytes(timeline__string(t, type));
	if (in < out)
		in = out;
	return bytes && in <= INT64_MAX / bytes ? in * bytes : COLLECTIVE_BYTES_UNKNOWN;
}

struct reading {
	struct kprof_capture *t;
	struct bulk *parts;
	uint64_t *unmatched;
};

static int add_part(void *ctx, const struct tl_span *s, void *data)
{
	struct reading *reading = ctx;
	const struct kprof_capture *t = reading->t;
	uint64_t size = 0, rank = 0;
	struct collective_part p = {.begin_ns = s->whole_start_ns, .end_ns = s->whole_end_ns}, *to;

	if (strcmp(s->description->category, "collective_comm") ||
	    !text(t, s, "Collective name", &p.name))
		return 0;
	if (!text(t, s, "Process Group Name", &p.group) || !number(t, s, "Seq", &p.number) ||
	    !number(t, s, "Group size", &size) || !number(t, s, "Rank", &rank) ||
	    size > MAX_RANKS || rank >= size) {
		++*reading->unmatched;
		return 0;
	}
	p.size = (uint32_t)size;
	p.rank = (uint32_t)rank;
	p.bytes = bytes_of(t, s);
	p.pid = timeline__thread(t, s->thread)->pid;
	if (s->flags & KPROF_EVENT_OPEN_AT_START)
		p.flags |= COLLECTIVE_BEGIN_UNKNOWN;
	if (s->flags & KPROF_EVENT_CLOSED)
		p.flags |= COLLECTIVE_END_LATE;
	if (s->flags & KPROF_EVENT_OPEN_AT_END)
		p.flags |= COLLECTIVE_OPEN;
	to = bulk__push(reading->parts);
	if (!to)
		return error_set(-ENOMEM, NULL, "out of memory for a table of collectives");
	*to = p;
	return 0;
}

int collective_parts__read(struct kprof_capture *t, struct bulk *parts, uint64_t *unmatched)
{
	static const struct tl_walker walker = {.end = add_part};
	struct reading reading = {t, parts, unmatched};

	return timeline__walk(t, &walker, &reading);
}

bool collective_part__of_all(const struct kprof_capture *t, const struct collective_part *p)
{
	return catalog_match("allreduce all_gather barrier all_to_all reduce_scatter",
			     timeline__string(t, p->name)) &&
	       p->bytes;
}
