// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/dump/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/print/text.h"

/* Groups of threads, and bytes of their texts, that are kept at a time: then they are printed. */
#define MAX_GROUPS 4096
#define MAX_BYTES (64u << 20)

/* A thread of a group. */
struct member {
	pid_t tid;
	char *name; /* as it is printed */
};

/* Threads that do the same in the same place. */
struct group {
	uint64_t hash;
	char *stack; /* the lines of its frames */
	char *place; /* the state, and the system call */
	char *doing; /* the state, and what is known of the call */
	bool same;   /* doing is so of all its threads */
	struct member *members;
	size_t nr;
};

struct dump_text {
	bool all;
	pid_t begun; /* PID of the process whose head has been printed; 0: none */
	struct group *groups;
	size_t nr, main; /* main: number of the main thread's group + 1; 0: it was not met */
	size_t bytes;
};

const char *dump_text_state(enum kprof_thread_state state)
{
	static const char *const states[] = {
		[KPROF_THREAD_RUNNING] = "running",   [KPROF_THREAD_RUNNABLE] = "waiting for a CPU",
		[KPROF_THREAD_SLEEPING] = "sleeping", [KPROF_THREAD_BLOCKED] = "blocked",
		[KPROF_THREAD_STOPPED] = "stopped",   [KPROF_THREAD_EXITED] = "exited",
	};

	return states[state];
}

/* ---- what is printed ---- */

/*
 * The part of a path after the directory of installed packages: what precedes it is not
 * informative.
 */
static const char *short_path(const char *path)
{
	static const char *const folders[] = {"/site-packages/", "/dist-packages/"};

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		const char *at = strstr(path, folders[i]);

		if (at)
			return at + strlen(folders[i]);
	}
	return path;
}

static void print_frame(FILE *to, const struct kprof_frame *f)
{
	fprintf(to, "    ");
	text_print(to, f->function);
	if (f->file[0]) {
		fprintf(to, " (");
		text_print(to, f->kind == KPROF_FRAME_PYTHON ? short_path(f->file)
							     : text_base(f->file));
		if (f->line)
			fprintf(to, ":%u", f->line);
		fputc(')', to);
	} else if (f->kind == KPROF_FRAME_KERNEL) {
		fprintf(to, " [kernel]");
	} else if (f->module[0] && !strchr(f->function, '+')) {
		fprintf(to, " (");
		text_print(to, text_base(f->module));
		fputc(')', to);
	}
	fputs(f->inlined ? " [inlined]\n" : "\n", to);
}

static void print_process(const struct kprof_dump_process *p)
{
	printf("Process %d: ", (int)p->pid);
	text_print(stdout, p->command);
	putchar('\n');
	if (p->python[0])
		printf("Python %s, ", p->python);
	printf("%zu thread%s; the most recent call comes first\n", p->nr_threads,
	       p->nr_threads == 1 ? "" : "s");
	if (p->note[0]) {
		text_print(stdout, p->note);
		putchar('\n');
	}
}

/* The name in quotes: Python's and, in brackets, the kernel's, where it differs. */
static void put_name(FILE *to, const struct kprof_dump_thread *t)
{
	bool named = t->python_name[0] && strcmp(t->python_name, t->name);

	fputc('"', to);
	text_print(to, named ? t->python_name : t->name);
	fputc('"', to);
	if (named) {
		fprintf(to, " (");
		text_print(to, t->name);
		fputc(')', to);
	}
}

static void put_gil(FILE *to, const struct kprof_dump_thread *t)
{
	if (t->holds_gil)
		fprintf(to, ", holds the GIL");
	if (t->waits_gil)
		fprintf(to, ", waits for the GIL");
}

static void put_doing(FILE *to, const struct kprof_dump_thread *t)
{
	fprintf(to, t->doing[0] ? "%s %s" : "%s", dump_text_state(t->state), t->doing);
	put_gil(to, t);
}

/* Without the arguments, which may be each thread's own. */
static void put_place(FILE *to, const struct kprof_dump_thread *t)
{
	fprintf(to, t->call[0] ? "%s in %s" : "%s", dump_text_state(t->state), t->call);
	put_gil(to, t);
}

static void put_stack(FILE *to, const struct kprof_dump_thread *t)
{
	for (size_t i = 0; i < t->nr_frames; i++)
		print_frame(to, &t->frames[i]);
	if (t->cut[0]) {
		fprintf(to, "    (");
		text_print(to, t->cut);
		fputs(")\n", to);
	}
}

/* "1234", "1234-1240": the members from `at` on that have one name and neighbouring TIDs. */
static size_t print_tids(const struct group *g, size_t at)
{
	size_t to = at + 1;

	while (to < g->nr && g->members[to].tid == g->members[to - 1].tid + 1 &&
	       !strcmp(g->members[to].name, g->members[at].name))
		to++;
	printf("%d", (int)g->members[at].tid);
	if (to - at > 1)
		printf("-%d", (int)g->members[to - 1].tid);
	return to;
}

static void print_group(const struct group *g)
{
	if (g->nr == 1)
		printf("\nThread %d %s: ", (int)g->members->tid, g->members->name);
	else
		printf("\n%zu threads ", g->nr);
	for (size_t i = 0; g->nr > 1 && i < g->nr;) {
		const char *name = g->members[i].name;

		i = print_tids(g, i);
		if (i == g->nr || strcmp(g->members[i].name, name) != 0)
			printf(" %s", name);
		fputs(i == g->nr ? ": " : ", ", stdout);
	}
	puts(g->same ? g->doing : g->place);
	fputs(g->stack, stdout);
}

/* ---- groups ---- */

static void group_free(struct group *g)
{
	for (size_t i = 0; i < g->nr; i++)
		free(g->members[i].name);
	free(g->members);
	free(g->stack);
	free(g->place);
	free(g->doing);
}

/* Prints what is kept, the main thread's group first. */
static void print_groups(struct dump_text *d)
{
	if (d->main)
		print_group(&d->groups[d->main - 1]);
	for (size_t i = 0; i < d->nr; i++) {
		if (i + 1 != d->main)
			print_group(&d->groups[i]);
		group_free(&d->groups[i]);
	}
	d->nr = d->main = d->bytes = 0;
}

/* What a thread adds to its group, or begins one with. */
static bool render(const struct kprof_dump_thread *t, struct group *g, struct member *m)
{
	struct {
		char **to;
		void (*put)(FILE *to, const struct kprof_dump_thread *t);
	} texts[] = {{&g->stack, put_stack},
		     {&g->place, put_place},
		     {&g->doing, put_doing},
		     {&m->name, put_name}};
	bool fine = true;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]) && fine; i++) {
		size_t bytes;
		FILE *to = open_memstream(texts[i].to, &bytes);

		if (to)
			texts[i].put(to, t);
		fine = to && !fclose(to) && *texts[i].to;
	}
	m->tid = t->tid;
	return fine;
}

/* The group that the thread belongs to; NULL: none yet. */
static struct group *find(const struct dump_text *d, const struct group *like)
{
	for (size_t i = 0; i < d->nr && !d->all; i++) {
		struct group *g = &d->groups[i];

		if (g->hash == like->hash && !strcmp(g->stack, like->stack) &&
		    !strcmp(g->place, like->place))
			return g;
	}
	return NULL;
}

static bool add_member(struct group *g, const struct member *m)
{
	/* Doubles at powers of two. */
	size_t cap = g->nr & (g->nr - 1) ? 0 : g->nr ? g->nr * 2 : 1;
	struct member *more = cap ? reallocarray(g->members, cap, sizeof(*more)) : g->members;

	if (!more)
		return false;
	g->members = more;
	more[g->nr++] = *m;
	return true;
}

/* Adds a member to its group, which it may begin. What it took over, it has set to zero. */
static bool join(struct dump_text *d, struct group *own, struct member *m)
{
	struct group *g = find(d, own);

	if (!g) {
		g = &d->groups[d->nr++];
		*g = *own;
		g->same = true;
		d->bytes += strlen(g->stack);
		*own = (struct group){0};
	} else if (strcmp(g->doing, own->doing) != 0) {
		g->same = false;
	}
	d->bytes += sizeof(*m) + strlen(m->name);
	if (!add_member(g, m))
		return false;
	m->name = NULL;
	if (m->tid == d->begun)
		d->main = (size_t)(g - d->groups) + 1;
	return true;
}

int dump_text__add(struct dump_text *d, const struct kprof_dump_process *p,
		   const struct kprof_dump_thread *t)
{
	struct group own = {0};
	struct member m = {0};
	bool fine;

	if (!d->begun)
		print_process(p);
	d->begun = p->pid;
	fine = render(t, &own, &m);
	if (fine) {
		own.hash = text_hash(own.stack) ^ text_hash(own.place);
		fine = join(d, &own, &m);
	}
	group_free(&own);
	free(m.name);
	if (d->nr == MAX_GROUPS || d->bytes > MAX_BYTES)
		print_groups(d);
	return fine ? 0 : DUMP_TEXT_NO_MEMORY;
}

void dump_text__end(struct dump_text *d)
{
	print_groups(d);
	d->begun = 0;
}

struct dump_text *dump_text__new(bool all)
{
	struct dump_text *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->all = all;
	d->groups = calloc(MAX_GROUPS, sizeof(*d->groups));
	if (d->groups)
		return d;
	free(d);
	return NULL;
}

void dump_text__free(struct dump_text *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->nr; i++)
		group_free(&d->groups[i]);
	free(d->groups);
	free(d);
}
