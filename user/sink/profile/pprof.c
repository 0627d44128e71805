// SPDX-License-Identifier: BSD-2-Clause
/*
 * pprof's profile.proto, compressed by gzip. A message's repeated fields may come in any number of
 * pieces. So each sample, location, function and string is packed as a profile of its own, and
 * their concatenation is the whole profile: only which stacks there are is kept in memory.
 *
 * Ids are 1, 2, 3 … in the order of the file, which some receivers demand (Parca).
 *
 * Each module is mapped at 0 and addresses are those of the file, so that pprof finds lines in the
 * file without knowing more.
 */
#include <errno.h>
#include <stdio.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "model/stacks/stacks.h"
#include "sink/profile/pprof.pb-c.h"
#include "sink/profile/sums.h"
#include "sink/write/write.h"
#include "sink/sink.h"
#include "store/store.h"
#include "util/error.h"
#include "util/map64.h"
#include "util/util.h"

struct pprof {
	struct kprof_capture *t;
	const struct kprof_export_opts *opts;
	struct jsonw w; /* only its buffer is used */
	ProtobufCBuffer buffer;

	struct sums sums;

	char **strings; /* strings written so far, by index */
	size_t nr_strings, cap_strings;
	/* Index + 1, by hash; strings with equal hashes take the following keys. */
	struct map64 by_hash;
	struct map64 functions; /* id, by index of the full name << 32 | index of the file */
	struct map64 mappings;  /* id, by the address of the struct tl_module */
	struct map64 frames;    /* id of the location, by frame id */
	struct map64 made_up;   /* the same of one without a frame, by index of its name */
	uint64_t nr_functions, nr_mappings, nr_locations;

	uint64_t *path; /* scratch list: locations of a stack, innermost first */
	size_t nr_path, cap_path;
};

static int no_memory(void)
{
	return error_set(-ENOMEM, NULL, "no memory for a pprof profile");
}

static void append(ProtobufCBuffer *buffer, size_t bytes, const uint8_t *data)
{
	struct pprof *p = (void *)((char *)buffer - offsetof(struct pprof, buffer));

	jsonw__raw(&p->w, (const char *)data, bytes);
}

static void put(struct pprof *p, const Pprof__Profile *part)
{
	protobuf_c_message_pack_to_buffer(&part->base, &p->buffer);
}

/* ---- tables ---- */

static int add_string(struct pprof *p, const char *text, uint64_t *index)
{
	Pprof__Profile part = PPROF__PROFILE__INIT;
	char *copy;

	if (vec_grow((void **)&p->strings, &p->cap_strings, p->nr_strings, sizeof(*p->strings)))
		return no_memory();
	copy = text_copy(text); /* the format's strings are UTF-8 */
	if (!copy)
		return no_memory();
	part.n_strings = 1;
	part.strings = &copy;
	put(p, &part);
	/* The original text is kept, since later strings are compared with it. */
	free(copy);
	copy = strdup(text);
	if (!copy)
		return no_memory();
	*index = p->nr_strings;
	p->strings[p->nr_strings++] = copy;
	return 0;
}

static int string(struct pprof *p, const char *text, int64_t *index)
{
	uint64_t *slot, i = 0;
	int err;

	for (uint64_t hash = hash64_text(0, text) >> 1;; hash++) {
		slot = map64__at(&p->by_hash, hash);
		if (!slot)
			return no_memory();
		if (*slot && strcmp(p->strings[*slot - 1], text) != 0)
			continue;
		if (!*slot) {
			err = add_string(p, text, &i);
			if (err)
				return err;
			*slot = i + 1;
		}
		*index = (int64_t)*slot - 1;
		return 0;
	}
}

static int function(struct pprof *p, const struct tl_line *line, uint64_t *id)
{
	Pprof__Function f = PPROF__FUNCTION__INIT, *list = &f;
	Pprof__Profile part = PPROF__PROFILE__INIT;
	uint64_t *slot;
	int err = string(p, line->function, &f.name);

	if (!err)
		err = string(p, line->full, &f.system_name);
	if (!err)
		err = string(p, line->file, &f.filename);
	if (err)
		return err;
	slot = map64__at(&p->functions, (uint64_t)f.system_name << 32 | (uint64_t)f.filename);
	if (!slot)
		return no_memory();
	if (!*slot) {
		f.id = *slot = ++p->nr_functions;
		part.n_function = 1;
		part.function = &list;
		put(p, &part);
	}
	*id = *slot;
	return 0;
}

static int mapping(struct pprof *p, const struct tl_module *module, uint64_t *id)
{
	Pprof__Mapping m = PPROF__MAPPING__INIT, *list = &m;
	Pprof__Profile part = PPROF__PROFILE__INIT;
	uint64_t *slot = map64__at(&p->mappings, (uintptr_t)module);
	int err;

	if (!slot)
		return no_memory();
	if (!*slot) {
		err = string(p, module->path, &m.filename);
		if (!err)
			err = string(p, module->build_id, &m.build_id);
		if (err)
			return err;
		m.id = *slot = ++p->nr_mappings;
		/*
		 * All names and lines were looked up while recording: pprof need not look for the
		 * files.
		 */
		m.has_functions = m.has_filenames = m.has_lines = m.has_inlined = true;
		part.n_mapping = 1;
		part.mapping = &list;
		put(p, &part);
	}
	*id = *slot;
	return 0;
}

static int put_location(struct pprof *p, uint64_t id, const struct tl_module *module,
			uint64_t address, const struct tl_line *lines, uint32_t nr)
{
	Pprof__Location l = PPROF__LOCATION__INIT, *list = &l;
	Pprof__Profile part = PPROF__PROFILE__INIT;
	Pprof__Line *line = calloc(nr + 1, sizeof(*line)), **of = calloc(nr + 1, sizeof(*of));
	int err = line && of ? 0 : no_memory();

	if (!err && module)
		err = mapping(p, module, &l.mapping);
	for (uint32_t i = 0; i < nr && !err; i++) {
		of[i] = &line[i];
		pprof__line__init(&line[i]);
		line[i].line = lines[i].line;
		err = function(p, &lines[i], &line[i].function);
	}
	if (!err) {
		l.id = id;
		l.address = address;
		l.n_line = nr;
		l.line = of;
		part.n_location = 1;
		part.location = &list;
		put(p, &part);
	}
	free(line);
	free(of);
	return err;
}

/* ---- samples ---- */

static int step(struct pprof *p, uint64_t location)
{
	if (vec_grow((void **)&p->path, &p->cap_path, p->nr_path, sizeof(*p->path)))
		return no_memory();
	p->path[p->nr_path++] = location;
	return 0;
}

/* Adds a frame that has only a name. */
static int step_name(struct pprof *p, const char *name)
{
	const struct tl_line line = {.function = name, .full = name, .file = ""};
	uint64_t *slot;
	int64_t index;
	int err = string(p, name, &index);

	if (err)
		return err;
	slot = map64__at(&p->made_up, (uint64_t)index);
	if (!slot)
		return no_memory();
	if (!*slot) {
		*slot = ++p->nr_locations;
		err = put_location(p, *slot, NULL, 0, &line, 1);
	}
	return err ? err : step(p, *slot);
}

/*
 * The kernel's addresses say where it lies in memory, which is nobody's business who may get to see
 * the profile; and its functions are named already.
 */
static uint64_t address_of(const struct tl_frame *frame)
{
	return frame->kind == TL_FRAME_KERNEL ? 0 : frame->address;
}

static int step_frame(struct pprof *p, const struct tl_frame *frame)
{
	uint64_t *slot = map64__at(&p->frames, frame->id);
	int err = 0;

	if (!slot)
		return no_memory();
	if (!*slot) {
		*slot = ++p->nr_locations;
		err = put_location(p, *slot, frame->module, address_of(frame), frame->lines,
				   frame->nr_lines);
	}
	if (!err)
		err = step(p, *slot);
	return err || !*frame->op ? err : step_name(p, frame->op);
}

static int find_path(struct pprof *p, const struct sum *sum)
{
	const struct tl_stack *stack;
	char note[SUM_NOTE_BYTES];
	int err = 0;

	p->nr_path = 0;
	if (sum->variant & SUM_OFF_CPU)
		err = step_name(p, sum_note(sum, note));
	for (uint32_t id = sum->stack; !err && (stack = timeline__stack(p->t, id));
	     id = stack->parent)
		err = step_frame(p, stack->frame);
	if (!err && !timeline__stack(p->t, sum->stack))
		err = step_name(p, "[no stack]");
	else if (!err && sum->variant & SUM_INCOMPLETE)
		err = step_name(p, "[incomplete]");
	return err;
}

static int64_t signed_of(uint64_t v)
{
	return v < INT64_MAX ? (int64_t)v : INT64_MAX;
}

static int put_sample(struct pprof *p, const struct sum *sum)
{
	const struct tl_thread *thread = timeline__thread(p->t, sum->thread);
	Pprof__Label label[4] = {PPROF__LABEL__INIT, PPROF__LABEL__INIT, PPROF__LABEL__INIT,
				 PPROF__LABEL__INIT};
	Pprof__Label *labels[] = {&label[0], &label[1], &label[2], &label[3]};
	bool gil = sum->variant & (SUM_GIL | SUM_GIL_WAIT);
	Pprof__Sample sample = PPROF__SAMPLE__INIT, *list = &sample;
	Pprof__Profile part = PPROF__PROFILE__INIT;
	int64_t values[] = {signed_of(sum->samples), signed_of(sum->weight_ns)};
	int err = find_path(p, sum);

	if (!err)
		err = string(p, "thread", &label[0].key);
	if (!err)
		err = string(p, thread->title, &label[0].text);
	if (!err)
		err = string(p, "tid", &label[1].key);
	if (!err)
		err = string(p, "pid", &label[2].key);
	if (!err && gil)
		err = string(p, "gil", &label[3].key);
	if (!err && gil)
		err = string(p, sum->variant & SUM_GIL ? "holds" : "waits", &label[3].text);
	if (err)
		return err;
	label[1].number = thread->tid;
	label[2].number = thread->pid;
	sample.n_location = p->nr_path;
	sample.location = p->path;
	sample.n_value = ARRAY_SIZE(values);
	sample.value = values;
	sample.n_label = ARRAY_SIZE(labels) - !gil;
	sample.label = labels;
	part.n_sample = 1;
	part.sample = &list;
	put(p, &part);
	return p->w.err;
}

/* ---- the profile ---- */

static int comments(struct pprof *p, Pprof__Profile *part, int64_t comment[2])
{
	static const char *const keys[] = {"command", "version"};
	int err = 0;

	part->comment = comment;
	for (size_t i = p->opts->no_command; i < ARRAY_SIZE(keys) && !err; i++) {
		const char *json = kprof_capture_meta(p->t, keys[i]);
		char *text = json ? xasprintf("kprof %s: %s", keys[i], json) : NULL;

		if (json)
			err = text ? string(p, text, &comment[part->n_comment++]) : no_memory();
		free(text);
	}
	return err;
}

static int put_head(struct pprof *p)
{
	const struct kprof_capture_info *info = kprof_capture_info(p->t);
	struct stack_rate rate = stack_rate_of(p->t);
	Pprof__ValueType type[2] = {PPROF__VALUE_TYPE__INIT, PPROF__VALUE_TYPE__INIT};
	Pprof__ValueType *types[] = {&type[0], &type[1]};
	Pprof__Profile part = PPROF__PROFILE__INIT;
	bool blocks = timeline__has_blocks(p->t);
	int64_t comment[2], empty;
	int err = string(p, "", &empty);

	if (!err)
		err = string(p, blocks ? "inuse_objects" : "samples", &type[0].type);
	if (!err)
		err = string(p, "count", &type[0].unit);
	if (!err)
		err = string(p,
			     blocks                        ? "inuse_space"
			     : timeline__shows_waits(p->t) ? "off_cpu"
							   : "cpu",
			     &type[1].type);
	if (!err)
		err = string(p, blocks ? "bytes" : "nanoseconds", &type[1].unit);
	if (!err)
		err = comments(p, &part, comment);
	if (err)
		return err;
	part.n_sample_type = ARRAY_SIZE(types);
	part.sample_type = types;
	part.period_type = types[1];
	/* waits are not sampled */
	part.period = rate.hz > 0 && !timeline__shows_waits(p->t) ? (int64_t)(1e9 / rate.hz) : 0;
	part.default_sample_type = type[1].type;
	part.time_nanos = signed_of(info->start_real_ns);
	part.duration_nanos = signed_of(info->end_mono_ns - info->start_mono_ns);
	put(p, &part);
	return 0;
}

/* Writes the first mapping, which pprof takes to be the program: a file that is no library. */
static int put_program(struct pprof *p)
{
	for (uint32_t id = 1; id <= timeline__nr_frames(p->t); id++) {
		const struct tl_module *module = timeline__frame(p->t, id)->module;
		uint64_t mapped;

		if (module && module->kind == STORE_MODULE_FILE && *module->path == '/' &&
		    !strstr(path_base(module->path), ".so"))
			return mapping(p, module, &mapped);
	}
	return 0;
}

static int put_profile(struct pprof *p)
{
	int err = put_head(p);

	if (!err)
		err = put_program(p);

	for (size_t i = 0; i < p->sums.nr && !err; i++)
		err = put_sample(p, &p->sums.list[i]);
	return err;
}

static void fini(struct pprof *p)
{
	for (size_t i = 0; i < p->nr_strings; i++)
		free(p->strings[i]);
	free(p->strings);
	sums__free(&p->sums);
	map64__free(&p->by_hash);
	map64__free(&p->functions);
	map64__free(&p->mappings);
	map64__free(&p->frames);
	map64__free(&p->made_up);
	free(p->path);
}

static int pprof_write(struct kprof_capture *t, const char *path,
		       const struct kprof_export_opts *opts)
{
	struct pprof p = {.t = t, .opts = opts, .sums.t = t, .buffer = {.append = append}};
	int err = sums__add(&p.sums, opts);

	if (!err && !p.sums.nr)
		err = stack_no_samples(t, opts->pid);
	if (!err)
		err = stream__start(path, opts, true, &p.w);
	if (!err)
		err = stream__end(&p.w, put_profile(&p));
	fini(&p);
	return err;
}

const struct sink_ops sink_pprof = {
	.name = "pprof",
	.suffixes = {".pb.gz"},
	.samples = true,
	.blocks = true,
	.write = pprof_write,
};
