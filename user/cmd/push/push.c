// SPDX-License-Identifier: BSD-2-Clause
/* kprof push: sends the samples of captures to a place that keeps profiles, and waits for it. */
#include "cmd/push/push.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "cmd/export/export.h"
#include "cmd/print/message.h"
#include "cmd/print/text.h"
#include "cmd/record/signals.h"
#include "kprof/diff.h"

#define DEFAULT_TIMEOUT_NS 60000000000ull
#define STEP_MS 200

struct push {
	struct push_opts to;
	struct value_list captures;
	const char *queue;
	uint64_t timeout_ns;
	struct message_progress progress;
};

/* Root is given up for who may read the captures, and write to the queue. */
static int give_up_root(const struct push *o)
{
	const struct kprof_diff_set set = {(const char *const *)o->captures.items, o->captures.nr};
	struct caller caller = caller_get();
	char in_queue[4096];

	if (o->queue &&
	    (size_t)snprintf(in_queue, sizeof(in_queue), "%s/lock", o->queue) >= sizeof(in_queue)) {
		message_note("%.64s… is too long a path", o->queue);
		return EXIT_USAGE;
	}
	if (kprof_give_up_root_of(&set, NULL, o->queue ? in_queue : NULL, caller.uid, caller.gid,
				  true))
		return message_error();
	return -1;
}

static int add_all(const struct push *o, struct kprof_push *p)
{
	for (size_t i = 0; i < o->captures.nr; i++)
		if (kprof_push_add(p, o->captures.items[i]))
			return message_error();
	return -1;
}

/* Sends until there is nothing left, or no sense in trying again now. */
static int send_all(struct push *o, struct kprof_push *p)
{
	uint64_t until_ns = now_ns(CLOCK_MONOTONIC) + o->timeout_ns;
	struct kprof_push_stats stats;
	int done;

	do {
		done = kprof_push_run(p, STEP_MS);
		kprof_push_stats(p, &stats);
		message_progress(&o->progress, "pushing", stats.pushed,
				 stats.pushed + stats.queued);
	} while (!done && !stats.untrusted && !signals_count() &&
		 now_ns(CLOCK_MONOTONIC) < until_ns);
	message_line("");
	return done < 0 ? message_error() : -1;
}

static void put_count(uint64_t nr, const char *what)
{
	if (nr)
		message_note("%" PRIu64 " %s", nr, what);
}

/* What came of it; the exit code. */
static int tell(const struct push *o, const struct kprof_push *p)
{
	struct kprof_push_stats s;
	uint64_t lost = 0;

	kprof_push_stats(p, &s);
	for (size_t i = 0; i < KPROF_PUSH_DROPS; i++)
		lost += s.dropped[i];
	if (*s.error && (lost || s.queued || s.rejected))
		message_warn(*s.hint ? s.hint : NULL, "%s", s.error);
	put_count(s.dropped[KPROF_PUSH_REFUSED], "requests were refused");
	put_count(s.dropped[KPROF_PUSH_TOO_OLD] + s.dropped[KPROF_PUSH_NO_ROOM],
		  "requests were dropped from the queue");
	put_count(s.dropped[KPROF_PUSH_DAMAGED], "requests in the queue could not be read");
	put_count(s.rejected, "profiles were left out by the receiver");
	if (s.queued)
		message_note("%" PRIu64 " requests were not sent%s", s.queued,
			     o->queue ? "; they stay in the queue" : "");
	printf("%" PRIu64 " requests, %" PRIu64 " bytes\n", s.pushed, s.pushed_bytes);
	return lost || s.queued || s.rejected ? EXIT_FAILED : EXIT_DONE;
}

static int push(struct push *o)
{
	struct kprof_push *p;
	int code;

	push_fill(&o->to);
	o->to.library.queue = o->queue;
	if (!o->timeout_ns)
		o->timeout_ns = DEFAULT_TIMEOUT_NS;
	if (o->to.library.timeout_ns == 0 && o->timeout_ns < 30000000000ull)
		o->to.library.timeout_ns = o->timeout_ns;
	/* Secrets are read with the rights that kprof was started with. */
	if (kprof_push_new(&o->to.library, &p))
		return message_error();
	signals_catch();
	o->progress.shown = message_line_wanted();
	code = give_up_root(o);
	if (code < 0)
		code = add_all(o, p);
	if (code < 0)
		code = send_all(o, p);
	if (code < 0)
		code = tell(o, p);
	kprof_push_free(p);
	return code;
}

#define OPT(FIELD) OPTION_FIELD(struct push, FIELD)

/* clang-format off */
static const struct option_row options[] = {
	PUSH_OPTIONS(struct push, to),
	{.name = "timeout", .kind = OPTION_DURATION, OPT(timeout_ns), .argument = "TIME",
	 .help = "give up after this long. Default: 1m"},
	{.name = "queue", .kind = OPTION_TEXT, OPT(queue), .argument = "DIR", .words = "<file>",
	 .help = "what could not be sent stays in this folder; the next time it is sent as well"},
	{0},
};
/* clang-format on */

static int run(const struct command *self, int argc, char **argv)
{
	struct push o = {0};
	int first, code = options_parse(self, argc, argv, &o, &first);

	if (code < 0 && !o.to.library.url)
		code = message_usage(self->name, "no destination is given (--to URL)");
	if (code < 0 && first == argc && !o.queue)
		code = message_usage(self->name, "no captures are given");
	for (int i = first; i < argc && code < 0; i++)
		code = options_add_captures(&o.captures, argv[i]);
	if (code < 0)
		code = push(&o);
	value_list_free(&o.captures);
	options_free(self, &o);
	return code;
}

const struct command cmd_push = {
	.name = "push",
	.arguments = "FILE.kprof|FOLDER… --to URL [OPTION…]",
	.summary = "samples to an OpenTelemetry collector, Pyroscope or Parca; needs no root",
	.options = options,
	.run = run,
};
