// SPDX-License-Identifier: BSD-2-Clause
/* The buffers that CUPTI fills: a bounded number, in memory pages of the agent's own. */
#include "gpu/cupti/cupti.h"
#include "gpu/base/util.h"

static struct {
	struct gpu_lock lock;
	bool forgotten;
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

uint8_t *buffers__take(void)
{
	uint8_t *pages = NULL;

	if (__atomic_load_n(&pool.forgotten, __ATOMIC_ACQUIRE))
		return NULL;
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
	return pages;
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
