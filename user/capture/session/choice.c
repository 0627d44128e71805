// SPDX-License-Identifier: BSD-2-Clause
/* Which of all processes are recorded (struct kprof_choice), and whose they are. */
#include <fnmatch.h>
#include <stdlib.h>

#include "capture/session/session.h"
#include "util/container.h"
#include "util/error.h"

/* The path of the process's cgroup, malloc'ed. NULL: it has ended meanwhile. */
static char *read_cgroup(const struct target *t)
{
	char *cgroup;

	if (!proc_cgroup((pid_t)t->pid, &cgroup))
		return cgroup;
	error_clear();
	return NULL;
}

void choice__read_cgroup(struct kprof_session *s, struct target *t)
{
	char *cgroup = read_cgroup(t);

	if (cgroup)
		t->cgroup = recorder__string(s->recorder, cgroup);
	free(cgroup);
}

static bool matches(const char *const *globs, size_t nr, const char *text)
{
	for (size_t i = 0; i < nr; i++)
		if (!fnmatch(globs[i], text, 0))
			return true;
	return false;
}

static bool is_chosen_user(const struct kprof_choice *c, uint32_t uid)
{
	for (size_t i = 0; i < c->nr_uids; i++)
		if (c->uids[i] == uid)
			return true;
	return !c->nr_uids;
}

static bool is_chosen_cgroup(const struct kprof_choice *c, const char *path)
{
	char id[CONTAINER_ID_BYTES];

	if (!c->nr_cgroups || matches(c->cgroups, c->nr_cgroups, path))
		return true;
	return (container_id(path, id) && matches(c->cgroups, c->nr_cgroups, id)) ||
	       (container_pod(path, id) && matches(c->cgroups, c->nr_cgroups, id));
}

void choice__make(struct kprof_session *s, struct target *t, const char *comm)
{
	const struct kprof_choice *c = &s->opts.choice;
	char *cgroup = read_cgroup(t);

	t->left_out = (c->nr_comms && !matches(c->comms, c->nr_comms, comm)) ||
		      matches(c->exclude_comms, c->nr_exclude_comms, comm) ||
		      !is_chosen_user(c, t->uid) || !is_chosen_cgroup(c, cgroup ? cgroup : "");
	if (!t->left_out) {
		t->comm = recorder__string(s->recorder, comm);
		if (cgroup)
			t->cgroup = recorder__string(s->recorder, cgroup);
	}
	free(cgroup);
}
