// SPDX-License-Identifier: BSD-2-Clause
/* Records from the rings, in order of time, to threads and their spans. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "capture/agent/agent.h"
#include "capture/event/marks.h"
#include "capture/session/session.h"
#include "capture/sample/stacks.h"
#include "util/util.h"

static int on_begin(void *ctx, uint32_t thread, uint64_t time_ns, uint32_t what, uint64_t *number)
{
	struct kprof_session *s = ctx;
	struct store_record r = {.type = STORE_BEGIN,
				 .begin = {.time_ns = time_ns, .thread = thread, .what = what}};

	int err = store_writer__put(s->store, &r);

	s->events++;
	*number = store_writer__begins(s->store);
	return err;
}

static int on_end(void *ctx, const struct span_end *end)
{
	struct kprof_session *s = ctx;
	struct store_record r = {
		.type = STORE_END,
		.end = {.time_ns = end->time_ns, .thread = end->thread, .flags = end->flags},
	};
	int err = end->has_result ? calls__result(s, end) : 0;

	if (!err)
		err = agents__call_ended(s, end->number, end->time_ns);
	return err ? err : store_writer__put(s->store, &r);
}

static int on_region(void *ctx, uint32_t pid, uint64_t sp, uint64_t *lo, uint64_t *hi)
{
	struct kprof_session *s = ctx;
	struct target *t = session__target(s, pid);
	const struct proc_map *map = t ? target__map(s, t, sp) : NULL;

	if (!map)
		return -ENOENT;
	*lo = map->start;
	*hi = map->end;
	return 0;
}

int session__spans_new(struct kprof_session *s)
{
	struct spans_ops ops = {.ctx = s, .begin = on_begin, .end = on_end, .region = on_region};

	return spans__new(&ops, &s->spans);
}

int session__thread_record(struct kprof_session *s, const struct thread *th, uint64_t exit_ns)
{
	struct store_record r = {
		.type = STORE_THREAD,
		.thread =
			{
				.index = th->index,
				.pid = (uint32_t)(th->pid_tgid >> 32),
				.tid = (uint32_t)th->pid_tgid,
				.name = th->told_name ? th->told_name : th->name,
				.start_ns = th->start_ns,
				.exit_ns = exit_ns,
			},
	};

	return store_writer__put(s->store, &r);
}

struct thread *session__thread(struct kprof_session *s, struct target *t, uint64_t pid_tgid,
			       uint64_t time_ns)
{
	struct thread **cached = &s->thread_cache[hash64(pid_tgid) % NR_THREAD_CACHE];
	char comm[PROC_COMM_BYTES];
	struct thread *th;

	if (*cached && (*cached)->pid_tgid == pid_tgid)
		return *cached;
	HASH_FIND(hh, s->threads, &pid_tgid, sizeof(pid_tgid), th);
	if (th) {
		*cached = th;
		return th;
	}
	th = calloc(1, sizeof(*th));
	if (!th)
		return NULL;
	th->pid_tgid = pid_tgid;
	th->target = t;
	th->index = s->nr_threads;
	th->start_ns = time_ns;
	th->spans = spans__thread(s->spans, th->index, t->pid);
	if (!proc_thread_comm((pid_t)t->pid, (pid_t)(uint32_t)pid_tgid, comm))
		th->name = store_writer__string(s->store, comm, strlen(comm));
	if (!th->spans || session__thread_record(s, th, 0)) {
		free(th);
		return NULL;
	}
	s->nr_threads++;
	thread_names__want(t, time_ns);
	HASH_ADD(hh, s->threads, pid_tgid, sizeof(th->pid_tgid), th);
	if (!th->hh.tbl) {
		free(th);
		return NULL;
	}
	*cached = th;
	return th;
}

/*
 * Does the library itself make this call, inside another call of it? Of a span whose end was not seen (its site is
 * not learnt yet, an exception) the stack pointer alone may say that it goes on: what the program then calls from
 * deeper down would vanish in it.
 */
static bool is_folded(struct kprof_session *s, struct thread *th, const struct probe *p,
		      const struct kprof_wire_begin *b, const struct span_begin *begin)
{
	const struct proc_map *map;
	struct file_key key;
	struct file *f;

	map = target__known_map(s, th->target, b->ret_addr);
	if (!map)
		return false;
	key = (struct file_key){.inode = map->inode, .dev = map->dev};
	HASH_FIND(hh, s->files, &key, sizeof(key), f);
	/* Of a library that is part of the program it cannot be told who calls: then by spans that surely end. */
	return f && (f->by_name | f->embedded) & p->framework &&
	       spans__inside(s->spans, th->spans, begin, b->ret_addr, p->folded_into,
			     !(f->by_name & p->framework));
}

/* A call that is told as the moment when it came. */
static int moment(struct kprof_session *s, const struct thread *th, uint64_t time_ns, uint32_t what)
{
	struct store_record r = {
		.type = STORE_INSTANT,
		.instant = {.time_ns = time_ns, .thread = th->index, .what = what}};

	if (!s->started || time_ns < s->start_ns)
		return 0;
	s->events++;
	return store_writer__put(s->store, &r);
}

/* What ends the innermost range, or something that is no event at all. */
static int range_end_event(struct kprof_session *s, struct thread *th, const struct probe *p,
			   const struct kprof_wire_begin *b, const struct name_hit *hit)
{
	/* A C++ scope's object lies on the stack: only heap objects are annotations. */
	if (p->row->heap_object && spans__on_stack(s->spans, th->spans, b->h.sp, hit->value)) {
		s->sources[p->source].ignored++;
		return 0;
	}
	s->sources[p->source].range_ends++;
	return spans__range_end(s->spans, th->spans, b->h.time_ns, b->h.sp, p->source);
}

/* 1: a span was begun; 0: it was something else, or nothing. */
static int begin_event(struct kprof_session *s, struct thread *th, const struct kprof_wire_begin *b,
		       const struct name_hit *hit)
{
	const struct probe *p = &s->probes[b->h.id];
	struct name_result name;
	struct span_begin begin = {
		.time_ns = b->h.time_ns,
		.sp = b->h.sp,
		.ret_slot = b->h.sp + b->ret_offset_bytes,
		.source = p->source,
		.probe = b->h.id,
		.group = p->group,
		.own_result = b->flags & KPROF_WIRE_F_NO_RESULT,
	};
	int err;

	/* Before its return address is learnt: that would cost a site. */
	if (p->folded_into && is_folded(s, th, p, b, &begin)) {
		s->sources[p->source].ignored++;
		s->sources[p->source].folded++;
		return 0;
	}

	if (!catalog_value_matches(p->row, hit->value)) {
		s->sources[p->source].ignored++;
		return 0;
	}
	if (p->row->shape == CATALOG_RANGE_END)
		return range_end_event(s, th, p, b, hit);
	err = names__resolve(s, th->target, b->h.id, hit, &name);
	if (err)
		return err;
	if (name.verdict == NAME_IGNORE) {
		s->sources[p->source].ignored++;
		return 0;
	}
	if (name.verdict == NAME_RANGE_END)
		return range_end_event(s, th, p, b, hit);
	if (name.verdict == NAME_FILTERED)
		s->sources[p->source].ignored++;
	/* The end of a range does not say which: those that are not wanted have theirs too. */
	if (p->row->shape == CATALOG_RANGE_BEGIN)
		return spans__range_begin(s->spans, th->spans, b->h.time_ns, b->h.sp,
					  name.verdict == NAME_FILTERED ? 0 : name.what, p->source);
	if (name.verdict == NAME_FILTERED)
		return 0;
	if (p->row->shape == CATALOG_INSTANT)
		return moment(s, th, b->h.time_ns, name.what);
	begin.what = name.what;
	if (!(b->flags & KPROF_WIRE_F_NO_RET))
		begin.ret = sites__return(s, th->target, b->ret_addr, p->row->result != NULL);
	err = spans__begin(s->spans, th->spans, &begin);
	if (!err)
		err = stacks__begun(s, th, &b->h, spans__number(th->spans));
	return err ? err : 1;
}

static int args_event(struct kprof_session *s, struct thread *th,
		      const struct kprof_wire_begin_args *e)
{
	struct name_hit none = {0};
	int begun = begin_event(s, th, &e->b, &none);
	uint64_t number = begun == 1 ? spans__number(th->spans) : 0;
	int err = begun == 1 ? agents__call_begun(s, th, e->b.h.id, e, e->b.h.time_ns) : 0;

	if (err)
		return err;
	if (!number) /* begun before the window: it has no record yet */
		return begun;
	return calls__args(s, th->target, &s->probes[e->b.h.id], e, number);
}

static int site_event(struct kprof_session *s, struct thread *th, const struct kprof_wire_hdr *h)
{
	struct span_site hit = {.time_ns = h->time_ns, .sp = h->sp, .site = h->id};

	if (h->kind == KPROF_WIRE_SITE_RESULT) {
		hit.has_result = true;
		hit.result = ((const struct kprof_wire_site_result *)h)->result;
	}
	return spans__site(s->spans, th->spans, &hit);
}

static int plain_event(struct kprof_session *s, struct thread *th, const struct kprof_wire_begin *b)
{
	struct name_hit none = {0};
	int begun = begin_event(s, th, b, &none);

	if (begun == 1 && s->probes[b->h.id].group)
		return agents__call_begun(s, th, b->h.id, NULL, b->h.time_ns);
	return begun;
}

static int text_event(struct kprof_session *s, struct thread *th,
		      const struct kprof_wire_begin_text *e)
{
	struct name_hit hit = {.value = e->value, .text_addr = e->text_addr};

	if (e->text_bytes && e->text_bytes <= e->b.h.size - sizeof(*e))
		hit.text = e->text;
	return begin_event(s, th, &e->b, &hit);
}

static int end_thread(struct kprof_session *s, struct thread *th, uint64_t time_ns)
{
	struct thread **cached = &s->thread_cache[hash64(th->pid_tgid) % NR_THREAD_CACHE];
	int err = spans__thread_end(s->spans, th->spans, time_ns);

	if (!err)
		err = session__thread_record(s, th, time_ns);
	agents__thread_ended(s, th, time_ns);
	if (*cached == th)
		*cached = NULL;
	HASH_DEL(s->threads, th);
	free(th);
	return err;
}

int session__threads_end(struct kprof_session *s, const struct target *t, uint64_t time_ns)
{
	struct thread *th, *tmp;
	int first = 0;

	HASH_ITER (hh, s->threads, th, tmp) {
		int err = th->target == t ? end_thread(s, th, time_ns) : 0;

		if (!first)
			first = err;
	}
	return first;
}

int session__sweep_threads(struct kprof_session *s, uint64_t time_ns)
{
	struct thread *th, *tmp;
	int err = 0;

	HASH_ITER (hh, s->threads, th, tmp) {
		if (!err && tgkill((pid_t)th->target->pid, (pid_t)(uint32_t)th->pid_tgid, 0) &&
		    errno == ESRCH)
			err = end_thread(s, th, time_ns);
	}
	return err;
}

static int exit_event(struct kprof_session *s, struct target *t, const struct kprof_wire_task *e)
{
	struct thread *th = session__thread(s, t, e->h.pid_tgid, e->h.time_ns);

	if (!th)
		return -ENOMEM;
	th->name = store_writer__string(s->store, e->comm, strnlen(e->comm, sizeof(e->comm)));
	if (e->h.id == KPROF_WIRE_EXIT_PROCESS)
		return targets__on_exit(s, t, e->h.time_ns);
	return end_thread(s, th, e->h.time_ns);
}

static int exec_event(struct kprof_session *s, struct target *t, const struct kprof_wire_task *e)
{
	struct thread *th, *tmp;
	int err = 0;

	/* exec ends every other thread, and the stack of the one that goes on under a new name. */
	HASH_ITER (hh, s->threads, th, tmp) {
		if (err || th->target != t)
			continue;
		if (th->pid_tgid != e->h.pid_tgid) {
			err = end_thread(s, th, e->h.time_ns);
			continue;
		}
		err = spans__close_all(s->spans, th->spans, e->h.time_ns);
		th->name =
			store_writer__string(s->store, e->comm, strnlen(e->comm, sizeof(e->comm)));
		if (!err)
			err = session__thread_record(s, th, 0);
		if (!err)
			err = thread_names__drop(s, th);
	}
	return err ? err : targets__on_exec(s, t, e);
}

static int task_event(struct kprof_session *s, struct target *t, const struct kprof_wire_hdr *h)
{
	const struct kprof_wire_task *e = (const struct kprof_wire_task *)h;

	if (h->kind == KPROF_WIRE_MAPS) {
		if (!t->maps_dirty) {
			t->maps_dirty = true;
			t->dirty_ns = h->time_ns;
		}
		return 0;
	}
	if (h->kind == KPROF_WIRE_FORK)
		return e->child_pid == t->pid ? 0 : targets__on_fork(s, t, e);
	return h->kind == KPROF_WIRE_EXEC ? exec_event(s, t, e) : exit_event(s, t, e);
}

/* The source that a record counts for. */
static uint32_t source_of(const struct kprof_session *s, const struct kprof_wire_hdr *h)
{
	switch (h->kind) {
	case KPROF_WIRE_BEGIN:
	case KPROF_WIRE_BEGIN_TEXT:
	case KPROF_WIRE_BEGIN_ARGS:
		return s->probes[h->id].source;
	case KPROF_WIRE_SITE:
	case KPROF_WIRE_SITE_RESULT:
		return KPROF_WIRE_SOURCE_SITES;
	case KPROF_WIRE_MARK:
		return s->marks.source;
	case KPROF_WIRE_SAMPLE:
		return s->stacks->sample_source;
	case KPROF_WIRE_STACK:
		return s->stacks->stack_source;
	default:
		return KPROF_WIRE_SOURCE_TASKS;
	}
}

/* What a thread did: 0, 1, or a negative errno. */
static int thread_event(struct kprof_session *s, struct thread *th, const struct kprof_wire_hdr *h)
{
	switch (h->kind) {
	case KPROF_WIRE_BEGIN:
		return plain_event(s, th, (const struct kprof_wire_begin *)h);
	case KPROF_WIRE_BEGIN_TEXT:
		return text_event(s, th, (const struct kprof_wire_begin_text *)h);
	case KPROF_WIRE_BEGIN_ARGS:
		return args_event(s, th, (const struct kprof_wire_begin_args *)h);
	case KPROF_WIRE_MARK:
		return marks__event(s, th, (const struct kprof_wire_mark *)h);
	case KPROF_WIRE_SAMPLE:
	case KPROF_WIRE_STACK:
		return stacks__event(s, th, (const struct kprof_wire_stack *)h);
	default:
		return site_event(s, th, h);
	}
}

static int on_record(void *ctx, const struct kprof_wire_hdr *h)
{
	struct kprof_session *s = ctx;
	struct target *t = session__target(s, (uint32_t)(h->pid_tgid >> 32));
	uint32_t source;
	struct thread *th;
	int err;

	s->record_ns = h->time_ns;
	if (h->kind == KPROF_WIRE_BATCH)
		return agent__batch(s, t, h);
	source = source_of(s, h);
	s->sources[source].captured++;
	if (s->end_ns && h->time_ns > s->end_ns) /* while the probes are being removed */
		return 0;
	if (!t) {
		s->strangers++;
		return 0;
	}
	if (source == KPROF_WIRE_SOURCE_TASKS)
		return task_event(s, t, h);
	th = session__thread(s, t, h->pid_tgid, h->time_ns);
	if (!th)
		return -ENOMEM;
	err = thread_event(s, th, h);
	return err < 0 ? err : 0;
}

int events_drain(struct kprof_session *s, bool final)
{
	return rings__drain(s->rings, EVENTS_DRAIN_RECORDS, final, on_record, s);
}
