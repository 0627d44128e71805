// SPDX-License-Identifier: BSD-2-Clause
#include <zlib.h>

#include "sink/profile/pprof.pb-c.h"
#include "util/utf8.h"
#include "stacks_fixture.h"

/*
 * The file, unpacked and parsed by protobuf-c; NULL, with a failed check, where that does not work.
 */
static Pprof__Profile *profile_of(const char *path)
{
	static uint8_t bytes[8 << 20];
	gzFile gz = gzopen(path, "rb");
	int nr = gz ? gzread(gz, bytes, sizeof(bytes)) : -1;
	Pprof__Profile *p;

	CHECK(gz && !gzdirect(gz));
	CHECK(nr > 0 && nr < (int)sizeof(bytes));
	if (gz)
		CHECK_EQ(gzclose(gz), Z_OK);
	p = nr > 0 ? pprof__profile__unpack(NULL, (size_t)nr, bytes) : NULL;
	CHECK(p);
	return p;
}

static const char *text(const Pprof__Profile *p, int64_t index)
{
	CHECK(index >= 0 && (size_t)index < p->n_strings);
	return index >= 0 && (size_t)index < p->n_strings ? p->strings[index] : "?";
}

static const Pprof__Function *function(const Pprof__Profile *p, uint64_t id)
{
	for (size_t i = 0; i < p->n_function; i++)
		if (p->function[i]->id == id)
			return p->function[i];
	CHECK(!"a function that there is");
	return NULL;
}

static const Pprof__Location *location(const Pprof__Profile *p, uint64_t id)
{
	for (size_t i = 0; i < p->n_location; i++)
		if (p->location[i]->id == id)
			return p->location[i];
	CHECK(!"a location that there is");
	return NULL;
}

/* "inlined<outer<train 3", innermost first, and so on: functions, samples. */
static const char *describe(const Pprof__Profile *p, const Pprof__Sample *s, char *out, size_t room)
{
	size_t at = 0;

	for (size_t i = 0; i < s->n_location; i++) {
		const Pprof__Location *l = location(p, s->location[i]);

		for (size_t n = 0; l && n < l->n_line; n++) {
			const Pprof__Function *f = function(p, l->line[n]->function);

			at += (size_t)snprintf(out + at, room - at, "%s<",
					       f ? text(p, f->name) : "?");
		}
	}
	snprintf(out + at, room - at, " %s %lld %lld", text(p, s->label[0]->text),
		 (long long)s->value[0], (long long)s->value[1]);
	return out;
}

static void known(void)
{
	static const char *const expected[] = {
		"inlined<outer<aten::add<train<main< main 4 40000000",
		"train<main< main 1 10000000",
		"sys_read<inlined<outer<aten::add<train<main< main 1 10000000",
		"inlined<outer<aten::add<train<main< worker 1 10000000",
		"main< worker 1 1001",
		"main<[incomplete]< worker 1 10000000",
		"[no stack]< worker 1 10000000",
		"[off CPU]<main< worker 1 10000000",
	};
	const Pprof__Location *l;
	Pprof__Profile *p;
	char seen[512];

	known_capture(in_scratch("a.kprof"));
	free(exported_as("a.kprof", "a.pb.gz"));
	p = profile_of(in_scratch("a.pb.gz"));
	if (!p)
		return;
	CHECK_STR(p->strings[0], "");
	CHECK_EQ(p->n_sample_type, 2);
	CHECK_STR(text(p, p->sample_type[0]->type), "samples");
	CHECK_STR(text(p, p->sample_type[0]->unit), "count");
	CHECK_STR(text(p, p->sample_type[1]->type), "cpu");
	CHECK_STR(text(p, p->sample_type[1]->unit), "nanoseconds");
	CHECK_EQ(p->period, 10101010);
	CHECK_EQ(p->time_nanos, REAL_NS);
	CHECK_EQ(p->duration_nanos, END_NS - MONO_NS);
	CHECK_EQ(p->n_sample, ARRAY_SIZE(expected));
	for (size_t i = 0; i < ARRAY_SIZE(expected) && i < p->n_sample; i++) {
		CHECK_STR(describe(p, p->sample[i], seen, sizeof(seen)), expected[i]);
		CHECK_EQ(p->sample[i]->label[1]->number, i < 3 ? 7 : 8);
		CHECK_EQ(p->sample[i]->label[2]->number, 7);
	}
	CHECK_EQ(p->n_mapping, 2);
	/* Parca refuses other numbers. */
	for (size_t i = 0; i < p->n_mapping; i++)
		CHECK_EQ(p->mapping[i]->id, i + 1);
	for (size_t i = 0; i < p->n_function; i++)
		CHECK_EQ(p->function[i]->id, i + 1);
	for (size_t i = 0; i < p->n_location; i++)
		CHECK_EQ(p->location[i]->id, i + 1);
	CHECK_STR(text(p, p->mapping[0]->filename), "/lib/libx.so");
	CHECK_STR(text(p, p->mapping[0]->build_id), "c0ffee");
	l = location(p, p->sample[0]->location[0]);
	CHECK_EQ(l->mapping, p->mapping[0]->id);
	CHECK_EQ(l->address, 0x1003);
	CHECK_EQ(l->line[0]->line, 3);
	CHECK_EQ(l->line[1]->line, 7);
	CHECK_STR(text(p, function(p, location(p, p->sample[1]->location[0])->line[0]->function)
				  ->filename),
		  "/app/train.py");
	pprof__profile__free_unpacked(p, NULL);
}

static bool is_utf8(const char *s)
{
	for (size_t left = strlen(s), used; left; s += used, left -= used) {
		used = utf8_len(s, left);
		if (!used)
			return false;
	}
	return true;
}

static void hostile(void)
{
	for (uint64_t seed = 1; seed <= 10; seed++) {
		Pprof__Profile *p;
		int64_t samples = 0, ns = 0;
		static char out[4 << 20];

		hostile_capture(in_scratch("h.kprof"), seed);
		free(exported_as("h.kprof", "h.pb.gz"));
		p = profile_of(in_scratch("h.pb.gz"));
		if (!p)
			return;
		for (size_t i = 0; i < p->n_strings; i++)
			CHECK(is_utf8(p->strings[i]));
		for (size_t i = 0; i < p->n_sample; i++) {
			describe(p, p->sample[i], out, sizeof(out));
			samples += p->sample[i]->value[0];
			ns += p->sample[i]->value[1];
		}
		CHECK_EQ(samples, HOSTILE_NAMES);
		CHECK_EQ(ns, HOSTILE_NAMES * PERIOD_NS);
		pprof__profile__free_unpacked(p, NULL);
	}
}

/* Samples of one stack that differ in who had the interpreter's lock stay apart. */
static void locks(void)
{
	static const uint32_t flags[] = {KPROF_SAMPLE_GIL, 0, KPROF_SAMPLE_GIL_WAIT,
					 KPROF_SAMPLE_GIL};
	static const char *const expected[] = {"holds", NULL, "waits"};
	struct made_stacks s;
	Pprof__Profile *p;

	known_tables(&s, in_scratch("g.kprof"));
	for (uint32_t i = 0; i < ARRAY_SIZE(flags); i++)
		made__sample(&s, i * 1000, 0, 1, PERIOD_NS, WHOLE | flags[i]);
	made__finish(&s.m);
	free(exported_as("g.kprof", "g.pb.gz"));
	p = profile_of(in_scratch("g.pb.gz"));
	if (!p)
		return;
	CHECK_EQ(p->n_sample, 3);
	for (size_t i = 0; i < 3 && i < p->n_sample; i++) {
		const Pprof__Sample *sample = p->sample[i];

		CHECK_EQ(sample->value[0], i ? 1 : 2);
		CHECK_EQ(sample->n_label, expected[i] ? 4 : 3);
		if (!expected[i] || sample->n_label < 4)
			continue;
		CHECK_STR(text(p, sample->label[3]->key), "gil");
		CHECK_STR(text(p, sample->label[3]->text), expected[i]);
	}
	pprof__profile__free_unpacked(p, NULL);
}

UNIT_MAIN({"(set-up)", scratch__make}, TEST(known), TEST(locks), TEST(hostile),
	  {"(clean-up)", scratch__remove})
