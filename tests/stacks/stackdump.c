// SPDX-License-Identifier: BSD-2-Clause
/*
 * The samples of a capture as JSON lines, one each, for tests that know what stacks there must be:
 *
 *   stackdump CAPTURE [PID]
 *   {"pid", "tid", "thread", "time_ns", "weight_ns", "flags", "end", "state", "gil", "gil_wait",
 *   "cut", "frames": [F, …]}
 *
 * PID: only this process's.
 * frames: innermost first, F = {"kind", "module", "address", "function", "full", "file", "line",
 * "op", "inlined"}; a function that was inlined comes before the one that it is in, with the same
 * address.
 */
#include <stdio.h>
#include <stdlib.h>

#include "model/timeline/timeline.h"
#include "sink/write/write.h"
#include "store/store.h"

#define MAX_CALLS 8192

struct dump {
	struct kprof_capture *t;
	int pid; /* 0: of all */
	struct jsonw out;
	struct tl_call calls[MAX_CALLS];
};

static int write_out(void *ctx, const void *data, size_t bytes)
{
	return fwrite(data, 1, bytes, stdout) == bytes ? 0 : -5;
}

static void text(struct jsonw *w, const char *key, const char *value)
{
	jsonw__text(w, ",\"");
	jsonw__text(w, key);
	jsonw__text(w, "\":");
	jsonw__string(w, value);
}

static void number(struct jsonw *w, const char *key, uint64_t value)
{
	jsonw__text(w, ",\"");
	jsonw__text(w, key);
	jsonw__text(w, "\":");
	jsonw__u64(w, value);
}

static void flag(struct jsonw *w, const char *key, bool value)
{
	jsonw__text(w, ",\"");
	jsonw__text(w, key);
	jsonw__text(w, value ? "\":true" : "\":false");
}

static void dump_call(struct jsonw *w, const struct tl_call *c)
{
	static const char *const kinds[] = {"?", "native", "python", "kernel"};
	const struct tl_frame *f = c->frame;

	jsonw__text(w, "{\"kind\":\"");
	jsonw__text(w, kinds[f->kind <= TL_FRAME_KERNEL ? f->kind : 0]);
	jsonw__text(w, "\"");
	text(w, "module", f->module ? f->module->path : "");
	number(w, "address", f->address);
	text(w, "function", c->line->function);
	text(w, "full", c->line->full);
	text(w, "file", c->line->file);
	number(w, "line", c->line->line);
	text(w, "op", f->op);
	flag(w, "inlined", c->line != &f->lines[f->nr_lines - 1]);
	jsonw__text(w, "}");
}

static int dump_sample(void *ctx, const struct store_record *r)
{
	static const char *const states[] = {"user", "kernel", "off-cpu"};
	struct dump *d = ctx;
	struct jsonw *w = &d->out;
	const struct tl_thread *th = timeline__thread(d->t, r->sample.thread);
	uint32_t state = r->sample.flags & KPROF_SAMPLE_STATE;
	size_t nr;

	if (d->pid && th->pid != d->pid)
		return 0;
	nr = timeline__calls(d->t, r->sample.stack, d->calls, MAX_CALLS);
	jsonw__text(w, "{\"pid\":");
	jsonw__u64(w, (uint64_t)th->pid);
	number(w, "tid", (uint64_t)th->tid);
	text(w, "thread", th->name);
	number(w, "time_ns", r->sample.time_ns);
	number(w, "weight_ns", r->sample.weight_ns);
	number(w, "flags", r->sample.flags);
	number(w, "end", (r->sample.flags & KPROF_SAMPLE_END) >> KPROF_SAMPLE_END_SHIFT);
	text(w, "state", state < 3 ? states[state] : "?");
	flag(w, "gil", r->sample.flags & KPROF_SAMPLE_GIL);
	flag(w, "gil_wait", r->sample.flags & KPROF_SAMPLE_GIL_WAIT);
	flag(w, "cut", r->sample.flags & KPROF_SAMPLE_CUT);
	jsonw__text(w, ",\"frames\":[");
	for (size_t i = 0; i < nr; i++) {
		if (i)
			jsonw__text(w, ",");
		dump_call(w, &d->calls[i]);
	}
	jsonw__text(w, "]}\n");
	return 0;
}

int main(int argc, char **argv)
{
	static struct dump d;
	int err;

	if (argc != 2 && argc != 3) {
		fprintf(stderr, "usage: stackdump CAPTURE [PID]\n");
		return 2;
	}
	d.pid = argc > 2 ? atoi(argv[2]) : 0;
	err = kprof_capture_open(argv[1], &d.t);
	if (!err)
		kprof_capture_show_interpreter(d.t, true); /* as it was recorded */
	if (!err)
		err = jsonw__init(&d.out, write_out, NULL);
	if (!err)
		err = timeline__samples(d.t, 0, dump_sample, &d);
	if (!err)
		err = jsonw__flush(&d.out);
	if (err)
		fprintf(stderr, "stackdump: %s: %s\n", argv[1], kprof_error_cause());
	jsonw__fini(&d.out);
	kprof_capture_close(d.t);
	return err ? 1 : 0;
}
