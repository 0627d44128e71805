// SPDX-License-Identifier: BSD-2-Clause
/*
 * The signal frame is given to the kernel here, in a child: rt_sigreturn() must make of it what was
 * put in. And seccomp filters are run beside the kernel's own verdict; the loader whose lock is
 * looked at is this process's own. Processes are what tests/inject.bats is about.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/inject/priv.h"
#include "unit.h"

#define PAGE 4096u
#define XMM0 160 /* in the XSAVE area: 32 bytes of header, eight x87 registers */

/* ---- the frame ---- */

static void fill(struct remote *r, uint8_t *xstate, size_t bytes)
{
	static const uint64_t in_use = 3; /* x87, SSE */
	static const uint16_t control = 0x37f;
	static const uint32_t mxcsr = 0x1f80;

	memset(xstate, 0, bytes);
	memcpy(xstate, &control, sizeof(control));
	memcpy(xstate + 24, &mxcsr, sizeof(mxcsr));
	memset(xstate + XMM0, 0x5a, 16);
	memcpy(xstate + 512, &in_use, sizeof(in_use));
	*r = (struct remote){.xstate = xstate, .xstate_bytes = bytes, .mask = 1u << (SIGUSR1 - 1)};
	r->regs.cs = 0x33;
	r->regs.ss = 0x2b;
	r->regs.eflags = 0x202;
	r->regs.orig_rax = (unsigned long long)-1;
}

/* Runs on the frame's registers: r15 points to where the results go. */
__attribute__((naked, noreturn)) static void landing(void)
{
	__asm__("movdqu %xmm0, (%r15)\n"
		"movq %rbx, 16(%r15)\n"
		"movq %rsp, 24(%r15)\n"
		"movl $14, %eax\n" /* rt_sigprocmask(0, NULL, r15 + 32, 8) */
		"xorl %edi, %edi\n"
		"xorl %esi, %esi\n"
		"leaq 32(%r15), %rdx\n"
		"movl $8, %r10d\n"
		"syscall\n"
		"movl $60, %eax\n" /* exit(0) */
		"xorl %edi, %edi\n"
		"syscall\n"
		"hlt\n");
}

struct landed {
	uint8_t xmm0[16];
	uint64_t rbx, rsp, mask;
};

static void test_frame_is_what_the_kernel_takes(void)
{
	uint8_t xstate[1024], frame[INJECT_FRAME_MAX_BYTES];
	uint8_t *stack =
		mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct landed *landed =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t chain, text;
	struct remote r;
	int bytes, status;
	pid_t child;

	fill(&r, xstate, sizeof(xstate));
	r.regs.rsp = (uintptr_t)stack + 16 * PAGE - 1024 - 8;
	r.regs.rip = (uintptr_t)landing;
	r.regs.rbx = 0x1234567890abcdef;
	r.regs.r15 = (uintptr_t)landed;
	bytes = inject_frame_build(&r, 0, "a text", frame, &chain, &text);
	CHECK(bytes > 0);
	CHECK(chain + (uint64_t)bytes <= r.regs.rsp - INJECT_RED_ZONE);
	CHECK(chain % 16 == 0);
	memcpy((void *)(uintptr_t)chain, frame, (size_t)bytes);
	CHECK_STR((const char *)(uintptr_t)text, "a text");
	child = fork();
	if (!child) {
		/* The `ret` into rt_sigreturn() has taken the first word off the stack. */
		__asm__ volatile(
			"movq %0, %%rsp\n movl $15, %%eax\n syscall\n hlt\n" ::"r"(chain + 8)
			: "memory");
		__builtin_unreachable();
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
	CHECK(!memcmp(landed->xmm0, xstate + XMM0, 16));
	CHECK(landed->rbx == r.regs.rbx);
	CHECK(landed->rsp == r.regs.rsp);
	CHECK_EQ(landed->mask, r.mask);
	munmap(stack, 16 * PAGE);
	munmap(landed, PAGE);
}

/* ip and ax as in the frame: 8 bytes, uc_flags to uc_stack, then r8 … */
static uint64_t frame_word(const uint8_t *frame, int nr)
{
	uint64_t word;

	memcpy(&word, frame + 8 + 40 + 8 * nr, sizeof(word));
	return word;
}

#define FRAME_AX 13
#define FRAME_IP 16

static void test_interrupted_call_is_made_again(void)
{
	static const int restart[] = {-512, -513, -514, -516}, as_it_is[] = {-EINTR, 0, 17, -515};
	uint8_t xstate[1024], frame[INJECT_FRAME_MAX_BYTES];
	uint64_t chain, text;
	struct remote r;

	for (size_t i = 0; i < 4; i++) {
		fill(&r, xstate, sizeof(xstate));
		r.regs.rsp = 0x7fff00000000;
		r.regs.rip = 0x400002;
		r.regs.orig_rax = r.restart_nr = SYS_poll;
		r.regs.rax = (unsigned long long)restart[i];
		CHECK(remote__in_syscall(&r));
		CHECK(inject_frame_build(&r, 0, "", frame, &chain, &text) > 0);
		CHECK_EQ(frame_word(frame, FRAME_IP), 0x400000);
		CHECK_EQ(frame_word(frame, FRAME_AX), SYS_poll);
		r.regs.rax = (unsigned long long)as_it_is[i];
		CHECK(!remote__in_syscall(&r));
		CHECK(inject_frame_build(&r, 0, "", frame, &chain, &text) > 0);
		CHECK_EQ(frame_word(frame, FRAME_IP), 0x400002);
		CHECK_EQ(frame_word(frame, FRAME_AX), as_it_is[i]);
	}
	/* Not in a system call: whatever lies in rax is the program's. */
	r.regs.orig_rax = (unsigned long long)-1;
	r.regs.rax = (unsigned long long)-512;
	CHECK(!remote__in_syscall(&r));
}

static void test_frame_refuses_what_does_not_fit(void)
{
	uint8_t xstate[1024], frame[INJECT_FRAME_MAX_BYTES];
	char text[INJECT_TEXT_BYTES + 1];
	uint64_t chain, text_at;
	struct remote r;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	fill(&r, xstate, sizeof(xstate));
	r.regs.rsp = 0x7fff00000000;
	CHECK_EQ(inject_frame_build(&r, 0, text, frame, &chain, &text_at), -E2BIG);
}

static void test_xstate_ends_where_its_features_do(void)
{
	uint8_t xstate[4096] = {0};
	uint64_t in_use = 1ull << 62 | 1ull << 40, features;

	CHECK_EQ(inject_xstate_bytes(xstate, sizeof(xstate), &features), 576);
	CHECK_EQ(features, 3);
	memcpy(xstate + 512, &in_use, sizeof(in_use)); /* none that there is */
	CHECK_EQ(inject_xstate_bytes(xstate, sizeof(xstate), &features) >= 576, 1);
	CHECK_EQ(features & 3, 3);
	CHECK_EQ(features >> 40 & 1, 0);
}

static void test_stub_is_one_page_that_knows_where_it_waits(void)
{
	size_t bytes, waits = 0;

	CHECK(inject_stub_code(&bytes) != NULL);
	CHECK(bytes > 64 && bytes < INJECT_PAGE);
	for (uint64_t at = 0; at < 2 * (uint64_t)bytes; at++)
		waits += inject_stub_waits_at(at);
	CHECK(waits > 0 && waits < bytes / 2);
	CHECK(!inject_stub_waits_at(0));
	CHECK(!inject_stub_waits_at(bytes));
}

/* ---- filters ---- */

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/*
 * getppid() fails with the errno that the filter computes; the kernel's verdict and ours must be
 * one.
 */
static uint32_t both(const struct sock_filter *code, size_t nr, uint64_t arg)
{
	const struct sock_fprog program = {(unsigned short)nr, (struct sock_filter *)code};
	struct seccomp_data data = {
		.nr = SYS_getppid, .arch = AUDIT_ARCH_X86_64, .args = {arg, 2, 3, 4, 5, 6}};
	uint32_t verdict = inject_seccomp_run(code, nr, &data);
	pid_t child = fork();
	int status;

	if (!child) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
			_exit(255);
		_exit(syscall(SYS_getppid, arg, 2, 3, 4, 5, 6) < 0 ? errno : 0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	if ((verdict & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_KILL_PROCESS ||
	    (verdict & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_KILL_THREAD)
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
	else
		CHECK_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1,
			 verdict == SECCOMP_RET_ALLOW ? 0 : verdict & SECCOMP_RET_DATA);
	return verdict;
}

static void test_filter_says_what_the_kernel_says(void)
{
	static const uint64_t args[] = {0, 1, 7, 31, 32, 100, 0xffffffff};
	static const uint16_t ops[] = {BPF_ADD, BPF_SUB, BPF_MUL, BPF_DIV,
				       BPF_OR,  BPF_AND, BPF_XOR};
	static const uint16_t jumps[] = {BPF_JEQ, BPF_JGT, BPF_JGE, BPF_JSET};

	for (size_t o = 0; o < COUNT(ops) + COUNT(jumps); o++) {
		bool alu = o < COUNT(ops);
		const struct sock_filter code[] = {
			LOAD(nr),
			BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 1, 0),
			BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
			LOAD(args[1]),
			BPF_STMT(BPF_ST, 3),
			BPF_STMT(BPF_LDX | BPF_MEM, 3),
			LOAD(args[0]),
			alu ? (struct sock_filter)BPF_STMT(BPF_ALU | ops[o] | BPF_X, 0)
			    : (struct sock_filter)BPF_JUMP(BPF_JMP | jumps[o - COUNT(ops)] | BPF_K,
							   7, 1, 0),
			BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, 1),
			BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 63),
			BPF_STMT(BPF_ALU | BPF_OR | BPF_K, SECCOMP_RET_ERRNO),
			BPF_STMT(BPF_RET | BPF_A, 0),
		};

		for (size_t i = 0; i < COUNT(args); i++)
			both(code, COUNT(code), args[i]);
	}
}

/* By a register, whose value the kernel cannot check when a filter is installed. */
static void test_filter_that_shifts_or_divides(void)
{
	static const uint64_t args[] = {0, 1, 7, 31, 32, 33, 63, 0x80000001, 0xffffffff};
	static const uint16_t ops[] = {BPF_LSH, BPF_RSH, BPF_DIV};

	for (size_t o = 0; o < COUNT(ops); o++) {
		const struct sock_filter code[] = {
			LOAD(nr),
			BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 1, 0),
			BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
			LOAD(args[0]),
			BPF_STMT(BPF_MISC | BPF_TAX, 0),
			BPF_STMT(BPF_LD | BPF_IMM, 0x40000002),
			BPF_STMT(BPF_ALU | ops[o] | BPF_X, 0),
			BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 63),
			BPF_STMT(BPF_ALU | BPF_OR | BPF_K, SECCOMP_RET_ERRNO | 64),
			BPF_STMT(BPF_RET | BPF_A, 0),
		};

		for (size_t i = 0; i < COUNT(args); i++)
			both(code, COUNT(code), args[i]);
	}
}

static void test_filter_that_kills(void)
{
	const struct sock_filter code[] = {
		LOAD(nr),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 2),
		BPF_JUMP(BPF_JMP | BPF_JA, 0, 0, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	CHECK_EQ(both(code, COUNT(code), 0), SECCOMP_RET_KILL_PROCESS);
}

/* None that the kernel would install; nothing is read out of bounds. */
static void test_broken_filters_kill(void)
{
	static const struct sock_filter broken[][2] = {
		{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4000), BPF_STMT(BPF_RET | BPF_K, 0x7fff0000)},
		{BPF_STMT(BPF_LD | BPF_MEM, 99), BPF_STMT(BPF_RET | BPF_K, 0x7fff0000)},
		{BPF_STMT(BPF_ST, 99), BPF_STMT(BPF_RET | BPF_K, 0x7fff0000)},
		{BPF_STMT(BPF_JMP | BPF_JA, 0xffffff00), BPF_STMT(BPF_RET | BPF_K, 0x7fff0000)},
		{BPF_STMT(BPF_LD | BPF_IND, 0), BPF_STMT(BPF_RET | BPF_K, 0x7fff0000)},
		{BPF_STMT(BPF_LD | BPF_IMM, 0), BPF_STMT(BPF_MISC | BPF_TAX, 0)},
	};
	struct seccomp_data data = {0};

	for (size_t i = 0; i < COUNT(broken); i++)
		CHECK_EQ(inject_seccomp_run(broken[i], 2, &data), SECCOMP_RET_KILL_PROCESS);
	CHECK_EQ(inject_seccomp_run(broken[0], 0, &data), SECCOMP_RET_KILL_PROCESS);
}

/* ---- the loader's lock ---- */

static sem_t holds, may_end;

/* The loader holds its lock while it tells of its libraries. */
static int hold(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	(void)info, (void)bytes, (void)arg;
	sem_post(&holds);
	sem_wait(&may_end);
	return 1;
}

static void *hold_lock(void *arg)
{
	dl_iterate_phdr(hold, NULL);
	return arg;
}

static void *let_go(void *arg)
{
	usleep(20000);
	sem_post(&may_end);
	return arg;
}

static void test_loader_is_busy_until_it_is_not(void)
{
	struct inject_target t = {.pid = getpid(), .ld.base = getauxval(AT_BASE)};
	pthread_t holder, other;
	Dl_info ld;

	CHECK(t.ld.base && dladdr((void *)(uintptr_t)t.ld.base, &ld));
	CHECK_EQ(elffile__open(ld.dli_fname, &t.ld.elf), 0);
	CHECK(inject_loader_gets_free(&t, 1));
	sem_init(&holds, 0, 0);
	sem_init(&may_end, 0, 0);
	CHECK_EQ(pthread_create(&holder, NULL, hold_lock, NULL), 0);
	sem_wait(&holds);
	CHECK(!inject_loader_gets_free(&t, 1));
	CHECK(!inject_loader_gets_free(&t, 50));
	CHECK_EQ(pthread_create(&other, NULL, let_go, NULL), 0);
	CHECK(inject_loader_gets_free(&t, 1000000));
	pthread_join(other, NULL);
	pthread_join(holder, NULL);
	elffile__close(t.ld.elf);
}

/* ---- stacks ---- */

struct callers {
	_Atomic(void *) inner, outer; /* where these calls return to */
};

__attribute__((noinline)) static void wait_inner(struct callers *c)
{
	c->inner = __builtin_return_address(0);
	for (;;)
		pause();
}

__attribute__((noinline)) static void wait_outer(struct callers *c)
{
	c->outer = __builtin_return_address(0);
	wait_inner(c);
	__asm__ volatile(""); /* the call is not the last thing here */
}

static bool has_frame(const struct inject_stack *s, const void *return_address)
{
	for (size_t i = 0; i < s->nr; i++)
		if (s->frames[i].pc + 1 == (uintptr_t)return_address)
			return true;
	return false;
}

/* Its tables are built while it is stopped: this test holds it, no program is kept waiting. */
static void check_walk(pid_t child, const struct callers *c)
{
	struct user_regs_struct regs;
	struct inject_walker *w;
	struct inject_stack s;
	size_t built = 0;

	CHECK_EQ(ptrace(PTRACE_GETREGS, child, NULL, &regs), 0);
	CHECK_EQ(inject_walker__new(child, &w), 0);
	CHECK_EQ(inject_walker__refresh(w), 0);
	inject_walker__walk(w, &regs, &s);
	CHECK(!s.whole && s.table_missing);
	CHECK_EQ(s.nr, 1);
	CHECK_EQ(s.frames[0].pc, regs.rip);
	CHECK_EQ(s.reached, regs.rsp);
	for (; inject_walker__prepare_missing(w); built++)
		inject_walker__walk(w, &regs, &s);
	CHECK(built > 0 && built < 4);
	CHECK(s.whole && !s.table_missing);
	CHECK(has_frame(&s, c->inner) && has_frame(&s, c->outer));
	inject_walker__free(w);
	/*
	 * What is prepared is not missed: this program, its C library and the loader are all that
	 * there is.
	 */
	CHECK_EQ(inject_walker__new(child, &w), 0);
	CHECK_EQ(inject_walker__refresh(w), 0);
	CHECK(inject_walker__prepare(w, regs.rip, regs.rsp));
	inject_walker__walk(w, &regs, &s);
	CHECK(s.whole);
	CHECK(!inject_walker__prepare_missing(w));
	inject_walker__free(w);
}

static void test_stack_is_walked_once_its_tables_are_there(void)
{
	struct callers *c =
		mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child = fork();
	int status;

	if (!child) {
		wait_outer(c);
		_exit(1);
	}
	while (!c->inner)
		usleep(100);
	CHECK_EQ(ptrace(PTRACE_SEIZE, child, NULL, NULL), 0);
	CHECK_EQ(ptrace(PTRACE_INTERRUPT, child, NULL, NULL), 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFSTOPPED(status));
	check_walk(child, c);
	kill(child, SIGKILL);
	CHECK_EQ(waitpid(child, &status, 0), child);
	munmap(c, sizeof(*c));
}

/* ---- code in no file ---- */

/* A child that jumps to these instructions, with the address of pause() in rdi. */
static pid_t run_code(const void *code, size_t bytes, uint8_t **at)
{
	pid_t child;

	*at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		   0);
	memcpy(*at, code, bytes);
	child = fork();
	if (!child) {
		void (*run)(int (*)(void));

		memcpy(&run, at, sizeof(run));
		run(pause);
		_exit(1);
	}
	return child;
}

/* Stops the child when it is there (in the code, or in a call), and asks whether it may be used. */
static int ask(pid_t child, const uint8_t *code, char *why, size_t bytes)
{
	struct inject_target t;
	struct inject_walker *w;
	struct remote r;
	int err = -EAGAIN;
	bool there = false;

	CHECK_EQ(inject_target__open(child, &t), 0);
	CHECK_EQ(inject_walker__new(child, &w), 0);
	CHECK_EQ(inject_walker__refresh(w), 0);
	inject_walker__prepare_small(w);
	while (!there) {
		CHECK_EQ(remote__stop(&r, child, child), 0);
		there = r.regs.rip - (uintptr_t)code < PAGE ||
			(remote__in_syscall(&r) && r.regs.orig_rax == SYS_pause);
		if (there)
			err = inject_safe(&t, w, &r, why, bytes);
		remote__release(&r);
	}
	inject_walker__free(w);
	inject_target__close(&t);
	return err;
}

static void test_jit_code_that_runs_is_not_interrupted(void)
{
	static const uint8_t loops[] = {0xeb, 0xfe};
	/* sub $8, %rsp; call *%rdi */
	static const uint8_t waits[] = {0x48, 0x83, 0xec, 0x08, 0xff, 0xd7};
	char why[128] = "";
	uint8_t *code;
	pid_t child = run_code(loops, sizeof(loops), &code);

	CHECK_EQ(ask(child, code, why, sizeof(why)), -EAGAIN);
	CHECK_STR(why, "in code that is in no file");
	kill(child, SIGKILL);
	CHECK_EQ(waitpid(child, NULL, 0), child);
	munmap(code, PAGE);
	child = run_code(waits, sizeof(waits), &code);
	why[0] = '\0';
	ask(child, code, why, sizeof(why));
	CHECK(!strstr(why, "in no file"));
	kill(child, SIGKILL);
	CHECK_EQ(waitpid(child, NULL, 0), child);
	munmap(code, PAGE);
}

/* ---- the program's file ---- */

/* It has mapped a part of its own file as code that no loader maps, below its real code. */
static void test_program_that_maps_its_file_in_a_strange_way(void)
{
	int fd = open("/proc/self/exe", O_RDONLY);
	off_t last = lseek(fd, -1, SEEK_END) & ~(off_t)(PAGE - 1);
	uintptr_t here = (uintptr_t)test_program_that_maps_its_file_in_a_strange_way;
	struct inject_target t;
	pid_t child = fork();

	if (!child) {
		if (mmap((void *)0x10000000, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED,
			 fd, last) == MAP_FAILED)
			_exit(1);
		raise(SIGSTOP);
		for (;;)
			pause();
	}
	CHECK_EQ(waitpid(child, NULL, WUNTRACED), child);
	kill(child, SIGCONT);
	CHECK_EQ(waitpid(child, NULL, WCONTINUED), child);
	CHECK_EQ(inject_target__open(child, &t), 0);
	CHECK(here >= t.exe.start && here < t.exe.end);
	CHECK_EQ(elffile__vaddr(t.exe.elf, 0) + t.exe.base,
		 getauxval(AT_PHDR) - sizeof(Elf64_Ehdr));
	inject_target__close(&t);
	kill(child, SIGKILL);
	CHECK_EQ(waitpid(child, NULL, 0), child);
	close(fd);
}

UNIT_MAIN(TEST(test_frame_is_what_the_kernel_takes), TEST(test_interrupted_call_is_made_again),
	  TEST(test_frame_refuses_what_does_not_fit), TEST(test_xstate_ends_where_its_features_do),
	  TEST(test_stub_is_one_page_that_knows_where_it_waits),
	  TEST(test_filter_says_what_the_kernel_says), TEST(test_filter_that_kills),
	  TEST(test_filter_that_shifts_or_divides), TEST(test_broken_filters_kill),
	  TEST(test_loader_is_busy_until_it_is_not),
	  TEST(test_stack_is_walked_once_its_tables_are_there),
	  TEST(test_jit_code_that_runs_is_not_interrupted),
	  TEST(test_program_that_maps_its_file_in_a_strange_way))
