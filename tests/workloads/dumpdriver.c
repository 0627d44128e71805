// SPDX-License-Identifier: BSD-2-Clause
/*
 * Threads that stand in places that they know: what `kprof dump` must see. Says READY, waits for a
 * line, then prints one line of JSON: of each thread its number, its kind, and the return addresses
 * of its callers (the file, and the address in it) as backtrace() has them, from the caller of the
 * function that blocks on outwards. Ends at the end of its input.
 *
 *   dumpdriver [KIND…]     all kinds without; KIND:N: N threads of it
 */
#include <alloca.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
#define MOST_FRAMES 1024
#define MOST_THREADS 512
#define DEEP 300

struct thread {
	const char *kind;
	void (*body)(void);
	pid_t tid;
	int nr;
	void *frames[MOST_FRAMES];
	atomic_int ready;
};

static struct thread *threads;
static int nr_threads;
static _Thread_local struct thread *self;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static int pipe_fds[2];
static volatile int sink;

/* Called by the function that blocks: its caller and all above are what the judge compares. */
static NOINLINE void record(void)
{
	self->nr = backtrace(self->frames, MOST_FRAMES);
	atomic_store(&self->ready, 1);
}

/* ---- places ---- */

static NOINLINE void block_pause(void)
{
	record();
	while (self)
		pause();
}

static NOINLINE void in_futex(void)
{
	pthread_mutex_lock(&lock);
	record();
	while (self)
		pthread_cond_wait(&never, &lock);
}

static NOINLINE void in_poll(void)
{
	record();
	while (self)
		poll(NULL, 0, -1);
}

static NOINLINE void in_read(void)
{
	char c;

	record();
	while (read(pipe_fds[0], &c, 1) >= 0)
		sink++;
}

static NOINLINE void in_spin(void)
{
	record();
	for (volatile uint64_t i = 0; self; i++)
		;
}

static NOINLINE void in_clock(void)
{
	struct timespec now;

	record();
	while (self)
		clock_gettime(CLOCK_MONOTONIC, &now);
}

/* Never long anywhere. */
static NOINLINE void in_churn(void)
{
	const struct timespec moment = {0, 50000};

	record();
	while (self) {
		for (volatile int i = 0; i < 20000; i++)
			;
		nanosleep(&moment, NULL);
	}
}

/*
 * Up and down through functions of different frames, at random: a stack that was read while it
 * changed, or from registers of another moment, has callers that do not call. Each call stands on a
 * line of its own, which names the function.
 */
static NOINLINE void w_b(unsigned int way, int depth);
static NOINLINE void w_c(unsigned int way, int depth);

static NOINLINE void w_a(unsigned int way, int depth)
{
	volatile char room[16];

	room[way % 16] = 1;
	if (depth && way % 3 == 0)
		w_a(way * 7 + 1, depth - 1);
	else if (depth && way % 3 == 1)
		w_b(way * 5 + 3, depth - 1);
	else if (depth)
		w_c(way * 11 + 5, depth - 1);
	sink += room[0];
}

static NOINLINE void w_b(unsigned int way, int depth)
{
	volatile char room[200];

	room[way % 200] = 1;
	if (depth && way % 3 == 0)
		w_c(way * 13 + 1, depth - 1);
	else if (depth && way % 3 == 1)
		w_a(way * 3 + 3, depth - 1);
	else if (depth)
		w_b(way * 17 + 5, depth - 1);
	sink += room[0];
}

static NOINLINE void w_c(unsigned int way, int depth)
{
	volatile char room[1000];

	room[way % 1000] = 1;
	if (depth && way % 3 == 0)
		w_b(way * 19 + 1, depth - 1);
	else if (depth && way % 3 == 1)
		w_c(way * 23 + 3, depth - 1);
	else if (depth)
		w_a(way * 29 + 5, depth - 1);
	sink += room[0];
}

static NOINLINE void in_wander(void)
{
	const struct timespec moment = {0, 1000};

	record();
	for (unsigned int i = 1; self; i = i * 1103515245 + 12345) {
		w_a(i >> 8, (int)(i >> 16 & 31));
		if (!(i >> 20 & 31))
			nanosleep(&moment, NULL);
	}
}

static NOINLINE void deep(int depth)
{
	volatile char room[48];

	room[depth % 48] = 1;
	if (depth)
		deep(depth - 1);
	else
		block_pause();
	sink += room[0];
}

static NOINLINE void grow(size_t bytes)
{
	volatile char *room = alloca(bytes);
	volatile char variable[bytes / 2 + 1];

	room[0] = variable[0] = 1;
	if (bytes > 5000)
		block_pause();
	else
		grow(bytes * 2 + 3);
	sink += room[0] + variable[0];
}

static NOINLINE void aligned(int depth)
{
	volatile char wide[64] __attribute__((aligned(64)));
	volatile char *room = alloca((size_t)depth * 33 + 1);

	wide[0] = room[0] = (char)depth;
	if (depth)
		aligned(depth - 1);
	else
		block_pause();
	sink += wide[0] + room[0];
}

static void on_signal(int signal)
{
	block_pause();
}

static NOINLINE void interrupted(int depth)
{
	if (depth)
		interrupted(depth - 1);
	else
		syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR1);
	sink++;
}

static int compare(const void *a, const void *b)
{
	block_pause();
	return *(const int *)a - *(const int *)b;
}

/* ---- kinds ---- */

#define BODY(name, call)                     \
	static NOINLINE void do_##name(void) \
	{                                    \
		call;                        \
		sink++;                      \
	}
BODY(futex, in_futex())
BODY(poll, in_poll())
BODY(read, in_read())
BODY(spin, in_spin())
BODY(clock, in_clock())
BODY(churn, in_churn())
BODY(wander, in_wander())
BODY(deep, deep(DEEP))
BODY(grow, grow(11))
BODY(aligned, aligned(6))

static NOINLINE void do_signal(void)
{
	signal(SIGUSR1, on_signal);
	interrupted(4);
	sink++;
}

/* With a stack of its own; signal() above would have none. */
static NOINLINE void do_altstack(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
	stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};

	sigaltstack(&stack, NULL);
	sigaction(SIGUSR2, &action, NULL);
	syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR2);
	sink++;
}

static NOINLINE void do_qsort(void)
{
	int numbers[] = {3, 1, 2};

	qsort(numbers, 3, sizeof(*numbers), compare);
	sink++;
}

static const struct {
	const char *name;
	void (*body)(void);
} kinds[] = {
	{"wander", do_wander},   {"futex", do_futex},   {"poll", do_poll},
	{"read", do_read},       {"spin", do_spin},     {"clock", do_clock},
	{"churn", do_churn},     {"deep", do_deep},     {"grow", do_grow},
	{"aligned", do_aligned}, {"signal", do_signal}, {"altstack", do_altstack},
	{"qsort", do_qsort},
};
#define NR_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static void *thread_main(void *arg)
{
	self = arg;
	self->tid = (pid_t)syscall(SYS_gettid);
	prctl(PR_SET_NAME, self->kind);
	self->body();
	return NULL;
}

static void start(size_t kind)
{
	struct thread *t = &threads[nr_threads++];
	pthread_attr_t attr;
	pthread_t thread;

	t->kind = kinds[kind].name;
	t->body = kinds[kind].body;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 1 << 20);
	if (pthread_create(&thread, &attr, thread_main, t))
		abort();
	while (!atomic_load(&t->ready))
		usleep(100);
}

static int start_named(const char *word)
{
	int n = strchr(word, ':') ? atoi(strchr(word, ':') + 1) : 1;

	for (size_t i = 0; i < NR_KINDS; i++)
		if (!strncmp(word, kinds[i].name, strcspn(word, ":")) &&
		    strlen(kinds[i].name) == strcspn(word, ":")) {
			while (n-- > 0 && nr_threads < MOST_THREADS)
				start(i);
			return 0;
		}
	fprintf(stderr, "no kind '%s'\n", word);
	return 1;
}

/* ---- what it says ---- */

static void print_frame(const void *ip, const char *comma)
{
	struct link_map *map = NULL;
	Dl_info info;

	if (!dladdr1((const char *)ip - 1, &info, (void **)&map, RTLD_DL_LINKMAP))
		printf("%s[\"\", %lu]", comma, (unsigned long)(uintptr_t)ip);
	else
		printf("%s[\"%s\", %lu]", comma, strrchr(info.dli_fname, '/') ?: info.dli_fname,
		       (unsigned long)((uintptr_t)ip - map->l_addr));
}

static void print_threads(void)
{
	printf("{\"pid\": %d, \"threads\": [", (int)getpid());
	for (int i = 0; i < nr_threads; i++) {
		const struct thread *t = &threads[i];

		printf("%s{\"tid\": %d, \"kind\": \"%s\", \"callers\": [", i ? ", " : "",
		       (int)t->tid, t->kind);
		/*
		 * record() and the place in the one that blocks, which it has left since, are not
		 * compared.
		 */
		for (int k = 2; k < t->nr; k++)
			print_frame(t->frames[k], k > 2 ? ", " : "");
		printf("]}");
	}
	puts("]}");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char line[64];
	int err = 0;

	threads = calloc(MOST_THREADS, sizeof(*threads));
	if (!threads || pipe(pipe_fds))
		return 1;
	for (int i = 1; i < argc && !err; i++)
		err = start_named(argv[i]);
	for (size_t i = 0; argc == 1 && i < NR_KINDS; i++)
		start(i);
	if (err)
		return 2;
	printf("READY %d\n", (int)getpid());
	fflush(stdout);
	if (fgets(line, sizeof(line), stdin))
		print_threads();
	while (fgets(line, sizeof(line), stdin))
		;
	return 0;
}
