// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes a capture as output, record by record: all of it, one process, or a part of the time.
 *
 * The accounting of sources is that of the whole recording, since the kernel does not count by
 * process.
 */
#include "sink/sink.h"

#include <errno.h>
#include <stdio.h>

#include "sink/kprof/copy.h"
#include "sink/kprof/part.h"
#include "sink/write/write.h"
#include "store/store.h"
#include "util/error.h"
#include "util/util.h"

struct copy {
	const struct kprof_export_opts *opts;
	struct store_writer *out;
	struct kprof_copy *of;
	struct kprof_part part;
};

/* ---- what is copied ---- */

static int has_record(void *ctx, const struct store_record *r)
{
	const struct copy *c = ctx;

	return kprof_part__has(&c->part, r);
}

static int has_span(void *ctx, uint32_t thread, uint64_t span)
{
	struct copy *c = ctx;

	return kprof_part__begin(&c->part, thread, span);
}

static bool had_span(void *ctx, uint32_t thread)
{
	struct copy *c = ctx;

	return kprof_part__end(&c->part, thread);
}

static bool has_process(void *ctx, uint32_t pid)
{
	const struct copy *c = ctx;

	return !c->opts->pid || pid == (uint32_t)c->opts->pid;
}

static const struct kprof_copy_ops all,
	some = {.record = has_record, .begin = has_span, .end = had_span, .process = has_process};

static int copy_records(struct copy *c)
{
	uint64_t ns;
	int err;

	store_reader__watch(kprof_copy__in(c->of), c->opts->progress, c->opts->ctx);
	while ((err = kprof_copy__next(c->of, &ns)) > 0) {
		err = kprof_copy__event(c->of);
		if (err)
			return err;
	}
	return err;
}

/* ---- its head and end ---- */

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
	store_reader__info(kprof_copy__in(c->of), &info);
	if (info.complete)
		return store_writer__finish(out,
					    c->part.t ? c->part.end_ns : kprof_copy__end_ns(c->of));
	log_warn(NULL, "the capture was cut short: %s holds what could be read of it", path);
	return store_writer__salvage(out);
}

static int kprof_write(struct kprof_capture *t, const char *path,
		       const struct kprof_export_opts *opts)
{
	struct outfile_opts owner = stream_owner(opts);
	struct kprof_copy_numbers numbers = KPROF_COPY_NUMBERS;
	struct copy c = {.opts = opts};
	int err;

	err = kprof_part__read(&c.part, t);
	if (!err)
		err = store_writer__open(path, &owner, &c.out);
	if (!err)
		err = kprof_copy__new(timeline__path(t), c.out, &numbers,
				      opts->pid || c.part.t ? &some : &all, &c, &c.of);
	if (!err && c.part.t)
		err = kprof_part__start(&c.part, c.out);
	if (!err)
		err = copy_records(&c);
	if (!err)
		err = note_filter(&c);
	if (!err)
		err = finish(&c, path);
	store_writer__discard(c.out);
	kprof_copy__free(c.of);
	kprof_part__free(&c.part);
	return err;
}

const struct sink_ops sink_kprof = {
	.blocks = true,
	.name = "kprof",
	.suffixes = {".kprof"},
	.write = kprof_write,
};
