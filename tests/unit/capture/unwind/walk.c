// SPDX-License-Identifier: BSD-2-Clause
/* Another process's stack, which it has recorded itself by backtrace(). */
#include "capture/unwind/unwind.h"

#include <execinfo.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "kprof.h"
#include "unit.h"

#define DEEP 300

/* Shared with the child. */
static struct shared {
	ucontext_t uc;
	void *frames[DEEP + 50];
	volatile int nr;
} * shared;

static volatile int sink;

__attribute__((noinline)) static void record_and_wait(void)
{
	getcontext(&shared->uc);
	shared->nr = backtrace(shared->frames, DEEP + 50);
	while (shared->nr)
		pause();
}

__attribute__((noinline)) static void dive(int depth)
{
	volatile char room[64];

	room[depth % 64] = 1;
	if (depth)
		dive(depth - 1);
	else
		record_and_wait();
	sink += room[0];
}

static const int gregs[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP,
			    REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

static pid_t begin(struct walk_start *start)
{
	pid_t child;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	child = fork();
	if (!child)
		dive(DEEP);
	for (int i = 0; i < 10000 && !shared->nr; i++)
		usleep(1000);
	memset(start, 0, sizeof(*start));
	for (int i = 0; i < 16; i++)
		start->regs[i] = (uint64_t)shared->uc.uc_mcontext.gregs[gregs[i]];
	start->ip = (uint64_t)shared->uc.uc_mcontext.gregs[REG_RIP];
	return child;
}

static struct address_space *open_space(pid_t pid, struct modules **ms)
{
	const struct modules_opts opts = {.cache_dir = ""};
	struct address_space *s = NULL;

	CHECK_EQ(modules__new(&opts, ms), 0);
	CHECK_EQ(address_space__open(*ms, pid, &s), 0);
	return s;
}

/* As a caller does: the table that was missing, and once more. */
static size_t walk_with_tables(struct modules *ms, const struct address_space *s,
			       const struct walk_start *start, struct walk_frame *frames,
			       size_t room, struct walk_end *end)
{
	size_t nr;

	for (;;) {
		nr = walk_stack(s, start, frames, room, end);
		if (end->how != KPROF_UNWIND_NOT_YET)
			return nr;
		modules__build(ms, end->missing);
	}
}

/* The sanitizer's backtrace() stands in front of the C library's, and tells of itself. */
#ifdef __SANITIZE_ADDRESS__
#define THEIRS_FIRST 1
#else
#define THEIRS_FIRST 0
#endif

static void as_it_sees_itself(void)
{
	struct walk_frame frames[DEEP + 50];
	struct walk_start start;
	struct walk_end end;
	struct modules *ms;
	pid_t child = begin(&start);
	struct address_space *s = open_space(child, &ms);
	size_t nr = walk_stack(s, &start, frames, DEEP + 50, &end);

	CHECK_EQ(nr, 1);
	CHECK_EQ(end.how, KPROF_UNWIND_NOT_YET);
	CHECK(end.missing == s->areas[address_space__find(s, start.ip)].module);
	nr = walk_with_tables(ms, s, &start, frames, DEEP + 50, &end);
	CHECK_EQ(end.how, KPROF_UNWIND_WHOLE);
	CHECK(!end.missing);
	CHECK(shared->nr > DEEP);
	CHECK_EQ(nr + THEIRS_FIRST, shared->nr);
	CHECK(frames[0].exact);
	for (size_t i = 1; i < nr && i + THEIRS_FIRST < (size_t)shared->nr; i++) {
		CHECK_EQ(frames[i].ip, (uint64_t)(uintptr_t)shared->frames[i + THEIRS_FIRST]);
		CHECK(frames[i].sp > frames[i - 1].sp);
		CHECK(!frames[i].exact);
	}
	nr = walk_with_tables(ms, s, &start, frames, 20, &end);
	CHECK_EQ(nr, 20);
	CHECK_EQ(end.how, KPROF_UNWIND_TOO_DEEP);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	address_space__close(s);
	modules__free(ms);
}

static void from_a_copy_of_the_stack(void)
{
	struct walk_frame frames[DEEP + 50];
	static char copy[256 << 10];
	struct walk_start start;
	struct walk_end end;
	struct modules *ms;
	pid_t child = begin(&start);
	struct address_space *s = open_space(child, &ms);
	size_t nr;

	walk_with_tables(ms, s, &start, frames, DEEP + 50, &end);
	start.stack = copy;
	start.stack_address = start.regs[7];
	start.stack_bytes = 0;
	for (size_t at = 0; at < sizeof(copy); at += 4096)
		if (process_read_some(child, start.stack_address + at, copy + at, 4096) == 4096)
			start.stack_bytes = at + 4096;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	/* The process is gone, what was copied is enough, but for the last frames' page. */
	nr = walk_stack(s, &start, frames, DEEP, &end);
	CHECK_EQ(nr, DEEP);
	CHECK_EQ(frames[DEEP - 1].ip, (uint64_t)(uintptr_t)shared->frames[DEEP - 1]);
	start.stack_bytes = 2048;
	nr = walk_stack(s, &start, frames, DEEP, &end);
	CHECK(nr > 3 && nr < 100);
	CHECK_EQ(end.how, KPROF_UNWIND_BAD_STACK);
	address_space__close(s);
	modules__free(ms);
}

UNIT_MAIN(TEST(as_it_sees_itself), TEST(from_a_copy_of_the_stack))
