/* SPDX-License-Identifier: BSD-2-Clause */
/* What dyno asks Kineto for, in kprof's words. */
#ifndef KPROF_CMD_DAEMON_TRANSLATE_H
#define KPROF_CMD_DAEMON_TRANSLATE_H

#include <stddef.h>
#include <stdint.h>

#include "kprof/dynolog.h"

#define TRANSLATED_OPTIONS 24
#define TRANSLATED_NOTES 8

/* All zero at first. */
struct translation {
	const char *words[TRANSLATED_OPTIONS];
	char texts[TRANSLATED_OPTIONS][320];
	size_t nr;
	char notes[TRANSLATED_NOTES][240]; /* what is not done, or otherwise, by the key's name */
	size_t nr_notes;
};

/* now_ms: since 1970. */
void translate_config(const struct kprof_dynolog_config *c, uint64_t now_ms, struct translation *t);
/* The recording of what is allocated, for PROFILE_MEMORY. */
void translate_memory(const struct kprof_dynolog_config *c, uint64_t now_ms, struct translation *t);

#endif
