// SPDX-License-Identifier: BSD-2-Clause
/*
 * Probes in all processes of the machine that map a known framework. One that does already is a
 * target from the beginning. One that maps a framework's file later joins when
 *
 *   - it hits a probe: if the file has probes already, since these are in every process. The
 *     kernel's program makes it a target then and there (bpf/common.h), and nothing is missed;
 *   - a perf event tells that it has mapped the file: if nobody had mapped that before.
 *
 * Processes that are not to be recorded are left out in the kernel, until they execute another
 * program.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/session/session.h"
#include "util/error.h"
#include "util/util.h"

#define NAMES_MOST 4096 /* names of files that are known not to be a framework's */

struct joins {
	struct proc_news_reader *news; /* NULL: the kernel tells nothing */
	struct map64 others;           /* by hash of a file's name: none of a framework */
	size_t nr_others;
};

int joins__new(struct kprof_session *s)
{
	int err;

	s->joins = calloc(1, sizeof(*s->joins));
	if (!s->joins)
		return -ENOMEM;
	err = proc_news__new(&s->joins->news);
	if (err)
		log_warn(NULL,
			 "the kernel does not tell which files processes map (%s): of those that "
			 "start meanwhile, only users of files with probes are recorded",
			 strerror(-err));
	return 0;
}

void joins__free(struct kprof_session *s)
{
	if (!s->joins)
		return;
	proc_news__free(s->joins->news);
	map64__free(&s->joins->others);
	free(s->joins);
}

/* Does a framework have a file of this name? */
static bool is_framework(struct joins *j, const char *name)
{
	uint64_t hash = hash64_text(0, name) >> 1, *other;

	if (map64__get(&j->others, hash))
		return false;
	if (plan_frameworks_of(name))
		return true;
	if (j->nr_others >= NAMES_MOST) {
		map64__free(&j->others);
		j->nr_others = 0;
	}
	other = map64__at(&j->others, hash);
	if (other) {
		*other = 1;
		j->nr_others++;
	}
	return false;
}

/* ---- processes that have a framework already ---- */

struct scan {
	struct joins *joins;
	bool found;
};

static void on_file(void *ctx, uint64_t inode, const char *name)
{
	struct scan *scan = ctx;

	scan->found = scan->found || is_framework(scan->joins, name);
}

int joins__prepare(struct kprof_session *s)
{
	uint64_t now_ns = clock_mono_ns();
	pid_t *pids = NULL;
	size_t nr = 0;
	int err = proc_pids(&pids, &nr);

	for (size_t i = 0; i < nr && !err; i++) {
		struct scan scan = {.joins = s->joins};

		if (pids[i] == getpid() || targets__find(s->targets, (uint32_t)pids[i]))
			continue;
		proc_code_files(pids[i], on_file, &scan);
		if (scan.found)
			err = process__join(s, (uint32_t)pids[i], now_ns, NULL);
	}
	free(pids);
	if (!err && !targets__first(s->targets))
		log_warn(NULL,
			 "no process maps a known framework yet: those that will are recorded");
	return err;
}

/* ---- processes that join ---- */

int joins__seen(struct kprof_session *s, struct target *t, const struct kprof_wire_seen *e)
{
	int err = 0;

	/* two of its threads have hit a probe at once; or it was found by its files meanwhile */
	if (t && (!t->start_ticks || t->start_ticks == wire_start_ticks(e)))
		return 0;
	if (t) /* the record of its exit was lost */
		err = process__on_exit(s, t, e->h.time_ns);
	return err ? err : process__join(s, (uint32_t)(e->h.pid_tgid >> 32), e->h.time_ns, e);
}

struct news {
	struct kprof_session *s;
	int err;
};

static void on_news(void *ctx, const struct proc_news *n)
{
	struct news *news = ctx;

	if (news->err || n->kind != PROC_NEWS_MAP ||
	    targets__find(news->s->targets, (uint32_t)n->pid) ||
	    !is_framework(news->s->joins, proc_basename(n->map.path)) ||
	    probe_set__fires_in_all(news->s->probes, &n->map))
		return;
	news->err = process__join(news->s, (uint32_t)n->pid, n->time_ns, NULL);
}

int joins__tend(struct kprof_session *s)
{
	struct news news = {.s = s};

	if (s->joins->news)
		proc_news__read(s->joins->news, on_news, &news);
	return news.err;
}

uint64_t joins__lost(const struct kprof_session *s)
{
	return s->joins->news ? proc_news__lost(s->joins->news) : 0;
}
