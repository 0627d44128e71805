// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes a capture as output, record by record. So the copy has been checked, is compressed as the
 * current writer does it, and can be limited to one process.
 *
 * The accounting of sources is that of the whole recording, since the kernel does not count by
 * process.
 */
#include "sink/sink.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sink/kprof/part.h"
#include "sink/kprof/spans.h"
#include "sink/write/write.h"
#include "store/store.h"
#include "util/error.h"
#include "util/util.h"

struct copy {
	const struct kprof_export_opts *opts;
	const char *path; /* path of the source file */
	struct store_reader *in;
	struct store_writer *out;
	struct vec strings, threads; /* by id in the source file: id in the copy + 1; 0: left out */
	uint32_t nr_threads;         /* threads that are in the copy */
	struct store_renumber numbers;
	int err; /* error while renumbering */
	struct kprof_spans spans;
	/*
	 * ARGS records precede the begins of their spans. At that point a span's number in the copy
	 * is unknown, and whether the copy has it. So a second reader reads ARGS, and holds each
	 * back until its span has begun.
	 */
	struct {
		struct store_reader *in; /* NULL: no ARGS so far */
		struct store_record held;
		/*
		 * ARGS that the first reader has passed; that this one has copied, without the one
		 * held.
		 */
		uint64_t seen, done;
		bool holds;
	} args;
	uint64_t end_ns; /* time of the FINISH record */
	struct kprof_part part;
};

static int ids_set(struct vec *ids, size_t from, uint64_t to)
{
	while (ids->nr <= from)
		if (!vec_push(ids, sizeof(to)))
			return error_set(-ENOMEM, NULL, "no memory to copy the capture");
	((uint64_t *)ids->data)[from] = to + 1;
	return 0;
}

static uint64_t ids_get(const struct vec *ids, size_t from)
{
	return from < ids->nr ? ((uint64_t *)ids->data)[from] - 1 : STORE_LEFT_OUT;
}

static int copy_string(struct copy *c, const struct store_record *r)
{
	uint32_t id = store_writer__string(c->out, r->string.bytes, r->string.len);

	if (!id && r->string.len)
		return error_set(-ENOMEM, NULL, "no memory to copy the capture");
	return ids_set(&c->strings, r->string.id, id);
}

/*
 * The thread's number in the copy. Only threads in the copy get one: the PID of a THREAD record is
 * checked before its index.
 */
static uint64_t thread_number(struct copy *c, uint64_t index, bool defines)
{
	uint64_t number = ids_get(&c->threads, index);

	if (number != STORE_LEFT_OUT || !defines)
		return number;
	c->err = ids_set(&c->threads, index, c->nr_threads);
	return c->err ? STORE_LEFT_OUT : c->nr_threads++;
}

static uint64_t number_in_copy(void *ctx, enum store_ref ref, uint64_t number, bool defines)
{
	struct copy *c = ctx;

	switch (ref) {
	case STORE_REF_STRING:
		return number ? ids_get(&c->strings, number) : 0;
	case STORE_REF_THREAD:
		return thread_number(c, number, defines);
	case STORE_REF_SPAN:
		number = kprof_spans__number(&c->spans, number);
		return number ? number : STORE_LEFT_OUT;
	case STORE_REF_PID_OR_ALL:
		if (!number)
			return 0;
		__attribute__((fallthrough));
	case STORE_REF_PID:
		return !c->opts->pid || number == (uint64_t)c->opts->pid ? number : STORE_LEFT_OUT;
	default: /* all of these are copied, so their numbers stay */
		return number;
	}
}

static int copy_renumbered(struct copy *c, const struct store_record *from)
{
	struct store_record r = *from;

	if (store_record__renumber(&r, &c->numbers))
		return store_writer__put(c->out, &r);
	return c->err;
}

/* ---- spans ---- */

/*
 * Holds the second reader's next ARGS, which the first reader has passed. 1: done; 0: the file has
 * no more; < 0: an error.
 */
static int hold_args(struct copy *c)
{
	int err;

	do
		err = store_reader__next(c->args.in, &c->args.held);
	while (err == 1 && c->args.held.type != STORE_ARGS);
	c->args.holds = err == 1;
	return err;
}

/*
 * Copies the ARGS of spans that have begun, in their order, so that none comes after its span's
 * end.
 */
static int copy_args(struct copy *c)
{
	while (c->args.done < c->args.seen) {
		int err = c->args.holds ? 1 : hold_args(c);

		if (err <= 0)
			return err;
		if (c->args.held.args.span > c->spans.begun)
			return 0;
		c->args.holds = false;
		c->args.done++;
		err = copy_renumbered(c, &c->args.held);
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
			store_reader__rewind(c->args.in, STORE_READ_DETAILS);
	}
	c->args.seen++;
	return err ? err : copy_args(c);
}

static int copy_begin(struct copy *c, struct store_record *r)
{
	uint64_t thread = ids_get(&c->threads, r->begin.thread);
	int err = kprof_part__begin(&c->part, r->begin.thread, c->spans.begun + 1);

	if (err < 0)
		return err;
	if (thread == STORE_LEFT_OUT || !err) {
		c->spans.begun++;
		return copy_args(c);
	}
	r->begin.thread = (uint32_t)thread;
	err = kprof_spans__begin(&c->spans, r->begin.thread);
	if (!err)
		err = store_writer__put(c->out, r);
	return err ? err : copy_args(c);
}

static int copy_end(struct copy *c, struct store_record *r)
{
	uint64_t thread = ids_get(&c->threads, r->end.thread);

	if (!kprof_part__end(&c->part, r->end.thread) || thread == STORE_LEFT_OUT)
		return 0;
	r->end.thread = (uint32_t)thread;
	kprof_spans__end(&c->spans, r->end.thread);
	return store_writer__put(c->out, r);
}

static int copy_record(struct copy *c, struct store_record *r)
{
	switch (r->type) {
	case STORE_STRING:
		return copy_string(c, r);
	case STORE_BEGIN:
		return copy_begin(c, r);
	case STORE_END:
		return copy_end(c, r);
	case STORE_ARGS:
		return saw_args(c);
	case STORE_FINISH: /* the writer puts its own at the end */
		c->end_ns = r->finish.time_ns;
		return 0;
	default:
		return kprof_part__has(&c->part, r) ? copy_renumbered(c, r) : 0;
	}
}

static int copy_records(struct copy *c)
{
	struct store_record r;
	int err;

	store_reader__watch(c->in, c->opts->progress, c->opts->ctx);
	while ((err = store_reader__next(c->in, &r)) > 0) {
		err = copy_record(c, &r);
		if (err)
			return err;
	}
	return err;
}

static int note(struct copy *c, const char *key, const char *json)
{
	struct store_record r = {.type = STORE_META, .meta = {.key = key, .json = json}};

	return store_writer__put(c->out, &r);
}

/* Notes in the copy's metadata that it holds one process, or a part of the time, of a recording. */
static int note_filter(struct copy *c)
{
	char text[KPROF_PART_JSON_BYTES];
	int err = 0;

	if (c->opts->pid) {
		snprintf(text, sizeof(text), "%d", c->opts->pid);
		err = note(c, "only_pid", text);
	}
	if (err || !c->part.t)
		return err;
	kprof_part__json(&c->part, text);
	return note(c, "range", text);
}

/* Finishes the copy. That of a recording that was cut short is marked as such too. */
static int finish(struct copy *c, const char *path)
{
	struct store_writer *out = c->out;
	struct store_reader_info info;

	c->out = NULL;
	store_reader__info(c->in, &info);
	if (info.complete)
		return store_writer__finish(out, c->part.t ? c->part.end_ns : c->end_ns);
	log_warn(NULL, "the capture was cut short: %s holds what could be read of it", path);
	return store_writer__salvage(out);
}

static int kprof_write(struct kprof_capture *t, const char *path,
		       const struct kprof_export_opts *opts)
{
	struct outfile_opts owner = stream_owner(opts);
	struct copy c = {.opts = opts,
			 .path = timeline__path(t),
			 .spans.renumber = opts->pid != 0 || kprof_capture_selection(t)};
	int err;

	c.numbers.number = number_in_copy;
	c.numbers.ctx = &c;
	err = kprof_part__read(&c.part, t);
	if (!err)
		err = store_reader__open(c.path, &c.in);
	if (!err)
		err = store_writer__open(path, &owner, &c.out);
	if (!err && c.part.t)
		err = kprof_part__start(&c.part, c.out);
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
	kprof_part__free(&c.part);
	free(c.strings.data);
	free(c.threads.data);
	return err;
}

const struct sink_ops sink_kprof = {
	.name = "kprof",
	.suffixes = {".kprof"},
	.write = kprof_write,
};
