/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SIMULATED CUDA, FOR TESTS: the part of CUDA's binary interface that the simulated libraries have,
 * in our own declarations, so that they build where NVIDIA's headers are not. Every struct is
 * called sim_…, so that abi_check.c can hold it against the real one.
 *
 * Sources: cuda.h and driver_types.h of CUDA 12.1 and 13.2 (layouts and numbers only).
 */
#ifndef SIM_CUDA_ABI_H
#define SIM_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

struct sim_dim3 {
	unsigned int x, y, z;
};

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct sim_context *CUcontext;
typedef struct sim_stream *CUstream;
typedef struct sim_event *CUevent;
typedef struct sim_module *CUmodule;
typedef struct sim_function *CUfunction;
typedef struct sim_graph *CUgraph;
typedef struct sim_node *CUgraphNode;
typedef struct sim_exec *CUgraphExec;
typedef struct sim_pool *CUmemoryPool;
typedef void (*CUhostFn)(void *);

/* Streams that are no pointers: cudaStreamLegacy, cudaStreamPerThread. */
#define SIM_STREAM_LEGACY ((CUstream)1)
#define SIM_STREAM_PER_THREAD ((CUstream)2)

enum sim_error { /* the runtime's numbers and the driver's agree where both have one */
		 SIM_SUCCESS = 0,
		 SIM_INVALID_VALUE = 1,
		 SIM_OUT_OF_MEMORY = 2,
		 SIM_NOT_INITIALIZED = 3,
		 SIM_DEINITIALIZED = 4,
		 SIM_INVALID_CONFIGURATION = 9, /* the runtime's; the driver says INVALID_VALUE */
		 SIM_INSUFFICIENT_DRIVER = 35,  /* the runtime's */
		 SIM_INVALID_DEVICE_FUNCTION = 98,
		 SIM_NO_DEVICE = 100,
		 SIM_INVALID_DEVICE = 101,
		 SIM_INVALID_IMAGE = 200,
		 SIM_INVALID_CONTEXT = 201,
		 SIM_INVALID_HANDLE = 400,
		 SIM_NOT_FOUND = 500,
		 SIM_NOT_READY = 600,
		 SIM_ILLEGAL_ADDRESS = 700,
		 SIM_LAUNCH_OUT_OF_RESOURCES = 701,
		 SIM_PEER_ACCESS_ALREADY_ENABLED = 704,
		 SIM_CONTEXT_IS_DESTROYED = 709,
		 SIM_LAUNCH_FAILED = 719,
		 SIM_NOT_PERMITTED = 800,
		 SIM_NOT_SUPPORTED = 801,
		 SIM_CAPTURE_UNSUPPORTED = 900,
		 SIM_CAPTURE_INVALIDATED = 901,
		 SIM_CAPTURE_UNMATCHED = 903,
		 SIM_CAPTURE_IMPLICIT = 906,
		 SIM_UNKNOWN_ERROR = 999,
};

enum sim_memcpy_kind {
	SIM_HOST_TO_HOST = 0,
	SIM_HOST_TO_DEVICE = 1,
	SIM_DEVICE_TO_HOST = 2,
	SIM_DEVICE_TO_DEVICE = 3,
	SIM_MEMCPY_DEFAULT = 4,
};

#define SIM_STREAM_NON_BLOCKING 1u
#define SIM_EVENT_BLOCKING_SYNC 1u
#define SIM_EVENT_DISABLE_TIMING 2u

/* CUdevice_attribute, those that are answered. */
enum sim_attribute {
	SIM_ATTR_MAX_THREADS_PER_BLOCK = 1,
	SIM_ATTR_MAX_BLOCK_DIM_X = 2,
	SIM_ATTR_MAX_BLOCK_DIM_Y = 3,
	SIM_ATTR_MAX_BLOCK_DIM_Z = 4,
	SIM_ATTR_MAX_GRID_DIM_X = 5,
	SIM_ATTR_MAX_GRID_DIM_Y = 6,
	SIM_ATTR_MAX_GRID_DIM_Z = 7,
	SIM_ATTR_SHARED_PER_BLOCK = 8,
	SIM_ATTR_CONSTANT_MEMORY = 9,
	SIM_ATTR_WARP_SIZE = 10,
	SIM_ATTR_REGISTERS_PER_BLOCK = 12,
	SIM_ATTR_CLOCK_RATE = 13,
	SIM_ATTR_GPU_OVERLAP = 15,
	SIM_ATTR_MULTIPROCESSORS = 16,
	SIM_ATTR_CAN_MAP_HOST_MEMORY = 19,
	SIM_ATTR_CONCURRENT_KERNELS = 31,
	SIM_ATTR_ECC = 32,
	SIM_ATTR_PCI_BUS = 33,
	SIM_ATTR_PCI_DEVICE = 34,
	SIM_ATTR_MEMORY_CLOCK_RATE = 36,
	SIM_ATTR_MEMORY_BUS_WIDTH = 37,
	SIM_ATTR_L2_BYTES = 38,
	SIM_ATTR_THREADS_PER_MULTIPROCESSOR = 39,
	SIM_ATTR_ASYNC_ENGINES = 40,
	SIM_ATTR_UNIFIED_ADDRESSING = 41,
	SIM_ATTR_PCI_DOMAIN = 50,
	SIM_ATTR_COMPUTE_MAJOR = 75,
	SIM_ATTR_COMPUTE_MINOR = 76,
	SIM_ATTR_STREAM_PRIORITIES = 78,
	SIM_ATTR_SHARED_PER_MULTIPROCESSOR = 81,
	SIM_ATTR_REGISTERS_PER_MULTIPROCESSOR = 82,
	SIM_ATTR_MANAGED_MEMORY = 83,
	SIM_ATTR_COOPERATIVE_LAUNCH = 95,
	SIM_ATTR_SHARED_PER_BLOCK_OPTIN = 97,
	SIM_ATTR_BLOCKS_PER_MULTIPROCESSOR = 106,
	SIM_ATTR_RESERVED_SHARED_PER_BLOCK = 111,
	SIM_ATTR_MEMORY_POOLS = 115,
};

struct sim_uuid {
	char bytes[16];
};

/* cudaLaunchConfig_t */
struct sim_launch_config {
	struct sim_dim3 grid, block;
	size_t dynamic_shared;
	CUstream stream;
	void *attributes; /* 72 bytes each; ignored */
	unsigned int nr_attributes;
};

/* CUlaunchConfig */
struct sim_driver_launch_config {
	unsigned int grid[3], block[3];
	unsigned int dynamic_shared;
	CUstream stream;
	void *attributes;
	unsigned int nr_attributes;
};

/* cudaKernelNodeParams */
struct sim_kernel_node_params {
	void *func;
	struct sim_dim3 grid, block;
	unsigned int dynamic_shared;
	void **params;
	void **extra;
};

/* CUDA_KERNEL_NODE_PARAMS (v2) */
struct sim_driver_kernel_node_params {
	CUfunction func;
	unsigned int grid[3], block[3];
	unsigned int dynamic_shared;
	void **params;
	void **extra;
	void *kernel;
	CUcontext context;
};

/* cudaMemsetParams, CUDA_MEMSET_NODE_PARAMS */
struct sim_memset_params {
	void *dst;
	size_t pitch;
	unsigned int value;
	unsigned int element_bytes;
	size_t width, height;
};

/* CUDA_MEMCPY3D: of which whole rows of bytes are copied, no arrays. */
struct sim_driver_copy3d {
	size_t src_x, src_y, src_z, src_lod;
	int src_type; /* CUmemorytype: 1 host, 2 device, 4 unified */
	const void *src_host;
	CUdeviceptr src_device;
	void *src_array, *reserved0;
	size_t src_pitch, src_height;
	size_t dst_x, dst_y, dst_z, dst_lod;
	int dst_type;
	void *dst_host;
	CUdeviceptr dst_device;
	void *dst_array, *reserved1;
	size_t dst_pitch, dst_height;
	size_t width, height, depth;
};

/* cudaHostNodeParams, CUDA_HOST_NODE_PARAMS */
struct sim_host_node_params {
	CUhostFn fn;
	void *arg;
};

/* cudaPointerAttributes: the start that both majors share */
struct sim_pointer_attributes {
	int type; /* 0 unregistered, 1 host, 2 device, 3 managed */
	int device;
	void *device_pointer, *host_pointer;
};

/*
 * What nvcc puts into a program, for __cudaRegisterFatBinary: crt/host_runtime.h,
 * fatbinary_section.h.
 */
#define SIM_FATBIN_MAGIC 0x466243b1
struct sim_fatbin {
	int magic, version;
	const void *image;
	void *filename_or_fatbins;
};

/*
 * The simulator's own "device code", which the image of a fatbin (or of cuModuleLoadData) points
 * at. Nothing of NVIDIA's looks like it.
 */
#define SIM_IMAGE_MAGIC 0x4d495349464f5250ull /* "PROFISIM" */
struct sim_kernel_desc {
	const char *name; /* as a compiler mangles it */
	unsigned int registers, static_shared, local;
	unsigned int nr_params;
	/* 1 + the parameter (uint64_t) that says how many ns it takes; 0: none */
	unsigned int duration_param;
	unsigned long long fixed_ns; /* 0: what grid and block make */
	/* Done when it is queued, for its effect on memory. May be NULL. */
	void (*body)(void **params, struct sim_dim3 grid, struct sim_dim3 block);
};
struct sim_image {
	unsigned long long magic;
	unsigned int nr_kernels;
	const struct sim_kernel_desc *kernels;
};

#endif
