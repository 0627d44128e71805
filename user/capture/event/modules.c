// SPDX-License-Identifier: BSD-2-Clause
#include "capture/event/modules.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>

#include "capture/event/imports.h"
#include "symbol/python/python.h"
#include "util/error.h"
#include "util/map64.h"
#include "util/util.h"

#define CATEGORY "python_function" /* Kineto's */
/* Reading trees may take so long, and beyond one part in so many of the time. */
#define TREES_FIRST_NS (200 * NSEC_PER_MSEC)
#define TREES_SHARE 20

struct module_object {
	uint64_t type; /* its class: another one at the same address is another module */
	uint32_t description;
	uint32_t name; /* string id: "Linear_0" */
};

struct target_modules {
	struct imports imports;
	struct map64 objects; /* address → struct module_object * */
	struct map64 places; /* address → string ids: path << 32 | name of the outermost module */
	struct map64 numbers; /* string id of a class's name → how many modules of it were met */
};

struct modules_seen {
	struct modules_seen_opts opts;
	struct imports_opts imports;
	uint32_t slot, source, category;
	uint32_t others; /* event description of modules beyond MODULES_MOST; 0: not needed yet */
	size_t nr_objects;
	uint64_t begin_ns, trees_ns; /* since when, and how long trees were read */
	uint64_t unknown, lost, trees, trees_left_out, without_path;
};

int modules_seen__new(const struct modules_seen_opts *opts, struct modules_seen **out)
{
	struct modules_seen *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return error_set(-ENOMEM, NULL, "no memory for modules");
	m->opts = *opts;
	m->imports = (struct imports_opts){
		.layout = opts->layout,
		.ctx = opts->ctx,
		.calls = true,
		.tell = attacher__set_modules,
		.attacher = opts->attacher,
		.without = "calls of modules are not seen",
	};
	m->slot = targets__slot(opts->targets);
	m->begin_ns = clock_mono_ns();
	m->category = recorder__string(opts->recorder, CATEGORY);
	err = recorder__source(opts->recorder, "modules", &m->source);
	if (!err)
		err = recorder__meta(opts->recorder, "with_modules", "true");
	if (err) {
		free(m);
		return err;
	}
	attacher__modules_source(opts->attacher, m->source);
	*out = m;
	return 0;
}

void modules_seen__free(struct modules_seen *m)
{
	struct target *t, *next;

	if (!m)
		return;
	TARGETS_EACH (m->opts.targets, t, next)
		modules_seen__forget(m, t);
	free(m);
}

void modules_seen__forget(struct modules_seen *m, struct target *t)
{
	struct target_modules *tm = m ? t->slot[m->slot] : NULL;

	if (!tm)
		return;
	imports__forget(&m->imports, &tm->imports, t);
	for (size_t i = 0; i < tm->objects.cap; i++)
		free((void *)(uintptr_t)tm->objects.slots[i].value);
	map64__free(&tm->objects);
	map64__free(&tm->places);
	map64__free(&tm->numbers);
	free(tm);
	t->slot[m->slot] = NULL;
}

uint32_t modules_seen__source(const struct modules_seen *m)
{
	return m->source;
}

/* ---- where PyTorch is ---- */

static int tend(struct modules_seen *m, struct target *t, uint64_t now_ns)
{
	struct target_modules *tm = t->slot[m->slot];
	int found;

	if (t->shares_memory || t->ended || t->kernel_thread || t->left_out)
		return 0;
	if (!tm)
		tm = t->slot[m->slot] = calloc(1, sizeof(*tm));
	if (!tm)
		return -ENOMEM;
	found = imports__tend(&m->imports, &tm->imports, t, now_ns);
	return found < 0 ? found : 0;
}

int modules_seen__tend(struct modules_seen *m, uint64_t now_ns)
{
	struct target *t;
	int err = 0;

	if (!m)
		return 0;
	for (t = targets__first(m->opts.targets); t && !err; t = t->hh.next)
		err = tend(m, t, now_ns);
	return err;
}

/* ---- names ---- */

struct reading {
	struct modules_seen *m;
	struct target_modules *tm;
	uint32_t outermost; /* string id */
	const char *prefix; /* "": the tree begins with the outermost module itself */
};

static int put_place(void *ctx, uint64_t module, const char *path)
{
	struct reading *r = ctx;
	uint64_t *place = map64__at(&r->tm->places, module);
	char *whole = NULL;
	uint32_t id;

	if (!place)
		return -ENOMEM;
	if (*place) /* it was met below another module before */
		return 0;
	if (*r->prefix) {
		whole = xasprintf("%s.%s", r->prefix, path);
		if (!whole)
			return -ENOMEM;
	}
	id = recorder__string(r->m->opts.recorder, whole ? whole : path);
	free(whole);
	*place = (uint64_t)id << 32 | r->outermost;
	return id ? 0 : -ENOMEM;
}

/*
 * Reads the tree of modules below one that is in no tree so far. Reading is bounded, as a program
 * may make new modules all the time.
 */
static int read_tree(struct modules_seen *m, struct target *t, uint64_t module, uint32_t outermost,
		     const char *prefix)
{
	struct python_memory memory = {.read = target__read, .ctx = t};
	struct target_modules *tm = t->slot[m->slot];
	struct reading r = {m, tm, outermost, prefix};
	uint64_t begin_ns = clock_mono_ns();
	int err;

	if (m->trees_ns > TREES_FIRST_NS + (begin_ns - m->begin_ns) / TREES_SHARE) {
		m->trees_left_out++;
		return 0;
	}
	err = python_nn__tree(&tm->imports.known.python, &memory, module, put_place, &r);
	m->trees++;
	m->trees_ns += clock_mono_ns() - begin_ns;
	return err;
}

static int describe(struct modules_seen *m, const char *name, uint32_t *description)
{
	struct store_record r = {
		.type = STORE_DESCRIPTION,
		.description = {.category = m->category, .source = m->source},
	};
	char *shown = xasprintf("nn.Module: %s", name);

	r.description.name = shown ? recorder__string(m->opts.recorder, shown) : 0;
	free(shown);
	return r.description.name ? recorder__describe(m->opts.recorder, &r, description) : -ENOMEM;
}

static int record(struct modules_seen *m, uint32_t description, uint32_t class, uint64_t number,
		  uint64_t place)
{
	struct store_record r = {
		.type = STORE_NN_MODULE,
		.nn_module = {.description = description,
			      .number = number,
			      .class_name = class,
			      .path = (uint32_t)(place >> 32),
			      .outermost = (uint32_t)place},
	};

	return recorder__put(m->opts.recorder, &r);
}

/* Gives a module its names. outer: the one in whose call it was met; NULL: in none. */
static int name_object(struct modules_seen *m, struct target *t, const struct kprof_module_call *c,
		       const struct module_object *outer, struct module_object *o)
{
	struct python_memory memory = {.read = target__read, .ctx = t};
	struct target_modules *tm = t->slot[m->slot];
	char *class = python_nn__class(&tm->imports.known.python, &memory, c->type), *name;
	uint32_t id = recorder__string(m->opts.recorder, class ? class : "[unknown]");
	uint64_t *number = map64__at(&tm->numbers, id), place;
	int err = 0;

	name = number ? xasprintf("%s_%llu", class ? class : "[unknown]",
				  (unsigned long long)*number)
		      : NULL;
	o->name = name ? recorder__string(m->opts.recorder, name) : 0;
	if (!o->name)
		err = -ENOMEM;
	place = err ? 0 : map64__get(&tm->places, c->self);
	if (!err && !place) {
		err = read_tree(m, t, c->self, o->name, outer ? name : "");
		if (outer)
			m->without_path++;
	}
	if (!err)
		err = describe(m, name, &o->description);
	if (!err)
		err = record(m, o->description, id, (*number)++, place);
	free(name);
	free(class);
	return err;
}

static int describe_others(struct modules_seen *m)
{
	int err = describe(m, "(others)", &m->others);

	return err ? err
		   : record(m, m->others, recorder__string(m->opts.recorder, "(others)"), 0, 0);
}

/* The module of a call; NULL in *out: there are too many. */
static int object_of(struct modules_seen *m, struct target *t, const struct kprof_module_call *c,
		     const struct module_object *outer, struct module_object **out)
{
	struct target_modules *tm = t->slot[m->slot];
	uint64_t *at = map64__at(&tm->objects, c->self);
	struct module_object *o = at ? (struct module_object *)(uintptr_t)*at : NULL;
	int err;

	*out = o;
	if (!at)
		return -ENOMEM;
	if (o && o->type == c->type)
		return 0;
	*out = NULL;
	if (m->nr_objects >= MODULES_MOST)
		return m->others ? 0 : describe_others(m);
	if (!o)
		o = calloc(1, sizeof(*o));
	if (!o)
		return -ENOMEM;
	*at = (uintptr_t)o;
	m->nr_objects++;
	err = name_object(m, t, c, outer, o);
	o->type = err ? 0 : c->type;
	*out = err ? NULL : o;
	return err;
}

/* ---- calls ---- */

static uint64_t key_of(const struct kprof_module_call *c)
{
	uint64_t key = hash64(hash64(hash64(hash64(c->frame) ^ c->self) ^ c->type) ^ c->tag);

	return key ? key : 1;
}

int modules_seen__event(struct modules_seen *m, struct thread *th,
			const struct kprof_wire_modules *e)
{
	const struct kprof_module_call *calls = (const struct kprof_module_call *)(e + 1);
	struct span_stretch list[KPROF_MODULES_MAX_CALLS];
	struct module_object *outer = NULL, *o;
	uint32_t nr = e->nr;
	int err = 0;

	/* the program may have been replaced by another since */
	if (!th->target->slot[m->slot] ||
	    !((struct target_modules *)th->target->slot[m->slot])->imports.told)
		nr = 0;
	m->unknown += (e->flags & KPROF_MODULES_UNKNOWN) != 0;
	for (uint32_t i = 0; i < nr && !err; i++, outer = o) {
		const struct kprof_module_call *c = &calls[nr - 1 - i];

		err = object_of(m, th->target, c, outer, &o);
		list[i] = (struct span_stretch){.key = key_of(c),
						.description = o ? o->description : m->others,
						.source = m->source};
	}
	if (err)
		return err;
	err = spans__stretches(m->opts.spans, th->spans, e->h.time_ns, e->h.sp, list, nr,
			       e->flags & KPROF_MODULES_ON);
	if (err != -ENOENT)
		return err;
	/* it was closed here, though it goes on, or the program switches stacks of its own */
	m->lost++;
	attacher__ask_modules(m->opts.attacher);
	return spans__stretches(m->opts.spans, th->spans, e->h.time_ns, e->h.sp, NULL, 0, false);
}

int modules_seen__account(struct modules_seen *m)
{
	cJSON *o = cJSON_CreateObject();
	const struct {
		const char *name;
		uint64_t value;
	} numbers[] = {
		{"modules", m->nr_objects},
		{"stacks_unknown", m->unknown},
		{"calls_lost", m->lost},
		{"trees", m->trees},
		{"trees_left_out", m->trees_left_out},
		{"without_path", m->without_path},
	};

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		cJSON_AddNumberToObject(o, numbers[i].name, (double)numbers[i].value);
	if (m->nr_objects >= MODULES_MOST)
		log_warn("a shorter recording, or one of fewer processes",
			 "of more than %u modules, those that were met later have no names",
			 MODULES_MOST);
	return recorder__meta_value(m->opts.recorder, "modules", o);
}
