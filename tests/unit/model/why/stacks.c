// SPDX-License-Identifier: BSD-2-Clause
/* user/model/why/stacks.c: what a wait is for, as its stack tells. */
#include "why_fixture.h"

#define READ 1 /* numbers of system calls + 1 */
#define WRITE 2

/* A stack of one more function, in no file. */
static uint32_t in(uint32_t parent, uint32_t kind, const char *function, const char *file,
		   const char *inlined_into)
{
	return made__stack(&of, parent,
			   made__frame(&of, kind, 0, "", function, file, 1, inlined_into));
}

/* What such a wait, of half of the time, is taken for. */
static void is(struct store_record wait, enum kprof_why_cause cause)
{
	struct kprof_why *w;
	uint32_t step = made__what(m, "train_step", "", "user_annotation", 0);

	for (uint64_t at = 0; at < STEPS * STEP_NS; at += STEP_NS) {
		put_span(at, at + STEP_NS, step);
		wait.wait.start_ns = MONO_NS + at + 2 * MS;
		wait.wait.wake_ns = wait.wait.end_ns = MONO_NS + at + 7 * MS;
		made__put(m, wait);
	}
	made__finish(m);
	w = why("lock");
	share_is(w, cause, 0.5);
	kprof_why_free(w);
}

static void lock_is(uint32_t stack, enum kprof_why_cause cause)
{
	struct store_record wait = wait_of(0, 0, main_thread, FUTEX, 0, 0);

	wait.wait.stack = stack;
	is(wait, cause);
}

static void native(void)
{
	begin("lock", true);
	lock_is(in(0, STORE_FRAME_NATIVE, "pthread_mutex_lock", "", NULL), KPROF_WHY_LOCK);
	begin("lock", true);
	lock_is(in(0, STORE_FRAME_NATIVE, "pthread_cond_wait", "", NULL), KPROF_WHY_THREAD);
	/* what is inlined, and what it is inlined into */
	begin("lock", true);
	lock_is(in(0, STORE_FRAME_NATIVE, "pthread_mutex_lock", "", "work"), KPROF_WHY_LOCK);
	begin("lock", true);
	lock_is(in(0, STORE_FRAME_NATIVE, "wait", "", "c10d::Store::wait"), KPROF_WHY_COLLECTIVE);
	begin("lock", true);
	lock_is(in(0, STORE_FRAME_NATIVE, "ncclGroupEnd", "", NULL), KPROF_WHY_COLLECTIVE);
	begin("lock", true);
	lock_is(in(0, STORE_FRAME_NATIVE, "MPI_Recv", "", NULL), KPROF_WHY_MESSAGE);
}

/* A lock of Python's: the program's own, or that of something that waits for another thread. */
static void python(const char *function, const char *file, enum kprof_why_cause cause)
{
	uint32_t stack;

	begin("lock", true);
	stack = in(0, STORE_FRAME_PYTHON, "train", "/app/train.py", NULL);
	if (*file)
		stack = in(stack, STORE_FRAME_PYTHON, function, file, NULL);
	lock_is(in(stack, STORE_FRAME_NATIVE, "PyThread_acquire_lock_timed", "", NULL), cause);
}

/* Who reads lacks data; who writes has too much of it. */
static void bytes_of(const char *file, uint32_t call, enum kprof_why_cause cause)
{
	struct store_record wait;

	begin("lock", true);
	wait = wait_of(0, 0, main_thread, call, 0, 0);
	wait.wait.object = made__string(m, file);
	is(wait, cause);
}

static void in_directory(void)
{
	scratch__make();
	bytes_of("pipe", READ, KPROF_WHY_DATA);
	bytes_of("socket", READ, KPROF_WHY_DATA);
	bytes_of("pipe", WRITE, KPROF_WHY_OTHER);
	native();
	python("", "", KPROF_WHY_LOCK);
	python("Event.wait", "/usr/lib/python3/threading.py", KPROF_WHY_THREAD);
	python("Queue.get", "/usr/lib/python3/queue.py", KPROF_WHY_DATA);
	kprof_capture_close(c);
	scratch__remove();
}

UNIT_MAIN(TEST(in_directory))
