/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What runs in a process, from the names of the files it has mapped: frameworks and runtimes of the
 * catalog, and CPython. Nothing in the process is touched.
 */
#ifndef KPROF_CAPTURE_DISCOVER_H
#define KPROF_CAPTURE_DISCOVER_H

#include <stddef.h>

#include "capture/process/proc.h"
#include "catalog/catalog.h"

#define DISCOVER_VERSION_BYTES 64

/* The first mapping of a library of the framework; NULL: the process does not use it. */
const struct proc_map *discover_library(const struct proc_maps *maps,
					const struct catalog_framework *fw);
/*
 * The framework's release ("2.15.0+cu132"), from its version file as the process sees it, else from
 * the library's file name (libtorch_cpu.so.1.13 → "1.13"); "" where neither tells.
 */
void discover_version(pid_t pid, const struct proc_maps *maps, const struct catalog_framework *fw,
		      char version[DISCOVER_VERSION_BYTES]);
/* "3.11" from libpython3.11.so.1.0 or an executable python3.11; "" not a Python process. */
void discover_python(pid_t pid, const struct proc_maps *maps, char version[DISCOVER_VERSION_BYTES]);
/* Runtimes found, "cuda 13.0.96, opencl 1.0.0"; "" none. */
void discover_runtimes(const struct proc_maps *maps, char *out, size_t bytes);

#endif
