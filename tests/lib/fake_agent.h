/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The agent around a module, without its thread and memory file: what a module appends is kept in
 * an array. Include it in a test, with the module's own files.
 */
#ifndef KPROF_TESTS_FAKE_AGENT_H
#define KPROF_TESTS_FAKE_AGENT_H

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpu/base/batch.h"
#include "gpu/base/module.h"
#include "gpu/base/util.h"

#define FAKE_RECORDS 65536
#define FAKE_NAMES 64

union fake_record {
	struct kprof_agent_head h;
	struct kprof_agent_activity activity;
	struct kprof_agent_kernel kernel;
	struct kprof_agent_copy copy;
	struct kprof_agent_api api;
	struct kprof_agent_device device;
	struct kprof_agent_context context;
	struct kprof_agent_clock_pair clock;
};

static struct kprof_agent_shm fake_shm;
static union fake_record *fake_records;
static uint32_t fake_nr;
static char fake_names[FAKE_NAMES][256];
static uint32_t fake_nr_names;
static int fake_start_error;
static pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;

uint32_t batch__name(const char *text, size_t bytes)
{
	uint32_t i;

	if (!text || !bytes)
		return 0;
	pthread_mutex_lock(&fake_lock);
	for (i = 0; i < fake_nr_names; i++)
		if (strlen(fake_names[i]) == bytes && !memcmp(fake_names[i], text, bytes))
			break;
	if (i == fake_nr_names && i < FAKE_NAMES)
		memcpy(fake_names[fake_nr_names++], text, bytes < 255 ? bytes : 255);
	pthread_mutex_unlock(&fake_lock);
	return i + 1;
}

uint32_t batch__name_of(const char *text)
{
	return text ? batch__name(text, strlen(text)) : 0;
}

bool batch__append(const void *record)
{
	const struct kprof_agent_head *h = record;
	bool kept = false;

	pthread_mutex_lock(&fake_lock);
	if (!fake_records)
		fake_records = calloc(FAKE_RECORDS, sizeof(*fake_records));
	if (fake_nr < FAKE_RECORDS && h->size <= sizeof(*fake_records) && !(h->size & 7)) {
		memcpy(&fake_records[fake_nr++], record, h->size);
		kept = true;
	}
	pthread_mutex_unlock(&fake_lock);
	return kept;
}

uint32_t gpu_tid(void)
{
	return (uint32_t)gettid();
}

struct kprof_agent_shm *gpu_shm(void)
{
	return &fake_shm;
}

uint64_t gpu_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

int gpu_start_in_runtime(bool *held)
{
	*held = false;
	return fake_start_error;
}

void gpu_wait_for_session(bool held)
{
	(void)held;
}

int gpu_report(struct gpu_report *r, int err, enum kprof_agent_reason reason, ...)
{
	va_list ap;

	r->reason = reason;
	va_start(ap, reason);
	for (const char *piece; (piece = va_arg(ap, const char *));)
		strncat(r->detail, piece, sizeof(r->detail) - strlen(r->detail) - 1);
	va_end(ap);
	return err;
}

/* A new session: what was recorded before is forgotten. */
static inline void fake_session(void)
{
	fake_shm.recording++;
	fake_shm.agent_dropped = 0;
	fake_nr = 0;
	fake_nr_names = 0;
	memset(fake_names, 0, sizeof(fake_names));
}

static inline const char *fake_name(const union fake_record *r)
{
	return r->h.name ? fake_names[r->h.name - 1] : "";
}

static inline uint32_t fake_count(enum kprof_agent_kind kind)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < fake_nr; i++)
		nr += fake_records[i].h.kind == kind;
	return nr;
}

/* The i-th record of a kind; NULL. */
static inline const union fake_record *fake_at(enum kprof_agent_kind kind, uint32_t i)
{
	for (uint32_t j = 0; j < fake_nr; j++)
		if (fake_records[j].h.kind == kind && !i--)
			return &fake_records[j];
	return NULL;
}

#endif
