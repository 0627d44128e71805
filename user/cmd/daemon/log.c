// SPDX-License-Identifier: BSD-2-Clause
/* What the daemon does, for the machine's log: lines of JSON, or fields where it is journald's. */
#include <cjson/cJSON.h>
#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>
#include <time.h>
#include <unistd.h>

#include "cmd/daemon/daemon.h"
#include "cmd/print/text.h"

#define MOST_FIELDS 24

static bool to_journal;
static uint64_t lost; /* lines that could not be written, since the last one that was */

void log_begin(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	to_journal = stream && sscanf(stream, "%llu:%llu", &dev, &ino) == 2 &&
		     !fstat(STDERR_FILENO, &st) && st.st_dev == dev && st.st_ino == ino;
}

static char *field(const char *key, const char *value)
{
	char *text;

	if (asprintf(&text, "KPROF_%s=%s", key, value) < 0)
		return NULL;
	text_defuse(text);
	for (char *at = text; *at != '='; at++)
		*at = (char)toupper((unsigned char)*at);
	return text;
}

static bool add(struct iovec *to, char *text)
{
	if (!text)
		return false;
	*to = (struct iovec){.iov_base = text, .iov_len = strlen(text)};
	return true;
}

static void write_journal(const char *level, const char *event, const cJSON *fields,
			  const char *message)
{
	static const char *const levels[] = {"error", "warning", "info"};
	static const int priorities[] = {3, 4, 6};
	struct iovec parts[MOST_FIELDS + 3];
	const cJSON *f;
	char *text;
	int nr = 0, priority = 6;

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		if (!strcmp(levels[i], level))
			priority = priorities[i];
	nr += add(&parts[nr], asprintf(&text, "MESSAGE=%s", message) < 0 ? NULL : text);
	nr += add(&parts[nr], asprintf(&text, "PRIORITY=%d", priority) < 0 ? NULL : text);
	nr += add(&parts[nr], field("EVENT", event));
	cJSON_ArrayForEach(f, fields)
	{
		char *value =
			cJSON_IsString(f) ? strdup(f->valuestring) : cJSON_PrintUnformatted(f);

		if (value && nr < MOST_FIELDS + 3)
			nr += add(&parts[nr], field(f->string, value));
		free(value);
	}
	sd_journal_sendv(parts, nr);
	while (nr)
		free(parts[--nr].iov_base);
}

/*
 * Writes a line. False: nobody has read for long, and the daemon does not wait for that. Where a
 * pipe is said to be ready, it has room for PIPE_BUF bytes.
 */
static bool write_text(char *text)
{
	struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
	size_t bytes = strlen(text);

	if (bytes >= PIPE_BUF || poll(&p, 1, 0) != 1 || !(p.revents & POLLOUT))
		return false;
	text[bytes] = '\n'; /* one write, so that lines of several processes do not mix */
	return write(STDERR_FILENO, text, bytes + 1) == (ssize_t)(bytes + 1);
}

static void write_line(const char *level, const char *event, const cJSON *fields,
		       const char *message)
{
	cJSON *o = cJSON_CreateObject(), *copy;
	struct timespec now;
	char at[40], whole[64], *text;
	struct tm utc;
	const cJSON *f;

	clock_gettime(CLOCK_REALTIME, &now);
	strftime(at, sizeof(at), "%Y-%m-%dT%H:%M:%S", gmtime_r(&now.tv_sec, &utc));
	snprintf(whole, sizeof(whole), "%s.%03ldZ", at, now.tv_nsec / 1000000);
	cJSON_AddStringToObject(o, "time", whole);
	cJSON_AddStringToObject(o, "level", level);
	cJSON_AddStringToObject(o, "event", event);
	cJSON_AddStringToObject(o, "message", message);
	cJSON_ArrayForEach(f, fields)
	{
		copy = cJSON_Duplicate(f, true);
		if (copy && !cJSON_AddItemToObject(o, f->string, copy))
			cJSON_Delete(copy);
	}
	if (lost)
		cJSON_AddNumberToObject(o, "lines_lost", (double)lost);
	text = cJSON_PrintUnformatted(o);
	if (text && strlen(text) >= PIPE_BUF) { /* the longest of what is also said elsewhere */
		cJSON_free(text);
		cJSON_DeleteItemFromObject(o, "error");
		cJSON_DeleteItemFromObject(o, "hint");
		text = cJSON_PrintUnformatted(o);
	}
	if (text)
		text_defuse(text);
	if (text && write_text(text))
		lost = 0;
	else
		lost++;
	cJSON_free(text);
	cJSON_Delete(o);
}

void log_line(const char *level, const char *event, cJSON *fields, const char *fmt, ...)
{
	char message[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	text_defuse(message); /* names and options of others' are in some */
	if (to_journal)
		write_journal(level, event, fields, message);
	else
		write_line(level, event, fields, message);
	cJSON_Delete(fields);
}
