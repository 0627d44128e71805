/* SPDX-License-Identifier: BSD-2-Clause */
/* A recording of seconds, now and then: what devices do. */
#ifndef KPROF_CMD_DAEMON_RECORD_WINDOWS_H
#define KPROF_CMD_DAEMON_RECORD_WINDOWS_H

#include "cmd/daemon/daemon.h"

struct windows;
struct windows_opts {
	struct loop *loop;
	char folder[DAEMON_PATH_BYTES];
	struct kprof_session_opts session;
	uint64_t window_ns, every_ns; /* every_ns: in the mean, from begin to begin */
	double share;                 /* what they may cost in the mean: else they come later */
	uint64_t keep_ns, keep_bytes, min_free;
	void (*stored)(void *ctx, const char *path);
	void *ctx;
};
int windows__new(const struct windows_opts *opts, struct windows **out);
void windows__free(struct windows *w);                  /* NULL is fine */
void windows__tend(struct windows *w, uint64_t now_ns); /* once a second */
/* Goes on with other options; also one that was asked to end. */
void windows__change(struct windows *w, const struct windows_opts *opts);
void windows__stop(struct windows *w); /* NULL is fine */
bool windows__go_on(const struct windows *w);
/* Whether a window's process is there at the moment. */
bool windows__now(const struct windows *w);
/* Whether there are windows, of which the last one has seen a device in use. */
bool windows__see(const struct windows *w);
/* What the window that goes on, or the last one, said of itself at last; NULL: nothing. */
const struct cJSON *windows__stats(const struct windows *w);
/* What windows have cost besides what their statistics say: CPU time of begins and ends. */
uint64_t windows__begin_ns(const struct windows *w);
/* As keeper__state(). */
struct cJSON *windows__state(const struct windows *w);
/*
 * From one begin to the next, on average: as asked, but at least so long that a window's cost, as
 * CPU time, is this share of what base CPUs do meanwhile.
 */
uint64_t windows_pause(const struct windows_opts *opts, uint64_t cost_ns, double base);
/* So long, or up to a quarter less or more. random: any number. */
uint64_t windows_jitter(uint64_t pause_ns, uint32_t random);

#endif
