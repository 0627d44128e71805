// SPDX-License-Identifier: BSD-2-Clause
/* What is read several times a second. Each reading continues sums that never fall. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/overhead/impl.h"
#include "util/foreign.h"
#include "util/util.h"

#define PROC_BYTES (1 << 20)

/* ---- CPU times ---- */

static uint64_t timeval_ns(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * NSEC_PER_SEC + (uint64_t)t->tv_usec * 1000;
}

/*
 * Of children that have ended. The program that kprof has started is one, once kprof has waited for
 * it: then the sum is left as it was.
 */
static uint64_t children_ns(struct measured *m)
{
	struct rusage r;

	if (getrusage(RUSAGE_CHILDREN, &r) || (m->spawned && !clock_process_ns(m->spawned)))
		return m->children_ns;
	m->children_ns = timeval_ns(&r.ru_utime) + timeval_ns(&r.ru_stime);
	return m->children_ns;
}

/* A sum that cannot fall, though what it is read from can: a child that ends counts elsewhere. */
static void raise_to(uint64_t *sum, uint64_t ns)
{
	if (ns > *sum)
		*sum = ns;
}

static void measure_own(struct measured *m, struct ledger_reading *out)
{
	uint64_t thread_ns = clock_thread_ns();
	uint64_t others_ns = clock_process_ns(getpid()) - thread_ns;

	raise_to(&out->part_ns[LEDGER_OWN], thread_ns);
	raise_to(&out->part_ns[LEDGER_HELPERS], others_ns + children_ns(m) + foreign_used_ns());
}

/*
 * Busy time of all CPUs. Time of guests is part of that of user processes already. *switches:
 * between threads, so far.
 */
static uint64_t machine_ns(struct measured *m, uint64_t *switches)
{
	static const char context[] = "\nctxt ";
	unsigned long long user, nice, system, idle, wait, irq, soft;
	uint64_t ticks = 0;
	char *text, *at;

	/* it stays open, since to open it takes longer than to read it */
	if (m->stat_fd < 0)
		m->stat_fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
	if (lseek(m->stat_fd, 0, SEEK_SET) || read_fd(m->stat_fd, PROC_BYTES, &text, NULL))
		return 0;
	at = strstr(text, context);
	raise_to(switches, at ? strtoull(at + strlen(context), NULL, 10) : 0);
	if (sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle,
		   &wait, &irq, &soft) == 7)
		ticks = user + nice + system + irq + soft;
	free(text);
	return ticks * (NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK));
}

/*
 * What the targets have used. Of one that ends, what it used since the reading before is missing:
 * the bound is a little tighter then.
 */
static void measure_used(struct measured *m, const struct overhead_opts *opts,
			 struct ledger_reading *out)
{
	uint64_t ns, recorded_ns = 0;
	struct target *t;

	if (opts->all_processes) {
		ns = machine_ns(m, &out->switches);
		if (ns > m->machine_ns && m->machine_ns)
			out->used_ns += ns - m->machine_ns;
		raise_to(&m->machine_ns, ns);
		if (!opts->with_probes)
			return;
	}
	for (t = targets__first(opts->targets); t; t = t->hh.next) {
		ns = clock_process_ns((pid_t)t->pid);
		/* a child that was forked meanwhile began with nothing used */
		if (ns > t->used_ns && (t->used_ns || (t->forked && out->time_ns)))
			recorded_ns += ns - t->used_ns;
		raise_to(&t->used_ns, ns);
	}
	out->recorded_ns += recorded_ns;
	if (!opts->all_processes)
		out->used_ns += recorded_ns;
}

/* ---- the kernel's programs ---- */

/* Fewer measured runs than these since the last reading do not tell what the others took. */
#define ENOUGH 8

/* What the runs since the last reading took. */
static double program_ns(const struct kprof_wire_cost *now, const struct kprof_wire_cost *before,
			 double clock_ns)
{
	uint64_t measured = now->measured - before->measured;
	uint64_t ns = now->measured_ns - before->measured_ns;
	double each_ns;

	if (measured < ENOUGH) {
		measured = now->measured;
		ns = now->measured_ns;
	}
	each_ns = measured ? (double)ns / (double)measured - clock_ns : 0;
	return each_ns > 0 ? each_ns * (double)(now->runs - before->runs) : 0;
}

/* What a run of the program costs beside its own time. */
static double entry_ns(int program, const struct calibration *c, const struct overhead_opts *opts)
{
	const struct probe_set_stats *sites = probe_set__stats(opts->probes);
	/* they are counted by return address, of which several may have one site */
	double stepped = sites->nr_sites
				 ? fmin(1, (double)sites->sites_stepped / (double)sites->nr_sites)
				 : 0;

	switch (program) {
	case KPROF_PROGRAM_SAMPLE:
		return c->interrupt_ns;
	case KPROF_PROGRAM_SITE:
	case KPROF_PROGRAM_SITE_RESULT:
		return c->trap_ns + stepped * (c->stepped_ns - c->trap_ns);
	case KPROF_PROGRAM_BEGIN:
	case KPROF_PROGRAM_BEGIN_TEXT:
	case KPROF_PROGRAM_BEGIN_ARGS:
	case KPROF_PROGRAM_BEGIN_INPUTS:
	case KPROF_PROGRAM_MAPS:
	case KPROF_PROGRAM_BATCH:
	case KPROF_PROGRAM_MARK:
		return c->trap_ns;
	default:
		return 0;
	}
}

static enum ledger_cause cause_of(int program)
{
	switch (program) {
	case KPROF_PROGRAM_SAMPLE:
		return LEDGER_FOR_SAMPLES;
	case KPROF_PROGRAM_ENTRY_STACK:
		return LEDGER_FOR_STACKS;
	case KPROF_PROGRAM_SWITCH:
	case KPROF_PROGRAM_WAKE:
		return LEDGER_FOR_WAITS;
	case KPROF_PROGRAM_TASK:
	case KPROF_PROGRAM_MAPS:
		return LEDGER_FOR_TASKS;
	default:
		return LEDGER_FOR_PROBES;
	}
}

static int measure_programs(struct measured *m, const struct calibration *c,
			    const struct overhead_opts *opts, struct ledger_reading *out)
{
	struct kprof_wire_cost now[KPROF_WIRE_NR_PROGRAMS];
	int err = attacher__costs(opts->attacher, now);

	for (int i = 0; i < KPROF_WIRE_NR_PROGRAMS && !err; i++) {
		double ns = program_ns(&now[i], &m->programs[i], c->clock_ns);
		double runs = (double)(now[i].runs - m->programs[i].runs), more_ns;

		if (i == KPROF_PROGRAM_NOTHING)
			continue;
		m->program_ns[i] += ns;
		more_ns = runs * entry_ns(i, c, opts);
		out->part_ns[i == KPROF_PROGRAM_SAMPLE ? LEDGER_SAMPLES : LEDGER_TRAPS] +=
			(uint64_t)more_ns;
		out->part_ns[i == KPROF_PROGRAM_SAMPLE ? LEDGER_SAMPLES : LEDGER_BPF] +=
			(uint64_t)ns;
		out->cause_ns[cause_of(i)] += (uint64_t)(ns + more_ns);
		if (cause_of(i) == LEDGER_FOR_PROBES)
			out->probe_runs += (uint64_t)runs;
	}
	if (!err)
		memcpy(m->programs, now, sizeof(now));
	return err;
}

double measure_ahead(const struct measured *m, const struct calibration *c,
		     const struct overhead_opts *opts)
{
	struct ledger_reading sums = {0};
	struct measured copy = *m;

	return measure_programs(&copy, c, opts, &sums) ? 0 : (double)ledger_cost(&sums);
}

int measure(struct measured *m, const struct calibration *c, const struct overhead_opts *opts,
	    struct ledger_reading *out)
{
	int err;

	measure_own(m, out);
	raise_to(&out->paced_ns, stacks__paced_ns(opts->stacks));
	raise_to(&out->part_ns[LEDGER_AGENTS], opts->agents_ns(opts->ctx));
	measure_used(m, opts, out);
	err = measure_programs(m, c, opts, out);
	out->time_ns = clock_mono_ns();
	return err;
}

/* ---- memory ---- */

uint64_t measure_resident_bytes(void)
{
	unsigned long long pages = 0;
	char *text;

	if (read_file("/proc/self/statm", PROC_BYTES, &text, NULL))
		return 0;
	if (sscanf(text, "%*u %llu", &pages) != 1)
		pages = 0;
	free(text);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t measure_most_resident_bytes(void)
{
	struct rusage r;

	return getrusage(RUSAGE_SELF, &r) ? 0 : (uint64_t)r.ru_maxrss * 1024;
}
