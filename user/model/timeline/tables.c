// SPDX-License-Identifier: BSD-2-Clause
/*
 * The tables of a capture: processes and threads, event descriptions, the accounting. They are
 * small compared with the events, and all of them are needed before the first event.
 *
 * The reader guarantees dense ids, and references to earlier records only. This is checked again
 * here where it costs nothing, since numbers from a file index the arrays below.
 */
#include "model/timeline/impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/error.h"
#include "util/util.h"

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct meta_entry {
	char *key, *json;
	UT_hash_handle hh;
};

struct process_key {
	uint64_t start_ns;
	uint64_t pid; /* 64 bits, so that the key, which is compared as bytes, has no padding */
};

struct process_entry {
	struct tl_process p;
	char name[24];    /* of a process that has none */
	uint64_t earlier; /* number of the process that had the PID before, from 1; 0: none */
	struct process_key key;
	UT_hash_handle hh;
};

/* Widens the range of times that the tables mention; 0 means no time. */
static void mention(struct kprof_capture *t, uint64_t ns)
{
	if (!ns)
		return;
	if (!t->first_ns || ns < t->first_ns)
		t->first_ns = ns;
	if (ns > t->last_ns)
		t->last_ns = ns;
}

static int add_string(struct kprof_capture *t, uint32_t id, const char *bytes, size_t len)
{
	char **slot;

	if (id != t->strings.nr)
		return -EBADMSG;
	slot = vec_push(&t->strings, sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	*slot = strndup(bytes, len);
	return *slot ? 0 : -ENOMEM;
}

static int add_meta(struct kprof_capture *t, const char *key, const char *json)
{
	struct meta_entry *m, **slot;
	char *copy = strdup(json);

	if (!copy)
		return -ENOMEM;
	HASH_FIND_STR(t->meta_by_key, key, m);
	if (!m) {
		m = calloc(1, sizeof(*m));
		slot = m ? vec_push(&t->metas, sizeof(*slot)) : NULL;
		if (!slot) {
			free(m);
			free(copy);
			return -ENOMEM;
		}
		*slot = m; /* tl_tables__free() frees it from here on */
		m->key = strdup(key);
		if (m->key)
			HASH_ADD_KEYPTR(hh, t->meta_by_key, m->key, strlen(m->key), m);
		if (!m->key || !m->hh.tbl) {
			free(copy);
			return -ENOMEM;
		}
	}
	free(m->json);
	m->json = copy;
	return 0;
}

/* NULL: the capture has had no such process so far. */
static struct process_entry *known_process(struct kprof_capture *t, uint32_t pid, uint64_t start_ns)
{
	struct process_key key = {.start_ns = start_ns, .pid = pid};
	struct process_entry *p;

	/* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): key has no padding */
	HASH_FIND(hh, t->process_by_start, &key, sizeof(key), p);
	return p;
}

/* Adds the process, unless it is there. NULL: no memory. */
static struct process_entry *find_process(struct kprof_capture *t, uint32_t pid, uint64_t start_ns)
{
	struct process_entry *p = known_process(t, pid, start_ns), **slot;
	uint64_t *latest;

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	slot = p ? vec_push(&t->processes, sizeof(*slot)) : NULL;
	if (!slot) {
		free(p);
		return NULL;
	}
	*slot = p;
	p->key = (struct process_key){.start_ns = start_ns, .pid = pid};
	latest = map64__at(&t->process_by_pid, pid);
	if (!latest)
		return NULL;
	p->earlier = *latest;
	*latest = t->processes.nr;
	HASH_ADD(hh, t->process_by_start, key, sizeof(p->key), p);
	return p->hh.tbl ? p : NULL;
}

static int add_process(struct kprof_capture *t, const struct store_record *r)
{
	const char *comm = tl_string(t, r->process.comm);
	const char *cmdline = tl_string(t, r->process.cmdline);
	struct process_entry *p;

	if (!comm || !cmdline)
		return -EBADMSG;
	p = find_process(t, r->process.pid, r->process.start_ns);
	if (!p)
		return -ENOMEM;
	/* Readers of traces refuse an empty name. */
	snprintf(p->name, sizeof(p->name), "process %u", r->process.pid);
	p->p = (struct tl_process){
		.pid = (pid_t)r->process.pid,
		.ppid = (pid_t)r->process.ppid,
		.ns_pid = (pid_t)r->process.ns_pid,
		.comm = *comm ? comm : p->name,
		.cmdline = cmdline,
		.start_ns = r->process.start_ns,
		.exit_ns = r->process.exit_ns,
		.exit_known = p->p.exit_known,
		.exit_status = p->p.exit_status,
		.has_uid = p->p.has_uid,
		.uid = p->p.uid,
		.user = p->p.user ? p->p.user : "",
		.cgroup = p->p.cgroup ? p->p.cgroup : "",
		.exe = p->p.exe ? p->p.exe : "",
		.host = "",
	};
	mention(t, r->process.start_ns);
	mention(t, r->process.exit_ns);
	return 0;
}

static int add_owner(struct kprof_capture *t, const struct store_record *r)
{
	const char *cgroup = tl_string(t, r->owner.cgroup), *user = tl_string(t, r->owner.user);
	struct process_entry *p = known_process(t, r->owner.pid, r->owner.start_ns);

	if (!cgroup || !user)
		return -EBADMSG;
	if (!p)
		return 0;
	p->p.has_uid = true;
	p->p.uid = r->owner.uid;
	p->p.user = user;
	p->p.cgroup = cgroup;
	return 0;
}

static int add_executable(struct kprof_capture *t, const struct store_record *r)
{
	const char *path = tl_string(t, r->executable.path);
	struct process_entry *p = known_process(t, r->executable.pid, r->executable.start_ns);

	if (!path)
		return -EBADMSG;
	if (p)
		p->p.exe = path;
	return 0;
}

static int add_process_exit(struct kprof_capture *t, const struct store_record *r)
{
	struct process_entry *p = known_process(t, r->process_exit.pid, r->process_exit.start_ns);

	if (p) {
		p->p.exit_known = true;
		p->p.exit_status = r->process_exit.status;
	}
	return 0;
}

static int add_thread(struct kprof_capture *t, const struct store_record *r)
{
	const char *name = tl_string(t, r->thread.name);
	struct tl_thread *th;

	if (!name || r->thread.index > t->threads.nr)
		return -EBADMSG;
	th = tl_element(&t->threads, r->thread.index, sizeof(*th));
	if (!th)
		return -ENOMEM;
	*th = (struct tl_thread){
		.own_name = th->own_name ? th->own_name : "",
		.recorded_from_ns = th->recorded_from_ns,
		.recorded_to_ns = th->recorded_to_ns,
		.index = r->thread.index,
		.pid = (pid_t)r->thread.pid,
		.tid = (pid_t)r->thread.tid,
		.name = name,
		.start_ns = r->thread.start_ns,
		.exit_ns = r->thread.exit_ns,
	};
	mention(t, r->thread.start_ns);
	mention(t, r->thread.exit_ns);
	return 0;
}

static int add_thread_name(struct kprof_capture *t, const struct store_record *r)
{
	const char *name = tl_string(t, r->thread_name.name);

	if (!name || r->thread_name.thread >= t->threads.nr)
		return -EBADMSG;
	((struct tl_thread *)t->threads.data)[r->thread_name.thread].own_name = name;
	return 0;
}

static int add_thread_window(struct kprof_capture *t, const struct store_record *r)
{
	struct tl_thread *th;

	if (r->thread_window.thread >= t->threads.nr)
		return -EBADMSG;
	th = (struct tl_thread *)t->threads.data + r->thread_window.thread;
	th->recorded_from_ns = r->thread_window.start_ns;
	th->recorded_to_ns = r->thread_window.end_ns;
	return 0;
}

/*
 * Makes a thread's title from the kernel's name and the language's own. The kernel's name adds
 * nothing if it is the process's name, or a prefix of the language's own (CPython 3.14 passes that
 * to the kernel). Otherwise it is shown: the name of a C++ thread says more than Python's
 * "Dummy-1".
 */
static int make_title(const struct kprof_capture *t, struct tl_thread *th)
{
	const struct tl_process *p;

	th->title = *th->own_name ? th->own_name : th->name;
	if (!*th->own_name || !strncmp(th->own_name, th->name, strlen(th->name)))
		return 0;
	p = timeline__process_at(t, th->pid, th->start_ns);
	if (p && !strcmp(th->name, p->comm))
		return 0;
	th->made_title = xasprintf("%s (%s)", th->own_name, th->name);
	th->title = th->made_title;
	return th->title ? 0 : -ENOMEM;
}

static int make_titles(struct kprof_capture *t)
{
	struct tl_thread *threads = t->threads.data;
	int err = 0;

	for (size_t i = 0; i < t->threads.nr && !err; i++)
		err = make_title(t, &threads[i]);
	return err;
}

static int add_what(struct kprof_capture *t, const struct store_record *r)
{
	struct tl_description description = {
		.id = r->description.id,
		.name = tl_string(t, r->description.name),
		.overload = tl_string(t, r->description.overload),
		.category = tl_string(t, r->description.category),
		.source = r->description.source,
		.flags = r->description.flags & KPROF_EVENT_UNNAMED,
	};

	if (!description.name || !description.overload || !description.category ||
	    description.id != t->descriptions.nr + 1 || description.source >= t->sources.nr)
		return -EBADMSG;
	return tl_add(&t->descriptions, &description, sizeof(description));
}

/* Of the name, what follows the last blank: Kineto's "nn.Module: Linear_0". */
static int add_nn_module(struct kprof_capture *t, const struct store_record *r)
{
	uint32_t id = r->nn_module.description;
	struct tl_description *d;
	struct tl_nn *nn;
	const char *blank;

	if (!id || id > t->descriptions.nr)
		return -EBADMSG;
	d = (struct tl_description *)t->descriptions.data + id - 1;
	nn = d->nn ? (struct tl_nn *)(uintptr_t)d->nn : calloc(1, sizeof(*nn));
	if (!nn)
		return -ENOMEM;
	d->nn = nn;
	blank = strrchr(d->name, ' ');
	*nn = (struct tl_nn){
		.name = blank ? blank + 1 : d->name,
		.class_name = tl_string(t, r->nn_module.class_name),
		.path = tl_string(t, r->nn_module.path),
		.outermost = tl_string(t, r->nn_module.outermost),
		.number = r->nn_module.number,
	};
	return nn->class_name && nn->path && nn->outermost ? 0 : -EBADMSG;
}

static int add_gap(struct kprof_capture *t, const struct store_record *r)
{
	struct kprof_gap gap = {
		.pid = (pid_t)r->gap.pid,
		.start_mono_ns = r->gap.start_ns,
		.end_mono_ns = r->gap.end_ns,
		.what = tl_string(t, r->gap.what),
		.reason = tl_string(t, r->gap.reason),
	};

	if (!gap.what || !gap.reason)
		return -EBADMSG;
	mention(t, gap.start_mono_ns);
	mention(t, gap.end_mono_ns);
	return tl_add(&t->gaps, &gap, sizeof(gap));
}

static int add_source(struct kprof_capture *t, const struct store_record *r)
{
	const char *name = tl_string(t, r->source.name);
	uint64_t ended = r->source.ends_exact + r->source.ends_closed;
	struct kprof_source *s;

	if (!name || r->source.index > t->sources.nr)
		return -EBADMSG;
	s = tl_element(&t->sources, r->source.index, sizeof(*s));
	if (!s)
		return -ENOMEM;
	*s = (struct kprof_source){
		.name = name,
		.fired = r->source.fired,
		.captured = r->source.captured,
		.dropped = r->source.dropped,
		.missed = r->source.missed,
		.begins = r->source.begins,
		.ends_exact = r->source.ends_exact,
		.ends_closed = r->source.ends_closed,
		.ends_window = r->source.begins > ended ? r->source.begins - ended : 0,
		.orphan_ends = r->source.orphan_ends,
	};
	return 0;
}

static int add_clock(struct kprof_capture *t, const struct store_record *r)
{
	const struct clock_reading reading = {r->clock.mono_ns, r->clock.real_ns};

	mention(t, reading.mono_ns);
	return tl_add(&t->clocks, &reading, sizeof(reading));
}

static int add_record(struct kprof_capture *t, const struct store_record *r)
{
	switch (r->type) {
	case STORE_META:
		return add_meta(t, r->meta.key, r->meta.json);
	case STORE_STRING:
		return add_string(t, r->string.id, r->string.bytes, r->string.len);
	case STORE_PROCESS:
		return add_process(t, r);
	case STORE_EXECUTABLE:
		return add_executable(t, r);
	case STORE_OWNER:
		return add_owner(t, r);
	case STORE_PROCESS_EXIT:
		return add_process_exit(t, r);
	case STORE_THREAD:
		return add_thread(t, r);
	case STORE_THREAD_NAME:
		return add_thread_name(t, r);
	case STORE_THREAD_WINDOW:
		return add_thread_window(t, r);
	case STORE_DESCRIPTION:
		return add_what(t, r);
	case STORE_NN_MODULE:
		return add_nn_module(t, r);
	case STORE_GAP:
		return add_gap(t, r);
	case STORE_SOURCE:
		return add_source(t, r);
	case STORE_CLOCK:
		return add_clock(t, r);
	case STORE_FINISH:
		t->finish_ns = r->finish.time_ns;
		return 0;
	case STORE_MODULE:
	case STORE_FRAME:
	case STORE_PYTHON_FRAME:
	case STORE_STACK:
		return tl_stacks__add(t, r);
	case STORE_THREAD_TIME:
		return tl_waits__add_time(t, r);
	default:
		return 0; /* the chunk has no tables */
	}
}

static int by_mono(const void *a, const void *b)
{
	const struct clock_reading *x = a, *y = b;

	return (x->mono_ns > y->mono_ns) - (x->mono_ns < y->mono_ns);
}

int tl_tables__read(struct kprof_capture *t)
{
	struct store_record r;
	int err;

	err = add_string(t, 0, "", 0);
	if (err)
		goto out;
	store_reader__rewind(t->reader, STORE_READ_TABLES);
	while ((err = store_reader__next(t->reader, &r)) > 0) {
		err = add_record(t, &r);
		if (err)
			goto out;
	}
	if (err)
		return err; /* the reader has set the error */
	if (t->clocks.nr)
		qsort(t->clocks.data, t->clocks.nr, sizeof(struct clock_reading), by_mono);
	err = make_titles(t);
	if (!err)
		err = tl_stacks__settle(t);
	if (!err)
		kprof_capture_show_interpreter(t, false);
out:
	if (err == -ENOMEM)
		return error_set(err, NULL, "%s: out of memory while reading its tables", t->path);
	if (err)
		return error_set(err, "it is damaged, or was not written by kprof",
				 "%s: its tables contradict themselves", t->path);
	return 0;
}

void tl_tables__free(struct kprof_capture *t)
{
	struct process_entry **processes = t->processes.data;
	struct meta_entry **metas = t->metas.data;
	char **strings = t->strings.data;

	tl_stacks__free(t);
	HASH_CLEAR(hh, t->meta_by_key);
	HASH_CLEAR(hh, t->process_by_start);
	map64__free(&t->process_by_pid);
	for (size_t i = 0; i < t->metas.nr; i++) {
		free(metas[i]->key);
		free(metas[i]->json);
		free(metas[i]);
	}
	for (size_t i = 0; i < t->processes.nr; i++)
		free(processes[i]);
	for (size_t i = 0; i < t->strings.nr; i++)
		free(strings[i]);
	for (size_t i = 0; i < t->threads.nr; i++)
		free(((struct tl_thread *)t->threads.data)[i].made_title);
	for (size_t i = 0; i < t->descriptions.nr; i++)
		free((void *)(uintptr_t)((struct tl_description *)t->descriptions.data)[i].nn);
	free(t->strings.data);
	free(t->metas.data);
	free(t->processes.data);
	free(t->threads.data);
	free(t->descriptions.data);
	free(t->sources.data);
	free(t->gaps.data);
	free(t->clocks.data);
}

const char *kprof_capture_meta(const struct kprof_capture *t, const char *key)
{
	struct meta_entry *m;

	HASH_FIND_STR(t->meta_by_key, key, m);
	return m ? m->json : NULL;
}

const char *timeline__meta_key(const struct kprof_capture *t, size_t i)
{
	return i < t->metas.nr ? ((struct meta_entry **)t->metas.data)[i]->key : NULL;
}

const struct tl_process *timeline__process_of(const struct kprof_capture *t, pid_t pid)
{
	uint64_t nr = map64__get(&t->process_by_pid, (uint32_t)pid);

	return nr ? timeline__process(t, nr - 1) : NULL;
}

const struct tl_process *timeline__process_at(const struct kprof_capture *t, pid_t pid,
					      uint64_t time_ns)
{
	const struct process_entry *p, *first = NULL;
	uint64_t nr = map64__get(&t->process_by_pid, (uint32_t)pid);

	for (; nr; nr = p->earlier) {
		p = ((struct process_entry **)t->processes.data)[nr - 1];
		first = p;
		if (p->p.start_ns <= time_ns)
			break;
	}
	return first ? &first->p : NULL;
}

const struct tl_process *timeline__process(const struct kprof_capture *t, size_t i)
{
	return i < t->processes.nr ? &((struct process_entry **)t->processes.data)[i]->p : NULL;
}

int kprof_capture_process(const struct kprof_capture *t, size_t i,
			  struct kprof_capture_process *out)
{
	const struct tl_process *p = timeline__process(t, i);

	if (!p)
		return -ENOENT;
	*out = (struct kprof_capture_process){
		.pid = p->pid,
		.ppid = p->ppid,
		.name = p->comm,
		.command = p->cmdline,
		.start_mono_ns = p->start_ns,
		.exit_mono_ns = p->exit_ns,
		.exit_status = p->exit_known ? (int)p->exit_status : -1,
	};
	return 0;
}
