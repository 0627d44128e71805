/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that has itself recorded, by kprof/profile.h, as C and as C++:
 *
 *   inside MODE LIBRARY [OPTION…]        the library is that of fakeops.cpp, options go to kprof
 *
 * It calls operators before, inside of and after what is to be recorded, and prints a line of JSON:
 * how often each was called inside, and what start and stop have said.
 */
#include <dlfcn.h>
#include <kprof/profile.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/wait.h>

#define CALLS 200
#define THREADS 6
#define OPERATORS 7
#define KEPT_ERRNO 77

static void (*counts)(uint64_t counts[OPERATORS]);
static const char *(*name_of)(int index);
static uint64_t (*linear)(uint64_t x), (*mul)(uint64_t x);
static struct kprof_profile_opts opts;
static struct kprof_profile_result started, stopped;
static uint64_t before[OPERATORS], after[OPERATORS];
static bool errno_kept = true;
static uint64_t sum;

/* A function's address, which ISO C lets nobody cast. */
static void find(void *library, const char *name, void *function)
{
	void *at = dlsym(library, name);

	if (!at)
		exit(9);
	memcpy(function, &at, sizeof(at));
}

static void open_library(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);

	if (!library)
		exit(9);
	find(library, "fakeops_counts", &counts);
	find(library, "fakeops_name", &name_of);
	find(library, "_ZN2at4_ops11fake_linear4callEm", &linear);
	find(library, "_ZN2at4_ops15fake_mul_Tensor4callEm", &mul);
}

static void work(uint64_t calls)
{
	for (uint64_t i = 0; i < calls; i++)
		__atomic_add_fetch(&sum, linear(i), __ATOMIC_RELAXED);
}

static bool start(void)
{
	bool done;

	errno = KEPT_ERRNO;
	done = kprof_profile_start(&opts, &started);
	errno_kept = errno_kept && errno == KEPT_ERRNO;
	return done;
}

static bool stop(void)
{
	bool done;

	errno = KEPT_ERRNO;
	done = kprof_profile_stop(&opts, &stopped);
	errno_kept = errno_kept && errno == KEPT_ERRNO;
	return done;
}

static void print_text(const char *text)
{
	putchar('"');
	for (; *text; text++)
		if (*text == '"' || *text == '\\')
			printf("\\%c", *text);
		else
			putchar(*text);
	putchar('"');
}

static void print_result(const char *name, const struct kprof_profile_result *r)
{
	printf("\"%s\": {\"code\": %d, \"id\": ", name, r->code);
	print_text(r->id);
	printf(", \"path\": ");
	print_text(r->path);
	printf(", \"error\": ");
	print_text(r->error);
	printf(", \"hint\": ");
	print_text(r->hint);
	printf("}, ");
}

static void print_counts(void)
{
	const char *between = "";

	printf("\"counts\": {");
	for (int i = 0; i < OPERATORS; i++)
		if (after[i] != before[i]) {
			printf("%s\"%s\": %llu", between, name_of(i),
			       (unsigned long long)(after[i] - before[i]));
			between = ", ";
		}
	printf("}");
}

/* ---- the ways ---- */

static void plain(void)
{
	if (start()) {
		counts(before);
		work(CALLS);
		counts(after);
		stop();
	}
}

static void scope(void)
{
	counts(before);
	{
		KPROF_PROFILE_SCOPE("--shapes", "--trace-id=of \"a\" scope");
		work(CALLS);
	}
	counts(after);
}

#ifdef __cplusplus
static void thrown(void)
{
	try {
		kprof::profile p{"--shapes"};

		started = p.result();
		counts(before);
		work(CALLS);
		counts(after);
		throw 1;
	} catch (int) {
		stopped.code = kprof_profile_on();
	}
	{
		kprof::profile p(opts);

		work(1);
		if (!p || !p.stop() || !p)
			stopped.code = 99;
		stopped = p.result();
	}
}
#endif

static void nested(void)
{
	bool right;

	start();
	counts(before);
	work(CALLS);
	right = kprof_profile_start(NULL, &stopped) && !strcmp(stopped.id, started.id);
	work(CALLS);
	right = stop() && right && !stopped.path[0] && kprof_profile_on();
	work(CALLS);
	counts(after);
	right = stop() && right && !kprof_profile_on() && !strcmp(stopped.id, started.id);
	if (!right || stop() || stopped.code != EALREADY)
		exit(8);
	strcpy(stopped.id, started.id);
}

/* Waits until so many threads are here. (Strict C has no barriers.) */
static void meet(int threads)
{
	static int here, turns;
	int turn = __atomic_load_n(&turns, __ATOMIC_ACQUIRE);

	if (__atomic_add_fetch(&here, 1, __ATOMIC_ACQ_REL) == threads) {
		__atomic_store_n(&here, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&turns, turn + 1, __ATOMIC_RELEASE);
	}
	while (__atomic_load_n(&turns, __ATOMIC_ACQUIRE) == turn)
		poll(NULL, 0, 1);
}

static void *work_inside(void *arg)
{
	struct kprof_profile_result r, *first = (struct kprof_profile_result *)arg;
	bool done = kprof_profile_start(&opts, first);

	meet(THREADS);
	work(CALLS);
	meet(THREADS);
	done = kprof_profile_stop(&opts, &r) && done;
	if (done && r.path[0])
		stopped = r;
	return done ? arg : NULL;
}

/* Which thread starts it and which one ends it is open; that there is one recording is not. */
static void threads(void)
{
	struct kprof_profile_result r[THREADS];
	pthread_t ids[THREADS];
	bool right = true;

	counts(before);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&ids[i], NULL, work_inside, &r[i]);
	for (int i = 0; i < THREADS; i++) {
		void *done;

		pthread_join(ids[i], &done);
		right = right && done && !strcmp(r[i].id, r[0].id);
	}
	counts(after);
	started = r[0];
	if (!right)
		exit(8);
}

static void *start_and_stop(void *arg)
{
	for (int i = 0; i < CALLS; i++) {
		struct kprof_profile_result r;
		bool right = kprof_profile_start(&opts, &r) && !strcmp(r.id, "a-1") &&
			     kprof_profile_on();

		right = right && kprof_profile_stop(&opts, &r) && !strcmp(r.id, "a-1");
		if (!right)
			exit(8);
	}
	return arg;
}

/* With a daemon that says yes to everybody: the first one is any of them, again and again. */
static void churn(void)
{
	pthread_t ids[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&ids[i], NULL, start_and_stop, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(ids[i], NULL);
}

static volatile bool over;

static void *work_beside(void *arg)
{
	do {
		for (int i = 0; i < CALLS; i++)
			*(uint64_t *)arg += mul(1);
		meet(2); /* each thread's calls are between calls of the other */
		meet(2);
	} while (!over);
	return NULL;
}

static void one_thread(void)
{
	uint64_t beside = 0;
	pthread_t id;

	opts.this_thread = true;
	pthread_create(&id, NULL, work_beside, &beside);
	if (start()) {
		meet(2);
		counts(before);
		work(CALLS);
		counts(after);
		meet(2);
		meet(2); /* the other one has worked again */
		stop();
		over = true;
		meet(2);
	} else {
		exit(8);
	}
	pthread_join(id, NULL);
}

static void forked(void)
{
	int status = 0;
	pid_t child;

	start();
	counts(before);
	work(CALLS);
	fflush(stdout);
	child = fork();
	if (!child) {
		bool right = !kprof_profile_on() && !stop() && stopped.code == EALREADY;

		work(CALLS);
		opts.options = NULL;
		opts.nr_options = 0;
		right = right && kprof_profile_start(&opts, &stopped) &&
			strcmp(stopped.id, started.id) && kprof_profile_on();
		work(1);
		_exit(right && stop() ? 0 : 8);
	}
	waitpid(child, &status, 0);
	work(CALLS);
	counts(after);
	if (status || !kprof_profile_on() || !stop())
		exit(8);
}

/* Its end is somebody else's. */
static void begun(void)
{
	if (!start())
		exit(8);
	counts(before);
	work(CALLS);
	counts(after);
}

/* The same program again, or the one that the environment names. */
static void exec_self(char **argv)
{
	const char *program = getenv("INSIDE_EXEC");

	if (!start())
		exit(8);
	work(CALLS + CALLS / 2);
	execl(program && *program ? program : "/proc/self/exe", argv[0], "after-exec", argv[2],
	      started.id, (char *)NULL);
	exit(9);
}

static void after_exec(char **argv)
{
	if (kprof_profile_on() || stop() || stopped.code != EALREADY)
		exit(8);
	strcpy(started.id, argv[3]);
	counts(before);
	work(CALLS);
	counts(after);
}

int main(int argc, char **argv)
{
	char line[8];

	if (argc < 3)
		return 2;
	open_library(argv[2]);
	opts.options = (const char *const *)argv + 3;
	opts.nr_options = (size_t)argc - 3;
	if (getenv("INSIDE_MS"))
		opts.start_ms = opts.stop_ms = atoi(getenv("INSIDE_MS"));
	work(CALLS / 2);
	if (strcmp(argv[1], "after-exec")) {
		printf("READY %d\n", (int)getpid());
		fflush(stdout);
		if (!fgets(line, sizeof(line), stdin))
			return 9;
	}
	if (!strcmp(argv[1], "plain"))
		plain();
	else if (!strcmp(argv[1], "scope"))
		scope();
	else if (!strcmp(argv[1], "nested"))
		nested();
	else if (!strcmp(argv[1], "threads"))
		threads();
	else if (!strcmp(argv[1], "churn"))
		churn();
	else if (!strcmp(argv[1], "thread"))
		one_thread();
	else if (!strcmp(argv[1], "fork"))
		forked();
	else if (!strcmp(argv[1], "begun"))
		begun();
	else if (!strcmp(argv[1], "exec"))
		exec_self(argv);
	else if (!strcmp(argv[1], "after-exec"))
		after_exec(argv);
#ifdef __cplusplus
	else if (!strcmp(argv[1], "thrown"))
		thrown();
#endif
	else
		return 2;
	work(CALLS / 2);
	printf("{");
	print_result("started", &started);
	print_result("stopped", &stopped);
	print_counts();
	printf(", \"on\": %d, \"errno_kept\": %d, \"sum\": %llu}\n", kprof_profile_on(), errno_kept,
	       (unsigned long long)sum);
	fflush(stdout);
	return !fgets(line, sizeof(line), stdin) && ferror(stdin);
}
