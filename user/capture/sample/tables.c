// SPDX-License-Identifier: BSD-2-Clause
/*
 * Unwind tables, from the threads that build them to the kernel. Where that has no room, the tables
 * that no stack needed for longest are given up; they are built again when one needs them.
 */
#include "capture/sample/impl.h"

#include <errno.h>

#include "util/error.h"
#include "util/util.h"

/* A table that was needed since is not given up for another: one of the two would always lack. */
#define RECENT_NS (5 * NSEC_PER_SEC)

/*
 * Warns once per recording that a limit of all processes is reached, and once per process that a
 * limit of its own is.
 */
static void say_left_out(struct stacks *s, struct target *t, int err)
{
	bool *said = err == -ENOSPC ? &s->said_left_out : &stacks__of(s, t)->said_left_out;

	if (err && !*said)
		log_warn(kprof_error_hint(), "%s", kprof_error_cause());
	else if (!*said)
		log_warn(
			NULL,
			"process %u has code in %zu places: stacks through those beyond the first %u end there",
			t->pid, stacks__of(s, t)->space->nr, KPROF_UNWIND_MAX_MAPPINGS);
	*said = true;
}

int stacks_tables__hand_over(struct stacks *s, struct target *t)
{
	struct stack_target *st = stacks__of(s, t);
	int err =
		unwinder__set(s->unwinder, t->pid, &st->number, st->space->mappings, st->space->nr);

	/* A table of the kernel's is full: the recording goes on without this process's stacks. */
	if (err == -ENOSPC || err == -E2BIG) {
		say_left_out(s, t, err);
		err = 0;
	} else if (!err && st->space->nr > KPROF_UNWIND_MAX_MAPPINGS) {
		say_left_out(s, t, 0);
	}
	return err;
}

int stacks_tables__settle(struct stacks *s)
{
	struct target *t;
	int err = 0;

	for (t = targets__first(s->opts.targets); t && !err; t = t->hh.next)
		if (stacks__of(s, t) && address_space__settle(stacks__of(s, t)->space) > 0)
			err = stacks_tables__hand_over(s, t);
	return err;
}

int stacks_tables__flush(struct stacks *s)
{
	int err = unwinder__flush(s->unwinder);

	if (!err)
		stacks_jit__published(s);
	return err;
}

/* ---- room for one more ---- */

static struct module *least_recent(const struct stacks *s, uint64_t before_ns)
{
	struct module *found = NULL;

	for (size_t i = 0; i < modules__nr(s->modules); i++) {
		struct module *m = modules__at(s->modules, i);

		if (m->first_page != MODULE_NOT_PLACED && m->used_ns < before_ns &&
		    (!found || m->used_ns < found->used_ns))
			found = m;
	}
	return found;
}

/* Tables that are given up at a time, at most. */
#define MOST_EVICTED 64

/*
 * Gives up tables of so many rows and some more, as free places are in pieces. 1: there are such
 * tables; 0: there are none, and nothing was done.
 */
static int make_room(struct stacks *s, size_t nr_rows, const char *path)
{
	uint64_t before_ns = clock_mono_ns() - RECENT_NS;
	uint32_t pages[MOST_EVICTED];
	size_t freed = 0, nr = 0;
	struct module *m;
	int err;

	while (freed < nr_rows + nr_rows / 4 && nr < MOST_EVICTED &&
	       (m = least_recent(s, before_ns))) {
		pages[nr++] = m->first_page;
		modules__park(s->modules, m);
		freed += m->nr_rows;
	}
	if (!nr)
		return 0;
	s->nr_evicted += (uint32_t)nr;
	log_info("unwind tables that were not needed (%zu) make room for that of %s", nr, path);
	err = stacks_tables__settle(s);
	/* only now no mapping that was handed over refers to them, but for those that wait */
	for (size_t i = 0; i < nr; i++)
		unwinder__drop(s->unwinder, pages[i]);
	if (!err)
		err = unwinder__reuse(s->unwinder);
	return err ? err : 1;
}

/* Only a table that a stack has needed takes the place of others. */
static int place(struct stacks *s, struct module *m, const struct unwind_table *table)
{
	struct unwind_rules *rules = modules__rules(s->modules);
	int err = unwinder__place(s->unwinder, rules, table, false, &m->first_page), room;

	if (err != -ENOSPC || !modules__wanted(s->modules, m))
		return err;
	room = make_room(s, table->nr_rows, m->path);
	if (room <= 0)
		return room ? room : err;
	return unwinder__place(s->unwinder, rules, table, false, &m->first_page);
}

int stacks_tables__place(struct stacks *s)
{
	struct module *m;
	int placed = 0;

	while ((m = modules__take(s->modules))) {
		const struct unwind_table *table = module__table(m);
		int err = table ? place(s, m, table) : 0;

		if (!table)
			continue;
		if (err == -ENOSPC) {
			s->nr_without_room++;
			if (!s->said_no_room)
				log_warn(
					"--kernel-memory allows more",
					"the unwind tables of all files do not fit: those that are needed replace others");
			s->said_no_room = true;
			modules__park(s->modules, m);
			continue;
		}
		if (err)
			log_warn(NULL, "stacks through %s end there: %s", m->path,
				 kprof_error_cause());
		else
			placed = 1;
		m->used_ns = clock_mono_ns();
		modules__drop_table(s->modules, m);
	}
	return placed;
}
