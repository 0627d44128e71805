// SPDX-License-Identifier: BSD-2-Clause
/*
 * Level Zero's calls, on the real loader. Without a driver each of them fails; compiled with
 * -DDRIVER the same file is one that the loader can load (ZE_ENABLE_ALT_DRIVERS): it does nothing,
 * successfully, but for a copy of no bytes.
 *
 * link: -lze_loader
 * needs: level_zero/ze_api.h
 * packages: libze1 libze-dev
 */
#include <level_zero/ze_api.h>
#include <level_zero/ze_ddi.h>

#ifdef DRIVER

#include <string.h>

static ze_result_t nothing(void)
{
	return ZE_RESULT_SUCCESS;
}

static ze_result_t get(uint32_t *nr, ze_driver_handle_t *drivers)
{
	if (drivers && *nr)
		drivers[0] = (ze_driver_handle_t)0x1000;
	*nr = 1;
	return ZE_RESULT_SUCCESS;
}

static ze_result_t copy(ze_command_list_handle_t list, void *to, const void *from, size_t bytes,
			ze_event_handle_t signal, uint32_t nr, ze_event_handle_t *waits)
{
	return bytes ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_INVALID_SIZE;
}

static ze_result_t not_ready(ze_event_handle_t event)
{
	return ZE_RESULT_NOT_READY;
}

/* Every function of a table does nothing. */
static void fill(void *table, size_t bytes)
{
	void *f = (void *)nothing;

	for (size_t at = 0; at + sizeof(f) <= bytes; at += sizeof(f))
		memcpy((char *)table + at, &f, sizeof(f));
}

#define TABLE(name, type, ...)                                                        \
	__attribute__((visibility("default")))                                        \
	ze_result_t zeGet##name##ProcAddrTable(ze_api_version_t version, type *table) \
	{                                                                             \
		fill(table, sizeof(*table));                                          \
		__VA_ARGS__;                                                          \
		return ZE_RESULT_SUCCESS;                                             \
	}
TABLE(Global, ze_global_dditable_t)
TABLE(Driver, ze_driver_dditable_t, table->pfnGet = get)
TABLE(Device, ze_device_dditable_t)
TABLE(DeviceExp, ze_device_exp_dditable_t)
TABLE(Context, ze_context_dditable_t)
TABLE(CommandQueue, ze_command_queue_dditable_t)
TABLE(CommandList, ze_command_list_dditable_t, table->pfnAppendMemoryCopy = copy)
TABLE(Image, ze_image_dditable_t)
TABLE(ImageExp, ze_image_exp_dditable_t)
TABLE(Fence, ze_fence_dditable_t)
TABLE(EventPool, ze_event_pool_dditable_t)
TABLE(Event, ze_event_dditable_t, table->pfnQueryStatus = not_ready)
TABLE(EventExp, ze_event_exp_dditable_t)
TABLE(Module, ze_module_dditable_t)
TABLE(ModuleBuildLog, ze_module_build_log_dditable_t)
TABLE(Kernel, ze_kernel_dditable_t)
TABLE(KernelExp, ze_kernel_exp_dditable_t)
TABLE(Sampler, ze_sampler_dditable_t)
TABLE(PhysicalMem, ze_physical_mem_dditable_t)
TABLE(Mem, ze_mem_dditable_t)
TABLE(VirtualMem, ze_virtual_mem_dditable_t)
TABLE(FabricVertexExp, ze_fabric_vertex_exp_dditable_t)
TABLE(FabricEdgeExp, ze_fabric_edge_exp_dditable_t)

#else

#include "runtime.h"

static const char *error_of(long result)
{
#define NAME(name)          \
	{                   \
		name, #name \
	}
	static const struct {
		ze_result_t result;
		const char *name;
	} names[] = {NAME(ZE_RESULT_ERROR_UNINITIALIZED), NAME(ZE_RESULT_ERROR_INVALID_SIZE),
		     NAME(ZE_RESULT_ERROR_UNSUPPORTED_FEATURE)};
	static char text[128];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].result == (ze_result_t)result) {
			snprintf(text, sizeof(text), "%s (%ld)", names[i].name, result);
			return text;
		}
	return NULL; /* success, and that something is not ready, which is no error */
}

static void calls(void)
{
	ze_command_list_handle_t list = (ze_command_list_handle_t)0x5000;
	ze_command_queue_handle_t queue = (ze_command_queue_handle_t)0x6000;
	ze_kernel_handle_t kernel = (ze_kernel_handle_t)0x7000;
	ze_context_handle_t context = (ze_context_handle_t)0x8000;
	ze_device_handle_t device = (ze_device_handle_t)0x9000;
	ze_event_handle_t event = (ze_event_handle_t)0xa000;
	ze_device_mem_alloc_desc_t of_device = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
	ze_host_mem_alloc_desc_t of_host = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC};
	const ze_group_count_t groups = {11, 12, 13};
	void *p = NULL;
	char from[64], to[64];

	CALL(zeInit, (0), " ");
	CALL(zeMemAllocDevice, (context, &of_device, 4096, 64, device, &p), "\"bytes\": 4096");
	CALL(zeMemAllocHost, (context, &of_host, 4097, 64, &p), "\"bytes\": 4097");
	CALL(zeMemAllocShared, (context, &of_device, &of_host, 4098, 64, device, &p),
	     "\"bytes\": 4098");
	CALL(zeCommandListAppendMemoryCopy, (list, to, from, 33, NULL, 0, NULL),
	     "\"bytes\": 33, \"command list handle\": \"0x5000\"");
	CALL(zeCommandListAppendMemoryCopy, (list, to, from, 0, NULL, 0, NULL),
	     "\"command list handle\": \"0x5000\"");
	CALL(zeCommandListAppendMemoryFill, (list, to, from, 1, 34, NULL, 0, NULL),
	     "\"bytes\": 34");
	CALL(zeCommandListAppendLaunchKernel, (list, kernel, &groups, event, 0, NULL),
	     "\"kernel handle\": \"0x7000\", \"grid\": [11, 12, 13], "
	     "\"command list handle\": \"0x5000\"");
	CALL(zeCommandListClose, (list), "\"command list handle\": \"0x5000\"");
	CALL(zeCommandQueueExecuteCommandLists, (queue, 1, &list, NULL),
	     "\"queue handle\": \"0x6000\", \"command lists\": 1");
	CALL(zeCommandQueueSynchronize, (queue, 1000), "\"timeout ns\": 1000");
	CALL(zeEventQueryStatus, (event), "\"event handle\": \"0xa000\"");
	CALL(zeMemFree, (context, to), "\"address\": \"%p\"", (void *)to);
}

#endif
