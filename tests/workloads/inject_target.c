// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program into which the agent is put while it works: threads that each do one kind of thing over
 * and over, and check every result. In the end it says how often something went wrong, as JSON.
 *
 *   inject_target KIND[,KIND…]    prints READY PID; works until a line or the end of its input
 *
 * Kinds, one thread each (the first is the main thread's, while it waits for the end in between):
 *   malloc dlopen printf fork vfork signal vector x87 spin setuid setuids errno
 *   read futex poll ppoll select epoll nanosleep clock sigwait pause eventloop: wait in the kernel;
 *     EINTR is counted, and so is a wait that ended early
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __AVX__
#include <immintrin.h>
#endif

#define SHORT_NS 20000000 /* a wait with a timeout */

static atomic_bool over;
static atomic_long errors, eintr, early, rounds, signals_sent, signals_seen, late_ns;
static int quiet_pipe[2]; /* nobody writes to it until the end */

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void wrong(const char *what)
{
	fprintf(stderr, "wrong: %s (errno %d)\n", what, errno);
	errors++;
}

static void count_eintr(const char *what)
{
	fprintf(stderr, "EINTR: %s\n", what);
	eintr++;
}

/* ---- work that never waits ---- */

static void do_malloc(void)
{
	static _Thread_local unsigned int seed = 1;
	unsigned char *blocks[64] = {0};
	size_t sizes[64];

	for (int i = 0; i < 64; i++) {
		seed = seed * 1103515245u + 12345u;
		sizes[i] = 1 + (seed >> 8) % 20000;
		blocks[i] = i % 3 ? malloc(sizes[i]) : calloc(1, sizes[i]);
		memset(blocks[i], i, sizes[i]);
	}
	for (int i = 0; i < 64; i++) {
		blocks[i] = realloc(blocks[i], sizes[i] + 100);
		for (size_t k = 0; k < sizes[i]; k += 97)
			if (blocks[i][k] != i)
				wrong("malloc");
		free(blocks[i]);
	}
}

static void do_dlopen(void)
{
	void *handle = dlopen("libm.so.6", RTLD_NOW);
	double (*root)(double);

	*(void **)&root = handle ? dlsym(handle, "sqrt") : NULL;
	if (!root || root(81) != 9)
		wrong("dlopen");
	if (dlsym(RTLD_DEFAULT, "there_is_no_such_function") || !dlerror())
		wrong("dlerror");
	if (handle)
		dlclose(handle);
}

static void do_printf(void)
{
	static FILE *null;
	char text[64];

	if (!null)
		null = fopen("/dev/null", "w");
	fprintf(null, "%d %s %f\n", 17, "text", 2.5);
	snprintf(text, sizeof(text), "%d %s %.3f", 17, "text", 2.5);
	if (strcmp(text, "17 text 2.500"))
		wrong("printf");
}

static void reap(pid_t child, const char *what)
{
	int status;

	while (waitpid(child, &status, 0) < 0)
		if (errno == EINTR)
			count_eintr(what);
		else
			break;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 7)
		wrong(what);
}

static void do_fork(void)
{
	pid_t child = fork();

	if (!child) {
		free(malloc(1000));
		_exit(7);
	}
	reap(child, "fork");
}

static void do_vfork(void)
{
	pid_t child = vfork();

	if (!child)
		_exit(7);
	reap(child, "vfork");
}

static void on_signal(int signal)
{
	signals_seen++;
}

/* Its own signals: none is lost, and each handler has run when the call that sent it returns. */
static void do_signal(void)
{
	long before = signals_seen;

	signals_sent++;
	pthread_kill(pthread_self(), SIGUSR1);
	if (signals_seen == before)
		wrong("signal");
}

static void do_errno(void)
{
	for (int i = 1; i < 1000; i++) {
		errno = i;
		__asm__ volatile("" ::: "memory");
		if (errno != i)
			wrong("errno");
	}
}

/* Every vector register filled, some time spent, and all compared; flags and the red zone, too. */
static void do_vector(void)
{
	static _Thread_local uint64_t turn;
	uint8_t in[64], out[32][64];
	bool wide = __builtin_cpu_supports("avx512f");

	turn++;
	for (int i = 0; i < 64; i++)
		in[i] = (uint8_t)(turn * 7 + (uint64_t)i * 13);
	memset(out, 0, sizeof(out));
	if (wide) {
		__asm__ volatile(
			"vmovdqu64 (%0), %%zmm0\n vmovdqa64 %%zmm0, %%zmm7\n vmovdqa64 %%zmm0, %%zmm15\n"
			"vmovdqa64 %%zmm0, %%zmm16\n vmovdqa64 %%zmm0, %%zmm31\n"
			"movl $0x5a5a5a5a, %%eax\n kmovd %%eax, %%k1\n kmovw %%eax, %%k7\n"
			"movl $20000, %%ecx\n 1: decl %%ecx\n jnz 1b\n"
			"vmovdqu64 %%zmm0, (%1)\n vmovdqu64 %%zmm7, 64(%1)\n vmovdqu64 %%zmm15, 128(%1)\n"
			"vmovdqu64 %%zmm16, 192(%1)\n vmovdqu64 %%zmm31, 256(%1)\n"
			"kmovd %%k1, %%eax\n movl %%eax, 320(%1)\n kmovw %%k7, %%eax\n movw %%ax, 324(%1)\n"
			"vzeroupper\n" ::"r"(in),
			"r"(out)
			: "rax", "rcx", "memory", "xmm0", "xmm7", "xmm15", "cc");
		for (int i = 0; i < 5; i++)
			if (memcmp(out[i], in, 64))
				wrong("zmm");
		if (memcmp(out[5], "\x5a\x5a\x5a\x5a\x5a\x5a", 6))
			wrong("mask registers");
	} else {
		__asm__ volatile(
			"movdqu (%0), %%xmm0\n movdqa %%xmm0, %%xmm7\n movdqa %%xmm0, %%xmm15\n"
			"movl $20000, %%ecx\n 1: decl %%ecx\n jnz 1b\n"
			"movdqu %%xmm0, (%1)\n movdqu %%xmm7, 64(%1)\n movdqu %%xmm15, 128(%1)\n" ::
				"r"(in),
			"r"(out)
			: "rcx", "memory", "xmm0", "xmm7", "xmm15", "cc");
		for (int i = 0; i < 3; i++)
			if (memcmp(out[i], in, 16))
				wrong("xmm");
	}
}

/* General registers, flags (the direction flag set), and what lies below the stack pointer. */
__attribute__((noinline)) static uint64_t red_zone_sum(uint64_t seed)
{
	uint64_t sum;

	__asm__ volatile(
		"movq %1, -8(%%rsp)\n movq %1, -64(%%rsp)\n movq %1, -128(%%rsp)\n"
		"movq %1, %%r8\n movq %1, %%r11\n movq %1, %%r15\n movq %1, %%rdx\n"
		"std\n stc\n"
		"movl $20000, %%ecx\n 1: decl %%ecx\n jnz 1b\n"
		"movl $0, %%eax\n adcq -8(%%rsp), %%rax\n"
		"addq -64(%%rsp), %%rax\n addq -128(%%rsp), %%rax\n"
		"addq %%r8, %%rax\n addq %%r11, %%rax\n addq %%r15, %%rax\n addq %%rdx, %%rax\n"
		"pushfq\n popq %%rcx\n shrq $10, %%rcx\n andl $1, %%ecx\n addq %%rcx, %%rax\n cld\n"
		: "=&a"(sum)
		: "r"(seed)
		: "rcx", "rdx", "r8", "r11", "r15", "cc", "memory");
	return sum;
}

static void do_spin(void)
{
	/* `decl` leaves the carry: with the direction flag 2 more than seven times the seed. */
	if (red_zone_sum(123456789) != 7 * 123456789ull + 2)
		wrong("general registers");
}

static void do_x87(void)
{
	static const uint32_t rounding_up = 0x5f80; /* MXCSR */
	uint16_t control = 0x0b7f, control_after;   /* round up, extended precision off */
	uint32_t mxcsr_after, mxcsr_before;
	long double a, b;

	__asm__ volatile("stmxcsr %0" : "=m"(mxcsr_before));
	__asm__ volatile("fldpi\n fldl2e\n fldcw %2\n ldmxcsr %3\n"
			 "movl $20000, %%ecx\n 1: decl %%ecx\n jnz 1b\n"
			 "fnstcw %0\n stmxcsr %1\n fninit\n"
			 : "=m"(control_after), "=m"(mxcsr_after)
			 : "m"(control), "m"(rounding_up)
			 : "rcx", "cc");
	if (control_after != control || mxcsr_after != rounding_up)
		wrong("rounding");
	__asm__ volatile("ldmxcsr %0" ::"m"(mxcsr_before));
	__asm__ volatile(
		"fldpi\n fldl2e\n movl $20000, %%ecx\n 1: decl %%ecx\n jnz 1b\n fstpt %0\n fstpt %1\n"
		: "=m"(a), "=m"(b)::"rcx", "cc");
	if (a < 1.4426950408889634L || a > 1.4426950408889635L || b < 3.14159265358979323L ||
	    b > 3.14159265358979324L)
		wrong("x87");
}

/* glibc has every thread change its user: a signal to all, and it waits for their answers. */
static void do_setuid(void)
{
	if (setuid(getuid()))
		wrong("setuid");
	usleep(1000);
}

static void do_setuids(void)
{
	if (setuid(getuid()))
		wrong("setuids");
}

/* ---- work that waits: all has to end as it would have ---- */

static void check_wait(const char *what, int result, int expected, uint64_t begin, uint64_t least)
{
	uint64_t took = now_ns() - begin;

	if (result < 0 && errno == EINTR)
		count_eintr(what);
	else if (result != expected)
		wrong(what);
	else if (took < least)
		early++;
	else if (least && took - least > (uint64_t)late_ns)
		late_ns = (long)(took - least);
}

static void do_read(void)
{
	char c;

	if (read(quiet_pipe[0], &c, 1) < 0 && errno == EINTR)
		count_eintr("read");
}

static void do_futex(void)
{
	static uint32_t word;
	struct timespec ts = {0, SHORT_NS};
	uint64_t begin = now_ns();
	int n = (int)syscall(SYS_futex, &word, FUTEX_WAIT, 0, &ts, NULL, 0);

	check_wait("futex", n < 0 && errno == ETIMEDOUT ? 0 : n, 0, begin, SHORT_NS);
}

static void do_cond(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_nsec += SHORT_NS;
	if (ts.tv_nsec >= 1000000000)
		ts.tv_sec++, ts.tv_nsec -= 1000000000;
	pthread_mutex_lock(&lock);
	if (pthread_cond_timedwait(&cond, &lock, &ts) != ETIMEDOUT)
		wrong("pthread_cond_timedwait");
	pthread_mutex_unlock(&lock);
}

static void do_poll(void)
{
	uint64_t begin = now_ns();

	check_wait("poll", poll(NULL, 0, SHORT_NS / 1000000), 0, begin, SHORT_NS);
}

static void do_ppoll(void)
{
	struct timespec ts = {0, SHORT_NS};
	uint64_t begin = now_ns();
	sigset_t none;

	sigemptyset(&none);
	check_wait("ppoll", ppoll(NULL, 0, &ts, &none), 0, begin, SHORT_NS);
}

static void do_select(void)
{
	struct timeval tv = {0, SHORT_NS / 1000};
	uint64_t begin = now_ns();

	check_wait("select", select(0, NULL, NULL, NULL, &tv), 0, begin, SHORT_NS);
}

static void do_epoll(void)
{
	static _Thread_local int fd = -1;
	struct epoll_event event;
	uint64_t begin;

	if (fd < 0)
		fd = epoll_create1(0);
	begin = now_ns();
	check_wait("epoll", epoll_wait(fd, &event, 1, SHORT_NS / 1000000), 0, begin, SHORT_NS);
}

static void do_nanosleep(void)
{
	struct timespec ts = {0, SHORT_NS};
	uint64_t begin = now_ns();

	check_wait("nanosleep", nanosleep(&ts, NULL), 0, begin, SHORT_NS);
}

static void do_clock(void)
{
	struct timespec ts;
	uint64_t begin = now_ns();

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_nsec += SHORT_NS;
	if (ts.tv_nsec >= 1000000000)
		ts.tv_sec++, ts.tv_nsec -= 1000000000;
	check_wait("clock_nanosleep", -clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL),
		   0, begin, 0);
}

static void do_sigwait(void)
{
	struct timespec ts = {0, SHORT_NS};
	uint64_t begin = now_ns();
	sigset_t set;
	int n;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2); /* which is blocked in the whole program, and nobody sends */
	n = sigtimedwait(&set, NULL, &ts);
	check_wait("sigtimedwait", n < 0 && errno == EAGAIN ? 0 : n, 0, begin, SHORT_NS);
}

/* pause() has to end when a signal comes, also when it comes while the thread is held. */
static pid_t pausing;
static atomic_long pauses;

static void *alarms_main(void *arg)
{
	for (bool last = false; !last;) {
		long before = pauses;

		usleep(3000);
		last = over;
		/* Not pthread_kill(): the thread may have ended, and been joined. */
		syscall(SYS_tgkill, getpid(), pausing, SIGALRM);
		for (int i = 0; i < 2000 && pauses == before && !over; i++)
			usleep(1000);
		if (pauses == before && !over)
			wrong("sigsuspend() missed its signal");
	}
	return NULL;
}

static void do_pause(void)
{
	static bool begun;
	pthread_t thread;
	sigset_t open;

	if (!begun) {
		sigset_t set;

		begun = true;
		pausing = gettid();
		sigemptyset(&set);
		sigaddset(&set, SIGALRM);
		pthread_sigmask(SIG_BLOCK, &set, NULL);
		pthread_create(&thread, NULL, alarms_main, NULL);
	}
	/* sigsuspend() and not pause(), which could miss a signal that comes before it */
	pthread_sigmask(SIG_SETMASK, NULL, &open);
	sigdelset(&open, SIGALRM);
	if (sigsuspend(&open) != -1 || errno != EINTR)
		wrong("sigsuspend");
	pauses++;
}

static const struct kind {
	const char *name;
	void (*run)(void);
} kinds[] = {
	{"malloc", do_malloc},   {"dlopen", do_dlopen},       {"printf", do_printf},
	{"fork", do_fork},       {"vfork", do_vfork},         {"signal", do_signal},
	{"errno", do_errno},     {"vector", do_vector},       {"spin", do_spin},
	{"x87", do_x87},         {"setuid", do_setuid},       {"setuids", do_setuids},
	{"read", do_read},       {"futex", do_futex},         {"cond", do_cond},
	{"poll", do_poll},       {"ppoll", do_ppoll},         {"select", do_select},
	{"epoll", do_epoll},     {"nanosleep", do_nanosleep}, {"clock", do_clock},
	{"sigwait", do_sigwait}, {"pause", do_pause},
};

/* ---- the program ---- */

/*
 * No program is in the loader, or in its handlers, always: kprof uses a thread only elsewhere, and
 * gives up after ten seconds. A third of the time is spent here, by the clock, so that it is as
 * much on a slow machine.
 */
static void elsewhere(uint64_t spent_ns)
{
	uint64_t begin_ns = now_ns();

	while (now_ns() - begin_ns < spent_ns / 2)
		;
}

static void some_rounds(const struct kind *kind)
{
	uint64_t begin_ns = now_ns();

	for (int i = 0; i < 10; i++) {
		kind->run();
		rounds++;
	}
	elsewhere(now_ns() - begin_ns);
}

static void *work(void *arg)
{
	const struct kind *kind = arg;

	/*
	 * The loader's lock keeps kprof from every thread. Nothing but dlopen() and dlsym() holds
	 * it 99.5 % of the time.
	 */
	while (!over && kind->run == do_dlopen)
		some_rounds(kind);
	while (!over) {
		kind->run();
		rounds++;
	}
	return NULL;
}

static const struct kind *find_kind(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	fprintf(stderr, "no kind %s\n", name);
	exit(2);
}

/* A thread that sees the input's end while the main thread works: only with more than one kind. */
static void *watch_input(void *arg)
{
	char c;
	ssize_t n;

	while ((n = read(STDIN_FILENO, &c, 1)) < 0 && errno == EINTR)
		count_eintr("read of standard input");
	over = true;
	close(quiet_pipe[1]);
	return NULL;
}

static int symbol_value(const char *name)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	int value = 0;

	/* The library is not in the global scope: by its file's name. */
	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "libkprof_agent.so"))
			value = 1;
	if (maps)
		fclose(maps);
	if (value) {
		void *handle = dlopen("libkprof_agent.so", RTLD_NOW | RTLD_NOLOAD);
		volatile int *at = handle ? dlsym(handle, name) : NULL;

		value = at ? *at : -1;
	}
	return value;
}

/* The thread that each start makes has run: the last one's may not have had a CPU yet. */
static void wait_for_threads(void)
{
	for (int i = 0;
	     i < 10000 && symbol_value("kprof_test_threads") < symbol_value("kprof_test_starts");
	     i++)
		usleep(1000);
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_signal};
	pthread_t threads[64], watcher;
	size_t nr = 0;
	sigset_t set;
	char *save, *name;
	bool alone = argc > 2 && !strcmp(argv[2], "--alone");

	if (argc < 2 || pipe2(quiet_pipe, O_CLOEXEC))
		return 2;
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGALRM, &action, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	printf("READY %d\n", (int)getpid());
	fflush(stdout);
	if (alone) { /* one thread, one kind; the input's end is looked for in between */
		const struct kind *kind = find_kind(argv[1]);
		struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};

		while (poll(&in, 1, 0) == 0)
			some_rounds(kind);
	} else {
		pthread_create(&watcher, NULL, watch_input, NULL);
		for (name = strtok_r(argv[1], ",", &save); name && nr < 64;
		     name = strtok_r(NULL, ",", &save))
			pthread_create(&threads[nr++], NULL, work, (void *)find_kind(name));
		for (size_t i = 0; i < nr; i++)
			pthread_join(threads[i], NULL);
		pthread_join(watcher, NULL);
	}
	wait_for_threads();
	printf("{\"errors\": %ld, \"eintr\": %ld, \"early\": %ld, \"rounds\": %ld, \"late_ns\": %ld, "
	       "\"loads\": %d, \"starts\": %d, \"threads\": %d}\n",
	       errors, eintr, early, rounds, late_ns, symbol_value("kprof_test_loads"),
	       symbol_value("kprof_test_starts"), symbol_value("kprof_test_threads"));
	return errors || eintr || early;
}
