// SPDX-License-Identifier: BSD-2-Clause
/* Builds unwind tables, in threads of their own. */
#include "capture/unwind/modules_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/error.h"
#include "util/haste.h"
#include "util/util.h"

unsigned int modules__usual_threads(void)
{
	cpu_set_t cpus;

	if (sched_getaffinity(0, sizeof(cpus), &cpus))
		return 1;
	return CPU_COUNT(&cpus) < MODULES_MAX_THREADS ? (unsigned int)CPU_COUNT(&cpus)
						      : MODULES_MAX_THREADS;
}

/* A working set that does not fit must not keep the builders busy. */
#define MODULES_PARKED_NS (5 * NSEC_PER_SEC)

/* ---- one table ---- */

static bool waits(const struct module_entry *e)
{
	return !e->building && atomic_load(&e->state) == MODULE_PENDING;
}

static bool is_before(const struct modules *ms, const struct module_entry *e,
		      const struct module_entry *other)
{
	/* at a slow pace a large one would hold up all others for minutes */
	if (atomic_load(&ms->pace.ns_a_second))
		return !e->wanted == !other->wanted ? e->module.bytes < other->module.bytes
						    : e->wanted;
	if (e->wanted != other->wanted)
		return e->wanted > other->wanted;
	return !ms->in_order && e->module.bytes > other->module.bytes;
}

/*
 * The next module to build: the one that most walks needed, then the biggest, or the first; at a
 * pace, the smallest of those that a walk needed. The lock is held.
 */
static struct module_entry *most_urgent(struct modules *ms)
{
	struct module_entry *best = NULL;

	for (size_t i = 0; ms->nr_pending && !ms->held && i < ms->nr; i++) {
		struct module_entry *e = ms->all[i];

		if (waits(e) && (!best || is_before(ms, e, best)))
			best = e;
	}
	return best;
}

/* The lock is held. */
static void publish(struct modules *ms, struct module_entry *e, struct unwind_table *table,
		    char *why)
{
	static const uint64_t one = 1;

	e->building = false;
	e->table = table;
	e->why = why;
	atomic_store_explicit(&e->state, table ? MODULE_READY : MODULE_WITHOUT,
			      memory_order_release);
	ms->nr_pending--;
	pthread_cond_broadcast(&ms->changed);
	if (write(ms->fd, &one, sizeof(one)) < 0) {
		/* If the counter is full, the descriptor is readable already. */
	}
}

/*
 * Builds the table of a module for which waits(e) holds. The lock is held, and released meanwhile.
 */
static void build(struct modules *ms, struct module_entry *e)
{
	struct unwind_table *table = NULL;
	uint64_t start = clock_mono_ns();
	char *why = NULL;
	int err;

	e->building = true;
	pthread_mutex_unlock(&ms->lock);
	err = unwind_table__get(e->module.elf, ms->rules, &ms->stop, &ms->cache, &table);
	elffile__forget_pages(e->module.elf);
	if (err && err != -ECANCELED)
		why = strdup(kprof_error_cause());
	error_clear();
	pthread_mutex_lock(&ms->lock);
	ms->build_ns += clock_mono_ns() - start;
	if (err == -ECANCELED) {
		e->building = false;
		return;
	}
	if (!err && ms->rows + table->nr_rows > ms->max_rows) {
		why = xasprintf(
			"the unwind tables of all modules together would be too big (%" PRIu64
			" rows)",
			ms->rows + table->nr_rows);
		unwind_table__free(table);
		table = NULL;
	}
	e->module.pointers = err == -ENODATA;
	if (table) {
		ms->rows += table->nr_rows;
		e->module.nr_pages = (uint32_t)table->nr_pages;
		e->module.nr_rows = (uint32_t)table->nr_rows;
		e->module.table_page = (uint32_t)table->first_page;
	}
	publish(ms, e, table, why);
}

void modules__build(struct modules *ms, struct module *m)
{
	struct module_entry *e = entry_of(m);

	pthread_mutex_lock(&ms->lock);
	if (waits(e))
		build(ms, e);
	while (atomic_load(&e->state) == MODULE_PENDING && e->building)
		pthread_cond_wait(&ms->changed, &ms->lock);
	pthread_mutex_unlock(&ms->lock);
}

/* ---- threads ---- */

static void *builder(void *arg)
{
	struct modules *ms = arg;

	/*
	 * At the same priority as the target: the work is a second or so, once; with a lower one, a
	 * target that keeps all CPUs busy would let samples end at its libraries for a minute.
	 */
	haste__drop();
	pace_begin(&ms->pace);
	pthread_mutex_lock(&ms->lock);
	while (!atomic_load(&ms->stop)) {
		struct module_entry *e = most_urgent(ms);

		if (!e) {
			pthread_cond_wait(&ms->changed, &ms->lock);
			continue;
		}
		build(ms, e);
		/* Of many tables each may be small. Here, others may read any file meanwhile. */
		pthread_mutex_unlock(&ms->lock);
		pace_rest_now();
		pthread_mutex_lock(&ms->lock);
	}
	pthread_mutex_unlock(&ms->lock);
	return NULL;
}

void modules__start_threads(struct modules *ms)
{
	sigset_t all, old;

	if (!ms->nr_threads)
		return;
	pthread_mutex_lock(&ms->lock);
	pthread_cond_broadcast(&ms->changed);
	pthread_mutex_unlock(&ms->lock);
	if (ms->nr_running)
		return;
	/* Signals are for the thread that waits for them. */
	sigfillset(&all);
	sigdelset(&all, SIGBUS); /* util/mapped.h */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	while (ms->nr_running < ms->nr_threads &&
	       !pthread_create(&ms->threads[ms->nr_running], NULL, builder, ms))
		ms->nr_running++;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	/* No thread could be started: modules__build() then builds tables when they are needed. */
	if (!ms->nr_running)
		ms->nr_threads = 0;
}

void modules__stop(struct modules *ms)
{
	pthread_mutex_lock(&ms->lock);
	atomic_store(&ms->stop, true);
	pthread_cond_broadcast(&ms->changed);
	pthread_mutex_unlock(&ms->lock);
	pace_wake(&ms->pace);
	while (ms->nr_running)
		pthread_join(ms->threads[--ms->nr_running], NULL);
}

/* ---- called by the session ---- */

void modules__want(struct modules *ms, struct module *m)
{
	struct module_entry *e = entry_of(m);

	pthread_mutex_lock(&ms->lock);
	e->wanted++;
	if (atomic_load(&e->state) == MODULE_PARKED &&
	    clock_mono_ns() - e->parked_ns > MODULES_PARKED_NS) {
		e->taken = false;
		atomic_store(&e->state, MODULE_PENDING);
		ms->nr_pending++;
		pthread_cond_broadcast(&ms->changed);
	}
	pthread_mutex_unlock(&ms->lock);
	if (!ms->nr_threads)
		modules__build(ms, m);
}

int modules__fd(const struct modules *ms)
{
	return ms->fd;
}

struct module *modules__take(struct modules *ms)
{
	struct module_entry *found = NULL;
	uint64_t count;

	pthread_mutex_lock(&ms->lock);
	for (size_t i = 0; i < ms->nr && !found; i++) {
		struct module_entry *e = ms->all[i];

		if (!e->taken && atomic_load(&e->state) != MODULE_PENDING)
			found = e;
	}
	if (found)
		found->taken = true;
	else if (read(ms->fd, &count, sizeof(count)) < 0) {
		/* The counter was zero already. */
	}
	pthread_mutex_unlock(&ms->lock);
	return found ? &found->module : NULL;
}

void modules__hold(struct modules *ms)
{
	pthread_mutex_lock(&ms->lock);
	ms->held = true;
	pthread_mutex_unlock(&ms->lock);
}

void modules__release(struct modules *ms)
{
	pthread_mutex_lock(&ms->lock);
	ms->held = false;
	if (ms->nr_pending) /* each thread that is woken for nothing costs two switches */
		pthread_cond_broadcast(&ms->changed);
	pthread_mutex_unlock(&ms->lock);
}

bool modules__may_read(struct modules *ms, const struct module *m)
{
	bool may;

	pthread_mutex_lock(&ms->lock);
	may = ms->held && !entry_of(m)->building;
	pthread_mutex_unlock(&ms->lock);
	return may;
}

uint64_t modules__paced_ns(const struct modules *ms)
{
	return atomic_load(&ms->pace.used_ns);
}

void modules__set_pace(struct modules *ms, uint64_t ns_a_second)
{
	if (atomic_load(&ms->pace.ns_a_second))
		atomic_store(&ms->pace.ns_a_second, ns_a_second ? ns_a_second : 1);
}

bool modules__all_done(struct modules *ms)
{
	bool done;

	pthread_mutex_lock(&ms->lock);
	done = !ms->nr_pending;
	pthread_mutex_unlock(&ms->lock);
	return done;
}

void modules__drop_table(struct modules *ms, struct module *m)
{
	struct module_entry *e = entry_of(m);

	pthread_mutex_lock(&ms->lock);
	if (atomic_load(&e->state) == MODULE_READY && e->table) {
		ms->rows -= e->table->nr_rows;
		unwind_table__free(e->table);
		e->table = NULL;
	}
	pthread_mutex_unlock(&ms->lock);
}

void modules__park(struct modules *ms, struct module *m)
{
	struct module_entry *e = entry_of(m);

	modules__drop_table(ms, m);
	m->first_page = MODULE_NOT_PLACED;
	pthread_mutex_lock(&ms->lock);
	e->wanted = 0;
	e->parked_ns = clock_mono_ns();
	atomic_store(&e->state, MODULE_PARKED);
	pthread_mutex_unlock(&ms->lock);
}

bool modules__wanted(struct modules *ms, const struct module *m)
{
	bool wanted;

	pthread_mutex_lock(&ms->lock);
	wanted = entry_of(m)->wanted;
	pthread_mutex_unlock(&ms->lock);
	return wanted;
}

uint64_t modules__build_ns(struct modules *ms)
{
	uint64_t ns;

	pthread_mutex_lock(&ms->lock);
	ns = ms->build_ns;
	pthread_mutex_unlock(&ms->lock);
	return ns;
}

size_t modules__nr_cached(struct modules *ms)
{
	return atomic_load(&ms->cache.nr_read);
}
