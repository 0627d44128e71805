// SPDX-License-Identifier: BSD-2-Clause
#include "capture/event/text_args.h"

#include <stdio.h>
#include <string.h>

/* Numbers of nvtxColorType_t and nvtxPayloadType_t (nvToolsExt.h). */
#define COLOUR_ARGB 1
enum { PAYLOAD_U64 = 1, PAYLOAD_I64, PAYLOAD_DOUBLE, PAYLOAD_U32, PAYLOAD_I32, PAYLOAD_FLOAT };

static bool colour(struct recorder *recorder, uint64_t value, struct store_attr *attr)
{
	char text[16];

	if ((uint32_t)value != COLOUR_ARGB)
		return false;
	snprintf(text, sizeof(text), "#%08x", (uint32_t)(value >> 32));
	attr->type = STORE_ATTR_STRING;
	attr->value = recorder__string(recorder, text);
	return true;
}

static bool payload(uint32_t type, uint64_t value, struct store_attr *attr)
{
	uint32_t low = (uint32_t)value;
	double wide;
	float narrow;

	attr->type = STORE_ATTR_U64;
	attr->value = value;
	switch (type) {
	case PAYLOAD_U64:
		return true;
	case PAYLOAD_I64:
		attr->type = STORE_ATTR_I64;
		return true;
	case PAYLOAD_DOUBLE:
		attr->type = STORE_ATTR_DOUBLE;
		return true;
	case PAYLOAD_U32:
		attr->value = low;
		return true;
	case PAYLOAD_I32:
		attr->type = STORE_ATTR_I64;
		attr->value = (uint64_t)(int64_t)(int32_t)low;
		return true;
	case PAYLOAD_FLOAT:
		memcpy(&narrow, &low, sizeof(narrow));
		wide = narrow;
		attr->type = STORE_ATTR_DOUBLE;
		memcpy(&attr->value, &wide, sizeof(wide));
		return true;
	}
	return false;
}

uint32_t text_args(struct recorder *recorder, const struct probe *p, const struct name_hit *hit,
		   struct store_attr attrs[KPROF_WIRE_TEXT_ARGS])
{
	const struct catalog_arg *args = p->row->args;
	uint32_t nr = 0;

	for (uint32_t i = 0; i < hit->nr_args && i < KPROF_WIRE_TEXT_ARGS && args[i].name; i++) {
		uint64_t value = hit->args[i];
		bool set = false;

		attrs[nr] = (struct store_attr){p->keys[i], STORE_ATTR_U64, (uint32_t)value};
		if (args[i].kind == CATALOG_ARG_NVTX_CATEGORY)
			set = (uint32_t)value;
		else if (args[i].kind == CATALOG_ARG_NVTX_COLOUR)
			set = colour(recorder, value, &attrs[nr]);
		else if (args[i].kind == CATALOG_ARG_NVTX_PAYLOAD && i)
			set = payload((uint32_t)hit->args[i - 1], value, &attrs[nr]);
		nr += set;
	}
	return nr;
}
