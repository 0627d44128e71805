// SPDX-License-Identifier: BSD-2-Clause
/* Every device runtime's descriptor: whole, and of one mind with its rows. */
#include "catalog/runtime.h"

#include <stdlib.h>

#include "catalog/catalog.h"
#include "unit.h"

#define NR(a) (sizeof(a) / sizeof((a)[0]))

static void registered(void)
{
	static const char *const names[] = {"cuda", "hip", "opencl", "level-zero"};
	const struct catalog_runtime *rt;
	unsigned int modules = 0;
	size_t nr = 0;

	for (; (rt = catalog_runtime_at(nr)); nr++) {
		if (nr < NR(names))
			CHECK_STR(rt->name, names[nr]);
		CHECK(rt->title && rt->libraries[0] && rt->calls && rt->roles && rt->sets);
		/* What its module reports are types, of a device of one of its own kinds. */
		for (uint32_t id = 0; id < KPROF_ACTIVITY_NR; id++)
			if (rt->activities & ACTIVITY_BIT(id))
				CHECK(activity_by_id(id)->id == id);
		if (!rt->activities)
			continue;
		CHECK(!(modules & 1u << rt->module));
		modules |= 1u << rt->module;
		CHECK(catalog_runtime_of_module(rt->module) == rt);
		CHECK(rt->used && (rt->injectable || rt->environment.name));
	}
	CHECK(nr >= NR(names));
	CHECK(!catalog_runtime_of_module(31));
}

/*
 * A call of a row is of this runtime and of no other, and does what the row says is lost without
 * it.
 */
static void check_call(const struct catalog_runtime *rt, const struct catalog_row *row,
		       const char *call)
{
	static const struct {
		const char *lost;
		enum device_role role, or ;
	} roles[] = {
		{"kernel launches", DEVICE_ROLE_LAUNCH, DEVICE_ROLE_LAUNCH},
		{"copies", DEVICE_ROLE_COPY, DEVICE_ROLE_COPY_AND_WAIT},
		{"allocations", DEVICE_ROLE_ALLOCATE, DEVICE_ROLE_ALLOCATE},
		{"waiting for the device", DEVICE_ROLE_WAIT_DEVICE, DEVICE_ROLE_WAIT_DEVICE},
	};
	const struct catalog_runtime *other;
	enum device_role role = device_role_of(call);

	CHECK(catalog_runtime_of_call(call) == rt);
	for (size_t i = 0; (other = catalog_runtime_at(i)); i++)
		CHECK(other == rt || !catalog_match(other->calls, call));
	for (size_t i = 0; row->lost && i < NR(roles); i++)
		if (!strcmp(row->lost, roles[i].lost))
			CHECK(role == roles[i].role || role == roles[i].or);
}

static void rows_agree(void)
{
	for (size_t i = 0; catalog_frameworks[i]; i++) {
		const struct catalog_framework *fw = catalog_frameworks[i];

		for (size_t k = 0; fw->runtime && k < fw->nr_rows; k++) {
			const struct catalog_row *row = &fw->rows[k];
			char *copy = strdup(row->symbols), *save = NULL;

			CHECK(fw->is_runtime);
			CHECK(!row->suffixes || row->suffixes == fw->runtime->suffixes ||
			      !strcmp(row->suffixes, fw->runtime->suffixes));
			CHECK(activity_is_call(catalog_row_type(row)));
			for (char *s = strtok_r(copy, " ", &save); s;
			     s = strtok_r(NULL, " ", &save))
				check_call(fw->runtime, row, s);
			free(copy);
		}
	}
}

/*
 * Names of errors, as each runtime's own header numbers them; in order, for they are searched by
 * halves.
 */
static void errors(void)
{
	static const struct {
		const char *framework;
		int64_t number;
		const char *name;
	} known[] = {
		{"cuda", 2, "cudaErrorMemoryAllocation"},
		{"hip", 1, "hipErrorInvalidValue"},
		{"hip", 100, "hipErrorNoDevice"},
		{"hip", 1053, "hipErrorRuntimeOther"},
		{"hip", 11, NULL},
		{"opencl", -1001, "CL_PLATFORM_NOT_FOUND_KHR"},
		{"opencl", -1, "CL_DEVICE_NOT_FOUND"},
		{"opencl", -72, "CL_MAX_SIZE_RESTRICTION_EXCEEDED"},
		{"opencl", -20, NULL},
		{"level-zero", 0x70000001, "ZE_RESULT_ERROR_DEVICE_LOST"},
		{"level-zero", 0x78000001, "ZE_RESULT_ERROR_UNINITIALIZED"},
		{"level-zero", 0x7ffffffe, "ZE_RESULT_ERROR_UNKNOWN"},
		{"level-zero", 0x7fffffff, NULL},
	};

	for (size_t i = 0; i < NR(known); i++)
		for (size_t k = 0; catalog_frameworks[k]; k++) {
			const struct catalog_framework *fw = catalog_frameworks[k];
			const char *name;

			if (strcmp(fw->name, known[i].framework))
				continue;
			name = catalog_result_name(fw->rows[0].result->names, known[i].number);
			CHECK(!name == !known[i].name && (!name || !strcmp(name, known[i].name)));
		}
}

static void roles_and_stems(void)
{
	static const struct {
		const char *call;
		size_t stem;
		enum device_role role;
		bool waits;
	} known[] = {
		{"cudaMemcpy_v3020", 10, DEVICE_ROLE_COPY_AND_WAIT, true},
		{"cudaMemcpyPeer", 14, DEVICE_ROLE_COPY, false},
		{"cuMemcpyHtoDAsync_v2_ptsz", 17, DEVICE_ROLE_COPY, false},
		{"hipMemcpyAsync_spt", 14, DEVICE_ROLE_COPY, false},
		{"hipStreamSynchronize_spt", 20, DEVICE_ROLE_WAIT_STREAM, true},
		{"hipModuleLaunchKernel", 21, DEVICE_ROLE_LAUNCH, false},
		{"clWaitForEvents", 15, DEVICE_ROLE_WAIT_EVENT, true},
		{"clEnqueueFillBuffer", 19, DEVICE_ROLE_SET, false},
		{"zeCommandListAppendLaunchKernel", 31, DEVICE_ROLE_LAUNCH, false},
		{"zeEventHostSynchronize", 22, DEVICE_ROLE_WAIT_EVENT, true},
		{"zeCommandListAppendMemoryCopy_v2", 32, DEVICE_ROLE_COPY, false},
		{"aten::add", 9, DEVICE_ROLE_NONE, false},
		{"cuda", 4, DEVICE_ROLE_NONE, false},
		{"", 0, DEVICE_ROLE_NONE, false},
	};

	for (size_t i = 0; i < NR(known); i++) {
		CHECK_EQ(catalog_call_stem(known[i].call), known[i].stem);
		CHECK_EQ(device_role_of(known[i].call), known[i].role);
		CHECK_EQ(device_role_waits(device_role_of(known[i].call)), known[i].waits);
	}
	CHECK_EQ(catalog_stem("_v# _x", "a_x_v12_x"), 1);
	CHECK_EQ(catalog_stem("_v#", "a_v"), 3);
	CHECK_EQ(catalog_stem("_v#", "_v2"), 3);
	CHECK_EQ(catalog_shown_bytes("cuMemcpyHtoD_v2_ptsz"), strlen("cuMemcpyHtoD_v2"));
	CHECK_EQ(catalog_shown_bytes("clEnqueueX_v7000"), strlen("clEnqueueX_v7000"));
	CHECK_EQ(catalog_stem("_v####", "a_v200"), 6);
	CHECK_EQ(catalog_stem("_v####", "a_v3020"), 1);
	CHECK_EQ(catalog_stem("_v####", "a_v11010"), 1);
	CHECK_EQ(catalog_stem("_v####", "a3020"), 5);
	CHECK_EQ(catalog_stem("#", "a12"), 1);
	CHECK_EQ(catalog_stem(NULL, "a12"), 3);
}

UNIT_MAIN(TEST(registered), TEST(rows_agree), TEST(errors), TEST(roles_and_stems))
