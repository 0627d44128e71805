// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads a capture's waits into rows: what for, and by the threads of which name. Time is that in
 * which the thread was blocked; when it could have gone on and only missed a CPU, that is a row of
 * its own. A wait that is longer than a block is in all blocks that it reaches into, each with its
 * part.
 */
#include <errno.h>
#include <string.h>

#include "model/diff/impl.h"
#include "store/store.h"
#include "util/error.h"

struct reading {
	struct diff_table *table;
	struct kprof_capture *t;
};

static int count_part(struct reading *r, const char *reason, const struct tl_thread *th,
		      uint64_t start_ns, uint64_t end_ns)
{
	const struct diff_blocks *b = &r->table->blocks;
	double calls = 1;
	uint32_t row;
	int err;

	if (start_ns < b->edge_ns[0])
		start_ns = b->edge_ns[0];
	if (end_ns <= start_ns)
		return 0;
	err = diff_table__row(r->table, &(struct diff_key){"wait", reason, th->title}, &row);
	if (err)
		return err;
	for (uint32_t i = diff_blocks__of(b, start_ns); i < b->nr && b->edge_ns[i] < end_ns; i++) {
		uint64_t from_ns = start_ns > b->edge_ns[i] ? start_ns : b->edge_ns[i];
		uint64_t to_ns = end_ns < b->edge_ns[i + 1] ? end_ns : b->edge_ns[i + 1];
		double ns = (double)(to_ns - from_ns);

		diff_table__add(r->table, row, i, ns, ns, calls);
		diff_table__add(r->table, DIFF_ROW_WHOLE, i, ns, ns, calls);
		calls = 0;
	}
	return 0;
}

static int count_wait(void *ctx, const struct store_record *rec)
{
	struct reading *r = ctx;
	const struct tl_thread *th = timeline__thread(r->t, rec->wait.thread);
	int err = count_part(r, timeline__wait_reason(r->t, rec), th, rec->wait.start_ns,
			     rec->wait.wake_ns);

	return err ? err : count_part(r, "run queue", th, rec->wait.wake_ns, rec->wait.end_ns);
}

int diff_read_waits(struct diff_table *table, struct kprof_capture *t)
{
	struct reading r = {table, t};

	return timeline__waits(t, 0, count_wait, &r);
}
