// SPDX-License-Identifier: BSD-2-Clause
/*
 * Chooses the CUPTI to load: the one that the process uses already, else the one that the user
 * names, else the one that belongs to the process's CUDA runtime.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/cupti/cupti.h"
#include "gpu/base/util.h"

#define PATH_VARIABLE "KPROF_CUPTI_PATH"

/*
 * Places relative to the folder of libcudart: in wheels (CUDA 12, 13), and in the toolkit, in which
 * libcudart has two paths.
 */
static const char *const places[] = {
	"/",
	"/../../cuda_cupti/lib/",
	"/../extras/CUPTI/lib64/",
	"/../../../extras/CUPTI/lib64/",
};
/*
 * Used if nothing else tells: where packages install the toolkit; last, wherever the loader finds
 * the library.
 */
static const char *const known_folders[] = {"/usr/local/cuda/extras/CUPTI/lib64/", ""};

/* Up to CUDA 11 the name of the file has the minor version. */
static const char *const names_11[] = {"libcupti.so.11.8", "libcupti.so.11.7", "libcupti.so.11.6",
				       NULL};
static const char *const names_12[] = {"libcupti.so.12", NULL};
static const char *const names_13[] = {"libcupti.so.13", NULL};

static const char *const *names_of(int major)
{
	return major == 11 ? names_11 : major == 12 ? names_12 : major == 13 ? names_13 : NULL;
}

static void *open_in(const char *folder, const char *more, const char *const *names)
{
	char path[600];
	void *handle = NULL;

	for (; *names && !handle; names++) {
		size_t at = gpu_append(path, sizeof(path), 0, folder);

		at = gpu_append(path, sizeof(path), at, more);
		gpu_append(path, sizeof(path), at, *names);
		handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	}
	return handle;
}

static void *open_for(const struct cuda_process *p, int major)
{
	const char *const *names = names_of(major);
	char folder[512];
	void *handle = NULL;
	char *slash;

	if (!names)
		return NULL;
	gpu_append(folder, sizeof(folder), 0, p->runtime);
	slash = strrchr(folder, '/');
	if (slash && major == p->runtime_major) {
		*slash = '\0';
		for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && !handle; i++)
			handle = open_in(folder, places[i], names);
	}
	for (size_t i = 0; i < sizeof(known_folders) / sizeof(known_folders[0]) && !handle; i++)
		handle = open_in(known_folders[i], "", names);
	return handle;
}

static void *open_any(const struct cuda_process *p, const char **named)
{
	int major = p->runtime_major ? p->runtime_major : p->driver_version / 1000;
	void *handle = NULL;

	*named = getenv(PATH_VARIABLE);
	if (p->cupti[0])
		handle = dlopen(p->cupti, RTLD_NOLOAD | RTLD_LAZY);
	if (!handle && *named && **named)
		return dlopen(*named, RTLD_LAZY | RTLD_LOCAL);
	/*
	 * A driver also serves older releases of CUDA: an application with a static runtime may use
	 * any of them.
	 */
	for (; major >= 11 && !handle; major--) {
		handle = open_for(p, major);
		if (p->runtime_major)
			break;
	}
	return handle;
}

static int functions(void *handle, struct cupti_functions *f, struct gpu_report *r)
{
	memset(f, 0, sizeof(*f));
#define GET(member, symbol, parameters) f->member = (int(*) parameters)dlsym(handle, #symbol);
#define NEED(member, symbol, parameters)                                                         \
	if (!f->member)                                                                          \
		return gpu_report(r, -ENOTSUP, KPROF_AGENT_BAD_VERSION,                          \
				  "libcupti lacks " #symbol ": not CUDA 11.6 to 13", NULL, NULL, \
				  NULL);
	CUPTI_FUNCTIONS(GET)
	CUPTI_OPTIONAL_FUNCTIONS(GET)
	CUPTI_FUNCTIONS(NEED)
#define PROFILER(id, symbol) f->profiler[PROFILER_CALL_##id] = (profiler_fn)dlsym(handle, #symbol);
	PROFILER_FUNCTIONS(PROFILER)
#undef PROFILER
#undef GET
#undef NEED
	return 0;
}

/*
 * CUPTI 13.2 ends the process (endless recursion, found by trying) when it is first called and the
 * driver lacks a table of functions that it asks for by this number: too old a driver, or none.
 * 13.3 to 13.5 only fail then. So the agent looks the table up first. These releases are recognized
 * by a function that older ones lack.
 */
static bool driver_suits(const struct cuda_process *p, void *cupti)
{
	static const unsigned char id[16] = {0x7c, 0xb6, 0x3f, 0x9b, 0x9c, 0xa4, 0x8e, 0x42,
					     0xa4, 0x84, 0xbe, 0xb6, 0x6e, 0x6a, 0xed, 0x7f};
	int (*get)(const void **, const void *);
	const void *table = NULL;

	if (!dlsym(cupti, "cuptiActivityEnable_v2"))
		return true;
	get = p->driver ? (int (*)(const void **, const void *))dlsym(p->driver, "cuGetExportTable")
			: NULL;
	return get && !get(&table, id) && table;
}

static int check_version(uint32_t version, struct gpu_report *r)
{
	char number[24];

	if (version == CUPTI_VERSION_13)
		return gpu_report(
			r, -ENOTSUP, KPROF_AGENT_BAD_VERSION,
			"CUPTI of the first CUDA 13.0 can hang or crash the process; that of "
			"13.0 Update 1 does not",
			NULL);
	if ((version >= CUPTI_VERSION_MIN && version <= CUPTI_VERSION_12_LAST) ||
	    (version >= CUPTI_VERSION_13 && version < CUPTI_VERSION_14))
		return 0;
	return gpu_report(r, -ENOTSUP, KPROF_AGENT_BAD_VERSION, "libcupti's API version ",
			  gpu_number(number, version),
			  version < CUPTI_VERSION_MIN ? " is older than CUDA 11.6"
						      : " is newer than CUDA 13",
			  ", and its records are not known", NULL);
}

int cupti__load(const struct cuda_process *p, struct cupti_functions *f, uint32_t *version,
		struct gpu_report *r)
{
	char major[24];
	const char *named;
	void *handle = open_any(p, &named);
	int err;

	if (!handle && named && *named)
		return gpu_report(r, -ENOENT, KPROF_AGENT_NO_CUPTI, PATH_VARIABLE " is ", named,
				  ", which cannot be loaded", NULL);
	if (!handle)
		return gpu_report(
			r, -ENOENT, KPROF_AGENT_NO_CUPTI, "no libcupti was found for CUDA ",
			gpu_number(major, (uint64_t)(p->runtime_major ? p->runtime_major
								      : p->driver_version / 1000)),
			", neither loaded nor beside libcudart; " PATH_VARIABLE " can name it",
			NULL);
	err = functions(handle, f, r);
	if (err)
		return err;
	if (!driver_suits(p, handle))
		return gpu_report(r, -ENOTSUP, KPROF_AGENT_NO_DRIVER, "the NVIDIA driver (CUDA ",
				  gpu_number(major, (uint64_t)p->driver_version),
				  ") is too old for the process's libcupti", NULL);
	if (f->get_version(version) != CUPTI_OK)
		return gpu_report(r, -ENOTSUP, KPROF_AGENT_BAD_VERSION,
				  "libcupti does not tell its version", NULL);
	return check_version(*version, r);
}
