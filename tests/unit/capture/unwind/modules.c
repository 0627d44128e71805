// SPDX-License-Identifier: BSD-2-Clause
#include "capture/unwind/modules_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kprof.h"
#include "unit.h"

#define MAX_FOUND 64

static struct modules *fresh(unsigned int nr_threads, uint64_t max_rows)
{
	const struct modules_opts opts = {
		.nr_threads = nr_threads, .max_rows = max_rows, .cache_dir = ""};
	struct modules *ms = NULL;

	CHECK_EQ(modules__new(&opts, &ms), 0);
	return ms;
}

/* Every executable file of this process; returns how many mappings. */
static size_t add_own(struct modules *ms, struct module **found)
{
	struct proc_maps *maps;
	size_t nr = 0;

	if (proc_maps__read(getpid(), &maps))
		abort();
	for (size_t i = 0; i < proc_maps__nr(maps) && nr < MAX_FOUND; i++) {
		const struct proc_map *map = proc_maps__at(maps, i);

		if (!(map->flags & PROC_MAP_EXEC) || !(map->flags & PROC_MAP_FILE))
			continue;
		CHECK_EQ(modules__of_map(ms, getpid(), map, &found[nr]), 0);
		nr++;
	}
	proc_maps__free(maps);
	return nr;
}

static void wait_all(struct modules *ms)
{
	for (int i = 0; i < 3000 && !modules__all_done(ms); i++)
		usleep(10000);
	CHECK(modules__all_done(ms));
}

static void are_each_there_once(void)
{
	struct modules *ms = fresh(0, 0);
	struct module *first[MAX_FOUND], *second[MAX_FOUND];
	size_t nr = add_own(ms, first), distinct = modules__nr(ms);

	CHECK(nr >= 3);
	CHECK_EQ(add_own(ms, second), nr);
	CHECK_EQ(modules__nr(ms), distinct);
	CHECK(!memcmp(first, second, nr * sizeof(*first)));
	for (size_t i = 0; i < distinct; i++)
		CHECK_EQ(modules__at(ms, i)->number, i);
	CHECK(!modules__at(ms, distinct));
	modules__free(ms);
}

static void tables_come_from_threads(void)
{
	struct modules *ms = fresh(2, 0);
	struct pollfd fd = {.fd = modules__fd(ms), .events = POLLIN};
	struct module *found[MAX_FOUND], *m;
	size_t taken = 0, ready = 0;
	uint64_t rows = 0;

	add_own(ms, found);
	CHECK_EQ(poll(&fd, 1, 30000), 1);
	wait_all(ms);
	while ((m = modules__take(ms))) {
		taken++;
		ready += module__state(m) == MODULE_READY;
		CHECK_EQ(module__table(m)->nr_pages, m->nr_pages);
		rows += module__table(m)->nr_rows;
	}
	CHECK_EQ(taken, modules__nr(ms));
	CHECK_EQ(ready, taken);
	CHECK_EQ(rows, ms->rows);
	CHECK(modules__build_ns(ms) > 0);
	CHECK_EQ(poll(&fd, 1, 0), 0);
	modules__drop_table(ms, modules__at(ms, 0));
	CHECK(!module__table(modules__at(ms, 0)));
	CHECK_EQ(module__state(modules__at(ms, 0)), MODULE_READY);
	CHECK(ms->rows < rows);
	modules__free(ms);
}

static void built_here_on_demand(void)
{
	struct modules *ms = fresh(0, 0);
	struct module *found[MAX_FOUND];
	struct kprof_unwind_rule rule;

	add_own(ms, found);
	CHECK_EQ(module__state(found[0]), MODULE_PENDING);
	modules__build(ms, found[0]);
	CHECK_EQ(module__state(found[0]), MODULE_READY);
	CHECK(unwind_rules__copy(
		modules__rules(ms),
		unwind_table__find(module__table(found[0]),
				   ((uint64_t)found[0]->table_page << KPROF_UNWIND_PAGE_BITS) +
					   KPROF_UNWIND_PAGE_BYTES - 1),
		&rule, 1));
	modules__want(ms, found[1]); /* no thread: at once */
	CHECK_EQ(module__state(found[1]), MODULE_READY);
	modules__free(ms);
}

static struct module *smallest(struct modules *ms)
{
	struct module *m = modules__at(ms, 0);

	for (size_t i = 1; i < modules__nr(ms); i++)
		if (modules__at(ms, i)->bytes < m->bytes)
			m = modules__at(ms, i);
	return m;
}

/*
 * Without being wanted it would be the last: any other that is pending then shows that it was not.
 */
static void what_is_wanted_comes_first(void)
{
	size_t pending = 0;

	for (int try = 0; try < 100 && !pending; try++) {
		struct modules *ms = fresh(1, 0);
		struct module *found[MAX_FOUND], *m;

		add_own(ms, found);
		m = smallest(ms);
		modules__want(ms, m);
		modules__build(ms, m);
		for (size_t i = 0; i < modules__nr(ms); i++)
			pending += module__state(modules__at(ms, i)) == MODULE_PENDING;
		modules__free(ms);
	}
	CHECK(pending > 0);
}

static void memory_is_bounded(void)
{
	struct modules *ms = fresh(0, 100);
	struct module *found[MAX_FOUND];

	add_own(ms, found);
	modules__build(ms, found[0]);
	CHECK_EQ(module__state(found[0]), MODULE_WITHOUT);
	CHECK(strstr(module__why(found[0]), "too big"));
	CHECK(!found[0]->pointers);
	CHECK_EQ(ms->rows, 0);
	modules__free(ms);
}

static void closing_while_building(void)
{
	for (int i = 0; i < 50; i++) {
		struct modules *ms = fresh(4, 0);
		struct module *found[MAX_FOUND];

		add_own(ms, found);
		usleep((useconds_t)(i * 100));
		modules__free(ms);
	}
	CHECK(1);
}

/* A file mapped to be executed; the mapping as /proc has it. */
static void *map_fd(int fd, size_t bytes, struct proc_maps **maps, const struct proc_map **map)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

	if (at == MAP_FAILED || proc_maps__read(getpid(), maps))
		abort();
	*map = proc_maps__find(*maps, (uint64_t)(uintptr_t)at);
	return at;
}

static int copy_of_self(const char *path)
{
	char buf[65536];
	int from = open("/proc/self/exe", O_RDONLY), to;
	ssize_t n;

	to = path ? open(path, O_RDWR | O_CREAT | O_EXCL, 0700) : memfd_create("copy", 0);
	if (from < 0 || to < 0)
		abort();
	while ((n = read(from, buf, sizeof(buf))) > 0)
		if (write(to, buf, (size_t)n) != n)
			abort();
	close(from);
	return to;
}

static void check_copy(int fd, const char *path)
{
	struct modules *ms = fresh(0, 0);
	const struct proc_map *map;
	struct proc_maps *maps;
	struct module *m;
	void *at = map_fd(fd, 4096, &maps, &map);

	CHECK_EQ(modules__of_map(ms, getpid(), map, &m), 0);
	modules__build(ms, m);
	CHECK_EQ(module__state(m), MODULE_READY);
	CHECK_STR(m->path, path);
	CHECK(m->build_id[0] != '\0');
	proc_maps__free(maps);
	modules__free(ms);
	munmap(at, 4096);
	close(fd);
}

static void deleted_files_and_memfds(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/tmp/kprof-modules-%d", getpid());
	if (geteuid()) {
		printf("# needs root: /proc/PID/map_files\n");
		return;
	}
	check_copy(copy_of_self(NULL), "/memfd:copy");
	int fd = copy_of_self(path);

	unlink(path);
	check_copy(fd, path);
}

static void what_is_no_elf_file(void)
{
	struct modules *ms = fresh(1, 0);
	const struct proc_map *map;
	struct proc_maps *maps;
	struct module *m;
	int fd = memfd_create("code", 0);
	void *at;

	if (geteuid() || ftruncate(fd, 4096))
		return;
	at = map_fd(fd, 4096, &maps, &map);
	CHECK_EQ(modules__of_map(ms, getpid(), map, &m), 0);
	CHECK_EQ(module__state(m), MODULE_WITHOUT);
	CHECK(m->pointers);
	CHECK(!m->elf);
	CHECK(strstr(module__why(m), "not an ELF file"));
	CHECK(modules__all_done(ms));
	CHECK(!modules__take(ms));
	proc_maps__free(maps);
	modules__free(ms);
	munmap(at, 4096);
	close(fd);
}

static void what_cannot_be_opened(void)
{
	static const char text[] =
		"7f0000000000-7f0000001000 r-xp 00000000 fe:01 99  /nowhere/libx.so\n";
	struct modules *ms = fresh(1, 0);
	struct proc_maps *maps;
	struct module *m;

	CHECK_EQ(proc_maps__parse(text, &maps), 0);
	CHECK_EQ(modules__of_map(ms, getpid(), proc_maps__at(maps, 0), &m), 0);
	CHECK_EQ(module__state(m), MODULE_WITHOUT);
	CHECK(!m->pointers);
	CHECK(strstr(module__why(m), "cannot be opened"));
	proc_maps__free(maps);
	modules__free(ms);
}

/* Cut after it was opened. */
static enum module_state build_cut(struct modules *ms, bool here)
{
	const struct proc_map *map;
	struct proc_maps *maps;
	struct module *m;
	int fd = copy_of_self(NULL);
	void *at = map_fd(fd, 4096, &maps, &map);
	enum module_state state;

	CHECK_EQ(modules__of_map(ms, getpid(), map, &m), 0);
	CHECK_EQ(ftruncate(fd, 8192), 0);
	if (here)
		modules__build(ms, m);
	else
		wait_all(ms);
	state = module__state(m);
	if (state == MODULE_WITHOUT)
		CHECK(strstr(module__why(m), "cut short"));
	proc_maps__free(maps);
	munmap(at, 4096);
	close(fd);
	return state;
}

static void a_file_that_is_cut_short(void)
{
	struct module *found[MAX_FOUND];
	enum module_state state = MODULE_READY;
	struct modules *ms = fresh(0, 0);

	CHECK_EQ(build_cut(ms, true), MODULE_WITHOUT);
	modules__free(ms);
	/*
	 * By a thread, which has other things to do first, so that mostly it comes after the cut.
	 */
	for (int i = 0; i < 200 && state != MODULE_WITHOUT; i++) {
		ms = fresh(1, 0);
		add_own(ms, found);
		state = build_cut(ms, false);
		modules__free(ms);
	}
	CHECK_EQ(state, MODULE_WITHOUT);
}

/*
 * The process that showed a file first had ended before it could be opened: others have it all the
 * same.
 */
static void opened_where_it_can_be(void)
{
	struct modules *ms = fresh(0, 0);
	const struct proc_map *map;
	struct proc_maps *maps;
	struct module *gone, *m, *again;
	int fd = copy_of_self(NULL);
	void *at = map_fd(fd, 4096, &maps, &map);

	CHECK_EQ(modules__of_map(ms, 0x7ffffff0, map, &gone), 0);
	CHECK_EQ(module__state(gone), MODULE_WITHOUT);
	CHECK_EQ(modules__of_map(ms, 0x7ffffff0, map, &m), 0);
	CHECK(m == gone);
	CHECK_EQ(modules__of_map(ms, getpid(), map, &m), 0);
	CHECK(m != gone && m->elf && !gone->elf);
	CHECK_EQ(modules__of_map(ms, 0x7ffffff0, map, &again), 0);
	CHECK(again == m);
	modules__build(ms, m);
	CHECK_EQ(module__state(m), MODULE_READY);
	CHECK_EQ(module__state(gone), MODULE_WITHOUT);
	proc_maps__free(maps);
	modules__free(ms);
	munmap(at, 4096);
	close(fd);
}

/* Neither files nor a vDSO that is written to make it grow for ever. */
static void are_not_too_many(void)
{
	struct modules *ms = fresh(0, 0);
	struct module *m, *last = NULL;
	size_t before = 0;
	int err = 0;

	for (int i = 0; i < 1000 && !err; i++)
		err = modules__of_image(ms, "[vdso]", &i, sizeof(i), &m);
	CHECK_EQ(err, -ENOSPC);
	for (unsigned int i = 1; i < 40000; i++) {
		char text[128];
		struct proc_maps *maps;

		snprintf(text, sizeof(text),
			 "7f0000000000-7f0000001000 r-xp 00000000 fe:01 %u  /nowhere/libx.so\n", i);
		CHECK_EQ(proc_maps__parse(text, &maps), 0);
		CHECK_EQ(modules__of_map(ms, 0x7ffffff0, proc_maps__at(maps, 0), &m), 0);
		proc_maps__free(maps);
		if (i == 20000) {
			before = modules__nr(ms);
			last = m;
		}
	}
	CHECK(m == last && !m->elf && modules__nr(ms) == before);
	CHECK(strstr(module__why(m), "more than"));
	modules__free(ms);
}

UNIT_MAIN(TEST(are_each_there_once), TEST(tables_come_from_threads), TEST(built_here_on_demand),
	  TEST(what_is_wanted_comes_first), TEST(memory_is_bounded), TEST(closing_while_building),
	  TEST(deleted_files_and_memfds), TEST(what_is_no_elf_file), TEST(what_cannot_be_opened),
	  TEST(a_file_that_is_cut_short), TEST(opened_where_it_can_be), TEST(are_not_too_many))
