// SPDX-License-Identifier: BSD-2-Clause
/*
 * gpu/cupti/profiler_abi.h against the real headers of one CUDA release from 12.6 on: compiling it
 * is the test. Structs grow at their end; what the agent gives as their size ends where its own do.
 */
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include "gpu/cupti/profiler_abi.h"

#define AT(ours, field, theirs, other)                                                    \
	_Static_assert(offsetof(struct ours, field) == offsetof(theirs, other),           \
		       #theirs "." #other);                                               \
	_Static_assert(sizeof(((struct ours *)0)->field) == sizeof(((theirs *)0)->other), \
		       #theirs "." #other " (size)")
/* The first two fields of each, and its size. */
#define STRUCT(ours, size, theirs)           \
	AT(ours, bytes, theirs, structSize); \
	AT(ours, priv, theirs, pPriv);       \
	_Static_assert((size) <= theirs##_STRUCT_SIZE, #theirs)
#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)

SAME(PROFILER_TYPE_RANGE, CUPTI_PROFILER_TYPE_RANGE_PROFILER);
SAME(PROFILER_AUTO_RANGE, CUPTI_AutoRange);
SAME(PROFILER_USER_RANGE, CUPTI_UserRange);
SAME(PROFILER_USER_REPLAY, CUPTI_UserReplay);

STRUCT(profiler_initialize, PROFILER_INITIALIZE, CUpti_Profiler_Initialize_Params);

#define A CUpti_Profiler_GetCounterAvailability_Params
STRUCT(profiler_availability, PROFILER_AVAILABILITY, CUpti_Profiler_GetCounterAvailability_Params);
AT(profiler_availability, context, A, ctx);
AT(profiler_availability, image_bytes, A, counterAvailabilityImageSize);
AT(profiler_availability, image, A, pCounterAvailabilityImage);

#define C CUpti_Device_GetChipName_Params
STRUCT(profiler_chip, PROFILER_CHIP, CUpti_Device_GetChipName_Params);
AT(profiler_chip, device, C, deviceIndex);
AT(profiler_chip, name, C, pChipName);

#define H CUpti_Profiler_Host_Initialize_Params
STRUCT(profiler_host, PROFILER_HOST, CUpti_Profiler_Host_Initialize_Params);
AT(profiler_host, type, H, profilerType);
AT(profiler_host, chip, H, pChipName);
AT(profiler_host, availability, H, pCounterAvailabilityImage);
AT(profiler_host, host, H, pHostObject);

STRUCT(profiler_host_end, PROFILER_HOST_END, CUpti_Profiler_Host_Deinitialize_Params);
AT(profiler_host_end, host, CUpti_Profiler_Host_Deinitialize_Params, pHostObject);

#define M CUpti_Profiler_Host_GetMetricProperties_Params
STRUCT(profiler_metric, PROFILER_METRIC, CUpti_Profiler_Host_GetMetricProperties_Params);
AT(profiler_metric, host, M, pHostObject);
AT(profiler_metric, name, M, pMetricName);
AT(profiler_metric, description, M, pDescription);
AT(profiler_metric, unit, M, pHwUnit);
AT(profiler_metric, dimension, M, pDimUnit);
AT(profiler_metric, type, M, metricType);

#define D CUpti_Profiler_Host_ConfigAddMetrics_Params
STRUCT(profiler_add, PROFILER_ADD, CUpti_Profiler_Host_ConfigAddMetrics_Params);
AT(profiler_add, host, D, pHostObject);
AT(profiler_add, names, D, ppMetricNames);
AT(profiler_add, nr, D, numMetrics);

#define S CUpti_Profiler_Host_GetConfigImageSize_Params
STRUCT(profiler_config_size, PROFILER_CONFIG_SIZE, CUpti_Profiler_Host_GetConfigImageSize_Params);
AT(profiler_config_size, host, S, pHostObject);
AT(profiler_config_size, config_bytes, S, configImageSize);

#define I CUpti_Profiler_Host_GetConfigImage_Params
STRUCT(profiler_config, PROFILER_CONFIG, CUpti_Profiler_Host_GetConfigImage_Params);
AT(profiler_config, host, I, pHostObject);
AT(profiler_config, config_bytes, I, configImageSize);
AT(profiler_config, config, I, pConfigImage);

#define N CUpti_Profiler_Host_GetNumOfPasses_Params
STRUCT(profiler_passes, PROFILER_PASSES, CUpti_Profiler_Host_GetNumOfPasses_Params);
AT(profiler_passes, config_bytes, N, configImageSize);
AT(profiler_passes, config, N, pConfigImage);
AT(profiler_passes, passes, N, numOfPasses);

#define E CUpti_Profiler_Host_EvaluateToGpuValues_Params
STRUCT(profiler_evaluate, PROFILER_EVALUATE, CUpti_Profiler_Host_EvaluateToGpuValues_Params);
AT(profiler_evaluate, host, E, pHostObject);
AT(profiler_evaluate, data, E, pCounterDataImage);
AT(profiler_evaluate, data_bytes, E, counterDataImageSize);
AT(profiler_evaluate, range, E, rangeIndex);
AT(profiler_evaluate, names, E, ppMetricNames);
AT(profiler_evaluate, nr, E, numMetrics);
AT(profiler_evaluate, values, E, pMetricValues);

STRUCT(profiler_enable, PROFILER_ENABLE, CUpti_RangeProfiler_Enable_Params);
AT(profiler_enable, context, CUpti_RangeProfiler_Enable_Params, ctx);
AT(profiler_enable, object, CUpti_RangeProfiler_Enable_Params, pRangeProfilerObject);

#define OBJECT(theirs)                                    \
	STRUCT(profiler_object, PROFILER_OBJECT, theirs); \
	AT(profiler_object, object, theirs, pRangeProfilerObject)
OBJECT(CUpti_RangeProfiler_Disable_Params);
OBJECT(CUpti_RangeProfiler_Start_Params);
OBJECT(CUpti_RangeProfiler_PopRange_Params);

#define Z CUpti_RangeProfiler_GetCounterDataSize_Params
STRUCT(profiler_data_size, PROFILER_DATA_SIZE, CUpti_RangeProfiler_GetCounterDataSize_Params);
AT(profiler_data_size, object, Z, pRangeProfilerObject);
AT(profiler_data_size, names, Z, pMetricNames);
AT(profiler_data_size, nr, Z, numMetrics);
AT(profiler_data_size, ranges, Z, maxNumOfRanges);
AT(profiler_data_size, nodes, Z, maxNumRangeTreeNodes);
AT(profiler_data_size, data_bytes, Z, counterDataSize);

#define G CUpti_RangeProfiler_CounterDataImage_Initialize_Params
STRUCT(profiler_data, PROFILER_DATA, CUpti_RangeProfiler_CounterDataImage_Initialize_Params);
AT(profiler_data, object, G, pRangeProfilerObject);
AT(profiler_data, data_bytes, G, counterDataSize);
AT(profiler_data, data, G, pCounterData);

#define X CUpti_RangeProfiler_SetConfig_Params
STRUCT(profiler_set, PROFILER_SET, CUpti_RangeProfiler_SetConfig_Params);
AT(profiler_set, object, X, pRangeProfilerObject);
AT(profiler_set, config_bytes, X, configSize);
AT(profiler_set, config, X, pConfig);
AT(profiler_set, data_bytes, X, counterDataImageSize);
AT(profiler_set, data, X, pCounterDataImage);
AT(profiler_set, range, X, range);
AT(profiler_set, replay, X, replayMode);
AT(profiler_set, ranges, X, maxRangesPerPass);
AT(profiler_set, levels, X, numNestingLevels);
AT(profiler_set, least_level, X, minNestingLevel);
AT(profiler_set, pass, X, passIndex);
AT(profiler_set, level, X, targetNestingLevel);

#define O CUpti_RangeProfiler_Stop_Params
STRUCT(profiler_stop, PROFILER_STOP, CUpti_RangeProfiler_Stop_Params);
AT(profiler_stop, object, O, pRangeProfilerObject);
AT(profiler_stop, pass, O, passIndex);
AT(profiler_stop, level, O, targetNestingLevel);
AT(profiler_stop, all, O, isAllPassSubmitted);

STRUCT(profiler_push, PROFILER_PUSH, CUpti_RangeProfiler_PushRange_Params);
AT(profiler_push, object, CUpti_RangeProfiler_PushRange_Params, pRangeProfilerObject);
AT(profiler_push, name, CUpti_RangeProfiler_PushRange_Params, pRangeName);

STRUCT(profiler_decode, PROFILER_DECODE, CUpti_RangeProfiler_DecodeData_Params);
AT(profiler_decode, object, CUpti_RangeProfiler_DecodeData_Params, pRangeProfilerObject);
AT(profiler_decode, dropped, CUpti_RangeProfiler_DecodeData_Params, numOfRangeDropped);

#define F CUpti_RangeProfiler_GetCounterDataInfo_Params
STRUCT(profiler_info, PROFILER_INFO, CUpti_RangeProfiler_GetCounterDataInfo_Params);
AT(profiler_info, data, F, pCounterDataImage);
AT(profiler_info, data_bytes, F, counterDataImageSize);
AT(profiler_info, nr, F, numTotalRanges);

#define R CUpti_RangeProfiler_CounterData_GetRangeInfo_Params
STRUCT(profiler_range, PROFILER_RANGE, CUpti_RangeProfiler_CounterData_GetRangeInfo_Params);
AT(profiler_range, data, R, pCounterDataImage);
AT(profiler_range, data_bytes, R, counterDataImageSize);
AT(profiler_range, range, R, rangeIndex);
AT(profiler_range, delimiter, R, rangeDelimiter);
AT(profiler_range, name, R, rangeName);
