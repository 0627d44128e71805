// SPDX-License-Identifier: BSD-2-Clause
/*
 * May this thread be used now? It would call dlopen() and malloc() in the middle of its own work.
 * If it is inside the dynamic linker or an allocator, it would wait for ever for a lock that it
 * holds itself.
 *
 * So the functions on its stack are looked at. Code outside the C library holds none of the C
 * library's locks. What it called in the C library must be on a list of functions that hold none
 * either; what is not on the list, and what has no name, is refused, and another thread or moment
 * is tried. Where the stack cannot be unwound to its end (JIT code), every word of the rest that
 * looks like a return address is taken for one.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/rseq.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "capture/inject/priv.h"
#include "catalog/catalog.h"
#include "util/error.h"
#include "util/util.h"

#define USER_CS 0x33 /* 64-bit code */
#define REST_MAX_BYTES (8u << 20)

/*
 * Functions that wait in the kernel. Leading underscores and __libc_ are removed before the
 * comparison.
 */
static const char free_of_locks[] =
	"read pread pread64 readv preadv preadv64 write pwrite pwrite64 writev pwritev pwritev64 "
	"poll poll_chk ppoll ppoll_chk select pselect epoll_wait epoll_pwait epoll_pwait2 "
	"nanosleep clock_nanosleep usleep sleep pause sigsuspend sigwait sigwaitinfo sigtimedwait "
	"wait waitpid wait3 wait4 waitid recv recvfrom recvmsg recvmmsg send sendto sendmsg sendmmsg "
	"accept accept4 fsync fdatasync msync ioctl syscall sched_yield splice sendfile sendfile64 "
	"semop semtimedop msgrcv msgsnd flock fcntl fcntl64 lockf getrandom madvise "
	/* waiting for other threads */
	"pthread_cond_wait pthread_cond_timedwait pthread_cond_clockwait pthread_cond_signal "
	"pthread_cond_broadcast pthread_mutex_lock pthread_mutex_timedlock pthread_mutex_trylock "
	"pthread_mutex_unlock pthread_rwlock_rdlock pthread_rwlock_wrlock pthread_rwlock_unlock "
	"pthread_join pthread_timedjoin_np pthread_clockjoin_np pthread_barrier_wait pthread_once "
	"pthread_spin_lock sem_wait sem_timedwait sem_clockwait sem_post thrd_join mtx_lock cnd_wait "
	"cnd_timedwait "
	/* functions that only compute */
	"mem* rawmemchr bcmp bzero strlen strnlen strcmp strncmp strcasecmp strncasecmp strcpy strncpy "
	"strcat strncat strchr strchrnul strrchr strstr strspn strcspn strpbrk stpcpy stpncpy wcslen "
	"wmem* qsort qsort_r bsearch strto* isoc23_strto* abs labs rand_r "
	"clock_gettime gettimeofday time getpid gettid getppid getuid sched_getcpu getcpu "
	"pthread_self pthread_getspecific errno_location sysconf sigprocmask pthread_sigmask "
	"lseek lseek64 clock_getres sigemptyset sigaddset sigismember";
static const char not_so[] = "memalign mem*_alloc memopen*";
/*
 * Functions that, while they wait in the kernel, hold a lock of a stream or of their own, which the
 * injection does not take.
 */
static const char waiting_only[] =
	"fgets fgets_unlocked fread fread_unlocked getc getc_unlocked fgetc getchar getdelim getline "
	"fwrite fputs puts putc fputc putchar fflush printf fprintf vprintf vfprintf printf_chk "
	"fprintf_chk vprintf_chk vfprintf_chk uflow underflow overflow IO_* system pclose";

static const char first_functions[] =
	"libc_start_main* libc_start_call_main start_thread clone clone3";

static const char allocation[] = "*alloc* *free* *memalign* _Znw* _Zna* _Zdl* _Zda* *arena* je_* "
				 "*tcache* *extent* *mi_* sbrk brk mmap munmap";

/* Code in which no thread may be used, and what it does there. */
static const char *const forbidden[INJECT_CODE_NR] = {
	[INJECT_CODE_LOADER] = "in the dynamic linker",
	[INJECT_CODE_ALLOCATOR] = "in an allocator",
	[INJECT_CODE_UNWINDER] = "an exception is being thrown",
};
static const char in_no_file[] = "in code that is in no file";

/* ---- names in the C library ---- */

/* The function's name without decoration; "" when it has none. */
static const char *name_at(const struct inject_file *f, uint64_t pc)
{
	struct elffile_symbol s;

	if (!f->elf || pc < f->start || pc >= f->end ||
	    elffile__symbol_at(f->elf, pc - f->base, &s))
		return "";
	return s.name;
}

static const char *libc_name(const struct inject_target *t, uint64_t pc)
{
	const struct inject_file *files[] = {&t->libc, &t->libpthread, &t->libdl};
	const char *name = "";

	for (size_t i = 0; i < ARRAY_SIZE(files) && !*name; i++)
		name = name_at(files[i], pc);
	while (*name == '_')
		name++;
	return strncmp(name, "libc_", 5) || !strncmp(name, "libc_start_", 11) ? name : name + 5;
}

static bool is_allowed(const char *name, bool waiting)
{
	return (catalog_match(free_of_locks, name) && !catalog_match(not_so, name)) ||
	       (waiting && catalog_match(waiting_only, name));
}

/* ---- the frames ---- */

struct look {
	const struct inject_target *t;
	const struct inject_stack *s;
	bool waiting; /* the thread waits in a system call */
	char *why;
	size_t bytes;
};

static int no(const struct look *l, const char *what, const char *name)
{
	snprintf(l->why, l->bytes, "%s%s%s", what, *name ? " " : "", name);
	return -EAGAIN;
}

/*
 * Frames [from, to) are of the C library, innermost first. The last is the function that was called
 * from outside, and is judged by its name; the functions that it calls inside may have no name. The
 * outermost frames of a thread, which call its first function, have no name either.
 */
static int check_libc_frames(const struct look *l, size_t from, size_t to)
{
	const char *entry = libc_name(l->t, l->s->frames[to - 1].pc);
	bool first =
		catalog_match(first_functions, entry) || (!*entry && to == l->s->nr && l->s->whole);

	if (first)
		return from && to - from <= 2 ? 0 : no(l, "it starts or ends", "");
	if (!is_allowed(entry, l->waiting))
		return no(l, "in the C library:", *entry ? entry : "(unnamed)");
	for (size_t i = from; i < to; i++) {
		const char *name = libc_name(l->t, l->s->frames[i].pc);

		if (*name && !is_allowed(name, l->waiting))
			return no(l, "in the C library:", name);
	}
	return 0;
}

static int check_program_frame(const struct look *l, uint64_t pc)
{
	const struct inject_file *exe = &l->t->exe;
	const char *name;

	if (!l->t->exe_allocates || pc < exe->start || pc >= exe->end)
		return 0;
	name = name_at(exe, pc);
	if (!*name || catalog_match(allocation, name))
		return no(l, "in the program's own allocator:", *name ? name : "(unnamed)");
	return 0;
}

static int check_frames(const struct look *l)
{
	/*
	 * Also where handler and interrupted code are both of the C library: setuid() waits for its
	 * handler in every thread.
	 */
	for (size_t i = 0; i < l->s->nr; i++)
		if (l->s->frames[i].signal)
			return no(l, "in a signal handler", "");
	for (size_t i = 0; i < l->s->nr; i++) {
		enum inject_code code = inject_code_at(l->t, l->s->frames[i].pc);
		size_t from = i;
		int err = 0;

		if (forbidden[code])
			return no(l, forbidden[code], "");
		if (code == INJECT_CODE_OTHER)
			err = check_program_frame(l, l->s->frames[i].pc);
		/*
		 * Such code may hold any lock. Not so where it waits by a call of the C library's,
		 * as one does for input, but it must not do that itself. The rest of the stack is
		 * searched word by word.
		 */
		if (code == INJECT_CODE_UNKNOWN && (!i || !l->waiting))
			return no(l, in_no_file, "");
		if (code == INJECT_CODE_LIBC) {
			while (i + 1 < l->s->nr &&
			       inject_code_at(l->t, l->s->frames[i + 1].pc) == INJECT_CODE_LIBC)
				i++;
			err = check_libc_frames(l, from, i + 1);
		}
		if (err)
			return err;
	}
	return 0;
}

/* ---- the part of a stack that could not be unwound ---- */

static int check_word(const struct look *l, uint64_t word)
{
	const struct proc_map *map = proc_maps__find(l->t->maps, word);
	const char *name;
	enum inject_code code;

	if (!map || !(map->flags & PROC_MAP_EXEC))
		return 0;
	if (word == l->t->restore_rt)
		return no(l, "perhaps in a signal handler", "");
	code = inject_code_at(l->t, word);
	if (forbidden[code])
		return no(l, "perhaps", forbidden[code]);
	if (code == INJECT_CODE_UNKNOWN && !l->waiting)
		return no(l, "perhaps", in_no_file);
	if (code != INJECT_CODE_LIBC)
		return check_program_frame(l, word - 1);
	name = libc_name(l->t, word - 1);
	/* Functions without a name are called by one that has a name, or are the thread's first. */
	if (*name && !catalog_match(first_functions, name) && !is_allowed(name, l->waiting))
		return no(l, "perhaps in the C library:", name);
	return 0;
}

static int check_rest(const struct look *l)
{
	const struct proc_map *map = proc_maps__find(l->t->maps, l->s->reached);
	uint64_t from = l->s->reached & ~7ull, *words;
	size_t nr;
	int err = 0;

	if (l->s->whole)
		return 0;
	if (!map || map->end - from > REST_MAX_BYTES)
		return no(l, "its stack cannot be read", "");
	nr = (map->end - from) / sizeof(*words);
	words = malloc(nr * sizeof(*words) + 1);
	if (!words)
		return -ENOMEM;
	if (process_read(l->t->pid, from, words, nr * sizeof(*words)))
		err = no(l, "its stack cannot be read", "");
	for (size_t i = 0; i < nr && !err; i++)
		err = check_word(l, words[i]);
	free(words);
	return err;
}

/* ---- the thread ---- */

/*
 * Is the thread in a restartable sequence (librseq, tcmalloc)? After the injection it would go on
 * inside, though the sequence should be aborted.
 */
static bool in_restartable_sequence(const struct remote *r)
{
	struct __ptrace_rseq_configuration conf = {0};
	struct rseq_cs cs;
	uint64_t cs_at = 0;

	if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, r->tid, sizeof(conf), &conf) < 0 ||
	    !conf.rseq_abi_pointer)
		return false;
	if (process_read(r->pid, conf.rseq_abi_pointer + offsetof(struct rseq, rseq_cs), &cs_at,
			 sizeof(cs_at)) ||
	    !cs_at)
		return false;
	if (process_read(r->pid, cs_at, &cs, sizeof(cs)))
		return true;
	return r->regs.rip - cs.start_ip < cs.post_commit_offset;
}

/*
 * Checks that glibc has created the thread, and that it is on its own stack, not on that of a
 * signal or of a coroutine.
 */
static int check_stack(const struct look *l, const struct remote *r)
{
	const struct proc_map *map = proc_maps__find(l->t->maps, r->regs.rsp);
	uint64_t header[3]; /* tcbhead_t: tcb, dtv, self */

	if (r->regs.cs != USER_CS)
		return no(l, "in 32-bit code", "");
	if (!r->regs.fs_base || process_read(r->pid, r->regs.fs_base, header, sizeof(header)) ||
	    header[0] != r->regs.fs_base || header[2] != r->regs.fs_base)
		return no(l, "no thread of the C library", "");
	if (!map || !(map->flags & PROC_MAP_WRITE))
		return no(l, "on an unknown stack", "");
	if (r->tid == r->pid ? strcmp(map->path, "[stack]") != 0
			     : r->regs.fs_base < r->regs.rsp || r->regs.fs_base >= map->end)
		return no(l, "on a stack that is not the thread's own", "");
	return 0;
}

int inject_safe(const struct inject_target *t, struct inject_walker *w, const struct remote *r,
		char *why, size_t bytes)
{
	struct inject_stack stack = {0};
	struct look look = {
		.t = t, .s = &stack, .waiting = remote__in_syscall(r), .why = why, .bytes = bytes};
	int err;

	err = check_stack(&look, r);
	if (err)
		return err;
	if (in_restartable_sequence(r))
		return no(&look, "in a restartable sequence", "");
	inject_walker__walk(w, &r->regs, &stack);
	if (stack.table_missing)
		return no(&look, "an unwind table is not built yet", "");
	err = check_frames(&look);
	return err ? err : check_rest(&look);
}

/* ---- the order in which threads are tried ---- */

#define NOT_TO_BE_USED 9 /* a rank: threads of this rank are not tried */

/* Ranks a thread by the system call in which it waits. */
static int rank_of_call(long nr)
{
	switch (nr) {
	case SYS_futex:
	case SYS_poll:
	case SYS_read:
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
	case SYS_restart_syscall: /* one of the above that was interrupted before */
	case SYS_pread64:
	case SYS_readv:
		return 0;
	case SYS_select:
	case SYS_pselect6:
	case SYS_ppoll:
	case SYS_write:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_accept:
	case SYS_accept4:
	case SYS_ioctl:
	case SYS_flock:
	case SYS_pause:
	case SYS_rt_sigsuspend:
		return 1;
	/*
	 * While the thread is traced, a SIGCHLD of its child is not ignored, and wakes another
	 * thread, which then sees an EINTR.
	 */
	case SYS_wait4:
	case SYS_waitid:
		return 3;
	default:
		/*
		 * An EINTR is undone, but a timeout begins anew. That the others were stopped the
		 * program may notice.
		 */
		return inject_call_ends_when_stopped((uint64_t)nr) ? 3 : NOT_TO_BE_USED;
	}
}

/* Ranks a thread. False: it is not to be tried. */
static bool look_at(pid_t pid, struct inject_candidate *c)
{
	char state = proc_thread_state(pid, c->tid), *text;
	long nr;

	/* threads in state D do not stop; those in Z and X have ended */
	if (state != 'R' && state != 'S')
		return false;
	c->rank = 2; /* of a running thread */
	if (proc_thread_read(pid, c->tid, "syscall", &text))
		return true;
	/* "running", or a call's number, its six arguments, stack pointer and address */
	if (sscanf(text, "%ld %*s %*s %*s %*s %*s %*s %" SCNx64 " %" SCNx64, &nr, &c->sp, &c->ip) ==
		    3 &&
	    nr >= 0)
		c->rank = rank_of_call(nr);
	free(text);
	return c->rank != NOT_TO_BE_USED;
}

static int compare_candidates(const void *a, const void *b)
{
	const struct inject_candidate *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank - y->rank;
	return (x->tid > y->tid) - (x->tid < y->tid);
}

int inject_candidates(const struct inject_target *t, struct inject_candidate **out, size_t *nr)
{
	struct inject_candidate *candidates;
	pid_t *tids;
	size_t all, usable = 0;
	int err;

	err = proc_threads(t->pid, &tids, &all);
	if (err)
		return err;
	candidates = calloc(all, sizeof(*candidates));
	for (size_t i = 0; i < all && candidates; i++) {
		candidates[usable] = (struct inject_candidate){.tid = tids[i]};
		usable += look_at(t->pid, &candidates[usable]);
	}
	free(tids);
	if (!candidates)
		return error_set(-ENOMEM, NULL, "out of memory");
	qsort(candidates, usable, sizeof(*candidates), compare_candidates);
	*out = candidates;
	*nr = usable;
	return 0;
}
