// SPDX-License-Identifier: BSD-2-Clause
/*
 * What clients of the daemon's socket send, in any order, with what the processes of recordings say
 * meanwhile, and with a description that an earlier daemon has left: each line has one answer at
 * most, which is JSON, and no user is told of what another one has recorded. The processes
 * themselves, the clock's ticks and what the daemon does besides are the fuzzer's.
 *
 * Input: a byte that says whether there is a description, then steps: what (struct step), and bytes
 * of a length that it says.
 */
#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cmd/daemon/record/recording.h"
#include "cmd/daemon/show/serve.h"
#include "fuzz.h"
#include "util/json_valid.h"
#include "kprof/sent_files.h"

#define CLIENTS 4
#define MOST_STEPS 64
#define FIRST_PID 0x70000000 /* no process has such a number */
#define FIRST_UID 20000      /* of the clients; the first one is root */

struct step {
	uint8_t what, who;
	uint16_t bytes;
};

static struct daemon d;
static struct daemon_opts opts;
static char folder[64], socket_path[80], lock_path[80];
static int ends[CLIENTS]; /* of the clients; -1: not connected */
static size_t asked[CLIENTS], answered[CLIENTS];
static int sender; /* whose line the daemon reads now */
static struct child *children[64];
static size_t nr_children;
static uint64_t ahead_ns;

/* ---- what the daemon is besides ---- */

void log_line(const char *level, const char *event, cJSON *fields, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	cJSON_Delete(fields);
}

void kprof_sent_files_refuse(int fd)
{
}

ssize_t kprof_sent_files_peek(int fd, void *buf, size_t bytes)
{
	ssize_t n = recv(fd, buf, bytes, MSG_PEEK | MSG_DONTWAIT);

	return n < 0 ? -errno : n;
}

void kprof_sent_files_leave(int fd)
{
	close(fd);
}

void kprof_sent_files_close(int fd)
{
	close(fd);
}

/* Processes are listed by another one; who asks for it waits. */
void listing__asked(struct daemon *daemon, struct client *client)
{
}

void listing__forget(struct daemon *daemon)
{
}

int demand_run(int fd, void *job)
{
	return 0;
}

int dump_run(int fd, void *job)
{
	return 0;
}

/* Its process: one that has a capture at once. */
int child__start(struct loop *l, struct child *c, int (*run)(int fd, void *arg), void *arg)
{
	const struct demand_job *job = arg;

	if (nr_children == sizeof(children) / sizeof(children[0]))
		return -ENOMEM;
	for (size_t i = 0; i < job->nr_options; i++)
		REQUIRE(strlen(job->options[i]) < KPROF_CLIENT_QUESTION_BYTES);
	REQUIRE(job->any_process == (job->uid == 0) || run == dump_run);
	close(open(job->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	c->pid = FIRST_PID + (pid_t)nr_children;
	children[nr_children++] = c;
	return 0;
}

void child__send(struct child *c, cJSON *m)
{
	REQUIRE(cJSON_IsObject(m));
	cJSON_Delete(m);
}

bool keeper__runs(const struct keeper *k)
{
	return k;
}

void keeper__cut(struct keeper *k, void (*done)(void *ctx), void *ctx)
{
	done(ctx);
}

const char *keeper__folder(const struct keeper *k)
{
	return folder;
}

cJSON *daemon_state(struct daemon *daemon)
{
	return cJSON_CreateObject();
}

int daemon_dump(struct daemon *daemon, struct demand_job *job, struct recording **out)
{
	REQUIRE(!job->uid && !job->asked_by && !job->why);
	job->dump_folder = folder;
	return recordings__begin(d.recordings, job, out);
}

int process_check_owner(pid_t pid, uid_t uid, uint64_t space, pid_t asker)
{
	return pid % 3 == 0 ? 0 : pid % 3 == 1 ? -EPERM : -ENOENT;
}

void serve__answered(struct serve *s, const char *request, bool ok)
{
	REQUIRE(request);
}

void serve__recorded(struct serve *s, enum recording_state result)
{
	REQUIRE(result >= RECORDING_DONE);
}

void serve__dumped(struct serve *s, const char *rule)
{
}

static void on_asked(void *ctx, struct client *c, const cJSON *question)
{
	if (c->pid == getpid()) { /* the first time: whose it is */
		c->uid = c->gid = sender ? FIRST_UID + (uid_t)sender : 0;
		c->privileged = !sender;
		c->pid = 3000 + sender;
	}
	requests__asked(ctx, c, question);
}

static bool is_privileged(void *ctx, uid_t uid, const gid_t *groups, size_t nr)
{
	return false;
}

/* ---- clients ---- */

static void check_uid(int who, const cJSON *answer)
{
	const cJSON *uid = cJSON_GetObjectItem(answer, "uid"), *r;

	REQUIRE(!uid || !who || uid->valuedouble == FIRST_UID + who);
	cJSON_ArrayForEach(r, cJSON_GetObjectItem(answer, "recordings")) check_uid(who, r);
}

static void check_answer(int who, char *line)
{
	cJSON *answer = cJSON_Parse(line);

	REQUIRE(json_valid(line));
	REQUIRE(cJSON_IsObject(answer) && cJSON_IsBool(cJSON_GetObjectItem(answer, "ok")));
	for (const char *at = line; *at; at++)
		REQUIRE((unsigned char)*at >= 0x20);
	check_uid(who, answer);
	REQUIRE(++answered[who] <= asked[who]);
	cJSON_Delete(answer);
}

static void hear(int who)
{
	static char text[KPROF_CLIENT_ANSWER_BYTES];
	ssize_t n = 0, len = 0;

	if (ends[who] < 0)
		return;
	while (len < (ssize_t)sizeof(text) - 1 &&
	       (n = recv(ends[who], text + len, sizeof(text) - 1 - len, MSG_DONTWAIT)) > 0)
		len += n;
	text[len] = '\0';
	for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		check_answer(who, line);
	}
}

static void connect_one(int who)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};

	strcpy(to.sun_path, socket_path);
	ends[who] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	REQUIRE(!connect(ends[who], (struct sockaddr *)&to, sizeof(to)));
	asked[who] = answered[who] = 0;
	loop__run_once(d.loop, 0);
}

static void run_daemon(void)
{
	for (int i = 0; i < 6; i++)
		loop__run_once(d.loop, 0);
}

static void say(int who, const char *text, size_t bytes)
{
	if (ends[who] < 0)
		connect_one(who);
	sender = who;
	if (send(ends[who], text, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		for (size_t i = 0; i < bytes; i++)
			asked[who] += text[i] == '\n';
	run_daemon();
}

static void leave(int who)
{
	if (ends[who] >= 0)
		close(ends[who]);
	ends[who] = -1;
	run_daemon();
}

/* ---- processes of recordings ---- */

static void child_says(size_t which, const char *text)
{
	cJSON *m = cJSON_Parse(text);

	if (m && nr_children && children[which % nr_children]->pid)
		children[which % nr_children]->message(children[which % nr_children]->ctx, m);
	cJSON_Delete(m);
}

static void child_ends(size_t which, int status)
{
	struct child *c = nr_children ? children[which % nr_children] : NULL;

	if (!c)
		return;
	children[which % nr_children] = children[nr_children - 1];
	nr_children--;
	c->pid = 0;
	c->ended(c->ctx, status);
}

static void step(const struct step *s, const char *text)
{
	int who = s->who % CLIENTS;

	switch (s->what % 6) {
	case 0:
	case 1:
		say(who, text, s->bytes);
		if (s->what % 2)
			say(who, "\n", 1);
		break;
	case 2:
		child_says(s->who, text);
		break;
	case 3:
		child_ends(s->who, s->bytes);
		break;
	case 4:
		if (s->bytes % 2 && ends[who] >= 0)
			shutdown(ends[who], SHUT_WR);
		else
			leave(who);
		break;
	case 5:
		ahead_ns += s->bytes * 100000000ull;
		clients__tend(d.clients, now_ns(CLOCK_MONOTONIC) + ahead_ns);
		recordings__tend(d.recordings, now_ns(CLOCK_MONOTONIC) + ahead_ns);
	}
	run_daemon();
	for (int i = 0; i < CLIENTS; i++)
		hear(i);
}

/* ---- begin and end ---- */

static void clear_folder(void)
{
	DIR *all = opendir(folder);
	struct dirent *e;

	while ((e = readdir(all)))
		if (strstr(e->d_name, ".kprof") || strstr(e->d_name, ".json"))
			unlinkat(dirfd(all), e->d_name, 0);
	closedir(all);
}

/* A process removes the folder: a fuzzer that ends, as one that crashes, calls nothing before. */
static void leave_nothing(void)
{
	int alive[2];
	char byte;

	REQUIRE(!pipe2(alive, O_CLOEXEC));
	if (!fork()) {
		close(alive[1]);
		while (read(alive[0], &byte, 1) < 0 && errno == EINTR)
			;
		clear_folder();
		unlink(socket_path);
		unlink(lock_path);
		_exit(rmdir(folder));
	}
	close(alive[0]);
}

static void begin_once(void)
{
	struct clients_opts c = {.path = socket_path,
				 .asked = on_asked,
				 .gone = requests__gone,
				 .answered = requests__answered,
				 .is_privileged = is_privileged,
				 .ctx = &d};

	d.loop = c.loop = loop__new();
	d.opts = &opts;
	REQUIRE(d.loop);
	for (int i = 0; !d.clients && i < 100; i++) { /* the first that no other fuzzer has */
		snprintf(folder, sizeof(folder), "/tmp/kprof-fuzz-requests-%d-%d", (int)geteuid(),
			 i);
		snprintf(socket_path, sizeof(socket_path), "%s/socket", folder);
		snprintf(lock_path, sizeof(lock_path), "%s/lock", folder);
		clients__new(&c, &d.clients);
	}
	REQUIRE(d.clients);
	clear_folder(); /* of what one that has crashed has left */
	leave_nothing();
	for (int i = 0; i < CLIENTS; i++)
		ends[i] = -1;
}

/* Its first line is the name of the files, as far as that can be one. */
static void leave_description(char *text)
{
	static const char *const suffixes[] = {"json", "kprof", "1.kprof"};
	size_t len = strcspn(text, "\n");
	const char *rest = text[len] ? text + len + 1 : text + len;
	char path[512];
	int fd;

	text[len] = '\0';
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%.200s.%s", folder, text, suffixes[i]);
		if (strchr(text, '/') || strlen(path) > 300)
			return;
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		REQUIRE(fd >= 0 && write(fd, rest, strlen(rest)) >= 0);
		close(fd);
	}
}

static void end(void)
{
	for (int i = 0; i < CLIENTS; i++)
		leave(i);
	for (int i = 0; i < 2 * CLIENTS; i++)
		loop__run_once(d.loop, 0);
	while (nr_children)
		child_ends(0, 0);
	requests__forget(&d);
	recordings__free(d.recordings);
	clear_folder();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct recordings_opts r = {.keep_ns = 1ull << 60,
				    .keep_bytes = 1 << 20,
				    .changed = requests__changed,
				    .ctx = &d};
	struct fuzz_input in = {data, bytes};
	struct step s;
	char *text;

	if (!d.loop)
		begin_once();
	opts.allow_owner = true;
	ahead_ns = 0;
	d.flight = (struct keeper *)&d; /* there is one */
	snprintf(r.folder, sizeof(r.folder), "%s", folder);
	r.loop = d.loop;
	if (fuzz_number(&in, 1) & 1) {
		s.bytes = (uint16_t)fuzz_number(&in, 2);
		text = fuzz_text(in.at, s.bytes < in.left ? s.bytes : in.left);
		leave_description(text);
		free(text);
		in.at += s.bytes < in.left ? s.bytes : in.left;
		in.left -= s.bytes < in.left ? s.bytes : in.left;
	}
	REQUIRE(!recordings__new(&r, &d.recordings));
	for (int i = 0; i < MOST_STEPS && in.left > 3; i++) {
		s.what = (uint8_t)fuzz_number(&in, 1);
		s.who = (uint8_t)fuzz_number(&in, 1);
		s.bytes = (uint16_t)fuzz_number(&in, 2);
		if (s.what % 6 < 3 && s.bytes > in.left)
			s.bytes = (uint16_t)in.left;
		text = fuzz_text(in.at, s.what % 6 < 3 ? s.bytes : 0);
		step(&s, text);
		free(text);
		if (s.what % 6 < 3) {
			in.at += s.bytes;
			in.left -= s.bytes;
		}
	}
	end();
	return 0;
}
