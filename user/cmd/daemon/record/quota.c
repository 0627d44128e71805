// SPDX-License-Identifier: BSD-2-Clause
/*
 * How many recordings a user may have: that go on, that are begun in a minute, that are kept. What
 * users have recorded must neither fill the disk, nor push out what others have. Dumps that a user
 * has had made by signals are root's, but take that user's share of what is kept; how often there
 * are any, triggers.c bounds. What dyno asks for has an account of its own.
 */
#include <cjson/cJSON.h>
#include <time.h>
#include <unistd.h>

#include "cmd/daemon/record/recording.h"

#define MINUTE_NS (60 * 1000000000ull)
#define MOST_RUNNING 64
#define MORE_OF_ROOT 16         /* … beside these */
#define MOST_OF_USER 8          /* that go on, of one user, but root */
#define MOST_OF_DYNO 32         /* … beside all of these */
#define MOST_FILES_OF_USER 1000 /* that are kept, of one user, but root: the oldest go */
#define SHARE_OF_USER 4         /* … and of the bytes, one part in so many */
#define MOST_FAILED_OF_USER 100 /* that are known, of those that left nothing */
#define FAILED_MS (3600 * 1000) /* for so long */
#define NR_ACCOUNTS 64 /* that are told apart; all further ones share what the last one has */

struct share {
	uid_t account;
	uint64_t bytes, files, failed;
};

/* Those that go on. */
static size_t running_of(const struct recordings *rs, uid_t account)
{
	size_t nr = 0;

	for (const struct recording *r = rs->first; r; r = r->next)
		nr += (recording_goes_on(r) || r->child.pid) && recording_account(r) == account;
	return nr;
}

static size_t begun_lately(const struct recordings *rs, uid_t account)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	size_t lately = 0;

	for (size_t i = 0; i < sizeof(rs->begun) / sizeof(rs->begun[0]); i++)
		lately += rs->begun[i].at_ns && rs->begun[i].account == account &&
			  rs->begun[i].at_ns + MINUTE_NS > now;
	return lately;
}

bool recordings__may_begin(const struct recordings *rs, uid_t account)
{
	size_t of_dyno = running_of(rs, ACCOUNT_OF_DYNO), of_users = rs->running - of_dyno;

	if (account == ACCOUNT_OF_DYNO)
		return of_dyno < MOST_OF_DYNO && begun_lately(rs, account) < MOST_OF_DYNO_A_MINUTE;
	if (!account)
		return of_users < MOST_RUNNING + MORE_OF_ROOT;
	return of_users < MOST_RUNNING && running_of(rs, account) < MOST_OF_USER &&
	       begun_lately(rs, account) < MOST_A_MINUTE;
}

void recordings__count(struct recordings *rs, uid_t account)
{
	if (!account)
		return;
	rs->begun[rs->next_begun].account = account;
	rs->begun[rs->next_begun].at_ns = now_ns(CLOCK_MONOTONIC);
	rs->next_begun = (rs->next_begun + 1) % (sizeof(rs->begun) / sizeof(rs->begun[0]));
}

static struct share *share_of(struct share *shares, size_t *nr, uid_t account)
{
	for (size_t i = 0; i < *nr; i++)
		if (shares[i].account == account)
			return &shares[i];
	if (*nr == NR_ACCOUNTS)
		return &shares[NR_ACCOUNTS - 1];
	shares[*nr] = (struct share){.account = account};
	return &shares[(*nr)++];
}

uint64_t recordings__most_bytes(const struct recordings *rs, uid_t account)
{
	return account ? rs->opts.keep_bytes / SHARE_OF_USER : rs->opts.keep_bytes;
}

/* What is stored of it. False: nothing is there any more. */
static bool stored(const struct recording *r, uint64_t *bytes)
{
	char path[RECORDING_PATH_BYTES];
	struct stat st;
	bool any = false;

	*bytes = 0;
	for (uint32_t round = 0; round <= r->rounds; round++) {
		recording__path(r, round, path);
		if (lstat(path, &st))
			continue;
		any = true;
		*bytes += folder_bytes(&st);
	}
	return any;
}

/* Whether one that has ended is to be known any longer; those that are newer are counted. */
static bool stays(const struct recordings *rs, const struct recording *r, struct share *s)
{
	uint64_t now_ms = in_ms(now_ns(CLOCK_REALTIME)), bytes;

	if (r->state != RECORDING_DONE) {
		s->failed++;
		return now_ms < r->ended_ms + FAILED_MS && rs->nr < MOST_KNOWN &&
		       (!recording_payer(r) || s->failed <= MOST_FAILED_OF_USER);
	}
	if (!stored(r, &bytes))
		return false;
	s->bytes += bytes;
	s->files += r->rounds;
	return !recording_payer(r) || (s->bytes <= recordings__most_bytes(rs, recording_payer(r)) &&
				       s->files <= MOST_FILES_OF_USER);
}

bool recordings__forget_old(struct recordings *rs)
{
	static struct share shares[NR_ACCOUNTS];
	struct recording **at = &rs->first; /* the newest */
	uint64_t begun = now_ns(CLOCK_MONOTONIC), removed = 0;
	bool more = false;
	size_t nr = 0;

	share_of(shares, &nr, ACCOUNT_OF_DYNO); /* however many users there are */
	while (*at) {
		struct recording *r = *at;
		bool goes = !recording_goes_on(r) && !r->child.pid &&
			    !stays(rs, r, share_of(shares, &nr, recording_payer(r)));

		if (!goes || folder_enough(begun, removed)) {
			more |= goes;
			at = &r->next;
			continue;
		}
		removed += r->rounds + 1; /* files; at least its description */
		recording__remove(r);
		*at = r->next;
		rs->nr--;
		recording__free(r);
	}
	return more;
}
