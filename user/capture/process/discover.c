// SPDX-License-Identifier: BSD-2-Clause
#include "capture/process/priv.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "catalog/catalog.h"
#include "catalog/runtime.h"
#include "kprof.h"
#include "kprof/agent.h"
#include "util/container.h"
#include "util/error.h"
#include "util/foreign.h"
#include "util/pod_names.h"
#include "util/util.h"

#define VERSION_FILE_MAX_BYTES 65536
#define NAMES_BYTES 512

/* ---- libraries ---- */

/*
 * Is code of the file mapped as executable? A profiler or debugger maps libraries only to read
 * them.
 */
static bool runs_code_of(const struct proc_maps *maps, const struct proc_map *map)
{
	for (; map; map = proc_maps__next_of_file(maps, map))
		if (map->flags & PROC_MAP_EXEC)
			return true;
	return false;
}

/* The first mapping of a file whose base name matches; NULL: none. */
static const struct proc_map *find_library(const struct proc_maps *maps, const char *glob)
{
	for (size_t i = 0; i < proc_maps__nr(maps); i++) {
		const struct proc_map *map = proc_maps__at(maps, i);

		if (map->flags & PROC_MAP_FILE && proc_maps__first_of_file(maps, map) == map &&
		    catalog_match(glob, proc_basename(map->path)) && runs_code_of(maps, map))
			return map;
	}
	return NULL;
}

/* The first mapping of a library of the framework; NULL: the process does not use it. */
static const struct proc_map *discover_library(const struct proc_maps *maps,
					       const struct catalog_framework *fw)
{
	for (const char *const *glob = fw->libraries; *glob; glob++) {
		const struct proc_map *map = find_library(maps, *glob);

		if (map)
			return map;
	}
	return NULL;
}

/* ---- version files ---- */

/*
 * Reads a file as the process sees it. Symbolic links are followed within the process's root
 * directory, and only regular files are read, because the process's owner may have put anything
 * there (such as a FIFO, at which a reader waits).
 */
static int read_in_root(pid_t pid, const char *path, char **out)
{
	char root[64];
	int fd, err;

	snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
	fd = open_in_root(root, path, 0);
	if (fd < 0)
		return fd;
	err = read_fd(fd, VERSION_FILE_MAX_BYTES, out, NULL);
	close(fd);
	return err;
}

/* Copies a version up to the first character that cannot belong to one. */
static void copy_version(char version[DISCOVER_VERSION_BYTES], const char *from, size_t len)
{
	size_t n = 0;

	while (n < len && n < DISCOVER_VERSION_BYTES - 1 &&
	       (isalnum((unsigned char)from[n]) || strchr(".+-_", from[n])) && from[n])
		n++;
	memcpy(version, from, n);
	version[n] = '\0';
}

/* Finds a line of Python: KEY = 'VERSION', with or without an annotation (KEY: str = …). */
void discover_parse_version(const char *text, const char *key, char version[DISCOVER_VERSION_BYTES])
{
	size_t len = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		const char *at, *quote;

		line += *line == '\n';
		if (strncmp(line, key, len))
			continue;
		at = line + len + strspn(line + len, " \t");
		if (*at == ':')
			at += strcspn(at, "=\n");
		if (*at != '=')
			continue;
		quote = at + 1 + strspn(at + 1, " \t");
		if (*quote == '\'' || *quote == '"') {
			copy_version(version, quote + 1, strcspn(quote + 1, "'\"\n"));
			return;
		}
	}
}

static void version_beside(pid_t pid, const char *path, const char *relative, const char *key,
			   char version[DISCOVER_VERSION_BYTES])
{
	char file[PATH_MAX], *text = NULL;
	int dir_len = (int)(proc_basename(path) - path);

	if ((size_t)snprintf(file, sizeof(file), "%.*s%s", dir_len, path, relative) >= sizeof(file))
		return;
	if (read_in_root(pid, file, &text))
		return;
	discover_parse_version(text, key, version);
	free(text);
}

/*
 * The mapping of a file directly in the package's directory, such as
 * …/torch/_C.cpython-311-x86_64-linux-gnu.so.
 */
static const struct proc_map *find_in_package(const struct proc_maps *maps, const char *package)
{
	size_t len = strlen(package);

	for (size_t i = 0; i < proc_maps__nr(maps); i++) {
		const struct proc_map *map = proc_maps__at(maps, i);
		size_t dir_len = (size_t)(proc_basename(map->path) - map->path);

		if (map->flags & PROC_MAP_FILE && dir_len > len + 1 &&
		    map->path[dir_len - len - 2] == '/' &&
		    !strncmp(map->path + dir_len - len - 1, package, len))
			return map;
	}
	return NULL;
}

/* libtorch_cpu.so.1.13 → "1.13" */
static void version_of_name(const char *base, char version[DISCOVER_VERSION_BYTES])
{
	const char *so = strstr(base, ".so.");

	if (so)
		copy_version(version, so + 4, strlen(so + 4));
}

/*
 * The framework's release ("2.15.0+cu132"), from its version file as the process sees it, else from
 * the library's file name (libtorch_cpu.so.1.13 → "1.13"); "" when neither shows it.
 */
static void discover_version(pid_t pid, const struct proc_maps *maps,
			     const struct catalog_framework *fw,
			     char version[DISCOVER_VERSION_BYTES])
{
	const struct proc_map *library = discover_library(maps, fw), *module;

	version[0] = '\0';
	if (!library)
		return;
	/*
	 * A library that was deleted since it was loaded may have been replaced: then the version
	 * file beside it belongs to another release.
	 */
	if (fw->version_file && fw->version_key && !(library->flags & PROC_MAP_DELETED))
		version_beside(pid, library->path, fw->version_file, fw->version_key, version);
	if (!version[0] && fw->version_file && fw->version_key && fw->package) {
		module = find_in_package(maps, fw->package);
		if (module)
			version_beside(pid, module->path, proc_basename(fw->version_file),
				       fw->version_key, version);
	}
	if (!version[0])
		version_of_name(proc_basename(library->path), version);
}

/* ---- CPython and runtimes ---- */

/*
 * Copies "3.11" or "3.13t" from the start of text, after which the text must end or go on with a
 * character of `after`.
 */
static bool take_python(const char *text, const char *after, char version[DISCOVER_VERSION_BYTES])
{
	size_t n = strspn(text, "0123456789"), minor;

	if (!n || text[n] != '.')
		return false;
	minor = strspn(text + n + 1, "0123456789");
	if (!minor)
		return false;
	n += 1 + minor;
	/* suffixes: free-threaded, debug, and pymalloc (3.7 and older) */
	n += strspn(text + n, "tdm");
	if (text[n] && !strchr(after, text[n]))
		return false;
	copy_version(version, text, n);
	return true;
}

void discover_python(pid_t pid, const struct proc_maps *maps, char version[DISCOVER_VERSION_BYTES])
{
	const struct proc_map *library = find_library(maps, "libpython[0-9]*.so*");
	char *exe;

	version[0] = '\0';
	if (library &&
	    take_python(proc_basename(library->path) + strlen("libpython"), ".", version))
		return;
	if (proc_exe(pid, &exe))
		return;
	if (!strncmp(proc_basename(exe), "python", 6))
		take_python(proc_basename(exe) + 6, "-", version);
	free(exe);
}

/* The part of a name that the last "*" of a matching glob stands for; NULL: the glob has none. */
static const char *last_star(const char *glob, const char *name, size_t *len)
{
	const char *star = strrchr(glob, '*');
	size_t name_len = strlen(name), tail_len;
	char head[128], start[256];

	if (!star || (size_t)(star - glob) >= sizeof(head) || name_len >= sizeof(start))
		return NULL;
	tail_len = strlen(star + 1);
	snprintf(head, sizeof(head), "%.*s", (int)(star - glob), glob);
	for (size_t at = 0; at + tail_len <= name_len; at++) {
		snprintf(start, sizeof(start), "%.*s", (int)at, name);
		if (catalog_match(head, start)) {
			*len = name_len - tail_len - at;
			return name + at;
		}
	}
	return NULL;
}

/* Appends "name version", after a comma unless out is empty. */
static void append_name(char *out, size_t bytes, const char *name, const char *version)
{
	size_t at = strlen(out);

	snprintf(out + at, bytes - at, "%s%s%s%s", at ? ", " : "", name, version[0] ? " " : "",
		 version);
}

void discover_runtimes(const struct proc_maps *maps, char *out, size_t bytes)
{
	const struct catalog_runtime *rt;

	out[0] = '\0';
	for (size_t i = 0; (rt = catalog_runtime_at(i)); i++) {
		const struct proc_map *map = NULL;
		char version[DISCOVER_VERSION_BYTES] = "";
		const char *const *glob;
		const char *found;
		size_t len;

		for (glob = rt->libraries; *glob && !map; glob += !map)
			map = find_library(maps, *glob);
		if (!map)
			continue;
		found = last_star(*glob, proc_basename(map->path), &len);
		if (found)
			copy_version(version, found, len);
		append_name(out, bytes, rt->name, version);
	}
}

void discover_frameworks(pid_t pid, const struct proc_maps *maps, char *out, size_t bytes)
{
	out[0] = '\0';
	for (const struct catalog_framework *const *fw = catalog_frameworks; *fw; fw++) {
		char version[DISCOVER_VERSION_BYTES];

		if ((*fw)->is_runtime || !discover_library(maps, *fw))
			continue;
		discover_version(pid, maps, *fw, version);
		append_name(out, bytes, (*fw)->name, version);
	}
}

/* ---- the list ---- */

/* Where it runs; both "": in no container. */
struct place {
	char container[CONTAINER_ID_BYTES];
	char pod[sizeof(struct pod_names) + 3];
};

struct listing {
	bool all;
	int (*fn)(void *ctx, const struct kprof_process_info *info);
	void *ctx;
	size_t unreadable; /* processes that may not be read */
	struct pod_names_list pods;
};

static void find_place(struct listing *l, pid_t pid, struct place *to)
{
	const struct pod_names *names;
	char *cgroup;

	to->container[0] = to->pod[0] = '\0';
	if (proc_cgroup(pid, &cgroup))
		return;
	container_id(cgroup, to->container);
	if (container_pod(cgroup, to->pod)) {
		names = pod_names_list__find(&l->pods, POD_NAMES_FOLDER, to->container);
		if (names)
			snprintf(to->pod, sizeof(to->pod), "%s/%s/%s", names->space, names->pod,
				 names->container);
	}
	free(cgroup);
}

static int list_one(struct listing *l, const struct proc_info *who, const struct proc_maps *maps)
{
	char frameworks[NAMES_BYTES], runtimes[NAMES_BYTES], python[DISCOVER_VERSION_BYTES];
	struct place place;
	struct kprof_process_info info = {
		.pid = who->pid,
		.ppid = who->ppid,
		.uid = who->uid,
		.nr_threads = who->nr_threads,
		.comm = who->comm,
		.frameworks = frameworks,
		.runtimes = runtimes,
		.python = python,
		.container = place.container,
		.pod = place.pod,
	};
	char *cmdline;
	int stop;

	discover_frameworks(who->pid, maps, frameworks, sizeof(frameworks));
	discover_runtimes(maps, runtimes, sizeof(runtimes));
	if (!l->all && !frameworks[0] && !runtimes[0])
		return 0;
	info.has_agent = find_library(maps, KPROF_AGENT_LIBRARIES);
	discover_python(who->pid, maps, python);
	find_place(l, who->pid, &place);
	if (proc_cmdline(who->pid, &cmdline))
		return 0; /* the process has ended */
	info.cmdline = cmdline;
	stop = l->fn(l->ctx, &info);
	free(cmdline);
	return stop;
}

static int look_at(struct listing *l, pid_t pid)
{
	struct proc_maps *maps;
	struct proc_info who;
	int err;

	if (proc_info_read(pid, &who) || who.kernel_thread || who.zombie)
		return 0;
	err = proc_maps__read(pid, &maps);
	if (err) {
		l->unreadable += err == -EACCES;
		return 0;
	}
	err = list_one(l, &who, maps);
	proc_maps__free(maps);
	return err;
}

int kprof_list_processes(bool all, int (*fn)(void *ctx, const struct kprof_process_info *info),
			 void *ctx)
{
	struct listing l = {.all = all, .fn = fn, .ctx = ctx};
	pid_t *pids = NULL;
	size_t nr = 0;
	int stop = 0;

	error_clear();
	stop = proc_pids(&pids, &nr);
	for (size_t i = 0; i < nr && !stop; i++)
		stop = look_at(&l, pids[i]);
	free(pids);
	pod_names_list__free(&l.pods);
	if (!stop)
		error_clear();         /* errors of processes that were skipped */
	if (l.unreadable && geteuid()) /* the hint does not help root */
		log_warn("run it with sudo to see them too",
			 "%zu process%s could not be looked into", l.unreadable,
			 l.unreadable == 1 ? "" : "es");
	return stop;
}
