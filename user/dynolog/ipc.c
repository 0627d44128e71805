// SPDX-License-Identifier: BSD-2-Clause
/*
 * The datagram sockets that Kineto polls. Who sent a datagram the kernel says (SO_PASSCRED), and
 * what is in it has to agree with that. Only the job id is taken as it is said.
 *
 * An answer goes where the datagram came from, at once: Kineto waits 90 ms, and takes one that
 * comes later for that of its next poll. A client ends its process when an answer comes from an
 * address of another kind than its own, or from another folder: such ones get none.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "capture/process/process.h"
#include "dynolog/impl.h"
#include "util/error.h"
#include "kprof/sent_files.h"

#define PATH_AT offsetof(struct sockaddr_un, sun_path)
#define WITH_FILES 16 /* one with files costs as much as so many others */

/* ---- sockets ---- */

static int fail(struct ipc *s, int err, const char *what)
{
	return error_set(
		err, err == -EADDRINUSE ? "is another daemon running, dynolog's or kprof's?" : NULL,
		"cannot listen at %s%s: %s", s->path[0] ? "" : "the abstract socket ", what,
		strerror(-err));
}

/* The name's final NUL belongs to the address, as dynolog and Kineto have it. */
static int bind_abstract(struct ipc *s, const char *name)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	size_t len = strlen(name);

	if (len + 2 > sizeof(to.sun_path))
		return fail(s, -ENAMETOOLONG, name);
	memcpy(to.sun_path + 1, name, len);
	if (bind(s->s.fd, (struct sockaddr *)&to, (socklen_t)(PATH_AT + len + 2)))
		return fail(s, -errno, name);
	return 0;
}

static bool is_answered(const struct sockaddr_un *to)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool answered = fd >= 0 && !connect(fd, (const struct sockaddr *)to, sizeof(*to));

	if (fd >= 0)
		close(fd);
	return answered;
}

/*
 * A socket file of one who has ended is replaced, anything else is not. Everybody may send to it
 * from its first moment on: changing its mode later could be led to another file.
 */
static int bind_in_folder(struct ipc *s, const char *folder)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	struct stat st;
	mode_t mask;
	int err;

	if ((size_t)snprintf(to.sun_path, sizeof(to.sun_path), "%s/" KPROF_DYNOLOG_NAME, folder) >=
	    sizeof(to.sun_path))
		return fail(s, -ENAMETOOLONG, folder);
	snprintf(s->path, sizeof(s->path), "%s", to.sun_path);
	s->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (s->folder < 0)
		return fail(s, -errno, s->path);
	if (is_answered(&to))
		return fail(s, -EADDRINUSE, s->path);
	if (!fstatat(s->folder, KPROF_DYNOLOG_NAME, &st, AT_SYMLINK_NOFOLLOW) &&
	    S_ISSOCK(st.st_mode))
		unlinkat(s->folder, KPROF_DYNOLOG_NAME, 0);
	mask = umask(0111);
	err = bind(s->s.fd, (struct sockaddr *)&to, sizeof(to)) ? -errno : 0;
	umask(mask);
	if (err)
		return fail(s, err, s->path);
	if (!fstatat(s->folder, KPROF_DYNOLOG_NAME, &st, AT_SYMLINK_NOFOLLOW)) {
		s->dev = st.st_dev;
		s->inode = st.st_ino;
	}
	return 0;
}

void ipc_close(struct ipc *s)
{
	struct stat st;

	if (s->inode && !fstatat(s->folder, KPROF_DYNOLOG_NAME, &st, AT_SYMLINK_NOFOLLOW) &&
	    st.st_dev == s->dev && st.st_ino == s->inode)
		unlinkat(s->folder, KPROF_DYNOLOG_NAME, 0);
	if (s->folder >= 0)
		close(s->folder);
	if (s->s.fd >= 0)
		kprof_sent_files_close(s->s.fd);
	free(s);
}

int ipc_open(struct kprof_dynolog *d, const char *folder)
{
	struct ipc *s = calloc(1, sizeof(*s)), **all = NULL;
	const int on = 1;
	int err;

	if (s)
		all = realloc(d->ipc, (d->nr_ipc + 1) * sizeof(struct ipc *));
	if (!all) {
		free(s);
		return error_set(-ENOMEM, NULL, "no memory for a socket");
	}
	d->ipc = all;
	d->ipc[d->nr_ipc++] = s;
	s->s.kind = SOURCE_IPC;
	s->folder = -1;
	s->s.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->s.fd < 0)
		return fail(s, -errno, folder ? folder : d->name);
	kprof_sent_files_refuse(s->s.fd);
	/* before there is an address: no datagram comes without credentials */
	if (setsockopt(s->s.fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)))
		return fail(s, -errno, folder ? folder : d->name);
	err = folder ? bind_in_folder(s, folder) : bind_abstract(s, d->name);
	return err;
}

/* ---- what a datagram means ---- */

static int refuse(uint64_t *count, int err)
{
	++*count;
	return err;
}

/* The sender's entry; a new one, where it is not registered. */
static int find_sender(struct kprof_dynolog *d, const struct datagram *in, pid_t pid,
		       struct entry **out)
{
	struct entry *e = registry__find(&d->registry, pid), fresh;
	struct proc_info now;
	int err;

	*out = NULL;
	if (pid < 1)
		return refuse(&d->counts.unknown, -ESRCH);
	if (e && (proc_stat_read(pid, &now) || now.start_ticks != e->p.start_ticks)) {
		forget(d, e);
		e = NULL;
	}
	if (!e && identity_read(pid, &fresh))
		return refuse(&d->counts.unknown, -ESRCH);
	if (in->pids[0] != (e ? e : &fresh)->p.own_pid)
		return refuse(&d->counts.forged, -EPERM);
	if (!e) {
		fresh.p.registered = true;
		fresh.p.job_id = in->job_id;
		err = registry__add(&d->registry, &fresh, &e);
		if (err)
			return refuse(&d->counts.too_many, err);
		if (d->o.seen)
			d->o.seen(d->o.ctx, entry__shown(e), false);
	}
	*out = e;
	return 0;
}

/* How many processes of its job have said that they use this GPU; -1: there is no such GPU. */
static int32_t count_of_gpu(struct kprof_dynolog *d, struct entry *e, const struct datagram *in)
{
	int32_t n = 0;

	if (in->gpu < 0 || in->gpu >= 64)
		return -1;
	e->gpus |= 1ull << in->gpu;
	for (size_t i = 0; i < d->registry.nr; i++) {
		const struct entry *other = d->registry.all[i];

		n += other->p.job_id == in->job_id && other->gpus >> in->gpu & 1;
	}
	return n;
}

int ipc_decide(struct kprof_dynolog *d, const struct datagram *in, const struct ucred *who,
	       struct ipc_answer *out)
{
	struct entry *e;
	int err = find_sender(d, in, who->pid, &e);

	*out = (struct ipc_answer){.number = -1};
	if (!in->is_poll) {
		out->payload = &out->number;
		out->bytes = sizeof(out->number);
	}
	/* whom there is no room for does not have to wait in vain */
	if (err)
		return err == -ENOSPC ? 0 : err;
	e->p.job_id = in->job_id;
	e->p.seen_ns = clock_mono_ns();
	if (!in->is_poll) {
		out->number = count_of_gpu(d, e, in);
		return 0;
	}
	e->polled = true;
	e->takes = in->takes;
	if (e->waits && in->takes & TAKES_ACTIVITIES) {
		out->e = e;
		out->payload = e->waits->text;
		out->bytes = e->waits->bytes;
	}
	return 0;
}

/* ---- taking and sending ---- */

struct sender {
	struct sockaddr_un at;
	socklen_t bytes;
	struct ucred who;
};

/*
 * The file in the folder that the sender is bound to, if it is a socket of the sender's own: not
 * what somebody else's link leads to. Returns a descriptor that stands for it.
 */
static int open_named(const struct ipc *s, const struct sender *from)
{
	size_t prefix = strlen(s->path) - strlen(KPROF_DYNOLOG_NAME), len = from->bytes - PATH_AT;
	char path[sizeof(from->at.sun_path) + 1];
	struct stat st;
	int fd;

	memcpy(path, from->at.sun_path, len);
	path[len] = '\0';
	if (strncmp(path, s->path, prefix) || !path[prefix] || strchr(path + prefix, '/'))
		return -EINVAL;
	fd = openat(s->folder, path + prefix, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && S_ISSOCK(st.st_mode) && st.st_uid == from->who.uid)
		return fd;
	close(fd);
	return -EPERM;
}

/* Where an answer goes; *fd is to be closed when it is sent. False: nowhere. */
static bool address_of(const struct ipc *s, const struct sender *from, struct sockaddr_un *to,
		       socklen_t *bytes, int *fd)
{
	*fd = -1;
	if (from->bytes <= PATH_AT + 1 || from->bytes > sizeof(from->at) ||
	    from->at.sun_family != AF_UNIX)
		return false;
	if (s->folder < 0) {
		*to = from->at;
		*bytes = from->bytes;
		return !to->sun_path[0];
	}
	if (!from->at.sun_path[0])
		return false;
	*fd = open_named(s, from);
	if (*fd < 0)
		return false;
	*to = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(to->sun_path, sizeof(to->sun_path), "/proc/self/fd/%d", *fd);
	*bytes = sizeof(*to);
	return true;
}

static bool send_answer(const struct ipc *s, const struct sockaddr_un *to, socklen_t to_bytes,
			bool is_poll, const struct ipc_answer *a)
{
	struct datagram_head head = datagram_head(is_poll, a->bytes);
	struct iovec parts[] = {{&head, sizeof(head)}, {(void *)a->payload, a->bytes}};
	struct msghdr m = {
		.msg_name = (void *)to,
		.msg_namelen = to_bytes,
		.msg_iov = parts,
		.msg_iovlen = a->bytes ? 2 : 1,
	};

	return sendmsg(s->s.fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

static void answer(struct kprof_dynolog *d, const struct ipc *s, const struct sender *from,
		   const void *data, size_t bytes)
{
	struct sockaddr_un to;
	struct ipc_answer a;
	struct datagram in;
	socklen_t to_bytes;
	int fd;

	if (datagram_decode(data, bytes, &in)) {
		d->counts.malformed++;
		return;
	}
	if (!address_of(s, from, &to, &to_bytes, &fd)) {
		d->counts.unnamed++;
		return;
	}
	if (!ipc_decide(d, &in, &from->who, &a)) {
		if (!send_answer(s, &to, to_bytes, in.is_poll, &a)) {
			d->counts.undelivered++;
		} else {
			d->counts.answered++;
			if (a.e)
				entry__taken(a.e);
		}
	}
	if (fd >= 0)
		close(fd);
}

bool ipc_serve(struct kprof_dynolog *d, struct ipc *s)
{
	/* One byte more than there can be; room for credentials alone, not for descriptors. */
	char data[DATAGRAM_MOST_BYTES + 1];
	union {
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align;
	} control;
	struct sender from = {0};
	struct iovec part = {data, sizeof(data)};
	struct msghdr m = {
		.msg_name = &from.at,
		.msg_namelen = sizeof(from.at),
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n = recvmsg(s->s.fd, &m, MSG_DONTWAIT | MSG_PEEK);
	const struct cmsghdr *c;

	if (n < 0)
		return errno == EINTR;
	if (m.msg_flags & MSG_CTRUNC) {
		d->counts.malformed++;
		kprof_sent_files_drop(s->s.fd);
		d->ipc_left = d->ipc_left > WITH_FILES ? d->ipc_left - WITH_FILES + 1 : 1;
		return true;
	}
	recv(s->s.fd, NULL, 0, MSG_DONTWAIT);
	c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS)
		memcpy(&from.who, CMSG_DATA(c), sizeof(from.who));
	from.bytes = m.msg_namelen;
	answer(d, s, &from, data, (size_t)n);
	return true;
}
