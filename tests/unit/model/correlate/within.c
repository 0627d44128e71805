// SPDX-License-Identifier: BSD-2-Clause
/* Recordings within annotations: work that was launched elsewhere is no part of them. */
#include "device_fixture.h"

#include "model/correlate/correlate.h"
#include "unit.h"

#define OTHER (PID + 10)

/* Each process launches one kernel in an operator, and one outside, whose call was not recorded. */
static uint64_t shown(const char *within, uint64_t *of_other)
{
	static const struct description descriptions[] = {
		{"aten::add", "cpu_op"}, {"cudaLaunchKernel", "cuda_runtime"}, {0}};
	struct kprof_capture *t;
	struct correlate *c;
	uint64_t nr;

	start_with("backward", descriptions);
	if (within)
		fake_meta("within", within);
	fake_thread(2, OTHER, OTHER, "other");
	for (uint32_t thread = 0; thread < 4; thread += 2) {
		uint32_t pid = thread ? OTHER : PID;

		fake_begin(2100, thread, 1);
		fake_begin(2200, thread, 2);
		fake_end(2300, thread);
		fake_end(2400, thread);
		fake_api(thread, "cudaLaunchKernel", 2210, 2290, 1);
		fake_api(thread, "cudaLaunchKernel", 3210, 3290, 2);
		fake_activity(pid, KPROF_ACTIVITY_KERNEL, "k", 7, 5000, 6000, 1);
		fake_activity(pid, KPROF_ACTIVITY_KERNEL, "k", 7, 6000, 7000, 2);
	}
	fake_finish(100000);
	CHECK_EQ(kprof_capture_open("fake", &t), 0);
	CHECK_EQ(correlate__new(t, OTHER, &c), 0);
	*of_other = correlate__counts(c)->activities;
	correlate__free(c);
	CHECK_EQ(correlate__new(t, 0, &c), 0);
	nr = correlate__counts(c)->activities;
	correlate__free(c);
	kprof_capture_close(t);
	return nr;
}

static void whose(void)
{
	static const struct {
		const char *within;
		uint64_t all, other;
	} cases[] = {
		{NULL, 4, 2},
		{"\"decode\"", 2, 1},
		/* merged: one, the other, both, none */
		{"[{\"name\":\"decode\",\"pids\":[42]}]", 3, 2},
		{"[{\"name\":\"decode\",\"pids\":[41,52]}]", 3, 1},
		{"[{\"name\":\"a\",\"pids\":[42]},{\"name\":\"b\",\"pids\":[52]}]", 2, 1},
		{"[{\"name\":\"a\",\"pids\":[]}]", 4, 2},
		/* no number of a process */
		{"[{\"pids\":[-42,1e300,\"42\",null,0,{}]},7,[42],{\"pids\":42}]", 4, 2},
		{"\"\"", 4, 2},
		{"{", 4, 2},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t other;

		CHECK_EQ(shown(cases[i].within, &other), cases[i].all);
		CHECK_EQ(other, cases[i].other);
	}
}

UNIT_MAIN(TEST(whose))
