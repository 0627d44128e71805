// SPDX-License-Identifier: BSD-2-Clause
/*
 * To be preloaded: a thread that is made runs for 50 ms before pthread_create() returns, as where
 * all CPUs are busy.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	int err;

	*(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
	err = next(thread, attr, run, arg);
	usleep(50000);
	return err;
}
