// SPDX-License-Identifier: BSD-2-Clause
/*
 * A capture as output: written anew record by record, so that what comes out has been checked,
 * is compressed as today's writer does it, and holds one process only when one is asked for.
 *
 * The accounting of sources is the recording's as a whole: the kernel does not count by process.
 */
#include "sink/sink.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sink/kprof/spans.h"
#include "sink/write/write.h"
#include "store/store.h"
#include "util/error.h"

#define NONE UINT32_MAX
#define PROGRESS_EVERY (1u << 16) /* records */

struct ids { /* of the source file → of the copy */
	uint32_t *to;
	size_t nr;
};

struct copy {
	const struct kprof_export_opts *opts;
	const char *path; /* of the source */
	struct store_reader *in;
	struct store_writer *out;
	struct ids strings, threads;
	uint32_t nr_threads; /* kept */
	struct kprof_spans spans;
	/*
	 * What is told of spans lies in front of their begins, where neither their number in the copy is known nor
	 * whether they are in it. A second reader holds it back until they have begun.
	 */
	struct {
		struct store_reader *in; /* NULL: nothing of the kind so far */
		struct store_record held;
		uint64_t seen, done; /* by the first reader; by this one, without what is held */
		bool holds;
	} args;
	uint64_t end_ns; /* of FINISH */
	uint64_t records;
};

static int ids_set(struct ids *ids, size_t from, uint32_t to)
{
	if (from >= ids->nr) {
		size_t want = from + 1 > ids->nr * 2 ? from + 64 : ids->nr * 2;
		uint32_t *bigger = reallocarray(ids->to, want, sizeof(*bigger));

		if (!bigger)
			return error_set(-ENOMEM, NULL, "no memory to copy the capture");
		for (size_t i = ids->nr; i < want; i++)
			bigger[i] = NONE;
		ids->to = bigger;
		ids->nr = want;
	}
	ids->to[from] = to;
	return 0;
}

static uint32_t ids_get(const struct ids *ids, size_t from)
{
	return from < ids->nr ? ids->to[from] : NONE;
}

static uint32_t string_id(const struct copy *c, uint32_t id)
{
	return id ? ids_get(&c->strings, id) : 0;
}

static bool wanted(const struct copy *c, uint32_t pid)
{
	return !c->opts->pid || pid == (uint32_t)c->opts->pid;
}

static int copy_string(struct copy *c, const struct store_record *r)
{
	uint32_t id = store_writer__string(c->out, r->string.bytes, r->string.len);

	if (!id && r->string.len)
		return error_set(-ENOMEM, NULL, "no memory to copy the capture");
	return ids_set(&c->strings, r->string.id, id);
}

static int copy_thread(struct copy *c, struct store_record *r)
{
	uint32_t index = ids_get(&c->threads, r->thread.index);
	int err;

	if (!wanted(c, r->thread.pid))
		return 0;
	if (index == NONE) {
		index = c->nr_threads++;
		err = ids_set(&c->threads, r->thread.index, index);
		if (err)
			return err;
	}
	r->thread.index = index;
	r->thread.name = string_id(c, r->thread.name);
	return store_writer__put(c->out, r);
}

static int copy_thread_name(struct copy *c, struct store_record *r)
{
	r->thread_name.thread = ids_get(&c->threads, r->thread_name.thread);
	r->thread_name.name = string_id(c, r->thread_name.name);
	return r->thread_name.thread == NONE ? 0 : store_writer__put(c->out, r);
}

static int copy_frame(struct copy *c, const struct store_record *from)
{
	struct store_line lines[STORE_MAX_LINES];
	struct store_record r = *from;

	for (uint32_t i = 0; i < r.frame.nr_lines; i++) {
		lines[i] = from->frame.lines[i];
		lines[i].function = string_id(c, lines[i].function);
		lines[i].file = string_id(c, lines[i].file);
	}
	r.frame.lines = lines;
	r.frame.op = string_id(c, r.frame.op);
	return store_writer__put(c->out, &r);
}

/* ---- details -------------------------------------------------------------------------------- */

static int put_with_attrs(struct copy *c, const struct store_record *from)
{
	struct store_attr attrs[STORE_MAX_ATTRS];
	struct store_record r = *from;

	for (uint32_t i = 0; i < r.nr_attrs; i++) {
		attrs[i] = from->attrs[i];
		attrs[i].key = string_id(c, attrs[i].key);
		if (attrs[i].type == STORE_ATTR_STRING || attrs[i].type == STORE_ATTR_JSON)
			attrs[i].value = string_id(c, (uint32_t)attrs[i].value);
	}
	r.attrs = attrs;
	return store_writer__put(c->out, &r);
}

static int copy_detail(struct copy *c, struct store_record *r)
{
	switch (r->type) {
	case STORE_ACTIVITY:
		if (!wanted(c, r->activity.pid))
			return 0;
		r->activity.name = string_id(c, r->activity.name);
		break;
	case STORE_API:
		r->api.thread = ids_get(&c->threads, r->api.thread);
		if (r->api.thread == NONE)
			return 0;
		r->api.name = string_id(c, r->api.name);
		break;
	case STORE_INSTANT:
		r->instant.thread = ids_get(&c->threads, r->instant.thread);
		if (r->instant.thread == NONE)
			return 0;
		break;
	case STORE_SAMPLE:
		r->sample.thread = ids_get(&c->threads, r->sample.thread);
		if (r->sample.thread == NONE)
			return 0;
		break;
	default:
		if (!wanted(c, r->counter.pid))
			return 0;
		r->counter.name = string_id(c, r->counter.name);
		break;
	}
	return put_with_attrs(c, r);
}

/* The second reader's next ARGS, which the first one has seen. 1, or 0: it is gone; <0: error. */
static int hold_args(struct copy *c)
{
	int err;

	do
		err = store_reader__next(c->args.in, &c->args.held);
	while (err == 1 && c->args.held.type != STORE_ARGS);
	c->args.holds = err == 1;
	return err;
}

/* What can be told by now: in the order in which it was told, so that nothing is told after a span's end. */
static int copy_args(struct copy *c)
{
	while (c->args.done < c->args.seen) {
		struct store_record r;
		int err = c->args.holds ? 1 : hold_args(c);

		if (err <= 0)
			return err;
		r = c->args.held;
		if (r.args.span > c->spans.begun)
			return 0;
		c->args.holds = false;
		c->args.done++;
		r.args.span = kprof_spans__number(&c->spans, r.args.span);
		err = r.args.span ? put_with_attrs(c, &r) : 0;
		if (err)
			return err;
	}
	return 0;
}

static int saw_args(struct copy *c)
{
	int err = 0;

	if (!c->args.in) {
		err = store_reader__open(c->path, &c->args.in);
		if (!err)
			err = store_reader__rewind(c->args.in, STORE_READ_DETAILS);
	}
	c->args.seen++;
	return err ? err : copy_args(c);
}

/* ---- events --------------------------------------------------------------------------------- */

static int copy_begin(struct copy *c, struct store_record *r)
{
	int err;

	r->begin.thread = ids_get(&c->threads, r->begin.thread);
	if (r->begin.thread == NONE) {
		kprof_spans__leave_out(&c->spans);
		return copy_args(c);
	}
	err = kprof_spans__begin(&c->spans, r->begin.thread);
	if (!err)
		err = store_writer__put(c->out, r);
	return err ? err : copy_args(c);
}

static int copy_end(struct copy *c, struct store_record *r)
{
	r->end.thread = ids_get(&c->threads, r->end.thread);
	if (r->end.thread == NONE)
		return 0;
	kprof_spans__end(&c->spans, r->end.thread);
	return store_writer__put(c->out, r);
}

static int copy_record(struct copy *c, struct store_record *r)
{
	switch (r->type) {
	case STORE_STRING:
		return copy_string(c, r);
	case STORE_THREAD:
		return copy_thread(c, r);
	case STORE_THREAD_NAME:
		return copy_thread_name(c, r);
	case STORE_BEGIN:
		return copy_begin(c, r);
	case STORE_END:
		return copy_end(c, r);
	case STORE_ARGS:
		return saw_args(c);
	case STORE_ACTIVITY:
	case STORE_API:
	case STORE_INSTANT:
	case STORE_COUNTER:
	case STORE_SAMPLE:
		return copy_detail(c, r);
	case STORE_FRAME:
		return copy_frame(c, r);
	case STORE_PROCESS:
		if (!wanted(c, r->process.pid))
			return 0;
		r->process.comm = string_id(c, r->process.comm);
		r->process.cmdline = string_id(c, r->process.cmdline);
		break;
	case STORE_WHAT: /* all of them: their ids stay */
		r->what.name = string_id(c, r->what.name);
		r->what.overload = string_id(c, r->what.overload);
		r->what.category = string_id(c, r->what.category);
		break;
	case STORE_GAP:
		if (r->gap.pid && !wanted(c, r->gap.pid))
			return 0;
		r->gap.what = string_id(c, r->gap.what);
		r->gap.reason = string_id(c, r->gap.reason);
		break;
	case STORE_SOURCE:
		r->source.name = string_id(c, r->source.name);
		break;
	case STORE_FINISH: /* the writer's own at the end */
		c->end_ns = r->finish.time_ns;
		return 0;
	case STORE_MODULE: /* all of them, frames and stacks, too: their ids stay */
		r->module.path = string_id(c, r->module.path);
		r->module.build_id = string_id(c, r->module.build_id);
		break;
	case STORE_META:
	case STORE_CLOCK:
	case STORE_STACK:
		break;
	default:
		return 0; /* a newer minor version's: nobody here can say what it refers to */
	}
	return store_writer__put(c->out, r);
}

static int progress(const struct copy *c)
{
	struct store_reader_info info;

	store_reader__info(c->in, &info);
	if (c->opts->progress(c->opts->ctx, info.read_bytes, info.size_bytes))
		return error_set(-ECANCELED, NULL, "the export was cancelled");
	return 0;
}

static int copy_records(struct copy *c)
{
	struct store_record r;
	int err;

	for (;;) {
		err = store_reader__next(c->in, &r);
		if (err <= 0)
			return err;
		err = copy_record(c, &r);
		if (err)
			return err;
		if (++c->records % PROGRESS_EVERY == 0 && c->opts->progress) {
			err = progress(c);
			if (err)
				return err;
		}
	}
}

/* Says in the copy that it is one process of a recording. */
static int note_filter(struct copy *c)
{
	char pid[16];
	struct store_record r = {.type = STORE_META, .meta = {.key = "only_pid", .json = pid}};

	if (!c->opts->pid)
		return 0;
	snprintf(pid, sizeof(pid), "%d", c->opts->pid);
	return store_writer__put(c->out, &r);
}

/* The copy of a recording that was cut short says so as well. */
static int finish(struct copy *c, const char *path)
{
	struct store_writer *out = c->out;
	struct store_reader_info info;

	c->out = NULL;
	store_reader__info(c->in, &info);
	if (info.complete)
		return store_writer__finish(out, c->end_ns);
	log_warn(NULL, "the capture was cut short: %s holds what could be read of it", path);
	return store_writer__salvage(out);
}

static int kprof_write(struct timeline *t, const char *path, const struct kprof_export_opts *opts)
{
	struct outfile_opts owner = stream_owner(opts);
	struct copy c = {.opts = opts, .path = timeline__path(t), .spans.renumber = opts->pid != 0};
	int err;

	err = store_reader__open(c.path, &c.in);
	if (!err)
		err = store_reader__rewind(c.in, STORE_READ_ALL);
	if (!err)
		err = store_writer__open(path, &owner, &c.out);
	if (!err)
		err = copy_records(&c);
	if (!err)
		err = note_filter(&c);
	if (!err)
		err = finish(&c, path);
	store_writer__discard(c.out);
	store_reader__close(c.in);
	store_reader__close(c.args.in);
	kprof_spans__free(&c.spans);
	free(c.strings.to);
	free(c.threads.to);
	return err;
}

static const char *const suffixes[] = {".kprof", NULL};

const struct sink_ops sink_kprof = {
	.name = "kprof",
	.suffixes = suffixes,
	.write = kprof_write,
};
