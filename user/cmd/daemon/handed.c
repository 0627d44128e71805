// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which captures of a folder were handed over to the process that pushes: a file with a name a
 * line, so that a daemon that begins later knows it, too. Not the name of the last one: two
 * recorders may store at once, and clocks are set.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/daemon/pusher.h"

#define MORE_LINES 64 /* than twice the captures that are there: then it is written anew */

static bool put(int fd, const char *name)
{
	char line[HANDED_NAME_BYTES + 1];
	int len = snprintf(line, sizeof(line), "%s\n", name);

	return write(fd, line, (size_t)len) == len;
}

static void complain(struct handed *h)
{
	if (!h->complained)
		log_line("warning", "push", NULL,
			 "cannot write %s: after a restart, captures may be pushed twice: %s",
			 h->path, strerror(errno));
	h->complained = true;
}

static void write_anew(struct handed *h)
{
	char temp[DAEMON_PATH_BYTES + 8];
	bool whole;
	int fd;

	snprintf(temp, sizeof(temp), "%s.tmp", h->path);
	fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	whole = fd >= 0;
	for (size_t i = 0; whole && i < h->names.nr; i++)
		whole = put(fd, shelf__name(&h->names, i));
	if (fd >= 0)
		close(fd);
	if (!whole || rename(temp, h->path))
		complain(h);
	else
		h->lines = h->names.nr;
}

void handed__open(struct handed *h, const char *folder, const char *path)
{
	char line[HANDED_NAME_BYTES + 1], **names = NULL;
	size_t nr = 0;
	FILE *f;

	snprintf(h->folder, sizeof(h->folder), "%s", folder);
	snprintf(h->path, sizeof(h->path), "%s", path);
	folder_list(folder, &names, &nr);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		shelf__note(&h->names, line);
	}
	for (size_t i = 0; !f && i < nr; i++)
		shelf__note(&h->names, names[i]);
	if (f)
		fclose(f);
	shelf__keep(&h->names, names, nr);
	folder_list_free(names, nr);
	write_anew(h);
	h->open = true;
}

void handed__close(struct handed *h)
{
	shelf__free(&h->names);
	*h = (struct handed){0};
}

bool handed__next(struct handed *h, char name[HANDED_NAME_BYTES])
{
	char **names;
	size_t nr, i = 0;

	if (!h->open || folder_list(h->folder, &names, &nr))
		return false;
	shelf__keep(&h->names, names, nr);
	while (i < nr && (strlen(names[i]) >= HANDED_NAME_BYTES || shelf__has(&h->names, names[i])))
		i++;
	if (i < nr)
		snprintf(name, HANDED_NAME_BYTES, "%s", names[i]);
	folder_list_free(names, nr);
	return i < nr;
}

void handed__add(struct handed *h, const char *name)
{
	int fd;

	if (!h->open)
		return;
	shelf__note(&h->names, name);
	if (h->lines > 2 * h->names.nr + MORE_LINES) {
		write_anew(h);
		return;
	}
	fd = open(h->path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || !put(fd, name))
		complain(h);
	if (fd >= 0)
		close(fd);
	h->lines++;
}
