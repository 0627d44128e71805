// SPDX-License-Identifier: BSD-2-Clause
/* Frames and stacks: each is written to the capture once, and referred to by its id. */
#include <errno.h>
#include <stdlib.h>

#include "capture/sample/impl.h"
#include "util/error.h"
#include "util/util.h"

static uint32_t put_module(struct stacks *s, enum store_module_kind kind, const char *path,
			   const char *build_id)
{
	struct frames *f = &s->frames;
	struct store_record r = {
		.type = STORE_MODULE,
		.module =
			{
				.id = f->nr_modules + 1,
				.kind = kind,
				.path = recorder__string(s->opts.recorder, path),
				.build_id = recorder__string(s->opts.recorder, build_id),
			},
	};

	if (recorder__put(s->opts.recorder, &r))
		return 0;
	return ++f->nr_modules;
}

/* Writes a new frame to the capture. Returns its id; 0: it could not be written. */
static uint32_t add_frame(struct stacks *s, const struct known_frame *known, struct store_record *r)
{
	struct frames *f = &s->frames;

	if (vec_grow((void **)&f->known, &f->cap, f->nr, sizeof(*f->known)))
		return 0;
	r->type = STORE_FRAME;
	r->frame.id = (uint32_t)f->nr + 1;
	if (recorder__put(s->opts.recorder, r))
		return 0;
	f->known[f->nr++] = *known;
	return (uint32_t)f->nr;
}

bool frames__full(const struct frames *f)
{
	return f->nr >= f->most;
}

/* The frame that replaces all frames beyond the limits. */
static uint32_t other_frame(struct stacks *s)
{
	static const char name[] = "[too many frames]";
	const struct known_frame known = {.module = FRAME_PYTHON};
	struct store_line line = {.function = recorder__string(s->opts.recorder, name)};
	struct store_record r = {
		.frame = {.kind = STORE_FRAME_NATIVE, .nr_lines = 1, .lines = &line}};
	struct frames *f = &s->frames;

	if (!f->other_frame) {
		log_warn("samples are taken all the same, but not all of their stacks",
			 "more than %u frames or %u stacks: code that is new all the time", f->most,
			 f->most_stacks);
		f->other_frame = add_frame(s, &known, &r);
	}
	return f->other_frame;
}

/*
 * The slot for the id of a frame. The key is a well-mixed hash of 63 bits: two frames do not get
 * the same key by accident.
 */
static uint64_t *id_slot(struct frames *f, uint64_t what, uint64_t where)
{
	return map64__at(&f->ids, hash64(hash64(what) + where) >> 1);
}

/* The id of a frame that is known by an address. module: id in the capture; 0: none. */
static uint32_t addressed(struct stacks *s, const struct known_frame *known,
			  enum store_frame_kind kind, uint32_t module)
{
	struct store_record r = {
		.frame = {.kind = kind, .module = module, .address = known->address}};
	uint64_t *id = id_slot(&s->frames, (uint64_t)known->module << 32 | known->target_pid,
			       known->address);

	if (!id)
		return 0;
	if (!*id && frames__full(&s->frames))
		return other_frame(s);
	if (!*id)
		*id = add_frame(s, known, &r);
	return (uint32_t)*id;
}

uint32_t frames__native(struct stacks *s, struct module *m, uint64_t vaddr)
{
	struct known_frame known = {.address = vaddr, .module = m->number};

	if (!m->capture_id)
		m->capture_id = put_module(s, m->vdso ? STORE_MODULE_VDSO : STORE_MODULE_FILE,
					   m->path, m->build_id);
	return m->capture_id ? addressed(s, &known, STORE_FRAME_NATIVE, m->capture_id) : 0;
}

uint32_t frames__kernel(struct stacks *s, uint64_t address)
{
	struct known_frame known = {.address = address, .module = FRAME_KERNEL};
	struct frames *f = &s->frames;

	if (!f->kernel)
		f->kernel = put_module(s, STORE_MODULE_KERNEL, "[kernel]", "");
	return f->kernel ? addressed(s, &known, STORE_FRAME_KERNEL, f->kernel) : 0;
}

uint32_t frames__jit(struct stacks *s, uint32_t pid, uint64_t address)
{
	struct known_frame known = {.address = address, .module = FRAME_JIT, .target_pid = pid};
	struct frames *f = &s->frames;

	if (!f->jit)
		f->jit = put_module(s, STORE_MODULE_JIT, "[jit]", "");
	return f->jit ? addressed(s, &known, STORE_FRAME_NATIVE, f->jit) : 0;
}

uint32_t frames__unknown(struct stacks *s, uint32_t pid, uint64_t address)
{
	struct known_frame known = {.address = address, .module = FRAME_UNKNOWN, .target_pid = pid};

	return addressed(s, &known, STORE_FRAME_NATIVE, 0);
}

/* Writes where in its function a new frame is. Returns its id; 0: it could not be written. */
static uint32_t put_place(struct stacks *s, const struct python_place *at, uint32_t frame)
{
	struct store_record r = {
		.type = STORE_PYTHON_FRAME,
		.python_frame = {.frame = frame,
				 .first_line = at->first_line,
				 .instr = at->instr,
				 .flags = at->flags,
				 .loop = at->loop},
	};

	return recorder__put(s->opts.recorder, &r) ? 0 : frame;
}

uint32_t frames__python(struct stacks *s, const struct python_place *at)
{
	struct known_frame known = {.module = FRAME_PYTHON};
	struct store_line here = {.function = at->function, .file = at->file, .line = at->line};
	struct store_record r = {
		.frame = {.kind = STORE_FRAME_PYTHON, .nr_lines = 1, .lines = &here}};
	uint64_t exact =
		at->exact
			? hash64(hash64((uint64_t)at->first_line << 32 | at->instr) + at->flags + 1)
			: 0;
	uint64_t *id = id_slot(&s->frames, ((uint64_t)FRAME_PYTHON << 32 | at->line) ^ exact,
			       (uint64_t)at->function << 32 | at->file);

	if (!id)
		return 0;
	if (!*id && frames__full(&s->frames))
		return other_frame(s);
	if (!*id) {
		*id = add_frame(s, &known, &r);
		if (*id && at->exact)
			*id = put_place(s, at, (uint32_t)*id);
	}
	return (uint32_t)*id;
}

static uint32_t add_stack(struct stacks *s, uint32_t parent, uint32_t frame)
{
	struct frames *f = &s->frames;
	struct store_record r = {
		.type = STORE_STACK,
		.stack = {.id = f->nr_stacks + 1, .parent = parent, .frame = frame},
	};

	return recorder__put(s->opts.recorder, &r) ? 0 : ++f->nr_stacks;
}

static uint32_t other_stack(struct stacks *s)
{
	struct frames *f = &s->frames;
	uint32_t frame = f->other_stack ? 0 : other_frame(s);

	if (frame)
		f->other_stack = add_stack(s, 0, frame);
	return f->other_stack;
}

uint32_t frames__push(struct stacks *s, uint32_t parent, uint32_t frame)
{
	struct frames *f = &s->frames;
	uint64_t *id = map64__at(&f->stacks, (uint64_t)parent << 32 | frame);

	if (!id || !frame)
		return 0;
	if (!*id && f->nr_stacks >= f->most_stacks)
		return other_stack(s);
	if (!*id)
		*id = add_stack(s, parent, frame);
	return (uint32_t)*id;
}

void frames__free(struct frames *f)
{
	map64__free(&f->ids);
	map64__free(&f->stacks);
	free(f->known);
}
