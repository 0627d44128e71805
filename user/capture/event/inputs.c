// SPDX-License-Identifier: BSD-2-Clause
#include "capture/event/inputs.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "capture/event/inputs_text.h"
#include "util/util.h"

/* What is kept, of all processes: beyond this it is forgotten, and made anew. */
#define MAX_KEPT_BYTES (32u << 20)
/*
 * Texts that are written, in bytes: a program whose shapes never repeat has those of later calls
 * counted only, as the capture's texts are kept in memory by who writes and by who reads it.
 */
#define MAX_TEXT_BYTES (64u << 20)

static const char *const keys[INPUTS_KEYS] = {
	[INPUTS_DIMS] = "Input Dims",
	[INPUTS_TYPE] = "Input type",
	[INPUTS_STRIDES] = "Input Strides",
	[INPUTS_CONCRETE] = "Concrete Inputs",
};

#define OBSERVED UINT64_MAX /* the words say what they mean */

/* The same words at the same probe in the same process mean the same. */
struct kept {
	UT_hash_handle hh;
	struct store_attr attrs[INPUTS_KEYS];
	uint32_t nr_attrs; /* 0: nothing can be said */
	uint32_t unknown;
	size_t bytes;   /* of the key */
	uint64_t key[]; /* the probe, or OBSERVED, then the words */
};

struct inputs {
	struct recorder *recorder;
	struct targets *targets;
	struct namer *namer;
	bool recorded;
	uint32_t slot;  /* of a target: struct kept *, a table */
	uint32_t boxed; /* of a target: struct boxed_layout * */
	size_t kept_bytes;
	uint64_t text_bytes, last_text; /* of the texts that were written; the latest one's id */
	uint64_t calls, without, unknown;
	uint64_t worked_out; /* how often words became texts */
	uint64_t key[1 + KPROF_WIRE_INPUTS_WORDS];
	uint64_t values[KPROF_WIRE_INPUTS_WORDS]; /* of a boxed call */
};

int inputs__new(struct recorder *recorder, struct targets *targets, struct namer *namer,
		bool recorded, struct inputs **out)
{
	struct inputs *in = calloc(1, sizeof(*in));

	if (!in)
		return -ENOMEM;
	in->recorder = recorder;
	in->targets = targets;
	in->namer = namer;
	in->recorded = recorded;
	in->slot = targets__slot(targets);
	in->boxed = targets__slot(targets);
	*out = in;
	return 0;
}

/* Forgets the texts of the process's inputs. */
static void forget_kept(struct inputs *in, struct target *t)
{
	struct kept *all = t->slot[in->slot], *k, *next;

	HASH_ITER (hh, all, k, next) {
		HASH_DEL(all, k);
		in->kept_bytes -= sizeof(*k) + k->bytes;
		free(k);
	}
	t->slot[in->slot] = NULL;
}

void inputs__forget(struct inputs *in, struct target *t)
{
	if (!in)
		return;
	forget_kept(in, t);
	free(t->slot[in->boxed]);
	t->slot[in->boxed] = NULL;
}

static void forget_all(struct inputs *in)
{
	struct target *t, *next;

	TARGETS_EACH (in->targets, t, next)
		forget_kept(in, t);
}

void inputs__free(struct inputs *in)
{
	struct target *t, *next;

	if (!in)
		return;
	TARGETS_EACH (in->targets, t, next)
		inputs__forget(in, t);
	free(in);
}

/* ---- texts ---- */

struct of_target {
	struct inputs *in;
	struct target *t;
};

static const char *class_of(void *ctx, uint64_t vtable)
{
	const struct of_target *of = ctx;

	return namer__class(of->in->namer, of->t, vtable);
}

/* Makes attributes of the texts, which are freed. */
static int make_attrs(struct inputs *in, struct inputs_text *text, struct kept *k)
{
	int err = 0;

	for (int i = 0; i < INPUTS_KEYS && !err; i++) {
		struct store_attr *attr = &k->attrs[k->nr_attrs++];

		attr->type = STORE_ATTR_JSON;
		attr->key = recorder__string(in->recorder, keys[i]);
		attr->value = recorder__string(in->recorder, text->json[i]);
		if (!attr->key || !attr->value)
			err = -ENOMEM;
		/* strings have rising ids: it is a new one */
		if (attr->value > in->last_text) {
			in->last_text = attr->value;
			in->text_bytes += strlen(text->json[i]);
		}
	}
	for (int i = 0; i < INPUTS_KEYS; i++)
		free(text->json[i]);
	return err;
}

/* s: what the words are; NULL: they say that themselves. */
static int understand(struct inputs *in, struct target *t, const struct signature *s,
		      const uint64_t *words, uint32_t nr, struct kept *k)
{
	struct of_target of = {in, t};
	struct inputs_text text;
	int err;

	if (in->text_bytes > MAX_TEXT_BYTES)
		return 0;
	in->worked_out++;
	err = s ? inputs_text(s, words, nr, class_of, &of, &text)
		: inputs_text_observed(words, nr, class_of, &of, &text);
	if (err)
		return err == -ENODATA ? 0 : err;
	k->unknown = text.unknown;
	return make_attrs(in, &text, k);
}

/* ---- calls ---- */

/* Keeps the call whose key is in in->key. */
static int add(struct inputs *in, struct target *t, const struct signature *s, size_t bytes,
	       struct kept **out)
{
	struct kept *all, *k = calloc(1, sizeof(*k) + bytes);
	int err;

	if (!k)
		return -ENOMEM;
	k->bytes = bytes;
	memcpy(k->key, in->key, bytes);
	err = understand(in, t, s, &k->key[1], (uint32_t)(bytes / sizeof(k->key[0]) - 1), k);
	if (!err) {
		if (in->kept_bytes + sizeof(*k) + bytes > MAX_KEPT_BYTES)
			forget_all(in);
		all = t->slot[in->slot];
		HASH_ADD_KEYPTR(hh, all, k->key, bytes, k);
		err = k->hh.tbl ? 0 : -ENOMEM;
	}
	if (err) {
		free(k);
		return err;
	}
	t->slot[in->slot] = all;
	in->kept_bytes += sizeof(*k) + bytes;
	*out = k;
	return 0;
}

static int record(struct inputs *in, struct target *t, uint64_t what, const struct signature *s,
		  const uint64_t *words, uint32_t nr, uint64_t span)
{
	size_t bytes = (1 + (size_t)nr) * sizeof(uint64_t);
	struct kept *k, *all = t->slot[in->slot];
	int err = 0;

	if (nr > KPROF_WIRE_INPUTS_WORDS)
		return 0;
	in->key[0] = what;
	memcpy(&in->key[1], words, bytes - sizeof(uint64_t));
	HASH_FIND(hh, all, in->key, bytes, k);
	if (!k)
		err = add(in, t, s, bytes, &k);
	if (err)
		return err;
	in->calls += k->nr_attrs != 0;
	in->without += !k->nr_attrs;
	in->unknown += k->unknown;
	return recorder__attrs(in->recorder, span, k->attrs, k->nr_attrs);
}

int inputs__boxed(struct inputs *in, struct target *t, const struct probe *p,
		  const struct kprof_wire_begin_inputs *e, struct boxed_call *out)
{
	struct boxed_layout *l = t->slot[in->boxed];

	*out = (struct boxed_call){0};
	if (!p->signature || !p->signature->boxed)
		return 0;
	if (!l)
		l = t->slot[in->boxed] = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	boxed_call(p->signature->stack ? NULL : l, e->words, e->nr, target__read, t, out);
	return 0;
}

static int record_boxed(struct inputs *in, struct target *t, const struct boxed_call *call,
			uint64_t span)
{
	if (!call->known || call->nr_words >= KPROF_WIRE_INPUTS_WORDS) {
		inputs__untold(in);
		return 0;
	}
	in->values[0] = call->nr;
	memcpy(&in->values[1], call->values, call->nr_words * sizeof(in->values[0]));
	return record(in, t, OBSERVED, NULL, in->values, call->nr_words + 1, span);
}

int inputs__record(struct inputs *in, struct target *t, const struct probe *p,
		   const struct kprof_wire_begin_inputs *e, const struct boxed_call *boxed,
		   uint64_t span)
{
	if (!p->signature || !in->recorded)
		return 0;
	return p->signature->boxed ? record_boxed(in, t, boxed, span)
				   : record(in, t, e->b.h.id, p->signature, e->words, e->nr, span);
}

int inputs__observed(struct inputs *in, struct target *t, const uint64_t *words, uint32_t nr,
		     uint64_t span)
{
	return record(in, t, OBSERVED, NULL, words, nr, span);
}

void inputs__untold(struct inputs *in)
{
	in->without++;
}

int inputs__account(struct inputs *in, const struct probe_set *probes)
{
	cJSON *meta = cJSON_CreateObject();

	cJSON_AddNumberToObject(meta, "calls", (double)in->calls);
	cJSON_AddNumberToObject(meta, "calls_without", (double)in->without);
	cJSON_AddNumberToObject(meta, "unknown_inputs", (double)in->unknown);
	cJSON_AddNumberToObject(meta, "worked_out", (double)in->worked_out);
	cJSON_AddNumberToObject(meta, "operators_without",
				(double)probe_set__stats(probes)->unread);
	return recorder__meta_value(in->recorder, "inputs", meta);
}
