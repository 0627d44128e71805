// SPDX-License-Identifier: BSD-2-Clause
/*
 * Lines and inlined functions: every few bytes of programs of gcc and clang, against binutils'
 * addr2line and llvm-symbolizer. And what is left when DWARF is damaged or takes too long.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <termios.h>

#include "kprof.h"
#include "symbol/symbolize/priv.h"
#include "symbol_fixture.h"
#include "util/foreign.h"

static const struct symbolizer_opts with_lines = {
	.cache_dir = "", .debug_dir = "/nonexistent", .lines = true};

static const char c_source[] =
	"#include <stdio.h>\n"
	"static inline int square(int v)\n{\n\treturn v * v + 1;\n}\n"
	"static inline int leaf(int v)\n{\n\t__asm__ volatile(\"\" : \"+r\"(v));\n\tif (v > 3)\n\t\treturn square(v) + 3;\n"
	"\treturn square(v + 1);\n}\n"
	"__attribute__((noinline)) static int middle(int n)\n{\n\tint sum = 0;\n"
	"\tfor (int i = 0; i < n; i++) {\n\t\tsum += leaf(i);\n\t\tsum ^= square(sum);\n\t}\n\treturn sum;\n}\n"
	"__attribute__((cold, noinline)) static void rare(int n)\n{\n\tprintf(\"%d\\n\", leaf(n));\n}\n"
	"int main(int c, char **v)\n{\n\tint n = middle(c);\n\n\tif (__builtin_expect(n == 77, 0))\n\t\trare(n);\n"
	"\treturn n;\n}\n";

static const char cc_source[] =
	"#include <algorithm>\n#include <cstdio>\n#include <string>\n#include <vector>\n"
	"namespace geo\n{\nstruct point {\n\tint x, y;\n\tpoint(int a, int b) : x(a), y(b) {}\n"
	"\tint dot(const point &o) const { return x * o.x + y * o.y; }\n};\n"
	"template <class T> static inline T square(T v) { return v * v + 1; }\n"
	"static inline int leaf(int v)\n{\n\tasm volatile(\"\" : \"+r\"(v));\n\treturn square(v) + 3;\n}\n"
	"__attribute__((noinline)) int middle(int n)\n{\n\tint sum = 0;\n\tfor (int i = 0; i < n; i++)\n"
	"\t\tsum += leaf(i);\n\treturn sum;\n}\n}\n"
	"namespace\n{\nstruct hidden {\n\t__attribute__((noinline)) static int go(int n)\n\t{\n"
	"\t\tstd::vector<geo::point> v;\n\t\tfor (int i = 0; i < n; i++)\n\t\t\tv.emplace_back(i, n);\n"
	"\t\tauto less = [&](const geo::point &a, const geo::point &b) { return a.dot(b) < geo::leaf(n); };\n"
	"\t\tstd::sort(v.begin(), v.end(), less);\n\t\treturn v[n / 2].x;\n\t}\n};\n}\n"
	"int main(int c, char **v)\n{\n\ttry {\n\t\tprintf(\"%d %d\\n\", geo::middle(c), hidden::go(c + 20));\n"
	"\t\tif (c > 100)\n\t\t\tthrow std::string(\"x\");\n\t} catch (std::string &s) {\n\t\tputs(s.c_str());\n\t}\n}\n";

/* ---- the judges' answers ---- */

#define MAX_LINES 64

struct told {
	char function[MAX_LINES][1024];
	char place[MAX_LINES][256]; /* "file.c:12" */
	uint32_t nr;
};

/* Constructors and destructors have several names for one address. */
static void same_variant(char *name)
{
	for (char *at = name; (at = strpbrk(at, "CD")); at++) {
		if (isdigit((unsigned char)at[1]) && (at[2] == 'E' || at[2] == 'I'))
			at[1] = '1';
	}
}

/*
 * Without directories and "(discriminator 3)". A line that is not known says nothing of its file.
 */
static void plain_place(const char *text, char *to, size_t bytes)
{
	const char *slash = strrchr(text, '/');
	char *end;

	snprintf(to, bytes, "%s", slash ? slash + 1 : text);
	end = strchr(to, ' ');
	if (end)
		*end = '\0';
	end = strrchr(to, ':');
	if (!end || !strcmp(end, ":0") || !strcmp(end, ":?"))
		snprintf(to, bytes, "?");
}

/* After the line with an address two lines for each function: its name and its place. */
static bool next_told(FILE *f, char *line, size_t bytes, struct told *to)
{
	to->nr = 0;
	if (strncmp(line, "0x", 2) != 0)
		return false;
	while (fgets(line, (int)bytes, f)) {
		line[strcspn(line, "\n")] = '\0';
		if (!*line)
			continue;
		if (!strncmp(line, "0x", 2))
			return true;
		if (to->nr == MAX_LINES)
			continue;
		snprintf(to->function[to->nr], sizeof(to->function[0]), "%.1023s",
			 strcmp(line, "??") ? line : "");
		same_variant(to->function[to->nr]);
		if (fgets(line, (int)bytes, f)) {
			line[strcspn(line, "\n")] = '\0';
			plain_place(line, to->place[to->nr++], sizeof(to->place[0]));
		}
	}
	line[0] = '\0';
	return true;
}

static bool as_told(const struct symbol_result *got, const struct told *want)
{
	bool same = got->nr_lines == want->nr;

	for (uint32_t i = 0; i < got->nr_lines && same; i++) {
		char function[1024], place[256], *text;

		snprintf(function, sizeof(function), "%s", got->lines[i].function);
		same_variant(function);
		text = xasprintf("%s:%u", got->lines[i].file, got->lines[i].line);
		plain_place(text, place, sizeof(place));
		free(text);
		same = !strcmp(function, want->function[i]) && !strcmp(place, want->place[i]);
		if (!same)
			printf("# %s at %s, not %s at %s\n", function, place, want->function[i],
			       want->place[i]);
	}
	return same;
}

static void compare(const char *program, const char *judge, uint32_t depth)
{
	char *path = xasprintf("%s/judged", fixture_dir), line[4096] = "";
	uint32_t deepest = 0, differing = 0, compared = 0;
	struct told *want = malloc(sizeof(*want));
	struct looked_up l;
	uint64_t *vaddrs;
	size_t nr;
	FILE *f;

	vaddrs = section_addresses(program, ".text", 3, &nr);
	f = fopen(path, "w");
	for (size_t i = 0; i < nr; i++)
		fprintf(f, "0x%lx\n", vaddrs[i]);
	fclose(f);
	CHECK(shell("%s -a -i -f -e %s < judged > told && mv told judged", judge, program));
	l = look_up(program, &with_lines, vaddrs, nr);
	CHECK_EQ(l.err, 0);
	CHECK_EQ(l.stats.gave_up, 0);
	f = fopen(path, "r");
	while (f && !line[0] && fgets(line, sizeof(line), f))
		;
	for (size_t i = 0; i < nr && next_told(f, line, sizeof(line), want); i++) {
		compared++;
		/*
		 * What starts a program comes from another compilation, which the judges name
		 * differently.
		 */
		if (!*l.results[i].lines->file)
			continue;
		deepest = l.results[i].nr_lines > deepest ? l.results[i].nr_lines : deepest;
		if (!as_told(&l.results[i], want) && ++differing < 5)
			printf("# %s: %s says otherwise at 0x%lx\n", program, judge, vaddrs[i]);
	}
	if (f)
		fclose(f);
	CHECK_EQ(compared, nr);
	CHECK_EQ(differing, 0);
	CHECK(deepest >= depth);
	looked_up_free(&l);
	free(want);
	free(path);
}

static void c_by_addr2line(void)
{
	static const char *const flags[] = {"-O0", "-O1", "-O2", "-O3 -gdwarf-4",
					    "-O2 -gdwarf-3 -gstrict-dwarf"};

	write_text("lines.c", c_source);
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		CHECK(shell("gcc %s -g -fno-reorder-blocks-and-partition -o lines lines.c",
			    flags[i]));
		compare("lines", "addr2line", i ? 3 : 1);
	}
}

/* With linkage names, which is what the symbol table has too. */
static const char llvm[] = "llvm-symbolizer-14 --no-demangle --output-style=GNU";

static void cc_by_llvm(void)
{
	static const char *const builds[] = {
		"g++ -O0 -g",
		"g++ -O2 -g",
		"g++ -O2 -g -flto",
		"clang++ -O0 -g",
		"clang++ -O2 -g",
		"clang++ -O2 -gdwarf-4",
		"clang++ -O2 -g -fdebug-types-section -gz",
	};

	write_text("lines.cc", cc_source);
	for (size_t i = 0; i < ARRAY_SIZE(builds); i++) {
		CHECK(shell("%s -o lines lines.cc", builds[i]));
		compare("lines", llvm, strstr(builds[i], "-O0") ? 1 : 5);
	}
}

/* ---- when it goes wrong ---- */

static void check_names(const struct looked_up *l, const struct looked_up *names)
{
	for (size_t i = 0; i < l->nr; i++) {
		const struct symbol_result *r = &l->results[i];

		CHECK(r->nr_lines >= 1);
		if (*names->results[i].lines->function)
			CHECK_STR(r->lines[r->nr_lines - 1].function,
				  names->results[i].lines->function);
	}
}

static struct looked_up look_up_all(const char *program, const struct symbolizer_opts *opts)
{
	size_t nr;
	uint64_t *vaddrs = section_addresses(program, ".text", 5, &nr);

	return look_up(program, opts, vaddrs, nr);
}

static unsigned int warnings;

static void count_warning(void *ctx, enum kprof_log_level level, const char *text, const char *hint)
{
	warnings += strstr(text, "lines are missing") != NULL;
}

static void out_of_time(void)
{
	struct symbolizer_opts names_only = with_lines, no_time = with_lines;
	struct looked_up names, late;

	names_only.lines = false;
	no_time.module_time_ns = 1;
	CHECK(shell("g++ -O2 -g -o lines lines.cc"));
	names = look_up_all("lines", &names_only);
	kprof_set_log(count_warning, NULL);
	late = look_up_all("lines", &no_time);
	kprof_set_log(NULL, NULL);
	CHECK_EQ(warnings, 1);
	CHECK_EQ(names.stats.gave_up, 0);
	CHECK_EQ(late.stats.gave_up, 1);
	CHECK_EQ(late.err, 0);
	CHECK(same_answers(&names, &late));
	looked_up_free(&late);
	/* The same for all files together. */
	no_time.module_time_ns = 0;
	no_time.total_time_ns = 1;
	late = look_up_all("lines", &no_time);
	CHECK_EQ(late.stats.gave_up, 1);
	CHECK(same_answers(&names, &late));
	looked_up_free(&names);
	looked_up_free(&late);
}

static bool damage(const char *name, unsigned int seed)
{
	char *path = xasprintf("%s/%s", fixture_dir, name);
	FILE *f = fopen(path, "r+");
	struct elffile *e = NULL;
	static const char *const sections[] = {".debug_info", ".debug_abbrev", ".debug_line",
					       ".debug_rnglists", ".debug_str"};
	bool done = f && !elffile__open(path, &e);

	srand(seed);
	for (size_t s = 0; done && s < ARRAY_SIZE(sections); s++) {
		size_t bytes, whole;
		const uint8_t *section = elffile__section(e, sections[s], &bytes);
		const uint8_t *start = elffile__bytes(e, 0, SIZE_MAX, &whole);

		for (unsigned int i = 0; section && i < 1 + seed; i++) {
			fseek(f, section - start + rand() % (long)bytes, SEEK_SET);
			fputc(rand() & 255, f);
		}
	}
	elffile__close(e);
	if (f)
		fclose(f);
	free(path);
	return done;
}

static void damaged(void)
{
	struct symbolizer_opts names_only = with_lines;
	struct looked_up names;

	names_only.lines = false;
	names = look_up_all("lines", &names_only);
	for (unsigned int seed = 0; seed < 60; seed++) {
		struct looked_up l;

		CHECK(shell("cp lines damaged"));
		CHECK(damage("damaged", seed));
		l = look_up_all("damaged", &with_lines);
		CHECK_EQ(l.err, 0);
		check_names(&l, &names);
		looked_up_free(&l);
	}
	looked_up_free(&names);
}

static unsigned int count_children(void)
{
	char *text = NULL;
	unsigned int nr = 0;
	int pid, at = 0, n;

	if (read_file("/proc/thread-self/children", 4096, &text, NULL))
		return 0;
	while (sscanf(text + at, "%d%n", &pid, &n) == 1) {
		at += n;
		nr++;
	}
	free(text);
	return nr;
}

static unsigned int count_descriptors(void)
{
	unsigned int nr = 0;
	DIR *d = opendir("/proc/self/fd");

	while (d && readdir(d))
		nr++;
	if (d)
		closedir(d);
	return nr;
}

static int say_who(void *ctx, int fd)
{
	uid_t ids[4] = {0, 0, 0, (uid_t)getgroups(0, NULL)};

	(void)ctx;
	return getresuid(&ids[0], &ids[1], &ids[2]) ||
	       write(fd, ids, sizeof(ids)) != (ssize_t)sizeof(ids);
}

/* What a user's file leads libdw to do, it does with that user's rights. */
static void no_more_rights(void)
{
	struct symbol_child_opts opts = {.user = 12345, .fd = -1, .time_ns = 60 * NSEC_PER_SEC};
	struct symbol_child c;
	uid_t ids[4] = {0};

	if (geteuid() != 0) {
		printf("# not root: there are no rights to be given up\n");
		return;
	}
	CHECK_EQ(symbol_child__start(&c, say_who, NULL, &opts), 0);
	CHECK_EQ(symbol_child__read(&c, ids, sizeof(ids)), 0);
	CHECK_EQ(symbol_child__end(&c, false), 0);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(ids[i], 12345);
	CHECK_EQ(ids[3], 0);
}

/* Each is tried by a process that may only read; the bits of those that worked. */
enum {
	READS = 1,
	KEEPS = 2,
	WRITES = 4,
	CREATES = 8,
	FORKS = 16,
	SIGNALS = 32,
	CONNECTS = 64,
	CODE = 128,
	TYPES = 256
};

static int try_things(void *ctx, int fd)
{
	uint32_t did = 0;
	struct stat st;
	pid_t child;
	int file;

	file = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	did |= file >= 0 ? READS : 0;
	did |= !fstat(SYMBOL_CHILD_KEPT, &st) ? KEEPS : 0;
	did |= open(ctx, O_WRONLY) >= 0 ? WRITES : 0;
	did |= open(ctx, O_RDONLY | O_TRUNC) >= 0 ? WRITES : 0;
	did |= open("/tmp", O_RDWR | O_TMPFILE, 0600) >= 0 ? CREATES : 0;
	child = fork();
	if (!child)
		_exit(0);
	did |= child > 0 ? FORKS : 0;
	did |= !kill(getpid(), 0) ? SIGNALS : 0;
	did |= socket(AF_UNIX, SOCK_STREAM, 0) >= 0 ? CONNECTS : 0;
	did |= mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
			       MAP_FAILED
		       ? CODE
		       : 0;
	for (int i = 0; i < 3; i++)
		did |= !ioctl(i, TCFLSH, TCIFLUSH) || isatty(i) ? TYPES : 0;
	return write(fd, &did, sizeof(did)) != (ssize_t)sizeof(did);
}

static void only_reads(void)
{
	char *path = xasprintf("%s/lines.cc", fixture_dir);
	struct symbol_child_opts opts = {.user = SYMBOL_CHILD_NOBODY,
					 .only_reads = true,
					 .fd = open(path, O_RDONLY | O_CLOEXEC),
					 .time_ns = 60 * NSEC_PER_SEC};
	struct symbol_child c;
	uint32_t did = 0;

	CHECK_EQ(chmod(path, 0666), 0);
	CHECK(opts.fd >= 0);
	CHECK_EQ(symbol_child__start(&c, try_things, path, &opts), 0);
	CHECK_EQ(symbol_child__read(&c, &did, sizeof(did)), 0);
	CHECK_EQ(symbol_child__end(&c, false), 0);
	CHECK_EQ(did, READS | KEEPS);
	close(opts.fd);
	free(path);
}

/* Says all that it has to say, and stays. */
static int linger(void *ctx, int fd)
{
	(void)ctx;
	close(fd);
	while (pause() < 0)
		;
	return 0;
}

/*
 * Judged by coming back at all; with as much time as this machine takes to let the child say that
 * it has no more to say.
 */
static void one_that_never_ends(void)
{
	struct symbol_child_opts opts = {.fd = -1, .time_ns = NSEC_PER_SEC / 5};
	struct symbol_child c;
	int said = -ETIME;
	char byte;

	for (; said == -ETIME && opts.time_ns < 100 * NSEC_PER_SEC; opts.time_ns *= 3) {
		CHECK_EQ(symbol_child__start(&c, linger, NULL, &opts), 0);
		said = symbol_child__read(&c, &byte, 1);
		CHECK_EQ(symbol_child__end(&c, false), -1);
		CHECK_EQ(kill(c.pid, 0), -1);
	}
	CHECK_EQ(said, 1);
}

/* Lines are in the skeleton that stays in the program, functions in the other half. */
static size_t count_inlined(const struct looked_up *l)
{
	size_t nr = 0;

	for (size_t i = 0; i < l->nr; i++)
		nr += l->results[i].nr_lines > 1;
	return nr;
}

/* Where root's file leads (its other half, here) there is what everybody may read, no more. */
static void roots_file(void)
{
	struct looked_up l;

	if (geteuid() != 0) {
		printf("# skipped: not root\n");
		return;
	}
	CHECK_EQ(chmod(fixture_dir, 0755), 0);
	CHECK(shell(
		"gcc -O1 -g -gsplit-dwarf -c -o split.o lines.c && gcc -o split split.o && chmod 644 split.dwo"));
	for (int secret = 0; secret < 2; secret++) {
		CHECK(!secret || shell("chmod 600 split.dwo"));
		l = look_up_all("split", &with_lines);
		CHECK_EQ(l.err, 0);
		CHECK_EQ(count_inlined(&l) > 0, !secret);
		looked_up_free(&l);
	}
}

static void nothing_is_left(void)
{
	unsigned int before = count_descriptors();
	struct symbolizer_opts no_time = with_lines;
	struct looked_up l;

	no_time.module_time_ns = 1000000;
	l = look_up_all("lines", &with_lines);
	looked_up_free(&l);
	l = look_up_all("lines", &no_time);
	looked_up_free(&l);
	foreign_finish(); /* a process of its own, which stays */
	CHECK_EQ(count_children(), 0);
	foreign_prepare();
	CHECK_EQ(count_descriptors(), before);
}

static void setting_up(void)
{
	fixture_make();
}

UNIT_MAIN(TEST(setting_up), TEST(c_by_addr2line), TEST(cc_by_llvm), TEST(out_of_time),
	  TEST(damaged), TEST(no_more_rights), TEST(only_reads), TEST(one_that_never_ends),
	  TEST(roots_file), TEST(nothing_is_left))
