// SPDX-License-Identifier: BSD-2-Clause
/*
 * A stack that the BPF programs recorded: its addresses become frames, the frames a stack, and the
 * stack belongs to a sample or a span.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/sample/impl.h"
#include "kprof/python.h"
#include "util/error.h"
#include "util/foreign.h"
#include "util/util.h"

/* A record that is being turned into a stack: where it comes from, and its parts. */
struct raw_stack {
	struct stacks *s;
	struct target *t;
	const struct kprof_wire_stack *e;
	const uint64_t *kernel, *user;
	const struct kprof_python_frame *python;
	size_t nr_kernel, nr_user, nr_python;
	uint32_t end; /* enum kprof_unwind_end */
	/* where its code is: as the process maps it, or as the record says; NULL: not known */
	struct address_space *space;
};

static void unpack(struct stacks *s, struct target *t, const struct kprof_wire_stack *e,
		   struct raw_stack *out)
{
	*out = (struct raw_stack){
		.s = s,
		.t = t,
		.e = e,
		.kernel = (const uint64_t *)(e + 1),
		.nr_kernel = e->nr_kernel,
		.nr_user = e->nr_user,
		.nr_python = e->nr_python,
		.end = e->end,
	};
	out->user = out->kernel + out->nr_kernel;
	out->python = (const struct kprof_python_frame *)(out->user + out->nr_user);
	out->space = stacks__of(s, t) ? stacks__of(s, t)->space : NULL;
}

/* ---- stacks of code that the kernel does not know yet ---- */

static int code_at(void *ctx, uint64_t ip, struct copied_code *out)
{
	const struct raw_stack *raw = ctx;
	const struct address_space *space = raw->space;
	size_t i = address_space__find(space, ip);
	const struct code_area *area = i == SIZE_MAX ? NULL : &space->areas[i];

	if (!area || !area->module || !area->module->elf || area->kind == CODE_AREA_JIT)
		return -ENOENT;
	if (module__state(area->module) == MODULE_PENDING ||
	    module__state(area->module) == MODULE_PARKED)
		modules__want(raw->s->modules, area->module);
	*out = (struct copied_code){
		.elf = area->module->elf,
		.start = space->mappings[i].start,
		.end = space->mappings[i].end,
		.bias = space->mappings[i].bias,
	};
	return 0;
}

/* Does the path lead to the very file in kprof's own root directory, too? */
static bool is_here(const struct proc_map *map)
{
	struct stat st = {0};
	int fd = open_in_root("", map->path, O_NOFOLLOW | OPEN_NO_COPY);
	bool same;

	if (fd < 0)
		return false;
	same = !fstat(fd, &st) && st.st_dev == map->dev && st.st_ino == map->inode;
	close(fd);
	return same;
}

/* A file of a process that may have ended, which the kernel has told of. */
static void meet_file(struct stacks *s, const struct proc_map *map)
{
	struct module *m;

	if (!modules__known(s->modules, map->dev, map->inode) && is_here(map) &&
	    modules__of_map(s->modules, getpid(), map, &m))
		error_clear();
}

/* A child that has not executed a program has its parent's mappings, which has its parent's … */
#define MOST_PARENTS 8

/*
 * The address space by what was told of the process. What is told of one may be that it is a copy
 * of its parent's.
 */
static struct address_space *told_space(struct raw_stack *raw)
{
	struct proc_map maps[SIDEBAND_MAPS];
	struct stacks *s = raw->s;
	pid_t pid = (pid_t)raw->t->pid, parent;
	uint64_t time_ns = raw->e->h.time_ns, fork_ns;
	size_t nr = 0;

	for (int i = 0; i < MOST_PARENTS && pid && !nr; i++) {
		const struct target *t = i ? targets__find(s->opts.targets, (uint32_t)pid) : NULL;

		if (t && stacks__of(s, t))
			return stacks__of(s, t)->space;
		nr = sideband__maps(s->sideband, pid, time_ns, maps, &parent, &fork_ns);
		pid = parent;
		time_ns = fork_ns;
	}
	for (size_t i = 0; i < nr; i++)
		meet_file(s, &maps[i]);
	address_space__close(s->told);
	s->told = NULL;
	if (!nr || address_space__of_maps(s->modules, maps, nr, &s->told))
		return NULL;
	return s->told;
}

/*
 * Where the code is that the sample met. The mappings of a process are read when its first sample
 * comes, and anew when there is code that is in none. If they cannot be read any more, or are those
 * of another program, there may be what the kernel has told.
 */
static void find_space(struct raw_stack *raw, uint64_t ip)
{
	const struct stack_target *st = stacks__of(raw->s, raw->t);
	struct stacks *s = raw->s;
	struct address_space *told;

	if (!raw->t->ended && (!st || (st->stale && clock_mono_ns() >= st->next_refresh_ns)))
		stacks__look_by(s, raw->t, RATION_SAMPLED);
	st = stacks__of(s, raw->t);
	raw->space = st ? st->space : NULL;
	if ((raw->space && address_space__find(raw->space, ip) != SIZE_MAX) || !s->sideband)
		return;
	sideband__read(s->sideband, clock_mono_ns());
	told = told_space(raw);
	if (told && (!raw->space || address_space__find(told, ip) != SIZE_MAX))
		raw->space = told;
}

/* The walk met code that was mapped since. Returns whether there is more of it now. */
static bool look_again(struct raw_stack *raw)
{
	const struct stack_target *st = stacks__of(raw->s, raw->t);
	uint64_t known;

	if (!st || raw->space != st->space || raw->t->ended ||
	    clock_mono_ns() < st->next_refresh_ns)
		return false;
	known = st->space->fingerprint;
	stacks__look_by(raw->s, raw->t, RATION_SAMPLED);
	return st->space->fingerprint != known;
}

/* Walks the copy of the stack. */
static void walk_copy(struct raw_stack *raw)
{
	struct stacks *s = raw->s;
	const uint64_t *regs = raw->user + 1;
	struct copied_stack stack = {
		.sp = regs[7],
		.bp = regs[6],
		.bx = regs[3],
		.bytes = raw->user + KPROF_WIRE_STACK_REGISTERS,
		.nr_bytes = (raw->nr_user - KPROF_WIRE_STACK_REGISTERS) * sizeof(uint64_t),
		.ctx = raw,
		.code = code_at,
	};
	uint64_t ip = raw->user[0];

	find_space(raw, ip);
	if (raw->space && (s->copies || !copied_walker__new(&s->copies))) {
		copied_walker__frames(s->copies, &stack, ip, regs, &s->copy);
		if (s->copy.end == KPROF_UNWIND_NO_MAPPING && look_again(raw))
			copied_walker__frames(s->copies, &stack, ip, regs, &s->copy);
		raw->end = s->copy.end;
	} else { /* the process has ended */
		s->copy.nr = 1;
		s->copy.ips[0] = ip | 1ull << KPROF_UNWIND_EXACT_BIT;
	}
	raw->user = s->copy.ips;
	raw->nr_user = s->copy.nr;
}

static uint32_t native_frame(const struct raw_stack *raw, uint64_t at)
{
	struct stacks *s = raw->s;
	const struct target *t = raw->t;
	const struct address_space *space = raw->space;
	size_t i = space ? address_space__find(space, at) : SIZE_MAX;
	struct stack_target *st = stacks__of(s, t);
	const struct code_area *area = i == SIZE_MAX ? NULL : &space->areas[i];

	/* a mapping that was told of has no module where the file was never met */
	if (!area || (!area->module && space == s->told))
		return frames__unknown(s, t->pid, at);
	/*
	 * JIT code may be in a file, too (memfd:…), when the process maps that twice or names it by
	 * a perf map.
	 */
	if (!area->module || area->kind == CODE_AREA_JIT) {
		if (st)
			st->jit_unnamed |= area->kind == CODE_AREA_JIT;
		s->met_jit |= area->kind == CODE_AREA_JIT;
		return frames__jit(s, t->pid, at);
	}
	area->module->used_ns = s->event_ns;
	return frames__native(s, area->module, mapping_vaddr(&space->mappings[i], at));
}

static uint64_t user_ip(const struct raw_stack *raw, size_t i)
{
	return looked_up(raw->user[i]);
}

static enum python_native native_kind(void *ctx, size_t i)
{
	const struct raw_stack *raw = ctx;

	return stacks_python__native(raw->s, raw->t, user_ip(raw, i));
}

static uint32_t push_native(const struct raw_stack *raw, uint32_t stack, size_t i)
{
	return frames__push(raw->s, stack, native_frame(raw, user_ip(raw, i)));
}

static uint32_t push_merged(const struct raw_stack *raw)
{
	struct python_merged merged[KPROF_WIRE_STACK_WORDS];
	struct python_stacks both = {
		.nr_native = raw->nr_user,
		.native = native_kind,
		.ctx = (void *)raw,
		.native_whole = raw->end == KPROF_UNWIND_WHOLE,
		.frames = raw->python,
		.nr_frames = raw->nr_python,
		.flags = raw->e->python_flags,
	};
	bool of_entry = raw->e->h.kind != KPROF_WIRE_SAMPLE && !stacks__is_of_wait(raw->e);
	uint32_t stack = 0;

	for (size_t i = python_interleave(&both, merged); i-- > 0;) {
		size_t at = merged[i].index;

		if (merged[i].python)
			stack = frames__push(
				raw->s, stack,
				stacks_python__frame(raw->s, raw->t, &raw->python[at], of_entry));
		else
			stack = push_native(raw, stack, at);
		if (!stack)
			return 0;
	}
	return stack;
}

/* Pushes all frames, the outermost first. Returns the id of the stack; 0: no memory. */
static uint32_t push_all(const struct raw_stack *raw)
{
	const struct stack_target *st = stacks__of(raw->s, raw->t);
	uint32_t stack = 0;

	if (raw->nr_python && st && st->python) {
		stack = push_merged(raw);
		if (!stack)
			return 0;
	} else {
		for (size_t i = raw->nr_user; i-- > 0;) {
			stack = push_native(raw, stack, i);
			if (!stack)
				return 0;
		}
	}
	for (size_t i = raw->nr_kernel; i-- > 0;) {
		stack = frames__push(raw->s, stack,
				     frames__kernel(raw->s, raw->kernel[i] - (i != 0)));
		if (!stack)
			return 0;
	}
	return stack;
}

/* Notes what was missing where a walk ended: mappings to read anew, or a table to build. */
static void learn_from_end(const struct raw_stack *raw)
{
	struct stack_target *st = stacks__of(raw->s, raw->t);
	size_t i;

	if (!st || !raw->nr_user)
		return;
	i = address_space__find(st->space, user_ip(raw, raw->nr_user - 1));
	if (raw->end == KPROF_UNWIND_NO_MAPPING && i == SIZE_MAX)
		st->stale = true;
	if (raw->end == KPROF_UNWIND_NOT_YET && i != SIZE_MAX && st->space->areas[i].module)
		modules__want(raw->s->modules, st->space->areas[i].module);
}

/*
 * Drops frames that were reached by unwind tables that were not those of the JIT code at that time.
 */
static void leave_out_doubtful(struct raw_stack *raw)
{
	size_t i = stacks_jit__doubtful(raw->s, raw->t, raw->user, raw->nr_user, raw->e->h.time_ns);

	if (i == raw->nr_user)
		return;
	raw->nr_user = i + 1;
	raw->end = KPROF_UNWIND_NO_RULE;
}

static uint32_t sample_flags(const struct kprof_wire_stack *e, uint32_t end)
{
	uint32_t flags =
		e->flags & KPROF_WIRE_STACK_IN_KERNEL ? KPROF_SAMPLE_KERNEL : KPROF_SAMPLE_USER;

	if (e->python_flags & KPROF_PYTHON_HOLDS_GIL)
		flags |= KPROF_SAMPLE_GIL;
	if (e->python_flags & KPROF_PYTHON_WAITS_GIL)
		flags |= KPROF_SAMPLE_GIL_WAIT;
	if (end == KPROF_UNWIND_TOO_DEEP || e->python_flags & KPROF_PYTHON_CUT)
		flags |= KPROF_SAMPLE_CUT;
	return flags | (end & 0xff) << KPROF_SAMPLE_END_SHIFT;
}

static int sample(struct stacks *s, const struct thread *th, const struct kprof_wire_stack *e,
		  const struct raw_stack *raw, uint32_t stack)
{
	struct store_record r = {
		.type = STORE_SAMPLE,
		.sample = {.time_ns = e->h.time_ns,
			   .thread = th->index,
			   .stack = stack,
			   .weight_ns = e->weight_ns,
			   .flags = sample_flags(e, raw->end)},
	};
	uint32_t end;

	s->no_gil |= (e->python_flags & KPROF_PYTHON_NO_GIL) != 0;
	if (s->opts.gil_only && !(r.sample.flags & KPROF_SAMPLE_GIL)) {
		s->without_gil++;
		return 0;
	}
	s->samples++;
	s->weight_ns += e->weight_ns;
	if (e->cost_ns)
		histogram__add(&s->cost_ns, e->cost_ns);
	end = raw->end < KPROF_UNWIND_NR_ENDS ? raw->end : 0;
	s->ends[end]++;
	stacks_runtimes__count(s, raw->space, raw->nr_user, s->met_jit, end);
	return recorder__put(s->opts.recorder, &r);
}

/* Writes the stack at a span's entry as an attribute of the span. */
static int span_stack(struct stacks *s, uint64_t span, uint32_t stack, uint32_t weight)
{
	if (s->opts.taken)
		return s->opts.taken(s->opts.ctx, span, stack);
	struct store_attr attrs[] = {
		{.key = s->stack_key, .type = STORE_ATTR_STACK, .value = stack},
		{.key = s->weight_key, .type = STORE_ATTR_U64, .value = weight},
	};

	return recorder__attrs(s->opts.recorder, span, attrs, weight > 1 ? 2 : 1);
}

/*
 * Two BPF programs record one entry, its begin and its stack, right after each other: no other
 * record of this thread is between them. Whichever comes first waits in th->entry for the other.
 */
static int entry_stack(struct stacks *s, struct thread *th, const struct kprof_wire_stack *e,
		       uint32_t stack)
{
	struct thread_entry *entry = &th->entry;
	uint32_t weight = (uint32_t)e->weight_ns;

	if (entry->span && entry->sp == e->h.sp && entry->probe == e->h.id) {
		uint64_t span = entry->span;

		*entry = (struct thread_entry){0};
		return span_stack(s, span, stack, weight);
	}
	*entry = (struct thread_entry){
		.sp = e->h.sp, .probe = e->h.id, .stack = stack, .weight = weight};
	return 0;
}

#define TOP_FRAMES 8 /* between the scheduler's function and the program that walks the stack */

/*
 * Counts the frames on top of the one that the scheduler is in, which are the same in all stacks of
 * one tracepoint.
 */
static size_t count_top(const struct raw_stack *raw, const char *scheduler)
{
	struct ksyms *k;
	char name[128];
	size_t found = 0;

	if (ksyms__new(false, &k)) {
		error_clear();
		return 0;
	}
	for (size_t i = 1; i < raw->nr_kernel && i < TOP_FRAMES && !found; i++)
		if (ksyms__name(k, raw->kernel[i] - 1, name, sizeof(name)) &&
		    !strncmp(name, scheduler, strlen(scheduler)))
			found = i;
	ksyms__free(k);
	return found;
}

static void leave_out_top(struct stacks *s, struct raw_stack *raw)
{
	bool wait = raw->e->flags & KPROF_WIRE_STACK_WAIT;
	struct wait_top *top = wait ? &s->wait_top : &s->waker_top;

	if (!top->known) {
		top->nr = count_top(raw, wait ? "__schedule" : "try_to_wake_up");
		top->known = true;
	}
	if (top->nr < raw->nr_kernel) {
		raw->kernel += top->nr;
		raw->nr_kernel -= top->nr;
	}
}

/* Keeps the stack of a wait until the wait's own record comes, which only long ones have. */
static int wait_stack(struct thread *th, const struct kprof_wire_stack *e,
		      const struct raw_stack *raw, uint32_t stack)
{
	struct thread_stack *to =
		e->flags & KPROF_WIRE_STACK_WAIT ? &th->wait_stack : &th->waker_stack;

	*to = (struct thread_stack){e->h.time_ns, stack, sample_flags(e, raw->end)};
	return 0;
}

int stacks__begun(struct stacks *s, struct thread *th, const struct kprof_wire_hdr *h,
		  uint64_t span)
{
	struct thread_entry *entry = &th->entry;

	if (!s || !s->opts.with_stack)
		return 0;
	if (entry->stack && entry->sp == h->sp && entry->probe == h->id) {
		struct thread_entry known = *entry;

		*entry = (struct thread_entry){0};
		return span ? span_stack(s, span, known.stack, known.weight) : 0;
	}
	*entry = (struct thread_entry){.sp = h->sp, .probe = h->id, .span = span};
	return 0;
}

int stacks__event(struct stacks *s, struct thread *th, const struct kprof_wire_stack *e)
{
	struct target *waker;
	struct raw_stack raw;
	uint32_t stack;

	s->event_ns = e->h.time_ns;
	s->met_jit = false;
	s->sparing = stacks__is_of_wait(e);
	s->spent = false;
	unpack(s, th->target, e, &raw);
	if (e->flags & KPROF_WIRE_STACK_COPIED)
		walk_copy(&raw);
	if (stacks__is_of_wait(e) && e->flags & KPROF_WIRE_STACK_WAKER) {
		/* it may be of another process, or of none that is recorded any more */
		waker = targets__find(s->opts.targets, (uint32_t)(e->weight_ns >> 32));
		if (waker)
			raw.t = waker;
		else
			raw.nr_user = raw.nr_python = 0;
	}
	learn_from_end(&raw);
	leave_out_doubtful(&raw);
	if (stacks__is_of_wait(e))
		leave_out_top(s, &raw);
	if (!recorder__in_window(s->opts.recorder, e->h.time_ns))
		return 0;
	stack = push_all(&raw);
	if (!stack && raw.nr_kernel + raw.nr_user + raw.nr_python)
		return -ENOMEM;
	if (e->h.kind == KPROF_WIRE_SAMPLE)
		return sample(s, th, e, &raw, stack);
	return stacks__is_of_wait(e) ? wait_stack(th, e, &raw, stack)
				     : entry_stack(s, th, e, stack);
}
