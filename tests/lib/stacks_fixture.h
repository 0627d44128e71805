/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of sinks for samples share: a small capture whose stacks are known, and its
 * exports.
 */
#ifndef KPROF_TESTS_STACKS_FIXTURE_H
#define KPROF_TESTS_STACKS_FIXTURE_H

#include "kprof/unwind.h"
#include "sink_fixture.h"

#define WHOLE (KPROF_UNWIND_WHOLE << KPROF_SAMPLE_END_SHIFT)
#define PERIOD_NS 10000000ull

/* Numbers as the store wants them: each one more than the last. */
struct made_stacks {
	struct made m;
	uint32_t modules, frames, stacks;
};

static inline uint32_t made__module(struct made_stacks *s, uint32_t kind, const char *path,
				    const char *build_id)
{
	made__put(&s->m,
		  (struct store_record){STORE_MODULE,
					.module = {.id = ++s->modules,
						   .kind = kind,
						   .path = made__string(&s->m, path),
						   .build_id = made__string(&s->m, build_id)}});
	return s->modules;
}

/* Of one function, or of it inlined into another (inlined_into not NULL). */
static inline uint32_t made__frame(struct made_stacks *s, uint32_t kind, uint32_t module,
				   const char *op, const char *function, const char *file,
				   uint32_t line, const char *inlined_into)
{
	struct store_line lines[2] = {
		{.function = made__string(&s->m, function),
		 .file = made__string(&s->m, file),
		 .line = line},
		{.function = made__string(&s->m, inlined_into ? inlined_into : ""), .line = 7},
	};

	made__put(&s->m,
		  (struct store_record){STORE_FRAME, .frame = {.id = ++s->frames,
							       .kind = kind,
							       .module = module,
							       .address = 0x1000 + s->frames,
							       .op = made__string(&s->m, op),
							       .nr_lines = inlined_into ? 2 : 1,
							       .lines = lines}});
	return s->frames;
}

static inline uint32_t made__stack(struct made_stacks *s, uint32_t parent, uint32_t frame)
{
	made__put(&s->m, (struct store_record){STORE_STACK, .stack = {++s->stacks, parent, frame}});
	return s->stacks;
}

static inline void made__sample(struct made_stacks *s, uint64_t ns, uint32_t thread, uint32_t stack,
				uint64_t weight_ns, uint32_t flags)
{
	made__put(&s->m, (struct store_record){STORE_SAMPLE, .sample = {MONO_NS + ns, thread, stack,
									weight_ns, flags}});
}

/*
 * Threads 0 "main" (7) and 1 "worker" (8) of process 7. Stacks, outermost first:
 *   1 main                                       native
 *   2 main, train                                Python, train.py:12
 *   3 main, train, aten::add{outer{inlined}}     native, an operator's entry, inlined inside
 *   4 main, train, aten::add{…}, sys_read        kernel
 */
static inline void known_tables(struct made_stacks *s, const char *path)
{
	uint32_t module;

	*s = (struct made_stacks){0};
	made__start(&s->m, path);
	made__meta(&s->m, "stacks", "{\"frequency_hz\": 99}");
	made__process(&s->m, 7, 1, "prog");
	made__thread(&s->m, 7, 7, "main");
	made__thread(&s->m, 7, 8, "worker");
	module = made__module(s, STORE_MODULE_FILE, "/lib/libx.so", "c0ffee");
	made__stack(s, 0, made__frame(s, STORE_FRAME_NATIVE, module, "", "main", "", 0, NULL));
	made__stack(s, 1,
		    made__frame(s, STORE_FRAME_PYTHON, 0, "", "train", "/app/train.py", 12, NULL));
	made__stack(s, 2,
		    made__frame(s, STORE_FRAME_NATIVE, module, "aten::add", "inlined", "add.h", 3,
				"outer"));
	module = made__module(s, STORE_MODULE_KERNEL, "[kernel]", "");
	made__stack(s, 3, made__frame(s, STORE_FRAME_KERNEL, module, "", "sys_read", "", 0, NULL));
}

/* Ten samples of 10 ms each, and one of a microsecond and a bit. */
static inline void known_capture(const char *path)
{
	struct made_stacks s;

	known_tables(&s, path);
	for (uint64_t i = 0; i < 4; i++)
		made__sample(&s, i * PERIOD_NS, 0, 3, PERIOD_NS, WHOLE);
	made__sample(&s, 4 * PERIOD_NS, 0, 2, PERIOD_NS, WHOLE);
	made__sample(&s, 5 * PERIOD_NS, 0, 4, PERIOD_NS, WHOLE | KPROF_SAMPLE_KERNEL);
	made__sample(&s, 6 * PERIOD_NS, 1, 3, PERIOD_NS, WHOLE);
	made__sample(&s, 7 * PERIOD_NS, 1, 1, 1001, WHOLE);
	made__sample(&s, 8 * PERIOD_NS, 1, 1, PERIOD_NS,
		     KPROF_UNWIND_NO_RULE << KPROF_SAMPLE_END_SHIFT);
	made__sample(&s, 9 * PERIOD_NS, 1, 0, PERIOD_NS, 0);
	made__sample(&s, 10 * PERIOD_NS, 1, 1, PERIOD_NS, WHOLE | KPROF_SAMPLE_OFF_CPU);
	made__finish(&s.m);
}

/* The export of a capture in the scratch directory to a file beside it. */
static inline char *exported_as(const char *capture, const char *name)
{
	int err = export_as(in_scratch(capture),
			    (struct kprof_export_opts){.path = in_scratch(name)});

	CHECK_EQ(err, 0);
	if (err)
		printf("# %s\n", kprof_error_cause());
	return err ? strdup("") : text_of(in_scratch(name));
}

/* ---- names of any bytes ---- */

#define HOSTILE_NAMES 300

static inline uint32_t hostile_random(uint64_t *state)
{
	*state = hash64(*state + 0x9e3779b97f4a7c15ull);
	return (uint32_t)(*state >> 16);
}

/* Bytes but NUL, the ones that mean something more often than others. */
static inline void hostile_name(uint64_t *state, char *out, size_t room)
{
	static const char odd[] =
		"\"'\\<>&;]]>\n\t\r\x01\x1f\x7f\x80\xc3\xe2\x80\xae\xef\xbf\xbf\xff (){}|%$`";
	size_t len = hostile_random(state) % 16 ? hostile_random(state) % 12
						: hostile_random(state) % (room - 1);

	for (size_t i = 0; i < len; i++) {
		uint32_t r = hostile_random(state);

		out[i] = r % 3 ? odd[r / 3 % (sizeof(odd) - 1)] : (char)(r / 3 % 255 + 1);
	}
	out[len] = '\0';
}

/*
 * Each name is a thread's, a Python and a native function's, an operator's, a file's and a
 * module's.
 */
static inline void hostile_capture(const char *path, uint64_t seed)
{
	struct made_stacks s = {0};
	char name[3000];
	uint32_t frame, stack = 0;

	made__start(&s.m, path);
	for (uint32_t i = 0; i < HOSTILE_NAMES; i++) {
		hostile_name(&seed, name, sizeof(name));
		if (i % 30 == 0) {
			stack = 0;
			made__thread(&s.m, 7, 7 + i, name);
		}
		if (!i)
			made__process(&s.m, 7, 1, name);
		frame = made__frame(&s, i % 3 + 1, i % 7 ? 0 : made__module(&s, i % 4, name, name),
				    i % 5 ? "" : name, name, i % 2 ? name : "", i,
				    i % 11 ? NULL : name);
		stack = made__stack(&s, stack, frame);
		made__sample(&s, i * PERIOD_NS, i / 30, stack, PERIOD_NS,
			     hostile_random(&seed) & 0x1ffff);
	}
	made__finish(&s.m);
}

#endif
