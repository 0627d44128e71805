// SPDX-License-Identifier: BSD-2-Clause
#include "capture/unwind/unwinder.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/unwind/tables.h"
#include "util/error.h"
#include "util/ranges.h"
#include "util/util.h"

/* an array of at most so many mappings (10 KiB) is kept after its process is gone */
#define KEPT_MAPPINGS 256

#define MAX_WAITING 64

struct unwinder {
	struct unwinder_maps maps;
	uint64_t max_bytes; /* of the kernel's memory; 0: no limit of its own */
	struct tables *tables;
	struct ranges spaces; /* free numbers of address spaces */
	uint64_t space_bytes;
	uint32_t *space_nr; /* by number: how many mappings it has */
	/* Mappings that were set and are not in the kernel yet. */
	struct waiting {
		uint32_t space, pid;
		int fd; /* BPF array of its mappings */
	} waiting[MAX_WAITING];
	size_t nr_waiting;
};

int unwinder__new(const struct unwinder_maps *maps, uint64_t max_bytes, struct unwinder **out)
{
	struct tables_maps tables = {maps->rules, maps->pages, maps->shards};
	struct unwinder *u = calloc(1, sizeof(*u));

	if (!u)
		return error_set(-ENOMEM, NULL, "no memory for unwinding");
	u->maps = *maps;
	u->max_bytes = max_bytes;
	u->space_nr = calloc(KPROF_UNWIND_MAX_SPACES, sizeof(*u->space_nr));
	if (!u->space_nr || tables__new(&tables, &u->tables) ||
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
	tables__free(u->tables);
	for (size_t i = 0; i < u->nr_waiting; i++)
		close(u->waiting[i].fd);
	ranges__free(&u->spaces);
	free(u->space_nr);
	free(u);
}

/* ---- tables ---- */

/* What is left of the kernel's memory for tables: the mappings take theirs, too. */
static uint64_t room_bytes(const struct unwinder *u)
{
	if (!u->max_bytes)
		return UINT64_MAX;
	return u->max_bytes > u->space_bytes ? u->max_bytes - u->space_bytes : 0;
}

int unwinder__place(struct unwinder *u, struct unwind_rules *rules, const struct unwind_table *t,
		    bool jit, uint32_t *first_page)
{
	int err = tables__place(u->tables, rules, t, jit, room_bytes(u), first_page);

	if (err == -ENOSPC)
		return error_set(err, NULL, "no room for another unwind table%s",
				 jit ? " of JIT code" : "");
	return err ? error_set(err, NULL, "cannot hand an unwind table to the kernel: %s",
			       strerror(-err))
		   : 0;
}

void unwinder__drop(struct unwinder *u, uint32_t first_page)
{
	tables__drop(u->tables, first_page);
}

int unwinder__reuse(struct unwinder *u)
{
	int err = unwinder__flush(u);

	if (err || !tables__has_dropped(u->tables))
		return err;
	/* waits until every program that is running now has ended (synchronize_rcu) */
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		return error_set(-errno, NULL, "cannot wait for the kernel's programs: %s",
				 strerror(errno));
	tables__reuse(u->tables);
	return 0;
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

/* Writes elements of an array, one by one where the kernel takes no batches. */
static int put_elements(int fd, const uint32_t *at, const struct kprof_unwind_mapping *elements,
			uint32_t nr)
{
	LIBBPF_OPTS(bpf_map_batch_opts, opts);
	uint32_t count = nr;

	if (!bpf_map_update_batch(fd, at, elements, &count, &opts))
		return 0;
	for (uint32_t i = 0; i < nr; i++)
		if (bpf_map_update_elem(fd, &at[i], &elements[i], 0))
			return -errno;
	return 0;
}

#define BATCH 64

/* Writes the mappings into an array. Element 0 holds their number. */
static int fill(int fd, const struct kprof_unwind_mapping *mappings, size_t nr)
{
	struct kprof_unwind_mapping head = {.start = nr};
	uint32_t at[BATCH] = {0};
	int err = put_elements(fd, at, &head, 1);

	for (size_t i = 0; i < nr && !err; i += BATCH) {
		uint32_t some = nr - i < BATCH ? (uint32_t)(nr - i) : BATCH;

		for (uint32_t k = 0; k < some; k++)
			at[k] = (uint32_t)i + k + 1;
		err = put_elements(fd, at, &mappings[i], some);
	}
	return err;
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
		tables__reuse(u->tables);
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
	return tables__bytes(u->tables) + u->space_bytes;
}
