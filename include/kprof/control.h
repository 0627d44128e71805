/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a recording in the background is asked for something: a folder below /run/kprof that only
 * root can enter, with a socket in it. A question and its answer are a packet each, a JSON object:
 * what is to be done is in "do"; an answer has "ok", and if that is false, "error" and, where there
 * is one, "hint". Who does not know a member passes over it.
 */
#ifndef KPROF_CONTROL_H
#define KPROF_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KPROF_CONTROL_FOLDER "/run/kprof"
#define KPROF_CONTROL_PATH_BYTES 96
#define KPROF_CONTROL_PACKET_BYTES 8192 /* a question or an answer, at most */

/*
 * The path of a folder below KPROF_CONTROL_FOLDER ("memory/4242"), all of which belong to root and
 * can be entered by root alone; make: those that are missing are made. -ENOENT: there is none (the
 * error is not set); others: it is not as it should be, or may not be entered.
 */
int kprof_control_folder(const char *below, bool make, char path[KPROF_CONTROL_PATH_BYTES]);

struct kprof_control;
/*
 * Listens in this folder. -EBUSY, without an error set: another process does. What one that was
 * killed has left there is replaced. The folder stays this process's until it ends.
 */
int kprof_control_new(const char *folder, struct kprof_control **out);
/* Removes the socket. NULL is fine. */
void kprof_control_free(struct kprof_control *c);

struct kprof_control_question {
	const char *text; /* until it is answered */
	pid_t pid;        /* who asks: a process of root's */
};
/* Takes the next question, if one is there. Never waits. 1; 0: there is none. */
int kprof_control_take(struct kprof_control *c, struct kprof_control_question *out);
/* Answers it. Who has stopped waiting is forgotten. */
void kprof_control_answer(struct kprof_control *c, const char *text);

/*
 * Asks who listens in this folder, and waits for the answer, which the caller frees. -ESRCH,
 * without an error set: nobody listens there.
 */
int kprof_control_ask(const char *folder, const char *question, int timeout_ms, char **answer);
/* Waits until nobody has the folder any more. -ETIMEDOUT */
int kprof_control_wait(const char *folder, int timeout_ms);

#ifdef __cplusplus
}
#endif

#endif
