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

static bool is_among(const uint32_t *uids, size_t nr, uint32_t uid)
{
	for (size_t i = 0; i < nr; i++)
		if (uids[i] == uid)
			return true;
	return false;
}

/* By its path, or by the id of its container or pod. */
static bool matches_cgroup(const char *const *globs, size_t nr, const char *path)
{
	char id[CONTAINER_ID_BYTES];

	return nr &&
	       (matches(globs, nr, path) || (container_id(path, id) && matches(globs, nr, id)) ||
		(container_pod(path, id) && matches(globs, nr, id)));
}

static bool is_chosen(const struct kprof_choice *c, uint32_t uid, const char *cgroup,
		      const char *comm)
{
	if (is_among(c->exclude_uids, c->nr_exclude_uids, uid) ||
	    matches_cgroup(c->exclude_cgroups, c->nr_exclude_cgroups, cgroup) ||
	    matches(c->exclude_comms, c->nr_exclude_comms, comm))
		return false;
	return (!c->nr_uids || is_among(c->uids, c->nr_uids, uid)) &&
	       (!c->nr_cgroups || matches_cgroup(c->cgroups, c->nr_cgroups, cgroup)) &&
	       (!c->nr_comms || matches(c->comms, c->nr_comms, comm));
}

void choice__make(struct kprof_session *s, struct target *t, const char *comm)
{
	char *cgroup = read_cgroup(t);

	t->left_out = !is_chosen(&s->opts.choice, t->uid, cgroup ? cgroup : "", comm);
	if (!t->left_out) {
		t->comm = recorder__string(s->recorder, comm);
		if (cgroup)
			t->cgroup = recorder__string(s->recorder, cgroup);
		programs__read(s, t);
	}
	free(cgroup);
}
