// SPDX-License-Identifier: BSD-2-Clause
/*
 * Fetches debug files from debuginfod servers. The client library loads curl and half a dozen other
 * libraries, and waits minutes for a silent server without a way to cancel that; therefore it is
 * loaded in a child process. It has its own cache of the files that it fetches. Root's child is
 * nobody, and so is the owner of its cache: whoever is nobody, too, may put wrong names there, but
 * what a server can make of the client cannot write to root's files.
 */
#include "symbol/symbolize/priv.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/error.h"

#define NO_LIBRARY 2 /* exit status */
#define CACHE_VARIABLE "DEBUGINFOD_CACHE_PATH"
#define ROOTS_CACHE "/var/cache/kprof/debuginfod"

/*
 * As in <elfutils/debuginfod.h> of libdebuginfod-dev, which is not required just for two functions.
 */
typedef struct debuginfod_client debuginfod_client;
typedef debuginfod_client *begin_fn(void);
typedef int find_fn(debuginfod_client *c, const char *build_id, int bytes, char **path);

bool symbol_debuginfod__configured(const struct symbolizer_opts *opts)
{
	const char *urls = getenv("DEBUGINFOD_URLS");

	return opts->debuginfod && urls && *urls;
}

/* The child's output. */
struct answer {
	/* libdebuginfod's: -ENOENT if every server has answered that it has no such file */
	int err;
	char path[PATH_MAX];
};

/*
 * Makes the cache that root's child uses, unless the user names one, which nobody must be able to
 * write to.
 */
static void make_cache(void)
{
	int fd;

	mkdir("/var/cache/kprof", 0755);
	mkdir(ROOTS_CACHE, 0700);
	fd = open(ROOTS_CACHE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return;
	if (fchown(fd, SYMBOL_CHILD_NOBODY, SYMBOL_CHILD_NOBODY))
		log_debug("cannot give %s to nobody: %s", ROOTS_CACHE, strerror(errno));
	close(fd);
}

/* What the child needs. */
struct question {
	const char *build_id;
	bool roots; /* the child of root, with the cache of make_cache() */
};

static int fetch(void *ctx, int fd)
{
	const struct question *q = ctx;
	void *lib = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
	begin_fn *begin = NULL;
	find_fn *find = NULL;
	debuginfod_client *c;
	struct answer answer = {.err = -EIO};
	char *found = NULL;

	if (lib) {
		*(void **)&begin = dlsym(lib, "debuginfod_begin");
		*(void **)&find = dlsym(lib, "debuginfod_find_debuginfo");
	}
	if (!begin || !find)
		return NO_LIBRARY;
	if (q->roots)
		setenv(CACHE_VARIABLE, ROOTS_CACHE, 0);
	c = begin();
	if (c)
		answer.err = find(c, q->build_id, 0 /* in hexadecimal */, &found);
	if (answer.err >= 0)
		answer.err = found && strlen(found) < sizeof(answer.path) ? 0 : -EIO;
	if (!answer.err)
		strcpy(answer.path, found);
	return write(fd, &answer, sizeof(answer)) == sizeof(answer) ? 0 : 1;
}

static atomic_bool missing;

bool symbol_debuginfod__missing(void)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	return missing && !atomic_flag_test_and_set(&said);
}

int symbol_debuginfod__fetch(const char *build_id, uint64_t time_ns, char **path)
{
	struct symbol_child_opts opts = {.user = SYMBOL_CHILD_NOBODY, .fd = -1, .time_ns = time_ns};
	struct question question = {.build_id = build_id, .roots = !geteuid()};
	struct answer answer;
	struct symbol_child c;
	int err, status;

	*path = NULL;
	if (!*build_id)
		return -ENOENT;
	if (question.roots && !getenv(CACHE_VARIABLE))
		make_cache();
	err = symbol_child__start(&c, fetch, &question, &opts);
	if (!err) {
		err = symbol_child__read(&c, &answer, sizeof(answer));
		status = symbol_child__end(&c, err < 0);
		if (status == NO_LIBRARY)
			missing = true;
		err = err ? -EIO : answer.err;
	}
	if (!err && memchr(answer.path, 0, sizeof(answer.path)))
		*path = strdup(answer.path);
	return *path || err ? err : -EIO;
}
