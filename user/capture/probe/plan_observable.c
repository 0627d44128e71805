// SPDX-License-Identifier: BSD-2-Clause
/* Which operators an agent could observe in a process, by what its libraries' code shows. */
#include "capture/probe/observer_layout.h"
#include "capture/probe/plan.h"
#include "symbol/x86/x86.h"

/* at::RecordFunctionCallback: two pointers, a double, ten scopes and three flags. */
#define CALLBACK_BYTES 40

bool plan_observable(const struct catalog_framework *fw, const struct elffile *library)
{
	struct elffile_symbol s;
	const uint8_t *code = NULL;
	size_t bytes;

	if (!elffile__symbol(library, fw->observer_symbol, &s) && s.function)
		code = elffile__bytes(library, elffile__offset(library, s.vaddr), s.size, &bytes);
	return code && insn_memory_args(code, bytes) == CALLBACK_BYTES;
}

uint32_t plan_observable_more(const struct catalog_framework *fw, const struct plan_files *files)
{
	const struct layout_env env = {
		.files = files->files, .names = files->names, .nr = files->nr};
	struct kprof_agent_layout layout;

	return observer_layout(fw, &env, &layout);
}
