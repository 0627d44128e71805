// SPDX-License-Identifier: BSD-2-Clause
/*
 * A daemon that has nothing but dynolog's sockets, in a network namespace of its own.
 *
 *   unshare --net dynologd [--folder DIR]… [--no-abstract] [--outside PID]…
 *
 * Says READY when it listens, and then a line for each thing that happens: "registered PID OWN",
 * "gone PID", "done MATCHED TRIGGERED BUSY". The processes of --outside are recorded from outside,
 * which here means that their file is made, and "begun PID PATH TIME" is said, where TIME is what
 * the request says. A line on its standard input ends it; the last thing that it says are its
 * counts.
 */
#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kprof.h"
#include "kprof/dynolog.h"

#define MOST 16

static pid_t outside[MOST];
static size_t nr_outside;

/* A new network namespace has a loopback interface, which is down. */
static int raise_loopback(void)
{
	struct ifreq r = {.ifr_name = "lo"};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err;

	err = fd < 0 || ioctl(fd, SIOCGIFFLAGS, &r);
	r.ifr_flags |= IFF_UP;
	err = err || ioctl(fd, SIOCSIFFLAGS, &r);
	close(fd);
	return err;
}

static void seen(void *ctx, const struct kprof_dynolog_process *p, bool gone)
{
	if (gone)
		printf("gone %d\n", p->pid);
	else
		printf("registered %d %d\n", p->pid, p->own_pid);
}

static void done(void *ctx, const struct kprof_dynolog_request *r,
		 const struct kprof_dynolog_result *result)
{
	printf("done %u %u %u\n", result->matched, result->triggered, result->busy);
}

static void candidates(void *ctx, const struct kprof_dynolog_request *r,
		       struct kprof_dynolog_candidates *to)
{
	for (size_t i = 0; i < nr_outside; i++)
		kprof_dynolog_candidate(to, outside[i], kprof_dynolog_job_id(outside[i]));
}

static enum kprof_dynolog_engine engine(void *ctx, const struct kprof_dynolog_request *r,
					const struct kprof_dynolog_process *p)
{
	return p->registered ? KPROF_DYNOLOG_KINETO : KPROF_DYNOLOG_OUTSIDE;
}

static int begin(void *ctx, const struct kprof_dynolog_request *r,
		 const struct kprof_dynolog_process *p, const char *path)
{
	int fd = kprof_dynolog_create(path, NULL, 0, p->uid, p->gid), err;

	if (fd < 0)
		return fd;
	err = kprof_dynolog_publish(fd, path, NULL, 0, p->uid, p->gid);
	close(fd);
	if (err)
		return err;
	printf("begun %d %s %llu\n", p->pid, path, (unsigned long long)r->config->start_time_ms);
	return 0;
}

static int serve(struct kprof_dynolog *d)
{
	struct pollfd p[] = {{.fd = kprof_dynolog_fd(d), .events = POLLIN},
			     {.fd = STDIN_FILENO, .events = POLLIN}};

	printf("READY %d\n", getpid());
	while (!p[1].revents) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return 1;
		if (p[0].revents)
			kprof_dynolog_serve(d);
	}
	return 0;
}

static void say_counts(const struct kprof_dynolog *d)
{
	struct kprof_dynolog_counts c;

	kprof_dynolog_counts(d, &c);
	printf("{\"answered\":%llu,\"malformed\":%llu,\"unnamed\":%llu,\"unknown\":%llu,"
	       "\"forged\":%llu,\"too_many\":%llu,\"undelivered\":%llu,\"requests\":%llu,"
	       "\"bad_requests\":%llu,\"slow\":%llu}\n",
	       (unsigned long long)c.answered, (unsigned long long)c.malformed,
	       (unsigned long long)c.unnamed, (unsigned long long)c.unknown,
	       (unsigned long long)c.forged, (unsigned long long)c.too_many,
	       (unsigned long long)c.undelivered, (unsigned long long)c.requests,
	       (unsigned long long)c.bad_requests, (unsigned long long)c.slow);
}

int main(int argc, char **argv)
{
	const char *folders[MOST];
	struct kprof_dynolog_opts o = {
		.sz = sizeof(o),
		.folders = folders,
		.seen = seen,
		.done = done,
		.candidates = candidates,
		.engine = engine,
		.begin = begin,
	};
	struct kprof_dynolog *d;
	int status;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--no-abstract"))
			o.name = "";
		else if (!strcmp(argv[i], "--folder") && i + 1 < argc && o.nr_folders < MOST)
			folders[o.nr_folders++] = argv[++i];
		else if (!strcmp(argv[i], "--outside") && i + 1 < argc && nr_outside < MOST)
			outside[nr_outside++] = (pid_t)atoi(argv[++i]);
		else
			return 2;
	}
	if (raise_loopback()) {
		perror("the loopback interface");
		return 1;
	}
	if (kprof_dynolog_new(&o, &d)) {
		fprintf(stderr, "%s\n", kprof_error_cause());
		return 1;
	}
	status = serve(d);
	say_counts(d);
	kprof_dynolog_free(d);
	return status;
}
