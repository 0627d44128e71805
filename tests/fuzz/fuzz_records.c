// SPDX-License-Identifier: BSD-2-Clause
/*
 * The model on any stream of records: the bytes are the records, put in front of it by a fake
 * reader, so that no checksum stands between the fuzzer and the model. References may point
 * nowhere, which the real reader never lets through.
 */
#include "fake_store.h"

#include "model_checks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *at, *end;
	uint64_t now_ns;
};

static uint8_t take8(struct input *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

/* A time: mostly small steps, sometimes anything. */
static uint64_t take_ns(struct input *in)
{
	uint8_t step = take8(in);

	if (step == 255) {
		in->now_ns = 0;
		for (int i = 0; i < 8; i++)
			in->now_ns = in->now_ns << 8 | take8(in);
	} else {
		in->now_ns = in->now_ns + step - 16;
	}
	return in->now_ns;
}

static void put_table(struct input *in, uint8_t kind)
{
	static const char *const texts[] = {"", "a", "b", "aten::add", "\xff\"\n", "a"};
	struct store_record *r;

	switch (kind) {
	case 0:
		fake_string(texts[take8(in) % 6]);
		break;
	case 1:
		fake_source(take8(in) % (fake.nr_sources + 1), texts[take8(in) % 6])
			->source.begins = take8(in) & 1;
		break;
	case 2:
		r = fake_thread(take8(in) & 7, take8(in), take8(in), "t");
		r->thread.exit_ns = take8(in) & 1 ? take_ns(in) : 0;
		break;
	case 3:
		fake_what_of(texts[take8(in) % 6], "", texts[take8(in) % 6], take8(in) % 5);
		break;
	case 4:
		fake_clock(take_ns(in), take_ns(in));
		break;
	case 5:
		r = fake_add(STORE_PROCESS);
		r->process.pid = take8(in), r->process.start_ns = take8(in);
		r->process.comm = take8(in), r->process.cmdline = take8(in);
		break;
	case 6:
		r = fake_add(STORE_GAP);
		r->gap.what = take8(in), r->gap.reason = take8(in);
		r->gap.start_ns = take_ns(in), r->gap.end_ns = take_ns(in);
		break;
	default:
		r = fake_add(STORE_META);
		r->meta.key = texts[take8(in) % 6], r->meta.json = texts[take8(in) % 6];
		break;
	}
}

/*
 * Modules, frames, stacks, mostly the next one or an earlier one; references sometimes to nothing.
 */
static void put_stack(struct input *in)
{
	static struct store_line lines[256][3];
	static uint8_t next;
	static uint32_t modules, frames, stacks;
	struct store_record *r;
	uint8_t kind = take8(in), ref = take8(in);

	if (!fake.nr_strings) { /* a new stream */
		modules = frames = stacks = 0;
		fake_string("_ZN2at4loopIiEEvv");
	}
	switch (kind & 3) {
	case 0:
		r = fake_add(STORE_MODULE);
		r->module.id = ++modules;
		r->module.path = ref % 4, r->module.build_id = ref >> 4;
		break;
	case 1:
		r = fake_frame(kind & 4 ? 1 + ref % 8 : ++frames, kind >> 3, lines[++next]);
		r->frame.module = ref % 4, r->frame.op = ref % 3;
		r->frame.nr_lines = ref >> 6;
		for (uint32_t i = 0; i < 3; i++)
			lines[next][i] = (struct store_line){take8(in) % 4, take8(in) % 3, i, 0};
		break;
	default:
		stacks++;
		fake_stack(stacks, ref % 8 == 7 ? ref : ref % stacks, 1 + ref % 4);
	}
}

/* Keys, and spans that are calls and annotations. */
static void add_calls(void)
{
	static const char *const keys[] = {"grid",  "block",         "registers per thread",
					   "bytes", "stream",        "correlation",
					   "cbid",  "wait_on_stream"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		fake_string(keys[i]);
	fake_source(0, "operators");
	fake_what_of("cudaLaunchKernel", "", "cuda_runtime", 0);
	fake_what_of("ProfilerStep#1", "", "user_annotation", 0);
	fake_what_of("cudaDeviceSynchronize", "", "cuda_runtime", 0);
}

/* Attributes of every type, of keys that mean something and of ones that do not. */
static const struct store_attr *take_attrs(struct input *in, uint32_t *nr)
{
	static struct store_attr pool[1024];
	static size_t used;
	struct store_attr *attrs;

	*nr = take8(in) % 5;
	if (used + *nr > sizeof(pool) / sizeof(pool[0]))
		used = 0;
	attrs = &pool[used];
	used += *nr;
	for (uint32_t i = 0; i < *nr; i++)
		attrs[i] = (struct store_attr){take8(in) % 24, take8(in) % 9,
					       take8(in) * 0x0101010101010101ull >> take8(in) % 64};
	return attrs;
}

/*
 * Work of devices, calls, marks, counters: references mostly fit, times and numbers collide often.
 */
static void put_detail(struct input *in, uint8_t kind)
{
	struct store_record *r;
	uint64_t a = take_ns(in), b = take_ns(in);

	switch (kind) {
	case 0:
		r = fake_add(STORE_ARGS);
		r->args.span = take8(in) % 32;
		break;
	case 1:
		r = fake_activity(take8(in) % 3, take8(in) % 70, "_Z1ki", take8(in) % 4, a, b,
				  take8(in) % 8);
		r->activity.device = take8(in) % 3;
		break;
	case 2:
		r = fake_api(take8(in) & 3,
			     take8(in) & 1 ? "cudaLaunchKernel" : "cuLaunchKernel_v2", a, b,
			     take8(in) % 8);
		break;
	case 3:
		r = fake_add(STORE_INSTANT);
		r->instant.time_ns = a;
		r->instant.thread = take8(in) & 3, r->instant.description = 1 + take8(in) % 4;
		break;
	default:
		r = fake_add(STORE_COUNTER);
		r->counter.time_ns = a, r->counter.value = (int64_t)b;
		r->counter.pid = take8(in) % 3, r->counter.device = take8(in) % 3 - 1u;
		r->counter.name = take8(in) % 8;
		return;
	}
	r->attrs = take_attrs(in, &r->nr_attrs);
}

/* A thread off its CPU: mostly in a call that waits, and woken by a thread that there is. */
static void put_wait(struct input *in)
{
	static const uint32_t calls[] = {0, 1, 2, 18, 203, 231, 233, UINT32_MAX}; /* numbers + 1 */
	struct store_record *r = fake_add(STORE_WAIT);
	uint8_t who = take8(in), how = take8(in), cpus = take8(in);

	r->wait.start_ns = take_ns(in);
	r->wait.wake_ns = take_ns(in);
	r->wait.end_ns = take_ns(in);
	r->wait.thread = who & 3;
	r->wait.waker_pid = who >> 2 & 1;
	r->wait.waker_tid = who >> 3 & 3;
	r->wait.waker_comm = who >> 5;
	r->wait.call = calls[how & 7];
	r->wait.flags = how >> 3 | (uint32_t)(how & 1) << 17;
	r->wait.stack = take8(in) % 16;
	r->wait.waker_stack = take8(in) % 16;
	r->wait.object = take8(in) % 8;
	r->wait.left_cpu = cpus & 3;
	r->wait.got_cpu = cpus >> 2 & 3;
	r->wait.waker_cpu = cpus >> 4 & 3;
}

/* How long a thread ran and did not, which need not fit its waits. */
static void put_thread_time(struct input *in)
{
	struct store_record *r = fake_add(STORE_THREAD_TIME);

	r->thread_time.thread = take8(in) & 3;
	r->thread_time.start_ns = take_ns(in);
	r->thread_time.end_ns = take_ns(in);
	r->thread_time.on_ns = take8(in);
	r->thread_time.runnable_ns = take8(in);
	r->thread_time.blocked_ns = take_ns(in);
	r->thread_time.switches = take8(in);
	r->thread_time.told = take8(in);
}

static void put_thread_window(struct input *in)
{
	struct store_record *r = fake_add(STORE_THREAD_WINDOW);

	r->thread_window.thread = take8(in) & 3;
	r->thread_window.start_ns = take_ns(in);
	r->thread_window.end_ns = take_ns(in);
}

/* Waits are read where the metadata says that they were recorded. */
static void add_waits(void)
{
	struct store_record *r = fake_add(STORE_META);

	r->meta.key = "waits";
	r->meta.json = "{}";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {.at = data, .end = data + size, .now_ns = 1000};
	uint8_t options = take8(&in);

	fake_reset();
	for (uint32_t i = 0; i < (options & 3); i++)
		fake_thread(i, 1, i, "t");
	for (uint32_t i = 0; i < (options >> 2 & 3); i++)
		fake_what("a");
	if (options & 16)
		add_calls();
	if (options & 32)
		add_waits();
	while (in.at < in.end) {
		uint8_t op = take8(&in);

		if (op < 100)
			fake_begin(take_ns(&in), op & 3, 1 + (op >> 2) % 4);
		else if (op < 200)
			fake_end_flags(take_ns(&in), op & 3, op >> 2);
		else if (op < 240)
			put_detail(&in, op % 5);
		else if (op == 247)
			put_thread_window(&in);
		else if (op < 248)
			put_table(&in, op & 7);
		else if (op == 248)
			put_wait(&in);
		else if (op == 249)
			put_thread_time(&in);
		else if (op == 250)
			fake.cut_at = fake.nr;
		else if (op == 251)
			fake.fail_at = fake.nr;
		else if (op == 252)
			fake_finish(take_ns(&in));
		else if (op == 253)
			put_stack(&in);
		else
			fake_sample(take_ns(&in), take8(&in) & 3, take8(&in) % 16, take8(&in))
				->sample.flags = take8(&in) << 4;
	}
	fake.late_damage = options & 64;
	if (options & 128)
		fake_finish(take_ns(&in));
	check_timeline("fake");
	check_results("fake");
	check_samples("fake");
	check_diff("fake", size);
	check_waits("fake");
	check_why("fake");
	check_export("fake");
	check_parts("fake");
	return 0;
}
