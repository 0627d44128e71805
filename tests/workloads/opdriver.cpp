/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls the operators of fakeops.cpp a known number of times, in all the ways that are hard on a
 * profiler that follows calls and returns from outside.
 *
 *   opdriver MODE [--n N] [--threads T] [--depth D] [--children K] [--exec]
 *            [--how fork|vfork|clone3|double] [--pace MS] [--until-file PATH] [--now] [--linger]
 *   opdriver-dl MODE --lib PATH [--preload] …       the library is opened when told to go
 *
 * Prints "READY pid", waits for a line on standard input (--now: does not; end of file: gives up),
 * works, and prints one line of JSON: how often each operator ran, a checksum, and whether that is
 * the one that plain arithmetic gives. --linger: waits for another line, or the end of file, before
 * it ends. --until-file: half of the calls are made when the file is there (or two minutes are
 * over).
 */
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "opdriver.hpp"

#ifdef OPDRIVER_DLOPEN
struct op_table op;

template <typename T> static void sym(void *lib, T &fn, const char *name)
{
	fn = reinterpret_cast<T>(dlsym(lib, name));
	if (!fn) {
		fprintf(stderr, "opdriver-dl: %s\n", dlerror());
		exit(1);
	}
}

static void *open_library(const char *path)
{
	void *lib = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;

	if (!lib) {
		fprintf(stderr, "opdriver-dl: --lib: %s\n", path ? dlerror() : "missing");
		exit(1);
	}
	sym(lib, op.add, "_ZN2at4_ops15fake_add_Tensor4callEm");
	sym(lib, op.mul, "_ZN2at4_ops15fake_mul_Tensor4callEm");
	sym(lib, op.linear, "_ZN2at4_ops11fake_linear4callEm");
	sym(lib, op.throws, "_ZN2at4_ops10fake_throw4callEm");
	sym(lib, op.recurse, "_ZN2at4_ops12fake_recurse4callEm");
	sym(lib, op.tail, "_ZN2at4_ops9fake_tail4callEm");
	sym(lib, op.apply, "_ZN2at4_ops10fake_apply4callEPFmPvES2_");
	sym(lib, op.counts, "fakeops_counts");
	sym(lib, op.name, "fakeops_name");
	sym(lib, op.schema, "fakeops_schema");
	return lib;
}
#endif

std::string counts_json(const uint64_t counts[FAKEOPS_NR])
{
	std::string s = "{";

	for (int i = 0; i < FAKEOPS_NR; i++)
		s += std::string(i ? ", \"" : "\"") + op_name(i) +
		     "\": " + std::to_string(counts[i]);
	return s + "}";
}

void rest(const struct options &o, uint64_t i)
{
	if (o.pace_ms && i % (o.n / 100 + 1) == 0)
		usleep(o.pace_ms * 1000);
	if (o.until_file && i == o.n / 2)
		for (int turn = 0; turn < 12000 && access(o.until_file, F_OK); turn++)
			usleep(10000);
}

static uint64_t run_count(const struct options &o, uint64_t seed)
{
	uint64_t sum = seed;

	for (uint64_t i = 0; i < o.n; i++) {
		rest(o, i);
		sum = mix(sum, op_linear(i + seed));
	}
	return sum;
}

static uint64_t plain_count(uint64_t n, uint64_t seed)
{
	uint64_t sum = seed;

	for (uint64_t i = 0; i < n; i++)
		sum = mix(sum, plain_linear(i + seed));
	return sum;
}

static void mode_count(const struct options &o, struct result &r)
{
	r.sum = run_count(o, 0);
	r.ok = r.sum == plain_count(o.n, 0);
}

static void mode_threads(const struct options &o, struct result &r)
{
	std::vector<std::thread> threads;
	std::vector<uint64_t> sums(o.threads);

	for (unsigned t = 0; t < o.threads; t++)
		threads.emplace_back([&sums, &o, t] { sums[t] = run_count(o, t + 1); });
	for (unsigned t = 0; t < o.threads; t++) {
		threads[t].join();
		r.ok &= sums[t] == plain_count(o.n, t + 1);
		r.sum = mix(r.sum, sums[t]);
	}
}

static void mode_recurse(const struct options &o, struct result &r)
{
	for (uint64_t i = 0; i < o.n; i++) {
		uint64_t x = op_recurse(o.depth);

		r.ok &= x == o.depth + 2;
		r.sum = mix(r.sum, x);
	}
}

static void mode_tail(const struct options &o, struct result &r)
{
	for (uint64_t i = 0; i < o.n; i++) {
		uint64_t x = op_tail(i);

		r.ok &= x == i + 1;
		r.sum = mix(r.sum, x);
	}
}

static volatile sig_atomic_t stop;

/*
 * Works until SIGTERM (with --pace, it rests after every thousand), then proves that all of its
 * work was right. Ops that throw are mixed in, so that whoever is killed beside it dies at such a
 * moment too.
 */
static void mode_spin(const struct options &o, struct result &r)
{
	uint64_t n, plain = 0;

	for (n = 0; !stop; n++) {
		if (o.pace_ms && n % 1024 == 0)
			usleep(o.pace_ms * 1000);
		r.sum = mix(r.sum, op_linear(n));
		if (n % 256 == 0) {
			try {
				op_throw(n / 256 % 4);
				r.ok = false;
			} catch (const std::exception &) {
				r.sum = mix(r.sum, 1);
			}
		}
	}
	for (uint64_t i = 0; i < n; i++) {
		plain = mix(plain, plain_linear(i));
		if (i % 256 == 0)
			plain = mix(plain, 1);
	}
	r.ok &= r.sum == plain;
	r.more = ", \"iterations\": " + std::to_string(n);
}

#ifdef OPDRIVER_DLOPEN
/* The library comes and goes, five times; its counters with it. */
static void mode_reload(const struct options &o, struct result &r)
{
	for (int round = 0; round < 5; round++) {
		uint64_t counts[FAKEOPS_NR];
		void *lib = open_library(o.lib);

		r.sum = mix(r.sum, run_count(o, 0));
		op_counts(counts);
		for (int i = 0; i < FAKEOPS_NR; i++)
			r.counts[i] += counts[i];
		dlclose(lib);
	}
	open_library(o.lib); /* for the names; its own counters are at 0 */
}
#endif

static const struct {
	const char *name;
	mode_fn *fn;
} modes[] = {
	{"count", mode_count},       {"threads", mode_threads},
	{"recurse", mode_recurse},   {"tail", mode_tail},
	{"spin", mode_spin},         {"throw", mode_throw},
	{"longjmp", mode_longjmp},   {"pthread_exit", mode_pthread_exit},
	{"ucontext", mode_ucontext}, {"sigaltstack", mode_sigaltstack},
	{"fork", mode_fork},         {"children", mode_children},
	{"family", mode_family_run}, {"brood", mode_brood},
	{"exec", mode_exec},         {"exit", mode_exit},
	{"within", mode_within},
#ifdef OPDRIVER_DLOPEN
	{"reload", mode_reload},
#endif
};

static void on_term(int)
{
	stop = 1;
}

/* One line of standard input; without one nobody is there any more to profile us. */
static void wait_for_line(bool needed)
{
	char c = 0;
	ssize_t got;

	do
		got = read(STDIN_FILENO, &c, 1);
	while (got == 1 && c != '\n');
	if (got != 1 && needed)
		exit(9);
}

static void usage(void)
{
	fputs("usage: opdriver MODE [--n N] [--threads T] [--depth D] [--children K] [--exec] [--how HOW] [--pace MS]\n"
	      "                [--until-file PATH] [--lib PATH [--preload]] [--now] [--linger]\nmodes:",
	      stderr);
	for (const auto &m : modes)
		fprintf(stderr, " %s", m.name);
	fputc('\n', stderr);
	exit(2);
}

static mode_fn *parse(int argc, char **argv, struct options &o)
{
	mode_fn *fn = nullptr;

	o.self = argv[0];
	for (const auto &m : modes)
		if (argc > 1 && !strcmp(argv[1], m.name))
			fn = m.fn;
	for (int i = 2; i < argc; i++) {
		std::string a = argv[i];
		const char *value = i + 1 < argc ? argv[i + 1] : nullptr;

		if (a == "--now")
			o.now = true;
		else if (a == "--linger")
			o.linger = true;
		else if (a == "--exec")
			o.exec_children = true;
		else if (a == "--preload")
			o.preload = true;
		else if (!value)
			usage();
		else if (a == "--n")
			o.n = strtoull(argv[++i], nullptr, 0);
		else if (a == "--depth")
			o.depth = strtoull(argv[++i], nullptr, 0);
		else if (a == "--threads")
			o.threads = strtoul(argv[++i], nullptr, 0);
		else if (a == "--pace")
			o.pace_ms = strtoul(argv[++i], nullptr, 0);
		else if (a == "--children")
			o.children = strtoul(argv[++i], nullptr, 0);
		else if (a == "--lib")
			o.lib = argv[++i];
		else if (a == "--how")
			o.how = argv[++i];
		else if (a == "--until-file")
			o.until_file = argv[++i];
		else
			usage();
	}
	if (!fn)
		usage();
	return fn;
}

int main(int argc, char **argv)
{
	struct options o;
	struct result r;
	uint64_t counts[FAKEOPS_NR];
	mode_fn *fn = parse(argc, argv, o);

	signal(SIGTERM, on_term);
#ifdef OPDRIVER_DLOPEN
	if (o.preload)
		open_library(o.lib);
#endif
	if (fn == mode_family_run)
		family_prepare(o);
	if (!o.now) {
		printf("READY %d\n", getpid());
		fflush(stdout);
		wait_for_line(true);
	}
#ifdef OPDRIVER_DLOPEN
	if (!o.preload && fn != mode_reload)
		open_library(o.lib);
#endif
	fn(o, r);
	op_counts(counts);
	for (int i = 0; i < FAKEOPS_NR; i++)
		counts[i] += r.counts[i];
	printf("{\"mode\": \"%s\", \"pid\": %d, \"checksum\": \"%016" PRIx64
	       "\", \"ok\": %s, \"counts\": %s%s}\n",
	       argv[1], getpid(), r.sum, r.ok ? "true" : "false", counts_json(counts).c_str(),
	       r.more.c_str());
	fflush(stdout);
	if (o.linger)
		wait_for_line(false);
	return r.ok ? 0 : 1;
}
