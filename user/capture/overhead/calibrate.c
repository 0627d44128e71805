// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a trap and an interrupt cost on this machine: functions of kprof's own get probes whose
 * program does nothing, and are called some thousand times. In between, other code runs, as in a
 * program: in a loop of nothing but traps, all that the kernel needs would be in the nearest cache,
 * and nothing of the program's would be driven out of it, or of the branch predictors. The time
 * that counts is that of the thread, so that others on the CPU do not. What others do still makes
 * the CPU faster and slower, so functions with and without probes are called in turn: of several
 * rounds the median difference counts.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "capture/overhead/impl.h"
#include "capture/process/process.h"
#include "util/error.h"
#include "util/util.h"

#define ROUNDS 9
#define CALLS 192        /* of each in a round, about a quarter of a millisecond */
#define STEPPED_CALLS 48 /* the same, where the kernel single-steps */
#define SPIN_ROUNDS 5
#define SPIN 300000   /* turns of a loop: about a third of a millisecond */
#define TICK_NS 20000 /* period of the clock that interrupts it */
/* Read between two calls: as much as the nearest cache has, on many processors. */
#define WORK_BYTES (32 << 10)
#define LINE_BYTES 64
#define ASSUMED_TRAP_NS 1000
#define WORK_NUMBERS 12

/*
 * Functions of which the kernel emulates the first instruction, as many of the same kind that get
 * no probe, and one of which it single-steps the first instruction.
 */
#define NR_EMULATED 16
#define EMULATED_BYTES 64
extern char overhead_emulated[];
void overhead_stepped(void);
__asm__(".pushsection .text\n"
	".globl overhead_emulated, overhead_stepped\n"
	".hidden overhead_emulated, overhead_stepped\n"
	".type overhead_emulated, @function\n"
	".type overhead_stepped, @function\n"
	".balign 64\n"
	"overhead_emulated:\n"
	".rept 32\n"
	" nop\n ret\n .balign 64\n"
	".endr\n"
	".size overhead_emulated, . - overhead_emulated\n"
	"overhead_stepped: mov %rdi, %rax\n ret\n"
	".size overhead_stepped, . - overhead_stepped\n"
	".popsection\n");

static uintptr_t emulated(int i)
{
	return (uintptr_t)overhead_emulated + (uintptr_t)i * EMULATED_BYTES;
}

/* Single uprobes take long to remove: of each kind one has to do. */
static int nr_emulated(const struct overhead_opts *opts)
{
	return opts->single ? 1 : NR_EMULATED;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* What stands for a program: it reads memory, and runs through much code with many branches. */
static void work(const volatile char *memory)
{
	double numbers[WORK_NUMBERS];
	char text[128], *end;
	struct tm tm;
	time_t day;

	for (size_t i = 0; i < WORK_BYTES; i += LINE_BYTES)
		(void)memory[i];
	for (int i = 0; i < WORK_NUMBERS; i++)
		numbers[i] = i * 7 % WORK_NUMBERS;
	qsort(numbers, WORK_NUMBERS, sizeof(*numbers), by_size);
	snprintf(text, sizeof(text), "%5.2f %s %d %llx", numbers[3], "text", 12345, 0xabcdefull);
	day = (time_t)strtod(text, &end) + (strstr(text, "12345") ? strtoll("86400", NULL, 10) : 0);
	if (gmtime_r(&day, &tm))
		snprintf(text, sizeof(text), "%04d-%02d-%02d %02d:%02d:%02d", tm.tm_year, tm.tm_mon,
			 tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

/* A call, of the nr functions from this one on in turn, and the work around it. */
static double call_ns(const char *memory, uintptr_t first, int nr, int calls)
{
	uint64_t begin_ns = clock_thread_ns();

	for (int i = 0; i < calls; i++) {
		work(memory);
		((void (*)(void))(first + (uintptr_t)(i % nr) * EMULATED_BYTES))();
	}
	return (double)(clock_thread_ns() - begin_ns) / calls;
}

static void compare_calls(struct calibration *c, const char *memory, int nr)
{
	double trap_ns[ROUNDS], stepped_ns[ROUNDS];

	for (int round = -1; round < ROUNDS; round++) {
		int at = round < 0 ? 0 : round; /* the first one fills the caches */
		double bare_ns = call_ns(memory, emulated(NR_EMULATED), nr, CALLS);

		trap_ns[at] = call_ns(memory, emulated(0), nr, CALLS) - bare_ns;
		stepped_ns[at] =
			call_ns(memory, (uintptr_t)overhead_stepped, 1, STEPPED_CALLS) - bare_ns;
	}
	qsort(trap_ns, ROUNDS, sizeof(*trap_ns), by_size);
	qsort(stepped_ns, ROUNDS, sizeof(*stepped_ns), by_size);
	c->trap_ns = fmax(0, trap_ns[ROUNDS / 2]);
	c->stepped_ns = fmax(c->trap_ns, stepped_ns[ROUNDS / 2]);
}

static int place(const struct overhead_opts *opts, struct attach_links *links)
{
	struct attach_point points[NR_EMULATED + 1] = {0};
	const struct proc_map *map = NULL;
	int nr = nr_emulated(opts);
	struct proc_maps *maps;
	char path[512];
	int err = proc_maps__read(getpid(), &maps);

	if (err)
		return err;
	for (int i = 0; i <= nr; i++) {
		uintptr_t at = i < nr ? emulated(i) : (uintptr_t)overhead_stepped;

		map = proc_maps__find(maps, at);
		if (map)
			points[i].offset = at - map->start + map->offset;
	}
	err = map ? proc_map_open_path(getpid(), map, path, sizeof(path)) : -ENOENT;
	if (!err)
		err = attacher__attach(opts->attacher, ATTACH_NOTHING, getpid(), path, points,
				       (size_t)nr + 1, links);
	proc_maps__free(maps);
	return err;
}

/* What measuring adds to a run is what it shows of a program that does nothing. */
static double clock_ns(const struct overhead_opts *opts)
{
	struct kprof_wire_cost costs[KPROF_WIRE_NR_PROGRAMS];
	const struct kprof_wire_cost *c = &costs[KPROF_PROGRAM_NOTHING];

	return attacher__costs(opts->attacher, costs) || !c->measured
		       ? 0
		       : (double)c->measured_ns / (double)c->measured;
}

static void calibrate_traps(struct calibration *c, const struct overhead_opts *opts)
{
	char *memory = calloc(1, WORK_BYTES);
	struct attach_links links = {0};
	int nr = nr_emulated(opts);
	int err = memory ? place(opts, &links) : -ENOMEM;

	if (!err) {
		compare_calls(c, memory, nr);
		c->clock_ns = clock_ns(opts);
	} else {
		log_warn(NULL, "what a probe costs cannot be measured here: %d ns are assumed (%s)",
			 ASSUMED_TRAP_NS, attacher__why(err));
		c->trap_ns = c->stepped_ns = ASSUMED_TRAP_NS;
	}
	/* closing a link waits for the kernel: with all others, at the end */
	probe_set__keep_links(opts->probes, &links);
	free(memory);
}

static double spin_ns(void)
{
	uint64_t begin_ns = clock_thread_ns();

	for (volatile int i = 0; i < SPIN; i++)
		;
	return (double)(clock_thread_ns() - begin_ns);
}

/* A loop, with and without interrupts of the kind that take samples, in turn. */
static void calibrate_interrupts(struct calibration *c)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = TICK_NS,
		.disabled = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	double each[SPIN_ROUNDS];

	if (fd < 0)
		return;
	for (int round = 0; round < SPIN_ROUNDS; round++) {
		double plain_ns = spin_ns(), ticked_ns;

		ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
		ticked_ns = spin_ns();
		ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
		each[round] = (ticked_ns - plain_ns) / (ticked_ns / TICK_NS);
	}
	close(fd);
	qsort(each, SPIN_ROUNDS, sizeof(*each), by_size);
	c->interrupt_ns = each[SPIN_ROUNDS / 2] > 0 ? each[SPIN_ROUNDS / 2] : 0;
}

void calibrate(struct calibration *c, const struct overhead_opts *opts, bool traps, bool interrupts)
{
	if (traps)
		calibrate_traps(c, opts);
	if (interrupts)
		calibrate_interrupts(c);
}
