/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of user/store share: a scratch directory, a sample capture, reading with checks.
 */
#ifndef KPROF_TESTS_STORE_FIXTURE_H
#define KPROF_TESTS_STORE_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kprof.h"
#include "store/store.h"
#include "unit.h"
#include "util/util.h"

static char scratch[64];

static inline void scratch__make(void)
{
	snprintf(scratch, sizeof(scratch), "/tmp/kprof-store-XXXXXX");
	if (!mkdtemp(scratch))
		abort();
}

/* A name in the scratch directory; valid until thirty more were asked for. */
static inline const char *in_scratch(const char *name)
{
	static char paths[32][sizeof(scratch) + 512];
	static int next;
	char *path = paths[next++ & 31];

	snprintf(path, sizeof(paths[0]), "%s/%s", scratch, name);
	return path;
}

/*
 * A small file system of its own in a new directory there, which nobody else sees; in a chroot
 * whose root is no mount (EINVAL) others may. False: it cannot be mounted, and the test says that
 * it skips.
 */
static inline bool scratch__mount(const char *path, const char *options)
{
	CHECK_EQ(mkdir(path, 0700), 0);
	if (!unshare(CLONE_NEWNS) &&
	    (!mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) || errno == EINVAL) &&
	    !mount("none", path, "tmpfs", 0, options))
		return true;
	printf("# skipped: needs a mount of its own (%s)\n", strerror(errno));
	return false;
}

static inline void scratch__remove(void)
{
	char command[sizeof(scratch) + 16];

	snprintf(command, sizeof(command), "rm -rf '%s'", scratch);
	CHECK_EQ(system(command), 0);
}

static inline void spit(const char *path, const void *bytes, size_t nr)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, bytes, nr) != (ssize_t)nr)
		abort();
	close(fd);
}

static inline uint8_t *slurp(const char *path, size_t *nr)
{
	char *bytes;

	if (read_file(path, 64 << 20, &bytes, nr))
		abort();
	return (uint8_t *)bytes;
}

static const struct store_line sample_lines[STORE_MAX_LINES] = {
	{1, 4, 17, 0},
	{0, 0, UINT32_MAX, UINT32_MAX},
	{2, 1, 0, 1},
};

/* One record of each kind and the extremes of its fields, in an order that the writer accepts. */
static const struct store_record sample_tables[] = {
	{STORE_META, .meta = {"kernel", "\"6.1.0 \\u00fc\""}},
	{STORE_META, .meta = {"empty", ""}},
	{STORE_STRING, .string = {1, 9, "aten::add"}},
	{STORE_STRING, .string = {2, 6, "Tensor"}},
	{STORE_STRING, .string = {3, 6, "cpu_op"}},
	{STORE_STRING, .string = {4, 5, "\x01\xff\xfe\"\n"}},
	{STORE_PROCESS, .process = {4242, 1, 7, 4, 0, 1000, 0}},
	{STORE_PROCESS, .process = {UINT32_MAX, 4242, 0, 1, 2, UINT64_MAX, UINT64_MAX}},
	{STORE_THREAD, .thread = {0, 4242, 4242, 4, 1000, 0}},
	{STORE_THREAD, .thread = {1, 4242, 4243, 0, 2000, 9000}},
	{STORE_THREAD, .thread = {0, 4242, 4242, 1, 1000, 8000}},
	{STORE_SOURCE, .source = {0, 3, 0, 0, 0, 0, 0, 0, 0, 0}},
	{STORE_SOURCE, .source = {0, 3, UINT64_MAX, 2, 3, 4, 5, 6, 7, 8}},
	{STORE_DESCRIPTION, .description = {1, 1, 2, 3, 0, 0}},
	{STORE_DESCRIPTION, .description = {2, 4, 0, 3, 0, KPROF_EVENT_UNNAMED}},
	{STORE_GAP, .gap = {4242, 3, 4, 100, UINT64_MAX}},
	{STORE_CLOCK, .clock = {123456789, 1700000000123456789}},
	{STORE_MODULE, .module = {1, STORE_MODULE_FILE, 1, 4}},
	{STORE_MODULE, .module = {2, UINT32_MAX, 0, 0}},
	{STORE_FRAME, .frame = {1, STORE_FRAME_NATIVE, 1, 0x1234, 0, 0, NULL}},
	{STORE_FRAME, .frame = {2, STORE_FRAME_PYTHON, 0, 0, 1, 1, sample_lines}},
	{STORE_FRAME,
	 .frame = {1, STORE_FRAME_NATIVE, 2, UINT64_MAX, 4, 2, sample_lines}}, /* again */
	{STORE_FRAME, .frame = {3, UINT32_MAX, 1, 1, 0, STORE_MAX_LINES, sample_lines}},
	{STORE_STACK, .stack = {1, 0, 3}},
	{STORE_STACK, .stack = {2, 1, 1}},
	{STORE_STACK, .stack = {3, 1, 3}},
	{STORE_THREAD_NAME, .thread_name = {0, 4}},
	{STORE_THREAD_NAME, .thread_name = {1, 0}},
	{STORE_THREAD_NAME, .thread_name = {0, 1}}, /* again */
	{STORE_OWNER, .owner = {4242, 1000, 1, 2, 1000}},
	{STORE_OWNER, .owner = {UINT32_MAX, UINT32_MAX, 0, 0, UINT64_MAX}},
	{STORE_EXECUTABLE, .executable = {4242, 1, 1000}},
	{STORE_EXECUTABLE, .executable = {UINT32_MAX, 0, UINT64_MAX}},
	{STORE_PROCESS_EXIT, .process_exit = {4242, 11, 1000}},
	{STORE_PROCESS_EXIT, .process_exit = {UINT32_MAX, UINT32_MAX, UINT64_MAX}},
	{STORE_NN_MODULE, .nn_module = {1, 1, 2, 1, 0}},
	{STORE_NN_MODULE, .nn_module = {2, 0, 0, 0, UINT64_MAX}},
	{STORE_THREAD_WINDOW, .thread_window = {1, UINT64_MAX, 1}},
	{STORE_PYTHON_FRAME, .python_frame = {2, 17, 0, 1, 0}},
	{STORE_PYTHON_FRAME, .python_frame = {3, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX}},
	{STORE_THREAD_TIME, .thread_time = {1, 2, 3, 4, 5, 6, 7, 0}},
	{STORE_THREAD_TIME, .thread_time = {UINT64_MAX, 0, UINT64_MAX, UINT64_MAX, UINT64_MAX,
					    UINT64_MAX, UINT64_MAX, 1}},
};

static const struct store_record sample_events[] = {
	{STORE_BEGIN, .begin = {1000000, 0, 1}},
	{STORE_BEGIN, .begin = {1000100, 0, 2}},
	{STORE_BEGIN, .begin = {1000099, 1, 1}}, /* a little backwards */
	{STORE_END, .end = {1020000, 0, 0}},
	{STORE_END, .end = {1020000, 0, KPROF_EVENT_CLOSED}},
	{STORE_END, .end = {UINT64_MAX, 1, UINT32_MAX}},
	{STORE_BEGIN, .begin = {0, 1, 2}},
	{STORE_END, .end = {127, 1, 0}},
	{STORE_END, .end = {255, 1, 0}},
};

/* With strings 1 … 4, thread 1, two spans begun. */
static const struct store_attr sample_attrs[] = {
	{1, STORE_ATTR_U64, UINT64_MAX},
	{2, STORE_ATTR_I64, (uint64_t)INT64_MIN},
	{3, STORE_ATTR_HEX, 0x7f0012345678},
	{4, STORE_ATTR_STRING, 4},
	{1, STORE_ATTR_DOUBLE, 0x3fd5555555555555},
	{2, STORE_ATTR_DIM3, UINT64_MAX},
	{2, STORE_ATTR_DIM3, 64 | 2ull << 32 | 1ull << 48},
	{3, STORE_ATTR_JSON, 0},
	{4, STORE_ATTR_STACK, 3},
	{1, STORE_ATTR_COUNT, UINT64_MAX},
};
#define ATTRS(nr) .attrs = sample_attrs, .nr_attrs = (nr)

static const struct store_record sample_details[] = {
	{STORE_ARGS, .args = {2}, ATTRS(8)},
	{STORE_ARGS, .args = {1}, ATTRS(0)},
	{STORE_ACTIVITY, .activity = {4242, 6, 1, 0, 1, 7, 5000, 6000, 4000, 77}, ATTRS(8)},
	{STORE_ACTIVITY,
	 .activity = {UINT32_MAX, UINT32_MAX, 4, UINT32_MAX, UINT32_MAX, UINT32_MAX, INT64_MAX,
		      UINT64_MAX, 1, UINT64_MAX},
	 ATTRS(3)},
	{STORE_ACTIVITY, .activity = {0, 0, 0, 0, 0, 0, 0, 0, INT64_MAX, 0}, ATTRS(3)},
	{STORE_ACTIVITY, .activity = {1, 4, 2, 0, 1, 7, 900, 800, 0, 5}, ATTRS(8)},
	{STORE_API, .api = {1, 8, 2, 10, 20, 77}, ATTRS(1)},
	{STORE_API, .api = {0, UINT32_MAX, 0, UINT64_MAX, 0, UINT64_MAX}, ATTRS(0)},
	{STORE_INSTANT, .instant = {UINT64_MAX, 1, 2}, ATTRS(2)},
	{STORE_INSTANT, .instant = {0, 0, 1}, ATTRS(2)},
	{STORE_COUNTER, .counter = {100, 4242, UINT32_MAX, 3, INT64_MIN}, ATTRS(0)},
	{STORE_COUNTER, .counter = {99, 0, 0, 0, INT64_MAX}, ATTRS(4)},
	{STORE_SAMPLE, .sample = {1000, 0, 3, 10101010, KPROF_SAMPLE_GIL, NULL}, ATTRS(0)},
	{STORE_SAMPLE, .sample = {UINT64_MAX, 1, 0, UINT64_MAX, UINT32_MAX, NULL}, ATTRS(9)},
	{STORE_SAMPLE, .sample = {0, 0, 1, 0, 0, NULL}, ATTRS(0)},
	{STORE_WAIT,
	 .wait = {1000, 3000, 3500, 0, 3, 203, 4, STORE_WAIT_SLEEPING, 4242, 4243, 1, 2, 1, 2, 128},
	 ATTRS(0)},
	{STORE_WAIT,
	 .wait = {UINT64_MAX, 0, UINT64_MAX, 1, 0, UINT32_MAX, 0, UINT32_MAX, UINT32_MAX,
		  UINT32_MAX, 0, 0, UINT32_MAX, 0, UINT32_MAX},
	 ATTRS(9)},
	{STORE_WAIT, .wait = {0, UINT64_MAX, 0, 0, 1, 0, 0, 0, 0, 0, 0, 3, 0, 1, 0}, ATTRS(0)},
};

static inline bool attrs_equal(const struct store_record *a, const struct store_record *b)
{
	if (a->nr_attrs != b->nr_attrs)
		return false;
	return !a->nr_attrs || !memcmp(a->attrs, b->attrs, a->nr_attrs * sizeof(*a->attrs));
}

static inline bool activities_equal(const struct store_record *a, const struct store_record *b)
{
	return a->activity.pid == b->activity.pid && a->activity.type == b->activity.type &&
	       a->activity.name == b->activity.name && a->activity.device == b->activity.device &&
	       a->activity.context == b->activity.context &&
	       a->activity.stream == b->activity.stream &&
	       a->activity.start_ns == b->activity.start_ns &&
	       a->activity.end_ns == b->activity.end_ns &&
	       a->activity.queued_ns == b->activity.queued_ns &&
	       a->activity.correlation == b->activity.correlation;
}

static inline bool waits_equal(const struct store_record *a, const struct store_record *b)
{
	return a->wait.start_ns == b->wait.start_ns && a->wait.wake_ns == b->wait.wake_ns &&
	       a->wait.end_ns == b->wait.end_ns && a->wait.thread == b->wait.thread &&
	       a->wait.stack == b->wait.stack && a->wait.call == b->wait.call &&
	       a->wait.object == b->wait.object && a->wait.flags == b->wait.flags &&
	       a->wait.waker_pid == b->wait.waker_pid && a->wait.waker_tid == b->wait.waker_tid &&
	       a->wait.waker_comm == b->wait.waker_comm &&
	       a->wait.waker_stack == b->wait.waker_stack && a->wait.left_cpu == b->wait.left_cpu &&
	       a->wait.got_cpu == b->wait.got_cpu && a->wait.waker_cpu == b->wait.waker_cpu;
}

static inline bool times_equal(const struct store_record *a, const struct store_record *b)
{
	return a->thread_time.start_ns == b->thread_time.start_ns &&
	       a->thread_time.end_ns == b->thread_time.end_ns &&
	       a->thread_time.on_ns == b->thread_time.on_ns &&
	       a->thread_time.runnable_ns == b->thread_time.runnable_ns &&
	       a->thread_time.blocked_ns == b->thread_time.blocked_ns &&
	       a->thread_time.switches == b->thread_time.switches &&
	       a->thread_time.told == b->thread_time.told &&
	       a->thread_time.thread == b->thread_time.thread;
}

static inline bool details_equal(const struct store_record *a, const struct store_record *b)
{
	if (!attrs_equal(a, b))
		return false;
	switch (a->type) {
	case STORE_ARGS:
		return a->args.span == b->args.span;
	case STORE_ACTIVITY:
		return activities_equal(a, b);
	case STORE_API:
		return a->api.thread == b->api.thread && a->api.type == b->api.type &&
		       a->api.name == b->api.name && a->api.start_ns == b->api.start_ns &&
		       a->api.end_ns == b->api.end_ns && a->api.correlation == b->api.correlation;
	case STORE_INSTANT:
		return !memcmp(&a->instant, &b->instant, sizeof(a->instant));
	case STORE_COUNTER:
		return a->counter.time_ns == b->counter.time_ns &&
		       a->counter.pid == b->counter.pid && a->counter.device == b->counter.device &&
		       a->counter.name == b->counter.name && a->counter.value == b->counter.value;
	case STORE_WAIT: /* padded */
		return waits_equal(a, b);
	case STORE_SAMPLE: /* padded */
		return a->sample.time_ns == b->sample.time_ns &&
		       a->sample.thread == b->sample.thread && a->sample.stack == b->sample.stack &&
		       a->sample.weight_ns == b->sample.weight_ns &&
		       a->sample.flags == b->sample.flags;
	default:
		return false;
	}
}

static inline bool frames_equal(const struct store_record *a, const struct store_record *b)
{
	return a->frame.id == b->frame.id && a->frame.kind == b->frame.kind &&
	       a->frame.module == b->frame.module && a->frame.address == b->frame.address &&
	       a->frame.op == b->frame.op && a->frame.nr_lines == b->frame.nr_lines &&
	       (!a->frame.nr_lines || !memcmp(a->frame.lines, b->frame.lines,
					      a->frame.nr_lines * sizeof(*a->frame.lines)));
}

static inline bool records_equal(const struct store_record *a, const struct store_record *b)
{
	if (a->type != b->type)
		return false;
	switch (a->type) {
	case STORE_META:
		return !strcmp(a->meta.key, b->meta.key) && !strcmp(a->meta.json, b->meta.json);
	case STORE_STRING:
		return a->string.id == b->string.id && a->string.len == b->string.len &&
		       !memcmp(a->string.bytes, b->string.bytes, a->string.len);
#define SAME(member) return !memcmp(&a->member, &b->member, sizeof(a->member))
	case STORE_PROCESS: /* padded */
		return a->process.pid == b->process.pid && a->process.ppid == b->process.ppid &&
		       a->process.ns_pid == b->process.ns_pid &&
		       a->process.comm == b->process.comm &&
		       a->process.cmdline == b->process.cmdline &&
		       a->process.start_ns == b->process.start_ns &&
		       a->process.exit_ns == b->process.exit_ns;
	case STORE_THREAD:
		SAME(thread);
	case STORE_THREAD_NAME:
		SAME(thread_name);
	case STORE_NN_MODULE:
		SAME(nn_module);
	case STORE_PYTHON_FRAME:
		SAME(python_frame);
	case STORE_THREAD_WINDOW: /* padded */
		return a->thread_window.thread == b->thread_window.thread &&
		       a->thread_window.start_ns == b->thread_window.start_ns &&
		       a->thread_window.end_ns == b->thread_window.end_ns;
	case STORE_OWNER: /* padded */
		return a->owner.pid == b->owner.pid && a->owner.uid == b->owner.uid &&
		       a->owner.user == b->owner.user && a->owner.cgroup == b->owner.cgroup &&
		       a->owner.start_ns == b->owner.start_ns;
	case STORE_EXECUTABLE:
		SAME(executable);
	case STORE_PROCESS_EXIT: /* padded */
		return a->process_exit.pid == b->process_exit.pid &&
		       a->process_exit.status == b->process_exit.status &&
		       a->process_exit.start_ns == b->process_exit.start_ns;
	case STORE_THREAD_TIME: /* padded */
		return times_equal(a, b);
	case STORE_DESCRIPTION:
		SAME(description);
	case STORE_BEGIN:
		SAME(begin);
	case STORE_END:
		SAME(end);
	case STORE_GAP: /* padded */
		return a->gap.pid == b->gap.pid && a->gap.what == b->gap.what &&
		       a->gap.reason == b->gap.reason && a->gap.start_ns == b->gap.start_ns &&
		       a->gap.end_ns == b->gap.end_ns;
	case STORE_SOURCE:
		SAME(source);
	case STORE_CLOCK:
		SAME(clock);
	case STORE_FINISH:
		SAME(finish);
	case STORE_MODULE:
		SAME(module);
	case STORE_STACK:
		SAME(stack);
	case STORE_FRAME:
		return frames_equal(a, b);
#undef SAME
	case STORE_ARGS:
	case STORE_ACTIVITY:
	case STORE_API:
	case STORE_INSTANT:
	case STORE_COUNTER:
	case STORE_WAIT:
	case STORE_SAMPLE:
		return details_equal(a, b);
	}
	return false;
}

/* An account of its own of what is defined, so as not to take the reader's word for it. */
struct seen {
	uint32_t strings, descriptions, threads, sources;
	uint32_t modules, frames, stacks;
	size_t records, begins, details, samples;
	uint64_t last_span; /* the highest that details were about */
	bool finish;
};

static inline void seen__add_attrs(struct seen *s, const struct store_record *r)
{
	s->details++;
	CHECK(r->nr_attrs <= STORE_MAX_ATTRS);
	for (uint32_t i = 0; i < r->nr_attrs; i++) {
		const struct store_attr *a = &r->attrs[i];

		CHECK(a->key >= 1 && a->key <= s->strings);
		CHECK(a->type >= STORE_ATTR_U64 && a->type <= STORE_ATTR_COUNT);
		if (a->type == STORE_ATTR_STRING || a->type == STORE_ATTR_JSON)
			CHECK(a->value <= s->strings);
		if (a->type == STORE_ATTR_STACK)
			CHECK(a->value <= s->stacks);
	}
}

static inline void seen__add_frame(struct seen *s, const struct store_record *r)
{
	CHECK(r->frame.id >= 1 && r->frame.id <= s->frames + 1);
	s->frames += r->frame.id == s->frames + 1;
	CHECK(r->frame.module <= s->modules && r->frame.op <= s->strings);
	CHECK(r->frame.nr_lines <= STORE_MAX_LINES);
	for (uint32_t i = 0; i < r->frame.nr_lines; i++) {
		CHECK(r->frame.lines[i].function <= s->strings);
		CHECK(r->frame.lines[i].file <= s->strings);
	}
}

static inline void seen__add(struct seen *s, const struct store_record *r)
{
	CHECK(!s->finish);
	s->records++;
	switch (r->type) {
	case STORE_META:
		CHECK(strlen(r->meta.key) > 0 && strlen(r->meta.json) < (2 << 20));
		break;
	case STORE_STRING:
		CHECK_EQ(r->string.id, ++s->strings);
		CHECK(!memchr(r->string.bytes, '\0', r->string.len));
		break;
	case STORE_PROCESS:
		CHECK(r->process.comm <= s->strings && r->process.cmdline <= s->strings);
		break;
	case STORE_THREAD:
		CHECK(r->thread.index <= s->threads && r->thread.name <= s->strings);
		s->threads += r->thread.index == s->threads;
		break;
	case STORE_DESCRIPTION:
		CHECK_EQ(r->description.id, ++s->descriptions);
		CHECK(r->description.name <= s->strings && r->description.overload <= s->strings);
		CHECK(r->description.category <= s->strings && r->description.source < s->sources);
		break;
	case STORE_BEGIN:
		CHECK(r->begin.thread < s->threads);
		CHECK(r->begin.description >= 1 && r->begin.description <= s->descriptions);
		s->begins++;
		break;
	case STORE_END:
		CHECK(r->end.thread < s->threads);
		break;
	case STORE_GAP:
		CHECK(r->gap.what <= s->strings && r->gap.reason <= s->strings);
		break;
	case STORE_SOURCE:
		CHECK(r->source.index <= s->sources && r->source.name <= s->strings);
		s->sources += r->source.index == s->sources;
		break;
	case STORE_CLOCK:
		break;
	case STORE_FINISH:
		s->finish = true;
		break;
	case STORE_ARGS:
		CHECK(r->args.span >= 1);
		if (r->args.span > s->last_span)
			s->last_span = r->args.span;
		seen__add_attrs(s, r);
		break;
	case STORE_ACTIVITY:
		CHECK(r->activity.name <= s->strings);
		seen__add_attrs(s, r);
		break;
	case STORE_API:
		CHECK(r->api.thread < s->threads && r->api.name <= s->strings);
		seen__add_attrs(s, r);
		break;
	case STORE_INSTANT:
		CHECK(r->instant.thread < s->threads);
		CHECK(r->instant.description >= 1 && r->instant.description <= s->descriptions);
		seen__add_attrs(s, r);
		break;
	case STORE_COUNTER:
		CHECK(r->counter.name <= s->strings);
		seen__add_attrs(s, r);
		break;
	case STORE_MODULE:
		CHECK_EQ(r->module.id, ++s->modules);
		CHECK(r->module.path <= s->strings && r->module.build_id <= s->strings);
		break;
	case STORE_FRAME:
		seen__add_frame(s, r);
		break;
	case STORE_STACK:
		CHECK(r->stack.parent <= s->stacks);
		CHECK(r->stack.frame >= 1 && r->stack.frame <= s->frames);
		CHECK_EQ(r->stack.id, ++s->stacks);
		break;
	case STORE_THREAD_NAME:
		CHECK(r->thread_name.thread < s->threads && r->thread_name.name <= s->strings);
		break;
	case STORE_NN_MODULE:
		CHECK(r->nn_module.description <= s->descriptions);
		CHECK(r->nn_module.class_name <= s->strings && r->nn_module.path <= s->strings);
		CHECK(r->nn_module.outermost <= s->strings);
		break;
	case STORE_PYTHON_FRAME:
		CHECK(r->python_frame.frame <= s->frames);
		break;
	case STORE_OWNER:
		CHECK(r->owner.user <= s->strings && r->owner.cgroup <= s->strings);
		break;
	case STORE_EXECUTABLE:
		CHECK(r->executable.path <= s->strings);
		break;
	case STORE_PROCESS_EXIT:
		break;
	case STORE_THREAD_TIME:
		CHECK(r->thread_time.thread < s->threads);
		break;
	case STORE_THREAD_WINDOW:
		CHECK(r->thread_window.thread < s->threads);
		break;
	case STORE_WAIT:
		CHECK(r->wait.thread < s->threads && r->wait.stack <= s->stacks);
		CHECK(r->wait.waker_stack <= s->stacks && r->wait.object <= s->strings);
		CHECK(r->wait.waker_comm <= s->strings);
		seen__add_attrs(s, r);
		break;
	case STORE_SAMPLE:
		CHECK(r->sample.thread < s->threads && r->sample.stack <= s->stacks);
		s->samples++;
		seen__add_attrs(s, r);
		break;
	default:
		CHECK(!"a record of unknown type was delivered");
	}
}

/* Reads to the end in a mode; the last return value of store_reader__next(). */
static inline int read_all(struct store_reader *r, enum store_read_mode mode, struct seen *seen,
			   struct store_reader_info *info)
{
	struct store_record record;
	int err;

	*seen = (struct seen){0};
	store_reader__rewind(r, mode);
	while ((err = store_reader__next(r, &record)) == 1)
		seen__add(seen, &record);
	store_reader__info(r, info);
	CHECK_EQ(info->complete, seen->finish);
	CHECK(mode != STORE_READ_ALL || info->begins == seen->begins);
	CHECK(mode == STORE_READ_TABLES || info->samples == seen->samples);
	return err;
}

static inline struct store_writer *new_writer(const char *path)
{
	struct store_writer *w = NULL;

	if (store_writer__open(path, NULL, &w)) {
		printf("# %s\n", kprof_error_cause());
		abort();
	}
	return w;
}

static inline void put_all(struct store_writer *w, const struct store_record *records, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		CHECK_EQ(store_writer__put(w, &records[i]), 0);
}

/*
 * The sample as several small chunks: tables, details, events; tables, details, events; events; the
 * end.
 */
static inline void write_sample(const char *path)
{
	const size_t half = ARRAY_SIZE(sample_events) / 2;
	struct store_writer *w = new_writer(path);

	put_all(w, sample_tables, ARRAY_SIZE(sample_tables));
	put_all(w, sample_events, half);
	put_all(w, sample_details, ARRAY_SIZE(sample_details));
	CHECK_EQ(store_writer__flush(w), 0);
	CHECK_EQ(store_writer__string(w, "later", 5), 5);
	put_all(w, sample_events + half, ARRAY_SIZE(sample_events) - half);
	put_all(w, sample_details, 3);
	CHECK_EQ(store_writer__flush(w), 0);
	put_all(w, sample_events, 2);
	CHECK_EQ(store_writer__finish(w, 5000000), 0);
}

#endif
