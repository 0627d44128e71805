// SPDX-License-Identifier: BSD-2-Clause
/*
 * Assembly without call frame information, executed one instruction at a time: at each of them the
 * rule that was read out of the code leads to the caller's address, stack pointer, rbp and rbx, as
 * they were at the call.
 */
#include <limits.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "symbol/unwind/unwind.h"
#include "unit.h"

#include "bpf/unwind.h"

/* ---- the functions ---- */

#define FUNCTION(name, body)                                                                \
	__asm__(".text\n.p2align 4\n.globl asm_" #name "\n.type asm_" #name ", @function\n" \
		"asm_" #name ":\n" body ".size asm_" #name ", .-asm_" #name "\n");          \
	long asm_##name(long n);

FUNCTION(pushes, "push %rbp\n push %rbx\n push %r12\n sub $24, %rsp\n mov %rdi, %rbx\n"
		 "xor %ebp, %ebp\n 1: add %rbx, %rbp\n dec %rbx\n jnz 1b\n lea (%rbp), %rax\n"
		 "add $24, %rsp\n pop %r12\n pop %rbx\n pop %rbp\n ret\n")

FUNCTION(moves, "endbr64\n sub $0x80, %rsp\n mov %rbx, (%rsp)\n mov %rbp, 8(%rsp)\n"
		"mov %r12, 0x10(%rsp)\n mov %rdi, %rbx\n xor %ebp, %ebp\n vzeroupper\n"
		"1: lea 0(%rbp,%rbx,1), %rbp\n sub $1, %rbx\n jg 1b\n mov %rbp, %rax\n"
		"mov (%rsp), %rbx\n mov 8(%rsp), %rbp\n mov 0x10(%rsp), %r12\n"
		"add $0x80, %rsp\n ret\n")

/* The stack pointer of before lies on the realigned stack. */
FUNCTION(realigned, "push %rbp\n push %rbx\n mov %rsp, %rax\n and $-128, %rsp\n"
		    "sub $0x180, %rsp\n mov %rax, 0x140(%rsp)\n mov %rdi, %rbp\n xor %eax, %eax\n"
		    "movaps %xmm0, 0x20(%rsp)\n 1: add %rbp, %rax\n dec %rbp\n jnz 1b\n"
		    "mov 0x140(%rsp), %rsp\n pop %rbx\n pop %rbp\n ret\n")

FUNCTION(realigned_rbp,
	 "push %rbp\n mov %rsp, %rbp\n and $~63, %rsp\n sub $128, %rsp\n"
	 "mov %rbx, -8(%rbp)\n xor %ebx, %ebx\n push $5\n pushfq\n popfq\n pop %rax\n"
	 "lea (%rbx,%rdi), %rax\n mov -8(%rbp), %rbx\n leave\n ret\n")

/* As compilers do it where arguments lie on the stack. */
FUNCTION(realigned_r10,
	 "lea 8(%rsp), %r10\n and $-64, %rsp\n pushq -8(%r10)\n push %rbp\n"
	 "mov %rsp, %rbp\n push %rbx\n push %r10\n sub $0x70, %rsp\n xor %ebx, %ebx\n"
	 "mov %rdi, %rax\n xor %r10d, %r10d\n add $0x70, %rsp\n pop %r10\n pop %rbx\n"
	 "pop %rbp\n lea -8(%r10), %rsp\n ret\n")

/* rbp in a register that calls do not preserve, and nowhere else. */
FUNCTION(rbp_in_r11,
	 "mov %rbp, %r11\n sub $8, %rsp\n mov %rdi, %rbp\n xor %eax, %eax\n"
	 "1: add %rbp, %rax\n dec %rbp\n jnz 1b\n mov %r11, %rbp\n add $8, %rsp\n ret\n")

/* An early return, code behind it, a jump over data and two ways to one place. */
FUNCTION(returns,
	 "push %rbx\n mov %rdi, %rbx\n cmp $3, %rdi\n jg 1f\n mov %rdi, %rax\n pop %rbx\n"
	 "ret\n .p2align 4\n 1: sub $32, %rsp\n test $1, %dil\n jz 2f\n inc %rbx\n jmp 3f\n"
	 ".quad 0x5b5b5b5b5b5b5b5b\n 2: dec %rbx\n 3: lea (%rbx,%rbx), %rax\n"
	 "add $32, %rsp\n pop %rbx\n ret\n int3\n")

FUNCTION(grows, "push %rbp\n mov %rsp, %rbp\n push %rbx\n lea 15(%rdi), %rax\n and $-16, %rax\n"
		"sub %rax, %rsp\n movb $1, (%rsp)\n push %rdi\n pop %rbx\n lea (%rbx,%rbx), %rax\n"
		"lea -8(%rbp), %rsp\n pop %rbx\n pop %rbp\n ret\n")

FUNCTION(
	table,
	"push %rbx\n sub $16, %rsp\n mov %rdi, %rbx\n and $3, %ebx\n lea 9f(%rip), %rax\n"
	"movslq (%rax,%rbx,4), %rdx\n add %rax, %rdx\n jmp *%rdx\n"
	".section .rodata\n 9: .long 1f-9b, 2f-9b, 1f-9b, 3f-9b\n .text\n 1: lea 1(%rdi), %rax\n jmp 4f\n"
	"2: push %rdi\n pop %rax\n jmp 4f\n 3: mov $7, %eax\n 4: add $16, %rsp\n pop %rbx\n ret\n")

/* The table lies amid the code, which cannot be told from it then. */
FUNCTION(table_inside, "push %rbx\n sub $16, %rsp\n mov %rdi, %rbx\n and $3, %ebx\n"
		       "lea 9f(%rip), %rax\n movslq (%rax,%rbx,4), %rdx\n add %rax, %rdx\n"
		       "jmp *%rdx\n 9: .long 1f-9b, 2f-9b, 1f-9b, 3f-9b\n 1: lea 1(%rdi), %rax\n"
		       "jmp 4f\n 2: push %rdi\n pop %rax\n jmp 4f\n 3: mov $7, %eax\n"
		       "4: add $16, %rsp\n pop %rbx\n ret\n")

/* As careless assembly has it: no size, and a second name. */
__asm__(".text\n.p2align 4\n.globl asm_unsized, asm_alias\n.type asm_unsized, @function\n"
	".type asm_alias, @function\n asm_unsized: asm_alias: push %rbx\n push %rbp\n"
	"mov %rdi, %rbx\n lea (%rdi,%rdi), %rbp\n lea (%rbx,%rbp), %rax\n pop %rbp\n"
	"pop %rbx\n ret\n .p2align 5\n");
long asm_unsized(long n);
#define UNSIZED_BYTES 16 /* with its ret */

/* A function within, and where am I. */
FUNCTION(within,
	 "push %rbx\n mov %rdi, %rbx\n call 1f\n call 2f\n 2: pop %rdx\n add %rbx, %rax\n"
	 "pop %rbx\n ret\n 1: push %rbp\n lea 4(%rbx), %rbp\n mov %rbp, %rax\n pop %rbp\n ret\n")

FUNCTION(enters, "enter $48, $0\n mov %rdi, -8(%rbp)\n xchg %rbx, %r9\n mov %rdi, %rbx\n"
		 "mov -8(%rbp), %rax\n xchg %r9, %rbx\n leave\n ret $0\n")

/* The stack is another one for a while; where it lies is in memory that nothing is known of. */
FUNCTION(switches,
	 "mov asm_other_stack(%rip), %rax\n xchg %rax, %rsp\n mov %rax, asm_old_stack(%rip)\n"
	 "push $1\n pop %rdx\n mov asm_old_stack(%rip), %rsp\n mov %rdi, %rax\n ret\n")

__attribute__((used)) char *asm_other_stack;
__attribute__((used)) void *asm_old_stack;

#define ANY UINT_MAX

static const struct {
	const char *name;
	long (*call)(long n);
	bool bp_lost, bx_lost; /* on the way */
	unsigned int unknown;  /* instructions without a rule */
} functions[] = {
	{"asm_pushes", asm_pushes, false, false, 0},
	{"asm_moves", asm_moves, false, false, 0},
	{"asm_realigned", asm_realigned, false, false, 0},
	{"asm_realigned_rbp", asm_realigned_rbp, false, false, 0},
	{"asm_realigned_r10", asm_realigned_r10, false, false, 0},
	{"asm_rbp_in_r11", asm_rbp_in_r11, true, false, 0},
	{"asm_returns", asm_returns, false, false, 0},
	{"asm_grows", asm_grows, false, false, 0},
	{"asm_table", asm_table, false, false, 0},
	{"asm_table_inside", asm_table_inside, false, false, ANY},
	{"asm_unsized", asm_unsized, false, false, 0},
	{"asm_within", asm_within, false, false, 0},
	{"asm_enters", asm_enters, false, true, 0},
	{"asm_switches", asm_switches, false, false, 1},
};

/* ---- the walker ---- */

static struct unwind_rules *rules;
static struct unwind_table *table;
static uint64_t bias;

static int unwind_read(void *to, kprof_u32 bytes, kprof_u64 address)
{
	memcpy(to, (const void *)(uintptr_t)address, bytes);
	return 0;
}

static int unwind_mapping(kprof_u32 space, kprof_u64 ip, struct kprof_unwind_mapping *m)
{
	(void)space;
	*m = (struct kprof_unwind_mapping){.start = ip,
					   .end = ip + 1,
					   .bias = bias,
					   .nr_pages = (uint32_t)table->nr_pages,
					   .table_page = (uint32_t)table->first_page};
	return 0;
}

static int unwind_rule(kprof_u32 page, kprof_u16 at, struct kprof_unwind_rule *r)
{
	*r = unwind_rules__at(
		rules, unwind_table__find(
			       table, (table->first_page + page) << KPROF_UNWIND_PAGE_BITS | at));
	return 0;
}

/* ---- step by step ---- */

#define TRAP_FLAG 0x100

static struct {
	uint64_t start, end; /* of the function's code */
	bool entered;
	uint64_t sp; /* of the function's own frame, as a local call makes another */
	struct kprof_unwind_walk caller;
	/* What came out. */
	unsigned int steps, wrong, unknown, bp_lost, bx_lost;
	uint64_t first_wrong;
} run;

static uint64_t word(uint64_t address)
{
	uint64_t value;

	memcpy(&value, (const void *)(uintptr_t)address, sizeof(value));
	return value;
}

static void walk_from(struct kprof_unwind_walk *w, const greg_t *g)
{
	static const int by_dwarf[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
				       REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
				       REG_R12, REG_R13, REG_R14, REG_R15};

	memset(w, 0, sizeof(*w));
	for (int i = 0; i < 16; i++)
		w->regs[i] = (uint64_t)g[by_dwarf[i]];
	w->ip = (uint64_t)g[REG_RIP];
	w->sp = (uint64_t)g[REG_RSP];
	w->bp = (uint64_t)g[REG_RBP];
	w->bx = (uint64_t)g[REG_RBX];
	w->exact = w->innermost = 1;
}

static void check(const greg_t *g)
{
	const struct kprof_unwind_walk *want = &run.caller;
	struct kprof_unwind_walk w;
	bool ended;

	walk_from(&w, g);
	run.steps++;
	ended = unwind_step(&w);
	/* What is called within the function returns into it: one frame more. */
	if (!ended && w.ip >= run.start && w.ip < run.end)
		ended = unwind_step(&w);
	if (ended && w.end == KPROF_UNWIND_ODD_RULE) {
		run.unknown++;
		return;
	}
	run.bp_lost += w.bp_lost;
	run.bx_lost += w.bx_lost;
	if (ended || w.ip != want->ip || w.sp != want->sp || (!w.bp_lost && w.bp != want->bp) ||
	    (!w.bx_lost && w.bx != want->bx)) {
		if (!run.wrong++)
			run.first_wrong = (uint64_t)g[REG_RIP] - run.start;
	}
}

static void on_trap(int signal, siginfo_t *info, void *context)
{
	greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
	uint64_t ip = (uint64_t)g[REG_RIP];

	(void)signal;
	(void)info;
	if (ip == run.start && !run.entered) {
		walk_from(&run.caller, g);
		run.caller.ip = word(run.caller.sp);
		run.caller.sp += 8;
		run.entered = true;
	}
	if (run.entered && ip >= run.start && ip < run.end)
		check(g);
	else if (run.entered)
		g[REG_EFL] &= ~TRAP_FLAG;
}

static __attribute__((noinline)) long step_through(long (*call)(long), long n)
{
	/* Values that a wrong rule does not find by accident. */
	register long bx __asm__("rbx") = 0x1234567;

	__asm__ volatile("pushfq\n orl $0x100, (%%rsp)\n popfq" : "+r"(bx)::"memory", "cc");
	n = call(n);
	__asm__ volatile("" : "+r"(bx));
	return n;
}

static void step_by_step(void)
{
	static char alternate[1 << 16];
	stack_t stack = {.ss_sp = alternate, .ss_size = sizeof(alternate)}, old_stack;
	struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_ONSTACK},
			 old;
	struct elffile *e;

	CHECK_EQ(unwind_rules__new(&rules), 0);
	CHECK_EQ(elffile__open("/proc/self/exe", &e), 0);
	CHECK_EQ(unwind_table__build(e, rules, NULL, &table), 0);
	asm_other_stack = (char *)mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) +
			  (1 << 15);
	sigaltstack(&stack, &old_stack);
	sigaction(SIGTRAP, &action, &old);
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		struct elffile_symbol symbol = {0};

		CHECK_EQ(elffile__symbol(e, functions[i].name, &symbol), 0);
		bias = (uint64_t)(uintptr_t)functions[i].call - symbol.vaddr;
		for (long n = 1; n < 8; n++) {
			memset(&run, 0, sizeof(run));
			run.start = (uint64_t)(uintptr_t)functions[i].call;
			run.end = run.start + (symbol.size ? symbol.size : UNSIZED_BYTES);
			step_through(functions[i].call, n);
			if (run.wrong)
				printf("# %s(%ld): %u steps, %u wrong (first at +%#llx), %u unknown\n",
				       functions[i].name, n, run.steps, run.wrong,
				       (unsigned long long)run.first_wrong, run.unknown);
			CHECK(run.steps > 5);
			CHECK_EQ(run.wrong, 0);
			if (functions[i].unknown != ANY)
				CHECK_EQ(run.unknown, functions[i].unknown);
			CHECK_EQ(run.bp_lost != 0, functions[i].bp_lost);
			CHECK_EQ(run.bx_lost != 0, functions[i].bx_lost);
		}
	}
	sigaction(SIGTRAP, &old, NULL);
	sigaltstack(&old_stack, NULL);
	unwind_table__free(table);
	unwind_rules__free(rules);
	elffile__close(e);
}

UNIT_MAIN(TEST(step_by_step))
