// SPDX-License-Identifier: BSD-2-Clause
/*
 * Assigns activities to lanes. Slices that are drawn on one row must nest, and device work must not
 * overlap at all. So what ran at the same time on one stream (branches of a graph) is spread over
 * as few lanes as possible. An annotation is drawn around its work where that fits.
 */
#include "model/correlate/impl.h"

#include <errno.h>
#include <stdlib.h>

#include "util/error.h"
#include "util/order.h"
#include "util/util.h"

struct open_item {
	uint64_t end_ns;
	bool holds; /* other items may lie inside it: an annotation */
};

struct lane {
	struct open_item *open;
	size_t nr, cap;
};

struct layout {
	struct lane lanes[CORRELATE_MAX_LANES];
	uint32_t nr;
};

static int by_row_start(const void *pa, const void *pb, void *ctx)
{
	const struct corr_annotation *a = pa, *b = pb;

	if (a->row != b->row)
		return order_u64(a->row, b->row);
	if (a->start_ns != b->start_ns)
		return order_u64(a->start_ns, b->start_ns);
	if (a->end_ns != b->end_ns)
		return order_u64(b->end_ns, a->end_ns);
	return order_u64(a->span, b->span);
}

static bool fits(struct lane *lane, uint64_t start_ns, uint64_t end_ns)
{
	while (lane->nr && lane->open[lane->nr - 1].end_ns <= start_ns)
		lane->nr--;
	return !lane->nr ||
	       (lane->open[lane->nr - 1].holds && lane->open[lane->nr - 1].end_ns >= end_ns);
}

/* Puts an item on the first lane where it fits; CORRELATE_MAX_LANES: on none. -ENOMEM. */
static int place(struct correlate *c, struct layout *l, uint64_t start_ns, uint64_t end_ns,
		 bool holds, uint32_t *out)
{
	uint32_t i = 0;
	struct lane *lane;

	while (i < CORRELATE_MAX_LANES && !fits(&l->lanes[i], start_ns, end_ns))
		i++;
	*out = i;
	if (i == CORRELATE_MAX_LANES) {
		c->counts.no_lane++;
		return 0;
	}
	lane = &l->lanes[i];
	if (vec_grow((void **)&lane->open, &lane->cap, lane->nr, sizeof(*lane->open)))
		return error_set(-ENOMEM, NULL, "out of memory for a device's row");
	lane->open[lane->nr++] = (struct open_item){end_ns, holds};
	if (i >= l->nr)
		l->nr = i + 1;
	return 0;
}

static int place_act(struct correlate *c, struct layout *l, struct corr_act *act)
{
	uint32_t lane;
	int err = place(c, l, act->start_ns, act->end_ns, false, &lane);

	/* Most are on the first lane, which they have already: what is only read costs less. */
	if (lane)
		act->lane = (uint8_t)lane;
	if (lane == CORRELATE_MAX_LANES)
		act->flags |= CORR_ACT_NO_LANE;
	return err;
}

/* The i-th annotation if it is on this row; NULL. */
static struct corr_annotation *annotation_of(const struct correlate *c, uint32_t row, size_t i)
{
	struct corr_annotation *a = i < c->annotations.nr ? bulk__at(&c->annotations, i) : NULL;

	return a && a->row == row ? a : NULL;
}

/* Lays out one row. *next is the row's first annotation, and is moved to that of the next row. */
static int lay_out_row(struct correlate *c, uint32_t index, size_t *next)
{
	struct corr_annotation *a = annotation_of(c, index, *next);
	struct corr_row *row = (struct corr_row *)c->rows.data + index;
	struct layout l = {0};
	int err = 0;

	for (uint32_t i = 0; i <= row->nr && !err; i++) {
		struct corr_act *act =
			i < row->nr ? corr_act_at(c, correlate__of_row(c, row, i)) : NULL;

		/*
		 * Where both begin together, the annotation encloses the work and so is placed
		 * first.
		 */
		while (!err && a && (!act || a->start_ns <= act->start_ns)) {
			err = place(c, &l, a->start_ns, a->end_ns, true, &a->lane);
			a = annotation_of(c, index, ++*next);
		}
		if (act && !err)
			err = place_act(c, &l, act);
	}
	row->nr_lanes = l.nr;
	for (uint32_t i = 0; i < CORRELATE_MAX_LANES; i++)
		free(l.lanes[i].open);
	return err;
}

int correlate__lay_out(struct correlate *c)
{
	size_t next = 0;
	int err = 0;

	if (bulk__sort(&c->annotations, 0, c->annotations.nr, by_row_start, NULL))
		return correlate__no_memory(c->annotations.nr);
	for (uint32_t i = 0; i < c->rows.nr && !err; i++)
		err = lay_out_row(c, i, &next);
	return err;
}
