// SPDX-License-Identifier: BSD-2-Clause
/*
 * Threads that are left, as their processes' probes are others: what is open ends then, hits that
 * were under way are passed over, and the next annotation of the name counts.
 */
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "capture/session/session.h"
#include "kprof/mark.h"
#include "kprof/within.h"
#include "unit.h"

#define PID 77u
#define OTHER 78u
#define SAME_PLACE (PID + KPROF_WITHIN_ROUNDS)

static struct kprof_session s;
static struct thread *threads[3]; /* of PID, OTHER, SAME_PLACE */
static uint64_t ended_ns[3];
static unsigned int nr_open[3];
static char path[64];

/* ---- the attacher ---- */

static struct attach_left lefts[4];
static size_t nr_lefts;

bool attacher__within_left(struct attacher *a, uint64_t until_ns, struct attach_left *out)
{
	if (!nr_lefts || lefts[0].since_ns > until_ns)
		return false;
	*out = lefts[0];
	memmove(lefts, lefts + 1, --nr_lefts * sizeof(*lefts));
	return true;
}

static void leave(pid_t pid, uint64_t since_ns)
{
	lefts[nr_lefts++] = (struct attach_left){.since_ns = since_ns, .pid = pid};
}

/* ---- the session ---- */

static int begins(void *ctx, uint32_t thread, uint64_t time_ns, uint32_t description,
		  uint64_t *number)
{
	nr_open[thread]++;
	return 0;
}

static int ends(void *ctx, const struct span_end *end)
{
	nr_open[end->thread]--;
	ended_ns[end->thread] = end->time_ns;
	return 0;
}

static void begin(void)
{
	const uint32_t pids[] = {PID, OTHER, SAME_PLACE};
	const struct spans_ops ops = {.begin = begins, .end = ends};

	memset(&s, 0, sizeof(s));
	memset(nr_open, 0, sizeof(nr_open));
	memset(ended_ns, 0, sizeof(ended_ns));
	s.opts.within = "decode*";
	s.filter.within = true;
	nr_lefts = 0;
	snprintf(path, sizeof(path), "/dev/shm/kprof-unit-within.%d", (int)getpid());
	CHECK_EQ(recorder__new(path, NULL, &s.recorder), 0);
	CHECK_EQ(targets__new(&s.targets) | threads__new(&s.threads), 0);
	CHECK_EQ(spans__new(&ops, &s.spans), 0);
	spans__open_window(s.spans, 0);
	for (uint32_t i = 0; i < 3; i++) {
		struct target *t = targets__add(s.targets, pids[i]);

		threads[i] = threads__add(s.threads, t, (uint64_t)pids[i] << 32 | pids[i]);
		threads[i]->spans = spans__thread(s.spans, i, pids[i]);
		CHECK_EQ(spans__range_begin(s.spans, threads[i]->spans, 1000, 4096, 1, 3), 0);
	}
}

static void end(void)
{
	spans__free(s.spans);
	threads__free(s.threads);
	targets__free(s.targets);
	recorder__free(s.recorder);
	unlink(path);
}

static void open_ranges_end(void)
{
	begin();
	leave(PID, 5000);
	leave(0, 7000);
	CHECK_EQ(within__leave(&s, 4999), 0);
	CHECK(nr_open[0] == 1 && nr_open[1] == 1 && nr_open[2] == 1 && !threads[0]->left);
	CHECK_EQ(within__leave(&s, 6000), 0);
	CHECK(nr_open[0] == 0 && nr_open[1] == 1 && nr_open[2] == 0);
	CHECK(ended_ns[0] > 4000 && ended_ns[0] <= 5000 && ended_ns[2] == ended_ns[0]);
	CHECK(threads[0]->left && !threads[1]->left && threads[2]->left);
	CHECK_EQ(within__leave(&s, UINT64_MAX), 0);
	CHECK(nr_open[1] == 0 && ended_ns[1] <= 7000 && ended_ns[1] > 6000 && threads[1]->left);
	end();
}

static const struct catalog_row range = {.shape = CATALOG_RANGE_BEGIN};
static const struct catalog_row range_end = {.shape = CATALOG_RANGE_END};
static const struct catalog_row span = {.shape = CATALOG_SPAN};

static bool text_is_late(const char *text, const struct catalog_row *row)
{
	union {
		struct kprof_wire_begin_text e;
		char bytes[sizeof(struct kprof_wire_begin_text) + KPROF_WIRE_TEXT_SHORT];
	} hit = {.e = {.b.h.kind = KPROF_WIRE_BEGIN_TEXT, .text_addr = 4096}};

	if (text) {
		hit.e.text_bytes = (uint32_t)strlen(text) + 1;
		strcpy(hit.e.text, text);
	}
	return within__is_late(&s, threads[0], &hit.e.b.h, row);
}

static bool mark_is_late(const char *text, uint32_t kind)
{
	union {
		struct kprof_wire_mark m;
		char bytes[sizeof(struct kprof_wire_mark) + KPROF_WIRE_TEXT_SHORT];
	} hit = {.m = {.h.kind = KPROF_WIRE_MARK, .mark = kind, .text_addr = {4096}}};

	hit.m.text_bytes[0] = (uint32_t)strlen(text) + 1;
	strcpy(hit.m.text, text);
	return within__is_late(&s, threads[0], &hit.m.h, NULL);
}

static bool is_late(uint32_t kind)
{
	struct kprof_wire_hdr h = {.kind = kind};

	return within__is_late(&s, threads[0], &h, &span);
}

static void hits_under_way(void)
{
	begin();
	CHECK(!is_late(KPROF_WIRE_BEGIN));
	leave(PID, 5000);
	CHECK_EQ(within__leave(&s, 5000), 0);
	CHECK(is_late(KPROF_WIRE_BEGIN) && is_late(KPROF_WIRE_SITE));
	CHECK(is_late(KPROF_WIRE_BEGIN_INPUTS) && is_late(KPROF_WIRE_BEGIN_ARGS));
	CHECK(!is_late(KPROF_WIRE_SAMPLE) && !is_late(KPROF_WIRE_MODULES));
	CHECK(text_is_late("decode", &range_end) && text_is_late("inner", &range));
	CHECK(mark_is_late("decode", KPROF_MARK_RANGE_POP));
	CHECK(mark_is_late("inner", KPROF_MARK_RANGE_PUSH));
	CHECK(!text_is_late("decoder", &range) && !threads[0]->left);
	CHECK(!is_late(KPROF_WIRE_BEGIN) && !text_is_late("inner", &range));
	threads[0]->left = true;
	CHECK(!mark_is_late("decode", KPROF_MARK_RANGE_PUSH) && !is_late(KPROF_WIRE_SITE));
	threads[0]->left = true;
	CHECK(!text_is_late(NULL, &range)); /* whose name could not be read again */
	end();
}

UNIT_MAIN(TEST(open_ranges_end), TEST(hits_under_way))
