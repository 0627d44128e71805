// SPDX-License-Identifier: BSD-2-Clause
#include "capture/unwind/jit_code.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/process/process.h"
#include "symbol/x86/x86.h"
#include "symbol/unwind/unwind.h"
#include "util/error.h"
#include "util/order.h"
#include "util/util.h"

#define PAGE_BYTES 4096
/* /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst in the kernel's tree). */
#define PAGEMAP_PRESENT (1ull << 63)
#define PAGEMAP_SWAPPED (1ull << 62)
#define PAGEMAP_CHUNK 512

#define CHECKED_BYTES (16u << 10)
/*
 * Zero bytes that allocators leave after code, at least. Within code and its constants there is no
 * such gap.
 */
#define GAP_BYTES 64

struct function {
	uint64_t start, end;
	uint64_t hash; /* of all its bytes */
	uint64_t head; /* hash of its first CHECKED_BYTES bytes */
};

struct functions {
	struct function *all; /* in order of address */
	size_t nr, cap;
};

struct areas {
	struct jit_area *all; /* in order of address */
	size_t nr, cap;
};

struct jit_code {
	pid_t pid;
	struct unwind_rules *rules;
	struct functions now;
	struct areas areas;
	/* functions by whose tables the kernel walked before .published_ns */
	struct functions before;
	/* CLOCK_MONOTONIC; UINT64_MAX: the kernel does not have the new tables yet */
	uint64_t published_ns;
	uint32_t *dropped;
	size_t nr_dropped, cap_dropped;
};

/* State of one reading of a process's JIT code. */
struct reading {
	pid_t pid;
	int pagemap;
	struct unwind_jit *maker;
	uint8_t *code; /* CODE_FLOW_MAX_BYTES */
	uint64_t code_at;
	uint64_t left; /* how many more bytes may be read */
	struct functions functions;
	struct areas areas;
};

static uint64_t hash_bytes(const uint8_t *p, size_t bytes)
{
	uint64_t h = bytes, word;

	for (; bytes >= 8; bytes -= 8, p += 8) {
		memcpy(&word, p, 8);
		h = hash64(h ^ word);
	}
	word = 0;
	memcpy(&word, p, bytes);
	return hash64(h ^ word);
}

static size_t checked(uint64_t start, uint64_t end)
{
	return end - start < CHECKED_BYTES ? (size_t)(end - start) : CHECKED_BYTES;
}

static const struct function *find(const struct functions *f, uint64_t ip)
{
	size_t i = ORDER_UPTO(f->all, f->nr, end, ip);

	return i < f->nr && f->all[i].start <= ip ? &f->all[i] : NULL;
}

static bool same(const struct function *a, const struct function *b)
{
	return a->start == b->start && a->end == b->end && a->hash == b->hash;
}

/* ---- reading ---- */

static int on_function(void *ctx, uint64_t start, uint64_t end)
{
	struct reading *r = ctx;
	struct functions *f = &r->functions;
	const uint8_t *code = r->code + (start - r->code_at);

	if (vec_grow((void **)&f->all, &f->cap, f->nr, sizeof(*f->all)))
		return -ENOMEM;
	f->all[f->nr++] = (struct function){
		.start = start,
		.end = end,
		.hash = hash_bytes(code, (size_t)(end - start)),
		.head = hash_bytes(code, checked(start, end)),
	};
	return 0;
}

static bool zero(const uint8_t *p, size_t bytes)
{
	return !p[0] && !memcmp(p, p + 1, bytes - 1);
}

/* Is this page the first of an allocation, with a gap before it? */
static bool begins(const uint8_t *code, size_t at)
{
	return !zero(code + at, 16) && zero(code + at - GAP_BYTES, GAP_BYTES);
}

/*
 * Adds the functions in the bytes read. Allocations begin at a page, and end with bytes that were
 * never written. first: an allocation begins at the first of these pages.
 */
static int add_code(struct reading *r, size_t bytes, bool first)
{
	size_t from = first && !zero(r->code, 16) ? 0 : SIZE_MAX;
	int err = 0;

	for (size_t at = PAGE_BYTES; at <= bytes && !err; at += PAGE_BYTES) {
		bool next = at < bytes && begins(r->code, at);
		size_t end = at;

		if (!next && at < bytes)
			continue;
		while (from != SIZE_MAX && end > from && !r->code[end - 1])
			end--;
		if (from != SIZE_MAX)
			err = unwind_jit__add(r->maker, r->code + from, end - from,
					      r->code_at + from, on_function, r);
		from = next ? at : SIZE_MAX;
	}
	return err;
}

/* Reads a run of pages that are in memory. */
static int read_run(struct reading *r, uint64_t start, uint64_t end, bool first)
{
	int err = 0;

	while (start < end && !err) {
		uint64_t bytes = end - start;
		ssize_t n;

		if (bytes > CODE_FLOW_MAX_BYTES)
			bytes = CODE_FLOW_MAX_BYTES;
		if (bytes > r->left)
			bytes = r->left;
		if (!bytes)
			return 0;
		n = process_read_some(r->pid, start, r->code, (size_t)bytes);
		if (n < 0)
			return n == -EFAULT ? 0 : (int)n; /* unmapped meanwhile */
		r->left -= (uint64_t)n;
		r->code_at = start;
		err = add_code(r, (size_t)n & ~(size_t)(PAGE_BYTES - 1), first);
		if ((uint64_t)n < bytes)
			break;
		start += bytes;
		first = false;
	}
	return err;
}

static int read_pages(struct reading *r, uint64_t start, uint64_t end)
{
	uint64_t entries[PAGEMAP_CHUNK], run = 0;
	bool first = true; /* the page before the run was never touched */
	int err = 0;

	for (uint64_t at = start; at < end && r->left && !err;) {
		size_t nr = (size_t)((end - at) / PAGE_BYTES);
		ssize_t n;

		if (nr > PAGEMAP_CHUNK)
			nr = PAGEMAP_CHUNK;
		n = pread(r->pagemap, entries, nr * 8, (off_t)(at / PAGE_BYTES * 8));
		if (n <= 0)
			return n < 0 ? -errno : -ESRCH;
		for (size_t i = 0; i < (size_t)n / 8 && !err; i++, at += PAGE_BYTES) {
			if (entries[i] & PAGEMAP_PRESENT) {
				run = run ?: at;
				continue;
			}
			if (run)
				err = read_run(r, run, at, first);
			run = 0;
			first = !(entries[i] & PAGEMAP_SWAPPED);
		}
	}
	return run && !err ? read_run(r, run, end, first) : err;
}

static int read_area(struct reading *r, const struct jit_range *range)
{
	struct jit_area *area;
	int err;

	if (vec_grow((void **)&r->areas.all, &r->areas.cap, r->areas.nr, sizeof(*area)))
		return -ENOMEM;
	area = &r->areas.all[r->areas.nr++];
	*area = (struct jit_area){.start = range->start,
				  .end = range->end,
				  .first_page = JIT_NOT_PLACED,
				  .first_function = r->functions.nr};
	if (range->end - range->start > JIT_MAX_EXTENT)
		return 0;
	err = read_pages(r, range->start, range->end);
	if (!err)
		err = unwind_jit__table(r->maker, &area->table);
	area->nr_functions = r->functions.nr - area->first_function;
	return err;
}

static int begin(struct reading *r, const struct jit_code *m)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)m->pid);
	r->pid = m->pid;
	r->left = JIT_MAX_BYTES;
	r->pagemap = open(path, O_RDONLY | O_CLOEXEC);
	if (r->pagemap < 0)
		return -errno;
	r->code = malloc(CODE_FLOW_MAX_BYTES);
	return r->code ? unwind_jit__new(m->rules, &r->maker) : -ENOMEM;
}

static void free_areas(struct areas *a)
{
	for (size_t i = 0; i < a->nr; i++)
		unwind_table__free(a->all[i].table);
	free(a->all);
	*a = (struct areas){0};
}

static void end(struct reading *r)
{
	if (r->pagemap >= 0)
		close(r->pagemap);
	free(r->code);
	unwind_jit__free(r->maker);
	free(r->functions.all);
	free_areas(&r->areas);
}

/* ---- changes since the last reading ---- */

static struct jit_area *area_of(const struct areas *a, uint64_t start, uint64_t end)
{
	size_t i = ORDER_LOWER(a->all, a->nr, start, start);

	return i < a->nr && a->all[i].start == start && a->all[i].end == end ? &a->all[i] : NULL;
}

static bool same_code(const struct jit_code *m, const struct jit_area *old, const struct reading *r,
		      const struct jit_area *new)
{
	if (old->nr_functions != new->nr_functions)
		return false;
	for (size_t i = 0; i < new->nr_functions; i++)
		if (!same(&m->now.all[old->first_function + i],
			  &r->functions.all[new->first_function + i]))
			return false;
	return true;
}

/*
 * Areas whose code has not changed keep their tables, and the place of these in the kernel. True:
 * no area has changed.
 */
static bool keep_same(struct jit_code *m, struct reading *r)
{
	size_t kept = 0;

	for (size_t i = 0; i < r->areas.nr; i++) {
		struct jit_area *new = &r->areas.all[i];
		struct jit_area *old = area_of(&m->areas, new->start, new->end);
		struct unwind_table *table = new->table;

		if (!old || !same_code(m, old, r, new))
			continue;
		new->table = old->table;
		new->first_page = old->first_page;
		old->table = table;
		old->first_page = JIT_NOT_PLACED;
		kept++;
	}
	return kept == r->areas.nr && kept == m->areas.nr;
}

/* Without memory for the list, places stay in use. */
static void drop_places(struct jit_code *m, const struct areas *a)
{
	for (size_t i = 0; i < a->nr; i++) {
		if (a->all[i].first_page == JIT_NOT_PLACED)
			continue;
		if (vec_grow((void **)&m->dropped, &m->cap_dropped, m->nr_dropped,
			     sizeof(*m->dropped)))
			return;
		m->dropped[m->nr_dropped++] = a->all[i].first_page;
	}
}

/* Makes the functions and areas that were read the current ones. */
static void take_over(struct jit_code *m, struct reading *r, bool changed)
{
	struct functions functions = m->now;
	struct areas areas = m->areas;

	m->areas = r->areas;
	r->areas = areas;
	m->now = r->functions;
	r->functions = functions;
	if (!changed)
		return;
	drop_places(m, &areas);
	/* The current tables were never published: the kernel still walks by those before. */
	if (m->published_ns == UINT64_MAX)
		return;
	functions = m->before;
	m->before = r->functions;
	r->functions = functions;
	m->published_ns = UINT64_MAX;
}

int jit_code__read(struct jit_code *m, const struct jit_range *ranges, size_t nr)
{
	struct reading r = {.pagemap = -1};
	bool changed = false;
	int err;

	if (!nr && !m->areas.nr)
		return 0;
	err = begin(&r, m);
	for (size_t i = 0; i < nr && i < JIT_MAX_AREAS && !err; i++)
		err = read_area(&r, &ranges[i]);
	if (!err) {
		changed = !keep_same(m, &r);
		take_over(m, &r, changed);
	}
	end(&r);
	return err ? err : changed;
}

/* ---- interface ---- */

int jit_code__new(struct unwind_rules *rules, pid_t pid, struct jit_code **out)
{
	struct jit_code *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->rules = rules;
	m->pid = pid;
	*out = m;
	return 0;
}

void jit_code__free(struct jit_code *m)
{
	if (!m)
		return;
	free_areas(&m->areas);
	free(m->now.all);
	free(m->before.all);
	free(m->dropped);
	free(m);
}

size_t jit_code__nr(const struct jit_code *m)
{
	return m->areas.nr;
}

struct jit_area *jit_code__at(struct jit_code *m, size_t i)
{
	return &m->areas.all[i];
}

const struct jit_area *jit_code__area(const struct jit_code *m, uint64_t start, uint64_t end)
{
	return area_of(&m->areas, start, end);
}

bool jit_code__take_dropped(struct jit_code *m, uint32_t *first_page)
{
	if (!m->nr_dropped)
		return false;
	*first_page = m->dropped[--m->nr_dropped];
	return true;
}

void jit_code__published(struct jit_code *m, uint64_t now_ns)
{
	if (m->published_ns == UINT64_MAX)
		m->published_ns = now_ns;
}

bool jit_code__knows(const struct jit_code *m, uint64_t ip)
{
	return find(&m->now, ip) != NULL;
}

bool jit_code__holds(const struct jit_code *m, uint64_t ip, uint64_t time_ns)
{
	const struct function *f = find(&m->now, ip), *old;
	uint8_t code[CHECKED_BYTES];
	size_t bytes;
	ssize_t n;

	/*
	 * The kernel walked by the previous table, by the frame pointer where that had no rule, or,
	 * while tables are exchanged, by the new one.
	 */
	if (time_ns < m->published_ns) {
		old = find(&m->before, ip);
		if (old && (!f || !same(f, old)))
			return false;
	}
	if (!f)
		return true;
	bytes = checked(f->start, f->end);
	n = process_read_some(m->pid, f->start, code, bytes);
	if (n == -ESRCH)
		return true; /* the process has ended since */
	return n == (ssize_t)bytes && hash_bytes(code, bytes) == f->head;
}
