// SPDX-License-Identifier: BSD-2-Clause
/*
 * Code that this process makes itself: found, described, and noticed when it is other code than it
 * was.
 */
#include "capture/unwind/unwind.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kprof.h"
#include "unit.h"

#define PAGE 4096
#define KERNEL_BYTES (64 * PAGE) /* what oneDNN takes for each */

/*
 * push %rbx; push %rbp; mov %edi,%ebp; sub $N,%rsp; mov %ebp,%eax; add $N,%rsp; pop %rbp; pop %rbx;
 * ret
 */
static size_t write_function(uint8_t *to, uint8_t room)
{
	const uint8_t code[] = {0x53, 0x55, 0x89, 0xfd, 0x48, 0x83, 0xec, room, 0x89,
				0xe8, 0x48, 0x83, 0xc4, room, 0x5d, 0x5b, 0xc3};

	memcpy(to, code, sizeof(code));
	return sizeof(code);
}

static uint8_t *new_area(size_t bytes)
{
	uint8_t *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		abort();
	madvise(p, bytes, MADV_NOHUGEPAGE);
	return p;
}

static uint64_t address_of(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

struct one {
	struct unwind_rules *rules;
	struct jit_code *made;
	struct jit_range ranges[2];
	size_t nr;
};

static void begin(struct one *o, uint8_t *area, size_t bytes)
{
	memset(o, 0, sizeof(*o));
	CHECK_EQ(unwind_rules__new(&o->rules), 0);
	CHECK_EQ(jit_code__new(o->rules, getpid(), &o->made), 0);
	o->ranges[0] = (struct jit_range){address_of(area), address_of(area) + bytes};
	o->nr = 1;
}

static void end(struct one *o)
{
	jit_code__free(o->made);
	unwind_rules__free(o->rules);
}

static int read_it(struct one *o)
{
	return jit_code__read(o->made, o->ranges, o->nr);
}

static int cfa_at(struct one *o, const uint8_t *ip)
{
	const struct jit_area *a = jit_code__area(o->made, o->ranges[0].start, o->ranges[0].end);
	struct kprof_unwind_rule r = {0};

	if (a && a->table)
		r = unwind_rules__at(o->rules, unwind_table__find(a->table, address_of(ip)));
	return r.how == KPROF_UNWIND_SP ? r.cfa : -1;
}

static size_t pages_present(const uint8_t *area, size_t bytes)
{
	unsigned char *is = malloc(bytes / PAGE);
	size_t n = 0;

	CHECK_EQ(mincore((void *)(uintptr_t)area, bytes, is), 0);
	for (size_t i = 0; i < bytes / PAGE; i++)
		n += is[i] & 1;
	free(is);
	return n;
}

/* Allocations beside each other in one mapping, mostly never written. */
static void allocations(void)
{
	uint8_t *area = new_area(4 * KERNEL_BYTES);
	struct one o;
	size_t bytes = write_function(area, 8);

	write_function(area + KERNEL_BYTES, 16);
	write_function(area + 2 * KERNEL_BYTES + PAGE, 24); /* begins with any page */
	write_function(area + 3 * KERNEL_BYTES + 512, 32);  /* none begins there */
	begin(&o, area, 4 * KERNEL_BYTES);
	CHECK_EQ(read_it(&o), 1);
	CHECK_EQ(jit_code__nr(o.made), 1);
	CHECK_EQ(cfa_at(&o, area), 8);
	CHECK_EQ(cfa_at(&o, area + 8), 32);
	CHECK_EQ(cfa_at(&o, area + bytes), -1);
	CHECK_EQ(cfa_at(&o, area + KERNEL_BYTES + 8), 40);
	CHECK_EQ(cfa_at(&o, area + 2 * KERNEL_BYTES + PAGE + 8), 48);
	CHECK_EQ(cfa_at(&o, area + 3 * KERNEL_BYTES + 512 + 8), -1);
	CHECK(jit_code__knows(o.made, address_of(area) + 8));
	CHECK(!jit_code__knows(o.made, address_of(area) + bytes));
	CHECK_EQ(pages_present(area, 4 * KERNEL_BYTES), 4); /* nothing else was touched */
	CHECK_EQ(read_it(&o), 0);
	end(&o);
	munmap(area, 4 * KERNEL_BYTES);
}

/* Code that goes on over pages, and ends in the midst of one that holds zeros. */
static void long_code(void)
{
	uint8_t *area = new_area(KERNEL_BYTES);
	size_t at = 2;
	struct one o;

	area[0] = 0x53;
	area[1] = 0x55;
	for (; at < 3 * PAGE + 100;
	     at += 10) /* movabs $0x100,%rbp: zeros at its end, wherever a page ends */
		memcpy(area + at, "\x48\xbd\0\1\0\0\0\0\0\0", 10);
	memcpy(area + at, "\x5d\x5b\xc3", 3);
	begin(&o, area, KERNEL_BYTES);
	CHECK_EQ(read_it(&o), 1);
	CHECK_EQ(cfa_at(&o, area + 12), 24);
	CHECK_EQ(cfa_at(&o, area + 2 * PAGE), 24);
	CHECK_EQ(cfa_at(&o, area + at), 24);
	CHECK_EQ(cfa_at(&o, area + at + 2), 8);
	CHECK_EQ(cfa_at(&o, area + at + 3), -1);
	end(&o);
	munmap(area, KERNEL_BYTES);
}

/* The kernel walks by what it has; what it has must be what was there. */
static void other_code(void)
{
	uint8_t *area = new_area(KERNEL_BYTES);
	uint64_t ip = address_of(area) + 8;
	uint32_t page;
	struct one o;

	write_function(area, 8);
	begin(&o, area, KERNEL_BYTES);
	CHECK(jit_code__holds(o.made, ip,
			      10)); /* nothing is known of it: it goes by the frame pointer */
	CHECK_EQ(read_it(&o), 1);
	jit_code__at(o.made, 0)->first_page = 77;
	jit_code__published(o.made, 100);
	CHECK(jit_code__holds(o.made, ip, 50)); /* likewise */
	CHECK(jit_code__holds(o.made, ip, 150));
	/* Other code in its place, and nobody has read it yet. */
	write_function(area, 16);
	CHECK(!jit_code__holds(o.made, ip, 200));
	CHECK(!jit_code__take_dropped(o.made, &page));
	CHECK_EQ(read_it(&o), 1);
	CHECK(jit_code__take_dropped(o.made, &page));
	CHECK_EQ(page, 77);
	CHECK(!jit_code__take_dropped(o.made, &page));
	CHECK_EQ(jit_code__at(o.made, 0)->first_page, JIT_NOT_PLACED);
	/* Read, but the kernel has the old one still. */
	CHECK(!jit_code__holds(o.made, ip, 250));
	jit_code__published(o.made, 300);
	CHECK(!jit_code__holds(o.made, ip, 250));
	CHECK(jit_code__holds(o.made, ip, 350));
	CHECK_EQ(cfa_at(&o, area + 8), 40);
	/* What is there now is no function any more. */
	area[0] = 0x90;
	CHECK(!jit_code__holds(o.made, ip, 400));
	CHECK_EQ(read_it(&o), 1);
	CHECK(!jit_code__holds(o.made, ip, 450));
	jit_code__published(o.made, 500);
	CHECK(!jit_code__holds(o.made, ip, 450));
	CHECK(jit_code__holds(o.made, ip, 550));
	CHECK(!jit_code__knows(o.made, ip));
	/* Its mapping is gone. */
	write_function(area, 8);
	CHECK_EQ(read_it(&o), 1);
	jit_code__published(o.made, 600);
	munmap(area, KERNEL_BYTES);
	CHECK(!jit_code__holds(o.made, ip, 700));
	o.nr = 0;
	CHECK_EQ(read_it(&o), 1);
	CHECK_EQ(jit_code__nr(o.made), 0);
	CHECK_EQ(read_it(&o), 0);
	end(&o);
}

/* What is as it was keeps its table and its place. */
static void kept(void)
{
	uint8_t *area = new_area(3 * KERNEL_BYTES);
	uint64_t at = address_of(area);
	const struct unwind_table *table;
	struct one o;
	uint32_t page;

	munmap(area + KERNEL_BYTES, KERNEL_BYTES);
	write_function(area, 8);
	begin(&o, area, KERNEL_BYTES);
	CHECK_EQ(read_it(&o), 1);
	table = jit_code__at(o.made, 0)->table;
	jit_code__at(o.made, 0)->first_page = 5;
	jit_code__published(o.made, 100);
	write_function(area + 2 * KERNEL_BYTES, 8);
	o.ranges[1] = (struct jit_range){at + 2 * KERNEL_BYTES, at + 3 * KERNEL_BYTES};
	o.nr = 2;
	CHECK_EQ(read_it(&o), 1);
	CHECK(jit_code__at(o.made, 0)->table == table);
	CHECK_EQ(jit_code__at(o.made, 0)->first_page, 5);
	CHECK_EQ(jit_code__at(o.made, 1)->first_page, JIT_NOT_PLACED);
	CHECK(jit_code__holds(o.made, at + 8, 150));
	CHECK(!jit_code__take_dropped(o.made, &page));
	end(&o);
	munmap(area, 3 * KERNEL_BYTES);
}

static void gone_process(void)
{
	uint8_t *area = new_area(KERNEL_BYTES);
	struct one o;
	pid_t child;
	int fd[2];
	char c;

	write_function(area, 8);
	CHECK_EQ(pipe(fd), 0);
	child = fork();
	if (!child) {
		close(fd[1]);
		_exit((int)read(fd[0], &c, 1));
	}
	begin(&o, area, KERNEL_BYTES);
	jit_code__free(o.made);
	CHECK_EQ(jit_code__new(o.rules, child, &o.made), 0);
	CHECK_EQ(read_it(&o), 1);
	jit_code__published(o.made, 100);
	CHECK(jit_code__holds(o.made, address_of(area) + 8, 150));
	close(fd[0]);
	close(fd[1]);
	waitpid(child, NULL, 0);
	CHECK(read_it(&o) < 0);
	CHECK(jit_code__knows(o.made, address_of(area) + 8)); /* as before */
	CHECK(jit_code__holds(o.made, address_of(area) + 8, 150));
	end(&o);
	munmap(area, KERNEL_BYTES);
}

/* No more is read than what was said, and noise is no function that matters. */
static void bounded(void)
{
	size_t bytes = 3 * (size_t)JIT_MAX_BYTES;
	uint8_t *area = new_area(bytes);
	struct one o;

	srand(3);
	for (size_t i = 0; i < bytes; i++)
		area[i] = (uint8_t)rand();
	write_function(area, 8);
	memset(area + 32, 0, PAGE);
	memset(area + bytes - 2 * PAGE, 0, PAGE);
	write_function(area + bytes - PAGE, 8);
	begin(&o, area, bytes);
	CHECK_EQ(read_it(&o), 1);
	CHECK_EQ(cfa_at(&o, area + 8), 32);
	CHECK_EQ(cfa_at(&o, area + bytes - PAGE + 8), -1);
	end(&o);
	munmap(area, bytes);
}

UNIT_MAIN(TEST(allocations), TEST(long_code), TEST(other_code), TEST(kept), TEST(gone_process),
	  TEST(bounded))
