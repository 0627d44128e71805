// SPDX-License-Identifier: BSD-2-Clause
/*
 * Unwind tables against libdw: at sampled addresses of real files, the rule that the table has says
 * the same as libdw's reading of the same section. And files made by hand, for what compilers do
 * not produce.
 */
#include "symbol/unwind/unwind.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <gelf.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kprof.h"
#include "symbol/unwind/cfi.h"
#include "unit.h"

#define SAMPLES 4000 /* addresses a file */

enum { DW_BX = 3, DW_BP = 6, DW_SP = 7, DW_RA = 16 };

/* ---- what libdw says, as a rule ---- */

static void cfa_of(Dwarf_Frame *frame, struct kprof_unwind_rule *r)
{
	Dwarf_Op *ops;
	size_t nr;

	r->how = KPROF_UNWIND_UNKNOWN;
	if (dwarf_frame_cfa(frame, &ops, &nr) || !nr)
		return;
	if (nr == 1 && (ops[0].atom == DW_OP_bregx ||
			(ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31))) {
		uint64_t reg = ops[0].atom == DW_OP_bregx ? ops[0].number
							  : ops[0].atom - (uint64_t)DW_OP_breg0;

		r->cfa = (int32_t)(ops[0].atom == DW_OP_bregx ? ops[0].number2 : ops[0].number);
		r->how = (uint8_t)(reg == DW_SP   ? KPROF_UNWIND_SP
				   : reg == DW_BP ? KPROF_UNWIND_BP
				   : reg == DW_BX ? KPROF_UNWIND_BX
						  : KPROF_UNWIND_REGISTER + reg);
		return;
	}
	if (nr > 5 && ops[0].atom == DW_OP_breg7 && ops[1].atom == DW_OP_breg16) {
		r->how = KPROF_UNWIND_PLT;
		return;
	}
	if ((nr == 2 || nr == 3) && ops[1].atom == DW_OP_deref &&
	    (ops[0].atom == DW_OP_breg6 || ops[0].atom == DW_OP_breg7) &&
	    (nr == 2 || ops[2].atom == DW_OP_plus_uconst)) {
		r->how = ops[0].atom == DW_OP_breg6 ? KPROF_UNWIND_BP_AT : KPROF_UNWIND_SP_AT;
		r->cfa = (int32_t)ops[0].number;
		r->add = nr == 3 ? (int16_t)ops[2].number : 0;
	}
}

static uint8_t register_of(Dwarf_Frame *frame, int reg, int32_t *offset)
{
	Dwarf_Op memory[3], *ops;
	size_t nr;

	*offset = 0;
	if (dwarf_frame_register(frame, reg, memory, &ops, &nr))
		return KPROF_UNWIND_LOST;
	if (!nr) /* ops NULL: unchanged; ops = memory: undefined */
		return ops ? KPROF_UNWIND_LOST : KPROF_UNWIND_SAME;
	if (ops[0].atom == DW_OP_call_frame_cfa && nr <= 2 &&
	    (nr == 1 || ops[1].atom == DW_OP_plus_uconst || ops[1].atom == DW_OP_consts)) {
		*offset = nr == 1 ? 0 : (int32_t)ops[1].number;
		return KPROF_UNWIND_SAVED;
	}
	if (ops[0].atom == DW_OP_call_frame_cfa && nr == 3 && ops[2].atom == DW_OP_plus) {
		*offset = (int32_t)ops[1].number;
		return KPROF_UNWIND_SAVED;
	}
	/* An expression for where it lies begins with the CFA on the stack. */
	if (nr == 2 && ops[0].atom == DW_OP_call_frame_cfa && ops[1].atom == DW_OP_breg6) {
		*offset = (int32_t)ops[1].number;
		return KPROF_UNWIND_AT_BP;
	}
	return KPROF_UNWIND_LOST;
}

/*
 * False: libdw describes nothing there, or calls it invalid. Of all files in Debian's /usr/lib that
 * is one function of libgcrypt's, where DW_CFA_def_cfa_register follows an expression: we keep the
 * last offset, as libgcc does, and the code shows that it is meant.
 */
static bool oracle(Dwarf_CFI *cfi, uint64_t vaddr, struct kprof_unwind_rule *r)
{
	Dwarf_Frame *frame = NULL;
	bool signal = false;
	Dwarf_Op *ops;
	size_t nr;
	int32_t ra;
	uint8_t how;

	memset(r, 0, sizeof(*r));
	if (dwarf_cfi_addrframe(cfi, vaddr, &frame) || !frame)
		return false;
	if (dwarf_frame_cfa(frame, &ops, &nr)) {
		free(frame);
		return false;
	}
	dwarf_frame_info(frame, NULL, NULL, &signal);
	how = register_of(frame, DW_RA, &ra);
	if (signal) {
		r->how = KPROF_UNWIND_SIGNAL;
	} else if (how == KPROF_UNWIND_LOST) {
		r->how = KPROF_UNWIND_BOTTOM;
	} else {
		cfa_of(frame, r);
		if (how != KPROF_UNWIND_SAVED || ra != -8)
			r->how = KPROF_UNWIND_UNKNOWN;
		if (r->how != KPROF_UNWIND_UNKNOWN && r->how != KPROF_UNWIND_PLT) {
			uint8_t bp = register_of(frame, DW_BP, &r->bp);

			r->regs = KPROF_UNWIND_REGS(bp, register_of(frame, DW_BX, &r->bx));
		} else {
			r->cfa = 0;
			r->add = 0;
		}
	}
	free(frame);
	return true;
}

/* ---- real files ---- */

struct comparison {
	uint64_t same, other;
	/*
	 * libdw describes nothing there: code without CFI, stubs, padding after a function
	 */
	uint64_t ours;
	uint64_t neither; /* data, mostly */
};

/*
 * Of a register that no instruction mentions libdw says what the ABI says; its table for x86-64
 * leaves rbx out of those that calls preserve (elfutils 0.192), so that it comes as undefined.
 */
static bool equal(const struct kprof_unwind_rule *ours, const struct kprof_unwind_rule *theirs)
{
	struct kprof_unwind_rule a = *ours, b = *theirs;

	if (b.regs >> 2 == KPROF_UNWIND_LOST && a.regs >> 2 == KPROF_UNWIND_SAME)
		b.regs &= 3;
	return !memcmp(&a, &b, sizeof(a));
}

static void differ(const char *path, uint64_t vaddr, const struct kprof_unwind_rule *a,
		   const struct kprof_unwind_rule *b)
{
	printf("# %s at %#llx: how %u cfa %d add %d regs %#x bp %d bx %d, libdw: how %u cfa %d add %d regs %#x bp %d bx %d\n",
	       path, (unsigned long long)vaddr, a->how, a->cfa, a->add, a->regs, a->bp, a->bx,
	       b->how, b->cfa, b->add, b->regs, b->bp, b->bx);
}

static void compare_at(const char *path, const struct unwind_table *t, struct unwind_rules *rules,
		       Dwarf_CFI *cfi, uint64_t vaddr, struct comparison *c)
{
	struct kprof_unwind_rule ours = unwind_rules__at(rules, unwind_table__find(t, vaddr)),
				 theirs;

	if (!oracle(cfi, vaddr, &theirs)) {
		if (ours.how == KPROF_UNWIND_NONE)
			c->neither++;
		else
			c->ours++;
		return;
	}
	if (equal(&ours, &theirs)) {
		c->same++;
		return;
	}
	if (c->other++ < 5)
		differ(path, vaddr, &ours, &theirs);
}

/* Every row of small files, evenly spread addresses of all; between rows too. */
static void compare(const char *path, struct comparison *c)
{
	struct unwind_rules *rules;
	struct unwind_table *t = NULL;
	struct elffile *e = NULL;
	uint64_t bytes, step;
	Dwarf_CFI *cfi = NULL;
	Elf *elf = NULL;
	int fd = open(path, O_RDONLY);

	if (unwind_rules__new(&rules))
		return;
	if (fd < 0 || elffile__open(path, &e) || unwind_table__build(e, rules, NULL, &t))
		goto out;
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	cfi = elf ? dwarf_getcfi_elf(elf) : NULL;
	if (!cfi)
		goto out;
	bytes = (uint64_t)t->nr_pages << KPROF_UNWIND_PAGE_BITS;
	step = bytes / SAMPLES | 1;
	for (uint64_t at = 0; at < bytes; at += step)
		compare_at(path, t, rules, cfi, (t->first_page << KPROF_UNWIND_PAGE_BITS) + at, c);
	for (size_t p = 0; p < t->nr_pages; p++)
		for (uint32_t i = 0; i < t->pages[p].nr;
		     i += 1 + (uint32_t)(t->nr_rows / SAMPLES)) {
			const struct kprof_unwind_row *row = &t->rows[t->pages[p].first + i];

			compare_at(path, t, rules, cfi,
				   ((t->first_page + p) << KPROF_UNWIND_PAGE_BITS) + row->at, c);
		}
out:
	if (cfi)
		dwarf_cfi_end(cfi);
	if (elf)
		elf_end(elf);
	if (fd >= 0)
		close(fd);
	unwind_table__free(t);
	elffile__close(e);
	unwind_rules__free(rules);
}

static void summary(const char *description, const struct comparison *c)
{
	printf("# %s: %llu addresses the same, %llu not; described by ours alone %llu, by neither %llu\n",
	       description, (unsigned long long)c->same, (unsigned long long)c->other,
	       (unsigned long long)c->ours, (unsigned long long)c->neither);
}

static void this_machines_files(void)
{
	static const char *const files[] = {
		"/proc/self/exe",
		"/lib64/ld-linux-x86-64.so.2",
		"/lib/x86_64-linux-gnu/libc.so.6",
		"/lib/x86_64-linux-gnu/libm.so.6",
		"/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
		"/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
		"/usr/lib/x86_64-linux-gnu/libelf.so.1",
		"/usr/bin/python3",
		"/bin/bash",
	};
	struct comparison c = {0};

	elf_version(EV_CURRENT);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		compare(files[i], &c);
	summary("this machine's files", &c);
	CHECK(c.same > 10000);
	CHECK_EQ(c.other, 0);
}

/*
 * Every ELF file below a folder, where one is named: `KPROF_UNWIND_FILES=/usr/lib`. Links are not
 * followed.
 */
static struct comparison below;
static unsigned int files_below;

static int one_below(const char *path, const struct stat *st, int type, struct FTW *where)
{
	unsigned char ident[EI_NIDENT] = {0};
	struct comparison before = below;
	int fd;

	(void)where;
	if (type != FTW_F || !S_ISREG(st->st_mode) || (fd = open(path, O_RDONLY)) < 0)
		return 0;
	if (read(fd, ident, sizeof(ident)) == sizeof(ident) && !memcmp(ident, ELFMAG, SELFMAG) &&
	    ident[EI_CLASS] == ELFCLASS64) {
		below.other = 0; /* the first five of each file are printed */
		compare(path, &below);
		files_below += below.same > before.same;
		if (below.other)
			printf("# %s: %llu not, %llu the same\n", path,
			       (unsigned long long)below.other,
			       (unsigned long long)(below.same - before.same));
		below.other += before.other;
	}
	close(fd);
	return 0;
}

static void more_files(void)
{
	const char *folder = getenv("KPROF_UNWIND_FILES");

	if (!folder)
		return;
	CHECK_EQ(nftw(folder, one_below, 32, FTW_PHYS), 0);
	printf("# %u files with a table\n", files_below);
	summary(folder, &below);
	CHECK_EQ(below.other, 0);
}

/* Described as any other function, as Go's linker does it, right behind another one or not. */
static void way_back_from_a_signal(void)
{
	static const char source[] =
		".cfi_sections %s\n"
		"before: .cfi_startproc\n nop\n nop\n ret\n .cfi_endproc\n"
		".balign %d, 0xcc\n"
		"back: .cfi_startproc\n mov $15, %%rax\n syscall\n int3\n .cfi_endproc\n";
	static const char *const sections[] = {".eh_frame", ".debug_frame"};
	char path[] = "/tmp/kprof-unwind-XXXXXX", command[512];
	int fd = mkstemp(path);

	for (int i = 0; i < 4; i++) {
		uint64_t at = i & 1 ? 32 : 3, vaddr = 0;
		struct unwind_rules *rules = NULL;
		struct unwind_table *t = NULL;
		struct elffile *e = NULL;
		size_t bytes;
		FILE *as;

		snprintf(command, sizeof(command), "gcc -shared -nostdlib -o %s -x assembler -",
			 path);
		as = popen(command, "w");
		CHECK(as);
		fprintf(as, source, sections[i / 2], i & 1 ? 32 : 1);
		CHECK_EQ(pclose(as), 0);
		CHECK_EQ(unwind_rules__new(&rules), 0);
		CHECK_EQ(elffile__open(path, &e), 0);
		CHECK_EQ(unwind_table__build(e, rules, NULL, &t), 0);
		CHECK(elffile__section_at(e, ".text", &bytes, &vaddr));
		CHECK_EQ(unwind_rules__at(rules, unwind_table__find(t, vaddr)).how,
			 KPROF_UNWIND_SP);
		for (uint64_t k = at - 1; k < at + 9; k++)
			CHECK_EQ(unwind_rules__at(rules, unwind_table__find(t, vaddr + k)).how,
				 KPROF_UNWIND_SIGNAL);
		unwind_table__free(t);
		elffile__close(e);
		unwind_rules__free(rules);
	}
	close(fd);
	unlink(path);
}

UNIT_MAIN(TEST(this_machines_files), TEST(more_files), TEST(way_back_from_a_signal))
