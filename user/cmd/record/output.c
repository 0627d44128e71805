// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/record/output.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cmd/print/message.h"
#include "cmd/print/text.h"

#define CAPTURE_SUFFIX ".kprof"
#define PID_MARK "%p"
/* Characters of the output's name that the hidden name has: NAME_MAX is 255. */
#define TEMP_NAME_MOST 180

/*
 * With the suffix .pt.trace.json.gz, this is the form of name by which TensorBoard's plugin and HTA
 * find traces.
 */
static char *default_name(pid_t pid, const char *suffix)
{
	char host[HOST_NAME_MAX + 1] = "localhost", who[16] = "all", *name;

	gethostname(host, sizeof(host) - 1);
	for (char *at = host; *at; at++)
		if (*at == '/' || *at == '%')
			*at = '_';
	if (pid)
		snprintf(who, sizeof(who), "%d", (int)pid);
	if (asprintf(&name, "%s_%s.%" PRIu64 "%s", host, who, now_ns(CLOCK_REALTIME), suffix) < 0)
		return NULL;
	return name;
}

static bool has_suffix(const char *path, const char *suffix)
{
	size_t len = strlen(path), n = strlen(suffix);

	return len > n && !strcmp(path + len - n, suffix);
}

/*
 * A hidden name in the output's directory, or in that for temporary files if the output is a pipe
 * or a device. It is unique, so that a capture that was kept is not overwritten by the next
 * recording.
 */
static char *hidden_name(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *temp = getenv("TMPDIR");
	int dir_len = slash ? (int)(slash + 1 - path) : 0;
	struct stat st;
	char *hidden;
	int n;

	if (!strcmp(path, "-") || (!stat(path, &st) && !S_ISREG(st.st_mode)))
		n = asprintf(&hidden, "%s/kprof.%" PRIx64 CAPTURE_SUFFIX,
			     temp && *temp ? temp : "/var/tmp", now_ns(CLOCK_MONOTONIC));
	else
		n = asprintf(&hidden, "%.*s.%.*s.%" PRIx64 CAPTURE_SUFFIX, dir_len, path,
			     TEMP_NAME_MOST, name, now_ns(CLOCK_MONOTONIC));
	return n < 0 ? NULL : hidden;
}

/*
 * Checks that a file of this name can be created. This is done before recording, so that the
 * message has the name that was given and not the hidden one.
 */
static int check_place(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *dir;
	struct stat st;
	int err;

	if (!stat(path, &st) && S_ISDIR(st.st_mode)) {
		message_warn("give the name of a file in it", "%s is a directory", path);
		return EXIT_FAILED;
	}
	if (!strcmp(path, "-"))
		return 0;
	dir = slash ? strndup(path, (size_t)(slash + 1 - path)) : strdup(".");
	if (!dir)
		return message_no_memory();
	err = access(dir, W_OK | X_OK) ? errno : 0;
	if (err)
		message_warn(
			err == ENOENT
				? "create the directory first (mkdir -p), or choose another with -o"
				: "choose another directory with -o",
			"cannot write %s: %s: %s", path, slash ? dir : "the current directory",
			strerror(err));
	free(dir);
	return err ? EXIT_FAILED : 0;
}

int output_init(struct output *o, const char *path)
{
	int code = path ? check_place(path) : 0;

	*o = (struct output){.owner = caller_get()};
	if (code)
		return code;
	o->path = path ? strdup(path) : NULL;
	if (path && !o->path)
		return message_no_memory();
	o->direct = path && has_suffix(path, CAPTURE_SUFFIX) && !strstr(path, PID_MARK);
	o->capture_path = o->direct ? strdup(path) : hidden_name(path ? path : "recording");
	return o->capture_path ? 0 : message_no_memory();
}

int output_set_default(struct output *o, pid_t pid, const char *suffix)
{
	if (!o->path)
		o->path = default_name(pid, suffix);
	return o->path ? 0 : message_no_memory();
}

void output_free(struct output *o)
{
	free(o->path);
	free(o->capture_path);
	*o = (struct output){0};
}

char *output_numbered(const char *path, uint64_t number)
{
	static const char *const suffixes[] = {
		".pt.trace.json.gz", ".pt.trace.json", ".trace.json.gz", ".trace.json",
		".speedscope.json",  ".json.gz",       ".pftrace.gz",    ".pb.gz",
	};
	const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
	size_t len = dot ? (size_t)(dot - path) : strlen(path);
	char *out;

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		if (has_suffix(path, suffixes[i])) {
			len = strlen(path) - strlen(suffixes[i]);
			break;
		}
	if (asprintf(&out, "%.*s.%" PRIu64 "%s", (int)len, path, number, path + len) < 0)
		return NULL;
	return out;
}

int output_write(const struct output *o, bool off_cpu, bool quiet, const volatile bool *stop)
{
	struct kprof_export_opts opts = {.path = o->path, .off_cpu = off_cpu};
	struct write_what what = {.quiet = quiet, .stop = stop};
	int code;

	if (o->direct) {
		puts(o->path);
		return 0;
	}
	code = write_capture(o->capture_path, &opts, &what);
	if (code)
		output_say_kept(o);
	else
		unlink(o->capture_path);
	return code;
}

bool output_drop(const struct output *o)
{
	return !o->direct && !unlink(o->capture_path);
}

void output_say_kept(const struct output *o)
{
	char hint[PATH_MAX + 64];

	if (access(o->capture_path, F_OK))
		return;
	snprintf(hint, sizeof(hint), "kprof export %s -o FILE.json.gz makes a trace of it",
		 o->capture_path);
	message_warn(hint, "what was recorded is kept in %s", o->capture_path);
}
