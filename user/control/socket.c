// SPDX-License-Identifier: BSD-2-Clause
/* The socket in a folder: one question at a time, and nobody can make who answers wait. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "kprof/control.h"
#include "util/error.h"
#include "util/util.h"

#define BACKLOG 16
#define ASKER_MOST_NS NSEC_PER_SEC /* from the connection to the question */

struct kprof_control {
	int lock;
	int listener;
	int asker; /* -1: nobody */
	uint64_t asker_until_ns;
	pid_t asker_pid;
	char question[KPROF_CONTROL_PACKET_BYTES];
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
};

static int address_of(const char *folder, struct sockaddr_un *to)
{
	*to = (struct sockaddr_un){.sun_family = AF_UNIX};
	if ((size_t)snprintf(to->sun_path, sizeof(to->sun_path), "%s/socket", folder) >=
	    sizeof(to->sun_path))
		return error_set_usage(-ENAMETOOLONG, NULL, "%s is too long a path", folder);
	return 0;
}

static int new_socket(int flags)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);

	return fd < 0 ? error_set(-errno, NULL, "cannot make a socket: %s", strerror(errno)) : fd;
}

static int listen_in(struct kprof_control *c, const char *folder)
{
	struct sockaddr_un address;
	mode_t mask = umask(077);
	int err = address_of(folder, &address);

	if (!err) {
		/* who has left it there has ended: the folder is locked */
		unlink(address.sun_path);
		if (bind(c->listener, (struct sockaddr *)&address, sizeof(address)) ||
		    listen(c->listener, BACKLOG))
			err = error_set(-errno, NULL, "cannot listen at %s: %s", address.sun_path,
					strerror(errno));
	}
	umask(mask);
	snprintf(c->path, sizeof(c->path), "%s", err ? "" : address.sun_path);
	return err;
}

/*
 * Makes the folder this process's own, for as long as it lives: a lock of this kind has no
 * children. -EBUSY: it is another's.
 */
static int lock(struct kprof_control *c, const char *folder)
{
	struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char path[KPROF_CONTROL_PATH_BYTES + 8];

	snprintf(path, sizeof(path), "%s/lock", folder);
	c->lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (c->lock < 0)
		return error_set(-errno, NULL, "cannot make %s: %s", path, strerror(errno));
	if (!fcntl(c->lock, F_SETLK, &whole))
		return 0;
	if (errno == EAGAIN || errno == EACCES)
		return -EBUSY;
	return error_set(-errno, NULL, "cannot lock %s: %s", path, strerror(errno));
}

int kprof_control_new(const char *folder, struct kprof_control **out)
{
	struct kprof_control *c = calloc(1, sizeof(*c));
	int err;

	error_clear();
	if (!c)
		return error_set(-ENOMEM, NULL, "no memory for a socket");
	c->asker = c->listener = -1;
	err = lock(c, folder);
	if (!err) {
		c->listener = new_socket(SOCK_NONBLOCK);
		err = c->listener < 0 ? c->listener : listen_in(c, folder);
	}
	if (err)
		kprof_control_free(c);
	else
		*out = c;
	return err;
}

static void forget_asker(struct kprof_control *c)
{
	if (c->asker >= 0)
		close(c->asker);
	c->asker = -1;
}

void kprof_control_free(struct kprof_control *c)
{
	if (!c)
		return;
	forget_asker(c);
	if (c->path[0])
		unlink(c->path);
	if (c->listener >= 0)
		close(c->listener);
	if (c->lock >= 0)
		close(c->lock);
	free(c);
}

/* The next one who is root's. */
static bool accept_asker(struct kprof_control *c)
{
	struct ucred who;
	socklen_t bytes = sizeof(who);
	int fd = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return false;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) || who.uid) {
		close(fd);
		return false;
	}
	c->asker = fd;
	c->asker_pid = who.pid;
	c->asker_until_ns = clock_mono_ns() + ASKER_MOST_NS;
	return true;
}

int kprof_control_take(struct kprof_control *c, struct kprof_control_question *out)
{
	ssize_t n;

	if (c->asker < 0 && !accept_asker(c))
		return 0;
	n = recv(c->asker, c->question, sizeof(c->question) - 1, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR) && clock_mono_ns() < c->asker_until_ns)
		return 0;
	if (n <= 0) {
		forget_asker(c);
		return 0;
	}
	c->question[n] = '\0';
	*out = (struct kprof_control_question){.text = c->question, .pid = c->asker_pid};
	return 1;
}

void kprof_control_answer(struct kprof_control *c, const char *text)
{
	if (c->asker >= 0)
		send(c->asker, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
	forget_asker(c);
}

/* ---- who asks ---- */

/* Connects, and asks. A full queue of others before it makes it wait no longer than that. */
static int send_question(int fd, const struct sockaddr_un *to, const char *question, int timeout_ms)
{
	struct timeval most = {.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
	if (connect(fd, (const struct sockaddr *)to, sizeof(*to))) {
		if (errno == ENOENT || errno == ECONNREFUSED)
			return -ESRCH;
	} else if (send(fd, question, strlen(question), MSG_NOSIGNAL) >= 0) {
		return 0;
	}
	if (errno == EAGAIN)
		return error_set(-ETIMEDOUT, NULL, "the recording does not answer");
	return error_set(-errno, NULL, "cannot ask at %s: %s", to->sun_path, strerror(errno));
}

static int wait_for_answer(int fd, int timeout_ms, char **answer)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char *text = malloc(KPROF_CONTROL_PACKET_BYTES);
	ssize_t n = -1;

	if (!text)
		return error_set(-ENOMEM, NULL, "no memory for an answer");
	if (poll(&p, 1, timeout_ms) > 0)
		n = recv(fd, text, KPROF_CONTROL_PACKET_BYTES - 1, 0);
	if (n <= 0) {
		free(text);
		return error_set(n ? -ETIMEDOUT : -EPIPE, NULL,
				 n ? "the recording does not answer"
				   : "the recording ended without an answer");
	}
	text[n] = '\0';
	*answer = text;
	return 0;
}

int kprof_control_ask(const char *folder, const char *question, int timeout_ms, char **answer)
{
	struct sockaddr_un address;
	int fd, err;

	error_clear();
	err = address_of(folder, &address);
	if (err)
		return err;
	/* the children of one that was killed may have its socket for a moment longer */
	if (!kprof_control_wait(folder, 0))
		return -ESRCH;
	fd = new_socket(0);
	if (fd < 0)
		return fd;
	err = send_question(fd, &address, question, timeout_ms);
	if (!err)
		err = wait_for_answer(fd, timeout_ms, answer);
	close(fd);
	if (!err || kprof_control_wait(folder, 0))
		return err;
	error_clear(); /* it has ended meanwhile */
	return -ESRCH;
}
