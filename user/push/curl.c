// SPDX-License-Identifier: BSD-2-Clause
/*
 * libcurl, loaded when it is first needed: it brings some thirty libraries, which processes that
 * record are better off without.
 */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "push/impl.h"
#include "util/error.h"
#include "util/util.h"

static struct push_curl functions;

static bool find_all(void *lib)
{
	static const char *const names[] = {
		"curl_global_init",   "curl_easy_init",        "curl_easy_setopt",
		"curl_easy_getinfo",  "curl_easy_cleanup",     "curl_easy_reset",
		"curl_easy_strerror", "curl_slist_append",     "curl_slist_free_all",
		"curl_multi_init",    "curl_multi_add_handle", "curl_multi_remove_handle",
		"curl_multi_perform", "curl_multi_poll",       "curl_multi_info_read",
		"curl_multi_cleanup",
	};
	void *found[ARRAY_SIZE(names)];

	_Static_assert(sizeof(found) == sizeof(functions), "a name for each function, in order");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		found[i] = dlsym(lib, names[i]);
		if (!found[i])
			return false;
	}
	memcpy(&functions, found, sizeof(functions));
	return true;
}

const struct push_curl *push_curl_load(void)
{
	/* Debian's two builds, with OpenSSL and with GnuTLS. */
	static const char *const files[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
	static bool ready;

	for (size_t i = 0; i < ARRAY_SIZE(files) && !ready; i++) {
		void *lib = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);

		if (lib && find_all(lib) && !functions.global_init(CURL_GLOBAL_DEFAULT))
			ready = true;
		else if (lib)
			dlclose(lib);
	}
	if (ready)
		return &functions;
	error_set_machine(-ENOENT, "install it: Debian's package is libcurl4",
			  "pushing needs libcurl, which is not here");
	return NULL;
}
