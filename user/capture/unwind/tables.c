// SPDX-License-Identifier: BSD-2-Clause
#include "capture/unwind/tables.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/ranges.h"
#include "util/util.h"

#define SHARD_BYTES (KPROF_UNWIND_SHARD_ROWS * sizeof(struct kprof_unwind_row))

struct placed { /* a table in the kernel */
	uint32_t page, nr_pages;
	uint32_t nr_rows;
	bool jit, dropped;
};

struct shard {
	int fd;             /* the BPF array of its rows */
	struct ranges free; /* its free rows */
	uint32_t nr_free;
};

struct tables {
	struct tables_maps maps;
	struct kprof_unwind_rule *rules; /* the contents of the BPF maps, mapped here */
	struct kprof_unwind_page *pages;
	size_t nr_rules;
	struct ranges free_pages;
	uint32_t nr_pages; /* in use, as the next two */
	uint32_t nr_jit_pages, nr_jit_rows;
	struct shard shards[KPROF_UNWIND_MAX_SHARDS];
	uint32_t nr_shards;
	/* The shard that had room last, and its rows: only one is mapped, as each is 1 MiB. */
	uint32_t latest;
	struct kprof_unwind_row *rows; /* NULL: none is mapped */
	struct placed *placed;
	size_t nr_placed, cap_placed, nr_dropped;
};

static size_t map_bytes(size_t elements, size_t each)
{
	return (elements * each + 4095) & ~(size_t)4095;
}

static void *map_array(int fd, size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return at == MAP_FAILED ? NULL : at;
}

int tables__new(const struct tables_maps *maps, struct tables **out)
{
	struct tables *t = calloc(1, sizeof(*t));

	*out = t;
	if (!t)
		return -ENOMEM;
	t->maps = *maps;
	t->rules = map_array(maps->rules, map_bytes(KPROF_UNWIND_MAX_RULES, sizeof(*t->rules)));
	t->pages = map_array(maps->pages, map_bytes(KPROF_UNWIND_MAX_PAGES, sizeof(*t->pages)));
	if (t->rules && t->pages && !ranges__give(&t->free_pages, 0, KPROF_UNWIND_MAX_PAGES))
		return 0;
	tables__free(t);
	*out = NULL;
	return -ENOMEM;
}

void tables__free(struct tables *t)
{
	if (!t)
		return;
	if (t->rules)
		munmap(t->rules, map_bytes(KPROF_UNWIND_MAX_RULES, sizeof(*t->rules)));
	if (t->pages)
		munmap(t->pages, map_bytes(KPROF_UNWIND_MAX_PAGES, sizeof(*t->pages)));
	if (t->rows)
		munmap(t->rows, SHARD_BYTES);
	for (uint32_t i = 0; i < t->nr_shards; i++) {
		close(t->shards[i].fd);
		ranges__free(&t->shards[i].free);
	}
	ranges__free(&t->free_pages);
	free(t->placed);
	free(t);
}

uint64_t tables__bytes(const struct tables *t)
{
	return t->nr_shards * SHARD_BYTES + t->nr_pages * sizeof(*t->pages) +
	       t->nr_rules * sizeof(*t->rules);
}

/* ---- rows ---- */

static int new_shard(struct tables *t)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	struct shard *shard = &t->shards[t->nr_shards];
	uint32_t index = t->nr_shards;
	int fd, err;

	if (index >= KPROF_UNWIND_MAX_SHARDS)
		return -ENOSPC;
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "kprof_rows", 4, SHARD_BYTES, 1, &opts);
	if (fd < 0)
		return fd;
	*shard = (struct shard){.fd = fd, .nr_free = KPROF_UNWIND_SHARD_ROWS};
	err = ranges__give(&shard->free, 0, KPROF_UNWIND_SHARD_ROWS);
	if (!err && bpf_map_update_elem(t->maps.shards, &index, &fd, 0))
		err = -errno;
	if (!err) {
		t->nr_shards++;
		return 0;
	}
	close(fd);
	ranges__free(&shard->free);
	return err;
}

static int map_shard(struct tables *t, uint32_t number)
{
	if (t->rows && t->latest == number)
		return 0;
	if (t->rows)
		munmap(t->rows, SHARD_BYTES);
	t->rows = map_array(t->shards[number].fd, SHARD_BYTES);
	t->latest = number;
	return t->rows ? 0 : -ENOMEM;
}

/* Takes rows of this shard, which is mapped then. */
static int take_from(struct tables *t, uint32_t number, uint32_t nr, uint32_t *row)
{
	struct shard *shard = &t->shards[number];
	int err = shard->nr_free < nr ? -ENOSPC : map_shard(t, number);

	if (!err)
		err = ranges__take(&shard->free, nr, row);
	if (!err)
		shard->nr_free -= nr;
	return err;
}

/* Takes rows of a page, which are adjacent and in one shard. */
static int take_rows(struct tables *t, uint32_t nr, uint64_t max_bytes, uint32_t *row)
{
	int err = t->nr_shards ? take_from(t, t->latest, nr, row) : -ENOSPC;

	for (uint32_t i = 0; i < t->nr_shards && err == -ENOSPC; i++)
		err = take_from(t, i, nr, row);
	if (err != -ENOSPC || tables__bytes(t) + SHARD_BYTES > max_bytes)
		return err;
	err = new_shard(t);
	return err ? err : take_from(t, t->nr_shards - 1, nr, row);
}

/* Without memory for a list of what is free, the place is lost. */
static void give_rows(struct tables *t, struct kprof_unwind_page *page)
{
	struct shard *shard = &t->shards[page->shard];

	if (page->nr && !ranges__give(&shard->free, page->first, page->nr))
		shard->nr_free += page->nr;
	*page = (struct kprof_unwind_page){0};
}

static void give_pages(struct tables *t, uint32_t first, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		give_rows(t, &t->pages[first + i]);
	t->nr_pages -= nr;
	ranges__give(&t->free_pages, first, nr);
}

/* ---- tables ---- */

/* To be called before rows are copied: no row may be in the kernel before its rule. */
static void copy_rules(struct tables *t, struct unwind_rules *rules)
{
	t->nr_rules += unwind_rules__copy(rules, t->nr_rules, t->rules + t->nr_rules,
					  KPROF_UNWIND_MAX_RULES - t->nr_rules);
}

static int place_page(struct tables *t, const struct unwind_table *table, size_t i,
		      uint64_t max_bytes, struct kprof_unwind_page *to)
{
	const struct unwind_page *from = &table->pages[i];
	uint32_t row;
	int err;

	*to = (struct kprof_unwind_page){0};
	if (!from->nr)
		return 0;
	err = take_rows(t, from->nr, max_bytes, &row);
	if (err)
		return err;
	memcpy(t->rows + row, table->rows + from->first, from->nr * sizeof(*table->rows));
	*to = (struct kprof_unwind_page){.shard = t->latest, .first = row, .nr = from->nr};
	return 0;
}

static bool is_too_much_jit(const struct tables *t, const struct unwind_table *table)
{
	return t->nr_jit_pages + table->nr_pages > KPROF_UNWIND_JIT_PAGES ||
	       t->nr_jit_rows + table->nr_rows > KPROF_UNWIND_SHARD_ROWS;
}

int tables__place(struct tables *t, struct unwind_rules *rules, const struct unwind_table *table,
		  bool jit, uint64_t max_bytes, uint32_t *first_page)
{
	struct placed *p;
	uint32_t page, nr = (uint32_t)table->nr_pages, done;
	int err = vec_grow((void **)&t->placed, &t->cap_placed, t->nr_placed, sizeof(*t->placed));

	if (!err && (nr > KPROF_UNWIND_MAX_PAGES || (jit && is_too_much_jit(t, table))))
		err = -ENOSPC;
	if (!err)
		err = ranges__take(&t->free_pages, nr, &page);
	if (err)
		return err;
	t->nr_pages += nr;
	copy_rules(t, rules);
	for (done = 0; done < nr && !err; done++)
		err = place_page(t, table, done, max_bytes, &t->pages[page + done]);
	if (err) {
		give_pages(t, page, nr);
		return err;
	}
	p = &t->placed[t->nr_placed++];
	*p = (struct placed){
		.page = page, .nr_pages = nr, .nr_rows = (uint32_t)table->nr_rows, .jit = jit};
	if (jit) {
		t->nr_jit_pages += p->nr_pages;
		t->nr_jit_rows += p->nr_rows;
	}
	*first_page = page;
	return 0;
}

void tables__drop(struct tables *t, uint32_t first_page)
{
	for (size_t i = 0; i < t->nr_placed; i++) {
		if (t->placed[i].page != first_page || t->placed[i].dropped)
			continue;
		t->placed[i].dropped = true;
		t->nr_dropped++;
	}
}

bool tables__has_dropped(const struct tables *t)
{
	return t->nr_dropped;
}

void tables__reuse(struct tables *t)
{
	for (size_t i = t->nr_placed; i-- > 0 && t->nr_dropped;) {
		struct placed *p = &t->placed[i];

		if (!p->dropped)
			continue;
		give_pages(t, p->page, p->nr_pages);
		if (p->jit) {
			t->nr_jit_pages -= p->nr_pages;
			t->nr_jit_rows -= p->nr_rows;
		}
		t->nr_dropped--;
		*p = t->placed[--t->nr_placed];
	}
}
