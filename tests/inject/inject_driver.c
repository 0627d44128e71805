// SPDX-License-Identifier: BSD-2-Clause
/*
 * inject_driver PID LIBRARY [TIMES]: puts the library into the process, so often.
 *
 * Prints a line for each time, "ok held_ns=N was_loaded=0|1" or "failed ERRNO: CAUSE" and "hint:
 * HINT"; stops at the first failure. Exit status: 0, 1, 3 as kprof's, 2 usage.
 */
#include <stdio.h>
#include <stdlib.h>

#include "capture/inject/inject.h"
#include "kprof.h"

int main(int argc, char **argv)
{
	long times = argc > 3 ? strtol(argv[3], NULL, 10) : 1;

	if (argc < 3) {
		fprintf(stderr, "usage: inject_driver PID LIBRARY [TIMES]\n");
		return 2;
	}
	for (long i = 0; i < times; i++) {
		struct inject_result result;
		int err = inject_agent((pid_t)strtol(argv[1], NULL, 10), argv[2], &result);

		if (err) {
			printf("failed %d: %s\n", -err, result.reason);
			if (kprof_error_hint())
				printf("hint: %s\n", kprof_error_hint());
			return kprof_error_class() == KPROF_ERROR_MACHINE ? 3 : 1;
		}
		printf("ok held_ns=%llu was_loaded=%d\n", (unsigned long long)result.held_ns,
		       result.was_loaded);
		fflush(stdout);
	}
	return 0;
}
