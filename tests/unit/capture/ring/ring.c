// SPDX-License-Identifier: BSD-2-Clause
/*
 * Rings made of plain memory, as the kernel lays them out: merging by time, unfinished records,
 * wrap-around.
 */
#include "capture/ring/ring.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/ring/ring_priv.h"
#include "unit.h"
#include "util/util.h"

#define NR 3
#define BYTES 4096ull /* of one ring's data */
#define RECORD (BPF_RINGBUF_HDR_SZ + sizeof(struct kprof_wire_hdr))

struct fake { /* the producer's side */
	uint64_t consumer, producer;
	uint8_t *data; /* mapped twice in a row */
};

static struct rings *rings;
static struct fake fakes[NR];

/* What was handed out. */
static uint64_t seen[4096];
static uint32_t seen_id[4096];
static size_t nr_seen;
static int fail_at = -1;

static int on_record(void *ctx, const struct kprof_wire_hdr *h)
{
	if ((int)nr_seen == fail_at)
		return -EIO;
	seen[nr_seen] = h->time_ns;
	seen_id[nr_seen++] = h->id;
	return 0;
}

static uint8_t *map_twice(void)
{
	int fd = memfd_create("ring", MFD_CLOEXEC);
	uint8_t *p = mmap(NULL, 2 * BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (fd < 0 || p == MAP_FAILED || ftruncate(fd, BYTES))
		abort();
	for (int i = 0; i < 2; i++)
		if (mmap(p + (size_t)i * BYTES, BYTES, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
			abort();
	close(fd);
	return p;
}

static void start(void)
{
	rings = calloc(1, sizeof(*rings) + NR * sizeof(rings->ring[0]));
	if (!rings)
		abort();
	rings->nr = NR;
	rings->epoll_fd = -1;
	for (int i = 0; i < NR; i++) {
		fakes[i] = (struct fake){.data = map_twice()};
		rings->ring[i] = (struct ring){
			.consumer = &fakes[i].consumer,
			.producer = &fakes[i].producer,
			.data = fakes[i].data,
			.bytes = BYTES,
			.fd = -1,
		};
	}
	nr_seen = 0;
	fail_at = -1;
}

static void stop(void)
{
	for (int i = 0; i < NR; i++)
		munmap(fakes[i].data, 2 * BYTES);
	free(rings);
}

/* Reserves a record; flags: BPF_RINGBUF_BUSY_BIT, _DISCARD_BIT. Returns where its length stands. */
static uint32_t *put_sized(int ring, uint64_t time_ns, uint32_t id, uint32_t bytes, uint32_t flags)
{
	struct fake *f = &fakes[ring];
	uint8_t *at = f->data + f->producer % BYTES;
	struct kprof_wire_hdr h = {
		.time_ns = time_ns, .id = id, .kind = KPROF_WIRE_SITE, .size = (uint16_t)bytes};

	if (f->producer - f->consumer + bytes + BPF_RINGBUF_HDR_SZ > BYTES)
		abort();
	*(uint32_t *)at = bytes | flags;
	memcpy(at + BPF_RINGBUF_HDR_SZ, &h, sizeof(h));
	f->producer += (bytes + BPF_RINGBUF_HDR_SZ + 7) & ~7ull;
	return (uint32_t *)at;
}

static uint32_t *put(int ring, uint64_t time_ns, uint32_t flags)
{
	return put_sized(ring, time_ns, (uint32_t)ring, sizeof(struct kprof_wire_hdr), flags);
}

static void check_seen(const uint64_t *times, size_t nr)
{
	CHECK_EQ(nr_seen, nr);
	for (size_t i = 0; i < nr && i < nr_seen; i++)
		CHECK_EQ(seen[i], times[i]);
}

#define CHECK_SEEN(...)                                  \
	do {                                             \
		const uint64_t times_[] = {__VA_ARGS__}; \
		check_seen(times_, ARRAY_SIZE(times_));  \
	} while (0)

static void layout(void)
{
	uint64_t each;
	uint32_t nr;

	for (int cpus = -1; cpus < 300; cpus++) {
		for (uint64_t bytes = 0; bytes < 1ull << 40; bytes = bytes ? bytes * 3 : 1) {
			rings_layout(cpus, bytes, &nr, &each);
			CHECK(nr >= 1 && nr <= KPROF_WIRE_MAX_RINGS);
			CHECK((each & (each - 1)) == 0); /* the kernel demands it */
			CHECK(each >= 4096 && each <= 1ull << 30);
			/* No more than asked for, but for the least a ring can be. */
			CHECK(!bytes || each * nr <= bytes || each == 64 << 10);
		}
	}
	rings_layout(4, 0, &nr, &each);
	CHECK_EQ(nr, 4);
	CHECK_EQ(each, 8 << 20);
	rings_layout(1, 0, &nr, &each);
	CHECK_EQ(each, 16 << 20);
	rings_layout(64, 0, &nr, &each); /* large machines: bounded in all */
	CHECK_EQ(each * nr, 256 << 20);
}

static void merged_by_time(void)
{
	start();
	CHECK_EQ(rings__drain(rings, 100, 0, on_record, NULL), 0);
	put(0, 10, 0);
	put(2, 11, 0);
	put(1, 12, 0);
	put(1, 13, 0);
	put(0, 14, 0);
	put(2, 15, 0);
	CHECK(!rings__empty(rings));
	CHECK_EQ(rings__drain(rings, 100, 0, on_record, NULL), 6);
	CHECK_SEEN(10, 11, 12, 13, 14, 15);
	CHECK_EQ(rings__drain(rings, 100, 0, on_record, NULL), 0);
	CHECK(rings__empty(rings));
	for (int i = 0; i < NR; i++) /* the room is given back */
		CHECK_EQ(fakes[i].consumer, fakes[i].producer);
	stop();
}

static void at_most_so_many(void)
{
	start();
	for (uint64_t i = 0; i < 10; i++)
		put((int)(i % NR), 100 + i, 0);
	CHECK_EQ(rings__drain(rings, 4, 0, on_record, NULL), 4);
	CHECK_EQ(rings__drain(rings, 4, 0, on_record, NULL), 4);
	CHECK_EQ(rings__drain(rings, 4, 0, on_record, NULL), 2);
	CHECK_SEEN(100, 101, 102, 103, 104, 105, 106, 107, 108, 109);
	stop();
}

/* A program was interrupted while it wrote: what came later elsewhere waits for it. */
static void unfinished_holds_back(void)
{
	uint64_t now_ns;
	uint32_t *busy;

	start();
	CHECK_EQ(rings__drain(rings, 100, 0, on_record, NULL), 0);
	now_ns = clock_mono_ns();
	busy = put(0, now_ns + 1, BPF_RINGBUF_BUSY_BIT);
	put(1, now_ns + 2, 0);
	while (clock_mono_ns() < now_ns + 3)
		;
	CHECK_EQ(rings__drain(rings, 100, 0, on_record, NULL), 0);
	*busy &= ~BPF_RINGBUF_BUSY_BIT;
	CHECK_EQ(rings__drain(rings, 100, 0, on_record, NULL), 2);
	CHECK_SEEN(now_ns + 1, now_ns + 2);
	stop();
}

/* What is older than the last finished record of that ring need not wait. */
static void older_goes_on(void)
{
	start();
	put(0, 50, 0);
	put(0, 90, BPF_RINGBUF_BUSY_BIT);
	put(1, 40, 0);
	put(1, 50, 0);
	put(1, 60, 0);
	CHECK_EQ(rings__drain(rings, 100, 0, on_record, NULL), 3);
	CHECK_SEEN(40, 50, 50);
	stop();
}

/* But not for ever. */
static void hold_is_bounded(void)
{
	uint32_t *busy;
	uint64_t began_ns;

	start();
	CHECK_EQ(rings__drain(rings, 100, 0, on_record, NULL), 0);
	began_ns = clock_mono_ns();
	busy = put(0, began_ns, BPF_RINGBUF_BUSY_BIT);
	put(1, began_ns + 1, 0);
	while (!rings__drain(rings, 100, 0, on_record, NULL))
		usleep(1000);
	CHECK(clock_mono_ns() - began_ns >= RINGS_MAX_HOLD_NS);
	CHECK_SEEN(began_ns + 1);
	*busy &= ~BPF_RINGBUF_BUSY_BIT;
	CHECK_EQ(rings__drain(rings, 100, 0, on_record, NULL), 1); /* late, not lost */
	stop();
}

/* What happened after the look began waits: a ring that looked empty may hold older ones by now. */
static void the_future_waits(void)
{
	uint64_t then_ns;
	int drained;

	for (;;) {
		start();
		then_ns = clock_mono_ns() + 50 * NSEC_PER_MSEC;
		put(0, then_ns, 0);
		drained = rings__drain(rings, 100, 0, on_record, NULL);
		if (clock_mono_ns() < then_ns)
			break;
		stop(); /* kept waiting for a CPU: by now it is the past */
	}
	CHECK_EQ(drained, 0);
	while (clock_mono_ns() <= then_ns)
		usleep(1000);
	CHECK_EQ(rings__drain(rings, 100, 0, on_record, NULL), 1);
	stop();
}

static void discarded_are_passed_over(void)
{
	start();
	put(0, 1, BPF_RINGBUF_DISCARD_BIT);
	put(0, 10, 0);
	put_sized(0, 11, 0, 577, BPF_RINGBUF_DISCARD_BIT); /* an odd size is rounded up */
	put_sized(0, 12, 7, 585, 0);
	put(0, 13, 0);
	put(1, 2, BPF_RINGBUF_DISCARD_BIT);
	CHECK_EQ(rings__drain(rings, 100, 0, on_record, NULL), 3);
	CHECK_SEEN(10, 12, 13);
	CHECK_EQ(seen_id[1], 7);
	CHECK(rings__empty(rings));
	stop();
}

static struct kprof_wire_hdr *head_of(uint32_t *length)
{
	return (struct kprof_wire_hdr *)(void *)((uint8_t *)length + BPF_RINGBUF_HDR_SZ);
}

/* Whoever is handed a record may rely on its size and on the ends of its texts. */
static void damaged_are_passed_over(void)
{
	struct kprof_wire_begin_text *t;
	struct kprof_wire_mark *m;
	uint32_t *length;

	start();
	put(0, 1, 0);
	head_of(put(0, 2, 0))->size = 4000; /* more than the ring has of it */
	head_of(put(0, 3, 0))->kind = 99;
	head_of(put(0, 4, 0))->kind = KPROF_WIRE_BEGIN; /* which is longer */
	for (uint64_t i = 0; i < 3; i++) {
		t = (void *)head_of(put_sized(0, 5 + i, 5, sizeof(*t) + 64, 0));
		t->b.h.kind = KPROF_WIRE_BEGIN_TEXT;
		t->nr_args = 0;
		t->text_bytes = 64 + (uint32_t)(i == 1);
		memset(t->text, 'x', 64);
		t->text[63] = i ? '\0' : 'x'; /* 0: no end; 1: too long; 2: whole */
	}
	for (uint64_t i = 0; i < 2; i++) {
		m = (void *)head_of(put_sized(0, 8 + i, 8, sizeof(*m) + 64, 0));
		memset(m->text_bytes, 0, sizeof(m->text_bytes));
		m->h.kind = KPROF_WIRE_MARK;
		m->room = 64;
		m->text[63] = '\0';
		m->text_bytes[i] = 64; /* 1: there is room for one text only */
	}
	CHECK_EQ(rings__drain(rings, 100, 0, on_record, NULL), 3);
	CHECK_SEEN(1, 7, 8);
	CHECK_EQ(rings__damaged(rings), 6);
	length = put(0, 10, 0);
	put(0, 11, 0); /* not found any more, since nothing says where it begins */
	*length = 1000;
	put(1, 12, 0);
	CHECK_EQ(rings__drain(rings, 100, 0, on_record, NULL), 1);
	put(0, 13, 0);
	CHECK_EQ(rings__drain(rings, 100, 0, on_record, NULL), 1);
	CHECK_EQ(rings__damaged(rings), 7);
	CHECK(rings__empty(rings));
	stop();
}

/* Arguments that end a record with a text are no part of the text's room. */
static void arguments_beside_a_text(void)
{
	static const uint32_t nr_args[] = {KPROF_WIRE_TEXT_ARGS, KPROF_WIRE_TEXT_ARGS + 1,
					   UINT32_MAX};
	struct kprof_wire_begin_text *t;

	start();
	for (uint64_t i = 0; i < 3; i++) {
		t = (void *)head_of(put_sized(0, 1 + i, 5, sizeof(*t) + 96, 0));
		t->b.h.kind = KPROF_WIRE_BEGIN_TEXT;
		t->nr_args = nr_args[i];
		t->text_bytes = 0;
	}
	for (uint64_t i = 0; i < 2; i++) {
		t = (void *)head_of(put_sized(0, 4 + i, 5, sizeof(*t) + 96, 0));
		t->b.h.kind = KPROF_WIRE_BEGIN_TEXT;
		t->nr_args = KPROF_WIRE_TEXT_ARGS;
		memset(t->text, 0, 96);
		t->text_bytes = 64 + (uint32_t)i; /* 1: it reaches into them */
	}
	CHECK_EQ(rings__drain(rings, 100, 0, on_record, NULL), 2);
	CHECK_SEEN(1, 4);
	CHECK_EQ(rings__damaged(rings), 3);
	stop();
}

/* Behind records of hits there are counters, if the rings were told so; else they are damaged. */
static void counters_behind_records(void)
{
	uint32_t bytes = sizeof(struct kprof_wire_hdr);
	struct kprof_wire_hdr h = {.kind = KPROF_WIRE_SITE, .size = (uint16_t)bytes};

	CHECK(ring_counted_whole(&h, bytes, 0));
	CHECK(!ring_counted_whole(&h, bytes, 24));
	CHECK(!ring_counted_whole(&h, bytes + 16, 24));
	CHECK(ring_counted_whole(&h, bytes + 24, 24));
	CHECK_EQ((const char *)ring_counters(&h) - (const char *)&h, bytes);
	h.size = (uint16_t)(bytes + 4); /* they would not be aligned */
	CHECK(!ring_counted_whole(&h, bytes + 32, 24));
	h.size = (uint16_t)bytes;
	h.kind = KPROF_WIRE_MAPS; /* no hit of an event's probe */
	CHECK(ring_counted_whole(&h, bytes, 24));
	CHECK(!ring_counters(&h));
	start();
	rings__with_counters(rings, 24);
	put(0, 1, 0); /* without any */
	CHECK_EQ(rings__drain(rings, 100, 0, on_record, NULL), 0);
	CHECK_EQ(rings__damaged(rings), 1);
	stop();
}

/* Records lie across the end of the memory, many times over. */
static void wrap_around(void)
{
	uint64_t time_ns = 1;
	size_t all = 0;

	start();
	for (int round = 0; round < 200; round++) {
		for (int i = 0; i < 7; i++)
			put_sized(i % NR, time_ns++, (uint32_t)i, 72 + 8 * (uint32_t)(round % 11),
				  0);
		nr_seen = 0;
		CHECK_EQ(rings__drain(rings, 100, 0, on_record, NULL), 7);
		all += nr_seen;
		for (size_t i = 0; i < nr_seen; i++) {
			CHECK_EQ(seen[i], time_ns - 7 + i);
			CHECK_EQ(seen_id[i], i);
		}
	}
	CHECK_EQ(all, 1400);
	CHECK(fakes[0].producer > 10 * BYTES);
	stop();
}

/* At the end nothing is held back, whatever its time. */
static void final(void)
{
	uint64_t later_ns = clock_mono_ns() + NSEC_PER_SEC;

	start();
	put(0, later_ns, 0);
	put(1, 5, 0);
	CHECK_EQ(rings__drain(rings, 100, 1, on_record, NULL), 2);
	CHECK_SEEN(5, later_ns);
	stop();
}

/* A reader that fails has had the record; the next look goes on behind it. */
static void reader_fails(void)
{
	start();
	put(0, 1, 0);
	put(0, 2, 0);
	put(0, 3, 0);
	fail_at = 1;
	CHECK_EQ(rings__drain(rings, 100, 0, on_record, NULL), -EIO);
	fail_at = -1;
	CHECK_EQ(rings__drain(rings, 100, 0, on_record, NULL), 1);
	CHECK_SEEN(1, 3);
	stop();
}

UNIT_MAIN(TEST(layout), TEST(merged_by_time), TEST(at_most_so_many), TEST(unfinished_holds_back),
	  TEST(older_goes_on), TEST(hold_is_bounded), TEST(the_future_waits),
	  TEST(discarded_are_passed_over), TEST(damaged_are_passed_over),
	  TEST(arguments_beside_a_text), TEST(counters_behind_records), TEST(wrap_around),
	  TEST(final), TEST(reader_fails))
