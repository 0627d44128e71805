// SPDX-License-Identifier: BSD-2-Clause
/* The recording that attach, run and sample share: start, wait, stop, write. */
#include "cmd/record/record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cmd/record/empty.h"
#include "cmd/record/output.h"
#include "cmd/record/signals.h"
#include "cmd/record/summary.h"
#include "cmd/record/unfinished.h"
#include "cmd/print/text.h"
#include "kprof/activity.h"

#define POLL_MS 100

/* One recording, which is to be written. */
struct round {
	struct output output;
	struct kprof_session_stats stats;
	struct empty_look looks; /* at the processes, where nothing seems to be recorded */
};

struct recorder {
	const struct record_opts *opts;
	struct output output;
	struct round *rounds; /* those that are over */
	size_t nr_rounds;
	bool confined;
	bool stopped; /* no further round is wanted, or possible */
	struct kprof_session *session;
	char *command;    /* kprof's own command line */
	char *last_words; /* see signals.h; of the latest round */
	pid_t child;      /* for run: PID of the command; 0: none, or already waited for */
	bool child_started;
	int child_status;     /* status from waitpid() */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC; 0: none */
	uint64_t next_progress_ns;
};

/* ---- start ---- */

static char *join(int argc, char **argv)
{
	size_t bytes = 1;
	char *out, *at;

	for (int i = 0; i < argc; i++)
		bytes += strlen(argv[i]) + 1;
	out = at = malloc(bytes);
	if (!out)
		return NULL;
	for (int i = 0; i < argc; i++)
		at = stpcpy(stpcpy(at, i ? " " : ""), argv[i]);
	*at = '\0';
	return out;
}

static void set_owner(const struct recorder *r, struct kprof_session_opts *session)
{
	const struct caller *owner = &r->output.owner;

	session->command = r->command;
	session->capture_uid = owner->uid;
	session->capture_gid = owner->gid;
	session->set_owner = owner->by_sudo;
	session->spawn_ignores = signals_inherited();
	session->confine = !r->confined;
}

static int new_session(struct recorder *r)
{
	struct kprof_session_opts session = r->opts->session;

	session.capture_path = r->output.capture_path;
	set_owner(r, &session);
	return kprof_session_new(&session, &r->session);
}

/* The values were checked when the options were parsed. */
static int add_metadata(struct recorder *r)
{
	int err = 0;

	for (size_t i = 0; i < r->opts->meta.nr && !err; i++) {
		const char *json;
		char *key = record_meta_key(r->opts->meta.items[i], &json);

		err = key ? kprof_session_add_metadata_json(r->session, key, json) : -ENOMEM;
		free(key);
	}
	return err;
}

static int add_targets(struct recorder *r)
{
	const struct record_opts *opts = r->opts;
	int err = 0;

	if (r->child)
		return kprof_session_add_pid(r->session, r->child);
	if (opts->argv)
		return kprof_session_spawn(r->session, opts->argv, r->output.owner.uid,
					   r->output.owner.gid, &r->child);
	for (size_t i = 0; i < opts->pids.nr && !err; i++)
		err = kprof_session_add_pid(r->session, opts->pids.items[i]);
	return err;
}

/* The process that the output is named after; 0: all of the machine. */
static pid_t first_pid(const struct recorder *r)
{
	if (r->opts->session.all_processes)
		return 0;
	return r->child ? r->child : r->opts->pids.items[0];
}

static int start(struct recorder *r)
{
	int err;

	if (!r->opts->message.quiet && !r->nr_rounds)
		unfinished_say(r->output.capture_path, &r->output.owner);
	err = new_session(r);
	if (!err)
		err = add_metadata(r);
	if (!err)
		err = add_targets(r);
	if (!err)
		err = kprof_session_start(r->session);
	if (err)
		return message_error();
	r->child_started |= r->child != 0;
	r->confined = true;
	if (r->opts->message.verbose)
		message_note("recording"); /* scripts can wait for it: all probes are placed */
	if (output_set_default(&r->output, first_pid(r),
			       r->opts->session.samples_only ? ".svg" : ".pt.trace.json.gz"))
		return EXIT_FAILED;
	r->deadline_ns = 0;
	if (r->opts->duration_ns)
		r->deadline_ns = now_ns(CLOCK_MONOTONIC) + r->opts->duration_ns;
	return 0;
}

/* ---- record ---- */

static void show_progress(struct recorder *r)
{
	struct kprof_session_stats s;
	char line[160], bytes[TEXT_NUMBER_BYTES];

	if (now_ns(CLOCK_MONOTONIC) < r->next_progress_ns)
		return;
	r->next_progress_ns = now_ns(CLOCK_MONOTONIC) + PROGRESS_NS;
	kprof_session_stats(r->session, &s);
	snprintf(line, sizeof(line),
		 "%.1f s   %" PRIu64 " events   %" PRIu64 " dropped   %s   %u threads",
		 (double)s.elapsed_ns / 1e9, s.events, s.dropped,
		 text_bytes(bytes, s.written_bytes), s.threads);
	message_line(line);
}

/* Whether the command has ended; without WNOHANG in flags, waits for its end. */
static bool child_ended(struct recorder *r, int flags)
{
	siginfo_t info = {0};

	/* Not the stops of a child into which the agent is put: these are for who traces it. */
	if (waitid(P_PID, (id_t)r->child, &info, WEXITED | WNOWAIT | flags)
		    ? errno == EINTR
		    : !info.si_pid || info.si_code == CLD_TRAPPED || info.si_code == CLD_STOPPED)
		return false;
	waitpid(r->child, &r->child_status, flags);
	r->child = 0;
	return true;
}

static void forward_signal(const struct recorder *r)
{
	int signal = signals_take_to_forward();

	if (signal && r->child)
		kill(r->child, signal);
}

/* Whether a signal has asked for the end. */
static bool asked_to_stop(struct recorder *r, int *seen)
{
	int count = signals_count();

	if (!r->child) /* attach, or the command has ended */
		return count > 0;
	forward_signal(r);
	if (count == 1 && *seen == 0 && !r->opts->message.quiet)
		message_note(
			"waiting for the command to end; Ctrl-C again stops the recording now");
	*seen = count;
	return count > 1;
}

static int poll_ms(const struct recorder *r)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);

	if (!r->deadline_ns || r->deadline_ns >= now + POLL_MS * 1000000ull)
		return POLL_MS;
	return r->deadline_ns <= now ? 0 : (int)((r->deadline_ns - now) / 1000000) + 1;
}

/* Whether any of the processes still lives. */
static bool any_alive(const struct recorder *r)
{
	if (r->opts->session.all_processes || r->child)
		return true;
	for (size_t i = 0; i < r->opts->pids.nr; i++)
		if (!kill(r->opts->pids.items[i], 0) || errno == EPERM)
			return true;
	return false;
}

/*
 * Polls until the session ends by itself, the deadline is over, or no more is wanted. Returns 0 or
 * an exit code.
 */
static int poll_on(struct recorder *r, bool progress)
{
	bool is_run = r->child;
	int seen = 0;

	for (;;) {
		int n = r->session ? kprof_session_poll(r->session, poll_ms(r))
				   : usleep((useconds_t)poll_ms(r) * 1000) * 0;

		if (n < 0)
			return message_error();
		if (progress)
			show_progress(r);
		r->stopped = (is_run && child_ended(r, WNOHANG)) || asked_to_stop(r, &seen);
		if (n || r->stopped ||
		    (r->deadline_ns && now_ns(CLOCK_MONOTONIC) >= r->deadline_ns))
			break;
	}
	r->stopped |= !any_alive(r);
	return 0;
}

static void end_session(struct recorder *r)
{
	kprof_session_free(r->session);
	r->session = NULL;
}

/* ---- before a round (--wait) ---- */

/* A session that sees nothing but annotations, of which it writes nothing that is kept. */
static int new_waiting(struct recorder *r, const struct kprof_schedule *schedule)
{
	struct kprof_session_opts session = {
		.sz = sizeof(session),
		.agent = KPROF_AGENT_NONE,
		.types = 1ull << KPROF_ACTIVITY_USER_ANNOTATION,
		.children = r->opts->session.children,
		.all_processes = r->opts->session.all_processes,
		.choice = r->opts->session.choice,
		.ring_bytes = r->opts->session.ring_bytes,
		.no_multi = r->opts->session.no_multi,
		.trust_files = r->opts->session.trust_files,
		.capture_path = r->output.capture_path,
		.schedule = schedule->steps ? schedule : NULL,
	};
	int err;

	set_owner(r, &session);
	err = kprof_session_new(&session, &r->session);
	if (!err)
		err = add_targets(r);
	return err ? err : kprof_session_start(r->session);
}

/* Lets steps or time go by. Between rounds, time goes by without any probes. */
static int wait_before(struct recorder *r)
{
	struct kprof_schedule schedule = {.annotation = r->opts->schedule.annotation};
	uint64_t ns = 0;
	int code = 0;

	if (!r->opts->wait)
		return 0;
	record_steps_or_time(r->opts->wait, &schedule.steps, &ns);
	if (schedule.steps || (r->opts->argv && !r->child)) {
		if (new_waiting(r, &schedule))
			return message_error();
		r->child_started |= r->child != 0;
		r->confined = true;
	}
	if (r->opts->message.verbose)
		message_note("waiting");
	r->deadline_ns = ns ? now_ns(CLOCK_MONOTONIC) + ns : 0;
	code = poll_on(r, false);
	end_session(r);
	return code;
}

/* ---- stop and write ---- */

static int stop(struct recorder *r, struct round *round)
{
	int err;

	message_line("");
	if (message_line_wanted() && !r->opts->message.quiet)
		message_line("removing the probes");
	err = kprof_session_stop(r->session);
	kprof_session_stats(r->session, &round->stats);
	message_line("");
	return err ? message_error() : 0;
}

/* Prints figures to stderr; *lost is what summary_print() returns. */
static int summarize(const struct recorder *r, const struct round *round, uint64_t *lost)
{
	struct kprof_capture *capture;

	if (kprof_capture_open(round->output.capture_path, &capture))
		return message_error();
	*lost = summary_print(capture, &round->stats, r->opts->session.samples_only,
			      r->opts->message.quiet);
	if (!r->opts->session.samples_only && empty_is(capture))
		empty_say(r->opts, capture, &round->looks);
	kprof_capture_close(capture);
	return 0;
}

/* Whether files of samples are to show the waits: never both in one, where none could tell them. */
static bool shows_waits(const struct recorder *r)
{
	const struct kprof_session_opts *session = &r->opts->session;

	return session->waits && (session->samples_only || !session->sample_hz);
}

static bool is_last(const struct recorder *r)
{
	return r->stopped || r->nr_rounds + 1 >= r->opts->repeat;
}

/* Records once, after the time that is to be waited. What was recorded before a failure is kept. */
static int record_round(struct recorder *r)
{
	bool progress = !r->opts->message.quiet && message_line_wanted();
	struct round *round = &r->rounds[r->nr_rounds];
	int failed, code = wait_before(r);

	if (code || r->stopped)
		return code;
	code = start(r);
	if (code)
		return code;
	failed = poll_on(r, progress);
	/*
	 * With `run`, the first Ctrl-C makes kprof wait for the command, so it takes two to stop
	 * recording.
	 */
	if (failed || is_last(r))
		signals_finishing(r->opts->argv ? 2 : 1);
	code = stop(r, round);
	if (failed || code) {
		output_say_kept(&r->output);
		return failed ? failed : code;
	}
	if (!round->stats.events && !r->opts->session.samples_only)
		empty_look(r->opts, !*signals_given_up(), &round->looks);
	round->output = r->output;
	r->output = (struct output){0};
	r->nr_rounds++;
	return 0;
}

static int write_round(const struct recorder *r, const struct round *round)
{
	uint64_t lost = 0;
	int code = summarize(r, round, &lost);

	if (!code && r->opts->session.samples_only && !r->opts->session.waits &&
	    !round->stats.samples && !lost && output_drop(&round->output))
		return r->opts->argv ? 0 : EXIT_FAILED; /* the exit status will be the command's */
	if (!code)
		code = output_write(&round->output, shows_waits(r), r->opts->message.quiet,
				    signals_given_up());
	if (!code && lost && r->opts->strict) {
		message_note("%" PRIu64 " events were lost (--strict)", lost);
		code = EXIT_LOST;
	}
	return code;
}

/* Writes all that was recorded. Returns the first exit code that is not 0. */
static int write_rounds(const struct recorder *r)
{
	const struct output *first = &r->rounds[0].output;
	int code = 0;

	if (!r->nr_rounds)
		return 0;
	/* From here on, captures are only read. They have the names that targets chose. */
	if (kprof_give_up_root(first->capture_path, first->path, first->owner.uid, first->owner.gid,
			       false))
		return message_error();
	for (size_t i = 0; i < r->nr_rounds; i++) {
		int this = write_round(r, &r->rounds[i]);

		code = code ? code : this;
	}
	return code;
}

/* Waits for the command and reports how it ended; returns its exit status as a shell would. */
static int child_code(struct recorder *r)
{
	int status;

	while (r->child && !child_ended(r, 0))
		forward_signal(r); /* waitpid() was interrupted by a signal */
	status = r->child_status;
	if (WIFSIGNALED(status)) {
		message_note("%s was killed by signal %d (%s)", r->opts->argv[0], WTERMSIG(status),
			     strsignal(WTERMSIG(status)));
		return 128 + WTERMSIG(status);
	}
	if (WEXITSTATUS(status))
		message_note("%s ended with exit status %d", r->opts->argv[0], WEXITSTATUS(status));
	return WEXITSTATUS(status);
}

static char *make_last_words(const struct output *o)
{
	const char *name = text_base(o->capture_path);
	int dir_len = (int)(name - o->capture_path);
	char *text;

	if (asprintf(&text,
		     "\nkprof: ended at once; what was recorded so far is in %s, "
		     "or in %.*s.%s.*.tmp\n",
		     o->capture_path, dir_len, o->capture_path, name) < 0)
		return NULL;
	return text;
}

/* The output of the next round; its last words replace the ones before. */
static int prepare_round(struct recorder *r)
{
	char *path = NULL, *words;
	int code;

	if (r->opts->output && r->opts->repeat > 1) {
		path = output_numbered(r->opts->output, r->nr_rounds + 1);
		if (!path)
			return message_no_memory();
	}
	code = output_init(&r->output, path ? path : r->opts->output);
	free(path);
	if (code)
		return code;
	words = make_last_words(&r->output);
	if (!words)
		return message_no_memory();
	signals_set_last_words(words);
	free(r->last_words);
	r->last_words = words;
	return 0;
}

static int record_all(struct recorder *r)
{
	int code, written;
	bool again;

	do {
		code = prepare_round(r);
		if (!code)
			code = record_round(r);
		output_free(&r->output);
		again = !code && !r->stopped && r->nr_rounds < r->opts->repeat;
		if (again)
			end_session(r);
	} while (again);
	if (!code && r->nr_rounds < (r->opts->repeat ? r->opts->repeat : 1))
		message_warn(NULL, "%zu of %" PRIu64 " rounds were recorded", r->nr_rounds,
			     r->opts->repeat ? r->opts->repeat : 1);
	written = write_rounds(r);
	end_session(r); /* after that, as removing single probes takes long */
	return code ? code : written;
}

int record(const struct record_opts *opts, int argc, char **argv)
{
	struct recorder r = {.opts = opts};
	int code = 0, command_code;

	r.command = join(argc, argv);
	r.rounds = calloc(opts->repeat ? opts->repeat : 1, sizeof(*r.rounds));
	if (!r.command || !r.rounds) {
		code = message_no_memory();
		goto out;
	}
	signals_set_last_words("");
	signals_catch();
	message_listen(&opts->message);
	code = record_all(&r);
	if (r.child_started) {
		command_code = child_code(&r);
		code = code ? code : command_code;
	} else if (r.child) {
		/* The child ends with the session, before it executes its program. */
		waitpid(r.child, NULL, 0);
	}
	signals_set_last_words("");
out:
	for (size_t i = 0; i < r.nr_rounds; i++)
		output_free(&r.rounds[i].output);
	free(r.rounds);
	free(r.command);
	free(r.last_words);
	return code;
}
