// SPDX-License-Identifier: BSD-2-Clause
/* Questions and answers: a packet each, a JSON object, of answers with a descriptor beside it. */
#include "cmd/daemon/web/message.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kprof/sent_files.h"

static const char *const names[WEB_NR_GET] = {
	[WEB_METRICS] = "metrics", [WEB_METRICS_TEXT] = "metrics_text",
	[WEB_STATUS] = "status",   [WEB_PROCESSES] = "processes",
	[WEB_DUMPS] = "dumps",     [WEB_FLAME] = "flame",
	[WEB_DUMP] = "dump",       [WEB_TRACE] = "trace",
};

static bool all_of(const char *text, const char *letters)
{
	return strspn(text, letters) == strlen(text);
}

#define LETTERS "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz._-"

bool message_is_name(const char *name)
{
	size_t bytes = strlen(name);

	return bytes && bytes <= WEB_NAME_BYTES && *name != '.' && all_of(name, LETTERS);
}

static bool is_id(const cJSON *id)
{
	return cJSON_IsNumber(id) && id->valuedouble >= 1 && id->valuedouble <= UINT32_MAX &&
	       id->valuedouble == (uint32_t)id->valuedouble;
}

/* Sends text, and fd beside it unless that is -1. */
static int send_packet(int fd, const char *text, int content)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec part = {(void *)(uintptr_t)text, strlen(text)};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};

	if (content >= 0) {
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
		CMSG_FIRSTHDR(&m)->cmsg_level = SOL_SOCKET;
		CMSG_FIRSTHDR(&m)->cmsg_type = SCM_RIGHTS;
		CMSG_FIRSTHDR(&m)->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), &content, sizeof(content));
	}
	return sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* The first descriptor that came with a packet is kept, others are closed. */
static int descriptor_of(struct msghdr *m)
{
	int kept = -1;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		size_t nr = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < nr; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			if (kept < 0)
				kept = fd;
			else
				close(fd);
		}
	}
	return kept;
}

/* As message_take_reply(); *content: a descriptor that came with it, or -1. */
static int take_packet(int fd, char text[MESSAGE_BYTES], int *content)
{
	union {
		char bytes[CMSG_SPACE(4 * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec part = {text, MESSAGE_BYTES - 1};
	struct msghdr m = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	*content = -1;
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -EPIPE;
	*content = descriptor_of(&m);
	text[n] = '\0';
	if (!n && *content < 0)
		return -EPIPE;
	return m.msg_flags & MSG_TRUNC || strlen(text) != (size_t)n ? -EBADMSG : 1;
}

static int send_json(int fd, cJSON *json, int content)
{
	char *text = cJSON_PrintUnformatted(json);
	int err = text ? send_packet(fd, text, content) : -ENOMEM;

	cJSON_free(text);
	cJSON_Delete(json);
	return err;
}

/* ---- the child's side ---- */

int message_ask(int fd, const struct web_question *q)
{
	cJSON *json = cJSON_CreateObject();

	cJSON_AddNumberToObject(json, "id", q->id);
	cJSON_AddStringToObject(json, "get", names[q->get]);
	if (*q->name)
		cJSON_AddStringToObject(json, "name", q->name);
	return send_json(fd, json, -1);
}

static bool read_reply(const char *text, struct web_reply *out)
{
	cJSON *json = cJSON_Parse(text);
	const cJSON *id = cJSON_GetObjectItemCaseSensitive(json, "id");
	const cJSON *ok = cJSON_GetObjectItemCaseSensitive(json, "ok");
	const cJSON *code = cJSON_GetObjectItemCaseSensitive(json, "code");
	const cJSON *error = cJSON_GetObjectItemCaseSensitive(json, "error");
	const cJSON *suffix = cJSON_GetObjectItemCaseSensitive(json, "suffix");
	bool good = is_id(id) && cJSON_IsBool(ok);

	if (good) {
		out->id = (uint32_t)id->valuedouble;
		out->code = cJSON_IsTrue(ok)                                ? 200
			    : cJSON_IsNumber(code) && code->valueint == 404 ? 404
									    : 503;
		if (cJSON_IsString(error))
			snprintf(out->error, sizeof(out->error), "%s", error->valuestring);
		if (cJSON_IsString(suffix) && strlen(suffix->valuestring) <= MESSAGE_SUFFIX_BYTES &&
		    all_of(suffix->valuestring, LETTERS))
			strcpy(out->suffix, suffix->valuestring);
	}
	cJSON_Delete(json);
	return good;
}

int message_take_reply(int fd, struct web_reply *out)
{
	char text[MESSAGE_BYTES];
	int n;

	memset(out, 0, sizeof(*out));
	n = take_packet(fd, text, &out->fd);
	if (n == 1 && !read_reply(text, out))
		n = -EBADMSG;
	if (n < 0 && out->fd >= 0) {
		close(out->fd);
		out->fd = -1;
	}
	return n;
}

/* ---- the daemon's side ---- */

bool web_question_read(const char *packet, struct web_question *out)
{
	cJSON *json = cJSON_Parse(packet);
	const cJSON *id = cJSON_GetObjectItemCaseSensitive(json, "id");
	const cJSON *get = cJSON_GetObjectItemCaseSensitive(json, "get");
	const cJSON *name = cJSON_GetObjectItemCaseSensitive(json, "name");
	bool good = is_id(id) && cJSON_IsString(get);

	*out = (struct web_question){.get = WEB_NR_GET};
	for (int i = 0; good && i < WEB_NR_GET; i++)
		if (!strcmp(get->valuestring, names[i]))
			out->get = (enum web_get)i;
	good = good && out->get != WEB_NR_GET;
	if (good && (out->get == WEB_DUMP || out->get == WEB_TRACE)) {
		good = cJSON_IsString(name) && message_is_name(name->valuestring);
		if (good)
			strcpy(out->name, name->valuestring);
	}
	if (good)
		out->id = (uint32_t)id->valuedouble;
	cJSON_Delete(json);
	return good;
}

int web_take(int fd, struct web_question *out)
{
	char text[MESSAGE_BYTES];
	int content, n = (int)kprof_sent_files_peek(fd, text, 1);

	if (n < 0)
		return n == -EAGAIN ? 0 : n == -EBADMSG ? n : -EPIPE;
	n = take_packet(fd, text, &content);
	return n == 1 && !web_question_read(text, out) ? -EBADMSG : n;
}

int web_answer(int fd, const struct web_question *q, int content, const char *suffix)
{
	cJSON *json = cJSON_CreateObject();

	cJSON_AddNumberToObject(json, "id", q->id);
	cJSON_AddTrueToObject(json, "ok");
	if (suffix)
		cJSON_AddStringToObject(json, "suffix", suffix);
	return send_json(fd, json, content);
}

int web_answer_text(int fd, const struct web_question *q, const char *text, size_t bytes)
{
	int content = memfd_create("kprof-web", MFD_CLOEXEC);
	int err = content < 0 ? -errno : 0;

	for (size_t done = 0; !err && done < bytes;) {
		ssize_t n = write(content, text + done, bytes - done);

		if (n < 0)
			err = -errno;
		else
			done += (size_t)n;
	}
	if (!err)
		err = web_answer(fd, q, content, NULL);
	if (content >= 0)
		close(content);
	return err;
}

int web_refuse(int fd, const struct web_question *q, unsigned int code, const char *error)
{
	cJSON *json = cJSON_CreateObject();

	cJSON_AddNumberToObject(json, "id", q->id);
	cJSON_AddFalseToObject(json, "ok");
	cJSON_AddNumberToObject(json, "code", code);
	cJSON_AddStringToObject(json, "error", error);
	return send_json(fd, json, -1);
}
