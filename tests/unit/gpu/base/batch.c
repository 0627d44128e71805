// SPDX-License-Identifier: BSD-2-Clause
/*
 * Slots, names and batches of the agent: nothing is lost, torn, or told too late, whoever writes.
 */
#include <errno.h>
#include <semaphore.h>
#include <setjmp.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/base/host.h"
#include "gpu/base/batch.h"
#include "gpu/base/module.h"
#include "gpu/base/names.h"
#include "gpu/base/util.h"
#include "gpu_fixture.h"

static struct kprof_agent_shm *shm;

struct kprof_agent_shm *gpu_shm(void)
{
	return shm;
}

static struct kprof_agent_slot *slots(void)
{
	return (struct kprof_agent_slot *)((char *)shm + KPROF_AGENT_HEAD_BYTES);
}

static unsigned int owned(void)
{
	unsigned int nr = 0;

	for (unsigned int i = 0; i < KPROF_AGENT_SLOTS; i++)
		nr += slots()[i].owner != 0;
	return nr;
}

static bool append(uint64_t correlation, uint32_t name)
{
	struct kprof_agent_kernel k =
		BATCH_ACTIVITY(struct kprof_agent_kernel, KPROF_AGENT_KERNEL, name);

	k.a.correlation = correlation;
	return batch__append(&k);
}

static void begin(uint32_t session)
{
	if (!shm) {
		CHECK_EQ(shm__make(&shm), 0);
		CHECK_EQ(batch__init(shm), 0);
	}
	seen_clear();
	batch__open(session);
}

static void sound(void)
{
	CHECK_EQ(seen.broken, 0);
	CHECK_EQ(seen.nameless, 0);
}

static void nothing_is_kept_without_a_session(void)
{
	begin(1);
	batch__close();
	CHECK(!append(1, 0));
	CHECK_EQ(batch__name_of("x"), 0);
	CHECK_EQ(shm->agent_dropped, 1);
	CHECK_EQ(seen.batches, 0);
}

static void a_full_slot_is_handed_over(void)
{
	const unsigned int fit = KPROF_WIRE_BATCH_BYTES / sizeof(struct kprof_agent_kernel);

	begin(7);
	for (unsigned int i = 0; i < fit; i++)
		CHECK(append(i, 0));
	CHECK_EQ(seen.batches, 0);
	CHECK_EQ(shm->records, fit);
	CHECK(append(fit, 0));
	CHECK_EQ(seen.batches, 1);
	CHECK_EQ(seen.session, 7);
	CHECK_EQ(seen.records[KPROF_AGENT_KERNEL], fit);
	batch__close();
	CHECK_EQ(seen.records[KPROF_AGENT_KERNEL], fit + 1);
	CHECK_EQ(seen.sum, fit * (fit + 1) / 2);
	sound();
}

static void an_old_slot_is_handed_over(void)
{
	begin(2);
	append(1, 0);
	batch__hand_over(1); /* opened later than that */
	CHECK_EQ(seen.batches, 0);
	batch__hand_over(gpu_now_ns() + 1);
	CHECK_EQ(seen.batches, 1);
	batch__hand_over(0);
	CHECK_EQ(seen.batches, 1);
	batch__close();
}

static void names_have_one_id(void)
{
	char long_name[6000];
	uint32_t a, b;

	begin(3);
	a = batch__name_of("gemm");
	b = batch__name_of("relu");
	CHECK_EQ(a, 1);
	CHECK_EQ(b, 2);
	CHECK_EQ(batch__name_of("gemm"), a);
	CHECK_EQ(batch__name("gemmx", 4), a);
	CHECK_EQ(batch__name_of(NULL), 0);
	CHECK_EQ(batch__name("", 0), 0);
	CHECK_STR(seen_name(a), "gemm");
	CHECK_STR(seen_name(b), "relu");
	memset(long_name, 'n', sizeof(long_name));
	CHECK_EQ(batch__name(long_name, sizeof(long_name)), 3);
	CHECK_EQ(seen.name[3]->bytes, KPROF_WIRE_BATCH_BYTES - sizeof(struct kprof_agent_name));
	CHECK_EQ(shm->records, 3);
	batch__close();
	begin(4);
	CHECK_EQ(batch__name_of("relu"), 1); /* another session, other ids */
	batch__close();
	sound();
}

static void odd_records_are_refused(void)
{
	struct kprof_agent_head h = {KPROF_AGENT_KERNEL, 4, 0};

	begin(5);
	CHECK(!batch__append(&h));
	h.size = KPROF_WIRE_BATCH_BYTES + 8;
	CHECK(!batch__append(&h));
	CHECK_EQ(shm->agent_dropped, 2);
	batch__close();
}

static void errno_is_left_alone(void)
{
	begin(6);
	errno = 77;
	append(1, batch__name_of("a"));
	batch__hand_over(0);
	CHECK_EQ(errno, 77);
	batch__close();
}

/* ---- threads ---- */

/*
 * A lock whose holder gets no CPU for so long is waited for no longer: on a busy machine another
 * time will do.
 */
#define TIMES 20

#define THREADS 8
#define EACH 20000

static void *writer(void *arg)
{
	uint64_t first = (uint64_t)(uintptr_t)arg * EACH;
	char name[32];

	for (uint64_t i = 0; i < EACH; i++) {
		snprintf(name, sizeof(name), "kernel %d", (int)((first + i) % 1000));
		append(first + i, batch__name_of(name));
	}
	return NULL;
}

static void *old_hander(void *arg)
{
	const bool *stop = arg;

	while (!__atomic_load_n(stop, __ATOMIC_RELAXED))
		batch__hand_over(0);
	return NULL;
}

/* True: nobody has waited for a lock in vain. */
static bool write_by_threads(void)
{
	const uint64_t all = (uint64_t)THREADS * EACH;
	unsigned int before = owned();
	pthread_t t[THREADS], other;
	bool stop = false;

	begin(8);
	pthread_create(&other, NULL, old_hander, &stop);
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, writer, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(other, NULL);
	/* Threads that have ended have handed over what they had, and given back their slots. */
	if (shm->agent_dropped || owned() != before) {
		batch__close();
		sound();
		CHECK_EQ(seen.records[KPROF_AGENT_KERNEL] + shm->agent_dropped, all);
		return false;
	}
	CHECK_EQ(seen.records[KPROF_AGENT_KERNEL], all);
	CHECK_EQ(seen.sum, all * (all - 1) / 2);
	CHECK_EQ(seen.names, 1000);
	CHECK_EQ(shm->records, all + 1000);
	batch__close();
	sound();
	return true;
}

static void threads_lose_nothing(void)
{
	bool done = false;

	for (int i = 0; i < TIMES && !done; i++)
		done = write_by_threads();
	CHECK(done);
}

static sem_t go;

static void *one_each(void *arg)
{
	append((uint64_t)(uintptr_t)arg, 0);
	sem_wait(&go);
	append((uint64_t)(uintptr_t)arg, 0);
	return NULL;
}

static bool write_by_too_many_threads(void)
{
	enum { NR = KPROF_AGENT_SLOTS + 40 };
	unsigned int before = owned();
	static pthread_t t[NR];
	pthread_attr_t attr;
	bool done;

	begin(9);
	sem_init(&go, 0, 0);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 << 10);
	for (uintptr_t i = 0; i < NR; i++)
		CHECK_EQ(pthread_create(&t[i], &attr, one_each, (void *)i), 0);
	for (int i = 0; i < NR; i++)
		sem_post(&go);
	for (int i = 0; i < NR; i++)
		pthread_join(t[i], NULL);
	batch__close();
	done = !shm->agent_dropped && owned() == before;
	CHECK_EQ(seen.records[KPROF_AGENT_KERNEL] + shm->agent_dropped, 2 * NR);
	CHECK(!done || seen.sum == (uint64_t)NR * (NR - 1));
	sound();
	sem_destroy(&go);
	pthread_attr_destroy(&attr);
	return done;
}

static void more_threads_than_slots(void)
{
	bool done = false;

	for (int i = 0; i < TIMES && !done; i++)
		done = write_by_too_many_threads();
	CHECK(done);
}

/* What a target that dies had collected is in the memory file, in whole records. */
static void the_dead_leave_their_slots(void)
{
	const struct kprof_agent_slot *slot = NULL;
	int status;
	pid_t child;

	begin(10);
	child = fork();
	if (!child) {
		for (uint64_t i = 0; i < 5; i++)
			append(i, 0);
		kill(getpid(), SIGKILL);
	}
	waitpid(child, &status, 0);
	for (unsigned int i = 0; i < KPROF_AGENT_SLOTS; i++)
		slot = slots()[i].used ? &slots()[i] : slot;
	CHECK(slot);
	if (slot) {
		CHECK_EQ(slot->used, 5 * sizeof(struct kprof_agent_kernel));
		CHECK_EQ(slot->session, 10);
		CHECK_EQ(((const struct kprof_agent_kernel *)slot->data)[4].a.correlation, 4);
	}
	batch__close();
}

static void a_forked_child_writes_nothing(void)
{
	int status;
	pid_t child;

	begin(11);
	append(1, 0);
	child = fork();
	if (!child) {
		batch__forget();
		_exit(append(2, 0) || batch__name_of("x"));
	}
	waitpid(child, &status, 0);
	CHECK_EQ(status, 0);
	CHECK_EQ(shm->records, 1);
	batch__close();
	CHECK_EQ(seen.sum, 1);
}

static void names_without_end(void)
{
	uint32_t last = 0, id = 0;
	char name[32];

	begin(12);
	for (unsigned int i = 0; i < GPU_NAMES_MAX + 1000; i++) {
		snprintf(name, sizeof(name), "kernel %u", i);
		id = batch__name_of(name);
		if (id == last)
			break;
		last = id;
	}
	CHECK_EQ(id, GPU_NAMES_MAX);
	CHECK_STR(seen_name(id), GPU_NAMES_REST);
	CHECK_EQ(batch__name_of("kernel 77"), 78);
	CHECK_EQ(batch__name_of("yet another"), id);
	batch__close();
	sound();
}

static jmp_buf away;

static void leave_handler(void)
{
	longjmp(away, 1);
}

/*
 * A handler of the program's left by longjmp() while a hand-over was under way: the slot's lock is
 * nobody's.
 */
static void a_lock_that_never_comes_back(void)
{
	volatile uint64_t nr = 0;

	begin(13);
	interrupt = leave_handler;
	if (!setjmp(away)) {
		while (nr < 1000) {
			nr++;
			append(1, 0);
		}
	}
	CHECK(nr < 1000);
	CHECK(!append(1, 0)); /* not for ever, and once only */
	for (unsigned int i = 0; i < 1000; i++)
		CHECK(append(1, 0));
	CHECK_EQ(shm->agent_dropped, 1);
	batch__hand_over(0);
	CHECK_EQ(seen.sum, 1000);
	batch__close();
	batch__open(14);
	CHECK(append(1, 0));
	batch__close();
	CHECK_EQ(seen.sum, 1001);
	sound();
}

static uint32_t entries(const struct kprof_agent_spans *e)
{
	return (uint32_t)((e->h.size - sizeof(*e)) / sizeof(e->spans[0]));
}

/* Entries of a thread are one record, as long as nothing else comes between. */
static void spans_grow(void)
{
	struct batch_stream s = {.tid = 5, .session = 15};
	const struct kprof_agent_spans *first, *second;

	begin(15);
	CHECK(batch__span(&s, 0, 1000, 1, NULL, 0));
	CHECK(batch__span(&s, 1, 1001, KPROF_AGENT_SPAN_END, NULL, 0));
	append(1, 0);
	CHECK(batch__span(&s, 0, 1002, 2, NULL, 0));
	CHECK(batch__span(&s, 1, 1002 + UINT64_C(0x100000000), KPROF_AGENT_SPAN_END, NULL,
			  0)); /* far */
	batch__hand_over(0);
	CHECK_EQ(seen.batches, 1);
	CHECK_EQ(seen.records[KPROF_AGENT_SPANS], 3);
	first = (const void *)seen.kept[0];
	CHECK_EQ(entries(first), 2);
	CHECK_EQ(first->start, 1000);
	CHECK_EQ(first->base_ticks, 0);
	CHECK_EQ(first->tid, 5);
	CHECK_EQ(first->depth, 0);
	CHECK_EQ(first->spans[1].after, 1);
	CHECK_EQ(first->spans[1].what, KPROF_AGENT_SPAN_END);
	second = (const void *)seen.kept[2];
	CHECK_EQ(entries(second), 1);
	CHECK_EQ(second->start, 1002);
	CHECK_EQ(shm->spans, 4);
	CHECK_EQ(shm->records, 1); /* the kernel alone */
	s.session = 14;            /* a thread that has slept since: its names have other ids now */
	CHECK(!batch__span(&s, 0, 1000, 1, NULL, 0));
	s.session = 15;
	batch__close();
	CHECK(!batch__span(&s, 0, 1000, 1, NULL, 0));
	sound();
}

/* What belongs to a begin is never in another record. */
static void spans_keep_together(void)
{
	const struct kprof_agent_span more[] = {{0, KPROF_AGENT_SPAN_INPUTS | 3},
						{9, KPROF_AGENT_SPAN_SEQUENCE | 1}};
	struct batch_stream s = {.tid = 5, .session = 18};

	begin(18);
	for (uint64_t i = 0; i < 1000; i++) {
		CHECK(batch__span(&s, 0, i, 1, more, i % 3 ? 2 : 0));
		if (seen.batches == 1)
			break;
	}
	batch__hand_over(0);
	CHECK_EQ(seen.records[KPROF_AGENT_SPANS], 2);
	/* the full one is too long to be kept here */
	CHECK_EQ(((const struct kprof_agent_spans *)seen.kept[0])->spans[0].what, 1);
	sound();
}

static uint64_t words_of(uint32_t i)
{
	return 0x1234567890ull << (i & 7) ^ i;
}

/* Equal ones are handed over once; when too much has been kept, new ones have no id. */
static void inputs_have_one_id(void)
{
	uint64_t words[KPROF_AGENT_INPUTS_WORDS + 1] = {0};
	uint32_t i, first;

	begin(19);
	words[0] = words_of(1);
	first = batch__inputs(words, 2);
	CHECK(first);
	CHECK_EQ(batch__inputs(words, 2), first);
	CHECK(batch__inputs(words, 3) != first);
	CHECK_EQ(batch__inputs(words, 0), 0);
	CHECK_EQ(batch__inputs(words, KPROF_AGENT_INPUTS_WORDS + 1), 0);
	CHECK_EQ(batch__name("a name", 6), 1);
	CHECK_EQ(seen.records[KPROF_AGENT_INPUTS], 2);
	for (i = 2; i < 100000; i++) {
		words[0] = words_of(i);
		if (!batch__inputs(words, KPROF_AGENT_INPUTS_WORDS))
			break;
	}
	CHECK(i > 1000 && i < 100000);
	words[0] = words_of(1);
	CHECK_EQ(batch__inputs(words, 2), first);
	CHECK_EQ(batch__name("another", 7), 2);
	batch__close();
	CHECK_EQ(batch__inputs(words, 2), 0);
	sound();
}

static void spans_fill_slots(void)
{
	const uint64_t fit = (KPROF_WIRE_BATCH_BYTES - sizeof(struct kprof_agent_spans)) /
			     sizeof(struct kprof_agent_span);
	struct batch_stream s = {.tid = 5, .session = 16};

	begin(16);
	for (uint64_t i = 0; i < 10 * fit; i++)
		CHECK(batch__span(&s, 0, i, 1, NULL, 0));
	batch__hand_over(0);
	CHECK_EQ(seen.batches, 10);
	CHECK_EQ(seen.records[KPROF_AGENT_SPANS], 10);
	CHECK_EQ(shm->spans, 10 * fit);
	sound();
}

/* A record has one moment on both clocks, and its slot was opened no later than that. */
static void spans_in_ticks(void)
{
	struct batch_stream s = {.tid = 5, .session = 17, .ticks = true};
	uint64_t ticks = gpu_ticks(), before = gpu_now_ns();
	const struct kprof_agent_spans *e = (const void *)seen.kept[0];

	if (!ticks)
		return;
	begin(17);
	CHECK(batch__span(&s, 0, ticks, 1, NULL, 0));
	CHECK(((const struct kprof_agent_slot *)s.slot)->opened_ns <= gpu_now_ns());
	CHECK(batch__span(&s, 1, gpu_ticks(), KPROF_AGENT_SPAN_END, NULL, 0));
	batch__hand_over(0);
	CHECK_EQ(seen.records[KPROF_AGENT_SPANS], 1);
	CHECK_EQ(e->start, ticks);
	CHECK(e->base_ticks > ticks);
	CHECK(e->base_ns >= before);
	CHECK(e->base_ns <= gpu_now_ns());
	sound();
}

UNIT_MAIN(TEST(nothing_is_kept_without_a_session), TEST(a_full_slot_is_handed_over),
	  TEST(an_old_slot_is_handed_over), TEST(names_have_one_id), TEST(odd_records_are_refused),
	  TEST(errno_is_left_alone), TEST(threads_lose_nothing), TEST(more_threads_than_slots),
	  TEST(the_dead_leave_their_slots), TEST(a_forked_child_writes_nothing),
	  TEST(names_without_end), TEST(a_lock_that_never_comes_back), TEST(spans_grow),
	  TEST(spans_keep_together), TEST(inputs_have_one_id), TEST(spans_fill_slots),
	  TEST(spans_in_ticks))
