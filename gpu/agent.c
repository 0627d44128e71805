// SPDX-License-Identifier: BSD-2-Clause
/*
 * Starts the agent, runs its thread, and handles the process's fork and exit. The agent is never
 * unloaded: a runtime may have its callbacks registered, or a thread may be executing its code.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "gpu/agent.h"
#include "gpu/base/batch.h"
#include "gpu/base/host.h"
#include "gpu/base/module.h"
#include "gpu/base/util.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int kprof_agent_start(void);

/*
 * How long the first use of the runtime may be delayed, in ms, until kprof has placed its probes
 * and asks to record, so that nothing is missed.
 */
#define WAIT_VARIABLE "KPROF_AGENT_WAIT_MS"
#define WAIT_MAX_MS 10000
#define KPROF_VARIABLE "KPROF_AGENT_WAIT_PID" /* process id of the kprof to wait for; unset: any */
#define PID_MAX (1u << 22)                    /* PID_MAX_LIMIT, include/linux/threads.h */

#define EXIT_WAIT_MS 500
#define PREPARED_WAIT_MS 500

static struct {
	struct gpu_lock lock; /* protects the fields below */
	bool running;         /* the agent's thread exists */
	uint32_t starts;
	uint32_t prepared; /* the handlers of fork and exit are registered; a futex */
	uint32_t exit;     /* enum exit_state; a futex */
} agent;

enum exit_state { EXIT_NO, EXIT_BEGUN, EXIT_MAY_GO_ON };

static struct gpu_lock control_lock; /* held to call control__*() */

/*
 * May the thread end? Not if kprof_agent_start() was called since the thread has read the command.
 */
static bool may_end(struct kprof_agent_shm *shm, uint32_t starts)
{
	bool end;

	gpu_lock(&agent.lock);
	end = agent.starts == starts;
	if (end)
		agent.running = false;
	control__set_state(shm, end ? KPROF_AGENT_LEFT : KPROF_AGENT_LOADED);
	gpu_unlock(&agent.lock);
	return end;
}

/*
 * The process is in exit(), in which at_exit() waits for this. The agent's thread does nothing any
 * more after it.
 */
static void exit_now(struct kprof_agent_shm *shm)
{
	gpu_lock(&control_lock);
	control__at_exit(shm);
	gpu_unlock(&control_lock);
	__atomic_store_n(&agent.exit, EXIT_MAY_GO_ON, __ATOMIC_RELEASE);
	gpu_futex_wake(&agent.exit, false);
	for (;;)
		gpu_futex_wait(&agent.exit, EXIT_MAY_GO_ON, -1, false);
}

static void prepare(void);

static void *thread(void *arg)
{
	struct kprof_agent_shm *shm = arg;
	uint64_t cpu_ns = 0; /* of this thread, as far as it has been added */
	uint32_t command, starts;
	int wait_ms;

	host__is_agents_thread();
	prctl(PR_SET_NAME, "kprof-agent");
	gpu_cancel_off();
	prepare();
	for (;;) {
		if (__atomic_load_n(&agent.exit, __ATOMIC_ACQUIRE) == EXIT_BEGUN)
			exit_now(shm);
		starts = __atomic_load_n(&agent.starts, __ATOMIC_ACQUIRE);
		command = __atomic_load_n(&shm->command, __ATOMIC_ACQUIRE);
		gpu_lock(&control_lock);
		wait_ms = control__step(shm);
		if (wait_ms == CONTROL_LEAVE)
			control__leave(shm);
		gpu_unlock(&control_lock);
		cpu_ns = host__add_cpu(shm, cpu_ns);
		if (wait_ms != CONTROL_LEAVE)
			gpu_futex_wait(&shm->command, command, wait_ms, true);
		else if (may_end(shm, starts))
			return NULL;
	}
}

/*
 * A forked child has the parent's memory file mapped, but not the agent's thread. The file is only
 * unmapped here; kprof_agent_start() makes everything anew.
 */
static void in_child(void)
{
	struct kprof_agent_shm *shm = gpu_shm();

	agent.lock.state = 0;
	control_lock.state = 0;
	agent.running = false;
	host__set_shm(NULL);
	agent.exit = EXIT_NO;
	batch__forget();
	control__forget();
	if (shm)
		shm__unmap(shm);
}

/*
 * The agent's thread fetches the last records, not the thread that exits: that may be in a signal
 * handler which interrupted the device's runtime, or this agent, and so hold one of their locks.
 */
static void at_exit(void)
{
	struct kprof_agent_shm *shm = gpu_shm();

	if (!shm || shm->pid != (kprof_u32)getpid() ||
	    !__atomic_load_n(&agent.running, __ATOMIC_ACQUIRE))
		return;
	__atomic_store_n(&agent.exit, EXIT_BEGUN, __ATOMIC_RELEASE);
	for (unsigned int ms = 0; ms < EXIT_WAIT_MS; ms += 5) {
		if (__atomic_load_n(&agent.exit, __ATOMIC_ACQUIRE) == EXIT_MAY_GO_ON ||
		    !__atomic_load_n(&agent.running, __ATOMIC_ACQUIRE))
			return;
		/* again, since the agent's thread may have been about to wait */
		gpu_futex_wake(&shm->command, true);
		gpu_futex_wait(&agent.exit, EXIT_BEGUN, 5, false);
	}
}

/*
 * Registers handlers, in the agent's thread. The thread that was borrowed to start the agent must
 * not: a thread that forks just now may hold the lock of the list of handlers, as in older C
 * libraries, and wait for the borrowed one.
 */
static void prepare(void)
{
	if (agent.prepared)
		return;
	pthread_atfork(NULL, NULL, in_child);
	atexit(at_exit);
	__atomic_store_n(&agent.prepared, 1, __ATOMIC_RELEASE);
	gpu_futex_wake(&agent.prepared, false);
}

/*
 * A short program may be through before the agent's new thread gets a CPU: then nobody would fetch
 * the last records. The thread may have to wait for a lock of the C library that this one holds, so
 * not for long.
 */
static void wait_until_prepared(void)
{
	for (unsigned int ms = 0; ms < PREPARED_WAIT_MS; ms += 5) {
		if (__atomic_load_n(&agent.prepared, __ATOMIC_ACQUIRE))
			return;
		gpu_futex_wait(&agent.prepared, 0, 5, false);
	}
}

static void drop_shm(void)
{
	batch__forget();
	shm__unmap(gpu_shm());
	host__set_shm(NULL);
}

/*
 * agent.lock is held. The caller holds control_lock afterwards if it gives held and that says so:
 * a thread that is made here then takes no step before the caller lets it.
 */
static int start(bool *held)
{
	uint32_t leave = KPROF_AGENT_LEAVE;
	struct kprof_agent_shm *shm;
	bool made = false;
	int err = 0;

	/* the process was cloned by a bare system call, so that no handler has run */
	if (gpu_shm() && gpu_shm()->pid != (kprof_u32)getpid())
		in_child();
	shm = gpu_shm();
	if (!shm) {
		gpu_find_clock();
		err = shm__make(&shm);
		if (err)
			return err;
		host__set_shm(shm);
		made = true;
		err = batch__init(shm);
		if (err) {
			drop_shm();
			return err;
		}
	}
	/* A command to leave was for the previous start: it must not end this one. */
	__atomic_compare_exchange_n(&shm->command, &leave, KPROF_AGENT_REST, false,
				    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	__atomic_store_n(&agent.starts, agent.starts + 1, __ATOMIC_RELEASE);
	if (agent.running)
		return 0;
	if (held)
		*held = gpu_trylock(&control_lock, 0);
	err = gpu_thread(thread, shm);
	agent.running = !err;
	if (!err)
		control__set_state(shm, KPROF_AGENT_LOADED);
	else if (made) /* kprof must not find a file that no thread serves */
		drop_shm();
	if (err && held && *held) {
		gpu_unlock(&control_lock);
		*held = false;
	}
	return err;
}

static int start_locked(bool *held)
{
	int saved = errno, cancel = gpu_cancel_off(), err;

	gpu_lock(&agent.lock);
	err = start(held);
	gpu_unlock(&agent.lock);
	gpu_cancel_back(cancel);
	errno = saved;
	return err;
}

int gpu_start(void)
{
	return start_locked(NULL);
}

int gpu_start_in_runtime(bool *held)
{
	int err;

	*held = false;
	err = start_locked(held);
	if (!err)
		__atomic_store_n(&gpu_shm()->went_on_ns, UINT64_MAX, __ATOMIC_RELAXED);
	return err;
}

int kprof_agent_start(void)
{
	return gpu_start();
}

static unsigned int number_of(const char *text, unsigned int most)
{
	unsigned int n = 0;

	for (; text && *text >= '0' && *text <= '9' && n <= most; text++)
		n = n * 10 + (unsigned int)(*text - '0');
	return n > most ? most : n;
}

/*
 * How long to wait, in ms; 0 if the kprof that the environment names has ended: programs pass their
 * environment on.
 */
static unsigned int wait_ms_wanted(void)
{
	int pid = (int)number_of(getenv(KPROF_VARIABLE), PID_MAX), saved = errno;
	bool gone = pid && kill(pid, 0) && errno == ESRCH;

	errno = saved;
	return gone ? 0 : number_of(getenv(WAIT_VARIABLE), WAIT_MAX_MS);
}

void gpu_wait_for_session(bool held)
{
	struct kprof_agent_shm *shm = gpu_shm();
	unsigned int wait_ms = wait_ms_wanted();
	int cancel = gpu_cancel_off();

	wait_until_prepared();
	if (held || (wait_ms && gpu_trylock(&control_lock, wait_ms))) {
		control__start_here(shm, wait_ms);
		gpu_unlock(&control_lock);
	}
	if (__atomic_load_n(&shm->state, __ATOMIC_RELAXED) != KPROF_AGENT_RECORDING)
		__atomic_store_n(&shm->went_on_ns, gpu_now_ns(), __ATOMIC_RELAXED);
	gpu_cancel_back(cancel);
}
