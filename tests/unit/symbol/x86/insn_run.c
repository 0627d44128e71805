// SPDX-License-Identifier: BSD-2-Clause
/*
 * Return sites against running code. A child is single-stepped through C library functions; the
 * processor itself says where every call returns to and what the stack pointer is. For each return:
 *
 *   SITE    execution gets to the site in a straight line, and there sp - sp_delta_bytes is the
 *           stack
 *           pointer right after the return, and not below it;
 *   FOLLOW  the address that lies follow_bytes above is where the next ret goes.
 *
 * The same walk checks entry sites: what they say is on the stack is the return address, and the
 * argument registers are those of the call.
 */
#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbol/x86/x86.h"
#include "unit.h"

#define MAX_STEPS 60000
#define MAX_FRAMES 512

struct frame {
	uint64_t return_address, sp; /* sp: right after the return */
};

struct walk {
	pid_t pid;
	int mem;
	struct user_regs_struct regs;
	struct frame frames[MAX_FRAMES];
	int nr_frames;
	/* The return, and the entry, whose site is awaited; address 0: none. */
	uint64_t site, site_sp, line_start;
	uint64_t follow; /* the address that the next ret must go to */
	uint64_t entry_site, entry_sp;
	struct user_regs_struct entry_regs;
	bool keeps_result;
	struct insn_result result_at;
	uint64_t result; /* right after the return */
	unsigned int sites, cheap_sites, follows, none, entries, results, copies;
};

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Compilers that do not optimize store a result first, and work in the result register. */
#ifdef __clang__
#define AS_WRITTEN __attribute__((noinline, optnone))
#else
#define AS_WRITTEN __attribute__((noinline, optimize("O0")))
#endif
AS_WRITTEN static int gives(int x)
{
	return x * 3;
}

AS_WRITTEN static int stores(int x)
{
	static int last, nr;
	int stored = gives(x), other;

	nr += 3;
	other = stored + nr;
	last = gives(other);
	nr = last + x;
	if (nr > x)
		other++;
	return other + (gives(nr) != 0);
}

/* Some library code of many shapes. No output: it runs stepped. */
static int work(void)
{
	int values[] = {5, 3, 9, 1, 7, 2, 8};
	char text[128];
	regex_t re;
	int sum = 0;

	qsort(values, 7, sizeof(values[0]), compare);
	for (int i = 0; i < 4; i++) {
		snprintf(text, sizeof(text), "%d %s %.3f %#lx", values[i], "text", 1.5 * i, 77ul);
		sum += (int)strtod(text, NULL) + (int)strlen(text);
	}
	if (!regcomp(&re, "^[0-9]+ te(x|y)t .*$", REG_EXTENDED)) {
		sum += regexec(&re, text, 0, NULL, 0);
		regfree(&re);
	}
	free(strdup(text));
	return sum + stores(values[2]);
}

static uint64_t peek(const struct walk *w, uint64_t address)
{
	uint64_t value = 0;

	return pread(w->mem, &value, sizeof(value), (off_t)address) == sizeof(value) ? value : 0;
}

static void begin_return(struct walk *w)
{
	uint8_t code[256];
	ssize_t bytes = pread(w->mem, code, sizeof(code), (off_t)w->regs.rip);
	struct insn_return r;

	if (bytes <= 0)
		return;
	insn_return_site(code, (size_t)bytes, &r);
	w->site = w->follow = 0;
	w->keeps_result = r.keeps_result;
	w->result_at = r.result;
	w->result = w->regs.rax;
	switch (r.kind) {
	case INSN_RETURN_SITE:
		CHECK(r.sp_delta_bytes >= 0);
		w->line_start = w->regs.rip;
		w->site = w->regs.rip + r.skip_bytes;
		w->site_sp = w->regs.rsp + (uint64_t)r.sp_delta_bytes;
		w->sites++;
		w->cheap_sites += r.cost == INSN_EMULATED;
		break;
	case INSN_RETURN_FOLLOW:
		w->follow = peek(w, w->regs.rsp + (uint64_t)r.follow_bytes);
		w->follows++;
		break;
	default:
		w->none++;
	}
}

static void begin_entry(struct walk *w)
{
	uint8_t code[64];
	ssize_t bytes = pread(w->mem, code, sizeof(code), (off_t)w->regs.rip);
	struct insn_entry entry;

	w->entry_site = 0;
	if (bytes <= 0)
		return;
	insn_entry_site(code, (size_t)bytes, &entry);
	if (entry.cost == INSN_FORBIDDEN)
		return;
	w->entry_site = w->regs.rip + entry.skip_bytes;
	w->entry_sp = w->regs.rsp - entry.sp_bias_bytes;
	w->entry_regs = w->regs;
	w->entries++;
}

/* The last step was a call if it pushed an address just behind the instruction it was at. */
static bool was_call(const struct walk *w, const struct user_regs_struct *before)
{
	uint64_t top;

	if (w->regs.rsp != before->rsp - 8)
		return false;
	top = peek(w, w->regs.rsp);
	return top > before->rip + 1 && top <= before->rip + 8 && w->regs.rip != top &&
	       !(w->regs.rip > before->rip && w->regs.rip < top);
}

/* A register, by the processor's number. */
static uint64_t register_of(const struct user_regs_struct *r, uint32_t number)
{
	const unsigned long long all[] = {r->rax, r->rcx, r->rdx, r->rbx, r->rsp, r->rbp,
					  r->rsi, r->rdi, r->r8,  r->r9,  r->r10, r->r11,
					  r->r12, r->r13, r->r14, r->r15};

	return all[number];
}

/* Where it is said to be, is what was returned, as an int. */
static void check_result(struct walk *w)
{
	const struct insn_result *at = &w->result_at;
	uint64_t found = register_of(&w->regs, at->reg);

	if (!w->keeps_result)
		return;
	if (at->in_memory)
		found = peek(w, found + (uint64_t)at->disp_bytes);
	CHECK_EQ((uint32_t)found, (uint32_t)w->result);
	w->results++;
	w->copies += at->reg || at->in_memory;
}

static void check_sites(struct walk *w)
{
	const struct user_regs_struct *r = &w->regs, *e = &w->entry_regs;

	if (w->site && r->rip == w->site) {
		CHECK_EQ(r->rsp, w->site_sp);
		check_result(w);
		w->site = 0;
	} else if (w->site) {
		CHECK(r->rip >= w->line_start && r->rip < w->site);
		if (r->rip < w->line_start || r->rip >= w->site)
			w->site = 0;
	}
	if (w->entry_site && r->rip == w->entry_site) {
		CHECK_EQ(r->rsp, w->entry_sp);
		CHECK(r->rdi == e->rdi && r->rsi == e->rsi && r->rdx == e->rdx &&
		      r->rcx == e->rcx && r->r8 == e->r8 && r->r9 == e->r9);
		w->entry_site = 0;
	}
}

static void after_step(struct walk *w, const struct user_regs_struct *before)
{
	struct frame *top = w->nr_frames ? &w->frames[w->nr_frames - 1] : NULL;

	if (was_call(w, before)) {
		/* The site must have been passed; its own instruction may be the call. */
		CHECK_EQ(w->site, 0);
		w->follow = 0;
		if (w->nr_frames < MAX_FRAMES)
			w->frames[w->nr_frames++] =
				(struct frame){peek(w, w->regs.rsp), before->rsp};
		begin_entry(w);
	} else if (top && w->regs.rip == top->return_address && w->regs.rsp == top->sp) {
		w->nr_frames--;
		if (w->follow) {
			CHECK_EQ(w->regs.rip, w->follow);
			check_result(w);
		}
		begin_return(w);
	}
	check_sites(w);
}

static void step_through(struct walk *w)
{
	int status;

	for (int i = 0; i < MAX_STEPS; i++) {
		struct user_regs_struct before = w->regs;

		if (ptrace(PTRACE_SINGLESTEP, w->pid, 0, 0) || waitpid(w->pid, &status, 0) < 0 ||
		    !WIFSTOPPED(status) || ptrace(PTRACE_GETREGS, w->pid, 0, &w->regs))
			return;
		after_step(w, &before);
		if (unit_failures_here > 10)
			break;
	}
}

static void sites_hold_while_running(void)
{
	struct walk w = {.mem = -1};
	char path[32];
	int status;

	w.pid = fork();
	if (!w.pid) {
		if (ptrace(PTRACE_TRACEME, 0, 0, 0))
			_exit(77);
		raise(SIGSTOP);
		_exit(work() ? 0 : 1);
	}
	if (w.pid < 0 || waitpid(w.pid, &status, 0) < 0 || !WIFSTOPPED(status)) {
		printf("# skipped: no ptrace here\n");
		return;
	}
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)w.pid);
	w.mem = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(w.mem >= 0);
	CHECK_EQ(ptrace(PTRACE_GETREGS, w.pid, 0, &w.regs), 0);
	step_through(&w);
	kill(w.pid, SIGKILL);
	waitpid(w.pid, &status, 0);
	close(w.mem);
	printf("# %u sites (%u cheap), %u followed, %u none, %u entries, %u results (%u copies)\n",
	       w.sites, w.cheap_sites, w.follows, w.none, w.entries, w.results, w.copies);
	CHECK(w.sites > 200);
	CHECK(w.follows > 20);
	CHECK(w.entries > 200);
	CHECK(w.results > 100);
	CHECK(w.copies > 0);
	CHECK(w.none * 50 < w.sites);
	CHECK(w.cheap_sites * 10 > w.sites * 8);
}

UNIT_MAIN(TEST(sites_hold_while_running))
