// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "push/impl.h"
#include "util/error.h"
#include "util/util.h"

static const struct {
	const char *name;
	unsigned int port;
} kinds[] = {
	[KPROF_PUSH_OTLP] = {"otlp", 4318},
	[KPROF_PUSH_PYROSCOPE] = {"pyroscope", 4040},
	[KPROF_PUSH_PARCA] = {"parca", 7070},
};

#define HINT \
	"for example otlp+http://localhost:4318, pyroscope+https://host, parca+http://host:7070"
#define TLS_PORT 443

const char *kprof_push_kind_name(enum kprof_push_kind kind)
{
	return kind < KPROF_PUSH_KINDS ? kinds[kind].name : "";
}

static int wrong(const char *text, const char *what)
{
	return error_set_usage(-EINVAL, HINT, "'%.128s' %s", text, what);
}

/* Passes over the text if it is there. */
static bool skip(const char **at, const char *text)
{
	size_t len = strlen(text);

	if (strncmp(*at, text, len))
		return false;
	*at += len;
	return true;
}

static bool take_scheme(const char **at, struct kprof_push_url *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!skip(at, kinds[i].name))
			continue;
		out->kind = (enum kprof_push_kind)i;
		out->tls = skip(at, "+https://");
		return out->tls || skip(at, "+http://");
	}
	return false;
}

/* Letters, digits, dots and dashes; in brackets, an IPv6 address. */
static size_t host_len(const char *at)
{
	size_t n;

	if (*at == '[') {
		n = 1 + strspn(at + 1, "0123456789abcdefABCDEF:.");
		return n > 2 && at[n] == ']' ? n + 1 : 0;
	}
	return strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_");
}

static bool is_loopback(const char *host, size_t len)
{
	return (len == 9 && !strncmp(host, "localhost", len)) ||
	       (len == 5 && !strncmp(host, "[::1]", len)) ||
	       (len < 16 && !strncmp(host, "127.", 4) && strspn(host, "0123456789.") == len);
}

/* Only what needs no thought in a path: no query, no "..", nothing encoded. */
static bool is_path(const char *at)
{
	return (!*at || *at == '/') && !strstr(at, "..") &&
	       strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/~") ==
		       strlen(at);
}

int kprof_push_parse_url(const char *text, struct kprof_push_url *out)
{
	unsigned long port;
	const char *at = text, *host;
	size_t len;
	int nr;

	error_clear();
	*out = (struct kprof_push_url){0};
	if (!take_scheme(&at, out))
		return wrong(text, "is no destination KIND+http://HOST");
	if (strchr(at, '@'))
		return error_set_usage(-EINVAL, "put USER:PASSWORD into a file: --basic-file",
				       "a destination cannot name a user: others would see it");
	host = at;
	len = host_len(at);
	if (!len || len > 255)
		return wrong(text, "names no host");
	at += len;
	port = out->tls ? TLS_PORT : kinds[out->kind].port;
	if (*at == ':') {
		size_t digits = strspn(++at, "0123456789");

		port = digits && digits < 6 ? strtoul(at, NULL, 10) : 0;
		if (!port || port > 65535)
			return wrong(text, "has no port from 1 to 65535");
		at += digits;
	}
	if (!is_path(at))
		return wrong(text, "has something else than a path behind the host");
	out->loopback = is_loopback(host, len);
	nr = snprintf(out->base, sizeof(out->base), "%s://%.*s:%lu%s", out->tls ? "https" : "http",
		      (int)len, host, port, at);
	if ((size_t)nr >= sizeof(out->base))
		return wrong(text, "is too long");
	while (out->base[nr - 1] == '/')
		out->base[--nr] = '\0';
	return 0;
}
