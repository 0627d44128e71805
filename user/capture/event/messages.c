// SPDX-License-Identifier: BSD-2-Clause
#include "capture/event/messages.h"

#include <stdio.h>

#include "catalog/message.h"

/* Larger groups do not exist; a number that says so is none. */
#define MAX_RANKS (1 << 24)
#define MAX_KEYS 12
#define OPEN_MPI_IN_PLACE 1ull
#define MPICH_IN_PLACE UINT64_MAX

struct call {
	struct recorder *recorder;
	const struct catalog_message *of;
	const struct kprof_wire_begin_args *e;
	uint32_t known; /* bit i: argument i was read */
	bool handles;   /* handles are numbers */
	int32_t size;   /* of the communicator; 0: not known */
	uint32_t bytes; /* of an element; 0: not known */
	uint64_t most;  /* the larger of what goes in and comes out */
	struct store_attr attrs[MAX_KEYS];
	uint32_t nr;
};

static bool has(const struct call *c, enum catalog_message_arg arg)
{
	return c->known >> arg & 1;
}

/* An argument of C's type int. */
static int32_t number(const struct call *c, enum catalog_message_arg arg)
{
	return (int32_t)(uint32_t)c->e->args[arg];
}

static void put(struct call *c, const char *key, enum store_attr_type type, uint64_t value)
{
	if (c->nr < MAX_KEYS)
		c->attrs[c->nr++] =
			(struct store_attr){recorder__string(c->recorder, key), type, value};
}

static void put_number(struct call *c, const char *key, uint64_t value)
{
	put(c, key, STORE_ATTR_U64, value);
}

static void put_text(struct call *c, const char *key, const char *text)
{
	put(c, key, STORE_ATTR_STRING, recorder__string(c->recorder, text));
}

/* Which rank of how many; -1: not known. */
static int32_t put_group(struct call *c)
{
	int32_t rank = number(c, MESSAGE_ARG_RANK), size = number(c, MESSAGE_ARG_SIZE);
	bool is_size = has(c, MESSAGE_ARG_SIZE) && size > 0 && size <= MAX_RANKS;

	if (!has(c, MESSAGE_ARG_RANK) || rank < 0 || rank >= (is_size ? size : MAX_RANKS))
		return -1;
	put_number(c, "Rank", (uint64_t)rank);
	if (is_size) {
		c->size = size;
		put_number(c, "Group size", (uint64_t)size);
	}
	return rank;
}

static void put_type(struct call *c)
{
	uint64_t words[2] = {c->e->args[MESSAGE_ARG_TYPE], c->e->args[MESSAGE_ARG_TYPE_REST]};
	char name[CATALOG_MESSAGE_NAME_BYTES];

	if (!has(c, MESSAGE_ARG_TYPE) || (!c->handles && !has(c, MESSAGE_ARG_TYPE_REST)))
		return;
	if (c->handles)
		words[0] = (uint32_t)words[0];
	if (catalog_message_type(words, c->handles, name, &c->bytes))
		put_text(c, "dtype", name);
}

/* Returns whether it is known how many there are. */
static bool put_elements(struct call *c, const char *key, enum catalog_message_elements is)
{
	uint64_t nr = (uint32_t)number(c, MESSAGE_ARG_COUNT);

	if (is == CATALOG_ELEMENTS_EACH)
		nr *= (uint32_t)c->size;
	if (is == CATALOG_ELEMENTS_UNKNOWN || (is == CATALOG_ELEMENTS_EACH && !c->size))
		return false;
	put_number(c, key, nr);
	c->most = c->most > nr ? c->most : nr;
	return is != CATALOG_ELEMENTS_AT_MOST;
}

static bool is_in_place(const struct call *c)
{
	uint64_t buffer = c->e->args[MESSAGE_ARG_BUFFER];

	return c->of->in_place && (!has(c, MESSAGE_ARG_BUFFER) || buffer == OPEN_MPI_IN_PLACE ||
				   buffer == MPICH_IN_PLACE);
}

/* To nobody (MPI_PROC_NULL), nothing is sent. */
static bool is_to_nobody(const struct call *c)
{
	return c->of->peer == CATALOG_MESSAGE_TO && has(c, MESSAGE_ARG_ROOT) &&
	       number(c, MESSAGE_ARG_ROOT) < 0;
}

static void put_data(struct call *c)
{
	bool in, out;

	if (is_in_place(c))
		return;
	put_type(c);
	if (!has(c, MESSAGE_ARG_COUNT) || number(c, MESSAGE_ARG_COUNT) < 0 || is_to_nobody(c))
		return;
	in = put_elements(c, "In msg nelems", c->of->in);
	out = put_elements(c,
			   c->of->out == CATALOG_ELEMENTS_AT_MOST ? "Out msg nelems at most"
								  : "Out msg nelems",
			   c->of->out);
	if (in && out && c->bytes)
		put_number(c, "bytes", c->most * c->bytes);
}

/* The root, or who sends and who receives. */
static void put_peers(struct call *c, int32_t rank)
{
	static const char *const keys[] = {[CATALOG_MESSAGE_ROOT] = "Root Rank",
					   [CATALOG_MESSAGE_TO] = "Dst Rank",
					   [CATALOG_MESSAGE_FROM] = "Src Rank"};
	int32_t peer = number(c, MESSAGE_ARG_ROOT);

	/* negative: anybody, nobody, or of another group */
	if (has(c, MESSAGE_ARG_ROOT) && peer >= 0 && peer < (c->size ? c->size : MAX_RANKS))
		put_number(c, keys[c->of->peer], (uint64_t)peer);
	if (rank >= 0 && c->of->peer == CATALOG_MESSAGE_TO)
		put_number(c, "Src Rank", (uint64_t)rank);
	if (rank >= 0 && c->of->peer == CATALOG_MESSAGE_FROM)
		put_number(c, "Dst Rank", (uint64_t)rank);
	if (has(c, MESSAGE_ARG_TAG) && number(c, MESSAGE_ARG_TAG) >= 0)
		put_number(c, "tag", (uint64_t)number(c, MESSAGE_ARG_TAG));
}

int messages__begun(struct recorder *recorder, const struct probe *p,
		    const struct kprof_wire_begin_args *e, uint64_t number)
{
	struct call c = {
		.recorder = recorder,
		.of = p->row->message,
		.e = e,
		.known = p->args_read & ~e->faults,
		.handles = !p->handles_are_objects,
	};
	const char *reduction;
	int32_t rank;

	if (!number)
		return 0;
	put_text(&c, "Collective name", c.of->name);
	rank = put_group(&c);
	put_data(&c);
	reduction = has(&c, MESSAGE_ARG_REDUCTION)
			    ? catalog_message_reduction(
				      c.handles ? (uint32_t)e->args[MESSAGE_ARG_REDUCTION]
						: e->args[MESSAGE_ARG_REDUCTION],
				      c.handles)
			    : NULL;
	if (reduction)
		put_text(&c, "Reduction", reduction);
	put_peers(&c, rank);
	return recorder__attrs(recorder, number, c.attrs, c.nr);
}
