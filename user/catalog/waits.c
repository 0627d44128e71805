// SPDX-License-Identifier: BSD-2-Clause
#include "catalog/waits.h"

#include <stddef.h>
#include <string.h>

#include "catalog/catalog.h"
#include "util/util.h"

static const char locks[] = "pthread_* __pthread_* ___pthread_* futex_* __futex_* __lll_* "
			    "__new_sem_* sem_* syscall __syscall* __libc_lock*";
static const char allocators[] =
	"malloc __libc_malloc free __libc_free cfree calloc __libc_calloc realloc __libc_realloc "
	"memalign __libc_memalign aligned_alloc posix_memalign _int_malloc _int_free* arena_get2* "
	"malloc_* tcache_* sysmalloc* operator?new* operator?delete* _Znwm* _Znam* _ZdlPv* "
	"tc_malloc tc_free je_malloc je_free je_calloc je_realloc mi_malloc* mi_free*";
static const char gil[] = "take_gil take_gil.* drop_gil drop_gil.* PyEval_RestoreThread "
			  "PyEval_AcquireThread PyEval_AcquireLock _PyEval_AcquireLock "
			  "PyGILState_Ensure _PyThreadState_Attach";
static const char python_locks[] = "PyThread_acquire_lock* acquire_timed acquire_timed.* "
				   "_PyMutex_Lock* PyMutex_Lock _PySemaphore_* _PyParkingLot_Park";
static const char faults[] = "exc_page_fault asm_exc_page_fault handle_mm_fault "
			     "do_user_addr_fault do_anonymous_page filemap_fault";

static const char interrupts[] = "asm_sysvec_* sysvec_* asm_common_interrupt common_interrupt "
				 "handle_softirqs __do_softirq run_ksoftirqd hrtimer_interrupt";

static const char mutexes[] =
	"pthread_mutex_lock* __pthread_mutex_lock* ___pthread_mutex_lock* pthread_rwlock_* "
	"__pthread_rwlock_* pthread_spin_lock* __lll_lock_wait*";
static const char collectives[] = "c10d::* gloo:* nccl* mpi:* MPI_* ucc:*";

enum wait_frame catalog_wait_frame(const char *function)
{
	if (catalog_match(gil, function))
		return WAIT_FRAME_GIL;
	if (catalog_match(python_locks, function))
		return WAIT_FRAME_PYTHON;
	if (catalog_match(allocators, function))
		return WAIT_FRAME_ALLOCATOR;
	return catalog_match(locks, function) ? WAIT_FRAME_LOCK : WAIT_FRAME_OTHER;
}

bool catalog_wait_page_fault(const char *kernel_function)
{
	return catalog_match(faults, kernel_function);
}

bool catalog_wait_mutex(const char *function)
{
	return catalog_match(mutexes, function);
}

bool catalog_wait_collective(const char *name)
{
	return catalog_match(collectives, name);
}

bool catalog_wait_interrupt(const char *kernel_function)
{
	return catalog_match(interrupts, kernel_function);
}

/* clang-format off */
static const struct wait_call calls[] = {
	{0, "read", "file"}, {1, "write", "file"}, {7, "poll", NULL}, {16, "ioctl", "device"},
	{17, "read", "file"}, {18, "write", "file"}, {19, "read", "file"}, {20, "write", "file"},
	{23, "select", NULL}, {26, "msync", NULL}, {34, "signal", NULL}, {35, "sleep", NULL},
	{40, "sendfile", "file"}, {42, "connect", "socket"}, {43, "accept", "socket"},
	{44, "write", "socket"}, {45, "read", "socket"}, {46, "write", "socket"},
	{47, "read", "socket"}, {56, "fork", NULL}, {57, "fork", NULL}, {58, "fork", NULL},
	{61, "child process", NULL}, {73, "file lock", NULL}, {74, "fsync", NULL},
	{75, "fsync", NULL}, {128, "signal", NULL}, {130, "signal", NULL}, {162, "sync", NULL},
	{202, "futex", NULL}, {208, "disk", NULL}, {230, "sleep", NULL}, {232, "epoll", NULL},
	{247, "child process", NULL}, {270, "select", NULL}, {271, "poll", NULL},
	{281, "epoll", NULL}, {288, "accept", "socket"}, {295, "read", "file"},
	{296, "write", "file"}, {299, "read", "socket"}, {306, "sync", NULL},
	{307, "write", "socket"}, {327, "read", "file"}, {328, "write", "file"},
	{333, "disk", NULL}, {426, "io_uring", NULL}, {441, "epoll", NULL}, {449, "futex", NULL},
	{455, "futex", NULL},
};
/* clang-format on */

const struct wait_call *catalog_wait_call(uint32_t call)
{
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (calls[i].call == call)
			return &calls[i];
	return NULL;
}
