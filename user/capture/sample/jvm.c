// SPDX-License-Identifier: BSD-2-Clause
/*
 * Java's virtual machines are asked for the names of their compiled code, if the user has said so:
 * when the first of it is met, since the process may end before the recording, and at the end,
 * since more is compiled meanwhile.
 */
#include <errno.h>
#include <string.h>

#include "capture/sample/impl.h"
#include "util/error.h"
#include "util/util.h"

#define MOST_ASKED 64 /* at a time */
#define LAST_WAIT_NS (6 * NSEC_PER_SEC)

static const char *why(int err)
{
	switch (-err) {
	case ESRCH:
		return "it has ended";
	case EINVAL:
		return "it handles no SIGQUIT (-Xrs), or is no JVM";
	case EACCES:
		return "its attach mechanism is disabled (-XX:+DisableAttachMechanism)";
	case EOPNOTSUPP:
		return "its JDK is older than 17";
	case EPERM:
		return "another process, or another user's, is in its place";
	case ETIMEDOUT:
		return "it does not answer";
	default:
		return strerror(-err);
	}
}

static void on_answer(struct stacks *s, const struct target *t, int answer)
{
	struct stack_target *st = stacks__of(s, t);

	s->nr_asking--;
	s->jvm_named += !answer;
	st->jit_next_ns = 0;
	if (!answer) {
		st->jit_unnamed = true; /* there is a new file to read */
		return;
	}
	st->ask_failed = true;
	log_warn(NULL, "process %u (Java) was asked for names of its compiled code: %s", t->pid,
		 why(answer));
}

static void ask(struct stacks *s, const struct target *t)
{
	struct stack_target *st = stacks__of(s, t);
	struct proc_info info;

	if (st->ask_failed || st->ask.child || !st->jit_unnamed || s->nr_asking >= MOST_ASKED ||
	    stacks_runtimes__of(st->space) != RUNTIME_JAVA)
		return;
	st->asked = true;
	if (proc_info_read((pid_t)t->pid, &info) ||
	    (t->start_ticks && t->start_ticks != info.start_ticks)) {
		error_clear();
		return;
	}
	if (jvm_ask__begin(info.pid, info.start_ticks, &st->ask))
		return;
	s->nr_asking++;
	s->jvm_asked++;
}

void stacks_jvm__tend(struct stacks *s, struct target *t)
{
	struct stack_target *st = stacks__of(s, t);
	int answer;

	if (!s->opts.ask_jvm)
		return;
	if (!st->asked)
		ask(s, t);
	if (!st->ask.child)
		return;
	answer = jvm_ask__answer(&st->ask, 0);
	if (answer != JVM_ASKING)
		on_answer(s, t, answer);
}

void stacks_jvm__ask_all(struct stacks *s)
{
	struct target *t, *next;

	TARGETS_EACH (s->opts.targets, t, next) {
		if (s->opts.ask_jvm && stacks__of(s, t) && !t->ended)
			ask(s, t);
	}
}

void stacks_jvm__wait(struct stacks *s)
{
	uint64_t until_ns = clock_mono_ns() + LAST_WAIT_NS, now_ns;
	struct target *t, *next;

	TARGETS_EACH (s->opts.targets, t, next) {
		struct stack_target *st = stacks__of(s, t);
		int answer = JVM_ASKING;

		while (st && st->ask.child && answer == JVM_ASKING) {
			now_ns = clock_mono_ns();
			answer = jvm_ask__answer(&st->ask, now_ns < until_ns ? 50 : 0);
			if (answer == JVM_ASKING && now_ns >= until_ns) {
				jvm_ask__end(&st->ask);
				answer = -ETIMEDOUT;
			}
			if (answer != JVM_ASKING)
				on_answer(s, t, answer);
		}
	}
}

void stacks_jvm__forget(struct stacks *s, struct stack_target *st)
{
	if (!st->ask.child)
		return;
	jvm_ask__end(&st->ask);
	s->nr_asking--;
}
