// SPDX-License-Identifier: BSD-2-Clause
/*
 * CUDA's table by itself; and, where KPROF_TEST_CUDART names copies of the real libcudart
 * (separated by colons), against them: they need no driver to say what their errors are called.
 */
#include "capture/probe/plan.h"

#include <dlfcn.h>

#include "unit.h"
#include "util/util.h"

static void error_names(void)
{
	CHECK_STR(catalog_result_name(catalog_cuda_errors, 0), "cudaSuccess");
	CHECK_STR(catalog_result_name(catalog_cuda_errors, 1), "cudaErrorInvalidValue");
	CHECK_STR(catalog_result_name(catalog_cuda_errors, 719), "cudaErrorLaunchFailure");
	CHECK_STR(catalog_result_name(catalog_cuda_errors, 999), "cudaErrorUnknown");
	CHECK_STR(catalog_result_name(catalog_cuda_driver_errors, 1), "CUDA_ERROR_INVALID_VALUE");
	CHECK_STR(catalog_result_name(catalog_cuda_driver_errors, 719), "CUDA_ERROR_LAUNCH_FAILED");
	CHECK(!catalog_result_name(catalog_cuda_errors, -1));
	CHECK(!catalog_result_name(catalog_cuda_errors, 11)); /* a gap */
	CHECK(!catalog_result_name(catalog_cuda_errors, 1000));
	CHECK(!catalog_result_name(catalog_cuda_errors, 65536 + 1));
	CHECK(!catalog_result_name(catalog_cuda_driver_errors, INT64_MIN));
	CHECK(!catalog_result_name(catalog_cuda_driver_errors, INT64_MAX));
}

static bool dim3_part(enum catalog_arg_kind kind)
{
	return kind == CATALOG_ARG_DIM3_XY || kind == CATALOG_ARG_DIM3_X ||
	       kind == CATALOG_ARG_DIM3_Y || kind == CATALOG_ARG_DIM3_Z;
}

static void check_args(const struct catalog_row *row)
{
	bool over = false;

	for (size_t i = 0; i < KPROF_WIRE_MAX_ARGS; i++) {
		const struct catalog_arg *arg = &row->args[i];
		enum catalog_arg_kind next =
			i + 1 < KPROF_WIRE_MAX_ARGS ? arg[1].kind : CATALOG_ARG_NONE;

		over |= !arg->name;
		CHECK_EQ(arg->name != NULL, arg->from.reg != 0);
		CHECK_EQ(arg->name != NULL, arg->kind != CATALOG_ARG_NONE);
		if (over) {
			CHECK(!arg->name); /* nothing behind the last */
			continue;
		}
		/* An integer of this name on a host call breaks Holistic Trace Analysis. */
		CHECK(strcmp(arg->name, "stream"));
		CHECK_EQ(arg->kind == CATALOG_ARG_ENUM, arg->names != NULL);
		if (arg->kind == CATALOG_ARG_DIM3_XY || arg->kind == CATALOG_ARG_DIM3_Y)
			CHECK_EQ(next, CATALOG_ARG_DIM3_Z);
		if (arg->kind == CATALOG_ARG_DIM3_X)
			CHECK_EQ(next, CATALOG_ARG_DIM3_Y);
		if (dim3_part(arg->kind) && arg->kind != CATALOG_ARG_DIM3_Z)
			CHECK_STR(arg[1].name, arg->name);
		for (size_t k = 0; k < i; k++)
			CHECK(dim3_part(arg->kind) || strcmp(row->args[k].name, arg->name));
	}
	if (unit_failures_here)
		printf("# row %s\n", row->symbols);
}

static void rows(void)
{
	for (size_t i = 0; i < catalog_cuda.nr_rows; i++) {
		const struct catalog_row *row = &catalog_cuda.rows[i];

		check_args(row);
		CHECK(row->result && catalog_result_name(row->result->names, 0));
		CHECK(catalog_result_name(row->result->names, row->result->answer) != NULL);
		CHECK(row->activity == KPROF_ACTIVITY_CUDA_RUNTIME ||
		      row->activity == KPROF_ACTIVITY_CUDA_DRIVER);
	}
}

/* The symbols that are named at all, each in one row only. */
static void symbols_once(void)
{
	size_t nr = 0;

	for (size_t i = 0; i < catalog_cuda.nr_rows; i++) {
		char *copy = strdup(catalog_cuda.rows[i].symbols), *save = NULL;

		for (char *s = strtok_r(copy, " ", &save); s; s = strtok_r(NULL, " ", &save)) {
			size_t rows_with = 0;

			CHECK(!strpbrk(s, "*?["));
			for (size_t k = 0; k < catalog_cuda.nr_rows; k++)
				rows_with += catalog_match(catalog_cuda.rows[k].symbols, s);
			if (rows_with != 1)
				printf("# %s\n", s);
			CHECK_EQ(rows_with, 1);
			nr++;
		}
		free(copy);
	}
	CHECK(nr > 180);
}

static bool planned(const struct plan *plan, const char *name)
{
	for (size_t i = 0; i < plan->nr; i++)
		if (!strcmp(plan->probes[i].name, name))
			return true;
	return false;
}

/* Every row finds its calls, and each can be probed cheaply. */
static void check_plan(const char *path)
{
	struct plan_filter none = {0};
	struct plan_files files = {0};
	struct elffile *e = NULL;
	struct plan plan;

	CHECK_EQ(elffile__open(path, &e), 0);
	if (!e)
		return;
	CHECK_EQ(plan_library(&catalog_cuda, e, "libcudart.so.99", &files, &none, &plan), 0);
	CHECK(plan.nr > 100);
	for (size_t i = 0; i < plan.nr; i++) {
		const char *name = plan.probes[i].name;

		if (plan.probes[i].cost != INSN_EMULATED || strstr(name, "_pt"))
			printf("# %s, cost %d\n", name, plan.probes[i].cost);
		CHECK_EQ(plan.probes[i].cost, INSN_EMULATED);
		CHECK(!strstr(name, "_pt") && !strstr(name, "_v"));
		CHECK_EQ(plan.probes[i].wire.args[0].reg, plan.probes[i].row->args[0].from.reg);
	}
	for (size_t i = 0; i < plan.nr_rows; i++) {
		const struct plan_row *row = &plan.rows[i];

		if (row->library_matches && !row->row->optional && !row->probes)
			printf("# %s\n", row->row->symbols);
		CHECK(!row->library_matches || row->row->optional || row->probes);
		CHECK_EQ(row->library_matches, row->row->activity == KPROF_ACTIVITY_CUDA_RUNTIME);
	}
	CHECK(planned(&plan, "cudaLaunchKernel") && planned(&plan, "cudaLaunchKernelExC") &&
	      planned(&plan, "cudaMemcpyAsync") && planned(&plan, "cudaGraphLaunch"));
	printf("# %s: %zu probes\n", path, plan.nr);
	plan_free(&plan);
	CHECK_EQ(plan_embedded_in(e, PLAN_ALL_FRAMEWORKS), plan_frameworks_of("libcudart.so.99"));
	elffile__close(e);
}

/*
 * What the library says that an error is called, wherever it has one of ours; and that we know all
 * of its own.
 */
static void check_names(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	const char *(*name_of)(int) = NULL;
	size_t known = 0;

	CHECK(library);
	if (library)
		*(void **)&name_of = dlsym(library, "cudaGetErrorName");
	CHECK(name_of);
	for (int i = 0; i < 1100 && name_of; i++) {
		const char *theirs = name_of(i),
			   *ours = catalog_result_name(catalog_cuda_errors, i);

		if (!theirs || !strncmp(theirs, "unrecognized", 12))
			continue; /* not in this release */
		CHECK_STR(ours, theirs);
		known++;
	}
	CHECK(known > 80);
	printf("# %s: %zu errors\n", path, known);
}

static void real_runtimes(void)
{
	const char *paths = getenv("KPROF_TEST_CUDART");
	char *copy = strdup(paths ? paths : ""), *save = NULL;

	for (char *p = strtok_r(copy, ":", &save); p; p = strtok_r(NULL, ":", &save)) {
		check_plan(p);
		check_names(p);
	}
	free(copy);
}

UNIT_MAIN(TEST(error_names), TEST(rows), TEST(symbols_once), TEST(real_runtimes))
