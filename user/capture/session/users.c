// SPDX-License-Identifier: BSD-2-Clause
/*
 * Whose each process is. Names are those of this machine's /etc/passwd, which is read once for each
 * user: asking a directory service could take long, and would need rights that a recording has
 * given up. A capture that is read elsewhere has them still.
 */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>

#include "capture/session/session.h"
#include "util/error.h"

#define PASSWD "/etc/passwd"
#define MAX_USERS 4096 /* further ones have no names: a target may change its UID at will */

/* The string id of the user's name; 0: it is not known. */
static uint32_t name_of(struct kprof_session *s, uint32_t uid)
{
	FILE *file = fopen(PASSWD, "re");
	struct passwd *pw = NULL;
	uint32_t id;

	while (file && (pw = fgetpwent(file)) && pw->pw_uid != uid)
		;
	id = pw ? recorder__string(s->recorder, pw->pw_name) : 0;
	if (file)
		fclose(file);
	return id;
}

int users__record(struct kprof_session *s, struct target *t)
{
	struct store_record r = {
		.type = STORE_OWNER,
		.owner = {.pid = t->pid,
			  .start_ns = t->start_ns,
			  .uid = t->uid,
			  .cgroup = t->cgroup},
	};
	uint64_t *name = NULL;

	if (!t->owned || (t->told_uid == t->uid + 1ull && t->told_cgroup == t->cgroup + 1ull))
		return 0;
	if (s->users.used < MAX_USERS || map64__get(&s->users, t->uid))
		name = map64__at(&s->users, t->uid);
	if (name && !*name)
		*name = (uint64_t)name_of(s, t->uid) + 1;
	r.owner.user = name ? (uint32_t)(*name - 1) : 0;
	t->told_uid = t->uid + 1ull;
	t->told_cgroup = t->cgroup + 1ull;
	return recorder__put(s->recorder, &r);
}
