// SPDX-License-Identifier: BSD-2-Clause
/* The buffers that CUPTI fills: a bounded number, in memory pages of the agent's own. */
#include "gpu/cupti/cupti.h"
#include "gpu/base/util.h"

/*
 * CUPTI before 12.9 can crash if it is given no buffer. Several threads may fill this one at a
 * time: what is in it is worth nothing. Only that something is tells the truth, so that each time
 * it is given for one record.
 */
static uint8_t spare[CUPTI_SPARE_BYTES] __attribute__((aligned(4096)));

static struct {
	struct gpu_lock lock;
	bool forgotten, were_taken;
	unsigned int in_use;
	struct {
		uint8_t *pages; /* NULL: not allocated yet */
		bool taken;
	} b[CUPTI_BUFFERS];
} pool;

/* pool.lock is held. */
static void count(void)
{
	struct kprof_agent_shm *shm = gpu_shm();

	if (!shm)
		return;
	__atomic_store_n(&shm->buffers, pool.in_use, __ATOMIC_RELAXED);
	if (pool.in_use > shm->max_buffers)
		__atomic_store_n(&shm->max_buffers, pool.in_use, __ATOMIC_RELAXED);
}

uint8_t *buffers__take(bool or_none)
{
	uint8_t *pages = NULL;

	__atomic_store_n(&pool.were_taken, true, __ATOMIC_RELAXED);
	if (__atomic_load_n(&pool.forgotten, __ATOMIC_ACQUIRE))
		return or_none ? NULL : spare;
	gpu_lock(&pool.lock);
	for (unsigned int i = 0; i < CUPTI_BUFFERS && !pages; i++) {
		if (pool.b[i].taken)
			continue;
		if (!pool.b[i].pages)
			pool.b[i].pages = gpu_pages(CUPTI_BUFFER_BYTES);
		pages = pool.b[i].pages;
		if (!pages)
			break;
		pool.b[i].taken = true;
		pool.in_use++;
	}
	count();
	gpu_unlock(&pool.lock);
	return pages || or_none ? pages : spare;
}

bool buffers__is_spare(const uint8_t *buffer)
{
	return buffer == spare;
}

void buffers__reset(void)
{
	__atomic_store_n(&pool.were_taken, false, __ATOMIC_RELAXED);
}

bool buffers__were_taken(void)
{
	return __atomic_load_n(&pool.were_taken, __ATOMIC_RELAXED);
}

void buffers__give_back(uint8_t *buffer)
{
	if (!buffer || __atomic_load_n(&pool.forgotten, __ATOMIC_ACQUIRE))
		return;
	gpu_lock(&pool.lock);
	for (unsigned int i = 0; i < CUPTI_BUFFERS; i++) {
		if (pool.b[i].pages != buffer || !pool.b[i].taken)
			continue;
		pool.b[i].taken = false;
		pool.in_use--;
		break;
	}
	count();
	gpu_unlock(&pool.lock);
}

unsigned int buffers__in_use(void)
{
	return __atomic_load_n(&pool.in_use, __ATOMIC_RELAXED);
}

void buffers__free(void)
{
	gpu_lock(&pool.lock);
	for (unsigned int i = 0; i < CUPTI_BUFFERS; i++) {
		if (pool.b[i].taken)
			continue;
		gpu_pages_free(pool.b[i].pages, CUPTI_BUFFER_BYTES);
		pool.b[i].pages = NULL;
	}
	gpu_unlock(&pool.lock);
}

void buffers__forget(void)
{
	__atomic_store_n(&pool.forgotten, true, __ATOMIC_RELEASE);
	pool.lock.state = 0;
}
