// SPDX-License-Identifier: BSD-2-Clause
/*
 * Python frames of samples: which interpreter a process runs, and the names of its code objects. A
 * code object is read when the first sample with it comes, as long as the process lives.
 */
#include <errno.h>
#include <stdlib.h>

#include "capture/sample/impl.h"
#include "symbol/python/python.h"
#include "util/error.h"
#include "util/ration.h"
#include "util/util.h"

#define MAX_CODES 65536 /* limit per process */
/* Limit for all processes: the code objects of a hostile process can share a line table of 1 MB. */
#define MAX_CODE_BYTES (256u << 20)
#define MAX_ODD 5
#define UNKNOWN_FUNCTION "[unknown Python function]"
#define LOCATE_AGAIN_NS (100 * NSEC_PER_MSEC)

/*
 * A code object of a process, by address. Its first line tells it from a later one at the same
 * address.
 */
struct known_code {
	UT_hash_handle hh;
	uint64_t address;
	uint32_t firstline;
	uint32_t function, file;  /* string ids */
	struct python_code *code; /* NULL: it could not be read */
};

struct stack_python {
	struct python_elf *elf; /* owned by its module */
	uint64_t bias;
	bool located;        /* the BPF programs know the layout and walk Python frames */
	bool failed;         /* the layout will never be known */
	unsigned int nr_odd; /* how often its memory did not look like any release */
	uint64_t next_try_ns;
	struct kprof_python layout;
	struct known_code *codes;
};

/* ---- the interpreter ---- */

/* The interpreter that a module contains; NULL: none. Each module is searched once. */
static struct python_elf *interpreter_in(struct module *m)
{
	if (!m->python_looked && m->elf && python_elf__open(m->elf, &m->python) == -ENOTSUP)
		log_warn(NULL, "no Python frames from %s: %s", m->path, kprof_error_cause());
	m->python_looked = true;
	return m->python;
}

static uint64_t code_bytes(const struct known_code *k)
{
	const struct python_code *c = k->code;

	return sizeof(*k) + (c ? sizeof(*c) + strlen(c->function) + strlen(c->file) + c->nr_lines +
					     c->nr_loops * sizeof(*c->loops)
			       : 0);
}

static void forget_code(struct stacks *s, struct stack_python *p, struct known_code *k)
{
	HASH_DEL(p->codes, k);
	s->code_bytes -= code_bytes(k);
	python_code__free(k->code);
	free(k);
}

static void forget_codes(struct stacks *s, struct stack_python *p)
{
	struct known_code *k, *tmp;

	HASH_ITER (hh, p->codes, k, tmp)
		forget_code(s, p, k);
}

/*
 * Forgets code objects: all of this process when it has too many, all of all processes when their
 * memory reaches its limit.
 */
static void make_room(struct stacks *s, struct stack_python *p)
{
	struct target *t;

	if (HASH_COUNT(p->codes) >= MAX_CODES)
		forget_codes(s, p);
	if (s->code_bytes < MAX_CODE_BYTES)
		return;
	for (t = targets__first(s->opts.targets); t; t = t->hh.next)
		if (stacks__of(s, t) && stacks__of(s, t)->python)
			forget_codes(s, stacks__of(s, t)->python);
}

const struct kprof_python *stacks__python_layout(const struct stacks *s, const struct target *t)
{
	const struct stack_target *st = s ? stacks__of(s, t) : NULL;

	return st && st->python && st->python->located ? &st->python->layout : NULL;
}

void stacks_python__forget(struct stacks *s, struct stack_target *st)
{
	if (!st->python)
		return;
	forget_codes(s, st->python);
	free(st->python);
	st->python = NULL;
}

static void locate(struct stacks *s, struct target *t, uint64_t now_ns)
{
	struct python_memory memory = {.read = target__read, .ctx = t};
	struct stack_python *p = stacks__of(s, t)->python;
	int err = python_locate(p->elf, p->bias, &memory, &p->layout);

	if (!err)
		err = unwinder__set_python(s->unwinder, t->pid, &p->layout);
	if (err)
		log_debug("process %u: Python is not found yet: %s", t->pid, kprof_error_cause());
	p->located = !err;
	/* Odd memory may also come from a process that was forking or ending while it was read. */
	p->failed = err == -ENOTSUP && ++p->nr_odd >= MAX_ODD;
	p->next_try_ns = now_ns + LOCATE_AGAIN_NS;
	if (p->failed)
		log_warn(NULL, "no Python frames of process %u: %s", t->pid, kprof_error_cause());
}

void stacks_python__look(struct stacks *s, struct target *t, uint64_t now_ns)
{
	struct stack_target *st = stacks__of(s, t);

	for (size_t i = 0; i < st->space->nr && !st->python; i++) {
		struct module *m = st->space->areas[i].module;
		struct python_elf *elf = m ? interpreter_in(m) : NULL;

		if (!elf)
			continue;
		st->python = calloc(1, sizeof(*st->python));
		if (!st->python)
			return;
		st->python->elf = elf;
		st->python->bias = st->space->mappings[i].bias;
	}
	if (st->python && !st->python->located && !st->python->failed &&
	    now_ns >= st->python->next_try_ns)
		locate(s, t, now_ns);
}

/* ---- frames ---- */

static uint32_t unknown_function(struct stacks *s)
{
	if (!s->unknown_function)
		s->unknown_function = recorder__string(s->opts.recorder, UNKNOWN_FUNCTION);
	return s->unknown_function;
}

static struct known_code *code_at(struct stacks *s, struct target *t,
				  const struct kprof_python_frame *f)
{
	struct python_memory memory = {.read = target__read, .ctx = t};
	struct stack_python *p = stacks__of(s, t)->python;
	struct known_code *k;

	HASH_FIND(hh, p->codes, &f->code, sizeof(f->code), k);
	if (k && k->firstline == f->firstline)
		return k;
	if (s->sparing && !s->spent)
		s->spent = !ration__lasts(s->opts.reading, RATION_FUNCTIONS);
	if (s->sparing && s->spent)
		return NULL;
	if (k)
		forget_code(s, p, k);
	make_room(s, p);
	k = calloc(1, sizeof(*k));
	if (!k)
		return NULL;
	k->address = f->code;
	k->firstline = f->firstline;
	if (s->sparing) /* else fewer samples are what bounds it */
		ration__open(s->opts.reading);
	/* Once the limit of frames is reached, no more names are read either. */
	if (frames__full(&s->frames) || python_code__read(&p->layout, &memory, f->code, &k->code)) {
		k->code = NULL;
		k->function = unknown_function(s);
	} else {
		k->function = recorder__string(s->opts.recorder, k->code->function);
		k->file = recorder__string(s->opts.recorder, k->code->file);
		/* A loop that is not known only makes calls seem to be others. */
		if (s->opts.with_stack)
			python_code__read_loops(&p->layout, &memory, f->code, k->code);
	}
	if (s->sparing)
		ration__close(s->opts.reading);
	HASH_ADD(hh, p->codes, address, sizeof(k->address), k);
	if (k->hh.tbl) {
		s->code_bytes += code_bytes(k);
		return k;
	}
	python_code__free(k->code);
	free(k);
	return NULL;
}

uint32_t stacks_python__frame(struct stacks *s, struct target *t,
			      const struct kprof_python_frame *f, bool of_entry)
{
	struct known_code *k = code_at(s, t, f);
	struct python_place at = {0};

	if (!k && s->sparing)
		at.function = unknown_function(s);
	if (!k)
		return at.function ? frames__python(s, &at) : 0;
	at = (struct python_place){.function = k->function, .file = k->file};
	if (!k->code)
		return frames__python(s, &at);
	at.line = python_code__line(k->code, f->instr);
	at.exact = of_entry;
	at.first_line = k->code->firstline;
	at.instr = f->instr > 0 ? (uint32_t)f->instr : 0;
	at.flags = k->code->flags & PYTHON_CODE_GENERATORS ? STORE_PYTHON_RESUMED : 0;
	at.loop = (uint32_t)(python_code__loop(k->code, f->instr) + 1);
	return frames__python(s, &at);
}

enum python_native stacks_python__native(const struct stacks *s, const struct target *t,
					 uint64_t ip)
{
	const struct address_space *space = stacks__of(s, t)->space;
	size_t i = address_space__find(space, ip);
	const struct module *m = i == SIZE_MAX ? NULL : space->areas[i].module;

	if (!m || !m->python)
		return PYTHON_NATIVE_OTHER;
	return python_elf__native(m->python, mapping_vaddr(&space->mappings[i], ip));
}
