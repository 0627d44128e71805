/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of the flame graph sink. flame.c: the frames; flame_heat.c: the samples over
 * time; flame_facts.c: what the picture states of the recording.
 */
#ifndef KPROF_FLAME_IMPL_H
#define KPROF_FLAME_IMPL_H

#include "model/stacks/stacks.h"
#include "sink/write/write.h"

struct flame_facts {
	char *command; /* the program's command line, or kprof's own */
	char *facts;   /* text of the line below */
	struct stack_counts counts;
	bool of_waits;     /* the time is that of threads off the CPU */
	uint64_t left_out; /* frames that are not drawn */
	uint64_t self_ns[STACK_KINDS];
};

int flame_facts__read(struct flame_facts *f, struct kprof_capture *t, const struct stack_tree *tree,
		      const struct kprof_export_opts *opts);
void flame_facts__free(struct flame_facts *f);
/* Writes title and facts, beginning at x. */
void flame_put_facts(struct jsonw *w, const struct flame_facts *f, unsigned int x);

/* ---- flame_heat.c: the samples over time, in equal parts of the window ---- */

#define FLAME_PARTS_MAX 80

struct flame_heat {
	uint64_t start_ns, part_ns; /* of the window's begin; how long a part is */
	uint32_t nr_parts, nr_drawn;
	uint32_t *owner; /* by node: the nearest drawn one outwards, as so-many-th that is drawn */
	uint32_t nr_nodes;
	/* By drawn frame and part: of the samples in it, and in what is drawn as a part of it. */
	struct flame_cell {
		uint64_t weight_ns, samples;
	} * cells;
};

/*
 * Reads what each drawn frame has in each part. drawn: by node, whether it is drawn. The parts are
 * so many that there are at most some 150,000 numbers in the file.
 */
int flame_heat__read(struct flame_heat *h, struct kprof_capture *t, struct stack_tree *tree,
		     const uint8_t *drawn, pid_t pid);
void flame_heat__free(struct flame_heat *h);
/* Draws the strip, and writes the numbers that the program needs. */
void flame_put_heat(struct jsonw *w, const struct flame_heat *h, unsigned int x, unsigned int y,
		    unsigned int width, unsigned int height);

/* Writes a short text that needs no escaping. */
void flame_printf(struct jsonw *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void flame_put_time(struct jsonw *w, uint64_t ns);
void flame_put_count(struct jsonw *w, uint64_t n); /* 12,345 */

#endif
