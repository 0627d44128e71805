/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For tests of user/sink/perfetto/: a capture with a bit of everything, and a reader of what
 * becomes of it.
 */
#ifndef KPROF_TESTS_PFTRACE_FIXTURE_H
#define KPROF_TESTS_PFTRACE_FIXTURE_H

#include "sink_fixture.h"

#include "kprof/activity.h"
#include "kprof/unwind.h"
#include "sink/perfetto/pftrace.pb-c.h"

#define PROCESS_TRACK(pid) ((uint64_t)(pid) << 2 | 2)
#define THREAD_TRACK(index) ((uint64_t)(index) << 2 | 1)

static struct made m;

static inline struct store_attr attr(const char *key, enum store_attr_type type, uint64_t value)
{
	return (struct store_attr){made__string(&m, key), type, value};
}

static inline void span(uint32_t thread, uint64_t start_ns, uint64_t end_ns, uint32_t description,
			uint32_t flags)
{
	made__begin(&m, start_ns, thread, description);
	made__end(&m, end_ns, thread, flags);
}

static inline void activity(enum kprof_activity type, const char *name, uint32_t stream,
			    uint64_t start_ns, uint64_t end_ns, uint64_t correlation,
			    const struct store_attr *attrs, uint32_t nr)
{
	made__put(&m, (struct store_record){
			      STORE_ACTIVITY,
			      .activity = {.pid = 7,
					   .type = type,
					   .name = made__string(&m, name),
					   .context = 1,
					   .stream = stream,
					   .start_ns = MONO_NS + start_ns,
					   .end_ns = MONO_NS + end_ns,
					   .correlation = correlation},
			      .attrs = attrs,
			      .nr_attrs = nr,
		      });
}

static inline void api(const char *name, uint64_t start_ns, uint64_t end_ns, uint64_t correlation)
{
	struct store_attr cbid = attr("cbid", STORE_ATTR_U64, 211);

	made__put(&m, (struct store_record){
			      STORE_API,
			      .api = {.thread = 0,
				      .type = KPROF_ACTIVITY_CUDA_RUNTIME,
				      .name = made__string(&m, name),
				      .start_ns = MONO_NS + start_ns,
				      .end_ns = MONO_NS + end_ns,
				      .correlation = correlation},
			      .attrs = &cbid,
			      .nr_attrs = 1,
		      });
}

/* ---- stacks ---- */

static uint32_t nr_modules, nr_frames, nr_stacks;

static inline uint32_t module(const char *path, const char *build_id)
{
	made__put(&m, (struct store_record){STORE_MODULE,
					    .module = {.id = ++nr_modules,
						       .path = made__string(&m, path),
						       .build_id = made__string(&m, build_id)}});
	return nr_modules;
}

static inline uint32_t frame(enum store_frame_kind kind, uint32_t of, uint64_t address,
			     const struct store_line *lines, uint32_t nr)
{
	made__put(&m, (struct store_record){STORE_FRAME, .frame = {.id = ++nr_frames,
								   .kind = kind,
								   .module = of,
								   .address = address,
								   .nr_lines = nr,
								   .lines = lines}});
	return nr_frames;
}

static inline uint32_t stack(uint32_t parent, uint32_t of)
{
	made__put(&m, (struct store_record){STORE_STACK, .stack = {++nr_stacks, parent, of}});
	return nr_stacks;
}

static inline void sample(uint64_t ns, uint32_t thread, uint32_t of, uint64_t weight_ns,
			  uint32_t flags)
{
	made__put(&m, (struct store_record){STORE_SAMPLE, .sample = {MONO_NS + ns, thread, of,
								     weight_ns, flags}});
}

static inline struct store_line line(const char *function, const char *file, uint32_t number)
{
	return (struct store_line){made__string(&m, function), made__string(&m, file), number, 0};
}

/*
 * Python's main, then a native function with one inlined into it, then the kernel; the stack of the
 * first two.
 */
static inline uint32_t write_samples(void)
{
	const uint32_t whole = KPROF_UNWIND_WHOLE << KPROF_SAMPLE_END_SHIFT;
	struct store_line python = line("Net.forward", "/home/me/net.py", 12);
	struct store_line native[2];
	struct store_line kernel = line("do_syscall_64", "", 0);
	uint32_t lib, s[4];

	native[0] = line("_ZN2at8inlined_E", "a.h", 3);
	native[1] = line("_ZN2at5outerEv", "a.cpp", 9);
	lib = module("/usr/lib/libtorch.so", "00ffa1");
	s[0] = stack(0, frame(STORE_FRAME_PYTHON, 0, 0, &python, 1));
	s[1] = stack(s[0], frame(STORE_FRAME_NATIVE, lib, 0x1234, native, 2));
	s[2] = stack(s[1], frame(STORE_FRAME_KERNEL, 0, 0xffffffff81000000, &kernel, 1));
	s[3] = stack(0, frame(STORE_FRAME_NATIVE, lib, 0x42, NULL, 0));
	sample(1000, 0, s[1], 10, whole | KPROF_SAMPLE_USER);
	sample(2000, 0, s[2], 20, whole | KPROF_SAMPLE_KERNEL);
	sample(3000, 1, s[1], 30, whole | KPROF_SAMPLE_USER);
	sample(4000, 1, s[3], 500, whole | KPROF_SAMPLE_OFF_CPU);
	sample(5000, 0, s[3], 40, KPROF_UNWIND_NO_RULE << KPROF_SAMPLE_END_SHIFT);
	sample(6000, 0, 0, 50, KPROF_UNWIND_BAD_STACK << KPROF_SAMPLE_END_SHIFT);
	return s[1];
}

/* ---- a bit of everything ---- */

static inline void write_attributes(uint32_t of_stack)
{
	const double quarter = 0.25;
	struct store_attr attrs[10];
	uint64_t bits;

	memcpy(&bits, &quarter, sizeof(bits));
	attrs[0] = attr("Bytes", STORE_ATTR_U64, UINT64_MAX >> 1);
	attrs[1] = attr("Delta", STORE_ATTR_I64, (uint64_t)-5);
	attrs[2] = attr("Addr", STORE_ATTR_HEX, 0x7f00);
	attrs[3] = attr("Backend", STORE_ATTR_STRING, made__string(&m, "nccl \"x\""));
	attrs[4] = attr("Share", STORE_ATTR_DOUBLE, bits);
	attrs[5] = attr("Grid", STORE_ATTR_DIM3, 4 | 5ull << 32 | 6ull << 48);
	attrs[6] =
		attr("Input Dims", STORE_ATTR_JSON, made__string(&m, "[[2, 3], [], {\"a\": 1}]"));
	attrs[7] = attr("Broken", STORE_ATTR_JSON, made__string(&m, "[1, "));
	attrs[8] = attr("stream", STORE_ATTR_HEX, 0x99);
	attrs[9] = attr("Call stack", STORE_ATTR_STACK, of_stack);
	made__put(&m,
		  (struct store_record){STORE_ARGS, .args = {1}, .attrs = attrs, .nr_attrs = 10});
}

static inline void write_device(void)
{
	struct store_attr shape[3], bytes;

	shape[0] = attr("grid", STORE_ATTR_DIM3, 864 | 1ull << 32 | 1ull << 48);
	shape[1] = attr("block", STORE_ATTR_DIM3, 256 | 1ull << 32 | 1ull << 48);
	shape[2] = attr("registers per thread", STORE_ATTR_U64, 47);
	/* In no order, each touching the next; one takes no time at all. */
	activity(KPROF_ACTIVITY_KERNEL, "_Z3addPfi", 7, 9000, 12000, 3, shape, 3);
	activity(KPROF_ACTIVITY_KERNEL, "_Z3addPfi", 7, 6000, 9000, 3, shape, 3);
	activity(KPROF_ACTIVITY_KERNEL, "instant", 7, 12000, 12000, 3, NULL, 0);
	activity(KPROF_ACTIVITY_KERNEL, "beside", 7, 7000, 8000, 4, NULL, 0);
	bytes = attr("bytes", STORE_ATTR_U64, 92928);
	activity(KPROF_ACTIVITY_GPU_MEMCPY, "Memcpy HtoD (Pinned -> Device)", 8, 12500, 18000, 0,
		 &bytes, 1);
	activity(KPROF_ACTIVITY_CUDA_SYNC, "Stream Sync", 7, 6000, 9000, 0, NULL, 0);
	api("cudaLaunchKernel_v7000", 1200, 1800, 3);
	api("cudaGraphLaunch", 2500, 3000, 4); /* seen by nobody else */
}

static inline void write_everything(const char *path)
{
	uint32_t linear, add, launch, step, mark, other, stack_of_op;
	struct store_attr note;

	nr_modules = nr_frames = nr_stacks = 0;
	made__start(&m, path);
	made__meta(&m, "kernel", "\"6.18\"");
	made__meta(&m, "host", "\"box\"");
	made__meta(&m, "trace_name", "\"a run\"");
	made__meta(&m, "trace.lr", "0.010");
	made__meta(&m, "trace.tags", "[\"a\"]");
	made__meta(&m, "device.7.0",
		   "{\"id\": 0, \"name\": \"A100\", \"computeMajor\": 8, \"computeMinor\": 0, "
		   "\"maxThreadsPerMultiprocessor\": 2048, \"regsPerMultiprocessor\": 65536, "
		   "\"warpSize\": 32, \"sharedMemPerMultiprocessor\": 167936, \"numSms\": 108}");
	made__process(&m, 7, 1, "python3");
	made__process(&m, 9, 1, "other");
	made__thread(&m, 7, 7, "main");
	made__thread(&m, 7, 8, "work\xffshop");
	other = made__thread(&m, 9, 9, "other");
	linear = made__what(&m, "aten::linear", "", "cpu_op", 0);
	add = made__what(&m, "aten::add", "Tensor", "cpu_op", KPROF_EVENT_UNNAMED);
	launch = made__what(&m, "cudaLaunchKernel", "", "cuda_runtime", 0);
	step = made__what(&m, "ProfilerStep#2", "", "user_annotation", 0);
	mark = made__what(&m, "mark", "", "user_annotation", 0);
	stack_of_op = write_samples();
	write_device();
	made__begin(&m, 500, 0, step); /* 1, with a value of each type */
	write_attributes(stack_of_op);
	made__begin(&m, 1000, 0, linear);
	span(0, 1000, 1900, launch, 0);
	made__end(&m, 4000, 0, 0);
	span(0, 4000, 4000, add, 0);
	span(0, 4000, 5000, add, KPROF_EVENT_CLOSED);
	made__end(&m, 20000, 0, 0);
	span(1, 1500, 2500, linear, 0);
	span(other, 1500, 2500, add, 0);
	made__begin(&m, 5000, 1, linear); /* not ended */
	note = attr("Bytes", STORE_ATTR_I64, (uint64_t)-64);
	made__put(&m, (struct store_record){STORE_INSTANT, .instant = {MONO_NS + 3500, 1, mark},
					    .attrs = &note, .nr_attrs = 1});
	for (uint32_t i = 0; i < 3; i++)
		made__put(&m, (struct store_record){
				      STORE_COUNTER,
				      .counter = {MONO_NS + 1000 * i, 7, i ? 0 : UINT32_MAX,
						  made__string(&m, "Allocated"), -(int64_t)i}});
	made__finish(&m);
}

/* ---- a reader ---- */

struct packets {
	Pf__Packet **list;
	size_t nr, cap;
	uint64_t *ns; /* of each, whatever its clock */
};

static inline size_t varint(const uint8_t *at, size_t left, size_t *value)
{
	size_t n = 0;

	*value = 0;
	do {
		if (n == left || n == 9)
			return 0;
		*value |= (size_t)(at[n] & 0x7f) << 7 * n;
	} while (at[n++] & 0x80);
	return n;
}

static inline struct packets unpack(const char *bytes, size_t left)
{
	struct packets p = {0};
	const uint8_t *at = (const uint8_t *)bytes;
	uint64_t delta_ns = 0;
	size_t len, n;

	while (left) {
		CHECK_EQ(*at, 0x0a);
		n = varint(at + 1, left - 1, &len);
		CHECK(n && len <= left - 1 - n);
		if (!n || len > left - 1 - n)
			break;
		if (vec_grow((void **)&p.list, &p.cap, p.nr, sizeof(*p.list)))
			abort();
		p.list[p.nr] = pf__packet__unpack(NULL, len, at + 1 + n);
		CHECK(p.list[p.nr]);
		if (!p.list[p.nr++])
			abort();
		at += 1 + n + len;
		left -= 1 + n + len;
	}
	p.ns = calloc(p.nr + 1, sizeof(*p.ns));
	for (size_t i = 0; i < p.nr; i++) {
		const Pf__Packet *k = p.list[i];

		if (k->clock_snapshot && k->clock_snapshot->n_clocks == 3)
			delta_ns = k->clock_snapshot->clocks[2]->timestamp;
		if (k->sequence == 1 && k->has_timestamp && !k->has_timestamp_clock)
			p.ns[i] = delta_ns += k->timestamp;
		else
			p.ns[i] = k->timestamp;
	}
	return p;
}

static inline void packets_free(struct packets *p)
{
	for (size_t i = 0; i < p->nr; i++)
		pf__packet__free_unpacked(p->list[i], NULL);
	free(p->list);
	free(p->ns);
}

static inline struct packets packets_of(const char *path)
{
	struct packets p;
	char *bytes = NULL;
	size_t nr = 0;

	CHECK_EQ(read_file(path, 64 << 20, &bytes, &nr), 0);
	p = unpack(bytes ? bytes : "", nr);
	free(bytes);
	return p;
}

static inline struct packets exported(const char *capture, const char *name, pid_t pid)
{
	struct kprof_export_opts opts = {.path = in_scratch(name), .pid = pid};
	int err = export_as(in_scratch(capture), opts);

	CHECK_EQ(err, 0);
	if (err)
		printf("# %s\n", kprof_error_cause());
	return packets_of(in_scratch(name));
}

/* What a number stands for, among what came up to and with packet `until` of its sequence. */
static inline const char *name_of(const struct packets *p, size_t until, size_t list, uint64_t iid)
{
	const char *found = NULL;

	for (size_t i = 0; i <= until; i++) {
		const Pf__InternedData *d = p->list[i]->interned;
		Pf__InternedName **names;
		size_t nr;

		if (!d || p->list[i]->sequence != p->list[until]->sequence)
			continue;
		names = list == 0   ? d->event_names
			: list == 1 ? d->categories
				    : d->annotation_names;
		nr = list == 0   ? d->n_event_names
		     : list == 1 ? d->n_categories
				 : d->n_annotation_names;
		for (size_t n = 0; n < nr; n++) {
			if (names[n]->iid != iid)
				continue;
			CHECK(!found); /* once */
			found = names[n]->name;
		}
	}
	return found;
}

static inline const char *event_name(const struct packets *p, size_t i)
{
	const Pf__TrackEvent *e = p->list[i]->track_event;
	const char *name = e && e->has_name_iid ? name_of(p, i, 0, e->name_iid) : NULL;

	return name ? name : "";
}

/* The so-many-th event of this name and type; SIZE_MAX. */
static inline size_t event(const struct packets *p, const char *name, uint32_t type, int nth)
{
	for (size_t i = 0; i < p->nr; i++)
		if (p->list[i]->track_event && p->list[i]->track_event->type == type &&
		    !strcmp(event_name(p, i), name) && !nth--)
			return i;
	printf("# no event %s\n", name);
	CHECK(!"found");
	return SIZE_MAX;
}

static inline const Pf__Annotation *value(const struct packets *p, size_t i, const char *key)
{
	static const Pf__Annotation none = PF__ANNOTATION__INIT;
	const Pf__TrackEvent *e = i < p->nr ? p->list[i]->track_event : NULL;

	for (size_t n = 0; e && n < e->n_annotations; n++) {
		const char *name = name_of(p, i, 2, e->annotations[n]->name_iid);

		CHECK(name);
		if (name && !strcmp(name, key))
			return e->annotations[n];
	}
	printf("# no value %s\n", key);
	CHECK(!"found");
	return &none;
}

static inline const char *string_of(const struct packets *p, const Pf__Annotation *a)
{
	static char text[512];

	for (size_t i = 0; i < p->nr; i++) {
		const Pf__InternedData *d = p->list[i]->interned;

		for (size_t n = 0; d && n < d->n_strings; n++)
			if (d->strings[n]->iid == a->string_iid) {
				snprintf(text, sizeof(text), "%.*s", (int)d->strings[n]->bytes.len,
					 d->strings[n]->bytes.data);
				return text;
			}
	}
	return "";
}

/* The packet that ends what packet i began: the first end of its track behind it in time. */
static inline size_t end_of(const struct packets *p, size_t begin)
{
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < p->nr; i++) {
		const Pf__TrackEvent *e = p->list[i]->track_event;

		if (e && e->type == 2 && e->track == p->list[begin]->track_event->track &&
		    p->ns[i] > p->ns[begin] && (best == SIZE_MAX || p->ns[i] < p->ns[best]))
			best = i;
	}
	return best;
}

#endif
