// SPDX-License-Identifier: BSD-2-Clause
/* Writes what is allocated: as a table, or to a file. */
#include "cmd/memory/memory.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cmd/export/export.h"

#define EXPORT_MS 120000

/* When the process began, by the wall clock, in seconds; 0: there is none. */
static double began_at(pid_t pid)
{
	char path[32], text[1024], *fields;
	unsigned long long ticks = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	fields = strrchr(text, ')'); /* the name before may have anything in it */
	if (!fields || sscanf(fields + 1,
			      " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
			      "%*s %*s %*s %llu",
			      &ticks) != 1)
		return 0;
	return (double)(now_ns(CLOCK_REALTIME) - now_ns(CLOCK_BOOTTIME)) / 1e9 +
	       (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

/* The state is older than the process that has this number now: it is that of another one. */
static void say_if_another(pid_t pid, const char *state)
{
	struct stat st;

	if (!stat(state, &st) && began_at(pid) > (double)st.st_mtim.tv_sec + 1)
		message_warn(NULL,
			     "the process that was recorded has ended: process %d is another one",
			     (int)pid);
}

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
	if (!err)
		return 0;
	if (err == -ESRCH && !access(path, F_OK)) {
		say_if_another(opts->pid, path);
		return 0;
	}
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
