/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A target that calls a device runtime and says what it has called: a line of JSON with the calls
 * in order, their arguments and errors as a trace must have them. The first round ("settled") is
 * made with pauses, so that kprof knows where each call returns to. The protocol is that of
 * tests/workloads/protocol.py.
 *
 * A runtime's file includes this one, defines error_of() and calls(), and names in its first
 * comment what to link ("link:"), the header that it needs ("needs:") and the Debian packages of
 * both ("packages:", read by scripts/setup).
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ROUNDS 20
#define PAUSE_US 80000

/* The name and number of a result as a trace shows it, in a static buffer; NULL: no error. */
static const char *error_of(long result);
/* One of each call, by CALL(). */
static void calls(void);

static bool settling;
static unsigned int nr_calls;
static const char *error; /* of the call just made; NULL: none */

__attribute__((noinline)) static void failed(int result)
{
	error = error_of(result);
}

/* The call's name, and its arguments as JSON. */
__attribute__((format(printf, 2, 3))) static void made(const char *name, const char *args, ...)
{
	va_list ap;

	printf("%s{\"name\": \"%s\", \"args\": {", nr_calls++ ? ", " : "", name);
	va_start(ap, args);
	vprintf(args, ap);
	va_end(ap);
	if (error)
		printf("}, \"error\": \"%s\"}", error);
	else
		printf("}}");
	error = NULL;
	if (settling)
		usleep(PAUSE_US);
}
/* The result is looked at, as programs do: what they forget at once kprof may not see either. */
#define CALL(function, arguments, ...)                \
	do {                                          \
		int result = (int)function arguments; \
                                                      \
		if (result)                           \
			failed(result);               \
		made(#function, __VA_ARGS__);         \
	} while (0)

int main(void)
{
	unsigned int settled;
	char *line = NULL;
	size_t room = 0;

	printf("READY %d\n", (int)getpid());
	fflush(stdout);
	if (getline(&line, &room, stdin) < 0)
		return 1;
	printf("{\"pid\": %d, \"rounds\": %d, \"calls\": [", (int)getpid(), ROUNDS);
	settling = true;
	calls();
	settled = nr_calls;
	settling = false;
	for (int i = 0; i < ROUNDS; i++)
		calls();
	printf("], \"settled\": %u}\n", settled);
	fflush(stdout);
	/* Until its input ends. */
	while (getline(&line, &room, stdin) >= 0)
		;
	free(line);
	return 0;
}
