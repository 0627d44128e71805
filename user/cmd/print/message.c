// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/print/message.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cmd/print/text.h"

#define ERASE_LINE "\r\033[K" /* ECMA-48 EL: erases to the end of the line */

static bool line_shown; /* whether the progress line is on the terminal */
static void (*redirected)(void *ctx, const char *cause, const char *hint); /* NULL: to stderr */
static void *redirected_ctx;

uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

bool message_line_wanted(void)
{
	return isatty(STDERR_FILENO);
}

void message_line(const char *text)
{
	struct winsize size;
	size_t columns = 80;

	if (!message_line_wanted() || (!*text && !line_shown))
		return;
	if (!ioctl(STDERR_FILENO, TIOCGWINSZ, &size) && size.ws_col)
		columns = size.ws_col;
	/* One column less than the width, so that no terminal wraps. The text is plain ASCII. */
	fprintf(stderr, ERASE_LINE "%.*s", (int)columns - 1, text);
	fflush(stderr);
	line_shown = *text;
}

void message_progress(struct message_progress *p, const char *doing, uint64_t done, uint64_t total)
{
	uint64_t now = p->shown ? now_ns(CLOCK_MONOTONIC) : 0;
	char line[64];

	if (!p->shown || now < p->next_ns)
		return;
	snprintf(line, sizeof(line), "%s %3.0f %%", doing,
		 total ? 100.0 * (double)done / (double)total : 0);
	message_line(line);
	p->next_ns = now + PROGRESS_NS;
}

void message_redirect(void (*fn)(void *ctx, const char *cause, const char *hint), void *ctx)
{
	redirected = fn;
	redirected_ctx = ctx;
}

static void say(const char *cause, const char *hint)
{
	if (redirected) {
		redirected(redirected_ctx, cause, hint);
		return;
	}
	message_line("");
	fputs("kprof: ", stderr);
	text_print(stderr, cause);
	putc('\n', stderr);
	if (hint) {
		fputs("hint: ", stderr);
		text_print(stderr, hint);
		putc('\n', stderr);
	}
}

static void vsay(const char *hint, const char *fmt, va_list ap)
{
	char *text;

	if (vasprintf(&text, fmt, ap) < 0)
		return;
	say(text, hint);
	free(text);
}

static void on_log(void *ctx, enum kprof_log_level level, const char *text, const char *hint)
{
	const struct message_opts *opts = ctx;

	if (level == KPROF_LOG_WARN || (level == KPROF_LOG_INFO && !opts->quiet) || opts->verbose)
		say(text, hint);
}

void message_listen(const struct message_opts *opts)
{
	kprof_set_log(on_log, (void *)opts);
}

int message_error(void)
{
	say(kprof_error_cause()[0] ? kprof_error_cause() : "something failed without saying why",
	    kprof_error_hint());
	switch (kprof_error_class()) {
	case KPROF_ERROR_USAGE:
		return EXIT_USAGE;
	case KPROF_ERROR_MACHINE:
		return EXIT_MACHINE;
	default:
		return EXIT_FAILED;
	}
}

int message_usage(const char *command, const char *fmt, ...)
{
	char hint[128];
	va_list ap;

	snprintf(hint, sizeof(hint), "kprof %s --help says what it takes", command);
	va_start(ap, fmt);
	vsay(hint, fmt, ap);
	va_end(ap);
	return EXIT_USAGE;
}

void message_warn(const char *hint, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsay(hint, fmt, ap);
	va_end(ap);
}

int message_no_memory(void)
{
	message_warn(NULL, "out of memory");
	return EXIT_FAILED;
}

void message_cut(const char *path, const struct kprof_capture_info *info)
{
	const char *hint = "what was read is shown; the rest cannot be had back";
	char lost[TEXT_NUMBER_BYTES];

	if (info->complete)
		return;
	if (info->lost_bytes)
		message_warn(hint,
			     "%s is cut short: its last %s cannot be read, and what came after is "
			     "missing",
			     path, text_bytes(lost, info->lost_bytes));
	else
		message_warn(hint, "%s is cut short: the recording's end is missing", path);
}
