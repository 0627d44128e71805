// SPDX-License-Identifier: BSD-2-Clause
/*
 * Chrome trace (JSON), in the dialect that libkineto writes and Perfetto, TensorBoard and HTA read.
 *
 * If a device was used there are four passes over the capture, otherwise one: two link device work
 * and calls (model/correlate), then the host's spans and the devices' work are written.
 */
#include "sink/sink.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sink/chrome/impl.h"
#include "sink/write/write.h"
#include "util/error.h"
#include "util/util.h"

#define NSEC_PER_DAY (86400 * NSEC_PER_SEC)
/* Kineto's value: sorts the row of the whole window after every process. */
#define SPANS_SORT_INDEX 536870912

static void describe_process(struct chrome *c, const struct tl_process *p)
{
	struct jsonw *w = &c->w;

	chrome_metadata(c, "process_name", (uint64_t)p->pid, 0, "name");
	if (*p->host) {
		char name[160];

		snprintf(name, sizeof(name), "%s on %s", p->comm, p->host);
		jsonw__string(w, name);
		jsonw__text_i64(w, ",\"pid on its machine\":", p->host_pid);
	} else {
		jsonw__string(w, p->comm);
	}
	if (*p->cmdline)
		jsonw__text_string(w, ",\"command line\":", p->cmdline);
	jsonw__text_i64(w, ",\"parent pid\":", p->ppid);
	if (p->ns_pid) { /* the PID within the process's container */
		jsonw__text_i64(w, ",\"container pid\":", p->ns_pid);
	}
	jsonw__text(w, "}}");
	chrome_metadata(c, "process_labels", (uint64_t)p->pid, 0, "labels");
	jsonw__text(w, "\"CPU\"}}");
	chrome_metadata(c, "process_sort_index", (uint64_t)p->pid, 0, "sort_index");
	jsonw__i64(w, p->pid);
	jsonw__text(w, "}}");
}

static int describe_thread(struct chrome *c, const struct tl_thread *t)
{
	/*
	 * Kineto's form, followed by the language's own name for the thread, which Kineto does not
	 * write.
	 */
	char *name = xasprintf("thread %d (%s)%s%s", t->tid, t->name, *t->own_name ? " " : "",
			       t->own_name);

	if (!name)
		return error_set(-ENOMEM, NULL, "no memory for the trace's threads");
	chrome_metadata(c, "thread_name", (uint64_t)t->pid, (uint64_t)t->tid, "name");
	jsonw__string(&c->w, name);
	jsonw__text(&c->w, "}}");
	chrome_metadata(c, "thread_sort_index", (uint64_t)t->pid, (uint64_t)t->tid, "sort_index");
	jsonw__i64(&c->w, t->tid);
	jsonw__text(&c->w, "}}");
	free(name);
	return 0;
}

/*
 * Writes names and order of the rows. They are the first events, so the only event without a comma
 * in front is one of them.
 */
static int describe_rows(struct chrome *c)
{
	const struct tl_process *p;
	const struct tl_thread *t;
	int err = 0;

	jsonw__text_us(&c->w, "{\"ph\":\"M\",\"name\":\"process_sort_index\",\"ts\":", c->first_ns);
	jsonw__text_u64(&c->w,
			",\"pid\":\"Spans\",\"tid\":0,\"args\":{\"sort_index\":", SPANS_SORT_INDEX);
	jsonw__text(&c->w, "}}");
	for (size_t i = 0; (p = timeline__process(c->t, i)); i++)
		if ((!c->opts->pid || p->pid == c->opts->pid) &&
		    p == timeline__process_of(c->t, p->pid))
			describe_process(c, p);
	for (size_t i = 0; !err && (t = timeline__thread(c->t, i)); i++)
		if (!c->opts->pid || t->pid == c->opts->pid)
			err = describe_thread(c, t);
	return err ? err : chrome_rows_describe(c);
}

/*
 * Writes the window, last, because it spans every event that was written. Its name is Kineto's,
 * unless whoever recorded gave another.
 */
static void tail(struct chrome *c)
{
	struct jsonw *w = &c->w;
	char *name = timeline__meta_text(c->t, "trace_name");

	jsonw__text(w, ",\n{\"ph\":\"X\",\"cat\":\"Trace\",\"name\":");
	jsonw__string(w, name && *name ? name : "PyTorch Profiler (0)");
	free(name);
	jsonw__text(w, ",\"pid\":\"Spans\",\"tid\":\"PyTorch Profiler\",\"ts\":");
	jsonw__us(w, c->first_ns);
	jsonw__text_us(w, ",\"dur\":", (int64_t)((uint64_t)c->last_ns - (uint64_t)c->first_ns));
	jsonw__text_u64(w, ",\"args\":{\"Op count\":", c->spans);
	if (c->cut)
		jsonw__text(w, ",\"complete\":false");
	jsonw__text(w, "}},\n{\"ph\":\"i\",\"s\":\"g\",\"name\":\"Record Window End\",\"pid\":\"\","
		       "\"tid\":\"\",\"ts\":");
	jsonw__us(w, c->last_ns);
	jsonw__text(w, "}\n]\n}\n");
}

static int write_trace(struct chrome *c, const char *path)
{
	const struct kprof_capture_info *info = kprof_capture_info(c->t);
	uint64_t start_ns, end_ns, start_real_ns;
	bool complete = info->complete;
	int err;

	timeline__extent(c->t, &start_ns, &end_ns);
	start_real_ns = timeline__real_ns(c->t, start_ns);

	/* The start of the UTC day in which the capture begins. */
	c->tr.base_real_ns = start_real_ns - start_real_ns % NSEC_PER_DAY;
	c->tr.shift_ns = (int64_t)(start_real_ns - start_ns - c->tr.base_real_ns);
	c->first_ns = chrome_time(c, start_ns);
	c->last_ns = chrome_time(c, end_ns);
	err = trace__open(&c->tr);
	c->corr = c->tr.corr;
	if (!err)
		err = chrome_head(c, path);
	if (!err)
		err = describe_rows(c);
	if (!err)
		err = chrome_spans(c);
	if (!err)
		err = chrome_details(c);
	if (!err)
		err = chrome_waits(c);
	if (!err)
		err = chrome_samples(c);
	if (err)
		return err;
	c->cut = complete && !info->complete;
	tail(c);
	return 0;
}

static int chrome_write(struct kprof_capture *t, const char *path,
			const struct kprof_export_opts *opts)
{
	struct chrome c = {.t = t, .opts = opts, .tr = {.t = t, .opts = opts}};
	size_t len = strlen(path);
	bool gzip = len > 3 && !strcmp(path + len - 3, ".gz");
	int err;

	err = stream__start(path, opts, gzip, &c.w);
	if (err)
		return err;
	err = stream__end(&c.w, write_trace(&c, path));
	fragments_free(&c.descriptions);
	fragments_free(&c.threads);
	fragments_free(&c.keys);
	fragments_free(&c.names);
	fragments_free(&c.stacks);
	trace__close(&c.tr);
	return err;
}

const struct sink_ops sink_chrome = {
	.name = "chrome",
	.suffixes = {".json", ".json.gz"},
	.write = chrome_write,
};
