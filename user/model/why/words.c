// SPDX-License-Identifier: BSD-2-Clause
/* What causes are called, and what to look at first. */
#include "model/why/impl.h"

static const struct {
	const char *key, *name;
	const char *advice; /* of the thread itself */
	const char *other;  /* of the thread that it waits for; NULL: the same */
} words[] = {
	[KPROF_WHY_COMPUTE] = {"computing", "computing", "", NULL},
	[KPROF_WHY_CODE] =
		{"code", "code outside operators",
		 "the program's own code between operators; can it be done less often, or "
		 "elsewhere?",
		 NULL},
	[KPROF_WHY_LAUNCH] = {"launching", "launching operators",
			      "calls cost more than computing (kprof's probes, too): fewer, larger "
			      "operators",
			      NULL},
	[KPROF_WHY_DATA] = {"data", "waiting for data",
			    "more workers, earlier (prefetch), or less work for each batch", NULL},
	[KPROF_WHY_GIL] = {"gil", "waiting for the GIL",
			   "another Python thread holds the lock: move its work to a process",
			   NULL},
	[KPROF_WHY_LOCK] = {"lock", "waiting for a lock",
			    "another thread holds it: hold it for less, or take it less often",
			    NULL},
	[KPROF_WHY_CPU] = {"cpu", "waiting for a CPU",
			   "more threads want to run than may: fewer threads, more CPUs, or no "
			   "neighbours",
			   NULL},
	[KPROF_WHY_DEVICE] =
		{"device", "waiting for the device",
		 "each wait empties the device's queue: read results (.item(), .cpu()) less "
		 "often",
		 NULL},
	[KPROF_WHY_COLLECTIVE] = {"collective", "waiting for a collective",
				  "the slowest process decides: compare it with the others", NULL},
	[KPROF_WHY_MESSAGE] =
		{"message", "waiting for a message",
		 "the process that sends or receives decides: see what it does until then", NULL},
	[KPROF_WHY_THREAD] = {"thread", "waiting for another thread",
			      "what that one does is on the way of each step", NULL},
	[KPROF_WHY_SLEEP] = {"sleep", "sleeping", "the program asks for it: is it needed?",
			     "the thread that is waited for sleeps: is it needed?"},
	[KPROF_WHY_DISK] =
		{"disk", "waiting for a disk or file", "read ahead, larger pieces, or from memory",
		 "the thread that is waited for reads: let it read ahead, or from memory"},
	[KPROF_WHY_OTHER] = {"other", "other waits", "see kprof report --by wait", NULL},
	[KPROF_WHY_UNKNOWN] = {"unknown", "not known", "", NULL},
};

_Static_assert(ARRAY_SIZE(words) == KPROF_WHY_CAUSES, "why: each cause has its words");

const char *kprof_why_cause_key(enum kprof_why_cause cause)
{
	return (unsigned int)cause < KPROF_WHY_CAUSES ? words[cause].key : "";
}

const char *kprof_why_cause_name(enum kprof_why_cause cause)
{
	return (unsigned int)cause < KPROF_WHY_CAUSES ? words[cause].name : "";
}

const char *why_advice(enum kprof_why_cause cause, bool other_thread)
{
	return other_thread && words[cause].other ? words[cause].other : words[cause].advice;
}
