// SPDX-License-Identifier: BSD-2-Clause
/*
 * All processes, from /proc. Two small files are read of each at each look, and its libraries only
 * once, so that the look costs some 20 µs for each process.
 */
#include "capture/live/impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "util/error.h"
#include "util/util.h"

/* ---- numbers ---- */

static uint64_t ns_of_ticks(uint64_t ticks)
{
	static uint64_t each;

	if (!each)
		each = NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);
	return ticks * each;
}

/* ---- one process ---- */

static void top_process__free(struct top_process *p)
{
	if (!p)
		return;
	free(p->cmdline);
	free(p);
}

/* Its numbers since it was read last, or since its start. */
static void take_numbers(struct kprof_top *t, struct top_process *p, const struct proc_info *info,
			 uint64_t now_ns)
{
	struct sched_times sched = top_sched(info->pid, 0);
	struct kprof_top_process *shown = &p->shown;
	uint64_t start_ns = ns_of_ticks(info->start_ticks), elapsed_ns;
	bool is_new = !p->read_ns;

	if (is_new) {
		elapsed_ns = t->boot_ns > start_ns ? t->boot_ns - start_ns : 0;
		p->sched.known = true; /* all zero, at its start */
	} else {
		elapsed_ns = now_ns - p->read_ns;
	}
	shown->cpu =
		elapsed_ns && info->cpu_ticks > p->cpu_ticks
			? (double)ns_of_ticks(info->cpu_ticks - p->cpu_ticks) / (double)elapsed_ns
			: 0;
	if (shown->cpu > t->info.nr_cpus) /* a new process, whose start is known to 10 ms only */
		shown->cpu = t->info.nr_cpus;
	top_shares(&p->sched, &sched, elapsed_ns, &shown->runnable, &shown->blocked);
	shown->state = info->state;
	shown->nr_threads = info->nr_threads;
	shown->rss_bytes = info->rss_pages * (uint64_t)sysconf(_SC_PAGESIZE);
	shown->cpu_ns = ns_of_ticks(info->cpu_ticks);
	shown->gpu = t->gpu ? top_gpu__share(t->gpu, info->pid) : -1;
	if (strcmp(p->comm, info->comm) != 0) { /* it may run another program */
		snprintf(p->comm, sizeof(p->comm), "%s", info->comm);
		p->due_ns = p->wait_ns = 0;
	}
	p->cpu_ticks = info->cpu_ticks;
	p->read_ns = now_ns;
	p->sched = sched;
}

static struct top_process *new_process(const struct proc_info *info)
{
	struct top_process *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->shown = (struct kprof_top_process){
		.pid = info->pid,
		.start_ticks = info->start_ticks,
		.uid = (uid_t)-1,
		.cmdline = p->comm,
		.comm = p->comm,
		.frameworks = p->frameworks,
		.runtimes = p->runtimes,
		.python = p->python,
	};
	return p;
}

/* ---- all ---- */

/*
 * The process as it was known, which leaves the old list; or a new one. NULL: it has ended, is the
 * kernel's, or there is no memory.
 */
static struct top_process *take(struct kprof_top *t, size_t *old, pid_t pid)
{
	struct top_process *p = NULL;
	struct proc_info info;

	while (*old < t->nr && t->processes[*old]->shown.pid < pid)
		++*old;
	if (proc_stat_read(pid, &info) || info.kernel_thread || info.zombie)
		return NULL;
	if (*old < t->nr && t->processes[*old]->shown.pid == pid &&
	    t->processes[*old]->shown.start_ticks == info.start_ticks) {
		p = t->processes[*old];
		t->processes[*old] = NULL;
		++*old;
	}
	if (!p)
		p = new_process(&info);
	if (p)
		take_numbers(t, p, &info, clock_mono_ns());
	return p;
}

static int read_all(struct kprof_top *t)
{
	struct top_process **now;
	size_t nr_pids, nr = 0, old = 0;
	pid_t *pids;
	int err = proc_pids(&pids, &nr_pids);

	if (err)
		return err;
	now = calloc(nr_pids + 1, sizeof(*now));
	if (!now) {
		free(pids);
		return error_set(-ENOMEM, NULL, "no memory for the processes");
	}
	for (size_t i = 0; i < nr_pids; i++) {
		now[nr] = take(t, &old, pids[i]);
		nr += now[nr] != NULL;
	}
	free(pids);
	for (size_t i = 0; i < t->nr; i++)
		top_process__free(t->processes[i]);
	free(t->processes);
	t->processes = now;
	t->nr = nr;
	return 0;
}

/* Those that use a CPU come first: they are what is looked for. */
static void look_closely(struct kprof_top *t)
{
	uint64_t begin_ns = clock_mono_ns(), now_ns = begin_ns;

	for (int busy = 1; busy >= 0; busy--) {
		for (size_t i = 0; i < t->nr; i++) {
			struct top_process *p = t->processes[i];

			if ((p->shown.cpu > 0) != busy || now_ns < p->due_ns ||
			    (p->wait_ns && !busy))
				continue;
			if (t->opts.closely_ns && now_ns - begin_ns >= t->opts.closely_ns)
				return;
			top_look_closely(p, now_ns);
			now_ns = clock_mono_ns();
		}
	}
}

static uint64_t own_cpu_ns(void)
{
	struct timespec now;

	return clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now)
		       ? 0
		       : (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

static void sum_up(struct kprof_top *t, uint64_t now_ns)
{
	uint64_t own_ns = own_cpu_ns();
	struct kprof_top_info *info = &t->info;

	info->interval_ns = t->looked_ns ? now_ns - t->looked_ns : 0;
	info->own_cpu =
		info->interval_ns ? (double)(own_ns - t->own_ns) / (double)info->interval_ns : 0;
	info->time_real_ns = clock_real_ns();
	info->cpu = 0;
	info->nr_unreadable = 0;
	for (size_t i = 0; i < t->nr; i++) {
		info->cpu += t->processes[i]->shown.cpu;
		info->nr_unreadable += t->processes[i]->unreadable;
	}
	t->looked_ns = now_ns;
	t->own_ns = own_ns;
}

/* ---- the interface ---- */

int kprof_top_new(const struct kprof_top_opts *opts, struct kprof_top **out)
{
	struct kprof_top *t;

	error_clear();
	if (opts->sz != sizeof(*opts))
		return error_set_usage(-EINVAL, "set .sz", "the options are not filled in");
	t = calloc(1, sizeof(*t));
	if (!t)
		return error_set(-ENOMEM, NULL, "no memory for the processes");
	t->opts = *opts;
	t->info.nr_cpus = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
	t->gpu = top_gpu__new();
	t->info.has_gpu = t->gpu;
	*out = t;
	return 0;
}

int kprof_top_look(struct kprof_top *t)
{
	uint64_t begin_ns = clock_mono_ns();
	struct timespec boot;
	int err;

	error_clear();
	clock_gettime(CLOCK_BOOTTIME, &boot);
	t->boot_ns = (uint64_t)boot.tv_sec * NSEC_PER_SEC + (uint64_t)boot.tv_nsec;
	if (t->gpu)
		top_gpu__look(t->gpu);
	err = read_all(t);
	if (err)
		return err;
	look_closely(t);
	error_clear(); /* those of processes that have ended */
	sum_up(t, begin_ns);
	t->info.look_ns = clock_mono_ns() - begin_ns;
	return 0;
}

const struct kprof_top_info *kprof_top_info(const struct kprof_top *t)
{
	return &t->info;
}

size_t kprof_top_nr(const struct kprof_top *t)
{
	return t->nr;
}

const struct kprof_top_process *kprof_top_process(const struct kprof_top *t, size_t i)
{
	return i < t->nr ? &t->processes[i]->shown : NULL;
}

const struct kprof_top_process *kprof_top_closely(struct kprof_top *t, pid_t pid,
						  uint64_t start_ticks)
{
	for (size_t i = 0; i < t->nr; i++) {
		struct top_process *p = t->processes[i];

		if (p->shown.pid != pid || p->shown.start_ticks != start_ticks)
			continue;
		p->wait_ns = 0;
		top_look_closely(p, clock_mono_ns());
		error_clear();
		return &p->shown;
	}
	return NULL;
}

bool kprof_top_alive(pid_t pid, uint64_t start_ticks)
{
	return proc_alive(pid, start_ticks);
}

void kprof_top_free(struct kprof_top *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->nr; i++)
		top_process__free(t->processes[i]);
	free(t->processes);
	top_threads__free(t->threads);
	top_gpu__free(t->gpu);
	free(t);
}
