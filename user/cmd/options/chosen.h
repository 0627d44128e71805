/* SPDX-License-Identifier: BSD-2-Clause */
/* Which of all processes are meant, by --user, --cgroup, --comm, and the same with --exclude-. */
#ifndef KPROF_CMD_OPTIONS_CHOSEN_H
#define KPROF_CMD_OPTIONS_CHOSEN_H

#include "cmd/options/option.h"
#include "kprof.h"

struct chosen {
	/* fields of rows */
	struct value_list users, cgroups, comms, exclude_users, exclude_cgroups, exclude_comms;
	uint32_t *uids, *exclude_uids; /* of the users, in order */
};

/* Finds the users that are given by name or number. Returns -1, or an exit code after a message. */
int chosen_find_users(const struct command *c, struct chosen *chosen);
/* The choice refers to what was given. */
void chosen_fill(const struct chosen *chosen, struct kprof_choice *choice);
/* Frees what is no field of a row. */
void chosen_free(struct chosen *chosen);

#endif
