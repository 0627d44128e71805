// SPDX-License-Identifier: BSD-2-Clause
/*
 * The unwinder that runs in the kernel, built for user space, on this very process: its frames must
 * be those of libdwfl, started from the same registers and memory. Through libc's code, signals,
 * realigned and growing stacks, and code that was made at run time.
 */
#include "symbol/unwind/unwind.h"

#include <alloca.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include "bpf/unwind.h"
#include "capture/process/process.h"
#include "kprof.h"
#include "unit.h"
#include "util/util.h"

/* ---- what the walker asks for ---- */

#define MAX_MODULES 64

static struct module {
	struct unwind_table *table;
	uint32_t first_page;
} modules[MAX_MODULES];
static struct kprof_unwind_mapping mappings[MAX_MODULES * 4];
static size_t nr_modules, nr_mappings;
static struct unwind_rules *rules;

/* Memory that may not be there: asked of the kernel. */
static int unwind_read(void *to, kprof_u32 bytes, kprof_u64 address)
{
	struct iovec here = {to, bytes}, there = {(void *)(uintptr_t)address, bytes};

	return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)bytes ? 0 : -1;
}

static int unwind_mapping(kprof_u32 space, kprof_u64 ip, struct kprof_unwind_mapping *m)
{
	for (size_t i = 0; i < nr_mappings; i++)
		if (ip >= mappings[i].start && ip < mappings[i].end) {
			*m = mappings[i];
			return 0;
		}
	return -1;
}

static int unwind_rule(kprof_u32 page, kprof_u16 at, struct kprof_unwind_rule *r)
{
	for (size_t i = 0; i < nr_modules; i++) {
		const struct unwind_table *t = modules[i].table;
		uint64_t index = page - modules[i].first_page;

		if (page < modules[i].first_page || index >= t->nr_pages)
			continue;
		*r = unwind_rules__at(
			rules, unwind_table__find(
				       t, (t->first_page + index) << KPROF_UNWIND_PAGE_BITS | at));
		return 0;
	}
	return -1;
}

static void add_module(const struct proc_map *map, uint32_t *next_page)
{
	struct kprof_unwind_mapping *m = &mappings[nr_mappings];
	struct unwind_table *t;
	struct elffile *e;

	if (elffile__open(map->path, &e))
		return;
	if (!unwind_table__build(e, rules, NULL, &t)) {
		modules[nr_modules++] = (struct module){t, *next_page};
		*m = (struct kprof_unwind_mapping){
			.start = map->start,
			.end = map->end,
			.bias = map->start - elffile__vaddr(e, map->offset),
			.first_page = *next_page,
			.nr_pages = (uint32_t)t->nr_pages,
			.table_page = (uint32_t)t->first_page,
		};
		*next_page += (uint32_t)t->nr_pages;
		nr_mappings++;
	}
	elffile__close(e);
}

static void load(void)
{
	struct proc_maps *maps;
	uint32_t next_page = 0;

	if (unwind_rules__new(&rules) || proc_maps__read(getpid(), &maps))
		abort();
	for (size_t i = 0; i < proc_maps__nr(maps) && nr_modules < MAX_MODULES; i++) {
		const struct proc_map *map = proc_maps__at(maps, i);

		if (map->flags & PROC_MAP_EXEC && map->inode)
			add_module(map, &next_page);
	}
	proc_maps__free(maps);
}

/* ---- libdwfl ---- */

static const ucontext_t *start; /* what both begin with */
static uint64_t theirs[KPROF_UNWIND_MAX_FRAMES];
static bool theirs_exact[KPROF_UNWIND_MAX_FRAMES]; /* interrupted there */
static size_t nr_theirs;

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread_arg)
{
	if (*thread_arg)
		return 0;
	*thread_arg = arg;
	return getpid();
}

static bool memory_read(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *result, void *arg)
{
	return !unwind_read(result, 8, address);
}

/* ucontext's order of registers, by DWARF's numbers (System V ABI, figure 3.36). */
static const int gregs[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP,
			    REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

static bool initial_registers(Dwfl_Thread *thread, void *arg)
{
	Dwarf_Word regs[17];

	for (int i = 0; i < 16; i++)
		regs[i] = (Dwarf_Word)start->uc_mcontext.gregs[gregs[i]];
	regs[16] = (Dwarf_Word)start->uc_mcontext.gregs[REG_RIP];
	return dwfl_thread_state_registers(thread, 0, 17, regs);
}

static int on_frame(Dwfl_Frame *frame, void *arg)
{
	Dwarf_Addr pc;

	if (nr_theirs == KPROF_UNWIND_MAX_FRAMES ||
	    !dwfl_frame_pc(frame, &pc, &theirs_exact[nr_theirs]))
		return DWARF_CB_ABORT;
	theirs[nr_theirs++] = pc;
	return DWARF_CB_OK;
}

static void ask_libdwfl(void)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_linux_proc_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
	};
	static const Dwfl_Thread_Callbacks thread = {
		.next_thread = next_thread,
		.memory_read = memory_read,
		.set_initial_registers = initial_registers,
	};
	Dwfl *dwfl = dwfl_begin(&callbacks);

	nr_theirs = 0;
	if (!dwfl || dwfl_linux_proc_report(dwfl, getpid()) || dwfl_report_end(dwfl, NULL, NULL) ||
	    !dwfl_attach_state(dwfl, NULL, getpid(), &thread, (void *)1))
		abort();
	dwfl_getthread_frames(dwfl, getpid(), on_frame, NULL);
	dwfl_end(dwfl);
}

/* ---- the comparison ---- */

static struct kprof_unwind_walk walk;
static volatile size_t nr_interrupted; /* frames of it that were, the innermost included */

static uint64_t walked(size_t i)
{
	return walk.ips[i] & ~(1ull << KPROF_UNWIND_EXACT_BIT);
}
static volatile size_t nr_compared; /* in signal handlers too */
static size_t least;                /* frames, of one test */

static void walk_from(const ucontext_t *uc)
{
	memset(&walk, 0, sizeof(walk));
	for (int i = 0; i < 16; i++)
		walk.regs[i] = (uint64_t)uc->uc_mcontext.gregs[gregs[i]];
	walk.ip = (uint64_t)uc->uc_mcontext.gregs[REG_RIP];
	walk.sp = walk.regs[7];
	walk.bp = walk.regs[6];
	walk.bx = walk.regs[3];
	walk.exact = walk.innermost = 1;
	while (!unwind_step(&walk))
		;
}

static void compare(const ucontext_t *uc)
{
	size_t same = 0;

	start = uc;
	walk_from(uc);
	ask_libdwfl();
	/*
	 * What was interrupted they say, too; and of the signal's own frame, which we look up like
	 * a call's.
	 */
	while (same < walk.nr && same < nr_theirs && walked(same) == theirs[same] &&
	       (theirs_exact[same] || !(walk.ips[same] >> KPROF_UNWIND_EXACT_BIT)))
		nr_interrupted += walk.ips[same++] >> KPROF_UNWIND_EXACT_BIT;
	/*
	 * libdwfl tells the frame that a bottom frame would return to (0) in some versions; we
	 * never do.
	 */
	if (same != walk.nr || (nr_theirs != same && theirs[same] != 0) ||
	    walk.end != KPROF_UNWIND_WHOLE) {
		printf("# ended %u after %u frames, libdwfl has %zu, the first %zu are the same\n",
		       walk.end, walk.nr, nr_theirs, same);
		for (size_t i = 0; i < walk.nr || i < nr_theirs; i++)
			printf("#   %2zu %#14" PRIx64 " %#14" PRIx64 "\n", i,
			       i < walk.nr ? walked(i) : 0, i < nr_theirs ? theirs[i] : 0);
	}
	CHECK_EQ(same, walk.nr);
	CHECK_EQ(walk.end, KPROF_UNWIND_WHOLE);
	CHECK(same >= least);
	nr_compared++;
}

static __attribute__((noinline)) void here(void)
{
	ucontext_t uc;

	getcontext(&uc);
	compare(&uc);
}

/* ---- stacks ---- */

#define LEAF __attribute__((noinline))

static volatile int sink;

static LEAF void recurse(int depth)
{
	volatile char frame[100];

	frame[depth % 100] = 1;
	if (depth)
		recurse(depth - 1);
	else
		here();
	sink += frame[0];
}

static void recursion(void)
{
	least = 60;
	recurse(60);
}

static int by_qsort(const void *a, const void *b)
{
	if (!nr_compared)
		here();
	return *(const int *)a - *(const int *)b;
}

static void through_libc(void)
{
	int numbers[] = {3, 1, 2};

	least = 5;
	nr_compared = 0;
	qsort(numbers, 3, sizeof(*numbers), by_qsort);
	CHECK_EQ(nr_compared, 1);
}

static LEAF void grow(size_t bytes)
{
	volatile char *room = alloca(bytes);

	room[0] = 1;
	if (bytes > 10000)
		here();
	else
		grow(bytes * 2 + 1);
	sink += room[0];
}

static void growing_frames(void)
{
	least = 5;
	grow(17);
}

static LEAF void aligned(int depth)
{
	volatile char wide[64] __attribute__((aligned(64)));
	volatile char *room = alloca((size_t)depth * 33 + 1);

	wide[0] = room[0] = (char)depth;
	if (depth)
		aligned(depth - 1);
	else
		here();
	sink += wide[0] + room[0];
}

static void realigned_frames(void)
{
	least = 8;
	aligned(7);
}

static void on_signal(int signal, siginfo_t *info, void *context)
{
	here();                               /* from the handler through the signal's frame */
	compare((const ucontext_t *)context); /* … and from the place that was interrupted */
}

static LEAF void interrupted(int depth)
{
	if (depth)
		interrupted(depth - 1);
	else
		raise(SIGUSR1);
	sink++;
}

static void signals(void)
{
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO}, old;

	least = 6;
	nr_compared = 0;
	nr_interrupted = 0;
	sigaction(SIGUSR1, &action, &old);
	interrupted(5);
	sigaction(SIGUSR1, &old, NULL);
	CHECK_EQ(nr_interrupted,
		 2 + 1); /* the innermost each time, and the one that the signal struck */
	CHECK_EQ(nr_compared, 2);
}

/* A signal at any instruction: prologues, epilogues, libc's insides. */
static volatile sig_atomic_t ticks, bad_ticks;

static void on_tick(int signal, siginfo_t *info, void *context)
{
	walk_from(context);
	if (walk.end != KPROF_UNWIND_WHOLE)
		bad_ticks++;
	ticks++;
}

static LEAF int busy(int n)
{
	char text[64];

	snprintf(text, sizeof(text), "%d %s %f", n, "text", n * 1.5);
	return n > 1 ? busy(n - 1) + busy(n / 2) + text[0] : text[1];
}

static void any_instruction(void)
{
	struct sigaction action = {.sa_sigaction = on_tick, .sa_flags = SA_SIGINFO | SA_RESTART},
			 old;
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF};
	struct itimerspec every = {{0, 1000000}, {0, 1000000}}, never = {{0}, {0}};
	timer_t timer;

	ticks = bad_ticks = 0;
	sigaction(SIGPROF, &action, &old);
	if (timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer))
		abort();
	timer_settime(timer, 0, &every, NULL);
	for (int i = 0; i < 1000000 && ticks < 300; i++)
		sink += busy(14);
	timer_settime(timer, 0, &never, NULL);
	timer_delete(timer);
	sigaction(SIGPROF, &old, NULL);
	printf("# %d of %d interrupted places do not reach the root\n", (int)bad_ticks, (int)ticks);
	CHECK_EQ(ticks >= 300, 1);
	CHECK_EQ(bad_ticks, 0);
}

static void *thread_main(void *arg)
{
	recurse(3);
	return NULL;
}

static void threads(void)
{
	pthread_t thread;

	least = 5;
	pthread_create(&thread, NULL, thread_main, NULL);
	pthread_join(thread, NULL);
}

/*
 * Calls %rdi, and keeps a frame pointer; the return address points to a nop, which says nothing of
 * the frame.
 */
static const uint8_t with_pointer[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x90, 0x5d, 0xc3};
/*
 * push %rbp; mov $-1,%rbp; call *%rdi; pop %rbp; ret: behind the call it says all, the frame
 * pointer lies.
 */
static const uint8_t with_pop[] = {0x55, 0x48, 0xc7, 0xc5, 0xff, 0xff,
				   0xff, 0xff, 0xff, 0xd7, 0x5d, 0xc3};
/*
 * sub $24,%rsp; call *%rdi; add $24,%rsp; ret: no frame pointer, what it is called with is its
 * caller's
 */
static const uint8_t with_add[] = {0x48, 0x83, 0xec, 0x18, 0xff, 0xd7,
				   0x48, 0x83, 0xc4, 0x18, 0xc3};

static void walk_here(void)
{
	ucontext_t uc;

	getcontext(&uc);
	walk_from(&uc);
}

static LEAF void call_made(void (*code)(void (*)(void)))
{
	/* The caller of code with frame pointers only must be found by them: keep one here. */
	void *volatile frame = __builtin_frame_address(0);

	code(walk_here);
	sink += frame != NULL;
}

static void run_made(const uint8_t *made, size_t bytes, size_t behind_call)
{
	void *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t at = (uint64_t)(uintptr_t)code;

	memcpy(code, made, bytes);
	mprotect(code, 4096, PROT_READ | PROT_EXEC);
	mappings[nr_mappings++] = (struct kprof_unwind_mapping){
		.start = at,
		.end = at + 4096,
		.kind = KPROF_UNWIND_POINTERS,
	};
	call_made((void (*)(void (*)(void)))(uintptr_t)code);
	CHECK_EQ(walk.end, KPROF_UNWIND_WHOLE);
	CHECK(walk.nr >= 4);
	CHECK_EQ(walk.ips[1] == at + behind_call, 1);
	nr_mappings--;
	munmap(code, 4096);
}

static void made_at_run_time(void)
{
	run_made(with_pointer, sizeof(with_pointer), 6);
}

/* By its last instructions; CPython's trampolines for perf are like that. */
static void made_and_returns_at_once(void)
{
	run_made(with_pop, sizeof(with_pop), 10);
	run_made(with_add, sizeof(with_add), 6);
}

/* ---- ends ---- */

static void how_walks_end(void)
{
	ucontext_t uc;

	getcontext(&uc);
	for (size_t i = 0; i < nr_mappings; i++)
		mappings[i].kind = KPROF_UNWIND_PENDING;
	walk_from(&uc);
	CHECK_EQ(walk.end, KPROF_UNWIND_NOT_YET);
	CHECK_EQ(walk.nr, 1);
	for (size_t i = 0; i < nr_mappings; i++)
		mappings[i].kind = KPROF_UNWIND_WITHOUT;
	walk_from(&uc);
	CHECK_EQ(walk.end, KPROF_UNWIND_NO_TABLE);
	for (size_t i = 0; i < nr_mappings; i++)
		mappings[i].kind = KPROF_UNWIND_TABLE;
	uc.uc_mcontext.gregs[REG_RIP] = 0x1234567;
	walk_from(&uc);
	CHECK_EQ(walk.end, KPROF_UNWIND_NO_MAPPING);
	getcontext(&uc);
	uc.uc_mcontext.gregs[REG_RSP] = uc.uc_mcontext.gregs[REG_RBP] = 16;
	walk_from(&uc);
	CHECK_EQ(walk.end, KPROF_UNWIND_BAD_STACK);
}

static LEAF void recurse_to_walk(int depth)
{
	if (depth)
		recurse_to_walk(depth - 1);
	else
		walk_here();
	sink++;
}

static void too_deep(void)
{
	recurse_to_walk(KPROF_UNWIND_MAX_FRAMES + 10);
	CHECK_EQ(walk.end, KPROF_UNWIND_TOO_DEEP);
	CHECK_EQ(walk.nr, KPROF_UNWIND_MAX_FRAMES);
}

int main(void)
{
	struct unit_test tests[] = {
		TEST(recursion),        TEST(through_libc),     TEST(growing_frames),
		TEST(realigned_frames), TEST(signals),          TEST(any_instruction),
		TEST(threads),          TEST(made_at_run_time), TEST(made_and_returns_at_once),
		TEST(how_walks_end),    TEST(too_deep)};
	int failed = 0, nr = (int)ARRAY_SIZE(tests);

	load();
	for (int i = 0; i < nr; i++) {
		unit_failures_here = 0;
		tests[i].run();
		printf("%sok %s\n", unit_failures_here ? "not " : "", tests[i].name);
		failed += !!unit_failures_here;
	}
	printf("%d passed, %d failed\n", nr - failed, failed);
	return failed ? 1 : 0;
}
