// SPDX-License-Identifier: BSD-2-Clause
#include "capture/probe/attach_impl.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/features/features.h"
#include "capture/probe/attach_helper.h"
#include "capture/probe/attach_waits.h"
#include "capture/unwind/unwind.h"
#include "kprof/wait.h"
#include "util/error.h"
#include "util/foreign.h"
#include "util/util.h"

/* Leaves out programs and maps that are not used, to save time and memory. */
static int leave_out(struct attacher *a, const struct attacher_opts *opts)
{
	struct bpf_map *maps[] = {a->skel->maps.unwind_rules,    a->skel->maps.unwind_pages,
				  a->skel->maps.unwind_shards,   a->skel->maps.unwind_spaces,
				  a->skel->maps.stack_processes, a->skel->maps.sample_scratch,
				  a->skel->maps.stack_pythons,   a->skel->maps.stack_tstates};
	struct bpf_map *probe_maps[] = {a->skel->maps.probes, a->skel->maps.follow,
					a->skel->maps.placed_files};
	struct bpf_map *flow_maps[] = {a->skel->maps.sequences, a->skel->maps.sequence_threads};
	struct bpf_map *entry_maps[] = {a->skel->maps.entry_scratch, a->skel->maps.entry_rates};
	struct bpf_map *inputs_maps[] = {a->skel->maps.inputs_plans,
					 a->skel->maps.inputs_scratches};
	struct bpf_map *modules_maps[] = {a->skel->maps.modules_processes,
					  a->skel->maps.modules_threads,
					  a->skel->maps.modules_scratches};
	bool plans = opts->inputs || opts->flow, of_all = opts->all_processes || opts->joins;
	int err = bpf_program__set_autoload(a->skel->progs.kprof_sample, opts->stacks);

	if (!err)
		err = bpf_program__set_autoload(a->skel->progs.kprof_signal, opts->asked_by != 0);
	if (!err)
		err = bpf_program__set_autoload(a->skel->progs.kprof_process_exit,
						opts->all_processes);
	if (!err)
		err = bpf_program__set_autoload(a->skel->progs.kprof_process_free,
						opts->all_processes);
	if (!err)
		err = bpf_map__set_autocreate(a->skel->maps.ended_processes, opts->all_processes);
	if (!err)
		err = bpf_program__set_autoload(a->skel->progs.kprof_rename, of_all);
	if (!err)
		err = bpf_map__set_autocreate(a->skel->maps.renamed, of_all);
	if (!err)
		err = bpf_program__set_autoload(a->skel->progs.kprof_exec_stacks, opts->stacks);
	if (!err)
		err = bpf_program__set_autoload(a->skel->progs.kprof_entry_stack,
						opts->entry_stacks);
	if (!err)
		err = bpf_program__set_autoload(a->skel->progs.kprof_begin_inputs, opts->inputs);
	if (!err)
		err = bpf_program__set_autoload(a->skel->progs.kprof_begin_boxed, plans);
	for (int i = 0; i < ATTACH_NR && !err && opts->no_probes; i++)
		err = bpf_program__set_autoload(a->programs[i], false);
	for (size_t i = 0; i < ARRAY_SIZE(maps) && !err; i++)
		err = bpf_map__set_autocreate(maps[i], opts->stacks);
	for (size_t i = 0; i < ARRAY_SIZE(probe_maps) && !err; i++)
		err = bpf_map__set_autocreate(probe_maps[i], !opts->no_probes);
	for (size_t i = 0; i < ARRAY_SIZE(entry_maps) && !err; i++)
		err = bpf_map__set_autocreate(entry_maps[i], opts->entry_stacks);
	for (size_t i = 0; i < ARRAY_SIZE(flow_maps) && !err; i++)
		err = bpf_map__set_autocreate(flow_maps[i], opts->flow);
	for (size_t i = 0; i < ARRAY_SIZE(inputs_maps) && !err; i++)
		err = bpf_map__set_autocreate(inputs_maps[i], plans);
	for (size_t i = 0; i < ARRAY_SIZE(modules_maps) && !err; i++)
		err = bpf_map__set_autocreate(modules_maps[i], opts->modules);
	return err;
}

static int set_sizes(struct attacher *a, const struct attacher_opts *opts)
{
	int err;

	a->skel->rodata->nr_rings = opts->nr_rings;
	a->skel->rodata->follow_children = opts->follow_children;
	a->skel->rodata->until_exec = opts->until_exec;
	a->skel->rodata->asking_signals = opts->asked_by;
	a->skel->rodata->all_processes = opts->all_processes;
	a->skel->rodata->joining = opts->joins;
	a->skel->rodata->patient = opts->patient;
	a->skel->rodata->with_modules = opts->modules;
	a->skel->rodata->flow = opts->flow;
	a->skel->rodata->nr_tids = (uint32_t)opts->nr_tids;
	for (size_t i = 0; i < opts->nr_tids && i < KPROF_WIRE_MAX_TIDS; i++)
		a->skel->rodata->tids[i] = (uint32_t)opts->tids[i];
	err = bpf_map__set_max_entries(a->skel->maps.rings, opts->nr_rings);
	for (int i = 0; i < ATTACH_NR && !err && opts->single; i++)
		err = bpf_program__set_expected_attach_type(a->programs[i], 0);
	a->skel->rodata->stacks_a_second = opts->stack_rate;
	a->skel->rodata->samples_only = opts->no_probes;
	a->skel->rodata->books = opts->books;
	if (!err)
		err = leave_out(a, opts);
	if (!err)
		err = attach_counters_prepare(a, opts);
	if (!err)
		err = attach_within_prepare(a, opts);
	return err ? err : attach_waits_prepare(a->skel, opts);
}

int attacher__new(const struct attacher_opts *opts, struct attacher **out)
{
	struct attacher *a = calloc(1, sizeof(*a));
	int err;

	if (!a)
		return -ENOMEM;
	features_log_libbpf();
	a->single = opts->single;
	a->skel = kprof_bpf__open();
	if (!a->skel) {
		err = error_set(-errno, NULL, "cannot open the BPF programs: %s", strerror(errno));
		free(a);
		return err;
	}
	a->programs[ATTACH_BEGIN] = a->skel->progs.kprof_begin;
	a->programs[ATTACH_BEGIN_TEXT] = a->skel->progs.kprof_begin_text;
	a->programs[ATTACH_BEGIN_ARGS] = a->skel->progs.kprof_begin_args;
	a->programs[ATTACH_BEGIN_INPUTS] = a->skel->progs.kprof_begin_inputs;
	a->programs[ATTACH_BEGIN_BOXED] = a->skel->progs.kprof_begin_boxed;
	a->programs[ATTACH_SITE] = a->skel->progs.kprof_site;
	a->programs[ATTACH_SITE_RESULT] = a->skel->progs.kprof_site_result;
	a->programs[ATTACH_MAPS] = a->skel->progs.kprof_maps;
	a->programs[ATTACH_BATCH] = a->skel->progs.kprof_batch;
	a->programs[ATTACH_MARK] = a->skel->progs.kprof_mark;
	a->programs[ATTACH_STACK] = a->skel->progs.kprof_entry_stack;
	a->programs[ATTACH_NOTHING] = a->skel->progs.kprof_nothing;
	err = set_sizes(a, opts);
	if (!err)
		err = kprof_bpf__load(a->skel);
	if (!err)
		err = attach_waits_map(a);
	if (err) {
		error_set_machine(err, "`kprof check` says what this machine allows",
				  "the kernel refused kprof's BPF programs: %s", strerror(-err));
		attacher__free(a);
		return err;
	}
	*out = a;
	return 0;
}

void attacher__free(struct attacher *a)
{
	if (!a)
		return;
	attach_waits_unmap(a);
	kprof_bpf__destroy(a->skel);
	free(a->left);
	free(a);
}

int attacher__start_tasks(struct attacher *a)
{
	int err = attach_waits_start(a->skel);

	/* libbpf attaches those of the loaded programs whose sections name tracepoints. */
	if (!err)
		err = kprof_bpf__attach(a->skel);
	return err ? error_set_machine(err, "`kprof check` says what this machine allows",
				       "cannot watch processes come and go: %s", strerror(-err))
		   : 0;
}

void attacher__stop_tasks(struct attacher *a)
{
	kprof_bpf__detach(a->skel);
}

void attacher__stop(struct attacher *a)
{
	__atomic_store_n(&a->skel->bss->stopped, true, __ATOMIC_SEQ_CST);
}

void attacher__stop_batches(struct attacher *a)
{
	__atomic_store_n(&a->skel->bss->agents_stopped, true, __ATOMIC_SEQ_CST);
}

int attacher__rings_fd(const struct attacher *a)
{
	return bpf_map__fd(a->skel->maps.rings);
}

void attacher__stack_maps(const struct attacher *a, struct unwinder_maps *out)
{
	out->rules = bpf_map__fd(a->skel->maps.unwind_rules);
	out->pages = bpf_map__fd(a->skel->maps.unwind_pages);
	out->shards = bpf_map__fd(a->skel->maps.unwind_shards);
	out->spaces = bpf_map__fd(a->skel->maps.unwind_spaces);
	out->processes = bpf_map__fd(a->skel->maps.stack_processes);
	out->pythons = bpf_map__fd(a->skel->maps.stack_pythons);
}

int attacher__sample_program(struct attacher *a, uint32_t source)
{
	__atomic_store_n(&a->skel->bss->sample_source, source, __ATOMIC_SEQ_CST);
	return bpf_program__fd(a->skel->progs.kprof_sample);
}

void attacher__stack_source(struct attacher *a, uint32_t source)
{
	__atomic_store_n(&a->skel->bss->stack_source, source, __ATOMIC_SEQ_CST);
}

int attacher__set_probe(struct attacher *a, uint32_t index, const struct kprof_wire_probe *p)
{
	return bpf_map_update_elem(bpf_map__fd(a->skel->maps.probes), &index, p, 0) ? -errno : 0;
}

int attacher__set_inputs(struct attacher *a, uint32_t index, const struct kprof_inputs_plan *plan)
{
	int fd = bpf_map__fd(a->skel->maps.inputs_plans);

	return bpf_map_update_elem(fd, &index, plan, 0) ? -errno : 0;
}

int attacher__set_sequence(struct attacher *a, uint32_t space,
			   const struct kprof_wire_sequence *sequence)
{
	int fd = bpf_map__fd(a->skel->maps.sequences);

	return bpf_map_update_elem(fd, &space, sequence, 0) ? -errno : 0;
}

int attacher__add_target(struct attacher *a, uint32_t pid, uint32_t *space)
{
	int fd = bpf_map__fd(a->skel->maps.targets);

	*space = pid;
	if (!bpf_map_update_elem(fd, &pid, space, BPF_NOEXIST))
		return 0;
	/* a child that the kernel's program has added at its fork */
	return errno == EEXIST && !bpf_map_lookup_elem(fd, &pid, space) ? 0 : -errno;
}

int attacher__leave_out(struct attacher *a, uint32_t pid, bool was_target)
{
	uint32_t space = KPROF_WIRE_LEFT_OUT;

	return bpf_map_update_elem(bpf_map__fd(a->skel->maps.targets), &pid, &space,
				   was_target ? BPF_EXIST : BPF_ANY)
		       ? -errno
		       : 0;
}

int attacher__remove_target(struct attacher *a, uint32_t pid)
{
	return bpf_map_delete_elem(bpf_map__fd(a->skel->maps.targets), &pid) ? -errno : 0;
}

bool attacher__let_in(struct attacher *a, uint32_t pid)
{
	int fd = bpf_map__fd(a->skel->maps.targets);
	uint32_t space;

	return !bpf_map_lookup_elem(fd, &pid, &space) && space == KPROF_WIRE_LEFT_OUT &&
	       !bpf_map_delete_elem(fd, &pid);
}

size_t attacher__take_renamed(struct attacher *a, uint32_t *pids, size_t most)
{
	int fd = bpf_map__fd(a->skel->maps.renamed);
	size_t nr = 0;

	while (nr < most && !bpf_map_get_next_key(fd, nr ? &pids[nr - 1] : NULL, &pids[nr]))
		nr++;
	for (size_t i = 0; i < nr; i++)
		bpf_map_delete_elem(fd, &pids[i]);
	return nr;
}

void attacher__count_ended(struct attacher *a, uint64_t since_ns)
{
	struct kprof_wire_name others = {0};
	struct kprof_wire_ended none = {0};

	/* there before the map is full */
	bpf_map_update_elem(bpf_map__fd(a->skel->maps.ended_processes), &others, &none, 0);
	__atomic_store_n(&a->skel->bss->machine_since_ns, since_ns, __ATOMIC_SEQ_CST);
}

int attacher__next_ended(const struct attacher *a, const struct kprof_wire_name *after,
			 struct kprof_wire_name *name, struct kprof_wire_ended *out)
{
	int fd = bpf_map__fd(a->skel->maps.ended_processes);

	if (bpf_map_get_next_key(fd, after, name))
		return -errno;
	return bpf_map_lookup_elem(fd, name, out) ? -errno : 0;
}

uint64_t attacher__children_refused(const struct attacher *a)
{
	return __atomic_load_n(&a->skel->bss->children_refused, __ATOMIC_RELAXED);
}

void attacher__asked(const struct attacher *a, struct attach_asked *out)
{
	const struct kprof_wire_asked *asked = &a->skel->bss->asked;
	uint64_t last;

	/* first: what is sent meanwhile is seen the next time, too */
	out->times = __atomic_load_n(&asked->times, __ATOMIC_ACQUIRE);
	last = __atomic_load_n(&asked->last, __ATOMIC_RELAXED);
	out->uid = (uint32_t)(last >> KPROF_WIRE_ASKED_UID_SHIFT);
	out->signal = (int)(last >> KPROF_WIRE_ASKED_PID_BITS &
			    ((1u << KPROF_WIRE_ASKED_SIGNAL_BITS) - 1));
	out->pid = (pid_t)(last & ((1u << KPROF_WIRE_ASKED_PID_BITS) - 1));
}

int attacher__foreign(const struct attacher *a, struct kprof_wire_foreign *out)
{
	int nr_cpus = libbpf_num_possible_cpus(), err = 0;
	struct kprof_wire_foreign *percpu = calloc((size_t)nr_cpus, sizeof(*percpu));
	uint32_t zero = 0;

	memset(out, 0, sizeof(*out));
	if (!percpu)
		return -ENOMEM;
	if (bpf_map_lookup_elem(bpf_map__fd(a->skel->maps.foreign), &zero, percpu))
		err = -errno;
	for (int i = 0; i < nr_cpus && !err; i++) {
		out->hits += percpu[i].hits;
		if (percpu[i].pid)
			out->pid = percpu[i].pid;
	}
	free(percpu);
	return err;
}

int attacher__follow(struct attacher *a, uint32_t space, uint64_t ret_addr, uint32_t bytes,
		     bool keeps_result)
{
	struct kprof_wire_follow_key key = {.ret_addr = ret_addr, .space = space};
	uint32_t bit = KPROF_WIRE_FOLLOW_BIT(ret_addr);

	if (!keeps_result)
		bytes |= KPROF_WIRE_FOLLOW_NO_RESULT;
	if (bpf_map_update_elem(bpf_map__fd(a->skel->maps.follow), &key, &bytes, 0))
		return -errno;
	/* After the map's update, because a set bit makes the BPF programs look the address up. */
	__atomic_fetch_or(&a->skel->bss->follow_bits[bit / 64], 1ull << (bit & 63),
			  __ATOMIC_RELEASE);
	return 0;
}

void attacher__unfollow(struct attacher *a, uint32_t space, uint64_t ret_addr)
{
	struct kprof_wire_follow_key key = {.ret_addr = ret_addr, .space = space};

	bpf_map_delete_elem(bpf_map__fd(a->skel->maps.follow), &key);
}

void attacher__sited(struct attacher *a, uint32_t space, uint64_t ret_addr)
{
	uint64_t hash = KPROF_WIRE_SITED_HASH(space, ret_addr);

	__atomic_fetch_or(&a->skel->bss->sited[KPROF_WIRE_SITED_WORD(hash)],
			  KPROF_WIRE_SITED_MASK(hash), __ATOMIC_RELAXED);
}

int attacher__placed(struct attacher *a, const struct kprof_wire_file *file,
		     const struct kprof_wire_placed *placed)
{
	int fd = bpf_map__fd(a->skel->maps.placed_files);

	return bpf_map_update_elem(fd, file, placed, 0) ? -errno : 0;
}

void attacher__forget_placed(struct attacher *a)
{
	int fd = bpf_map__fd(a->skel->maps.placed_files);
	struct kprof_wire_file file;

	while (!bpf_map_get_next_key(fd, NULL, &file) && !bpf_map_delete_elem(fd, &file))
		;
}

void attacher__wake_me(struct attacher *a)
{
	__atomic_store_n(&a->skel->bss->sleeping, 1, __ATOMIC_SEQ_CST);
}

/*
 * Like libbpf's bpf_program__attach_uprobe_multi(), but as one system call. Returns the link's
 * descriptor, or -errno.
 */
static int link_multi(const struct bpf_program *program, pid_t pid, const char *path,
		      const unsigned long *offsets, const unsigned long *semaphores,
		      const __u64 *cookies, size_t nr)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.link_create.prog_fd = (__u32)bpf_program__fd(program);
	attr.link_create.attach_type = BPF_TRACE_UPROBE_MULTI;
	attr.link_create.uprobe_multi.path = (uintptr_t)path;
	attr.link_create.uprobe_multi.offsets = (uintptr_t)offsets;
	attr.link_create.uprobe_multi.ref_ctr_offsets = (uintptr_t)semaphores;
	attr.link_create.uprobe_multi.cookies = (uintptr_t)cookies;
	attr.link_create.uprobe_multi.cnt = (__u32)nr;
	attr.link_create.uprobe_multi.pid = pid < 0 ? 0 : (__u32)pid;
	return (int)attach_helper_call(SYS_bpf, BPF_LINK_CREATE, (long)&attr, sizeof(attr));
}

static int attach_multi(struct attacher *a, enum attach_program program, pid_t pid,
			const char *path, const struct attach_point *points, size_t nr,
			struct attach_links *links)
{
	unsigned long *offsets = calloc(nr, sizeof(*offsets));
	unsigned long *semaphores = calloc(nr, sizeof(*semaphores));
	__u64 *cookies = calloc(nr, sizeof(*cookies));
	int err = offsets && semaphores && cookies ? 0 : -ENOMEM, fd;

	for (size_t i = 0; i < nr && !err; i++) {
		offsets[i] = points[i].offset;
		cookies[i] = points[i].cookie;
		semaphores[i] = points[i].semaphore;
	}
	if (!err) {
		fd = link_multi(a->programs[program], pid, path, offsets,
				program == ATTACH_MARK ? semaphores : NULL, cookies, nr);
		err = fd < 0 ? fd
			     : attach_links_add(links,
						(struct attach_link){.fd = fd, .nr_probes = nr});
	}
	free(offsets);
	free(semaphores);
	free(cookies);
	return err;
}

/*
 * Was a probe on this instruction refused, rather than the file, the process or kprof? ENOTSUPP is
 * a number that only the kernel knows, and its answer for most such instructions
 * (arch_uprobe_analyze_insn(), kernel/events/uprobes.c).
 */
#define KERNEL_ENOTSUPP 524

static bool place_refused(int err)
{
	return err == -KERNEL_ENOTSUPP || err == -EINVAL || err == -EILSEQ || err == -EOPNOTSUPP ||
	       err == -EIO;
}

/*
 * At most this many refused places are left out per call; more mean that something else is wrong.
 */
#define MAX_REFUSED 16

/*
 * The kernel refuses a whole call for one bad place. So the points are split into halves until each
 * bad one is alone.
 */
static int attach_halves(struct attacher *a, enum attach_program program, pid_t pid,
			 const char *path, const struct attach_point *points, size_t nr,
			 struct attach_links *links, int *refused)
{
	int err = attach_multi(a, program, pid, path, points, nr, links);

	if (!place_refused(err) || *refused >= MAX_REFUSED)
		return err;
	if (nr == 1) {
		++*refused;
		return 0;
	}
	err = attach_halves(a, program, pid, path, points, nr / 2, links, refused);
	if (!err)
		err = attach_halves(a, program, pid, path, points + nr / 2, nr - nr / 2, links,
				    refused);
	return err;
}

static int attach_single(struct attacher *a, enum attach_program program, pid_t pid,
			 const char *path, const struct attach_point *points, size_t nr,
			 struct attach_links *links, int *refused)
{
	int err = 0;

	for (size_t i = 0; i < nr && !err; i++) {
		LIBBPF_OPTS(bpf_uprobe_opts, opts, .bpf_cookie = points[i].cookie);
		struct bpf_link *link;

		if (program == ATTACH_MARK)
			opts.ref_ctr_offset = points[i].semaphore;
		link = bpf_program__attach_uprobe_opts(a->programs[program], pid, path,
						       points[i].offset, &opts);

		err = link ? attach_links_add(links, (struct attach_link){.libbpf = link,
									  .fd = bpf_link__fd(link),
									  .nr_probes = 1})
			   : -errno;
		if (place_refused(err) && *refused < MAX_REFUSED) {
			++*refused;
			err = 0;
		}
	}
	return err;
}

/*
 * The kernel reads the code below a probe from its file, while every fork() of the machine waits
 * (dup_mmap_sem, kernel/events/uprobes.c). A file that cannot be looked at has no probe; what is no
 * link of procfs (-EINVAL) is a name of kprof's own, and what is gone the kernel does not find.
 */
static int may_read(const char *path)
{
	struct foreign_file file;
	int err = foreign_look(path, &file);

	if (err)
		return err == -EINVAL || err == -ENOENT || err == -ESRCH ? 0 : err;
	return file.may_block ? -ETXTBSY : 0;
}

int attacher__attach(struct attacher *a, enum attach_program program, pid_t pid, const char *path,
		     const struct attach_point *points, size_t nr, struct attach_links *links)
{
	size_t before = links->nr;
	int err, refused = 0;

	if (!nr)
		return 0;
	err = may_read(path);
	if (err)
		return err;
	if (a->single)
		err = attach_single(a, program, pid, path, points, nr, links, &refused);
	else
		err = attach_halves(a, program, pid, path, points, nr, links, &refused);
	attach_within_placed(a, program, pid, points, nr);
	if (err)
		attach_links_cut(links, before);
	else
		a->nr_refused += (uint32_t)refused;
	return err;
}

const char *attacher__why(int err)
{
	return err == -ETXTBSY ? "its file system (FUSE) could block every process of this machine"
			       : strerror(-err);
}

uint32_t attacher__refused(const struct attacher *a)
{
	return a->nr_refused;
}

int attacher__counts(const struct attacher *a, uint32_t source, struct kprof_wire_count *out)
{
	int nr_cpus = libbpf_num_possible_cpus(), err = 0;
	struct kprof_wire_count *percpu = calloc((size_t)nr_cpus, sizeof(*percpu));

	memset(out, 0, sizeof(*out));
	if (!percpu)
		return -ENOMEM;
	if (bpf_map_lookup_elem(bpf_map__fd(a->skel->maps.counts), &source, percpu))
		err = -errno;
	for (int i = 0; i < nr_cpus && !err; i++) {
		out->fired += percpu[i].fired;
		out->dropped += percpu[i].dropped;
	}
	free(percpu);
	return err;
}

uint64_t attacher__missed(const struct attacher *a)
{
	struct bpf_program *p;
	uint64_t sum = 0;

	bpf_object__for_each_program(p, a->skel->obj)
	{
		struct bpf_prog_info info = {0};
		__u32 bytes = sizeof(info);

		if (!bpf_prog_get_info_by_fd(bpf_program__fd(p), &info, &bytes))
			sum += info.recursion_misses;
	}
	return sum;
}
