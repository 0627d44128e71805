// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/event/marks.h"
#include "kprof/mark.h"
#include "symbol/elf/usdt.h"
#include "util/error.h"
#include "util/util.h"

/* A file can be made of anything: more places than this are not watched. */
#define MAX_PLACES 4096

/* Something of theirs is asked for. */
static bool wanted(const struct kprof_session *s)
{
	const uint64_t ours = 1ull << KPROF_ACTIVITY_USER_ANNOTATION |
			      1ull << KPROF_ACTIVITY_CPU_INSTANT_EVENT |
			      1ull << KPROF_ACTIVITY_CPU_OP;

	return !s->opts.types || s->opts.types & ours;
}

struct found {
	struct kprof_session *s;
	struct file *file;
	size_t cap;
};

static int on_probe(void *ctx, const struct usdt_probe *p)
{
	struct found *found = ctx;
	struct file *f = found->file;

	if (strcmp(p->provider, "kprof") || strcmp(p->name, "mark") || strcmp(p->args, "8@%rdi"))
		return 0;
	if (f->nr_marks == MAX_PLACES) {
		log_warn(NULL, "%s has more than %d places for annotations; the rest are not seen",
			 f->name, MAX_PLACES);
		return 1;
	}
	if (vec_grow((void **)&f->marks, &found->cap, f->nr_marks, sizeof(*f->marks)))
		return -ENOMEM;
	f->marks[f->nr_marks++] = (struct attach_point){
		.offset = p->offset,
		.cookie = KPROF_COOKIE(found->s->marks.source, 0, 0),
		.semaphore = p->semaphore,
	};
	return 0;
}

/* Looks for them, once for each file. */
static bool has_marks(struct kprof_session *s, struct file *f)
{
	struct found found = {.s = s, .file = f};

	if (f->marks_known || !f->elf)
		return f->nr_marks > 0;
	f->marks_known = true;
	if (session__source(s, "annotations", &s->marks.source))
		return false;
	usdt_probes(f->elf, on_probe, &found);
	return f->nr_marks > 0;
}

/* Of most files that is known without opening them. */
static bool may_have_marks(const struct target *t, const struct proc_map *map)
{
	char path[512];

	return proc_map_open_path((pid_t)t->pid, map, path, sizeof(path)) || usdt_may_be_in(path);
}

bool marks__in(struct kprof_session *s, struct target *t, const struct proc_map *map)
{
	struct file *f;

	if (!wanted(s) || session__file_entry(s, map, &f))
		return false;
	if (!f->marks_known && !f->elf && !may_have_marks(t, map))
		f->marks_known = true;
	if (f->marks_known)
		return f->nr_marks > 0;
	return !session__file(s, t, map, &f) && has_marks(s, f);
}

int marks__attach(struct kprof_session *s, struct target *t, struct target_file *tf,
		  const char *path)
{
	bool exact = s->opts.children == KPROF_CHILDREN_EXACT;
	struct file *f = tf->file;
	int err;

	if (tf->marked || s->stopped || !wanted(s) || !has_marks(s, f))
		return 0;
	tf->marked = true;
	if (exact && f->marked)
		return 0;
	err = attacher__attach(s->attacher, ATTACH_MARK, exact ? -1 : (pid_t)t->pid, path, f->marks,
			       f->nr_marks, exact ? &f->links : &t->links);
	if (err == -ESRCH || err == -ENOENT) { /* gone meanwhile */
		tf->marked = false;
		return 0;
	}
	if (err) {
		log_warn("`kprof check` says what this machine allows",
			 "cannot watch the annotations in %s of process %u: %s; they are missing",
			 f->name, t->pid, strerror(-err));
		return account__gap(s, t->pid, f->name, "its annotations could not be watched",
				    s->start_ns, clock_mono_ns());
	}
	f->marked = true;
	return 0;
}
