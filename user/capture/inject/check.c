// SPDX-License-Identifier: BSD-2-Clause
/*
 * Finds out, without touching a process, whether the agent can be injected into it at all, and the
 * addresses that are needed for that.
 */
#include <elf.h>
#include <errno.h>
#include <linux/kcmp.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "capture/inject/inject.h"
#include "capture/inject/priv.h"
#include "catalog/catalog.h"
#include "kprof/agent.h"
#include "util/error.h"
#include "util/util.h"

#define AT_RUN_HINT "start it under kprof instead: kprof run -- PROGRAM"
#define RTLD_NOW_LOCAL 2        /* RTLD_NOW | RTLD_LOCAL */
#define RTLD_DLOPEN 0x80000000u /* __RTLD_DLOPEN, which __libc_dlopen_mode() wants */

static int refuse(const char *hint, const char *cause, pid_t pid)
{
	return error_set(-ENOTSUP, hint, "process %d %s", (int)pid, cause);
}

/* ---- properties of each thread, from /proc/PID/task/TID/status ---- */

static int check_status(struct inject_target *t, const char *text)
{
	long tracer = strtol(proc_status_value(text, "TracerPid"), NULL, 10),
	     seccomp = strtol(proc_status_value(text, "Seccomp"), NULL, 10);
	const char *features = proc_status_value(text, "x86_Thread_features");
	const char *shadow_stack = strstr(features, "shstk");
	char comm[PROC_COMM_BYTES] = "?";

	if (tracer) {
		proc_thread_comm((pid_t)tracer, (pid_t)tracer, comm);
		error_clear();
		return error_set(-EBUSY, "detach that program first",
				 "process %d is traced by process %ld (%s)", (int)t->pid, tracer,
				 comm);
	}
	if (seccomp == 1)
		return refuse(AT_RUN_HINT, "is in seccomp's strict mode", t->pid);
	if (seccomp == 2)
		t->seccomp = true;
	if (shadow_stack && shadow_stack < strchr(features, '\n'))
		return refuse(AT_RUN_HINT " (or with GLIBC_TUNABLES=glibc.cpu.x86_shstk=off)",
			      "uses shadow stacks, on which a call cannot be made from outside",
			      t->pid);
	return 0;
}

static int check_threads(struct inject_target *t)
{
	pid_t *tids;
	size_t nr;
	int err;

	err = proc_threads(t->pid, &tids, &nr);
	if (err)
		return err;
	for (size_t i = 0; i < nr && !err; i++) {
		char *text;

		if (proc_thread_read(t->pid, tids[i], "status", &text)) /* it has ended */
			continue;
		err = check_status(t, text);
		free(text);
	}
	free(tids);
	return err;
}

static int check_state(const struct inject_target *t)
{
	if (t->info.kernel_thread)
		return refuse(NULL, "is a kernel thread", t->pid);
	if (t->info.zombie)
		return error_set(-ESRCH, NULL, "process %d has ended", (int)t->pid);
	if (t->info.state == 'T')
		return error_set(-EBUSY, "continue it first: kill -CONT", "process %d is stopped",
				 (int)t->pid);
	if (t->pid == getpid())
		return refuse(NULL, "is kprof itself", t->pid);
	/* Between vfork() and exec a child borrows its parent's memory and stack. */
	if (t->info.ppid > 0 && syscall(SYS_kcmp, t->pid, t->info.ppid, KCMP_VM, 0, 0) == 0)
		return error_set(-EAGAIN, "it is about to start another program; try again",
				 "process %d still shares its parent's memory (vfork)",
				 (int)t->pid);
	return 0;
}

/*
 * dlopen() opens the library by a path in /proc, which must exist in the target's mount namespace.
 */
static int check_procfs(pid_t pid)
{
	struct statfs fs;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/root/proc", (int)pid);
	if (statfs(path, &fs) || fs.f_type != PROC_SUPER_MAGIC)
		return refuse("mount /proc in its container", "sees no /proc", pid);
	return 0;
}

/* ---- the process's files ---- */

/*
 * Opens a file of the target. `map` must be its code: the same file may be mapped elsewhere as
 * data.
 */
static int open_file(struct inject_target *t, const struct proc_map *map, struct inject_file *out)
{
	uint64_t vaddr;
	char path[512];
	int err;

	err = proc_map_open_path(t->pid, map, path, sizeof(path));
	if (!err)
		err = elffile__open(path, &out->elf);
	if (err)
		return err;
	vaddr = elffile__vaddr(out->elf, map->offset);
	if (vaddr == UINT64_MAX)
		return error_set(-ENOEXEC, NULL, "%s is mapped in a way that no loader maps it",
				 map->path);
	out->base = map->start - vaddr;
	out->start = map->start;
	out->end = map->end;
	return 0;
}

static struct inject_file *role_of(struct inject_target *t, const char *name)
{
	if (catalog_match("libc.so.6 libc-2.*.so", name))
		return &t->libc;
	if (catalog_match("libdl.so.2 libdl-2.*.so", name))
		return &t->libdl;
	if (catalog_match("libpthread.so.0 libpthread-2.*.so", name))
		return &t->libpthread;
	if (catalog_match("ld-linux-x86-64.so* ld-2.*.so", name))
		return &t->ld;
	return NULL;
}

static int open_exe(struct inject_target *t)
{
	char path[64], *name = NULL;
	int err;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)t->pid);
	err = elffile__open(path, &t->exe.elf);
	if (!err)
		err = proc_exe(t->pid, &name);
	for (size_t i = 0; i < proc_maps__nr(t->maps) && !err; i++) {
		const struct proc_map *map = proc_maps__at(t->maps, i);
		uint64_t vaddr;

		if (!(map->flags & PROC_MAP_EXEC) || strcmp(map->path, name))
			continue;
		/* A program may map its own file once more, in any way. */
		vaddr = elffile__vaddr(t->exe.elf, map->offset);
		if (vaddr == UINT64_MAX)
			continue;
		t->exe_inode = map->inode;
		t->exe.base = map->start - vaddr;
		t->exe.start = map->start;
		t->exe.end = map->end;
		break;
	}
	free(name);
	return err;
}

static int open_files(struct inject_target *t)
{
	const char *interp;
	int err;

	err = open_exe(t);
	if (err)
		return err;
	for (size_t i = 0; i < proc_maps__nr(t->maps); i++) {
		const struct proc_map *map = proc_maps__at(t->maps, i);
		const char *name = proc_basename(map->path);
		struct inject_file *role;

		if (!(map->flags & PROC_MAP_FILE) || !(map->flags & PROC_MAP_EXEC))
			continue;
		role = role_of(t, name);
		/*
		 * Take the one with the highest address: copies that dlmopen() has loaded came
		 * later, and are below it.
		 */
		if (role) {
			elffile__close(role->elf);
			*role = (struct inject_file){0};
			err = open_file(t, map, role);
		}
		if (err)
			return err;
	}
	interp = elffile__interp(t->exe.elf);
	if (!t->libc.elf && interp && strstr(interp, "/ld-musl-"))
		return refuse(NO_AGENT_HINT, "uses musl, not the GNU C library", t->pid);
	if (!t->libc.elf && !interp)
		return refuse(NO_AGENT_HINT, "is a static program: there is no loader to ask",
			      t->pid);
	if (!t->libc.elf || !t->ld.elf)
		return refuse(NO_AGENT_HINT, "has not loaded the GNU C library", t->pid);
	return 0;
}

/* ---- functions in these files ---- */

/* 0: there is none, or it would not be in a file's code. */
static uint64_t address_of(const struct inject_target *t, const struct inject_file *f,
			   const char *name)
{
	static const unsigned int code = PROC_MAP_FILE | PROC_MAP_EXEC;
	const struct proc_map *map;
	struct elffile_symbol s;

	if (!f->elf || elffile__symbol(f->elf, name, &s) || !s.function)
		return 0;
	map = proc_maps__find(t->maps, f->base + s.vaddr);
	return map && (map->flags & code) == code ? f->base + s.vaddr : 0;
}

/* In libc since glibc 2.34; before that in libpthread, which not every program has. */
static int find_threads(struct inject_target *t)
{
	const struct inject_file *from = &t->libc;

	t->thread_create = address_of(t, from, "pthread_create");
	if (!t->thread_create)
		t->thread_create = address_of(t, from = &t->libpthread, "pthread_create");
	t->thread_detach = address_of(t, from, "pthread_detach");
	if (!t->thread_create || !t->thread_detach)
		return refuse(NO_AGENT_HINT, "has a C library without pthread_create()", t->pid);
	return 0;
}

/* Finds dlopen(): in libc since glibc 2.34; before that in libdl, and in libc by other names. */
static int find_loader(struct inject_target *t)
{
	const struct inject_file *from = &t->libc;

	t->errno_location = address_of(t, &t->libc, "__errno_location");
	t->dlopen = address_of(t, from, "dlopen");
	if (!t->dlopen && t->libdl.elf)
		t->dlopen = address_of(t, from = &t->libdl, "dlopen");
	t->dlopen_flags = RTLD_NOW_LOCAL;
	t->dlsym = address_of(t, from, "dlsym");
	t->dlclose = address_of(t, from, "dlclose");
	t->dlerror = address_of(t, from, "dlerror");
	if (!t->dlopen) {
		t->dlopen = address_of(t, &t->libc, "__libc_dlopen_mode");
		t->dlsym = address_of(t, &t->libc, "__libc_dlsym");
		t->dlclose = address_of(t, &t->libc, "__libc_dlclose");
		t->dlerror = 0;
		t->dlopen_flags = (int)(RTLD_NOW_LOCAL | RTLD_DLOPEN);
	}
	if (!t->dlopen || !t->dlsym || !t->dlclose || !t->errno_location)
		return refuse(NO_AGENT_HINT, "has a C library without dlopen()", t->pid);
	return find_threads(t);
}

/* The address of some bytes in a file's mapped code. */
static uint64_t find_bytes(const struct inject_target *t, const struct inject_file *f,
			   const void *bytes, size_t nr)
{
	for (size_t i = 0; i < proc_maps__nr(t->maps); i++) {
		const struct proc_map *map = proc_maps__at(t->maps, i);
		const uint8_t *code, *hit;
		size_t avail;

		if (map->start < f->start || map->end > f->end)
			continue;
		code = elffile__bytes(f->elf, map->offset, map->end - map->start, &avail);
		hit = code ? memmem(code, avail, bytes, nr) : NULL;
		if (hit)
			return map->start + (uint64_t)(hit - code);
	}
	return 0;
}

/* What is cut off reads as zeros, and is noticed when it is read: so this is checked last. */
static int check_files(const struct inject_target *t)
{
	const struct inject_file *files[] = {&t->exe, &t->libc, &t->libdl, &t->libpthread, &t->ld};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (files[i]->elf && elffile__cut(files[i]->elf))
			return error_set(-EAGAIN, "try again", "%s was cut short while it was read",
					 elffile__path(files[i]->elf));
	return 0;
}

static int find_instructions(struct inject_target *t)
{
	static const char syscall_ret[3] = INJECT_SYSCALL_RET;
	/* mov $15, %rax; syscall: gdb and libgcc know signal frames by this, so glibc keeps it */
	static const uint8_t restore_rt[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};

	t->syscall_ret = find_bytes(t, &t->libc, syscall_ret, sizeof(syscall_ret));
	if (!t->syscall_ret)
		t->syscall_ret = find_bytes(t, &t->ld, syscall_ret, sizeof(syscall_ret));
	t->restore_rt = find_bytes(t, &t->libc, restore_rt, sizeof(restore_rt));
	if (!t->restore_rt)
		t->restore_rt = find_bytes(t, &t->libpthread, restore_rt, sizeof(restore_rt));
	if (!t->syscall_ret || !t->restore_rt)
		return refuse(NO_AGENT_HINT, "has a C library of an unknown make", t->pid);
	return 0;
}

/*
 * Finds the code of an agent that is loaded already. The stub's code may be mapped from the same
 * memfd, but at offsets after the library's.
 */
static void find_loaded_agent(struct inject_target *t)
{
	t->start = 0;
	for (size_t i = 0; i < proc_maps__nr(t->maps); i++) {
		const struct proc_map *map = proc_maps__at(t->maps, i);
		const char *name = proc_basename(map->path);
		struct inject_file file = {0};

		if (!(map->flags & PROC_MAP_FILE) || !(map->flags & PROC_MAP_EXEC) ||
		    (strcmp(name, KPROF_AGENT_LIBRARY) &&
		     strcmp(name, "memfd:" KPROF_AGENT_LIBRARY)))
			continue;
		if (!open_file(t, map, &file))
			t->start = address_of(t, &file, KPROF_AGENT_START_SYMBOL);
		elffile__close(file.elf);
		if (t->start)
			break;
	}
	error_clear();
}

/* ---- which program it is ---- */

static int find_identity(struct inject_target *t)
{
	char path[64], *auxv;
	size_t bytes;
	int err;

	snprintf(path, sizeof(path), "/proc/%d/auxv", (int)t->pid);
	err = read_file(path, 65536, &auxv, &bytes);
	if (err)
		return err;
	t->identity_address = 0;
	for (size_t i = 0; i + sizeof(Elf64_auxv_t) <= bytes; i += sizeof(Elf64_auxv_t)) {
		Elf64_auxv_t entry;

		memcpy(&entry, auxv + i, sizeof(entry));
		if (entry.a_type == AT_RANDOM)
			t->identity_address = entry.a_un.a_val;
	}
	free(auxv);
	if (!t->identity_address)
		return -ENODATA;
	return process_read(t->pid, t->identity_address, t->identity, sizeof(t->identity));
}

bool inject_target__same_program(const struct inject_target *t)
{
	uint8_t now[INJECT_IDENTITY_BYTES];

	return !process_read(t->pid, t->identity_address, now, sizeof(now)) &&
	       !memcmp(now, t->identity, sizeof(now));
}

static int gone(const struct inject_target *t)
{
	if (!proc_alive(t->pid, t->info.start_ticks))
		return error_set(-ESRCH, NULL, "process %d ended meanwhile", (int)t->pid);
	return error_set(-ESRCH, "try again", "process %d executed another program meanwhile",
			 (int)t->pid);
}

static int identity_error(const struct inject_target *t, int err)
{
	if (err == -ENOENT || err == -ESRCH)
		return gone(t);
	if (err == -EACCES || err == -EPERM)
		return error_set_machine(
			-EACCES,
			"run it with sudo; in a container give it CAP_SYS_PTRACE; `sysctl kernel.yama.ptrace_scope` must not be 3",
			"process %d may not be traced", (int)t->pid);
	return error_set(err, NULL, "the memory of process %d cannot be read: %s", (int)t->pid,
			 strerror(-err));
}

int inject_target__refresh(struct inject_target *t)
{
	struct proc_maps *maps;
	int err;

	err = proc_maps__read(t->pid, &maps);
	if (err)
		return err;
	proc_maps__free(t->maps);
	t->maps = maps;
	if (!inject_target__same_program(t))
		return gone(t);
	err = check_threads(t);
	if (!err)
		err = inject_code__learn(t);
	if (!err)
		find_loaded_agent(t);
	return err;
}

int inject_target__open(pid_t pid, struct inject_target *t)
{
	int err, cut;

	*t = (struct inject_target){.pid = pid};
	err = proc_info_read(pid, &t->info);
	if (!err)
		err = check_state(t);
	if (!err && (err = proc_is_32bit(pid)) > 0)
		err = refuse(NO_AGENT_HINT, "is a 32-bit program", pid);
	if (!err)
		err = check_threads(t);
	if (!err && (err = find_identity(t)))
		err = identity_error(t, err);
	if (!err)
		err = proc_maps__read(pid, &t->maps);
	if (!err)
		err = open_files(t);
	if (!err)
		err = check_procfs(pid);
	if (!err)
		err = find_loader(t);
	if (!err)
		err = find_instructions(t);
	if (!err)
		find_loaded_agent(t);
	if (!err)
		err = inject_code__learn(t);
	if (!err)
		t->exe_allocates = address_of(t, &t->exe, "malloc") != 0;
	cut = check_files(t);
	return cut ? cut : err;
}

int inject_check(pid_t pid, bool *is_loaded)
{
	struct inject_target t;
	int err = inject_target__open(pid, &t);

	*is_loaded = t.start;
	inject_target__close(&t);
	return err;
}

void inject_target__close(struct inject_target *t)
{
	struct inject_file *files[] = {&t->exe, &t->libc, &t->libdl, &t->libpthread, &t->ld};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		elffile__close(files[i]->elf);
	proc_maps__free(t->maps);
	map64__free(&t->code_of_file);
	*t = (struct inject_target){0};
}
