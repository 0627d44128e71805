// SPDX-License-Identifier: BSD-2-Clause
/* Whose recordings go where somebody has many: by descriptions that a daemon before has left. */
#include "unit.h"

#include <cjson/cJSON.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd/daemon/record/recording.h"

#define PIECE (256 << 10)
#define MOST (40ull * PIECE) /* of all; of a user a quarter of that */

static char folder[] = "/tmp/kprof-unit-quota-XXXXXX";
static int made;

/* A capture of nearly this size: the file system may add to it. And what is said of it. */
static void make(const char *members)
{
	char path[128], text[256];
	int fd, len;

	snprintf(path, sizeof(path), "%s/20260101T000000-%03d.kprof", folder, ++made);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && !posix_fallocate(fd, 0, PIECE - (16 << 10)));
	close(fd);
	snprintf(path, sizeof(path), "%s/20260101T000000-%03d.json", folder, made);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	len = snprintf(text, sizeof(text), "{\"state\": \"done\", \"rounds\": 1, %s}", members);
	CHECK(fd >= 0 && write(fd, text, (size_t)len) == len);
	close(fd);
}

/* How many there are with these members. */
static int nr_of(struct recordings *rs, uid_t uid, uid_t asked_by)
{
	struct recording *r = NULL;
	int nr = 0;

	while ((r = recordings__next(rs, r))) {
		cJSON *o = recording__describe(r);
		const cJSON *by = cJSON_GetObjectItemCaseSensitive(o, "asked_by");

		nr += recording__uid(r) == uid && r->asked_by == asked_by &&
		      (by ? by->valuedouble == asked_by : !asked_by);
		cJSON_Delete(o);
	}
	return nr;
}

/* How many captures there were, each with what is said of it. */
static size_t remove_all(void)
{
	char **names, path[128];
	size_t nr;

	CHECK(!folder_list(folder, &names, &nr));
	for (size_t i = 0; i < nr; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		CHECK(!unlink(path));
		strcpy(strrchr(path, '.'), ".json");
		CHECK(!unlink(path));
	}
	folder_list_free(names, nr);
	CHECK(!rmdir(folder));
	return nr;
}

static void ignore(void *ctx, struct recording *r)
{
	(void)ctx;
	(void)r;
}

/* A folder of its own, that is empty. */
static void begin(struct recordings_opts *opts)
{
	*opts = (struct recordings_opts){.keep_bytes = MOST, .changed = ignore};
	strcpy(strrchr(folder, '-'), "-XXXXXX");
	CHECK(mkdtemp(folder));
	snprintf(opts->folder, sizeof(opts->folder), "%s", folder);
}

/*
 * A user who has had more dumps made by signals than the folder has room for loses the oldest of
 * these: neither root's, which are older, nor those that others have had made.
 */
static void asked_dumps_have_a_share(void)
{
	struct recordings_opts opts;
	struct recordings *rs;

	begin(&opts);
	make("\"uid\": 0");
	make("\"uid\": 0, \"asked_by\": 2002");
	make("\"uid\": 2002");
	for (int i = 0; i < 42; i++)
		make("\"uid\": 0, \"asked_by\": 2001");
	make("\"uid\": 2001"); /* has part in the same share */
	make("\"uid\": 0");
	make("\"uid\": 0, \"asked_by\": -1"); /* root's: it is no user */
	CHECK(!recordings__new(&opts, &rs));
	CHECK_EQ(nr_of(rs, 0, 2001), 42);
	for (int i = 1; i < 100; i++) /* some at once */
		recordings__tend(rs, (uint64_t)i * 3600 * 1000000000);
	CHECK_EQ(nr_of(rs, 0, 0), 3);
	CHECK_EQ(nr_of(rs, 0, 2002), 1);
	CHECK_EQ(nr_of(rs, 2002, 0), 1);
	CHECK_EQ(nr_of(rs, 2001, 0), 1);
	CHECK_EQ(nr_of(rs, 0, 2001), 9);
	recordings__free(rs);
	CHECK_EQ(remove_all(), 3 + 1 + 1 + 1 + 9);
}

/* Root of other PID namespaces is one user, with a user's share. */
static void root_elsewhere_has_a_share(void)
{
	struct recordings_opts opts;
	struct recordings *rs;

	begin(&opts);
	make("\"uid\": 0");
	for (int i = 0; i < 42; i++)
		make("\"uid\": 0, \"elsewhere\": true");
	CHECK(!recordings__new(&opts, &rs));
	CHECK_EQ(nr_of(rs, 0, 0), 43);
	for (int i = 1; i < 100; i++)
		recordings__tend(rs, (uint64_t)i * 3600 * 1000000000);
	CHECK_EQ(nr_of(rs, 0, 0), 1 + 10);
	recordings__free(rs);
	CHECK_EQ(remove_all(), 1 + 10);
}

/*
 * What dyno has had recorded of a user's processes is that user's, but neither takes the share of
 * that user, who did not ask for it, nor counts as begun by that user.
 */
static void dyno_has_a_share(void)
{
	struct recordings_opts opts;
	struct recordings *rs;

	begin(&opts);
	make("\"uid\": 0");
	make("\"uid\": 2001");
	for (int i = 0; i < 15; i++) {
		make("\"uid\": 2001, \"for_dyno\": true");
		make("\"uid\": 0, \"for_dyno\": true");
	}
	CHECK(!recordings__new(&opts, &rs));
	for (int i = 1; i < 100; i++)
		recordings__tend(rs, (uint64_t)i * 3600 * 1000000000);
	CHECK_EQ(nr_of(rs, 2001, 0) + nr_of(rs, 0, 0), 2 + 10);
	CHECK_EQ(rs->nr, 2 + 10);
	for (const struct recording *r = rs->first; r; r = r->next)
		CHECK_EQ(r->for_dyno, rs->nr-- > 2);
	for (int i = 0; i < MOST_OF_DYNO_A_MINUTE; i++) {
		CHECK(recordings__may_begin(rs, ACCOUNT_OF_DYNO));
		recordings__count(rs, ACCOUNT_OF_DYNO);
	}
	CHECK(!recordings__may_begin(rs, ACCOUNT_OF_DYNO));
	for (int i = 0; i < MOST_A_MINUTE; i++) {
		CHECK(recordings__may_begin(rs, 2001));
		recordings__count(rs, 2001);
	}
	CHECK(!recordings__may_begin(rs, 2001));
	CHECK(recordings__may_begin(rs, 0));
	recordings__free(rs);
	remove_all();
}

UNIT_MAIN(TEST(asked_dumps_have_a_share), TEST(root_elsewhere_has_a_share), TEST(dyno_has_a_share))
