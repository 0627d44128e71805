// SPDX-License-Identifier: BSD-2-Clause
#include "capture/probe/plan.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/probe/collectives.h"
#include "capture/probe/messages.h"
#include "capture/probe/layout.h"
#include "capture/probe/observer_layout.h"
#include "capture/probe/plan_match.h"
#include "capture/probe/sequence.h"
#include "capture/probe/tensors.h"
#include "catalog/runtime.h"
#include "kprof/options.h"
#include "symbol/names/names.h"
#include "util/error.h"
#include "util/map64.h"
#include "util/util.h"

/* In a mangled name: an optional<> of PyTorch's own, as it had one before 2.3. */
#define OWN_OPTIONAL "N3c108optionalI"

struct planner {
	const struct catalog_framework *fw;
	const struct elffile *library;
	const struct plan_filter *filter;
	struct schemas *schemas;
	struct matcher *matchers;
	size_t nr;
	struct plan *plan;
	struct map64 seen; /* offset in the file → 1: a probe is planned there */
	struct layout_env env;
	struct sieve sieve;
	bool own_optional; /* the library has c10::optional<> as a class of its own */
};

static bool any_match(const char *const *globs, size_t nr, const char *name)
{
	for (size_t i = 0; i < nr; i++)
		if (!fnmatch(globs[i], name, 0))
			return true;
	return false;
}

static bool is_wanted_op(const struct plan_filter *f, const char *name)
{
	bool wanted = false;

	for (size_t i = 0; i < f->nr_ops; i++) {
		if (fnmatch(f->ops[i], name, 0))
			continue;
		if (f->ops_matched && i < 64)
			*f->ops_matched |= 1ull << i;
		wanted = true;
	}
	return wanted;
}

bool plan_filter_accepts(const struct plan_filter *f, const char *category, const char *name)
{
	if (f->nr_ops && !strcmp(category, "cpu_op") && !is_wanted_op(f, name))
		return false;
	return !any_match(f->exclude, f->nr_exclude, name);
}

bool plan_filter_wants_type(const struct plan_filter *f, enum kprof_activity type)
{
	return !f->types || f->types >> type & 1;
}

bool plan_filter_wants_row(const struct plan_filter *f, const struct catalog_row *row)
{
	if (row->scope && f->scopes && !(row->scope & f->scopes))
		return false;
	return plan_filter_wants_type(f, catalog_row_type(row));
}

bool plan_filter_wants_annotations(const struct plan_filter *f)
{
	if (f->within)
		return true;
	if (f->scopes && !(f->scopes >> KPROF_SCOPE_USER_SCOPE & 1))
		return false;
	return plan_filter_wants_type(f, KPROF_ACTIVITY_USER_ANNOTATION);
}

/*
 * Could the filter accept an event of this row? Of its name, only the bytes before the first % are
 * known.
 */
static bool filter_may_accept(const struct plan_filter *f, const struct catalog_row *row)
{
	size_t len;

	if (row->memory) /* asked for by itself, whatever types are */
		return f->memory;
	if (f->within && (row->shape == CATALOG_RANGE_BEGIN || row->shape == CATALOG_RANGE_END))
		return true;
	/* Annotations end in a row of operators. */
	if (row->range_end_text && plan_filter_wants_annotations(f))
		return true;
	if (!plan_filter_wants_row(f, row))
		return false;
	if (!f->nr_ops || strcmp(row->category, "cpu_op") || !row->name)
		return true;
	len = strcspn(row->name, "%");
	for (size_t i = 0; i < f->nr_ops; i++) {
		size_t prefix = strcspn(f->ops[i], "*?[\\");

		if (!strncmp(f->ops[i], row->name, prefix < len ? prefix : len))
			return true;
	}
	return false;
}

/* True when the offset is new. Several symbols (aliases, destructors D1 and D2) share an offset. */
static bool see_offset(struct planner *p, uint64_t offset)
{
	uint64_t *slot = map64__at(&p->seen, offset);

	if (!slot || *slot)
		return false;
	*slot = 1;
	return true;
}

/* Fills in the event's name when the symbol alone decides it. */
static int name_probe(struct planner *p, const struct catalog_row *row, const char *symbol,
		      struct plan_probe *probe)
{
	const char *name, *overload = "", *schema;
	char class[256];

	if (row->naming == CATALOG_NAME_FIXED) {
		probe->name = strdup(row->name ? row->name : "");
	} else if (row->naming == CATALOG_NAME_SYMBOL) {
		probe->name = strndup(symbol, catalog_stem(row->suffixes, symbol));
	} else if (row->naming == CATALOG_NAME_SCHEMA) {
		int err = schema_struct_name(symbol, class, sizeof(class));

		if (err)
			return err;
		if (!p->schemas || schemas__find(p->schemas, class, &name, &overload, &schema)) {
			probe->name = xasprintf("aten::%s", class);
			overload = "";
		} else {
			probe->name = strdup(name);
		}
	} else {
		return 0;
	}
	probe->overload = strdup(overload);
	return probe->name && probe->overload ? 0 : -ENOMEM;
}

static bool is_hidden(const struct catalog_framework *fw, const char *name)
{
	for (size_t i = 0; fw->hidden && fw->hidden[i]; i++)
		if (!strcmp(fw->hidden[i], name))
			return true;
	return false;
}

/*
 * Fills in a probe: its name decides whether it is wanted, the function's code where it goes. 1:
 * left out.
 */
static int fill_probe(struct planner *p, const struct catalog_row *row,
		      const struct elffile_symbol *sym, uint64_t offset, struct plan_probe *probe)
{
	struct insn_entry entry;
	const uint8_t *code;
	size_t avail;
	int err;

	/* of all symbols, also of those that the filter leaves out */
	p->own_optional |= strstr(sym->name, OWN_OPTIONAL) != NULL;
	err = name_probe(p, row, sym->name, probe);
	if (err)
		return err == -ENOMEM ? err : 1;
	if (probe->name && row->shape != CATALOG_RANGE_END) {
		if (is_hidden(p->fw, probe->name)) {
			p->plan->hidden++;
			return 1;
		}
		if (!plan_filter_accepts(p->filter, row->category, probe->name)) {
			p->plan->filtered++;
			return 1;
		}
		probe->common = p->filter->mark_common && catalog_match(p->fw->common, probe->name);
	}
	code = elffile__bytes(p->library, offset, 64, &avail);
	if (!code || !elffile__executable(p->library, offset))
		return 1;
	if (sym->size && sym->size < avail)
		avail = sym->size;
	insn_entry_site(code, avail, &entry);
	probe->row = row;
	probe->offset = offset + entry.skip_bytes;
	probe->sp_bias_bytes = entry.sp_bias_bytes;
	probe->cost = entry.cost;
	/* of a boxed call, the sequence number goes by its inputs */
	if ((row->inputs != CATALOG_INPUTS_NONE && p->filter->inputs) ||
	    (row->sequence == KPROF_SEQUENCE_TENSOR && p->filter->flow) ||
	    (row->inputs == CATALOG_INPUTS_BOXED && p->filter->flow))
		probe->symbol = strdup(sym->name);
	return 0;
}

static void probe_free(struct plan_probe *probe)
{
	free(probe->name);
	free(probe->overload);
	free(probe->symbol);
	free(probe->signature);
}

static int add_probe(struct planner *p, struct matcher *m, const struct elffile_symbol *sym)
{
	struct plan_probe probe = {0};
	struct plan_row *row = &p->plan->rows[m->row - p->fw->rows];
	uint64_t offset = elffile__offset(p->library, sym->vaddr);
	int err;

	if (offset == UINT64_MAX)
		return 0;
	err = fill_probe(p, m->row, sym, offset, &probe);
	if (!err && !see_offset(p, probe.offset))
		err = 1;
	if (!err) {
		row->by_cost[probe.cost]++;
		err = probe.cost == INSN_FORBIDDEN;
	}
	if (!err)
		err = vec_grow((void **)&p->plan->probes, &p->plan->cap, p->plan->nr,
			       sizeof(*p->plan->probes));
	if (err) {
		probe_free(&probe);
		return err < 0 ? err : 0;
	}
	p->plan->probes[p->plan->nr++] = probe;
	row->probes++;
	return 0;
}

static int on_symbol(void *ctx, const struct elffile_symbol *sym)
{
	struct planner *p = ctx;
	struct matcher *first = NULL;

	if (!sym->function || !sieve__passes(&p->sieve, sym->name))
		return 0;
	for (size_t i = 0; i < p->nr; i++) {
		struct matcher *m = &p->matchers[i];

		if (!matcher__matches(m, sym->name))
			continue;
		m->hits++;
		if (!m->only_without)
			first = first ? first : m;
	}
	/* Compilers split off unlikely parts of functions (.cold); reaching one is not a call. */
	return first && !strstr(sym->name, ".cold") ? add_probe(p, first, sym) : 0;
}

struct seek {
	struct matcher matcher;
	struct sieve sieve;
	bool found;
};

static int seek_symbol(void *ctx, const struct elffile_symbol *sym)
{
	struct seek *seek = ctx;

	seek->found = sym->function && sieve__passes(&seek->sieve, sym->name) &&
		      matcher__matches(&seek->matcher, sym->name);
	return seek->found;
}

/* Does another library of the process have the symbols of the row's only_without? */
static bool other_has(const struct plan_files *others, const struct catalog_row *row)
{
	struct seek seek = {0};

	if (matcher__init(&seek.matcher, row, row->only_without))
		return false;
	sieve__add(&seek.sieve, &seek.matcher);
	for (size_t i = 0; i < others->nr && !seek.found; i++)
		if (catalog_match(row->only_without_in, others->names[i]))
			elffile__symbols(others->files[i], seek_symbol, &seek);
	matcher__free(&seek.matcher);
	return seek.found;
}

/*
 * Creates matchers for the rows that apply to this library, and for their only_without conditions.
 */
static int make_matchers(struct planner *p, const char *base_name, const struct plan_files *others)
{
	bool none = p->filter->only && !(p->filter->only & p->fw->annotations);
	bool want_schemas = false;
	int err;

	p->matchers = calloc(p->fw->nr_rows * 2, sizeof(*p->matchers));
	if (!p->matchers)
		return -ENOMEM;
	for (size_t i = 0; i < p->fw->nr_rows && !none; i++) {
		const struct catalog_row *row = &p->fw->rows[i];
		struct plan_row *pr = &p->plan->rows[i];
		size_t first = p->nr;

		pr->row = row;
		pr->library_matches = catalog_match(row->library, base_name);
		if (!pr->library_matches || !filter_may_accept(p->filter, row))
			continue;
		if (p->filter->observed && p->fw->observer_library && !row->memory) {
			pr->not_needed = true;
			continue;
		}
		if (row->only_without_in && other_has(others, row)) {
			pr->not_needed = true;
			continue;
		}
		err = matcher__init(&p->matchers[p->nr++], row, row->symbols);
		if (!err && row->only_without && !row->only_without_in) {
			struct matcher *m = &p->matchers[p->nr++];

			err = matcher__init(m, row, row->only_without);
			m->only_without = true;
		}
		if (err)
			return err;
		for (size_t k = first; k < p->nr; k++)
			sieve__add(&p->sieve, &p->matchers[k]);
		want_schemas |= row->naming == CATALOG_NAME_SCHEMA;
	}
	return want_schemas ? schemas__load(p->library, &p->schemas) : 0;
}

/* Drops the probes of rows whose only_without symbols were found in the library. */
static void drop_unneeded(struct planner *p)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->nr; i++) {
		struct plan_row *row = &p->plan->rows[p->matchers[i].row - p->fw->rows];

		if (p->matchers[i].only_without && p->matchers[i].hits)
			*row = (struct plan_row){.row = row->row,
						 .library_matches = row->library_matches,
						 .not_needed = true};
	}
	for (size_t k = 0; k < p->plan->nr; k++) {
		struct plan_probe *probe = &p->plan->probes[k];

		if (p->plan->rows[probe->row - p->fw->rows].not_needed)
			probe_free(probe);
		else
			p->plan->probes[kept++] = *probe;
	}
	p->plan->nr = kept;
}

static void fill_recipes(struct planner *p)
{
	struct collectives_layout collectives = {0};
	struct messages_layout messages = {0};

	for (size_t i = 0; i < p->plan->nr; i++) {
		struct plan_probe *probe = &p->plan->probes[i];
		struct plan_row *row = &p->plan->rows[probe->row - p->fw->rows];
		const char *problem = layout_fill(&p->env, probe->row, &probe->wire);

		if (problem)
			row->problem = problem;
		for (size_t k = 0; k < KPROF_WIRE_MAX_ARGS; k++)
			probe->wire.args[k] = probe->row->args[k].from;
		if (probe->row->message) {
			messages_fill(&p->env, probe->row, &messages, &probe->wire);
			probe->handles_are_objects = messages.objects;
		}
		if (!probe->row->collective)
			continue;
		collectives_learn(p->fw, probe->row, &p->env, &collectives);
		collectives_fill(&collectives, probe->row->collective, &probe->wire);
		probe->type_mask = collectives.tensor.type_mask;
	}
}

/* The parameters of an operator's function, as signature_parse(). */
static int parse(const struct planner *p, const struct plan_probe *probe, struct signature *out)
{
	const char *name, *overload, *schema = "";
	char class[256];

	if (p->schemas && !schema_struct_name(probe->symbol, class, sizeof(class)))
		schemas__find(p->schemas, class, &name, &overload, &schema);
	return signature_parse(probe->symbol, schema, p->own_optional, out);
}

static bool is_boxed(const struct catalog_row *row)
{
	return row->inputs == CATALOG_INPUTS_BOXED || row->inputs == CATALOG_INPUTS_STACK;
}

/* How values on a stack are read. -ENOENT: that is not known. */
static int boxed(const struct kprof_agent_layout *lists, struct signature *out)
{
	out->boxed = true;
	out->plan.list_off = lists->list_off;
	out->plan.list_tag = lists->list_tag;
	out->plan.tensor_kind = lists->tensor_kind;
	return lists->list_off ? 0 : -ENOENT;
}

/* How the inputs of one call are read. NULL: they cannot be, or there is no memory. */
static struct signature *signature_of(struct planner *p, const struct plan_probe *probe,
				      const struct kprof_agent_layout *lists)
{
	struct signature *s = calloc(1, sizeof(*s));
	int err = 0;

	if (!s)
		return NULL;
	if (probe->row->inputs == CATALOG_INPUTS_VECTOR_ARG3) {
		s->plan.in[s->plan.nr++] =
			(struct kprof_input){.read = KPROF_INPUT_TENSOR_VECTOR, .at = 2};
		s->arguments[s->nr++] = (struct signature_argument){SIGNATURE_EACH_TENSOR,
								    KPROF_INPUT_TENSOR_VECTOR};
	} else if (is_boxed(probe->row)) {
		s->stack = probe->row->inputs == CATALOG_INPUTS_STACK;
		s->plan.nr = p->filter->inputs;
		err = boxed(lists, s);
	} else {
		err = parse(p, probe, s);
	}
	if (!err)
		return s;
	free(s);
	return NULL;
}

/* Finds out how inputs are read, for the probes of rows that have some. */
static void plan_inputs(struct planner *p)
{
	struct kprof_agent_layout lists;
	struct tensor_layout layout;
	int err = tensors_layout(p->fw, &p->env, &layout);

	observer_layout_lists(p->fw, &p->env, &lists);
	for (size_t i = 0; i < p->plan->nr; i++) {
		struct plan_probe *probe = &p->plan->probes[i];

		if (!probe->symbol || (!p->filter->inputs && !is_boxed(probe->row)))
			continue;
		if (!err)
			probe->signature = signature_of(p, probe, &lists);
		if (probe->signature) {
			probe->signature->plan.sizes_off = layout.sizes_off;
			probe->signature->plan.type_mask = layout.type_mask;
		} else {
			p->plan->unread += p->filter->inputs;
		}
	}
	p->plan->no_tensors = err && p->plan->unread;
}

/* Is there a probe on the function inside that runs a node? */
static bool sees_nodes(const struct plan *plan)
{
	for (size_t i = 0; i < plan->nr; i++)
		if (plan->probes[i].row->sequence == KPROF_SEQUENCE_NODE)
			return true;
	return false;
}

/* Finds out how sequence numbers are read. */
static int plan_sequences(struct planner *p, const char *base_name)
{
	const struct catalog_sequence *s = p->fw->sequence;
	bool nodes = sees_nodes(p->plan);
	struct signature signature;

	if (!s)
		return 0;
	for (size_t i = 0; i < p->plan->nr; i++) {
		struct plan_probe *probe = &p->plan->probes[i];
		enum kprof_sequence_rule rule = probe->row->sequence;

		if (rule == KPROF_SEQUENCE_TENSOR)
			probe->sequence =
				sequence_by_tensors(&signature, !parse(p, probe, &signature));
		else if (rule == KPROF_SEQUENCE_AROUND && !nodes)
			probe->sequence = KPROF_COOKIE_SEQUENCE(KPROF_SEQUENCE_NODE,
								probe->row->sequence_arg);
		else
			probe->sequence = KPROF_COOKIE_SEQUENCE(rule, probe->row->sequence_arg);
	}
	if (!catalog_match(s->numbers_library, base_name) || !p->plan->nr)
		return 0;
	p->plan->sequence = calloc(1, sizeof(*p->plan->sequence));
	if (!p->plan->sequence)
		return -ENOMEM;
	if (sequence_learn(s, &p->env, p->plan->sequence)) {
		free(p->plan->sequence);
		p->plan->sequence = NULL;
		p->plan->no_sequence = true;
	}
	return 0;
}

int plan_library(const struct catalog_framework *fw, const struct elffile *library,
		 const char *base_name, const struct plan_files *others,
		 const struct plan_filter *filter, struct plan *out)
{
	struct planner p = {
		.fw = fw,
		.library = library,
		.filter = filter,
		.plan = out,
		.env = {.files = others->files, .names = others->names, .nr = others->nr},
	};
	int err;

	memset(out, 0, sizeof(*out));
	out->rows = calloc(fw->nr_rows, sizeof(*out->rows));
	out->nr_rows = fw->nr_rows;
	err = out->rows ? make_matchers(&p, base_name, others) : -ENOMEM;
	if (!err && p.nr)
		err = elffile__symbols(library, on_symbol, &p);
	if (!err) {
		drop_unneeded(&p);
		fill_recipes(&p);
	}
	if (!err && (filter->inputs || filter->flow))
		plan_inputs(&p);
	if (!err && filter->flow)
		err = plan_sequences(&p, base_name);
	for (size_t i = 0; i < p.nr; i++)
		matcher__free(&p.matchers[i]);
	free(p.matchers);
	map64__free(&p.seen);
	schemas__free(p.schemas);
	if (err)
		plan_free(out);
	return err;
}

void plan_free(struct plan *p)
{
	for (size_t i = 0; i < p->nr; i++)
		probe_free(&p->probes[i]);
	free(p->probes);
	free(p->rows);
	free(p->sequence);
	memset(p, 0, sizeof(*p));
}
