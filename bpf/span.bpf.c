// SPDX-License-Identifier: GPL-2.0-only
/*
 * The generic programs that run at the probes on functions: at the entry, where a span begins, and
 * at the return sites, where the call has returned (ordinary probes on the instruction after the
 * call). No return address is overwritten.
 *
 * User space supplies the table of what is probed and what is read there: it comes from
 * user/catalog, through user/capture.
 */
#include "boxed.h"
#include "counters.h"
#include "frames.h"
#include "inputs.h"
#include "modules.h"
#include "ranges.h"
#include "registers.h"
#include "sequence.h"

struct kprof_rings rings SEC(".maps");
struct kprof_counts counts SEC(".maps");
struct kprof_targets targets SEC(".maps");
struct kprof_foreign foreign SEC(".maps");
struct kprof_costs costs SEC(".maps");
const volatile __u32 nr_rings = 1;
const volatile bool all_processes = false;
const volatile bool patient = false;
const volatile bool joining = false;
const volatile bool with_modules = false;
const volatile bool books = false; /* of memory: see attacher_opts */
/* set by user space */
__u32 modules_source, modules_asked;
struct kprof_modules_processes modules_processes SEC(".maps");
struct kprof_modules_threads modules_threads SEC(".maps");
struct kprof_modules_scratches modules_scratches SEC(".maps");
const volatile bool with_within = false;
const volatile __u32 within_of = KPROF_WITHIN_ANNOTATIONS;
const volatile char within_pattern[KPROF_WITHIN_BYTES] = {0};
__u32 within_rounds[KPROF_WITHIN_ROUNDS];
__u64 within_met, within_unread, within_unknown;
struct within_threads_map within_threads SEC(".maps");
struct within_scratches_map within_scratches SEC(".maps");
struct within_pythons_map within_pythons SEC(".maps");
struct within_others_map within_others SEC(".maps");
struct within_walks_map within_walks SEC(".maps");
const volatile __u32 nr_tids = 0;
const volatile __u32 tids[KPROF_WIRE_MAX_TIDS] = {0};
bool stopped;
__u32 shed;

struct counted_map counted_threads SEC(".maps");
struct counter_events_map counter_events SEC(".maps");
const volatile __u32 nr_counters = 0;
const volatile __u32 counter_cpus = 0;
const volatile __u8 counter_sources[KPROF_WIRE_MAX_COUNTERS] = {};

/*
 * Return addresses at which the code only returns in its turn (the epilogue of a wrapper). The
 * value is the distance in bytes from the stack pointer right after the return up to the next
 * return address, and KPROF_WIRE_FOLLOW_NO_RESULT.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, KPROF_WIRE_MAX_FOLLOW);
	__type(key, struct kprof_wire_follow_key);
	__type(value, __u32);
} follow SEC(".maps");

/* Filled by user space: a clear bit means that no such address is in the map above. */
__u64 follow_bits[KPROF_WIRE_FOLLOW_BITS / 64];

struct kprof_frames_map frames SEC(".maps");

/* Filled by user space (KPROF_WIRE_SITED_*). */
__u64 sited[KPROF_WIRE_SITED_WORDS];

static __always_inline bool is_sited(__u32 space, __u64 ra)
{
	__u64 hash = KPROF_WIRE_SITED_HASH(space, ra), mask = KPROF_WIRE_SITED_MASK(hash);

	return (sited[KPROF_WIRE_SITED_WORD(hash)] & mask) == mask;
}

/* Keeps track of a call whose end will not be seen. */
static __noinline int keep_track(__u64 slot, __u64 ret_addr)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct kprof_frames *f;
	__u32 nr;

	f = bpf_task_storage_get(&frames, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!f)
		return 0;
	nr = f->nr;
	/* the same call again, or a tail call: one return ends both */
	if (nr && nr <= KPROF_FRAMES && f->at[nr - 1].slot == slot &&
	    f->at[nr - 1].ret_addr == ret_addr)
		nr--;
	if (nr >= KPROF_FRAMES)
		nr = 0; /* calls on stacks that are gone: none may stay for good */
	f->at[nr].slot = slot;
	f->at[nr].ret_addr = ret_addr;
	f->at[nr].copies_left = KPROF_FRAME_COPIES;
	f->nr = nr + 1;
	return 0;
}

static __always_inline bool may_follow(__u64 ra)
{
	__u32 bit = KPROF_WIRE_FOLLOW_BIT(ra);

	return follow_bits[bit / 64 & (KPROF_WIRE_FOLLOW_BITS / 64 - 1)] & 1ull << (bit & 63);
}

__u32 sleeping;

/* Fills in the sequence number, and the return address: callers that only return are skipped. */
static __always_inline void fill_begin(struct kprof_wire_begin *e, const struct kprof_hit *hit,
				       const struct sequence *sequence)
{
	struct kprof_wire_follow_key key = {.space = hit->space};
	__u64 slot = hit->sp;
	__u64 ra = 0, first;

	e->flags = sequence->flags;
	e->sequence = sequence->number;
	e->thread = sequence->thread;
	e->pad = 0;
	if (bpf_probe_read_user(&ra, sizeof(ra), (void *)slot))
		e->flags |= KPROF_WIRE_F_NO_RET;
	first = ra;
	for (int i = 0; i < KPROF_WIRE_FOLLOW_DEPTH && may_follow(ra); i++) {
		__u32 *bytes;

		key.ret_addr = ra;
		bytes = bpf_map_lookup_elem(&follow, &key);
		if (!bytes)
			break;
		if (*bytes & KPROF_WIRE_FOLLOW_NO_RESULT)
			e->flags |= KPROF_WIRE_F_NO_RESULT;
		slot += 8 + (*bytes & ~KPROF_WIRE_FOLLOW_NO_RESULT);
		if (bpf_probe_read_user(&ra, sizeof(ra), (void *)slot)) {
			e->flags |= KPROF_WIRE_F_NO_RET;
			break;
		}
	}
	e->ret_addr = ra;
	e->ret_offset_bytes = slot - hit->sp;
	if (hit->cookie & KPROF_COOKIE_SPAN && !(e->flags & KPROF_WIRE_F_NO_RET) &&
	    !is_sited(key.space, ra)) {
		e->flags |= KPROF_WIRE_F_NO_SITE;
		keep_track(slot, ra);
	}
	if (within_of == KPROF_WITHIN_SYMBOL && first &&
	    KPROF_COOKIE_WITHIN_ROLE(hit->cookie) == KPROF_WITHIN_FUNCTION)
		within_function(hit->sp, first,
				!(e->flags & (KPROF_WIRE_F_NO_SITE | KPROF_WIRE_F_NO_RET)));
	within_returns_at(slot);
}

static __always_inline void sequence_of(struct pt_regs *ctx, const struct kprof_hit *hit,
					struct sequence *out)
{
	__u8 reg = KPROF_COOKIE_SEQUENCE_ARG(hit->cookie);

	read_sequence(hit, KPROF_COOKIE_SEQUENCE_RULE(hit->cookie), argument(ctx, reg, hit->sp),
		      argument(ctx, reg + 1, hit->sp), out);
}

static __always_inline void report_modules_of(const struct kprof_hit *hit)
{
	if (with_modules && hit->cookie & KPROF_COOKIE_MODULES)
		report_modules(hit->pid_tgid, hit->sp);
}

static __always_inline void begin(struct pt_regs *ctx)
{
	struct kprof_wire_begin *e;
	struct sequence sequence;
	struct kprof_hit hit;

	if (!take_hit(ctx, &hit))
		return;
	report_returned(ctx, &hit);
	report_modules_of(&hit);
	sequence_of(ctx, &hit, &sequence);
	e = reserve_counted(&hit, sizeof(*e));
	if (!e)
		return;
	fill_counted(&e->h, &hit, KPROF_WIRE_BEGIN, sizeof(*e));
	fill_begin(e, &hit, &sequence);
	bpf_ringbuf_submit(e, wakeup());
}

SEC("uprobe.multi")
int kprof_begin(struct pt_regs *ctx)
{
	__u64 since_ns = cost_begin(KPROF_PROGRAM_BEGIN);

	if (!(shed & KPROF_WIRE_SHED_HITS) && within(ctx, false))
		begin(ctx);
	cost_end(KPROF_PROGRAM_BEGIN, since_ns);
	return 0;
}

/* One argument: a register, or memory near it. Returns whether it could not be read. */
static __always_inline bool read_arg(struct pt_regs *ctx, const struct kprof_arg *arg, __u64 sp,
				     __u64 *out)
{
	__u64 v = argument(ctx, arg->reg, sp) + arg->off;
	bool fault = false;

	for (__u32 i = 1; i <= KPROF_ARG_MAX_DEREF && i <= arg->deref && !fault; i++) {
		if (i > 1 && i == arg->deref)
			v += arg->last_off;
		fault = bpf_probe_read_user(&v, sizeof(v), (void *)v);
	}
	*out = fault ? 0 : v;
	return fault;
}

/* The arguments of a hit with a text; the first that can't be read makes all of them 0. */
static __always_inline void
read_text_args(struct pt_regs *ctx, const struct kprof_wire_probe *probe, __u64 sp, __u64 *args)
{
	bool fault = false;

	for (int i = 0; i < KPROF_WIRE_TEXT_ARGS; i++) {
		args[i] = 0; /* the ring's memory is not cleared */
		if (!fault && probe->args[i].reg)
			fault = read_arg(ctx, &probe->args[i], sp, &args[i]);
	}
}

/*
 * Reads the text into a record of `room` bytes, and arguments behind it if with_args. Returns 1
 * when the text does not fit there (nothing was submitted), else 0.
 */
static __always_inline int emit_text(struct pt_regs *ctx, const struct kprof_wire_probe *probe,
				     const struct kprof_hit *hit, __u64 value, __u64 text_addr,
				     const struct sequence *sequence, const __u32 room, bool last,
				     const bool with_args)
{
	const __u32 nr_args = with_args ? KPROF_WIRE_TEXT_ARGS : 0;
	const __u32 bytes = sizeof(struct kprof_wire_begin_text) + room + nr_args * 8;
	struct kprof_wire_begin_text *e;
	long n = 0;

	e = reserve_counted(hit, bytes);
	if (!e)
		return 0;
	if (text_addr)
		n = bpf_probe_read_user_str(e->text, room, (void *)text_addr);
	if (n == room && !last) {
		bpf_ringbuf_discard(e, BPF_RB_NO_WAKEUP);
		return 1;
	}
	fill_counted(&e->b.h, hit, KPROF_WIRE_BEGIN_TEXT, bytes);
	fill_begin(&e->b, hit, sequence);
	if (n < 0)
		e->b.flags |= KPROF_WIRE_F_TEXT_FAULT;
	if (n == room)
		e->b.flags |= KPROF_WIRE_F_TEXT_CUT;
	e->value = value;
	e->text_addr = text_addr;
	e->text_bytes = n > 0 ? n : 0;
	e->nr_args = nr_args;
	if (with_args)
		read_text_args(ctx, probe, hit->sp, (__u64 *)(e->text + room));
	bpf_ringbuf_submit(e, wakeup());
	return 0;
}

static __always_inline void emit(struct pt_regs *ctx, const struct kprof_wire_probe *probe,
				 const struct kprof_hit *hit, __u64 value, __u64 text_addr,
				 const struct sequence *sequence, const bool with_args)
{
	if (emit_text(ctx, probe, hit, value, text_addr, sequence, KPROF_WIRE_TEXT_SHORT, false,
		      with_args))
		emit_text(ctx, probe, hit, value, text_addr, sequence, KPROF_WIRE_TEXT_LONG, true,
			  with_args);
}

static __always_inline void begin_text(struct pt_regs *ctx)
{
	struct kprof_wire_probe *probe;
	__u64 value, text_addr;
	struct sequence sequence;
	struct kprof_hit hit;
	__u32 index;

	if (!take_hit(ctx, &hit))
		return;
	report_returned(ctx, &hit);
	report_modules_of(&hit);
	index = KPROF_COOKIE_INDEX(hit.cookie);
	probe = bpf_map_lookup_elem(&probes, &index);
	if (!probe)
		return;
	find_text(ctx, probe, hit.sp, &value, &text_addr);
	sequence_of(ctx, &hit, &sequence);
	if (probe->args[0].reg)
		emit(ctx, probe, &hit, value, text_addr, &sequence, true);
	else
		emit(ctx, probe, &hit, value, text_addr, &sequence, false);
}

SEC("uprobe.multi")
int kprof_begin_text(struct pt_regs *ctx)
{
	__u64 since_ns = cost_begin(KPROF_PROGRAM_BEGIN_TEXT);

	if (!(shed & KPROF_WIRE_SHED_HITS) && within(ctx, true))
		begin_text(ctx);
	cost_end(KPROF_PROGRAM_BEGIN_TEXT, since_ns);
	return 0;
}

/* The call's arguments, each from a register or from memory near one. */
static __always_inline void read_args(struct pt_regs *ctx, struct kprof_wire_begin_args *e,
				      const struct kprof_wire_probe *probe, __u64 sp)
{
	e->nr = 0;
	e->faults = 0;
	for (int i = 0; i < KPROF_WIRE_MAX_ARGS; i++) {
		const struct kprof_arg *arg = &probe->args[i];
		__u64 v;

		if (!arg->reg) {
			e->args[i] = 0; /* the ring's memory is not cleared */
			continue;
		}
		if (read_arg(ctx, arg, sp, &v))
			e->faults |= 1u << i;
		e->args[i] = v;
		e->nr = i + 1;
	}
}

/* Of memory's allocators each hit counts, for as long as books are kept. */
static __always_inline bool args_are_shed(struct pt_regs *ctx)
{
	return shed & KPROF_WIRE_SHED_HITS &&
	       !(books && !(bpf_get_attach_cookie(ctx) & KPROF_COOKIE_MODULES));
}

static __always_inline void begin_args(struct pt_regs *ctx)
{
	struct kprof_wire_begin_args *e;
	struct kprof_wire_probe *probe;
	struct kprof_hit hit;
	__u32 index;

	if (!take_hit(ctx, &hit))
		return;
	report_returned(ctx, &hit);
	report_modules_of(&hit);
	index = KPROF_COOKIE_INDEX(hit.cookie);
	probe = bpf_map_lookup_elem(&probes, &index);
	if (!probe)
		return;
	e = reserve_counted(&hit, sizeof(*e));
	if (!e)
		return;
	fill_counted(&e->b.h, &hit, KPROF_WIRE_BEGIN_ARGS, sizeof(*e));
	fill_begin(&e->b, &hit, &(struct sequence){0});
	read_args(ctx, e, probe, hit.sp);
	bpf_ringbuf_submit(e, wakeup());
}

SEC("uprobe.multi")
int kprof_begin_args(struct pt_regs *ctx)
{
	__u64 since_ns = cost_begin(KPROF_PROGRAM_BEGIN_ARGS);

	if (!args_are_shed(ctx) && within(ctx, false))
		begin_args(ctx);
	cost_end(KPROF_PROGRAM_BEGIN_ARGS, since_ns);
	return 0;
}

/*
 * Writes the record, with the inputs in the scratch area; s NULL: without any. Its size is not
 * known to the verifier, and the time must be taken when its place is reserved.
 */
static __always_inline void emit_inputs(const struct inputs_scratch *s, const struct kprof_hit *hit,
					__u64 value, __u64 text_addr,
					const struct sequence *sequence)
{
	struct kprof_wire_counters *counters;
	struct kprof_wire_begin_inputs *e;
	__u64 nr = s ? s->nr : 0, bytes;
	struct bpf_dynptr record;

	if (nr > KPROF_WIRE_INPUTS_WORDS)
		nr = 0; /* more than fits: none */
	bytes = nr * 8;
	if (bpf_ringbuf_reserve_dynptr(hit->ring, sizeof(*e) + bytes + counters_bytes(), 0,
				       &record))
		__sync_fetch_and_add(&hit->count->dropped, 1);
	e = bpf_dynptr_data(&record, 0, sizeof(*e));
	if (!e) {
		bpf_ringbuf_discard_dynptr(&record, BPF_RB_NO_WAKEUP);
		return;
	}
	fill_hit_header(&e->b.h, hit, KPROF_WIRE_BEGIN_INPUTS, sizeof(*e) + bytes);
	fill_begin(&e->b, hit, sequence);
	e->value = value;
	e->text_addr = text_addr;
	e->nr = nr;
	e->pad = 0;
	if (s && bytes <= KPROF_WIRE_INPUTS_WORDS * 8)
		bpf_dynptr_write(&record, sizeof(*e), (void *)s->words, bytes, 0);
	if (nr_counters) {
		counters = bpf_dynptr_data(&record, sizeof(*e) + bytes, counters_bytes());
		if (counters)
			put_counters(counters);
	}
	bpf_ringbuf_submit_dynptr(&record, wakeup());
}

static __always_inline void begin_inputs(struct pt_regs *ctx)
{
	struct kprof_inputs_plan *plan;
	struct kprof_wire_probe *probe;
	__u64 value, text_addr;
	struct inputs_scratch *s;
	struct sequence sequence;
	struct kprof_hit hit;
	__u32 index;

	if (!take_hit(ctx, &hit))
		return;
	report_returned(ctx, &hit);
	report_modules_of(&hit);
	index = KPROF_COOKIE_INDEX(hit.cookie);
	probe = bpf_map_lookup_elem(&probes, &index);
	plan = bpf_map_lookup_elem(&inputs_plans, &index);
	if (!probe || !plan)
		return;
	find_text(ctx, probe, hit.sp, &value, &text_addr);
	s = take_scratch(&inputs_scratches, NR_INPUTS_SCRATCHES);
	if (s)
		read_inputs(ctx, s, plan, hit.sp);
	sequence_of(ctx, &hit, &sequence);
	emit_inputs(s, &hit, value, text_addr, &sequence);
	if (s)
		give_scratch(s);
}

SEC("uprobe.multi")
int kprof_begin_inputs(struct pt_regs *ctx)
{
	__u64 since_ns = cost_begin(KPROF_PROGRAM_BEGIN_INPUTS);

	if (!(shed & KPROF_WIRE_SHED_HITS) && within(ctx, false))
		begin_inputs(ctx);
	cost_end(KPROF_PROGRAM_BEGIN_INPUTS, since_ns);
	return 0;
}

/* A Tensor says whether the call reaches autograd; without one, that is not known. */
static __always_inline void sequence_of_boxed(const struct kprof_hit *hit, __u64 tensor,
					      struct sequence *out)
{
	__u32 rule = KPROF_COOKIE_SEQUENCE_RULE(hit->cookie);

	if (rule == KPROF_SEQUENCE_MAYBE && tensor)
		rule = KPROF_SEQUENCE_TENSOR;
	read_sequence(hit, rule, tensor, 0, out);
}

static __always_inline void begin_boxed(struct pt_regs *ctx)
{
	struct boxed_reading reading = {};
	struct kprof_inputs_plan *plan;
	struct kprof_wire_probe *probe;
	struct inputs_scratch *s;
	struct sequence sequence;
	struct kprof_hit hit;
	__u64 value, name;
	__u32 index;
	__u8 reg;

	if (!take_hit(ctx, &hit))
		return;
	report_returned(ctx, &hit);
	report_modules_of(&hit);
	index = KPROF_COOKIE_INDEX(hit.cookie);
	probe = bpf_map_lookup_elem(&probes, &index);
	plan = bpf_map_lookup_elem(&inputs_plans, &index);
	if (!probe || !plan)
		return;
	find_text(ctx, probe, hit.sp, &value, &name);
	s = take_scratch(&inputs_scratches, NR_INPUTS_SCRATCHES);
	reg = probe->text.reg;
	if (s)
		read_boxed(s, &reading, plan, argument(ctx, reg, hit.sp), name,
			   argument(ctx, reg + 1, hit.sp));
	sequence_of_boxed(&hit, reading.tensor, &sequence);
	emit_inputs(s, &hit, value, name, &sequence);
	if (s)
		give_scratch(s);
}

SEC("uprobe.multi")
int kprof_begin_boxed(struct pt_regs *ctx)
{
	__u64 since_ns = cost_begin(KPROF_PROGRAM_BEGIN_INPUTS);

	if (!(shed & KPROF_WIRE_SHED_HITS) && within(ctx, true))
		begin_boxed(ctx);
	cost_end(KPROF_PROGRAM_BEGIN_INPUTS, since_ns);
	return 0;
}

static __always_inline void site(struct pt_regs *ctx)
{
	struct kprof_wire_hdr *e;
	struct kprof_hit hit;

	if (!take_hit(ctx, &hit))
		return;
	e = reserve_counted(&hit, sizeof(*e));
	if (!e)
		return;
	fill_counted(e, &hit, KPROF_WIRE_SITE, sizeof(*e));
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

SEC("uprobe.multi")
int kprof_site(struct pt_regs *ctx)
{
	__u64 since_ns = cost_begin(KPROF_PROGRAM_SITE);

	if (!(shed & KPROF_WIRE_SHED_HITS) && within_returned(PT_REGS_SP(ctx)))
		site(ctx);
	cost_end(KPROF_PROGRAM_SITE, since_ns);
	return 0;
}

/* A return site whose call's result is recorded: from where the cookie says it is by now. */
static __always_inline void site_result(struct pt_regs *ctx)
{
	struct kprof_wire_site_result *e;
	__u16 kind = KPROF_WIRE_SITE_RESULT;
	struct kprof_hit hit;
	__u64 result;

	if (!take_hit(ctx, &hit))
		return;
	e = reserve_counted(&hit, sizeof(*e));
	if (!e)
		return;
	result = general_register(ctx, KPROF_COOKIE_RESULT_REG(hit.cookie));
	if (KPROF_COOKIE_RESULT_IN_MEMORY(hit.cookie)) {
		void *at = (void *)(result + KPROF_COOKIE_RESULT_DISP(hit.cookie));
		__u32 saved = 0;

		if (bpf_probe_read_user(&saved, sizeof(saved), at))
			kind = KPROF_WIRE_SITE; /* the result stays unknown */
		result = saved;
	}
	fill_counted(&e->h, &hit, kind, sizeof(*e));
	e->result = result;
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

SEC("uprobe.multi")
int kprof_site_result(struct pt_regs *ctx)
{
	__u64 since_ns = cost_begin(KPROF_PROGRAM_SITE_RESULT);

	if (!(shed & KPROF_WIRE_SHED_HITS) && within_returned(PT_REGS_SP(ctx)))
		site_result(ctx);
	cost_end(KPROF_PROGRAM_SITE_RESULT, since_ns);
	return 0;
}

/* On a function of kprof's own: what a hit costs in which nothing is done. */
SEC("uprobe.multi")
int kprof_nothing(struct pt_regs *ctx)
{
	cost_end(KPROF_PROGRAM_NOTHING, cost_begin(KPROF_PROGRAM_NOTHING));
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
