// SPDX-License-Identifier: BSD-2-Clause
#include "catalog/waits.h"

#include <stddef.h>
#include <stdio.h>
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
static const char collectives[] =
	"c10d::* gloo:* nccl* mpi:* ucc:* MPI_Allreduce MPI_Iallreduce MPI_Bcast MPI_Ibcast "
	"MPI_Reduce MPI_Ireduce MPI_Reduce_scatter MPI_Ireduce_scatter MPI_Reduce_scatter_block "
	"MPI_Ireduce_scatter_block MPI_Allgather MPI_Iallgather MPI_Allgatherv MPI_Iallgatherv "
	"MPI_Alltoall MPI_Ialltoall MPI_Alltoallv MPI_Ialltoallv MPI_Alltoallw MPI_Ialltoallw "
	"MPI_Barrier MPI_Ibarrier MPI_Scan MPI_Iscan MPI_Exscan MPI_Iexscan MPI_Gather "
	"MPI_Igather MPI_Gatherv MPI_Igatherv MPI_Scatter MPI_Iscatter MPI_Scatterv MPI_Iscatterv "
	"MPI_Neighbor_* MPI_Ineighbor_*";
/* Between two processes; and until what was begun is done, be it that or a collective. */
static const char messages[] =
	"MPI_Send MPI_Isend MPI_Ssend MPI_Issend MPI_Bsend MPI_Ibsend MPI_Rsend MPI_Irsend "
	"MPI_Recv MPI_Irecv MPI_Mrecv MPI_Imrecv MPI_Sendrecv MPI_Isendrecv MPI_Sendrecv_replace "
	"MPI_Isendrecv_replace MPI_Wait MPI_Waitall MPI_Waitany MPI_Waitsome MPI_Probe MPI_Mprobe";

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

/*
 * Each function of MPI has two names, of which one begins with a P; one whose counts have 64 bits
 * ends with _c.
 */
static bool is_one_of(const char *calls, const char *name)
{
	char plain[64];
	size_t bytes;

	if (!strncmp(name, "PMPI_", 5))
		name++;
	bytes = strlen(name);
	if (strncmp(name, "MPI_", 4) != 0 || bytes < 2 || bytes - 2 >= sizeof(plain) ||
	    strcmp(name + bytes - 2, "_c") != 0)
		return catalog_match(calls, name);
	snprintf(plain, sizeof(plain), "%.*s", (int)bytes - 2, name);
	return catalog_match(calls, plain);
}

bool catalog_wait_collective(const char *name)
{
	return is_one_of(collectives, name);
}

bool catalog_wait_message(const char *name)
{
	return is_one_of(messages, name);
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
