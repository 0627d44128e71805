// SPDX-License-Identifier: BSD-2-Clause
/* Sessions: passes kprof's commands on to the modules, and reports their state to kprof. */
#include <errno.h>
#include <string.h>

#include "gpu/agent.h"
#include "gpu/base/batch.h"
#include "gpu/base/host.h"
#include "gpu/base/module.h"
#include "gpu/base/util.h"

#define MS UINT64_C(1000000)
#define TICK_MS 100
/* After a start that failed while the runtime was starting, for as long: it will work very soon. */
#define HURRY_TICK_MS 2
#define HURRY_NS (1000 * MS)
#define OLD_NS (100 * MS) /* a slot is handed over when its first record is this old */
/* a kprof that records and has sent no heartbeat for this long is dead */
#define GONE_NS (1000 * MS)
#define GONE_REST_NS (10000 * MS) /* the same while it rests, when it need not send heartbeats */

#define MAX GPU_MODULES_MAX

enum module_state { IDLE, WAITING, RECORDING, FAILED };

static struct {
	uint32_t session; /* 0: none */
	/* the present or else the previous session, which is never started again */
	uint32_t last;
	enum module_state state[MAX];
	struct gpu_report report[MAX];
	bool started[MAX]; /* start() was called since the last release() */
	bool watching;     /* heartbeats are being checked */
	uint64_t hurry_until_ns;
	uint64_t beat, beat_seen_ns;
} c;

void control__forget(void)
{
	memset(&c, 0, sizeof(c));
	host__set_in_injection(false);
	for (size_t i = 0; gpu_modules[i]; i++) {
		if (gpu_modules[i]->forked)
			gpu_modules[i]->forked();
	}
}

void control__set_state(struct kprof_agent_shm *shm, enum kprof_agent_state state)
{
	if (__atomic_exchange_n(&shm->state, state, __ATOMIC_ACQ_REL) != state)
		gpu_futex_wake(&shm->state, true);
}

/*
 * Reports a single state for all modules. A module that failed counts more than one whose runtime
 * is not loaded.
 */
static void say(struct kprof_agent_shm *shm)
{
	const struct gpu_report *report = NULL;
	bool recording = false, failed = false;
	uint32_t runtimes = 0;

	for (size_t i = 0; gpu_modules[i]; i++) {
		if (c.state[i] == RECORDING) {
			recording = true;
			runtimes |= 1u << gpu_modules[i]->runtime;
		}
		if (c.state[i] == FAILED && !failed) {
			failed = true;
			report = &c.report[i];
		}
	}
	for (size_t i = 0; gpu_modules[i] && !report && !recording; i++) {
		if (c.state[i] == WAITING)
			report = &c.report[i];
	}
	if (report) {
		memcpy(shm->detail, report->detail, sizeof(shm->detail));
		shm->reason = report->reason;
	} else {
		shm->detail[0] = '\0';
		shm->reason = KPROF_AGENT_OK;
	}
	shm->runtimes = runtimes;
	control__set_state(shm, recording ? KPROF_AGENT_RECORDING
				: failed  ? KPROF_AGENT_FAILED
					  : KPROF_AGENT_LOADED);
}

/* Is the module to record? kprof may ask for the work of some runtimes only. */
static bool wanted(const struct kprof_agent_shm *shm, const struct gpu_module *m)
{
	/* Operators are observed where that is asked for by name. */
	if (!shm->wanted)
		return m->runtime != KPROF_AGENT_PYTORCH;
	return shm->wanted & 1u << m->runtime;
}

static void begin(struct kprof_agent_shm *shm, uint32_t session)
{
	c.session = c.last = session;
	shm->clock = KPROF_AGENT_CLOCK_MONOTONIC;
	batch__open(session);
	for (size_t i = 0; gpu_modules[i]; i++) {
		memset(&c.report[i], 0, sizeof(c.report[i]));
		c.state[i] = wanted(shm, gpu_modules[i]) ? WAITING : IDLE;
	}
	__atomic_store_n(&shm->recording, session, __ATOMIC_RELEASE);
}

static void end(struct kprof_agent_shm *shm)
{
	for (size_t i = 0; gpu_modules[i]; i++) {
		if (c.state[i] == RECORDING)
			gpu_modules[i]->stop();
		c.state[i] = IDLE;
	}
	batch__close();
	c.session = 0;
	shm->runtimes = 0;
	control__set_state(shm, KPROF_AGENT_RESTING);
}

/* The runtime has called the agent, and may not be through with its own start. */
static bool starting(void)
{
	return c.hurry_until_ns > gpu_now_ns();
}

static void try_module(struct kprof_agent_shm *shm, size_t i)
{
	struct gpu_report *r = &c.report[i];
	int err;

	memset(r, 0, sizeof(*r));
	err = gpu_modules[i]->probe(r);
	if (!err) {
		c.started[i] = true;
		err = gpu_modules[i]->start(shm->types, shm->options, r);
	}
	if (!err)
		c.state[i] = RECORDING;
	else if (err != -EAGAIN && !(err == -ENODEV && starting()))
		c.state[i] = FAILED;
}

static void record(struct kprof_agent_shm *shm)
{
	for (size_t i = 0; gpu_modules[i]; i++) {
		if (c.state[i] == WAITING)
			try_module(shm, i);
		else if (c.state[i] == RECORDING && gpu_modules[i]->flush &&
			 gpu_modules[i]->flush(&c.report[i]))
			c.state[i] = FAILED;
	}
	batch__hand_over(gpu_now_ns() - OLD_NS);
	say(shm);
}

/* Has kprof died? */
static bool gone(struct kprof_agent_shm *shm, bool recording)
{
	uint64_t beat = __atomic_load_n(&shm->heartbeat_ns, __ATOMIC_RELAXED);
	uint64_t now = gpu_now_ns();

	if (beat != c.beat || !c.watching) {
		c.beat = beat;
		c.beat_seen_ns = now;
	}
	c.watching = c.watching || recording;
	return c.watching && now - c.beat_seen_ns > (recording ? GONE_NS : GONE_REST_NS);
}

static int stand_by(struct kprof_agent_shm *shm)
{
	control__leave(shm);
	control__set_state(shm, KPROF_AGENT_LOADED);
	return -1;
}

/*
 * The kprof of a window has died, and its command stands there still: nobody would be woken by the
 * same one of the next kprof, so it is replaced. The next one writes its session's number first: a
 * new number means that its command may just have been replaced, too.
 */
static int forget_command(struct kprof_agent_shm *shm)
{
	uint32_t command =
		__atomic_exchange_n(&shm->command, KPROF_AGENT_STAND_BY, __ATOMIC_SEQ_CST);
	uint32_t stand_still = KPROF_AGENT_STAND_BY;

	/* one that has come in between is not put back over */
	if (command == KPROF_AGENT_LEAVE ||
	    __atomic_load_n(&shm->session, __ATOMIC_SEQ_CST) != c.last)
		__atomic_compare_exchange_n(&shm->command, &stand_still,
					    command == KPROF_AGENT_LEAVE ? command
									 : KPROF_AGENT_RECORD,
					    false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
	stand_by(shm);
	return 0;
}

static bool waiting(void)
{
	for (size_t i = 0; gpu_modules[i]; i++)
		if (c.state[i] == WAITING && c.started[i])
			return true;
	return false;
}

int control__step(struct kprof_agent_shm *shm)
{
	uint32_t command = __atomic_load_n(&shm->command, __ATOMIC_ACQUIRE);
	uint32_t session = __atomic_load_n(&shm->session, __ATOMIC_ACQUIRE);
	bool recording = command == KPROF_AGENT_RECORD && session &&
			 (session != c.last || session == c.session);

	if (command == KPROF_AGENT_LEAVE)
		return CONTROL_LEAVE;
	if (command == KPROF_AGENT_STAND_BY)
		return stand_by(shm);
	if (gone(shm, recording))
		return shm->options & KPROF_AGENT_OPT_WINDOW ? forget_command(shm) : CONTROL_LEAVE;
	if (c.session && (!recording || session != c.session))
		end(shm);
	/*
	 * The next kprof may ask for the same as one that has died. The word does not change then,
	 * and where it was about to be waited for, nobody is woken.
	 */
	if (!recording && command == KPROF_AGENT_RECORD)
		return TICK_MS;
	if (!recording)
		return c.watching ? 1000 : -1;
	if (!c.session)
		begin(shm, session);
	record(shm);
	return starting() && waiting() ? HURRY_TICK_MS : TICK_MS;
}

void control__leave(struct kprof_agent_shm *shm)
{
	if (c.session)
		end(shm);
	for (size_t i = 0; gpu_modules[i]; i++) {
		if (c.started[i] && gpu_modules[i]->release)
			gpu_modules[i]->release();
		c.started[i] = false;
	}
	c.watching = false;
}

void control__at_exit(struct kprof_agent_shm *shm)
{
	for (size_t i = 0; gpu_modules[i]; i++) {
		if (c.state[i] == RECORDING && gpu_modules[i]->at_exit)
			gpu_modules[i]->at_exit();
		c.state[i] = IDLE;
		c.started[i] = false; /* nothing needs to be released, since the process ends */
	}
	if (c.session)
		end(shm);
}

void control__start_here(struct kprof_agent_shm *shm, unsigned int wait_ms)
{
	uint64_t until = gpu_now_ns() + wait_ms * MS;
	uint32_t command;

	host__set_in_injection(true);
	for (;;) {
		command = __atomic_load_n(&shm->command, __ATOMIC_ACQUIRE);
		/* To leave is done by the agent's thread. */
		if (command == KPROF_AGENT_LEAVE ||
		    (command == KPROF_AGENT_RECORD && control__step(shm) != -1) ||
		    gpu_now_ns() >= until)
			break;
		gpu_futex_wait(&shm->command, command, 10, true);
	}
	host__set_in_injection(false);
	c.hurry_until_ns = gpu_now_ns() + HURRY_NS;
	if (waiting())
		gpu_futex_wake(&shm->command, true);
}
