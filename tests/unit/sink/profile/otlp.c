// SPDX-License-Identifier: BSD-2-Clause
/* tests/readers/check_otlp.py has the rules of the format; here is what samples become. */
#include <zlib.h>

#include "sink/profile/otlp.pb-c.h"
#include "stacks_fixture.h"

#define POD "0a1b2c3d-1111-2222-3333-444455556666"
#define ID "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

/* The file, unpacked and parsed by protobuf-c. */
static Otlp__Request *request_of(const char *name)
{
	static uint8_t bytes[8 << 20];
	gzFile gz = gzopen(in_scratch(name), "rb"); /* reads what is not compressed, too */
	int nr = gz ? gzread(gz, bytes, sizeof(bytes)) : -1;
	Otlp__Request *r;

	CHECK(nr > 0 && nr < (int)sizeof(bytes));
	CHECK_EQ(gz ? gzdirect(gz) : 2, !strstr(name, ".gz"));
	if (gz)
		gzclose(gz);
	r = nr > 0 ? otlp__request__unpack(NULL, (size_t)nr, bytes) : NULL;
	if (!r)
		abort();
	return r;
}

static const char *string(const Otlp__Request *r, int32_t i)
{
	static char texts[8][256];
	static int next;
	const ProtobufCBinaryData *s = &r->dictionary->strings[i];
	char *to = texts[next++ & 7];

	snprintf(to, sizeof(texts[0]), "%.*s", (int)s->len, (const char *)s->data);
	return to;
}

static void put_location(const Otlp__Request *r, int32_t i, char *out, size_t room)
{
	const ProtobufCBinaryData *b = &r->dictionary->locations[i], *f;
	Otlp__Location *l = otlp__location__unpack(NULL, b->len, b->data);
	Otlp__Function *function;

	CHECK(i > 0 && l);
	for (size_t n = 0; n < l->n_lines; n++) {
		f = &r->dictionary->functions[l->lines[n]->function];
		function = otlp__function__unpack(NULL, f->len, f->data);
		snprintf(out + strlen(out), room - strlen(out), "%s<", string(r, function->name));
		otlp__function__free_unpacked(function, NULL);
	}
	otlp__location__free_unpacked(l, NULL);
}

/* "inlined<outer<train 3": functions, innermost first, and the value. */
static const char *describe(const Otlp__Request *r, const ProtobufCBinaryData *b)
{
	static char out[4096];
	Otlp__Sample *s = otlp__sample__unpack(NULL, b->len, b->data);
	const ProtobufCBinaryData *at = &r->dictionary->stacks[s->stack];
	Otlp__Stack *stack = otlp__stack__unpack(NULL, at->len, at->data);

	out[0] = '\0';
	for (size_t i = 0; i < stack->n_locations; i++)
		put_location(r, stack->locations[i], out, sizeof(out));
	CHECK_EQ(s->n_values, 1);
	CHECK_EQ(s->n_attributes, 2);
	snprintf(out + strlen(out), sizeof(out) - strlen(out), " %lld", (long long)s->values[0]);
	otlp__stack__free_unpacked(stack, NULL);
	otlp__sample__free_unpacked(s, NULL);
	return out;
}

static Otlp__ResourceProfiles *resource_of(const Otlp__Request *r, size_t i)
{
	const ProtobufCBinaryData *b = &r->resource_profiles[i];
	Otlp__ResourceProfiles *rp = otlp__resource_profiles__unpack(NULL, b->len, b->data);

	if (!rp)
		abort();
	return rp;
}

/* The text of an attribute, or its number as one; "": there is none. */
static const char *attribute(const Otlp__ResourceProfiles *rp, const char *key)
{
	static char number[24];

	for (size_t i = 0; i < rp->resource->n_attributes; i++) {
		const Otlp__KeyValue *kv = rp->resource->attributes[i];

		if (strcmp(kv->key, key))
			continue;
		if (kv->value->value_case == OTLP__ANY_VALUE__VALUE_TEXT)
			return kv->value->text;
		snprintf(number, sizeof(number), "%lld", (long long)kv->value->number);
		return number;
	}
	return "";
}

static bool has(const Otlp__Request *r, const Otlp__Profile *p, const char *expected)
{
	for (size_t i = 0; i < p->n_samples; i++)
		if (!strcmp(describe(r, &p->samples[i]), expected))
			return true;
	printf("# not there: %s\n", expected);
	return false;
}

static void known(void)
{
	static const char *const expected[] = {
		"inlined<outer<aten::add<train<main< 4",
		"train<main< 1",
		"sys_read<inlined<outer<aten::add<train<main< 1",
		"inlined<outer<aten::add<train<main< 1",
		"main< 1",
		"main<[incomplete]< 1",
		"[no stack]< 1",
	};
	const Otlp__Profile *p;
	Otlp__ResourceProfiles *rp;
	Otlp__Request *r;

	known_capture(in_scratch("a.kprof"));
	free(exported_as("a.kprof", "a.otlp.pb.gz"));
	r = request_of("a.otlp.pb.gz");
	CHECK_EQ(r->n_resource_profiles, 1);
	rp = resource_of(r, 0);
	CHECK_STR(attribute(rp, "service.name"), "prog");
	CHECK_STR(attribute(rp, "process.pid"), "7");
	CHECK_STR(attribute(rp, "container.id"), "");
	CHECK_EQ(rp->scope_profiles->n_profiles, 2);
	p = rp->scope_profiles->profiles[0];
	CHECK_STR(string(r, p->sample_type->type), "samples");
	CHECK_STR(string(r, p->period_type->type), "cpu");
	CHECK_EQ(p->period, (9 * PERIOD_NS + 1001) / 10);
	CHECK_EQ(p->time_unix_nano, REAL_NS);
	CHECK_EQ(p->duration_nano, END_NS - MONO_NS);
	CHECK_EQ(p->n_samples, ARRAY_SIZE(expected));
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
		CHECK(has(r, p, expected[i]));
	p = rp->scope_profiles->profiles[1];
	CHECK_STR(string(r, p->sample_type->type), "off_cpu");
	CHECK_EQ(p->period, 0);
	CHECK(p->period_type);
	CHECK_EQ(p->n_samples, 1);
	CHECK_STR(describe(r, &p->samples[0]), "[off CPU]<main< 10000000");
	otlp__resource_profiles__free_unpacked(rp, NULL);
	otlp__request__free_unpacked(r, NULL);
}

/* Two processes, of which one is a pod's and has a rank. */
static void resources_capture(const char *path)
{
	static const char cgroup[] =
		"/kubepods.slice/kubepods-pod0a1b2c3d_1111_2222_3333_444455556666.slice/"
		"cri-containerd-" ID ".scope";
	struct made_stacks s;

	known_tables(&s, path);
	made__meta(&s.m, "host", "\"node7\"");
	made__meta(&s.m, "distributed.9", "{\"rank\": 3}");
	made__process(&s.m, 9, 1, "trainer");
	made__thread(&s.m, 9, 9, "trainer");
	made__put(&s.m,
		  (struct store_record){STORE_OWNER, .owner = {.pid = 9,
							       .cgroup = made__string(&s.m, cgroup),
							       .start_ns = MONO_NS}});
	made__put(&s.m, (struct store_record){
				STORE_EXECUTABLE,
				.executable = {.pid = 9,
					       .path = made__string(&s.m, "/usr/bin/trainer"),
					       .start_ns = MONO_NS}});
	made__sample(&s, 0, 0, 1, PERIOD_NS, WHOLE);
	made__sample(&s, 1000, 2, 1, PERIOD_NS, WHOLE);
	made__finish(&s.m);
}

static void resources(void)
{
	const char *labels[] = {"team=vision", "host.name=other"};
	const pid_t only = 9;
	struct kprof_export_opts opts = {.path = in_scratch("b.otlp.pb"),
					 .service = "shop",
					 .labels = labels,
					 .nr_labels = 2,
					 .pids = &only,
					 .nr_pids = 1};
	Otlp__ResourceProfiles *rp;
	Otlp__Request *r;

	resources_capture(in_scratch("b.kprof"));
	free(exported_as("b.kprof", "b.otlp.pb"));
	r = request_of("b.otlp.pb");
	CHECK_EQ(r->n_resource_profiles, 2);
	rp = resource_of(r, 1);
	CHECK_STR(attribute(rp, "service.name"), "trainer");
	CHECK_STR(attribute(rp, "container.id"), ID);
	CHECK_STR(attribute(rp, "k8s.pod.uid"), POD);
	CHECK_STR(attribute(rp, "host.name"), "node7");
	CHECK_STR(attribute(rp, "rank"), "3");
	CHECK_STR(attribute(rp, "process.executable.path"), "/usr/bin/trainer");
	otlp__resource_profiles__free_unpacked(rp, NULL);
	otlp__request__free_unpacked(r, NULL);

	CHECK_EQ(export_as(in_scratch("b.kprof"), opts), 0);
	r = request_of("b.otlp.pb");
	CHECK_EQ(r->n_resource_profiles, 1);
	rp = resource_of(r, 0);
	CHECK_STR(attribute(rp, "service.name"), "shop");
	CHECK_STR(attribute(rp, "process.executable.name"), "trainer");
	CHECK_STR(attribute(rp, "team"), "vision");
	CHECK_STR(attribute(rp, "host.name"), "other");
	CHECK_EQ(rp->resource->n_attributes, 9);
	otlp__resource_profiles__free_unpacked(rp, NULL);
	otlp__request__free_unpacked(r, NULL);
	labels[0] = "=x";
	CHECK_EQ(export_as(in_scratch("b.kprof"), opts), -EINVAL);
}

/* A receiver may leave out what has an id that it has seen. */
static void a_pid_used_twice(void)
{
	uint8_t ids[2][16];
	struct made_stacks s;
	Otlp__Request *r;

	known_tables(&s, in_scratch("twice.kprof"));
	for (uint32_t i = 0; i < 2; i++) {
		made__process_at(&s.m, i * 1000, 9, 1, "trainer");
		made__put(&s.m, (struct store_record){STORE_THREAD,
						      .thread = {.index = s.m.threads,
								 .pid = 9,
								 .tid = 9,
								 .name = made__string(&s.m, "main"),
								 .start_ns = MONO_NS + i * 1000}});
		made__sample(&s, i * 1000 + 1, s.m.threads++, 1, PERIOD_NS, WHOLE);
	}
	made__finish(&s.m);
	free(exported_as("twice.kprof", "twice.otlp.pb"));
	r = request_of("twice.otlp.pb");
	CHECK_EQ(r->n_resource_profiles, 2);
	for (size_t i = 0; i < 2; i++) {
		Otlp__ResourceProfiles *rp = resource_of(r, i);
		const Otlp__Profile *p = rp->scope_profiles->profiles[0];

		CHECK_STR(attribute(rp, "process.executable.name"), "trainer");
		CHECK_EQ(p->profile_id.len, 16);
		memcpy(ids[i], p->profile_id.data, 16);
		otlp__resource_profiles__free_unpacked(rp, NULL);
	}
	CHECK(memcmp(ids[0], ids[1], 16));
	otlp__request__free_unpacked(r, NULL);
}

static void hostile(void)
{
	for (uint64_t seed = 1; seed <= 10; seed++) {
		int64_t samples = 0;
		Otlp__Request *r;

		hostile_capture(in_scratch("h.kprof"), seed);
		free(exported_as("h.kprof", "h.otlp.pb"));
		r = request_of("h.otlp.pb");
		for (size_t i = 0; i < r->n_resource_profiles; i++) {
			Otlp__ResourceProfiles *rp = resource_of(r, i);

			for (size_t n = 0; n < rp->scope_profiles->n_profiles; n++) {
				const Otlp__Profile *p = rp->scope_profiles->profiles[n];
				bool counts = !strcmp(string(r, p->sample_type->type), "samples");

				for (size_t k = 0; k < p->n_samples; k++) {
					Otlp__Sample *s = otlp__sample__unpack(
						NULL, p->samples[k].len, p->samples[k].data);

					samples += counts ? s->values[0]
							  : s->values[0] / (int64_t)PERIOD_NS;
					otlp__sample__free_unpacked(s, NULL);
				}
			}
			otlp__resource_profiles__free_unpacked(rp, NULL);
		}
		CHECK_EQ(samples, HOSTILE_NAMES);
		otlp__request__free_unpacked(r, NULL);
	}
}

UNIT_MAIN({"(set-up)", scratch__make}, TEST(known), TEST(resources), TEST(a_pid_used_twice),
	  TEST(hostile), {"(clean-up)", scratch__remove})
