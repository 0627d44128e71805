// SPDX-License-Identifier: BSD-2-Clause
/*
 * Answers on disk: the same as without, never from what is damaged or somebody else's, within a
 * bound.
 */
#include <dirent.h>
#include <fcntl.h>

#include "symbol_fixture.h"

static char *cache; /* the directory */

static struct symbolizer_opts cached_in(const char *dir)
{
	return (struct symbolizer_opts){
		.cache_dir = dir, .debug_dir = "/nonexistent", .lines = true};
}

static struct looked_up look(const char *program, const struct symbolizer_opts *opts, size_t step)
{
	size_t nr;
	uint64_t *vaddrs = section_addresses(program, ".text", step, &nr);

	return look_up(program, opts, vaddrs, nr);
}

/* Looks the program up anew; true: as without a cache. */
static bool answers(const char *program, const struct symbolizer_opts *opts, size_t step,
		    uint64_t cached)
{
	struct symbolizer_opts none = *opts;
	struct looked_up l, want;
	bool same;

	none.cache_dir = "";
	want = look(program, &none, step);
	l = look(program, opts, step);
	CHECK_EQ(l.err, 0);
	CHECK_EQ(want.stats.cached, 0);
	CHECK_EQ(l.stats.cached, cached == UINT64_MAX ? l.nr : cached);
	same = same_answers(&l, &want);
	looked_up_free(&l);
	looked_up_free(&want);
	return same;
}

static unsigned int cache_files(char *name, size_t bytes)
{
	unsigned int nr = 0;
	const struct dirent *e;
	DIR *d = opendir(cache);

	while (d && (e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		nr++;
		if (name)
			snprintf(name, bytes, "%s/%s", cache, e->d_name);
	}
	if (d)
		closedir(d);
	return nr;
}

#define ALL UINT64_MAX

static void once_and_again(void)
{
	struct symbolizer_opts opts = cached_in(cache), names = opts;
	struct stat st;
	char path[512];
	size_t nr;

	CHECK(shell("gcc -O2 -g -Wl,--build-id=sha1 -o program program.c"));
	CHECK(answers("program", &opts, 8, 0));
	CHECK_EQ(cache_files(path, sizeof(path)), 1);
	CHECK(!stat(path, &st) && (st.st_mode & 07777) == 0600);
	CHECK(!stat(cache, &st) && (st.st_mode & 07777) == 0700);
	CHECK(answers("program", &opts, 8, ALL));
	CHECK(answers("program", &opts, 16, ALL));
	/* More addresses: the old ones from the file, and all of them in it the next time. */
	free(section_addresses("program", ".text", 8, &nr));
	CHECK(answers("program", &opts, 1, nr));
	CHECK(answers("program", &opts, 1, ALL));
	/* Without lines it is another question: what is cached stays. */
	names.lines = false;
	CHECK(answers("program", &names, 8, 0));
	CHECK(answers("program", &names, 8, 0));
	CHECK(answers("program", &opts, 8, ALL));
	CHECK_EQ(cache_files(NULL, 0), 1);
}

/* Names alone, from a table that takes longer to walk than answers to read. */
static void many_symbols(void)
{
	struct symbolizer_opts names = cached_in(cache), opts = names;

	names.lines = false;
	CHECK(shell(
		"(seq -f 'int many%%.0f(int x) { return x; }' 12000; echo 'int main(void) { return 0; }')"
		" >many.c && gcc -O1 -Wl,--build-id=sha1 -o many many.c"));
	CHECK(answers("many", &names, 64, 0));
	CHECK(answers("many", &names, 64, ALL));
	CHECK(shell("rm -f %s/* && cp many few && objcopy --strip-unneeded -K main few", cache));
	CHECK(answers("few", &names, 64, 0));
	CHECK(answers("few", &names, 64, 0));
	CHECK_EQ(cache_files(NULL, 0), 0);
	CHECK(answers("program", &opts, 8, 0)); /* as before, for the next test */
}

/* The same build id, but no symbols. */
static void another_file(void)
{
	struct symbolizer_opts opts = cached_in(cache);

	CHECK(shell("strip -o stripped program"));
	CHECK(answers("program", &opts, 8, ALL));
	CHECK(answers("stripped", &opts, 8, 0));
	CHECK(shell("gcc -O2 -g -Wl,--build-id=none -o nameless program.c"));
	CHECK(answers("nameless", &opts, 8, 0));
	CHECK(answers("nameless", &opts, 8, 0));
	CHECK_EQ(cache_files(NULL, 0), 1);
}

static void change_byte(const char *path, long at)
{
	int from = at < 0 ? SEEK_END : SEEK_SET, byte = 0;
	FILE *f = fopen(path, "r+");

	CHECK(f && !fseek(f, at, from) && (byte = fgetc(f)) != EOF);
	CHECK(f && !fseek(f, at, from) && fputc(byte ^ 0xa7, f) != EOF);
	if (f)
		fclose(f);
}

static void damaged(void)
{
	static const long places[] = {0, 7, 8, 12, 16, 20, 24, 40, 64, 200, -1, -100};
	struct symbolizer_opts opts = cached_in(cache);
	struct stat st;
	char path[512];

	CHECK_EQ(cache_files(path, sizeof(path)), 1);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		CHECK(shell("rm -f %s/*", cache));
		CHECK(answers("program", &opts, 8, 0));
		change_byte(path, places[i]);
		CHECK(answers("program", &opts, 8, 0));
		CHECK(answers("program", &opts, 8, ALL)); /* written anew */
	}
	CHECK_EQ(stat(path, &st), 0);
	for (off_t bytes = 0; bytes < st.st_size; bytes += 1 + st.st_size / 20) {
		CHECK(shell("rm -f %s/*", cache));
		CHECK(answers("program", &opts, 8, 0));
		CHECK_EQ(truncate(path, bytes), 0);
		CHECK(answers("program", &opts, 8, 0));
	}
}

static void somebody_elses(void)
{
	struct symbolizer_opts opts = cached_in(cache);
	char path[512];

	CHECK(answers("program", &opts, 8, ALL));
	CHECK_EQ(cache_files(path, sizeof(path)), 1);
	/* Others may write it. */
	CHECK_EQ(chmod(path, 0666), 0);
	CHECK(answers("program", &opts, 8, 0));
	CHECK(answers("program", &opts, 8, ALL));
	/* A link to it; a directory that others may write. */
	CHECK(shell("mv %s elsewhere && ln -s %s/elsewhere %s", path, fixture_dir, path));
	CHECK(answers("program", &opts, 8, 0));
	CHECK(answers("program", &opts, 8, ALL));
	CHECK_EQ(chmod(cache, 0777), 0);
	CHECK(answers("program", &opts, 8, 0));
	CHECK_EQ(chmod(cache, 0700), 0);
	CHECK(answers("program", &opts, 8, ALL));
	if (geteuid() != 0) {
		printf("# not root: no file of another owner\n");
		return;
	}
	/* A user's program may say that it is a build of root's. */
	CHECK(shell("chown 1 program"));
	CHECK(answers("program", &opts, 8, 0));
	CHECK(shell("chown 0 program"));
	CHECK(answers("program", &opts, 8, 0));
	CHECK(answers("program", &opts, 8, ALL));
	CHECK_EQ(chown(path, 1, 1), 0);
	CHECK(answers("program", &opts, 8, 0));
	CHECK(answers("program", &opts, 8, ALL));
	CHECK_EQ(chown(cache, 1, 1), 0);
	CHECK(answers("program", &opts, 8, 0));
	CHECK_EQ(chown(cache, 0, 0), 0);
}

static void no_directory(void)
{
	struct symbolizer_opts file = cached_in("/dev/null/x"),
			       odd = cached_in("/proc/self/symbols");
	char *link = xasprintf("%s/link", fixture_dir);
	struct symbolizer_opts linked = cached_in(link);

	CHECK(answers("program", &file, 8, 0));
	CHECK(answers("program", &odd, 8, 0));
	CHECK_EQ(symlink(cache, link), 0);
	CHECK(answers("program", &linked, 8, 0));
	free(link);
}

static void bounded(void)
{
	struct symbolizer_opts opts = cached_in(cache);
	uint64_t one;
	struct stat st;
	char path[512];

	CHECK(shell("rm -f %s/*", cache));
	for (int i = 0; i < 4; i++)
		CHECK(shell("gcc -O2 -g -Wl,--build-id=0x0%d0203040506 -o p%d program.c", i, i));
	CHECK(answers("p0", &opts, 8, 0));
	CHECK_EQ(cache_files(path, sizeof(path)), 1);
	CHECK_EQ(stat(path, &st), 0);
	one = (uint64_t)st.st_size;
	CHECK(answers("p1", &opts, 8, 0));
	CHECK(answers("p2", &opts, 8, 0));
	CHECK(answers("p0", &opts, 8, ALL)); /* read last, though written first */
	opts.cache_bound_bytes = 3 * one + one / 2;
	CHECK(answers("p3", &opts, 8, 0));
	CHECK_EQ(cache_files(NULL, 0), 3);
	CHECK(answers("p0", &opts, 8, ALL));
	CHECK(answers("p2", &opts, 8, ALL));
	CHECK(answers("p3", &opts, 8, ALL));
	opts.cache_bound_bytes = 1;
	CHECK(answers("p1", &opts, 8, 0));
	CHECK_EQ(cache_files(NULL, 0), 0);
}

/* Of a file whose DWARF took too long only what is whole is kept: here nothing. */
static void not_what_is_incomplete(void)
{
	struct symbolizer_opts late = cached_in(cache), opts = late;
	struct looked_up l;

	CHECK(shell("rm -f %s/*", cache));
	late.module_time_ns = 1;
	l = look("program", &late, 8);
	CHECK_EQ(l.stats.gave_up, 1);
	looked_up_free(&l);
	CHECK_EQ(cache_files(NULL, 0), 0);
	CHECK(answers("program", &opts, 8, 0));
}

static void setting_up(void)
{
	fixture_make();
	cache = xasprintf("%s/a/b/cache", fixture_dir);
	write_text("program.c",
		   "#include <stdio.h>\n"
		   "static inline int twice(int x)\n{\n\treturn printf(\"%d\", x) * 2;\n}\n"
		   "__attribute__((noinline)) static int one(int x)\n{\n\treturn twice(x) + 3;\n}\n"
		   "int main(int c, char **v)\n{\n\treturn one(c) * twice(c + 1);\n}\n");
}

UNIT_MAIN(TEST(setting_up), TEST(once_and_again), TEST(many_symbols), TEST(another_file),
	  TEST(damaged), TEST(somebody_elses), TEST(no_directory), TEST(bounded),
	  TEST(not_what_is_incomplete))
