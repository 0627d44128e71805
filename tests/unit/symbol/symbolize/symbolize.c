// SPDX-License-Identifier: BSD-2-Clause
/*
 * Names: by which symbol, of which file, and that none is made up. Judges: what the assembler was
 * told, the dynamic linker's dladdr(), objdump's stubs.
 */
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <link.h>

#include "kprof.h"
#include "symbol_fixture.h"

/* Nothing of this machine comes in between. */
static const struct symbolizer_opts plain = {.cache_dir = "", .debug_dir = "/nonexistent"};

/* ---- which symbol ---- */

static const char rules_source[] =
	".text\n"
	".globl sized\n.type sized,@function\nsized: .fill 16,1,0x90\n.size sized,16\n"
	".fill 16,1,0x90\n"        /* 16: nobody's */
	"label: .fill 16,1,0x90\n" /* 32: without size, up to the next */
	"next_label: .fill 16,1,0x90\n"
	".globl outer\n.type outer,@function\nouter: .fill 16,1,0x90\n" /* 64 */
	"label_within: .fill 16,1,0x90\n"
	".type inner,@function\ninner: .fill 16,1,0x90\n.size inner,16\n"
	".fill 16,1,0x90\n.size outer,64\n"
	".globl shown\n.weak __shown\n" /* 128 */
	".type local_shown,@function\n.type shown,@function\n.type __shown,@function\n.type shown_long,@function\n"
	".globl shown_long\n"
	"local_shown: __shown: shown: shown_long: bare_label: .fill 16,1,0x90\n"
	".size local_shown,16\n.size shown,16\n.size __shown,16\n.size shown_long,16\n"
	"last_label: .fill 16,1,0x90\n"             /* 144 */
	".section .other,\"ax\"\n.fill 16,1,0x90\n" /* without a name, behind a label of another section */
	".type unsized_function,@function\nunsized_function: .fill 16,1,0x90\n"
	".data\n.globl datum\n.type datum,@object\ndatum: .quad 1\n.size datum,8\n";

static void which_symbol(void)
{
	static const struct {
		const char *section;
		uint64_t at;
		const char *want;
	} cases[] = {
		{".text", 0, "sized"},
		{".text", 15, "sized"},
		{".text", 16, ""},
		{".text", 31, ""},
		{".text", 32, "label"},
		{".text", 47, "label"},
		{".text", 48, "next_label"},
		{".text", 63, "next_label"},
		{".text", 64, "outer"},
		{".text", 85, "outer"},
		{".text", 96, "inner"},
		{".text", 112, "outer"},
		{".text", 127, "outer"},
		{".text", 128, "shown"},
		{".text", 143, "shown"},
		{".text", 144, "last_label"},
		{".text", 159, "last_label"},
		{".other", 0, ""},
		{".other", 16, "unsized_function"},
		{".other", 31, "unsized_function"},
		{".other", 32, ""},
		{".data", 0, ""},
	};
	size_t nr = ARRAY_SIZE(cases), nr_there;
	uint64_t *vaddrs = calloc(nr, sizeof(*vaddrs));
	struct looked_up l;

	write_text("rules.s", rules_source);
	CHECK(shell("gcc -nostdlib -shared -o rules rules.s"));
	for (size_t i = 0; i < nr; i++) {
		uint64_t *there = section_addresses("rules", cases[i].section, 1, &nr_there);

		vaddrs[i] = there[0] + cases[i].at;
		free(there);
	}
	l = look_up("rules", &plain, vaddrs, nr);
	CHECK_EQ(l.err, 0);
	for (size_t i = 0; i < nr; i++) {
		CHECK_EQ(l.results[i].nr_lines, 1);
		CHECK_STR(l.results[i].lines[0].function, cases[i].want);
		CHECK_STR(l.results[i].lines[0].file, "");
	}
	CHECK_EQ(l.stats.unknown, 5);
	CHECK_EQ(l.stats.addresses, nr);
	looked_up_free(&l);
}

static void requests(void)
{
	struct symbol_request r[6] = {0};
	struct symbol_result got[6];
	struct symbolizer *s;
	struct elffile *e;
	uint64_t *text;
	uint32_t id;
	size_t nr;
	char *path = xasprintf("%s/rules", fixture_dir);

	text = section_addresses("rules", ".text", 1, &nr);
	CHECK_EQ(elffile__open(path, &e), 0);
	CHECK_EQ(symbolizer__new(&plain, &s), 0);
	CHECK_EQ(symbolizer__add_module(s, &(struct symbol_module){.elf = e, .path = "[odd]"}, &id),
		 0);
	r[0].return_address = r[5].return_address = true;
	r[2].module = 5;
	r[4].vaddr = UINT64_MAX;
	r[0].vaddr = r[1].vaddr = text[16]; /* the end of "sized": behind its last call */
	r[3].vaddr = text[0];
	CHECK_EQ(symbolizer__resolve(s, r, 6, got), 0);
	CHECK_STR(got[0].lines->function, "sized");
	CHECK_STR(got[1].lines->function, "");
	CHECK_STR(got[2].lines->function, ""); /* no such module */
	CHECK_STR(got[3].lines->function, "sized");
	CHECK_STR(got[4].lines->function, "");
	CHECK_STR(got[5].lines->function, ""); /* 0 has nothing in front of it */
	/* Again: the same, and of new ones what is new. */
	r[1].vaddr = text[64];
	CHECK_EQ(symbolizer__resolve(s, r, 6, got), 0);
	CHECK_STR(got[0].lines->function, "sized");
	CHECK_STR(got[1].lines->function, "outer");
	CHECK_EQ(symbolizer__resolve(s, NULL, 0, NULL), 0);
	symbolizer__free(s);
	elffile__close(e);
	free(text);
	free(path);
}

struct wanted {
	const char *name;
	uint64_t vaddr;
};

static int is_wanted(void *ctx, const struct elffile_symbol *symbol)
{
	const struct wanted *w = ctx;

	return symbol->vaddr == w->vaddr && !strcmp(symbol->name, w->name);
}

/*
 * The C library has exported symbols only; the dynamic linker looks addresses up in the same table.
 */
static void as_dladdr(void)
{
	struct looked_up l;
	size_t nr, named = 0;
	uint64_t *vaddrs;
	Dl_info info;

	CHECK(dladdr((void *)(uintptr_t)&gnu_get_libc_version, &info));
	vaddrs = section_addresses(info.dli_fname, ".text", 97, &nr);
	l = look_up(info.dli_fname, &plain, vaddrs, nr);
	for (size_t i = 0; i < nr; i++) {
		Dl_info at;
		const ElfW(Sym) *sym = NULL;
		uintptr_t base = (uintptr_t)info.dli_fbase;
		const char *got = l.results[i].lines->function;

		CHECK(dladdr1((void *)(base + vaddrs[i]), &at, (void **)&sym, RTLD_DL_SYMENT));
		if (!at.dli_sname || !sym || vaddrs[i] >= sym->st_value + sym->st_size) {
			CHECK_STR(got, "");
			continue;
		}
		named++;
		/* Of several names for a place it may choose another one. */
		if (strcmp(got, at.dli_sname) != 0) {
			struct wanted w = {got, sym->st_value};

			CHECK_EQ(elffile__symbols(l.elf, is_wanted, &w), 1);
		}
	}
	CHECK(named > nr / 4);
	looked_up_free(&l);
}

/* ---- stubs ---- */

static const char stubs_source[] =
	"#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n"
	"int main(int c, char **v) { void (*f)(void *) = free; f(malloc(c)); puts(*v); free(0); return getpid() > atoi(*v); }\n";

/* "0000000000001030 <puts@plt>:" of each stub. */
static size_t objdump_stubs(const char *program, uint64_t *vaddrs, char (*names)[64], size_t max)
{
	char *path = xasprintf("%s/stubs.txt", fixture_dir), line[256];
	size_t nr = 0;
	FILE *f;

	CHECK(shell("objdump -d %s | grep '@plt>:' > stubs.txt", program));
	f = fopen(path, "r");
	while (f && nr < max && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx <%63[^>]>:", &vaddrs[nr], names[nr]) == 2)
			nr++;
	}
	if (f)
		fclose(f);
	free(path);
	return nr;
}

static void stubs(void)
{
	static const char *const flags[] = {
		"",
		"-Wl,-z,lazy",
		"-Wl,-z,now",
		"-fcf-protection -Wl,-z,ibtplt",
		"-fcf-protection -Wl,-z,ibtplt,-z,now",
		"-no-pie -Wl,-z,lazy",
	};

	write_text("stubs.c", stubs_source);
	for (size_t f = 0; f < ARRAY_SIZE(flags); f++) {
		uint64_t *vaddrs = calloc(64, sizeof(*vaddrs));
		char names[64][64];
		struct looked_up l;
		size_t nr;

		CHECK(shell("gcc -O1 %s -o stubs stubs.c && strip stubs", flags[f]));
		nr = objdump_stubs("stubs", vaddrs, names, 32);
		CHECK(nr >= 3);
		for (size_t i = 0; i < nr; i++) /* within the stub, too */
			vaddrs[nr + i] = vaddrs[i] + 6;
		l = look_up("stubs", &plain, vaddrs, 2 * nr);
		for (size_t i = 0; i < 2 * nr; i++) {
			const char *got = l.results[i].lines->function, *want = names[i % nr];

			/* The 8-byte ones of .plt.got end there. */
			if (i < nr || strcmp(got, "") != 0)
				CHECK_STR(got, want);
		}
		looked_up_free(&l);
	}
}

static void setting_up(void)
{
	fixture_make();
}

UNIT_MAIN(TEST(setting_up), TEST(which_symbol), TEST(requests), TEST(as_dladdr), TEST(stubs))
