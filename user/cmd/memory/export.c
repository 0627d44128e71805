// SPDX-License-Identifier: BSD-2-Clause
/* Writes what is allocated: as a table, or to a file. */
#include "cmd/memory/memory.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <unistd.h>

#include "cmd/export/export.h"

#define EXPORT_MS 120000

/* The path of the latest state, which a recording that goes on writes anew. 0 or an exit code. */
static int find_state(const struct memory_opts *opts, char path[MEMORY_PATH_BYTES])
{
	char folder[KPROF_CONTROL_PATH_BYTES];
	cJSON *answer = NULL;
	int err = memory_folder(opts->pid, false, folder);

	if (err && err != -ENOENT)
		return message_error();
	if (!err) {
		memory_state(folder, path);
		err = memory_ask(folder, "export", EXPORT_MS, &answer);
		cJSON_Delete(err ? NULL : answer);
	}
	if (!err || (err == -ESRCH && !access(path, F_OK)))
		return 0;
	if (err == -ENOENT || err == -ESRCH)
		message_warn(
			"`kprof memory start -p PID` begins it, `kprof memory status` lists what there is",
			"the memory of process %d was not recorded", (int)opts->pid);
	return EXIT_FAILED;
}

int memory_export(const struct memory_opts *opts, const char *file)
{
	struct write_what what = {.quiet = opts->message.quiet};
	struct kprof_export_opts library = opts->export;
	char path[MEMORY_PATH_BYTES];
	struct caller caller = caller_get();
	int code = file ? 0 : find_state(opts, path);

	if (code)
		return code;
	if (!file)
		file = path;
	if (kprof_give_up_root(file, library.path, caller.uid, caller.gid, true))
		return message_error();
	return library.path ? write_capture(file, &library, &what) : memory_print(file, opts);
}
