// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the output has already. Captures of one recording have the same numbers for the same things;
 * between two recordings, threads, modules, places in code and stacks are known by what they are.
 */
#include "join/impl.h"

#include <errno.h>

#include "store/store.h"

enum { KEY_JIT = 1000, KEY_THREAD, KEY_PROCESS, KEY_OWNER };

static uint64_t mapped(const struct join *j, enum store_ref ref, uint64_t number)
{
	return kprof_copy__number(j->now->copy, ref, number);
}

static uint64_t in_session(const struct join *j, enum store_ref ref, uint64_t number)
{
	return join_mix(join_mix(join_mix(j->seed, j->now->session), ref), number);
}

struct join_thread *join_thread(struct join *j, uint64_t index)
{
	while (index < UINT32_MAX && j->threads.nr <= index)
		if (!vec_push(&j->threads, sizeof(struct join_thread)))
			return NULL;
	return index < j->threads.nr ? (struct join_thread *)j->threads.data + index : NULL;
}

static int set(struct map64 *m, uint64_t key, uint64_t value)
{
	uint64_t *at = map64__at(m, key);

	if (!at)
		return join_no_memory();
	*at = value;
	return 0;
}

/*
 * content: a hash of what it is; 0: it is known by its number alone. 1: it is new, with the next
 * number; 0: it is known.
 */
static int intern(struct join *j, enum store_ref ref, uint64_t number, uint64_t content)
{
	uint64_t key = in_session(j, ref, number), to = map64__get(&j->known, key);
	bool fresh;
	int err;

	if (!to && content)
		to = map64__get(&j->known, content);
	fresh = !to;
	if (fresh)
		to = ++j->numbers.next[ref];
	err = set(&j->known, key, to);
	if (!err && content)
		err = set(&j->known, content, to);
	if (!err)
		err = kprof_copy__map(j->now->copy, ref, number, to - 1);
	return err ? err : fresh;
}

static int module(struct join *j, const struct store_record *r)
{
	uint64_t content = 0;
	int fresh;

	if (r->module.kind != STORE_MODULE_JIT) {
		content = join_mix(j->seed, STORE_MODULE << 8 | r->module.kind);
		content = join_mix(content, mapped(j, STORE_REF_STRING, r->module.path));
		content = join_mix(content, mapped(j, STORE_REF_STRING, r->module.build_id));
	}
	fresh = intern(j, STORE_REF_MODULE, r->module.id, content);
	if (fresh >= 0 && !content &&
	    set(&j->known,
		join_mix(join_mix(j->seed, KEY_JIT), mapped(j, STORE_REF_MODULE, r->module.id)), 1))
		return -ENOMEM;
	return fresh;
}

/* How much of its name is known: 1: the function; 2: its file or line, too. */
static uint64_t rank_of(const struct store_record *r)
{
	uint64_t rank = r->frame.nr_lines != 0;

	for (uint32_t i = 0; i < r->frame.nr_lines; i++)
		if (r->frame.lines[i].line || r->frame.lines[i].file)
			rank = 2;
	return rank;
}

static int frame(struct join *j, const struct store_record *r)
{
	uint64_t in = mapped(j, STORE_REF_MODULE, r->frame.module), content = 0, id;
	uint64_t rank = rank_of(r);
	int fresh;

	if (r->frame.module && r->frame.kind != STORE_FRAME_PYTHON &&
	    !map64__get(&j->known, join_mix(join_mix(j->seed, KEY_JIT), in))) {
		content = join_mix(j->seed, STORE_FRAME << 8 | r->frame.kind);
		content = join_mix(join_mix(content, in), r->frame.address);
	}
	fresh = intern(j, STORE_REF_FRAME, r->frame.id, content);
	if (fresh < 0)
		return fresh;
	id = mapped(j, STORE_REF_FRAME, r->frame.id);
	if (!fresh && rank <= map64__get(&j->named, id))
		return 0;
	return set(&j->named, id, rank) ? -ENOMEM : 1;
}

static int stack(struct join *j, const struct store_record *r)
{
	uint64_t content = join_mix(j->seed, STORE_STACK << 8);

	content = join_mix(content,
			   r->stack.parent ? mapped(j, STORE_REF_STACK, r->stack.parent) : 0);
	content = join_mix(content, mapped(j, STORE_REF_FRAME, r->stack.frame));
	return intern(j, STORE_REF_STACK, r->stack.id, content);
}

static int description(struct join *j, const struct store_record *r)
{
	uint64_t what = join_mix(j->seed, mapped(j, STORE_REF_STRING, r->description.name)), id;
	int fresh = intern(j, STORE_REF_DESCRIPTION, r->description.id, 0);

	if (fresh <= 0)
		return fresh;
	id = mapped(j, STORE_REF_DESCRIPTION, r->description.id);
	what = join_mix(what, mapped(j, STORE_REF_STRING, r->description.overload));
	what = join_mix(what, mapped(j, STORE_REF_STRING, r->description.category));
	if (set(&j->what, id, what ? what : 1) ||
	    set(&j->source_of, id, mapped(j, STORE_REF_SOURCE, r->description.source) + 1))
		return -ENOMEM;
	return 1;
}

/* The thread that had this number when another recording ended, and may have it still. */
static int thread(struct join *j, const struct store_record *r)
{
	uint64_t content = join_mix(join_mix(j->seed, KEY_THREAD),
				    (uint64_t)r->thread.pid << 32 | r->thread.tid);
	uint64_t other = map64__get(&j->known, content), index;
	struct join_thread *t;
	int err;

	if (other && join_thread(j, other - 1)->ended &&
	    map64__get(&j->known, in_session(j, STORE_REF_THREAD, r->thread.index)) != other &&
	    set(&j->known, content, 0))
		return -ENOMEM;
	err = intern(j, STORE_REF_THREAD, r->thread.index, content);
	if (err < 0)
		return err;
	index = mapped(j, STORE_REF_THREAD, r->thread.index);
	t = join_thread(j, index);
	if (!t)
		return join_no_memory();
	if (err)
		t->start_ns = r->thread.start_ns;
	t->ended = r->thread.exit_ns != 0;
	return 1;
}

int join_define(struct join *j, const struct store_record *r)
{
	switch (r->type) {
	case STORE_MODULE:
		return module(j, r);
	case STORE_FRAME:
		return frame(j, r);
	case STORE_STACK:
		return stack(j, r);
	case STORE_DESCRIPTION:
		return description(j, r);
	default:
		return thread(j, r);
	}
}

/* ---- what is said once more ---- */

/* The process that has the PID has it since the first of them that was not said to have ended. */
static int process(struct join *j, struct store_record *r, uint64_t *content)
{
	uint64_t *alive = map64__at(&j->alive, r->process.pid);

	if (!alive)
		return join_no_memory();
	if (*alive)
		r->process.start_ns = *alive - 1;
	*alive = r->process.exit_ns ? 0 : r->process.start_ns + 1;
	*content = join_mix(join_mix(join_mix(1, r->process.comm), r->process.cmdline),
			    r->process.exit_ns);
	return 0;
}

/* What else is said of a process, which has had its PID since *start_ns. */
static uint64_t of_process(struct join *j, uint64_t about, uint32_t pid, uint64_t *start_ns)
{
	uint64_t alive = map64__get(&j->alive, pid);

	if (alive)
		*start_ns = alive - 1;
	return join_mix(join_mix(about, pid), *start_ns);
}

int join_repeats(struct join *j, struct store_record *r)
{
	uint64_t about = join_mix(j->seed, r->type), content = 1, *said;
	const struct join_thread *t;

	switch (r->type) {
	case STORE_PROCESS:
		if (process(j, r, &content))
			return -ENOMEM;
		about = join_mix(join_mix(about, r->process.pid), r->process.start_ns);
		break;
	case STORE_PROCESS_EXIT: /* comes before the PROCESS that says when */
		about = of_process(j, about, r->process_exit.pid, &r->process_exit.start_ns);
		content = join_mix(1, r->process_exit.status);
		break;
	case STORE_OWNER:
		about = of_process(j, about, r->owner.pid, &r->owner.start_ns);
		content = join_mix(join_mix(join_mix(1, r->owner.uid), r->owner.user),
				   r->owner.cgroup);
		break;
	case STORE_EXECUTABLE:
		about = of_process(j, about, r->executable.pid, &r->executable.start_ns);
		content = join_mix(1, r->executable.path);
		break;
	case STORE_THREAD:
		t = join_thread(j, r->thread.index);
		if (t)
			r->thread.start_ns = t->start_ns;
		about = join_mix(about, r->thread.index);
		content = join_mix(join_mix(1, r->thread.name), r->thread.exit_ns);
		break;
	case STORE_THREAD_NAME:
		about = join_mix(about, r->thread_name.thread);
		content = join_mix(1, r->thread_name.name);
		break;
	case STORE_NN_MODULE:
		about = join_mix(about, r->nn_module.description);
		content = join_mix(join_mix(1, r->nn_module.path), r->nn_module.outermost);
		break;
	case STORE_PYTHON_FRAME:
		about = join_mix(about, r->python_frame.frame);
		break;
	default:
		return 0;
	}
	content = content ? content : 1;
	said = map64__at(&j->said, about);
	if (!said)
		return join_no_memory();
	if (*said == content)
		return 1;
	*said = content;
	return 0;
}
