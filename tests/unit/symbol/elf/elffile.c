// SPDX-License-Identifier: BSD-2-Clause
/*
 * elffile against what the dynamic linker says of the files that are mapped here: this program
 * and the C library. Damaged copies must be refused or read within their bounds.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kprof.h"
#include "symbol/elf/elf.h"
#include "symbol/names/names.h"
#include "unit.h"

int elf_test_global(int x);
static int elf_test_local(int x);

__attribute__((noinline)) int elf_test_global(int x)
{
	return x * 3 + 1;
}

__attribute__((noinline)) static int elf_test_local(int x)
{
	return elf_test_global(x) * 5;
}

static struct elffile *open_file(const char *path)
{
	struct elffile *e = NULL;

	CHECK_EQ(elffile__open(path, &e), 0);
	CHECK(e);
	return e;
}

/* The file that holds an address, and its load address. */
static const char *file_of(const void *address, uintptr_t *base)
{
	Dl_info info;

	if (!dladdr(address, &info))
		return NULL;
	*base = (uintptr_t)info.dli_fbase;
	return info.dli_fname;
}

struct seen {
	uint64_t vaddr;
	bool found, local, function;
	const char *want;
};

static int look(void *ctx, const struct elffile_symbol *s)
{
	struct seen *seen = ctx;

	if (strcmp(s->name, seen->want))
		return 0;
	seen->found = true;
	seen->vaddr = s->vaddr;
	seen->local = s->local;
	seen->function = s->function;
	return 0;
}

static void own_symbols(void)
{
	struct elffile *e = open_file("/proc/self/exe");
	struct seen local = {.want = "elf_test_local"}, global = {.want = "elf_test_global"};
	uintptr_t base = 0;
	struct elffile_symbol s;

	if (!e)
		return;
	CHECK_EQ(elf_test_local(2), 35);
	CHECK(file_of((const void *)elf_test_global, &base));
	CHECK(elffile__has_symtab(e));
	CHECK(elffile__interp(e) && elffile__interp(e)[0] == '/');
	CHECK_STR(elffile__path(e), "/proc/self/exe");
	elffile__symbols(e, look, &local);
	elffile__symbols(e, look, &global);
	CHECK(local.found && local.function && local.local);
	/* Linked without -rdynamic: nobody needs this symbol, so .dynsym lacks it. */
	CHECK(global.found && global.function);
	CHECK_EQ(global.local, dlsym(RTLD_DEFAULT, "elf_test_global") == NULL);
	CHECK_EQ(local.vaddr, (uintptr_t)elf_test_local - base);
	CHECK_EQ(global.vaddr, (uintptr_t)elf_test_global - base);

	CHECK_EQ(elffile__symbol(e, "elf_test_local", &s), 0);
	CHECK_EQ(s.vaddr, local.vaddr);
	CHECK_EQ(elffile__symbol(e, "elf_test_no_such_thing", &s), -ENOENT);
	CHECK_EQ(elffile__symbol_at(e, global.vaddr + 1, &s), 0);
	CHECK_STR(s.name, "elf_test_global");
	CHECK_EQ(elffile__symbol_at(e, UINT64_MAX - 1, &s), -ENOENT);
	elffile__close(e);
}

static void bytes_are_the_mapped_ones(void)
{
	struct elffile *e = open_file("/proc/self/exe");
	uintptr_t base = 0;
	uint64_t offset;
	const uint8_t *code;
	size_t avail;

	if (!e)
		return;
	file_of((const void *)elf_test_global, &base);
	offset = elffile__offset(e, (uintptr_t)elf_test_global - base);
	CHECK_EQ(elffile__vaddr(e, offset), (uintptr_t)elf_test_global - base);
	CHECK(elffile__executable(e, offset));
	CHECK(!elffile__executable(e, 0));
	code = elffile__bytes(e, offset, 16, &avail);
	CHECK(code && avail == 16 && !memcmp(code, (const void *)elf_test_global, 16));
	CHECK(!elffile__bytes(e, UINT64_MAX, 1, &avail) && avail == 0);
	CHECK_EQ(elffile__offset(e, UINT64_MAX), UINT64_MAX);
	CHECK_EQ(elffile__vaddr(e, UINT64_MAX), UINT64_MAX);
	elffile__close(e);
}

static void sections(void)
{
	struct elffile *e = open_file("/proc/self/exe");
	size_t bytes;

	if (!e)
		return;
	CHECK(elffile__section(e, ".text", &bytes) && bytes > 100);
	CHECK(!elffile__section(e, ".bss", &bytes) && bytes == 0);
	CHECK(!elffile__section(e, ".no-such-section", &bytes));
	elffile__close(e);
}

/* Every function that the C library exports and that is looked up here lies where dlsym has it. */
static void libc_by_name(void)
{
	static const char *const names[] = {"snprintf",       "malloc", "fopen",  "qsort",
					    "pthread_create", "getenv", "strtod", "open",
					    "dlopen",         "regcomp"};
	uintptr_t base = 0;
	const char *path = file_of((const void *)getenv, &base);
	void *libc = path ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
	struct elffile *e = path ? open_file(path) : NULL;

	CHECK(libc);
	for (size_t i = 0; libc && e && i < sizeof(names) / sizeof(names[0]); i++) {
		struct elffile_symbol s, at;
		struct seen seen = {.want = names[i]};
		void *want = dlsym(libc, names[i]);

		CHECK_EQ(elffile__symbol(e, names[i], &s), 0);
		CHECK(s.function);
		CHECK(!s.local);
		elffile__symbols(e, look, &seen);
		CHECK(seen.found && !seen.local);
		if (want && file_of(want, &base) && !strcmp(file_of(want, &base), path))
			CHECK_EQ(s.vaddr, (uintptr_t)want - base);
		CHECK_EQ(elffile__symbol_at(e, s.vaddr + s.size - 1, &at), 0);
		CHECK_EQ(at.vaddr, s.vaddr);
	}
	elffile__close(e);
	if (libc)
		dlclose(libc);
}

struct build_id {
	const char *path;
	char hex[129];
};

static int find_note(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct build_id *id = ctx;

	if (strcmp(info->dlpi_name, id->path))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		const uint8_t *at = (const uint8_t *)info->dlpi_addr + p->p_vaddr;
		const uint8_t *end = at + p->p_memsz;

		while (p->p_type == PT_NOTE && p->p_align == 4 && at + 12 < end) {
			const uint32_t *note = (const uint32_t *)at;
			const uint8_t *desc = at + 12 + ((note[0] + 3) & ~3u);

			for (uint32_t k = 0; note[2] == NT_GNU_BUILD_ID && k < note[1] && k < 64;
			     k++)
				snprintf(id->hex + 2 * k, 3, "%02x", desc[k]);
			at = desc + ((note[1] + 3) & ~3u);
		}
	}
	return 1;
}

static void build_id_as_mapped(void)
{
	uintptr_t base = 0;
	struct build_id id = {.path = file_of((const void *)getenv, &base)};
	struct elffile *e = id.path ? open_file(id.path) : NULL;

	if (!e)
		return;
	CHECK_EQ(dl_iterate_phdr(find_note, &id), 1);
	CHECK_STR(elffile__build_id(e), id.hex);
	elffile__close(e);
}

static void not_elf(void)
{
	struct elffile *e = NULL;

	CHECK_EQ(elffile__open("/nonexistent/file", &e), -ENOENT);
	CHECK(!e && strstr(kprof_error_cause(), "/nonexistent/file"));
	CHECK_EQ(elffile__open("/proc/self/cmdline", &e), -ENOEXEC);
	CHECK_EQ(elffile__open("/", &e), -ENOEXEC);
	CHECK_EQ(elffile__open("/dev/null", &e), -ENOEXEC);
	elffile__close(NULL);
}

/* Counts the names; true at the one that is sought. */
struct sought {
	const char *name;
	size_t nr;
};

static bool is_sought(void *ctx, const char *name)
{
	struct sought *s = ctx;

	s->nr++;
	return s->name && !strcmp(name, s->name);
}

static void needs(void)
{
	struct sought libc = {.name = "libc.so.6"}, all = {0};
	struct elffile *e = open_file("/proc/self/exe");

	CHECK(elffile__needs(e, is_sought, &libc));
	CHECK(!elffile__needs(e, is_sought, &all));
	CHECK(libc.nr >= 1 && all.nr >= libc.nr);
	elffile__close(e);
}

static int count(void *ctx, const struct elffile_symbol *s)
{
	size_t *nr = ctx;

	*nr += 1 + (strlen(s->name) > 100000);
	return 0;
}

/* Everything that can be asked of a file. True: it could be opened. */
static bool use_all(const char *path)
{
	struct elffile *e;
	struct elffile_symbol s;
	size_t nr = 0, bytes;

	if (elffile__open(path, &e))
		return false;
	elffile__symbols(e, count, &nr);
	elffile__symbol(e, "main", &s);
	elffile__symbol(e, "nothing", &s);
	elffile__symbol_at(e, 0x1234, &s);
	elffile__section(e, ".rodata", &bytes);
	elffile__needs(e, is_sought, &(struct sought){0});
	elffile__offset(e, 0x1000);
	CHECK(strlen(elffile__build_id(e)) <= 128);
	if (elffile__interp(e))
		CHECK(strlen(elffile__interp(e)) < 64 << 20);
	elffile__close(e);
	return true;
}

static void damaged(void)
{
	FILE *f = fopen("/proc/self/exe", "rb");
	uint8_t *image = malloc(64 << 20);
	size_t bytes = f && image ? fread(image, 1, 64 << 20, f) : 0;
	int fd = memfd_create("damaged", 0);
	unsigned int opened = 0, state = 1;
	char path[64];

	CHECK(bytes > 4096 && fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	for (unsigned int i = 0; bytes && i < 24; i++) {
		CHECK(!ftruncate(fd, 0));
		CHECK(pwrite(fd, image, bytes * i / 24, 0) == (ssize_t)(bytes * i / 24));
		opened += use_all(path);
	}
	CHECK(opened < 24);
	/* Headers with random values: the ELF header, program headers, section headers. */
	for (unsigned int i = 0; bytes && i < 200; i++) {
		uint64_t sections = ((ElfW(Ehdr) *)image)->e_shoff;
		size_t at;
		uint8_t old;

		state = state * 1103515245u + 12345u;
		at = (state >> 8) % 1024;
		if (i & 1)
			at = sections + at < bytes ? sections + at : at;
		old = image[at];
		image[at] = (uint8_t)(i % 3 ? 0xff : state);
		CHECK(!ftruncate(fd, 0) && pwrite(fd, image, bytes, 0) == (ssize_t)bytes);
		use_all(path);
		image[at] = old;
	}
	close(fd);
	free(image);
	if (f)
		fclose(f);
}

static int no_probe(void *ctx, const struct usdt_probe *p)
{
	return 0;
}

/* Everything that reads a section as a whole. */
static void scan_all(const char *path)
{
	struct schemas *schemas = NULL;
	struct elffile *e;

	use_all(path);
	if (elffile__open(path, &e))
		return;
	usdt_probes(e, no_probe, NULL);
	usdt_may_be_in(path);
	schemas__load(e, &schemas);
	schemas__free(schemas);
	elffile__close(e);
}

#define TERABYTES (8ull << 40)
#define MOST_FAULTS 200000 /* 800 MB, page by page */

/*
 * A file of 8 TiB takes no room on the disk where it is empty. All its sections and segments extend
 * over most of it. How much of it is read shows in the page faults.
 */
static void vast(void)
{
	FILE *f = fopen("/proc/self/exe", "rb"), *to = tmpfile();
	uint8_t *image = malloc(64 << 20);
	size_t bytes = f && image ? fread(image, 1, 64 << 20, f) : 0;
	ElfW(Ehdr) *h = (ElfW(Ehdr) *)image;
	char path[64];
	int status = 1;
	pid_t pid;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), to ? fileno(to) : -1);
	for (size_t i = 1; bytes && i < h->e_shnum; i++) {
		ElfW(Shdr) *s = (ElfW(Shdr) *)(image + h->e_shoff) + i;

		if (s->sh_type != SHT_STRTAB || i != h->e_shstrndx)
			s->sh_size = TERABYTES / 2;
	}
	for (size_t i = 0; bytes && i < h->e_phnum; i++)
		((ElfW(Phdr) *)(image + h->e_phoff))[i].p_filesz = TERABYTES / 2;
	CHECK(bytes && to && fwrite(image, 1, bytes, to) == bytes && !fflush(to));
	if (!bytes || !to || ftruncate(fileno(to), (off_t)TERABYTES)) {
		printf("# skipped: no sparse files of 8 TiB here\n");
		return;
	}
	fflush(stdout);
	pid = fork();
	if (!pid) {
		struct rusage used;

		alarm(100);
		scan_all(path);
		getrusage(RUSAGE_SELF, &used);
		printf("# %ld page faults\n", used.ru_minflt + used.ru_majflt);
		fflush(stdout);
		_exit(used.ru_minflt + used.ru_majflt > MOST_FAULTS);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	fclose(to);
	fclose(f);
	free(image);
}

UNIT_MAIN(TEST(own_symbols), TEST(bytes_are_the_mapped_ones), TEST(sections), TEST(libc_by_name),
	  TEST(build_id_as_mapped), TEST(not_elf), TEST(needs), TEST(damaged), TEST(vast))
