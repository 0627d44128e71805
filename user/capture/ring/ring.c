// SPDX-License-Identifier: BSD-2-Clause
#include "capture/ring/ring.h"

#include <errno.h>
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/ring/ring_priv.h"
#include "util/error.h"
#include "util/util.h"

#define MIN_RING_BYTES (64ull << 10)
#define MAX_RING_BYTES (1ull << 30)
#define DEFAULT_CPU_BYTES (8ull << 20)
#define DEFAULT_MAX_BYTES (256ull << 20)

void rings_layout(int nr_cpus, uint64_t total_bytes, uint32_t *nr, uint64_t *bytes_each)
{
	uint64_t each = MIN_RING_BYTES;

	*nr = nr_cpus < 1 ? 1 : (uint32_t)nr_cpus;
	if (*nr > KPROF_WIRE_MAX_RINGS)
		*nr = KPROF_WIRE_MAX_RINGS;
	if (!total_bytes) {
		total_bytes = DEFAULT_CPU_BYTES * (uint64_t)*nr;
		if (total_bytes < 2 * DEFAULT_CPU_BYTES)
			total_bytes = 2 * DEFAULT_CPU_BYTES;
		if (total_bytes > DEFAULT_MAX_BYTES)
			total_bytes = DEFAULT_MAX_BYTES;
	}
	while (each < MAX_RING_BYTES && each * 2 * *nr <= total_bytes)
		each *= 2;
	*bytes_each = each;
}

static int ring_map(struct ring *r, size_t page)
{
	void *p;

	p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	r->consumer = p;
	p = mmap(NULL, page + 2 * r->bytes, PROT_READ, MAP_SHARED, r->fd, (off_t)page);
	if (p == MAP_FAILED)
		return -errno;
	r->producer = p;
	r->data = (const uint8_t *)p + page;
	return 0;
}

int rings__new(int outer_map_fd, uint32_t nr, uint64_t bytes_each, struct rings **out)
{
	struct rings *rs = calloc(1, sizeof(*rs) + nr * sizeof(rs->ring[0]));
	int err = 0;

	if (!rs)
		return -ENOMEM;
	rs->nr = nr;
	rs->page = (size_t)sysconf(_SC_PAGESIZE);
	for (uint32_t i = 0; i < nr; i++)
		rs->ring[i].fd = -1;
	rs->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (rs->epoll_fd < 0)
		err = -errno;
	for (uint32_t i = 0; i < nr && !err; i++) {
		/*
		 * Edge-triggered: reports wake-ups instead of "there is data", which is nearly
		 * always true.
		 */
		struct epoll_event event = {.events = EPOLLIN | EPOLLET};
		struct ring *r = &rs->ring[i];

		r->bytes = bytes_each;
		r->fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "kprof_ring", 0, 0,
				       (uint32_t)bytes_each, NULL);
		if (r->fd < 0)
			err = -errno;
		if (!err)
			err = ring_map(r, rs->page);
		if (!err && bpf_map_update_elem(outer_map_fd, &i, &r->fd, 0))
			err = -errno;
		if (!err && epoll_ctl(rs->epoll_fd, EPOLL_CTL_ADD, r->fd, &event))
			err = -errno;
	}
	if (err) {
		rings__free(rs);
		return error_set_machine(err, "ask for less with --ring",
					 "cannot set up %u ring buffers of %llu KiB: %s", nr,
					 (unsigned long long)bytes_each >> 10, strerror(-err));
	}
	*out = rs;
	return 0;
}

void rings__with_counters(struct rings *rs, size_t bytes)
{
	for (uint32_t i = 0; i < rs->nr; i++)
		rs->ring[i].counters_bytes = bytes;
}

void rings__free(struct rings *rs)
{
	if (!rs)
		return;
	for (uint32_t i = 0; i < rs->nr; i++) {
		struct ring *r = &rs->ring[i];

		if (r->consumer)
			munmap(r->consumer, rs->page);
		if (r->producer)
			munmap((void *)r->producer, rs->page + 2 * r->bytes);
		if (r->fd >= 0)
			close(r->fd);
	}
	if (rs->epoll_fd >= 0)
		close(rs->epoll_fd);
	free(rs);
}

static void release(struct ring *r)
{
	__atomic_store_n(r->consumer, r->read_pos, __ATOMIC_RELEASE);
}

/*
 * The size of a record with ring header and padding. 0: more than is in the ring, in which nothing
 * can be found from here on.
 */
static uint32_t bytes_of(const struct ring *r, uint32_t len)
{
	uint64_t bytes = (len & ~BPF_RINGBUF_DISCARD_BIT) + BPF_RINGBUF_HDR_SZ;

	bytes = (bytes + 7) & ~7ull;
	return bytes <= r->end_pos - r->read_pos ? (uint32_t)bytes : 0;
}

/* Finds the ring's next finished record. now_ns: a time before the call. */
static void peek(struct ring *r, uint64_t now_ns)
{
	r->head = NULL;
	for (;;) {
		const uint8_t *at;
		uint32_t len, bytes;
		bool discarded;

		if (r->read_pos >= r->end_pos) {
			r->end_pos = __atomic_load_n(r->producer, __ATOMIC_ACQUIRE);
			if (r->read_pos >= r->end_pos) {
				r->clean_ns = now_ns;
				r->busy_since_ns = 0;
				return;
			}
		}
		at = r->data + (r->read_pos & (r->bytes - 1));
		len = __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE);
		if (len & BPF_RINGBUF_BUSY_BIT) {
			if (!r->busy_since_ns)
				r->busy_since_ns = now_ns;
			return;
		}
		discarded = len & BPF_RINGBUF_DISCARD_BIT;
		bytes = bytes_of(r, len);
		r->busy_since_ns = 0;
		r->head = (const struct kprof_wire_hdr *)(at + BPF_RINGBUF_HDR_SZ);
		r->head_bytes = bytes;
		if (bytes && !discarded && ring_counted_whole(r->head, len, r->counters_bytes)) {
			r->clean_ns = r->head->time_ns;
			return;
		}
		r->head = NULL;
		r->damaged += !bytes || !discarded;
		r->read_pos = bytes ? r->read_pos + bytes : r->end_pos;
	}
}

/* The time up to which all records of all rings are finished, as of each ring's last peek(). */
static uint64_t complete_until(const struct rings *rs, uint64_t now_ns)
{
	uint64_t limit = UINT64_MAX;

	for (uint32_t i = 0; i < rs->nr; i++) {
		const struct ring *r = &rs->ring[i];

		if (!r->busy_since_ns || now_ns - r->busy_since_ns > RINGS_MAX_HOLD_NS)
			continue;
		if (r->clean_ns < limit)
			limit = r->clean_ns;
	}
	return limit;
}

int rings__drain(struct rings *rs, size_t max, int final, rings_fn fn, void *ctx)
{
	uint64_t start_ns = clock_mono_ns();
	uint64_t limit;
	size_t n = 0;
	int err = 0;

	for (uint32_t i = 0; i < rs->nr; i++)
		peek(&rs->ring[i], start_ns);
	limit = complete_until(rs, start_ns);
	if (limit > start_ns) /* records written after this drain began wait for the next one */
		limit = start_ns;
	if (final)
		limit = UINT64_MAX;
	while (n < max && !err) {
		struct ring *first = NULL;

		for (uint32_t i = 0; i < rs->nr; i++) {
			struct ring *r = &rs->ring[i];

			if (r->head && (!first || r->head->time_ns < first->head->time_ns))
				first = r;
		}
		if (!first || first->head->time_ns > limit)
			break;
		rs->reached_ns = first->head->time_ns;
		err = fn(ctx, first->head);
		n++;
		first->read_pos += first->head_bytes;
		if ((n & 63) == 0)
			release(first);
		peek(first, start_ns);
		if (first->busy_since_ns && !final) {
			uint64_t until = complete_until(rs, start_ns);

			if (until < limit)
				limit = until;
		}
	}
	if (n < max && !err && !final)
		rs->reached_ns = limit + 1;
	for (uint32_t i = 0; i < rs->nr; i++)
		release(&rs->ring[i]);
	return err < 0 ? err : (int)n;
}

uint64_t rings__reached(const struct rings *rs)
{
	return rs->reached_ns;
}

void rings__wait(struct rings *rs, int timeout_ms)
{
	struct epoll_event events[8];

	epoll_wait(rs->epoll_fd, events, ARRAY_SIZE(events), timeout_ms);
}

int rings__watch(struct rings *rs, int fd)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};

	return epoll_ctl(rs->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

bool rings__empty(const struct rings *rs)
{
	for (uint32_t i = 0; i < rs->nr; i++) {
		const struct ring *r = &rs->ring[i];

		if (__atomic_load_n(r->producer, __ATOMIC_ACQUIRE) != r->read_pos)
			return false;
	}
	return true;
}

uint64_t rings__damaged(const struct rings *rs)
{
	uint64_t nr = 0;

	for (uint32_t i = 0; i < rs->nr; i++)
		nr += rs->ring[i].damaged;
	return nr;
}

uint64_t rings__read_bytes(const struct rings *rs)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < rs->nr; i++)
		bytes += rs->ring[i].read_pos;
	return bytes;
}
