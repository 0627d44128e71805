// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "capture/agent/memory.h"
#include "util/haste.h"
#include "util/util.h"

#define BEAT_NS (100 * NSEC_PER_MSEC) /* agents expect at least four heartbeats a second */

struct agent_pulse {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool over;
	const struct agent_memory **list;
	size_t nr, cap;
};

static void *beat(void *arg)
{
	struct agent_pulse *p = arg;

	haste__drop();
	pthread_mutex_lock(&p->lock);
	while (!p->over) {
		uint64_t now_ns = clock_mono_ns(), next_ns = now_ns + BEAT_NS;
		struct timespec until = {.tv_sec = (time_t)(next_ns / NSEC_PER_SEC),
					 .tv_nsec = (long)(next_ns % NSEC_PER_SEC)};

		for (size_t i = 0; i < p->nr; i++)
			agent_memory__beat(p->list[i], now_ns);
		pthread_cond_clockwait(&p->wake, &p->lock, CLOCK_MONOTONIC, &until);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

int agent_pulse__new(struct agent_pulse **out)
{
	struct agent_pulse *p = calloc(1, sizeof(*p));
	sigset_t all, old;
	int err;

	if (!p)
		return -ENOMEM;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->wake, NULL);
	/* Signals are handled by the threads of the program that uses the library. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = -pthread_create(&p->thread, NULL, beat, p);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err) {
		pthread_cond_destroy(&p->wake);
		pthread_mutex_destroy(&p->lock);
		free(p);
		return err;
	}
	*out = p;
	return 0;
}

void agent_pulse__free(struct agent_pulse *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->over = true;
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
	pthread_join(p->thread, NULL);
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->lock);
	free(p->list);
	free(p);
}

int agent_pulse__add(struct agent_pulse *p, const struct agent_memory *m)
{
	int err;

	pthread_mutex_lock(&p->lock);
	err = vec_grow((void **)&p->list, &p->cap, p->nr, sizeof(m));
	if (!err)
		p->list[p->nr++] = m;
	pthread_mutex_unlock(&p->lock);
	return err;
}

void agent_pulse__remove(struct agent_pulse *p, const struct agent_memory *m)
{
	pthread_mutex_lock(&p->lock);
	for (size_t i = 0; i < p->nr; i++)
		if (p->list[i] == m)
			p->list[i--] = p->list[--p->nr];
	pthread_mutex_unlock(&p->lock);
}
