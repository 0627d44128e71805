// SPDX-License-Identifier: BSD-2-Clause
/* A process's mapped files, from /proc/PID/maps. */
#include "capture/process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "util/error.h"
#include "util/foreign.h"
#include "util/sandbox.h"
#include "util/util.h"

#define MAPS_MAX_BYTES (1u << 30) /* some 10 M mappings: far above vm.max_map_count */
#define NO_MAP UINT32_MAX

struct proc_maps {
	char *text; /* the paths point into it */
	struct proc_map *maps;
	uint32_t *next_of_file, *first_of_file; /* indexes of mappings, by index; NO_MAP: none */
	size_t nr, cap;
	unsigned int nr_sharers; /* owners beside the first */
};

static uint64_t take_number(char **at, int base)
{
	return strtoull(*at, at, base);
}

static uint32_t parse_perms(const char *perms)
{
	return (perms[0] == 'r' ? PROC_MAP_READ : 0) | (perms[1] == 'w' ? PROC_MAP_WRITE : 0) |
	       (perms[2] == 'x' ? PROC_MAP_EXEC : 0) | (perms[3] == 's' ? PROC_MAP_SHARED : 0);
}

/*
 * The kernel writes a newline in a path as \012 (seq_file_path, fs/seq_file.c): restores it in
 * place.
 */
static void unescape_newlines(char *path)
{
	char *to = path;

	for (char *from = path; *from;) {
		if (!strncmp(from, "\\012", 4)) {
			*to++ = '\n';
			from += 4;
		} else {
			*to++ = *from++;
		}
	}
	*to = '\0';
}

static void parse_path(char *path, struct proc_map *map)
{
	static const char deleted[] = " (deleted)";
	size_t len = strlen(path), tail = sizeof(deleted) - 1;

	map->path = path;
	if (path[0] != '/' || !map->inode)
		return;
	map->flags |= PROC_MAP_FILE;
	if (len > tail && !strcmp(path + len - tail, deleted)) {
		path[len - tail] = '\0';
		map->flags |= PROC_MAP_DELETED;
	}
	unescape_newlines(path);
}

/* "start-end perms offset major:minor inode   path", numbers but the inode in hex; proc(5). */
static int parse_line(char *line, struct proc_map *map)
{
	uint64_t major_nr;
	char *at = line;

	map->start = take_number(&at, 16);
	if (*at++ != '-')
		return -EPROTO;
	map->end = take_number(&at, 16);
	if (*at++ != ' ' || strlen(at) < 5 || at[4] != ' ')
		return -EPROTO;
	map->flags = parse_perms(at);
	at += 5;
	map->offset = take_number(&at, 16);
	if (*at++ != ' ')
		return -EPROTO;
	major_nr = take_number(&at, 16);
	if (*at++ != ':')
		return -EPROTO;
	map->dev = makedev((unsigned int)major_nr, (unsigned int)take_number(&at, 16));
	if (*at++ != ' ')
		return -EPROTO;
	map->inode = take_number(&at, 10);
	at += strspn(at, " ");
	parse_path(at, map);
	return map->end > map->start ? 0 : -EPROTO;
}

/*
 * The kernel prints the maps in pieces and releases its lock in between. When the process maps
 * something meanwhile, a later line may overlap an earlier one. The later line wins.
 */
static int add_map(struct proc_maps *m, const struct proc_map *map)
{
	int err;

	while (m->nr && m->maps[m->nr - 1].start >= map->start)
		m->nr--;
	if (m->nr && m->maps[m->nr - 1].end > map->start)
		m->maps[m->nr - 1].end = map->start;
	err = vec_grow((void **)&m->maps, &m->cap, m->nr, sizeof(*m->maps));
	if (!err)
		m->maps[m->nr++] = *map;
	return err;
}

static int parse_lines(struct proc_maps *m)
{
	for (char *line = m->text, *next; *line; line = next) {
		char *end = strchr(line, '\n');
		struct proc_map map = {0};
		int err;

		if (!end) /* cut short: the process ended while it was read */
			break;
		*end = '\0';
		next = end + 1;
		err = parse_line(line, &map);
		if (!err)
			err = add_map(m, &map);
		if (err)
			return err;
	}
	return 0;
}

/* ---- files ---- */

static int compare_files(const void *a, const void *b)
{
	const struct proc_map *x = *(const struct proc_map *const *)a;
	const struct proc_map *y = *(const struct proc_map *const *)b;

	if (x->inode != y->inode)
		return x->inode < y->inode ? -1 : 1;
	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* Chains the mappings of one file, in order of address. */
static int link_files(struct proc_maps *m)
{
	const struct proc_map **sorted = calloc(m->nr + 1, sizeof(*sorted));
	size_t nr = 0;

	m->next_of_file = calloc(m->nr + 1, sizeof(*m->next_of_file));
	m->first_of_file = calloc(m->nr + 1, sizeof(*m->first_of_file));
	if (!sorted || !m->next_of_file || !m->first_of_file) {
		free(sorted);
		return -ENOMEM;
	}
	for (size_t i = 0; i < m->nr; i++) {
		m->first_of_file[i] = (uint32_t)i;
		m->next_of_file[i] = NO_MAP;
		if (m->maps[i].flags & PROC_MAP_FILE)
			sorted[nr++] = &m->maps[i];
	}
	if (nr)
		qsort(sorted, nr, sizeof(*sorted), compare_files);
	for (size_t i = 1; i < nr; i++) {
		size_t before = (size_t)(sorted[i - 1] - m->maps);
		size_t here = (size_t)(sorted[i] - m->maps);

		if (sorted[i]->inode != sorted[i - 1]->inode ||
		    sorted[i]->dev != sorted[i - 1]->dev)
			continue;
		m->next_of_file[before] = (uint32_t)here;
		m->first_of_file[here] = m->first_of_file[before];
	}
	free(sorted);
	return 0;
}

/* Creates the snapshot from the text, which it then owns. */
static int maps_new(char *text, struct proc_maps **out)
{
	struct proc_maps *m = calloc(1, sizeof(*m));
	int err;

	if (!m) {
		free(text);
		return error_set(-ENOMEM, NULL, "out of memory");
	}
	m->text = text;
	err = parse_lines(m);
	if (!err)
		err = link_files(m);
	if (err) {
		proc_maps__free(m);
		return error_set(err, NULL, "a memory map in /proc cannot be understood: %s",
				 strerror(-err));
	}
	*out = m;
	return 0;
}

int proc_maps__parse(const char *text, struct proc_maps **out)
{
	char *copy = strdup(text);

	if (!copy)
		return error_set(-ENOMEM, NULL, "out of memory");
	return maps_new(copy, out);
}

int proc_maps__none(const struct proc_info *info)
{
	if (info->kernel_thread)
		return error_set(-EINVAL, "give the number of a program",
				 "process %d (%s) is a thread of the kernel", (int)info->pid,
				 info->comm);
	return error_set(-ESRCH, NULL, "process %d (%s) has exited", (int)info->pid, info->comm);
}

static int maps_empty(pid_t pid)
{
	struct proc_info info;
	int err = proc_info_read(pid, &info);

	return err ? err : proc_maps__none(&info);
}

int proc_maps__read(pid_t pid, struct proc_maps **out)
{
	char path[64], *text = NULL;
	size_t bytes = 0;
	int err;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	err = foreign_text(path, MAPS_MAX_BYTES, &text, &bytes);
	if (err == -ESRCH) /* it may have executed another program meanwhile */
		err = foreign_text(path, MAPS_MAX_BYTES, &text, &bytes);
	if (err == -EACCES || err == -EPERM)
		return error_set_machine(
			-EACCES,
			geteuid()
				? "run it with sudo"
				: "the process is protected from tracing: by a security module, or it is init",
			"the libraries of process %d cannot be seen: permission denied", (int)pid);
	if (err == -ENOENT || err == -ESRCH)
		return maps_empty(pid);
	if (err)
		return error_set(err, NULL, "the libraries of process %d cannot be seen: %s",
				 (int)pid, strerror(-err));
	if (!bytes) {
		free(text);
		return maps_empty(pid);
	}
	return maps_new(text, out);
}

size_t proc_maps__nr(const struct proc_maps *m)
{
	return m ? m->nr : 0;
}

const struct proc_map *proc_maps__at(const struct proc_maps *m, size_t i)
{
	return i < proc_maps__nr(m) ? &m->maps[i] : NULL;
}

const struct proc_map *proc_maps__find(const struct proc_maps *m, uint64_t addr)
{
	/* the first map that ends after addr is in [low, high] */
	size_t low = 0, nr = proc_maps__nr(m), high = nr;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (m->maps[mid].end <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low < nr && m->maps[low].start <= addr ? &m->maps[low] : NULL;
}

const struct proc_map *proc_maps__next_of_file(const struct proc_maps *m,
					       const struct proc_map *map)
{
	uint32_t next = m->next_of_file[map - m->maps];

	return next == NO_MAP ? NULL : &m->maps[next];
}

const struct proc_map *proc_maps__first_of_file(const struct proc_maps *m,
						const struct proc_map *map)
{
	return &m->maps[m->first_of_file[map - m->maps]];
}

bool proc_maps__has_code(const struct proc_maps *maps, const struct proc_map *map)
{
	for (; map; map = proc_maps__next_of_file(maps, map))
		if (map->flags & PROC_MAP_EXEC)
			return true;
	return false;
}

struct proc_maps *proc_maps__share(struct proc_maps *m)
{
	if (m)
		m->nr_sharers++;
	return m;
}

void proc_maps__free(struct proc_maps *m)
{
	if (!m || m->nr_sharers) {
		if (m)
			m->nr_sharers--;
		return;
	}
	free(m->text);
	free(m->maps);
	free(m->next_of_file);
	free(m->first_of_file);
	free(m);
}

const char *proc_basename(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/*
 * Does the path still lead to the mapped file? The kernel reports it without symbolic links. So a
 * link is not followed: the process may have put it there since, to a place where only kprof may
 * read.
 */
static bool is_mapped_file(pid_t pid, const struct proc_map *map)
{
	struct stat st = {0};
	char root[40];
	int fd;

	if (map->flags & PROC_MAP_DELETED)
		return false;
	snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
	fd = open_in_root(root, map->path, O_NOFOLLOW | OPEN_NO_COPY);
	if (fd < 0)
		return false;
	if (fstat(fd, &st))
		st.st_ino = 0;
	close(fd);
	return st.st_ino && st.st_ino == map->inode;
}

int proc_map_open_path(pid_t pid, const struct proc_map *map, char *buf, size_t bytes)
{
	struct foreign_file file;

	snprintf(buf, bytes, "/proc/%d/map_files/%llx-%llx", (int)pid,
		 (unsigned long long)map->start, (unsigned long long)map->end);
	if (!foreign_look(buf, &file) && file.regular)
		return 0;
	if ((size_t)snprintf(buf, bytes, "/proc/%d/root%s", (int)pid, map->path) < bytes &&
	    is_mapped_file(pid, map))
		return 0;
	return error_set(-ENOENT, sandbox_lacks_for_files(-ENOENT),
			 "%s, mapped by process %d, cannot be opened", map->path, (int)pid);
}
