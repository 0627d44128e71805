// SPDX-License-Identifier: BSD-2-Clause
/*
 * The memory of an agent that is this very process: found, checked, and then changed in every way
 * behind kprof's back.
 */
#include "capture/agent/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kprof.h"
#include "unit.h"
#include "util/util.h"

static struct kprof_agent_shm *shm;
static int fd = -1;

static void make(size_t bytes, int prot)
{
	fd = memfd_create(KPROF_AGENT_SHM_NAME, MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, (off_t)bytes))
		abort();
	shm = mmap(NULL, KPROF_AGENT_SHM_BYTES, prot, MAP_SHARED, fd, 0);
	if (shm == MAP_FAILED)
		abort();
}

static void make_good(void)
{
	make(KPROF_AGENT_SHM_BYTES, PROT_READ | PROT_WRITE);
	shm->magic = KPROF_AGENT_MAGIC;
	shm->version = KPROF_AGENT_VERSION;
	shm->pid = (uint32_t)getpid();
	shm->nr_slots = KPROF_AGENT_SLOTS;
}

static void unmake(void)
{
	munmap(shm, KPROF_AGENT_SHM_BYTES);
	close(fd);
}

static int open_self(struct agent_memory **m)
{
	struct proc_maps *maps;
	int err = proc_maps__read(getpid(), &maps);

	if (err)
		return err;
	err = agent_memory__open(getpid(), getpid(), maps, m);
	proc_maps__free(maps);
	return err;
}

static void commands(void)
{
	struct kprof_agent_shm head;
	struct agent_memory *m;

	make_good();
	CHECK_EQ(open_self(&m), 0);
	CHECK_EQ(agent_memory__record(m, 17, 2, 0x40, KPROF_AGENT_OPT_SYNC), 0);
	CHECK_EQ(shm->command, KPROF_AGENT_RECORD);
	CHECK_EQ(shm->session, 17);
	CHECK_EQ(shm->wanted, 2);
	CHECK_EQ(shm->types, 0x40);
	CHECK_EQ(shm->options, KPROF_AGENT_OPT_SYNC);
	CHECK(shm->heartbeat_ns);
	shm->state = KPROF_AGENT_FAILED;
	shm->recording = 17;
	memset(shm->detail, 'x', sizeof(shm->detail)); /* no NUL */
	CHECK_EQ(agent_memory__head(m, &head), 0);
	CHECK_EQ(head.state, KPROF_AGENT_FAILED);
	CHECK_EQ(strlen(head.detail), sizeof(head.detail) - 1);
	CHECK_EQ(agent_memory__command(m, KPROF_AGENT_LEAVE), 0);
	CHECK_EQ(shm->command, KPROF_AGENT_LEAVE);
	agent_memory__close(m);
	unmake();
}

static void slots(void)
{
	struct kprof_agent_slot *slot, copy;
	struct agent_memory *m;

	make_good();
	CHECK_EQ(open_self(&m), 0);
	slot = (struct kprof_agent_slot *)((char *)shm + KPROF_AGENT_HEAD_BYTES) +
	       KPROF_AGENT_SLOTS - 1;
	slot->used = 24;
	slot->data[23] = 99;
	CHECK_EQ(agent_memory__slot(m, KPROF_AGENT_SLOTS - 1, &copy), 0);
	CHECK_EQ(copy.used, 24);
	CHECK_EQ(copy.data[23], 99);
	CHECK_EQ(agent_memory__slot(m, KPROF_AGENT_SLOTS, &copy), -EINVAL);
	agent_memory__close(m);
	unmake();
}

static void refused(void)
{
	struct agent_memory *m;

	CHECK_EQ(open_self(&m), -ENOENT);
	make(KPROF_AGENT_SHM_BYTES, PROT_READ); /* not one that the process may write to */
	CHECK_EQ(open_self(&m), -ENOENT);
	unmake();
	make(KPROF_AGENT_SHM_BYTES - 4096, PROT_READ | PROT_WRITE);
	CHECK_EQ(open_self(&m), -EPROTO);
	unmake();
	make(KPROF_AGENT_SHM_BYTES, PROT_READ | PROT_WRITE);
	CHECK_EQ(open_self(&m), -ENOENT); /* the agent has just mapped it */
	shm->magic = 1;
	CHECK_EQ(open_self(&m), -EPROTO);
	unmake();
	make_good();
	shm->version++;
	CHECK_EQ(open_self(&m), -EPROTO);
	CHECK(strstr(kprof_error_cause(), "release"));
	shm->version--;
	shm->nr_slots++;
	CHECK_EQ(open_self(&m), -EPROTO);
	unmake();
}

/* What a fork leaves in the child is its parent's. */
static void not_its_own(void)
{
	struct agent_memory *m;
	pid_t pid;
	int status;

	make_good();
	pid = fork();
	if (!pid)
		_exit(open_self(&m) == -ENOENT ? 0 : 1);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	unmake();
}

/* The process cuts the file short: errors, not SIGBUS. */
static void cut_short(void)
{
	struct kprof_agent_shm head;
	struct kprof_agent_slot slot;
	struct agent_memory *m;

	make_good();
	CHECK_EQ(open_self(&m), 0);
	CHECK_EQ(ftruncate(fd, 0), 0);
	CHECK(agent_memory__head(m, &head) < 0);
	CHECK_EQ(agent_memory__state(m), KPROF_AGENT_LEFT);
	CHECK(agent_memory__slot(m, 0, &slot) < 0);
	agent_memory__wait(m, 0, 1);
	agent_memory__close(m);
	unmake();
}

static void *agent(void *arg)
{
	while (__atomic_load_n(&shm->command, __ATOMIC_ACQUIRE) != KPROF_AGENT_RECORD)
		syscall(SYS_futex, &shm->command, FUTEX_WAIT, KPROF_AGENT_REST, NULL, NULL, 0);
	__atomic_store_n(&shm->state, KPROF_AGENT_RECORDING, __ATOMIC_RELEASE);
	syscall(SYS_futex, &shm->state, FUTEX_WAKE, 1, NULL, NULL, 0);
	return NULL;
}

/*
 * Each wakes the other, through two mappings of one file. Without a wake-up this would never end.
 */
static void wakes(void)
{
	uint32_t state = KPROF_AGENT_LOADED;
	struct agent_memory *m;
	pthread_t thread;

	make_good();
	CHECK_EQ(open_self(&m), 0);
	CHECK_EQ(pthread_create(&thread, NULL, agent, NULL), 0);
	CHECK_EQ(agent_memory__record(m, 1, 0, 0, 0), 0);
	while (state == KPROF_AGENT_LOADED) {
		agent_memory__wait(m, KPROF_AGENT_LOADED, 60000);
		state = agent_memory__state(m);
	}
	CHECK_EQ(state, KPROF_AGENT_RECORDING);
	pthread_join(thread, NULL);
	agent_memory__close(m);
	unmake();
}

/* Beats come by themselves, until the memory is taken off the list. */
static void pulse(void)
{
	struct agent_memory *m;
	struct agent_pulse *p;
	uint64_t first;

	make_good();
	CHECK_EQ(open_self(&m), 0);
	CHECK_EQ(agent_pulse__new(&p), 0);
	CHECK_EQ(agent_pulse__add(p, m), 0);
	while (!(first = __atomic_load_n(&shm->heartbeat_ns, __ATOMIC_ACQUIRE)))
		usleep(1000);
	while (__atomic_load_n(&shm->heartbeat_ns, __ATOMIC_ACQUIRE) == first)
		usleep(1000);
	CHECK(shm->heartbeat_ns <= clock_mono_ns());
	agent_pulse__remove(p, m);
	agent_memory__close(m);
	agent_pulse__free(p);
	unmake();
}

UNIT_MAIN(TEST(commands), TEST(slots), TEST(refused), TEST(not_its_own), TEST(cut_short),
	  TEST(wakes), TEST(pulse))
