// SPDX-License-Identifier: BSD-2-Clause
/*
 * kprof_capture_export(): chooses the format, the files and the processes; the sinks do the rest.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kprof.h"
#include "model/timeline/timeline.h"
#include "model/stacks/stacks.h"
#include "sink/sink.h"
#include "store/store.h"
#include "util/error.h"
#include "util/util.h"

#define PID_MARK "%p"

struct pids {
	pid_t *list; /* in order of first appearance */
	size_t nr, cap;
};

/* How far an export of several passes over the file is, for its progress. */
struct passes {
	const struct kprof_export_opts *user;
	uint64_t done, total; /* passes */
};

static int on_progress(void *ctx, uint64_t done, uint64_t total)
{
	const struct passes *p = ctx;

	return p->user->progress(p->user->ctx, p->done * total + done, p->total * total);
}

static bool pids_have(const struct pids *pids, pid_t pid)
{
	for (size_t i = 0; i < pids->nr; i++)
		if (pids->list[i] == pid)
			return true;
	return false;
}

static int pids_add(struct pids *pids, pid_t pid)
{
	if (pids_have(pids, pid))
		return 0;
	if (vec_grow((void **)&pids->list, &pids->cap, pids->nr, sizeof(*pids->list)))
		return error_set(-ENOMEM, NULL, "no memory for the list of processes");
	pids->list[pids->nr++] = pid;
	return 0;
}

/* Notes in a list by the thread's index that it has spans, or samples. */
static int mark_span(void *ctx, const struct tl_span *s)
{
	((bool *)ctx)[s->thread] = true;
	return 0;
}

static int mark_sample(void *ctx, const struct store_record *r)
{
	((bool *)ctx)[r->sample.thread] = true;
	return 0;
}

static bool is_busy(const struct kprof_capture *t, const bool *threads, pid_t pid)
{
	const struct tl_thread *th;

	for (size_t i = 0; (th = timeline__thread(t, i)); i++)
		if (th->pid == pid && threads[i])
			return true;
	return false;
}

/*
 * Chooses the processes that get a file: those with spans or samples, and the targets, even those
 * that have none. A process is a target if it came into the recording by itself, not as the child
 * of another. For a format that shows only samples, these are the processes that have some.
 */
static int pick_processes(struct kprof_capture *t, const struct sink_ops *ops, struct pids *pids)
{
	bool *busy = calloc(kprof_capture_info(t)->nr_threads + 1, sizeof(*busy));
	const struct tl_process *p;
	int err;

	if (!busy)
		return error_set(-ENOMEM, NULL, "no memory for the list of threads");
	err = ops->samples ? 0 : timeline__spans(t, mark_span, busy);
	if (!err)
		err = timeline__samples(t, 0, mark_sample, busy);
	for (size_t i = 0; !err && (p = timeline__process(t, i)); i++)
		if ((!ops->samples && !timeline__process_of(t, p->ppid)) ||
		    is_busy(t, busy, p->pid))
			err = pids_add(pids, p->pid);
	free(busy);
	return err;
}

/* The path with every %p replaced by the PID, malloc'ed. NULL: out of memory. */
static char *path_of(const char *path, pid_t pid)
{
	char number[16], *out, *at;
	const char *mark;
	size_t len;

	len = (size_t)snprintf(number, sizeof(number), "%d", pid);
	out = at = malloc(strlen(path) / strlen(PID_MARK) * len + strlen(path) + 1);
	if (!out)
		return NULL;
	while ((mark = strstr(path, PID_MARK))) {
		at = mempcpy(at, path, (size_t)(mark - path));
		at = mempcpy(at, number, len);
		path = mark + strlen(PID_MARK);
	}
	strcpy(at, path);
	return out;
}

static int export_one(struct kprof_capture *t, const struct sink_ops *ops, const char *path,
		      const struct kprof_export_opts *opts)
{
	int err = ops->write(t, path, opts);

	if (err)
		return err;
	if (opts->wrote && strcmp(path, "-"))
		opts->wrote(opts->ctx, path);
	return 0;
}

static int export_each(struct kprof_capture *t, const struct sink_ops *ops,
		       const struct kprof_export_opts *opts)
{
	struct kprof_export_opts one = *opts;
	/* The first pass finds the processes, and so the number of passes: at least two. */
	struct passes passes = {.user = opts, .total = 2};
	struct pids pids = {0};
	int err;

	if (opts->progress) {
		one.progress = on_progress;
		one.ctx = &passes;
		timeline__watch(t, on_progress, &passes);
	}
	if (opts->pid)
		err = pids_add(&pids, opts->pid);
	else
		err = pick_processes(t, ops, &pids);
	if (!err && !pids.nr)
		err = ops->samples ? stack_no_samples(t, 0)
				   : error_set(-ENODATA, NULL,
					       "the capture has no process to write a file for");
	passes.done = opts->pid ? 0 : 1;
	passes.total = passes.done + pids.nr;
	one.wrote = NULL; /* its ctx belongs to the user's wrote(), not to this one */
	for (size_t i = 0; i < pids.nr && !err; i++, passes.done++) {
		char *path = path_of(opts->path, pids.list[i]);

		if (!path) {
			err = error_set(-ENOMEM, NULL, "no memory for a file's name");
			break;
		}
		one.pid = pids.list[i];
		err = export_one(t, ops, path, &one);
		if (!err && opts->wrote)
			opts->wrote(opts->ctx, path);
		free(path);
	}
	free(pids.list);
	return err;
}

static int check(const struct kprof_capture *t, const struct kprof_export_opts *opts)
{
	if (!opts->path || !*opts->path)
		return error_set_usage(-EINVAL, NULL, "the output path is empty");
	if (opts->gzip_level < 0 || opts->gzip_level > 9)
		return error_set_usage(-EINVAL, "1 is fast, 9 is small, 0 is the default",
				       "there is no compression level %d", opts->gzip_level);
	if (opts->pid && !timeline__process_of(t, opts->pid))
		return error_set_usage(-ESRCH, "`kprof report --by thread` lists who is in it",
				       "process %d is not in the capture", opts->pid);
	return 0;
}

int kprof_capture_export(struct kprof_capture *t, const struct kprof_export_opts *user)
{
	struct kprof_export_opts opts = {0};
	const struct sink_ops *ops;
	int err;

	error_clear();
	/*
	 * A program built against an older kprof.h passes a shorter struct, a newer one a longer
	 * one.
	 */
	memcpy(&opts, user, user->sz < sizeof(opts) ? user->sz : sizeof(opts));
	err = check(t, &opts);
	if (err)
		return err;
	ops = sink_find(opts.path, opts.format);
	if (!ops)
		return -EINVAL;
	if (timeline__has_blocks(t) && !ops->blocks)
		return error_set_usage(
			-EINVAL,
			".folded, .pb.gz (pprof), .pickle (PyTorch's memory_viz), "
			".kprof; `kprof memory export` prints tables",
			"%s says what is allocated, of which a %s file has no picture",
			timeline__path(t), ops->name);
	timeline__watch(t, opts.progress, opts.ctx);
	timeline__show_waits(t, opts.off_cpu && ops->samples);
	if (strstr(opts.path, PID_MARK))
		err = export_each(t, ops, &opts);
	else
		err = export_one(t, ops, opts.path, &opts);
	timeline__watch(t, NULL, NULL);
	timeline__show_waits(t, false);
	return err;
}
