// SPDX-License-Identifier: BSD-2-Clause
/*
 * Names that lie elsewhere: separate debug files, packed ones, those of another root and of
 * servers; many files at once. Judge: the same program with all its symbols.
 */
#include <errno.h>
#include <lzma.h>
#include <signal.h>

#include "kprof.h"
#include "symbol_fixture.h"

/* Nothing of this machine comes in between. */
static const struct symbolizer_opts plain = {.cache_dir = "", .debug_dir = "/nonexistent"};

/* ---- other files ---- */

static const char program_source[] =
	"#include <stdio.h>\n"
	"__attribute__((noinline)) static int one(int x) { return printf(\"%d\", x) + 3; }\n"
	"__attribute__((noinline)) static int two(int x) { return one(x) * one(x + 1); }\n"
	"int main(int c, char **v) { return two(c); }\n";

/* All functions of the file with symbols, by the file without. */
static void check_program(const char *stripped, const struct symbolizer_opts *opts, bool known,
			  uint32_t debug)
{
	size_t nr;
	uint64_t *vaddrs = section_addresses("whole", ".text", 3, &nr);
	uint64_t *again = calloc(nr, sizeof(*again));
	struct looked_up whole, l;
	size_t missing = 0, named = 0;

	memcpy(again, vaddrs, nr * sizeof(*again));
	whole = look_up("whole", &plain, vaddrs, nr);
	l = look_up(stripped, opts, again, nr);
	CHECK_EQ(l.stats.debug_files, debug);
	for (size_t i = 0; i < nr; i++) {
		const char *want = whole.results[i].lines->function;

		/*
		 * Those that programs need to start come without a size: no debugger's file keeps
		 * them.
		 */
		if (strcmp(want, "one") && strcmp(want, "two") && strcmp(want, "main"))
			continue;
		named++;
		missing += strcmp(l.results[i].lines->function, want) != 0;
	}
	CHECK(named > 10);
	CHECK_EQ(missing, known ? 0 : named);
	looked_up_free(&whole);
	looked_up_free(&l);
}

static void by_build_id(void)
{
	char *debug_dir = xasprintf("%s/debug", fixture_dir);
	struct symbolizer_opts with = {.cache_dir = "", .debug_dir = debug_dir};

	write_text("program.c", program_source);
	CHECK(shell(
		"gcc -O2 -g -Wl,--build-id=0xabcdef0123456789 -o whole program.c && strip -o stripped whole && "
		"mkdir -p debug/.build-id/ab && "
		"objcopy --only-keep-debug whole debug/.build-id/ab/cdef0123456789.debug"));
	check_program("stripped", &plain, false, 0);
	check_program("stripped", &with, true, 1);
	with.lines = true;
	check_program("stripped", &with, true, 1);
	/* A file in its place that belongs to another program. */
	CHECK(shell("gcc -O1 -g -Wl,--build-id=0xabcdef0123456788 -o other program.c && "
		    "objcopy --only-keep-debug other debug/.build-id/ab/cdef0123456789.debug"));
	check_program("stripped", &with, false, 0);
	/* No file at all. */
	CHECK(shell("rm -r debug && mkdir -p debug/.build-id/ab/cdef0123456789.debug"));
	check_program("stripped", &with, false, 0);
	CHECK(shell(
		"rm -r debug && mkdir -p debug/.build-id/ab && mkfifo debug/.build-id/ab/cdef0123456789.debug"));
	check_program("stripped", &with, false, 0);
	free(debug_dir);
}

static void by_debuglink(void)
{
	static const char *const places[] = {"linked/stripped.debug",
					     "linked/.debug/stripped.debug"};

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		CHECK(shell(
			"rm -rf linked && mkdir -p linked/.debug && "
			"gcc -O2 -g -Wl,--build-id=none -o whole program.c && "
			"objcopy --only-keep-debug whole %s && strip -o linked/stripped whole && "
			"objcopy --add-gnu-debuglink=%s linked/stripped",
			places[i], places[i]));
		check_program("linked/stripped", &plain, true, 1);
		CHECK(shell("printf x >> %s", places[i])); /* another checksum */
		check_program("linked/stripped", &plain, false, 0);
	}
	/* A link that leaves its directory. */
	CHECK(shell(
		"cp whole linked/stripped.debug && cd linked && printf '../x\\0\\0\\0\\0\\0\\0\\0\\0' > link && "
		"objcopy --update-section .gnu_debuglink=link stripped && cp stripped.debug ../x"));
	check_program("linked/stripped", &plain, false, 0);
}

static void pack(const char *from, const char *to)
{
	char *in = NULL, *path = xasprintf("%s/%s", fixture_dir, from);
	size_t bytes = 0, out = 0, room;
	uint8_t *packed;
	FILE *f;

	CHECK_EQ(read_file(path, 1 << 24, &in, &bytes), 0);
	room = lzma_stream_buffer_bound(bytes);
	packed = malloc(room);
	CHECK_EQ(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, NULL, (uint8_t *)in, bytes, packed,
					 &out, room),
		 LZMA_OK);
	free(path);
	path = xasprintf("%s/%s", fixture_dir, to);
	f = fopen(path, "w");
	CHECK(f && fwrite(packed, 1, out, f) == out);
	if (f)
		fclose(f);
	free(path);
	free(packed);
	free(in);
}

static void in_gnu_debugdata(void)
{
	CHECK(shell(
		"gcc -O2 -o whole program.c && strip -o stripped whole && objcopy --only-keep-debug whole mini"));
	pack("mini", "mini.xz");
	CHECK(shell("objcopy --add-section .gnu_debugdata=mini.xz stripped"));
	check_program("stripped", &plain, true, 0);
	CHECK(shell("strip -o stripped whole && head -c 300 mini.xz > cut.xz && "
		    "objcopy --add-section .gnu_debugdata=cut.xz stripped"));
	check_program("stripped", &plain, false, 0);
}

/* ---- debug files of the target's root, and of servers ---- */

/* What the address is called, looked up with this root. */
static void check_in_root(struct elffile *e, uint64_t vaddr, const char *root, const char *want)
{
	struct symbolizer_opts opts = {.cache_dir = "", .debug_dir = "/usr/lib/debug"};
	struct symbol_result got;
	struct symbolizer *s;
	uint32_t id;

	CHECK_EQ(symbolizer__new(&opts, &s), 0);
	CHECK_EQ(symbolizer__add_module(s, &(struct symbol_module){e, "/bin/x", root}, &id), 0);
	CHECK_EQ(symbolizer__resolve(s, &(struct symbol_request){id, vaddr, false}, 1, &got), 0);
	CHECK_STR(got.lines->function, want);
	symbolizer__free(s);
}

static void in_another_root(void)
{
	char *root = xasprintf("%s/root", fixture_dir),
	     *path = xasprintf("%s/stripped", fixture_dir);
	struct elffile *whole, *e;
	struct elffile_symbol symbol = {0};
	char *whole_path = xasprintf("%s/whole", fixture_dir);

	CHECK(shell(
		"gcc -O2 -g -Wl,--build-id=0x1122334455667788 -o whole program.c && strip -o stripped whole && "
		"mkdir -p root/usr/lib/debug/.build-id/11 && "
		"objcopy --only-keep-debug whole root/usr/lib/debug/.build-id/11/22334455667788.debug"));
	CHECK_EQ(elffile__open(whole_path, &whole), 0);
	CHECK_EQ(elffile__symbol(whole, "main", &symbol), 0);
	CHECK_EQ(elffile__open(path, &e), 0);
	check_in_root(e, symbol.vaddr, NULL, "");
	check_in_root(e, symbol.vaddr, root, "main");
	/* A link's absolute path begins at that root … */
	CHECK(shell(
		"cd root/usr/lib/debug/.build-id/11 && mkdir %s/root/kept && mv *.debug %s/root/kept/ && "
		"ln -s /kept/22334455667788.debug .",
		fixture_dir, fixture_dir));
	check_in_root(e, symbol.vaddr, root, "main");
	/* … and so leads to no file of ours. */
	CHECK(shell("cd root/usr/lib/debug/.build-id/11 && mv %s/root/kept . && "
		    "ln -sf %s/root/usr/lib/debug/.build-id/11/kept/22334455667788.debug .",
		    fixture_dir, fixture_dir));
	check_in_root(e, symbol.vaddr, root, "");
	CHECK(shell("cd root/usr/lib/debug/.build-id/11 && mv kept/*.debug . && rmdir kept"));
	elffile__close(e);
	elffile__close(whole);
	free(whole_path);
	free(path);
	free(root);
}

/*
 * A server that has what lies in ./served, "busy" one that says so, "silent" one that takes a
 * question and never answers.
 */
static const char server_source[] =
	"import http.server, os, socket, sys\n"
	"if sys.argv[1] == 'silent':\n"
	"    s = socket.create_server(('127.0.0.1', 0))\n"
	"    print(s.getsockname()[1], flush=True)\n"
	"    kept = []\n"
	"    while True: kept.append(s.accept())\n"
	"class H(http.server.SimpleHTTPRequestHandler):\n"
	"    def log_message(self, *a): pass\n"
	"    def do_GET(self):\n"
	"        if sys.argv[1] == 'busy': self.send_error(503)\n"
	"        else: super().do_GET()\n"
	"s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), lambda *a: H(*a, directory='served'))\n"
	"print(s.server_port, flush=True)\n"
	"s.serve_forever()\n";

/* An empty cache; as root, the client that writes to it is nobody. */
static void fresh_cache(void)
{
	CHECK(shell(
		"chmod 711 . && rm -rf debuginfod && mkdir debuginfod && chmod 777 debuginfod"));
}

static FILE *serve(const char *how, pid_t *pid)
{
	char *command = xasprintf("cd %s && echo $$ && exec python3 -u server.py %s", fixture_dir,
				  how),
	     url[64];
	FILE *f = popen(command, "r");
	int port = 0;

	CHECK(f && fscanf(f, "%d %d", pid, &port) == 2);
	snprintf(url, sizeof(url), "http://127.0.0.1:%d", port);
	setenv("DEBUGINFOD_URLS", url, 1);
	free(command);
	return f;
}

static void from_a_server(void)
{
	struct symbolizer_opts opts = {
		.cache_dir = "", .debug_dir = "/nonexistent", .debuginfod = true};
	char *cache = xasprintf("%s/debuginfod", fixture_dir);
	FILE *server;
	pid_t pid = 0;

	setenv("DEBUGINFOD_CACHE_PATH", cache, 1);
	unsetenv("DEBUGINFOD_URLS");
	fresh_cache();
	write_text("server.py", server_source);
	CHECK(shell(
		"mkdir -p served/buildid/1122334455667788 && cp root/usr/lib/debug/.build-id/11/22334455667788.debug "
		"served/buildid/1122334455667788/debuginfo"));
	check_program("stripped", &opts, false, 0); /* not configured */
	server = serve("silent", &pid);
	opts.module_time_ns = NSEC_PER_SEC / 2;
	check_program("stripped", &opts, false, 0); /* comes back, that is */
	kill(pid, SIGKILL);
	pclose(server);
	fresh_cache();
	server = serve("all", &pid);
	opts.debuginfod = false;
	check_program("stripped", &opts, false, 0); /* not asked for */
	opts.debuginfod = true;
	opts.module_time_ns = 0;
	check_program("stripped", &opts, true, 1);
	kill(pid, SIGKILL);
	pclose(server);
	unsetenv("DEBUGINFOD_URLS");
	free(cache);
}

static unsigned int silences;

static void count_silence(void *ctx, enum kprof_log_level level, const char *text, const char *hint)
{
	silences += strstr(text, "did not answer") != NULL;
}

/*
 * What a server did not say is asked again, and what it said it has not after a while; what it said
 * is kept.
 */
static void not_answered(void)
{
	char *cache = xasprintf("%s/debuginfod", fixture_dir),
	     *answers = xasprintf("%s/answers", fixture_dir);
	static const char *const servers[] = {"silent", "busy", "all", "none"};
	struct symbolizer_opts opts = {.cache_dir = answers,
				       .debug_dir = "/nonexistent",
				       .debuginfod = true,
				       .absent_ns = 1,
				       .module_time_ns = NSEC_PER_SEC / 2};

	setenv("DEBUGINFOD_CACHE_PATH", cache, 1);
	fresh_cache();
	for (size_t i = 0; i < ARRAY_SIZE(servers); i++) {
		bool known = i >= 2, silent = !i;
		pid_t pid = 0;
		FILE *server = serve(servers[i], &pid);

		if (!silent) /* no server of ours is that slow */
			opts.module_time_ns = 0;
		silences = 0;
		kprof_set_log(count_silence, NULL);
		check_program("stripped", &opts, known, servers[i][0] == 'a');
		kprof_set_log(NULL, NULL);
		CHECK_EQ(silences, silent);
		kill(pid, SIGKILL);
		pclose(server);
		fresh_cache();
	}
	unsetenv("DEBUGINFOD_URLS");
	/* One that has nothing has said so: that is not asked again so soon. */
	opts.absent_ns = 0;
	CHECK(shell("rm -rf answers served/buildid"));
	for (size_t i = 0; i < 2; i++) {
		pid_t pid = 0;
		FILE *server = serve(i ? "silent" : "all", &pid);

		silences = 0;
		kprof_set_log(count_silence, NULL);
		check_program("stripped", &opts, false, 0);
		kprof_set_log(NULL, NULL);
		CHECK_EQ(silences, 0);
		kill(pid, SIGKILL);
		pclose(server);
	}
	unsetenv("DEBUGINFOD_URLS");
	free(answers);
	free(cache);
}

/* ---- many files ---- */

struct watched {
	uint64_t calls, last, total;
	uint64_t stop_at;
};

static int watch(void *ctx, uint64_t done, uint64_t total)
{
	struct watched *w = ctx;

	CHECK(done > w->last && done <= total);
	CHECK(!w->total || w->total == total);
	w->calls++;
	w->last = done;
	w->total = total;
	return w->stop_at && w->calls >= w->stop_at;
}

static void in_parallel(void)
{
	enum { FILES = 12 };
	struct watched w = {0};
	struct symbolizer_opts opts = {.cache_dir = "",
				       .debug_dir = "/nonexistent",
				       .threads = 4,
				       .progress = watch,
				       .ctx = &w};
	struct symbol_request *r;
	struct symbol_result *got;
	struct elffile *files[FILES];
	struct symbolizer *s;
	uint64_t *vaddrs;
	uint32_t id;
	size_t nr;
	char *path = xasprintf("%s/whole", fixture_dir);
	struct looked_up alone;

	CHECK(shell("gcc -O2 -o whole program.c"));
	vaddrs = section_addresses("whole", ".text", 7, &nr);
	alone = look_up("whole", &plain, vaddrs, nr);
	r = calloc(FILES * nr, sizeof(*r));
	got = calloc(FILES * nr, sizeof(*got));
	for (int round = 0; round < 2; round++) {
		w = (struct watched){.stop_at = round ? 2 : 0};
		CHECK_EQ(symbolizer__new(&opts, &s), 0);
		for (size_t i = 0; i < FILES; i++) {
			CHECK_EQ(elffile__open(path, &files[i]), 0);
			CHECK_EQ(symbolizer__add_module(s, &(struct symbol_module){.elf = files[i]},
							&id),
				 0);
			for (size_t k = 0; k < nr; k++)
				r[k * FILES + i] =
					(struct symbol_request){.module = id, .vaddr = vaddrs[k]};
		}
		CHECK_EQ(symbolizer__resolve(s, r, FILES * nr, got), round ? -ECANCELED : 0);
		CHECK_EQ(w.total, FILES * nr);
		if (!round) {
			CHECK_EQ(w.last, w.total);
			CHECK_EQ(w.calls, FILES);
			for (size_t k = 0; k < FILES * nr; k++)
				CHECK_STR(got[k].lines->function,
					  alone.results[k / FILES].lines->function);
		} else {
			CHECK(w.last < w.total);
		}
		symbolizer__free(s);
		for (size_t i = 0; i < FILES; i++)
			elffile__close(files[i]);
	}
	looked_up_free(&alone);
	free(path);
	free(got);
	free(r);
}

static void setting_up(void)
{
	fixture_make();
}

UNIT_MAIN(TEST(setting_up), TEST(by_build_id), TEST(by_debuglink), TEST(in_gnu_debugdata),
	  TEST(in_another_root), TEST(from_a_server), TEST(not_answered), TEST(in_parallel))
