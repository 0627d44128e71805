/* SPDX-License-Identifier: BSD-2-Clause */
/* What recordings.c and kept.c share: a recording on demand, while it goes on and afterwards. */
#ifndef KPROF_CMD_DAEMON_RECORDING_H
#define KPROF_CMD_DAEMON_RECORDING_H

#include "cmd/daemon/daemon.h"

#define MOST_A_MINUTE 30         /* that are begun, of one user, but root */
#define MOST_OF_DYNO_A_MINUTE 60 /* … by dyno, whomever they are of */
#define MOST_KNOWN 10000         /* with those that have ended */
/* The length of a path: of a recording of several rounds with ".NUMBER" before the suffix. */

struct recording {
	struct recordings *all;
	char id[RECORDING_ID_BYTES];
	enum recording_state state;
	uid_t uid;
	uint64_t space; /* the PID namespace of who asked; 0: the daemon's; SPACE_UNKNOWN: gone */
	uid_t asked_by; /* of root's dumps: who has had it made by a signal; 0: nobody */
	bool for_dyno;  /* dyno has asked for it: nobody knows who that was */
	gid_t gid;
	pid_t asker;
	pid_t pids[16]; /* the first ones */
	size_t nr_pids;
	struct child child;
	bool dump;
	struct demand_job job; /* only while it is begun */
	char path[DAEMON_PATH_BYTES + RECORDING_ID_BYTES + 8];
	uint32_t rounds;               /* that are whole */
	uint64_t begun_ms;             /* Unix time: asked for */
	uint64_t started_ms, ended_ms; /* 0: not yet */
	uint64_t stop_by_ns;
	char why[160];   /* what it is for; "" nothing is said */
	char early[200]; /* why there are not all rounds that were asked for; "": there are */
	cJSON *numbers;  /* of its last message; NULL: none came */
	char *error, *hint;
	struct recording *next;
};

struct recordings {
	struct recordings_opts opts;
	struct recording *first;
	size_t nr, running;
	uint32_t number;
	uint64_t next_trim_ns;
	struct folder_want want;
	struct {
		uid_t account;
		uint64_t at_ns;
	} begun[MOST_A_MINUTE * 8 + MOST_OF_DYNO_A_MINUTE]; /* the latest, of all accounts */
	size_t next_begun;
};

static inline bool recording_goes_on(const struct recording *r)
{
	return r->state < RECORDING_DONE;
}

/*
 * What dyno asks for is recorded for the process's user, who did not ask for it: neither what that
 * user may begin nor what is kept of that user's is to become less. No user has this number.
 */
#define ACCOUNT_OF_DYNO ((uid_t)-3) /* -1 is root in containers (space_user()) */

/* Whose share of the folder it takes. */
static inline uid_t recording_payer(const struct recording *r)
{
	if (r->for_dyno)
		return ACCOUNT_OF_DYNO;
	return space_user(r->uid, r->space) ? space_user(r->uid, r->space) : r->asked_by;
}

/* Who has begun it: a dump that was made by a signal, root. */
static inline uid_t recording_account(const struct recording *r)
{
	return r->for_dyno ? ACCOUNT_OF_DYNO : space_user(r->uid, r->space);
}

/* ---- kept.c ---- */

#define RECORDING_PATH_BYTES (sizeof(((struct recording *)NULL)->path) + 16)

/* Takes the PIDs of a message or description. */
void recording__take_pids(struct recording *r, const struct cJSON *m);
/* Writes what is known of it beside its capture, for a daemon that begins later. */
void recording__keep(const struct recording *r);
void recording__free(struct recording *r);
/* Where a capture of it is. round 0: the only one; otherwise one of several. */
void recording__path(const struct recording *r, uint32_t round, char out[RECORDING_PATH_BYTES]);
/* Removes what is stored of it. */
void recording__remove(const struct recording *r);
/* Adds those that an earlier daemon has written. */
void recordings__read_kept(struct recordings *rs);

/* ---- quota.c ---- */

/* account: a user, or ACCOUNT_OF_DYNO. */
bool recordings__may_begin(const struct recordings *rs, uid_t account);
/* One was begun. */
void recordings__count(struct recordings *rs, uid_t account);
/* What all of this account's may take of the disk, and thus also one. */
uint64_t recordings__most_bytes(const struct recordings *rs, uid_t account);
/*
 * Removes the oldest of users who have more than their share, and forgets what is gone. True: more
 * is to go, in another turn of the loop.
 */
bool recordings__forget_old(struct recordings *rs);

#endif
