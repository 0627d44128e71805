// SPDX-License-Identifier: BSD-2-Clause
#include "capture/sample/sideband.h"

/* uthash: without memory an element is not added, and its hh.tbl stays NULL */
#define HASH_NONFATAL_OOM 1
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "util/util.h"

#define MAX_PROCESSES 4096
#define KEPT_NS (2 * NSEC_PER_SEC) /* after its exit a process's last samples are still read */

struct map_news {
	struct proc_map map;
	uint64_t time_ns;
	char *path;
};

struct process_news {
	UT_hash_handle hh; /* in order of the latest exec or fork: the first is the oldest */
	pid_t pid, parent; /* parent: 0 if its fork was not seen */
	uint64_t fork_ns;
	uint64_t exec_ns; /* of the latest program; 0: none was seen */
	uint32_t nr_execs;
	uint64_t exit_ns;      /* 0: it lives */
	struct map_news *maps; /* most programs have few of SIDEBAND_MAPS */
	size_t nr, cap;
};

struct sideband {
	struct proc_news_reader *reader;
	struct process_news *processes;
	uint64_t next_trim_ns;
};

/* ---- processes ---- */

static void forget_maps(struct process_news *p)
{
	for (size_t i = 0; i < p->nr; i++)
		free(p->maps[i].path);
	p->nr = 0;
}

static void forget(struct sideband *sb, struct process_news *p)
{
	HASH_DEL(sb->processes, p);
	forget_maps(p);
	free(p->maps);
	free(p);
}

static struct process_news *find(const struct sideband *sb, pid_t pid)
{
	struct process_news *p;

	HASH_FIND(hh, sb->processes, &pid, sizeof(pid), p);
	return p;
}

/* A process that begins, or is met for the first time. NULL: no memory. */
static struct process_news *add(struct sideband *sb, pid_t pid)
{
	struct process_news *p = find(sb, pid);

	if (p)
		forget(sb, p);
	if (HASH_COUNT(sb->processes) >= MAX_PROCESSES)
		forget(sb, sb->processes);
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->pid = pid;
	HASH_ADD(hh, sb->processes, pid, sizeof(p->pid), p);
	if (p->hh.tbl)
		return p;
	free(p);
	return NULL;
}

/* ---- news ---- */

/* Is this the process that had the number before the time? */
static bool is_older(const struct process_news *p, uint64_t time_ns)
{
	return p->exit_ns ? p->exit_ns <= time_ns
			  : p->exec_ns < time_ns && (!p->nr || p->maps[0].time_ns < time_ns);
}

/* The rings of CPUs are read one after the other: what a child does may be read before its fork. */
static void on_fork(struct sideband *sb, const struct proc_news *n)
{
	struct process_news *p = find(sb, n->pid);

	if (!p || is_older(p, n->time_ns))
		p = add(sb, n->pid);
	if (!p)
		return;
	p->parent = n->parent;
	p->fork_ns = n->time_ns;
}

static void on_exit_news(struct sideband *sb, const struct proc_news *n)
{
	struct process_news *p = find(sb, n->pid);

	if (p && n->time_ns >= p->fork_ns)
		p->exit_ns = n->time_ns;
}

/* A program is executed. What it maps may have been read before this, from another CPU's ring. */
static void on_exec(struct sideband *sb, const struct proc_news *n)
{
	struct process_news *p = find(sb, n->pid);
	size_t kept = 0;

	if (!p)
		p = add(sb, n->pid);
	if (!p)
		return;
	p->exec_ns = n->time_ns;
	p->nr_execs++;
	for (size_t i = 0; i < p->nr; i++) {
		if (p->maps[i].time_ns >= n->time_ns)
			p->maps[kept++] = p->maps[i];
		else
			free(p->maps[i].path);
	}
	p->nr = kept;
}

static void on_map(struct sideband *sb, const struct proc_news *n)
{
	struct process_news *p = find(sb, n->pid);
	struct map_news *m;

	if (!p)
		p = add(sb, n->pid);
	if (!p || p->nr == SIDEBAND_MAPS ||
	    vec_grow((void **)&p->maps, &p->cap, p->nr, sizeof(*p->maps)))
		return;
	m = &p->maps[p->nr];
	m->path = strdup(n->map.path);
	if (!m->path)
		return;
	m->time_ns = n->time_ns;
	m->map = n->map;
	m->map.path = m->path;
	p->nr++;
}

static void on_news(void *ctx, const struct proc_news *n)
{
	switch (n->kind) {
	case PROC_NEWS_FORK:
		on_fork(ctx, n);
		break;
	case PROC_NEWS_EXIT:
		on_exit_news(ctx, n);
		break;
	case PROC_NEWS_EXEC:
		on_exec(ctx, n);
		break;
	case PROC_NEWS_MAP:
		on_map(ctx, n);
		break;
	}
}

/* ---- the whole ---- */

int sideband__new(struct sideband **out)
{
	struct sideband *sb = calloc(1, sizeof(*sb));
	int err = sb ? proc_news__new(&sb->reader) : -ENOMEM;

	if (err) {
		free(sb);
		return err;
	}
	*out = sb;
	return 0;
}

void sideband__free(struct sideband *sb)
{
	struct process_news *p, *next;

	if (!sb)
		return;
	HASH_ITER (hh, sb->processes, p, next)
		forget(sb, p);
	proc_news__free(sb->reader);
	free(sb);
}

void sideband__read(struct sideband *sb, uint64_t now_ns)
{
	struct process_news *p, *next;

	proc_news__read(sb->reader, on_news, sb);
	if (now_ns < sb->next_trim_ns)
		return;
	sb->next_trim_ns = now_ns + NSEC_PER_SEC;
	HASH_ITER (hh, sb->processes, p, next) {
		if (p->exit_ns && now_ns > p->exit_ns + KEPT_NS)
			forget(sb, p);
	}
}

uint64_t sideband__lost(const struct sideband *sb)
{
	return proc_news__lost(sb->reader);
}

size_t sideband__maps(const struct sideband *sb, pid_t pid, uint64_t time_ns,
		      struct proc_map maps[SIDEBAND_MAPS], pid_t *parent, uint64_t *fork_ns)
{
	const struct process_news *p = find(sb, pid);
	size_t nr = 0;

	*parent = 0;
	*fork_ns = 0;
	if (!p || p->fork_ns > time_ns)
		return 0;
	if (!p->exec_ns || (p->exec_ns > time_ns && p->nr_execs == 1)) {
		*parent = p->parent;
		*fork_ns = p->fork_ns;
	}
	/* of the programs before the latest, the mappings are not remembered */
	for (size_t i = 0; i < p->nr && p->exec_ns <= time_ns; i++)
		if (p->maps[i].time_ns <= time_ns)
			maps[nr++] = p->maps[i].map;
	return nr;
}
