// SPDX-License-Identifier: BSD-2-Clause
#include "util/container.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define ID_DIGITS 64
#define UUID_CHARS 36

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static size_t hex_run(const char *at)
{
	size_t n = 0;

	while (is_hex(at[n]))
		n++;
	return n;
}

/* The name in a component such as "machine-NAME.scope". False: it is not of that form. */
static bool name_between(const char *component, size_t len, const char *before, const char *after,
			 char id[CONTAINER_ID_BYTES])
{
	size_t head = strlen(before), tail = strlen(after);

	if (len <= head + tail || strncmp(component, before, head) ||
	    strncmp(component + len - tail, after, tail))
		return false;
	len -= head + tail;
	if (len >= CONTAINER_ID_BYTES)
		return false;
	memcpy(id, component + head, len);
	id[len] = '\0';
	return true;
}

/* The container that one component of the path names, which may be below "lxc". */
static bool component_id(const char *component, size_t len, bool in_lxc,
			 char id[CONTAINER_ID_BYTES])
{
	for (size_t i = 0; i + ID_DIGITS <= len; i++) {
		size_t n = hex_run(component + i);

		if (n == ID_DIGITS) {
			snprintf(id, CONTAINER_ID_BYTES, "%.*s", ID_DIGITS, component + i);
			return true;
		}
		i += n;
	}
	return name_between(component, len, "lxc.payload.", "", id) ||
	       name_between(component, len, "machine-", ".scope", id) ||
	       (in_lxc && name_between(component, len, "", "", id));
}

bool container_id(const char *cgroup, char id[CONTAINER_ID_BYTES])
{
	bool found = false, in_lxc = false;
	size_t len;

	for (const char *at = cgroup; *at; at += len) {
		at += strspn(at, "/");
		len = strcspn(at, "/");
		if (len)
			found |= component_id(at, len, in_lxc, id);
		in_lxc = len == 3 && !strncmp(at, "lxc", 3);
	}
	return found;
}

/* systemd's slices have "_" for the "-" of a UUID. */
static bool is_uuid(const char *at)
{
	for (size_t i = 0; i < UUID_CHARS; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? at[i] != '-' && at[i] != '_' : !is_hex(at[i]))
			return false;
	}
	return !is_hex(at[UUID_CHARS]);
}

bool container_pod(const char *cgroup, char id[CONTAINER_ID_BYTES])
{
	for (const char *at = strstr(cgroup, "pod"); at; at = strstr(at + 1, "pod")) {
		if (!is_uuid(at + 3))
			continue;
		snprintf(id, CONTAINER_ID_BYTES, "%.*s", UUID_CHARS, at + 3);
		for (char *c = id; *c; c++)
			if (*c == '_')
				*c = '-';
		return true;
	}
	return false;
}
