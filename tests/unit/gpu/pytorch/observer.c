// SPDX-License-Identifier: BSD-2-Clause
/*
 * What PyTorch's callbacks make of what they are told, without PyTorch: its functions are played
 * here.
 */
#include "gpu/pytorch/observer.c"

#include "gpu/base/host.h"
#include "gpu_fixture.h"

#define HANDLE 7
#define OPERATOR "aten::add"
#define ANNOTATION "wanted"

static struct kprof_agent_shm *shm;
static unsigned int nr_here; /* callbacks that are registered for this thread */

struct kprof_agent_shm *gpu_shm(void)
{
	return shm;
}

static const char *name_of(const void *record)
{
	return record;
}

static uint64_t add_here(struct callback callback)
{
	CHECK(callback.start && callback.end);
	nr_here++;
	return HANDLE;
}

static void remove_callback(uint64_t handle)
{
	CHECK_EQ(handle, HANDLE);
	nr_here--;
}

static void session_begins(uint32_t number, uint32_t options)
{
	if (!shm) {
		CHECK_EQ(shm__make(&shm), 0);
		CHECK_EQ(batch__init(shm), 0);
		CHECK_EQ(pthread_key_create(&o.key, NULL), 0);
		o.name = name_of;
		o.add_here = add_here;
		o.remove = remove_callback;
	}
	strcpy(shm->within, ANNOTATION);
	set_options(options | KPROF_AGENT_OPT_SCOPES(1 | 1 << USER_SCOPE));
	batch__open(number);
}

static uint32_t depth(void)
{
	const struct open_spans *spans = pthread_getspecific(o.key);

	return spans ? spans->depth : 0;
}

/*
 * A thread was inside when the session ended, and does its next operator in another one, of all
 * operators: the callbacks that it still has, and those of all threads, tell of it both.
 */
static void told_twice(void)
{
	session_begins(1, KPROF_AGENT_OPT_WITHIN);
	begins(ANNOTATION, USER_SCOPE);
	CHECK_EQ(depth(), 1);
	CHECK_EQ(nr_here, 1);
	session_begins(2, 0);
	begins(OPERATOR, 0);
	begins(OPERATOR, 0);
	CHECK_EQ(depth(), 1);
	CHECK_EQ(nr_here, 0);
	ends(OPERATOR, NULL);
	ends(OPERATOR, NULL);
	CHECK_EQ(depth(), 0);
	begins(OPERATOR, 0);
	CHECK_EQ(depth(), 1);
	ends(OPERATOR, NULL);
}

/* Another thread has the lock for long: what is inside of the annotation is not recorded. */
static void not_entered(void)
{
	session_begins(3, KPROF_AGENT_OPT_WITHIN);
	CHECK_EQ(shm->not_entered, 0);
	gpu_lock(&o.lock);
	begins(ANNOTATION, USER_SCOPE);
	gpu_unlock(&o.lock);
	CHECK_EQ(depth(), 0);
	CHECK_EQ(shm->not_entered, 1);
	ends(ANNOTATION, NULL);
	begins(ANNOTATION, USER_SCOPE);
	CHECK_EQ(depth(), 1);
	ends(ANNOTATION, NULL);
	CHECK(!depth() && !nr_here);
	CHECK_EQ(shm->not_entered, 1);
	session_begins(4, KPROF_AGENT_OPT_WITHIN);
	CHECK_EQ(shm->not_entered, 0);
}

UNIT_MAIN(TEST(told_twice), TEST(not_entered))
