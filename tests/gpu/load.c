// SPDX-License-Identifier: BSD-2-Clause
/*
 * Would the agent use this libcupti? Prints its version and the functions' release, or the reason.
 *   load LIBCUPTI
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "gpu/agent.h"
#include "gpu/cupti/cupti.h"

struct kprof_agent_shm *gpu_shm(void)
{
	return NULL;
}

bool gpu_in_injection(void)
{
	return false;
}

int main(int argc, char *argv[])
{
	struct cuda_process process = {0};
	struct cupti_functions f;
	struct gpu_report r = {0};
	const char *name = NULL;
	uint32_t version = 0;
	int err;

	if (argc != 2 || !dlopen(argv[1], RTLD_NOW)) {
		fprintf(stderr, "%s\n", argc == 2 ? dlerror() : "which library?");
		return 2;
	}
	snprintf(process.cupti, sizeof(process.cupti), "%s", argv[1]);
	err = cupti__load(&process, &f, &version, &r);
	if (err) {
		printf("reason %u: %s\n", r.reason, r.detail);
		return 1;
	}
	/* 211 is cudaLaunchKernel's number in every release; 307 is cuLaunchKernel's. */
	if (f.callback_name(CUPTI_RUNTIME_API, 211, &name) == CUPTI_OK)
		printf("version %u: %s", version, name);
	if (f.callback_name(CUPTI_DRIVER_API, 307, &name) == CUPTI_OK)
		printf(" %s", name);
	printf("%s%s\n", f.enable_and_dump ? " dumps" : "", f.register_timestamp ? " clock" : "");
	return 0;
}
