// SPDX-License-Identifier: BSD-2-Clause
/* Table records to bytes and back. What is a row of numbers is described by a row of a table. */
#include "store/format.h"

#include <errno.h>
#include <string.h>

#include "store/varint.h"
#include "util/util.h"

#define FIELDS_MAX 10

struct field {
	uint8_t offset, bytes; /* in struct store_record */
};
#define F(member)                                                                                 \
	{                                                                                         \
		offsetof(struct store_record, member), sizeof(((struct store_record *)0)->member) \
	}

/* In the order of the file. A newer minor version may add fields at an end, nothing else. */
static const struct layout {
	uint8_t nr;
	struct field fields[FIELDS_MAX];
} layouts[] = {
	[STORE_PROCESS] = {7,
			   {F(process.pid), F(process.ppid), F(process.ns_pid), F(process.comm),
			    F(process.cmdline), F(process.start_ns), F(process.exit_ns)}},
	[STORE_THREAD] = {6,
			  {F(thread.index), F(thread.pid), F(thread.tid), F(thread.name),
			   F(thread.start_ns), F(thread.exit_ns)}},
	[STORE_WHAT] = {6,
			{F(what.id), F(what.name), F(what.overload), F(what.category),
			 F(what.source), F(what.flags)}},
	[STORE_GAP] = {5, {F(gap.pid), F(gap.what), F(gap.reason), F(gap.start_ns), F(gap.end_ns)}},
	[STORE_SOURCE] = {10,
			  {F(source.index), F(source.name), F(source.fired), F(source.captured),
			   F(source.dropped), F(source.missed), F(source.begins),
			   F(source.ends_exact), F(source.ends_closed), F(source.orphan_ends)}},
	[STORE_CLOCK] = {2, {F(clock.mono_ns), F(clock.real_ns)}},
	[STORE_FINISH] = {1, {F(finish.time_ns)}},
	[STORE_MODULE] = {4, {F(module.id), F(module.kind), F(module.path), F(module.build_id)}},
	[STORE_FRAME] = {6, /* its lines follow */
			 {F(frame.id), F(frame.kind), F(frame.module), F(frame.address),
			  F(frame.op), F(frame.nr_lines)}},
	[STORE_STACK] = {3, {F(stack.id), F(stack.parent), F(stack.frame)}},
	[STORE_THREAD_NAME] = {2, {F(thread_name.thread), F(thread_name.name)}},
};

static const struct layout *layout_of(uint64_t type)
{
	return type < ARRAY_SIZE(layouts) && layouts[type].nr ? &layouts[type] : NULL;
}

/* Type and length. */
#define PREFIX_MAX_BYTES (2 * VARINT_MAX_BYTES)
#define LINE_MAX_BYTES (4 * VARINT_MAX_BYTES)
#define PAYLOAD_MAX_BYTES (FIELDS_MAX * VARINT_MAX_BYTES + STORE_MAX_LINES * LINE_MAX_BYTES)

size_t store_table__max_bytes(const struct store_record *r)
{
	size_t bytes = PREFIX_MAX_BYTES + FIELDS_MAX * VARINT_MAX_BYTES;

	if (r->type == STORE_STRING)
		bytes += r->string.len;
	if (r->type == STORE_META)
		bytes += strlen(r->meta.key) + strlen(r->meta.json) + 2;
	if (r->type == STORE_FRAME)
		bytes += r->frame.nr_lines * LINE_MAX_BYTES;
	return bytes;
}

static uint8_t *put_bytes(uint8_t *to, const void *bytes, size_t nr)
{
	if (nr)
		memcpy(to, bytes, nr);
	return to + nr;
}

static uint8_t *put_prefix(uint8_t *to, enum store_type type, size_t payload_bytes)
{
	return varint_put(varint_put(to, type), payload_bytes);
}

static uint8_t *encode_string(uint8_t *to, const struct store_record *r)
{
	uint8_t id[VARINT_MAX_BYTES];
	size_t id_bytes = (size_t)(varint_put(id, r->string.id) - id);

	to = put_prefix(to, STORE_STRING, id_bytes + r->string.len);
	to = put_bytes(to, id, id_bytes);
	return put_bytes(to, r->string.bytes, r->string.len);
}

static uint8_t *encode_meta(uint8_t *to, const struct store_record *r)
{
	size_t key_bytes = strlen(r->meta.key) + 1, json_bytes = strlen(r->meta.json) + 1;

	to = put_prefix(to, STORE_META, key_bytes + json_bytes);
	to = put_bytes(to, r->meta.key, key_bytes);
	return put_bytes(to, r->meta.json, json_bytes);
}

static uint8_t *put_lines(uint8_t *to, const struct store_record *r)
{
	for (const struct store_line *l = r->frame.lines; l < r->frame.lines + r->frame.nr_lines;
	     l++) {
		to = varint_put(to, l->function);
		to = varint_put(to, l->file);
		to = varint_put(to, l->line);
		to = varint_put(to, l->flags);
	}
	return to;
}

uint8_t *store_table__encode(uint8_t *to, const struct store_record *r)
{
	uint8_t payload[PAYLOAD_MAX_BYTES], *end = payload;
	const struct layout *layout;

	if (r->type == STORE_STRING)
		return encode_string(to, r);
	if (r->type == STORE_META)
		return encode_meta(to, r);
	layout = layout_of(r->type);
	for (int i = 0; i < layout->nr; i++) {
		const uint8_t *at = (const uint8_t *)r + layout->fields[i].offset;
		uint64_t v64;
		uint32_t v32;

		if (layout->fields[i].bytes == sizeof(v32)) {
			memcpy(&v32, at, sizeof(v32));
			v64 = v32;
		} else {
			memcpy(&v64, at, sizeof(v64));
		}
		end = varint_put(end, v64);
	}
	if (r->type == STORE_FRAME && r->frame.nr_lines)
		end = put_lines(end, r);
	to = put_prefix(to, r->type, (size_t)(end - payload));
	return put_bytes(to, payload, (size_t)(end - payload));
}

static int decode_string(const uint8_t *at, const uint8_t *end, struct store_record *out)
{
	uint64_t id;

	if (!varint_get(&at, end, &id) || id > UINT32_MAX)
		return -EBADMSG;
	out->string.id = (uint32_t)id;
	out->string.len = (uint32_t)(end - at);
	out->string.bytes = (const char *)at;
	return memchr(at, '\0', out->string.len) ? -EBADMSG : 1;
}

static int decode_meta(const uint8_t *at, const uint8_t *end, struct store_record *out)
{
	const uint8_t *key_end = memchr(at, '\0', (size_t)(end - at));

	if (!key_end || key_end == at)
		return -EBADMSG;
	out->meta.key = (const char *)at;
	out->meta.json = (const char *)key_end + 1;
	return memchr(out->meta.json, '\0', (size_t)(end - key_end - 1)) ? 1 : -EBADMSG;
}

static int decode_fields(const struct layout *layout, const uint8_t **at, const uint8_t *end,
			 struct store_record *out)
{
	for (int i = 0; i < layout->nr; i++) {
		uint8_t *to = (uint8_t *)out + layout->fields[i].offset;
		uint64_t v64;
		uint32_t v32;

		if (!varint_get(at, end, &v64))
			return -EBADMSG;
		if (layout->fields[i].bytes == sizeof(v64)) {
			memcpy(to, &v64, sizeof(v64));
			continue;
		}
		if (v64 > UINT32_MAX)
			return -EBADMSG;
		v32 = (uint32_t)v64;
		memcpy(to, &v32, sizeof(v32));
	}
	return 1; /* bytes that are left are fields of a newer minor version */
}

static bool get32(const uint8_t **at, const uint8_t *end, uint32_t *v)
{
	uint64_t v64;

	if (!varint_get(at, end, &v64) || v64 > UINT32_MAX)
		return false;
	*v = (uint32_t)v64;
	return true;
}

static int decode_frame(const uint8_t *at, const uint8_t *end, struct store_line *lines,
			struct store_record *out)
{
	int err = decode_fields(layout_of(STORE_FRAME), &at, end, out);

	if (err < 0 || out->frame.nr_lines > STORE_MAX_LINES)
		return -EBADMSG;
	for (uint32_t i = 0; i < out->frame.nr_lines; i++)
		if (!get32(&at, end, &lines[i].function) || !get32(&at, end, &lines[i].file) ||
		    !get32(&at, end, &lines[i].line) || !get32(&at, end, &lines[i].flags))
			return -EBADMSG;
	out->frame.lines = lines;
	return 1;
}

int store_table__decode(const uint8_t **at, const uint8_t *end, struct store_line *lines,
			struct store_record *out, uint32_t *records)
{
	while (*at < end) {
		const struct layout *layout;
		const uint8_t *payload;
		uint64_t type, bytes;

		if (!varint_get(at, end, &type) || !varint_get(at, end, &bytes) ||
		    bytes > STORE_RECORD_MAX_BYTES || bytes > (size_t)(end - *at))
			return -EBADMSG;
		payload = *at;
		*at += bytes;
		(*records)++;
		out->type = (enum store_type)type;
		if (type == STORE_STRING)
			return decode_string(payload, *at, out);
		if (type == STORE_META)
			return decode_meta(payload, *at, out);
		if (type == STORE_FRAME)
			return decode_frame(payload, *at, lines, out);
		layout = layout_of(type);
		if (layout)
			return decode_fields(layout, &payload, *at, out);
	}
	return 0;
}
