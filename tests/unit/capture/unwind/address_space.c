// SPDX-License-Identifier: BSD-2-Clause
#include "capture/unwind/unwind.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kprof.h"
#include "unit.h"

static struct modules *fresh(void)
{
	const struct modules_opts opts = {.cache_dir = ""};
	struct modules *ms = NULL;

	CHECK_EQ(modules__new(&opts, &ms), 0);
	return ms;
}

__attribute__((noinline)) void marker_in_this_file(void);
void marker_in_this_file(void)
{
	__asm__ volatile("");
}

static uint64_t address_of(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

/* Its place in the file's own terms is what the file's symbol table says. */
static void addresses_lead_to_files(void)
{
	struct modules *ms = fresh();
	struct elffile_symbol symbol;
	struct address_space *s;
	uint64_t ip = address_of((const void *)marker_in_this_file);
	size_t i;

	CHECK_EQ(address_space__open(ms, getpid(), &s), 0);
	i = address_space__find(s, ip);
	CHECK(i != SIZE_MAX);
	CHECK_EQ(s->areas[i].kind, CODE_AREA_FILE);
	CHECK_EQ(elffile__symbol(s->areas[i].module->elf, "marker_in_this_file", &symbol), 0);
	CHECK_EQ(mapping_vaddr(&s->mappings[i], ip), symbol.vaddr);
	CHECK_EQ(address_space__find(s, 0), SIZE_MAX);
	CHECK_EQ(address_space__find(s, address_of(&s)),
		 SIZE_MAX); /* the stack is not executable */
	for (i = 1; i < s->nr; i++)
		CHECK(s->mappings[i - 1].end <= s->mappings[i].start);
	address_space__close(s);
	modules__free(ms);
}

/* What was told of a process, oldest first: a later mapping replaces what it covers. */
static void told(void)
{
	struct modules *ms = fresh();
	struct address_space *s, *t;
	struct proc_map maps[3];
	const struct proc_map *own;
	uint64_t ip = address_of((const void *)marker_in_this_file);

	CHECK_EQ(address_space__open(ms, getpid(), &s), 0);
	own = proc_maps__find(s->maps, ip);
	maps[0] = (struct proc_map){.start = 0x1000, .end = own->end + 0x1000, .inode = 1};
	maps[1] = *own;
	maps[2] = (struct proc_map){.start = 0x3000, .end = 0x4000, .inode = 77, .dev = 5};
	CHECK_EQ(address_space__of_maps(ms, maps, 3, &t), 0);
	CHECK_EQ(t->nr, 2);
	CHECK_EQ(address_space__find(t, 0x3800), 0);
	CHECK(!t->areas[0].module); /* nobody has met this file */
	CHECK_EQ(address_space__find(t, ip), 1);
	CHECK(t->areas[1].module == s->areas[address_space__find(s, ip)].module);
	CHECK_EQ(mapping_vaddr(&t->mappings[1], ip),
		 mapping_vaddr(&s->mappings[address_space__find(s, ip)], ip));
	CHECK_EQ(address_space__find(t, 0x1800), SIZE_MAX);
	address_space__close(t);
	address_space__close(s);
	modules__free(ms);
}

static void mappings_follow_their_modules(void)
{
	struct modules *ms = fresh();
	const struct kprof_unwind_mapping *m;
	struct module *module;
	struct address_space *s;
	size_t i;

	CHECK_EQ(address_space__open(ms, getpid(), &s), 0);
	i = address_space__find(s, address_of((const void *)marker_in_this_file));
	m = &s->mappings[i];
	module = s->areas[i].module;
	CHECK_EQ(m->kind, KPROF_UNWIND_PENDING);
	CHECK_EQ(address_space__settle(s), 0);
	modules__build(ms, module);
	CHECK_EQ(address_space__settle(s), 0); /* built, not placed */
	CHECK_EQ(m->kind, KPROF_UNWIND_PENDING);
	module->first_page = 7;
	CHECK_EQ(address_space__settle(s), 1);
	CHECK_EQ(m->kind, KPROF_UNWIND_TABLE);
	CHECK_EQ(m->first_page, 7);
	CHECK_EQ(m->nr_pages, module__table(module)->nr_pages);
	CHECK_EQ(m->table_page, module__table(module)->first_page);
	modules__drop_table(ms, module); /* the kernel has it */
	CHECK_EQ(address_space__settle(s), 0);
	CHECK_EQ(m->kind, KPROF_UNWIND_TABLE);
	address_space__close(s);
	modules__free(ms);
}

static void code_made_at_run_time(void)
{
	struct modules *ms = fresh();
	struct address_space *s;
	size_t before, i;
	void *code;

	CHECK_EQ(address_space__open(ms, getpid(), &s), 0);
	CHECK_EQ(address_space__refresh(s), 0);
	before = s->nr;
	code = mmap(NULL, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK_EQ(address_space__refresh(s), 1);
	CHECK_EQ(s->nr, before + 1);
	i = address_space__find(s, address_of(code) + 8191);
	CHECK(i != SIZE_MAX);
	CHECK_EQ(s->areas[i].kind, CODE_AREA_JIT);
	CHECK_EQ(s->mappings[i].kind, KPROF_UNWIND_POINTERS);
	CHECK_EQ(address_space__refresh(s), 0);
	munmap(code, 8192);
	CHECK_EQ(address_space__refresh(s), 1);
	CHECK_EQ(address_space__find(s, address_of(code)), SIZE_MAX);
	address_space__close(s);
	modules__free(ms);
}

static void the_vdso_has_a_table(void)
{
	uint64_t vdso = getauxval(AT_SYSINFO_EHDR);
	struct modules *ms = fresh();
	struct address_space *s, *other;
	struct module *module;
	pid_t child;
	size_t i;

	if (!vdso) {
		printf("# this kernel gives programs no vDSO\n");
		modules__free(ms);
		return;
	}
	child = fork();
	if (!child) {
		pause();
		_exit(0);
	}
	CHECK_EQ(address_space__open(ms, getpid(), &s), 0);
	CHECK_EQ(address_space__open(ms, child, &other), 0);
	i = address_space__find(s, vdso);
	CHECK(i != SIZE_MAX);
	CHECK_EQ(s->areas[i].kind, CODE_AREA_VDSO);
	module = s->areas[i].module;
	CHECK_STR(module->path, "[vdso]");
	modules__build(ms, module);
	CHECK_EQ(module__state(module), MODULE_READY);
	CHECK(module__table(module)->counts.ranges >= 3);
	CHECK(other->areas[address_space__find(other, vdso)].module == module);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	CHECK_EQ(address_space__refresh(other), -ESRCH);
	CHECK(address_space__find(other, vdso) != SIZE_MAX); /* as it was */
	address_space__close(s);
	address_space__close(other);
	modules__free(ms);
}

static void what_is_the_kernels(void)
{
	struct modules *ms = fresh();
	struct address_space *s;
	size_t i;

	CHECK_EQ(address_space__open(ms, getpid(), &s), 0);
	i = address_space__find(s, 0xffffffffff600000);
	if (i == SIZE_MAX) {
		printf("# this kernel has no vsyscall page\n");
	} else {
		CHECK_EQ(s->areas[i].kind, CODE_AREA_SPECIAL);
		CHECK_EQ(s->mappings[i].kind, KPROF_UNWIND_WITHOUT);
		CHECK_STR(s->areas[i].name, "[vsyscall]");
	}
	address_space__close(s);
	modules__free(ms);
}

/* lld's layout: the code begins within a page of the file, and that page is mapped twice. */
struct odd_elf {
	Elf64_Ehdr header;
	Elf64_Phdr loads[3];
	char rest[0x3000];
};

static struct odd_elf make_odd_elf(void)
{
	struct odd_elf e = {
		.header = {.e_type = ET_DYN,
			   .e_machine = EM_X86_64,
			   .e_version = EV_CURRENT,
			   .e_phoff = offsetof(struct odd_elf, loads),
			   .e_phnum = 3,
			   .e_ehsize = sizeof(Elf64_Ehdr),
			   .e_phentsize = sizeof(Elf64_Phdr)},
	};

	memcpy(e.header.e_ident, ELFMAG, SELFMAG);
	e.header.e_ident[EI_CLASS] = ELFCLASS64;
	e.header.e_ident[EI_DATA] = ELFDATA2LSB;
	e.header.e_ident[EI_VERSION] = EV_CURRENT;
	e.loads[0] = (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = 0x1234};
	e.loads[1] = (Elf64_Phdr){.p_type = PT_LOAD,
				  .p_flags = PF_R | PF_X,
				  .p_offset = 0x1234,
				  .p_vaddr = 0x2234,
				  .p_filesz = 0x500};
	e.loads[2] = (Elf64_Phdr){.p_type = PT_LOAD,
				  .p_flags = PF_R | PF_X,
				  .p_offset = 0x1800,
				  .p_vaddr = 0x403800,
				  .p_filesz = 0x1000};
	return e;
}

static void segments_within_a_page(void)
{
	struct odd_elf image = make_odd_elf();
	struct modules *ms = fresh();
	struct module *m, *again;

	CHECK_EQ(modules__of_image(ms, "odd", &image, sizeof(image), &m), 0);
	CHECK(m->elf != NULL);
	if (m->elf) {
		CHECK_EQ(elffile__code_vaddr(m->elf, 0x1000), 0x2000);
		CHECK_EQ(elffile__code_vaddr(m->elf, 0x1234), 0x2234);
		CHECK_EQ(elffile__code_vaddr(m->elf, 0x1900), 0x403900);
		CHECK_EQ(elffile__code_vaddr(m->elf, 0x2000), 0x404000);
		CHECK_EQ(elffile__code_vaddr(m->elf, 0x9000), UINT64_MAX);
		CHECK_EQ(elffile__code_vaddr(m->elf, 0), UINT64_MAX);
	}
	modules__build(ms, m);
	CHECK_EQ(module__state(m), MODULE_WITHOUT);
	CHECK(m->pointers); /* it describes nothing */
	CHECK_EQ(modules__of_image(ms, "odd", &image, sizeof(image), &again), 0);
	CHECK(m == again);
	modules__free(ms);
}

static void who_is_gone(void)
{
	struct modules *ms = fresh();
	struct address_space *s = NULL;
	pid_t child = fork();

	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
	CHECK_EQ(address_space__open(ms, child, &s), -ESRCH);
	CHECK(!s);
	modules__free(ms);
}

UNIT_MAIN(TEST(addresses_lead_to_files), TEST(told), TEST(mappings_follow_their_modules),
	  TEST(code_made_at_run_time), TEST(the_vdso_has_a_table), TEST(what_is_the_kernels),
	  TEST(segments_within_a_page), TEST(who_is_gone))
