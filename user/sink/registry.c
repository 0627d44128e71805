// SPDX-License-Identifier: BSD-2-Clause
#include "sink/sink.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "util/error.h"
#include "util/util.h"

/* A new format needs a line here, a declaration in sink.h, and a file or folder of its own. */
static const struct sink_ops *const sinks[] = {&sink_chrome, &sink_pftrace, &sink_kprof,
					       &sink_flame,  &sink_folded,  &sink_speedscope,
					       &sink_pprof,  &sink_otlp,    &sink_pickle};

static void list_formats(char *out, size_t bytes)
{
	size_t at = (size_t)snprintf(out, bytes, "formats: ");
	const char *between = "";

	for (size_t i = 0; i < ARRAY_SIZE(sinks); i++) {
		size_t name = strlen(sinks[i]->name);
		bool named = false; /* a suffix begins with the format's name */

		for (const char *const *suffix = sinks[i]->suffixes; *suffix; suffix++) {
			named |= !strncmp(*suffix + 1, sinks[i]->name, name) &&
				 (!(*suffix)[1 + name] || (*suffix)[1 + name] == '.');
			if (at < bytes)
				at += (size_t)snprintf(out + at, bytes - at, "%s%s", between,
						       *suffix);
			between = ", ";
		}
		if (at < bytes && !named)
			at += (size_t)snprintf(out + at, bytes - at, " (%s)", sinks[i]->name);
	}
}

static const struct sink_ops *by_name(const char *format)
{
	for (size_t i = 0; i < ARRAY_SIZE(sinks); i++)
		if (!strcmp(sinks[i]->name, format))
			return sinks[i];
	return NULL;
}

static const struct sink_ops *by_suffix(const char *path)
{
	const struct sink_ops *best = NULL;
	size_t path_len = strlen(path), best_len = 0;

	for (size_t i = 0; i < ARRAY_SIZE(sinks); i++) {
		for (const char *const *suffix = sinks[i]->suffixes; *suffix; suffix++) {
			size_t len = strlen(*suffix);

			if (len > best_len && len <= path_len &&
			    !strcmp(path + path_len - len, *suffix)) {
				best = sinks[i];
				best_len = len;
			}
		}
	}
	return best;
}

const struct sink_ops *sink_find(const char *path, const char *format)
{
	const struct sink_ops *ops;
	char formats[256];

	if (format)
		ops = by_name(format);
	else if (!strcmp(path, "-"))
		ops = &sink_chrome; /* a pipe usually leads to jq, gzip or a browser */
	else
		ops = by_suffix(path);
	if (ops)
		return ops;
	list_formats(formats, sizeof(formats));
	if (format)
		error_set_usage(-EINVAL, formats, "there is no format '%s'", format);
	else
		error_set_usage(-EINVAL, formats, "no format has the suffix of '%s'", path);
	return NULL;
}

bool kprof_export_of_samples(const char *path)
{
	const struct sink_ops *ops = path ? by_suffix(path) : NULL;

	return ops && ops->samples;
}

int kprof_export_check_path(const char *path)
{
	struct stat st;

	error_clear();
	if (!path || !*path)
		return error_set_usage(-EINVAL, NULL, "the output path is empty");
	if (path[strlen(path) - 1] == '/' || (!stat(path, &st) && S_ISDIR(st.st_mode)))
		return error_set(-EISDIR, "give the name of a file in it", "%s is a directory",
				 path);
	return sink_find(path, NULL) ? 0 : -EINVAL;
}
