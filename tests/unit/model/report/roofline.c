// SPDX-License-Identifier: BSD-2-Clause
/* user/model/report/roofline.c: operations, bytes and time, against the device's peak. */
#include "device_fixture.h"

#include "kprof.h"
#include "model/report/flops.h"
#include "model/report/peak.h"
#include "unit.h"

static struct kprof_capture *c;
static struct kprof_result *r;

enum { LINEAR = 1, ADDMM, MM, LAUNCH, COMPILED };

/* The window is 1000 … 100000 ns. An H100 with 100 multiprocessors at 1 GHz. */
static void start(void)
{
	static const struct description descriptions[] = {
		{"aten::linear", "cpu_op"},
		{"aten::addmm", "cpu_op"},
		{"aten::mm", "cpu_op"},
		{"cudaLaunchKernel", "cuda_runtime"},
		{"Torch-Compiled Region: 0/0", "user_annotation"},
		{0},
	};

	start_with("worker", descriptions);
	fake_meta("device.42.0",
		  "{\"name\":\"H100\",\"computeMajor\":9,\"computeMinor\":0,\"numSms\":100,"
		  "\"clockRateKHz\":1000000,\"memoryBandwidth\":1000000000000}");
}

static void inputs(uint64_t span, const char *dims, const char *types)
{
	static struct store_attr attrs[16][4];
	static int used;
	struct store_attr *a = attrs[used++ % 16];

	a[0] = (struct store_attr){fake_string("Input Dims"), STORE_ATTR_JSON, fake_string(dims)};
	a[1] = (struct store_attr){fake_string("Input type"), STORE_ATTR_JSON, fake_string(types)};
	a[2] = (struct store_attr){fake_string("Input Strides"), STORE_ATTR_JSON,
				   fake_string("[[100, 1], [10, 1]]")};
	a[3] = (struct store_attr){fake_string("Concrete Inputs"), STORE_ATTR_JSON,
				   fake_string("[\"\", \"\"]")};
	fake_args(span, a, 4);
}

/* A product of two matrices in `linear`, with a kernel. Returns the id of the last span. */
static uint64_t product(uint64_t at_ns, uint64_t before, const char *type, uint64_t kernel_ns)
{
	uint64_t correlation = at_ns;

	fake_begin(at_ns, 0, LINEAR);
	fake_begin(at_ns + 10, 0, MM);
	inputs(before + 2, "[[1000, 100], [100, 10]]", type);
	if (kernel_ns) {
		fake_begin(at_ns + 20, 0, LAUNCH);
		fake_api(0, "cudaLaunchKernel", at_ns + 21, at_ns + 29, correlation);
		fake_end(at_ns + 30, 0);
		fake_activity(PID, KPROF_ACTIVITY_KERNEL, "gemm", 7, at_ns + 40,
			      at_ns + 40 + kernel_ns, correlation);
	}
	fake_end(at_ns + 110, 0);
	fake_end(at_ns + 120, 0);
	return before + (kernel_ns ? 3 : 2);
}

static void table(void)
{
	fake_finish(100000);
	CHECK_EQ(kprof_capture_open("fake", &c), 0);
	CHECK_EQ(kprof_result_new(c, KPROF_BY_FLOPS, KPROF_SORT_NAME, &r), 0);
	if (!r)
		abort();
}

static void done(void)
{
	kprof_result_free(r);
	kprof_capture_close(c);
}

#define BF16 "[\"c10::BFloat16\", \"c10::BFloat16\"]"
#define FLOAT "[\"float\", \"float\"]"
#define FLOPS (2ull * 1000 * 100 * 10)
#define ELEMENTS (1000ull * 100 + 100 * 10 + 1000 * 10)

static void on_a_device(void)
{
	const struct kprof_row *row;
	uint64_t last;

	start();
	last = product(2000, 0, BF16, 500);
	product(4000, last, BF16, 700);
	table();
	CHECK_EQ(kprof_result_nr_rows(r), 1);
	row = kprof_result_row(r, 0);
	CHECK_STR(row->name, "aten::mm");
	CHECK_STR(row->category, "c10::BFloat16");
	CHECK_STR(row->where, "device");
	CHECK_EQ(row->calls, 2);
	CHECK_EQ(row->flops, 2 * FLOPS);
	CHECK_EQ(row->bytes, 2 * 2 * ELEMENTS);
	CHECK_EQ(row->total_ns, 1200);
	CHECK_EQ(row->device_ns, 1200);
	CHECK(row->flops_peak == 4096.0 * 100 * 1e9);
	CHECK(row->bytes_peak == 1e12);
	CHECK(row->tf32_peak == 0);
	done();
}

/* 2 million operations in 500 ns are 4 TFLOP/s; in 50 ns more than floats can be, but not TF32. */
static void floats(void)
{
	start();
	product(2000, 0, FLOAT, 500);
	table();
	CHECK(kprof_result_row(r, 0)->flops_peak == 256.0 * 100 * 1e9);
	CHECK(kprof_result_row(r, 0)->tf32_peak == 0);
	done();
	start();
	product(2000, 0, FLOAT, 50);
	table();
	CHECK(kprof_result_row(r, 0)->flops_peak == 2048.0 * 100 * 1e9);
	CHECK(kprof_result_row(r, 0)->tf32_peak == 2048.0 * 100 * 1e9);
	done();
}

/* Without work of a device, the call's own time; what was not seen to end has none. */
static void on_the_cpu(void)
{
	const struct kprof_row *row;
	uint64_t last;

	start();
	last = product(2000, 0, FLOAT, 0);
	last = product(3000, last, FLOAT, 500);
	fake_begin(9000, 0, MM);
	inputs(last + 1, "[[1000, 100], [100, 10]]", FLOAT);
	fake_end_flags(9500, 0, KPROF_EVENT_CLOSED);
	table();
	CHECK_EQ(kprof_result_nr_rows(r), 2);
	for (size_t i = 0; i < 2; i++) {
		row = kprof_result_row(r, i);
		CHECK_EQ(row->calls, 1);
		CHECK_EQ(row->flops, FLOPS);
		CHECK_EQ(row->total_ns, strcmp(row->where, "cpu") ? 500 : 100);
		CHECK_EQ(row->inexact, strcmp(row->where, "cpu") ? 0 : 1);
		CHECK(strcmp(row->where, "cpu") || !row->flops_peak);
	}
	done();
}

static uint64_t bytes(const char *name, const char *dims, const char *types, const char *strides,
		      const char *values)
{
	const struct flops_inputs in = {dims, types, strides, values};

	return flops_work_of(name, &in).bytes;
}

static void bytes_of_operators(void)
{
	CHECK_EQ(bytes("aten::mm", "[[3, 4], [4, 5]]", FLOAT, "[[4, 1], [5, 1]]", "[]"),
		 4 * (12 + 20 + 15));
	/* One operand is stretched to the other's size, by sizes or by a stride of 0. */
	CHECK_EQ(bytes("aten::add", "[[3, 4], [1, 4], []]", "[\"float\", \"float\", \"Scalar\"]",
		       "[[4, 1], [4, 1], []]", "[]"),
		 4 * (12 + 4 + 12));
	CHECK_EQ(bytes("aten::add", "[[3, 4], [3, 4], []]", "[\"float\", \"float\", \"Scalar\"]",
		       "[[4, 1], [0, 1], []]", "[]"),
		 4 * (12 + 4 + 12));
	CHECK_EQ(bytes("aten::mul", "[[3, 4], []]", "[\"c10::Half\", \"Scalar\"]", "[[4, 1], []]",
		       "[]"),
		 2 * 24);
	CHECK_EQ(
		bytes("aten::conv2d", "[[2, 3, 8, 8], [4, 3, 3, 3], [4], [], [], [], []]",
		      "[\"float\", \"float\", \"float\", \"ScalarList\", \"ScalarList\", \"ScalarList\", \"Scalar\"]",
		      "[[192, 64, 8, 1], [27, 9, 3, 1], [1], [], [], [], []]",
		      "[\"\", \"\", \"\", \"[1, 1]\", \"[0, 0]\", \"[1, 1]\", \"1\"]"),
		4 * (384 + 108 + 4 + 2 * 4 * 36));
	/* The type is that of a tensor with dimensions; of sparse ones nothing is known. */
	CHECK_EQ(
		bytes("aten::mul", "[[], [3, 4]]", "[\"double\", \"float\"]", "[[], [4, 1]]", "[]"),
		8 + 4 * 24);
	CHECK_EQ(bytes("aten::mm", "[[3, 4], [4, 5]]", FLOAT, "[[], [5, 1]]", "[]"), 0);
	CHECK_EQ(bytes("aten::mm", "nonsense", "", "", ""), 0);
}

/* One formula inside of another is that one's work; what launched and has no record, no time. */
static void nested_and_lost(void)
{
	uint64_t last;

	start();
	fake_begin(2000, 0, ADDMM);
	inputs(1, "[[10], [1000, 100], [100, 10]]", "[\"float\", \"float\", \"float\"]");
	last = product(2010, 1, FLOAT, 500);
	fake_end(2300, 0);
	fake_begin(4000, 0, MM);
	inputs(last + 1, "[[1000, 100], [100, 10]]", FLOAT);
	fake_begin(4010, 0, LAUNCH);
	fake_end(4020, 0);
	fake_end(4100, 0);
	table();
	CHECK_EQ(kprof_result_nr_rows(r), 1);
	CHECK_STR(kprof_result_row(r, 0)->name, "aten::addmm");
	CHECK_EQ(kprof_result_row(r, 0)->calls, 1);
	CHECK_EQ(kprof_result_row(r, 0)->flops, FLOPS);
	CHECK_EQ(kprof_result_row(r, 0)->device_ns, 500);
	done();
}

static void launch(uint64_t at_ns, const char *kernel, uint64_t kernel_ns)
{
	fake_begin(at_ns, 0, LAUNCH);
	fake_api(0, "cudaLaunchKernel", at_ns + 1, at_ns + 9, at_ns);
	fake_end(at_ns + 10, 0);
	fake_activity(PID, KPROF_ACTIVITY_KERNEL, kernel, 7, at_ns + 20, at_ns + 20 + kernel_ns,
		      at_ns);
}

static void is_unknown(uint32_t i, const char *name, uint64_t calls, uint64_t device_ns)
{
	const struct kprof_row *row = kprof_result_row(r, i);

	CHECK_STR(row->name, name);
	CHECK_STR(row->category, "");
	CHECK_STR(row->where, "device");
	CHECK_EQ(row->calls, calls);
	CHECK_EQ(row->total_ns, device_ns);
	CHECK_EQ(row->device_ns, device_ns);
	CHECK_EQ(row->flops, 0);
}

/*
 * What devices worked for without a formula: by operator, also where inputs were not recorded; by
 * kernel where an annotation, or nobody, launched it. Each work is in one row.
 */
static void without_formulas(void)
{
	uint64_t last;

	start();
	last = product(2000, 0, FLOAT, 500);
	fake_begin(4000, 0, LINEAR);
	launch(4010, "bias", 30);
	fake_end(4100, 0);
	fake_begin(5000, 0, COMPILED);
	launch(5010, "triton_poi_fused_relu_0", 40);
	launch(5040, "triton_poi_fused_relu_0", 50);
	product(5100, last + 5, FLOAT, 600);
	fake_end(5300, 0);
	launch(6000, "triton_poi_fused_relu_0", 60);
	fake_begin(7000, 0, ADDMM);
	launch(7010, "gemm", 70);
	fake_end(7100, 0);
	table();
	CHECK_EQ(kprof_result_nr_rows(r), 4);
	is_unknown(0, "aten::addmm", 1, 70);
	is_unknown(1, "aten::linear", 1, 30);
	CHECK_STR(kprof_result_row(r, 2)->name, "aten::mm");
	CHECK_EQ(kprof_result_row(r, 2)->device_ns, 1100);
	is_unknown(3, "triton_poi_fused_relu_0", 3, 150);
	done();
}

static void peaks(void)
{
	struct peak p = {.major = 8, .clocks_per_s = 108 * 1.41e9};

	/* A100: 312 and 156 TFLOP/s with tensor cores, 19.5 without, by its data sheet */
	CHECK((int)(peak_flops_per_s(&p, "c10::Half", false) / 1e12) == 311);
	CHECK((int)(peak_flops_per_s(&p, "float", true) / 1e12) == 155);
	CHECK((int)(peak_flops_per_s(&p, "float", false) / 1e11) == 194);
	CHECK(peak_flops_per_s(&p, "long int", false) == 0);
	CHECK(peak_flops_per_s(&p, "c10::Float8_e4m3fn", false) == 0);
	p.minor = 7;
	CHECK(peak_flops_per_s(&p, "float", false) == 0);
}

UNIT_MAIN(TEST(on_a_device), TEST(floats), TEST(on_the_cpu), TEST(nested_and_lost),
	  TEST(without_formulas), TEST(bytes_of_operators), TEST(peaks))
