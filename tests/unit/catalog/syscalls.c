// SPDX-License-Identifier: BSD-2-Clause
#include "catalog/syscalls.h"

#include <sys/syscall.h>

#include "unit.h"

/* The C library's own numbers. */
static void names(void)
{
	CHECK_STR(syscall_name(SYS_read), "read");
	CHECK_STR(syscall_name(SYS_futex), "futex");
	CHECK_STR(syscall_name(SYS_clock_nanosleep), "clock_nanosleep");
	CHECK_STR(syscall_name(SYS_epoll_wait), "epoll_wait");
	CHECK_STR(syscall_name(SYS_process_vm_readv), "process_vm_readv");
	CHECK_STR(syscall_name(SYS_io_uring_enter), "io_uring_enter");
	CHECK_STR(syscall_name(SYS_pidfd_open), "pidfd_open");
	CHECK_STR(syscall_name(SYS_futex_waitv), "futex_waitv");
}

static void no_calls(void)
{
	CHECK(!syscall_name(400)); /* between the old table's end and where the new one goes on */
	CHECK(!syscall_name(100000));
	CHECK(!syscall_name(UINT64_MAX));
}

static void files(void)
{
	CHECK(syscall_first_is_file(SYS_read));
	CHECK(syscall_first_is_file(SYS_epoll_wait));
	CHECK(syscall_first_is_file(SYS_recvmsg));
	CHECK(!syscall_first_is_file(SYS_poll));
	CHECK(!syscall_first_is_file(SYS_futex));
	CHECK(!syscall_first_is_file(UINT64_MAX));
}

UNIT_MAIN(TEST(names), TEST(no_calls), TEST(files))
