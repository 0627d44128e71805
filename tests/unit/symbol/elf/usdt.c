// SPDX-License-Identifier: BSD-2-Clause
/*
 * usdt_probes() on this program, which uses kprof/mark.h itself; damaged notes are refused or read
 * within their bounds.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kprof/mark.h"
#include "symbol/elf/elf.h"
#include "unit.h"
#include "util/util.h"

/* Uses four of mark.h's functions, each with one place. */
static void use_marks(void)
{
	KPROF_RANGE_PUSH("a name");
	KPROF_RANGE_POP();
	KPROF_METADATA("key", "value");
	KPROF_BACKEND_EVENT(1, 2, 3, "name", "backend");
}

struct seen {
	const struct elffile *elf;
	size_t kprof, others;
	uint64_t offsets[16], semaphore;
};

static int on_probe(void *ctx, const struct usdt_probe *p)
{
	struct seen *seen = ctx;
	const uint8_t *code;
	size_t avail;

	CHECK(p->provider && p->name && p->args);
	if (strcmp(p->provider, "kprof")) {
		seen->others++;
		return 0;
	}
	CHECK_STR(p->name, "mark");
	CHECK_STR(p->args, "8@%rdi");
	code = elffile__bytes(seen->elf, p->offset, 1, &avail);
	CHECK(code && avail == 1 && *code == 0x90); /* nop */
	CHECK(!seen->kprof || p->semaphore == seen->semaphore);
	seen->semaphore = p->semaphore;
	if (seen->kprof < ARRAY_SIZE(seen->offsets))
		seen->offsets[seen->kprof] = p->offset;
	seen->kprof++;
	return 0;
}

static uint64_t load_bias(void)
{
	struct link_map *map = NULL;
	Dl_info info;

	CHECK(dladdr1((void *)use_marks, &info, (void **)&map, RTLD_DL_LINKMAP));
	return map ? map->l_addr : 0;
}

static void the_places_of_this_program(void)
{
	struct seen seen = {0};
	struct elffile *e = NULL;
	uint64_t vaddr;

	use_marks(); /* nobody watches: nothing happens */
	CHECK_EQ(elffile__open("/proc/self/exe", &e), 0);
	seen.elf = e;
	CHECK_EQ(usdt_probes(e, on_probe, &seen), 0);
	CHECK_EQ(seen.kprof, 4);
	for (size_t i = 0; i < seen.kprof; i++)
		for (size_t k = 0; k < i; k++)
			CHECK(seen.offsets[i] != seen.offsets[k]);
	vaddr = elffile__vaddr(e, seen.semaphore);
	CHECK_EQ(vaddr + load_bias(), (uint64_t)(uintptr_t)&kprof_mark_semaphore);
	elffile__close(e);
}

static int stop(void *ctx, const struct usdt_probe *p)
{
	++*(int *)ctx;
	return 7;
}

static void the_callback_ends_it(void)
{
	struct elffile *e = NULL;
	int calls = 0;

	CHECK_EQ(elffile__open("/proc/self/exe", &e), 0);
	CHECK_EQ(usdt_probes(e, stop, &calls), 7);
	CHECK_EQ(calls, 1);
	elffile__close(e);
}

static void another_library_has_its_own(void)
{
	struct link_map *map = NULL;
	struct seen seen = {0};
	struct elffile *e = NULL;
	Dl_info info;

	/* no function that a sanitizer puts into the program in its place */
	CHECK(dladdr1((void *)getppid, &info, (void **)&map, RTLD_DL_LINKMAP));
	CHECK_EQ(elffile__open(info.dli_fname, &e), 0);
	seen.elf = e;
	CHECK_EQ(usdt_probes(e, on_probe, &seen), 0);
	CHECK_EQ(seen.kprof, 0);
	elffile__close(e);
}

static int touch(void *ctx, const struct usdt_probe *p)
{
	*(size_t *)ctx += strlen(p->provider) + strlen(p->name) + strlen(p->args);
	return 0;
}

static void damaged_notes(void)
{
	size_t bytes, note_bytes, sum = 0, at;
	struct elffile *e = NULL;
	const uint8_t *note, *image;
	char path[64];
	char *copy;
	int fd;

	CHECK_EQ(read_file("/proc/self/exe", 64 << 20, &copy, &bytes), 0);
	CHECK_EQ(elffile__open("/proc/self/exe", &e), 0);
	note = elffile__section(e, ".note.stapsdt", &note_bytes);
	image = elffile__bytes(e, 0, 1, &at);
	at = (size_t)(note - image);
	elffile__close(e);
	fd = memfd_create("damaged", 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	CHECK_EQ(write(fd, copy, bytes), (ssize_t)bytes);
	for (size_t i = 0; i < note_bytes; i++) {
		static const uint8_t values[] = {0, 0x7f, 0xff};

		for (size_t k = 0; k < ARRAY_SIZE(values); k++) {
			CHECK_EQ(pwrite(fd, &values[k], 1, (off_t)(at + i)), 1);
			if (!elffile__open(path, &e)) {
				usdt_probes(e, touch, &sum);
				elffile__close(e);
			}
		}
		CHECK_EQ(pwrite(fd, copy + at + i, 1, (off_t)(at + i)), 1);
	}
	CHECK(sum > 0);
	close(fd);
	free(copy);
}

/* The quick look against the whole: of every library here, and of what is no ELF file at all. */
static void the_quick_look(void)
{
	static const char folder[] = "/usr/lib/x86_64-linux-gnu";
	size_t with = 0, without = 0, wrong = 0, bytes;
	DIR *dir = opendir(folder);
	struct dirent *entry;
	struct elffile *e;
	char path[PATH_MAX];

	while (dir && (entry = readdir(dir))) {
		bool there, quick;

		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (!strstr(entry->d_name, ".so") || elffile__open(path, &e))
			continue;
		there = elffile__section(e, ".note.stapsdt", &bytes);
		elffile__close(e);
		quick = usdt_may_be_in(path);
		with += there && quick;
		without += !there && !quick;
		wrong += there != quick;
	}
	if (dir)
		closedir(dir);
	CHECK(with >= 1 && without >= 10); /* libc has some */
	CHECK_EQ(wrong, 0);
	CHECK(usdt_may_be_in("/proc/self/exe"));
	CHECK(usdt_may_be_in("/no/such/file"));
	CHECK(!usdt_may_be_in("/etc/passwd"));
	CHECK(!usdt_may_be_in("/dev/null"));
}

/* Headers that point anywhere: in doubt it is looked at in full. */
static void damaged_headers(void)
{
	Elf64_Ehdr h = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64},
			.e_shoff = sizeof(h),
			.e_shnum = 1,
			.e_shentsize = sizeof(Elf64_Shdr)};
	int fd = memfd_create("damaged", MFD_CLOEXEC);
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	CHECK_EQ(pwrite(fd, &h, sizeof(h), 0), sizeof(h));
	CHECK(usdt_may_be_in(path)); /* the table is not there */
	h.e_shoff = UINT64_MAX - 8;
	CHECK_EQ(pwrite(fd, &h, sizeof(h), 0), sizeof(h));
	CHECK(usdt_may_be_in(path));
	h.e_shoff = sizeof(h);
	h.e_shstrndx = 7;
	CHECK_EQ(pwrite(fd, &h, sizeof(h), 0), sizeof(h));
	CHECK(usdt_may_be_in(path));
	h.e_shnum = h.e_shoff = 0; /* no sections */
	CHECK_EQ(pwrite(fd, &h, sizeof(h), 0), sizeof(h));
	CHECK(!usdt_may_be_in(path));
	CHECK_EQ(ftruncate(fd, 20), 0);
	CHECK(!usdt_may_be_in(path));
	close(fd);
}

UNIT_MAIN(TEST(the_places_of_this_program), TEST(the_callback_ends_it),
	  TEST(another_library_has_its_own), TEST(damaged_notes), TEST(the_quick_look),
	  TEST(damaged_headers))
