// SPDX-License-Identifier: BSD-2-Clause
/*
 * Records of the kernel's programs, of any kind and with anything in them: from the ring through
 * the session to the capture, which must read back whole. The processes' memory answers with bytes
 * of the input, too; the kernel (attacher__…) agrees to everything. Each record is alone in its
 * ring, so that the sanitizer sees what is read beyond it.
 *
 * Input: records, each after eight bytes that say what it is (struct step). Its length says which
 * processes are recorded, and whether there are counters behind the records.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <unistd.h>

#include "capture/probe/set_impl.h"
#include "capture/ring/ring_priv.h"
#include "capture/session/session.h"
#include "fuzz.h"
#include "target_memory.h"
#include "util/util.h"

#define FIRST_PID 0x70000000u /* no process has such a number */
#define NR_PIDS 4
#define MOST_PROBES 256
#define MOST_STEPS 256

/* ---- the processes' memory, and the kernel ---- */

int attacher__add_target(struct attacher *a, uint32_t pid, uint32_t *space)
{
	*space = pid;
	return 0;
}

int attacher__remove_target(struct attacher *a, uint32_t pid)
{
	return 0;
}

int attacher__leave_out(struct attacher *a, uint32_t pid, bool was_target)
{
	return 0;
}

bool attacher__let_in(struct attacher *a, uint32_t pid)
{
	return false;
}

size_t attacher__take_renamed(struct attacher *a, uint32_t *pids, size_t most)
{
	return 0;
}

void attacher__count_ended(struct attacher *a, uint64_t since_ns)
{
}

int attacher__next_ended(const struct attacher *a, const struct kprof_wire_name *after,
			 struct kprof_wire_name *name, struct kprof_wire_ended *out)
{
	return -ENOENT;
}

int attacher__follow(struct attacher *a, uint32_t space, uint64_t ret, uint32_t bytes, bool keeps)
{
	return 0;
}

void attacher__unfollow(struct attacher *a, uint32_t space, uint64_t ret_addr)
{
}

void attacher__sited(struct attacher *a, uint32_t space, uint64_t ret_addr)
{
}

int attacher__placed(struct attacher *a, const struct kprof_wire_file *file,
		     const struct kprof_wire_placed *placed)
{
	return 0;
}

void attacher__forget_placed(struct attacher *a)
{
}

int attacher__foreign(const struct attacher *a, struct kprof_wire_foreign *out)
{
	*out = (struct kprof_wire_foreign){0};
	return 0;
}

int attacher__set_probe(struct attacher *a, uint32_t index, const struct kprof_wire_probe *p)
{
	return 0;
}

int attacher__set_inputs(struct attacher *a, uint32_t index, const struct kprof_inputs_plan *plan)
{
	return 0;
}

int attacher__set_sequence(struct attacher *a, uint32_t space,
			   const struct kprof_wire_sequence *sequence)
{
	return 0;
}

int attacher__attach(struct attacher *a, enum attach_program program, pid_t pid, const char *path,
		     const struct attach_point *points, size_t nr, struct attach_links *links)
{
	return 0;
}

const char *attacher__why(int err)
{
	return "";
}

void attacher__wake_me(struct attacher *a)
{
}

int attacher__counts(const struct attacher *a, uint32_t source, struct kprof_wire_count *out)
{
	*out = (struct kprof_wire_count){0};
	return 0;
}

void attacher__stack_maps(const struct attacher *a, struct unwinder_maps *out)
{
	abort(); /* no stacks are recorded */
}

int attacher__sample_program(struct attacher *a, uint32_t source)
{
	abort();
}

void attacher__stack_source(struct attacher *a, uint32_t source)
{
	abort();
}

void attacher__wait_source(struct attacher *a, uint32_t source)
{
}

void attacher__wait_stack_source(struct attacher *a, uint32_t source)
{
	abort();
}

void attacher__wait_stacks(struct attacher *a, double share)
{
	abort();
}

void attacher__wait_window(struct attacher *a, uint64_t from_ns, uint64_t until_ns)
{
	abort();
}

void attacher__stop_waits(struct attacher *a)
{
	abort();
}

int attacher__start_waits(struct attacher *a)
{
	abort();
}

/* What the kernel's table of waits has of a thread is of the input, too. */
int attacher__wait_of(const struct attacher *a, uint32_t tid, struct kprof_wait *out)
{
	size_t bytes = memory.left < sizeof(*out) ? memory.left : sizeof(*out);

	memset(out, 0, sizeof(*out));
	memcpy(out, memory.at, bytes);
	out->number = (uint64_t)FIRST_PID << 32 | (FIRST_PID + tid % 8);
	return 0;
}

int attacher__wait_each(const struct attacher *a,
			int (*fn)(void *ctx, struct kprof_wait *w, uint64_t before_ns), void *ctx)
{
	struct kprof_wait w;
	int err = 0;

	for (uint32_t tid = 1; tid <= 4 && !err && !attacher__wait_of(a, tid, &w); tid++)
		err = fn(ctx, &w, clock_mono_ns());
	return err;
}

uint64_t attacher__waits_unseen(const struct attacher *a)
{
	return 0;
}

uint64_t attacher__waits_refused(const struct attacher *a)
{
	return 0;
}

/* ---- the session ---- */

static const struct kprof_python *no_layout(void *ctx, const struct target *t, bool *known)
{
	*known = false;
	return NULL;
}

static struct thread *thread_of(void *ctx, struct target *t, uint64_t pid_tgid, uint64_t time_ns)
{
	return thread__of(ctx, t, pid_tgid, time_ns);
}

static int no_drain(void *ctx)
{
	return 0;
}

/* A probe for each row of the catalog. */
static void add_probes(struct kprof_session *s)
{
	struct probe_set *ps = s->probes;
	uint32_t key = recorder__string(s->recorder, "argument");

	ps->probes = calloc(MOST_PROBES, sizeof(*ps->probes));
	REQUIRE(ps->probes);
	for (const struct catalog_framework *const *fw = catalog_frameworks; *fw; fw++) {
		for (size_t i = 0; i < (*fw)->nr_rows && ps->nr < MOST_PROBES; i++) {
			struct probe *p = &ps->probes[ps->nr++];

			*p = (struct probe){.row = &(*fw)->rows[i], .row_id = (uint32_t)ps->nr};
			REQUIRE(!recorder__source(s->recorder, p->row->source, &p->source));
			p->group = 1ull << (ps->nr % 8);
			p->folded_into = p->row->folded_into ? 2 : 0;
			p->args_read = p->row->collective || p->row->message ? UINT32_MAX : 0;
			if (p->row->naming == CATALOG_NAME_FIXED) {
				p->name = strdup(p->row->name ? p->row->name : "name");
				p->overload = strdup("");
			}
			for (size_t k = 0; k < KPROF_WIRE_MAX_ARGS; k++)
				p->keys[k] = key;
		}
	}
}

static void add_target(struct kprof_session *s, uint32_t pid)
{
	static const char maps[] =
		"10000-20000 r-xp 00000000 fe:01 77                         /nowhere/libtorch_cpu.so\n"
		"7fff0000-7fff8000 rw-p 00000000 00:00 0                    [stack]\n";
	struct target *t;

	REQUIRE(!process__add(s, pid, false, 1));
	t = targets__find(s->targets, pid);
	REQUIRE(t);
	REQUIRE(!proc_maps__parse(maps, &t->maps));
	t->maps_ns = UINT64_MAX; /* not to be read again */
}

/* Which processes are recorded. */
enum who { GIVEN, ALL_SAMPLED, ALL_PROBED };

static bool wants(void *ctx, uint64_t pid_tgid)
{
	return session_wants(ctx, pid_tgid);
}

static void start(struct kprof_session *s, const char *path, enum who who, bool counted)
{
	const struct probe_set_opts probes = {.filter = &s->filter,
					      .children = KPROF_CHILDREN_FOLLOW};
	struct thread_names_opts names = {.layout = no_layout, .ctx = s};
	struct overhead_opts cost = {.most = 0.02, .with_probes = true};
	struct agents_opts agents = {.ctx = s, .thread = thread_of, .drain = no_drain};
	struct waits_opts waits = {.ctx = s, .wants = wants, .thread = thread_of};
	struct probe_set_opts p = probes;
	uint32_t index;

	s->opts = (struct kprof_session_opts){
		.sz = sizeof(s->opts),
		.agent = KPROF_AGENT_NONE,
		.children = who == ALL_SAMPLED ? KPROF_CHILDREN_NONE : KPROF_CHILDREN_FOLLOW,
		.all_processes = who != GIVEN};
	s->machine = who == ALL_SAMPLED;
	s->joining = who == ALL_PROBED;
	REQUIRE(!recorder__new(path, NULL, &s->recorder));
	REQUIRE(!recorder__source(s->recorder, "return_sites", &index));
	REQUIRE(!recorder__source(s->recorder, "tasks", &index));
	REQUIRE(!targets__new(&s->targets) && !threads__new(&s->threads));
	REQUIRE(!dispatch__spans_new(s));
	if (counted) {
		REQUIRE(!counters__new("page-faults,task-clock", s->recorder, &s->counters));
		spans__with_counters(s->spans, 1 + counters__nr(s->counters));
	}
	p.recorder = names.recorder = agents.recorder = s->recorder;
	p.targets = names.targets = agents.targets = s->targets;
	names.threads = agents.threads = s->threads;
	REQUIRE(!probe_set__new(&p, &s->probes));
	add_probes(s);
	REQUIRE(!recorder__source(s->recorder, "annotations", &s->probes->mark_source));
	names.probes = agents.probes = s->probes;
	agents.session = &s->opts;
	REQUIRE(!namer__new(s->recorder, s->targets, &s->filter, &s->namer));
	REQUIRE(!calls__new(s->recorder, s->targets, s->probes, &s->calls));
	REQUIRE(!marks__new(s->recorder, s->spans, &s->filter, &s->marks));
	REQUIRE(!memory__new(s->recorder, s->targets, NULL, &s->memory));
	REQUIRE(!collectives__new(s->recorder, s->targets, &s->rank_pid, &s->collectives));
	REQUIRE(!thread_names__new(&names, &s->thread_names));
	REQUIRE(!agents__new(&agents, &s->agents));
	waits.recorder = s->recorder;
	waits.targets = s->targets;
	waits.threads = s->threads;
	REQUIRE(!waits__new(&waits, &s->waits));
	cost.recorder = s->recorder;
	cost.targets = s->targets;
	cost.probes = s->probes;
	REQUIRE(!overhead__new(&cost, &s->overhead));
	for (uint32_t i = 0; i < 2; i++)
		add_target(s, FIRST_PID + i);
}

static void stop(struct kprof_session *s)
{
	recorder__close_window(s->recorder, UINT64_MAX / 4);
	REQUIRE(!s->machine || (!machine__close(s) && !machine__finish(s)));
	REQUIRE(!waits__finish(s->waits));
	REQUIRE(!spans__finish(s->spans));
	REQUIRE(!memory__account(s->memory));
	REQUIRE(!recorder__finish(s->recorder, UINT64_MAX / 4));
	free(s->early_waits.data);
	copied_walker__free(s->walker);
	overhead__free(s->overhead);
	agents__free(s->agents);
	waits__free(s->waits);
	thread_names__free(s->thread_names);
	collectives__free(s->collectives);
	memory__free(s->memory);
	marks__free(s->marks);
	calls__free(s->calls);
	namer__free(s->namer);
	spans__free(s->spans);
	probe_set__free(s->probes);
	threads__free(s->threads);
	targets__free(s->targets);
	counters__free(s->counters);
	recorder__free(s->recorder);
	map64__free(&s->users);
}

static void read_back(const char *path)
{
	struct store_reader_info info;
	struct store_reader *reader;
	struct store_record r;
	int n;

	REQUIRE(!store_reader__open(path, &reader));
	do
		n = store_reader__next(reader, &r);
	while (n == 1);
	store_reader__info(reader, &info);
	REQUIRE(!n && info.complete && !info.lost_bytes);
	store_reader__close(reader);
}

/* ---- records ---- */

struct step {
	uint8_t kind; /* 0: the window opens */
	uint8_t task; /* process and thread */
	uint8_t id;
	uint8_t time;  /* since the record before */
	uint16_t body; /* bytes after the header */
	uint8_t sp;
	uint8_t wrong; /* 0: the sizes are right */
};

/* The record with the ring's header; the fields that lead out of this program are tamed. */
static uint8_t *make(struct fuzz_input *in, const struct step *e, uint64_t time_ns, size_t counters,
		     uint64_t *bytes)
{
	size_t body = e->body % 1100, len = sizeof(struct kprof_wire_hdr) + body;
	size_t own = body >= counters ? len - counters : len; /* the last bytes are counters */
	struct kprof_wire_hdr h = {
		.time_ns = time_ns,
		.pid_tgid = (uint64_t)(FIRST_PID + e->task % NR_PIDS) << 32 |
			    (FIRST_PID + e->task / NR_PIDS % 8),
		.sp = 0x7fff0000 + e->sp * 8ull,
		.id = e->id,
		.kind = e->kind % (KPROF_WIRE_SEEN + 1),
		.size = (uint16_t)(e->wrong ? e->wrong * 3 : own),
	};
	uint32_t length = (uint32_t)len;
	uint8_t *record;

	if (e->wrong & 0x80)
		length = length * e->wrong / 64;
	*bytes = BPF_RINGBUF_HDR_SZ + ((len + 7) & ~7ull);
	record = calloc(1, *bytes);
	REQUIRE(record);
	memcpy(record, &length, sizeof(length));
	memcpy(record + BPF_RINGBUF_HDR_SZ, &h, sizeof(h));
	if (body > in->left)
		body = in->left;
	memcpy(record + BPF_RINGBUF_HDR_SZ + sizeof(h), in->at, body);
	in->at += body;
	in->left -= body;
	if (h.kind == KPROF_WIRE_FORK && len >= sizeof(struct kprof_wire_task)) {
		struct kprof_wire_task *t = (void *)(record + BPF_RINGBUF_HDR_SZ);

		t->child_pid = FIRST_PID + t->child_pid % NR_PIDS;
	}
	return record;
}

static void pass(struct kprof_session *s, uint8_t *record, uint64_t bytes)
{
	uint64_t consumer = 0, producer = bytes;

	s->rings->ring[0] = (struct ring){.consumer = &consumer,
					  .producer = &producer,
					  .data = record,
					  .bytes = 1 << 16,
					  .counters_bytes = counters__wire_bytes(s->counters),
					  .fd = -1};
	REQUIRE(dispatch__drain(s, true) >= 0);
	REQUIRE(rings__empty(s->rings) && consumer == producer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static char path[64];
	struct kprof_session s = {0};
	struct fuzz_input in = {data, bytes};
	uint64_t time_ns = 1000;
	struct rings *rings = calloc(1, sizeof(*rings) + sizeof(struct ring));

	if (!path[0])
		snprintf(path, sizeof(path), "/dev/shm/kprof-fuzz-dispatch.%d", (int)getpid());
	REQUIRE(rings);
	rings->nr = 1;
	rings->epoll_fd = -1;
	memory = in;
	start(&s, path, (enum who)(bytes % 3), bytes / 3 % 2);
	s.rings = rings;
	for (int i = 0; i < MOST_STEPS && in.left >= sizeof(struct step); i++) {
		struct step step;
		uint8_t *record;
		uint64_t n;

		memcpy(&step, in.at, sizeof(step));
		in.at += sizeof(step);
		in.left -= sizeof(step);
		time_ns += step.time;
		if (!step.kind) {
			if (!recorder__window(s.recorder)->open)
				recorder__open_window(s.recorder, time_ns);
			continue;
		}
		record = make(&in, &step, time_ns, counters__wire_bytes(s.counters), &n);
		pass(&s, record, n);
		free(record);
	}
	stop(&s);
	free(rings);
	read_back(path);
	unlink(path);
	return 0;
}
