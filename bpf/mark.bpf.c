// SPDX-License-Identifier: GPL-2.0-only
/*
 * Annotations of applications (kprof/mark.h): the record that rdi points at, and copies of its
 * texts. This program runs for all macros in all files.
 */
#include "counters.h"
#include "frames.h"
#include "modules.h"
#include "inside.h"
#include "kprof/mark.h"

/*
 * Bytes for each text of a record. A ring only takes records of constant size, so a few sizes are
 * tried: most names are short, and few records have more than two texts.
 */
#define SHORT 64
#define MIDDLE 512
#define LONG (KPROF_MARK_TEXT_MAX + 1)

/* Returns 1 when a text does not fit into `room` bytes; then nothing was submitted. */
static __always_inline int copy_mark(const struct kprof_hit *hit, const struct kprof_mark_record *r,
				     const __u32 texts, const __u32 room, bool last)
{
	const __u32 size = sizeof(struct kprof_wire_mark) + texts * room;
	struct kprof_wire_mark *e = reserve_counted(hit, size);

	if (!e)
		return 0;
	for (__u32 i = 0; i < KPROF_WIRE_MARK_TEXTS; i++) {
		long n = 0;

		e->text_addr[i] = r->text[i];
		if (i < texts && r->text[i])
			n = bpf_probe_read_user_str(e->text + i * room, room, (void *)r->text[i]);
		if (n == room && !last) {
			bpf_ringbuf_discard(e, BPF_RB_NO_WAKEUP);
			return 1;
		}
		e->text_bytes[i] = n > 0 ? n : 0;
	}
	for (int i = 0; i < KPROF_WIRE_MARK_VALUES; i++)
		e->value[i] = r->value[i];
	e->version = r->version;
	e->mark = r->kind;
	e->room = room;
	e->pad = 0;
	fill_counted(&e->h, hit, KPROF_WIRE_MARK, size);
	bpf_ringbuf_submit(e, wakeup());
	return 0;
}

/* Is the mark to be recorded? */
static __always_inline bool mark_is_within(struct pt_regs *ctx, const struct kprof_mark_record *r)
{
	if (!with_within || within_of != KPROF_WITHIN_ANNOTATIONS)
		return within_entered(PT_REGS_SP(ctx));
	if (r->kind == KPROF_MARK_RANGE_PUSH)
		return within_begins(KPROF_WITHIN_KIND_MARK, r->text[0]);
	if (r->kind == KPROF_MARK_RANGE_POP)
		return within_ends(within_thread(bpf_get_current_task_btf()),
				   KPROF_WITHIN_KIND_MARK);
	return within_here();
}

static __always_inline void mark(struct pt_regs *ctx)
{
	struct kprof_mark_record r = {};
	struct kprof_hit hit;

	if (bpf_probe_read_user(&r, sizeof(r), (void *)PT_REGS_PARM1(ctx)))
		r.kind = 0;
	if (!mark_is_within(ctx, &r) || !take_hit(ctx, &hit))
		return;
	report_returned(NULL, &hit);
	if (with_modules)
		report_modules(hit.pid_tgid, hit.sp);
	if (r.text[2] || r.text[3]) {
		copy_mark(&hit, &r, KPROF_WIRE_MARK_TEXTS, MIDDLE, true);
		return;
	}
	if (r.text[0] || r.text[1]) {
		if (copy_mark(&hit, &r, 2, SHORT, false))
			copy_mark(&hit, &r, 2, LONG, true);
		return;
	}
	copy_mark(&hit, &r, 0, SHORT, true);
}

SEC("uprobe.multi")
int kprof_mark(struct pt_regs *ctx)
{
	__u64 since_ns = cost_begin(KPROF_PROGRAM_MARK);

	mark(ctx);
	cost_end(KPROF_PROGRAM_MARK, since_ns);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
