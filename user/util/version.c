// SPDX-License-Identifier: BSD-2-Clause
#include "kprof.h"

#define STRING_(x) #x
#define STRING(x) STRING_(x)

const char *kprof_version(void)
{
	return STRING(KPROF_VERSION_MAJOR) "." STRING(KPROF_VERSION_MINOR) "." STRING(
		KPROF_VERSION_PATCH);
}
