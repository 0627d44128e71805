// SPDX-License-Identifier: BSD-2-Clause
/* What is sent with each request besides the profile: headers, and secrets that lie in files. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "push/impl.h"
#include "util/error.h"
#include "util/util.h"

#define MAX_SECRET (16u << 10)
#define MAX_HEADER 4096
/* What a header's name can have (RFC 9110, "token"). */
#define TOKEN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~"

/* Bytes that would begin another header, or end the text. */
static bool is_one_line(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return false;
	return true;
}

static void wipe(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
}

/* Opens a file that is one: a pipe could be waited for. */
static int read_secret(const char *path, char **out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), err;
	struct stat st;
	char *text = NULL;
	size_t nr = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		err = -EINVAL;
	else
		err = read_fd(fd, MAX_SECRET, &text, &nr);
	close(fd);
	if (err)
		return err;
	while (nr && strchr("\r\n", text[nr - 1]))
		text[--nr] = '\0';
	if (!nr || strlen(text) != nr || !is_one_line(text)) {
		wipe(text);
		return -EBADMSG;
	}
	*out = text;
	return 0;
}

int push_secret__load(struct push_secret *s, const char *path)
{
	int err;

	*s = (struct push_secret){0};
	if (!path)
		return 0;
	err = read_secret(path, &s->text);
	if (err == -EBADMSG)
		return error_set_usage(err, "one line, and nothing else",
				       "%s has no line that can be sent", path);
	if (err)
		return error_set_usage(err, "a file that this user can read", "%s: %s", path,
				       err == -EINVAL ? "is no file" : strerror(-err));
	s->path = strdup(path);
	if (s->path)
		return 0;
	push_secret__free(s);
	return error_set(-ENOMEM, NULL, "no memory for the name of a file");
}

void push_secret__renew(struct push_secret *s)
{
	char *text = NULL;

	if (!s->path || read_secret(s->path, &text))
		return;
	wipe(s->text);
	s->text = text;
}

void push_secret__free(struct push_secret *s)
{
	wipe(s->text);
	free(s->path);
	*s = (struct push_secret){0};
}

int push_header_check(const char *header)
{
	static const char *const ours[] = {
		"Host",   "Content-Length", "Content-Type", "Content-Encoding", "Transfer-Encoding",
		"Expect", "Connection"};
	size_t len = strspn(header, TOKEN);

	if (!len || header[len] != ':' || strlen(header) > MAX_HEADER || !is_one_line(header) ||
	    !header[len + 1 + strspn(header + len + 1, " ")])
		return error_set_usage(-EINVAL, "for example 'X-Scope-OrgID: 7'",
				       "'%.64s' is no header NAME: VALUE", header);
	if (len == 13 && !strncasecmp(header, "Authorization", len))
		return error_set_usage(-EINVAL, "use --token-file or --basic-file",
				       "a secret on the command line would be seen by others");
	for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
		if (strlen(ours[i]) == len && !strncasecmp(header, ours[i], len))
			return error_set_usage(-EINVAL, NULL, "kprof itself sets the header %s",
					       ours[i]);
	return 0;
}
