// SPDX-License-Identifier: BSD-2-Clause
/* What operands and options name: captures, and folders of them. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/options/option.h"
#include "cmd/print/message.h"

#define SUFFIX ".kprof"

/* Hidden ones are unfinished. */
static int is_capture(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);

	return entry->d_name[0] != '.' && len > strlen(SUFFIX) &&
	       !strcmp(entry->d_name + len - strlen(SUFFIX), SUFFIX);
}

static bool add_file(struct value_list *list, const char *folder, const char *name)
{
	char *path;
	int len = asprintf(&path, "%s/%s", folder, name);
	bool added = len >= 0 && value_list_add(list, path, (size_t)len);

	if (len >= 0)
		free(path);
	return added;
}

static int add_folder(struct value_list *list, const char *folder)
{
	struct dirent **entries;
	int nr = scandir(folder, &entries, is_capture, alphasort), code = -1;

	if (nr < 0) {
		message_note("cannot read %s: %s", folder, strerror(errno));
		return EXIT_FAILED;
	}
	if (!nr) {
		message_warn("it takes files whose names end in " SUFFIX, "no captures in %s",
			     folder);
		code = EXIT_FAILED;
	}
	for (int i = 0; i < nr; i++) {
		if (code < 0 && !add_file(list, folder, entries[i]->d_name))
			code = message_no_memory();
		free(entries[i]);
	}
	free(entries);
	return code;
}

int options_add_captures(struct value_list *list, const char *name)
{
	struct stat st;

	if (!stat(name, &st) && S_ISDIR(st.st_mode))
		return add_folder(list, name);
	return value_list_add(list, name, strlen(name)) ? -1 : message_no_memory();
}
