// SPDX-License-Identifier: BSD-2-Clause
/*
 * What runs the code that samples met: the machine itself, or a runtime. How walks ended is counted
 * for each, and where its compiled code has no names, it is said how it could have some.
 */
#include <fnmatch.h>
#include <string.h>

#include "capture/sample/impl.h"
#include "symbol/elf/elf.h"
#include "util/error.h"
#include "util/util.h"

static const struct {
	const char *name;
	const char
		*hint; /* how its compiled code gets names; NULL: it has none, or is named anyway */
} runtimes[NR_RUNTIMES] = {
	[RUNTIME_KERNEL] = {"kernel only", NULL},
	[RUNTIME_UNKNOWN] = {"not known", NULL},
	[RUNTIME_NATIVE] = {"native", NULL},
	[RUNTIME_JIT] = {"other JIT code", NULL},
	[RUNTIME_GO] = {"Go", NULL},
	[RUNTIME_PYTHON] = {"CPython", NULL},
	[RUNTIME_JAVA] = {"Java", "--ask-jvm (JDK 17 and later)"},
	[RUNTIME_NODE] = {"Node.js", "start it with node --perf-basic-prof"},
	[RUNTIME_DOTNET] = {".NET", "start it with DOTNET_PerfMapEnabled=1 in its environment"},
	[RUNTIME_RUBY] = {"Ruby", "start it with ruby --yjit-perf (3.3 and later)"},
};

/* Runtimes by a file that a process maps: globs on its name. */
static const struct {
	const char *file;
	enum runtime runtime;
} files[] = {
	{"libjvm.so", RUNTIME_JAVA},    {"node", RUNTIME_NODE},
	{"libnode.so*", RUNTIME_NODE},  {"libcoreclr.so", RUNTIME_DOTNET},
	{"libruby*.so*", RUNTIME_RUBY},
};

static enum runtime look_at(const struct module *m)
{
	size_t bytes;

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (!fnmatch(files[i].file, path_base(m->path), 0))
			return files[i].runtime;
	if (m->python)
		return RUNTIME_PYTHON;
	return m->elf && elffile__section(m->elf, ".go.buildinfo", &bytes) ? RUNTIME_GO
									   : RUNTIME_NATIVE;
}

static enum runtime of_module(struct module *m)
{
	enum runtime runtime = m->runtime ? m->runtime : look_at(m);

	/* python.c may not have looked into it yet */
	if (runtime != RUNTIME_NATIVE || m->python_looked)
		m->runtime = (uint8_t)runtime;
	return runtime;
}

enum runtime stacks_runtimes__of(struct address_space *space)
{
	enum runtime runtime = RUNTIME_NATIVE;

	for (size_t i = 0; i < space->nr && !space->runtime; i++) {
		struct module *m = space->areas[i].module;
		enum runtime of = m ? of_module(m) : RUNTIME_NATIVE;

		if (of > runtime)
			runtime = of;
	}
	if (!space->runtime)
		space->runtime = (uint8_t)runtime;
	return space->runtime;
}

void stacks_runtimes__count(struct stacks *s, struct address_space *space, bool user, bool jit,
			    uint32_t end)
{
	enum runtime runtime = RUNTIME_UNKNOWN;

	if (!user)
		runtime = RUNTIME_KERNEL;
	else if (space)
		runtime = stacks_runtimes__of(space);
	if (runtime == RUNTIME_NATIVE && jit)
		runtime = RUNTIME_JIT;
	s->ends_of[runtime][end]++;
}

cJSON *stacks_runtimes__summary(const struct stacks *s, const char *const *end_names)
{
	cJSON *all = cJSON_CreateObject();

	for (size_t k = 0; k < NR_RUNTIMES; k++) {
		cJSON *ends = cJSON_CreateObject();

		for (size_t i = 0; i < KPROF_UNWIND_NR_ENDS; i++)
			if (s->ends_of[k][i])
				cJSON_AddNumberToObject(ends, end_names[i],
							(double)s->ends_of[k][i]);
		if (ends && ends->child)
			cJSON_AddItemToObject(all, runtimes[k].name, ends);
		else
			cJSON_Delete(ends);
	}
	return all;
}

/* ---- code without names ---- */

void stacks_runtimes__nameless(struct stacks *s, const struct target *t)
{
	enum runtime runtime = stacks_runtimes__of(stacks__of(s, t)->space);

	if (stacks__of(s, t)->ask_failed) /* that was said */
		return;
	if (runtimes[runtime].hint && !s->nameless[runtime].processes++)
		s->nameless[runtime].pid = t->pid;
}

void stacks_runtimes__say(const struct stacks *s)
{
	for (size_t k = 0; k < NR_RUNTIMES; k++)
		if (s->nameless[k].processes)
			log_warn(
				runtimes[k].hint,
				"%s's compiled code is shown as [jit], since it has no names: process %u%s",
				runtimes[k].name, s->nameless[k].pid,
				s->nameless[k].processes > 1 ? " and others" : "");
}
