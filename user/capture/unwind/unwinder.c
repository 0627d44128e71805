// SPDX-License-Identifier: BSD-2-Clause
#include "capture/unwind/unwinder.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/error.h"
#include "util/ranges.h"
#include "util/util.h"

#define SHARD_BYTES (KPROF_UNWIND_SHARD_ROWS * sizeof(struct kprof_unwind_row))

/* an array of at most so many mappings (10 KiB) is kept after its process is gone */
#define KEPT_MAPPINGS 256

#define MAX_WAITING 64

/* Where the table of some JIT code is in the kernel. */
struct jit_table {
	uint32_t page, nr_pages;
	uint32_t row, nr_rows; /* rows of the shard that all tables of JIT code share */
	bool dropped;
};

struct unwinder {
	struct unwinder_maps maps;
	struct kprof_unwind_rule *rules; /* the contents of the BPF maps, mapped here */
	struct kprof_unwind_page *pages;
	size_t nr_rules;
	uint32_t nr_pages, nr_shards;
	struct kprof_unwind_row *shard;    /* the latest shard, mapped; NULL: none yet */
	uint32_t shard_number, shard_rows; /* its number; rows used in it */
	/* The shard of JIT code. */
	struct kprof_unwind_row *jit_shard; /* NULL: there was no JIT code yet */
	uint32_t jit_shard_number;
	struct jit_table *jit;
	size_t nr_jit, cap_jit;
	struct ranges jit_pages, jit_rows; /* free pages and rows */
	struct ranges spaces;              /* free numbers of address spaces */
	uint64_t space_bytes;
	uint32_t *space_nr; /* by number: how many mappings it has */
	/* Mappings that were set and are not in the kernel yet. */
	struct waiting {
		uint32_t space, pid;
		int fd; /* BPF array of its mappings */
	} waiting[MAX_WAITING];
	size_t nr_waiting;
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

int unwinder__new(const struct unwinder_maps *maps, struct unwinder **out)
{
	struct unwinder *u = calloc(1, sizeof(*u));

	if (!u)
		return error_set(-ENOMEM, NULL, "no memory for unwinding");
	u->maps = *maps;
	u->rules = map_array(maps->rules, map_bytes(KPROF_UNWIND_MAX_RULES, sizeof(*u->rules)));
	u->pages = map_array(maps->pages, map_bytes(KPROF_UNWIND_MAX_PAGES, sizeof(*u->pages)));
	u->space_nr = calloc(KPROF_UNWIND_MAX_SPACES, sizeof(*u->space_nr));
	if (!u->rules || !u->pages || !u->space_nr ||
	    ranges__give(&u->spaces, 0, KPROF_UNWIND_MAX_SPACES)) {
		unwinder__free(u);
		return error_set(-ENOMEM, NULL, "no memory for unwinding");
	}
	*out = u;
	return 0;
}

void unwinder__free(struct unwinder *u)
{
	if (!u)
		return;
	if (u->rules)
		munmap(u->rules, map_bytes(KPROF_UNWIND_MAX_RULES, sizeof(*u->rules)));
	if (u->pages)
		munmap(u->pages, map_bytes(KPROF_UNWIND_MAX_PAGES, sizeof(*u->pages)));
	if (u->shard)
		munmap(u->shard, SHARD_BYTES);
	if (u->jit_shard)
		munmap(u->jit_shard, SHARD_BYTES);
	free(u->jit);
	ranges__free(&u->jit_pages);
	ranges__free(&u->jit_rows);
	for (size_t i = 0; i < u->nr_waiting; i++)
		close(u->waiting[i].fd);
	ranges__free(&u->spaces);
	free(u->space_nr);
	free(u);
}

/* ---- tables ---- */

/* Adds a shard, which is mapped here; its number is u->nr_shards - 1. */
static int new_shard(struct unwinder *u, struct kprof_unwind_row **rows)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	uint32_t index = u->nr_shards;
	void *at;
	int fd, err = 0;

	if (index >= KPROF_UNWIND_MAX_SHARDS)
		return -ENOSPC;
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "kprof_rows", 4, SHARD_BYTES, 1, &opts);
	if (fd < 0)
		return fd;
	at = map_array(fd, SHARD_BYTES);
	if (!at)
		err = -ENOMEM;
	else if (bpf_map_update_elem(u->maps.shards, &index, &fd, 0))
		err = -errno;
	close(fd); /* the outer map keeps the shard alive */
	if (err) {
		if (at)
			munmap(at, SHARD_BYTES);
		return err;
	}
	*rows = at;
	u->nr_shards++;
	return 0;
}

static int next_shard(struct unwinder *u)
{
	struct kprof_unwind_row *rows;
	int err = new_shard(u, &rows);

	if (err)
		return err;
	if (u->shard)
		munmap(u->shard, SHARD_BYTES);
	u->shard = rows;
	u->shard_number = u->nr_shards - 1;
	u->shard_rows = 0;
	return 0;
}

static bool has_room(const struct unwinder *u, const struct unwind_table *t)
{
	/* At the end of each shard less than a page's rows stay unused: at most a quarter of it. */
	uint64_t shards = t->nr_rows / (KPROF_UNWIND_SHARD_ROWS - KPROF_UNWIND_PAGE_BYTES) + 1;

	return u->nr_pages + t->nr_pages <= KPROF_UNWIND_MODULE_PAGES &&
	       u->nr_shards + shards <= KPROF_UNWIND_MAX_SHARDS;
}

static int place_page(struct unwinder *u, const struct unwind_table *t,
		      const struct unwind_page *from, struct kprof_unwind_page *to)
{
	int err;

	*to = (struct kprof_unwind_page){0};
	if (!from->nr)
		return 0;
	if (!u->shard || u->shard_rows + from->nr > KPROF_UNWIND_SHARD_ROWS) {
		err = next_shard(u);
		if (err)
			return err;
	}
	memcpy(u->shard + u->shard_rows, t->rows + from->first, from->nr * sizeof(*t->rows));
	to->shard = u->shard_number;
	to->first = u->shard_rows;
	to->nr = from->nr;
	u->shard_rows += from->nr;
	return 0;
}

/* To be called before rows are copied: no row may be in the kernel before its rule. */
static void copy_rules(struct unwinder *u, struct unwind_rules *rules)
{
	u->nr_rules += unwind_rules__copy(rules, u->nr_rules, u->rules + u->nr_rules,
					  KPROF_UNWIND_MAX_RULES - u->nr_rules);
}

int unwinder__place(struct unwinder *u, struct unwind_rules *rules, const struct unwind_table *t,
		    uint32_t *first_page)
{
	int err = 0;

	if (!has_room(u, t))
		return error_set(-ENOSPC, NULL, "no room for another unwind table");
	copy_rules(u, rules);
	for (size_t i = 0; i < t->nr_pages && !err; i++)
		err = place_page(u, t, &t->pages[i], &u->pages[u->nr_pages + i]);
	if (err)
		return error_set(err, NULL, "cannot hand an unwind table to the kernel: %s",
				 strerror(-err));
	*first_page = u->nr_pages;
	u->nr_pages += (uint32_t)t->nr_pages;
	return 0;
}

/* ---- tables that come and go ---- */

static int first_jit(struct unwinder *u)
{
	int err = new_shard(u, &u->jit_shard);

	if (err)
		return err;
	u->jit_shard_number = u->nr_shards - 1;
	err = ranges__give(&u->jit_pages, KPROF_UNWIND_MODULE_PAGES, KPROF_UNWIND_JIT_PAGES);
	return err ?: ranges__give(&u->jit_rows, 0, KPROF_UNWIND_SHARD_ROWS);
}

static int take_jit(struct unwinder *u, const struct unwind_table *t, struct jit_table *to)
{
	int err = u->jit_shard ? 0 : first_jit(u);

	if (!err && (t->nr_pages > KPROF_UNWIND_JIT_PAGES || t->nr_rows > KPROF_UNWIND_SHARD_ROWS))
		err = -ENOSPC;
	*to = (struct jit_table){.nr_pages = (uint32_t)t->nr_pages,
				 .nr_rows = (uint32_t)t->nr_rows};
	if (!err)
		err = ranges__take(&u->jit_pages, to->nr_pages, &to->page);
	if (err)
		return err;
	err = ranges__take(&u->jit_rows, to->nr_rows, &to->row);
	if (err)
		ranges__give(&u->jit_pages, to->page, to->nr_pages);
	return err;
}

int unwinder__place_jit(struct unwinder *u, struct unwind_rules *rules,
			const struct unwind_table *t, uint32_t *first_page)
{
	struct jit_table at;
	int err = vec_grow((void **)&u->jit, &u->cap_jit, u->nr_jit, sizeof(*u->jit));

	if (!err)
		err = take_jit(u, t, &at);
	if (err)
		return error_set(err, NULL, "no room for unwind tables of JIT code");
	copy_rules(u, rules);
	memcpy(u->jit_shard + at.row, t->rows, t->nr_rows * sizeof(*t->rows));
	for (size_t i = 0; i < t->nr_pages; i++)
		u->pages[at.page + i] =
			(struct kprof_unwind_page){.shard = u->jit_shard_number,
						   .first = at.row + t->pages[i].first,
						   .nr = t->pages[i].nr};
	u->jit[u->nr_jit++] = at;
	*first_page = at.page;
	return 0;
}

void unwinder__drop_jit(struct unwinder *u, uint32_t first_page)
{
	for (size_t i = 0; i < u->nr_jit; i++)
		if (u->jit[i].page == first_page)
			u->jit[i].dropped = true;
}

static void give_back_jit(struct unwinder *u)
{
	for (size_t i = u->nr_jit; i-- > 0;) {
		struct jit_table *t = &u->jit[i];

		if (!t->dropped)
			continue;
		/* Without memory for the list of free ones, these are lost. */
		ranges__give(&u->jit_pages, t->page, t->nr_pages);
		ranges__give(&u->jit_rows, t->row, t->nr_rows);
		*t = u->jit[--u->nr_jit];
	}
}

/* ---- processes ---- */

static int new_space(struct unwinder *u, uint32_t *space)
{
	if (!ranges__take(&u->spaces, 1, space))
		return 0;
	return error_set(-ENOSPC, "record fewer processes at once",
			 "stacks of more than %u processes cannot be walked",
			 KPROF_UNWIND_MAX_SPACES);
}

/*
 * For each change of an outer map the kernel waits some 10 ms until no program uses the old inner
 * map: too long to do for each process that ends. So a small array stays until its number is used
 * again.
 */
static void give_back(struct unwinder *u, uint32_t space)
{
	if (u->space_nr[space] > KEPT_MAPPINGS) {
		bpf_map_delete_elem(u->maps.spaces, &space);
		u->space_bytes -= u->space_nr[space] * sizeof(struct kprof_unwind_mapping);
		u->space_nr[space] = 0;
	}
	ranges__give(&u->spaces, space, 1); /* without memory for the list, the number is lost */
}

/* Writes the mappings into an array. Element 0 holds their number. */
static int fill(int fd, const struct kprof_unwind_mapping *mappings, size_t nr)
{
	struct kprof_unwind_mapping head = {.start = nr};
	uint32_t at = 0;

	if (bpf_map_update_elem(fd, &at, &head, 0))
		return -errno;
	for (size_t i = 0; i < nr; i++) {
		at = (uint32_t)i + 1;
		if (bpf_map_update_elem(fd, &at, &mappings[i], 0))
			return -errno;
	}
	return 0;
}

/* Makes an array of these mappings. Returns its descriptor or a negative errno. */
static int new_array(const struct kprof_unwind_mapping *mappings, size_t nr)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_INNER_MAP);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "kprof_space", 4, sizeof(*mappings),
				(uint32_t)nr + 1, &opts);
	int err;

	if (fd < 0)
		return -errno;
	err = fill(fd, mappings, nr);
	if (!err)
		return fd;
	close(fd);
	return err;
}

static struct waiting *find_waiting(struct unwinder *u, uint32_t space)
{
	for (size_t i = 0; i < u->nr_waiting; i++)
		if (u->waiting[i].space == space)
			return &u->waiting[i];
	return NULL;
}

/*
 * Hands all waiting arrays over at once, or one by one where the kernel takes no batches for such
 * maps.
 */
static int put_spaces(struct unwinder *u)
{
	LIBBPF_OPTS(bpf_map_batch_opts, opts);
	uint32_t spaces[MAX_WAITING], count = (uint32_t)u->nr_waiting;
	int fds[MAX_WAITING];

	for (size_t i = 0; i < u->nr_waiting; i++) {
		spaces[i] = u->waiting[i].space;
		fds[i] = u->waiting[i].fd;
	}
	if (!bpf_map_update_batch(u->maps.spaces, spaces, fds, &count, &opts))
		return 0;
	for (size_t i = 0; i < u->nr_waiting; i++)
		if (bpf_map_update_elem(u->maps.spaces, &spaces[i], &fds[i], 0))
			return -errno;
	return 0;
}

int unwinder__flush(struct unwinder *u)
{
	int err = u->nr_waiting ? put_spaces(u) : 0;

	for (size_t i = 0; i < u->nr_waiting; i++) {
		const struct waiting *w = &u->waiting[i];
		struct kprof_stack_process process = {.space = w->space};

		/*
		 * A new process, or one that the BPF program has removed since it executed a
		 * program.
		 */
		if (!err && bpf_map_update_elem(u->maps.processes, &w->pid, &process, 0))
			err = -errno;
		close(w->fd);
	}
	if (!err && u->nr_waiting)
		give_back_jit(u);
	u->nr_waiting = 0;
	return err ? error_set(err, NULL, "cannot hand mappings to the kernel: %s", strerror(-err))
		   : 0;
}

int unwinder__set(struct unwinder *u, uint32_t pid, uint32_t *space,
		  const struct kprof_unwind_mapping *mappings, size_t nr)
{
	bool is_new = *space == UNWINDER_NO_SPACE;
	struct waiting *w;
	int fd, err = u->nr_waiting == MAX_WAITING ? unwinder__flush(u) : 0;

	if (nr > KPROF_UNWIND_MAX_MAPPINGS)
		nr = KPROF_UNWIND_MAX_MAPPINGS;
	/*
	 * Leave [vsyscall] out: no user code runs there, and the search treats addresses as signed.
	 */
	while (nr && mappings[nr - 1].start >> 63)
		nr--;
	if (!err && is_new)
		err = new_space(u, space);
	if (err)
		return err;
	fd = new_array(mappings, nr);
	if (fd < 0) {
		if (is_new) { /* it counts as new the next time, too */
			give_back(u, *space);
			*space = UNWINDER_NO_SPACE;
		}
		return error_set(fd, NULL,
				 "cannot hand the mappings of process %u to the kernel: %s", pid,
				 strerror(-fd));
	}
	w = find_waiting(u, *space);
	if (w)
		close(w->fd);
	else
		w = &u->waiting[u->nr_waiting++];
	w->space = *space;
	w->pid = pid;
	w->fd = fd;
	u->space_bytes += (nr - u->space_nr[*space]) * sizeof(*mappings);
	u->space_nr[*space] = (uint32_t)nr;
	return 0;
}

int unwinder__set_python(struct unwinder *u, uint32_t pid, const struct kprof_python *python)
{
	return bpf_map_update_elem(u->maps.pythons, &pid, python, 0) ? -errno : 0;
}

void unwinder__remove(struct unwinder *u, uint32_t pid, uint32_t space)
{
	struct waiting *w;

	if (space == UNWINDER_NO_SPACE)
		return;
	w = find_waiting(u, space);
	if (w) {
		close(w->fd);
		*w = u->waiting[--u->nr_waiting];
	}
	bpf_map_delete_elem(u->maps.processes, &pid);
	bpf_map_delete_elem(u->maps.pythons, &pid);
	give_back(u, space);
}

uint64_t unwinder__bytes(const struct unwinder *u)
{
	return u->nr_shards * SHARD_BYTES + u->nr_pages * sizeof(*u->pages) +
	       u->nr_rules * sizeof(*u->rules) + u->space_bytes;
}
