// SPDX-License-Identifier: BSD-2-Clause
#include "capture/counter/table.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "kprof/counters.h"
#include "kprof/wire.h"
#include "util/error.h"
#include "util/util.h"

struct row {
	const char *name;
	const char *others; /* other names of perf's or torch.profiler's, with commas; NULL: none */
	const char *what;
	uint8_t source; /* enum kprof_wire_counter */
	uint32_t type;
	uint64_t config;
	bool by_mode; /* it is counted apart in user space and in the kernel, by an event */
};

#define SW(config) PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##config
#define HW(config) KPROF_COUNTER_EVENT, PERF_TYPE_HARDWARE, PERF_COUNT_HW_##config, true
#define CACHE(id, op, result)                                                 \
	KPROF_COUNTER_EVENT, PERF_TYPE_HW_CACHE,                              \
		PERF_COUNT_HW_CACHE_##id | PERF_COUNT_HW_CACHE_OP_##op << 8 | \
			PERF_COUNT_HW_CACHE_RESULT_##result << 16,            \
		true

/* clang-format off */
static const struct row rows[] = {
	{"task-clock", NULL, "ns in which the thread had a CPU", KPROF_COUNTER_CLOCK, SW(TASK_CLOCK), false},
	{"cpu-clock", NULL, "the same, by perf's clock of each CPU", KPROF_COUNTER_EVENT, SW(CPU_CLOCK), false},
	{"page-faults", "faults,pagefaults", "page faults", KPROF_COUNTER_FAULTS, SW(PAGE_FAULTS), true},
	{"minor-faults", NULL, "page faults that needed no disk", KPROF_COUNTER_MINOR_FAULTS,
	 SW(PAGE_FAULTS_MIN), true},
	{"major-faults", NULL, "page faults that needed a disk", KPROF_COUNTER_MAJOR_FAULTS,
	 SW(PAGE_FAULTS_MAJ), true},
	{"context-switches", "cs", "times that the thread left a CPU", KPROF_COUNTER_SWITCHES,
	 SW(CONTEXT_SWITCHES), false},
	{"cpu-migrations", "migrations", "times that the thread got another CPU",
	 KPROF_COUNTER_MIGRATIONS, SW(CPU_MIGRATIONS), false},
	{"cycles", "cpu-cycles", "cycles of the processor", HW(CPU_CYCLES)},
	{"instructions", NULL, "instructions that were completed", HW(INSTRUCTIONS)},
	{"cache-references", NULL, "accesses to the last level of cache", HW(CACHE_REFERENCES)},
	{"cache-misses", NULL, "those that missed it", HW(CACHE_MISSES)},
	{"branches", "branch-instructions", "branches", HW(BRANCH_INSTRUCTIONS)},
	{"branch-misses", NULL, "branches that were foreseen wrongly", HW(BRANCH_MISSES)},
	{"bus-cycles", NULL, "cycles of the bus", HW(BUS_CYCLES)},
	{"ref-cycles", NULL, "cycles at the nominal frequency", HW(REF_CPU_CYCLES)},
	{"stalled-cycles-frontend", "idle-cycles-frontend,frontend-stall-cycles", "cycles that waited for instructions",
	 HW(STALLED_CYCLES_FRONTEND)},
	{"stalled-cycles-backend", "idle-cycles-backend,backend-stall-cycles", "cycles that waited for data or units",
	 HW(STALLED_CYCLES_BACKEND)},
	{"L1-dcache-loads", NULL, "loads", CACHE(L1D, READ, ACCESS)},
	{"L1-dcache-load-misses", NULL, "loads that missed the first level", CACHE(L1D, READ, MISS)},
	{"LLC-loads", NULL, "loads that got to the last level", CACHE(LL, READ, ACCESS)},
	{"LLC-load-misses", NULL, "loads that missed the last level", CACHE(LL, READ, MISS)},
	{"dTLB-loads", NULL, "look-ups of addresses of data", CACHE(DTLB, READ, ACCESS)},
	{"dTLB-load-misses", NULL, "those that walked the page tables", CACHE(DTLB, READ, MISS)},
};
/* clang-format on */

static void of_row(const struct row *r, struct counter *out)
{
	out->source = r->source;
	out->type = r->type;
	out->config = r->config;
}

bool counter_at(size_t i, struct counter *out, const char **what)
{
	if (i >= ARRAY_SIZE(rows))
		return false;
	*out = (struct counter){0};
	strcpy(out->name, rows[i].name);
	of_row(&rows[i], out);
	*what = rows[i].what;
	return true;
}

/* Is the text one of these names? */
static bool is_called(const char *names, const char *text, size_t len)
{
	while (names && *names) {
		size_t own = strcspn(names, ",");

		if (own == len && !strncmp(names, text, len))
			return true;
		names += own + (names[own] == ',');
	}
	return false;
}

/* "r01c2": the processor's own number of an event, in hexadecimal. */
static bool is_raw(const char *text, size_t len, uint64_t *config)
{
	if (len < 2 || len > 17 || text[0] != 'r' ||
	    strspn(text + 1, "0123456789abcdefABCDEF") < len - 1)
		return false;
	*config = strtoull(text + 1, NULL, 16);
	return true;
}

static int wrong(const char *text, size_t len, const char *hint, const char *why)
{
	return error_set_usage(-EINVAL, hint, "'%.*s' %s", (int)(len < 100 ? len : 100), text, why);
}

/* What stands behind the name: ":u", ":k" or nothing. Such a counter is always one of perf's. */
static int take_modifiers(const char *text, size_t len, size_t name_len, bool by_mode,
			  struct counter *out)
{
	bool user = false, kernel = false;

	if (name_len == len)
		return 0;
	for (size_t i = name_len + 1; i < len; i++) {
		user |= text[i] == 'u';
		kernel |= text[i] == 'k';
		if (text[i] != 'u' && text[i] != 'k')
			return wrong(text, len, "u: in user space, k: in the kernel",
				     "has a modifier that is neither u nor k");
	}
	if (!user && !kernel)
		return wrong(text, len, "u: in user space, k: in the kernel",
			     "ends before its modifier");
	if (!by_mode)
		return wrong(text, len, "leave out what follows the colon",
			     "is not counted apart in user space and in the kernel");
	out->source = KPROF_COUNTER_EVENT;
	out->exclude_user = !user;
	out->exclude_kernel = !kernel;
	return 0;
}

static int take_one(const char *text, size_t len, struct counter *out)
{
	size_t name_len = 0;

	*out = (struct counter){0};
	while (name_len < len && text[name_len] != ':')
		name_len++;
	if (len < sizeof(out->name))
		memcpy(out->name, text, len);
	for (size_t i = 0; i < ARRAY_SIZE(rows) && len < sizeof(out->name); i++) {
		if (!is_called(rows[i].name, text, name_len) &&
		    !is_called(rows[i].others, text, name_len))
			continue;
		of_row(&rows[i], out);
		return take_modifiers(text, len, name_len, rows[i].by_mode, out);
	}
	if (!is_raw(text, name_len, &out->config))
		return wrong(text, len,
			     "--counters list prints their names; rNNN is an event of the "
			     "processor by its number",
			     "is no counter");
	out->source = KPROF_COUNTER_EVENT;
	out->type = PERF_TYPE_RAW;
	return take_modifiers(text, len, name_len, true, out);
}

int counters_parse(const char *names, struct counter *out)
{
	int nr = 0, err;

	for (const char *at = names;; at++) {
		size_t len = strcspn(at, ",");

		if (nr == KPROF_WIRE_MAX_COUNTERS)
			return error_set_usage(-EINVAL, "ask for fewer, or record twice",
					       "there can be %d counters at most",
					       KPROF_WIRE_MAX_COUNTERS);
		err = take_one(at, len, &out[nr]);
		if (err)
			return err;
		for (int i = 0; i < nr; i++)
			if (!strcmp(out[i].name, out[nr].name))
				return wrong(at, len, "once is enough", "is there twice");
		nr++;
		at += len;
		if (!*at)
			return nr;
	}
}

int kprof_counters_check(const char *names)
{
	struct counter counters[KPROF_WIRE_MAX_COUNTERS];
	int nr;

	error_clear();
	nr = counters_parse(names, counters);
	return nr < 0 ? nr : 0;
}

int kprof_counter_at(size_t i, struct kprof_counter *out)
{
	struct counter c;

	error_clear();
	if (!counter_at(i, &c, &out->what))
		return -ENOENT;
	out->name = rows[i].name;
	out->works = !counter_try(&c);
	return 0;
}
