// SPDX-License-Identifier: BSD-2-Clause
#include "sink/profile/otlp_tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sink/write/write.h"
#include "store/store.h"
#include "util/error.h"
#include "util/util.h"

/* No receiver takes requests anywhere near as large: their usual limit is some 20 MB. */
#define MAX_TABLE_BYTES (256ull << 20)
/* A packed message of this size needs no memory of its own while it is looked for. */
#define USUAL_BYTES 4096

static int no_memory(void)
{
	return error_set(-ENOMEM, NULL, "no memory for an OTLP profile");
}

/* ---- a table ---- */

static uint64_t hash_of(const uint8_t *bytes, size_t nr)
{
	uint64_t h = nr;

	for (size_t i = 0; i < nr; i++)
		h = (h ^ bytes[i]) * 0x100000001b3ull;
	return hash64(h) >> 1;
}

static int append(struct otlp_table *t, const void *bytes, size_t nr)
{
	ProtobufCBinaryData *to;

	if (t->bytes + nr > MAX_TABLE_BYTES)
		return error_set(-E2BIG, "export a part of it: one process (-p PID)",
				 "an OTLP profile of more than %llu MiB", MAX_TABLE_BYTES >> 20);
	if (vec_grow((void **)&t->items, &t->cap, t->nr, sizeof(*t->items)))
		return no_memory();
	to = &t->items[t->nr];
	to->len = nr;
	to->data = malloc(nr + 1);
	if (!to->data)
		return no_memory();
	if (nr)
		memcpy(to->data, bytes, nr);
	t->bytes += nr + sizeof(*to);
	t->nr++;
	return 0;
}

int otlp_table__add_bytes(struct otlp_table *t, const void *bytes, size_t nr, int32_t *index)
{
	const ProtobufCBinaryData *known;
	uint64_t *slot;
	int err;

	*index = 0;
	for (uint64_t hash = hash_of(bytes, nr);; hash++) {
		slot = map64__at(&t->by_hash, hash);
		if (!slot)
			return no_memory();
		known = *slot ? &t->items[*slot - 1] : NULL;
		if (known && (known->len != nr || (nr && memcmp(known->data, bytes, nr))))
			continue;
		if (!known) {
			err = append(t, bytes, nr);
			if (err)
				return err;
			*slot = t->nr;
		}
		*index = (int32_t)*slot - 1;
		return 0;
	}
}

int otlp_table__add(struct otlp_table *t, const ProtobufCMessage *m, int32_t *index)
{
	size_t nr = protobuf_c_message_get_packed_size(m);
	uint8_t usual[USUAL_BYTES], *bytes = nr <= sizeof(usual) ? usual : malloc(nr);
	int err;

	if (!bytes)
		return no_memory();
	protobuf_c_message_pack(m, bytes);
	err = otlp_table__add_bytes(t, bytes, nr, index);
	if (bytes != usual)
		free(bytes);
	return err;
}

void otlp_table__free(struct otlp_table *t)
{
	for (size_t i = 0; i < t->nr; i++)
		free(t->items[i].data);
	free(t->items);
	map64__free(&t->by_hash);
	*t = (struct otlp_table){0};
}

/* ---- the dictionary ---- */

int otlp_tables__init(struct otlp_tables *t)
{
	int32_t index;
	int err = 0;

	for (size_t i = 0; i < OTLP_KINDS && !err; i++)
		err = otlp_table__add_bytes(&t->of[i], "", 0, &index);
	return err;
}

void otlp_tables__free(struct otlp_tables *t)
{
	for (size_t i = 0; i < OTLP_KINDS; i++)
		otlp_table__free(&t->of[i]);
	map64__free(&t->frames);
}

int otlp_tables__string(struct otlp_tables *t, const char *text, int32_t *index)
{
	char *copy = text_copy(text); /* the format's strings are UTF-8 */
	int err;

	if (!copy)
		return no_memory();
	err = otlp_table__add_bytes(&t->of[OTLP_STRINGS], copy, strlen(copy), index);
	free(copy);
	return err;
}

int otlp_tables__attribute(struct otlp_tables *t, const char *key, const char *text, int64_t number,
			   int32_t *index)
{
	Otlp__Attribute a = OTLP__ATTRIBUTE__INIT;
	Otlp__AnyValue value = OTLP__ANY_VALUE__INIT;
	char *copy = text ? text_copy(text) : NULL;
	int err = text && !copy ? no_memory() : otlp_tables__string(t, key, &a.key);

	a.value = &value;
	if (text) {
		value.value_case = OTLP__ANY_VALUE__VALUE_TEXT;
		value.text = copy;
	} else {
		value.value_case = OTLP__ANY_VALUE__VALUE_NUMBER;
		value.number = number;
	}
	if (!err)
		err = otlp_table__add(&t->of[OTLP_ATTRIBUTES], &a.base, index);
	free(copy);
	return err;
}

static int mapping(struct otlp_tables *t, const struct tl_module *module, int32_t *index)
{
	Otlp__Mapping m = OTLP__MAPPING__INIT;
	int32_t build_id;
	int err = otlp_tables__string(t, module->path, &m.filename);

	if (!err && *module->build_id) {
		err = otlp_tables__attribute(t, "process.executable.build_id.gnu", module->build_id,
					     0, &build_id);
		m.attributes = &build_id;
		m.n_attributes = 1;
	}
	return err ? err : otlp_table__add(&t->of[OTLP_MAPPINGS], &m.base, index);
}

static int function(struct otlp_tables *t, const struct tl_line *line, int32_t *index)
{
	Otlp__Function f = OTLP__FUNCTION__INIT;
	int err = otlp_tables__string(t, line->function, &f.name);

	if (!err)
		err = otlp_tables__string(t, line->full, &f.system_name);
	if (!err)
		err = otlp_tables__string(t, line->file, &f.filename);
	return err ? err : otlp_table__add(&t->of[OTLP_FUNCTIONS], &f.base, index);
}

static const char *frame_type(enum tl_frame_kind kind)
{
	switch (kind) {
	case TL_FRAME_PYTHON:
		return "cpython";
	case TL_FRAME_KERNEL:
		return "kernel";
	default:
		return "native";
	}
}

/* Fills in the lines, and adds the location. */
static int add_location(struct otlp_tables *t, Otlp__Location *l, const struct tl_line *lines,
			uint32_t nr, int32_t *index)
{
	Otlp__Line *line = calloc(nr + 1, sizeof(*line)), **of = calloc(nr + 1, sizeof(*of));
	int err = line && of ? 0 : no_memory();

	*index = 0;
	for (uint32_t i = 0; i < nr && !err; i++) {
		of[i] = &line[i];
		otlp__line__init(&line[i]);
		line[i].line = lines[i].line;
		err = function(t, &lines[i], &line[i].function);
	}
	l->lines = of;
	l->n_lines = nr;
	if (!err)
		err = otlp_table__add(&t->of[OTLP_LOCATIONS], &l->base, index);
	free(line);
	free(of);
	return err;
}

static int frame(struct otlp_tables *t, const struct tl_frame *f, int32_t *index)
{
	Otlp__Location l = OTLP__LOCATION__INIT;
	uint64_t *slot = map64__at(&t->frames, f->id);
	int32_t type = 0;
	int err = 0;

	*index = 0;
	if (!slot)
		return no_memory();
	if (*slot) {
		*index = (int32_t)*slot;
		return 0;
	}
	if (f->module)
		err = mapping(t, f->module, &l.mapping);
	if (!err)
		err = otlp_tables__attribute(t, "profile.frame.type", frame_type(f->kind), 0,
					     &type);
	/* The kernel's own addresses are nobody's business: see pprof.c. */
	l.address = f->kind == TL_FRAME_KERNEL ? 0 : f->address;
	l.attributes = &type;
	l.n_attributes = 1;
	if (!err)
		err = add_location(t, &l, f->lines, f->nr_lines, index);
	if (!err)
		*slot = (uint64_t)*index;
	return err;
}

/* ---- stacks ---- */

static int step(struct otlp_tables *t, int32_t location)
{
	if (t->nr_path < ARRAY_SIZE(t->path))
		t->path[t->nr_path++] = location;
	return 0;
}

/* Adds a frame that has only a name. */
static int step_name(struct otlp_tables *t, const char *name)
{
	const struct tl_line line = {.function = name, .full = name, .file = ""};
	Otlp__Location l = OTLP__LOCATION__INIT;
	int32_t index = 0;
	int err = add_location(t, &l, &line, 1, &index);

	return err ? err : step(t, index);
}

int otlp_tables__stack(struct otlp_tables *t, const struct kprof_capture *c, uint32_t stack,
		       const char *inner, const char *outer, int32_t *index)
{
	Otlp__Stack s = OTLP__STACK__INIT;
	const struct tl_stack *at;
	int32_t location = 0;
	int err = 0;

	t->nr_path = 0;
	if (inner)
		err = step_name(t, inner);
	while (!err && (at = timeline__stack(c, stack))) {
		/* How deep a stack is, the file decides: what is outside is left out, and said. */
		if (t->nr_path >= KPROF_SAMPLE_MAX_FRAMES) {
			outer = "[incomplete]";
			break;
		}
		err = frame(t, at->frame, &location);
		if (!err)
			err = step(t, location);
		if (!err && *at->frame->op)
			err = step_name(t, at->frame->op);
		stack = at->parent;
	}
	if (!err && outer)
		err = step_name(t, outer);
	s.locations = t->path;
	s.n_locations = t->nr_path;
	return err ? err : otlp_table__add(&t->of[OTLP_STACKS], &s.base, index);
}
