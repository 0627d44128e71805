// SPDX-License-Identifier: BSD-2-Clause
/*
 * user/sink/perfetto/: packets as a reader takes them, sorted by time, with what they refer to by
 * number. KPROF_PFTRACE_CAPTURE=FILE: leaves the capture with a bit of everything there, for
 * tests/perfetto.bats.
 */
#include "pftrace_fixture.h"

#include <zlib.h>

static const struct packets *sorting;

static int by_time(const void *a, const void *b)
{
	size_t i = *(const size_t *)a, j = *(const size_t *)b;

	if (sorting->ns[i] != sorting->ns[j])
		return sorting->ns[i] < sorting->ns[j] ? -1 : 1;
	return (i > j) - (i < j);
}

/*
 * As a reader sees them: every end has a begin, nothing stays open, what is named is the innermost.
 */
static void check_nesting(const struct packets *p)
{
	struct {
		uint64_t track;
		uint64_t names[32];
		size_t depth;
	} tracks[64] = {0};
	size_t *order = calloc(p->nr + 1, sizeof(*order)), nr_tracks = 0, t;

	for (size_t i = 0; i < p->nr; i++)
		order[i] = i;
	sorting = p;
	qsort(order, p->nr, sizeof(*order), by_time);
	for (size_t i = 0; i < p->nr; i++) {
		const Pf__TrackEvent *e = p->list[order[i]]->track_event;

		if (!e || e->type > 2)
			continue;
		for (t = 0; t < nr_tracks && tracks[t].track != e->track;)
			t++;
		if (t == nr_tracks)
			tracks[nr_tracks++].track = e->track;
		if (e->type == 1) {
			tracks[t].names[tracks[t].depth++] = e->name_iid;
			continue;
		}
		CHECK(tracks[t].depth);
		if (tracks[t].depth)
			tracks[t].depth--;
		if (e->has_name_iid)
			CHECK_EQ(e->name_iid, tracks[t].names[tracks[t].depth]);
	}
	for (t = 0; t < nr_tracks; t++)
		CHECK_EQ(tracks[t].depth, 0);
	free(order);
}

static void clocks(void)
{
	struct packets p;
	const Pf__ClockSnapshot *s;

	write_everything(in_scratch("a.kprof"));
	p = exported("a.kprof", "a.pftrace", 0);
	s = p.list[0]->clock_snapshot;
	CHECK(s && s->n_clocks == 3);
	if (!s || s->n_clocks != 3)
		return;
	CHECK_EQ(s->primary, 3);
	CHECK_EQ(s->clocks[0]->id, 3);
	CHECK_EQ(s->clocks[0]->timestamp, MONO_NS);
	CHECK_EQ(s->clocks[1]->id, 1);
	CHECK_EQ(s->clocks[1]->timestamp, REAL_NS);
	CHECK(s->clocks[2]->is_incremental && s->clocks[2]->unit_ns == 1);
	CHECK_EQ(p.list[0]->sequence_flags, 1);
	CHECK_EQ(p.list[0]->defaults->timestamp_clock, s->clocks[2]->id);
	s = p.list[p.nr - 1]->clock_snapshot;
	CHECK(s && s->n_clocks == 2 && s->clocks[0]->timestamp == END_NS &&
	      s->clocks[1]->timestamp == REAL_NS + (END_NS - MONO_NS));
	check_nesting(&p);
	packets_free(&p);
}

static void values_in_their_types(void)
{
	struct packets p;
	const Pf__Annotation *a;
	size_t begin, end;

	write_everything(in_scratch("a.kprof"));
	p = exported("a.kprof", "a.pftrace", 0);
	begin = event(&p, "ProfilerStep#2", 1, 0);
	/* Of the thread's; a device's has the name, too, and comes later in the file. */
	CHECK_EQ(p.list[begin]->track_event->track, THREAD_TRACK(0));
	CHECK_EQ(value(&p, begin, "External id")->uint_value, 1);
	for (end = begin; end < p.nr; end++)
		if (p.list[end]->track_event && p.list[end]->track_event->n_annotations == 10)
			break;
	CHECK(end < p.nr && p.ns[end] == MONO_NS + 20000);
	CHECK_EQ(value(&p, end, "Bytes")->uint_value, UINT64_MAX >> 1);
	CHECK_EQ(value(&p, end, "Delta")->int_value, -5);
	CHECK_EQ(value(&p, end, "Addr")->pointer_value, 0x7f00);
	CHECK_STR(string_of(&p, value(&p, end, "Backend")), "nccl \"x\"");
	CHECK(value(&p, end, "Share")->double_value == 0.25);
	a = value(&p, end, "Grid");
	CHECK_EQ(a->n_array_values, 3);
	for (size_t i = 0; i < a->n_array_values; i++)
		CHECK_EQ(a->array_values[i]->uint_value, 4 + i);
	CHECK_STR(value(&p, end, "Input Dims")->json_value, "[[2, 3], [], {\"a\": 1}]");
	CHECK_STR(value(&p, end, "Broken")->string_value, "[1, ");
	CHECK_EQ(value(&p, end, "stream handle")->pointer_value, 0x99);
	CHECK_STR(string_of(&p, value(&p, end, "Call stack")),
		  "/home/me/net.py(12): Net.forward;a.cpp(9): at::outer;a.h(3): at::inlined_");
	begin = event(&p, "aten::add", 1, 1);
	CHECK_STR(string_of(&p, value(&p, begin, "Overload")), "Tensor");
	end = end_of(&p, begin);
	CHECK_EQ(p.ns[end], MONO_NS + 5000);
	CHECK_STR(string_of(&p, value(&p, end, "end")), "closed");
	CHECK(value(&p, end, "unnamed")->has_bool_value && value(&p, end, "unnamed")->bool_value);
	begin = event(&p, "mark", 3, 0);
	CHECK_EQ(value(&p, begin, "Bytes")->int_value, -64);
	packets_free(&p);
}

static void the_recording(void)
{
	struct packets p;
	size_t i;

	write_everything(in_scratch("a.kprof"));
	p = exported("a.kprof", "a.pftrace", 0);
	i = event(&p, "a run", 1, 0);
	CHECK_STR(value(&p, i, "metadata")->json_value, "{\"lr\": 0.010, \"tags\": [\"a\"]}");
	packets_free(&p);
}

static void devices(void)
{
	struct packets p;
	const Pf__TrackEvent *call, *kernel;
	size_t i;

	write_everything(in_scratch("a.kprof"));
	p = exported("a.kprof", "a.pftrace", 0);
	call = p.list[event(&p, "cudaLaunchKernel", 1, 0)]->track_event;
	CHECK_EQ(call->n_flow_ids, 3); /* one call, three kernels: a flow to each */
	i = event(&p, "add(float*, int)", 1, 0);
	kernel = p.list[i]->track_event;
	CHECK_EQ(p.ns[i], MONO_NS + 9000);
	CHECK_EQ(kernel->n_terminating_flow_ids, 1);
	CHECK_EQ(value(&p, i, "correlation")->uint_value, 3);
	CHECK_EQ(value(&p, i, "External id")->uint_value, 2);
	CHECK_EQ(value(&p, i, "grid")->array_values[0]->uint_value, 864);
	CHECK(value(&p, i, "blocks per SM")->double_value == 8);
	CHECK_EQ(p.ns[event(&p, "instant", 3, 0)], MONO_NS + 12000);
	call = p.list[event(&p, "cudaGraphLaunch", 1, 0)]->track_event;
	CHECK_EQ(call->n_flow_ids, 1);
	CHECK_EQ(call->track, THREAD_TRACK(0));
	for (i = 0; i < p.nr; i++) {
		const Pf__TrackDescriptor *t = p.list[i]->track_descriptor;

		if (t && t->name && !strcmp(t->name, "GPU 0"))
			CHECK_EQ(t->parent, PROCESS_TRACK(7));
		if (t && t->thread && t->thread->tid == 8)
			CHECK_STR(t->thread->name, "work\\xffshop");
	}
	packets_free(&p);
}

static void samples_with_stacks(void)
{
	static const uint64_t counts[] = {10, 30, 60, 500, 100, 150};
	static const int32_t modes[] = {2, 1, 2, 0, 2, 2}, errors[] = {0, 0, 0, 0, 3, 2};
	const Pf__InternedData *first = NULL;
	struct packets p;
	size_t nr = 0;

	write_everything(in_scratch("a.kprof"));
	p = exported("a.kprof", "a.pftrace", 0);
	for (size_t i = 0; i < p.nr; i++) {
		const Pf__PerfSample *s = p.list[i]->perf_sample;

		if (!s || nr == ARRAY_SIZE(counts))
			continue;
		first = first ? first : p.list[i]->interned;
		CHECK_EQ(p.ns[i], MONO_NS + 1000 * (nr + 1));
		CHECK_EQ(s->count, counts[nr]);
		CHECK_EQ(s->mode, modes[nr]);
		CHECK_EQ(s->unwind_error, errors[nr]);
		CHECK_EQ(p.list[i]->sequence, nr == 3 ? 4 : 3);
		CHECK_EQ(s->tid, nr == 2 || nr == 3 ? 8 : 7);
		/* A stack is described where it comes first. */
		CHECK_EQ(p.list[i]->interned != NULL, nr != 2);
		nr++;
	}
	CHECK_EQ(nr, ARRAY_SIZE(counts));
	CHECK(first && first->n_callstacks == 1 && first->callstacks[0]->n_frames == 3);
	CHECK(first && first->n_frames == 3 && first->n_mappings == 2 && first->n_build_ids == 1);
	if (first && first->n_frames == 3 && first->n_build_ids == 1) {
		CHECK_EQ(first->frames[0]->line, 12); /* Python's, outermost */
		CHECK_EQ(first->frames[0]->kind, 3);
		CHECK_EQ(first->frames[1]->rel_pc, 0x1234);
		CHECK_EQ(first->frames[1]->line, 9); /* then what the other is inlined into */
		CHECK_EQ(first->frames[2]->line, 3);
		CHECK_EQ(first->build_ids[0]->bytes.len, 3);
		CHECK(!memcmp(first->build_ids[0]->bytes.data, "\x00\xff\xa1", 3));
	}
	packets_free(&p);
}

static void one_process(void)
{
	struct packets p;
	size_t processes = 0;

	write_everything(in_scratch("a.kprof"));
	p = exported("a.kprof", "one.pftrace", 9);
	for (size_t i = 0; i < p.nr; i++) {
		const Pf__TrackDescriptor *t = p.list[i]->track_descriptor;

		CHECK(!p.list[i]->perf_sample);
		processes += t && t->process;
		CHECK(!t || !t->thread || t->thread->pid == 9);
	}
	CHECK_EQ(processes, 1);
	CHECK_EQ(p.ns[event(&p, "aten::add", 1, 0)], MONO_NS + 1500);
	check_nesting(&p);
	packets_free(&p);
}

static void compressed_and_repeatable(void)
{
	static char text[1 << 20];
	char *plain = NULL, *again = NULL;
	size_t nr = 0, nr_again = 0;
	gzFile gz;

	write_everything(in_scratch("a.kprof"));
	CHECK_EQ(export_as(in_scratch("a.kprof"),
			   (struct kprof_export_opts){.path = in_scratch("b.pftrace")}),
		 0);
	CHECK_EQ(
		export_as(in_scratch("a.kprof"), (struct kprof_export_opts){.path = in_scratch("c"),
									    .format = "perfetto"}),
		0);
	CHECK_EQ(export_as(in_scratch("a.kprof"),
			   (struct kprof_export_opts){.path = in_scratch("b.pftrace.gz")}),
		 0);
	CHECK_EQ(read_file(in_scratch("b.pftrace"), 64 << 20, &plain, &nr), 0);
	CHECK_EQ(read_file(in_scratch("c"), 64 << 20, &again, &nr_again), 0);
	CHECK(nr == nr_again && !memcmp(plain, again, nr));
	gz = gzopen(in_scratch("b.pftrace.gz"), "rb");
	CHECK_EQ(gzread(gz, text, sizeof(text)), nr);
	CHECK(!memcmp(plain, text, nr));
	gzclose(gz);
	free(plain);
	free(again);
}

/* A name that no buffer holds, and bytes that are no text. */
static void names_of_any_bytes(void)
{
	const size_t bytes = 600000;
	char *huge = malloc(bytes + 1);
	struct packets p;

	memset(huge, 'x', bytes);
	huge[bytes] = 0;
	made__start(&m, in_scratch("h.kprof"));
	made__process(&m, 7, 1, "python3");
	made__thread(&m, 7, 8, "t");
	span(0, 100, 200, made__what(&m, huge, huge, "cpu_op", 0), 0);
	span(0, 300, 400, made__what(&m, "a\"\n\xff\xc3\xa4", "", "cpu_op", 0), 0);
	made__finish(&m);
	p = exported("h.kprof", "h.pftrace", 0);
	CHECK_EQ(p.ns[event(&p, huge, 1, 0)], MONO_NS + 100);
	CHECK_EQ(p.ns[event(&p, "a\"\n\\xff\xc3\xa4", 1, 0)], MONO_NS + 300);
	packets_free(&p);
	free(huge);
}

static const char *process_name(const struct packets *p, uint32_t pid)
{
	const char *name = NULL;

	for (size_t i = 0; i < p->nr; i++) {
		const Pf__TrackDescriptor *track = p->list[i]->track_descriptor;

		if (!track || track->uuid != PROCESS_TRACK(pid))
			continue;
		CHECK(!name);
		name = track->process->name;
	}
	return name;
}

/* The names that the JSON has (tests/unit/sink/chrome/device.c). */
static void names_of_processes(void)
{
	struct packets p;

	made__start(&m, in_scratch("r.kprof"));
	made__process(&m, 7, 1, "first");
	made__process(&m, 9, 1, "");
	made__process_at(&m, 5000, 7, 9, "second");
	made__thread(&m, 11, 11, "t");
	made__finish(&m);
	p = exported("r.kprof", "r.pftrace", 0);
	CHECK_STR(process_name(&p, 7), "second");
	CHECK_STR(process_name(&p, 9), "process 9");
	CHECK_STR(process_name(&p, 11), "process 11");
	packets_free(&p);
}

static void without_anything(void)
{
	struct packets p;
	size_t i;

	made__start(&m, in_scratch("e.kprof"));
	made__finish(&m);
	p = exported("e.kprof", "e.pftrace", 0);
	i = event(&p, "Recording", 1, 0);
	CHECK(value(&p, i, "complete")->bool_value);
	CHECK(strstr(value(&p, i, "kprof")->json_value, "\"fired\": 9"));
	CHECK_EQ(p.ns[end_of(&p, i)], END_NS);
	packets_free(&p);
}

static void cut_short(void)
{
	struct packets p;
	size_t i;

	write_everything(in_scratch("a.kprof"));
	CHECK_EQ(truncate(in_scratch("a.kprof"), 400), 0);
	p = exported("a.kprof", "cut.pftrace", 0);
	i = event(&p, "Recording", 1, 0);
	CHECK(!value(&p, i, "complete")->bool_value);
	check_nesting(&p);
	packets_free(&p);
}

static void setup(void)
{
	const char *keep = getenv("KPROF_PFTRACE_CAPTURE");

	scratch__make();
	if (keep)
		write_everything(keep);
}

UNIT_MAIN(TEST(setup), TEST(clocks), TEST(values_in_their_types), TEST(the_recording),
	  TEST(devices), TEST(samples_with_stacks), TEST(one_process),
	  TEST(compressed_and_repeatable), TEST(names_of_any_bytes), TEST(names_of_processes),
	  TEST(without_anything), TEST(cut_short), TEST(scratch__remove))
