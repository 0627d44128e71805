// SPDX-License-Identifier: BSD-2-Clause
/* user/control: who may listen where, questions and answers. */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kprof.h"
#include "kprof/control.h"

static char folder[] = "/tmp/kprof-unit-control-XXXXXX";

static void *ask(void *text)
{
	char *answer = NULL;
	int err = kprof_control_ask(folder, text, 20000, &answer);

	return err ? strdup(err == -ESRCH ? "nobody" : "error") : answer;
}

/* Asks from another process, as a lock of the own one is no lock. Returns its exit status. */
static int in_child(int (*fn)(void))
{
	int status = -1;
	pid_t pid = fork();

	if (!pid)
		_exit(fn());
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int is_busy(void)
{
	struct kprof_control *c;

	return kprof_control_new(folder, &c) == -EBUSY &&
	       kprof_control_wait(folder, 0) == -ETIMEDOUT;
}

static int asks(void)
{
	char *answer = ask("{\"do\":\"status\"}");

	return !strcmp(answer, "{\"ok\":true}");
}

static int finds_nobody(void)
{
	return !strcmp(ask("x"), "nobody") && !kprof_control_wait(folder, 0);
}

static void questions(void)
{
	struct kprof_control_question q;
	struct kprof_control *c = NULL;
	int status = -1;
	pid_t pid;

	CHECK_EQ(in_child(finds_nobody), 1);
	CHECK_EQ(kprof_control_new(folder, &c), 0);
	CHECK_EQ(kprof_control_take(c, &q), 0);
	CHECK_EQ(in_child(is_busy), 1);
	pid = fork();
	if (!pid)
		_exit(asks());
	while (!kprof_control_take(c, &q))
		usleep(1000);
	CHECK_STR(q.text, "{\"do\":\"status\"}");
	CHECK_EQ(q.pid, pid);
	kprof_control_answer(c, "{\"ok\":true}");
	waitpid(pid, &status, 0);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	kprof_control_answer(c, "to nobody");
	kprof_control_free(c);
	CHECK_EQ(in_child(finds_nobody), 1);
}

static int listens_and_is_killed(void)
{
	struct kprof_control *c;

	if (kprof_control_new(folder, &c))
		return 1;
	raise(SIGKILL);
	return 1;
}

/* Fills the queue of one that does not answer; returns whether each asker came back in time. */
static int asks_in_vain(void)
{
	char *answer;

	alarm(60);
	for (int i = 0; i < 40; i++)
		if (kprof_control_ask(folder, "x", 20, &answer) != -ETIMEDOUT)
			return 0;
	return 1;
}

static void hung(void)
{
	struct kprof_control *c = NULL;

	CHECK_EQ(kprof_control_new(folder, &c), 0);
	CHECK_EQ(in_child(asks_in_vain), 1);
	kprof_control_free(c);
}

/* What is left of one that was killed is replaced. */
static void killed(void)
{
	struct kprof_control *c = NULL;
	char path[128];

	CHECK_EQ(in_child(listens_and_is_killed), -1);
	snprintf(path, sizeof(path), "%s/socket", folder);
	CHECK_EQ(access(path, F_OK), 0);
	CHECK_EQ(in_child(finds_nobody), 1);
	CHECK_EQ(kprof_control_new(folder, &c), 0);
	kprof_control_free(c);
	CHECK(access(path, F_OK));
}

static void names(void)
{
	char path[KPROF_CONTROL_PATH_BYTES];

	if (geteuid())
		return;
	CHECK_EQ(kprof_control_folder("unit-test/none", false, path), -ENOENT);
	CHECK_EQ(kprof_control_folder("unit-test/a", true, path), 0);
	CHECK_STR(path, KPROF_CONTROL_FOLDER "/unit-test/a");
	CHECK_EQ(chmod(path, 0755), 0);
	CHECK_EQ(kprof_control_folder("unit-test/a", true, path), -EPERM);
	CHECK(strstr(kprof_error_cause(), "only root can enter"));
	rmdir(path);
	CHECK_EQ(symlink("/tmp", path), 0);
	CHECK(kprof_control_folder("unit-test/a", true, path) < 0);
	unlink(path);
	rmdir(KPROF_CONTROL_FOLDER "/unit-test");
	CHECK_EQ(kprof_control_folder("unit-test//a", false, path), -ENOENT);
}

static void begin(void)
{
	CHECK(mkdtemp(folder));
}

static void end(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/lock", folder);
	unlink(path);
	CHECK_EQ(rmdir(folder), 0);
}

UNIT_MAIN(TEST(begin), TEST(questions), TEST(hung), TEST(killed), TEST(names), TEST(end))
