// SPDX-License-Identifier: BSD-2-Clause
/*
 * Each thread that writes has a slot. Each slot has a lock in private memory, for which only two
 * threads compete: the one that appends records, and the agent's thread, which hands over old ones.
 *
 * Every wait has a limit. A signal handler of the program may interrupt a thread that holds a lock,
 * and call exit(), leave by longjmp(), or append a record itself: then records are lost, but
 * nothing hangs.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "gpu/base/batch.h"
#include "gpu/base/module.h"
#include "gpu/base/names.h"
#include "gpu/base/probe.h"
#include "gpu/base/util.h"

#define LOCK_MS 100 /* locks are held for microseconds: after this time the lock is taken as lost */
/* An uninterrupted pair of readings takes less ticks than that; how often to try. */
#define CLOCK_TICKS 300
#define CLOCK_TRIES 4
#define TURN_MS 10                  /* for the agent's thread, which tries again later */
#define INPUTS_MAX_BYTES (4u << 20) /* of different inputs, which are kept in the process */

static struct {
	struct kprof_agent_shm *shm; /* NULL: not set up yet, or in a forked child */
	struct kprof_agent_slot *slots;
	uint32_t session; /* 0: no session */
	bool has_key;
	pthread_key_t key; /* holds the slot of each thread */
	struct gpu_lock lock[KPROF_AGENT_SLOTS];
	/* where the SPANS record begins that ends each slot, if any does */
	uint16_t spans_at[KPROF_AGENT_SLOTS];
	uint16_t spans_in[KPROF_AGENT_SLOTS]; /* begins and ends in such records */

	struct gpu_lock names_lock;
	struct gpu_names names;
	struct gpu_names inputs; /* of operators */
	/* what is being handed over of these. A slot, since kprof also reads the slot's head */
	struct kprof_agent_slot pending_name;
} b;

static void count(kprof_u64 *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

static struct gpu_lock *lock_of(const struct kprof_agent_slot *slot)
{
	return &b.lock[slot - b.slots];
}

/* Hands a slot over. The slot's lock is held. */
static void hand_over(struct kprof_agent_slot *slot)
{
	if (!slot->used)
		return;
	__atomic_fetch_add(&b.shm->spans, b.spans_in[slot - b.slots], __ATOMIC_RELAXED);
	b.spans_in[slot - b.slots] = 0;
	kprof_agent_batch(slot->data, slot->used);
	__atomic_store_n(&slot->used, 0, __ATOMIC_RELEASE);
}

/* Frees the slot of a thread that ends. */
static void give_back(void *arg)
{
	struct kprof_agent_slot *slot = arg;

	if (!__atomic_load_n(&b.shm, __ATOMIC_ACQUIRE))
		return;
	if (!gpu_trylock(lock_of(slot), LOCK_MS))
		return;
	hand_over(slot);
	gpu_unlock(lock_of(slot));
	__atomic_store_n(&slot->owner, 0, __ATOMIC_RELEASE);
}

static struct kprof_agent_slot *claim(void)
{
	uint32_t tid = gpu_tid();

	for (unsigned int i = 0; i < KPROF_AGENT_SLOTS; i++) {
		struct kprof_agent_slot *slot = &b.slots[i];
		uint32_t nobody = 0;

		if (__atomic_load_n(&slot->owner, __ATOMIC_RELAXED) ||
		    !__atomic_compare_exchange_n(&slot->owner, &nobody, tid, false,
						 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		if (!pthread_setspecific(b.key, slot))
			return slot;
		__atomic_store_n(&slot->owner, 0, __ATOMIC_RELEASE);
		break;
	}
	/* More threads than slots: some share. */
	return &b.slots[tid % KPROF_AGENT_SLOTS];
}

int batch__init(struct kprof_agent_shm *shm)
{
	int err;

	b.slots = (struct kprof_agent_slot *)((char *)shm + KPROF_AGENT_HEAD_BYTES);
	if (!b.has_key) {
		err = pthread_key_create(&b.key, give_back);
		if (err)
			return -err;
		b.has_key = true;
	}
	__atomic_store_n(&b.shm, shm, __ATOMIC_RELEASE);
	return 0;
}

void batch__forget(void)
{
	b.shm = NULL;
	b.session = 0;
	memset(b.lock, 0, sizeof(b.lock));
	b.names_lock.state = 0;
	/* the parent may have been changing them: not freed */
	memset(&b.names, 0, sizeof(b.names));
	memset(&b.inputs, 0, sizeof(b.inputs));
	if (b.has_key)
		pthread_setspecific(b.key, NULL); /* the parent's slot */
}

/* The calling thread's slot, locked. NULL: it could not be locked, which was counted. */
static struct kprof_agent_slot *take_slot(struct kprof_agent_shm *shm)
{
	struct kprof_agent_slot *slot = pthread_getspecific(b.key);

	if (!slot)
		slot = claim();
	if (gpu_trylock(lock_of(slot), LOCK_MS))
		return slot;
	pthread_setspecific(b.key, NULL); /* the thread gets another slot next time */
	count(&shm->agent_dropped);
	return NULL;
}

/* Makes room at the end of the slot, which is locked, by handing over what is in it. */
static void make_room(struct kprof_agent_slot *slot, size_t bytes, uint64_t time_ns)
{
	if (slot->used + bytes > sizeof(slot->data))
		hand_over(slot);
	if (!slot->used) {
		slot->opened_ns = time_ns;
		slot->session = b.session;
	}
}

bool batch__append(const void *record)
{
	const struct kprof_agent_head *h = record;
	struct kprof_agent_shm *shm = __atomic_load_n(&b.shm, __ATOMIC_ACQUIRE);
	struct kprof_agent_slot *slot;
	bool kept = false;
	int saved = errno;

	slot = shm ? take_slot(shm) : NULL;
	if (!slot) {
		errno = saved;
		return false;
	}
	if (b.session && h->size >= sizeof(*h) && h->size <= sizeof(slot->data)) {
		make_room(slot, h->size, gpu_now_ns());
		memcpy(slot->data + slot->used, record, h->size);
		__atomic_store_n(&slot->used, slot->used + h->size, __ATOMIC_RELEASE);
		kept = true;
	}
	gpu_unlock(lock_of(slot));
	count(kept ? &shm->records : &shm->agent_dropped);
	errno = saved;
	return kept;
}

/* The SPANS record that ends the slot, if this thread's next entries can be appended to it. */
static struct kprof_agent_spans *open_spans(const struct batch_stream *s, uint64_t time,
					    size_t bytes)
{
	struct kprof_agent_slot *slot = s->slot;
	uint32_t at = b.spans_at[slot - b.slots];
	struct kprof_agent_spans *spans = (void *)(slot->data + at);

	if (slot->used + bytes > sizeof(slot->data) || at + sizeof(*spans) > slot->used ||
	    spans->h.kind != KPROF_AGENT_SPANS || at + spans->h.size != slot->used ||
	    spans->tid != s->tid)
		return NULL;
	return time - spans->start <= UINT32_MAX ? spans : NULL;
}

/*
 * Reads both clocks as one moment. An interrupt between the two readings would put all times of the
 * record wrong.
 */
static void read_clocks(struct kprof_agent_spans *spans)
{
	uint64_t least = UINT64_MAX, before, ns, width;

	for (int i = 0; i < CLOCK_TRIES && least > CLOCK_TICKS; i++) {
		before = gpu_ticks();
		ns = gpu_now_ns();
		width = gpu_ticks() - before;
		if (width >= least)
			continue;
		least = width;
		spans->base_ns = ns;
		spans->base_ticks = before + width / 2;
	}
}

static struct kprof_agent_spans *begin_spans(const struct batch_stream *s, uint32_t depth,
					     uint64_t time, size_t bytes)
{
	struct kprof_agent_slot *slot = s->slot;
	struct kprof_agent_spans *spans,
		head = BATCH_RECORD(struct kprof_agent_spans, KPROF_AGENT_SPANS, 0);
	uint64_t opened_ns = time;

	head.start = time;
	head.tid = s->tid;
	head.depth = depth;
	if (s->ticks) {
		read_clocks(&head);
		/* not later than the entry: no such counter is slower than half a gigahertz */
		opened_ns = head.base_ns - 2 * (head.base_ticks - time);
	}
	make_room(slot, sizeof(head) + bytes, opened_ns);
	spans = (void *)(slot->data + slot->used);
	*spans = head;
	b.spans_at[slot - b.slots] = (uint16_t)slot->used;
	__atomic_store_n(&slot->used, slot->used + sizeof(head), __ATOMIC_RELEASE);
	return spans;
}

/* Appends an entry and those that belong to it, all in one record. The stream's slot is locked. */
static void append_span(const struct batch_stream *s, uint32_t depth, uint64_t time, uint32_t what,
			const struct kprof_agent_span *more, uint32_t nr)
{
	size_t bytes = (1 + nr) * sizeof(*more);
	struct kprof_agent_spans *spans = open_spans(s, time, bytes);
	struct kprof_agent_slot *slot = s->slot;
	uint32_t i = (uint32_t)(slot - b.slots);
	struct kprof_agent_span *at;

	if (!spans)
		spans = begin_spans(s, depth, time, bytes);
	at = &spans->spans[(slot->used - b.spans_at[i] - sizeof(*spans)) / sizeof(*at)];
	*at = (struct kprof_agent_span){(kprof_u32)(time - spans->start), what};
	for (uint32_t n = 0; n < nr; n++)
		at[1 + n] = more[n];
	__atomic_store_n(&slot->used, slot->used + bytes, __ATOMIC_RELEASE);
	spans->h.size += bytes;
	b.spans_in[i]++;
}

bool batch__span(struct batch_stream *s, uint32_t depth, uint64_t time, uint32_t what,
		 const struct kprof_agent_span *more, uint32_t nr)
{
	struct kprof_agent_shm *shm = __atomic_load_n(&b.shm, __ATOMIC_ACQUIRE);
	bool kept;

	if (!shm)
		return false;
	if (!s->slot || !gpu_trylock(lock_of(s->slot), LOCK_MS))
		s->slot = take_slot(shm);
	if (!s->slot)
		return false;
	kept = b.session && b.session == s->session;
	if (kept)
		append_span(s, depth, time, what, more, nr);
	gpu_unlock(lock_of(s->slot));
	return kept;
}

uint32_t batch__session(void)
{
	return __atomic_load_n(&b.session, __ATOMIC_RELAXED);
}

/* Hands over what is in pending_name, before any record can use it. names_lock is held. */
static void hand_over_pending(uint16_t kind, uint32_t id, size_t size)
{
	struct kprof_agent_head *h = (void *)b.pending_name.data;

	*h = (struct kprof_agent_head){kind, (kprof_u16)size, id};
	b.pending_name.session = b.session;
	b.pending_name.used = (kprof_u32)size;
	kprof_agent_batch(b.pending_name.data, b.pending_name.used);
}

static void hand_over_name(uint32_t id, const char *text, size_t bytes)
{
	struct kprof_agent_name *name = (void *)b.pending_name.data;
	size_t size;

	if (bytes > sizeof(b.pending_name.data) - sizeof(*name))
		bytes = sizeof(b.pending_name.data) - sizeof(*name);
	size = (sizeof(*name) + bytes + 7) & ~(size_t)7;
	memset(name, 0, size);
	name->bytes = (kprof_u32)bytes;
	memcpy(b.pending_name.data + sizeof(*name), text, bytes);
	hand_over_pending(KPROF_AGENT_NAME, id, size);
	count(&b.shm->records);
}

static void hand_over_inputs(uint32_t id, const char *words, size_t bytes)
{
	struct kprof_agent_inputs *inputs = (void *)b.pending_name.data;

	inputs->nr = (kprof_u32)(bytes / sizeof(inputs->words[0]));
	inputs->pad = 0;
	memcpy(inputs->words, words, bytes);
	hand_over_pending(KPROF_AGENT_INPUTS, id, sizeof(*inputs) + bytes);
}

/* Id of a text in one of the two tables; a new one is handed over. */
static uint32_t id_of(struct gpu_names *table, const char *text, size_t bytes,
		      void (*hand_over_new)(uint32_t id, const char *text, size_t bytes))
{
	struct kprof_agent_shm *shm = __atomic_load_n(&b.shm, __ATOMIC_ACQUIRE);
	uint32_t id = 0;
	bool is_new;

	if (!shm || !text || !bytes || !gpu_trylock(&b.names_lock, LOCK_MS))
		return 0;
	if (b.session) {
		id = gpu_names__id(table, &text, &bytes, &is_new);
		if (is_new)
			hand_over_new(id, text, bytes);
	}
	gpu_unlock(&b.names_lock);
	return id;
}

uint32_t batch__name(const char *text, size_t bytes)
{
	return id_of(&b.names, text, bytes, hand_over_name);
}

uint32_t batch__inputs(const uint64_t *words, size_t nr)
{
	return nr <= KPROF_AGENT_INPUTS_WORDS ? id_of(&b.inputs, (const char *)words,
						      nr * sizeof(*words), hand_over_inputs)
					      : 0;
}

uint32_t batch__name_of(const char *text)
{
	return text ? batch__name(text, strlen(text)) : 0;
}

/* Takes a lock, if that succeeds until this time: LOCK_MS is the limit for all locks together. */
static bool lock_before(struct gpu_lock *l, uint64_t until_ns)
{
	uint64_t now = gpu_now_ns();

	return gpu_trylock(l, now < until_ns ? (unsigned int)((until_ns - now) / 1000000) : 0);
}

/* Sets the session with all locks held, so that no thread appends meanwhile. */
static void set_session(uint32_t session)
{
	uint64_t until_ns = gpu_now_ns() + LOCK_MS * UINT64_C(1000000);
	bool names = lock_before(&b.names_lock, until_ns), locked[KPROF_AGENT_SLOTS];

	for (unsigned int i = 0; i < KPROF_AGENT_SLOTS; i++) {
		locked[i] = lock_before(&b.lock[i], until_ns);
		if (locked[i])
			hand_over(&b.slots[i]);
	}
	b.session = session;
	if (names) {
		gpu_names__clear(&b.names);
		gpu_names__clear(&b.inputs);
		b.inputs.max_bytes = INPUTS_MAX_BYTES;
	}
	for (unsigned int i = 0; i < KPROF_AGENT_SLOTS; i++) {
		if (locked[i])
			gpu_unlock(&b.lock[i]);
	}
	if (names)
		gpu_unlock(&b.names_lock);
}

void batch__open(uint32_t session)
{
	struct kprof_agent_shm *shm = b.shm;

	set_session(0);
	shm->records = 0;
	shm->device_dropped = 0;
	shm->agent_dropped = 0;
	shm->unknown_records = 0;
	shm->spans = 0;
	set_session(session);
}

void batch__hand_over(uint64_t opened_before_ns)
{
	for (unsigned int i = 0; i < KPROF_AGENT_SLOTS; i++) {
		struct kprof_agent_slot *slot = &b.slots[i];

		if (!__atomic_load_n(&slot->used, __ATOMIC_RELAXED))
			continue;
		if (!gpu_trylock(&b.lock[i], TURN_MS))
			continue;
		if (!opened_before_ns || slot->opened_ns < opened_before_ns)
			hand_over(slot);
		gpu_unlock(&b.lock[i]);
	}
}

void batch__close(void)
{
	set_session(0);
}
