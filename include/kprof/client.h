/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asks kprof's daemon (kprof daemon), from any process: a line of JSON there, a line of JSON back
 * (docs/daemon.md has the questions). Who asks, the kernel tells the daemon; no privilege is needed
 * to connect. A part of the library beside kprof.h, whose rules hold here, too.
 */
#ifndef KPROF_CLIENT_H
#define KPROF_CLIENT_H

#include "kprof.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KPROF_DAEMON_SOCKET "/run/kprofd/socket"
#define KPROF_CLIENT_QUESTION_BYTES 65536 /* a question, at most */
#define KPROF_CLIENT_ANSWER_BYTES (1 << 20)

/*
 * Where the daemon listens: `given`, unless that is NULL; else what the environment variable
 * KPROF_DAEMON_SOCKET says, or the macro of that name.
 */
const char *kprof_client_socket(const char *given);
/*
 * Asks the daemon that listens at kprof_client_socket(socket), and waits for its answer,
 * which the caller frees. file: a file that came with the answer, or -1; the caller closes it;
 * NULL: none is wanted. timeout_ms below 0: forever. -ESRCH, without an error set: no daemon
 * listens there. -EACCES: this process may not connect. -ETIMEDOUT
 */
int kprof_client_ask(const char *socket, const char *question, int timeout_ms, char **answer,
		     int *file);

#ifdef __cplusplus
}
#endif

#endif
