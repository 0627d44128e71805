// SPDX-License-Identifier: BSD-2-Clause
/*
 * Placing probes in this very program, for real: through uprobe_multi and one by one, with places
 * among them that the kernel refuses. Skipped where this machine or user may not.
 */
#include "capture/probe/attach_impl.h"

#include <bpf/bpf.h>
#include <string.h>
#include <unistd.h>

#include "capture/features/features.h"
#include "capture/ring/ring.h"
#include "kprof.h"
#include "kprof/within.h"
#include "symbol/elf/elf.h"
#include "unit.h"
#include "util/util.h"

#define SOURCE 5

void ka_one(void);
void ka_two(void);

__asm__(".text\n"
	".globl ka_one\n.type ka_one, @function\nka_one: push %rbx\npop %rbx\nret\n.size ka_one, 3\n"
	".globl ka_two\n.type ka_two, @function\nka_two: push %rbx\npop %rbx\nret\n.size ka_two, 3\n"
	/* The kernel puts no probe on a breakpoint. */
	".type ka_bad, @function\nka_bad: int3\nret\n.size ka_bad, 2\n"
	".type ka_worse, @function\nka_worse: int3\nret\n.size ka_worse, 2\n");

/*
 * Whoever allocates memory takes a lock, which a thread of kprof's may hold when it is killed: the
 * process that places probes then (shelter.h) would never end. A sanitizer has allocators of its
 * own.
 */
static volatile pid_t ours;
static volatile unsigned int nr_foreign;

#if !defined(__SANITIZE_ADDRESS__)
static volatile unsigned int nr_own;
void *__libc_calloc(size_t nr, size_t bytes);

void *calloc(size_t nr, size_t bytes)
{
	if (ours)
		++*(getpid() == ours ? &nr_own : &nr_foreign);
	return __libc_calloc(nr, bytes);
}
#endif

static struct attacher *attacher;
static struct rings *rings;
static struct elffile *self;

/* within: see attacher_opts. */
static bool start_within(bool single, const char *within, enum kprof_within_of of)
{
	struct attacher_opts opts = {
		.single = single, .nr_rings = 2, .within = within, .within_of = of};
	int err;

	if (features_require(true) || (!single && !features_get()->uprobe_multi)) {
		printf("# skipped: %s\n", kprof_error_cause());
		return false;
	}
	if (!self && elffile__open("/proc/self/exe", &self))
		abort();
	err = attacher__new(&opts, &attacher);
	CHECK_EQ(err, 0);
	if (!err)
		err = rings__new(attacher__rings_fd(attacher), 2, 65536, &rings);
	CHECK_EQ(err, 0);
	return !err;
}

static bool start(bool single)
{
	return start_within(single, NULL, KPROF_WITHIN_ANNOTATIONS);
}

static void stop(void)
{
	rings__free(rings);
	attacher__free(attacher);
	rings = NULL;
	attacher = NULL;
}

static struct attach_point point(const char *symbol, uint32_t index)
{
	struct elffile_symbol sym;
	struct attach_point p = {.cookie = KPROF_COOKIE(SOURCE, 0, index)};

	if (elffile__symbol(self, symbol, &sym))
		abort();
	p.offset = elffile__offset(self, sym.vaddr);
	return p;
}

static uint64_t fired(void)
{
	struct kprof_wire_count count;

	CHECK_EQ(attacher__counts(attacher, SOURCE, &count), 0);
	CHECK_EQ(count.dropped, 0);
	return count.fired;
}

static int attach(const struct attach_point *points, size_t nr, struct attach_links *links)
{
	return attacher__attach(attacher, ATTACH_BEGIN, getpid(), "/proc/self/exe", points, nr,
				links);
}

static uint32_t seen[4];

static int on_record(void *ctx, const struct kprof_wire_hdr *h)
{
	const struct kprof_wire_begin *b = (const struct kprof_wire_begin *)h;

	CHECK_EQ(h->kind, KPROF_WIRE_BEGIN);
	CHECK_EQ(h->pid_tgid >> 32, getpid());
	CHECK(!(b->flags & KPROF_WIRE_F_NO_RET));
	if (h->id < ARRAY_SIZE(seen))
		seen[h->id]++;
	return 0;
}

/* Places and takes away, and what happens in between arrives. */
static void place(bool single)
{
	struct attach_links links = {0};
	struct attach_point points[4];
	uint32_t space;

	if (!start(single))
		return;
	CHECK_EQ(attacher__add_target(attacher, (uint32_t)getpid(), &space), 0);
	CHECK_EQ(space, getpid());
	points[0] = point("ka_one", 0);
	points[1] = point("ka_bad", 1);
	points[2] = point("ka_two", 2);
	points[3] = point("ka_worse", 3);
	ours = getpid();
	CHECK_EQ(attach(points, 4, &links), 0);
	ours = 0;
	CHECK_EQ(nr_foreign, 0);
#if !defined(__SANITIZE_ADDRESS__)
	CHECK(nr_own > 0);
#endif
	CHECK_EQ(attacher__refused(attacher), 2);
	ka_one();
	ka_two();
	ka_two();
	CHECK_EQ(fired(), 3);
	memset(seen, 0, sizeof(seen));
	CHECK_EQ(rings__drain(rings, 100, 1, on_record, NULL), 3);
	CHECK_EQ(seen[0], 1);
	CHECK_EQ(seen[2], 2);
	attacher__stop(attacher); /* from here on nobody counts */
	ka_one();
	CHECK_EQ(fired(), 3);
	attach_links_close(&links);
	CHECK_EQ(links.nr, 0);
	stop();
}

static void multi(void)
{
	place(false);
}

static void single(void)
{
	place(true);
}

/* Too much is refused: then something else is wrong, and nothing stays. */
static void all_refused(void)
{
	struct attach_links links = {0};
	struct attach_point points[40];

	if (!start(false))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(points); i++)
		points[i] = point(i ? "ka_bad" : "ka_one", 0);
	CHECK(attach(points, ARRAY_SIZE(points), &links) < 0);
	CHECK_EQ(links.nr, 0);
	CHECK_EQ(attacher__refused(attacher), 0);
	ka_one();
	CHECK_EQ(fired(), 0);
	free(links.links);
	stop();
}

/* A process that is not there. */
static void no_process(void)
{
	struct attach_links links = {0};
	struct attach_point p;

	if (!start(false))
		return;
	p = point("ka_one", 0);
	CHECK(attacher__attach(attacher, ATTACH_BEGIN, 0x3fffff, "/proc/self/exe", &p, 1, &links) <
	      0);
	CHECK_EQ(links.nr, 0);
	stop();
}

/*
 * Loading a program takes the kernel some 2 us for each instruction that its verifier walks over,
 * and a loop with many paths once made that a second for all.
 */
#define MOST_VERIFIED 20000

/* Of its own programs: on the machine there may be those of others, who record more. */
static void check_verified(void)
{
	struct bpf_program *p;
	unsigned int nr = 0;

	bpf_object__for_each_program(p, attacher->skel->obj)
	{
		struct bpf_prog_info info = {0};
		__u32 bytes = sizeof(info);
		int fd = bpf_program__fd(p);

		if (fd < 0) /* not loaded */
			continue;
		CHECK_EQ(bpf_obj_get_info_by_fd(fd, &info, &bytes), 0);
		nr++;
		if (info.verified_insns > MOST_VERIFIED)
			printf("# %s: %u\n", info.name, info.verified_insns);
		CHECK(info.verified_insns > 0 && info.verified_insns <= MOST_VERIFIED);
	}
	CHECK(nr >= 10);
	stop();
}

static void programs_are_verified_soon(void)
{
	if (start(false))
		check_verified();
	if (start_within(false, "decode*", KPROF_WITHIN_ANNOTATIONS))
		check_verified();
	if (start_within(false, "decode*", KPROF_WITHIN_FUNCTIONS))
		check_verified();
	if (start_within(false, "Decoder", KPROF_WITHIN_MODULES))
		check_verified();
	if (start_within(false, "decode", KPROF_WITHIN_SYMBOL))
		check_verified();
}

/* Who was left is handed out once, by time: all, all, and two processes. */
static void left_in_order(void)
{
	const pid_t pids[] = {0, 0, KPROF_WITHIN_ROUNDS + 7, 8};
	struct attach_left left;
	uint64_t last_ns = 0;

	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		CHECK(attacher__within_left(attacher, UINT64_MAX, &left));
		CHECK_EQ(left.pid, pids[i]);
		CHECK(left.since_ns >= last_ns && left.since_ns <= clock_mono_ns());
		last_ns = left.since_ns;
	}
	CHECK(!attacher__within_left(attacher, UINT64_MAX, &left));
	attach_within_leave(attacher, -1);
	CHECK(!attacher__within_left(attacher, last_ns - 1, &left));
	CHECK(attacher__within_left(attacher, clock_mono_ns(), &left));
}

/* A range that ends while hits are left out is not seen to end: no thread counts as inside. */
static void shed_hits_end_ranges(void)
{
	uint32_t before;

	if (!start_within(true, "decode*", KPROF_WITHIN_ANNOTATIONS))
		return;
	before = attacher->skel->bss->within_rounds[7];
	attacher__shed(attacher, KPROF_WIRE_SHED_ENTRY_STACKS);
	CHECK_EQ(attacher->skel->bss->within_rounds[7], before);
	attacher__shed(attacher, KPROF_WIRE_SHED_HITS);
	CHECK_EQ(attacher->skel->bss->within_rounds[7], before + 1);
	attacher__unshed(attacher, KPROF_WIRE_SHED_HITS);
	CHECK_EQ(attacher->skel->bss->within_rounds[7], before + 2);
	/* Of a process alone */
	attach_within_leave(attacher, KPROF_WITHIN_ROUNDS + 7);
	CHECK_EQ(attacher->skel->bss->within_rounds[7], before + 3);
	attach_within_leave(attacher, 8);
	CHECK_EQ(attacher->skel->bss->within_rounds[7], before + 3);
	left_in_order();
	stop();
}

UNIT_MAIN(TEST(multi), TEST(single), TEST(all_refused), TEST(no_process),
	  TEST(programs_are_verified_soon), TEST(shed_hits_end_ranges))
