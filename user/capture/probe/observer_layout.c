// SPDX-License-Identifier: BSD-2-Clause
#include "capture/probe/observer_layout.h"

#include <errno.h>
#include <string.h>

#include "capture/probe/tensors.h"
#include "symbol/x86/x86.h"

#define MAX_BYTES 1024
#define FIELDS 4 /* that are looked at */

/* Tags of lists: as many as there are kinds of numbers (gpu/pytorch/inputs.c). */
enum { FIRST_LIST_TAG = 12, LAST_LIST_TAG = 14 };

typedef bool (*visit_fn)(void *ctx, const struct code_insn *insn, const uint8_t *code);

/* Visits the instructions in order of address, until visit() returns true, which is returned. */
static bool find(struct code_bytes function, visit_fn visit, void *ctx)
{
	size_t bytes = function.bytes < MAX_BYTES ? function.bytes : MAX_BYTES;
	struct code_insn insn;

	for (size_t at = 0;
	     function.code && at < bytes && code_insn_decode(function.code + at, bytes - at, &insn);
	     at += insn.length)
		if (visit(ctx, &insn, function.code + at))
			return true;
	return false;
}

static int32_t last_int(const struct code_insn *insn, const uint8_t *code)
{
	int32_t v;

	memcpy(&v, code + insn->length - sizeof(v), sizeof(v));
	return v;
}

/* Is it `mov qword [reg + ctx], -1`? */
static bool stores_minus_one(void *ctx, const struct code_insn *insn, const uint8_t *code)
{
	return insn->memory == CODE_MEMORY_WRITTEN && insn->place < CODE_NR &&
	       insn->disp == *(const int32_t *)ctx && (code[0] & ~1u) == 0x48 && code[1] == 0xc7 &&
	       last_int(insn, code) == -1;
}

/*
 * inputs_ (an address and a number) follows sequence_nr_, which the constructor sets to -1, and
 * nothing else that is near is. The function reads one half of inputs_ first, or the other.
 */
static int learn_inputs(struct code_bytes constructor, struct code_bytes inputs, uint16_t *off)
{
	int32_t read, before;

	if (!inputs.code || insn_first_field(inputs.code, inputs.bytes, 2, 16, &read) ||
	    read > UINT16_MAX)
		return -ENOENT;
	for (before = read - 16; before < read; before += 8) {
		if (!find(constructor, stores_minus_one, &before))
			continue;
		*off = (uint16_t)(before + 8);
		return 0;
	}
	return -ENOENT;
}

struct list_search {
	struct kprof_agent_layout *out;
	struct code_insn load; /* the instruction before, if it is a load */
	bool has_tag;
};

/*
 * The tag is compared, and then the kind of what the elements' type, another object, is:
 *     cmp dword [reg + 8], TAG … mov a, [b + TYPE]; cmp dword [a + 8], KIND
 */
static bool compares(void *ctx, const struct code_insn *insn, const uint8_t *code)
{
	struct list_search *s = ctx;
	size_t opcode = (code[0] & 0xf0) == 0x40; /* behind a REX prefix */
	bool is_compare = insn->memory == CODE_MEMORY_READ && insn->place < CODE_NR &&
			  insn->disp == 8 && code[opcode] == 0x83 &&
			  (code[opcode + 1] >> 3 & 7) == 7;
	bool done = false;

	if (is_compare && !s->has_tag) {
		s->out->list_tag = code[insn->length - 1];
		s->has_tag = true;
	} else if (is_compare && s->load.kind == CODE_LOAD && s->load.a == insn->place &&
		   s->load.disp >= 24 + 8 && s->load.disp < UINT16_MAX) {
		s->out->list_off = (uint16_t)(s->load.disp - 24); /* a std::vector lies before */
		s->out->tensor_kind = code[insn->length - 1];
		done = true;
	}
	s->load = *insn;
	return done;
}

/* The code of a function of the library that operators are observed in. */
static struct code_bytes code_of(const struct catalog_framework *fw, const struct layout_env *env,
				 const char *name)
{
	struct code_bytes c = {0};
	struct elffile_symbol s;

	for (size_t i = 0; i < env->nr && !c.code; i++) {
		if (!catalog_match(fw->observer_library, env->names[i]) ||
		    elffile__symbol(env->files[i], name, &s) || !s.function)
			continue;
		c.code = elffile__bytes(env->files[i], elffile__offset(env->files[i], s.vaddr),
					s.size, &c.bytes);
	}
	return c;
}

static void learn_lists(struct code_bytes is_list, struct kprof_agent_layout *out)
{
	struct list_search search = {.out = out};

	if (!find(is_list, compares, &search) || out->list_tag < FIRST_LIST_TAG ||
	    out->list_tag > LAST_LIST_TAG)
		out->list_off = 0;
}

int observer_layout_lists(const struct catalog_framework *fw, const struct layout_env *env,
			  struct kprof_agent_layout *out)
{
	*out = (struct kprof_agent_layout){0};
	if (!fw->observer_library || !fw->observer_is_list)
		return -ENOENT;
	learn_lists(code_of(fw, env, fw->observer_is_list), out);
	return out->list_off ? 0 : -ENOENT;
}

/* Between inputs_ and fwd_thread_id_: outputs_ (a std::vector), and in later releases kwinputs_. */
enum { FORWARD_AFTER = 16 + 24, FORWARD_AFTER_NAMED = FORWARD_AFTER + 56 };

/*
 * fwd_thread_id_ is what the profiler reads next to the sequence number, before or after it, as it
 * passes one behind the other.
 */
static uint16_t learn_forward(struct code_bytes begins, uint16_t inputs_off)
{
	int32_t number = inputs_off - 8, read[FIELDS], found = 0;
	int nr = begins.code ? insn_fields(begins.code, begins.bytes, 3, number, read, FIELDS) : 0;

	for (int i = 0; i < nr && !found; i++) {
		if (read[i] != number)
			continue;
		found = i ? read[i - 1] : nr > 1 ? read[1] : -1;
	}
	if (found != inputs_off + FORWARD_AFTER && found != inputs_off + FORWARD_AFTER_NAMED)
		return 0;
	return (uint16_t)found;
}

void observer_layout_learn(struct code_bytes constructor, struct code_bytes inputs,
			   struct code_bytes begins, struct code_bytes is_list,
			   struct kprof_agent_layout *out)
{
	learn_lists(is_list, out);
	if (learn_inputs(constructor, inputs, &out->inputs_off))
		out->inputs_off = 0;
	else
		out->forward_off = learn_forward(begins, out->inputs_off);
}

uint32_t observer_layout(const struct catalog_framework *fw, const struct layout_env *env,
			 struct kprof_agent_layout *out)
{
	struct tensor_layout tensor;
	uint32_t known = 0;

	*out = (struct kprof_agent_layout){0};
	if (!fw->observer_inputs)
		return 0;
	observer_layout_learn(
		code_of(fw, env, fw->observer_constructor), code_of(fw, env, fw->observer_inputs),
		code_of(fw, env, fw->observer_begins), code_of(fw, env, fw->observer_is_list), out);
	if (out->inputs_off && out->forward_off)
		known |= KPROF_AGENT_OPT_SEQUENCE;
	if (out->inputs_off && out->list_off && !tensors_layout(fw, env, &tensor)) {
		out->sizes_off = tensor.sizes_off;
		out->type_mask = tensor.type_mask;
		known |= KPROF_AGENT_OPT_INPUTS;
	}
	return known;
}
