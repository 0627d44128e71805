// SPDX-License-Identifier: BSD-2-Clause
/*
 * Demangling in a child process without any rights, because libiberty was not made for hostile
 * names, and whoever finds a mistake in it must not get root for it. The child reads a name from a
 * socket and writes the text to it; it can do nothing else. One that crashes or takes too long
 * costs a name, and after some of these, names stay as they are.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "symbol/names/demangle.h"
#include "symbol/names/names.h"
#include "util/error.h"
#include "util/haste.h"
#include "util/sandbox.h"
#include "util/util.h"

#define NOBODY 65534
#define MOST_CHILDREN 16
#define PATIENCE_MS 1000
#define REQUEST_BYTES (DEMANGLE_INPUT_MOST + 2)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool wanted;
static pid_t owner, child; /* child 0: there is none */
static int socket_fd;
static unsigned int nr_children;
static const char *unconfined; /* why there can be no child; NULL: there can */

/* ---- the child ---- */

static int service_fd;

/* Runs on a stack that is large enough for the longest name. */
static void serve(void)
{
	static char request[REQUEST_BYTES];

	for (;;) {
		ssize_t n = read(service_fd, request, sizeof(request) - 1);
		char *text;

		if (n <= 0)
			_exit(0);
		request[n] = '\0';
		text = demangle_here(request + 1, request[0] == 't', true);
		/* The longest texts do not fit a message: these names stay as they are. */
		if (!text || write(service_fd, text, strlen(text) + 1) < 0)
			if (write(service_fd, "", 1) < 0)
				_exit(1);
		free(text);
	}
}

static _Noreturn void be_child(int fd, pid_t parent)
{
	const struct rlimit none = {0, 0};
	ucontext_t here, there;
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	service_fd = 0;
	if (dup2(fd, 0) || close_range(1, ~0u, 0) || !sandbox_become(NOBODY, NOBODY))
		_exit(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* after setresuid(), which clears it */
	prctl(PR_SET_NAME, "kprof-names");
	haste__drop();
	setrlimit(RLIMIT_CORE, &none);
	setrlimit(RLIMIT_FSIZE, &none);
	if (getppid() != parent || getcontext(&there))
		_exit(1);
	there.uc_stack.ss_size = DEMANGLE_STACK_BYTES;
	there.uc_stack.ss_sp = mmap(NULL, DEMANGLE_STACK_BYTES, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	if (there.uc_stack.ss_sp == MAP_FAILED)
		_exit(1);
	makecontext(&there, serve, 0);
	if (sandbox_keep(0) || sandbox_only_reads() || write(0, "", 1) != 1)
		_exit(1);
	swapcontext(&here, &there);
	_exit(1);
}

/* ---- this process ---- */

static void end(void)
{
	close(socket_fd);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	child = 0;
}

/* False: nothing came in time. */
static bool answered(void)
{
	struct pollfd p = {.fd = socket_fd, .events = POLLIN};
	int n;

	do
		n = poll(&p, 1, PATIENCE_MS);
	while (n < 0 && errno == EINTR);
	return n == 1;
}

static bool start(void)
{
	pid_t parent = getpid();
	char ready;
	int fds[2];

	if (unconfined || nr_children == MOST_CHILDREN ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return false;
	nr_children++;
	child = fork();
	if (!child)
		be_child(fds[1], parent);
	close(fds[1]);
	socket_fd = fds[0];
	if (child < 0) {
		child = 0;
		close(fds[0]);
		return false;
	}
	owner = parent;
	/* It says that it is confined. */
	if (read(socket_fd, &ready, 1) == 1)
		return true;
	end();
	unconfined = sandbox_lacks_for_users()
			     ?: "this kernel, or what kprof runs in, confines no process (seccomp)";
	log_warn("kprof export, on another machine, shows them",
		 "names of C++ and Rust stay mangled: %s", unconfined);
	return false;
}

static char *ask(const char *request, size_t bytes)
{
	size_t room = DEMANGLE_OUTPUT_MOST + 1;
	char *text = malloc(room);
	ssize_t n = -1;

	if (text && send(socket_fd, request, bytes, MSG_NOSIGNAL) == (ssize_t)bytes && answered())
		n = recv(socket_fd, text, room, 0);
	if (n > 1 && !text[n - 1])
		return text;
	free(text);
	if (n <= 0)
		end();
	return NULL;
}

void demangle_apart(void)
{
	wanted = true;
}

static bool is_apart(void)
{
	return wanted && geteuid() == 0 && (!owner || owner == getpid());
}

static char *demangle_there(const char *mangled, bool type)
{
	size_t bytes = strnlen(mangled, DEMANGLE_INPUT_MOST + 1);
	char *request = NULL, *text = NULL;

	if (bytes <= DEMANGLE_INPUT_MOST)
		request = xasprintf("%c%s", type ? 't' : 'n', mangled);
	if (!request)
		return NULL;
	pthread_mutex_lock(&lock);
	if (child || start())
		text = ask(request, bytes + 1);
	pthread_mutex_unlock(&lock);
	free(request);
	return text;
}

__attribute__((destructor)) static void finish(void)
{
	if (!child || owner != getpid())
		return;
	close(socket_fd); /* at the socket's end, the child ends */
	for (int i = 0; i < 100 && !waitpid(child, NULL, WNOHANG); i++)
		poll(NULL, 0, 1);
}

/* ---- names.h ---- */

static char *demangled(const char *mangled, bool type)
{
	return is_apart() ? demangle_there(mangled, type) : demangle_here(mangled, type, false);
}

char *demangle(const char *mangled)
{
	char *name = NULL;
	const char *marked = mangled;

	/* Some compilers prefix one more underscore. */
	if (!strncmp(mangled, "__Z", 3) || !strncmp(mangled, "__R", 3))
		marked++;
	/* Other names are left alone: as types, "i" or "f" would become "int" or "float". */
	if (!strncmp(marked, "_Z", 2) || !strncmp(marked, "_R", 2))
		name = demangled(marked, false);
	return name ? name : strdup(mangled);
}

char *demangle_type(const char *typeinfo_name)
{
	char *name;

	/* A leading * marks a type whose name is compared by address (local to a library). */
	if (*typeinfo_name == '*')
		typeinfo_name++;
	name = demangled(typeinfo_name, true);
	return name ? name : strdup(typeinfo_name);
}
