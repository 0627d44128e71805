// SPDX-License-Identifier: BSD-2-Clause
#include "sink/kprof/spans.h"

#include <errno.h>
#include <stdlib.h>

#include "util/error.h"
#include "util/util.h"

static int no_memory(void)
{
	return error_set(-ENOMEM, NULL, "no memory to copy the capture");
}

static struct spans_stack *stack_of(struct kprof_spans *s, uint32_t thread)
{
	while (s->nr_stacks <= thread) {
		if (vec_grow((void **)&s->stacks, &s->cap_stacks, s->nr_stacks, sizeof(*s->stacks)))
			return NULL;
		s->stacks[s->nr_stacks++] = (struct spans_stack){0};
	}
	return &s->stacks[thread];
}

int kprof_spans__begin(struct kprof_spans *s, uint32_t thread, uint64_t in_copy)
{
	struct spans_stack *stack;
	uint64_t *copy;

	s->begun++;
	if (s->same)
		return 0;
	stack = stack_of(s, thread);
	copy = map64__at(&s->open, s->begun);
	if (!stack || !copy ||
	    vec_grow((void **)&stack->open, &stack->cap, stack->nr, sizeof(*stack->open)))
		return no_memory();
	stack->open[stack->nr++] = s->begun;
	*copy = in_copy;
	return 0;
}

void kprof_spans__pass(struct kprof_spans *s)
{
	s->begun++;
}

void kprof_spans__end(struct kprof_spans *s, uint32_t thread)
{
	struct spans_stack *stack = thread < s->nr_stacks ? &s->stacks[thread] : NULL;

	if (stack && stack->nr)
		*map64__at(&s->open, stack->open[--stack->nr]) = 0; /* begin has added the key */
}

uint64_t kprof_spans__number(const struct kprof_spans *s, uint64_t in_source)
{
	if (s->same)
		return in_source <= s->begun ? in_source : 0;
	return map64__get(&s->open, in_source);
}

void kprof_spans__free(struct kprof_spans *s)
{
	for (size_t i = 0; i < s->nr_stacks; i++)
		free(s->stacks[i].open);
	free(s->stacks);
	map64__free(&s->open);
}
