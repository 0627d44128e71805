// SPDX-License-Identifier: BSD-2-Clause
/*
 * Records operators from inside: PyTorch calls a function of the agent at the begin and at the end
 * of each, as it does for its own profiler, which costs less than probes, and tells all that
 * PyTorch tells any observer (at::RecordFunction).
 *
 * Only loaded code is called that PyTorch exports: at::addGlobalCallback(), which takes a class of
 * 40 bytes in memory, as kprof has made sure by reading its code, at::removeCallback(), and of
 * at::RecordFunction name() and currentThreadId(). The first two may be called while operators run,
 * and take a lock of PyTorch's for a moment. There is one callback for each scope, so that a
 * callback knows the scope of its call. What a call is given is read from PyTorch's objects, where
 * kprof has learnt that it is.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <string.h>

#include "gpu/base/batch.h"
#include "gpu/base/util.h"
#include "gpu/pytorch/inputs.h"
#include "gpu/pytorch/open_spans.h"
#include "gpu/pytorch/pytorch.h"

#define LIBRARY "libtorch_cpu.so"
#define NAME_BYTES 512 /* longer names are cut */
#define USER_SCOPE 7   /* at::RecordScope of annotations */
#define FORK_WAIT_MS 100
#define START_WAIT_MS 1000
#define READ (KPROF_AGENT_OPT_INPUTS | KPROF_AGENT_OPT_SEQUENCE)

/* std::unique_ptr<at::ObserverContext>: returned through memory that the caller provides. */
struct context {
	void *pointer;
};
typedef struct context *(*start_callback)(struct context *result, const void *record);
typedef void (*end_callback)(const void *record, void *context);

/* at::RecordFunctionCallback, in all releases since 1.11. */
struct callback {
	start_callback start;
	end_callback end;
	double probability;
	uint8_t scopes[KPROF_AGENT_SCOPES];
	uint8_t needs_inputs, needs_outputs, needs_ids;
};
_Static_assert(sizeof(struct callback) == 40, "at::RecordFunctionCallback");

/* Of a process that was forked while callbacks were registered in its parent. */
enum child_state {
	NO_CHILD = 0,
	INHERITED, /* it has its parent's, which its first operator has removed */
	LEAVING,   /* a thread is about to remove those that it has */
	IDLE,      /* none are there, or kprof has them record */
};

static struct {
	uint64_t (*add)(struct callback callback);
	uint64_t (*add_here)(struct callback callback); /* for the calling thread; may be NULL */
	void (*remove)(uint64_t handle);
	const char *(*name)(const void *record);
	uint64_t (*thread)(void); /* PyTorch's number of the calling thread; may be NULL */

	struct gpu_lock
		lock; /* held to register or to remove callbacks, and by a thread that forks */
	uint64_t handle[KPROF_AGENT_SCOPES]; /* 0: not registered */
	uint32_t child;                      /* enum child_state */
	bool ticks;                          /* times are those of the time stamp counter */
	uint32_t read;                       /* what is read of objects (KPROF_AGENT_OPT_*), … */
	struct kprof_agent_layout layout;    /* … by this, which is set first */
	bool within;                         /* only what is inside of annotations of a name: */
	char wanted[KPROF_WITHIN_BYTES];
	uint32_t scopes;   /* … of these scopes, bits 1 << at::RecordScope */
	bool prepared;     /* the key and the handlers of fork exist */
	pthread_key_t key; /* holds the struct open_spans of each thread */
} o;

/* ---- callbacks: on the program's threads ---- */

static void thread_ends(void *spans)
{
	open_spans__free(spans);
}

static void leave_here(struct open_spans *spans);

/* Of the calling thread. NULL: nothing is recorded, or there is no memory. */
static struct open_spans *open_spans(void)
{
	struct open_spans *spans = pthread_getspecific(o.key);
	uint32_t session = batch__session();

	if (spans && spans->here && spans->session != session)
		leave_here(spans);
	if (!session)
		return NULL;
	if (!spans) {
		spans = gpu_pages(sizeof(*spans));
		if (spans && pthread_setspecific(o.key, spans)) {
			gpu_pages_free(spans, sizeof(*spans));
			spans = NULL;
		}
		if (!spans)
			return NULL;
	}
	if (spans->session != session)
		open_spans__reset(spans, session, gpu_tid(), o.ticks);
	return spans;
}

static void remove_all(void);

static void *remove_in_child(void *arg)
{
	(void)arg;
	gpu_lock(&o.lock);
	/* With the lock held: the agent may be registering them anew just now. */
	if (__atomic_load_n(&o.child, __ATOMIC_RELAXED) == LEAVING) {
		remove_all();
		__atomic_store_n(&o.child, IDLE, __ATOMIC_RELEASE);
	}
	gpu_unlock(&o.lock);
	return NULL;
}

/*
 * In a forked child, PyTorch's lock may have been held by a thread that the child lacks; it is then
 * held for ever. So what waits for it is a thread of its own. If there can be none, the callbacks
 * stay, and do nothing.
 */
static void leave_child(uint32_t expected)
{
	if (__atomic_compare_exchange_n(&o.child, &expected, LEAVING, false, __ATOMIC_ACQ_REL,
					__ATOMIC_RELAXED))
		gpu_thread(remove_in_child, NULL);
}

/* As the thread's stream has it, which the agent's thread does not change in a session. */
static uint64_t now(const struct open_spans *spans)
{
	return spans->stream.ticks ? gpu_ticks() : gpu_now_ns();
}

/* These are over, the innermost first; depth: how many spans were open with them. */
static void close_spans(struct open_spans *spans, uint32_t depth, uint32_t closed, uint64_t time)
{
	for (; closed; closed--)
		batch__span(&spans->stream, depth--, time, KPROF_AGENT_SPAN_CLOSED, NULL, 0);
}

struct more { /* entries that belong to that of a begin */
	struct kprof_agent_span entries[BATCH_SPAN_MORE];
	uint32_t nr;
};

static void add(struct more *m, uint64_t after, uint32_t what)
{
	m->entries[m->nr++] = (struct kprof_agent_span){(uint32_t)after, what};
}

static void add_sequence(struct more *m, struct open_spans *spans, const uint8_t *record)
{
	uint64_t number = *(const uint64_t *)(record + o.layout.inputs_off - 8);
	uint64_t maker = *(const uint64_t *)(record + o.layout.forward_off);
	uint32_t who;

	if (number > INT64_MAX)
		return;
	if (!spans->thread && o.thread)
		spans->thread = (uint32_t)o.thread();
	who = maker ? KPROF_AGENT_SPAN_NODE | (maker & KPROF_AGENT_SPAN_THREAD)
		    : spans->thread & KPROF_AGENT_SPAN_THREAD;
	add(m, number, KPROF_AGENT_SPAN_SEQUENCE | who);
	if (number >> 32)
		add(m, number >> 32, KPROF_AGENT_SPAN_SEQUENCE_HIGH | who);
}

static void add_inputs(struct more *m, struct open_spans *spans, const void *record)
{
	uint64_t *words = open_spans__words(spans);
	bool any = true;
	size_t nr = words ? inputs__read(&o.layout, record, words, &any) : 0;
	uint32_t id = nr ? open_spans__inputs(spans, nr) : 0;

	if (any) /* 0: which they are is not told */
		add(m, 0, KPROF_AGENT_SPAN_INPUTS | (id & KPROF_AGENT_SPAN_NAME));
}

/* A span begins: what belongs to it is read before the time is. */
static void begin(struct open_spans *spans, const void *record, uint32_t scope)
{
	const char *name = o.name(record);
	uint32_t id = name ? open_spans__name(spans, name, strnlen(name, NAME_BYTES)) : 0;
	uint32_t read = __atomic_load_n(&o.read, __ATOMIC_ACQUIRE);
	struct more more = {.nr = 0};

	if (read & KPROF_AGENT_OPT_SEQUENCE)
		add_sequence(&more, spans, record);
	if (read & KPROF_AGENT_OPT_INPUTS)
		add_inputs(&more, spans, record);
	batch__span(&spans->stream, spans->depth - 1, now(spans),
		    scope << KPROF_AGENT_SPAN_SCOPE_SHIFT | (id & KPROF_AGENT_SPAN_NAME),
		    more.entries, more.nr);
}

/* ---- only what is inside of annotations of a name ---- */

static bool is_wanted(const void *record)
{
	struct kprof_within_match m = {0};
	const char *name = o.name(record);
	enum kprof_within_verdict verdict = KPROF_WITHIN_MORE;

	for (uint32_t i = 0; name && i < KPROF_WITHIN_STEPS && verdict == KPROF_WITHIN_MORE; i++)
		verdict = kprof_within_step(&m, name[m.text], o.wanted[m.pattern]);
	return verdict == KPROF_WITHIN_SAME;
}

static struct callback callback_of(uint32_t scope);

/*
 * The thread is inside from now on: its operators have callbacks, and no other thread's. Those of
 * annotations are there on every thread. A thread must not fork while another one has PyTorch's
 * lock, which these functions take: so both need o.lock.
 */
static bool enter_here(struct open_spans *spans)
{
	if (!gpu_trylock(&o.lock, FORK_WAIT_MS))
		return false;
	for (uint32_t i = 0; i < KPROF_AGENT_SCOPES; i++)
		if (i != USER_SCOPE && o.scopes >> i & 1)
			spans->handle[i] = o.add_here(callback_of(i));
	spans->here = true;
	gpu_unlock(&o.lock);
	return true;
}

/*
 * The thread is outside. A child that was forked inside keeps its callbacks, which do nothing:
 * PyTorch's lock may be held there for ever.
 */
static void leave_here(struct open_spans *spans)
{
	if (!gpu_trylock(&o.lock, FORK_WAIT_MS))
		return; /* the thread's next operator tries again */
	for (uint32_t i = 0; i < KPROF_AGENT_SCOPES; i++) {
		if (spans->handle[i])
			o.remove(spans->handle[i]);
		spans->handle[i] = 0;
	}
	spans->here = false;
	gpu_unlock(&o.lock);
}

/*
 * Is this to be recorded, and is it one of those annotations (*wanted)? PyTorch hands a thread's
 * callbacks on to threads that work for it; these are outside.
 */
static bool is_inside(struct open_spans *spans, const void *record, uint32_t scope, bool *wanted)
{
	*wanted = scope == USER_SCOPE && is_wanted(record);
	if (spans->wanted)
		return true;
	if (*wanted && !spans->here && !enter_here(spans)) {
		__atomic_fetch_add(&gpu_shm()->not_entered, 1, __ATOMIC_RELAXED);
		return false;
	}
	if (*wanted)
		return true;
	if (spans->here)
		leave_here(spans);
	return false;
}

static void begins(const void *record, uint32_t scope)
{
	bool wanted = false;
	int saved = errno;
	struct open_spans *spans;
	uint32_t closed;

	if (__atomic_load_n(&o.child, __ATOMIC_RELAXED) == INHERITED)
		leave_child(INHERITED);
	spans = open_spans();
	closed = spans ? open_spans__settle(spans) : 0;
	if (closed)
		close_spans(spans, spans->depth + closed, closed, now(spans));
	/* told twice: a thread's own callbacks are there as well, perhaps of an earlier session */
	if (spans && open_spans__is_top(spans, record))
		spans = NULL;
	if (spans && o.within && !is_inside(spans, record, scope, &wanted))
		spans = NULL;
	if (spans && open_spans__push(spans, record, scope == USER_SCOPE, wanted))
		begin(spans, record, scope);
	errno = saved;
}

static void ends(const void *record, void *context)
{
	struct open_spans *spans = pthread_getspecific(o.key);
	struct open_spans_end end;
	int saved = errno;
	uint64_t time;
	uint32_t depth;

	(void)context;
	if (spans && spans->here && spans->session != batch__session())
		leave_here(spans);
	if (!spans || spans->session != batch__session()) {
		open_spans__elsewhere(record); /* nothing has begun on this thread */
		errno = saved;
		return;
	}
	time = now(spans);
	depth = spans->depth;
	end = open_spans__pop(spans, record);
	close_spans(spans, depth, end.closed, time);
	if (end.found)
		batch__span(&spans->stream, depth - end.closed, time,
			    KPROF_AGENT_SPAN_END | end.inside, NULL, 0);
	if (spans->here && !spans->wanted)
		leave_here(spans);
	errno = saved;
}

#define SCOPE(N)                                                                      \
	static struct context *begins_##N(struct context *result, const void *record) \
	{                                                                             \
		result->pointer = NULL;                                               \
		begins(record, N);                                                    \
		return result;                                                        \
	}
SCOPE(0)
SCOPE(1)
SCOPE(2)
SCOPE(3)
SCOPE(4)
SCOPE(5)
SCOPE(6)
SCOPE(7)
SCOPE(8)
SCOPE(9)
static const start_callback callbacks[KPROF_AGENT_SCOPES] = {
	begins_0, begins_1, begins_2, begins_3, begins_4,
	begins_5, begins_6, begins_7, begins_8, begins_9,
};

static struct callback callback_of(uint32_t scope)
{
	struct callback c = {.start = callbacks[scope], .end = ends, .probability = 1};

	c.scopes[scope] = 1;
	c.needs_inputs = (__atomic_load_n(&o.read, __ATOMIC_ACQUIRE) & KPROF_AGENT_OPT_INPUTS) != 0;
	return c;
}

/* ---- sessions: on the agent's thread ---- */

/* Called with the loader's lock held, so it calls no function of the loader. */
static int is_library(struct dl_phdr_info *info, size_t size, void *ctx)
{
	const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
	char *path = ctx;

	(void)size;
	if (!slash || strncmp(slash + 1, LIBRARY, strlen(LIBRARY)))
		return 0;
	gpu_append(path, 512, 0, info->dlpi_name);
	return 1;
}

static int probe(struct gpu_report *r)
{
	char path[512];
	void *library;

	if (o.name)
		return 0;
	if (!dl_iterate_phdr(is_library, path))
		return gpu_report(r, -EAGAIN, KPROF_AGENT_NO_RUNTIME, "PyTorch is not loaded",
				  NULL);
	library = dlopen(path, RTLD_NOLOAD | RTLD_LAZY);
	if (!library)
		return gpu_report(r, -EAGAIN, KPROF_AGENT_NO_RUNTIME, "PyTorch is being loaded",
				  NULL);
	/* the reference that dlopen() took is kept: its code may call back at any time */
	o.add = (uint64_t(*)(struct callback))dlsym(
		library, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE");
	o.remove = (void (*)(uint64_t))dlsym(library, "_ZN2at14removeCallbackEm");
	o.thread = (uint64_t(*)(void))dlsym(library, "_ZN2at14RecordFunction15currentThreadIdEv");
	o.add_here = (uint64_t(*)(struct callback))dlsym(
		library, "_ZN2at22addThreadLocalCallbackENS_22RecordFunctionCallbackE");
	if (o.add && o.remove)
		o.name = (const char *(*)(const void *))dlsym(library,
							      "_ZNK2at14RecordFunction4nameEv");
	if (o.name)
		return 0;
	return gpu_report(r, -ENOTSUP, KPROF_AGENT_BAD_VERSION,
			  "this build of PyTorch lacks the functions by which it is observed",
			  NULL);
}

/*
 * A thread must not fork while the agent's thread holds PyTorch's lock: nothing would release it in
 * the child.
 */
static uint32_t forking; /* the thread that holds o.lock to fork; 0: none */

static bool stuck; /* it was not to be had once: nobody waits for it any more */

static void before_fork(void)
{
	if (gpu_trylock(&o.lock, stuck ? 0 : FORK_WAIT_MS))
		__atomic_store_n(&forking, gpu_tid(), __ATOMIC_RELAXED);
	else
		stuck = true;
}

/* Threads fork at the same time: only one of them may have the lock. */
static void after_fork(void)
{
	if (__atomic_load_n(&forking, __ATOMIC_RELAXED) != gpu_tid())
		return;
	__atomic_store_n(&forking, 0, __ATOMIC_RELAXED);
	gpu_unlock(&o.lock);
}

static int prepare(void)
{
	int err = o.prepared ? 0 : pthread_key_create(&o.key, thread_ends);

	if (!err && !o.prepared)
		err = pthread_atfork(before_fork, after_fork, NULL);
	o.prepared |= !err;
	return -err;
}

/* o.lock is held. */
static void remove_one(uint32_t i)
{
	if (o.handle[i])
		o.remove(o.handle[i]);
	o.handle[i] = 0;
}

static void remove_all(void)
{
	for (uint32_t i = 0; i < KPROF_AGENT_SCOPES; i++)
		remove_one(i);
}

/* A callback of an earlier session may still be running. */
static void set_options(uint32_t options)
{
	o.ticks = options & KPROF_AGENT_OPT_TICKS && gpu_ticks();
	if (options & READ)
		o.layout = gpu_shm()->layout;
	o.scopes = options / KPROF_AGENT_OPT_SCOPES(1);
	o.within = options & KPROF_AGENT_OPT_WITHIN;
	if (o.within) {
		memcpy(o.wanted, gpu_shm()->within, sizeof(o.wanted));
		o.wanted[sizeof(o.wanted) - 1] = 0;
	}
	__atomic_store_n(&o.read, options & READ, __ATOMIC_RELEASE);
	gpu_shm()->not_entered = 0;
	gpu_shm()->options_done = options;
}

static int start(uint64_t types, uint32_t options, struct gpu_report *r)
{
	int err = prepare();

	(void)types;
	if (err)
		return gpu_report(r, err, KPROF_AGENT_NO_MEMORY, "no memory for the observer",
				  NULL);
	if (options & KPROF_AGENT_OPT_WITHIN && !o.add_here)
		return gpu_report(r, -ENOTSUP, KPROF_AGENT_BAD_VERSION,
				  "this build of PyTorch has no callbacks of single threads, which "
				  "--within needs",
				  NULL);
	if (!gpu_trylock(&o.lock, START_WAIT_MS))
		return gpu_report(r, -EBUSY, KPROF_AGENT_OTHER,
				  "PyTorch's list of observers has been locked since this process "
				  "was forked",
				  NULL);
	if (o.child)
		__atomic_store_n(&o.child, IDLE, __ATOMIC_RELEASE);
	if ((o.read ^ options) & KPROF_AGENT_OPT_INPUTS)
		remove_all(); /* the parent's, which asked for something else */
	set_options(options);
	for (uint32_t i = 0; i < KPROF_AGENT_SCOPES; i++) {
		if (o.within ? i == USER_SCOPE : o.scopes >> i & 1)
			o.handle[i] = o.handle[i] ? o.handle[i] : o.add(callback_of(i));
		else
			remove_one(i); /* that the parent had, which forked this process */
	}
	gpu_unlock(&o.lock);
	return 0;
}

static void stop(void)
{
	if (o.child) {
		leave_child(IDLE);
		return;
	}
	gpu_lock(&o.lock);
	remove_all();
	gpu_unlock(&o.lock);
}

static void forked(void)
{
	struct open_spans *spans = o.prepared ? pthread_getspecific(o.key) : NULL;
	bool any = false;

	if (spans) /* of the only thread, which has another id now */
		open_spans__reset(spans, 0, 0, false);
	if (spans) {
		spans->here = false;
		memset(spans->handle, 0, sizeof(spans->handle));
	}
	o.lock.state = 0;
	forking = 0;
	stuck = false;
	for (uint32_t i = 0; i < KPROF_AGENT_SCOPES; i++)
		any |= o.handle[i] != 0;
	o.child = any ? INHERITED : NO_CHILD;
}

const struct gpu_module gpu_pytorch = {
	.runtime = KPROF_AGENT_PYTORCH,
	.probe = probe,
	.start = start,
	.stop = stop,
	.forked = forked,
};
