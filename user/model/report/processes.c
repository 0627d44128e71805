// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tables by process, by the user whose the processes are, and by the container that they are in:
 * what each did, and what was not recorded of it. All processes that had one PID share a row, as
 * everywhere; those of all processes of a machine that are short-lived share one by name.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/report/busy.h"
#include "model/report/impl.h"
#include "model/report/nested.h"
#include "model/stacks/stacks.h"
#include "store/store.h"
#include "util/container.h"
#include "util/error.h"
#include "util/map64.h"
#include "util/util.h"

#define NOT_RECORDED UINT32_MAX /* of an UID; no process has it */
#define OP_CATEGORY "cpu_op"
#define SHOWN_ID 12 /* digits of a container's id in its row's name, as `docker ps` shows them */

struct table {
	struct kprof_result *result;
	struct kprof_capture *t;
	enum kprof_by by;
	struct map64 by_pid;   /* number of the row + 1 */
	struct map64 by_group; /* the same, by what else processes share a row by */
	struct nested nested;
};

static int no_memory(void)
{
	return error_set(-ENOMEM, NULL, "out of memory for a table of processes");
}

/* ---- rows ---- */

static struct kprof_row *row_at(const struct table *table, uint64_t number)
{
	return &table->result->entries[number - 1].row;
}

static const char *where_of(const struct table *table, const struct tl_process *p)
{
	if (!p || table->by == KPROF_BY_USER)
		return "";
	return table->by == KPROF_BY_CONTAINER ? p->cgroup : p->cmdline;
}

/* The number of a new row + 1; 0 with the error set. */
static uint64_t add_row(struct table *table, pid_t pid, const struct tl_process *p, char *name)
{
	struct kprof_result *r = table->result;
	struct kprof_row *row = result__row(r, name);

	if (!row)
		return 0;
	row->pid = table->by == KPROF_BY_PROCESS ? pid : 0;
	row->uid = p && p->has_uid ? p->uid : NOT_RECORDED;
	row->where = result__keep(r, where_of(table, p));
	row->category = result__keep(r, p ? p->user : "");
	return row->where && row->category ? r->nr : 0;
}

static uint64_t add_process_row(struct table *table, pid_t pid, const struct tl_process *p)
{
	char *name = p ? xasprintf("%d %s", pid, p->comm) : xasprintf("%d", pid);
	uint64_t number = add_row(table, pid, p, name);

	if (number)
		row_at(table, number)->processes = 1;
	return number;
}

/* What the processes of a row share, and the row's name, which is malloc'ed. */
static uint64_t group_of(const struct table *table, const struct tl_process *p, char **name)
{
	char id[CONTAINER_ID_BYTES] = "";

	if (table->by == KPROF_BY_PROCESS) {
		*name = xasprintf("%s (short-lived)", p->comm);
		return hash64_text(0, p->comm) >> 1;
	}
	if (table->by == KPROF_BY_USER) {
		*name = !p || !p->has_uid ? strdup("[not recorded]")
			: *p->user        ? strdup(p->user)
					  : xasprintf("%u", p->uid);
		return p && p->has_uid ? p->uid : NOT_RECORDED;
	}
	if (!p || !*p->cgroup)
		*name = strdup("[not recorded]");
	else if (container_id(p->cgroup, id))
		*name = strndup(id, strlen(id) == 64 ? SHOWN_ID : strlen(id));
	else
		*name = strdup("[no container]");
	return hash64_text(p && *p->cgroup, id) >> 1;
}

static void note_container(struct table *table, uint64_t number, const struct tl_process *p)
{
	struct kprof_row *row = row_at(table, number);
	char id[CONTAINER_ID_BYTES] = "";

	if (container_pod(p->cgroup, id))
		row->category = result__keep(table->result, id) ?: "";
	else
		row->category = "";
	if (!container_id(p->cgroup, id))
		row->where = ""; /* they have several */
}

static uint64_t group_row(struct table *table, pid_t pid, const struct tl_process *p)
{
	char *name = NULL;
	uint64_t *number = map64__at(&table->by_group, group_of(table, p, &name));

	if (!number || !name) {
		free(name);
		no_memory();
		return 0;
	}
	if (*number) {
		free(name);
	} else {
		*number = add_row(table, pid, p, name);
		if (*number && p && table->by == KPROF_BY_CONTAINER)
			note_container(table, *number, p);
		if (*number && table->by == KPROF_BY_PROCESS)
			row_at(table, *number)->pid = 0;
	}
	if (*number)
		row_at(table, *number)->processes++;
	return *number;
}

/* The row of a process. NULL with the error set. */
static struct kprof_row *row_of(struct table *table, pid_t pid)
{
	const struct tl_process *p = timeline__process_of(table->t, pid);
	uint64_t *number = map64__at(&table->by_pid, (uint32_t)pid);

	if (!number) {
		no_memory();
		return NULL;
	}
	if (!*number)
		*number = table->by != KPROF_BY_PROCESS || (p && timeline__is_passing(table->t, p))
				  ? group_row(table, pid, p)
				  : add_process_row(table, pid, p);
	return *number ? row_at(table, *number) : NULL;
}

/* Every process gets its row, also one that did nothing. */
static int add_rows(struct table *table)
{
	const struct tl_process *p;

	for (size_t i = 0; (p = timeline__process(table->t, i)); i++)
		if (!row_of(table, p->pid))
			return -ENOMEM;
	return 0;
}

/* ---- what is counted ---- */

static bool is_op(const struct tl_span *s)
{
	return !strcmp(s->description->category, OP_CATEGORY);
}

static struct kprof_row *row_of_thread(struct table *table, uint32_t thread)
{
	return row_of(table, timeline__thread(table->t, thread)->pid);
}

/* All operators of a thread are spans of one row, so that each moment counts once. */
static int begin_op(void *ctx, const struct tl_span *s, void *parent_data, void **data)
{
	struct table *table = ctx;

	return is_op(s) ? nested__begin(&table->nested, 0, s) : 0;
}

static int end_op(void *ctx, const struct tl_span *s, void *data)
{
	struct table *table = ctx;
	struct kprof_row *row = is_op(s) ? row_of_thread(table, s->thread) : NULL;
	uint64_t self_ns;

	if (!row)
		return is_op(s) ? -ENOMEM : 0;
	self_ns = row->self_ns; /* that is for samples */
	result__count_span(row, s, nested__end(&table->nested, 0, s));
	row->self_ns = self_ns;
	row->op_ns = row->total_ns;
	row->begun_before += (s->flags & KPROF_EVENT_OPEN_AT_START) != 0;
	return 0;
}

static int count_sample(void *ctx, const struct store_record *r)
{
	struct table *table = ctx;
	struct kprof_row *row;

	if (stack_off_cpu(r->sample.flags))
		return 0;
	row = row_of_thread(table, r->sample.thread);
	if (!row)
		return -ENOMEM;
	row->self_samples++;
	add_capped(&row->self_ns, r->sample.weight_ns);
	return 0;
}

static int count_busy(void *ctx, pid_t pid, uint64_t start_ns, uint64_t end_ns)
{
	struct kprof_row *row = row_of(ctx, pid);

	if (!row)
		return -ENOMEM;
	row->device_ns += end_ns - start_ns;
	return 0;
}

/* A gap of all processes is one of each. */
static int count_gaps(struct table *table)
{
	const struct kprof_gap *gap;
	uint32_t beyond;

	for (size_t i = 0; (gap = kprof_capture_gap(table->t, i)); i++) {
		uint64_t start_ns = gap->start_mono_ns, end_ns = gap->end_mono_ns;
		struct kprof_row *row = gap->pid ? row_of(table, gap->pid) : NULL;

		if (gap->pid && !row)
			return -ENOMEM;
		if (!timeline__part(table->t, &start_ns, &end_ns, &beyond))
			continue;
		for (size_t n = 0; n < table->result->nr; n++) {
			struct kprof_row *each = &table->result->entries[n].row;

			if (row && row != each)
				continue;
			each->gaps++;
			each->gap_ns += end_ns > start_ns ? end_ns - start_ns : 0;
		}
	}
	return 0;
}

static int fill(struct table *table)
{
	static const struct tl_walker walker = {.begin = begin_op, .end = end_op};
	int err = add_rows(table);

	if (!err)
		err = timeline__walk(table->t, &walker, table);
	if (!err)
		err = timeline__samples(table->t, 0, count_sample, table);
	if (!err)
		err = busy__each(table->t, count_busy, table);
	return err ? err : count_gaps(table);
}

static int make(struct kprof_result *r, struct kprof_capture *t, enum kprof_by by)
{
	struct table table = {.result = r, .t = t, .by = by};
	int err;

	r->keep_all = true;
	err = fill(&table);
	map64__free(&table.by_pid);
	map64__free(&table.by_group);
	nested__free(&table.nested);
	return err;
}

int result__by_process(struct kprof_result *r, struct kprof_capture *t)
{
	return make(r, t, KPROF_BY_PROCESS);
}

int result__by_user(struct kprof_result *r, struct kprof_capture *t)
{
	return make(r, t, KPROF_BY_USER);
}

int result__by_container(struct kprof_result *r, struct kprof_capture *t)
{
	return make(r, t, KPROF_BY_CONTAINER);
}
