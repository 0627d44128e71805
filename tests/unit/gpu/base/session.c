// SPDX-License-Identifier: BSD-2-Clause
/*
 * The agent's thread, from kprof's side of the memory file: commands and what becomes of them,
 * kprof that dies, processes that fork and exit. The runtime is a module of the test's own.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/agent.h"
#include "gpu/base/batch.h"
#include "gpu/base/module.h"
#include "gpu/base/util.h"
#include "gpu_fixture.h"

int kprof_agent_start(void);
int InitializeInjection(void);

/* ---- a runtime that does as it is told ---- */

static struct {
	int probe_error, start_error;
	enum kprof_agent_reason reason;
	unsigned int probes, starts, flushes, stops, releases, exits;
	uint64_t types;
	uint32_t options;
	uint64_t tid; /* of the thread that started it */
	bool injecting;
} told;

static int probe(struct gpu_report *r)
{
	told.probes++;
	return told.probe_error ? gpu_report(r, told.probe_error, told.reason, "probed", NULL) : 0;
}

static void work(uint64_t correlation)
{
	struct kprof_agent_kernel k = BATCH_ACTIVITY(struct kprof_agent_kernel, KPROF_AGENT_KERNEL,
						     batch__name_of("kernel"));

	k.a.correlation = correlation;
	batch__append(&k);
}

static int start(uint64_t types, uint32_t options, struct gpu_report *r)
{
	told.starts++;
	told.types = types;
	told.options = options;
	told.tid = gpu_tid();
	told.injecting = gpu_in_injection();
	if (told.start_error)
		return gpu_report(r, told.start_error, told.reason, "started", NULL);
	work(1);
	return 0;
}

static int flush(struct gpu_report *r)
{
	told.flushes++;
	return 0;
}

static void stop(void)
{
	told.stops++;
	work(1000);
}

static void release(void)
{
	told.releases++;
}

static void exits(void)
{
	told.exits++;
	work(1000000);
}

static const struct gpu_module module = {
	.runtime = KPROF_AGENT_CUDA,
	.probe = probe,
	.start = start,
	.flush = flush,
	.stop = stop,
	.release = release,
	.at_exit = exits,
};
const struct gpu_module *const gpu_modules[] = {&module, NULL};

/* ---- kprof ---- */

static void wait_while(const kprof_u32 *word, uint32_t value)
{
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value)
		gpu_futex_wait(word, value, 100, true);
}

static void wait_for_state(enum kprof_agent_state state)
{
	struct kprof_agent_shm *shm = gpu_shm();
	uint32_t now;

	while ((now = __atomic_load_n(&shm->state, __ATOMIC_ACQUIRE)) != state)
		wait_while(&shm->state, now);
}

static void command(enum kprof_agent_command c)
{
	__atomic_store_n(&gpu_shm()->command, c, __ATOMIC_RELEASE);
	gpu_futex_wake(&gpu_shm()->command, true);
}

static struct {
	pthread_t thread;
	bool alive;
} heart;

static void *beats(void *arg)
{
	while (__atomic_load_n(&heart.alive, __ATOMIC_RELAXED)) {
		__atomic_store_n(&gpu_shm()->heartbeat_ns, gpu_now_ns(), __ATOMIC_RELAXED);
		usleep(50000);
	}
	return NULL;
}

static void beat(void)
{
	heart.alive = true;
	pthread_create(&heart.thread, NULL, beats, NULL);
}

static void die(void)
{
	__atomic_store_n(&heart.alive, false, __ATOMIC_RELAXED);
	pthread_join(heart.thread, NULL);
}

static void ask_to_record(uint32_t session)
{
	struct kprof_agent_shm *shm = gpu_shm();

	shm->session = session;
	shm->types = 1u << KPROF_ACTIVITY_KERNEL;
	shm->options = KPROF_AGENT_OPT_SYNC;
	__atomic_store_n(&shm->command, KPROF_AGENT_RECORD, __ATOMIC_RELEASE);
}

static void record(uint32_t session)
{
	ask_to_record(session);
	command(KPROF_AGENT_RECORD);
}

/* Threads of this process by that name. */
static unsigned int agents(void)
{
	DIR *dir = opendir("/proc/self/task");
	char path[300], name[32];
	struct dirent *e;
	unsigned int nr = 0;
	FILE *f;

	while (dir && (e = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
		f = fopen(path, "r");
		if (f && fgets(name, sizeof(name), f))
			nr += !strcmp(name, "kprof-agent\n");
		if (f)
			fclose(f);
	}
	if (dir)
		closedir(dir);
	return nr;
}

static void no_agents(void)
{
	while (agents())
		usleep(1000);
}

static unsigned int mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned int nr = 0;
	char line[600];

	while (f && fgets(line, sizeof(line), f))
		nr += strstr(line, "memfd:" KPROF_AGENT_SHM_NAME) != NULL;
	if (f)
		fclose(f);
	return nr;
}

static void fresh(void)
{
	memset(&told, 0, sizeof(told));
	seen_clear();
	CHECK_EQ(kprof_agent_start(), 0);
	CHECK_EQ(gpu_shm()->command, KPROF_AGENT_REST);
}

static void leave(void)
{
	command(KPROF_AGENT_LEAVE);
	wait_for_state(KPROF_AGENT_LEFT);
	no_agents();
}

/* ---- tests ---- */

static volatile int came_through;

static void *start_cancelled(void *door)
{
	pthread_cancel(pthread_self()); /* acts at the next call that is a cancellation point */
	if (door)
		InitializeInjection();
	else
		kprof_agent_start();
	came_through++;
	pthread_testcancel();
	return NULL;
}

/*
 * A thread that is cancelled must not end in the agent, with its lock. The first test, since it
 * makes the file.
 */
static void a_cancelled_thread_comes_through(void)
{
	pthread_t thread;
	void *result;
	int before = 0;

	CHECK(!gpu_shm());
	for (int door = 0; door < 2; door++, before = came_through) {
		pthread_create(&thread, NULL, start_cancelled, door ? &told : NULL);
		pthread_join(thread, &result);
		CHECK(result == PTHREAD_CANCELED);
		CHECK_EQ(came_through, before + 1);
		if (came_through == before)
			exit(1); /* the lock is lost: all else would hang */
	}
	leave();
}

static void it_waits(void)
{
	fresh();
	CHECK_EQ(kprof_agent_start(), 0); /* twice is once */
	CHECK_EQ(mappings(), 1);
	CHECK_EQ(gpu_shm()->magic, KPROF_AGENT_MAGIC);
	CHECK_EQ(gpu_shm()->version, KPROF_AGENT_VERSION);
	CHECK_EQ(gpu_shm()->pid, getpid());
	CHECK_EQ(gpu_shm()->nr_slots, KPROF_AGENT_SLOTS);
	CHECK_EQ(gpu_shm()->state, KPROF_AGENT_LOADED);
	while (agents() != 1)
		usleep(1000);
	leave();
	CHECK_EQ(told.probes, 0);
	CHECK_EQ(told.releases, 0);
}

static void it_records_and_rests(void)
{
	fresh();
	beat();
	record(5);
	wait_for_state(KPROF_AGENT_RECORDING);
	CHECK_EQ(gpu_shm()->recording, 5);
	CHECK_EQ(gpu_shm()->runtimes, 1 << KPROF_AGENT_CUDA);
	CHECK_EQ(told.types, 1 << KPROF_ACTIVITY_KERNEL);
	CHECK_EQ(told.options, KPROF_AGENT_OPT_SYNC);
	while (!__atomic_load_n(&told.flushes, __ATOMIC_RELAXED))
		usleep(1000);
	command(KPROF_AGENT_REST);
	wait_for_state(KPROF_AGENT_RESTING);
	CHECK_EQ(told.stops, 1);
	CHECK_EQ(told.releases, 0);
	CHECK_EQ(seen.sum, 1001); /* what stop() still had is there, too */
	CHECK_EQ(gpu_shm()->records, 3);
	CHECK_EQ(seen.session, 5);
	leave();
	CHECK_EQ(told.releases, 1);
	CHECK_EQ(told.stops, 1);
	die();
}

static void sessions_follow_one_another(void)
{
	fresh();
	beat();
	record(6);
	wait_for_state(KPROF_AGENT_RECORDING);
	record(7);
	wait_while(&gpu_shm()->recording, 6);
	wait_for_state(KPROF_AGENT_RECORDING);
	CHECK_EQ(gpu_shm()->recording, 7);
	command(KPROF_AGENT_REST);
	wait_for_state(KPROF_AGENT_RESTING);
	CHECK_EQ(told.starts, 2);
	CHECK_EQ(told.stops, 2);
	leave();
	CHECK_EQ(kprof_agent_start(), 0); /* a second attach */
	record(8);
	wait_for_state(KPROF_AGENT_RECORDING);
	leave();
	CHECK_EQ(told.starts, 3);
	CHECK_EQ(told.stops, 3);
	CHECK_EQ(told.releases, 2);
	die();
}

static void it_notices_that_kprof_is_dead(void)
{
	fresh();
	beat();
	record(9);
	wait_for_state(KPROF_AGENT_RECORDING);
	die(); /* and says nothing more */
	wait_for_state(KPROF_AGENT_LEFT);
	no_agents();
	CHECK_EQ(told.stops, 1);
	CHECK_EQ(told.releases, 1);
	/* Another kprof comes along: what the dead one asked for is not recorded again. */
	CHECK_EQ(kprof_agent_start(), 0);
	CHECK_EQ(gpu_shm()->state, KPROF_AGENT_LOADED);
	beat();
	/* It asks in the moment before the agent's thread waits: to wake it does nothing then. */
	usleep(20000);
	ask_to_record(10);
	alarm(60);
	wait_for_state(KPROF_AGENT_RECORDING);
	alarm(0);
	CHECK_EQ(told.starts, 2);
	leave();
	die();
}

static void a_runtime_that_comes_later(void)
{
	fresh();
	told.probe_error = -EAGAIN;
	told.reason = KPROF_AGENT_NO_RUNTIME;
	beat();
	record(11);
	wait_while(&gpu_shm()->reason, KPROF_AGENT_OK);
	CHECK_EQ(gpu_shm()->state, KPROF_AGENT_LOADED);
	CHECK_EQ(gpu_shm()->reason, KPROF_AGENT_NO_RUNTIME);
	CHECK_STR(gpu_shm()->detail, "probed");
	__atomic_store_n(&told.probe_error, 0, __ATOMIC_RELEASE);
	wait_for_state(KPROF_AGENT_RECORDING);
	CHECK_EQ(gpu_shm()->reason, KPROF_AGENT_OK);
	CHECK_STR(gpu_shm()->detail, "");
	leave();
	die();
}

static void a_runtime_that_refuses(void)
{
	fresh();
	told.start_error = -EBUSY;
	told.reason = KPROF_AGENT_BUSY;
	beat();
	record(12);
	wait_for_state(KPROF_AGENT_FAILED);
	CHECK_EQ(gpu_shm()->reason, KPROF_AGENT_BUSY);
	CHECK_STR(gpu_shm()->detail, "started");
	CHECK_EQ(gpu_shm()->runtimes, 0);
	command(KPROF_AGENT_REST);
	wait_for_state(KPROF_AGENT_RESTING);
	CHECK_EQ(told.starts, 1); /* asked once */
	CHECK_EQ(told.stops, 0);
	leave();
	die();
}

static void a_forked_child_has_no_agent(void)
{
	int status = -1;
	pid_t child;

	fresh();
	beat();
	record(13);
	wait_for_state(KPROF_AGENT_RECORDING);
	child = fork();
	if (!child) {
		int bad = mappings() || gpu_shm();

		work(5); /* comes to nothing */
		if (!bad && (kprof_agent_start() || !gpu_shm() || mappings() != 1))
			bad = 2;
		if (!bad && gpu_shm()->pid != (kprof_u32)getpid())
			bad = 3;
		_exit(bad);
	}
	waitpid(child, &status, 0);
	CHECK_EQ(status, 0);
	CHECK_EQ(mappings(), 1);
	CHECK_EQ(gpu_shm()->state, KPROF_AGENT_RECORDING);
	leave();
	CHECK_EQ(seen.sum, 1001);
	die();
}

static int tell[2];
static bool telling;
static uint64_t exit_began_ns;

struct told_at_exit {
	uint64_t sum, took_ns;
};

static void tell_sum(void)
{
	const struct told_at_exit t = {seen.sum, gpu_now_ns() - exit_began_ns};

	if (telling && write(tell[1], &t, sizeof(t)) != sizeof(t))
		abort();
}

/* Registered before the agent's handler, called after it. */
__attribute__((constructor)) static void before_the_agent(void)
{
	atexit(tell_sum);
}

static struct told_at_exit exit_while_recording(void)
{
	struct told_at_exit t = {0};
	int status = -1;
	pid_t child;

	CHECK_EQ(pipe(tell), 0);
	fflush(stdout);
	child = fork();
	if (!child) {
		memset(&told, 0, sizeof(told));
		seen_clear();
		telling = true;
		if (kprof_agent_start())
			_exit(1);
		beat();
		record(14);
		wait_for_state(KPROF_AGENT_RECORDING);
		exit_began_ns = gpu_now_ns();
		exit(3);
	}
	close(tell[1]);
	waitpid(child, &status, 0);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
	CHECK_EQ(read(tell[0], &t, sizeof(t)), sizeof(t));
	close(tell[0]);
	return t;
}

/*
 * exit() in the middle of a session: what the module still had has been handed over when the
 * process is gone.
 */
static void exit_hands_over(void)
{
	/* No process waits longer for an agent that gets no CPU. */
	const uint64_t bound_ns = 500000000;
	struct told_at_exit t;
	int tries = 0;

	do
		t = exit_while_recording();
	while (t.took_ns >= bound_ns && ++tries < 20);
	CHECK_EQ(t.sum, 1000001);
}

static void exit_handler(void)
{
	exit(5);
}

/*
 * The same from a signal handler that came while this thread handed over, and held what the agent
 * needs for its end.
 */
static void exit_from_a_handler(void)
{
	int status = -1;
	pid_t child = fork();

	if (!child) {
		telling = false;
		alarm(30);
		memset(&told, 0, sizeof(told));
		seen_clear();
		if (kprof_agent_start())
			_exit(1);
		beat();
		record(15);
		wait_for_state(KPROF_AGENT_RECORDING);
		interrupt = exit_handler;
		for (unsigned int i = 0; i < 1000; i++)
			work(1);
		_exit(2);
	}
	waitpid(child, &status, 0);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
}

static void no_descriptors_left(void)
{
	struct rlimit before, none;
	int status = -1;
	pid_t child;

	child = fork();
	if (!child) {
		getrlimit(RLIMIT_NOFILE, &before);
		none = before;
		none.rlim_cur = 3;
		setrlimit(RLIMIT_NOFILE, &none);
		_exit(kprof_agent_start() == -EMFILE && !gpu_shm() ? 0 : 1);
	}
	waitpid(child, &status, 0);
	CHECK_EQ(status, 0);
	child = fork();
	if (!child) {
		getrlimit(RLIMIT_NOFILE, &before);
		none = before;
		none.rlim_cur = 4; /* one is enough, and it is not kept */
		setrlimit(RLIMIT_NOFILE, &none);
		closefrom(3);
		_exit(kprof_agent_start() || dup(1) != 3);
	}
	waitpid(child, &status, 0);
	CHECK_EQ(status, 0);
}

static void *kprof_sees_it(void *arg)
{
	while (!gpu_in_injection())
		usleep(1000);
	beat();
	record(15);
	return NULL;
}

/* The thread that initializes the runtime is held, and starts the session itself. */
static int injected(void)
{
	pthread_t kprof;
	char pid[16];

	memset(&told, 0, sizeof(told));
	setenv("KPROF_AGENT_WAIT_MS", "20", 1); /* nobody comes: it goes on */
	if (InitializeInjection() != 1 || gpu_shm()->state != KPROF_AGENT_LOADED)
		return 1;
	setenv("KPROF_AGENT_WAIT_MS", "10000", 1);
	setenv("KPROF_AGENT_WAIT_PID", "4194304", 1); /* more than there can be */
	alarm(5);
	InitializeInjection(); /* it is gone: nobody is waited for */
	alarm(0);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	setenv("KPROF_AGENT_WAIT_PID", pid, 1);
	pthread_create(&kprof, NULL, kprof_sees_it, NULL);
	InitializeInjection();
	pthread_join(kprof, NULL);
	if (gpu_shm()->state != KPROF_AGENT_RECORDING || told.starts != 1)
		return 2;
	return told.injecting && told.tid == gpu_tid() ? 0 : 3;
}

static void injected_while_the_runtime_starts(void)
{
	int status = -1;
	pid_t child = fork();

	if (!child)
		_exit(injected());
	waitpid(child, &status, 0);
	CHECK_EQ(status, 0);
}

UNIT_MAIN(TEST(a_cancelled_thread_comes_through), TEST(it_waits), TEST(it_records_and_rests),
	  TEST(sessions_follow_one_another), TEST(it_notices_that_kprof_is_dead),
	  TEST(a_runtime_that_comes_later), TEST(a_runtime_that_refuses),
	  TEST(a_forked_child_has_no_agent), TEST(exit_hands_over), TEST(exit_from_a_handler),
	  TEST(no_descriptors_left), TEST(injected_while_the_runtime_starts))
