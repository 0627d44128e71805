// SPDX-License-Identifier: BSD-2-Clause
/*
 * CUDA in this process: its libraries, whether it is initialized, its devices. Nothing here
 * initializes it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include "gpu/base/batch.h"
#include "gpu/cupti/cupti.h"
#include "gpu/base/util.h"

/* CUresult */
#define CUDA_NOT_INITIALIZED 3
#define CUDA_NO_DEVICE 100

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* libcudart.so.12 → 12; libcudart-d0da41ae.so.11.0 (as wheels rename it) → 11 */
static int major_of(const char *base)
{
	const char *so = strstr(base, ".so.");
	int major = 0;

	for (so = so ? so + 4 : ""; *so >= '0' && *so <= '9' && major < 1000; so++)
		major = major * 10 + (*so - '0');
	return major;
}

struct look {
	struct cuda_process *p;
	char driver[512];
	int cupti_major;
};

static void keep(char *to, const char *path)
{
	gpu_append(to, 512, 0, path);
}

/* Called with the loader's lock held, so it calls no function of the loader. */
static int look_at(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct look *l = ctx;
	const char *base = base_of(info->dlpi_name ? info->dlpi_name : "");
	int major = major_of(base);

	if (strncmp(base, "libcu", 5))
		return 0;
	if (!strncmp(base, "libcuda.so", 10)) {
		keep(l->driver, info->dlpi_name);
	} else if (!strncmp(base, "libcudart.so", 12) || !strncmp(base, "libcudart-", 10)) {
		if (!l->p->has_runtime)
			l->p->runtime_major = major;
		if (!l->p->has_runtime)
			keep(l->p->runtime, info->dlpi_name);
		l->p->has_runtime = true;
	} else if (!strncmp(base, "libcupti.so", 11) || !strncmp(base, "libcupti-", 9)) {
		/* If several are loaded, take the one of the same release as the runtime. */
		if (!l->p->cupti[0] || major == l->p->runtime_major) {
			keep(l->p->cupti, info->dlpi_name);
			l->cupti_major = major;
		}
	}
	return 0;
}

static int version_by(void *handle, const char *symbol)
{
	int (*get)(int *) = (int (*)(int *))dlsym(handle, symbol);
	int version = 0;

	return get && !get(&version) ? version : 0;
}

/*
 * Called once for each library: every dlopen() takes the loader's lock, which the process needs,
 * too.
 */
static void versions(const struct look *l)
{
	static void *driver;
	static int driver_version, runtime_version;
	struct cuda_process *p = l->p;
	void *runtime;

	if (l->driver[0] && !driver) {
		driver = dlopen(l->driver, RTLD_NOLOAD | RTLD_LAZY);
		driver_version = driver ? version_by(driver, "cuDriverGetVersion") : 0;
	}
	if (p->runtime[0] && !runtime_version) {
		runtime = dlopen(p->runtime, RTLD_NOLOAD | RTLD_LAZY);
		if (runtime) {
			runtime_version = version_by(runtime, "cudaRuntimeGetVersion");
			dlclose(runtime); /* drops the reference that dlopen() took */
		}
	}
	p->driver = driver;
	p->driver_version = driver_version;
	p->runtime_version = runtime_version;
}

void cuda__look(struct cuda_process *p)
{
	struct look l = {.p = p};

	memset(p, 0, sizeof(*p));
	dl_iterate_phdr(look_at, &l);
	/* Look again: a CUPTI may be before the runtime in the list of libraries. */
	if (p->runtime_major && l.cupti_major && l.cupti_major != p->runtime_major)
		dl_iterate_phdr(look_at, &l);
	versions(&l);
}

/*
 * No function of CUPTI may be called before this returns 0: some releases end the process if there
 * is no driver.
 */
int cuda__initialized(const struct cuda_process *p, struct gpu_report *r)
{
	int (*count)(int *), nr = 0, err;
	char number[24];

	if (!p->driver && !p->has_runtime && !p->cupti[0])
		return gpu_report(r, -EAGAIN, KPROF_AGENT_NO_RUNTIME,
				  "the process has not loaded CUDA", NULL);
	if (!p->driver && access("/proc/driver/nvidia/version", F_OK) && access("/dev/dxg", F_OK))
		return gpu_report(r, -EAGAIN, KPROF_AGENT_NO_DRIVER,
				  "the process has CUDA's libraries, but this machine shows it no "
				  "NVIDIA driver (no libcuda.so.1, no /proc/driver/nvidia)",
				  NULL);
	if (!p->driver)
		return gpu_report(
			r, -EAGAIN, KPROF_AGENT_NO_RUNTIME,
			"the process has not called CUDA yet (libcuda.so.1 is not loaded)", NULL);
	if (p->driver_version && p->driver_version / 1000 < p->runtime_version / 1000)
		return gpu_report(r, -ENOTSUP, KPROF_AGENT_NO_DRIVER,
				  "the NVIDIA driver is for CUDA ",
				  gpu_number(number, (uint64_t)(p->driver_version / 1000)),
				  ", older than the process's libcudart", NULL);
	if (gpu_in_injection())
		return 0;
	count = (int (*)(int *))dlsym(p->driver, "cuDeviceGetCount");
	err = count ? count(&nr) : 0;
	if (err == CUDA_NOT_INITIALIZED)
		return gpu_report(
			r, -EAGAIN, KPROF_AGENT_NO_RUNTIME,
			"the process has not called CUDA yet (cuInit was not called, or failed)",
			NULL);
	if (err == CUDA_NO_DEVICE || (!err && count && !nr))
		return gpu_report(r, -ENODEV, KPROF_AGENT_NO_DRIVER, "CUDA sees no device here",
				  NULL);
	return 0;
}

/* ---- devices ---- */

/* What the driver is asked for, by CUdevice_attribute, and where the answer goes. */
#define FIELD(name) offsetof(struct kprof_agent_device, name)
static const struct {
	int attribute;
	size_t field;
} asked[] = {
	{1, FIELD(max_threads_per_block)},
	{8, FIELD(shared_bytes_per_block)},
	{10, FIELD(warp_size)},
	{12, FIELD(registers_per_block)},
	{13, FIELD(clock_khz)},
	{16, FIELD(multiprocessors)},
	{39, FIELD(max_threads_per_multiprocessor)},
	{75, FIELD(compute_major)},
	{76, FIELD(compute_minor)},
	{81, FIELD(shared_bytes_per_multiprocessor)},
	{82, FIELD(registers_per_multiprocessor)},
	{97, FIELD(shared_bytes_per_block_optin)},
	{106, FIELD(max_blocks_per_multiprocessor)},
};
enum { MEMORY_CLOCK_KHZ = 36, MEMORY_BUS_BITS = 37 };

struct driver {
	int (*count)(int *);
	int (*get)(int *device, int ordinal);
	int (*name)(char *, int bytes, int device);
	int (*memory)(size_t *, int device);
	int (*attribute)(int *, int attribute, int device);
};

static bool driver_functions(const struct cuda_process *p, struct driver *d)
{
	if (!p->driver)
		return false;
	d->count = (int (*)(int *))dlsym(p->driver, "cuDeviceGetCount");
	d->get = (int (*)(int *, int))dlsym(p->driver, "cuDeviceGet");
	d->name = (int (*)(char *, int, int))dlsym(p->driver, "cuDeviceGetName");
	d->memory = (int (*)(size_t *, int))dlsym(p->driver, "cuDeviceTotalMem_v2");
	d->attribute = (int (*)(int *, int, int))dlsym(p->driver, "cuDeviceGetAttribute");
	return d->count && d->get && d->attribute;
}

static void ask(const struct driver *d, int device, int attribute, kprof_u32 *value)
{
	int v = 0;

	if (!d->attribute(&v, attribute, device) && v > 0)
		*value = (kprof_u32)v;
}

/* Adds what the driver knows of a device. Other fields stay as they are. */
static void complete(const struct driver *d, int ordinal, struct kprof_agent_device *out)
{
	kprof_u32 clock_khz = 0, bus_bits = 0;
	char name[256] = "";
	size_t memory = 0;
	int device;

	if (d->get(&device, ordinal))
		return;
	if (d->name && !d->name(name, sizeof(name), device) && name[0]) {
		name[sizeof(name) - 1] = '\0';
		out->h.name = batch__name_of(name);
	}
	if (d->memory && !d->memory(&memory, device))
		out->memory_bytes = memory;
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++)
		ask(d, device, asked[i].attribute,
		    (kprof_u32 *)(void *)((char *)out + asked[i].field));
	ask(d, device, MEMORY_CLOCK_KHZ, &clock_khz);
	ask(d, device, MEMORY_BUS_BITS, &bus_bits);
	/* Memory makes two transfers per clock. */
	if (!out->memory_bandwidth_bytes)
		out->memory_bandwidth_bytes =
			(kprof_u64)clock_khz * 1000 * 2 * (kprof_u64)bus_bits / 8;
}

unsigned int cuda__devices(const struct cuda_process *p)
{
	struct driver d;
	int nr = 0;

	if (!driver_functions(p, &d) || d.count(&nr))
		return 0;
	for (int i = 0; i < nr; i++) {
		struct kprof_agent_device out =
			BATCH_RECORD(struct kprof_agent_device, KPROF_AGENT_DEVICE, 0);

		out.device = (kprof_u32)i;
		out.runtime = KPROF_AGENT_CUDA;
		complete(&d, i, &out);
		batch__append(&out);
	}
	return nr > 0 ? (unsigned int)nr : 0;
}

void cuda__device(const struct cuda_process *p, const struct cupti_device *d)
{
	struct kprof_agent_device out = BATCH_RECORD(struct kprof_agent_device, KPROF_AGENT_DEVICE,
						     batch__name_of(d->name));
	struct driver driver;

	out.device = d->id;
	out.runtime = KPROF_AGENT_CUDA;
	out.memory_bytes = d->memory;
	out.memory_bandwidth_bytes = d->bandwidth * 1000;
	out.compute_major = d->compute_major;
	out.compute_minor = d->compute_minor;
	out.max_threads_per_block = d->max_threads_block;
	out.max_threads_per_multiprocessor = d->max_warps_sm * d->warp;
	out.registers_per_block = d->max_registers_block;
	out.registers_per_multiprocessor = d->max_registers_sm;
	out.shared_bytes_per_block = d->max_shared_block;
	out.shared_bytes_per_multiprocessor = d->max_shared_sm;
	out.warp_size = d->warp;
	out.multiprocessors = d->multiprocessors;
	out.max_blocks_per_multiprocessor = d->max_blocks_sm;
	out.clock_khz = d->clock;
	if (driver_functions(p, &driver))
		complete(&driver, (int)d->id, &out);
	batch__append(&out);
}

bool cuda__primary(const struct cuda_process *p, struct cuda_primary *out)
{
	static const char *const release[] = {"cuDevicePrimaryCtxRelease_v2",
					      "cuDevicePrimaryCtxRelease"};

	memset(out, 0, sizeof(*out));
	if (!p->driver)
		return false;
	out->count = (int (*)(int *))dlsym(p->driver, "cuDeviceGetCount");
	out->get = (int (*)(int *, int))dlsym(p->driver, "cuDeviceGet");
	out->state =
		(int (*)(int, unsigned int *, int *))dlsym(p->driver, "cuDevicePrimaryCtxGetState");
	out->retain = (int (*)(void **, int))dlsym(p->driver, "cuDevicePrimaryCtxRetain");
	for (size_t i = 0; i < 2 && !out->release; i++)
		out->release = (int (*)(int))dlsym(p->driver, release[i]);
	return out->count && out->get && out->state && out->retain && out->release;
}
