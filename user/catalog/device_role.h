/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a call of a device runtime means for the device, as far as can be told from outside: enough to bracket work
 * that no tool interface tells of.
 */
#ifndef KPROF_CATALOG_DEVICE_ROLE_H
#define KPROF_CATALOG_DEVICE_ROLE_H

enum device_role {
	DEVICE_ROLE_NONE,
	DEVICE_ROLE_LAUNCH, /* queues work: kernels, … */
	DEVICE_ROLE_COPY,   /* … a copy, … */
	DEVICE_ROLE_SET,    /* … a set */
	DEVICE_ROLE_COPY_AND_WAIT,
	DEVICE_ROLE_RECORD,      /* marks a place in a stream by an event */
	DEVICE_ROLE_WAIT_STREAM, /* returns once the stream has done its work, … */
	DEVICE_ROLE_WAIT_EVENT,  /* … has come to the event, … */
	DEVICE_ROLE_WAIT_DEVICE, /* … all streams have */
};

/* By the call's name, without the suffixes of its variants. */
enum device_role device_role_of(const char *call);

#endif
