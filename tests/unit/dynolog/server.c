// SPDX-License-Identifier: BSD-2-Clause
/*
 * A server of dynolog's on sockets of its own: who registers, what a request of dyno's means, and
 * what the answer says. Processes are children of this one, each with a socket as Kineto's.
 */
#include "unit.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "dynolog_fixture.h"
#include "kprof.h"

static struct kprof_dynolog *d;
static char name[48], text[65536];
static char folder[] = "/tmp/kprof-unit-dynolog-XXXXXX";
static struct kprof_dynolog_opts opts;

static void start(const struct kprof_dynolog_opts *o)
{
	struct kprof_dynolog_opts all = *o;

	snprintf(name, sizeof(name), "kprof-unit-%d", getpid());
	all.sz = sizeof(all);
	all.name = name;
	all.port = -1;
	if (kprof_dynolog_new(&all, &d)) {
		fprintf(stderr, "no server: %s\n", kprof_error_cause());
		exit(1);
	}
}

static void stop(void)
{
	kprof_dynolog_free(d);
	d = NULL;
	opts = (struct kprof_dynolog_opts){0};
}

/* An abstract name that no other run of this program has. */
static const char *unique(const char *what)
{
	static char own[64];

	snprintf(own, sizeof(own), "kprof-unit-%d-%s", getpid(), what);
	return own;
}

static struct kprof_dynolog_counts counts(void)
{
	struct kprof_dynolog_counts c;

	kprof_dynolog_counts(d, &c);
	return c;
}

static int count_one(void *nr, const struct kprof_dynolog_process *p)
{
	++*(int *)nr;
	return 0;
}

static int nr_registered(void)
{
	int nr = 0;

	kprof_dynolog_processes(d, count_one, &nr);
	return nr;
}

/* ---- Kineto's side ---- */

struct client {
	pid_t pid;
	int fd; /* a socket of Kineto's, which this process reads */
};

/*
 * A child that polls once through a socket that it shares with this process: the credentials are
 * its own. It ends with end_client(). claim: the number it says is its own; 0: the true one.
 */
static struct client poll_as(int32_t takes, int64_t job, int32_t claim)
{
	static int number;
	char own[64], data[128], byte;
	int ready[2];
	struct client c;

	snprintf(own, sizeof(own), "kprof-unit-client-%d-%d", getpid(), ++number);
	c.fd = client_socket(own);
	CHECK(c.fd >= 0 && !pipe(ready));
	c.pid = fork();
	if (!c.pid) {
		int32_t pids[] = {claim ? claim : getpid(), getppid()};

		_exit(send_to(c.fd, name, data, make_poll(data, takes, job, pids, 2)) ||
		      write(ready[1], "", 1) != 1 || pause());
	}
	CHECK_EQ(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	serve_all(d);
	return c;
}

static void end_client(struct client *c)
{
	close(c->fd);
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
}

/* The length of the payload that this client has got, which is then in `text`; -1: no answer. */
static ssize_t answer_to(const struct client *c)
{
	struct datagram_head head;
	ssize_t n = recv(c->fd, text, sizeof(text) - 1, MSG_DONTWAIT);

	if (n < (ssize_t)sizeof(head))
		return -1;
	memcpy(&head, text, sizeof(head));
	CHECK_EQ(head.bytes, n - (ssize_t)sizeof(head));
	CHECK_STR(head.type, "req");
	memmove(text, text + sizeof(head), head.bytes);
	text[head.bytes] = '\0';
	return (ssize_t)head.bytes;
}

/* This process polls itself. */
static void poll_again(const struct client *c, int32_t takes, int32_t claim)
{
	char data[128];
	int32_t pids[] = {claim};

	CHECK_EQ(send_to(c->fd, name, data, make_poll(data, takes, 0, pids, 1)), 0);
	serve_all(d);
}

static const char *ask(const char *config, const char *pids, int job, int limit)
{
	static char json[16384];

	snprintf(json, sizeof(json),
		 "{\"fn\":\"setKinetOnDemandRequest\",\"config\":\"%s\",\"job_id\":%d,"
		 "\"pids\":[%s],\"process_limit\":%d}",
		 config, job, pids, limit);
	CHECK(dyno_ask(d, json, text, sizeof(text)));
	return text;
}

static const char *expected(int busy, const char *triggered, const char *matched)
{
	static char line[512];

	snprintf(
		line, sizeof(line),
		"{\"activityProfilersBusy\":%d,\"activityProfilersTriggered\":[%s],"
		"\"eventProfilersBusy\":0,\"eventProfilersTriggered\":[],\"processesMatched\":[%s]}",
		busy, triggered, matched);
	return line;
}

#define CONFIG "ACTIVITIES_LOG_FILE=/tmp/a.json\\nACTIVITIES_DURATION_MSECS=500"

/* ---- tests ---- */

static void registers_and_obeys(void)
{
	struct client c;
	char pid[16];

	start(&opts);
	CHECK_STR(ask(CONFIG, "0", 0, 3), expected(0, "", ""));
	c = poll_as(2, 0, 0);
	CHECK_EQ(answer_to(&c), 0);
	CHECK_EQ(nr_registered(), 1);
	snprintf(pid, sizeof(pid), "%d", c.pid);
	CHECK_STR(ask(CONFIG, pid, 0, 3), expected(0, pid, pid));
	/* one that waits: busy; it stays where the next poll does not take it */
	CHECK_STR(ask(CONFIG, "", 0, 3), expected(1, "", pid));
	end_client(&c);
	/* and the dead are not matched */
	CHECK_STR(ask(CONFIG, "", 0, 3), expected(0, "", ""));
	CHECK_EQ(nr_registered(), 0);
	stop();
}

static void configs_are_taken_once(void)
{
	char own[64], pid[16];
	struct client me = {.pid = getpid()};

	start(&opts);
	snprintf(own, sizeof(own), "kprof-unit-client-%d", getpid());
	me.fd = client_socket(own);
	snprintf(pid, sizeof(pid), "%d", getpid());
	poll_again(&me, 2, getpid());
	CHECK_EQ(answer_to(&me), 0);
	CHECK_STR(ask(CONFIG, pid, 0, 3), expected(0, pid, pid));
	poll_again(&me, 1, getpid()); /* busy: it keeps waiting */
	CHECK_EQ(answer_to(&me), 0);
	poll_again(&me, 3, getpid());
	CHECK(answer_to(&me) > 0);
	CHECK(strstr(text, "ACTIVITIES_LOG_FILE=/tmp/a.json\nACTIVITIES_DURATION_MSECS=500\n"
			   "REQUEST_TRACE_ID="));
	poll_again(&me, 3, getpid());
	CHECK_EQ(answer_to(&me), 0);
	/* who says that it could begin nothing is busy */
	poll_again(&me, 0, getpid());
	CHECK_EQ(answer_to(&me), 0);
	CHECK_STR(ask(CONFIG, pid, 0, 3), expected(1, "", pid));
	/* handed over by the owner */
	CHECK_EQ(kprof_dynolog_hand(d, getpid(), "X=1"), -EBUSY);
	CHECK_EQ(kprof_dynolog_hand(d, 1, "X=1"), -ESRCH);
	poll_again(&me, 2, getpid());
	CHECK_EQ(answer_to(&me), 0);
	CHECK_EQ(kprof_dynolog_hand(d, getpid(), "X=1"), 0);
	poll_again(&me, 2, getpid());
	CHECK(answer_to(&me) > 0 && !strncmp(text, "X=1\nREQUEST_TRACE_ID=", 21));
	close(me.fd);
	stop();
}

static void matching(void)
{
	struct client a, b, other;
	char pids[64], one[16], parent[16];

	start(&opts);
	a = poll_as(2, 0, 0);
	b = poll_as(2, 0, 0);
	other = poll_as(2, 77, 0);
	snprintf(pids, sizeof(pids), "%d,%d", a.pid, b.pid);
	snprintf(one, sizeof(one), "%d", a.pid);
	CHECK_STR(ask(CONFIG, "0", 0, 1), expected(0, one, pids)); /* the limit */
	snprintf(one, sizeof(one), "%d", b.pid);
	CHECK_STR(ask(CONFIG, one, 0, 3), expected(0, one, one));
	CHECK_STR(ask(CONFIG, "0", 0, 0), expected(0, "", pids));
	/* an ancestor */
	snprintf(parent, sizeof(parent), "%d", getpid());
	CHECK_STR(ask(CONFIG, parent, 0, 3), expected(2, "", pids));
	/* another job */
	snprintf(one, sizeof(one), "%d", other.pid);
	CHECK_STR(ask(CONFIG, one, 0, 3), expected(0, "", ""));
	CHECK_STR(ask(CONFIG, "", 77, 3), expected(0, one, one));
	CHECK_STR(ask(CONFIG, one, 78, 3), expected(0, "", ""));
	CHECK_STR(ask(CONFIG, "1", 0, 3), expected(0, "", ""));
	end_client(&a);
	end_client(&b);
	end_client(&other);
	stop();
}

static void the_credentials_decide(void)
{
	struct client c;

	start(&opts);
	c = poll_as(2, 0, 1);
	CHECK_EQ(answer_to(&c), -1);
	CHECK_EQ(nr_registered(), 0);
	CHECK_EQ(counts().forged, 1);
	end_client(&c);
	c = poll_as(2, 0, getpid()); /* that of another */
	CHECK_EQ(answer_to(&c), -1);
	CHECK_EQ(counts().forged, 2);
	end_client(&c);
	stop();
}

static enum kprof_dynolog_engine outside(void *ctx, const struct kprof_dynolog_request *r,
					 const struct kprof_dynolog_process *p)
{
	return KPROF_DYNOLOG_OUTSIDE;
}

static int begin_outside(void *ctx, const struct kprof_dynolog_request *r,
			 const struct kprof_dynolog_process *p, const char *path)
{
	CHECK(p->registered && p->own_pid == 1);
	snprintf(ctx, 64, "%s", path);
	return 0;
}

/* A process of a PID namespace of its own is known by both numbers. */
static void in_a_namespace(void)
{
	char host[16], data[128], byte, path[64] = "", wanted[64];
	int ready[2], go[2], status;
	pid_t outer;

	if (geteuid())
		return;
	start(&opts);
	CHECK(!pipe(ready) && !pipe(go));
	outer = fork();
	if (!outer) {
		int32_t one = 1;
		int fd = client_socket(unique("ns"));

		if (unshare(CLONE_NEWPID))
			_exit(2);
		if (fork()) {
			wait(&status);
			_exit(WEXITSTATUS(status));
		}
		_exit(getpid() != 1 || send_to(fd, name, data, make_poll(data, 2, 0, &one, 1)) ||
		      write(ready[1], "", 1) != 1 || read(go[0], &byte, 1) != 1);
	}
	CHECK_EQ(read(ready[0], &byte, 1), 1);
	serve_all(d);
	CHECK_EQ(nr_registered(), 1);
	snprintf(host, sizeof(host), "%d", d->registry.nr ? d->registry.all[0]->p.pid : 0);
	CHECK(atoi(host) > outer);
	/* matched by the machine's number or its own, and named by its own, as its file will be */
	CHECK_STR(ask(CONFIG, host, 0, 0), expected(0, "", "1"));
	CHECK_STR(ask(CONFIG, "1", 0, 0), expected(0, "", "1"));
	/* what records it from outside names it by the machine's */
	d->o.engine = outside;
	d->o.begin = begin_outside;
	d->o.ctx = path;
	CHECK_STR(ask(CONFIG, "1", 0, 1), expected(0, host, host));
	snprintf(wanted, sizeof(wanted), "/tmp/a_%s.json", host);
	CHECK_STR(path, wanted);
	CHECK_EQ(write(go[1], "", 1), 1);
	waitpid(outer, &status, 0);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	stop();
}

static void bounds(void)
{
	struct client c[4];

	opts.max_processes = 3;
	start(&opts);
	for (int i = 0; i < 4; i++) {
		c[i] = poll_as(2, 0, 0);
		/* who has no room need not wait in vain */
		CHECK_EQ(answer_to(&c[i]), 0);
	}
	CHECK_EQ(nr_registered(), 3);
	CHECK_EQ(counts().too_many, 1);
	for (int i = 0; i < 4; i++)
		end_client(&c[i]);
	stop();
}

static void silent_ones_are_forgotten(void)
{
	struct client a, b;

	start(&opts);
	a = poll_as(2, 0, 0);
	b = poll_as(2, 0, 0);
	CHECK_EQ(nr_registered(), 2);
	d->registry.all[0]->p.seen_ns -= 59 * NSEC_PER_SEC;
	d->sweep_ns = 0;
	kprof_dynolog_serve(d);
	CHECK_EQ(nr_registered(), 2);
	d->registry.all[0]->p.seen_ns -= 2 * NSEC_PER_SEC;
	d->sweep_ns = 0;
	kprof_dynolog_serve(d);
	CHECK_EQ(nr_registered(), 1);
	CHECK_EQ(d->registry.all[0]->p.pid, b.pid);
	end_client(&a);
	end_client(&b);
	stop();
}

static void gpus(void)
{
	struct client me = {.pid = getpid(), .fd = client_socket(unique("gpus"))};
	struct pollfd p = {.fd = me.fd, .events = POLLIN};
	struct {
		struct datagram_head head;
		int32_t number;
	} a;
	static const int32_t gpu[] = {0, 63, 64, -1, INT32_MIN}, number[] = {1, 1, -1, -1, -1};
	char data[128];

	start(&opts);
	for (int i = 0; i < 5; i++) {
		CHECK_EQ(send_to(me.fd, name, data, make_context(data, gpu[i], getpid(), 5)), 0);
		serve_all(d);
		CHECK_EQ(poll(&p, 1, 0), 1);
		CHECK_EQ(recv(me.fd, &a, sizeof(a), 0), 44);
		CHECK_STR(a.head.type, "ctxt");
		CHECK_EQ(a.head.bytes, 4);
		CHECK_EQ(a.number, number[i]);
	}
	/* which does not poll, so that it is asked for nothing */
	CHECK_STR(ask(CONFIG, "", 5, 3), expected(0, "", ""));
	close(me.fd);
	stop();
}

/* After a burst, the socket rests for a moment; what was sent meanwhile is then answered. */
static void a_flood_is_bounded(void)
{
	struct client me = {.pid = getpid(), .fd = client_socket(unique("flood"))};

	start(&opts);
	kprof_dynolog_serve(d);
	d->ipc_left = 5;
	d->refill_ns = clock_mono_ns() + 3600 * NSEC_PER_SEC;
	for (int i = 0; i < 5; i++) {
		poll_again(&me, 2, getpid());
		CHECK_EQ(answer_to(&me), 0);
	}
	poll_again(&me, 2, getpid());
	CHECK_EQ(answer_to(&me), -1);
	CHECK(d->ipc_rests);
	d->refill_ns = clock_mono_ns() + NSEC_PER_MSEC;
	kprof_dynolog_serve(d);
	CHECK(serve_until(d, me.fd));
	CHECK_EQ(answer_to(&me), 0);
	CHECK(d->ipc_left > 5 && d->ipc_left <= 2048);
	close(me.fd);
	stop();
}

/* ---- sockets ---- */

static void peers_without_an_address(void)
{
	int fd = client_socket(NULL), pids[] = {getpid()};
	char data[128];
	size_t n = make_poll(data, 2, 0, pids, 1);

	start(&opts);
	CHECK_EQ(send_to(fd, name, data, n), 0);
	serve_all(d);
	CHECK_EQ(counts().unnamed, 1);
	CHECK_EQ(nr_registered(), 0);
	close(fd);
	/* a file is no address to answer to for who asked at the abstract socket */
	snprintf(data + 100, 28, "/tmp/kprof-unit-%d", getpid());
	fd = client_socket(data + 100);
	CHECK_EQ(send_to(fd, name, data, n), 0);
	serve_all(d);
	CHECK_EQ(counts().unnamed, 2);
	close(fd);
	unlink(data + 100);
	stop();
}

static void one_at_a_time(void)
{
	struct kprof_dynolog *second = NULL;
	struct kprof_dynolog_opts o = {.sz = sizeof(o), .no_tcp = true};

	start(&opts);
	o.name = name;
	CHECK_EQ(kprof_dynolog_new(&o, &second), -EADDRINUSE);
	CHECK(strstr(kprof_error_cause(), name) && strstr(kprof_error_hint(), "another daemon"));
	o = (struct kprof_dynolog_opts){.sz = sizeof(o), .name = "", .port = kprof_dynolog_port(d)};
	CHECK_EQ(kprof_dynolog_new(&o, &second), -EADDRINUSE);
	o.addresses = (const char *[]){"localhost"};
	o.nr_addresses = 1;
	CHECK_EQ(kprof_dynolog_new(&o, &second), -EINVAL);
	stop();
}

static const char *in(const char *file)
{
	static char path[108];

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	return path;
}

static void folders(void)
{
	const char *const list[] = {folder};
	struct kprof_dynolog *second = NULL;
	int32_t pids[] = {getpid()};
	struct client me;
	struct stat st;
	char data[128];
	size_t n = make_poll(data, 2, 0, pids, 1);

	CHECK(mkdtemp(folder));
	opts.folders = list;
	opts.nr_folders = 1;
	start(&opts);
	CHECK(!stat(in("dynolog"), &st) && (st.st_mode & 0777) == 0666);
	me.fd = client_socket(in("client"));
	CHECK_EQ(send_to(me.fd, in("dynolog"), data, n), 0);
	serve_all(d);
	CHECK_EQ(answer_to(&me), 0);
	close(me.fd);
	/* from elsewhere, or by an abstract address: an answer would end such a client */
	mkdir(in("below"), 0777);
	me.fd = client_socket(in("below/client"));
	CHECK_EQ(send_to(me.fd, in("dynolog"), data, n), 0);
	serve_all(d);
	CHECK_EQ(answer_to(&me), -1);
	CHECK_EQ(counts().unnamed, 1);
	close(me.fd);
	me.fd = client_socket(unique("elsewhere"));
	CHECK_EQ(send_to(me.fd, in("dynolog"), data, n), 0);
	serve_all(d);
	CHECK_EQ(answer_to(&me), -1);
	CHECK_EQ(counts().unnamed, 2);
	close(me.fd);
	/* a second daemon; and what a daemon that was killed has left */
	struct kprof_dynolog_opts o = {
		.sz = sizeof(o), .name = "", .no_tcp = true, .folders = list, .nr_folders = 1};
	CHECK_EQ(kprof_dynolog_new(&o, &second), -EADDRINUSE);
	stop();
	CHECK(access(in("dynolog"), F_OK));
	close(client_socket(in("dynolog")));
	CHECK_EQ(access(in("dynolog"), F_OK), 0);
	CHECK_EQ(kprof_dynolog_new(&o, &second), 0);
	kprof_dynolog_free(second);
	CHECK_EQ(symlink("/etc/passwd", in("dynolog")), 0);
	CHECK_EQ(kprof_dynolog_new(&o, &second), -EADDRINUSE);
	unlink(in("dynolog"));
}

/* A link in the place of a client's socket must not lead an answer to somebody else's socket. */
static void answers_follow_no_links(void)
{
	const char *const list[] = {folder};
	int32_t pids[] = {getpid()};
	struct client me, victim;
	char data[128];

	opts.folders = list;
	opts.nr_folders = 1;
	start(&opts);
	victim.fd = client_socket(in("below/victim"));
	me.fd = client_socket(in("evil"));
	CHECK_EQ(send_to(me.fd, in("dynolog"), data, make_poll(data, 2, 0, pids, 1)), 0);
	CHECK(!unlink(in("evil")) && !symlink("below/victim", in("evil")));
	serve_all(d);
	CHECK_EQ(answer_to(&victim), -1);
	CHECK_EQ(counts().unnamed, 1);
	if (!geteuid()) { /* nor does another user's socket get it */
		close(me.fd);
		me.fd = client_socket(in("owned"));
		CHECK_EQ(send_to(me.fd, in("dynolog"), data, make_poll(data, 2, 0, pids, 1)), 0);
		CHECK_EQ(chown(in("owned"), 65534, 65534), 0);
		serve_all(d);
		CHECK_EQ(answer_to(&me), -1);
		CHECK_EQ(counts().unnamed, 2);
	}
	close(me.fd);
	close(victim.fd);
	stop();
	snprintf(text, sizeof(text), "rm -rf %s", folder);
	CHECK_EQ(system(text), 0);
}

UNIT_MAIN(TEST(registers_and_obeys), TEST(configs_are_taken_once), TEST(matching),
	  TEST(the_credentials_decide), TEST(in_a_namespace), TEST(bounds),
	  TEST(silent_ones_are_forgotten), TEST(gpus), TEST(a_flood_is_bounded),
	  TEST(peers_without_an_address), TEST(one_at_a_time), TEST(folders),
	  TEST(answers_follow_no_links))
