// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reading what belongs to a process that lets nobody finish: files of a file system in user space
 * and memory with a handler of page faults, neither of which answers. The judge is a second
 * process, which is killed when it has not finished long after it should have given up.
 */
#include "util/foreign.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuse_fixture.h"
#include "unit.h"
#include "util/util.h"

#define PAGE 4096
#define PATIENCE_NS (200 * NSEC_PER_MSEC)
#define FOR_EVER_S 60

/* ---- a process to read ---- */

struct target {
	pid_t pid;
	int in, out; /* of the pipes to it and from it */
	uint8_t *memory;
};

/* Memory whose page faults are never answered. NULL: this machine has none. */
static uint8_t *silent_memory(void)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register r = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	uint8_t *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	r.range.start = (uintptr_t)at;
	r.range.len = PAGE;
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &r)) {
		printf("# skipped: no userfaultfd\n");
		return NULL;
	}
	return at;
}

static uint8_t *plain_memory(void)
{
	uint8_t *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(at, 'x', PAGE);
	return at;
}

static const char *mapped_path;

static uint8_t *mapped_file(void)
{
	int fd = open(mapped_path, O_RDONLY);
	void *at = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

	close(fd);
	return at == MAP_FAILED ? NULL : at;
}

/* A child with the memory that make() returns; it ends with its parent. */
static bool begin(struct target *t, uint8_t *(*make)(void))
{
	int out[2];

	if (pipe(out))
		abort();
	fflush(stdout);
	t->pid = fork();
	if (!t->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		t->memory = make();
		fflush(stdout);
		if (write(out[1], &t->memory, sizeof(t->memory)) < 0)
			_exit(1);
		for (;;)
			pause();
	}
	close(out[1]);
	if (read(out[0], &t->memory, sizeof(t->memory)) < 0)
		abort();
	close(out[0]);
	return t->memory;
}

static void finish(struct target *t)
{
	kill(t->pid, SIGKILL);
	waitpid(t->pid, NULL, 0);
}

/*
 * Calls fn in a process of its own, because it may hang. Whether it has returned true: a process
 * that waits for FUSE does not even end when killed, so its end is not waited for.
 */
static bool returns_true(bool (*fn)(void *ctx), void *ctx)
{
	pid_t pid;
	int status = 1;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		foreign_set_patience(PATIENCE_NS, PATIENCE_NS);
		_exit(!fn(ctx));
	}
	for (int i = 0; i < FOR_EVER_S * 100; i++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return !status;
		usleep(10000);
	}
	kill(pid, SIGKILL);
	printf("# hangs\n");
	return false;
}

/* ---- what it has used ---- */

static uint64_t used_ns, grew_ns;

/* In place of the C library's: while an answer is waited for, others want to know what it took. */
ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
	uint64_t begin_ns = foreign_used_ns();
	ssize_t n = syscall(SYS_recvmsg, fd, m, flags);

	used_ns = foreign_used_ns();
	if (used_ns > begin_ns)
		grew_ns += used_ns - begin_ns;
	return n;
}

static bool a_child_has_none(void)
{
	pid_t pid = fork();
	int status = 1;

	if (!pid)
		_exit(foreign_used_ns() != 0);
	return pid > 0 && waitpid(pid, &status, 0) == pid && !status;
}

static void what_it_uses_is_known_while_it_reads(void)
{
	uint64_t before_ns;
	char *text = NULL;

	for (int i = 0; i < 2; i++) { /* at first it may not have run when it is asked */
		before_ns = foreign_used_ns();
		CHECK_EQ(foreign_text("/proc/self/status", 65536, &text, NULL), 0);
		free(text);
	}
	CHECK(before_ns && used_ns >= before_ns && grew_ns);
	/* it is known afterwards, too, and is the same each time once all is answered */
	before_ns = foreign_used_ns();
	CHECK(before_ns >= used_ns);
	usleep(1000);
	CHECK_EQ(foreign_used_ns(), before_ns);
	CHECK(a_child_has_none());
}

/* ---- memory ---- */

static void reads_memory(void)
{
	struct target t;
	uint8_t to[2 * PAGE] = {0};

	CHECK(begin(&t, plain_memory));
	CHECK_EQ(foreign_memory(t.pid, (uintptr_t)t.memory, to, 100), 100);
	CHECK(to[0] == 'x' && to[99] == 'x' && !to[100]);
	CHECK_EQ(foreign_memory(t.pid, 16, to, 8), -EFAULT);
	finish(&t);
	CHECK_EQ(foreign_memory(t.pid, (uintptr_t)t.memory, to, 100), -ESRCH);
}

static void reads_much_memory(void)
{
	size_t bytes = (1 << 20) + 17;
	uint8_t *from = malloc(bytes), *to = calloc(1, bytes);

	for (size_t i = 0; i < bytes; i++)
		from[i] = (uint8_t)(i * 7);
	CHECK_EQ(foreign_memory(getpid(), (uintptr_t)from, to, bytes), (long long)bytes);
	CHECK(!memcmp(from, to, bytes));
	free(from);
	free(to);
}

static bool gives_up_memory(void *ctx)
{
	const struct target *silent = ctx;
	struct target other;
	uint8_t byte = 0;
	bool first, again, fine;

	first = foreign_memory(silent->pid, (uintptr_t)silent->memory, &byte, 1) == -ETIMEDOUT;
	/* More often than readers can be given up: nothing is read of it any more. */
	again = true;
	for (int i = 0; i < 2 * FOREIGN_MAX_GIVEN_UP; i++)
		again &= foreign_memory(silent->pid, (uintptr_t)silent->memory, &byte, 1) ==
			 -ETIMEDOUT;
	fine = begin(&other, plain_memory) &&
	       foreign_memory(other.pid, (uintptr_t)other.memory, &byte, 1) == 1 && byte == 'x';
	finish(&other);
	return first && again && fine;
}

static void page_faults_without_answer(void)
{
	struct target t;

	if (begin(&t, silent_memory))
		CHECK(returns_true(gives_up_memory, &t));
	finish(&t);
}

static bool gives_up_for_good(void *ctx)
{
	struct target t[FOREIGN_MAX_GIVEN_UP + 1];
	uint8_t byte;
	bool fine = true;

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		begin(&t[i], silent_memory);
		fine &= foreign_memory(t[i].pid, (uintptr_t)t[i].memory, &byte, 1) == -ETIMEDOUT;
	}
	fine &= foreign_memory(getpid(), (uintptr_t)&t, &byte, 1) == -ETIMEDOUT;
	for (size_t i = 0; i < ARRAY_SIZE(t); i++)
		finish(&t[i]);
	return fine;
}

static void many_without_answer(void)
{
	struct target t;

	if (begin(&t, silent_memory))
		CHECK(returns_true(gives_up_for_good, NULL));
	finish(&t);
}

/* ---- files ---- */

static void reads_text(void)
{
	char *text = NULL;
	size_t bytes = 0;

	CHECK_EQ(foreign_text("/proc/self/status", 65536, &text, &bytes), 0);
	CHECK(text && bytes == strlen(text) && !strncmp(text, "Name:\tkprof-reader\n", 19));
	free(text);
	CHECK_EQ(foreign_text("/proc/self/status", 16, &text, &bytes), -EFBIG);
	CHECK_EQ(foreign_text("/proc/self/nothing", 16, &text, &bytes), -ENOENT);
}

static uint8_t content[3 * PAGE];

static bool same_content(int fd)
{
	char *text = NULL;
	size_t bytes = 0;
	bool same = fd >= 0 && !read_fd(fd, 1 << 20, &text, &bytes) && bytes == sizeof(content) &&
		    !memcmp(text, content, bytes);

	free(text);
	return same;
}

static bool copies(void *ctx)
{
	const struct fuse_fixture *f = ctx;
	int fd = open_in_root("", f->path, 0);
	struct stat st = {0};
	bool same = same_content(fd);

	fstat(fd, &st);
	return same && st.st_uid == FUSE_OWNER &&
	       open_in_root("", f->path, OPEN_NO_COPY) == -ETXTBSY;
}

static bool gives_up_file(void *ctx)
{
	const struct fuse_fixture *f = ctx;

	return open_in_root("", f->path, 0) == -ETIMEDOUT;
}

static void files_in_user_space(void)
{
	struct fuse_fixture f;

	for (size_t i = 0; i < sizeof(content); i++)
		content[i] = (uint8_t)(i * 11);
	if (!fuse_begin(&f, content, sizeof(content), FUSE_OWNER))
		return;
	CHECK(returns_true(copies, &f));
	f.state->silent = true;
	CHECK(returns_true(gives_up_file, &f));
	fuse_end(&f);
}

static void memory_of_such_files(void)
{
	struct fuse_fixture f;
	struct target t;
	struct foreign_file file = {0};
	char path[128];

	if (!fuse_begin(&f, content, sizeof(content), FUSE_OWNER))
		return;
	mapped_path = f.path;
	f.state->silent = true;
	CHECK(begin(&t, mapped_file));
	CHECK(returns_true(gives_up_memory, &t));
	snprintf(path, sizeof(path), "/proc/%d/map_files/%lx-%lx", (int)t.pid,
		 (unsigned long)t.memory, (unsigned long)t.memory + PAGE);
	CHECK_EQ(foreign_look(path, &file), 0);
	CHECK(file.regular && file.may_block && !file.in_memory);
	CHECK_EQ(foreign_open_memory(path), -EINVAL);
	finish(&t);
	fuse_end(&f);
}

static void a_file_system_of_root(void)
{
	struct fuse_fixture f;
	struct target t;
	struct foreign_file file = {0};
	char path[128];

	if (!fuse_begin(&f, content, sizeof(content), 0))
		return;
	mapped_path = f.path;
	CHECK(begin(&t, mapped_file));
	snprintf(path, sizeof(path), "/proc/%d/map_files/%lx-%lx", (int)t.pid,
		 (unsigned long)t.memory, (unsigned long)t.memory + PAGE);
	CHECK_EQ(foreign_look(path, &file), 0);
	CHECK(file.regular && !file.may_block);
	finish(&t);
	fuse_end(&f);
}

static void other_files(void)
{
	struct foreign_file file = {0};
	char path[32];
	int fd = memfd_create("foreign", MFD_CLOEXEC), opened;

	CHECK_EQ(foreign_look("/proc/self/exe", &file), 0);
	CHECK(file.regular && !file.may_block && !file.in_memory);
	CHECK_EQ(foreign_open_memory("/proc/self/exe"), -EINVAL);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	CHECK_EQ(ftruncate(fd, 123), 0);
	CHECK_EQ(foreign_look(path, &file), 0);
	CHECK(file.regular && !file.may_block && file.in_memory && file.bytes == 123);
	opened = foreign_open_memory(path);
	CHECK(opened >= 0);
	close(opened);
	close(fd);
	CHECK_EQ(open_in_root("", "/dev/null", 0), -EINVAL);
	CHECK_EQ(open_in_root("", "/proc/self/fd/77777", 0), -ENOENT);
	CHECK_EQ(foreign_look("/etc/passwd", &file), -EINVAL);
	CHECK_EQ(foreign_look("/proc/self/fd/0/x", &file), -EINVAL);
	/* a file of procfs is regular, but what reads it may wait for a process */
	CHECK_EQ(open_in_root("", "/proc/self/maps", OPEN_NO_COPY), -ETXTBSY);
}

UNIT_MAIN(TEST(page_faults_without_answer), TEST(many_without_answer), TEST(files_in_user_space),
	  TEST(memory_of_such_files), TEST(a_file_system_of_root), TEST(reads_memory),
	  TEST(reads_much_memory), TEST(reads_text), TEST(other_files),
	  TEST(what_it_uses_is_known_while_it_reads))
