/* SPDX-License-Identifier: BSD-2-Clause */
/* Between the files of the CUDA module. */
#ifndef KPROF_GPU_CUPTI_H
#define KPROF_GPU_CUPTI_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/cupti/abi.h"
#include "gpu/base/module.h"

extern const struct gpu_module gpu_cuda;

/* What of CUDA is in this process. */
struct cuda_process {
	void *driver;       /* handle of libcuda; NULL: not loaded */
	bool has_runtime;   /* a libcudart (or libcupti) is mapped */
	int runtime_major;  /* of the first libcudart found, by its name; 0: none */
	char cupti[512];    /* path of the libcupti that is loaded; "": none */
	char runtime[512];  /* path of libcudart; "": none, or linked statically */
	int driver_version; /* CUDA's number, 12040; 0: not known */
	int runtime_version;
};

/*
 * Looks at the loaded libraries; loads nothing. Handles are kept for good: the libraries never
 * leave.
 */
void cuda__look(struct cuda_process *p);
/* -EAGAIN: CUDA is loaded, but nothing has initialized it (and the agent never does). */
int cuda__initialized(const struct cuda_process *p, struct gpu_report *r);
/* Appends a DEVICE record for every device the driver knows. Returns how many. */
unsigned int cuda__devices(const struct cuda_process *p);
/* DEVICE record of CUPTI's description, completed by the driver's. */
void cuda__device(const struct cuda_process *p, const struct cupti_device *d);

/* Finds CUPTI and its functions. 0 or a negative errno and the report. */
int cupti__load(const struct cuda_process *p, struct cupti_functions *f, uint32_t *version,
		struct gpu_report *r);

/* ---- buffers for CUPTI: at most GPU_BUFFERS of them, kept and used again ---- */

#define CUPTI_BUFFERS 64
#define CUPTI_BUFFER_BYTES (1u << 20)
uint8_t *buffers__take(void); /* NULL: all are in use: CUPTI counts what it loses */
void buffers__give_back(uint8_t *buffer);
unsigned int buffers__in_use(void);
void buffers__free(void);   /* those that are not in use */
void buffers__forget(void); /* in a forked child */

/* ---- records ---- */

struct cupti_reader {
	const struct cupti_functions *f;
	const struct cuda_process *process;
	uint64_t (*to_mono)(uint64_t time); /* CUPTI's time to CLOCK_MONOTONIC */
	bool sync;                          /* synchronizations are wanted */
	bool events;                        /* so are CUDA events */
	bool calls[2];                      /* driver, runtime: calls with their names */
	uint32_t own_tid;                   /* whose calls are not the program's */
};
/* A session begins: what was learnt of another is forgotten. */
void cupti_records__reset(void);
/* Appends what is in a buffer. Any thread. */
void cupti_records__read(const struct cupti_reader *reader, uint8_t *buffer, size_t bytes);

#endif
