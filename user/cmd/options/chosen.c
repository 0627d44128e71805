// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/options/chosen.h"

#include <ctype.h>
#include <pwd.h>
#include <stdlib.h>

#include "cmd/print/message.h"

static int find_users(const struct command *c, const char *option, const struct value_list *users,
		      uint32_t **uids)
{
	if (!users->nr)
		return -1;
	*uids = calloc(users->nr, sizeof(**uids));
	if (!*uids)
		return message_no_memory();
	for (size_t i = 0; i < users->nr; i++) {
		const char *user = users->items[i];
		const struct passwd *known = getpwnam(user);
		char *end;
		unsigned long number = strtoul(user, &end, 10);

		if (!known && (*end || !isdigit((unsigned char)*user) || number >= UINT32_MAX))
			return message_usage(c->name, "--%s: there is no user '%s'", option, user);
		(*uids)[i] = known ? known->pw_uid : (uint32_t)number;
	}
	return -1;
}

int chosen_find_users(const struct command *c, struct chosen *chosen)
{
	int code = find_users(c, "user", &chosen->users, &chosen->uids);

	return code >= 0 ? code
			 : find_users(c, "exclude-user", &chosen->exclude_users,
				      &chosen->exclude_uids);
}

void chosen_fill(const struct chosen *chosen, struct kprof_choice *choice)
{
	*choice = (struct kprof_choice){
		.uids = chosen->uids,
		.nr_uids = chosen->users.nr,
		.cgroups = (const char *const *)chosen->cgroups.items,
		.nr_cgroups = chosen->cgroups.nr,
		.comms = (const char *const *)chosen->comms.items,
		.nr_comms = chosen->comms.nr,
		.exclude_uids = chosen->exclude_uids,
		.nr_exclude_uids = chosen->exclude_users.nr,
		.exclude_cgroups = (const char *const *)chosen->exclude_cgroups.items,
		.nr_exclude_cgroups = chosen->exclude_cgroups.nr,
		.exclude_comms = (const char *const *)chosen->exclude_comms.items,
		.nr_exclude_comms = chosen->exclude_comms.nr,
	};
}

void chosen_free(struct chosen *chosen)
{
	free(chosen->uids);
	free(chosen->exclude_uids);
	chosen->uids = chosen->exclude_uids = NULL;
}
