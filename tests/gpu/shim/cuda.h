/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Not CUDA's header: names that cupti_activity.h mentions, so that it compiles where only the CUPTI
 * package is. Sizes matter for CUuuid alone; the rest are handles, or stand behind what is checked.
 */
#ifndef KPROF_TESTS_SHIM_CUDA_H
#define KPROF_TESTS_SHIM_CUDA_H

#include <stddef.h>
#include <stdint.h>

typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUevent_st *CUevent;
typedef struct CUfunc_st *CUfunction;
typedef struct CUmod_st *CUmodule;
typedef struct CUaccessPolicyWindow_st CUaccessPolicyWindow;
typedef struct {
	char bytes[16];
} CUuuid;
typedef struct {
	int unused;
} CUstreamAttrValue;
typedef int CUdevice, CUresult, CUgraphNodeType, CUdevice_attribute, CUstreamAttrID;

#endif
