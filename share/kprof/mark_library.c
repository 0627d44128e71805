// SPDX-License-Identifier: BSD-2-Clause
/*
 * kprof/mark.h for languages that cannot include it: its macros as functions (libkprof_mark.so),
 * for ctypes and the like. share/kprof/kprof_mark.py is the Python face.
 */
#include "kprof/mark.h"

#define API __attribute__((visibility("default")))

API const volatile unsigned short *kprof_marks_watched(void);
API void kprof_marks_range_push(const char *name);
API void kprof_marks_range_pop(void);
API void kprof_marks_mark(const char *name);
API void kprof_marks_step(unsigned long long number);
API void kprof_marks_step_end(void);
API void kprof_marks_thread_info(const char *name);
API void kprof_marks_backend_event(unsigned long long start_us, unsigned long long end_us,
				   long long debug_handle, const char *name, const char *backend);
API void kprof_marks_backend_memory(unsigned long long pointer, long long bytes,
				    unsigned long long allocated, unsigned long long reserved,
				    int device_type, int device);
API void kprof_marks_correlation_push(unsigned long long id, int user);
API void kprof_marks_correlation_pop(int user);
API void kprof_marks_metadata(const char *key, const char *value, int json, int of_activity);
API void kprof_marks_invariant_violation(const char *assertion, const char *error,
					 const char *profile_id, const char *group_id);

/* The counter of who watches: not 0 while somebody records. */
const volatile unsigned short *kprof_marks_watched(void)
{
	return &kprof_mark_semaphore;
}

void kprof_marks_range_push(const char *name)
{
	KPROF_RANGE_PUSH(name);
}

void kprof_marks_range_pop(void)
{
	KPROF_RANGE_POP();
}

void kprof_marks_mark(const char *name)
{
	KPROF_MARK(name);
}

void kprof_marks_step(unsigned long long number)
{
	KPROF_STEP(number);
}

void kprof_marks_step_end(void)
{
	KPROF_STEP_END();
}

void kprof_marks_thread_info(const char *name)
{
	KPROF_THREAD_INFO(name);
}

void kprof_marks_backend_event(unsigned long long start_us, unsigned long long end_us,
			       long long debug_handle, const char *name, const char *backend)
{
	KPROF_BACKEND_EVENT(start_us, end_us, debug_handle, name, backend);
}

void kprof_marks_backend_memory(unsigned long long pointer, long long bytes,
				unsigned long long allocated, unsigned long long reserved,
				int device_type, int device)
{
	KPROF_BACKEND_MEMORY((const void *)pointer, bytes, allocated, reserved, device_type,
			     device);
}

void kprof_marks_correlation_push(unsigned long long id, int user)
{
	if (user)
		KPROF_USER_CORRELATION_PUSH(id);
	else
		KPROF_CORRELATION_PUSH(id);
}

void kprof_marks_correlation_pop(int user)
{
	if (user)
		KPROF_USER_CORRELATION_POP();
	else
		KPROF_CORRELATION_POP();
}

void kprof_marks_metadata(const char *key, const char *value, int json, int of_activity)
{
	if (json && of_activity)
		KPROF_ACTIVITY_METADATA_JSON(key, value);
	else if (json)
		KPROF_METADATA_JSON(key, value);
	else if (of_activity)
		KPROF_ACTIVITY_METADATA(key, value);
	else
		KPROF_METADATA(key, value);
}

void kprof_marks_invariant_violation(const char *assertion, const char *error,
				     const char *profile_id, const char *group_id)
{
	KPROF_INVARIANT_VIOLATION(assertion, error, profile_id, group_id);
}
