// SPDX-License-Identifier: BSD-2-Clause
/*
 * What threads waited for. The capture has what was seen: the system call, what its file is, the
 * stack. The names that people know are made of that here, and never of what was not seen.
 */
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/runtime.h"
#include "catalog/syscalls.h"
#include "catalog/waits.h"
#include "model/timeline/impl.h"
#include "util/error.h"
#include "util/order.h"

/* How far a stack is looked at; what is further out does not tell what a wait is for. */
#define MOST_FRAMES 96

/* What a stack says of a wait in it. Kept by stack + 1 in by_stack. */
struct stack_says {
	enum wait_frame frame; /* the innermost function that is neither a lock nor of libc */
	bool page_fault, interrupt;
	const char *device_call; /* the outermost one of a device's runtime; NULL: none */
};

struct tl_waits {
	struct vec says;       /* struct stack_says */
	struct map64 by_stack; /* index + 1 */
	struct map64 by_call;  /* index + 1 of a text, by call << 32 | object */
	struct vec texts;      /* char * */
	struct vec times;      /* struct tl_thread_time, by thread */
	uint32_t *by_number;   /* all threads by PID, TID and start; NULL: not needed yet */
	bool as_samples;
};

static struct tl_waits *waits_of(struct kprof_capture *t)
{
	if (!t->waits)
		t->waits = calloc(1, sizeof(*t->waits));
	return t->waits;
}

void tl_waits__free(struct kprof_capture *t)
{
	struct tl_waits *w = t->waits;

	if (!w)
		return;
	for (size_t i = 0; i < w->texts.nr; i++)
		free(((char **)w->texts.data)[i]);
	free(w->says.data);
	free(w->texts.data);
	free(w->times.data);
	map64__free(&w->by_stack);
	map64__free(&w->by_call);
	free(w->by_number);
	free(w);
}

/* ---- times of threads ---- */

int tl_waits__add_time(struct kprof_capture *t, const struct store_record *r)
{
	struct tl_waits *w = waits_of(t);
	struct tl_thread_time *time;

	if (!w)
		return -ENOMEM;
	if (r->thread_time.thread >= t->threads.nr)
		return -EBADMSG;
	while (w->times.nr <= r->thread_time.thread)
		if (!vec_push(&w->times, sizeof(*time)))
			return -ENOMEM;
	time = (struct tl_thread_time *)w->times.data + r->thread_time.thread;
	*time = (struct tl_thread_time){
		.start_ns = r->thread_time.start_ns,
		.end_ns = r->thread_time.end_ns,
		.on_ns = r->thread_time.on_ns,
		.runnable_ns = r->thread_time.runnable_ns,
		.blocked_ns = r->thread_time.blocked_ns,
		.switches = r->thread_time.switches,
		.told = r->thread_time.told,
	};
	return 0;
}

const struct tl_thread_time *timeline__thread_time(const struct kprof_capture *t, size_t thread)
{
	const struct tl_thread_time *times = t->waits ? t->waits->times.data : NULL;

	if (!times || thread >= t->waits->times.nr || !times[thread].end_ns)
		return NULL;
	return &times[thread];
}

int kprof_capture_thread_time(const struct kprof_capture *t, size_t i,
			      struct kprof_thread_time *out)
{
	const struct tl_thread_time *time = timeline__thread_time(t, i);
	const struct tl_thread *thread;

	if (i >= t->threads.nr)
		return -ENOENT;
	if (!time)
		return 0;
	thread = (const struct tl_thread *)t->threads.data + i;
	*out = (struct kprof_thread_time){
		.pid = thread->pid,
		.tid = thread->tid,
		.name = thread->title,
		.life_ns = time->end_ns - time->start_ns,
		.on_ns = time->on_ns,
		.runnable_ns = time->runnable_ns,
		.blocked_ns = time->blocked_ns,
		.switches = time->switches,
	};
	return 1;
}

/* ---- threads by number ---- */

static int number_order(const struct tl_thread *th, pid_t pid, pid_t tid, uint64_t ns)
{
	return th->pid != pid   ? order_u64((uint32_t)th->pid, (uint32_t)pid)
	       : th->tid != tid ? order_u64((uint32_t)th->tid, (uint32_t)tid)
				: order_u64(th->start_ns, ns);
}

static int by_number(const void *pa, const void *pb, void *ctx)
{
	const struct tl_thread *threads = ctx;
	const uint32_t *a = pa, *b = pb;
	const struct tl_thread *other = &threads[*b];
	int order = number_order(&threads[*a], other->pid, other->tid, other->start_ns);

	return order ? order : order_u64(*a, *b);
}

static int number_threads(struct kprof_capture *t, struct tl_waits *w)
{
	w->by_number = calloc(t->threads.nr + 1, sizeof(*w->by_number));
	if (!w->by_number)
		return -ENOMEM;
	for (size_t i = 0; i < t->threads.nr; i++)
		w->by_number[i] = (uint32_t)i;
	qsort_r(w->by_number, t->threads.nr, sizeof(*w->by_number), by_number, t->threads.data);
	return 0;
}

/* The latest that had begun by then; else the first, of which the begin was not seen in time. */
const struct tl_thread *timeline__thread_at(struct kprof_capture *t, pid_t pid, pid_t tid,
					    uint64_t mono_ns)
{
	const struct tl_thread *threads = t->threads.data, *th;
	struct tl_waits *w = waits_of(t);
	size_t low = 0, high = t->threads.nr;

	if (!w || (!w->by_number && number_threads(t, w)))
		return NULL;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (number_order(&threads[w->by_number[mid]], pid, tid, mono_ns) <= 0)
			low = mid + 1;
		else
			high = mid;
	}
	th = low ? &threads[w->by_number[low - 1]] : NULL;
	if (th && th->pid == pid && th->tid == tid)
		return th;
	th = low < t->threads.nr ? &threads[w->by_number[low]] : NULL;
	return th && th->pid == pid && th->tid == tid ? th : NULL;
}

/* ---- reasons ---- */

bool timeline__is_libc(const struct tl_frame *f)
{
	const char *name = f->module ? path_base(f->module->path) : "";

	return !strncmp(name, "libc.so", 7) || !strncmp(name, "libc-2.", 7) ||
	       !strncmp(name, "libpthread", 10) || !strncmp(name, "ld-linux", 8);
}

/* Whether the function is a call of a device's runtime, in that runtime's own library. */
static bool is_device_call(const struct tl_frame *f, const char *function)
{
	const struct catalog_runtime *rt = f->module ? catalog_runtime_of_call(function) : NULL;

	for (const char *const *glob = rt ? rt->libraries : NULL; glob && *glob; glob++)
		if (!fnmatch(*glob, path_base(f->module->path), 0))
			return true;
	return false;
}

/* Notes what one function says. Returns false once it is known for what a lock was taken. */
static bool look_at_line(struct stack_says *says, const struct tl_frame *f, const char *function,
			 bool locking)
{
	enum wait_frame frame = locking ? catalog_wait_frame(function) : WAIT_FRAME_OTHER;

	if (is_device_call(f, function))
		says->device_call = function;
	if (frame == WAIT_FRAME_LOCK || (frame == WAIT_FRAME_OTHER && timeline__is_libc(f)))
		return locking;
	if (locking)
		says->frame = frame;
	return false;
}

static void look_at_stack(const struct kprof_capture *t, uint32_t stack, struct stack_says *says)
{
	const struct tl_stack *s;
	bool locking = true; /* no function but those of locks so far */

	for (int i = 0; i < MOST_FRAMES && (s = timeline__stack(t, stack)); i++) {
		const struct tl_frame *f = s->frame;

		stack = tl_stacks__caller(t, stack);
		if (f->kind == TL_FRAME_KERNEL) {
			says->page_fault |= catalog_wait_page_fault(f->lines[0].function);
			says->interrupt |= catalog_wait_interrupt(f->lines[0].function);
		}
		if (f->kind != TL_FRAME_NATIVE) {
			locking &= f->kind == TL_FRAME_KERNEL;
			continue;
		}
		for (uint32_t k = 0; k < f->nr_lines; k++)
			locking = look_at_line(says, f, f->lines[k].function, locking);
	}
}

static const struct stack_says *says_of(struct kprof_capture *t, uint32_t stack)
{
	static const struct stack_says nothing;
	struct tl_waits *w = waits_of(t);
	uint64_t *slot = w && stack ? map64__at(&w->by_stack, stack) : NULL;
	struct stack_says *says;

	if (!slot)
		return &nothing;
	if (!*slot) {
		says = vec_push(&w->says, sizeof(*says));
		if (!says)
			return &nothing;
		look_at_stack(t, stack, says);
		*slot = w->says.nr;
	}
	return (const struct stack_says *)w->says.data + *slot - 1;
}

/* "pipe read", "futex", "system call 999"; malloc'ed. */
static char *call_text(const struct kprof_capture *t, uint32_t call, uint32_t object)
{
	const struct wait_call *known = catalog_wait_call(call);
	const char *file = tl_string(t, object);
	const char *name = syscall_name(call);

	if (known && known->file)
		return xasprintf("%s %s", *file ? file : known->file, known->name);
	if (known)
		return strdup(known->name);
	return name ? strdup(name) : xasprintf("system call %u", call);
}

static const char *call_reason(struct kprof_capture *t, uint32_t call, uint32_t object)
{
	struct tl_waits *w = waits_of(t);
	uint64_t *slot = w ? map64__at(&w->by_call, (uint64_t)call << 32 | object) : NULL;
	char **text;

	if (!slot)
		return "system call";
	if (!*slot) {
		text = vec_push(&w->texts, sizeof(*text));
		if (!text)
			return "system call";
		*text = call_text(t, call, object);
		*slot = w->texts.nr;
	}
	text = (char **)w->texts.data + *slot - 1;
	return *text ? *text : "system call";
}

/* Whether the system call is one that waits for a futex. */
static bool is_lock(const struct store_record *r)
{
	const struct wait_call *known = r->wait.call ? catalog_wait_call(r->wait.call - 1) : NULL;

	return known && !strcmp(known->name, "futex");
}

static const char *lock_reason(const struct store_record *r, const struct stack_says *says)
{
	if (r->wait.flags & STORE_WAIT_GIL || says->frame == WAIT_FRAME_GIL)
		return "GIL";
	if (says->frame == WAIT_FRAME_ALLOCATOR)
		return "allocator lock";
	return says->frame == WAIT_FRAME_PYTHON ? "Python lock" : "futex";
}

const char *timeline__wait_reason(struct kprof_capture *t, const struct store_record *r)
{
	const struct stack_says *says = says_of(t, r->wait.stack);
	uint32_t state = r->wait.flags & STORE_WAIT_STATE;

	if (state == STORE_WAIT_PREEMPTED)
		return "run queue";
	if (state == STORE_WAIT_STOPPED)
		return "stopped";
	if (says->device_call)
		return says->device_call;
	if (is_lock(r))
		return lock_reason(r, says);
	if (!r->wait.call && says->page_fault)
		return "page fault";
	if (r->wait.flags & STORE_WAIT_IO)
		return "disk";
	return r->wait.call ? call_reason(t, r->wait.call - 1, r->wait.object) : "kernel";
}

bool timeline__woken_by_interrupt(struct kprof_capture *t, const struct store_record *r)
{
	return r->wait.flags & STORE_WAIT_INTERRUPT || says_of(t, r->wait.waker_stack)->interrupt;
}

/* ---- waits as samples ---- */

void timeline__show_waits(struct kprof_capture *t, bool show)
{
	struct tl_waits *w = waits_of(t);

	if (w)
		w->as_samples = show;
}

bool timeline__shows_waits(const struct kprof_capture *t)
{
	return t->waits && t->waits->as_samples;
}

int tl_waits__hand_out(struct kprof_capture *t, const struct store_record *wait,
		       int (*fn)(void *ctx, const struct store_record *r), void *ctx)
{
	const uint32_t walk = KPROF_SAMPLE_END | KPROF_SAMPLE_CUT;
	struct store_record r = {
		.type = STORE_SAMPLE,
		.sample = {.time_ns = wait->wait.start_ns,
			   .thread = wait->wait.thread,
			   .stack = wait->wait.stack,
			   .weight_ns = wait->wait.wake_ns - wait->wait.start_ns,
			   .flags = KPROF_SAMPLE_OFF_CPU | (wait->wait.flags & walk),
			   .reason = timeline__wait_reason(t, wait)},
	};
	int err = 0;

	if (!strcmp(r.sample.reason, "GIL"))
		r.sample.flags |= KPROF_SAMPLE_GIL_WAIT;
	if (r.sample.weight_ns)
		err = fn(ctx, &r);
	r.sample.time_ns = wait->wait.wake_ns;
	r.sample.weight_ns = wait->wait.end_ns - wait->wait.wake_ns;
	r.sample.reason = "run queue";
	return err || !r.sample.weight_ns ? err : fn(ctx, &r);
}
