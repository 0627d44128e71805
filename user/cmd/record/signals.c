// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/record/signals.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

/* Globals, since a signal handler gets no context. */
static volatile sig_atomic_t count, to_forward;
/* Number of signals that meant "end the recording"; -1: not finishing yet. */
static volatile sig_atomic_t asked = -1;
static volatile bool given_up;
static const char *volatile last_words = "";
static uint64_t ignored; /* see signals_inherited() */

static void on_signal(int signal, siginfo_t *info, void *context)
{
	const char *words = last_words;

	/*
	 * A terminal sends Ctrl-C to its whole foreground group, the child included; kill(2) sends
	 * only to kprof.
	 */
	if (signal != SIGINT || info->si_code != SI_KERNEL)
		to_forward = signal;
	count++;
	given_up = asked >= 0 && count > asked;
	if (count < (asked < 0 ? 1 : asked) + 2)
		return;
	if (write(STDERR_FILENO, words, strlen(words)) < 0)
		_exit(128 + signal);
	_exit(128 + signal);
}

static bool is_ignored(int signal)
{
	return ignored >> (signal - 1) & 1;
}

void signals_note_inherited(void)
{
	static const int changed[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGCHLD};
	struct sigaction old;

	for (size_t i = 0; i < sizeof(changed) / sizeof(changed[0]); i++)
		if (!sigaction(changed[i], NULL, &old) && old.sa_handler == SIG_IGN)
			ignored |= 1ull << (changed[i] - 1);
}

void signals_catch(void)
{
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};

	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	if (!is_ignored(SIGHUP))
		sigaction(SIGHUP, &action, NULL);
	/* If SIGCHLD were ignored, the command's exit status would be lost. */
	signal(SIGCHLD, SIG_DFL);
}

void signals_finishing(int meant)
{
	asked = count < 1 ? 1 : count > meant ? meant : count;
	given_up = count > asked;
}

void signals_set_last_words(const char *text)
{
	last_words = text;
}

uint64_t signals_inherited(void)
{
	return ignored;
}

int signals_count(void)
{
	return count;
}

int signals_take_to_forward(void)
{
	int signal = to_forward;

	to_forward = 0;
	return signal;
}

const volatile bool *signals_given_up(void)
{
	return &given_up;
}
