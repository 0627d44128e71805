// SPDX-License-Identifier: BSD-2-Clause
/*
 * Any text as a name. libiberty is not built with the sanitizers; what is watched is the time and
 * memory that it takes, and all that is done with what it says.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/names/names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void use(const char *name, const char *text)
{
	char *whole = demangle(name), *shown = whole ? demangle_short(name, whole) : NULL;

	if (!shown || (*name && !*shown))
		abort();
	free(shown);
	free(whole);
	/* What demanglers print has no grammar: the bytes themselves might be such a text. */
	shown = demangle_short("_Z", text);
	if (!shown || (*text && !*shown))
		abort();
	free(shown);
	free(demangle_type(text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char *name = malloc(bytes + 3);

	if (!name)
		abort();
	memcpy(name, bytes & 1 ? "_R" : "_Z", 2);
	memcpy(name + 2, data, bytes);
	name[bytes + 2] = '\0';
	use(name, name + 2);
	free(name);
	return 0;
}
