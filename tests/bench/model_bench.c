// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the offline half costs on one core: spans per second of each pass over a capture.
 *
 *   model_bench CAPTURE.kprof [ROUNDS]
 *
 * "read" is the store's reader alone; what "spans" takes beyond it is the timeline's own. The
 * passes are interleaved, the median of the rounds (default 5) is printed, and the time of opening.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "kprof.h"
#include "model/timeline/timeline.h"
#include "store/store.h"
#include "util/util.h"

#define MAX_ROUNDS 101

static int read_only(struct kprof_capture *c, const char *path)
{
	struct store_reader *reader;
	struct store_record r;
	int err = store_reader__open(path, &reader);

	if (err)
		return err;
	while (!err) {
		err = store_reader__next(reader, &r);
		if (err <= 0)
			break;
		err = 0;
	}
	store_reader__close(reader);
	return err;
}

static int count(void *ctx, const struct tl_span *s)
{
	*(uint64_t *)ctx += s->self_ns;
	return 0;
}

static int spans(struct kprof_capture *c, const char *path)
{
	uint64_t self_ns = 0;

	return timeline__spans(c, count, &self_ns);
}

static int by_op(struct kprof_capture *c, const char *path)
{
	struct kprof_result *r;
	int err = kprof_result_new(c, KPROF_BY_OP, KPROF_SORT_SELF, &r);

	kprof_result_free(r);
	return err;
}

static int by_thread(struct kprof_capture *c, const char *path)
{
	struct kprof_result *r;
	int err = kprof_result_new(c, KPROF_BY_THREAD, KPROF_SORT_SELF, &r);

	kprof_result_free(r);
	return err;
}

static int tree(struct kprof_capture *c, const char *path)
{
	struct kprof_tree *t;
	int err = kprof_tree_new(c, &t);

	kprof_tree_free(t);
	return err;
}

static struct pass {
	const char *name;
	int (*run)(struct kprof_capture *c, const char *path);
	uint64_t ns[MAX_ROUNDS];
} passes[] = {
	{.name = "read", .run = read_only}, {.name = "spans", .run = spans},
	{.name = "by op", .run = by_op},    {.name = "by thread", .run = by_thread},
	{.name = "tree", .run = tree},
};

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int run_rounds(struct kprof_capture *c, const char *path, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		for (size_t p = 0; p < ARRAY_SIZE(passes); p++) {
			uint64_t start_ns = clock_mono_ns();
			int err = passes[p].run(c, path);

			if (err)
				return err;
			passes[p].ns[i] = clock_mono_ns() - start_ns;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	int rounds = argc > 2 ? atoi(argv[2]) : 5;
	struct kprof_capture *c;
	struct rusage usage;
	uint64_t start_ns = clock_mono_ns(), events;
	int err;

	if (argc < 2 || argc > 3 || rounds < 1 || rounds > MAX_ROUNDS) {
		fprintf(stderr, "usage: %s CAPTURE.kprof [ROUNDS]\n", argv[0]);
		return 2;
	}
	err = kprof_capture_open(argv[1], &c);
	if (err)
		goto out;
	events = kprof_capture_info(c)->events;
	printf("%llu spans, opened in %.1f ms\n", (unsigned long long)events,
	       (double)(clock_mono_ns() - start_ns) / 1e6);
	err = run_rounds(c, argv[1], rounds);
	kprof_capture_close(c);
	if (err)
		goto out;
	for (size_t p = 0; p < ARRAY_SIZE(passes); p++) {
		uint64_t *ns = passes[p].ns;

		qsort(ns, (size_t)rounds, sizeof(*ns), by_value);
		printf("%-10s %8.2f M spans/s  (%.2f … %.2f s)\n", passes[p].name,
		       (double)events / (double)ns[rounds / 2] * 1e3, (double)ns[0] / 1e9,
		       (double)ns[rounds - 1] / 1e9);
	}
	getrusage(RUSAGE_SELF, &usage);
	printf("peak memory %.1f MB\n", (double)usage.ru_maxrss / 1e3);
out:
	if (err)
		fprintf(stderr, "%s\n", kprof_error_cause());
	return err ? 1 : 0;
}
