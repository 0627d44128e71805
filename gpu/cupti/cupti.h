/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of the CUDA module. */
#ifndef KPROF_GPU_CUPTI_H
#define KPROF_GPU_CUPTI_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/cupti/abi.h"
#include "gpu/base/module.h"

extern const struct gpu_module gpu_cuda;

/* The libraries of CUDA in this process. */
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
 * Looks for CUDA among the loaded libraries; loads nothing. Handles are kept, since the libraries
 * are never unloaded.
 */
void cuda__look(struct cuda_process *p);
/*
 * Returns 0 if CUDA is initialized; -EAGAIN: it is loaded, but not initialized (the agent never
 * does that).
 */
int cuda__initialized(const struct cuda_process *p, struct gpu_report *r);
/* Appends a DEVICE record for every device the driver knows. Returns how many. */
unsigned int cuda__devices(const struct cuda_process *p);
/* Appends a DEVICE record of CUPTI's description of a device, completed by the driver's. */
void cuda__device(const struct cuda_process *p, const struct cupti_device *d);

/* The driver's functions that find devices and their primary contexts. False: it lacks one. */
struct cuda_primary {
	int (*count)(int *nr);
	int (*get)(int *device, int ordinal);
	int (*state)(int device, unsigned int *flags, int *active);
	int (*retain)(void **context, int device);
	int (*release)(int device);
};
bool cuda__primary(const struct cuda_process *p, struct cuda_primary *out);

/* Finds CUPTI and its functions. Returns 0, or a negative errno with the reason in the report. */
int cupti__load(const struct cuda_process *p, struct cupti_functions *f, uint32_t *version,
		struct gpu_report *r);

/* ---- buffers for CUPTI: at most GPU_BUFFERS of them, which are reused ---- */

#define CUPTI_BUFFERS 64
#define CUPTI_BUFFER_BYTES (1u << 20)
#define CUPTI_SPARE_BYTES (1u << 16)
/*
 * When all are in use: NULL if `or_none`, and CUPTI counts the records that it loses; else the
 * spare one, which is never refused and takes one record, which is to be thrown away.
 */
uint8_t *buffers__take(bool or_none);
bool buffers__is_spare(const uint8_t *buffer);
void buffers__give_back(uint8_t *buffer);
unsigned int buffers__in_use(void);
void buffers__reset(void);      /* a session begins */
bool buffers__were_taken(void); /* whether CUPTI has asked for one since then */
void buffers__free(void);       /* frees those that are not in use */
void buffers__forget(void);     /* in a forked child */

/* ---- clock ---- */

/* Sets or measures CUPTI's clock, and sets shm.clock. A negative errno with the report. */
int cupti_clock__set(const struct cupti_functions *f, struct gpu_report *r);
/*
 * Reads a pair of both clocks: for a CLOCK record, and for the conversion if times are converted.
 */
void cupti_clock__pair(void);
uint64_t cupti_clock__to_mono(uint64_t time); /* any thread may call it */
/* Whether CUPTI's clock is neither the one that was set or measured, nor CUPTI's own. */
bool cupti_clock__lost(void);
/* Gives CUPTI its own clock again, if the agent has replaced it. */
void cupti_clock__restore(void);

/* ---- records ---- */

struct cupti_reader {
	const struct cupti_functions *f;
	const struct cuda_process *process;
	uint64_t (*to_mono)(uint64_t time); /* converts CUPTI's time to CLOCK_MONOTONIC, ns */
	bool sync;                          /* record synchronizations */
	bool events;                        /* record CUDA events, for waits and */
	bool event_times;                   /* … with the device's time */
	bool calls[2];                      /* record calls: of the driver, of the runtime */
	uint32_t own_tid;                   /* the agent's thread, whose calls are not recorded */
};
/* A session begins: forgets what was learnt in an earlier one. */
void cupti_records__reset(void);
#define CUPTI_CALLS 2048 /* more than either API has functions: some 800 */
/*
 * Whether no record of this call is kept. cbid: below CUPTI_CALLS; CUPTI's number of the function,
 * of the runtime or of the driver.
 */
bool cupti_records__unwanted(const struct cupti_functions *f, bool runtime, uint32_t cbid);
/* Appends the records in a buffer. May be called by any thread. */
void cupti_records__read(const struct cupti_reader *reader, uint8_t *buffer, size_t bytes);

#endif
