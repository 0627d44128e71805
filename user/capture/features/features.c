// SPDX-License-Identifier: BSD-2-Clause
#include "capture/features/features.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "capture/process/process.h"
#include "util/error.h"
#include "util/util.h"

#define UPROBE_PMU_TYPE "/sys/bus/event_source/devices/uprobe/type"
#define PIDNS_INIT_INO 0xEFFFFFFCu /* PROC_PID_INIT_INO, include/linux/proc_ns.h */
#define RING_TEST_BYTES 65536      /* a multiple of every page size in use */

/* The code of every test program: it returns 0. */
static const struct bpf_insn return_0[] = {
	{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0},
	{.code = BPF_JMP | BPF_EXIT},
};

/* ---- quick ones ---- */

static bool has_cap(const struct __user_cap_data_struct *data, unsigned int cap)
{
	return data[cap / 32].effective & (1u << (cap % 32));
}

static void find_caps(struct features *f)
{
	struct __user_cap_header_struct hdr = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	if (syscall(SYS_capget, &hdr, data))
		return;
	f->cap_bpf = has_cap(data, CAP_SYS_ADMIN) || has_cap(data, CAP_BPF);
	f->cap_perfmon = has_cap(data, CAP_SYS_ADMIN) || has_cap(data, CAP_PERFMON);
	f->cap_sys_ptrace = has_cap(data, CAP_SYS_PTRACE);
}

int features_read_int(const char *path, int otherwise)
{
	char *text;
	int value;

	if (read_file(path, 4096, &text, NULL))
		return otherwise;
	value = (int)strtol(text, NULL, 10);
	free(text);
	return value;
}

/* Closes what was made. Returns 0, or the errno of the refusal. */
static int tried(int fd)
{
	if (fd < 0)
		return -fd;
	close(fd);
	return 0;
}

static int load(enum bpf_prog_type type, struct bpf_prog_load_opts *opts)
{
	return bpf_prog_load(type, "kprof_test", "GPL", return_0, ARRAY_SIZE(return_0), opts);
}

static int load_multi(void)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_TRACE_UPROBE_MULTI);

	return load(BPF_PROG_TYPE_KPROBE, &opts);
}

/*
 * Asks for a link on a directory: a kernel that knows uprobe_multi gets as far as finding that "/"
 * is no regular file (EBADF); one that does not says EINVAL at once. Kernel commit 89ae89f53d20
 * ("bpf: Add multi uprobe link"). Nothing is placed, so there is nothing to wait for.
 */
static void find_uprobe_multi(struct features *f)
{
	const unsigned long offset = 0;
	LIBBPF_OPTS(bpf_link_create_opts, opts, .uprobe_multi.path = "/",
		    .uprobe_multi.offsets = &offset, .uprobe_multi.cnt = 1);
	int prog = load_multi();
	int link = prog < 0 ? prog : bpf_link_create(prog, 0, BPF_TRACE_UPROBE_MULTI, &opts);

	f->uprobe_multi = prog >= 0 && link == -EBADF;
	f->err_multi = f->uprobe_multi ? 0 : tried(link);
	if (prog >= 0)
		close(prog);
}

static void find_tasks(struct features *f)
{
	int prog = load(BPF_PROG_TYPE_RAW_TRACEPOINT, NULL);

	f->err_tasks = tried(prog < 0 ? prog : bpf_raw_tracepoint_open("sched_process_fork", prog));
	if (prog >= 0)
		close(prog);
}

/* The file and offset of a function of this program, as the kernel needs them for a probe. */
static int locate_own(const void *code, char path[PATH_MAX], uint64_t *offset)
{
	const struct proc_map *map;
	struct proc_maps *maps;
	int err = proc_maps__read(getpid(), &maps);

	if (err)
		return err;
	map = proc_maps__find(maps, (uint64_t)(uintptr_t)code);
	err = map ? proc_map_open_path(getpid(), map, path, PATH_MAX) : -ENOENT;
	if (!err)
		*offset = (uint64_t)(uintptr_t)code - map->start + map->offset;
	proc_maps__free(maps);
	return err;
}

static bool find_map_files(void)
{
	char path[PATH_MAX];
	uint64_t offset;

	return !locate_own((const void *)(uintptr_t)find_map_files, path, &offset) &&
	       strstr(path, "/map_files/");
}

static bool find_initial_pidns(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) || st.st_ino == PIDNS_INIT_INO;
}

static struct features found;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_all(void)
{
	struct features *f = &found;

	find_caps(f);
	f->btf = !access("/sys/kernel/btf/vmlinux", R_OK);
	f->single_uprobe = features_read_int(UPROBE_PMU_TYPE, -1) >= 0;
	f->perf_event_paranoid = features_read_int("/proc/sys/kernel/perf_event_paranoid", -2);
	f->err_ring = tried(
		bpf_map_create(BPF_MAP_TYPE_RINGBUF, "kprof_test", 0, 0, RING_TEST_BYTES, NULL));
	f->err_prog = tried(load(BPF_PROG_TYPE_KPROBE, NULL));
	if (!f->err_prog) {
		find_uprobe_multi(f);
		find_tasks(f);
	}
	f->map_files = find_map_files();
	f->initial_pidns = find_initial_pidns();
	error_clear();
}

const struct features *features_get(void)
{
	pthread_once(&once, find_all);
	return &found;
}

/* ---- for real ---- */

void features_probe_target(void);

/* Never called: only a place for a probe. The empty asm keeps the compiler from changing it. */
__attribute__((noinline, used)) void features_probe_target(void)
{
	__asm__ volatile("");
}

int features_try_uprobe_multi(void)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts);
	char path[PATH_MAX];
	uint64_t offset;
	int prog, err;

	err = locate_own((const void *)(uintptr_t)features_probe_target, path, &offset);
	if (err)
		return err;
	prog = load_multi();
	if (prog < 0)
		return prog;
	opts.uprobe_multi.path = path;
	opts.uprobe_multi.offsets = &offset;
	opts.uprobe_multi.cnt = 1;
	opts.uprobe_multi.pid = (unsigned int)getpid();
	err = -tried(bpf_link_create(prog, 0, BPF_TRACE_UPROBE_MULTI, &opts));
	close(prog);
	return err;
}

int features_try_single_uprobe(void)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .perf_event.bpf_cookie = 1);
	struct perf_event_attr attr = {.size = sizeof(attr)};
	int type = features_read_int(UPROBE_PMU_TYPE, -1), prog, event, err;
	char path[PATH_MAX];
	uint64_t offset;

	if (type < 0)
		return -ENOENT;
	err = locate_own((const void *)(uintptr_t)features_probe_target, path, &offset);
	if (err)
		return err;
	attr.type = (uint32_t)type;
	attr.config1 =
		(uint64_t)(uintptr_t)path; /* uprobe_path, probe_offset: perf_event_open(2) */
	attr.config2 = offset;
	event = (int)syscall(SYS_perf_event_open, &attr, getpid(), -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (event < 0)
		return -errno;
	prog = load(BPF_PROG_TYPE_KPROBE, NULL);
	err = -tried(prog < 0 ? prog : bpf_link_create(prog, event, BPF_PERF_EVENT, &opts));
	if (prog >= 0)
		close(prog);
	close(event);
	return err;
}

/* ---- what a session needs ---- */

/* Writes the missing ones of "CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE". Returns their number. */
static int list_missing_caps(const struct features *f, char *out, size_t bytes)
{
	const char *missing[3];
	int nr = 0;

	if (!f->cap_bpf)
		missing[nr++] = "CAP_BPF";
	if (!f->cap_perfmon)
		missing[nr++] = "CAP_PERFMON";
	if (!f->cap_sys_ptrace)
		missing[nr++] = "CAP_SYS_PTRACE";
	if (nr == 3)
		snprintf(out, bytes, "%s, %s and %s", missing[0], missing[1], missing[2]);
	else if (nr == 2)
		snprintf(out, bytes, "%s and %s", missing[0], missing[1]);
	else if (nr)
		snprintf(out, bytes, "%s", missing[0]);
	return nr;
}

static int require_rights(const struct features *f)
{
	char caps[64];

	if (list_missing_caps(f, caps, sizeof(caps)))
		return error_set_machine(
			-EPERM,
			geteuid() ? "run it with sudo"
				  : "in a container: start that with --cap-add for each of them "
				    "and --pid=host, or run kprof on the host",
			"no permission to trace: %s missing", caps);
	if (f->err_prog == EPERM || f->err_prog == EACCES || f->err_ring == EPERM)
		return error_set_machine(
			-EPERM,
			"kernel lockdown, a security module, or a user namespace may forbid it: "
			"run kprof on the host itself",
			"the kernel refuses BPF programs although the capabilities are there");
	return 0;
}

static int require_kernel(const struct features *f, bool uprobes)
{
	static const char hint[] = "`kprof check` lists what this kernel allows";

	if (f->err_prog)
		return error_set_machine(-ENOTSUP, hint,
					 "this kernel does not load BPF programs: %s",
					 strerror(f->err_prog));
	if (f->err_ring)
		return error_set_machine(
			-ENOTSUP, hint,
			"this kernel has no BPF ring buffers (Linux 5.8 has them): %s",
			strerror(f->err_ring));
	if (!f->btf)
		return error_set_machine(
			-ENOTSUP,
			"boot a kernel with CONFIG_DEBUG_INFO_BTF, as distributions build it",
			"this kernel has no BTF (/sys/kernel/btf/vmlinux)");
	if (f->err_tasks)
		return error_set_machine(
			-ENOTSUP, hint,
			"this kernel has no raw tracepoints (CONFIG_BPF_EVENTS): %s",
			strerror(f->err_tasks));
	if (uprobes && !f->uprobe_multi && !f->single_uprobe)
		return error_set_machine(
			-ENOTSUP, hint,
			"this kernel has neither uprobe_multi nor the uprobe PMU (CONFIG_UPROBE_EVENTS)");
	if (!f->initial_pidns)
		return error_set_machine(
			-ENOTSUP, "run kprof on the host, or in a container with --pid=host",
			"this is a PID namespace of its own: the numbers that the kernel's tracing "
			"shows are others");
	return 0;
}

int features_require(bool uprobes)
{
	const struct features *f = features_get();
	int err = require_rights(f);

	return err ? err : require_kernel(f, uprobes);
}

/* ---- libbpf ---- */

static int libbpf_message(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	char text[1024];

	if (level == LIBBPF_DEBUG)
		return 0;
	vsnprintf(text, sizeof(text), fmt, ap);
	text[strcspn(text, "\n")] = '\0';
	log_debug("%s", text);
	return 0;
}

void features_log_libbpf(void)
{
	libbpf_set_print(libbpf_message);
}
