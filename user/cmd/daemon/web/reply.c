// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/daemon/web/reply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "cmd/daemon/web/metrics.h"
#include "cmd/daemon/web/page.html.h"

#define NOTHING "default-src 'none'; frame-ancestors 'none'"
/*
 * The flame graph's program is inside of it; so it may run, but as a document of nobody's: it can
 * ask for nothing, and does not reach the page around it.
 */
#define FLAME                                                                         \
	"default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; " \
	"sandbox allow-scripts; frame-ancestors 'self'"
#define SVG "image/svg+xml"
#define JSON "application/json"
#define FILE_TYPE "application/octet-stream"
#define NONCE_BYTES 16

static void say(struct MHD_Response *r, const char *type, const char *policy)
{
	static const char *const always[][2] = {
		{"X-Content-Type-Options", "nosniff"},
		{"Cache-Control", "no-store"},
		{"Cross-Origin-Resource-Policy", "same-origin"},
		{"Referrer-Policy", "no-referrer"},
	};

	if (!r)
		return;
	for (size_t i = 0; i < sizeof(always) / sizeof(*always); i++)
		MHD_add_response_header(r, always[i][0], always[i][1]);
	MHD_add_response_header(r, "Content-Type", type);
	MHD_add_response_header(r, "Content-Security-Policy", policy);
}

struct MHD_Response *reply_text(const char *text)
{
	char line[WEB_ERROR_BYTES + 2];
	int n = snprintf(line, sizeof(line), "%s\n", text);
	struct MHD_Response *r;

	r = MHD_create_response_from_buffer((size_t)n, line, MHD_RESPMEM_MUST_COPY);
	say(r, "text/plain; charset=utf-8", NOTHING);
	return r;
}

static const char *type_of(const struct web_question *q)
{
	switch (q->get) {
	case WEB_METRICS:
		return metrics_content_type(METRICS_OPENMETRICS);
	case WEB_METRICS_TEXT:
		return metrics_content_type(METRICS_TEXT);
	case WEB_FLAME:
		return SVG;
	case WEB_DUMP:
	case WEB_TRACE:
		return FILE_TYPE;
	default:
		return JSON;
	}
}

struct MHD_Response *reply_content(const struct web_question *q, struct web_reply *reply)
{
	char name[WEB_NAME_BYTES + MESSAGE_SUFFIX_BYTES + 64];
	off_t bytes =
		lseek(reply->fd, 0, SEEK_END); /* fstat() may name a path, and is not allowed */
	struct MHD_Response *r = NULL;

	if (bytes >= 0)
		r = MHD_create_response_from_fd64((uint64_t)bytes, reply->fd);
	if (!r)
		close(reply->fd);
	reply->fd = -1;
	say(r, type_of(q), q->get == WEB_FLAME ? FLAME : NOTHING);
	if (!r || !*q->name)
		return r;
	if (!*reply->suffix)
		strcpy(reply->suffix, q->get == WEB_DUMP ? ".kprof" : ".pftrace");
	snprintf(name, sizeof(name), "attachment; filename=\"%s%s\"", q->name, reply->suffix);
	MHD_add_response_header(r, "Content-Disposition", name);
	return r;
}

/* Replaces each @WORD@ of ours in the page. */
static char *fill(const char *nonce, const char *perfetto, size_t *bytes)
{
	char *text = NULL;
	FILE *to = open_memstream(&text, bytes);

	for (const char *at = page_html; to && *at;) {
		const char *mark = strchr(at, '@');
		size_t n = mark ? (size_t)(mark - at) : strlen(at);

		fwrite(at, 1, n, to);
		at += n;
		if (!strncmp(at, "@NONCE@", 7)) {
			fputs(nonce, to);
			at += 7;
		} else if (!strncmp(at, "@PERFETTO@", 10)) {
			fputs(perfetto, to);
			at += 10;
		} else if (*at) {
			putc(*at++, to);
		}
	}
	if (to && fclose(to)) {
		free(text);
		return NULL;
	}
	return text;
}

struct MHD_Response *reply_page(const char *perfetto)
{
	unsigned char random[NONCE_BYTES];
	char nonce[2 * NONCE_BYTES + 1], policy[512], *text;
	struct MHD_Response *r = NULL;
	size_t bytes;

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return NULL;
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(nonce + 2 * i, 3, "%02x", random[i]);
	snprintf(policy, sizeof(policy),
		 "default-src 'none'; script-src 'nonce-%s'; style-src 'nonce-%s'; "
		 "connect-src 'self'; frame-src 'self'; img-src data:; base-uri 'none'; "
		 "form-action 'none'; frame-ancestors 'none'",
		 nonce, nonce);
	text = fill(nonce, perfetto, &bytes);
	if (text)
		r = MHD_create_response_from_buffer(bytes, text, MHD_RESPMEM_MUST_FREE);
	if (!r)
		free(text);
	say(r, "text/html; charset=utf-8", policy);
	return r;
}
