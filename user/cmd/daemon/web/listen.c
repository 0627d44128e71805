// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/daemon/web/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define BACKLOG 64
#define NEW_TOKEN_BYTES 16
#define TEXT(number) TEXT_(number)
#define TEXT_(number) #number

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

int listen_error(struct web_error *why, int err, const char *hint, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why->cause, sizeof(why->cause), format, args);
	va_end(args);
	snprintf(why->hint, sizeof(why->hint), "%s", hint ? hint : "");
	return err;
}

/* "ADDRESS:PORT", "[ADDRESS]:PORT"; the port is always there, so that brackets may be missing */
static bool read_address(const char *text, union address *out)
{
	char host[INET6_ADDRSTRLEN + 3];
	const char *colon = strrchr(text, ':');
	size_t bytes = colon ? (size_t)(colon - text) : 0;
	unsigned long port;
	char *end;

	memset(out, 0, sizeof(*out));
	if (!bytes || bytes >= sizeof(host) || colon[1] < '0' || colon[1] > '9')
		return false;
	memcpy(host, text, bytes);
	host[bytes] = '\0';
	port = strtoul(colon + 1, &end, 10);
	if (*end || port > UINT16_MAX)
		return false;
	if (strchr(host, ':')) {
		bool bracketed = *host == '[' && host[bytes - 1] == ']';

		if (bracketed)
			host[bytes - 1] = '\0';
		out->v6.sin6_family = AF_INET6;
		out->v6.sin6_port = htons((uint16_t)port);
		return inet_pton(AF_INET6, host + bracketed, &out->v6.sin6_addr) == 1;
	}
	out->v4.sin_family = AF_INET;
	out->v4.sin_port = htons((uint16_t)port);
	return inet_pton(AF_INET, host, &out->v4.sin_addr) == 1;
}

static bool is_loopback(const union address *a)
{
	if (a->any.sa_family == AF_INET)
		return ntohl(a->v4.sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr);
}

int listen_above(int fd)
{
	int above = fd >= 0 && fd <= 2 ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : -1;

	if (above < 0)
		return fd;
	close(fd);
	return above;
}

static int listen_on(const union address *a, struct listener *out)
{
	bool v6 = a->any.sa_family == AF_INET6;
	socklen_t bytes = v6 ? sizeof(a->v6) : sizeof(a->v4);
	union address got = *a;
	int yes = 1, err = 0;

	out->fd = listen_above(
		socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	if (out->fd < 0)
		return -errno;
	/* Only so that what an earlier daemon's connections left does not hold the port. */
	setsockopt(out->fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (v6)
		setsockopt(out->fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes));
	if (bind(out->fd, &a->any, bytes) || listen(out->fd, BACKLOG) ||
	    getsockname(out->fd, &got.any, &bytes))
		err = -errno;
	out->loopback = is_loopback(a);
	out->port = ntohs(v6 ? got.v6.sin6_port : got.v4.sin_port);
	if (err)
		close(out->fd);
	return err;
}

static int listen_error_of(struct web_error *why, int err, const char *text)
{
	const char *hint = err == -EADDRINUSE ? "another program has this port: choose another one"
			   : err == -EADDRNOTAVAIL ? "this machine has no such address"
			   : err == -EACCES        ? "ports below 1024 need a right"
						   : NULL;

	return listen_error(why, err, hint, "cannot listen on %s: %s", text, strerror(-err));
}

int listen_all(const struct web_opts *opts, struct listener out[WEB_LISTEN], size_t *nr,
	       struct web_error *why)
{
	static const char *const usual[] = {"127.0.0.1:" TEXT(WEB_PORT), "[::1]:" TEXT(WEB_PORT)};
	const char *const *texts = opts->nr_listen ? opts->listen : usual;
	size_t most = opts->nr_listen ? opts->nr_listen : 2;
	int err = 0;

	*nr = 0;
	for (size_t i = 0; !err && i < most && i < WEB_LISTEN; i++) {
		union address a;

		if (!read_address(texts[i], &a)) {
			err = listen_error(
				why, -EINVAL,
				"for example 127.0.0.1:" TEXT(WEB_PORT) " or [::1]:" TEXT(WEB_PORT),
				"%s is no address with a port", texts[i]);
			break;
		}
		err = listen_on(&a, &out[*nr]);
		if (!err)
			++*nr;
		else if (!opts->nr_listen && i && (err == -EADDRNOTAVAIL || err == -EAFNOSUPPORT))
			err = 0; /* a machine without IPv6 */
		else
			listen_error_of(why, err, texts[i]);
	}
	while (err && *nr)
		close(out[--*nr].fd);
	return err;
}

static int make_token(const char *path, struct web_error *why)
{
	unsigned char random[NEW_TOKEN_BYTES];
	char text[2 * NEW_TOKEN_BYTES + 2];
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int err = 0;

	if (fd < 0)
		return errno == EEXIST ? 0
				       : listen_error(why, -errno, NULL, "cannot make %s: %s", path,
						      strerror(errno));
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		err = -EIO;
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(text + 2 * i, 3, "%02x", random[i]);
	text[2 * sizeof(random)] = '\n';
	if (!err && write(fd, text, 2 * sizeof(random) + 1) != 2 * sizeof(random) + 1)
		err = -EIO;
	close(fd);
	if (!err)
		return 0;
	unlink(path);
	return listen_error(why, err, NULL, "cannot write %s", path);
}

int listen_token(const char *path, char token[LISTEN_TOKEN_BYTES + 1], struct web_error *why)
{
	int err = make_token(path, why), fd;
	struct stat st;
	ssize_t n = -1;

	if (err)
		return err;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return listen_error(why, -errno, NULL, "cannot read %s: %s", path, strerror(errno));
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		n = read(fd, token, LISTEN_TOKEN_BYTES);
	close(fd);
	token[n > 0 ? n : 0] = '\0';
	token[strcspn(token, "\r\n")] = '\0';
	if (st.st_mode & 077)
		return listen_error(why, -EPERM, "chmod 600 it, and change the token",
				    "%s can be read by others", path);
	if (strlen(token) < LISTEN_TOKEN_LEAST || strpbrk(token, " \t"))
		return listen_error(why, -EINVAL,
				    "remove the file, and it is made anew with a random token",
				    "%s has no token of %d to %d letters", path, LISTEN_TOKEN_LEAST,
				    LISTEN_TOKEN_BYTES);
	return 0;
}
