// SPDX-License-Identifier: BSD-2-Clause
/*
 * Lookups in the runtimes' descriptors. A runtime is registered together with its rows
 * (CATALOG_FRAMEWORKS).
 */
#include "catalog/runtime.h"

#include <string.h>

#include "catalog/catalog.h"

const struct catalog_runtime *catalog_runtime_at(size_t i)
{
	for (const struct catalog_framework *const *fw = catalog_frameworks; *fw; fw++)
		if ((*fw)->runtime && !i--)
			return (*fw)->runtime;
	return NULL;
}

const struct catalog_runtime *catalog_runtime_of_module(uint32_t module)
{
	for (const struct catalog_framework *const *fw = catalog_frameworks; *fw; fw++) {
		const struct catalog_runtime *rt = (*fw)->runtime;

		if (rt && rt->activities && rt->module == module)
			return rt;
	}
	return NULL;
}

const struct catalog_runtime *catalog_runtime_of_call(const char *call)
{
	const struct catalog_runtime *rt;

	for (size_t i = 0; (rt = catalog_runtime_at(i)); i++)
		if (catalog_match(rt->calls, call))
			return rt;
	return NULL;
}

/* How many bytes at the end of name (len long) match the suffix (n long); 0: it does not match. */
static size_t suffix_bytes(const char *suffix, size_t n, const char *name, size_t len)
{
	size_t digits = 0, least = 0;

	for (; n && suffix[n - 1] == '#'; n--)
		least++;
	while (least && digits < len && name[len - 1 - digits] >= '0' &&
	       name[len - 1 - digits] <= '9')
		digits++;
	if (digits < least)
		return 0;
	if (len <= n + digits || memcmp(name + len - digits - n, suffix, n))
		return 0;
	return n + digits;
}

size_t catalog_stem(const char *suffixes, const char *name)
{
	size_t len = strlen(name), n, bytes;
	const char *p = suffixes;

	while (p && *p) {
		n = strcspn(p, " ");
		bytes = suffix_bytes(p, n, name, len);
		len -= bytes;
		/* Another suffix may precede this one. */
		p = bytes ? suffixes : p + n + strspn(p + n, " ");
	}
	return len;
}

size_t catalog_call_stem(const char *call)
{
	const struct catalog_runtime *rt = catalog_runtime_of_call(call);

	return catalog_stem(rt ? rt->suffixes : NULL, call);
}

size_t catalog_shown_bytes(const char *call)
{
	const struct catalog_runtime *rt = catalog_runtime_of_call(call);

	return catalog_stem(rt ? rt->unshown_suffixes : NULL, call);
}

enum device_role device_role_of(const char *call)
{
	const struct catalog_runtime *rt = catalog_runtime_of_call(call);
	char stem[128];
	size_t len;

	if (!rt || !rt->roles)
		return DEVICE_ROLE_NONE;
	len = catalog_stem(rt->suffixes, call);
	if (len >= sizeof(stem))
		return DEVICE_ROLE_NONE;
	memcpy(stem, call, len);
	stem[len] = '\0';
	for (const struct catalog_role *role = rt->roles; role->calls; role++)
		if (catalog_match(role->calls, stem))
			return role->role;
	return DEVICE_ROLE_NONE;
}

bool device_role_waits(enum device_role role)
{
	return role == DEVICE_ROLE_COPY_AND_WAIT || role == DEVICE_ROLE_WAIT_STREAM ||
	       role == DEVICE_ROLE_WAIT_EVENT || role == DEVICE_ROLE_WAIT_DEVICE;
}
