// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the stopped thread is made to do, from its first system call to the thread that it makes;
 * and what that thread then does, up to the result of kprof_agent_start().
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "capture/inject/priv.h"
#include "kprof/agent.h"
#include "util/error.h"
#include "util/util.h"

#define MXCSR_DEFAULT 0x1f80
/* how long the stub waits, in case other programs keep kprof from running */
#define PATIENCE_NS 50000000
/* between looks whether the agent is started */
#define NAP_NS 200000
#define THREAD_NAME "kprof-load"
#define MEMFD_EXEC 0x10u /* MFD_EXEC, linux 6.3 (105ff5339f49) */

/* Offset in the memfd of the region, which follows the library. */
static uint64_t region_offset(const struct inject_library *l)
{
	return (l->bytes + INJECT_PAGE - 1) & ~(uint64_t)(INJECT_PAGE - 1);
}

/*
 * The errno of a failure in the target that would happen again: never one of the codes that mean
 * "try later" or "process gone" here.
 */
static int code_of(int64_t result)
{
	return result == -EAGAIN || result == -EBUSY || result == -ESRCH || result == -ETIMEDOUT ||
			       result > -1 || result < -4095
		       ? -EIO
		       : (int)result;
}

static int step_error(const struct inject_target *t, const char *what, int64_t result)
{
	if (result == -EACCES && !strcmp(what, "memfd_create"))
		return error_set_machine(-EACCES, "sysctl vm.memfd_noexec=1 (or 0) allows it",
					 "vm.memfd_noexec=2 forbids loading code into process %d",
					 (int)t->pid);
	return error_set(code_of(result),
			 result == -EMFILE ? "raise its limit on open files (ulimit -n)" : NULL,
			 "%s in process %d: %s", what, (int)t->pid, strerror((int)-result));
}

/* Makes the target's thread do a system call. *result is not negative when this returns 0. */
static int remote_do(const struct inject_target *t, struct remote *r, const char *what, long nr,
		     const uint64_t args[6], int64_t *result)
{
	int err = remote__syscall(r, t, nr, args, result);

	if (err)
		return err;
	return *result < 0 && *result > -4096 ? step_error(t, what, *result) : 0;
}

static int make_memfd(const struct inject_target *t, struct remote *r, int *fd)
{
	uint64_t args[6] = {r->text, MFD_CLOEXEC | MEMFD_EXEC};
	int64_t result;
	int err;

	err = remote_do(t, r, "memfd_create", SYS_memfd_create, args, &result);
	if (err == -EINVAL) { /* before linux 6.3 */
		args[1] = MFD_CLOEXEC;
		err = remote_do(t, r, "memfd_create", SYS_memfd_create, args, &result);
	}
	if (!err)
		*fd = (int)result;
	return err;
}

static int write_at(int fd, const void *from, size_t bytes, uint64_t offset)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t n =
			pwrite(fd, (const char *)from + done, bytes - done, (off_t)(offset + done));

		if (n < 0 && errno != EINTR)
			return -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/*
 * Is this the file that memfd_create() has just made, still unused? Any other file must not be
 * changed.
 */
static bool is_fresh_memfd(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && !st.st_nlink && !st.st_size &&
	       inject_is_memfd(getpid(), fd);
}

/*
 * Duplicates the target's descriptor instead of opening its file again: other threads of the target
 * may replace the descriptor by another file, and must not gain rights to that file which they do
 * not have.
 */
static int take_memfd(const struct inject_target *t, int remote_fd, int *out)
{
	int pidfd = (int)syscall(SYS_pidfd_open, t->pid, 0), err = 0;

	*out = pidfd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pidfd, remote_fd, 0);
	if (*out < 0)
		err = error_set(-errno, NULL, "the memfd in process %d cannot be opened: %s",
				(int)t->pid, strerror(errno));
	if (pidfd >= 0)
		close(pidfd);
	if (err || is_fresh_memfd(*out))
		return err;
	close(*out);
	return error_set(-ESTALE, NULL, "another file has taken the memfd's place in process %d",
			 (int)t->pid);
}

static int memfd_error(const struct inject_target *t, int err)
{
	return error_set(err, NULL, "the memfd in process %d cannot be written: %s", (int)t->pid,
			 strerror(-err));
}

/* Writes the library and the code into the memfd, from kprof. */
static int fill_memfd(const struct inject_target *t, const struct inject_library *l, int remote_fd,
		      int *out)
{
	uint64_t offset = region_offset(l);
	size_t stub_bytes, task_bytes;
	const void *stub = inject_stub_code(&stub_bytes), *task = inject_task_code(&task_bytes);
	int err;

	err = take_memfd(t, remote_fd, out);
	if (err)
		return err;
	if (ftruncate(*out, (off_t)(offset + INJECT_REGION_BYTES)))
		err = -errno;
	if (!err)
		err = write_at(*out, l->data, l->bytes, 0);
	if (!err)
		err = write_at(*out, stub, stub_bytes, offset);
	if (!err)
		err = write_at(*out, task, task_bytes, offset + INJECT_TASK_CODE);
	return err ? memfd_error(t, err) : 0;
}

/*
 * Maps the region executable, and then makes all but the code at both of its ends writable instead:
 * no page is ever both.
 */
static int map_region(const struct inject_target *t, struct remote *r, int fd, uint64_t offset,
		      uint64_t *region)
{
	uint64_t map[6] = {0,          INJECT_REGION_BYTES, PROT_READ | PROT_EXEC,
			   MAP_SHARED, (uint64_t)fd,        offset};
	uint64_t protect[6] = {0, INJECT_REGION_BYTES - 2 * INJECT_PAGE, PROT_READ | PROT_WRITE};
	int64_t result;
	int err;

	err = remote_do(t, r, "mmap", SYS_mmap, map, &result);
	if (err)
		return err;
	*region = (uint64_t)result;
	protect[0] = *region + INJECT_PAGE;
	return remote_do(t, r, "mprotect", SYS_mprotect, protect, &result);
}

static struct inject_stub_data stub_data(const struct inject_target *t, const struct remote *r,
					 uint64_t region)
{
	return (struct inject_stub_data){
		.mxcsr = MXCSR_DEFAULT,
		.errno_location = t->errno_location,
		.thread_create = t->thread_create,
		.task = region + INJECT_TASK_CODE,
		.task_data = region + INJECT_TASK_DATA,
		.region = region,
		.region_bytes = INJECT_STUB_BYTES,
		.syscall_ret = t->syscall_ret,
		.chain = r->chain,
		.patience = {0, PATIENCE_NS},
		.blocked = ~0ull,
		.blocked_in_create = ~(1ull << (INJECT_SIGNAL_SETXID - 1)),
		.pid = t->pid,
		.tid = r->tid,
	};
}

static struct inject_task_data task_data(const struct inject_target *t, int fd, uint64_t region)
{
	struct inject_task_data data = {
		.fd = fd,
		.pid = t->pid,
		.dlopen = t->dlopen,
		.dlsym = t->dlsym,
		.dlclose = t->dlclose,
		.dlerror = t->dlerror,
		.start = t->start,
		.flags = (uint32_t)t->dlopen_flags,
		.thread_detach = t->thread_detach,
		.region = region + INJECT_TASK_DATA,
		.region_bytes = INJECT_TASK_BYTES,
		.syscall_ret = t->syscall_ret,
		.name = THREAD_NAME,
		.symbol = KPROF_AGENT_START_SYMBOL,
	};

	/*
	 * An unusual spelling of the path: the loader identifies libraries by name, and the program
	 * may use the same descriptor number, and so the same path, again.
	 */
	snprintf(data.path, sizeof(data.path), "/proc/self/task/../fd/%d", fd);
	return data;
}

/* fd: kprof's own descriptor of the memfd; remote_fd: the target's. */
static int write_data(const struct inject_target *t, const struct remote *r, int fd,
		      uint64_t offset, int remote_fd, uint64_t region)
{
	struct inject_stub_data stub = stub_data(t, r, region);
	struct inject_task_data task = task_data(t, remote_fd, region);
	int err;

	err = write_at(fd, &stub, sizeof(stub), offset + INJECT_STUB_DATA);
	if (!err)
		err = write_at(fd, &task, sizeof(task), offset + INJECT_TASK_DATA);
	return err ? memfd_error(t, err) : 0;
}

/* False: the target has cut its memfd short. */
static bool read_at(int fd, void *to, size_t bytes, uint64_t offset)
{
	return pread(fd, to, bytes, (off_t)offset) == (ssize_t)bytes;
}

/* ---- the borrowed thread ---- */

static void undo(const struct inject_target *t, struct remote *r, int fd, uint64_t region,
		 uint64_t bytes)
{
	uint64_t unmap[6] = {region, bytes}, shut[6] = {(uint64_t)fd};
	int64_t result;

	if (r->gone || !r->stopped || !r->hijacked)
		return;
	if (region)
		remote__syscall(r, t, SYS_munmap, unmap, &result);
	if (fd >= 0 && r->stopped && !r->gone)
		remote__syscall(r, t, SYS_close, shut, &result);
}

/* Has the stub begun the task? Nothing of the target is left to undo then but the stub. */
static int run_stub(const struct inject_target *t, struct remote *r, int fd, uint64_t offset,
		    uint64_t region)
{
	uint64_t data_at = region + INJECT_STUB_DATA;
	struct inject_stub_data data;
	int err;

	err = remote__run(r, region, data_at, data_at,
			  data_at + offsetof(struct inject_stub_data, state));
	if (err == -EDEADLK) {
		const uint32_t lost = INJECT_LOST;

		write_at(fd, &lost, sizeof(lost), offset + INJECT_STUB_DATA);
	}
	if (err)
		return err;
	if (!read_at(fd, &data, sizeof(data), offset + INJECT_STUB_DATA))
		return memfd_error(t, -EIO);
	if (data.result)
		return error_set(code_of(-data.result), NULL,
				 "no thread can be made in process %d: %s", (int)t->pid,
				 strerror(data.result));
	return 0;
}

int inject_load(const struct inject_target *t, const struct inject_library *l,
		const struct inject_leftovers *leftovers, struct remote *r,
		struct inject_task *task)
{
	uint64_t region = 0, offset = region_offset(l);
	int err, fd = -1, own = -1;

	err = inject_leftovers__undo(leftovers, t, r);
	if (!err)
		err = make_memfd(t, r, &fd);
	if (!err)
		err = fill_memfd(t, l, fd, &own);
	if (!err)
		err = map_region(t, r, fd, offset, &region);
	if (!err)
		err = write_data(t, r, own, offset, fd, region);
	if (!err)
		err = run_stub(t, r, own, offset, region);
	if (err) {
		undo(t, r, fd, region, INJECT_REGION_BYTES);
		if (own >= 0)
			close(own);
		return err;
	}
	undo(t, r, -1, region, INJECT_STUB_BYTES);
	*task = (struct inject_task){
		.fd = own,
		.data_at = offset + INJECT_TASK_DATA,
		.region = region + INJECT_TASK_DATA,
	};
	return 0;
}

/* ---- the task ---- */

static int outcome(const struct inject_target *t, struct inject_task_data *data)
{
	data->error[sizeof(data->error) - 1] = '\0';
	switch (data->step) {
	case INJECT_STEP_COMPLETE:
		return 0;
	case INJECT_STEP_START:
		return error_set(code_of(data->result), NULL,
				 "the agent in process %d did not start: %s", (int)t->pid,
				 strerror(data->result > -4096 ? -data->result : EIO));
	default:
		return error_set(-ELIBACC, "kprof run loads it when the program starts",
				 "process %d could not load the agent: %s", (int)t->pid,
				 data->error[0] ? data->error : "the loader gives no reason");
	}
}

/* Is it still mapped? The task unmaps itself last. */
static bool is_mapped(const struct inject_target *t, const struct inject_task *task)
{
	char byte;

	return !process_read(t->pid, task->region, &byte, 1);
}

int inject_task__wait(const struct inject_target *t, struct inject_task *task, uint64_t deadline_ns)
{
	const struct timespec nap = {0, NAP_NS};
	struct inject_task_data data;
	int err = -ETIMEDOUT;

	do {
		bool over = !is_mapped(t, task);

		if (!read_at(task->fd, &data, sizeof(data), task->data_at))
			err = memfd_error(t, -EIO);
		else if (over && data.state == INJECT_DONE)
			err = outcome(t, &data);
		else if (over)
			err = error_set(-ESRCH, NULL, "process %d ended meanwhile", (int)t->pid);
		else
			nanosleep(&nap, NULL);
	} while (err == -ETIMEDOUT && clock_mono_ns() < deadline_ns);
	close(task->fd);
	task->fd = -1;
	if (err != -ETIMEDOUT)
		return err;
	return error_set(-ETIMEDOUT, NULL, "process %d is still loading the agent", (int)t->pid);
}
