// SPDX-License-Identifier: BSD-2-Clause
/*
 * The strip above the frames: how many samples there are in each part of the window. The program
 * draws the frames anew for the parts that are chosen in it. It needs to know what each drawn frame
 * has in each part: lines of numbers, one for each frame in the order in which they are drawn.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "sink/profile/flame_impl.h"
#include "store/store.h"
#include "util/error.h"
#include "util/util.h"

/* With fewer frames than FRAMES_MAX × FLAME_PARTS_MIN, that many parts always fit. */
#define NUMBERS_MAX 150000 /* about 1.5 MB */
#define FLAME_PARTS_MIN 10

static struct flame_cell *cell_at(const struct flame_heat *h, uint32_t frame, uint32_t part)
{
	return &h->cells[(size_t)frame * FLAME_PARTS_MAX + part];
}

/* Numbers the drawn nodes in their order; each other one belongs to its caller's. */
static void find_owners(struct flame_heat *h, const struct stack_tree *tree, const uint8_t *drawn)
{
	uint32_t at = 0;

	do {
		if (drawn[at])
			h->owner[at] = h->nr_drawn++;
		else
			h->owner[at] = h->owner[stack_tree__node(tree, at)->parent];
		at = stack_tree__next(tree, at);
	} while (at);
}

static int add_sample(void *ctx, const struct store_record *r, uint32_t node)
{
	struct flame_heat *h = ctx;
	uint64_t ns = r->sample.time_ns > h->start_ns ? r->sample.time_ns - h->start_ns : 0;
	uint64_t part = ns / h->part_ns;
	struct flame_cell *cell;

	if (node >= h->nr_nodes) /* the file was added to meanwhile */
		return 0;
	cell = cell_at(h, h->owner[node], part < h->nr_parts ? (uint32_t)part : h->nr_parts - 1);
	add_capped(&cell->weight_ns, r->sample.weight_ns);
	cell->samples++;
	return 0;
}

static size_t count(const struct flame_heat *h)
{
	size_t nr = 0;

	for (size_t i = 0; i < (size_t)h->nr_drawn * FLAME_PARTS_MAX; i++)
		nr += h->cells[i].samples != 0;
	return nr;
}

/* Makes one part of every two. */
static void halve(struct flame_heat *h)
{
	for (uint32_t frame = 0; frame < h->nr_drawn; frame++) {
		for (uint32_t part = 0; part < h->nr_parts; part++) {
			struct flame_cell one = *cell_at(h, frame, part);
			struct flame_cell *to = cell_at(h, frame, part / 2);

			*cell_at(h, frame, part) = (struct flame_cell){0};
			add_capped(&to->weight_ns, one.weight_ns);
			to->samples += one.samples;
		}
	}
	h->nr_parts /= 2;
	h->part_ns *= 2;
}

int flame_heat__read(struct flame_heat *h, struct kprof_capture *t, struct stack_tree *tree,
		     const uint8_t *drawn, pid_t pid)
{
	const struct kprof_capture_info *info = kprof_capture_info(t);
	int err;

	*h = (struct flame_heat){.start_ns = info->start_mono_ns,
				 .nr_parts = FLAME_PARTS_MAX,
				 .nr_nodes = stack_tree__nr_nodes(tree)};
	h->part_ns = (info->end_mono_ns - info->start_mono_ns) / FLAME_PARTS_MAX + 1;
	h->owner = calloc(h->nr_nodes, sizeof(*h->owner));
	if (h->owner)
		find_owners(h, tree, drawn);
	h->cells = calloc((size_t)h->nr_drawn * FLAME_PARTS_MAX + 1, sizeof(*h->cells));
	if (!h->owner || !h->cells)
		return error_set(-ENOMEM, NULL, "no memory for a flame graph");
	err = stack_tree__samples(tree, pid, add_sample, h);
	while (!err && h->nr_parts > FLAME_PARTS_MIN && count(h) > NUMBERS_MAX)
		halve(h);
	return err;
}

void flame_heat__free(struct flame_heat *h)
{
	free(h->owner);
	free(h->cells);
}

/* ---- writing ---- */

static void put_base36(struct jsonw *w, uint64_t n)
{
	static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
	char text[16], *at = text + sizeof(text) - 1;

	*at = '\0';
	do
		*--at = digits[n % 36];
	while (n /= 36);
	jsonw__text(w, at);
}

/*
 * PARTS.WEIGHT[.SAMPLES], in base 36: how many parts after the one before, the time in ns, and how
 * many samples if they are several.
 */
static void put_numbers(struct jsonw *w, const struct flame_heat *h, uint32_t frame)
{
	const char *between = "";
	uint32_t last = 0;

	for (uint32_t part = 0; part < h->nr_parts; part++) {
		const struct flame_cell *cell = cell_at(h, frame, part);

		if (!cell->samples)
			continue;
		jsonw__text(w, between);
		between = " ";
		put_base36(w, part - last);
		jsonw__text(w, ".");
		put_base36(w, cell->weight_ns);
		if (cell->samples > 1) {
			jsonw__text(w, ".");
			put_base36(w, cell->samples);
		}
		last = part;
	}
	jsonw__text(w, "\n");
}

static uint64_t samples_in(const struct flame_heat *h, uint32_t part)
{
	uint64_t samples = 0;

	for (uint32_t frame = 0; frame < h->nr_drawn; frame++)
		samples += cell_at(h, frame, part)->samples;
	return samples;
}

static void put_strip(struct jsonw *w, const struct flame_heat *h, unsigned int x, unsigned int y,
		      unsigned int width, unsigned int height)
{
	double step = (double)width / h->nr_parts;
	uint64_t samples[FLAME_PARTS_MAX], most = 1;

	for (uint32_t i = 0; i < h->nr_parts; i++) {
		samples[i] = samples_in(h, i);
		most = samples[i] > most ? samples[i] : most;
	}
	for (uint32_t i = 0; i < h->nr_parts; i++) {
		flame_printf(w,
			     "<rect x=\"%.3f\" y=\"%u\" width=\"%.3f\" height=\"%u\" "
			     "fill-opacity=\"%.3f\"><title>from ",
			     x + i * step, y, step, height, (double)samples[i] / (double)most);
		flame_put_time(w, i * h->part_ns);
		jsonw__text(w, " to ");
		flame_put_time(w, (i + 1) * h->part_ns);
		jsonw__text(w, ": ");
		flame_put_count(w, samples[i]);
		jsonw__text(w, samples[i] == 1 ? " sample</title></rect>\n"
					       : " samples</title></rect>\n");
	}
}

void flame_put_heat(struct jsonw *w, const struct flame_heat *h, unsigned int x, unsigned int y,
		    unsigned int width, unsigned int height)
{
	flame_printf(w, "<g id=\"heat\" data-parts=\"%u\" data-part-ns=\"%" PRIu64 "\">\n",
		     h->nr_parts, h->part_ns);
	put_strip(w, h, x, y, width, height);
	flame_printf(w, "<text id=\"when\" class=\"facts\" x=\"%u\" y=\"%u\">samples over ", x,
		     y + height + 14);
	flame_put_time(w, h->nr_parts * h->part_ns);
	jsonw__text(w, "</text>\n</g>\n<metadata id=\"numbers\">\n");
	for (uint32_t frame = 0; frame < h->nr_drawn; frame++)
		put_numbers(w, h, frame);
	jsonw__text(w, "</metadata>\n");
}
