// SPDX-License-Identifier: BSD-2-Clause
/* A target's agent, from being found until it is gone. */
#include "capture/agent/agent.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/agent/approximate.h"
#include "capture/inject/inject.h"
#include "util/error.h"
#include "util/util.h"

#define DRIVER "libcuda.so.1 libcuda.so.[0-9]*.[0-9]*"
#define LIBRARIES KPROF_AGENT_LIBRARY " memfd:" KPROF_AGENT_LIBRARY
/* From its library being mapped until its memory is: it starts a thread in between. */
#define AWAIT_NS (2 * NSEC_PER_SEC)
/* A process whose environment names an agent loads it when it first uses CUDA. */
#define DOOR_NS (5 * NSEC_PER_SEC)
#define MAX_TRIES 5
#define TRY_AGAIN_NS NSEC_PER_SEC
/* Another kprof's heartbeat that is older than this has stopped. */
#define HEARTBEAT_OVER_NS (NSEC_PER_SEC)

void agent__without(struct agent_link *link, enum kprof_agent_reason code, const char *hint,
		    const char *fmt, ...)
{
	va_list ap;

	if (link->step == LINK_WITHOUT)
		return;
	va_start(ap, fmt);
	vsnprintf(link->reason, sizeof(link->reason), fmt, ap);
	va_end(ap);
	link->step = LINK_WITHOUT;
	link->reason_code = code;
	log_warn(hint, "no device activities of process %u: %s", link->target->pid, link->reason);
}

/* ---- threads ------------------------------------------------------------------------------------ */

/* Thread ids of the target's namespace, where that is not ours. */
static void read_tids(struct agent_link *link)
{
	struct proc_thread *threads;
	uint64_t *known;
	size_t nr;

	link->tids_ns = clock_mono_ns();
	if (proc_threads((pid_t)link->target->pid, &threads, &nr))
		return;
	for (size_t i = 0; i < nr; i++) {
		pid_t inner = proc_thread_ns_tid((pid_t)link->target->pid, threads[i].tid);

		known = inner > 0 ? map64__at(&link->tids, (uint64_t)inner) : NULL;
		if (known)
			*known = (uint64_t)threads[i].tid;
	}
	free(threads);
}

static uint32_t host_tid(struct agent_link *link, uint32_t tid)
{
	uint64_t *known;

	if (link->target->ns_pid == link->target->pid)
		return tid;
	known = map64__at(&link->tids, tid);
	if (known && !*known && clock_mono_ns() - link->tids_ns > 100 * NSEC_PER_MSEC) {
		read_tids(link);
		known = map64__at(&link->tids, tid);
	}
	return known ? (uint32_t)*known : 0;
}

/* One that has ended, and had begun by then. */
static const struct ended_thread *ended_thread(const struct agents *agents, uint64_t pid_tgid,
					       uint64_t time_ns)
{
	uint32_t nr = agents->nr_ended < ARRAY_SIZE(agents->ended) ? agents->nr_ended
								   : ARRAY_SIZE(agents->ended);

	for (uint32_t i = 0; i < nr; i++) {
		const struct ended_thread *e = &agents->ended[i];

		if (e->pid_tgid == pid_tgid && e->start_ns <= time_ns && time_ns <= e->end_ns)
			return e;
	}
	return NULL;
}

static int find_thread(void *ctx, uint32_t tid, uint64_t time_ns, uint32_t *index)
{
	struct agent_link *link = ctx;
	struct kprof_session *s = link->s;
	uint64_t pid_tgid = (uint64_t)link->target->pid << 32 | host_tid(link, tid);
	const struct ended_thread *ended;
	char comm[PROC_COMM_BYTES];
	struct thread *th;

	HASH_FIND(hh, s->threads, &pid_tgid, sizeof(pid_tgid), th);
	if (th && th->start_ns <= time_ns) { /* nearly always */
		*index = th->index;
		return 0;
	}
	ended = ended_thread(&s->agents, pid_tgid, time_ns);
	if (ended) {
		*index = ended->index;
		return 0;
	}
	/* A number that the agent made up is no thread. */
	if (!th && proc_thread_comm((pid_t)link->target->pid, (pid_t)(uint32_t)pid_tgid, comm))
		return -ESRCH;
	if (!th)
		th = session__thread(s, link->target, pid_tgid, time_ns);
	if (!th)
		return -ENOMEM;
	*index = th->index;
	return 0;
}

/* ---- batches ------------------------------------------------------------------------------------ */

/* Times and correlation ids lie in the first records: no two batches that tell of something begin alike. */
static uint64_t batch_key(const uint8_t *data, size_t bytes)
{
	uint64_t key = bytes, word;

	for (size_t at = 0; at + sizeof(word) <= bytes && at < 128; at += sizeof(word)) {
		memcpy(&word, data + at, sizeof(word));
		key = hash64(key ^ word) + at;
	}
	return key;
}

int agent__batch(struct kprof_session *s, struct target *t, const struct kprof_wire_hdr *h)
{
	const struct kprof_wire_batch *e = (const struct kprof_wire_batch *)h;
	struct agent_link *link = t ? t->agent : NULL;
	size_t room = h->size - offsetof(struct kprof_wire_batch, data);

	s->sources[s->agents.batch_source].captured++;
	if (!link || !link->records || h->id != link->session) {
		if (link)
			link->strange++;
		return 0;
	}
	link->recent[link->nr_recent++ % LINK_RECENT] = batch_key(e->data, e->bytes);
	return agent_records__batch(link->records, e->data, e->bytes < room ? e->bytes : room);
}

static bool read_before(const struct agent_link *link, const struct kprof_agent_slot *slot)
{
	uint64_t key = batch_key(slot->data, slot->used);

	for (size_t i = 0; i < LINK_RECENT; i++)
		if (link->recent[i] == key)
			return true;
	return false;
}

/* Is there something of this session in the slot? */
static bool slot_holds(const struct agent_link *link, uint32_t i, struct kprof_agent_slot *slot)
{
	return !agent_memory__slot(link->memory, i, slot) && slot->session == link->session &&
	       slot->used && slot->used <= sizeof(slot->data) && !read_before(link, slot);
}

int agent__salvage(struct agent_link *link)
{
	struct kprof_agent_slot slot;
	uint64_t before;
	int err = 0;

	if (!link->memory || !link->records)
		return 0;
	before = agent_records__count(link->records)->received;
	for (uint32_t i = 0; i < KPROF_AGENT_SLOTS && !err; i++)
		if (slot_holds(link, i, &slot))
			err = agent_records__names(link->records, slot.data, slot.used);
	for (uint32_t i = 0; i < KPROF_AGENT_SLOTS && !err; i++) {
		if (!slot_holds(link, i, &slot))
			continue;
		err = agent_records__batch(link->records, slot.data, slot.used);
		link->recent[link->nr_recent++ % LINK_RECENT] = batch_key(slot.data, slot.used);
	}
	link->salvaged += agent_records__count(link->records)->received - before;
	return err;
}

/* ---- finding, asking ---------------------------------------------------------------------------- */

/* The probe on the function that agents hand over with; in each copy of the library that is mapped. */
static int probe_library(struct kprof_session *s, struct target *t, const struct proc_map *map)
{
	struct attach_point point = {.cookie = KPROF_COOKIE(s->agents.batch_source, 0, 0)};
	struct elffile_symbol sym;
	struct target_file *tf;
	char path[512];
	int err = proc_map_open_path((pid_t)t->pid, map, path, sizeof(path));

	if (!err)
		err = target__file(s, t, map, &tf);
	if (err || tf->attached)
		return err;
	if (!tf->file->elf || elffile__symbol(tf->file->elf, KPROF_AGENT_BATCH_SYMBOL, &sym))
		return -ENOEXEC;
	point.offset = elffile__offset(tf->file->elf, sym.vaddr);
	err = attacher__attach(s->attacher, ATTACH_BATCH, (pid_t)t->pid, path, &point, 1,
			       &t->links);
	tf->attached = !err;
	return err;
}

static int probe_libraries(struct kprof_session *s, struct target *t, const struct proc_maps *maps)
{
	int err = -ENOENT;

	for (size_t i = 0; i < proc_maps__nr(maps) && (!err || err == -ENOENT); i++) {
		const struct proc_map *map = proc_maps__at(maps, i);

		if (map->flags & PROC_MAP_FILE && map == proc_maps__first_of_file(maps, map) &&
		    catalog_match(LIBRARIES, proc_basename(map->path)))
			err = probe_library(s, t, map);
	}
	return err;
}

/* Another kprof listens to it. */
static bool in_use(const struct kprof_agent_shm *head, uint64_t now_ns)
{
	return head->command == KPROF_AGENT_RECORD && head->heartbeat_ns <= now_ns &&
	       now_ns - head->heartbeat_ns < HEARTBEAT_OVER_NS;
}

static int ask(struct kprof_session *s, struct agent_link *link)
{
	const struct agent_records_ops ops = {.ctx = link, .thread = find_thread};
	int err = agent_records__new(s->store, link->target->pid, &ops, &link->records);

	if (!err && !s->agents.pulse)
		err = agent_pulse__new(&s->agents.pulse);
	if (!err)
		err = agent_pulse__add(s->agents.pulse, link->memory);
	if (err)
		return err;
	agent_records__window(link->records, s->agents.opened ? s->start_ns : UINT64_MAX, 0);
	link->session = link->head.session + 1;
	if (!link->session)
		link->session = 1;
	link->step = LINK_ASKED;
	if (agent_memory__record(link->memory, link->session, s->agents.types, s->agents.options))
		agent__without(link, KPROF_AGENT_OTHER, NULL, "its agent's memory is gone");
	return 0;
}

/* It lives if its heart beats again; one that was killed just now does not. */
static int wait_for_other(struct agent_link *link)
{
	if (link->other_beat_ns && link->other_beat_ns != link->head.heartbeat_ns) {
		agent__without(link, KPROF_AGENT_BUSY, "stop it first",
			       "another kprof records them");
		return -EBUSY;
	}
	link->other_beat_ns = link->head.heartbeat_ns;
	link->step = LINK_AWAITED;
	link->await_ns = clock_mono_ns() + AWAIT_NS;
	link->wanted_ns = link->wanted_ns ? link->wanted_ns : clock_mono_ns();
	return -EBUSY;
}

/* The memory is there: listens to its agent. 0, also when that cannot be; -ENOENT: its agent has left. */
static int connect_agent(struct kprof_session *s, struct agent_link *link,
			 const struct proc_maps *maps)
{
	int err = agent_memory__head(link->memory, &link->head);

	if (!err && (link->head.state == KPROF_AGENT_LEFT || link->step == LINK_OVER))
		err = -ENOENT;
	if (!err && in_use(&link->head, clock_mono_ns()))
		err = wait_for_other(link);
	if (!err) {
		err = probe_libraries(s, link->target, maps);
		if (err)
			agent__without(link, KPROF_AGENT_OTHER, NULL,
				       "no probe could be placed in its agent: %s", strerror(-err));
	}
	if (!err)
		return ask(s, link);
	agent_memory__close(link->memory);
	link->memory = NULL;
	return err == -ENOENT ? err : 0;
}

struct seen { /* in the mappings */
	bool library, driver;
};

static struct seen look_at(const struct proc_maps *maps)
{
	struct seen seen = {0};

	for (size_t i = 0; i < proc_maps__nr(maps); i++) {
		const struct proc_map *map = proc_maps__at(maps, i);
		const char *name = proc_basename(map->path);

		if (!(map->flags & PROC_MAP_FILE) || !(map->flags & PROC_MAP_EXEC))
			continue;
		seen.library |= catalog_match(LIBRARIES, name);
		seen.driver |= catalog_match(DRIVER, name);
	}
	return seen;
}

/* CUDA that was there before a fork cannot be used behind it. */
static bool useless_driver(struct kprof_session *s, const struct target *t)
{
	const struct target *parent = t->forked ? session__target(s, t->ppid) : NULL;

	return parent && parent->maps && look_at(parent->maps).driver;
}

static void inject(struct kprof_session *s, struct agent_link *link, uint64_t now_ns)
{
	struct inject_result result = {0};
	int err;

	if (!s->agents.library) {
		agent__without(
			link, KPROF_AGENT_OTHER,
			"it is built as libkprof_agent.so beside kprof, and installed under lib/kprof/",
			"the agent's library is not there");
		return;
	}
	err = inject_agent((pid_t)link->target->pid, s->agents.library, &result);
	link->held_ns += result.held_ns;
	link->tries++;
	if (!err) {
		link->injected = true;
		log_info("injected the agent into process %u, which was held for %.1f ms",
			 link->target->pid, (double)link->held_ns / 1e6);
	}
	if (!err || err == -ETIMEDOUT) {
		link->step = LINK_AWAITED;
		link->await_ns = clock_mono_ns() + (err ? 5 : 1) * AWAIT_NS;
	} else if (err == -ESRCH) {
		link->step = LINK_NONE; /* its exit, or its new program, will be heard of */
		link->next_try_ns = now_ns + TRY_AGAIN_NS;
	} else if ((err == -EAGAIN || err == -EBUSY) && link->tries < MAX_TRIES) {
		link->next_try_ns = now_ns + TRY_AGAIN_NS;
	} else {
		agent__without(link, KPROF_AGENT_OTHER, kprof_error_hint(),
			       "the agent could not be injected: %s",
			       result.reason[0] ? result.reason : strerror(-err));
	}
	error_clear();
}

/* No agent answers: shall it get one, and now? */
static void consider(struct kprof_session *s, struct agent_link *link, struct seen seen,
		     uint64_t now_ns)
{
	bool left = link->head.state == KPROF_AGENT_LEFT && link->head.magic;

	if (link->step == LINK_WITHOUT || link->step == LINK_OVER || now_ns < link->next_try_ns)
		return;
	if (link->step == LINK_AWAITED && now_ns < link->await_ns)
		return;
	if (seen.library && link->step == LINK_NONE && !left) { /* it has just been loaded */
		link->step = LINK_AWAITED;
		link->await_ns = now_ns + AWAIT_NS;
		return;
	}
	if (!left && (!seen.driver || useless_driver(s, link->target)))
		return;
	if (!link->wanted_ns)
		link->wanted_ns = link->target->looked_ns ? link->target->looked_ns : now_ns;
	if (!seen.library && !link->tries && s->agents.library &&
	    agent_library__in_environment(link->target->pid)) {
		/* It will come by itself, at the first use, which waits for us. */
		link->by_door = true;
		link->step = LINK_AWAITED;
		link->await_ns = now_ns + DOOR_NS;
		return;
	}
	inject(s, link, now_ns);
}

static struct agent_link *new_link(struct kprof_session *s, struct target *t)
{
	struct agent_link *link = calloc(1, sizeof(*link));

	if (link) {
		link->s = s;
		link->target = t;
		t->agent = link;
	}
	return link;
}

/* Opens the memory if it is there, and asks. 0, -ENOENT: not there, or its agent has left; other errors: said. */
static int find(struct kprof_session *s, struct agent_link *link, const struct proc_maps *maps)
{
	struct target *t = link->target;
	int err = agent_memory__open((pid_t)t->pid, (pid_t)t->ns_pid, maps, &link->memory);

	if (!err)
		return connect_agent(s, link, maps);
	if (err != -ENOENT)
		agent__without(link, KPROF_AGENT_OTHER, kprof_error_hint(), "%s",
			       kprof_error_cause());
	error_clear();
	return err;
}

int agent__look(struct kprof_session *s, struct target *t)
{
	struct agent_link *link = t->agent;
	uint64_t now_ns = clock_mono_ns();
	struct proc_maps *fresh;
	struct seen seen;
	int err, tries;

	if (!s->agents.types || s->stopped || !t->maps ||
	    (link && (link->memory || link->step == LINK_WITHOUT)))
		return 0;
	seen = look_at(t->maps);
	if (!seen.library && !seen.driver)
		return 0;
	if (!link)
		link = new_link(s, t);
	if (!link)
		return -ENOMEM;
	err = find(s, link, t->maps);
	if (err != -ENOENT)
		return err == -ENOMEM ? err : 0;
	tries = link->tries;
	consider(s, link, seen, now_ns);
	if (link->tries == tries || link->step != LINK_AWAITED ||
	    proc_maps__read((pid_t)t->pid, &fresh))
		return 0;
	link->head.state = KPROF_AGENT_LOADED; /* no longer what it left with */
	err = find(s, link, fresh);
	proc_maps__free(fresh);
	return err == -ENOMEM ? err : 0;
}

int agent__gone(struct kprof_session *s, struct target *t)
{
	struct agent_link *link = t->agent;
	int err;

	if (!link)
		return 0;
	if (link->memory && !agent_memory__head(link->memory, &link->head))
		agent__failed(link); /* it may have ended before anybody looked */
	err = agent__salvage(link);
	if (!err)
		err = agent__account(s, link);
	if (s->agents.approximate)
		approximate__forget(s->agents.approximate, t->pid);
	agent__free(s, t);
	return err;
}

void agent__free(struct kprof_session *s, struct target *t)
{
	struct agent_link *link = t->agent;

	if (!link)
		return;
	if (link->memory && s->agents.pulse)
		agent_pulse__remove(s->agents.pulse, link->memory);
	agent_memory__close(link->memory);
	agent_records__free(link->records);
	map64__free(&link->tids);
	free(link);
	t->agent = NULL;
}
