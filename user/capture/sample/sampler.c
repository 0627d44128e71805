// SPDX-License-Identifier: BSD-2-Clause
#include "capture/sample/sampler.h"

#include "capture/sample/sample.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/error.h"
#include "util/util.h"

#define LOOK_EVERY_NS NSEC_PER_SEC /* at the CPUs that are online */
/*
 * Changing a clock's period starts a new one, so each change loses half a period on average: not
 * too often, and a slow clock, which would never tick if each second began a new period, less so.
 */
#define VARY_EVERY_NS NSEC_PER_SEC
#define VARY_EVERY_PERIODS 8

struct sampler {
	int program_fd;
	uint64_t period_ns;
	uint64_t seed;
	uint64_t next_look_ns, next_vary_ns;
	bool running;
	int nr_cpus;
	struct clock {
		int fd;              /* -1: the CPU is offline */
		uint64_t enabled_ns; /* how long it was enabled in all, as last read */
	} clocks[];                  /* by CPU */
};

/* xorshift64*: random enough for a clock that must not be regular. */
static uint64_t next_random(struct sampler *s)
{
	s->seed ^= s->seed >> 12;
	s->seed ^= s->seed << 25;
	s->seed ^= s->seed >> 27;
	return s->seed * 0x2545f4914f6cdd1dull;
}

static uint64_t some_period(struct sampler *s)
{
	uint64_t width = s->period_ns / 10;

	return s->period_ns - width / 2 + (width ? next_random(s) % (width + 1) : 0);
}

/* Opens a clock of this CPU, not started yet. Returns its descriptor, or -errno. */
static int new_clock(int cpu, uint64_t period_ns)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period_ns,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED,
		.disabled = 1,
		.exclude_idle = 1, /* an idle CPU has no samples */
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int sampler_try(void)
{
	int cpu = sched_getcpu();
	int fd = new_clock(cpu < 0 ? 0 : cpu, NSEC_PER_SEC);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

static int open_clock(struct sampler *s, int cpu)
{
	/* the kernel reports this period with every sample, even after it is changed */
	int fd = new_clock(cpu, s->period_ns);
	int err;

	if (fd < 0)
		return fd;
	if (!ioctl(fd, PERF_EVENT_IOC_SET_BPF, s->program_fd))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

/* Opens clocks for CPUs that have none. Some fail: a CPU may be offline, or not ours to use. */
static int open_missing(struct sampler *s)
{
	int opened = 0, err = 0;

	for (int cpu = 0; cpu < s->nr_cpus; cpu++) {
		int fd = s->clocks[cpu].fd >= 0 ? s->clocks[cpu].fd : open_clock(s, cpu);

		if (fd < 0) {
			err = fd;
			continue;
		}
		if (s->clocks[cpu].fd < 0 && s->running)
			ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
		s->clocks[cpu].fd = fd;
		opened++;
	}
	return opened ? 0 : err ? err : -ENODEV;
}

/*
 * Closes clocks that have stopped. When a CPU goes offline, its clock stops for good: it does not
 * go on when the CPU is online again, which may be before this runs (a laptop that sleeps takes all
 * CPUs but one offline, and stops this process, too). The only sign is that the clock's enabled
 * time no longer grows.
 */
static void close_dead(struct sampler *s)
{
	for (int cpu = 0; cpu < s->nr_cpus; cpu++) {
		struct clock *c = &s->clocks[cpu];
		uint64_t now[2] = {0}; /* value of the clock; time enabled in ns */

		if (c->fd < 0)
			continue;
		if (read(c->fd, now, sizeof(now)) == sizeof(now) && now[1] != c->enabled_ns) {
			c->enabled_ns = now[1];
			continue;
		}
		close(c->fd);
		c->fd = -1;
		c->enabled_ns = 0;
	}
}

static int cannot(int err)
{
	if (err == -EACCES || err == -EPERM)
		return error_set_machine(
			err,
			"run it as root, or with CAP_PERFMON and CAP_BPF; in a container also lower "
			"kernel.perf_event_paranoid or allow perf_event_open in its seccomp profile",
			"the kernel does not allow sampling: perf_event_open: %s", strerror(-err));
	return error_set_machine(err, "`kprof check` says what this machine allows",
				 "cannot open a sampling clock: perf_event_open: %s",
				 strerror(-err));
}

int sampler__new(int program_fd, uint32_t hz, struct sampler **out)
{
	int nr_cpus = libbpf_num_possible_cpus(); /* the numbers of CPUs may have gaps */
	struct sampler *s;
	int err;

	s = calloc(1, sizeof(*s) + (size_t)(nr_cpus > 0 ? nr_cpus : 0) * sizeof(*s->clocks));
	if (!s)
		return error_set(-ENOMEM, NULL, "no memory for sampling");
	s->program_fd = program_fd;
	s->period_ns = NSEC_PER_SEC / hz;
	s->seed = clock_mono_ns() | 1;
	s->nr_cpus = nr_cpus;
	for (int cpu = 0; cpu < nr_cpus; cpu++)
		s->clocks[cpu].fd = -1;
	err = open_missing(s);
	if (err) {
		sampler__free(s);
		return cannot(err);
	}
	*out = s;
	return 0;
}

void sampler__free(struct sampler *s)
{
	if (!s)
		return;
	for (int cpu = 0; cpu < s->nr_cpus; cpu++)
		if (s->clocks[cpu].fd >= 0)
			close(s->clocks[cpu].fd);
	free(s);
}

int sampler__start(struct sampler *s)
{
	s->running = true;
	for (int cpu = 0; cpu < s->nr_cpus; cpu++)
		if (s->clocks[cpu].fd >= 0 && ioctl(s->clocks[cpu].fd, PERF_EVENT_IOC_ENABLE, 0))
			return cannot(-errno);
	return 0;
}

void sampler__stop(struct sampler *s)
{
	s->running = false;
	for (int cpu = 0; cpu < s->nr_cpus; cpu++)
		if (s->clocks[cpu].fd >= 0)
			ioctl(s->clocks[cpu].fd, PERF_EVENT_IOC_DISABLE, 0);
}

static void vary(struct sampler *s)
{
	for (int cpu = 0; cpu < s->nr_cpus; cpu++) {
		uint64_t period = some_period(s);

		if (s->clocks[cpu].fd >= 0)
			ioctl(s->clocks[cpu].fd, PERF_EVENT_IOC_PERIOD, &period);
	}
}

void sampler__vary(struct sampler *s, uint64_t now_ns)
{
	uint64_t every_ns = s->period_ns * VARY_EVERY_PERIODS;

	if (!s->running)
		return;
	if (now_ns >= s->next_look_ns) {
		s->next_look_ns = now_ns + LOOK_EVERY_NS;
		close_dead(s);
		open_missing(s);
	}
	if (now_ns >= s->next_vary_ns) {
		s->next_vary_ns = now_ns + (every_ns > VARY_EVERY_NS ? every_ns : VARY_EVERY_NS);
		vary(s);
	}
}

uint64_t sampler__period(const struct sampler *s)
{
	return s->period_ns;
}

void sampler__set_period(struct sampler *s, uint64_t period_ns)
{
	s->period_ns = period_ns;
	vary(s);
}
