// SPDX-License-Identifier: BSD-2-Clause
/*
 * Texts about processes: /proc/PID/maps, stat, status, cmdline and environ, which hold names of the
 * process's own choice, and version files, which anybody may have written. The first byte says as
 * what the rest is read. What is understood and written again must be understood as the same.
 */
#include <ctype.h>
#include <inttypes.h>
#include <sys/sysmacros.h>

#include "capture/process/priv.h"
#include "fuzz.h"
#include "util/container.h"
#include "util/utf8.h"

#define NOBODY 0x7fffffff /* no process has this number */

/* ---- maps ---- */

static void write_path(FILE *f, const struct proc_map *map)
{
	for (const char *p = map->path; *p; p++)
		if (*p == '\n')
			fputs("\\012", f);
		else
			fputc(*p, f);
	if (map->flags & PROC_MAP_DELETED)
		fputs(" (deleted)", f);
}

/* As the kernel writes it (show_map_vma, fs/proc/task_mmu.c). */
static char *write_maps(const struct proc_maps *maps)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *f = open_memstream(&text, &bytes);

	REQUIRE(f);
	for (size_t i = 0; i < proc_maps__nr(maps); i++) {
		const struct proc_map *m = proc_maps__at(maps, i);

		fprintf(f,
			"%08" PRIx64 "-%08" PRIx64 " %c%c%c%c %08" PRIx64 " %02x:%02x %" PRIu64 " ",
			m->start, m->end, m->flags & PROC_MAP_READ ? 'r' : '-',
			m->flags & PROC_MAP_WRITE ? 'w' : '-', m->flags & PROC_MAP_EXEC ? 'x' : '-',
			m->flags & PROC_MAP_SHARED ? 's' : 'p', m->offset, major(m->dev),
			minor(m->dev), m->inode);
		write_path(f, m);
		fputc('\n', f);
	}
	fclose(f);
	return text;
}

static void check_maps(const struct proc_maps *maps)
{
	for (size_t i = 0; i < proc_maps__nr(maps); i++) {
		const struct proc_map *m = proc_maps__at(maps, i), *next;

		REQUIRE(m->start < m->end);
		REQUIRE(!i || proc_maps__at(maps, i - 1)->end <= m->start);
		REQUIRE(proc_maps__find(maps, m->start) == m);
		REQUIRE(proc_maps__find(maps, m->end - 1) == m);
		next = proc_maps__next_of_file(maps, m);
		REQUIRE(!next || (next > m && next->inode == m->inode && next->dev == m->dev));
		REQUIRE(!next ||
			proc_maps__first_of_file(maps, next) == proc_maps__first_of_file(maps, m));
		REQUIRE(proc_maps__first_of_file(maps, m) <= m);
	}
	REQUIRE(!proc_maps__at(maps, proc_maps__nr(maps)));
}

static void check_names(const struct proc_maps *maps)
{
	char names[64]; /* too small for many */

	discover_frameworks(NOBODY, maps, names, sizeof(names));
	REQUIRE(memchr(names, '\0', sizeof(names)));
	discover_runtimes(maps, names, sizeof(names));
	REQUIRE(memchr(names, '\0', sizeof(names)));
}

static void use_maps(const char *text)
{
	struct proc_maps *maps, *again;
	char *copy;

	if (proc_maps__parse(text, &maps))
		return;
	check_maps(maps);
	check_names(maps);
	copy = write_maps(maps);
	REQUIRE(!proc_maps__parse(copy, &again));
	REQUIRE(proc_maps__nr(maps) == proc_maps__nr(again));
	for (size_t i = 0; i < proc_maps__nr(maps); i++) {
		const struct proc_map *a = proc_maps__at(maps, i), *b = proc_maps__at(again, i);

		REQUIRE(a->start == b->start && a->end == b->end && a->offset == b->offset);
		REQUIRE(a->inode == b->inode && a->dev == b->dev && a->flags == b->flags);
		REQUIRE(!strcmp(a->path, b->path));
	}
	free(copy);
	proc_maps__free(again);
	proc_maps__free(maps);
}

/* ---- stat, status ---- */

static void use_stat(char *text)
{
	struct proc_info info = {0};

	if (!proc_parse_stat(text, &info))
		REQUIRE(memchr(info.comm, '\0', sizeof(info.comm)));
}

/* A line as the kernel writes it, with any name, is read as what was written. */
static void stat_again(struct fuzz_input in)
{
	uint32_t ppid = (uint32_t)fuzz_number(&in, 4) & INT32_MAX;
	uint32_t flags = (uint32_t)fuzz_number(&in, 4), nr_threads = (uint32_t)fuzz_number(&in, 2);
	uint64_t start = fuzz_number(&in, 8);
	struct proc_info info = {0};
	char state = "RSDTtZXx"[fuzz_number(&in, 1) % 8], text[512], *name = fuzz_rest(&in);

	snprintf(text, sizeof(text),
		 "7 (%.64s) %c %u 1 2 0 -1 %u 3 4 5 6 7 8 9 10 20 0 %u 0 %" PRIu64 " 4096 77 1\n",
		 name, state, ppid, flags, nr_threads, start);
	REQUIRE(!proc_parse_stat(text, &info));
	REQUIRE(!strncmp(info.comm, name, sizeof(info.comm) - 1));
	REQUIRE(info.state == state && (uint32_t)info.ppid == ppid);
	REQUIRE(info.nr_threads == nr_threads && info.start_ticks == start);
	REQUIRE(info.kernel_thread == !!(flags & 0x00200000));
	free(name);
}

static void use_status(const char *text)
{
	struct proc_info info = {.pid = 7};
	const char *value = proc_status_value(text, "NSpid");
	pid_t tgid;

	REQUIRE(value >= text && value <= text + strlen(text) ? value > text : !*value);
	proc_parse_status(text, &info, &tgid);
}

static void use_cgroup(char *text)
{
	char id[CONTAINER_ID_BYTES];
	size_t bytes = strlen(text);
	const char *path = proc_parse_cgroup(text);

	REQUIRE(!*path || (path > text && path < text + bytes));
	if (container_id(path, id))
		REQUIRE(*id && strlen(id) < sizeof(id) && strstr(path, id));
	if (container_pod(path, id))
		REQUIRE(strlen(id) == 36);
}

/* ---- arguments, environment, versions ---- */

static void use_args(const char *args, size_t bytes)
{
	char *shown = proc_escape_args(args, bytes);
	const char *value = proc_find_variable(args, bytes, "RANK");
	size_t len = strlen(shown);

	for (size_t i = 0, n; i < len; i += n) {
		n = utf8_printable_len(shown + i, len - i);
		REQUIRE(n);
	}
	REQUIRE(!value || (value >= args + 5 && !memcmp(value - 5, "RANK=", 5) &&
			   (value == args + 5 || !value[-6])));
	free(shown);
}

static void use_version(const char *text)
{
	char version[DISCOVER_VERSION_BYTES] = "";

	discover_parse_version(text, "__version__", version);
	REQUIRE(strlen(version) < sizeof(version));
	for (const char *p = version; *p; p++)
		REQUIRE(isalnum((unsigned char)*p) || strchr(".+-_", *p));
	REQUIRE(!*version || strstr(text, version));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct fuzz_input in = {data, bytes};
	uint64_t what = fuzz_number(&in, 1);
	char *text = fuzz_rest(&in);

	switch (what) {
	case 's':
		use_stat(text);
		break;
	case 'r':
		stat_again(in);
		break;
	case 'u':
		use_status(text);
		break;
	case 'c':
		use_cgroup(text);
		break;
	case 'a':
		use_args(text, in.left);
		break;
	case 'v':
		use_version(text);
		break;
	default:
		use_maps(text);
	}
	free(text);
	return 0;
}
