// SPDX-License-Identifier: BSD-2-Clause
/*
 * Threads that know their own waits: what `kprof sample --off-cpu` must see. Says READY, waits for
 * a line, lets each thread do its rounds, then prints one line of JSON, and ends at the end of its
 * input. Of each thread: its number, its kind (which is its name, too), how often it waited and how
 * long by its own clock, and what the kernel says of it (/proc/PID/task/TID/schedstat): the time
 * that it ran, and the time that it was runnable, between READY and the JSON. All of them are
 * blocked before and after.
 *
 *   waiter FILE KIND…    FILE: of `disk`, made and filled; KIND:N: N rounds instead of 40
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
#define ROUNDS 40
#define MOST_THREADS 64
#define BLOCK 4096
#define BLOCKS 256

struct thread {
	const char *kind;
	void (*round)(struct thread *t, int i);
	pthread_t thread;
	pid_t tid;
	int rounds;
	uint64_t waits, waited_ns, longest_ns;
	uint64_t ran_ns, delayed_ns; /* schedstat, at first; then the difference */
};

static struct thread threads[MOST_THREADS];
static int nr_threads;
static const char *file;
static pthread_barrier_t begin, end;
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static int pipe_fds[2], sockets[2], event = -1, epoll = -1, disk = -1;
static int word;
static volatile uint64_t sink;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void pause_ms(int ms)
{
	struct timespec t = {.tv_nsec = ms * 1000000L};

	clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

static void count(struct thread *t, uint64_t since_ns)
{
	uint64_t ns = now_ns() - since_ns;

	t->waits++;
	t->waited_ns += ns;
	if (ns > t->longest_ns)
		t->longest_ns = ns;
}

static NOINLINE void burn(int us)
{
	for (uint64_t until = now_ns() + (uint64_t)us * 1000; now_ns() < until;)
		sink++;
}

/* ---- rounds ---- */

static NOINLINE void round_sleep(struct thread *t, int i)
{
	uint64_t since = now_ns();

	pause_ms(7);
	count(t, since);
}

/* Waits for a word that nobody changes, for 10 ms. */
static NOINLINE void round_futex(struct thread *t, int i)
{
	struct timespec most = {.tv_nsec = 10000000};
	uint64_t since = now_ns();

	syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &most, NULL, 0);
	count(t, since);
}

static NOINLINE void round_holder(struct thread *t, int i)
{
	pthread_mutex_lock(&held);
	pause_ms(10);
	pthread_mutex_unlock(&held);
	pause_ms(1);
}

static NOINLINE void round_mutex(struct thread *t, int i)
{
	uint64_t since = now_ns();

	pthread_mutex_lock(&held);
	count(t, since);
	pthread_mutex_unlock(&held);
	pause_ms(1);
}

static NOINLINE void round_writer(struct thread *t, int i)
{
	pause_ms(5);
	if (write(pipe_fds[1], "x", 1) != 1 || write(sockets[1], "x", 1) != 1 ||
	    eventfd_write(event, 1))
		abort();
}

static NOINLINE void round_pipe(struct thread *t, int i)
{
	uint64_t since = now_ns();
	char c;

	if (read(pipe_fds[0], &c, 1) != 1)
		abort();
	count(t, since);
}

static NOINLINE void round_socket(struct thread *t, int i)
{
	uint64_t since = now_ns();
	char c;

	if (recv(sockets[0], &c, 1, 0) != 1)
		abort();
	count(t, since);
}

static NOINLINE void round_epoll(struct thread *t, int i)
{
	uint64_t since = now_ns();
	struct epoll_event e;

	if (epoll_wait(epoll, &e, 1, -1) != 1)
		abort();
	count(t, since);
	eventfd_read(event, &(eventfd_t){0});
}

static NOINLINE void round_poll(struct thread *t, int i)
{
	uint64_t since = now_ns();

	poll(NULL, 0, 6);
	count(t, since);
}

static NOINLINE void round_child(struct thread *t, int i)
{
	uint64_t since;
	pid_t child = fork();

	if (!child) {
		pause_ms(8);
		_exit(0);
	}
	since = now_ns();
	if (child < 0 || waitpid(child, NULL, 0) != child)
		abort();
	count(t, since);
}

static NOINLINE void round_disk(struct thread *t, int i)
{
	static char buffer[BLOCK] __attribute__((aligned(BLOCK)));
	uint64_t since = now_ns();

	if (pread(disk, buffer, BLOCK, (off_t)(i * 37 % BLOCKS) * BLOCK) != BLOCK)
		abort();
	count(t, since);
}

static NOINLINE void round_run(struct thread *t, int i)
{
	burn(5000);
}

/* Many short waits: each below any threshold of a test. */
static NOINLINE void round_yield(struct thread *t, int i)
{
	struct timespec short_time = {.tv_nsec = 1000};

	for (int k = 0; k < 50; k++)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &short_time, NULL);
}

static void *born(void *arg)
{
	pthread_setname_np(pthread_self(), "born");
	burn(500);
	pause_ms(2);
	return NULL;
}

/* Threads that begin and end meanwhile. */
static NOINLINE void round_parent(struct thread *t, int i)
{
	uint64_t since = now_ns();
	pthread_t thread;

	if (pthread_create(&thread, NULL, born, NULL) || pthread_join(thread, NULL))
		abort();
	count(t, since);
}

/* With others of this kind, and MALLOC_ARENA_MAX=1: for the allocator's one lock. */
static NOINLINE void round_malloc(struct thread *t, int i)
{
	void *volatile all[64];

	for (int k = 0; k < 300; k++) {
		for (int n = 0; n < 64; n++)
			all[n] = malloc(2000);
		for (int n = 0; n < 64; n++)
			free(all[n]);
	}
}

/* No round: blocked all the time. */
static void round_nothing(struct thread *t, int i)
{
}

static const struct {
	const char *kind;
	void (*round)(struct thread *t, int i);
} kinds[] = {
	{"sleep", round_sleep},   {"futex", round_futex},   {"holder", round_holder},
	{"mutex", round_mutex},   {"writer", round_writer}, {"pipe", round_pipe},
	{"socket", round_socket}, {"epoll", round_epoll},   {"poll", round_poll},
	{"child", round_child},   {"disk", round_disk},     {"run", round_run},
	{"yield", round_yield},   {"parent", round_parent}, {"nothing", round_nothing},
	{"malloc", round_malloc},
};

/* ---- threads ---- */

static void read_schedstat(const struct thread *t, uint64_t *ran_ns, uint64_t *delayed_ns)
{
	char path[64], text[128] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", t->tid);
	f = fopen(path, "r");
	if (!f || !fgets(text, sizeof(text), f) || sscanf(text, "%lu %lu", ran_ns, delayed_ns) != 2)
		abort();
	fclose(f);
}

static void *body(void *arg)
{
	struct thread *t = arg;

	t->tid = gettid();
	pthread_setname_np(pthread_self(), t->kind);
	pthread_barrier_wait(&end); /* the first time: everyone is there */
	pthread_barrier_wait(&begin);
	for (int i = 0; i < t->rounds; i++)
		t->round(t, i);
	pthread_barrier_wait(&end);
	pthread_barrier_wait(&begin); /* never */
	return NULL;
}

static void add(char *kind)
{
	char *rounds = strchr(kind, ':');
	struct thread *t = &threads[nr_threads];

	if (rounds)
		*rounds++ = '\0';
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].kind, kind))
			*t = (struct thread){.kind = kind,
					     .round = kinds[i].round,
					     .rounds = rounds ? atoi(rounds) : ROUNDS};
	if (!t->kind || ++nr_threads == MOST_THREADS) {
		fprintf(stderr, "waiter: what is %s?\n", kind);
		exit(2);
	}
}

/* False: the file's system knows no O_DIRECT. */
static bool open_disk(void)
{
	static char block[BLOCK] __attribute__((aligned(BLOCK)));
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	for (int i = 0; i < BLOCKS; i++)
		if (write(fd, block, BLOCK) != BLOCK)
			abort();
	if (fsync(fd) || close(fd))
		abort();
	disk = open(file, O_RDONLY | O_DIRECT);
	return disk >= 0;
}

static void open_files(void)
{
	struct epoll_event e = {.events = EPOLLIN};

	event = eventfd(0, EFD_NONBLOCK | EFD_SEMAPHORE);
	epoll = epoll_create1(0);
	if (pipe(pipe_fds) || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) || event < 0 ||
	    epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, event, &e))
		abort();
}

/* The time that a hypervisor has taken from all CPUs, in ns. */
static uint64_t stolen_ns(void)
{
	unsigned long stolen = 0;
	FILE *f = fopen("/proc/stat", "r");

	if (!f || fscanf(f, "cpu %*u %*u %*u %*u %*u %*u %*u %lu", &stolen) != 1)
		abort();
	fclose(f);
	return stolen * (1000000000ull / (unsigned long)sysconf(_SC_CLK_TCK));
}

static void print(uint64_t stolen_before_ns)
{
	printf("{\"pid\": %d, \"stolen_ns\": %lu, \"threads\": [", getpid(),
	       stolen_ns() - stolen_before_ns);
	for (int i = 0; i < nr_threads; i++) {
		struct thread *t = &threads[i];
		uint64_t ran_ns, delayed_ns;

		read_schedstat(t, &ran_ns, &delayed_ns);
		printf("%s{\"tid\": %d, \"kind\": \"%s\", \"waits\": %lu, \"waited_ns\": %lu, "
		       "\"longest_ns\": %lu, \"ran_ns\": %lu, \"delayed_ns\": %lu}",
		       i ? ", " : "", t->tid, t->kind, t->waits, t->waited_ns, t->longest_ns,
		       ran_ns - t->ran_ns, delayed_ns - t->delayed_ns);
	}
	printf("]}\n");
}

/*
 * Whether all threads are blocked, and have been for a while: what the kernel says of their time
 * stands still.
 */
static void wait_until_blocked(void)
{
	for (int i = 0; i < nr_threads; i++) {
		uint64_t ran_ns = 0, delayed_ns, before_ns;

		do {
			before_ns = ran_ns;
			pause_ms(2);
			read_schedstat(&threads[i], &ran_ns, &delayed_ns);
		} while (ran_ns != before_ns);
	}
}

int main(int argc, char **argv)
{
	uint64_t stolen_before_ns;
	char line[16];

	if (argc < 3)
		return 2;
	file = argv[1];
	setvbuf(stdout, NULL, _IOLBF, 0);
	open_files();
	for (int i = 2; i < argc; i++)
		if (strncmp(argv[i], "disk", 4) || open_disk())
			add(argv[i]);
	pthread_barrier_init(&begin, NULL, (unsigned int)nr_threads + 1);
	pthread_barrier_init(&end, NULL, (unsigned int)nr_threads + 1);
	for (int i = 0; i < nr_threads; i++)
		if (pthread_create(&threads[i].thread, NULL, body, &threads[i]))
			abort();
	pthread_barrier_wait(&end);
	wait_until_blocked();
	for (int i = 0; i < nr_threads; i++)
		read_schedstat(&threads[i], &threads[i].ran_ns, &threads[i].delayed_ns);
	stolen_before_ns = stolen_ns();
	printf("READY %d\n", getpid());
	if (!fgets(line, sizeof(line), stdin))
		return 9;
	pthread_barrier_wait(&begin);
	pthread_barrier_wait(&end);
	wait_until_blocked();
	print(stolen_before_ns);
	while (fgets(line, sizeof(line), stdin))
		;
	_exit(0);
}
