// SPDX-License-Identifier: BSD-2-Clause
/*
 * Where the agent is started, its thread, and what happens to it when the process forks or exits.
 * It is never unloaded: its code may be registered with a runtime, or be on some thread's stack.
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
 * How long the runtime's first use may be held until kprof has placed its probes and asks to
 * record, so that nothing is missed.
 */
#define WAIT_VARIABLE "KPROF_AGENT_WAIT_MS"
#define WAIT_MAX_MS 10000
#define KPROF_VARIABLE "KPROF_AGENT_WAIT_PID" /* whom to wait for; unset: whoever it is */
#define PID_MAX (1u << 22)                    /* PID_MAX_LIMIT, include/linux/threads.h */

#define STACK_BYTES (1u << 20) /* at least: programs make the default as small as suits them */
#define EXIT_WAIT_MS 500

static struct {
	struct gpu_lock lock; /* the fields below */
	bool running;         /* the thread */
	uint32_t starts;
	bool prepared; /* handlers of fork and exit: the thread's */
	uint32_t exit; /* enum exit_state; a futex */
} agent;

enum exit_state { EXIT_NO, EXIT_BEGUN, EXIT_MAY_GO_ON };

static struct gpu_lock control_lock; /* control__step() and its kin */

static void set_state(struct kprof_agent_shm *shm, enum kprof_agent_state state)
{
	__atomic_store_n(&shm->state, state, __ATOMIC_RELEASE);
	gpu_futex_wake(&shm->state, true);
}

/* False: somebody has asked to start since the command was read, the thread goes on. */
static bool may_end(struct kprof_agent_shm *shm, uint32_t starts)
{
	bool end;

	gpu_lock(&agent.lock);
	end = agent.starts == starts;
	if (end)
		agent.running = false;
	set_state(shm, end ? KPROF_AGENT_LEFT : KPROF_AGENT_LOADED);
	gpu_unlock(&agent.lock);
	return end;
}

/*
 * The process calls exit(); where it has, at_exit() waits. Nothing is touched any more after that.
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
	uint32_t command, starts;
	int wait_ms;

	prctl(PR_SET_NAME, "kprof-agent");
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
		if (wait_ms != CONTROL_LEAVE)
			gpu_futex_wait(&shm->command, command, wait_ms, true);
		else if (may_end(shm, starts))
			return NULL;
	}
}

/* Signals of the process are none of this thread's business. */
static int make_thread(struct kprof_agent_shm *shm)
{
	sigset_t all, before;
	pthread_attr_t attr;
	size_t stack = 0;
	pthread_t t;
	int err;

	err = pthread_attr_init(&attr);
	if (err)
		return -err;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (!pthread_attr_getstacksize(&attr, &stack) && stack < STACK_BYTES)
		pthread_attr_setstacksize(&attr, STACK_BYTES);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&t, &attr, thread, shm);
	sigprocmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -err;
}

/*
 * A forked child has the memory but not the thread: it starts from nothing, should anybody ask it
 * to. What was the parent's is only unmapped here.
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
 * The last records are fetched by the agent's thread, and not by the one that exits: that may be in
 * a signal handler which interrupted the device's runtime, or this agent, and hold a lock of
 * theirs.
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
		gpu_futex_wake(&shm->command, true); /* it may have been about to wait */
		gpu_futex_wait(&agent.exit, EXIT_BEGUN, 5, false);
	}
}

/*
 * In the agent's thread: the one that was borrowed for the start may be awaited by somebody who
 * forks just now and holds the lock of the list of handlers meanwhile, as older C libraries do.
 */
static void prepare(void)
{
	if (agent.prepared)
		return;
	agent.prepared = true;
	pthread_atfork(NULL, NULL, in_child);
	atexit(at_exit);
}

static void drop_shm(void)
{
	batch__forget();
	shm__unmap(gpu_shm());
	host__set_shm(NULL);
}

/* With agent.lock. */
static int start(void)
{
	uint32_t leave = KPROF_AGENT_LEAVE;
	struct kprof_agent_shm *shm;
	bool made = false;
	int err = 0;

	if (gpu_shm() && gpu_shm()->pid != (kprof_u32)getpid())
		in_child(); /* cloned by a system call: no handler has run */
	shm = gpu_shm();
	if (!shm) {
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
	/*
	 * A command to leave has been obeyed, or is about to be: it does not count for what is
	 * asked now.
	 */
	__atomic_compare_exchange_n(&shm->command, &leave, KPROF_AGENT_REST, false,
				    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	__atomic_store_n(&agent.starts, agent.starts + 1, __ATOMIC_RELEASE);
	if (agent.running)
		return 0;
	err = make_thread(shm);
	agent.running = !err;
	if (!err)
		set_state(shm, KPROF_AGENT_LOADED);
	else if (made) /* kprof would find it, and wait for an answer */
		drop_shm();
	return err;
}

int gpu_start(void)
{
	int saved = errno, err;

	gpu_lock(&agent.lock);
	err = start();
	gpu_unlock(&agent.lock);
	errno = saved;
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

/* Programs inherit the environment for longer than the kprof lives that it names. */
static unsigned int wait_ms_wanted(void)
{
	int pid = (int)number_of(getenv(KPROF_VARIABLE), PID_MAX), saved = errno;
	bool gone = pid && kill(pid, 0) && errno == ESRCH;

	errno = saved;
	return gone ? 0 : number_of(getenv(WAIT_VARIABLE), WAIT_MAX_MS);
}

void gpu_wait_for_session(void)
{
	unsigned int wait_ms = wait_ms_wanted();

	if (wait_ms && gpu_trylock(&control_lock, wait_ms)) {
		control__start_here(gpu_shm(), wait_ms);
		gpu_unlock(&control_lock);
	}
}
