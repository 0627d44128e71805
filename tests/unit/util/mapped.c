// SPDX-License-Identifier: BSD-2-Clause
/*
 * Files that are cut short while they are mapped, against what is in them and what the kernel does
 * without us.
 */
#include "util/mapped.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

#define PAGE 4096
#define PAGES 64
#define BYTES (PAGES * PAGE - 100)

static int make_file(size_t bytes)
{
	int fd = memfd_create("mapped", MFD_CLOEXEC);
	uint8_t *text = malloc(bytes);

	if (fd < 0 || !text)
		abort();
	memset(text, 'x', bytes);
	if (write(fd, text, bytes) != (ssize_t)bytes)
		abort();
	free(text);
	return fd;
}

static struct mapped *map(int fd, size_t bytes)
{
	struct mapped *m = NULL;

	CHECK_EQ(mapped__new(fd, bytes, &m), 0);
	if (!m)
		abort();
	return m;
}

static size_t count(const struct mapped *m, size_t bytes, char c)
{
	const volatile uint8_t *at = mapped__bytes(m);
	size_t nr = 0;

	for (size_t i = 0; i < bytes; i++)
		nr += at[i] == (uint8_t)c;
	return nr;
}

static void reads_the_file(void)
{
	int fd = make_file(BYTES);
	struct mapped *m = map(fd, BYTES);

	close(fd);
	CHECK_EQ(count(m, BYTES, 'x'), BYTES);
	/* Behind its last byte, and on a page of its own. */
	CHECK_EQ(count(m, PAGES * PAGE + PAGE, '\0'), 100 + PAGE);
	mapped__forget(m);
	CHECK_EQ(count(m, BYTES, 'x'), BYTES);
	CHECK(!mapped__cut(m));
	mapped__free(m);
}

static void what_is_cut_off_reads_as_zeros(void)
{
	int fd = make_file(BYTES), other_fd = make_file(BYTES);
	struct mapped *m = map(fd, BYTES), *other = map(other_fd, BYTES);
	const volatile uint8_t *at = mapped__bytes(m);

	CHECK_EQ(ftruncate(fd, 3 * PAGE + 10), 0);
	CHECK(!mapped__cut(m));
	/* Backwards: each page is met by itself. */
	CHECK_EQ(at[50 * PAGE], 0);
	CHECK(mapped__cut(m));
	CHECK_EQ(at[20 * PAGE + 7], 0);
	CHECK_EQ(at[60 * PAGE], 0);
	CHECK_EQ(count(m, BYTES, 'x'), 3 * PAGE + 10);
	mapped__forget(m);
	CHECK_EQ(count(m, BYTES, 'x'), 3 * PAGE + 10);
	CHECK_EQ(count(other, BYTES, 'x'), BYTES);
	CHECK(!mapped__cut(other));
	mapped__free(m);
	/* The next one is a new one. */
	m = map(other_fd, BYTES);
	CHECK(!mapped__cut(m));
	CHECK_EQ(count(m, BYTES, 'x'), BYTES);
	mapped__free(m);
	mapped__free(other);
	close(fd);
	close(other_fd);
}

static void refuses_what_cannot_be_mapped(void)
{
	struct mapped *m;
	int fds[2];

	CHECK_EQ(mapped__new(0, 0, &m), -EINVAL);
	CHECK_EQ(mapped__new(0, SIZE_MAX - 5, &m), -EINVAL);
	CHECK_EQ(mapped__new(-1, 10, &m), -EBADF);
	CHECK(!m);
	if (pipe(fds))
		abort();
	CHECK_EQ(mapped__new(fds[0], 10, &m), -ENODEV);
	close(fds[0]);
	close(fds[1]);
}

static void *read_all(void *arg)
{
	for (int i = 0; i < 50; i++) {
		count(arg, BYTES, 'x');
		mapped__forget(arg);
	}
	return NULL;
}

static void in_several_threads(void)
{
	int fd = make_file(BYTES);
	struct mapped *m = map(fd, BYTES), *others[40];
	pthread_t threads[4];

	for (size_t i = 0; i < 4; i++)
		if (pthread_create(&threads[i], NULL, read_all, m))
			abort();
	for (size_t i = 0; i < 40; i++) {
		others[i] = map(fd, PAGE);
		CHECK_EQ(ftruncate(fd, (off_t)(PAGES - i) * PAGE), 0);
		if (i & 1)
			mapped__free(others[i - 1]);
	}
	for (size_t i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(count(m, BYTES, 'x'), 25 * PAGE);
	CHECK(mapped__cut(m));
	for (size_t i = 1; i < 40; i += 2) {
		CHECK_EQ(count(others[i], PAGE, 'x'), PAGE);
		mapped__free(others[i]);
	}
	mapped__free(m);
	close(fd);
}

/* ---- what is not ours ---- */

static void exit_7(int number)
{
	(void)number;
	_exit(7);
}

static void exit_8(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)context;
	_exit(info->si_addr ? 8 : 9);
}

enum before { DEFAULT, HANDLER, HANDLER_WITH_INFO };

/* In a program of its own, in which nothing was mapped yet: how does it end? */
static int end_of(enum before before, bool sent)
{
	struct sigaction action = {.sa_flags = before == HANDLER_WITH_INFO ? SA_SIGINFO : 0};
	int status, fd;
	pid_t pid = fork();

	if (pid) {
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		return status;
	}
	signal(SIGBUS, SIG_DFL);
	if (before == HANDLER)
		action.sa_handler = exit_7;
	else if (before == HANDLER_WITH_INFO)
		action.sa_sigaction = exit_8;
	if (before != DEFAULT)
		sigaction(SIGBUS, &action, NULL);
	fd = make_file(BYTES);
	map(fd, BYTES);
	if (sent) {
		raise(SIGBUS);
	} else {
		const volatile uint8_t *at = mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE, fd, 0);

		if (at == MAP_FAILED || ftruncate(fd, 0))
			abort();
		_exit(at[PAGE] ? 1 : 2);
	}
	_exit(3);
}

/* First of all: the handler is installed once a process. */
static void other_errors_go_where_they_went(void)
{
	int status = end_of(DEFAULT, false);

	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
	status = end_of(DEFAULT, true);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
	status = end_of(HANDLER, false);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	status = end_of(HANDLER, true);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	status = end_of(HANDLER_WITH_INFO, false);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 8);
}

UNIT_MAIN(TEST(other_errors_go_where_they_went), TEST(reads_the_file),
	  TEST(what_is_cut_off_reads_as_zeros), TEST(refuses_what_cannot_be_mapped),
	  TEST(in_several_threads))
