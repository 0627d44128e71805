// SPDX-License-Identifier: BSD-2-Clause
/*
 * Unwind tables on disk: the same as those that are built anew, never of another file, never from
 * what is damaged.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/disk_cache.h"
#include "symbol/unwind/priv.h"
#include "unit.h"
#include "util/util.h"

static char directory[] = "/tmp/kprof-unwind-cache-XXXXXX";
static char cache_path[64], copy_path[64];

static struct elffile *open_elf(const char *path)
{
	struct elffile *e = NULL;

	if (elffile__open(path, &e))
		abort();
	return e;
}

static struct unwind_rules *new_rules(void)
{
	struct unwind_rules *rules;

	if (unwind_rules__new(&rules))
		abort();
	return rules;
}

/* Numbers that no other session has: rules of no file come first. */
static struct unwind_rules *other_rules(void)
{
	struct unwind_rules *rules = new_rules();

	for (int i = 0; i < 100; i++) {
		struct kprof_unwind_rule rule = {.how = KPROF_UNWIND_SP, .cfa = 1 + 8 * i};

		unwind_rules__intern(rules, &rule);
	}
	return rules;
}

/* Page by page, row by row, rules by what they say. */
static bool same(const struct unwind_table *a, struct unwind_rules *a_rules,
		 const struct unwind_table *b, struct unwind_rules *b_rules)
{
	static struct kprof_unwind_rule all_a[KPROF_UNWIND_MAX_RULES],
		all_b[KPROF_UNWIND_MAX_RULES];

	unwind_rules__copy(a_rules, 0, all_a, KPROF_UNWIND_MAX_RULES);
	unwind_rules__copy(b_rules, 0, all_b, KPROF_UNWIND_MAX_RULES);
	if (a->first_page != b->first_page || a->nr_pages != b->nr_pages ||
	    a->nr_rows != b->nr_rows || memcmp(&a->counts, &b->counts, sizeof(a->counts)) ||
	    memcmp(a->pages, b->pages, a->nr_pages * sizeof(*a->pages)))
		return false;
	for (size_t i = 0; i < a->nr_rows; i++)
		if (a->rows[i].at != b->rows[i].at ||
		    memcmp(&all_a[a->rows[i].rule], &all_b[b->rows[i].rule], sizeof(*all_a)))
			return false;
	return true;
}

/* From a copy of the bytes. */
static int unpack(const char *blob, size_t bytes, uint64_t stamp, struct unwind_rules *rules,
		  struct unwind_table **out)
{
	char *copy = malloc(bytes + 1);

	if (!copy)
		abort();
	memcpy(copy, blob, bytes);
	return unwind_blob__unpack(copy, bytes, stamp, rules, out);
}

/* ---- as bytes ---- */

static size_t nr_files, nr_rows;

static int check_file(struct dl_phdr_info *info, size_t size, void *ctx)
{
	const char *path = *info->dlpi_name ? info->dlpi_name : "/proc/self/exe";
	struct unwind_rules *rules = new_rules(), *others = other_rules();
	struct unwind_table *built, *unpacked = NULL;
	char *blob, *again;
	size_t bytes, again_bytes;
	struct elffile *e;

	(void)size;
	(void)ctx;
	if (access(path, R_OK)) /* the vDSO */
		goto out;
	e = open_elf(path);
	if (!unwind_table__build(e, rules, NULL, &built)) {
		blob = unwind_blob__pack(built, rules, 7, &bytes);
		CHECK_EQ(unpack(blob, bytes, 8, others, &unpacked), -ESTALE);
		CHECK_EQ(unpack(blob, bytes, 7, others, &unpacked), 0);
		CHECK(unpacked && same(built, rules, unpacked, others));
		if (unpacked) {
			again = unwind_blob__pack(unpacked, others, 7, &again_bytes);
			CHECK(bytes == again_bytes && !memcmp(blob, again, bytes));
			free(again);
		}
		nr_files++;
		nr_rows += built->nr_rows;
		unwind_table__free(unpacked);
		unwind_table__free(built);
		free(blob);
	}
	elffile__close(e);
out:
	unwind_rules__free(rules);
	unwind_rules__free(others);
	return 0;
}

static void packed_and_unpacked(void)
{
	dl_iterate_phdr(check_file, NULL);
	CHECK(nr_files >= 3);
	CHECK(nr_rows > 20000);
}

static void damaged_bytes(void)
{
	struct unwind_rules *rules = new_rules();
	struct elffile *e = open_elf("/proc/self/exe");
	struct unwind_table *built, *t;
	size_t bytes;
	char *blob;

	CHECK_EQ(unwind_table__build(e, rules, NULL, &built), 0);
	blob = unwind_blob__pack(built, rules, 7, &bytes);
	for (size_t i = 0; i < bytes; i += 1 + bytes / 200) {
		blob[i] ^= 0x10;
		CHECK_EQ(unpack(blob, bytes, 7, rules, &t), -EBADMSG);
		blob[i] ^= 0x10;
		CHECK_EQ(unpack(blob, i, 7, rules, &t), -EBADMSG);
	}
	CHECK_EQ(unpack(blob, bytes, 7, rules, &t), 0);
	unwind_table__free(t);
	unwind_table__free(built);
	free(blob);
	elffile__close(e);
	unwind_rules__free(rules);
}

/* ---- on disk ---- */

/* The C library: big enough to be worth it. */
static const char *big_file(void)
{
	Dl_info info;

	if (!dladdr((const void *)(uintptr_t)&fopen, &info))
		abort();
	return info.dli_fname;
}

static void copy_of_big_file(void)
{
	char buf[65536];
	int from = open(big_file(), O_RDONLY), to;
	ssize_t n;

	unlink(copy_path);
	to = open(copy_path, O_RDWR | O_CREAT | O_EXCL, 0700);
	if (from < 0 || to < 0)
		abort();
	while ((n = read(from, buf, sizeof(buf))) > 0)
		if (write(to, buf, (size_t)n) != n)
			abort();
	close(from);
	close(to);
}

struct got {
	size_t read, written;
	bool same; /* as without a cache */
};

static struct got get(void)
{
	struct unwind_cache cache = {.dir = disk_cache__open(cache_path)};
	struct unwind_rules *rules = other_rules(), *others = new_rules();
	struct unwind_table *t = NULL, *want = NULL;
	struct elffile *e = open_elf(copy_path);
	struct got got = {0};

	CHECK_EQ(unwind_table__get(e, rules, NULL, &cache, &t), 0);
	CHECK_EQ(unwind_table__build(e, others, NULL, &want), 0);
	got.same = t && want && same(t, rules, want, others);
	got.read = cache.nr_read;
	got.written = cache.nr_written;
	unwind_table__free(t);
	unwind_table__free(want);
	elffile__close(e);
	unwind_rules__free(rules);
	unwind_rules__free(others);
	if (cache.dir >= 0)
		close(cache.dir);
	return got;
}

static size_t files(char *path)
{
	DIR *d = opendir(cache_path);
	const struct dirent *e;
	size_t nr = 0;

	while (d && (e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		if (path)
			snprintf(path, PATH_MAX, "%s/%s", cache_path, e->d_name);
		nr++;
	}
	if (d)
		closedir(d);
	return nr;
}

/*
 * A file that was changed a moment ago is not kept yet. Where the moment was over when that was
 * asked, it is asked again.
 */
static struct got get_written(void)
{
	const uint64_t moment_ns = 2 * NSEC_PER_SEC;
	bool in_time = false;
	struct got got = {0};
	char path[PATH_MAX];

	for (int i = 0; i < 20 && !in_time; i++) {
		uint64_t began_ns = clock_mono_ns();

		while (files(path))
			CHECK_EQ(unlink(path), 0);
		copy_of_big_file();
		got = get();
		in_time = clock_mono_ns() - began_ns < moment_ns;
		CHECK(!in_time || !got.written);
	}
	CHECK(in_time);
	for (int i = 0; i < 600 && !got.read && !got.written; i++) {
		CHECK(got.same);
		usleep(20000);
		got = get();
	}
	return got;
}

/* How often it was read, and written, just now. */
#define CHECK_GOT(how, nr_read, nr_written)         \
	do {                                        \
		struct got now_ = (how);            \
		CHECK_EQ(now_.read, nr_read);       \
		CHECK_EQ(now_.written, nr_written); \
		CHECK(now_.same);                   \
	} while (0)

static void kept_and_found(void)
{
	char path[PATH_MAX];
	struct stat st;

	CHECK_GOT(get_written(), 0, 1);
	CHECK_GOT(get(), 1, 0);
	CHECK_EQ(files(path), 1);
	CHECK(!stat(path, &st) && (st.st_mode & 0777) == 0600);
	CHECK(!stat(cache_path, &st) && (st.st_mode & 0777) == 0700);
}

/* Of kept_and_found()'s file. */
static void damaged_or_somebody_elses(void)
{
	char path[PATH_MAX];
	int fd;

	CHECK_EQ(files(path), 1);
	fd = open(path, O_RDWR);
	CHECK_EQ(pwrite(fd, "x", 1, 5000), 1);
	CHECK_GOT(get(), 0, 1);
	CHECK_GOT(get(), 1, 0);
	close(fd);
	CHECK_EQ(truncate(path, 1000), 0);
	CHECK_GOT(get(), 0, 1);
	CHECK_EQ(chmod(path, 0620), 0);
	CHECK_GOT(get(), 0, 1);
	CHECK_GOT(get(), 1, 0);
	if (!geteuid()) {
		CHECK_EQ(chown(path, 1, 0), 0);
		CHECK_GOT(get(), 0, 1);
	}
	CHECK_EQ(unlink(path), 0);
	CHECK_EQ(mkdir(path, 0700), 0);
	CHECK_GOT(get(), 0, 0);
	CHECK_EQ(rmdir(path), 0);
	CHECK_GOT(get(), 0, 1);
	CHECK_EQ(chmod(cache_path, 0777), 0);
	CHECK_GOT(get(), 0, 0);
	CHECK_EQ(chmod(cache_path, 0700), 0);
	CHECK_GOT(get(), 1, 0);
}

/*
 * With the same build id, in the same place, of the same size and, as far as one can see, of the
 * same time.
 */
static void another_file_under_the_same_name(void)
{
	struct timespec times[2];
	struct stat st;
	struct got got;
	int fd;

	CHECK_GOT(get(), 1, 0);
	CHECK(!stat(copy_path, &st));
	times[0] = st.st_atim;
	times[1] = st.st_mtim;
	fd = open(copy_path, O_RDWR);
	CHECK_EQ(pwrite(fd, "\x90", 1, st.st_size / 2), 1);
	CHECK_EQ(futimens(fd, times), 0);
	close(fd);
	got = get();
	CHECK(!got.read && got.same);
}

static void no_name_no_place(void)
{
	struct unwind_cache cache = {.dir = disk_cache__open(cache_path)};
	struct unwind_rules *rules = new_rules();
	struct unwind_table *t;
	struct elffile *e = open_elf(copy_path);
	char path[64];
	int fd = open(copy_path, O_RDONLY);

	elffile__close(e);
	unlink(copy_path);
	usleep(2100000); /* it would be kept by now */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	e = open_elf(path);
	CHECK_EQ(unwind_table__get(e, rules, NULL, &cache, &t), 0);
	CHECK_EQ(cache.nr_written, 0);
	unwind_table__free(t);
	elffile__close(e);
	close(fd);
	close(cache.dir);
	cache.dir = -1;
	e = open_elf(big_file());
	CHECK_EQ(unwind_table__get(e, rules, NULL, &cache, &t), 0);
	CHECK_EQ(cache.nr_written, 0);
	unwind_table__free(t);
	elffile__close(e);
	unwind_rules__free(rules);
}

/* What one session had no room for, another has. */
static void tables_without_all_their_rules(void)
{
	struct unwind_cache cache = {.dir = disk_cache__open(cache_path)};
	struct unwind_rules *full = new_rules(), *rules = new_rules();
	struct elffile *e = open_elf(big_file());
	struct unwind_table *t;
	size_t before;

	for (int i = 0; i < KPROF_UNWIND_MAX_RULES; i++) {
		struct kprof_unwind_rule rule = {.how = KPROF_UNWIND_SP, .cfa = 1 + 8 * i};

		unwind_rules__intern(full, &rule);
	}
	before = files(NULL);
	CHECK_EQ(unwind_table__get(e, full, NULL, &cache, &t), 0);
	CHECK(t->rules_full > 0);
	CHECK_EQ(files(NULL), before);
	unwind_table__free(t);
	/* And the other way round: it is there, and finds no room. */
	CHECK_EQ(unwind_table__get(e, rules, NULL, &cache, &t), 0);
	CHECK_EQ(cache.nr_written, 1);
	unwind_table__free(t);
	CHECK_EQ(unwind_table__get(e, full, NULL, &cache, &t), 0);
	CHECK(t->rules_full > 0);
	CHECK_EQ(cache.nr_read, 0);
	unwind_table__free(t);
	elffile__close(e);
	unwind_rules__free(full);
	unwind_rules__free(rules);
	close(cache.dir);
}

/* Tables and names share one bound: what was not used for longest goes. */
static void within_the_bound(void)
{
	static const char *const names[] = {"00000000.sym", "00000001-1.unw", "00000002.sym",
					    "00000003-1.unw"};
	int dir = disk_cache__open(cache_path);
	char data[1000] = {0}, path[PATH_MAX];
	struct timespec times[2] = {{0}, {.tv_nsec = UTIME_OMIT}};

	while (files(path))
		CHECK_EQ(unlink(path), 0);
	for (int i = 0; i < 4; i++) {
		CHECK(disk_cache__write(dir, names[i], data, sizeof(data)));
		times[0].tv_sec = i == 0 ? 1000 : 500 + i;
		CHECK_EQ(utimensat(dir, names[i], times, 0), 0);
	}
	disk_cache__trim(dir, 2000);
	CHECK_EQ(files(NULL), 2);
	CHECK_EQ(faccessat(dir, names[0], F_OK, 0), 0);
	CHECK_EQ(faccessat(dir, names[3], F_OK, 0), 0);
	close(dir);
}

static void make_directory(void)
{
	if (!mkdtemp(directory))
		abort();
	snprintf(cache_path, sizeof(cache_path), "%s/cache", directory);
	snprintf(copy_path, sizeof(copy_path), "%s/copy", directory);
}

static void remove_directory(void)
{
	char path[PATH_MAX];

	while (files(path))
		CHECK_EQ(unlink(path), 0);
	unlink(copy_path);
	CHECK_EQ(rmdir(cache_path), 0);
	CHECK_EQ(rmdir(directory), 0);
}

UNIT_MAIN(TEST(make_directory), TEST(packed_and_unpacked), TEST(damaged_bytes),
	  TEST(kept_and_found), TEST(damaged_or_somebody_elses),
	  TEST(another_file_under_the_same_name), TEST(no_name_no_place),
	  TEST(tables_without_all_their_rules), TEST(within_the_bound), TEST(remove_directory))
