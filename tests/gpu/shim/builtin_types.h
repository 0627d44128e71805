/* SPDX-License-Identifier: BSD-2-Clause */
/* Not CUDA's header: nothing of it is needed to check CUPTI's records. */
