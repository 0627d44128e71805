/* SPDX-License-Identifier: BSD-2-Clause */
/* SIMULATED CUDA, FOR TESTS: CUPTI's kinds of records: which are enabled, and what is left out. */
#include <string.h>

#include "cupti.h"

#define CBIDS 1024

uint64_t cupti_enabled;
bool cupti_event_times;
static bool left_out[CUPTI_KINDS][CBIDS]; /* of calls: by kind and function */

bool cupti_leaves_out(uint32_t kind, uint32_t cbid)
{
	return cbid < CBIDS && left_out[kind][cbid];
}

static int enable(int kind, bool dump)
{
	bool of_device = kind == CUPTI_KIND_KERNEL || kind == CUPTI_KIND_CONCURRENT_KERNEL ||
			 kind == CUPTI_KIND_MEMCPY || kind == CUPTI_KIND_MEMCPY2 ||
			 kind == CUPTI_KIND_MEMSET;
	int result = CUPTI_SUCCESS;

	if (!cupti_ready())
		return CUPTI_ERROR_NOT_INITIALIZED;
	if (kind <= 0 || kind >= CUPTI_KINDS || !cupti_record_bytes((uint32_t)kind))
		result = CUPTI_ERROR_INVALID_KIND;
	else if (of_device && cupti_settings.denied)
		result = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
	if (!result) {
		cupti_start_worker();
		memset(left_out[kind], 0, sizeof(left_out[kind]));
		__atomic_fetch_or(&cupti_enabled, CUPTI_BIT(kind), __ATOMIC_RELAXED);
		cupti_update_hooks();
	}
	for (int i = 0; !result && kind == CUPTI_KIND_DEVICE && i < sim->nr_devices(); i++)
		cupti_record_device(i);
	if (!result && kind == CUPTI_KIND_CONTEXT && dump)
		sim->each_context(cupti_record_context);
	sim->say(
		"{\"t\":\"cupti\",\"call\":\"cuptiActivityEnable\",\"kind\":%d,\"result\":%d,\"time\":%lu}",
		kind, result, sim->now_ns());
	return result;
}

SIM_EXPORT int cuptiActivityEnable(int kind)
{
	return enable(kind, false);
}

SIM_EXPORT int cuptiActivityEnableAndDump(int kind)
{
	return enable(kind, true);
}

#if SIM_MAJOR >= 13
/* Only to leave functions out of an enabled kind; not to have single ones of another. */
static int enable_call(uint32_t kind, uint32_t cbid, bool on)
{
	if (!cupti_ready())
		return CUPTI_ERROR_NOT_INITIALIZED;
	if (cbid >= CBIDS)
		return CUPTI_ERROR_INVALID_PARAMETER;
	cupti_taken("calls of a kind that another tool has enabled are left out");
	if (!CUPTI_ON(kind))
		cupti_misuse("calls are left out of a kind that is not enabled");
	left_out[kind][cbid] = !on;
	return CUPTI_SUCCESS;
}

SIM_EXPORT int cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t on)
{
	return enable_call(CUPTI_KIND_RUNTIME, cbid, on);
}

SIM_EXPORT int cuptiActivityEnableDriverApi(uint32_t cbid, uint8_t on)
{
	return enable_call(CUPTI_KIND_DRIVER, cbid, on);
}

SIM_EXPORT int cuptiActivityEnableCudaEventDeviceTimestamps(uint8_t on)
{
	if (!cupti_ready())
		return CUPTI_ERROR_NOT_INITIALIZED;
	cupti_taken("another tool's wish for times of events is changed");
	__atomic_store_n(&cupti_event_times, on != 0, __ATOMIC_RELAXED);
	sim->say("{\"t\":\"cupti\",\"call\":\"cuptiActivityEnableCudaEventDeviceTimestamps\","
		 "\"on\":%d,\"time\":%lu}",
		 on, sim->now_ns());
	return CUPTI_SUCCESS;
}
#endif

SIM_EXPORT int cuptiActivityEnableContext(void *context, int kind)
{
	return enable(kind, false);
}

SIM_EXPORT int cuptiActivityDisable(int kind)
{
	if (!cupti_ready())
		return CUPTI_ERROR_NOT_INITIALIZED;
	if (kind <= 0 || kind >= CUPTI_KINDS)
		return CUPTI_ERROR_INVALID_KIND;
	cupti_taken("cuptiActivityDisable of a kind that another tool has enabled");
	sim->drain(); /* what is finished was recorded */
	__atomic_fetch_and(&cupti_enabled, ~CUPTI_BIT(kind), __ATOMIC_RELAXED);
	cupti_update_hooks();
	sim->say("{\"t\":\"cupti\",\"call\":\"cuptiActivityDisable\",\"kind\":%d,\"time\":%lu}",
		 kind, sim->now_ns());
	return CUPTI_SUCCESS;
}

SIM_EXPORT int cuptiActivityDisableContext(void *context, int kind)
{
	return cuptiActivityDisable(kind);
}
