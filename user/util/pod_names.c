// SPDX-License-Identifier: BSD-2-Clause
#include "util/pod_names.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#define ID_DIGITS 64
#define SUFFIX ".log"

struct entry {
	char id[ID_DIGITS + 1];
	struct pod_names names;
};

/*
 * Whoever makes a pod chooses these names, and they become labels: only what RFC 1123 allows, which
 * kubelet holds them to.
 */
static bool take(const char *text, size_t len, bool dots, char *out, size_t bytes)
{
	if (!len || len >= bytes)
		return false;
	for (size_t i = 0; i < len; i++) {
		bool inner = i && i + 1 < len, letter = text[i] >= 'a' && text[i] <= 'z',
		     digit = text[i] >= '0' && text[i] <= '9';

		if (!letter && !digit && !(inner && text[i] == '-') &&
		    !(inner && dots && text[i] == '.'))
			return false;
	}
	memcpy(out, text, len);
	out[len] = '\0';
	return true;
}

/* No name of Kubernetes' has "_". end: behind the container's name. */
static bool parse(const char *file, const char *end, struct pod_names *out)
{
	const char *space = strchr(file, '_'), *container = space ? strchr(space + 1, '_') : NULL;

	if (!container || container >= end)
		return false;
	return take(file, (size_t)(space - file), true, out->pod, sizeof(out->pod)) &&
	       take(space + 1, (size_t)(container - space) - 1, false, out->space,
		    sizeof(out->space)) &&
	       take(container + 1, (size_t)(end - container) - 1, false, out->container,
		    sizeof(out->container));
}

static void add(struct pod_names_list *list, const char *file)
{
	const size_t tail = 1 + ID_DIGITS + strlen(SUFFIX), len = strlen(file);
	const char *end = file + len - tail;
	struct entry entry = {0}, *to;

	if (len <= tail || *end != '-' || strcmp(end + 1 + ID_DIGITS, SUFFIX) ||
	    !parse(file, end, &entry.names))
		return;
	memcpy(entry.id, end + 1, ID_DIGITS);
	to = vec_push(&list->items, sizeof(*to));
	if (to)
		*to = entry;
}

static void read_folder(struct pod_names_list *list, const char *folder)
{
	const struct dirent *e;
	DIR *d = opendir(folder);

	list->read = true;
	for (int i = 0; d && i < POD_NAMES_MOST && (e = readdir(d)); i++)
		add(list, e->d_name);
	if (d)
		closedir(d);
}

const struct pod_names *pod_names_list__find(struct pod_names_list *list, const char *folder,
					     const char *id)
{
	if (strlen(id) != ID_DIGITS)
		return NULL;
	if (!list->read)
		read_folder(list, folder);
	for (size_t i = 0; i < list->items.nr; i++) {
		const struct entry *e = (const struct entry *)list->items.data + i;

		if (!strcmp(e->id, id))
			return &e->names;
	}
	return NULL;
}

void pod_names_list__free(struct pod_names_list *list)
{
	free(list->items.data);
	*list = (struct pod_names_list){0};
}
