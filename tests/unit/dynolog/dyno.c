// SPDX-License-Identifier: BSD-2-Clause
/* dyno's port: answers, what has none, slow and many connections, and recordings from outside. */
#include "unit.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "dynolog_fixture.h"
#include "kprof.h"

static struct kprof_dynolog *d;
static char text[131072];

static struct kprof_dynolog_counts counts(void)
{
	struct kprof_dynolog_counts c;

	kprof_dynolog_counts(d, &c);
	return c;
}

static void start(struct kprof_dynolog_opts o)
{
	o.sz = sizeof(o);
	o.name = "";
	o.port = -1;
	CHECK_EQ(kprof_dynolog_new(&o, &d), 0);
}

static void stop(void)
{
	kprof_dynolog_free(d);
	d = NULL;
}

static const char *ask(const char *json)
{
	text[0] = '\0';
	return dyno_ask(d, json, text, sizeof(text)) ? text : "";
}

static void simple_answers(void)
{
	start((struct kprof_dynolog_opts){0});
	CHECK_STR(ask("{\"fn\":\"getStatus\"}"), "{\"status\":1}");
	CHECK_STR(ask("{\"fn\":\"getVersion\"}"), "{\"version\":\"kprof 0.1.0\"}");
	CHECK_STR(ask("{\"fn\":\"dcgmProfPause\",\"duration_s\":300}"), "{\"status\":false}");
	CHECK_STR(ask("{\"fn\":\"dcgmProfResume\"}"), "{\"status\":false}");
	stop();
}

static void both_protocols(void)
{
	struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	start((struct kprof_dynolog_opts){0});
	to.sin6_port = htons((uint16_t)kprof_dynolog_port(d));
	if (fd >= 0 && d->nr_listeners == 2) {
		CHECK_EQ(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
		dyno_send(fd, "{\"fn\":\"getStatus\"}");
		CHECK(dyno_receive(d, fd, text, sizeof(text)));
		CHECK_STR(text, "{\"status\":1}");
	}
	stop();
}

#define FIRST_PORT 40000
#define PORTS 64

/* A network of its own with few ports, half of which are taken at 127.0.0.1, and none at ::1. */
static bool few_ports(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd = unshare(CLONE_NEWNET) ? -1 : socket(AF_INET, SOCK_STREAM, 0);
	FILE *range = fd < 0 ? NULL : fopen("/proc/sys/net/ipv4/ip_local_port_range", "w");

	if (!range || ioctl(fd, SIOCSIFFLAGS, &lo))
		return false;
	fprintf(range, "%d %d", FIRST_PORT, FIRST_PORT + PORTS - 1);
	if (fclose(range))
		return false;
	for (int i = 0; i < PORTS; i++) {
		if (i / 2 % 2)
			continue;
		at.sin_port = htons((uint16_t)(FIRST_PORT + i));
		fd = socket(AF_INET, SOCK_STREAM, 0);
		if (bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, 1))
			return false;
	}
	return true;
}

static void a_port_that_both_have(void)
{
	int status = 0;
	pid_t pid = geteuid() ? -1 : fork();

	if (!pid) {
		if (!few_ports())
			_exit(2);
		for (int i = 0; i < 8; i++) {
			start((struct kprof_dynolog_opts){0});
			if (!d)
				_exit(1);
			stop();
		}
		_exit(0);
	}
	CHECK(pid < 0 || (waitpid(pid, &status, 0) == pid && !status));
}

/* The reference daemon closes these without an answer. */
static void without_an_answer(void)
{
	static const char *const bad[] = {
		"{",
		"[]",
		"{}",
		"\"getStatus\"",
		"{\"fn\":1}",
		"{\"fn\":\"getstatus\"}",
		"{\"fn\":\"getStatus\"} x",
		"{\"fn\":\"getStatus\",}",
		"{\"fn\":\"\xff\"}",
	};
	char deep[20000] = "{\"fn\":\"getStatus\",\"a\":";

	start((struct kprof_dynolog_opts){0});
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_STR(ask(bad[i]), "");
	memset(deep + strlen(deep), '[', 5000);
	memset(deep + strlen(deep), ']', 5000);
	strcat(deep, "}");
	CHECK_STR(ask(deep), "");
	CHECK_EQ(counts().bad_requests, sizeof(bad) / sizeof(bad[0]) + 1);
	stop();
}

/* Each has an answer in which dyno finds no processes. */
static void wrong_requests(void)
{
	static const char *const wrong[] = {
		"\"pids\":[0]",
		"\"config\":\"\"",
		"\"config\":7,\"pids\":[0]",
		"\"config\":\"no equals sign\",\"pids\":[0]",
		"\"config\":\"\",\"pids\":0",
		"\"config\":\"\",\"pids\":[1.5]",
		"\"config\":\"\",\"pids\":[-1]",
		"\"config\":\"\",\"pids\":[2147483648]",
		"\"config\":\"\",\"pids\":[1e999]",
		"\"config\":\"\",\"pids\":[\"1\"]",
		"\"config\":\"\",\"pids\":[0],\"job_id\":\"7\"",
		"\"config\":\"\",\"pids\":[0],\"job_id\":-1",
		"\"config\":\"\",\"pids\":[0],\"job_id\":0.5",
		"\"config\":\"\",\"pids\":[0],\"process_limit\":-1",
		"\"config\":\"\",\"pids\":[0],\"process_limit\":3e9",
		"\"config\":\"ACTIVITIES_LOG_FILE=/etc/a.json\",\"pids\":[0]",
		"\"config\":\"ACTIVITIES_LOG_FILE=/tmp/../etc/a.json\",\"pids\":[0]",
		"\"config\":\"ACTIVITIES_LOG_FILE=a.json\",\"pids\":[0]",
	};
	char json[512];

	start((struct kprof_dynolog_opts){0});
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		cJSON *root;

		snprintf(json, sizeof(json), "{\"fn\":\"setKinetOnDemandRequest\",%s}", wrong[i]);
		root = cJSON_Parse(ask(json));
		CHECK(cJSON_IsArray(cJSON_GetObjectItem(root, "processesMatched")));
		CHECK(cJSON_GetObjectItem(root, "status"));
		if (unit_failures_here)
			printf("# %s: %s\n", wrong[i], text);
		cJSON_Delete(root);
	}
	stop();
}

static void many_numbers(void)
{
	static char json[65536];
	size_t at;

	start((struct kprof_dynolog_opts){0});
	for (int nr = 4096; nr <= 4097; nr++) {
		at = (size_t)sprintf(json, "{\"fn\":\"setKinetOnDemandRequest\",\"config\":\"\","
					   "\"pids\":[1");
		for (int i = 1; i < nr; i++)
			at += (size_t)sprintf(json + at, ",%d", 5000000 + i);
		strcpy(json + at, "]}");
		CHECK_EQ(!!strstr(ask(json), "\"status\""), nr > 4096);
	}
	stop();
}

/* ---- connections ---- */

static void slow_clients_are_dropped(void)
{
	int fd;
	char byte;

	start((struct kprof_dynolog_opts){0});
	fd = dyno_connect(d);
	CHECK_EQ(send(fd, "\x10", 1, 0), 1);
	serve_all(d);
	CHECK_EQ(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
	/* when its time is over, the timer wakes the server */
	for (size_t i = 0; i < CONNECTIONS; i++)
		if (d->connections[i].s.fd >= 0)
			d->connections[i].until_ns = clock_mono_ns() + 1000000;
	kprof_dynolog_serve(d);
	CHECK(serve_until(d, fd));
	CHECK_EQ(recv(fd, &byte, 1, MSG_DONTWAIT), 0);
	CHECK_EQ(counts().slow, 1);
	close(fd);
	stop();
}

/* Who holds connections open does not keep others out. */
static void the_oldest_gives_way(void)
{
	int fds[3 * CONNECTIONS];

	start((struct kprof_dynolog_opts){0});
	for (size_t i = 0; i < 3 * CONNECTIONS; i++) {
		fds[i] = dyno_connect(d);
		d->connections_left = 8; /* of which there is a bound, too */
		serve_all(d);
	}
	CHECK_EQ(recv(fds[2 * CONNECTIONS - 1], text, 1, MSG_DONTWAIT), 0);
	CHECK(recv(fds[2 * CONNECTIONS], text, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	CHECK_STR(ask("{\"fn\":\"getStatus\"}"), "{\"status\":1}");
	CHECK_EQ(counts().slow, 2 * CONNECTIONS + 1);
	for (size_t i = 0; i < 3 * CONNECTIONS; i++)
		close(fds[i]);
	stop();
}

/* More connections than are taken in a while wait, and are then served. */
static void not_too_many_at_once(void)
{
	int fds[20], nr = 0;

	start((struct kprof_dynolog_opts){0});
	for (int i = 0; i < 20; i++)
		fds[i] = dyno_connect(d);
	serve_all(d);
	for (size_t i = 0; i < CONNECTIONS; i++)
		nr += d->connections[i].s.fd >= 0;
	CHECK(nr > 0 && nr <= 8);
	CHECK(d->listeners_rest);
	for (int i = 0; i < 20; i++) {
		dyno_send(fds[i], "{\"fn\":\"getStatus\"}");
		CHECK_EQ(dyno_receive(d, fds[i], text, sizeof(text)), 12);
	}
	stop();
}

/* Entries that are all this process, with numbers of their own, so that the answer is long. */
static void fill_registry(size_t nr)
{
	struct entry e, *out;

	CHECK_EQ(identity_read(getpid(), &e), 0);
	e.polled = e.p.registered = true;
	e.takes = TAKES_ACTIVITIES;
	for (size_t i = 0; i < nr; i++) {
		e.p.seen_ns = clock_mono_ns();
		e.p.own_pid = 1000000 + (int32_t)i;
		CHECK_EQ(registry__add(&d->registry, &e, &out), 0);
	}
}

/* A client with little room for the answer, and its connection. */
static struct connection *ask_with_little_room(int *fd)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int least = 1;

	to.sin_port = htons((uint16_t)kprof_dynolog_port(d));
	*fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(*fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least));
	CHECK_EQ(connect(*fd, (struct sockaddr *)&to, sizeof(to)), 0);
	serve_all(d);
	for (size_t i = 0; i < CONNECTIONS; i++) {
		struct connection *c = &d->connections[i];

		if (c->s.fd < 0)
			continue;
		setsockopt(c->s.fd, SOL_SOCKET, SO_SNDBUF, &least, sizeof(least));
		dyno_send(*fd, "{\"fn\":\"setKinetOnDemandRequest\",\"config\":\"\",\"pids\":[0],"
			       "\"process_limit\":5000}");
		serve_all(d);
		return c;
	}
	return NULL;
}

static void slow_readers(void)
{
	struct connection *c;
	char byte;
	int fd;

	start((struct kprof_dynolog_opts){.max_processes = 3000, .max_processes_of_user = 3000});
	fill_registry(3000);
	c = ask_with_little_room(&fd);
	CHECK(c && c->answer && c->sent < c->answer_bytes);
	CHECK(dyno_receive(d, fd, text, sizeof(text)) > 48000);
	CHECK(strstr(text, "1000000,1000001,") && strstr(text, "1002998,1002999]}"));
	CHECK_EQ(c ? c->s.fd : 0, -1);
	/* one that does not read at all */
	c = ask_with_little_room(&fd);
	CHECK(c && c->answer);
	if (c)
		c->until_ns = clock_mono_ns() + NSEC_PER_MSEC;
	for (int i = 0; c && c->s.fd >= 0 && i < 20000; i++) {
		usleep(1000);
		kprof_dynolog_serve(d);
	}
	CHECK_EQ(counts().slow, 1);
	while (recv(fd, &byte, 1, MSG_DONTWAIT) > 0)
		;
	close(fd);
	stop();
}

static void wrong_lengths(void)
{
	static const int32_t lengths[] = {0, -1, INT32_MAX, FRAME_MOST_BYTES + 1};
	char byte;

	start((struct kprof_dynolog_opts){0});
	for (size_t i = 0; i < 4; i++) {
		int fd = dyno_connect(d);

		CHECK_EQ(send(fd, &lengths[i], 4, 0), 4);
		CHECK(serve_until(d, fd));
		CHECK_EQ(recv(fd, &byte, 1, 0), 0);
		close(fd);
	}
	CHECK_EQ(counts().bad_requests, 4);
	stop();
}

/* ---- from outside ---- */

struct outside {
	pid_t pid[3];
	enum kprof_dynolog_engine engine;
	int result, nr_begun;
	const char *note;
	char paths[3][64];
	uint64_t start_time_ms;
	struct kprof_dynolog_result said;
};

static void candidates(void *ctx, const struct kprof_dynolog_request *r,
		       struct kprof_dynolog_candidates *to)
{
	const struct outside *o = ctx;

	for (int i = 0; i < 3; i++) {
		kprof_dynolog_candidate(to, o->pid[i], i == 2 ? 99 : 0);
		kprof_dynolog_candidate(to, o->pid[i], i == 2 ? 99 : 0); /* once is enough */
	}
	kprof_dynolog_candidate(to, -1, 0);
	kprof_dynolog_candidate(to, 0x7fffffff, 0);
}

static enum kprof_dynolog_engine engine(void *ctx, const struct kprof_dynolog_request *r,
					const struct kprof_dynolog_process *p)
{
	CHECK(!p->registered && p->pid > 0 && p->start_ticks && r->loopback);
	CHECK(!strncmp(r->peer, "127.0.0.1:", 10));
	return ((struct outside *)ctx)->engine;
}

static int begin(void *ctx, const struct kprof_dynolog_request *r,
		 const struct kprof_dynolog_process *p, const char *path)
{
	struct outside *o = ctx;

	o->start_time_ms = r->config->start_time_ms;
	if (o->note)
		kprof_dynolog_note(d, o->note);
	if (o->result)
		return o->result;
	snprintf(o->paths[o->nr_begun++], 64, "%s", path);
	return 0;
}

static void done(void *ctx, const struct kprof_dynolog_request *r,
		 const struct kprof_dynolog_result *said)
{
	((struct outside *)ctx)->said = *said;
}

static const char *request(const char *pids, int job)
{
	static char json[512];

	snprintf(
		json, sizeof(json),
		"{\"fn\":\"setKinetOnDemandRequest\",\"config\":\"ACTIVITIES_LOG_FILE=/tmp/x.json\\n"
		"PROFILE_START_TIME=1700000000123\",\"job_id\":%d,\"pids\":[%s],\"process_limit\":3}",
		job, pids);
	return ask(json);
}

static void check_answer(const char *busy, const char *triggered, const char *matched)
{
	char all[512];

	snprintf(
		all, sizeof(all),
		"{\"activityProfilersBusy\":%s,\"activityProfilersTriggered\":[%s],"
		"\"eventProfilersBusy\":0,\"eventProfilersTriggered\":[],\"processesMatched\":[%s]}",
		busy, triggered, matched);
	CHECK_STR(text, all);
}

static void recordings_from_outside(void)
{
	struct outside o = {.engine = KPROF_DYNOLOG_OUTSIDE};
	char first[16], two[32], path[64];

	for (int i = 0; i < 3; i++) {
		o.pid[i] = fork();
		if (!o.pid[i])
			_exit(pause());
	}
	start((struct kprof_dynolog_opts){.ctx = &o,
					  .candidates = candidates,
					  .engine = engine,
					  .begin = begin,
					  .done = done});
	snprintf(first, sizeof(first), "%d", o.pid[0]);
	snprintf(two, sizeof(two), "%d,%d", o.pid[0], o.pid[1]);
	request(first, 0);
	check_answer("0", first, first);
	snprintf(path, sizeof(path), "/tmp/x_%d.json", o.pid[0]);
	CHECK_STR(o.paths[0], path);
	CHECK_EQ(o.nr_begun, 1);
	CHECK_EQ(o.start_time_ms, 1700000000123);
	CHECK(o.said.matched == 1 && o.said.triggered == 1 && !o.said.error);
	request("0", 0); /* all of no job */
	check_answer("0", two, two);
	o.result = -EBUSY;
	request("0", 0);
	check_answer("2", "", two);
	o.result = -EIO;
	request("0", 0);
	check_answer("0", "", two);
	CHECK_EQ(o.said.failed, 2);
	/* for both processes the same is said, once; and not of the next request */
	o.note = "KEY: \"no\"";
	request("0", 0);
	CHECK(strstr(text, ",\"notes\":[\"KEY: \\\"no\\\"\"],\"processesMatched\":["));
	CHECK_EQ(o.said.nr_notes, 1);
	o.note = NULL;
	request("0", 0);
	check_answer("0", "", two);
	CHECK_EQ(o.said.nr_notes, 0);
	snprintf(first, sizeof(first), "%d", o.pid[2]);
	request(first, 0); /* it is of a job */
	check_answer("0", "", "");
	request("", 99);
	check_answer("0", "", first);
	/* nobody, and Kineto where it is not */
	o.engine = KPROF_DYNOLOG_NOBODY;
	request("0", 0);
	check_answer("0", "", "");
	o.engine = KPROF_DYNOLOG_KINETO;
	request("0", 0);
	check_answer("0", "", "");
	stop();
	for (int i = 0; i < 3; i++) {
		kill(o.pid[i], SIGKILL);
		waitpid(o.pid[i], NULL, 0);
	}
}

static void job_ids(void)
{
	CHECK_EQ(kprof_dynolog_job_id(0x7fffffff), 0);
	static const struct {
		const char *value;
		int64_t id;
	} rows[] = {{"77", 77}, {"", 0}, {"7x", 0}, {"-7", 0}, {"99999999999999999999", 0}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int ready[2];
		char byte;
		pid_t pid;

		CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ready));
		pid = fork();
		if (!pid) {
			setenv("SLURM_JOB_ID", rows[i].value, 1);
			dup2(ready[1], 0);
			dup2(ready[1], 1);
			/* no other exec after the line: during one there is no environment */
			execl("/bin/sh", "sh", "-c", "echo; read -r line", NULL);
			_exit(1);
		}
		CHECK_EQ(read(ready[0], &byte, 1), 1);
		CHECK_EQ(kprof_dynolog_job_id(pid), rows[i].id);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		close(ready[0]);
		close(ready[1]);
	}
}

UNIT_MAIN(TEST(simple_answers), TEST(both_protocols), TEST(a_port_that_both_have),
	  TEST(without_an_answer), TEST(wrong_requests), TEST(many_numbers),
	  TEST(slow_clients_are_dropped), TEST(the_oldest_gives_way), TEST(not_too_many_at_once),
	  TEST(slow_readers), TEST(wrong_lengths), TEST(recordings_from_outside), TEST(job_ids))
