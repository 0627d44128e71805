/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part of CUPTI's profiler interface that the agent uses: the host API, which knows metrics by
 * name, and the range profiler, which measures them (CUDA 12.6 and later). Every function takes one
 * struct, which begins with its size up to its last field; later releases add fields.
 *
 * The declarations are kprof's own. tests/gpu/profiler_check.c compares them with the real headers.
 */
#ifndef KPROF_GPU_CUPTI_PROFILER_ABI_H
#define KPROF_GPU_CUPTI_PROFILER_ABI_H

#include <stddef.h>
#include <stdint.h>

/* The value of .bytes for a struct that ends with this field. */
#define PROFILER_BYTES(type, last) (offsetof(type, last) + sizeof(((type *)0)->last))

enum { PROFILER_TYPE_RANGE = 0 };                      /* CUpti_ProfilerType */
enum { PROFILER_AUTO_RANGE = 1, PROFILER_USER_RANGE }; /* CUpti_ProfilerRange */
enum { PROFILER_USER_REPLAY = 3 };                     /* CUpti_ProfilerReplayMode */

struct profiler_initialize {
	size_t bytes;
	void *priv;
};
#define PROFILER_INITIALIZE PROFILER_BYTES(struct profiler_initialize, priv)

struct profiler_availability {
	size_t bytes;
	void *priv, *context;
	size_t image_bytes; /* in and out */
	uint8_t *image;     /* NULL: only its size is told */
};
#define PROFILER_AVAILABILITY PROFILER_BYTES(struct profiler_availability, image)

struct profiler_chip {
	size_t bytes;
	void *priv;
	size_t device;
	const char *name; /* out */
};
#define PROFILER_CHIP PROFILER_BYTES(struct profiler_chip, name)

/* ---- the host API ---- */

struct profiler_host {
	size_t bytes;
	void *priv;
	int type;
	const char *chip;
	const uint8_t *availability;
	void *host; /* out */
};
#define PROFILER_HOST PROFILER_BYTES(struct profiler_host, host)

struct profiler_host_end {
	size_t bytes;
	void *priv, *host;
};
#define PROFILER_HOST_END PROFILER_BYTES(struct profiler_host_end, host)

struct profiler_metric {
	size_t bytes;
	void *priv, *host;
	const char *name;
	const char *description, *unit, *dimension; /* out */
	int type;                                   /* out */
};
#define PROFILER_METRIC PROFILER_BYTES(struct profiler_metric, type)

struct profiler_add {
	size_t bytes;
	void *priv, *host;
	const char **names;
	size_t nr;
};
#define PROFILER_ADD PROFILER_BYTES(struct profiler_add, nr)

struct profiler_config_size {
	size_t bytes;
	void *priv, *host;
	size_t config_bytes; /* out */
};
#define PROFILER_CONFIG_SIZE PROFILER_BYTES(struct profiler_config_size, config_bytes)

struct profiler_config {
	size_t bytes;
	void *priv, *host;
	size_t config_bytes;
	uint8_t *config;
};
#define PROFILER_CONFIG PROFILER_BYTES(struct profiler_config, config)

struct profiler_passes {
	size_t bytes;
	void *priv;
	size_t config_bytes;
	uint8_t *config;
	size_t passes; /* out */
};
#define PROFILER_PASSES PROFILER_BYTES(struct profiler_passes, passes)

struct profiler_evaluate {
	size_t bytes;
	void *priv, *host;
	const uint8_t *data;
	size_t data_bytes, range;
	const char **names;
	size_t nr;
	double *values; /* out */
};
#define PROFILER_EVALUATE PROFILER_BYTES(struct profiler_evaluate, values)

/* ---- the range profiler ---- */

struct profiler_enable {
	size_t bytes;
	void *priv, *context;
	void *object; /* out */
};
#define PROFILER_ENABLE PROFILER_BYTES(struct profiler_enable, object)

/* For Disable, Start and PopRange. */
struct profiler_object {
	size_t bytes;
	void *priv, *object;
};
#define PROFILER_OBJECT PROFILER_BYTES(struct profiler_object, object)

struct profiler_data_size {
	size_t bytes;
	void *priv, *object;
	const char **names;
	size_t nr, ranges;
	uint32_t nodes;
	size_t data_bytes; /* out */
};
#define PROFILER_DATA_SIZE PROFILER_BYTES(struct profiler_data_size, data_bytes)

struct profiler_data {
	size_t bytes;
	void *priv, *object;
	size_t data_bytes;
	uint8_t *data;
};
#define PROFILER_DATA PROFILER_BYTES(struct profiler_data, data)

struct profiler_set {
	size_t bytes;
	void *priv, *object;
	size_t config_bytes;
	const uint8_t *config;
	size_t data_bytes;
	uint8_t *data;
	int range, replay;
	size_t ranges;
	uint16_t levels, least_level;
	size_t pass;
	uint16_t level;
};
#define PROFILER_SET PROFILER_BYTES(struct profiler_set, level)

struct profiler_stop {
	size_t bytes;
	void *priv, *object;
	size_t pass, level; /* out */
	uint8_t all;        /* out */
};
#define PROFILER_STOP PROFILER_BYTES(struct profiler_stop, all)

struct profiler_push {
	size_t bytes;
	void *priv, *object;
	const char *name;
};
#define PROFILER_PUSH PROFILER_BYTES(struct profiler_push, name)

struct profiler_decode {
	size_t bytes;
	void *priv, *object;
	size_t dropped; /* out: ranges for which there was no room */
};
#define PROFILER_DECODE PROFILER_BYTES(struct profiler_decode, dropped)

struct profiler_info {
	size_t bytes;
	void *priv;
	const uint8_t *data;
	size_t data_bytes;
	size_t nr; /* out: ranges */
};
#define PROFILER_INFO PROFILER_BYTES(struct profiler_info, nr)

struct profiler_range {
	size_t bytes;
	void *priv;
	const uint8_t *data;
	size_t data_bytes, range;
	const char *delimiter;
	const char *name; /* out */
};
#define PROFILER_RANGE PROFILER_BYTES(struct profiler_range, name)

/* F(ID, symbol) for each function. */
#define PROFILER_FUNCTIONS(F)                                 \
	F(INITIALIZE, cuptiProfilerInitialize)                \
	F(AVAILABILITY, cuptiProfilerGetCounterAvailability)  \
	F(CHIP, cuptiDeviceGetChipName)                       \
	F(HOST, cuptiProfilerHostInitialize)                  \
	F(HOST_END, cuptiProfilerHostDeinitialize)            \
	F(METRIC, cuptiProfilerHostGetMetricProperties)       \
	F(ADD, cuptiProfilerHostConfigAddMetrics)             \
	F(CONFIG_SIZE, cuptiProfilerHostGetConfigImageSize)   \
	F(CONFIG, cuptiProfilerHostGetConfigImage)            \
	F(PASSES, cuptiProfilerHostGetNumOfPasses)            \
	F(EVALUATE, cuptiProfilerHostEvaluateToGpuValues)     \
	F(ENABLE, cuptiRangeProfilerEnable)                   \
	F(DISABLE, cuptiRangeProfilerDisable)                 \
	F(DATA_SIZE, cuptiRangeProfilerGetCounterDataSize)    \
	F(DATA, cuptiRangeProfilerCounterDataImageInitialize) \
	F(SET, cuptiRangeProfilerSetConfig)                   \
	F(START, cuptiRangeProfilerStart)                     \
	F(STOP, cuptiRangeProfilerStop)                       \
	F(PUSH, cuptiRangeProfilerPushRange)                  \
	F(POP, cuptiRangeProfilerPopRange)                    \
	F(DECODE, cuptiRangeProfilerDecodeData)               \
	F(INFO, cuptiRangeProfilerGetCounterDataInfo)         \
	F(RANGE, cuptiRangeProfilerCounterDataGetRangeInfo)

#define PROFILER_ID(id, symbol) PROFILER_CALL_##id,
enum profiler_call { PROFILER_FUNCTIONS(PROFILER_ID) PROFILER_CALLS };

typedef int (*profiler_fn)(void *parameters);

#endif
