// SPDX-License-Identifier: BSD-2-Clause
/*
 * A request of OpenTelemetry's protocol (OTLP) that has samples as profiles: what an OpenTelemetry
 * collector, Pyroscope and Parca take. They differ in what else they demand, so this is what all of
 * them take: one value for each sample, no times of samples, a period type in any case, no profile
 * without samples, and an empty first element of each table, also of that of links.
 *
 * There is a resource for each process; on a machine of which all processes were recorded, those
 * that began and ended meanwhile share one by name and container. It has a profile of the CPU's
 * samples, and one of waits, whose values are the time waited.
 *
 * Resources are packed one after the other; the dictionary follows them.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/resource/resource.h"
#include "sink/profile/otlp_tables.h"
#include "sink/profile/sums.h"
#include "sink/sink.h"
#include "sink/write/write.h"
#include "util/error.h"
#include "util/util.h"

#define SCOPE_NAME "kprof"
#define PROFILE_ID_BYTES 16
#define VARINT_BYTES 10
#define VALUES_TAG (4 << 3 | PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED)

/* The processes of a resource. */
struct group {
	const struct tl_process *process; /* the first; NULL: not known */
	pid_t pid;
	bool passing; /* it stands for several */
};

struct profile { /* the samples of one resource that are of one kind */
	/* Samples without their values, to find what has the same stack and attributes. */
	struct otlp_table samples;
	int64_t *values; /* by index of the sample */
	size_t cap_values;
	uint64_t count, weight_ns;
};

struct otlp {
	struct kprof_capture *t;
	const struct kprof_export_opts *opts;
	struct resource_opts resource;
	struct pod_names_list pods;
	struct jsonw w; /* only its buffer is used */
	ProtobufCBuffer buffer;

	struct sums sums;
	struct otlp_tables tables;
	struct group *groups;
	size_t nr_groups, cap_groups;
	struct map64 by_thread;  /* group + 1, by the thread's index */
	struct map64 by_process; /* group + 1, by the address of the process or its PID */
	struct map64 by_name;    /* group + 1, by the hash of what passing processes share */
};

static int no_memory(void)
{
	return error_set(-ENOMEM, NULL, "no memory for an OTLP profile");
}

static void append(ProtobufCBuffer *buffer, size_t bytes, const uint8_t *data)
{
	struct otlp *o = (void *)((char *)buffer - offsetof(struct otlp, buffer));

	jsonw__raw(&o->w, (const char *)data, bytes);
}

static int64_t signed_of(uint64_t v)
{
	return v < INT64_MAX ? (int64_t)v : INT64_MAX;
}

/* ---- groups ---- */

/* What processes share that have the same labels, but for their PIDs. */
static uint64_t kind_of(const struct tl_process *p)
{
	char container[CONTAINER_ID_BYTES] = "", pod[CONTAINER_ID_BYTES] = "";
	uint64_t h = hash64_text(hash64_text(0, p->comm), p->host);

	container_id(p->cgroup, container);
	container_pod(p->cgroup, pod);
	return hash64_text(hash64_text(hash64_text(h, p->exe), container), pod) >> 1;
}

static uint64_t *group_slot(struct otlp *o, const struct tl_process *p, pid_t pid, bool passing)
{
	if (passing)
		return map64__at(&o->by_name, kind_of(p));
	return map64__at(&o->by_process, p ? (uintptr_t)p : (uint64_t)(uint32_t)pid);
}

/* The group of a thread + 1; 0: no memory, and the error is set. */
static uint64_t group_of(struct otlp *o, uint32_t thread)
{
	uint64_t *known = map64__at(&o->by_thread, thread), *slot;
	const struct tl_thread *th = timeline__thread(o->t, thread);
	const struct tl_process *p;
	bool passing;

	if (known && *known)
		return *known;
	p = timeline__process_at(o->t, th->pid, th->start_ns);
	passing = p && timeline__is_passing(o->t, p);
	slot = group_slot(o, p, th->pid, passing);
	if (!known || !slot ||
	    vec_grow((void **)&o->groups, &o->cap_groups, o->nr_groups, sizeof(*o->groups))) {
		no_memory();
		return 0;
	}
	if (!*slot) {
		o->groups[o->nr_groups] =
			(struct group){.process = p, .pid = th->pid, .passing = passing};
		*slot = ++o->nr_groups;
	}
	return *known = *slot;
}

static int by_group(const void *a, const void *b, void *ctx)
{
	struct otlp *o = ctx;
	const struct sum *x = a, *y = b;
	uint64_t gx = map64__get(&o->by_thread, x->thread),
		 gy = map64__get(&o->by_thread, y->thread);

	if (gx != gy)
		return gx < gy ? -1 : 1;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->stack != y->stack)
		return x->stack < y->stack ? -1 : 1;
	return (int)x->variant - (int)y->variant;
}

/* ---- samples ---- */

static int attributes_of(struct otlp *o, const struct sum *sum, int32_t list[3], size_t *nr)
{
	const struct tl_thread *th = timeline__thread(o->t, sum->thread);
	int err = otlp_tables__attribute(&o->tables, "thread.name", th->title, 0, &list[0]);

	if (!err)
		err = otlp_tables__attribute(&o->tables, "thread.id", NULL, th->tid, &list[1]);
	*nr = 2;
	if (!err && sum->variant & (SUM_GIL | SUM_GIL_WAIT))
		err = otlp_tables__attribute(&o->tables, "gil",
					     sum->variant & SUM_GIL ? "holds" : "waits", 0,
					     &list[(*nr)++]);
	return err;
}

static int add_sum(struct otlp *o, struct profile *p, const struct sum *sum)
{
	Otlp__Sample sample = OTLP__SAMPLE__INIT;
	bool off_cpu = sum->variant & SUM_OFF_CPU, none = !timeline__stack(o->t, sum->stack);
	size_t known = p->samples.nr;
	int32_t attributes[3], index;
	char note[SUM_NOTE_BYTES];
	const char *outer = none                            ? "[no stack]"
			    : sum->variant & SUM_INCOMPLETE ? "[incomplete]"
							    : NULL;
	uint64_t value = off_cpu ? sum->weight_ns : sum->samples, all;
	int err = otlp_tables__stack(&o->tables, o->t, sum->stack,
				     off_cpu ? sum_note(sum, note) : NULL, outer, &sample.stack);

	if (!err)
		err = attributes_of(o, sum, attributes, &sample.n_attributes);
	sample.attributes = attributes;
	if (!err && vec_grow((void **)&p->values, &p->cap_values, known, sizeof(*p->values)))
		err = no_memory();
	if (!err)
		err = otlp_table__add(&p->samples, &sample.base, &index);
	if (err)
		return err;
	if (p->samples.nr > known)
		p->values[index] = 0;
	all = (uint64_t)p->values[index];
	add_capped(&all, value);
	p->values[index] = signed_of(all);
	add_capped(&p->count, sum->samples);
	add_capped(&p->weight_ns, sum->weight_ns);
	return 0;
}

/* Appends its value to each sample: a list of one varint. */
static int put_values(struct profile *p)
{
	for (size_t i = 0; i < p->samples.nr; i++) {
		ProtobufCBinaryData *s = &p->samples.items[i];
		uint8_t *more = realloc(s->data, s->len + 2 + VARINT_BYTES);
		uint64_t v = (uint64_t)p->values[i];
		size_t at = s->len + 2;

		if (!more)
			return no_memory();
		s->data = more;
		for (; v >= 0x80; v >>= 7)
			more[at++] = (uint8_t)(v | 0x80);
		more[at++] = (uint8_t)v;
		more[s->len] = VALUES_TAG;
		more[s->len + 1] = (uint8_t)(at - s->len - 2);
		s->len = at;
	}
	return 0;
}

static void profile__free(struct profile *p)
{
	otlp_table__free(&p->samples);
	free(p->values);
}

/* ---- profiles ---- */

struct filled {
	Otlp__Profile profile;
	Otlp__ValueType type, period_type;
	uint8_t id[PROFILE_ID_BYTES];
};

/* The same whenever it is made of the same samples: a receiver can tell what it has already. */
static void set_id(const struct otlp *o, struct filled *f, const struct group *g, bool off_cpu)
{
	const struct kprof_capture_info *info = kprof_capture_info(o->t);
	const char *host = kprof_capture_meta(o->t, "host");
	uint64_t half[2];

	half[0] = hash64_text(hash64(info->start_real_ns) ^ info->start_mono_ns, host ?: "");
	/* the group's number: processes that had a PID in turn can have the same name */
	half[1] = hash64(half[0] ^ (uint64_t)g->pid << 1 ^ off_cpu) ^ (uint64_t)(g - o->groups);
	half[1] = hash64_text(half[1], g->process ? g->process->comm : "") | 1;
	memcpy(f->id, half, sizeof(f->id));
	f->profile.profile_id = (ProtobufCBinaryData){.len = sizeof(f->id), .data = f->id};
}

static int fill(struct otlp *o, struct filled *f, struct profile *p, const struct group *g,
		bool off_cpu)
{
	const struct kprof_capture_info *info = kprof_capture_info(o->t);
	struct otlp_tables *t = &o->tables;
	int err = put_values(p);

	otlp__profile__init(&f->profile);
	otlp__value_type__init(&f->type);
	otlp__value_type__init(&f->period_type);
	f->profile.sample_type = &f->type;
	f->profile.period_type = &f->period_type;
	if (!err)
		err = otlp_tables__string(t, off_cpu ? "off_cpu" : "samples", &f->type.type);
	if (!err)
		err = otlp_tables__string(t, off_cpu ? "nanoseconds" : "count", &f->type.unit);
	if (!err && !off_cpu)
		err = otlp_tables__string(t, "cpu", &f->period_type.type);
	if (!err && !off_cpu)
		err = otlp_tables__string(t, "nanoseconds", &f->period_type.unit);
	/*
	 * The CPU time that a sample stands for, as these samples have it: receivers multiply by
	 * it, and what they get is the time that was measured, also if the rate changed.
	 */
	if (!off_cpu)
		f->profile.period = signed_of(p->weight_ns / p->count) ?: 1;
	f->profile.samples = p->samples.items;
	f->profile.n_samples = p->samples.nr;
	f->profile.time_unix_nano = info->start_real_ns;
	f->profile.duration_nano = info->end_mono_ns - info->start_mono_ns;
	set_id(o, f, g, off_cpu);
	return err;
}

/* ---- resources ---- */

struct made_attributes {
	Otlp__KeyValue of[ARRAY_SIZE(((struct resource *)NULL)->labels)];
	Otlp__AnyValue values[ARRAY_SIZE(((struct resource *)NULL)->labels)];
	Otlp__KeyValue *list[ARRAY_SIZE(((struct resource *)NULL)->labels)];
};

static int put_attributes(struct made_attributes *m, const struct resource *r)
{
	for (size_t i = 0; i < r->nr; i++) {
		otlp__key_value__init(&m->of[i]);
		otlp__any_value__init(&m->values[i]);
		m->list[i] = &m->of[i];
		m->of[i].key = r->labels[i].key;
		m->of[i].value = &m->values[i];
		m->values[i].value_case = OTLP__ANY_VALUE__VALUE_NUMBER;
		m->values[i].number = r->labels[i].number;
		if (!r->labels[i].text)
			continue;
		m->values[i].value_case = OTLP__ANY_VALUE__VALUE_TEXT;
		m->values[i].text = text_copy(r->labels[i].text);
		if (!m->values[i].text)
			return no_memory();
	}
	return 0;
}

static void pack(struct otlp *o, Otlp__ResourceProfiles *rp, uint8_t *bytes, size_t nr)
{
	ProtobufCBinaryData list = {.len = nr, .data = bytes};
	Otlp__Request part = OTLP__REQUEST__INIT;

	otlp__resource_profiles__pack(rp, bytes);
	part.resource_profiles = &list;
	part.n_resource_profiles = 1;
	protobuf_c_message_pack_to_buffer(&part.base, &o->buffer);
}

static int put_resource(struct otlp *o, const struct resource *r, Otlp__ScopeProfiles *scope)
{
	struct made_attributes *m = calloc(1, sizeof(*m));
	Otlp__ResourceProfiles rp = OTLP__RESOURCE_PROFILES__INIT;
	Otlp__Resource resource = OTLP__RESOURCE__INIT;
	uint8_t *bytes;
	size_t nr;
	int err = m ? put_attributes(m, r) : no_memory();

	if (!err) {
		rp.resource = &resource;
		rp.scope_profiles = scope;
		resource.attributes = m->list;
		resource.n_attributes = r->nr;
		nr = otlp__resource_profiles__get_packed_size(&rp);
		bytes = malloc(nr);
		if (bytes)
			pack(o, &rp, bytes, nr);
		else
			err = no_memory();
		free(bytes);
	}
	for (size_t i = 0; m && i < r->nr; i++)
		if (m->values[i].value_case == OTLP__ANY_VALUE__VALUE_TEXT)
			free(m->values[i].text);
	free(m);
	return err;
}

static int put_profiles(struct otlp *o, const struct group *g, struct profile parts[2])
{
	Otlp__ScopeProfiles scope = OTLP__SCOPE_PROFILES__INIT;
	Otlp__Scope name = OTLP__SCOPE__INIT;
	Otlp__Profile *list[2];
	struct filled filled[2];
	struct resource resource;
	char version[32];
	int err = 0;

	snprintf(version, sizeof(version), "%s", kprof_version());
	name.name = (char[]){SCOPE_NAME};
	name.version = version;
	scope.scope = &name;
	scope.profiles = list;
	for (size_t i = 0; i < 2 && !err; i++) {
		if (!parts[i].samples.nr)
			continue;
		err = fill(o, &filled[i], &parts[i], g, i);
		list[scope.n_profiles++] = &filled[i].profile;
	}
	if (!err)
		err = resource__fill(&resource, o->t, g->process, g->pid, !g->passing,
				     &o->resource);
	if (err)
		return err;
	err = put_resource(o, &resource, &scope);
	resource__free(&resource);
	return err;
}

/* Writes the resource of the sums from i on, as far as they are one's; *next: those behind. */
static int put_group(struct otlp *o, size_t i, size_t *next)
{
	uint64_t group = map64__get(&o->by_thread, o->sums.list[i].thread);
	struct profile parts[2] = {0};
	int err = 0;

	for (; i < o->sums.nr && !err; i++) {
		const struct sum *sum = &o->sums.list[i];

		if (map64__get(&o->by_thread, sum->thread) != group)
			break;
		err = add_sum(o, &parts[!!(sum->variant & SUM_OFF_CPU)], sum);
	}
	if (!err)
		err = put_profiles(o, &o->groups[group - 1], parts);
	profile__free(&parts[0]);
	profile__free(&parts[1]);
	*next = i;
	return err ? err : o->w.err;
}

/* ---- the request ---- */

static void put_dictionary(struct otlp *o)
{
	Otlp__Dictionary d = OTLP__DICTIONARY__INIT;
	Otlp__Request part = OTLP__REQUEST__INIT;
	struct otlp_table *of = o->tables.of;

	d.n_mappings = of[OTLP_MAPPINGS].nr;
	d.mappings = of[OTLP_MAPPINGS].items;
	d.n_locations = of[OTLP_LOCATIONS].nr;
	d.locations = of[OTLP_LOCATIONS].items;
	d.n_functions = of[OTLP_FUNCTIONS].nr;
	d.functions = of[OTLP_FUNCTIONS].items;
	d.n_links = of[OTLP_LINKS].nr;
	d.links = of[OTLP_LINKS].items;
	d.n_strings = of[OTLP_STRINGS].nr;
	d.strings = of[OTLP_STRINGS].items;
	d.n_attributes = of[OTLP_ATTRIBUTES].nr;
	d.attributes = of[OTLP_ATTRIBUTES].items;
	d.n_stacks = of[OTLP_STACKS].nr;
	d.stacks = of[OTLP_STACKS].items;
	part.dictionary = &d;
	protobuf_c_message_pack_to_buffer(&part.base, &o->buffer);
}

static int put_request(struct otlp *o)
{
	int err = otlp_tables__init(&o->tables);

	for (size_t i = 0; i < o->sums.nr && !err; i++)
		err = group_of(o, o->sums.list[i].thread) ? 0 : -ENOMEM;
	if (!err)
		qsort_r(o->sums.list, o->sums.nr, sizeof(*o->sums.list), by_group, o);
	for (size_t i = 0; i < o->sums.nr && !err;)
		err = put_group(o, i, &i);
	if (!err)
		put_dictionary(o);
	return err ? err : o->w.err;
}

/* The CPU's samples and then the waits; or only these, if they are asked for. */
static int collect(struct otlp *o)
{
	bool waits_only = timeline__shows_waits(o->t);
	int err = waits_only ? 0 : sums__add(&o->sums, o->opts);

	timeline__show_waits(o->t, true);
	if (!err && timeline__shows_waits(o->t))
		err = sums__add(&o->sums, o->opts);
	timeline__show_waits(o->t, waits_only);
	if (!err && !o->sums.nr)
		err = stack_no_samples(o->t, o->opts->pid);
	return err;
}

static bool ends_in(const char *path, const char *suffix)
{
	size_t len = strlen(path), tail = strlen(suffix);

	return len >= tail && !strcmp(path + len - tail, suffix);
}

static int otlp_write(struct kprof_capture *t, const char *path,
		      const struct kprof_export_opts *opts)
{
	struct otlp *o = calloc(1, sizeof(*o));
	int err;

	if (!o)
		return no_memory();
	o->t = o->sums.t = t;
	o->opts = opts;
	o->buffer.append = append;
	o->resource = (struct resource_opts){
		.service = opts->service,
		.labels = opts->labels,
		.nr_labels = opts->nr_labels,
		.pods = &o->pods,
	};
	err = resource_check(&o->resource);
	if (!err)
		err = collect(o);
	if (!err)
		err = stream__start(path, opts, ends_in(path, ".gz"), &o->w);
	if (!err)
		err = stream__end(&o->w, put_request(o));
	sums__free(&o->sums);
	otlp_tables__free(&o->tables);
	map64__free(&o->by_thread);
	map64__free(&o->by_process);
	map64__free(&o->by_name);
	pod_names_list__free(&o->pods);
	free(o->groups);
	free(o);
	return err;
}

const struct sink_ops sink_otlp = {
	.name = "otlp",
	.suffixes = {".otlp.pb", ".otlp.pb.gz"},
	.samples = true,
	.write = otlp_write,
};
