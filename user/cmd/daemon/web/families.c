// SPDX-License-Identifier: BSD-2-Clause
/* The families of /metrics. docs/metrics.md has the same list, which tests/web.bats compares. */
#include "cmd/daemon/web/metrics.h"

#define PROCESSES 100
/* Of steps, in seconds: from a small model's to a large one's with gradient accumulation. */
static const double step_bounds[] = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
				     1,     2.5,  5,     10,   30,  60,   0};

/* What follows the help are the labels. */
#define FAMILY(name_, type_, unit_, series_, help_, ...)                                  \
	{                                                                                 \
		.name = name_, .type = METRICS_##type_, .unit = unit_, .series = series_, \
		.help = help_, .labels = {__VA_ARGS__},                                   \
		.bounds = METRICS_##type_ == METRICS_HISTOGRAM ? step_bounds : NULL       \
	}

const struct metrics_family metrics_families[METRICS_NR] = {
	[METRICS_BUILD] = FAMILY("kprof_build", INFO, NULL, 1,
				 "The version of kprof and of the kernel.", "version", "kernel"),
	[METRICS_UPTIME] = FAMILY("kprof_uptime_seconds", GAUGE, "seconds", 1,
				  "Time since the daemon was started.", NULL),
	[METRICS_COST_CPU] =
		FAMILY("kprof_cpu_seconds", COUNTER, "seconds", 32,
		       "CPU time that kprof has cost this machine, by session and part.", "session",
		       "part"),
	[METRICS_OVERHEAD] = FAMILY(
		"kprof_overhead_ratio", GAUGE, "ratio", 32,
		"Cost of kprof in the last second, as a share of what the bound is a share of, by session and part.",
		"session", "part"),
	[METRICS_OVERHEAD_MAX] = FAMILY("kprof_overhead_max_ratio", GAUGE, "ratio", 1,
					"The bound on the sum of kprof_overhead_ratio.", NULL),
	[METRICS_SHED_LEVEL] =
		FAMILY("kprof_shed_level", GAUGE, NULL, 32,
		       "How many steps have been given up to stay within the bound.", "session"),
	[METRICS_MEMORY] =
		FAMILY("kprof_memory_bytes", GAUGE, "bytes", 16,
		       "Memory of kprof, by part; what the kernel keeps for it is one.", "part"),
	[METRICS_MEMORY_MAX] = FAMILY("kprof_memory_max_bytes", GAUGE, "bytes", 1,
				      "The bound on the sum of kprof_memory_bytes.", NULL),
	[METRICS_DROPPED] =
		FAMILY("kprof_dropped", COUNTER, NULL, 16,
		       "Events and samples that were lost, by what they were lost at.", "reason"),
	[METRICS_PROCESSES] = FAMILY("kprof_processes", GAUGE, NULL, 8,
				     "Processes by what becomes of them.", "state"),
	[METRICS_SAMPLES] = FAMILY("kprof_samples", COUNTER, NULL, PROCESSES,
				   "Samples by the name of the process.", "process"),
	[METRICS_OPERATORS] = FAMILY("kprof_operators", COUNTER, NULL, PROCESSES,
				     "Calls of operators, by the name of the process.", "process"),
	[METRICS_GPU_ACTIVITIES] =
		FAMILY("kprof_gpu_activities", COUNTER, NULL, PROCESSES,
		       "Kernels, copies and sets that were recorded, by the name of the process.",
		       "process"),
	[METRICS_GPU_RATE] = FAMILY(
		"kprof_gpu_activities_per_second", GAUGE, NULL, PROCESSES,
		"Kernels, copies and sets in a second of the last device window, by the name of the process.",
		"process"),
	[METRICS_STEP_TIME] =
		FAMILY("kprof_step_seconds", HISTOGRAM, "seconds", 16,
		       "Durations of trainings' steps, by the name of the process.", "process"),
	[METRICS_GPU_BUSY] = FAMILY(
		"kprof_gpu_busy_ratio", GAUGE, "ratio", 64,
		"Share of the time in which a GPU worked for processes of this name, as last measured.",
		"gpu", "process"),
	[METRICS_RUNQUEUE] = FAMILY(
		"kprof_process_runqueue_ratio", GAUGE, "ratio", PROCESSES,
		"Share of its threads' time in which they were runnable and had no CPU, by the name of the process.",
		"process"),
	[METRICS_WAIT] = FAMILY(
		"kprof_process_wait_ratio", GAUGE, "ratio", PROCESSES,
		"Share of its threads' time in which they waited for something else, by the name of the process.",
		"process"),
	[METRICS_RECORDINGS_ACTIVE] = FAMILY("kprof_recordings_active", GAUGE, NULL, 8,
					     "Recordings that are not over, by state.", "state"),
	[METRICS_RECORDINGS] = FAMILY("kprof_recordings", COUNTER, NULL, 8,
				      "Recordings that are over, by result.", "result"),
	[METRICS_REQUESTS] = FAMILY("kprof_requests", COUNTER, NULL, 64,
				    "Requests of clients, by what was asked and the result.",
				    "request", "result"),
	[METRICS_DUMPS] =
		FAMILY("kprof_dumps", COUNTER, NULL, 16,
		       "Dumps of the flight recorder, by what triggered them.", "trigger"),
	[METRICS_CHUNKS] = FAMILY("kprof_chunks", COUNTER, NULL, 8,
				  "Chunks that were stored, by kind.", "kind"),
	[METRICS_CHUNK_BYTES] = FAMILY("kprof_chunk_bytes", COUNTER, "bytes", 8,
				       "Bytes of the chunks that were stored, by kind.", "kind"),
	[METRICS_CHUNKS_DROPPED] = FAMILY(
		"kprof_chunks_dropped", COUNTER, NULL, 16,
		"Chunks that were not stored, or not handed on to be sent, by kind and reason.",
		"kind", "reason"),
	[METRICS_LOOKS] = FAMILY(
		"kprof_chunk_looks", COUNTER, NULL, 16,
		"Chunks that were looked at for what is counted by process, or why not, by kind.",
		"kind", "result"),
	[METRICS_STORED] = FAMILY("kprof_stored_bytes", GAUGE, "bytes", 8,
				  "Bytes of the chunks that are there, by kind.", "kind"),
	[METRICS_PUSHES] =
		FAMILY("kprof_pushes", COUNTER, NULL, 16,
		       "Profiles that were to be sent, by what became of them.", "result"),
	[METRICS_PUSHED_BYTES] = FAMILY("kprof_pushed_bytes", COUNTER, "bytes", 1,
					"Bytes that were taken, as sent.", NULL),
	[METRICS_PUSH_QUEUE] = FAMILY("kprof_push_queue_bytes", GAUGE, "bytes", 1,
				      "Bytes that wait to be sent.", NULL),
};
