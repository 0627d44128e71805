// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/daemon/web/policy.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cmd/daemon/web/message.h"

#define HOST_BYTES 256

static bool is_port(const char *text)
{
	size_t digits = strspn(text, "0123456789");

	return digits && digits <= 5 && !text[digits];
}

/* "[ADDRESS]", "[ADDRESS]:PORT" */
static bool is_bracketed(char *host)
{
	struct in6_addr v6;
	char *end = strchr(host, ']');

	if (!end || (end[1] && (end[1] != ':' || !is_port(end + 2))))
		return false;
	*end = '\0';
	return inet_pton(AF_INET6, host + 1, &v6) == 1;
}

bool policy_host(const char *host, const char *const *names, size_t nr)
{
	char name[HOST_BYTES], *colon;
	struct in_addr v4;
	size_t bytes = strlen(host);

	if (!bytes || bytes >= sizeof(name))
		return false;
	memcpy(name, host, bytes + 1);
	if (*name == '[')
		return is_bracketed(name);
	colon = strchr(name, ':');
	if (colon && !is_port(colon + 1))
		return false;
	if (colon)
		*colon = '\0';
	if (inet_pton(AF_INET, name, &v4) == 1 || !strcasecmp(name, "localhost"))
		return true;
	for (size_t i = 0; i < nr; i++)
		if (!strcasecmp(name, names[i]))
			return true;
	return false;
}

bool policy_equal(const char *given, const char *secret)
{
	size_t bytes = strlen(given), other = strlen(secret);
	volatile unsigned char differ = bytes != other;

	for (size_t i = 0; i < bytes; i++)
		differ = (unsigned char)(differ | (given[i] ^ secret[other ? i % other : 0]));
	return !differ;
}

const char *policy_bearer(const char *authorization)
{
	if (strncasecmp(authorization, "Bearer ", 7) != 0)
		return NULL;
	return authorization + 7 + strspn(authorization + 7, " ");
}

/* How much a client wants a media range, 0 … 1; -1: it is another type. [at, end): one element. */
static double wanted(const char *at, const char *end, const char *type)
{
	size_t bytes = strlen(type);
	double q = 1;

	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	if ((size_t)(end - at) < bytes || strncasecmp(at, type, bytes) != 0)
		return -1;
	at += bytes;
	if (at < end && !strchr("; \t", *at))
		return -1;
	while (at < end) {
		const char *next = memchr(at, ';', (size_t)(end - at));

		while (at < end && strchr("; \t", *at))
			at++;
		if (end - at > 2 && (*at == 'q' || *at == 'Q') && at[1] == '=')
			q = strtod(at + 2, NULL);
		at = next ? next + 1 : end;
	}
	return q >= 0 && q <= 1 ? q : 0;
}

bool policy_openmetrics(const char *accept)
{
	double open = -1, text = -1;

	for (const char *at = accept; at;) {
		const char *comma = strchr(at, ','), *end = comma ? comma : at + strlen(at);
		double o = wanted(at, end, "application/openmetrics-text");
		double t = wanted(at, end, "text/plain");

		open = o > open ? o : open;
		text = t > text ? t : text;
		at = comma ? comma + 1 : NULL;
	}
	return open > 0 && open >= text;
}

enum policy_path policy_path(const char *path, struct web_question *q)
{
	static const struct {
		const char *path;
		enum web_get get;
	} plain[] =
		{
			{"/metrics", WEB_METRICS},
			{"/api/status", WEB_STATUS},
			{"/api/processes", WEB_PROCESSES},
			{"/api/dumps", WEB_DUMPS},
			{"/flame", WEB_FLAME},
		},
	  named[] = {
		  {"/dump/", WEB_DUMP},
		  {"/trace/", WEB_TRACE},
	  };

	memset(q, 0, sizeof(*q));
	if (!strcmp(path, "/"))
		return POLICY_PAGE;
	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++) {
		if (!strcmp(path, plain[i].path)) {
			q->get = plain[i].get;
			return POLICY_ASK;
		}
	}
	for (size_t i = 0; i < sizeof(named) / sizeof(*named); i++) {
		size_t bytes = strlen(named[i].path);

		if (!strncmp(path, named[i].path, bytes) && message_is_name(path + bytes)) {
			q->get = named[i].get;
			strcpy(q->name, path + bytes);
			return POLICY_ASK;
		}
	}
	return POLICY_NOTHING;
}
