// SPDX-License-Identifier: BSD-2-Clause
#include "capture/event/collectives.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/map64.h"

/* Work of one process that is queued, and threads that call: a program that leaves more is odd. */
#define MAX_KEPT 65536
/* Larger groups do not exist; a number that says so is none. */
#define MAX_RANKS (1u << 24)
#define NAME_BYTES 16
#define MAX_GROUPS 64    /* of a process, that the metadata tells of */
#define MAX_LISTED 65536 /* of ranks */
#define MAX_READ 1024    /* of ranks that are read from the process */
#define MAX_READS 16     /* of the ranks of one group */
#define MAX_SHOWN 64     /* of ranks with each call */

enum key {
	NAME,
	IN_NELEMS,
	OUT_NELEMS,
	DTYPE,
	GROUP,
	GROUP_SIZE,
	RANK,
	SEQUENCE,
	SOURCE,
	DESTINATION,
	ROOT,
	REDUCTION,
	RANKS,
	NR_KEYS
};

static const char *const keys[NR_KEYS] = {
	[NAME] = "Collective name",
	[IN_NELEMS] = "In msg nelems",
	[OUT_NELEMS] = "Out msg nelems",
	[DTYPE] = "dtype",
	[GROUP] = "Process Group Name",
	[GROUP_SIZE] = "Group size",
	[RANK] = "Rank",
	[SEQUENCE] = "Seq",
	[SOURCE] = "Src Rank",
	[DESTINATION] = "Dst Rank",
	[ROOT] = "Root Rank",
	[REDUCTION] = "Reduction",
	[RANKS] = "Process Group Ranks",
};

/* What is known of one call. */
struct details {
	uint64_t number, sp; /* of the call: its span and its stack pointer */
	struct store_attr attrs[NR_KEYS];
	uint32_t nr;
};

struct group {
	char name[NAME_BYTES];
	uint32_t rank, size;
	const char *backend;
	bool all; /* it has all processes */
	/* The ranks that its processes have among all, as JSON; where they were read. */
	char *ranks;
	uint64_t ranks_at;
	uint32_t reads;
};

/* Of one process; the values are struct details *. */
struct known {
	struct map64 calls; /* by thread: the latest one, of which no work was queued yet */
	struct map64 works; /* by the address of the work, from queueing it to its begin */
	size_t kept;
	struct group groups[MAX_GROUPS];
	size_t nr_groups;
};

struct collectives {
	struct recorder *recorder;
	struct targets *targets;
	uint32_t *rank_pid;
	uint32_t slot;
	uint32_t keys[NR_KEYS]; /* string ids */
};

int collectives__new(struct recorder *recorder, struct targets *targets, uint32_t *rank_pid,
		     struct collectives **out)
{
	struct collectives *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->recorder = recorder;
	c->targets = targets;
	c->rank_pid = rank_pid;
	c->slot = targets__slot(targets);
	*out = c;
	return 0;
}

static void free_all(struct map64 *m)
{
	for (size_t i = 0; i < m->cap; i++)
		free((struct details *)(uintptr_t)m->slots[i].value);
	map64__free(m);
	*m = (struct map64){0};
}

void collectives__forget(struct collectives *c, struct target *t)
{
	struct known *known = t->slot[c->slot];

	if (!known)
		return;
	free_all(&known->calls);
	free_all(&known->works);
	for (size_t i = 0; i < known->nr_groups; i++)
		free(known->groups[i].ranks);
	free(known);
	t->slot[c->slot] = NULL;
}

void collectives__free(struct collectives *c)
{
	struct target *t, *next;

	if (!c)
		return;
	TARGETS_EACH (c->targets, t, next)
		collectives__forget(c, t);
	free(c);
}

static struct known *known_of(struct collectives *c, struct target *t)
{
	struct known *known = t->slot[c->slot];

	if (!known)
		known = t->slot[c->slot] = calloc(1, sizeof(*known));
	if (known && known->kept > MAX_KEPT) {
		free_all(&known->calls);
		free_all(&known->works);
		known->kept = 0;
	}
	return known;
}

/* Takes out what is kept under a key; NULL: nothing. The caller frees it. */
static struct details *take(struct known *known, struct map64 *m, uint64_t key)
{
	uint64_t *at = key < UINT64_MAX && map64__get(m, key) ? map64__at(m, key) : NULL;
	struct details *d = at ? (struct details *)(uintptr_t)*at : NULL;

	if (d) {
		*at = 0;
		known->kept--;
	}
	return d;
}

/* Keeps it in the place of what was kept under the key. -ENOMEM: it is freed. */
static int keep(struct known *known, struct map64 *m, uint64_t key, struct details *d)
{
	uint64_t *at;

	free(take(known, m, key));
	at = key < UINT64_MAX ? map64__at(m, key) : NULL;
	if (!at) {
		free(d);
		return key < UINT64_MAX ? -ENOMEM : 0;
	}
	*at = (uintptr_t)d;
	known->kept++;
	return 0;
}

/* ---- what a call says ---- */

struct call {
	const struct probe *p;
	const struct kprof_wire_begin_args *e;
};

static bool has(const struct call *call, enum catalog_collective_arg arg)
{
	return call->p->args_read >> arg & ~call->e->faults >> arg & 1;
}

static void put(struct collectives *c, struct details *d, enum key key, enum store_attr_type type,
		uint64_t value)
{
	if (!c->keys[key])
		c->keys[key] = recorder__string(c->recorder, keys[key]);
	d->attrs[d->nr++] = (struct store_attr){c->keys[key], type, value};
}

static void put_text(struct collectives *c, struct details *d, enum key key, const char *text)
{
	put(c, d, key, STORE_ATTR_STRING, recorder__string(c->recorder, text));
}

/* The number of ranks; 0: not known. */
static uint32_t put_group(struct collectives *c, struct details *d, const struct call *call,
			  struct group *group)
{
	uint32_t rank = (uint32_t)call->e->args[COLLECTIVE_ARG_RANK];
	uint32_t size = (uint32_t)(call->e->args[COLLECTIVE_ARG_RANK] >> 32);

	if (!has(call, COLLECTIVE_ARG_RANK) || rank >= size || size > MAX_RANKS)
		return 0;
	put(c, d, GROUP_SIZE, STORE_ATTR_U64, size);
	put(c, d, RANK, STORE_ATTR_U64, rank);
	group->rank = rank;
	group->size = size;
	return size;
}

/* A name that is longer than what was read is not known. */
static void put_name(struct collectives *c, struct details *d, const struct call *call,
		     struct group *group)
{
	char name[NAME_BYTES];
	size_t len;

	if (!has(call, COLLECTIVE_ARG_NAME) || !has(call, COLLECTIVE_ARG_NAME_REST))
		return;
	memcpy(name, &call->e->args[COLLECTIVE_ARG_NAME], NAME_BYTES);
	len = strnlen(name, NAME_BYTES);
	for (size_t i = 0; i < len; i++)
		if (name[i] < ' ' || name[i] > '~')
			return;
	if (!len || len == NAME_BYTES)
		return;
	put_text(c, d, GROUP, name);
	memcpy(group->name, name, len + 1);
}

/* Has the call one tensor that says its own size? */
static bool has_tensor(const struct call *call)
{
	const uint64_t *args = call->e->args;

	if (!has(call, COLLECTIVE_ARG_NUMEL) || !has(call, COLLECTIVE_ARG_TYPE) ||
	    args[COLLECTIVE_ARG_NUMEL] > INT64_MAX / MAX_RANKS ||
	    args[COLLECTIVE_ARG_TYPE] & call->p->type_mask & ~KPROF_TENSOR_ELEMENTS)
		return false;
	return !(call->p->args_read >> COLLECTIVE_ARG_BEGIN & 1) ||
	       (has(call, COLLECTIVE_ARG_BEGIN) && has(call, COLLECTIVE_ARG_END) &&
		args[COLLECTIVE_ARG_END] - args[COLLECTIVE_ARG_BEGIN] == sizeof(uint64_t));
}

/* Who sends, who receives: this process, and the peer that the call names. */
static void put_peers(struct collectives *c, struct details *d, const struct call *call,
		      const struct group *group)
{
	enum catalog_collective_peer is = call->p->row->collective->peer;
	uint32_t peer = (uint32_t)call->e->args[COLLECTIVE_ARG_SEQUENCE];
	uint32_t most = group->size ? group->size : MAX_RANKS;

	if (group->size)
		put(c, d, is == CATALOG_PEER_RECEIVES ? SOURCE : DESTINATION, STORE_ATTR_U64,
		    group->rank);
	if (has(call, COLLECTIVE_ARG_SEQUENCE) && peer < most)
		put(c, d, is == CATALOG_PEER_RECEIVES ? DESTINATION : SOURCE, STORE_ATTR_U64, peer);
}

static void put_sizes(struct collectives *c, struct details *d, const struct call *call,
		      uint32_t ranks)
{
	enum catalog_collective_size size = call->p->row->collective->size;
	uint64_t nr = call->e->args[COLLECTIVE_ARG_NUMEL];
	const char *type;

	if (size == CATALOG_SIZE_NONE || !has_tensor(call))
		return;
	type = catalog_scalar_type(
		(uint32_t)(call->e->args[COLLECTIVE_ARG_TYPE] & KPROF_TENSOR_ELEMENTS));
	if (size != CATALOG_SIZE_OUT || ranks)
		put(c, d, IN_NELEMS, STORE_ATTR_U64, size == CATALOG_SIZE_OUT ? nr * ranks : nr);
	if (size != CATALOG_SIZE_ONLY_IN && (size != CATALOG_SIZE_IN || ranks))
		put(c, d, OUT_NELEMS, STORE_ATTR_U64, size == CATALOG_SIZE_IN ? nr * ranks : nr);
	if (type)
		put_text(c, d, DTYPE, type);
}

static void put_options(struct collectives *c, struct details *d, const struct call *call,
			uint32_t ranks)
{
	const char *const *names = call->p->row->collective->reductions;
	uint8_t reduction = (uint8_t)call->e->args[COLLECTIVE_ARG_REDUCTION];
	uint64_t root = call->e->args[COLLECTIVE_ARG_ROOT];

	if (catalog_has_root(call->p->row->collective) && has(call, COLLECTIVE_ARG_ROOT) &&
	    root < (ranks ? ranks : MAX_RANKS))
		put(c, d, ROOT, STORE_ATTR_U64, root);
	for (uint8_t i = 0; has(call, COLLECTIVE_ARG_REDUCTION) && names[i]; i++)
		if (i == reduction)
			put_text(c, d, REDUCTION, names[i]);
}

/* ---- groups ---- */

/* In the form of Kineto's pg_config. */
static cJSON *describe(const struct group *group)
{
	cJSON *o = cJSON_CreateObject(), *ranks;

	cJSON_AddStringToObject(o, "pg_name", group->name);
	cJSON_AddNumberToObject(o, "pg_size", group->size);
	if (group->ranks && !group->all)
		cJSON_AddRawToObject(o, "ranks", group->ranks);
	ranks = group->all && group->size <= MAX_LISTED ? cJSON_AddArrayToObject(o, "ranks") : NULL;
	for (uint32_t i = 0; ranks && i < group->size; i++)
		cJSON_AddItemToArray(ranks, cJSON_CreateNumber(i));
	return o;
}

static cJSON *distributed(const struct known *known, const struct group *all)
{
	cJSON *o = cJSON_CreateObject(), *groups;

	cJSON_AddStringToObject(o, "backend", all->backend);
	cJSON_AddNumberToObject(o, "rank", all->rank);
	cJSON_AddNumberToObject(o, "world_size", all->size);
	groups = cJSON_AddArrayToObject(o, "pg_config");
	for (size_t i = 0; i < known->nr_groups; i++)
		cJSON_AddItemToArray(groups, describe(&known->groups[i]));
	return o;
}

/* Only the group of all processes says which rank it is. */
static int write_groups(struct collectives *c, const struct target *t, const struct known *known)
{
	const struct group *all = NULL;
	char key[64];
	int err;

	for (size_t i = 0; i < known->nr_groups; i++)
		if (known->groups[i].all)
			all = &known->groups[i];
	if (!all)
		return 0;
	snprintf(key, sizeof(key), "distributed.%u", t->pid);
	err = recorder__meta_value(c->recorder, key, distributed(known, all));
	if (!*c->rank_pid)
		*c->rank_pid = t->pid;
	if (!err && *c->rank_pid == t->pid)
		err = recorder__meta_value(c->recorder, "distributed", distributed(known, all));
	return err;
}

static struct group *find_group(struct known *known, const char *name)
{
	for (size_t i = 0; i < known->nr_groups; i++)
		if (!strcmp(known->groups[i].name, name))
			return &known->groups[i];
	return NULL;
}

static int note_group(struct collectives *c, const struct target *t, struct known *known,
		      const struct group *group)
{
	if (find_group(known, group->name) || known->nr_groups == MAX_GROUPS)
		return 0;
	known->groups[known->nr_groups++] = *group;
	return write_groups(c, t, known);
}

/* ---- ranks ---- */

/* Can that be the ranks of a group of which this process is one? all: NULL: not known. */
static bool are_ranks(const uint64_t *ranks, const struct group *g, const struct group *all)
{
	uint32_t most = all ? all->size : MAX_RANKS;

	for (uint32_t i = 0; i < g->size; i++) {
		if (ranks[i] >= most)
			return false;
		for (uint32_t k = 0; k < i; k++)
			if (ranks[k] == ranks[i])
				return false;
	}
	return !all || ranks[g->rank] == all->rank;
}

/* As JSON, malloc'ed; read: NULL: all, in order. NULL: no memory. */
static char *ranks_text(const uint64_t *read, uint32_t nr)
{
	cJSON *list = cJSON_CreateArray();
	char *text;

	for (uint32_t i = 0; i < nr; i++)
		cJSON_AddItemToArray(list, cJSON_CreateNumber(read ? (double)read[i] : i));
	text = cJSON_Print(list);
	cJSON_Delete(list);
	return text;
}

static char *read_ranks(struct target *t, const struct group *g, const struct group *all,
			uint64_t address)
{
	size_t bytes = g->size * sizeof(uint64_t);
	uint64_t *ranks = malloc(bytes);
	char *text = NULL;

	if (ranks && !target__read(t, ranks, bytes, address) && are_ranks(ranks, g, all))
		text = ranks_text(ranks, g->size);
	free(ranks);
	return text;
}

/* Learns the ranks of the call's group, if it tells them. *news: they are new. */
static void learn_ranks(struct target *t, struct known *known, const struct call *call,
			struct group *g, bool *news)
{
	const struct group *all = NULL;
	uint64_t at = call->e->args[COLLECTIVE_ARG_ROOT];

	for (size_t i = 0; i < known->nr_groups; i++)
		if (known->groups[i].all)
			all = &known->groups[i];
	if (g->all || at == g->ranks_at || g->size > MAX_READ || g->reads == MAX_READS)
		return;
	g->reads++;
	free(g->ranks);
	g->ranks = read_ranks(t, g, all, at);
	g->ranks_at = g->ranks ? at : 0;
	*news = g->ranks;
}

/* The ranks of the group, where the call itself tells which list that is. */
static int put_ranks(struct collectives *c, struct details *d, const struct thread *th,
		     struct known *known, const struct call *call, const struct group *of)
{
	struct group *g = find_group(known, of->name);
	bool told = !catalog_has_root(call->p->row->collective) && has(call, COLLECTIVE_ARG_ROOT) &&
		    call->e->args[COLLECTIVE_ARG_ROOT];
	bool news = false;

	if (!g || g->size != of->size || g->rank != of->rank)
		return 0;
	if (told)
		learn_ranks(th->target, known, call, g, &news);
	if (g->all && !g->ranks && g->size <= MAX_SHOWN)
		g->ranks = ranks_text(NULL, g->size);
	if (g->ranks && g->size <= MAX_SHOWN &&
	    (g->all || (told && call->e->args[COLLECTIVE_ARG_ROOT] == g->ranks_at)))
		put(c, d, RANKS, STORE_ATTR_JSON, recorder__string(c->recorder, g->ranks));
	return news ? write_groups(c, th->target, known) : 0;
}

static int called(struct collectives *c, const struct thread *th, struct known *known,
		  const struct call *call, uint64_t number)
{
	const struct catalog_collective *of = call->p->row->collective;
	struct group group = {.backend = of->backend};
	struct details *d = calloc(1, sizeof(*d));
	uint32_t ranks;
	int err = 0;

	if (!d)
		return -ENOMEM;
	d->number = number;
	d->sp = call->e->b.h.sp;
	put_text(c, d, NAME, of->name);
	ranks = put_group(c, d, call, &group);
	put_sizes(c, d, call, ranks);
	put_options(c, d, call, ranks);
	put_name(c, d, call, &group);
	/* It counts itself after it has begun. */
	if (of->peer)
		put_peers(c, d, call, &group);
	else if (has(call, COLLECTIVE_ARG_SEQUENCE) &&
		 call->e->args[COLLECTIVE_ARG_SEQUENCE] < INT64_MAX)
		put(c, d, SEQUENCE, STORE_ATTR_U64, call->e->args[COLLECTIVE_ARG_SEQUENCE] + 1);
	group.all = !strcmp(group.name, of->all);
	if (ranks && *group.name)
		err = note_group(c, th->target, known, &group);
	if (!err && ranks && *group.name)
		err = put_ranks(c, d, th, known, call, &group);
	if (!err && number)
		err = recorder__attrs(c->recorder, number, d->attrs, d->nr);
	if (err) {
		free(d);
		return err;
	}
	return keep(known, &known->calls, (uint32_t)th->pid_tgid, d);
}

/* ---- from the call to its work ---- */

int collectives__queued(struct collectives *c, const struct thread *th,
			const struct kprof_wire_begin_args *e, uint64_t number)
{
	struct known *known = known_of(c, th->target);
	struct details *d;

	if (!known)
		return -ENOMEM;
	d = take(known, &known->calls, (uint32_t)th->pid_tgid);
	/* a call that queued nothing, and another one that is not known, does not count */
	if (!d || e->faults || d->number != number || e->b.h.sp >= d->sp) {
		free(d);
		return 0;
	}
	return keep(known, &known->works, e->args[0], d);
}

int collectives__begun(struct collectives *c, const struct thread *th, const struct probe *p,
		       const struct kprof_wire_begin_args *e, uint64_t number)
{
	struct known *known = known_of(c, th->target);
	struct call call = {p, e};
	struct details *d;
	int err = 0;

	if (!known)
		return -ENOMEM;
	if (p->row->collective->role == CATALOG_COLLECTIVE_CALL)
		return called(c, th, known, &call, number);
	d = e->faults & 1 ? NULL : take(known, &known->works, e->args[0]);
	if (d && number)
		err = recorder__attrs(c->recorder, number, d->attrs, d->nr);
	free(d);
	return err;
}
